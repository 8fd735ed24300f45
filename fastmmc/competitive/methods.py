"""Competitive learning with and without constraints, and constrained k-means."""

from __future__ import annotations

import time

import numpy as np

from fastmmc import validation
from fastmmc._names import remember_names
from fastmmc.competitive.batch import BatchPlan, BatchSearch
from fastmmc.competitive.online import (
    WEIGHTED,
    OnlinePlan,
    OnlineSearch,
    check_rule,
    check_share,
    warn_if_fewer,
)
from fastmmc.competitive.space import check_space, check_start, make_space, space_params
from fastmmc.constraints import check_links
from fastmmc.execution import (
    best_of_restarts,
    check_control,
    fixed_seed,
    restart_stream,
    show_progress,
    warn_of_equal_points,
)
from fastmmc.models import CenterModel
from fastmmc.results import CentroidResult, Status

BATCH = ("lcvqe", "cvqe")


def _make_plan(points, k, method, init, max_iter, constraints, given):
    """Check the parameters of the search."""
    common = {
        "k": validation.check_integer(
            "k", k, least=1, most=points.shape[0], why=", the number of points"
        ),
        "init": check_start(init),
        "max_iter": validation.check_integer("max_iter", max_iter, least=1),
        "constraints": constraints,
    }
    if method in BATCH:
        return BatchPlan(pairwise=method == "cvqe", **common)
    return OnlinePlan(
        rule=check_rule(
            WEIGHTED[method],
            given["alpha"],
            given.get("beta", 0.0),
            given["schedule"],
            given.get("per_constraint", "once"),
        ),
        shuffle=validation.check_flag("shuffle", given["shuffle"]),
        min_share=check_share(given["min_share"], method, common["k"]),
        online_first_epoch=validation.check_flag(
            "online_first_epoch", given.get("online_first_epoch", False)
        ),
        **common,
    )


@remember_names
def solve_competitive(
    X,
    k,
    *,
    method,
    init,
    max_iter,
    features,
    kernel,
    sigma,
    gamma,
    degree,
    coef0,
    kernel_params,
    rank,
    landmarks,
    rank_tol,
    n_init,
    random_state,
    n_jobs,
    max_time,
    callback,
    verbose,
    known_labels=None,
    must_link=None,
    cannot_link=None,
    labels_as="cannot_link",
    on_conflict="raise",
    on_start_done=None,
    **given,
):
    """Do what the functions of this file do, and report each start that ended.

    Parameters
    ----------
    X, k, init, max_iter, features
        See :func:`c_rpcl`.
    method : str
        Name of a function of this file.
    kernel, sigma, gamma, degree, coef0, kernel_params, rank, landmarks, rank_tol
        See :func:`c_rpcl`.
    n_init, random_state, n_jobs, max_time, callback, verbose
        See :func:`c_rpcl`.
    known_labels, must_link, cannot_link, labels_as, on_conflict
        See :func:`c_rpcl`.
    on_start_done : callable, optional
        Called with (index, n_init) in the calling thread; a true return value stops the run.
    **given
        The method's own parameters.

    Returns
    -------
    CentroidResult
        The best of the starts.
    """
    control = check_control(time.perf_counter(), n_jobs, max_time, callback, verbose, on_start_done)
    n_init = validation.check_starts(n_init)
    if features is None and (sigma, gamma, rank) != (None, None, "auto"):
        raise ValueError(
            "sigma, gamma and rank are of a kernel, which only features='nystroem' has; "
            f"got features=None, sigma={sigma!r}, gamma={gamma!r}, rank={rank!r}"
        )
    kernel = validation.check_kernel(kernel, sigma, gamma, degree, coef0, kernel_params)
    if features is None and kernel.name == "precomputed":
        raise ValueError("kernel='precomputed' needs features='nystroem'; got features=None")
    points = validation.check_points(X, kernel, sparse=True)
    space_plan = check_space(points, features, kernel, rank, landmarks, rank_tol)
    constraints = check_links(
        must_link,
        cannot_link,
        points.shape[0],
        known_labels=known_labels,
        labels_as=labels_as,
        on_conflict=on_conflict,
    )
    plan = _make_plan(points, k, method, init, max_iter, constraints, given)
    enough_points = not warn_of_equal_points(points, plan.k)
    seed = fixed_seed(random_state)
    search = BatchSearch if method in BATCH else OnlineSearch
    with show_progress(control) as control:
        space, rows = make_space(points, space_plan, seed)

        def make_search(index):
            return search(plan, rows, restart_stream(seed, index))

        best, best_init, objectives, status = best_of_restarts(make_search, n_init, control)
    params = {"init": init, "max_iter": max_iter, **given}
    if method not in BATCH:
        params["min_share"] = plan.min_share
    if enough_points and status != Status.NUMERICAL:
        min_share = params.get("min_share", 0.0)
        warn_if_fewer(method, plan.init, best.nearest_to, best.kept, min_share)
    centers = best.centers[best.kept]
    return CentroidResult(
        labels=best.labels,
        objective=best.objective,
        status=status,
        n_iter=best.n_iter,
        n_moves=best.n_moves,
        sizes=np.bincount(best.labels, minlength=best.kept.size),
        history=best.history,
        trace=best.trace,
        objectives=objectives,
        best_init=best_init,
        params=params | space_params(space) | {"n_init": n_init},
        model=CenterModel(centers, space),
        centers=centers,
        all_centers=best.centers,
        kept=best.kept,
        weights=best.weights,
        n_active=int(best.kept.size),
        n_constraints=len(constraints.must) + len(constraints.cannot),
        n_violations=constraints.n_violations(best.labels),
        n_conflicts=constraints.n_conflicts,
    )


