"""The scikit-learn estimator of the annealing family."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from fastmmc._callbacks import with_callbacks
from fastmmc._clusterer import COMMON_FIELDS, Clusterer
from fastmmc.annealing.methods import sammc, solve_sammc


class SAMMC(
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    Clusterer,
    solver=sammc,
    paper="Seifollahi, Bagirov, Zare Borzeshi, Piccardi, Computational Intelligence 2019",
    summary="least sum of plain distances to the centers of large data",
):
    """Clustering of large data by the sum of plain distances, as :func:`fastmmc.sammc`.

    Parameters
    ----------
    n_clusters : int, default=8
        Clusters.
    search, center, init, population, max_iter, patience
        The search, see :func:`fastmmc.sammc`.
    delta, max_representatives, n_alt, C, weighted, relabel, T0, cooling, T_min
        Representatives and annealing, see :func:`fastmmc.sammc`.
    n_init, random_state, n_jobs, max_time, callback, verbose
        The run, see :func:`fastmmc.sammc`.

    Attributes
    ----------
    labels_ : (n,) int64 array
        Clusters 0..k-1.
    cluster_centers_ : (k, d) float64 array
        Centers in the order of the labels.
    objective_ : float
        Sum of the distances of the points to their centers.
    representatives_ : (p, d) float64 array or None
        Points that stood for the others while it searched.
    result_ : CentroidResult
        All that is known of the run; ``status_``, ``n_iter_``, ``n_moves_``, ``sizes_``,
        ``history_``, ``objectives_``, ``weights_`` and ``n_active_`` are its fields.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> model = fastmmc.SAMMC(n_clusters=3, random_state=0).fit(X)
    >>> model.predict(X[:2]) == model.labels_[:2]
    array([ True,  True])
    """

    _fields = (*COMMON_FIELDS, "weights", "n_active", "representatives")

    def __init__(
        self,
        n_clusters=8,
        *,
        search="memetic",
        center="median",
        init="k-means++",
        population=10,
        delta=0.1,
        max_representatives=4000,
        n_alt=3,
        C=1.0,
        weighted=True,
        relabel=True,
        T0=0.01,
        cooling=0.995,
        T_min=1e-5,
        patience=None,
        max_iter=20_000,
        n_init=1,
        random_state=None,
        n_jobs=None,
        max_time=None,
        callback=None,
        verbose=0,
    ):
        self.n_clusters = n_clusters
        self.search = search
        self.center = center
        self.init = init
        self.population = population
        self.delta = delta
        self.max_representatives = max_representatives
        self.n_alt = n_alt
        self.C = C
        self.weighted = weighted
        self.relabel = relabel
        self.T0 = T0
        self.cooling = cooling
        self.T_min = T_min
        self.patience = patience
        self.max_iter = max_iter
        self.n_init = n_init
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.callback = callback
        self.verbose = verbose

    @with_callbacks
    def fit(self, X, y=None):
        """Cluster the points.

        Parameters
        ----------
        X : (n, d) array_like or sparse matrix
            Points.
        y : object, optional
            Ignored.

        Returns
        -------
        SAMMC
            Itself.

        Raises
        ------
        ValueError, TypeError
            As :func:`fastmmc.sammc`.
        """
        X = self._check_training_points(X)
        params = self.get_params(deep=False)
        k = params.pop("n_clusters")
        with nullcontext() as on_start_done:
            result = solve_sammc(X, k, on_start_done=on_start_done, **params)
        self.cluster_centers_ = result.centers
        return self._keep(result)

    @property
    def _n_features_out(self):
        return self.cluster_centers_.shape[0]

    def transform(self, X):
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

    def score(self, X, y=None):
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
