"""iterSVM, iterSVR and iterLS-SVM: train a kernel machine, relabel by its scores, again."""

from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from fastmmc.alternating.bias import WeightBounds
from fastmmc.alternating.machines import least_violation
from fastmmc.alternating.rounds import (
    DENSE_SOLVERS,
    Alternation,
    Problem,
    has_features,
    prepare,
    refit_machine,
)
from fastmmc.alternating.start import STARTS
from fastmmc.core import validation
from fastmmc.core.declare import function_of, own_params, own_values, parameter, told, values
from fastmmc.core.execution import (
    OutOfTime,
    RunControl,
    best_of_restarts,
    fixed_seed,
    restart_stream,
    show_progress,
    warn_if_stopped,
    warn_of_equal_points,
    warn_user,
)
from fastmmc.core.parameters import (
    WIDTH,
    BinarySizeParameters,
    KernelParameters,
    LandmarkParameters,
    MarginRunParameters,
    Points,
    SizeParameters,
    Weights,
    kernel_of,
)
from fastmmc.core.results import MarginResult
from fastmmc.core.status import Status
from fastmmc.core.types import MatrixLike
from fastmmc.data.copies import Copies, of_points
from fastmmc.data.labels import check_init
from fastmmc.data.sizes import binary_balance, binary_bounds, binary_size_bounds
from fastmmc.kernels.gram import kernel_points
from fastmmc.kernels.models import KernelModel
from fastmmc.kernels.nystroem import check_form


class _Common(
    MarginRunParameters,
    BinarySizeParameters,
    LandmarkParameters,
    KernelParameters,
    before="balance",
):
    """What the methods have in common besides the rounds."""

    sigma: float | None = parameter(
        default=None,
        doc=WIDTH + "three diagonals of the box of X, ``fastmmc.kernels.gram.box_diagonal(X)``.",
    )
    max_representatives: int | None = parameter(
        default=None,
        least=2,
        doc="""
        Most points to train on, in features. More are merged where they lie close together: each
        group is trained as one point with the sum of its weights, so that rounds cost the same
        however many points there are; ``tol`` counts ten times. The point is their mean. For
        kernels given as values or functions, sparse points, more columns than landmarks, pivoted
        ones or ``refit`` it has the mean of their features. More than 2,000 representatives begin
        with the labels of 1,000, unless ``init`` or ``bias`` says how to begin. The machine labels
        all points in the end; labels, sizes and ``objective`` are theirs. ``n_iter`` and
        ``n_moves`` count what the representatives did; there is no ``duality_gap`` and no
        ``support``. None: all points.
        """,
    )


class IterLSSVMParameters(_Common, before="kernel"):
    """What the function and the estimator have in common."""

    C: float = parameter(default=500.0, above=0, doc="Weight of the loss, > 0.")
    init: Literal["farthest", "kmeans", "ncut", "random"] | ArrayLike = parameter(
        default="farthest",
        kind='{"farthest", "kmeans", "ncut", "random"} or (n,) array_like of int',
        per="point",
        doc="""
        First labels: k-means from two points far apart (further starts are from k-means++),
        k-means++, a normalised cut (spectral clustering of a Gaussian graph; O(n^2) memory),
        random, or given (0 and 1). With a precomputed kernel "farthest" gives each point to the
        nearer of two points far apart.
        """,
    )
    bias: Literal["joint", "tied"] = parameter(
        default="joint",
        doc="""
        Joint: labels go by the rank of the scores and the bias is free, so the objective never
        rises. Tied: labels are the signs of the scores with the bias added, as the paper's text
        has it; the objective may rise, and the best round is returned.
        """,
    )
    max_iter: int = parameter(default=50, least=1, doc="Rounds of a start.")


class IterSVMParameters(IterLSSVMParameters, before="kernel"):
    """What the function and the estimator have in common."""

    solver: Literal["auto", "smo", "libsvm", "interior", "linear"] = parameter(
        default="auto",
        doc="""
        Trains the machine. On the Gram matrix "smo", the compiled dual solver, each round starting
        from the last, or "libsvm", scikit-learn's SVR or SVC; on features (low rank, or a linear
        kernel) "interior", an interior-point method, or "linear", scikit-learn's LinearSVR or
        LinearSVC, which penalise the bias too. "auto" is "smo" or "interior", which also takes over
        where "smo" crawls.
        """,
    )
    tol: float = parameter(
        default=1e-3,
        above=0,
        doc="""
        Violation of the optimality conditions to stop the training at, and the duality gap as a
        share of the objective. Training is made more exact where a decrease might be hidden. On
        the Gram matrix at least 2.2e-16 C times the largest weight. LIBSVM has kernel values in
        single precision, so that its gap may stay at 1e-3.
        """,
    )
    refit: bool = parameter(
        default=False,
        doc="""
        Predict by a support vector machine trained on the final labels: it has fewer support
        vectors. It may disagree with labels of points inside its margin. If ``max_time`` cuts its
        training short, the machine of the search predicts.
        """,
    )


