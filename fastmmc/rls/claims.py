"""One restart of UMC-RLS, claim by claim: the plan it follows and the phases it goes through."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fastmmc._means import k_means
from fastmmc.results import HISTORY_CAPACITY, History, Status
from fastmmc.rls import _loops_claims as claims
from fastmmc.rls.source import compact, matrix_and_row, repaired, sum_rows
from fastmmc.sizes import SizeRule, balanced_random_labels, reorder_to_targets


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything that the restarts of one call have in common."""

    n: int
    k: int
    method: str
    init: str | np.ndarray
    points: np.ndarray
    rule: SizeRule
    known: np.ndarray | None
    quota: np.ndarray
    floors: np.ndarray
    polish: bool
    keep_best: bool
    max_iter: int
    params: dict
    bound: bool = False  # whether a lower bound on Q is wanted
    batches: int | None = None  # None: claims are made one by one
    sample: int = 0  # points that a start in batches is first clustered on
    population: int = 0  # individuals of the memetic search, and the
    patience: int = 0  # children in a row that may fail to better the best
    keep_sums: bool = False  # for those who go on from the result
    default_sizes: bool = False  # whether the user has said nothing of sizes

    def start_labels(self, rng):
        """Return the labels that one restart begins with."""
        if not isinstance(self.init, str):
            labels = self.init
        elif self.init == "random":
            return balanced_random_labels(self.n, self.k, rng, self.rule, self.known)
        else:
            seed = int(rng.integers(2**31))
            labels, _ = k_means(self.points, self.k, seed)
            if self.rule.targets is not None:
                labels = reorder_to_targets(labels, self.rule.targets)
        return labels if self.known is None else np.where(self.known >= 0, self.known, labels)

    def forgets_start(self):
        """Tell whether the first cluster of the first round claims every point there is."""
        return self.method == "shaking" and self.k == 2 and self.quota[0, 0] == self.n

    def starts_are_equal(self):
        """Tell whether every restart would give the same labels."""
        if self.k == 1:
            return True
        if self.method in ("stochastic", "memetic"):
            return False
        return not isinstance(self.init, str) or (self.forgets_start() and len(self.quota) == 1)

    def first_round(self, index):
        """Return the row of the quota that one restart begins at.

        Where the first round forgets the start, only the first restart runs it: the others would
        repeat it to the letter.
        """
        return 1 if index > 0 and self.forgets_start() else 0


