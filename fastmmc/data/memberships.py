"""Soft memberships: how sure leave-one-out scores are of the clusters of the points."""

import numpy as np
from scipy.optimize import brentq
from scipy.special import softmax

# Doublings in the search for a sharpness; more are needed only where scores are tied.
DOUBLINGS = 40


def own_scores(scores, labels):
    """Return the score of each point for its own cluster, (n,)."""
    return np.take_along_axis(scores, labels[:, None], axis=1)[:, 0]


def find_sharpness(scores, labels, weights=None):
    """Return b >= 0 for which softmax(b scores) is as sure as the scores are right.

    Both are shares, 0 for what knows nothing and 1 for what is certain and right. Sure is the mean
    of sum_h p_h^2, from 1 / k to 1; right is the explained share of the indicators, the squared
    cosine between them and the scores, each without its mean over the clusters. ``weights`` (n,)
    are those of the points; None: all are 1.
    """
    n, k = scores.shape
    weights = np.ones(n) if weights is None else weights
    total = float(weights.sum())
    centred = scores - scores.mean(axis=1, keepdims=True)
    agreement = float(np.sum(weights * own_scores(centred, labels)))
    if k == 1 or agreement <= 0.0:
        return 0.0
    # A product by BLAS would depend on its threads.
    squares = float(np.sum(weights * np.sum(centred**2, axis=1)))
    right = agreement**2 / (squares * total * (1.0 - 1.0 / k))

    def excess(b):
        sure = np.sum(weights * np.sum(softmax(b * centred, axis=1) ** 2, axis=1)) / total
        return (sure - 1.0 / k) / (1.0 - 1.0 / k) - right

    low, high = 0.0, np.sqrt(total / squares)
    for _ in range(DOUBLINGS):
        if excess(high) >= 0.0:
            return float(brentq(excess, low, high, rtol=1e-10))
        low, high = high, 2.0 * high
    return low


def probabilities(scores, labels, sharpness):
    """Return softmax(sharpness scores), (n, k), with no entry above that of the point's own label.

    Where one is, the row becomes the nearest that has none: the entries above share their mean with
    that of the label.
    """
    p = softmax(sharpness * scores, axis=1)
    rows = np.flatnonzero(p.max(axis=1) > own_scores(p, labels))
    at, own = np.arange(rows.size), labels[rows]
    ranked = p[rows]
    ranked[at, own] = np.inf
    ranked = -np.sort(-ranked, axis=1)
    ranked[:, 0] = p[rows, own]
    # The mean with the largest others grows as long as the next of them is above it.
    level = np.max(np.cumsum(ranked, axis=1) / np.arange(1, p.shape[1] + 1), axis=1)
    p[rows] = np.minimum(p[rows], level[:, None])
    # So that argmax finds the label among those that share.
    p[rows, own] = np.nextafter(level, 1.0)
    return p


def margins(scores, labels):
    """Return half of each point's own score minus the best other one, -1 if there is no other."""
    others = scores.copy()
    np.put_along_axis(others, labels[:, None], -np.inf if scores.shape[1] > 1 else -1.0, axis=1)
    return (own_scores(scores, labels) - others.max(axis=1)) / 2.0
