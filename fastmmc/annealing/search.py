"""What both searches share: they work in slices and end with labels."""

import numpy as np

from fastmmc.annealing.points import Walker, descend_briefly, make_model
from fastmmc.core.execution import SlicedSearch
from fastmmc.kernels.gram import dense_rows


class Search(SlicedSearch):
    """One start, to which a subclass adds ``_run``."""

    # What the entries of the history are counted in.
    _step_name = ""

    def __init__(self, plan, points, rng):
        """Prepare a start of a call with nothing left open."""
        super().__init__()
        self._plan, self._points, self._rng = plan, points, rng
        self._walker = Walker(points, plan.center)
        self.centers = None
        self.representatives = None

    def finish(self):
        """Give every point to its nearest center; if stopped early, descend briefly before."""
        if self.centers is None:
            chosen = self._rng.choice(self._points.shape[0], self._plan.k, replace=False)
            self.centers = np.asarray(dense_rows(self._points.rows, chosen), dtype=np.float64)
        if not self._has_ended and self._plan.center == "median":
            self.centers = descend_briefly(self._walker, self.centers, self._rng)
        rows = self._points.rows
        # As of new points: ties end alike.
        self.labels, distances = make_model(self.centers, rows).assign(rows)
        self.objective = float(distances.sum())
        if not self._has_ended:
            self._record(self.objective)
        self._end_history(self._step_name)

    def _record(self, objective):
        """Add an objective to the history."""
        self._history.note(self.n_iter, objective)


class Settled(Search):
    """The search where each distinct point, in ``init``, has a center: nothing is left to do."""

    def finish(self):
        """Give every point to its nearest center."""
        super().finish()
        self.trace = {}  # there were no steps

    def _run(self):
        """Take the distinct points; there are no steps."""
        self.centers = self._plan.init
        self._record(0.0)
        yield from ()
