"""The scikit-learn estimator of the annealing family."""

from fastmmc.annealing.methods import SAMMCParameters, sammc
from fastmmc.core.clusterer import COMMON_FIELDS, CenterClusterer
from fastmmc.core.parameters import ClusterCount


class SAMMC(
    CenterClusterer,
    SAMMCParameters,
    ClusterCount,
    solver=sammc,
    paper="Seifollahi, Bagirov, Zare Borzeshi, Piccardi, Computational Intelligence 2019",
    summary="least sum of plain distances to the centers of large data",
):
    """Clustering of large data by the sum of plain distances."""

    _fields = (*COMMON_FIELDS, "weights", "n_active", "representatives")
