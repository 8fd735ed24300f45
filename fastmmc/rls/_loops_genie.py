"""Compiled loops of Genie: the minimum spanning tree, and merges along it that heed sizes."""

import numpy as np

from fastmmc._jit import njit


@njit
def spanning_tree(D, first, second, length):
    """Fill in the n - 1 edges of the minimum spanning tree of distances D (n, n), O(n^2)."""
    n = D.shape[0]
    near = D[0].copy()
    parent = np.zeros(n, dtype=np.int64)
    outside = np.ones(n, dtype=np.bool_)
    outside[0] = False
    for t in range(n - 1):
        j = -1
        for i in range(n):
            if outside[i] and (j < 0 or near[i] < near[j]):
                j = i
        first[t], second[t], length[t] = parent[j], j, near[j]
        outside[j] = False
        for i in range(n):
            if outside[i] and D[j, i] < near[i]:
                near[i] = D[j, i]
                parent[i] = j


@njit
def order_merges(first, second, most_gini, order):
    """Fill ``order`` (n - 1,) with the edges of a spanning tree as Genie merges along them.

    The edges are sorted by length, and the shortest is next; while the Gini index of the sizes is
    above ``most_gini``, only edges of a smallest cluster count. O(n^2 log n).
    """
    n = first.size + 1
    labels = np.arange(n)
    sizes = np.ones(n, dtype=np.int64)
    used = np.zeros(n - 1, dtype=np.bool_)
    start = 0
    for t in range(n - 1):
        alive = np.sort(sizes[sizes > 0])
        m = alive.size
        spread = 0.0
        for i in range(m):
            spread += (2 * (i + 1) - m - 1) * alive[i]
        while used[start]:
            start += 1
        edge = start
        if spread > most_gini * (m - 1) * n:
            while used[edge] or (
                sizes[labels[first[edge]]] != alive[0] and sizes[labels[second[edge]]] != alive[0]
            ):
                edge += 1
        used[edge] = True
        order[t] = edge
        a, b = labels[first[edge]], labels[second[edge]]
        for i in range(n):
            if labels[i] == b:
                labels[i] = a
        sizes[a] += sizes[b]
        sizes[b] = 0
