"""Compiled loops of a labelling of groups: descents by moves, by chains and by swaps.

A group is a point, points that stay together, or a cell of many points. With M the n x g membership
matrix, scaled by the roots of weights where points have any, the groups have the matrix M^T R M, or
the rows M^T Z where R = Z Z^T, and masses that sizes count. With e_h the indicator and s_h the size
of cluster h, q_h = e_h^T (M^T R M) e_h, and U the sums of the rows of the groups over the clusters,
the cost is

    sum_h (1 - q_h / s_h)    or    - sum_h q_h,

to which an empty cluster adds 1 or 0. Moving group i from cluster a to b turns q_a into
q_a - 2 U[a, i] + R_ii and q_b into q_b + 2 U[b, i] + R_ii: O(1) a candidate where the matrix is
dense, O(r) where it is Z.

Pairs of groups that should be apart have a price. They are in compressed rows: the partners of
group i are partners[start[i] : start[i + 1]]. Where there are none, ``pairs`` is None, and Numba
leaves out what they need.
"""

# compiled-with: _loops_moves.py e6bdd2864620
from typing import NamedTuple

import numpy as np

from fastmmc.core.jit import njit
from fastmmc.rls.engine._loops_moves import fit, move, row_dot

# Slots of State.pos.
MOVES = 0  # groups moved
AT = 1  # the next group to look at
CLEAN = 2  # groups looked at in a row without a change
N_POS = 3


class Pairs(NamedTuple):
    """Which groups should be apart."""

    start: np.ndarray  # (g + 1,) int64
    partners: np.ndarray  # (p,) int64
    prices: np.ndarray  # (p,) float64, of the pair being together


class State(NamedTuple):
    """A labelling of groups and what is cached of it; arrays are modified in place."""

    matrix: np.ndarray  # (g, g) matrix of the groups, or their (g, r) rows of Z
    dense: bool  # which of the two it is
    labels: np.ndarray  # (g,) uint8 or int32
    masses: np.ndarray  # (g,) int64
    counts: np.ndarray  # (k,) int64, masses of the clusters
    sums: np.ndarray  # (k, g) or (k, r), rows of the matrix summed over clusters, float64
    within: np.ndarray  # (k,) float64, q_h
    diag: np.ndarray  # (g,) float64, diagonal of the matrix of the groups
    movable: np.ndarray  # (g,) bool, False where the label is known
    lower: np.ndarray  # (k,) int64, size bounds
    upper: np.ndarray  # (k,) int64
    free: bool  # which cost it is: whether q_h is divided by s_h
    tol: float  # a change must be below -tol
    pos: np.ndarray  # (N_POS,) int64
    changed: np.ndarray  # (k,) int64, pos[MOVES] when each cluster last changed
    seen: np.ndarray  # (g,) int64, pos[MOVES] when a descent last looked at each group, -1 before


@njit
def part(free, within, count):
    """Return what a cluster adds to the cost, up to a constant."""
    if not free:
        return -within
    return -within / count if count > 0 else 0.0


@njit
def fill_near(pairs, labels, i, near):
    """Fill ``near`` (k,) with the price of group i being in each cluster."""
    for h in range(near.size):
        near[h] = 0.0
    if pairs is not None:
        for at in range(pairs.start[i], pairs.start[i + 1]):
            near[labels[pairs.partners[at]]] += pairs.prices[at]


@njit
def fill_changes(state, i, near, since, changes):
    """Fill ``changes`` (k,) with what moving group i to each cluster changes the cost by.

    It is inf for clusters that have not changed since State.pos[MOVES] was ``since``.
    """
    counts, within, sums, free = state.counts, state.within, state.sums, state.free
    a = np.int64(state.labels[i])
    w, own = state.masses[i], state.diag[i]
    for h in range(changes.size):
        # A call of fit would take descents a quarter more time.
        if h == a or state.changed[h] > since:
            changes[h] = sums[h, i] if state.dense else row_dot(state.matrix, i, sums, h)
        else:
            changes[h] = np.inf
    rest = within[a] - 2.0 * changes[a] + own
    loss = part(free, rest, counts[a] - w) - part(free, within[a], counts[a]) - near[a]
    for h in range(changes.size):
        if changes[h] < np.inf:
            joined = within[h] + 2.0 * changes[h] + own
            gain = part(free, joined, counts[h] + w) - part(free, within[h], counts[h])
            changes[h] = loss + gain + near[h]
    changes[a] = 0.0


