"""Hat matrices of several widths, from one set of distances."""

import numpy as np

from fastmmc.factors import make_factor
from fastmmc.gram import Kernel, squared_distances
from fastmmc.nystroem import Form
from fastmmc.rls.free import Groups
from fastmmc.rls.genie import Genie
from fastmmc.rls.outliers import without_outlier_scores
from fastmmc.sizes import size_rule

LAM = 0.25

# Share of the time left that one search may take.
SEARCH_SHARE = 0.2


class Width:
    """The hat matrix of one width, and what is done on it."""

    def __init__(self, X, sigma, run):
        self.sigma = sigma
        kernel = Kernel("rbf", sigma=sigma)
        self.factor = make_factor(X, LAM, kernel, Form(), run.seed, run.look)
        self.points = Groups.of_points(self.factor.R)
        self._run = run

    def search(self, k, **params):
        """Return objective and labels of a search."""
        with without_outlier_scores():
            result = self._run.cluster(self.factor, k, SEARCH_SHARE, **params)
        return result.objective, result.labels

    def descend(self, labels, k):
        """Return size-free cost and labels of a descent by single points."""
        labels, cost, _ = self.points.descend(labels, size_rule(labels.size, k))
        return cost, labels

    def refine(self, labels, k):
        """Return size-free cost and labels of a descent by groups and points."""
        labels, cost, _ = self.points.refine(labels, size_rule(labels.size, k))
        return cost, labels

    def error(self, labels, k):
        """Return the leave-one-out error, a mean over clusters."""
        return self.points.error(labels, size_rule(labels.size, k))


class Chooser:
    """The points that the choice is made on, and what all labellings of them share."""

    def __init__(self, X, run):
        self.X = X
        self.run = run
        self._distances = squared_distances(X, X)
        np.fill_diagonal(self._distances, 0.0)
        self.genie = Genie(self._distances)

    def width(self, m):
        """Return the width whose square is the median squared distance to the m-th neighbour."""
        n = self.X.shape[0]
        m = min(max(1, round(m)), n - 1)
        ranked = np.partition(self._distances, m, axis=1)[:, m]
        sigma = float(np.sqrt(np.median(ranked) or ranked.mean() or 1.0))
        return Width(self.X, sigma, self.run)
