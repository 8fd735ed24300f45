"""The alternation: training and relabelling in turn, on what all starts of a call share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_matrix, issparse

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
from fastmmc.alternating.merging import averaging, merge_near
from fastmmc.alternating.start import first_labels, gram_matrix
from fastmmc.core.declare import Parameters
from fastmmc.core.execution import OutOfTime, RunControl, SlicedSearch, fixed_seed, restart_stream
from fastmmc.core.status import Status
from fastmmc.kernels.block_factor import SAMPLE_STREAM
from fastmmc.kernels.gram import Kernel, box_diagonal, kernel_product, resolve_kernel
from fastmmc.kernels.nystroem import Features, Form, brief_features, form_features, with_landmarks

# Those that work on a Gram matrix, and on no features.
DENSE_SOLVERS = ("smo", "libsvm")

# A round that lowers the objective by less than this share ends the alternation.
LEAST_DECREASE = 1e-6

# The same of rounds on representatives, whose objective is some 1e-3 off that of all points; their
# machines are trained to a tenth of the usual digits for the same reason.
MERGED_DECREASE = 1e-4
MERGED_TOLERANCE = 10.0

# More than twice as many representatives begin with so many, merged from them: like a sample, these
# make most of the rounds.
FEW_REPRESENTATIVES = 1000

# Default width of the Gaussian, in diagonals of the box around the points.
WIDTH = 3.0

# The interior-point method's tolerance, a relative gap, as a share of tol: its last digits cost
# only a step or two.
INTERIOR_TOLERANCE = 0.1

# Above the first number of points in features a start begins with a sample of the second number:
# most of its rounds, which are its cost, are far from its end.
MOST_WITHOUT_SAMPLE = 8000
SAMPLE = 2000

# Fewer features than this, with so many points for each, stand for the kernel of `iter_svr` if they
# miss no more than this share of its trace. In processor seconds, with objectives that differ by
# less than 2e-5 on all but one set: t-distributed 2,000 x 5 points .3 (17), log-normal 1,500 x 4 .2
# (8), two moons of 1,500 .2 (.8), two Gaussians of 1,000 with outliers .2 (1.8).
FEW_FEATURES = 100
POINTS_PER_FEATURE = 10
SMOOTH = 1e-10

# Larger sums of squares of features, and traces of Gram matrices, leave the range of doubles when
# they are multiplied with dual variables.
MOST_SQUARES = 1e150

# Elementary operations between two looks at the clock while the last machine is trained.
REFIT_BUDGET = 10_000_000


@dataclass(frozen=True, eq=False)
class Problem:
    """What all starts share; the points come with either their Gram matrix or features.

    ``call`` has the parameters of all methods, and a checked ``init``.
    """

    call: Parameters
    loss: str
    control: RunControl
    points: np.ndarray | csr_matrix  # (n, d)
    bounds: WeightBounds
    kernel: Kernel
    form: Form
    K: np.ndarray | None = None
    features: Features | None = None
    is_brief: bool = False  # features of low rank, for want of time
    solve_ridge: Callable | None = None  # of least squares: labels to bias, u, w and scores
    least_decrease: float = LEAST_DECREASE
    merged: Problem | None = None  # that of representatives, whose rounds come first
    is_trained: bool = True  # by rounds of its own, and not by those of representatives alone

    @property
    def tied(self):
        """Whether labels are the signs of the scores."""
        return self.call.bias == "tied"

    @property
    def cost(self):
        """What a unit of each point's loss costs, s_i C."""
        return self.call.C * self.bounds.weights

    @property
    def Z(self):
        """The features (n, r), or None."""
        return None if self.features is None else self.features.Z

    @property
    def starts_as_told(self):
        """Whether the first labels are given, or a tied bias asks for the paper's rounds."""
        return self.tied or not isinstance(self.call.init, str)

    def score(self, w):
        """Return the scores w . phi(x_i) of all points, (n,)."""
        if self.Z is not None:
            return self.Z @ w
        features = self.features
        weights = features.to_Z @ w
        return kernel_product(self.kernel, self.points, features.basis, weights[:, None])[:, 0]

    def offset(self, w):
        """Return what to add to a bias beside the features for the one beside the kernel."""
        # Only linear features are less their mean.
        is_centred = self.features is not None and not self.is_low_rank
        return float(self.features.to_Z[-1] @ w) if is_centred else 0.0

    @property
    def may_hand_over(self):
        """Whether the interior-point method may take over: it needs inner products."""
        return self.call.solver == "auto" and self.kernel.name not in ("precomputed", "callable")

    @property
    def is_low_rank(self):
        """Whether there are features that are not the points themselves."""
        return self.features is not None and self.features.basis.shape[0] > 0


