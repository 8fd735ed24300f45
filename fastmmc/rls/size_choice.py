"""Sizes that nobody told: labels of about equal sizes, unless others are predicted far better."""

from __future__ import annotations

from operator import itemgetter

import numpy as np

from fastmmc.rls.free import Population, mean_error
from fastmmc.rls.genie import Genie
from fastmmc.rls.memetic import MemeticSearches
from fastmmc.sizes import imbalance

# Labels of other sizes must have less than this share of the error of those of about equal sizes.
FAR_BETTER = 0.5

# Neighbours whose labels predict that of a point, too.
NEIGHBOURS = 10


class SizeChoice(Population):
    """The population of free sizes, and labels of about equal sizes that descend to free ones.

    The latter are taken unless the best of the population, or of descents from Genie's clusters,
    has less than half of their error: the leave-one-out error of the clusters' indicators, or that
    of a vote of the nearest neighbours where it is lower, times exp(imbalance / 2). In many
    dimensions the cost of free sizes is least at sizes that mean nothing; their error is lower
    then, but not by half.
    """

    def __init__(self, points, plan, index, rng):
        super().__init__(points, plan, index, rng)
        self._near = MemeticSearches(points.matrix, plan.near, plan.n_near, rng)
        self._polished = self._chosen = None
        self.neighbours = None

    def run(self):
        """Search; yield at the end of each slice."""
        for fraction in self._near.run():
            self.fraction = 0.4 * fraction
            yield
        yield from self._polish()
        distances = angles(self.points.matrix)
        genie, others = Genie(distances), []
        self.neighbours = self._neighbours(distances)
        yield
        for labels in genie.cut(self.plan.k).values():
            others.append(self._descend(self.feasible(labels)))
            yield
        for _ in super().run():
            self.fraction = 0.5 + 0.5 * self.fraction
            yield
        self._choose([*others, self.best[1]])

    def _polish(self):
        """Let the labels of about equal sizes descend; yield at the end of each slice."""
        self._polished = self._descend(self._end_near())
        yield

    def _end_near(self):
        """Return the best labels of about equal sizes so far, None if there are none."""
        labels = self._near.finish()
        self.n_iter += self._near.n_iter
        self.n_moves += self._near.n_moves
        return labels

    def _descend(self, labels):
        labels, _, made = self.points.descend(labels, self.plan.rule)
        self.n_moves += made
        return labels

    def _neighbours(self, distances):
        """Return the nearest neighbours of each point; the diagonal of the distances is lost."""
        return nearest(distances)

    def _choose(self, others):
        """Take the best labels of other sizes if they are far better than the polished ones."""
        error = self._error(self._polished)
        priced = [(self._error(labels), labels) for labels in others]
        best = min(priced, key=itemgetter(0))
        self._chosen = best[1] if best[0] < FAR_BETTER * error else self._polished

    def _error(self, labels):
        """Return the lower of the two errors of labels."""
        return min(priced_errors(self.points, labels, self.neighbours, self.plan.rule))

    def finish(self):
        """Return the labels that were chosen, or the best there are if the search was stopped."""
        if self._chosen is not None:
            return self._chosen
        if self._polished is not None:
            return self._polished
        labels = self._end_near()
        return super().finish() if labels is None else labels


def priced_errors(points, labels, neighbours, rule):
    """Return the errors of labels by the hat matrix and by the neighbours of each point.

    They are the leave-one-out errors of the clusters' indicators, priced by how unequal the sizes
    are.
    """
    k, weights = rule.lower.size, points.weights
    counts = np.bincount(labels, weights, k)
    E = (labels[:, None] == np.arange(k)).astype(np.float64)
    by_neighbours = mean_error(E[neighbours].mean(axis=1) - E, counts, weights)
    price = float(np.exp(imbalance(labels, k, weights) / 2.0))
    return points.error(labels, rule) * price, by_neighbours * price


def angles(R):
    """Return 1 - R_ij / sqrt(R_ii R_jj), (n, n)."""
    scale = 1.0 / np.sqrt(np.maximum(np.diagonal(R), np.finfo(np.float64).tiny))
    distances = np.maximum(1.0 - R * scale[:, None] * scale, 0.0)
    np.fill_diagonal(distances, 0.0)
    return distances


def nearest(distances):
    """Return the nearest neighbours of each point; sets the diagonal of the distances."""
    np.fill_diagonal(distances, np.inf)
    count = min(NEIGHBOURS, len(distances) - 1)
    return np.argpartition(distances, count - 1, axis=1)[:, :count]
