"""What runs in slices: a search whose work is a generator."""

from __future__ import annotations

import numpy as np

from fastmmc.core.execution import History
from fastmmc.core.status import Status


class SlicedSearch:
    """A search that adds ``_run``, which yields what each step cost, and ``finish``.

    A slice ends where its budget is used up; results do not depend on where that is. ``_budget`` is
    what the slice has left; a step that yields it, or nothing, ends the slice.
    """

    def __init__(self):
        self._history = History()
        self._fraction = 0.0
        self._work = self._run()
        self._has_ended = False
        self.objective = np.inf
        self.n_iter = 0
        self.n_moves = 0
        self.status = Status.CONVERGED

    def step(self, budget):
        """Run one slice; return whether the search has ended."""
        self._budget = budget
        for cost in self._work:
            self._budget -= self._budget if cost is None else cost
            if self._budget <= 0:
                return False
        self._has_ended = True
        return True

    def fraction(self):
        """Return an estimate of the share of the work that is done."""
        return self._fraction

    def _end_history(self, counted):
        """Take what was noted along the way, by the number of what is ``counted`` until then."""
        self.history, self.trace = self._history.values(), {counted: self._history.counts()}