@njit
def shift_group(state, i, d):
    """Move group i to cluster d."""
    within, diag = state.within, state.diag
    a = np.int64(state.labels[i])
    within[a] += diag[i] - 2.0 * fit(state.matrix, state.dense, state.sums, a, i)
    within[d] += diag[i] + 2.0 * fit(state.matrix, state.dense, state.sums, d, i)
    move(state.matrix, None, state.labels, state.counts, state.sums, i, d, state.masses[i])
    state.pos[MOVES] += 1
    state.changed[a] = state.changed[d] = state.pos[MOVES]


@njit
def relabel(state, labels):
    """Move groups to where they have these labels."""
    for i in range(labels.size):
        if state.labels[i] != labels[i]:
            shift_group(state, i, np.int64(labels[i]))


@njit
def gather_chain(state, pairs, i, d, chain, inside):
    """List in ``chain`` what must change sides if group i and cluster d are to get on.

    These are the groups linked to i by pairs within its cluster and d, which then swap all groups
    of the chain. Returns how many there are, 0 if one of them is not movable or there are too many.
    """
    a = state.labels[i]
    chain[0] = i
    inside[i] = True
    length = 1
    at = 0
    is_open = state.movable[i]
    while at < length and is_open:
        for p in range(pairs.start[chain[at]], pairs.start[chain[at] + 1]):
            j = pairs.partners[p]
            # Two that are together already stay so, whatever the chain does.
            crosses = state.labels[j] != state.labels[chain[at]]
            if not inside[j] and crosses and (state.labels[j] == a or state.labels[j] == d):
                if length == chain.size or not state.movable[j]:
                    is_open = False
                    break
                chain[length] = j
                inside[j] = True
                length += 1
        at += 1
    for at in range(length):
        inside[chain[at]] = False
    return length if is_open else 0


@njit
def flip_chain(state, chain, length, a, d):
    """Move the groups of a chain to the other one of two clusters."""
    for at in range(length):
        shift_group(state, chain[at], d if state.labels[chain[at]] == a else a)


@njit
def try_chain(state, pairs, i, d, chain, inside):
    """Swap a chain that begins at group i with cluster d if that lowers the cost; tell whether."""
    labels, counts, within = state.labels, state.counts, state.within
    lower, upper, free = state.lower, state.upper, state.free
    a = np.int64(labels[i])
    length = gather_chain(state, pairs, i, d, chain, inside)
    if length == 0:
        return False
    more = 0
    for at in range(length):
        w = state.masses[chain[at]]
        more += w if labels[chain[at]] == a else -w
    fits = lower[a] <= counts[a] - more <= upper[a]
    if not (fits and lower[d] <= counts[d] + more <= upper[d]):
        return False
    before = part(free, within[a], counts[a]) + part(free, within[d], counts[d])
    changed_a, changed_d = state.changed[a], state.changed[d]
    flip_chain(state, chain, length, a, d)
    after = part(free, within[a], counts[a]) + part(free, within[d], counts[d])
    if after - before < -state.tol:
        return True
    flip_chain(state, chain, length, a, d)
    state.pos[MOVES] -= 2 * length
    state.changed[a] = changed_a
    state.changed[d] = changed_d
    return False


@njit
def descend(state, pairs, chain, budget):
    """Move each group in turn where that lowers the cost, alone or with those linked to it.

    Sizes stay within the bounds. ``chain`` gives the most groups that move at once. Returns True
    when nothing helps.
    """
    labels, counts, masses, pos = state.labels, state.counts, state.masses, state.pos
    g, k = labels.size, counts.size
    near, changes = np.zeros(k), np.empty(k)
    inside = np.zeros(0 if pairs is None else g, dtype=np.bool_)
    width = state.sums.shape[1]
    while budget > 0 and pos[CLEAN] < g:
        i = pos[AT]
        pos[AT] = (i + 1) % g
        pos[CLEAN] += 1
        budget -= k if state.dense else k * width
        a = np.int64(labels[i])
        w = masses[i]
        if not state.movable[i]:
            continue
        # Where its own cluster is as it was, no other that is as it was has become better.
        since = state.seen[i] if state.changed[a] <= state.seen[i] else -1
        state.seen[i] = pos[MOVES]
        if pairs is not None:
            fill_near(pairs, labels, i, near)
        fill_changes(state, i, near, since, changes)
        target = -1
        best = -state.tol
        if counts[a] - w >= state.lower[a]:
            for h in range(k):
                if changes[h] < best and h != a and counts[h] + w <= state.upper[h]:
                    best = changes[h]
                    target = h
        if target >= 0:
            shift_group(state, i, target)
            pos[CLEAN] = 0
            budget -= 2 * width
            continue
        if pairs is not None:
            for h in range(k):
                if h != a and near[h] > 0.0 and state.changed[h] > since:
                    budget -= 8 * width
                    if try_chain(state, pairs, i, h, chain, inside):
                        pos[CLEAN] = 0
                        break
    return pos[CLEAN] >= g