def prepare(problem, seed):
    """Return the problem with the width of its kernel, its Gram matrix or features, its solver."""
    kernel = resolve_kernel(
        problem.kernel, problem.points, lambda X, metric: WIDTH * box_diagonal(X)
    )
    problem = replace(problem, kernel=kernel)
    look = problem.control.check_time
    try:
        problem = _in_few_features(problem, seed)
        made = _with_representatives(problem, seed)
        if made is None:
            made = _with_solver(_with_products(problem, seed, look), look)
    except OutOfTime:
        made = _in_brief(replace(problem, is_brief=True), seed)
    problem.control.bar.prepare(1.0)
    return made


def _in_brief(problem, seed):
    """Return the problem with few features, of many points with those of a sample.

    A pass that makes 50 features of 2.6 million points takes 3 processor seconds, and their scores
    by the machine of a sample .3.
    """
    is_gram = problem.kernel.name == "precomputed"
    if is_gram or problem.call.refit or not _takes_sample(problem):
        return _with_solver(_with_products(problem, seed))
    sample, _ = _draw_sample(problem, restart_stream(seed, SAMPLE_STREAM))
    # Without a round its labels would be random; what stops the run ends it after a slice.
    sample = replace(sample, control=replace(problem.control, max_time=None))
    sample = _with_solver(_with_products(sample, seed))
    features = replace(sample.features, Z=None, indices=None)
    return replace(problem, features=features, merged=sample, is_trained=False)


