"""Compiled active-set solver of the small quadratic program behind a working set of planes.

    minimise  a^T Q a / 2 - q^T a   subject to   A a = r,  a >= 0,

with Q (N, N) positive semidefinite and A (m, N) of one or two rows. Variables that may differ from
zero are free, the others are fixed at zero. On the free ones F the step d from a centre c to the
optimum without bounds has a closed form: with M = Q + weight A^T A, which makes no difference where
A a = r,

    M_FF d_F = (q - Q c + weight A^T (r - A c) + A^T y)_F,   A_F d_F = r - A c,

so a step needs one Cholesky factor of M_FF, which is extended and shortened as variables are freed
and fixed, O(|F|^2) each. Dropping a free variable that blocks a step keeps A_F of full rank, so the
multipliers y always exist. Continuing with the optimum as the new centre removes rounding errors.

For 50 planes this takes a thirteenth of the time of daqp 0.11, for 200 a hundredth and less
(tests/benchmarks/bench_program.py).
"""

import numpy as np

from fastmmc.core.jit import njit, njit_sum

# Added to the diagonal of M, as a share of the largest entry, as planes soon become dependent. It
# pulls towards the centre, so rounds from ever better centres undo its effect.
RIDGE = 1e-12
MOST_ROUNDS = 200

# A variable is freed if its slope is steeper than the first share of the largest part of a slope,
# and than the second share of a bound on the terms of these sums, which is rounding.
SLOPE_TOLERANCE = 1e-11
ROUNDING = 1e-14

# Targets below this share of the largest one, also in their effect on Q a, are zero.
ZERO = 1e-13

# Replaces the largest entry of q if all are zero.
TINY = 1e-300


@njit_sum
def dot(x, y, size):
    """Return the sum of the first products."""
    total = 0.0
    for i in range(size):
        total += x[i] * y[i]
    return total


@njit
def largest(x):
    """Return the largest absolute value."""
    value = 0.0
    for i in range(x.size):
        value = max(value, abs(x[i]))
    return value


@njit
def add_scaled(out, x, factor, size):
    """Add a multiple of the first entries, in place."""
    for i in range(size):
        out[i] += factor * x[i]


@njit
def solve_forward(L, ahead, i):
    """Turn entry i of each right-hand side v into that of L^-1 v, in place."""
    for t in range(ahead.shape[0]):
        ahead[t, i] = (ahead[t, i] - dot(L[i], ahead[t], i)) / L[i, i]


@njit
def free_variable(L, size, ahead, Q, A, weight, ridge, free, j):
    """Extend the factor of M_FF by variable j, in place; ``ahead[0]`` holds its right-hand side."""
    row = L[size]
    own = Q[j, j] + ridge
    for t in range(A.shape[0]):
        own += weight * A[t, j] * A[t, j]
        ahead[t + 1, size] = A[t, j]
    for i in range(size):
        f = free[i]
        entry = Q[j, f]
        for t in range(A.shape[0]):
            entry += weight * A[t, j] * A[t, f]
        row[i] = (entry - dot(L[i], row, i)) / L[i, i]
    row[size] = np.sqrt(max(own - dot(row, row, size), ridge))
    free[size] = j
    solve_forward(L, ahead, size)


@njit
def fix_variable(L, size, ahead, free, at):
    """Remove the variable at a place from the factor of M_FF, in place.

    Without its row the factor has one entry above the diagonal in each later row. Rotations of
    neighbouring columns remove these, and are applied to the solved right-hand sides too.
    """
    for i in range(at, size - 1):
        free[i] = free[i + 1]
        for t in range(i + 2):
            L[i, t] = L[i + 1, t]
    for j in range(at, size - 1):
        length = np.hypot(L[j, j], L[j, j + 1])
        c, s = L[j, j] / length, L[j, j + 1] / length
        for i in range(j, size - 1):
            left, right = L[i, j], L[i, j + 1]
            L[i, j] = c * left + s * right
            L[i, j + 1] = c * right - s * left
        for t in range(ahead.shape[0]):
            left, right = ahead[t, j], ahead[t, j + 1]
            ahead[t, j] = c * left + s * right
            ahead[t, j + 1] = c * right - s * left


