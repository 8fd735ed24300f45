"""iterSVM, iterSVR and iterLS-SVM: the rounds, the size rule, weights, forms, stops, estimators."""

import pickle
import time

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import fastmmc
from fastmmc import Status
from fastmmc.kernels.gram import Kernel, box_diagonal
from tests.alternating import naive

FUNCTIONS = [fastmmc.iter_svr, fastmmc.iter_svm, fastmmc.iter_ls_svm]
LOSS = {"iter_svr": "laplace", "iter_svm": "hinge", "iter_ls_svm": "square"}
every = pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)


@pytest.fixture
def two_blobs():
    rng = np.random.default_rng(4)
    y = np.repeat([0, 1], [25, 23])
    return rng.standard_normal((48, 3)) + 6.0 * y[:, None], y


def gram(X, width=3.0):
    K = Kernel("rbf", sigma=width * box_diagonal(X)).block(X, X)
    return (K + K.T) / 2


def objective(K, result, loss, C=500.0, s=None):
    """The loop objective from the result's own coefficients, term by term."""
    s = np.ones(len(K)) if s is None else s
    u = np.zeros(len(K))
    u[result.support] = result.dual_coef
    y = np.where(result.labels == 1, 1.0, -1.0)
    o = K @ u
    return u @ o + 2 * C * naive.best_bias(o, y, s, loss)[0]


@every
def test_two_blobs_from_labels_of_which_a_fifth_is_wrong(function, two_blobs):
    X, y = two_blobs
    start = y.copy()
    start[::5] = 1 - start[::5]
    result = function(X, init=start, balance=0.1)
    assert adjusted_rand_score(y, result.labels) == 1.0
    assert result.converged


@every
def test_the_objective_is_that_of_the_labels(function, overlapping):
    result = function(overlapping, random_state=0, sigma=4.0)
    K = gram(overlapping, 4.0 / box_diagonal(overlapping))
    assert result.objective == pytest.approx(
        objective(K, result, LOSS[function.__name__]), rel=1e-6
    )


@every
@pytest.mark.parametrize("seed", range(5))
def test_the_objective_never_rises(function, seed):
    X = np.random.default_rng(seed).standard_normal((50, 3))
    result = function(X, init="random", random_state=seed, sigma=2.0, C=10.0)
    assert (np.diff(result.history) <= 0).all()
    assert result.history[-1] == result.objective
    assert len(result.trace["gap"]) == len(result.history)
    assert result.converged


@every
@pytest.mark.filterwarnings("ignore:stopped before the end")
@pytest.mark.parametrize("bias", ["joint", "tied"])
def test_sizes_stay_within_the_balance_in_every_round(function, bias, overlapping):
    for rounds in range(1, 5):
        result = function(
            overlapping, init="random", random_state=1, max_iter=rounds, balance=0.1, bias=bias
        )
        assert abs(int(result.sizes[0]) - int(result.sizes[1])) <= 0.1 * 60


def test_a_tied_bias_ends_and_returns_its_best_round():
    rose = 0
    for seed in range(12):
        X = np.random.default_rng(seed).standard_normal((40, 2))
        result = fastmmc.iter_svr(
            X,
            init="random",
            n_init=1,
            random_state=seed,
            bias="tied",
            sigma=1.0,
            C=5.0,
            balance=0.3,
        )
        assert result.objective == result.history.min()
        rose += (np.diff(result.history) > 1e-9).any()
        K = gram(X, 1.0 / box_diagonal(X))
        u = np.zeros(40)
        u[result.support] = result.dual_coef
        f = K @ u + result.intercept
        assert np.array_equal(f > 0, result.labels == 1)
    assert rose > 0  # so that the case is met at all


@every
@pytest.mark.parametrize("bias", ["joint", "tied"])
def test_the_objective_is_of_the_bias_that_the_docs_name(function, bias):
    """And predictions are of the intercept, as the labels need not be the signs of the former."""
    assert 'trace["bias"]' in function.__doc__
    differ = 0
    for seed in range(6):
        X = np.random.default_rng(seed).standard_normal((60, 3))
        result = function(X, n_init=2, random_state=seed, bias=bias, sigma=1.0, C=5.0)
        K = gram(X, 1.0 / box_diagonal(X))
        b = result.trace["bias"][result.history.argmin()]
        u = np.zeros(60)
        u[result.support] = result.dual_coef
        y = np.where(result.labels == 1, 1.0, -1.0)
        f = result.decision_function(X)[:, 1]
        np.testing.assert_allclose(f, K @ u + result.intercept, atol=1e-8)

        loss = naive.margin_loss(y, K @ u + b, LOSS[function.__name__]).sum()
        value = u @ K @ u + 10.0 * loss
        assert result.objective == pytest.approx(value, rel=1e-6)
        assert np.array_equal(result.predict(X), result.labels)
        differ += not np.isclose(b, result.intercept)
    # So that the case is met at all.
    assert differ or bias == "tied" or function is fastmmc.iter_ls_svm


