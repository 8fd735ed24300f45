"""Tests of the choice of width and size rule by a vote."""

import tracemalloc
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse import csr_array
from scipy.spatial.distance import pdist
from scipy.stats import entropy
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs, make_circles
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import fastmmc
from fastmmc.choice import methods, vote, whole
from fastmmc.choice.candidates import JUDGES, KERNELS, N_MEANS, N_NEAR, N_STEPS
from fastmmc.choice.evidence import CLEAR, CLOUDS, Cloud
from fastmmc.choice.features import Features, levels_of
from fastmmc.choice.given import BALANCE
from fastmmc.choice.numbers import DITHERS, Counts, _largest_vote, around, spaced
from fastmmc.choice.results import LEAST_EVIDENCE, RULES
from fastmmc.choice.widths import Genie, Widths, dithered
from fastmmc.core.execution import OutOfTime, fixed_seed, restart_stream
from fastmmc.core.status import Status
from fastmmc.kernels.gram import squared_distances
from fastmmc.rls import source
from fastmmc.rls.engine import coarse
from fastmmc.rls.engine.coarse import coarsen, count_cells
from fastmmc.rls.engine.groups import Groups
from fastmmc.rls.source import QUICK_RANK


def blobs(sizes, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(3), sizes)
    return rng.normal(size=(y.size, 2)) + np.array([[0, 0], [20, 0], [0, 20]])[y], y


@pytest.fixture(scope="module")
def iris():
    X, y = fastmmc.datasets.load("iris")
    X, rows = np.unique(X, axis=0, return_index=True)  # equal points are one cell
    return X, y[rows], fastmmc.cluster(X, 3, random_state=0)


def test_finds_blobs_of_any_sizes():
    X, y = blobs([900, 80, 20])
    result = fastmmc.cluster(X, 3, random_state=0)
    assert adjusted_rand_score(y, result.labels) == 1.0
    assert sorted(result.sizes) == [20, 80, 900]
    assert (result.predict(X) == result.labels).all()


def test_chooses_on_cells_of_many_points():
    X, y = blobs([2700, 240, 60])
    result = fastmmc.cluster(X, 3, random_state=0)
    assert adjusted_rand_score(y, result.labels) == 1.0
    (size,) = {one.labels.size for one in result.candidates}
    assert_array_equal(np.unique(result.cells), np.arange(size))
    assert adjusted_rand_score(result.winner.labels[result.cells], result.labels) > 0.99
    assert 0.9 * count_cells(3000, 3) < size <= count_cells(3000, 3)
    lams = {lam for *_, lam in KERNELS}
    assert any(result.chosen["lam"] == pytest.approx(lam * 3000 / 2000) for lam in lams)


