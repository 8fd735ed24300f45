"""Descents of all points, or groups of them, by moves and swaps."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from sklearn.utils import gen_batches

from fastmmc.rls.engine import _loops_groups as loops
from fastmmc.rls.engine.groups import is_worth_more

# Rows that a descent sees under the same scores.
ROWS = 4096

# Budget of a search of groups between two looks at the clock.
SLICE = 20_000_000

# Rows of such a block that one thread multiplies at a time: it must not depend on the number of
# threads, as the rounding of a product does depend on its shape.
ROWS_MULTIPLIED = 1024


def descent(state, least, budget):
    """Descend to where no move helps, and no swap unless ``least``, as swaps take it, is None.

    Yields whenever the ``budget()`` of a slice is used up.
    """
    made = -1
    while made != state.pos[loops.MOVES]:
        made = int(state.pos[loops.MOVES])
        state.pos[[loops.AT, loops.CLEAN]] = 0
        while not loops.descend(state, None, None, budget()):
            yield
        if least is None:
            return
        state.pos[[loops.AT, loops.CLEAN]] = 0
        while not loops.swap(state, least, budget()):
            yield


class Descent:
    """The descent of points, or groups of them, by moves and swaps on their rows of Z."""

    def __init__(self, state, threads):
        self._state = state
        self._threads = threads

    def run(self, end_sweep):
        """Go on until a sweep is worth no other; yield what each block cost.

        Sweeps after the first see the points whose shifts may have become low enough to count.
        ``end_sweep()`` is called at the end of each, and returns the objective.
        """
        state, k = self._state, self._state.counts.size
        n, rank = state.matrix.shape
        shift = np.empty(n)
        target = np.empty(n, dtype=np.int64)
        drift = Drift(state)
        points, value = np.arange(n), np.inf
        with ThreadPoolExecutor(self._threads) as self._pool:
            while points.size:
                drift.begin_sweep(points)
                labels = state.labels.copy()
                for rows in gen_batches(points.size, ROWS):
                    some = points[rows]
                    scores = self._cluster_scores(some)
                    loops.descend_rows(state, some, scores, shift, target)
                    drift.follow()
                    yield k * some.size * (1 + rank // 8)
                if not state.free:
                    self._exchange(shift, target)
                drift.follow()
                before, value = value, end_sweep()
                if not is_worth_more(before, value):
                    return
                # A price for the size changes the shifts into a cluster wherever its sums go.
                if not state.free:
                    points = drift.due(shift, target, state.labels != labels)

    def _cluster_scores(self, points):
        """Return Z W^T for some points."""
        Z, columns = self._state.matrix, self._state.sums.T.astype(self._state.matrix.dtype)
        scores = np.empty((points.size, columns.shape[1]), Z.dtype)

        def multiply(first):
            rows = slice(first, first + ROWS_MULTIPLIED)
            np.matmul(Z[points[rows]], columns, out=scores[rows])

        each = map if self._threads == 1 else self._pool.map
        list(each(multiply, range(0, points.size, ROWS_MULTIPLIED)))
        return scores

    def _exchange(self, shift, target):
        """Swap points that want into each other's clusters."""
        state, k = self._state, self._state.counts.size
        # Points that cannot move have no target, and an infinite shift.
        wish = state.labels.astype(np.int64) * k + np.maximum(target, 0)
        lowest = np.full(k * k, np.inf)
        np.minimum.at(lowest, wish, shift)
        # Most points find nobody in the other cluster who would make up for their loss.
        opposite = lowest.reshape(k, k).T.ravel()
        able = np.flatnonzero(shift + opposite[wish] < -state.tol)
        order = able[np.lexsort((shift[able], wish[able]))]
        bounds = np.searchsorted(wish[order], np.arange(k * k + 1))
        loops.exchange(state, order, bounds, shift)


class Drift:
    """How far the sums have gone since a point was scored, and so its shifts at most.

    A shift of point i out of cluster o is 2 (z_i . W_o - z_i . W_h - R_ii) of equal sizes, so it
    changes by at most 2 |z_i| times the ways of W_o and W_h.
    """

    def __init__(self, state):
        self._state = state
        self._norms = 2.0 * np.sqrt(state.diag)
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
