"""The alternation: training and relabelling in turn, and what all starts of a call share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from fastmmc import memory
from fastmmc.alternating.bias import WeightBounds, search_bias
from fastmmc.alternating.interior import InteriorMachine
from fastmmc.alternating.machines import (
    DualMachine,
    LeastSquaresMachine,
    LibsvmMachine,
    LinearMachine,
    TrainedMachine,
    dense_solver,
    feature_solver,
)
from fastmmc.alternating.start import first_labels
from fastmmc.cholesky import mirror_lower
from fastmmc.execution import OutOfTime, RunControl, restart_stream
from fastmmc.gram import Kernel, box_diagonal, fill_lower_gram, resolve_kernel
from fastmmc.nystroem import LANDMARK_STREAM, Features, Form, make_features
from fastmmc.results import Status

# A round that lowers the objective by less than this share ends the alternation.
LEAST_DECREASE = 1e-6

# Width of the Gaussian where none is given, in diagonals of the box around the points.
WIDTH = 3.0

# The interior-point method's tolerance, a relative gap, as a share of tol: its last digits cost a
# step or two.
INTERIOR_TOLERANCE = 0.1

# More points than this in features are clustered by a sample of so many first: rounds are what a
# start costs, and most of them are spent far from where it ends.
MOST_WITHOUT_SAMPLE = 8000
SAMPLE = 2000

# Features in place of the Gram matrix, or of better ones, where a time limit has no room for these.
BRIEF_RANK = 50

# Sums of squares of features, and traces of Gram matrices, above this leave the range of doubles
# where they are multiplied with dual variables.
MOST_SQUARES = 1e150

# Elementary operations between two looks at the clock while the last machine is trained.
REFIT_BUDGET = 10_000_000


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything that the starts of one call have in common."""

    points: np.ndarray
    kernel: Kernel
    form: Form
    weights: np.ndarray
    C: float
    bounds: WeightBounds
    loss: str
    epsilon: float
    tied: bool
    solver: str
    tol: float
    max_iter: int
    init: str | np.ndarray
    refit: bool
    params: dict
    control: RunControl

    @property
    def cost(self):
        """What a unit of a point's loss costs, s_i C."""
        return self.C * self.weights

    def look_at_clock(self):
        """Leave the phase at hand if the time limit has passed."""
        self.control.check_time()


@dataclass(frozen=True, eq=False)
class Data:
    """The Gram matrix of the points, or features in its place; brief ones for want of time."""

    kernel: Kernel
    K: np.ndarray | None
    features: Features | None
    solve_ridge: Callable | None  # applies (K + diag(1 / g))^-1; for least squares only
    is_brief: bool = False


def make_data(plan, seed, on_progress):
    """Return the Gram matrix or the features, and what all starts do with them only once."""
    kernel = resolve_kernel(plan.kernel, plan.points, _default_width)
    look = plan.look_at_clock
    try:
        K, features = _make_products(plan, kernel, seed, look)
        data = Data(kernel, K, features, _make_solver(plan, K, features, look))
    except OutOfTime:
        form = Form(min(BRIEF_RANK, plan.points.shape[0]), "uniform")
        features = _make_features(plan, kernel, form, seed, lambda: None)
        solve = _make_solver(plan, None, features, lambda: None)
        data = Data(kernel, None, features, solve, is_brief=True)
    on_progress(1.0)
    return data


def _make_products(plan, kernel, seed, look):
    """Return the Gram matrix, or features, in time and of values that can be computed with."""
    K = features = None
    # What overflows is told below.
    with np.errstate(over="ignore", invalid="ignore"):
        if not has_features(plan.kernel, plan.form, plan.solver, plan.points):
            K = _gram_matrix(kernel, plan.points, look)
            squares = float(np.trace(K))
        else:
            if plan.form.rank is None:
                features = _linear_features(kernel, plan.points)
            else:
                features = _make_features(plan, kernel, plan.form, seed, look)
            squares = float(np.einsum("ij,ij->", features.Z, features.Z))
    if not squares <= MOST_SQUARES:
        raise ValueError(
            f"X: kernel={kernel.name!r} gives values that are too large for these points (the sum "
            f"of k(x, x) is {squares:.3g}, and may be {MOST_SQUARES:g}); scale them"
        )
    return K, features


