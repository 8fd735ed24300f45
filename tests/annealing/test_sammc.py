"""sammc and SAMMC: what they find, forms of input, stops, bad input."""

import inspect
import itertools
import pickle
import time
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fastmmc
from fastmmc import Status
from fastmmc.annealing import annealing, memetic
from fastmmc.annealing.points import Points, Walker
from fastmmc.data.labels import matched_clusters
from tests.annealing import naive

QUICK = {"patience": 15, "max_representatives": 40, "random_state": 0}
SEARCHES = [
    {"search": "memetic"},
    {"search": "annealing"},
    {"search": "annealing", "center": "mean"},
    {"search": "annealing", "relabel": False, "weighted": False},
]
every = pytest.mark.parametrize("options", SEARCHES, ids=lambda o: "-".join(map(str, o.values())))


@pytest.fixture
def overlapping():
    return np.random.default_rng(7).standard_normal((150, 3)) * [3.0, 2.0, 1.0]


@every
def test_blobs(options, blobs):
    X, y = blobs
    result = fastmmc.sammc(X, 3, **QUICK | options)
    assert adjusted_rand_score(y, result.labels) == 1.0
    assert result.converged and result.n_active == 3
    np.testing.assert_array_equal(result.sizes, np.bincount(result.labels))
    np.testing.assert_array_equal(result.predict(X), result.labels)
    distances = result.transform(X)
    np.testing.assert_array_equal(distances, -result.decision_function(X))
    assert result.objective == pytest.approx(distances.min(axis=1).sum(), rel=1e-12)
    assert result.objective == pytest.approx(naive.objective(X, result.centers), rel=1e-12)


def test_a_tiny_set_is_solved_to_the_optimum():
    """All partitions of eight points in two."""
    X = np.random.default_rng(3).standard_normal((8, 2))
    best = np.inf
    for bits in itertools.product([0, 1], repeat=7):
        labels = np.array((0, *bits))
        parts = [X[labels == c] for c in (0, 1) if (labels == c).any()]
        best = min(best, sum(naive.objective(p, naive.geometric_median(p)[None]) for p in parts))
    result = fastmmc.sammc(X, 2, random_state=0)
    assert result.objective == pytest.approx(best, rel=1e-6)


def test_one_cluster_is_the_geometric_median(overlapping):
    result = fastmmc.sammc(overlapping, 1, random_state=0)
    best = naive.objective(overlapping, naive.geometric_median(overlapping)[None])
    assert result.objective <= best * (1 + 1e-8)
    assert result.n_iter == 0 and result.sizes.tolist() == [150]


def test_a_child_has_a_center_of_each_matched_pair():
    first = np.array([[0.0], [9.0]])
    child = memetic.recombine(first, first[::-1], np.random.default_rng(0))
    np.testing.assert_array_equal(child, first)


@pytest.mark.jit
def test_the_memetic_search_beats_k_means_under_this_objective():
    """Ten seeds; k-means minimises squares, so its centers are scored by plain distances."""
    X = fastmmc.datasets.load("digits")[0][:600]
    gains = []
    for seed in range(10):
        model = KMeans(10, n_init=10, random_state=seed).fit(X)
        ours = fastmmc.sammc(X, 10, patience=20, random_state=seed).objective
        gains.append(naive.objective(X, model.cluster_centers_) / ours)
    assert min(gains) > 1.0


@pytest.mark.jit
def test_representatives_lead_to_where_all_points_do():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 2)) + 6.0 * rng.integers(0, 4, (3000, 2))
    through = fastmmc.sammc(X, 8, max_representatives=200, random_state=0)
    direct = fastmmc.sammc(X, 8, max_representatives=4000, random_state=0)
    assert len(through.representatives) > 150 and direct.representatives is None
    assert through.objective <= direct.objective * 1.005
    assert (np.diff(through.history) < 0).all()


def test_annealing_keeps_its_books(overlapping, monkeypatch):
    """After every proposal the objective is that of all points, and the parts are a partition."""
    seen = []
    alternate = annealing.AnnealingSearch._alternate

    def watched(self, state, **options):
        after = yield from alternate(self, state, **options)
        together = np.sort(np.concatenate(after.members))
        np.testing.assert_array_equal(together, np.arange(len(overlapping)))
        assert after.sizes.sum() == len(overlapping) and (after.sizes > 0).all()
        seen.append((after.objective, naive.objective(overlapping, after.centers)))
        for own, mean in zip(after.members, after.means, strict=True):
            np.testing.assert_allclose(overlapping[own].mean(axis=0), mean, atol=1e-9)
        return after

    monkeypatch.setattr(annealing.AnnealingSearch, "_alternate", watched)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        result = fastmmc.sammc(
            overlapping, 4, search="annealing", delta=0.2, max_iter=25, random_state=1
        )
    assert result.status == Status.MAX_ITER and result.n_iter == 25
    found, expected = np.array(seen).T
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert np.unique(found).size > 5


