"""Representatives: a few points inside each of a few clusters (Algorithm 1).

Generators yield the elementary operations of their pieces.
"""

from typing import NamedTuple

import numpy as np

from fastmmc.annealing import _loops as kernels
from fastmmc.annealing.points import Points, Walker, make_model
from fastmmc.kernels.gram import dense_rows
from fastmmc.kernels.kmeans import begin_choice, k_means_pieces, sum_clusters
from fastmmc.kernels.models import row_blocks

# Rounds of k-means inside a cluster: a representative need not be an exact mean.
INNER_ROUNDS = 3

# Of more points than this, a sample of this size makes the first clusters.
MOST_POINTS = 100_000


class Cover(NamedTuple):
    """Points cut into parts: the part of every point (n,), and the means (p, d) and sizes (p,)."""

    parts: np.ndarray
    means: np.ndarray
    sizes: np.ndarray


def first_clusters(rows, k, init, rng):
    """Return the clusters (n,) in which representatives are sought, by k-means; a generator."""
    seed = int(rng.integers(2**31))
    n = rows.shape[0]
    if n <= MOST_POINTS:
        return (yield from k_means_pieces(rows, k, seed, init=init))[0]
    sample = np.sort(rng.choice(n, MOST_POINTS, replace=False))
    _, centers = yield from k_means_pieces(rows[sample], k, seed, init=init)
    return make_model(centers.astype(np.float64), rows).assign(rows)[0]


def share_out(total, shares, sizes):
    """Share ``total`` parts out to clusters: at least 1 and at most its size to each."""
    whole = shares.sum()
    wanted = np.rint(total * shares / whole) if whole > 0 else np.ones(sizes.size)
    return np.clip(wanted, 1, np.maximum(sizes, 1)).astype(np.int64)


def make_cover(rows, clusters, total, rng, by_cost=False):
    """Cut every cluster into parts by k-means++ and a few rounds of k-means, ``total`` in all.

    Clusters get parts in proportion to their points, or ``by_cost`` to their sums of distances to
    the mean; there are fewer parts where points coincide.
    """
    clusters = np.unique(clusters, return_inverse=True)[1]
    sizes, means = sizes_and_means(rows, clusters)
    costs = distances_to(rows, means, clusters) if by_cost else None
    shares = np.bincount(clusters, costs)
    parts = np.empty(rows.shape[0], dtype=np.int64)
    n_parts = 0
    counts = share_out(total, shares, sizes)
    for own, n_own in zip(members_of(clusters, sizes), counts, strict=True):
        found = yield from cut(rows[own], int(n_own), rng)
        parts[own] = n_parts + found
        n_parts += int(found.max()) + 1
    sizes, means = sizes_and_means(rows, parts)
    return Cover(parts, means, sizes)


def cut(rows, count, rng):
    """Cut points into ``count`` parts, numbered without gaps; fewer where points coincide."""
    if count == 1:
        return np.zeros(rows.shape[0], dtype=np.int64)
    if count >= rows.shape[0]:
        return np.arange(rows.shape[0])
    # Several tries for every center, as scikit-learn makes them, would take most of the time.
    seed = int(rng.integers(2**31))
    chosen = yield from begin_choice(rows, count, seed, tries=1).choosing()
    centers = np.asarray(dense_rows(rows, chosen), dtype=np.float64)
    walker = Walker(Points(rows), "mean")
    for _ in range(INNER_ROUNDS):
        centers = (yield from walker.looking(centers)).targets
    yield from walker.assigning(centers)
    return np.unique(walker.labels, return_inverse=True)[1]


def members_of(labels, sizes):
    """Return the points of each cluster, a list of index arrays."""
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.cumsum(sizes.astype(np.int64))[:-1])


def distances_to(rows, centers, labels):
    """Return the distances (n,) of points to the centers of their labels."""
    distances = np.empty(rows.shape[0])
    for block in row_blocks(*rows.shape):
        kernels.label_distances(dense_rows(rows, block), centers, labels[block], distances[block])
    return distances


def sizes_and_means(rows, labels):
    """Return the sizes and means of clusters numbered without gaps."""
    sizes, sums = sum_clusters(rows, np.ones(labels.size), labels, int(labels.max()) + 1)
    return sizes, sums / sizes[:, None]
