"""CPMMC and CPM3C: maximum-margin clustering by cutting planes."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse

from fastmmc.core import memory, validation
from fastmmc.core.declare import function_of, own_values, parameter, values
from fastmmc.core.execution import (
    OutOfTime,
    RunControl,
    best_of_restarts,
    fixed_seed,
    restart_stream,
    show_progress,
    warn_of_equal_points,
    warn_of_fewer,
    warn_user,
)
from fastmmc.core.parameters import (
    Clusters,
    KernelName,
    KernelParameters,
    LandmarkParameters,
    MarginRunParameters,
    Points,
    Rank,
    kernel_of,
)
from fastmmc.core.results import MarginResult
from fastmmc.core.status import Status
from fastmmc.core.types import MatrixLike
from fastmmc.cutting_plane.blocked import search_in_blocks
from fastmmc.cutting_plane.search import STARTS, PlaneSearch, Problem, pass_seconds
from fastmmc.data.blocks import in_blocks
from fastmmc.data.labels import check_init
from fastmmc.kernels.factors import eigh_seconds
from fastmmc.kernels.gram import Kernel, default_width, kernel_diagonal, resolve_kernel
from fastmmc.kernels.models import KernelModel
from fastmmc.kernels.nystroem import RANKS, auto_rank, brief_features, check_form, form_features

# Programs multiply products of points and parameters, which must not leave the range of doubles.
MOST_SQUARES = 1e150
LEAST_PARAMETER, MOST_PARAMETER = 1e-50, 1e50

# A kernel's negative eigenvalues may make up this share of the positive ones: rounding.
DEFINITE_TOLERANCE = 1e-3

# rank="auto" is exact up to so many points, and so many landmarks above.
AUTO_RANK = 500

# Arrays of n x n that are held while the features of the whole Gram matrix are made.
DENSE_ARRAYS = 3


class CPMMCParameters(MarginRunParameters, LandmarkParameters, KernelParameters, before="kernel"):
    """What the function and the estimator have in common."""

    C: float = parameter(
        default=1.0,
        least=LEAST_PARAMETER,
        most=MOST_PARAMETER,
        doc="Weight of the mean slack, 1e-50 to 1e50.",
    )
    score_balance: float = parameter(
        default=0.03,
        least=0,
        most=MOST_PARAMETER,
        doc="""
        l / n, 0 to 1e50: the bound on the mean score, in units in which the margin is 1. It bounds
        scores and not sizes.
        """,
    )
    eps: float = parameter(
        default=0.01, above=0, doc="A constraint is met if it is violated by no more."
    )
    stop: Literal["additive", "relative"] = parameter(
        default="additive",
        doc="""
        The search ends when the mean slack of all points exceeds the slack xi of the constraints
        so far by no more than eps, or by no more than eps * xi.
        """,
    )
    cccp_tol: float = parameter(
        default=0.01,
        above=0,
        doc="""
        Relative decrease of the objective below which labels are no longer frozen anew, and the
        next constraint is sought.
        """,
    )
    init: Literal["random", "kmeans"] | ArrayLike = parameter(
        default="random",
        kind='{"random", "kmeans"} or (n,) array_like of int',
        doc="""
        First weights: normal directions through the mean of the points, or weights under which
        each point gets the cluster with the nearest mean, from k-means or from the labels given
        (0..k-1). They are scaled to small scores, so that all points have a say in the first plane.
        """,
    )
    solver: Literal["active-set"] = parameter(
        default="active-set",
        kind='{"active-set"}',
        doc="Solves the quadratic programs: a compiled active-set solver, warm-started.",
    )
    max_iter: int = parameter(default=1000, least=1, doc="Planes of a start at most.")
    kernel: KernelName | Callable[..., Any] = parameter(
        default="linear",
        doc="""
        Kernel; a callable takes (X, Z) and returns their (n_X, n_Z) Gram matrix. "linear" works on
        the points as they are, dense or sparse; any other on features made from its Gram matrix.
        """,
    )
    coef0: float = parameter(
        default=1.0,
        doc="""
        Constant of the linear and polynomial kernels, at least 0. With the linear kernel it has no
        effect here, as the bias is free.
        """,
    )
    rank: Rank = parameter(
        default="auto",
        doc="""
        Number of landmarks of a low-rank kernel, or their share of n; None: features of the whole
        Gram matrix, exact in O(n^3) time. "auto" is that up to 500 points and 500 landmarks above,
        3e8 / n of them above 600,000. A linear kernel needs no features unless a number is given.
        """,
    )


class CPM3CParameters(CPMMCParameters):
    """What the function and the estimator have in common."""

    C: float = parameter(
        default=10.0,
        doc="""
        Weight of the mean slack, 1e-50 to 1e50. Weights of length 1 for all k clusters cost k / 2,
        and no weights at all cost C: give more than k / 2 where points have about that norm, as
        they have with a Gaussian kernel.
        """,
    )
    score_balance: float = parameter(
        default=0.03,
        doc="""
        l / n, 0 to 1e50: the bound on the difference of the mean scores of any two clusters, in
        units in which the margin is 1. It bounds scores and not sizes, and nothing at all where the
        features are centred and have no constant.
        """,
    )
    kernel: KernelName | Callable[..., Any] = parameter(default="rbf")
    coef0: float = parameter(
        default=1.0,
        doc="""
        Constant of the linear and polynomial kernels, at least 0. With the linear kernel it gives
        every cluster a bias, which is penalised.
        """,
    )
    n_init: int = parameter(
        default=10,
        doc="""
        Starts; of those that keep most clusters the one with the lowest objective wins. Given
        labels are started from once.
        """,
    )


class _CPMMCCall(CPMMCParameters, Points):
    X: MatrixLike = parameter(
        kw_only=False,
        kind="(n, d) array_like, data frame or sparse matrix",
        doc="""
        Points, of :func:`cpmmc` also a dask.array; with ``kernel="precomputed"`` their (n, n) Gram
        matrix.
        """,
    )


class _CPM3CCall(CPM3CParameters, Clusters, _CPMMCCall):
    k: int = parameter(
        kw_only=False,
        doc="""
        Clusters, 1 <= k <= n. Those that end up empty are dropped, and the labels have no gaps.
        """,
    )


@function_of(_CPMMCCall)
def cpmmc(call: _CPMMCCall, control: RunControl) -> MarginResult:
    """Cluster in two by cutting-plane maximum-margin clustering (CPMMC).

    Minimises over weights w and a bias b, with f_i = w . x_i + b,

        |w|^2 / 2 + C (1/n) sum_i max(0, 1 - |f_i|)   subject to   |sum_i f_i| <= l:

    no point is to lie near the border, and the scores are to balance. The labels are the signs.
    The 2^n constraints of the one-slack form join a working set one by one, the most violated
    first; with signs frozen in turn (concave-convex procedure) each step is a quadratic program of
    as many variables as there are constraints in the set, whatever the number of features is.

    Returns
    -------
    MarginResult
        ``labels`` (0 and 1), ``objective`` at the final weights and, in ``history``, after every
        program; ``trace`` has ``working`` (the objective on the working set), ``violation`` and
        ``planes`` beside it. ``n_iter`` counts planes. ``dual_coef`` makes up the weights,
        w = sum_i dual_coef_i x_support_i, ``duality_gap`` is that of the last program, and
        ``n_violated`` counts the points inside the margin. After a stop before the end the best
        program's weights count, and dual_coef and support are None if it was not the last one.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range, or X is not a finite matrix.
    MemoryError
        If the features of a kernel do not fit into free memory.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If the run was stopped before its end, its programs were not solved exactly, which happens
        when points are far from the origin, or clusters of :func:`cpm3c` remained empty.
    UserWarning
        If columns of X seem to have different units.

    Notes
    -----
    A program takes one pass over the points, O(nd) or the number of their entries that are not
    zero, and O(s^2 d) for s planes; the number of planes is bounded independently of n. The whole
    Gram matrix of a kernel costs O(n^3) once. All points on one side have the objective
    C (1 - score_balance) and are a local optimum; the result then has sizes n and 0.

    Where there are no clusters the search as published may not end. After fifty planes without a
    lower objective it therefore goes on with its loops exchanged: labels are held while planes
    join, which is convex, and frozen anew as long as that lowers the objective.

    The blocks of a Dask array, or of a ``numpy.memmap`` of more than 2^27 numbers, never come
    together. The weights are those of a sample of 20,000 points: the objective is a mean over the
    points, which a sample estimates up to its sampling error, and no plane is computed from all
    points.
    The bias is shifted until the scores of all points keep to the balance; ``objective``, ``sizes``
    and ``n_violated`` are those of all points, the rest those of the sample, and ``dual_coef`` and
    ``support`` None. Labels come back as a Dask array.

    References
    ----------
    B. Zhao, F. Wang, C. Zhang, Efficient maximum margin clustering via cutting plane algorithm,
    SIAM International Conference on Data Mining, 2008.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.make_nine_gaussians(100, random_state=0)
    >>> fastmmc.cpmmc(X, random_state=0).sizes.sum()
    np.int64(100)
    """
    if in_blocks(call.X):
        return search_in_blocks(call, control, cpmmc)
    return _cluster(call, control, 2, binary=True)


@function_of(_CPM3CCall, like=cpmmc)
def cpm3c(call: _CPM3CCall, control: RunControl) -> MarginResult:
    """Cluster by cutting-plane maximum-margin clustering of many classes (CPM3C).

    Minimises over weights w_p of the clusters

        sum_p |w_p|^2 / 2 + C (1/n) sum_i max(0, 1 - (best - second best of the scores w_p . x_i))

    subject to |sum_i (w_p - w_q) . x_i| <= l for all pairs of clusters. The highest score gives the
    label. Otherwise as :func:`cpmmc`, with winners frozen in place of signs; there the objective on
    the working set never rises, here it may.

    Returns
    -------
    MarginResult
        As of :func:`cpmmc`. ``dual_coef`` has a column for each cluster, and ``intercept`` is 0:
        the constant of a kernel is part of it.

    Notes
    -----
    ``objective`` and ``n_violated`` are those of all k weights, also of clusters that were dropped
    because they win no point.

    The objective does not ask for k clusters: one that wins no point costs nothing, so that fewer,
    larger clusters are often better by far. Of 15 clear clusters in the plane (600 points, linear
    kernel, C = 1) the true labels cost 0.98 with the best weights for them, and two clusters 0.54,
    where the search ends even if it begins with the true labels; without a balance one cluster
    costs 0.01. With a linear kernel, which is the paper's, the balance also works against clusters
    in the middle of others, and scale and origin of the points matter. Do not use this method for
    many clusters, or where all k are wanted: take :func:`umc_rls`, or k-means.

    With k = 2 and no constant, weights -u / 2 and u / 2 give the objective that :func:`cpmmc`
    without a bias has for u and twice C, halved. Of the k (k - 1) bounds of the balance a
    program takes those that are violated, until all of them hold. A search that finds no end
    settles as that of :func:`cpmmc`.

    References
    ----------
    B. Zhao, F. Wang, C. Zhang, Efficient multiclass maximum margin clustering, ICML 2008.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> fastmmc.cpm3c(X, 3, random_state=0).sizes.sum()
    np.int64(150)
    """
    return _cluster(call, control, call.k, binary=False)


def _cluster(call, control, k, binary):
    """Run the starts; binary labels are signs."""
    kernel = kernel_of(call)
    points = validation.check_points(call.X, kernel, sparse=True)
    n = points.shape[0]
    if binary:
        validation.check_two_points(n)
    k = validation.check_cluster_count(k, n)
    # k-means runs on features, which a precomputed kernel has too.
    init = check_init(call.init, n, k, Kernel("linear"), STARTS)
    form = _check_form(points, kernel, **values(call, LandmarkParameters))
    # Of more clusters a warning says how many were found.
    told = binary and warn_of_equal_points(points, 2)
    seed = fixed_seed(call.random_state)
    with show_progress(control) as control:
        kernel = resolve_kernel(kernel, points, default_width(k))
        features, is_brief, rows, constant = None, False, points, kernel.coef0
        if form is not None:
            features, is_brief = _make_features(points, kernel, form, seed, k, control)
            rows, constant = features.Z, 0.0  # features have the constant in them
        if not _squares(rows) + n * constant <= MOST_SQUARES:
            raise ValueError(
                f"kernel={kernel.name!r} gives values that are too large for these points; scale "
                "them"
            )
        control.bar.prepare(1.0)
        given = replace(call, init=init)
        mean = np.asarray(rows.sum(axis=0, dtype=np.float64)).ravel() / n
        problem = Problem(given, control, k, binary, rows, mean, constant, is_brief)
        n_init = call.n_init if isinstance(init, str) else 1
        outcome = best_of_restarts(
            lambda index: PlaneSearch(problem, restart_stream(seed, index)), n_init, control
        )
    if outcome.status == Status.NUMERICAL:
        gap = outcome.best.weights.gap
        warn_user(
            f"the quadratic programs were not solved exactly (duality_gap={gap}); "
            "centre the points, X - X.mean(axis=0), or scale them"
        )
    labels, weights, coef = _drop_empty(problem, outcome.best, told)
    support = None if coef is None else np.flatnonzero(coef.reshape(n, -1).any(axis=1))
    is_low_rank = is_brief or (form is not None and form.rank is not None)
    rank = len(features.to_Z) if is_low_rank else None
    return outcome.result(
        MarginResult,
        own_values(call, CPMMCParameters) | {"rank": rank} | kernel.params(),
        labels=labels,
        sizes=np.bincount(labels, minlength=2 if binary else 1),
        model=_make_model(points, kernel, features, weights, binary),
        dual_coef=None if coef is None else coef[support],
        support=support,
        intercept=float(weights.b[0]) if binary else 0.0,
        duality_gap=outcome.best.weights.gap,
        n_violated=outcome.best.n_inside,
    )


def _check_form(points, kernel, rank, landmarks, rank_tol):
    """Return the form of the kernel's features, or None where the points are used as they are."""
    by_name = isinstance(landmarks, str)
    is_auto = isinstance(rank, str) and by_name and landmarks != "pivoted"
    if kernel.name == "linear" and (is_auto or rank is None and by_name):
        # A rank leaves nothing to refuse in sparse points, which need no features.
        check_form(points, kernel, 1, landmarks, rank_tol, None)
        if rank is not None:
            validation.check_choice("rank", rank, ("auto",), RANKS)
        return None
    if kernel.name != "linear" and is_auto and rank == "auto":
        # Many short programs on features of that many columns; a whole Gram matrix takes O(n^3).
        n = points.shape[0]
        if n > AUTO_RANK or issparse(points):
            rank = min(AUTO_RANK, auto_rank(n))
    return check_form(points, kernel, rank, landmarks, rank_tol, None)