def wta(
    X,
    k,
    *,
    alpha=0.05,
    schedule="constant",
    shuffle=True,
    init="k-means++",
    max_iter=100,
    min_share=None,
    features=None,
    kernel="rbf",
    sigma=None,
    gamma=None,
    degree=3,
    coef0=1.0,
    kernel_params=None,
    rank="auto",
    landmarks="uniform",
    rank_tol=1e-6,
    n_init=1,
    random_state=None,
    n_jobs=None,
    max_time=None,
    callback=None,
    verbose=0,
):
    """Cluster by competitive learning where the winner takes all (WTA): on-line k-means.

    The nearest prototype learns every object that is presented, mu_j += alpha (x - mu_j).

    Parameters
    ----------
    X : (n, d) array_like or sparse matrix
        Points.
    k : int
        Prototypes, 1 <= k <= n.
    alpha, schedule, shuffle, init, max_iter, min_share
        The learning, see :func:`c_rpcl`.
    features, kernel, sigma, gamma, degree, coef0, kernel_params
        The space of the prototypes, see :func:`c_rpcl`.
    rank, landmarks, rank_tol
        Landmarks of the features, see :func:`c_rpcl`.
    n_init, random_state, n_jobs, max_time, callback, verbose
        The run, see :func:`c_rpcl`.

    Returns
    -------
    CentroidResult
        As of :func:`c_rpcl`.

    Raises
    ------
    ValueError, TypeError, MemoryError
        As :func:`c_rpcl`.

    References
    ----------
    T. Kohonen, Self-Organizing Maps, Springer, 1995; as in
    T. Covoes, E. Hruschka, J. Ghosh, Competitive learning with pairwise constraints, IEEE
    Transactions on Neural Networks and Learning Systems 24(1), 2013, section II.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> fastmmc.wta(X, 3, random_state=0).sizes.sum()
    np.int64(150)
    """
    return solve_competitive(
        X,
        k,
        method="wta",
        alpha=alpha,
        schedule=schedule,
        shuffle=shuffle,
        init=init,
        max_iter=max_iter,
        min_share=min_share,
        features=features,
        kernel=kernel,
        sigma=sigma,
        gamma=gamma,
        degree=degree,
        coef0=coef0,
        kernel_params=kernel_params,
        rank=rank,
        landmarks=landmarks,
        rank_tol=rank_tol,
        n_init=n_init,
        random_state=random_state,
        n_jobs=n_jobs,
        max_time=max_time,
        callback=callback,
        verbose=verbose,
    )


