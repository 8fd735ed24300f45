"""Compiled loops of shaking and descent in linear time, on the factor Z of the hat matrix Z Z^T.

The state of a labelling is W = E^T Z, k x r, with E the n x k indicator of the labels. Moving point
i from cluster o to cluster d changes the risk Q by 8 ((W[o] - W[d]) . z_i - z_i . z_i) and W by two
rows, O(r). A pass that scores m points costs O(mr), so the more moves follow one pass the better;
those that are accepted for a gain are checked against the W of that moment.
"""

# compiled-with: _loops_rows.py 57aeabc6fb91
import numpy as np

from fastmmc._jit import njit, njit_sum
from fastmmc.rls._loops_rows import row_dot, shift_row


@njit_sum
def quick_dot(A, i, B, j):
    """Return A[i] . B[j] in the precision of the two."""
    total = B.dtype.type(0)
    for c in range(A.shape[1]):
        total += A[i, c] * B[j, c]
    return total


@njit
def sum_clusters(Z, labels, W):
    """Fill W = E^T Z from scratch, O(nr)."""
    for h in range(W.shape[0]):
        for c in range(W.shape[1]):
            W[h, c] = 0.0
    for i in range(labels.size):
        shift_row(W, labels[i], Z, i, 1.0)


@njit
def score_points(Z, start, labels, closed, steps, diag, movable, score):
    """Score what claiming each of m points would cost, O(mr); inf where it may not be claimed.

    Parameters
    ----------
    Z : (n, r) array
        Hat factor.
    start : int
        First of the points; the others follow it.
    labels : (n,) uint8 or int32 array
        Their clusters.
    closed : (k,) bool array
        Clusters whose points are not to be had: the claiming one, and donors at their floor.
    steps : (k, r) array
        W[c] - W[d] for the claiming cluster d, of the dtype of Z.
    diag : (n,) float64 array
        z_i . z_i.
    movable : (n,) bool array
        False where the label is known.
    score : (m,) float64 array
        Filled.
    """
    for at in range(score.size):
        i = start + at
        c = labels[i]
        if closed[c] or not movable[i]:
            score[at] = np.inf
        else:
            score[at] = quick_dot(Z, i, steps, c) - diag[i]


@njit
def move(Z, labels, counts, W, i, d):
    """Move point i to cluster d, O(r)."""
    o = labels[i]
    shift_row(W, o, Z, i, -1.0)
    shift_row(W, d, Z, i, 1.0)
    labels[i] = d
    counts[o] -= 1
    counts[d] += 1


@njit
def claim_batch(Z, score, limit, wanted, labels, counts, floor, W, d):
    """Claim the points that score below ``limit``, then those at it, ``wanted`` at most.

    Equal scores go to the point that comes first. A donor does not fall below its floor.
    Claimed points score inf afterwards.

    Returns
    -------
    int
        Points claimed.
    """
    taken = 0
    for turn in range(2):
        for i in range(score.size):
            if taken == wanted:
                return taken
            fits = score[i] < limit if turn == 0 else score[i] == limit
            if not fits or score[i] == np.inf:
                continue
            o = labels[i]
            if counts[o] > floor[o]:
                move(Z, labels, counts, W, i, d)
                score[i] = np.inf
                taken += 1
    return taken


@njit
def exact_shift(Z, labels, W, diag, i, d):
    """Return what moving point i to cluster d changes Q / 8 by, from the W of this moment."""
    return row_dot(Z, i, W, labels[i]) - row_dot(Z, i, W, d) - diag[i]


@njit
def descend_block(
    Z, start, scores, labels, counts, W, diag, movable, lower, upper, tol, shift, target
):
    """Let each point of a block make its best move, if that lowers Q, and note its best exchange.

    Parameters
    ----------
    Z : (n, r) array
        Hat factor.
    start : int
        First point of the block.
    scores : (b, k) array
        Z[start : start + b] W^T as it was before the block.
    labels, counts, W
        Modified in place.
    diag, movable
        As for :func:`score_points`.
    lower, upper : (k,) int64 arrays
        Size bounds.
    tol : float
        A shift must be below -tol.
    shift, target : (n,) float64 and int64 arrays
        Filled for the points of the block: the lowest shift among all clusters, whatever their
        sizes, and where it leads.

    Returns
    -------
    int
        Moves made.
    """
    k = counts.size
    moves = 0
    for at in range(scores.shape[0]):
        i = start + at
        o = labels[i]
        best, open_best = np.inf, np.inf
        to, open_to = -1, -1
        if movable[i]:
            for h in range(k):
                if h == o:
                    continue
                v = scores[at, o] - scores[at, h] - diag[i]
                if v < best:
                    best = v
                    to = h
                if v < open_best and counts[h] < upper[h]:
                    open_best = v
                    open_to = h
        shift[i] = best
        target[i] = to
        if open_best < -tol and counts[o] > lower[o]:
            if exact_shift(Z, labels, W, diag, i, open_to) < -tol:
                move(Z, labels, counts, W, i, open_to)
                shift[i] = np.inf
                moves += 1
    return moves


@njit
def exchange(Z, order, bounds, shift, labels, counts, W, diag, tol):
    """Swap points that want into each other's clusters, where that lowers Q.

    Parameters
    ----------
    Z : (n, r) array
        Hat factor.
    order : (n,) int64 array
        Points sorted by cluster, then by wanted cluster, then by shift.
    bounds : (k * k + 1,) int64 array
        Where in ``order`` the points of cluster a that want into b begin: at a k + b.
    shift : (n,) float64 array
        From :func:`descend_block`.
    labels, counts, W
        Modified in place.
    diag, tol
        As for :func:`descend_block`.

    Returns
    -------
    int
        Swaps made.
    """
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
                change = exact_shift(Z, labels, W, diag, i, b)
                change += exact_shift(Z, labels, W, diag, j, a)
                change += 2.0 * row_dot(Z, i, Z, j)
                if change < -tol:
                    move(Z, labels, counts, W, i, b)
                    move(Z, labels, counts, W, j, a)
                    swaps += 1
                first += 1
                second += 1
    return swaps
