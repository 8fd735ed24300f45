"""Batch k-means under constraints: LCVQE and CVQE."""

from __future__ import annotations

import numpy as np

from fastmmc.competitive import _kernels as kernels
from fastmmc.competitive._solver_space import first_prototypes
from fastmmc.gram import dense_rows
from fastmmc.results import History, Status

# Rows whose products with the prototypes are made at a time.
ROWS = 2048

# The sum of squared distances is had from sums over the clusters if it is no smaller a share of
# the sum of squared norms: two digits are lost at most.
LEAST_SHARE = 0.01


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
        self._seen = {self._centers.tobytes()}
        self._assigned = np.empty(rows.shape[0], dtype=np.int64)
        self._products = np.empty((ROWS, plan.k))
        self._squares, self._largest = _squared_norms(rows)
        self.objective = np.inf
        self.status = Status.CONVERGED
        self.n_iter = 0
        self.n_moves = 0
        self.labels = None
        self._begin_round()

    def _begin_round(self):
        self._at = 0
        self._transposed = np.ascontiguousarray(self._centers.T)
        self._sums = np.zeros(self._centers.shape)
        self._sizes = np.zeros(self._centers.shape[0])
        self._norms = np.einsum("ij,ij->i", self._centers, self._centers)
        # A bound on the rounding of |mu|^2 - 2 x . mu, of both that are compared.
        terms = self._centers.shape[1] + 4
        scale = self._largest + self._norms.max()
        self._margin = 8.0 * terms * np.finfo(np.float64).eps * scale

    def step(self, budget):
        """Assign some points; at the end of a round return whether it was the last."""
        n = self._rows.shape[0]
        # Whole blocks, so that sums do not depend on the slices.
        n_blocks = max(1, int(budget / (self._centers.size * ROWS)))
        stop = min(n, self._at + n_blocks * ROWS)
        for start in range(self._at, stop, ROWS):
            self._assign(slice(start, min(start + ROWS, stop)))
        self._at = stop
        return stop == n and self._end_round()

    def _assign(self, block):
        """Give some points to their nearest prototypes."""
        X = dense_rows(self._rows, block)
        found = self._assigned[block], self._sums, self._sizes
        if X.dtype == np.float64 and np.isfinite(self._margin):
            products = np.dot(X, self._transposed, out=self._products[: X.shape[0]])
            kernels.assign_screened(X, self._centers, products, self._norms, self._margin, *found)
        else:
            kernels.assign(X, self._centers, *found)

    def _sum_distances(self):
        """Return the sum of squared distances to the nearest prototypes."""
        inner = float(np.vdot(self._centers, self._sums))
        total = self._squares - 2.0 * inner + float(self._sizes @ self._norms)
        if total >= LEAST_SHARE * self._squares:
            return total
        return sum(
            kernels.sum_distances(dense_rows(self._rows, b), self._centers, self._assigned[b])
            for b in _blocks(self._rows)
        )

    def _end_round(self):
        """Apply the constraints, rate the labels, move the prototypes; return whether to stop."""
        centers, labels = self._centers, self._assigned
        nearest_total = self._sum_distances()
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
            self._keep(objective)
        if self.n_iter == self._plan.max_iter:
            self.status = Status.MAX_ITER
            return True
        # A prototype that nothing pulls stays where it is.
        pulled = self._sizes > 0
        self._centers = centers.copy()
        self._centers[pulled] = self._sums[pulled] / self._sizes[pulled, None]
        key = self._centers.tobytes()
        if key in self._seen:
            # The labels would come back too.
            return True
        self._seen.add(key)
        self._begin_round()
        return False

    def _keep(self, objective):
        """Keep the labels and prototypes of this round."""
        labels = self._assigned
        if self.labels is None:
            self.n_moves, self._assigned = labels.size, np.empty_like(labels)
        else:
            self.n_moves += int((self.labels != labels).sum())
            self._assigned = self.labels
        self.objective, self.labels, self.centers = objective, labels, self._centers

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

    @property
    def weights(self):
        """Points of each prototype."""
        return np.bincount(self.labels, minlength=len(self.centers)).astype(np.float64)

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


def _blocks(rows):
    """Return slices that make up the rows."""
    return [slice(start, start + ROWS) for start in range(0, rows.shape[0], ROWS)]


def _squared_norms(rows):
    """Return the sum of the squared norms of the rows, and the largest one."""
    total = largest = 0.0
    for block in _blocks(rows):
        X = dense_rows(rows, block)
        norms = np.einsum("ij,ij->i", X, X, dtype=np.float64)
        total += float(norms.sum())
        largest = max(largest, float(norms.max()))
    return total, largest


def _prototype_distances(centers):
    """Return the squared distances between prototypes, and the nearest other one of each."""
    k = centers.shape[0]
    between = np.empty((k, k))
    kernels.all_distances(centers, centers, between)
    others = between + np.diag(np.full(k, np.inf))
    return between, np.argmin(others, axis=1)