@njit
def change_of(state, i, d, fit_a, fit_d):
    """Return what moving group i to cluster d changes the cost by, from its fits to both."""
    a, w, own, free = np.int64(state.labels[i]), state.masses[i], state.diag[i], state.free
    counts, within = state.counts, state.within
    rest, joined = within[a] - 2.0 * fit_a + own, within[d] + 2.0 * fit_d + own
    change = part(free, rest, counts[a] - w) - part(free, within[a], counts[a])
    return change + part(free, joined, counts[d] + w) - part(free, within[d], counts[d])


@njit
def exact_change(state, i, d):
    """Return the same by the sums of the moment, O(r)."""
    a = np.int64(state.labels[i])
    fits = row_dot(state.matrix, i, state.sums, a), row_dot(state.matrix, i, state.sums, d)
    return change_of(state, i, d, fits[0], fits[1])


@njit
def descend_rows(state, groups, scores, changes, target):
    """Move groups to their best clusters where that lowers the cost, O(r) a candidate.

    ``scores`` (b, k) are the inner products of their rows of Z with the sums, or with older ones:
    they choose the cluster, and the sums of the moment decide whether it is better. For these
    groups ``changes`` and ``target``, (g,), are filled with the least change among all clusters,
    whatever their sizes, and where it leads. Returns the moves made.
    """
    counts, before = state.counts, state.pos[MOVES]
    for at in range(scores.shape[0]):
        i = groups[at]
        a = np.int64(state.labels[i])
        best, open_best = np.inf, np.inf
        to, open_to = -1, -1
        if state.movable[i]:
            for h in range(counts.size):
                if h != a:
                    v = change_of(state, i, h, scores[at, a], scores[at, h])
                    if v < best:
                        best, to = v, h
                    if v < open_best and counts[h] + state.masses[i] <= state.upper[h]:
                        open_best, open_to = v, h
        changes[i], target[i] = best, to
        if open_best < -state.tol and counts[a] - state.masses[i] >= state.lower[a]:
            if exact_change(state, i, open_to) < -state.tol:
                shift_group(state, i, open_to)
                changes[i] = np.inf
    return state.pos[MOVES] - before


@njit
def exchange(state, order, bounds, changes):
    """Swap groups that want into each other's clusters where that lowers Q; return the swaps.

    ``order`` sorts the groups by cluster, then by wanted cluster, then by their ``changes`` of
    :func:`descend_rows`. In it those of cluster a that want into b begin at bounds[a k + b].
    """
    counts, lower, upper, k = state.counts, state.lower, state.upper, state.counts.size
    swaps = 0
    for a in range(k):
        for b in range(a + 1, k):
            first, first_end = bounds[a * k + b], bounds[a * k + b + 1]
            second, second_end = bounds[b * k + a], bounds[b * k + a + 1]
            while first < first_end and second < second_end:
                i, j = order[first], order[second]
                if not changes[i] + changes[j] < -state.tol:
                    break
                more = state.masses[j] - state.masses[i]
                fits = lower[a] <= counts[a] + more <= upper[a]
                fits = fits and lower[b] <= counts[b] - more <= upper[b]
                change = exact_change(state, i, b) + exact_change(state, j, a)
                change += 4.0 * row_dot(state.matrix, i, state.matrix, j)
                if (more == 0 or fits) and change < -state.tol:
                    shift_group(state, i, b)
                    shift_group(state, j, a)
                    swaps += 1
                first += 1
                second += 1
    return swaps


@njit
def worth(free, count):
    """Return what a part of q counts for in the cost of a cluster, 0 in an empty one."""
    if count == 0:
        return 0.0
    return 1.0 / count if free else 1.0


