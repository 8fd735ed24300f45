"""cpmmc and cpm3c: what they find, certificates, forms of input, stops, bad input, estimators."""

import inspect
import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fastmmc
from fastmmc import Status
from fastmmc.core.execution import RunControl, best_of_restarts
from fastmmc.cutting_plane.planes import Weights
from fastmmc.kernels.gram import Kernel
from tests.cutting_plane import naive

# Weights of clusters that win no point are usual for this method, and have a test of their own.
pytestmark = pytest.mark.filterwarnings("ignore:found . clusters?, fewer than the")


def cpm3c_of(k, X, **params):
    """As cpmmc is by default: on the points themselves."""
    return fastmmc.cpm3c(X, k, **({"C": 1.0, "kernel": "linear"} | params))


def cpm3c(X, **params):
    return cpm3c_of(3, X, **params)


FUNCTIONS = {"cpmmc": fastmmc.cpmmc, "cpm3c": cpm3c}
every = pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)


@pytest.fixture
def two_blobs():
    rng = np.random.default_rng(4)
    y = np.repeat([0, 1], [32, 28])
    return rng.standard_normal((60, 3)) + 4.0 * y[:, None], y


def gram(X, coef0=1.0):
    return X @ X.T + coef0


def test_two_blobs(two_blobs):
    X, y = two_blobs
    for given in ({}, {"kernel": "rbf", "C": 10.0}, {"init": "kmeans"}, {"init": y}):
        result = fastmmc.cpmmc(X, random_state=0, **given)
        assert adjusted_rand_score(y, result.labels) == 1.0
        assert result.converged
        np.testing.assert_array_equal(result.sizes, np.bincount(result.labels))


def test_three_blobs_in_a_kernel_map(blobs):
    X, y = blobs
    found = [
        adjusted_rand_score(y, cpm3c(X, C=C, kernel="rbf", random_state=0).labels)
        for C in (1.0, 10.0, 100.0)
    ]
    assert max(found) == 1.0


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_objective_of_two_clusters_is_that_of_the_weights(kernel, overlapping):
    result = fastmmc.cpmmc(overlapping, C=3.0, kernel=kernel, sigma=2.0, random_state=0)
    K = gram(overlapping) if kernel == "linear" else rbf(overlapping)
    u = np.zeros(60)
    u[result.support] = result.dual_coef
    f = K @ u + result.intercept
    np.testing.assert_allclose(result.decision_function(overlapping)[:, 1], f, atol=1e-6)
    slack = np.mean(np.maximum(0.0, 1.0 - np.abs(f)))
    assert result.objective == pytest.approx(0.5 * u @ K @ u + 3.0 * slack, rel=1e-6)
    assert result.n_violated == np.sum(np.abs(f) < 1.0)
    assert abs(f.mean()) <= 0.03 + 1e-6
    np.testing.assert_array_equal(result.labels, f >= 0)


def rbf(X, sigma=2.0):
    return Kernel("rbf", sigma=sigma).block(X, X)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_objective_of_many_clusters_is_that_of_the_weights(kernel, overlapping):
    result = cpm3c(overlapping, C=3.0, kernel=kernel, sigma=2.0, random_state=0)
    K = gram(overlapping) if kernel == "linear" else rbf(overlapping)
    u = np.zeros((60, len(result.sizes)))
    u[result.support] = result.dual_coef
    scores = K @ u
    np.testing.assert_allclose(result.decision_function(overlapping), scores, atol=1e-6)
    ordered = np.sort(scores, axis=1)
    if len(result.sizes) == 3:  # else an empty cluster has weights as well
        slack = np.mean(np.maximum(0.0, 1.0 - (ordered[:, -1] - ordered[:, -2])))
        norm = np.einsum("ip,ij,jp->", u, K, u)
        assert result.objective == pytest.approx(0.5 * norm + 3.0 * slack, rel=1e-6)
    means = scores.mean(axis=0)
    assert means.max() - means.min() <= 0.03 + 1e-6
    np.testing.assert_array_equal(result.labels, scores.argmax(axis=1))


