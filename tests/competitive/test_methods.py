"""The functions and estimators of the family: what they find, forms of input, stops, bad input."""

import inspect
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array, csr_matrix
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import normalize

import fastmmc
from fastmmc import Status

ONLINE = [fastmmc.wta, fastmmc.fscl, fastmmc.rpcl, fastmmc.c_rpcl, fastmmc.o_lcvqe]
LINKED = [fastmmc.c_rpcl, fastmmc.o_lcvqe, fastmmc.lcvqe, fastmmc.cvqe]
FUNCTIONS = list(dict.fromkeys(ONLINE + LINKED))
ESTIMATORS = [
    fastmmc.WTA,
    fastmmc.FSCL,
    fastmmc.RPCL,
    fastmmc.CRPCL,
    fastmmc.OLCVQE,
    fastmmc.LCVQE,
    fastmmc.CVQE,
]


def named(functions):
    return pytest.mark.parametrize("function", functions, ids=lambda f: f.__name__)


every, online, linked = named(FUNCTIONS), named(ONLINE), named(LINKED)


@every
def test_blobs(function, blobs):
    X, y = blobs
    result = function(X, 3, n_init=10, random_state=0)
    assert adjusted_rand_score(y, result.labels) == 1.0
    assert result.converged and result.n_active == 3
    np.testing.assert_array_equal(result.sizes, np.bincount(result.labels))
    np.testing.assert_array_equal(result.predict(X), result.labels)
    distances = result.transform(X)
    np.testing.assert_allclose(distances**2, -result.decision_function(X), rtol=1e-12)
    nearest = np.linalg.norm(X - result.centers[result.labels], axis=1)
    np.testing.assert_allclose(distances.min(axis=1), nearest, rtol=1e-9)


@online
def test_the_objective_is_the_sum_of_squared_distances(function, overlapping):
    result = function(overlapping, 4, random_state=0)
    expected = ((overlapping - result.centers[result.labels]) ** 2).sum()
    assert result.objective == pytest.approx(expected)
    assert len(result.history) == result.n_iter == 100
    assert result.n_moves == 100 * 60 == result.trace["objects"][-1]


@online
def test_on_line_means_come_near_to_k_means(function, overlapping):
    result = function(
        overlapping, 3, schedule="robbins-monro", n_init=10, random_state=0, max_iter=300
    )
    means = KMeans(3, n_init=10, random_state=0).fit(overlapping)
    assert result.objective < 1.05 * means.inertia_


def test_without_constraints_methods_are_what_they_extend(overlapping):
    X = overlapping
    plain = {"max_iter": 20, "random_state": 3}
    for one, other, options in (
        (fastmmc.c_rpcl, fastmmc.rpcl, {}),
        (fastmmc.o_lcvqe, fastmmc.wta, {}),
    ):
        a, b = one(X, 4, **plain, **options), other(X, 4, **plain)
        np.testing.assert_array_equal(a.all_centers, b.all_centers)
        np.testing.assert_array_equal(a.weights, b.weights)
    a, b = fastmmc.rpcl(X, 4, beta=0.0, **plain), fastmmc.fscl(X, 4, **plain)
    np.testing.assert_array_equal(a.all_centers, b.all_centers)


@pytest.mark.parametrize(
    ("function", "labels_as"),
    [
        (fastmmc.c_rpcl, "must_link"),  # with two prototypes cannot-links soon forbid both
        (fastmmc.o_lcvqe, "must_link"),
        (fastmmc.o_lcvqe, "cannot_link"),
        (fastmmc.lcvqe, "must_link"),
        (fastmmc.lcvqe, "cannot_link"),
    ],
)
def test_constraints_turn_the_border(function, labels_as):
    """A rectangle, which is cut across its long side; known labels say: along it."""
    rng = np.random.default_rng(0)
    X = rng.random((300, 2)) * [1.0, 1.15]
    side = (X[:, 0] > 0.5).astype(int)
    known = np.where(rng.random(300) < 0.3, side, -1)
    free, bound = [], []
    for seed in range(5):
        free.append(adjusted_rand_score(side, function(X, 2, random_state=seed).labels))
        result = function(X, 2, random_state=seed, known_labels=known, labels_as=labels_as)
        bound.append(adjusted_rand_score(side, result.labels))
        rows = np.flatnonzero(known >= 0)
        a, b = (rows[i] for i in np.triu_indices(rows.size, 1))
        same, together = known[a] == known[b], result.labels[a] == result.labels[b]
        wrong = same & ~together if labels_as == "must_link" else ~same & together
        assert result.n_violations == wrong.sum()
    assert np.mean(bound) > np.mean(free) + 0.3


