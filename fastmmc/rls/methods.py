"""The functions of UMC-RLS."""

from collections.abc import Sequence

import numpy as np

from fastmmc.core import validation
from fastmmc.core.declare import Parameters, function_of, parameter
from fastmmc.core.execution import OutOfTime, RunControl, fixed_seed, show_progress, warn_user
from fastmmc.core.parameters import Clusters, KnownLabels, LinkParameters
from fastmmc.core.results import RLSResult
from fastmmc.core.status import STOPPED
from fastmmc.core.types import MatrixLike
from fastmmc.kernels.block_factor import comes_in_blocks
from fastmmc.kernels.factors import DenseFactor, LowRankFactor, factor_path
from fastmmc.kernels.gram import default_width, resolve_kernel
from fastmmc.rls.blocked import search_in_blocks
from fastmmc.rls.parameters import UMCRLSBut, UMCRLSParameters, Weights
from fastmmc.rls.planning import prepare
from fastmmc.rls.search import search_labels
from fastmmc.rls.source import FactorSource, check_source
from fastmmc.rls.trimming import leaving_out
from fastmmc.rls.weights import without_weightless


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

    It looks for the labels that kernel ridge classification fits best. With R the hat matrix
    K (K + lam I)^-1, E the n x k label indicator and P = 2E - 1, it minimises

        Q = sum_h (n - p_h^T R p_h) = k n + (4 - k) e^T R e - 4 tr(E^T R E)

    over labellings of about equal (or given) sizes. With ``sizes="free"`` it minimises instead,
    with e_h the indicator and s_h the size of cluster h,

        cost = sum_h (1 - e_h^T R e_h / s_h),

    the unexplained share of each cluster's indicator, added over the clusters.

    ``sizes`` alone names the objective. The other parameters change how it is searched, or which
    labels are allowed. If you do not know width and sizes, use :func:`fastmmc.cluster`.

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
        no point predicts the cluster of another, or a cannot-link is broken. Also if no sizes are
        given and clusters of free sizes, found on up to 500 of the points, have less than 45 % of
        the labels' cost and of their leave-one-out error.
    UserWarning
        If columns of X seem to have different units.
    FutureWarning
        If ``sizes`` is "auto", which means "equal" and will be removed.

    Notes
    -----
    Moving one point changes Q by 8 (U[o, j] - U[d, j] - R_jj) with the cached sums U = (R E)^T, so
    a move costs O(n) on the dense hat matrix, or O(r) at rank r. The dense matrix takes O(n^3) time
    and n^2 numbers of memory, the one of rank r O(n r^2) and n r.

    Many points are searched on cells of them: with the memetic search of equal sizes above 3,000
    points, with free sizes above 5,000. The sums of R over the cells make the cost exact. Then all
    points descend, within the bounds on sizes.

    Known labels first name the clusters that are found without them; the guide says when they also
    decide where to start. A known label whose ``known_trust`` is below 1 is overruled if the other
    points predict another cluster with enough certainty.

    Must-links merge points, and sizes count all points of a group. Cannot-links are prices during
    the search; in the end none is broken unless no labelling that satisfies them all was found.

    Points in blocks (a Dask array, or a ``numpy.memmap`` of more than 2^27 numbers) never come
    together. A sample is searched, then all points descend pass by pass; ``n_iter`` counts passes.
    Initial labels, known labels, links, weights, ``trim`` and ``bound`` are not supported there.

    The user guide has the details: "Regularised least squares".

    References
    ----------
    T. Pahikkala, A. Airola, F. Gieseke, O. Kramer, Unsupervised multi-class regularized
    least-squares classification, ICDM 2012, Algorithms 1-3. Batches, cells and the memetic search
    are this package's own.

    F. Bach, Z. Harchaoui, DIFFRAC: a discriminative and flexible framework for clustering, NIPS
    2007: the cost of free sizes for two clusters and a centred R.

    A. Damle, V. Minden, L. Ying, Simple, direct and efficient multi-way spectral clustering,
    Information and Inference 8, 2019: the spectral start of free sizes.

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
    seed = fixed_seed(call.random_state)
    with show_progress(control) as control:
        factor, control = source.make_factor(default_width(plan.k), seed, control)
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
