"""Compiled loops of EvoMMC and FastEvoMMC: (mu + nu) evolution of labels -1, +1.

The fitness is F(y) = n - y^T R y. Two forms of it, one loop each:

dense        t = R y is kept for every individual. Flipping the set S changes F by
             4 y_S^T t_S - 4 y_S^T R_SS y_S, O(s^2) whatever n is; t itself is updated only for
             children that survive, O(sn).
low rank     R = Z Z^T, u = Z^T y is kept. With w = Z_S^T y_S flipping S changes F by
             4 w^T u - 4 w^T w, O(sr); a survivor's u is u - 2 w.

Nearly all children are refused, and most of these for a reason that costs O(s) to see. As |R_ij|
is at most the root of R_ii R_jj, flipping S changes F by

    4 sum_S y_i t_i - 4 (sum_S root(R_ii))^2    or more.

In the low-rank form t is known of one individual only, the anchor. Another one's differs by
|z_i^T (u - u_anchor)|, at most root(R_ii) |u - u_anchor|, its slack, which is subtracted. A new
anchor is taken when n rows of Z have been read for want of a better bound: that is what it costs.

Individuals live in mu + nu slots, of which mu are in use, so a child can be built while its
parent is still there. Rows are passed as matrix and index: a view of a row counts references,
which costs more than what is done with it. Only the outermost functions take the whole
population: handing it on costs seconds of compilation.

Random numbers come from a generator whose state is in the arrays, so slices of any length and
the reference code draw the same ones.
"""

# compiled-with: _loops_moves.py e6bdd2864620
from typing import NamedTuple

import numpy as np

from fastmmc.core.jit import njit, njit_sum
from fastmmc.rls.engine._loops_moves import MOVES, RECORDS, record, row_dot, shift_row

# Tries to hit a fitting point at random before the points are gone through in turn.
TRIES = 64

# Slots of Population.pos beside MOVES, the children that survived, and RECORDS.
GENERATION = 2  # generations made
STALE = 3  # generations since the best fitness last fell
READ = 4  # rows of Z read since the anchor was taken
N_POS = 5

# What the drawing of a child costs, in elementary operations.
DRAW = 16


class Problem(NamedTuple):
    """What all restarts have in common."""

    matrix: np.ndarray  # (n, n) hat matrix R, or its (n, r) factor Z
    dense: bool  # which of the two it is
    diag: np.ndarray  # (n,) float64, diagonal of R
    root: np.ndarray  # (n,) float64, its square root
    lower: int  # bounds for the number of labels +1
    upper: int
    fixed: int  # flips of a mutation; 0: max(1, n / (t + 1)) in generation t
    distinct: bool  # whether children that equal an individual, up to the sign, are refused
    tol: float  # fitnesses that differ by less are equal


class Population(NamedTuple):
    """One restart: everything a loop reads and writes (arrays are modified in place)."""

    y: np.ndarray  # (mu + nu, n) int8 labels -1, +1
    cache: np.ndarray  # (mu + nu, n) t = R y, or (mu + nu, r) u = Z^T y, float64
    fitness: np.ndarray  # (mu + nu,) float64: mu ascending, then the children's, inf if refused
    n_plus: np.ndarray  # (mu + nu,) int64, labels +1 of the mu, then of children that survive
    slot: np.ndarray  # (mu + nu,) int64, where the individuals live; the rest are free
    parent: np.ndarray  # (nu,) int64, individual that a child comes from
    anchor: np.ndarray  # (1, n) float64 t of the anchor; (1, 0) if dense
    anchor_cache: np.ndarray  # (r,) float64 u of the anchor; (0,) if dense
    slack: np.ndarray  # (mu + nu,) float64 |u - u_anchor|; 0 if dense
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
def pick(y, own, wanted, mark, stamp, random):
    """Return a random point without the stamp and, unless wanted is 0, of that label; -1: none."""
    n = mark.size
    for _ in range(TRIES):
        j = int(uniform(random) * n)
        if mark[j] != stamp and (wanted == 0 or y[own, j] == wanted):
            return j
    start = int(uniform(random) * n)
    for step in range(n):
        j = (start + step) % n
        if mark[j] != stamp and (wanted == 0 or y[own, j] == wanted):
            return j
    return -1


@njit
def mutate(y, own, n_plus, n_wanted, lower, upper, flips, c, mark, stamp, random):
    """Choose the points that child c flips, within the bounds of +1 labels; return their number.

    Where a flip alone would break a bound, a random point of the opposite label is flipped with
    it and the sizes stay (Gieseke et al. 2009, footnote 2). That counts as two.
    """
    n_flips = 0
    while n_flips < n_wanted:
        j = pick(y, own, 0, mark, stamp, random)
        if j < 0:
            break
        mark[j] = stamp
        after = n_plus - y[own, j]
        if lower <= after <= upper:
            n_plus = after
        else:
            i = pick(y, own, -int(y[own, j]), mark, stamp, random)
            if i < 0:
                # Nothing to swap with: the point stays, and the child has one flip less.
                n_wanted -= 1
                continue
            mark[i] = stamp
            flips[c, n_flips] = i
            n_flips += 1
        flips[c, n_flips] = j
        n_flips += 1
    return n_flips


