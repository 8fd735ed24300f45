"""The functions of UMC-RLS, and what calls on a hat matrix share."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike

from fastmmc import validation
from fastmmc._declare import Parameters, function_of, parameter, told, values
from fastmmc._typing import MatrixLike
from fastmmc.block_factor import comes_in_blocks
from fastmmc.execution import (
    OutOfTime,
    RunControl,
    fixed_seed,
    restart_stream,
    show_progress,
    warn_of_equal_points,
    warn_user,
)
from fastmmc.factors import DenseFactor, LowRankFactor, factor_path
from fastmmc.gram import default_width, resolve_kernel
from fastmmc.labels import check_init, read_known_labels
from fastmmc.links import check_links_of_clusters, join
from fastmmc.nystroem import DENSE_LIMIT
from fastmmc.parameters import (
    Clusters,
    KernelParameters,
    KnownLabels,
    KnownTrust,
    LandmarkParameters,
    LinkParameters,
    PrecisionParameters,
    Regularisation,
    SizeParameters,
    Standardization,
    Trimming,
)
from fastmmc.results import RLSResult, Status
from fastmmc.rls.batches import BATCHES_FROM_RANDOM, ClaimForm, choose_form, make_start
from fastmmc.rls.blocked import search_in_blocks
from fastmmc.rls.bound import free_bound, risk_bound
from fastmmc.rls.free import ALL, SAMPLE, FreeSearch, Population, make_matrix, sample_size
from fastmmc.rls.known import search_overruling, search_with_known
from fastmmc.rls.linked import LinkedSearch, Merging, NearSearch, make_groups, mass_unit, masses_of
from fastmmc.rls.memetic import MemeticSearch
from fastmmc.rls.multilevel import (
    BoundedSearch,
    MultilevelSearch,
    cells_suffice,
    count_cells,
)
from fastmmc.rls.other_sizes import warn_of_other_sizes
from fastmmc.rls.plan import LabelSearchPlan
from fastmmc.rls.size_choice import SizeChoice
from fastmmc.rls.source import FactorSource, RLSRunParameters, best_result, check_source
from fastmmc.rls.trimming import leaving_out
from fastmmc.rls.weights import without_weightless
from fastmmc.sizes import check_least_and_most, size_rule
from fastmmc.threads import exhaust

# Starts of one call; fewer where n is large, and one memetic search is many starts by itself.
STARTS = 30
STARTS_TIMES_POINTS = 300_000
STARTS_ON_CELLS = 3

# Rounds of shaking: the quota is that of the last one long before.
MOST_ROUNDS = 10_000

# Points that free sizes are searched on where max_time is too short for more.
QUICK_SAMPLE = 500

# Points up to which the hat matrix is dense where the search is left to us, and its rank for more:
# from there on low rank is as good and quicker (asv_benchmarks/paper_tables/dense_or_low_rank.md).
DENSE_CHOICE = 3_000
CHOICE_RANK = 500

# How far sizes may end from their targets unless the user says otherwise, as a share of n / k. The
# memetic search keeps to it all along, shaking is brought back to it where it ends beyond.
BALANCE = {"memetic": 0.4, "shaking": 0.5}


class _UMCRLSSearch(Parameters):
    """The search of UMC-RLS."""

    method: Literal["auto", "shaking", "steepest", "stochastic", "memetic"] = parameter(
        default="auto",
        doc="""
        Search. "auto" is shaking, or where sizes are free or chosen the search for these, and
        of more than 3,000 points in up to 60 clusters the memetic search on cells of them (Notes),
        unless another parameter of the search, ``n_init`` or ``rank=None`` is given. Shaking
        lets the clusters take turns in claiming points, more than their share at first and less
        and less so (the paper's UMC-RLS). The next two are plain descents (Steep-RLS, Stoc-RLS);
        without ``balance`` nothing keeps them from large clusters. Memetic recombines whole
        clusters of two labellings that the shaking found, shakes the result gently and descends by
        moves and swaps, again and again. With ``sizes="free"`` steepest and stochastic improve one
        labelling, Ward's if no other is given, the former by moves of single points alone, and all
        others run the memetic search of free sizes.
        """,
    )
    init: Literal["random", "kmeans"] | ArrayLike = parameter(
        default="random",
        kind='{"random", "kmeans"} or (n,) array_like of int',
        doc="""
        Labels to start from: balanced random, k-means, or given. With ``sizes="free"`` random
        means Ward's clusters in the metric of R, a spectral clustering and random seeds.
        """,
    )
    n_rounds: int = parameter(
        default=21,
        least=1,
        most=MOST_ROUNDS,
        doc="Rounds of the shaking schedule; free sizes have none.",
    )
    start_round: int = parameter(
        default=0,
        doc="""
        First round to run. Later rounds shake more gently and keep more of the start.
        """,
    )
    polish: bool = parameter(
        default=False,
        doc="""
        Descend from the end of the search by swaps, and by moves where the sizes allow them,
        until neither lowers Q. Free sizes always end with a descent.
        """,
    )
    keep_best: bool = parameter(
        default=False, doc="Return the best round end of the shaking instead of the last."
    )
    batches: int | Literal["exact"] | None = parameter(
        default=None,
        least=1,
        doc="""
        How shaking claims on the low-rank hat matrix: in so many batches for a cluster of the
        target size, O(n r) each, or one by one ("exact"), O(n r) a claim. None: one by one where n
        is small enough for the n x n product (4,000 points); else first on a sample, one by one,
        then from round 1 on all points in 32 batches; above 50,000 points, or 2,500 k, all rounds
        run on a sample of that size. Batches end with a descent of all points by swaps, and by
        moves within ``balance``. The dense hat matrix is always claimed one by one. Free sizes
        make no claims: up to 5,000 points are searched on the n x n product; of more, dense or
        not, a sample of 3,000 (50 k if that is more, 10,000 at most) is, and all points descend;
        where sizes are chosen, see Notes.
        """,
    )
    population: int = parameter(
        default=8,
        least=2,
        most=validation.MOST_INDIVIDUALS,
        doc="""
        Labellings that the memetic search, and that of free sizes, keeps, >= 2; no two are the
        same partition.
        """,
    )
    patience: int = parameter(
        default=20,
        least=1,
        doc="""
        The memetic search, and that of free sizes, ends after this many children in a row no better
        than the best.
        """,
    )
    max_iter: int | None = parameter(
        default=None,
        least=0,
        doc="""
        At most this many moves (steepest), sweeps (stochastic) or children (memetic) a start.
        """,
    )


class _UMCRLSSizes(SizeParameters):
    """The sizes of UMC-RLS."""

    sizes: Literal["auto", "equal", "free"] = parameter(
        default="auto",
        doc="""
        What is minimised. "equal": Q, over labellings of about equal (or given) sizes. "free": the
        unexplained share of each cluster's indicator, added over the clusters, sum_h (1 - e_h^T R
        e_h / s_h), over labellings of any sizes that the other parameters allow. "auto": as "free",
        from labels of about equal sizes unless others are predicted far better; it is "equal" where
        a search, ``init``, ``balance`` or ``target_sizes`` are given.
        """,
    )
    balance: float | None = parameter(
        default=None,
        least=0,
        doc="""
        Every size stays within balance * n / k of its target; 0: sizes that differ by one at most.
        None: 0 where ``target_sizes`` are given; else the paper's rule, by which shaking ends near
        n / k and the descents are free, 0.4 for the memetic search, on cells or not, and no limit
        where sizes are free. Sizes that shaking leaves further than n / (2 k) from n / k, as it may
        for many clusters, are brought back, and a descent within these bounds follows, as it always
        does where there are links.
        """,
    )
    bound: bool = parameter(
        default=False,
        doc="""
        Also compute a lower bound on the objective from the largest eigenvalues of R: ``bound`` and
        ``gap`` of the result. Some hundred products of R with a vector; of low rank O(r^3).
        """,
    )


class _UMCRLSRun(RLSRunParameters):
    """The run of UMC-RLS."""

    n_init: int | Literal["auto"] = parameter(  # type: ignore[assignment]
        default="auto",
        doc="""
        Starts; the one with the lowest objective wins. "auto": 30, above 10,000 points 300,000 / n,
        and one of the memetic search and of free sizes, which make a population of their own; 3
        on cells.
        With two clusters round 0 of the shaking forgets the start, so the first start is the
        paper's method and the others begin with round 1. Where all starts would be equal (given
        labels, unless stochastic or memetic) one is run. Where sizes are chosen there is
        one start, with this many memetic searches for labels of about equal sizes ("auto": one),
        and up to ten clusters one more from the best of them.
        """,
    )


class _LinkPrice(Parameters):
    """How much cannot-links count."""

    link_penalty: float | None = parameter(
        default=None,
        above=0,
        doc="""
        Price of a pair that a cannot-link is to keep apart and that is together, in terms of
        sum_h e_h^T R e_h: 1 is what a point adds to it that its cluster explains entirely. So Q
        grows by four times as much, and the cost of free sizes by k / n times. None: no such pair
        is together. Must-links always hold.
        """,
    )


class _Weights(Parameters):
    """How much points count."""

    sample_weight: ArrayLike | None = parameter(
        default=None,
        kind="(n,) array_like of float",
        doc="""
        How much each point counts, >= 0: in the error, and in all sizes. Weights that are integers
        do what so many equal rows would. Points of weight 0 are labelled by the model of the
        others. The default width takes no notice of weights.
        """,
    )


class _UMCRLSBut(
    _UMCRLSRun,
    Trimming,
    _LinkPrice,
    KnownTrust,
    _UMCRLSSizes,
    PrecisionParameters,
    LandmarkParameters,
    KernelParameters,
    Standardization,
    _UMCRLSSearch,
):
    """Every parameter of UMC-RLS but lam."""


class UMCRLSParameters(_UMCRLSBut, Regularisation):
    """What the function and the estimator have in common."""


class _UMCRLSCall(UMCRLSParameters, _Weights, LinkParameters, KnownLabels, Clusters, FactorSource):
    """A call of :func:`umc_rls`."""


class _PathCall(_UMCRLSBut, _Weights, LinkParameters, KnownLabels, Parameters):
    """A call of :func:`umc_rls_path`."""

    X: MatrixLike = parameter(
        kw_only=False,
        kind="(n, d) array_like",
        doc="""
        Points; with ``kernel="precomputed"`` their (n, n) Gram matrix. Not a factor, which has
        its lam already.
        """,
    )
    k: int = parameter(kw_only=False, doc="Number of clusters, 1 <= k <= n.")
    lams: Sequence[float] = parameter(
        kw_only=False, kind="sequence of float", doc="Values of lam, all > 0."
    )


@function_of(_UMCRLSCall)
@leaving_out(check_source)
@without_weightless(check_source)
def umc_rls(call: _UMCRLSCall, control: RunControl) -> RLSResult:
    """Cluster by unsupervised multi-class regularised least squares (UMC-RLS).

    Looks for the labels under which kernel ridge classification fits best: with R the hat
    matrix K (K + lam I)^-1, E the n x k label indicator and P = 2E - 1, it minimises

        Q = sum_h (n - p_h^T R p_h) = k n + (4 - k) e^T R e - 4 tr(E^T R E)

    over labellings of about equal (or given) sizes. Moving one point changes Q by
    8 (U[o, j] - U[d, j] - R_jj) with the cached sums U = (R E)^T, so a move costs O(n).

    Where clusters have other sizes, ``sizes="free"`` minimises, with e_h the indicator and s_h the
    size of cluster h,

        cost = sum_h (1 - e_h^T R e_h / s_h).

    It is the unexplained share of each cluster's indicator, added over the clusters; it is at
    least k minus the k largest eigenvalues of R, and every cluster counts the same, however small.

    A call that says nothing of sizes gets labels of about equal sizes that descend in this cost,
    unless others have less than half of their error (Notes).

    Returns
    -------
    RLSResult
        ``labels``, ``objective`` (Q, or the cost of free sizes), ``loo_mse``, ``history``,
        ``predict`` and more.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range, lam below the accuracy of the kernel, or X not a finite
        matrix.
    MemoryError
        If the n x n hat matrix, or its n x r factor, does not fit into free memory.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If the run was stopped before its end, X has fewer distinct points than there are clusters,
        or no point tells the cluster of another; or if no sizes were asked for, and clusters of
        free sizes, by a descent of up to 500 of the points, have less than 45 % of the labels'
        cost (that of ``sizes="free"``) and of their leave-one-out error.
    UserWarning
        If columns of X seem to have different units.

    Notes
    -----
    Dense: O(n^3) for the hat matrix, then O(n^2) a start; one n x n array of memory. Of rank r:
    O(n r^2), then O(n r) a batch of claims, whose number a start depends on k and little on n,
    and O(n r k) a sweep of the descent; O(n (r + k)) of memory. Far from all landmarks the hat
    matrix is almost 0, and points there tell nothing of each other: of few landmarks, drawn
    uniformly, a small cluster has one or two and is not found. ``landmarks="pivoted"`` reaches it.

    Known labels: the points are first clustered as if no label was known, and the clusters take
    the names that agree with most of the known ones. Then parts of the known labels are hidden in
    turn. If what the others tell by kernel least squares, shaken gently, errs on fewer hidden
    labels than the named clusters do, the result comes from there, else from the named clusters; in
    both the known labels are kept. So there is one last start, whose ``objectives`` and ``history``
    are told, at about the cost of six more; ``init`` as an array is where it begins, and nothing
    else is tried. A class of which no label is known becomes a cluster of its own.

    Known labels of a trust t below 1: with p the probabilities of a point as judged by the others,
    its label h is overruled if t p_h is less than (1 - t) / (k - 1) times the largest other p, and
    the search goes on without it, up to five times. The labels that were overruled are those where
    ``labels`` differs.

    Weights: with S the diagonal of their square roots, R is S K S (S K S + lam I)^-1 and E becomes
    S E in the objective, where n is the sum of the weights. Sizes count weights, within one point
    of the largest weight; ``size_bounds`` is None, and ``sizes`` are numbers of points. ``loo_mse``
    is a weighted mean, and a point that is left out is so with its whole weight.

    Links: points that must be together are merged, which leaves the objective as it is, and sizes
    count all points of a group. In the searches a pair that must not be together is an entry of
    the groups' matrix far below 0; then groups that are still together are parted by a tabu search,
    and all descend, alone or in chains of linked groups that change sides, so that no cannot-link
    is broken unless no labels without were found, which is warned of. That takes up to two more
    arrays of the size of the hat matrix. Of more points than are searched at once a sample is
    drawn that has all or none of the points that links connect, and all points descend.

    Free sizes: labellings are improved by moving groups of points, parts of Ward's tree in the
    metric of R from large to small, and then the points, O(n^2) each; the groups on which two
    labellings agree are merged into the clusters of a third by Ward's rule, again and again.

    Sizes that are chosen: the memetic search finds labels within ``balance=0.4``, and, up to ten
    clusters, once more from the best of them, shaken gently; they then descend by moves of points
    in the cost of free sizes. Against them stand the search of free sizes and descents from the
    clusters of Genie in the metric of R. The error of labels is the mean over clusters of ||L -
    E||^2 / s, with E the indicator of a cluster of s points and L what the other points predict of
    it, by R or by a vote of the ten nearest, whichever is lower, times exp((log k - entropy of the
    sizes) / 2). Of more than 3,000 points the hat matrix has rank 500, or less above 600,000
    points, unless a ``rank`` is given, and all this is done on 1,000 cells (50 k if that is more,
    3,000 at most): what lies nearest to each of as many points, half of them drawn at random and
    the others where these are far, in the leading kernel principal components. Cells count by their
    points, the cost is that of all points, and errors are those at the points drawn. Then all
    points descend. Clusters of less than about 1 % of the points may be missed there, as few
    landmarks lie in them; ``landmarks="pivoted"`` sees more of them. A dense hat matrix, and points
    less than twice as many as cells, have a sample of 3,000 instead (50 k if that is more, 10,000
    at most).

    Sizes that are equal, given or bounded (``sizes="equal"``, ``balance``, ``target_sizes``), of
    more than 3,000 points in up to 60 clusters: rank and cells are those of sizes that are chosen.
    Three times cells are made and the memetic search goes over them, and up to ten clusters once
    more from its best labels; bounds hold there as nearly as cells can be packed. The labels of the
    points are then brought within the bounds, and all points descend by moves and swaps that keep
    to them. Weighted and linked points have no cells, nor has a dense hat matrix.

    Points in blocks: of a Dask array, or a ``numpy.memmap`` of more than 2^27 numbers, a sample
    (20,000 points, or 200 k, or 4 times the rank) is searched as described, with lam in proportion.
    It also decides width, landmarks and, where nothing rules them, sizes. Then all points descend
    together: each goes to the cluster that fits it best by sums over the clusters, with prices that
    keep the sizes, pass after pass, until one lowers the objective by less than 1e-5 of it. A pass
    sends O(k r) numbers to each block and as many back, and never a row; labels and predictions are
    made where the blocks are, and depend on the seed and the order of the rows alone. What a worker
    held that died is made again. A memory map keeps n r numbers in temporary files. ``n_iter``
    counts passes, ``n_moves`` is that of the sample, and ``max_time`` is looked at between passes.
    Labels to start from, known labels and ``bound`` are not to be had.

    References
    ----------
    T. Pahikkala, A. Airola, F. Gieseke, O. Kramer, Unsupervised multi-class regularized
    least-squares classification, ICDM 2012, Algorithms 1-3. Batches, the start from a sample and
    the memetic search are this package's own.

    F. Bach, Z. Harchaoui, DIFFRAC: a discriminative and flexible framework for clustering, NIPS
    2007: the cost of free sizes for two clusters and a centred R.

    A. Damle, V. Minden, L. Ying, Simple, direct and efficient multi-way spectral clustering,
    Information and Inference 8, 2019: its spectral start.

    M. Gagolewski, M. Bartoszuk, A. Cena, Genie: a new, fast, and outlier-resistant hierarchical
    clustering algorithm, Information Sciences 363, 2016. The choice of sizes is this package's own.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("moons")
    >>> res = fastmmc.umc_rls(X, 2, random_state=0)
    >>> res.sizes, res.status.name
    (array([100, 100]), 'CONVERGED')
    >>> bool((res.predict(X) == res.labels).all())
    True
    """
    if comes_in_blocks(call.X):
        return search_in_blocks(call, control, umc_rls)
    source = check_source(call).with_weights(call.sample_weight)
    plan = _make_plan(call, source)
    if (plan.near is not None or plan.on_cells) and call.rank == "auto":
        source = source.with_rank_above(DENSE_CHOICE, CHOICE_RANK)
    seed = fixed_seed(call.random_state)
    with show_progress(control) as control:
        factor, control = source.make_factor(default_width(plan.k), seed, control)
        return _search(factor, plan, call, seed, control)


@function_of(_PathCall)
@leaving_out(lambda call: check_source(call, lam=_check_lams(call)[0]))
@without_weightless(lambda call: check_source(call, lam=_check_lams(call)[0]))
def umc_rls_path(call: _PathCall, control: RunControl) -> list[RLSResult]:
    """Run :func:`umc_rls` for several lam; the kernel is evaluated once.

    Q grows with lam, so it cannot choose among the results. The leave-one-out error can:
    ``min(path, key=lambda res: res.loo_mse)``. Every lam starts from the same labels, and
    ``max_time`` is for the whole path.

    Returns
    -------
    list of RLSResult
        One a lam, in the order given, each with its ``loo_mse``. A run that is stopped returns
        those that it reached.

    Raises
    ------
    ValueError, TypeError, MemoryError
        As :func:`umc_rls`.

    Notes
    -----
    Two n x n arrays of memory: the Gram matrix and the hat matrix in turn.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> path = fastmmc.umc_rls_path(X, 3, [0.01, 0.1, 1.0], n_init=5, random_state=0)
    >>> best = min(path, key=lambda res: res.loo_mse)
    >>> len(path), best.params["lam"] in (0.01, 0.1, 1.0)
    (3, True)
    """
    lams = _check_lams(call)
    source = check_source(call, lam=lams[0]).with_weights(call.sample_weight)
    plan = _make_plan(call, source)
    seed = fixed_seed(call.random_state)
    results = []
    kernel = resolve_kernel(source.kernel, source.points, default_width(plan.k))
    with show_progress(control) as control:
        path = factor_path(source.points, lams, kernel, source.form, seed, control.prepare)
        try:
            for factor in path:
                results.append(_search(factor, plan, call, seed, control))
                if results[-1].status in (Status.TIME_LIMIT, Status.INTERRUPTED, Status.CALLBACK):
                    break
        except OutOfTime:
            if results:
                warn_user(
                    f"max_time={control.max_time:g} was too short for all lams: {len(results)}"
                    f" of {len(lams)} results are returned"
                )
            else:
                factor, control = source.make_quick_factor(kernel, seed, control)
                results = [_search(factor, plan, call, seed, control)]
    return results


def _check_lams(call):
    """Return the values of lam."""
    lams = call.lams
    if isinstance(call.X, DenseFactor | LowRankFactor):
        raise TypeError("X is a factor, which has its lam already; give the points")
    if isinstance(lams, str) or not np.iterable(lams) or len(list(lams)) == 0:
        raise ValueError(f"lams must be a sequence of at least one number; got {lams!r}")
    return [validation.check_positive("lams", lam) for lam in lams]


def resolve_sizes(call):
    """Return the sizes of a call: "auto" is "equal" if it says anything of a search or of sizes."""
    is_told = told(call, _UMCRLSSearch) or not call.balance is call.target_sizes is None
    return "equal" if call.sizes == "auto" and is_told else call.sizes


def searches_cells(call, n, k):
    """Tell whether labels of about equal sizes are searched on cells of the points.

    They are if there are many points, and the call says nothing of a search. Sizes of clusters of
    few cells cannot be kept to.
    """
    is_left = not told(call, _UMCRLSSearch) and isinstance(call.n_init, str)
    is_many = n > DENSE_CHOICE and cells_suffice(n, k) and call.rank is not None
    return resolve_sizes(call) == "equal" and k > 1 and is_left and is_many


def count_starts(call, n):
    """Return the number of starts; if not told, it depends on the search and on n alone."""
    sizes = resolve_sizes(call)
    if sizes != "auto" and not isinstance(call.n_init, str):
        return call.n_init
    if sizes != "equal" or call.method == "memetic":
        return 1
    return STARTS if n <= DENSE_LIMIT else max(1, min(STARTS, STARTS_TIMES_POINTS // n))


def _make_plan(call, source):
    """Check the parameters of the search and fix what all restarts have in common."""
    points = source.points
    n = points.shape[0]
    k = validation.check_integer("k", call.k, least=1, most=n, why=", the number of points")
    validation.check_integer(
        "start_round", call.start_round, least=0, most=call.n_rounds - 1, why=", the last round"
    )
    known, classes = read_known_labels(call.known_labels, n, k)
    if known is not None and (known < 0).all():
        known = None
    links, known = _check_links(call, n, k, known)
    total, heaviest, told_sizes = _in_masses(call, n)
    check_least_and_most(total, k, told_sizes["min_size"], told_sizes["max_size"])
    sizes, balance = resolve_sizes(call), call.balance
    on_cells = links is None and searches_cells(call, n, k)
    on_cells = on_cells and not isinstance(source.factor, DenseFactor)
    method = call.method
    if method == "auto":
        method = "shaking" if sizes == "equal" and not on_cells else "memetic"
    if k == 1 and sizes == "auto":
        sizes = "equal"
    is_free = sizes != "equal"
    # One point more or less must be possible however few there are.
    least = k * heaviest / total
    slack = {name: max(share, least) for name, share in BALANCE.items()}
    default = None if is_free else slack.get(method)
    if call.target_sizes is not None:
        default = 0.0 if call.sample_weight is None else least
    if balance is not None and call.sample_weight is not None:
        balance = max(balance, least)
    bounded = method == "memetic" or call.target_sizes is not None
    counted = known if call.sample_weight is None else None
    rule = size_rule(
        total, k, balance=balance, known=counted, default=default, bounded=bounded, **told_sizes
    )
    if links is not None:
        _check_groups(links, n, k, rule.upper.max() if call.sample_weight is None else n)
    params = values(call, Clusters, _UMCRLSSearch, _UMCRLSSizes)
    params |= {"method": method, "sizes": sizes}
    if call.balance is None and (bounded or is_free):
        params["balance"] = default
    if links:
        params["link_penalty"] = call.link_penalty
    if call.bound and call.sample_weight is not None and not is_free:
        raise ValueError('bound: of weighted points there is a bound for sizes="free" only')
    warn_of_equal_points(points, k)
    plan = LabelSearchPlan(
        **values(call, _UMCRLSSearch)
        | {
            "method": "shaking" if k == 1 else method,
            "init": check_init(call.init, n, k, source.kernel),
            "max_iter": np.iinfo(np.int64).max if call.max_iter is None else call.max_iter,
        },
        n=n,
        k=k,
        points=points,
        rule=rule,
        known=known,
        trust=_check_trust(call.known_trust, known, links),
        min_size=told_sizes["min_size"],
        classes=classes,
        params=params,
        free=is_free,
        bound=call.bound,
        default_sizes=call.balance is call.target_sizes is call.max_size is known is None,
        links=links,
        weights=call.sample_weight,
        link_penalty=call.link_penalty,
        asked_sizes=bool(told(call, SizeParameters)),
        on_cells=on_cells,
    )
    if sizes != "auto" or not is_free:
        return plan
    # Sizes are chosen before clusters get the names of known labels.
    rule = size_rule(total, k, default=slack["memetic"], **told_sizes)
    near = replace(plan, free=False, rule=rule, known=None)
    return replace(plan, near=near, n_near=1 if isinstance(call.n_init, str) else call.n_init)


def _check_links(call, n, k, known):
    """Return the links of a call, and the known labels with those that links imply.

    The links are None if there are none, nor weights, which are worked on alike.

    What is known of a point is known of all that must be in its cluster.
    """
    hard = call.link_penalty is None
    links = check_links_of_clusters(call.must_link, call.cannot_link, n, k, known, hard=hard)
    if not links:
        if not hard:
            raise ValueError(
                f"link_penalty is the price of a broken cannot-link, and there are none; got "
                f"{call.link_penalty}"
            )
        return None if call.sample_weight is None else links, known
    if known is not None:
        members = join(links.must, n)
        of_group = np.full(n, -1)
        np.maximum.at(of_group, members, known)
        known = of_group[members]
    return links, known


def _in_masses(call, n):
    """Return what all points and the heaviest count for, and the sizes told, in these terms."""
    told_sizes = {name: getattr(call, name) for name in ("target_sizes", "min_size", "max_size")}
    weights = call.sample_weight
    if weights is None:
        return n, 1, told_sizes
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
    return int(masses.sum()), int(masses.max()), told_sizes


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


def _check_groups(links, n, k, largest):
    """Refuse must-links that leave too few groups, or one that no cluster may hold."""
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


def _check_trust(trust, known, links):
    """Return how far each known label is trusted, (n,), None if entirely or if there are none."""
    if known is None:
        return None
    if np.ndim(trust) == 1 and len(trust) != known.size:
        raise ValueError(
            f"known_trust must be one number or {known.size}, one for each point; got {len(trust)}"
        )
    trust = np.broadcast_to(trust, known.shape)
    if (trust[known >= 0] == 1.0).all():
        return None
    if links is not None:
        raise ValueError(
            "known_trust below 1 cannot go with must_link or cannot_link, by which known labels "
            "imply others; leave it out, or the links"
        )
    return trust


def _search(factor, plan, call, seed, control):
    """Run the restarts on one hat matrix and return the best as a result."""

    def search(plan, control):
        # Given labels are improved once.
        once = call if isinstance(plan.init, str) else replace(call, n_init=1)
        return _search(factor, plan, once, seed, control)

    if plan.trust is not None and plan.k > 1:
        return search_overruling(search, plan, control)
    if plan.known is not None and isinstance(plan.init, str) and plan.k > 1:
        return search_with_known(search, factor, plan, control)
    if plan.links is not None:
        return _search_linked(factor, plan, call, seed, control)
    if plan.free:
        return _search_free(factor, plan, call, seed, control)
    if plan.on_cells and plan.has_random_start:
        return _search_cells(factor, plan, seed, control)
    n_init = 1 if plan.starts_are_equal() else count_starts(call, plan.n)
    form = choose_form(factor, plan)
    try:
        matrix = exhaust(form.make_matrix(factor), lambda n_rows: control.check_time())
    except OutOfTime:
        in_turns = plan.method in ("shaking", "memetic")
        matrix, form = factor, ClaimForm(BATCHES_FROM_RANDOM) if in_turns else ClaimForm()
    diag = matrix.diagonal()
    threads = max(1, effective_n_jobs(control.n_jobs) // n_init)

    def make_single(form, plan, index, rng):
        return make_start(matrix, diag, form, plan, index, rng, threads)

    def make_search(index):
        rng = restart_stream(seed, index)
        if plan.method == "memetic":
            return MemeticSearch(matrix, diag, form, plan, make_single, rng)
        return make_single(form, plan, index, rng)

    result = _best_result(factor, make_search, n_init, plan, control)
    if plan.default_sizes and result.converged:
        warn_of_other_sizes(factor, result.labels, plan.k)
    return result


def _search_cells(factor, plan, seed, control):
    """Run the search of about equal sizes on cells of the points and return its result."""
    diag, threads = factor.diagonal(), max(1, effective_n_jobs(control.n_jobs) // STARTS_ON_CELLS)
    count = count_cells(plan.n, plan.k)

    def make_search(index):
        return BoundedSearch(factor, diag, plan, count, restart_stream(seed, index), threads)

    result = _best_result(factor, make_search, STARTS_ON_CELLS, plan, control)
    if plan.default_sizes and result.converged:
        warn_of_other_sizes(factor, result.labels, plan.k)
    return result


def _search_free(factor, plan, call, seed, control):
    """Run the search of free sizes on one hat matrix and return the best as a result."""
    n_init = 1 if plan.k == 1 else count_starts(call, plan.n)
    is_choice = plan.near is not None and plan.has_random_start
    search, kind = FreeSearch, SizeChoice if is_choice else Population
    matrix, sample = factor, sample_size(plan.n, plan.k, SAMPLE if is_choice else ALL)
    cells = count_cells(plan.n, plan.k)
    if is_choice and sample and cells and isinstance(factor, LowRankFactor):
        search, sample = MultilevelSearch, cells
    try:
        if control.shortage:
            raise OutOfTime
        matrix = exhaust(make_matrix(factor, sample), lambda n_rows: control.check_time())
    except OutOfTime:
        sample = min(plan.n, QUICK_SAMPLE)
    diag = matrix.diagonal()

    def make_search(index):
        rng = restart_stream(seed, index)
        return search(matrix, diag, plan, sample, index, rng, control.check_time, kind)

    return _best_result(factor, make_search, n_init, plan, control)


def _search_linked(factor, plan, call, seed, control):
    """Run the search over groups of linked points and return the best as a result."""
    n, k = plan.n, plan.k
    merging = Merging.of(plan.links, n, plan.weights, plan.link_penalty)
    is_choice = plan.near is not None and plan.has_random_start
    if plan.free:
        kind, n_init = SizeChoice if is_choice else Population, count_starts(call, n)
    else:
        kind, n_init = NearSearch, 1 if plan.starts_are_equal() else count_starts(call, n)
    sample = sample_size(n, k, SAMPLE if is_choice else ALL)
    if not plan.free and isinstance(factor, DenseFactor):
        sample = 0
    try:
        groups = exhaust(
            make_groups(factor, merging, plan, sample), lambda n_rows: control.check_time()
        )
    except OutOfTime:
        sample = min(n, QUICK_SAMPLE)
        groups = exhaust(make_groups(factor, merging, plan, sample), lambda n_rows: None)

    def make_search(index):
        rng = restart_stream(seed, index)
        args = factor, merging, groups, plan, sample, index, rng, control.check_time, kind
        return LinkedSearch(*args)

    result = _best_result(factor, make_search, 1 if k == 1 else n_init, plan, control)
    return _judge_links(result, plan)


def _judge_links(result, plan):
    """Return a result with links or weights; say where links or sizes could not be kept."""
    links, rule, unit = plan.links, plan.rule, mass_unit(plan.weights)
    sizes = np.bincount(result.labels, plan.weights, plan.k)
    slack = 0.5 if unit == 1 else plan.n  # of the rounding of weights
    too_far = np.maximum(rule.lower - sizes * unit, sizes * unit - rule.upper) > slack
    if too_far.any() and plan.asked_sizes:
        h = np.flatnonzero(too_far)[0]
        raise ValueError(
            f"no labels were found that keep to the links, weights and sizes asked for: cluster "
            f"{h} has the size {sizes[h]:g}, which must be at least {rule.lower[h] / unit:g} and "
            f"at most {rule.upper[h] / unit:g}; raise balance or max_size, or give fewer links"
        )
    n_violations = links.n_violations(result.labels)
    if n_violations and plan.link_penalty is None:
        a, b = links.cannot[np.ptp(result.labels[links.cannot], axis=1) == 0][0]
        warn_user(
            f"{n_violations} of {len(links.cannot)} cannot-links are broken, such as that of rows "
            f"{a} and {b}: no labels without were found; raise k, or remove links"
        )
    bounds = None
    if plan.weights is None:
        least, most = np.minimum(rule.lower, result.sizes), np.maximum(rule.upper, result.sizes)
        bounds = np.column_stack((least, most))
    return replace(
        result,
        n_violations=n_violations,
        n_constraints=len(links.must) + len(links.cannot),
        size_bounds=bounds,
    )


def _best_result(factor, make_search, n_init, plan, control):
    """Run the restarts and return the best as a result, with the bound that the plan asks for."""

    def bound(sizes):
        if plan.free:
            return free_bound(factor, plan.k, control.check_time)
        return risk_bound(factor, *plan.rule.bounds_at(sizes), control.check_time)

    return best_result(
        factor,
        make_search,
        n_init,
        control,
        plan.k,
        plan.params,
        _in_time(bound, control) if plan.bound else None,
        size_bounds=plan.rule.bounds,
        classes=plan.classes,
    )


def _in_time(bound, control):
    """Return the bound as a function that warns, and returns None, where there is no time left."""

    def timed(sizes):
        try:
            return bound(sizes)
        except OutOfTime:
            warn_user(f"max_time={control.max_time:g} leaves no time for the bound")
            return None

    return timed
