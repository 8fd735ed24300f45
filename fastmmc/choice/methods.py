"""Clusters without settings: widths and size rules are tried, and the labels decide by vote."""

from dataclasses import replace
from itertools import islice
from math import ceil
from typing import Literal, NamedTuple

import numpy as np
from scipy.sparse import issparse

from fastmmc.choice.blocked import coarsen_blocks, label_blocks
from fastmmc.choice.candidates import N_STEPS, Labellings
from fastmmc.choice.evidence import CLOUDS, compare_with_clouds
from fastmmc.choice.features import Features
from fastmmc.choice.given import Given, balance_of, size_rules
from fastmmc.choice.numbers import DITHERS, Counts, around, mean_errors, mean_scores, spaced
from fastmmc.choice.results import LEAST_EVIDENCE, ChoiceResult
from fastmmc.choice.running import Run
from fastmmc.choice.units import are_better_scaled
from fastmmc.choice.vote import vote
from fastmmc.choice.whole import affordable_cells, result_of
from fastmmc.choice.widths import LAM, Widths, dithers
from fastmmc.core import validation
from fastmmc.core.declare import function_of, parameter, told
from fastmmc.core.execution import (
    RunControl,
    finish,
    is_first,
    restart_stream,
    show_progress,
    warn_if_stopped,
    warn_of_equal_points,
    warn_user,
    without_warnings,
)
from fastmmc.core.parameters import (
    Clusters,
    Execution,
    Guidance,
    Metric,
    Points,
    SizeParameters,
    Standardization,
    Trimming,
    Weights,
)
from fastmmc.core.status import Status
from fastmmc.core.types import MatrixLike
from fastmmc.data.blocks import check_shape, make_blocks
from fastmmc.data.links import enough_clusters
from fastmmc.kernels.block_factor import SampleRun, comes_in_blocks, sample_size
from fastmmc.kernels.gram import Kernel, kernel_points, resolve_kernel
from fastmmc.kernels.nystroem import Form
from fastmmc.rls.blocked import refuse_single_points
from fastmmc.rls.engine.coarse import coarsen, count_cells, points_of
from fastmmc.rls.search import judge_links
from fastmmc.rls.source import Source
from fastmmc.rls.task import Task

# Sparse points become dense if they are so few, of which distances are tried for overflow.
FEW = 2_000

# Shares of max_time by whose end the numbers of clusters are tried, clouds without clusters are
# compared, and the labellings are made; the rest is for all points. If the numbers have .3, five of
# twelve calls with .3 to 4 s compare clouds, not seven.
NUMBERS_SHARE = 0.2
CLOUDS_SHARE = 0.4
LABELLINGS_SHARE = 0.7

# The fewest points of which the number of clusters is chosen, and the cells for which one more is
# tried unless told. With 6, 8, 10 and 12 the number is found in 24 of 37 sets of a suite, in 32.0,
# 32.5, 32.5 and 32.5 of 52 made shapes, and in 5.5 of 26 tables; with the root of n, and at most
# 30, in 21, 31.5 and 5.5.
LEAST_POINTS = 4
CELLS_EACH = 10


class ChoiceParameters(Execution, Trimming, SizeParameters, Metric, Standardization):
    """What the function and the estimator have in common."""

    # Wider than the switch of other methods, which mypy takes for a mistake.
    standardize: bool | Literal["auto"] = parameter(  # type: ignore[assignment]
        default="auto",
        doc="""
        Scale columns to mean 0 and deviation 1 first. "auto": if units differ or clusters agree
        better.
        """,
    )
    max_k: int | None = parameter(
        default=None,
        least=2,
        doc='Largest number that "auto" considers. None: 2 + n/10, or 63 to 135 if many.',
    )


