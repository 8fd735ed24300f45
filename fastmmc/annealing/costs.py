"""The objective after some centers have moved, computed again only where they matter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fastmmc.annealing import _loops as kernels
from fastmmc.annealing.points import Walker
from fastmmc.annealing.representatives import cut, distances_to, members_of, sizes_and_means

# Points of a ball, and balls at most: smaller balls rule out more, but loops over few points are
# slow.
BALL_POINTS = 128
MOST_BALLS = 512


@dataclass(frozen=True, eq=False)
class Evaluated:
    """Centers (k, d) and the sum of the distances of all points to their nearest ones.

    ``gaps`` (k, p) are the distances between the centers and the balls' middles, ``costs`` (p,) the
    sums of distances in each ball; both are None where no balls are used.
    """

    centers: np.ndarray
    objective: float
    gaps: np.ndarray | None = None
    costs: np.ndarray | None = None


class BallCosts:
    """Points in balls: a ball is skipped where no moved center can be nearest to one of its points.

    Balls rule out nothing in the many features of sparse points: those are all computed again.
    """

    def __init__(self, points, parts=None):
        self._is_sparse = points.is_sparse
        if self._is_sparse:
            self._walker = Walker(points, "median")
            return
        sizes, means = sizes_and_means(points.rows, parts)
        self._radii = np.zeros(sizes.size)
        np.maximum.at(self._radii, parts, distances_to(points.rows, means, parts))
        # In columns loops over the points, and over the balls, are vectorised.
        self._means = np.ascontiguousarray(means.T)
        self._offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        members = members_of(parts, sizes)
        self._flat = np.concatenate([points.rows[own].T.ravel() for own in members])

    @classmethod
    def making(cls, points, rng):
        """Return the costs of points; a generator of the elementary operations of its pieces."""
        if points.is_sparse:
            return cls(points)
        count = int(np.clip(points.shape[0] // BALL_POINTS, 1, MOST_BALLS))
        return cls(points, (yield from cut(points.rows, count, rng)))

    def evaluate(self, centers, before=None):
        """Evaluate centers (k, d); ``before``, not changed, is Evaluated under similar ones."""
        if self._is_sparse:
            self._walker.assign(centers)
            return Evaluated(centers, float(self._walker.distances.sum()))
        if before is None:
            # Every center could have been anywhere.
            gaps = np.full((len(centers), self._radii.size), np.inf)
            before = Evaluated(np.full_like(centers, np.nan), np.inf, gaps, gaps[0])
        moved = (centers != before.centers).any(axis=1)
        balls = self._flat, self._offsets, self._means, self._radii
        found = kernels.update_costs(*balls, centers, moved, before.gaps, before.costs)
        return Evaluated(centers, *found[:3])
