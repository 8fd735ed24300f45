"""The names of the columns of a data frame: remembered by results, factors and estimators."""

import inspect
import pickle
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans

import fastmmc
from fastmmc.distributed import fit_sharded

METHODS = list(fastmmc.METHODS.values())
every = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)

COMMON = {"random_state": 0, "n_init": 1}


@cache
def frame():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 3)) + 4.0 * (np.arange(24) % 2)[:, None] * [1, -1, 0]
    return pd.DataFrame(X, columns=["a", "b", "c"])


def run(function, X, **params):
    names = inspect.signature(function).parameters
    k = (2,) if "k" in names else ()
    common = {name: value for name, value in COMMON.items() if name in names}
    return function(X, *k, **common, **params)


def make(kind):
    names = inspect.signature(kind).parameters
    common = {"n_clusters": 2} | COMMON
    return kind(**{name: value for name, value in common.items() if name in names})


def uses(result):
    """What takes new points."""
    names = ("predict", "decision_function", "transform")
    return [getattr(result, name) for name in names if hasattr(result, name)]


def doubled(X):
    """The points with a second column b."""
    return pd.concat([X, X[["b"]]], axis=1)


REFUSED_NAMES = "^X must have columns of different names, and has several of 'b': rename them"


@every
def test_equal_names_are_refused(method):
    X = frame()
    with pytest.raises(ValueError, match=REFUSED_NAMES):
        run(method.function, doubled(X))
    with pytest.raises(ValueError, match=REFUSED_NAMES):
        make(method.estimator).fit(doubled(X))
    for fitted in (run(method.function, X), make(method.estimator).fit(X)):
        for use in uses(fitted):
            with pytest.raises(ValueError, match=REFUSED_NAMES):
                use(doubled(X))


@pytest.mark.parametrize("kind", [fastmmc.WTA, fastmmc.SAMMC])
def test_equal_names_are_refused_with_categories_and_in_chunks(kind):
    X = frame().assign(d=["x", "y"] * 12)
    with pytest.raises(ValueError, match=REFUSED_NAMES):
        make(kind).fit(doubled(X))
    if hasattr(kind, "partial_fit"):
        with pytest.raises(ValueError, match=REFUSED_NAMES):
            make(kind).partial_fit(doubled(X))


def check_names(result, X):
    """The same names are taken, others are refused, and none are a warning, as of an estimator."""
    others = {
        "same order": X[X.columns[::-1]],
        "unseen at fit time:\n- z": X.rename(columns={"b": "z"}),
        "now missing:\n- c": X[["a", "b"]],
    }
    peer = KMeans(2, n_init=1, random_state=0).fit(X)
    for use in uses(result):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            expected = use(X)
        for message, other in others.items():
            with pytest.raises(ValueError, match=message) as mine:
                use(other)
            with pytest.raises(ValueError) as theirs:
                peer.predict(other)
            assert str(mine.value) == str(theirs.value)
        told = f"X does not have valid feature names, but {type(result).__name__} was fitted with"
        with pytest.warns(UserWarning, match=told):
            found = use(X.to_numpy())
        np.testing.assert_array_equal(found, expected)


@every
def test_results_remember_the_names(method):
    result = run(method.function, frame())
    assert result.feature_names_in.tolist() == ["a", "b", "c"]
    check_names(result, frame())
    check_names(pickle.loads(pickle.dumps(result)), frame())


@every
def test_results_of_points_without_names(method):
    X = frame().to_numpy()
    result = run(method.function, X)
    assert result.feature_names_in is None
    for use in uses(result):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            expected = use(X)
            use(X.tolist())
            # scikit-learn takes names that are no text for none.
            np.testing.assert_array_equal(use(pd.DataFrame(X)), expected)
        told = f"X has feature names, but {type(result).__name__} was fitted without"
        with pytest.warns(UserWarning, match=told):
            np.testing.assert_array_equal(use(frame()), expected)


@every
def test_estimators_check_the_names_once(method):
    X = frame()
    model = make(method.estimator).fit(X)
    assert model.result_.feature_names_in.tolist() == ["a", "b", "c"]
    for use in [*uses(model), model.score]:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            use(X)
        with pytest.raises(ValueError, match="same order"):
            use(X[["b", "a", "c"]])
        with pytest.warns(UserWarning, match="does not have valid feature names") as told:
            use(X.to_numpy())
        assert len(told) == 1 and type(model).__name__ in str(told[0].message)
    check_names(model.result_, X)
    refitted = model.fit(X.to_numpy()).result_
    assert refitted.feature_names_in is None


@pytest.mark.parametrize("rank", [None, 10])
def test_factors_remember_the_names(rank):
    F = fastmmc.factor(frame(), rank=rank, random_state=0)
    assert F.feature_names_in.tolist() == ["a", "b", "c"]
    for result in (
        fastmmc.umc_rls(F, 2, random_state=0, sizes="equal"),
        fastmmc.fast_evo_mmc(F, rank=0.1, random_state=0),
        *fastmmc.umc_rls_path(frame(), 2, [0.1, 1.0], rank=rank, random_state=0, sizes="equal"),
    ):
        check_names(result, frame())
    assert fastmmc.factor(frame().to_numpy(), rank=rank).feature_names_in is None


def test_features_of_new_points():
    F = fastmmc.factor(frame(), rank=10, random_state=0)
    assert F.transform(frame()).shape[0] == 24
    with pytest.raises(ValueError, match="same order"):
        F.transform(frame()[["b", "a", "c"]])


def test_names_of_a_gram_matrix():
    X = frame().to_numpy()
    names = [f"point {i}" for i in range(24)]
    K = pd.DataFrame(X @ X.T, columns=names)
    result = fastmmc.umc_rls(K, 2, kernel="precomputed", random_state=0, sizes="equal")
    assert result.predict(K).shape == (24,)
    with pytest.raises(ValueError, match="same order"):
        result.predict(K[names[::-1]])


def test_sharded_runs_remember_the_names():
    check_names(fit_sharded(frame(), 2, max_iter=2, random_state=0), frame())


def test_names_of_two_kinds_are_refused_before_the_run():
    mixed = frame().set_axis(["a", 1, "c"], axis=1)
    with pytest.raises(TypeError, match="all input features have string names"):
        fastmmc.umc_rls(mixed, 2, sizes="equal")


def test_the_function_that_remembers_is_the_one_that_was_written():
    assert list(inspect.signature(fastmmc.gmmc).parameters)[0] == "X"
    with pytest.raises(TypeError, match=r"^factor\(\) missing a required argument: 'X'"):
        fastmmc.factor()
