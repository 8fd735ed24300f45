"""Representative points: a few centers inside every one of a few clusters (Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix, issparse

from fastmmc._means import choose_points, k_means
from fastmmc.annealing import _loops as kernels
from fastmmc.annealing.points import Points, Walker, make_model
from fastmmc.gram import dense_rows
from fastmmc.models import row_blocks

# Rounds of k-means inside a cluster: a representative need not be an exact mean.
INNER_ROUNDS = 3

# Of more points than this a sample of so many makes the first clusters.
MOST_POINTS = 100_000


@dataclass(frozen=True, eq=False)
class Cover:
    """Points in small parts, each with its representative.

    Attributes
    ----------
    parts : (n,) int64 array
        Part of every point.
    means : (p, d) float64 array
        Their means: the representatives.
    sizes : (p,) float64 array
        Points of each.
    """

    parts: np.ndarray
    means: np.ndarray
    sizes: np.ndarray


def first_clusters(rows, k, init, rng, look=lambda: None):
    """Return the clusters that representatives are looked for in, by k-means.

    Parameters
    ----------
    rows : (n, d) array or CSR matrix
        Points.
    k : int
        Clusters.
    init : str or (k, d) float64 array
        "k-means++", "random" or centers.
    rng : numpy.random.Generator
        Random stream.
    look : callable, optional
        Called every few rounds; it may raise an exception.

    Returns
    -------
    (n,) int64 array
        Clusters.
    """
    seed = int(rng.integers(2**31))
    n = rows.shape[0]
    if n <= MOST_POINTS:
        return k_means(rows, k, seed, init=init, look=look)[0]
    sample = np.sort(rng.choice(n, MOST_POINTS, replace=False))
    _, centers = k_means(rows[sample], k, seed, init=init, look=look)
    return make_model(centers.astype(np.float64), rows).assign(rows)[0]


def shares_by_size(sizes, costs, total):
    """Return how many representatives each cluster gets in proportion to its points.

    Parameters
    ----------
    sizes, costs : (k,) float64 arrays
        Points of each cluster, and the sums of their distances to its mean.
    total : int
        Representatives wanted.

    Returns
    -------
    (k,) int64 array
        At least 1, at most the size.

    Examples
    --------
    >>> shares_by_size(np.array([90.0, 10.0]), np.array([1.0, 9.0]), 20)
    array([18,  2])
    """
    return _shares(sizes, sizes, total)


def shares_by_cost(sizes, costs, total):
    """Return how many representatives each cluster gets in proportion to its sum of distances.

    Parameters
    ----------
    sizes, costs, total
        As of :func:`shares_by_size`.

    Returns
    -------
    (k,) int64 array
        At least 1, at most the size.

    Examples
    --------
    >>> shares_by_cost(np.array([90.0, 10.0]), np.array([1.0, 9.0]), 10)
    array([1, 9])
    """
    return _shares(sizes, costs, total)


def _shares(sizes, parts, total):
    whole = parts.sum()
    wanted = np.rint(total * parts / whole) if whole > 0 else np.ones(sizes.size)
    return np.clip(wanted, 1, np.maximum(sizes, 1)).astype(np.int64)


def make_cover(rows, clusters, total, shares, rng):
    """Cut every cluster into parts by k-means++ and a few rounds of k-means.

    A generator that yields the elementary operations of each cluster.

    Parameters
    ----------
    rows : (n, d) array or CSR matrix
        Points.
    clusters : (n,) int64 array
        Clusters.
    total : int
        Parts wanted; fewer where points coincide.
    shares : callable
        :func:`shares_by_size` or :func:`shares_by_cost`.
    rng : numpy.random.Generator
        Random stream.

    Returns
    -------
    Cover
        The parts.
    """
    clusters = np.unique(clusters, return_inverse=True)[1]
    sizes, means = sizes_and_means(rows, clusters)
    costs = np.bincount(clusters, weights=distances_to(rows, means, clusters))
    parts = np.empty(rows.shape[0], dtype=np.int64)
    n_parts = 0
    order = np.argsort(clusters, kind="stable")
    members = np.split(order, np.cumsum(sizes.astype(np.int64))[:-1])
    for own, n_own in zip(members, shares(sizes, costs, total), strict=True):
        found = cut(rows[own], int(n_own), rng)
        parts[own] = n_parts + found
        n_parts += int(found.max()) + 1
        yield own.size * int(n_own) * (1 + INNER_ROUNDS) * rows.shape[1]
    sizes, means = sizes_and_means(rows, parts)
    return Cover(parts, means, sizes)


def cut(rows, count, rng):
    """Cut points into parts by k-means++ and a few rounds of k-means.

    Parameters
    ----------
    rows : (n, d) array or CSR matrix
        Points.
    count : int
        Parts wanted; fewer where points coincide.
    rng : numpy.random.Generator
        Random stream.

    Returns
    -------
    (n,) int64 array
        Parts, numbered without gaps.
    """
    if count == 1:
        return np.zeros(rows.shape[0], dtype=np.int64)
    if count >= rows.shape[0]:
        return np.arange(rows.shape[0])
    # Several tries for every center, as scikit-learn makes them, would take most of the time.
    seed = int(rng.integers(2**31))
    chosen = choose_points(rows, count, seed, tries=1)
    centers = np.asarray(dense_rows(rows, chosen), dtype=np.float64)
    walker = Walker(Points(rows), "mean")
    for _ in range(INNER_ROUNDS):
        centers = walker.look(centers).targets
    walker.assign(centers)
    return np.unique(walker.labels, return_inverse=True)[1]


def distances_to(rows, centers, labels):
    """Return the distances of points to the centers of their labels.

    Parameters
    ----------
    rows : (n, d) array or CSR matrix
        Points.
    centers : (k, d) float64 array
        Centers.
    labels : (n,) int64 array
        Labels.

    Returns
    -------
    (n,) float64 array
        Distances.
    """
    distances = np.empty(rows.shape[0])
    for block in row_blocks(*rows.shape):
        kernels.label_distances(dense_rows(rows, block), centers, labels[block], distances[block])
    return distances


def sizes_and_means(rows, labels):
    """Return the sizes and means of clusters that are numbered without gaps."""
    sizes = np.bincount(labels).astype(np.float64)
    each = csr_matrix((np.ones(labels.size), (labels, np.arange(labels.size))))
    sums = each @ rows
    sums = sums.toarray() if issparse(sums) else np.asarray(sums, dtype=np.float64)
    return sizes, sums / sizes[:, None]
