"""iterSVM, iterSVR and iterLS-SVM: train a kernel machine, relabel by its scores, again."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from fastmmc import validation
from fastmmc.alternating._solver_bias import WeightBounds, search_bias
from fastmmc.alternating._solver_interior import InteriorMachine
from fastmmc.alternating._solver_machines import (
    DualMachine,
    LeastSquaresMachine,
    LibsvmMachine,
    LinearMachine,
    TrainedMachine,
    dense_solver,
    feature_solver,
)
from fastmmc.alternating._solver_start import STARTS, first_labels
from fastmmc.constraints import check_init
from fastmmc.execution import (
    best_of_restarts,
    check_control,
    fixed_seed,
    restart_stream,
    show_progress,
)
from fastmmc.gram import (
    Kernel,
    box_diagonal,
    dense_rows,
    fill_lower_gram,
    kernel_rows,
    resolve_kernel,
)
from fastmmc.hat import LANDMARK_STREAM, Form, check_form, mirror_lower
from fastmmc.lowrank import Features, make_features
from fastmmc.results import MarginResult, Status
from fastmmc.sizes import binary_bounds

SOLVERS = ("auto", "smo", "libsvm", "interior", "linear")

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

# Elementary operations between two looks at the clock while the last machine is trained.
REFIT_BUDGET = 10_000_000


@dataclass(frozen=True, eq=False)
class MarginModel:
    """A kernel machine for two classes.

    Attributes
    ----------
    kernel : Kernel
        With its widths set.
    X : (b, d) array
        Points that the coefficients belong to: support vectors or landmarks.
    coef : (b,) float64 array
        Coefficients.
    intercept : float
        f(x) = k(x, X) coef + intercept.
    n_features : int
        Columns of the training X.
    indices : (b,) int64 array or None
        Which training points X are; used with a precomputed kernel.
    """

    kernel: Kernel
    X: np.ndarray
    coef: np.ndarray
    intercept: float
    n_features: int
    indices: np.ndarray | None = None

    def decision_function(self, X):
        """Return the scores of both clusters for new points, in row blocks.

        Parameters
        ----------
        X : (m, d) array_like or sparse matrix
            New points; with a precomputed kernel their (m, n) kernel values.

        Returns
        -------
        (m, 2) float64 array
            -f(x) and f(x).
        """
        X = validation.check_new_points(X, self.kernel, self.n_features, self.X.dtype)
        f = np.empty(X.shape[0])
        for rows, values in kernel_rows(self.kernel, X, self.X, self.indices):
            f[rows] = values @ self.coef + self.intercept
        return np.column_stack((-f, f))


@dataclass(frozen=True, eq=False)
class _Plan:
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

    @property
    def cost(self):
        """What a unit of a point's loss costs, s_i C."""
        return self.C * self.weights


@dataclass(frozen=True, eq=False)
class _Data:
    """The Gram matrix of the points, or features in its place."""

    kernel: Kernel
    K: np.ndarray | None
    features: Features | None
    solve_ridge: Callable | None  # applies (K + diag(1 / g))^-1; for least squares only


def _make_data(plan, seed, on_progress):
    """Return the Gram matrix or the features, and what all starts do with them only once."""
    kernel = resolve_kernel(plan.kernel, plan.points, _default_width)
    K = features = solve = None
    if not _has_features(plan.kernel, plan.form, plan.solver, plan.points):
        K = _gram_matrix(kernel, plan.points)
    elif plan.form.rank is None:
        features = _linear_features(kernel, plan.points)
    else:
        form, rng = plan.form, restart_stream(seed, LANDMARK_STREAM)
        features = make_features(
            plan.points,
            kernel,
            form.rank,
            form.landmarks,
            form.rank_tol,
            rng,
            np.dtype(np.float64),
        )
    on_progress(1.0)
    if not np.isfinite((K if features is None else features.Z).sum()):
        raise ValueError(
            f"kernel={kernel.name!r} gives values that are too large for these points; scale them"
        )
    if plan.loss == "square":
        ridge = 0.5 / plan.cost
        solve = dense_solver(K, ridge) if features is None else feature_solver(features.Z, ridge)
    return _Data(kernel, K, features, solve)


