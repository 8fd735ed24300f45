"""What the scikit-learn estimators of all families share."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from fastmmc import validation
from fastmmc._binary import explain
from fastmmc._callbacks import CallbackSupport
from fastmmc.labels import check_known_labels

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

    # A parameter of those that can learn from labels.
    semi_supervised = False

    def __new__(cls, *args, **params):
        if args or "n_clusters" in params:
            if "n_clusters" not in cls._get_param_names():
                many = "RecursiveMMC(k, method=...) or UMCRLS(k)"
                raise explain(cls.__name__, many, args[0] if args else params["n_clusters"])
        return super().__new__(cls)

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

    def _told_labels(self, y, n, k=None):
        """Return the labels that y tells, checked; None unless the estimator learns from them."""
        if not validation.check_flag("semi_supervised", self.semi_supervised):
            return None
        if k is not None:
            k = validation.check_integer("n_clusters", k, least=1)
        return check_known_labels(y, n, k, name="y")

    def _keep(self, result):
        """Make the result's fields attributes."""
        names = getattr(self, "feature_names_in_", None)
        self.result_ = replace(result, feature_names_in=names)
        for name in self._fields:
            setattr(self, f"{name}_", getattr(result, name))
        return self

    def fit_predict(self, X, y=None, **fit_params):
        """Cluster the points and return their clusters; all that ``fit`` is told counts.

        Parameters
        ----------
        X : (n, d) array_like
            Points; with a precomputed kernel their (n, n) Gram matrix.
        y : (n,) array_like, optional
            As ``fit`` takes it.
        **fit_params
            What else ``fit`` takes, such as ``cannot_link``.

        Returns
        -------
        (n,) int64 array
            Clusters 0..k-1.
        """
        # scikit-learn's own does not pass y on.
        return self.fit(X, y, **fit_params).labels_

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
        return self.result_._nearest(X)

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
        return self.result_._scores(X)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = getattr(self, "kernel", None) == "precomputed"
        low_rank = isinstance(getattr(self, "rank", None), int | float)
        tags.input_tags.sparse = low_rank and not tags.input_tags.pairwise
        return tags
