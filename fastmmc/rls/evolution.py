"""EvoMMC and FastEvoMMC: restarts of an evolution strategy over labels -1, +1."""

from __future__ import annotations

import time

from fastmmc import validation
from fastmmc._binary import two_clusters
from fastmmc._names import remember_names
from fastmmc.constraints import check_init
from fastmmc.execution import (
    check_control,
    fixed_seed,
    restart_stream,
    show_progress,
    warn_of_equal_points,
)
from fastmmc.gram import box_diagonal
from fastmmc.rls.evolution_search import EvolutionPlan, EvolutionSearch
from fastmmc.rls.source import best_result, check_source
from fastmmc.sizes import binary_bounds

DEFAULTS = {"lam": 0.5, "rank": None}
FAST_DEFAULTS = {"lam": 0.5, "rank": 0.1}


def _make_plan(
    source,
    *,
    mu,
    nu,
    flips,
    init,
    classify,
    distinct,
    polish,
    patience,
    max_iter,
    balance,
    target_sizes,
    min_size,
):
    """Check the parameters of the search and fix what all restarts have in common."""
    n = source.points.shape[0]
    if n < 2:
        raise ValueError("X must have at least 2 points, one for each cluster; got n_samples = 1")
    mu = validation.check_integer("mu", mu, least=1, most=validation.MOST_INDIVIDUALS)
    nu = validation.check_integer("nu", nu, least=1, most=validation.MOST_INDIVIDUALS)
    if flips is not None:
        flips = validation.check_integer("flips", flips, least=1, most=n, why=", all points")
    if patience is not None:
        patience = validation.check_integer("patience", patience, least=1)
    if max_iter is not None:
        max_iter = validation.check_integer("max_iter", max_iter, least=0)
    lower, upper = binary_bounds(n, balance, target_sizes, min_size)
    return EvolutionPlan(
        n=n,
        mu=mu,
        nu=nu,
        flips=flips or 0,
        init=_check_start(init, n, lower, upper, source.kernel),
        points=source.points,
        lower=lower,
        upper=upper,
        classify=validation.check_flag("classify", classify),
        distinct=validation.check_flag("distinct", distinct),
        polish=validation.check_flag("polish", polish),
        patience=patience or (10 * n if nu == 1 else n),
        max_iter=1000 * n if max_iter is None else max_iter,
        params={
            "mu": mu,
            "nu": nu,
            "flips": flips,
            "init": init,
            "classify": classify,
            "distinct": distinct,
            "polish": polish,
            "patience": patience,
            "max_iter": max_iter,
            "balance": balance,
            "target_sizes": target_sizes,
            "min_size": min_size,
        },
    )


def _check_start(init, n, lower, upper, kernel):
    """Return "random", "kmeans" or an array of labels 0 and 1 within the bounds."""
    labels = check_init(init, n, 2, kernel)
    if isinstance(labels, str):
        return labels
    if not lower <= labels.sum() <= upper:
        raise ValueError(
            f"init: cluster 1 has {labels.sum()} points, which the size rule bounds to {lower} to "
            f"{upper}; raise balance"
        )
    return labels


