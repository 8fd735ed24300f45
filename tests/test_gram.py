import math

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist, pdist
from sklearn.metrics import pairwise

import fastmmc
from fastmmc.kernels import gram
from fastmmc.kernels.gram import Kernel, KernelColumns
from tests.rls import naive


@pytest.fixture
def points(rng):
    return rng.standard_normal((30, 4)), rng.standard_normal((20, 4))


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (Kernel("rbf", sigma=1.7), lambda X, Z: pairwise.rbf_kernel(X, Z, gamma=1 / 1.7**2)),
        (
            Kernel("laplacian", sigma=1.7),
            lambda X, Z: pairwise.laplacian_kernel(X, Z, gamma=1 / 1.7),
        ),
        (Kernel("linear", coef0=2.0), lambda X, Z: X @ Z.T + 2.0),
        (
            Kernel("poly", gamma=0.5, degree=3, coef0=1.0),
            lambda X, Z: pairwise.polynomial_kernel(X, Z, degree=3, gamma=0.5, coef0=1.0),
        ),
        (
            Kernel("callable", function=lambda X, Z, c: c * X @ Z.T, kernel_params={"c": 2.0}),
            lambda X, Z: 2.0 * X @ Z.T,
        ),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_kernels_agree_with_scikit_learn(points, kernel, expected):
    X, Z = points
    np.testing.assert_allclose(kernel.block(X, Z), expected(X, Z), rtol=1e-12)
    lower = np.full((30, 30), np.nan)
    gram.fill_lower_gram(kernel, X, lower)
    np.testing.assert_allclose(np.tril(lower), np.tril(expected(X, X)), rtol=1e-12)


