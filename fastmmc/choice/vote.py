"""The vote of the labellings."""

from __future__ import annotations

import numpy as np

from fastmmc.choice.results import Candidate
from fastmmc.data.labels import agreement
from fastmmc.data.sizes import imbalance
from fastmmc.rls.engine.groups import mean_of_clusters, predictions

# An error below this is as good as none. With .0001, .001, .003 and .01 the mean index of a suite
# is .840, .840, .840 and .823, of 26 tables .398, .402, .402 and .402, of pairs of rings .90, .92,
# .94 and .97, of 52 made shapes .902, .902, .897 and .894 (four seeds, as below).
FLOOR = 1e-3

# That of k-means, which has no say where gaps divide the points. With .001, .03, .04, .05, .1 and
# .2 the mean index of the tables is .402, .402, .402, .400, .397 and .367, of the suite .829, .838,
# .840, .840, .840 and .837, of 12 real sets .558, .578, .578, .578, .578 and .581.
MEANS_FLOOR = 0.04

# Power of the price of unequal sizes. With 1, 1.5, 2 and 2.5 the mean index of the tables is .381,
# .395, .402 and .404, of the suite .838, .840, .840 and .839, of the shapes .900, .901, .902, .899.
PRICE = 2.0

# Power of the agreement of two labellings: those that agree by halves tell little. With 1, 2, 3 and
# 4 the mean index of the suite is .822, .839, .840 and .839, of the tables .405, .403, .402 and
# .400, of rings .78, .89, .92 and .92, of the shapes .895, .901, .902 and .897.
AGREEMENT = 3.0

# Of equal labellings the one comes first that a search found, and so cannot improve.
ORDER = ("free", "near", "smoothed", "k-means", "genie")


def errors_of(groups, labels, k):
    """Return two leave-one-out errors of labels: by the predictions and by their shares.

    Each is the mean over clusters of the mean squared distance between what is predicted of their
    points and the indicators of these; 1 for an empty cluster. If columns are compared in place of
    points, the mean index of the tables is .400.

    Shares are the predictions, cut at 0 and divided by their sums over the clusters. Where a point
    has few neighbours all predictions of it are near 0, whatever the labels are; the shares are
    not.
    """
    L, E = predictions(groups, labels, k)
    counts = np.bincount(labels, groups.masses, k)
    squares = [groups.masses * np.sum((found - E) ** 2, axis=1) for found in (L, shares_of(L))]
    return [mean_of_clusters(np.bincount(labels, of_each, k), counts) for of_each in squares]


def shares_of(L):
    """Return predictions, (g, k), cut at 0 and divided by their sums over the clusters."""
    shares = np.maximum(L, 0.0)
    total = shares.sum(axis=1, keepdims=True)
    return np.where(total > 1e-12, shares / np.maximum(total, 1e-12), 1.0 / L.shape[1])


def weigh(errors, rules, labellings, k, masses, likelihoods=1.0):
    """Return the candidates' weights, (m,), which sum to 1.

    exp(-2 imbalance) times the sum over kernels of the roots of 1 / (error + floor) of both
    errors, (m, kernels, 2), times the likelihoods of what is known, (m, kernels).
    """
    floors = np.array([MEANS_FLOOR if rule == "k-means" else FLOOR for rule in rules])
    products = np.prod(errors + floors[:, None, None], axis=2)
    weights = np.sum(likelihoods / np.sqrt(products), axis=1)
    weights *= [np.exp(-PRICE * imbalance(labels, k, masses)) for labels in labellings]
    return weights / weights.sum()


def vote(found, kernels, judges, k, masses, kept):
    """Return the candidates, the most votes first.

    The judge in the place of every kernel judges every labelling; ``kept`` tells how likely it
    makes what is known.
    """
    rules, *_, labellings = zip(*found, strict=True)
    known = {}
    for labels in labellings:
        if (key := labels.tobytes()) not in known:
            errors = [errors_of(judge.groups, labels, k) for judge in judges]
            known[key] = errors, [kept.likelihood(judge, labels) for judge in judges]
    judged = [known[labels.tobytes()] for labels in labellings]
    errors, likely = (np.array(figures) for figures in zip(*judged, strict=True))
    weights = weigh(errors, rules, labellings, k, masses, likely)
    votes = np.maximum(agreement(labellings, k, masses), 0.0) ** AGREEMENT @ weights
    at_kernel = np.sqrt(np.prod(errors, axis=2))
    candidates = []
    for i, (rule, g, labels) in enumerate(found):
        best = int(at_kernel[i].argmin())
        width = kernels[best]
        candidates.append(
            Candidate(
                f"{rule} sigma={width.sigma:.3g}" + ("" if g is None else f" gini={g:g}"),
                width.sigma,
                width.factor.lam,
                rule,
                float(at_kernel[i, best]),
                float(weights[i]),
                float(votes[i]),
                labels,
            )
        )
    return sorted(candidates, key=lambda one: (-round(one.vote, 9), ORDER.index(one.rule)))