def _has_features(kernel, form, solver, points):
    """Tell whether the machines work on features instead of the Gram matrix."""
    narrow = kernel.name == "linear" and points.shape[1] < points.shape[0]
    return form.rank is not None or (narrow and solver not in ("smo", "libsvm"))


def _default_width(points):
    return WIDTH * box_diagonal(points)


def _gram_matrix(kernel, points):
    if kernel.name == "precomputed":
        return points.astype(np.float64, copy=False)
    n = points.shape[0]
    validation.check_memory(n, np.dtype(np.float64), what="Gram matrix")
    K = np.empty((n, n))
    fill_lower_gram(kernel, points.astype(np.float64, copy=False), K)
    mirror_lower(K)
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
    if data.features is None:
        machine = LibsvmMachine if plan.solver == "libsvm" else DualMachine
        return machine(data.K, *settings, plan.tol)
    if plan.solver == "linear":
        return LinearMachine(data.features.Z, *settings, plan.tol, seed)
    return InteriorMachine(data.features.Z, *settings, INTERIOR_TOLERANCE * plan.tol)


class _Alternation:
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
        self.status = Status.CONVERGED
        self.n_iter = 0
        self.n_moves = 0
        init = plan.init
        self._scout = None
        if isinstance(init, str):
            if index > 0 and init == "farthest" and data.kernel.name != "precomputed":
                # Far points are much the same every time; other starts find other optima.
                init = "kmeans"
            if data.features is not None and not plan.tied:
                self._scout = _make_scout(plan, data, init, index, rng)
        if self._scout is None:
            labels = first_labels(init, plan.points, plan.kernel, plan.weights, rng)
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
        falls = plan.tied or objective < self.objective * (1.0 - LEAST_DECREASE)
        if not falls and machine.relative_gap() > LEAST_DECREASE and machine.refine():
            return False
        self._keep(split, objective)
        if machine.capped and not machine.relative_gap() <= plan.tol:
            self.status = Status.NUMERICAL
        labels = np.packbits(split.y > 0).tobytes()
        if not falls or labels in self._seen:
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
    """Return the alternation of a sample of the points, or None if they are few enough."""
    n = plan.weights.size
    if n <= MOST_WITHOUT_SAMPLE:
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
    solve = feature_solver(features.Z, 0.5 / scout_plan.cost) if plan.loss == "square" else None
    scout_data = replace(data, features=features, solve_ridge=solve)
    return _Alternation(scout_plan, scout_data, index, rng)


def _refit(plan, data, labels, control):
    """Train a support vector machine on the final labels; return its solution and its bias."""
    machine = _make_machine(plan, data, "hinge", 0)
    machine.begin(np.where(labels == 1, 1.0, -1.0))
    while not machine.step(REFIT_BUDGET):
        late = control.max_time is not None
        if late and time.perf_counter() - control.started >= control.max_time:
            machine.look()
            break
    return machine.solution(), machine.bias


def _make_model(plan, data, solution, intercept):
    """Return the model, the indices of the support vectors and their coefficients."""
    u, n_features = solution.u, plan.points.shape[1]
    # The interior-point method comes near to 0 without reaching it.
    support = None if u is None else np.flatnonzero(np.abs(u) > 1e-8 * np.abs(u).max())
    coef = None if u is None else u[support]
    kernel, features = data.kernel, data.features
    if features is None:
        precomputed = kernel.name == "precomputed"
        points = plan.points[:1] if precomputed else dense_rows(plan.points, support)
        indices = support if precomputed else None
        model = MarginModel(kernel, points, coef, intercept, n_features, indices)
    elif plan.form.rank is None:
        # k(x, w) = x . w + coef0, and the constant feature times its weight is part of f.
        w = solution.w
        intercept += np.sqrt(kernel.coef0) * w[-1] - kernel.coef0
        points = w[None, :-1].astype(plan.points.dtype)
        model = MarginModel(kernel, points, np.ones(1), intercept, n_features)
    else:
        weights = features.to_Z @ solution.w
        model = MarginModel(
            kernel, features.basis, weights, intercept, n_features, features.indices
        )
    return model, support, coef


