"""EvoMMC and FastEvoMMC: restarts of an evolution strategy over labels -1, +1."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from sklearn.cluster import KMeans

from fastmmc import validation
from fastmmc.constraints import check_init
from fastmmc.execution import check_control, fixed_seed, restart_stream, show_progress
from fastmmc.gram import box_diagonal
from fastmmc.hat import leave_one_out_residuals
from fastmmc.lowrank import LowRankFactor
from fastmmc.results import HISTORY_CAPACITY, History, Status
from fastmmc.rls import _kernels_evolution as evolution
from fastmmc.rls._solver_shared import best_result, check_source
from fastmmc.sizes import size_rule

DEFAULTS = {"lam": 0.5, "rank": None}
FAST_DEFAULTS = {"lam": 0.5, "rank": 0.1}

# Pairs that the proof of a local optimum may look at, as a multiple of n.
PAIRS = 200


@dataclass(frozen=True, eq=False)
class _Plan:
    """Everything that the restarts of one call have in common."""

    n: int
    mu: int
    nu: int
    flips: int
    init: str | np.ndarray
    points: np.ndarray
    lower: int
    upper: int
    classify: bool
    distinct: bool
    polish: bool
    patience: int
    max_iter: int
    params: dict

    def first_labels(self, rng):
        """Return the labels of the individuals that a start begins with, (mu, n) int8."""
        y = np.stack([self._random_labels(rng) for _ in range(self.mu)])
        if not isinstance(self.init, str):
            y[0] = np.where(self.init == 1, 1, -1)
        elif self.init == "kmeans":
            y[0] = self._k_means_labels(rng)
        return y

    def _random_labels(self, rng):
        """Draw the number of labels +1 uniformly within the bounds, and then which they are."""
        y = np.full(self.n, -1, dtype=np.int8)
        y[: rng.integers(self.lower, self.upper + 1)] = 1
        return rng.permutation(y)

    def _k_means_labels(self, rng):
        """Split by k-means, and move the points nearest to the border until the sizes fit."""
        model = KMeans(2, n_init=1, random_state=int(rng.integers(2**31))).fit(self.points)
        distances = model.transform(self.points)
        return self.split(distances[:, 0] - distances[:, 1])

    def split(self, scores):
        """Label points of positive score +1, but as many as the bounds allow, by their scores."""
        n_plus = int(np.clip(np.sum(scores >= 0), self.lower, self.upper))
        y = np.full(self.n, -1, dtype=np.int8)
        y[np.argsort(-scores, kind="stable")[:n_plus]] = 1
        return y


def _make_plan(
    source,
    *,
    mu,
    nu,
    flips,
    init,
    classify,
    distinct,
    polish,
    patience,
    max_iter,
    balance,
    target_sizes,
    min_size,
):
    """Check the parameters of the search and fix what all restarts have in common."""
    n = source.points.shape[0]
    if n < 2:
        raise ValueError("X must have at least 2 points, one for each cluster; got n_samples = 1")
    mu = validation.check_integer("mu", mu, least=1)
    nu = validation.check_integer("nu", nu, least=1)
    if flips is not None:
        flips = validation.check_integer("flips", flips, least=1, most=n, why=", all points")
    if patience is not None:
        patience = validation.check_integer("patience", patience, least=1)
    if max_iter is not None:
        max_iter = validation.check_integer("max_iter", max_iter, least=0)
    lower, upper = _bounds(n, balance, target_sizes, min_size)
    return _Plan(
        n=n,
        mu=mu,
        nu=nu,
        flips=flips or 0,
        init=_check_start(init, n, lower, upper, source.kernel),
        points=source.points,
        lower=lower,
        upper=upper,
        classify=validation.check_flag("classify", classify),
        distinct=validation.check_flag("distinct", distinct),
        polish=validation.check_flag("polish", polish),
        patience=patience or (10 * n if nu == 1 else n),
        max_iter=1000 * n if max_iter is None else max_iter,
        params={
            "mu": mu,
            "nu": nu,
            "flips": flips,
            "init": init,
            "classify": classify,
            "distinct": distinct,
            "polish": polish,
            "patience": patience,
            "max_iter": max_iter,
            "balance": balance,
            "target_sizes": target_sizes,
            "min_size": min_size,
        },
    )


def _bounds(n, balance, target_sizes, min_size):
    """Return the least and the greatest number of labels +1."""
    balance = validation.check_number("balance", balance)
    if not 0 <= balance < 1:
        raise ValueError(f"balance must be at least 0 and below 1; got {balance}")
    min_size = validation.check_integer(
        "min_size", min_size, least=1, most=n // 2, why=", half of the points"
    )
    if balance > 0:
        # Of an odd number of points two clusters differ by one at least.
        balance = max(balance, 1 / n)
    rule = size_rule(n, 2, balance=balance, target_sizes=target_sizes, min_size=min_size)
    lower = max(rule.lower[1], n - rule.upper[0])
    upper = min(rule.upper[1], n - rule.lower[0])
    return int(lower), int(upper)


def _check_start(init, n, lower, upper, kernel):
    """Return "random", "kmeans" or an array of labels 0 and 1 within the bounds."""
    labels = check_init(init, n, 2, kernel)
    if isinstance(labels, str):
        return labels
    if not lower <= labels.sum() <= upper:
        raise ValueError(
            f"init: cluster 1 has {labels.sum()} points, which the size rule bounds to {lower} to "
            f"{upper}; raise balance"
        )
    return labels


def make_population(matrix, dense, y, nu, most, random):
    """Return what the compiled loop works on.

    Parameters
    ----------
    matrix : (n, n) or (n, r) array
        Hat matrix, or its factor Z.
    dense : bool
        Which of the two it is.
    y : (mu, n) int8 array
        Labels -1, +1 of the first individuals.
    nu : int
        Children a generation.
    most : int
        Labels that a child flips at most.
    random : (1,) uint64 array
        State of the random numbers.

    Returns
    -------
    Population
        With the individuals in the order of their fitness.
    """
    mu, n = y.shape
    caches = _cached(matrix, y)
    width = caches.shape[1]
    fitness = _fitness_of(caches, y, dense)
    order = np.argsort(fitness, kind="stable")
    pop = evolution.Population(
        y=np.zeros((mu + nu, n), dtype=np.int8),
        cache=np.zeros((mu + nu, width)),
        fitness=fitness[order],
        n_plus=np.sum(y[order] == 1, axis=1, dtype=np.int64),
        slot=np.arange(mu + nu),
        parent=np.zeros(nu, dtype=np.int64),
        child_fitness=np.zeros(nu),
        child_plus=np.zeros(nu, dtype=np.int64),
        n_flips=np.zeros(nu, dtype=np.int64),
        # A swap may be the last of the flips.
        flips=np.zeros((nu, most + 1), dtype=np.int64),
        mark=np.zeros(n, dtype=np.int64),
        anchor=np.zeros((1, 0 if dense else n)),
        anchor_cache=np.zeros(0 if dense else width),
        # Infinite: nothing is known before the first anchor is taken.
        slack=np.full(mu + nu, 0.0 if dense else np.inf),
        rank=np.zeros(mu + nu, dtype=np.int64),
        spare=np.zeros((2, mu + nu), dtype=np.int64),
        spare_fitness=np.zeros(mu),
        work=np.zeros(0 if dense else width),
        random=random,
        pos=np.zeros(evolution.N_POS, dtype=np.int64),
        history=np.empty((HISTORY_CAPACITY, 2)),
    )
    pop.y[:mu] = y[order]
    pop.cache[:mu] = caches[order]
    return pop


def _cached(matrix, y):
    """Return t = R y, or u = Z^T y, for y or for its rows."""
    return (y.astype(matrix.dtype) @ matrix).astype(np.float64, copy=False)


def _fitness_of(caches, y, dense):
    """Return F(y) = n - y^T R y for the rows of y."""
    return y.shape[1] - np.einsum("ij,ij->i", caches, y if dense else caches)


class _Evolution:
    """One restart: the population and the loops that improve it."""

    def __init__(self, factor, diag, plan, rng):
        self._factor = factor
        self._diag = diag
        self._root = np.sqrt(diag)
        self._plan = plan
        self._dense = not isinstance(factor, LowRankFactor)
        self._matrix = factor.R if self._dense else factor.Z
        self._tol = 1e-12 * plan.n
        self._next_proof = plan.n
        self._polishing = False
        self._history = History()
        self.status = Status.CONVERGED
        y = plan.first_labels(rng)
        if plan.classify:
            y = np.stack([self._classify(individual) for individual in y])
        self._population = make_population(
            self._matrix,
            self._dense,
            y,
            plan.nu,
            plan.flips or max(1, plan.n // 2),
            rng.integers(1, 2**63, size=1, dtype=np.uint64),
        )
        self._note()

    def step(self, budget):
        """Run one slice; return whether the search has ended."""
        if self._polishing:
            return self._polish(budget)
        if not self._search(budget):
            return False
        self._note()
        self._polishing = True
        return not self._plan.polish

    def _search(self, budget):
        """Make generations; return whether there is no more to make."""
        plan, pop = self._plan, self._population
        ended = evolution.evolve(
            self._matrix,
            self._diag,
            self._root,
            pop,
            self._dense,
            plan.lower,
            plan.upper,
            plan.flips,
            plan.distinct,
            min(plan.patience, self._next_proof),
            plan.max_iter,
            self._tol,
            budget,
        )
        self._history.drain(pop.history, pop.pos, evolution.RECORDS)
        stale = int(pop.pos[evolution.STALE])
        self._next_proof = plan.n * (stale // plan.n + 1)
        if not ended:
            return False
        if pop.pos[evolution.GENERATION] >= plan.max_iter:
            self.status = Status.MAX_ITER
            return True
        return stale >= plan.patience or self._is_local_optimum()

    def _polish(self, budget):
        """Flip and swap labels of the best individual; return whether none helps any more."""
        price = 2 * self._matrix.size // self._plan.n + self._plan.n
        for _ in range(1 + budget // (16 * price)):
            points = self._improvement(0, swaps=True)
            if not points:
                return True
            self._flip_best(list(points))
        return False

    def _flip_best(self, points):
        """Flip labels of the best individual."""
        pop, own = self._population, self._population.slot[0]
        y, cache = pop.y[own], pop.cache[own]
        pop.n_plus[0] -= y[points].sum()
        cache -= 2.0 * (y[points].astype(self._matrix.dtype) @ self._matrix[points])
        y[points] = -y[points]
        pop.fitness[0] = self._plan.n - cache @ (y if self._dense else cache)
        if not self._dense:
            pop.slack[own] = np.linalg.norm(cache - pop.anchor_cache)
        pop.pos[evolution.ACCEPTED] += 1

    def fraction(self):
        """Return an estimate of the share of the work that is done."""
        pos = self._population.pos
        stale = pos[evolution.STALE] / self._plan.patience
        return min(0.95, max(stale, pos[evolution.GENERATION] / max(1, self._plan.max_iter)))

    def finish(self):
        """Take the final figures, from scratch, and let the work space go."""
        pop = self._population
        y = pop.y[pop.slot[0]]
        self.labels = (y == 1).astype(np.int64)
        self.objective = self._fitness(y.astype(np.float64))
        self.n_iter = int(pop.pos[evolution.GENERATION])
        self.n_moves = int(pop.pos[evolution.ACCEPTED])
        self._history.note(self.n_iter, self.objective)
        self.history = self._history.values()
        self.trace = {"generations": self._history.counts()}
        self._population = None

    def _fitness(self, y):
        """Return F(y) = n - y^T R y."""
        return float(_fitness_of(_cached(self._matrix, y[None]), y[None], self._dense)[0])

    def _smoothed(self, cache):
        """Return R y from what is kept of y."""
        return cache if self._dense else self._matrix @ cache

    def _classify(self, y):
        """Take the signs of the leave-one-out predictions as labels while that lowers F."""
        value = self._fitness(y.astype(np.float64))
        while True:
            targets = y.astype(np.float64)
            residuals = leave_one_out_residuals(
                targets, self._smoothed(_cached(self._matrix, targets)), self._diag
            )
            new = self._plan.split(targets - residuals)
            new_value = self._fitness(new.astype(np.float64))
            if new_value >= value - self._tol:
                return y
            y, value = new, new_value

    def _is_local_optimum(self):
        """Tell whether no child can be better than its parent, for single flips from now on."""
        plan, pop = self._plan, self._population
        single = plan.flips == 1 or (
            plan.flips == 0 and plan.n < 2 * (int(pop.pos[evolution.GENERATION]) + 2)
        )
        if not single:
            return False
        for i in range(plan.mu):
            # Mutations swap only where a flip would break a bound.
            swaps = not plan.lower < pop.n_plus[i] < plan.upper
            if self._improvement(i, swaps) != ():
                return False
        return True

    def _improvement(self, individual, swaps):
        """Return points whose flips lower F: one, two, none if that is proven, None if unknown."""
        plan, pop = self._plan, self._population
        slot = pop.slot[individual]
        smooth, row = (pop.cache, slot) if self._dense else (pop.anchor, 0)
        j = evolution.improving_flip(
            self._matrix,
            self._diag,
            self._root,
            pop.y,
            pop.cache,
            slot,
            smooth,
            row,
            pop.slack[slot],
            pop.n_plus[individual],
            plan.lower,
            plan.upper,
            self._tol,
        )
        if j >= 0:
            return (j,)
        if not swaps:
            return ()
        y, t = pop.y[slot], self._smoothed(pop.cache[slot])
        order = np.argsort(y * t - self._diag, kind="stable")
        pair = evolution.improving_swap(
            self._matrix, self._dense, y, t, self._diag, order, self._tol, PAIRS * plan.n
        )
        if pair[0] >= 0:
            return pair
        return () if pair[0] == -1 else None

    def _note(self):
        """Note where the search stands."""
        pop = self._population
        self._history.note(pop.pos[evolution.GENERATION], pop.fitness[0])


def evo_mmc(
    X,
    *,
    lam=0.5,
    mu=10,
    nu=10,
    flips=None,
    init="random",
    classify=False,
    distinct=False,
    polish=True,
    patience=None,
    max_iter=None,
    kernel="rbf",
    sigma=None,
    gamma=None,
    degree=3,
    coef0=1.0,
    kernel_params=None,
    balance=0.03,
    target_sizes=None,
    min_size=1,
    n_init=10,
    random_state=None,
    n_jobs=None,
    max_time=None,
    callback=None,
    verbose=0,
):
    """Cluster in two by evolutionary maximum margin clustering (EvoMMC).

    Looks for labels y of -1 and +1, of about equal numbers, under which kernel ridge
    classification fits best: with R the hat matrix K (K + lam I)^-1 it minimises

        F(y) = n - y^T R y

    by a (mu + nu) evolution strategy whose children flip a few labels of a parent. With t = R y at
    hand a child that flips the set S costs 4 y_S^T t_S - 4 y_S^T R_SS y_S, independent of n.

    Parameters
    ----------
    X : (n, d) array_like, DenseFactor or LowRankFactor
        Points (float32 is kept, anything else becomes float64); with ``kernel="precomputed"``
        their (n, n) Gram matrix; or a factor made by :func:`factor`, whose own lam and kernel then
        hold (:func:`factor` has other defaults than this function).
    lam : float, default=0.5
        Regularisation, > 0. The paper's lambda is lam / n: its grid 1/(2n), 1/(200n), 1/(1000n) is
        1/2, 1/200, 1/1000 here.
    mu, nu : int, default=10, 10
        Individuals, and children a generation.
    flips : int, optional
        Labels that a mutation changes. None: max(1, n / (t + 1)) in generation t.
    init : {"random", "kmeans"} or (n,) array_like of int, default="random"
        Labels of the first individual: random within the size bounds, k-means with the sizes
        repaired, or given (0 and 1). The other individuals are random.
    classify : bool, default=False
        Before the first generation replace each individual by the signs of its leave-one-out
        predictions, the least certain ones changed until the sizes are within bounds, again and
        again as long as that lowers F.
    distinct : bool, default=False
        Refuse children that equal an individual, up to the exchange of the two clusters.
    polish : bool, default=True
        After the last generation flip single labels and swap pairs of the best individual as long
        as that lowers F. Then no flip within the size bounds helps, and no swap among the 200 n
        most promising pairs (up to n = 800 these are all).
    patience : int, optional
        Generations without progress after which a start ends. None: 10 n, or n for more than one
        child. It ends sooner if no mutation of one label can help any individual.
    max_iter : int, optional
        Generations of a start. None: 1000 n.
    kernel : {"rbf", "linear", "poly", "laplacian", "precomputed"} or callable, default="rbf"
        Kernel; a callable takes (X, Z) and returns their (n_X, n_Z) Gram matrix.
    sigma : float, optional
        Width of the Gaussian exp(-||x - z||^2 / sigma^2) and of the Laplacian
        exp(-||x - z||_1 / sigma). None: the diagonal of the box around the points,
        ``fastmmc.gram.box_diagonal(X)``.
    gamma : float, optional
        1 / sigma^2 (Gaussian), 1 / sigma (Laplacian), or the factor of the polynomial kernel.
    degree : int, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1.0
        Constant of the linear and polynomial kernels.
    kernel_params : dict, optional
        Keyword arguments of a callable kernel.
    balance : float, default=0.03
        Every size stays within balance * n / 2 of its target, 0 <= balance < 1: |e^T y| <= balance
        n for equal targets. For an odd n anything above 0 allows a difference of one.
    target_sizes : (2,) array_like of int, optional
        Sizes asked for, summing to n. None: n / 2 each.
    min_size : int, default=1
        No cluster is ever smaller than this.
    n_init : int, default=10
        Starts; the one with the lowest F wins.
    random_state : int, SeedSequence, Generator, RandomState or None, default=None
        Same value, same labels, whatever ``n_jobs`` is.
    n_jobs : int, optional
        Threads that share the hat matrix. None: 1, or what joblib's configuration says; -1: all.
    max_time : float, optional
        Seconds for the whole call; the best labels found by then are returned.
    callback : callable, optional
        Called with a :class:`~fastmmc.execution.Progress`; a true return value stops the run.
    verbose : int, default=0
        1 shows a progress bar (needs the extra ``progress``).

    Returns
    -------
    RLSResult
        ``labels`` (0 and 1), ``objective`` (F), ``loo_mse``, ``history`` and more. ``n_iter``
        counts generations, ``n_moves`` the children that survived and the moves of the polish.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range, or X is not a finite matrix.
    MemoryError
        If the hat matrix does not fit into free memory.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If the run was stopped before its end.

    Notes
    -----
    O(n^3) for the hat matrix, O(mu n^2) for a start's first individuals, then O(s^2) a child that
    is refused and O(s n) one that is not.

    References
    ----------
    F. Gieseke, T. Pahikkala, O. Kramer, Fast evolutionary maximum margin clustering, ICML 2009,
    Algorithm 1.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.make_nine_gaussians(100, random_state=0)
    >>> res = fastmmc.evo_mmc(X, random_state=0)
    >>> abs(int(res.sizes[0]) - int(res.sizes[1])) <= 0.03 * len(X)
    True
    """
    return solve_evolution(
        X,
        lam=lam,
        mu=mu,
        nu=nu,
        flips=flips,
        init=init,
        classify=classify,
        distinct=distinct,
        polish=polish,
        patience=patience,
        max_iter=max_iter,
        kernel=kernel,
        sigma=sigma,
        gamma=gamma,
        degree=degree,
        coef0=coef0,
        kernel_params=kernel_params,
        rank=None,
        landmarks="uniform",
        rank_tol=1e-6,
        dtype=None,
        balance=balance,
        target_sizes=target_sizes,
        min_size=min_size,
        n_init=n_init,
        random_state=random_state,
        n_jobs=n_jobs,
        max_time=max_time,
        callback=callback,
        verbose=verbose,
        defaults=DEFAULTS,
    )


def fast_evo_mmc(
    X,
    *,
    lam=0.5,
    mu=1,
    nu=1,
    flips=None,
    init="random",
    classify=False,
    distinct=False,
    polish=True,
    patience=None,
    max_iter=None,
    kernel="rbf",
    sigma=None,
    gamma=None,
    degree=3,
    coef0=1.0,
    kernel_params=None,
    rank=0.1,
    landmarks="uniform",
    rank_tol=1e-6,
    dtype=None,
    balance=0.03,
    target_sizes=None,
    min_size=1,
    n_init=10,
    random_state=None,
    n_jobs=None,
    max_time=None,
    callback=None,
    verbose=0,
):
    """Cluster in two by evolutionary MMC on the low-rank hat matrix (FastEvoMMC).

    :func:`evo_mmc` with R = Z Z^T of rank r and one parent and child: F(y) = n - |Z^T y|^2, and a
    child that flips s labels costs O(sr).

    Parameters
    ----------
    X : (n, d) array_like, sparse matrix, DenseFactor or LowRankFactor
        Points (float32 is kept, anything else becomes float64); with ``kernel="precomputed"``
        their (n, n) Gram matrix; or a factor made by :func:`factor`, whose own lam and kernel then
        hold (:func:`factor` has other defaults than this function).
    lam : float, default=0.5
        Regularisation, > 0. The paper's lambda is lam / n: its grid 1/(2n), 1/(200n), 1/(1000n) is
        1/2, 1/200, 1/1000 here.
    mu, nu : int, default=1, 1
        Individuals, and children a generation.
    flips, init, classify, distinct, polish, patience, max_iter
        The search, see :func:`evo_mmc`.
    kernel, sigma, gamma, degree, coef0, kernel_params
        The kernel, see :func:`evo_mmc`.
    rank : None, int, float or "auto", default=0.1
        Number of landmarks, or their share of n; None: dense. "auto" is dense up to 10,000 points
        and 1,000 landmarks above, 3e8 / n of them above 300,000 points.
    landmarks : {"uniform", "k-means++", "pivoted"} or array_like, default="uniform"
        How they are chosen, or their indices, or the (b, d) points themselves. "pivoted" takes the
        worst approximated points until ``rank_tol`` is reached; ``rank`` is then a limit.
    rank_tol : float, default=1e-6
        Share of the trace of K that a pivoted factor may miss.
    dtype : {"float32", "float64"}, optional
        Of the hat matrix; single precision halves its memory and the time of the search. None:
        that of X.
    balance, target_sizes, min_size
        The sizes, see :func:`evo_mmc`.
    n_init, random_state, n_jobs, max_time, callback, verbose
        The run, see :func:`evo_mmc`.

    Returns
    -------
    RLSResult
        ``labels`` (0 and 1), ``objective`` (F), ``loo_mse``, ``history`` and more. ``n_iter``
        counts generations, ``n_moves`` the children that survived and the moves of the polish.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range, or X is not a finite matrix.
    MemoryError
        If the hat matrix, or its factor, does not fit into free memory.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If the run was stopped before its end.

    Notes
    -----
    O(n r^2) for the factor, O(sr) a child, O(nr) memory.

    References
    ----------
    F. Gieseke, T. Pahikkala, O. Kramer, Fast evolutionary maximum margin clustering, ICML 2009,
    Algorithm 1 and Theorem 2.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.make_nine_gaussians(100, random_state=0)
    >>> fastmmc.fast_evo_mmc(X, rank=20, random_state=0).params["rank"] <= 20
    True
    """
    return solve_evolution(
        X,
        lam=lam,
        mu=mu,
        nu=nu,
        flips=flips,
        init=init,
        classify=classify,
        distinct=distinct,
        polish=polish,
        patience=patience,
        max_iter=max_iter,
        kernel=kernel,
        sigma=sigma,
        gamma=gamma,
        degree=degree,
        coef0=coef0,
        kernel_params=kernel_params,
        rank=rank,
        landmarks=landmarks,
        rank_tol=rank_tol,
        dtype=dtype,
        balance=balance,
        target_sizes=target_sizes,
        min_size=min_size,
        n_init=n_init,
        random_state=random_state,
        n_jobs=n_jobs,
        max_time=max_time,
        callback=callback,
        verbose=verbose,
        defaults=FAST_DEFAULTS,
    )


def solve_evolution(
    X,
    *,
    lam,
    kernel,
    sigma,
    gamma,
    degree,
    coef0,
    kernel_params,
    rank,
    landmarks,
    rank_tol,
    dtype,
    defaults,
    n_init,
    random_state,
    n_jobs,
    max_time,
    callback,
    verbose,
    on_start_done=None,
    **search,
):
    """Do what :func:`evo_mmc` and :func:`fast_evo_mmc` do, and report each start that ended.

    Parameters
    ----------
    X, lam, kernel, sigma, gamma, degree, coef0, kernel_params, rank, landmarks, rank_tol, dtype
        See :func:`fast_evo_mmc`.
    defaults : dict
        The default lam and rank of the function called.
    n_init, random_state, n_jobs, max_time, callback, verbose
        See :func:`evo_mmc`.
    on_start_done : callable, optional
        Called with (index, n_init) in the calling thread; a true return value stops the run.
    **search
        The other parameters of :func:`evo_mmc`.

    Returns
    -------
    RLSResult
        The best of the starts.
    """
    control = check_control(time.perf_counter(), n_jobs, max_time, callback, verbose, on_start_done)
    n_init = validation.check_integer("n_init", n_init, least=1)
    source = check_source(
        X,
        lam=lam,
        kernel=kernel,
        sigma=sigma,
        gamma=gamma,
        degree=degree,
        coef0=coef0,
        kernel_params=kernel_params,
        rank=rank,
        landmarks=landmarks,
        rank_tol=rank_tol,
        dtype=dtype,
        defaults=defaults,
    )
    plan = _make_plan(source, **search)
    seed = fixed_seed(random_state)
    with show_progress(control) as control:
        factor = source.make_factor(seed, box_diagonal, control.bar.prepare)
        diag = factor.diagonal()

        def make_search(index):
            return _Evolution(factor, diag, plan, restart_stream(seed, index))

        return best_result(factor, make_search, n_init, control, 2, plan.params)
