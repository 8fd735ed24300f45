"""The kernel machines that the alternation trains: one object each, given new labels every round.

A machine is trained in slices: ``begin(y)``, then ``step(budget)`` until it returns True. It then
has ``scores`` w . phi(x_i), ``norm`` |w|^2, its own ``bias``, ``gap``, a bound on how far its
objective |w|^2 + 2 sum s_i C loss_i is above the least one (NaN if unknown), and ``capped``,
whether it ended before its tolerance was met. ``refine()`` asks for a solution ten times as exact
and tells whether that is possible; ``look()`` sets the same attributes before the end. ``u`` are
the dual coefficients, w = sum u_i phi(x_i), and ``w`` the weights in features.
"""

import time
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.blas import dtrsv

from fastmmc.alternating import _loops as loops
from fastmmc.core.execution import OutOfTime
from fastmmc.kernels.cholesky import add_to_diagonal, factor_lower
from fastmmc.kernels.libsvm import (
    LINEAR_HINGE,
    LINEAR_SVR,
    train_kernel_machine,
    train_linear_machine,
)

# Most steps of a dual solver in one round, as a multiple of n, unless another one may take over.
MOST_STEPS = 10_000

# A part of the points is solved to the first share of the violation among all points, and holds
# those that are within the second share of it of violating the conditions. A part larger than the
# last share of all points is not worth its copy of the Gram matrix.
PART_TOLERANCE = 0.3
PART_MARGIN = 0.02
LARGEST_PART = 0.5

# No machine is asked for more than this share of its objective.
LEAST_GAP = 1e-9

# The dual solver is at the end of its digits when STALL_STEPS n steps (at least LEAST_STALL_STEPS)
# or STALL_PARTS parts have raised the dual objective by less than the share STALL, or than the
# rounding errors of its sum.
STALL_STEPS = 20
LEAST_STALL_STEPS = 20_000
STALL_PARTS = 1000
STALL = 1e-12
SUM_ROUNDING = 1e-15

# Matrix rows multiplied between two looks at the clock.
ROWS = 2048

# Elementary operations that LIBSVM's first limit is worth, the least limit, and the factor that
# raises it.
FIRST_OPERATIONS = 20_000_000
LEAST_LIMIT = 100
LIMIT_GROWTH = 4

# Most passes of LIBLINEAR, and seconds per matrix entry that one takes on a slow computer.
MOST_PASSES = 1000
SLOW_NUMBER = 1e-8


def least_violation(largest_cost):
    """Return the least violation that rounding leaves visible at dual variables of this size."""
    return np.finfo(np.float64).eps * max(1.0, largest_cost)


def box(y, cost, hinge):
    """Return the bounds of the dual variables, (n,) each; ``cost`` is s_i C.

    They are the slopes of the loss max(0, upper (r - epsilon), lower (r + epsilon)) of the residual
    r = y - f.
    """
    if not hinge:
        return -cost, cost
    return np.where(y > 0, 0.0, -cost), np.where(y > 0, cost, 0.0)


def sum_losses(residuals, lower, upper, epsilon):
    """Return sum s_i C loss_i of the residuals, with the bounds of :func:`box`."""
    losses = np.maximum(upper * (residuals - epsilon), lower * (residuals + epsilon))
    return float(np.maximum(losses, 0.0).sum())


class Solution(NamedTuple):
    """What is kept of a machine: u (n,), w (r,) or both, the scores w . phi(x_i) (n,), the gap."""

    u: np.ndarray | None
    w: np.ndarray | None
    scores: np.ndarray
    gap: float | None