def _make_features(plan, kernel, form, seed, look):
    """Return features of low rank."""
    return make_features(
        plan.points,
        kernel,
        form.rank,
        form.landmarks,
        form.rank_tol,
        restart_stream(seed, LANDMARK_STREAM),
        np.dtype(np.float64),
        lambda n_rows: look(),
    )


def _make_solver(plan, K, features, look):
    """Return what all least-squares machines have in common, None for other losses."""
    if plan.loss != "square":
        return None
    ridge = 0.5 / plan.cost
    if features is None:
        return dense_solver(K, ridge, look)
    return feature_solver(features.Z, ridge, look)


def has_features(kernel, form, solver, points):
    """Tell whether the machines work on features instead of the Gram matrix."""
    narrow = kernel.name == "linear" and points.shape[1] < points.shape[0]
    return form.rank is not None or (narrow and solver not in ("smo", "libsvm"))


def _default_width(points):
    return WIDTH * box_diagonal(points)


def _gram_matrix(kernel, points, look):
    if kernel.name == "precomputed":
        return points.astype(np.float64, copy=False)
    n = points.shape[0]
    memory.check_memory(n, np.dtype(np.float64), what="Gram matrix")
    K = np.empty((n, n))
    fill_lower_gram(kernel, points.astype(np.float64, copy=False), K, lambda share: look())
    mirror_lower(K, look=look)
    return K


def _linear_features(kernel, points):
    """Return the points with a constant column: their products are the linear kernel."""
    n, d = points.shape
    Z = np.empty((n, d + 1))
    Z[:, :d] = points
    Z[:, d] = np.sqrt(kernel.coef0)
    return Features(Z, np.eye(d + 1), np.empty((0, d)), None)


def _make_machine(plan, data, loss, seed):
    """Return a fresh machine for a loss."""
    if loss == "square":
        Z = None if data.features is None else data.features.Z
        return LeastSquaresMachine(data.solve_ridge, plan.cost, Z)
    settings = (plan.cost, loss == "hinge", plan.epsilon if loss == "laplace" else 0.0)
    if data.features is None and plan.solver == "libsvm":
        return LibsvmMachine(data.K, *settings, plan.tol, plan.control)
    if data.features is None:
        return DualMachine(data.K, *settings, plan.tol)
    if plan.solver == "linear":
        return LinearMachine(data.features.Z, *settings, plan.tol, seed, plan.control)
    tol = INTERIOR_TOLERANCE * plan.tol
    return InteriorMachine(data.features.Z, *settings, tol, plan.look_at_clock)


