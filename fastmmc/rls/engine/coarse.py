"""Cells of points: what many points are searched on.

A cell is what lies nearest to one of some points, its seed. Half of the seeds are drawn at random,
the others with chances as the squared distances from these, so that small clusters far from all
have cells as well. Equal points share a cell wherever there are no more distinct ones than cells.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.sparse import issparse
from scipy.spatial import KDTree
from sklearn.utils import gen_batches
from sklearn.utils.extmath import row_norms

from fastmmc.core.threads import in_threads, run_to_end
from fastmmc.kernels.gram import (
    BLOCK,
    EXP_PRODUCTS,
    Centred,
    Kernel,
    KernelColumns,
    dense_rows,
    distinct_rows,
    kernel_diagonal,
    kernel_points,
)
from fastmmc.rls.engine.groups import sums_of

# Cells, and how many more for each cluster. On 127 sets of 1,000 to 1,200 points, 600 and 1,000
# cells lead `cluster` to the same mean index within .01. `umc_rls` of 100,000 x 20 points in 1,000
# clusters at rank 1,000 has an index of .84, .87 and .87 with 3,000, 4,500 and 6,600 cells, in 47,
# 53 and 77 s.
CELLS = 600
CELLS_PER_CLUSTER = 6
MOST_CELLS = 4_500

# Above so many points there are more cells, and a choice has larger lam.
MANY = 2_000

# The power of n with which cells grow above MANY points. Without it `umc_rls` of MNIST's 10,000
# test images, and of 20,000 and 50,000 noisy copies of them, has an index of .67, .68 and .66 (.69,
# .70 and .70; twenty seeds). Of `cluster` without it letter has a mutual information of .442 (.465;
# eight and twenty seeds) and three draws of 100,000 x 2 points in 100 clusters an index of .78
# (.80); mean indices of 32 sets of 2,000 to 105,600 points are level. With 1/6 letter has .470, and
# `cluster` of a million moons takes 31 s (27; 17 without).
GROWTH = 1 / 8

# Up to so many columns a tree finds the nearest seed faster than all distances do: with 3,000 seeds
# in a tenth of the time in 2 columns, in the same time in 8.
TREE_COLUMNS = 6

# What weights add up to as masses, unless they are integers of a smaller sum: about the most whose
# squares integers of 64 bits hold.
TOTAL_MASS = 2.0**30


@dataclass(frozen=True, eq=False)
class Coarsening:
    """Points put together in cells."""

    members: np.ndarray  # (n,) int64, the cell of each point
    masses: np.ndarray  # (g,) int64, how many points each has
    seeds: np.ndarray  # (g,) int64, a point of each
    points: np.ndarray  # (g, d) float64, their means; sparse points have their seeds here
    is_exact: bool = True  # whether all points of a cell are equal
    weights: np.ndarray | None = None  # (g,) float64, of their points; None: all points have 1

    @property
    def n(self):
        """Number of points."""
        return self.members.size

    @property
    def total(self):
        """What the masses add up to: the number of points, unless these have weights."""
        return int(self.masses.sum())

    @property
    def is_plain(self):
        """Whether every cell is a point, in the order of the points."""
        return self.masses.size == self.n

    def split(self, X, keys, weights):
        """Return these cells, each split into points of one of ``keys`` (n,), with weights."""
        pairs = np.column_stack((self.members, keys))
        first, members = np.unique(pairs, axis=0, return_index=True, return_inverse=True)[1:]
        members = members.ravel()
        if first.size == members.size:  # cells that are points have the points' order
            first = members = np.arange(members.size)
        points = self.points[self.members[first]] if self.is_exact else points_of(X, first)
        if not (self.is_exact or issparse(X)):
            points = _means(X, members, weights)
        masses, of_cells = np.bincount(members), None
        if weights is not None:
            of_cells = np.bincount(members, weights)
            masses = masses_of(of_cells, mass_unit(weights))
        return Coarsening(members, masses, first, points, self.is_exact, of_cells)


def count_cells(n, k):
    """Return how many cells n points have at most for k clusters."""
    some = round(max(1.0, n / MANY) ** GROWTH * (CELLS + CELLS_PER_CLUSTER * k))
    return min(n, max(min(some, MOST_CELLS), 2 * k))


def mass_unit(weights):
    """Return the mass of the weight 1: masses are integers, as sizes are."""
    if weights is None or (weights.sum() <= TOTAL_MASS and (weights == np.rint(weights)).all()):
        return 1.0
    return float(2.0 ** np.floor(np.log2(TOTAL_MASS / weights.sum())))


def mass_slack(unit, n):
    """Return what a size of n points may miss its bounds by, as masses are rounded."""
    return 0.5 if unit == 1 else n


def masses_of(weights, unit):
    """Return the masses of points or groups of these weights, at least 1."""
    return np.maximum(1, np.rint(weights * unit)).astype(np.int64)


def coarsen(X, count, k, rng, look=lambda: None, weights=None):
    """Return at most ``count`` cells of all points, at least k; ``look()`` is called now and then.

    What it raises ends the work. Points of large ``weights`` (n,), which the cells then count, are
    more likely to be seeds.
    """
    n = X.shape[0]
    members, seeds = distinct_rows(X, count)
    is_drawn = seeds.size > count
    is_exact = not is_drawn
    if is_drawn:
        draws = draw_cells(n, count, rng, partial(_nearest, X), weights)
        members, seeds = run_to_end(draws, lambda _: look())
    elif seeds.size < k:  # equal points must be told apart somehow
        members, is_exact = np.arange(n), n <= count
        if not is_exact:
            members[rng.permutation(n)] = np.arange(n) * count // n
        seeds = np.unique(members, return_index=True)[1]
    points = _means(X, members) if is_drawn and not issparse(X) else points_of(X, seeds)
    cells = Coarsening(members, np.bincount(members), seeds, points, is_exact)
    return cells if weights is None else cells.split(X, np.zeros(n, np.int64), weights)


def draw_cells_of(factor, count, rng):
    """Return what :func:`draw_cells` does of the points of a factor; yield after each block.

    Cells are in the metric of the kernel where only that can be known, else in that of the points.
    """
    if factor.kernel.name in ("precomputed", "callable"):
        nearest = partial(_nearest_by_kernel, factor)
    else:
        nearest = partial(_nearest, factor.X)
    return draw_cells(factor.n, count, rng, nearest, factor.weights)


def draw_cells(n, count, rng, nearest, weights=None):
    """Return the cell of each of n points, and the seed of each of at most ``count`` cells.

    ``nearest(seeds)`` returns each point's nearest seed and its squared distance from it. It is a
    generator that yields now and then, as this one is. Of equal seeds each has a cell.
    """
    shares = None if weights is None else weights / weights.sum()
    seeds = np.sort(rng.choice(n, count // 2, replace=False, p=shares))
    members, distances = yield from nearest(seeds)
    members[seeds] = np.arange(seeds.size)
    distances[seeds] = 0.0
    chances = distances if weights is None else distances * weights
    if not np.isfinite(chances.sum()):
        raise ValueError("the distances of the points are too large; scale the points")
    n_far = min(count - seeds.size, np.count_nonzero(chances))
    if n_far:  # distances of points that differ may be rounded to 0
        far = np.sort(rng.choice(n, n_far, replace=False, p=chances / chances.sum()))
        nearest_far, far_distances = yield from nearest(far)
        nearest_far[far] = np.arange(n_far)
        far_distances[far] = -1.0
        members = np.where(far_distances < distances, seeds.size + nearest_far, members)
        seeds = np.concatenate((seeds, far))
    used, members = np.unique(members, return_inverse=True)
    return members, seeds[used]


def _means(X, members, weights=None):
    """Return the means of the points of each cell."""
    masses = np.bincount(members, weights)
    weighted = X if weights is None else X * weights[:, None]
    return sums_of(weighted, members, masses.size) / masses[:, None]


def points_of(X, rows):
    """Return some of the points in double precision, sparse only if they are wide."""
    return kernel_points(Kernel("points"), X, rows).astype(np.float64)


def _nearest(X, seeds):
    """Return each point's nearest seed and its squared distance from it; yield after each block."""
    centers = points_of(X, seeds)
    find = nearest_of(centers)

    def closest(rows):
        return find(X[rows] if issparse(centers) else dense_rows(X, rows))

    return (yield from _in_blocks(X.shape[0], seeds.size * X.shape[1], closest))