class _Machine:
    """What all machines share."""

    u = None
    w = None
    least_gap = LEAST_GAP  # relative gap within reach
    gap = np.nan
    objective = np.inf
    n_steps = 0
    capped = False

    def relative_gap(self):
        """Return the duality gap as a share of the objective."""
        return self.gap / max(self.objective, np.finfo(float).tiny)

    def begin(self, y):
        """Set the labels."""
        self._y = y
        self.capped = False

    def expect(self, w, bias):
        """Take weights in features near those to be found, before the first labels."""

    def look(self):
        """Set the attributes to the present state of the training."""

    def refine(self):
        """Ask for a more exact solution; there is none."""
        return False

    def solution(self):
        """Return a copy of what the machine has found."""
        u, w = (None if held is None else held.copy() for held in (self.u, self.w))
        return Solution(u, w, self.scores.copy(), None if np.isnan(self.gap) else float(self.gap))


class TrainedMachine(_Machine):
    """Given weights w (r,) in features, and the scores (n,) of the points."""

    def __init__(self, scores, w):
        self.w = w
        self.scores = scores
        self.norm = float(w @ w)


class SupportMachine(_Machine):
    """What the machines for the hinge and the Laplacian loss share."""

    def __init__(self, cost, hinge, epsilon, tol):
        self._cost, self._hinge, self._epsilon = cost, hinge, epsilon
        self._tol = self._gap_tol = tol
        self.u = np.zeros(cost.size)
        self.scores = np.zeros(cost.size)
        self.bias = 0.0
        self.norm = 0.0

    def _rate(self):
        """Set norm, objective and gap for the present u, scores and bias."""
        y, norm = self._y, float(self.u @ self.scores)
        bounds = box(y, self._cost, self._hinge)
        losses = sum_losses(y - self.scores - self.bias, *bounds, self._epsilon)
        gain = float(self.u @ y - self._epsilon * np.abs(self.u).sum())
        self.norm = max(0.0, norm)
        self.objective = norm + 2.0 * losses
        self.gap = max(0.0, self.objective - (2.0 * gain - norm))

    def refine(self):
        """Ask for a gap ten times as small."""
        if self.capped or not self.relative_gap() > LEAST_GAP:
            return False
        self._gap_tol = 0.1 * self.relative_gap()
        return True


