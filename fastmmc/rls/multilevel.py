"""Labels of bounded sizes, searched on cells of many points and then on the points."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
from sklearn.utils import gen_batches

from fastmmc.kernels.factors import DenseFactor
from fastmmc.kernels.gram import Kernel
from fastmmc.rls import _loops_blocks as blocks
from fastmmc.rls.claims import ClaimSearch
from fastmmc.rls.engine import _loops_moves as moves
from fastmmc.rls.engine.cells import of_cells
from fastmmc.rls.engine.free import SLICE, quick_labels
from fastmmc.rls.engine.labelling import LabelSearch, Scores
from fastmmc.rls.engine.memetic import TOLERANCE, MemeticSearch
from fastmmc.rls.plan import GENTLE_CLUSTERS, GENTLE_ROUND

# Rows that a descent sees under the same scores.
ROWS = 4096

# Rows of such a block that one thread multiplies at a time: it must not depend on the number of
# threads, as the rounding of a product does depend on its shape.
ROWS_MULTIPLIED = 1024


class BoundedSearch(LabelSearch):
    """One start: labels of bounded sizes over cells, then a descent of all points within these.

    The sums are W = E^T Z, k x r. ``cells`` are as :func:`make_cells` returns them, or None: the
    points are descended from given labels or, for want of time, get quick ones. The search over
    cells is the plan's, and if that is memetic there is one more from its labels for few clusters.
    Given labels are told to the cells in which they are the most, and are descended from where
    those of cells are no better.
    """

    def __init__(self, factor, diag, plan, index, rng, cells, threads=1):
        given = plan if isinstance(plan.init, np.ndarray) else replace(plan, init="random")
        super().__init__(factor, diag, given, rng, width=factor.rank)
        self._plan = plan
        self._index = index
        self._rng = rng
        self._cells = cells
        self._threads = threads
        self._search = self._best = None

    def finish(self):
        """Do what every search does, from the best labels of cells if it was stopped there."""
        if self._search is not None:
            self._end_search()
        if self._best is not None:
            self._extend_cells()
        elif isinstance(self._plan.init, str) and not self._is_begun():
            self._state.labels[:] = quick_labels(self._factor, self._plan, self._rng)
        self._fill()
        return super().finish()

    def _run(self):
        """Search the cells, then descend; yield what each step cost."""
        if self._cells is not None:
            yield from self._search_cells()
            self._extend_cells()
        elif self._plan.known is not None:
            self._take(self._state.labels)
        else:
            return  # there was no time for cells
        # The paper's rule fixes the sizes, so only swaps are left.
        self._set_bounds(*self._plan.rule.bounds_at(self._state.counts.copy()))
        self._note()
        yield
        with ThreadPoolExecutor(self._threads) as self._pool:
            yield from self._descend()

    def _search_cells(self):
        """Search the labels of cells; yield now and then."""
        plan = self._plan
        matrix, members, seeds = self._cells
        coarse = of_cells(plan, seeds, members)
        # A search claim by claim reads R alone.
        factor = DenseFactor(matrix, 1.0, Kernel("precomputed"), matrix)
        is_memetic = plan.method == "memetic"
        count = 1 + (is_memetic and plan.k <= GENTLE_CLUSTERS)
        for at in range(count):
            if at == 1:
                coarse = replace(coarse, init=self._best.labels, start_round=GENTLE_ROUND)
            args = factor, factor.diagonal(), coarse
            if is_memetic:
                self._search = MemeticSearch(*args, self._rng)
            else:
                self._search = ClaimSearch(*args, self._index, self._rng)
            while not self._search.step(SLICE):
                self._fraction = 0.8 * (at + self._search.fraction()) / count
                yield
            self._end_search()

    def _end_search(self):
        """End the current search over cells and keep it if it is the best."""
        search, self._search = self._search, None
        search.finish()
        self.n_iter += search.n_iter
        self._state.pos[moves.MOVES] += search.n_moves
        if self._best is None or search.objective < self._best.objective - TOLERANCE:
            self._best = search

    def _extend_cells(self):
        """Give all points the labels of their cells, unless given ones are better."""
        state, given = self._state, self._state.labels.copy()
        _, members, _ = self._cells
        self._take(self._best.labels[members])
        self._best = None
        if isinstance(self._plan.init, np.ndarray):
            found, labels = state.value[moves.OBJECTIVE], state.labels.copy()
            self._take(given)
            if state.value[moves.OBJECTIVE] > found:
                self._take(labels)

    def _take(self, labels):
        """Go on from labels, whose sizes are brought within the bounds."""
        self._state.labels[:] = labels
        self._fill()
        self._repair()

    def _is_begun(self):
        """Tell whether the labels of points are more than those that the search began with."""
        return np.isfinite(self._state.value[moves.OBJECTIVE])

    def _sum(self):
        """Fill W, O(nr), and return Q."""
        moves.build_sums(self._state.matrix, self._state.labels, self._state.sums)
        return self._risk()

    def _risk(self):
        """Return Q = k n + (4 - k) e^T R e - 4 tr(E^T R E)."""
        k, W = self._plan.k, self._state.sums
        total = W.sum(axis=0)
        return float(k * self._plan.n + (4 - k) * total @ total - 4 * np.sum(W**2))

    def _scores(self):
        state = self._state
        sums = Scores(state.matrix, state.sums, np.zeros(self._plan.k))

        def scores(clusters, points):
            own = state.labels[points] == clusters[:, None]
            return sums(clusters, points) - own * state.diag[points]

        return scores

    def _descend(self):
        """Make moves and swaps until a sweep of all points finds none; yield what each block cost.

        The sweeps between see the points whose shifts may have become low enough to count.
        """
        n, k, state = self._plan.n, self._plan.k, self._state
        shift = np.empty(n)
        target = np.empty(n, dtype=np.int64)
        drift = Drift(state)
        points = np.arange(n)
        while True:
            drift.begin_sweep(points)
            changed, before = 0, state.labels.copy()
            for rows in gen_batches(points.size, ROWS):
                some = points[rows]
                scores = self._cluster_scores(some)
                changed += blocks.descend_block(state, some, scores, shift, target)
                drift.follow()
                yield k * some.size * (1 + self._factor.rank // 8)
            changed += 2 * self._exchange(shift, target)
            drift.follow()
            state.pos[moves.MOVES] += changed
            state.value[moves.OBJECTIVE] = self._risk()
            self._note()
            self._fraction = 0.95
            if changed > 0:
                points = drift.due(shift, target, state.labels != before)
            elif points.size < n:
                points = np.arange(n)
            else:
                return

    def _cluster_scores(self, points):
        """Return Z W^T for some points."""
        Z, columns = self._state.matrix, self._state.sums.T.astype(self._state.matrix.dtype)
        scores = np.empty((points.size, self._plan.k), Z.dtype)

        def multiply(first):
            rows = slice(first, first + ROWS_MULTIPLIED)
            np.matmul(Z[points[rows]], columns, out=scores[rows])

        starts = range(0, points.size, ROWS_MULTIPLIED)
        if self._threads == 1:
            for first in starts:
                multiply(first)
        else:
            list(self._pool.map(multiply, starts))
        return scores

    def _exchange(self, shift, target):
        """Swap points that want into each other's clusters; return how many pairs did."""
        k, state = self._plan.k, self._state
        # Points that cannot move have no target, and an infinite shift.
        wish = state.labels.astype(np.int64) * k + np.maximum(target, 0)
        lowest = np.full(k * k, np.inf)
        np.minimum.at(lowest, wish, shift)
        # Most points find nobody in the other cluster who would make up for their loss.
        opposite = lowest.reshape(k, k).T.ravel()
        able = np.flatnonzero(shift + opposite[wish] < -state.tol)
        order = able[np.lexsort((shift[able], wish[able]))]
        bounds = np.searchsorted(wish[order], np.arange(k * k + 1))
        return blocks.exchange(state, order, bounds, shift)


