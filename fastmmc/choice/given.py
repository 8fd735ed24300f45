"""What a call says of its points and of sizes, and labels that keep to it.

Points that must be together, and those known to be in one cluster, move as one group. Pairs that
must be apart have a price in the search; in the end they are parted. What is said of a point is
said of a cell: cells are split so that all points of one are told the same.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fastmmc.choice.vote import shares_of
from fastmmc.choice.widths import Width
from fastmmc.core.declare import told
from fastmmc.core.parameters import SizeParameters
from fastmmc.data.labels import named_clusters
from fastmmc.data.links import Links
from fastmmc.data.sizes import SizeRule
from fastmmc.rls.engine.groups import predictions, sums_of
from fastmmc.rls.engine.linked import Merging, majority
from fastmmc.rls.planning import check_groups, check_links, check_sizes

# How far from n / k sizes may be where they are about equal, as a share of n / k.
BALANCE = 0.4

# A known label or link that a labelling contradicts is at least this likely, and the power of the
# mean likelihood in a weight. On nine sets with 5 % of known labels and links the mean index is
# .834 and .821 with power 0, .834 and .814 with 2, .834 and .833 with 4, .834 and .832 with 8, and
# .830 and .821 if likelihoods are multiplied, which outweighs all else where clusters overlap.
LEAST_LIKELY = 0.01
POWER = 4.0


@dataclass(frozen=True, eq=False)
class Given:
    """What a call says of n points in k clusters, checked."""

    known: np.ndarray  # (n,) int64, -1 where a label is not known
    links: Links
    weights: np.ndarray | None  # (n,) of the points; None: all 1
    merging: Merging  # of all points
    free: SizeRule  # of clusters of any sizes, in masses
    near: SizeRule  # of clusters of about equal sizes
    asks_sizes: bool

    @classmethod
    def of(cls, call, n, k):
        """Return what a call says; raise what is wrong with it."""
        links, known = check_links(call, n, k, call.known_labels)
        free, near = size_rules(call, n, k, known)
        asks = bool(told(call, SizeParameters))
        if links or call.sample_weight is not None:
            check_groups(links, known, n, k, free, call.sample_weight, asks)
        known = np.full(n, -1) if known is None else known
        merging = Merging.of(links, n, call.sample_weight)
        return cls(known, links, call.sample_weight, merging, free, near, asks)

    @classmethod
    def of_sizes(cls, call, g, rules):
        """Return what a call says of g cells if that is about sizes alone."""
        asks = bool(told(call, SizeParameters))
        return cls(np.full(g, -1), Links.none(), None, Merging.of(None, g), *rules, asks)

    @property
    def is_empty(self):
        """Whether every labelling keeps to it."""
        return not (self.links or self.asks_sizes or (self.known >= 0).any())

    @property
    def is_plain(self):
        """Whether nothing is said, of weights either."""
        return self.is_empty and self.weights is None

    def rule_of(self, rule):
        """Return the rule of sizes that the labels of a candidate's rule keep to."""
        return self.near if rule == "near" and self.asks_sizes else self.free

    def keys(self, count, rng):
        """Return a number for each point, (n,): that of its known cluster or group, or else -1.

        Of more than ``count`` points with known labels or links a sample is told. The others are
        in the cells as if nothing was known of them, until all points get their labels.
        """
        rows = self.known >= 0
        rows[self.links.must] = rows[self.links.cannot] = True
        rows = np.flatnonzero(rows)
        if rows.size > count:
            rows = self.merging.draw(rows, count, rng)
        keys = np.full(self.known.size, -1)
        keys[rows] = self._names[self.merging.members[rows]]
        return keys

    @cached_property
    def _names(self):
        """The number of each group: that of its known cluster, or one from k on."""
        known = self.known[self.merging.first]
        return np.where(known >= 0, known, self.free.lower.size + np.arange(known.size))

    def of_cells(self, cells, keys):
        """Return what is to be kept of cells whose points have these keys."""
        if self.is_empty:
            return Kept(self.free, self.near)
        g, k, names = cells.masses.size, self.free.lower.size, self._names
        own = keys[cells.seeds]
        known, lone = np.where(own < k, own, -1), k + names.size + np.arange(g)
        own = np.where(own >= 0, own, lone)
        if np.unique(own).size < k:  # where almost all is known, its cells are groups
            own = np.where(known >= 0, lone, own)
        _, first, members = np.unique(own, return_index=True, return_inverse=True)
        place = np.empty(first.size, dtype=np.int64)
        place[np.argsort(first)] = np.arange(first.size)
        members, first = place[members], np.sort(first)  # in the order of the cells
        of_name = np.full(k + names.size + g, -1)
        of_name[own[first]] = np.arange(first.size)
        pairs = np.sort(of_name[names[self.merging.cannot]], axis=1)
        pairs = np.unique(pairs[(pairs >= 0).all(axis=1)], axis=0)
        masses = np.bincount(members, cells.masses).astype(np.int64)
        merging = Merging.of_groups(members, masses, self.merging.unit, pairs)
        rules = [_of_cells(rule, cells, self.asks_sizes) for rule in (self.free, self.near)]
        return Kept(*rules, known[first], merging)

    def repair(self, factor, labels, rule):
        """Return labels of all points that keep to it, from others: what changes costs least."""
        merging = self.merging
        known = self.known[merging.first]
        labels = majority(labels, merging.members, self.weights, rule.lower.size)
        labels = np.where(known >= 0, known, labels)
        state = merging.groups(factor, known < 0).state(labels, rule)
        return merging.kept(state)[merging.members]


