"""Compiled loops of competitive learning: prototypes that move while objects are presented.

Distances are squared. ``wins`` are the learning steps of each prototype plus one: where they weigh
the distances (FSCL, RPCL), their common factor 1 / sum(wins) changes no comparison and is left
out. Constraints name objects by their row in ``memory``, so that a fit, whose memory holds all
constrained objects, and a stream, which remembers only some of them, share the loops.
"""

from typing import NamedTuple

import numpy as np

from fastmmc.core.jit import njit, njit_sum
from fastmmc.kernels._loops_centers import distances_to

# compiled-with: _loops_centers.py e99672cc88a0

# A prototype beyond this squared distance is driven no farther, as it would overflow.
FAR = 1e100


class Rule(NamedTuple):
    """How a method learns from an object: prototypes move at alpha / (1 + decay (wins - 1))."""

    weighted: bool  # whether wins weigh the distances; else constraints are those of O-LCVQE
    alpha: float  # towards an object
    beta: float = 0.0  # away from it, slowed down likewise
    decay: float = 0.0  # 0: always as far
    once: bool = True  # O-LCVQE: an object moves a prototype at most once a presentation


class Prototypes(NamedTuple):
    """Prototypes and work space (arrays are modified in place)."""

    centers: np.ndarray  # (k, d) float64
    wins: np.ndarray  # (k,) float64, learning steps plus 1
    distance: np.ndarray  # (k,) float64, of the object at hand
    cost: np.ndarray  # (k,) float64, distances weighted by wins
    other: np.ndarray  # (k,) float64, distances or costs of a partner
    forbidden: np.ndarray  # (k,) int64, whether it is the winner of a cannot-linked partner
    votes: np.ndarray  # (k,) int64, must-linked partners whose winner it is
    learned: np.ndarray  # (k,) int64, whether it learned the object at hand already


class Links(NamedTuple):
    """Constraints of n objects in compressed rows; partners are rows of the memory."""

    memory: np.ndarray  # (m, d), objects that constraints name
    seen: np.ndarray  # (m,) uint8, whether an object counts as a partner; modified in place
    own: np.ndarray  # (n,) int64, an object's row in the memory, -1: it has none
    cannot_start: np.ndarray  # (n + 1,) int64
    cannot: np.ndarray  # int64
    must_start: np.ndarray  # (n + 1,) int64
    must: np.ndarray  # int64


@njit_sum
def distance_to(X, i, centers, j):
    """Return |x_i - mu_j|^2."""
    total = 0.0
    for f in range(centers.shape[1]):
        difference = X[i, f] - centers[j, f]
        total += difference * difference
    return total


@njit
def assign(X, centers, labels, sums, sizes):
    """Assign every object to its nearest prototype and add it up; return the sum of distances."""
    row = np.empty(centers.shape[0])
    total = 0.0
    for i in range(X.shape[0]):
        distances_to(X, i, centers, row)
        j = smallest(row)
        labels[i] = j
        total += row[j]
        sizes[j] += 1
        for f in range(centers.shape[1]):
            sums[j, f] += X[i, f]
    return total


@njit
def assign_screened(X, centers, products, norms, margin, labels, sums, sizes):
    """Do as :func:`assign`, with distances only where the products X centers^T leave a doubt.

    ``norms`` are |mu_j|^2. If |mu_j|^2 - 2 x . mu_j of the two nearest prototypes differ by no
    more than the margin, rounding may have swapped them, and all distances are computed.
    """
    k = norms.size
    row = np.empty(k)
    for i in range(X.shape[0]):
        for j in range(k):
            row[j] = norms[j] - 2.0 * products[i, j]
        best = smallest(row)
        bound = row[best] + margin
        n_near = 0
        for j in range(k):
            n_near += 1 if row[j] <= bound else 0
        if n_near > 1:
            distances_to(X, i, centers, row)
            best = smallest(row)
        labels[i] = best
        sizes[best] += 1
        for f in range(centers.shape[1]):
            sums[best, f] += X[i, f]


@njit
def sum_distances(X, centers, labels):
    """Return the sum of the squared distances of objects to the prototypes of their labels."""
    total = 0.0
    for i in range(X.shape[0]):
        total += distance_to(X, i, centers, labels[i])
    return total


