"""Tests of cells of many points, and of the search of free sizes on them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import fastmmc
from fastmmc import Status
from fastmmc.core.threads import run_to_end
from fastmmc.data.sizes import size_rule
from fastmmc.rls.engine.coarse import draw_cells_of
from fastmmc.rls.engine.groups import Groups, cost_of
from fastmmc.rls.planning import wanted_cells
from tests.rls import naive
from tests.rls.points import gaussians


def cells_of(n=90, count=20, rank=30, kernel="rbf"):
    """Return the hat matrix of points, cells of them, and which cell each point is in."""
    X = np.random.default_rng(0).standard_normal((n, 3))
    factor = fastmmc.factor(X, lam=0.3, rank=rank, kernel=kernel, random_state=0)
    R = factor.R if rank is None else factor.Z @ factor.Z.T
    members, seeds = run_to_end(
        draw_cells_of(factor, count, np.random.default_rng(1)), lambda n_rows: None
    )
    E = (members[:, None] == np.arange(count)).astype(float)
    matrix = E.T @ R @ E
    masses = np.bincount(members)
    assert_array_equal(members[seeds], np.arange(count))
    return X, R, Groups(matrix, masses, np.ones(count, dtype=bool)), members, seeds


@pytest.mark.parametrize("rank", [30, None])
def test_labels_of_cells_cost_what_those_of_their_points_do(rank):
    _, R, cells, members, _ = cells_of(rank=rank)
    labels = np.random.default_rng(1).permutation(np.arange(20) % 3)
    state = cells.state(labels, size_rule(90, 3))
    wanted = naive.free_cost(R, labels[members], 3)
    assert cost_of(state) == pytest.approx(wanted)


def rbf(X, Z):
    return np.exp(-cdist(X, Z, "sqeuclidean"))


@pytest.mark.parametrize("kernel", ["rbf", rbf], ids=["rbf", "callable"])
@pytest.mark.parametrize("rank", [30, None])
def test_points_are_in_the_cell_of_their_nearest_seed(rank, kernel):
    X, _, _, members, seeds = cells_of(rank=rank, kernel=kernel)
    distances = np.linalg.norm(X[:, None] - X[seeds], axis=2)
    assert_allclose(distances[np.arange(90), members], distances.min(axis=1))


def test_cells_leave_a_cluster_that_is_too_large():
    _, _, cells, members, _ = cells_of()
    labels = np.random.default_rng(1).permutation(np.arange(20) % 3)
    sizes = np.bincount(labels[members], minlength=3)
    wide = size_rule(90, 3)
    assert_array_equal(cells.fitted(labels, wide), labels)
    narrow = size_rule(90, 3, max_size=int(sizes.max()) - 1)
    fitted = np.bincount(cells.fitted(labels, narrow)[members], minlength=3)
    assert fitted.max() < sizes.max() and fitted.sum() == 90


def test_equal_seeds_have_a_cell_each():
    X = np.repeat(np.arange(3.0), 40)[:, None]
    factor = fastmmc.factor(X, rank=3, landmarks="pivoted")
    members, seeds = run_to_end(draw_cells_of(factor, 20, np.random.default_rng(0)), lambda _: None)
    assert_array_equal(members[seeds], np.arange(seeds.size))
    assert_array_equal(X[seeds[members]], X)
    assert seeds.size >= 10


def test_few_points_have_no_cells():
    def count(n, k):
        return wanted_cells(fastmmc.UMCRLS(k, sizes="free"), n, k)

    assert count(600, 1) == count(600, 2) == 0
    assert count(601, 1) == count(601, 2) == count(1_800, 2) == 600
    assert count(3_001, 2) == 644
    assert count(4_000, 200) == 1_333
    assert count(4_000, 1_000) == 2_000
    assert count(4_000, 2_000) == 0
    assert count(50_000, 30) == 1_166
    assert count(50_000, 10_000) == 20_000


@pytest.mark.jit
@pytest.mark.usefixtures("few_cells")
@pytest.mark.parametrize("sizes", [[200, 200, 200], [360, 120, 120]], ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_clusters_are_found_whatever_their_sizes(sizes, dtype):
    X, y = gaussians(sizes)
    result = fastmmc.umc_rls(X.astype(dtype), 3, sizes="free", rank=80, random_state=0)
    # At this rank not even the descent from the clusters themselves leaves all points there.
    assert adjusted_rand_score(y, result.labels) > 0.98
    assert result.converged
    assert np.mean(result.predict(X) == result.labels) > 0.99


@pytest.mark.jit
@pytest.mark.usefixtures("few_cells")
def test_no_move_of_a_point_helps_in_the_end():
    X = np.random.default_rng(0).standard_normal((150, 2))
    factor = fastmmc.factor(X, rank=40, random_state=0)
    result = fastmmc.umc_rls(factor, 4, sizes="free", random_state=0)
    R = factor.Z @ factor.Z.T
    assert result.objective == pytest.approx(naive.free_cost(R, result.labels, 4))
    free_sizes = np.ones(4, dtype=int), np.full(4, 150)
    assert_array_equal(naive.free_descent(R, result.labels, 4, *free_sizes, 1e-9), result.labels)


@pytest.mark.jit
@pytest.mark.usefixtures("few_cells")
def test_the_labels_are_the_same_for_any_number_of_threads():
    X = np.random.default_rng(0).standard_normal((300, 2))
    told = {"sizes": "free", "rank": 50, "random_state": 3}
    one, two = (fastmmc.umc_rls(X, 5, n_jobs=m, **told) for m in (1, 2))
    assert_array_equal(one.labels, two.labels)
    assert one.objective == two.objective


@pytest.mark.jit
@pytest.mark.usefixtures("few_cells")
def test_bounds_hold():
    X, _ = gaussians([300, 30, 30])
    told = {"sizes": "free", "min_size": 80, "max_size": 200}
    result = fastmmc.umc_rls(X, 3, rank=60, random_state=0, **told)
    assert result.sizes.min() >= 80 and result.sizes.max() <= 200


@pytest.mark.jit
@pytest.mark.usefixtures("few_cells")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_equal_points():
    X = np.repeat(np.eye(4), 60, axis=0)
    for k in (2, 4, 7):
        result = fastmmc.umc_rls(X, k, sizes="free", rank=20, random_state=0)
        assert result.sizes.sum() == 240 and result.sizes.min() >= 1


@pytest.mark.jit
@pytest.mark.usefixtures("few_cells")
def test_a_stop_gives_back_labels():
    # So many that the search is not over before the first call.
    X = np.random.default_rng(0).standard_normal((60_000, 2))
    with pytest.warns(ConvergenceWarning, match="callback"):
        result = fastmmc.umc_rls(X, 3, sizes="free", random_state=0, callback=lambda progress: True)
    assert result.status == Status.CALLBACK and result.sizes.min() > 0


@pytest.mark.jit
@pytest.mark.usefixtures("few_cells")
def test_known_labels_are_kept():
    X, y = gaussians([200, 60, 60])
    known = np.full(len(y), -1)
    known[::20] = y[::20]
    told = {"sizes": "free", "rank": 60, "known_labels": known}
    result = fastmmc.umc_rls(X, 3, random_state=0, **told)
    assert_array_equal(result.labels[::20], y[::20])
    assert adjusted_rand_score(y, result.labels) == 1.0


@pytest.mark.usefixtures("few_cells")
def test_one_cluster_of_many_points_has_no_dense_hat_matrix(monkeypatch):
    X = np.random.default_rng(0).standard_normal((300, 2))
    F = fastmmc.factor(X, rank=60, sigma=1.0, random_state=0)
    monkeypatch.delattr(fastmmc.LowRankFactor, "_as_dense")
    result = fastmmc.umc_rls(F, 1, sizes="free", random_state=0)
    assert result.converged and result.labels.max() == 0
    assert_allclose(result.objective, 1.0 - np.sum(F.Z.sum(axis=0) ** 2) / 300)
