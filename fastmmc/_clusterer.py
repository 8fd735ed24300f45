"""What the scikit-learn estimators of all families share."""

from __future__ import annotations

from functools import partial

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from fastmmc import validation
from fastmmc._callbacks import CallbackSupport

# Result fields that become attributes with a trailing underscore.
COMMON_FIELDS = (
    "labels",
    "objective",
    "status",
    "n_iter",
    "n_moves",
    "sizes",
    "history",
    "objectives",
)


class Clusterer(CallbackSupport, ClusterMixin, BaseEstimator):
    """A clusterer that keeps a result whose model predicts."""

    _fields = COMMON_FIELDS

    def _check_training_points(self, X):
        return self._check_matrix(X, reset=True)

    def _check_new_points(self, X):
        check_is_fitted(self)
        return self._check_matrix(X, reset=False)

    def _check_matrix(self, X, reset):
        return validation.check_matrix(
            X,
            check=partial(validate_data, self),
            dtype=[np.float64, np.float32],
            accept_sparse="csr",
            reset=reset,
        )

    def _keep(self, result):
        """Make the result's fields attributes."""
        self.result_ = result
        for name in self._fields:
            setattr(self, f"{name}_", getattr(result, name))
        return self

    def predict(self, X):
        """Return the clusters of new points.

        Parameters
        ----------
        X : (m, d) array_like
            New points; with a precomputed kernel their (m, n) kernel values.

        Returns
        -------
        (m,) int64 array
            Clusters 0..k-1.
        """
        X = self._check_new_points(X)
        return self.result_.predict(X)

    def decision_function(self, X):
        """Return the score of every cluster for new points.

        Parameters
        ----------
        X : (m, d) array_like
            New points; with a precomputed kernel their (m, n) kernel values.

        Returns
        -------
        (m, k) array
            Scores; the largest one names the cluster.
        """
        X = self._check_new_points(X)
        return self.result_.decision_function(X)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = getattr(self, "kernel", None) == "precomputed"
        low_rank = isinstance(getattr(self, "rank", None), int | float)
        tags.input_tags.sparse = low_rank and not tags.input_tags.pairwise
        return tags
