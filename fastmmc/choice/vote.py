"""The vote of the labellings, and the borders that all widths draw."""

from dataclasses import replace

import numpy as np

from fastmmc.choice.results import Candidate
from fastmmc.labels import agreement
from fastmmc.sizes import imbalance, size_rule

# An error below this is as good as none.
LEAST_ERROR = 1e-6

# Power of the error in the weights.
POWER = 2.0

# The adjusted Rand index with the winner above which labels are still the same clusters, of which
# points have changed only where the clusters touch.
ALIKE = 0.9


def judge(of_genie, widths, k):
    """Return Genie's clusters, each at the width at which its error is least."""
    found = []
    for g, labels in of_genie.items():
        f, width = min(widths.items(), key=lambda pair: pair[1].error(labels, k))
        found.append(("genie", f, width, g, labels))
    return found


def weigh(errors, labellings, rules, k, power=POWER):
    """Return the candidates' weights, (m,), which sum to 1.

    error^-power exp(-imbalance), over the number of candidates of the same rule.
    """
    weights = np.maximum(errors, LEAST_ERROR) ** -power
    for i, labels in enumerate(labellings):
        weights[i] *= np.exp(-imbalance(labels, k)) / rules.count(rules[i])
    return weights / weights.sum()


def vote(found, k, power=POWER):
    """Return the candidates, the most votes first."""
    rules = [rule for rule, *_ in found]
    labellings = [labels for *_, labels in found]
    errors = np.array([width.error(labels, k) for _, _, width, _, labels in found])
    weights = weigh(errors, labellings, rules, k, power)
    votes = agreement(labellings, k) @ weights
    candidates = []
    figures = np.column_stack((errors, weights, votes)).tolist()
    for (rule, f, width, g, labels), of_one in zip(found, figures, strict=True):
        name = f"{rule} f={f:g}" + ("" if g is None else f" gini={g:g}")
        candidates.append(Candidate(name, f, width.sigma, rule, *of_one, labels))
    return sorted(candidates, key=lambda one: -one.vote)


def join_widths(winner, widths, k):
    """Return the winner as all widths together draw its borders.

    Its labels descend in the size-free cost added over the widths, then at the width that changes
    fewest points of them. Where that makes other clusters, the winner stays as it is.
    """
    points = widths[winner.f].points
    matrix = np.zeros_like(points.matrix)
    for width in widths.values():
        matrix += width.factor.R
    joint = replace(points, matrix=matrix).descend(winner.labels, size_rule(points.n, k))[0]
    settled = {f: width.descend(joint, k)[1] for f, width in widths.items()}
    f = max(widths, key=lambda f: np.count_nonzero(settled[f] == joint))
    alike = agreement([winner.labels, settled[f]], k)[0, 1]
    if alike <= ALIKE or np.array_equal(winner.labels, settled[f]):
        return winner
    return replace(winner, f=f, sigma=widths[f].sigma, rule="polished", labels=settled[f])
