"""Compiled loops of the size-free cost: descent by moves and swaps, and Ward's agglomeration.

With e_h the indicator and s_h the size of cluster h, q_h = e_h^T R e_h and U = (R E)^T, k x n,

    cost = sum_h (1 - q_h / s_h),

to which an empty cluster adds 1. Moving point i from cluster a to b turns q_a into
q_a - 2 U[a, i] + R_ii and q_b into q_b + 2 U[b, i] + R_ii, O(1) a candidate. What these loops call
a point may be a group of them: its row of R is then the sum of theirs, its weight their number.
"""

# compiled-with: _loops_moves.py 576e777f319b
from typing import NamedTuple

import numpy as np

from fastmmc._jit import njit
from fastmmc.rls._loops_moves import move, row_dot

# Slots of State.pos.
MOVES = 0  # accepted moves
AT = 1  # the next point to look at
CLEAN = 2  # points looked at in a row without a change
N_POS = 3


class State(NamedTuple):
    """A labelling and what is cached of it; arrays are modified in place."""

    matrix: np.ndarray  # (n, n) R, or its (n, r) factor Z
    labels: np.ndarray  # (n,) uint8 or int32
    weights: np.ndarray  # (n,) int64
    counts: np.ndarray  # (k,) int64, weights of the clusters
    sums: np.ndarray  # (k, n) U = (R E)^T, or (k, r) E^T Z, float64
    within: np.ndarray  # (k,) float64, q_h
    diag: np.ndarray  # (n,) float64, diagonal of R
    movable: np.ndarray  # (n,) bool, False where the label is known
    lower: np.ndarray  # (k,) int64, size bounds
    upper: np.ndarray  # (k,) int64
    tol: float  # a change of the cost must be below -tol
    pos: np.ndarray  # (N_POS,) int64


@njit
def share(within, count):
    """Return q / s, 0 of an empty cluster."""
    return within / count if count > 0 else 0.0


@njit
def descend(state, budget):
    """Move each point in turn to its best cluster where that lowers the cost, O(n) a move.

    Sizes stay within the bounds. Returns True when no move helps.
    """
    R, labels, weights, counts = state.matrix, state.labels, state.weights, state.counts
    U, within, diag, pos = state.sums, state.within, state.diag, state.pos
    movable, lower, upper, tol = state.movable, state.lower, state.upper, state.tol
    k, n = U.shape
    while budget > 0 and pos[CLEAN] < n:
        i = pos[AT]
        pos[AT] = (i + 1) % n
        pos[CLEAN] += 1
        budget -= k
        a = np.int64(labels[i])
        w = weights[i]
        if not movable[i] or counts[a] - w < lower[a]:
            continue
        rest = within[a] - 2.0 * U[a, i] + diag[i]
        loss = share(within[a], counts[a]) - share(rest, counts[a] - w)
        best = -tol
        target = -1
        for h in range(k):
            if h != a and counts[h] + w <= upper[h]:
                joined = (within[h] + 2.0 * U[h, i] + diag[i]) / (counts[h] + w)
                change = loss - joined + share(within[h], counts[h])
                if change < best:
                    best = change
                    target = h
        if target >= 0:
            within[a] = rest
            within[target] += 2.0 * U[target, i] + diag[i]
            move(R, None, labels, counts, U, i, target, w)
            pos[MOVES] += 1
            pos[CLEAN] = 0
            budget -= 2 * n
    return pos[CLEAN] >= n


@njit
def fill_reach(U, labels, counts, diag, movable, h, reach):
    """Fill row and column h of reach[b, a], (k, k): what points of b add at most by going to a.

    It is the greatest part of what a swap explains more that belongs to one of its points j,
    R_jj (1 / s_a + 1 / s_b) + 2 U[a, j] / s_a - 2 U[b, j] / s_b.
    A swap changes it for two clusters.
    """
    k = counts.size
    reach[h] = -np.inf
    reach[:, h] = -np.inf
    for j in range(labels.size):
        b = labels[j]
        if movable[j]:
            if b == h:
                for a in range(k):
                    if counts[a] > 0:
                        reach[h, a] = max(reach[h, a], half_gain(U, counts, diag, j, h, a))
            elif counts[h] > 0:
                reach[b, h] = max(reach[b, h], half_gain(U, counts, diag, j, b, h))