class Drift:
    """How far the sums have gone since a point was scored, and so its shifts at most.

    A shift of point i out of cluster o is z_i . W_o - z_i . W_h - R_ii, so it changes by at most
    |z_i| times the ways of W_o and W_h.
    """

    def __init__(self, state):
        self._state = state
        self._norms = np.sqrt(state.diag)
        self._sums = state.sums.copy()
        self._ways = np.zeros(state.counts.size)
        # The ways at the beginning of each sweep, and the last sweep of each point.
        self._starts = []
        self._sweep = np.empty(state.labels.size, dtype=np.int64)

    def begin_sweep(self, points):
        """Take note that some points are scored now, or later in this sweep."""
        self._sweep[points] = len(self._starts)
        self._starts.append(self._ways.copy())

    def follow(self):
        """Add how far the sums have gone since the last look at them."""
        self._ways += np.linalg.norm(self._state.sums - self._sums, axis=1)
        self._sums[:] = self._state.sums

    def due(self, shift, target, moved):
        """Return the points that may have a move or a swap, given what was found of them (n,).

        Those that ``moved`` since then, or whose shift is inf as they did, are among them.
        """
        labels, movable = self._state.labels, self._state.movable
        since = self._ways - self._starts
        least = shift - self._norms * (since.max(axis=1)[self._sweep] + since[self._sweep, labels])
        # A swap needs a partner who wants into the cluster, and wins more than this point loses.
        wins = np.zeros(self._ways.size)
        np.minimum.at(wins, target[movable], shift[movable])
        return np.flatnonzero(moved | (np.isinf(shift) & movable) | (least <= -wins[labels]))
