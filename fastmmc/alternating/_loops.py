"""Compiled loops of the alternating family: a dual solver on a Gram matrix.

The dual of a kernel machine with targets y and the loss max(0, upper (r - epsilon),
lower (r + epsilon)) of the residual r = y - f is, with ``upper`` >= 0 >= ``lower``,

    maximise D(u) = u^T y - u^T K u / 2 - epsilon |u|_1,   e^T u = 0,   lower <= u <= upper.

Regression has the box -C..C; a support vector machine has 0..C where y = 1 and -C..0 where
y = -1, with epsilon = 0. Both are one loop: one coordinate goes up, another as much down.

Bounds and the kink of |u| at 0 are offsets: a unit of u_i more gains ``grad_i + rise_i``, a unit
of u_j less costs ``grad_j + fall_j``, where grad = y - K u, rise is -inf at the upper bound and
fall is inf at the lower one.
"""

from typing import NamedTuple

import numpy as np

from fastmmc.core.jit import njit

# Interleaved streams of a scan, enough for the compiler to keep their loop and vectorise it.
LANES = 64

# Curvatures below this are rounding noise, between points that are alike to the kernel.
LEAST_CURVATURE = 1e-12


class Dual(NamedTuple):
    """State of the dual solver (arrays are modified in place)."""

    u: np.ndarray  # (n,) float64
    grad: np.ndarray  # (n,) float64, y - K u
    lower: np.ndarray  # (n,) float64
    upper: np.ndarray  # (n,) float64
    rise: np.ndarray  # (n,) float64
    fall: np.ndarray  # (n,) float64
    diag: np.ndarray  # (n,) float64, diagonal of K


@njit
def set_offsets(u, lower, upper, epsilon, rise, fall, i):
    """Set the offsets of coordinate i, for its bounds and the kink at 0."""
    rise[i] = -np.inf
    if u[i] < upper[i]:
        rise[i] = -epsilon if u[i] >= 0.0 else epsilon
    fall[i] = np.inf
    if u[i] > lower[i]:
        fall[i] = epsilon if u[i] <= 0.0 else -epsilon


@njit
def prepare(dual, epsilon):
    """Set the offsets of all coordinates after a change of u, its bounds or y."""
    for i in range(dual.u.size):
        set_offsets(dual.u, dual.lower, dual.upper, epsilon, dual.rise, dual.fall, i)


@njit
def move_and_scan(grad, rise, fall, row_i, row_j, step, high, low, where):
    """Subtract step (row_i - row_j) from the gradient, and find the extremes.

    Returns argmax and max of grad + rise, and min of grad + fall. Each of LANES interleaved
    streams keeps its own extremes, and their places as numbers of the same width, so that LLVM
    vectorises the loops.
    """
    n = grad.size
    high[:] = -np.inf
    low[:] = np.inf
    where[:] = 0.0
    whole = n // LANES * LANES
    for base in range(0, whole, LANES):
        g, first, second = grad[base:], row_i[base:], row_j[base:]
        up, down = rise[base:], fall[base:]
        start = float(base)
        for lane in range(LANES):
            g[lane] -= step * (first[lane] - second[lane])
        for lane in range(LANES):
            value = g[lane] + up[lane]
            better = value > high[lane]
            high[lane] = value if better else high[lane]
            where[lane] = start if better else where[lane]
        for lane in range(LANES):
            value = g[lane] + down[lane]
            low[lane] = value if value < low[lane] else low[lane]
    i, best = first_of_lanes(high, where)
    least = low[0]
    for lane in range(1, LANES):
        least = min(least, low[lane])
    for p in range(whole, n):
        grad[p] -= step * (row_i[p] - row_j[p])
        if grad[p] + rise[p] > best:
            i, best = p, grad[p] + rise[p]
        least = min(least, grad[p] + fall[p])
    return i, best, least


