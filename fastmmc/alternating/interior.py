"""Interior-point training of a kernel machine in features: exact, O(n r^2) a step, some 15 steps.

With K = Z Z^T the dual  minimise u^T K u / 2 - u^T y + epsilon |u|_1,  e^T u = 0,
lower <= u <= upper  is written in parts v >= 0 with an upper bound: one part u itself, or with
epsilon > 0 two, u = v1 - v2 with costs epsilon - y and epsilon + y. A Newton step of the
primal-dual method (Mehrotra's predictor and corrector) solves (K + D) du + e db = r with a diagonal
D, by the r x r matrix I + Z^T D^-1 Z (Fine and Scheinberg 2001). Wide kernels and large C, which
are hard for decomposition methods, cost it nothing.

Where r is small next to n, nearly all u end at a bound. So later rounds keep them where the last
machine has them and solve for the points near a kink of their loss only.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import blas, lapack

from fastmmc.alternating import _loops_interior as loops
from fastmmc.alternating.machines import SupportMachine, box, sum_losses
from fastmmc.kernels.gram import BLOCK

MOST_ITERATIONS = 100

# A step goes this share of the way to the nearest bound.
DAMPING = 0.995

# Least distance from a bound, as a share of the width of the box.
EDGE = 1e-13

# A gap that grows by more than this factor in one step shows rounding errors.
WORST_RISE = 10.0

# Added to the diagonal D, as a share of the mean diagonal of K, to bound the weights 1 / D, so that
# solutions keep their digits. The residuals are exact, so the optimum does not change.
PROXIMAL = 1e-8
# Where K is nearly singular and C large, that holds the steps back. A training that ends with a gap
# of more than so many tolerances is made once more with this share of it. On pictures of 8 to 256
# colours 10 runs of 24 ended so, with gaps of up to .9 of the objective; now none does.
FAR_FROM_END = 10.0
RETRIED = 1e-6

# A round works on the LEAST_PART points nearest to a kink of their loss, or on the share PART of
# all points if that is more, then also on those that turn out to be on the other side of one. If
# this multiplies their number by more than GROWTH, it works on GROWTH times as many of the nearest
# points instead; if these are more than the share LARGEST_PART, on all points.
LEAST_PART = 1000
PART = 0.1
GROWTH = 3
LARGEST_PART = 0.5


class InteriorMachine(SupportMachine):
    """The interior-point method on features Z (n, r), K = Z Z^T, to the relative gap ``tol``.

    ``look_at_clock`` is called between blocks of points and may raise an exception.
    """

    def __init__(self, Z, cost, hinge, epsilon, tol, look_at_clock=lambda: None):
        super().__init__(cost, hinge, epsilon, tol)
        self._Z = Z
        self._look_at_clock = look_at_clock
        self._is_retried = False
        self._proximal = PROXIMAL * float(np.einsum("ij,ij->", Z, Z)) / Z.shape[0]

    def expect(self, w, bias):
        """Take weights near those to be found."""
        self.w, self.bias = w, bias
        self.scores = self._Z @ w

    def begin(self, y):
        """Set the labels."""
        super().begin(y)
        self._bounds = box(y, self._cost, self._hinge)
        n = y.size
        if self.w is None:
            self._work_on(slice(None))
            return
        self._kinks, self._sides = self._look_at_kinks()
        lower, upper = self._bounds
        self._settled = np.choose(self._sides + 1, (lower, np.zeros(n), upper))
        self._work_on_nearest(int(max(LEAST_PART, PART * n)))

    def _work_on_nearest(self, size):
        """Start to train the ``size`` points nearest to a kink."""
        n = self._y.size
        if size > LARGEST_PART * n:
            self._work_on(slice(None))
            return
        part = np.zeros(n, dtype=bool)
        part[np.argpartition(np.abs(self._kinks), size)[:size]] = True
        self._work_on(part)

    def _look_at_kinks(self):
        """Return how far points are beyond a kink, and the bound that their u is at: -1, 0, 1."""
        residuals = self._y - self.scores - self.bias
        kinks = (self._y * residuals if self._hinge else np.abs(residuals)) - self._epsilon
        return kinks, np.where(kinks > 0.0, np.sign(residuals), 0.0).astype(np.int64)

    def _work_on(self, chosen):
        """Start to train some points, while the losses of all others count as linear."""
        self._chosen = chosen
        fixed = _Fixed(0.0, 0.0, 0.0)
        if isinstance(chosen, np.ndarray):
            self.u = np.where(chosen, 0.0, self._settled)
            gain = float(self.u @ self._y - self._epsilon * np.abs(self.u).sum())
            fixed = _Fixed(self._Z.T @ self.u, float(self.u.sum()), gain)
        bounds = [bound[chosen] for bound in self._bounds]
        given = bounds, self._epsilon, self._proximal, fixed, self._look_at_clock
        self._core = _Core(self._Z[chosen], self._y[chosen], *given)

    def look(self):
        """Set the attributes to the present state of the training."""
        core, y, epsilon = self._core, self._y, self._epsilon
        self.w, self.bias = core.w, core.bias
        self.u[self._chosen] = core.u
        self.scores = self._Z @ self.w
        self.norm = float(self.w @ self.w)
        losses = sum_losses(y - self.scores - self.bias, *self._bounds, epsilon)
        self.objective = self.norm + 2.0 * losses
        self.gap = max(0.0, self.objective - core.dual) + core.apart

    def step(self, budget):
        """Make Newton steps; return whether the gap is below its tolerance."""
        core = self._core
        n, r = core.shape
        used = 0
        # Half of the gap is left to the points that are not worked on.
        while core.relative_gap() > 0.5 * self._gap_tol:
            if not core.step():
                break
            self.n_steps += 1
            used += n * r * (r + 8)
            if used >= budget:
                return False
        self.look()
        if self.relative_gap() <= self._gap_tol:
            return True
        if not isinstance(self._chosen, np.ndarray):
            is_far = self.relative_gap() > FAR_FROM_END * self._gap_tol
            self.capped = self._is_retried or not is_far
            if not self.capped:
                self._is_retried = True
                self._proximal *= RETRIED
                self._work_on(slice(None))
            return self.capped
        size = self._chosen.sum()
        more = self._chosen | (self._look_at_kinks()[1] != self._sides)
        if core.relative_gap() > 0.5 * self._gap_tol or more.sum() == size:
            # Rounding ended it or hides the missing points; all points are another problem.
            self._work_on(slice(None))
        elif more.sum() <= GROWTH * size:
            self._work_on(more)
        else:
            self._work_on_nearest(GROWTH * size)
        return False


class _Fixed(NamedTuple):
    """The contribution of the points that are not worked on."""

    w: np.ndarray | float  # (r,) sum of u_i phi(x_i)
    total: float  # sum of u_i
    gain: float  # sum of u_i y_i - epsilon |u_i|


class _Core:
    """The training of some points, (m, r) features Z, while ``fixed`` represents the others."""

    def __init__(self, Z, y, bounds, epsilon, proximal, fixed, look_at_clock):
        self._y, self._bounds, self._epsilon = y, bounds, epsilon
        self._proximal, self._fixed = proximal, fixed
        self._look_at_clock = look_at_clock
        self.shape = m, r = Z.shape
        # Large arrays are made once: getting fresh memory takes longer than computing with it. In
        # column order products with one vector are three times as fast.
        self._centred = np.array(Z, order="F")
        self._centre = np.zeros(r)
        self._scaled = np.empty((min(BLOCK, m), r), order="F")
        self._weights, self._h, self._dq = np.empty((3, m))
        self._iterations = 0
        signs = np.array([1.0, -1.0] if epsilon > 0.0 else [1.0])
        room = np.zeros((len(loops.Parts._fields) - 1, signs.size, m))
        parts = self._parts = loops.Parts(signs, *room)
        parts.cost[:] = epsilon - parts.sign[:, None] * y
        lower, upper = bounds
        if parts.sign.size == 1:
            parts.low[0], parts.high[0] = lower, upper
        else:
            parts.high[0], parts.high[1] = upper, -lower
        # A box of no width (a cost of 0) has no interior; it does not occur, as weights are > 0.
        # Start in the middle of the boxes: from any state of an earlier training it takes as many
        # steps or more, as points with new labels hold all others back.
        parts.v[:] = 0.5 * (parts.low + parts.high)
        self.u = parts.sign @ parts.v
        self.w = self._centred.T @ self.u + fixed.w
        self.bias = 0.0
        self._look()
        gradient = parts.cost + parts.sign[:, None] * self._scores
        # Multipliers that are feasible, and well above 0.
        scale = np.maximum(1.0, np.abs(gradient).mean(axis=1, keepdims=True))
        parts.z_low[:] = np.maximum(gradient, 0.0) + scale
        parts.z_high[:] = np.maximum(-gradient, 0.0) + scale

    def _look(self):
        """Set the attributes to the present state of the training."""
        fixed, u, w = self._fixed, self.u, self.w
        self._scores = self._centred @ w + self._centre @ w
        total = u.sum()
        self._rest = total + fixed.total
        # The weights are variables of their own, exact however many digits cancel in Z^T u.
        self._product = self._centred.T @ u + self._centre * total + fixed.w
        losses = sum_losses(self._y - self._scores - self.bias, *self._bounds, self._epsilon)
        losses += fixed.gain - float(np.sum(fixed.w * w)) - self.bias * fixed.total
        gain = fixed.gain + float(u @ self._y - self._epsilon * np.abs(u).sum())
        self.objective = float(w @ w) + 2.0 * losses
        self.dual = 2.0 * gain - float(self._product @ self._product)
        # u is feasible except for its sum, which changes the bound by up to this much.
        self.apart = 2.0 * abs(self.bias) * abs(float(self._rest))
        self.gap = max(0.0, self.objective - self.dual) + self.apart

    def relative_gap(self):
        """Return the duality gap as a share of the objective."""
        return self.gap / max(abs(self.objective), np.finfo(float).tiny)

    def step(self):
        """Make a Newton step; return False if none makes progress."""
        if self._iterations >= MOST_ITERATIONS:
            return False
        before = vars(self) | {"u": self.u.copy()}  # of the result only u changes in place
        if not self._newton_step():
            return False
        self._iterations += 1
        if self.gap > WORST_RISE * before["gap"]:
            # From here on rounding errors only get worse.
            vars(self).update(before)
            self._iterations = MOST_ITERATIONS
        return True

    def _newton_step(self):
        """Make one predictor-corrector step; return False if rounding prevents it.

        The weights w are variables of their own, with w = Z^T u at the end. With E = 1 / D a step
        solves  du = h - E (Z dw + db),  dw = Z^T (u + du) - w  and  e^T (u + du) = 0. Eliminating
        db leaves features centred by their E-weighted mean. Without that their common part, nearly
        all of a wide kernel, would cancel in the solution and leave no digits.
        """
        parts, E = self._parts, self._weights
        loops.weigh(parts, self._scores + self.bias, self._proximal, E)
        total = E.sum()
        Z = self._centred
        shift = (Z.T @ E) / total
        Z -= shift
        self._centre = centre = self._centre + shift
        # LAPACK itself: what SciPy does around it takes longer where r is some dozens.
        factor, info = lapack.dpotrf(self._weighted_gram(), lower=1, clean=0, overwrite_a=1)
        if info != 0:
            return False
        rest = self._rest
        target = self._product - self.w - centre * rest

        def solve(mu, corrected):
            """Return dw, db and the greatest length of the step that aims at products mu."""
            h, dq = self._h, self._dq
            loops.aim(parts, mu, corrected, h)
            shift = (h.sum() + rest) / total  # db + centre^T dw
            np.subtract(h, E * (h.sum() / total), out=dq)
            dw = lapack.dpotrs(factor, Z.T @ dq + target, lower=1)[0]
            np.matmul(Z, dw, out=dq)
            if corrected:
                # Near the end the weights span so many orders of magnitude that one solution alone
                # has few correct digits: the residual gives it more.
                dq += shift
                dq *= E
                du = np.subtract(h, dq, out=dq)
                missing = Z.T @ du + target - dw
                shift += (rest + du.sum()) / total
                dw += lapack.dpotrs(factor, missing, lower=1)[0]
                np.matmul(Z, dw, out=dq)
            dq += shift
            return dw, shift - centre @ dw, loops.direct(parts, dq)

        mu = loops.complementarity(parts, 0.0)
        _, _, length = solve(0.0, False)
        affine = loops.complementarity(parts, length)
        # The dual residual contains u, so variables and multipliers go equally far.
        dw, db, length = solve(max(mu * (affine / mu) ** 3, np.finfo(float).tiny), True)
        if not np.isfinite(db) or not length > 1e-10:
            return False
        length *= DAMPING
        loops.go(parts, length, EDGE, self.u)
        self.w = self.w + length * dw
        self.bias += length * db
        self._look()
        return True

    def _weighted_gram(self):
        """Return the lower triangle of I + Z^T diag(E) Z for the centred features, (r, r)."""
        n, r = self._centred.shape
        inner = np.asfortranarray(np.eye(r))
        for start in range(0, n, BLOCK):
            self._look_at_clock()
            rows = slice(start, min(start + BLOCK, n))
            scaled = self._scaled[: rows.stop - start]
            np.multiply(self._centred[rows], np.sqrt(self._weights[rows, None]), out=scaled)
            inner = blas.dsyrk(1.0, scaled, beta=1.0, c=inner, trans=1, lower=1, overwrite_c=1)
        return inner
