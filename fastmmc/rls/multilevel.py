"""Labellings of many points that are searched on cells of them, and then on the points.

A cell is what lies nearest to one of some points, its seed. Half of the seeds are drawn at random,
the others with chances as the squared distances from these. Cells are searched with the sums of R
over them, so that the cost of their labellings is exactly that of the points in them.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh
from sklearn.utils import gen_batches

from fastmmc.factors import leave_one_out_residuals
from fastmmc.gram import BLOCK
from fastmmc.labels import agreement
from fastmmc.rls import _loops_moves as moves
from fastmmc.rls.batches import BATCHES_FROM_SAMPLE, BatchSearch, ClaimForm
from fastmmc.rls.free import FreeSearch, Groups, mean_error, nearness
from fastmmc.rls.labelling import compact
from fastmmc.rls.memetic import MemeticSearches
from fastmmc.rls.plan import GENTLE_CLUSTERS
from fastmmc.rls.size_choice import SizeChoice, angles, nearest
from fastmmc.sizes import fit_masses
from fastmmc.threads import map_of_threads

# Cells, or this many for each cluster where that is more, but at most the last number.
CELLS = 1_000
CELLS_PER_CLUSTER = 50
MOST_CELLS = 3_000

# Starts whose consensus is formed. Of more clusters than memetic searches are repeated for, the
# parents of these are enough: starts take longer there, and agree less.
STARTS = 30

# Leading kernel principal components, or k of them, that tell which seed a point is nearest to.
COMPONENTS = 100


@dataclass(frozen=True, eq=False)
class Cells(Groups):
    """Cells of points, whose labels are judged at the seeds."""

    sums: np.ndarray  # (m, r): the rows of Z, summed over each cell
    seeds: np.ndarray  # (m, r): those of the seeds

    def fitted(self, labels, rule):
        """Return labels whose sizes keep to the rule as nearly as cells allow."""
        state = self.state(labels, rule)
        scores = nearness(state, state.sums, self.weights)
        return fit_masses(labels, scores, rule.lower, rule.upper, self.movable, self.weights)

    def error(self, labels, rule):
        """Return the leave-one-out error of labels at the seeds, each weighted by its cell."""
        k = rule.lower.size
        W = np.empty((k, self.sums.shape[1]))
        moves.build_sums(self.sums, compact(labels, k), W)
        E = (labels[:, None] == np.arange(k)).astype(np.float64)
        diagonal = np.einsum("ij,ij->i", self.seeds, self.seeds)
        residuals = leave_one_out_residuals(E, self.seeds @ W.T, diagonal)
        return mean_error(residuals, np.bincount(labels, self.weights, k), self.weights)


class CellChoice(SizeChoice):
    """The choice of sizes over cells of points; neighbours are those of the seeds.

    Of the labels of about equal sizes and the consensus of the starts, those go on that agree more
    with the starts (Strehl and Ghosh 2002): where many labellings cost about the same, the least
    cost says little.
    """

    def _polish(self):
        k, weights = self.plan.k, self.points.weights
        if k <= GENTLE_CLUSTERS:
            yield from self._near.more_starts(STARTS)
        yield from super()._polish()
        starts = self._near.starts
        shared = self._descend(self.feasible(consensus(starts, k, weights)))
        one, other = agreement([self._polished, shared, *starts], k, weights)[:2, 2:].mean(axis=1)
        if other > one:
            self._polished = shared
        yield

    def _neighbours(self, distances):
        seeds = self.points.seeds
        return nearest(angles(seeds @ seeds.T))


def consensus(labellings, k, weights):
    """Return k clusters by Ward's rule in the share of labellings that put two cells together."""
    E = np.hstack([labels[:, None] == np.arange(k) for labels in labellings]).astype(np.float64)
    E *= weights[:, None] / np.sqrt(len(labellings))
    return Groups(E @ E.T, weights, np.ones(weights.size, dtype=np.bool_)).cut(k)


