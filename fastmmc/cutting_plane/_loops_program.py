"""Compiled active-set solver of the small quadratic program behind a working set of planes.

    minimise  a^T Q a / 2 - q^T a   subject to   A a = r,  a >= 0,

with Q (N, N) positive semidefinite and A (m, N) of one or two rows. Variables that may differ from
zero are free, the others are fixed at zero. On the free ones F the step d to the optimum without
bounds, and its multipliers y, solve

    Q_FF d_F - A_F^T y = (q - Q a)_F,   A_F d_F = r - A a,

afresh in each step, O(|F|^3): an optimum has few free variables. A step ends where a variable
reaches its bound and is fixed; a whole step is followed by freeing a variable. Fixing only the
variable that blocks a step keeps A_F of full rank, so y always exists. A ridge keeps Q_FF positive
definite, and further steps from the optimum remove its effect and rounding errors.

For 50 planes this takes a third of the time of daqp 0.11, for 200 a twentieth
(tests/benchmarks/bench_program.py).
"""

import numpy as np

from fastmmc.core.jit import njit

# Added to the diagonal of Q_FF, as a share of the largest entry, as planes soon become dependent.
# It shortens the step, so rounds from ever better points undo its effect.
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


@njit
def largest(x):
    """Return the largest absolute value."""
    value = 0.0
    for i in range(x.size):
        value = max(value, abs(x[i]))
    return value


@njit
def find_step(Q, A, slope, lack, ridge, free, y):
    """Return the step (|F|,) to the optimum on the free variables, and set the multipliers y (m,).

    ``slope`` is Q a - q and ``lack`` r - A a.
    """
    n = free.size
    M = np.zeros((n + y.size, n + y.size))
    M[:n, :n] = Q[free][:, free] + ridge * np.eye(n)
    M[n:, :n] = A[:, free]
    M[:n, n:] = -A[:, free].T
    found = np.linalg.solve(M, np.concatenate((-slope[free], lack)))
    y[:] = found[n:]
    return found[:n]


@njit
def is_alone(A, free, f):
    """Tell whether an equation has f as its only free variable, and so determines it."""
    for t in range(A.shape[0]):
        if A[t, f] != 0.0 and np.count_nonzero(A[t][free]) == 1:
            return True
    return False


@njit
def longest_step(Q, A, a, free, target):
    """Return the share of the way to the target within the bounds, and what blocks it, or -1."""
    lengths = np.sqrt(np.diag(Q))[free]
    most, total = largest(target), (lengths * np.abs(target)).sum()
    share, blocking = 1.0, -1
    for i in range(free.size):
        if target[i] < -ZERO * most or target[i] * lengths[i] < -ZERO * total:
            limit = a[free[i]] / (a[free[i]] - target[i])
            # A variable that an equation determines is zero but for rounding, and must stay free.
            if limit < share and not is_alone(A, free, free[i]):
                share, blocking = limit, i
    return share, blocking


@njit
def steepest_variable(Q, q, A, a, slope, is_free, y, first):
    """Return the fixed variable that lowers the objective fastest if freed, or -1.

    With ``first`` it is the first one that lowers it at all. Also returns the tolerance of slopes.
    """
    lengths = np.sqrt(np.diag(Q))
    scale = max(largest(q), largest(slope + q))
    tolerance = max(SLOPE_TOLERANCE * scale, ROUNDING * lengths.max() * (lengths * a).sum())
    found, least = -1, -tolerance
    for j in range(q.size):
        if not is_free[j]:
            value = slope[j]
            for t in range(y.size):
                value -= A[t, j] * y[t]
            if value < least:
                found, least = j, value
                if first:
                    break
    return found, tolerance


@njit
def solve_program(Q, q, A, r, a, y, max_steps):
    """Solve the program from a feasible a (N,), in place, and set its multipliers y (m,).

    A of the entries of a that are not zero must have full rank; -1 stands for a zero that is to be
    free at first. At the optimum Q a - q - A^T y is zero where a > 0 and at least zero elsewhere.
    Returns the steps made, max_steps + 1 if that was not enough, or numbers were out of range.
    """
    ridge = RIDGE * max(max(largest(q), TINY) / largest(r), np.diag(Q).max())
    is_free = a != 0.0
    a[:] = np.maximum(a, 0.0)
    rounds = stalled = 0
    for n_steps in range(1, max_steps + 1):
        slope, free = Q @ a - q, np.flatnonzero(is_free)
        if not np.isfinite(slope.sum() + ridge):
            break
        step = find_step(Q, A, slope, r - A @ a, ridge, free, y)
        if not np.isfinite(step.sum()):
            break
        share, blocking = longest_step(Q, A, a, free, a[free] + step)
        a[free] = np.maximum(a[free] + share * step, 0.0)
        if blocking >= 0:
            # Steps of length zero might run in a circle, which choosing the lowest index prevents.
            stalled = stalled + 1 if share == 0.0 else 0
            a[free[blocking]] = 0.0
            is_free[free[blocking]] = False
            continue
        slope = Q @ a - q
        j, tolerance = steepest_variable(Q, q, A, a, slope, is_free, y, stalled > q.size)
        if j >= 0:
            is_free[j] = True
            continue
        rounds += 1
        if ridge * largest(step) <= tolerance or rounds == MOST_ROUNDS:
            return n_steps
    return max_steps + 1
