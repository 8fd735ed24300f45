"""scikit-learn estimators of the RLS family."""

from __future__ import annotations

import numpy as np

from fastmmc._callbacks import fit_tasks, with_callbacks
from fastmmc._clusterer import COMMON_FIELDS, Clusterer
from fastmmc.rls.evolution import DEFAULTS, FAST_DEFAULTS, solve_evolution
from fastmmc.rls.methods import resolve_starts, solve_umc_rls

# Result fields that become attributes with a trailing underscore.
RESULT_FIELDS = ("loo_mse", *COMMON_FIELDS)


class _RLSClusterer(Clusterer):
    """What the estimators of the family share."""

    _fields = RESULT_FIELDS

    def score(self, X, y=None):
        """Return minus the mean squared distance of the scores from the codes of their clusters.

        A point of cluster h has the code +1 in column h and -1 elsewhere. Points near a boundary,
        or far from the training points, are far from every code. Comparable between values of
        lam and sigma, so that it serves a grid search; on the training points themselves
        ``loo_mse_`` is the better figure.

        Parameters
        ----------
        X : (m, d) array_like
            Points.
        y : object, optional
            Ignored.

        Returns
        -------
        float
            At most 0; higher is better.
        """
        scores = self.decision_function(X)
        codes = np.where(np.argmax(scores, axis=1)[:, None] == np.arange(scores.shape[1]), 1, -1)
        return -float(np.mean((scores - codes) ** 2))


class UMCRLS(_RLSClusterer):
    """Unsupervised multi-class RLS as a scikit-learn clusterer.

    The estimator behind :func:`fastmmc.umc_rls`, which documents the parameters; here ``k`` is
    ``n_clusters``.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    lam, method, init, n_rounds, start_round, polish, keep_best
        The search, see :func:`fastmmc.umc_rls`.
    batches, population, patience, max_iter
        The search, see :func:`fastmmc.umc_rls`.
    kernel, sigma, gamma, degree, coef0, kernel_params
        The kernel, see :func:`fastmmc.umc_rls`.
    rank, landmarks, rank_tol, dtype
        The hat matrix, dense or of low rank, see :func:`fastmmc.umc_rls`.
    balance, target_sizes, min_size
        The sizes, see :func:`fastmmc.umc_rls`.
    semi_supervised : bool, default=False
        Whether ``y`` of ``fit`` tells labels. If not, it is ignored, whatever it holds, so that
        true labels may be passed around by pipelines and searches.
    bound
        Whether ``bound_`` and ``gap_`` are computed, see :func:`fastmmc.umc_rls`.
    n_init, random_state, n_jobs, max_time, callback, verbose
        The run, see :func:`fastmmc.umc_rls`.

    Attributes
    ----------
    labels_ : (n,) int64 array
        Clusters of the training points.
    objective_, loo_mse_, status_, n_iter_, n_moves_, sizes_, history_, objectives_
        As in :class:`fastmmc.RLSResult`.
    bound_, gap_ : float or None
        Lower bound on the objective, and how far above it the objective is, as a share.
    result_ : RLSResult
        Everything else.
    n_features_in_ : int
        Features of the training points.
    feature_names_in_ : (d,) array
        Their names, where X had any.

    References
    ----------
    T. Pahikkala, A. Airola, F. Gieseke, O. Kramer, Unsupervised multi-class regularized
    least-squares classification, ICDM 2012.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("moons")
    >>> model = fastmmc.UMCRLS(n_clusters=2, random_state=0).fit(X)
    >>> model.sizes_
    array([100, 100])
    """

    def __init__(
        self,
        n_clusters=8,
        *,
        lam=0.25,
        method="shaking",
        init="random",
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
        semi_supervised=False,
        bound=False,
        n_init="auto",
        random_state=None,
        n_jobs=None,
        max_time=None,
        callback=None,
        verbose=0,
    ):
        self.n_clusters = n_clusters
        self.lam = lam
        self.method = method
        self.init = init
        self.n_rounds = n_rounds
        self.start_round = start_round
        self.polish = polish
        self.keep_best = keep_best
        self.batches = batches
        self.population = population
        self.patience = patience
        self.max_iter = max_iter
        self.kernel = kernel
        self.sigma = sigma
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.rank = rank
        self.landmarks = landmarks
        self.rank_tol = rank_tol
        self.dtype = dtype
        self.balance = balance
        self.target_sizes = target_sizes
        self.min_size = min_size
        self.semi_supervised = semi_supervised
        self.bound = bound
        self.n_init = n_init
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.callback = callback
        self.verbose = verbose

    @with_callbacks
    def fit(self, X, y=None):
        """Cluster the points.

        Parameters
        ----------
        X : (n, d) array_like
            Points; with ``kernel="precomputed"`` their (n, n) Gram matrix.
        y : (n,) or (n, 1) array_like, optional
            Ignored unless ``semi_supervised=True``; then labels 0..n_clusters-1 where known, which
            never change, and -1, NaN or None elsewhere.

        Returns
        -------
        UMCRLS
            Itself.

        Raises
        ------
        ValueError, TypeError, MemoryError
            As :func:`fastmmc.umc_rls`.
        """
        X = self._check_training_points(X)
        params = self.get_params(deep=False)
        k = params.pop("n_clusters")
        del params["semi_supervised"]
        known = self._told_labels(y, X.shape[0], k)
        n_init = resolve_starts(params["n_init"], params["method"], X.shape[0])
        with fit_tasks(self, n_init) as on_start_done:
            result = solve_umc_rls(X, k, known_labels=known, on_start_done=on_start_done, **params)
        self.bound_, self.gap_ = result.bound, result.gap
        return self._keep(result)