def make_cells(factor, k, count, rng):
    """Return cells of all points for k clusters, the cell of each point, and which are the seeds.

    Yields after each block.
    """
    to_components = _to_components(factor, k)
    seeds = rng.choice(factor.n, count // 2, replace=False)
    _, distances = yield from _nearest_seeds(factor, seeds, to_components)
    # The others where these are far, so that small clusters far from all have cells as well.
    distances[seeds] = 0.0
    n_far = min(count - seeds.size, np.count_nonzero(distances))
    if n_far:
        chances = distances / distances.sum()
        far = rng.choice(factor.n, n_far, replace=False, p=chances)
        seeds = np.concatenate((seeds, far))
    seeds.sort()
    members, _ = yield from _nearest_seeds(factor, seeds, to_components)
    weights = np.bincount(members, minlength=seeds.size)
    sums = np.empty((seeds.size, factor.rank))
    moves.build_sums(factor.Z, compact(members, seeds.size), sums)
    yield
    movable = np.ones(seeds.size, dtype=np.bool_)
    of_seeds = factor.Z[seeds].astype(np.float64)
    return Cells(sums @ sums.T, weights, movable, sums, of_seeds), members, seeds


def _to_components(factor, k):
    """Return the matrix that makes kernel principal components of rows of Z."""
    r = factor.rank
    last = [max(0, r - max(COMPONENTS, k)), r - 1]
    V = eigh(factor.scale @ factor.scale.T, subset_by_index=last, check_finite=False)[1]
    return (factor.scale.T @ V).astype(factor.Z.dtype)


def _nearest_seeds(factor, seeds, to_components):
    """Return each point's cell and squared distance from its seed; yield after each block."""
    q = to_components.shape[1]
    of_seeds = factor.Z[seeds] @ to_components
    half = np.einsum("ij,ij->i", of_seeds, of_seeds) / 2
    cells = np.empty(factor.n, dtype=np.int64)
    distances = np.empty(factor.n)

    def assign(rows):
        points = factor.Z[rows] @ to_components
        scores = points @ of_seeds.T
        scores -= half
        cells[rows] = scores.argmax(axis=1)
        squares = np.einsum("ij,ij->i", points, points)
        distances[rows] = np.maximum(squares - 2.0 * scores.max(axis=1), 0.0)

    with map_of_threads(factor.Z.size * q + cells.size * seeds.size * q) as map_pieces:
        for _ in map_pieces(assign, gen_batches(factor.n, BLOCK)):
            yield
    # Of equal seeds each has a cell.
    cells[seeds] = np.arange(seeds.size)
    return cells, distances


def _of_cells(plan, seeds, weights):
    """Return the plan of a search over cells."""
    return replace(plan, n=seeds.size, points=plan.points[seeds], masses=weights)


class MultilevelSearch(FreeSearch):
    """One restart: sizes chosen over cells of the points, then a descent of all points."""

    def _make_population(self):
        plan = self._plan
        args = self._factor, plan.k, self._sample, self._rng
        cells, self._members, seeds = yield from make_cells(*args)
        # Cells cannot be swapped as points are; bounds are kept as nearly as moves of cells allow.
        coarse = replace(
            _of_cells(plan, seeds, cells.weights),
            rule=replace(plan.rule, bounded=False),
            near=_of_cells(plan.near, seeds, cells.weights),
        )
        self._population = CellChoice(cells, coarse, self._index, self._rng)

    def _labels_of_all(self):
        if self._population is None:
            return super()._labels_of_all()
        return self._fitted(self._population.finish()[self._members])


class BoundedSearch(BatchSearch):
    """One start: labels of bounded sizes over cells, then a descent of all points within these."""

    def __init__(self, factor, diag, plan, count, rng, threads=1):
        super().__init__(factor, diag, ClaimForm(BATCHES_FROM_SAMPLE), plan, 0, rng, threads)
        self._count = count
        self._searches = None

    def finish(self):
        """Do what every search does, from the best labels of cells if it was stopped there."""
        if self._searches is not None:
            self._extend_cells()
        return super().finish()

    def _run(self):
        """Search the cells, then descend; yield what each step cost."""
        plan = self._plan
        args = self._factor, plan.k, self._count, self._rng
        cells, self._members, seeds = yield from make_cells(*args)
        coarse = _of_cells(plan, seeds, cells.weights)
        self._searches = MemeticSearches(cells.matrix, coarse, 1, self._rng)
        for fraction in self._searches.run():
            self._fraction = 0.8 * fraction
            yield
        self._extend_cells()
        self._note()
        yield
        with ThreadPoolExecutor(self._threads) as self._pool:
            yield from self._descend()

    def _extend_cells(self):
        """Give all points the labels of their cells, and fit the sizes."""
        searches, self._searches = self._searches, None
        labels = searches.finish()
        self.n_iter = searches.n_iter
        self._state.pos[moves.MOVES] += searches.n_moves
        self._state.labels[:] = labels[self._members]
        self._fill()
        self._repair()


def count_cells(n, k):
    """Return how many cells n points are searched on, 0 if these are too few points for that."""
    cells = max(CELLS, min(CELLS_PER_CLUSTER * k, MOST_CELLS), 2 * k)
    return cells if 2 * cells <= n else 0


def cells_suffice(n, k):
    """Tell whether n points have so many cells that these can be packed into k bounded clusters."""
    return count_cells(n, k) >= CELLS_PER_CLUSTER * k
