"""The descent of many points on the low-rank hat matrix, from labels of their cells."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import fastmmc
from fastmmc.core import execution
from fastmmc.data.sizes import SizeRule, balanced_random_labels, size_rule
from fastmmc.rls import planning
from fastmmc.rls.engine import _loops_groups as loops
from fastmmc.rls.engine import _loops_moves as moves
from fastmmc.rls.engine import coarse, descents, groups
from fastmmc.rls.engine.descents import Descent, Drift
from fastmmc.rls.engine.groups import Groups
from fastmmc.rls.engine.population import hat_of_sample
from fastmmc.rls.planning import count_starts
from tests.rls import naive

N, K = 60, 3


@pytest.fixture
def factor(overlapping):
    return fastmmc.factor(overlapping, lam=0.1, sigma=1.5, rank=12, random_state=0)


@pytest.fixture(autouse=True)
def small_cells(monkeypatch):
    """Let 60 points be enough for a search on cells."""
    monkeypatch.setattr(planning, "DENSE_LIMIT", 30)
    monkeypatch.setattr(coarse, "CELLS", 20)
    monkeypatch.setattr(coarse, "CELLS_PER_CLUSTER", 6)


def start(seed=0, n=N, k=K):
    return balanced_random_labels(n, k, np.random.default_rng(seed), size_rule(n, k), None)


def new_state(Z, labels, masses=None, lower=0, upper=2 * N):
    masses = np.ones(N, dtype=np.int64) if masses is None else masses
    rule = SizeRule(None, np.full(K, lower), np.full(K, upper), True)
    return Groups(Z, masses, np.ones(N, dtype=bool), False).state(labels, rule, False)


def run(factor, **kwargs):
    options = {"method": "shaking", "n_init": 2, "random_state": 0}
    return fastmmc.umc_rls(factor, K, **(options | kwargs), sizes="equal")


def sums(Z, labels):
    return np.stack([Z[labels == h].sum(axis=0) for h in range(K)])


def test_sums_follow_the_moves(factor, rng):
    labels = start().astype(np.uint8)
    Z = np.array(factor.Z)
    W = sums(Z, labels)
    counts = np.bincount(labels, minlength=K)
    for i, d in zip(rng.integers(0, N, 500), rng.integers(0, K, 500), strict=True):
        moves.move(Z, None, labels, counts, W, i, d)
    np.testing.assert_allclose(W, sums(Z, labels), atol=1e-11)
    np.testing.assert_array_equal(counts, np.bincount(labels, minlength=K))


def test_in_single_precision_the_change_of_a_swap_is_that_of_the_way_back(factor, rng):
    # Else two points that fit equally well could be swapped for ever.
    Z = (factor.Z + 0.1 * rng.standard_normal(factor.Z.shape)).astype(np.float32)
    state = new_state(Z, start())
    labels = state.labels

    def change(i, j):
        a, b = np.int64(labels[i]), np.int64(labels[j])
        separate = loops.exact_change(state, i, b) + loops.exact_change(state, j, a)
        return separate + 4.0 * loops.row_dot(Z, i, Z, j)

    for i, j in zip(np.flatnonzero(labels == 0), np.flatnonzero(labels == 1), strict=True):
        there = change(i, j)
        loops.shift_group(state, i, 1)
        loops.shift_group(state, j, 0)
        assert abs(there) > 1e-6
        assert change(i, j) == pytest.approx(-there, abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_the_descent_ends_where_no_move_within_bounds_helps(factor, seed):
    R = factor.Z @ factor.Z.T
    res = run(factor, balance=0.3, n_init=1, random_state=seed)
    assert res.objective == pytest.approx(naive.risk(R, res.labels, K), rel=1e-9)
    assert res.sizes.min() >= 14 and res.sizes.max() <= 26
    change = naive.shifts(R, res.labels, K)
    change[res.sizes[res.labels] <= 14] = 0.0
    change[:, res.sizes >= 26] = 0.0
    assert change.min() > -1e-9
    assert np.diff(res.history[-3:]).max() <= 1e-9


@pytest.mark.parametrize("seed", range(5))
def test_without_bounds_the_descent_keeps_every_size(factor, monkeypatch, seed):
    R = factor.Z @ factor.Z.T
    after = run(factor, n_init=1, random_state=seed)
    monkeypatch.setattr(Descent, "run", lambda self, end_sweep: iter(()))
    before = run(factor, n_init=1, random_state=seed)
    assert after.objective <= before.objective + 1e-9
    np.testing.assert_array_equal(after.sizes, before.sizes)
    # Nobody is left to swap with among those who want into each other's clusters.
    change = naive.shifts(R, after.labels, K)
    change[np.arange(N), after.labels] = np.inf
    best = change.argmin(axis=1)
    for a in range(K):
        for b in range(a + 1, K):
            first = np.flatnonzero((after.labels == a) & (best == b))
            second = np.flatnonzero((after.labels == b) & (best == a))
            if first.size and second.size:
                i = first[change[first, b].argmin()]
                j = second[change[second, a].argmin()]
                if change[i, b] + change[j, a] < 0:
                    assert naive.swap_change(R, after.labels, K, i, j) > -1e-9


@pytest.mark.parametrize("rows", [[0, 1], list(range(0, 60, 2)), list(range(60))])
def test_what_a_sample_tells_is_the_ridge_fit_to_its_points(factor, rows):
    rows = np.array(rows)
    # Of a sample lam is in proportion.
    R, predict = hat_of_sample(replace(factor, lam=0.1 * factor.n / rows.size), rows)
    B = factor.basis
    K_nB, K_BB = factor.kernel.block(factor.X, B), factor.kernel.block(B, B)
    gram = K_nB @ np.linalg.pinv(K_BB) @ K_nB.T
    inner = gram[np.ix_(rows, rows)] + 0.1 * np.eye(rows.size)
    hat = gram[np.ix_(rows, rows)] @ np.linalg.inv(inner)
    np.testing.assert_allclose(R, hat, atol=1e-7)
    E = np.eye(rows.size)[:, :2]
    expected = gram[:, rows] @ np.linalg.solve(inner, E)
    np.testing.assert_allclose(predict(E.T).T, expected, atol=1e-7)
    if rows.size == 60:
        np.testing.assert_allclose(R, factor.Z @ factor.Z.T, atol=1e-9)


@pytest.mark.parametrize(
    "search",
    [
        {},
        {"balance": 0.3},
        {"target_sizes": [10, 20, 30]},
        {"min_size": 15, "keep_best": True},
        {"start_round": 2, "n_rounds": 5},
        {"n_rounds": 1},
    ],
)
def test_sizes_keep_to_the_rule(factor, search):
    res = run(factor, **search)
    assert res.objective == pytest.approx(naive.risk(factor.Z @ factor.Z.T, res.labels, K))
    if "target_sizes" in search:
        np.testing.assert_allclose(res.sizes, [10, 20, 30], atol=1)
    elif "balance" in search:
        assert res.sizes.min() >= 14 and res.sizes.max() <= 26
    else:
        assert res.sizes.min() >= search.get("min_size", 1)
    assert res.converged and res.history[-1] == res.objective


def test_known_labels_stay(factor):
    y = np.full(N, -1)
    y[:24] = np.arange(24) % K
    for how in ({}, {"balance": 0.2}):
        res = run(factor, known_labels=y, **how)
        np.testing.assert_array_equal(res.labels[:24], y[:24])


def test_known_labels_may_fill_a_cluster_beyond_its_share_but_not_its_target(factor):
    y = np.full(N, -1)
    y[:40] = 0
    res = run(factor, known_labels=y)
    assert (res.labels[:40] == 0).all() and res.sizes.min() >= 1
    with pytest.raises(ValueError, match="40 of them in cluster 0 .* at most 20"):
        run(factor, known_labels=y, target_sizes=[20, 20, 20])
    y[40:] = np.arange(20) % 2 + 1
    np.testing.assert_array_equal(run(factor, known_labels=y).labels, y)


def test_threads_and_slices_change_nothing(factor, monkeypatch):
    monkeypatch.setattr(descents, "ROWS", 16)
    for how in ({}, {"balance": 0.2}):
        whole = [run(factor, n_init=n_init, **how) for n_init in (1, 3)]
        threaded = [run(factor, n_init=n_init, n_jobs=4, **how) for n_init in (1, 3)]
        with monkeypatch.context() as patch:
            patch.setattr(execution, "FIRST_BUDGET", 1)
            patch.setattr(execution, "SLICE_SECONDS", 0.0)
            sliced = [run(factor, n_init=n_init, **how) for n_init in (1, 3)]
        for a, b, c in zip(whole, threaded, sliced, strict=True):
            np.testing.assert_array_equal(a.labels, b.labels)
            np.testing.assert_array_equal(a.labels, c.labels)
            np.testing.assert_array_equal(a.history, c.history)


def test_float32_sparse_and_two_clusters(overlapping):
    for X in (overlapping.astype(np.float32), sparse.csr_array(overlapping)):
        res = fastmmc.umc_rls(X, 2, method="shaking", rank=20, random_state=0, n_init=3)
        assert np.ptp(res.sizes) <= 4  # as nearly equal as cells of two points are packed
        assert len(res.objectives) == 3


def test_a_stopped_run_returns_labels(factor):
    with pytest.warns(match="callback"):
        res = run(factor, n_init=10**5, callback=lambda progress: True)
    assert res.labels.shape == (N,) and res.sizes.sum() == N


def test_automatic_number_of_starts():
    def count(n, **told):
        return count_starts(fastmmc.UMCRLS(**told), n)

    assert count(10_000, method="shaking") == 30
    assert count(10_001, method="shaking") == 29
    assert count(100_000, method="steepest") == 3
    assert count(10**6, method="shaking") == 1
    assert count(100) == count(100, method="memetic") == count(100, sizes="free") == 1
    assert count(100, method="memetic", n_init=7) == count(100, n_init=7) == 7
    with pytest.raises(ValueError, match="n_init"):
        fastmmc.umc_rls(np.eye(4), 2, n_init="many", sizes="equal")


def test_a_descent_takes_no_point_of_a_cluster_at_its_lower_bound(factor):
    Z = np.array(factor.Z)
    state, shift, target = new_state(Z, start()), np.empty(N), np.empty(N, dtype=np.int64)
    state.lower[:] = state.counts
    given = state, np.arange(N), Z @ state.sums.T, shift, target
    assert loops.descend_rows(*given) == 0 and shift.min() < -1e-3
    state.lower[:] = state.counts - 1
    assert loops.descend_rows(*given) > 0 and (state.counts >= state.lower).all()


def test_an_exchange_swaps_all_that_want_into_each_others_clusters():
    """Eight points of cluster 0 are at those of cluster 1, and as many the other way round."""
    Z, at = np.eye(K)[np.arange(N) % K], np.arange(N) % K
    labels = at.astype(np.uint8)
    wrong = np.concatenate([np.flatnonzero(at == h)[:8] for h in (0, 1)])
    labels[wrong] = 1 - labels[wrong]
    state, target = new_state(Z, labels), np.where(at == labels, K, at)
    order = np.lexsort((target, labels))
    keys = labels[order].astype(int) * (K + 1) + target[order]
    bounds = np.searchsorted(keys, [a * (K + 1) + b for a in range(K) for b in range(K)] + [N * K])
    assert loops.exchange(state, order, bounds, np.where(target < K, -1.0, 1.0)) == 8
    np.testing.assert_array_equal(state.labels, at)


@pytest.mark.parametrize(("room", "n_swaps"), [(0, 7), (1, 7), (2, 8)])
def test_an_exchange_of_unequal_masses_keeps_the_bounds(room, n_swaps):
    """Eight points each are at the other of two clusters, and the first weighs two more."""
    Z, at = np.eye(K)[np.arange(N) % K], np.arange(N) % K
    labels, masses = at.astype(np.uint8), np.ones(N, dtype=np.int64)
    wrong = [np.flatnonzero(at == h)[:8] for h in (0, 1)]
    labels[np.concatenate(wrong)] = 1 - labels[np.concatenate(wrong)]
    masses[wrong[0][0]] = 3
    counts = np.bincount(labels, masses, K).astype(np.int64)
    state = new_state(Z, labels, masses, counts - room, counts + room)
    target = np.where(at == labels, K, at)
    order = np.lexsort((target, labels))
    keys = labels[order].astype(int) * (K + 1) + target[order]
    bounds = np.searchsorted(keys, [a * (K + 1) + b for a in range(K) for b in range(K)] + [N * K])
    lower, upper = state.lower.copy(), state.upper.copy()
    assert loops.exchange(state, order, bounds, np.where(target < K, -1.0, 1.0)) == n_swaps
    np.testing.assert_array_equal(state.counts, np.bincount(state.labels, masses, K))
    assert (lower <= state.counts).all() and (state.counts <= upper).all()


@pytest.mark.parametrize(("name", "h"), [("lower", 1), ("upper", 0)])
@pytest.mark.parametrize("room", [1, 2])
def test_a_heavy_point_moves_where_its_mass_keeps_the_bounds(name, h, room):
    Z, at = np.eye(K)[np.arange(N) % K], np.arange(N) % K
    labels, masses = at.astype(np.uint8), np.ones(N, dtype=np.int64)
    heavy = np.flatnonzero(at == 0)[0]
    labels[heavy], masses[heavy] = 1, 2
    counts = np.bincount(labels, masses, K).astype(np.int64)
    sizes = {"lower": np.zeros(K, dtype=np.int64), "upper": np.full(K, 2 * N)}
    sizes[name][h] = counts[h] + (room if name == "upper" else -room)
    state = new_state(Z, labels, masses, **sizes)
    shift, target = np.empty(N), np.empty(N, dtype=np.int64)
    made = loops.descend_rows(state, np.arange(N), Z @ state.sums.T, shift, target)
    assert made == (room == 2) and state.labels[heavy] == (0 if room == 2 else 1)
    np.testing.assert_array_equal(state.counts, np.bincount(state.labels, masses, K))


def test_points_that_are_not_due_have_no_move_and_no_swap(factor, rng):
    Z = np.array(factor.Z)
    state = new_state(Z, start())
    labels = state.labels
    drift, everyone, n_passed = Drift(state), np.arange(N), 0
    shift, target = np.full(N, np.nan), np.zeros(N, dtype=np.int64)
    points = everyone
    for _ in range(30):
        before = labels.copy()
        drift.begin_sweep(points)
        loops.descend_rows(state, points, Z[points] @ state.sums.T, shift, target)
        for i in rng.choice(N, 2):
            d = rng.integers(K)
            if d != labels[i]:
                loops.shift_group(state, i, d)
        drift.follow()
        points = drift.due(shift, target, labels != before)
        now = 2.0 * naive.shifts(Z @ Z.T, labels, K)
        now[everyone, labels] = np.inf
        wins = [min(0.0, shift[target == h].min(initial=0.0)) for h in range(K)]
        passed = np.setdiff1d(everyone, points)
        assert (now[passed].min(axis=1) > -np.array(wins)[labels[passed]]).all()
        n_passed += passed.size
    assert n_passed > 300


@pytest.mark.parametrize(
    ("k", "products", "rank"), [(3, 10**6, 12), (6, 10**6, 18), (6, 15_000, 15), (6, 60, 12)]
)
def test_the_rank_that_is_chosen_is_at_least_three_times_k(
    overlapping, monkeypatch, k, products, rank
):
    monkeypatch.setattr(planning, "DENSE_CHOICE", 30)
    monkeypatch.setattr(planning, "CHOICE_RANK", 12)
    monkeypatch.setattr(planning, "MOST_PRODUCTS", products)
    res = fastmmc.umc_rls(overlapping, k, random_state=0)
    assert len(res.model.basis) == rank


@pytest.mark.jit
@pytest.mark.parametrize("sizes", ["equal", "free"])
def test_the_descent_ends_where_a_sweep_gains_little(monkeypatch, rng, sizes):
    X = rng.normal(size=(3200, 2)) + rng.integers(0, 4, (3200, 2)) * 3.0
    found = {}
    for gain in (0.0, 1e-3, 0.5):
        monkeypatch.setattr(groups, "GAIN", gain)
        found[gain] = fastmmc.umc_rls(X, 16, sizes=sizes, n_init=1, random_state=0, rank=60)
    every, some, one = found.values()
    assert every.n_moves > some.n_moves > one.n_moves
    assert every.objective < some.objective < one.objective
    assert some.objective == pytest.approx(every.objective, rel=1e-2)


@pytest.mark.jit
def test_sweeps_see_fewer_points(monkeypatch, rng):
    X = rng.normal(size=(3200, 2)) + rng.integers(0, 4, (3200, 2)) * 3.0
    scored = []
    multiply = Descent._cluster_scores

    def count(self, points):
        scored.append(points.size)
        return multiply(self, points)

    monkeypatch.setattr(Descent, "_cluster_scores", count)
    res = fastmmc.umc_rls(X, 16, n_init=1, random_state=0, rank=60)
    fewer = sum(scored)
    scored.clear()
    monkeypatch.setattr(Drift, "due", lambda self, *_: np.arange(3200))
    every = fastmmc.umc_rls(X, 16, n_init=1, random_state=0, rank=60)
    assert fewer < 0.7 * sum(scored)
    assert res.objective == pytest.approx(every.objective, rel=1e-2)
