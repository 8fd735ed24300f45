"""Compiled loops of a descent in linear time, on the factor Z of the hat matrix Z Z^T.

The sums are W = E^T Z, k x r. Scoring m points costs O(mr) and a move O(r), so the more moves
follow one pass the better; each is checked against the W of that moment.
"""

# compiled-with: _loops_moves.py 79248693dff6
import numpy as np

from fastmmc.core.jit import njit
from fastmmc.rls.engine._loops_moves import mass, move, move_shift, swap_shift


@njit
def descend_block(state, points, scores, shift, target):
    """Let each of some points make its best move, if that lowers Q; return the moves made.

    ``scores`` are their rows of Z W^T as they were before it, (b, k). For these points ``shift``
    and ``target``, both (n,), are filled with the lowest shift among all clusters, whatever their
    sizes, and where it leads.
    """
    Z, labels, counts, W = state.matrix, state.labels, state.counts, state.sums
    diag, lower, upper, tol = state.diag, state.lower, state.upper, state.tol
    k = counts.size
    moves = 0
    for at in range(scores.shape[0]):
        i = points[at]
        o = labels[i]
        w = mass(state.masses, i)
        best, open_best = np.inf, np.inf
        to, open_to = -1, -1
        if state.movable[i]:
            for h in range(k):
                if h == o:
                    continue
                v = scores[at, o] - scores[at, h] - diag[i]
                if v < best:
                    best = v
                    to = h
                if v < open_best and counts[h] + w <= upper[h]:
                    open_best = v
                    open_to = h
        shift[i] = best
        target[i] = to
        if open_best < -tol and counts[o] - w >= lower[o]:
            if move_shift(Z, False, W, diag, i, o, open_to) < -tol:
                move(Z, None, labels, counts, W, i, open_to, w)
                shift[i] = np.inf
                moves += 1
    return moves


@njit
def exchange(state, order, bounds, shift):
    """Swap points that want into each other's clusters, where that lowers Q; return the swaps.

    ``order`` sorts the points by cluster, then by wanted cluster, then by their ``shift`` of
    :func:`descend_block`. In it those of cluster a that want into b begin at bounds[a k + b].
    """
    Z, labels, counts, W = state.matrix, state.labels, state.counts, state.sums
    diag, lower, upper, tol = state.diag, state.lower, state.upper, state.tol
    k = counts.size
    swaps = 0
    for a in range(k):
        for b in range(a + 1, k):
            first, first_end = bounds[a * k + b], bounds[a * k + b + 1]
            second, second_end = bounds[b * k + a], bounds[b * k + a + 1]
            while first < first_end and second < second_end:
                i, j = order[first], order[second]
                if not shift[i] + shift[j] < -tol:
                    break
                v, w = mass(state.masses, i), mass(state.masses, j)
                a_after, b_after = counts[a] - v + w, counts[b] - w + v
                fits = lower[a] <= a_after <= upper[a] and lower[b] <= b_after <= upper[b]
                separate = move_shift(Z, False, W, diag, i, a, b)
                separate += move_shift(Z, False, W, diag, j, b, a)
                if (v == w or fits) and swap_shift(Z, False, i, j, separate) < -tol:
                    move(Z, None, labels, counts, W, i, b, v)
                    move(Z, None, labels, counts, W, j, a, w)
                    swaps += 1
                first += 1
                second += 1
    return swaps
