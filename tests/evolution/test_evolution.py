"""EvoMMC and FastEvoMMC: the loops against formulas from scratch, the rules they keep."""

import importlib.util
import inspect
import itertools
from pathlib import Path

import numpy as np
import pytest

import fastmmc
from fastmmc.evolution import _loops as evolution
from fastmmc.evolution import search as evolution_search
from fastmmc.evolution.methods import _EvoMMCCall, _make_evolution_plan
from fastmmc.evolution.search import EvolutionSearch
from fastmmc.rls.source import Source
from tests.rls import naive

# Loaded by its path: importing the package of the benchmarks sets variables of the environment.
PAPER = Path(__file__).parents[2] / "asv_benchmarks" / "benchmarks" / "paper_fitness.py"
SPEC = importlib.util.spec_from_file_location("paper_fitness", PAPER)
paper_fitness = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(paper_fitness)
DirectFitness = paper_fitness.DirectFitness
SpectralFitness = paper_fitness.SpectralFitness
SupportVectorFitness = paper_fitness.SupportVectorFitness

FUNCTIONS = [fastmmc.evo_mmc, fastmmc.fast_evo_mmc]


def points(n=24, seed=0):
    return np.random.default_rng(seed).standard_normal((n, 2))


def fitness(R, labels):
    y = np.where(labels == 1, 1.0, -1.0)
    return len(R) - y @ R @ y


def hat(X, lam=0.5, sigma=1.0):
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1) / sigma**2)
    return naive.hat_matrix(K, lam)


def search(factor, seed=0, **options):
    given = {"mu": 3, "nu": 2, "polish": False, "balance": 0.2} | options
    source = Source(factor.X, factor.kernel, factor.lam, None, factor)
    plan = _make_evolution_plan(_EvoMMCCall(X=factor, **given), source)
    return EvolutionSearch(factor, factor.diagonal(), plan, np.random.default_rng(seed))


def factors():
    X = points()
    yield fastmmc.factor(X, lam=0.5, sigma=1.0)
    yield fastmmc.factor(X, lam=0.5, sigma=1.0, rank=7, random_state=0)


@pytest.mark.parametrize("distinct", [False, True])
@pytest.mark.parametrize("flips", [None, 1, 4])
@pytest.mark.parametrize("low_rank", [False, True])
def test_caches_fitness_and_bounds_hold_after_every_slice(low_rank, flips, distinct):
    factor = list(factors())[low_rank]
    R = factor.Z @ factor.Z.T if low_rank else factor.R
    run = search(factor, flips=flips, distinct=distinct)
    best = np.inf
    for _ in range(40):
        ended = run.step(1)
        pop = run._population
        for i in range(3):
            y = pop.y[pop.slot[i]].astype(float)
            assert set(y) <= {-1.0, 1.0} and pop.n_plus[i] == np.sum(y == 1)
            assert run._plan.lower <= pop.n_plus[i] <= run._plan.upper
            assert pop.fitness[i] == pytest.approx(24 - y @ R @ y, rel=1e-9)
            cache = factor.Z.T @ y if low_rank else R @ y
            np.testing.assert_allclose(pop.cache[pop.slot[i]], cache, atol=1e-10)
        assert (np.diff(pop.fitness[:3]) >= 0).all() and pop.fitness[0] <= best
        assert sorted(pop.slot) == list(range(5))
        best = pop.fitness[0]
        if distinct:
            rows = [tuple(pop.y[s] * pop.y[s][0]) for s in pop.slot[:3]]
            assert len(set(rows)) == 3
        if ended:
            break


def random_flips(rng, n, count):
    """Labels, a set of flips as the loops take it, and the child."""
    y = rng.choice([-1, 1], (1, n)).astype(np.int8)
    flips = rng.choice(n, (1, count), replace=False)
    child = y[0].astype(float)
    child[flips[0]] *= -1
    return y, flips, child