@njit
def smallest(values):
    """Return the index of the smallest value, the first one."""
    # Without branches, which the processor would guess wrong.
    best, least = 0, values[0]
    for j in range(1, values.size):
        value = values[j]
        smaller = value < least
        best = j if smaller else best
        least = value if smaller else least
    return best


@njit
def smallest_but(values, left_out):
    """Return the index of the smallest value but for one, the first; -1 if there is no other."""
    if values.size == 1:
        return -1
    value = values[left_out]
    values[left_out] = np.inf
    best = smallest(values)
    values[left_out] = value
    # The others may be infinite, too.
    return max(best, 1) if left_out == 0 else best


@njit_sum
def weigh(distance, wins, cost):
    """Set cost_j = wins_j distance_j, by which prototypes compete where wins weigh distances."""
    for j in range(cost.size):
        cost[j] = wins[j] * distance[j]


@njit
def move(centers, j, X, i, rate):
    """Move prototype j the share ``rate`` of the way to object i, away from it if negative."""
    for f in range(centers.shape[1]):
        centers[j, f] += rate * (X[i, f] - centers[j, f])


@njit
def rate(base, decay, wins):
    """Return a rate for a prototype with these wins."""
    return base if decay == 0.0 else base / (1.0 + decay * (wins - 1.0))


@njit
def learn(prototypes, j, X, i, rule):
    """Let prototype j learn an object."""
    wins = prototypes.wins
    move(prototypes.centers, j, X, i, rate(rule.alpha, rule.decay, wins[j]))
    wins[j] += 1.0


@njit
def unlearn(prototypes, j, X, i, rule, distance):
    """Drive prototype j away from an object at that squared distance."""
    if distance < FAR:
        step = rate(rule.beta, rule.decay, prototypes.wins[j])
        move(prototypes.centers, j, X, i, -step)


@njit
def count_winners(prototypes, links, start, partners, i, counts):
    """Set counts_j to the number of an object's partners whose winner is prototype j."""
    counts[:] = 0
    for p in range(start[i], start[i + 1]):
        o = partners[p]
        if links.seen[o]:
            distances_to(links.memory, o, prototypes.centers, prototypes.other)
            weigh(prototypes.other, prototypes.wins, prototypes.other)
            counts[smallest(prototypes.other)] += 1


@njit
def allowed_winner(prototypes, links, i, j):
    """Return j if the constraints of object i let it win, else the winner that they allow.

    The winners of cannot-linked partners are forbidden, unless that is all prototypes. Of the
    others those that win most must-linked partners are allowed.
    """
    forbidden, votes, cost = prototypes.forbidden, prototypes.votes, prototypes.cost
    count_winners(prototypes, links, links.cannot_start, links.cannot, i, forbidden)
    if forbidden[smallest(forbidden)] > 0:
        forbidden[:] = 0
    count_winners(prototypes, links, links.must_start, links.must, i, votes)
    most = 0
    for m in range(votes.size):
        if forbidden[m] == 0:
            most = max(most, votes[m])
    if forbidden[j] == 0 and votes[j] == most:
        return j
    best = -1
    for m in range(votes.size):
        if forbidden[m] == 0 and votes[m] == most and (best < 0 or cost[m] < cost[best]):
            best = m
    return best


@njit
def present(X, rows, ids, prototypes, links, rule, total, labels):
    """Present objects: where wins weigh the distances, to FSCL, RPCL or C-RPCL, else to O-LCVQE.

    Object ids[t] is row rows[t] of X. FSCL has no beta, RPCL and FSCL have no constraints; without
    these O-LCVQE is WTA. Sets labels[t] to the prototype that was nearest when it was presented,
    and returns the total with their squared distances added.
    """
    centers, wins = prototypes.centers, prototypes.wins
    distance, cost = prototypes.distance, prototypes.cost
    weighted, alpha, beta, decay = rule.weighted, rule.alpha, rule.beta, rule.decay
    seen, own = links.seen, links.own
    cannot_start, must_start = links.cannot_start, links.must_start
    # Calls that take the tuples copy them: only objects in constraints can afford that.
    for t in range(rows.size):
        r, i = rows[t], ids[t]
        distances_to(X, r, centers, distance)
        learner = smallest(distance)
        labels[t] = learner
        total += distance[learner]
        linked = cannot_start[i] < cannot_start[i + 1] or must_start[i] < must_start[i + 1]
        has_learned = False
        if weighted:
            weigh(distance, wins, cost)
            winner = smallest(cost)
            learner = allowed_winner(prototypes, links, i, winner) if linked else winner
            # The rival: the second best, or the winner itself where its win is not allowed.
            rival = smallest_but(cost, winner) if learner == winner else winner
            if rival >= 0 and beta > 0.0 and distance[rival] < FAR:
                move(centers, rival, X, r, -rate(beta, decay, wins[rival]))
        elif linked:
            has_learned = learn_links(X, r, i, learner, prototypes, links, rule)
        if not has_learned:
            move(centers, learner, X, r, rate(alpha, decay, wins[learner]))
            wins[learner] += 1.0
        if own[i] >= 0:
            seen[own[i]] = 1
    return total


