"""The alternation: training and relabelling in turn, on what all starts of a call share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_matrix

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
from fastmmc.execution import OutOfTime, RunControl
from fastmmc.gram import Kernel, box_diagonal, fill_lower_gram, resolve_kernel
from fastmmc.nystroem import Features, Form, brief_features, form_features
from fastmmc.results import Status

# A round that lowers the objective by less than this share ends the alternation.
LEAST_DECREASE = 1e-6

# Default width of the Gaussian, in diagonals of the box around the points.
WIDTH = 3.0

# The interior-point method's tolerance, a relative gap, as a share of tol: its last digits cost
# only a step or two.
INTERIOR_TOLERANCE = 0.1

# Above the first number of points in features a start begins with a sample of the second number:
# most of its rounds, which are its cost, are far from its end.
MOST_WITHOUT_SAMPLE = 8000
SAMPLE = 2000

# Larger sums of squares of features, and traces of Gram matrices, leave the range of doubles when
# they are multiplied with dual variables.
MOST_SQUARES = 1e150

# Elementary operations between two looks at the clock while the last machine is trained.
REFIT_BUDGET = 10_000_000


@dataclass(frozen=True, eq=False)
class AlternationSettings:
    """What an alternation is told; ``params`` is what a result says of that."""

    kernel: Kernel
    form: Form
    C: float
    loss: str
    epsilon: float
    init: str | np.ndarray
    bias: str
    max_iter: int
    solver: str
    tol: float
    refit: bool
    params: dict
    control: RunControl

    @property
    def tied(self):
        """Whether labels are the signs of the scores."""
        return self.bias == "tied"

    def cost(self, bounds):
        """Return what a unit of each point's loss costs, s_i C."""
        return self.C * bounds.weights


@dataclass(frozen=True, eq=False)
class Data:
    """Weighted points (n, d), and their Gram matrix or features; brief ones for want of time.

    For least squares ``solve_ridge`` applies (K + diag(1 / g))^-1.
    """

    points: np.ndarray | csr_matrix
    bounds: WeightBounds
    kernel: Kernel
    K: np.ndarray | None
    features: Features | None
    solve_ridge: Callable | None
    is_brief: bool = False


def make_data(settings, points, bounds, seed, on_progress):
    """Return the data that all starts share."""
    kernel = resolve_kernel(settings.kernel, points, _default_width)

    def make(look, is_brief=False):
        K, features = _make_products(settings, points, kernel, seed, look, is_brief)
        solve = _make_solver(settings, bounds, K, features, look)
        return Data(points, bounds, kernel, K, features, solve, is_brief)

    try:
        data = make(settings.control.check_time)
    except OutOfTime:
        data = make(lambda: None, is_brief=True)
    on_progress(1.0)
    return data


@np.errstate(over="ignore", invalid="ignore")
def _make_products(settings, points, kernel, seed, look, is_brief):
    """Return the Gram matrix or features, the other one None; refuse values out of range."""
    K, features, form = None, None, settings.form
    if is_brief:
        features = brief_features(points, kernel, seed)
    elif not has_features(kernel, form, settings.solver, points):
        K = _gram_matrix(kernel, points, look)
    elif form.rank is None:
        features = _linear_features(kernel, points)
    else:
        features = form_features(points, kernel, form, seed, look)
    if features is None:
        squares = float(np.trace(K))
    else:
        squares = float(np.einsum("ij,ij->", features.Z, features.Z))
    if not squares <= MOST_SQUARES:
        raise ValueError(
            f"X: kernel={kernel.name!r} gives values that are too large for these points (the sum "
            f"of k(x, x) is {squares:.3g}, and may be {MOST_SQUARES:g}); scale them"
        )
    return K, features


def _make_solver(settings, bounds, K, features, look):
    """Return what all least-squares machines share, None for other losses."""
    if settings.loss != "square":
        return None
    ridge = 0.5 / settings.cost(bounds)
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
    """Return the points with a constant column, whose products are the linear kernel."""
    n, d = points.shape
    Z = np.empty((n, d + 1))
    Z[:, :d] = points
    Z[:, d] = np.sqrt(kernel.coef0)
    return Features(Z, np.eye(d + 1), np.empty((0, d)), None)


def _make_machine(settings, data, loss, seed):
    """Return a fresh machine for a loss."""
    cost, features = settings.cost(data.bounds), data.features
    if loss == "square":
        return LeastSquaresMachine(data.solve_ridge, cost, None if features is None else features.Z)
    given = cost, loss == "hinge", settings.epsilon if loss == "laplace" else 0.0
    tol, control = settings.tol, settings.control
    if features is None:
        if settings.solver == "libsvm":
            return LibsvmMachine(data.K, *given, tol, control)
        return DualMachine(data.K, *given, tol)
    if settings.solver == "linear":
        return LinearMachine(features.Z, *given, tol, seed, control)
    return InteriorMachine(features.Z, *given, INTERIOR_TOLERANCE * tol, control.check_time)


