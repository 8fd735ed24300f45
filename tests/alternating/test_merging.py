"""Representatives: which points are merged, and the rounds on them."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.cluster import MiniBatchKMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import fastmmc
from fastmmc.alternating import rounds
from fastmmc.alternating.merging import averaging, merge_near
from fastmmc.kernels.gram import Kernel
from tests.alternating import naive

FUNCTIONS = [fastmmc.iter_svr, fastmmc.iter_svm, fastmmc.iter_ls_svm]
LOSS = {"iter_svr": "laplace", "iter_svm": "hinge", "iter_ls_svm": "square"}
every = pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)


@pytest.fixture
def halves():
    """Two Gaussians that overlap a little, and points that occur several times."""
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1], [320, 280])
    X = rng.standard_normal((600, 3)) + 3.5 * y[:, None]
    X[1::7] = X[:-1:7]
    return X


@pytest.mark.parametrize("most", [2, 7, 50, 599])
@pytest.mark.parametrize("d", [1, 3, 8])
def test_cells_are_those_of_the_slow_twin(most, d):
    rng = np.random.default_rng(d)
    points = rng.standard_normal((300, d)) * np.arange(1, d + 1)
    weights = rng.integers(1, 5, 300).astype(float)
    cells = merge_near(points, weights, most)
    np.testing.assert_array_equal(cells, naive.merge_near(points, weights, most))
    assert cells.max() + 1 == min(most, 300)


def test_equal_points_stay_together():
    points = np.repeat(np.random.default_rng(0).standard_normal((20, 2)), 5, axis=0)
    for most in (3, 20, 60):
        cells = merge_near(points, np.ones(100), most).reshape(20, 5)
        assert (cells == cells[:, :1]).all()
        assert len(np.unique(cells)) == min(most, 20)
    assert not merge_near(np.full((9, 2), 0.1), np.ones(9), 4).any()


def test_cells_lose_about_as_little_as_those_of_k_means():
    points = np.random.default_rng(3).standard_normal((4000, 3))
    cells = merge_near(points, np.ones(4000), 200)
    _, average = averaging(cells, np.ones(4000))
    lost = np.sum((points - (average @ points)[cells]) ** 2)
    assert lost < 1.5 * MiniBatchKMeans(200, n_init=1, random_state=0).fit(points).inertia_


def test_averages_are_those_of_the_cells():
    rng = np.random.default_rng(0)
    cells = np.concatenate((np.arange(4), rng.integers(0, 4, 30)))
    weights, points = rng.random(34), rng.standard_normal((34, 2))
    totals, average = averaging(cells, weights)
    for i in range(4):
        own = cells == i
        assert totals[i] == pytest.approx(weights[own].sum())
        expected = np.average(points[own], axis=0, weights=weights[own])
        np.testing.assert_allclose((average @ points)[i], expected)


@every
@pytest.mark.parametrize("weighted", [False, True])
def test_representatives_of_equal_points_change_nothing(function, halves, weighted):
    X = halves[:40]
    y = (X.sum(axis=1) > np.median(X.sum(axis=1))).astype(int)
    s = np.arange(1, 41) / 10 if weighted else np.ones(40)
    repeated = np.repeat(np.arange(40), 3)
    landmarks = X[::4]
    given = {"landmarks": landmarks, "balance": 0.5, "sigma": 3.0}
    if function is not fastmmc.iter_ls_svm:
        given["tol"] = 1e-6
    whole = function(X, init=y, sample_weight=3 * s, **given)
    merged = function(
        X[repeated], init=y[repeated], sample_weight=s[repeated], max_representatives=40, **given
    )
    distinct = len(np.unique(X, axis=0))
    assert distinct < 40 and merged.params["max_representatives"] == 40
    assert merged.objective == pytest.approx(whole.objective, rel=1e-3)
    assert (merged.labels == whole.labels[repeated]).mean() > 0.95


@every
@pytest.mark.parametrize("bias", ["joint", "tied"])
@pytest.mark.parametrize("init", ["farthest", "kmeans", "random", "given"])
@pytest.mark.jit
def test_labels_sizes_and_objective_are_those_of_all_points(function, halves, bias, init):
    given = {"rank": 20, "balance": 0.2, "sigma": 8.0, "bias": bias, "C": 10.0, "random_state": 0}
    init = (halves[:, 0] > 2).astype(int) if init == "given" else init
    whole = function(halves, init=init, **given)
    merged = function(halves, init=init, max_representatives=150, **given)
    assert abs(merged.sizes[0] - merged.sizes[1]) <= 0.2 * 600
    assert merged.history.tolist() == [merged.objective]
    assert merged.duality_gap is None and merged.support is None and merged.dual_coef is None
    assert merged.n_iter >= 1 and merged.params["max_representatives"] == 150
    assert "max_representatives" not in whole.params
    if bias == "joint":
        check_objective(function, merged, halves, C=10.0)
    if function is not fastmmc.iter_svm and bias == "joint":  # which stays where it starts
        assert merged.objective <= 1.05 * whole.objective
        assert adjusted_rand_score(merged.labels, whole.labels) > 0.8


@every
@pytest.mark.parametrize("init", ["farthest", "given"])
@pytest.mark.parametrize("bias", ["joint", "tied"])
@pytest.mark.jit
def test_many_representatives_begin_with_few_of_them(monkeypatch, function, halves, init, bias):
    given = {"rank": 20, "balance": 0.2, "sigma": 8.0, "C": 10.0, "random_state": 0, "bias": bias}
    given["init"] = (halves[:, 0] > 2).astype(int) if init == "given" else init
    alone = function(halves, max_representatives=150, **given)
    monkeypatch.setattr(rounds, "FEW_REPRESENTATIVES", 40)
    trained = record_training(monkeypatch)
    after_few = function(halves, max_representatives=150, **given)
    if init == "given" or bias == "tied":
        # Who says how to begin gets that.
        assert set(trained) == {150}
        np.testing.assert_array_equal(after_few.labels, alone.labels)
        return
    assert trained[0] == 40 and trained[-1] == 150
    check_objective(function, after_few, halves, C=10.0)
    if function is not fastmmc.iter_svm:
        assert after_few.objective <= 1.02 * alone.objective
        assert adjusted_rand_score(after_few.labels, alone.labels) > 0.9


def record_training(monkeypatch):
    """Return a list that receives the numbers of points that rounds are begun with."""
    sizes, begin = [], rounds.Alternation._begin

    def watched(self, y):
        sizes.append(y.size)
        begin(self, y)

    monkeypatch.setattr(rounds.Alternation, "_begin", watched)
    return sizes


def test_means_stand_for_their_points_as_well_as_mean_features(monkeypatch, halves):
    given = {"rank": 30, "sigma": 8.0, "C": 10.0, "balance": 0.2, "random_state": 0}
    means = fastmmc.iter_svr(halves, max_representatives=150, **given)
    monkeypatch.setattr(rounds, "_takes_means", lambda problem: False)
    features = fastmmc.iter_svr(halves, max_representatives=150, **given)
    # The same landmarks, and so the same features of the points.
    np.testing.assert_array_equal(means.model.basis, features.model.basis)
    assert means.objective == pytest.approx(features.objective, rel=0.02)
    assert adjusted_rand_score(means.labels, features.labels) > 0.95


@pytest.mark.parametrize(
    "options",
    [
        {"rank": 20, "landmarks": "pivoted"},
        {"rank": 20, "landmarks": "k-means++"},
        {"landmarks": np.arange(0, 600, 20)},
        {"rank": 20, "refit": True},
        {"rank": 2},
        {"rank": 400, "max_representatives": 100},
        {"rank": 20, "kernel": lambda X, Z: 1.0 + X @ Z.T},
        {"rank": 20, "kernel": "laplacian"},
        {"rank": 4, "kernel": "linear"},
    ],
    ids=lambda options: " ".join(f"{k}" for k in options),
)
@pytest.mark.jit
def test_every_choice_of_landmarks_and_kernels(halves, options):
    given = {"sigma": 8.0, "C": 10.0, "balance": 0.2, "random_state": 0, "max_representatives": 150}
    if callable(options.get("kernel")):
        del given["sigma"]
    result = fastmmc.iter_svr(halves, **given | options)
    assert abs(result.sizes[0] - result.sizes[1]) <= 0.2 * 600
    assert adjusted_rand_score(result.labels, halves[:, 0] + halves[:, 1] > 3.4) > 0.5
    assert (result.predict(halves) == result.labels).mean() > 0.9


def check_objective(function, result, X, C):
    """Compare the objective with that of the model's own weights, term by term."""
    model = result.model
    w = model.coef[:, 0]
    norm = w @ model.kernel.block(model.basis, model.basis) @ w
    o = result.decision_function(X)
    o = (o[:, 1] - o[:, 0]) / 2
    y = np.where(result.labels == 1, 1.0, -1.0)
    loss = naive.best_bias(o, y, np.ones(len(X)), LOSS[function.__name__])[0]
    assert result.objective == pytest.approx(norm + 2 * C * loss, rel=1e-6)


