"""Clusters without settings: widths and size rules are tried, and the labels decide by vote."""

from collections.abc import Callable
from dataclasses import replace
from math import isqrt
from typing import Literal

import numpy as np
from scipy.sparse import issparse

from fastmmc import validation
from fastmmc._declare import function_of, parameter
from fastmmc._typing import MatrixLike
from fastmmc.choice.labellings import BALANCE, N_STEPS, Labellings
from fastmmc.choice.numbers import Counts
from fastmmc.choice.results import RULES, ChoiceResult
from fastmmc.choice.running import Run
from fastmmc.choice.vote import join_widths, vote
from fastmmc.choice.widths import LAM, Chooser
from fastmmc.execution import (
    Progress,
    RunControl,
    fixed_seed,
    restart_stream,
    show_progress,
    warn_if_stopped,
    without_warnings,
)
from fastmmc.factors import make_factor
from fastmmc.gram import EXP_PRODUCTS, Kernel, evenly, kernel_points, resolve_kernel
from fastmmc.nystroem import Form
from fastmmc.parameters import (
    Clusters,
    Points,
    Seed,
    Standardization,
    Threads,
    TimeLimit,
    Trimming,
    Verbosity,
    Watch,
)
from fastmmc.rls import umc_rls
from fastmmc.rls.source import Source, fit_labels, quick_rank
from fastmmc.rls.trimming import leaving_out
from fastmmc.status import Status
from fastmmc.threads import exhaust

# Points that the choice is made on; of more, a sample.
SAMPLE = 2_000

# Points up to which all of more than that descend on the dense hat matrix, and else its rank.
DENSE = 5_000
RANK = 1_000

# With max_time the choice is made on as many points as that is enough for, by the seconds that it
# takes on SAMPLE points, if the number of clusters is to be found or is given, which grow with
# their square; no fewer than these. Seconds of a multiplication of kernel values on a slow core.
NUMBERS_SECONDS, CHOICE_SECONDS = 40.0, 20.0
LEAST_SAMPLE = 500
PRODUCT_SECONDS = 1e-10

# Shares of max_time by whose end the numbers of clusters are tried, and the labellings where all
# points come after a sample; and the share that the descent of all points needs at least.
NUMBERS_SHARE = 0.5
SAMPLE_SHARE = 0.5
LAST_SHARE = 0.1

# The fewest points of which the number of clusters is chosen, and the largest number that is tried
# unless told.
LEAST_POINTS = 4
MOST_CLUSTERS = 30


class ChoiceParameters(Verbosity, Watch, TimeLimit, Threads, Seed, Trimming, Standardization):
    """What the function and the estimator have in common."""

    max_k: int | None = parameter(
        default=None,
        least=2,
        doc="""
        Largest number that "auto" considers. None: 30, or the root of n where that is less: few
        points lie in small groups by chance, which all labellings find.
        """,
    )
    max_time: float | None = parameter(
        default=None,
        doc="""
        Seconds for the whole call; the best labels found by then are returned. "auto" stops after
        half of them, at the best number by then. Below 40 seconds, or 20 where k is given, the
        choice is made on fewer points, 2,000 times the root of that share, but 500 at least. The
        first labelling is always made.
        """,
    )
    callback: Callable[[Progress], bool | None] | None = parameter(
        default=None,
        doc="""
        Called with a :class:`~fastmmc.execution.Progress`, whose ``n_done`` and ``n_init`` count
        the numbers of clusters and the labellings that are tried, and whose ``objective`` is inf; a
        true return value stops the run.
        """,
    )


class _ChoiceCall(ChoiceParameters, Clusters, Points):
    """A call of :func:`cluster`."""

    X: MatrixLike = parameter(
        kw_only=False,
        doc="""
        Points, with columns in comparable units, or ``standardize=True`` (float32 is kept, else
        float64). Of sparse ones up to 2,000 rows become dense.
        """,
    )
    k: int | Literal["auto"] = parameter(  # type: ignore[assignment]
        default="auto",
        kw_only=False,
        doc="""
        Number of clusters, 1 <= k <= n. "auto": 2 to ``max_k``, by how much the labellings agree
        and how fast the error rises behind k.
        """,
    )


def _source_of_scores(call):
    """Return the source of the hat matrix that tells which points are left out."""
    X = validation.check_points(call.X, Kernel("points"), sparse=True)
    if X.shape[0] > SAMPLE:
        return Source(X, Kernel("rbf"), LAM, Form(min(X.shape[0], RANK)), None)
    return Source(kernel_points(Kernel("points"), X), Kernel("rbf"), LAM, Form(), None)


