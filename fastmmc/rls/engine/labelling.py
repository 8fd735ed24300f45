"""The labelling that a restart of UMC-RLS searches with: its sums, its sizes, its objective."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fastmmc.core.jit import read_only
from fastmmc.core.sliced import SlicedSearch
from fastmmc.kernels.factors import LowRankFactor
from fastmmc.rls.engine import _loops_moves as moves

# A descent of all points ends with a sweep that lowers the objective by less than this share. Of a
# million points the last of 38 sweeps moved 2 points each, and from the eighth on the Adjusted Rand
# index stays the same within .0005 (seven real sets, six made ones).
GAIN = 1e-5


def fell_by(share, before, after):
    """Tell whether the objective fell by more than a share of it."""
    return before - after > share * abs(after)


def is_worth_more(before, after):
    """Tell whether a sweep over all points lowered the objective enough for one more."""
    return fell_by(GAIN, before, after)


def compact(labels, k):
    """Return a copy of the labels in the type that the compiled loops take."""
    return labels.astype(np.uint8 if k <= 256 else np.int32)


def sums_of(matrix, labels, k):
    """Return the rows of a matrix, summed over each of k clusters, (k, width) float64."""
    sums = np.empty((k, matrix.shape[1]))
    moves.build_sums(matrix, compact(labels, k), sums)
    return sums


@dataclass(frozen=True, eq=False)
class Scores:
    """The scores z . A_h + m c_h of points of mass m with clusters, made as they are asked for."""

    Z: np.ndarray  # (n, r)
    A: np.ndarray  # (k, r)
    c: np.ndarray  # (k,)
    masses: np.ndarray | None = None  # (n,); None: all 1

    def __call__(self, clusters, points):
        """Return the scores of some clusters and points, (len(clusters), len(points))."""
        Z = self.Z[points]
        masses = 1.0 if self.masses is None else self.masses[points]
        return self.A[clusters].astype(Z.dtype, copy=False) @ Z.T + self.c[clusters, None] * masses


class LabelSearch(SlicedSearch):
    """One restart: the state of the compiled loops, and what every search does with it.

    A search adds ``_run``, ``_sum`` (fill the sums and return Q) and ``_scores``, which makes those
    of points with clusters: how much of R ties them to it, without what ties a point to itself.
    """

    def __init__(self, factor, diag, plan, rng, *, width, row=None, n_pos=2):
        super().__init__()
        self._factor = factor
        self._plan = plan
        labels = compact(plan.start_labels(rng), plan.k)
        self._state = moves.State(
            matrix=read_only(factor.Z if isinstance(factor, LowRankFactor) else factor.R),
            row=row,
            labels=labels,
            counts=np.zeros(plan.k, dtype=np.int64),
            sums=np.empty((plan.k, width)),
            diag=read_only(diag),
            movable=plan.movable,
            lower=plan.rule.lower.copy(),
            upper=plan.rule.upper.copy(),
            tol=1e-12 * plan.n / 8,
            pos=np.zeros(n_pos, dtype=np.int64),
            value=np.full(moves.N_VALUES, np.inf),
            best_labels=np.empty(plan.n if plan.keep_best else 0, dtype=labels.dtype),
            masses=plan.masses,
        )

    def finish(self):
        """Bring the sizes within bounds, take the final figures and return the sums."""
        self._repair()
        self._note()
        state = self._state
        self.objective = float(state.value[moves.OBJECTIVE])
        self.labels = state.labels.astype(np.int64)
        self.n_moves = int(state.pos[moves.MOVES])
        self._end_history("moves")
        self._state = self._work = None
        return state.sums

    def _fill(self):
        """Compute everything that is cached of the labels."""
        state = self._state
        state.counts[:] = np.bincount(state.labels, state.masses, state.counts.size)
        state.value[moves.OBJECTIVE] = self._sum()

    def _note(self):
        """Note where the search stands."""
        self._history.note(self._state.pos[moves.MOVES], self._state.value[moves.OBJECTIVE])

    def _take_best(self):
        """Go back to the best round end, if that was kept."""
        state = self._state
        if state.value[moves.BEST] < state.value[moves.OBJECTIVE]:
            state.labels[:] = state.best_labels
            self._fill()

    def _set_bounds(self, lower, upper):
        """Set the size bounds of a phase."""
        self._state.lower[:] = lower
        self._state.upper[:] = upper

    def _repair(self):
        """Bring the sizes within the bounds of the rule; tell whether they were not.

        Points change clusters where the scores lose least by it.
        """
        state, rule = self._state, self._plan.rule
        if rule.allows(state.counts):
            return False
        labels = self._plan.fitted(state.labels, self._scores())
        state.pos[moves.MOVES] += np.count_nonzero(labels != state.labels)
        state.labels[:] = labels
        self._fill()
        return True