@two_clusters
def evo_mmc(
    X,
    *,
    lam=0.5,
    mu=10,
    nu=10,
    flips=None,
    init="random",
    classify=False,
    distinct=False,
    polish=True,
    patience=None,
    max_iter=None,
    kernel="rbf",
    sigma=None,
    gamma=None,
    degree=3,
    coef0=1.0,
    kernel_params=None,
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
    """Cluster in two by evolutionary maximum margin clustering (EvoMMC).

    Looks for labels y of -1 and +1, of about equal numbers, under which kernel ridge
    classification fits best: with R the hat matrix K (K + lam I)^-1 it minimises

        F(y) = n - y^T R y

    by a (mu + nu) evolution strategy whose children flip a few labels of a parent. With t = R y at
    hand a child that flips the set S costs 4 y_S^T t_S - 4 y_S^T R_SS y_S, independent of n.

    Parameters
    ----------
    X : (n, d) array_like, DenseFactor or LowRankFactor
        Points (float32 is kept, anything else becomes float64); with ``kernel="precomputed"``
        their (n, n) Gram matrix; or a factor made by :func:`factor`, whose own lam and kernel then
        hold (:func:`factor` has other defaults than this function).
    lam : float, default=0.5
        Regularisation, > 0. The paper's lambda is lam / n: its grid 1/(2n), 1/(200n), 1/(1000n) is
        1/2, 1/200, 1/1000 here.
    mu, nu : int, default=10, 10
        Individuals, and children a generation.
    flips : int, optional
        Labels that a mutation changes. None: max(1, n / (t + 1)) in generation t.
    init : {"random", "kmeans"} or (n,) array_like of int, default="random"
        Labels of the first individual: random within the size bounds, k-means with the sizes
        repaired, or given (0 and 1). The other individuals are random.
    classify : bool, default=False
        Before the first generation replace each individual by the signs of its leave-one-out
        predictions, the least certain ones changed until the sizes are within bounds, again and
        again as long as that lowers F.
    distinct : bool, default=False
        Refuse children that equal an individual, up to the exchange of the two clusters.
    polish : bool, default=True
        After the last generation flip single labels and swap pairs of the best individual as long
        as that lowers F. Then no flip within the size bounds helps, and no swap among the 200 n
        most promising pairs (up to n = 800 these are all).
    patience : int, optional
        Generations without progress after which a start ends. None: 10 n, or n for more than one
        child. It ends sooner if no mutation of one label can help any individual.
    max_iter : int, optional
        Generations of a start. None: 1000 n.
    kernel : {"rbf", "linear", "poly", "laplacian", "precomputed"} or callable, default="rbf"
        Kernel; a callable takes (X, Z) and returns their (n_X, n_Z) Gram matrix.
    sigma : float, optional
        Width of the Gaussian exp(-||x - z||^2 / sigma^2) and of the Laplacian
        exp(-||x - z||_1 / sigma). None: the diagonal of the box around the points,
        ``fastmmc.gram.box_diagonal(X)``.
    gamma : float, optional
        1 / sigma^2 (Gaussian), 1 / sigma (Laplacian), or the factor of the polynomial kernel.
    degree : int, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1.0
        Constant of the linear and polynomial kernels.
    kernel_params : dict, optional
        Keyword arguments of a callable kernel.
    balance : float, default=0.03
        Every size stays within balance * n / 2 of its target, 0 <= balance < 1: |e^T y| <= balance
        n for equal targets. For an odd n anything above 0 allows a difference of one.
    target_sizes : (2,) array_like of int, optional
        Sizes asked for, summing to n. None: n / 2 each.
    min_size : int, default=1
        No cluster is ever smaller than this.
    n_init : int, default=10
        Starts; the one with the lowest F wins.
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
        ``labels`` (0 and 1), ``objective`` (F), ``loo_mse``, ``history`` and more. ``n_iter``
        counts generations, ``n_moves`` the children that survived and the moves of the polish.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range, lam below the accuracy of the kernel, or X not a finite
        matrix.
    MemoryError
        If the hat matrix does not fit into free memory.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If the run was stopped before its end, X has fewer distinct points than there are clusters,
        or no point tells the cluster of another.

    Notes
    -----
    O(n^3) for the hat matrix, O(mu n^2) for a start's first individuals, then O(s^2) a child that
    is refused and O(s n) one that is not.

    References
    ----------
    F. Gieseke, T. Pahikkala, O. Kramer, Fast evolutionary maximum margin clustering, ICML 2009,
    Algorithm 1.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.make_nine_gaussians(100, random_state=0)
    >>> res = fastmmc.evo_mmc(X, random_state=0)
    >>> abs(int(res.sizes[0]) - int(res.sizes[1])) <= 0.03 * len(X)
    True
    """
    return solve_evolution(
        X,
        lam=lam,
        mu=mu,
        nu=nu,
        flips=flips,
        init=init,
        classify=classify,
        distinct=distinct,
        polish=polish,
        patience=patience,
        max_iter=max_iter,
        kernel=kernel,
        sigma=sigma,
        gamma=gamma,
        degree=degree,
        coef0=coef0,
        kernel_params=kernel_params,
        rank=None,
        landmarks="uniform",
        rank_tol=1e-6,
        dtype=None,
        balance=balance,
        target_sizes=target_sizes,
        min_size=min_size,
        n_init=n_init,
        random_state=random_state,
        n_jobs=n_jobs,
        max_time=max_time,
        callback=callback,
        verbose=verbose,
        defaults=DEFAULTS,
    )


@two_clusters
def fast_evo_mmc(
    X,
    *,
    lam=0.5,
    mu=1,
    nu=1,
    flips=None,
    init="random",
    classify=False,
    distinct=False,
    polish=True,
    patience=None,
    max_iter=None,
    kernel="rbf",
    sigma=None,
    gamma=None,
    degree=3,
    coef0=1.0,
    kernel_params=None,
    rank=0.1,
    landmarks="uniform",
    rank_tol=1e-6,
    dtype=None,
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
    """Cluster in two by evolutionary MMC on the low-rank hat matrix (FastEvoMMC).

    :func:`evo_mmc` with R = Z Z^T of rank r and one parent and child: F(y) = n - |Z^T y|^2, and a
    child that flips s labels costs O(sr).

    Parameters
    ----------
    X : (n, d) array_like, sparse matrix, DenseFactor or LowRankFactor
        Points (float32 is kept, anything else becomes float64); with ``kernel="precomputed"``
        their (n, n) Gram matrix; or a factor made by :func:`factor`, whose own lam and kernel then
        hold (:func:`factor` has other defaults than this function).
    lam : float, default=0.5
        Regularisation, > 0. The paper's lambda is lam / n: its grid 1/(2n), 1/(200n), 1/(1000n) is
        1/2, 1/200, 1/1000 here.
    mu, nu : int, default=1, 1
        Individuals, and children a generation.
    flips, init, classify, distinct, polish, patience, max_iter
        The search, see :func:`evo_mmc`.
    kernel, sigma, gamma, degree, coef0, kernel_params
        The kernel, see :func:`evo_mmc`.
    rank : None, int, float or "auto", default=0.1
        Number of landmarks, or their share of n; None: dense. "auto" is dense up to 10,000 points
        and 1,000 landmarks above, 3e8 / n of them above 300,000 points.
    landmarks : {"uniform", "k-means++", "pivoted"} or array_like, default="uniform"
        How they are chosen, or their indices, or the (b, d) points themselves. "pivoted" takes the
        worst approximated points until ``rank_tol`` is reached; ``rank`` is then a limit.
    rank_tol : float, default=1e-6
        Share of the trace of K that a pivoted factor may miss.
    dtype : {"float32", "float64"}, optional
        Of the hat matrix; single precision halves its memory and the time of the search. None:
        that of X.
    balance, target_sizes, min_size
        The sizes, see :func:`evo_mmc`.
    n_init, random_state, n_jobs, max_time, callback, verbose
        The run, see :func:`evo_mmc`.

    Returns
    -------
    RLSResult
        ``labels`` (0 and 1), ``objective`` (F), ``loo_mse``, ``history`` and more. ``n_iter``
        counts generations, ``n_moves`` the children that survived and the moves of the polish.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range, lam below the accuracy of the kernel, or X not a finite
        matrix.
    MemoryError
        If the hat matrix, or its factor, does not fit into free memory.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If the run was stopped before its end, X has fewer distinct points than there are clusters,
        or no point tells the cluster of another.

    Notes
    -----
    O(n r^2) for the factor, O(sr) a child, O(nr) memory.

    References
    ----------
    F. Gieseke, T. Pahikkala, O. Kramer, Fast evolutionary maximum margin clustering, ICML 2009,
    Algorithm 1 and Theorem 2.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.make_nine_gaussians(100, random_state=0)
    >>> fastmmc.fast_evo_mmc(X, rank=20, random_state=0).params["rank"] <= 20
    True
    """
    return solve_evolution(
        X,
        lam=lam,
        mu=mu,
        nu=nu,
        flips=flips,
        init=init,
        classify=classify,
        distinct=distinct,
        polish=polish,
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
        n_init=n_init,
        random_state=random_state,
        n_jobs=n_jobs,
        max_time=max_time,
        callback=callback,
        verbose=verbose,
        defaults=FAST_DEFAULTS,
    )


@remember_names
def solve_evolution(
    X,
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
    defaults,
    n_init,
    random_state,
    n_jobs,
    max_time,
    callback,
    verbose,
    on_start_done=None,
    **search,
):
    """Do what :func:`evo_mmc` and :func:`fast_evo_mmc` do, and report each start that ended.

    Parameters
    ----------
    X, lam, kernel, sigma, gamma, degree, coef0, kernel_params, rank, landmarks, rank_tol, dtype
        See :func:`fast_evo_mmc`.
    defaults : dict
        The default lam and rank of the function called.
    n_init, random_state, n_jobs, max_time, callback, verbose
        See :func:`evo_mmc`.
    on_start_done : callable, optional
        Called with (index, n_init) in the calling thread; a true return value stops the run.
    **search
        The other parameters of :func:`evo_mmc`.

    Returns
    -------
    RLSResult
        The best of the starts.
    """
    control = check_control(time.perf_counter(), n_jobs, max_time, callback, verbose, on_start_done)
    n_init = validation.check_starts(n_init)
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
        defaults=defaults,
    )
    plan = _make_plan(source, **search)
    warn_of_equal_points(source.points, 2)
    seed = fixed_seed(random_state)
    with show_progress(control) as control:
        factor, control = source.make_factor(seed, control, box_diagonal)
        diag = factor.diagonal()

        def make_search(index):
            return EvolutionSearch(factor, diag, plan, restart_stream(seed, index))

        return best_result(factor, make_search, n_init, control, 2, plan.params)
