"""Tests of the cells of points, and of tangent steps."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist

import fastmmc
from fastmmc.rls.engine.coarse import coarsen, count_cells, nearest_of
from fastmmc.rls.engine.groups import scores_of, sums_of, tangent


def points(n=300, d=2, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_cells_hold_what_is_nearest_to_their_seeds(kind):
    X = points()
    cells = coarsen(kind(X), 80, 3, np.random.default_rng(0))
    assert cells.masses.size <= 80 and cells.masses.sum() == cells.n == 300
    assert_array_equal(np.bincount(cells.members), cells.masses)
    assert_array_equal(cells.members[cells.seeds], np.arange(cells.masses.size))
    far = cdist(X, X[cells.seeds])
    assert_allclose(far[np.arange(300), cells.members], far.min(axis=1))
    assert not cells.is_exact and not cells.is_plain


@pytest.mark.parametrize(
    ("d", "kind"), [(1, np.asarray), (6, np.asarray), (7, np.asarray), (40, csr_array)]
)
def test_the_nearest_center_and_its_distance(d, kind):
    X = points(200, d) + 1e4
    cells, squares = nearest_of(kind(X[:30]))(kind(X))
    exact = cdist(X, X[:30], "sqeuclidean")
    # Sparse points cannot be moved to the origin, which costs them digits.
    atol = 1e-6 if kind is csr_array else 1e-9
    assert_allclose(squares, exact.min(axis=1), rtol=1e-9, atol=atol * d)
    assert_allclose(exact[np.arange(200), cells], exact.min(axis=1), rtol=1e-9, atol=atol * d)
    assert (squares >= 0).all()


def test_cells_lie_at_the_mean_of_their_points():
    X = points()
    cells = coarsen(X, 80, 3, np.random.default_rng(0))
    means = [X[cells.members == g].mean(axis=0) for g in range(cells.masses.size)]
    assert_allclose(cells.points, means)


def test_points_are_their_own_cells_where_there_are_few():
    X = points()
    cells = coarsen(X, 300, 3, np.random.default_rng(0))
    assert cells.is_plain and cells.is_exact
    assert_array_equal(cells.members, np.arange(300))
    assert_array_equal(cells.points, X)


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_equal_points_share_a_cell(kind):
    X = np.repeat(points(20), 5, axis=0)
    cells = coarsen(kind(X), 30, 3, np.random.default_rng(0))
    assert_array_equal(cells.members, np.repeat(np.arange(20), 5))
    assert_array_equal(cells.masses, np.full(20, 5))
    assert cells.is_exact and not cells.is_plain
    # Fewer distinct points than clusters must be told apart somehow.
    assert coarsen(kind(X), 100, 21, np.random.default_rng(0)).is_plain
    assert coarsen(kind(X), 30, 21, np.random.default_rng(0)).masses.size == 30


def test_small_groups_far_away_have_cells():
    X = np.vstack([points(2000), points(5, seed=1) / 100 + 50])
    for seed in range(10):
        cells = coarsen(X, 60, 2, np.random.default_rng(seed))
        assert (cells.points[:, 0] > 25).any()


def test_the_number_of_cells_grows_smoothly():
    counts = np.array([count_cells(n, 5) for n in range(1, 20_000)])
    assert (np.diff(counts) >= 0).all() and (np.diff(counts) <= 1).all()
    assert count_cells(512_000, 5) == 2 * count_cells(2_000, 5)
    assert count_cells(10**6, 1_000) == count_cells(10**7, 1_000)
    counts = np.array([count_cells(10**6, k) for k in range(1, 3000)])
    assert (np.diff(counts) >= 0).all() and np.diff(counts).max() <= np.ceil(6 * 500 ** (1 / 8))
    assert count_cells(10**6, 3000) == 6000


def free_cost(Z, labels, k):
    E = (labels[:, None] == np.arange(k)).astype(float)
    return k - np.sum(np.sum((Z.T @ E) ** 2, axis=0) / E.sum(axis=0))


@pytest.mark.parametrize("seed", range(5))
def test_a_step_lowers_the_cost_of_free_sizes(seed):
    Z = fastmmc.factor(points(400, 3, seed), rank=40, random_state=0).Z
    labels = np.random.default_rng(seed).integers(4, size=400)
    A, c = tangent(sums_of(Z, labels, 4), np.bincount(labels))
    after = np.argmax(Z @ A.T + c, axis=1)
    assert np.unique(after).size == 4
    assert free_cost(Z, after, 4) < free_cost(Z, labels, 4)


def test_a_tangent_is_that_of_the_cost():
    Z = fastmmc.factor(points(), rank=20, random_state=0).Z
    labels = np.random.default_rng(1).integers(3, size=300)
    W, sizes = sums_of(Z, labels, 3), np.bincount(labels)
    A, c = tangent(W, sizes)
    assert_allclose(A, 2 * W / sizes[:, None])
    assert_allclose(c, -np.sum(W**2, axis=1) / sizes**2)
    scores = scores_of(Z, A, c)(np.arange(3), np.arange(300))
    assert_allclose(scores.T, Z @ A.T + c)
