"""The compiled loops against their naive twins and against certificates of their own."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import fastmmc
from fastmmc.core import execution
from fastmmc.core.jit import read_only
from fastmmc.data.sizes import balanced_random_labels, proportional_sizes
from fastmmc.rls import _loops_claims as claims
from fastmmc.rls.engine import _loops_moves as moves
from tests.rls import naive


def new_state(R, labels, k):
    """Return a state on the matrix R."""
    n, R = len(R), read_only(R)
    labels = labels.astype(np.uint8)
    U = np.empty((k, n))
    moves.build_sums(R, labels, U)
    state = claims.State(
        matrix=R,
        row=None,
        labels=labels,
        masses=np.ones(n, dtype=np.int64),
        counts=np.bincount(labels, minlength=k).astype(np.int64),
        sums=U,
        total=U.sum(axis=0),
        diag=read_only(np.diag(R).astype(np.float64)),
        movable=np.ones(n, dtype=np.bool_),
        lower=np.ones(k, dtype=np.int64),
        upper=np.full(k, n),
        tol=1e-12 * n,
        pos=np.zeros(claims.N_POS, dtype=np.int64),
        value=np.full(claims.N_VALUES, np.inf),
        best_labels=np.empty(0, dtype=np.uint8),
        score=np.empty(n),
        history=np.empty((4096, 2)),
        stride=10,
    )
    state.pos[claims.REMAINING] = -1
    state.value[claims.OBJECTIVE] = claims.risk(labels, U, state.total)
    return state


def one_start(X, k, **kwargs):
    options = {"method": "shaking", "n_init": 1, "random_state": 0, "sigma": 1.5, "lam": 0.1}
    return fastmmc.umc_rls(X, k, **(options | kwargs), sizes="equal")


def first_stream(seed):
    return execution.restart_stream(execution.fixed_seed(seed), 0)


def start_labels(n, k, seed=0):
    """The labels that the first start of a run with this seed begins with."""
    return balanced_random_labels(n, k, first_stream(seed))


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_risk_from_cached_sums_is_the_formula(hat, rng, k):
    labels = rng.integers(0, k, len(hat))
    state = new_state(hat, labels, k)
    assert state.value[claims.OBJECTIVE] == pytest.approx(naive.risk(hat, labels, k), rel=1e-10)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_caches_equal_recomputation_after_random_moves(hat, rng, k):
    state = new_state(hat, rng.integers(0, k, len(hat)), k)
    objective = state.value[claims.OBJECTIVE]
    for _ in range(200):
        j, d = rng.integers(len(hat)), rng.integers(k)
        o = state.labels[j]
        if o == d:
            continue
        objective += 8.0 * (state.sums[o, j] - state.sums[d, j] - state.diag[j])
        moves.move(hat, None, state.labels, state.counts, state.sums, j, d)
    E = (state.labels[:, None] == np.arange(k)).astype(float)
    np.testing.assert_allclose(state.sums, (hat @ E).T, atol=1e-12)
    np.testing.assert_array_equal(state.counts, E.sum(axis=0))
    np.testing.assert_allclose(state.sums.sum(axis=0), hat.sum(axis=1), atol=1e-12)
    assert objective == pytest.approx(naive.risk(hat, state.labels, k), rel=1e-10)


def test_shift_formula_is_the_change_of_the_risk(hat, rng):
    labels = rng.integers(0, 4, len(hat))
    before = naive.risk(hat, labels, 4)
    predicted = 8.0 * naive.shifts(hat, labels, 4)
    for j in range(0, len(hat), 7):
        for d in range(4):
            moved = labels.copy()
            moved[j] = d
            assert naive.risk(hat, moved, 4) - before == pytest.approx(predicted[j, d], abs=1e-9)


@pytest.mark.parametrize("size", [1, 5, 63, 64, 65, 130, 2047, 2048, 2049, 5000])
def test_argleast_finds_the_first_least(size, rng):
    values = rng.integers(0, max(2, size // 3), size).astype(np.float64)
    assert claims.argleast(values, np.empty(claims.LANES)) == np.argmin(values)
    values[:] = np.inf
    assert claims.argleast(values, np.empty(claims.LANES)) == -1
    values[-1] = 3.0
    assert claims.argleast(values, np.empty(claims.LANES)) == size - 1


@pytest.mark.parametrize("eager", [True, False])
@pytest.mark.parametrize("n", [60, moves.CHUNK + 77])
def test_claim_pass_updates_scores_and_finds_the_cheapest(n, eager, rng):
    if n > 100 and not hasattr(claims.claim_pass, "py_func"):
        pytest.skip("too slow without the compiler")
    row, left, gained = rng.standard_normal((3, n))
    labels = rng.integers(0, 3, n).astype(np.uint8)
    score = rng.standard_normal(n)
    score[labels == 2] = np.inf
    expected = score - row - np.where(labels == 1, row, 0.0)
    after = left - row, gained + row if eager else gained.copy()
    found = claims.claim_pass(
        row, left, gained, score, labels, np.uint8(1), eager, np.empty(claims.LANES)
    )
    np.testing.assert_allclose(score, expected, rtol=1e-14)
    np.testing.assert_array_equal(left, after[0])
    np.testing.assert_array_equal(gained, after[1])
    assert found == np.argmin(score)


@pytest.mark.parametrize("k", [2, 3, 4, 7])
@pytest.mark.parametrize("start_round", [0, 1, 3])
def test_shaking_equals_its_naive_twin(overlapping, hat, k, start_round):
    result = one_start(overlapping, k, start_round=start_round, balance=k)
    expected = naive.shake(hat, start_labels(60, k), k, start_round=start_round)
    np.testing.assert_array_equal(result.labels, expected)


def test_shaking_with_target_sizes_equals_its_naive_twin(overlapping, hat):
    targets = np.array([10, 35, 15])
    labels = np.repeat(np.arange(3), targets)
    result = one_start(overlapping, 3, init=labels, target_sizes=targets, balance=3.0)
    expected = naive.shake(hat, labels, 3, targets=targets)
    np.testing.assert_array_equal(result.labels, expected)


@pytest.mark.parametrize("k", [2, 4])
def test_steepest_equals_its_naive_twin(overlapping, hat, k):
    result = one_start(overlapping, k, method="steepest")
    np.testing.assert_array_equal(result.labels, naive.steepest(hat, start_labels(60, k), k))


@pytest.mark.parametrize("k", [2, 4])
def test_stochastic_equals_its_naive_twin(overlapping, hat, k):
    result = one_start(overlapping, k, method="stochastic")
    stream = first_stream(0)
    labels = balanced_random_labels(60, k, stream)
    expected = naive.stochastic(hat, labels, k, stream.permutation(60))
    np.testing.assert_array_equal(result.labels, expected)


@pytest.mark.parametrize("sweeps", [1, 2])
def test_a_stochastic_descent_makes_no_more_sweeps_than_allowed(sweeps, hat, rng):
    state = new_state(hat, rng.integers(0, 3, len(hat)), 3)
    assert claims.descend_stochastic(state, rng.permutation(len(hat)), sweeps, 10**9)
    assert state.pos[claims.CLEAN] < len(hat)  # it would have gone on
    assert state.pos[claims.ROUND] == sweeps and state.pos[claims.CLUSTER] == 0


def test_the_best_move_of_a_point_may_fill_a_cluster_to_its_bound(hat, rng):
    labels = rng.permutation(len(hat)) % 3
    state = new_state(hat, labels, 3)
    given = state.labels, state.counts, state.sums, state.diag
    shifts = naive.shifts(hat, labels, 3)
    for j, target in enumerate((labels + 1) % 3):
        upper = state.counts + (np.arange(3) == target)
        shift, found = claims.best_target(*given, j, upper, 1)
        assert found == target and shift == pytest.approx(shifts[j, target])
        assert claims.best_target(*given, j, state.counts, 1) == (np.inf, -1)


@pytest.mark.parametrize("method", ["steepest", "stochastic"])
def test_descent_is_monotone_and_ends_at_a_local_minimum(overlapping, hat, method):
    result = one_start(overlapping, 4, method=method)
    assert (np.diff(result.history) <= 0).all()
    shifts = naive.shifts(hat, result.labels, 4)
    single = result.sizes[result.labels] == 1
    assert shifts[~single].min() > -1e-9


@pytest.mark.parametrize("method", ["shaking", "steepest", "stochastic"])
def test_objective_is_the_risk_of_the_labels(overlapping, hat, method):
    result = one_start(overlapping, 4, method=method)
    assert result.objective == pytest.approx(naive.risk(hat, result.labels, 4), rel=1e-10)
    assert result.history[-1] == result.objective
    start = start_labels(60, 4)
    assert result.history[0] == pytest.approx(naive.risk(hat, start, 4), rel=1e-10)


def test_risk_of_two_clusters_is_twice_the_binary_one(hat, rng):
    y = rng.choice([-1.0, 1.0], len(hat))
    labels = (y > 0).astype(int)
    assert naive.risk(hat, labels, 2) == pytest.approx(2 * (len(hat) - y @ hat @ y))


def test_risk_does_not_depend_on_the_names_of_the_clusters(hat, rng):
    labels = rng.integers(0, 4, len(hat))
    renamed = np.array([2, 0, 3, 1])[labels]
    assert naive.risk(hat, renamed, 4) == pytest.approx(naive.risk(hat, labels, 4))


def test_polish_ends_where_no_swap_helps(overlapping, hat):
    rough = one_start(overlapping, 3, n_rounds=2)
    result = one_start(overlapping, 3, n_rounds=2, polish=True)
    assert result.objective < rough.objective
    np.testing.assert_array_equal(result.sizes, rough.sizes)
    for i in range(60):
        for j in range(i):
            if result.labels[i] != result.labels[j]:
                assert naive.swap_change(hat, result.labels, 3, i, j) > -1e-9


def test_polish_within_a_balance_also_moves(overlapping, hat):
    result = one_start(overlapping, 3, polish=True, balance=0.2)
    assert result.sizes.min() >= 16 and result.sizes.max() <= 24
    shifts = naive.shifts(hat, result.labels, 3)
    open_to = (result.sizes[result.labels] > 16)[:, None] & (result.sizes < 24)
    assert shifts[open_to].min() > -1e-9


def test_keep_best_returns_the_best_round_end(overlapping):
    # Bounds that leave the sizes of early rounds as they are.
    wide = {"balance": 3.0}
    plain = one_start(overlapping, 4, **wide)
    best = one_start(overlapping, 4, keep_best=True, **wide)
    ends = [one_start(overlapping, 4, n_rounds=i + 1, **wide).objective for i in range(21)]
    assert best.objective == pytest.approx(min(ends), rel=1e-12)
    assert best.objective <= plain.objective


def test_first_turn_takes_two_shares(overlapping):
    """n=150, k=3: cluster 0 holds exactly 100 points after its first turn."""
    X = np.random.default_rng(3).standard_normal((150, 2))
    R = fastmmc.factor(X, sigma=1.0).R
    state = new_state(R, np.arange(150) % 3, 3)
    quota = fastmmc.data.sizes.shaking_quota(150, 3, 21)
    while state.pos[claims.CLUSTER] == 0:
        claims.shake(state, quota, np.ones_like(quota), 1)
    assert state.counts[0] == 100


def test_two_clusters_forget_their_start(overlapping):
    first = one_start(overlapping, 2)
    for seed in range(1, 4):
        np.testing.assert_array_equal(
            one_start(overlapping, 2, random_state=seed).labels, first.labels
        )
    given = one_start(overlapping, 2, init=np.arange(60) % 2, n_init=30)
    np.testing.assert_array_equal(given.labels, first.labels)
    assert len(given.objectives) == 1


def test_further_starts_of_two_clusters_skip_the_round_that_forgets(overlapping, hat):
    result = one_start(overlapping, 2, n_init=8)
    stream = execution.restart_stream(execution.fixed_seed(0), 3)
    labels = naive.shake(hat, balanced_random_labels(60, 2, stream), 2, start_round=1)
    assert result.objectives[3] == pytest.approx(naive.risk(hat, labels, 2), rel=1e-10)
    assert result.objectives[0] == one_start(overlapping, 2).objective
    assert len(one_start(overlapping, 2, n_init=8, n_rounds=1).objectives) == 1


def test_start_round_keeps_the_start(blobs):
    X, y = blobs
    result = fastmmc.umc_rls(
        X, 3, method="shaking", init=y, start_round=20, target_sizes=np.bincount(y), sigma=4.0
    )
    np.testing.assert_array_equal(result.labels, y)
    assert result.n_moves == 0


def test_slicing_never_changes_a_result(overlapping, monkeypatch):
    options = {"polish": True, "balance": 0.1}
    whole = [
        one_start(overlapping, 4, **options),
        one_start(overlapping, 4, method="steepest"),
        one_start(overlapping, 4, method="stochastic"),
    ]
    monkeypatch.setattr(execution, "FIRST_BUDGET", 1)
    monkeypatch.setattr(execution, "SLICE_SECONDS", 0.0)
    monkeypatch.setattr(fastmmc.rls.claims, "HISTORY_CAPACITY", 4)
    sliced = [
        one_start(overlapping, 4, **options),
        one_start(overlapping, 4, method="steepest"),
        one_start(overlapping, 4, method="stochastic"),
    ]
    for a, b in zip(whole, sliced, strict=True):
        np.testing.assert_array_equal(a.labels, b.labels)
        np.testing.assert_array_equal(a.history, b.history)
        assert a.objective == b.objective


@pytest.mark.jit
def test_more_than_256_clusters():
    X = np.arange(600.0)[:, None]
    given = {"method": "stochastic", "sizes": "equal", "sigma": 1.0}
    result = fastmmc.umc_rls(X, 300, n_init=1, random_state=0, **given)
    assert (result.sizes >= 1).all() and result.sizes.sum() == 600


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_clear_clusters_are_found_in_both_precisions(dtype):
    rng = np.random.default_rng(5)
    y = np.repeat(np.arange(4), proportional_sizes(np.ones(4), 82))
    X = 10.0 * np.eye(4)[y] + rng.standard_normal((82, 4))
    F = fastmmc.factor(X.astype(dtype))
    result = fastmmc.umc_rls(F, 4, random_state=0, n_init=5, sizes="equal")
    assert F.R.dtype == dtype
    assert adjusted_rand_score(y, result.labels) == 1.0