@njit
def learn_object(prototypes, j, X, r, rule):
    """Let prototype j learn the object at hand, perhaps at most once a presentation."""
    if not (rule.once and prototypes.learned[j]):
        learn(prototypes, j, X, r, rule)
        prototypes.learned[j] = 1


@njit
def present_must_link(X, r, j, o, prototypes, links, rule):
    """Learn from a must-link between the object at hand, whose winner is j, and its partner o."""
    centers, memory, other = prototypes.centers, links.memory, prototypes.other
    distances_to(memory, o, centers, other)
    n = smallest(other)
    if n == j:
        learn_object(prototypes, j, X, r, rule)
        return
    own_j, own_n = distance_to(X, r, centers, j), distance_to(X, r, centers, n)
    apart = 0.5 * (own_j + other[n]) + 0.25 * (own_n + other[j])
    both_j, both_n = 0.5 * (own_j + other[j]), 0.5 * (own_n + other[n])
    if apart <= both_j and apart <= both_n:
        learn_object(prototypes, j, X, r, rule)
        learn(prototypes, j, memory, o, rule)
        learn_object(prototypes, n, X, r, rule)
    elif both_j <= both_n:
        learn_object(prototypes, j, X, r, rule)
        learn(prototypes, j, memory, o, rule)
        unlearn(prototypes, n, memory, o, rule, other[n])
    else:
        learn_object(prototypes, n, X, r, rule)


@njit
def present_cannot_link(X, r, j, o, prototypes, links, rule):
    """Learn from a cannot-link between the object at hand, whose winner is j, and its partner o.

    Both in one cluster: the paper compares the costs of leaving them there and of giving the
    farther one to the next prototype. The first is never less, so the object moves.
    """
    centers, memory, other = prototypes.centers, links.memory, prototypes.other
    distances_to(memory, o, centers, other)
    if smallest(other) != j or centers.shape[0] == 1:
        learn_object(prototypes, j, X, r, rule)
        return
    if other[j] > distance_to(X, r, centers, j):
        n = smallest_but(other, j)
        learn(prototypes, n, memory, o, rule)
        unlearn(prototypes, j, memory, o, rule, other[j])
        learn_object(prototypes, j, X, r, rule)
    else:
        distances_to(X, r, centers, other)
        learn_object(prototypes, smallest_but(other, j), X, r, rule)


@njit
def learn_links(X, r, i, j, prototypes, links, rule):
    """Learn from the links of object i, row r of X, whose winner is j; tell if there were any."""
    prototypes.learned[:] = 0
    has_learned = False
    for p in range(links.must_start[i], links.must_start[i + 1]):
        if links.seen[links.must[p]]:
            present_must_link(X, r, j, links.must[p], prototypes, links, rule)
            has_learned = True
    for p in range(links.cannot_start[i], links.cannot_start[i + 1]):
        if links.seen[links.cannot[p]]:
            present_cannot_link(X, r, j, links.cannot[p], prototypes, links, rule)
            has_learned = True
    return has_learned


@njit
def list_partners(known, own, memory_size, equal, given_start, given):
    """Return the partners of objects in compressed rows: given ones, and those labels imply.

    ``known`` are the labels of the memory, -1 where unknown; ``own`` is an object's row there, -1:
    none. Labels imply earlier objects of equal, or of other ones among the last ``memory_size``;
    given partners are among these too. They rise.
    """
    start, partners = np.empty(own.size + 1, dtype=np.int64), given[:0].copy()
    for fill in (False, True):
        count = 0
        for i in range(own.size):
            start[i] = count
            p, end = given_start[i], given_start[i + 1]
            label = known[own[i]] if own[i] >= 0 else -1
            if label < 0:
                if fill:
                    partners[count : count + end - p] = given[p:end]
                count += end - p
                continue
            for o in range(max(0, own[i] - memory_size), own[i]):
                is_given = p < end and given[p] == o
                p += 1 if is_given else 0
                if is_given or (known[o] >= 0 and (known[o] == label) == equal):
                    if fill:
                        partners[count] = o
                    count += 1
        start[own.size] = count
        if not fill:
            partners = np.empty(count, dtype=np.int64)
    return start, partners


