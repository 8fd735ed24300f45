"""Links choose between the usual search and a descent from k-means."""

from contextlib import nullcontext

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import fastmmc
from fastmmc.links import Links, check_pairs, join
from fastmmc.rls import link_choice
from tests.rls import naive
from tests.rls.test_linked import broken, some_links


def without_choice(monkeypatch, *args, **params):
    with monkeypatch.context() as patch:
        patch.setattr(link_choice, "LEAST_LINKS", np.inf)
        return fastmmc.umc_rls(*args, **params)


def standardized(name):
    X, y = fastmmc.datasets.load(name)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def test_reduced_links_imply_the_same_in_every_form():
    y = np.random.default_rng(0).integers(0, 3, 40)
    told = np.where(np.arange(40) % 3 == 0, y, -1)
    forms = [Links(check_pairs("must_link", told, 40), check_pairs("cannot_link", told, 40))]
    rows = np.flatnonzero(told >= 0)
    pairs = np.array([(b, a) for a in rows for b in rows if a < b])
    equal = y[pairs[:, 0]] == y[pairs[:, 1]]
    forms.append(Links(pairs[equal], pairs[~equal]))
    first, second = (links.reduced(40) for links in forms)
    np.testing.assert_array_equal(first.must, second.must)
    np.testing.assert_array_equal(first.cannot, second.cannot)
    assert len(first) == rows.size - 3 + 3
    np.testing.assert_array_equal(join(first.must, 40), join(pairs[equal], 40))
    assert first.n_violations(y) == 0
    assert len(Links(pairs[:0], pairs[:0]).reduced(40)) == 0


def test_what_chance_keeps_is_not_counted():
    links = Links(np.array([(0, 1), (2, 3), (0, 4)]), np.array([(0, 5)]))
    # Half of all pairs are together in clusters of these sizes.
    kept = link_choice._kept(links, np.array([0, 0, 0, 1, 1, 1]))
    np.testing.assert_allclose(kept, [0.5, -0.5, -0.5, 0.5])
    np.testing.assert_array_equal(link_choice._kept(links, np.zeros(6, dtype=int)), np.zeros(4))


def test_only_clear_gains_outweigh_the_objective():
    one, two, none = np.array([1.0, 0, 0]), np.array([1.0, 1, 0]), np.array([1.0, -1, 0])
    cases = [(one, False), (two, True), (none, False), (-two, False)]
    assert [link_choice.is_better(gains, False) for gains, _ in cases] == [c for _, c in cases]
    assert [link_choice.is_better(gains, True) for gains, _ in cases] == [True, True, True, False]


@pytest.mark.jit
@pytest.mark.parametrize("sizes", ["auto", "equal", "free"])
def test_a_descent_from_k_means_is_taken_where_it_keeps_more_hidden_links(sizes, monkeypatch):
    X, y = standardized("wine")
    F = fastmmc.factor(X, k=3)
    ways = set()
    for seed in range(4):
        args = {"sizes": sizes, "random_state": 0, **some_links(y, seed, 18)}
        res = fastmmc.umc_rls(F, 3, **args)
        usual = without_choice(monkeypatch, F, 3, **args)
        ways.add(res.params["init"])
        assert res.n_violations == 0
        if res.params["init"] == "random":
            np.testing.assert_array_equal(res.labels, usual.labels)
        else:
            assert adjusted_rand_score(res.labels, usual.labels) < 1
        objective = (naive.free_cost, naive.risk)[sizes == "equal"](F.R, res.labels, 3)
        assert res.objective == pytest.approx(objective)
        assert (res.predict(X) == res.labels).mean() > 0.95
        assert res.params["n_init"] == usual.params["n_init"]
    assert "kmeans" in ways


@pytest.mark.jit
def test_the_usual_search_is_kept_where_k_means_is_far_off():
    X, y = fastmmc.datasets.load("rings")
    for seed in range(3):
        res = fastmmc.umc_rls(X, y.max() + 1, random_state=0, **some_links(y, seed, 15))
        assert adjusted_rand_score(y, res.labels) == 1


@pytest.mark.jit
def test_few_links_given_labels_and_given_kernels_choose_nothing(monkeypatch):
    X, y = standardized("wine")
    few, links = some_links(y, 0, 4), some_links(y, 0, 18)
    gram = np.exp(-np.sum((X[:, None] - X) ** 2, axis=2) / 20)
    calls = [
        ((X, 3), few),
        ((X, 3), links | {"init": np.arange(178) % 3}),
        ((gram, 3), links | {"kernel": "precomputed"}),
        ((X, 1), {"must_link": links["must_link"]}),
    ]
    for args, params in calls:
        res = fastmmc.umc_rls(*args, random_state=0, **params)
        usual = without_choice(monkeypatch, *args, random_state=0, **params)
        np.testing.assert_array_equal(res.labels, usual.labels)
        assert len(res.objectives) == len(usual.objectives)


@pytest.mark.jit
def test_a_stop_during_the_choice_gives_the_usual_result(monkeypatch):
    X, y = standardized("wine")
    args = {"random_state": 0, **some_links(y, 3, 18)}
    usual = without_choice(monkeypatch, X, 3, **args)
    fractions = []

    def stop(progress):
        fractions.append(progress.fraction)
        return progress.fraction > 0.3

    with pytest.warns(ConvergenceWarning, match="callback"):
        res = fastmmc.umc_rls(X, 3, callback=stop, **args)
    assert res.status == fastmmc.Status.CALLBACK
    np.testing.assert_array_equal(res.labels, usual.labels)
    assert fractions == sorted(fractions)

    def interrupt(*args, **params):
        raise KeyboardInterrupt

    monkeypatch.setattr(link_choice, "k_means", interrupt)
    with pytest.warns(ConvergenceWarning):
        res = fastmmc.umc_rls(X, 3, **args)
    assert res.status == fastmmc.Status.INTERRUPTED
    np.testing.assert_array_equal(res.labels, usual.labels)


@pytest.mark.jit
@pytest.mark.parametrize("form", ["sparse", "float32", "weights", "duplicates", "one column"])
def test_every_kind_of_points_is_chosen_for(form):
    X, y = standardized("wine")
    links = some_links(y, 1, 18)
    params = {}
    if form == "sparse":
        X, params = csr_array(X), {"rank": 60}
    elif form == "float32":
        X = X.astype(np.float32)
    elif form == "weights":
        params = {"sample_weight": 0.5 + np.random.default_rng(0).random(y.size)}
    elif form == "duplicates":
        X = np.repeat([[0.0, 0.0], [1.0, 1.0]], 89, axis=0)
    else:
        X = X[:, :1]
    with pytest.warns(ConvergenceWarning) if form == "duplicates" else nullcontext():
        res = fastmmc.umc_rls(X, 3, random_state=0, **links, **params)
    assert broken(res.labels, **links) == res.n_violations
    assert form == "duplicates" or res.n_violations == 0


@pytest.mark.jit
def test_sizes_asked_for_hold_whichever_way_is_taken():
    X, y = standardized("wine")
    for seed in range(3):
        links = some_links(y, seed, 18)
        for sizes in ("equal", "free"):
            targets = {"target_sizes": np.bincount(y), "balance": 0.1, "sizes": sizes}
            res = fastmmc.umc_rls(X, 3, random_state=0, **targets, **links)
            assert (np.abs(res.sizes - np.bincount(y)) <= 0.1 * y.size / 3).all()
            assert res.n_violations == 0
