"""Batch k-means under constraints: LCVQE and CVQE."""

from __future__ import annotations

import numpy as np

from fastmmc.competitive import _kernels as kernels
from fastmmc.competitive._solver_space import first_prototypes
from fastmmc.gram import BLOCK, dense_rows
from fastmmc.results import History, Status


class BatchSearch:
    """One start: rounds of assignment, constraints and means, until labels come back.

    Parameters
    ----------
    plan : Plan
        What all starts have in common.
    rows : (n, d) array or CSR matrix
        Points in the space of the prototypes.
    rng : numpy.random.Generator
        Random stream of the start.
    """

    def __init__(self, plan, rows, rng):
        self._plan = plan
        self._rows = rows
        self._centers = first_prototypes(plan.init, rows, plan.k, rng)
        must, cannot = plan.constraints.must, plan.constraints.cannot
        self._objects = np.unique(np.concatenate((must.ravel(), cannot.ravel())))
        self._must = np.searchsorted(self._objects, must)
        self._cannot = np.searchsorted(self._objects, cannot)
        self._points = np.ascontiguousarray(dense_rows(rows, self._objects), dtype=np.float64)
        self._history = History()
        self._seen = set()
        self._assigned = np.empty(rows.shape[0], dtype=np.int64)
        self.objective = np.inf
        self.status = Status.CONVERGED
        self.n_iter = 0
        self.n_moves = 0
        self.labels = None
        self._begin_round()

    def _begin_round(self):
        self._at = 0
        self._total = 0.0
        self._sums = np.zeros(self._centers.shape)
        self._sizes = np.zeros(self._centers.shape[0])

    def step(self, budget):
        """Assign some points; at the end of a round return whether it was the last."""
        n, dense = self._rows.shape[0], isinstance(self._rows, np.ndarray)
        # Of a sparse matrix so many rows are made dense at a time.
        most = n if dense else BLOCK
        stop = min(n, self._at + most, self._at + max(1, int(budget / self._centers.size)))
        block = slice(self._at, stop)
        self._total += kernels.assign(
            dense_rows(self._rows, block),
            self._centers,
            self._assigned[block],
            self._sums,
            self._sizes,
        )
        self._at = stop
        return stop == n and self._end_round()

    def _end_round(self):
        """Apply the constraints, rate the labels, move the prototypes; return whether to stop."""
        centers, labels = self._centers, self._assigned
        nearest_total = self._total
        distances = np.empty((self._objects.size, centers.shape[0]))
        kernels.all_distances(self._points, centers, distances)
        before = labels[self._objects]
        after = before.copy()
        penalty = self._apply_constraints(distances, after)
        objective = 0.5 * (nearest_total + self._moved(distances, before, after)) + penalty
        labels[self._objects] = after
        self.n_iter += 1
        self._history.note(self.n_iter, objective)
        if objective < self.objective:
            self.n_moves += (
                labels.size if self.labels is None else int((self.labels != labels).sum())
            )
            self.objective, self.labels = objective, labels.copy()
            self.centers = centers.copy()
            self.weights = np.bincount(labels, minlength=len(centers)).astype(np.float64)
        key = hash(labels.tobytes())
        if key in self._seen:
            return True
        self._seen.add(key)
        if self.n_iter == self._plan.max_iter:
            self.status = Status.MAX_ITER
            return True
        # A prototype that nothing pulls stays where it is.
        pulled = self._sizes > 0
        centers[pulled] = self._sums[pulled] / self._sizes[pulled, None]
        self._begin_round()
        return False

    def _apply_constraints(self, distances, labels):
        """Change the labels of constrained objects, and add the pulls of what stays violated."""
        centers, sums, sizes = self._centers, self._sums, self._sizes
        before = labels.copy()
        if self._plan.pairwise:
            between, nearest = _prototype_distances(centers)
            kernels.enforce_pairs(distances, between, nearest, labels, self._must, self._cannot)
        else:
            kernels.enforce_linear(distances, labels, self._must, self._cannot)
        changed = np.flatnonzero(before != labels)
        np.subtract.at(sums, before[changed], self._points[changed])
        np.add.at(sums, labels[changed], self._points[changed])
        sizes -= np.bincount(before[changed], minlength=sizes.size)
        sizes += np.bincount(labels[changed], minlength=sizes.size)
        if self._plan.pairwise:
            return kernels.pull_pairs(
                centers, between, nearest, labels, self._must, self._cannot, sums, sizes
            )
        return kernels.pull_linear(
            distances, self._points, labels, self._must, self._cannot, sums, sizes
        )

    @staticmethod
    def _moved(distances, before, after):
        """Return by how much the changes of labels raise the sum of squared distances."""
        each = np.arange(before.size)
        return float((distances[each, after] - distances[each, before]).sum())

    def fraction(self):
        """Return the share of the rounds that may be made."""
        return self.n_iter / self._plan.max_iter

    def finish(self):
        """Take the first round's labels where the run was stopped before its end."""
        if self.labels is None:
            while self.labels is None:
                self.step(2**62)

    def history(self):
        """Return the objective of each round, and their numbers."""
        return self._history.values(), {"rounds": self._history.counts()}


def _prototype_distances(centers):
    """Return the squared distances between prototypes, and the nearest other one of each."""
    k = centers.shape[0]
    between = np.empty((k, k))
    kernels.all_distances(centers, centers, between)
    others = between + np.diag(np.full(k, np.inf))
    return between, np.argmin(others, axis=1)