def test_without_temperature_annealing_only_falls(overlapping):
    options = {"search": "annealing", "center": "mean", "delta": 0.2, "patience": 20}
    cold = fastmmc.sammc(overlapping, 4, T0=1e-4, T_min=1e-12, random_state=0, **options)
    assert (np.diff(cold.history) <= 1e-4 * cold.history[0]).all()
    hot = fastmmc.sammc(overlapping, 4, T0=10.0, random_state=0, **options)
    assert (np.diff(hot.history) > 0).any()
    assert hot.objective == pytest.approx(hot.history.min(), rel=1e-12)
    np.testing.assert_allclose(
        hot.trace["temperature"][1:], 10.0 * 0.995 ** np.arange(hot.n_iter), rtol=1e-12
    )


def test_annealing_ends_by_each_of_its_rules(overlapping):
    def run(**options):
        return fastmmc.sammc(overlapping, 3, search="annealing", random_state=0, **options)

    assert run(T0=0.01, T_min=0.009).n_iter == int(np.ceil(np.log(0.9) / np.log(0.995)))
    assert run(patience=3).n_iter < 200
    with pytest.warns(ConvergenceWarning):
        assert run(max_iter=4).status == Status.MAX_ITER


def test_relabelled_clusters_keep_their_names():
    before = np.array([0, 0, 1, 1, 3, 3])
    labels = np.array([2, 2, 0, 0, 1, 0])
    found = np.argsort(matched_clusters(before, labels, 4))[labels]
    np.testing.assert_array_equal(found[:4], [0, 0, 1, 1])
    assert found[4] == 3 and found[5] == 1


def test_memetic_search_stops_after_max_iter(overlapping):
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        result = fastmmc.sammc(overlapping, 4, max_iter=3, random_state=0)
    assert result.status == Status.MAX_ITER and result.n_iter == 3


def test_survivors_differ():
    individuals = [memetic.Individual(f, None) for f in (2.0, 2.0 + 1e-9, 1.0, 4.0)]
    kept = [one.objective for one in memetic.survivors(individuals, 3)]
    assert kept == [1.0, 2.0, 4.0]
    assert len(memetic.survivors(individuals, 2)) == 2


@every
@pytest.mark.parametrize(
    "form",
    [np.asfortranarray, csr_matrix, csr_array, np.float32, lambda X: X.tolist()],
    ids=["Fortran", "csr_matrix", "csr_array", "float32", "list"],
)
def test_forms_of_input(options, form, blobs):
    X, y = blobs
    given = form(X)
    result = fastmmc.sammc(given, 3, **QUICK | options)
    assert adjusted_rand_score(y, result.labels) == 1.0
    np.testing.assert_array_equal(result.predict(given), result.labels)
    assert result.objective == pytest.approx(naive.objective(X, result.centers), rel=1e-5)


def test_input_is_not_modified(blobs):
    X, _ = blobs
    X.flags.writeable = False
    before = X.copy()
    init = X[:3].copy()
    init.flags.writeable = False
    fastmmc.sammc(X, 3, init=init, **QUICK)
    np.testing.assert_array_equal(X, before)


def test_given_centers_begin_the_search(blobs):
    X, y = blobs
    init = np.array([X[y == c].mean(axis=0) for c in range(3)])
    result = fastmmc.sammc(X, 3, init=init, patience=1, population=2, random_state=0)
    assert adjusted_rand_score(y, result.labels) == 1.0
    assert fastmmc.sammc(X, 3, init="random", **QUICK).converged


@every
@pytest.mark.parametrize("k", [3, 4, 9])
def test_no_more_clusters_than_distinct_points(options, k):
    X = np.repeat([[0.0, 1.0], [2.0, 3.0], [5.0, 5.0]], 4, axis=0)
    if k == 3:
        result = fastmmc.sammc(X, k, **QUICK | options)
    else:
        with pytest.warns(ConvergenceWarning, match=f"3 clusters, fewer than the {k}"):
            result = fastmmc.sammc(X, k, **QUICK | options)
    assert result.objective == 0.0 and result.sizes.tolist() == [4, 4, 4]


def test_every_point_its_own_cluster(overlapping):
    result = fastmmc.sammc(overlapping, 150)
    assert result.objective == 0.0 and result.n_active == 150


@every
def test_constant_features_say_nothing(options, blobs):
    X, y = blobs
    padded = np.column_stack((X, np.full(len(X), 7.0)))
    assert adjusted_rand_score(y, fastmmc.sammc(padded, 3, **QUICK | options).labels) == 1.0


