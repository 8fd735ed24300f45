"""Compiled loops of EvoMMC and FastEvoMMC: (mu + nu) evolution of labels -1, +1.

The fitness is F(y) = n - y^T R y. Two forms of it, one loop each:

dense        t = R y is kept for every individual. Flipping the set S changes F by
             4 y_S^T t_S - 4 y_S^T R_SS y_S, O(s^2) whatever n is; t itself is updated only for
             children that survive, O(sn).
low rank     R = Z Z^T, u = Z^T y is kept. The child's is u - 2 Z_S^T y_S, O(sr), and its
             fitness n - |u|^2.

Individuals live in mu + nu slots, of which mu are in use, so a child can be built while its
parent is still there. Random numbers come from a generator whose state is in the arrays, so
slices of any length and the reference code draw the same ones.
"""

from typing import NamedTuple

import numpy as np

from fastmmc._jit import njit

# Tries to hit a fitting point at random before the points are gone through in turn.
TRIES = 64

# Slots of Population.pos.
GENERATION = 0  # generations made
STALE = 1  # generations since the best fitness last fell
ACCEPTED = 2  # children that survived
MARK = 3  # stamp of the newest mutation
RECORDS = 4  # history entries written since the caller last took them
N_POS = 5


class Population(NamedTuple):
    """One restart: everything a loop reads and writes (arrays are modified in place)."""

    y: np.ndarray  # (mu + nu, n) int8 labels -1, +1
    cache: np.ndarray  # (mu + nu, n) t = R y, or (mu + nu, r) u = Z^T y, float64
    fitness: np.ndarray  # (mu,) float64, ascending
    n_plus: np.ndarray  # (mu,) int64, labels +1
    slot: np.ndarray  # (mu + nu,) int64, where the individuals live; the rest are free
    parent: np.ndarray  # (nu,) int64, individual that a child comes from
    child_fitness: np.ndarray  # (nu,) float64
    child_plus: np.ndarray  # (nu,) int64
    n_flips: np.ndarray  # (nu,) int64
    flips: np.ndarray  # (nu, most) int64, points that a child flips
    child_cache: np.ndarray  # (nu, r) float64 u of the children; (nu, 0) if dense
    mark: np.ndarray  # (n,) int64, the last mutation that flipped a point
    rank: np.ndarray  # (mu + nu,) int64, work space
    random: np.ndarray  # (1,) uint64
    pos: np.ndarray  # (N_POS,) int64
    history: np.ndarray  # (capacity, 2) float64: generation, best fitness


