"""The bias search: the best balanced labels for given scores, and their bias."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


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


class Split(NamedTuple):
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
    ("square"). Where weights differ, an exchange may break the bounds, and other labels may be
    better than the best split. Tied labels must be the signs of o + b, so that equal scores have
    equal labels; otherwise the bias is independent of the border between the labels.
    """
    order = np.argsort(scores, kind="stable")
    # Centred sums keep their digits if all scores are large and alike.
    centre = scores[order[order.size // 2]]
    ranked = _Ranked(scores[order] - centre, bounds.weights[order], loss, epsilon)
    first, last = bounds.splits(ranked.weight)
    splits = np.arange(first, last + 1)
    if tied:  # a border between equal scores gives others no labels of their own
        splits = splits[ranked.edges[splits] < ranked.edges[splits + 1]]
        tied = splits.size > 0
        splits = splits if tied else np.arange(first, last + 1)
    m, bias, value = ranked.best_split(splits, tied)
    y = np.ones(scores.size)
    y[order[:m]] = -1.0
    bias = float(bias - centre)
    return Split(y, bias, max(value, 0.0), _threshold(scores[order], m, bias))


class _Ranked:
    """Scores by rank, with prefix sums of the weights and of weights times scores, (n + 1,)."""

    def __init__(self, scores, weights, loss, epsilon):
        self.scores, self.weights, self.loss, self.epsilon = scores, weights, loss, epsilon
        self.weight = np.concatenate(([0.0], np.cumsum(weights)))
        self.weighted = np.concatenate(([0.0], np.cumsum(weights * scores)))
        self.edges = np.concatenate(([-np.inf], scores, [np.inf]))

    def best_split(self, splits, tied):
        """Return the first of these splits of the least loss, its bias, and the loss.

        At a bias the best labels are the signs of o + b, as far as the bounds go; and the best bias
        of labels is at a kink of their loss, or beside it. So every kink is tried, O(n log n).
        """
        first, last = splits[0], splits[-1]
        if self.loss == "square":
            m, b = splits, self._flat(splits)[0]
            b = np.clip(b, *self._piece(m, m)) if tied else b
        else:
            b = self._kinks(self._flat(last)[0], self._flat(first)[1])
            b = np.clip(b, *self._piece(first, last)) if tied else b
            m = np.clip(np.searchsorted(self.scores, -b), first, last)
        values = self._losses(m, b)
        values[np.isnan(values)] = np.inf  # numbers too large to tell
        best = np.argmin(values)
        m, value = int(m[best]), float(values[best])
        bias = np.mean(self._flat(m))  # the middle of the best ones
        return m, np.clip(bias, *self._piece(m, m)) if tied else bias, value

    def _kinks(self, low, high):
        """Return the biases from ``low`` to ``high`` where the loss of a point bends, falling."""
        values = np.concatenate((-1.0 - self.scores, 1.0 - self.scores))
        if self.epsilon > 0.0:
            values = np.concatenate((values - self.epsilon, values + self.epsilon))
        return np.sort(values[~((values < low) | (values > high))])[::-1]  # NaN stays in

    def _piece(self, first, last):
        """Return the biases between which the signs are these splits."""
        return -self.edges[last + 1], -self.edges[first]

    def _losses(self, m, b):
        """Return the losses of the splits m at the biases b."""
        total, n = self.weight[-1], self.scores.size
        if self.loss == "square":
            cross = self.weighted[-1] - 2.0 * self.weighted[m] + b * (total - 2.0 * self.weight[m])
            squares = self.weights @ self.scores**2
            return squares + 2.0 * b * self.weighted[-1] + b * b * total - 2.0 * cross + total
        low, high = 1.0 - self.epsilon, 1.0 + self.epsilon
        found = self._sum(m, 0, m, b + low) + self._sum(m, m, n, b - low)
        if self.loss == "laplace":
            found += self._sum(0, 0, m, b + high) + self._sum(n, m, n, b - high)
        return found

    def _sum(self, end, low, high, b):
        """Return sum s_i (o_i + b) from rank ``end`` to where o_i + b is 0, among low..high."""
        at = np.clip(np.searchsorted(self.scores, -b), low, high)
        return self.weighted[end] - self.weighted[at] + b * (self.weight[end] - self.weight[at])

    def _flat(self, m):
        """Return the least and greatest of the best biases of a split."""
        total, n = self.weight[-1], self.scores.size
        if self.loss == "square":
            b = (total - 2.0 * self.weight[m] - self.weighted[-1]) / total
            return b, b
        values, weights = np.where(np.arange(n) < m, -1.0, 1.0) - self.scores, self.weights
        # The loss falls while the kinks below weigh less than this.
        half = total - self.weight[m]
        if self.loss == "laplace":
            values = np.concatenate((values - self.epsilon, values + self.epsilon))
            weights, half = np.concatenate((weights, weights)), total
        order = np.argsort(values, kind="stable")
        below = np.cumsum(weights[order])
        places = [np.searchsorted(below, half, side) for side in ("left", "right")]
        return values[order[np.minimum(places, order.size - 1)]]


def _threshold(ordered, m, bias):
    """Return the bias, or the middle between the groups if the bias gives other labels."""
    n = ordered.size
    above = ordered[m] + bias if m < n else np.inf
    below = ordered[m - 1] + bias if m > 0 else -np.inf
    # A bias that is right but for rounding need not be for the model, which rounds otherwise.
    rounding = 1e-9 * (above - below)
    if below < -rounding < rounding < above or not (0 < m < n):
        return float(bias)
    return float(-0.5 * (ordered[m - 1] + ordered[m]))