class EvoMMC(_RLSClusterer):
    """Evolutionary maximum margin clustering as a scikit-learn clusterer; always two clusters.

    The estimator behind :func:`fastmmc.evo_mmc`, which documents the parameters.

    Parameters
    ----------
    lam, mu, nu, flips, init, classify, distinct, polish, patience, max_iter
        The search, see :func:`fastmmc.evo_mmc`.
    kernel, sigma, gamma, degree, coef0, kernel_params
        The kernel, see :func:`fastmmc.evo_mmc`.
    balance, target_sizes, min_size
        The sizes, see :func:`fastmmc.evo_mmc`.
    n_init, random_state, n_jobs, max_time, callback, verbose
        The run, see :func:`fastmmc.evo_mmc`.

    Attributes
    ----------
    labels_ : (n,) int64 array
        Clusters of the training points, 0 and 1.
    objective_, loo_mse_, status_, n_iter_, n_moves_, sizes_, history_, objectives_
        As in :class:`fastmmc.RLSResult`.
    result_ : RLSResult
        Everything else.
    n_features_in_ : int
        Features of the training points.
    feature_names_in_ : (d,) array
        Their names, where X had any.

    References
    ----------
    F. Gieseke, T. Pahikkala, O. Kramer, Fast evolutionary maximum margin clustering, ICML 2009.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> fastmmc.EvoMMC(random_state=0).fit(X).sizes_.sum()
    np.int64(150)
    """

    def __init__(
        self,
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
        self.lam = lam
        self.mu = mu
        self.nu = nu
        self.flips = flips
        self.init = init
        self.classify = classify
        self.distinct = distinct
        self.polish = polish
        self.patience = patience
        self.max_iter = max_iter
        self.kernel = kernel
        self.sigma = sigma
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.balance = balance
        self.target_sizes = target_sizes
        self.min_size = min_size
        self.n_init = n_init
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.callback = callback
        self.verbose = verbose

    @with_callbacks
    def fit(self, X, y=None):
        """Cluster the points.

        Parameters
        ----------
        X : (n, d) array_like
            Points; with ``kernel="precomputed"`` their (n, n) Gram matrix.
        y : object, optional
            Ignored.

        Returns
        -------
        EvoMMC
            Itself.

        Raises
        ------
        ValueError, TypeError, MemoryError
            As :func:`fastmmc.evo_mmc`.
        """
        X = self._check_training_points(X)
        params = self.get_params(deep=False)
        with fit_tasks(self, params["n_init"]) as on_start_done:
            result = solve_evolution(
                X,
                rank=None,
                landmarks="uniform",
                rank_tol=1e-6,
                dtype=None,
                defaults=DEFAULTS,
                on_start_done=on_start_done,
                **params,
            )
        return self._keep(result)


class FastEvoMMC(_RLSClusterer):
    """Evolutionary MMC on the low-rank hat matrix as a scikit-learn clusterer; always two clusters.

    The estimator behind :func:`fastmmc.fast_evo_mmc`, which documents the parameters.

    Parameters
    ----------
    lam, mu, nu, flips, init, classify, distinct, polish, patience, max_iter
        The search, see :func:`fastmmc.fast_evo_mmc`.
    kernel, sigma, gamma, degree, coef0, kernel_params
        The kernel, see :func:`fastmmc.fast_evo_mmc`.
    rank, landmarks, rank_tol, dtype
        The low-rank hat matrix, see :func:`fastmmc.fast_evo_mmc`.
    balance, target_sizes, min_size
        The sizes, see :func:`fastmmc.fast_evo_mmc`.
    n_init, random_state, n_jobs, max_time, callback, verbose
        The run, see :func:`fastmmc.fast_evo_mmc`.

    Attributes
    ----------
    labels_ : (n,) int64 array
        Clusters of the training points, 0 and 1.
    objective_, loo_mse_, status_, n_iter_, n_moves_, sizes_, history_, objectives_
        As in :class:`fastmmc.RLSResult`.
    result_ : RLSResult
        Everything else.
    n_features_in_ : int
        Features of the training points.
    feature_names_in_ : (d,) array
        Their names, where X had any.

    References
    ----------
    F. Gieseke, T. Pahikkala, O. Kramer, Fast evolutionary maximum margin clustering, ICML 2009.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> fastmmc.FastEvoMMC(random_state=0).fit(X).sizes_.sum()
    np.int64(150)
    """

    def __init__(
        self,
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
        self.lam = lam
        self.mu = mu
        self.nu = nu
        self.flips = flips
        self.init = init
        self.classify = classify
        self.distinct = distinct
        self.polish = polish
        self.patience = patience
        self.max_iter = max_iter
        self.kernel = kernel
        self.sigma = sigma
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.rank = rank
        self.landmarks = landmarks
        self.rank_tol = rank_tol
        self.dtype = dtype
        self.balance = balance
        self.target_sizes = target_sizes
        self.min_size = min_size
        self.n_init = n_init
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.callback = callback
        self.verbose = verbose

    @with_callbacks
    def fit(self, X, y=None):
        """Cluster the points.

        Parameters
        ----------
        X : (n, d) array_like or sparse matrix
            Points; with ``kernel="precomputed"`` their (n, n) Gram matrix.
        y : object, optional
            Ignored.

        Returns
        -------
        FastEvoMMC
            Itself.

        Raises
        ------
        ValueError, TypeError, MemoryError
            As :func:`fastmmc.fast_evo_mmc`.
        """
        X = self._check_training_points(X)
        params = self.get_params(deep=False)
        with fit_tasks(self, params["n_init"]) as on_start_done:
            result = solve_evolution(
                X,
                defaults=FAST_DEFAULTS,
                on_start_done=on_start_done,
                **params,
            )
        return self._keep(result)
