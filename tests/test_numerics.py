"""Rounding, overflow, labels that mean nothing: figures are right, or an error or a warning."""

import re
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import fastmmc
from fastmmc.core import execution
from fastmmc.core.status import Status
from fastmmc.kernels.gram import Kernel, kernel_diagonal
from fastmmc.registry import METHODS
from tests.rls import naive

LONG = np.longdouble


def points(n=60):
    return np.random.default_rng(0).standard_normal((n, 3))


def gaussian(X, sigma):
    """K from differences, in extended precision."""
    X = X.astype(LONG)
    return np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / LONG(sigma) ** 2)


def inverse(A):
    """Gauss-Jordan in extended precision; A is positive definite."""
    A, G = A.copy(), np.eye(len(A), dtype=LONG)
    for i in range(len(A)):
        pivot, column = A[i, i], A[:, i].copy()
        column[i] = 0
        A[i] /= pivot
        G[i] /= pivot
        A -= np.outer(column, A[i])
        G -= np.outer(column, G[i])
    return G


def figures(K, lam, labels, k):
    """Q = lam tr(P^T G P) and the leave-one-out error from G = (K + lam I)^-1 alone."""
    G = inverse(K.astype(LONG) + LONG(lam) * np.eye(len(K), dtype=LONG))
    P = naive.codes(labels, k)
    GP = G @ P
    return float(lam * np.sum(P * GP)), float(np.mean((GP / np.diag(G)[:, None]) ** 2))


def least_lam(X, dtype):
    n = len(X)
    return 100 * max(n * np.finfo(np.float64).eps, np.finfo(dtype).eps)


@pytest.mark.filterwarnings("ignore:no point tells")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sigma", [0.3, 3.0, 30.0])
def test_figures_hold_at_the_least_lam(sigma, dtype):
    X = points()
    lam = 1.01 * least_lam(X, dtype)
    res = fastmmc.umc_rls(
        X, 2, lam=lam, sigma=sigma, dtype=dtype, n_init=1, random_state=0, sizes="equal"
    )
    Q, error = figures(gaussian(X, sigma), lam, res.labels, 2)
    assert res.objective == pytest.approx(Q, rel=5e-3)
    assert res.loo_mse == pytest.approx(error, rel=5e-3)


@pytest.mark.parametrize("lam", [0.0012, 0.02, 0.3])
@pytest.mark.parametrize("form", ["copies", "weights"])
def test_equal_points_cost_no_digits(form, lam):
    """Weights make the eigenvalues larger, and single precision holds less of a small lam."""
    X = np.round(3 * points())
    weights = np.random.default_rng(0).integers(1, 100, len(X))
    labels = (X[:, 0] > 0).astype(int)
    params = {"lam": lam, "sigma": 9.0, "sizes": "free", "method": "steepest", "max_iter": 1}
    if form == "copies":
        rows = np.repeat(np.arange(len(X)), weights)
        X, labels = X[rows], labels[rows]
    else:
        params["sample_weight"] = weights
    single, double = (
        fastmmc.umc_rls(X, 2, init=labels, dtype=dtype, **params)
        for dtype in ("float32", "float64")
    )
    np.testing.assert_array_equal(single.labels, double.labels)
    assert single.objective == pytest.approx(double.objective, rel=5e-3)
    assert single.loo_mse == pytest.approx(double.loo_mse, rel=5e-3)


@pytest.mark.parametrize("rank", [None, 20])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", [fastmmc.umc_rls, fastmmc.fast_evo_mmc, fastmmc.factor])
def test_a_lam_below_rounding_is_refused(function, dtype, rank):
    X = points()
    k = (2,) if function is fastmmc.umc_rls else ()
    for lam in (0.9 * least_lam(X, dtype), 1e-16, 1e-300):
        with pytest.raises(ValueError, match=rf"^lam=.*{dtype}.*must be at least \d") as caught:
            function(X, *k, lam=lam, dtype=dtype, rank=rank)
        assert ("give dtype='float64'" in str(caught.value)) == (dtype == "float32")
    with pytest.raises(ValueError, match="lam="):
        fastmmc.umc_rls_path(X, 2, [1.0, 1e-16], rank=rank, sizes="equal")


