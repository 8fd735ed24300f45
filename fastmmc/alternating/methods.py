"""iterSVM, iterSVR and iterLS-SVM: train a kernel machine, relabel by its scores, again."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from fastmmc import validation
from fastmmc._binary import two_clusters
from fastmmc._names import remember_names
from fastmmc.alternating.bias import WeightBounds
from fastmmc.alternating.machines import least_violation
from fastmmc.alternating.rounds import (
    Alternation,
    AlternationSettings,
    has_features,
    make_data,
    refit_machine,
)
from fastmmc.alternating.start import STARTS
from fastmmc.execution import (
    best_of_restarts,
    check_control,
    fixed_seed,
    restart_stream,
    show_progress,
    warn_if_stopped,
    warn_of_equal_points,
)
from fastmmc.gram import dense_rows
from fastmmc.labels import check_init
from fastmmc.models import KernelModel
from fastmmc.nystroem import check_form, check_landmarks
from fastmmc.results import MarginResult, Status
from fastmmc.sizes import binary_bounds

SOLVERS = ("auto", "smo", "libsvm", "interior", "linear")


def _make_model(data, solution, intercept):
    """Return the model, the indices of the support vectors and their coefficients."""
    u = solution.u
    # The interior-point method comes near to 0 without reaching it.
    support = None if u is None else np.flatnonzero(np.abs(u) > 1e-8 * np.abs(u).max())
    coef = None if u is None else u[support]
    kernel, features, indices = data.kernel, data.features, None
    if features is None:
        precomputed = kernel.name == "precomputed"
        basis = data.points[:1] if precomputed else dense_rows(data.points, support)
        indices = support if precomputed else None
        weights = coef
    elif not _is_low_rank(data):
        # k(x, w) = x . w + coef0, and the constant feature times its weight is part of f.
        w, weights = solution.w, np.ones(1)
        intercept += np.sqrt(kernel.coef0) * w[-1] - kernel.coef0
        basis = w[None, :-1].astype(data.points.dtype)
    else:
        basis, weights, indices = features.basis, features.to_Z @ solution.w, features.indices
    n_features = data.points.shape[1]
    model = KernelModel(
        kernel, basis, weights[:, None], n_features, intercept, indices, binary=True
    )
    return model, support, coef


def _is_low_rank(data):
    """Tell whether there are features that are not the points themselves."""
    return data.features is not None and len(data.features.basis) > 0


def _make_result(settings, data, best, best_init, objectives, status, n_init):
    """Gather what the winning start found."""
    solution, intercept = best.solution, best.split.threshold
    if settings.refit:
        solution, intercept, was_cut = refit_machine(settings, data, best.labels)
        if was_cut and status == Status.CONVERGED:
            status = Status.TIME_LIMIT
            warn_if_stopped(status, n_init, n_init)
    model, support, coef = _make_model(data, solution, intercept)
    f = best.solution.scores + best.split.bias
    kernel = data.kernel
    given = {
        "rank": data.features.Z.shape[1] if _is_low_rank(data) else None,
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
        params=settings.params | given,
        model=model,
        dual_coef=coef,
        support=support,
        intercept=float(intercept),
        duality_gap=best.solution.gap,
        n_violated=int(np.sum(best.split.y * f < 1.0 - 1e-9)),
    )


def _make_settings(
    points,
    kernel,
    control,
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
    """Return the checked parameters of the alternation, and the bounds of the clusters' weights."""
    n = points.shape[0]
    if n < 2:
        raise ValueError("X must have at least 2 points, one for each cluster; got n_samples = 1")
    epsilon = validation.check_number("epsilon", epsilon)
    if epsilon < 0:
        raise ValueError(f"epsilon must be at least 0; got {epsilon}")
    solver = validation.check_choice("solver", solver, SOLVERS)
    form = check_form(points, kernel, rank, landmarks, rank_tol, None)
    _check_solver(solver, kernel, form, points, loss)
    weights = np.ones(n) if sample_weight is None else sample_weight
    C = validation.check_positive("C", C)
    tol = validation.check_positive("tol", tol)
    if loss != "square":
        _check_tolerance(tol, C, weights, has_features(kernel, form, solver, points))
    bounds = _weight_bounds(weights, sample_weight, balance, target_sizes, min_size)
    settings = AlternationSettings(
        kernel=kernel,
        form=form,
        C=C,
        loss=loss,
        epsilon=epsilon,
        tied=validation.check_choice("bias", bias, ("joint", "tied")) == "tied",
        solver=solver,
        tol=tol,
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
        control=control,
    )
    return settings, bounds


