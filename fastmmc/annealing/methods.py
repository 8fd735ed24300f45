"""Clustering by the sum of plain distances: SAMMC, and a memetic search for the same objective."""

import dataclasses
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from fastmmc.annealing.annealing import AnnealingSearch
from fastmmc.annealing.blocked import search_in_blocks
from fastmmc.annealing.memetic import MemeticSearch
from fastmmc.annealing.points import Points, make_model
from fastmmc.annealing.search import Settled
from fastmmc.core import validation
from fastmmc.core.declare import function_of, own_values, parameter
from fastmmc.core.execution import (
    RunControl,
    best_of_restarts,
    fixed_seed,
    restart_stream,
    show_progress,
    warn_of_fewer,
)
from fastmmc.core.parameters import Clusters, RunParameters
from fastmmc.core.parameters import Points as PointsParameter
from fastmmc.core.results import CentroidResult
from fastmmc.core.types import MatrixLike
from fastmmc.data.blocks import in_blocks
from fastmmc.kernels.gram import Kernel, dense_rows, distinct_rows
from fastmmc.kernels.kmeans import largest_size

SEARCHES = {"memetic": MemeticSearch, "annealing": AnnealingSearch}
STARTS = ("k-means++", "random")

# LIBLINEAR has to come to an end.
LEAST_C, MOST_C = 1e-9, 1e9

# Largest value whose squares are safe, also in sums over all points.
LARGEST = {np.float64: 1e100, np.float32: 1e12}

# Variance of sparse points as a share of their mean squared norm: distances come from products.
LEAST_SPREAD = 1e-9

# Steps without gain after which a search ends, unless the user says otherwise.
PATIENCE = {"memetic": 200, "annealing": 1000}


class SAMMCParameters(RunParameters, before="n_init"):
    """What the function and the estimator have in common."""

    search: Literal["memetic", "annealing"] = parameter(
        default="memetic", doc="How centers are looked for."
    )
    center: Literal["median", "mean"] = parameter(
        default="median",
        doc="""
        Annealing: centers are the geometric medians of their clusters, and a descent over all
        points ends the search; or the means, as in the paper, without it.
        """,
    )
    init: Literal["k-means++", "random"] | ArrayLike = parameter(
        default="k-means++",
        kind='{"k-means++", "random"} or (k, d) array_like',
        doc="""
        First centers: of the population (given ones begin one individual, k-means++ the others), or
        of the k clusters that representatives are looked for in.
        """,
    )
    population: int = parameter(
        default=10,
        least=2,
        most=validation.MOST_INDIVIDUALS,
        doc="Memetic: individuals that survive; at least 2.",
    )
    delta: float = parameter(
        default=0.1,
        above=0,
        below=1,
        doc="Annealing: representatives as a share of the points, in (0, 1).",
    )
    max_representatives: int = parameter(
        default=4000,
        least=1,
        doc="""
        Most representatives at the beginning. The memetic search uses this many, unless a pass over
        all points costs less than twice as much.
        """,
    )
    n_alt: int = parameter(
        default=3,
        least=1,
        doc="""
        Annealing: rounds of machines and means at most; they end when the labels repeat.
        """,
    )
    C: float = parameter(
        default=1.0,
        least=LEAST_C,
        most=MOST_C,
        doc="""
        Annealing: penalty of the machines, on representatives scaled to unit spread, 1e-9 to 1e9.
        """,
    )
    weighted: bool = parameter(
        default=True,
        doc="""
        Annealing: weight a representative by the number of points it stands for. The paper does not
        say; without it large clusters, which have most of the representatives, are cut up.
        """,
    )
    relabel: bool = parameter(
        default=True,
        doc="""
        Annealing: begin every KMSVM with a new k-means of the representatives, instead of the
        labels at hand. The paper leaves this open; without it a split or move of one among many
        representatives hardly ever changes a label.
        """,
    )
    T0: float = parameter(
        default=0.01,
        above=0,
        doc="Annealing: first temperature, as a share of the first objective.",
    )
    cooling: float = parameter(
        default=0.995,
        above=0,
        below=1,
        doc="Annealing: factor of the temperature after an iteration, in (0, 1).",
    )
    T_min: float = parameter(
        default=1e-5, above=0, doc="Annealing: the search ends below this temperature."
    )
    patience: int | None = parameter(
        default=None,
        least=1,
        doc="""
        Iterations in a row without a lower objective after which the search ends. None: 200
        (memetic; a tenth of it where the search goes on with all points) or 1000 (annealing).
        """,
    )
    max_iter: int = parameter(
        default=20_000, least=1, doc="Most iterations: children, or pairs of a split and a move."
    )


class _SAMMCCall(SAMMCParameters, Clusters, PointsParameter):
    X: MatrixLike = parameter(
        kw_only=False,
        kind="(n, d) array_like, data frame, sparse matrix or dask.array",
        doc="""
        Points; float32 is kept, centers are float64. Distances depend on the units of the features:
        scale them first unless these are comparable.
        """,
    )


def _check_scale(rows):
    """Check that squared distances neither overflow nor vanish."""
    numbers = rows if isinstance(rows, np.ndarray) else rows.data
    largest = largest_size(numbers)
    most = LARGEST[rows.dtype.type]
    if largest > most or 0 < largest < 1.0 / most:
        raise ValueError(
            f"X: squares of its values, the largest of which is {largest:g}, overflow or vanish in "
            f"{rows.dtype}; scale the points, so that it is near 1"
        )