def test_the_least_lam_follows_the_scale_of_the_kernel():
    X = points()
    with pytest.raises(ValueError, match=r"lam=0.25 is lost .* must be at least 13\d"):
        fastmmc.umc_rls(X, 2, kernel="linear", coef0=1e14, sizes="equal")
    with pytest.raises(ValueError, match="lam=0.25 is too small .* lower coef0"):
        fastmmc.umc_rls(X, 2, kernel="linear", coef0=1e10, rank=10, random_state=0, sizes="equal")


@pytest.mark.parametrize(("coef0", "rank"), [(1e10, None), (1e8, None), (1e8, 10)])
def test_a_large_constant_is_borne(coef0, rank):
    X = points()
    res = fastmmc.umc_rls(
        X, 2, kernel="linear", coef0=coef0, rank=rank, n_init=1, random_state=0, sizes="equal"
    )
    Q, error = figures(X.astype(LONG) @ X.T + LONG(coef0), 0.25, res.labels, 2)
    assert res.objective == pytest.approx(Q, rel=1e-4)
    assert res.loo_mse == pytest.approx(error, rel=1e-4)


@pytest.mark.parametrize("shift", [0.0, 1e6])
@pytest.mark.parametrize("sigma", [1e-20, 1e-150])
@pytest.mark.filterwarnings("ignore:no point tells")
def test_a_narrow_kernel_is_one_on_equal_points(sigma, shift):
    X = np.repeat(points(10), 2, axis=0) + shift
    res = fastmmc.umc_rls(X, 2, sigma=sigma, n_init=1, random_state=0, sizes="equal")
    K = (X[:, None] == X).all(axis=2).astype(float)
    assert res.objective == pytest.approx(naive.risk(naive.hat_matrix(K, 0.25), res.labels, 2))
    kernel = Kernel("rbf", sigma=sigma)
    np.testing.assert_array_equal(np.diag(kernel.block(X, X)), kernel_diagonal(kernel, X))


def test_widths_between_narrow_and_wide_are_exact():
    X = points() + 1e3
    for sigma in np.geomspace(1e-3, 1e3, 13):
        K = Kernel("rbf", sigma=sigma).block(X, X)
        np.testing.assert_allclose(K, gaussian(X, sigma).astype(float), atol=1e-5)


@pytest.mark.parametrize(
    ("params", "names"),
    [
        ({"kernel": "poly", "gamma": 1e300}, r"gamma=1e\+300"),
        ({"kernel": "poly", "coef0": 1e200}, r"coef0=1e\+200"),
        ({"kernel": "poly", "degree": 5000}, "degree=5000"),
    ],
)
@pytest.mark.parametrize("rank", [None, 10])
def test_kernel_values_that_overflow_name_their_parameters(params, names, rank):
    with pytest.raises(
        ValueError, match=rf"kernel='poly' gives values that are too large.*{names}"
    ):
        fastmmc.umc_rls(1e3 * points(), 2, rank=rank, **params, sizes="equal")


@pytest.mark.parametrize("kernel", ["linear", "poly"])
@pytest.mark.parametrize("rank", [None, 10])
def test_points_that_overflow_are_refused(kernel, rank):
    with pytest.raises(ValueError, match=f"kernel='{kernel}' gives values that are too large"):
        fastmmc.umc_rls(1e200 * points(), 2, kernel=kernel, rank=rank, sizes="equal")


def test_points_that_are_infinitely_far_apart_are_alike_to_none():
    K = Kernel("rbf", sigma=1.0).block(1e200 * points(), 1e200 * points())
    np.testing.assert_allclose(K, np.eye(60), rtol=0, atol=1.01 * np.finfo(np.float64).eps ** 2.0)


def test_leave_one_out_error_of_degenerate_labels():
    """As defined: a model of no points predicts 0."""
    single = fastmmc.umc_rls([[1.0]], 1, lam=1e-10, sizes="equal")
    assert single.loo_mse == pytest.approx(1.0)
    for k, params in ((1, {}), (60, {}), (2, {"target_sizes": [1, 59]})):
        for lam in (1e-9, 0.25):
            res = fastmmc.umc_rls(
                points(), k, lam=lam, sigma=1.5, n_init=1, **params, sizes="equal"
            )
            _, error = figures(gaussian(points(), 1.5), lam, res.labels, k)
            assert res.loo_mse == pytest.approx(error, rel=1e-4)