def test_each_hat_matrix_is_held_once(rng):
    """Those of four kernels and four judges are, and a few of what else is of that size."""
    X = rng.standard_normal((1_500, 2))
    res = fastmmc.cluster(X, 60, random_state=0)  # compiles
    tracemalloc.start()
    try:
        fastmmc.cluster(X, 60, random_state=0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    g = res.cells.max() + 1
    assert 900 < g < 1_000 and peak < 20 * 8 * g**2


def test_equal_points_share_a_cell_and_their_cluster():
    X, y = blobs([30, 20, 10])
    many = np.repeat(X, 20, axis=0)
    result = fastmmc.cluster(many, 3, random_state=0)
    assert {one.labels.size for one in result.candidates} == {60}
    assert (result.labels.reshape(60, 20) == result.labels[::20, None]).all()
    assert adjusted_rand_score(y, result.labels[::20]) == 1.0


def test_iris(iris):
    X, y, result = iris
    assert adjusted_rand_score(y, result.labels) > 0.7
    again = fastmmc.cluster(X, 3, random_state=0)
    assert_array_equal(again.labels, result.labels)


def test_chosen_parameters_make_the_labels_that_won(iris):
    X, _, result = iris
    winner = next(one for one in result.candidates if one.rule in RULES)
    assert winner is result.winner
    assert_array_equal(winner.labels, result.labels)
    again = fastmmc.umc_rls(X, 3, **result.chosen)
    assert adjusted_rand_score(again.labels, result.labels) > 0.9
    assert result.chosen["sigma"] == winner.sigma
    assert result.params["sigma"] == winner.sigma


def test_chosen_parameters_hold_for_many_equal_rows_in_single_precision():
    X = np.round(np.random.default_rng(0).normal(size=(1500, 1))).astype(np.float32)
    result = fastmmc.cluster(X, 2, random_state=0)
    assert result.chosen["lam"] == 1e-4
    again = fastmmc.umc_rls(X, 2, **result.chosen)
    assert again.objective <= result.objective * (1 + 1e-9)


def test_labels_of_about_equal_sizes_are_about_equal():
    X, _ = blobs([90, 40, 20])
    near = [one for one in fastmmc.cluster(X, 3, random_state=0).candidates if one.rule == "near"]
    for one in near:
        assert np.abs(np.bincount(one.labels) - 50).max() <= BALANCE * 50


def test_table_of_candidates(iris):
    X, _, result = iris
    table = result.candidates
    rules = [one.rule for one in table]
    counts = {rule: rules.count(rule) for rule in rules}
    expected = {"near": 4 * N_NEAR, "smoothed": 16, "free": 4, "genie": 4, "k-means": N_MEANS}
    assert counts == expected
    kernels = {(one.sigma, one.lam) for one in table}
    assert len(kernels) == len(KERNELS)
    assert {lam for _, lam in kernels} == {lam for *_, lam in KERNELS}
    assert sum(one.weight for one in table) == pytest.approx(1.0)
    assert [one.vote for one in table] == sorted((one.vote for one in table), reverse=True)


def naive_errors(R, labels, k):
    """Return the error of leave-one-out predictions, and of their shares."""
    E = (labels[:, None] == np.arange(k)).astype(float)
    out = (R @ E - np.diag(R)[:, None] * E) / (1.0 - np.diag(R))[:, None]
    shares = np.maximum(out, 0) / np.maximum(out, 0).sum(axis=1, keepdims=True)
    cubes = [np.sum((found - E) ** 2, axis=1) ** 1.5 for found in (out, shares)]
    return [np.mean([each[labels == h].mean() for h in range(k)]) for each in cubes]


def naive_untold(columns, masses, labels):
    """Return how often pairs with equal values are apart: the least beside the next column."""
    weights = np.outer(masses, masses) * (1.0 - np.eye(labels.size))
    apart = labels[:, None] != labels
    left = [1.0]
    for column in columns:
        same = weights * (column[:, None] == column)
        if same.any():
            ratio = np.average(apart, weights=same) / np.average(apart, weights=weights)
            left.append(np.clip(ratio, 1.0 / labels.size, 1.0) ** (1.0 / np.unique(column).size))
    left.sort()
    return left[0] / left[1] if len(left) > 1 else 1.0


def test_vote_is_that_of_the_definition(iris):
    X, _, result = iris
    table = result.candidates
    stream = restart_stream(fixed_seed(0), 1)
    judging = dithered(coarsen(X, len(X), 3, None), X, stream)
    widths = Widths(judging, lambda *given: None)
    n = len(X)
    neighbours = {"points": n, "cluster": n / 3, "cell": 1}
    sigmas = [factor * widths.at(share * neighbours[of]).sigma for share, of, factor, _ in JUDGES]
    lams = [lam for *_, lam in JUDGES]
    factors = [
        fastmmc.factor(judging.points, sigma=sigma, lam=lam)
        for sigma, lam in zip(sigmas, lams, strict=True)
    ]
    weights = []
    for one in table:
        errors = [naive_errors(F.R, one.labels, 3) for F in factors]
        assert one.criterion == pytest.approx(min(np.sqrt(a * b) for a, b in errors), rel=1e-6)
        evenness = entropy(np.bincount(one.labels), base=3) ** 1.5
        raised = np.add(errors, 0.04 if one.rule == "k-means" else 0.001)
        times = sum(
            adjusted_rand_score(one.labels, other.labels) > 1 - 1e-9
            for other in table
            if other.rule != "k-means"
        )
        untold = naive_untold(X.T, np.ones(n), one.labels)
        of_kernels = np.sum(np.prod(raised, axis=1) ** -0.5)
        weights.append(max(1, times) ** 0.25 * evenness * untold * of_kernels)
    weights = np.array(weights) / sum(weights)
    assert_allclose([one.weight for one in table], weights, rtol=1e-6)
    for one in table:
        votes = [max(0, adjusted_rand_score(one.labels, other.labels)) ** 3 for other in table]
        assert one.vote == pytest.approx(np.dot(weights, votes))


def test_weights_price_unequal_sizes_count_repeats_and_have_a_floor():
    even, uneven = np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1])
    labellings, masses = [even, uneven, even, even], np.ones(4)
    errors = np.array([[[0.1, 0.2]] * 2, [[0.1, 0.2]] * 2, *[[[0.0, 0.0]] * 2] * 2])
    rules = ["free", "near", "free", "k-means"]
    weights = vote.weigh(errors, rules, labellings, 2, masses, np.array([1, 4, 1, 1]))
    evenness = entropy([3, 1], base=2)
    assert weights[1] / weights[0] == pytest.approx(evenness**1.5 * 4**0.25)
    assert weights[2] / weights[0] == pytest.approx(np.sqrt(0.101 * 0.201) / 0.001)
    assert weights[2] / weights[3] == pytest.approx(0.04 / 0.001)


def test_dithering_fills_the_gaps_between_few_values_and_leaves_others():
    rng = np.random.default_rng(0)
    measured = np.concatenate([rng.normal(size=100), rng.normal(50, 1, 100)])
    X = np.column_stack([rng.integers(3, size=200), measured, np.ones(200)])
    cells = coarsen(X, 200, 2, rng)
    steps = dithered(cells, X, rng).points - X
    # The deviation of what is even from half a step before to half a step after.
    assert steps.std(axis=0) == pytest.approx([12**-0.5, 0.0, 0.0], abs=0.05)
    assert not steps[:, 2].any()
    # The gap between the measured groups stays one, and their values nearly the same.
    assert np.ptp(np.sort(X[:, 1] + steps[:, 1])[[99, 100]]) > 40
    assert np.median(np.abs(steps[:, 1])) < 0.01


def test_columns_of_one_category_are_dithered_together():
    rng = np.random.default_rng(0)
    kinds, bits = np.arange(600) % 3, np.arange(600) % 2
    X = np.column_stack([np.eye(3)[kinds], bits, 1 - bits])
    cells = coarsen(X, 600, 2, rng)
    cells = cells.split(X, np.arange(600), None)
    steps = dithered(cells, X, rng).points - X
    assert steps.std(axis=0) == pytest.approx(12**-0.5, abs=0.05)
    # The columns of each add up to 1 after the steps as well; the two know nothing of each other.
    assert np.abs(steps[:, :3].sum(axis=1)).max() < 1e-9
    assert np.abs(steps[:, 3:].sum(axis=1)).max() < 1e-9
    assert np.abs(np.corrcoef(steps.T)[:3, 3:]).max() < 0.2


@pytest.mark.parametrize("form", ["text", "boolean"])
def test_a_random_category_does_not_decide(form):
    indices = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        y, noise = rng.integers(3, size=300), rng.integers(2, size=300) == 1
        numbers = rng.normal(size=(300, 2)) + 5.0 * np.column_stack([y == 1, y == 2])
        frame = pd.DataFrame({"a": numbers[:, 0], "b": numbers[:, 1], "c": noise})
        if form == "text":
            frame["c"] = np.where(noise, "yes", "no")
        result = fastmmc.cluster(frame, 3, random_state=0)
        indices.append(adjusted_rand_score(y, result.labels))
    assert np.median(indices) > 0.9


