"""The state of groups: its caches, its descents by moves and swaps, and Ward's tree."""

from itertools import product

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import fastmmc
from fastmmc.data.sizes import SizeRule, are_within, size_rule
from fastmmc.rls.engine import _loops_groups as loops
from fastmmc.rls.engine.group_search import plus_plus
from fastmmc.rls.engine.groups import Groups, cost_of, fitted
from tests.rls import naive


def hat(n, seed=0, lam=0.25, d=2):
    X = np.random.default_rng(seed).standard_normal((n, d))
    return fastmmc.factor(X, lam=lam, rank=None).R


def cells(n, g, seed):
    """Return the hat matrix of n points, g groups of them, and the group of each point."""
    R = hat(n, seed)
    rng = np.random.default_rng(seed)
    members = rng.permutation(np.concatenate((np.arange(g), rng.integers(0, g, n - g))))
    return R, Groups(R).merge(members), members


def cost(R, labels, k, free):
    """The cost of labels of points."""
    masses = np.ones(len(R), dtype=int)
    return naive.linked_cost(R, masses, labels, k, np.zeros_like(R), free)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("free", [True, False])
def test_caches_equal_recomputed_after_a_descent(free, dtype):
    R = hat(80).astype(dtype)
    points, rule = Groups(R), size_rule(80, 4)
    labels = np.random.default_rng(1).integers(0, 4, 80)
    state = points.state(labels, rule, free)
    assert cost_of(state) == pytest.approx(cost(R, labels, 4, free), rel=1e-6)
    points.settle(state)
    fresh = points.state(state.labels.astype(np.int64), rule, free)
    np.testing.assert_allclose(state.sums, fresh.sums, atol=1e-9)
    np.testing.assert_allclose(state.within, fresh.within, atol=1e-9)
    np.testing.assert_array_equal(state.counts, fresh.counts)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("free", [True, False])
@pytest.mark.parametrize("dense", [True, False])
def test_the_descent_is_the_naive_one(seed, free, dense):
    R, points, _ = cells(60, 30, seed)
    rule = SizeRule(None, np.array([6, 2, 0]), np.array([24, 60, 40]), True)
    labels = np.random.default_rng(seed).permutation(np.arange(30) % 3)
    Z = np.linalg.cholesky(points.matrix + 1e-12 * np.eye(30))
    matrix = points.matrix if dense else Z
    state = Groups(matrix, points.masses, points.movable, dense).state(labels, rule, free)
    while not loops.descend(state, None, None, 7):  # in slices
        pass
    no_links = np.zeros((30, 30))
    args = points.matrix, points.masses, labels, 3, no_links, free, rule.lower, rule.upper
    np.testing.assert_array_equal(state.labels, naive.linked_descent(*args))


@pytest.mark.parametrize("free", [True, False])
def test_a_second_descent_is_the_naive_one_though_it_looks_only_at_what_changed(free):
    _, points, _ = cells(60, 30, 5)
    rule = SizeRule(None, np.array([6, 2, 0]), np.array([24, 60, 40]), True)
    labels = np.random.default_rng(0).permutation(np.arange(30) % 3)
    state = points.state(labels, rule, free)
    assert points.settle(state) > 0
    others = state.labels.astype(np.int64)
    others[[4, 5, 6]] = (others[[4, 5, 6]] + 1) % 3
    loops.relabel(state, others)
    fresh = points.state(others, rule, free)
    np.testing.assert_allclose(state.sums, fresh.sums, atol=1e-9)
    np.testing.assert_allclose(state.within, fresh.within, atol=1e-9)
    points.settle(state)
    no_links = np.zeros((30, 30))
    args = points.matrix, points.masses, others, 3, no_links, free, rule.lower, rule.upper
    np.testing.assert_array_equal(state.labels, naive.linked_descent(*args))


