"""Compiled loops of UMC-RLS over the hat matrix R: shaking and descents.

R is n x n, or Z Z^T given by its n x r factor. Both differ only in how a row is had, so every
loop takes a state whose ``row`` is None where the matrix is R itself, else room for one row of
Z Z^T. Numba drops the branch that a call does not need. The sums are U = (R E)^T, k x n, float64
whatever the dtype of R is: they do not drift, and converting a row on the fly costs nothing
against reading it.

Arrays are filled by plain loops, and only the outermost functions take the whole state:
broadcast assignments and tuples handed from function to function cost seconds of compilation.

Loops take a budget in row elements and return when it is used up; everything they need to go
on is in the state, so the slicing never changes a result.
"""

# compiled-with: _loops_moves.py e6bdd2864620
from typing import NamedTuple

import numpy as np

from fastmmc.core.jit import njit
from fastmmc.rls.engine._loops_moves import CHUNK, MOVES, RECORDS, hat_row, move, record, shift_row

# Independent minima that vectorise.
LANES = 64

# Slots of State.pos beside MOVES and RECORDS.
ROUND = 2  # round of the shaking, or sweeps done
CLUSTER = 3  # cluster whose turn it is, or position in the order
REMAINING = 4  # claims left in the open turn; -1: no turn is open
CANDIDATE = 5  # the next point to claim in the open turn
LAZY = 6  # 1: U[CLUSTER] is rebuilt when the turn ends
CLEAN = 7  # points looked at in a row without a change
N_POS = 8

# Slots of State.value.
OBJECTIVE = 0  # Q of the labels
BEST = 1  # Q of State.best_labels
N_VALUES = 2


class State(NamedTuple):
    """A labelling, what is cached of it and work space; arrays are modified in place."""

    matrix: np.ndarray  # (n, n) hat matrix R, or its (n, r) factor Z
    row: np.ndarray | None  # (n,) room for a row of Z Z^T; None: the matrix is R
    labels: np.ndarray  # (n,) uint8 or int32
    masses: np.ndarray  # (n,) int64 that sizes count points by
    counts: np.ndarray  # (k,) int64
    sums: np.ndarray  # (k, n) U, float64
    total: np.ndarray  # (n,) float64, R e: the sum of the rows of U
    diag: np.ndarray  # (n,) float64, diagonal of R
    movable: np.ndarray  # (n,) bool, False where the label is known
    lower: np.ndarray  # (k,) int64, size bounds of the phase
    upper: np.ndarray  # (k,) int64
    tol: float  # a shift must be below -tol
    pos: np.ndarray  # int64, where the search stands
    value: np.ndarray  # (N_VALUES,) float64
    best_labels: np.ndarray  # (n,) labels of the best round end, or (0,) if not kept
    score: np.ndarray  # (n,) float64, shifts of the points; outlives a slice
    history: np.ndarray  # (capacity, 2) float64: moves, objective
    stride: int  # moves between two history entries