@njit
def half_gain(diag, own, fit, v_own, v):
    """Return the part of a swap between clusters that belongs to a group of one of them.

    For groups of equal mass it is R_jj (v_a + v_b) + 2 U[a, j] v_a - 2 U[b, j] v_b for group j of
    b, with v_h = 1 / s_h, or 1 where sizes are ruled; ``own`` is U[b, j] and ``fit`` U[a, j].
    """
    return diag * (v + v_own) + 2.0 * (fit * v - own * v_own)


@njit
def fill_column(state, values, own, a, reach):
    """Fill column a of reach[b, a], (k, k): what groups of b add at most by going to a.

    It is their greatest half of a gain, -inf where there is none. ``own`` (g,) are the groups' fits
    to their own clusters; so only one row of the sums is read, as it lies in memory.
    """
    labels, diag, fits = state.labels, state.diag, state.sums[a]
    reach[:, a] = -np.inf
    if values[a] > 0.0:
        for j in range(labels.size):
            b = labels[j]
            if b != a and state.movable[j]:
                gain = half_gain(diag[j], own[j], fits[j], values[b], values[a])
                reach[b, a] = max(reach[b, a], gain)


@njit
def renew_reach(state, values, own, h, reach):
    """Bring ``own`` and ``reach`` up to date after a swap that changed cluster h."""
    labels, diag, U = state.labels, state.diag, state.sums
    reach[h] = -np.inf
    for j in range(labels.size):
        if labels[j] == h:
            own[j] = U[h, j]
            if state.movable[j]:
                for a in range(values.size):
                    if a != h and values[a] > 0.0:
                        gain = half_gain(diag[j], own[j], U[a, j], values[h], values[a])
                        reach[h, a] = max(reach[h, a], gain)
    fill_column(state, values, own, h, reach)


@njit
def swap(state, least, budget):
    """Swap each group in turn with its best partner where that lowers the cost, O(g) a group.

    Sizes stay within the bounds, or where they are. The matrix must be dense. Returns True when no
    swap helps. ``least`` (g,) is no greater than the entries of each row of the matrix, and with
    :func:`fill_column` it tells in O(k) which clusters have no partner of equal mass for a group.
    The budget counts their groups as well, so that a limit on it is a number of groups to look at.
    """
    R, labels, counts, masses = state.matrix, state.labels, state.counts, state.masses
    U, within, diag, free = state.sums, state.within, state.diag, state.free
    lower, upper, movable, pos = state.lower, state.upper, state.movable, state.pos
    g, k = labels.size, counts.size
    values, own, reach = np.empty(k), np.empty(g), np.empty((k, k))
    for h in range(k):
        values[h] = worth(free, counts[h])
    for j in range(g):
        own[j] = U[labels[j], j]
    for h in range(k):
        fill_column(state, values, own, h, reach)
    is_open = np.empty(k, dtype=np.bool_)
    # Whether the halves of gains tell of groups of different masses, too.
    is_told = not free or masses.min() == masses.max()
    while budget > 0 and pos[CLEAN] < g:
        i = pos[AT]
        pos[AT] = (i + 1) % g
        pos[CLEAN] += 1
        budget -= 1
        if not movable[i]:
            continue
        budget -= 4 * g
        a = np.int64(labels[i])
        w = masses[i]
        best = -state.tol
        partner = -1
        hope = not is_told
        for b in range(k):
            is_open[b] = False
            if b != a and counts[b] > 0:
                most = half_gain(diag[i], U[a, i], U[b, i], values[a], values[b]) + reach[b, a]
                # Half of tol is far more than the rounding by which both sums may differ.
                is_open[b] = most - 2.0 * least[i] * (values[a] + values[b]) > state.tol / 2
                hope = hope or is_open[b]
        if not hope:
            continue
        for j in range(g):
            b = labels[j]
            if not movable[j] or (not is_open[b] and (is_told or b == a or masses[j] == w)):
                continue
            more = masses[j] - w
            apart = diag[i] + diag[j] - 2.0 * R[i, j]
            of_a = apart + 2.0 * (U[a, j] - U[a, i])
            of_b = apart + 2.0 * (U[b, i] - U[b, j])
            if more == 0:
                change = -of_a * values[a] - of_b * values[b]
            elif lower[a] <= counts[a] + more <= upper[a] and (
                lower[b] <= counts[b] - more <= upper[b]
            ):
                change = part(free, within[a] + of_a, counts[a] + more)
                change += part(free, within[b] + of_b, counts[b] - more)
                change -= part(free, within[a], counts[a]) + part(free, within[b], counts[b])
            else:
                continue
            if change < best:
                best = change
                partner = j
        if partner >= 0:
            b = np.int64(labels[partner])
            shift_group(state, i, b)
            shift_group(state, partner, a)
            for h in (a, b):
                values[h] = worth(free, counts[h])
            for h in (a, b):
                renew_reach(state, values, own, h, reach)
            pos[CLEAN] = 0
            budget -= 4 * g
    return pos[CLEAN] >= g


