"""Clusters of real data, as distributions over seeds."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import fastmmc

pytestmark = pytest.mark.jit


def starts(digits, count):
    """Objective and ARI of single starts of the paper's search on digits at lam = 1/4."""
    X, y = digits
    F = fastmmc.factor(X / 16)
    how = {"method": "shaking", "n_init": 1}
    results = [fastmmc.umc_rls(F, 10, **how, random_state=seed) for seed in range(count)]
    return np.array([(r.objective, adjusted_rand_score(y, r.labels)) for r in results])


def test_single_starts_on_digits(digits):
    assert starts(digits, 60)[:, 1].mean() >= 0.77


@pytest.mark.slow
def test_best_of_thirty_starts_on_digits(digits):
    blocks = starts(digits, 300).reshape(10, 30, 2)
    chosen = np.sort([block[block[:, 0].argmin(), 1] for block in blocks])
    assert np.median(chosen) >= 0.89
    assert chosen[0] >= 0.86


@pytest.mark.slow
def test_defaults_on_digits(digits):
    X, y = digits
    F = fastmmc.factor(X)
    scores = [
        adjusted_rand_score(
            y, fastmmc.umc_rls(F, 10, random_state=seed, n_jobs=2, sizes="equal").labels
        )
        for seed in range(10)
    ]
    assert sum(score >= 0.85 for score in scores) >= 9


def test_defaults_on_moons():
    for seed in range(10):
        X, y = fastmmc.datasets.make_moons(200, noise=0.05, random_state=seed)
        assert (
            adjusted_rand_score(y, fastmmc.umc_rls(X, 2, random_state=seed, sizes="equal").labels)
            == 1.0
        )


@pytest.mark.parametrize("name", ["iris", "moons"])
def test_prediction_agrees_with_the_labels(name):
    X, y = fastmmc.datasets.load(name)
    result = fastmmc.umc_rls(X, len(set(y.tolist())), random_state=0, sizes="equal")
    assert np.mean(result.predict(X) == result.labels) >= 0.97