def test_what_features_leave_untold_is_that_of_the_definition():
    rng = np.random.default_rng(0)
    labels, masses = np.arange(40) % 3, rng.integers(1, 5, size=40)
    told = np.where(rng.random(40) < 0.8, labels, rng.integers(3, size=40))
    columns = [rng.normal(size=40), rng.integers(5, size=40), told, told == 1, labels == 0]
    for chosen in ([0], [0, 1], [0, 1, 2], [1, 3, 1], [4], [0, 4, 2]):
        kept = [columns[i] for i in chosen]
        found = Features(np.column_stack(kept).astype(float), masses).untold(labels, 3)
        assert found == pytest.approx(naive_untold(kept, masses, labels))
    assert Features(rng.normal(size=(40, 2)), masses).untold(labels, 3) == 1.0
    assert Features(csr_array(np.eye(40)), masses).untold(labels, 3) == 1.0
    # Columns that code one category, of which one may be missing, are one feature.
    kinds, coded = rng.integers(4, size=40), np.eye(4)
    for codes in (coded, coded[:, 1:], coded * 0.3 + 7):
        X = np.column_stack([rng.normal(size=40), codes[kinds], rng.normal(size=40)])
        found = Features(X, masses).untold(labels, 3)
        assert found == pytest.approx(naive_untold([kinds], masses, labels))


@pytest.mark.parametrize("form", ["text", "one-hot"])
def test_a_category_of_three_levels_beside_clusters_of_many_points_does_not_decide(form):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        y, kinds = rng.integers(3, size=(2, 1000))
        numbers = rng.normal(size=(1000, 2)) + 4.0 * np.column_stack([y == 1, y == 2])
        X = pd.DataFrame(
            {"a": numbers[:, 0], "b": numbers[:, 1], "c": np.array(["u", "v", "w"])[kinds]}
        )
        if form == "one-hot":
            X = np.column_stack([numbers, np.eye(3)[kinds]])
        result = fastmmc.cluster(X, 3, random_state=0)
        assert adjusted_rand_score(y, result.labels) > 0.75


def test_what_two_categories_tell_beside_columns_of_noise_decides():
    indices = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        y = rng.integers(3, size=300)
        X = pd.DataFrame(rng.normal(size=(300, 4)), columns=list("abcd"))
        X["e"] = X["f"] = np.array(["u", "v", "w"])[y]
        indices.append(adjusted_rand_score(y, fastmmc.cluster(X, 3, random_state=0).labels))
    assert np.median(indices) > 0.9


def test_levels_are_the_values_but_for_rounding():
    days = np.arange(18_000, 18_140)
    for column, n_levels in (
        (np.sin(2 * np.pi * (days / 7)), 7),
        (1e3 + np.cos(2 * np.pi * (days / 7)), 4),
        (np.sin(2 * np.pi * ((7 * days + 3 * (days % 4 == 0)) / 7)), 2),
        (1.7e9 + days / 1000.0, 140),
        (np.append(days, 1e15), 141),
        (np.append(np.zeros(200), [1e-12, 2e-12]), 3),
        (np.ones(5), 1),
    ):
        found, at = levels_of(column)
        assert found.size == n_levels
        assert (np.diff(found) > 0).all()
        assert_allclose(found[at], column, rtol=0, atol=1e-9)


@pytest.mark.parametrize(("count", "step"), [(90, "D"), (60, "D"), (24, "MS"), (30, "QS")])
def test_random_dates_beside_clusters_do_not_decide(count, step):
    for seed in range(2):
        rng = np.random.default_rng(seed)
        y, when = rng.integers(3, size=600), rng.integers(count, size=600)
        numbers = rng.normal(size=(600, 2)) + 5.0 * np.column_stack([y == 1, y == 2])
        dates = pd.date_range("2015-01-01", periods=count, freq=step)[when]
        X = pd.DataFrame({"a": numbers[:, 0], "b": numbers[:, 1], "when": dates})
        labels = fastmmc.cluster(X, 3, random_state=0).labels
        assert adjusted_rand_score(y, labels) > 0.85


def test_sparse_cells_are_not_dithered():
    X = csr_array(np.eye(30, 5000))
    cells = coarsen(X, 30, 2, np.random.default_rng(0))
    assert dithered(cells, X, None) is cells


def test_bits_tell_of_no_number_of_clusters():
    X = (np.random.default_rng(1).random((300, 8)) < 0.5).astype(float)
    result = fastmmc.cluster(X, max_k=6, random_state=0)
    assert max(result.scores.values()) < 1.3
    gapped, _ = blobs([100, 100, 100])
    assert max(fastmmc.cluster(gapped, max_k=6, random_state=0).scores.values()) > 1.5


