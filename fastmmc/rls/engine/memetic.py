"""Memetic search: a population of labellings whose clusters are recombined and improved."""

from __future__ import annotations

import numpy as np
from sklearn.metrics.cluster import contingency_matrix

from fastmmc.core.sliced import SlicedSearch
from fastmmc.core.status import Status
from fastmmc.data.labels import matched_clusters
from fastmmc.rls.claims import ClaimSearch
from fastmmc.rls.engine.labelling import fell_by

# Share of Q by which children must lower it to be progress. With none at all, Q is .03 % lower and
# the mean index of ten sets the same (four seeds), but 5,000 points in 500 clusters take a third
# longer: some child is always better by a point or two.
PROGRESS = 1e-3


class MemeticSearch(SlicedSearch):
    """One start: a population from the shaking, then children of it, one at a time.

    ``start`` are labels that one of the population comes from, None if there are none.

    The clusters of two parents are matched by their overlap, and the child takes each cluster's
    sums, and so its scores, from one of them. Every point goes to the cluster that it fits best,
    the sizes are brought within bounds, and a gentle shake and a descent follow. The child replaces
    the worst individual if it is better. No two individuals are the same partition.
    """

    def __init__(self, factor, diag, plan, rng, start=None):
        super().__init__()
        self._factor = factor
        self._diag = diag
        self._plan = plan
        self._rng = rng
        self._start = start
        self._population = []
        self._current = None

    def finish(self):
        """Take the best labels and the final figures, and let the work space go."""
        if self._current is not None:
            self._admit(self._current)
        best = self._best()
        if len(self._population) == 1 and self._plan.max_iter > 0:
            # A single individual has no children; making it counts as one iteration.
            self.n_iter = max(1, self.n_iter)
        self.labels = best.labels
        self.objective = best.objective
        self._end_history("moves")
        self._population = self._current = self._work = None

    def _run(self):
        """Make the population, then children."""
        plan = self._plan
        for index in range(plan.population):
            of_start = self._start is not None and index == plan.population - 1
            parent = plan.of_child(self._start) if of_start else plan.of_parent(index)
            yield from self._improve(self._search(parent, index))
            self._fraction = 0.4 * (index + 1) / plan.population
        # The objective of groups is lower than Q of their points by so much.
        rest = plan.k * (plan.total - plan.n)
        stale, best = 0, self._best().objective + rest
        while len(self._population) > 1 and stale < plan.patience:
            if self.n_iter >= plan.max_iter:
                self.status = Status.MAX_ITER
                return
            yield from self._improve(self._search(plan.of_child(self._child_labels()), 0))
            self.n_iter += 1
            stale, found = stale + 1, self._best().objective + rest
            if fell_by(PROGRESS, best, found):
                stale, best = 0, found
            self._fraction = max(self._fraction, 0.4 + 0.6 * stale / plan.patience)

    def _search(self, plan, index):
        return ClaimSearch(self._factor, self._diag, plan, index, self._rng)

    def _improve(self, search):
        """Run a search to its end, slice by slice, and let its labels into the population."""
        self._current = search
        while not search.step(self._budget):
            yield self._budget
        self._current = None
        self._admit(search)
        yield self._budget

    def _admit(self, search):
        """Put the labels of a search in a free place, or if better in its twin's or the worst's."""
        search.sums = search.finish()
        self.n_moves += search.n_moves
        twin = next((s for s in self._population if self._are_equal(s, search)), None)
        if twin is None and len(self._population) < self._plan.population:
            self._population.append(search)
        else:
            other = twin or max(self._population, key=lambda s: s.objective)
            if search.objective < other.objective:
                self._population[self._population.index(other)] = search
        self._history.note(self.n_moves, self._best().objective)

    def _best(self):
        return min(self._population, key=lambda s: s.objective)

    def _are_equal(self, a, b):
        if not abs(a.objective - b.objective) <= 1e-9 * abs(b.objective):
            return False
        overlap = contingency_matrix(a.labels, b.labels)
        return overlap.max(axis=0).sum() == overlap.max(axis=1).sum() == self._plan.n

    def _child_labels(self):
        """Recombine two parents drawn at random."""
        plan, k = self._plan, self._plan.k
        i, j = self._rng.choice(len(self._population), 2, replace=False)
        a, b = self._population[i], self._population[j]
        match = matched_clusters(a.labels, b.labels, k)
        from_a = np.ones(k, dtype=bool)
        while from_a.all() or not from_a.any():
            from_a = self._rng.random(k) < 0.5
        scores = np.where(from_a[:, None], a.sums, b.sums[match])
        # A point's own row would keep it in the clusters that it comes from.
        everyone = np.arange(plan.n)
        scores[a.labels, everyone] -= np.where(from_a[a.labels], self._diag, 0.0)
        in_b = np.argsort(match)[b.labels]
        scores[in_b, everyone] -= np.where(from_a[in_b], 0.0, self._diag)
        labels = plan.with_known(scores.argmax(axis=0))
        return plan.fitted(labels, scores)