@np.errstate(over="ignore", invalid="ignore")
def _make_features(points, kernel, form, seed, k, control):
    """Return features, and whether a time limit has left room only for a low rank.

    Without a rank their products are the kernel values: with all points as landmarks they are the
    empirical kernel map V L^1/2 of K = V L V^T.
    """
    n = points.shape[0]
    try:
        if form.rank is not None:
            # A pass over them comes next, and cannot be left out.
            last = pass_seconds(k, n * form.rank)
            given = points, kernel, form, seed
            return form_features(*given, lambda ahead=0.0: control.check_time(ahead + last)), False
        if control.max_time is not None:
            control.check_time(eigh_seconds(n))
        memory.check_memory(
            n, np.dtype(np.float64), arrays=DENSE_ARRAYS, what="eigenvectors of the Gram matrix"
        )
        whole = replace(form, rank=n, landmarks=np.arange(n))
        features = form_features(points, kernel, whole, seed, control.check_time)
    except OutOfTime:
        return brief_features(points, kernel, seed, k), True
    # The features leave negative eigenvalues out.
    positive = _squares(features.Z)
    negative = positive - float(kernel_diagonal(kernel, points).sum())
    if negative > DEFINITE_TOLERANCE * positive:
        raise ValueError(
            f"kernel={kernel.name!r} is not positive semidefinite: the negative eigenvalues of its "
            f"Gram matrix add up to {-negative:.3g}, the positive ones to {positive:.3g}; give a "
            "positive semidefinite kernel"
        )
    return features, False


