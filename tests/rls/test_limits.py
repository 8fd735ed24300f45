"""Searches end, within their time and within the bounds, on data made to prevent it."""

import time
import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import fastmmc
from fastmmc import Status
from fastmmc.data.sizes import fit_sizes
from fastmmc.rls import bound, multilevel

pytestmark = pytest.mark.jit

LONG = 20.0  # seconds after which a search that should have ended counts as one that never does


def copies(n_places, n, seed=0):
    """Return n points in few places."""
    return np.random.default_rng(seed).standard_normal((n_places, 3))[np.arange(n) % n_places]


@pytest.mark.filterwarnings("ignore:no point tells the cluster of another")
def test_known_labels_that_a_sample_draws_unevenly_do_not_hang_it():
    X = np.random.default_rng(0).standard_normal((8000, 3))
    y = np.full(8000, -1)
    y[:4000] = 0
    result = fastmmc.umc_rls(
        X, 2, known_labels=y, balance=0.0, rank=20, n_init=1, random_state=1, max_time=LONG
    )
    assert result.converged and result.sizes.tolist() == [4000, 4000]
    assert (result.labels[:4000] == 0).all()


@pytest.mark.parametrize(
    "rule",
    [pytest.param({"balance": 0.1}, marks=pytest.mark.slow), {"target_sizes": [3000, 5000, 1000]}],
)
def test_a_sample_keeps_to_what_known_labels_leave_of_the_bounds(rule):
    X = np.random.default_rng(2).standard_normal((9000, 3))
    y = np.full(9000, -1)
    y[:2000], y[2000:4900], y[4900:5100] = 0, 1, 2
    result = fastmmc.umc_rls(
        X,
        3,
        known_labels=y,
        rank=20,
        n_init=2,
        random_state=0,
        max_time=LONG,
        **rule,
        sizes="equal",
    )
    assert result.converged
    assert (result.labels[y >= 0] == y[y >= 0]).all()
    slack = 3000 * rule.get("balance", 0.5)
    assert (np.abs(result.sizes - rule.get("target_sizes", 3000)) <= slack).all()


@pytest.mark.parametrize("k", [2, 6])
@pytest.mark.parametrize("method", ["shaking", "memetic"])
def test_equal_points_in_single_precision_are_not_swapped_for_ever(k, method):
    result = fastmmc.umc_rls(
        copies(9, 306),
        k,
        method=method,
        rank=60,
        dtype="float32",
        polish=True,
        balance=0.0,
        n_init=1,
        random_state=0,
        max_time=LONG,
    )
    assert result.converged and result.n_moves < 100_000


@pytest.mark.parametrize("n", [4, 306])
def test_evolution_of_equal_points_in_single_precision_ends(n):
    result = fastmmc.fast_evo_mmc(
        copies(min(9, n), n),
        rank=min(60, n),
        dtype="float32",
        balance=0.0,
        n_init=2,
        random_state=0,
        max_time=LONG,
    )
    assert result.converged


def test_the_objective_of_a_single_precision_factor_is_that_of_its_entries():
    X = np.random.default_rng(0).standard_normal((500, 3)).astype(np.float32)
    F = fastmmc.factor(X, rank=40, random_state=0)
    R = F.Z.astype(np.float64) @ F.Z.T.astype(np.float64)
    result = fastmmc.fast_evo_mmc(F, n_init=2, random_state=0)
    y = 2.0 * result.labels - 1.0
    assert result.objective == pytest.approx(500 - y @ R @ y, rel=1e-12)


def test_fitting_sizes_says_when_there_is_nothing_left_to_move():
    scores, movable = np.zeros((2, 4)), np.zeros(4, dtype=bool)
    for lower, upper in (([2, 2], [4, 4]), ([0, 0], [2, 4])):
        with pytest.raises(ValueError, match="cannot be brought"):
            fit_sizes(np.zeros(4, int), scores, np.array(lower), np.array(upper), movable)


def elapsed_of(function, *args, **kwargs):
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = function(*args, **kwargs)
    return result, time.perf_counter() - began


# The hat matrix of the memetic search has a rank of 500: more points make it as slow.
@pytest.mark.parametrize(
    "method, n",
    [
        ("shaking", 6_000),
        pytest.param("steepest", 6_000, marks=pytest.mark.slow),
        ("memetic", 60_000),
    ],
)
def test_a_hat_matrix_that_takes_too_long_is_replaced_by_a_quick_one(method, n):
    X = np.random.default_rng(0).standard_normal((n, 5))
    # Compile first: of a time limit compiling is no part.
    fastmmc.umc_rls(X[:300], 3, rank=10, method=method, n_init=1, random_state=0)
    with pytest.warns(ConvergenceWarning, match=f"too short for the hat matrix of {n} points"):
        result = fastmmc.umc_rls(X, 3, method=method, max_time=0.3, random_state=0)
    assert result.status == Status.TIME_LIMIT and result.params["rank"] <= 100
    assert np.bincount(result.labels, minlength=3).sum() == n
    assert result.predict(X[:10]).shape == (10,)