@every
def test_the_seed_decides(options, overlapping):
    given = QUICK | {"patience": 4} | options
    one = fastmmc.sammc(overlapping, 4, n_init=3, **given)
    two = fastmmc.sammc(overlapping, 4, n_init=3, n_jobs=2, **given)
    np.testing.assert_array_equal(one.labels, two.labels)
    np.testing.assert_array_equal(one.objectives, two.objectives)
    assert one.objective == one.objectives.min() == one.objectives[one.best_init]


@every
def test_a_time_limit_gives_back_the_best(options, overlapping):
    X = np.tile(overlapping, (20, 1)) + np.random.default_rng(0).standard_normal((3000, 3))
    began = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match="max_time"):
        result = fastmmc.sammc(X, 6, max_time=0.2, patience=10**6, **{"random_state": 0} | options)
    assert time.perf_counter() - began < 30
    assert result.status == Status.TIME_LIMIT
    assert result.objective == pytest.approx(naive.objective(X, result.centers), rel=1e-12)


def test_a_callback_stops_it(overlapping):
    with pytest.warns(ConvergenceWarning, match="callback"):
        result = fastmmc.sammc(
            overlapping, 5, patience=10**6, callback=lambda p: p.elapsed > 0.1, random_state=0
        )
    assert result.status == Status.CALLBACK


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"k": 0}, ValueError, "k must be at least 1; got 0"),
        ({"k": 151}, ValueError, "k must be at most 150, the number of points; got 151"),
        ({"k": 2.0}, TypeError, "k must be an integer"),
        ({"delta": 0.0}, ValueError, "delta must be"),
        ({"delta": 1.0}, ValueError, "delta must be greater than 0 and below 1; got 1"),
        ({"cooling": 1.0}, ValueError, "cooling must be greater than 0 and below 1"),
        ({"T0": -1.0}, ValueError, "T0 must be"),
        ({"T_min": 0.0}, ValueError, "T_min must be"),
        ({"C": 0}, ValueError, "C must be"),
        ({"C": 1e100}, ValueError, "C must be at least 1e-09 and at most 1e\\+09"),
        ({"n_alt": 0}, ValueError, "n_alt must be at least 1"),
        ({"population": 1}, ValueError, "population must be at least 2"),
        ({"patience": 0}, ValueError, "patience must be at least 1"),
        ({"max_iter": 0}, ValueError, "max_iter must be at least 1"),
        ({"max_representatives": 0}, ValueError, "max_representatives must be at least 1"),
        ({"weighted": 1}, TypeError, "weighted must be"),
        ({"relabel": "yes"}, TypeError, "relabel must be"),
        ({"search": "genetic"}, ValueError, "search must be one of 'memetic', 'annealing'"),
        ({"center": "mode"}, ValueError, "center must be one of 'median', 'mean'"),
        ({"center": "mean"}, ValueError, "which only search='annealing' has"),
        ({"init": "farthest"}, ValueError, "init must be one of 'k-means\\+\\+', 'random'"),
        ({"init": None}, TypeError, r"init must be one of .* or \(3, 3\) centers; got None"),
        ({"init": np.zeros((2, 3))}, ValueError, r"init must have shape \(3, 3\)"),
        ({"n_init": 0}, ValueError, "n_init must be at least 1"),
    ],
)
def test_bad_parameters(options, error, message, overlapping):
    options = {"k": 3} | options
    with pytest.raises(error, match=message):
        fastmmc.sammc(overlapping, options.pop("k"), **options)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_bad_points(value, overlapping):
    overlapping[3, 1] = value
    with pytest.raises(ValueError, match="NaN|infinity"):
        fastmmc.sammc(overlapping, 3)


def test_signatures_agree():
    function = inspect.signature(fastmmc.sammc).parameters
    estimator = inspect.signature(fastmmc.SAMMC).parameters
    assert list(function)[2:] == list(estimator)[1:]
    for name in list(function)[2:]:
        assert function[name].default == estimator[name].default