@pytest.mark.parametrize("count", [1, 2, 6])
@pytest.mark.parametrize("seed", range(5))
def test_five_routes_to_the_fitness_of_a_child_agree(seed, count):
    """From scratch, Theorem 1, Theorem 2, cached t, cached u, and twenty steps of each."""
    rng = np.random.default_rng(seed)
    X = points(seed=seed)
    dense = fastmmc.factor(X, lam=0.5, sigma=1.0)
    low = fastmmc.factor(X, lam=0.5, sigma=1.0, rank=24, random_state=0)
    R = hat(X)
    diag, work = np.diag(R).copy(), np.empty(low.rank)
    routes = [DirectFitness(dense), SpectralFitness(dense), SpectralFitness(low)]
    y, _, _ = random_flips(rng, 24, 1)
    memories = [route.start(y[0].astype(float))[1] for route in routes]
    t, u = np.zeros((2, 24)), np.zeros((2, low.rank))
    t[0], u[0] = R @ y[0], low.Z.T @ y[0]
    for _ in range(20):
        flips = rng.choice(24, (1, count), replace=False)
        child = y[0].astype(float)
        child[flips[0]] *= -1
        parent, truth = 24 - y[0] @ R @ y[0], 24 - child @ R @ child
        found = []
        for i, route in enumerate(routes):
            value, memories[i] = route.child(y[0].astype(float), memories[i], flips[0])
            found.append(value)
        found.append(parent + evolution.dense_change(R, diag, y, 0, t, flips, 0, count))
        found.append(parent + evolution.low_rank_change(low.Z, y, 0, u, flips, 0, count, work))
        np.testing.assert_allclose(found, truth, rtol=1e-9)
        y = np.vstack([y[:1], y[:1]])
        evolution.update_cache(R, y, 0, t, flips, 0, count, 1)
        evolution.update_cache(low.Z, y, 0, u, flips, 0, count, 1)
        n_plus = evolution.copy_flipped(y, 0, np.sum(y[0] == 1), flips, 0, count, 1)
        assert n_plus == np.sum(child == 1)
        np.testing.assert_array_equal(y[1], child)
        np.testing.assert_allclose(t[1], R @ child, atol=1e-12)
        np.testing.assert_allclose(u[1], low.Z.T @ child, atol=1e-12)
        y, t[0], u[0] = y[1:], t[1], u[1]


def test_one_flip_at_low_rank():
    low = fastmmc.factor(points(60), lam=0.5, sigma=1.0, rank=9, random_state=0)
    y, flips, child = random_flips(np.random.default_rng(0), 60, 1)
    j = flips[0, 0]
    u = (low.Z.T @ y[0])[None]
    change = 4.0 * (y[0, j] * evolution.row_dot(low.Z, j, u, 0) - low.diagonal()[j])
    square = np.sum((low.Z.T @ y[0]) ** 2) - np.sum((low.Z.T @ child) ** 2)
    assert change == pytest.approx(square, rel=1e-9)


def test_theorem_2_at_low_rank():
    X = points(60)
    low = fastmmc.factor(X, lam=0.5, sigma=1.0, rank=9, random_state=0)
    route = SpectralFitness(low)
    y, flips, child = random_flips(np.random.default_rng(0), 60, 5)
    value, v = route.child(y[0].astype(float), route.start(y[0].astype(float))[1], flips[0])
    assert value == pytest.approx(60 - child @ (low.Z @ low.Z.T) @ child, rel=1e-12)
    np.testing.assert_allclose(v, low.Z.T @ child, atol=1e-12)


def test_the_support_vector_fitness_is_a_minimum():
    X = points(40)
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1))
    rng = np.random.default_rng(0)
    y, flips, child = random_flips(rng, 40, 4)
    route = SupportVectorFitness(K, 0.5)
    value, _ = route.child(y[0].astype(float), None, flips[0])
    assert value == route.start(child)[0]
    # No other function does better than the one found, up to LIBSVM's tolerance.
    for scale in (0.0, 0.1, 1.0):
        for _ in range(20):
            a = scale * rng.standard_normal(40)
            f = K @ a + scale * rng.standard_normal()
            other = np.maximum(0, 1 - child * f).sum() + 0.5 * a @ K @ a
            assert value <= other + 1e-2


