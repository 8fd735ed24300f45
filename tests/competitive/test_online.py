"""WTA, FSCL, RPCL, C-RPCL and O-LCVQE against their twins, and what they reduce to."""

from types import SimpleNamespace

import numpy as np
import pytest

from fastmmc.competitive import _loops as loops
from fastmmc.competitive._loops import Rule
from fastmmc.competitive.online import (
    least_share,
    list_partners,
    present,
    take_links,
    used_prototypes,
)
from fastmmc.data.links import Links
from tests.competitive import naive

NO_PAIRS = np.empty((0, 2), dtype=np.int64)


def random_case(seed, n=30, d=3, k=4, n_pairs=25):
    """Points, prototypes, an order, and pairs of which some repeat an object."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    centers = rng.standard_normal((k, d))
    pairs = [rng.choice(n, 2, replace=False) for _ in range(2 * n_pairs)]
    cannot = np.array(pairs[:n_pairs]).reshape(-1, 2)
    must = np.array(pairs[n_pairs:]).reshape(-1, 2)
    order = np.concatenate([rng.permutation(n) for _ in range(3)])
    return X, centers, order, cannot, must


def run(rule, X, centers, order, cannot=NO_PAIRS, must=NO_PAIRS, unseen=False):
    prototypes = SimpleNamespace(centers=centers.copy(), wins=np.ones(len(centers)))
    partners = list_partners(Links(must, cannot), X)
    _, links = take_links(X, partners, np.arange(len(X)), unseen)
    _, total = present(X, order, order, prototypes.centers, prototypes.wins, links, rule)
    return prototypes, total


def decay(schedule):
    return 0.0 if schedule == "constant" else 0.05


def check(prototypes, learner):
    np.testing.assert_allclose(prototypes.centers, learner.centers, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(prototypes.wins, learner.wins)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("schedule", ["constant", "robbins-monro"])
def test_wta(seed, schedule):
    X, centers, order, _, _ = random_case(seed)
    learner = naive.Learner(centers, 0.05, robbins_monro=schedule != "constant")
    naive.wta(X, order, learner)
    check(run(Rule(False, 0.05, decay=decay(schedule)), X, centers, order)[0], learner)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("beta", [0.0, 0.002, 0.02])
@pytest.mark.parametrize("schedule", ["constant", "robbins-monro"])
@pytest.mark.parametrize("k", [1, 2, 4])
def test_fscl_and_rpcl(seed, beta, schedule, k):
    X, centers, order, _, _ = random_case(seed, k=k)
    learner = naive.Learner(centers, 0.05, beta, schedule != "constant")
    naive.rpcl(X, order, learner)
    prototypes, _ = run(Rule(True, 0.05, beta, decay(schedule)), X, centers, order)
    check(prototypes, learner)
    assert prototypes.wins.sum() == k + order.size


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("kinds", ["cannot", "must", "both"])
@pytest.mark.parametrize("unseen", [False, True])
def test_c_rpcl(seed, kinds, unseen):
    X, centers, order, cannot, must = random_case(seed)
    cannot = cannot if kinds != "must" else NO_PAIRS
    must = must if kinds != "cannot" else NO_PAIRS
    learner = naive.Learner(centers, 0.05, 0.002)
    naive.c_rpcl(X, order, learner, cannot, must, set() if unseen else None)
    prototypes, _ = run(Rule(True, 0.05, 0.002), X, centers, order, cannot, must, unseen)
    check(prototypes, learner)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("kinds", ["cannot", "must", "both"])
@pytest.mark.parametrize("unseen", [False, True])
@pytest.mark.parametrize("once", [False, True])
def test_o_lcvqe(seed, kinds, unseen, once):
    X, centers, order, cannot, must = random_case(seed)
    cannot = cannot if kinds != "must" else NO_PAIRS
    must = must if kinds != "cannot" else NO_PAIRS
    learner = naive.Learner(centers, 0.05, 0.002)
    left = naive.o_lcvqe(X, order, learner, cannot, must, set() if unseen else None, once)
    rule = Rule(False, 0.05, 0.002, once=once)
    check(run(rule, X, centers, order, cannot, must, unseen)[0], learner)
    assert left == 0  # moving an object is never dearer, so the loop has no branch for leaving it


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_constraints_with_few_prototypes(k, weighted):
    X, centers, order, cannot, must = random_case(0, k=k)
    learner = naive.Learner(centers, 0.05, 0.002)
    (naive.c_rpcl if weighted else naive.o_lcvqe)(X, order, learner, cannot, must)
    check(run(Rule(weighted, 0.05, 0.002, once=False), X, centers, order, cannot, must)[0], learner)


def test_no_forbidden_prototype_learns():
    """The winners of all of an object's cannot-linked partners do not learn it."""
    rng = np.random.default_rng(0)
    n_refused = 0
    for _ in range(200):
        X, centers = rng.standard_normal((3, 2)), rng.standard_normal((3, 2))
        cannot = np.array([[0, 1], [0, 2]])
        forbidden = {int(np.argmin(naive.distances(X[o], centers))) for o in (1, 2)}
        prototypes, _ = run(Rule(True, 0.1, 0.01), X, centers, np.array([0]), cannot)
        learned = int(np.flatnonzero(prototypes.wins > 1)[0])
        assert learned not in forbidden
        n_refused += np.argmin(naive.distances(X[0], centers)) in forbidden
    assert n_refused > 20  # so that the case is met at all