@njit
def solve_multipliers(S, rhs, y):
    """Solve S y = rhs for one or two unknowns."""
    if y.size == 1:
        y[0] = rhs[0] / S[0, 0]
        return
    determinant = S[0, 0] * S[1, 1] - S[0, 1] * S[1, 0]
    y[0] = (rhs[0] * S[1, 1] - rhs[1] * S[0, 1]) / determinant
    y[1] = (rhs[1] * S[0, 0] - rhs[0] * S[1, 0]) / determinant


@njit
def set_target(L, size, ahead, lack, centre, free, target, y):
    """Set the optimum on the free variables without bounds, and its multipliers y.

    With p = L^-1 v and B = L^-1 A_F^T, the rows of ``ahead``, B^T B y = r - A c - B^T p, and the
    step from the centre solves L^T d_F = p + B y.
    """
    m = lack.size
    S, rhs = np.empty((m, m)), np.empty(m)
    for t in range(m):
        rhs[t] = lack[t] - dot(ahead[t + 1], ahead[0], size)
        for u in range(m):
            S[t, u] = dot(ahead[t + 1], ahead[u + 1], size)
    solve_multipliers(S, rhs, y)
    for i in range(size):
        target[i] = ahead[0, i]
        for t in range(m):
            target[i] += ahead[t + 1, i] * y[t]
    for i in range(size - 1, -1, -1):
        target[i] /= L[i, i]
        add_scaled(target, L[i], -target[i], i)
    for i in range(size):
        target[i] += centre[free[i]]


@njit
def is_alone(A, free, size, f):
    """Tell whether an equation has f as its only free variable, and so determines it."""
    for t in range(A.shape[0]):
        if A[t, f] != 0.0:
            alone = True
            for i in range(size):
                alone = alone and (free[i] == f or A[t, free[i]] == 0.0)
            if alone:
                return True
    return False


@njit
def longest_step(Q, A, a, free, target, size):
    """Return the share of the way to the target within the bounds, and the blocking place or -1.

    Ties go to the lowest variable.
    """
    largest = total = 0.0
    for i in range(size):
        largest = max(largest, abs(target[i]))
        total += np.sqrt(Q[free[i], free[i]]) * abs(target[i])
    share, blocking = 1.0, -1
    for i in range(size):
        f = free[i]
        if target[i] < -ZERO * largest or target[i] * np.sqrt(Q[f, f]) < -ZERO * total:
            limit = a[f] / (a[f] - target[i])
            tied = limit == share and blocking >= 0 and f < free[blocking]
            # A variable that an equation determines is zero but for rounding, and must stay free.
            if (limit < share or tied) and not is_alone(A, free, size, f):
                share, blocking = limit, i
    return share, blocking


@njit
def steepest_variable(Q, q, A, a, free, size, is_free, y, slope, first):
    """Return the fixed variable that lowers the objective fastest if freed, or -1.

    With ``first`` it is the first one that lowers it at all. ``slope`` is work space. Also returns
    the tolerance of the slopes.
    """
    scale = 0.0
    for j in range(q.size):
        slope[j] = 0.0
        scale = max(scale, abs(q[j]))
    for i in range(size):
        add_scaled(slope, Q[free[i]], a[free[i]], q.size)
    found, longest, total = -1, 0.0, 0.0
    for j in range(q.size):
        scale = max(scale, abs(slope[j]))
        length = np.sqrt(Q[j, j])
        longest = max(longest, length)
        total += length * a[j]
    tolerance = max(SLOPE_TOLERANCE * scale, ROUNDING * longest * total)
    least = -tolerance
    for j in range(q.size):
        if not is_free[j]:
            value = slope[j] - q[j]
            for t in range(y.size):
                value -= A[t, j] * y[t]
            if value < least:
                found, least = j, value
                if first:
                    break
    return found, tolerance