@pytest.mark.parametrize("name", ["wta", "fscl", "rpcl", "c-rpcl", "o-lcvqe", "lcvqe", "cvqe"])
def test_prototypes_that_overflow_are_refused(name):
    init = np.outer([1.0, 2.0], np.full(3, 1e160))
    with pytest.raises(ValueError, match="init must have no values beyond"):
        METHODS[name].function(points(), 2, init=init)


class _Ended:
    """A search that has ended."""

    status = Status.CONVERGED

    def __init__(self, objective, history=()):
        self.objective, self.history = objective, np.array(history)

    def step(self, budget):
        return True

    def fraction(self):
        return 1.0

    def finish(self):
        pass


@pytest.mark.parametrize(
    ("objectives", "history", "best", "wrong"),
    [
        ([np.nan, 2.0, 1.0], [1.0], 2, None),
        ([np.nan, np.inf], [1.0], 0, "objective"),
        ([np.nan], [1.0], 0, "objective"),
        ([1.0], [np.inf, 1.0], 0, "history"),
    ],
)
def test_figures_that_are_not_finite_are_told_of(objectives, history, best, wrong):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        outcome = execution.best_of_restarts(
            lambda i: _Ended(objectives[i], history), len(objectives), execution.RunControl()
        )
    assert outcome.best_init == best
    assert outcome.status == (Status.NUMERICAL if wrong else Status.CONVERGED)
    assert [str(w.message).startswith(f"{wrong} of the result") for w in caught] == [True] * bool(
        wrong
    )


def call(name, X, k=2, **params):
    method = METHODS[name]
    return method.function(X, *(() if method.binary else (k,)), **params)


@pytest.mark.jit
@pytest.mark.parametrize("name", sorted(METHODS))
def test_equal_points_are_told_of_once(name):
    X = np.ones((50, 2))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(name, X, random_state=0) if name not in ("sdp-mmc", "gmmc") else call(name, X)
    texts = [str(w.message) for w in caught if w.category is ConvergenceWarning]
    told = r"only 1 distinct point|found 1 cluster,|1 of 2 clusters .* its points are equal"
    assert len(texts) == 1 and re.search(told, texts[0])
    assert caught[0].filename == __file__


@pytest.mark.jit
def test_fewer_distinct_points_than_clusters_are_told_of():
    X = np.repeat(points(4), 10, axis=0)
    for name in ("umc-rls", "wta", "lcvqe"):
        with pytest.warns(
            ConvergenceWarning, match="X has only 4 distinct points, fewer than the 6"
        ):
            call(name, X, 6, random_state=0)


@pytest.mark.parametrize("params", [{"sigma": 0.3}, {"gamma": 11.0}, {"lam": 1e9}])
@pytest.mark.parametrize("k", [2, 10])
def test_labels_that_no_point_tells_are_told_of(digits, k, params):
    X = digits[0][:300]
    with pytest.warns(ConvergenceWarning, match="no point tells the cluster .* sigma="):
        res = fastmmc.umc_rls(X, k, n_init=1, random_state=0, **params, sizes="equal")
    assert res.loo_mse == pytest.approx(1.0, abs=0.01)


@pytest.mark.jit
@pytest.mark.parametrize(("k", "rank"), [(2, 50), (3, None), (10, 50), (30, None)])
def test_ordinary_data_does_not_warn(digits, k, rank):
    rng = np.random.default_rng(0)
    sets = [fastmmc.datasets.load(name)[0] for name in ("iris", "moons")]
    sets += [digits[0][:300], rng.standard_normal((200, 2)), rng.standard_normal((200, 50))]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # One start may fit far worse than other sizes do, and these sets have other classes.
        warnings.filterwarnings("ignore", "clusters of free sizes")
        for X in sets:
            for lam in (0.01, 4.0):
                fastmmc.umc_rls(X, k, lam=lam, rank=rank, n_init=1, random_state=0, sizes="equal")


@pytest.mark.jit
def test_one_cluster_left_is_told_of():
    X = points() / 100
    init = np.array([[0.0, 0.0, 0.0], [9.0, 9.0, 9.0]])
    with pytest.warns(ConvergenceWarning, match="found 1 cluster, fewer than the 2"):
        res = fastmmc.wta(X, 2, init=init, random_state=0)
    assert res.n_active == 1
