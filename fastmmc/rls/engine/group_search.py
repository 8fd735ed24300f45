"""The memetic search over groups: starts, then children of two labellings at a time.

Starts are Ward's clusters, a spectral clustering and k-means++ in the metric of R, and what is
given. The groups on which two parents agree are merged by Ward's rule into the clusters of their
child. A child replaces the worst labelling if it is better; no two are the same partition.
"""

from __future__ import annotations

from operator import itemgetter

import numpy as np

from fastmmc.rls.engine.groups import TOLERANCE

# Labellings that are kept, random starts, and children in a row without a better one that end it.
POPULATION = 8
RANDOM_STARTS = 5
PATIENCE = 12


class GroupSearch:
    """A search for labels of groups; ``best`` is there from the first start on."""

    def __init__(self, groups, rule, free, rng):
        self._groups = groups
        self._rule = rule
        self._free = free
        self._rng = rng
        self._k = rule.lower.size
        self._all = []

    @property
    def best(self):
        """Cost and labels of the best labelling, None if there is none yet."""
        return min(self._all, key=itemgetter(0), default=None)

    @property
    def ranked(self):
        """The labellings that were kept, the best first."""
        return [labels for _, labels in sorted(self._all, key=itemgetter(0))]

    def run(self, given, look):
        """Search from given labellings and others; what ``look()`` raises ends it."""
        for labels in given:
            self.admit(labels)
        if self._k == 1:
            self.admit(np.zeros(self._groups.n, dtype=np.int64))
            return
        self.admit(self._groups.cut(self._k))
        look()
        self.admit(self._groups.spectral(self._k))
        for _ in range(RANDOM_STARTS):
            look()
            self.admit(plus_plus(self._groups, self._k, self._rng))
        stale = 0
        while len(self._all) > 1 and stale < PATIENCE:
            look()
            before = self.best[0]
            i, j = self._rng.choice(len(self._all), 2, replace=False)
            self.admit(self._groups.recombine(self._all[i][1], self._all[j][1], self._k))
            stale = 0 if self.best[0] < before - TOLERANCE else stale + 1

    def admit(self, labels):
        """Improve labels and give them a place: a free one or that of the worst, not a twin's."""
        labels = self._groups.fitted(labels, self._rule)
        labels, cost, _ = self._groups.refine(labels, self._rule, self._free)
        if not any(self._are_equal(cost, labels, *one) for one in self._all):
            self._all.append((cost, labels))
            if len(self._all) > POPULATION:
                self._all.pop(int(np.argmax([one[0] for one in self._all])))

    def _are_equal(self, cost, labels, other_cost, other):
        if abs(cost - other_cost) > 1e-9 * max(1.0, abs(cost)):
            return False
        return np.unique(labels * self._k + other).size == np.unique(other).size


def plus_plus(groups, k, rng):
    """Draw k groups that lie far apart in the metric of R, and give all to the nearest."""
    R, masses = groups.matrix, groups.masses
    diag = groups.diagonal / masses.astype(np.float64) ** 2

    def distances(i):
        apart = diag + diag[i] - 2.0 * R[i] / (masses * float(masses[i]))
        return masses * np.maximum(apart, 0.0)

    labels = np.zeros(groups.n, dtype=np.int64)
    nearest = distances(rng.choice(labels.size, p=masses / masses.sum()))
    for h in range(1, k):
        total = np.cumsum(nearest)
        drawn = rng.random(2 + int(np.log(k))) * total[-1]
        tried = np.minimum(np.searchsorted(total, drawn, side="right"), labels.size - 1)
        offers = [np.minimum(nearest, distances(i)) for i in tried]
        chosen = min(offers, key=np.sum)
        labels[chosen < nearest] = h
        nearest = chosen
    return labels
