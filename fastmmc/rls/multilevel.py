"""Labels of bounded sizes, searched on cells of many points and then on the points."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np

from fastmmc.kernels.factors import DenseFactor
from fastmmc.kernels.gram import Kernel
from fastmmc.rls.batches import BATCHES_FROM_SAMPLE, BatchSearch, ClaimForm, make_start
from fastmmc.rls.engine import _loops_moves as moves
from fastmmc.rls.engine.cells import make_cells, of_cells
from fastmmc.rls.engine.free import SLICE
from fastmmc.rls.engine.memetic import TOLERANCE, MemeticSearch
from fastmmc.rls.plan import GENTLE_CLUSTERS, GENTLE_ROUND


class BoundedSearch(BatchSearch):
    """One start: labels of bounded sizes over cells, then a descent of all points within these.

    The search over cells is memetic, and of few clusters there is one more from its labels.
    """

    def __init__(self, factor, diag, plan, count, rng, threads=1):
        super().__init__(factor, diag, ClaimForm(BATCHES_FROM_SAMPLE), plan, 0, rng, threads)
        self._count = count
        self._search = self._best = None

    def finish(self):
        """Do what every search does, from the best labels of cells if it was stopped there."""
        if self._search is not None:
            self._end_search()
        if self._best is not None:
            self._extend_cells()
        return super().finish()

    def _run(self):
        """Search the cells, then descend; yield what each step cost."""
        plan = self._plan
        args = self._factor, plan.k, self._count, self._rng
        matrix, self._members, seeds = yield from make_cells(*args)
        coarse = of_cells(plan, seeds, np.bincount(self._members))
        # A search claim by claim reads R alone.
        factor = DenseFactor(matrix, 1.0, Kernel("precomputed"), matrix)
        diag = factor.diagonal()
        make_single = partial(make_start, factor, diag)
        count = 1 + (plan.k <= GENTLE_CLUSTERS)
        for at in range(count):
            if at == 1:
                coarse = replace(coarse, init=self._best.labels, start_round=GENTLE_ROUND)
            args = factor, diag, ClaimForm(), coarse, make_single, self._rng
            self._search = MemeticSearch(*args)
            while not self._search.step(SLICE):
                self._fraction = 0.8 * (at + self._search.fraction()) / count
                yield
            self._end_search()
        self._extend_cells()
        self._note()
        yield
        with ThreadPoolExecutor(self._threads) as self._pool:
            yield from self._descend()

    def _end_search(self):
        """End the current search over cells and keep it if it is the best."""
        search, self._search = self._search, None
        search.finish()
        self.n_iter += search.n_iter
        self._state.pos[moves.MOVES] += search.n_moves
        if self._best is None or search.objective < self._best.objective - TOLERANCE:
            self._best = search

    def _extend_cells(self):
        """Give all points the labels of their cells, and fit the sizes."""
        self._state.labels[:] = self._best.labels[self._members]
        self._best = None
        self._fill()
        self._repair()