def test_must_linked_objects_come_together():
    """Each of two objects is drawn into the cluster of the other; a vote of three decides."""
    X = np.array([[-1.0, 0.0], [0.9, 0.0], [1.0, 0.0], [1.1, 0.0]])
    centers = np.array([[-1.0, 0.0], [1.0, 0.0]])
    must = np.array([[0, 1], [0, 2], [0, 3]])
    prototypes, _ = run(Rule(True, 0.1, 0.01), X, centers, np.array([0]), must=must)
    assert prototypes.wins.tolist() == [1, 2]
    assert prototypes.centers[1, 0] == pytest.approx(0.8)  # learned
    assert prototypes.centers[0, 0] == -1.0  # lies on the object: nothing to be driven away by


@pytest.mark.parametrize("weighted", [True, False])
def test_constraints_of_others_change_nothing(weighted):
    """Objects without constraints are learned bit for bit as if there were none."""
    X, centers, _, cannot, must = random_case(3, n=60)
    cannot, must = 30 + cannot % 30, 30 + must % 30
    order = np.random.default_rng(0).permutation(30)
    rule = Rule(weighted, 0.05, 0.002 if weighted else 0.0)
    alone, _ = run(rule, X, centers, order)
    beside, _ = run(rule, X, centers, order, cannot, must)
    np.testing.assert_array_equal(alone.centers, beside.centers)


def test_slices_and_types_do_not_matter():
    X, centers, order, cannot, must = random_case(1)
    rule = Rule(True, 0.05, 0.002)
    whole, total = run(rule, X, centers, order, cannot, must)
    found, wins = centers.copy(), np.ones(len(centers))
    partners = list_partners(Links(must, cannot), X)
    _, links = take_links(X, partners, np.arange(len(X)), False)
    parts = 0.0
    for i in order:
        block = X[i : i + 1].copy()
        given = block, np.array([0]), np.array([i])
        _, parts = present(*given, found, wins, links, rule, parts)
    np.testing.assert_array_equal(found, whole.centers)
    assert parts == total
    single, _ = run(rule, X.astype(np.float32), centers, order, cannot, must)
    np.testing.assert_allclose(single.centers, whole.centers, atol=1e-5)


def test_the_sum_is_that_of_distances_to_the_nearest_prototype():
    X, centers, _, _, _ = random_case(2)
    _, total = run(Rule(True, 1e-12, 0.0), X, centers, np.arange(30))
    nearest = sum(naive.distances(x, centers).min() for x in X)
    assert total == pytest.approx(nearest)