@function_of(_ChoiceCall)
@leaving_out(_source_of_scores)
def cluster(call: _ChoiceCall, control: RunControl) -> ChoiceResult:
    """Cluster without a width, sizes or their number: a vote of labellings chooses them.

    At four widths, a factor 4 of neighbours apart, labels are made by several rules: of about equal
    sizes (:func:`fastmmc.umc_rls` with ``balance=0.4``, up to ten clusters once more from the best
    that any width found), from there by the descent of free sizes, from Genie's clusters by that
    descent, and by the search of free sizes. Each votes with the weight error^-2 exp(-(log k -
    entropy of its sizes)), shared among those of its rule, where the error is the leave-one-out
    error of the clusters' indicators. The labels with the largest expected adjusted Rand index win:
    those that are predicted nearly without error, if there are such, and else those most like the
    others. Where clusters touch, all widths draw the border: the labels that won descend in the
    size-free costs of all widths together, and then at the width that changes fewest points of
    them. They stay as they were if the adjusted Rand index with them is 0.9 or less.

    Returns
    -------
    ChoiceResult
        What :func:`fastmmc.umc_rls` returns, with the table of ``candidates`` and the parameters
        that were ``chosen``.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range or X not a finite matrix.
    MemoryError
        If the hat matrices do not fit into free memory.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If the run was stopped before its end: what had been made by then voted. Also if X has fewer
        distinct points than there are clusters, or no point tells the cluster of another.
    UserWarning
        If columns of X seem to have different units.

    Notes
    -----
    With ``k="auto"`` a vote of fewer labellings is taken for every number (weights error^-3, no
    search of about equal sizes, widths that all numbers share). The score of k is the largest vote
    plus max(0, 1 - 1/e), where e is the elasticity behind k of the error added over the clusters:
    the harmonic mean, over the widths that k and k + 1 share, of the least error at each. There
    are always at least two: no score tells of a single cluster, or of points without clusters.
    100 to 1,000 uniform points in one, two and five dimensions got 2 to 10 clusters, with scores
    of 0.8 to 1.7, and blobs score 1.5 to 1.9.

    The distances are taken as they are, unless ``standardize=True``: columns in different units,
    which a warning tells of, must be scaled.

    Of more than 2,000 points, as many are drawn for the choice, and the others get their labels
    from its model; then all points descend at the width and by the rule that won, with lam in
    proportion, above 5,000 points on a hat matrix of rank 1,000. Up to 2,000 points: O(n^3) for
    each of the four widths, and about six n x n arrays of memory.

    References
    ----------
    T. Pahikkala, A. Airola, F. Gieseke, O. Kramer, Unsupervised multi-class regularized
    least-squares classification, ICDM 2012. The free sizes and the vote are this package's own.

    M. Gagolewski, M. Bartoszuk, A. Cena, Genie: a new, fast, and outlier-resistant hierarchical
    clustering algorithm, Information Sciences 363, 2016.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("moons")
    >>> res = fastmmc.cluster(X, 2, random_state=0)
    >>> res.sizes, res.candidates[0].rule in ("near", "polished", "linked", "free")
    (array([100, 100]), True)
    """
    X = validation.check_points(call.X, Kernel("points"), sparse=True)
    n = X.shape[0]
    if call.k == "auto":
        if n < LEAST_POINTS:
            raise ValueError(f"k='auto' needs at least {LEAST_POINTS} points; got {n}")
        k = None
    else:
        k = validation.check_integer("k", call.k, least=1, most=n, why=", the number of points")
    seed = fixed_seed(call.random_state)
    rows: slice | np.ndarray = slice(None)
    size = _sample_size(n, k, call.max_time)
    if size < n:
        rows = np.sort(restart_stream(seed, 0).choice(n, size, replace=False))
    with show_progress(control, "step") as control:
        with without_warnings():
            points = kernel_points(Kernel("points"), X, rows).astype(np.float64)
            resolve_kernel(Kernel("rbf"), points)  # refuses points whose distances overflow
            most = 0 if k is not None else _largest_number(call.max_k, points.shape[0])
            run = Run(seed, control, most + N_STEPS)
            chooser = Chooser(points, run)
            share = SAMPLE_SHARE if size < n else 1.0
            counts = Counts(chooser)
            if k is None:
                with run.phase(NUMBERS_SHARE * share):
                    counts.try_to(most)
                run.n_done = most
            scores, errors = counts.scores()
            k = k or max(scores, key=scores.__getitem__, default=2)
            labellings = Labellings(chooser, k)
            labellings.begin()
            with run.phase(share):
                labellings.go_on()
            found = run.finish(labellings.listed)
            candidates = run.finish(lambda: vote(found, k))
            winner = first = next(one for one in candidates if one.rule in RULES)
            widths = {f: width for _, f, width, *_ in found}
            # After a sample, all points descend by the winner's own rule.
            if size == n:
                winner = run.finish(lambda: join_widths(first, widths, k))
            factor = widths[winner.f].factor
        result, chosen = run.finish(lambda: _finish(call, X, rows, winner, factor, k, run))
    if run.status not in (Status.CONVERGED, result.status) and result.status != Status.NUMERICAL:
        result = replace(result, status=run.status)
        warn_if_stopped(run.status, 1, 1)
    return ChoiceResult(
        **vars(result), candidates=tuple(candidates), chosen=chosen, scores=scores, errors=errors
    )


