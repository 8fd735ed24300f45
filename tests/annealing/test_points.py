"""Passes over the points, Weiszfeld's steps, descent, and the parts that stand for points."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.stats import multivariate_normal

from fastmmc.annealing import _loops as kernels
from fastmmc.annealing import _loops_mixture as mixture
from fastmmc.annealing import points as points_module
from fastmmc.annealing.annealing import AnnealingSearch
from fastmmc.annealing.points import (
    Points,
    Walker,
    descend,
    descend_briefly,
    make_model,
    weiszfeld_targets,
)
from fastmmc.annealing.representatives import cut, make_cover, share_out
from fastmmc.kernels.models import row_blocks
from tests.annealing import naive


def finish(running):
    """Run a generator to its end; returns what it returns."""
    while True:
        try:
            next(running)
        except StopIteration as ended:
            return ended.value


@pytest.fixture
def points():
    rng = np.random.default_rng(0)
    return np.concatenate([rng.standard_normal((40, 3)) + 4.0 * c for c in range(3)])


@pytest.fixture
def grid():
    """Few places, so that distances tie and points lie at centers."""
    return np.random.default_rng(1).integers(0, 3, (70, 2)).astype(np.float64)


@pytest.mark.parametrize("form", [np.asarray, csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_a_pass_is_that_of_the_formula(points, form, k):
    rng = np.random.default_rng(k)
    weights = rng.random(len(points)) + 0.5
    centers = points[rng.choice(len(points), k, replace=False)] + 0.1
    walker = Walker(Points(form(points), weights), "median")
    found = finish(walker.looking(centers))
    assert found.objective == pytest.approx(naive.objective(points, centers, weights), rel=1e-12)
    np.testing.assert_array_equal(walker.labels, naive.distances(points, centers).argmin(axis=1))
    targets = naive.weiszfeld(points, centers, weights)
    np.testing.assert_allclose(found.targets, targets, rtol=1e-9)


@pytest.mark.parametrize("form", [np.asarray, csr_matrix], ids=["dense", "sparse"])
def test_points_at_a_center_are_no_trap(grid, form):
    """Weiszfeld's own step divides by zero there."""
    centers = np.array([[0.0, 0.0], [1.0, 2.0], [2.0, 1.0]])
    weights = np.ones(len(grid))
    found = finish(Walker(Points(form(grid)), "median").looking(centers))
    expected = naive.weiszfeld(grid, centers, weights)
    np.testing.assert_allclose(found.targets, expected, rtol=1e-9, atol=1e-12)
    assert naive.objective(grid, found.targets) <= naive.objective(grid, centers)


def test_a_center_goes_to_its_points_unless_those_at_it_weigh_more():
    zero, three = np.zeros((1, 1)), np.array([[3.0]])
    for weight, expected in ((0.0, three), (4.0, zero)):
        found = weiszfeld_targets(zero, np.ones(1), three, np.array([weight]))
        np.testing.assert_array_equal(found, expected)


def test_blocks_make_up_the_rows():
    assert row_blocks(600, 2) == [slice(0, 512), slice(512, 1024)]


def test_ties_go_to_the_first_center(grid):
    centers = np.array([[0.0, 1.0], [2.0, 1.0], [0.0, 1.0]])
    walker = Walker(Points(grid), "median")
    found = finish(walker.looking(centers))
    np.testing.assert_array_equal(walker.labels, naive.distances(grid, centers).argmin(axis=1))
    np.testing.assert_array_equal(found.is_empty, [False, False, True])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_large_offset_costs_no_digits_of_the_labels(dtype):
    X = np.random.default_rng(2).integers(0, 8, (90, 2)).astype(dtype)
    centers = np.array([[1.2, 1.1], [5.3, 6.4]])
    far = dtype(2**20)
    one, other = Walker(Points(X), "median"), Walker(Points(X + far), "median")
    a, b = finish(one.looking(centers)), finish(other.looking(centers + 2.0**20))
    np.testing.assert_array_equal(one.labels, other.labels)
    assert a.objective == pytest.approx(b.objective, rel=1e-8)


def test_one_center_descends_to_the_geometric_median(points):
    walker = Walker(Points(points), "median")
    objective, centers = finish(descend(walker, points[:1], 1e-12, np.random.default_rng(0)))
    best = naive.geometric_median(points)
    assert objective <= naive.objective(points, best[None]) * (1 + 1e-9)
    units = (points - centers[0]) / naive.distances(points, centers)
    # The force on it vanishes.
    assert np.linalg.norm(units.sum(axis=0)) < 1e-2


