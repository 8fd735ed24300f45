"""Cells of many points in the metric of R, which labellings are searched on before the points.

They are searched with the sums of R over them, so that the cost of their labellings is exactly that
of the points in them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from scipy.linalg import eigh
from sklearn.metrics.cluster import contingency_matrix
from sklearn.utils import gen_batches

from fastmmc.core.threads import in_threads
from fastmmc.kernels.factors import LowRankFactor
from fastmmc.kernels.gram import BLOCK, EXP_PRODUCTS, kernel_diagonal, kernel_points, values_by_rows
from fastmmc.rls.engine import _loops_ward as ward
from fastmmc.rls.engine.coarse import draw_cells
from fastmmc.rls.engine.labelling import sums_of

# Cells, or this many for each cluster where that is more, but at most the last number.
CELLS = 1_000
CELLS_PER_CLUSTER = 50
MOST_CELLS = 3_000

# Leading kernel principal components, or k of them, that tell which seed a point is nearest to.
COMPONENTS = 100


def make_cells(factor, k, count, rng):
    """Return the cells of all points for k clusters: sums of R, members, seeds.

    These are the sums over each pair of cells, (m, m), the cell of each point, (n,), and the point
    that is the seed of each cell, (m,). Yields after each block.
    """
    scores_of = (_by_components if isinstance(factor, LowRankFactor) else _by_kernel)(factor, k)
    nearest = partial(_nearest_seeds, factor, scores_of)
    members, seeds = yield from draw_cells(factor.n, count, rng, nearest)
    if isinstance(factor, LowRankFactor):
        sums = sums_of(factor.Z, members, seeds.size)
        matrix = sums @ sums.T
    else:
        matrix = np.empty((seeds.size, seeds.size))
        ward.merge_groups(factor.R, members, None, matrix)
    yield
    return matrix, members, seeds


def _by_components(factor, k):
    """Return what gives scores by the leading kernel principal components.

    Given seeds, it returns a function of rows that gives their inner products with the seeds, less
    half of the seeds' squares, and the squares of the rows, and the products that this takes.
    """
    r = factor.rank
    last = [max(0, r - max(COMPONENTS, k)), r - 1]
    V = eigh(factor.scale @ factor.scale.T, subset_by_index=last, check_finite=False)[1]
    to_components = (factor.scale.T @ V).astype(factor.Z.dtype)
    q = to_components.shape[1]

    def of(seeds):
        of_seeds = factor.Z[seeds] @ to_components
        half = np.einsum("ij,ij->i", of_seeds, of_seeds) / 2

        def scores(rows):
            points = factor.Z[rows] @ to_components
            products = points @ of_seeds.T
            products -= half
            return products, np.einsum("ij,ij->i", points, points)

        return scores, q * (r + seeds.size)

    return of


def _by_kernel(factor, _):
    """Return what gives scores by the kernel, as :func:`_by_components` does."""
    squares = kernel_diagonal(factor.kernel, factor.X)

    def of(seeds):
        basis = kernel_points(factor.kernel, factor.X, seeds)
        values_of = values_by_rows(factor.kernel, factor.X, basis, seeds)
        half = squares[seeds] / 2
        # The user's function may not be thread-safe.
        width = 0 if factor.kernel.name == "callable" else factor.X.shape[1] + EXP_PRODUCTS
        return lambda rows: (values_of(rows) - half, squares[rows]), width * seeds.size

    return of


def _nearest_seeds(factor, scores_of, seeds):
    """Return each point's cell and squared distance from its seed; yield after each block."""
    cells = np.empty(factor.n, dtype=np.int64)
    distances = np.empty(factor.n)
    scores, n_products = scores_of(seeds)

    def assign(rows):
        products, squares = scores(rows)
        cells[rows] = products.argmax(axis=1)
        distances[rows] = np.maximum(squares - 2.0 * products.max(axis=1), 0.0)

    for _ in in_threads(factor.n * n_products, assign, gen_batches(factor.n, BLOCK)):
        yield
    # Of equal seeds each has a cell.
    cells[seeds] = np.arange(seeds.size)
    return cells, distances


def of_cells(plan, seeds, members):
    """Return the plan of a search over cells; given labels are those of most of their points."""
    masses, init = np.bincount(members), plan.init
    if isinstance(init, np.ndarray):
        init = contingency_matrix(members, init, sparse=True).argmax(axis=1)
        init = np.unique(plan.init)[np.asarray(init).ravel()]
    return replace(plan, n=seeds.size, points=plan.points[seeds], masses=masses, init=init)


def count_cells(n, k):
    """Return how many cells n points are searched on, 0 if these are too few points for that."""
    cells = max(min(max(CELLS, min(CELLS_PER_CLUSTER * k, MOST_CELLS)), n // 2), 2 * k)
    return cells if 2 * cells <= n else 0
