"""The points as the searches see them: nearest centers, and Weiszfeld's next centers.

Generators yield the elementary operations of their pieces, so that they can be interrupted.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse

from fastmmc.annealing import _loops as kernels
from fastmmc.core.threads import run_to_end
from fastmmc.kernels.gram import BLOCK, dense_rows
from fastmmc.kernels.kmeans import sum_clusters
from fastmmc.kernels.models import CenterModel, Space

# Points in a block whose distances one vectorised loop makes, and numbers that stay in cache.
BLOCK_POINTS = 64
BLOCK_NUMBERS = 8192
LEAST_BLOCK_POINTS = 16

# A point this near its center, as a share of the points' spread, counts as lying at it: distances
# of dense points come from differences, of sparse ones from sums of products.
AT_CENTER = 1e-12
AT_CENTER_SPARSE = 1e-7

# A step is this many times Weiszfeld's; below 2 a cluster's sum of distances still falls.
RELAXATION = 1.5

# Most rounds of a descent; tens are usual.
MAX_ROUNDS = 1000

# Elementary operations of a piece of a pass.
PIECE = 2**22

# What is spent on the centers of a start that was stopped.
BRIEF_TOL = 1e-6
BRIEF_OPERATIONS = 2 * 10**8


class Pass(NamedTuple):
    """The outcome of a pass: the weighted sum of distances, and what becomes of the centers.

    ``targets`` (k, d) are where Weiszfeld's step, or the mean, takes them; ``is_empty`` (k,) marks
    those that are nearest to no point.
    """

    objective: float
    targets: np.ndarray
    is_empty: np.ndarray


def make_model(centers, rows):
    """Return the model that assigns points as :func:`sammc` does, for centers of these rows."""
    return CenterModel(centers, Space(rows.shape[1], rows.dtype), squared=False)


class Points:
    """Points, dense or CSR, with weights (None: 1 each); shared by all starts and never changed."""

    def __init__(self, rows, weights=None):
        self.rows = rows
        self.weights = np.ones(rows.shape[0]) if weights is None else weights
        self.is_sparse = issparse(rows)
        if self.is_sparse:
            self.norms = np.asarray(rows.multiply(rows).sum(axis=1), dtype=np.float64).ravel()
            self.least = AT_CENTER_SPARSE * np.sqrt(self.norms.max(initial=0.0))
        else:
            self.blocks = _in_columns(rows)
            self.least = AT_CENTER * float(np.linalg.norm(np.ptp(rows, axis=0)))

    @property
    def shape(self):
        """Number of points, and of features."""
        return self.rows.shape

    @property
    def cost(self):
        """Elementary operations of one pass, for each center."""
        return self.rows.nnz if self.is_sparse else self.rows.size


def _in_columns(rows):
    """Return the points in columns of blocks (m, d, b); the last block repeats its last point."""
    n, d = rows.shape
    size = int(np.clip(BLOCK_NUMBERS // d, LEAST_BLOCK_POINTS, BLOCK_POINTS))
    n_blocks = -(-n // size)
    blocks = np.empty((n_blocks, d, size), dtype=rows.dtype)
    whole = n // size
    blocks[:whole] = rows[: whole * size].reshape(whole, size, d).transpose(0, 2, 1)
    if whole < n_blocks:
        rest = rows[whole * size :].T
        blocks[-1, :, : rest.shape[1]] = rest
        blocks[-1, :, rest.shape[1] :] = rest[:, -1:]
    return blocks


class Walker:
    """Passes over the points towards medians or means (``center``), with the room of one start."""

    def __init__(self, points, center):
        n = points.shape[0]
        self.points = points
        self._by_distance = center == "median"
        self.relaxation = RELAXATION if self._by_distance else 1.0
        self.labels = np.zeros(n, dtype=np.int64)
        self.distances = np.empty(n)

    def assign(self, centers):
        """Find the nearest center of every point: ``labels``, with ``distances`` (n,)."""
        run_to_end(self.assigning(centers))

    def assigning(self, centers):
        """Do as :meth:`assign`, in pieces."""
        if self.points.is_sparse:
            yield from self._assign_sparse(centers)
            return
        blocks = self.points.blocks
        size, cost = blocks.shape[2], blocks[0].size * len(centers)
        step = max(1, PIECE // cost)
        for first in range(0, len(blocks), step):
            rows = slice(first * size, (first + step) * size)
            block = blocks[first : first + step]
            kernels.assign(block, centers, self.distances[rows], self.labels[rows])
            yield step * cost

    def _assign_sparse(self, centers):
        rows, norms = self.points.rows, self.points.norms
        center_norms = np.einsum("ij,ij->i", centers, centers)
        transposed = np.ascontiguousarray(centers.T)
        for start in range(0, rows.shape[0], BLOCK):
            block = slice(start, min(start + BLOCK, rows.shape[0]))
            squares = center_norms - 2.0 * (rows[block] @ transposed)
            self.labels[block] = np.argmin(squares, axis=1)
            least = np.take_along_axis(squares, self.labels[block, None], axis=1)[:, 0]
            self.distances[block] = np.sqrt(np.maximum(least + norms[block], 0.0))
            yield BLOCK * centers.size

    def draw(self, rng, count):
        """Return points (count, d) drawn by their weighted distances to their centers."""
        shares = np.cumsum(self.points.weights * self.distances)
        drawn = np.searchsorted(shares, rng.random(count) * shares[-1], side="right")
        return dense_rows(self.points.rows, np.minimum(drawn, shares.size - 1))

    def looking(self, centers):
        """Assign the points to centers (k, d) in pieces, and return the Pass."""
        yield from self.assigning(centers)
        points, k = self.points, centers.shape[0]
        objective = float(points.weights @ self.distances)
        if not self._by_distance:
            sizes, sums = sum_clusters(points.rows, points.weights, self.labels, k)
            return Pass(objective, means_where_used(sums, sizes, centers), sizes == 0)
        if points.is_sparse:
            at = self.distances <= points.least
            share = np.where(at, 0.0, points.weights / np.where(at, 1.0, self.distances))
            pulls, sums = sum_clusters(points.rows, share, self.labels, k)
            at_center = np.bincount(self.labels, weights=at * points.weights, minlength=k)
        else:
            pulls, sums, at_center = kernels.sum_pulls(
                points.rows, points.weights, self.labels, self.distances, points.least, k
            )
        targets = weiszfeld_targets(centers, pulls, sums, at_center)
        return Pass(objective, targets, (pulls == 0) & (at_center == 0))


def means_where_used(sums, sizes, centers):
    """Return the means of clusters; an empty one keeps its center."""
    targets = centers.copy()
    used = sizes > 0
    targets[used] = sums[used] / sizes[used, None]
    return targets


def weiszfeld_targets(centers, pulls, sums, at_center):
    """Return the next centers by Weiszfeld's step, safe at points (Vardi and Zhang 2000).

    Where points of weight w lie at a center, the others pull it with the force r = ||sum_i w_i
    (x_i - c) / d_i||: it stays if r <= w, and otherwise goes the share 1 - w / r of the way.
    ``pulls`` (k,) and ``sums`` (k, d) are the sums of w / d and w x / d over the points not at
    their center, ``at_center`` (k,) the weights of those at it. A center that nothing pulls stays.
    """
    targets = means_where_used(sums, pulls, centers)
    for j in np.flatnonzero((at_center > 0) & (pulls > 0)):
        force = np.linalg.norm(sums[j] - pulls[j] * centers[j])
        share = 1.0 - at_center[j] / force if force > at_center[j] else 0.0
        targets[j] = centers[j] + share * (targets[j] - centers[j])
    return targets


def descend(walker, centers, tol, rng, most=np.inf):
    """Move centers until a round lowers the sum of distances by less than the share ``tol`` of it.

    It ends after ``most`` elementary operations, too. Returns the sum of distances, which never
    rises, and the centers (k, d). ``rng`` draws new places for those nearest to no point.
    """
    cost = walker.points.cost * centers.shape[0]
    found = yield from walker.looking(centers)
    for _ in range(int(min(MAX_ROUNDS, most / cost))):
        if found.is_empty.any():
            # Nothing is left to gain if every point lies at a center.
            if not walker.distances.any():
                break
            centers = centers.copy()
            centers[found.is_empty] = walker.draw(rng, int(found.is_empty.sum()))
            found = yield from walker.looking(centers)
        step = centers + walker.relaxation * (found.targets - centers)
        after = yield from walker.looking(step)
        if after.objective > found.objective and walker.relaxation > 1.0:
            step = found.targets
            after = yield from walker.looking(step)
        gain = found.objective - after.objective
        if gain > 0:
            centers, found = step, after
        if gain <= tol * found.objective:
            break
    return found.objective, centers


def descend_briefly(walker, centers, rng):
    """Return the centers of a start that was stopped, after a descent of a fraction of a second."""
    if walker.points.cost * len(centers) > BRIEF_OPERATIONS:
        return centers
    return run_to_end(descend(walker, centers, BRIEF_TOL, rng, most=BRIEF_OPERATIONS))[1]