def test_the_time_limit_covers_the_whole_call():
    X = np.random.default_rng(0).standard_normal((6000, 5))
    small = X[:300]
    calls = [
        (fastmmc.umc_rls, {"k": 3}),
        (fastmmc.umc_rls, {"k": 3, "bound": True}),
        (fastmmc.umc_rls_path, {"k": 3, "lams": [0.1, 1.0]}),
        (fastmmc.evo_mmc, {}),
        (fastmmc.fast_evo_mmc, {}),
    ]
    for function, kwargs in calls:
        elapsed_of(function, small, random_state=0, **kwargs)
        result, elapsed = elapsed_of(function, X, random_state=0, max_time=0.2, **kwargs)
        assert elapsed < 3.0, f"{function.__name__}({kwargs}) took {elapsed:.1f} s"


def test_a_bound_for_which_there_is_no_time_is_left_out(monkeypatch, overlapping):
    monkeypatch.setattr(bound, "eigh_seconds", lambda n: 1e6)
    assert fastmmc.umc_rls(overlapping, 4, n_init=1, bound=True, sizes="equal").bound is not None
    with pytest.warns(ConvergenceWarning, match="no time for the bound"):
        result = fastmmc.umc_rls(
            overlapping, 4, n_init=1, bound=True, max_time=100.0, sizes="equal"
        )
    assert result.bound is None and result.gap is None


def test_a_path_returns_what_it_reached():
    X = np.random.default_rng(0).standard_normal((300, 2))
    fastmmc.umc_rls(X, 3, n_init=1, random_state=0, sizes="equal")
    with pytest.warns(ConvergenceWarning):
        path = fastmmc.umc_rls_path(
            X,
            3,
            [0.1, 0.2, 0.3],
            n_init=100_000,
            max_time=0.3,
            random_state=0,
            sizes="equal",
        )
    assert 1 <= len(path) < 3 and path[-1].status == Status.TIME_LIMIT


@pytest.fixture
def three_clusters():
    """9,000 points, more than are searched as a whole, and their clusters."""
    y = np.arange(9000) % 3
    X = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]])[y]
    return X + np.random.default_rng(0).standard_normal((9000, 2)), y


def fresh_search(monkeypatch, X, told):
    """Return a search of three clusters as a call makes it, before its first step."""
    made, kind = [], multilevel.MultilevelSearch

    def make(*args):
        made.append(args)
        return kind(*args)

    monkeypatch.setattr(multilevel, "MultilevelSearch", make)
    stop = {"callback": lambda progress: True, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fastmmc.umc_rls(X, 3, sigma=4.0, **told, **stop)
    is_random = [isinstance(arg, np.random.Generator) for arg in made[0]]
    args = zip(made[0], is_random, strict=True)
    return kind(*(np.random.default_rng(0) if random else arg for arg, random in args))


@pytest.mark.parametrize(
    ("n", "told"),
    [
        (9000, {"sizes": "free", "rank": 40}),
        (1200, {"sizes": "free"}),
        pytest.param(5200, {"sizes": "free"}, marks=pytest.mark.slow),
        (9000, {"sizes": "equal", "rank": 40}),
        (9000, {"balance": 0, "rank": 40}),
    ],
)
def test_a_search_stopped_at_once_has_the_clusters_of_a_few_points(
    monkeypatch, three_clusters, n, told
):
    X, y = (values[:n] for values in three_clusters)
    search = fresh_search(monkeypatch, X, told)
    search.finish()
    assert adjusted_rand_score(y, search.labels) > 0.9
    if "balance" in told:
        assert_array_equal(np.bincount(search.labels), n / 3)


@pytest.mark.parametrize("k", [2, 7, 30])
def test_shaking_ends_within_half_of_the_mean_size_of_its_target(digits, k):
    X, _ = digits
    result = fastmmc.umc_rls(X[:600], k, method="shaking", n_init=2, random_state=0)
    assert (np.abs(result.sizes - 600 / k) <= max(1.0, 300 / k)).all()
    low = fastmmc.umc_rls(X[:600], k, method="shaking", n_init=1, rank=50, random_state=0)
    assert (np.abs(low.sizes - 600 / k) <= max(1.0, 300 / k)).all()


@pytest.mark.filterwarnings("ignore:no point tells the cluster of another")
@pytest.mark.parametrize("method", ["shaking", "steepest", "stochastic", "memetic"])
def test_a_balance_of_zero_means_sizes_that_differ_by_one(overlapping, method):
    for k in (2, 7, 11, 59):
        result = fastmmc.umc_rls(
            overlapping, k, method=method, balance=0, n_init=1, random_state=0, max_time=LONG
        )
        assert result.converged and np.ptp(result.sizes) <= 1


def test_a_balance_of_zero_means_sizes_that_differ_by_one_in_two_clusters(overlapping):
    for function in (fastmmc.evo_mmc, fastmmc.fast_evo_mmc, fastmmc.iter_svr):
        assert np.ptp(function(overlapping[:51], balance=0, random_state=0).sizes) == 1


def test_known_labels_widen_the_bounds_of_shaking(digits):
    X, y = digits
    known = np.where(np.arange(len(y)) < 1000, 0, -1)
    result = fastmmc.umc_rls(X, 5, known_labels=known, n_init=1, random_state=0, sizes="equal")
    assert result.converged and (result.labels[:1000] == 0).all() and result.sizes.min() >= 1
