"""Compiled loops over Euclidean distances: passes over all points, and costs of parts of them."""

import numpy as np

from fastmmc.core.jit import njit


@njit
def block_distances(block, center, found):
    """Write the squared distances of a block's points, the columns of (d, b), to a center (d,).

    Points are in columns so that the loop over them vectorises.
    """
    found[:] = 0.0
    for f in range(center.size):
        c = center[f]
        for i in range(found.size):
            gap = block[f, i] - c
            found[i] += gap * gap


@njit
def assign(blocks, centers, nearest, distances, labels):
    """Give every point to its nearest center; ties go to the first.

    ``blocks`` (m, d, b) holds the points in columns, the last block padded; ``nearest`` (2, b) is
    work space. ``labels`` (n,) and ``distances`` (n,), not squared, are written.
    """
    n_blocks, _, size = blocks.shape
    best, found = nearest[0], nearest[1]
    for b in range(n_blocks):
        first = b * size
        count = min(size, labels.size - first)
        own = labels[first : first + count]
        best[:] = np.inf
        for j in range(centers.shape[0]):
            block_distances(blocks[b], centers[j], found)
            for i in range(count):
                if found[i] < best[i]:
                    best[i] = found[i]
                    own[i] = j
        for i in range(count):
            distances[first + i] = np.sqrt(best[i])


@njit
def sum_pulls(points, weights, labels, distances, least, k):
    """Return the weighted sum of distances, and ``pulls``, ``sums`` and ``at_center`` of k centers.

    A point pulls its center with its weight over its distance: Weiszfeld's next center is
    sum_i w_i x_i / d_i (``sums``, (k, d)) over sum_i w_i / d_i (``pulls``, (k,)). A point no
    farther than ``least`` lies at its center and has no direction: its weight goes to
    ``at_center`` (k,).
    """
    pulls, sums, at_center = np.empty(k), np.empty((k, points.shape[1])), np.empty(k)
    for j in range(k):
        pulls[j] = at_center[j] = 0.0
        for f in range(points.shape[1]):
            sums[j, f] = 0.0
    total = 0.0
    for i in range(labels.size):
        j = labels[i]
        total += weights[i] * distances[i]
        if distances[i] <= least:
            at_center[j] += weights[i]
            continue
        pull = weights[i] / distances[i]
        pulls[j] += pull
        for f in range(points.shape[1]):
            sums[j, f] += pull * points[i, f]
    return total, pulls, sums, at_center


@njit
def label_distances(points, centers, labels, distances):
    """Write the distances (n,) of points to the centers of their labels."""
    for i in range(labels.size):
        square = 0.0
        for f in range(points.shape[1]):
            gap = points[i, f] - centers[labels[i], f]
            square += gap * gap
        distances[i] = np.sqrt(square)


@njit
def part_cost(part, candidates, centers, best, found):
    """Return the sum of the distances of a part's points to the nearest of the candidate centers.

    ``part`` (d, m) has the points in columns; ``best`` and ``found`` (m,) are work space.
    """
    block_distances(part, centers[candidates[0]], best)
    for c in range(1, candidates.size):
        block_distances(part, centers[candidates[c]], found)
        for i in range(best.size):
            best[i] = min(best[i], found[i])
    for i in range(best.size):
        best[i] = np.sqrt(best[i])
    total = 0.0
    for i in range(best.size):
        total += best[i]
    return total


@njit
def reaches(gaps, radii, found):
    """Write, for each ball, how far from its middle the nearest center of one of its points can be.

    That is the least of the ``gaps`` (k, p) between middles and centers plus the ball's diameter,
    with a slack far above rounding.
    """
    found[:] = np.inf
    for j in range(gaps.shape[0]):
        for p in range(found.size):
            found[p] = min(found[p], gaps[j, p])
    for p in range(found.size):
        found[p] = (found[p] + 2.0 * radii[p]) * (1.0 + 1e-9)


@njit
def mark_stale(moved, gaps, new_gaps, radii, stale, reach):
    """Mark the parts that a moved center is near enough to, before or after its move.

    Adds to ``stale`` (p,) and leaves the :func:`reaches` after the move in ``reach`` (p,).
    """
    for which in (gaps, new_gaps):
        reaches(which, radii, reach)
        for j in range(moved.size):
            if moved[j]:
                for p in range(reach.size):
                    stale[p] |= which[j, p] <= reach[p]


@njit
def update_costs(flat, offsets, means, radii, centers, moved, gaps, costs):
    """Return the total, gaps and costs of all parts after some centers moved, and the work done.

    A part is a set of points in a ball. A center farther from the ball's middle than the nearest
    center by more than the ball's diameter is nearest to none of its points, so only parts that a
    moved center could have served, or can serve now, are computed again.

    ``flat`` (n * d,) holds the parts one after the other, each with its points in columns, and
    ``offsets`` (p + 1,) where each begins, in points; ``means`` (d, p) are the middles of the
    balls. ``gaps`` (k, p) and ``costs`` (p,) are the distances between middles and centers and the
    sums of distances before the move. The work is the number of distances between points and
    centers.
    """
    k, d = centers.shape
    new_gaps, new_costs = gaps.copy(), costs.copy()
    stale = np.zeros(radii.size, dtype=np.bool_)
    for j in range(k):
        if moved[j]:
            block_distances(means, centers[j], new_gaps[j])
            for p in range(radii.size):
                new_gaps[j, p] = np.sqrt(new_gaps[j, p])
    reach = np.empty(radii.size)
    mark_stale(moved, gaps, new_gaps, radii, stale, reach)
    candidates = np.empty(k, dtype=np.int64)
    most = np.max(offsets[1:] - offsets[:-1])
    best, found = np.empty(most), np.empty(most)
    n_looked = 0
    for p in np.flatnonzero(stale):
        n_candidates = 0
        for j in range(k):
            if new_gaps[j, p] <= reach[p]:
                candidates[n_candidates] = j
                n_candidates += 1
        first, size = offsets[p], offsets[p + 1] - offsets[p]
        part = flat[first * d : (first + size) * d].reshape(d, size)
        near = candidates[:n_candidates]
        new_costs[p] = part_cost(part, near, centers, best[:size], found[:size])
        n_looked += n_candidates * size
    return np.sum(new_costs), new_gaps, new_costs, n_looked


@njit
def accepts(change, temperature, uniform):
    """Return whether annealing accepts a change: uniform <= min(1, exp(-change / temperature))."""
    return change <= 0.0 or uniform <= np.exp(-change / temperature)
