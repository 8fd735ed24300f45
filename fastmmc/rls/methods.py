"""The functions of UMC-RLS."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from fastmmc.core.declare import declared, function_of, parameter
from fastmmc.core.execution import RunControl, interrupted, show_progress
from fastmmc.core.parameters import Clusters, Guidance, Regularisation, Weights
from fastmmc.core.results import RLSResult
from fastmmc.core.status import STOPPED
from fastmmc.core.types import MatrixLike
from fastmmc.kernels.block_factor import comes_in_blocks
from fastmmc.kernels.factors import DenseFactor, LowRankFactor
from fastmmc.kernels.gram import default_width
from fastmmc.rls.blocked import search_in_blocks
from fastmmc.rls.parameters import PointsOrFactor, UMCRLSBut, UMCRLSParameters
from fastmmc.rls.planning import prepare
from fastmmc.rls.search import search_labels
from fastmmc.rls.source import check_source
from fastmmc.rls.task import Task


class _UMCRLSCall(UMCRLSParameters, Weights, Guidance, Clusters, PointsOrFactor):
    """A call of :func:`umc_rls`."""


class _PathCall(UMCRLSBut, Weights, Guidance):
    X: MatrixLike = parameter(
        kw_only=False,
        kind="(n, d) array_like or data frame",
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
def umc_rls(call: _UMCRLSCall, control: RunControl) -> RLSResult:
    """Cluster by unsupervised multi-class regularised least squares (UMC-RLS).

    With R = K (K + lam I)^-1 the hat matrix, E the n x k label indicator and P = 2E - 1, it
    minimises

        Q = sum_h (n - p_h^T R p_h)

    over labellings of about equal or given sizes. With ``sizes="free"`` it minimises

        cost = sum_h (1 - e_h^T R e_h / s_h)

    over those of any sizes s_h. Where width and sizes are unknown, use :func:`fastmmc.cluster`. See
    the guide, "Regularised least squares".

    Returns
    -------
    RLSResult
        ``labels``, ``objective``, ``loo_mse``, ``predict`` and more.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range or X is not a finite matrix.
    MemoryError
        If the hat matrix does not fit into free memory.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If the run was stopped early, no point predicts the cluster of another, a cannot-link is
        broken, or free sizes fit far better.
    UserWarning
        If columns seem to have different units.
    FutureWarning
        If ``sizes`` is "auto".

    Notes
    -----
    Dask arrays and large memory maps allow no initial or known labels, links, weights, ``trim`` or
    ``bound``.

    References
    ----------
    Pahikkala, Airola, Gieseke, Kramer, Unsupervised multi-class regularized least-squares
    classification, ICDM 2012.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("moons")
    >>> res = fastmmc.umc_rls(X, 2, random_state=0)
    >>> res.sizes, res.status.name
    (array([100, 100]), 'CONVERGED')
    """
    task = Task.of(call, check_source)
    call = task.call
    if comes_in_blocks(call.X):
        return task.result(search_in_blocks(call, control, umc_rls))
    source, plan = prepare(call, check_source(call))
    width, seed = default_width(plan.k), call.random_state
    with show_progress(control) as control, task.running():
        factor, control = next(source.factors([source.lam], width, seed, control))
        return task.result(search_labels(seed, factor, plan, control))


@function_of(_PathCall, like=umc_rls)
def umc_rls_path(call: _PathCall, control: RunControl) -> list[RLSResult]:
    """Run :func:`umc_rls` for several lam; the kernel of a dense hat matrix is evaluated once.

    Q grows with lam, so it cannot choose among the results. The leave-one-out error can:
    ``min(path, key=lambda res: res.loo_mse)``. Every lam starts from the same labels, and
    ``max_time`` is for the whole path. ``trim`` leaves out the same points for every lam: those of
    the highest outlier scores at the least lam.

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
    make_source = partial(check_source, lam=min(lams))
    task = Task.of(call, make_source)
    call = task.call
    source, plan = prepare(call, make_source(call))
    seed, results = call.random_state, []
    with show_progress(control) as control, task.running():
        try:
            factors = source.factors(lams, default_width(plan.k), seed, control)
            for at, (factor, within) in enumerate(factors):
                part = within.part(at / len(lams), (at + 1) / len(lams))
                results.append(search_labels(seed, factor, plan, part))
                if results[-1].status in STOPPED:
                    break
        except KeyboardInterrupt:
            if not results:
                raise
            results[-1] = interrupted(results[-1])
    return task.result(results)


def _check_lams(call):
    """Return the values of lam."""
    lams = call.lams
    if isinstance(call.X, DenseFactor | LowRankFactor):
        raise TypeError("X is a factor, which has its lam already; give the points")
    lams = list(lams) if np.iterable(lams) and not isinstance(lams, str) else []
    if not lams:
        raise ValueError(f"lams must be a sequence of at least one number; got {call.lams!r}")
    (lam,) = declared(Regularisation)
    return [replace(lam, name="lams").checked(value) for value in lams]
