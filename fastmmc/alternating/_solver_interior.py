"""Interior-point training of a kernel machine in features: exact, O(n r^2) a step, some 20 steps.

With K = Z Z^T the dual  minimise u^T K u / 2 - u^T y + epsilon |u|_1,  e^T u = 0,
lower <= u <= upper  is written in parts v >= 0 with an upper bound: one part u itself, or with
epsilon > 0 two, u = v1 - v2 with costs epsilon - y and epsilon + y. A Newton step of the
primal-dual method (Mehrotra's predictor and corrector) solves (K + D) du + e db = r with a diagonal
D, by the r x r matrix I + Z^T D^-1 Z (Fine and Scheinberg 2001). How hard the problem is for
decomposition methods, wide kernels and large C, does not matter to it.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from fastmmc.alternating._solver_machines import LEAST_GAP, SupportMachine, box
from fastmmc.gram import BLOCK

MOST_ITERATIONS = 100

# Share of the way to the nearest bound.
DAMPING = 0.995

# Least distance from a bound, as a share of the width of the box.
EDGE = 1e-13

# A gap that grows by more than this in one step is the work of rounding.
WORST_RISE = 10.0

# Added to the diagonal D, as a share of the mean of that of K: it bounds the weights 1 / D, so that
# solutions keep their digits. The residuals are the true ones, so the optimum stays what it is.
PROXIMAL = 1e-8

# Times that a solution of the Newton system is improved by what it leaves over: the weights span
# so many orders of magnitude near the end that one solution alone has few true digits.
REFINEMENTS = 2


class _Part:
    """Variables v between bounds: u changes by ``sign`` times what they change by."""

    def __init__(self, sign, cost, low, high):
        self.sign = sign
        self.cost = cost  # linear term of the objective, negated gradient target
        self.low = low
        self.high = high
        self.v = 0.5 * (low + high)
        # A box of no width (a cost of 0) has no interior; it does not occur, as weights are > 0.
        self.z_low = np.ones_like(low)
        self.z_high = np.ones_like(high)

    def set_multipliers(self, gradient):
        """Begin with multipliers that are feasible for the gradient, both well above 0."""
        scale = max(1.0, float(np.abs(gradient).mean()))
        self.z_low = np.maximum(gradient, 0.0) + scale
        self.z_high = np.maximum(-gradient, 0.0) + scale

    def gaps(self):
        return self.v - self.low, self.high - self.v

    def complementarity(self):
        """Return sum of the products of slacks and multipliers."""
        below, above = self.gaps()
        return float(self.z_low @ below + self.z_high @ above)

    def weigh(self, q, proximal):
        """Note the slacks and the dual residual, with q = K u + b, and return 1 / D."""
        self.below, self.above = self.gaps()
        self.residual = self.cost + self.sign * q - self.z_low + self.z_high
        self.weight = 1.0 / (self.z_low / self.below + self.z_high / self.above + proximal)
        return self.weight

    def aim(self, mu):
        """Return the right-hand side that aims at products mu, times 1 / D and the sign."""
        low, high = mu, mu
        if mu > 0.0:  # corrector: the predictor's second-order error goes along
            low = mu - self.dv * self.dz_low
            high = mu + self.dv * self.dz_high
        self.to_low = low / self.below - self.z_low
        self.to_high = high / self.above - self.z_high
        self.rhs = -self.residual + self.to_low - self.to_high
        return self.sign * self.weight * self.rhs

    def direct(self, dq):
        """Turn the change of K u + b into those of the variables and multipliers."""
        self.dv = self.weight * (self.rhs - self.sign * dq)
        self.dz_low = self.to_low - self.z_low / self.below * self.dv
        self.dz_high = self.to_high + self.z_high / self.above * self.dv

    def longest_steps(self):
        """Return how far variables and multipliers can go until one of them is 0."""
        primal = min(_reach(self.below, self.dv), _reach(self.above, -self.dv))
        dual = min(_reach(self.z_low, self.dz_low), _reach(self.z_high, self.dz_high))
        return primal, dual

    def complementarity_after(self, primal, dual):
        """Return the sum of the products after a step."""
        below, above = self.below + primal * self.dv, self.above - primal * self.dv
        z_low, z_high = self.z_low + dual * self.dz_low, self.z_high + dual * self.dz_high
        return float(z_low @ below + z_high @ above)

    def go(self, primal, dual):
        """Make a step; rounding must not put a variable on its bound."""
        edge = EDGE * (self.high - self.low)
        self.v = np.clip(self.v + primal * self.dv, self.low + edge, self.high - edge)
        self.z_low += dual * self.dz_low
        self.z_high += dual * self.dz_high


def _reach(values, directions):
    """Return the greatest step in 0..1 that keeps all values above 0."""
    falling = directions < 0
    return min(1.0, float(np.min(-values[falling] / directions[falling], initial=np.inf)))


class InteriorMachine(SupportMachine):
    """The interior-point method on features Z.

    Parameters
    ----------
    Z : (n, r) float64 array
        Features, K = Z Z^T.
    cost, hinge, epsilon, tol
        As for :class:`DualMachine`; tol is the relative duality gap to stop at.
    """

    def __init__(self, Z, cost, hinge, epsilon, tol):
        super().__init__(cost, hinge, epsilon)
        self._Z = Z
        # Large arrays are made once: fresh memory takes longer to get than to compute with.
        self._centred = np.empty_like(Z)
        self._scaled = np.empty((min(BLOCK, Z.shape[0]), Z.shape[1]))
        self._tol = tol
        self._proximal = PROXIMAL * float(np.einsum("ij,ij->", Z, Z)) / Z.shape[0]

    def begin(self, y):
        """Set the labels."""
        self._y = y
        self.capped = False
        lower, upper = box(y, self._cost, self._hinge)
        if self._epsilon > 0.0:
            nothing = np.zeros_like(upper)
            self._parts = [
                _Part(1.0, self._epsilon - y, nothing, upper),
                _Part(-1.0, self._epsilon + y, nothing, -lower),
            ]
        else:
            self._parts = [_Part(1.0, -y, lower, upper)]
        self.bias = 0.0
        self._iterations = 0
        self.look()
        q = self.scores + self.bias
        for part in self._parts:
            part.set_multipliers(part.cost + part.sign * q)

    def look(self):
        """Set the attributes from where the training stands."""
        self.u = sum(part.sign * part.v for part in self._parts)
        self.w = self._Z.T @ self.u
        self.scores = self._Z @ self.w
        self._rate(self._y)
        # u is feasible but for its sum, which a bias can take up to this much from.
        self.gap += 2.0 * abs(self.bias) * abs(float(self.u.sum()))

    def step(self, budget):
        """Make Newton steps; return whether the gap is below its tolerance."""
        n, r = self._Z.shape
        used = 0
        while self.relative_gap() > self._tol:
            best = self._solution()
            if self._iterations >= MOST_ITERATIONS or not self._newton_step():
                self.capped = True
            elif self.gap > WORST_RISE * best["gap"]:
                # Rounding has the upper hand; from here on it only gets worse.
                self.__dict__.update(best)
                self.capped = True
            if self.capped:
                break
            self._iterations += 1
            self.n_steps += 1
            used += n * r * (r + 8)
            if used >= budget:
                return False
        return True

    def _solution(self):
        """Return the attributes that make up the present solution."""
        names = ("u", "w", "scores", "bias", "norm", "objective", "gap")
        return {name: getattr(self, name) for name in names}

    def refine(self):
        """Ask for a gap ten times as small."""
        if self.capped or self.relative_gap() <= LEAST_GAP:
            return False
        self._tol = 0.1 * self.relative_gap()
        return True

    def _newton_step(self):
        """Make one predictor-corrector step; return False if rounding leaves no way on.

        With the weights E = 1 / D, eliminating db from (K + D) du + e db = r, e^T du = -rest
        leaves features centred by their E-weighted mean. Without that their common part, nearly
        all of a wide kernel, would cancel in the solution and leave no digits.
        """
        parts = self._parts
        q = self.scores + self.bias
        E = sum(part.weigh(q, self._proximal) for part in parts)
        centre = (E @ self._Z) / E.sum()
        Z = np.subtract(self._Z, centre, out=self._centred)
        inner = np.eye(Z.shape[1])
        for start in range(0, Z.shape[0], BLOCK):
            rows = slice(start, start + BLOCK)
            scaled = self._scaled[: Z[rows].shape[0]]
            np.multiply(Z[rows], E[rows, None], out=scaled)
            inner += Z[rows].T @ scaled
        try:
            factor = cho_factor(inner, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            return False
        total = E.sum()

        def once(h, rest):
            """Solve (K + D) du + e db = h / E, e^T du = -rest."""
            level = h.sum() / total
            p = cho_solve(factor, Z.T @ (h - E * level) - centre * rest, check_finite=False)
            du = Z @ p
            du += level + rest / total
            du *= E
            return np.subtract(h, du, out=du), level + rest / total - centre @ p

        def solve(target):
            """Find the step that aims at products of slacks and multipliers of that size."""
            h = sum(part.aim(target) for part in parts)
            du, db = once(h, self.u.sum())
            for _ in range(REFINEMENTS):
                missing = self._Z @ (self._Z.T @ du)
                missing += db
                missing *= E
                missing += du
                np.subtract(h, missing, out=missing)
                more, more_b = once(missing, self.u.sum() + du.sum())
                du += more
                db += more_b
            dq = self._Z @ (self._Z.T @ du) + db
            for part in parts:
                part.direct(dq)
            steps = [part.longest_steps() for part in parts]
            return db, min(step[0] for step in steps), min(step[1] for step in steps)

        n_products = 2 * sum(part.v.size for part in parts)
        mu = sum(part.complementarity() for part in parts) / n_products
        _, primal, dual = solve(0.0)
        affine = sum(part.complementarity_after(primal, dual) for part in parts) / n_products
        db, primal, dual = solve(max(mu * (affine / mu) ** 3, np.finfo(float).tiny))
        if not np.isfinite(db) or max(primal, dual) < 1e-10:
            return False
        # The dual residual contains u, so both kinds go equally far.
        length = DAMPING * min(primal, dual)
        for part in parts:
            part.go(length, length)
        self.bias += length * db
        self.look()
        return True