def _make_result(plan, data, best, best_init, objectives, status, n_init, control):
    """Gather what the winning start found."""
    solution, intercept = best.solution, best.split.threshold
    if plan.refit:
        solution, intercept = _refit(plan, data, best.labels, control)
    model, support, coef = _make_model(plan, data, solution, intercept)
    f = best.solution.scores + best.split.bias
    kernel = data.kernel
    given = {
        "rank": None if plan.form.rank is None else data.features.Z.shape[1],
        "kernel": kernel.name if kernel.function is None else kernel.function,
        "sigma": kernel.sigma,
        "gamma": kernel.gamma,
        "degree": kernel.degree,
        "coef0": kernel.coef0,
        "kernel_params": kernel.kernel_params,
        "n_init": n_init,
    }
    return MarginResult(
        labels=best.labels,
        objective=best.objective,
        status=status,
        n_iter=best.n_iter,
        n_moves=best.n_moves,
        sizes=np.bincount(best.labels, minlength=2),
        history=best.history,
        trace=best.trace,
        objectives=objectives,
        best_init=best_init,
        params=plan.params | given,
        model=model,
        dual_coef=coef,
        support=support,
        intercept=float(intercept),
        duality_gap=best.solution.gap,
        n_violated=int(np.sum(best.split.y * f < 1.0 - 1e-9)),
    )


def _make_plan(
    points,
    kernel,
    *,
    loss,
    C,
    epsilon,
    init,
    bias,
    solver,
    tol,
    max_iter,
    refit,
    sample_weight,
    rank,
    landmarks,
    rank_tol,
    balance,
    target_sizes,
    min_size,
):
    """Check the parameters of the alternation and fix what all starts have in common."""
    n = points.shape[0]
    if n < 2:
        raise ValueError("X must have at least 2 points, one for each cluster; got n_samples = 1")
    epsilon = validation.check_number("epsilon", epsilon)
    if epsilon < 0:
        raise ValueError(f"epsilon must be at least 0; got {epsilon}")
    solver = validation.check_choice("solver", solver, SOLVERS)
    form = check_form(points, kernel, rank, landmarks, rank_tol, None)
    _check_solver(solver, kernel, form, points, loss)
    weights = validation.check_sample_weight(sample_weight, n)
    weights = np.ones(n) if weights is None else weights
    return _Plan(
        points=points,
        kernel=kernel,
        form=form,
        weights=weights,
        C=validation.check_positive("C", C),
        bounds=_weight_bounds(weights, sample_weight, balance, target_sizes, min_size),
        loss=loss,
        epsilon=epsilon,
        tied=validation.check_choice("bias", bias, ("joint", "tied")) == "tied",
        solver=solver,
        tol=validation.check_positive("tol", tol),
        max_iter=validation.check_integer("max_iter", max_iter, least=1),
        init=check_init(init, n, 2, kernel, STARTS),
        refit=validation.check_flag("refit", refit),
        params={
            "C": C,
            "epsilon": epsilon,
            "init": init,
            "bias": bias,
            "solver": solver,
            "tol": tol,
            "max_iter": max_iter,
            "refit": refit,
            "balance": balance,
            "target_sizes": target_sizes,
            "min_size": min_size,
        },
    )


def _check_solver(solver, kernel, form, points, loss):
    """Refuse a solver that cannot work on what there is."""
    if loss == "square" or solver == "auto":
        return
    if solver in ("smo", "libsvm") and form.rank is not None:
        raise ValueError(
            f"solver={solver!r} works on the dense Gram matrix, which rank={form.rank} rules out; "
            "give rank=None, or solver='interior'"
        )
    if solver in ("interior", "linear") and not _has_features(kernel, form, solver, points):
        raise ValueError(
            f"solver={solver!r} works on features; give a rank, say rank=200, or kernel='linear' "
            "with fewer features than points"
        )