def _squares(rows):
    """Return the sum of the squares of all entries in double precision, inf out of its range."""
    values = rows.data if issparse(rows) else rows.ravel()
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.einsum("i,i->", values, values, dtype=np.float64))


def _drop_empty(problem, search, told):
    """Return the labels without gaps, and the weights and coefficients of the clusters there are.

    Of two clusters both are kept, and if there is only one it has label 0. A warning says how many
    were found, unless the user was ``told`` why there are fewer.
    """
    weights, labels = search.weights, search.labels.astype(np.int64)
    coef = search.planes.coefficients() if search.at_end else None
    used, dense = np.unique(labels, return_inverse=True)
    if used.size < problem.k and not told:
        warn_of_fewer(
            used.size,
            problem.k,
            "the weights of the others win no point; raise C, or scale the points up",
        )
    if problem.binary:
        if labels.all():
            labels = 1 - labels
            weights = weights._replace(W=-weights.W, b=-weights.b)
            coef = None if coef is None else -coef
        return labels, weights, coef
    weights = weights._replace(W=weights.W[used], b=weights.b[used])
    return dense.astype(np.int64), weights, None if coef is None else coef[:, used]


def _make_model(points, kernel, features, weights, binary):
    """Return the model of the weights of some clusters."""
    if features is None:
        # k(x, w) = x . w, and what a constant feature adds is part of the intercept.
        kernel, basis, indices = Kernel("linear", coef0=0.0), weights.W, None
        coef = np.eye(len(basis))
    else:
        basis = features.basis[:1] if kernel.name == "precomputed" else features.basis
        coef, indices = features.to_Z @ weights.W.T, features.indices
    n_features, dtype = points.shape[1], points.dtype
    return KernelModel(kernel, basis, coef, n_features, weights.b, indices, binary, dtype)
