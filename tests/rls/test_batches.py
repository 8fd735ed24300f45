"""Shaking in batches on the low-rank hat matrix, and the descent that ends it."""

import numpy as np
import pytest
from scipy import sparse

import fastmmc
from fastmmc.core import execution
from fastmmc.core.threads import exhaust
from fastmmc.data.sizes import balanced_random_labels, size_rule
from fastmmc.rls import _loops_batches as loops
from fastmmc.rls import batches
from fastmmc.rls.batches import BatchSearch
from fastmmc.rls.engine import _loops_moves as moves
from fastmmc.rls.plan import LabelSearchPlan
from fastmmc.rls.planning import count_starts
from tests.rls import naive

N, K = 60, 3


@pytest.fixture
def factor(overlapping):
    return fastmmc.factor(overlapping, lam=0.1, sigma=1.5, rank=12, random_state=0)


@pytest.fixture(params=["sample", "sample of a sample"])
def small_samples(monkeypatch, request):
    """Let 60 points be enough for a start from a sample, or for rounds in a sample alone."""
    monkeypatch.setattr(batches, "SAMPLE", 20)
    monkeypatch.setattr(batches, "SAMPLE_PER_CLUSTER", 6)
    if request.param == "sample of a sample":
        monkeypatch.setattr(batches, "ROUNDS", 50)
        monkeypatch.setattr(batches, "ROUNDS_PER_CLUSTER", 15)


def start(seed=0, n=N, k=K):
    return balanced_random_labels(n, k, np.random.default_rng(seed), size_rule(n, k), None)


def run(factor, **kwargs):
    options = {"method": "shaking", "n_init": 2, "random_state": 0}
    return fastmmc.umc_rls(factor, K, **(options | kwargs), sizes="equal")


def sums(Z, labels):
    return np.stack([Z[labels == h].sum(axis=0) for h in range(K)])


def test_scores_are_the_changes_of_the_risk(factor):
    labels = start().astype(np.uint8)
    Z, diag = np.array(factor.Z), factor.diagonal()
    W = sums(Z, labels)
    score = np.empty(N - 5)
    closed = np.array([False, True, False])
    movable = np.arange(N) != 7
    loops.score_points(Z, 5, labels, closed, W - W[1], diag, movable, score)
    expected = naive.shifts(Z @ Z.T, labels, K)[:, 1]
    expected[(labels == 1) | ~movable] = np.inf
    np.testing.assert_allclose(score, expected[5:], atol=1e-12)


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
    labels = start().astype(np.uint8)
    W = sums(Z.astype(np.float64), labels)
    diag = np.sum(Z.astype(np.float64) ** 2, axis=1)
    counts = np.bincount(labels, minlength=K)

    def change(i, j):
        a, b = labels[i], labels[j]
        separate = moves.move_shift(Z, False, W, diag, i, a, b)
        separate += moves.move_shift(Z, False, W, diag, j, b, a)
        return moves.swap_shift(Z, False, i, j, separate)

    for i, j in zip(np.flatnonzero(labels == 0), np.flatnonzero(labels == 1), strict=True):
        there = change(i, j)
        moves.move(Z, None, labels, counts, W, i, 1)
        moves.move(Z, None, labels, counts, W, j, 0)
        assert abs(there) > 1e-6
        assert change(i, j) == pytest.approx(-there, abs=1e-12)