def fscl(
    X,
    k,
    *,
    alpha=0.05,
    schedule="constant",
    shuffle=True,
    init="gaussian",
    max_iter=100,
    min_share=None,
    features=None,
    kernel="rbf",
    sigma=None,
    gamma=None,
    degree=3,
    coef0=1.0,
    kernel_params=None,
    rank="auto",
    landmarks="uniform",
    rank_tol=1e-6,
    n_init=1,
    random_state=None,
    n_jobs=None,
    max_time=None,
    callback=None,
    verbose=0,
):
    """Cluster by frequency-sensitive competitive learning (FSCL).

    :func:`wta` with distances weighted by how often a prototype has learned, so that none is left
    without objects.

    Parameters
    ----------
    X : (n, d) array_like or sparse matrix
        Points.
    k : int
        Prototypes, 1 <= k <= n.
    alpha, schedule, shuffle, init, max_iter, min_share
        The learning, see :func:`c_rpcl`.
    features, kernel, sigma, gamma, degree, coef0, kernel_params
        The space of the prototypes, see :func:`c_rpcl`.
    rank, landmarks, rank_tol
        Landmarks of the features, see :func:`c_rpcl`.
    n_init, random_state, n_jobs, max_time, callback, verbose
        The run, see :func:`c_rpcl`.

    Returns
    -------
    CentroidResult
        As of :func:`c_rpcl`.

    Raises
    ------
    ValueError, TypeError, MemoryError
        As :func:`c_rpcl`.

    References
    ----------
    S. Ahalt, A. Krishnamurthy, P. Chen, D. Melton, Competitive learning algorithms for vector
    quantization, Neural Networks 3(3), 1990.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> fastmmc.fscl(X, 3, random_state=0).sizes.sum()
    np.int64(150)
    """
    return solve_competitive(
        X,
        k,
        method="fscl",
        alpha=alpha,
        schedule=schedule,
        shuffle=shuffle,
        init=init,
        max_iter=max_iter,
        min_share=min_share,
        features=features,
        kernel=kernel,
        sigma=sigma,
        gamma=gamma,
        degree=degree,
        coef0=coef0,
        kernel_params=kernel_params,
        rank=rank,
        landmarks=landmarks,
        rank_tol=rank_tol,
        n_init=n_init,
        random_state=random_state,
        n_jobs=n_jobs,
        max_time=max_time,
        callback=callback,
        verbose=verbose,
    )


