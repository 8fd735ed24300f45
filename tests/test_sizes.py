from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from sklearn.datasets import make_blobs

import fastmmc
from fastmmc.data import sizes


@pytest.mark.parametrize(("n", "k"), [(150, 3), (200, 20), (7, 2), (11, 4), (5, 5)])
def test_quota_is_the_floor_of_the_exact_fraction(n, k):
    quota = sizes.shaking_quota(n, k, 21)
    for i in range(21):
        exact = Fraction(n, k) + Fraction(n, k * 2**i)
        assert (quota[i] == min(n, exact.numerator // exact.denominator)).all()
    np.testing.assert_array_equal(sizes.shaking_quota(n, k, 21, 4), quota[4:])


def test_quota_of_target_sizes():
    quota = sizes.shaking_quota(60, 3, 3, targets=np.array([10, 35, 15]))
    np.testing.assert_array_equal(quota, [[20, 60, 30], [15, 52, 22], [12, 43, 18]])


def test_quota_survives_many_rounds():
    assert (sizes.shaking_quota(10, 2, 200)[-1] == 5).all()


@pytest.mark.parametrize(("n", "k"), [(10, 3), (9, 3), (5, 5), (4, 1)])
def test_random_labels_are_balanced(n, k, rng):
    counts = np.bincount(sizes.balanced_random_labels(n, k, rng), minlength=k)
    assert counts.sum() == n and counts.max() - counts.min() <= 1


def test_random_labels_keep_targets_and_known_labels(rng):
    rule = sizes.size_rule(20, 3, target_sizes=[4, 10, 6])
    labels = sizes.balanced_random_labels(20, 3, rng, rule)
    np.testing.assert_array_equal(np.bincount(labels), [4, 10, 6])
    known = np.full(20, -1)
    known[:3] = [2, 0, 2]
    labels = sizes.balanced_random_labels(20, 3, rng, rule, known)
    np.testing.assert_array_equal(labels[:3], [2, 0, 2])
    np.testing.assert_array_equal(np.bincount(labels), [4, 10, 6])


def test_known_labels_may_exceed_a_target(rng):
    known = np.full(12, -1)
    known[:7] = 0
    labels = sizes.balanced_random_labels(12, 3, rng, known=known)
    np.testing.assert_array_equal(labels[:7], 0)
    counts = np.bincount(labels, minlength=3)
    assert counts[0] == 7 and counts.sum() == 12


def test_bounds():
    rule = sizes.size_rule(100, 4, balance=0.2, min_size=3)
    assert rule.lower.tolist() == [20] * 4 and rule.upper.tolist() == [30] * 4
    free = sizes.size_rule(100, 4)
    assert free.lower.tolist() == [1] * 4 and free.upper.tolist() == [100] * 4
    assert not free.bounded and rule.bounded
    # 0.3 * 10 is not exactly 3 in floating point; a size on the bound still counts as inside.
    assert sizes.size_rule(20, 2, balance=0.3).lower.tolist() == [7, 7]


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"balance": 0.1, "min_size": 4}, "no sizes of 3 clusters"),
        ({"min_size": 4}, "no sizes of 3 clusters"),
        ({"target_sizes": [5, 5]}, "target_sizes must be 3 integers"),
        ({"target_sizes": ["a", "b", "c"]}, "target_sizes must be 3 integers"),
        ({"target_sizes": [5.0, 3.0, 2.0]}, r"shares; got \[5.0, 3.0, 2.0\], which sum to 10"),
        ({"target_sizes": [0.5, 0.3, 0.1]}, "which sum to 0.9"),
        ({"target_sizes": [0.5, 0.7, -0.2]}, "non-negative and sum to 1"),
        ({"target_sizes": [0.5, np.nan, 0.5]}, "which sum to nan"),
        ({"target_sizes": [5, 5, 5]}, "sum to 15"),
        ({"target_sizes": [12, -1, -1]}, "non-negative"),
        (
            {"target_sizes": [8, 1, 1], "balance": 0, "max_size": 7},
            "no sizes of 3 .* none of cluster 0",
        ),
        ({"max_size": 3}, "no sizes of 3 clusters"),
        ({"max_size": 4, "known": np.zeros(10, dtype=int)}, r"10 of them .*rows 0, 1, 2, .*most 4"),
        ({"balance": 0.5, "known": np.zeros(10, dtype=int)}, "known labels fix"),
    ],
)
def test_infeasible_sizes_are_refused(kwargs, message):
    with pytest.raises(ValueError, match=message):
        sizes.size_rule(10, 3, **kwargs)


