"""Compiled loops over the sizes of clusters whose points have masses."""

import numpy as np

from fastmmc.core.jit import njit


@njit
def off(count, least, most):
    """Return how far a size is from its bounds."""
    return max(0, count - most, least - count)


@njit
def brings_nearer(counts, lower, upper, own, to, mass):
    """Tell whether a point that goes to another cluster brings sizes nearer to their bounds."""
    before = off(counts[own], lower[own], upper[own]) + off(counts[to], lower[to], upper[to])
    after = off(counts[own] - mass, lower[own], upper[own])
    return after + off(counts[to] + mass, lower[to], upper[to]) < before


@njit
def offer(labels, scores, counts, lower, upper, movable, masses, h, who, to, loss):
    """Note the moves that bring cluster h nearer to its bounds; return how many.

    These are of points ``who``, to clusters ``to``, and lose so much score for each unit of mass,
    (n,) each.
    """
    n_found = 0
    gives = counts[h] > upper[h]
    for i in range(labels.size):
        own, best = labels[i], -1
        if not movable[i] or (own == h) != gives:
            continue
        for j in range(counts.size) if gives else range(h, h + 1):
            if best < 0 or scores[i, j] > scores[i, best]:
                if j != own and brings_nearer(counts, lower, upper, own, j, masses[i]):
                    best = j
        if best >= 0:
            lost = (scores[i, own] - scores[i, best]) / masses[i]
            if not np.isnan(lost):  # which has no place in an order
                who[n_found], to[n_found], loss[n_found] = i, best, lost
                n_found += 1
    return n_found


@njit
def worst(counts, lower, upper, stuck):
    """Return the cluster that is too large by most, or else too small by most, -1 if none is."""
    over, under = -1, -1
    for h in range(counts.size):
        if stuck[h]:
            continue
        if counts[h] > upper[h]:
            if over < 0 or counts[h] - upper[h] > counts[over] - upper[over]:
                over = h
        elif counts[h] < lower[h]:
            if under < 0 or lower[h] - counts[h] > lower[under] - counts[under]:
                under = h
    return over if over >= 0 else under


@njit
def fit_masses(labels, scores, lower, upper, movable, masses, counts):
    """Move points, least loss for their mass first, until sizes are within bounds or none helps.

    Clusters that are too large give, then clusters that are too small take. Every move brings the
    sizes nearer to their bounds. ``scores`` are (n, k). Labels and counts are changed in place.
    """
    n = labels.size
    who, to, loss = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64), np.empty(n)
    stuck = np.zeros(counts.size, dtype=np.bool_)
    while True:
        h = worst(counts, lower, upper, stuck)
        if h < 0:
            return
        n_found = offer(labels, scores, counts, lower, upper, movable, masses, h, who, to, loss)
        stuck[h] = True
        for at in np.argsort(loss[:n_found], kind="mergesort"):
            i = who[at]
            own, goal = labels[i], to[at]
            if brings_nearer(counts, lower, upper, own, goal, masses[i]):
                counts[own] -= masses[i]
                counts[goal] += masses[i]
                labels[i] = goal
                stuck[h] = False
            if lower[h] <= counts[h] <= upper[h]:
                break
