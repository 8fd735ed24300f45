"""Known labels: they name the clusters that are found without them, or tell where to start."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.linalg import solve

from fastmmc.core.execution import warn_if_stopped, warn_user, without_warnings
from fastmmc.core.status import STOPPED
from fastmmc.data.labels import named_clusters
from fastmmc.data.memberships import margins
from fastmmc.data.sizes import MOST_SCORES, fit_sizes, held_sizes
from fastmmc.kernels.gram import evenly, kernel_points, kernel_product
from fastmmc.rls.plan import FIRST_CHILD_ROUND

# Points whose known labels make the classifier, which costs the cube of their number.
MOST_TOLD = 1_000

# Shares of the work until the clusters are found, and until the search from them has ended.
FOUND, NAMED = 0.5, 0.75

# Searches that follow on known labels being overruled, at most, and the share of the work until
# the first of them.
OVERRULINGS = 5
ALL_KEPT = 0.8


def search_with_known(search, factor, plan, control):
    """Return the better result of two searches over labellings that have the known labels.

    One begins with the labelling found as if no label was known, whose clusters are named by the
    known labels in them. The other begins with what a least-squares classifier of the known labels
    tells of all points, which is shaken gently.

    ``search(plan, control)`` is a search without known labels, or one from given labels. After one
    that was stopped, only the named clusters are left to go on from.
    """
    if (plan.known >= 0).all():
        return search(plan.of_given(plan.known, plan.n_rounds), control)
    with without_warnings():
        found = search(replace(plan, known=None, bound=False), control.part(0.0, FOUND))
    clusters = named_clusters(found.labels, plan.known, plan.k)
    # Sizes asked for belong to names, which the clusters have only now.
    first = plan.n_rounds - (plan.rule.targets is not None)
    given = plan.of_given(plan.with_known(clusters), first)
    ends = [_muted(search, given, control.part(FOUND, NAMED))]
    statuses = [found.status, ends[0][0].status]
    if not set(statuses).intersection(STOPPED):
        given = plan.of_given(classified(factor, plan, clusters), FIRST_CHILD_ROUND)
        ends.append(_muted(search, given, control.part(NAMED, 1.0)))
        statuses.append(ends[1][0].status)
    result, kept = min(ends, key=lambda end: end[0].objective)
    status, n_init = max(statuses), found.params["n_init"]
    for warning in kept:
        warn_user(*warning)
    if status != result.status:
        warn_if_stopped(status, len(found.objectives), n_init, control.shortage)
    return replace(result, status=status, params=result.params | {"n_init": n_init})


def _muted(search, plan, control):
    """Return the result of a search, and the warnings it would have given."""
    with without_warnings() as kept:
        return search(plan, control), kept


def search_overruling(search, plan, control):
    """Return the result of a search in which known labels that are not trusted may be overruled.

    A label of trust t stands for the prior probability t of its cluster and (1 - t) / (k - 1) of
    each other one. All known labels are kept at first. Then those whose cluster is less likely than
    another, given what the other points predict, are known no more, and the search goes on with
    these points there, until none is left of these.
    """
    if plan.n * plan.k > MOST_SCORES:
        raise ValueError(
            f"known_trust below 1 needs the leave-one-out scores of all points, {plan.n} x "
            f"{plan.k}, of which there may be {MOST_SCORES}; give known_trust=1, or fewer points "
            "or clusters"
        )
    result = search(replace(plan, trust=None), control.part(0.0, ALL_KEPT))
    for at in range(OVERRULINGS):
        doubted = _doubted(result, plan)
        if result.status in STOPPED or not doubted.any():
            break
        plan = replace(plan, known=np.where(doubted, -1, plan.known))
        labels = np.where(doubted, result.loo_scores.argmax(axis=1), result.labels)
        # Shaking ends where sizes are as they should be, and leaves the rest to the polish.
        given = replace(plan, trust=None, polish=True).of_given(labels, plan.n_rounds)
        share = (1.0 - ALL_KEPT) / OVERRULINGS
        part = control.part(ALL_KEPT + at * share, ALL_KEPT + (at + 1) * share)
        next_one = search(given, part)
        result = replace(next_one, params=next_one.params | {"n_init": result.params["n_init"]})
    return result


def _doubted(result, plan):
    """Tell whose known label the other points hold for less likely than another one, (n,) bool."""
    own = np.where(plan.known >= 0, plan.known, 0)
    against = -2.0 * margins(result.loo_scores, own) * result._sharpness
    with np.errstate(divide="ignore"):
        prior = np.log(plan.trust * (plan.k - 1)) - np.log1p(-plan.trust)
    # However little a label is trusted, no cluster that fits worse takes its place.
    return (plan.known >= 0) & (against > np.maximum(prior, 0.0))


def classified(factor, plan, clusters):
    """Return what kernel least squares on the known labels tells of all points, sizes fitted.

    A class without a known label is learned from points of its cluster in ``clusters``.
    """
    known = _with_stand_ins(plan.known, clusters, plan.k)
    rows = _told_rows(known)
    basis = kernel_points(factor.kernel, factor.X, rows)
    gram = kernel_product(factor.kernel, basis, basis, np.eye(rows.size), rows)
    gram[np.diag_indices(rows.size)] += factor.lam
    codes = np.where(known[rows, None] == np.arange(plan.k), 1.0, -1.0)
    coef = solve(gram, codes, assume_a="sym", check_finite=False)
    scores = kernel_product(factor.kernel, factor.X, basis, coef, rows).T
    labels = plan.with_known(scores.argmax(axis=0))
    if plan.weights is not None:
        return labels  # sizes are fitted where points are merged and weighed
    return fit_sizes(labels, scores, plan.rule.lower, plan.rule.upper, plan.movable)


def _with_stand_ins(known, clusters, k):
    """Return the known labels and, for classes without any, those of points in their clusters.

    There are as many of these as the median class has known labels.
    """
    counts = held_sizes(known, k)
    wanted = int(np.median(counts[counts > 0]))
    told = known.copy()
    for h in np.flatnonzero(counts == 0):
        members = np.flatnonzero((clusters == h) & (known < 0))
        told[members[evenly(members.size, wanted)]] = h
    return told


def _told_rows(known):
    """Return the points whose labels are known; of very many some, from each class its share."""
    rows = np.flatnonzero(known >= 0)
    by_class = rows[np.argsort(known[rows], kind="stable")]
    return np.sort(by_class[evenly(rows.size, MOST_TOLD)])
