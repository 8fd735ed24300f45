"""Labels that are given to estimators: what is ignored, what is learned from, and what is kept."""

import inspect
from functools import cache

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

import fastmmc

ESTIMATORS = [method.estimator for method in fastmmc.METHODS.values()]
SEMI_SUPERVISED = [
    kind for kind in ESTIMATORS if "semi_supervised" in inspect.signature(kind).parameters
]
LINKED = [
    kind for kind in SEMI_SUPERVISED if "cannot_link" in inspect.signature(kind.fit).parameters
]

every = pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
told = pytest.mark.parametrize("kind", SEMI_SUPERVISED, ids=lambda kind: kind.__name__)
linked = pytest.mark.parametrize("kind", LINKED, ids=lambda kind: kind.__name__)

N = 30
CODINGS = {
    "signs": lambda truth: 2 * truth - 1,
    "signs as floats": lambda truth: 2.0 * truth - 1,
    "numbers": lambda truth: truth,
    "missing": lambda truth: np.where(truth == 1, 1.0, np.nan),
    "words": lambda truth: truth.astype(str),
}


@cache
def points():
    return np.random.default_rng(0).normal(size=(N, 2))


@cache
def guess():
    """Labels that have nothing to do with the points."""
    return np.random.default_rng(1).integers(0, 2, N)


def make(kind, **params):
    names = inspect.signature(kind).parameters
    common = {"n_clusters": 2, "random_state": 0, "n_init": 1, "labels_as": "both"}
    return kind(**{name: value for name, value in common.items() if name in names}, **params)


def partial():
    """Every third label of the guess, which the links of both kinds are in line with."""
    return np.where(np.arange(N) % 3 == 0, guess(), -1)


def test_which_estimators_can_learn_from_labels():
    names = {kind.__name__ for kind in SEMI_SUPERVISED}
    assert names == {"UMCRLS", "AutoMMC", "CRPCL", "OLCVQE", "LCVQE", "CVQE"}


@every
def test_labels_are_ignored(kind):
    y = CODINGS["signs"](guess())
    alone = make(kind).fit(points()).labels_
    np.testing.assert_array_equal(make(kind).fit(points(), y).labels_, alone)
    np.testing.assert_array_equal(make_pipeline(make(kind)).fit_predict(points(), y), alone)


@told
@pytest.mark.parametrize("coding", CODINGS)
def test_labels_are_ignored_however_they_are_coded(kind, coding):
    alone = make(kind).fit(points()).labels_
    y = CODINGS[coding](guess())
    np.testing.assert_array_equal(make(kind).fit(points(), y).labels_, alone)
    np.testing.assert_array_equal(make(kind).fit_predict(points(), y), alone)


