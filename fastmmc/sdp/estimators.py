"""SDPMMC and GMMC: the scikit-learn estimators of the family."""

from fastmmc.core.clusterer import COMMON_FIELDS, MarginClusterer
from fastmmc.sdp.methods import GMMCParameters, SDPMMCParameters, gmmc, sdp_mmc


class _SDPClusterer(MarginClusterer):
    """What the estimators of the family share."""

    _fields = (*COMMON_FIELDS, "bound", "matrix", "solver_status")


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

    Needs the extra ``sdp``.
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

    Needs the extra ``sdp``.
    """
