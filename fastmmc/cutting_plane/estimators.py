"""scikit-learn estimators of the cutting-plane family."""

import numpy as np

from fastmmc.core.clusterer import MarginClusterer
from fastmmc.core.declare import parameter
from fastmmc.core.parameters import ClusterCount
from fastmmc.cutting_plane.methods import CPM3CParameters, CPMMCParameters, cpm3c, cpmmc


class CPMMC(
    MarginClusterer,
    CPMMCParameters,
    solver=cpmmc,
    paper="Zhao, Wang, Zhang, SDM 2008",
    summary="a linear or kernel machine whose signs are the labels, by cutting planes",
):
    """Cutting-plane maximum-margin clustering as a scikit-learn clusterer; always two clusters."""


class CPM3C(
    MarginClusterer,
    CPM3CParameters,
    ClusterCount,
    solver=cpm3c,
    paper="Zhao, Wang, Zhang, ICML 2008",
    summary="a machine with a score for each of k clusters, by cutting planes",
):
    """Cutting-plane maximum-margin clustering of many classes as a scikit-learn clusterer."""

    n_clusters: int = parameter(
        default=8, kw_only=False, doc="Clusters; those that end up empty are dropped."
    )

    def _margins(self, scores):
        best = np.sort(scores, axis=1)[:, -2:]
        return best[:, 1] - best[:, 0] if scores.shape[1] > 1 else np.ones(len(scores))