@every
@pytest.mark.parametrize("stop", ["additive", "relative"])
@pytest.mark.parametrize("eps", [0.1, 0.01, 0.001])
def test_no_constraint_is_violated_by_more_than_eps_at_the_end(function, stop, eps, overlapping):
    result = function(overlapping, C=5.0, eps=eps, stop=stop, n_init=3, random_state=1)
    assert result.converged
    slack = (result.trace["working"][-1] - _half_norm(result, 5.0)) / 5.0
    most = eps if stop == "additive" else eps * slack
    assert result.trace["violation"][-1] <= most + 1e-12
    assert result.objective == result.history[-1]
    assert abs(result.duality_gap) <= 1e-6 * result.objective
    assert result.n_iter == result.trace["planes"][-1]


def _half_norm(result, C):
    """Of the history, as violation = mean slack - slack of the planes."""
    return result.history[-1] - C * (
        result.trace["violation"][-1] + _slack_of_the_planes(result, C)
    )


def _slack_of_the_planes(result, C):
    model = result.model
    half = 0.5 * np.sum(model.basis**2)
    if len(model.intercept) > 1:
        half += 0.5 * np.sum(model.intercept**2)
    return max(0.0, (result.trace["working"][-1] - half) / C)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("C", [0.3, 3.0, 30.0])
def test_freezing_the_signs_never_raises_the_objective_on_the_planes(seed, C):
    X = np.random.default_rng(seed).standard_normal((50, 4))
    result = fastmmc.cpmmc(X, C=C, cccp_tol=1e-6, n_init=1, random_state=seed)
    working, planes = result.trace["working"], result.trace["planes"]
    same = planes[1:] == planes[:-1]
    assert same.sum() > 0 or C < 1
    assert (np.diff(working)[same] <= 1e-9 * working[1:][same]).all()
    assert (result.history >= working - 1e-9).all()
    # A start is feasible, and the first program is no worse than it.
    assert result.history[0] <= 1.01 * C + 0.5


@every
@pytest.mark.parametrize("eps", [0.01, 0.001])
def test_a_search_that_finds_no_end_settles(monkeypatch, function, eps):
    """Points without clusters and little room for slack: labels are held in the end."""
    from fastmmc.cutting_plane import search

    X, C = np.random.default_rng(2).standard_normal((120, 12)), 50.0
    run = {"C": C, "eps": eps, "n_init": 1, "random_state": 0}
    settled = function(X, **run)
    assert settled.converged
    assert settled.trace["violation"][-1] <= eps + 1e-12
    assert abs(settled.duality_gap) <= 1e-6 * settled.objective
    rounds = []
    settle, is_lower = search.PlaneSearch._settle, search.PlaneSearch._is_lower

    def begin(search):
        rounds.clear()
        return settle(search)

    def listen(search, objective, before):
        rounds.append((objective, search.objective))
        return is_lower(search, objective, before)

    monkeypatch.setattr(search.PlaneSearch, "_settle", begin)
    monkeypatch.setattr(search.PlaneSearch, "_is_lower", listen)
    again = function(X, **run)
    assert again.objective == settled.objective
    objectives = [objective for objective, _ in rounds]
    # The first round is the best of the free search; each one after it ends no higher, but for eps.
    assert len(rounds) >= 2
    assert (np.diff(objectives) <= C * eps + 1e-9).all()
    assert settled.objective == objectives[-1] < objectives[0]
    monkeypatch.setattr(search, "PATIENCE", 10**9)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        endless = function(X, **run | {"max_iter": 300})
    assert settled.objective < endless.objective


