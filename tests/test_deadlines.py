"""Every phase obeys a time limit; what is returned is whole, and the status tells."""

import time
from itertools import islice

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import fastmmc
from fastmmc import Status
from fastmmc.alternating import rounds
from fastmmc.core import execution
from fastmmc.core.threads import run_to_end
from fastmmc.kernels.kmeans import begin_choice, k_means

# A limit that has passed when the first phase looks at the clock.
PAST = 1e-9


@pytest.fixture
def points(rng):
    return np.concatenate((rng.standard_normal((150, 3)), rng.standard_normal((150, 3)) + 3.0))


FORMS = {
    "dense": {},
    "low rank": {"rank": 100},
    "pivoted": {"rank": 100, "landmarks": "pivoted"},
    "k-means++": {"rank": 100, "landmarks": "k-means++"},
    "linear": {"kernel": "linear"},
}
STARTS = ("farthest", "kmeans", "ncut", "random")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("init", STARTS)
@pytest.mark.parametrize("function", [fastmmc.iter_svr, fastmmc.iter_ls_svm])
def test_alternation_without_time(points, function, form, init):
    with pytest.warns(ConvergenceWarning, match="time limit"):
        result = function(points, init=init, max_time=PAST, random_state=0, **FORMS[form])
    assert result.status == Status.TIME_LIMIT and np.isfinite(result.objective)
    assert result.predict(points).shape == (300,) and result.sizes.min() > 0
    if form not in ("linear",):
        assert result.params["rank"] <= 50


@pytest.mark.parametrize("function", [fastmmc.iter_svr, fastmmc.iter_svm, fastmmc.iter_ls_svm])
def test_alternation_whose_time_ends_with_its_sample(points, function, monkeypatch):
    monkeypatch.setattr(rounds, "MOST_WITHOUT_SAMPLE", 100)
    monkeypatch.setattr(rounds, "SAMPLE", 100)
    began, clock, ahead = rounds.Alternation._begin, time.perf_counter, []
    monkeypatch.setattr(time, "perf_counter", lambda: clock() + sum(ahead))

    def begin(search, y):
        began(search, y)
        if y.size == len(points):
            ahead.append(1e3)
            time.sleep(5 * execution.POLL_SECONDS)  # the caller looks at the clock meanwhile

    monkeypatch.setattr(rounds.Alternation, "_begin", begin)
    with pytest.warns(ConvergenceWarning, match="time limit"):
        result = function(points, rank=100, max_time=100, n_init=1, n_jobs=1, random_state=0)
    assert result.status == Status.TIME_LIMIT and np.isfinite(result.objective)
    assert result.labels.size == 300 and result.sizes.min() > 0


@pytest.mark.parametrize("kernel", ["rbf", "linear", lambda X, Z: X @ Z.T])
@pytest.mark.parametrize("function", [fastmmc.iter_svr, fastmmc.iter_ls_svm])
def test_features_of_a_sample_where_time_is_short(points, function, kernel, monkeypatch):
    monkeypatch.setattr(rounds, "MOST_WITHOUT_SAMPLE", 100)
    monkeypatch.setattr(rounds, "SAMPLE", 100)
    brief, seen = rounds.brief_features, []

    def brief_features(X, *given):
        seen.append(len(X))
        return brief(X, *given)

    monkeypatch.setattr(rounds, "brief_features", brief_features)
    with pytest.warns(ConvergenceWarning, match="time limit"):
        result = function(points, kernel=kernel, rank=150, max_time=PAST, random_state=0)
    assert max(seen) <= 100 and result.status == Status.TIME_LIMIT
    assert result.labels.size == 300 and result.params["rank"] <= 50
    assert np.mean(result.predict(points) == result.labels) > 0.95


@pytest.mark.parametrize("rank", [None, 100])
@pytest.mark.parametrize("init", ["random", "kmeans"])
def test_cutting_planes_without_time(points, init, rank):
    with pytest.warns(ConvergenceWarning, match="time limit"):
        result = fastmmc.cpmmc(
            points, kernel="rbf", rank=rank, init=init, max_time=PAST, random_state=0
        )
    assert result.status == Status.TIME_LIMIT and np.isfinite(result.objective)
    assert result.params["rank"] <= 50
    np.testing.assert_array_equal(result.predict(points), result.labels)


def test_cutting_planes_leave_time_for_the_first_pass(points, monkeypatch):
    monkeypatch.setattr(fastmmc.cutting_plane.search, "PASS_SECONDS", 1.0)
    with pytest.warns(ConvergenceWarning, match="time limit"):
        result = fastmmc.cpm3c(points, 2, kernel="rbf", rank=200, max_time=60, random_state=0)
    assert result.params["rank"] <= 50