@njit
def half_gain(U, counts, diag, j, b, a):
    """Return the part of a swap between clusters b and a that belongs to point j of b."""
    own = diag[j] * (1.0 / counts[a] + 1.0 / counts[b])
    return own + 2.0 * (U[a, j] / counts[a] - U[b, j] / counts[b])


@njit
def swap(state, least, budget):
    """Swap each point in turn with its best partner where that lowers the cost, O(n) a point.

    It keeps all sizes, as partners weigh the same. Returns True when no swap helps. ``least`` (n,)
    is no greater than the entries of each row of R, and with :func:`fill_reach` it tells in O(k)
    which clusters have no partner for a point. The budget counts their points as well, so that a
    limit on it is a number of points to look at.
    """
    R, labels, weights, counts = state.matrix, state.labels, state.weights, state.counts
    U, within, diag, pos = state.sums, state.within, state.diag, state.pos
    movable, tol = state.movable, state.tol
    k, n = U.shape
    reach = np.empty((k, k))
    for h in range(k):
        fill_reach(U, labels, counts, diag, movable, h, reach)
    is_open = np.empty(k, dtype=np.bool_)
    while budget > 0 and pos[CLEAN] < n:
        i = pos[AT]
        pos[AT] = (i + 1) % n
        pos[CLEAN] += 1
        budget -= 1
        if not movable[i]:
            continue
        budget -= 4 * n
        a = np.int64(labels[i])
        w = weights[i]
        best = -tol
        partner = -1
        hope = False
        for b in range(k):
            is_open[b] = False
            if b != a and counts[b] > 0:
                most = half_gain(U, counts, diag, i, a, b) + reach[b, a]
                # Half of tol is far more than the rounding by which both sums may differ.
                is_open[b] = most - 2.0 * least[i] * (1.0 / counts[a] + 1.0 / counts[b]) > tol / 2
                hope = hope or is_open[b]
        if not hope:
            continue
        for j in range(n):
            b = labels[j]
            if is_open[b] and movable[j]:
                apart = diag[i] + diag[j] - 2.0 * R[i, j]
                of_a = (apart + 2.0 * (U[a, j] - U[a, i])) / counts[a]
                of_b = (apart + 2.0 * (U[b, i] - U[b, j])) / counts[b]
                if -of_a - of_b < best and weights[j] == w:
                    best = -of_a - of_b
                    partner = j
        if partner >= 0:
            b = np.int64(labels[partner])
            apart = diag[i] + diag[partner] - 2.0 * R[i, partner]
            within[a] += apart + 2.0 * (U[a, partner] - U[a, i])
            within[b] += apart + 2.0 * (U[b, i] - U[b, partner])
            move(R, None, labels, counts, U, i, b, w)
            move(R, None, labels, counts, U, partner, a, w)
            fill_reach(U, labels, counts, diag, movable, a, reach)
            fill_reach(U, labels, counts, diag, movable, b, reach)
            pos[MOVES] += 2
            pos[CLEAN] = 0
            budget -= 4 * n
    return pos[CLEAN] >= n


