"""scikit-learn estimators of the alternating family."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np

from fastmmc._callbacks import with_callbacks
from fastmmc._clusterer import COMMON_FIELDS, Clusterer
from fastmmc.alternating.methods import iter_ls_svm, iter_svm, iter_svr, solve_alternation

# Result fields that become attributes with a trailing underscore.
RESULT_FIELDS = (
    *COMMON_FIELDS,
    "dual_coef",
    "support",
    "intercept",
    "duality_gap",
    "n_violated",
)


class _AlternatingClusterer(Clusterer):
    """What the estimators of the family share."""

    _fields = RESULT_FIELDS

    def _fit(self, X, sample_weight, **fixed):
        """Cluster the points with the loss and parameters of the estimator's kind."""
        X = self._check_training_points(X)
        params = self.get_params(deep=False)
        with nullcontext() as on_start_done:
            result = solve_alternation(
                X, sample_weight=sample_weight, on_start_done=on_start_done, **fixed, **params
            )
        return self._keep(result)

    def score(self, X, y=None):
        """Return minus the mean loss of points that take the label of their side.

        Parameters
        ----------
        X : (m, d) array_like
            Points.
        y : object, optional
            Ignored.

        Returns
        -------
        float
            At most 0; higher is better: points lie at the margin, or (hinge loss) beyond it.
        """
        margins = np.abs(self.decision_function(X)[:, 1])
        return -float(np.mean(self._losses(margins)))


