"""The bias search against all labels, one by one."""

import numpy as np
import pytest

from fastmmc.alternating.bias import WeightBounds, search_bias
from tests.alternating import naive

LOSSES = [("laplace", 0.0), ("laplace", 0.3), ("hinge", 0.0), ("square", 0.0)]


def draw(case):
    """Scores of all kinds: small, large, many equal."""
    rng = np.random.default_rng(case)
    most = 10 if case % 15 == 0 else 7  # all labels of ten points take a while
    o = rng.standard_normal(rng.integers(2, most + 1)) * rng.choice([0.2, 1.0, 3.0])
    return np.round(o) if case % 5 == 0 else o


def equal_weights(n, share):
    return WeightBounds(np.ones(n), 0.5 * (1 - share) * n, 0.5 * (1 + share) * n)


def total_loss(y, f, s, loss, epsilon):
    return np.sum(s * naive.margin_loss(y, f, loss, epsilon))


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize(("loss", "epsilon"), LOSSES)
def test_best_of_all_labels(loss, epsilon, tied):
    compared = 0
    for case in range(150):
        o = draw(case)
        bounds = equal_weights(o.size, (0.34, 0.6, 1.0)[case % 3])
        wanted = naive.bias_search(
            o, bounds.weights, bounds.lower, bounds.upper, loss, epsilon, tied
        )
        if not np.isfinite(wanted):  # tied, and equal scores leave no labels of allowed sizes
            continue
        split = search_bias(o, bounds, loss, epsilon, tied)
        assert split.loss == pytest.approx(wanted, abs=1e-9)
        compared += 1
    assert compared > 100


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize(("loss", "epsilon"), LOSSES)
def test_what_is_returned_fits_together(loss, epsilon, tied):
    for case in range(50):
        o = draw(case)
        bounds = equal_weights(o.size, 0.6)
        split = search_bias(o, bounds, loss, epsilon, tied)
        f = o + split.bias
        real = total_loss(split.y, f, bounds.weights, loss, epsilon)
        assert real == pytest.approx(split.loss, abs=1e-9)
        assert bounds.lower - 1e-9 <= np.sum(split.y > 0) <= bounds.upper + 1e-9
        assert o[split.y > 0].min(initial=np.inf) >= o[split.y < 0].max(initial=-np.inf)
        if np.unique(o).size == o.size:
            assert np.array_equal(np.sign(o + split.threshold), split.y)
        if tied and np.unique(o).size == o.size:
            assert (split.y * f >= -1e-12).all()


@pytest.mark.parametrize(("loss", "epsilon"), LOSSES)
def test_weighted_points_are_split_whole(loss, epsilon):
    rng = np.random.default_rng(3)
    for _ in range(20):
        o, s = np.sort(rng.standard_normal(12)), rng.integers(1, 4, 12).astype(float)
        bounds = WeightBounds(s, 0.3 * s.sum(), 0.7 * s.sum())
        wanted = np.inf
        for m in range(13):
            y = np.where(np.arange(12) < m, -1.0, 1.0)
            if bounds.lower <= s[m:].sum() <= bounds.upper:
                wanted = min(wanted, naive.best_bias(o, y, s, loss, epsilon)[0])
        assert search_bias(o, bounds, loss, epsilon).loss == pytest.approx(wanted, abs=1e-9)


def test_a_point_too_heavy_for_the_bounds_is_split_off_as_well_as_can_be():
    bounds = WeightBounds(np.array([1.0, 1.0, 10.0]), 5.8, 6.2)
    split = search_bias(np.array([0.0, 1.0, 2.0]), bounds, "laplace")
    assert split.y.tolist() == [-1.0, -1.0, 1.0]


def test_large_scores_that_are_alike_keep_their_digits():
    o = np.random.default_rng(0).standard_normal(40)
    near, far = (search_bias(scores, equal_weights(40, 0.1), "laplace") for scores in (o, o + 1e8))
    assert np.array_equal(near.y, far.y)
    assert far.loss == pytest.approx(near.loss, rel=1e-6)


def test_all_scores_equal():
    split = search_bias(np.zeros(6), equal_weights(6, 0.1), "laplace", tied=True)
    assert np.sum(split.y) == 0
    assert split.loss == pytest.approx(6.0)


@pytest.mark.parametrize(("loss", "epsilon"), LOSSES)
@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_scores_that_overflowed_have_an_infinite_loss(value, loss, epsilon):
    with np.errstate(invalid="ignore"):
        split = search_bias(np.full(3, value), equal_weights(3, 0.6), loss, epsilon)
    assert split.loss == np.inf and np.sum(split.y > 0) in (1, 2)