@every
def test_a_stop_while_labels_are_held(monkeypatch, function):
    from fastmmc.cutting_plane import search

    X, held = np.random.default_rng(2).standard_normal((120, 12)), []
    hold = search.PlaneSearch._hold

    def listen(search):
        for cost in hold(search):
            held.append(search.n_iter)
            yield cost

    monkeypatch.setattr(search.PlaneSearch, "_hold", listen)
    run = {"C": 50.0, "n_init": 1, "random_state": 0}
    function(X, **run)
    assert held
    monkeypatch.undo()
    for most in (held[0], held[len(held) // 2]):
        with pytest.warns(ConvergenceWarning, match="max_iter"):
            result = function(X, max_iter=most, **run)
        assert result.objective == pytest.approx(result.history.min())
        np.testing.assert_array_equal(result.predict(X), result.labels)


def test_two_winners_are_signs(two_blobs):
    """Spec 5.2: with no bias the objective is half that of signs at 2 C."""
    X, y = two_blobs
    X = X - X.mean(axis=0)
    start = {"init": y, "cccp_tol": 1e-9, "eps": 1e-4}
    both = cpm3c_of(2, X, C=2.0, coef0=0.0, **start)
    W = both.model.basis
    np.testing.assert_allclose(W[0], -W[1], atol=1e-9)
    u = W[1] - W[0]
    assert both.objective == pytest.approx(0.5 * naive.sign_objective(X, u, 0.0, 4.0))
    signs = fastmmc.cpmmc(X, C=4.0, score_balance=0.0, **start)
    assert both.objective == pytest.approx(0.5 * signs.objective, rel=1e-3)
    assert adjusted_rand_score(both.labels, signs.labels) == 1.0


@every
def test_sparse_points_give_the_same(function, overlapping):
    X = np.where(np.abs(overlapping) < 0.5, 0.0, overlapping)
    run = {"random_state": 0, "n_init": 3}
    dense = function(X, **run)
    for form in (csr_matrix, csr_array):
        sparse = function(form(X), **run)
        np.testing.assert_array_equal(sparse.labels, dense.labels)
        assert sparse.objective == pytest.approx(dense.objective, rel=1e-9)
        np.testing.assert_array_equal(sparse.predict(form(X)), dense.labels)


@every
def test_sparse_points_in_features_of_a_kernel(function, overlapping):
    X = csr_matrix(np.where(np.abs(overlapping) < 0.5, 0.0, overlapping))
    run = {"kernel": "rbf", "rank": 20, "random_state": 0, "n_init": 2}
    result = function(X, **run)
    np.testing.assert_array_equal(result.labels, function(X.toarray(), **run).labels)
    np.testing.assert_array_equal(result.predict(X), result.labels)


@every
def test_features_of_a_linear_kernel_give_the_same(function, overlapping):
    """All landmarks, or the Gram matrix: other coordinates of the same problem."""
    start = np.arange(60) % (2 if function is fastmmc.cpmmc else 3)
    run = {"init": start, "eps": 1e-3, "cccp_tol": 1e-6}
    direct = function(overlapping, **run)
    by_rank = function(overlapping, rank=60, **run)
    by_gram = function(gram(overlapping), kernel="precomputed", **run)
    assert direct.params["rank"] is None and by_rank.params["rank"] == 60
    for result in (by_rank, by_gram):
        if function is fastmmc.cpmmc:
            assert result.objective == pytest.approx(direct.objective, rel=1e-5)
            assert adjusted_rand_score(direct.labels, result.labels) == 1.0
    assert by_rank.objective == pytest.approx(by_gram.objective, rel=1e-5)
    np.testing.assert_array_equal(by_gram.predict(gram(overlapping)), by_gram.labels)
    np.testing.assert_array_equal(by_rank.predict(overlapping), by_rank.labels)


@every
@pytest.mark.parametrize(
    "form",
    [
        {"kernel": "rbf", "rank": 20},
        {"kernel": "rbf", "rank": 20, "landmarks": "pivoted"},
        {"kernel": "rbf"},
        {"kernel": "poly", "degree": 2},
        {"kernel": "laplacian"},
        {"kernel": lambda X, Z: X @ Z.T + 1.0},
    ],
    ids=["low rank", "pivoted", "whole", "poly", "laplacian", "callable"],
)
def test_kernels(function, form, overlapping):
    result = function(overlapping, random_state=0, n_init=3, **form)
    assert result.converged
    np.testing.assert_array_equal(result.predict(overlapping), result.labels)
    scores = result.decision_function(overlapping[:5])
    assert scores.shape == (5, max(2, len(result.sizes)))


@every
def test_forms_of_input(function, overlapping):
    run = {"random_state": 0, "n_init": 2}
    wanted = function(overlapping, **run)
    frozen = overlapping.copy()
    frozen.flags.writeable = False
    for X in (overlapping.tolist(), np.asfortranarray(overlapping), frozen):
        np.testing.assert_array_equal(function(X, **run).labels, wanted.labels)
    np.testing.assert_array_equal(frozen, overlapping)
    single = function(overlapping.astype(np.float32), **run)
    assert single.objective == pytest.approx(wanted.objective, rel=0.05)
    assert function(np.rint(10 * overlapping).astype(np.int8), **run).labels.dtype == np.int64


def test_the_place_of_the_points_does_not_matter(overlapping):
    here = fastmmc.cpmmc(overlapping, random_state=0)
    there = fastmmc.cpmmc(overlapping + 100.0, random_state=0)
    assert there.objective == pytest.approx(here.objective, rel=1e-4)


def test_one_cluster(overlapping):
    result = fastmmc.cpm3c(overlapping, 1, random_state=0)
    assert result.sizes.tolist() == [60] and result.objective == 0.0 and result.converged
    assert (result.predict(overlapping) == 0).all()


def test_empty_clusters_leave_no_gaps(overlapping):
    X = overlapping - overlapping.mean(axis=0)
    found = [cpm3c_of(6, X, coef0=0.0, C=20.0, n_init=1, random_state=s) for s in range(5)]
    assert min(len(result.sizes) for result in found) < 6
    for result in found:
        assert (result.sizes > 0).all()
        np.testing.assert_array_equal(np.bincount(result.labels), result.sizes)
        np.testing.assert_array_equal(result.predict(X), result.labels)
        assert result.dual_coef.shape == (len(result.support), len(result.sizes))


@pytest.mark.filterwarnings("ignore:X has only")
def test_points_that_are_all_equal():
    X = np.ones((8, 2))
    result = fastmmc.cpmmc(X, random_state=0)
    assert result.sizes.tolist() == [8, 0]
    assert result.objective == pytest.approx(1.0 - 0.03)
    np.testing.assert_array_equal(result.predict(X), result.labels)
    assert cpm3c(X, random_state=0).sizes.sum() == 8
    assert fastmmc.cpmmc([[0.0], [1.0]], random_state=0).sizes.sum() == 2


@every
def test_threads_and_restarts(function, overlapping):
    run = {"n_init": 6, "random_state": 3}
    one, two = function(overlapping, **run), function(overlapping, n_jobs=2, **run)
    np.testing.assert_array_equal(one.labels, two.labels)
    assert one.objectives.tolist() == two.objectives.tolist()
    assert one.objective == one.objectives.min() == one.objectives[one.best_init]
    first = function(overlapping, n_init=1, random_state=3)
    assert first.objective == one.objectives[0]
    again = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(again.predict(overlapping), one.labels)


@every
def test_given_labels_are_started_from_once(function, two_blobs):
    X, y = two_blobs
    result = function(X, init=y, n_init=5)
    assert result.objectives.shape == (1,) and result.params["n_init"] == 1


@every
def test_few_planes(function, overlapping):
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        result = function(overlapping, C=30.0, eps=1e-6, max_iter=4, n_init=1, random_state=0)
    assert result.status == Status.MAX_ITER and result.n_iter == 4
    assert result.objective == result.history.min()
    last = result.history[-1] == result.objective
    assert (result.dual_coef is not None) == last


@every
@pytest.mark.jit
@pytest.mark.parametrize(
    ("stop", "status"),
    [({"max_time": 1e-3}, Status.TIME_LIMIT), ({"callback": lambda _: True}, Status.CALLBACK)],
)
def test_stops(function, stop, status):
    X = np.random.default_rng(0).standard_normal((3000, 20))
    with pytest.warns(ConvergenceWarning, match="stopped before the end"):
        result = function(X, C=100.0, eps=1e-9, cccp_tol=1e-9, n_init=50, **stop)
    assert result.status == status
    assert result.labels.shape == (3000,) and np.isfinite(result.objective)
    assert result.sizes.sum() == 3000
    np.testing.assert_array_equal(result.predict(X), result.labels)


def make_search(X, binary, k):
    """A start on the points as they are, whatever their scale."""
    from fastmmc.core.execution import fixed_seed, restart_stream
    from fastmmc.cutting_plane import methods, search

    call = methods._CPMMCCall(X=X, max_iter=10)
    problem = search.Problem(call, RunControl(), k, binary, X, X.mean(axis=0), 1.0)
    return search.PlaneSearch(problem, restart_stream(fixed_seed(0), 0))


@every
def test_a_stop_before_the_first_pass_gives_the_labels_of_the_start(function, overlapping):
    for budget in (1, 2**40):
        search = make_search(overlapping, function is fastmmc.cpmmc, 2)
        search.step(budget)
        search.finish()
        assert np.isfinite(search.objective) and not search.at_end
        assert len(np.unique(search.labels)) == 2
        assert search.history.tolist() == [search.objective]
        assert search.trace["planes"].tolist() == [0]
        working = search.objective - search.trace["violation"][0]
        assert search.trace["working"][0] == pytest.approx(working)


def test_a_stop_inside_a_program(overlapping):
    search = make_search(overlapping + 5.0, False, 8)
    tighten, added = search.planes.tighten, []
    search.planes.tighten = lambda weights: added.append(tighten(weights)) or added[-1]
    while not any(added):
        assert not search.step(2**40)
    start = search.weights
    assert not search.step(1)
    search.finish()
    assert search.weights is start and not search.at_end
    assert search.history.tolist() == [search.objective]


def test_a_scale_near_the_end_of_the_range_changes_nothing(overlapping):
    found = []
    for scale in (1e60, 1e140):
        search = make_search(overlapping * scale, True, 2)
        while not search.step(2**40):
            pass
        search.finish()
        found.append(search)
    assert found[0].status == found[1].status != Status.NUMERICAL
    np.testing.assert_array_equal(found[0].labels, found[1].labels)
    assert found[0].objective == pytest.approx(found[1].objective, rel=1e-9)


@pytest.mark.parametrize(("binary", "scale"), [(True, 1e155), (False, 1e200)])
def test_numbers_out_of_range_end_a_search_as_a_numerical_problem(binary, scale, overlapping):
    with np.errstate(all="ignore"):
        search = make_search(overlapping * scale, binary, 2)
        if binary:  # the scores of a start are out of range before any program is
            search._weights = Weights(np.full((1, 3), 0.1 / scale), np.zeros(1), 0.0)
        while not search.step(2**40):
            pass
        search.finish()
    assert search.status == Status.NUMERICAL
    assert search.labels.shape == (60,) and not np.isnan(search.objective)


@every
@pytest.mark.parametrize("scale", [1e80, 1e153, 1e300])
@pytest.mark.parametrize("form", [np.asarray, csr_matrix], ids=["dense", "sparse"])
def test_points_that_are_too_large(function, scale, form, overlapping):
    with pytest.raises(ValueError, match="kernel='linear' gives values that are too large"):
        function(form(overlapping * scale))


@every
@pytest.mark.parametrize("scale", [1e10, 1e70])
def test_points_that_are_large(function, scale, two_blobs):
    X, _ = two_blobs
    result = function(X * scale, n_init=2, random_state=0)
    assert result.converged and result.objective < 0.1
    assert abs(result.duality_gap) <= 1e-4


def test_features_of_a_kernel_that_are_too_large(overlapping):
    with pytest.raises(ValueError, match="kernel='poly' gives values that are too large"):
        fastmmc.cpmmc(overlapping * 1e40, kernel="poly", degree=9, landmarks=[0, 1])


@pytest.mark.filterwarnings("ignore:stopped before the end")
@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_a_program_that_is_not_solved_exactly_is_told_of(scale, overlapping):
    """Far from the origin the balance takes all digits."""
    shift = 1e8 * scale
    with pytest.warns(ConvergenceWarning, match="not solved exactly.*centre the points"):
        result = cpm3c(scale * overlapping + shift, random_state=0)
    assert result.status == Status.NUMERICAL
    assert cpm3c(overlapping + 100.0, random_state=0).converged


def test_one_cluster_of_two_is_told_of(two_blobs):
    X = 1e-4 * two_blobs[0]
    with pytest.warns(ConvergenceWarning, match="found 1 cluster, fewer than the 2 .* raise C"):
        res = fastmmc.cpmmc(X, n_init=2, random_state=0)
    assert res.sizes.tolist() == [60, 0]
    assert fastmmc.cpmmc(X, C=1e8, n_init=2, random_state=0).sizes.min() > 0


def test_fewer_clusters_than_asked_for_are_told_of():
    X, _ = fastmmc.datasets.load("iris")
    with pytest.warns(ConvergenceWarning, match="found 2 clusters, fewer than the 3 asked for"):
        result = cpm3c(X, random_state=0)
    assert len(result.sizes) == 2


def test_a_wide_balance_asks_for_nothing(overlapping):
    wide = [cpm3c(overlapping, score_balance=b, random_state=0) for b in (1e3, 1e50)]
    assert wide[0].objective == wide[1].objective
    assert all(result.converged for result in wide)


@every
def test_a_kernel_that_is_not_positive_semidefinite(function, overlapping):
    for K in (-np.eye(60), gram(overlapping) - 10.0 * np.eye(60)):
        with pytest.raises(ValueError, match="not positive semidefinite"):
            function(K, kernel="precomputed")
    single = gram(overlapping).astype(np.float32)
    assert function(single, kernel="precomputed", random_state=0).converged


BAD = [
    ({"C": 0}, ValueError, "C must be at least 1e-50"),
    ({"C": 1e-300}, ValueError, "C must be at least 1e-50 and at most 1e\\+50; got 1e-300"),
    ({"C": 1e60}, ValueError, "C must be at least"),
    ({"score_balance": 1e300}, ValueError, "score_balance must be at least 0 and at most"),
    ({"kernel_params": {"a": 1}}, ValueError, "kernel_params are the arguments"),
    ({"rank_tol": "a"}, TypeError, "rank_tol must be a real number"),
    ({"rank_tol": 1.0}, ValueError, "rank_tol must be at least 0 and below 1"),
    ({"kernel": "rbf", "sigma": 1e-200}, ValueError, "sigma=1e-200 is too extreme"),
    ({"C": "1"}, TypeError, "C must be a real number"),
    ({"score_balance": -0.1}, ValueError, "score_balance must be at least 0"),
    ({"score_balance": np.nan}, ValueError, "score_balance must be finite"),
    ({"eps": 0.0}, ValueError, "eps must be greater than 0"),
    ({"stop": "both"}, ValueError, "stop must be one of 'additive', 'relative'"),
    ({"cccp_tol": -1.0}, ValueError, "cccp_tol must be greater than 0"),
    ({"init": "k-means"}, ValueError, "init must be one of 'random', 'kmeans'"),
    ({"init": np.full(60, 7)}, ValueError, "init: labels must be 0.."),
    ({"init": [0, 1]}, ValueError, "init must have one label for each of the 60 points"),
    ({"solver": "simplex"}, ValueError, "solver must be 'active-set'"),
    ({"max_iter": 0}, ValueError, "max_iter must be at least 1"),
    ({"kernel": "gauss"}, ValueError, "kernel must be one of"),
    ({"kernel": "precomputed"}, ValueError, "square matrix"),
    ({"sigma": 0.0}, ValueError, "sigma must be greater than 0"),
    ({"rank": 61}, ValueError, "rank must be at most 60"),
    ({"rank": "all"}, ValueError, "rank must be 'auto', an integer"),
    ({"landmarks": "some"}, ValueError, "landmarks must be one of"),
    ({"n_init": 0}, ValueError, "n_init must be at least 1"),
    ({"n_jobs": 0}, ValueError, "n_jobs must not be 0"),
    ({"max_time": 0}, ValueError, "max_time must be greater than 0"),
    ({"random_state": -1}, ValueError, "random_state"),
]


@every
@pytest.mark.parametrize(("params", "error", "message"), BAD)
def test_bad_parameters(function, params, error, message, overlapping):
    with pytest.raises(error, match=message):
        function(overlapping, **params)


@every
@pytest.mark.parametrize(
    "points", [np.full((3, 2), np.nan), np.empty((0, 2)), np.ones(3), [["a"]], np.eye(3) + 1j, None]
)
def test_bad_points(function, points):
    with pytest.raises(ValueError, match="X|array|sample|complex|convert|Complex"):
        function(points)


def test_bad_sizes_and_forms(overlapping, monkeypatch):
    with pytest.raises(ValueError, match="at least 2 points"):
        fastmmc.cpmmc([[1.0]])
    with pytest.raises(ValueError, match="k must be at most 60, the number of points"):
        fastmmc.cpm3c(overlapping, 61)
    with pytest.raises(TypeError, match="k must be an integer"):
        fastmmc.cpm3c(overlapping, 2.0)
    monkeypatch.setattr(fastmmc.core.memory, "available_memory", lambda: 1000)
    with pytest.raises(MemoryError, match="eigenvectors of the Gram matrix of 60 points"):
        fastmmc.cpmmc(overlapping, kernel="rbf")


ESTIMATORS = {"cpmmc": fastmmc.CPMMC(), "cpm3c": fastmmc.CPM3C(3, C=1.0, kernel="linear")}


@pytest.mark.parametrize("name", ESTIMATORS)
class TestEstimators:
    def test_they_are_the_functions(self, name, overlapping):
        model, function = ESTIMATORS[name], FUNCTIONS[name]
        defaults = inspect.signature(getattr(fastmmc, name)).parameters
        given = inspect.signature(type(model)).parameters
        assert set(given) - {"n_clusters"} == set(defaults) - {"X", "k"}
        for parameter in set(given) - {"n_clusters"}:
            assert given[parameter].default == defaults[parameter].default
        model = clone(model).set_params(random_state=0, n_init=2).fit(overlapping)
        result = function(overlapping, random_state=0, n_init=2)
        np.testing.assert_array_equal(model.labels_, result.labels)
        assert model.objective_ == result.objective
        assert model.intercept_ == result.intercept
        np.testing.assert_array_equal(model.predict(overlapping), model.labels_)
        slack = -model.score(overlapping)
        if len(result.sizes) == (2 if name == "cpmmc" else 3):
            norm = np.sum(result.model.basis**2)
            norm += np.sum(result.model.intercept**2) if name == "cpm3c" else 0.0
            assert result.objective == pytest.approx(0.5 * norm + slack, rel=1e-6)
        assert clone(model).get_params() == model.get_params()
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.predict(overlapping), model.labels_)

    def test_in_a_pipeline_and_a_search(self, name, overlapping):
        model = clone(ESTIMATORS[name]).set_params(random_state=0, n_init=2)
        pipeline = make_pipeline(StandardScaler(), model)
        assert pipeline.fit_predict(overlapping).shape == (60,)
        search = GridSearchCV(pipeline, {f"{name}__C": [0.1, 1.0]}, cv=2).fit(overlapping)
        assert search.best_params_[f"{name}__C"] in (0.1, 1.0)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def discs(rng):
    """Four clusters of equal size in the corners of a square."""
    angle, radius = 2.0 * np.pi * rng.random(400), np.sqrt(rng.random(400))
    y = np.repeat(np.arange(4), 100)
    corners = 3.0 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
    return corners[y] + np.column_stack((np.cos(angle), np.sin(angle))) * radius[:, None], y


@pytest.mark.jit
@pytest.mark.filterwarnings("ignore:found")
def test_the_default_finds_clear_clusters(rng):
    found = []
    for seed in range(10):
        X, y = discs(rng)
        found.append(adjusted_rand_score(y, fastmmc.cpm3c(X, 4, random_state=seed).labels))
    assert np.median(found) == 1.0 and np.mean(found) > 0.9


@pytest.mark.parametrize(("scale", "shift"), [(1e-3, 0.0), (1e3, 0.0), (1.0, 1e3)])
def test_the_default_does_not_depend_on_units_and_origin(rng, scale, shift):
    X, _ = discs(rng)
    as_it_is, moved = (
        fastmmc.cpm3c(Z, 4, n_init=2, random_state=0) for Z in (X, X * scale + shift)
    )
    assert adjusted_rand_score(as_it_is.labels, moved.labels) == 1.0


def test_a_start_that_keeps_more_clusters_wins():
    class Search:
        def __init__(self, n_lost, objective):
            self.n_lost, self.objective, self.status = n_lost, objective, Status.CONVERGED
            self.history = np.array([objective])

        def step(self, budget):
            return True

        def fraction(self):
            return 1.0

        def finish(self):
            """Do nothing."""

    searches = [Search(1, 1.0), Search(0, 9.0), Search(0, 5.0), Search(2, 0.0)]
    outcome = best_of_restarts(searches.__getitem__, 4, RunControl())
    assert outcome.best_init == 2 and outcome.best is searches[2]
    assert outcome.objectives.tolist() == [1.0, 9.0, 5.0, 0.0]


def test_sparse_points_have_landmarks_by_default(rng):
    X, _ = discs(rng)
    X[np.abs(X) < 0.5] = 0.0
    sparse = fastmmc.cpm3c(csr_matrix(X), 4, n_init=1, random_state=0)
    assert sparse.params["rank"] <= 400
    dense = fastmmc.cpm3c(X, 4, n_init=1, random_state=0, rank=400)
    assert adjusted_rand_score(sparse.labels, dense.labels) == 1.0