@njit
def opposite(y, own, j, random):
    """Return a random point of the other label than point j's; each label has a point."""
    while True:
        i = int(uniform(random) * y.shape[1])
        if y[own, i] != y[own, j]:
            return i


@njit
def dense_change(R, diag, y, own, t, flips, c, n_flips):
    """Return F(child) - F(parent) = 4 y_S^T t_S - 4 y_S^T R_SS y_S, O(s^2)."""
    total = 0.0
    for a in range(n_flips):
        i = flips[c, a]
        inner = 0.0
        for b in range(a):
            j = flips[c, b]
            inner += y[own, j] * R[i, j]
        total += y[own, i] * (t[own, i] - 2.0 * inner) - diag[i]
    return 4.0 * total


@njit_sum
def work_dot(work, u, own):
    """Return w^T (u - w) for w = ``work`` and row ``own`` of u."""
    total = 0.0
    for q in range(work.size):
        total += work[q] * (u[own, q] - work[q])
    return total


@njit_sum
def square_distance(u, own, v):
    """Return the squared distance of row ``own`` of u and the vector v."""
    total = 0.0
    for q in range(v.size):
        total += (u[own, q] - v[q]) * (u[own, q] - v[q])
    return total


@njit
def take_anchor(Z, cache, slot, mu, anchor, anchor_cache, slack):
    """Make the best individual the anchor, O(nr)."""
    for i in range(Z.shape[0]):
        anchor[0, i] = row_dot(Z, i, cache, slot[0])
    anchor_cache[:] = cache[slot[0]]
    for i in range(mu):
        slack[slot[i]] = np.sqrt(square_distance(cache, slot[i], anchor_cache))


@njit
def low_rank_change(Z, y, own, u, flips, c, n_flips, work):
    """Return F(child) - F(parent) = 4 w^T (u - w) with w = Z_S^T y_S, O(sr)."""
    work[:] = 0.0
    for a in range(n_flips):
        j = flips[c, a]
        for q in range(work.size):
            work[q] += y[own, j] * Z[j, q]
    return 4.0 * work_dot(work, u, own)