@pytest.mark.parametrize("n", [10, 11, 97])
def test_shares_are_sizes(n):
    shares = np.array([0.5, 0.3, 0.2])
    targets = sizes.size_rule(n, 3, target_sizes=shares).targets
    assert targets.sum() == n and (np.abs(targets - n * shares) < 1).all()
    same = sizes.size_rule(n, 3, target_sizes=[0.3, 0.3, 0.4 + 1e-9]).targets
    assert same.sum() == n


def test_shares_that_miss_their_sum_are_sizes_of_all_points():
    targets = sizes.size_rule(2**27, 3, target_sizes=[0.3333333] * 3).targets
    assert targets.sum() == 2**27 and np.ptp(targets) == 1


def test_least_and_greatest_size():
    rule = sizes.size_rule(100, 4, min_size=20, max_size=30)
    assert rule.bounded and rule.bounds.tolist() == [[20, 30]] * 4
    assert sizes.size_rule(100, 4, max_size=1000).upper.tolist() == [100] * 4
    sizes.check_least_and_most(10, 3, 3, 4)
    with pytest.raises(ValueError, match="max_size must be at least 4, so that 3 clusters hold"):
        sizes.check_least_and_most(10, 3, 0, 3)
    with pytest.raises(ValueError, match="min_size must be at most 3"):
        sizes.check_least_and_most(10, 3, 4, None)
    assert sizes.binary_bounds(10, 0.9, None, 1, max_size=6) == (4, 6)
    assert sizes.binary_size_bounds(11, 4, 6).tolist() == [[5, 7], [4, 6]]