@pytest.mark.parametrize("seed", range(5))
def test_a_descent_never_rises(points, grid, seed):
    for X in (points, grid):
        rng = np.random.default_rng(seed)
        walker, centers = Walker(Points(X), "median"), X[rng.choice(len(X), 4)]
        seen, looking = [], walker.looking

        def noted(centers, looking=looking, seen=seen):
            seen.append((yield from looking(centers)))
            return seen[-1]

        walker.looking = noted
        objective, found = finish(descend(walker, centers, 1e-9, rng))
        assert objective <= seen[0].objective
        assert objective == pytest.approx(naive.objective(X, found), rel=1e-12)
        # Nothing is left to gain by a plain step.
        after = naive.weiszfeld(X, found, np.ones(len(X)))
        assert naive.objective(X, after) >= objective * (1 - 1e-7)


def test_empty_centers_find_work(points):
    centers = np.concatenate((points[:1], np.full((3, 3), 1e6)))
    walker = Walker(Points(points), "median")
    objective, found = finish(descend(walker, centers, 1e-6, np.random.default_rng(0)))
    assert np.bincount(walker.labels, minlength=4).min() > 0
    assert objective < 0.7 * naive.objective(points, found[:1])


def test_a_brief_descent_ends_and_gains(points, monkeypatch):
    import fastmmc.annealing.points as module

    walker, rng = Walker(Points(points), "median"), np.random.default_rng(0)
    monkeypatch.setattr(module, "BRIEF_OPERATIONS", 2.5 * points.size * 2)
    centers = descend_briefly(walker, points[:2], rng)
    assert naive.objective(points, centers) < naive.objective(points, points[:2])


def test_annealing_accepts_as_equation_6_says():
    search = SimpleNamespace(n_moves=0, _rng=np.random.default_rng(0))

    def accepts(change, temperature):
        states = SimpleNamespace(objective=1.0), SimpleNamespace(objective=1.0 + change)
        return AnnealingSearch._accepts(search, *states, temperature)

    assert all(accepts(-1.0, 1e-9) and accepts(0.0, 1e-9) for _ in range(100))
    assert search.n_moves == 200
    share = np.mean([accepts(0.7, 0.5) for _ in range(20_000)])
    assert share == pytest.approx(np.exp(-1.4), abs=0.01)
    assert not any(accepts(1.0, 1e-12) for _ in range(100))


@pytest.mark.parametrize("is_full", [True, False], ids=["full", "diagonal"])
def test_divergence_of_two_far_gaussians_is_that_of_their_moments(is_full):
    rng = np.random.default_rng(5)
    spread = np.array([[1.0, 0.0], [0.6, 0.5]])
    one, two = rng.standard_normal((60, 2)) @ spread, rng.standard_normal((40, 2)) + [40.0, 0.0]
    ridge = np.full(2, 1e-9)
    covs = [np.cov(part.T, bias=True) for part in (one, two)]
    if not is_full:
        covs = [np.diag(np.diag(c)) for c in covs]
    means = one.mean(axis=0), two.mean(axis=0)
    expected = 0.5 * (
        naive.divergence(means[0], covs[0], means[1], covs[1])
        + naive.divergence(means[1], covs[1], means[0], covs[0])
    )
    found = mixture.divergence(np.concatenate((one, two)), ridge, 50, is_full)
    assert found == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("is_full", [True, False])
def test_a_component_is_the_gaussian_of_its_shares(is_full):
    rng = np.random.default_rng(0)
    X, ridge = rng.standard_normal((30, 2)) @ [[2.0, 0.7], [0.0, 0.3]], np.array([0.1, 0.2])
    fit, room = (mixture.fit_full, (2, 2)) if is_full else (mixture.fit_diagonal, 2)
    gaps = []
    for share in (rng.random(30), np.full(30, 0.5)):
        mean, logs = np.empty(2), np.empty(30)
        fit(X, share, ridge, mean, np.empty(room), logs)
        np.testing.assert_allclose(mean, np.average(X, axis=0, weights=share))
        wanted = np.cov(X.T, aweights=share, ddof=0)
        wanted = (wanted if is_full else np.diag(np.diag(wanted))) + np.diag(ridge)
        gaps.append(logs - multivariate_normal(mean, wanted).logpdf(X) - np.log(share.mean()))
    # Up to a constant that all components share.
    np.testing.assert_allclose(gaps, gaps[0][0], rtol=1e-9)