def _weight_bounds(weights, sample_weight, balance, target_sizes, min_size):
    """Return what the points of cluster 1 may weigh."""
    n = weights.size
    lower, upper = binary_bounds(n, balance, target_sizes, min_size)
    if sample_weight is None:
        return WeightBounds(weights, lower, upper)
    if target_sizes is not None or min_size != 1:
        raise ValueError(
            "target_sizes and min_size count points and cannot go with sample_weight; give balance"
        )
    total = weights.sum()
    return WeightBounds(weights, 0.5 * (1.0 - balance) * total, 0.5 * (1.0 + balance) * total)


def solve_alternation(
    X,
    *,
    kernel,
    sigma,
    gamma,
    degree,
    coef0,
    kernel_params,
    n_init,
    random_state,
    n_jobs,
    max_time,
    callback,
    verbose,
    on_start_done=None,
    **alternation,
):
    """Do what :func:`iter_svr` and its kin do, and report each start that ended.

    Parameters
    ----------
    X, kernel, sigma, gamma, degree, coef0, kernel_params
        See :func:`iter_svr`.
    n_init, random_state, n_jobs, max_time, callback, verbose
        See :func:`iter_svr`.
    on_start_done : callable, optional
        Called with (index, n_init) in the calling thread; a true return value stops the run.
    **alternation
        ``loss``, and the other parameters of :func:`iter_svr`.

    Returns
    -------
    MarginResult
        The best of the starts.
    """
    control = check_control(time.perf_counter(), n_jobs, max_time, callback, verbose, on_start_done)
    n_init = validation.check_integer("n_init", n_init, least=1)
    kernel = validation.check_kernel(kernel, sigma, gamma, degree, coef0, kernel_params)
    points = validation.check_points(X, kernel, sparse=True)
    plan = _make_plan(points, kernel, **alternation)
    if not isinstance(plan.init, str):
        n_init = 1
    seed = fixed_seed(random_state)
    with show_progress(control) as control:
        data = _make_data(plan, seed, control.bar.prepare)

        def make_search(index):
            return _Alternation(plan, data, index, restart_stream(seed, index))

        best, best_init, objectives, status = best_of_restarts(make_search, n_init, control)
        return _make_result(plan, data, best, best_init, objectives, status, n_init, control)


