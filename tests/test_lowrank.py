"""The low-rank hat matrix against dense formulas."""

import numpy as np
import pytest
from scipy import sparse

import fastmmc
from fastmmc.kernels import factors
from fastmmc.kernels.factors import make_low_rank_factor
from fastmmc.kernels.gram import Kernel
from fastmmc.kernels.nystroem import Form
from tests.rls import naive

LAM = 0.3


def gram(X, Z, sigma=1.5):
    return np.exp(-((X[:, None] - Z[None]) ** 2).sum(-1) / sigma**2)


def points(n=60, d=3, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def nystroem_hat(X, B, lam=LAM):
    """R~ of K~ = K_nB K_BB^+ K_Bn, by pseudo-inverse and inverse."""
    K = gram(X, B) @ np.linalg.pinv(gram(B, B), rcond=1e-12, hermitian=True) @ gram(B, X)
    return naive.hat_matrix(K, lam)


def hat(F):
    return F.Z @ F.Z.T


@pytest.mark.parametrize("landmarks", ["uniform", "k-means++"])
def test_the_factor_is_the_hat_matrix_of_the_nystroem_kernel(landmarks):
    X = points()
    F = fastmmc.factor(X, lam=LAM, sigma=1.5, rank=12, landmarks=landmarks, random_state=0)
    assert F.Z.shape == (60, 12) and len(set(F.indices)) == 12
    np.testing.assert_array_equal(F.basis, X[F.indices])
    np.testing.assert_allclose(hat(F), nystroem_hat(X, X[F.indices]), atol=1e-9)
    np.testing.assert_allclose(F.diagonal(), np.diag(hat(F)), atol=1e-12)


@pytest.mark.parametrize("landmarks", ["uniform", "k-means++", "pivoted", np.arange(60)])
def test_every_point_a_landmark_gives_the_dense_hat_matrix(landmarks):
    X = points()
    rank = "auto" if isinstance(landmarks, np.ndarray) else 60
    F = fastmmc.factor(
        X, lam=LAM, sigma=1.5, rank=rank, landmarks=landmarks, rank_tol=0, random_state=0
    )
    np.testing.assert_allclose(hat(F), fastmmc.factor(X, lam=LAM, sigma=1.5).R, atol=1e-7)


def test_landmarks_given_as_points_or_indices():
    X = points()
    by_index = fastmmc.factor(X, lam=LAM, sigma=1.5, landmarks=[3, 1, 40])
    by_point = fastmmc.factor(X, lam=LAM, sigma=1.5, landmarks=X[[3, 1, 40]])
    np.testing.assert_allclose(by_index.Z, by_point.Z, atol=1e-12)
    assert by_point.indices is None
    np.testing.assert_allclose(hat(by_index), nystroem_hat(X, X[[3, 1, 40]]), atol=1e-10)


@pytest.mark.parametrize("sigma", [1.5, 1e3])
def test_duplicated_landmarks_and_wide_kernels_are_safe(sigma):
    X = np.vstack([points(20)] * 3)
    F = fastmmc.factor(X, lam=LAM, sigma=sigma, landmarks=[0, 20, 40, 1, 2])
    assert np.isfinite(F.Z).all() and F.rank <= 3
    if sigma == 1.5:
        np.testing.assert_allclose(hat(F), nystroem_hat(X, X[:3]), atol=1e-9)
    pivoted = fastmmc.factor(X, lam=LAM, sigma=sigma, landmarks="pivoted", rank_tol=0)
    assert pivoted.rank <= 20
    np.testing.assert_allclose(hat(pivoted), naive.hat_matrix(gram(X, X, sigma), LAM), atol=1e-7)


@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-6])
def test_pivoting_stops_at_the_tolerance(tol):
    X = points(200, 2)
    F = fastmmc.factor(X, lam=LAM, sigma=1.5, landmarks="pivoted", rank_tol=tol)
    K, B = gram(X, X), F.indices
    error = K - gram(X, X[B]) @ np.linalg.solve(gram(X[B], X[B]), gram(X[B], X))
    assert len(set(B)) == len(B) == F.rank
    assert -1e-9 < np.trace(error) <= tol * 200
    # The last block of 64 may hold more than were needed, but not a second one.
    more = fastmmc.factor(X, lam=LAM, sigma=1.5, landmarks="pivoted", rank_tol=tol / 10)
    assert more.rank >= F.rank
    np.testing.assert_allclose(hat(F), naive.hat_matrix(K, LAM), atol=10 * tol * 200)


