"""Clustering by the sum of plain distances: SAMMC, and a memetic search for the same objective."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from fastmmc import validation
from fastmmc._names import remember_names
from fastmmc.annealing.annealing import AnnealingSearch
from fastmmc.annealing.memetic import MemeticSearch
from fastmmc.annealing.points import Points, make_model
from fastmmc.execution import (
    RunControl,
    best_of_restarts,
    check_control,
    fixed_seed,
    restart_stream,
    show_progress,
    warn_user,
)
from fastmmc.gram import Kernel, dense_rows
from fastmmc.models import row_blocks
from fastmmc.results import CentroidResult, Status

SEARCHES = {"memetic": MemeticSearch, "annealing": AnnealingSearch}
CENTERS = ("median", "mean")
STARTS = ("k-means++", "random")

LARGEST_C = 1e9

# Largest value whose squares are safe, also in sums over all points.
LARGEST = {np.float64: 1e100, np.float32: 1e12}

# Variance of sparse points as a share of their mean squared norm: distances come from products.
LEAST_SPREAD = 1e-9

# Steps without gain after which a search ends, unless the user says otherwise.
PATIENCE = {"memetic": 200, "annealing": 1000}


@dataclass(frozen=True, eq=False)
class SammcPlan:
    """The checked parameters of a call of :func:`sammc`, shared by all starts."""

    k: int
    search: str
    center: str
    init: str | np.ndarray
    delta: float
    max_representatives: int
    n_alt: int
    C: float
    weighted: bool
    relabel: bool
    T0: float
    cooling: float
    T_min: float
    patience: int
    max_iter: int
    population: int
    params: dict
    control: RunControl


def _make_plan(points, k, given, control):
    """Check the parameters of the search."""
    n = points.shape[0]
    k = validation.check_integer("k", k, least=1, most=n, why=", the number of points")
    search = validation.check_choice("search", given["search"], tuple(SEARCHES))
    center = validation.check_choice("center", given["center"], CENTERS)
    if (search, center) == ("memetic", "mean"):
        raise ValueError(
            "search='memetic' descends by geometric medians; got center='mean', which only "
            "search='annealing' has"
        )
    delta = validation.check_positive("delta", given["delta"])
    if delta >= 1:
        raise ValueError(
            "delta must be below 1, as it is the share of the points that become "
            f"representatives; got {delta}"
        )
    cooling = validation.check_positive("cooling", given["cooling"])
    if cooling >= 1:
        raise ValueError(f"cooling must be below 1, or the temperature never falls; got {cooling}")
    patience = PATIENCE[search] if given["patience"] is None else given["patience"]
    return SammcPlan(
        k=k,
        search=search,
        center=center,
        init=_check_init(given["init"], k, points.shape[1]),
        delta=delta,
        max_representatives=validation.check_integer(
            "max_representatives", given["max_representatives"], least=1
        ),
        n_alt=validation.check_integer("n_alt", given["n_alt"], least=1),
        C=_check_penalty(given["C"]),
        weighted=validation.check_flag("weighted", given["weighted"]),
        relabel=validation.check_flag("relabel", given["relabel"]),
        T0=validation.check_positive("T0", given["T0"]),
        cooling=cooling,
        T_min=validation.check_positive("T_min", given["T_min"]),
        patience=validation.check_integer("patience", patience, least=1),
        max_iter=validation.check_integer("max_iter", given["max_iter"], least=1),
        population=validation.check_integer(
            "population", given["population"], least=2, most=validation.MOST_INDIVIDUALS
        ),
        params=given | {"patience": patience},
        control=control,
    )


def _check_penalty(C):
    """Check the penalty of the machines, with which LIBLINEAR must come to an end."""
    C = validation.check_positive("C", C)
    if not 1.0 / LARGEST_C <= C <= LARGEST_C:
        raise ValueError(
            f"C must lie between {1.0 / LARGEST_C:g} and {LARGEST_C:g}, as representatives are "
            f"scaled to unit spread; got {C:g}"
        )
    return C


def _check_scale(rows):
    """Check that squared distances neither overflow nor vanish."""
    values = rows if isinstance(rows, np.ndarray) else rows.data
    largest = float(np.abs(values).max(initial=0.0))
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
    if init.shape != (k, n_features):
        raise ValueError(
            f"init must have shape ({k}, {n_features}), a row for each of the {k} centers; "
            f"got {init.shape}"
        )
    return init


def _distinct_points(points, k):
    """Return the distinct points if there are no more than k of them, else None."""
    distinct = dense_rows(points, slice(1))
    for block in row_blocks(*points.shape):
        distinct = np.unique(np.concatenate((distinct, dense_rows(points, block))), axis=0)
        if len(distinct) > k:
            return None
    return distinct


class _Settled:
    """Stands in for a search where every distinct point can have a center of its own."""

    status = Status.CONVERGED
    n_iter = 0
    n_moves = 0
    objective = 0.0
    representatives = None

    def __init__(self, rows, centers):
        self.centers = centers
        self.labels, _ = make_model(centers, rows).assign(rows)

    def step(self, budget):
        """Return that there is nothing to do."""
        return True

    def fraction(self):
        """Return that all is done."""
        return 1.0

    def finish(self):
        """Do nothing."""

    @property
    def history(self):
        """The sum of distances, which is 0, (1,)."""
        return np.zeros(1)

    @property
    def trace(self):
        """Nothing."""
        return {}


def sammc(
    X,
    k,
    *,
    search="memetic",
    center="median",
    init="k-means++",
    population=10,
    delta=0.1,
    max_representatives=4000,
    n_alt=3,
    C=1.0,
    weighted=True,
    relabel=True,
    T0=0.01,
    cooling=0.995,
    T_min=1e-5,
    patience=None,
    max_iter=20_000,
    n_init=1,
    random_state=None,
    n_jobs=None,
    max_time=None,
    callback=None,
    verbose=0,
):
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

    Parameters
    ----------
    X : (n, d) array_like or sparse matrix
        Points; float32 is kept, centers are float64. Distances depend on the units of the features:
        scale them first unless these are comparable.
    k : int
        Clusters, 1 <= k <= n.
    search : {"memetic", "annealing"}, default="memetic"
        How centers are looked for.
    center : {"median", "mean"}, default="median"
        Annealing: centers are the geometric medians of their clusters, and a descent over all
        points ends the search; or the means, as in the paper, without it.
    init : {"k-means++", "random"} or (k, d) array_like, default="k-means++"
        First centers: of the population (given ones begin one individual, k-means++ the others), or
        of the k clusters that representatives are looked for in.
    population : int, default=10
        Memetic: individuals that survive; at least 2.
    delta : float, default=0.1
        Annealing: representatives as a share of the points, in (0, 1).
    max_representatives : int, default=4000
        Most representatives at the beginning. The memetic search uses that many unless passes over
        all points are less than twice as dear.
    n_alt : int, default=3
        Annealing: rounds of machines and means at most; they end when labels come back.
    C : float, default=1.0
        Annealing: penalty of the machines, on representatives scaled to unit spread.
    weighted : bool, default=True
        Annealing: count a representative as often as it stands for points. The paper does not
        say; without it large clusters, which have most of the representatives, are cut up.
    relabel : bool, default=True
        Annealing: begin every KMSVM with a new k-means of the representatives, instead of the
        labels at hand. The paper leaves this open; without it a split or move of one among many
        representatives hardly ever changes a label.
    T0 : float, default=0.01
        Annealing: first temperature, as a share of the first objective.
    cooling : float, default=0.995
        Annealing: factor of the temperature after an iteration, in (0, 1).
    T_min : float, default=1e-5
        Annealing: the search ends below it.
    patience : int, optional
        Iterations in a row without a lower objective after which the search ends. None: 200
        (memetic; a tenth of it where the search goes on with all points) or 1000 (annealing).
    max_iter : int, default=20000
        Most iterations: children, or pairs of a split and a move.
    n_init : int, default=1
        Starts; the lowest objective wins.
    random_state : None, int, numpy.random.Generator, RandomState or SeedSequence, default=None
        Source of randomness. The same seed gives the same labels for every ``n_jobs``.
    n_jobs : int, optional
        Threads that starts run in. None: 1, unless joblib's configuration says otherwise.
    max_time : float, optional
        Seconds after which the best found so far is returned.
    callback : callable, optional
        Called with a :class:`fastmmc.execution.Progress` about twenty times a second; a true return
        value stops the run.
    verbose : int, default=0
        1 shows a progress bar (needs rich).

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
    return solve_sammc(
        X,
        k,
        search=search,
        center=center,
        init=init,
        population=population,
        delta=delta,
        max_representatives=max_representatives,
        n_alt=n_alt,
        C=C,
        weighted=weighted,
        relabel=relabel,
        T0=T0,
        cooling=cooling,
        T_min=T_min,
        patience=patience,
        max_iter=max_iter,
        n_init=n_init,
        random_state=random_state,
        n_jobs=n_jobs,
        max_time=max_time,
        callback=callback,
        verbose=verbose,
    )


@remember_names
def solve_sammc(
    X,
    k,
    *,
    n_init,
    random_state,
    n_jobs,
    max_time,
    callback,
    verbose,
    on_start_done=None,
    **given,
):
    """Do what :func:`sammc` does, and report each start that ended.

    Parameters
    ----------
    X, k, n_init, random_state, n_jobs, max_time, callback, verbose
        See :func:`sammc`.
    on_start_done : callable, optional
        Called with (index, n_init) in the calling thread; a true return value stops the run.
    **given
        The other parameters of :func:`sammc`.

    Returns
    -------
    CentroidResult
        The best of the starts.
    """
    control = check_control(time.perf_counter(), n_jobs, max_time, callback, verbose, on_start_done)
    n_init = validation.check_starts(n_init)
    rows = validation.check_points(X, Kernel("linear"), sparse=True)
    plan = _make_plan(rows, k, given, control)
    _check_scale(rows)
    seed = fixed_seed(random_state)
    distinct = _distinct_points(rows, plan.k)
    if distinct is None and not isinstance(rows, np.ndarray):
        _check_spread(rows)
    points = Points(rows)

    def make_search(index):
        if distinct is not None:
            return _Settled(rows, distinct.astype(np.float64))
        return SEARCHES[plan.search](plan, points, restart_stream(seed, index))

    with show_progress(control) as control:
        best, best_init, objectives, status = best_of_restarts(make_search, n_init, control)
    return _gather(plan, rows, best, n_init, best_init, objectives, status)


def _gather(plan, rows, best, n_init, best_init, objectives, status):
    """Return the result; centers that are nearest to no point are dropped."""
    used, labels = np.unique(best.labels, return_inverse=True)
    if used.size < plan.k:
        warn_user(
            f"found {used.size} clusters, fewer than the {plan.k} asked for: the other centers are "
            "nearest to no point, as happens where points coincide"
        )
    sizes = np.bincount(labels)
    weights = np.bincount(best.labels, minlength=len(best.centers)).astype(np.float64)
    return CentroidResult(
        labels=labels.astype(np.int64),
        objective=best.objective,
        status=status,
        n_iter=best.n_iter,
        n_moves=best.n_moves,
        sizes=sizes,
        history=best.history,
        trace=best.trace,
        objectives=objectives,
        best_init=best_init,
        params=plan.params | {"n_init": n_init},
        model=make_model(best.centers[used], rows),
        centers=best.centers[used],
        all_centers=best.centers,
        kept=used,
        weights=weights,
        n_active=int(used.size),
        representatives=best.representatives,
    )