def test_estimator(blobs):
    X, y = blobs
    model = fastmmc.SAMMC(n_clusters=3, patience=10, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1.0
    for same in (pickle.loads(pickle.dumps(model)), clone(model).fit(X)):
        np.testing.assert_array_equal(same.predict(X), model.labels_)
    assert model.score(X) == pytest.approx(-model.objective_ / len(X))
    named = model.set_output(transform="pandas").transform(X)
    assert list(named.columns) == ["sammc0", "sammc1", "sammc2"]
    pipe = make_pipeline(StandardScaler(), clone(model))
    assert pipe.fit(X).predict(X).shape == (len(X),)
    grid = GridSearchCV(clone(model), {"n_clusters": [1, 3]}, cv=2).fit(X)
    assert grid.best_params_ == {"n_clusters": 3}


def test_sparse_points_of_many_features():
    """A few of many words each; groups use words of their own."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 60)
    X = np.zeros((180, 2000))
    for i, c in enumerate(y):
        X[i, 300 * c + rng.choice(40, 12, replace=False)] = rng.random(12) + 0.5
    for options in SEARCHES[:2]:
        result = fastmmc.sammc(csr_matrix(X), 3, **QUICK | options)
        assert adjusted_rand_score(y, result.labels) == 1.0
        assert result.objective == pytest.approx(naive.objective(X, result.centers), rel=1e-9)


def test_walkers_of_one_set_do_not_meet(overlapping):
    points = Points(overlapping)
    one, two = Walker(points, "median"), Walker(points, "median")
    one.assign(overlapping[:2])
    before = one.labels.copy()
    two.assign(overlapping[:5])
    np.testing.assert_array_equal(one.labels, before)


@every
@pytest.mark.parametrize("k", [3, 40, 148])
def test_there_are_always_enough_representatives(options, k):
    X = fastmmc.datasets.load("iris")[0]
    given = {"max_representatives": 1, "patience": 2, "max_iter": 5, "random_state": 0} | options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = fastmmc.sammc(X, k, **given)
    assert result.n_active > 0.8 * k
    assert result.objective == pytest.approx(naive.objective(X, result.centers), rel=1e-9)


def test_more_clusters_than_representatives_by_default():
    X = np.random.default_rng(0).standard_normal((600, 2))
    result = fastmmc.sammc(X, 60, max_representatives=50, patience=2, random_state=0)
    assert result.n_active == 60


@every
def test_values_whose_squares_overflow_or_vanish_are_refused(options, overlapping):
    for X in (overlapping * 1e160, overlapping * 1e-200, (overlapping * 1e20).astype(np.float32)):
        with pytest.raises(ValueError, match="overflow or vanish in float.*scale the points"):
            fastmmc.sammc(X, 3, **options)


def test_sparse_points_far_from_zero_are_refused(overlapping):
    with pytest.raises(ValueError, match="lost in rounding; subtract their mean"):
        fastmmc.sammc(csr_matrix(overlapping + 1e8), 3)
    same = csr_matrix(np.full((5, 2), 1e8))
    with pytest.warns(ConvergenceWarning, match="found 1 cluster,"):
        assert fastmmc.sammc(same, 2).objective == 0.0


def test_ties_of_sparse_points_end_as_they_are_predicted():
    X = csr_matrix(fastmmc.datasets.load("iris")[0][:, :2])
    result = fastmmc.sammc(X, 100, patience=5, random_state=0)
    np.testing.assert_array_equal(result.predict(X), result.labels)


@every
def test_history_ends_at_the_objective(options, overlapping):
    whole = fastmmc.sammc(overlapping, 4, **QUICK | options)
    if options.get("center") != "mean":
        assert whole.history[-1] == pytest.approx(whole.objective, rel=1e-12)
    with pytest.warns(ConvergenceWarning, match="callback"):
        stopped = fastmmc.sammc(
            overlapping, 4, callback=lambda p: True, **QUICK | {"patience": 10**6} | options
        )
    assert stopped.history[-1] == pytest.approx(stopped.objective, rel=1e-12)
    for values in stopped.trace.values():
        assert len(values) == len(stopped.history)


def test_representatives_that_do_not_fit_into_memory_are_refused(overlapping, monkeypatch):
    monkeypatch.setattr(annealing.memory, "available_memory", lambda: 1000)
    with pytest.raises(MemoryError, match="15 representatives with 3 features.*search='memetic'"):
        fastmmc.sammc(overlapping, 3, search="annealing")


@pytest.mark.parametrize("search", ["annealing", "memetic"])
def test_a_slice_is_one_piece_of_work(search, monkeypatch):
    """So that the clock, and an interrupt, are heeded between two of them."""
    from fastmmc.annealing import annealing, points
    from fastmmc.annealing.methods import SEARCHES
    from fastmmc.kernels import kmeans

    n_pieces = 0

    def counted(module, name):
        work = getattr(module, name)

        def count(*args, **kwargs):
            nonlocal n_pieces
            n_pieces += 1
            return work(*args, **kwargs)

        monkeypatch.setattr(module, name, count)

    counted(kmeans, "euclidean_distances")
    counted(kmeans, "kmeans_single_lloyd")
    counted(points.kernels, "assign")
    counted(annealing, "train_linear_machine")
    X = np.random.default_rng(0).standard_normal((3000, 2))
    plan = fastmmc.sammc.parameters(X, 4, search=search, patience=2, max_iter=2)
    one = SEARCHES[search](plan, Points(X), np.random.default_rng(0))
    most = n_slices = 0
    ended = False
    while not ended:
        n_pieces = 0
        ended = one.step(1)
        most, n_slices = max(most, n_pieces), n_slices + 1
    # The last piece of one work, and the first of the next.
    assert most <= 3 and n_slices > 100