@njit
def first_of_lanes(value, where):
    """Return the place and value of the greatest entry of all streams, the first of equal ones."""
    i, best = int(where[0]), value[0]
    for lane in range(1, LANES):
        place = int(where[lane]) + lane
        if value[lane] > best or (value[lane] == best and place < i):
            i, best = place, value[lane]
    return i, best


@njit
def extremes(dual):
    """Return what to raise, the greatest gain of a rise, and the least cost of a descent."""
    room = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    return move_and_scan(dual.grad, dual.rise, dual.fall, dual.diag, dual.diag, 0.0, *room)


@njit
def subtract_rows(grad, K, rows, changes):
    """Update the gradient for changes of some coordinates: grad -= K changes."""
    for t in range(rows.size):
        row, change = K[rows[t]], changes[t]
        for p in range(grad.size):
            grad[p] -= change * row[p]


@njit
def copy_part(K, chosen, part):
    """Set part = K[chosen, chosen], (m, m)."""
    for a in range(chosen.size):
        row = K[chosen[a]]
        for b in range(chosen.size):
            part[a, b] = row[chosen[b]]


@njit
def steepest_partner(grad, fall, diag, row_i, i, up, high, where):
    """Return the coordinate that, lowered as i is raised, gains most to second order, or -1."""
    n = grad.size
    high[:] = 0.0
    where[:] = 0.0
    own = diag[i]
    whole = n // LANES * LANES
    for base in range(0, whole, LANES):
        g, down, d, row = grad[base:], fall[base:], diag[base:], row_i[base:]
        start = float(base)
        for lane in range(LANES):
            gain = max(up - (g[lane] + down[lane]), 0.0)
            value = gain * gain / max(own + d[lane] - 2.0 * row[lane], LEAST_CURVATURE)
            better = value > high[lane]
            high[lane] = value if better else high[lane]
            where[lane] = start if better else where[lane]
    j, best = first_of_lanes(high, where)
    for p in range(whole, n):
        gain = max(up - (grad[p] + fall[p]), 0.0)
        value = gain * gain / max(own + diag[p] - 2.0 * row_i[p], LEAST_CURVATURE)
        if value > best:
            j, best = p, value
    return j if best > 0.0 else -1


@njit
def move(u, lower, upper, i, j, step):
    """Move u_i up and u_j down by the step, or to a bound or the kink at 0; return how far."""
    top = 0.0 if u[i] < 0.0 else upper[i]
    bottom = 0.0 if u[j] > 0.0 else lower[j]
    rise, fall = top - u[i], u[j] - bottom
    step = min(step, rise, fall)
    u[i] = top if step == rise else u[i] + step
    u[j] = bottom if step == fall else u[j] - step
    return step


@njit
def solve_dual(K, dual, epsilon, tol, max_steps, budget):
    """Make steps until no pair violates the optimality conditions by more than tol.

    The working set is that of second order: the coordinate of the greatest gain, and the one that
    gains most together with it (Fan, Chen and Lin 2005). A step costs two passes of n.

    Returns the steps made, and whether the solver has ended: no pair violates, max_steps steps
    were made, or rounding leaves none.
    """
    u, grad, lower, upper, rise, fall, diag = dual
    highs, lows, where = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    i, high, low = extremes(dual)
    n_steps = used = 0
    while high - low > tol and n_steps < max_steps:
        if used >= budget:
            return n_steps, False
        j = steepest_partner(grad, fall, diag, K[i], i, high, highs, where)
        if j < 0:
            break
        curvature = diag[i] + diag[j] - 2.0 * K[i, j]
        gain = high - (grad[j] + fall[j])
        before_i, before_j = u[i], u[j]
        step = move(u, lower, upper, i, j, gain / max(curvature, LEAST_CURVATURE))
        if u[i] == before_i and u[j] == before_j:
            break  # the step is below the rounding of both
        set_offsets(u, lower, upper, epsilon, rise, fall, i)
        set_offsets(u, lower, upper, epsilon, rise, fall, j)
        i, high, low = move_and_scan(grad, rise, fall, K[i], K[j], step, highs, lows, where)
        n_steps += 1
        used += 2 * u.size
    return n_steps, True