def rpcl(
    X,
    k,
    *,
    alpha=0.05,
    beta=0.002,
    schedule="constant",
    shuffle=True,
    init="gaussian",
    max_iter=100,
    min_share=None,
    features=None,
    kernel="rbf",
    sigma=None,
    gamma=None,
    degree=3,
    coef0=1.0,
    kernel_params=None,
    rank="auto",
    landmarks="uniform",
    rank_tol=1e-6,
    n_init=1,
    random_state=None,
    n_jobs=None,
    max_time=None,
    callback=None,
    verbose=0,
):
    """Cluster by rival-penalised competitive learning (RPCL).

    :func:`fscl`, and the second best prototype is driven away from the object. Given too many
    prototypes it can drive the spare ones away, so that ``n_active`` estimates the number of
    clusters: of nine Gaussians four or more standard deviations apart it counted nine with
    ``beta=0.01`` and 14 prototypes. With the paper's beta, or where clusters overlap, most spare
    prototypes stay and share clusters.

    Parameters
    ----------
    X : (n, d) array_like or sparse matrix
        Points.
    k : int
        Prototypes, 1 <= k <= n.
    alpha, beta, schedule, shuffle, init, max_iter, min_share
        The learning, see :func:`c_rpcl`.
    features, kernel, sigma, gamma, degree, coef0, kernel_params
        The space of the prototypes, see :func:`c_rpcl`.
    rank, landmarks, rank_tol
        Landmarks of the features, see :func:`c_rpcl`.
    n_init, random_state, n_jobs, max_time, callback, verbose
        The run, see :func:`c_rpcl`.

    Returns
    -------
    CentroidResult
        As of :func:`c_rpcl`.

    Raises
    ------
    ValueError, TypeError, MemoryError
        As :func:`c_rpcl`.

    References
    ----------
    L. Xu, A. Krzyzak, E. Oja, Rival penalized competitive learning for clustering analysis, RBF
    net, and curve detection, IEEE Transactions on Neural Networks 4(4), 1993.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> fastmmc.rpcl(X, 3, random_state=0).sizes.sum()
    np.int64(150)
    """
    return solve_competitive(
        X,
        k,
        method="rpcl",
        alpha=alpha,
        beta=beta,
        schedule=schedule,
        shuffle=shuffle,
        init=init,
        max_iter=max_iter,
        min_share=min_share,
        features=features,
        kernel=kernel,
        sigma=sigma,
        gamma=gamma,
        degree=degree,
        coef0=coef0,
        kernel_params=kernel_params,
        rank=rank,
        landmarks=landmarks,
        rank_tol=rank_tol,
        n_init=n_init,
        random_state=random_state,
        n_jobs=n_jobs,
        max_time=max_time,
        callback=callback,
        verbose=verbose,
    )