def test_spare_prototypes_are_driven_away():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 2)) * 0.3 + np.array([[0, 0], [5, 0], [0, 5]])[np.arange(300) % 3]
    found = [fastmmc.rpcl(X, 6, random_state=seed).n_active for seed in range(10)]
    assert sum(n == 3 for n in found) >= 8


def test_little_used_prototypes_are_dropped(overlapping):
    centers = np.vstack([overlapping[:3], [[100.0, 0.0, 0.0]]])
    with pytest.warns(ConvergenceWarning, match="found 3 clusters, fewer than the 4 asked for"):
        result = fastmmc.wta(overlapping, 4, init=centers, max_iter=1, random_state=0)
    assert result.n_active == 3 == len(result.centers)
    assert result.all_centers.shape == (4, 3)
    assert set(result.labels) == {0, 1, 2}
    with pytest.warns(ConvergenceWarning, match="had fewer points than min_share=0.1 of them"):
        most = fastmmc.wta(overlapping, 8, min_share=0.1, random_state=0)
    assert most.sizes.min() >= 6
    with pytest.warns(ConvergenceWarning, match="found 1 cluster, fewer than the 8 asked for"):
        assert fastmmc.wta(overlapping, 8, min_share=0.99, random_state=0).n_active == 1


@every
def test_a_prototype_far_from_all_points_is_said_to_be_lost(function, blobs):
    """Of methods that estimate the number of clusters it is the answer, of the others a loss."""
    init = np.vstack([blobs[0][:2], np.full((1, 4), 1e4)])
    rates = {"alpha": 0.01} if function in ONLINE else {}
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        result = function(blobs[0], 3, init=init, max_iter=3, random_state=0, **rates)
    assert result.n_active == 2
    texts = [str(w.message) for w in given if "fewer" in str(w.message)]
    if function in (fastmmc.rpcl, fastmmc.c_rpcl):
        assert texts == []
    else:
        (text,) = texts
        assert text.startswith("found 2 clusters, fewer than the 3 asked for: 1 of the prototypes")
        assert given[0].filename == __file__


@pytest.mark.jit
@online
def test_many_clusters_are_not_spare_ones(function):
    """At most 100 clusters can have one point in a hundred each."""
    X = np.random.default_rng(0).standard_normal((1500, 2))
    assert function(X, 150, max_iter=20, random_state=0, init="k-means++").n_active > 100


