"""What the searches share: a start that works in slices and ends with labels."""

from __future__ import annotations

import numpy as np

from fastmmc.annealing.points import Walker, descend_briefly, make_model
from fastmmc.gram import dense_rows
from fastmmc.results import History, Status


class Search:
    """One start; a subclass says in ``_run`` what it does, a generator of the costs of its steps.

    Parameters
    ----------
    plan : Plan
        What all starts have in common.
    points : Points
        All points.
    rng : numpy.random.Generator
        Random stream of the start.
    """

    def __init__(self, plan, points, rng):
        self._plan = plan
        self._points = points
        self._rng = rng
        self._walker = Walker(points, plan.center)
        self._history = History()
        self._running = self._run()
        self._share, self._has_ended = 0.0, False
        self.objective = np.inf
        self.centers = None
        self.representatives = None
        self.status = Status.CONVERGED
        self.n_iter = 0
        self.n_moves = 0

    def step(self, budget):
        """Work for about so many elementary operations; return whether the search has ended."""
        spent = 0
        for cost in self._running:
            spent += cost
            if spent >= budget:
                return False
        self._share, self._has_ended = 1.0, True
        return True

    def fraction(self):
        """Return an estimate of the share of the work that is done."""
        return self._share

    def finish(self):
        """Give every point to its nearest center; centers of a start that was stopped descend."""
        if self.centers is None:
            chosen = self._rng.choice(self._points.shape[0], self._plan.k, replace=False)
            self.centers = np.asarray(dense_rows(self._points.rows, chosen), dtype=np.float64)
        if not self._has_ended and self._plan.center == "median":
            self.centers = descend_briefly(self._walker, self.centers, self._rng)
        # As new points are, so that ties end alike.
        model = make_model(self.centers, self._points.rows)
        self.labels, distances = model.assign(self._points.rows)
        self.objective = float(distances.sum())
        if not self._has_ended:
            self._record(self.objective)

    def _record(self, objective):
        """Add an objective to the history."""
        self._history.note(self.n_iter, objective)