@pytest.mark.parametrize("free", [True, False])
def test_labels_of_parts_cost_the_same_with_all_groups(free):
    _, points, _ = cells(60, 30, 2)
    few, parts = points.coarse(12)
    assert few.n == 12 and parts.shape == (30,)
    np.testing.assert_array_equal(few.masses, np.bincount(parts, points.masses))
    labels, rule = np.arange(12) % 3, size_rule(60, 3)
    with_all = cost_of(points.state(labels[parts], rule, free))
    assert cost_of(few.state(labels, rule, free)) == pytest.approx(with_all)
    same, everyone = points.coarse(30)
    assert same is points and np.array_equal(everyone, np.arange(30))


def test_of_equal_moves_the_first_is_made():
    """Empty clusters are all alike to a point that founds one."""
    R, rule = hat(20), SizeRule(None, np.zeros(4, dtype=int), np.full(4, 20), True)
    labels = np.zeros(20, dtype=int)
    state = Groups(R).state(labels, rule)
    loops.descend(state, None, None, 1)  # looks at one point
    np.testing.assert_array_equal(state.labels, [1, *labels[1:]])


@pytest.mark.parametrize("free", [True, False])
def test_groups_move_as_their_points_do(free):
    R, points, members = cells(40, 12, 0)
    labels = np.random.default_rng(1).integers(0, 3, points.n)
    state = points.state(labels, size_rule(40, 3), free)
    assert cost_of(state) == pytest.approx(cost(R, labels[members], 3, free))
    points.settle(state)
    assert state.pos[loops.MOVES] > 0
    assert cost_of(state) == pytest.approx(cost(R, state.labels[members], 3, free))
    np.testing.assert_array_equal(state.counts, np.bincount(state.labels[members], minlength=3))


def test_the_error_of_groups_is_the_mean_that_the_formula_says():
    R, points, members = cells(40, 12, 0)
    labels, wanted = np.arange(12) % 3, 0.0
    for h in range(3):
        e = (labels == h).astype(float)
        h_ii = points.diagonal / points.masses
        fits = points.matrix @ e / points.masses
        left_out = (fits - h_ii * e) / (1 - h_ii)
        wanted += points.masses @ (left_out - e) ** 2 / (points.masses @ e) / 3
    state = points.state(labels, size_rule(40, 3, bounded=False))
    assert points.error(state) == pytest.approx(wanted)


def swapped(points, labels, rule, free, budget=100):
    """Return the state after all swaps, in slices of so many operations: one group each."""
    state = points.state(labels, rule, free)
    while not loops.swap(state, points.least, budget):
        pass
    return state


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("free", [True, False])
def test_swaps_are_the_naive_ones(seed, free):
    R = hat(40, seed)
    labels = np.random.default_rng(seed).permutation(np.repeat(np.arange(5), [15, 12, 8, 4, 1]))
    rule = size_rule(40, 6, min_size=0)  # one cluster is a point, the last one empty
    state = swapped(Groups(R), labels, rule, free)
    args = R, np.ones(40, dtype=int), labels, 6, free, rule.lower, rule.upper
    np.testing.assert_array_equal(state.labels, naive.group_swaps(*args))
    np.testing.assert_array_equal(np.bincount(state.labels), [15, 12, 8, 4, 1])
    assert cost_of(state) == pytest.approx(cost(R, state.labels, 6, free))
    assert state.pos[loops.MOVES] > 0


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("free", [True, False])
def test_swaps_of_masses_are_the_naive_ones(seed, free):
    R, points, _ = cells(70, 30, seed)
    labels = np.random.default_rng(seed).permutation(np.arange(30) % 3)
    sizes = np.bincount(labels, points.masses)
    rule = SizeRule(None, (sizes - 1).astype(int), (sizes + 2).astype(int), True)
    state = swapped(points, labels, rule, free)
    args = points.matrix, points.masses, labels, 3, free, rule.lower, rule.upper
    np.testing.assert_array_equal(state.labels, naive.group_swaps(*args))
    assert (state.counts >= rule.lower).all() and (state.counts <= rule.upper).all()
    assert state.pos[loops.MOVES] > 0