class DualMachine(SupportMachine):
    """The compiled dual solver on a Gram matrix; every round starts from the end of the last one.

    Most points end at a bound and stay there. So the solver works on a part: the points between
    their bounds, and those that violate the optimality conditions or nearly do. Once they are
    solved, to a share of the violation among all points, it looks at all points and chooses again.
    It stops when both the violation and the relative duality gap are at most ``tol``, or after
    ``most_steps`` n steps in one round.
    """

    def __init__(self, K, cost, hinge, epsilon, tol, most_steps=None):
        super().__init__(cost, hinge, epsilon, tol)
        self._K = K
        self._most_steps = MOST_STEPS if most_steps is None else most_steps
        self._all = _new_dual(np.diagonal(K), self.u)
        self._y = np.zeros(cost.size)
        self._stall_steps = max(STALL_STEPS * cost.size, LEAST_STALL_STEPS)
        # For the Gram matrices of parts: fresh memory takes longer to get than to fill.
        self._room = np.empty(int(LARGEST_PART * cost.size) ** 2)

    def begin(self, y):
        """Set the labels."""
        dual = self._all
        dual.grad[:] += y - self._y
        super().begin(y)
        self._violation = self._tol
        self._steps_left = self._most_steps * self.u.size
        self._begin_watch()
        before = self.u.copy()
        dual.lower[:], dual.upper[:] = box(y, self._cost, self._hinge)
        _move_into_box(self.u, dual.lower, dual.upper)
        self._carry(np.arange(self.u.size), self.u - before)
        loops.prepare(dual, self._epsilon)
        self._choose()

    def _carry(self, rows, changes):
        """Update the gradient for changes of u."""
        moved = changes != 0.0
        loops.subtract_rows(self._all.grad, self._K, rows[moved], changes[moved])

    def step(self, budget):
        """Continue; return whether it has ended."""
        while budget > 0:
            part = self._part
            most = min(self._steps_left, self._stall_steps) - self._made
            n_steps, ended = loops.solve_dual(
                self._part_K, part, self._epsilon, self._part_tol, most, budget
            )
            self.n_steps += n_steps
            self._made += n_steps
            if not ended:
                return False
            made = self._made
            self._steps_left -= made
            budget -= part.u.size * (2 * made + self.u.size)
            high, low = self._merge()
            violation = high - low
            if violation <= self._violation:
                self.look()
                if self.relative_gap() <= self._gap_tol or violation <= 0.0:
                    return True
                self._violation = 0.1 * violation
            if self._steps_left <= 0 or self._has_stalled(made):
                self.capped = True
                self.look()
                return True
            self._choose()
        return False

    def _begin_watch(self):
        """Start to watch for rounding that stops all progress."""
        self._watched_steps = self._watched_parts = 0
        self._dual, self._is_fresh = -np.inf, False

    def _has_stalled(self, made):
        """Tell whether the last parts gained nothing, even with a fresh gradient."""
        self._watched_steps += made
        self._watched_parts += 1
        few = self._watched_steps < self._stall_steps and self._watched_parts < STALL_PARTS
        if made > 0 and few:
            return False
        terms = 0.5 * self.u * (self._y + self._all.grad) - self._epsilon * np.abs(self.u)
        dual = float(terms.sum())
        least = max(STALL * abs(dual), SUM_ROUNDING * float(np.abs(terms).sum()))
        gains = made > 0 and dual - self._dual > least
        self._watched_steps = self._watched_parts = 0
        self._dual = dual
        if gains:
            return False
        if self._is_fresh:
            return True
        self._refresh()
        return False

    def _refresh(self):
        """Compute the gradient from scratch, as rounding errors add up."""
        self._all.grad[:] = self._y - self._K @ self.u
        self._is_fresh, self._dual = True, -np.inf

    def _choose(self):
        """Choose the points to work on, and the tolerance."""
        dual, self._made = self._all, 0
        _, high, low = loops.extremes(dual)
        violation = high - low
        self._part_tol = max(self._violation, PART_TOLERANCE * violation)
        free = (dual.lower < self.u) & (self.u < dual.upper)
        # Points between their bounds show where the gradients will meet; the extremes may be those
        # of a few points whose labels have just changed.
        level = np.median(dual.grad[free]) if free.any() else 0.5 * (high + low)
        near = PART_MARGIN * violation
        up, down = dual.grad + dual.rise, dual.grad + dual.fall
        free |= (up > level - near) | (down < level + near)
        free[[np.argmax(up), np.argmin(down)]] = True
        chosen = np.flatnonzero(free)
        if chosen.size > LARGEST_PART * self.u.size:
            self._chosen, self._part, self._part_K = None, dual, self._K
            return
        self._chosen = chosen
        self._part_K = self._room[: chosen.size**2].reshape(chosen.size, chosen.size)
        loops.copy_part(self._K, chosen, self._part_K)
        part = _new_dual(dual.diag[chosen], self.u[chosen])
        part.grad[:] = dual.grad[chosen]
        part.lower[:], part.upper[:] = dual.lower[chosen], dual.upper[chosen]
        loops.prepare(part, self._epsilon)
        self._part = part

    def _merge(self):
        """Update all points with the solution of the part; return the extremes of them all."""
        dual, chosen = self._all, self._chosen
        if chosen is not None:
            self._carry(chosen, self._part.u - self.u[chosen])
            self.u[chosen] = self._part.u
            loops.prepare(dual, self._epsilon)
        return loops.extremes(dual)[1:]

    def look(self):
        """Set the attributes to the present state of the training."""
        high, low = self._merge()
        self.bias = 0.5 * (high + low)
        np.subtract(self._y, self._all.grad, out=self.scores)
        self._rate()

    def refine(self):
        """Ask for a gap ten times as small."""
        if not super().refine():
            return False
        self._violation = 0.1 * self._violation
        self._refresh()
        self._begin_watch()
        self._choose()
        return True


