"""SAMMC on points in blocks: a sample is searched, and the centers descend over all points.

A pass sends the centers to the blocks, and sums over the clusters of as many numbers back.
"""

from dataclasses import replace

import numpy as np

from fastmmc.annealing import _loops as kernels
from fastmmc.annealing.points import (
    BRIEF_TOL,
    Pass,
    Points,
    Walker,
    descend,
    make_model,
    weiszfeld_targets,
)
from fastmmc.core import validation
from fastmmc.core.execution import rate_figures, restart_stream, show_progress, warn_if_stopped
from fastmmc.core.status import Status
from fastmmc.data.blocks import make_blocks
from fastmmc.kernels.block_factor import SampleRun, sample_size


def search_in_blocks(call, control, solve_sample):
    """Return the result of :func:`sammc`, which ``solve_sample`` is, on points in blocks."""
    blocks = make_blocks(call.X, n_jobs=call.n_jobs)
    k = validation.check_cluster_count(call.k, blocks.shape[0])
    run = SampleRun(call, blocks, sample_size(k, 1))
    if run.is_whole:
        return run.of_all(solve_sample)
    with show_progress(control) as control:
        sample, given = run.draw(control)
        found = solve_sample(sample, **given)
        walker = _BlockWalker(blocks, sample, found.all_centers)
        status = found.status
        if status in (Status.CONVERGED, Status.MAX_ITER) and call.center == "median":
            status = _descend(walker, restart_stream(run.seed, 0), control)
        return run.end(_result(walker, found, status), control)


def _descend(walker, rng, control):
    """Descend over all points; return why that ended."""
    status = Status.CONVERGED
    try:
        for _ in descend(walker, walker.centers, BRIEF_TOL, rng):
            status = control.report(
                fraction=1.0 - 1.0 / (2 + len(walker.history)),
                n_done=0,
                n_init=1,
                objective=walker.objective,
            )
            if status != Status.CONVERGED:
                break
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    warn_if_stopped(status, 1, 1)
    return status


class _BlockWalker(Walker):
    """Passes over points in blocks, of which it has a sample; keeps the best centers."""

    def __init__(self, blocks, sample, centers):
        super().__init__(Points(sample), "median")
        self._blocks = blocks
        self.centers, self.objective = centers, np.inf
        self.history = []

    def looking(self, centers):
        """Return the Pass of all points; a generator of its elementary operations."""
        self.assign(centers)  # the sample, from which new centers are drawn
        blocks, shared = self._blocks, (centers, self.points.least)
        objective, pulls, sums, at_center = blocks.total(blocks.map(_sum_pulls, shared))
        if objective < self.objective:
            self.objective, self.centers = float(objective), centers
        self.history.append(self.objective)
        yield self.points.cost * len(centers)
        targets = weiszfeld_targets(centers, pulls, sums, at_center)
        return Pass(float(objective), targets, (pulls == 0) & (at_center == 0))

    def label_all(self):
        """Return the labels by the best centers where the points are, sizes, and objective."""
        blocks, model = self._blocks, make_model(self.centers, self.points.rows)
        sizes, objective = blocks.total(blocks.map(_count, model))
        return blocks.map(_label, model), sizes, float(objective)


def _sum_pulls(rows, shared):
    """Return the sum of distances of a block, and what :func:`kernels.sum_pulls` does."""
    centers, least = shared
    points = Points(rows)
    walker = Walker(points, "median")
    walker.assign(centers)
    given = points.rows, points.weights, walker.labels, walker.distances
    return walker.distances.sum(), *kernels.sum_pulls(*given, least, len(centers))


def _count(rows, model):
    labels, distances = model.assign(rows)
    return np.bincount(labels, minlength=len(model.centers)), distances.sum()


def _label(rows, model):
    return model.assign(rows)[0]


def _result(walker, found, status):
    """Return the result of the sample with what it came to over all points."""
    _, sizes, _ = walker.label_all()
    kept = np.flatnonzero(sizes)
    all_centers = walker.centers
    # Labels have no gaps, so only centers that have points are assigned to.
    walker.centers = all_centers[kept]
    labels, counts, objective = walker.label_all()
    history = np.array([*walker.history, objective])
    return replace(
        found,
        labels=walker._blocks.join(labels),
        objective=objective,
        status=rate_figures(status, objective=objective),
        n_iter=len(walker.history),
        sizes=counts,
        history=history,
        trace={"passes": np.arange(1, history.size + 1)},
        objectives=np.array([objective]),
        best_init=0,
        model=make_model(walker.centers, walker.points.rows),
        centers=walker.centers,
        all_centers=all_centers,
        kept=kept,
        weights=sizes.astype(np.float64),
        n_active=int(kept.size),
    )
