"""The vote of the labellings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fastmmc.choice.results import RULES, Candidate
from fastmmc.data.labels import agreement
from fastmmc.data.sizes import imbalance
from fastmmc.rls.engine.groups import mean_of_clusters, predictions

# The figures are mean indices of the labels of cells: of 26 tables by six seeds, a suite by four,
# 12 real sets by three, 52 made shapes by three, 205 draws of rings and 128 of latent classes.

# An error as good as none. With .0001, .0003, .001, .003 and .01 the mean index of the suite is
# .839, .841, .841, .839 and .822, of the shapes .879, .881, .884, .878 and .878, of the rings .74,
# .74, .75, .77 and .77; that of the tables is .396 to .400.
FLOOR = 1e-3

# An error up to which k-means has little say: gaps divide the points. With .01, .02, .03, .04, .05
# and .07 the mean index of the tables is .402, .402, .398, .398, .397 and .389, of the suite .831,
# .838, .840, .841, .840 and .840, of the real sets .564, .572, .571, .578, .578 and .579, of the
# latent classes .828, .828, .828, .827, .822 and .816.
MEANS = 0.04

# Power of the distance between a prediction and a label. With 2, 2.5, 3, 3.5 and 4 the mean index
# of the rings is .66, .72, .75, .77 and .79, of the tables .402, .398, .398, .398 and .395, of the
# latent classes .827, .828, .827, .820 and .817; that of the suite is .836 to .841.
DISTANCE = 3.0

# Power of the price of unequal sizes. With 1, 1.5, 2, 2.5 and 3 the mean index of the tables is
# .393, .396, .398, .401 and .401, of the suite .838, .841, .841, .840 and .836, of the shapes .879,
# .882, .884, .882 and .872, of the rings .78, .76, .75, .76 and .73.
PRICE = 2.0

# Power of the agreement of two labellings: those that agree by halves tell little. With 1, 2, 3 and
# 4 the mean index of the suite is .832, .840, .841 and .840, of the tables .404, .399, .398 and
# .396, of the rings .59, .70, .75 and .78, of the shapes .882, .884, .884 and .882.
AGREEMENT = 3.0


def errors_of(groups, labels, k):
    """Return two leave-one-out errors of labels: by the predictions and by their shares.

    Each is the mean over clusters of the mean cubed distance between what is predicted of their
    points and the indicators of these; 1 for an empty cluster. So the points on a cut through a
    cluster count more than the many beside a narrow gap, each of which is missed by little.

    Shares are the predictions, cut at 0 and divided by their sums over the clusters. Where a point
    has few neighbours all predictions of it are near 0, whatever the labels are; the shares are
    not.
    """
    L, E = predictions(groups, labels, k)
    counts = np.bincount(labels, groups.masses, k)
    cubes = [np.linalg.norm(found - E, axis=1) ** DISTANCE for found in (L, shares_of(L))]
    sums = [np.bincount(labels, groups.masses * of_each, k) for of_each in cubes]
    return [mean_of_clusters(total, counts) for total in sums]


def shares_of(L):
    """Return predictions, (g, k), cut at 0 and divided by their sums over the clusters."""
    shares = np.maximum(L, 0.0)
    total = shares.sum(axis=1, keepdims=True)
    return np.where(total > 1e-12, shares / np.maximum(total, 1e-12), 1.0 / L.shape[1])


def weigh(errors, rules, labellings, k, masses, likelihoods=1.0):
    """Return the candidates' weights, (m,), which sum to 1.

    exp(-2 imbalance) times the sum over kernels of the roots of 1 / (e f), with e and f the errors,
    (m, kernels, 2), above the floor, times the likelihoods of what is known, (m, kernels). With c =
    MEANS, e + c^2 / e takes the place of e for k-means.
    """
    errors = errors + FLOOR
    means = np.array([rule == "k-means" for rule in rules])
    errors[means] += MEANS**2 / errors[means]
    weights = np.sum(likelihoods / np.sqrt(np.prod(errors, axis=2)), axis=1)
    weights *= [np.exp(-PRICE * imbalance(labels, k, masses)) for labels in labellings]
    return weights / weights.sum()


def vote(found, kernels, judges, k, masses, kept):
    """Return the candidates, the most votes first, and the one that won, with a majority's labels.

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
    agreements = np.maximum(agreement(labellings, k, masses), 0.0) ** AGREEMENT
    votes = agreements @ weights
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
    of_rules = [(*RULES, "genie").index(rule) for rule in rules]
    order = np.lexsort((of_rules, -np.round(votes, 9)))
    first = next(i for i in order if rules[i] in RULES)
    labels = by_majority(labellings[first], labellings, weights * agreements[first], k, masses)
    return [candidates[i] for i in order], replace(candidates[first], labels=labels)


def by_majority(labels, labellings, weights, k, masses):
    """Return where the majority of labellings puts each cell, among the clusters of ``labels``.

    A cluster of another labelling speaks for these by the shares that it has in each. A majority
    that leaves no cluster empty raises the mean index of the tables by .0025 (standard error
    .0014), of the real sets by .003 (.0013), and changes that of the others by less than .001.
    """
    said = np.zeros((labels.size, k))
    for other, weight in zip(labellings, weights, strict=True):
        together = np.bincount(other * k + labels, masses, k * k).reshape(k, k)
        said += (weight * together / np.maximum(together.sum(axis=1, keepdims=True), 1e-300))[other]
    found = said.argmax(axis=1)
    return found if np.unique(found).size == np.unique(labels).size else labels