@pytest.mark.jit
def test_a_rival_that_was_driven_away_stays_finite():
    X = np.ones((10, 2))
    centers = np.array([[1.0, 1.0], [2.0, 2.0]])
    order = np.zeros(200_000, dtype=np.int64)
    prototypes, total = run(Rule(True, 0.5, 0.4), X, centers, order)
    assert np.isfinite(prototypes.centers).all() and np.isfinite(total)
    assert np.abs(prototypes.centers[1]).max() > 1e40


def test_the_share_that_prototypes_are_kept_for():
    assert least_share(None, "wta", 3) == 0.0
    assert least_share(None, "rpcl", 3) == 0.01
    assert least_share(None, "rpcl", 100) == 0.0025
    assert used_prototypes(np.array([60, 0, 40]), 0.01).tolist() == [0, 2]
    assert used_prototypes(np.array([60, 0, 40]), 0.99).tolist() == [0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_of_dropped_prototypes_alone_are_assigned_again(dtype, monkeypatch):
    from fastmmc.competitive import space

    rng = np.random.default_rng(0)
    X, centers = rng.standard_normal((900, 3)).astype(dtype), rng.standard_normal((12, 3))
    labels, _ = space.assign_rows(X, centers)
    kept = np.flatnonzero(np.arange(12) % 4)
    expected = space.assign_rows(X, centers[kept])
    asked, assign = [], space.assign_rows
    monkeypatch.setattr(space, "assign_rows", lambda rows, c: asked.append(rows) or assign(rows, c))
    found = space.assign_again(X, centers, labels, kept)
    np.testing.assert_array_equal(found[0], expected[0])
    assert found[1] == pytest.approx(expected[1], rel=1e-12)
    assert len(asked[0]) == np.isin(labels, kept, invert=True).sum()


def test_linked_objects_that_lie_at_their_prototypes_are_left_there():
    """Keeping the must-link violated costs least then, and both prototypes learn both objects."""
    X = np.array([[0.0, 0.0], [4.0, 0.0]])
    must, order = np.array([[0, 1]]), np.array([0])
    learner = naive.Learner(X, 0.05, 0.002)
    naive.o_lcvqe(X, order, learner, NO_PAIRS, must)
    prototypes, _ = run(Rule(False, 0.05, 0.002, once=False), X, X, order, must=must)
    check(prototypes, learner)
    assert prototypes.centers[1, 0] < 4.0  # it learned from the object as well


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize("memory_size", [3, 20])
def test_partners_are_given_ones_and_those_that_labels_imply(memory_size, equal, seed):
    rng = np.random.default_rng(seed)
    known = rng.integers(-1, 3, 12)
    own = np.arange(-1, 12)
    given = [np.flatnonzero((rng.random(12) < 0.2) & (np.arange(12) < i)) for i in own]
    given = [g[g >= i - memory_size] for g, i in zip(given, own, strict=True)]
    wanted = []
    for i, partners in zip(own, given, strict=True):
        if i >= 0 and known[i] >= 0:
            earlier = range(max(0, i - memory_size), i)
            alike = [o for o in earlier if known[o] >= 0 and (known[o] == known[i]) == equal]
            partners = sorted({*partners, *alike})
        wanted.append(list(partners))
    given_start = np.concatenate(([0], np.cumsum([len(g) for g in given])))
    args = known, own, memory_size, equal, given_start, np.concatenate(given)
    start, found = loops.list_partners(*args)
    assert start[-1] == found.size == sum(map(len, wanted))
    for i, partners in enumerate(wanted):
        assert found[start[i] : start[i + 1]].tolist() == partners


def test_the_rival_is_never_the_winner():
    """Also where all other distances are infinite."""
    inf = np.inf
    for values, left_out, rival in (
        ([5.0, 2.0, 7.0], 1, 0),
        ([2.0, 7.0, 5.0], 0, 2),
        ([2.0, inf, inf], 0, 1),
        ([inf, 2.0], 1, 0),
        ([2.0], 0, -1),
    ):
        distances = np.array(values)
        assert loops.smallest_but(distances, left_out) == rival
        np.testing.assert_array_equal(distances, values)
