"""The bias search: the best balanced labels for given scores, and the bias they go with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fastmmc.alternating import _loops as kernels

LOSSES = {"laplace": kernels.LAPLACE, "hinge": kernels.HINGE, "square": kernels.SQUARE}


@dataclass(frozen=True)
class WeightBounds:
    """Least and greatest weight of the points labelled +1, and how the points are weighted."""

    weights: np.ndarray
    lower: float
    upper: float

    def splits(self, cumulative):
        """Return the least and greatest number of points labelled -1.

        ``cumulative`` holds the (n + 1,) sums of the weights in the order of the scores. Where no
        number keeps the bounds, as with a heavy point, it is the one that is nearest to them.
        """
        # A sum that sits on the bound up to rounding is inside it.
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
    """What the bias search found.

    Attributes
    ----------
    y : (n,) float64 array
        Labels -1 and +1.
    bias : float
        The bias b of the least loss.
    loss : float
        sum_i s_i loss(y_i, o_i + b).
    threshold : float
        A bias for which the signs of o + threshold are the labels, where the scores allow it:
        b itself if it does that.
    """

    y: np.ndarray
    bias: float
    loss: float
    threshold: float


def search_bias(scores, bounds, loss, epsilon=0.0, tied=False):
    """Choose the bias and the labels of the least loss under the size bounds, O(n log n).

    The best labels are a split of the sorted scores: exchanging the labels of two points that are
    in the wrong order never raises the loss.

    Parameters
    ----------
    scores : (n,) float64 array
        o_i = w . phi(x_i).
    bounds : WeightBounds
        Allowed splits.
    loss : {"laplace", "hinge", "square"}
        |f - y|, max(0, 1 - y f), (f - y)^2.
    epsilon : float
        Of the Laplacian loss: deviations up to it cost nothing.
    tied : bool
        Whether the labels must be the signs of o + b; equal scores then have equal labels. Else
        the bias is free of the border between the labels.

    Returns
    -------
    Split
        Labels by rank, equal scores in the order of the points.
    """
    order = np.argsort(scores, kind="stable")
    ordered = scores[order]
    weights = bounds.weights[order]
    weight = np.concatenate(([0.0], np.cumsum(weights)))
    # Sums about the middle keep their digits where all scores are large and alike.
    centre = ordered[ordered.size // 2]
    ordered = ordered - centre
    weighted = np.concatenate(([0.0], np.cumsum(weights * ordered)))
    squares = float(weights @ ordered**2)
    first, last = bounds.splits(weight)
    found = kernels.best_split(
        ordered, weight, weighted, squares, first, last, LOSSES[loss], epsilon, tied
    )
    if found[0] < 0:  # tied, and all allowed splits are between equal scores
        found = kernels.best_split(
            ordered, weight, weighted, squares, first, last, LOSSES[loss], epsilon, False
        )
    m, bias, value = found
    y = np.ones(scores.size)
    y[order[:m]] = -1.0
    bias -= centre
    return Split(y, float(bias), max(0.0, float(value)), _threshold(ordered + centre, m, bias))


def _threshold(ordered, m, bias):
    """Return the bias, or the middle between the groups if its signs are not the labels."""
    n = ordered.size
    above = ordered[m] + bias if m < n else np.inf
    below = ordered[m - 1] + bias if m > 0 else -np.inf
    if below < 0.0 < above or not (0 < m < n):
        return float(bias)
    return float(-0.5 * (ordered[m - 1] + ordered[m]))
