"""What a call of UMC-RLS asks for, checked and made into the plan of its search."""

import math
from dataclasses import replace
from functools import cached_property

import numpy as np

from fastmmc.core import validation
from fastmmc.core.declare import told, values
from fastmmc.core.execution import warn_of_equal_points
from fastmmc.core.parameters import Clusters, SizeParameters
from fastmmc.core.words import named
from fastmmc.data.links import Links, check_links_of_clusters, join
from fastmmc.data.sizes import (
    SHARE_TOLERANCE,
    SizeRule,
    balanced_random_labels,
    check_least_and_most,
    fit_sizes,
    held_sizes,
    proportional_sizes,
    random_labels_of_masses,
    reorder_to_targets,
    shaking_quota,
    size_rule,
)
from fastmmc.kernels.factors import DenseFactor
from fastmmc.kernels.kmeans import k_means
from fastmmc.kernels.nystroem import AUTO_RANK, DENSE_LIMIT
from fastmmc.rls.engine.coarse import CELLS, count_cells, mass_slack, mass_unit, masses_of
from fastmmc.rls.parameters import UMCRLSBut, UMCRLSSearch, UMCRLSSizes

# Starts of a search other than the memetic one, which is many starts by itself; fewer where n is
# large.
STARTS = 30
STARTS_TIMES_POINTS = 300_000

# Points up to which the hat matrix is dense where the search is on cells, and its rank for more if
# sizes are about equal: from there on low rank is as good and quicker
# (asv_benchmarks/paper_tables/dense_or_low_rank.md). With free sizes five sets of 5,000 to 10,000
# points have a mean index of .52 at AUTO_RANK, and of .53 in 4 to 15 times the time if dense.
DENSE_CHOICE = 3_000
CHOICE_RANK = 500

# The rank is this many times k at least, as clusters have no scores of their own where it is not
# above k: blobs of 5,000 x 2 in 500 clusters have ARI .71, .83 and .85 at rank k, 2 k and 3 k
# (k-means .83), of 20,000 x 10 in 500 .82, .98 and .99 (.94). But n r^2 is at most the last number:
# a million x 20 in 1,000 clusters that overlap take 356 processor s at rank 1,414, for .97; at rank
# 1,000 they have .85 (.94).
RANK_PER_CLUSTER = 3
MOST_PRODUCTS = 2 * 10**12

# Points for each cell, at least, where there are more than CELLS: 5,000 x 2 in 500 clusters take
# 7 s with 3, and 21 s without it, for the same ARI.
POINTS_PER_CELL = 3

# How far sizes may end from their targets unless the user says otherwise, as a share of n / k. The
# memetic search keeps to it all along, shaking is brought back to it where it ends beyond. With .1,
# .2, .3 and .4 the memetic search has a mean index of .565, .586, .568 and .568 on samples of 12
# real sets, .363, .370, .369 and .364 on 26 tables, and .670, .686, .683 and .676 on a suite (three
# seeds); on whole sets whose classes are of unequal sizes .3 is better.
BALANCE = {"memetic": 0.2, "shaking": 0.5}