class _ChoiceCall(ChoiceParameters, Weights, Guidance, Clusters, Points):
    X: MatrixLike = parameter(
        kw_only=False,
        kind="(n, d) array_like, data frame, sparse matrix or dask.array",
        doc="Points (float32 is kept, else float64).",
    )
    k: int | Literal["auto"] = parameter(  # type: ignore[assignment]
        default="auto",
        kw_only=False,
        doc='Number of clusters, 1 <= k <= n. "auto": 1 to ``max_k``.',
    )

    def settle_units(self, points, weights=None):
        """Put True or False in place of "auto" in ``standardize``, by dense points, and return it.

        Nobody is warned of units that were compared.
        """
        is_first("units")
        self.standardize = are_better_scaled(points, weights, k=self.k, max_time=self.max_time)
        return self.standardize


def _source_of_scores(call):
    """Return the source of the hat matrix that tells which points are left out."""
    X = validation.check_points(call.X, Kernel("points"), sparse=True)
    if X.shape[0] <= FEW:
        X = kernel_points(Kernel("points"), X)
    return Source(X, Kernel("rbf"), LAM, Form(), None)


@function_of(_ChoiceCall)
def cluster(call: _ChoiceCall, control: RunControl) -> ChoiceResult:
    """Cluster by a vote of labellings, which chooses kernel width, sizes and number of clusters.

    Labellings come from four kernel widths, k-means and Genie's linkage. Smaller leave-one-out
    errors mean more weight. The labelling that agrees best wins.
    See the guide, "Everything chosen: a vote".

    Returns
    -------
    ChoiceResult
        What :func:`fastmmc.umc_rls` returns, with the ``candidates`` and the parameters ``chosen``.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range, X is not a finite matrix, or no labelling satisfies what is
        given.
    MemoryError
        If the hat matrices do not fit into free memory.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If the run was stopped early, no point predicts the cluster of another, or a cannot-link is
        broken.

    Notes
    -----
    The choice is made on up to 4,500 cells. Dask arrays and large memory maps allow no known
    labels, links, weights or ``trim``.

    References
    ----------
    Pahikkala, Airola, Gieseke, Kramer, Unsupervised multi-class regularized least-squares
    classification, ICDM 2012. Gagolewski, Bartoszuk, Cena, Genie, Information Sciences 363, 2016.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("moons")
    >>> res = fastmmc.cluster(X, 2, random_state=0)
    >>> res.sizes, res.winner.rule in fastmmc.choice.results.RULES
    (array([100, 100]), True)
    """
    task = Task.of(call, _source_of_scores)
    if comes_in_blocks(call.X):
        return task.result(_cluster_in_blocks(task.call, control))
    with task.running():
        return task.result(_cluster(task.call, control))


def _cluster(call, control):
    """Return the result for points in memory."""
    X = validation.check_points(call.X, Kernel("points"), sparse=True)
    n, weights = X.shape[0], call.sample_weight
    k, least, most = _numbers(call, n)
    # What does not fit into the least number of clusters does not fit into more.
    given = Given.of(call, n, k or least)
    if k is not None:
        warn_of_equal_points(X, k)
    seed, rng = call.random_state, restart_stream(call.random_state, 0)
    with show_progress(control, "step") as control:
        with without_warnings():
            some = kernel_points(Kernel("points"), X, slice(FEW))
            resolve_kernel(Kernel("rbf"), some)  # refuses points whose distances overflow
            run = Run(control, _number_steps(k, least) + N_STEPS)
            count = min(count_cells(n, k or 2), affordable_cells(X, k or 2, call.max_time))
            cells = coarsen(X, count, k or 2, rng, run.look, weights)
            values = points_of(X, cells.seeds)
            draws = dithers(cells, values, restart_stream(seed, 1), run.look)
            last = min(most, cells.masses.size - 2)
            number = _choose_number(k, draws, least, last, X, weights, seed, run)
            if k is None:
                number, given = _allowed(call, n, number, range(max(2, least), most + 1))
            k = number.k
            keys = given.keys(count, rng)
            if not given.is_empty:
                cells = cells.split(X, keys, weights)
                values = points_of(X, cells.seeds)
                draws = dithers(cells, values, restart_stream(seed, 1), run.look)
            kept, widths = given.of_cells(cells, keys), Widths(cells, run.look)
            candidates, winner, width = _choose(widths, next(draws), values, kept, k, rng, run)
        result, landmarks = result_of(X, cells, winner, width, given, keys >= 0, seed, run)
    if not given.is_empty:
        rule = given.rule_of(winner.rule)
        result = judge_links(result, given.links, rule, weights, given.asks_sizes)
    is_dense = result.params["rank"] is None
    goes_on = {"method": "steepest", "init": result.labels}
    goes_on |= {"rank": None} if is_dense else {"landmarks": landmarks}
    return _choice(call, run, result, candidates, winner, cells, goes_on, number)


