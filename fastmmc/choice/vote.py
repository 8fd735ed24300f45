"""The vote of the labellings."""

import numpy as np

from fastmmc.choice.results import RULES, Candidate
from fastmmc.data.labels import agreement
from fastmmc.data.sizes import evenness
from fastmmc.rls.engine.groups import mean_of_clusters, predictions, sums_of

# The figures are mean indices of the labels of cells: of 26 tables by four seeds, a suite by two,
# 12 real sets by two, 52 made shapes by two, 45 draws of rings, 32 of latent classes and 60 of
# Gaussians of unequal sizes.

# An error as good as none, and the square of one up to which k-means has little say. With .0003,
# .001, .003 and .01 the mean index of the suite is .831, .842, .842 and .843, of the real sets
# .538, .570, .576 and .576, of the tables .402, .404, .402 and .397, of the shapes .890, .900, .902
# and .897, of the rings .95, .95, .93 and .93. If k-means has its say at all errors, those with
# .001 are .835, .553, .404, .888 and .93.
FLOOR = 1e-3

# Power of the distance between a prediction and a label. With 2, 2.5, 3, 3.5 and 4 the mean index
# of the rings is .93, .93, .95, .95 and .96, of the suite .840, .841, .842, .842 and .837, of the
# real sets .564, .565, .570, .576 and .563, of the tables .408, .407, .404, .398 and .395.
DISTANCE = 3.0

# Power of the agreement of two labellings: those that agree by halves tell little. With 1, 1.5, 2,
# 3 and 4 the mean index of the rings is .94, .93, .95, .95 and .95, of the tables .405, .408, .404,
# .401 and .401, of the shapes .898, .899, .900, .900 and .894.
AGREEMENT = 2.0

# Power of how many times a labelling was found, in the weight of each time: many searches find two
# rings, while those that cut across them do so in different places. With 0, .25, .5, .75 and 1 the
# mean index of the rings is .93, .95, .95, .95 and .95, of the suite .839, .842, .842, .841 and
# .832, of the real sets .565, .570, .571, .571 and .573, of the tables .410, .404, .399, .394 and
# .383, of the latent classes .816, .816, .816, .808 and .805. If k-means counted here as well,
# which finds the same from many starts, the index of breast cancer would be .68 in five of eight
# draws, where it is .75 to .77 in all.
REPEATS = 0.25


def errors_of(groups, labels, k, sums=None):
    """Return two leave-one-out errors of labels: by the predictions and by their shares.

    ``sums`` (k, g) are the rows of the matrix, summed over the clusters, if they are known.

    Each is the mean over clusters of the mean cubed distance between what is predicted of their
    points and the indicators of these; 1 for an empty cluster. So the points on a cut through a
    cluster count more than the many beside a narrow gap, each of which is missed by little.

    Shares are the predictions, cut at 0 and divided by their sums over the clusters. Where a point
    has few neighbours all predictions of it are near 0, whatever the labels are; the shares are
    not.
    """
    sums = sums_of(groups.matrix, labels, k) if sums is None else sums
    L, E = predictions(groups, labels, sums)
    counts = np.bincount(labels, groups.masses, k)
    cubes = [np.linalg.norm(found - E, axis=1) ** DISTANCE for found in (L, shares_of(L))]
    sums = [np.bincount(labels, groups.masses * of_each, k) for of_each in cubes]
    return [mean_of_clusters(total, counts) for total in sums]


def shares_of(L):
    """Return predictions, (g, k), cut at 0 and divided by their sums over the clusters."""
    shares = np.maximum(L, 0.0)
    total = shares.sum(axis=1, keepdims=True)
    return np.where(total > 1e-12, shares / np.maximum(total, 1e-12), 1.0 / L.shape[1])


def times_found(agreements):
    """Return how many of some labellings each one is equal to, from their agreements."""
    return np.sum(agreements > 1.0 - 1e-9, axis=1)


def weigh(errors, rules, labellings, k, masses, times, likelihoods=1.0):
    """Return the candidates' weights, (m,), which sum to 1.

    The evenness of the sizes times the sum over kernels of the roots of 1 / (e f), with e and f the
    errors, (m, kernels, 2), plus the floor, times the likelihoods of what is known, (m, kernels),
    and the fourth root of how many ``times`` the labelling was found otherwise than by k-means. An
    error of k-means is raised by the floor over it: where errors are small, gaps divide the points,
    and k-means cuts through clusters.
    """
    errors = errors + FLOOR
    means = np.array([rule == "k-means" for rule in rules])
    errors[means] += FLOOR / errors[means]
    weights = np.sum(likelihoods / np.sqrt(np.prod(errors, axis=2)), axis=1)
    # By the powers 0, .5, 1, 1.5 and 2 of the evenness the mean index of the suite is .834, .834,
    # .842, .841 and .841, of the real sets .544, .545, .570, .574 and .570, of the tables .393,
    # .397, .404, .412 and .403, of the rings .95, .95, .95, .93 and .93, of the Gaussians .99.
    weights *= [evenness(labels, k, masses) for labels in labellings]
    weights *= times**REPEATS
    return weights / weights.sum()


def vote(found, kernels, k, masses, kept):
    """Return the candidates, the most votes first, that which won, and its kernel.

    The judge beside every kernel judges every labelling, and it is predicted with the kernel whose
    judge errs least; ``kept`` tells how likely it makes what is known.
    """
    rules, *_, labellings = zip(*found, strict=True)
    known = {}
    for labels in labellings:
        if (key := labels.tobytes()) not in known:
            errors = [errors_of(judge.groups, labels, k) for _, judge in kernels]
            known[key] = errors, [kept.likelihood(judge, labels) for _, judge in kernels]
    judged = [known[labels.tobytes()] for labels in labellings]
    errors, likely = (np.array(figures) for figures in zip(*judged, strict=True))
    agreements = np.maximum(agreement(labellings, k, masses), 0.0)
    searched = np.array([rule != "k-means" for rule in rules])
    times = np.maximum(times_found(agreements[:, searched]), 1)
    weights = weigh(errors, rules, labellings, k, masses, times, likely)
    votes = agreements**AGREEMENT @ weights
    at_kernel = np.sqrt(np.prod(errors, axis=2))
    widths = [kernels[best][0] for best in at_kernel.argmin(axis=1)]
    figures = np.column_stack((at_kernel.min(axis=1), weights, votes)).tolist()
    candidates = [
        Candidate(
            f"{rule} sigma={width.sigma:.3g}" + ("" if g is None else f" gini={g:g}"),
            width.sigma,
            width.lam,
            rule,
            *of_labels,
            labels,
        )
        for (rule, g, labels), width, of_labels in zip(found, widths, figures, strict=True)
    ]
    of_rules = [(*RULES, "genie").index(rule) for rule in rules]
    order = np.lexsort((of_rules, -np.round(votes, 9)))
    first = next(i for i in order if rules[i] in RULES)
    return [candidates[i] for i in order], candidates[first], widths[first]
