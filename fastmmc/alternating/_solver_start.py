"""The labels that an alternation begins with."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.sparse import issparse
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.extmath import row_norms

from fastmmc.gram import Kernel, dense_rows, kernel_diagonal, median_width
from fastmmc.sizes import balanced_random_labels

STARTS = ("farthest", "kmeans", "ncut", "random")


def first_labels(init, points, kernel, weights, rng):
    """Return the labels 0 and 1 of a start, both of which occur.

    Parameters
    ----------
    init : str or (n,) int64 array
        One of STARTS, or labels.
    points : (n, d) array or CSR matrix
        Points, or the Gram matrix.
    kernel : Kernel
        As the user gave it.
    weights : (n,) float64 array
        Of the points.
    rng : numpy.random.Generator
        Random stream of the start.

    Returns
    -------
    (n,) int64 array
        Labels.
    """
    n = points.shape[0]
    if not isinstance(init, str):
        labels = init
    elif init == "random":
        labels = balanced_random_labels(n, 2, rng)
    else:
        with warnings.catch_warnings():
            # Points that are all equal; what to do with them stands below.
            warnings.simplefilter("ignore", ConvergenceWarning)
            if kernel.name == "precomputed":
                labels = _of_gram(init, points, rng)
            else:
                labels = _of_points(init, points, weights, rng)
    if 0 < labels.sum() < n:
        return labels
    return balanced_random_labels(n, 2, rng)


def _of_points(init, points, weights, rng):
    seed = int(rng.integers(2**31))
    if init == "ncut":
        kernel = Kernel("rbf", sigma=median_width(points))
        rows = dense_rows(points, slice(None))
        return _normalised_cut(kernel.block(rows, rows), seed)
    if init == "kmeans":
        model = KMeans(2, n_init=1, random_state=seed)
    else:
        norms = row_norms(points, squared=True)

        def distances_to(i):
            row = points[[i]].toarray()[0] if issparse(points) else points[i]
            return norms - 2.0 * np.asarray(points @ row)

        far = list(_far_pair(distances_to, rng.integers(points.shape[0])))
        ends = points[far].toarray() if issparse(points) else points[far]
        model = KMeans(2, init=ends, n_init=1)
    return model.fit(points, sample_weight=weights).labels_.astype(np.int64)


def _of_gram(init, K, rng):
    if init == "ncut":
        if K.min() < 0:
            raise ValueError(
                "init='ncut' needs kernel values that are not negative, as weights of a graph; "
                f"the least one given is {K.min():.3g}"
            )
        return _normalised_cut(K, int(rng.integers(2**31)))
    diag = kernel_diagonal(Kernel("precomputed"), K)

    def distances_to(i):
        return diag - 2.0 * K[i]

    i, j = _far_pair(distances_to, rng.integers(K.shape[0]))
    return (diag[j] + distances_to(j) < diag[i] + distances_to(i)).astype(np.int64)


def _far_pair(distances_to, i):
    """Return two points far from each other: the farthest from point i, and the farthest from it.

    ``distances_to(i)`` may leave out what is the same for all points.
    """
    first = int(np.argmax(distances_to(i)))
    return first, int(np.argmax(distances_to(first)))


def _normalised_cut(affinity, seed):
    model = SpectralClustering(2, affinity="precomputed", random_state=seed)
    return model.fit(affinity).labels_.astype(np.int64)