def c_rpcl(
    X,
    k,
    *,
    alpha=0.05,
    beta=0.002,
    schedule="constant",
    shuffle=True,
    init="gaussian",
    max_iter=100,
    min_share=None,
    online_first_epoch=False,
    known_labels=None,
    must_link=None,
    cannot_link=None,
    labels_as="cannot_link",
    on_conflict="raise",
    features=None,
    kernel="rbf",
    sigma=None,
    gamma=None,
    degree=3,
    coef0=1.0,
    kernel_params=None,
    rank="auto",
    landmarks="uniform",
    rank_tol=1e-6,
    n_init=1,
    random_state=None,
    n_jobs=None,
    max_time=None,
    callback=None,
    verbose=0,
):
    """Cluster by rival-penalised competitive learning with constraints (C-RPCL).

    Objects are presented one by one. The prototype of the least w_j |x - mu_j|^2 wins, w_j being
    how often prototype j has learned; it learns, mu_j += alpha (x - mu_j), and the second best, its
    rival, is driven away, mu_n -= beta (x - mu_n). If the winner is also that of an object which x
    must not share a cluster with, the roles change: the best prototype that is the winner of no
    such object learns, and the winner is driven away. Without constraints this is :func:`rpcl`.

    Must-links, which the paper leaves out, are kept in the same way: of the prototypes that may win
    those are preferred that are winners of most objects that x must share a cluster with.

    Parameters
    ----------
    X : (n, d) array_like or sparse matrix
        Points. A sparse matrix is made dense some hundred rows at a time.
    k : int
        Prototypes, 1 <= k <= n.
    alpha : float, default=0.05
        Rate of learning, 0 < alpha <= 1.
    beta : float, default=0.002
        Rate at which rivals are driven away, 0 <= beta < alpha. Half of alpha drives all prototypes
        but one away.
    schedule : {"constant", "robbins-monro"}, default="constant"
        Robbins-Monro: rates are divided by 1 + alpha times the learning steps of the prototype,
        which makes it the mean of what it learned and of 1 / alpha - 1 copies of where it began:
        with alpha = 1 of what it learned alone.
    shuffle : bool, default=True
        Present the objects in a new random order every epoch; else in that of X.
    init : {"gaussian", "k-means++"} or (k, d) array_like
        First prototypes: drawn from the normal distribution of a random fifth of the points, as in
        the paper; points far apart; or given (with ``features`` among these). Default: "gaussian"
        where wins weight the distances (:func:`fscl`, :func:`rpcl`, :func:`c_rpcl`), "k-means++"
        for the others, which never use a prototype that begins far from all points.
    max_iter : int, default=100
        Epochs.
    min_share : float, optional
        Prototypes nearest to a smaller share of the points are dropped in the end, and their points
        given to the others; ``n_active`` counts those that stay. 0 keeps all that have a point.
        None: 0.01, or a quarter of the mean share 1 / k where that is less, for :func:`rpcl` and
        :func:`c_rpcl`, whose ``n_active`` estimates the number of clusters; 0 for the others.
    online_first_epoch : bool, default=False
        In the first epoch only objects that were already presented count as partners, as in a
        stream.
    known_labels : (n,) or (n, 1) array_like, optional
        Integers from 0 on where known; -1, NaN or None elsewhere. They imply constraints: of n
        labels up to n^2 / 2, of 70 bytes each.
    must_link, cannot_link : (p, 2) array_like of int, list of tuples or sparse matrix, optional
        Pairs of objects 0..n-1 that belong together, and that do not; of an (n, n) sparse matrix
        the entries other than 0.
    labels_as : {"cannot_link", "must_link", "both"}, default="cannot_link"
        What known labels imply: cannot-links between different ones, must-links between equal
        ones, or both.
    on_conflict : {"raise", "warn"}, default="raise"
        What to do if a cannot-link is between objects that must-links join: an error, or a warning
        and a count, ``n_conflicts``.
    features : {None, "nystroem"}, default=None
        Let the prototypes move in Nystroem features of a kernel, so that clusters need not be
        round. Without, sigma, gamma and rank are refused, and the other parameters of the kernel
        and of the landmarks do nothing.
    kernel : {"rbf", "linear", "poly", "laplacian", "precomputed"} or callable, default="rbf"
        Kernel of the features; a callable takes (X, Z) and returns their Gram matrix.
    sigma : float, optional
        Width of the Gaussian exp(-||x - z||^2 / sigma^2) and of the Laplacian
        exp(-||x - z||_1 / sigma). None: from the median distance, which is too wide for rings and
        other bent clusters: try a third of it.
    gamma : float, optional
        1 / sigma^2 (Gaussian), 1 / sigma (Laplacian), or the factor of the polynomial kernel.
    degree : int, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1.0
        Constant of the linear and polynomial kernels.
    kernel_params : dict, optional
        Keyword arguments of a callable kernel.
    rank : int, float or "auto", default="auto"
        Number of landmarks, or their share of n. "auto": 10 sqrt(n), but at least 100, up to 10,000
        points; 1,000 above, 3e8 / n of them above 300,000 points.
    landmarks : {"uniform", "k-means++", "pivoted"} or array_like, default="uniform"
        How they are chosen, or their indices, or the (b, d) points themselves.
    rank_tol : float, default=1e-6
        Share of the trace of K that pivoted features may miss.
    n_init : int, default=1
        Starts; the one of the lowest objective wins, whatever constraints it violates.
    random_state : int, SeedSequence, Generator, RandomState or None, default=None
        Same value, same labels, whatever ``n_jobs`` is.
    n_jobs : int, optional
        Threads. None: 1, or what joblib's configuration says; -1: all.
    max_time : float, optional
        Seconds for the whole call; the prototypes as they are by then are returned.
    callback : callable, optional
        Called with a :class:`~fastmmc.execution.Progress`; a true return value stops the run.
    verbose : int, default=0
        1 shows a progress bar (needs the extra ``progress``).

    Returns
    -------
    CentroidResult
        ``labels`` (the nearest prototype), ``objective`` (the sum of squared distances to it),
        ``centers``, ``n_active``, ``n_violations`` and more.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range, X is not a finite matrix, or constraints contradict each
        other.
    MemoryError
        If features, or the constraints that labels imply, do not fit into free memory.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If the run was stopped before its end, squared distances overflow (status NUMERICAL),
        constraints contradict each other, or a method other than :func:`rpcl` and :func:`c_rpcl`,
        which estimate the number of clusters, found fewer than k.

    Notes
    -----
    An object with p constraints costs O(d k (1 + p)).

    References
    ----------
    T. Covoes, E. Hruschka, J. Ghosh, Competitive learning with pairwise constraints, IEEE
    Transactions on Neural Networks and Learning Systems 24(1), 2013, Algorithm 2. The
    must-links are this package's.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> res = fastmmc.c_rpcl(X, 3, cannot_link=[(0, 50), (50, 100)], random_state=0)
    >>> res.n_violations
    0
    """
    return solve_competitive(
        X,
        k,
        method="c_rpcl",
        alpha=alpha,
        beta=beta,
        schedule=schedule,
        shuffle=shuffle,
        init=init,
        max_iter=max_iter,
        min_share=min_share,
        online_first_epoch=online_first_epoch,
        known_labels=known_labels,
        must_link=must_link,
        cannot_link=cannot_link,
        labels_as=labels_as,
        on_conflict=on_conflict,
        features=features,
        kernel=kernel,
        sigma=sigma,
        gamma=gamma,
        degree=degree,
        coef0=coef0,
        kernel_params=kernel_params,
        rank=rank,
        landmarks=landmarks,
        rank_tol=rank_tol,
        n_init=n_init,
        random_state=random_state,
        n_jobs=n_jobs,
        max_time=max_time,
        callback=callback,
        verbose=verbose,
    )


