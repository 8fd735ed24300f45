"""Known labels: they name the clusters that are found without them, or tell where to start."""

from dataclasses import replace

import numpy as np
from scipy.linalg import inv

from fastmmc.core.execution import interrupted, warn_if_stopped, warn_user, without_warnings
from fastmmc.core.status import STOPPED
from fastmmc.data.labels import named_clusters
from fastmmc.data.memberships import margins
from fastmmc.data.sizes import MOST_SCORES, fit_sizes, held_sizes
from fastmmc.kernels.gram import evenly, kernel_points, kernel_product

# Points whose known labels make the classifier, which costs the cube of their number.
MOST_TOLD = 1_000

# Round of the shaking that goes on with what the classifier tells: late enough to keep it.
TOLD_ROUND = 4

# Share of the work until the clusters are found.
FOUND = 0.5

# Searches that follow on known labels being overruled, at most, and the share of the work until
# the first of them.
OVERRULINGS = 5
ALL_KEPT = 0.8


def search_with_known(search, factor, plan, control):
    """Return the result of a search over labellings that have the known labels.

    There are two places to start from. One is the labelling found as if no label was known, whose
    clusters are named by the known labels in them. The other is what a least-squares classifier of
    the known labels tells of all points. That one is taken if it errs on fewer known labels, each
    left out in turn, than the named clusters do. Else both are, and the lower objective wins.

    ``search(plan, control)`` is a search without known labels, or one from given labels. After one
    that was stopped there is no other, but for that from the named clusters.
    """
    if (plan.known >= 0).all():
        return search(plan.of_given(plan.known, plan.n_rounds), control)
    with without_warnings():
        found = search(replace(plan, known=None, bound=False), control.part(0.0, FOUND))
    clusters = named_clusters(found.labels, plan.known, plan.k)
    # Sizes asked for belong to names, which the clusters have only now.
    first = plan.n_rounds - (plan.rule.targets is not None)
    starts = [plan.of_given(plan.with_known(clusters), first)]
    if found.status not in STOPPED:
        labels, n_wrong, n_wrong_of_clusters = classify(factor, plan, clusters)
        starts.append(plan.of_given(labels, TOLD_ROUND))
        if n_wrong < n_wrong_of_clusters:
            del starts[0]
    ends, status = [], found.status
    for at, start in enumerate(starts):
        shares = FOUND + (1.0 - FOUND) * np.array([at, at + 1]) / len(starts)
        with without_warnings() as kept:
            ends.append((search(start, control.part(*shares)), kept))
        status = max(status, ends[-1][0].status)
        if status in STOPPED:
            break
    result, kept = min(ends, key=lambda end: end[0].objective)
    for warning in kept:
        warn_user(*warning)
    n_init = found.params["n_init"]
    if status != result.status:
        warn_if_stopped(status, len(found.objectives), n_init, control.shortage)
    return replace(result, status=status, params=result.params | {"n_init": n_init})


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
    try:
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
    except KeyboardInterrupt:
        result = interrupted(result)
    return result


def _doubted(result, plan):
    """Tell whose known label the other points hold for less likely than another one, (n,) bool."""
    own = np.where(plan.known >= 0, plan.known, 0)
    against = -2.0 * margins(result.loo_scores, own) * result._sharpness
    with np.errstate(divide="ignore"):
        prior = np.log(plan.trust * (plan.k - 1)) - np.log1p(-plan.trust)
    # However little a label is trusted, no cluster that fits worse takes its place.
    return (plan.known >= 0) & (against > np.maximum(prior, 0.0))


def classify(factor, plan, clusters):
    """Return what kernel least squares on the known labels tells of all points, sizes fitted.

    A class without a known label is learned from points of its cluster in ``clusters``. Also
    returns how many known labels are not those that the other ones tell, and not the clusters'.
    """
    known = _with_stand_ins(plan.known, clusters, plan.k)
    rows = _told_rows(known)
    basis = kernel_points(factor.kernel, factor.X, rows)
    gram = kernel_product(factor.kernel, basis, basis, np.eye(rows.size), rows)
    gram[np.diag_indices(rows.size)] += factor.lam
    codes = np.where(known[rows, None] == np.arange(plan.k), 1.0, -1.0)
    inverse = inv(gram, check_finite=False)
    coef = inverse @ codes
    # The class that the others tell of each.
    left_out = np.argmax(codes - coef / np.diagonal(inverse)[:, None], axis=1)
    scores = kernel_product(factor.kernel, factor.X, basis, coef, rows).T
    labels = plan.with_known(scores.argmax(axis=0))
    if plan.weights is None:  # else sizes are fitted where points are merged and weighed
        labels = fit_sizes(labels, scores, plan.rule.lower, plan.rule.upper, plan.movable)
    own = plan.known[rows]
    # A class with one known label is not counted: where it is left out, nothing tells of it.
    is_told = (own >= 0) & (held_sizes(own, plan.k)[own] > 1)
    wrong = [np.count_nonzero(is_told & (said != own)) for said in (left_out, clusters[rows])]
    return labels, *wrong


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
