"""The bias search: the best balanced labels for given scores, and their bias."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fastmmc.alternating import _loops as loops

LOSSES = {"laplace": loops.LAPLACE, "hinge": loops.HINGE, "square": loops.SQUARE}


@dataclass(frozen=True)
class WeightBounds:
    """Weights of the points (n,), and the least and greatest weight of those labelled +1."""

    weights: np.ndarray
    lower: float
    upper: float

    def splits(self, cumulative):
        """Return the least and greatest number of points labelled -1.

        ``cumulative`` (n + 1,) has the sums of the weights in the order of the scores. If no number
        keeps the bounds, as with a heavy point, both are the one that comes nearest to them.
        """
        # A sum on the bound up to rounding is inside it.
        total = cumulative[-1]
        slack = 1e-9 * total
        first = int(np.searchsorted(cumulative, total - self.upper - slack, side="left"))
        last = int(np.searchsorted(cumulative, total - self.lower + slack, side="right")) - 1
        if first <= last:
            return first, last
        excess = np.maximum(total - self.upper - cumulative, cumulative - total + self.lower)
        nearest = int(np.argmin(excess))
        return nearest, nearest


@dataclass(frozen=True, eq=False)
class Split:
    """Labels -1 and +1, the best bias b for them, and the loss sum_i s_i loss(y_i, o_i + b).

    ``threshold`` is a bias for which the signs of o + threshold are the labels, where the scores
    allow it: b itself if it does that.
    """

    y: np.ndarray
    bias: float
    loss: float
    threshold: float


def search_bias(scores, bounds, loss, epsilon=0.0, tied=False):
    """Choose the bias and the labels of the least loss under the size bounds, O(n log n).

    The best labels are a split of the sorted scores o_i = w . phi(x_i), equal ones in the order of
    the points: exchanging two labels in the wrong order never raises the loss, which is |f - y|
    ("laplace"; deviations up to epsilon cost nothing), max(0, 1 - y f) ("hinge") or (f - y)^2
    ("square"). Tied labels must be the signs of o + b, so that equal scores have equal labels;
    otherwise the bias is independent of the border between the labels.
    """
    order = np.argsort(scores, kind="stable")
    ordered = scores[order]
    weights = bounds.weights[order]
    weight = np.concatenate(([0.0], np.cumsum(weights)))
    # Centred sums keep their digits if all scores are large and alike.
    centre = ordered[ordered.size // 2]
    ordered = ordered - centre
    weighted = np.concatenate(([0.0], np.cumsum(weights * ordered)))
    squares = float(weights @ ordered**2)
    first, last = bounds.splits(weight)
    given = ordered, weight, weighted, squares, first, last, LOSSES[loss], epsilon
    m, bias, value = loops.best_split(*given, tied)
    if m < 0:  # tied, and all allowed splits are between equal scores
        m, bias, value = loops.best_split(*given, False)
    y = np.ones(scores.size)
    y[order[:m]] = -1.0
    bias -= centre
    return Split(y, float(bias), max(0.0, float(value)), _threshold(ordered + centre, m, bias))


def _threshold(ordered, m, bias):
    """Return the bias, or the middle between the groups if the bias gives other labels."""
    n = ordered.size
    above = ordered[m] + bias if m < n else np.inf
    below = ordered[m - 1] + bias if m > 0 else -np.inf
    if below < 0.0 < above or not (0 < m < n):
        return float(bias)
    return float(-0.5 * (ordered[m - 1] + ordered[m]))
