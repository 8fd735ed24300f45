"""Free sizes: the cost and its caches, the descent, Ward's starts, bounds, and known answers."""

import warnings
from itertools import product

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import fastmmc
from fastmmc.execution import Status
from fastmmc.rls import _loops_free as loops
from fastmmc.rls import _loops_moves as moves
from fastmmc.rls import free
from fastmmc.rls.bound import free_bound
from fastmmc.sizes import SizeRule, size_rule
from tests.rls import naive

CENTERS = np.array([[0.0, 0.0], [12.0, 0.0], [0.0, 12.0]])


def blobs(sizes, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(sizes)), sizes)
    return CENTERS[y] + rng.standard_normal((len(y), 2)), y


def hat(n, seed=0, lam=0.25):
    X = np.random.default_rng(seed).standard_normal((n, 2))
    return fastmmc.factor(X, lam=lam, rank=None).R


def problem(R):
    return free.Groups.of_points(R)


def quiet(X, k, **params):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return fastmmc.umc_rls(X, k, sizes="free", random_state=0, **params)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_caches_equal_recomputed_after_a_descent(dtype):
    R = hat(80).astype(dtype)
    points, rule = problem(R), size_rule(80, 4)
    labels = np.random.default_rng(1).integers(0, 4, 80)
    state = points.state(labels, rule)
    assert free.cost_of(state) == pytest.approx(naive.free_cost(R, labels, 4), rel=1e-6)
    free.settle(state)
    fresh = points.state(state.labels.astype(np.int64), rule)
    np.testing.assert_allclose(state.sums, fresh.sums, atol=1e-9)
    np.testing.assert_allclose(state.within, fresh.within, atol=1e-9)
    np.testing.assert_array_equal(state.counts, fresh.counts)


@pytest.mark.parametrize("seed", range(4))
def test_the_descent_is_the_naive_one(seed):
    R = hat(30, seed)
    rule = SizeRule(None, np.array([3, 1, 0]), np.array([12, 30, 20]), True)
    labels = np.random.default_rng(seed).permutation(np.arange(30) % 3)
    state = problem(R).state(labels, rule)
    while not loops.descend(state, 7):  # in slices
        pass
    wanted = naive.free_descent(R, labels, 3, rule.lower, rule.upper)
    np.testing.assert_array_equal(state.labels, wanted)


def test_groups_move_as_their_points_do():
    R = hat(40)
    members = np.random.default_rng(0).integers(0, 12, 40)
    members = np.unique(members, return_inverse=True)[1]
    groups = problem(R).merge(members)
    labels = np.random.default_rng(1).integers(0, 3, groups.n)
    state = groups.state(labels, size_rule(40, 3))
    assert free.cost_of(state) == pytest.approx(naive.free_cost(R, labels[members], 3))
    free.settle(state)
    assert state.pos[loops.MOVES] > 0
    assert free.cost_of(state) == pytest.approx(naive.free_cost(R, state.labels[members], 3))
    np.testing.assert_array_equal(state.counts, np.bincount(state.labels[members], minlength=3))


@pytest.mark.parametrize("seed", range(6))
def test_swaps_are_the_naive_ones(seed):
    R = hat(40, seed)
    labels = np.random.default_rng(seed).permutation(np.repeat(np.arange(4), [15, 12, 9, 4]))
    points = problem(R)
    state = points.state(labels, size_rule(40, 5, min_size=0))  # the last cluster is empty
    while not loops.swap(state, points.least, 100):  # in slices
        pass
    np.testing.assert_array_equal(state.labels, naive.free_swaps(R, labels, 5))
    np.testing.assert_array_equal(np.bincount(state.labels), [15, 12, 9, 4])
    assert free.cost_of(state) == pytest.approx(naive.free_cost(R, state.labels, 5))
    assert state.pos[loops.MOVES] > 0