def nearest_of(centers):
    """Return a function that gives the nearest center of each point and its squared distance."""
    if not issparse(centers) and centers.shape[1] <= TREE_COLUMNS:
        tree = KDTree(centers)

        def find(X):
            lengths, cells = tree.query(X)
            return cells, lengths**2

        return find
    centred = Centred(centers)
    columns = -2.0 * centred.points.T

    def find(X):
        X = centred.move(X)
        rest = X @ columns
        if issparse(rest):
            rest = rest.toarray()
        rest += centred.norms
        cells = rest.argmin(axis=1)
        squares = rest[np.arange(cells.size), cells] + row_norms(X, squared=True)
        return cells, np.maximum(squares, 0.0, out=squares)

    return find


def _nearest_by_kernel(factor, seeds):
    """Return what :func:`_nearest` does, in the metric of a kernel that is given."""
    kernel, X = factor.kernel, factor.X
    squares = kernel_diagonal(kernel, X)
    values_of = KernelColumns(kernel, kernel_points(kernel, X, seeds), seeds)
    half = squares[seeds] / 2

    def closest(rows):
        scores = values_of(X[rows]) - half
        return scores.argmax(axis=1), np.maximum(squares[rows] - 2.0 * scores.max(axis=1), 0.0)

    # The user's function may not be thread-safe.
    width = 0 if kernel.name == "callable" else X.shape[1] + EXP_PRODUCTS
    return (yield from _in_blocks(factor.n, seeds.size * width, closest))


def _in_blocks(n, products, closest):
    """Return the nearest seeds and squared distances that ``closest`` gives of rows, of all n.

    Yields after each block; each row takes so many ``products``.
    """
    cells, distances = np.empty(n, dtype=np.int64), np.empty(n)

    def assign(rows):
        cells[rows], distances[rows] = closest(rows)

    yield from in_threads(n * products, assign, gen_batches(n, BLOCK))
    return cells, distances