def test_a_batch_takes_the_lowest_scores_and_spares_donors_at_their_floor(factor):
    labels = np.repeat([0, 1, 2], 20).astype(np.uint8)
    Z = np.array(factor.Z)
    W, counts = sums(Z, labels), np.array([20, 20, 20])
    score = np.full(N, np.inf)
    score[:40] = np.tile([1.0, 2.0, 2.0, 3.0], 10)
    floor = np.array([17, 0, 0])
    state = moves.State(
        matrix=Z,
        row=None,
        labels=labels,
        counts=counts,
        sums=W,
        diag=factor.diagonal(),
        movable=np.ones(N, dtype=np.bool_),
        lower=np.zeros(K, dtype=np.int64),
        upper=np.full(K, N),
        tol=0.0,
        pos=np.zeros(2, dtype=np.int64),
        value=np.zeros(moves.N_VALUES),
        best_labels=np.empty(0, dtype=np.uint8),
    )
    taken = loops.claim_batch(state, score, 2.0, 12, floor, 2)
    # Three of the first cluster and no more, five of the second that score 1, four at the limit.
    assert taken == state.pos[moves.MOVES] == 12 and counts.tolist() == [17, 11, 32]
    assert np.flatnonzero(labels[:20] == 2).tolist() == [0, 4, 8]
    assert np.flatnonzero(labels[20:40] == 2).tolist() == [0, 1, 2, 4, 5, 6, 8, 12, 16]
    np.testing.assert_allclose(W, sums(Z, labels), atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_batches_of_one_are_the_claims_one_by_one(factor, monkeypatch, seed):
    monkeypatch.setattr(BatchSearch, "_descend", lambda self: iter(()))
    R = factor.Z @ factor.Z.T
    labels = start(seed)
    res = run(factor, init=labels, batches=N)
    np.testing.assert_array_equal(res.labels, naive.shake(R, labels, K))
    exact = run(factor, init=labels, batches="exact")
    np.testing.assert_array_equal(res.labels, exact.labels)
    assert res.objective == pytest.approx(exact.objective, rel=1e-9)
    assert res.n_moves == exact.n_moves


@pytest.mark.filterwarnings("ignore:clusters of free sizes")
def test_late_rounds_are_left_to_the_descent(factor):
    last = {b: run(factor, batches=b, n_init=1).n_iter for b in (2, 8, 20, N)}
    # Clusters of 20 are claimed in batches of 10, 3, 1 and 1; round i adds 20 / 2^i.
    assert last == {2: 2, 8: 4, 20: 21, N: 21}
    assert run(factor, batches=2, n_init=1, target_sizes=[10, 20, 30]).n_iter == 21


def test_small_n_is_claimed_one_by_one_on_the_product(factor):
    a, b = run(factor), run(factor, batches="exact")
    np.testing.assert_array_equal(a.labels, b.labels)
    assert a.n_moves == b.n_moves and a.loo_mse == pytest.approx(b.loo_mse)


@pytest.mark.parametrize("seed", range(5))
def test_the_descent_ends_where_no_move_within_bounds_helps(factor, seed):
    R = factor.Z @ factor.Z.T
    res = run(factor, batches=2, balance=0.3, n_init=1, random_state=seed)
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
    after = run(factor, batches=10, n_init=1, random_state=seed)
    monkeypatch.setattr(BatchSearch, "_descend", lambda self: iter(()))
    before = run(factor, batches=10, n_init=1, random_state=seed)
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
def test_a_restriction_is_the_ridge_fit_to_these_points(factor, rows):
    rows = np.array(rows)
    part, extend = exhaust(factor._restrict(rows), lambda n_rows: None)
    B = factor.basis
    K_nB, K_BB = factor.kernel.block(factor.X, B), factor.kernel.block(B, B)
    gram = K_nB @ np.linalg.pinv(K_BB) @ K_nB.T
    inner = gram[np.ix_(rows, rows)] + 0.1 * np.eye(rows.size)
    hat = gram[np.ix_(rows, rows)] @ np.linalg.inv(inner)
    np.testing.assert_allclose(part.Z @ part.Z.T, hat, atol=1e-7)
    np.testing.assert_allclose(part.transform(factor.X[rows]), part.Z, atol=1e-7)
    E = np.eye(rows.size)[:, :2]
    expected = gram[:, rows] @ np.linalg.solve(inner, E)
    scores = factor._cluster_scores((E.T @ part.Z) @ extend)
    np.testing.assert_allclose(scores.T, expected, atol=1e-7)
    if rows.size == 60:
        np.testing.assert_allclose(part.Z @ part.Z.T, factor.Z @ factor.Z.T, atol=1e-9)


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
def test_starts_from_a_sample_keep_to_the_size_rule(factor, small_samples, search):
    res = run(factor, **search)
    assert res.objective == pytest.approx(naive.risk(factor.Z @ factor.Z.T, res.labels, K))
    if "target_sizes" in search:
        np.testing.assert_allclose(res.sizes, [10, 20, 30], atol=1)
    elif "balance" in search:
        assert res.sizes.min() >= 14 and res.sizes.max() <= 26
    else:
        assert res.sizes.min() >= search.get("min_size", 1)
    assert res.converged and res.history[-1] == res.objective


@pytest.mark.jit
@pytest.mark.parametrize("how", [{}, {"batches": 64}, {"rounds": 450}])
def test_the_quality_is_that_of_claims_one_by_one(monkeypatch, how):
    monkeypatch.setattr(batches, "SAMPLE", 100)
    monkeypatch.setattr(batches, "SAMPLE_PER_CLUSTER", 10)
    if "rounds" in how:
        monkeypatch.setattr(batches, "ROUNDS", how["rounds"])
        monkeypatch.setattr(batches, "ROUNDS_PER_CLUSTER", 1)
        how = {}
    X, _ = fastmmc.datasets.make_nine_gaussians(random_state=0)
    F = fastmmc.factor(X, rank=60, random_state=0)

    def mean_objective(**how):
        given = {"method": "shaking", "n_init": 10, "random_state": 0}
        return fastmmc.umc_rls(F, 9, **given, **how).objectives.mean()

    assert mean_objective(**how) < 1.03 * mean_objective(batches="exact")


def test_known_labels_stay(factor, small_samples):
    y = np.full(N, -1)
    y[:24] = np.arange(24) % K
    for how in ({}, {"batches": 4}, {"balance": 0.2}):
        res = run(factor, known_labels=y, **how)
        np.testing.assert_array_equal(res.labels[:24], y[:24])


@pytest.mark.parametrize("how", [{}, {"batches": 4}, {"target_sizes": [20, 20, 20]}])
def test_known_labels_may_fill_a_cluster_beyond_its_share(factor, small_samples, how):
    y = np.full(N, -1)
    y[:40] = 0
    res = run(factor, known_labels=y, **how)
    assert (res.labels[:40] == 0).all() and res.sizes.min() >= 1
    y[40:] = np.arange(20) % 2 + 1
    np.testing.assert_array_equal(run(factor, known_labels=y, **how).labels, y)


def test_threads_and_slices_change_nothing(factor, small_samples, monkeypatch):
    monkeypatch.setattr(batches, "ROWS", 16)
    for how in ({}, {"batches": 4, "balance": 0.2}):
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


def test_float32_sparse_and_two_clusters(overlapping, small_samples):
    for X in (overlapping.astype(np.float32), sparse.csr_array(overlapping)):
        res = fastmmc.umc_rls(X, 2, method="shaking", rank=20, random_state=0, n_init=3)
        assert sorted(res.sizes) == [30, 30]
        assert len(res.objectives) == 3


def test_a_stopped_run_returns_labels(factor, small_samples):
    with pytest.warns(match="callback"):
        res = run(factor, n_init=10**5, callback=lambda progress: True)
    assert res.labels.shape == (N,) and res.sizes.sum() == N


@pytest.mark.parametrize("batches_given", [0, -1, 1.5, "some"])
def test_bad_batches(factor, batches_given):
    with pytest.raises((ValueError, TypeError), match="batches"):
        run(factor, batches=batches_given)


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


def test_the_least_size_is_scaled_once_to_a_sample_of_a_sample(factor, monkeypatch):
    seen = []
    of_sample = LabelSearchPlan.of_sample

    def watched(plan, indices, keep_best):
        seen.append(of_sample(plan, indices, keep_best))
        return seen[-1]

    monkeypatch.setattr(LabelSearchPlan, "of_sample", watched)
    for name, value in {"SAMPLE": 20, "SAMPLE_PER_CLUSTER": 6}.items():
        monkeypatch.setattr(batches, name, value)
    monkeypatch.setattr(batches, "ROUNDS", 50)
    monkeypatch.setattr(batches, "ROUNDS_PER_CLUSTER", 15)
    run(factor, min_size=12, n_init=1)
    assert [(plan.n, plan.min_size) for plan in seen] == [(50, 10), (20, 4)]


@pytest.mark.slow
def test_batches_are_as_good_as_claims_one_by_one(digits):
    X, _ = digits
    F = fastmmc.factor(X / 16, rank=300, random_state=0)
    options = {"method": "shaking", "n_init": 10, "random_state": 0}
    one_by_one = fastmmc.umc_rls(F, 10, **options).objectives
    in_batches = fastmmc.umc_rls(F, 10, **options, batches=64).objectives
    # A single start has a standard deviation of 8 %, so the mean of ten one of 2.5.
    assert in_batches.mean() < 1.1 * one_by_one.mean()
    few = fastmmc.umc_rls(F, 10, **options, batches=2).objectives
    assert few.mean() > 1.1 * one_by_one.mean()
