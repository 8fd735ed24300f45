"""The vote of the labellings."""

import numpy as np

from fastmmc.choice.results import RULES, Candidate
from fastmmc.data.labels import agreement
from fastmmc.data.sizes import imbalance
from fastmmc.rls.engine.groups import mean_of_clusters, predictions, sums_of

# The figures are mean indices of the labels of cells: of 26 tables by four seeds, a suite by two,
# 12 real sets by two, 52 made shapes by two, 160 draws of rings and 64 of latent classes.

# An error as good as none. With .0001, .0003, .001, .003 and .01 the mean index of the suite is
# .838, .842, .842, .839 and .838, of the real sets .559, .573, .573, .573 and .572, of the shapes
# .877, .877, .881, .885 and .885, of the tables .392, .393, .396, .399 and .400, of the rings .81,
# .81, .82, .84 and .84.
FLOOR = 1e-3

# An error up to which k-means has little say: gaps divide the points. With .01, .02, .03, .04, .05
# and .07 the mean index of the tables is .402, .401, .401, .396, .396 and .394, of the suite .836,
# .834, .839, .842, .842 and .842, of the real sets .563, .565, .573, .573, .574 and .574, of the
# rings .80, .81, .82, .82, .82 and .82.
MEANS = 0.04

# Power of the distance between a prediction and a label. With 2, 2.5, 3, 3.5 and 4 the mean index
# of the rings is .79, .81, .82, .83 and .84, of the suite .836, .838, .842, .842 and .842, of the
# real sets .561, .569, .573, .574 and .574, of the tables .403, .401, .396, .390 and .390.
DISTANCE = 3.0

# Power of the price of unequal sizes. With 1, 1.5, 2, 2.5 and 3 the mean index of the tables is
# .389, .392, .396, .396 and .400, of the suite .838, .840, .842, .842 and .842, of the shapes .878,
# .878, .881, .887 and .887, of the rings .83, .82, .82, .81 and .81.
PRICE = 2.0

# Power of the agreement of two labellings: those that agree by halves tell little. With 1, 2, 3 and
# 4 the mean index of the rings is .79, .82, .84 and .84, of the tables .401, .396, .396 and .395,
# of the suite .841, .842, .842 and .840, of the latent classes .655, .652, .645 and .646.
AGREEMENT = 2.0

# Power of how many times a labelling was found, in the weight of each time: many searches find two
# rings, while those that cut across them do so in different places. With 0, .25, .5, .75 and 1 the
# mean index of the rings is .64, .77, .82, .84 and .87, of the suite .836, .841, .842, .841 and
# .834, of the real sets .568, .573, .573, .573 and .573, of the tables .399, .394, .396, .392 and
# .378, of the latent classes .657, .657, .652, .650 and .635. If k-means counted here as well,
# which finds the same from many starts, the index of breast cancer would be .68 in five of eight
# draws, where it is .75 to .77 in all.
REPEATS = 0.5


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

    exp(-2 imbalance) times the sum over kernels of the roots of 1 / (e f), with e and f the errors,
    (m, kernels, 2), above the floor, times the likelihoods of what is known, (m, kernels), and the
    root of how many ``times`` the labelling was found otherwise than by k-means. With c = MEANS,
    e + c^2 / e takes the place of e for k-means.
    """
    errors = errors + FLOOR
    means = np.array([rule == "k-means" for rule in rules])
    errors[means] += MEANS**2 / errors[means]
    weights = np.sum(likelihoods / np.sqrt(np.prod(errors, axis=2)), axis=1)
    weights *= [np.exp(-PRICE * imbalance(labels, k, masses)) for labels in labellings]
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
