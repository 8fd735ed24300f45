"""The choice as a scikit-learn estimator."""

from typing import Literal

from fastmmc.choice.methods import ChoiceParameters, cluster
from fastmmc.core.declare import parameter
from fastmmc.core.parameters import ClusterCount, SemiSupervised
from fastmmc.rls.estimators import GuidedClusterer


class AutoMMC(
    GuidedClusterer,
    ChoiceParameters,
    SemiSupervised,
    ClusterCount,
    solver=cluster,
    paper="Pahikkala, Airola, Gieseke, Kramer, ICDM 2012",
    summary="regularised least squares; width, sizes and number are chosen by a vote",
):
    """Clusters without a width and without sizes, as a scikit-learn clusterer."""

    # More than the numbers of other estimators, which mypy takes for a mistake.
    n_clusters: int | Literal["auto"] = parameter(  # type: ignore[assignment]
        default="auto", kw_only=False, doc='Number of clusters, or "auto" to choose it.'
    )

    _fields = (
        *GuidedClusterer._fields,
        "candidates",
        "cells",
        "chosen",
        "scores",
        "errors",
        "evidence",
    )

    _own_attributes = {"n_clusters_": ("int", "Number of clusters found.")}

    _unit = "step"

    @property
    def n_clusters_(self):
        """Number of clusters found."""
        return len(self.sizes_)

    def _count_tasks(self, n):
        return None