@pytest.mark.parametrize("search", ["memetic", "annealing"])
def test_sammc_without_time(points, search):
    with pytest.warns(ConvergenceWarning, match="time limit"):
        result = fastmmc.sammc(points, 9, search=search, max_time=PAST, random_state=0)
    assert result.status == Status.TIME_LIMIT
    np.testing.assert_array_equal(result.predict(points), result.labels)


@pytest.mark.parametrize("rank", [None, 100])
def test_a_search_without_steps_makes_none_without_time(points, rank):
    labels = np.arange(300) % 3
    given = {"init": labels, "method": "steepest", "max_iter": 0, "rank": rank}
    with pytest.warns(ConvergenceWarning, match="time"):
        result = fastmmc.umc_rls(points, 3, max_time=PAST, random_state=0, **given)
    np.testing.assert_array_equal(result.labels, labels)


def test_the_root_of_many_landmarks_is_told_before_it_is_begun(points, rng):
    from fastmmc.kernels.gram import Kernel
    from fastmmc.kernels.nystroem import ROOT_SECONDS, Form, make_features

    told = []
    kernel = Kernel("rbf", sigma=1.0)
    make_features(points, kernel, Form(200), rng, lambda n_rows, ahead=0.0: told.append(ahead))
    assert max(told) == ROOT_SECONDS * 200**3


def test_no_features_of_many_landmarks_where_time_is_short(points):
    from fastmmc.kernels.nystroem import ROOT_SECONDS

    with pytest.warns(ConvergenceWarning, match="one of rank"):
        result = fastmmc.fast_evo_mmc(
            points, rank=300, max_time=2 * ROOT_SECONDS * 300**3, random_state=0, n_init=1
        )
    assert result.params["rank"] <= 100 and result.status == Status.TIME_LIMIT


def count_looks(call):
    """Return how often a call looks at the clock."""
    n_looks = 0

    def look(*progress):
        nonlocal n_looks
        n_looks += 1

    call(look)
    return n_looks


def test_long_phases_look_at_the_clock_more_than_once(rng):
    from fastmmc.alternating.machines import dense_solver, feature_solver
    from fastmmc.alternating.start import first_labels
    from fastmmc.kernels.cholesky import mirror_lower
    from fastmmc.kernels.gram import Kernel, fill_lower_gram
    from fastmmc.kernels.nystroem import Form, make_features

    X = rng.standard_normal((1100, 2))
    K, ridge = np.eye(1100), np.ones(1100)
    kernel, ones = Kernel("rbf", sigma=1.0), np.ones(1100)
    phases = {
        "gram": lambda look: fill_lower_gram(kernel, X, K.copy(), look),
        "mirror": lambda look: mirror_lower(K.copy(), look=look),
        "features": lambda look: make_features(X, kernel, Form(9), rng, look),
        "pivots": lambda look: make_features(X, kernel, Form(9, "pivoted", 0.0), rng, look),
        "factor": lambda look: dense_solver(K, ridge, look),
        "cut": lambda look: first_labels("ncut", X, kernel, ones, rng, look),
        "k-means++": lambda look: run_to_end(begin_choice(X, 20, 0).choosing(), look),
        "k-means": lambda look: k_means(X, 20, 0, look=look),
    }
    few = {name: n for name, call in phases.items() if (n := count_looks(call)) < 2}
    assert not few
    assert count_looks(lambda look: feature_solver(X, ridge, look)) > 0


def test_the_factor_in_blocks_is_the_factor(rng):
    from fastmmc.alternating.machines import dense_solver

    Z = rng.standard_normal((1100, 5))
    K, ridge, y = Z @ Z.T, rng.uniform(1.0, 2.0, 1100), rng.standard_normal(1100)
    border = np.ones((1, 1100))
    system = np.block([[K + np.diag(ridge), border.T], [border, np.zeros((1, 1))]])
    *expected, bias = np.linalg.solve(system, np.append(y, 0.0))
    found = dense_solver(K, ridge)(y)
    np.testing.assert_allclose(found[1], expected, rtol=1e-8, atol=1e-10)
    assert found[0] == pytest.approx(bias)


def test_a_start_that_runs_out_of_time_has_not_ended():
    class Search:
        objective = np.inf
        finished = False

        def step(self, budget):
            raise execution.OutOfTime

        def fraction(self):
            return 0.0

        def finish(self):
            self.finished = True

    control = execution.RunControl(max_time=60.0, started=time.perf_counter())
    searches, status, n_done = execution.run_restarts(lambda index: Search(), 3, control)
    assert status == Status.TIME_LIMIT and n_done == 0 and searches[0].finished