@every
def test_the_biases_of_a_linear_kernel_are_those_beside_the_points(function, overlapping):
    """Its features are less their mean, which no result tells."""
    X = overlapping + 7.0
    result = function(X, kernel="linear", coef0=3.0, C=5.0, n_init=2, random_state=0)
    scores = X @ (X[result.support].T @ result.dual_coef)
    f = result.decision_function(X)[:, 1]
    np.testing.assert_allclose(scores + result.intercept, f, atol=1e-4)

    b = result.trace["bias"][result.history.argmin()]
    y = np.where(result.labels == 1, 1.0, -1.0)
    loss = naive.margin_loss(y, scores + b, LOSS[function.__name__]).sum()
    value = result.dual_coef @ scores[result.support] + 10.0 * loss
    assert result.objective == pytest.approx(value, rel=1e-4)


@every
@pytest.mark.parametrize("form", ["dense", "low rank", "linear", "precomputed"])
def test_predicting_the_training_points_gives_their_labels(function, form, overlapping):
    X = overlapping
    given = {
        "dense": {},
        "low rank": {"rank": 20},
        "linear": {"kernel": "linear"},
        "precomputed": {"kernel": "precomputed"},
    }[form]
    data = gram(X) if form == "precomputed" else X
    result = function(data, random_state=0, **given)
    assert np.array_equal(result.predict(data), result.labels)
    scores = result.decision_function(data)
    assert scores.shape == (60, 2)
    assert np.array_equal(scores[:, 0], -scores[:, 1])
    again = pickle.loads(pickle.dumps(result))
    assert np.array_equal(again.predict(data[:5]), result.labels[:5])


@every
def test_a_gram_matrix_gives_the_same_as_the_points(function, overlapping):
    start = np.arange(60) % 2
    by_points = function(overlapping, init=start)
    by_gram = function(gram(overlapping), init=start, kernel="precomputed")
    assert by_gram.objective == pytest.approx(by_points.objective, rel=1e-4)
    assert adjusted_rand_score(by_gram.labels, by_points.labels) == 1.0


@every
def test_all_landmarks_give_the_dense_labels(function, overlapping):
    start = np.arange(60) % 2
    dense = function(overlapping, init=start, sigma=2.0)
    low_rank = function(overlapping, init=start, sigma=2.0, rank=60)
    assert low_rank.objective == pytest.approx(dense.objective, rel=2e-3)
    assert adjusted_rand_score(dense.labels, low_rank.labels) == 1.0


@pytest.mark.parametrize("function", FUNCTIONS[:2], ids=lambda f: f.__name__)
def test_solvers_agree(function, overlapping):
    start = np.arange(60) % 2
    results = [
        function(overlapping, init=start, sigma=2.0, solver=solver, tol=1e-5)
        for solver in ("smo", "libsvm")
    ]
    # LIBSVM's tolerance leaves a larger duality gap.
    assert results[0].objective == pytest.approx(results[1].objective, rel=1e-3)
    assert adjusted_rand_score(results[0].labels, results[1].labels) == 1.0


@pytest.mark.parametrize("given", [{}, {"kernel": "poly", "degree": 2}])
def test_few_features_are_the_whole_of_a_wide_kernel(given, rng):
    X = rng.standard_t(3, (600, 2))
    X[:300, 0] += 6.0
    given = {"random_state": 0, "C": 1.0} | given
    few, dense = fastmmc.iter_svr(X, **given), fastmmc.iter_svr(X, rank=None, **given)
    assert few.params["rank"] < 60 and dense.params["rank"] is None
    assert few.objective == pytest.approx(dense.objective, rel=1e-3)
    assert adjusted_rand_score(few.labels, dense.labels) > 0.95
    narrow = fastmmc.iter_svr(X, sigma=0.5, C=1.0, random_state=0)
    assert narrow.params["rank"] is None