class ClaimSearch:
    """One restart: the state of the compiled loops and the phases that it goes through."""

    def __init__(self, factor, diag, plan, index, rng):
        n = factor.n
        self._factor = factor
        self._matrix, self._row = matrix_and_row(factor)
        self._plan = plan
        self._history = History()
        self._tol = 1e-12 * n / 8
        self._stride = max(1, n // 50)
        self._phase = self._search
        labels = plan.start_labels(rng)
        self._state = _new_state(factor, diag, labels, plan)
        self._order = rng.permutation(n) if plan.method == "stochastic" else None
        self._quota = plan.quota[plan.first_round(index) :]
        self._floors = plan.floors[plan.first_round(index) :]
        self._price = np.empty(plan.k)
        self._reach = np.empty((plan.k, plan.k))
        self._free = np.zeros(plan.k, dtype=np.int64)
        self.status = Status.CONVERGED
        if plan.method != "shaking":
            self._repair()
        self._note()

    def step(self, budget):
        """Run one slice; return whether the search has ended."""
        ended = self._phase(budget)
        self._history.drain(self._state.history, self._state.pos, claims.RECORDS)
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
        return min(0.95, pos[claims.MOVES] / self._factor.n)

    def finish(self):
        """Bring the sizes within bounds, take the final figures and let the work space go."""
        self._repair()
        state = self._state
        self._note()
        self.objective = float(state.value[claims.OBJECTIVE])
        self.labels = state.labels.astype(np.int64)
        self.n_moves = int(state.pos[claims.MOVES])
        self.history = self._history.values()
        self.trace = {"moves": self._history.counts()}
        self.sums = state.U if self._plan.keep_sums else None
        self._state = self._order = self._phase = None

    def _search(self, budget):
        plan, state, rule = self._plan, self._state, self._plan.rule
        pos = state.pos
        if plan.method == "shaking":
            ended = claims.shake(
                self._matrix, self._row, state, self._quota, self._floors, self._stride, budget
            )
            self.n_iter = int(pos[claims.ROUND])
        elif plan.method == "steepest":
            ended = claims.descend_steepest(
                self._matrix,
                self._row,
                state,
                rule.lower,
                rule.upper,
                self._tol,
                plan.max_iter,
                self._stride,
                budget,
            )
            self.n_iter = int(pos[claims.MOVES])
        else:
            ended = self._descend(self._order, plan.max_iter, budget)
            self.n_iter = int(pos[claims.ROUND]) + int(pos[claims.CLUSTER] > 0)
        if ended and plan.method != "shaking" and self.n_iter >= plan.max_iter:
            self.status = Status.MAX_ITER
        return ended

    def _next_phase(self):
        """Return what follows: a descent after a repair, the polish, or None."""
        state, plan = self._state, self._plan
        if self._phase == self._search:
            if plan.keep_best and state.value[claims.BEST] < state.value[claims.OBJECTIVE]:
                state.labels[:] = state.best_labels
                _fill_sums(self._factor, state)
            if self._repair():
                state.pos[[claims.ROUND, claims.CLUSTER, claims.CLEAN]] = 0
                return self._settle
        if plan.polish and self._phase != self._polish:
            state.pos[[claims.CLUSTER, claims.CLEAN]] = 0
            return self._polish
        return None

    def _settle(self, budget):
        """Descend by moves within the bounds that a repair has met."""
        return self._descend(np.arange(self._plan.n), np.iinfo(np.int64).max, budget)

    def _descend(self, order, max_sweeps, budget):
        rule = self._plan.rule
        return claims.descend_stochastic(
            self._matrix,
            self._row,
            self._state,
            order,
            rule.lower,
            rule.upper,
            self._tol,
            max_sweeps,
            self._stride,
            budget,
        )

    def _polish(self, budget):
        state, rule = self._state, self._plan.rule
        lower, upper = rule.lower, rule.upper
        if self._plan.method == "shaking":
            # The paper's rule fixes the sizes, so only swaps are left.
            lower, upper = rule.bounds_at(state.counts.copy())
        return claims.polish(
            self._matrix,
            self._row,
            state,
            self._free,
            self._price,
            self._reach,
            self._factor.row_bounds,
            lower,
            upper,
            self._tol,
            self._stride,
            budget,
        )

    def _repair(self):
        """Bring the sizes within bounds, and tell whether they were not.

        A turn that a stop left open is closed first.
        """
        state, rule = self._state, self._plan.rule
        if state.pos[claims.REMAINING] >= 0:
            if state.pos[claims.LAZY]:
                claims.rebuild_row(state.U, state.total, state.pos[claims.CLUSTER])
            state.pos[claims.REMAINING] = -1
        if (state.counts >= rule.lower).all() and (state.counts <= rule.upper).all():
            return False
        labels = repaired(state.labels, state.U.copy(), state.diag, rule, state.movable)
        state.pos[claims.MOVES] += np.count_nonzero(labels != state.labels)
        state.labels[:] = labels
        _fill_sums(self._factor, state)
        return True

    def _note(self):
        """Note where the search stands."""
        self._history.note(self._state.pos[claims.MOVES], self._state.value[claims.OBJECTIVE])


def _new_state(factor, diag, labels, plan):
    n = factor.n
    labels = compact(labels, plan.k)
    known = plan.known
    state = claims.State(
        labels=labels,
        counts=np.zeros(plan.k, dtype=np.int64),
        U=np.empty((plan.k, n)),
        total=np.empty(n),
        diag=diag,
        movable=np.ones(n, dtype=np.bool_) if known is None else known < 0,
        score=np.empty(n),
        own=np.empty(n),
        lanes=np.empty(claims.LANES),
        pos=np.zeros(claims.N_POS, dtype=np.int64),
        value=np.full(claims.N_VALUES, np.inf),
        history=np.empty((HISTORY_CAPACITY, 2)),
        best_labels=np.empty(n if plan.keep_best else 0, dtype=labels.dtype),
    )
    state.pos[claims.REMAINING] = -1
    _fill_sums(factor, state)
    return state


def _fill_sums(factor, state):
    """Compute everything that the state caches of its labels."""
    state.counts[:] = np.bincount(state.labels, minlength=state.counts.size)
    sum_rows(factor, state.labels, state.U)
    np.sum(state.U, axis=0, out=state.total)
    state.value[claims.OBJECTIVE] = claims.risk(state.labels, state.U, state.total)


def donor_floors(n, k, quota, min_size):
    """Return the sizes below which donors do not fall, for every round and cluster.

    It is min_size, or less where the claiming cluster's quota leaves less: with two clusters
    the first round takes everything, which is what makes it forget the start.
    """
    left = (n - quota.max(axis=1, keepdims=True)) // max(1, k - 1)
    return np.broadcast_to(np.minimum(min_size, left), quota.shape).copy()