def o_lcvqe(
    X,
    k,
    *,
    alpha=0.05,
    beta=0.002,
    schedule="constant",
    shuffle=True,
    init="k-means++",
    max_iter=100,
    min_share=None,
    online_first_epoch=False,
    per_constraint="once",
    known_labels=None,
    must_link=None,
    cannot_link=None,
    labels_as="cannot_link",
    on_conflict="raise",
    features=None,
    kernel="rbf",
    sigma=None,
    gamma=None,
    degree=3,
    coef0=1.0,
    kernel_params=None,
    rank="auto",
    landmarks="uniform",
    rank_tol=1e-6,
    n_init=1,
    random_state=None,
    n_jobs=None,
    max_time=None,
    callback=None,
    verbose=0,
):
    """Cluster by on-line linear constrained vector quantisation (O-LCVQE).

    The nearest prototype learns an object that is in no constraint. Of two cannot-linked objects in
    one cluster the farther one is learned by its next prototype; must-linked objects that are apart
    move to one of their clusters, or pull both prototypes, whichever costs least. Without
    constraints this is :func:`wta`.

    Parameters
    ----------
    X : (n, d) array_like or sparse matrix
        Points.
    k : int
        Prototypes, 1 <= k <= n.
    alpha, schedule, shuffle, init, max_iter, min_share, online_first_epoch
        The learning, see :func:`c_rpcl`.
    beta : float, default=0.002
        Rate at which a prototype is driven away from an object that it has to give up.
    per_constraint : {"once", "paper"}, default="once"
        Paper: every constraint of an object repeats the learning, so that one in many constraints
        (as labelled ones are) pulls a prototype onto itself. Once, which departs from the paper: an
        object moves a prototype towards itself at most once a presentation.
    known_labels, must_link, cannot_link, labels_as, on_conflict
        The constraints, see :func:`c_rpcl`.
    features, kernel, sigma, gamma, degree, coef0, kernel_params
        The space of the prototypes, see :func:`c_rpcl`.
    rank, landmarks, rank_tol
        Landmarks of the features, see :func:`c_rpcl`.
    n_init, random_state, n_jobs, max_time, callback, verbose
        The run, see :func:`c_rpcl`.

    Returns
    -------
    CentroidResult
        As of :func:`c_rpcl`.

    Raises
    ------
    ValueError, TypeError, MemoryError
        As :func:`c_rpcl`.

    References
    ----------
    T. Covoes, E. Hruschka, J. Ghosh, Competitive learning with pairwise constraints, IEEE
    Transactions on Neural Networks and Learning Systems 24(1), 2013, Algorithm 1.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> res = fastmmc.o_lcvqe(X, 3, cannot_link=[(0, 50), (50, 100)], random_state=0)
    >>> res.sizes.sum()
    np.int64(150)
    """
    return solve_competitive(
        X,
        k,
        method="o_lcvqe",
        alpha=alpha,
        beta=beta,
        schedule=schedule,
        shuffle=shuffle,
        init=init,
        max_iter=max_iter,
        min_share=min_share,
        online_first_epoch=online_first_epoch,
        per_constraint=per_constraint,
        known_labels=known_labels,
        must_link=must_link,
        cannot_link=cannot_link,
        labels_as=labels_as,
        on_conflict=on_conflict,
        features=features,
        kernel=kernel,
        sigma=sigma,
        gamma=gamma,
        degree=degree,
        coef0=coef0,
        kernel_params=kernel_params,
        rank=rank,
        landmarks=landmarks,
        rank_tol=rank_tol,
        n_init=n_init,
        random_state=random_state,
        n_jobs=n_jobs,
        max_time=max_time,
        callback=callback,
        verbose=verbose,
    )