class Alternation:
    """One start: rounds of training and relabelling.

    With a joint bias both halves of a round lower |w|^2 + 2C sum s_i loss(y_i, f_i), so the rounds
    end. A machine that is not exact may hide a decrease; then it is asked for more before a round
    is judged. With a tied bias the objective may rise, and labels that come back end the start.
    """

    def __init__(self, plan, data, index, rng):
        self._plan = plan
        self._data = data
        self._machine = _make_machine(plan, data, plan.loss, int(rng.integers(2**31)))
        self._rounds = []
        self.objective = np.inf
        self.status = Status.TIME_LIMIT if data.is_brief else Status.CONVERGED
        self.n_iter = 0
        self.n_moves = 0
        init = plan.init
        self._scout = None
        if isinstance(init, str):
            if index > 0 and init == "farthest" and data.kernel.name != "precomputed":
                # Far points are much the same every time; other starts find other optima.
                init = "kmeans"
            self._scout = _make_scout(plan, data, init, index, rng)
        if self._scout is None:
            labels = first_labels(
                init, plan.points, plan.kernel, plan.weights, rng, plan.look_at_clock
            )
            self._begin(np.where(labels == 1, 1.0, -1.0))

    def _begin(self, y):
        """Begin the rounds."""
        self._y = y
        self._seen = {np.packbits(y > 0).tobytes()}
        self._machine.begin(y)

    def step(self, budget):
        """Go on; return whether the alternation has ended."""
        if self._scout is None:
            return self._machine.step(budget) and self._end_round()
        if self._scout.step(budget):
            w = self._scout.solution.w
            self._scout = None
            split, _ = self._relabel(TrainedMachine(self._data.features.Z, w))
            self._machine.expect(w, split.bias)
            self._begin(split.y)
        return False

    def fraction(self):
        """Return a guess of the share that is done: most runs end within ten rounds."""
        return min(0.95, self.n_iter / min(10, self._plan.max_iter))

    def finish(self):
        """Relabel by a machine that is not trained to its end, if there is nothing better."""
        if self._scout is not None:
            self._scout.finish()
            self._machine = TrainedMachine(self._data.features.Z, self._scout.solution.w)
            self._y = self._relabel(self._machine)[0].y
        if self.n_iter == 0:
            self._machine.look()
            self._keep(*self._relabel(self._machine))

    def _relabel(self, machine):
        """Return the best labels for the machine's scores, and the objective they have."""
        plan = self._plan
        split = search_bias(machine.scores, plan.bounds, plan.loss, plan.epsilon, plan.tied)
        return split, machine.norm + 2.0 * plan.C * split.loss

    def _end_round(self):
        """Relabel; return whether there is nothing more to do."""
        plan, machine = self._plan, self._machine
        split, objective = self._relabel(machine)
        labels = np.packbits(split.y > 0).tobytes()
        falls = plan.tied or objective < self.objective * (1.0 - LEAST_DECREASE)
        goes_on = falls and labels not in self._seen
        enough = np.inf if goes_on else plan.tol if falls else LEAST_DECREASE
        if machine.relative_gap() > enough and machine.refine():
            return False
        self._keep(split, objective)
        most = max(plan.tol, machine.least_gap)
        gives_up = machine.capped and not machine.relative_gap() <= most
        if gives_up or machine.relative_gap() > max(enough, most) or not np.isfinite(objective):
            self.status = Status.NUMERICAL
        if not goes_on:
            return True
        self._seen.add(labels)
        if self.n_iter == plan.max_iter:
            self.status = Status.MAX_ITER
            return True
        self._y = split.y
        machine.begin(self._y)
        return False

    def _keep(self, split, objective):
        """Note a round, and what it found if that is the best so far."""
        machine = self._machine
        self.n_iter += 1
        self.n_moves += int(np.sum(split.y != self._y))
        if objective > self.objective and not self._plan.tied:
            return  # by less than LEAST_DECREASE: rounding
        self._rounds.append((objective, machine.gap, split.bias, machine.n_steps))
        if objective <= self.objective:
            self.objective = objective
            self.split = split
            self.labels = (split.y > 0).astype(np.int64)
            self.solution = machine.solution()

    @property
    def history(self):
        """Objective after each round, (T,)."""
        return np.array([row[0] for row in self._rounds])

    @property
    def trace(self):
        """Duality gap, bias and steps of the machine, round by round."""
        _, gaps, biases, steps = zip(*self._rounds, strict=True)
        return {"gap": np.array(gaps), "bias": np.array(biases), "steps": np.array(steps)}


def _make_scout(plan, data, init, index, rng):
    """Return the alternation of a sample of the points, or None where all can go at once.

    It needs features, whose weights label the other points too; a tied bias follows the paper.
    """
    n = plan.weights.size
    if data.features is None or plan.tied or n <= MOST_WITHOUT_SAMPLE:
        return None
    total = plan.weights.sum()
    drawn = rng.choice(n, SAMPLE, p=plan.weights / total)
    chosen, counts = np.unique(drawn, return_counts=True)
    # The sample weighs as much as all points, so that C and the sizes mean the same.
    weights = counts * (total / SAMPLE)
    features = replace(data.features, Z=data.features.Z[chosen])
    scout_plan = replace(
        plan,
        points=plan.points[chosen],
        weights=weights,
        bounds=replace(plan.bounds, weights=weights),
        init=init,
    )
    solve = _make_solver(scout_plan, None, features, lambda: None)
    scout_data = replace(data, features=features, solve_ridge=solve)
    return Alternation(scout_plan, scout_data, index, rng)


def refit_machine(plan, data, labels):
    """Train a support vector machine on the final labels.

    Returns its solution, its bias, and whether the time limit cut it short.
    """
    machine = _make_machine(plan, data, "hinge", 0)
    machine.begin(np.where(labels == 1, 1.0, -1.0))
    try:
        while not machine.step(REFIT_BUDGET):
            plan.look_at_clock()
    except OutOfTime:
        machine.look()
        return machine.solution(), machine.bias, True
    return machine.solution(), machine.bias, False
