"""One restart of UMC-RLS, claim by claim or move by move on rows of the hat matrix."""

from contextlib import suppress
from dataclasses import replace

import numpy as np

from fastmmc.core.execution import HISTORY_CAPACITY, OutOfTime, SlicedSearch, restart_stream
from fastmmc.core.jit import read_only
from fastmmc.core.status import Status
from fastmmc.core.threads import run_to_end
from fastmmc.data.sizes import are_within
from fastmmc.kernels.factors import LowRankFactor
from fastmmc.kernels.nystroem import DENSE_LIMIT
from fastmmc.rls import _loops_claims as claims
from fastmmc.rls.engine import _loops_groups as loops
from fastmmc.rls.engine import _loops_moves as moves
from fastmmc.rls.engine.descents import SLICE, Descent, descent
from fastmmc.rls.engine.groups import Groups, compact, cost_of


def claim_searches(seed, factor, plan, control):
    """Return a function that makes the searches by claims, moves and swaps of points."""
    matrix = factor
    if isinstance(factor, LowRankFactor) and plan.k > 1:
        # One by one, a claim on Z takes O(nr).
        matrix = factor._in_double_precision()
        with suppress(OutOfTime):
            if factor.n <= DENSE_LIMIT:
                matrix = run_to_end(factor._as_dense(), lambda n_rows: control.check_time())
    low_rank = matrix if isinstance(matrix, LowRankFactor) else None
    rows = matrix.R if low_rank is None else matrix.Z
    points = Groups(rows, movable=plan.movable, dense=low_rank is None)
    return lambda index: ClaimSearch(points, plan, index, restart_stream(seed, index), low_rank)


