"""The objective brought up to date after some centers have moved, looking only where it matters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fastmmc.annealing import _loops as kernels
from fastmmc.annealing.points import Walker
from fastmmc.annealing.representatives import cut, distances_to, sizes_and_means

# The points are cut into balls of about so many, and into so many at most: smaller balls settle
# more, but loops over few points are slow.
BALL_POINTS = 128
MOST_BALLS = 512


@dataclass(frozen=True, eq=False)
class Evaluated:
    """Centers and the objective under them.

    Attributes
    ----------
    centers : (k, d) float64 array
        Centers.
    objective : float
        Sum of the distances of all points to their nearest centers.
    gaps : (k, p) float64 array or None
        Distances of the balls' middles from the centers; None: balls are not used.
    costs : (p,) float64 array or None
        Sums of distances of each ball's points.
    """

    centers: np.ndarray
    objective: float
    gaps: np.ndarray | None = None
    costs: np.ndarray | None = None


class BallCosts:
    """Points in balls: where no center that moved can be nearest, nothing is looked at again.

    In the many features of sparse points balls settle nothing; there all points are looked at.

    Parameters
    ----------
    points : Points
        Points, each counted once.
    rng : numpy.random.Generator
        For the balls.
    """

    def __init__(self, points, rng):
        self._is_sparse = points.is_sparse
        if self._is_sparse:
            self._walker = Walker(points, "median")
            return
        n = points.shape[0]
        parts = cut(points.rows, int(np.clip(n // BALL_POINTS, 1, MOST_BALLS)), rng)
        sizes, means = sizes_and_means(points.rows, parts)
        self._radii = np.zeros(sizes.size)
        np.maximum.at(self._radii, parts, distances_to(points.rows, means, parts))
        # In columns loops over the points, and over the balls, are vectorised.
        self._means = np.ascontiguousarray(means.T)
        self._offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        order = np.argsort(parts, kind="stable")
        members = np.split(order, self._offsets[1:-1])
        self._flat = np.concatenate([points.rows[own].T.ravel() for own in members])

    def evaluate(self, centers, before=None):
        """Return the objective under centers.

        Parameters
        ----------
        centers : (k, d) float64 array
            Centers.
        before : Evaluated, optional
            Under other centers, some of which may be the same.

        Returns
        -------
        Evaluated
            Under these; ``before`` is not changed.
        """
        if self._is_sparse:
            self._walker.assign(centers)
            return Evaluated(centers, float(self._walker.distances.sum()))
        k, n_balls = len(centers), self._radii.size
        if before is None:
            # Every center could have been anywhere.
            moved = np.ones(k, dtype=bool)
            old = np.full((k, n_balls), np.inf), np.zeros(n_balls)
        else:
            moved = (centers != before.centers).any(axis=1)
            old = before.gaps, before.costs
        gaps, costs = np.empty((k, n_balls)), np.empty(n_balls)
        balls = self._flat, self._offsets, self._means, self._radii
        objective, _ = kernels.update_costs(*balls, centers, moved, *old, gaps, costs)
        return Evaluated(centers, objective, gaps, costs)
