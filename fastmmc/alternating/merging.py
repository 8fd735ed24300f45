"""Points that lie close together, merged: cells cut in two until there are enough of them."""

import numpy as np
from scipy.sparse import csr_array

from fastmmc.alternating import _loops_merging as loops


def merge_near(points, weights, most, look=lambda: None):
    """Return the cell (n,) of every point of a dense matrix (n, d), at most ``most`` cells.

    A pass cuts every cell whose sum of squares is at least the mean of all, at its mean and across
    the column that varies most, so that in the end all cells lose about equally much. Equal points
    stay together. What ``look`` raises ends the work.
    """
    n, d = points.shape
    starts, stops = np.zeros(most, np.int64), np.full(most, n)
    held = np.ascontiguousarray(np.vstack([points.T, weights, np.arange(n)]))
    cells = loops.Cells(held, starts, stops, *np.empty((2, most, d)))
    loops.measure(cells, 0)
    n_before, n_cells = 0, 1
    while n_before < n_cells < most:
        look()
        scatter = cells.squares[:n_cells].sum(axis=1)
        worst = np.argsort(-scatter, kind="stable")[: most - n_cells]
        chosen = np.sort(worst[scatter[worst] >= scatter.mean()])
        n_before = n_cells
        n_cells = loops.cut_cells(cells, chosen, n_cells)
    numbers = np.empty(n, dtype=np.int64)
    order, sizes = np.argsort(starts[:n_cells]), (stops - starts)[:n_cells]
    numbers[held[-1].astype(np.int64)] = np.repeat(order, sizes[order])
    return numbers


def averaging(cells, weights):
    """Return the weights of the cells (p,), and the matrix (p, n) that averages points by cells."""
    totals = np.bincount(cells, weights)
    n = cells.size
    return totals, csr_array((weights / totals[cells], (cells, np.arange(n))), (totals.size, n))