@njit
def uniform(random):
    """Return the next number in [0, 1) (xorshift; its upper 53 bits)."""
    x = random[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    random[0] = x
    return np.float64(x >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit
def pick(y, wanted, mark, stamp, random):
    """Return a random point without the stamp and, unless wanted is 0, of that label; -1: none."""
    n = y.size
    for _ in range(TRIES):
        j = int(uniform(random) * n)
        if mark[j] != stamp and (wanted == 0 or y[j] == wanted):
            return j
    start = int(uniform(random) * n)
    for step in range(n):
        j = (start + step) % n
        if mark[j] != stamp and (wanted == 0 or y[j] == wanted):
            return j
    return -1


@njit
def mutate(y, n_plus, n_wanted, lower, upper, flips, mark, stamp, random):
    """Choose the points that a child flips, so that its +1 labels stay within bounds.

    Where a flip alone would break a bound, a random point of the opposite label is flipped with
    it and the sizes stay (Gieseke et al. 2009, footnote 2). That counts as two.

    Returns
    -------
    n_flips, n_plus : int
        Points chosen, and the child's +1 labels.
    """
    n_flips = 0
    while n_flips < n_wanted:
        j = pick(y, 0, mark, stamp, random)
        if j < 0:
            break
        mark[j] = stamp
        after = n_plus - y[j]
        if lower <= after <= upper:
            n_plus = after
        else:
            i = pick(y, -y[j], mark, stamp, random)
            if i < 0:
                # Nothing to swap with: the point stays, and the child has one flip less.
                mark[j] = 0
                n_wanted -= 1
                continue
            mark[i] = stamp
            flips[n_flips] = i
            n_flips += 1
        flips[n_flips] = j
        n_flips += 1
    return n_flips, n_plus


@njit
def dense_change(R, y, t, flips, n_flips):
    """Return F(child) - F(parent) = 4 y_S^T t_S - 4 y_S^T R_SS y_S, O(s^2)."""
    linear = 0.0
    square = 0.0
    for a in range(n_flips):
        i = flips[a]
        linear += y[i] * t[i]
        square += R[i, i]
        inner = 0.0
        for b in range(a):
            inner += y[flips[b]] * R[i, flips[b]]
        square += 2.0 * y[i] * inner
    return 4.0 * (linear - square)


@njit
def low_rank_cache(Z, y, u, flips, n_flips, out):
    """Fill ``out`` with the child's u - 2 Z_S^T y_S, O(sr); return |out|^2."""
    for q in range(u.size):
        out[q] = u[q]
    for a in range(n_flips):
        j = flips[a]
        scale = 2.0 * y[j]
        row = Z[j]
        for q in range(u.size):
            out[q] -= scale * row[q]
    total = 0.0
    for q in range(u.size):
        total += out[q] * out[q]
    return total


@njit
def flips_of(generation, n, fixed):
    """Return how many points to flip: max(1, n / (t + 1)) rounded down, or a fixed number."""
    if fixed > 0:
        return fixed
    return max(1, n // (generation + 2))


@njit
def same_labels(y, other, mark_of, stamp):
    """Tell whether the child of ``other`` that flips the stamped points equals y or -y."""
    n = y.size
    sign = 0
    for i in range(n):
        value = -other[i] if mark_of[i] == stamp else other[i]
        product = y[i] * value
        if sign == 0:
            sign = product
        elif product != sign:
            return False
    return True


@njit
def is_new(pop, mu, parent, fitness, n_children, stamp, tol):
    """Tell whether a child differs from all individuals and from its elder siblings."""
    y, slot = pop.y, pop.slot
    for i in range(mu):
        if abs(pop.fitness[i] - fitness) <= tol:
            if same_labels(y[slot[i]], y[slot[parent]], pop.mark, stamp):
                return False
    for c in range(n_children):
        # Two children of the same fitness are taken for equal: comparing their sets costs more
        # than the loss of one of two different ones.
        if abs(pop.child_fitness[c] - fitness) <= tol:
            return False
    return True


@njit
def select(fitness, child_fitness, rank):
    """Rank parents and children by fitness; of equals the parent, then the elder, is first."""
    mu, nu = fitness.size, child_fitness.size
    for i in range(mu + nu):
        value = fitness[i] if i < mu else child_fitness[i - mu]
        at = i
        while at > 0:
            before = rank[at - 1]
            other = fitness[before] if before < mu else child_fitness[before - mu]
            if other <= value:
                break
            rank[at] = before
            at -= 1
        rank[at] = i


@njit
def copy_labels(source, flips, n_flips, target):
    """Copy labels and flip some of them."""
    for i in range(source.size):
        target[i] = source[i]
    for a in range(n_flips):
        target[flips[a]] = -target[flips[a]]


@njit
def update_dense_cache(R, y, t, flips, n_flips, target):
    """Fill ``target`` with t - 2 R_S y_S for the parent's labels y, O(sn)."""
    for i in range(t.size):
        target[i] = t[i]
    for a in range(n_flips):
        row = R[flips[a]]
        scale = 2.0 * y[flips[a]]
        for i in range(t.size):
            target[i] -= scale * row[i]


@njit
def replace(R, pop, dense):
    """Let the mu best of parents and children live; return how many children survived."""
    y, cache, slot, rank = pop.y, pop.cache, pop.slot, pop.rank
    fitness, n_plus = pop.fitness, pop.n_plus
    mu, nu = fitness.size, pop.parent.size
    select(fitness, pop.child_fitness, rank)
    n_new = 0
    for at in range(mu):
        n_new += rank[at] >= mu
    if n_new == 0:
        return 0
    # Children are built in free slots first, while every parent is still in place.
    for at in range(mu):
        if rank[at] < mu:
            continue
        c = rank[at] - mu
        free = slot[mu + c]
        origin = slot[pop.parent[c]]
        copy_labels(y[origin], pop.flips[c], pop.n_flips[c], y[free])
        if dense:
            update_dense_cache(
                R, y[origin], cache[origin], pop.flips[c], pop.n_flips[c], cache[free]
            )
        else:
            for q in range(cache.shape[1]):
                cache[free, q] = pop.child_cache[c, q]
    new_slot = np.empty(mu + nu, dtype=np.int64)
    new_fitness = np.empty(mu)
    new_plus = np.empty(mu, dtype=np.int64)
    for at in range(mu + nu):
        i = rank[at]
        new_slot[at] = slot[i]
        if at < mu:
            new_fitness[at] = fitness[i] if i < mu else pop.child_fitness[i - mu]
            new_plus[at] = n_plus[i] if i < mu else pop.child_plus[i - mu]
    for at in range(mu + nu):
        slot[at] = new_slot[at]
    for at in range(mu):
        fitness[at] = new_fitness[at]
        n_plus[at] = new_plus[at]
    return n_new


@njit
def record(history, pos, value):
    """Append the generation and the best fitness to the history (the caller empties it)."""
    at = pos[RECORDS]
    history[at, 0] = pos[GENERATION]
    history[at, 1] = value
    pos[RECORDS] = at + 1


@njit
def evolve(R, pop, dense, lower, upper, fixed, distinct, patience, max_iter, tol, budget):
    """Make generations, one slice of them (Gieseke et al. 2009, Algorithm 1).

    Parameters
    ----------
    R : (n, n) or (n, r) array
        Hat matrix, or its factor Z.
    pop : Population
        Modified in place.
    dense : bool
        Whether R is the hat matrix itself.
    lower, upper : int
        Bounds for the number of labels +1.
    fixed : int
        Flips of a mutation; 0: max(1, n / (t + 1)) in generation t.
    distinct : bool
        Whether children that equal an individual, up to the sign, are refused.
    patience : int
        Generations without a better fitness after which to stop.
    max_iter : int
        Generations in all.
    tol : float
        Fitnesses that differ by less are equal.
    budget : int
        Elementary operations to spend.

    Returns
    -------
    bool
        True when patience or max_iter is used up.
    """
    y, cache, fitness, n_plus = pop.y, pop.cache, pop.fitness, pop.n_plus
    mark, random, pos = pop.mark, pop.random, pop.pos
    n = mark.size
    mu, nu = fitness.size, pop.parent.size
    while budget > 0 and pos[STALE] < patience and pos[GENERATION] < max_iter:
        if pos[RECORDS] + 1 >= pop.history.shape[0]:
            return False
        n_wanted = flips_of(pos[GENERATION], n, fixed)
        for c in range(nu):
            p = int(uniform(random) * mu) if mu > 1 else 0
            own = pop.slot[p]
            pos[MARK] += 1
            flips = pop.flips[c]
            n_flips, plus = mutate(
                y[own], n_plus[p], n_wanted, lower, upper, flips, mark, pos[MARK], random
            )
            if dense:
                value = fitness[p] + dense_change(R, y[own], cache[own], flips, n_flips)
                budget -= n_flips * n_flips + 16
            else:
                value = n - low_rank_cache(
                    R, y[own], cache[own], flips, n_flips, pop.child_cache[c]
                )
                budget -= (n_flips + 1) * cache.shape[1] + 16
            if distinct and not is_new(pop, mu, p, value, c, pos[MARK], tol):
                value = np.inf
            pop.parent[c] = p
            pop.n_flips[c] = n_flips
            pop.child_plus[c] = plus
            pop.child_fitness[c] = value
        pos[GENERATION] += 1
        pos[STALE] += 1
        before = fitness[0]
        n_new = replace(R, pop, dense)
        if n_new > 0:
            pos[ACCEPTED] += n_new
            budget -= n_new * (n_wanted + 1) * n if dense else n_new * n
            if fitness[0] < before - tol:
                pos[STALE] = 0
                record(pop.history, pos, fitness[0])
    return pos[STALE] >= patience or pos[GENERATION] >= max_iter


@njit
def no_flip_helps(y, t, diag, n_plus, lower, upper, tol):
    """Tell whether no single flip within the bounds lowers F; O(n)."""
    for j in range(y.size):
        if lower <= n_plus - y[j] <= upper and 4.0 * (y[j] * t[j] - diag[j]) < -tol:
            return False
    return True


@njit
def no_swap_helps(R, dense, y, t, diag, order, tol, limit):
    """Tell whether no swap of two points with different labels lowers F.

    ``order`` sorts the points by y_j t_j - R_jj. As |R_ij| is at most the root of R_ii R_jj, and
    that at most the largest R_ii, few pairs are looked at. Gives up (False) after ``limit``.
    """
    largest = 0.0
    for i in range(y.size):
        largest = max(largest, diag[i])
    for a in range(order.size):
        i = order[a]
        for b in range(a + 1, order.size):
            j = order[b]
            separate = y[i] * t[i] - diag[i] + y[j] * t[j] - diag[j]
            if separate >= 2.0 * largest:
                break
            if y[i] == y[j]:
                continue
            limit -= 1
            if limit < 0:
                return False
            if dense:
                both = R[i, j]
            else:
                both = 0.0
                for q in range(R.shape[1]):
                    both += R[i, q] * R[j, q]
            if 4.0 * (separate + 2.0 * both) < -tol:
                return False
    return True
