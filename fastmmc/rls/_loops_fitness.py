"""Compiled loops of the fitness as the EvoMMC paper evaluates it, O(sn) or O(sr) a child.

R = V diag(weight) V^T, of which v = V^T y is kept. The solvers do not use these loops: they are
the paper's way, kept for tests and benchmarks.
"""

from fastmmc._jit import njit, njit_sum


@njit
def child_transform(V, y, v, flips, out):
    """Fill ``out`` with v' = v - 2 V_S^T y_S (Gieseke et al. 2009, proof of Theorem 1)."""
    for q in range(v.size):
        out[q] = v[q]
    for j in flips:
        scale = 2.0 * y[j]
        for q in range(v.size):
            out[q] -= scale * V[j, q]


@njit_sum
def weighted_square(weight, v):
    """Return v^T diag(weight) v."""
    total = 0.0
    for q in range(v.size):
        total += weight[q] * v[q] * v[q]
    return total
