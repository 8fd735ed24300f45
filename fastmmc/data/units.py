"""Columns in different units, of which some decide the distances: the user is told of them."""

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.extmath import row_norms

from fastmmc.core.execution import in_call, is_first, warn_user
from fastmmc.core.words import named
from fastmmc.kernels.gram import evenly

# A column is lost beside another if nearly all its values, those between the second pair of
# quantiles, lie within this share of what that one spans between the first. So neither outliers nor
# rare values make a difference of units, and one wrong cell hides none: with the range in place of
# the second pair a cell of 0 among 300 values of pH takes the ARI of two columns from 1.00 to .26.
# Of 101 sets, of a suite, made and real, three have columns in different units by all shares from
# 1/100 to 1/11; by 1/10 birch2 has, whose index falls from 1.00 to .72, by 1/8 statlog, from .62 to
# .47. By 1/12 round clusters in a row are taken for it, too.
LOST = 1 / 15
QUANTILES = 0.05, 0.95
NEARLY_ALL = 0.005, 0.995

# Some pixels of pictures, and the last principal components, are nearly constant; it takes this
# share of the columns that are not.
LEAST_SHARE = 1 / 5

# Points that tell what a column spans, and the numbers that are looked at.
LEAST_POINTS = 20
MOST_NUMBERS = 300_000

# New points seem to have other units if more than the second share of them are so many times as far
# from the mean of the model's points as any of those. Of seven sets, raw or scaled, one half does
# not seem so to the model of the other, not even two deviations away, but does if its columns are
# multiplied by 1,000. Nor do rows with dates to the model of a month that is eleven months old.
FAR = 20.0
MOST_FAR = 0.9


def warn_of_units(points, names):
    """Warn, once in a call, if some columns of dense points span far more than many others.

    ``names`` are those of the columns, None if they have none.
    """
    if not is_first("units") or issparse(points) or points.shape[0] < LEAST_POINTS:
        return
    span, whole = _spans(points)
    lost = _lost(span, whole)
    if lost.size == 0:
        return
    wide = np.flatnonzero(LOST * span > whole[lost].max())
    wide, lost = wide[np.argsort(-span[wide])], lost[np.argsort(whole[lost])]
    far, near = (
        named("column", [j if names is None else str(names[j]) for j in columns.tolist()])
        for columns in (wide, lost)
    )
    ratio = span[wide[0]] / np.median(whole[lost])
    times = f"{ratio:,.0f}" if ratio < 1e9 else f"{ratio:.3g}"
    reach = f"span up to {span[wide[0]]:.3g}" if wide.size > 1 else f"spans {span[wide[0]]:.3g}"
    warn_user(
        f"the columns of X seem to have different units: {far} {reach}, which is "
        f"{times} times the range of {near}, so the latter hardly count in the "
        "distances. Give standardize=True (umc_rls, evo_mmc, cluster in memory), or scale X, as "
        "by sklearn.preprocessing.StandardScaler; ignore this if all columns share a unit",
        UserWarning,
    )


def warn_of_other_units(points, known):
    """Warn if nearly all new points are far beyond the points of a model, where both are dense.

    There is no warning within a public function: it predicts points of its own, with outliers.
    """
    if in_call() or issparse(points) or issparse(known):
        return
    if min(points.shape[0], known.shape[0]) < LEAST_POINTS:
        return
    some, known = points[evenly(len(points), _most_rows(points))], known.astype(np.float64)
    center = known.mean(axis=0)
    with np.errstate(over="ignore"):
        reach = FAR * row_norms(known - center).max()
        is_far = row_norms(some - center) > reach
    if reach > 0 and is_far.mean() > MOST_FAR:
        warn_user(
            f"{is_far.mean():.0%} of these points are more than {FAR:g} times as far from the "
            "centre of the model's points as any of those: their columns seem to have other units, "
            "or another scale, than in the fit, so that their clusters mean little. Give "
            "them in the units of the fit",
            UserWarning,
        )


def have_different_units(points, weights=None):
    """Return whether some columns of points span far more than many others, as for the warning.

    A point of weight s, of ``weights`` (n,), stands for s equal ones.
    """
    if issparse(points):
        return False
    points = some_of(points, weights, _most_rows(points))
    return points.shape[0] >= LEAST_POINTS and _lost(*_spans(points)).size > 0


def some_of(points, weights, most):
    """Return at most so many of the points, in order, each about as often as its weight says."""
    if weights is None:
        return points[evenly(points.shape[0], most)]
    cumulated = np.cumsum(weights)
    n = int(min(most, np.ceil(cumulated[-1] / weights[weights > 0].min())))
    return points[np.searchsorted(cumulated, cumulated[-1] * (np.arange(n) + 0.5) / n)]


def _most_rows(points):
    """Return how many rows are looked at."""
    return max(LEAST_POINTS, MOST_NUMBERS // points.shape[1])


def _lost(span, whole):
    """Return the columns that are lost beside others; none if these are few."""
    varies = span > 0
    lost = np.flatnonzero(varies & (whole < LOST * span.max()))
    return lost if lost.size >= LEAST_SHARE * np.count_nonzero(varies) else lost[:0]


def _spans(points):
    """Return what each column spans, in the middle and nearly in all, by some of the points."""
    sample = points[evenly(points.shape[0], _most_rows(points))].astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):  # the solvers refuse such numbers
        low, high, least, most = np.quantile(sample, (*QUANTILES, *NEARLY_ALL), axis=0)
        return high - low, most - least
