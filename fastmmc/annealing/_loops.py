"""Compiled loops over Euclidean distances: passes over all points, and Weiszfeld's sums."""

import numpy as np

from fastmmc.core.jit import njit


@njit
def assign(blocks, centers, distances, labels):
    """Write the nearest center of every point, the first of equal ones, and the distance to it.

    ``blocks`` (m, d, b) holds the points in columns, so that the loop over them vectorises; the
    last block is padded.
    """
    n_blocks, d, size = blocks.shape
    best, found = np.empty(size), np.empty(size)
    for b in range(n_blocks):
        first = b * size
        count = min(size, labels.size - first)
        own = labels[first : first + count]
        best[:] = np.inf
        for j in range(centers.shape[0]):
            found[:] = 0.0
            for f in range(d):
                c = centers[j, f]
                for i in range(size):
                    gap = blocks[b, f, i] - c
                    found[i] += gap * gap
            for i in range(count):
                if found[i] < best[i]:
                    best[i] = found[i]
                    own[i] = j
        for i in range(count):
            distances[first + i] = np.sqrt(best[i])


@njit
def sum_pulls(points, weights, labels, distances, least, k):
    """Return ``pulls``, ``sums`` and ``at_center`` of k centers.

    A point pulls its center with its weight over its distance: Weiszfeld's next center is
    sum_i w_i x_i / d_i (``sums``, (k, d)) over sum_i w_i / d_i (``pulls``, (k,)). A point no
    farther than ``least`` lies at its center and has no direction: its weight goes to
    ``at_center`` (k,).
    """
    pulls, sums, at_center = np.zeros(k), np.zeros((k, points.shape[1])), np.zeros(k)
    for i in range(labels.size):
        j = labels[i]
        if distances[i] <= least:
            at_center[j] += weights[i]
            continue
        pull = weights[i] / distances[i]
        pulls[j] += pull
        for f in range(points.shape[1]):
            sums[j, f] += pull * points[i, f]
    return pulls, sums, at_center


@njit
def label_distances(points, centers, labels, distances):
    """Write the distances (n,) of points to the centers of their labels."""
    for i in range(labels.size):
        square = 0.0
        for f in range(points.shape[1]):
            gap = points[i, f] - centers[labels[i], f]
            square += gap * gap
        distances[i] = np.sqrt(square)
