"""Compiled loops of trees of merges: Ward's in the metric of R, and Genie's, which heeds sizes.

Arrays are made empty and filled by plain loops, and sizes are counted rather than sorted: a sort
takes a second to compile, and a range or zeros a fifth of that.
"""

import numpy as np

from fastmmc.core.jit import njit


@njit
def merge_groups(R, members, scales, out):
    """Add to zeros ``out`` (m, m) the sums of s_i R_ij s_j over pairs of groups; R is symmetric.

    ``members`` (n,) names the groups; ``scales`` (n,) are the s, None if all are 1.
    """
    # Pairs of points are in it once and points by halves, until the other half is added.
    for i in range(members.size):
        row = out[members[i]]
        entries = R[i]
        if scales is None:
            for j in range(i):
                row[members[j]] += entries[j]
            row[members[i]] += 0.5 * entries[i]
        else:
            for j in range(i):
                row[members[j]] += scales[i] * entries[j] * scales[j]
            row[members[i]] += 0.5 * scales[i] * entries[i] * scales[i]
    for g in range(out.shape[0]):
        for h in range(g + 1):
            out[g, h] += out[h, g]
            out[h, g] = out[g, h]


@njit
def fill_merges(R, weights, D):
    """Fill D (m, m) with what merging two groups would add to the cost."""
    for g in range(weights.size):
        D[g, g] = 0.0
        for h in range(g):
            v, w = weights[g], weights[h]
            apart = R[g, g] / v / v + R[h, h] / w / w - 2.0 * R[g, h] / v / w
            # Exactly symmetric, which the chain of nearest neighbours relies on.
            D[g, h] = apart * v * w / (v + w)
            D[h, g] = D[g, h]


@njit
def agglomerate(D, weights, first, second, height):
    """Merge m groups, the pair that adds least to the cost first, until one is left, O(m^2).

    That is Ward's rule, by a chain of nearest neighbours. ``D`` is from :func:`fill_merges` and is
    overwritten, as are the ``weights`` (m,). Merge t joins the groups that hold ``first[t]`` and
    ``second[t]`` at ``height[t]``; the heights are in no order.
    """
    m = weights.size
    chain = np.empty(m, dtype=np.int64)
    alive = np.empty(m, dtype=np.int64)
    for i in range(m):
        alive[i] = i
    left = m
    length = 0
    for t in range(m - 1):
        if length == 0:
            chain[0] = alive[0]
            length = 1
        while True:
            x = chain[length - 1]
            y = -1
            best = np.inf
            if length > 1:
                y = chain[length - 2]
                best = D[x, y]
            for at in range(left):
                j = alive[at]
                if j != x and D[x, j] < best:
                    best = D[x, j]
                    y = j
            if y < 0:  # all merges are infinite, or not numbers
                y = alive[0] if alive[0] != x else alive[1]
            if length > 1 and y == chain[length - 2]:
                break
            chain[length] = y
            length += 1
        length -= 2
        x, y = max(x, y), min(x, y)
        first[t], second[t], height[t] = y, x, best
        kept = 0
        for at in range(left):
            j = alive[at]
            if j == x:
                continue
            alive[kept] = j
            kept += 1
            if j != y:
                w = weights[j]
                value = (weights[x] + w) * D[x, j] + (weights[y] + w) * D[y, j] - w * best
                value /= weights[x] + weights[y] + w
                # The chain relies on it, and rounding could break it.
                value = max(value, min(D[x, j], D[y, j]))
                D[y, j] = value
                D[j, y] = value
        left = kept
        weights[y] += weights[x]


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


@njit
def join_merged(first, second, labels):
    """Fill ``labels`` (n,) with numbers of what merges join, which rise with the first ones.

    SciPy's connected components take a tenth of the time in which a number of clusters is chosen.
    """
    for i in range(labels.size):
        labels[i] = i
    for t in range(first.size):
        a, b = first[t], second[t]
        while labels[a] != a:
            labels[a] = labels[labels[a]]
            a = labels[a]
        while labels[b] != b:
            labels[b] = labels[labels[b]]
            b = labels[b]
        labels[max(a, b)] = min(a, b)
    count = 0
    for i in range(labels.size):
        if labels[i] == i:
            labels[i] = count
            count += 1
        else:
            labels[i] = labels[labels[i]]
