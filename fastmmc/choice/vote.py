"""The vote of the labellings."""

from __future__ import annotations

import numpy as np

from fastmmc.choice.results import Candidate
from fastmmc.labels import agreement
from fastmmc.sizes import imbalance

# An error below this is as good as none.
LEAST_ERROR = 1e-6


def weigh(errors, labellings, rules, k, masses, power=1.0):
    """Return the candidates' weights, (m,), which sum to 1.

    error^-power exp(-imbalance), over the number of candidates of the same rule.
    """
    weights = np.maximum(errors, LEAST_ERROR) ** -power
    for i, labels in enumerate(labellings):
        weights[i] *= np.exp(-imbalance(labels, k, masses)) / rules.count(rules[i])
    return weights / weights.sum()


def judge(found, widths, k):
    """Return labellings with the widths that they are judged at: Genie's clusters at their best."""
    judged = []
    for rule, f, width, g, labels in found:
        if width is None:
            f, width = min(widths.items(), key=lambda pair: pair[1].groups.error(labels, k))
        judged.append((rule, f, width, g, labels))
    return judged


def vote(found, k, masses, power=1.0):
    """Return the candidates, the most votes first."""
    rules = [rule for rule, *_ in found]
    labellings = [labels for *_, labels in found]
    errors = np.array([width.groups.error(labels, k) for _, _, width, _, labels in found])
    weights = weigh(errors, labellings, rules, k, masses, power)
    votes = agreement(labellings, k, masses) @ weights
    candidates = []
    figures = np.column_stack((errors, weights, votes)).tolist()
    for (rule, f, width, g, labels), of_one in zip(found, figures, strict=True):
        name = f"{rule} f={f:g}" + ("" if g is None else f" gini={g:g}")
        candidates.append(Candidate(name, f, width.sigma, rule, *of_one, labels))
    return sorted(candidates, key=lambda one: -one.vote)