class ClaimSearch(SlicedSearch):
    """A search with the sums U = (R E)^T, k x n, whose phases are compiled loops.

    ``low_rank`` is the factor whose rows of Z the groups are; None: their matrix is dense.
    """

    def __init__(self, groups, plan, index, rng, low_rank=None):
        super().__init__()
        n, k = groups.n, plan.k
        self._groups, self._plan, self._low_rank = groups, plan, low_rank
        labels = compact(plan.start_labels(rng), k)
        self._state = claims.State(
            matrix=groups.matrix,
            row=None if groups.dense else np.empty(n, dtype=groups.matrix.dtype),
            labels=labels,
            masses=groups.masses,
            counts=np.zeros(k, dtype=np.int64),
            sums=np.empty((k, n)),
            total=np.empty(n),
            diag=read_only(groups.diagonal),
            movable=groups.movable,
            lower=plan.rule.lower.copy(),
            upper=plan.rule.upper.copy(),
            tol=1e-12 * n / 8,
            pos=np.zeros(claims.N_POS, dtype=np.int64),
            value=np.full(claims.N_VALUES, np.inf),
            best_labels=np.empty(n if plan.keep_best else 0, dtype=labels.dtype),
            score=np.empty(n),
            history=np.empty((HISTORY_CAPACITY, 2)),
            stride=max(1, n // 50),
        )
        self._order = rng.permutation(n) if plan.method == "stochastic" else None
        first = plan.first_round(index)
        self._quota, self._floors = plan.quota[first:], plan.floors[first:]
        self._state.pos[claims.REMAINING] = -1
        self._fill()
        if plan.method != "shaking":
            self._repair()
        self._note()

    def run(self):
        """Search; yield at the end of each slice."""
        while not self.step(SLICE):
            yield

    def finish(self):
        """Bring the sizes within bounds, take the final figures and return the labels."""
        self._work.close()  # ends a descent that was stopped
        self._repair()
        self._note()
        state = self._state
        self.objective = float(state.value[claims.OBJECTIVE])
        self.labels = state.labels.astype(np.int64)
        self.n_moves = int(state.pos[moves.MOVES])
        self._end_history("moves")
        self._state = self._work = self._order = None
        return self.labels

    def _run(self):
        """Search, descend by moves where the sizes had to be repaired, and polish."""
        state, plan = self._state, self._plan
        while not self._search():
            yield self._budget
        self._fraction = 0.95
        if state.value[claims.BEST] < state.value[claims.OBJECTIVE]:
            state.labels[:] = state.best_labels
            self._fill()
        if self._repair():
            yield self._budget
            yield from self._descend(plan.rule, with_swaps=False)
        if plan.polish:
            rule = plan.rule
            if plan.method == "shaking":
                # The paper's rule fixes the sizes, so only swaps are left.
                lower, upper = rule.bounds_at(state.counts)
                rule = replace(rule, lower=lower, upper=upper)
            yield self._budget
            yield from self._descend(rule, with_swaps=True)

    def _descend(self, rule, with_swaps):
        """Descend by moves, and by swaps, as groups do, to where none lowers Q."""
        state, groups = self._state, self._groups
        sums = state.sums if groups.dense else None
        found = groups.state(state.labels, rule, False, sums)
        try:
            if groups.dense:
                least = groups.least if with_swaps else None
                yield from descent(found, least, lambda: self._budget)
            else:
                yield from Descent(found, 1).run(lambda: cost_of(found))
        finally:  # also where it is stopped
            state.pos[moves.MOVES] += found.pos[loops.MOVES]
            state.labels[:] = found.labels
            if groups.dense:  # the sums are those of the groups
                self._count()
            else:
                self._fill()

    def _search(self):
        """Run a slice of the method itself; return whether it has ended."""
        plan, pos = self._plan, self._state.pos
        if plan.method == "shaking":
            ended = self._slice(claims.shake, self._quota, self._floors)
            self.n_iter = int(pos[claims.ROUND])
            self._fraction = 0.95 * self.n_iter / max(1, len(self._quota))
            return ended
        if plan.method == "steepest":
            ended = self._slice(claims.descend_steepest, plan.max_iter)
            self.n_iter = int(pos[moves.MOVES])
        else:
            ended = self._slice(claims.descend_stochastic, self._order, plan.max_iter)
            self.n_iter = int(pos[claims.ROUND]) + int(pos[claims.CLUSTER] > 0)
        # Descents make about as many moves as there are points.
        self._fraction = min(0.95, pos[moves.MOVES] / plan.n)
        if ended and self.n_iter >= plan.max_iter:
            self.status = Status.MAX_ITER
        return ended

    def _slice(self, loop, *args):
        """Run a compiled loop until the budget is used up; return whether it has ended."""
        ended = loop(self._state, *args, self._budget)
        self._history.drain(self._state.history, self._state.pos, moves.RECORDS)
        return ended

    def _fill(self):
        """Compute everything that is cached of the labels."""
        state = self._state
        if self._low_rank is None:
            moves.build_sums(state.matrix, state.labels, state.sums)
        else:
            W = self._low_rank._cluster_sums(state.labels, len(state.sums))
            self._low_rank._cluster_scores(W, state.sums)
        self._count()

    def _count(self):
        """Compute what is cached beside the sums."""
        state, total = self._state, self._state.total
        state.counts[:] = np.bincount(state.labels, state.masses, state.counts.size)
        np.sum(state.sums, axis=0, out=total)
        state.value[claims.OBJECTIVE] = claims.risk(state.labels, state.sums, total)

    def _note(self):
        """Note where the search stands."""
        self._history.note(self._state.pos[moves.MOVES], self._state.value[claims.OBJECTIVE])

    def _repair(self):
        """Close an open turn, and bring the sizes within bounds; tell whether they were not."""
        state, plan = self._state, self._plan
        if state.pos[claims.REMAINING] >= 0:
            if state.pos[claims.LAZY]:
                claims.rebuild_row(state.sums, state.total, state.pos[claims.CLUSTER])
            state.pos[claims.REMAINING] = -1
        if are_within(state.counts, plan.rule.lower, plan.rule.upper):
            return False
        scores = state.sums.copy()
        # Its own row of R holds a point where it is; leaving makes that fall away.
        scores[state.labels, np.arange(state.labels.size)] -= state.diag
        labels = plan.fitted(state.labels, scores)
        state.pos[moves.MOVES] += np.count_nonzero(labels != state.labels)
        state.labels[:] = labels
        self._fill()
        return True
