"""The kernel machines that the alternation trains: one object each, told new labels every round.

A machine is trained in slices: ``begin(y)``, then ``step(budget)`` until it returns True. Then
``scores`` are w . phi(x_i), ``norm`` is |w|^2, ``bias`` its own bias, ``gap`` how far its
objective |w|^2 + 2 sum s_i C loss_i can be above the least one (NaN if it does not tell),
``capped`` whether it ended before its tolerance was met. ``refine()`` asks for a solution ten
times as exact and tells whether that is possible; ``look()`` sets the same attributes before the
end. ``u`` are the dual coefficients, w = sum u_i phi(x_i), and ``w`` that in features.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from fastmmc._libsvm import (
    LINEAR_HINGE,
    LINEAR_SVR,
    train_kernel_machine,
    train_linear_machine,
)
from fastmmc.alternating import _loops as kernels
from fastmmc.cholesky import factor_lower
from fastmmc.execution import OutOfTime, RunControl

# Steps of the dual solver in one round, as a multiple of n, before it gives up.
MOST_STEPS = 10_000

# A part of the points is solved to the first share of the violation among all of them. It holds
# the points that are less than the second share of it from violating the conditions. A part larger
# than the last share of all is not worth its copy of the Gram matrix.
PART_TOLERANCE = 0.3
PART_MARGIN = 0.02
LARGEST_PART = 0.5

# No machine is asked for more than this share of its objective.
LEAST_GAP = 1e-9

# The dual solver has come to the end of its digits when so many steps (a multiple of n, at least
# the second number) or so many parts have raised the dual objective by less than this share, or
# than the rounding errors of its sum.
STALL_STEPS = 20
LEAST_STALL_STEPS = 20_000
STALL_PARTS = 1000
STALL = 1e-12
SUM_ROUNDING = 1e-15

# Rows of a matrix that are multiplied between two looks at the clock.
ROWS = 2048

# LIBSVM's first limit is worth so many elementary operations, and is raised by this factor.
FIRST_OPERATIONS = 20_000_000
LEAST_LIMIT = 100
LIMIT_GROWTH = 4

# Passes of LIBLINEAR at most, and seconds that one takes for each number on a slow machine.
MOST_PASSES = 1000
SLOW_NUMBER = 1e-8

NO_LIMIT = RunControl()


def least_violation(largest_cost):
    """Return the least violation that gradients of such dual variables can show."""
    return np.finfo(np.float64).eps * max(1.0, largest_cost)


def box(y, cost, hinge):
    """Return the bounds of the dual variables, (n,) each.

    ``cost`` is s_i C. They are the slopes of the loss max(0, upper (r - epsilon),
    lower (r + epsilon)) of the residual r = y - f.
    """
    if not hinge:
        return -cost, cost
    return np.where(y > 0, 0.0, -cost), np.where(y > 0, cost, 0.0)


def sum_losses(residuals, lower, upper, epsilon):
    """Return sum s_i C loss_i of the residuals, with the bounds that :func:`box` gives."""
    losses = np.maximum(upper * (residuals - epsilon), lower * (residuals + epsilon))
    return float(np.maximum(losses, 0.0).sum())


def primal_and_dual(u, scores, bias, y, cost, hinge, epsilon):
    """Return |w|^2 + 2 sum s_i C loss_i at the bias, and the bound on it that u gives."""
    norm = float(u @ scores)
    losses = sum_losses(y - scores - bias, *box(y, cost, hinge), epsilon)
    primal = norm + 2.0 * losses
    dual = 2.0 * float(u @ y - epsilon * np.abs(u).sum()) - norm
    return primal, dual


@dataclass(frozen=True, eq=False)
class Solution:
    """What is kept of a machine.

    Attributes
    ----------
    u : (n,) float64 array or None
        Dual coefficients.
    w : (r,) float64 array or None
        Weights in features.
    scores : (n,) float64 array
        w . phi(x_i).
    gap : float or None
        Duality gap.
    """

    u: np.ndarray | None
    w: np.ndarray | None
    scores: np.ndarray
    gap: float | None


class _Machine:
    """What all machines share."""

    u = None
    w = None
    # The relative gap that it can be expected to reach.
    least_gap = LEAST_GAP
    gap = np.nan
    objective = np.inf
    n_steps = 0
    capped = False

    def relative_gap(self):
        """Return the duality gap as a share of the objective."""
        return self.gap / max(self.objective, np.finfo(float).tiny)

    def expect(self, w, bias):
        """Be told weights in features that are near those to be found, before the first labels."""

    def look(self):
        """Set the attributes from where the training stands."""

    def refine(self):
        """Ask for more exactness; there is none to be had."""
        return False

    def solution(self):
        """Return a copy of what the machine has found."""
        return Solution(
            u=None if self.u is None else self.u.copy(),
            w=None if self.w is None else self.w.copy(),
            scores=self.scores.copy(),
            gap=None if np.isnan(self.gap) else float(self.gap),
        )


class TrainedMachine(_Machine):
    """Weights that were found in other ways.

    Parameters
    ----------
    Z : (n, r) float64 array
        Features.
    w : (r,) float64 array
        Weights.
    """

    def __init__(self, Z, w):
        self.w = w
        self.scores = Z @ w
        self.norm = float(w @ w)


class SupportMachine(_Machine):
    """What the machines for the hinge and the Laplacian loss share."""

    def __init__(self, cost, hinge, epsilon):
        self._cost = cost
        self._hinge = hinge
        self._epsilon = epsilon
        self.u = np.zeros(cost.size)
        self.scores = np.zeros(cost.size)
        self.bias = 0.0
        self.norm = 0.0

    def _rate(self, y):
        """Note what the present u is worth."""
        self.norm = max(0.0, float(self.u @ self.scores))
        self.objective, dual = primal_and_dual(
            self.u, self.scores, self.bias, y, self._cost, self._hinge, self._epsilon
        )
        self.gap = max(0.0, self.objective - dual)


class DualMachine(SupportMachine):
    """The compiled dual solver on a Gram matrix; every round begins where the last one ended.

    Most points end at a bound and stay there. So the solver works on the others: those between
    their bounds, and those that violate the optimality conditions or nearly do. When these are
    solved, to a share of the violation among all points, it looks at all points and chooses again.

    Parameters
    ----------
    K : (n, n) float64 array
        Gram matrix.
    cost : (n,) float64 array
        s_i C.
    hinge : bool
        Hinge loss; else the Laplacian one.
    epsilon : float
        Of the Laplacian loss.
    tol : float
        Violation of the optimality conditions, and relative duality gap, to stop at.
    """

    def __init__(self, K, cost, hinge, epsilon, tol):
        super().__init__(cost, hinge, epsilon)
        self._K = K
        self._tol = tol
        self._gap_tol = tol
        self._all = _new_dual(np.diagonal(K), self.u)
        self._y = np.zeros(cost.size)
        self._stall_steps = max(STALL_STEPS * cost.size, LEAST_STALL_STEPS)
        # For the Gram matrices of parts: fresh memory takes longer to get than to fill.
        self._room = np.empty(int(LARGEST_PART * cost.size) ** 2)

    def begin(self, y):
        """Set the labels."""
        dual = self._all
        dual.grad[:] += y - self._y
        self._y = y
        self._violation = self._tol
        self._steps_left = MOST_STEPS * self.u.size
        self.capped = False
        self._begin_watch()
        before = self.u.copy()
        dual.lower[:], dual.upper[:] = box(y, self._cost, self._hinge)
        _move_into_box(self.u, dual.lower, dual.upper)
        self._carry(np.arange(self.u.size), self.u - before)
        kernels.prepare(dual, self._epsilon)
        self._choose()

    def _carry(self, rows, changes):
        """Carry changes of u over to the gradient."""
        moved = changes != 0.0
        kernels.subtract_rows(self._all.grad, self._K, rows[moved], changes[moved])

    def step(self, budget):
        """Go on; return whether the violation and the gap are below their tolerances."""
        while budget > 0:
            part = self._part
            before = part.pos[kernels.STEPS]
            most = min(self._steps_left, self._stall_steps)
            ended = kernels.solve_dual(
                self._part_K, part, self._epsilon, self._part_tol, most, budget
            )
            self.n_steps += int(part.pos[kernels.STEPS] - before)
            if not ended:
                return False
            made = int(part.pos[kernels.STEPS])
            self._steps_left -= made
            budget -= part.u.size * (2 * made + self.u.size)
            self._merge()
            violation = self._all.value[kernels.HIGH] - self._all.value[kernels.LOW]
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
        """Begin to watch for rounding that leaves no way on."""
        self._watched_steps = self._watched_parts = 0
        self._dual, self._is_fresh = -np.inf, False

    def _has_stalled(self, made):
        """Tell whether the last parts have gained nothing, even with a fresh gradient."""
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
        """Compute the gradient from scratch: rounding adds up from step to step."""
        self._all.grad[:] = self._y - self._K @ self.u
        self._is_fresh, self._dual = True, -np.inf
        kernels.prepare(self._all, self._epsilon)
        kernels.extremes(self._all)

    def _choose(self):
        """Choose the points to work on, and how exactly."""
        dual = self._all
        high, low = kernels.extremes(dual)
        violation = high - low
        self._part_tol = max(self._violation, PART_TOLERANCE * violation)
        free = (dual.lower < self.u) & (self.u < dual.upper)
        # Points between the bounds tell where the gradients will meet; the extremes may be those of
        # a few points that have just changed their labels.
        level = np.median(dual.grad[free]) if free.any() else 0.5 * (high + low)
        near = PART_MARGIN * violation
        up, down = dual.grad + dual.rise, dual.grad + dual.fall
        free |= (up > level - near) | (down < level + near)
        free[[np.argmax(up), np.argmin(down)]] = True
        chosen = np.flatnonzero(free)
        if chosen.size > LARGEST_PART * self.u.size:
            self._chosen, self._part, self._part_K = None, dual, self._K
            kernels.prepare(dual, self._epsilon)
            return
        self._chosen = chosen
        self._part_K = self._room[: chosen.size**2].reshape(chosen.size, chosen.size)
        kernels.copy_part(self._K, chosen, self._part_K)
        part = _new_dual(dual.diag[chosen], self.u[chosen])
        part.grad[:] = dual.grad[chosen]
        part.lower[:], part.upper[:] = dual.lower[chosen], dual.upper[chosen]
        kernels.prepare(part, self._epsilon)
        self._part = part

    def _merge(self):
        """Carry what was solved over to all points."""
        dual, chosen = self._all, self._chosen
        if chosen is not None:
            self._carry(chosen, self._part.u - self.u[chosen])
            self.u[chosen] = self._part.u
            kernels.prepare(dual, self._epsilon)
        kernels.extremes(dual)

    def look(self):
        """Set the attributes from where the training stands."""
        dual = self._all
        if self._chosen is not None and self._part.pos[kernels.STEPS] > 0:
            self._merge()
        self.bias = 0.5 * (dual.value[kernels.HIGH] + dual.value[kernels.LOW])
        np.subtract(self._y, dual.grad, out=self.scores)
        self._rate(self._y)

    def refine(self):
        """Ask for a gap ten times as small."""
        if self.capped or self.relative_gap() <= LEAST_GAP:
            return False
        self._gap_tol = 0.1 * self.relative_gap()
        self._violation = 0.1 * self._violation
        self._begin_watch()
        self._refresh()
        self._is_fresh = False
        self._choose()
        return True


def _new_dual(diag, u):
    """Return a state of the dual solver that works on u in place."""
    n = u.size
    return kernels.Dual(
        u=u,
        grad=np.zeros(n),
        lower=np.zeros(n),
        upper=np.zeros(n),
        rise=np.zeros(n),
        fall=np.zeros(n),
        diag=np.ascontiguousarray(diag),
        high=np.zeros(kernels.LANES),
        low=np.zeros(kernels.LANES),
        where=np.zeros(kernels.LANES),
        pos=np.zeros(kernels.N_POS, dtype=np.int64),
        value=np.zeros(kernels.N_VALUES),
    )


def _move_into_box(u, lower, upper):
    """Clip u to its bounds, and shrink the side that is too heavy until e^T u = 0 again."""
    np.clip(u, lower, upper, out=u)
    up, down = u[u > 0].sum(), -u[u < 0].sum()
    if up > down:
        u[u > 0] *= down / up
    elif down > up:
        u[u < 0] *= up / down


class LibsvmMachine(SupportMachine):
    """LIBSVM on the Gram matrix, from scratch every round.

    It cannot be interrupted, nor go on where it stopped. So it gets a limit of steps, and more of
    them from scratch where that was too low.

    Parameters
    ----------
    K, cost, hinge, epsilon, tol
        As for :class:`DualMachine`; tol is a violation.
    control : RunControl, optional
        With the time limit.
    """

    # LIBSVM has kernel values in single precision.
    least_gap = 1e-3

    def __init__(self, K, cost, hinge, epsilon, tol, control=NO_LIMIT):
        super().__init__(cost, hinge, epsilon)
        self._K = np.ascontiguousarray(K)
        self._tol = tol
        self._control = control
        self._largest = float(cost.max())

    def begin(self, y):
        """Set the labels."""
        self._y = y
        self._gap_before = np.inf
        self._restart()

    def _restart(self):
        """Begin with few steps."""
        self._limit = max(LEAST_LIMIT, FIRST_OPERATIONS // self.u.size)
        self._pace = 0.0
        self._dual = -np.inf
        self.capped = False

    def step(self, budget):
        """Train; return whether LIBSVM came to its end, or had better give up."""
        # Steps that a time limit leaves no room for end the start.
        limit = min(self._limit, self._control.time_left() / self._pace if self._pace else np.inf)
        if self._pace and limit < 2 * self._limit / LIMIT_GROWTH:
            raise OutOfTime
        began = time.perf_counter()
        trained = train_kernel_machine(
            self._K,
            self._y,
            self._largest,
            self._cost / self._largest,
            self._hinge,
            self._epsilon,
            self._tol,
            int(limit),
        )
        self._pace = (time.perf_counter() - began) / max(1, trained.n_iter)
        self.n_steps += trained.n_iter
        self.u, self.bias = trained.u, trained.bias
        np.matmul(self._K, self.u, out=self.scores)
        before = self._dual
        self._rate(self._y)
        self._dual = self.objective - self.gap
        if trained.ended:
            return True
        most = MOST_STEPS * self.u.size
        if self._limit >= most or not self._dual - before > LEAST_GAP * abs(self._dual):
            # Many times the steps have gained nothing: the tolerance is below the rounding.
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
    """LIBLINEAR on features; it also penalises the bias.

    Parameters
    ----------
    Z : (n, r) float64 array
        Features: w is r numbers.
    cost, hinge, epsilon, tol
        As for :class:`DualMachine`; tol is LIBLINEAR's own criterion.
    seed : int
        LIBLINEAR visits the points in random order.
    control : RunControl, optional
        With the time limit.
    """

    def __init__(self, Z, cost, hinge, epsilon, tol, seed, control=NO_LIMIT):
        super().__init__(cost, hinge, epsilon)
        self.u = None  # LIBLINEAR keeps its dual variables to itself
        self._Z = np.ascontiguousarray(Z)
        self._tol = tol
        self._seed = seed
        self._control = control
        # Seconds of a pass; at first a guess that is too high.
        self._pace = SLOW_NUMBER * Z.size
        self._made = 0

    def begin(self, y):
        """Set the labels."""
        self._y = y
        self._made = 0

    def step(self, budget):
        """Train; one call of LIBLINEAR cannot be sliced, but has no more passes than time."""
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
        # From scratch with more passes, if there is time for these after all.
        self._made = made
        return ended or limit == MOST_PASSES


class LeastSquaresMachine(_Machine):
    """Least-squares SVM: the matrix K + I / g is factored once, a round costs O(n^2).

    [[0, e^T], [e, K + diag(1 / g)]] [b; a] = [0; y] with g_i = 2 s_i C; then the scores are
    K a = y - b - a / g.

    Parameters
    ----------
    solve : callable
        Returns (K + diag(1 / g))^-1 times a vector.
    cost : (n,) float64 array
        s_i C.
    Z : (n, r) float64 array, optional
        Features, where K = Z Z^T.
    """

    def __init__(self, solve, cost, Z=None):
        n = cost.size
        self._Z = Z
        self._solve = solve
        self._ridge = 0.5 / cost
        self._solved_ones = solve(np.ones(n))
        self.gap = 0.0

    def begin(self, y):
        """Set the labels."""
        self._y = y

    def step(self, budget):
        """Solve the linear system."""
        solved = self._solve(self._y)
        self.bias = float(solved.sum() / self._solved_ones.sum())
        self.u = solved - self.bias * self._solved_ones
        self.scores = self._y - self.bias - self._ridge * self.u
        if self._Z is not None:
            self.w = self._Z.T @ self.u
        self.norm = max(0.0, float(self.u @ self.scores))
        self.n_steps += 1
        return True


def dense_solver(K, ridge, look=lambda: None):
    """Return a function that applies (K + diag(ridge))^-1, from one Cholesky factorisation."""
    A = K.copy()
    A.flat[:: A.shape[0] + 1] += ridge
    if not factor_lower(A, lambda share: look()):
        raise np.linalg.LinAlgError("the kernel matrix is not positive semidefinite")
    # The transpose is in the order that LAPACK wants.
    return lambda y: cho_solve((A.T, False), y, check_finite=False)


def feature_solver(Z, ridge, look=lambda: None):
    """Return a function that applies (Z Z^T + diag(ridge))^-1, O(nr) a call (Woodbury)."""
    scaled = Z / ridge[:, None]
    inner = np.eye(Z.shape[1])
    for start in range(0, Z.shape[0], ROWS):
        look()
        rows = slice(start, start + ROWS)
        inner += Z[rows].T @ scaled[rows]
    factor = cho_factor(inner, lower=True, overwrite_a=True, check_finite=False)

    def solve(y):
        by_ridge = y / ridge
        return by_ridge - scaled @ cho_solve(factor, Z.T @ by_ridge, check_finite=False)

    return solve
