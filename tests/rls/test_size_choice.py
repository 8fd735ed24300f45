"""Tests of sizes that nobody told, and of the width that goes with a number of clusters."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import scale

import fastmmc
from fastmmc import Status
from fastmmc.gram import Kernel, median_width, neighbour_width
from fastmmc.rls import free, search
from fastmmc.rls.free import Groups
from fastmmc.rls.size_choice import SizeChoice
from fastmmc.sizes import size_rule
from tests.rls import naive


def gaussians(sizes, seed=0, spread=20.0, d=2):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(sizes)), sizes)
    centers = spread * rng.permutation(np.eye(len(sizes), max(d, len(sizes))))
    return rng.standard_normal((y.size, centers.shape[1])) + centers[y], y


FORMS = [{}, {"rank": 200}, {"dtype": np.float32}, {"kernel": "laplacian"}]


@pytest.mark.jit
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_sizes_that_differ_are_found(form):
    X, y = gaussians([400, 40, 20])
    result = fastmmc.umc_rls(X, 3, random_state=0, **form)
    assert adjusted_rand_score(y, result.labels) == 1.0
    assert result.params["sizes"] == "auto" and result.converged
    assert_array_equal(result.predict(X), result.labels)


@pytest.mark.jit
def test_a_gram_matrix_and_a_factor_do_the_same():
    X, y = gaussians([300, 30, 30])
    direct = fastmmc.umc_rls(X, 3, random_state=0)
    gram = Kernel("rbf", sigma=direct.params["sigma"]).block(X, X)
    of_gram = fastmmc.umc_rls(gram, 3, kernel="precomputed", random_state=0)
    of_factor = fastmmc.umc_rls(fastmmc.factor(X, k=3), 3, random_state=0)
    assert_array_equal(direct.labels, of_factor.labels)
    for result in (direct, of_gram, of_factor):
        assert adjusted_rand_score(y, result.labels) == 1.0


@pytest.mark.jit
def test_overlapping_clusters_keep_about_equal_sizes():
    X, _ = fastmmc.datasets.load("digits")
    sizes = fastmmc.umc_rls(X, 10, random_state=0).sizes
    free = fastmmc.umc_rls(X, 10, sizes="free", random_state=0).sizes
    assert sizes.min() > 100 > free.min()


@pytest.mark.jit
@pytest.mark.parametrize("rank", [None, 80])
def test_many_points_go_through_a_sample(monkeypatch, rank):
    monkeypatch.setattr(search, "SAMPLE", 200)
    monkeypatch.setattr(free, "SAMPLE", 200)
    X, y = gaussians([600, 100, 60])
    result = fastmmc.umc_rls(X, 3, rank=rank, random_state=0)
    assert adjusted_rand_score(y, result.labels) == 1.0


@pytest.mark.filterwarnings("ignore:clusters of free sizes")
def test_what_is_said_of_a_search_or_of_sizes_ends_the_choice():
    X, _ = gaussians([60, 30, 15])

    def sizes(**told):
        return fastmmc.umc_rls(X, 3, random_state=0, n_init=1, **told).params["sizes"]

    assert sizes() == sizes(min_size=5) == sizes(bound=True) == "auto"
    told = [{"method": "shaking"}, {"balance": 9.0}, {"target_sizes": [60, 30, 15]}]
    told += [{"init": "kmeans"}, {"n_rounds": 5}, {"polish": True}, {"batches": "exact"}]
    for one in told:
        assert sizes(**one) == "equal", one


def test_bounds_hold():
    X, _ = gaussians([90, 20, 10])
    result = fastmmc.umc_rls(X, 3, min_size=25, max_size=60, random_state=0)
    assert result.sizes.min() >= 25 and result.sizes.max() <= 60


@pytest.mark.jit
def test_more_starts_are_more_searches_for_equal_sizes():
    X, _ = fastmmc.datasets.load("digits")
    one, three = (fastmmc.umc_rls(X[:400], 10, n_init=m, random_state=0) for m in (1, 3))
    assert three.n_iter > one.n_iter and three.objectives.shape == (1,)


@pytest.mark.jit
def test_labels_of_about_equal_sizes_do_not_depend_much_on_the_seed():
    X = scale(fastmmc.datasets.load("breast_cancer")[0])
    found = [fastmmc.umc_rls(X, 2, random_state=seed).labels for seed in range(4)]
    assert min(adjusted_rand_score(found[0], labels) for labels in found) > 0.9


@pytest.mark.jit
def test_a_stop_gives_back_labels():
    X, _ = fastmmc.datasets.load("digits")
    seen = []

    def stop(progress):
        seen.append(progress.fraction)
        return len(seen) == 3

    with pytest.warns(ConvergenceWarning, match="callback"):
        result = fastmmc.umc_rls(X, 10, random_state=0, callback=stop)
    assert result.status == Status.CALLBACK and result.sizes.min() > 0


def test_error_is_that_of_the_formula():
    X, y = gaussians([12, 9, 6], spread=2.0)
    factor = fastmmc.factor(X, lam=0.3)
    plan = SimpleNamespace(k=3, rule=size_rule(len(X), 3), near=None, n_near=1)
    choice = SizeChoice(Groups.of_points(factor.R), plan, 0, None)
    choice.neighbours = np.argsort(naive.hat_distances(factor.R), axis=1)[:, :10]
    got = choice._error(y)
    assert_allclose(got, min(naive.priced_errors(factor.R, y, 3, 10)))


@pytest.mark.parametrize("metric", ["sqeuclidean", "cityblock"])
def test_width_is_the_median_distance_to_a_neighbour(metric):
    X = np.random.default_rng(0).standard_normal((60, 3))
    got = neighbour_width(10, X, metric)
    assert_allclose(got, naive.neighbour_width(X, 12, metric))
    assert neighbour_width(4, X, metric) == median_width(X, metric)
    assert neighbour_width(2, X, metric) == median_width(X, metric)


def test_width_of_equal_points():
    X = np.repeat(np.eye(2), 30, axis=0)
    assert neighbour_width(8, X) == median_width(X)
    assert neighbour_width(3, np.ones((1, 2))) == 1.0
