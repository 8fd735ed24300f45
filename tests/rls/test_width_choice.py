"""Tests of the narrower width that may take the place of the default one."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import fastmmc
from fastmmc import Status, distributed
from fastmmc.execution import OutOfTime
from fastmmc.gram import NARROW_SHARE, median_width, neighbour_width
from fastmmc.rls import width_choice
from fastmmc.rls.free import Groups
from fastmmc.rls.size_choice import angles, nearest
from fastmmc.rls.width_choice import _error
from fastmmc.sizes import size_rule
from tests.rls import naive


def spirals(n, seed=0):
    """Return two arms of a spiral, n points each, in mixed order, and which arm they are of."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat([0, 1], n))
    turns = 1.5 * np.sqrt(rng.uniform(0.04, 1, 2 * n))
    angle = 2 * np.pi * turns + np.pi * y
    X = turns[:, None] * np.column_stack((np.cos(angle), np.sin(angle)))
    return X + rng.normal(scale=0.04, size=X.shape), y


def rings(sizes, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    angle = rng.uniform(0, 2 * np.pi, y.size)
    X = (1 + y)[:, None] * np.column_stack((np.cos(angle), np.sin(angle)))
    return X + rng.normal(scale=0.08, size=X.shape), y


SHAPES = {
    "spirals": spirals(300),
    "spirals in single precision": (spirals(300)[0].astype(np.float32), spirals(300)[1]),
    "rings": rings([100, 200, 300, 400]),
}


@pytest.mark.jit
@pytest.mark.parametrize("name", SHAPES)
def test_shapes_nearer_together_than_the_default_width(name):
    X, y = SHAPES[name]
    k = len(np.unique(y))
    result = fastmmc.umc_rls(X, k, random_state=0)
    assert adjusted_rand_score(y, result.labels) == 1.0
    assert result.params["sigma"] == neighbour_width(k, X, share=NARROW_SHARE)
    assert result.converged and result.history[-1] == result.objective
    assert_array_equal(result.predict(X), result.labels)
    # What the result tells is of the width that was taken.
    factor = fastmmc.factor(X, sigma=result.params["sigma"])
    of_factor = fastmmc.umc_rls(
        factor, k, init=result.labels, method="steepest", sizes="free", max_iter=0
    )
    assert_array_equal(of_factor.labels, result.labels)
    assert_allclose(of_factor.objective, result.objective)
    assert_allclose(of_factor.loo_mse, result.loo_mse)
    assert_allclose(of_factor.outlier_scores, result.outlier_scores)


@pytest.mark.jit
def test_bound_and_estimator_are_of_the_width_that_was_taken():
    X, y = spirals(300)
    result = fastmmc.umc_rls(X, 2, bound=True, random_state=0)
    factor = fastmmc.factor(X, sigma=result.params["sigma"])
    bound = 2 - np.linalg.eigvalsh(factor.R)[-2:].sum()
    assert_allclose(result.bound, bound, rtol=1e-6)
    for n_jobs in (1, 2):
        fitted = fastmmc.UMCRLS(2, random_state=0, n_jobs=n_jobs).fit(X)
        assert_array_equal(fitted.labels_, result.labels)
        assert_array_equal(fitted.predict(X), result.labels)


@pytest.mark.jit
def test_what_is_told_of_width_or_labels_keeps_the_default_width():
    X, y = spirals(100)
    wide = median_width(X)
    known = np.where(np.arange(y.size) == 3, 0, -1)
    told = [{"sigma": wide}, {"gamma": 1 / wide**2}, {"min_size": 2}, {"max_size": 150}]
    told += [{"sizes": "free"}, {"sizes": "equal"}, {"known_labels": known}, {"rank": 50}]
    told += [{"must_link": [(0, 1)]}, {"sample_weight": np.full(y.size, 2.0)}]
    for one in told:
        params = fastmmc.umc_rls(X, 2, random_state=0, **one).params
        taken = 1 / np.sqrt(params["gamma"]) if params["gamma"] else params["sigma"]
        assert_allclose(taken, wide, err_msg=str(one))
    (of_path,) = fastmmc.umc_rls_path(X, 2, [0.25], random_state=0)
    assert of_path.params["sigma"] == wide
    of_factor = fastmmc.umc_rls(fastmmc.factor(X, k=2), 2, random_state=0)
    given = fastmmc.umc_rls(X, 2, sigma=wide, random_state=0)
    assert_array_equal(of_factor.labels, given.labels)
    assert_array_equal(of_path.labels, given.labels)


@pytest.mark.jit
def test_overlapping_clusters_keep_the_default_width():
    X, _ = fastmmc.datasets.load("digits")
    found = fastmmc.umc_rls(X[:500], 10, random_state=0)
    given = fastmmc.umc_rls(X[:500], 10, sigma=neighbour_width(10, X[:500]), random_state=0)
    assert_array_equal(found.labels, given.labels)
    assert found.params["sigma"] == given.params["sigma"] and found.n_moves == given.n_moves


@pytest.mark.jit
@pytest.mark.parametrize("times", [1, 20])
@pytest.mark.parametrize("count", [2, 7, 12])
def test_few_or_equal_points_give_labels(count, times):
    X = np.repeat(np.random.default_rng(0).standard_normal((count, 2)), times, axis=0)
    for k in (1, 2, count):
        result = fastmmc.umc_rls(X, k, random_state=0)
        assert result.converged and result.sizes.min() > 0 and result.sizes.size == k


@pytest.mark.jit
def test_a_stop_at_the_narrower_width_gives_back_the_labels_of_the_default_one(monkeypatch):
    X, _ = spirals(100)

    def too_late(*args):
        raise OutOfTime

    given = fastmmc.umc_rls(X, 2, sigma=median_width(X), random_state=0)
    monkeypatch.setattr(width_choice, "make_factor", too_late)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        stopped = fastmmc.umc_rls(X, 2, random_state=0)
    assert stopped.status == Status.TIME_LIMIT
    assert stopped.params["sigma"] == given.params["sigma"]
    assert_array_equal(stopped.labels, given.labels)


def test_error_is_that_of_the_formula():
    X, y = rings([14, 20])
    factor = fastmmc.factor(X)
    points = Groups.of_points(factor.R)
    got = _error(points, y, nearest(angles(factor.R)), size_rule(y.size, 2))
    assert_allclose(got, np.sqrt(np.prod(naive.priced_errors(factor.R, y, 2, 10))))


@pytest.mark.jit
def test_a_restart_that_chose_a_narrower_width_wins_over_those_that_did_not():
    X, _ = spirals(60)
    wide, narrow = (fastmmc.umc_rls(X, 2, sigma=s, random_state=0) for s in (1.0, 0.2))
    dearer = replace(narrow, objective=narrow.objective + wide.objective)
    made = iter([wide, dearer, narrow, wide])
    best = distributed.fit_restarts(lambda X, k, **run: next(made), X, 2, n_init=4)
    assert best.best_init == 2 and best.params["sigma"] == 0.2