RULES = {
    "differ by one": {"balance": 0},
    "greatest": {"max_size": 20},
    "both": {"min_size": 12, "max_size": 18, "polish": True},
    "shares": {"target_sizes": [0.4, 0.3, 0.2, 0.1], "balance": 0.05},
    "best round": {"max_size": 17, "keep_best": True},
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("method", ["shaking", "steepest", "stochastic", "memetic"])
@pytest.mark.parametrize("objective", ["equal", "free"])
@pytest.mark.parametrize("rank", [None, 15])
def test_bounds_hold_in_every_search(rule, method, objective, rank, overlapping):
    X = np.vstack((overlapping[:31], overlapping[31:] + 3.0))[:-1]
    options = {"sizes": objective, "rank": rank, "n_init": 2, "patience": 3, "random_state": 0}
    result = fastmmc.umc_rls(X, 4, method=method, **options, **RULES[rule])
    lower, upper = result.size_bounds.T
    assert (result.sizes >= lower).all() and (result.sizes <= upper).all()
    assert result.sizes.max() <= RULES[rule].get("max_size", 59)
    assert result.sizes.min() >= RULES[rule].get("min_size", 0)
    if rule == "differ by one":
        assert np.ptp(result.sizes) == 1 and result.at_size_bound.all()
    if rule == "shares":
        assert (np.abs(result.sizes - 59 * np.array([0.4, 0.3, 0.2, 0.1])) <= 1.75).all()


@pytest.mark.parametrize(
    "function",
    [
        fastmmc.evo_mmc,
        fastmmc.fast_evo_mmc,
        fastmmc.iter_svm,
        fastmmc.iter_svr,
        fastmmc.iter_ls_svm,
    ],
)
def test_bounds_of_two_clusters(function, overlapping):
    X = overlapping[:51]
    for rule, allowed in (
        ({"balance": 0}, [(25, 26), (25, 26)]),
        ({"balance": 0.9, "max_size": 28}, [(23, 28), (23, 28)]),
        ({"balance": 0.9, "min_size": 24}, [(24, 27), (24, 27)]),
        ({"balance": 0.05, "target_sizes": [0.3, 0.7]}, [(14, 16), (35, 37)]),
    ):
        result = function(X, random_state=0, **rule)
        assert [tuple(row) for row in result.size_bounds] == allowed
        lower, upper = result.size_bounds.T
        assert (result.sizes >= lower).all() and (result.sizes <= upper).all()
        expected = (result.sizes == lower) | (result.sizes == upper)
        np.testing.assert_array_equal(result.at_size_bound, expected)
        with pytest.raises(ValueError, match="max_size must be at least 26"):
            function(X, max_size=25)


def test_weights_have_no_bounds_of_sizes(overlapping):
    weights = np.linspace(1, 2, 60)
    result = fastmmc.iter_svr(overlapping, sample_weight=weights, random_state=0)
    assert result.size_bounds is None and result.at_size_bound is None
    with pytest.raises(ValueError, match="max_size count points"):
        fastmmc.iter_svr(overlapping, sample_weight=weights, max_size=40)


# The cases that the tests of the package k-means-constrained go through.
GRID = np.array([[0, 0], [1, 2], [1, 4], [1, 0], [4, 2], [4, 4], [4, 0], [4, 4]])
PEER_CASES = {
    "two clusters of a grid": (GRID, 2, 3, 8),
    "no real bounds": (GRID.astype(np.float64), 2, 0, 8),
    "three clusters of a grid": (np.insert(GRID, 7, [3, 0], axis=0), 3, 3, 7),
    "more clusters than blobs": ("blobs", 20, 3, 40),
    "one size": ("blobs", 10, 10, 10),
}


@pytest.mark.parametrize("objective", ["equal", "free"])
@pytest.mark.parametrize("case", PEER_CASES)
def test_cases_of_constrained_k_means(case, objective):
    X, k, least, most = PEER_CASES[case]
    if case in ("more clusters than blobs", "one size"):
        X = make_blobs(100, n_features=5, centers=10, random_state=1)[0]
    model = fastmmc.UMCRLS(k, min_size=least, max_size=most, sizes=objective, random_state=0)
    labels = model.fit_predict(X)
    counts = np.bincount(labels, minlength=k)
    assert counts.size == k and least <= counts.min() and counts.max() <= most
    np.testing.assert_array_equal(
        model.at_size_bound_, (model.size_bounds_.T == counts).any(axis=0)
    )


@pytest.mark.parametrize("n", [2, 7, 10, 33])
@pytest.mark.parametrize("balance", [0, 0.01, 0.3, 0.6, 0.99])
@pytest.mark.parametrize("min_size", [1, 3])
@pytest.mark.parametrize("off", [0, 2])
def test_binary_bounds_are_those_of_all_allowed_sizes(n, balance, min_size, off):
    targets = None if off == 0 else [n // 2 - off, n - n // 2 + off]
    centre = Fraction(n, 2) if targets is None else targets[1]
    # The least that lets the sizes of an odd number of points differ by one.
    slack = max(Fraction(str(balance)) * n / 2, Fraction(1, 2))
    allowed = [size for size in range(min_size, n - min_size + 1) if abs(size - centre) <= slack]
    if min_size > n // 2 or (targets and min(targets) < 0) or not allowed:
        with pytest.raises(ValueError, match="min_size|target_sizes|no sizes of 2 clusters"):
            sizes.binary_bounds(n, balance, targets, min_size)
    else:
        found = sizes.binary_bounds(n, balance, targets, min_size)
        assert found == (allowed[0], allowed[-1]) and all(type(size) is int for size in found)


@pytest.mark.parametrize(
    "function",
    [
        fastmmc.evo_mmc,
        fastmmc.fast_evo_mmc,
        fastmmc.iter_svm,
        fastmmc.iter_svr,
        fastmmc.iter_ls_svm,
        fastmmc.sdp_mmc,
    ],
)
def test_methods_for_two_clusters_refuse_a_balance_out_of_range(function):
    X = np.arange(10.0)[:, None]
    for balance in (-0.1, 1.0):
        with pytest.raises(ValueError, match="balance must be at least 0 and below 1"):
            function(X, balance=balance)
    with pytest.raises(TypeError, match="balance"):
        function(X, balance="0.1")


def test_larger_clusters_take_larger_targets():
    labels = np.array([0, 0, 0, 1, 2, 2])
    renamed = sizes.reorder_to_targets(labels, [1, 3, 2])
    np.testing.assert_array_equal(renamed, [1, 1, 1, 0, 2, 2])


@pytest.mark.parametrize("seed", range(5))
def test_sizes_are_fitted_by_the_cheapest_points(seed):
    rng = np.random.default_rng(seed)
    n, k = 40, 4
    scores = rng.standard_normal((k, n))
    labels = scores.argmax(axis=0)
    counts = np.bincount(labels, minlength=k)
    free = sizes.fit_sizes(labels, scores, np.zeros(k, int), np.full(k, n))
    np.testing.assert_array_equal(free, labels)
    # One cluster too large by two: the two go that lose least.
    h = counts.argmax()
    upper = np.full(k, n)
    upper[h] -= n - (counts[h] - 2)
    fitted = sizes.fit_sizes(labels, scores, np.zeros(k, int), upper)
    gone = np.flatnonzero(fitted != labels)
    second = np.where(np.arange(k)[:, None] == h, -np.inf, scores).max(axis=0)
    loss = (scores[h] - second)[labels == h]
    assert gone.size == 2
    np.testing.assert_allclose(np.sort(loss)[:2], np.sort((scores[h] - second)[gone]))
    # Exact sizes, with some labels fixed.
    movable = rng.random(n) < 0.9
    exact = sizes.proportional_sizes(np.ones(k), n)
    fitted = sizes.fit_sizes(labels, scores, exact, exact, movable)
    np.testing.assert_array_equal(np.bincount(fitted, minlength=k), exact)
    np.testing.assert_array_equal(fitted[~movable], labels[~movable])


@pytest.mark.parametrize("n", [1, 7, 10, 33])
def test_proportional_sizes(n):
    wanted = np.array([5, 0, 12, 3])
    new = sizes.proportional_sizes(wanted, n)
    assert new.sum() == n and (np.abs(new - wanted * n / 20) < 1).all()


def test_small_examples():
    assert sizes.held_sizes(np.array([1, -1, 1]), 2).tolist() == [0, 2]
    known = np.array([1, 1, 1, 1, -1, -1])
    assert sizes.with_known(np.array([2, 2, 2]), known, 6).tolist() == [1, 4, 1]
    assert sizes.binary_bounds(100, 0.1, None, 1) == (45, 55)
    assert sizes.binary_bounds(7, 0.01, None, 1) == (3, 4)
    assert sizes.shaking_quota(150, 3, 3)[:, 0].tolist() == [100, 75, 62]
    labels = sizes.balanced_random_labels(7, 3, np.random.default_rng(0))
    assert np.bincount(labels).tolist() == [3, 2, 2]
    assert sizes.proportional_sizes(np.ones(3), 7).tolist() == [3, 2, 2]
    assert sizes.proportional_sizes([50, 30, 20], 5).tolist() == [3, 1, 1]
    assert sizes.reorder_to_targets(np.array([0, 1, 1, 1]), [3, 1]).tolist() == [1, 0, 0, 0]
    scores = np.array([[3.0, 2.0, 1.0], [0.0, 0.0, 0.5]])
    fitted = sizes.fit_sizes(np.array([0, 0, 0]), scores, np.array([1, 1]), np.array([2, 2]))
    assert fitted.tolist() == [0, 0, 1]


@pytest.mark.parametrize("name", ["evo_mmc", "fast_evo_mmc", "iter_svr", "iter_svm", "iter_ls_svm"])
def test_given_sizes_of_two_clusters_are_met_exactly(name, rng):
    X = np.concatenate((rng.standard_normal((70, 2)), rng.standard_normal((70, 2)) + 2.0))
    solve = partial(getattr(fastmmc, name), X, n_init=2, random_state=0)
    for targets in ([30, 110], [30 / 140, 110 / 140]):
        result = solve(target_sizes=targets)
        assert result.sizes.tolist() == [30, 110] and result.params["balance"] == 0.0
        assert result.size_bounds.tolist() == [[30, 30], [110, 110]]
    assert solve(target_sizes=[30, 110], balance=0.1).size_bounds.tolist() == [[23, 37], [103, 117]]
    assert solve().size_bounds.tolist() == [[68, 72], [68, 72]]