def test_pivoting_keeps_to_a_rank():
    F = fastmmc.factor(points(200, 2), sigma=0.1, landmarks="pivoted", rank=70)
    assert F.rank == 70


def test_new_points_are_mapped_as_the_old_ones():
    X = points()
    for landmarks in ("uniform", "k-means++", "pivoted", X[:7] + 0.1):
        rank = "auto" if not isinstance(landmarks, str) else 15
        F = fastmmc.factor(X, lam=LAM, rank=rank, landmarks=landmarks, random_state=0)
        np.testing.assert_allclose(F.transform(X), F.Z, atol=1e-7)
        P = np.random.default_rng(1).standard_normal((60, 2))
        predictions = F.kernel.block(X, F.basis) @ F.coefficients(P)
        np.testing.assert_allclose(predictions, F.Z @ (F.Z.T @ P), atol=1e-7)


@pytest.mark.parametrize("kernel", ["linear", "poly", "laplacian", "precomputed", "callable"])
@pytest.mark.parametrize("landmarks", ["uniform", "pivoted"])
def test_other_kernels(kernel, landmarks):
    X = points(40)
    if kernel == "callable":
        kernel = gram
    elif kernel == "precomputed":
        X = gram(X, X)
    dense = fastmmc.factor(X, lam=LAM, kernel=kernel)
    F = fastmmc.factor(
        X, lam=LAM, kernel=kernel, rank=40, landmarks=landmarks, rank_tol=1e-12, random_state=0
    )
    np.testing.assert_allclose(hat(F), dense.R, atol=1e-6)
    np.testing.assert_allclose(F.transform(X), F.Z, atol=1e-6)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly", lambda A, B: (1.0 + A @ B.T) ** 2])
def test_points_in_single_precision_are_mapped_in_double(rng, kernel):
    """Maps to features have numbers of 1e5, which must not meet rounded kernel values."""
    X = rng.normal(size=(300, 2)).astype(np.float32)
    options = {"kernel": kernel, "rank": 60, "lam": 1e-4, "random_state": 0, "dtype": "float64"}
    single, double = (fastmmc.factor(points, **options) for points in (X, X.astype(np.float64)))
    np.testing.assert_allclose(single.Z @ single.Z.T, double.Z @ double.Z.T, atol=1e-10)


def test_labels_of_points_in_single_precision_are_predicted(rng):
    X = (3.0 * rng.normal(size=(500, 2))).astype(np.float32)
    X[:250] += 4.0
    single, double = (
        fastmmc.iter_ls_svm(points, rank=60, n_init=2, random_state=0)
        for points in (X, X.astype(np.float64))
    )
    assert single.objective == pytest.approx(double.objective, rel=1e-9)
    np.testing.assert_array_equal(single.predict(X), single.labels)


def test_float32_is_kept_and_close():
    X = points()
    double = fastmmc.factor(X, lam=LAM, sigma=1.5, rank=20, random_state=0)
    single = fastmmc.factor(X.astype(np.float32), lam=LAM, sigma=1.5, rank=20, random_state=0)
    assert single.Z.dtype == np.float32 and double.Z.dtype == np.float64
    np.testing.assert_allclose(hat(single), hat(double), atol=1e-4)


@pytest.mark.parametrize("how", [{"rank": 20}, {"landmarks": "pivoted"}, {"rank": None}])
def test_single_precision_on_request(how):
    X = points()
    options = {"lam": LAM, "sigma": 1.5, "random_state": 0} | how
    double, single = fastmmc.factor(X, **options), fastmmc.factor(X, dtype="float32", **options)
    matrix = "R" if how == {"rank": None} else "Z"
    assert getattr(single, matrix).dtype == np.float32 and single.X.dtype == np.float64
    whole = [F.R if matrix == "R" else hat(F) for F in (double, single)]
    np.testing.assert_allclose(*whole, atol=1e-4)
    back = fastmmc.factor(X.astype(np.float32), dtype=np.float64, **options)
    assert getattr(back, matrix).dtype == np.float64
    res = fastmmc.umc_rls(X, 3, dtype="float32", n_init=2, **options, sizes="equal")
    assert (
        res.objective
        == fastmmc.umc_rls(single, 3, n_init=2, random_state=0, sizes="equal").objective
    )
    assert res.predict(X).shape == (60,)