def test_lower_gram_in_several_blocks(rng, monkeypatch):
    monkeypatch.setattr(gram, "BLOCK", 7)
    X = rng.standard_normal((30, 3))
    lower = np.full((30, 30), np.nan)
    gram.fill_lower_gram(Kernel("rbf", sigma=2.0), X, lower)
    np.testing.assert_allclose(np.tril(lower), np.tril(np.exp(-(cdist(X, X) ** 2) / 4)), rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_distances_far_from_the_origin_keep_their_digits(rng, dtype):
    X = (1e4 + rng.standard_normal((20, 3))).astype(dtype)
    expected = cdist(X.astype(np.float64), X.astype(np.float64), "sqeuclidean")
    np.testing.assert_allclose(gram.squared_distances(X, X), expected, rtol=1e-6, atol=1e-9)


def test_median_width_is_the_median_over_pairs(rng):
    X = rng.standard_normal((41, 3))
    assert gram.median_width(X) == pytest.approx(math.sqrt(np.median(pdist(X, "sqeuclidean"))))
    assert gram.median_width(X, "cityblock") == pytest.approx(np.median(pdist(X, "cityblock")))


def test_median_width_of_a_sample_is_close(rng):
    X = rng.standard_normal((2600, 2))
    full = math.sqrt(np.median(pdist(X, "sqeuclidean")))
    assert gram.median_width(X) == pytest.approx(full, rel=0.05)


def test_width_of_equal_and_of_mostly_equal_points():
    assert gram.median_width(np.ones((5, 2))) == 1.0
    assert gram.median_width(np.ones((1, 2))) == 1.0
    X = np.zeros((10, 1))
    X[0] = 3.0
    assert gram.median_width(X) > 0


def test_resolved_widths(points):
    X, _ = points
    assert gram.resolve_kernel(Kernel("rbf", gamma=0.25), X).sigma == 2.0
    assert gram.resolve_kernel(Kernel("laplacian", gamma=0.25), X).sigma == 4.0
    assert gram.resolve_kernel(Kernel("poly"), X).gamma == 0.25
    assert gram.resolve_kernel(Kernel("linear"), X) == Kernel("linear")
    assert gram.resolve_kernel(Kernel("rbf"), X).sigma == gram.median_width(X)


@pytest.mark.parametrize("given", [{"sigma": 1e-200}, {"sigma": 1e200}, {"gamma": 1e-310}])
def test_a_width_whose_square_is_out_of_range(given, points):
    (name,) = given
    with pytest.raises(ValueError, match=f"{name}=.* is too extreme for kernel='rbf'"):
        gram.resolve_kernel(Kernel("rbf", **given), points[0])
    least = gram.resolve_kernel(Kernel("rbf", sigma=1e-153), points[0])
    assert np.isfinite(least.block(*points)).all()
    assert gram.resolve_kernel(Kernel("laplacian", sigma=1e-200), points[0]).sigma == 1e-200
    with pytest.raises(ValueError, match="too extreme for kernel='laplacian'"):
        gram.resolve_kernel(Kernel("laplacian", sigma=1e-310), points[0])


@pytest.mark.parametrize(
    ("scale", "size"), [(1e-300, "small"), (1e-160, "small"), (1e160, "large")]
)
@pytest.mark.parametrize("width", [gram.median_width, lambda X, metric: gram.box_diagonal(X)])
def test_distances_whose_squares_are_out_of_range(scale, size, width, points):
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=f"are too {size} for"):
        gram.resolve_kernel(Kernel("rbf"), scale * points[0], width)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda X, Z: np.ones(3), "returned an array of shape"),
        (lambda X, Z: np.full((len(X), len(Z)), np.nan), "NaN or infinity"),
    ],
)
def test_a_broken_callable_kernel_is_named(points, function, message):
    with pytest.raises(ValueError, match=message):
        Kernel("callable", function=function).block(*points)


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (lambda X, Z: X @ Z.T + 1j, TypeError, "kernel: .* real numbers; got dtype complex128"),
        (lambda X, Z: (X @ Z.T).astype(str), TypeError, "kernel: .* real numbers; got dtype <U"),
        (lambda X, Z: X[:, :1] + 0 * Z[:, 0], ValueError, "kernel: .* must be symmetric"),
        (lambda X, Z: np.full((len(X), len(Z)), np.inf), ValueError, "kernel: .* infinity"),
    ],
    ids=["complex", "text", "asymmetric", "infinite"],
)
@pytest.mark.parametrize(
    "call",
    [
        lambda X, kernel: fastmmc.umc_rls(X, 2, kernel=kernel, sizes="equal"),
        lambda X, kernel: fastmmc.umc_rls(X, 2, kernel=kernel, rank=5, sizes="equal"),
        lambda X, kernel: fastmmc.evo_mmc(X, kernel=kernel),
        lambda X, kernel: fastmmc.iter_svr(X, kernel=kernel),
        lambda X, kernel: fastmmc.cpm3c(X, 2, kernel=kernel),
        lambda X, kernel: fastmmc.wta(X, 2, features="nystroem", kernel=kernel),
        lambda X, kernel: fastmmc.sdp_mmc(X, kernel=kernel),
    ],
    ids=["umc_rls", "low_rank", "evo_mmc", "iter_svr", "cpm3c", "wta", "sdp_mmc"],
)
def test_every_method_tries_a_callable_kernel(points, call, function, error, message):
    with pytest.raises(error, match=message):
        call(points[0], function)


def test_a_callable_kernel_may_be_rounded(points):
    rounded = Kernel("callable", function=lambda X, Z: (X @ Z.T).astype(np.float32))
    rounded.check_symmetric(points[0])


