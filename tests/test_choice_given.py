"""Tests of what a call of the choice says of points and sizes."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.datasets import make_blobs, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import fastmmc
from fastmmc.choice.candidates import KERNELS
from fastmmc.choice.given import LEAST_LIKELY, POWER, Given
from fastmmc.choice.methods import _ChoiceCall
from fastmmc.choice.widths import Widths
from fastmmc.data.sizes import size_rule
from fastmmc.rls.engine import coarse
from fastmmc.rls.engine.coarse import TOTAL_MASS, coarsen, count_cells

# Few points are their own cells, many are in cells.
CELLS, MANY = 250, 700


@pytest.fixture(autouse=True)
def few_cells(monkeypatch):
    """Make a choice of many points as quick as one of some hundred."""
    monkeypatch.setattr(coarse, "CELLS", CELLS)


def blobs(n, k=4, seed=0, spread=2.5):
    return make_blobs(n, n_features=3, centers=k, cluster_std=spread, random_state=seed)


def some_known(y, share=0.05, seed=0):
    rng = np.random.default_rng(seed)
    known = np.full(y.size, -1)
    rows = rng.choice(y.size, int(share * y.size), replace=False)
    known[rows] = y[rows]
    return known


def some_links(y, share=0.05, seed=0):
    rng = np.random.default_rng(seed)
    pairs = np.array([rng.choice(y.size, 2, replace=False) for _ in range(int(share * y.size))])
    same = y[pairs[:, 0]] == y[pairs[:, 1]]
    return {"must_link": pairs[same], "cannot_link": pairs[~same]}


def given_of(n, k, **told):
    return Given.of(_ChoiceCall(X=None, **told), n, k)


@pytest.mark.parametrize(("n", "seed"), [(200, 0), (MANY, 2)])
def test_known_labels_are_kept(n, seed):
    X, y = blobs(n, seed=seed)
    known = some_known(y, seed=seed)
    known[:3] = (y[:3] + 1) % 4  # a few that no kernel would say
    result = fastmmc.cluster(X, 4, known_labels=known, random_state=0)
    assert_array_equal(result.labels[known >= 0], known[known >= 0])
    # So every candidate does, of the cells that the choice was made on.
    for one in result.candidates:
        assert_array_equal(one.labels[result.cells][known >= 0], known[known >= 0])


@pytest.mark.parametrize(("n", "seed"), [(200, 1), (MANY, 3)])
def test_links_are_kept(n, seed):
    X, y = blobs(n, seed=seed)
    links = some_links(y, seed=seed)
    result = fastmmc.cluster(X, 4, **links, random_state=0)
    (a, b), (c, d) = links["must_link"].T, links["cannot_link"].T
    assert (result.labels[a] == result.labels[b]).all()
    assert (result.labels[c] != result.labels[d]).all()
    assert result.n_violations == 0 and result.n_constraints == len(a) + len(c)


@pytest.mark.parametrize(
    "n, told, lower, upper",
    [
        (200, {"balance": 0}, 1.0, 1.0),
        (MANY, {"balance": 0.1}, 0.9, 1.1),
        (200, {"min_size": 0.8}, 0.8, 4.0),
        (MANY, {"max_size": 1.2}, 0.0, 1.2),
    ],
)
def test_sizes_are_within_their_bounds(n, told, lower, upper):
    X, _ = make_blobs([n // 2, n // 4, n // 8, n // 8], n_features=3, random_state=0)
    n = len(X)
    told = {
        name: value if name == "balance" else int(value * n / 4) for name, value in told.items()
    }
    result = fastmmc.cluster(X, 4, **told, random_state=0)
    mean = n / 4
    assert (result.sizes >= np.floor(lower * mean)).all()
    assert (result.sizes <= np.ceil(upper * mean)).all()
    assert (result.size_bounds[:, 0] <= result.sizes).all()
    assert (result.sizes <= result.size_bounds[:, 1]).all()
    again = fastmmc.umc_rls(X, 4, **result.chosen)
    assert (again.sizes >= np.floor(lower * mean)).all()


@pytest.mark.parametrize("seed", [29, 41])
def test_chosen_sizes_leave_room_for_the_labels_that_won(seed):
    X = np.round(np.random.default_rng(seed).normal(size=(80, 2)))
    result = fastmmc.cluster(X, 3, random_state=0)
    assert result.winner.rule == "near"
    assert result.sizes.max() > 1.4 * 80 / 3  # equal rows are one point to the search
    again = fastmmc.umc_rls(X, 3, **result.chosen)
    assert again.objective <= result.objective * (1 + 1e-9)


def test_chosen_sizes_leave_room_for_weights():
    rng = np.random.default_rng(20)
    X, weights = np.round(rng.normal(size=(60, 2))), rng.uniform(0.1, 5.0, 60)
    result = fastmmc.cluster(X, 3, sample_weight=weights, random_state=0)
    masses = np.bincount(result.labels, weights)
    assert result.winner.rule == "near" and masses.max() > 1.4 * masses.mean()
    again = fastmmc.umc_rls(X, 3, sample_weight=weights, **result.chosen)
    assert again.objective <= result.objective * (1 + 1e-9)


@pytest.mark.parametrize("n", [200, MANY])
def test_target_sizes_are_met(n):
    X, y = make_blobs([n // 2, n // 4, n // 4], n_features=3, random_state=0)
    result = fastmmc.cluster(X, 3, target_sizes=[n // 4, n // 2, n // 4], random_state=0)
    assert_array_equal(result.sizes, [n // 4, n // 2, n // 4])
    assert adjusted_rand_score(y, result.labels) > 0.9


def test_all_of_it_at_once():
    X, y = blobs(MANY)
    known, links = some_known(y, 0.02), some_links(y, 0.02, seed=1)
    w = np.random.default_rng(0).integers(1, 4, MANY)
    most = int(1.1 * w.sum() / 4)
    told = {"known_labels": known, "sample_weight": w, "max_size": most, **links}
    result = fastmmc.cluster(X, 4, **told, random_state=0)
    assert_array_equal(result.labels[known >= 0], known[known >= 0])
    assert result.n_violations == 0
    assert np.bincount(result.labels, w).max() <= most


def test_few_labels_tell_the_moons_apart(monkeypatch):
    monkeypatch.setattr(coarse, "CELLS", 600)  # every point is its own cell
    X, y = make_moons(400, noise=0.2, random_state=0)
    plain = adjusted_rand_score(y, fastmmc.cluster(X, 2, random_state=0).labels)
    scores = [
        adjusted_rand_score(
            y, fastmmc.cluster(X, 2, random_state=0, known_labels=some_known(y, seed=seed)).labels
        )
        for seed in range(5)
    ]
    assert np.mean(scores) > plain + 0.3


def test_an_integer_weight_is_as_many_rows(monkeypatch):
    monkeypatch.setattr(coarse, "CELLS", 600)  # every point is its own cell
    X, y = blobs(300)
    w = np.random.default_rng(0).integers(1, 4, 300)
    rows = np.repeat(np.arange(300), w)
    weighted = fastmmc.cluster(X, 4, sample_weight=w, random_state=0)
    repeated = fastmmc.cluster(X[rows], 4, random_state=0)
    assert_array_equal(weighted.labels[rows], repeated.labels)
    assert weighted.objective == pytest.approx(repeated.objective, rel=1e-6)
    for name in ("sigma", "lam"):
        assert weighted.params[name] == pytest.approx(repeated.params[name])
    known = some_known(y)
    weighted = fastmmc.cluster(X, 4, sample_weight=w, known_labels=known, random_state=0)
    assert_array_equal(weighted.labels[known >= 0], known[known >= 0])


@pytest.mark.slow
def test_weights_of_many_points():
    X, y = blobs(MANY, spread=1.2)
    rng = np.random.default_rng(0)
    found = [
        fastmmc.cluster(X, 4, sample_weight=w, random_state=0)
        for w in (rng.integers(1, 4, MANY), rng.random(MANY) / MANY, np.ones(MANY))
    ]
    plain = fastmmc.cluster(X, 4, random_state=0)
    assert_array_equal(found[2].labels, plain.labels)
    scores = [adjusted_rand_score(y, one.labels) for one in (*found, plain)]
    assert np.ptp(scores) < 0.05


def test_points_without_weight_take_the_label_that_the_others_predict():
    X, _ = blobs(300)
    w = np.ones(300)
    w[::7] = 0
    result = fastmmc.cluster(X, 4, sample_weight=w, random_state=0)
    rest = fastmmc.cluster(X[w > 0], 4, random_state=0)
    assert_array_equal(result.labels[w > 0], rest.labels)
    assert_array_equal(result.labels[w == 0], rest.predict(X[w == 0]))
    with pytest.raises(ValueError, match=r"known_labels concerns row 0, whose sample_weight is 0"):
        fastmmc.cluster(X, 4, sample_weight=w, known_labels=np.r_[0, np.full(299, -1)])


def test_cells_are_split_by_what_is_told_of_their_points():
    X, y = blobs(MANY)
    rng = np.random.default_rng(0)
    keys = np.where(rng.random(MANY) < 0.1, y, -1)
    w = rng.integers(1, 4, MANY).astype(float)
    whole = coarsen(X, 100, 4, np.random.default_rng(0))
    cells = whole.split(X, keys, w)
    for g in range(cells.masses.size):
        members = np.flatnonzero(cells.members == g)
        assert np.unique(keys[members]).size == np.unique(whole.members[members]).size == 1
        assert cells.masses[g] == w[members].sum() == cells.weights[g]
        assert_allclose(cells.points[g], np.average(X[members], axis=0, weights=w[members]))
        assert cells.members[cells.seeds[g]] == g
    assert cells.total == w.sum() and cells.n == MANY


@pytest.mark.parametrize("seed", range(3))
def test_likelihood_is_that_of_the_definition(seed):
    X, y = blobs(60, 3, seed)
    known, links = some_known(y, 0.1, seed), some_links(y, 0.2, seed)
    given = given_of(60, 3, known_labels=known, **links)
    cells = coarsen(X, 60, 3, np.random.default_rng(0))
    keys = given.keys(60, np.random.default_rng(0))
    kept = given.of_cells(cells.split(X, keys, None), keys)
    width = Widths(cells, lambda *told: None).at(10)
    R, E = width.factor.R, np.eye(3)[y]
    out = (R @ E - np.diag(R)[:, None] * E) / (1.0 - np.diag(R))[:, None]
    shares = np.maximum(out, 0) / np.maximum(out, 0).sum(axis=1, keepdims=True)
    wanted = [shares[i, h] for i, h in enumerate(given.known) if h >= 0]
    groups = given.merging.members
    for g in np.unique(groups):
        members = np.flatnonzero((groups == g) & (given.known < 0))
        wanted += [shares[a] @ shares[b] for a, b in zip(members, members[1:], strict=False)]
    lead = {key: np.flatnonzero(kept.merging.members == m)[0] for key, m in _group_of(kept, given)}
    pairs = {tuple(sorted((lead[a], lead[b]))) for a, b in groups[links["cannot_link"]]}
    wanted += [1 - shares[a] @ shares[b] for a, b in pairs]
    mean = np.exp(np.log(np.maximum(wanted, LEAST_LIKELY)).mean())
    assert kept.likelihood(width, y) == pytest.approx(mean**POWER)


def _group_of(kept, given):
    """Return pairs of a group of points and its group of cells, where each cell is a point."""
    return zip(given.merging.members, kept.merging.members, strict=True)


def test_without_anything_told_the_vote_is_the_plain_one():
    X, _ = blobs(200)
    plain = fastmmc.cluster(X, 4, random_state=0)
    told = {"known_labels": np.full(200, -1), "must_link": [], "sample_weight": np.ones(200)}
    result = fastmmc.cluster(X, 4, **told, min_size=1, random_state=0)
    assert_array_equal(result.labels, plain.labels)
    assert [one.vote for one in result.candidates] == [one.vote for one in plain.candidates]


@pytest.mark.slow
def test_links_of_more_points_than_cells_are_kept():
    X, y = blobs(3_000)
    links = some_links(y, 1.0)
    given = given_of(3_000, 4, **links)
    count = count_cells(3_000, 4)
    told = given.keys(count, np.random.default_rng(0)) >= 0
    assert 0 < np.count_nonzero(told) < 2 * count
    result = fastmmc.cluster(X, 4, **links, random_state=0)
    assert result.n_violations == 0
    plain = fastmmc.cluster(X, 4, random_state=0)
    scores = [adjusted_rand_score(y, one.labels) for one in (plain, result)]
    assert scores[1] > scores[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weights", [None, np.arange(1, 121)])
def test_everything_known(dtype, weights):
    X, y = blobs(120)
    result = fastmmc.cluster(X.astype(dtype), 4, known_labels=y, sample_weight=weights)
    assert_array_equal(result.labels, y)


def test_classes_that_are_empty():
    X, _ = blobs(120)
    result = fastmmc.cluster(X, 4, known_labels=np.zeros(120, dtype=int), min_size=0)
    assert_array_equal(result.sizes, [120, 0, 0, 0])


def test_equal_points_may_have_different_labels():
    X = np.repeat(np.random.default_rng(0).normal(size=(5, 2)), 20, axis=0)
    y = np.arange(100) % 3
    assert_array_equal(fastmmc.cluster(X, 3, known_labels=y).labels, y)
    result = fastmmc.cluster(X, 3, cannot_link=[(0, 1), (0, 2), (1, 2)], must_link=[(0, 99)])
    assert np.unique(result.labels[:3]).size == 3 and result.labels[0] == result.labels[99]
    assert np.ptp(fastmmc.cluster(X, 3, balance=0).sizes) == 1


@pytest.mark.parametrize("told", ["labels", "links"])
def test_equal_points_of_which_some_are_told_have_the_true_cost(told):
    """Rows that are merged and parted again keep their places in the hat matrix."""
    X, y = fastmmc.datasets.load("iris")
    X = X.round()
    given = some_links(y, 0.5) if told == "links" else {"known_labels": some_known(y, 0.2)}
    res = fastmmc.cluster(X, 3, standardize=False, random_state=0, **given)
    R = fastmmc.factor(X, sigma=res.params["sigma"], lam=res.params["lam"], rank=None).R
    E = (res.labels[:, None] == np.arange(3)).astype(float)
    if res.winner.rule == "near":
        P = 2.0 * E - 1.0
        objective = 3 * 150 - np.sum(P * (R @ P))
    else:
        objective = np.sum(1.0 - np.sum(E * (R @ E), axis=0) / E.sum(axis=0))
    assert res.objective == pytest.approx(objective, rel=1e-6)
    assert np.mean(res.predict(X) == res.labels) > 0.9


def test_sparse_points():
    X, y = blobs(MANY)
    known = some_known(y)
    result = fastmmc.cluster(csr_array(X), 4, known_labels=known, **some_links(y), random_state=0)
    assert_array_equal(result.labels[known >= 0], known[known >= 0])
    assert result.n_violations == 0


@pytest.mark.parametrize(
    "told, message",
    [
        ({"known_labels": [3, *[-1] * 59]}, r"known_labels must hold integers 0\.\.2"),
        ({"must_link": [(0, 1), (1, 2)], "cannot_link": [(0, 2)]}, "0 and 2 are cannot-linked"),
        ({"known_labels": [0, 1, *[-1] * 58], "must_link": [(0, 1)]}, "known labels 0 and 1"),
        ({"cannot_link": [(a, b) for a in range(4) for b in range(a)]}, "all exclude each other"),
        ({"must_link": np.zeros(60, dtype=int)}, "must_link leaves 1 groups of points"),
        ({"must_link": [0] * 30 + [-1] * 30, "max_size": 25}, "no cluster may have more than 25"),
        ({"max_size": 19}, "max_size must be at least 20"),
        ({"min_size": 21}, "min_size must be at most 20"),
        ({"target_sizes": [30, 20, 20]}, "target_sizes must be"),
        ({"known_labels": np.zeros(60, dtype=int)}, r"known labels fix \[60, 0, 0\]"),
        ({"sample_weight": np.zeros(60)}, "every weight of sample_weight is zero"),
        ({"sample_weight": -np.ones(60)}, "sample_weight must be at least 0"),
        ({"sample_weight": np.ones(60) * 2, "min_size": 41}, "min_size must be at most 40"),
    ],
)
def test_refuses_what_cannot_be(told, message):
    X, _ = blobs(60, 3)
    with pytest.raises(ValueError, match=message):
        fastmmc.cluster(X, 3, **told)


@pytest.mark.parametrize(
    "told, numbers",
    [
        ({"known_labels": [0, 1, 2, 3, 4, *[-1] * 145]}, range(5, 18)),
        ({"max_size": 30}, range(5, 18)),
        ({"min_size": 40}, range(2, 4)),
        ({}, range(2, 18)),
    ],
)
def test_what_is_told_limits_the_number(told, numbers):
    X, _ = blobs(150, 3)
    result = fastmmc.cluster(X, random_state=0, **told)
    assert list(result.scores) == list(numbers)
    with pytest.raises(ValueError, match="max_k must be at least 5"):
        fastmmc.cluster(X, known_labels=[0, 1, 2, 3, 4, *[-1] * 145], max_k=4)
    with pytest.raises(ValueError, match="target_sizes are those of a given number"):
        fastmmc.cluster(X, target_sizes=[75, 75])


def test_the_number_leaves_room_for_a_group_beside_the_least_sizes():
    X, _ = blobs(150, 3, spread=0.5)
    result = fastmmc.cluster(X, must_link=[0] * 71 + [-1] * 79, min_size=40, random_state=0)
    assert result.sizes.size == 2 and result.sizes.min() >= 40


def test_what_is_told_decides_the_number_where_only_one_is_possible():
    X, _ = blobs(120, 2, spread=0.5)
    result = fastmmc.cluster(X, min_size=70, random_state=0)
    assert result.sizes.tolist() == [120] and result.scores == {} and result.evidence is None
    with pytest.raises(ValueError, match="min_size must be at most 60"):
        fastmmc.cluster(X, min_size=70, cannot_link=[(0, 1)])


@pytest.mark.parametrize(
    ("what", "sizes", "number"),
    [
        ("known_labels", {"min_size": 30}, 3),
        ("known_labels", {"balance": 0.2}, 2),
        ("must_link", {"balance": 0.2}, 2),
    ],
)
def test_the_best_number_that_fits_what_is_told_is_taken(what, sizes, number):
    X, y = blobs(120, 4, spread=0.5)
    assert fastmmc.cluster(X, random_state=0, **sizes).sizes.size == 4
    joined = np.where(y < 2, 0, -1)
    result = fastmmc.cluster(X, random_state=0, **{what: joined}, **sizes)
    assert result.sizes.size == number and 4 in result.scores
    assert np.unique(result.labels[y < 2]).size == 1
    with pytest.raises(ValueError, match="known labels fix"):
        fastmmc.cluster(X, known_labels=np.zeros(120, dtype=int), max_size=60)


@pytest.mark.parametrize("length", [3, 5])
def test_there_are_as_many_clusters_as_links_need(length):
    X, y = blobs(120, 2, spread=0.5)
    assert fastmmc.cluster(X, random_state=0).sizes.size == 2
    ring = np.flatnonzero(y == 0)[:length]
    pairs = np.column_stack((ring, np.roll(ring, 1)))
    result = fastmmc.cluster(X, cannot_link=pairs, random_state=0)
    a, b = result.labels[pairs.T]
    assert result.sizes.size >= 3 and (a != b).all()
    with pytest.raises(ValueError, match="max_k must be at least 3, as known_labels, cannot_link"):
        fastmmc.cluster(X, cannot_link=pairs, max_k=2)
    joined = np.column_stack((ring[1:], ring[:-1]))  # rows that must be together are one node
    apart = np.column_stack((ring, np.full(length, np.flatnonzero(y == 1)[0])))
    told = {"must_link": joined, "cannot_link": apart}
    assert fastmmc.cluster(X, **told, random_state=0).sizes.size == 2


def test_weights_that_are_no_integers_are_masses():
    X, _ = blobs(60, 3)
    w = np.random.default_rng(0).random(60)
    cells = coarsen(X, 60, 3, np.random.default_rng(0)).split(X, np.zeros(60, dtype=int), w)
    assert TOTAL_MASS / 2 < cells.total <= TOTAL_MASS
    assert_allclose(cells.masses / cells.total, w / w.sum(), atol=1e-8)


def test_rules_are_those_of_the_sizes():
    given = given_of(60, 3)
    assert given.is_empty and given.is_plain
    assert_array_equal(given.free.bounds, size_rule(60, 3).bounds)
    assert_array_equal(given.near.bounds, [[12, 28]] * 3)
    assert_array_equal(given_of(60, 3, max_size=25).near.bounds, [[12, 25]] * 3)
    assert_array_equal(given_of(60, 3, target_sizes=[30, 20, 10]).near.bounds[:, 0], [30, 20, 10])


def test_names_of_known_labels():
    X, y = blobs(150, 3)
    names = np.full(150, None)
    names[::10] = np.array(["a", "b", "c"], dtype=object)[y[::10]]
    result = fastmmc.cluster(X, 3, known_labels=names, random_state=0)
    assert_array_equal(result.classes, ["a", "b", "c"])
    assert_array_equal(result.classes[result.labels[::10]], names[::10])


@pytest.mark.parametrize("method", [fastmmc.umc_rls, fastmmc.cluster])
@pytest.mark.parametrize(
    "k, given",
    [(5, {}), (4, {"known_labels": np.repeat([0, -1], [2, 40])}), (4, {"must_link": [(0, 1)]})],
    ids=["more clusters", "known", "linked"],
)
def test_equal_points_are_told_apart_where_groups_are_too_few(method, k, given):
    X = np.repeat([0.0, 1.0, 2.0, 3.0], [1, 1, 20, 20])[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = method(X, k, random_state=0, **given)
    assert result.sizes.sum() == 42 and result.sizes.min() > 0
    assert k == 5 or result.labels[0] == result.labels[1]


def test_trimmed_points_have_no_links():
    X, y = blobs(200)
    links = some_links(y)
    for k in (4, "auto"):
        result = fastmmc.cluster(X, k, trim=10, **links, max_k=5, random_state=0)
        assert np.count_nonzero(result.labels < 0) == 10
        assert (result.labels[np.concatenate([*links.values()])] >= 0).all()


def test_the_estimator_is_the_function():
    X, y = blobs(200)
    known, links, w = some_known(y), some_links(y), np.arange(1, 201)
    model = fastmmc.AutoMMC(4, random_state=0, semi_supervised=True, max_size=9_000)
    model.fit(X, known, **links, sample_weight=w)
    told = {"known_labels": known, "sample_weight": w, "max_size": 9_000, **links}
    result = fastmmc.cluster(X, 4, random_state=0, **told)
    assert_array_equal(model.labels_, result.labels)
    assert model.n_violations_ == 0 and model.n_constraints_ == result.n_constraints
    plain = fastmmc.AutoMMC(4, random_state=0).fit(X, y)  # y is ignored
    assert_array_equal(plain.labels_, fastmmc.cluster(X, 4, random_state=0).labels)
    auto = fastmmc.AutoMMC(semi_supervised=True, max_k=5, random_state=0).fit(X, known)
    assert_array_equal(auto.labels_[known >= 0], known[known >= 0])


@pytest.mark.parametrize("n_steps", [0, len(KERNELS) + 1])
def test_a_run_that_is_stopped_keeps_all(n_steps):
    X, y = blobs(MANY)
    known, links = some_known(y, 0.02), some_links(y, 0.02, seed=1)
    with pytest.warns(ConvergenceWarning, match="stopped"):
        result = fastmmc.cluster(
            X,
            4,
            known_labels=known,
            max_size=400,
            random_state=0,
            callback=lambda progress: progress.n_done >= n_steps,
            **links,
        )
    assert_array_equal(result.labels[known >= 0], known[known >= 0])
    assert result.n_violations == 0 and result.sizes.max() <= 400


@pytest.mark.jit
def test_knowledge_that_says_nothing_leaves_clusters_as_good():
    """Where k-means wins on cells, its rounds go on with all points, whatever is known."""
    rng = np.random.default_rng(5)
    centers = rng.normal(size=(5, 5)) * 2
    y = rng.choice(5, 5000, p=[0.4, 0.25, 0.2, 0.1, 0.05])
    X = centers[y] + rng.normal(size=(5000, 5))
    one = np.full(5000, -1)
    one[0] = 0
    plain = fastmmc.cluster(X, 5, random_state=0)
    assert plain.winner.rule == "k-means"
    for told in ({"known_labels": one}, {"min_size": 2}, {"max_size": 5000}):
        result = fastmmc.cluster(X, 5, random_state=0, **told)
        assert adjusted_rand_score(y, result.labels) > adjusted_rand_score(y, plain.labels) - 0.04
        assert result.labels[0] == 0 or "known_labels" not in told
