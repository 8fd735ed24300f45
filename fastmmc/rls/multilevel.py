"""Labels of bounded sizes, searched on cells of many points and then on the points."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from fastmmc.rls import _loops_moves as moves
from fastmmc.rls.batches import BATCHES_FROM_SAMPLE, BatchSearch, ClaimForm
from fastmmc.rls.cells import make_cells, of_cells
from fastmmc.rls.memetic import MemeticSearches


class BoundedSearch(BatchSearch):
    """One start: labels of bounded sizes over cells, then a descent of all points within these."""

    def __init__(self, factor, diag, plan, count, rng, threads=1):
        super().__init__(factor, diag, ClaimForm(BATCHES_FROM_SAMPLE), plan, 0, rng, threads)
        self._count = count
        self._searches = None

    def finish(self):
        """Do what every search does, from the best labels of cells if it was stopped there."""
        if self._searches is not None:
            self._extend_cells()
        return super().finish()

    def _run(self):
        """Search the cells, then descend; yield what each step cost."""
        plan = self._plan
        args = self._factor, plan.k, self._count, self._rng
        matrix, self._members, seeds = yield from make_cells(*args)
        coarse = of_cells(plan, seeds, np.bincount(self._members))
        self._searches = MemeticSearches(matrix, coarse, self._rng)
        for fraction in self._searches.run():
            self._fraction = 0.8 * fraction
            yield
        self._extend_cells()
        self._note()
        yield
        with ThreadPoolExecutor(self._threads) as self._pool:
            yield from self._descend()

    def _extend_cells(self):
        """Give all points the labels of their cells, and fit the sizes."""
        searches, self._searches = self._searches, None
        labels = searches.finish()
        self.n_iter = searches.n_iter
        self._state.pos[moves.MOVES] += searches.n_moves
        self._state.labels[:] = labels[self._members]
        self._fill()
        self._repair()
