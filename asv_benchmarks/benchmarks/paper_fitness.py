"""The fitness of EvoMMC as the paper evaluates it, and Algorithm 1 over any of these ways.

For tests and benchmarks. :func:`fastmmc.evo_mmc` and :func:`fastmmc.fast_evo_mmc` reach the same
fitness by their caches, for O(s^2) a refused child instead of O(n^2), O(sn) or O(sr).

A route has ``start(y)``, which returns the fitness of y and a memory of it, and ``child(y, memory,
flips)``, which returns both for y with some labels flipped.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh
from sklearn.svm import SVC

from fastmmc.core.jit import njit, njit_sum
from fastmmc.evolution import _loops as evolution
from fastmmc.kernels.factors import LowRankFactor


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


class _FromScratch:
    """A route that remembers nothing of a parent."""

    def child(self, y, memory, flips):
        flipped = y.copy()
        flipped[flips] *= -1
        return self.start(flipped)


class DirectFitness(_FromScratch):
    """F(y) = n - y^T R y from scratch, O(n^2), for a dense factor."""

    def __init__(self, factor):
        self._R = factor.R

    def start(self, y):
        return float(y.size - y @ (self._R @ y)), None


class SpectralFitness:
    """F(y) = n - v^T D v with v = V^T y remembered: Theorem 1, and Theorem 2 for low rank.

    R = V D V^T with D diagonal. The paper's fitness is F / n, and its D is -D / n here. A child
    costs O(sn), or O(sr) with a low-rank factor.
    """

    def __init__(self, factor):
        if isinstance(factor, LowRankFactor):
            self.V = factor.Z
            self.weight = np.ones(factor.rank)
        else:
            self.weight, V = eigh(factor.R)
            self.V = np.ascontiguousarray(V)

    def start(self, y):
        v = self.V.T @ y
        return y.size - weighted_square(self.weight, v), v

    def child(self, y, memory, flips):
        v = np.empty_like(memory)
        child_transform(self.V, y, memory, flips, v)
        return y.size - weighted_square(self.weight, v), v


class SupportVectorFitness(_FromScratch):
    """The least of sum_i max(0, 1 - y_i f(x_i)) + lam |f|^2 over f, by LIBSVM.

    What EvoMMC's square loss replaces: another objective, on the scale of F. K is the Gram matrix.
    """

    def __init__(self, K, lam):
        self._K = K
        self._lam = lam

    def start(self, y):
        model = SVC(kernel="precomputed", C=0.5 / self._lam).fit(self._K, y)
        smooth = self._K[:, model.support_] @ model.dual_coef_[0]
        square = model.dual_coef_[0] @ smooth[model.support_]
        hinge = np.maximum(0.0, 1.0 - y * (smooth + model.intercept_[0]))
        return float(hinge.sum() + self._lam * square), None


def evolve(route, y, *, lower, upper, flips=None, max_iter, patience, random):
    """Run Algorithm 1 of the EvoMMC paper, one parent and one child, over any route.

    ``y`` are the (n,) float64 labels -1, +1 of the first parent, within the bounds for the number
    of +1, and ``flips`` the labels that a mutation changes, None for max(1, n / (t + 1)) in
    generation t. ``random`` is the (1,) uint64 state of the random numbers, advanced. Returns
    labels, fitness and generations.
    """
    n = y.size
    mark = np.zeros(n, dtype=np.int64)
    chosen = np.zeros((1, n + 1), dtype=np.int64)
    fitness, memory = route.start(y)
    stale = generation = 0
    while stale < patience and generation < max_iter:
        count = evolution.flips_of(generation, n, flips or 0)
        n_plus = int(np.sum(y == 1))
        generation += 1
        stale += 1
        if count == 1:
            chosen[0, 0] = j = int(evolution.uniform(random) * n)
            if not lower <= n_plus - y[j] <= upper:
                count = 2
                chosen[0, 1] = evolution.opposite(y[None], 0, j, random)
        else:
            count = evolution.mutate(
                y[None], 0, n_plus, count, lower, upper, chosen, 0, mark, generation, random
            )
        flipped = chosen[0, :count]
        found, remembered = route.child(y, memory, flipped)
        if found < fitness:
            if found < fitness - 1e-12 * n:
                stale = 0
            fitness, memory, y = found, remembered, y.copy()
            y[flipped] *= -1
    return y, fitness, generation
