"""Tests of sizes that are chosen over cells of many points."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import fastmmc
from fastmmc import Status
from fastmmc.rls import free
from fastmmc.rls.multilevel import CellChoice, Cells, consensus, count_cells
from fastmmc.sizes import size_rule
from tests.rls import naive
from tests.rls.points import gaussians


def cells_of(n=90, count=20, k=3):
    """Return a low-rank factor, a labelling of cells of its points, and these cells."""
    X = np.random.default_rng(0).standard_normal((n, 3))
    factor = fastmmc.factor(X, lam=0.3, rank=30, random_state=0)
    rng = np.random.default_rng(1)
    seeds = np.sort(rng.choice(n, count, replace=False))
    members = rng.integers(0, count, n)
    members[seeds] = np.arange(count)
    sums = np.stack([factor.Z[members == c].sum(axis=0) for c in range(count)])
    weights = np.bincount(members)
    cells = Cells(sums @ sums.T, weights, np.ones(count, dtype=bool), sums, factor.Z[seeds])
    return factor, rng.permutation(np.arange(count) % k), cells, members, seeds


def test_labels_of_cells_cost_what_those_of_their_points_do():
    factor, labels, cells, members, _ = cells_of()
    state = cells.state(labels, size_rule(90, 3))
    wanted = naive.free_cost(factor.Z @ factor.Z.T, labels[members], 3)
    assert free.cost_of(state) == pytest.approx(wanted)


def test_the_error_is_that_of_the_seeds():
    factor, labels, cells, members, seeds = cells_of()
    R = factor.Z @ factor.Z.T
    wanted = 0.0
    for h in range(3):
        e = (labels[members] == h).astype(float)
        left_out = (R @ e - np.diag(R) * e) / (1 - np.diag(R))
        squares = (left_out - e)[seeds] ** 2
        wanted += squares @ cells.weights / e.sum() / 3
    assert_allclose(cells.error(labels, size_rule(90, 3)), wanted)


def test_cells_leave_a_cluster_that_is_too_large():
    _, labels, cells, members, _ = cells_of()
    sizes = np.bincount(labels[members], minlength=3)
    wide = size_rule(90, 3)
    assert_array_equal(cells.fitted(labels, wide), labels)
    narrow = size_rule(90, 3, max_size=int(sizes.max()) - 1)
    fitted = np.bincount(cells.fitted(labels, narrow)[members], minlength=3)
    assert fitted.max() < sizes.max() and fitted.sum() == 90


def test_the_consensus_is_what_ward_makes_of_the_labellings():
    rng = np.random.default_rng(0)
    weights, kept = rng.integers(1, 6, 40), rng.integers(0, 4, 40)
    labellings = [np.where(rng.random(40) < 0.5, rng.integers(0, 4, 40), kept) for _ in range(20)]
    wanted = naive.consensus(labellings, 4, weights)
    assert adjusted_rand_score(wanted, consensus(labellings, 4, weights)) == 1.0
    assert adjusted_rand_score(wanted, kept) < 1.0


@pytest.mark.parametrize("of_starts", ["found", "other"])
def test_those_labels_go_on_that_the_starts_agree_with(of_starts):
    _, labels, cells, _, _ = cells_of()
    rule = size_rule(90, 3)
    plan = SimpleNamespace(k=3, rule=rule, known=None, near=None, n_near=1)
    choice = CellChoice(cells, plan, 0, None)
    # Labels stay as they are, so that the search ends elsewhere than other starts.
    choice._descend = lambda one: one
    found, other = labels, np.roll(labels, 1)
    assert adjusted_rand_score(found, other) < 0.9
    starts = 5 * [found if of_starts == "found" else other]
    choice._near = SimpleNamespace(
        more_starts=lambda count: iter(()), finish=lambda: found, starts=starts, n_iter=0, n_moves=0
    )
    list(choice._polish())
    assert adjusted_rand_score(choice._polished, starts[0]) == 1.0


def test_few_points_have_no_cells():
    assert count_cells(1_999, 2) == 0
    assert count_cells(2_000, 2) == 1_000
    assert count_cells(50_000, 30) == 1_500
    assert count_cells(50_000, 10_000) == 20_000


@pytest.mark.jit
@pytest.mark.usefixtures("few_cells")
@pytest.mark.parametrize("sizes", [[200, 200, 200], [360, 120, 120]], ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_clusters_are_found_whatever_their_sizes(sizes, dtype):
    X, y = gaussians(sizes)
    result = fastmmc.umc_rls(X.astype(dtype), 3, rank=80, random_state=0)
    # At this rank not even the descent from the clusters themselves leaves all points there.
    assert adjusted_rand_score(y, result.labels) > 0.98
    assert result.params["sizes"] == "auto" and result.converged
    assert np.mean(result.predict(X) == result.labels) > 0.99


@pytest.mark.jit
@pytest.mark.usefixtures("few_cells")
def test_no_move_of_a_point_helps_in_the_end():
    X = np.random.default_rng(0).standard_normal((150, 2))
    factor = fastmmc.factor(X, rank=40, random_state=0)
    result = fastmmc.umc_rls(factor, 4, random_state=0)
    R = factor.Z @ factor.Z.T
    assert result.objective == pytest.approx(naive.free_cost(R, result.labels, 4))
    free_sizes = np.ones(4, dtype=int), np.full(4, 150)
    assert_array_equal(naive.free_descent(R, result.labels, 4, *free_sizes, 1e-9), result.labels)


@pytest.mark.jit
@pytest.mark.usefixtures("few_cells")
def test_the_labels_are_the_same_for_any_number_of_threads():
    X = np.random.default_rng(0).standard_normal((300, 2))
    one, two = (fastmmc.umc_rls(X, 5, rank=50, random_state=3, n_jobs=m) for m in (1, 2))
    assert_array_equal(one.labels, two.labels)
    assert one.objective == two.objective


@pytest.mark.jit
@pytest.mark.usefixtures("few_cells")
def test_bounds_hold():
    X, _ = gaussians([300, 30, 30])
    result = fastmmc.umc_rls(X, 3, rank=60, min_size=80, max_size=200, random_state=0)
    assert result.sizes.min() >= 80 and result.sizes.max() <= 200


@pytest.mark.jit
@pytest.mark.usefixtures("few_cells")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_equal_points():
    X = np.repeat(np.eye(4), 60, axis=0)
    for k in (2, 4, 7):
        result = fastmmc.umc_rls(X, k, rank=20, random_state=0)
        assert result.sizes.sum() == 240 and result.sizes.min() >= 1


@pytest.mark.jit
@pytest.mark.usefixtures("few_cells")
def test_a_stop_gives_back_labels():
    # So many that the search is not over before the first call.
    X = np.random.default_rng(0).standard_normal((20_000, 2))
    with pytest.warns(ConvergenceWarning, match="callback"):
        result = fastmmc.umc_rls(X, 3, random_state=0, callback=lambda progress: True)
    assert result.status == Status.CALLBACK and result.sizes.min() > 0


@pytest.mark.jit
@pytest.mark.usefixtures("few_cells")
def test_known_labels_are_kept():
    X, y = gaussians([200, 60, 60])
    known = np.full(len(y), -1)
    known[::20] = y[::20]
    result = fastmmc.umc_rls(X, 3, rank=60, known_labels=known, random_state=0)
    assert_array_equal(result.labels[::20], y[::20])
    assert adjusted_rand_score(y, result.labels) == 1.0