def iter_svr(
    X,
    *,
    C=500.0,
    epsilon=0.0,
    init="farthest",
    bias="joint",
    solver="auto",
    tol=1e-3,
    max_iter=50,
    refit=False,
    sample_weight=None,
    kernel="rbf",
    sigma=None,
    gamma=None,
    degree=3,
    coef0=1.0,
    kernel_params=None,
    rank="auto",
    landmarks="uniform",
    rank_tol=1e-6,
    balance=0.03,
    target_sizes=None,
    min_size=1,
    n_init=10,
    random_state=None,
    n_jobs=None,
    max_time=None,
    callback=None,
    verbose=0,
):
    """Cluster in two by iterative support vector regression (iterSVR).

    Alternates two steps from the labels y of a first clustering: support vector regression on y,
    and new labels for its scores, whose bias is chosen together with them under the size rule.
    Both lower, over labels y of -1 and +1, weights w and bias b,

        |w|^2 + 2 C sum_i max(0, |w . phi(x_i) + b - y_i| - epsilon).

    Being the same above the margin as below it, this loss is not content with labels just because
    it was trained on them, as the hinge loss is.

    Parameters
    ----------
    X : (n, d) array_like or sparse matrix
        Points; with ``kernel="precomputed"`` their (n, n) Gram matrix. Sparse needs a ``rank``.
    C : float, default=500.0
        Weight of the loss, > 0.
    epsilon : float, default=0.0
        Deviations up to it cost nothing; 0 is the Laplacian loss.
    init : {"farthest", "kmeans", "ncut", "random"} or (n,) array_like of int, default="farthest"
        First labels: k-means from two points far apart (further starts are from k-means++),
        k-means++, a normalised cut (spectral clustering of a Gaussian graph; O(n^2) memory),
        random, or given (0 and 1). With a precomputed kernel "farthest" gives each point to the
        nearer of two points far apart.
    bias : {"joint", "tied"}, default="joint"
        Joint: labels go by the rank of the scores and the bias is free, so the objective never
        rises. Tied: labels are the signs of the scores with the bias added, as the paper's text
        has it; the objective may rise, and the best round is returned.
    solver : {"auto", "smo", "libsvm", "interior", "linear"}, default="auto"
        Trains the machine. On the Gram matrix "smo", the compiled dual solver, each round starting
        from the last, or "libsvm", scikit-learn's SVR; on features (low rank, or a linear kernel)
        "interior", an interior-point method, or "linear", scikit-learn's LinearSVR, which
        penalises the bias too. "auto" is "smo" or "interior".
    tol : float, default=1e-3
        Violation of the optimality conditions to stop the training at, and the duality gap as a
        share of the objective. Training is made more exact where a decrease might be hidden.
    max_iter : int, default=50
        Rounds of a start.
    refit : bool, default=False
        Predict by a support vector machine trained on the final labels: it has fewer support
        vectors. It may disagree with labels of points inside its margin.
    sample_weight : (n,) array_like, optional
        Weights above 0: a point of weight s counts as s equal points, in the loss and in the size
        rule, which is then kept as nearly as whole points allow.
    kernel : {"rbf", "linear", "poly", "laplacian", "precomputed"} or callable, default="rbf"
        Kernel; a callable takes (X, Z) and returns their (n_X, n_Z) Gram matrix.
    sigma : float, optional
        Width of the Gaussian exp(-||x - z||^2 / sigma^2) and of the Laplacian
        exp(-||x - z||_1 / sigma). None: three times the diagonal of the box around the points,
        ``fastmmc.gram.box_diagonal(X)``.
    gamma : float, optional
        1 / sigma^2 (Gaussian), 1 / sigma (Laplacian), or the factor of the polynomial kernel.
    degree : int, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1.0
        Constant of the linear and polynomial kernels.
    kernel_params : dict, optional
        Keyword arguments of a callable kernel.
    rank : None, int, float or "auto", default="auto"
        Number of landmarks of a low-rank kernel, or their share of n; None: the Gram matrix.
        "auto" is dense up to 10,000 points and 1,000 landmarks above, 3e8 / n of them above
        300,000 points.
    landmarks : {"uniform", "k-means++", "pivoted"} or array_like, default="uniform"
        How they are chosen, or their indices, or the (b, d) points themselves. "pivoted" takes the
        worst approximated points until ``rank_tol`` is reached; ``rank`` is then a limit.
    rank_tol : float, default=1e-6
        Share of the trace of K that pivoted features may miss.
    balance : float, default=0.03
        Both sizes stay within balance * n / 2 of their targets, 0 <= balance < 1: |e^T y| <=
        balance n for equal targets. For an odd n anything above 0 allows a difference of one.
    target_sizes : (2,) array_like of int, optional
        Sizes asked for, summing to n. None: n / 2 each.
    min_size : int, default=1
        No cluster is ever smaller than this.
    n_init : int, default=10
        Starts; the one with the lowest objective wins. Given labels are started from once.
    random_state : int, SeedSequence, Generator, RandomState or None, default=None
        Same value, same labels, whatever ``n_jobs`` is.
    n_jobs : int, optional
        Threads that share the Gram matrix. None: 1, or what joblib's configuration says; -1: all.
    max_time : float, optional
        Seconds for the whole call; the best labels found by then are returned.
    callback : callable, optional
        Called with a :class:`~fastmmc.execution.Progress`; a true return value stops the run.
    verbose : int, default=0
        1 shows a progress bar (needs the extra ``progress``).

    Returns
    -------
    MarginResult
        ``labels`` (0 and 1), ``objective``, ``duality_gap``, ``history`` (the objective after each
        round) and more. ``n_iter`` counts rounds, ``n_moves`` changes of labels.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range, or X is not a finite matrix.
    MemoryError
        If the Gram matrix does not fit into free memory.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If the run was stopped before its end, or the machine did not reach its tolerance.

    Notes
    -----
    O(n^2) memory and, a round, about O(n^2) time; O(nr) and O(n r^2) in features; O(n log n) for
    the labels. In features more than 8,000 points are clustered by a sample of 2,000 first, drawn
    by weight; its machine labels all points, and the rounds go on with these (not with labels that
    are given, nor with a tied bias). Later rounds train on the points near a kink of their loss
    and take the others for settled as long as the machine confirms it.

    References
    ----------
    K. Zhang, I. W. Tsang, J. T. Kwok, Maximum margin clustering made practical, ICML 2007,
    section 3.3; IEEE Transactions on Neural Networks 20(4), 2009.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.make_nine_gaussians(100, random_state=0)
    >>> res = fastmmc.iter_svr(X, random_state=0)
    >>> abs(int(res.sizes[0]) - int(res.sizes[1])) <= 0.03 * len(X)
    True
    """
    return solve_alternation(
        X,
        loss="laplace",
        C=C,
        epsilon=epsilon,
        init=init,
        bias=bias,
        solver=solver,
        tol=tol,
        max_iter=max_iter,
        refit=refit,
        sample_weight=sample_weight,
        kernel=kernel,
        sigma=sigma,
        gamma=gamma,
        degree=degree,
        coef0=coef0,
        kernel_params=kernel_params,
        rank=rank,
        landmarks=landmarks,
        rank_tol=rank_tol,
        balance=balance,
        target_sizes=target_sizes,
        min_size=min_size,
        n_init=n_init,
        random_state=random_state,
        n_jobs=n_jobs,
        max_time=max_time,
        callback=callback,
        verbose=verbose,
    )