def test_predicting_the_points_gives_their_labels(halves):
    result = fastmmc.iter_svr(halves, rank=30, max_representatives=100, balance=0.8, random_state=0)
    np.testing.assert_array_equal(result.predict(halves), result.labels)


@pytest.mark.jit
def test_every_form_of_the_points_is_merged(halves):
    X = np.abs(halves)
    given = {"max_representatives": 120, "balance": 0.3, "n_init": 2, "random_state": 0}
    expected = fastmmc.iter_svr(X, rank=40, sigma=9.0, **given)
    K = Kernel("rbf", sigma=9.0).block(X, X)
    others = [
        fastmmc.iter_svr(csr_matrix(X), rank=40, sigma=9.0, **given),
        fastmmc.iter_svr((K + K.T) / 2, kernel="precomputed", rank=40, **given),
        fastmmc.iter_svr(X.astype(np.float32), rank=40, sigma=9.0, **given),
        fastmmc.iter_svr(X, kernel="linear", **given),
    ]
    for other in others:
        assert other.params["max_representatives"] == 120
        assert adjusted_rand_score(other.labels, expected.labels) > 0.8
    dense = fastmmc.iter_svr(X, rank=None, **given)
    assert "max_representatives" not in dense.params and dense.duality_gap is not None


@every
def test_threads_change_nothing(function, halves):
    given = {"rank": 20, "max_representatives": 90, "n_init": 3, "random_state": 3}
    one, two = function(halves, **given), function(halves, n_jobs=2, **given)
    np.testing.assert_array_equal(one.labels, two.labels)
    assert one.objective == two.objective


