"""Must-links and cannot-links in UMC-RLS: the loops, exact answers on few points, what is kept."""

from itertools import product

import numpy as np
import pytest
from scipy.sparse import coo_array
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import fastmmc
from fastmmc.data.links import Links, check_links_of_clusters
from fastmmc.data.sizes import SizeRule, fit_sizes, random_labels_of_masses
from fastmmc.rls import _loops_claims as claims
from fastmmc.rls import planning
from fastmmc.rls.engine import _loops_groups as loops
from fastmmc.rls.engine import coarse
from fastmmc.rls.engine._loops_trees import merge_groups
from fastmmc.rls.engine.descents import descent
from fastmmc.rls.engine.groups import Groups
from fastmmc.rls.engine.linked import Merging, move_groups
from tests.rls import naive
from tests.rls.test_claims import new_state

K = 3
SIZES = ("equal", "free")


def some_links(y, seed, count):
    """Return so many true must-links and cannot-links."""
    pairs = np.random.default_rng(seed).integers(y.size, size=(40 * count, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    equal = y[pairs[:, 0]] == y[pairs[:, 1]]
    return {"must_link": pairs[equal][:count], "cannot_link": pairs[~equal][:count]}


def broken(labels, must_link=(), cannot_link=()):
    must, cannot = (np.reshape(pairs, (-1, 2)) for pairs in (must_link, cannot_link))
    return Links(must.astype(int), cannot.astype(int)).n_violations(labels)


class Problem:
    """Groups of points, with links between them that a labelling at random keeps."""

    def __init__(self, seed, hard=True, free=True):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((26, 2))
        self.R = fastmmc.factor(X, lam=0.25, rank=None).R
        self.Z = np.linalg.cholesky(self.R + 1e-12 * np.eye(26))
        self.y = rng.integers(0, K, 26)
        links = some_links(self.y, seed, 8)
        links = check_links_of_clusters(n=26, k=K, **links)
        self.merging = Merging.of(links, 26, None, None if hard else 0.3)
        self.g, self.free = self.merging.n_groups, free
        self.M = (self.merging.members[:, None] == np.arange(self.g)).astype(float)
        self.G = self.M.T @ self.R @ self.M
        self.pairs = self.merging.pairs(1.0)
        self.C = self.merging.priced.toarray()
        if hard:
            self.C = np.where(self.C > 0, 1e9, 0.0)
        self.labels = rng.integers(0, K, self.g)
        self.rule = SizeRule(None, np.full(K, 4), np.full(K, 13), True)

    def state(self, labels, dense=True):
        matrix = self.G if dense else self.M.T @ self.Z
        groups = Groups(matrix, self.merging.masses, np.ones(self.g, dtype=bool), dense)
        return groups.state(labels, self.rule, self.free)

    @property
    def args(self):
        return self.G, self.merging.masses, self.labels, K, self.C, self.free


def test_merged_points_have_the_sums_of_the_matrix():
    problem = Problem(0)
    scales = np.random.default_rng(0).random(26)
    out = np.zeros((problem.g, problem.g))
    merge_groups(problem.R, problem.merging.members, scales, out)
    M = problem.M * scales[:, None]
    np.testing.assert_allclose(out, M.T @ problem.R @ M, atol=1e-12)
    np.testing.assert_array_equal(problem.merging.masses, problem.M.sum(axis=0))


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("free", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_the_descent_is_the_naive_one(seed, free, dense):
    problem = Problem(seed, hard=seed % 2 == 0, free=free)
    state = problem.state(problem.labels, dense)
    chain = np.empty(problem.g, dtype=np.int64)
    while not loops.descend(state, problem.pairs, chain, 50):  # in slices
        pass
    rule = problem.rule
    wanted = naive.linked_descent(*problem.args, rule.lower, rule.upper)
    np.testing.assert_array_equal(state.labels, wanted)
    fresh = problem.state(state.labels.astype(np.int64), dense)
    for name in ("sums", "within", "counts"):
        np.testing.assert_allclose(getattr(state, name), getattr(fresh, name), atol=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_chains_keep_to_sizes_that_are_nearly_fixed(seed):
    problem = Problem(seed, hard=False)
    counts = naive.sizes_of(problem.labels, K, problem.merging.masses)
    problem.rule = rule = SizeRule(None, counts - 1, counts + 2, True)
    state = problem.state(problem.labels)
    loops.descend(state, problem.pairs, np.empty(problem.g, dtype=np.int64), 10**9)
    wanted = naive.linked_descent(*problem.args, rule.lower, rule.upper)
    np.testing.assert_array_equal(state.labels, wanted)


@pytest.mark.parametrize("seed", range(4))
def test_pairs_are_parted_as_naively(seed):
    problem = Problem(seed)
    state = problem.state(problem.labels)
    most = 60
    left = loops.part_pairs(state, problem.pairs, most)
    price, labels = naive.part_pairs(*problem.args, most)
    assert left == price == 0.0
    np.testing.assert_array_equal(state.labels, labels)
    assert not problem.merging.together(state.labels).any()


def test_the_first_group_is_parted_from_one_that_is_known():
    pairs = loops.Pairs(np.array([0, 1, 2]), np.array([1, 0]), np.ones(2))
    points = Groups(np.eye(2), movable=np.array([True, False]))
    rule = SizeRule(None, np.zeros(2, dtype=int), np.full(2, 2), True)
    state = points.state(np.zeros(2, dtype=int), rule)
    assert loops.part_pairs(state, pairs, 5) == 0.0
    np.testing.assert_array_equal(state.labels, [1, 0])


@pytest.mark.parametrize("parting", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_groups_are_moved_as_naively(seed, parting):
    problem = Problem(seed)
    problem.rule = rule = SizeRule(None, np.array([9, 4, 4]), np.array([10, 10, 10]), True)
    problem.labels = np.where(problem.labels == 1, 2, problem.labels)
    state = problem.state(problem.labels)
    move_groups(state, problem.pairs, parting)
    wanted = naive.move_groups(*problem.args, rule.lower, rule.upper, parting)
    np.testing.assert_array_equal(state.labels, wanted)
    before, after = (
        np.count_nonzero(problem.merging.together(labels))
        for labels in (problem.labels, state.labels)
    )
    assert after <= before
    if parting:
        assert 0 < before > after
    else:
        held = rule.lower <= state.counts, state.counts <= rule.upper
        assert np.all(held)


def state_of_masses(hat, labels, masses):
    state = new_state(hat, labels, K)
    counts = naive.sizes_of(labels, K, masses)
    return state._replace(masses=masses, counts=counts)


@pytest.mark.parametrize("seed", range(3))
def test_claims_of_points_with_masses_are_the_naive_ones(hat, seed):
    rng = np.random.default_rng(seed)
    masses, labels = rng.integers(1, 6, 60), rng.integers(0, K, 60)
    total = masses.sum()
    state = state_of_masses(hat, labels, masses)
    quota = np.array([[min(total, (total + total // 2**i) // K)] * K for i in range(6)])
    floors = np.full((6, K), 2)
    while not claims.shake(state, quota, floors, 500):
        pass
    wanted = labels
    for row in quota:
        share = [size / 2 for size in row]  # of which the first round claims twice as much
        wanted = naive.shake(hat, wanted, K, 1, 0, share, 2, masses)
    np.testing.assert_array_equal(state.labels, wanted)
    np.testing.assert_array_equal(state.counts, naive.sizes_of(wanted, K, masses))


def test_the_steepest_descent_of_masses_is_the_naive_one(hat, rng):
    masses, labels = rng.integers(1, 6, 60), rng.integers(0, K, 60)
    state = state_of_masses(hat, labels, masses)
    state.lower[:], state.upper[:] = 2, 90
    while not claims.descend_steepest(state, 10**6, 500):
        pass
    wanted = naive.steepest(hat, labels, K, 2, 90, masses)
    np.testing.assert_array_equal(state.labels, wanted)


def test_the_polish_of_masses_keeps_bounds_and_leaves_no_better_move_or_swap(hat, rng):
    masses, labels = rng.integers(1, 4, 60), np.arange(60) % K
    counts = naive.sizes_of(labels, K, masses)
    rule = SizeRule(None, counts - 2, counts + 2, True)
    groups = Groups(hat, masses, np.ones(60, dtype=np.bool_))
    state = groups.state(labels, rule, free=False)
    before = naive.risk(hat, labels, K)
    for _ in descent(state, groups.least, lambda: 500):
        pass
    ends = state.labels.astype(int)
    assert naive.risk(hat, ends, K) < before
    lower, upper = state.lower, state.upper
    assert naive.within_bounds(ends, K, masses, lower, upper, range(K))
    for i, j in product(range(60), repeat=2):
        for new in (ends[i] + 1) % K, (ends[i] + 2) % K, ends[j]:
            tried = ends.copy()
            tried[i] = new
            if new == ends[j]:
                tried[j] = ends[i]
            if naive.within_bounds(tried, K, masses, lower, upper, range(K)):
                assert naive.risk(hat, tried, K) >= naive.risk(hat, ends, K) - 1e-8


def test_random_and_fitted_labels_of_masses_have_sizes_near_the_targets(rng):
    masses = rng.integers(1, 9, 300)
    rule = SizeRule(None, np.full(K, 400), np.full(K, 600), True)
    labels = random_labels_of_masses(masses, K, rng, rule)
    assert np.abs(naive.sizes_of(labels, K, masses) - masses.sum() / K).max() <= 9
    movable = np.ones(300, dtype=bool)
    labels = fit_sizes(np.zeros(300, int), rng.random((K, 300)), *rule_of(masses), movable, masses)
    sizes = naive.sizes_of(labels, K, masses)
    assert np.abs(sizes - masses.sum() / K).max() <= 0.1 * masses.sum() / K + 9


@pytest.mark.parametrize("seed", range(8))
def test_sizes_are_fitted_as_naively(seed):
    rng = np.random.default_rng(seed)
    k, n = rng.integers(2, 7), 60
    scores, movable = rng.random((k, n)).round(2), rng.random(n) < 0.9
    labels = rng.integers(0, k, n) ** 2 // k
    for masses in rng.integers(1, 9, n), np.ones(n, int):
        share, slack = masses.sum() / k, max(0.3, rng.random())
        lower, upper = (np.full(k, int(share * side)) for side in (1 - slack, 1 + slack))
        args = labels, scores, lower, upper + 1, movable
        expected = naive.fit_sizes_by_offers(*args, masses)
        np.testing.assert_array_equal(fit_sizes(*args, masses), expected)
        if masses.max() == 1:
            by_function = fit_sizes(labels, lambda h, i: scores[np.ix_(h, i)], *args[2:])
            np.testing.assert_array_equal(by_function, expected)


def rule_of(masses):
    share = masses.sum() / K
    return np.full(K, int(0.9 * share)), np.full(K, int(1.1 * share))


def least_objective(R, sizes, price, must, cannot):
    """The least objective of all labellings of a few points, all sizes within half of n / K."""
    n = len(R)
    labels = np.array(list(product(range(K), repeat=n)))
    E = (labels[:, :, None] == np.arange(K)).astype(float)
    within, counts = np.einsum("tih,ij,tjh->th", E, R, E, optimize=True), E.sum(axis=1)
    together = labels[:, cannot[:, 0]] == labels[:, cannot[:, 1]]
    allowed = (np.abs(counts - n / K) <= n / K / 2).all(axis=1)
    allowed &= (labels[:, must[:, 0]] == labels[:, must[:, 1]]).all(axis=1)
    if price is None:
        allowed &= ~together.any(axis=1)
    paid = (price or 0.0) * together.sum(axis=1)
    if sizes == "free":
        cost = np.sum(1 - within / np.maximum(counts, 1), axis=1) + paid * K / n
    else:
        cost = K * n + (4 - K) * R.sum() - 4 * (within.sum(axis=1) - paid)
    return cost[allowed].min()


@pytest.mark.jit
@pytest.mark.parametrize("price", [None, 0.05])
@pytest.mark.parametrize("sizes", ["free", "equal"])
def test_the_best_of_all_labellings_of_few_points_is_found(sizes, price):
    must = np.array([(0, 1), (1, 2)])
    cannot = np.array([(3, 0), (3, 4), (4, 5), (6, 2)])
    found = []
    for seed in range(6):
        X = np.random.default_rng(seed).standard_normal((9, 2))
        F = fastmmc.factor(X, lam=0.25, rank=None)
        res = fastmmc.umc_rls(
            F,
            K,
            method="memetic",
            sizes=sizes,
            balance=0.5,
            n_init=10,
            random_state=0,
            link_penalty=price,
            must_link=must,
            cannot_link=cannot,
        )
        least = least_objective(F.R, sizes, price, must, cannot)
        assert res.objective >= least - 1e-9
        found.append(res.objective <= least + 1e-9)
    assert sum(found) >= 5


@pytest.mark.jit
@pytest.mark.parametrize("form", [{}, {"rank": 40}, {"dtype": "float32"}], ids=str)
@pytest.mark.parametrize("sizes", SIZES)
def test_no_link_is_broken(sizes, form):
    X, y = fastmmc.datasets.load("iris")
    for share in (20, 5):
        links = some_links(y, share, y.size // share)
        res = fastmmc.umc_rls(X, K, sizes=sizes, n_init=3, random_state=0, **links, **form)
        assert broken(res.labels, **links) == res.n_violations == 0
        assert res.n_constraints == len(links["must_link"]) + len(links["cannot_link"])
        F = fastmmc.factor(X, random_state=0, **form)
        R = F.Z @ F.Z.T if "rank" in form else F.R
        objective = (naive.free_cost, naive.risk)[sizes == "equal"](R, res.labels, K)
        assert res.objective == pytest.approx(objective, rel=1e-4)


@pytest.mark.jit
@pytest.mark.parametrize("method", ["shaking", "steepest", "stochastic", "memetic"])
def test_every_search_keeps_links_and_bounds(method):
    X, y = fastmmc.datasets.load("iris")
    links = some_links(y, 1, 30)
    for bounds in ({}, {"balance": 0}, {"max_size": 52}, {"sizes": "free", "max_size": 52}):
        res = fastmmc.umc_rls(X, K, method=method, n_init=2, random_state=0, **links, **bounds)
        assert broken(res.labels, **links) == 0
        if bounds:
            assert res.sizes.max() <= (50 if "balance" in bounds else 52)
        assert (res.sizes >= res.size_bounds[:, 0]).all()
        assert (res.sizes <= res.size_bounds[:, 1]).all()


@pytest.mark.jit
@pytest.mark.parametrize("form", [{"rank": 60}, {"rank": None}], ids=str)
@pytest.mark.parametrize("sizes", SIZES)
def test_links_of_more_points_than_are_searched_hold(sizes, form, monkeypatch):
    monkeypatch.setattr(planning, "DENSE_CHOICE", 200)
    monkeypatch.setattr(coarse, "CELLS", 150)
    monkeypatch.setattr(coarse, "CELLS_PER_CLUSTER", 1)
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(5), 120)
    X = 12.0 * rng.standard_normal((5, 3))[y] + rng.standard_normal((600, 3))
    links = some_links(y, 0, 90)
    res = fastmmc.umc_rls(X, 5, sizes=sizes, n_init=2, random_state=0, **links, **form)
    assert broken(res.labels, **links) == 0
    assert adjusted_rand_score(y, res.labels) > 0.95


@pytest.mark.jit
def test_links_between_more_points_than_are_searched_hold(monkeypatch):
    monkeypatch.setattr(planning, "DENSE_CHOICE", 200)
    monkeypatch.setattr(coarse, "CELLS", 150)
    monkeypatch.setattr(coarse, "CELLS_PER_CLUSTER", 1)
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(5), 120)
    X = 12.0 * np.eye(5)[y] + rng.standard_normal((600, 5))
    told = np.where(np.arange(600) % 2, y, -1)
    res = fastmmc.umc_rls(X, 5, sizes="free", cannot_link=told, random_state=0)
    assert res.n_violations == 0 and adjusted_rand_score(y, res.labels) > 0.95


@pytest.mark.jit
def test_known_labels_and_links_go_together():
    X, y = fastmmc.datasets.load("iris")
    links = some_links(y, 2, 30)
    known = np.full(150, -1)
    known[::10] = y[::10]
    for sizes in SIZES:
        res = fastmmc.umc_rls(X, K, sizes=sizes, known_labels=known, random_state=0, **links)
        assert (res.labels == known)[known >= 0].all()
        assert broken(res.labels, **links) == 0


@pytest.mark.jit
def test_given_labels_are_repaired():
    X, y = fastmmc.datasets.load("iris")
    links = some_links(y, 2, 30)
    start = (y + np.arange(150)) % K
    for sizes in ("equal", "free"):
        res = fastmmc.umc_rls(X, K, sizes=sizes, init=start, random_state=0, **links)
        assert broken(res.labels, **links) == 0


@pytest.mark.jit
def test_a_price_may_be_paid_and_counts():
    X = np.unique(fastmmc.datasets.load("iris")[0], axis=0)
    links = {"cannot_link": [(0, 1), (1, 2), (0, 2)]}
    plain = fastmmc.umc_rls(X, 2, sizes="free", random_state=0)
    paid = fastmmc.umc_rls(X, 2, sizes="free", random_state=0, link_penalty=0.01, **links)
    assert paid.n_violations == 3
    assert paid.objective == pytest.approx(plain.objective + 3 * 0.01 * 2 / len(X))
    dear = fastmmc.umc_rls(X, 2, sizes="free", random_state=0, link_penalty=1e4, **links)
    assert dear.n_violations == 1  # three points in two clusters


@pytest.mark.jit
def test_a_run_that_is_stopped_keeps_links():
    X, y = fastmmc.datasets.load("iris")
    links = some_links(y, 2, 30)
    with pytest.warns(ConvergenceWarning):
        res = fastmmc.umc_rls(X, K, max_time=1e-3, random_state=0, **links)
    assert res.status == fastmmc.Status.TIME_LIMIT
    assert broken(res.labels, **links) == 0


@pytest.mark.filterwarnings("ignore:no point tells")
@pytest.mark.parametrize("method", [fastmmc.umc_rls, fastmmc.cluster])
@pytest.mark.parametrize(
    ("n", "k", "told"),
    [
        (8, 3, {"sample_weight": [2.0, 1, 1, 2, 3, 2, 3, 3], "min_size": 2, "max_size": 6}),
        (10, 2, {"target_sizes": [6, 4], "must_link": [(0, 1), (0, 2), (3, 4), (5, 6)]}),
        (6, 4, {"target_sizes": [0, 1, 3, 2], "min_size": 0, "cannot_link": [(2, 0), (2, 5)]}),
    ],
)
def test_labels_are_found_where_moves_one_by_one_find_none(method, n, k, told):
    """Sizes that only some ways to put groups together have."""
    free = {"sizes": "free"} if method is fastmmc.umc_rls else {}
    for seed in range(8):
        X = np.random.default_rng(seed).normal(size=(n, 2))
        res = method(X, k, random_state=0, **free, **told)
        assert broken(res.labels, told.get("must_link", ()), told.get("cannot_link", ())) == 0
        sizes = np.bincount(res.labels, told.get("sample_weight"), k)
        if "target_sizes" in told:
            np.testing.assert_array_equal(sizes, told["target_sizes"])
        else:
            assert told["min_size"] <= sizes.min() and sizes.max() <= told["max_size"]


@pytest.mark.parametrize("seed", range(5))
def test_the_nearest_feasible_labels_are_those_of_a_look_at_all(seed):
    rng = np.random.default_rng(seed)
    g, k = 6, 3
    masses, pairs = rng.integers(1, 4, g), np.array([[0, 1], [1, 2], [3, 5]])
    merging = Merging.of_groups(np.arange(g), masses, 1.0, pairs)
    lower, upper = np.full(k, masses.sum() // k - 1), np.full(k, masses.sum() // k + 2)
    labels, movable = rng.integers(k, size=g), np.arange(g) != 4
    groups = merging.groups(fastmmc.factor(rng.normal(size=(g, 2)), rank=None), movable)
    state = groups.state(labels, SizeRule(None, lower, upper, True))
    least = np.inf
    for one in map(np.array, product(range(k), repeat=g)):
        counts = np.bincount(one, masses, k)
        is_kept = one[4] == labels[4] and not merging.together(one).any()
        if is_kept and (counts >= lower).all() and (counts <= upper).all():
            least = min(least, masses[one != labels].sum())
    found = merging._nearest_feasible(labels, state)
    assert (np.inf if found is None else masses[found != labels].sum()) == least


def test_clusters_may_be_empty_where_links_leave_few_groups():
    X = np.arange(3.0)[:, None]
    res = fastmmc.umc_rls(X, 3, must_link=[(0, 1)], min_size=0, balance=2.0, random_state=0)
    assert res.labels[0] == res.labels[1]


@pytest.mark.jit
def test_links_that_no_labels_were_found_for_are_told():
    """A graph that needs four colours and has no clique of four: a wheel of five spokes."""
    X = np.random.default_rng(0).standard_normal((12, 2))
    rim = [(i, (i + 1) % 5) for i in range(5)]
    with pytest.warns(UserWarning, match=r"1 of 10 cannot-links are broken, such as that of rows"):
        res = fastmmc.umc_rls(X, K, cannot_link=[*rim, *((i, 5) for i in range(5))], random_state=0)
    assert res.n_violations == 1


@pytest.mark.jit
@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"must_link": [(0, 1), (1, 2)], "cannot_link": [(0, 2)]}, "0 and 2 are .* 0 - 1 - 2"),
        ({"cannot_link": [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]}, "rows 0, 1, 2, 3 all"),
        ({"must_link": np.zeros(20, dtype=int)}, "leaves 1 groups .* .rows 0, .*, 9, and 10 more"),
        ({"must_link": np.arange(20) // 9, "max_size": 8}, "joins 9 points .rows 0, 1, .*, 8.,"),
        ({"link_penalty": 1.0}, "there are none"),
        ({"cannot_link": [(0, 20)]}, r"objects are 0..19; got the pair \(0, 20\)"),
        (
            {"must_link": [(0, 1), (1, 2)], "known_labels": [0, -1, 1, *[-1] * 17]},
            "rows 0 and 2 have the known labels 0 and 1, but must-links .* 0 - 1 - 2",
        ),
        (
            {"must_link": [(1, 2)], "known_labels": [0, 0, 1, 1, *[-1] * 16]},
            "rows 0 and 2 have the known labels 0 and 1, .*: 0 - known as 0 - 1 - 2",
        ),
        (
            {
                "must_link": [(1, 3)],
                "cannot_link": [(0, 2)],
                "known_labels": [0, 0, 1, 1, *[-1] * 16],
            },
            "known labels 0 and 1, .*: 0 - known as 0 - 1 - 3 - known as 1 - 2",
        ),
        (
            {"cannot_link": [(3, 0), (3, 1), (3, 2)], "known_labels": [0, 1, 2, *[-1] * 17]},
            "rows 0, 1, 2, 3 all exclude each other",
        ),
        (
            {
                "must_link": [(0, 1)],
                "cannot_link": [(1, 2)],
                "known_labels": [0, -1, 0] + [-1] * 17,
            },
            "1 and 2 are cannot-linked, but .*: 1 - 0 - known as 0 - 2",
        ),
    ],
)
def test_links_that_cannot_hold_are_refused_with_their_rows(params, message):
    X = np.random.default_rng(0).standard_normal((20, 2))
    with pytest.raises(ValueError, match=message):
        fastmmc.umc_rls(X, K, random_state=0, **params)


@pytest.mark.parametrize("method", [fastmmc.umc_rls, fastmmc.cluster])
def test_links_and_known_labels_that_leave_too_few_groups_are_refused(method):
    X = np.random.default_rng(0).standard_normal((6, 2))
    pairs = [(0, 1), (2, 3), (4, 5)]
    with pytest.raises(ValueError, match="must_link and known_labels leave 2 groups .* 4 points"):
        method(X, 3, must_link=pairs, known_labels=[0, -1, 0, -1, -1, -1])
    told = {"known_labels": [0, 0, 0, 0, 0, -1], "sample_weight": np.full(6, 5.0)}
    if method is fastmmc.umc_rls:
        told |= {"sizes": "free"}
    with pytest.raises(ValueError, match="^known_labels leave 2 groups"):
        method(X, 3, **told)


HEAVY = np.repeat([2.0, 1.0], [5, 15])


@pytest.mark.parametrize(
    ("told", "message"),
    [
        (
            {"min_size": 6},
            ".rows 0, 1, 2, 3, 4, 5, 6, 7, 8., and .* more than 8 beside others of at least 12",
        ),
        ({"min_size": 7, "sample_weight": HEAVY}, "of weight 14 .rows 0.* than 11 beside .* 14"),
        ({"max_size": 9, "sample_weight": HEAVY}, "of weight 14 .rows 0, .* more than 9; raise"),
        ({"max_size": 4, "sample_weight": HEAVY / 3}, "of weight 4.66.* more than 4; raise"),
    ],
)
@pytest.mark.parametrize("method", [fastmmc.umc_rls, fastmmc.umc_rls_path, fastmmc.cluster])
def test_groups_too_large_for_the_sizes_are_refused_before_the_search(method, told, message):
    X = np.random.default_rng(0).standard_normal((20, 2))
    own = {fastmmc.umc_rls: {"sizes": "free"}, fastmmc.umc_rls_path: {"lams": [1.0], "balance": 2}}
    told = told | own.get(method, {})
    with pytest.raises(ValueError, match=f"^must_link joins 9 points {message}"):
        method(X, K, must_link=np.repeat([0, -1], [9, 11]), random_state=0, **told)


@pytest.mark.parametrize("told", [{"min_size": 4}, {"target_sizes": [3, 7]}, {"max_size": 7}])
def test_advice_on_too_large_a_group_names_what_can_be_changed(told):
    X = np.random.default_rng(0).standard_normal((10, 2))
    words = {"min_size": "lower min_size", "target_sizes": "change target_sizes"}
    words["max_size"] = "raise balance or max_size"
    message = f"^must_link joins 8 points .*; .*{words[next(iter(told))]}"
    with pytest.raises(ValueError, match=message):
        fastmmc.umc_rls(X, 2, must_link=[0] * 8 + [-1] * 2, **told)


@pytest.mark.jit
def test_odd_rings_are_refused_for_two_clusters_and_even_ones_are_not():
    X = np.random.default_rng(0).standard_normal((20, 2))
    ring = [(i, (i + 1) % 5) for i in range(5)]
    with pytest.raises(ValueError, match="ring of odd length"):
        fastmmc.umc_rls(X, 2, cannot_link=ring)
    even = [(i, (i + 1) % 6) for i in range(6)]
    res = fastmmc.umc_rls(X, 2, cannot_link=even, random_state=0)
    assert broken(res.labels, cannot_link=even) == 0


@pytest.mark.jit
def test_forms_of_links_say_the_same():
    X, y = fastmmc.datasets.load("iris")
    told = np.where(np.arange(150) % 7 == 0, y, -1)
    names = np.array(["a", "b", "c", None], dtype=object)[told]
    rows = np.flatnonzero(told >= 0)
    pairs = [(a, b) for a in rows for b in rows if a < b and y[a] == y[b]]
    matrix = coo_array((np.ones(len(pairs)), tuple(np.transpose(pairs))), shape=(150, 150))
    found = [
        fastmmc.umc_rls(X, K, must_link=one, random_state=0).labels
        for one in (told, names, pairs, matrix)
    ]
    for labels in found[1:]:
        np.testing.assert_array_equal(labels, found[0])
    other = [(a, b) for a in rows for b in rows if a < b and y[a] != y[b]]
    kept = fastmmc.umc_rls(X, K, cannot_link=told, random_state=0)
    assert broken(kept.labels, cannot_link=other) == 0
    assert kept.n_constraints == len(other)


@pytest.mark.jit
def test_the_estimator_takes_links_and_a_file_keeps_what_they_gave(tmp_path):
    X, y = fastmmc.datasets.load("iris")
    links = some_links(y, 2, 30)
    model = fastmmc.UMCRLS(n_clusters=K, random_state=0).fit(X, **links)
    assert model.n_violations_ == 0
    np.testing.assert_array_equal(
        model.labels_, fastmmc.umc_rls(X, K, random_state=0, **links).labels
    )
    model.save(tmp_path / "model.npz")
    again = fastmmc.UMCRLS.load(tmp_path / "model.npz")
    assert again.result_.n_constraints == 60
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert "n_violations  0 of 60" in str(again.result_)


@pytest.mark.jit
def test_a_path_keeps_links():
    X, y = fastmmc.datasets.load("iris")
    links = some_links(y, 2, 30)
    for res in fastmmc.umc_rls_path(X, K, [0.1, 1.0], n_init=2, random_state=0, **links):
        assert broken(res.labels, **links) == 0


@pytest.mark.jit
def test_points_with_links_are_not_left_out():
    X, y = fastmmc.datasets.load("iris")
    links = some_links(y, 2, 30)
    res = fastmmc.umc_rls(X, K, trim=15, random_state=0, **links)
    linked = np.unique(np.concatenate(list(links.values())))
    assert (res.labels[linked] >= 0).all() and np.sum(res.labels < 0) == 15
    assert broken(res.labels, **links) == 0