class LabelSearchPlan(UMCRLSSearch):
    """A search over labellings: its checked parameters, and the points it is over.

    ``method`` is "shaking" where k is 1, whatever was asked for, and nothing is left open.
    """

    n: int
    k: int
    points: np.ndarray
    rule: SizeRule
    known: np.ndarray | None  # (n,) labels, -1 where unknown
    trust: np.ndarray | None  # (n,) probabilities that these are right; None: they are
    min_size: int
    free: bool  # whether the cost of free sizes is minimised
    bound: bool  # whether a lower bound on Q is wanted
    default_sizes: bool  # whether the user has said nothing of sizes
    params: dict  # for the result alone
    masses: np.ndarray | None = None  # (n,) int64 that sizes count points by; None: 1 each
    links: Links | None = None
    weights: np.ndarray | None = None  # (n,) of the points; None: all 1
    link_penalty: float | None = None  # price of a broken cannot-link; None: none is broken
    asked_sizes: bool = False  # whether the user has set bounds on sizes
    cells: int = 0  # that labels are searched on; 0: on the points
    n_init: int = 1  # restarts

    @property
    def total(self):
        """What all sizes add up to."""
        return self.n if self.masses is None else int(self.masses.sum())

    @cached_property
    def quota(self):
        """Size that each claiming cluster grows to, (rounds, k)."""
        return shaking_quota(self.total, self.k, self.n_rounds, self.start_round, self.rule.targets)

    @cached_property
    def floors(self):
        """Sizes below which donors do not fall, (rounds, k).

        It is min_size, or less where the claiming cluster's quota leaves less: with two clusters
        the first round takes everything, which is what makes it forget the start.
        """
        left = (self.total - self.quota.max(axis=1, keepdims=True)) // max(1, self.k - 1)
        return np.repeat(np.minimum(self.min_size, left), self.k, axis=1)

    @property
    def movable(self):
        """Points whose label is not known, (n,) bool."""
        return np.ones(self.n, dtype=np.bool_) if self.known is None else self.known < 0

    @property
    def has_random_start(self):
        """Whether each restart begins with random labels."""
        return isinstance(self.init, str) and self.init == "random"

    def with_known(self, labels):
        """Return the labels with the known ones in their places."""
        return labels if self.known is None else np.where(self.known >= 0, self.known, labels)

    def start_labels(self, rng):
        """Return the labels that one restart begins with."""
        if self.has_random_start:
            if self.masses is not None:
                return random_labels_of_masses(self.masses, self.k, rng, self.rule, self.known)
            return balanced_random_labels(self.n, self.k, rng, self.rule, self.known)
        if not isinstance(self.init, str):
            return self.with_known(self.init)
        labels, _ = k_means(self.points, self.k, int(rng.integers(2**31)))
        if self.rule.targets is not None:
            labels = reorder_to_targets(labels, self.rule.targets)
        return self.with_known(labels)

    def fitted(self, labels, scores):
        """Return the labels with sizes within the bounds, or near them if points have masses."""
        lower, upper = self.rule.lower, self.rule.upper
        return fit_sizes(labels, scores, lower, upper, self.movable, self.masses)

    def forgets_start(self):
        """Tell whether the first cluster of the first round claims every point there is."""
        return self.method == "shaking" and self.k == 2 and self.quota[0, 0] == self.total

    @property
    def is_memetic(self):
        """Whether the memetic search runs, or what has its place where sizes are free."""
        return self.free or self.method == "memetic"

    @property
    def n_starts(self):
        """Number of restarts, one where all of them would give the same labels."""
        if self.k > 1 and (self.is_memetic or self.method == "stochastic"):
            return self.n_init
        is_fixed = self.k == 1 or not isinstance(self.init, str)
        return 1 if is_fixed or (self.forgets_start() and len(self.quota) == 1) else self.n_init

    def first_round(self, index):
        """Return the row of the quota that one restart begins at.

        Where the first round forgets the start, only the first restart runs it: the others would
        repeat it to the letter.
        """
        return 1 if index > 0 and self.forgets_start() else 0

    def of_sample(self, indices):
        """Return the plan for some of the points alone."""
        m, k, rule = indices.size, self.k, self.rule
        known = None if self.known is None else self.known[indices]
        # The sample may have drawn any number of the known labels, so only what the bounds leave to
        # the other points is scaled.
        held, held_here = held_sizes(self.known, k), held_sizes(known, k)
        free = m - held_here.sum()
        share = free / max(1, self.total - held.sum())
        lower = held_here + np.floor(np.maximum(rule.lower - held, 0) * share).astype(np.int64)
        upper = held_here + np.minimum(free, np.ceil((rule.upper - held) * share)).astype(np.int64)
        targets = rule.targets
        if targets is not None:
            targets = held_here + proportional_sizes(np.maximum(targets - held, 0), free)
        return replace(
            self,
            n=m,
            masses=None,  # sizes of a sample count points
            init="random",
            rule=SizeRule(targets, lower, upper, rule.bounded),
            known=known,
            min_size=int(self.min_size * m / self.n),
            keep_best=False,
        )

    def of_given(self, labels, first):
        """Return the plan of one search from labels, which shaking goes on with from a round."""
        start = min(self.n_rounds, max(self.start_round, first))
        return replace(self, init=labels, population=1, start_round=start)


