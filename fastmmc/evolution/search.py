"""One restart of EvoMMC: its plan, its population and the phases that improve it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from fastmmc.core.execution import HISTORY_CAPACITY, SlicedSearch
from fastmmc.core.status import Status
from fastmmc.data.sizes import split_by_rank
from fastmmc.evolution import _loops as evolution
from fastmmc.kernels.factors import LowRankFactor, leave_one_out_residuals
from fastmmc.kernels.gram import BLOCK, Kernel, kernel_points, squared_distances
from fastmmc.kernels.kmeans import k_means
from fastmmc.rls.engine import _loops_moves as moves

# Limit on the pairs that the proof of a local optimum looks at, as a multiple of n; pairs a slice.
PAIRS = 200
PAIRS_A_TIME = 10_000

# Flips of the polish between two looks at the clock: 20 ms of 4,000 points with a dense hat matrix,
# 8 ms at rank 140.
FLIPS_A_TIME = 1000


@dataclass(frozen=True, eq=False)
class EvolutionPlan:
    """What the restarts of one call have in common: the call and the points."""

    call: Any  # with nothing left open, but that flips are 0 for fewer and fewer
    n: int
    points: np.ndarray
    lower: int  # bounds for the number of labels +1
    upper: int

    def first_labels(self, rng):
        """Return the labels of the individuals that a start begins with, (mu, n) int8."""
        y, init = np.full((self.call.mu, self.n), -1, dtype=np.int8), self.call.init
        for labels in y:  # all numbers of labels +1 within the bounds are equally likely
            labels[: rng.integers(self.lower, self.upper + 1)] = 1
            rng.shuffle(labels)
        if not isinstance(init, str):
            y[0] = np.where(init == 1, 1, -1)
        elif init == "kmeans":
            # The points nearest to the border move until the sizes fit.
            _, centers = k_means(self.points, 2, int(rng.integers(2**31)))
            points = kernel_points(Kernel("points"), self.points)
            centers = csr_array(centers) if issparse(points) else centers
            distances = np.sqrt(squared_distances(points, centers))
            y[0] = split_by_rank(distances[:, 0] - distances[:, 1], self.lower, self.upper)
        return y


def make_problem(factor, diag, plan):
    """Return what the compiled loops read of the hat matrix and the plan."""
    dense = not isinstance(factor, LowRankFactor)
    return evolution.Problem(
        matrix=factor.R if dense else factor.Z,
        dense=dense,
        diag=diag,
        root=np.sqrt(diag),
        lower=plan.lower,
        upper=plan.upper,
        fixed=plan.call.flips,
        distinct=plan.call.distinct,
        tol=1e-12 * factor.n,
    )


def make_population(problem, y, nu, random):
    """Return the Population of these labels, (mu, n) int8, in the order of their fitness."""
    mu, n = y.shape
    dense = problem.dense
    caches = _cached(problem.matrix, y)
    fitness = _fitness_of(caches, y, dense)
    order = np.argsort(fitness, kind="stable")

    def with_room(values):
        return np.concatenate((values[order], np.zeros((nu, *values.shape[1:]), values.dtype)))

    return evolution.Population(
        y=with_room(y),
        cache=with_room(caches),
        fitness=with_room(fitness),
        n_plus=with_room(np.sum(y == 1, axis=1)),
        slot=np.arange(mu + nu),
        parent=np.zeros(nu, dtype=np.int64),
        anchor=np.zeros((1, 0 if dense else n)),
        anchor_cache=np.zeros(0 if dense else caches.shape[1]),
        # Infinite: nothing is known before the first anchor is taken.
        slack=np.full(mu + nu, 0.0 if dense else np.inf),
        random=random,
        pos=np.zeros(evolution.N_POS, dtype=np.int64),
        history=np.empty((HISTORY_CAPACITY, 2)),
    )


def _cached(matrix, y):
    """Return t = R y, or u = Z^T y, for the rows of y, summed in double precision."""
    total = np.zeros((len(y), matrix.shape[1]))
    for start in range(0, len(matrix), BLOCK):
        rows = slice(start, start + BLOCK)
        total += y[:, rows].astype(np.float64) @ matrix[rows].astype(np.float64, copy=False)
    return total


def _fitness_of(caches, y, dense):
    """Return F(y) = n - y^T R y for the rows of y."""
    return y.shape[1] - np.einsum("ij,ij->i", caches, y if dense else caches)


class EvolutionSearch(SlicedSearch):
    """One restart: first individuals, generations, then the polish of the best individual."""

    def __init__(self, factor, diag, plan, rng):
        super().__init__()
        self._factor, self._plan = factor, plan
        self._problem = make_problem(factor, diag, plan)
        self._next_proof = plan.n
        self._first = plan.first_labels(rng)
        self._random = rng.integers(1, 2**63, size=1, dtype=np.uint64)
        self._population = None
        if not plan.call.classify:
            self._begin()

    def _begin(self):
        """Make the population of the first individuals."""
        nu = self._plan.call.nu
        self._population = make_population(self._problem, self._first, nu, self._random)
        self._note()

    def _run(self):
        """Classify the first individuals, if asked for, make generations, then polish."""
        if self._plan.call.classify:
            for y in self._first:
                yield from self._classify(y)
            self._begin()
        while not (yield from self._search()):
            yield self._budget
        self._note()
        while self._plan.call.polish:
            sets = yield from self._improvement(0, swaps=True)
            if sets is None or not len(sets):
                return
            self._flip_best(sets)

    def _search(self):
        """Make a slice of generations; return whether it was the last."""
        n, call, pop = self._plan.n, self._plan.call, self._population
        patience = min(call.patience, self._next_proof)
        ended = evolution.evolve(self._problem, pop, patience, call.max_iter, self._budget)
        self._history.drain(pop.history, pop.pos, moves.RECORDS)
        stale, generation = int(pop.pos[evolution.STALE]), int(pop.pos[evolution.GENERATION])
        done = max(stale / call.patience, generation / max(1, call.max_iter))
        self._fraction = min(0.95, done)
        self._next_proof = n * (stale // n + 1)
        if not ended:
            return False
        if generation >= call.max_iter:
            self.status = Status.MAX_ITER
            return True
        return stale >= call.patience or (yield from self._is_local_optimum())

    def _flip_best(self, sets):
        """Flip sets of labels of the best individual, (m, s), in turn where that still lowers F."""
        problem, pop, own = self._problem, self._population, self._population.slot[0]
        y, cache = pop.y[own], pop.cache[own]
        for points in sets:
            labels, rows = y[points], problem.matrix[points].astype(np.float64)
            w = labels @ rows
            inner = w[points] @ labels if problem.dense else w @ w
            change = 4.0 * ((labels @ cache[points] if problem.dense else w @ cache) - inner)
            n_plus = pop.n_plus[0] - labels.sum(dtype=np.int64)
            # Half of the tolerance is far more than what rounding makes of the change.
            if change < -0.5 * problem.tol and problem.lower <= n_plus <= problem.upper:
                y[points] = -labels
                cache -= 2.0 * w
                pop.n_plus[0] = n_plus
                pop.pos[moves.MOVES] += 1
        pop.fitness[0] = y.size - cache @ (y if problem.dense else cache)

    def finish(self):
        """Take the final figures, from scratch, and let the work space go."""
        if self._population is None:  # stopped while individuals were classified
            self._begin()
        pop = self._population
        y = pop.y[pop.slot[0]]
        self.labels = (y == 1).astype(np.int64)
        self.objective, _ = self._evaluate(y)
        self.n_iter = int(pop.pos[evolution.GENERATION])
        self.n_moves = int(pop.pos[moves.MOVES])
        self._history.note(self.n_iter, self.objective)
        self._end_history("generations")
        self._first = self._population = self._work = None

    def _evaluate(self, y):
        """Return F(y) = n - y^T R y, and R y."""
        y = y[None].astype(np.float64)
        cache = _cached(self._problem.matrix, y)
        return float(_fitness_of(cache, y, self._problem.dense)[0]), self._smoothed(cache[0])

    def _smoothed(self, cache):
        """Return R y from the cache of y."""
        if self._problem.dense:
            return cache
        return self._factor._cluster_scores(cache[None])[0]

    def _classify(self, y):
        """Make labels the signs of their leave-one-out predictions while that lowers F."""
        value, predictions = self._evaluate(y)
        while True:
            yield self._problem.matrix.size
            residuals = leave_one_out_residuals(y, predictions, self._problem.diag)
            new = split_by_rank(y - residuals, self._plan.lower, self._plan.upper)
            new_value, predictions = self._evaluate(new)
            if new_value >= value - self._problem.tol:
                return
            y[:], value = new, new_value

    def _is_local_optimum(self):
        """Tell whether no child can be better than its parent, for single flips from now on."""
        plan, pop = self._plan, self._population
        flips, generation = plan.call.flips, int(pop.pos[evolution.GENERATION])
        single = flips == 1 or (flips == 0 and plan.n < 2 * (generation + 2))
        if not single:
            return False
        for i in range(plan.call.mu):
            # Mutations swap only where a flip would break a bound.
            swaps = not plan.lower < pop.n_plus[i] < plan.upper
            sets = yield from self._improvement(i, swaps)
            if sets is None or len(sets):
                return False
        return True

    def _improvement(self, individual, swaps):
        """Return single points, or pairs, whose flips each lower F, (m, s); None if unknown."""
        problem, pop = self._problem, self._population
        slot = pop.slot[individual]
        y, t = pop.y[slot], self._smoothed(pop.cache[slot])
        yield problem.matrix.shape[1] if problem.dense else problem.matrix.size // 8
        # A flip changes F by four times its shift.
        shifts = y * t - problem.diag
        n_plus = pop.n_plus[individual] - y
        fits = (problem.lower <= n_plus) & (n_plus <= problem.upper)
        flips = np.flatnonzero(fits & (4.0 * shifts < -problem.tol))
        if flips.size or not swaps:
            return flips[:FLIPS_A_TIME, None]
        order = np.argsort(shifts, kind="stable")
        largest = problem.diag.max()
        at = np.array([0, 1])
        price = 1 if problem.dense else 1 + problem.matrix.shape[1] // 8
        for _ in range(0, PAIRS * y.size, PAIRS_A_TIME):
            found = evolution.improving_swap(problem, y, shifts, order, largest, at, PAIRS_A_TIME)
            if found == 1:
                return order[at][None]
            if found == 0:
                return flips[:, None]
            yield price * PAIRS_A_TIME
        return None

    def _note(self):
        """Note where the search stands."""
        pop = self._population
        self._history.note(pop.pos[evolution.GENERATION], pop.fitness[0])