@pytest.mark.parametrize("seed", range(2))
def test_swaps_in_one_slice_are_the_naive_ones(seed):
    """What each cluster offers at most is brought up to date after a swap, not only at first."""
    R, labels = hat(40, seed, d=4), np.random.default_rng(seed).permutation(np.arange(40) % 13)
    rule = size_rule(40, 13, balance=0)
    state = swapped(Groups(R), labels, rule, True, budget=2**40)
    args = R, np.ones(40, dtype=int), labels, 13, True, rule.lower, rule.upper
    np.testing.assert_array_equal(state.labels, naive.group_swaps(*args))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("free", [True, False])
def test_swaps_of_groups_that_repel_each_other_are_the_naive_ones(seed, free):
    """Negative entries make partners of groups that neither gains much by moving."""
    A = np.random.default_rng(seed).standard_normal((30, 30))
    A = (A + A.T) / 2
    np.fill_diagonal(A, 0.0)
    labels = np.random.default_rng(seed).permutation(np.arange(30) % 10)
    rule = size_rule(30, 10, balance=0)
    state = swapped(Groups(A), labels, rule, free)
    args = A, np.ones(30, dtype=int), labels, 10, free, rule.lower, rule.upper
    np.testing.assert_array_equal(state.labels, naive.group_swaps(*args))


def test_a_swap_of_unequal_masses_may_gain_by_the_sizes_alone():
    """No group fits the other cluster better, but a light one leaves the good cluster smaller."""
    masses, labels = np.array([4, 3, 1, 2, 8]), np.array([0, 0, 1, 1, 1])
    points = Groups(np.diag([4.0, 0, 0, 0, 0]), masses, np.ones(5, dtype=bool))
    rule = SizeRule(None, np.zeros(2, dtype=int), np.full(2, 18), True)
    state = swapped(points, labels, rule, True)
    np.testing.assert_array_equal(state.labels, [0, 1, 0, 1, 1])
    assert cost_of(state) == pytest.approx(1 - 4 / 5 + 1)


def test_swaps_of_known_labels_are_left_out():
    R = hat(40)
    movable = np.arange(40) % 3 > 0
    points = Groups(R, movable=movable)
    labels = np.arange(40) % 4
    rule = size_rule(40, 4, balance=0)
    before = cost_of(points.state(labels, rule))
    state = swapped(points, labels, rule, True)
    np.testing.assert_array_equal(state.labels[~movable], labels[~movable])
    for i, j in product(np.flatnonzero(movable), repeat=2):
        other = state.labels.astype(int)
        other[[i, j]] = other[[j, i]]
        assert cost(R, other, 4, True) >= cost_of(state) - 1e-11
    assert cost_of(state) < before


def test_ward_merges_what_adds_least():
    R = hat(16)
    for k in (2, 3, 7, 16):
        wanted = naive.cheapest_merges(R, k)
        assert adjusted_rand_score(wanted, Groups(R).cut(k)) == 1.0


def descend_rows(state):
    """Descend until no move within the bounds lowers the cost; return the last changes found."""
    points = np.arange(state.labels.size)
    changes, target = np.empty(points.size), np.empty_like(points)
    while loops.descend_rows(state, points, state.matrix @ state.sums.T, changes, target):
        pass
    return changes, target


@pytest.mark.parametrize("free", [True, False])
def test_blocks_of_rows_descend_on_the_same_cost(free):
    X = np.random.default_rng(0).standard_normal((80, 2))
    F = fastmmc.factor(X, rank=30, random_state=0)
    R = F.Z @ F.Z.T
    rule, labels = size_rule(80, 3, balance=0.5), np.random.default_rng(0).permutation(80) % 3
    masses, movable = np.ones(80, dtype=np.int64), np.ones(80, dtype=bool)
    state = Groups(F.Z, masses, movable, False).state(labels, rule, free)
    changes, target = descend_rows(state)
    labels = state.labels.astype(int)
    for i, (change, to) in enumerate(zip(changes, target, strict=True)):
        moved = [np.where(np.arange(80) == i, h, labels) for h in range(3)]
        costs = [np.inf if h == labels[i] else cost(R, moved[h], 3, free) for h in range(3)]
        assert to == np.argmin(costs)
        assert change == pytest.approx(min(costs) - cost(R, labels, 3, free), abs=1e-9)
    assert cost_of(state) == pytest.approx(cost(R, state.labels, 3, free))
    np.testing.assert_allclose(state.within, np.sum(state.sums**2, axis=1), atol=1e-10)
    args = R, masses, state.labels.astype(int), 3, np.zeros_like(R), free, rule.lower, rule.upper
    np.testing.assert_array_equal(naive.linked_descent(*args, 1e-10), state.labels)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("free", [True, False])
