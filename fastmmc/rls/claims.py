"""One restart of UMC-RLS, claim by claim or move by move on rows of the hat matrix."""

from __future__ import annotations

import numpy as np

from fastmmc.factors import LowRankFactor
from fastmmc.results import HISTORY_CAPACITY, Status
from fastmmc.rls import _loops_claims as claims
from fastmmc.rls import _loops_moves as moves
from fastmmc.rls.labelling import LabelSearch


class ClaimSearch(LabelSearch):
    """A search with the sums U = (R E)^T, k x n, whose phases are compiled loops."""

    def __init__(self, factor, diag, plan, index, rng):
        n, k = factor.n, plan.k
        row = np.empty(n, dtype=factor.Z.dtype) if isinstance(factor, LowRankFactor) else None
        super().__init__(factor, diag, plan, rng, width=n, row=row, n_pos=claims.N_POS)
        self._work = claims.Work(
            total=np.empty(n),
            least=factor.row_bounds if plan.polish else np.empty(0),
            score=np.empty(n),
            own=np.empty(n),
            lanes=np.empty(claims.LANES),
            free=np.zeros(k, dtype=np.int64),
            price=np.empty(k),
            reach=np.empty((k, k)),
            history=np.empty((HISTORY_CAPACITY, 2)),
            stride=max(1, n // 50),
        )
        self._phase = self._search
        self._order = rng.permutation(n) if plan.method == "stochastic" else None
        self._quota = plan.quota[plan.first_round(index) :]
        self._floors = plan.floors[plan.first_round(index) :]
        self._state.pos[claims.REMAINING] = -1
        self._fill()
        if plan.method != "shaking":
            self._repair()
        self._note()

    def step(self, budget):
        """Run one slice; return whether the search has ended."""
        ended = self._phase(budget)
        self._history.drain(self._work.history, self._state.pos, moves.RECORDS)
        if ended:
            self._phase = self._next_phase()
        return self._phase is None

    def fraction(self):
        """Return an estimate of the share of the work that is done."""
        pos = self._state.pos
        if self._phase != self._search:
            return 0.95
        if self._plan.method == "shaking":
            return 0.95 * pos[claims.ROUND] / self._quota.shape[0]
        # Descents make about as many moves as there are points.
        return min(0.95, pos[moves.MOVES] / self._factor.n)

    def finish(self):
        """Do what every search does, and let the work space go."""
        sums = super().finish()
        self._work = self._order = self._phase = None
        return sums

    def _search(self, budget):
        plan, state, work = self._plan, self._state, self._work
        pos = state.pos
        if plan.method == "shaking":
            ended = claims.shake(state, work, self._quota, self._floors, budget)
            self.n_iter = int(pos[claims.ROUND])
            return ended
        if plan.method == "steepest":
            ended = claims.descend_steepest(state, work, plan.max_iter, budget)
            self.n_iter = int(pos[moves.MOVES])
        else:
            ended = claims.descend_stochastic(state, work, self._order, plan.max_iter, budget)
            self.n_iter = int(pos[claims.ROUND]) + int(pos[claims.CLUSTER] > 0)
        if ended and self.n_iter >= plan.max_iter:
            self.status = Status.MAX_ITER
        return ended

    def _next_phase(self):
        """Return what follows: a descent after a repair, the polish, or None."""
        state, plan = self._state, self._plan
        if self._phase == self._search:
            self._take_best()
            if self._repair():
                state.pos[[claims.ROUND, claims.CLUSTER, claims.CLEAN]] = 0
                return self._settle
        if plan.polish and self._phase != self._polish:
            state.pos[[claims.CLUSTER, claims.CLEAN]] = 0
            if plan.method == "shaking":
                # The paper's rule fixes the sizes, so only swaps are left.
                self._set_bounds(*plan.rule.bounds_at(state.counts))
            return self._polish
        return None

    def _settle(self, budget):
        """Descend by moves within the bounds that a repair has met."""
        order, endless = np.arange(self._plan.n), np.iinfo(np.int64).max
        return claims.descend_stochastic(self._state, self._work, order, endless, budget)

    def _polish(self, budget):
        return claims.polish(self._state, self._work, budget)

    def _sum(self):
        state, total = self._state, self._work.total
        if isinstance(self._factor, LowRankFactor):
            W = self._factor._cluster_sums(state.labels, len(state.sums))
            self._factor._cluster_scores(W, state.sums)
        else:
            moves.build_sums(state.matrix, state.labels, state.sums)
        np.sum(state.sums, axis=0, out=total)
        return claims.risk(state.labels, state.sums, total)

    def _scores(self):
        return self._state.sums.copy()

    def _repair(self):
        """Close a turn that a stop left open, and bring the sizes within bounds."""
        state = self._state
        if state.pos[claims.REMAINING] >= 0:
            if state.pos[claims.LAZY]:
                claims.rebuild_row(state.sums, self._work.total, state.pos[claims.CLUSTER])
            state.pos[claims.REMAINING] = -1
        return super()._repair()