@njit
def enforce_linear(D, labels, pairs, is_must):
    """Change labels of linked objects as LCVQE does; D are their distances, (m, k).

    Of two cannot-linked objects in one cluster the farther one, on a tie the first, goes to its
    next prototype: leaving it is never cheaper.
    """
    for c in range(pairs.shape[0]):
        a, b = pairs[c, 0], pairs[c, 1]
        j, n = labels[a], labels[b]
        if is_must and j != n:
            apart = 0.5 * (D[a, j] + D[b, n]) + 0.25 * (D[a, n] + D[b, j])
            both_j, both_n = 0.5 * (D[a, j] + D[b, j]), 0.5 * (D[a, n] + D[b, n])
            if min(both_j, both_n) < apart:
                labels[a] = labels[b] = j if both_j <= both_n else n
        elif not is_must and j == n and D.shape[1] > 1:
            farther = b if D[b, j] > D[a, j] else a
            labels[farther] = smallest_but(D[farther], j)


@njit
def pull_linear(D, labels, must, cannot, pulls):
    """Add to ``pulls`` (k, m) with what weights violated constraints pull prototypes to objects.

    Each of two must-linked objects that are apart pulls the other's prototype with weight 1/2; of
    two cannot-linked ones that are together the farther one pulls its next prototype. Returns what
    they add to the objective of LCVQE: half the squared distances to what they pull, so weighted.
    """
    cost = 0.0
    for c in range(must.shape[0]):
        a, b = must[c, 0], must[c, 1]
        j, n = labels[a], labels[b]
        if j != n:
            pulls[j, b] += 0.5
            pulls[n, a] += 0.5
            cost += 0.25 * (D[b, j] + D[a, n])
    for c in range(cannot.shape[0]):
        a, b = cannot[c, 0], cannot[c, 1]
        j = labels[a]
        if labels[b] == j and D.shape[1] > 1:
            farther = b if D[b, j] > D[a, j] else a
            n = smallest_but(D[farther], j)
            pulls[n, farther] += 1.0
            cost += 0.5 * D[farther, n]
    return cost


@njit
def enforce_pairs(D, between, nearest, labels, pairs, is_must):
    """Change labels of linked objects as CVQE does: the best of all pairs of clusters."""
    for c in range(pairs.shape[0]):
        a, b = pairs[c, 0], pairs[c, 1]
        if (labels[a] != labels[b]) == is_must:
            place_pair(D, between, nearest, labels, a, b, is_must)


@njit
def place_pair(D, between, nearest, labels, a, b, is_must):
    """Give two objects to the clusters of the least cost, penalty included."""
    best = np.inf
    for p in range(D.shape[1]):
        for q in range(D.shape[1]):
            cost = 0.5 * (D[a, p] + D[b, q])
            if is_must and p != q:
                cost += 0.5 * between[p, q]
            elif not is_must and p == q:
                cost += 0.5 * between[p, nearest[p]]
            if cost < best:
                best = cost
                labels[a], labels[b] = p, q


@njit
def pull_pairs(between, nearest, labels, must, cannot, pulls):
    """Add to ``pulls`` (k, k) how often violated constraints pull prototypes to prototypes.

    The prototype of the first of two must-linked objects is pulled to that of the second, that of
    two cannot-linked objects to the prototype nearest to it. A single prototype has none. Returns
    what they add to the objective of CVQE: half the squared distances.
    """
    cost = 0.0
    for c in range(must.shape[0]):
        j, n = labels[must[c, 0]], labels[must[c, 1]]
        if j != n:
            pulls[j, n] += 1.0
            cost += 0.5 * between[j, n]
    for c in range(cannot.shape[0]):
        j = labels[cannot[c, 0]]
        if labels[cannot[c, 1]] == j and nearest.size > 1:
            pulls[j, nearest[j]] += 1.0
            cost += 0.5 * between[j, nearest[j]]
    return cost
