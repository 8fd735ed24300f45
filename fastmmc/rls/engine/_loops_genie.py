"""Compiled loops of Genie: the minimum spanning tree, and merges along it that heed sizes.

Arrays are made empty and filled by plain loops, and sizes are counted rather than sorted: a sort
takes a second to compile, and a range or zeros a fifth of that.
"""

import numpy as np

from fastmmc.core.jit import njit


@njit
def spanning_tree(D, first, second, length):
    """Fill in the n - 1 edges of the minimum spanning tree of distances D (n, n), O(n^2)."""
    n = D.shape[0]
    near = D[0].copy()
    parent = np.empty(n, dtype=np.int64)
    outside = np.empty(n, dtype=np.bool_)
    for i in range(n):
        parent[i] = 0
        outside[i] = i > 0
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
    above ``most_gini``, only edges of a smallest cluster count. O(n^2).
    """
    n = first.size + 1
    labels = np.arange(n)
    sizes = np.ones(n, dtype=np.int64)
    clusters = np.zeros(n + 1, dtype=np.int64)  # how many there are of each size
    clusters[1] = n
    used = np.zeros(n, dtype=np.bool_)
    start = 0
    smallest = 1
    for t in range(n - 1):
        m = n - t
        while clusters[smallest] == 0:
            smallest += 1
        # The sum over clusters, the smallest first, of (2 i - m - 1) s_i, i = 1 ... m.
        spread = 0
        before = 0
        size = smallest
        while before < m:
            count = clusters[size]
            spread += size * count * (2 * before + count - m)
            before += count
            size += 1
        while used[start]:
            start += 1
        edge = start
        if spread > most_gini * (m - 1) * n:
            while used[edge] or (
                sizes[labels[first[edge]]] != smallest and sizes[labels[second[edge]]] != smallest
            ):
                edge += 1
        used[edge] = True
        order[t] = edge
        a, b = labels[first[edge]], labels[second[edge]]
        for i in range(n):
            if labels[i] == b:
                labels[i] = a
        clusters[sizes[a]] -= 1
        clusters[sizes[b]] -= 1
        sizes[a] += sizes[b]
        clusters[sizes[a]] += 1