@njit
def part_pairs(state, pairs, most):
    """Move groups until no pair is together that should not be, or for ``most`` moves; tabu search.

    Each move is one of the least price, of groups that are in such a pair, then of the least cost;
    sizes are left aside, and a group does not soon return. Returns the price that is left.
    """
    labels = state.labels
    g, k = labels.size, state.counts.size
    near, changes = np.empty(k), np.empty(k)
    closed = np.zeros((g, k), dtype=np.int64)
    best_labels = labels.copy()
    best_price = np.inf
    step = 0
    while True:
        total = 0.0
        troubled = 0
        found, to = -1, -1
        price, cost = np.inf, np.inf
        for i in range(g):
            if pairs.start[i] == pairs.start[i + 1]:
                continue
            fill_near(pairs, labels, i, near)
            a = labels[i]
            if near[a] == 0.0:
                continue
            total += near[a] / 2.0
            troubled += 1
            if not state.movable[i]:
                continue
            fill_changes(state, i, near, -1, changes)
            for h in range(k):
                more = near[h] - near[a]
                if h == a or closed[i, h] > step:
                    continue
                if more < price or (more == price and changes[h] < cost):
                    price = more
                    cost = changes[h]
                    found = i
                    to = h
        if total < best_price:
            best_price = total
            best_labels[:] = labels
        if total == 0.0 or step == most:
            break
        step += 1
        if found >= 0:
            closed[found, labels[found]] = step + 1 + step % 7 + (6 * troubled) // 10
            shift_group(state, found, to)
    relabel(state, best_labels)
    return best_price


@njit
def excess(count, least, most):
    """Return how far a size is out of its bounds."""
    return max(0, count - most, least - count)


@njit
def helps(saved, parting, counts, lower, upper, own, h, mass):
    """Tell whether a move parts pairs, so that a price is saved, or else brings sizes nearer.

    These arrays come by themselves: a whole state takes forty times as long to hand over.
    """
    if parting or saved < 0.0:
        return saved > 0.0
    before = excess(counts[own], lower[own], upper[own]) + excess(counts[h], lower[h], upper[h])
    own_then = excess(counts[own] - mass, lower[own], upper[own])
    return own_then + excess(counts[h] + mass, lower[h], upper[h]) < before


@njit
def price_moves(state, pairs, parting, costs, goals):
    """Set the cost for its mass of each group's best move that helps, and where it leads.

    ``parting`` says whether a move is to part pairs or to bring sizes within bounds; ``costs`` (g,)
    are inf where none does.
    """
    labels, masses, movable = state.labels, state.masses, state.movable
    counts, lower, upper = state.counts, state.lower, state.upper
    k = counts.size
    near, changes = np.empty(k), np.empty(k)
    for i in range(labels.size):
        costs[i] = np.inf
        if not movable[i] or (parting and pairs.start[i] == pairs.start[i + 1]):
            continue
        fill_near(pairs, labels, i, near)
        own, mass, ready = np.int64(labels[i]), masses[i], False
        for h in range(k):
            saved = near[own] - near[h]
            if h == own or not helps(saved, parting, counts, lower, upper, own, h, mass):
                continue
            if not ready:
                fill_changes(state, i, near, -1, changes)
                ready = True
            if changes[h] / mass < costs[i]:
                costs[i] = changes[h] / mass
                goals[i] = h


@njit
def make_moves(state, pairs, parting, groups, goals):
    """Make the moves of some groups from :func:`price_moves` that still help."""
    counts, lower, upper = state.counts, state.lower, state.upper
    near = np.empty(counts.size)
    for i in groups:
        fill_near(pairs, state.labels, i, near)
        own, h, mass = np.int64(state.labels[i]), goals[i], state.masses[i]
        if helps(near[own] - near[h], parting, counts, lower, upper, own, h, mass):
            shift_group(state, i, h)
