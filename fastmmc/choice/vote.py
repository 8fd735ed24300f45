"""The vote of the labellings."""

from __future__ import annotations

import numpy as np

from fastmmc.choice.results import Candidate
from fastmmc.data.labels import agreement
from fastmmc.data.sizes import imbalance
from fastmmc.rls.engine.groups import mean_error, predictions

# An error below this is as good as none.
FLOOR = 1e-3

# That of k-means, which has no say where gaps divide the points. With .001, .03, .05, .1 and .2 the
# mean index of 26 tables is .405, .404, .404, .390 and .372, of a suite .829, .833, .836, .836 and
# .836, of 12 real sets .556, .569, .579, .578 and .578 (six seeds, as below).
MEANS_FLOOR = 0.05

# Power of the price of unequal sizes. With 1, 1.5, 2 and 2.5 the mean index of the tables is .388,
# .396, .404 and .405, of the suite .836, .836, .836 and .825.
PRICE = 2.0

# Power of the agreement of two labellings: those that agree by halves tell little. With 1, 2 and 3
# the mean index of the suite is .818, .836 and .838, of the tables .402, .404 and .401.
AGREEMENT = 2.0

# Of equal labellings the one comes first that a search found, and so cannot improve.
ORDER = ("free", "near", "smoothed", "k-means", "genie")


def errors_of(groups, labels, k):
    """Return two leave-one-out errors of labels: by the predictions and by their shares.

    The latter are the predictions, cut at 0 and divided by their sums over the clusters. Where a
    point has few neighbours all predictions of it are near 0, whatever the labels are; the shares
    are not.
    """
    L, E = predictions(groups, labels, k)
    counts = np.bincount(labels, groups.masses, k)
    return [mean_error(found - E, counts, groups.masses) for found in (L, shares_of(L))]


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
