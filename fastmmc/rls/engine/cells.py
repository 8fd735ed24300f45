"""Cells of many points in the metric of R, which labellings are searched on before the points.

They are searched with the sums of R over them, so that the cost of their labellings is exactly that
of the points in them.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.linalg import eigh
from sklearn.utils import gen_batches

from fastmmc.core.threads import in_threads
from fastmmc.kernels.factors import LowRankFactor
from fastmmc.kernels.gram import BLOCK, EXP_PRODUCTS, kernel_diagonal, kernel_points, values_by_rows
from fastmmc.rls.engine.coarse import draw_cells

# Cells, or this many for each cluster where that is more, but at most the last number.
CELLS = 1_000
CELLS_PER_CLUSTER = 50
MOST_CELLS = 3_000

# Leading kernel principal components, or k of them, that tell which seed a point is nearest to.
COMPONENTS = 100


def draw_cells_of(factor, k, count, rng):
    """Return the cell of each point, (n,), and the seed of each cell; yield after each block."""
    scores_of = (_by_components if isinstance(factor, LowRankFactor) else _by_kernel)(factor, k)
    nearest = partial(_nearest_seeds, factor, scores_of)
    return (yield from draw_cells(factor.n, count, rng, nearest, factor.weights))


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

    roots = None if factor.weights is None else np.sqrt(factor.weights)

    def project(rows):
        points = factor.Z[rows] @ to_components
        return points if roots is None else points / roots[rows, None]

    def of(seeds):
        of_seeds = project(seeds)
        half = np.einsum("ij,ij->i", of_seeds, of_seeds) / 2

        def scores(rows):
            points = project(rows)
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


def count_cells(n, k):
    """Return how many cells n points are searched on, 0 if these are too few points for that."""
    cells = max(min(max(CELLS, min(CELLS_PER_CLUSTER * k, MOST_CELLS)), n // 2), 2 * k)
    return cells if 2 * cells <= n else 0
