"""Compiled loops of the interior-point method: what a Newton step does point by point.

Variables v between bounds are kept in parts, one row of each array a part. The dual coefficients
are their sums with signs: u = v, or u = v_0 - v_1 where deviations up to epsilon cost nothing.
``low`` and ``high`` are the bounds, ``z_low`` and ``z_high`` the multipliers, all above 0.
"""

from typing import NamedTuple

import numpy as np

from fastmmc.core.jit import njit


class Parts(NamedTuple):
    """Variables and multipliers of all parts (arrays are modified in place)."""

    sign: np.ndarray  # (p,) float64, 1 or -1
    cost: np.ndarray  # (p, n) float64, linear term of the objective
    low: np.ndarray  # (p, n) float64
    high: np.ndarray  # (p, n) float64
    v: np.ndarray  # (p, n) float64
    z_low: np.ndarray  # (p, n) float64
    z_high: np.ndarray  # (p, n) float64
    residual: np.ndarray  # (p, n) float64, of the dual feasibility
    weight: np.ndarray  # (p, n) float64, 1 / D
    rhs: np.ndarray  # (p, n) float64
    dv: np.ndarray  # (p, n) float64, where the step goes
    dz_low: np.ndarray  # (p, n) float64
    dz_high: np.ndarray  # (p, n) float64


@njit
def weigh(parts, q, proximal, total):
    """Set the dual residuals, with q = K u + b, and total = sum of the weights 1 / D over parts."""
    total[:] = 0.0
    for p in range(parts.v.shape[0]):
        for i in range(q.size):
            below = parts.v[p, i] - parts.low[p, i]
            above = parts.high[p, i] - parts.v[p, i]
            z_low, z_high = parts.z_low[p, i], parts.z_high[p, i]
            parts.residual[p, i] = parts.cost[p, i] + parts.sign[p] * q[i] - z_low + z_high
            weight = 1.0 / (z_low / below + z_high / above + proximal)
            parts.weight[p, i] = weight
            total[i] += weight


@njit
def aim(parts, mu, corrected, h):
    """Set right-hand sides that aim at products mu, and h = their sum times weight and sign.

    ``corrected`` adds the second-order error of the step before.
    """
    h[:] = 0.0
    for p in range(parts.v.shape[0]):
        for i in range(h.size):
            low, high = mu, mu
            if corrected:
                low -= parts.dv[p, i] * parts.dz_low[p, i]
                high += parts.dv[p, i] * parts.dz_high[p, i]
            # Until `direct`, the change of the multipliers if the variables do not change.
            to_low = low / (parts.v[p, i] - parts.low[p, i]) - parts.z_low[p, i]
            to_high = high / (parts.high[p, i] - parts.v[p, i]) - parts.z_high[p, i]
            parts.dz_low[p, i] = to_low
            parts.dz_high[p, i] = to_high
            parts.rhs[p, i] = to_low - to_high - parts.residual[p, i]
            h[i] += parts.sign[p] * parts.weight[p, i] * parts.rhs[p, i]


@njit
def direct(parts, dq):
    """Turn the change dq of K u + b into the step; return the greatest feasible length of it."""
    # The inverse of the length: a plain maximum, without a branch.
    inverse = 1.0
    for p in range(parts.v.shape[0]):
        for i in range(dq.size):
            below = parts.v[p, i] - parts.low[p, i]
            above = parts.high[p, i] - parts.v[p, i]
            z_low, z_high = parts.z_low[p, i], parts.z_high[p, i]
            dv = parts.weight[p, i] * (parts.rhs[p, i] - parts.sign[p] * dq[i])
            dz_low = parts.dz_low[p, i] - z_low / below * dv
            dz_high = parts.dz_high[p, i] + z_high / above * dv
            parts.dv[p, i] = dv
            parts.dz_low[p, i] = dz_low
            parts.dz_high[p, i] = dz_high
            primal = max(-dv / below, dv / above)
            dual = max(-dz_low / z_low, -dz_high / z_high)
            inverse = max(inverse, max(primal, dual))
    return 1.0 / inverse


@njit
def complementarity(parts, length):
    """Return the mean product of slacks and multipliers after a step of this length."""
    total = 0.0
    for p in range(parts.v.shape[0]):
        for i in range(parts.v.shape[1]):
            v = parts.v[p, i] + length * parts.dv[p, i]
            total += (parts.z_low[p, i] + length * parts.dz_low[p, i]) * (v - parts.low[p, i])
            total += (parts.z_high[p, i] + length * parts.dz_high[p, i]) * (parts.high[p, i] - v)
    return total / (2 * parts.v.size)


@njit
def go(parts, length, edge, u):
    """Make a step and set u; variables keep the share ``edge`` of their box from its bounds."""
    u[:] = 0.0
    for p in range(parts.v.shape[0]):
        for i in range(u.size):
            low, high = parts.low[p, i], parts.high[p, i]
            least = edge * (high - low)
            v = parts.v[p, i] + length * parts.dv[p, i]
            v = min(max(v, low + least), high - least)
            parts.v[p, i] = v
            parts.z_low[p, i] += length * parts.dz_low[p, i]
            parts.z_high[p, i] += length * parts.dz_high[p, i]
            u[i] += parts.sign[p] * v