def test_time_left():
    control = execution.RunControl(max_time=5.0, started=time.perf_counter() - 10.0)
    assert control.out_of_time() and control.time_left() < -4.9
    with pytest.raises(execution.OutOfTime):
        control.check_time()
    assert execution.RunControl().time_left() == np.inf


@pytest.mark.parametrize("method", ["wta", "lcvqe"])
def test_first_prototypes_are_chosen_in_slices(points, monkeypatch, method):
    from fastmmc.competitive import methods
    from fastmmc.data.links import check_links
    from fastmmc.kernels import kmeans

    seen = []
    distances = kmeans.euclidean_distances

    def counted(chosen, *args, **kwargs):
        seen.append(len(chosen))
        return distances(chosen, *args, **kwargs)

    monkeypatch.setattr(kmeans, "euclidean_distances", counted)
    call = vars(getattr(fastmmc, method).parameters(points, 20)) | {"init": "k-means++"}
    plan = methods.make_plan(method, call, 300, check_links(None, None, 300))
    kind = methods.BatchSearch if method == "lcvqe" else methods.OnlineSearch
    search = kind(plan, points, np.random.default_rng(0))
    assert len(seen) == 1
    for n_chosen in range(2, 10):
        assert not search.step(1) and len(seen) == n_chosen
    # The others are drawn at once.
    search.finish()
    assert len(seen) == 9 and len(search.kept) == 20


def test_what_k_means_plus_plus_has_not_chosen_is_drawn_at_once(points):
    from fastmmc.kernels.kmeans import begin_choice

    choice = begin_choice(points, 30, 0)
    for _ in islice(choice.choosing(), 5):
        pass
    chosen = choice.indices[:6].copy()
    choice.fill()
    assert choice.n_chosen == 30 and np.unique(choice.indices).size == 30
    np.testing.assert_array_equal(choice.indices[:6], chosen)
    same = begin_choice(np.zeros((40, 2)), 30, 0)
    same.fill()
    assert np.unique(same.indices[1:]).size == 29


@pytest.mark.parametrize("pairwise", [False, True])
def test_constraints_are_enforced_in_pieces(rng, monkeypatch, pairwise):
    from fastmmc.competitive import batch
    from fastmmc.competitive.space import Plan
    from fastmmc.data.links import Links

    monkeypatch.setattr(batch, "PIECE", 40)
    X = rng.standard_normal((200, 2))
    links = Links(rng.integers(200, size=(60, 2)), rng.integers(200, size=(60, 2)))
    plan = Plan(4, X[:4].copy(), 3, links, pairwise)
    whole = batch.BatchSearch(plan, X, rng)
    assert whole.step(2**62)
    name = "enforce_pairs" if pairwise else "enforce_linear"
    most, enforce = [], getattr(batch.kernels, name)

    def counted(*args):
        most.append(len(args[-2]))
        enforce(*args)

    monkeypatch.setattr(batch.kernels, name, counted)
    sliced = batch.BatchSearch(plan, X, rng)
    while not sliced.step(1):
        pass
    assert max(most) == (2 if pairwise else 10)
    np.testing.assert_array_equal(sliced.labels, whole.labels)
    assert sliced.objective == whole.objective
    # A start that is stopped in its first round leaves constraints violated.
    most.clear()
    late = batch.BatchSearch(plan, X, rng)
    late.step(1)
    late.finish()
    assert not most and np.isfinite(late.objective)


@pytest.mark.parametrize("function", [fastmmc.wta, fastmmc.c_rpcl, fastmmc.lcvqe])
def test_features_of_prototypes_without_time(points, function):
    with pytest.warns(ConvergenceWarning, match="too short for the features"):
        result = function(points, 3, features="nystroem", rank=200, max_time=PAST, random_state=0)
    assert result.status == Status.TIME_LIMIT and result.params["rank"] <= 50
    np.testing.assert_array_equal(result.predict(points), result.labels)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_first_clusters_of_planes_leave_time_for_a_pass(points, monkeypatch):
    from fastmmc.cutting_plane import search

    given = {"max_time": 60.0, "max_iter": 1, "n_init": 1, "init": "kmeans", "random_state": 0}
    chosen, k_means = [], search.k_means
    monkeypatch.setattr(
        search,
        "k_means",
        lambda *args, **kwargs: chosen.append(k_means(*args, **kwargs)) or chosen[-1],
    )
    fastmmc.cpm3c(points, 3, **given)
    assert len(chosen) == 1
    monkeypatch.setattr(search, "PASS_SECONDS", 1.0)  # of 300 points, 3 columns and 3 clusters
    fastmmc.cpm3c(points, 3, **given)
    assert len(chosen) == 1