def lcvqe(
    X,
    k,
    *,
    init="k-means++",
    max_iter=500,
    known_labels=None,
    must_link=None,
    cannot_link=None,
    labels_as="cannot_link",
    on_conflict="raise",
    features=None,
    kernel="rbf",
    sigma=None,
    gamma=None,
    degree=3,
    coef0=1.0,
    kernel_params=None,
    rank="auto",
    landmarks="uniform",
    rank_tol=1e-6,
    n_init=1,
    random_state=None,
    n_jobs=None,
    max_time=None,
    callback=None,
    verbose=0,
):
    """Cluster by linear constrained vector quantisation error (LCVQE), k-means with soft links.

    In rounds: every point to its nearest prototype; for each violated constraint in turn the labels
    of the least cost; prototypes to the exact minimum, for these labels, of

        1/2 sum_i |x_i - mu_g(i)|^2
        + 1/4 sum_ML violated (|x_b - mu_g(a)|^2 + |x_a - mu_g(b)|^2)
        + 1/2 sum_CL violated |x_f - mu_v|^2,

    where f is the farther object of the pair and v its next prototype. Without violated constraints
    this is k-means.

    Parameters
    ----------
    X : (n, d) array_like or sparse matrix
        Points.
    k : int
        Clusters, 1 <= k <= n.
    init : {"gaussian", "k-means++"} or (k, d) array_like, default="k-means++"
        First prototypes, see :func:`c_rpcl`.
    max_iter : int, default=500
        Rounds of a start.
    known_labels, must_link, cannot_link, labels_as, on_conflict
        The constraints, see :func:`c_rpcl`.
    features, kernel, sigma, gamma, degree, coef0, kernel_params
        The space of the prototypes, see :func:`c_rpcl`.
    rank, landmarks, rank_tol
        Landmarks of the features, see :func:`c_rpcl`.
    n_init, random_state, n_jobs, max_time, callback, verbose
        The run, see :func:`c_rpcl`.

    Returns
    -------
    CentroidResult
        ``labels`` are those of the round of the least objective, constraints applied, ``centers``
        the prototypes that the round ended with, and ``objective`` is of both: f and v are taken by
        these prototypes. ``n_iter`` counts rounds, ``weights`` are the sizes.

    Raises
    ------
    ValueError, TypeError, MemoryError
        As :func:`c_rpcl`.

    References
    ----------
    D. Pelleg, D. Baras, K-means with large and noisy constraint sets, ECML 2007.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> res = fastmmc.lcvqe(X, 3, cannot_link=[(0, 50), (50, 100)], random_state=0)
    >>> res.n_violations
    0
    """
    return solve_competitive(
        X,
        k,
        method="lcvqe",
        init=init,
        max_iter=max_iter,
        known_labels=known_labels,
        must_link=must_link,
        cannot_link=cannot_link,
        labels_as=labels_as,
        on_conflict=on_conflict,
        features=features,
        kernel=kernel,
        sigma=sigma,
        gamma=gamma,
        degree=degree,
        coef0=coef0,
        kernel_params=kernel_params,
        rank=rank,
        landmarks=landmarks,
        rank_tol=rank_tol,
        n_init=n_init,
        random_state=random_state,
        n_jobs=n_jobs,
        max_time=max_time,
        callback=callback,
        verbose=verbose,
    )