def test_halves_are_around_the_point_far_from_the_mean_and_the_one_far_from_that():
    points, shares = np.array([[0.0], [1.0], [9.0], [10.0], [26.0]]), np.empty((2, 5))
    mixture.halve(points, shares)
    np.testing.assert_array_equal(shares, [[0, 0, 0, 0, 1], [1, 1, 1, 1, 0]])


def test_divergence_tells_two_clusters_from_one():
    rng = np.random.default_rng(6)
    one = rng.standard_normal((80, 2))
    two = one + 8.0 * (np.arange(80) < 40)[:, None]
    ridge = np.full(2, 1e-6)
    for is_full in (True, False):
        apart, together = (mixture.divergence(X, ridge, 50, is_full) for X in (two, one))
        assert apart > 4.0 * together >= 0.0
    lonely = np.repeat([[0.0, 0.0], [9.0, 9.0]], [9, 1], axis=0)
    assert mixture.divergence(lonely, ridge, 9, True) == -np.inf


def test_a_cover_is_a_partition_inside_the_clusters(points):
    rng = np.random.default_rng(0)
    clusters = np.repeat([4, 7, 9], 40)
    cover = finish(make_cover(points, clusters, 24, rng))
    assert cover.sizes.sum() == len(points) and 20 <= len(cover.means) <= 24
    for p, mean in enumerate(cover.means):
        own = cover.parts == p
        assert own.sum() == cover.sizes[p] and np.unique(clusters[own]).size == 1
        np.testing.assert_allclose(mean, points[own].mean(axis=0))


def test_representatives_go_where_the_distances_are():
    rng = np.random.default_rng(0)
    X = np.concatenate((1e-3 * rng.standard_normal((300, 2)), 5.0 + rng.standard_normal((60, 2))))
    clusters = np.repeat([0, 1], [300, 60])
    for by_cost, wide_share in ((False, 10 / 60), (True, 59 / 60)):
        cover = finish(make_cover(X, clusters, 60, rng, by_cost))
        wide = np.unique(cover.parts[300:]).size
        assert wide == pytest.approx(60 * wide_share, abs=3)


def test_parts_are_shared_out_in_proportion():
    sizes = np.array([90.0, 10.0])
    assert share_out(20, sizes, sizes).tolist() == [18, 2]
    assert share_out(10, np.array([1.0, 9.0]), sizes).tolist() == [1, 9]


def test_coinciding_points_share_a_part():
    X = np.repeat(np.arange(3.0)[:, None], 5, axis=0)
    parts = finish(cut(X, 9, np.random.default_rng(0)))
    np.testing.assert_array_equal(np.unique(parts), np.arange(3))
    assert len({tuple(np.unique(parts[5 * i : 5 * i + 5])) for i in range(3)}) == 3


def test_blocks_of_rows_can_be_made_dense():
    assert row_blocks(600, 2) == [slice(0, 512), slice(512, 1024)]
    assert row_blocks(2, 2**23) == [slice(0, 1), slice(1, 2)]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_passes_are_made_in_pieces(monkeypatch, dtype):
    rng = np.random.default_rng(0)
    X, centers = rng.standard_normal((700, 3)).astype(dtype), rng.standard_normal((5, 3))
    whole = Walker(Points(X), "median")
    expected = finish(whole.looking(centers))
    blocks_of, assign = [], kernels.assign
    monkeypatch.setattr(points_module, "PIECE", 3 * 64 * 5 * 2)
    monkeypatch.setattr(
        kernels,
        "assign",
        lambda blocks, *args: blocks_of.append(len(blocks)) or assign(blocks, *args),
    )
    pieces = Walker(Points(X), "median")
    found = finish(pieces.looking(centers))
    assert max(blocks_of) == 2 and sum(blocks_of) == 11
    assert found.objective == expected.objective
    np.testing.assert_array_equal(found.targets, expected.targets)
    # Bit for bit as new points are assigned.
    labels, distances = make_model(centers, X).assign(X)
    np.testing.assert_array_equal(pieces.labels, labels)
    np.testing.assert_array_equal(pieces.distances, distances)


def test_no_descent_after_a_stop_where_a_pass_is_long(points, monkeypatch):
    monkeypatch.setattr(points_module, "BRIEF_OPERATIONS", points.size * 3 - 1)
    walker = Walker(Points(points), "median")
    walker.looking = None
    assert descend_briefly(walker, points[:3], np.random.default_rng(0)) is not None