@njit
def row_price(R, row):
    """Return what reading one row costs, in row elements of the dense matrix."""
    if row is None:
        return R.shape[0]
    return R.shape[0] * (1 + R.shape[1] // 8)


@njit
def risk(labels, U, total):
    """Q = k n + (4 - k) e^T R e - 4 tr(E^T R E), from the cached sums."""
    k, n = U.shape
    within = 0.0
    everything = 0.0
    for i in range(n):
        within += U[labels[i], i]
        everything += total[i]
    return k * n + (4 - k) * everything - 4.0 * within


@njit
def argleast(values, lanes):
    """Return the lowest index of the least of ``values``, or -1 if all are inf.

    A plain running minimum is one long chain of dependent comparisons, which LLVM does not
    vectorise without assuming NaN away; LANES independent minima vectorise as they stand.
    """
    blocks = values.size // LANES
    for i in range(LANES):
        lanes[i] = np.inf
    for b in range(blocks):
        block = values[b * LANES : (b + 1) * LANES]
        for i in range(LANES):
            v = block[i]
            w = lanes[i]
            lanes[i] = v if v < w else w
    best = np.inf
    for i in range(blocks * LANES, values.size):
        best = min(best, values[i])
    for i in range(LANES):
        best = min(best, lanes[i])
    return -1 if best == np.inf else first_equal(values, 0, best)


@njit
def first_equal(values, start, wanted):
    """Return the lowest index >= start at which ``values`` equals ``wanted``; there must be one.

    Counting the matches of a block vectorises, leaving a loop early does not.
    """
    while start + LANES < values.size:
        block = values[start : start + LANES]
        matches = 0
        for i in range(LANES):
            matches += block[i] == wanted
        if matches > 0:
            break
        start += LANES
    while values[start] != wanted:
        start += 1
    return start


@njit
def claim_pass(row, left, gained, score, labels, label, eager, lanes):
    """Account for a claim and return the next point to claim, or -1.

    ``row`` is the claimed point's row of R; it left cluster ``label``, whose sums are ``left``.
    The claiming cluster's sums grow by the row, so every score falls by it; for the points of the
    cluster that was left, their own sums shrink as well. Infinite scores stay infinite. The sums
    of the claiming cluster, ``gained``, are updated only if ``eager``.
    """
    best = np.inf
    at = 0
    # Unsigned indices cannot count from the end, a case that keeps a loop from being vectorised.
    width = np.uint64(LANES)
    for start in range(0, score.size, CHUNK):
        stop = min(start + CHUNK, score.size)
        blocks = (stop - start) // LANES
        for i in range(LANES):
            lanes[i] = np.inf
        for b in range(blocks):
            base = np.uint64(start + b * LANES)
            for i in range(width):
                j = base + i
                r = row[j]
                left[j] -= r
                v = score[j] - (r + r if labels[j] == label else r)
                score[j] = v
                w = lanes[i]
                lanes[i] = v if v < w else w
        v = np.inf
        for j in range(start + blocks * LANES, stop):
            r = row[j]
            left[j] -= r
            score[j] -= r + r if labels[j] == label else r
            v = min(v, score[j])
        for i in range(LANES):
            v = min(v, lanes[i])
        if v < best:
            best = v
            at = start
    if eager:
        shift_row(gained, row, 1.0)
    if best == np.inf:
        return -1
    return first_equal(score, at, best)


@njit
def fill_own(labels, counts, U, diag, movable, lower, masses, own):
    """Fill own_i = U[c_i, i] - R_ii, inf where point i may not leave its cluster."""
    for i in range(own.size):
        c = labels[i]
        stays = not movable[i] or counts[c] - masses[i] < lower[c]
        own[i] = np.inf if stays else U[c, i] - diag[i]


@njit
def score_moves(own, row, labels, label, score, masses, room):
    """Fill the shifts of moving every point that there is room for to the cluster of ``row``."""
    for i in range(score.size):
        stays = labels[i] == label or masses[i] > room
        score[i] = np.inf if stays else own[i] - row[i]


@njit
def close_donor(score, labels, label, spare, masses):
    """Make the points of a cluster that it cannot spare unclaimable for the rest of the turn."""
    for i in range(score.size):
        if labels[i] == label and masses[i] > spare:
            score[i] = np.inf


@njit
def rebuild_row(U, total, d):
    """Recover U[d] from the invariant that the rows of U add up to R e."""
    row = U[d]
    for i in range(row.size):
        row[i] = total[i]
    for h in range(U.shape[0]):
        if h != d:
            shift_row(row, U[h], -1.0)


@njit
def note_move(shift, pos, value, history, stride):
    """Count a move or a swap, and record the objective at every ``stride``-th."""
    value[OBJECTIVE] += 8.0 * shift
    pos[MOVES] += 1
    if pos[MOVES] % stride == 0:
        record(history, pos, pos[MOVES], value[OBJECTIVE])


@njit
def shake(state, quota, floors, budget):
    """Shake (Pahikkala et al. 2012, Algorithm 3), one slice; return whether the last round is over.

    In round i the clusters take turns; each claims the cheapest points, even at a loss, until it
    has quota[i, d] of them. Points of a cluster at floors[i, c] are not given away.

    A turn starts from fresh scores U[c_i, i] - R_ii - U[d, i] and keeps them up to date, so one
    claim reads one row of R and writes one row of U and the scores. U[d] itself is not needed
    before the turn ends; if there are more claims than clusters it is cheaper to rebuild it then.
    """
    R, row, labels, counts, U = state.matrix, state.row, state.labels, state.counts, state.sums
    pos, value, score, masses = state.pos, state.value, state.score, state.masses
    k, n = U.shape
    own, lanes = np.empty(n), np.empty(LANES)
    price = row_price(R, row)
    most = masses.max()
    while budget > 0 and pos[ROUND] < quota.shape[0]:
        if pos[RECORDS] + 1 >= state.history.shape[0]:
            return False
        d = pos[CLUSTER]
        floor = floors[pos[ROUND]]
        if pos[REMAINING] < 0:
            claims = quota[pos[ROUND], d] - counts[d]
            if claims > 0:
                fill_own(labels, counts, U, state.diag, state.movable, floor, masses, own)
                score_moves(own, U[d], labels, labels.dtype.type(d), score, masses, most)
                pos[CANDIDATE] = argleast(score, lanes)
                pos[REMAINING] = claims
                pos[LAZY] = claims > k
                budget -= 2 * n
        j = pos[CANDIDATE]
        # A point that is heavier than what is left is claimed if that brings the size nearer.
        if pos[REMAINING] > 0 and j >= 0 and masses[j] <= 2 * pos[REMAINING]:
            o = labels[j]
            w = masses[j]
            shift = score[j]
            labels[j] = d
            score[j] = np.inf
            pos[CANDIDATE] = claim_pass(
                hat_row(R, j, row), U[o], U[d], score, labels, o, pos[LAZY] == 0, lanes
            )
            counts[o] -= w
            counts[d] += w
            if counts[o] - most < floor[o]:
                close_donor(score, labels, o, counts[o] - floor[o], masses)
                pos[CANDIDATE] = argleast(score, lanes)
            note_move(shift, pos, value, state.history, state.stride)
            pos[REMAINING] = max(0, pos[REMAINING] - w)
            budget -= price
            continue
        if pos[REMAINING] >= 0:
            if pos[LAZY] == 1:
                rebuild_row(U, state.total, d)
            pos[REMAINING] = -1
            budget -= n
        pos[CLUSTER] += 1
        if pos[CLUSTER] == k:
            pos[CLUSTER] = 0
            pos[ROUND] += 1
            budget -= n
            value[OBJECTIVE] = risk(labels, U, state.total)
            record(state.history, pos, pos[MOVES], value[OBJECTIVE])
            if state.best_labels.size > 0 and value[OBJECTIVE] < value[BEST]:
                value[BEST] = value[OBJECTIVE]
                for i in range(n):
                    state.best_labels[i] = labels[i]
    return pos[ROUND] >= quota.shape[0]


@njit
def best_target(labels, counts, U, diag, j, upper, w):
    """Return the shift and the cluster of the best move of point j, (inf, -1) if none is open."""
    o = np.int64(labels[j])
    best = np.inf
    target = -1
    for h in range(counts.size):
        if h != o and counts[h] + w <= upper[h]:
            v = U[o, j] - U[h, j] - diag[j]
            if v < best:
                best = v
                target = h
    return best, target


@njit
def descend_stochastic(state, order, max_sweeps, budget):
    """Descend point by point (Pahikkala et al. 2012, Algorithm 1), one slice.

    The points are looked at in ``order``, again and again; each goes to its best cluster if that
    lowers Q and the sizes stay within bounds. Returns True when n points in a row stayed, so that
    no single move helps, or after max_sweeps sweeps.
    """
    R, row, labels, counts, U = state.matrix, state.row, state.labels, state.counts, state.sums
    lower, upper = state.lower, state.upper
    pos, value = state.pos, state.value
    k, n = U.shape
    while budget > 0 and pos[CLEAN] < n and pos[ROUND] < max_sweeps:
        if pos[RECORDS] + 1 >= state.history.shape[0]:
            return False
        j = order[pos[CLUSTER]]
        pos[CLEAN] += 1
        budget -= k
        w = state.masses[j]
        if state.movable[j] and counts[labels[j]] - w >= lower[labels[j]]:
            shift, d = best_target(labels, counts, U, state.diag, j, upper, w)
            if shift < -state.tol:
                move(R, row, labels, counts, U, j, d, w)
                note_move(shift, pos, value, state.history, state.stride)
                pos[CLEAN] = 0
                budget -= row_price(R, row)
        pos[CLUSTER] += 1
        if pos[CLUSTER] == n:
            pos[CLUSTER] = 0
            pos[ROUND] += 1
    return pos[CLEAN] >= n or pos[ROUND] >= max_sweeps


@njit
def descend_steepest(state, max_moves, budget):
    """Make the best of all single moves (Pahikkala et al. 2012, Algorithm 2), one slice.

    A move costs O(nk) to find and O(n) to make. Returns True at a local minimum or after max_moves
    moves.
    """
    R, row, labels, counts, U = state.matrix, state.row, state.labels, state.counts, state.sums
    pos, value, score, masses = state.pos, state.value, state.score, state.masses
    k, n = U.shape
    own, lanes = np.empty(n), np.empty(LANES)
    while budget > 0:
        if pos[MOVES] >= max_moves:
            return True
        if pos[RECORDS] + 1 >= state.history.shape[0]:
            return False
        fill_own(labels, counts, U, state.diag, state.movable, state.lower, masses, own)
        best = np.inf
        j = -1
        target = -1
        for d in range(k):
            if counts[d] < state.upper[d]:
                room = state.upper[d] - counts[d]
                score_moves(own, U[d], labels, labels.dtype.type(d), score, masses, room)
                i = argleast(score, lanes)
                if i >= 0 and (score[i] < best or (score[i] == best and i < j)):
                    best = score[i]
                    j = i
                    target = d
        budget -= k * n + 2 * row_price(R, row)
        if not best < -state.tol:
            return True
        move(R, row, labels, counts, U, j, target, masses[j])
        note_move(best, pos, value, state.history, state.stride)
    return False