@pytest.mark.parametrize("flips", [None, 1])
def test_algorithm_1_over_the_papers_routes_makes_the_solvers_steps(flips):
    dense, low_rank = factors()
    for factor, route in (
        (dense, DirectFitness(dense)),
        (dense, SpectralFitness(dense)),
        (low_rank, SpectralFitness(low_rank)),
    ):
        run = search(factor, flips=flips, max_iter=60, nu=1, mu=1)
        pop, plan = run._population, run._plan
        y, fitness, n_iter = paper_fitness.evolve(
            route,
            pop.y[0].astype(float),
            lower=plan.lower,
            upper=plan.upper,
            flips=flips,
            max_iter=60,
            patience=plan.call.patience,
            random=pop.random.copy(),
        )
        while not run.step(2**40):
            pass
        run.finish()
        assert fitness == pytest.approx(run.objective, rel=1e-9)
        np.testing.assert_array_equal(y == 1, run.labels)
        assert n_iter >= run.n_iter


def test_mutations_keep_to_bounds_and_count_swaps_twice():
    rng = np.random.default_rng(0)
    random = np.array([12345], dtype=np.uint64)
    mark = np.zeros(20, dtype=np.int64)
    flips = np.zeros((1, 21), dtype=np.int64)
    for stamp in range(1, 300):
        lower = int(rng.integers(1, 10))
        upper = int(rng.integers(lower, 20))
        n_plus = int(rng.integers(lower, upper + 1))
        wanted = int(rng.integers(1, 21))
        y = np.full((2, 20), -1, dtype=np.int8)
        y[0, rng.choice(20, n_plus, replace=False)] = 1
        n_flips = evolution.mutate(
            y, 0, n_plus, wanted, lower, upper, flips, 0, mark, stamp, random
        )
        chosen = flips[0, :n_flips]
        after = evolution.copy_flipped(y, 0, n_plus, flips, 0, n_flips, 1)
        assert len(set(chosen)) == n_flips <= wanted + 1
        assert lower <= after == np.sum(y[1] == 1) <= upper
        if lower == upper:
            assert n_flips % 2 == 0


def test_a_pick_is_uniform_over_the_points_that_are_left():
    y, mark, random = np.ones((1, 60), np.int8), np.zeros(60, int), np.array([1], dtype=np.uint64)
    mark[:30] = 7
    y[0, ::2] = -1
    counts = np.zeros(60, int)
    for _ in range(1_500):
        counts[evolution.pick(y, 0, 0, mark, 7, random)] += 1
        counts[evolution.pick(y, 0, -1, mark, 7, random)] += 1
    expected = np.where(y[0] < 0, 150, 50) * (mark != 7)
    assert (np.abs(counts - expected) <= 5 * np.sqrt(expected)).all()


@pytest.mark.parametrize("wanted", [-1, 0, 1])
def test_a_pick_finds_the_only_point_there_is(wanted):
    y, mark, random = np.ones((1, 900), np.int8), np.zeros(900, int), np.array([1], dtype=np.uint64)
    mark[np.arange(900) != 400] = 7
    y[0, 400] = wanted or 1
    assert [evolution.pick(y, 0, wanted, mark, 7, random) for _ in range(5)] == [400] * 5
    mark[400] = 7
    assert evolution.pick(y, 0, wanted, mark, 7, random) == -1


@pytest.mark.parametrize("low_rank", [False, True])
def test_a_look_for_swaps_goes_on_where_it_stopped(low_rank):
    """All pairs of different labels, as many a look as allowed, where no swap helps."""
    problem = search(list(factors())[low_rank])._problem._replace(tol=np.inf)
    y, t, order = np.tile([1.0, -1.0], 12), np.zeros(24), np.arange(24)
    for limit, looks in ((1, 144), (10, 15), (144, 1)):
        at, made, found = np.array([0, 1]), 0, -1
        while found < 0 and made < 200:
            found = evolution.improving_swap(problem, y, t, order, 1e9, at, limit)
            made += 1
        assert found == 0 and made == looks


