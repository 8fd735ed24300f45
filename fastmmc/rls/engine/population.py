"""The memetic search of a plan, and labels of all points where there is no time for it."""

from dataclasses import replace
from itertools import islice

import numpy as np

from fastmmc.core import memory
from fastmmc.data.sizes import MOST_SCORES, proportional_sizes
from fastmmc.kernels.cholesky import ridge_root
from fastmmc.kernels.factors import LowRankFactor, hat_matrix, weights_of
from fastmmc.kernels.gram import evenly, kernel_points, kernel_product
from fastmmc.rls.claims import ClaimSearch
from fastmmc.rls.engine import _loops_groups as loops
from fastmmc.rls.engine.descents import SLICE, descent
from fastmmc.rls.engine.group_search import GroupSearch, first_labels
from fastmmc.rls.engine.groups import cost_of, nearness, scores_of
from fastmmc.rls.engine.linked import Merging, risk_of

# Points that are searched where max_time is too short for more.
QUICK_SAMPLE = 500


class Population(GroupSearch):
    """The search over all points of a problem, from what the call gave or first labels."""

    def __init__(self, points, plan, index, rng):
        super().__init__(points, plan.rule, plan.free, plan.population, plan.patience)
        self.plan = plan
        self._index = index
        self._rng = rng
        self._everything = float(points.matrix.sum())  # of the hat matrix of all points

    def run(self):
        """Search; yield after each labelling."""
        plan = self.plan
        wanted = 1 if plan.k == 1 or plan.method in ("steepest", "stochastic") else plan.population
        yield from super().run(islice(self._starts(), wanted), self._rng, plan.max_iter)
        if plan.rule.bounded:
            state = self.groups.state(self.best[1], self._rule, self._free)
            yield from descent(state, self.groups.least, lambda: SLICE)
            self._all.insert(0, (cost_of(state), state.labels.astype(np.int64)))
            self.n_moves += int(state.pos[loops.MOVES])
            yield

    def _starts(self):
        """Yield the labels of the starts, and of more."""
        plan = self.plan
        if not plan.has_random_start:
            yield plan.start_labels(self._rng)
        if not plan.free and plan.k > 1:
            yield self._shaken()
        yield from first_labels(self.groups, plan.k, self._rng, drawn_only=self._index > 0)

    def _shaken(self):
        """Return labels that the paper's own search finds.

        Without them Q of seven real sets is .5 % higher (eight seeds).
        """
        plan = replace(self.plan, method="shaking", init="random", polish=False)
        search = ClaimSearch(self.groups, plan, self._index, self._rng)
        for _ in search.run():
            pass
        return search.finish()

    def _improved(self, labels):
        if self.plan.method == "steepest":
            return self.groups.descend(self.groups.fitted(labels, self._rule), self._rule)
        return super()._improved(labels)

    def finish(self):
        """Return the best labels; there are some after the first step."""
        return self.best[1]

    @property
    def objective(self):
        """Objective of the best labelling."""
        cost = self.best[0]
        if self._free:
            return cost
        return risk_of(cost, self._everything, self._k, self.groups.merging)


def hat_of_sample(factor, indices):
    """Return the hat matrix of some points, lam in proportion, and a function that predicts all.

    The latter maps labels E (k, m) of these to their fits of all points, (k, n). These points are
    drawn by their weights, so that they have none. With Y = Z_S L^T the hat matrix of low rank is
    Y (Y^T Y + lam I)^-1 Y^T, which is not a part of Z Z^T.
    """
    weights, roots = weights_of(factor)
    lam = factor.lam * indices.size / weights.sum()
    memory.check_memory(indices.size, np.dtype(np.float64), arrays=3, what="hat matrix of a sample")
    if isinstance(factor, LowRankFactor):
        Y = factor.Z[indices].astype(np.float64) / roots[indices, None] @ factor.scale.T
        half = ridge_root(Y.T @ Y, lam)
        Y, extend = Y @ half, half.T @ factor.scale
        return Y @ Y.T, lambda E: factor._cluster_scores(E @ Y @ extend) / roots
    basis = kernel_points(factor.kernel, factor.X, indices)
    X = basis[:, indices] if factor.kernel.name == "precomputed" else basis
    R = hat_matrix(factor.kernel, X, lam)

    def predict(E):
        coef = (E - E @ R).T / lam
        return kernel_product(factor.kernel, factor.X, basis, coef, indices).T

    return R, predict


def quick_labels(factor, plan, rng):
    """Return labels of all points, as there is no time for better ones.

    They are by the clusters of few points, or parts cut off the points one after the other where
    scores of all would be too many.
    """
    if isinstance(factor, LowRankFactor) and plan.n * plan.k > MOST_SCORES:
        targets = plan.rule.targets
        sizes = np.ones(plan.k) if targets is None else targets
        labels = cut(factor.Z, proportional_sizes(sizes, plan.n))
        if plan.known is None:
            return labels
        labels, W = plan.with_known(labels), factor._cluster_sums(labels, plan.k)
        scores = scores_of(factor.Z, W, np.zeros(plan.k))
    else:
        labels, scores = _labels_by_few(factor, plan, rng)
    return plan.fitted(labels, scores)


def cut(Z, sizes):
    """Cut the points into clusters of these sizes, half of them from the other half each time.

    Each cut is across the line from the point farthest from the mean to that farthest from it, of a
    sample.
    """
    labels, Z = np.empty(len(Z), dtype=np.int64), Z.astype(np.float32, copy=False)
    waiting = [(np.arange(len(Z)), 0, sizes.size)]
    while waiting:
        points, first, last = waiting.pop()
        if last - first == 1 or points.size == 0:
            labels[points] = first
            continue
        middle = (first + last) // 2
        some = Z[points[evenly(points.size, QUICK_SAMPLE)]]
        corner = some[np.sum((some - some.mean(axis=0)) ** 2, axis=1).argmax()]
        opposite = some[np.sum((some - corner) ** 2, axis=1).argmax()]
        count = int(sizes[first:middle].sum())
        order = np.argpartition(
            Z.take(points, axis=0) @ (opposite - corner), min(count, points.size - 1)
        )
        waiting.append((points[order[:count]], first, middle))
        waiting.append((points[order[count:]], middle, last))
    return labels


def _labels_by_few(factor, plan, rng):
    """Return labels of all points by the clusters of few of them, and their scores."""
    count = min(plan.n, max(plan.k, QUICK_SAMPLE))
    shares = None if factor.weights is None else factor.weights / factor.weights.sum()
    indices = np.sort(rng.choice(plan.n, count, replace=False, p=shares))
    R, predict = hat_of_sample(factor, indices)
    part = plan.of_sample(indices)
    groups = Merging.of(None, len(R)).linked(R, part.known)
    population = Population(groups, part, 0, rng)
    next(population.run())
    labels = population.finish()
    state = population.groups.state(labels, part.rule, part.free)
    E = (labels == np.arange(plan.k)[:, None]).astype(np.float64)
    scores = nearness(state, predict(E), 1)
    if plan.masses is not None:
        scores *= plan.masses
    return plan.with_known(scores.argmax(axis=0)), scores