def cvqe(
    X,
    k,
    *,
    init="k-means++",
    max_iter=500,
    known_labels=None,
    must_link=None,
    cannot_link=None,
    labels_as="cannot_link",
    on_conflict="raise",
    features=None,
    kernel="rbf",
    sigma=None,
    gamma=None,
    degree=3,
    coef0=1.0,
    kernel_params=None,
    rank="auto",
    landmarks="uniform",
    rank_tol=1e-6,
    n_init=1,
    random_state=None,
    n_jobs=None,
    max_time=None,
    callback=None,
    verbose=0,
):
    """Cluster by constrained vector quantisation error (CVQE), k-means with soft links.

    As :func:`lcvqe`, but a violated pair gets the best of all k^2 pairs of clusters, and the
    penalty is half the squared distance between prototypes: of the two clusters (must-link), or of
    the one cluster and the prototype nearest to it (cannot-link). Prototypes then go to the mean of
    their points and of the prototypes, as they were, that penalties tie them to (of a must-link
    only the first object's), which need not lower the objective. A single cluster has no penalties.

    Parameters
    ----------
    X : (n, d) array_like or sparse matrix
        Points.
    k : int
        Clusters, 1 <= k <= n.
    init : {"gaussian", "k-means++"} or (k, d) array_like, default="k-means++"
        First prototypes, see :func:`c_rpcl`.
    max_iter : int, default=500
        Rounds of a start.
    known_labels, must_link, cannot_link, labels_as, on_conflict
        The constraints, see :func:`c_rpcl`.
    features, kernel, sigma, gamma, degree, coef0, kernel_params
        The space of the prototypes, see :func:`c_rpcl`.
    rank, landmarks, rank_tol
        Landmarks of the features, see :func:`c_rpcl`.
    n_init, random_state, n_jobs, max_time, callback, verbose
        The run, see :func:`c_rpcl`.

    Returns
    -------
    CentroidResult
        As of :func:`lcvqe`.

    Raises
    ------
    ValueError, TypeError, MemoryError
        As :func:`c_rpcl`.

    References
    ----------
    I. Davidson, S. S. Ravi, Clustering with constraints: feasibility issues and the k-means
    algorithm, SDM 2005.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> res = fastmmc.cvqe(X, 3, cannot_link=[(0, 50), (50, 100)], random_state=0)
    >>> res.n_violations
    0
    """
    return solve_competitive(
        X,
        k,
        method="cvqe",
        init=init,
        max_iter=max_iter,
        known_labels=known_labels,
        must_link=must_link,
        cannot_link=cannot_link,
        labels_as=labels_as,
        on_conflict=on_conflict,
        features=features,
        kernel=kernel,
        sigma=sigma,
        gamma=gamma,
        degree=degree,
        coef0=coef0,
        kernel_params=kernel_params,
        rank=rank,
        landmarks=landmarks,
        rank_tol=rank_tol,
        n_init=n_init,
        random_state=random_state,
        n_jobs=n_jobs,
        max_time=max_time,
        callback=callback,
        verbose=verbose,
    )