@pytest.mark.parametrize("bounds", [(9, 80), (0, 11)])
def test_blocks_of_rows_use_sizes_up_to_their_bounds(bounds, free, seed):
    """Where no move within the bounds helps, some clusters have come to lie on them."""
    F = fastmmc.factor(np.random.default_rng(seed).standard_normal((80, 2)), rank=30, lam=0.05)
    R, k, masses = F.Z @ F.Z.T, 8, np.ones(80, dtype=np.int64)
    rule = SizeRule(None, *(np.full(k, bound) for bound in bounds), True)
    labels = np.random.default_rng(seed).permutation(80) % k
    state = Groups(F.Z, masses, np.ones(80, dtype=bool), False).state(labels, rule, free)
    descend_rows(state)
    bounded = rule.lower, rule.upper
    assert are_within(state.counts, *bounded) and np.isin(bounds, state.counts).any()
    args = R, masses, state.labels.astype(int), k, np.zeros_like(R), free, rule.lower, rule.upper
    np.testing.assert_array_equal(naive.linked_descent(*args, 1e-10), state.labels)


@pytest.mark.parametrize("masses", [None, 3])
def test_rows_are_brought_within_bounds_as_their_matrix_is(masses):
    rng, k = np.random.default_rng(0), 5
    F = fastmmc.factor(rng.standard_normal((90, 2)), rank=30, random_state=0)
    units = np.ones(90, dtype=np.int64) if masses is None else rng.integers(1, 1 + masses, 90)
    Z, total = np.sqrt(units)[:, None] * F.Z, int(units.sum())
    rule = size_rule(total, k, balance=0.2)
    labels = np.minimum(rng.integers(0, 3 * k, 90), k - 1)
    movable = rng.random(90) < 0.9
    kinds = Groups(Z, units, movable, False), Groups(Z @ Z.T, units, movable)
    found = [fitted(kind.state(labels, rule)) for kind in kinds]
    np.testing.assert_array_equal(*found)
    sizes = np.bincount(found[0], units, k)
    before = np.bincount(labels, units, k)
    assert are_within(sizes, rule.lower, rule.upper)
    assert not are_within(before, rule.lower, rule.upper)
    assert np.array_equal(found[0][~movable], labels[~movable])


@pytest.mark.parametrize("free", [True, False])
def test_many_scales_are_no_worse_than_one(free):
    R, rule = hat(60), size_rule(60, 4, balance=0.3)
    points = Groups(R)
    labels = np.random.default_rng(0).permutation(np.arange(60) % 4)
    ends, value, made = points.refine(labels, rule, free)
    assert value == pytest.approx(cost(R, ends, 4, free))
    assert value <= points.descend(labels, rule, free)[1] + 1e-12 and made > 0
    assert are_within(np.bincount(ends, minlength=4), rule.lower, rule.upper)


@pytest.mark.parametrize("k", [1, 2, 7])
def test_seeds_are_drawn_as_naively(k):
    _, of_cells, _ = cells(60, 30, seed=k)
    labels = plus_plus(of_cells, k, np.random.default_rng(k))
    rng = np.random.default_rng(k)
    first = rng.choice(30, p=of_cells.masses / of_cells.masses.sum())
    draws = rng.random((k - 1, 2 + int(np.log(k))))
    expected = naive.seed_clusters(of_cells.matrix, of_cells.masses, first, draws)
    np.testing.assert_array_equal(labels, expected)
    assert np.unique(labels).size == k
