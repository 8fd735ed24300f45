"""SDPMMC and GMMC: the scikit-learn estimators of the family."""

import numpy as np

from fastmmc._clusterer import COMMON_FIELDS, Clusterer
from fastmmc._typing import MatrixLike
from fastmmc.sdp.methods import GMMCParameters, SDPMMCParameters, gmmc, sdp_mmc


class _SDPClusterer(Clusterer):
    """What the estimators of the family share."""

    _fields = (*COMMON_FIELDS, "bound", "matrix", "solver_status")

    def score(self, X: MatrixLike, y: object = None) -> float:
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
    SDPMMCParameters,
    solver=sdp_mmc,
    paper="Xu, Neufeld, Larson, Schuurmans, NIPS 2004",
    summary="a semidefinite program whose value bounds what labels can reach; up to 150 points",
    extra="sdp",
    needs=("cvxpy", "scs"),
):
    """Maximum margin clustering by a semidefinite program; always two clusters.

    See :func:`fastmmc.sdp_mmc`. Needs the extra ``sdp``.

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


class GMMC(
    _SDPClusterer,
    GMMCParameters,
    solver=gmmc,
    paper="Valizadegan, Jin, NIPS 2006",
    summary="a smaller semidefinite program, with a bias; up to 150 points",
    extra="sdp",
    needs=("cvxpy", "scs"),
):
    """Generalized maximum margin clustering by a semidefinite program; always two clusters.

    See :func:`fastmmc.gmmc`. Needs the extra ``sdp``.

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