@pytest.mark.parametrize("given", [{"sigma": 0.5}, {"kernel": "poly"}])
def test_the_interior_point_method_takes_over_where_pairs_crawl(given, rng):
    """Two normal columns with C = 500: pairs alone end short of the tolerance after seconds."""
    X = rng.standard_normal((200, 2 if "sigma" in given else 6))
    X[:100, 0] += 4.0
    result = fastmmc.iter_svr(X, rank=None, random_state=0, **given)
    features = fastmmc.iter_svr(X, rank=200, random_state=0, **given)
    assert result.converged and result.duality_gap < 2e-3 * result.objective
    assert result.objective == pytest.approx(features.objective, rel=2e-3)
    np.testing.assert_array_equal(result.predict(X), result.labels)


def test_liblinear_on_features(two_blobs):
    X, y = two_blobs
    result = fastmmc.iter_svr(X, C=1.0, rank=20, solver="linear", balance=0.1, random_state=0)
    assert adjusted_rand_score(y, result.labels) == 1.0
    assert result.dual_coef is None and result.duality_gap is None
    assert np.array_equal(result.predict(X), result.labels)


# Not for the hinge loss: it would split the copies of a point to leave as few as it may alone.
@pytest.mark.parametrize("function", [fastmmc.iter_svr, fastmmc.iter_ls_svm])
@pytest.mark.parametrize("rank", [None, 15])
def test_a_weight_stands_for_equal_points(function, rank):
    rng = np.random.default_rng(5)
    X, s = rng.standard_normal((30, 2)), rng.integers(1, 4, 30)
    start = (X[:, 0] > 0).astype(int)
    given = {"sigma": 3.0, "C": 2.0, "balance": 0.99}
    landmarks = {} if rank is None else {"landmarks": X[:15]}
    weighted = function(X, init=start, sample_weight=s, **given, **landmarks)
    repeated = function(np.repeat(X, s, axis=0), init=np.repeat(start, s), **given, **landmarks)
    assert weighted.objective == pytest.approx(repeated.objective, rel=1e-3)
    assert np.array_equal(np.repeat(weighted.labels, s), repeated.labels)


def test_rounds_of_weighted_points_go_on_beyond_one_that_rises():
    """The best split may be worse than the present labels there, and lead to better ones."""
    rng = np.random.default_rng(203)
    X, weights = rng.normal(size=(60, 2)), rng.uniform(0.2, 2.0, 60)
    given = {"sample_weight": weights, "C": 5.0, "sigma": 2.0}
    result = fastmmc.iter_ls_svm(X, n_init=1, random_state=0, **given)
    again = fastmmc.iter_ls_svm(X, init=result.labels, **given)
    assert result.converged and (np.diff(result.history) <= 0).all()
    assert again.objective == pytest.approx(result.objective)


def test_weights_count_in_the_balance():
    X = np.arange(12.0)[:, None]
    s = np.where(np.arange(12) < 3, 3.0, 1.0)
    result = fastmmc.iter_svr(X, sample_weight=s, balance=0.01)
    assert s[result.labels == 1].sum() == s[result.labels == 0].sum() == 9.0


@every
def test_target_sizes(function, overlapping):
    result = function(overlapping, target_sizes=[15, 45], balance=0.0)
    assert result.sizes.tolist() == [15, 45]


def test_refit_predicts_by_fewer_support_vectors(two_blobs):
    X, y = two_blobs
    plain = fastmmc.iter_svr(X, balance=0.1, random_state=0)
    sparse = fastmmc.iter_svr(X, balance=0.1, random_state=0, refit=True)
    assert np.array_equal(plain.labels, sparse.labels)
    assert len(sparse.support) < len(plain.support) / 2
    assert np.array_equal(sparse.predict(X), sparse.labels)