@pytest.mark.parametrize(
    ("how", "dtype"),
    [
        ({"rank": 20}, np.float32),
        ({"rank": 10}, np.float64),
        ({"rank": 20, "dtype": "float64"}, np.float64),
        ({"rank": 20, "lam": 1e-6}, np.float64),
        ({"rank": 20, "landmarks": "pivoted"}, np.float64),
        ({"rank": None}, np.float64),
    ],
    ids=str,
)
def test_only_a_large_factor_is_in_single_precision_unless_told(monkeypatch, how, dtype):
    monkeypatch.setattr(factors, "DOUBLE_ENTRIES", 600)
    X = points()
    F = fastmmc.factor(X, sigma=1.5, random_state=0, **how)
    assert F.diagonal().dtype == np.float64
    assert (F.R if how["rank"] is None else F.Z).dtype == dtype
    if dtype == np.float32:
        told = fastmmc.factor(X, sigma=1.5, random_state=0, dtype="float32", **how)
        np.testing.assert_array_equal(F.Z, told.Z)


def test_single_precision_is_as_good_with_many_landmarks():
    X = points(900, 2)
    single, double = (
        fastmmc.factor(X, sigma=1.5, rank=300, dtype=dtype, random_state=0)
        for dtype in ("float32", "float64")
    )
    np.testing.assert_allclose(hat(single), hat(double), atol=2e-5)
    r = single.rank
    inverse = np.linalg.inv(single.scale.T @ single.scale)
    Z = single.Z.astype(np.float64)
    np.testing.assert_allclose(Z.T @ Z, np.eye(r) - single.lam * inverse, atol=2e-5)


def test_points_on_disk_are_not_copied(tmp_path):
    X = np.random.default_rng(0).standard_normal((300, 3))
    np.save(tmp_path / "points.npy", X)
    on_disk = np.load(tmp_path / "points.npy", mmap_mode="r")
    F = fastmmc.factor(on_disk, rank=40, random_state=0, dtype="float32")
    assert np.shares_memory(F.X, on_disk)
    res = fastmmc.umc_rls(on_disk, 3, rank=40, n_init=2, random_state=0, sizes="equal")
    in_memory = fastmmc.umc_rls(X, 3, rank=40, n_init=2, random_state=0, sizes="equal")
    np.testing.assert_array_equal(res.labels, in_memory.labels)
    np.testing.assert_array_equal(res.predict(on_disk), res.predict(X))


@pytest.mark.parametrize("landmarks", ["uniform", "k-means++", "pivoted"])
def test_the_share_that_is_done_rises_to_one(landmarks):
    shares = []
    kernel = fastmmc.kernels.gram.Kernel("rbf", sigma=1.5)
    rng = np.random.default_rng(0)
    form = Form(20, landmarks)
    make_low_rank_factor(
        points(1200), LAM, kernel, form, rng, lambda share, ahead=0.0: shares.append(share)
    )
    assert len(shares) >= 7 and np.all(np.diff(shares) >= 0) and shares[-1] == 1.0
    assert np.unique(shares).size >= 7


@pytest.mark.parametrize("landmarks", ["uniform", "k-means++", "pivoted"])
def test_sparse_points_give_what_dense_ones_give(landmarks):
    X = points() * (points(seed=1) > 0)
    options = {"lam": LAM, "rank": 20, "landmarks": landmarks, "random_state": 0}
    dense, thin = fastmmc.factor(X, **options), fastmmc.factor(sparse.csr_array(X), **options)
    assert dense.kernel.sigma == thin.kernel.sigma
    np.testing.assert_allclose(hat(thin), hat(dense), atol=1e-8)
    np.testing.assert_allclose(thin.transform(sparse.csr_array(X)), dense.transform(X), atol=1e-7)


def test_the_rank_rule():
    X = points()
    assert isinstance(fastmmc.factor(X), fastmmc.DenseFactor)
    assert isinstance(fastmmc.factor(X, rank=None), fastmmc.DenseFactor)
    assert fastmmc.factor(X, rank=0.25, random_state=0).rank == 15
    assert fastmmc.kernels.nystroem.resolve_rank("auto", "uniform", 10_000) is None
    automatic = [
        fastmmc.kernels.nystroem.resolve_rank("auto", "uniform", 10**e + 1) for e in (4, 5, 6, 7)
    ]
    assert automatic == [1000, 1000, 299, 100]
    assert fastmmc.kernels.nystroem.resolve_rank("auto", "pivoted", 50) == 50


def test_a_kernel_that_is_zero():
    F = fastmmc.factor(np.zeros((5, 2)), kernel="linear", coef0=0.0, rank=2, random_state=0)
    np.testing.assert_array_equal(hat(F), np.zeros((5, 5)))