def test_values_beyond_single_precision_are_named(points):
    huge = Kernel("callable", function=lambda X, Z: 1e60 * (X @ Z.T).astype(np.float64))
    with pytest.raises(ValueError, match="kernel: .* beyond float32"):
        KernelColumns(huge, points[1], dtype=np.float32)(points[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_radial_kernels_have_no_values_that_are_slow(dtype):
    X = np.linspace(0.0, 30.0, 400, dtype=dtype)[:, None]
    for kernel in (Kernel("rbf", sigma=1.0), Kernel("laplacian", sigma=0.1)):
        K = KernelColumns(kernel, X[:1], dtype=dtype)(X)
        assert K.dtype == dtype
        far = abs(X) if kernel.name == "laplacian" else X.astype(np.float64) ** 2
        expected = np.exp(-far / kernel.sigma)
        least = np.finfo(dtype).eps ** 2.0
        np.testing.assert_allclose(K, expected, rtol=100 * np.finfo(dtype).eps, atol=1.1 * least)
        np.testing.assert_allclose(K[expected < least], least, rtol=1e-5)
        assert (expected < least).any()


@pytest.mark.parametrize("n", [1000, 6000])
def test_distances_that_overflow_are_told(n):
    X = np.random.default_rng(0).normal(size=(n, 2))
    X[n // 2] = 1e200
    with pytest.raises(ValueError, match="distances of the points are too large.*scale the points"):
        fastmmc.cluster(X, 3, random_state=0)


def test_small_examples():
    linear = Kernel("linear", coef0=0.0)
    assert Kernel("linear", coef0=1.0).block(np.eye(2), np.eye(2)).tolist() == [[2, 1], [1, 2]]
    point = np.zeros((1, 2))
    assert KernelColumns(Kernel("rbf", sigma=1.0), point).logarithms(point) == 0.0
    assert Kernel("rbf", sigma=1.0).check_values(np.ones((1, 1))) == 1.0
    Kernel("callable", function=lambda X, Z: X @ Z.T).check_symmetric(np.eye(2))
    assert gram.dense_rows(np.eye(2), slice(1)).tolist() == [[1, 0]]
    assert gram.count_distinct(np.array([[0.0], [1.0], [-0.0]]), 3) == 2
    ((_, values),) = gram.kernel_rows(Kernel("precomputed"), np.eye(2), None, np.array([1]))
    assert values.tolist() == [[0], [1]]
    matrix = np.array([[1.0], [2.0]])
    assert gram.kernel_product(linear, np.eye(2), np.eye(2), matrix).tolist() == [[1], [2]]
    assert gram.kernel_diagonal(Kernel("linear", coef0=1.0), np.array([[2.0]])) == [5.0]
    assert gram.squared_distances(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]])) == 25.0
    assert gram.median_width(np.array([[0.0], [3.0]])) == 3.0
    assert gram.box_diagonal(np.array([[0.0, 0.0], [3.0, 4.0]])) == 5.0
    assert gram.resolve_kernel(Kernel("rbf"), np.array([[0.0], [2.0]])).sigma == 2.0
    out = np.empty((2, 2))
    gram.fill_lower_gram(linear, np.array([[1.0], [2.0]]), out)
    assert np.tril(out).tolist() == [[1, 0], [2, 4]]


@pytest.mark.parametrize("metric", ["sqeuclidean", "cityblock"])
def test_width_is_the_median_distance_to_a_neighbour(metric):
    X = np.random.default_rng(0).standard_normal((60, 3))
    got = gram.neighbour_width(10, X, metric)
    np.testing.assert_allclose(got, naive.neighbour_width(X, 12, metric))
    assert gram.neighbour_width(4, X, metric) == gram.median_width(X, metric)
    assert gram.neighbour_width(2, X, metric) == gram.median_width(X, metric)


def test_width_of_equal_points():
    X = np.repeat(np.eye(2), 30, axis=0)
    assert gram.neighbour_width(8, X) == gram.median_width(X)
    assert gram.neighbour_width(3, np.ones((1, 2))) == 1.0


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("make", [np.asarray, csr_array])
def test_first_equal_rows(rng, dtype, make):
    X = rng.integers(0, 3, (200, 3)).astype(dtype)
    expected = [next(i for i in range(200) if (X[i] == X[j]).all()) for j in range(200)]
    np.testing.assert_array_equal(gram.first_equals(make(X)), expected)
    assert gram.first_equals(make(rng.normal(size=(100, 2)).astype(dtype))) is None
    assert gram.first_equals(make(np.zeros((1, 2), dtype=dtype))) is None
    # Points that are as far from every place as others, and numbers whose squares are not finite.
    assert gram.first_equals(make(np.array([[1e200, 0.0], [0.0, 1e200]]))) is None
    np.testing.assert_array_equal(
        gram.first_equals(make(np.array([[0.0], [1.0], [-0.0]]))), [0, 1, 0]
    )