def test_swaps_of_known_labels_are_left_out():
    R = hat(40)
    movable = np.arange(40) % 3 > 0
    points = free.Groups.of_points(R, movable)
    labels = np.arange(40) % 4
    state = points.state(labels, size_rule(40, 4, balance=0))
    before = free.cost_of(state)
    while not loops.swap(state, points.least, 100):
        pass
    np.testing.assert_array_equal(state.labels[~movable], labels[~movable])
    for i, j in product(np.flatnonzero(movable), repeat=2):
        swapped = state.labels.astype(int)
        swapped[[i, j]] = swapped[[j, i]]
        assert naive.free_cost(R, swapped, 4) >= free.cost_of(state) - 1e-11
    assert free.cost_of(state) < before


def test_ward_merges_what_adds_least():
    R = hat(16)
    for k in (2, 3, 7, 16):
        wanted = naive.cheapest_merges(R, k)
        assert adjusted_rand_score(wanted, problem(R).cut(k)) == 1.0


def test_blocks_of_rows_descend_on_the_same_cost():
    X, _ = blobs([40, 25, 15])
    F = fastmmc.factor(X, rank=30, random_state=0)
    R = F.Z @ F.Z.T
    rule, labels = size_rule(80, 3), np.random.default_rng(0).integers(0, 3, 80)
    state = (
        problem(R)
        .state(labels, rule)
        ._replace(matrix=F.Z, sums=np.empty((3, F.rank)), diag=F.diagonal())
    )
    moves.build_sums(F.Z, state.labels, state.sums)
    while loops.descend_block(state, 0, F.Z @ state.sums.T):
        pass
    assert free.cost_of(state) == pytest.approx(naive.free_cost(R, state.labels, 3))
    np.testing.assert_allclose(state.within, np.sum(state.sums**2, axis=1), atol=1e-10)
    ended = naive.free_descent(R, state.labels.astype(int), 3, rule.lower, rule.upper, 1e-11)
    np.testing.assert_array_equal(ended, state.labels)


def test_no_labelling_is_below_the_bound():
    X = np.random.default_rng(0).standard_normal((9, 2))
    F = fastmmc.factor(X, rank=None)
    least = min(naive.free_cost(F.R, np.array(one), 3) for one in product(range(3), repeat=9))
    assert 0 < free_bound(F, 3) <= least + 1e-12
    res = quiet(F, 3, bound=True, min_size=0)
    assert res.objective == pytest.approx(least)
    assert res.bound == pytest.approx(free_bound(F, 3))


@pytest.mark.jit
@pytest.mark.parametrize("form", [{}, {"rank": 100}, {"dtype": "float32"}])
def test_blobs_of_very_unequal_sizes(form):
    X, y = blobs([900, 80, 20] if "dtype" not in form else [240, 40, 15])
    res = quiet(X, 3, **form)
    assert adjusted_rand_score(y, res.labels) > 0.98
    assert res.converged
    assert res.params["sizes"] == "free"
    assert np.mean(res.predict(X) == res.labels) > 0.99
    if "rank" not in form:
        R = fastmmc.factor(X, rank=None).R
        assert res.objective == pytest.approx(naive.free_cost(R, res.labels, 3), rel=1e-5)
    assert res.history[-1] == pytest.approx(res.objective)


def test_given_labels_are_improved():
    X, y = blobs([120, 40, 15])
    F = fastmmc.factor(X, rank=None)
    for method in ("steepest", "shaking"):
        res = quiet(F, 3, init=y, method=method)
        assert res.objective <= naive.free_cost(F.R, y, 3) + 1e-12
        assert adjusted_rand_score(y, res.labels) == 1.0


def test_the_low_rank_form_is_the_dense_one_of_its_product():
    X, _ = blobs([60, 30, 20])
    F = fastmmc.factor(X, rank=40, random_state=0)
    R = F.Z @ F.Z.T
    res = quiet(F, 4)
    assert res.objective == pytest.approx(naive.free_cost(R, res.labels, 4))
    lower = free_bound(F, 4)
    assert lower == pytest.approx(4 - np.linalg.eigvalsh(R)[-4:].sum())
    assert lower <= res.objective