def test_the_same_seed_draws_the_same_landmarks_and_leaves_x_alone():
    X = points()
    X.flags.writeable = False
    first, second = (fastmmc.factor(X, rank=9, random_state=4) for _ in range(2))
    np.testing.assert_array_equal(first.Z, second.Z)
    assert not first.Z.flags.writeable


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"rank": 0}, ValueError, "rank must be at least 1; got 0"),
        ({"rank": 61}, ValueError, "rank must be at most 60, the number of points; got 61"),
        ({"rank": 1.5}, ValueError, r"must be in \(0, 1\]; got 1.5"),
        ({"rank": 0.0}, ValueError, r"must be in \(0, 1\]"),
        ({"rank": float("nan")}, ValueError, "rank must be finite"),
        ({"rank": True}, TypeError, "rank must be an integer"),
        ({"rank": "full"}, ValueError, "rank must be 'auto', an integer"),
        ({"rank": [3]}, TypeError, "rank must be an integer"),
        ({"rank": 9, "landmarks": "random"}, ValueError, "landmarks must be one of 'uniform'"),
        ({"landmarks": [0, 60]}, ValueError, "indices must be 0..59"),
        ({"landmarks": []}, ValueError, "landmarks"),
        ({"landmarks": [-1]}, ValueError, "indices must be 0..59"),
        ({"landmarks": np.ones((2, 4))}, ValueError, "landmarks has 4 features"),
        ({"landmarks": np.full((2, 3), np.nan)}, ValueError, "NaN"),
        ({"landmarks": [0, 1], "rank": 3}, ValueError, "2 landmarks were given"),
        ({"landmarks": [0, 1], "rank": None}, ValueError, "uses no landmarks"),
        ({"landmarks": "pivoted", "rank_tol": -1}, ValueError, "rank_tol must be at least 0"),
        ({"landmarks": "pivoted", "rank_tol": 1}, ValueError, "below 1"),
    ],
)
def test_bad_parameters(options, error, message):
    with pytest.raises(error, match=message):
        fastmmc.factor(points(), **options)


def test_bad_parameters_of_precomputed_points():
    with pytest.raises(ValueError, match=r"k-means\+\+' needs points"):
        fastmmc.factor(np.eye(5), kernel="precomputed", rank=2, landmarks="k-means++")
    with pytest.raises(ValueError, match="not with kernel='precomputed'"):
        fastmmc.factor(np.eye(5), kernel="precomputed", landmarks=np.eye(5)[:2])


def test_parameters_of_the_factor_are_keywords():
    with pytest.raises(TypeError, match=r"factor\(\) .*positional arguments"):
        fastmmc.factor(np.eye(5), 3)
    with pytest.raises(TypeError, match=r"factor\(\) .*unexpected keyword argument 'n_clusters'"):
        fastmmc.factor(np.eye(5), n_clusters=3)


def test_too_little_memory(monkeypatch):
    monkeypatch.setattr(fastmmc.core.memory, "available_memory", lambda: 1000)
    with pytest.raises(MemoryError, match="low-rank factor of rank 20 of 60 points"):
        fastmmc.factor(points(), rank=20)


def test_kernel_defaults_are_resolved():
    assert fastmmc.factor(
        points(), rank=5, random_state=0
    ).kernel == fastmmc.kernels.gram.resolve_kernel(Kernel("rbf"), points())


def test_of_an_indefinite_kernel_the_positive_part_is_taken():
    """Minus the distances: a zero diagonal, which says nothing of the rest."""
    X = points()
    K = -np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    F = fastmmc.factor(K, lam=LAM, kernel="precomputed", rank=len(K), landmarks=np.arange(len(K)))
    w, V = np.linalg.eigh(K)
    w = np.maximum(w, 0.0)
    np.testing.assert_allclose(F.Z @ F.Z.T, (V * (w / (w + LAM))) @ V.T, atol=1e-8)
    with pytest.raises(ValueError, match="not positive semidefinite"):
        fastmmc.cpmmc(K, kernel="precomputed", n_init=1)


def test_shares_and_indices():
    assert fastmmc.kernels.nystroem.resolve_rank("auto", "uniform", 5_000) is None
    assert fastmmc.kernels.nystroem.resolve_rank(0.1, "uniform", 5_000) == 500
    ranks = [
        fastmmc.kernels.nystroem.resolve_rank("auto", "uniform", n) for n in (20_000, 1_000_000)
    ]
    assert ranks == [1000, 300]
    indices = fastmmc.kernels.nystroem.check_landmarks([2, 0], np.eye(3), Kernel("rbf"))
    assert indices.tolist() == [2, 0]
