"""How smooth clusters are to be where links are told: labels of a larger lam may suit them better.

With a large lam the cost of free sizes is that of kernel k-means, whose clusters are compact and
whose borders are simple. Links that hold where nothing asks for them speak for the labels.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.metrics import adjusted_rand_score

from fastmmc.execution import OutOfTime, warn_if_stopped, without_warnings
from fastmmc.factors import DenseFactor, make_factor
from fastmmc.gram import kernel_diagonal
from fastmmc.nystroem import Form
from fastmmc.rls.free import Groups
from fastmmc.rls.outliers import without_outlier_scores
from fastmmc.rls.source import fit_labels
from fastmmc.status import Status

# Labels of a larger adjusted Rand index are the same clusters but for their borders.
ALIKE = 0.8

# Share of the work until the usual search is over.
USUAL = 0.7


def is_open(factor, plan, most):
    """Tell whether links may choose: all is left to us but hard links, of up to so many points."""
    told = plan.asked_sizes or not (plan.known is plan.weights is plan.link_penalty is None)
    is_choice = plan.chooses_sizes and bool(plan.links) and not told
    return is_choice and isinstance(factor, DenseFactor) and factor.n <= most


def search_smooth_too(search, factor, plan, control):
    """Return the result of a search, or that of kernel k-means if the links speak for its labels.

    Both keep to the links. Then these are dropped, labels descend in the cost that they were found
    by, and the links that still hold are counted. The labels of kernel k-means are taken if they
    lose fewer, and if they are the same clusters but for their borders also where they lose more by
    no more than the standard error: simple borders are the safer ones. The model of all labels is
    that of the factor, as kernel k-means has none.

    ``search(factor, plan, control)`` is a search that heeds the links.
    """
    usual = search(factor, plan, control.part(0.0, USUAL))
    if usual.status != Status.CONVERGED:
        return usual
    try:
        smooth_factor = _smooth_factor(factor, control)
        with without_warnings(), without_outlier_scores():
            smooth = search(smooth_factor, replace(plan, near=None), control.part(USUAL, 1.0))
        status = smooth.status
        if status == Status.CONVERGED and _wins(smooth_factor, smooth, factor, usual, plan):
            return _modelled(smooth, factor, usual)
    except OutOfTime:
        status = Status.TIME_LIMIT
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    warn_if_stopped(status, 1, 1)
    return replace(usual, status=status)


def _smooth_factor(factor, control):
    """Return the factor whose lam is the trace of K, which no eigenvalue exceeds."""
    lam = max(factor.lam, float(kernel_diagonal(factor.kernel, factor.X).sum()))

    def look(share, ahead=0.0):
        control.check_time(ahead)

    return make_factor(factor.X, lam, factor.kernel, Form(dtype=factor.R.dtype), None, look)


def _wins(smooth_factor, smooth, factor, usual, plan):
    """Tell whether the links speak for the labels of the smooth search."""
    if smooth.n_violations > usual.n_violations:
        return False
    of_smooth = _held(smooth_factor, smooth.labels, plan)
    of_usual = _held(factor, usual.labels, plan)
    lost, gained = np.sum(of_usual & ~of_smooth), np.sum(of_smooth & ~of_usual)
    if gained > lost:
        return True
    is_alike = adjusted_rand_score(usual.labels, smooth.labels) > ALIKE
    return bool(is_alike and lost - gained <= np.sqrt(lost + gained))


def _held(factor, labels, plan):
    """Tell which links still hold after a descent of the labels without any, (p,) bool."""
    points = Groups.of_points(factor.R, plan.movable)
    return plan.links.hold(points.descend(labels, plan.rule)[0])


def _modelled(result, factor, usual):
    """Return the result with the model of a factor and what that tells of the points."""
    fit = fit_labels(factor, result.labels, usual.sizes.size)
    return replace(
        result,
        model=fit.model,
        loo_mse=fit.loo_mse,
        loo_scores=fit.loo_scores,
        outlier_scores=usual.outlier_scores,
    )
