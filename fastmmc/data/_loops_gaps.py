"""Compiled loop that fills missing cells by similar rows."""

import numpy as np

from fastmmc.core.jit import njit


@njit
def fill_gaps(X, rows, weights, count):
    """Put into each NaN of X (n, d) the mean of the nearest ``rows`` (m, d) that have the value.

    ``count`` rows are taken; one of weight s, of ``weights`` (m,), is s equal ones. The distance of
    two rows is the mean squared difference of what both have. Of equally near rows the first ones
    count. What no row tells stays NaN.
    """
    d = X.shape[1]
    nearest, places = np.empty((d, count)), np.empty((d, count), dtype=np.int64)
    for x in X:
        gaps = np.flatnonzero(np.isnan(x))
        if gaps.size == 0:
            continue
        nearest[:] = np.inf
        for i in range(len(rows)):
            total, n_shared = 0.0, 0
            for c in range(d):
                step = x[c] - rows[i, c]
                is_shared = step == step  # a branch would take three times as long
                total += step * step if is_shared else 0.0
                n_shared += is_shared
            distance = total / n_shared if n_shared else np.inf
            for c in gaps:
                if distance < nearest[c, count - 1] and not np.isnan(rows[i, c]):
                    _insert(nearest[c], places[c], distance, i)
        for c in gaps:
            total, taken = 0.0, 0.0
            for at in range(count):
                if nearest[c, at] < np.inf and taken < count:
                    share = min(weights[places[c, at]], count - taken)
                    total += share * rows[places[c, at], c]
                    taken += share
            if taken > 0:
                x[c] = total / taken


@njit
def _insert(nearest, places, distance, place):
    """Insert a distance and its place among the least ones, in order, for the last of these."""
    at = nearest.size - 1
    while at > 0 and distance < nearest[at - 1]:
        nearest[at], places[at] = nearest[at - 1], places[at - 1]
        at -= 1
    nearest[at], places[at] = distance, place