def _largest_number(max_k, n):
    """Return the largest number of clusters to try."""
    if max_k is None:
        max_k = max(2, min(MOST_CLUSTERS, isqrt(n)))
    return min(max_k, n - 2)


def _sample_size(n, k, max_time):
    """Return the number of points that the choice is made on, fewer where time is short."""
    size = min(n, SAMPLE if k is None else max(SAMPLE, 2 * k))
    if max_time is None:
        return size
    whole = NUMBERS_SECONDS if k is None else CHOICE_SECONDS
    least = max(LEAST_SAMPLE, 2 * (k or 0))
    return min(size, max(least, int(SAMPLE * np.sqrt(max_time / whole))))


def _label_all(X, rows, winner, factor, k, run):
    """Return labels of all points: what those that were chosen say, or some where time is short.

    None where there is no time even for as many as a quick hat matrix has landmarks.
    """
    labels = winner.labels
    affordable = run.time_left() / 2 / _label_seconds(X)
    if affordable < min(quick_rank(X.shape[0]), labels.size):
        return None
    if affordable < labels.size:
        part = evenly(labels.size, int(affordable))
        lam = LAM * part.size / labels.size
        labels, factor = labels[part], make_factor(factor.X[part], lam, factor.kernel, Form(), None)
    model = fit_labels(factor, labels, k).model
    labels = np.argmax(model.decision_function(X), axis=1)
    labels[rows] = winner.labels
    return labels


def _label_seconds(X):
    """Return the seconds that kernel values of all points to another take on a slow core."""
    n = X.shape[0]
    width = X.nnz / n if issparse(X) else X.shape[1]
    return PRODUCT_SECONDS * n * (width + EXP_PRODUCTS)


def _finish(call, X, rows, winner, factor, k, run):
    """Return the result of the labels that won, of all points, and the parameters chosen."""
    n, labels = X.shape[0], winner.labels
    lam = LAM * n / labels.size
    rank = None if n <= (SAMPLE if issparse(X) else DENSE) else RANK
    is_whole = labels.size == n
    if not is_whole:
        labels = _label_all(X, rows, winner, factor, k, run)
    search = {"method": "steepest"}
    search |= {"balance": BALANCE} if winner.rule == "near" else {"sizes": "free"}
    result = None
    with run.phase():
        if not is_whole:
            run.look(ahead=np.inf if labels is None else LAST_SHARE * (call.max_time or 0.0))
            # Where this one takes too long, there is time for another hat matrix.
            spare = quick_rank(n) * _label_seconds(X)

            def look(share, ahead=0.0):
                run.look(share, ahead + spare)

            factor = make_factor(X, lam, factor.kernel, Form(rank), run.seed, look)
        result = run.cluster(factor, k, init=labels, **search)
    if result is None and is_whole:  # interrupted before there was one
        result = run.cluster(factor, k, init=labels, **search)
    elif result is None:
        factor, labels = _quick_labels(X, rows, winner, labels, lam, factor.kernel, k, run)
        # No descent on such a hat matrix is to spoil the labels.
        with without_warnings():
            kept = {"method": "steepest", "init": labels, "max_iter": 0}
            result = umc_rls(factor, k, random_state=run.seed, **kept)
    units = {"standardize": True} if call.standardize else {}
    of_matrix = {"sigma": winner.sigma, "lam": lam, "rank": rank}
    return result, of_matrix | search | {"init": labels} | units


def _quick_labels(X, rows, winner, labels, lam, kernel, k, run):
    """Return a factor that takes little time, and labels of all points, by it if there are none.

    Its landmarks are some of the points that were chosen.
    """
    part = evenly(rows.size, quick_rank(X.shape[0]))
    factor = make_factor(X, lam, kernel, Form(part.size, rows[part]), run.seed)
    if labels is None:
        steps = replace(factor, lam=LAM)._restrict(rows)
        sample, extend = exhaust(steps, lambda n_rows: None)
        sums = sample._cluster_sums(winner.labels, k) @ extend
        labels = factor._cluster_scores(sums).argmax(axis=0)
        labels[rows] = winner.labels
    return factor, labels