def _check_spread(rows):
    """Check that distances of sparse points, which come from products, do not drown in rounding."""
    norms = np.asarray(rows.multiply(rows).mean(axis=0), dtype=np.float64).sum()
    mean = np.asarray(rows.mean(axis=0), dtype=np.float64)
    if 0 < norms and norms - (mean**2).sum() < LEAST_SPREAD * norms:
        raise ValueError(
            "X is sparse, and its points lie so close together, for how far they are from 0, that "
            "their distances would be lost in rounding; subtract their mean, or give a dense array"
        )


def _check_init(init, k, n_features):
    """Check how centers begin: a name, or the centers."""
    if isinstance(init, str):
        return validation.check_choice("init", init, STARTS, " or an array of centers")
    if init is None or np.isscalar(init):
        raise TypeError(
            f"init must be one of {', '.join(map(repr, STARTS))} or ({k}, {n_features}) centers; "
            f"got {init!r}"
        )
    init = validation.check_matrix(init, name="init", dtype=np.float64, copy=True)
    validation.check_center_shape(init, k, n_features)
    return init


@function_of(_SAMMCCall)
def sammc(call: _SAMMCCall, control: RunControl) -> CentroidResult:
    """Cluster large data by the sum of the plain distances to the nearest centers.

    What is minimised is f(c_1..c_k) = sum_i min_j ||x_i - c_j||, the paper's equation (2):
    distances are not squared, so a center is best at its cluster's geometric median, and outliers
    count less than in k-means.

    ``search="annealing"`` is the paper's method. A few representatives stand for every one of k
    first clusters (Algorithm 1). In turn the initial cluster whose points look most like two
    Gaussians is split, and a random representative moves to another point of its cluster; each time
    linear support vector machines and means cluster the representatives anew (KMSVM), all points
    follow them, and simulated annealing takes or refuses the outcome (Algorithm 2, equation 6).

    ``search="memetic"`` minimises the same objective and finds lower values in less time. A
    population is descended by Weiszfeld's steps; of two parents the centers are matched, one of
    each pair is taken, one center goes to a point far from the others, and the child is descended,
    as in HG-means. With many points it first works on weighted representatives, then on all points.

    Returns
    -------
    CentroidResult
        ``objective`` is f over all points and ``centers`` the centers that have points. ``n_iter``
        counts children, or iterations; ``n_moves`` new best centers, or accepted proposals.
        ``history`` is the lowest objective so far (memetic), or that of the state after every
        iteration (annealing; ``trace["temperature"]`` beside it), in the end that of the descent.
        ``representatives`` are those of the best state; None where the search did without.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range, or X is not a finite matrix.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If the run was stopped before its end.
    UserWarning
        If columns of X seem to have different units.

    Notes
    -----
    The blocks of a Dask array, or of a ``numpy.memmap`` of more than 2^27 numbers, never come
    together: a sample of 20,000 points (or 200 k) is searched, and its centers descend by
    Weiszfeld's steps over all points, with sums of O(k d) numbers from each block a pass. A pass
    reads X anew, so persist a Dask array that fits into the workers' memory. Labels come back as a
    Dask array. ``n_iter`` then counts passes, and ``n_moves`` is that of the sample.

    References
    ----------
    S. Seifollahi, A. Bagirov, E. Zare Borzeshi, M. Piccardi, A simulated annealing-based
    maximum-margin clustering algorithm, Computational Intelligence 35(1), 2019.
    D. Gribel, T. Vidal, HG-means: a scalable hybrid genetic algorithm for minimum sum-of-squares
    clustering, Pattern Recognition 88, 2019.
    Y. Vardi, C.-H. Zhang, The multivariate L1-median and associated data depth, PNAS 97(4), 2000.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> res = fastmmc.sammc(X, 3, random_state=0)
    >>> round(res.objective, 2), res.sizes
    (96.54, array([39, 50, 61]))
    """
    if in_blocks(call.X):
        return search_in_blocks(call, control, sammc)
    rows = validation.check_points(call.X, Kernel("linear"), sparse=True)
    n, d = rows.shape
    k = validation.check_cluster_count(call.k, n)
    if (call.search, call.center) == ("memetic", "mean"):
        raise ValueError(
            "search='memetic' descends by geometric medians; got center='mean', which only "
            "search='annealing' has"
        )
    init, patience = _check_init(call.init, k, d), call.patience or PATIENCE[call.search]
    _check_scale(rows)
    seed = fixed_seed(call.random_state)
    kind, (_, first) = SEARCHES[call.search], distinct_rows(rows, k)
    if first.size <= k:
        kind, init = Settled, np.unique(dense_rows(rows, first), axis=0).astype(np.float64)
    elif not isinstance(rows, np.ndarray):
        _check_spread(rows)
    plan = dataclasses.replace(call, k=k, init=init, patience=patience)
    points = Points(rows)

    with show_progress(control) as control:
        outcome = best_of_restarts(
            lambda index: kind(plan, points, restart_stream(seed, index)), call.n_init, control
        )
    best = outcome.best
    used, labels = np.unique(best.labels, return_inverse=True)
    if used.size < k:
        warn_of_fewer(
            used.size,
            k,
            "the other centers are nearest to no point, as happens where points coincide",
        )
    centers = best.centers[used]
    return outcome.result(
        CentroidResult,
        own_values(call, SAMMCParameters) | {"patience": patience},
        labels=labels.astype(np.int64),
        sizes=np.bincount(labels),
        model=make_model(centers, rows),
        centers=centers,
        all_centers=best.centers,
        kept=used,
        weights=np.bincount(best.labels, minlength=len(best.centers)).astype(np.float64),
        n_active=int(used.size),
        representatives=best.representatives,
    )
