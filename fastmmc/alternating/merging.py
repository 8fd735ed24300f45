"""Points that lie close together, merged: cells cut in two until there are enough of them."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array


def merge_near(points, weights, most, look=lambda: None):
    """Return the cell (n,) of every point of a dense matrix (n, d), at most ``most`` cells.

    A pass cuts every cell whose sum of squares is at least the mean of all, at its mean and across
    the column that varies most, so that in the end all cells lose about equally much. Equal points
    stay together. What ``look`` raises ends the work.
    """
    cells, n_cells = np.zeros(points.shape[0], dtype=np.int64), 1
    columns = np.ascontiguousarray(points.T, dtype=np.float64)
    while n_cells < most:
        look()
        means, squares = _moments(columns, weights, cells, n_cells)
        scatter = squares.sum(axis=0)
        worst = np.argsort(-scatter, kind="stable")[: most - n_cells]
        is_cut = np.zeros(n_cells, dtype=bool)
        is_cut[worst] = scatter[worst] >= scatter.mean()
        widest = squares.argmax(axis=0)
        rows = np.flatnonzero(is_cut[cells])
        own = cells[rows]
        above = columns[widest[own], rows] > means[widest[own], own]
        # Rounding may put the mean of equal points below all of them.
        n_above = np.bincount(own[above], minlength=n_cells)
        parted = np.flatnonzero((0 < n_above) & (n_above < np.bincount(own, minlength=n_cells)))
        if parted.size == 0:
            break
        numbers = np.arange(n_cells)
        numbers[parted] = n_cells + np.arange(parted.size)
        cells[rows[above]] = numbers[own[above]]
        n_cells += parted.size
    return cells


def _moments(columns, weights, cells, n_cells):
    """Return the means of cells and the sums of squares about them, one row a column each."""
    totals = np.bincount(cells, weights, n_cells)
    means, squares = np.empty((2, len(columns), n_cells))
    for column, mean, square in zip(columns, means, squares, strict=True):
        mean[:] = np.bincount(cells, weights * column, n_cells) / totals
        square[:] = np.bincount(cells, weights * (column - mean[cells]) ** 2, n_cells)
    return means, squares


def averaging(cells, weights):
    """Return the weights of the cells (p,), and the matrix (p, n) that averages points by cells."""
    totals = np.bincount(cells, weights)
    n = cells.size
    return totals, csr_array((weights / totals[cells], (cells, np.arange(n))), (totals.size, n))