class Alternation:
    """One start: rounds of training and relabelling.

    With a joint bias both halves of a round lower |w|^2 + 2C sum s_i loss(y_i, f_i), so the rounds
    end. An inexact machine may hide a decrease; then it is refined before the round is judged. With
    a tied bias the objective may rise, and labels that occurred before end the start.
    """

    def __init__(self, settings, data, index, rng):
        self._settings = settings
        self._data = data
        self._machine = _make_machine(settings, data, settings.loss, int(rng.integers(2**31)))
        self._rounds = []
        self.objective = np.inf
        self.status = Status.TIME_LIMIT if data.is_brief else Status.CONVERGED
        self.n_iter = 0
        self.n_moves = 0
        init = settings.init
        self._scout = None
        if isinstance(init, str):
            if index > 0 and init == "farthest" and data.kernel.name != "precomputed":
                # Far points are much the same every time; other starts find other optima.
                init = "kmeans"
            self._scout = _make_scout(settings, data, index, rng)
        if self._scout is None:
            weights, look = data.bounds.weights, settings.control.check_time
            labels = first_labels(init, data.points, data.kernel, weights, rng, look)
            self._begin(np.where(labels == 1, 1.0, -1.0))

    def _begin(self, y):
        """Start the rounds."""
        self._y = y
        self._seen = {np.packbits(y > 0).tobytes()}
        self._machine.begin(y)

    def step(self, budget):
        """Continue; return whether the alternation has ended."""
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
        """Return a guess of the share that is over: most runs end within ten rounds."""
        return min(0.95, self.n_iter / min(10, self._settings.max_iter))

    def finish(self):
        """Relabel by a machine that is not fully trained, if there is nothing better."""
        if self._scout is not None:
            self._scout.finish()
            self._machine = TrainedMachine(self._data.features.Z, self._scout.solution.w)
            self._y = self._relabel(self._machine)[0].y
        if self.n_iter == 0:
            self._machine.look()
            self._keep(*self._relabel(self._machine))

    def _relabel(self, machine):
        """Return the best labels for the machine's scores, and their objective."""
        given, bounds = self._settings, self._data.bounds
        split = search_bias(machine.scores, bounds, given.loss, given.epsilon, given.tied)
        return split, machine.norm + 2.0 * given.C * split.loss

    def _end_round(self):
        """Relabel; return whether there is nothing more to do."""
        settings, machine = self._settings, self._machine
        split, objective = self._relabel(machine)
        labels = np.packbits(split.y > 0).tobytes()
        falls = settings.tied or objective < self.objective * (1.0 - LEAST_DECREASE)
        goes_on = falls and labels not in self._seen
        enough = np.inf if goes_on else settings.tol if falls else LEAST_DECREASE
        if machine.relative_gap() > enough and machine.refine():
            return False
        self._keep(split, objective)
        most = max(settings.tol, machine.least_gap)
        gives_up = machine.capped and not machine.relative_gap() <= most
        if gives_up or machine.relative_gap() > max(enough, most) or not np.isfinite(objective):
            self.status = Status.NUMERICAL
        if not goes_on:
            return True
        self._seen.add(labels)
        if self.n_iter == settings.max_iter:
            self.status = Status.MAX_ITER
            return True
        self._y = split.y
        machine.begin(self._y)
        return False

    def _keep(self, split, objective):
        """Record a round, and its result if that is the best so far."""
        machine = self._machine
        self.n_iter += 1
        self.n_moves += int(np.sum(split.y != self._y))
        if objective > self.objective and not self._settings.tied:
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


def _make_scout(settings, data, index, rng):
    """Return the alternation of a sample of the points, or None if all can be trained at once.

    It needs features, whose weights also label the other points; a tied bias follows the paper.
    """
    weights = data.bounds.weights
    if data.features is None or settings.tied or weights.size <= MOST_WITHOUT_SAMPLE:
        return None
    total = weights.sum()
    drawn = rng.choice(weights.size, SAMPLE, p=weights / total)
    chosen, counts = np.unique(drawn, return_counts=True)
    # The sample weighs as much as all points, so that C and the sizes mean the same.
    bounds = replace(data.bounds, weights=counts * (total / SAMPLE))
    features = replace(data.features, Z=data.features.Z[chosen])
    solve = _make_solver(settings, bounds, None, features, lambda: None)
    sample = replace(
        data, points=data.points[chosen], bounds=bounds, features=features, solve_ridge=solve
    )
    return Alternation(settings, sample, index, rng)


def refit_machine(settings, data, labels):
    """Train a support vector machine on the final labels.

    Returns its solution, its bias, and whether the time limit cut it short.
    """
    machine = _make_machine(settings, data, "hinge", 0)
    machine.begin(np.where(labels == 1, 1.0, -1.0))
    try:
        while not machine.step(REFIT_BUDGET):
            settings.control.check_time()
        was_cut = False
    except OutOfTime:
        machine.look()
        was_cut = True
    return machine.solution(), machine.bias, was_cut
