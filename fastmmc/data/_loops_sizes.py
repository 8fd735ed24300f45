"""Compiled loops over the sizes of clusters whose points have masses."""

import numpy as np

from fastmmc.core.jit import njit


@njit
def offer(labels, scores, counts, lower, upper, movable, masses, h, too_large, who, to, loss):
    """Note the moves that bring cluster h nearer to its bounds; return how many.

    These are of points ``who``, to clusters ``to``, and lose so much score for each unit of mass,
    (n,) each.
    """
    n_found = 0
    for i in range(labels.size):
        own, best = labels[i], -1
        if not movable[i]:
            continue
        if too_large:
            if own != h:
                continue
            for j in range(counts.size):
                if counts[j] < upper[j] and (best < 0 or scores[j, i] > scores[best, i]):
                    best = j
        elif counts[own] - masses[i] >= lower[own]:
            best = h
        if best >= 0:
            lost = (scores[own, i] - scores[best, i]) / masses[i]
            if not np.isnan(lost):  # which has no place in an order
                who[n_found], to[n_found], loss[n_found] = i, best, lost
                n_found += 1
    return n_found


@njit
def fit_masses(labels, scores, lower, upper, movable, masses, counts, most):
    """Move points, least loss for their mass first, until sizes are within bounds.

    Clusters that are too large give to those with room, then clusters that are too small take from
    those above their lower bound; at most so many times. Labels and counts are changed in place.
    """
    n = labels.size
    who, to, loss = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64), np.empty(n)
    for _ in range(most):
        over, under = np.argmax(counts - upper), np.argmax(lower - counts)
        too_large = counts[over] > upper[over]
        if not too_large and counts[under] >= lower[under]:
            return
        h = over if too_large else under
        wanted = counts[h] - upper[h] if too_large else lower[h] - counts[h]
        n_found = offer(
            labels, scores, counts, lower, upper, movable, masses, h, too_large, who, to, loss
        )
        if n_found == 0:
            return
        for at in np.argsort(loss[:n_found], kind="mergesort"):
            i = who[at]
            counts[labels[i]] -= masses[i]
            counts[to[at]] += masses[i]
            labels[i] = to[at]
            wanted -= masses[i]
            if wanted <= 0:
                break
