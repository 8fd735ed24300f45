"""Genie's hierarchies: single linkage that heeds the sizes of clusters."""

from __future__ import annotations

import numpy as np

from fastmmc.data.links import join
from fastmmc.rls.engine import _loops_genie as loops

# Thresholds of the Gini index of the sizes, above which the smallest clusters are merged first.
GINIS = (0.1, 0.3, 0.5, 0.7)


def cosine_distances(R):
    """Return 1 - R_ij / sqrt(R_ii R_jj), (n, n)."""
    scale = 1.0 / np.sqrt(np.maximum(np.diagonal(R), np.finfo(np.float64).tiny))
    distances = R * scale[:, None]
    distances *= -scale
    distances += 1.0
    np.maximum(distances, 0.0, out=distances)
    np.fill_diagonal(distances, 0.0)
    return distances


class Genie:
    """Genie's hierarchies of clusters, one for each threshold of the Gini index."""

    def __init__(self, distances):
        n = len(distances)
        first, second = np.empty((2, n - 1), dtype=np.int64)
        length = np.empty(n - 1)
        loops.spanning_tree(distances, first, second, length)
        by_length = np.argsort(length, kind="stable")
        self._edges = np.stack([first, second])[:, by_length]
        self._orders = np.empty((len(GINIS), n - 1), dtype=np.int64)
        for most_gini, order in zip(GINIS, self._orders, strict=True):
            loops.order_merges(*self._edges, most_gini, order)

    def cut(self, k):
        """Return the labels of k clusters by threshold."""
        n = self._edges.shape[1] + 1
        pairs = zip(GINIS, self._orders, strict=True)
        return {gini: join(self._edges[:, order[: n - k]].T, n) for gini, order in pairs}
