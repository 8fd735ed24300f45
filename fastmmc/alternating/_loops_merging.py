"""Compiled loops of merging: cells of points, which are cut in two."""

from typing import NamedTuple

import numpy as np

from fastmmc.core.jit import njit


class Cells(NamedTuple):
    """Cells and room for more, up to c (arrays are modified in place).

    The points of a cell stand together, by rising index, so that loops run through memory in order.
    """

    points: np.ndarray  # (d + 2, n) float64: columns, then weights, then indices
    starts: np.ndarray  # (c,) int64, where cells begin
    stops: np.ndarray  # (c,) int64, and end
    means: np.ndarray  # (c, d) float64, of the points by their weights
    squares: np.ndarray  # (c, d) float64, sums of squares about the means


@njit
def measure(cells, cell):
    """Set the means of a cell, and the sums of squares about them."""
    d = cells.means.shape[1]
    start, stop = cells.starts[cell], cells.stops[cell]
    weights = cells.points[d, start:stop]
    total = 0.0
    for weight in weights:
        total += weight
    for j in range(d):
        column = cells.points[j, start:stop]
        mean = 0.0
        for i in range(column.size):
            mean += weights[i] * column[i]
        mean /= total
        squares = 0.0
        for i in range(column.size):
            apart = column[i] - mean
            squares += weights[i] * (apart * apart)
        cells.means[cell, j] = mean
        cells.squares[cell, j] = squares


@njit
def part(values, is_above, room):
    """Move values that are above behind the others, either in their order."""
    n_below, n_above = 0, 0
    for i in range(values.size):
        # Both are written, as a branch would be taken at random.
        value = values[i]
        room[n_above] = value
        values[n_below] = value
        n_above += is_above[i]
        n_below += 1 - is_above[i]
    for i in range(n_above):
        values[n_below + i] = room[i]


@njit
def cut_cells(cells, chosen, n_cells):
    """Cut the chosen cells at the mean of their widest column; return how many cells there are."""
    n = cells.points.shape[1]
    is_above, room = np.empty(n, np.int64), np.empty(n)
    for cell in chosen:
        start, stop = cells.starts[cell], cells.stops[cell]
        points = cells.points[:, start:stop]
        above = is_above[: stop - start]
        widest = cells.squares[cell].argmax()
        mean = cells.means[cell, widest]
        for i in range(above.size):
            above[i] = points[widest, i] > mean
        # Rounding may put the mean of equal points below all of them.
        n_above = above.sum()
        if n_above == 0 or n_above == above.size:
            continue
        for values in points:
            part(values, above, room)
        cells.starts[n_cells], cells.stops[n_cells] = stop - n_above, stop
        cells.stops[cell] = stop - n_above
        measure(cells, cell)
        measure(cells, n_cells)
        n_cells += 1
    return n_cells