@njit
def recentre(Q, q, A, r, weight, a, centre, base, lack):
    """Make a the centre c, set base = q - Q c + weight A^T (r - A c) and lack = r - A c.

    Returns the distance from the old centre (largest component).
    """
    n, m = q.size, r.size
    farthest = 0.0
    for t in range(m):
        lack[t] = r[t]
    for j in range(n):
        base[j] = q[j]
    for j in range(n):
        farthest = max(farthest, abs(a[j] - centre[j]))
        centre[j] = a[j]
        if a[j] != 0.0:
            add_scaled(base, Q[j], -a[j], n)
            for t in range(m):
                lack[t] -= A[t, j] * a[j]
    for t in range(m):
        add_scaled(base, A[t], weight * lack[t], n)
    return farthest


@njit
def set_right_side(L, size, ahead, base, free):
    """Solve L p = base_F anew, in place."""
    for i in range(size):
        ahead[0, i] = (base[free[i]] - dot(L[i], ahead[0], i)) / L[i, i]


@njit
def solve_program(Q, q, A, r, a, y, max_steps):
    """Solve the program from a feasible a (N,), in place, and set its multipliers y (m,).

    A of the entries of a that are not zero must have full rank; -1 stands for a zero that is to be
    free at first. At the optimum Q a - q - A^T y is zero where a > 0 and at least zero elsewhere.
    Returns the steps made, max_steps + 1 if that was not enough.
    """
    n, m = q.size, r.size
    # With this weight neither Q nor A^T A is lost in the rounding of the other, whatever the scales
    # of the features and of r are, nor in the ridge.
    weight = max(largest(q), TINY) / largest(r)
    scale = weight
    for j in range(n):
        scale = max(scale, Q[j, j])
    ridge = RIDGE * scale
    weight = max(weight, 10.0 * ridge)
    L = np.empty((n, n))
    free = np.empty(n, dtype=np.int64)
    is_free = np.empty(n, dtype=np.bool_)
    target, slope, ahead = np.empty(n), np.empty(n), np.empty((m + 1, n))
    centre, base, lack = np.empty(n), np.empty(n), np.empty(m)
    size = 0
    for j in range(n):
        centre[j] = 0.0
        is_free[j] = a[j] != 0.0
        a[j] = max(a[j], 0.0)
    recentre(Q, q, A, r, weight, a, centre, base, lack)
    for j in range(n):
        if is_free[j]:
            ahead[0, size] = base[j]
            free_variable(L, size, ahead, Q, A, weight, ridge, free, j)
            size += 1
    rounds = stalled = 0
    for step in range(max_steps):
        set_target(L, size, ahead, lack, centre, free, target, y)
        share, blocking = longest_step(Q, A, a, free, target, size)
        for i in range(size):
            f = free[i]
            moved = target[i] if blocking < 0 else a[f] + share * (target[i] - a[f])
            a[f] = max(moved, 0.0)
        if blocking >= 0:
            # Steps of length zero might run in a circle, which choosing the lowest index prevents.
            stalled = stalled + 1 if share == 0.0 else 0
            j = free[blocking]
            a[j] = 0.0
            is_free[j] = False
            fix_variable(L, size, ahead, free, blocking)
            size -= 1
            if centre[j] != 0.0:
                recentre(Q, q, A, r, weight, a, centre, base, lack)
                set_right_side(L, size, ahead, base, free)
            continue
        j, tolerance = steepest_variable(Q, q, A, a, free, size, is_free, y, slope, stalled > n)
        if j < 0:
            rounds += 1
            farthest = recentre(Q, q, A, r, weight, a, centre, base, lack)
            if ridge * farthest <= tolerance or rounds == MOST_ROUNDS:
                return step + 1
            set_right_side(L, size, ahead, base, free)
            continue
        ahead[0, size] = base[j]
        free_variable(L, size, ahead, Q, A, weight, ridge, free, j)
        is_free[j] = True
        size += 1
    return max_steps + 1