@njit
def descend_block(state, start, scores):
    """Move points of a block to their best clusters where that lowers the cost, O(r) a candidate.

    ``scores`` (b, k) are the inner products of rows start.. of Z with the sums W = E^T Z, or with
    older ones: they choose the cluster, and the sums of the moment decide whether it is better.
    Returns the moves made.
    """
    Z, labels, counts = state.matrix, state.labels, state.counts
    W, within, diag = state.sums, state.within, state.diag
    k = counts.size
    moves = 0
    for at in range(scores.shape[0]):
        i = start + at
        a = np.int64(labels[i])
        if not state.movable[i] or counts[a] <= state.lower[a]:
            continue
        best = -np.inf
        target = -1
        for h in range(k):
            if h != a and counts[h] < state.upper[h]:
                joined = (within[h] + 2.0 * scores[at, h] + diag[i]) / (counts[h] + 1)
                gain = joined - share(within[h], counts[h])
                if gain > best:
                    best = gain
                    target = h
        rest = within[a] - 2.0 * scores[at, a] + diag[i]
        loss = share(within[a], counts[a]) - share(rest, counts[a] - 1)
        if target < 0 or loss - best >= -state.tol:
            continue
        rest = within[a] - 2.0 * row_dot(Z, i, W, a) + diag[i]
        loss = share(within[a], counts[a]) - share(rest, counts[a] - 1)
        joined = within[target] + 2.0 * row_dot(Z, i, W, target) + diag[i]
        gain = joined / (counts[target] + 1) - share(within[target], counts[target])
        if loss - gain < -state.tol:
            within[a] = rest
            within[target] = joined
            move(Z, None, labels, counts, W, i, target)
            moves += 1
    state.pos[MOVES] += moves
    return moves


@njit
def merge_groups(R, members, scales, out):
    """Fill ``out`` (m, m) with the sums of s_i R_ij s_j over pairs of groups.

    ``members`` (n,) names the groups; ``scales`` (n,) are the s, None if all are 1.
    """
    for g in range(out.shape[0]):
        for h in range(out.shape[0]):
            out[g, h] = 0.0
    for i in range(members.size):
        row = out[members[i]]
        entries = R[i]
        if scales is None:
            for j in range(members.size):
                row[members[j]] += entries[j]
        else:
            for j in range(members.size):
                row[members[j]] += scales[i] * entries[j] * scales[j]


@njit
def fill_merges(R, weights, D):
    """Fill D (m, m) with what merging two groups would add to the cost."""
    for g in range(weights.size):
        D[g, g] = 0.0
        for h in range(g):
            v, w = weights[g], weights[h]
            apart = R[g, g] / v / v + R[h, h] / w / w - 2.0 * R[g, h] / v / w
            # Exactly symmetric, which the chain of nearest neighbours relies on.
            D[g, h] = apart * v * w / (v + w)
            D[h, g] = D[g, h]


@njit
def agglomerate(D, weights, first, second, height):
    """Merge m groups, the pair that adds least to the cost first, until one is left, O(m^2).

    That is Ward's rule, by a chain of nearest neighbours. ``D`` is from :func:`fill_merges` and is
    overwritten, as are the ``weights`` (m,). Merge t joins the groups that hold ``first[t]`` and
    ``second[t]`` at ``height[t]``; the heights are in no order.
    """
    m = weights.size
    chain = np.empty(m, dtype=np.int64)
    alive = np.empty(m, dtype=np.int64)
    for i in range(m):
        alive[i] = i
    left = m
    length = 0
    for t in range(m - 1):
        if length == 0:
            chain[0] = alive[0]
            length = 1
        while True:
            x = chain[length - 1]
            y = -1
            best = np.inf
            if length > 1:
                y = chain[length - 2]
                best = D[x, y]
            for at in range(left):
                j = alive[at]
                if j != x and D[x, j] < best:
                    best = D[x, j]
                    y = j
            if y < 0:  # all merges are infinite, or not numbers
                y = alive[0] if alive[0] != x else alive[1]
            if length > 1 and y == chain[length - 2]:
                break
            chain[length] = y
            length += 1
        length -= 2
        x, y = max(x, y), min(x, y)
        first[t], second[t], height[t] = y, x, best
        kept = 0
        for at in range(left):
            j = alive[at]
            if j != x:
                alive[kept] = j
                kept += 1
        left = kept
        for at in range(left):
            j = alive[at]
            if j != y:
                w = weights[j]
                value = (weights[x] + w) * D[x, j] + (weights[y] + w) * D[y, j] - w * best
                value /= weights[x] + weights[y] + w
                # The chain relies on it, and rounding could break it.
                value = max(value, min(D[x, j], D[y, j]))
                D[y, j] = value
                D[j, y] = value
        weights[y] += weights[x]
