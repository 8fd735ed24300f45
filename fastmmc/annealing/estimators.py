"""The scikit-learn estimator of the annealing family."""

import numpy as np
from numpy.typing import NDArray

from fastmmc._clusterer import COMMON_FIELDS, Clusterer
from fastmmc._sklearn import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from fastmmc._typing import MatrixLike
from fastmmc.annealing.methods import SAMMCParameters, sammc
from fastmmc.parameters import ClusterCount


class SAMMC(
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    Clusterer,
    SAMMCParameters,
    ClusterCount,
    solver=sammc,
    paper="Seifollahi, Bagirov, Zare Borzeshi, Piccardi, Computational Intelligence 2019",
    summary="least sum of plain distances to the centers of large data",
):
    """Clustering of large data by the sum of plain distances, see :func:`fastmmc.sammc`.

    References
    ----------
    S. Seifollahi, A. Bagirov, E. Zare Borzeshi, M. Piccardi, A simulated annealing-based
    maximum-margin clustering algorithm, Computational Intelligence 35(1), 2019.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> model = fastmmc.SAMMC(n_clusters=3, random_state=0).fit(X)
    >>> model.predict(X[:2]) == model.labels_[:2]
    array([ True,  True])
    """

    _fields = (*COMMON_FIELDS, "weights", "n_active", "representatives")
    _own_attributes = {
        "cluster_centers_": ("(k, d) float64 array", "Centers, in the order of the labels.")
    }

    def _keep(self, result):
        self.cluster_centers_ = result.centers
        return super()._keep(result)

    @property
    def _n_features_out(self):
        return self.cluster_centers_.shape[0]

    def transform(self, X: MatrixLike) -> NDArray[np.float64]:
        """Return the distances of new points to the centers.

        Parameters
        ----------
        X : (m, d) array_like or sparse matrix
            New points.

        Returns
        -------
        (m, k) float64 array
            Euclidean distances.
        """
        return self.result_._distances(self._check_new_points(X))

    def score(self, X: MatrixLike, y: object = None) -> float:
        """Return minus the mean distance of points to their nearest center.

        Parameters
        ----------
        X : (m, d) array_like or sparse matrix
            Points.
        y : object, optional
            Ignored.

        Returns
        -------
        float
            At most 0; higher is better.
        """
        return -float(np.min(self.transform(X), axis=1).mean())

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = False
        tags.input_tags.sparse = True
        return tags
