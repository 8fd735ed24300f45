"""The scikit-learn estimator of UMC-RLS, and what it shares with those of evolution."""

from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastmmc.core.callbacks import with_callbacks
from fastmmc.core.clusterer import COMMON_FIELDS, Clusterer, MarginClusterer
from fastmmc.core.docstrings import completed_by
from fastmmc.core.parameters import ClusterCount, SemiSupervised
from fastmmc.core.types import MatrixLike
from fastmmc.rls.methods import umc_rls
from fastmmc.rls.parameters import UMCRLSParameters
from fastmmc.rls.planning import count_starts


class RLSClusterer(Clusterer):
    """What the estimators of UMC-RLS and of evolution share."""

    _fields: ClassVar[tuple[str, ...]] = (
        "loo_mse",
        "outlier_scores",
        *COMMON_FIELDS,
        "size_bounds",
        "at_size_bound",
    )
    _late_fields = ("probabilities", "margins", "exemplars", "boundary_points")

    @completed_by(Clusterer.predict)
    def predict_proba(self, X: MatrixLike) -> NDArray[np.float64]:
        """Return how likely new points are in each cluster.

        For training points ``probabilities_`` is the better figure, as it leaves each of them out.

        Returns
        -------
        (m, k) float64 array
            As :meth:`fastmmc.RLSResult.predict_proba`: rows sum to 1, and the largest entry names
            the cluster.
        """
        X = self._check_new_points(X)
        return self.result_._soften(self.result_._scores(X))

    @completed_by(predict_proba)
    def transform(self, X: MatrixLike) -> NDArray[np.float64]:
        """Return the memberships of new points as features, as ``predict_proba`` does.

        Returns
        -------
        (m, k) float64 array
            A column for each cluster; ``get_feature_names_out`` names them, and ``set_output``
            makes a data frame of them.
        """
        return self.predict_proba(X)

    @completed_by(MarginClusterer.score)
    def score(self, X: MatrixLike, y: object = None) -> float:
        """Return minus the mean squared distance of the scores from the codes of their clusters.

        A point of cluster h has the code +1 in column h and -1 elsewhere. Points near a boundary,
        or far from the training points, are far from every code. A grid search over lam and
        sigma may compare it, but not one over numbers of clusters, whose codes differ:
        :class:`fastmmc.AutoMMC` chooses these. On the training points themselves ``loo_mse_`` is
        the better figure.

        Returns
        -------
        float
            At most 0; higher is better.
        """
        scores = self.decision_function(X)
        codes = np.where(np.argmax(scores, axis=1)[:, None] == np.arange(scores.shape[1]), 1, -1)
        return -float(np.mean((scores - codes) ** 2))


class GuidedClusterer(RLSClusterer):
    """An estimator whose ``fit`` takes known labels, links and weights."""

    _fields = (*RLSClusterer._fields, "classes", "n_constraints", "n_violations")
    _labels_are_clusters = True

    @with_callbacks
    @completed_by(Clusterer.fit)
    def fit(
        self,
        X: MatrixLike,
        y: object = None,
        *,
        must_link: MatrixLike | None = None,
        cannot_link: MatrixLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Cluster the points.

        Parameters
        ----------
        y : (n,) or (n, 1) array_like, optional
            Ignored unless ``semi_supervised=True``; then labels 0..n_clusters-1, or strings, where
            known, which never change, and -1, NaN or None elsewhere. ``classes_`` are the strings:
            ``model.classes_[model.predict(X)]`` names clusters.
        must_link, cannot_link : (p, 2) array_like of int, sparse matrix or (n,), optional
            Pairs of points that are together, and that are not. Cross-validation passes pairs on as
            they are, whatever rows a fold has; it can split (n,) labels, -1 where none is known.
        sample_weight : (n,) array_like of float, optional
            How much each point counts.
        """
        told = {"must_link": must_link, "cannot_link": cannot_link, "sample_weight": sample_weight}
        return self._fit(X, y, **told)


class UMCRLS(
    GuidedClusterer,
    UMCRLSParameters,
    SemiSupervised,
    ClusterCount,
    solver=umc_rls,
    paper="Pahikkala, Airola, Gieseke, Kramer, ICDM 2012",
    summary="regularised least squares with k clusters of about equal or free sizes",
):
    """Unsupervised multi-class RLS as a scikit-learn clusterer."""

    _fields = (*GuidedClusterer._fields, "bound", "gap")

    def _count_tasks(self, n):
        return count_starts(self, n)
