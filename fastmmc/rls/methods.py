"""Unsupervised multi-class RLS: restarts of a search over labellings that share one hat matrix."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from joblib import effective_n_jobs

from fastmmc import validation
from fastmmc._names import remember_names
from fastmmc.constraints import check_init, check_known_labels
from fastmmc.execution import (
    OutOfTime,
    check_control,
    fixed_seed,
    restart_stream,
    show_progress,
    warn_of_equal_points,
    warn_user,
)
from fastmmc.factors import DenseFactor, factor_path
from fastmmc.gram import resolve_kernel
from fastmmc.lowrank import DENSE_LIMIT, LowRankFactor
from fastmmc.results import Status
from fastmmc.rls.batches import BATCHES_FROM_RANDOM, ClaimForm, choose_form, make_start
from fastmmc.rls.bound import risk_bound
from fastmmc.rls.memetic import MemeticSearch
from fastmmc.rls.other_sizes import warn_of_other_sizes
from fastmmc.rls.plan import LabelSearchPlan
from fastmmc.rls.source import best_result, check_source
from fastmmc.sizes import size_rule
from fastmmc.threads import exhaust

METHODS = ("shaking", "steepest", "stochastic", "memetic")
DEFAULTS = {"lam": 0.25, "rank": "auto"}

# Starts of one call; fewer where n is large, and one memetic search is many starts by itself.
STARTS = 30
STARTS_TIMES_POINTS = 300_000

# Rounds of shaking: the quota is that of the last one long before.
MOST_ROUNDS = 10_000

# How far sizes may end from their targets unless the user says otherwise, as a share of n / k. The
# memetic search keeps to it all along, shaking is brought back to it where it ends beyond.
BALANCE = {"memetic": 0.4, "shaking": 0.5}


def resolve_starts(n_init, method, n):
    """Return the number of starts; "auto" depends on the method and on n alone.

    Parameters
    ----------
    n_init : int or "auto"
        As the user gave it.
    method : str
        Search.
    n : int
        Points.

    Returns
    -------
    int
        Starts.

    Raises
    ------
    TypeError, ValueError
        If n_init is neither.
    """
    if isinstance(n_init, str):
        validation.check_choice("n_init", n_init, ("auto",), " or an integer")
        if method == "memetic":
            return 1
        return STARTS if n <= DENSE_LIMIT else max(1, min(STARTS, STARTS_TIMES_POINTS // n))
    return validation.check_starts(n_init)


def _make_plan(
    points,
    k,
    kernel,
    *,
    method,
    init,
    known_labels,
    n_rounds,
    start_round,
    polish,
    keep_best,
    batches,
    population,
    patience,
    max_iter,
    balance,
    target_sizes,
    min_size,
    bound,
):
    """Check the parameters of the search and fix what all restarts have in common."""
    n = points.shape[0]
    k = validation.check_integer("k", k, least=1, most=n, why=", the number of points")
    validation.check_choice("method", method, METHODS)
    n_rounds = validation.check_integer("n_rounds", n_rounds, least=1, most=MOST_ROUNDS)
    start_round = validation.check_integer(
        "start_round", start_round, least=0, most=n_rounds - 1, why=", the last round"
    )
    if isinstance(batches, str):
        validation.check_choice("batches", batches, ("exact",), ", an integer or None")
    elif batches is not None:
        validation.check_integer("batches", batches, least=1)
    population = validation.check_integer(
        "population", population, least=2, most=validation.MOST_INDIVIDUALS
    )
    patience = validation.check_integer("patience", patience, least=1)
    if max_iter is not None:
        max_iter = validation.check_integer("max_iter", max_iter, least=0)
    min_size = validation.check_integer(
        "min_size",
        min_size,
        least=0,
        most=n // k,
        why=", the number of points in an average cluster",
    )
    if balance is not None and not 0 <= validation.check_number("balance", balance):
        raise ValueError(f"balance must be at least 0, or None; got {balance}")
    known = check_known_labels(known_labels, n, k)
    if known is not None and (known < 0).all():
        known = None
    # One point more or less must be possible however few there are.
    default = max(BALANCE[method], k / n) if method in BALANCE else None
    rule = size_rule(
        n,
        k,
        balance=balance,
        target_sizes=target_sizes,
        min_size=min_size,
        known=known,
        default=default,
        bounded=method == "memetic",
    )
    return LabelSearchPlan(
        n=n,
        k=k,
        method="shaking" if k == 1 else method,
        init=check_init(init, n, k, kernel),
        points=points,
        rule=rule,
        known=known,
        n_rounds=n_rounds,
        start_round=start_round,
        min_size=min_size,
        polish=validation.check_flag("polish", polish),
        keep_best=validation.check_flag("keep_best", keep_best),
        batches=batches,
        max_iter=np.iinfo(np.int64).max if max_iter is None else max_iter,
        population=population,
        patience=patience,
        params={
            "k": k,
            "method": method,
            "init": init,
            "n_rounds": n_rounds,
            "start_round": start_round,
            "polish": polish,
            "keep_best": keep_best,
            "batches": batches,
            "population": population,
            "patience": patience,
            "max_iter": max_iter,
            "balance": default if balance is None and method == "memetic" else balance,
            "target_sizes": target_sizes,
            "min_size": min_size,
            "bound": bound,
        },
        bound=validation.check_flag("bound", bound),
        default_sizes=default is not None and balance is target_sizes is known is None,
    )


def _solve(factor, plan, n_init, seed, control):
    """Run the restarts on one hat matrix and return the best as a result."""
    if plan.starts_are_equal():
        n_init = 1
    form = choose_form(factor, plan)
    try:
        matrix = exhaust(form.make_matrix(factor), lambda n_rows: control.check_time())
    except OutOfTime:
        matrix, form = factor, ClaimForm(BATCHES_FROM_RANDOM)
    diag = matrix.diagonal()
    threads = max(1, effective_n_jobs(control.n_jobs) // n_init)

    def make_single(form, plan, index, rng):
        return make_start(matrix, diag, form, plan, index, rng, threads)

    def make_search(index):
        rng = restart_stream(seed, index)
        if plan.method == "memetic":
            return MemeticSearch(matrix, diag, form, plan, make_single, rng)
        return make_single(form, plan, index, rng)

    def bound(sizes):
        try:
            return risk_bound(factor, *plan.rule.bounds_at(sizes), control.check_time)
        except OutOfTime:
            warn_user(f"max_time={control.max_time:g} leaves no time for the bound")
            return None

    result = best_result(
        factor,
        make_search,
        n_init,
        control,
        plan.k,
        plan.params,
        bound if plan.bound else None,
    )
    if plan.default_sizes and result.converged:
        warn_of_other_sizes(factor, result.labels, plan.k)
    return result


def umc_rls(
    X,
    k,
    *,
    lam=0.25,
    method="shaking",
    init="random",
    known_labels=None,
    n_rounds=21,
    start_round=0,
    polish=False,
    keep_best=False,
    batches=None,
    population=8,
    patience=20,
    max_iter=None,
    kernel="rbf",
    sigma=None,
    gamma=None,
    degree=3,
    coef0=1.0,
    kernel_params=None,
    rank="auto",
    landmarks="uniform",
    rank_tol=1e-6,
    dtype=None,
    balance=None,
    target_sizes=None,
    min_size=1,
    bound=False,
    n_init="auto",
    random_state=None,
    n_jobs=None,
    max_time=None,
    callback=None,
    verbose=0,
):
    """Cluster by unsupervised multi-class regularised least squares (UMC-RLS).

    Looks for the labels under which kernel ridge classification fits best: with R the hat
    matrix K (K + lam I)^-1, E the n x k label indicator and P = 2E - 1, it minimises

        Q = sum_h (n - p_h^T R p_h) = k n + (4 - k) e^T R e - 4 tr(E^T R E)

    over labellings of about equal (or given) sizes. Moving one point changes Q by
    8 (U[o, j] - U[d, j] - R_jj) with the cached sums U = (R E)^T, so a move costs O(n).

    Parameters
    ----------
    X : (n, d) array_like, sparse matrix, DenseFactor or LowRankFactor
        Points (float32 is kept, anything else becomes float64; sparse ones need a ``rank``); with
        ``kernel="precomputed"`` their (n, n) Gram matrix; or a factor made by :func:`factor`, which
        then brings lam and the kernel with it.
    k : int
        Number of clusters, 1 <= k <= n.
    lam : float, default=0.25
        Regularisation, > 0. The 2009 paper's lambda is lam / n.
    method : {"shaking", "steepest", "stochastic", "memetic"}, default="shaking"
        Search. Shaking lets the clusters take turns in claiming points, more than their share
        at first and less and less so (the paper's UMC-RLS). The next two are plain descents
        (Steep-RLS, Stoc-RLS); without ``balance`` nothing keeps them from large clusters.
        Memetic recombines whole clusters of two labellings that the shaking found, shakes the
        result gently and descends by moves and swaps, again and again.
    init : {"random", "kmeans"} or (n,) array_like of int, default="random"
        Labels to start from: balanced random, k-means, or given.
    known_labels : (n,) array_like, optional
        Partial labels: 0..k-1 where known; -1, NaN or None elsewhere. Known labels never change.
    n_rounds : int, default=21
        Rounds of the shaking schedule.
    start_round : int, default=0
        First round to run. Later rounds shake more gently and keep more of the start.
    polish : bool, default=False
        Descend from the end of the search by swaps, and by moves where the sizes allow them,
        until neither lowers Q.
    keep_best : bool, default=False
        Return the best round end of the shaking instead of the last.
    batches : int or "exact", optional
        How shaking claims on the low-rank hat matrix: in so many batches for a cluster of the size
        asked for, O(n r) each, or one by one ("exact"), O(n r) a claim. None: one by one where n is
        small enough for the n x n product (4,000 points), else first a sample, one by one, then
        from round 1 on all points in 32 batches; above 50,000 points, or 2,500 k, all that is done
        on a sample of so many. Batches end with a descent of all points by swaps, and by moves
        within ``balance``. The dense hat matrix is always claimed one by one.
    population : int, default=8
        Labellings that the memetic search keeps, >= 2; no two are the same partition.
    patience : int, default=20
        It ends when so many children in a row were no better than the best.
    max_iter : int, optional
        At most this many moves (steepest), sweeps (stochastic) or children (memetic) a start.
    kernel : {"rbf", "linear", "poly", "laplacian", "precomputed"} or callable, default="rbf"
        Kernel; a callable takes (X, Z) and returns their (n_X, n_Z) Gram matrix.
    sigma : float, optional
        Width of the Gaussian exp(-||x - z||^2 / sigma^2) and of the Laplacian
        exp(-||x - z||_1 / sigma). None: the median distance.
    gamma : float, optional
        1 / sigma^2 (Gaussian), 1 / sigma (Laplacian), or the factor of the polynomial kernel.
    degree : int, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1.0
        Constant of the linear and polynomial kernels.
    kernel_params : dict, optional
        Keyword arguments of a callable kernel.
    rank : None, int, float or "auto", default="auto"
        Number of landmarks of the low-rank hat matrix, or their share of n; None: dense. "auto" is
        dense up to 10,000 points and 1,000 landmarks above, 3e8 / n of them above 300,000 points.
    landmarks : {"uniform", "k-means++", "pivoted"} or array_like, default="uniform"
        How they are chosen, or their indices, or the (b, d) points themselves. "pivoted" takes the
        worst approximated points until ``rank_tol`` is reached; ``rank`` is then a limit.
    rank_tol : float, default=1e-6
        Share of the trace of K that a pivoted factor may miss.
    dtype : {"float32", "float64"}, optional
        Of the hat matrix; single precision halves its memory and the time of the search. None:
        that of X.
    balance : float, optional
        Every size stays within balance * n / k of its target; 0: sizes that differ by one at most.
        None: the paper's rule, by which shaking ends near the targets and the descents are free.
        Sizes that shaking leaves further than n / (2 k) from their targets, as it may for many
        clusters, are brought back, and a descent within these bounds follows. For the memetic
        search 0.4.
    target_sizes : (k,) array_like of int, optional
        Sizes asked for, summing to n. None: n / k each.
    min_size : int, default=1
        No cluster ends smaller than this.
    bound : bool, default=False
        Also compute a lower bound on Q from the largest eigenvalues of R: ``bound`` and ``gap`` of
        the result. Some hundred products of R with a vector; of low rank O(r^3).
    n_init : int or "auto", default="auto"
        Starts; the one with the lowest Q wins. "auto": 30, above 10,000 points 300,000 / n, and
        one of the memetic search, which makes a population of its own. With two clusters round 0
        of the shaking forgets the start, so the first start is the paper's method and the others
        begin with round 1. Where all starts would be equal (given labels, unless stochastic or
        memetic) one is run.
    random_state : int, SeedSequence, Generator, RandomState or None, default=None
        Same value, same labels, whatever ``n_jobs`` is.
    n_jobs : int, optional
        Threads that share the hat matrix. None: 1, or what joblib's configuration says; -1: all.
    max_time : float, optional
        Seconds for the whole call; the best labels found by then are returned.
        Where that is too short for the hat matrix, the search runs on one of rank 100 or less, and
        the warning says so.
    callback : callable, optional
        Called with a :class:`~fastmmc.execution.Progress`; a true return value stops the run.
    verbose : int, default=0
        1 shows a progress bar (needs the extra ``progress``).

    Returns
    -------
    RLSResult
        ``labels``, ``objective`` (Q), ``loo_mse``, ``history``, ``predict`` and more.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range, lam below the accuracy of the kernel, or X not a finite
        matrix.
    MemoryError
        If the n x n hat matrix, or its n x r factor, does not fit into free memory.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If the run was stopped before its end, X has fewer distinct points than there are clusters,
        or no point tells the cluster of another; or if no sizes were asked for, and clusters of
        other sizes (Ward's, of a sample of 500 points in the metric of R) fit far better, by what R
        leaves unexplained of their indicators and by leave-one-out error.

    Notes
    -----
    Dense: O(n^3) for the hat matrix, then O(n^2) a start; one n x n array of memory. Of rank r:
    O(n r^2), then O(n r) a batch of claims, whose number a start depends on k and little on n,
    and O(n r k) a sweep of the descent; O(n (r + k)) of memory.

    References
    ----------
    T. Pahikkala, A. Airola, F. Gieseke, O. Kramer, Unsupervised multi-class regularized
    least-squares classification, ICDM 2012, Algorithms 1-3. Of batches, the start from a sample and
    the memetic search the paper has nothing.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("moons")
    >>> res = fastmmc.umc_rls(X, 2, random_state=0)
    >>> res.sizes, res.status.name
    (array([100, 100]), 'CONVERGED')
    >>> bool((res.predict(X) == res.labels).all())
    True
    """
    return solve_umc_rls(
        X,
        k,
        lam=lam,
        method=method,
        init=init,
        known_labels=known_labels,
        n_rounds=n_rounds,
        start_round=start_round,
        polish=polish,
        keep_best=keep_best,
        batches=batches,
        population=population,
        patience=patience,
        max_iter=max_iter,
        kernel=kernel,
        sigma=sigma,
        gamma=gamma,
        degree=degree,
        coef0=coef0,
        kernel_params=kernel_params,
        rank=rank,
        landmarks=landmarks,
        rank_tol=rank_tol,
        dtype=dtype,
        balance=balance,
        target_sizes=target_sizes,
        min_size=min_size,
        bound=bound,
        n_init=n_init,
        random_state=random_state,
        n_jobs=n_jobs,
        max_time=max_time,
        callback=callback,
        verbose=verbose,
    )


@remember_names
def solve_umc_rls(
    X,
    k,
    *,
    lam,
    kernel,
    sigma,
    gamma,
    degree,
    coef0,
    kernel_params,
    rank,
    landmarks,
    rank_tol,
    dtype,
    n_init,
    random_state,
    n_jobs,
    max_time,
    callback,
    verbose,
    on_start_done=None,
    **search,
):
    """Do what :func:`umc_rls` does, and report each start that ended.

    Parameters
    ----------
    X, k, lam, kernel, sigma, gamma, degree, coef0, kernel_params, rank, landmarks, rank_tol, dtype
        See :func:`umc_rls`.
    n_init, random_state, n_jobs, max_time, callback, verbose
        See :func:`umc_rls`.
    on_start_done : callable, optional
        Called with (index, n_init) in the calling thread; a true return value stops the run.
    **search
        The other parameters of :func:`umc_rls`.

    Returns
    -------
    RLSResult
        The best of the starts.
    """
    control = check_control(time.perf_counter(), n_jobs, max_time, callback, verbose, on_start_done)
    source = check_source(
        X,
        lam=lam,
        kernel=kernel,
        sigma=sigma,
        gamma=gamma,
        degree=degree,
        coef0=coef0,
        kernel_params=kernel_params,
        rank=rank,
        landmarks=landmarks,
        rank_tol=rank_tol,
        dtype=dtype,
        defaults=DEFAULTS,
    )
    plan = _make_plan(source.points, k, source.kernel, **search)
    n_init = resolve_starts(n_init, plan.method, plan.n)
    warn_of_equal_points(source.points, plan.k)
    seed = fixed_seed(random_state)
    with show_progress(control) as control:
        factor, control = source.make_factor(seed, control)
        return _solve(factor, plan, n_init, seed, control)


@remember_names
def umc_rls_path(
    X,
    k,
    lams,
    *,
    method="shaking",
    init="random",
    known_labels=None,
    n_rounds=21,
    start_round=0,
    polish=False,
    keep_best=False,
    batches=None,
    population=8,
    patience=20,
    max_iter=None,
    kernel="rbf",
    sigma=None,
    gamma=None,
    degree=3,
    coef0=1.0,
    kernel_params=None,
    rank="auto",
    landmarks="uniform",
    rank_tol=1e-6,
    dtype=None,
    balance=None,
    target_sizes=None,
    min_size=1,
    bound=False,
    n_init="auto",
    random_state=None,
    n_jobs=None,
    max_time=None,
    callback=None,
    verbose=0,
):
    """Run :func:`umc_rls` for several lam; the kernel is evaluated once.

    Q grows with lam, so it cannot choose among the results. The leave-one-out error can:
    ``min(path, key=lambda res: res.loo_mse)``.

    Parameters
    ----------
    X : (n, d) array_like
        Points; with ``kernel="precomputed"`` their (n, n) Gram matrix. Not a factor, which has
        its lam already.
    k : int
        Number of clusters.
    lams : sequence of float
        Values of lam, all > 0.
    method, init, known_labels, n_rounds, start_round, polish, keep_best
        See :func:`umc_rls`.
    batches, population, patience, max_iter
        See :func:`umc_rls`.
    kernel, sigma, gamma, degree, coef0, kernel_params, rank, landmarks, rank_tol, dtype
        See :func:`umc_rls`.
    balance, target_sizes, min_size, bound
        See :func:`umc_rls`.
    n_init, random_state, n_jobs, callback, verbose
        See :func:`umc_rls`; every lam starts from the same labels.
    max_time : float, optional
        Seconds for the whole path.

    Returns
    -------
    list of RLSResult
        One a lam, in the order given, each with its ``loo_mse``. A run that is stopped returns
        those that it reached.

    Raises
    ------
    ValueError, TypeError, MemoryError
        As :func:`umc_rls`.

    Notes
    -----
    Two n x n arrays of memory: the Gram matrix and the hat matrix in turn.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> path = fastmmc.umc_rls_path(X, 3, [0.01, 0.1, 1.0], n_init=5, random_state=0)
    >>> best = min(path, key=lambda res: res.loo_mse)
    >>> len(path), best.params["lam"] in (0.01, 0.1, 1.0)
    (3, True)
    """
    control = check_control(time.perf_counter(), n_jobs, max_time, callback, verbose)
    if isinstance(X, DenseFactor | LowRankFactor):
        raise TypeError("X is a factor, which has its lam already; give the points")
    if isinstance(lams, str) or not np.iterable(lams) or len(list(lams)) == 0:
        raise ValueError(f"lams must be a sequence of at least one number; got {lams!r}")
    lams = [validation.check_positive("lams", lam) for lam in lams]
    source = check_source(
        X,
        lam=DEFAULTS["lam"],
        kernel=kernel,
        sigma=sigma,
        gamma=gamma,
        degree=degree,
        coef0=coef0,
        kernel_params=kernel_params,
        rank=rank,
        landmarks=landmarks,
        rank_tol=rank_tol,
        dtype=dtype,
        defaults=DEFAULTS,
    )
    plan = _make_plan(
        source.points,
        k,
        source.kernel,
        method=method,
        init=init,
        known_labels=known_labels,
        n_rounds=n_rounds,
        start_round=start_round,
        polish=polish,
        keep_best=keep_best,
        batches=batches,
        population=population,
        patience=patience,
        max_iter=max_iter,
        balance=balance,
        target_sizes=target_sizes,
        min_size=min_size,
        bound=bound,
    )
    n_init = resolve_starts(n_init, plan.method, plan.n)
    warn_of_equal_points(source.points, plan.k)
    seed = fixed_seed(random_state)
    results = []
    kernel = resolve_kernel(source.kernel, source.points)
    with show_progress(control) as control:
        path = factor_path(source.points, lams, kernel, source.form, seed, control.prepare)
        try:
            for factor in path:
                results.append(_solve(factor, plan, n_init, seed, control))
                if results[-1].status in (Status.TIME_LIMIT, Status.INTERRUPTED, Status.CALLBACK):
                    break
        except OutOfTime:
            if results:
                warn_user(
                    f"max_time={control.max_time:g} was too short for all lams: {len(results)}"
                    f" of {len(lams)} results are returned"
                )
            else:
                source = replace(source, lam=lams[0])
                factor, control = source.make_quick_factor(kernel, seed, control)
                results = [_solve(factor, plan, n_init, seed, control)]
    return results
