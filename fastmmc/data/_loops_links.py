"""Compiled loop that joins linked objects."""

import numpy as np

from fastmmc.core.jit import njit


@njit
def join(first, second, names):
    """Fill ``names`` (n,) with numbers, equal where pairs join, in the order of first objects."""
    n = names.size
    parent = np.empty(n, dtype=np.int64)
    for i in range(n):
        parent[i] = i
    for t in range(first.size):
        a, b = first[t], second[t]
        while parent[a] != a:
            parent[a] = parent[parent[a]]
            a = parent[a]
        while parent[b] != b:
            parent[b] = parent[parent[b]]
            b = parent[b]
        parent[max(a, b)] = min(a, b)
    count = 0
    for i in range(n):
        # A parent comes before its children.
        if parent[i] == i:
            names[i] = count
            count += 1
        else:
            names[i] = names[parent[i]]
