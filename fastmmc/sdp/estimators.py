"""SDPMMC and GMMC: the scikit-learn estimators of the family."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np

from fastmmc._callbacks import with_callbacks
from fastmmc._clusterer import COMMON_FIELDS, Clusterer
from fastmmc.sdp.methods import gmmc, sdp_mmc


class _SDPClusterer(Clusterer):
    """What the estimators of the family share."""

    _fields = (*COMMON_FIELDS, "bound", "matrix", "solver_status")

    def _fit(self, function, X):
        """Cluster the points by the function of the estimator's kind."""
        X = self._check_training_points(X)
        with nullcontext() as on_start_done:
            result = function(X, **self.get_params(deep=False))
            if on_start_done is not None:
                on_start_done(0, 1)
        return self._keep(result)

    def score(self, X, y=None):
        """Return minus the mean hinge loss of points that take the label of their side.

        Parameters
        ----------
        X : (m, d) array_like
            Points; with a precomputed kernel their (m, n) kernel values.
        y : object, optional
            Ignored.

        Returns
        -------
        float
            At most 0; higher is better: points lie beyond the margin.
        """
        margins = np.abs(self.decision_function(X)[:, 1])
        return -float(np.mean(np.maximum(0.0, 1.0 - margins)))


class SDPMMC(
    _SDPClusterer,
    solver=sdp_mmc,
    paper="Xu, Neufeld, Larson, Schuurmans, NIPS 2004",
    summary="a semidefinite program whose value bounds what labels can reach; up to 150 points",
    extra="sdp",
    needs=("cvxpy", "scs"),
):
    """Maximum margin clustering by a semidefinite program; always two clusters.

    The estimator behind :func:`fastmmc.sdp_mmc`, which documents the parameters. Needs the extra
    ``sdp``.

    Parameters
    ----------
    C, center_kernel
        The machine, see :func:`fastmmc.sdp_mmc`.
    solver, force
        The program, see :func:`fastmmc.sdp_mmc`.
    kernel, sigma, gamma, degree, coef0, kernel_params
        The kernel, see :func:`fastmmc.sdp_mmc`.
    balance, target_sizes, min_size
        The sizes, see :func:`fastmmc.sdp_mmc`.
    max_time, verbose
        The run, see :func:`fastmmc.sdp_mmc`.

    Attributes
    ----------
    labels_ : (n,) int64 array
        Clusters of the training points, 0 and 1.
    objective_, status_, n_iter_, n_moves_, sizes_, history_, objectives_
        As in :class:`fastmmc.SDPResult`.
    bound_, matrix_, solver_status_
        As in :class:`fastmmc.SDPResult`.
    result_ : SDPResult
        Everything else.
    n_features_in_ : int
        Features of the training points.
    feature_names_in_ : (d,) array
        Their names, where X had any.

    References
    ----------
    L. Xu, J. Neufeld, B. Larson, D. Schuurmans, Maximum margin clustering, NIPS 2004.

    Examples
    --------
    >>> import fastmmc
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> fastmmc.SDPMMC().fit_predict(X)
    array([0, 0, 0, 1, 1, 1])
    """

    def __init__(
        self,
        *,
        C=1.0,
        center_kernel=True,
        solver="SCS",
        force=False,
        kernel="rbf",
        sigma=None,
        gamma=None,
        degree=3,
        coef0=1.0,
        kernel_params=None,
        balance=0.03,
        target_sizes=None,
        min_size=1,
        max_time=None,
        verbose=0,
    ):
        self.C = C
        self.center_kernel = center_kernel
        self.solver = solver
        self.force = force
        self.kernel = kernel
        self.sigma = sigma
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.balance = balance
        self.target_sizes = target_sizes
        self.min_size = min_size
        self.max_time = max_time
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
        SDPMMC
            Itself.

        Raises
        ------
        ImportError, ValueError, TypeError, MemoryError
            As :func:`fastmmc.sdp_mmc`.
        """
        return self._fit(sdp_mmc, X)


class GMMC(
    _SDPClusterer,
    solver=gmmc,
    paper="Valizadegan, Jin, NIPS 2006",
    summary="a smaller semidefinite program, with a bias; up to 150 points",
    extra="sdp",
    needs=("cvxpy", "scs"),
):
    """Generalized maximum margin clustering by a semidefinite program; always two clusters.

    The estimator behind :func:`fastmmc.gmmc`, which documents the parameters. Needs the extra
    ``sdp``.

    Parameters
    ----------
    C_delta, C_e, ridge, rounding
        The margin and the labels, see :func:`fastmmc.gmmc`.
    solver, force
        The program, see :func:`fastmmc.gmmc`.
    kernel, sigma, gamma, degree, coef0, kernel_params
        The kernel, see :func:`fastmmc.gmmc`.
    max_time, verbose
        The run, see :func:`fastmmc.gmmc`.

    Attributes
    ----------
    labels_ : (n,) int64 array
        Clusters of the training points, 0 and 1.
    objective_, status_, n_iter_, n_moves_, sizes_, history_, objectives_
        As in :class:`fastmmc.SDPResult`.
    bound_, matrix_, solver_status_
        As in :class:`fastmmc.SDPResult`.
    result_ : SDPResult
        Everything else.
    n_features_in_ : int
        Features of the training points.
    feature_names_in_ : (d,) array
        Their names, where X had any.

    References
    ----------
    H. Valizadegan, R. Jin, Generalized maximum margin clustering and unsupervised kernel learning,
    NIPS 2006.

    Examples
    --------
    >>> import fastmmc
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> fastmmc.GMMC().fit_predict(X)
    array([0, 0, 0, 1, 1, 1])
    """

    def __init__(
        self,
        *,
        C_delta=100.0,
        C_e=10.0,
        ridge=1e-3,
        rounding="dual",
        solver="SCS",
        force=False,
        kernel="rbf",
        sigma=None,
        gamma=None,
        degree=3,
        coef0=1.0,
        kernel_params=None,
        max_time=None,
        verbose=0,
    ):
        self.C_delta = C_delta
        self.C_e = C_e
        self.ridge = ridge
        self.rounding = rounding
        self.solver = solver
        self.force = force
        self.kernel = kernel
        self.sigma = sigma
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.max_time = max_time
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
        GMMC
            Itself.

        Raises
        ------
        ImportError, ValueError, TypeError, MemoryError
            As :func:`fastmmc.gmmc`.
        """
        return self._fit(gmmc, X)