@pytest.mark.jit
@pytest.mark.parametrize("rank", [None, 60])
@pytest.mark.usefixtures("few_cells")
def test_cells_come_before_all_points(rank):
    X, y = blobs([500, 120, 60])
    known = np.where(np.arange(len(y)) % 40 == 0, (y + 1) % 3, -1)
    for params in ({}, {"known_labels": known}, {"init": y}, {"init": "kmeans"}):
        res = quiet(X, 3, rank=rank, **params)
        assert adjusted_rand_score(y, res.labels) > 0.95
        if "known_labels" in params:
            np.testing.assert_array_equal(res.labels[known >= 0], known[known >= 0])
    sizes = quiet(X, 3, rank=rank, balance=0.1).sizes
    assert np.all(np.abs(sizes - len(y) / 3) <= 0.1 * len(y) / 3 + 1)
    precomputed = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 9.0)
    res = quiet(precomputed, 3, kernel="precomputed", rank=rank)
    assert adjusted_rand_score(y, res.labels) > 0.95


@pytest.mark.jit
def test_sizes_are_kept():
    X, y = blobs([90, 40, 20])
    np.testing.assert_array_equal(quiet(X, 3, target_sizes=[20, 90, 40]).sizes, [20, 90, 40])
    assert adjusted_rand_score(y, quiet(X, 3, target_sizes=[20, 90, 40]).labels) == 1.0
    assert np.ptp(quiet(X, 4, balance=0).sizes) <= 1
    assert quiet(X, 3, min_size=30).sizes.min() >= 30
    assert np.all(np.abs(quiet(X, 3, balance=0.3).sizes - 50) <= 15)


def test_known_labels_are_kept_and_name_the_clusters():
    X, y = blobs([90, 40, 20])
    names = np.array([2, 0, 1])[y]
    known = np.where(np.arange(len(y)) % 10 == 0, names, -1)
    np.testing.assert_array_equal(quiet(X, 3, known_labels=known).labels, names)
    wrong = known.copy()
    wrong[0] = 0
    assert quiet(X, 3, known_labels=wrong).labels[0] == 0


def test_same_labels_for_any_number_of_threads():
    X, _ = blobs([60, 30, 20], seed=3)
    one, two = (quiet(X, 5, n_init=3, n_jobs=n_jobs) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.labels, two.labels)
    np.testing.assert_array_equal(one.objectives, two.objectives)


@pytest.mark.jit
def test_stops():
    X, _ = blobs([900, 80, 20])
    with pytest.warns(ConvergenceWarning, match="stopped"):
        res = fastmmc.umc_rls(X, 3, sizes="free", max_time=1e-3, random_state=0)
    assert res.status == Status.TIME_LIMIT
    with pytest.warns(ConvergenceWarning, match="stopped"):
        res = fastmmc.umc_rls(X, 3, sizes="free", callback=lambda progress: True, random_state=0)
    assert res.status == Status.CALLBACK
    with pytest.warns(ConvergenceWarning, match="stopped"):
        res = fastmmc.umc_rls(X, 3, sizes="free", max_iter=2, random_state=0)
    assert (res.status, res.n_iter) == (Status.MAX_ITER, 2)


def test_degenerate_input():
    X = np.random.default_rng(0).standard_normal((7, 2))
    assert quiet(X, 1).objective == pytest.approx(1 - fastmmc.factor(X, rank=None).R.sum() / 7)
    np.testing.assert_array_equal(np.sort(quiet(X, 7).labels), np.arange(7))
    same = quiet(np.zeros((6, 2)), 3)
    assert same.sizes.min() >= 1
    assert quiet(X[:1], 1).labels.tolist() == [0]


def test_path_and_estimator():
    X, y = blobs([90, 40, 20])
    path = fastmmc.umc_rls_path(X, 3, [0.1, 0.5], sizes="free", random_state=0)
    assert [adjusted_rand_score(y, res.labels) for res in path] == [1.0, 1.0]
    model = fastmmc.UMCRLS(3, sizes="free", random_state=0).fit(X)
    np.testing.assert_array_equal(model.labels_, quiet(X, 3).labels)