def iter_svm(
    X,
    *,
    C=500.0,
    init="farthest",
    bias="joint",
    solver="auto",
    tol=1e-3,
    max_iter=50,
    refit=False,
    sample_weight=None,
    kernel="rbf",
    sigma=None,
    gamma=None,
    degree=3,
    coef0=1.0,
    kernel_params=None,
    rank="auto",
    landmarks="uniform",
    rank_tol=1e-6,
    balance=0.03,
    target_sizes=None,
    min_size=1,
    n_init=10,
    random_state=None,
    n_jobs=None,
    max_time=None,
    callback=None,
    verbose=0,
):
    """Cluster in two by iterative support vector machines (iterSVM).

    :func:`iter_svr` with the hinge loss max(0, 1 - y f). The labels that a machine was trained on
    suit it so well that rounds change few of them: it stays near its first labels, as the paper
    shows. Use :func:`iter_svr` for clusters, and this for comparison.

    Parameters
    ----------
    X : (n, d) array_like or sparse matrix
        Points; with ``kernel="precomputed"`` their (n, n) Gram matrix. Sparse needs a ``rank``.
    C, init, bias, solver, tol, max_iter, refit, sample_weight
        The alternation, see :func:`iter_svr`; scikit-learn's SVC and LinearSVC take the place of
        SVR and LinearSVR.
    kernel, sigma, gamma, degree, coef0, kernel_params
        The kernel, see :func:`iter_svr`.
    rank, landmarks, rank_tol
        The kernel's low-rank form, see :func:`iter_svr`.
    balance, target_sizes, min_size
        The sizes, see :func:`iter_svr`.
    n_init, random_state, n_jobs, max_time, callback, verbose
        The run, see :func:`iter_svr`.

    Returns
    -------
    MarginResult
        As of :func:`iter_svr`.

    Raises
    ------
    ValueError, TypeError, MemoryError
        As :func:`iter_svr`.

    References
    ----------
    K. Zhang, I. W. Tsang, J. T. Kwok, Maximum margin clustering made practical, ICML 2007,
    Algorithm 1.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.make_nine_gaussians(100, random_state=0)
    >>> fastmmc.iter_svm(X, random_state=0).sizes.sum()
    np.int64(100)
    """
    return solve_alternation(
        X,
        loss="hinge",
        C=C,
        epsilon=0.0,
        init=init,
        bias=bias,
        solver=solver,
        tol=tol,
        max_iter=max_iter,
        refit=refit,
        sample_weight=sample_weight,
        kernel=kernel,
        sigma=sigma,
        gamma=gamma,
        degree=degree,
        coef0=coef0,
        kernel_params=kernel_params,
        rank=rank,
        landmarks=landmarks,
        rank_tol=rank_tol,
        balance=balance,
        target_sizes=target_sizes,
        min_size=min_size,
        n_init=n_init,
        random_state=random_state,
        n_jobs=n_jobs,
        max_time=max_time,
        callback=callback,
        verbose=verbose,
    )


