"""Tests of the choice of width and size rule by a vote."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse import csr_array
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import scale

import fastmmc
from fastmmc import models, nystroem
from fastmmc.choice import Candidate, labellings, methods, vote
from fastmmc.choice.labellings import WIDTHS
from fastmmc.choice.methods import SAMPLE
from fastmmc.choice.results import RULES
from fastmmc.choice.widths import Chooser
from fastmmc.execution import fixed_seed, restart_stream
from fastmmc.gram import kernel_product, squared_distances
from fastmmc.rls.genie import Genie
from fastmmc.rls.source import QUICK_RANK
from fastmmc.status import Status
from tests.rls.naive import risk


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


@pytest.mark.parametrize("name, k", [("wine", 3), ("breast_cancer", 2)])
def test_labels_of_about_equal_sizes_are_better_than_those_of_one_search(name, k):
    X = scale(fastmmc.datasets.load(name)[0])
    gains = []
    for one in fastmmc.cluster(X, k, random_state=0).candidates:
        if one.rule == "near":
            factor = fastmmc.factor(X, sigma=one.sigma)
            alone = fastmmc.umc_rls(factor, k, method="memetic", random_state=0).objective
            gains.append(alone - risk(factor.R, one.labels, k))
    assert min(gains) > -1e-8 * len(X)
    assert max(gains) > 0.1


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


def free_cost(R, labels, k):
    E = (labels[:, None] == np.arange(k)).astype(float)
    return k - np.sum(np.sum(E * (R @ E), axis=0) / E.sum(axis=0))


def test_all_widths_draw_the_borders_of_the_winner():
    X = scale(fastmmc.datasets.load("breast_cancer")[0])
    result = fastmmc.cluster(X, 2, random_state=0)
    before, after = result.winner.labels, result.labels
    assert 0.9 < adjusted_rand_score(before, after) < 1.0
    factors = [fastmmc.factor(X, sigma=s) for s in {one.sigma for one in result.candidates}]
    costs = [sum(free_cost(F.R, labels, 2) for F in factors) for labels in (before, after)]
    assert costs[1] < costs[0]
    assert_array_equal(fastmmc.umc_rls(X, 2, **result.chosen).labels, after)
    assert result.chosen["sizes"] == "free"
    assert result.chosen["sigma"] == result.params["sigma"] in {F.kernel.sigma for F in factors}


def test_borders_that_make_other_clusters_are_not_taken(monkeypatch):
    X, y = fastmmc.datasets.load("moons")
    chooser = Chooser(X, SimpleNamespace(seed=0, look=lambda *args: None))
    widths = {4.0: chooser.width(2 * len(X))}
    winner = Candidate("of the moons", 4.0, widths[4.0].sigma, "linked", 0.1, 1.0, 1.0, y)
    assert vote.join_widths(winner, widths, 2) is winner
    monkeypatch.setattr(vote, "ALIKE", 0.0)
    joined = vote.join_widths(winner, widths, 2)
    assert 0.0 < adjusted_rand_score(y, joined.labels) <= 0.9


def test_weights_price_unequal_sizes_and_share_by_rule():
    even, uneven = np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1])
    weights = vote.weigh(np.array([0.1, 0.1, 0.0]), [even, uneven, even], ["a", "b", "b"], 2)
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


def test_finds_the_number_of_blobs_of_very_unequal_sizes():
    X, y = blobs([900, 80, 20])
    result = fastmmc.cluster(X, max_k=4, random_state=0)
    assert adjusted_rand_score(y, result.labels) == 1.0
    # The total of the error rises faster behind three than behind two.
    rise = np.diff(np.log(list(result.errors.values()))) / np.diff(np.log(list(result.errors)))
    assert rise.argmax() == 1


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
    assert list(result.scores) == list(range(2, min(n - 2, most) + 1))


def test_number_needs_points():
    with pytest.raises(ValueError, match="at least 4 points"):
        fastmmc.cluster(np.ones((3, 2)))


@pytest.mark.parametrize("k", [12, "auto"])
def test_time_limit(k):
    X = np.random.default_rng(0).normal(size=(800, 5))
    with pytest.warns(ConvergenceWarning, match="max_time was reached"):
        result = fastmmc.cluster(X, k, max_time=1e-6, random_state=0)
    assert result.status == Status.TIME_LIMIT
    assert result.sizes.size == (2 if k == "auto" else k)
    assert result.scores == result.errors == {}
    # Of one width, as a first labelling is always made.
    assert {one.rule for one in result.candidates} == {"linked", "genie"}
    assert {one.f for one in result.candidates} == {WIDTHS[0]}


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


@pytest.mark.parametrize("how, status, text", STOPS)
@pytest.mark.parametrize("n_steps", [3, 6, 9, 13])
def test_stops_with_the_best_so_far(n_steps, how, status, text):
    X, y = blobs([60, 30, 15])
    callback, heard = stop_after(n_steps, how)
    with pytest.warns(ConvergenceWarning, match=text):
        result = fastmmc.cluster(X, 3, callback=callback, random_state=0)
    assert result.status == status
    assert heard[-1].n_done == n_steps
    # What had been made by then voted, and its best labels are those of the result.
    assert 0 < len(result.candidates) <= 32
    assert_array_equal(result.labels, result.winner.labels)
    assert adjusted_rand_score(y, result.labels) == 1.0
    assert result.chosen["sigma"] == result.winner.sigma
    assert sum(one.weight for one in result.candidates) == pytest.approx(1.0)


@pytest.mark.jit
@pytest.mark.parametrize(
    "module, part",
    [(labellings, "judge"), (methods, "vote"), (methods, "join_widths"), (methods, "_finish")],
)
def test_an_interrupt_of_the_vote_loses_nothing(module, part, monkeypatch):
    X, _ = blobs([60, 30, 15])
    whole = fastmmc.cluster(X, 3, random_state=0)
    made, work = [], getattr(module, part)

    def interrupted(*given):
        made.append(work(*given))
        if len(made) == 1:
            raise KeyboardInterrupt
        return made[-1]

    monkeypatch.setattr(module, part, interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        result = fastmmc.cluster(X, 3, random_state=0)
    assert result.status == Status.INTERRUPTED and len(made) == 2
    assert_array_equal(result.labels, whole.labels)


def test_few_points_are_tried_in_few_clusters():
    X = np.random.default_rng(0).standard_normal((30, 2))
    assert list(fastmmc.cluster(X, random_state=0).scores) == [2, 3, 4, 5]
    assert list(fastmmc.cluster(X, max_k=7, random_state=0).scores) == [2, 3, 4, 5, 6, 7]
    assert list(fastmmc.cluster(X[:4], random_state=0).scores) == [2]
    assert methods._largest_number(None, 2000) == 30


@pytest.mark.parametrize("how, status, text", STOPS)
def test_stops_among_the_numbers(how, status, text):
    X, y = blobs([60, 30, 15])
    callback, heard = stop_after(4, how)
    with pytest.warns(ConvergenceWarning, match=text):
        result = fastmmc.cluster(X, callback=callback, random_state=0)
    assert result.status == status
    assert heard[-1].n_init == 10 + 16
    assert list(result.scores) == [2, 3, 4]
    assert list(result.errors) == [2, 3, 4, 5]
    assert adjusted_rand_score(y, result.labels) == 1.0


def test_progress_grows_and_changes_nothing():
    X, _ = blobs([40, 30, 20])
    callback, heard = stop_after(99, interrupt)
    result = fastmmc.cluster(X, max_k=4, callback=callback, random_state=0)
    assert result.status == Status.CONVERGED
    fractions = [one.fraction for one in heard]
    assert [one.n_done for one in heard] == sorted(one.n_done for one in heard)
    assert 0 <= min(fractions) and max(fractions) == 1
    assert {one.n_init for one in heard} == {heard[-1].n_done} == {4 + 16}
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
    # No descent on a poor hat matrix has spoilt what the sample's model says.
    rows = np.sort(restart_stream(fixed_seed(0), 0).choice(2100, SAMPLE, replace=False))
    assert_array_equal(result.labels[rows], result.winner.labels)
    assert adjusted_rand_score(y, result.labels) > 0.9


def test_bar(capfd):
    pytest.importorskip("rich")
    fastmmc.cluster(blobs([9, 9, 9])[0], 3, verbose=1, random_state=0)
    assert "step 16/16" in capfd.readouterr().err


@pytest.mark.parametrize("sizes", [[60, 40, 20], [1800, 300, 60]])
def test_sparse_points(sizes):
    X, y = blobs(sizes)
    X = np.round(np.abs(X) * (np.abs(X) > 2))
    result = fastmmc.cluster(csr_array(X), 3, random_state=0)
    dense = fastmmc.cluster(X, 3, random_state=0)
    assert_array_equal(result.winner.labels, dense.winner.labels)
    assert adjusted_rand_score(result.labels, dense.labels) > 0.99
    assert_array_equal(result.predict(csr_array(X[:50])), result.predict(X[:50]))
    given = X if len(X) <= SAMPLE else csr_array(X)
    again = fastmmc.umc_rls(given, 3, random_state=0, **result.chosen)
    assert_array_equal(again.labels, result.labels)


def test_the_estimator_takes_sparse_points():
    X = np.maximum(blobs([20, 20, 20])[0], 0.0)
    model = fastmmc.AutoMMC(3, random_state=0).fit(csr_array(X))
    assert_array_equal(model.labels_, fastmmc.cluster(X, 3, random_state=0).labels)


def test_the_choice_is_made_on_fewer_points_where_time_is_short():
    sizes = [methods._sample_size(5000, None, max_time) for max_time in (1e-6, 10.0, 60.0, None)]
    assert sizes == [500, 1000, 2000, 2000]
    assert (
        methods._sample_size(400, None, 1e-6) == 400
        and methods._sample_size(9000, 600, 0.1) == 1200
    )


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_a_choice_on_few_points_labels_all(kind):
    X, y = blobs((300, 250, 150))
    with pytest.warns(ConvergenceWarning):
        result = fastmmc.cluster(kind(X), 3, max_time=1e-6, random_state=0)
    assert adjusted_rand_score(y, result.labels) == 1.0
    assert result.status == Status.TIME_LIMIT
    assert all(one.labels.size == 500 for one in result.candidates)


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_without_time_all_points_are_passed_over_once(kind, monkeypatch):
    X, _ = blobs((300, 250, 150))
    passes = []

    def counted(kernel, points, *args, **kwargs):
        passes.append(points.shape[0])
        return kernel_product(kernel, points, *args, **kwargs)

    for module in (nystroem, models):
        monkeypatch.setattr(module, "kernel_product", counted)
    with pytest.warns(ConvergenceWarning):
        result = fastmmc.cluster(kind(X), 3, max_time=1e-6, random_state=0)
    assert passes.count(len(X)) == 1 and result.params["rank"] <= QUICK_RANK
    rows = np.sort(restart_stream(fixed_seed(0), 0).choice(700, 500, replace=False))
    assert_array_equal(result.labels[rows], result.winner.labels)


def test_labels_of_all_are_kept_where_time_ends_in_the_hat_matrix_of_all(monkeypatch):
    X, y = make_blobs(2100, 2, centers=12, center_box=(-99, 99), random_state=0)
    made = []

    def make_factor(points, lam, kernel, form, seed, look=None):
        if len(points) == len(X) and form.landmarks is uniform:
            look(0.5, ahead=1e9)
        return make_given(points, lam, kernel, form, seed, look)

    def label_all(*args):
        made.append(label_given(*args))
        return made[-1]

    uniform = nystroem.Form().landmarks
    make_given, label_given = methods.make_factor, methods._label_all
    monkeypatch.setattr(methods, "make_factor", make_factor)
    monkeypatch.setattr(methods, "_label_all", label_all)
    monkeypatch.setattr(methods, "_sample_size", lambda n, k, max_time: 500)
    with pytest.warns(ConvergenceWarning, match="max_time was reached") as told:
        result = fastmmc.cluster(X, 12, max_time=1e6, random_state=0)
    assert len(told) == 1 and result.status == Status.TIME_LIMIT
    assert_array_equal(result.labels, made[0])
    assert result.params["rank"] <= QUICK_RANK
    assert adjusted_rand_score(y, result.labels) > 0.9