def _check_tolerance(tol, C, weights, is_in_features):
    """Refuse a tolerance that double precision cannot reach."""
    # In features it is a share of the objective, else a violation beside C times kernel values.
    least = least_violation(1.0 if is_in_features else C * weights.max())
    if tol < least:
        raise ValueError(
            f"tol must be at least {least:.2g}, what double precision can reach with C={C:g} and "
            f"a largest weight of {weights.max():g}; got {tol:g}; give a larger tol, or a lower C"
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
    if solver in ("interior", "linear") and not has_features(kernel, form, solver, points):
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


@remember_names
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
    n_init = validation.check_starts(n_init)
    kernel = validation.check_kernel(kernel, sigma, gamma, degree, coef0, kernel_params)
    points = validation.check_points(X, kernel, sparse=True)
    warn_of_equal_points(points, 2)
    weights = validation.check_sample_weight(alternation["sample_weight"], points.shape[0])
    counting = validation.counting_points(weights)
    alternation = alternation | {"sample_weight": weights}
    if counting is None:
        return _solve(points, kernel, control, n_init, random_state, alternation)
    given = _only(counting, points, kernel, alternation)
    part = points[np.ix_(counting, counting)] if _is_gram(kernel) else points[counting]
    result = _solve(part, kernel, control, n_init, random_state, given)
    return _extend(result, counting, points)


def _is_gram(kernel):
    return kernel.name == "precomputed"


def _only(counting, points, kernel, alternation):
    """Return the parameters of the points that count alone."""
    weights, init, landmarks = (
        alternation[name] for name in ("sample_weight", "init", "landmarks")
    )
    if counting.size < 2:
        raise ValueError("sample_weight must be above 0 for at least 2 points, one a cluster")
    if not isinstance(init, str):
        init = check_init(init, weights.size, 2, kernel, STARTS)[counting]
    if np.ndim(landmarks) == 1:
        landmarks = check_landmarks(landmarks, points, kernel)
        if not np.isin(landmarks, counting).all():
            raise ValueError("landmarks must be points whose sample_weight is above 0")
        landmarks = np.searchsorted(counting, landmarks)
    changed = {"sample_weight": weights[counting], "init": init, "landmarks": landmarks}
    return alternation | changed


def _extend(result, counting, points):
    """Return the result with labels for the points that do not count, and indices of all points."""
    model, support = result.model, result.support
    if _is_gram(model.kernel):
        indices = counting[model.indices]
        model = replace(model, indices=indices, n_features=points.shape[0])
    labels = np.empty(points.shape[0], dtype=np.int64)
    labels[counting] = result.labels
    others = np.setdiff1d(np.arange(labels.size), counting)
    labels[others] = model.decision_function(points[others]).argmax(axis=1)
    return replace(
        result,
        labels=labels,
        sizes=np.bincount(labels, minlength=2),
        model=model,
        support=None if support is None else counting[support],
    )


def _solve(points, kernel, control, n_init, random_state, alternation):
    """Cluster points whose weights are all above 0."""
    settings, bounds = _make_settings(points, kernel, control, **alternation)
    if not isinstance(settings.init, str):
        n_init = 1
    seed = fixed_seed(random_state)
    with show_progress(control) as control:
        data = make_data(settings, points, bounds, seed, control.bar.prepare)

        def make_search(index):
            return Alternation(settings, data, index, restart_stream(seed, index))

        best, best_init, objectives, status = best_of_restarts(make_search, n_init, control)
        return _make_result(settings, data, best, best_init, objectives, status, n_init)


@two_clusters
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
        share of the objective. Training is made more exact where a decrease might be hidden. On
        the Gram matrix at least 2.2e-16 C times the largest weight. LIBSVM has kernel values in
        single precision, so that its gap may stay at 1e-3.
    max_iter : int, default=50
        Rounds of a start.
    refit : bool, default=False
        Predict by a support vector machine trained on the final labels: it has fewer support
        vectors. It may disagree with labels of points inside its margin.
    sample_weight : (n,) array_like, optional
        Weights, at least 0: a point of weight s counts as s equal points, in the loss and in the
        size rule, which is then kept as nearly as whole points allow. A point of weight 0 does not
        count, and gets its label from the model.
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
        Seconds for the whole call; the best labels found by then are returned. Where there is no
        time for the Gram matrix or the features, features of rank 50 take their place.
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


@two_clusters
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


@two_clusters
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