def size_rules(call, n, k, known=None):
    """Return the rules of clusters of any sizes and of about equal sizes."""
    call = replace(call, k=k)
    return [check_sizes(call, n, k, known, balance, False)[0] for balance in (None, BALANCE)]


def balance_of(sizes):
    """Return the balance that clusters of about equal sizes keep to: what these (k,) need.

    Cells and predictions may go beyond what the search kept to. It is rounded up, as sizes are
    rounded where points have weights.
    """
    needed = np.abs(sizes * (sizes.size / sizes.sum()) - 1.0).max()
    return max(BALANCE, float(np.ceil(needed * 1e6) / 1e6))


def _of_cells(rule, cells, asked):
    """Return the rule of sizes that a search over cells keeps to.

    Cells cannot be put together to any size, so bounds are wider by one of mean mass. Where no
    sizes are asked for they are so wide that moves reach what swaps would.
    """
    room = 0 if cells.is_plain else -(-cells.total // cells.masses.size)
    lower = np.maximum(rule.lower - room, np.minimum(rule.lower, 1))
    return replace(rule, lower=lower, upper=rule.upper + room, bounded=asked)


@dataclass(frozen=True, eq=False)
class Kept:
    """What labels of cells keep to; ``merging`` is None where that is sizes that all have."""

    free: SizeRule
    near: SizeRule
    known: np.ndarray | None = None  # (groups,) int64
    merging: Merging | None = None

    @property
    def first(self):
        """A cell of each group."""
        return slice(None) if self.merging is None else self.merging.first

    def groups(self, width: Width):
        """Return the groups that a search moves, with the sums of R of a kernel."""
        if self.merging is None:
            return width.groups
        matrix = width.groups.merge(self.merging.members).matrix
        return self.merging.linked(matrix, self.known)

    def of_cells(self, labels):
        """Return the labels of cells, from those of groups."""
        return labels if self.merging is None else labels[self.merging.members]

    def repair(self, groups, labels, masses):
        """Return labels of cells that keep to it, from others: what changes costs least."""
        if self.merging is None:
            return groups.fitted(labels, self.free)
        k, members = self.free.lower.size, self.merging.members
        labels = named_clusters(labels, self.known[members], k, masses)
        return groups.fitted(majority(labels, members, masses, k), self.free)[members]

    def likelihood(self, width, labels):
        """Return how likely what is known is if each cell has the predicted shares of the clusters.

        The shares are predicted from the labels of the other cells. It is the fourth power of the
        geometric mean over known cells and linked pairs.
        """
        if self.merging is None:
            return 1.0
        sums = sums_of(width.groups.matrix, labels, self.free.lower.size)
        shares = shares_of(predictions(width.groups, labels, sums)[0])
        known = self.known[self.merging.members]
        told = known >= 0
        (a, b), (c, d) = self._together, self.merging.first[self.merging.cannot].T
        likelihoods = (
            shares[told, known[told]],
            np.sum(shares[a] * shares[b], axis=1),
            1.0 - np.sum(shares[c] * shares[d], axis=1),
        )
        of_each = np.maximum(np.concatenate(likelihoods), LEAST_LIKELY)
        return float(np.exp(POWER * np.log(of_each).mean())) if of_each.size else 1.0

    @cached_property
    def _together(self):
        """Pairs of cells that must be together, (2, p), in chains."""
        order = np.argsort(self.merging.members, kind="stable")
        groups = self.merging.members[order]
        joins = (groups[1:] == groups[:-1]) & (self.known[groups[1:]] < 0)
        return np.stack([order[:-1][joins], order[1:][joins]])
