"""Searches of free sizes: bounds, and known answers."""

import warnings
from itertools import product

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import fastmmc
from fastmmc.core.execution import Status
from fastmmc.rls.bound import free_bound
from tests.rls import naive

CENTERS = np.array([[0.0, 0.0], [12.0, 0.0], [0.0, 12.0]])


def blobs(sizes, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(sizes)), sizes)
    return CENTERS[y] + rng.standard_normal((len(y), 2)), y


def quiet(X, k, **params):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return fastmmc.umc_rls(X, k, sizes="free", random_state=0, **params)


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
    # Unlike labellings of blobs, those of noise differ, so that there are children.
    noise = np.random.default_rng(0).standard_normal((300, 2))
    with pytest.warns(ConvergenceWarning, match="stopped"):
        res = fastmmc.umc_rls(X, 3, sizes="free", max_time=1e-3, random_state=0)
    assert res.status == Status.TIME_LIMIT
    with pytest.warns(ConvergenceWarning, match="stopped"):
        endless = {"patience": 10**9, "callback": lambda progress: True}
        res = fastmmc.umc_rls(noise, 3, sizes="free", random_state=0, **endless)
    assert res.status == Status.CALLBACK
    with pytest.warns(ConvergenceWarning, match="stopped"):
        res = fastmmc.umc_rls(noise, 3, sizes="free", max_iter=2, random_state=0)
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