def test_uniform_numbers_look_uniform():
    random = np.array([1], dtype=np.uint64)
    draws = np.array([evolution.uniform(random) for _ in range(20_000)])
    assert 0 <= draws.min() and draws.max() < 1
    counts = np.histogram(draws, 20, (0, 1))[0]
    assert np.sum((counts - 1000) ** 2 / 1000) < 45  # chi squared, 19 degrees, one in a thousand


@pytest.mark.parametrize("function", FUNCTIONS)
def test_small_problems_are_solved(function):
    X = points(10)
    R = hat(X)
    # Of each pair y, -y one will do.
    truth = min(
        fitness(R, np.array((0, *labels)))
        for labels in itertools.product((0, 1), repeat=9)
        if 4 <= sum(labels) <= 6
    )
    options = {} if function is fastmmc.evo_mmc else {"rank": 10}
    res = function(X, sigma=1.0, balance=0.2, n_init=20, random_state=0, **options)
    assert res.objective == pytest.approx(truth, rel=1e-8)
    assert res.objective == pytest.approx(fitness(R, res.labels), rel=1e-8)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("balance", [0.0, 0.03, 0.5])
def test_ends_at_a_local_minimum_within_the_bounds(function, balance):
    X = points(40)
    options = {} if function is fastmmc.evo_mmc else {"rank": 40}
    res = function(X, sigma=1.0, balance=balance, random_state=0, n_init=2, **options)
    R = hat(X)
    assert res.converged and abs(res.sizes[0] - res.sizes[1]) <= balance * 40
    assert res.n_iter < 400 * 10
    unpolished = function(
        X, sigma=1.0, balance=balance, random_state=0, n_init=2, polish=False, **options
    )
    assert res.objective <= unpolished.objective + 1e-9
    most = np.floor(balance * 20 + 1e-9)
    for i in range(40):
        flipped = res.labels.copy()
        flipped[i] = 1 - flipped[i]
        if abs(flipped.sum() - 20) <= most:
            assert fitness(R, flipped) >= res.objective - 1e-9
    for i, j in itertools.product(np.flatnonzero(res.labels), np.flatnonzero(res.labels == 0)):
        swapped = res.labels.copy()
        swapped[[i, j]] = swapped[[j, i]]
        assert fitness(R, swapped) >= res.objective - 1e-9


@pytest.mark.filterwarnings("ignore:stopped before the end")
@pytest.mark.parametrize("function", FUNCTIONS)
def test_polish_alone_ends_at_a_local_minimum(function):
    X = points(40)
    options = {} if function is fastmmc.evo_mmc else {"rank": 40}
    res = function(
        X, sigma=1.0, balance=0.2, random_state=0, n_init=1, max_iter=0, mu=3, nu=2, **options
    )
    R = hat(X)
    assert res.n_iter == 0 and res.n_moves > 0
    assert res.objective == pytest.approx(fitness(R, res.labels), rel=1e-8)
    for i in range(40):
        flipped = res.labels.copy()
        flipped[i] = 1 - flipped[i]
        if abs(flipped.sum() - 20) <= 4:
            assert fitness(R, flipped) >= res.objective - 1e-9


def test_long_patience_of_a_small_problem():
    """Slices that end early used to drive their budget beyond 64 bits."""
    X = points(80)
    res = fastmmc.evo_mmc(X, mu=1, nu=1, flips=2, patience=8000, n_init=1, random_state=0)
    assert res.converged


def test_a_warning_points_at_the_callers_line():
    X = points(40)
    for call in (
        lambda: fastmmc.evo_mmc(X, max_iter=1, random_state=0),
        lambda: fastmmc.EvoMMC(max_iter=1, random_state=0).fit(X),
        lambda: fastmmc.umc_rls(X, 2, max_iter=1, method="steepest", random_state=0),
    ):
        with pytest.warns(match="stopped before the end") as caught:
            call()
        assert caught[0].filename == __file__


def test_the_history_falls():
    res = fastmmc.evo_mmc(points(100), random_state=0, n_init=1)
    assert (np.diff(res.history) <= 1e-9).all()
    assert res.history[-1] == res.objective
    assert (np.diff(res.trace["generations"]) >= 0).all()


