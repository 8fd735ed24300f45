"""The functions of UMC-RLS."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from fastmmc import validation
from fastmmc._declare import Parameters, function_of, parameter
from fastmmc._typing import MatrixLike
from fastmmc.block_factor import comes_in_blocks
from fastmmc.execution import OutOfTime, RunControl, fixed_seed, show_progress, warn_user
from fastmmc.factors import DenseFactor, LowRankFactor, factor_path
from fastmmc.gram import default_width, resolve_kernel
from fastmmc.parameters import Clusters, KnownLabels, LinkParameters
from fastmmc.results import RLSResult
from fastmmc.rls.blocked import search_in_blocks
from fastmmc.rls.link_choice import is_open, search_smooth_too
from fastmmc.rls.parameters import UMCRLSBut, UMCRLSParameters, Weights
from fastmmc.rls.planning import DENSE_CHOICE, leaves_width, prepare
from fastmmc.rls.search import search_labels
from fastmmc.rls.source import FactorSource, check_source
from fastmmc.rls.trimming import leaving_out
from fastmmc.rls.weights import without_weightless
from fastmmc.status import STOPPED


class _UMCRLSCall(UMCRLSParameters, Weights, LinkParameters, KnownLabels, Clusters, FactorSource):
    """A call of :func:`umc_rls`."""


class _PathCall(UMCRLSBut, Weights, LinkParameters, KnownLabels, Parameters):
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

    Links also tell how smooth clusters are. Where a call says nothing of sizes, search, weights and
    known labels, links are hard and the hat matrix of up to 3,000 points is dense, the points are
    searched once more with free sizes and the trace of K as lam, which makes the cost nearly that
    of kernel k-means. Of either labels we drop the links, descend in the cost that they were found
    by, and count the links that still hold. The second ones are taken if they keep more; and, where
    the adjusted Rand index of both is above 0.8, if they lose more by no more than the standard
    error, the root of the number of links that one of them keeps and the other does not. Then
    ``objective``, ``history`` and ``params["lam"]`` are those of the second search, and the model
    and all that it tells have the lam of the call.

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
    points, the cost is that of all points, and errors are those at the points drawn. Labels of
    about equal sizes are there those found, or the consensus of 30 starts (of the first labels of
    the search above ten clusters), whichever has the larger mean adjusted Rand index with the
    starts; the consensus is Ward's clusters in the share of starts that put two cells together
    (Strehl and Ghosh, 2002; Fred and Jain, 2005). Then all points descend. Clusters of less than
    about 1 % of the points may be missed there, as few landmarks lie in them;
    ``landmarks="pivoted"`` sees more of them. A dense hat matrix, and points less than twice as
    many as cells, have a sample of 3,000 instead (50 k if that is more, 10,000 at most).

    A width that is chosen: a call that gives neither width nor sizes, and no known labels, links or
    weights, of points up to 3,000 with the Gaussian kernel and no ``rank``, then looks at the
    median distance to the (n / (8 k))-th neighbour, where labels descend from Genie's clusters. The
    best of them are taken, and their width, if they differ and have less than half of the error,
    for which the two errors above are multiplied and the root is drawn: the lower of them tells how
    short the boundaries are, at any width. Spirals, rings and bands may lie closer together than
    the clusters are wide, and are told apart there. It takes about a fifth more time. With that
    ``sigma`` given the whole search is made at it, and may end in other labels.

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

    A. Strehl, J. Ghosh, Cluster ensembles, JMLR 3, 2002, and A. Fred, A. Jain, Combining multiple
    clusterings using evidence accumulation, IEEE TPAMI 27, 2005: the consensus of starts.

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
    source, plan = prepare(call, check_source)
    plan = replace(plan, chooses_width=leaves_width(call, source, plan))
    seed = fixed_seed(call.random_state)
    with show_progress(control) as control:
        factor, control = source.make_factor(default_width(plan.k), seed, control)
        if is_open(factor, plan, DENSE_CHOICE):
            return search_smooth_too(partial(search_labels, seed), factor, plan, control)
        return search_labels(seed, factor, plan, control)


def _source_of_path(call):
    """Return the source of the first hat matrix of a path."""
    return check_source(call, lam=_check_lams(call)[0])


@function_of(_PathCall, like=umc_rls)
@leaving_out(_source_of_path)
@without_weightless(_source_of_path)
def umc_rls_path(call: _PathCall, control: RunControl) -> list[RLSResult]:
    """Run :func:`umc_rls` for several lam; the kernel of a dense hat matrix is evaluated once.

    Q grows with lam, so it cannot choose among the results. The leave-one-out error can:
    ``min(path, key=lambda res: res.loo_mse)``. Every lam starts from the same labels, and
    ``max_time`` is for the whole path.

    Returns
    -------
    list of RLSResult
        One a lam, in the order given, each with its ``loo_mse``. A run that is stopped returns
        those that it reached.

    Notes
    -----
    Dense: two n x n arrays of memory, the Gram matrix and the hat matrix in turn.

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
    source, plan = prepare(call, _source_of_path)
    seed = fixed_seed(call.random_state)
    results = []
    kernel = resolve_kernel(source.kernel, source.points, default_width(plan.k))
    with show_progress(control) as control:
        path = factor_path(source.points, lams, kernel, source.form, seed, control.prepare)
        try:
            for factor in path:
                results.append(search_labels(seed, factor, plan, control))
                if results[-1].status in STOPPED:
                    break
        except OutOfTime:
            if results:
                warn_user(
                    f"max_time={control.max_time:g} was too short for all lams: {len(results)}"
                    f" of {len(lams)} results are returned"
                )
            else:
                factor, control = source.make_quick_factor(kernel, seed, control)
                results = [search_labels(seed, factor, plan, control)]
    return results


def _check_lams(call):
    """Return the values of lam."""
    lams = call.lams
    if isinstance(call.X, DenseFactor | LowRankFactor):
        raise TypeError("X is a factor, which has its lam already; give the points")
    if isinstance(lams, str) or not np.iterable(lams) or len(list(lams)) == 0:
        raise ValueError(f"lams must be a sequence of at least one number; got {lams!r}")
    return [validation.check_positive("lams", lam) for lam in lams]