def test_starts(two_blobs, overlapping):
    X, y = two_blobs
    for init in ("farthest", "kmeans", "ncut"):
        result = fastmmc.iter_svr(X, init=init, balance=0.1, random_state=0, n_init=3)
        assert adjusted_rand_score(y, result.labels) == 1.0, init
        if init != "kmeans":
            K = gram(X, 0.3)
            by_gram = fastmmc.iter_svr(
                K, kernel="precomputed", init=init, balance=0.1, random_state=0, n_init=3
            )
            assert adjusted_rand_score(y, by_gram.labels) == 1.0, init
    random = fastmmc.iter_svr(X, init="random", balance=0.1, random_state=0)
    assert abs(int(random.sizes[0]) - int(random.sizes[1])) <= 4
    with pytest.raises(ValueError, match="needs points"):
        fastmmc.iter_svr(gram(X), kernel="precomputed", init="kmeans")
    with pytest.raises(ValueError, match="not negative"):
        fastmmc.iter_svr(X @ X.T - 50.0, kernel="precomputed", init="ncut")


def test_more_starts_are_never_worse(overlapping):
    one, many = (
        fastmmc.iter_svr(overlapping, init="random", sigma=1.5, n_init=n, random_state=0)
        for n in (1, 6)
    )
    assert many.objective == many.objectives.min() <= one.objective
    assert many.objectives[0] == one.objective
    assert many.best_init == np.argmin(many.objectives)


@every
def test_threads_change_nothing(function, overlapping):
    results = [
        function(overlapping, init="random", n_init=4, random_state=0, n_jobs=n) for n in (1, 2)
    ]
    assert np.array_equal(results[0].labels, results[1].labels)


@pytest.mark.filterwarnings("ignore:X has only")
@every
@pytest.mark.parametrize("given", [{}, {"rank": 5}], ids=["dense", "low rank"])
def test_points_that_are_all_equal(function, given):
    result = function(np.ones((10, 2)), random_state=0, **given)
    assert result.sizes.tolist() == [5, 5]


@every
def test_two_points(function):
    assert function([[0.0], [1.0]]).sizes.tolist() == [1, 1]


@every
def test_input_kinds(function, overlapping):
    start = np.arange(60) % 2
    wanted = function(overlapping, init=start).labels
    frozen = overlapping.copy()
    frozen.flags.writeable = False
    for X in (overlapping.tolist(), np.asfortranarray(overlapping), frozen):
        assert np.array_equal(function(X, init=start).labels, wanted)
    sparse = csr_matrix(np.where(np.abs(overlapping) < 0.3, 0.0, overlapping))
    dense = function(sparse.toarray(), rank=20, random_state=0)
    assert np.array_equal(function(sparse, rank=20, random_state=0).labels, dense.labels)
    assert function(sparse, rank=20, init="ncut", random_state=0).labels.shape == (60,)
    small = function(overlapping.astype(np.float32), init=start)
    assert small.predict(overlapping.astype(np.float32)).dtype == np.int64


@pytest.mark.parametrize(
    ("params", "error", "text"),
    [
        ({"C": 0}, ValueError, "C must be greater than 0"),
        ({"C": "many"}, TypeError, "C must be a real number"),
        ({"epsilon": -0.1}, ValueError, "epsilon must be at least 0"),
        ({"init": "far"}, ValueError, "init must be one of"),
        ({"init": np.full(60, 2)}, ValueError, "init: labels must be 0..1"),
        ({"bias": "free"}, ValueError, "bias must be one of"),
        ({"solver": "fast"}, ValueError, "solver must be one of"),
        ({"solver": "interior"}, ValueError, "give a rank"),
        ({"solver": "linear"}, ValueError, "give a rank"),
        ({"solver": "smo", "rank": 5}, ValueError, "rank=5 rules out"),
        ({"solver": "libsvm", "rank": 5}, ValueError, "rank=5 rules out"),
        ({"tol": 0.0}, ValueError, "tol must be greater than 0"),
        ({"max_iter": 0}, ValueError, "max_iter must be at least 1"),
        ({"refit": 1}, TypeError, "refit must be True or False"),
        ({"balance": 1.0}, ValueError, "balance must be at least 0 and below 1"),
        ({"target_sizes": [10, 10]}, ValueError, "sum to the number of points"),
        ({"sample_weight": np.ones(3)}, ValueError, "sample_weight must be 60 numbers"),
        ({"sample_weight": -np.ones(60)}, ValueError, "sample_weight must be at least 0"),
        ({"sample_weight": np.ones(60), "min_size": 2}, ValueError, "cannot go with"),
        ({"n_init": 0}, ValueError, "n_init must be at least 1"),
    ],
)
def test_bad_parameters(params, error, text, overlapping):
    with pytest.raises(error, match=text):
        fastmmc.iter_svr(overlapping, **params)