@pytest.mark.parametrize("function", FUNCTIONS)
def test_threads_change_nothing(function):
    X = points(80)
    runs = [function(X, random_state=3, n_init=6, n_jobs=jobs) for jobs in (1, 2, 4)]
    for run in runs[1:]:
        np.testing.assert_array_equal(run.labels, runs[0].labels)
        np.testing.assert_array_equal(run.objectives, runs[0].objectives)


@pytest.mark.parametrize("classify", [False, True])
def test_slices_change_nothing(classify):
    whole, sliced = (search(next(factors()), classify=classify) for _ in range(2))
    while not whole.step(2**40):
        pass
    while not sliced.step(7):
        pass
    whole.finish()
    sliced.finish()
    np.testing.assert_array_equal(whole.labels, sliced.labels)
    np.testing.assert_array_equal(whole.history, sliced.history)
    assert whole.n_iter == sliced.n_iter


@pytest.mark.filterwarnings("ignore:stopped before the end")
@pytest.mark.parametrize("init", ["kmeans", "given"])
def test_starts(init):
    X, y = fastmmc.datasets.make_moons(100, noise=0.05, random_state=0)
    start = y if init == "given" else init
    options = {"n_init": 1, "random_state": 0, "balance": 0.1, "polish": False}
    res = fastmmc.fast_evo_mmc(X, init=start, max_iter=0, **options)
    assert res.status.name == "MAX_ITER" and res.n_iter == 0
    if init == "given":
        np.testing.assert_array_equal(res.labels, y)
    else:
        assert 45 <= res.sizes[0] <= 55


@pytest.mark.filterwarnings("ignore:stopped before the end")
def test_the_classification_step_lowers_the_fitness():
    X, _ = fastmmc.datasets.make_moons(100, noise=0.05, random_state=0)
    options = {"init": "kmeans", "n_init": 1, "random_state": 0, "max_iter": 0}
    options |= {"balance": 0.3, "polish": False}
    plain = fastmmc.evo_mmc(X, mu=1, nu=1, **options)
    better = fastmmc.evo_mmc(X, mu=1, nu=1, classify=True, **options)
    assert better.objective <= plain.objective
    assert abs(int(better.sizes[0]) - 50) <= 15


@pytest.mark.parametrize("low_rank", [False, True])
def test_individuals_are_classified_in_slices(low_rank, monkeypatch):
    factor = list(factors())[low_rank]
    split, made = evolution_search.split_by_rank, []
    monkeypatch.setattr(evolution_search, "split_by_rank", lambda *of: made.append(1) or split(*of))
    run = search(factor, mu=20, classify=True)
    assert not run.step(1) and not run.step(1) and len(made) == 1
    run.finish()
    R = factor.Z @ factor.Z.T if low_rank else factor.R
    assert run.objective == pytest.approx(fitness(R, run.labels))
    assert run.n_iter == 0 and 10 <= run.labels.sum() <= 14  # balance=.2


def test_predictions_are_those_of_the_final_labels():
    X, _ = fastmmc.datasets.make_moons(100, noise=0.05, random_state=0)
    for function in FUNCTIONS:
        res = function(X, random_state=0, sigma=1.0)
        assert np.mean(res.predict(X) == res.labels) >= 0.95
        assert res.decision_function(X).shape == (100, 2)


def test_a_factor_is_accepted():
    X = points(60)
    for rank in (None, 20):
        F = fastmmc.factor(X, lam=0.5, sigma=2.0, rank=rank, random_state=0)
        for function in FUNCTIONS:
            result = function(F, random_state=0, n_init=2)
            assert len(result.model.basis) == (60 if rank is None else rank)
            if function is fastmmc.fast_evo_mmc:
                assert result.params["rank"] == rank
    with pytest.raises(ValueError, match="X is a factor"):
        fastmmc.evo_mmc(F, lam=0.1)
    with pytest.raises(ValueError, match="X is a factor"):
        fastmmc.fast_evo_mmc(F, rank=5)


