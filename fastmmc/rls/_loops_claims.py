"""Compiled loops of UMC-RLS over the hat matrix R: shaking, descent, polish.

R is n x n, or Z Z^T given by its n x r factor. Both differ only in how a row is had, so every
loop takes the matrix and ``row``: None where the matrix is R itself, else room for one row of
Z Z^T. Numba drops the branch that a call does not need.

All loops share one state. With E the n x k indicator of the labels, ``U = (R E)^T`` is k x n,
so that moving point j from cluster o to cluster d is two row operations, ``U[o] -= R[j]`` and
``U[d] += R[j]``, and changes the risk Q by 8 (U[o, j] - U[d, j] - R[j, j]).
Shifts are kept without the factor 8 until the objective is updated.

U and the scores are float64 whatever the dtype of R is: sums do not drift, and converting a
row on the fly costs nothing against reading it.

Arrays are filled by plain loops, and only the outermost functions take the whole state:
broadcast assignments and tuples handed from function to function cost seconds of compilation.

Loops take a budget in row elements and return when it is used up; everything they need to go
on is in the state, so the slicing never changes a result.
"""

from typing import NamedTuple

import numpy as np

from fastmmc._jit import njit

# The sums of a chunk stay in the first-level cache; its least score narrows the search for where.
CHUNK = 2048
LANES = 64

# Slots of State.pos.
ROUND = 0  # round of the shaking, or sweeps done
CLUSTER = 1  # cluster whose turn it is, or position in the order
REMAINING = 2  # claims left in the open turn; -1: no turn is open
CANDIDATE = 3  # the next point to claim in the open turn
LAZY = 4  # 1: U[CLUSTER] is rebuilt when the turn ends
MOVES = 5  # accepted moves
CLEAN = 6  # points looked at in a row without a change
RECORDS = 7  # history entries written since the caller last took them
N_POS = 8

# Slots of State.value.
OBJECTIVE = 0  # Q of the labels
BEST = 1  # Q of State.best_labels
N_VALUES = 2


class State(NamedTuple):
    """One restart: everything a loop reads and writes (arrays are modified in place)."""

    labels: np.ndarray  # (n,) uint8 or int32
    counts: np.ndarray  # (k,) int64
    U: np.ndarray  # (k, n) float64
    total: np.ndarray  # (n,) float64, R e: the sum of the rows of U
    diag: np.ndarray  # (n,) float64, diagonal of R
    movable: np.ndarray  # (n,) bool, False where the label is known
    score: np.ndarray  # (n,) float64, work space that outlives a slice
    own: np.ndarray  # (n,) float64, work space that outlives a slice
    lanes: np.ndarray  # (LANES,) float64, work space
    pos: np.ndarray  # (N_POS,) int64
    value: np.ndarray  # (N_VALUES,) float64
    history: np.ndarray  # (capacity, 2) float64: moves, objective
    best_labels: np.ndarray  # (n,) labels of the best round end, or (0,) if not kept


@njit
def hat_row(R, j, row):
    """Return row j of the hat matrix; of Z Z^T it is computed into ``row``, O(nr)."""
    if row is None:
        return R[j]
    np.dot(R, R[j], row)
    return row


