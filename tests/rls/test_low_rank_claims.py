"""UMC-RLS on the low-rank hat matrix: the same claims as on Z Z^T, without making it."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

import fastmmc
from fastmmc.data.sizes import balanced_random_labels, size_rule
from tests.rls import naive

SEARCHES = [
    {"method": "shaking"},
    {"method": "steepest", "balance": 0.5},
    {"method": "stochastic", "balance": 0.5},
    {"method": "shaking", "polish": True, "keep_best": True},
    {"method": "shaking", "min_size": 14, "n_rounds": 3},
]


def points(n=60, d=2, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def start(n, k, seed=0):
    rng = np.random.default_rng(seed)
    return balanced_random_labels(n, k, rng, size_rule(n, k), None)


@pytest.mark.parametrize("search", SEARCHES)
def test_every_point_a_landmark_gives_the_dense_labels(search):
    X = points()
    options = {"lam": 0.1, "sigma": 1.0, "n_init": 3, "random_state": 0} | search
    dense = fastmmc.umc_rls(X, 4, **options, sizes="equal")
    low = fastmmc.umc_rls(X, 4, rank=60, **options, sizes="equal")
    np.testing.assert_array_equal(low.labels, dense.labels)
    assert low.objective == pytest.approx(dense.objective, rel=1e-7)
    assert low.loo_mse == pytest.approx(dense.loo_mse, rel=1e-5)
    assert low.n_moves == dense.n_moves and low.params["rank"] == 60
    assert dense.params["rank"] is None


@pytest.mark.parametrize("seed", range(3))
def test_claims_are_those_on_the_product(seed):
    F = fastmmc.factor(points(seed=seed), lam=0.1, sigma=1.0, rank=9, random_state=seed)
    R = F.Z @ F.Z.T
    init = start(60, 3, seed)
    res = fastmmc.umc_rls(F, 3, init=init, method="shaking")
    np.testing.assert_array_equal(res.labels, naive.shake(R, init, 3))
    assert res.objective == pytest.approx(naive.risk(R, res.labels, 3), rel=1e-9)
    res = fastmmc.umc_rls(F, 3, init=init, method="steepest")
    np.testing.assert_array_equal(res.labels, naive.steepest(R, init, 3))


@pytest.mark.parametrize("landmarks", ["uniform", "pivoted"])
def test_the_model_is_the_restricted_ridge_fit(landmarks):
    X, new = points(), points(20, seed=1)
    F = fastmmc.factor(X, lam=0.1, sigma=1.0, rank=12, landmarks=landmarks, random_state=0)
    res = fastmmc.umc_rls(F, 3, n_init=2, random_state=0, sizes="equal")
    B = X[F.indices]
    K_nB, K_BB = F.kernel.block(X, B), F.kernel.block(B, B)
    P = naive.codes(res.labels, 3)
    a = np.linalg.solve(K_nB.T @ K_nB + 0.1 * K_BB, K_nB.T @ P)
    np.testing.assert_allclose(res.decision_function(new), F.kernel.block(new, B) @ a, atol=1e-7)
    errors = []
    for j in range(60):
        rest = np.arange(60) != j
        a = np.linalg.solve(K_nB[rest].T @ K_nB[rest] + 0.1 * K_BB, K_nB[rest].T @ P[rest])
        errors.append((P[j] - K_nB[j] @ a) ** 2)
    assert res.loo_mse == pytest.approx(np.mean(errors), rel=1e-6)


@pytest.mark.parametrize("search", SEARCHES)
def test_float32_and_sparse_points(search):
    X, _ = fastmmc.datasets.load("iris")
    options = {"rank": 40, "n_init": 2, "random_state": 0} | search
    options = options | ({"min_size": 40} if "min_size" in search else {})
    double = fastmmc.umc_rls(X, 3, **options, sizes="equal")
    single = fastmmc.umc_rls(X.astype(np.float32), 3, **options, sizes="equal")
    thin = fastmmc.umc_rls(sparse.csr_matrix(X), 3, **options, sizes="equal")
    assert single.objective == pytest.approx(double.objective, rel=1e-3)
    assert thin.objective == pytest.approx(double.objective, rel=1e-6)
    np.testing.assert_array_equal(thin.predict(sparse.csr_matrix(X)), double.predict(X))


def test_start_from_k_means_and_precomputed_kernels():
    X, _ = fastmmc.datasets.load("iris")
    options = {"method": "shaking", "init": "kmeans", "random_state": 0, "n_init": 2}
    res = fastmmc.umc_rls(sparse.csr_array(X), 3, rank=30, **options)
    assert res.sizes.tolist() == [50, 50, 50]
    K = fastmmc.kernels.gram.resolve_kernel(fastmmc.kernels.gram.Kernel("rbf"), X).block(X, X)
    options = {
        "method": "shaking",
        "n_init": 2,
        "landmarks": np.arange(0, 150, 3),
        "random_state": 0,
    }
    given = fastmmc.umc_rls(K, 3, kernel="precomputed", **options)
    own = fastmmc.umc_rls(X, 3, **options)
    np.testing.assert_array_equal(given.labels, own.labels)
    np.testing.assert_allclose(given.decision_function(K), own.decision_function(X), atol=1e-6)


def test_a_path_has_the_same_landmarks_for_every_lam():
    X = points()
    path = fastmmc.umc_rls_path(X, 3, [0.1, 1.0], rank=10, n_init=2, random_state=0, sizes="equal")
    for res in path:
        lam = res.params["lam"]
        alone = fastmmc.umc_rls(X, 3, lam=lam, rank=10, n_init=2, random_state=0, sizes="equal")
        np.testing.assert_array_equal(res.labels, alone.labels)


@pytest.mark.jit
def test_threads_and_slices_change_nothing():
    X = points(200)
    runs = [
        fastmmc.umc_rls(X, 4, rank=30, n_init=5, random_state=0, n_jobs=jobs, sizes="equal")
        for jobs in (1, 2, 4)
    ]
    for run in runs[1:]:
        np.testing.assert_array_equal(run.labels, runs[0].labels)


def test_estimator():
    X = points()
    model = fastmmc.UMCRLS(3, rank=20, n_init=2, random_state=0, sizes="equal").fit(
        sparse.csr_matrix(X)
    )
    np.testing.assert_array_equal(model.predict(sparse.csr_matrix(X)), model.predict(X))


@pytest.mark.jit
def test_no_square_array_is_made():
    n, rank = 20_000, 40
    X = points(n)
    # The default width would look at all pairs of a sample.
    options = {"sigma": 1.0, "n_init": 1, "n_rounds": 2, "random_state": 0}
    fastmmc.umc_rls(X[:100], 3, rank=10, **options, sizes="equal")
    tracemalloc.start()
    try:
        fastmmc.umc_rls(X, 3, rank=rank, **options, sizes="equal")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # A start from a sample has that one's matrix.
    assert peak < 8 * (5 * n * rank + 2 * 2000**2) < 8 * n * n / 8


@pytest.mark.parametrize("options", [{"rank": 5}, {"landmarks": "pivoted"}, {"landmarks": [1]}])
def test_a_factor_brings_its_own_landmarks(options):
    F = fastmmc.factor(points(), rank=10, random_state=0)
    with pytest.raises(ValueError, match="X is a factor"):
        fastmmc.umc_rls(F, 3, **options, sizes="equal")
    with pytest.raises(TypeError, match="lam already"):
        fastmmc.umc_rls_path(F, 3, [1.0], sizes="equal")