class IterSVRParameters(IterSVMParameters, before="kernel"):
    """What the function and the estimator have in common; other methods have its defaults."""

    epsilon: float = parameter(
        default=0.0,
        least=0,
        below=1,
        doc="Deviations up to it cost nothing, < 1; 0 is the Laplacian loss.",
    )


class _IterLSSVMCall(IterLSSVMParameters, Weights, Points):
    X: MatrixLike = parameter(kw_only=False, kind="(n, d) array_like, data frame or sparse matrix")
    sample_weight: ArrayLike | None = parameter(
        default=None,
        doc="""
        Weights, at least 0: a point of weight s counts as s equal points, in the loss and in the
        size rule, which is then met as closely as whole points allow. So weights multiply C: with
        a mean of 1 they leave it as it is. A point of weight 0 does not count, and gets its label
        from the model.
        """,
    )


class _IterSVMCall(IterSVMParameters, _IterLSSVMCall):
    """A call of :func:`iter_svm`."""


class _IterSVRCall(IterSVRParameters, _IterSVMCall):
    """A call of :func:`iter_svr`."""


@function_of(_IterSVRCall)
def iter_svr(call: _IterSVRCall, control: RunControl) -> MarginResult:
    """Cluster in two by iterative support vector regression (iterSVR).

    Alternates two steps from the labels y of a first clustering: support vector regression on y,
    and new labels for its scores, whose bias is chosen together with them under the size rule.
    Both lower, over labels y of -1 and +1, weights w and bias b,

        |w|^2 + 2 C sum_i max(0, |w . phi(x_i) + b - y_i| - epsilon).

    This loss is the same above the margin as below it. So it does not confirm labels just because
    it was trained on them, as the hinge loss does.

    Returns
    -------
    MarginResult
        ``labels`` (0 and 1), ``objective``, ``duality_gap``, ``history`` (the objective after each
        round) and more. ``n_iter`` counts rounds, ``n_moves`` changes of labels. ``objective`` has
        the bias of the least loss, ``trace["bias"]`` of its round; ``intercept``, by which the
        result predicts, is another one where the labels ask for it (Notes).

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
    UserWarning
        If columns of X seem to have different units.

    Notes
    -----
    O(n^2) memory and, a round, about O(n^2) time; O(nr) and O(n r^2) in features; O(n log n) for
    the labels.

    With a joint bias b the labels need not be the signs of w . phi(x) + b. The result then predicts
    by the middle between the scores of both clusters, so that its points keep their labels. Scores
    from ``decision_function`` have that ``intercept``; their loss is higher than that of b, which
    ``objective``, ``history`` and ``n_violated`` are of.

    Equal points are one with a weight, so they have one label; the balance, unless sizes are asked
    for, is at least the share of the heaviest, which some split always keeps.

    In features more than 8,000 points are clustered by a sample of 2,000 first, drawn
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
    return _cluster("laplace", call, control)


@function_of(_IterSVMCall, like=iter_svr)
def iter_svm(call: _IterSVMCall, control: RunControl) -> MarginResult:
    """Cluster in two by iterative support vector machines (iterSVM).

    :func:`iter_svr` with the hinge loss max(0, 1 - y f). The labels that a machine was trained on
    suit it so well that rounds change few of them: it stays near its first labels, as the paper
    shows. Use :func:`iter_svr` for clusters, and this for comparison.

    References
    ----------
    K. Zhang, I. W. Tsang, J. T. Kwok, Maximum margin clustering made practical, ICML 2007,
    Algorithm 1.
    """
    return _cluster("hinge", call, control)


@function_of(_IterLSSVMCall, like=iter_svr)
def iter_ls_svm(call: _IterLSSVMCall, control: RunControl) -> MarginResult:
    """Cluster in two by iterative least-squares support vector machines (iterLS-SVM).

    :func:`iter_svr` with the square loss (f - y)^2: K + I / (2C) is factored once, and a round
    solves one linear system.

    Returns
    -------
    MarginResult
        As of :func:`iter_svr`, where ``objective`` has the bias ``trace["bias"]`` and predictions
        have ``intercept``; all points are support vectors.

    Notes
    -----
    O(n^3) once and O(n^2) a round; in features O(n r^2) and O(nr).

    References
    ----------
    K. Zhang, I. W. Tsang, J. T. Kwok, Maximum margin clustering made practical, ICML 2007,
    section 3.4.
    """
    return _cluster("square", call, control)


def _cluster(loss, call, control):
    """Cluster the points that count, and label the others by the model."""
    kernel = kernel_of(call)
    points = validation.check_points(call.X, kernel, sparse=True)
    n = points.shape[0]
    validation.check_two_points(n)
    warn_of_equal_points(points, 2)
    weights = validation.check_sample_weight(call.sample_weight, n)
    has_sizes = bool(told(call, BinarySizeParameters))
    # Parameters that a method does not show have their defaults, and are not told.
    shown = call
    form = check_form(points, kernel, **values(call, LandmarkParameters), dtype=None)
    given = {
        "X": points,
        "sample_weight": weights,
        "balance": binary_balance(call.balance, call.target_sizes),
        "landmarks": form.landmarks,
        "init": check_init(call.init, n, 2, kernel, STARTS),
    }
    call = _IterSVRCall(**vars(call) | given)
    counting = validation.counting_points(weights)
    if counting is not None:
        call = _only(counting, call)
    if has_sizes or kernel.name == "precomputed":
        result = _alternate(loss, kernel, call, control)
    else:
        result = _alternate_distinct(loss, kernel, call, control)
    result = own_params(result, shown)
    return result if counting is None else _extend(result, counting, points)


def _alternate_distinct(loss, kernel, call, control):
    """Cluster points of which equal ones are one with a weight, unless the start tells them."""
    points, keys = call.X, [] if isinstance(call.init, str) else [call.init]
    copies = Copies.of(points, call.sample_weight, keys)
    if copies is None or copies.first.size < 2:
        return _alternate(loss, kernel, call, control)
    # However heavy the points are, some split of them is as balanced as this.
    least = copies.weights.max() / copies.weights.sum()
    merged = replace(copies.merge(call, points), balance=max(call.balance, least))
    result = _alternate(loss, kernel, merged, control, np.bincount(copies.members))
    result = _among_all(result, copies.first, points)
    result.params["balance"] = None  # a balance that is given keeps equal points apart
    return replace(result, labels=result.labels[copies.members])


def _among_all(result, clustered, points):
    """Return the result with indices among all points, of which some were clustered."""
    model, support = result.model, result.support
    if model.indices is not None:
        model = replace(model, indices=clustered[model.indices], n_features=points.shape[1])
    return replace(result, model=model, support=None if support is None else clustered[support])


def _only(counting, call):
    """Return the call for the points that count alone."""
    points, rank, landmarks = call.X, call.rank, call.landmarks
    if counting.size < 2:
        raise ValueError("sample_weight must be above 0 for at least 2 points, one a cluster")
    if isinstance(rank, int | np.integer):  # of all points
        rank = min(rank, counting.size)
    if np.ndim(landmarks) == 1:
        if not np.isin(landmarks, counting).all():
            raise ValueError("landmarks must be points whose sample_weight is above 0")
        landmarks = np.searchsorted(counting, landmarks)
    X = points[np.ix_(counting, counting)] if call.kernel == "precomputed" else points[counting]
    return replace(call, **of_points(call, counting), X=X, rank=rank, landmarks=landmarks)


def _extend(result, counting, points):
    """Return the result with labels for the points that do not count, and indices of all points."""
    result = _among_all(result, counting, points)
    labels = np.empty(points.shape[0], dtype=np.int64)
    labels[counting] = result.labels
    others = np.setdiff1d(np.arange(labels.size), counting)
    labels[others] = result.model.decision_function(points[others]).argmax(axis=1)
    sizes = np.bincount(labels, minlength=2)
    return replace(result, labels=labels, sizes=sizes, size_bounds=None)


def _alternate(loss, kernel, call, control, counts=None):
    """Cluster points whose weights are all above 0; ``counts`` (n,) are their copies, if any."""
    points, n = call.X, call.X.shape[0]
    counts = np.ones(n, dtype=np.int64) if counts is None else counts
    form = check_form(points, kernel, **values(call, LandmarkParameters), dtype=None)
    weights = np.ones(n) if call.sample_weight is None else call.sample_weight
    if loss != "square":
        _check_training(call, kernel, form, points, weights)
    bounds = _weight_bounds(call, weights)
    seed = fixed_seed(call.random_state)
    with show_progress(control) as control:
        problem = prepare(Problem(call, loss, control, points, bounds, kernel, form), seed)
        n_init = call.n_init if isinstance(call.init, str) else 1
        outcome = best_of_restarts(
            lambda index: Alternation(problem, index, restart_stream(seed, index)), n_init, control
        )
        if outcome.best.status == Status.NUMERICAL:
            times, cure = "", ""
            if call.sample_weight is not None:
                times, cure = " times the largest weight", ", or sample_weight with a mean of 1"
            warn_user(
                f"the machine did not reach its tolerance, as C{times} is "
                f"{problem.cost.max():.3g}: give a lower C{cure}, or a larger tol; duality_gap "
                "tells how far it is"
            )
        params = own_values(call, IterLSSVMParameters, IterSVMParameters, IterSVRParameters)
        params |= values(call, SizeParameters)
        if problem.form is not form:  # few pivots stand for the whole kernel
            params |= {"landmarks": problem.form.landmarks, "rank_tol": problem.form.rank_tol}
        if problem.merged is not None:
            params["max_representatives"] = call.max_representatives
        return _make_result(problem, outcome, params, counts)


def _check_training(call, kernel, form, points, weights):
    """Refuse a solver that cannot work on what there is, and what double precision cannot reach."""
    solver, C, tol, largest = call.solver, call.C, call.tol, weights.max()
    in_features = has_features(kernel, form, solver, points)
    if solver in DENSE_SOLVERS and form.rank is not None:
        raise ValueError(
            f"solver={solver!r} works on the dense Gram matrix, which rank={form.rank} rules out "
            "(sparse points have one); give rank=None and dense points, or solver='interior'"
        )
    if solver in ("interior", "linear") and not in_features:
        raise ValueError(
            f"solver={solver!r} works on features; give a rank, say rank=200, or kernel='linear' "
            "with fewer features than points"
        )
    # In features it is a share of the objective, else a violation beside C times kernel values.
    least = least_violation(1.0 if in_features else C * largest)
    if tol < least:
        raise ValueError(
            f"tol must be at least {least:.2g}, what double precision can reach with C={C:g} and "
            f"a largest weight of {largest:g}; got {tol:g}; give a larger tol, or a lower C"
        )


def _weight_bounds(call, weights):
    """Return what the points of cluster 1 may weigh."""
    counted = call.target_sizes is not None or call.min_size != 1 or call.max_size is not None
    if counted and call.sample_weight is not None:
        raise ValueError(
            "target_sizes, min_size and max_size count points and cannot go with sample_weight; "
            "give balance"
        )
    total = weights.sum()
    if (weights == np.rint(weights)).all() and total <= 2**53:  # as many equal points
        return WeightBounds(weights, *binary_bounds(int(total), **values(call, SizeParameters)))
    half = 0.5 * total
    return WeightBounds(weights, (1.0 - call.balance) * half, (1.0 + call.balance) * half)


def _make_result(problem, outcome, params, counts):
    """Gather what the winning start found."""
    best, status = outcome.best, outcome.status
    solution, intercept = best.solution, best.split.threshold
    if problem.call.refit:
        try:
            solution, intercept = refit_machine(problem, best.labels)
        except OutOfTime:  # half-trained, it would predict worse than that of the search
            if status == Status.CONVERGED:
                status = Status.TIME_LIMIT
                warn_if_stopped(status, 1, 1)
    intercept += problem.offset(solution.w)
    model, support, coef = _make_model(problem, solution, intercept)
    f = best.solution.scores + best.split.bias
    rank = len(problem.features.to_Z) if problem.is_low_rank else None
    bounds, size_bounds = problem.bounds, None
    if (bounds.weights == counts).all():  # else what is bounded are no sizes
        size_bounds = binary_size_bounds(counts.sum(), bounds.lower, bounds.upper)
    return outcome.result(
        MarginResult,
        params | {"rank": rank} | problem.kernel.params(),
        status=status,
        sizes=np.bincount(best.labels, counts, 2).astype(np.int64),
        model=model,
        dual_coef=coef,
        support=support,
        intercept=float(intercept),
        duality_gap=best.solution.gap,
        n_violated=int(counts[best.split.y * f < 1.0 - 1e-9].sum()),
        size_bounds=size_bounds,
    )


def _make_model(problem, solution, intercept):
    """Return the model, the indices of the support vectors and their coefficients."""
    u = solution.u
    # The interior-point method comes near to 0 without reaching it.
    support = None if u is None else np.flatnonzero(np.abs(u) > 1e-8 * np.abs(u).max())
    coef = None if u is None else u[support]
    points, kernel, features, indices = problem.points, problem.kernel, problem.features, None
    dtype = None
    if features is None:
        precomputed = kernel.name == "precomputed"
        basis = points[:1] if precomputed else kernel_points(kernel, points, support)
        indices = support if precomputed else None
        weights = coef
    elif not problem.is_low_rank:
        # A constant would leave no digits of small scores, and it adds nothing to any.
        kernel = replace(kernel, coef0=0.0)
        w = features.to_Z[:-1] @ solution.w
        # Points far from 0 need the digits of w that their own precision may not have.
        basis, weights, dtype = np.array([w]), np.ones(1), points.dtype
    else:
        basis, weights, indices = features.basis, features.to_Z @ solution.w, features.indices
    n_features = points.shape[1]
    model = KernelModel(
        kernel, basis, weights[:, None], n_features, intercept, indices, binary=True, dtype=dtype
    )
    return model, support, coef