@pytest.mark.filterwarnings("ignore:X has only")
@every
def test_bad_points(function, overlapping):
    with pytest.raises(ValueError, match="at least 2 points"):
        function([[1.0]])
    with pytest.raises(ValueError, match="NaN"):
        function(np.where(overlapping > 2, np.nan, overlapping))


def test_a_kernel_that_overflows(overlapping):
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="too large"):
        fastmmc.iter_svr(overlapping * 1e40, kernel="poly", degree=9)


def test_no_matrix_is_made_that_does_not_fit(monkeypatch, overlapping):
    monkeypatch.setattr(fastmmc.core.memory, "available_memory", lambda: 1000)
    with pytest.raises(MemoryError, match="dense Gram matrix of 60 points"):
        fastmmc.iter_svr(overlapping)


@pytest.mark.jit
@pytest.mark.parametrize("given", [{}, {"rank": 20}], ids=["dense", "low rank"])
def test_a_stop_gives_back_labels_of_allowed_sizes(given):
    X = np.random.default_rng(0).standard_normal((400, 5))
    calls = []

    def stop(progress):
        calls.append(progress)
        return True

    with pytest.warns(ConvergenceWarning, match="callback"):
        result = fastmmc.iter_svr(X, C=1e4, tol=1e-6, callback=stop, n_init=50, **given)
    assert result.status == Status.CALLBACK
    assert abs(int(result.sizes[0]) - int(result.sizes[1])) <= 12
    began = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match="time limit"):
        result = fastmmc.iter_svr(X, C=1e4, tol=1e-6, max_time=1e-3, n_init=50, **given)
    assert result.status == Status.TIME_LIMIT
    assert np.isfinite(result.objective)
    assert time.perf_counter() - began < 60


def test_a_stop_while_the_first_machine_is_trained(overlapping):
    from fastmmc.core.execution import fixed_seed, restart_stream

    seen = []
    for budget in (1, 10**9):
        search = fastmmc.alternating.rounds.Alternation(
            _problem(overlapping), 0, restart_stream(fixed_seed(0), 0)
        )
        search.step(budget)
        search.finish()
        seen.append(search.objective)
        assert np.isin(search.labels, (0, 1)).all()
    assert np.isfinite(seen).all()


@pytest.mark.parametrize("weighted", [False, True])
@every
def test_a_start_from_a_sample(monkeypatch, function, weighted):
    solver = fastmmc.alternating.rounds
    monkeypatch.setattr(solver, "SAMPLE", 60)
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [210, 190])
    X = rng.standard_normal((400, 3)) + 6.0 * y[:, None]
    s = rng.integers(1, 4, 400).astype(float) if weighted else None
    given = {"rank": 15, "random_state": 0, "sample_weight": s, "balance": 0.3}
    whole = function(X, **given)
    monkeypatch.setattr(solver, "MOST_WITHOUT_SAMPLE", 100)
    made = []
    make = solver._make_scout
    monkeypatch.setattr(solver, "_make_scout", lambda *a: made.append(make(*a)) or made[-1])
    sampled = function(X, **given)
    assert sum(scout is not None for scout in made) == 10
    if function is not fastmmc.iter_svm:  # which stays where it starts
        assert adjusted_rand_score(y, sampled.labels) > 0.95
        assert sampled.objective <= 1.01 * whole.objective
    weight = np.bincount(sampled.labels, weights=s)
    assert abs(weight[0] - weight[1]) <= 0.3 * weight.sum()
    assert (np.diff(sampled.history) <= 0.0).all()
    assert (function(X, n_jobs=2, **given).labels == sampled.labels).all()


def test_a_stop_while_the_sample_is_clustered(monkeypatch):
    from fastmmc.core.execution import fixed_seed, restart_stream

    monkeypatch.setattr(fastmmc.alternating.rounds, "SAMPLE", 50)
    monkeypatch.setattr(fastmmc.alternating.rounds, "MOST_WITHOUT_SAMPLE", 100)
    X = np.random.default_rng(0).standard_normal((300, 4))
    problem = _problem(X, rank=10, solver="auto")
    search = fastmmc.alternating.rounds.Alternation(problem, 0, restart_stream(fixed_seed(0), 0))
    assert not search.step(1)
    search.finish()
    assert np.isfinite(search.objective)
    assert abs(np.sum(2 * search.labels - 1)) <= 9