class NumberChoice(NamedTuple):
    """A number of clusters, and what it was chosen by."""

    k: int
    scores: dict[int, float] = {}
    errors: dict[int, float] = {}
    evidence: float | None = None
    shortage: str = ""  # what a warning says if the run was stopped before all were tried


def _choice(call, run, result, candidates, winner, cells, goes_on, number):
    """Return the result with all that it was chosen from."""
    if run.status not in (Status.CONVERGED, result.status) and result.status != Status.NUMERICAL:
        result = replace(result, status=run.status)
        warn_if_stopped(run.status, 1, 1, number.shortage)
    chosen = {name: result.params[name] for name in ("sigma", "lam")} | goes_on
    sizes = result.sizes
    if call.sample_weight is not None:
        sizes = np.bincount(result.labels, call.sample_weight, sizes.size)
    chosen |= {"balance": balance_of(sizes)} if winner.rule == "near" else {"sizes": "free"}
    chosen |= {name: getattr(call, name) for name in told(call, SizeParameters, Metric)}
    chosen |= {"standardize": True} if call.standardize else {}
    return ChoiceResult(
        **vars(result),
        candidates=tuple(candidates),
        cells=cells.members,
        chosen=chosen,
        scores=number.scores,
        errors=number.errors,
        evidence=number.evidence,
    )


def _cluster_in_blocks(call, control):
    """Return the result for points in blocks."""
    refuse_single_points(call)
    n = check_shape(call.X)[0]
    k, least, most = _numbers(call, n)
    rules = None if k is None else size_rules(call, n, k)
    count = min(count_cells(n, k or 2), affordable_cells(call.X, k or 2, call.max_time))
    blocks = make_blocks(call.X, count, call.n_jobs)
    sample_run = SampleRun(call, blocks, sample_size(k or 1, 1))
    if sample_run.is_whole:
        return sample_run.of_all(cluster)
    rng = restart_stream(sample_run.seed, 0)
    with show_progress(control, "step") as control:
        run = Run(control, _number_steps(k, least) + N_STEPS)
        sample = validation.check_points(sample_run.draw(control)[0], Kernel("points"))
        if k is not None:
            warn_of_equal_points(sample, k)
        cells, seeds = coarsen_blocks(blocks, sample, count, rng)
        draws = dithers(cells, seeds, restart_stream(sample_run.seed, 1), run.look)
        last = min(most, cells.masses.size - 2)
        number = _choose_number(k, draws, least, last, sample, None, sample_run.seed, run)
        k = number.k
        rules = rules or size_rules(call, n, k)
        given = Given.of_sizes(call, cells.masses.size, rules)
        kept = given.of_cells(cells, given.known)
        widths = Widths(cells, run.look)
        candidates, winner, width = _choose(widths, next(draws), seeds, kept, k, rng, run)
        result, landmarks = label_blocks(call, blocks, sample, winner, width, rules, control)
    goes_on = {"landmarks": landmarks}
    return _choice(call, run, result, candidates, winner, cells, goes_on, number)


