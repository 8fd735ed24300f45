"""Known labels: they name the clusters that are found without them, or tell where to start."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.linalg import solve

from fastmmc.core.execution import warn_if_stopped, without_warnings
from fastmmc.core.status import STOPPED, Status
from fastmmc.data.labels import named_clusters
from fastmmc.data.memberships import margins
from fastmmc.data.sizes import MOST_SCORES, fit_sizes, held_sizes
from fastmmc.kernels.gram import evenly, kernel_points, kernel_product
from fastmmc.rls.plan import FIRST_CHILD_ROUND

# Parts of the known labels that are hidden in turn.
FOLDS = 5

# Points whose known labels make the classifier, which costs the cube of their number.
MOST_TOLD = 1_000

# Shares of the work until the clusters are found, and until the last search begins.
FOUND, TESTED = 0.5, 0.9

# Searches that follow on known labels being overruled, at most, and the share of the work until
# the first of them.
OVERRULINGS = 5
ALL_KEPT = 0.8


class _Stopped(Exception):
    """Ends the tests on hidden labels, with the Status of the search that was stopped."""


def search_with_known(search, factor, plan, control):
    """Return the result of a search over labellings that have the known labels.

    There are two places to start from. One is the labelling found as if no label was known, whose
    clusters are named by the known labels in them. The other is what a least-squares classifier of
    the known labels tells of all points, which is shaken gently. That one is taken if it tells
    hidden labels better than the named clusters tell those that named them: labels that are too
    few for a classifier can still name clusters.

    ``search(plan, control)`` is a search without known labels, or one from given labels. After one
    that was stopped, only the named clusters are left to go on from.
    """
    if (plan.known >= 0).all():
        return search(plan.of_given(plan.known, plan.n_rounds), control)
    with without_warnings():
        found = search(replace(plan, known=None, bound=False), control.part(0.0, FOUND))
    status = found.status
    clusters = named_clusters(found.labels, plan.known, plan.k)
    # Sizes asked for belong to names, which the clusters have only now.
    first = plan.n_rounds - (plan.rule.targets is not None)
    given = plan.of_given(plan.with_known(clusters), first)
    if status not in STOPPED:
        try:
            if _classifier_wins(search, factor, plan, clusters, control.part(FOUND, TESTED)):
                given = _from_classifier(factor, plan, clusters)
        except _Stopped as stopped:
            (status,) = stopped.args
    n_init = found.params["n_init"]
    control = control.part(TESTED, 1.0)
    if status == Status.CONVERGED:
        result = search(given, control)
    else:
        with without_warnings():
            result = search(given, control)
        warn_if_stopped(status, len(found.objectives), n_init, control.shortage)
        result = replace(result, status=status)
    return replace(result, params=result.params | {"n_init": n_init})


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


def _from_classifier(factor, plan, clusters):
    """Return the plan of a search from what the known labels tell of all points."""
    return plan.of_given(classified(factor, plan, clusters), FIRST_CHILD_ROUND)


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


def _classifier_wins(search, factor, plan, clusters, control):
    """Tell whether a start from the classifier errs on fewer known labels than the clusters do.

    The classifier is told all labels but one part, and judged by that part.
    """
    parts = _parts(plan.known, plan.k)
    n_parts = parts.max() + 1
    allowed = np.count_nonzero((clusters != plan.known) & (parts >= 0))
    errors = 0
    for i in range(n_parts):
        if errors >= allowed:
            break
        hidden = parts == i
        told = replace(plan, known=np.where(hidden, -1, plan.known), bound=False)
        with without_warnings():
            result = search(
                _from_classifier(factor, told, clusters),
                control.part(i / n_parts, (i + 1) / n_parts),
            )
        if result.status in STOPPED:
            raise _Stopped(result.status)
        errors += np.count_nonzero(result.labels[hidden] != plan.known[hidden])
    return errors < allowed


def _parts(known, k):
    """Return the part in which each known label is hidden, -1 where none is.

    A class is told in every part, so that a single known label is never hidden.
    """
    parts = np.full(known.size, -1)
    for h in range(k):
        rows = np.flatnonzero(known == h)
        if rows.size > 1:
            parts[rows] = np.arange(rows.size) % FOLDS
    return parts