def _problem(X, rank=None, solver="smo"):
    from fastmmc.alternating import methods, rounds
    from fastmmc.core.execution import RunControl, fixed_seed
    from fastmmc.kernels.nystroem import Form

    kernel = Kernel("rbf", sigma=2.0)
    call = methods._IterSVRCall(X=X, init="random", solver=solver, rank=rank)
    bounds = methods._weight_bounds(call, np.ones(len(X)))
    form = Form(rank)
    problem = rounds.Problem(call, "laplace", RunControl(), X, bounds, kernel, form)
    return rounds.prepare(problem, fixed_seed(0))


@pytest.mark.parametrize(
    "estimator", [fastmmc.IterSVR, fastmmc.IterSVM, fastmmc.IterLSSVM], ids=lambda e: e.__name__
)
class TestEstimators:
    def test_the_result_becomes_attributes(self, estimator, two_blobs):
        X, y = two_blobs
        model = estimator(balance=0.1, random_state=0).fit(X)
        assert adjusted_rand_score(y, model.labels_) == 1.0
        assert model.objective_ == model.result_.objective
        assert model.intercept_ == model.result_.intercept
        assert np.array_equal(model.predict(X), model.labels_)
        assert model.score(X) <= 0.0
        assert clone(model).get_params() == model.get_params()

    def test_weights(self, estimator, two_blobs):
        X, _ = two_blobs
        s = np.linspace(1, 2, len(X))
        assert estimator(balance=0.5).fit(X, sample_weight=s).labels_.shape == (48,)
        with pytest.raises(ValueError, match="sample_weight"):
            estimator().fit(X, sample_weight=s[:5])


def without(points, weights, is_gram):
    kept = weights > 0
    return points[np.ix_(kept, kept)] if is_gram else points[kept]


@every
@pytest.mark.parametrize("form", ["dense", "low rank", "linear", "precomputed"])
def test_a_point_of_weight_zero_does_not_count(function, overlapping, rng, form):
    weights = rng.integers(0, 3, 60).astype(np.float64)
    kept = weights > 0
    is_gram = form == "precomputed"
    points = gram(overlapping) if is_gram else overlapping
    given = {
        "dense": {"init": np.arange(60) % 2},
        "low rank": {"rank": 9},
        "linear": {"kernel": "linear"},
        "precomputed": {"kernel": "precomputed"},
    }[form]
    result = function(points, sample_weight=weights, random_state=0, **given)
    if form == "dense":
        given = {"init": given["init"][kept]}
    part = without(points, weights, is_gram)
    alone = function(part, sample_weight=weights[kept], random_state=0, **given)
    assert result.objective == alone.objective
    np.testing.assert_array_equal(result.labels[kept], alone.labels)
    others = points[~kept][:, kept] if is_gram else points[~kept]
    np.testing.assert_array_equal(result.labels[~kept], alone.predict(others))
    np.testing.assert_array_equal(result.predict(points)[~kept], result.labels[~kept])
    np.testing.assert_array_equal(result.sizes, np.bincount(result.labels))
    if alone.support is not None:
        np.testing.assert_array_equal(result.support, np.flatnonzero(kept)[alone.support])


@pytest.mark.parametrize("kind", [int, np.int64])
def test_a_rank_counts_for_all_points(overlapping, kind):
    weights = np.r_[np.zeros(10), np.ones(50)]
    given = {"random_state": 0, "n_init": 1, "sigma": 0.5}
    result = fastmmc.iter_svr(overlapping, rank=kind(55), sample_weight=weights, **given)
    alone = fastmmc.iter_svr(overlapping[10:], rank=50, **given)
    assert result.params["rank"] == 50 and result.objective == alone.objective
    twice = np.repeat(overlapping[:30], 2, axis=0)
    assert fastmmc.iter_svr(twice, rank=kind(55), **given).params["rank"] == 30
    with pytest.raises(ValueError, match="rank must be at most 60"):
        fastmmc.iter_svr(overlapping, rank=kind(61), sample_weight=weights, **given)


def test_landmarks_must_count(overlapping):
    weights = np.ones(60)
    weights[:5] = 0.0
    with pytest.raises(ValueError, match="landmarks must be points whose sample_weight"):
        fastmmc.iter_svr(overlapping, sample_weight=weights, landmarks=[4, 5, 6])
    given = {"landmarks": [5, 7, 40], "sample_weight": weights, "random_state": 0}
    alone = fastmmc.iter_svr(overlapping[5:], landmarks=[0, 2, 35], random_state=0)
    assert fastmmc.iter_svr(overlapping, **given).objective == pytest.approx(alone.objective)