def _choose_number(k, draws, least, most, X, weights, seed, run):
    """Return the number of clusters if k is None, by points X and weights of all or of some.

    All draws of wide sparse points are equal.
    """
    if k is not None:
        return NumberChoice(k)
    drawn, evidence, is_over = [], None, False
    numbers = spaced(max(2, least), most)
    with run.phase(NUMBERS_SHARE):
        for widths in islice(draws, DITHERS):
            drawn.append(Counts(widths, run))
            drawn[-1].compare_all(numbers)
            if issparse(widths.cells.points):
                break
        if scores := mean_scores(drawn, most):
            finer = around(numbers, scores)
            for counts in drawn:
                counts.compare_all(finer)
        is_over = True
    scores, errors = mean_scores(drawn, most), mean_errors(drawn)
    if least == 1 and (errors or most < 2):
        with run.phase(CLOUDS_SHARE):
            rng = restart_stream(seed, 2)
            for ratio in compare_with_clouds(errors, X, weights, rng, run):
                evidence = ratio
    run.n_done = _number_steps(None, least)
    k = max(scores, key=scores.__getitem__, default=max(2, least))
    if evidence is not None and evidence < LEAST_EVIDENCE:
        k = 1
    shortage = ""
    if not is_over and len(scores) <= most - max(2, least):
        tried = max(scores, default=0)
        which = "none" if not tried else f"those up to {tried}" if tried < most else "only some"
        shortage = (
            f". Of the numbers of clusters up to {most}, {which} had been tried: give k, or a "
            "larger max_time"
        )
    return NumberChoice(k, scores, errors, evidence, shortage)


def _allowed(call, n, number, numbers):
    """Return a number of clusters that the call allows, and what it says.

    It is the chosen one, or else that of the largest score for which known labels and links fit
    into the sizes asked for.
    """
    refusal = None
    for k in [number.k, *sorted(numbers, key=lambda k: -number.scores.get(k, 0.0))]:
        try:
            return number._replace(k=k), Given.of(call, n, k)
        except ValueError as error:
            refusal = refusal or error
    raise refusal


def _number_steps(k, least):
    """Return the steps of a choice of k, unless it is given: some numbers, and those around."""
    if k is not None:
        return 0
    return 2 * DITHERS + (CLOUDS if least == 1 else 0)


def _choose(widths, judging, values, kept, k, rng, run):
    """Return the candidates, that which won, and the kernel that it is best predicted with."""
    labellings = Labellings(widths, judging, kept, k, rng, run)
    labellings.begin()
    with run.phase(LABELLINGS_SHARE):
        labellings.go_on()
        labellings.search()
    rest = labellings.kernels, k, Features(values, widths.cells.masses), kept
    chosen, interrupted = finish(lambda: vote(labellings.found, *rest))
    if interrupted:
        run.status = Status.INTERRUPTED
    return chosen


def _numbers(call, n):
    """Return the number of clusters, or None, and the least and the largest to be tried."""
    if call.k != "auto":
        return validation.check_cluster_count(call.k, n), 2, 0
    total = n if call.sample_weight is None else float(call.sample_weight.sum())
    if max(n, total) < LEAST_POINTS:
        raise ValueError(f"k='auto' needs at least {LEAST_POINTS} points; got {n}")
    if call.target_sizes is not None:
        raise ValueError(
            "target_sizes are those of a given number of clusters, and k is 'auto'; give "
            f"k={np.size(call.target_sizes)}"
        )
    known = call.known_labels
    least = 1 if known is None else max(1, int(known.max()) + 1)
    told_of = 0 if known is None else np.unique(known[known >= 0]).size
    if 0 < told_of < least:
        warn_user(
            f"known_labels are numbers of clusters from 0, so there are at least {least}, of which "
            f"{told_of} have labels; give strings if these are names of classes",
            UserWarning,
        )
    if call.max_size is not None:
        least = max(least, ceil(total / call.max_size))
    least = enough_clusters(call.must_link, call.cannot_link, n, least, known)
    if call.max_k is not None and call.max_k < least:
        raise ValueError(
            f"max_k must be at least {least}, as known_labels, cannot_link and max_size need as "
            f"many clusters; got {call.max_k}"
        )
    # Whatever weights add up to, a size of 1 only asks for clusters that are not empty.
    most = n if call.min_size <= 1 else int(total / call.min_size)
    if least == 1 and most < 2:
        return 1, 2, 0
    max_k = 2 + count_cells(n, 2) // CELLS_EACH if call.max_k is None else call.max_k
    return None, least, max(2, least, min(most, max_k, n - 2))
