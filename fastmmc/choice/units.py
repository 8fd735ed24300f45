"""Units: whether columns are standardised, by their spans and by the vote of labellings."""

from time import perf_counter

import numpy as np
from scipy.sparse import issparse
from sklearn.preprocessing import StandardScaler

from fastmmc.choice.candidates import Labellings
from fastmmc.choice.features import Features
from fastmmc.choice.given import Kept
from fastmmc.choice.running import Run
from fastmmc.choice.vote import vote
from fastmmc.choice.widths import Widths, dithers
from fastmmc.core.execution import RunControl, restart_stream, without_warnings
from fastmmc.core.threads import one_blas_thread
from fastmmc.data.columns import LARGEST
from fastmmc.data.sizes import size_rule
from fastmmc.data.standardization import fit_scaler
from fastmmc.data.units import LEAST_POINTS, have_different_units, some_of
from fastmmc.rls.engine.coarse import coarsen, points_of

# How many times as much labellings must agree if columns are standardised whose spans differ less
# than is warned of. Mean indices are those of 37 sets of a suite, 52 made shapes, 12 real sets, and
# three clusters in three columns beside one of noise such as ages or prices (46 draws): .817, .907,
# .586 and .719 by spans alone, and with 1, 1.2, 1.3, 1.4 and 1.5 .837, .836, .836, .836 and .836,
# .916, .915, .916, .906 and .907, .587 and .586 by the others, .790, .796, .797, .787 and .787. Of
# 18 parts of iris, which should stay raw, two have ratios of 1.2 to 1.4. Agreement alone, without
# the spans, makes slices of a column that is far wider than all others: the mean index of 18 draws
# of Gaussians with a column 50 or 1,000 times as wide is .67 by it, and .75 standardised. Where k
# is not given, the largest scores tell nothing: 52 draws beside a column of noise have .57 raw, .59
# standardised, and .57 where they are 1.3 times as large; with 1.1 .59, but a set of 20 clusters
# has two.
AHEAD = 1.3

# Rows that are clustered, how many more for each cluster, and the most. By the votes of 300, 400
# and 600 rows and no spans the figures are .831, .829 and .836, .911, .908 and .909, .584, .585 and
# .583, .77, .79 and .79. The votes for 100 clusters of birch2 are .45 raw and .47 standardised by
# 400 rows, .68 and .43 by 700. 1,500 rows of 1,000 clusters take 3.4 s.
ROWS = 400
ROWS_EACH = 5
MOST_ROWS = 1_500

# The share of max_time by which each of both must have been clustered; columns else stay raw. Six
# calls of .3 and 1 s, of 20,000 points in 3 to 1,000 clusters, end no later than by spans alone.
SHARE = 0.1


def are_better_scaled(points, weights=None, *, k, max_time=None):
    """Return whether columns differ in units, or labellings agree far better if standardised.

    A point of weight s, of ``weights`` (n,), stands for s equal ones. Labellings are asked if k is
    a number, of dense points. The same points always have the same units, if ``max_time`` is
    enough.
    """
    if have_different_units(points, weights):
        return True
    if not isinstance(k, int) or k < 2 or issparse(points) or not _are_small(points):
        return False
    rows = some_of(points, weights, min(ROWS + ROWS_EACH * k, MOST_ROWS)).astype(np.float64)
    if rows.shape[0] < LEAST_POINTS or _are_standardised(points, weights):
        return False
    k = min(k, rows.shape[0] // ROWS_EACH)
    time = None if max_time is None else SHARE * max_time
    with one_blas_thread():
        raw = _agreement(rows, k, time)
        scaled = _agreement(fit_scaler(rows).transform(rows), k, time)
    return 0.0 < AHEAD * raw < scaled


def _are_small(points):
    """Return whether all numbers are finite, and small enough for variances."""
    return max(abs(float(points.max())), abs(float(points.min()))) <= LARGEST


def _are_standardised(points, weights):
    """Return whether all columns that vary have one deviation, as somebody has standardised them.

    If those of two values are then still tried with less weight, the mean index of 26 tables by
    three seeds is .405, not .412.
    """
    deviations = np.sqrt(StandardScaler().fit(points, sample_weight=weights).var_)
    varying = deviations[deviations > 0]
    return np.allclose(varying, varying.max(initial=0.0), atol=0.0)


def _agreement(points, k, max_time):
    """Return how much labellings in k clusters, of those that take no search, agree by weight.

    It is 0 if there is no time for them.
    """
    agreement = 0.0
    run = Run(RunControl(max_time=max_time, started=perf_counter()), 1)
    with without_warnings(), run.phase():
        seed = np.random.SeedSequence(0)
        cells = coarsen(points, len(points), k, restart_stream(seed, 0), run.look)
        values = points_of(points, cells.seeds)
        judging = next(dithers(cells, values, restart_stream(seed, 1), run.look))
        rule = size_rule(cells.total, k, bounded=False)
        kept, rng = Kept(rule, rule), restart_stream(seed, 2)
        labellings = Labellings(Widths(cells, run.look), judging, kept, k, rng, run)
        labellings.begin()
        labellings.go_on()
        features = Features(values, cells.masses)
        candidates = vote(labellings.found, labellings.kernels, k, features, kept)[0]
        agreement = sum(one.weight * one.vote for one in candidates)
    if run.is_told():
        raise KeyboardInterrupt
    return agreement