def test_one_point_that_counts_is_too_few(overlapping):
    with pytest.raises(ValueError, match="sample_weight must be above 0 for at least 2 points"):
        fastmmc.iter_svr(overlapping, sample_weight=np.eye(60)[3])


@pytest.mark.parametrize("function", [fastmmc.iter_svr, fastmmc.iter_svm, fastmmc.iter_ls_svm])
@pytest.mark.parametrize(
    "told", [{}, {"rank": 20}, {"kernel": "linear"}, {"init": "random"}, {"init": 1}], ids=str
)
def test_equal_rows_are_one_row_with_a_weight(function, told, overlapping):
    w, order = np.arange(60) % 4, np.random.default_rng(0).permutation(60)
    labels = np.where(np.arange(60) < 30, 0, 1)
    is_given = told.get("init") == 1
    of_copies = told | ({"init": np.repeat(labels, w)} if is_given else {})
    of_weights = told | ({"init": labels[order]} if is_given else {})
    copies = function(np.repeat(overlapping, w, axis=0), random_state=0, **of_copies)
    result = function(overlapping[order], sample_weight=w[order], random_state=0, **of_weights)
    back = np.argsort(order)
    np.testing.assert_array_equal(np.repeat(result.labels[back], w), copies.labels)
    assert result.objective == copies.objective
    np.testing.assert_array_equal(
        result.decision_function(overlapping), copies.decision_function(overlapping)
    )
    np.testing.assert_array_equal(copies.sizes, np.bincount(copies.labels))
    least, most = copies.size_bounds.T
    assert ((least <= copies.sizes) & (copies.sizes <= most)).all()
    assert copies.size_bounds[0].sum() == w.sum() and result.size_bounds is None
    scores = copies.decision_function(np.repeat(overlapping, w, axis=0))
    if copies.support is not None:
        rows = np.repeat(overlapping, w, axis=0)[copies.support]
        assert len(np.unique(rows, axis=0)) == len(copies.dual_coef)
    assert copies.n_violated <= w.sum() == len(scores)


@pytest.mark.parametrize("function", [fastmmc.iter_svr, fastmmc.iter_svm, fastmmc.iter_ls_svm])
def test_sizes_have_bounds_where_every_weight_is_1(function, overlapping):
    X = np.vstack((overlapping, overlapping[:4]))
    plain = function(X, random_state=0)
    weighted = function(X, sample_weight=np.ones(64), random_state=0)
    np.testing.assert_array_equal(weighted.size_bounds, plain.size_bounds)
    for weights in (np.full(64, 2.0), np.arange(64) % 3 > 0):
        assert function(X, sample_weight=weights, random_state=0).size_bounds is None


@pytest.mark.parametrize("balance", [None, 0.2])
def test_landmarks_are_rows_of_the_call(balance, overlapping):
    X, weights = np.repeat(overlapping, 2, axis=0), np.repeat(np.arange(60) % 3, 2)
    told = {"balance": balance, "rank": 10, "random_state": 0}
    for some in (weights, np.minimum(weights, 1), None):
        model = fastmmc.iter_svr(X, sample_weight=some, **told).model
        np.testing.assert_array_equal(X[model.indices], model.points)


def test_copies_are_parted_where_sizes_ask_for_it(overlapping):
    X = overlapping.copy()
    X[:40] = X[0]
    assert fastmmc.iter_svr(X, max_size=31, random_state=0).sizes.max() <= 31
    whole = fastmmc.iter_svr(X, random_state=0)
    assert np.ptp(whole.labels[:40]) == 0 and whole.size_bounds.max() >= 40


def test_a_call_is_repeated_by_its_params_whichever_points_are_clustered(overlapping):
    X = np.vstack((overlapping, overlapping[:5]))
    labels = np.arange(len(X)) % 2
    weights = np.repeat([0.0, 1.0], [5, 60])
    for given in ({}, {"sample_weight": weights}):
        result = fastmmc.iter_svr(X, init=labels, random_state=0, **given)
        again = fastmmc.iter_svr(X, **result.params, **given)
        np.testing.assert_array_equal(again.labels, result.labels)
        np.testing.assert_array_equal(result.params["init"], labels)
