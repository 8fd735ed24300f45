"""Batch k-means under constraints: LCVQE and CVQE."""

from hashlib import blake2b

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.utils import gen_batches
from sklearn.utils.extmath import row_norms

from fastmmc.competitive import _loops as kernels
from fastmmc.competitive.space import FirstPrototypes
from fastmmc.core.execution import SlicedSearch
from fastmmc.core.status import Status
from fastmmc.kernels._loops_centers import all_distances
from fastmmc.kernels.gram import dense_rows, products_margin
from fastmmc.kernels.kmeans import sum_clusters
from fastmmc.kernels.models import labels_of_sparse, row_blocks

# Rows multiplied by the prototypes at a time.
ROWS = 2048

# Elementary operations on constraints at a time.
PIECE = 2**20

# The sum of squared distances is taken from sums over the clusters unless it is a smaller share
# of the sum of squared norms than this: so at most two digits are lost.
LEAST_SHARE = 0.01


class BatchSearch(SlicedSearch):
    """One start of LCVQE or CVQE: rounds until prototypes come back."""

    def __init__(self, plan, rows, rng):
        super().__init__()
        self._plan, self._rows = plan, rows
        self._first = FirstPrototypes(plan.init, rows, plan.k, rng)
        must, cannot = plan.constraints.must, plan.constraints.cannot
        self._objects = np.unique(np.concatenate((must.ravel(), cannot.ravel())))
        self._must = np.searchsorted(self._objects, must)
        self._cannot = np.searchsorted(self._objects, cannot)
        self._points = rows[self._objects].astype(np.float64)
        self._assigned = np.empty(rows.shape[0], dtype=np.int64)
        self._products = np.empty((ROWS, plan.k))
        # The columns of rows that are yet to become dense.
        self._width = rows.shape[1] if issparse(rows) else 1
        self._squares, self._largest = _squared_norms(rows)
        self.labels = None
        self._is_late = False  # whether the first round is to end without delay

    def _run(self):
        """Make the rounds; a generator of the costs of pieces, which do not depend on slices."""
        for cost in self._first.choosing():
            yield cost
            if self._is_late:
                break
        self._centers = self._first.take()
        self._seen = {_digest(self._centers)}
        yield from self._measure(self._centers)
        while True:
            centers = self._centers
            self._transposed = np.ascontiguousarray(centers.T)
            self._sums, self._sizes = np.zeros(centers.shape), np.zeros(len(centers))
            self._norms = np.einsum("ij,ij->i", centers, centers)
            self._margin = products_margin(centers.shape[1], self._largest + self._norms.max())
            for block in gen_batches(self._rows.shape[0], ROWS):
                self._assign(block)
                yield centers.size * ROWS
            if (yield from self._end_round()):
                return

    def _assign(self, block):
        """Assign a slice of the points to their nearest prototypes; add up those that are dense."""
        X = self._rows[block]
        found = self._assigned[block], self._sums, self._sizes
        if issparse(X):
            found[0][:] = labels_of_sparse(X, self._centers)
        elif X.dtype == np.float64 and np.isfinite(self._margin):
            products = np.dot(X, self._transposed, out=self._products[: X.shape[0]])
            kernels.assign_screened(X, self._centers, products, self._norms, self._margin, *found)
        else:
            kernels.assign(X, self._centers, *found)

    def _measure(self, centers):
        """Set the distances by which constraints are judged for these prototypes; yields costs."""
        k = centers.shape[0]
        self._distances = np.empty((self._objects.size, k))
        for block in row_blocks(self._objects.size, self._width, ROWS):
            all_distances(dense_rows(self._points, block), centers, self._distances[block])
            yield centers.size * (block.stop - block.start)
        if self._plan.pairwise:
            self._between = np.empty((k, k))
            all_distances(centers, centers, self._between)
            self._nearest = np.argmin(self._between + np.diag(np.full(k, np.inf)), axis=1)

    def _end_round(self):
        """Enforce constraints, move prototypes, rate both; return whether to stop; yields costs."""
        before = self._assigned[self._objects]
        labels = before.copy()
        yield from self._enforce(labels)
        self._relabel(before, labels)
        centers = self._minimise(labels)
        yield from self._measure(centers)
        objective = 0.5 * self._sum_distances(centers) + self._pull(labels)[1]
        self.n_iter += 1
        if not np.isfinite(objective):
            objective, self.status = np.inf, Status.NUMERICAL
        self._history.note(self.n_iter, objective)
        if self.labels is None or objective < self.objective:
            self._keep(objective, centers)
        if self.n_iter == self._plan.max_iter and self.status != Status.NUMERICAL:
            self.status = Status.MAX_ITER
        key = _digest(centers)
        # The same rounds would follow again after prototypes that were there before.
        is_last = self.status != Status.CONVERGED or key in self._seen
        self._seen.add(key)
        self._centers = centers
        return is_last

    def _enforce(self, labels):
        """Change the labels of constrained objects, by the prototypes that assigned them.

        Must-links come first, all in the given order. A generator of costs. What is late leaves the
        other constraints violated.
        """
        k = self._plan.k
        cost = k * k if self._plan.pairwise else k
        size = max(1, PIECE // cost)
        for pairs, is_must in ((self._must, True), (self._cannot, False)):
            for start in range(0, len(pairs), size):
                if self._is_late:
                    return
                piece = pairs[start : start + size]
                if self._plan.pairwise:
                    distances = self._distances, self._between, self._nearest
                    kernels.enforce_pairs(*distances, labels, piece, is_must)
                else:
                    kernels.enforce_linear(self._distances, labels, piece, is_must)
                yield cost * len(piece)

    def _relabel(self, before, after):
        """Take the labels that the constraints have changed into the sums and sizes of clusters."""
        self._assigned[self._objects] = after
        if issparse(self._rows):
            ones = np.ones(self._assigned.size)
            self._sizes, self._sums = sum_clusters(self._rows, ones, self._assigned, self._plan.k)
            return
        sums, sizes = self._sums, self._sizes
        changed = np.flatnonzero(before != after)
        np.subtract.at(sums, before[changed], self._points[changed])
        np.add.at(sums, after[changed], self._points[changed])
        sizes -= np.bincount(before[changed], minlength=sizes.size)
        sizes += np.bincount(after[changed], minlength=sizes.size)

    def _minimise(self, labels):
        """Return the prototypes of the least objective for these labels."""
        pulls, _ = self._pull(labels)
        weights = self._sizes + pulls.sum(axis=1)
        products = csr_array(pulls) @ (self._centers if self._plan.pairwise else self._points)
        sums = self._sums + (products.toarray() if issparse(products) else products)
        # A prototype that nothing pulls stays where it is.
        pulled = weights > 0
        centers = self._centers.copy()
        centers[pulled] = sums[pulled] / weights[pulled, None]
        return centers

    def _sum_distances(self, centers):
        """Return the sum of squared distances to the prototypes of the labels."""
        norms = np.einsum("ij,ij->i", centers, centers)
        inner = float(np.vdot(centers, self._sums))
        total = self._squares - 2.0 * inner + float(np.vdot(self._sizes, norms))
        if total >= LEAST_SHARE * self._squares:
            return total
        return sum(
            kernels.sum_distances(dense_rows(self._rows, b), centers, self._assigned[b])
            for b in row_blocks(self._rows.shape[0], self._width, ROWS)
        )

    def _pull(self, labels):
        """Return the pulls of violated constraints, to prototypes or objects, and their penalty."""
        k = self._plan.k
        links = labels, self._must, self._cannot
        if self._plan.pairwise:
            pulls = np.zeros((k, k))
            return pulls, kernels.pull_pairs(self._between, self._nearest, *links, pulls)
        pulls = np.zeros((k, self._objects.size))
        return pulls, kernels.pull_linear(self._distances, *links, pulls)

    def _keep(self, objective, centers):
        """Keep the labels of this round and the prototypes that it ended with."""
        labels = self._assigned
        if self.labels is None:
            self.n_moves, self._assigned = labels.size, np.empty_like(labels)
        else:
            self.n_moves += int((self.labels != labels).sum())
            self._assigned = self.labels
        self.objective, self.labels, self.centers = objective, labels, centers

    def fraction(self):
        """Return the share of ``max_iter`` rounds that were made."""
        return self.n_iter / self._plan.max_iter

    def finish(self):
        """End at least one round, and drop the prototypes without points."""
        self._is_late = True
        while self.labels is None:
            next(self._work)
        self.nearest_to = np.bincount(self.labels, minlength=len(self.centers))
        self.weights = self.nearest_to.astype(np.float64)
        self.kept, self.labels = np.unique(self.labels, return_inverse=True)
        self._end_history("rounds")


def _digest(centers):
    """Return what tells prototypes from others, which are too many to keep."""
    return blake2b(centers.tobytes()).digest()


def _squared_norms(rows):
    """Return the sum of the squared norms of the rows, and the largest one."""
    blocks = (rows[block] for block in gen_batches(rows.shape[0], ROWS))
    norms = [row_norms(one.astype(np.float64, copy=False), squared=True) for one in blocks]
    return sum(float(one.sum()) for one in norms), max(float(one.max()) for one in norms)