def _in_few_features(problem, seed):
    """Return the problem with a form of low rank where so few features are the whole kernel.

    The Gram matrix of a wide Gaussian is nearly singular, and solvers of pairs of points crawl.
    """
    call, points, kernel = problem.call, problem.points, problem.kernel
    most = min(FEW_FEATURES, points.shape[0] // POINTS_PER_FEATURE)
    is_open = call.rank == call.solver == "auto" and problem.form.rank is None and most > 0
    if not (is_open and problem.loss == "laplace" and kernel.name in ("rbf", "poly")):
        return problem
    form, look = Form(most, "pivoted", rank_tol=SMOOTH), problem.control.check_time
    try:
        n_features = form_features(points, kernel, form, seed, look).Z.shape[1]
    except MemoryError:  # which the dense form explains better
        return problem
    return replace(problem, form=form) if n_features < most else problem


@np.errstate(over="ignore", invalid="ignore")
def _with_products(problem, seed, look=lambda ahead=0.0: None):
    """Return the problem with its Gram matrix or features; refuse values out of range."""
    points, kernel, form, K, features = problem.points, problem.kernel, problem.form, None, None
    if problem.is_brief:
        features = brief_features(points, kernel, seed)
    elif not has_features(kernel, form, problem.call.solver, points):
        precomputed = kernel.name == "precomputed"
        K = (
            points.astype(np.float64, copy=False)
            if precomputed
            else gram_matrix(kernel, points, look)
        )
    elif form.rank is None:
        # Less their mean, [X, 1] to_Z, for machines whose bias costs nothing: the scores are those
        # of the linear kernel, whatever its constant, and lose no digits to it.
        mean = points.mean(axis=0, dtype=np.float64)
        to_Z = np.vstack((np.eye(mean.size), -mean))
        features = Features(points - mean, to_Z, np.empty((0, mean.size)), None)
    else:
        features = form_features(points, kernel, form, seed, look)
    squares = np.trace(K) if features is None else np.einsum("ij,ij->", features.Z, features.Z)
    if not squares <= MOST_SQUARES:
        raise ValueError(
            f"X: kernel={kernel.name!r} gives values that are too large for these points (the sum "
            f"of k(x, x) is {squares:.3g}, and may be {MOST_SQUARES:g}); scale them"
        )
    return replace(problem, K=K, features=features)


def _with_solver(problem, look=lambda: None):
    """Return the problem with what all least-squares machines share; unchanged for other losses."""
    if problem.loss != "square":
        return problem
    ridge = 0.5 / problem.cost
    if problem.features is None:
        return replace(problem, solve_ridge=dense_solver(problem.K, ridge, look))
    return replace(problem, solve_ridge=feature_solver(problem.Z, ridge, look))


def _with_representatives(problem, seed):
    """Return the problem with that of its representatives, or None if all points are trained."""
    call, most, look = problem.call, problem.call.max_representatives, problem.control.check_time
    in_features = has_features(problem.kernel, problem.form, call.solver, problem.points)
    if most is None or most >= problem.bounds.weights.size or not in_features:
        return None
    if _takes_means(problem):
        merged, _ = _merge(problem, problem.points, most)
        form = with_landmarks(problem.points, problem.kernel, problem.form, seed, look)
        merged = _with_products(replace(merged, form=form), seed, look)
        problem = replace(problem, features=replace(merged.features, Z=None))
    else:
        problem = _with_products(problem, seed, look)
        merged = _merge_features(problem, most)
    if merged.bounds.weights.size > 2 * FEW_REPRESENTATIVES and not merged.starts_as_told:
        few = _merge_features(merged, FEW_REPRESENTATIVES)
        merged = replace(merged, merged=_with_solver(few, look))
    return replace(problem, merged=_with_solver(merged, look), is_trained=False)


def _takes_means(problem):
    """Tell whether the means of points stand for them, so that their own features are not needed.

    Points of more columns than features take longer to merge than these, pivots need the features
    of all, and a kernel given as a function may take nothing but points of the user's.
    """
    points, form = problem.points, problem.form
    if form.rank is None or issparse(points) or problem.call.refit:
        return False
    is_known = problem.kernel.name not in ("precomputed", "callable")
    return is_known and not form.is_pivoted and points.shape[1] <= form.rank


def _merge_features(problem, most):
    """Return the problem of representatives, with the mean features of their points."""
    points, Z = problem.points, problem.Z
    is_gram = problem.kernel.name == "precomputed"
    rows = Z if is_gram or issparse(points) or points.shape[1] > Z.shape[1] else points
    merged, average = _merge(problem, rows, most)
    return replace(merged, features=replace(problem.features, Z=average @ Z))


def _merge(problem, rows, most):
    """Return the problem of representatives, and the matrix that averages points.

    ``rows`` (n, d) tells which points are close together. Where no kink of the loss is between the
    scores of the points of a representative, it loses what they do: exactly, if its features are
    the mean of theirs, and up to the curvature of the scores, if they are those of the mean point.
    """
    call, points = problem.call, problem.points
    cells = merge_near(rows, problem.bounds.weights, most, problem.control.check_time)
    totals, average = averaging(cells, problem.bounds.weights)
    init = call.init
    if not isinstance(init, str):
        init = (average @ init > 0.5).astype(np.int64)
    is_gram = problem.kernel.name == "precomputed"
    merged = replace(
        problem,
        call=replace(call, init=init, tol=MERGED_TOLERANCE * call.tol),
        points=average @ points @ average.T if is_gram else average @ points,
        bounds=replace(problem.bounds, weights=totals),
        least_decrease=MERGED_DECREASE,
    )
    return merged, average


def has_features(kernel, form, solver, points):
    """Tell whether the machines work on features instead of the Gram matrix."""
    narrow = kernel.name == "linear" and points.shape[1] < points.shape[0]
    return form.rank is not None or (narrow and solver not in DENSE_SOLVERS)


def _make_machine(problem, loss, seed):
    """Return a fresh machine for a loss."""
    call, control, K, Z = problem.call, problem.control, problem.K, problem.Z
    if loss == "square":
        return LeastSquaresMachine(problem.solve_ridge)
    given = problem.cost, loss == "hinge", call.epsilon if loss == "laplace" else 0.0
    if Z is None:
        if call.solver == "libsvm":
            return LibsvmMachine(K, *given, call.tol, control)
        # The interior-point method takes as long as n^2 / 4 steps, each of n operations. With n^2
        # of them 600 x 2 points at sigma=0.5 take 5.2 processor seconds in place of 2.0.
        most_steps = K.shape[0] // 4 if problem.may_hand_over else None
        return DualMachine(K, *given, call.tol, most_steps)
    if call.solver == "linear":
        return LinearMachine(Z, *given, call.tol, seed, control)
    return InteriorMachine(Z, *given, INTERIOR_TOLERANCE * call.tol, control.check_time)


class Alternation(SlicedSearch):
    """One start: rounds of training and relabelling.

    With a joint bias both halves of a round lower |w|^2 + 2C sum s_i loss(y_i, f_i), so the rounds
    end. An inexact machine may hide a decrease; then it is refined before the round is judged. With
    a tied bias, or where weights differ, the objective may rise in a round, and labels that
    occurred before end the start.
    """

    def __init__(self, problem, index, rng):
        super().__init__()
        self._problem, self._call = problem, problem.call
        seed = int(rng.integers(2**31))
        if problem.is_trained:
            self._machine = _make_machine(problem, problem.loss, seed)
        self._rounds = []
        if problem.is_brief:
            self.status = Status.TIME_LIMIT
        init, points, kernel = self._call.init, problem.points, problem.kernel
        is_gram = kernel.name == "precomputed"
        if isinstance(init, str) and init == "farthest" and index > 0 and not is_gram:
            # Far points are much the same every time; other starts find other optima.
            init = "kmeans"
        self._scout = _make_scout(problem, index, rng)
        if self._scout is None:
            weights, look = problem.bounds.weights, problem.control.check_time
            labels = first_labels(init, points, kernel, weights, rng, look)
            self._begin(np.where(labels == 1, 1.0, -1.0))

    def _begin(self, y):
        """Start the rounds."""
        self._y = y
        self._seen = {np.packbits(y > 0).tobytes()}
        self._machine.begin(y)

    def _run(self):
        """Begin where a scout ends, if there is one, and make rounds."""
        if self._scout is not None:
            while not self._scout.step(self._budget):
                yield
            if not self._problem.is_trained:
                return  # `finish` labels all points
            w = self._scout.solution.w
            self._scout = None
            split, _ = self._relabel(TrainedMachine(self._problem.score(w), w))
            self._machine.expect(w, split.bias)
            self._begin(split.y)
            yield
        while not self._machine.step(self._budget) or self._hand_over() or not self._end_round():
            yield

    def _hand_over(self):
        """Go on with the interior-point method where pairs of points crawl; tell if it does."""
        problem, machine = self._problem, self._machine
        is_slow = isinstance(machine, DualMachine) and machine.capped
        if not (is_slow and problem.may_hand_over) or machine.relative_gap() <= self._call.tol:
            return False
        form, given = Form(self._y.size, "pivoted", rank_tol=SMOOTH), Kernel("precomputed")
        look = problem.control.check_time
        try:
            features = form_features(problem.K, given, form, fixed_seed(0), look)
        except (MemoryError, OutOfTime):
            return False
        self._machine = _make_machine(replace(problem, features=features), problem.loss, 0)
        self._machine.begin(self._y)
        return True

    def fraction(self):
        """Return a guess of the share that is over: most runs end within ten rounds."""
        return min(0.95, self.n_iter / min(10, self._call.max_iter))

    def finish(self):
        """Relabel by a machine that is not trained on all points, if there is nothing better."""
        scout = self._scout
        if scout is not None:
            scout.finish()
            w = scout.solution.w
            self._machine = TrainedMachine(self._problem.score(w), w)
        if self.n_iter == 0:
            self._machine.look()
            split, objective = self._relabel(self._machine)
            if scout is not None:
                self._y = split.y
            self._keep(split, objective)
        if not self._problem.is_trained:
            self.status, self.n_iter, self.n_moves = scout.status, scout.n_iter, scout.n_moves
        self.history, *trace = np.array(self._rounds, dtype=np.float64).T.copy()
        gap, bias, steps = trace
        self.trace = {"gap": gap, "bias": bias, "steps": steps.astype(np.int64)}

    def _relabel(self, machine):
        """Return the best labels for the machine's scores, and their objective."""
        problem, call = self._problem, self._call
        split = search_bias(
            machine.scores, problem.bounds, problem.loss, call.epsilon, problem.tied
        )
        return split, machine.norm + 2.0 * call.C * split.loss

    def _end_round(self):
        """Relabel; return whether there is nothing more to do."""
        call, machine, least = self._call, self._machine, self._problem.least_decrease
        split, objective = self._relabel(machine)
        labels = np.packbits(split.y > 0).tobytes()
        falls = self._problem.tied or objective < self.objective * (1.0 - least)
        is_new = labels not in self._seen
        enough = np.inf if falls and is_new else call.tol if falls else least
        if machine.relative_gap() > enough and machine.refine():
            return False
        self._keep(split, objective)
        most = max(call.tol, machine.least_gap)
        gives_up = machine.capped and not machine.relative_gap() <= most
        if gives_up or machine.relative_gap() > max(enough, most) or not np.isfinite(objective):
            self.status = Status.NUMERICAL
        # Where weights differ, the best labels of a round may be worse than before.
        is_uneven = call.sample_weight is not None and np.ptp(call.sample_weight) > 0.0
        if not (is_new and (falls or is_uneven)):
            return True
        self._seen.add(labels)
        if self.n_iter == call.max_iter:
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
        if objective > self.objective and not self._problem.tied:
            return  # by less than LEAST_DECREASE: rounding
        bias = split.bias + self._problem.offset(machine.w)
        self._rounds.append((objective, machine.gap, bias, machine.n_steps))
        if objective <= self.objective:
            self.objective = objective
            self.split = split
            self.labels = (split.y > 0).astype(np.int64)
            self.solution = machine.solution()


def _make_scout(problem, index, rng):
    """Return the alternation of representatives or a sample, or None if all points are trained.

    A sample needs features, whose weights also label the other points, and first labels to be
    found; a tied bias follows the paper.
    """
    if problem.merged is not None:
        return Alternation(problem.merged, index, rng)
    if problem.features is None or not _takes_sample(problem):
        return None
    sample, chosen = _draw_sample(problem, rng)
    features = replace(problem.features, Z=problem.Z[chosen])
    return Alternation(_with_solver(replace(sample, features=features)), index, rng)


def _takes_sample(problem):
    """Tell whether a start may begin with a sample of the points."""
    return not problem.starts_as_told and problem.bounds.weights.size > MOST_WITHOUT_SAMPLE


def _draw_sample(problem, rng):
    """Return the problem of a sample, without its features, and the indices of its points."""
    weights = problem.bounds.weights
    total = weights.sum()
    drawn = rng.choice(weights.size, SAMPLE, p=weights / total)
    chosen, counts = np.unique(drawn, return_counts=True)
    # The sample weighs as much as all points, so that C and the sizes mean the same.
    bounds = replace(problem.bounds, weights=counts * (total / SAMPLE))
    return replace(problem, points=problem.points[chosen], bounds=bounds), chosen


def refit_machine(problem, labels):
    """Train a support vector machine on the final labels; return its solution and its bias."""
    machine = _make_machine(problem, "hinge", 0)
    machine.begin(np.where(labels == 1, 1.0, -1.0))
    while not machine.step(REFIT_BUDGET):
        problem.control.check_time()
    return machine.solution(), machine.bias