def prepare(call, source):
    """Return where the hat matrix comes from, and the plan of the search."""
    plan, form = _make_plan(call, source), replace(source.form, weights=call.sample_weight)
    # Landmarks that were given, or end where they suffice, keep their number.
    is_free = isinstance(form.landmarks, str) and not form.is_pivoted
    is_free = is_free and source.factor is None and call.rank == "auto"
    if plan.cells and plan.is_memetic and is_free and plan.n > DENSE_CHOICE:
        least = min(RANK_PER_CLUSTER * plan.k, math.isqrt(MOST_PRODUCTS // plan.n))
        rank = AUTO_RANK if plan.free else CHOICE_RANK
        form = replace(form, rank=min(plan.n, max(least, min(rank, form.rank or rank))))
    return replace(source, form=form), plan


def wanted_cells(call, n, k, is_linked=False, is_dense=False):
    """Return how many cells labels of n points are searched on, 0 if the points are.

    They are points where these are few. Those of the paper's searches are, unless there are many
    and no dense hat matrix is asked for; without links and weights those of its plain descents are.
    """
    is_shaking, least = call.method == "shaking", 0
    if not _is_memetic(call):
        if is_dense or not (is_shaking or is_linked):
            return 0
        least = DENSE_LIMIT if is_shaking else DENSE_CHOICE
    cells = max(2 * k, min(count_cells(n, k), max(CELLS, n // POINTS_PER_CELL)))
    return cells if n > max(cells, least) else 0


def _is_memetic(call):
    """Tell of a call what :attr:`LabelSearchPlan.is_memetic` does of its plan."""
    return call.sizes == "free" or call.method in ("auto", "memetic")


def count_starts(call, n):
    """Return the number of starts; if none is given, it depends on the search and n alone."""
    if not isinstance(call.n_init, str):
        return call.n_init
    if _is_memetic(call):
        return 1
    return STARTS if n <= DENSE_LIMIT else max(1, min(STARTS, STARTS_TIMES_POINTS // n))


def _make_plan(call, source):
    """Check the parameters of the search and fix what all restarts have in common."""
    points = source.points
    n = points.shape[0]
    k = validation.check_cluster_count(call.k, n)
    validation.check_integer(
        "start_round", call.start_round, least=0, most=call.n_rounds - 1, why=", the last round"
    )
    known = call.known_labels
    if known is not None and (known < 0).all():
        known = None
    links, known = check_links(call, n, k, known)
    if not links and call.link_penalty is not None:
        raise ValueError(
            f"link_penalty is the price of a broken cannot-link, and there are none; got "
            f"{call.link_penalty}"
        )
    # Weights are worked on as links are.
    links = None if not links and call.sample_weight is None else links
    trust = check_trust(call, known, links)
    is_free, method = call.sizes == "free", "memetic" if call.method == "auto" else call.method
    is_dense = call.rank is None or isinstance(source.factor, DenseFactor)
    cells = wanted_cells(call, n, k, links is not None, is_dense)
    default = None if is_free or method not in BALANCE else max(BALANCE[method], k / n)
    bounded = method == "memetic" or call.target_sizes is not None
    rule, min_size, default = check_sizes(call, n, k, known, default, bounded)
    # Known labels, links and weights may take sizes beyond a balance that is left open.
    is_filled_in = call.balance is None and bounded and known is None and links is None
    balance = default if is_filled_in else call.balance
    asked_sizes = bool(told(call, SizeParameters))
    if links is not None:
        check_groups(links, known, n, k, rule, call.sample_weight, asked_sizes)
    params = values(call, Clusters, UMCRLSSearch, UMCRLSSizes)
    params |= {"method": method, "balance": balance}
    if links:
        params["link_penalty"] = call.link_penalty
    warn_of_equal_points(points, k)
    return LabelSearchPlan(
        **values(call, UMCRLSSearch)
        | {
            "link_penalty": call.link_penalty,
            "method": "shaking" if k == 1 else method,
            "max_iter": np.iinfo(np.int64).max if call.max_iter is None else call.max_iter,
        },
        n=n,
        k=k,
        points=points,
        rule=rule,
        known=known,
        trust=trust,
        min_size=min_size,
        params=params,
        free=is_free,
        bound=call.bound,
        default_sizes=call.balance is call.target_sizes is call.max_size is known is None,
        links=links,
        weights=call.sample_weight,
        asked_sizes=asked_sizes,
        cells=cells,
        n_init=count_starts(call, n),
    )


def check_links(call, n, k, known):
    """Return the links of a call, and the known labels with those that links imply.

    What is known of a point is known of all that must be in its cluster.
    """
    hard = getattr(call, "link_penalty", None) is None
    links = check_links_of_clusters(call.must_link, call.cannot_link, n, k, known, hard=hard)
    if links and known is not None:
        members = join(links.must, n)
        of_group = np.full(n, -1)
        np.maximum.at(of_group, members, known)
        known = of_group[members]
    return links, known


def check_sizes(call, n, k, known, default, bounded):
    """Return the rule of sizes and the least size, as masses, and the default balance.

    The latter is ``default``, or what room the heaviest point needs if that is more; sizes that are
    given are met as nearly as points allow. ``bounded`` is as for :func:`size_rule`.
    """
    total, masses, unit, told_sizes = _in_masses(call, n)
    check_least_and_most(total, k, told_sizes["min_size"], told_sizes["max_size"])
    # One point more or less must be possible however few there are.
    least = 0.0 if masses is None else k * masses.max() / total
    if call.target_sizes is not None:
        default = least
    elif default is not None:
        default = max(default, least)
    rule = size_rule(
        total,
        k,
        balance=None if call.balance is None else max(call.balance, least),
        known=known,
        masses=masses,
        unit=unit,
        default=default,
        bounded=bounded,
        **told_sizes,
    )
    return rule, told_sizes["min_size"], default


def _in_masses(call, n):
    """Return what all points, each (n,) and the weight 1 count for, and the sizes told in it."""
    told_sizes = {name: getattr(call, name) for name in ("target_sizes", "min_size", "max_size")}
    weights = call.sample_weight
    if weights is None:
        return n, None, 1.0, told_sizes
    _check_sizes_of_weights(call, float(weights.sum()))
    unit = mass_unit(weights)
    masses = masses_of(weights, unit)
    total = int(masses.sum())
    if unit != 1:
        if np.asarray(call.target_sizes).dtype.kind in "iu":
            told_sizes["target_sizes"] = np.asarray(call.target_sizes) / weights.sum()
        if call.min_size > 1:
            told_sizes["min_size"] = min(int(unit * call.min_size), total // call.k)
        if call.max_size is not None:
            told_sizes["max_size"] = max(int(unit * call.max_size), -(-total // call.k))
    return total, masses, unit, told_sizes


def _check_sizes_of_weights(call, total):
    """Refuse sizes that clusters of this total weight cannot have, in the terms of the call.

    The sum of weights is rounded, and what misses it by no more is allowed.
    """
    mean, sizes = total / call.k, np.asarray(call.target_sizes)
    if call.min_size > max(1.0, mean * (1 + SHARE_TOLERANCE)):
        raise ValueError(
            f"min_size must be at most {mean:.6g}, the weight of an average cluster; got "
            f"{call.min_size}"
        )
    if call.max_size is not None and call.max_size < mean * (1 - SHARE_TOLERANCE):
        raise ValueError(
            f"max_size must be at least {mean:.6g}, the weight of an average cluster; got "
            f"{call.max_size}"
        )
    if sizes.dtype.kind in "iu" and abs(sizes.sum() - total) > SHARE_TOLERANCE * total:
        raise ValueError(
            f"target_sizes must sum to the weight of all points, {total:.6g}, or be shares that "
            f"sum to 1; got {sizes.tolist()}, which sum to {sizes.sum()}"
        )


def check_groups(links, known, n, k, rule, weights, asked_sizes):
    """Refuse must-links and known labels that leave too few groups, or one too large."""
    members = join(links.must, n, known)[:n]
    sizes = np.bincount(members)
    if sizes.size < np.count_nonzero(rule.lower):
        rows = np.flatnonzero(members == sizes.argmax())
        joined = ["must_link"] * (len(links.must) > 0) + ["known_labels"] * (known is not None)
        verb = "leaves" if joined == ["must_link"] else "leave"
        raise ValueError(
            f"{' and '.join(joined)} {verb} {sizes.size} groups of points, fewer than k = {k} "
            f"clusters; the largest has {rows.size} points ({named('row', rows.tolist())})"
        )
    if weights is not None and not asked_sizes:
        return  # heavy groups may go beyond a balance that is left open
    unit = mass_unit(weights)
    total = n if weights is None else masses_of(weights, unit).sum()
    others = rule.lower.sum() - rule.lower
    room = np.minimum(rule.upper, total - others)
    held, h = np.bincount(members, weights), room.argmax()
    if unit * held.max() - room[h] > mass_slack(unit, n):
        rows = np.flatnonzero(members == held.argmax())
        which = named("row", rows.tolist())
        weight = "" if weights is None else f" of weight {held.max():.10g}"
        what = f"must_link joins {rows.size} points{weight} ({which})"
        if rows.size == 1:
            what = f"{which} is a point{weight}"
        beside = ""
        if room[h] < rule.upper[h]:
            beside = f" beside others of at least {others[h] / unit:.10g} in all"
        raise ValueError(
            f"{what}, and no cluster may have more than {room[h] / unit:.10g}{beside}; raise "
            "balance or max_size, lower min_size, or change target_sizes"
        )


def check_trust(call, known, links):
    """Return how far each known label is trusted, (n,), None if entirely or if there are none."""
    trust = call.known_trust
    if call.known_labels is None and "known_trust" in told(call, UMCRLSBut):
        raise ValueError(
            "known_trust is how likely a known label is right, and none are given; give "
            f"known_labels (an estimator: y and semi_supervised=True); got {trust}"
        )
    if known is None:
        return None
    if np.ndim(trust) == 1 and len(trust) != known.size:
        raise ValueError(
            f"known_trust must be one number or {known.size}, one for each point; got {len(trust)}"
        )
    trust = np.broadcast_to(trust, known.shape)
    if (trust[known >= 0] == 1.0).all():
        return None
    if links:
        raise ValueError(
            "known_trust below 1 cannot go with must_link or cannot_link, by which known labels "
            "imply others; leave it out, or the links"
        )
    return trust