def test_random_signs_do_not_become_clusters():
    """They did in nearly full, as -1 was read as unknown and the sizes gave the rest away."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.choice([-1, 1], 200)
    assert (
        adjusted_rand_score(y, fastmmc.UMCRLS(2, random_state=0, sizes="equal").fit(X, y).labels_)
        < 0.1
    )


def test_a_search_is_given_true_labels_and_does_not_see_them():
    data = load_breast_cancer()
    X, y = scale(data.data)[:200], np.where(data.target[:200] == 1, 1, -1)
    grid = {"lam": [0.01, 1.0]}
    model = fastmmc.UMCRLS(2, n_init=2, random_state=0, sizes="equal")
    searches = [GridSearchCV(model, grid, cv=3).fit(X, labels) for labels in (None, y)]
    for name in ("mean_test_score", "std_test_score"):
        first, second = (search.cv_results_[name] for search in searches)
        np.testing.assert_array_equal(first, second)
    alone, beside = (search.best_estimator_.labels_ for search in searches)
    np.testing.assert_array_equal(alone, beside)
    assert adjusted_rand_score(y, beside) < 0.9


@told
def test_fit_predict_and_pipelines_keep_what_fit_keeps(kind):
    y = partial()
    fitted = make(kind, semi_supervised=True).fit(points(), y).labels_
    assert not np.array_equal(fitted, make(kind).fit(points()).labels_)
    model = make(kind, semi_supervised=True)
    np.testing.assert_array_equal(model.fit_predict(points(), y), fitted)
    pipeline = make_pipeline(StandardScaler(with_mean=False, with_std=False), clone(model))
    np.testing.assert_array_equal(pipeline.fit_predict(points(), y), fitted)
    np.testing.assert_array_equal(pipeline.fit(points(), y)[-1].labels_, fitted)
    if hasattr(model, "fit_transform"):
        model.fit_transform(points(), y)
        np.testing.assert_array_equal(model.labels_, fitted)


def test_known_labels_are_kept():
    y = partial()
    labels = make(fastmmc.UMCRLS, semi_supervised=True).fit_predict(points(), y)
    np.testing.assert_array_equal(labels[y >= 0], y[y >= 0])
    complete = make(fastmmc.UMCRLS, semi_supervised=True, balance=1.0)
    np.testing.assert_array_equal(complete.fit_predict(points(), guess()), guess())


@told
def test_the_estimator_is_the_function(kind):
    method = next(m for m in fastmmc.METHODS.values() if m.estimator is kind)
    model = make(kind, semi_supervised=True)
    params = model.get_params()
    given = {
        name: params[name] for name in ("random_state", "n_init", "labels_as") if name in params
    }
    for unknown in (-1, np.nan, None):
        y = partial().astype(object)
        y[partial() < 0] = unknown
        result = method.function(points(), 2, known_labels=y, **given)
        np.testing.assert_array_equal(model.fit(points(), y).labels_, result.labels)


@linked
def test_links_reach_fit_through_fit_predict_and_pipelines(kind):
    known = np.flatnonzero(partial() >= 0)
    a, b = (known[i] for i in np.triu_indices(known.size, 1))
    equal = guess()[a] == guess()[b]
    links = {
        "must_link": np.column_stack((a, b))[equal],
        "cannot_link": np.column_stack((a, b))[~equal],
    }
    fitted = make(kind).fit(points(), **links)
    assert fitted.n_constraints_ == len(a)
    np.testing.assert_array_equal(make(kind).fit_predict(points(), **links), fitted.labels_)
    pipeline = make_pipeline(make(kind))
    step = pipeline.steps[-1][0]
    named = {f"{step}__{name}": pairs for name, pairs in links.items()}
    np.testing.assert_array_equal(pipeline.fit_predict(points(), **named), fitted.labels_)
    with sklearn.config_context(enable_metadata_routing=True):
        model = make(kind).set_fit_request(must_link=True, cannot_link=True)
        routed = make_pipeline(model).fit_predict(points(), **links)
    np.testing.assert_array_equal(routed, fitted.labels_)


@told
@pytest.mark.parametrize(
    ("y", "value"), [(np.full(N, -2), "-2"), (np.full(N, 0.5), "0.5"), ([b"a"] * N, "b'a'")]
)
def test_wrong_labels(kind, y, value):
    with pytest.raises(ValueError, match=f"^y must hold integers .*-1, NaN or None.*got {value}"):
        make(kind, semi_supervised=True).fit(points(), y)
    with pytest.raises(ValueError, match=rf"^y must have one label.*got shape \({N - 1},\)"):
        make(kind, semi_supervised=True).fit(points(), y[1:])


@told
def test_semi_supervised_is_true_or_false(kind):
    for y in (None, partial()):
        with pytest.raises(TypeError, match="semi_supervised must be True or False; got 'yes'"):
            make(kind, semi_supervised="yes").fit(points(), y)


def test_labels_may_be_names():
    X = np.vstack((points()[:15] + 9.0, points()[15:] - 9.0))
    y = np.full(N, None, dtype=object)
    y[[1, 2, 28]] = "spam", "spam", "ham"
    model = make(fastmmc.UMCRLS, semi_supervised=True).fit(X, y)
    assert model.classes_.tolist() == ["ham", "spam"]
    np.testing.assert_array_equal(model.classes_[model.labels_], np.repeat(["spam", "ham"], 15))
    np.testing.assert_array_equal(model.classes_[model.predict(X[:3])], "spam")
    numbers = np.where(y == "spam", 1, np.where(y == "ham", 0, -1))
    same = make(fastmmc.UMCRLS, semi_supervised=True).fit(X, numbers)
    np.testing.assert_array_equal(same.labels_, model.labels_)
    assert same.classes_ is None
    assert make(fastmmc.UMCRLS).fit(X, y).classes_ is None


@pytest.mark.parametrize("kind", [kind for kind in LINKED if not kind._labels_are_clusters])
def test_labels_that_imply_links_are_numbers(kind):
    with pytest.raises(ValueError, match="^y must hold integers .*got 'a' in row 0 and 29 more"):
        make(kind, semi_supervised=True).fit(points(), ["a"] * N)


def test_labels_of_more_clusters_than_there_are():
    with pytest.raises(ValueError, match=r"^y must hold integers 0\.\.1 .*got 2"):
        make(fastmmc.UMCRLS, semi_supervised=True).fit(points(), np.full(N, 2))
