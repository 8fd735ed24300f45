"""The vote of the labellings."""

import numpy as np

from fastmmc.choice.results import RULES, Candidate
from fastmmc.data.labels import agreement
from fastmmc.data.sizes import evenness
from fastmmc.rls.engine.groups import mean_of_clusters, predictions, sums_of

# The figures are mean indices of the labels of cells: of 26 tables by four seeds, a suite by two,
# 12 real sets by two, 52 made shapes by two, 45 draws of rings, 32 of latent classes, 60 of
# Gaussians of unequal sizes, and 48 of three clusters in two columns beside a random category.

# An error as good as none. With .0003, .001, .003 and .01 the mean index of the suite is .845,
# .844, .841 and .838, of the real sets .577, .578, .574 and .571, of the tables .401, .404, .404
# and .408, of the shapes .901, .901, .899 and .886, of the rings .93, .95, .93 and .93.
FLOOR = 1e-3

# The same for k-means: where errors are smaller gaps divide the points, and k-means cuts through
# clusters. With .001, .01, .02, .03, .04 and .06 the mean index of the shapes is .892, .893, .892,
# .901, .901 and .902, of the real sets .558, .565, .572, .572, .578 and .578, of the suite .834,
# .840, .839, .841, .844 and .843, of the tables .413, .409, .409, .405, .404 and .401, of the
# clusters beside a category .87, .88, .89, .89, .89 and .88.
MEANS_FLOOR = 0.04

# Power of the distance between a prediction and a label. With 2, 2.5, 3, 3.5 and 4 the mean index
# of the rings is .93, .93, .95, .96 and .96, of the suite .839, .841, .844, .843 and .843, of the
# real sets .566, .571, .578, .578 and .577, of the tables .411, .404, .404, .399 and .396.
DISTANCE = 3.0

# Power of the evenness of the sizes. With 0, .5, 1, 1.5, 2 and 3 the mean index of the suite is
# .829, .835, .844, .844, .842 and .840, of the real sets .540, .551, .578, .578, .578 and .579, of
# the tables .381, .392, .401, .404, .404 and .404, of the shapes .895, .898, .901, .901, .898 and
# .891. With 1 that of iris is .56 in one of 20 draws, where it is .89 in all.
EVENNESS = 1.5

# Power of the agreement of two labellings: those that agree by halves tell little. With 1, 1.5, 2,
# 3 and 4 the mean index of the shapes is .893, .902, .902, .901 and .898, of the tables .402, .399,
# .403, .404 and .402, of the clusters beside a category .89 by all, of the rings .95, .93, .93,
# .95 and .95.
AGREEMENT = 3.0

# Power of how many times a labelling was found, in the weight of each time: many searches find two
# rings, while those that cut across them do so in different places. With 0, .25, .5, .75 and 1 the
# mean index of the rings is .93, .95, .95, .95 and .95, of the suite .841, .844, .843, .838 and
# .836, of the latent classes .816, .816, .809, .802 and .793, of the tables .406, .404, .398, .387
# and .378, of the clusters beside a category .89, .89, .87, .77 and .69. If k-means counted here as
# well, which finds the same from many starts, the index of breast cancer would be .68 in all of
# eight draws, where it is .75 to .77 in seven.
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


def weigh(errors, rules, labellings, k, masses, times, untold=1.0, likelihoods=1.0):
    """Return the candidates' weights, (m,), which sum to 1.

    A power of the evenness of the sizes times the sum over kernels of the roots of 1 / (e f), with
    e and f the errors, (m, kernels, 2), plus the floor, times the likelihoods of what is known,
    (m, kernels), and what single features leave ``untold``, and the fourth root of how many
    ``times`` the labelling was found otherwise than by k-means.
    """
    floors = np.array([MEANS_FLOOR if rule == "k-means" else FLOOR for rule in rules])
    errors = errors + floors[:, None, None]
    weights = np.sum(likelihoods / np.sqrt(np.prod(errors, axis=2)), axis=1)
    weights *= [evenness(labels, k, masses) ** EVENNESS for labels in labellings]
    weights *= untold * times**REPEATS
    return weights / weights.sum()


def vote(found, kernels, k, features, kept):
    """Return the candidates, the most votes first, that which won, and its kernel.

    The judge beside every kernel judges every labelling, and it is predicted with the kernel whose
    judge errs least; ``kept`` tells how likely it makes what is known.
    """
    rules, *_, labellings = zip(*found, strict=True)
    known = {}
    for labels in labellings:
        if (key := labels.tobytes()) not in known:
            errors = [errors_of(judge.groups, labels, k) for _, judge in kernels]
            likely = [kept.likelihood(judge, labels) for _, judge in kernels]
            known[key] = errors, features.untold(labels, k), likely
    judged = [known[labels.tobytes()] for labels in labellings]
    errors, *factors = (np.array(figures) for figures in zip(*judged, strict=True))
    agreements = np.maximum(agreement(labellings, k, features.masses), 0.0)
    searched = np.array([rule != "k-means" for rule in rules])
    times = np.maximum(times_found(agreements[:, searched]), 1)
    weights = weigh(errors, rules, labellings, k, features.masses, times, *factors)
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
