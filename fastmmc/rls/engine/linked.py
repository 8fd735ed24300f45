"""UMC-RLS on points that are linked or weighted: must-links merge them, cannot-links part them.

Labels that are equal within groups have the same objective on the groups: with M the n x g
membership matrix and Z the labels of the groups, tr(E^T R E) = tr(Z^T (M^T R M) Z). So must-links
cost nothing and hold exactly, and what a group counts for in the sizes is its mass. In the searches
a cannot-link is a price: an entry of the matrix of the groups that is so negative that together
they explain less than apart. In the end groups are parted that are still together, and all descend
in the true objective by moves that heed the links, alone or with those that are linked to them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from fastmmc.core import memory
from fastmmc.core.sliced import SlicedSearch
from fastmmc.data.links import join
from fastmmc.data.sizes import SizeRule
from fastmmc.kernels.factors import DenseFactor, LowRankFactor
from fastmmc.kernels.gram import Kernel
from fastmmc.rls.claims import ClaimSearch
from fastmmc.rls.engine import _loops_groups as loops
from fastmmc.rls.engine import _loops_ward as ward
from fastmmc.rls.engine.coarse import mass_unit, masses_of
from fastmmc.rls.engine.free import SLICE, hat_of_sample
from fastmmc.rls.engine.groups import Groups, cost_of, make_state, nearness
from fastmmc.rls.engine.memetic import MemeticSearch
from fastmmc.rls.plan import LabelSearchPlan

# A pair that must be apart is worth this much of the sums of R for each point of its lighter group,
# more than the points' fits can differ by.
PRICE = 8.0

# Nothing is worth a broken cannot-link.
FORBIDDEN = 1e9

# Groups that change clusters together so that linked ones stay apart.
MOST_IN_CHAIN = 64

# Points that are searched all at once. Of more a sample is, of this size, or this many for each
# cluster but no more than the last number.
ALL = 5_000
SAMPLE = 3_000
SAMPLE_PER_CLUSTER = 50
MOST_SAMPLED = 10_000

# Moves that part linked groups, for each of them.
PARTINGS = 50


def move_groups(state, pairs, parting):
    """Move groups while that parts pairs which are to be apart, or else brings sizes within bounds.

    Moves of the least cost for their mass come first, an eighth of the groups at a time.
    """
    g = state.labels.size
    costs, goals = np.empty(g), np.empty(g, dtype=np.int64)
    while True:
        loops.price_moves(state, pairs, parting, costs, goals)
        n_found = np.count_nonzero(np.isfinite(costs))
        if n_found == 0:
            return
        first = np.argsort(costs, kind="stable")[: 1 + n_found // 8]
        loops.make_moves(state, pairs, parting, first, goals)


@dataclass(frozen=True, eq=False)
class Merging:
    """Points merged into groups, what these count for, and which are to be apart."""

    members: np.ndarray  # (n,) int64, the group of each point
    scales: np.ndarray  # (n,) float64, what rows of R are multiplied by: roots of the weights
    masses: np.ndarray  # (g,) int64
    unit: float  # mass of the weight 1
    cannot: np.ndarray  # (p, 2) int64 pairs of groups, each once
    prices: np.ndarray  # (p,) float64 of their being together, as a part of sums of R
    hard: bool  # whether no price is enough

    @classmethod
    def of(cls, links, n, weights, penalty):
        """Return the groups that must-links make of n points, of these weights if there are any."""
        members = join(links.must, n)
        unit = mass_unit(weights)
        masses = masses_of(np.bincount(members, weights), unit)
        scales = np.full(n, np.sqrt(unit)) if weights is None else np.sqrt(weights * unit)
        pairs = np.sort(members[links.cannot], axis=1)
        cannot, counts = np.unique(pairs, axis=0, return_counts=True)
        hard = penalty is None
        prices = PRICE * masses[cannot].min(axis=1) if hard else penalty * unit * counts
        return cls(members, scales, masses, unit, cannot, prices.astype(np.float64), hard)

    @classmethod
    def of_groups(cls, members, masses, unit, cannot):
        """Return groups whose members are scaled, and pairs of them that are to be apart."""
        prices = PRICE * masses[cannot].min(axis=1)
        return cls(members, np.ones(members.size), masses, unit, cannot, prices, True)

    @property
    def n_groups(self):
        """Number of groups."""
        return self.masses.size

    @cached_property
    def membership(self):
        """The (n, g) matrix M with the scales of the points."""
        n = self.members.size
        return csr_array((self.scales, self.members, np.arange(n + 1)), shape=(n, self.n_groups))

    @cached_property
    def first(self):
        """The first point of each group, (g,)."""
        return np.unique(self.members, return_index=True)[1]

    @cached_property
    def priced(self):
        """The sparse matrix (g, g) of the prices of pairs."""
        a, b = self.cannot.T
        ends = np.concatenate((a, b)), np.concatenate((b, a))
        prices = np.concatenate((self.prices, self.prices))
        return csr_array(coo_array((prices, ends), shape=(self.n_groups, self.n_groups)))

    def pairs(self, price):
        """Return the pairs for compiled loops, at ``price`` times their own or forbidden."""
        matrix = self.priced
        data = np.full(matrix.data.size, FORBIDDEN) if self.hard else price * matrix.data
        return loops.Pairs(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), data)

    def count_together(self, labels):
        """Count the pairs of groups that are together and should not be."""
        a, b = self.cannot.T
        return int(np.count_nonzero(labels[a] == labels[b]))

    def price_of(self, labels):
        """Return the price of the pairs that are together."""
        a, b = self.cannot.T
        return float(self.prices[labels[a] == labels[b]].sum())

    def plan(self, plan):
        """Return the plan of a search for labels of the groups."""
        return replace(
            plan,
            n=self.n_groups,
            init=plan.init if isinstance(plan.init, str) else plan.init[self.first],
            known=None if plan.known is None else plan.known[self.first],
            points=plan.points[self.first],
            masses=self.masses,
        )

    @property
    def is_plain(self):
        """Whether every group is a point of weight 1."""
        return self.n_groups == self.members.size and bool((self.scales == 1.0).all())

    def merge(self, R):
        """Return the matrix of the groups, (g, g): R itself where every group is a point."""
        if self.is_plain:
            return R
        memory.check_memory(self.n_groups, np.dtype(np.float64), what="matrix of linked points")
        out = np.empty((self.n_groups, self.n_groups))
        ward.merge_groups(R, self.members, self.scales, out)
        return out

    def price(self, matrix):
        """Return the matrix of the groups with the prices of pairs in it."""
        if not len(self.cannot):
            return matrix
        memory.check_memory(self.n_groups, matrix.dtype, what="matrix of linked points")
        a, b = self.cannot.T
        priced = matrix.copy()
        priced[a, b] -= (self.prices / 2.0).astype(matrix.dtype)
        priced[b, a] = priced[a, b]
        return priced

    def draw(self, size, rng):
        """Return points of about this number: groups, with all that are linked to them.

        Where these are too many, groups are drawn one by one.
        """
        linked = connected_components(self.priced, directed=False)[1]
        chain = linked[self.members]
        if np.bincount(chain).max() > size:
            chain = self.members
        counts = np.bincount(chain)
        order = rng.permutation(counts.size)
        taken = np.zeros(counts.size, dtype=bool)
        taken[order[: np.searchsorted(np.cumsum(counts[order]), size) + 1]] = True
        return np.flatnonzero(taken[chain])

    def of_rows(self, rows):
        """Return the merging of some points that are whole groups."""
        groups, members = np.unique(self.members[rows], return_inverse=True)
        place = np.full(self.n_groups, -1)
        place[groups] = np.arange(groups.size)
        inside = (place[self.cannot] >= 0).all(axis=1)
        return Merging(
            members,
            self.scales[rows],
            self.masses[groups],
            self.unit,
            place[self.cannot[inside]],
            self.prices[inside],
            self.hard,
        )

    def part(self, state):
        """Part groups that must not be together, and bring sizes within bounds as far as can be."""
        pairs = self.pairs(0.0)
        n_linked = np.unique(self.cannot).size
        if self.hard:
            # Most pairs are parted by groups that go where they fit; a search parts the others.
            move_groups(state, pairs, True)
            if self.count_together(state.labels):
                loops.part_pairs(state, pairs, PARTINGS * n_linked + 100)
        move_groups(state, pairs, False)

    def merge_rows(self, Z):
        """Return the sums of the rows of Z over the groups: Z where every group is a point."""
        return Z if self.is_plain else self.membership.T @ Z

    def state(self, matrix, dense, labels, movable, rule, free):
        """Return what the compiled loops work on."""
        if dense:
            diagonal = np.ascontiguousarray(np.diagonal(matrix), dtype=np.float64)
        else:
            diagonal = np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64)
        of = diagonal, labels, self.masses, movable
        return make_state(matrix, dense, *of, rule, free)


@dataclass(frozen=True, eq=False)
class LinkedGroups(Groups):
    """Groups whose matrix has the prices of pairs in it."""

    merging: Merging
    plan: LabelSearchPlan

    @classmethod
    def of(cls, matrix, merging, plan):
        """Return the groups with this matrix, for a plan of points."""
        plan = merging.plan(plan)
        return cls(merging.price(matrix), merging.masses, plan.movable, merging, plan)

    def fitted(self, labels, rule):
        """Return labels of parted groups whose sizes keep to the rule as far as can be."""
        state = self.state(labels, rule)
        self.merging.part(state)
        return state.labels.astype(np.int64)


class NearSearch:
    """The search of equal sizes on the matrix of groups, as a population that it does not need."""

    def __init__(self, points, plan, index, rng):
        factor = DenseFactor(points.matrix, 1.0, Kernel("precomputed"), points.matrix)
        diag = factor.diagonal()
        self.groups = points
        self.fraction = 0.0
        if plan.method == "memetic":
            self._search = MemeticSearch(factor, diag, plan, rng)
        else:
            self._search = ClaimSearch(factor, diag, plan, index, rng)

    def run(self):
        """Search; yield at the end of each slice."""
        while not self._search.step(SLICE):
            self.fraction = self._search.fraction()
            yield

    def finish(self):
        """Return the labels, and take the figures."""
        search = self._search
        search.finish()
        self.status, self.n_iter, self.n_moves = search.status, search.n_iter, search.n_moves
        return search.labels


class LinkedSearch(SlicedSearch):
    """One restart: a search over groups, or over a sample of them, and the descent of all."""

    def __init__(self, factor, merging, groups, plan, sample, index, rng, check_time, kind):
        self._factor = factor
        self._merging = merging
        self._matrix, self._points = groups
        self._plan = plan
        self._sample = sample
        self._index = index
        self._rng = rng
        self._check_time = check_time
        self._kind = kind
        self._search = self._state = self._predict = None
        super().__init__()

    def fraction(self):
        """Return an estimate of the share of the work that is done."""
        if self._state is not None or self._search is None:
            return 0.95 * (self._state is not None)
        return 0.9 * self._search.fraction

    def finish(self):
        """Take the final figures and let the work space go."""
        if self._state is None:
            self._begin_descent()
        labels = self._state.labels.astype(np.int64)
        self.n_moves = int(self._state.pos[loops.MOVES])
        if self._search is not None:
            self.n_moves += self._search.n_moves
            self.n_iter = self._search.n_iter
            self.status = self._search.status
        # From scratch, so that no rounding of the moves is left.
        self.objective = self._value(self._make_state(labels))
        self.labels = labels[self._merging.members]
        self._history.note(self.n_moves, self.objective)
        self._end_history("moves")
        self._search = self._state = self._work = self._points = self._matrix = None

    def _run(self):
        """Search, then descend; yield at the end of each slice."""
        if self._plan.has_random_start or not self._sample:
            if self._sample:
                self._points = yield from self._sample_points()
            points = self._points
            self._search = self._kind(points, points.plan, self._index, self._rng)
            yield from self._search.run()
        self._begin_descent()
        yield
        chain = np.empty(MOST_IN_CHAIN, dtype=np.int64)
        while not loops.descend(self._state, self._pairs, chain, self._budget):
            yield

    def _sample_points(self):
        """Return the groups of a sample, with their matrix."""
        merging, plan = self._merging, self._plan
        rows = merging.draw(self._sample, self._rng)
        R, self._predict = yield from hat_of_sample(self._factor, rows, self._check_time)
        part = merging.of_rows(rows)
        share = part.masses.sum() / merging.masses.sum()
        return LinkedGroups.of(part.merge(R), part, _scaled(plan, rows, share))

    def _begin_descent(self):
        """Part the groups found, and make the state of all groups."""
        merging, plan = self._merging, self._plan
        self._pairs = merging.pairs(plan.k / merging.masses.sum() if plan.free else 1.0)
        state = self._make_state(self._labels_of_all())
        merging.part(state)
        told = plan.rule.targets is not None or not plan.links
        if plan.method == "shaking" and told and not plan.free:
            # The paper's rule fixes the sizes, so that only chains of one size change sides. Where
            # no sizes are asked for, links are what tells of them.
            lower, upper = plan.rule.bounds_at(state.counts.copy())
            state = state._replace(lower=lower, upper=upper)
        self._state = state
        self._history.note(0, self._value(state))

    def _labels_of_all(self):
        """Return the labels of all groups that the search found, or those to start from."""
        merging = self._merging
        plan = merging.plan(self._plan)
        if self._search is None:
            return plan.start_labels(self._rng)
        labels = self._search.finish()
        if self._predict is None:
            return labels
        groups = self._search.groups
        state = groups.state(labels, groups.plan.rule)
        E = (labels == np.arange(plan.k)[:, None]).astype(np.float64)
        fits = self._predict(E @ groups.merging.membership.T)
        if isinstance(self._factor, LowRankFactor):
            fits = self._factor._cluster_scores(fits)
        sums = fits @ merging.membership
        return plan.with_known(nearness(state, sums, merging.masses).argmax(axis=0))

    def _make_state(self, labels):
        """Return the state of all groups."""
        matrix, dense = self._matrix
        plan = self._merging.plan(self._plan)
        return self._merging.state(matrix, dense, labels, plan.movable, plan.rule, plan.free)

    def _value(self, state):
        """Return the objective, with the prices of pairs that are together if they have one."""
        merging, k = self._merging, self._plan.k
        price = 0.0 if merging.hard else merging.price_of(state.labels)
        if self._plan.free:
            return cost_of(state) + price * k / float(merging.masses.sum())
        total = state.sums.sum() if state.dense else np.sum(state.sums.sum(axis=0) ** 2)
        value = k * merging.masses.sum() + (4 - k) * total - 4 * (state.within.sum() - price)
        return float(value / merging.unit)


def sample_size(n, k):
    """Return how many points a search is over before all take part, 0 if that is all of them."""
    size = max(SAMPLE, min(SAMPLE_PER_CLUSTER * k, MOST_SAMPLED))
    return size if n > max(ALL, size) else 0


def _scaled(plan, rows, share):
    """Return the plan for some points, whose sizes are a share of those of all."""
    rule = plan.rule
    scaled = SizeRule(
        None if rule.targets is None else np.rint(rule.targets * share).astype(np.int64),
        np.floor(rule.lower * share).astype(np.int64),
        np.ceil(rule.upper * share).astype(np.int64),
        rule.bounded,
    )
    known = None if plan.known is None else plan.known[rows]
    return replace(plan, rule=scaled, points=plan.points[rows], known=known)


def make_groups(factor, merging, plan, sample):
    """Return the matrix of all groups and whether it is dense, and the groups that are searched.

    These are None where a sample is; yields the rows of the hat matrix that were made.
    """
    if isinstance(factor, LowRankFactor):
        if sample:
            return (merging.merge_rows(factor.Z), False), None
        R = yield from factor._hat_matrix()
    else:
        R = factor.R
    matrix = merging.merge(R)
    return (matrix, True), None if sample else LinkedGroups.of(matrix, merging, plan)