class IterSVR(
    _AlternatingClusterer,
    solver=iter_svr,
    paper="Zhang, Tsang, Kwok, ICML 2007",
    summary="support vector regression on the labels, and new labels from its scores, in turn",
):
    """Iterative support vector regression as a scikit-learn clusterer; always two clusters.

    The estimator behind :func:`fastmmc.iter_svr`, which documents the parameters.

    Parameters
    ----------
    C, epsilon, init, bias, solver, tol, max_iter, refit
        The alternation, see :func:`fastmmc.iter_svr`.
    kernel, sigma, gamma, degree, coef0, kernel_params
        The kernel, see :func:`fastmmc.iter_svr`.
    rank, landmarks, rank_tol
        The kernel's low-rank form, see :func:`fastmmc.iter_svr`.
    balance, target_sizes, min_size
        The sizes, see :func:`fastmmc.iter_svr`.
    n_init, random_state, n_jobs, max_time, callback, verbose
        The run, see :func:`fastmmc.iter_svr`.

    Attributes
    ----------
    labels_ : (n,) int64 array
        Clusters of the training points, 0 and 1.
    objective_, status_, n_iter_, n_moves_, sizes_, history_, objectives_
        As in :class:`fastmmc.MarginResult`.
    dual_coef_, support_, intercept_, duality_gap_, n_violated_
        As in :class:`fastmmc.MarginResult`.
    result_ : MarginResult
        Everything else.
    n_features_in_ : int
        Features of the training points.
    feature_names_in_ : (d,) array
        Their names, where X had any.

    References
    ----------
    K. Zhang, I. W. Tsang, J. T. Kwok, Maximum margin clustering made practical, ICML 2007.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> fastmmc.IterSVR(random_state=0).fit(X).sizes_.sum()
    np.int64(150)
    """

    def __init__(
        self,
        *,
        C=500.0,
        epsilon=0.0,
        init="farthest",
        bias="joint",
        solver="auto",
        tol=1e-3,
        max_iter=50,
        refit=False,
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
        self.C = C
        self.epsilon = epsilon
        self.init = init
        self.bias = bias
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.refit = refit
        self.kernel = kernel
        self.sigma = sigma
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.rank = rank
        self.landmarks = landmarks
        self.rank_tol = rank_tol
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
    def fit(self, X, y=None, sample_weight=None):
        """Cluster the points.

        Parameters
        ----------
        X : (n, d) array_like or sparse matrix
            Points; with ``kernel="precomputed"`` their (n, n) Gram matrix.
        y : object, optional
            Ignored.
        sample_weight : (n,) array_like, optional
            A point of weight s counts as s equal points.

        Returns
        -------
        IterSVR
            Itself.

        Raises
        ------
        ValueError, TypeError, MemoryError
            As :func:`fastmmc.iter_svr`.
        """
        return self._fit(X, sample_weight, loss="laplace")

    def _losses(self, margins):
        return np.maximum(0.0, np.abs(margins - 1.0) - self.epsilon)


class IterSVM(
    _AlternatingClusterer,
    solver=iter_svm,
    paper="Zhang, Tsang, Kwok, ICML 2007",
    summary="the same with support vector machines; stays near its first labels",
):
    """Iterative support vector machines as a scikit-learn clusterer; always two clusters.

    The estimator behind :func:`fastmmc.iter_svm`, which documents the parameters.

    Parameters
    ----------
    C, init, bias, solver, tol, max_iter, refit
        The alternation, see :func:`fastmmc.iter_svm`.
    kernel, sigma, gamma, degree, coef0, kernel_params
        The kernel, see :func:`fastmmc.iter_svm`.
    rank, landmarks, rank_tol
        The kernel's low-rank form, see :func:`fastmmc.iter_svm`.
    balance, target_sizes, min_size
        The sizes, see :func:`fastmmc.iter_svm`.
    n_init, random_state, n_jobs, max_time, callback, verbose
        The run, see :func:`fastmmc.iter_svm`.

    Attributes
    ----------
    labels_ : (n,) int64 array
        Clusters of the training points, 0 and 1.
    objective_, status_, n_iter_, n_moves_, sizes_, history_, objectives_
        As in :class:`fastmmc.MarginResult`.
    dual_coef_, support_, intercept_, duality_gap_, n_violated_
        As in :class:`fastmmc.MarginResult`.
    result_ : MarginResult
        Everything else.
    n_features_in_ : int
        Features of the training points.
    feature_names_in_ : (d,) array
        Their names, where X had any.

    References
    ----------
    K. Zhang, I. W. Tsang, J. T. Kwok, Maximum margin clustering made practical, ICML 2007.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> fastmmc.IterSVM(random_state=0).fit(X).sizes_.sum()
    np.int64(150)
    """

    def __init__(
        self,
        *,
        C=500.0,
        init="farthest",
        bias="joint",
        solver="auto",
        tol=1e-3,
        max_iter=50,
        refit=False,
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
        self.C = C
        self.init = init
        self.bias = bias
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.refit = refit
        self.kernel = kernel
        self.sigma = sigma
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.rank = rank
        self.landmarks = landmarks
        self.rank_tol = rank_tol
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
    def fit(self, X, y=None, sample_weight=None):
        """Cluster the points.

        Parameters
        ----------
        X : (n, d) array_like or sparse matrix
            Points; with ``kernel="precomputed"`` their (n, n) Gram matrix.
        y : object, optional
            Ignored.
        sample_weight : (n,) array_like, optional
            A point of weight s counts as s equal points.

        Returns
        -------
        IterSVM
            Itself.

        Raises
        ------
        ValueError, TypeError, MemoryError
            As :func:`fastmmc.iter_svm`.
        """
        return self._fit(X, sample_weight, loss="hinge", epsilon=0.0)

    def _losses(self, margins):
        return np.maximum(0.0, 1.0 - margins)


class IterLSSVM(
    _AlternatingClusterer,
    solver=iter_ls_svm,
    paper="Zhang, Tsang, Kwok, ICML 2007",
    summary="the same with least-squares machines: one factorisation for all rounds",
):
    """Iterative least-squares SVM as a scikit-learn clusterer; always two clusters.

    The estimator behind :func:`fastmmc.iter_ls_svm`, which documents the parameters.

    Parameters
    ----------
    C, init, bias, max_iter
        The alternation, see :func:`fastmmc.iter_ls_svm`.
    kernel, sigma, gamma, degree, coef0, kernel_params
        The kernel, see :func:`fastmmc.iter_ls_svm`.
    rank, landmarks, rank_tol
        The kernel's low-rank form, see :func:`fastmmc.iter_ls_svm`.
    balance, target_sizes, min_size
        The sizes, see :func:`fastmmc.iter_ls_svm`.
    n_init, random_state, n_jobs, max_time, callback, verbose
        The run, see :func:`fastmmc.iter_ls_svm`.

    Attributes
    ----------
    labels_ : (n,) int64 array
        Clusters of the training points, 0 and 1.
    objective_, status_, n_iter_, n_moves_, sizes_, history_, objectives_
        As in :class:`fastmmc.MarginResult`.
    dual_coef_, support_, intercept_, duality_gap_, n_violated_
        As in :class:`fastmmc.MarginResult`.
    result_ : MarginResult
        Everything else.
    n_features_in_ : int
        Features of the training points.
    feature_names_in_ : (d,) array
        Their names, where X had any.

    References
    ----------
    K. Zhang, I. W. Tsang, J. T. Kwok, Maximum margin clustering made practical, ICML 2007.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> fastmmc.IterLSSVM(random_state=0).fit(X).sizes_.sum()
    np.int64(150)
    """

    def __init__(
        self,
        *,
        C=500.0,
        init="farthest",
        bias="joint",
        max_iter=50,
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
        self.C = C
        self.init = init
        self.bias = bias
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
    def fit(self, X, y=None, sample_weight=None):
        """Cluster the points.

        Parameters
        ----------
        X : (n, d) array_like or sparse matrix
            Points; with ``kernel="precomputed"`` their (n, n) Gram matrix.
        y : object, optional
            Ignored.
        sample_weight : (n,) array_like, optional
            A point of weight s counts as s equal points.

        Returns
        -------
        IterLSSVM
            Itself.

        Raises
        ------
        ValueError, TypeError, MemoryError
            As :func:`fastmmc.iter_ls_svm`.
        """
        return self._fit(
            X, sample_weight, loss="square", epsilon=0.0, solver="auto", tol=1e-3, refit=False
        )

    def _losses(self, margins):
        return (margins - 1.0) ** 2
