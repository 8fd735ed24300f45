"""The memetic search over groups: starts, then children of two labellings at a time.

Starts are Ward's clusters, a spectral clustering and k-means++ in the metric of R, and what is
given. The groups on which two parents agree are merged by Ward's rule into the clusters of their
child. A child replaces the worst labelling if it is better; no two are the same partition.
"""

import math
from operator import itemgetter

import numpy as np

from fastmmc.core.status import Status
from fastmmc.rls.engine.groups import TOLERANCE

# Labellings that are kept, those begun with unless some are given, and children in a row without a
# better one that end it.
POPULATION = 8
STARTS = 7
PATIENCE = 12


class GroupSearch:
    """A search for labels of groups; ``best`` is there from the first start on."""

    def __init__(self, groups, rule, free=True, population=POPULATION, patience=PATIENCE):
        self.groups = groups
        self._rule = rule
        self._free = free
        self._k = rule.lower.size
        self._population = population
        self._patience = patience
        self._all = []
        self._fraction = 0.0
        self.n_moves = self.n_iter = 0
        self.status = Status.CONVERGED

    @property
    def best(self):
        """Cost and labels of the best labelling, None if there is none yet."""
        return min(self._all, key=itemgetter(0), default=None)

    @property
    def ranked(self):
        """The labellings that were kept, the best first."""
        return [labels for _, labels in sorted(self._all, key=itemgetter(0))]

    def fraction(self):
        """Return an estimate of the share of the work that is done."""
        return self._fraction

    def run(self, starts, rng, max_iter=math.inf):
        """Search from the labels that ``starts`` yields; yield after each labelling."""
        for at, labels in enumerate(starts, 1):
            self._admit(labels)
            self._fraction = 0.4 * min(1.0, at / self._population)
            yield
        stale = 0
        while len(self._all) > 1 and stale < self._patience:
            if self.n_iter >= max_iter:
                self.status = Status.MAX_ITER
                return
            before = self.best[0]
            i, j = rng.choice(len(self._all), 2, replace=False)
            self._admit(self.groups.recombine(self._all[i][1], self._all[j][1], self._k))
            self.n_iter += 1
            stale = 0 if self.best[0] < before - TOLERANCE else stale + 1
            self._fraction = 0.4 + 0.6 * stale / self._patience
            yield
        if len(self._all) == 1 and max_iter > 0:
            # A single labelling has no children; making it counts as one iteration.
            self.n_iter = max(1, self.n_iter)

    def _admit(self, labels):
        """Improve labels and give them a place: a free one or that of the worst, not a twin's."""
        labels, cost, made = self._improved(labels)
        self.n_moves += made
        if not any(self._are_equal(cost, labels, *one) for one in self._all):
            self._all.append((cost, labels))
            if len(self._all) > self._population:
                self._all.pop(int(np.argmax([one[0] for one in self._all])))

    def _improved(self, labels):
        """Return labels that keep to the rule and are no worse, their cost, and the moves made."""
        return self.groups.refine(self.groups.fitted(labels, self._rule), self._rule, self._free)

    def _are_equal(self, cost, labels, other_cost, other):
        if abs(cost - other_cost) > 1e-9 * max(1.0, abs(cost)):
            return False
        return np.unique(labels * self._k + other).size == np.unique(other).size


def first_labels(groups, k, rng, drawn_only=False):
    """Yield Ward's clusters and a spectral clustering, then as many by k-means++ as are taken."""
    if not drawn_only:
        yield groups.cut(k)
        yield groups.spectral(k)
    while True:
        yield plus_plus(groups, k, rng)


def plus_plus(groups, k, rng):
    """Draw k groups that lie far apart in the metric of R, and give all to the nearest."""
    masses = groups.masses.astype(np.float64)
    squares = groups.diagonal / masses**2

    def distances(seeds):
        fits = groups.matrix[seeds] / (masses * masses[seeds, None])
        return masses * np.maximum(squares + squares[seeds, None] - 2.0 * fits, 0.0)

    labels = np.zeros(groups.n, dtype=np.int64)
    (nearest,) = distances(rng.choice(groups.n, 1, p=masses / masses.sum()))
    for h in range(1, k):
        # As with squared distances as chances; the best of some that are tried is taken.
        total = np.cumsum(nearest)
        draws = rng.random(2 + int(np.log(k))) * total[-1]
        tried = np.minimum(np.searchsorted(total, draws, side="right"), groups.n - 1)
        left = np.minimum(nearest, distances(tried))
        best = left[left.sum(axis=1).argmin()]
        labels[best < nearest] = h
        nearest = best
    return labels