def iter_ls_svm(
    X,
    *,
    C=500.0,
    init="farthest",
    bias="joint",
    max_iter=50,
    sample_weight=None,
    kernel="rbf",
    sigma=None,
    gamma=None,
    degree=3,
    coef0=1.0,
    kernel_params=None,
    rank="auto",
    landmarks="uniform",
    rank_tol=1e-6,
    balance=0.03,
    target_sizes=None,
    min_size=1,
    n_init=10,
    random_state=None,
    n_jobs=None,
    max_time=None,
    callback=None,
    verbose=0,
):
    """Cluster in two by iterative least-squares support vector machines (iterLS-SVM).

    :func:`iter_svr` with the square loss (f - y)^2: K + I / (2C) is factored once, and a round
    solves one linear system.

    Parameters
    ----------
    X : (n, d) array_like or sparse matrix
        Points; with ``kernel="precomputed"`` their (n, n) Gram matrix. Sparse needs a ``rank``.
    C, init, bias, max_iter, sample_weight
        The alternation, see :func:`iter_svr`.
    kernel, sigma, gamma, degree, coef0, kernel_params
        The kernel, see :func:`iter_svr`.
    rank, landmarks, rank_tol
        The kernel's low-rank form, see :func:`iter_svr`.
    balance, target_sizes, min_size
        The sizes, see :func:`iter_svr`.
    n_init, random_state, n_jobs, max_time, callback, verbose
        The run, see :func:`iter_svr`.

    Returns
    -------
    MarginResult
        As of :func:`iter_svr`; all points are support vectors.

    Raises
    ------
    ValueError, TypeError, MemoryError
        As :func:`iter_svr`.

    Notes
    -----
    O(n^3) once and O(n^2) a round; in features O(n r^2) and O(nr).

    References
    ----------
    K. Zhang, I. W. Tsang, J. T. Kwok, Maximum margin clustering made practical, ICML 2007,
    section 3.4.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.make_nine_gaussians(100, random_state=0)
    >>> fastmmc.iter_ls_svm(X, random_state=0).converged
    True
    """
    return solve_alternation(
        X,
        loss="square",
        C=C,
        epsilon=0.0,
        init=init,
        bias=bias,
        solver="auto",
        tol=1e-3,
        max_iter=max_iter,
        refit=False,
        sample_weight=sample_weight,
        kernel=kernel,
        sigma=sigma,
        gamma=gamma,
        degree=degree,
        coef0=coef0,
        kernel_params=kernel_params,
        rank=rank,
        landmarks=landmarks,
        rank_tol=rank_tol,
        balance=balance,
        target_sizes=target_sizes,
        min_size=min_size,
        n_init=n_init,
        random_state=random_state,
        n_jobs=n_jobs,
        max_time=max_time,
        callback=callback,
        verbose=verbose,
    )