@njit
def flips_of(generation, n, fixed):
    """Return how many points to flip: max(1, n / (t + 1)) rounded down, or a fixed number.

    t counts from 1: at t = 0 all n labels would flip, which changes nothing.
    """
    return fixed if fixed > 0 else max(1, n // (generation + 2))


@njit
def same_labels(y, own, other, flips, c, n_flips):
    """Tell whether the child of ``own`` that flips these points equals ``other`` or its inverse."""
    agreement = 0
    for i in range(y.shape[1]):
        agreement += y[own, i] * y[other, i]
    for a in range(n_flips):
        agreement -= 2 * y[own, flips[c, a]] * y[other, flips[c, a]]
    return abs(agreement) == y.shape[1]


@njit
def is_new(y, own, slot, fitness, mu, value, flips, c, n_flips, tol):
    """Tell whether child c differs from all individuals and from its elder siblings."""
    for i in range(mu):
        if abs(fitness[i] - value) <= tol:
            if same_labels(y, own, slot[i], flips, c, n_flips):
                return False
    for b in range(mu, mu + c):
        # Two children of the same fitness are taken for equal: comparing their sets costs more
        # than the loss of one of two different ones.
        if abs(fitness[b] - value) <= tol:
            return False
    return True


@njit
def copy_flipped(y, origin, n_plus, flips, c, n_flips, free):
    """Copy the labels of a parent to a free slot and flip some; return how many are +1 then."""
    y[free] = y[origin]
    for a in range(n_flips):
        y[free, flips[c, a]] = -y[free, flips[c, a]]
        n_plus += y[free, flips[c, a]]
    return n_plus


@njit
def update_cache(matrix, y, origin, cache, flips, c, n_flips, free):
    """Fill the child's t - 2 R_S y_S, or u - 2 Z_S^T y_S, for the labels y of its parent."""
    cache[free] = cache[origin]
    for a in range(n_flips):
        j = flips[c, a]
        shift_row(cache[free], matrix[j], -2.0 * y[origin, j])


@njit
def evolve(problem, pop, patience, max_iter, budget):
    """Make generations (Gieseke et al. 2009, Algorithm 1); return whether the last one was made."""
    R, dense, diag, root = problem.matrix, problem.dense, problem.diag, problem.root
    lower, upper, tol = problem.lower, problem.upper, problem.tol
    y, cache, slot, fitness, n_plus = pop.y, pop.cache, pop.slot, pop.fitness, pop.n_plus
    parent, random, pos = pop.parent, pop.random, pop.pos
    smooth, slack = cache if dense else pop.anchor, pop.slack
    n = y.shape[1]
    nu = parent.size
    mu = fitness.size - nu
    generation, stale = pos[GENERATION], pos[STALE]
    # What each child flips: later ones no more, but the last flip may be a swap, which is two.
    flips = np.empty((nu, flips_of(generation, n, problem.fixed) + 1), dtype=np.int64)
    n_flips = np.empty(nu, dtype=np.int64)
    # The last mutation that flipped each point, and the newest.
    mark, stamp = np.zeros(n, dtype=np.int64), 0
    work = np.empty(cache.shape[1])
    while budget > 0 and stale < patience and generation < max_iter:
        if pos[RECORDS] + 1 >= pop.history.shape[0]:
            break
        n_wanted = flips_of(generation, n, problem.fixed)
        worst = fitness[mu - 1]
        survivors = 0
        for c in range(nu):
            p = int(uniform(random) * mu) if mu > 1 else 0
            own = slot[p]
            stamp += 1
            if n_wanted == 1:
                # What mutate does for one flip. A call would count references, which takes ten
                # times as long.
                j = int(uniform(random) * n)
                flips[c, 0] = j
                s = 1
                if not lower <= n_plus[p] - y[own, j] <= upper:
                    flips[c, 1] = opposite(y, own, j, random)
                    s = 2
            else:
                s = mutate(y, own, n_plus[p], n_wanted, lower, upper, flips, c, mark, stamp, random)
            row = own if dense else 0
            linear = 0.0
            roots = 0.0
            for a in range(s):
                i = flips[c, a]
                linear += y[own, i] * smooth[row, i] - slack[own] * root[i]
                roots += root[i]
            budget -= s + DRAW
            fitness[mu + c] = np.inf
            if fitness[p] + 4.0 * (linear - roots * roots) >= worst:
                continue
            if dense:
                value = fitness[p] + dense_change(R, diag, y, own, cache, flips, c, s)
                budget -= s * s
            else:
                if s == 1:
                    i = flips[c, 0]
                    value = fitness[p] + 4.0 * (y[own, i] * row_dot(R, i, cache, own) - diag[i])
                else:
                    value = fitness[p] + low_rank_change(R, y, own, cache, flips, c, s, work)
                budget -= s * work.size
                pos[READ] += s
            if value < worst and (
                not problem.distinct or is_new(y, own, slot, fitness, mu, value, flips, c, s, tol)
            ):
                survivors += 1
                parent[c] = p
                n_flips[c] = s
                fitness[mu + c] = value
        generation += 1
        stale += 1
        if pos[READ] > n:
            take_anchor(R, cache, slot, mu, pop.anchor, pop.anchor_cache, slack)
            pos[READ] = 0
            budget -= n * work.size
        if survivors > 0:
            before = fitness[0]
            # Of equals the parent, then the elder child, comes first.
            rank = np.argsort(fitness, kind="mergesort")
            n_new = 0
            # Children are built in free slots while every parent is still in place.
            for at in range(mu):
                if rank[at] < mu:
                    continue
                n_new += 1
                c = rank[at] - mu
                own, free, s = slot[parent[c]], slot[mu + c], n_flips[c]
                n_plus[mu + c] = copy_flipped(y, own, n_plus[parent[c]], flips, c, s, free)
                update_cache(R, y, own, cache, flips, c, s, free)
                if not dense:
                    slack[free] = np.sqrt(square_distance(cache, free, pop.anchor_cache))
            slot[:], fitness[:], n_plus[:] = slot[rank], fitness[rank], n_plus[rank]
            pos[MOVES] += n_new
            budget -= n_new * (n_wanted + 1) * n if dense else n_new * n
            if fitness[0] < before - tol:
                stale = 0
                pos[GENERATION] = generation
                record(pop.history, pos, generation, fitness[0])
    pos[GENERATION] = generation
    pos[STALE] = stale
    return stale >= patience or generation >= max_iter


@njit
def improving_swap(problem, y, shifts, order, largest, at, limit):
    """Look at pairs of points of different labels for one whose exchange lowers F.

    ``order`` sorts the points by their ``shifts`` y_j t_j - R_jj, with t = R y. As |R_ij| is at
    most the root of R_ii R_jj, and that at most the ``largest`` R_ii, few pairs are looked at. The
    (2,) ``at`` is the pair of places in ``order`` to begin with, and becomes the one reached.
    Returns 1 if ``at`` is such a pair, 0 if there is none, and -1 if there may be some from ``at``
    on, after ``limit`` pairs.
    """
    R, dense = problem.matrix, problem.dense
    a, b = at[0], at[1]
    while a < order.size:
        i = order[a]
        while b < order.size:
            j = order[b]
            separate = shifts[i] + shifts[j]
            if separate >= 2.0 * largest:
                break
            if y[i] != y[j]:
                if limit <= 0:
                    at[0], at[1] = a, b
                    return -1
                limit -= 1
                both = np.float64(R[i, j]) if dense else row_dot(R, i, R, j)
                if 4.0 * (separate + 2.0 * both) < -problem.tol:
                    at[0], at[1] = a, b
                    return 1
            b += 1
        if b == a + 1:
            # The next points go even less well with any other.
            return 0
        a += 1
        b = a + 1
    return 0
