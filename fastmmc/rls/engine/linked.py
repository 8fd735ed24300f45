"""UMC-RLS on points that are linked or weighted: must-links merge them, cannot-links part them.

Labels that are equal within groups have the same objective on the groups: with M the n x g
membership matrix and Z the labels of the groups, tr(E^T R E) = tr(Z^T (M^T R M) Z). So must-links
cost nothing and hold exactly, and what a group counts for in the sizes is its mass. In the searches
a cannot-link is a price: an entry of the matrix of the groups that is so negative that together
they explain less than apart. In the end groups are parted that are still together, and all descend
in the true objective by moves that heed the links, alone or with those that are linked to them.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array, csr_array, eye_array, kron

from fastmmc.core import memory
from fastmmc.data.labels import named_clusters
from fastmmc.data.links import Links, join
from fastmmc.data.sizes import are_within, reorder_to_targets
from fastmmc.kernels.factors import DenseFactor
from fastmmc.rls.engine import _loops_groups as loops
from fastmmc.rls.engine import _loops_trees as trees
from fastmmc.rls.engine.coarse import mass_unit, masses_of
from fastmmc.rls.engine.groups import Groups, fitted

# A pair that must be apart is worth this much of the sums of R for each point of its lighter group,
# more than the points' fits can differ by.
PRICE = 8.0

# Nothing is worth a broken cannot-link.
FORBIDDEN = 1e9

# Groups that change clusters together so that linked ones stay apart.
MOST_IN_CHAIN = 64

# Moves that part linked groups, for each of them.
PARTINGS = 50

# An integer program for labels that keep all rules has so many variables at most, and seconds. It
# takes .02 s for ten points, and 2 s for 1,000 in four clusters with 981 pairs, about as many as
# four can part. As many variables, with a pair for every two groups, take 2.3 s; ten times as many
# find nothing in 4.2 s, with 1.3 GB.
MOST_VARIABLES = 100_000
SECONDS = 2.0


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
    weights: np.ndarray  # (g,) float64, in the same unit, of which masses are rounded
    unit: float  # mass of the weight 1
    cannot: np.ndarray  # (p, 2) int64 pairs of groups, each once
    prices: np.ndarray  # (p,) float64 of their being together, as a part of sums of R
    hard: bool  # whether no price is enough

    @classmethod
    def of(cls, links, n, weights=None, penalty=None):
        """Return the groups that must-links make of n points, of these weights if there are any."""
        links = links or Links.none()
        members = join(links.must, n)
        unit = mass_unit(weights)
        exact = unit * np.bincount(members, weights)
        masses = masses_of(exact, 1.0)
        scales = np.full(n, np.sqrt(unit)) if weights is None else np.sqrt(weights * unit)
        pairs = np.sort(members[links.cannot], axis=1)
        cannot, counts = np.unique(pairs, axis=0, return_counts=True)
        hard = penalty is None
        prices = PRICE * masses[cannot].min(axis=1) if hard else penalty * unit * counts
        return cls(members, scales, masses, exact, unit, cannot, prices, hard)

    @classmethod
    def of_groups(cls, members, masses, unit, cannot):
        """Return groups whose members are scaled, and pairs of them that are to be apart."""
        prices = PRICE * masses[cannot].min(axis=1)
        exact = masses.astype(np.float64)
        return cls(members, np.ones(members.size), masses, exact, unit, cannot, prices, True)

    @property
    def n_groups(self):
        """Number of groups."""
        return self.masses.size

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

    def together(self, labels):
        """Tell which pairs are together that should not be, (p,) bool."""
        a, b = self.cannot.T
        return labels[a] == labels[b]

    def plan(self, plan):
        """Return the plan of a search for labels of the groups."""
        if self.n_groups == self.members.size:  # points, which are many where this matters
            return replace(plan, masses=self.masses)
        return replace(
            plan,
            n=self.n_groups,
            init=plan.init if isinstance(plan.init, str) else plan.init[self.first],
            known=None if plan.known is None else plan.known[self.first],
            points=plan.points[self.first],
            masses=self.masses,
        )

    def draw(self, rows, size, rng):
        """Return about this number of points, whole groups, with all that are linked to them.

        Where these are too many, groups are drawn one by one.
        """
        members = self.members[rows]
        chain = join(self.cannot, self.n_groups)[members]
        if np.bincount(chain).max() > size:
            chain = members
        chain = np.unique(chain, return_inverse=True)[1]
        counts = np.bincount(chain)
        order = rng.permutation(counts.size)
        taken = np.zeros(counts.size, dtype=bool)
        taken[order[: np.searchsorted(np.cumsum(counts[order]), size) + 1]] = True
        return rows[taken[chain]]

    def of_cells(self, cells, plan, rng):
        """Return the merging of the groups into cells, and the plan of a search for their labels.

        ``cells`` (n,) is the cell of each point. Linked groups, and those of one cell with one
        known label, have cells of their own; of more such groups than the plan's cells a sample,
        and the others are in theirs as if nothing was known of them.
        """
        plan = self.plan(plan)
        cells = cells[self.first]
        known = np.full(self.n_groups, -1) if plan.known is None else plan.known
        is_linked = np.bincount(self.members) > 1
        is_linked[self.cannot] = True
        told = np.flatnonzero(is_linked | (known >= 0))
        if told.size > plan.cells:
            rows = np.flatnonzero(np.isin(self.members, told))
            rows = self.draw(rows, plan.cells, rng)
            told = np.unique(self.members[rows])
        count = cells.max() + 1
        names = cells.copy()
        of_label = count + self.n_groups + cells[told] * plan.k + known[told]
        names[told] = np.where(is_linked[told], count + told, of_label)
        names, first, members = np.unique(names, return_index=True, return_inverse=True)
        pairs = np.where(names >= count, np.arange(names.size), -1)[members[self.cannot]]
        inside = (pairs >= 0).all(axis=1)
        masses = np.bincount(members, self.masses).astype(np.int64)
        exact = np.bincount(members, self.weights)
        rest = exact, self.unit, pairs[inside], self.prices[inside], self.hard
        merging = Merging(members, np.ones(members.size), masses, *rest)
        if plan.known is not None:
            plan = replace(plan, known=np.where(names >= count, known[first], -1)[members])
        if isinstance(plan.init, np.ndarray):
            plan = replace(plan, init=majority(plan.init, members, self.masses, plan.k)[members])
        return merging, merging.plan(plan)

    def parted(self, state):
        """Return labels that part groups which must not be together, (g,) int64.

        Sizes are within bounds as far as can be. Where there are such pairs, the state has the
        labels that are returned, else those that it had.
        """
        if not len(self.cannot):
            return fitted(state)
        pairs = self.pairs(0.0)
        n_linked = np.unique(self.cannot).size
        if self.hard:
            # Most pairs are parted by groups that go where they fit; a search parts the others.
            move_groups(state, pairs, True)
            if self.together(state.labels).any():
                loops.part_pairs(state, pairs, PARTINGS * n_linked + 100)
        move_groups(state, pairs, False)
        return state.labels.astype(np.int64)

    def kept(self, state):
        """Return labels as by :meth:`parted`, or if these break rules the nearest that do not.

        The state has the labels that are returned if they are not its own.
        """
        labels = self.parted(state)
        counts = np.bincount(labels, self.masses, state.counts.size)
        are_apart = not (self.hard and self.together(labels).any())
        if are_apart and are_within(counts, state.lower, state.upper):
            return labels
        found = self._nearest_feasible(labels, state)
        return labels if found is None else found

    def _nearest_feasible(self, labels, state):
        """Return labels that keep all rules and move the least mass; None if there are none.

        They are found by an integer program with a variable for each group and cluster, or not at
        all where that takes too long.
        """
        (g,), k = labels.shape, state.counts.size
        if g * k > MOST_VARIABLES:
            return None
        moves = np.repeat(self.masses, k).reshape(g, k) * (labels[:, None] != np.arange(k))
        may_be = np.ones((g, k))
        may_be[~state.movable] = labels[~state.movable, None] == np.arange(k)
        of_groups, of_clusters = eye_array(g), eye_array(k)
        rules = [
            LinearConstraint(kron(of_groups, np.ones((1, k))), 1.0, 1.0),
            LinearConstraint(kron(self.masses[None], of_clusters), state.lower, state.upper),
        ]
        if self.hard and len(self.cannot):
            p = len(self.cannot)
            places = np.repeat(np.arange(p), 2), self.cannot.ravel()
            ends = coo_array((np.ones(2 * p), places), shape=(p, g))
            rules.append(LinearConstraint(kron(ends, of_clusters), -np.inf, 1.0))
        solved = milp(
            moves.ravel(),
            integrality=np.ones(g * k),
            bounds=Bounds(0.0, may_be.ravel()),
            constraints=rules,
            options={"time_limit": SECONDS},
        )
        return None if solved.x is None else solved.x.reshape(g, k).argmax(axis=1)

    def groups(self, factor, movable):
        """Return all groups, with rows of Z where that is what there is."""
        dense, n, g = isinstance(factor, DenseFactor), self.members.size, self.n_groups
        matrix = factor.R if dense else factor.Z
        if dense and not (n == g and (self.scales == 1.0).all()):
            memory.check_memory(g, np.dtype(np.float64), what="matrix of linked points")
            matrix = np.zeros((g, g))
            trees.merge_groups(factor.R, self.members, self.scales, matrix)
        elif n > g:
            rows = self.scales, self.members, np.arange(n + 1)
            matrix = csr_array(rows, shape=(n, g)).T @ matrix
        elif not dense and (self.scales != 1.0).any():
            matrix = self.scales[:, None].astype(matrix.dtype) * matrix
        return Groups(matrix, self.masses, movable, dense)

    def linked(self, matrix, known):
        """Return groups with this matrix, in which pairs get their prices, and known labels."""
        if len(self.cannot):
            memory.check_memory(self.n_groups, matrix.dtype, what="matrix of linked points")
            a, b = self.cannot.T
            matrix = matrix.copy()
            matrix[a, b] -= (self.prices / 2.0).astype(matrix.dtype)
            matrix[b, a] = matrix[a, b]
        movable = None if known is None else known < 0
        return LinkedGroups(matrix, self.masses, movable, True, self, known)


@dataclass(frozen=True, eq=False)
class LinkedGroups(Groups):
    """Groups in whose matrix pairs that must be apart have their prices."""

    merging: Merging | None = None
    known: np.ndarray | None = None  # (g,) labels, -1 where unknown; None: none is known

    def coarse(self, count):
        """Return these groups: those of which something is known may not be merged."""
        return self, np.arange(self.n)

    def fitted(self, labels, rule):
        """Return labels that keep what is known and the links, and the sizes as far as can be."""
        known, k = self.known, rule.lower.size
        if known is not None and (known >= 0).any():
            labels = named_clusters(labels, known, k, self.masses)
            labels = np.where(known >= 0, known, labels)
        elif rule.targets is not None:
            labels = reorder_to_targets(labels, rule.targets, self.masses)
        return self.merging.parted(self.state(labels, rule))


def majority(labels, members, masses, k):
    """Return the label that most of the mass of each group has."""
    counts = np.bincount(members * k + labels, masses, (members.max() + 1) * k)
    return counts.reshape(-1, k).argmax(axis=1)


def objective_of(state, merging):
    """Return the objective of groups, with the prices of pairs together if they have one."""
    k = state.counts.size
    together = merging.prices[merging.together(state.labels)]
    price = 0.0 if merging.hard else float(together.sum())
    if state.free:
        counts = np.bincount(state.labels, merging.weights, k)
        cost = np.sum(1.0 - state.within / np.where(counts > 0, counts, 1.0))
        return float(cost + price * k / merging.weights.sum())
    if state.dense:
        everything, within = state.sums.sum(), state.within.sum()
    else:
        everything, within = np.sum(state.sums.sum(axis=0) ** 2), np.sum(state.sums**2)
    return risk_of(price - within, everything, k, merging)


def risk_of(cost, everything, k, merging):
    """Return Q of k clusters of groups, by the cost where sizes are ruled and the sum of R."""
    value = k * float(merging.weights.sum()) + (4 - k) * everything + 4 * cost
    return float(value / merging.unit)