def latent_classes(seed):
    """Return 400 points of three classes in 15 columns of bits."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=400)
    return (rng.random((400, 15)) < rng.uniform(0.1, 0.9, (3, 15))[y]).astype(float), y


def test_no_single_column_of_bits_makes_the_clusters():
    scores = []
    for seed in range(3):
        X, y = latent_classes(seed)
        labels = fastmmc.cluster(X, 3, random_state=0).labels
        of_means = KMeans(3, n_init=10, random_state=0).fit(X).labels_
        scores.append([adjusted_rand_score(y, found) for found in (labels, of_means)])
    ours, theirs = np.mean(scores, axis=0)
    assert ours > 0.95 * theirs


@pytest.mark.parametrize("make", [np.asarray, csr_array])
def test_clusters_by_k_means_are_those_of_all_points(make):
    rng = np.random.default_rng(0)
    shares = np.where(rng.random((3, 15)) < 0.5, 0.2, 0.8)
    X = (rng.random((2000, 15)) < shares[rng.integers(3, size=2000)]).astype(np.float64)
    for weights in (np.ones(2000), rng.integers(1, 4, 2000)):
        res = fastmmc.cluster(make(X), 3, sample_weight=weights, random_state=0)
        assert res.candidates[0].rule == "k-means" and len(res.model.basis) < 1000
        E = (res.labels == np.arange(3)[:, None]) * weights
        means = E @ X / E.sum(axis=1, keepdims=True)
        spread = ((X - means[res.labels]) ** 2).sum(axis=1) @ weights
        least = KMeans(3, n_init=10, random_state=0).fit(X, sample_weight=weights).inertia_
        assert spread < 1.003 * least


def test_labels_that_no_prediction_reaches_share_it():
    groups = Groups(np.zeros((4, 4)))
    plain, shared = vote.errors_of(groups, np.array([0, 0, 1, 1]), 2)
    assert plain == pytest.approx(1.0) and shared == pytest.approx(0.5**1.5)


def test_genie_without_a_limit_is_single_linkage(monkeypatch):
    X, _ = blobs([40, 30, 20])
    monkeypatch.setattr("fastmmc.choice.widths.GINIS", (1.0, 0.0))
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


def test_finds_the_number_of_blobs_of_very_unequal_sizes(monkeypatch):
    monkeypatch.setattr(coarse, "CELLS", 300)
    X, y = blobs([900, 80, 20])
    # Two clusters and three have nearly one score, as two per cent of the points hardly count.
    found = [fastmmc.cluster(X, max_k=4, random_state=seed) for seed in range(5)]
    right = [adjusted_rand_score(y, result.labels) == 1.0 for result in found]
    assert sum(right) >= 3
    # The total of the error rises faster behind three than behind two.
    errors = found[right.index(True)].errors
    rise = np.diff(np.log(list(errors.values()))) / np.diff(np.log(list(errors)))
    assert rise.argmax() == 1


def test_a_chance_rise_behind_many_clusters_is_no_bend():
    counts = Counts(SimpleNamespace(cells=SimpleNamespace(masses=np.ones(99))), None)
    counts._votes = counts.errors = dict.fromkeys(range(2, 34), 0.5)
    totals = {k: k / 10 for k in range(2, 34)}
    totals[26] *= 1.15
    totals |= {k: 2 * totals[k] for k in range(29, 34)}  # 28 clusters end
    counts._errors_by_width = {k: {1.0: total} for k, total in totals.items()}
    bends = {k: score - 0.5 for k, score in counts.scores(30).items()}
    assert list(bends) == list(range(2, 31))
    told = [k for k, bend in bends.items() if bend > 1e-9]
    assert told == [24, 27, 28] and max(bends, key=bends.get) == 28
    # Numbers do not count without the tenth more that they are compared with.
    del counts._votes[30], counts._votes[31], counts._votes[32], counts._votes[33]
    assert counts.scores(30) == {k: bends[k] + 0.5 for k in range(2, 28)}


def test_large_numbers_are_tried_in_steps_and_then_around_the_best():
    numbers = spaced(2, 40)
    assert numbers == [*range(2, 21), 22, 24, 26, 28, 30, 33, 36, 39, 40]
    assert around(numbers, {2: 1.0, 5: 3.0, 22: 2.0}) == range(4, 7)
    assert around(numbers, {2: 1.0, 36: 3.0}) == range(33, 40)
    assert around(numbers, {2: 3.0}) == range(2, 4) and around(numbers, {40: 3.0}) == range(39, 41)
    assert spaced(5, 5) == [5] and spaced(3, 2) == []


def test_finds_the_number_of_many_clusters():
    centers = np.stack(np.meshgrid(range(6), range(7)), axis=-1).reshape(-1, 2)
    X, y = make_blobs(840, centers=centers, cluster_std=0.1, random_state=0)
    result = fastmmc.cluster(X, random_state=0)
    assert adjusted_rand_score(y, result.labels) == 1.0
    assert {*range(2, 21), 39, 41, 42, 43, 46} <= result.scores.keys() and 23 not in result.scores


@pytest.mark.parametrize("width, draws", [(2, DITHERS), (5000, 1)])
def test_scores_are_means_over_draws_of_dithered_points(monkeypatch, width, draws):
    of_draws, scores = [], Counts.scores

    def note(counts, most):
        of_draws.append(scores(counts, most))
        return of_draws[-1]

    monkeypatch.setattr(Counts, "scores", note)
    X = np.rint(3 * blobs([40, 30, 20])[0])
    X = csr_array((X.ravel(), np.indices(X.shape).reshape(2, -1)), shape=(len(X), width))
    result = fastmmc.cluster(X, max_k=4, random_state=0)
    # Those of wide sparse points are all the same. The others are tried around the best.
    assert len(of_draws) == 2 * draws and of_draws[:draws] == of_draws[draws:]
    means = {k: np.mean([of[k] for of in of_draws]) for k in (2, 3, 4)}
    assert result.scores == pytest.approx(means)
    assert len({of[4] for of in of_draws}) == draws


def test_finds_the_number_of_clusters_far_apart():
    rng = np.random.default_rng([2, 7, 100])
    centers, sizes = rng.normal(0, 100, (7, 2)), rng.integers(20, 120, 7)
    y = np.repeat(np.arange(7), sizes)
    X = centers[y] + rng.normal(0, 1, (y.size, 2))
    assert pdist(centers).min() > 30
    found = [fastmmc.cluster(X, random_state=state).labels for state in range(3)]
    assert [adjusted_rand_score(y, labels) for labels in found] == [1.0] * 3


def test_the_largest_vote_is_that_of_the_definition(rng):
    labellings = [rng.integers(3, size=30) for _ in range(4)]
    labellings.append((labellings[0] + 1) % 3)
    errors, masses = rng.uniform(0.1, 0.5, (5, 2)), rng.integers(1, 4, 30)
    copies = [np.repeat(labels, masses) for labels in labellings]
    weights = []
    for labels, (plain, shared) in zip(copies, errors, strict=True):
        times = sum(adjusted_rand_score(labels, other) == 1 for other in copies)
        evenness = entropy(np.bincount(labels), base=3)
        weights.append(evenness * times**0.25 / ((plain + 0.001) * (shared + 0.001)))
    agreements = [[adjusted_rand_score(one, other) for other in copies] for one in copies]
    expected = (np.array(agreements) @ weights).max() / sum(weights)
    assert _largest_vote(labellings, errors, 3, masses) == pytest.approx(expected)


def test_finds_the_number_of_long_clusters():
    rng = np.random.default_rng(0)
    at = np.sqrt(rng.uniform(0.04, 1, (2, 300)))
    angle = 3 * np.pi * at + np.array([[0], [np.pi]])
    arms = 1.5 * at[..., None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    X = arms.reshape(-1, 2) + rng.normal(scale=0.04, size=(600, 2))
    result = fastmmc.cluster(X, max_k=12, random_state=0)
    assert adjusted_rand_score(np.repeat([0, 1], 300), result.labels) == 1.0


# Few points, or many clusters of them, have one width only, whose clusters are wide.
@pytest.mark.parametrize("n, most", [(4, 30), (5, 30), (9, 30), (13, 30), (15, 30), (50, 48)])
def test_number_of_few_points(n, most):
    X = np.random.default_rng(0).normal(size=(n, 2))
    result = fastmmc.cluster(X, max_k=most, random_state=0)
    assert result.sizes.sum() == n
    numbers = list(result.scores)
    assert numbers[:18] == list(range(2, min(n - 2, 19) + 1)) and numbers[-1] == min(n - 2, most)


def test_known_numbers_with_gaps_are_told_of(rng):
    X = np.concatenate([rng.normal(size=(30, 2)) + shift for shift in ((0, 0), (9, 0), (0, 9))])
    known = np.full(90, -1)
    known[[0, 30, 60]] = 1, 2, 3
    with pytest.warns(UserWarning, match="at least 4, of which 3 have labels; give strings"):
        fastmmc.cluster(X, known_labels=known, random_state=0)
    names = np.where(known >= 0, known.astype(str).astype(object), None)
    assert fastmmc.cluster(X, known_labels=names, random_state=0).sizes.size == 3


@pytest.mark.parametrize("wrong", [-9999.0, 9e9])
def test_a_wrong_cell_does_not_hide_clusters(wrong, rng):
    X = np.concatenate([rng.normal(size=(60, 4)) + shift for shift in np.eye(3, 4) * 9])
    X[17, 2] = wrong
    result = fastmmc.cluster(X, random_state=0)
    assert result.sizes.size >= 3 and result.evidence > 1.5


def test_number_needs_points():
    with pytest.raises(ValueError, match="at least 4 points"):
        fastmmc.cluster(np.ones((3, 2)))


@pytest.mark.parametrize("k", [12, "auto"])
def test_time_limit(k):
    X = np.random.default_rng(0).normal(size=(800, 5))
    told = ".*up to 63, none had been tried: give k" if k == "auto" else ".*are returned$"
    with pytest.warns(ConvergenceWarning, match=f"max_time was reached{told}"):
        result = fastmmc.cluster(X, k, max_time=1e-6, random_state=0)
    assert result.status == Status.TIME_LIMIT
    assert result.sizes.size == (2 if k == "auto" else k)
    assert result.scores == result.errors == {}
    # With one kernel, as a first labelling is always made.
    assert {one.rule for one in result.candidates} == {"smoothed", "genie"}
    assert len({one.sigma for one in result.candidates}) == 1


def stop_after(n_steps, how):
    """Return a callback that calls ``how`` after so many steps, and what it has heard."""
    heard = []

    def callback(progress):
        heard.append(progress)
        return how() if progress.n_done >= n_steps else None

    return callback, heard


def interrupt():
    raise KeyboardInterrupt


STOPS = [(lambda: True, Status.CALLBACK, "callback"), (interrupt, Status.INTERRUPTED, "interrupt")]


@pytest.mark.parametrize(
    "n_steps, how, status, text",
    [(3, *STOPS[0]), (5, *STOPS[1]), (8, *STOPS[0]), (11, *STOPS[1])],
)
def test_stops_with_the_best_so_far(n_steps, how, status, text):
    X, y = blobs([60, 30, 15])
    callback, heard = stop_after(n_steps, how)
    with pytest.warns(ConvergenceWarning, match=text):
        result = fastmmc.cluster(X, 3, callback=callback, random_state=0)
    assert result.status == status
    assert heard[-1].n_done == n_steps
    # What had been made by then voted, and its best labels are those of the result.
    assert 0 < len(result.candidates) <= 32 + N_MEANS
    assert_array_equal(result.labels, result.winner.labels)
    assert adjusted_rand_score(y, result.labels) == 1.0
    assert result.chosen["sigma"] == result.winner.sigma
    assert sum(one.weight for one in result.candidates) == pytest.approx(1.0)


@pytest.mark.jit
@pytest.mark.parametrize(
    "module, part",
    [(methods, "vote"), (vote, "weigh"), (source, "fit_labels")],
)
def test_an_interrupt_of_the_vote_loses_nothing(module, part, monkeypatch):
    X, _ = blobs([60, 30, 15])
    whole = fastmmc.cluster(X, 3, standardize=False, random_state=0)
    made, work = [], getattr(module, part)

    def interrupted(*given):
        made.append(work(*given))
        if len(made) == 1:
            raise KeyboardInterrupt
        return made[-1]

    monkeypatch.setattr(module, part, interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        result = fastmmc.cluster(X, 3, standardize=False, random_state=0)
    assert result.status == Status.INTERRUPTED and len(made) == 2
    assert_array_equal(result.labels, whole.labels)


# Every kind and every number of columns at least once; the other pairs are slow tests.
AT_ONCE = {("uniform", 1), ("normal", 2), ("bits", 5), ("correlated", 5), ("long tails", 20)}
WITHOUT_CLUSTERS = [
    pytest.param(kind, d, marks=() if (kind, d) in AT_ONCE else pytest.mark.slow)
    for kind in ("normal", "uniform", "long tails", "bits", "correlated")
    for d in (1, 2, 5, 20)
]


@pytest.mark.parametrize("kind, d", WITHOUT_CLUSTERS)
def test_points_without_clusters_are_one(kind, d):
    def draw(rng, n):
        X = rng.normal(size=(n, d))
        return {
            "normal": X,
            "uniform": rng.uniform(size=(n, d)),
            "long tails": rng.standard_t(3, size=(n, d)),
            "bits": np.rint(rng.uniform(size=(n, d))),
            "correlated": X @ rng.normal(size=(d, d)),
        }[kind]

    draws = [draw(np.random.default_rng(seed), n) for seed, n in enumerate([200, 300, 500])]
    results = [fastmmc.cluster(X, random_state=0, max_k=5) for X in draws]
    assert sum(result.sizes.size == 1 for result in results) >= 2
    for result in results:
        assert (result.evidence < LEAST_EVIDENCE) == (result.sizes.size == 1)


def test_clouds_are_drawn_until_one_tells_or_two_are_clear(monkeypatch):
    ratios, compare = [], methods.compare_with_clouds

    def note(*given):
        ratios[:] = compare(*given)
        return ratios

    monkeypatch.setattr(methods, "compare_with_clouds", note)
    fastmmc.cluster(blobs([40, 30, 20])[0], max_k=4, random_state=0)
    assert len(ratios) == 2 and ratios[-1] >= CLEAR
    X = np.random.default_rng(0).normal(size=(150, 2))
    result = fastmmc.cluster(X, max_k=4, random_state=0)
    assert result.evidence == ratios[-1] < LEAST_EVIDENCE <= min(ratios[:-1], default=CLEAR)
    assert ratios == sorted(ratios, reverse=True)


def test_clouds_are_drawn_if_there_was_time_for_one_number(monkeypatch):
    tried, try_one = [], Counts._try

    def stop_behind_first(counts, k, widths):
        tried.append(k)
        if len(tried) == 2:
            raise OutOfTime
        try_one(counts, k, widths)

    monkeypatch.setattr(Counts, "_try", stop_behind_first)
    result = fastmmc.cluster(blobs([40, 30, 20])[0], random_state=0)
    assert list(result.errors) == [2] and result.evidence > LEAST_EVIDENCE


def test_what_is_known_asks_for_more_clusters_than_one():
    X = np.random.default_rng(0).normal(size=(120, 2))
    assert fastmmc.cluster(X, random_state=0).sizes.size == 1
    known = np.full(120, -1)
    known[[3, 50]] = 0, 1
    given = [{"known_labels": known}, {"cannot_link": [[3, 50]]}, {"max_size": 100}]
    for told in given:
        result = fastmmc.cluster(X, random_state=0, max_k=4, **told)
        assert result.sizes.size > 1 and result.evidence is None
    one_class = np.where(known == 0, 0, -1)
    assert fastmmc.cluster(X, random_state=0, known_labels=one_class).sizes.size == 1


def test_an_estimator_tells_the_number_of_clusters_that_it_found():
    X, _ = blobs(40)
    assert fastmmc.AutoMMC(random_state=0).fit(X).n_clusters_ == 3
    with pytest.raises(TypeError, match="did you mean 'target_sizes'"):
        fastmmc.cluster(X, 3, sizes=[40, 40, 40])


def test_evidence_does_not_depend_on_units_of_weight():
    X = np.random.default_rng(0).normal(size=(150, 2))
    plain = fastmmc.cluster(X, random_state=0, max_k=4)
    heavy = fastmmc.cluster(X, random_state=0, max_k=4, sample_weight=np.full(150, 2.5))
    assert plain.sizes.size == heavy.sizes.size == 1
    assert heavy.evidence == pytest.approx(plain.evidence, abs=0.5)
    assert "no groups" in str(plain) and "one cluster" in plain.about_evidence()


def test_points_of_which_few_differ_are_one_cluster():
    assert fastmmc.cluster(np.ones((12, 2)), random_state=0).sizes.size == 1
    bits = np.arange(200.0)[:, None] % 2
    assert fastmmc.cluster(bits, random_state=0).evidence == 1.0


def test_a_cloud_has_the_covariance_and_the_tails_of_its_points():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4_000, 3)) / np.sqrt(rng.chisquare(3, 4_000) / 3)[:, None]
    X = X @ np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 0.5], [0.0, 0.0, 0.1]]) + 7
    drawn = Cloud(X, None).draw(4_000, rng)
    assert_allclose(np.median(drawn, axis=0), np.median(X, axis=0), atol=0.15)
    for q in (0.75, 0.99):
        wide = [np.quantile(np.abs(Z - 7), q, axis=0) for Z in (X, drawn)]
        assert_allclose(*wide, rtol=0.2)
    assert_allclose(np.corrcoef(drawn.T)[0, 1], np.corrcoef(X.T)[0, 1], atol=0.1)


def test_a_cloud_of_columns_has_the_tails_of_each():
    """The corners of a square, and the arms of long tails, which no cloud of directions has."""
    rng = np.random.default_rng(0)
    square = rng.uniform(-1, 1, size=(4_000, 2))
    arms = rng.standard_t(3, size=(4_000, 2))
    for X, away in ((square, 0.8), (arms, 5.0)):
        cloud = Cloud(X, None)
        shares = [
            np.mean(np.abs(Z).min(axis=1) > away) if X is square else np.mean(np.abs(Z) > away)
            for Z in (X, cloud.draw_columns(4_000, rng))
        ]
        assert_allclose(*shares, rtol=0.3)
    skewed = np.column_stack((square[:, 0], square[:, 0] + 0.2 * arms[:, 1], np.ones(4_000)))
    drawn = Cloud(skewed, None).draw_columns(4_000, rng)
    assert_allclose(drawn[:, 2], 1.0)
    assert_allclose(np.corrcoef(drawn[:, :2].T), np.corrcoef(skewed[:, :2].T), atol=0.1)


def test_a_cloud_has_no_hole_and_no_gap():
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 2_000)
    ring = np.column_stack((np.cos(angle), np.sin(angle)))
    drawn = np.linalg.norm(Cloud(ring, None).draw(2_000, rng), axis=1)
    assert np.mean(drawn < 0.5) == pytest.approx(0.25, abs=0.05)  # as in a disc
    two = np.r_[rng.normal(0, 1, (500, 1)), rng.normal(20, 1, (500, 1))]
    drawn = Cloud(two, None).draw(2_000, rng)
    assert np.mean(np.abs(drawn - two.mean()) < 4) > 0.2
    drawn = Cloud(two, None).draw_columns(2_000, rng)
    assert np.mean(np.abs(drawn - two.mean()) < 4) > 0.2


def test_a_cloud_of_weighted_points_is_that_of_repeated_ones():
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(60, 2)), rng.integers(1, 5, 60)
    clouds = Cloud(X, w.astype(float)), Cloud(np.repeat(X, w, axis=0), None)
    drawn = [cloud.draw(3_000, np.random.default_rng(1)) for cloud in clouds]
    assert_allclose(np.abs(drawn[0]).mean(axis=0), np.abs(drawn[1]).mean(axis=0), rtol=0.05)


def test_few_points_are_tried_in_few_clusters():
    X = np.random.default_rng(0).standard_normal((30, 2))
    result = fastmmc.cluster(X, random_state=0)
    assert list(result.scores) == [2, 3, 4, 5]
    assert fastmmc.AutoMMC(random_state=0).fit(X).scores_ == result.scores
    assert list(fastmmc.cluster(X, max_k=7, random_state=0).scores) == [2, 3, 4, 5, 6, 7]
    assert list(fastmmc.cluster(X[:4], random_state=0).scores) == [2]
    assert methods._numbers(methods._ChoiceCall(X=X), 2000) == (None, 1, 63)


def test_a_stop_between_steps_and_numbers_around_the_best_is_told():
    X, _ = blobs([84, 84, 84])
    with pytest.warns(ConvergenceWarning, match="up to 27, only some had been tried"):
        result = fastmmc.cluster(X, random_state=0, callback=stop_after(DITHERS, lambda: True)[0])
    assert list(result.scores) == [*range(2, 21), 22, 24, 26, 27]
    short = {"max_k": 20, "callback": stop_after(DITHERS, lambda: True)[0]}
    with pytest.warns(ConvergenceWarning, match="are returned$"):
        assert len(fastmmc.cluster(X, random_state=0, **short).scores) == 19


@pytest.mark.parametrize("how, status, text", STOPS)
def test_stops_among_the_numbers(monkeypatch, how, status, text):
    X, y = blobs([60, 30, 15])
    heard, tried, try_one = [], [], Counts._try

    def note(counts, k, widths):
        try_one(counts, k, widths)
        tried.append(k)

    def callback(progress):
        heard.append(progress)
        return how() if len(tried) == 4 else None

    monkeypatch.setattr(Counts, "_try", note)
    with pytest.warns(ConvergenceWarning, match=text):
        result = fastmmc.cluster(X, callback=callback, random_state=0)
    assert result.status == status
    assert heard[-1].n_init == methods._number_steps(None, 1) + N_STEPS
    assert list(result.scores) == [2, 3, 4]
    assert list(result.errors) == tried == [2, 3, 4, 5]
    assert adjusted_rand_score(y, result.labels) == 1.0


def test_progress_grows_and_changes_nothing():
    X, _ = blobs([40, 30, 20])
    callback, heard = stop_after(99, interrupt)
    result = fastmmc.cluster(X, max_k=4, callback=callback, random_state=0)
    assert result.status == Status.CONVERGED
    fractions = [one.fraction for one in heard]
    assert [one.n_done for one in heard] == sorted(one.n_done for one in heard)
    assert 0 <= min(fractions) and max(fractions) == 1
    assert fractions == sorted(fractions)
    assert {one.n_init for one in heard} == {heard[-1].n_done}
    assert heard[-1].n_done == 2 * DITHERS + CLOUDS + N_STEPS
    assert_array_equal(result.labels, fastmmc.cluster(X, max_k=4, random_state=0).labels)


def test_an_error_in_a_callback_is_raised():
    def broken(progress):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        fastmmc.cluster(blobs([9, 9, 9])[0], 3, callback=broken)


@pytest.mark.parametrize("how, status, text", STOPS)
def test_a_stop_keeps_the_labels_of_all_points(how, status, text):
    X, y = make_blobs(2100, 2, centers=12, center_box=(-99, 99), random_state=0)
    callback, _ = stop_after(5, how)
    with pytest.warns(ConvergenceWarning) as told:
        result = fastmmc.cluster(X, 12, callback=callback, random_state=0)
    assert len(told) == 1 and text in str(told[0].message)
    assert result.status == status
    assert adjusted_rand_score(y, result.labels) > 0.9


def test_bar(capfd):
    pytest.importorskip("rich")
    fastmmc.cluster(blobs([9, 9, 9])[0], 3, verbose=1, random_state=0)
    assert f"step {N_STEPS}/{N_STEPS}" in capfd.readouterr().err


@pytest.mark.parametrize("sizes", [[60, 40, 20], [1800, 300, 60]])
def test_sparse_points(sizes):
    X, y = blobs(sizes)
    X = np.round(np.abs(X) * (np.abs(X) > 2))
    result = fastmmc.cluster(csr_array(X), 3, random_state=0)
    dense = fastmmc.cluster(X, 3, random_state=0)
    assert adjusted_rand_score(result.labels, dense.labels) > 0.99
    assert_array_equal(result.predict(csr_array(X[:50])), result.predict(X[:50]))


def test_the_estimator_takes_sparse_points():
    X = np.maximum(blobs([20, 20, 20])[0], 0.0)
    model = fastmmc.AutoMMC(3, random_state=0).fit(csr_array(X))
    assert_array_equal(model.labels_, fastmmc.cluster(X, 3, random_state=0).labels)


def test_the_choice_is_made_on_fewer_cells_where_time_is_short():
    X = np.empty((50_000, 10))
    cells = [whole.affordable_cells(X, 3, max_time) for max_time in (1e-6, 1.0, 2.0, None)]
    assert cells[0] == 3 + whole.LEAST_CELLS and cells[3] == 50_000
    assert cells[2] == pytest.approx(2 * cells[1], abs=1)
    assert whole.affordable_cells(X, 600, 1e-6) == 600 + whole.LEAST_CELLS


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_a_choice_on_few_cells_labels_all(kind):
    X, y = blobs((300, 250, 150))
    with pytest.warns(ConvergenceWarning):
        result = fastmmc.cluster(kind(X), 3, max_time=1e-6, random_state=0)
    assert adjusted_rand_score(y, result.labels) == 1.0
    assert result.status == Status.TIME_LIMIT
    assert all(one.labels.size <= 3 + whole.LEAST_CELLS for one in result.candidates)
    assert result.params["rank"] <= QUICK_RANK


def naive_width(X, members, masses, m):
    """Return the median distance of a point to its m-th neighbour, all of a cell at its mean."""
    means = np.array([X[members == g].mean(axis=0) for g in range(masses.size)])
    reached = []
    for g in members:
        far = np.sum((means - means[g]) ** 2, axis=1)
        order = np.argsort(far)
        around = np.cumsum(masses[order])
        at = np.clip(np.count_nonzero(around <= m), 1, masses.size - 1)
        reached.append(np.sqrt(far[order[at]]))
    return np.sort(reached)[(len(X) - 1) // 2]


@pytest.mark.parametrize("m", [1, 5, 40])
def test_widths_of_cells(m):
    X = np.random.default_rng(0).normal(size=(200, 2))
    cells = coarsen(X, 50, 2, np.random.default_rng(0))
    width = Widths(cells, lambda *given: None).at(m)
    assert width.sigma == pytest.approx(naive_width(X, cells.members, cells.masses, m))


def test_the_hat_matrix_of_cells_is_that_of_their_points_at_the_means():
    X = np.random.default_rng(0).normal(size=(60, 2))
    cells = coarsen(X, 20, 2, np.random.default_rng(0))
    width = Widths(cells, lambda *given: None).at(10)
    R = fastmmc.factor(cells.points[cells.members], sigma=width.sigma).R
    M = (cells.members[:, None] == np.arange(cells.masses.size)).astype(float)
    assert_allclose(width.groups.matrix, M.T @ R @ M, atol=1e-8)


def spirals(rng, n):
    y = np.arange(n) % 2
    at = np.sqrt(rng.uniform(0.04, 1, n))
    angle = 3 * np.pi * at + np.pi * y
    X = 1.5 * at[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return X + rng.normal(scale=0.03, size=(n, 2)), y


def unequal_blobs(rng, n):
    y = (np.arange(n) >= 0.9 * n) + (np.arange(n) >= 0.98 * n).astype(int)
    return rng.normal(size=(n, 2)) + np.array([[0, 0], [12, 0], [0, 12]])[y], y


def twenty_gaussians(rng, n):
    y = np.arange(n) % 20
    return rng.normal(size=(n, 5)) + np.random.default_rng(5).uniform(0, 30, (20, 5))[y], y


def two_rings(rng, n):
    return make_circles(n, noise=0.03, factor=0.8, random_state=n)


def check_that_nothing_jumps(make, k, sizes):
    for n in sizes:
        X, y = make(np.random.default_rng(n), n)
        labels = fastmmc.cluster(X, k, random_state=0).labels
        assert adjusted_rand_score(y, labels) > 0.95, n


@pytest.mark.jit
@pytest.mark.parametrize(
    "make, k, sizes",
    [
        (spirals, 2, (600, 625)),
        pytest.param(unequal_blobs, 3, (600, 625), marks=pytest.mark.slow),
        (unequal_blobs, 3, (2000, 2001)),
    ],
)
def test_nothing_jumps_where_cells_and_smaller_lam_begin(make, k, sizes):
    check_that_nothing_jumps(make, k, sizes)


@pytest.mark.slow
@pytest.mark.jit
@pytest.mark.parametrize(
    "make, k, least",
    [(spirals, 2, 200), (unequal_blobs, 3, 200), (twenty_gaussians, 20, 200), (two_rings, 2, 2000)],
)
def test_nothing_jumps_with_the_number_of_points(make, k, least):
    sizes = (200, 600, 625, 2000, 2001, 3000, 3001, 5001, 20_000)
    check_that_nothing_jumps(make, k, [n for n in sizes if n >= least])


@pytest.mark.parametrize("total", [1e-3, 1.0, 5.9, 1e9])
def test_what_weights_add_up_to_is_no_bound_on_the_number(total):
    X, _ = blobs([40, 30, 50])
    weights = np.full(len(X), total / len(X))
    result = fastmmc.cluster(X, sample_weight=weights, random_state=0)
    assert sorted(result.sizes) == [30, 40, 50] and result.evidence > 2


@pytest.mark.parametrize("told", [{}, {"min_size": 2}, {"must_link": "equal rows"}])
def test_equal_rows_without_clusters_are_one(told):
    """Also where they stay apart: their cells are fewer than those of a cloud of as many points."""
    X = np.random.default_rng(11).integers(1, 5, (6000, 4)).astype(float)
    if "must_link" in told:
        told = {"must_link": [(0, np.flatnonzero((X == X[0]).all(axis=1))[1])]}
    result = fastmmc.cluster(X, max_k=6, random_state=0, **told)
    assert result.sizes.size == 1 and result.evidence < 1.1


def test_equal_rows_in_blocks_without_clusters_are_one():
    dask = pytest.importorskip("dask.array")
    X = np.random.default_rng(10).integers(1, 5, (21_000, 4)).astype(float)
    blocks = dask.from_array(X, chunks=(5000, 4))
    assert fastmmc.cluster(blocks, max_k=6, random_state=0).sizes.size == 1


@pytest.mark.filterwarnings("ignore:the columns of X seem")
def test_no_cluster_is_left_without_points():
    """What the kernel of the cells predicts of all points leaves out one of four clusters."""
    X, _ = make_blobs(1000, 4, centers=4, cluster_std=0.6, random_state=0)
    X[:, 3] *= 1000.0
    for params in ({}, {"min_size": 1}):
        result = fastmmc.cluster(X, 4, standardize=False, random_state=0, **params)
        assert result.sizes.min() >= 1