@pytest.mark.parametrize("n", [2, 3, 5, 21])
def test_tiny_and_odd_numbers_of_points(n):
    for function in FUNCTIONS:
        res = function(points(n), random_state=0)
        assert abs(res.sizes[0] - res.sizes[1]) <= 1


def test_float32():
    res = fastmmc.evo_mmc(points(30).astype(np.float32), random_state=0)
    assert res.objective == pytest.approx(
        fastmmc.evo_mmc(points(30), random_state=0).objective, rel=1e-2
    )


def test_target_sizes():
    res = fastmmc.evo_mmc(points(40), target_sizes=[10, 30], balance=0.1, random_state=0)
    assert 8 <= res.sizes[0] <= 12


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"lam": 0}, ValueError, "lam must be greater than 0"),
        ({"mu": 0}, ValueError, "mu must be at least 1"),
        ({"nu": 1.5}, TypeError, "nu must be an integer"),
        ({"flips": 0}, ValueError, "flips must be at least 1"),
        ({"flips": 25}, ValueError, "flips must be at most 24"),
        (
            {"balance": -0.1},
            ValueError,
            "balance must be at least 0 and below 1, or None; got -0.1",
        ),
        ({"balance": 1}, ValueError, "balance must be at least 0 and below 1, or None; got 1"),
        ({"balance": "half"}, TypeError, "balance must be a real number"),
        ({"patience": 0}, ValueError, "patience must be at least 1"),
        ({"max_iter": -1}, ValueError, "max_iter must be at least 0"),
        ({"init": "zeros"}, ValueError, "init must be one of 'random', 'kmeans'"),
        ({"init": np.zeros(24, dtype=int)}, ValueError, "cluster 1 has 0 points"),
        ({"init": np.full(24, 2)}, ValueError, r"labels must be 0\.\.1"),
        ({"init": [0, 1]}, ValueError, "init"),
        ({"polish": 1}, TypeError, "polish must be True or False"),
        ({"distinct": 1}, TypeError, "distinct must be True or False"),
        ({"classify": "yes"}, TypeError, "classify must be True or False"),
        ({"min_size": 13}, ValueError, "min_size must be at most 12"),
        ({"target_sizes": [24]}, ValueError, "target_sizes must be 2 integers"),
        ({"target_sizes": [0, 24], "balance": 0.0}, ValueError, "no sizes of 2 clusters"),
        ({"n_init": 0}, ValueError, "n_init must be at least 1"),
        ({"kernel": "none"}, ValueError, "kernel must be one of"),
    ],
)
def test_bad_parameters(function, options, error, message):
    X = points()
    X.flags.writeable = False
    with pytest.raises(error, match=message):
        function(X, **options)


def test_more_bad_input():
    with pytest.raises(ValueError, match="at least 2 points"):
        fastmmc.evo_mmc(points(1))
    with pytest.raises(ValueError, match="rank must be at most 24"):
        fastmmc.fast_evo_mmc(points(), rank=25)
    with pytest.raises(ValueError, match="rank must be at least 1"):
        fastmmc.fast_evo_mmc(points(), rank=0)
    for bad in (np.full((4, 2), np.nan), np.zeros((0, 2)), np.ones(4)):
        with pytest.raises(ValueError):
            fastmmc.evo_mmc(bad)


@pytest.mark.parametrize("estimator", [fastmmc.EvoMMC, fastmmc.FastEvoMMC])
def test_estimators_are_their_functions(estimator):
    function = fastmmc.evo_mmc if estimator is fastmmc.EvoMMC else fastmmc.fast_evo_mmc
    theirs = inspect.signature(estimator).parameters
    ours = inspect.signature(function).parameters
    assert {name: p.default for name, p in ours.items() if name != "X"} == {
        name: p.default for name, p in theirs.items()
    }
    X = points(60)
    model = estimator(random_state=0, n_init=3).fit(X)
    res = function(X, random_state=0, n_init=3)
    np.testing.assert_array_equal(model.labels_, res.labels)
    np.testing.assert_array_equal(model.predict(X), res.predict(X))
    assert model.objective_ == res.objective and model.score(X) <= 0
