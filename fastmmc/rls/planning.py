"""What a call of UMC-RLS asks for, checked and made into the plan of its search."""

import math
from dataclasses import replace

import numpy as np

from fastmmc.core import validation
from fastmmc.core.declare import told, values
from fastmmc.core.execution import warn_of_equal_points
from fastmmc.core.parameters import Clusters, SizeParameters
from fastmmc.data.labels import check_init, read_known_labels
from fastmmc.data.links import check_links_of_clusters, join
from fastmmc.data.sizes import check_least_and_most, size_rule
from fastmmc.kernels.factors import DenseFactor
from fastmmc.kernels.nystroem import AUTO_RANK, DENSE_LIMIT
from fastmmc.rls.engine.coarse import CELLS, count_cells, mass_unit, masses_of
from fastmmc.rls.parameters import UMCRLSBut, UMCRLSSearch, UMCRLSSizes
from fastmmc.rls.plan import LabelSearchPlan

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


def prepare(call, make_source):
    """Return where the hat matrix comes from, and the plan of the search."""
    source = make_source(call)
    source = replace(source, form=replace(source.form, weights=call.sample_weight))
    plan = _make_plan(call, source)
    if plan.cells and plan.is_memetic and call.rank == "auto":
        least = min(RANK_PER_CLUSTER * plan.k, math.isqrt(MOST_PRODUCTS // plan.n))
        rank = AUTO_RANK if plan.free else CHOICE_RANK
        source = source.with_rank_above(DENSE_CHOICE, rank, least)
    return source, plan


def wanted_cells(call, n, k, is_linked=False, is_dense=False):
    """Return how many cells labels of n points are searched on, 0 if the points are.

    They are points where these are few. Those of the paper's searches are, unless there are many
    and no dense hat matrix is asked for; without links and weights those of its plain descents are.
    """
    method, least = _method_of(call), 0
    if not _is_memetic(call):
        if is_dense or not (method == "shaking" or is_linked):
            return 0
        least = DENSE_LIMIT if method == "shaking" else DENSE_CHOICE
    cells = max(2 * k, min(count_cells(n, k), max(CELLS, n // POINTS_PER_CELL)))
    return cells if n > max(cells, least) and k > 1 else 0


def _method_of(call):
    """Return the search that a call asks for."""
    return "memetic" if call.method == "auto" else call.method


def _is_memetic(call):
    """Tell of a call what :attr:`LabelSearchPlan.is_memetic` does of its plan."""
    return call.sizes == "free" or _method_of(call) == "memetic"


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
    known, classes = read_known_labels(call.known_labels, n, k)
    if known is not None and (known < 0).all():
        known = None
    links, known = check_links(call, n, k, known, hard=call.link_penalty is None)
    if not links and call.link_penalty is not None:
        raise ValueError(
            f"link_penalty is the price of a broken cannot-link, and there are none; got "
            f"{call.link_penalty}"
        )
    # Weights are worked on as links are.
    links = None if not links and call.sample_weight is None else links
    trust = check_trust(call, known, links)
    is_free, method = call.sizes == "free", _method_of(call)
    is_dense = call.rank is None or isinstance(source.factor, DenseFactor)
    cells = wanted_cells(call, n, k, links is not None, is_dense)
    default = None if is_free or method not in BALANCE else max(BALANCE[method], k / n)
    bounded = method == "memetic" or call.target_sizes is not None
    rule, min_size, default = check_sizes(call, n, k, known, default, bounded)
    balance = default if call.balance is None and bounded else call.balance
    if links is not None:
        check_groups(links, n, k, rule, call.sample_weight)
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
            "init": check_init(call.init, n, k, source.kernel),
            "max_iter": np.iinfo(np.int64).max if call.max_iter is None else call.max_iter,
        },
        n=n,
        k=k,
        points=points,
        rule=rule,
        known=known,
        trust=trust,
        min_size=min_size,
        classes=classes,
        params=params,
        free=is_free,
        bound=call.bound,
        default_sizes=call.balance is call.target_sizes is call.max_size is known is None,
        links=links,
        weights=call.sample_weight,
        asked_sizes=bool(told(call, SizeParameters)),
        cells=cells,
        n_init=count_starts(call, n),
    )


def check_links(call, n, k, known, hard=True):
    """Return the links of a call, and the known labels with those that links imply.

    What is known of a point is known of all that must be in its cluster.
    """
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
    total, masses, told_sizes = _in_masses(call, n)
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
        default=default,
        bounded=bounded,
        **told_sizes,
    )
    return rule, told_sizes["min_size"], default


def _in_masses(call, n):
    """Return what all points and each (n,) count for, and the sizes told, in these terms."""
    told_sizes = {name: getattr(call, name) for name in ("target_sizes", "min_size", "max_size")}
    weights = call.sample_weight
    if weights is None:
        return n, None, told_sizes
    _check_sizes_of_weights(call, float(weights.sum()))
    unit = mass_unit(weights)
    if unit != 1:
        if np.asarray(call.target_sizes).dtype.kind in "iu":
            told_sizes["target_sizes"] = np.asarray(call.target_sizes) / weights.sum()
        if call.min_size > 1:
            told_sizes["min_size"] = int(unit * call.min_size)
        if call.max_size is not None:
            told_sizes["max_size"] = int(unit * call.max_size)
    masses = masses_of(weights, unit)
    return int(masses.sum()), masses, told_sizes


def _check_sizes_of_weights(call, total):
    """Refuse sizes that clusters of this total weight cannot have, in the terms of the call."""
    mean, sizes = total / call.k, np.asarray(call.target_sizes)
    if call.min_size > max(1.0, mean):
        raise ValueError(
            f"min_size must be at most {mean:.6g}, the weight of an average cluster; got "
            f"{call.min_size}"
        )
    if call.max_size is not None and call.max_size < mean:
        raise ValueError(
            f"max_size must be at least {mean:.6g}, the weight of an average cluster; got "
            f"{call.max_size}"
        )
    if sizes.dtype.kind in "iu" and sizes.sum() != total:
        raise ValueError(
            f"target_sizes must sum to the weight of all points, {total:.6g}, or be shares that "
            f"sum to 1; got {sizes.tolist()}, which sum to {sizes.sum()}"
        )


def check_groups(links, n, k, rule, weights):
    """Refuse must-links that leave too few groups, or one that no cluster may hold."""
    largest = rule.upper.max() if weights is None else n
    members = join(links.must, n)
    sizes = np.bincount(members)
    rows = np.flatnonzero(members == sizes.argmax())
    named = f"{', '.join(map(str, rows[:3]))}{' ...' * (rows.size > 3)}"
    if sizes.size < k:
        raise ValueError(
            f"must_link leaves {sizes.size} groups of points, fewer than k = {k} clusters; the "
            f"largest has {rows.size} points (rows {named})"
        )
    if rows.size > largest:
        raise ValueError(
            f"must_link joins {rows.size} points (rows {named}), and no cluster may have more than "
            f"{largest}; raise balance or max_size"
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
