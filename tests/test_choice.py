"""Tests of the choice of width and size rule by a vote."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import fastmmc
from fastmmc.choice import RULES, SAMPLE, WIDTHS, agreement, weigh
from fastmmc.gram import squared_distances
from fastmmc.rls.genie import Genie


def blobs(sizes, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(3), sizes)
    return rng.normal(size=(y.size, 2)) + np.array([[0, 0], [20, 0], [0, 20]])[y], y


@pytest.fixture(scope="module")
def iris():
    X, y = fastmmc.datasets.load("iris")
    return X, y, fastmmc.cluster(X, 3, random_state=0)


def test_finds_blobs_of_any_sizes():
    X, y = blobs([900, 80, 20])
    result = fastmmc.cluster(X, 3, random_state=0)
    assert adjusted_rand_score(y, result.labels) == 1.0
    assert sorted(result.sizes) == [20, 80, 900]
    assert (result.predict(X) == result.labels).all()


def test_chooses_on_a_sample_of_many_points():
    X, y = blobs([2700, 240, 60])
    result = fastmmc.cluster(X, 3, random_state=0)
    assert adjusted_rand_score(y, result.labels) == 1.0
    assert {one.labels.size for one in result.candidates} == {SAMPLE}
    assert result.chosen["lam"] == pytest.approx(0.25 * len(X) / SAMPLE)


def test_iris(iris):
    X, y, result = iris
    assert adjusted_rand_score(y, result.labels) > 0.7
    again = fastmmc.cluster(X, 3, random_state=0)
    assert_array_equal(again.labels, result.labels)


def test_chosen_parameters_make_the_labels_that_won(iris):
    X, _, result = iris
    winner = next(one for one in result.candidates if one.rule in RULES)
    assert_array_equal(fastmmc.umc_rls(X, 3, **result.chosen).labels, result.labels)
    assert_array_equal(winner.labels, result.labels)
    assert result.chosen["sigma"] == winner.sigma
    assert result.params["sigma"] == winner.sigma


def test_table_of_candidates(iris):
    X, _, result = iris
    table = result.candidates
    rules = [one.rule for one in table]
    assert {rule: rules.count(rule) for rule in rules} == {
        "near": 4,
        "polished": 4,
        "linked": 16,
        "free": 4,
        "genie": 4,
    }
    assert {one.f for one in table} == set(WIDTHS)
    assert len({one.name for one in table}) == len(table)
    assert sum(one.weight for one in table) == pytest.approx(1.0)
    assert [one.vote for one in table] == sorted((one.vote for one in table), reverse=True)


def test_vote_is_that_of_the_definition(iris):
    X, _, result = iris
    table = result.candidates
    weights = []
    for one in table:
        F = fastmmc.factor(X, sigma=one.sigma)
        E = (one.labels[:, None] == np.arange(3)).astype(float)
        out = (F.R @ E - np.diag(F.R)[:, None] * E) / (1.0 - np.diag(F.R))[:, None]
        assert one.criterion == pytest.approx(np.mean(np.sum((out - E) ** 2, 0) / E.sum(0)))
        shares = E.mean(axis=0)
        price = np.exp(-(np.log(3) + np.sum(shares * np.log(shares))))
        same = sum(other.rule == one.rule for other in table)
        weights.append(one.criterion**-2 * price / same)
    weights = np.array(weights) / sum(weights)
    assert_allclose([one.weight for one in table], weights, rtol=1e-8)
    for one in table:
        votes = [adjusted_rand_score(one.labels, other.labels) for other in table]
        assert one.vote == pytest.approx(np.dot(weights, votes))


def test_agreement_is_the_adjusted_rand_index():
    rng = np.random.default_rng(0)
    labellings = [rng.integers(4, size=40) for _ in range(5)] + [np.zeros(40, int)] * 2
    wanted = [[adjusted_rand_score(a, b) for b in labellings] for a in labellings]
    assert_allclose(agreement(labellings, 4), wanted, atol=1e-12)


def test_weights_price_unequal_sizes_and_share_by_rule():
    even, uneven = np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1])
    weights = weigh(np.array([0.1, 0.1, 0.0]), [even, uneven, even], ["a", "b", "b"], 2)
    price = 2.0 * 0.75**0.75 * 0.25**0.25
    assert weights[0] / weights[1] == pytest.approx(2.0 * price)
    assert weights.argmax() == 2
    assert np.isfinite(weights).all()


def test_genie_without_a_limit_is_single_linkage(monkeypatch):
    X, _ = blobs([40, 30, 20])
    monkeypatch.setattr("fastmmc.rls.genie.GINIS", (1.0, 0.0))
    free, even = Genie(squared_distances(X, X)).cut(5).values()
    single = fcluster(linkage(X, "single"), 5, "maxclust")
    assert adjusted_rand_score(free, single) == 1.0
    assert np.bincount(even).min() > np.bincount(free).min()


@pytest.mark.parametrize("n, k", [(1, 1), (2, 2), (5, 1), (6, 6), (7, 3)])
def test_few_points(n, k):
    X = np.random.default_rng(0).normal(size=(n, 2))
    result = fastmmc.cluster(X, k, random_state=0)
    assert result.sizes.sum() == n
    assert (result.sizes > 0).all()


def test_equal_points():
    with pytest.warns(ConvergenceWarning, match="only 1 distinct point"):
        result = fastmmc.cluster(np.ones((12, 2)), 2, random_state=0)
    assert result.sizes.sum() == 12


def test_estimator_is_the_function(iris):
    X, _, result = iris
    model = fastmmc.AutoMMC(3, random_state=0).fit(X)
    assert_array_equal(model.labels_, result.labels)
    assert model.chosen_["sigma"] == result.chosen["sigma"]
    assert_array_equal(model.predict(X), result.predict(X))


def test_refuses_more_clusters_than_points():
    with pytest.raises(ValueError, match="k must be"):
        fastmmc.cluster(np.ones((3, 2)), 4)


def test_finds_the_number_of_blobs():
    X, y = blobs([200, 80, 20])
    result = fastmmc.cluster(X, max_k=6, random_state=0)
    assert adjusted_rand_score(y, result.labels) == 1.0
    assert list(result.scores) == [2, 3, 4, 5, 6]
    assert max(result.scores, key=result.scores.get) == 3
    assert fastmmc.AutoMMC(max_k=6, random_state=0).fit(X).scores_ == result.scores


@pytest.mark.parametrize("n", [4, 5, 9])
def test_number_of_few_points(n):
    X = np.random.default_rng(0).normal(size=(n, 2))
    result = fastmmc.cluster(X, random_state=0)
    assert result.sizes.sum() == n


def test_number_needs_points():
    with pytest.raises(ValueError, match="at least 4 points"):
        fastmmc.cluster(np.ones((3, 2)))


@pytest.mark.parametrize("k", [12, "auto"])
def test_time_limit(k):
    X = np.random.default_rng(0).normal(size=(800, 5))
    with pytest.warns(ConvergenceWarning, match="max_time was reached"):
        result = fastmmc.cluster(X, k, max_time=1e-6, random_state=0)
    assert result.status.name == "TIME_LIMIT"
    assert result.sizes.sum() == len(X)
    if k == "auto":
        assert list(result.scores) == [2]