@njit
def row_price(R, row):
    """Return what one row costs, in row elements of the dense matrix."""
    if row is None:
        return R.shape[0]
    return R.shape[0] * (1 + R.shape[1] // 8)


@njit
def add_row(target, row):
    """Add ``row`` to ``target`` in place."""
    for i in range(target.size):
        target[i] += row[i]


@njit
def subtract_row(target, row):
    """Subtract ``row`` from ``target`` in place."""
    for i in range(target.size):
        target[i] -= row[i]


@njit
def build_sums(R, labels, U):
    """Fill U = (R E)^T from scratch in O(n^2), one read of R (U is modified in place)."""
    k, n = U.shape
    for h in range(k):
        for i in range(n):
            U[h, i] = 0.0
    for start in range(0, n, CHUNK):
        stop = min(start + CHUNK, n)
        for j in range(n):
            add_row(U[labels[j], start:stop], R[j, start:stop])


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
def least(values, lanes):
    """Return the least of ``values`` (inf if empty).

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
    return best


@njit
def first_equal(values, start, wanted):
    """Return the lowest index from ``start`` on at which ``values`` equals ``wanted``.

    There must be one. Counting the matches of a block vectorises, leaving a loop early does
    not.
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
def argleast(values, lanes):
    """Return the lowest index of the least of ``values``, or -1 if all are inf."""
    best = least(values, lanes)
    if best == np.inf:
        return -1
    return first_equal(values, 0, best)


@njit
def claim_pass(row, left, gained, score, labels, label, eager, lanes):
    """Account for a claim and return the next point to claim, or -1.

    ``row`` is the claimed point's row of R; it left cluster ``label``, whose sums are ``left``.
    The claiming cluster's sums grow by the row, so every score falls by it; for the points of the
    cluster that was left, their own sums shrink as well. Infinite scores stay infinite. One pass
    does that and finds the least score of each chunk. The claiming cluster's sums ``gained`` are
    updated only if ``eager``.
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
        add_row(gained, row)
    if best == np.inf:
        return -1
    return first_equal(score, at, best)


@njit
def fill_claim_scores(d, labels, counts, U, diag, movable, floors, score):
    """Score what every point would cost cluster d.

    Points of d, points whose label is known and points of a cluster at its floor score inf.
    """
    for i in range(score.size):
        c = labels[i]
        if c == d or not movable[i] or counts[c] <= floors[c]:
            score[i] = np.inf
        else:
            score[i] = U[c, i] - diag[i] - U[d, i]


@njit
def close_donor(score, labels, label):
    """Make the points of a cluster unclaimable for the rest of the turn."""
    for i in range(score.size):
        if labels[i] == label:
            score[i] = np.inf


@njit
def rebuild_row(U, total, d):
    """Recover U[d] from the invariant that the rows of U add up to R e."""
    row = U[d]
    for i in range(row.size):
        row[i] = total[i]
    for h in range(U.shape[0]):
        if h != d:
            subtract_row(row, U[h])


@njit
def record(history, pos, objective):
    """Append the moves and the objective to the history (the caller empties it)."""
    at = pos[RECORDS]
    history[at, 0] = pos[MOVES]
    history[at, 1] = objective
    pos[RECORDS] = at + 1


@njit
def shake(R, row, state, quota, floors, stride, budget):
    """Steepest descent with shaking (Pahikkala et al. 2012, Algorithm 3), one slice of it.

    In round i the clusters take turns; each claims the cheapest points, even at a loss, until it
    has quota[i, d] of them. Points of a cluster at floors[i, c] are not given away.

    A turn starts from fresh scores U[c_i, i] - R_ii - U[d, i] and keeps them up to date, so one
    claim reads one row of R and writes one row of U and the scores. U[d] itself is not needed
    before the turn ends; if there are more claims than clusters it is cheaper to rebuild it then.

    Parameters
    ----------
    R : (n, n) or (n, r) array
        Hat matrix or its factor.
    row : None or (n,) array
        Room for a row of R's dtype if it is the factor.
    state : State
        Modified in place.
    quota, floors : (n_rounds, k) int64 arrays
        Size that a claiming cluster grows to; size below which a donor does not fall.
    stride : int
        Moves between two history entries.
    budget : int
        Row elements to spend.

    Returns
    -------
    bool
        True when the last round has ended.
    """
    labels, counts, U = state.labels, state.counts, state.U
    score, lanes = state.score, state.lanes
    pos, value, history = state.pos, state.value, state.history
    k, n = U.shape
    price = row_price(R, row)
    while budget > 0 and pos[ROUND] < quota.shape[0]:
        if pos[RECORDS] + 1 >= history.shape[0]:
            return False
        d = pos[CLUSTER]
        floor = floors[pos[ROUND]]
        if pos[REMAINING] < 0:
            claims = quota[pos[ROUND], d] - counts[d]
            if claims > 0:
                fill_claim_scores(d, labels, counts, U, state.diag, state.movable, floor, score)
                pos[CANDIDATE] = argleast(score, lanes)
                pos[REMAINING] = claims
                pos[LAZY] = claims > k
                budget -= 2 * n
        if pos[REMAINING] > 0 and pos[CANDIDATE] >= 0:
            j = pos[CANDIDATE]
            o = labels[j]
            value[OBJECTIVE] += 8.0 * score[j]
            labels[j] = d
            score[j] = np.inf
            pos[CANDIDATE] = claim_pass(
                hat_row(R, j, row), U[o], U[d], score, labels, o, pos[LAZY] == 0, lanes
            )
            counts[o] -= 1
            counts[d] += 1
            if counts[o] <= floor[o]:
                close_donor(score, labels, o)
                pos[CANDIDATE] = argleast(score, lanes)
            pos[MOVES] += 1
            pos[REMAINING] -= 1
            budget -= price
            if pos[MOVES] % stride == 0:
                record(history, pos, value[OBJECTIVE])
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
            record(history, pos, value[OBJECTIVE])
            if state.best_labels.size > 0 and value[OBJECTIVE] < value[BEST]:
                value[BEST] = value[OBJECTIVE]
                for i in range(n):
                    state.best_labels[i] = labels[i]
    return pos[ROUND] >= quota.shape[0]


@njit
def move(R, row, labels, counts, U, j, d):
    """Move point j to cluster d and update the sums, O(n)."""
    o = labels[j]
    entries = hat_row(R, j, row)
    subtract_row(U[o], entries)
    add_row(U[d], entries)
    labels[j] = d
    counts[o] -= 1
    counts[d] += 1


@njit
def best_target(labels, counts, U, diag, j, upper):
    """Return the shift and the cluster of the best move of point j, (inf, -1) if none is open."""
    o = labels[j]
    best = np.inf
    target = -1
    for h in range(counts.size):
        if h != o and counts[h] < upper[h]:
            v = U[o, j] - U[h, j] - diag[j]
            if v < best:
                best = v
                target = h
    return best, target


@njit
def descend_stochastic(R, row, state, order, lower, upper, tol, max_sweeps, stride, budget):
    """Stochastic descent (Pahikkala et al. 2012, Algorithm 1), one slice of it.

    The points are looked at in ``order``, again and again; each goes to its best cluster if that
    lowers Q by more than 8 tol and the sizes stay within bounds. Ends when n points in a row
    stayed: then no single move helps.

    Returns
    -------
    bool
        True at a local minimum or after max_sweeps sweeps.
    """
    labels, counts, U = state.labels, state.counts, state.U
    pos, value, history = state.pos, state.value, state.history
    k, n = U.shape
    while budget > 0 and pos[CLEAN] < n and pos[ROUND] < max_sweeps:
        if pos[RECORDS] + 1 >= history.shape[0]:
            return False
        j = order[pos[CLUSTER]]
        pos[CLEAN] += 1
        budget -= k
        if state.movable[j] and counts[labels[j]] > lower[labels[j]]:
            shift, d = best_target(labels, counts, U, state.diag, j, upper)
            if shift < -tol:
                move(R, row, labels, counts, U, j, d)
                value[OBJECTIVE] += 8.0 * shift
                pos[MOVES] += 1
                if pos[MOVES] % stride == 0:
                    record(history, pos, value[OBJECTIVE])
                pos[CLEAN] = 0
                budget -= row_price(R, row)
        pos[CLUSTER] += 1
        if pos[CLUSTER] == n:
            pos[CLUSTER] = 0
            pos[ROUND] += 1
    return pos[CLEAN] >= n or pos[ROUND] >= max_sweeps


@njit
def fill_own(labels, counts, U, diag, movable, lower, own):
    """Fill own_i = U[c_i, i] - R_ii, inf where point i may not leave its cluster."""
    for i in range(own.size):
        c = labels[i]
        own[i] = U[c, i] - diag[i] if movable[i] and counts[c] > lower[c] else np.inf


@njit
def score_moves(own, row, labels, label, score):
    """Fill the shifts of moving every point to the cluster with the sums ``row``."""
    for i in range(score.size):
        score[i] = np.inf if labels[i] == label else own[i] - row[i]


@njit
def descend_steepest(R, row, state, lower, upper, tol, max_moves, stride, budget):
    """Steepest descent (Pahikkala et al. 2012, Algorithm 2), one slice of it.

    Every step makes the best of all single moves, O(nk) to find and O(n) to make.

    Returns
    -------
    bool
        True at a local minimum or after max_moves moves.
    """
    labels, counts, U = state.labels, state.counts, state.U
    own, score = state.own, state.score
    pos, value, history = state.pos, state.value, state.history
    k, n = U.shape
    while budget > 0:
        if pos[MOVES] >= max_moves:
            return True
        if pos[RECORDS] + 1 >= history.shape[0]:
            return False
        fill_own(labels, counts, U, state.diag, state.movable, lower, own)
        best = np.inf
        j = -1
        target = -1
        for d in range(k):
            if counts[d] < upper[d]:
                score_moves(own, U[d], labels, labels.dtype.type(d), score)
                i = argleast(score, state.lanes)
                if i >= 0 and (score[i] < best or (score[i] == best and i < j)):
                    best = score[i]
                    j = i
                    target = d
        budget -= k * n + 2 * row_price(R, row)
        if not best < -tol:
            return True
        move(R, row, labels, counts, U, j, target)
        value[OBJECTIVE] += 8.0 * best
        pos[MOVES] += 1
        if pos[MOVES] % stride == 0:
            record(history, pos, value[OBJECTIVE])
    return False


@njit
def score_swaps(entries, back, own, price, labels, score):
    """Fill the shifts of swapping one point with every other one.

    Swapping i (in a) with j (in b) costs
    (U[a,i] - U[b,i] - R_ii) + (U[b,j] - U[a,j] - R_jj) + 2 R_ij,
    here price_b + own_j - back_j + 2 entries_j.
    """
    for j in range(score.size):
        score[j] = price[labels[j]] + own[j] - back[j] + 2.0 * entries[j]


@njit
def fill_reach(labels, U, own, h, reach):
    """Fill row and column h of reach[b, a] = the least own_j - U[a, j] over the points j of b.

    It is the part of a swap's shift that belongs to j, so with the other part and the least entry
    of a row of R it tells whether any swap can help; a move changes it for two clusters.
    """
    reach[h] = np.inf
    reach[:, h] = np.inf
    for j in range(labels.size):
        b = labels[j]
        if b == h:
            for a in range(reach.shape[0]):
                reach[h, a] = min(reach[h, a], own[j] - U[a, j])
        else:
            reach[b, h] = min(reach[b, h], own[j] - U[h, j])


@njit
def polish(R, row, state, free, price, reach, least, lower, upper, tol, stride, budget):
    """Descend by single moves and by swaps until neither helps, one slice of it.

    Swaps keep every size, so they go on where size bounds stop all single moves. The points
    are looked at in turn; each makes its best move or swap. A row of R is read only where the
    bound of :func:`fill_reach` leaves hope for a swap.

    Parameters
    ----------
    R : (n, n) or (n, r) array
        Hat matrix or its factor.
    row : None or (n,) array
        Room for a row of R's dtype if it is the factor.
    state : State
        Modified in place; pos[CLUSTER] and pos[CLEAN] are 0 at the first call.
    free : (k,) int64 array
        Zeros: a point may take part in a swap whatever the size of its cluster is.
    price : (k,) float64 array
        Work space.
    reach : (k, k) float64 array
        Work space.
    least : (n,) float64 array
        No entry of a row of R is below.
    lower, upper : (k,) int64 arrays
        Size bounds.
    tol : float
        A shift must be below -tol.
    stride : int
        Moves between two history entries.
    budget : int
        Row elements to spend.

    Returns
    -------
    bool
        True when no move and no swap lowers Q.
    """
    labels, counts, U = state.labels, state.counts, state.U
    diag, own, score = state.diag, state.own, state.score
    pos, value, history = state.pos, state.value, state.history
    k, n = U.shape
    fill_own(labels, counts, U, diag, state.movable, free, own)
    for h in range(k):
        fill_reach(labels, U, own, h, reach)
    while budget > 0 and pos[CLEAN] < n:
        if pos[RECORDS] + 1 >= history.shape[0]:
            return False
        i = pos[CLUSTER]
        pos[CLUSTER] = (i + 1) % n
        pos[CLEAN] += 1
        if not state.movable[i]:
            continue
        a = labels[i]
        shift, target = np.inf, -1
        if counts[a] > lower[a]:
            shift, target = best_target(labels, counts, U, diag, i, upper)
        hope = np.inf
        for h in range(k):
            price[h] = U[a, i] - U[h, i] - diag[i]
            if h != a:
                hope = min(hope, price[h] + reach[h, a])
        price[a] = np.inf
        budget -= k
        j = -1
        if hope + 2.0 * least[i] < -tol:
            score_swaps(hat_row(R, i, row), U[a], own, price, labels, score)
            j = argleast(score, state.lanes)
            budget -= n + row_price(R, row)
        swap_shift = np.inf if j < 0 else score[j]
        if min(shift, swap_shift) >= -tol:
            continue
        if swap_shift < shift:
            shift = swap_shift
            target = labels[j]
            move(R, row, labels, counts, U, j, a)
        move(R, row, labels, counts, U, i, target)
        value[OBJECTIVE] += 8.0 * shift
        pos[MOVES] += 1
        if pos[MOVES] % stride == 0:
            record(history, pos, value[OBJECTIVE])
        pos[CLEAN] = 0
        fill_own(labels, counts, U, diag, state.movable, free, own)
        fill_reach(labels, U, own, a, reach)
        fill_reach(labels, U, own, target, reach)
        budget -= 8 * n
    return pos[CLEAN] >= n
