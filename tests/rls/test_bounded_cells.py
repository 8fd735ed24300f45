"""Labels of bounded sizes that are searched on cells of many points."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import fastmmc
from fastmmc import Status
from fastmmc.core import execution
from fastmmc.rls.engine.population import cut
from fastmmc.rls.planning import wanted_cells
from tests.rls import naive
from tests.rls.points import gaussians


def noise(n=300):
    return np.random.default_rng(0).standard_normal((n, 2))


RULES = [
    {},
    {"balance": 0},
    {"balance": 0.1},
    {"target_sizes": [0.5, 0.3, 0.2], "balance": 0.05},
    {"target_sizes": [150, 100, 50]},
    {"min_size": 90, "max_size": 110, "balance": 0.4},
    {"max_size": 100},
]


@pytest.mark.jit
@pytest.mark.usefixtures("few_cells")
@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_bounds_hold_and_no_move_within_them_helps(rule, dtype):
    X = noise().astype(dtype)
    factor = fastmmc.factor(X, rank=40, random_state=0)
    result = fastmmc.umc_rls(factor, 3, sizes="equal", random_state=0, **rule)
    assert result.converged and result.params["method"] == "memetic"
    lower, upper = result.size_bounds.T
    assert (result.sizes >= lower).all() and (result.sizes <= upper).all()
    assert (upper - lower).max() <= 300 * 0.8 / 3 + 1
    Z = factor.Z.astype(np.float64)
    R = Z @ Z.T
    assert result.objective == pytest.approx(naive.risk(R, result.labels, 3))
    shifts = naive.shifts(R, result.labels, 3)
    is_open = (result.sizes < upper) & (result.sizes > lower)[result.labels][:, None]
    assert shifts[is_open & (np.arange(3) != result.labels[:, None])].min(initial=0.0) > -1e-6


@pytest.mark.jit
@pytest.mark.usefixtures("few_cells")
def test_clusters_of_the_sizes_told_are_found():
    X, y = gaussians([200, 60, 100])
    told = {"target_sizes": [60, 200, 100], "balance": 0}
    result = fastmmc.umc_rls(X, 3, rank=80, random_state=0, **told)
    assert adjusted_rand_score(y, result.labels) > 0.98
    assert_array_equal(result.sizes, [60, 200, 100])


@pytest.mark.jit
@pytest.mark.usefixtures("few_cells")
def test_known_labels_are_kept_within_bounds():
    X, y = gaussians([100, 100, 100])
    known = np.full(len(y), -1)
    known[::20] = y[::20]
    result = fastmmc.umc_rls(X, 3, rank=60, known_labels=known, balance=0, random_state=0)
    assert_array_equal(result.labels[::20], y[::20])
    assert_array_equal(result.sizes, 100)


@pytest.mark.jit
@pytest.mark.usefixtures("few_cells")
def test_labels_are_the_same_for_any_number_of_threads():
    args = {"sizes": "equal", "rank": 50, "random_state": 3}
    one, four = (fastmmc.umc_rls(noise(), 5, n_jobs=m, **args) for m in (1, 4))
    assert_array_equal(one.labels, four.labels)
    assert one.objective == four.objective


@pytest.mark.jit
@pytest.mark.usefixtures("few_cells")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("k", [2, 4, 7])
def test_equal_points(k):
    X = np.repeat(np.eye(4), 60, axis=0)
    result = fastmmc.umc_rls(X, k, balance=0, random_state=0)
    assert np.ptp(result.sizes) <= 1


@pytest.mark.jit
@pytest.mark.usefixtures("few_cells")
def test_one_column_and_sparse_points():
    X = noise()[:, :1]
    dense, thin = (
        fastmmc.umc_rls(points, 3, sizes="equal", rank=20, random_state=0)
        for points in (X, sparse.csr_array(X))
    )
    assert dense.sizes.sum() == 300 and adjusted_rand_score(dense.labels, thin.labels) > 0.99


@pytest.mark.jit
@pytest.mark.usefixtures("few_cells")
@pytest.mark.parametrize("calls", [1, 2, 4])
def test_a_stop_gives_back_labels_within_bounds(calls, monkeypatch):
    # A fast machine ends before the fourth call if these are as far apart as usual.
    monkeypatch.setattr(execution, "POLL_SECONDS", 0.005)
    seen = []

    def stop(progress):
        seen.append(progress.fraction)
        return len(seen) == calls

    X = np.random.default_rng(0).standard_normal((200_000, 2))
    with pytest.warns(ConvergenceWarning, match="callback"):
        result = fastmmc.umc_rls(X, 3, balance=0, random_state=0, callback=stop)
    assert result.status == Status.CALLBACK and np.ptp(result.sizes) <= 1


def test_what_is_asked_of_the_search_is_done():
    def cells(n=20_000, k=5, **told):
        return wanted_cells(fastmmc.UMCRLS(k, **told), n, k)

    bounds = {"balance": 0.1}, {"target_sizes": [4_000] * 5}
    given = {"init": "kmeans"}, {"init": np.zeros(20_000, int)}
    for told in ({}, {"method": "shaking"}, {"rank": 300}, {"n_init": 30}, *bounds, *given):
        assert cells(**told) == 840  # 630 times the eighth root of 10
    for told in ({"method": "steepest"}, {"method": "stochastic"}):
        assert cells(**told) == 0 and cells(**told, sizes="free") == 840
    assert cells(600) == 0 and cells(601) == cells(1_800) == 600
    assert cells(10_000, method="shaking") == 0 < cells(10_001, method="shaking")
    assert [cells(k=k) for k in (1, 30, 300, 2_000, 5_001)] == [808, 1_040, 3_200, 4_500, 10_002]


@pytest.mark.usefixtures("few_cells")
@pytest.mark.parametrize("sizes", ["equal", "free"])
def test_the_rank_is_at_most_the_number_of_points(sizes):
    X = np.random.default_rng(0).normal(size=(150, 2))
    result = fastmmc.umc_rls(X, 60, sizes=sizes, random_state=0)
    assert result.params["rank"] == 150 and (result.sizes > 0).all()


def test_the_paper_s_searches_are_on_all_points_of_a_dense_hat_matrix():
    def cells(**told):
        call = fastmmc.UMCRLS(5, **told)
        return wanted_cells(call, 20_000, 5, is_linked=True, is_dense=True)

    for method in ("shaking", "steepest", "stochastic"):
        assert cells(method=method) == 0 < cells(method=method, sizes="free")
    assert cells(method="memetic") == 840


@pytest.mark.jit
@pytest.mark.usefixtures("few_cells")
@pytest.mark.parametrize("told", [{}, {"sizes": "equal"}], ids=str)
def test_a_path_searches_what_single_calls_do(told):
    path = fastmmc.umc_rls_path(noise(), 3, [0.1, 1.0], random_state=0, **told)
    for result, lam in zip(path, [0.1, 1.0], strict=True):
        one = fastmmc.umc_rls(noise(), 3, lam=lam, random_state=0, **told)
        assert result.params == one.params and one.params["rank"] <= 40
        assert_array_equal(result.labels, one.labels)


@pytest.mark.usefixtures("few_cells")
def test_a_dense_hat_matrix_has_one_start():
    factor = fastmmc.factor(noise(150), random_state=0)
    result = fastmmc.umc_rls(factor, 2, sizes="equal", random_state=0)
    assert result.params["method"] == "memetic"
    assert len(result.objectives) == 1


@pytest.mark.jit
@pytest.mark.usefixtures("few_cells")
@pytest.mark.parametrize("method", ["shaking", "memetic"])
@pytest.mark.parametrize("kind", ["right", "random"])
def test_given_labels_are_made_no_worse(method, kind, rng):
    X, y = gaussians([100, 100, 100])
    given = y if kind == "right" else rng.permutation(y)
    result = fastmmc.umc_rls(X, 3, method=method, init=given, rank=60, random_state=0)
    assert result.sizes.tolist() == [100, 100, 100]
    assert adjusted_rand_score(y, result.labels) > 0.98


@pytest.mark.usefixtures("few_cells")
def test_given_labels_that_no_cells_have_are_descended_from():
    # Points of one place in different clusters: cells hold one label each.
    X = np.repeat(np.random.default_rng(0).standard_normal((30, 2)), 10, axis=0)
    best = fastmmc.umc_rls(X, 2, method="stochastic", balance=0.1, rank=20, random_state=0)
    again = fastmmc.umc_rls(X, 2, init=best.labels, balance=0.1, rank=20, random_state=0)
    assert again.objective <= best.objective + 1e-9


def test_points_are_cut_into_clusters_of_the_sizes_asked_for():
    X, y = gaussians([120, 60, 120])
    labels = cut(X, np.array([120, 180]))
    assert np.bincount(labels).tolist() == [120, 180]
    labels = cut(X, np.array([37, 1, 100, 0, 162]))
    assert np.bincount(labels, minlength=5).tolist() == [37, 1, 100, 0, 162]
    # Parts lie together: of two of three far clusters, cut at the right place, none is cut in two.
    two = y != 1
    assert adjusted_rand_score(y[two], cut(X[two], np.array([120, 120]))) == 1.0
    assert np.bincount(cut(np.zeros((10, 2)), np.array([3, 7]))).tolist() == [3, 7]
