"""The memetic search: recombination, population, and what its result certifies."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import fastmmc
from fastmmc.core import execution
from fastmmc.data.labels import matched_clusters
from tests.rls import naive

K = 4


def run(X, k=K, **kwargs):
    options = {"method": "memetic", "random_state": 0, "sigma": 1.5, "lam": 0.1}
    return fastmmc.umc_rls(X, k, **(options | kwargs), sizes="equal")


def test_clusters_are_matched_by_their_overlap(rng):
    a = rng.integers(0, 5, 200)
    names = rng.permutation(5)
    b = names[a]
    b[:20] = rng.integers(0, 5, 20)
    np.testing.assert_array_equal(matched_clusters(a, b, 5), names)
    # A cluster that is empty has what is left over.
    np.testing.assert_array_equal(
        matched_clusters(np.array([0, 0, 2]), np.array([1, 1, 0]), 3)[[0, 2]], [1, 0]
    )


@pytest.mark.parametrize("seed", range(3))
def test_the_result_is_a_local_optimum_within_its_bounds(overlapping, hat, seed):
    res = run(overlapping, random_state=seed)
    n, lower, upper = 60, 12, 18  # 0.2 of n / k = 15
    assert res.objective == pytest.approx(naive.risk(hat, res.labels, K), rel=1e-9)
    assert res.sizes.min() >= lower and res.sizes.max() <= upper
    change = naive.shifts(hat, res.labels, K)
    change[res.sizes[res.labels] <= lower] = 0.0
    change[:, res.sizes >= upper] = 0.0
    assert change.min() > -1e-9
    for i in range(n):
        for j in range(i):
            if res.labels[i] != res.labels[j]:
                assert naive.swap_change(hat, res.labels, K, i, j) > -1e-9


def test_the_history_falls_and_counts_everything(overlapping):
    res = run(overlapping, population=5, patience=7)
    assert (np.diff(res.history) <= 1e-12).all()
    children = res.history[5:][: res.n_iter]
    assert len(children) == res.n_iter >= 7
    assert res.trace["moves"][-1] == res.n_moves and (np.diff(res.trace["moves"]) >= 0).all()
    assert res.history[-1] == res.objective and res.converged
    # The last improvement was no longer ago than patience allows.
    assert (children[-7:] == children[-1]).all() and children[-1] >= res.objective - 1e-9


@pytest.mark.jit
def test_it_beats_its_own_population_on_most_seeds(overlapping):
    gains = []
    for seed in range(10):
        res = run(overlapping, k=8, random_state=seed)
        gains.append(res.history[7] - res.objective)
    assert np.sum(np.array(gains) > 1e-9) >= 5


@pytest.mark.jit
@pytest.mark.parametrize("how", [{}, {"rank": 20}])
def test_dense_and_low_rank(overlapping, how):
    a = run(overlapping, n_init=2, **how)
    b = run(overlapping, n_init=2, n_jobs=2, **how)
    np.testing.assert_array_equal(a.labels, b.labels)
    assert a.objectives.size == 2 and a.objective == a.objectives.min()


@pytest.mark.jit
def test_slices_change_nothing(overlapping, monkeypatch):
    whole = run(overlapping)
    monkeypatch.setattr(execution, "FIRST_BUDGET", 1)
    monkeypatch.setattr(execution, "SLICE_SECONDS", 0.0)
    np.testing.assert_array_equal(run(overlapping).labels, whole.labels)


def test_stops(overlapping):
    with pytest.warns(match="max_iter"):
        res = run(overlapping, max_iter=3)
    assert res.n_iter == 3 and res.status.name == "MAX_ITER"
    with pytest.warns(match="max_iter"):
        res = run(overlapping, max_iter=0)
    assert res.n_iter == 0 and len(res.history) >= 8
    with pytest.warns(match="callback"):
        res = run(overlapping, patience=10**9, callback=lambda progress: progress.elapsed > 0.3)
    assert np.isfinite(res.objective) and res.sizes.sum() == 60


@pytest.mark.jit
def test_known_labels_and_given_starts(overlapping):
    y = np.full(60, -1)
    y[:12] = np.arange(12) % K
    res = run(overlapping, known_labels=y)
    np.testing.assert_array_equal(res.labels[:12], y[:12])
    first = run(overlapping)
    again = run(overlapping, init=first.labels, start_round=6, random_state=1)
    assert again.objective <= first.objective + 1e-9
    sizes = [6, 10, 20, 24]
    res = run(overlapping, target_sizes=sizes, balance=0.1)
    np.testing.assert_allclose(res.sizes, sizes, atol=1.5)


@pytest.mark.parametrize(("n", "k"), [(4, 3), (5, 5), (7, 1), (2, 2), (9, 2)])
def test_few_points(n, k):
    X = np.random.default_rng(0).standard_normal((n, 2))
    res = run(X, k)
    assert res.sizes.sum() == n and res.sizes.min() >= 1


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        ({"population": 1}, ValueError),
        ({"patience": 0}, ValueError),
        ({"patience": 2.5}, TypeError),
    ],
)
def test_bad_parameters(overlapping, bad, error):
    with pytest.raises(error, match=next(iter(bad))):
        run(overlapping, **bad)


@pytest.mark.jit
def test_estimator(overlapping):
    model = fastmmc.UMCRLS(K, method="memetic", sigma=1.5, lam=0.1, random_state=0)
    labels = model.fit_predict(overlapping)
    np.testing.assert_array_equal(labels, run(overlapping).labels)
    assert model.objectives_.size == 1


@pytest.mark.slow
def test_digits(digits):
    X, y = digits
    F = fastmmc.factor(X)
    runs = [fastmmc.umc_rls(F, 10, method="memetic", random_state=seed) for seed in range(10)]
    assert np.median([adjusted_rand_score(y, res.labels) for res in runs]) > 0.85
    rule = {"balance": 0.4, "polish": True}
    truth = fastmmc.umc_rls(F, 10, init=y, method="stochastic", random_state=0, **rule)
    assert np.mean([res.objective <= truth.objective for res in runs]) >= 0.9