@pytest.mark.jit
def test_as_many_representatives_as_points_train_them_all(halves):
    given = {"rank": 20, "random_state": 0}
    whole = fastmmc.iter_svr(halves, **given)
    same = fastmmc.iter_svr(halves, max_representatives=600, **given)
    np.testing.assert_array_equal(whole.labels, same.labels)
    assert whole.objective == same.objective


@every
def test_two_representatives(function, halves):
    result = function(halves, rank=10, max_representatives=2, balance=0.5, random_state=0)
    assert result.sizes.min() >= 150


def test_points_of_weight_zero_get_labels(halves):
    weights = np.where(np.arange(600) % 3 == 0, 0.0, 1.0)
    result = fastmmc.iter_svr(
        halves, sample_weight=weights, rank=20, max_representatives=100, random_state=0
    )
    assert set(result.labels) == {0, 1} and result.labels.shape == (600,)


@every
def test_a_stop_gives_back_labels_of_allowed_sizes(function, halves):
    def stop(progress):
        return True

    with pytest.warns(ConvergenceWarning):
        result = function(
            halves, rank=20, max_representatives=200, balance=0.1, callback=stop, random_state=0
        )
    assert abs(result.sizes[0] - result.sizes[1]) <= 60
    assert np.isfinite(result.objective)


def test_rounds_of_representatives_that_are_cut_short_say_so(halves):
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        result = fastmmc.iter_svr(
            halves, rank=20, max_representatives=200, max_iter=1, init="random", random_state=0
        )
    assert result.status == fastmmc.Status.MAX_ITER


@pytest.mark.parametrize("most", [1, 0, -4])
def test_too_few_representatives(halves, most):
    with pytest.raises(ValueError, match="max_representatives must be at least 2"):
        fastmmc.iter_svr(halves, max_representatives=most)
    with pytest.raises(TypeError, match="max_representatives"):
        fastmmc.IterSVR(max_representatives=0.5).fit(halves)
