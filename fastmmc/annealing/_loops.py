"""Compiled loops over plain distances: a pass over the points, and the cost of parts of them."""

import numpy as np

from fastmmc._jit import njit


@njit
def block_distances(block, center, found):
    """Write the squared distances of a block's points to a center.

    Parameters
    ----------
    block : (d, b) array
        Points in columns, so that the loop over them is the vectorised one.
    center : (d,) float64 array
        Center.
    found : (b,) float64 array
        Output.
    """
    found[:] = 0.0
    for f in range(center.size):
        c = center[f]
        for i in range(found.size):
            gap = block[f, i] - c
            found[i] += gap * gap


@njit
def assign(blocks, centers, nearest, distances, labels):
    """Give every point to its nearest center.

    Parameters
    ----------
    blocks : (m, d, b) array
        Points in columns; the last block is filled up.
    centers : (k, d) float64 array
        Centers.
    nearest : (2, b) float64 array
        Work space.
    distances : (n,) float64 array
        Output: distance to the nearest center, not squared.
    labels : (n,) int64 array
        Output: that center; ties go to the first.
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
def sum_pulls(points, weights, labels, distances, least, pulls, sums, at_center):
    """Add up what pulls the centers, and return the weighted sum of the distances.

    A point pulls its center with its weight over its distance, sum_i w_i x_i / d_i over
    sum_i w_i / d_i being Weiszfeld's next center. Points that lie at their center have no
    direction: their weights are counted apart.

    Parameters
    ----------
    points : (n, d) array
        Points.
    weights : (n,) float64 array
        Their weights.
    labels : (n,) int64 array
        Their centers.
    distances : (n,) float64 array
        To these.
    least : float
        No farther away a point counts as lying at its center.
    pulls : (k,) float64 array
        Output: sums of w / d.
    sums : (k, d) float64 array
        Output: sums of w x / d.
    at_center : (k,) float64 array
        Output: weights of the points at the center.

    Returns
    -------
    float
        Sum of w d.
    """
    pulls[:] = 0.0
    sums[:] = 0.0
    at_center[:] = 0.0
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
    return total


@njit
def label_distances(points, centers, labels, distances):
    """Write the distances of points to the centers of their labels.

    Parameters
    ----------
    points : (n, d) array
        Points.
    centers : (k, d) float64 array
        Centers.
    labels : (n,) int64 array
        Labels.
    distances : (n,) float64 array
        Output.
    """
    for i in range(labels.size):
        square = 0.0
        for f in range(points.shape[1]):
            gap = points[i, f] - centers[labels[i], f]
            square += gap * gap
        distances[i] = np.sqrt(square)


@njit
def part_cost(part, candidates, centers, best, found):
    """Return the sum of the distances of a part's points to the nearest of some centers.

    Parameters
    ----------
    part : (d, m) array
        Points in columns.
    candidates : (c,) int64 array
        Centers that can be the nearest.
    centers : (k, d) float64 array
        All centers.
    best, found : (m,) float64 arrays
        Work space.

    Returns
    -------
    float
        The sum.
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
    """Write how far from each ball's center a center can be that is nearest to a point in it.

    Parameters
    ----------
    gaps : (k, p) float64 array
        Distances from the balls' centers to the centers.
    radii : (p,) float64 array
        Of the balls.
    found : (p,) float64 array
        Output: the least distance and the ball's diameter, with a slack far above rounding.
    """
    found[:] = np.inf
    for j in range(gaps.shape[0]):
        for p in range(found.size):
            found[p] = min(found[p], gaps[j, p])
    for p in range(found.size):
        found[p] = (found[p] + 2.0 * radii[p]) * (1.0 + 1e-9)


@njit
def mark_stale(moved, gaps, new_gaps, radii, stale, reach):
    """Mark the parts that a center that moved was, or is, near enough to.

    Parameters
    ----------
    moved : (k,) bool array
        Which centers have moved.
    gaps, new_gaps : (k, p) float64 arrays
        Distances from the balls' centers to the centers, before and now.
    radii : (p,) float64 array
        Of the balls.
    stale : (p,) bool array
        Parts to be looked at, added to.
    reach : (p,) float64 array
        Output: that of now, see :func:`reaches`.
    """
    for which in (gaps, new_gaps):
        reaches(which, radii, reach)
        for j in range(moved.size):
            if moved[j]:
                for p in range(reach.size):
                    stale[p] |= which[j, p] <= reach[p]


@njit
def update_costs(flat, offsets, means, radii, centers, moved, gaps, costs, new_gaps, new_costs):
    """Bring the costs of all parts up to date after some centers have moved.

    A part is a set of points in a ball. A center farther from the ball's center than the nearest
    center by more than the ball's diameter is nobody's nearest, so a part is looked at again only
    if a center that moved could have been, or can now be, nearest to a point of it.

    Parameters
    ----------
    flat : (n * d,) array
        The parts one after the other, each with its points in columns.
    offsets : (p + 1,) int64 array
        Where in the order of the points each part begins.
    means, radii : (d, p), (p,) float64 arrays
        Balls around the parts, their centers in columns.
    centers : (k, d) float64 array
        The centers now.
    moved : (k,) bool array
        Which of them have moved.
    gaps, costs : (k, p), (p,) float64 arrays
        Distances from the balls' centers to the centers, and sums of distances, of before.
    new_gaps, new_costs : (k, p), (p,) float64 arrays
        Output: those of now.

    Returns
    -------
    total : float
        Sum over the parts.
    n_looked : int
        Distances between points and centers that were computed.
    """
    k, d = centers.shape
    new_gaps[:] = gaps
    new_costs[:] = costs
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
    return np.sum(new_costs), n_looked


@njit
def accepts(change, temperature, uniform):
    """Return whether annealing takes a change of the objective.

    Parameters
    ----------
    change : float
        By how much the objective rises.
    temperature : float
        In the units of the objective.
    uniform : float
        Random number in [0, 1).

    Returns
    -------
    bool
        Whether uniform <= min(1, exp(-change / temperature)).
    """
    return change <= 0.0 or uniform <= np.exp(-change / temperature)