def _new_dual(diag, u):
    """Return a state of the dual solver, which changes u in place."""
    return loops.Dual(u, *np.zeros((5, u.size)), np.ascontiguousarray(diag))


def _move_into_box(u, lower, upper):
    """Clip u to its bounds, and shrink the heavier side until e^T u = 0 again."""
    np.clip(u, lower, upper, out=u)
    up, down = u[u > 0].sum(), -u[u < 0].sum()
    if up > down:
        u[u > 0] *= down / up
    elif down > up:
        u[u < 0] *= up / down


class LibsvmMachine(SupportMachine):
    """LIBSVM on the Gram matrix, from scratch every round; ``tol`` is a violation.

    It can neither be interrupted nor continue where it stopped. So it gets a limit of steps, and
    starts again with a higher one where that was too low.
    """

    # LIBSVM has kernel values in single precision.
    least_gap = 1e-3

    def __init__(self, K, cost, hinge, epsilon, tol, control):
        super().__init__(cost, hinge, epsilon, tol)
        self._K = np.ascontiguousarray(K)
        self._control = control
        self._largest = float(cost.max())

    def begin(self, y):
        """Set the labels."""
        super().begin(y)
        self._gap_before = np.inf
        self._restart()

    def _restart(self):
        """Start with a low limit."""
        self._limit = max(LEAST_LIMIT, FIRST_OPERATIONS // self.u.size)
        self._pace = 0.0
        self._dual = -np.inf

    def step(self, budget):
        """Train; return whether LIBSVM finished or more steps are of no use."""
        # Without time for enough steps the start ends.
        limit = min(self._limit, self._control.time_left() / self._pace if self._pace else np.inf)
        if self._pace and limit < 2 * self._limit / LIMIT_GROWTH:
            raise OutOfTime
        began = time.perf_counter()
        self.u, self.bias, n_iter, ended = train_kernel_machine(
            self._K,
            self._y,
            self._largest,
            self._cost / self._largest,
            self._hinge,
            self._epsilon,
            self._tol,
            int(limit),
        )
        self._pace = (time.perf_counter() - began) / max(1, n_iter)
        self.n_steps += n_iter
        np.matmul(self._K, self.u, out=self.scores)
        before = self._dual
        self._rate()
        self._dual = self.objective - self.gap
        if ended:
            return True
        most = MOST_STEPS * self.u.size
        if self._limit >= most or not self._dual - before > LEAST_GAP * abs(self._dual):
            # Many times the steps gained nothing: the tolerance is below the rounding.
            self.capped = True
            return True
        self._limit = min(most, LIMIT_GROWTH * self._limit)
        return False

    def refine(self):
        """Ask for a violation ten times as small."""
        gap = self.relative_gap()
        if self.capped or not LEAST_GAP < gap <= 0.5 * self._gap_before:
            # What is missing is lost in rounding.
            return False
        if 0.1 * self._tol < least_violation(self._largest):
            return False
        self._gap_before = gap
        self._tol *= 0.1
        self._restart()
        return True


class LinearMachine(SupportMachine):
    """LIBLINEAR on features Z, which penalises the bias too; ``tol`` is its own criterion."""

    def __init__(self, Z, cost, hinge, epsilon, tol, seed, control):
        super().__init__(cost, hinge, epsilon, tol)
        self.u = None  # LIBLINEAR keeps its dual variables to itself
        self._Z = np.ascontiguousarray(Z)
        self._seed = seed
        self._control = control
        # Seconds of a pass; at first a guess that is too high.
        self._pace = SLOW_NUMBER * Z.size
        self._made = 0

    def begin(self, y):
        """Set the labels."""
        super().begin(y)
        self._made = 0

    def step(self, budget):
        """Train with as many passes as there is time for, as a call cannot be interrupted."""
        most = self._control.time_left() / self._pace
        if self.w is not None and most < max(1.0, 2.0 * self._made):
            raise OutOfTime
        limit = int(min(MOST_PASSES, max(1.0, most)))
        C = float(self._cost.max())
        kind = LINEAR_HINGE if self._hinge else LINEAR_SVR
        began = time.perf_counter()
        W, b, made, ended = train_linear_machine(
            self._Z,
            self._y > 0 if self._hinge else self._y,
            C,
            self._cost / C,
            kind,
            self._epsilon,
            self._tol,
            limit,
            self._seed,
        )
        self._pace = (time.perf_counter() - began) / max(1, made)
        self.w, self.bias = W[0], float(b[0])
        self.scores[:] = self._Z @ self.w
        self.n_steps += made
        self.norm = float(self.w @ self.w)
        self.capped = not ended
        # Otherwise from scratch with more passes, if there is time for them after all.
        self._made = made
        return ended or limit == MOST_PASSES


class LeastSquaresMachine(_Machine):
    """Least-squares SVM: min |w|^2 + sum_i g_i (f_i - y_i)^2 with g_i = 2 s_i C.

    ``solve`` returns bias, u, w or None, and scores for labels; :func:`dense_solver` and
    :func:`feature_solver` make it of one factorisation, after which a round costs O(n^2) or O(nr).
    """

    def __init__(self, solve):
        self._solve = solve
        self.gap = 0.0

    def step(self, budget):
        """Solve the linear system."""
        self.bias, self.u, self.w, self.scores = self._solve(self._y)
        norm = self.u @ self.scores if self.w is None else self.w @ self.w
        self.norm = max(0.0, float(norm))
        self.n_steps += 1
        return True

    def look(self):
        """Set the attributes, by the one step that training takes if there was no time for it."""
        if self.n_steps == 0:
            self.step(0)


def dense_solver(K, ridge, look=lambda: None):
    """Return what solves [[0, e^T], [e, K + diag(ridge)]] [b; u] = [0; y], ridge = 1 / g.

    The scores are K u = y - b - ridge u.
    """
    A = K.copy()
    add_to_diagonal(A, ridge)
    if not factor_lower(A, lambda share: look()):
        raise ValueError(
            "the Gram matrix plus 1 / (2 C weight) on its diagonal is not positive definite in "
            f"double precision, with C times a weight up to {0.5 / ridge.min():.3g}: give a lower "
            "C, or a kernel that is positive semidefinite"
        )

    def apply(y):
        # The transpose is in the order that BLAS wants. For one right side, LAPACK's potrs takes
        # three times as long.
        half = dtrsv(A.T, y, lower=0, trans=1)
        return dtrsv(A.T, half, lower=0, trans=0, overwrite_x=True)

    ones = apply(np.ones(ridge.size))

    def solve(y):
        solved = apply(y)
        bias = float(solved.sum() / ones.sum())
        u = solved - bias * ones
        return bias, u, None, y - bias - ridge * u

    return solve


def feature_solver(Z, ridge, look=lambda: None):
    """Return what solves the same with K = Z Z^T, O(nr) a call, for the weights w = Z^T u.

    With features centred by their mean, weighted by g, w = (I + Zc^T diag(g) Zc)^-1 Zc^T diag(g) y.
    Weights from u, which is what features of many digits leave of y, would lose all digits.
    """
    g = 1.0 / ridge
    shares = g / g.sum()
    mean = shares @ Z
    centred = Z - mean
    inner = np.eye(Z.shape[1])
    for start in range(0, Z.shape[0], ROWS):
        look()
        rows = slice(start, start + ROWS)
        inner += centred[rows].T @ (g[rows, None] * centred[rows])
    factor = cho_factor(inner, lower=True, overwrite_a=True, check_finite=False)

    def solve(y):
        middle = shares @ y
        w = cho_solve(factor, centred.T @ (g * (y - middle)), check_finite=False)
        moved, at_mean = centred @ w, float(mean @ w)
        return float(middle) - at_mean, g * (y - middle - moved), w, moved + at_mean

    return solve