@pytest.mark.jit
@every
def test_sparse_texts_keep_their_clusters_or_say_so(function):
    """Rows like those of TF-IDF, nearly all as far from each other as from the mean."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), 60)
    shares = rng.dirichlet(np.full(400, 0.05), size=5)
    X = np.array([rng.multinomial(40, 0.5 * shares[c] + 0.5 * shares[4]) for c in y])
    X = csr_array(normalize(np.log1p(X)))
    for init in ("gaussian", "k-means++"):
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            result = function(X, 4, init=init, random_state=0)
        fewer = result.n_active < 4 and function not in (fastmmc.rpcl, fastmmc.c_rpcl)
        assert len(given) == fewer


@every
@pytest.mark.parametrize("k", [1, 2, 60])
def test_extreme_numbers_of_prototypes(function, k, overlapping):
    links = {"cannot_link": [(0, 1), (1, 2), (0, 2)]} if function in LINKED else {}
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        result = function(overlapping, k, random_state=0, **links)
    assert 1 <= result.n_active <= k
    estimates = function in (fastmmc.rpcl, fastmmc.c_rpcl)
    assert any("fewer" in str(w.message) for w in given) == (result.n_active < k and not estimates)
    assert np.isfinite(result.all_centers).all()


@online
def test_an_objective_that_overflows_is_said_to(function, overlapping):
    with pytest.warns(ConvergenceWarning, match="a numerical problem"):
        result = function(overlapping * 1e160, 3, random_state=0, max_iter=5, n_init=2)
    assert result.status == Status.NUMERICAL and result.objective == np.inf
    assert np.isfinite(result.all_centers).all() and result.labels.shape == (60,)


def test_robbins_monro_weighs_where_a_prototype_began(overlapping):
    """It is the mean of what it learned and of 1 / alpha - 1 copies of its beginning."""
    X, begin = overlapping, np.full((1, 3), 7.0)
    run = {"init": begin, "schedule": "robbins-monro", "max_iter": 1, "shuffle": False}
    for alpha in (1.0, 0.05):
        copies = 1 / alpha - 1
        expected = (copies * begin + X.sum(axis=0)) / (copies + len(X))
        found = fastmmc.wta(X, 1, alpha=alpha, **run).centers
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@linked
def test_forms_of_partial_labels(function, overlapping):
    y = np.where(np.arange(60) % 9 == 0, np.arange(60) % 2, -1)
    run = {"random_state": 0, "max_iter": 5}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        expected = function(overlapping, 3, known_labels=y, **run)
        assert expected.n_constraints == 12
        missing = np.where(y < 0, np.nan, y)
        for given in (y[:, None], pd.DataFrame(y), pd.Series(y).astype("Int64"), missing):
            found = function(overlapping, 3, known_labels=given, **run)
            np.testing.assert_array_equal(found.labels, expected.labels)
            kind = next(m.estimator for m in fastmmc.METHODS.values() if m.function is function)
            model = kind(3, semi_supervised=True, **run)
            assert model.fit(overlapping, given).n_constraints_ == 12


@every
def test_forms_of_input(function, overlapping):
    X = np.where(np.abs(overlapping) < 0.5, 0.0, overlapping)
    run = {"random_state": 0, "init": X[:3], "max_iter": 50}
    expected = function(X, 3, **run)
    before = X.copy()
    for given in (np.asfortranarray(X), X.tolist(), csr_matrix(X), csr_array(X)):
        found = function(given, 3, **run)
        np.testing.assert_allclose(found.centers, expected.centers, rtol=1e-9)
    single = function(X.astype(np.float32), 3, **run)
    np.testing.assert_allclose(single.centers, expected.centers, atol=1e-3)
    whole = function(np.rint(10 * X).astype(np.int8), 3, **run)
    assert whole.labels.shape == (60,)
    frozen = X.copy()
    frozen.flags.writeable = False
    np.testing.assert_array_equal(function(frozen, 3, **run).labels, expected.labels)
    np.testing.assert_array_equal(X, before)


@every
def test_rings_in_features(function):
    """Two rings are not round: prototypes among the points cut them, those in features do not."""
    X, y = fastmmc.datasets.load("rings")
    plain = function(X, 2, random_state=0, n_init=5)
    features = function(
        X, 2, random_state=0, n_init=5, features="nystroem", sigma=0.6, init="k-means++"
    )
    assert adjusted_rand_score(y, plain.labels) < 0.5
    landmarks_and_features = features.model.space.to_Z.shape
    assert (features.params["rank"], features.centers.shape[1]) == landmarks_and_features
    np.testing.assert_array_equal(features.predict(X), features.labels)


@every
@pytest.mark.parametrize("convert", [np.asarray, csr_matrix])
def test_points_whose_squares_vanish_are_refused(function, convert, overlapping):
    run = {"random_state": 0, "max_iter": 5}
    small = function(convert(1e-140 * overlapping), 3, **run)
    np.testing.assert_array_equal(small.labels, function(convert(overlapping), 3, **run).labels)
    message = "X must have a value of 1e-150 or more, or squared distances vanish .* got .*e-200"
    with pytest.raises(ValueError, match=message):
        function(convert(1e-200 * overlapping), 3, **run)
    assert function(convert(0.0 * overlapping), 1, **run).sizes == [len(overlapping)]


@every
def test_landmarks_may_be_given(function, overlapping):
    run = {"random_state": 0, "features": "nystroem", "sigma": 2.0}
    by_index = function(overlapping, 3, landmarks=np.arange(0, len(overlapping), 4), **run)
    by_place = function(overlapping, 3, landmarks=overlapping[::4], **run)
    np.testing.assert_array_equal(by_index.labels, by_place.labels)


@every
def test_the_same_seed_gives_the_same_labels(function, overlapping):
    run = {"n_init": 4, "random_state": 5, "max_iter": 30}
    one = function(overlapping, 3, **run)
    two = function(overlapping, 3, n_jobs=2, **run)
    np.testing.assert_array_equal(one.labels, two.labels)
    assert one.objectives.tolist() == two.objectives.tolist()
    assert one.objective == one.objectives.min() == one.objectives[one.best_init]
    again = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(again.predict(overlapping), one.predict(overlapping))


@online
@pytest.mark.parametrize(
    ("stop", "status"),
    [({"max_time": 0.05}, Status.TIME_LIMIT), ({"callback": lambda _: True}, Status.CALLBACK)],
)
@pytest.mark.jit
def test_stops(function, stop, status, overlapping):
    with pytest.warns(ConvergenceWarning, match="stopped before the end"):
        result = function(overlapping, 3, max_iter=10**9, random_state=0, **stop)
    assert result.status == status
    assert result.labels.shape == (60,) and np.isfinite(result.objective)


X = np.random.default_rng(0).standard_normal((12, 3))

BAD = [
    ({"k": 0}, ValueError, "k must be at least 1"),
    ({"k": 13}, ValueError, "k must be at most 12, the number of points"),
    ({"k": 2.5}, TypeError, "k must be an integer"),
    ({"init": "random"}, ValueError, "init must be one of 'gaussian', 'k-means\\+\\+'"),
    (
        {"init": None},
        ValueError,
        r"init must be one of 'gaussian', .* or a \(k, d\) array; got None",
    ),
    ({"init": 5}, ValueError, "init must be one of 'gaussian'.*got 5"),
    ({"init": X[:3]}, ValueError, r"init must have shape \(2, 3\).*got \(3, 3\)"),
    ({"init": X[:2, :2]}, ValueError, r"init must have shape \(2, 3\)"),
    ({"init": np.full((2, 3), np.nan)}, ValueError, "NaN"),
    ({"max_iter": 0}, ValueError, "max_iter must be at least 1"),
    ({"n_init": 0}, ValueError, "n_init must be at least 1"),
    ({"features": "rff"}, ValueError, "features must be 'nystroem' or None"),
    ({"features": "nystroem", "rank": None}, ValueError, "rank=None.*needs a number"),
    ({"features": "nystroem", "rank": 13}, ValueError, "rank must be at most 12"),
    ({"sigma": 1.0}, ValueError, "only features='nystroem' has.*sigma=1.0"),
    ({"rank": 5}, ValueError, "only features='nystroem' has.*rank=5"),
    ({"kernel": "precomputed"}, ValueError, "needs features='nystroem'"),
    ({"kernel": "gauss"}, ValueError, "kernel must be one of"),
    ({"random_state": -1}, ValueError, "random_state"),
    ({"max_time": 0}, ValueError, "max_time must be greater than 0"),
]
BAD_ONLINE = [
    ({"alpha": 0}, ValueError, "alpha must be greater than 0"),
    ({"alpha": 1.5}, ValueError, "alpha must be greater than 0 and at most 1"),
    ({"alpha": "fast"}, TypeError, "alpha must be a real number"),
    ({"schedule": "linear"}, ValueError, "schedule must be one of 'constant'"),
    ({"shuffle": 1}, TypeError, "shuffle must be True or False"),
    ({"min_share": 1.0}, ValueError, "min_share must be at least 0 and below 1"),
    ({"min_share": -0.1}, ValueError, "min_share must be at least 0 and below 1"),
]
BAD_RIVALS = [
    ({"beta": -0.1}, ValueError, "beta must be at least 0 and below alpha = 0.05"),
    ({"beta": 0.05}, ValueError, "beta must be at least 0 and below alpha = 0.05"),
    ({"beta": np.nan}, ValueError, "beta must be finite"),
]
BAD_LINKS = [
    ({"cannot_link": [(0, 12)]}, ValueError, r"cannot_link: objects are 0..11"),
    ({"must_link": [(3, 3)]}, ValueError, "must_link links object 3 to itself"),
    ({"must_link": [(0, 1)], "cannot_link": [(0, 1)]}, ValueError, "on_conflict='warn'"),
    ({"y": [0, 1]}, ValueError, "y must have one label for each of the 12"),
    ({"labels_as": 3}, ValueError, "labels_as must be one of"),
    ({"on_conflict": None}, ValueError, "on_conflict must be one of"),
]


@every
def test_bad_parameters(function):
    accepted = inspect.signature(function).parameters
    cases = BAD + BAD_ONLINE + BAD_RIVALS + BAD_LINKS
    cases += [
        ({"online_first_epoch": 1}, TypeError, "online_first_epoch must be True or False"),
        ({"per_constraint": "twice"}, ValueError, "per_constraint must be one of"),
    ]
    n_tried = 0
    for params, error, message in cases:
        if params.keys() <= accepted.keys():
            with pytest.raises(error, match=message):
                function(X, **({"k": 2} | params))
            n_tried += 1
    assert n_tried >= len(BAD)


@every
@pytest.mark.parametrize(
    "points", [np.full((3, 2), np.nan), np.empty((0, 2)), X[0], [["a"]], X + 1j, None]
)
def test_bad_points(function, points):
    with pytest.raises(ValueError, match="X|array|sample|complex|convert|Complex"):
        function(points, 1)


def test_a_contradiction_can_be_let_pass():
    with pytest.warns(ConvergenceWarning, match="1 of 1 cannot-links"):
        result = fastmmc.c_rpcl(
            X,
            2,
            must_link=[(0, 1)],
            cannot_link=[(0, 1)],
            on_conflict="warn",
            max_iter=5,
            random_state=0,
        )
    assert result.n_conflicts == 1 and result.n_violations == 1


@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_estimators_are_the_functions(kind, overlapping):
    function = getattr(
        fastmmc, next(m for m in fastmmc.METHODS.values() if m.estimator is kind).function.__name__
    )
    given = set(inspect.signature(kind).parameters) - {
        "memory_size",
        "semi_supervised",
        "n_clusters",
    }
    defaults = inspect.signature(function).parameters
    to_fit = {"X", "k", "known_labels", "must_link", "cannot_link"}
    assert given == set(defaults) - to_fit
    for name in given:
        assert inspect.signature(kind).parameters[name].default == defaults[name].default
    links = {"cannot_link": [(0, 1)]} if function in LINKED else {}
    model = kind(3, random_state=0).fit(overlapping, **links)
    result = function(overlapping, 3, random_state=0, **links)
    np.testing.assert_array_equal(model.labels_, result.labels)
    np.testing.assert_array_equal(model.cluster_centers_, result.centers)
    assert model.objective_ == result.objective and model.n_violations_ == result.n_violations
    assert model.score(overlapping) == pytest.approx(-result.objective / 60) or function in LINKED
    assert model.transform(overlapping).shape == (60, result.n_active)
    assert clone(model).get_params() == model.get_params()
    ignored = kind(3, random_state=0).fit(overlapping, np.arange(60) % 3)
    without = kind(3, random_state=0).fit(overlapping)
    np.testing.assert_array_equal(ignored.labels_, without.labels_)


@every
def test_kept_says_which_prototypes_the_centers_are(function, blobs):
    result = function(blobs[0], 3, random_state=0)
    np.testing.assert_array_equal(result.all_centers[result.kept], result.centers)
    assert result.kept.size == result.n_active
