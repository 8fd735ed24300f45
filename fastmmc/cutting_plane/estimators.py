"""scikit-learn estimators of the cutting-plane family."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np

from fastmmc._callbacks import with_callbacks
from fastmmc._clusterer import COMMON_FIELDS, Clusterer
from fastmmc.cutting_plane.methods import cpm3c, cpmmc, solve_planes

# Result fields that become attributes with a trailing underscore.
RESULT_FIELDS = (
    *COMMON_FIELDS,
    "dual_coef",
    "support",
    "intercept",
    "duality_gap",
    "n_violated",
)


class _CuttingPlaneClusterer(Clusterer):
    """What the estimators of the family share."""

    _fields = RESULT_FIELDS

    def _fit(self, X, **params):
        """Cluster the points."""
        X = self._check_training_points(X)
        with nullcontext() as on_start_done:
            result = solve_planes(X, on_start_done=on_start_done, **params)
        return self._keep(result)

    def score(self, X, y=None):
        """Return minus the mean slack, by which points miss the margin of their cluster.

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
        margins = self._margins(self.decision_function(X))
        return -float(np.mean(np.maximum(0.0, 1.0 - margins)))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # A linear kernel takes the points as they are.
        takes_rows = isinstance(self.kernel, str) and self.kernel != "precomputed"
        by_rule = isinstance(self.rank, str) and isinstance(self.landmarks, str)
        tags.input_tags.sparse |= takes_rows and (self.kernel == "linear" or by_rule)
        return tags


class CPMMC(
    _CuttingPlaneClusterer,
    solver=cpmmc,
    paper="Zhao, Wang, Zhang, SDM 2008",
    summary="a linear or kernel machine whose signs are the labels, by cutting planes",
):
    """Cutting-plane maximum-margin clustering as a scikit-learn clusterer; always two clusters.

    The estimator behind :func:`fastmmc.cpmmc`, which documents the parameters.

    Parameters
    ----------
    C, score_balance, eps, stop, cccp_tol, init, solver, max_iter
        The search, see :func:`fastmmc.cpmmc`.
    kernel, sigma, gamma, degree, coef0, kernel_params
        The kernel, see :func:`fastmmc.cpmmc`.
    rank, landmarks, rank_tol
        The kernel's low-rank form, see :func:`fastmmc.cpmmc`.
    n_init, random_state, n_jobs, max_time, callback, verbose
        The run, see :func:`fastmmc.cpmmc`.

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
    B. Zhao, F. Wang, C. Zhang, Efficient maximum margin clustering via cutting plane algorithm,
    SIAM International Conference on Data Mining, 2008.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.make_nine_gaussians(100, random_state=0)
    >>> fastmmc.CPMMC(random_state=0).fit(X).sizes_.sum()
    np.int64(100)
    """

    def __init__(
        self,
        *,
        C=1.0,
        score_balance=0.03,
        eps=0.01,
        stop="additive",
        cccp_tol=0.01,
        init="random",
        solver="active-set",
        max_iter=1000,
        kernel="linear",
        sigma=None,
        gamma=None,
        degree=3,
        coef0=1.0,
        kernel_params=None,
        rank="auto",
        landmarks="uniform",
        rank_tol=1e-6,
        n_init=10,
        random_state=None,
        n_jobs=None,
        max_time=None,
        callback=None,
        verbose=0,
    ):
        self.C = C
        self.score_balance = score_balance
        self.eps = eps
        self.stop = stop
        self.cccp_tol = cccp_tol
        self.init = init
        self.solver = solver
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
        CPMMC
            Itself.

        Raises
        ------
        ValueError, TypeError, MemoryError
            As :func:`fastmmc.cpmmc`.
        """
        return self._fit(X, binary=True, **self.get_params(deep=False))

    @staticmethod
    def _margins(scores):
        return np.abs(scores[:, 1])


class CPM3C(
    _CuttingPlaneClusterer,
    solver=cpm3c,
    paper="Zhao, Wang, Zhang, ICML 2008",
    summary="the same for many clusters, labels by the highest score",
):
    """Cutting-plane maximum-margin clustering of many classes as a scikit-learn clusterer.

    The estimator behind :func:`fastmmc.cpm3c`, which documents the parameters; here ``k`` is
    ``n_clusters``.

    Parameters
    ----------
    n_clusters : int, default=8
        Clusters; those that end up empty are dropped.
    C, score_balance, eps, stop, cccp_tol, init, solver, max_iter
        The search, see :func:`fastmmc.cpm3c`.
    kernel, sigma, gamma, degree, coef0, kernel_params
        The kernel, see :func:`fastmmc.cpm3c`.
    rank, landmarks, rank_tol
        The kernel's low-rank form, see :func:`fastmmc.cpm3c`.
    n_init, random_state, n_jobs, max_time, callback, verbose
        The run, see :func:`fastmmc.cpm3c`.

    Attributes
    ----------
    labels_ : (n,) int64 array
        Clusters of the training points, 0..k-1.
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
    B. Zhao, F. Wang, C. Zhang, Efficient multiclass maximum margin clustering, ICML 2008.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> fastmmc.CPM3C(3, kernel="rbf", random_state=0).fit(X).sizes_.sum()
    np.int64(150)
    """

    def __init__(
        self,
        n_clusters=8,
        *,
        C=10.0,
        score_balance=0.03,
        eps=0.01,
        stop="additive",
        cccp_tol=0.01,
        init="random",
        solver="active-set",
        max_iter=1000,
        kernel="rbf",
        sigma=None,
        gamma=None,
        degree=3,
        coef0=1.0,
        kernel_params=None,
        rank="auto",
        landmarks="uniform",
        rank_tol=1e-6,
        n_init=10,
        random_state=None,
        n_jobs=None,
        max_time=None,
        callback=None,
        verbose=0,
    ):
        self.n_clusters = n_clusters
        self.C = C
        self.score_balance = score_balance
        self.eps = eps
        self.stop = stop
        self.cccp_tol = cccp_tol
        self.init = init
        self.solver = solver
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
        CPM3C
            Itself.

        Raises
        ------
        ValueError, TypeError, MemoryError
            As :func:`fastmmc.cpm3c`.
        """
        params = self.get_params(deep=False)
        return self._fit(X, binary=False, k=params.pop("n_clusters"), **params)

    @staticmethod
    def _margins(scores):
        best = np.sort(scores, axis=1)[:, -2:]
        return best[:, 1] - best[:, 0] if scores.shape[1] > 1 else np.ones(len(scores))
