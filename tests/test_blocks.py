"""Points in blocks: the same labels wherever the blocks are, and those of a sound descent."""

import os
import signal
import time

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_array, csr_matrix
from sklearn.datasets import make_blobs, make_circles
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import fastmmc
from fastmmc import Status
from fastmmc.choice.blocked import coarsen_blocks
from fastmmc.core import validation
from fastmmc.data import blocks, passes
from fastmmc.data.sizes import sizes_within
from fastmmc.datasets import make_nine_gaussians
from fastmmc.kernels import block_factor, nystroem
from fastmmc.registry import registry_name
from fastmmc.rls import blocked
from fastmmc.rls.engine import coarse

N, SAMPLE, RANK = 3000, 600, 40
FREE = {"sizes": "free"}
WIDTH = 1.56  # the median distance
slow = pytest.mark.slow


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Make samples and blocks small, and any memory map a large one."""
    monkeypatch.setattr(coarse, "CELLS", 200)
    monkeypatch.setattr(block_factor, "SAMPLE", SAMPLE)
    monkeypatch.setattr(block_factor, "SAMPLE_PER_CLUSTER", 1)
    monkeypatch.setattr(block_factor, "SAMPLE_PER_LANDMARK", 1)
    monkeypatch.setattr("fastmmc.kernels.factors.SAMPLE", SAMPLE)
    monkeypatch.setattr(blocks, "BLOCK_NUMBERS", 512 * RANK)
    monkeypatch.setattr(blocks, "LARGE_MAP", 100)


@pytest.fixture(scope="module")
def points():
    return make_nine_gaussians(N, random_state=0)


@pytest.fixture
def mapped(points, tmp_path):
    return as_map(points[0], tmp_path)


def as_map(X, folder):
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


def as_dask(X, rows=700):
    """Points as a Dask array; without Dask what has been tested of memory maps must do."""
    da = pytest.importorskip("dask.array")
    return da.from_array(np.array(X), chunks=(rows, 1))


def run(X, k=9, **params):
    told = {"rank": RANK, "n_init": 2, "random_state": 0, "sizes": "equal", "sigma": WIDTH}
    return fastmmc.umc_rls(X, k, **(told | params))


def check_same(result, other):
    np.testing.assert_array_equal(np.asarray(result.labels), np.asarray(other.labels))
    np.testing.assert_array_equal(result.sizes, other.sizes)
    assert result.objective == other.objective and result.status == other.status
    assert result.history.tolist() == other.history.tolist()


def whole_factor(result, X):
    """The factor of all points at once, with the width and landmarks of a result."""
    model = result.model
    given = {"landmarks": model.basis, "lam": result.params["lam"], "sigma": model.kernel.sigma}
    return fastmmc.factor(np.asarray(X), **given)


@pytest.mark.parametrize("sizes, rows", [("equal", 700), ("free", 64)])
def test_labels_do_not_depend_on_where_blocks_are(points, mapped, sizes, rows):
    of_map = run(mapped, sizes=sizes)
    of_dask = run(as_dask(points[0], rows), sizes=sizes)
    assert isinstance(of_map.labels, np.ndarray) and validation.is_dask(of_dask.labels)
    assert of_dask.labels.chunks[0] == as_dask(points[0], rows).chunks[0]
    check_same(of_dask, of_map)
    check_same(run(mapped, sizes=sizes, n_jobs=2), of_map)


@pytest.mark.parametrize("params", [{}, FREE, {"balance": 0.2}, {"balance": 0.0}])
def test_figures_are_those_of_the_labels(points, mapped, params):
    result = run(mapped, **params)
    F = whole_factor(result, points[0])
    E = (result.labels[:, None] == np.arange(9)).astype(float)
    R, P = F.Z @ F.Z.T, 2 * E - 1
    within = np.diag(E.T @ R @ E)
    if params == FREE:
        value = np.sum(1 - within / E.sum(axis=0))
    else:
        value = np.sum(P * (P - R @ P))
    np.testing.assert_allclose(result.objective, value, rtol=1e-7)
    np.testing.assert_array_equal(result.sizes, E.sum(axis=0))
    assert result.outlier_scores is None
    with pytest.raises(ValueError, match="have no loo_scores"):
        result.probabilities  # noqa: B018
    residuals = (P - R @ P) / (1 - np.diag(R))[:, None]
    np.testing.assert_allclose(result.loo_mse, np.mean(residuals**2), rtol=1e-7)
    scores = R @ P
    np.testing.assert_allclose(result.decision_function(points[0]), scores, atol=1e-6)


@pytest.mark.parametrize("params", [{}, FREE, {"balance": 0.3}])
def test_passes_lower_the_objective(mapped, params):
    result = run(mapped, **params)
    # After the last pass points are brought within the bounds.
    n_passes = 1 + result.history.argmin()
    passes = result.history[:n_passes]
    assert (result.trace["passes"][n_passes:] == result.n_iter).all()
    assert passes.size >= 2 and (np.diff(passes) < 0).all()
    # What brings the last points within bounds costs up to .24 % on eight drawings.
    assert result.history[-1] < 1.003 * passes[-1]
    assert result.n_iter >= passes.size - 1


@slow
@pytest.mark.parametrize("params", [{}, FREE])
def test_clusters_are_as_good_as_in_memory(points, mapped, params, monkeypatch):
    # The index of one seed has a deviation of .03: nine tell differences of .02. Samples have as
    # many points a cluster as they do outside of tests: of 70, as here, free sizes leave some few.
    monkeypatch.setattr(block_factor, "SAMPLE", 9 * 200)
    X, y = points

    def score(given, seed):
        return adjusted_rand_score(y, run(given, random_state=seed, **params).labels)

    means = [np.mean([score(given, seed) for seed in range(9)]) for given in (mapped, X)]
    assert means[0] > means[1] - 0.02


@pytest.mark.parametrize(
    "params",
    [
        {"balance": 0.0},
        pytest.param({"balance": 0.01}, marks=slow),
        {"balance": 0.05, "sizes": "free"},
        {"target_sizes": [600, 100, *[300] * 5, 500, 300]},
        pytest.param(
            {"target_sizes": [600, 100, *[300] * 5, 500, 300], "sizes": "free"}, marks=slow
        ),
        {"min_size": 333},
        {"max_size": 334},
        {"min_size": 310, "sizes": "free"},
    ],
)
def test_size_bounds_hold(mapped, params):
    result = run(mapped, **params)
    assert result.sizes.sum() == N
    if "target_sizes" in params:
        assert result.sizes.tolist() == params["target_sizes"]
    elif "balance" in params:
        least, most = np.floor((1 - params["balance"]) * N / 9), (1 + params["balance"]) * N / 9
        assert result.sizes.min() >= least and result.sizes.max() <= np.ceil(most)
    assert result.sizes.min() >= params.get("min_size", 1)
    assert result.sizes.max() <= params.get("max_size", N)
    np.testing.assert_array_equal(np.bincount(result.labels, minlength=9), result.sizes)
    # One look at all points brings the last ones within bounds.
    assert len(result.history) <= 2 + result.history.argmin()


@pytest.mark.parametrize("told", [{}, {"min_size": 60}])
def test_the_default_balance_is_that_in_memory(told, tmp_path):
    """Nine Gaussians in thirty clusters, whose sizes no prices of so few features settle."""
    X = np.random.default_rng(0).lognormal(size=(N, 3))
    result = run(as_map(X, tmp_path), 30, sigma=None, rank=20, **told)
    # 80 to 120 is the default of .2; passes may be off by a point.
    assert result.sizes.min() >= 79 and result.sizes.max() <= 121
    assert (result.size_bounds[:, 0] <= result.sizes).all()
    assert (result.sizes <= result.size_bounds[:, 1]).all()


def test_bounds_of_sizes_are_told(mapped):
    told = {"max_size": 340, "min_size": 300}
    for result in (run(mapped, **told), fastmmc.cluster(mapped, 9, random_state=0, **told)):
        assert result.size_bounds.tolist() == [[300, 340]] * 9
    assert fastmmc.cluster(mapped, 9, random_state=0).size_bounds is None


def test_bounds_hold_where_points_are_equal(tmp_path):
    """No price tells equal points apart: the first ones go."""
    X = np.repeat([[0.0, 0.0], [0.0, 1.0], [5.0, 5.0]], [1700, 200, 1100], axis=0)
    given = {"balance": 0.0, "sigma": 1.0, "rank": 3, "landmarks": np.unique(X, axis=0)}
    result = run(as_map(X, tmp_path), 3, **given)
    assert result.sizes.tolist() == [1000, 1000, 1000]
    check_same(run(as_dask(X, 401), 3, **given), result)


def test_a_tangent_step_is_the_best_labelling_for_its_scores(points, mapped):
    """Prices and gifts give what a linear program does, up to the last few points."""
    result = run(mapped, 3, balance=0.0, max_time=None)
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((90, 3))
    wanted = np.array([20.0, 30.0, 40.0])
    prices = blocked.find_prices(scores, wanted, np.zeros(3), rough=True)
    found = (scores + prices).argmax(axis=1)
    assert np.abs(np.bincount(found, minlength=3) - wanted).max() <= 3
    rows, columns = np.kron(np.eye(90), np.ones(3)), np.kron(np.ones(90), np.eye(3))
    exact = linprog(
        -scores.ravel(),
        A_eq=np.vstack((rows, columns)),
        b_eq=np.concatenate((np.ones(90), np.bincount(found, minlength=3))),
    )
    np.testing.assert_allclose(scores[np.arange(90), found].sum(), -exact.fun)
    assert result.sizes.tolist() == [1000, 1000, 1000]


@pytest.mark.parametrize("first", [(0.0, 0.0, 0.0), (9.0, -14.0, 5.0)])
def test_prices_for_very_unequal_sizes(first, rng):
    """Once they went so far off that no point was between clusters, and stayed there."""
    scores = 0.01 * rng.standard_normal((2000, 3))
    wanted = np.array([1980.0, 7.5, 12.5])
    prices = blocked.find_prices(scores, wanted, np.array(first), rough=True)
    sizes = np.bincount((scores + prices).argmax(axis=1), minlength=3)
    assert np.abs(sizes - wanted).max() <= 2.5
    assert np.isfinite(blocked.find_prices(scores, wanted, np.array(first), rough=False)).all()


@pytest.mark.parametrize("seed", range(5))
def test_sizes_within_keep_their_sum(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 50, 6)
    lower = rng.integers(0, 20, 6)
    upper = lower + rng.integers(0, 20, 6)
    total = sizes.sum()
    lower, upper = np.minimum(lower, total // 6), np.maximum(upper, -(-total // 6))
    new = sizes_within(sizes, lower, upper)
    assert new.sum() == total and (new >= lower).all() and (new <= upper).all()
    fits = (sizes >= lower).all() and (sizes <= upper).all()
    assert not fits or (new == sizes).all()


@pytest.mark.parametrize("rows", [512, 700])
def test_the_choice_does_not_depend_on_where_blocks_are(points, mapped, rows):
    X = as_dask(points[0], rows)
    results = [fastmmc.cluster(one, 9, random_state=0) for one in (mapped, X)]
    check_same(*results)
    np.testing.assert_array_equal(results[0].cells, np.asarray(results[1].cells))
    assert [one.vote for one in results[0].candidates] == [
        one.vote for one in results[1].candidates
    ]


def test_the_choice_is_as_good_as_in_memory(points, mapped, tmp_path):
    X, y = points
    result, whole = (fastmmc.cluster(one, 9, random_state=0) for one in (mapped, X))
    scores = [adjusted_rand_score(y, one.labels) for one in (result, whole)]
    assert scores[0] > scores[1] - 0.05
    result.save(tmp_path / "result.npz")
    saved = fastmmc.load(tmp_path / "result.npz")
    check_same(saved, result)
    np.testing.assert_array_equal(saved.predict(X), result.predict(X))
    cells = result.cells
    assert adjusted_rand_score(result.labels, result.winner.labels[cells]) > 0.8
    again = fastmmc.umc_rls(mapped, 9, **result.chosen, random_state=0)
    for name in ("sigma", "lam"):
        assert again.params[name] == result.params[name]
    # The features of the choice span the scores of its clusters alone.
    assert result.params["rank"] == 9 < again.params["rank"]
    assert np.mean(result.predict(X) == result.labels) > 0.99


@pytest.mark.parametrize("params", [{"balance": 0}, {"min_size": 330, "max_size": 335}])
def test_the_choice_keeps_size_bounds(mapped, params):
    sizes = fastmmc.cluster(mapped, 9, random_state=0, **params).sizes
    low, high = (N // 9, -(-N // 9)) if "balance" in params else (330, 335)
    assert sizes.sum() == N and (sizes >= low).all() and (sizes <= high).all()


@pytest.mark.parametrize("n_distinct, k", [(1, 3), (2, 6), (3, 8), (4, 5)])
def test_the_choice_takes_more_clusters_than_distinct_points(n_distinct, k, tmp_path):
    X = np.column_stack((np.arange(N) % n_distinct, np.zeros(N)))
    with pytest.warns(ConvergenceWarning, match=f"only {n_distinct} distinct point"):
        result = fastmmc.cluster(as_map(X, tmp_path), k, random_state=0)
    assert result.sizes.size == k and result.sizes.min() > 0


def test_the_choice_finds_rings_and_numbers_in_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(coarse, "CELLS", 600)
    X, y = make_circles(N, noise=0.03, factor=0.8, random_state=0)
    result = fastmmc.cluster(as_map(X, tmp_path), 2, random_state=0)
    assert adjusted_rand_score(y, result.labels) > 0.99
    X, y = make_blobs(N, centers=4, cluster_std=0.5, random_state=0)
    result = fastmmc.cluster(as_map(X, tmp_path), max_k=6, random_state=0)
    assert len(result.sizes) == 4 and adjusted_rand_score(y, result.labels) > 0.99


def test_cells_of_blocks_are_those_of_their_points(points, mapped):
    X = points[0]
    made = blocks.make_blocks(mapped)
    cells, seeds = coarsen_blocks(made, X[:500], 100, np.random.default_rng(0))
    g = cells.masses.size
    assert all((X == seed).all(axis=1).any() for seed in seeds) and len(seeds) == g
    assert 90 < g <= 100 and cells.n == cells.total == N
    np.testing.assert_array_equal(np.bincount(cells.members, minlength=g), cells.masses)
    means = [X[cells.members == h].mean(axis=0) for h in range(g)]
    np.testing.assert_allclose(cells.points, means)


def test_a_choice_in_blocks_that_is_stopped_keeps_what_it_has(mapped):
    with pytest.warns(ConvergenceWarning, match="stopped"):
        result = fastmmc.cluster(mapped, 9, random_state=0, callback=lambda progress: True)
    assert result.status == Status.CALLBACK and result.sizes.sum() == N


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"known_labels": np.zeros(N)}, "^known_labels: points in blocks"),
        ({"must_link": [(0, 1)]}, "^must_link: points in blocks"),
        ({"sample_weight": np.ones(N)}, "^sample_weight: points in blocks"),
        ({"trim": 3}, "^trim: points in blocks"),
        ({"max_size": 300}, "^max_size must be at least 334"),
        ({"k": 0}, "^k must be"),
    ],
)
def test_the_choice_refuses_what_is_about_single_points(mapped, told, message):
    with pytest.raises(ValueError, match=message):
        fastmmc.cluster(mapped, **({"k": 9} | told))


def test_few_points_are_a_sample_of_themselves(points):
    X = points[0][:500]
    result = run(as_dask(X))
    assert validation.is_dask(result.labels)
    assert validation.is_dask(fastmmc.cluster(as_dask(X), 3, random_state=0).cells)
    np.testing.assert_array_equal(np.asarray(result.labels), run(X).labels)


@pytest.mark.parametrize(
    "params", [{}, {"balance": 0.0}, pytest.param({"balance": 0.4}, marks=slow)]
)
def test_fast_evo_mmc(points, mapped, params):
    X = points[0]
    given = {"rank": RANK, "n_init": 2, "random_state": 0} | params
    result = fastmmc.fast_evo_mmc(mapped, **given)
    check_same(fastmmc.fast_evo_mmc(as_dask(X), **given), result)
    balance = params.get("balance", 0.03)
    assert abs(result.sizes[0] - result.sizes[1]) <= max(balance * N, N % 2)
    F = whole_factor(result, X)
    y = 2.0 * result.labels - 1
    np.testing.assert_allclose(result.objective, N - np.sum((F.Z.T @ y) ** 2), rtol=1e-7)
    of_memory = fastmmc.fast_evo_mmc(F, n_init=2, random_state=0, **params)
    assert result.objective < 1.05 * of_memory.objective


def test_sammc(points, mapped):
    X, _ = points
    result = fastmmc.sammc(mapped, 9, random_state=0)
    check_same(fastmmc.sammc(as_dask(X), 9, random_state=0), result)
    distances = np.linalg.norm(X[:, None] - result.centers, axis=2)
    np.testing.assert_allclose(result.objective, distances.min(axis=1).sum(), rtol=1e-9)
    np.testing.assert_array_equal(result.labels, distances.argmin(axis=1))
    assert result.objective < 1.005 * fastmmc.sammc(X, 9, random_state=0).objective
    assert (np.diff(result.history) <= 1e-9 * result.objective).all()


@pytest.mark.parametrize("params", [{}, {"kernel": "rbf"}, {"score_balance": 0.0}])
def test_cpmmc(points, mapped, params):
    X = points[0]
    given = {"n_init": 3, "random_state": 0} | params
    result = fastmmc.cpmmc(mapped, **given)
    np.testing.assert_array_equal(
        np.asarray(fastmmc.cpmmc(as_dask(X), **given).labels), result.labels
    )
    scores = result.decision_function(X)[:, 1]
    assert abs(scores.mean()) <= params.get("score_balance", 0.03) + 1e-9
    np.testing.assert_array_equal(result.labels, scores > 0)
    assert result.n_violated == np.sum(np.abs(scores) < 1)
    assert result.objectives.tolist() == [result.objective] and result.best_init == 0
    assert result.objective < 1.1 * fastmmc.cpmmc(X, **given).objective
    if not params:
        w = result.model.basis[0] * result.model.coef[0]
        value = w @ w / 2 + np.maximum(0, 1 - np.abs(scores)).mean()
        np.testing.assert_allclose(result.objective, value, rtol=1e-6)


def test_predictions_come_in_blocks(points, mapped):
    X, _ = points
    quick = run(X, method="shaking", n_init=1)
    for result in (quick, fastmmc.sammc(X, 3, random_state=0), fastmmc.iter_svr(X[:200])):
        expected, scores = result.predict(X), result.decision_function(X)
        lazy = result.predict(as_dask(X))
        assert validation.is_dask(lazy) and lazy.dtype == np.int64
        np.testing.assert_array_equal(lazy.compute(), expected)
        np.testing.assert_array_equal(result.predict(mapped), expected)
        lazy = result.decision_function(as_dask(X))
        assert lazy.shape == scores.shape
        np.testing.assert_allclose(lazy.compute(), scores, rtol=1e-9, atol=1e-12)
    lazy = as_dask(X)
    some = lazy[lazy[:, 0] > X[:700, 0].max()]  # the first block has none
    assert np.asarray(result.predict(some)).size == np.sum(X[:, 0] > X[:700, 0].max())
    assert np.asarray(result.decision_function(some)).shape[1] == 2
    with pytest.raises(ValueError, match="features"):
        result.predict(as_dask(X[:, :1])).compute()


@pytest.mark.parametrize("as_blocks", [as_map, lambda X, _: as_dask(X)], ids=["map", "dask"])
def test_blocks_in_other_units_are_warned_of_once(points, as_blocks, tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_NUMBERS", 1024)
    result, far = run(points[0]), as_blocks(1000 * points[0], tmp_path)
    for predict in (result.predict, result.decision_function):
        with pytest.warns(UserWarning, match="other units") as told:
            np.asarray(predict(far))
        assert len(told) == 1


@pytest.mark.parametrize("standardize", ["auto", False])
def test_cluster_leaves_the_units_of_blocks_as_they_are(points, standardize):
    X = points[0] * [1.0, 1e4]
    with pytest.warns(UserWarning, match="columns of X seem to have different units"):
        result = fastmmc.cluster(as_dask(X), 9, standardize=standardize, random_state=0)
    assert result.params["standardize"] is False
    assert np.asarray(result.labels).shape == (len(X),)


@pytest.mark.parametrize(
    "landmarks", ["pivoted", *(pytest.param(how, marks=slow) for how in ("uniform", "k-means++"))]
)
def test_a_factor_serves_many_clusterings(points, mapped, landmarks):
    X = points[0]
    given = {"rank": RANK, "landmarks": landmarks, "random_state": 0}
    F = fastmmc.factor(as_dask(X), **given)
    assert isinstance(F, fastmmc.BlockFactor) and F.n == N and F.rank <= RANK
    assert "BlockFactor" in repr(F)
    whole = fastmmc.factor(X, landmarks=F.basis, sigma=F.kernel.sigma)
    Z = np.asarray(F.transform(as_dask(X)))
    np.testing.assert_allclose(Z @ Z.T, whole.Z @ whole.Z.T, atol=1e-7)
    check_same(
        fastmmc.umc_rls(F, 9, n_init=1, random_state=0),
        fastmmc.umc_rls(fastmmc.factor(mapped, **given), 9, n_init=1, random_state=0),
    )
    assert fastmmc.fast_evo_mmc(F, n_init=1, random_state=0).sizes.sum() == N
    with pytest.raises(ValueError, match="X is a factor"):
        fastmmc.umc_rls(F, 9, lam=3.0)


def test_a_factor_has_the_width_of_clusterings_into_its_k(mapped):
    F = fastmmc.factor(mapped, k=9, rank=RANK, random_state=0)
    assert F.kernel.sigma == run(mapped, 9, sigma=None).params["sigma"]
    assert F.kernel.sigma < fastmmc.factor(mapped, rank=RANK, random_state=0).kernel.sigma


@pytest.mark.parametrize("kind", [float, np.float32])
def test_a_share_of_the_points_is_no_more_than_the_automatic_rank(mapped, monkeypatch, kind):
    monkeypatch.setattr(nystroem, "AUTO_RANK", 10)
    assert len(fastmmc.factor(mapped, rank=kind(0.5), random_state=0).basis) == 10


def test_a_factor_in_blocks_takes_points_of_any_form(mapped):
    F = fastmmc.factor(mapped, rank=RANK, random_state=0)
    few = np.array(mapped[:3])
    np.testing.assert_array_equal(F.transform(few.tolist()), F.transform(few))
    np.testing.assert_allclose(F.transform(csr_matrix(few)), F.transform(few), atol=1e-12)
    for wrong, message in ((few[0], "Expected 2D array"), (few[:0], "0 sample")):
        with pytest.raises(ValueError, match=message):
            F.transform(wrong)


def test_other_methods_refuse_a_factor_in_blocks(mapped):
    F = fastmmc.factor(mapped, rank=RANK, random_state=0)
    with pytest.raises(TypeError, match="points in blocks"):
        fastmmc.evo_mmc(F)


def test_few_points_have_the_usual_factor(points):
    F = fastmmc.factor(as_dask(points[0][:100]))
    np.testing.assert_array_equal(F.R, fastmmc.factor(points[0][:100]).R)


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_other_numbers(points, tmp_path, dtype):
    X = (10 * points[0]).astype(dtype)
    result = run(as_map(X, tmp_path), sigma=None)
    check_same(run(as_dask(X), sigma=None), result)
    assert run(as_dask(X), dtype="float32", sigma=None).sizes.sum() == N


def test_one_cluster_one_column_and_a_sorted_file(points, tmp_path):
    X, y = points
    one = run(as_dask(X), 1)
    assert one.sizes.tolist() == [N] and not np.asarray(one.labels).any()
    assert run(as_dask(X[:, :1]), 3).sizes.sum() == N
    order = np.argsort(y, kind="stable")
    result = run(as_map(X[order], tmp_path))
    mixed = adjusted_rand_score(y, run(as_map(X, tmp_path)).labels)
    assert adjusted_rand_score(y[order], result.labels) > mixed - 0.02


@pytest.mark.parametrize(
    "solve",
    [
        run,
        lambda X, **params: fastmmc.sammc(X, 9, random_state=0, **params),
        lambda X, **params: fastmmc.cpmmc(X, random_state=0, **params),
    ],
    ids=["umc_rls", "sammc", "cpmmc"],
)
def test_progress_goes_on_behind_the_sample(mapped, solve, capsys):
    pytest.importorskip("rich")
    heard = []
    assert solve(mapped, callback=heard.append, verbose=1).converged
    shares = [progress.fraction for progress in heard]
    assert shares == sorted(shares) and shares[-1] == 1.0
    assert capsys.readouterr().err.count("100%") == 1  # of one bar


def test_stops_keep_what_was_found(mapped, monkeypatch):
    whole = run(mapped)

    def stop_in_passes(progress):
        return progress.n_init == 1 and progress.n_done == 0 and np.isfinite(progress.objective)

    with pytest.warns(fastmmc.core.execution.ConvergenceWarning, match="callback"):
        result = run(mapped, callback=stop_in_passes, n_init=2)
    assert result.status == Status.CALLBACK and result.n_iter == 0
    assert result.objective == whole.history[0] and result.sizes.sum() == N

    with pytest.warns(fastmmc.core.execution.ConvergenceWarning, match="time limit"):
        result = run(mapped, max_time=1e-3)
    assert result.status == Status.TIME_LIMIT and result.sizes.sum() == N

    def interrupt(descent, A, c):
        if descent.n_passes >= 1 or hasattr(descent, "_last"):
            raise KeyboardInterrupt
        return settle(descent, A, c)

    settle = blocked.Descent._settle
    monkeypatch.setattr(blocked.Descent, "_settle", interrupt)
    with pytest.warns(fastmmc.core.execution.ConvergenceWarning, match="interrupted"):
        result = run(mapped)
    assert result.status == Status.INTERRUPTED and result.objective == whole.history[0]


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"known_labels": [-1] * N}, ValueError, "known_labels"),
        ({"init": np.zeros(N, dtype=int)}, ValueError, "init"),
        ({"bound": True}, ValueError, "bound"),
        ({"rank": None}, ValueError, "rank=None"),
        ({"kernel": "precomputed"}, ValueError, "precomputed"),
        ({"k": 0}, ValueError, "k must be at least 1"),
        ({"target_sizes": [1] * 9}, ValueError, "target_sizes"),
        ({"balance": 0.0, "min_size": 400}, ValueError, "no sizes of 9 clusters"),
        ({"lam": 1e-5, "dtype": "float32"}, ValueError, "lam"),
    ],
)
def test_bad_parameters(points, params, error, message):
    with pytest.raises(error, match=message):
        run(as_dask(points[0]), **params)


def test_bad_points(points):
    X = np.array(points[0])
    X[1700] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        run(as_dask(X))
    unknown = as_dask(points[0])
    unknown = unknown[unknown[:, 0] > 0]
    with pytest.raises(ValueError, match="compute_chunk_sizes"):
        run(unknown)
    with pytest.raises(TypeError, match="sparse blocks"):
        run(as_dask(points[0]).map_blocks(csr_array))
    with pytest.raises(ValueError, match="matrix"):
        run(as_dask(points[0])[:, 0])
    with pytest.raises(TypeError, match="real numbers"):
        run(as_dask(points[0]).astype(complex))


def test_a_memory_map_is_in_blocks_only_if_it_is_large(mapped, monkeypatch):
    assert blocks.in_blocks(mapped)
    monkeypatch.setattr(blocks, "LARGE_MAP", mapped.size)
    assert not blocks.in_blocks(mapped) and not blocks.in_blocks(np.asarray(mapped))


def test_kept_files_are_removed(mapped, tmp_path, monkeypatch):
    folder = tmp_path / "kept"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    F = fastmmc.factor(mapped, rank=RANK, random_state=0)
    assert sorted(one.is_dir() for one in folder.iterdir()) == [False, True]  # the lock, and it
    del F
    assert not list(folder.iterdir())


class Crash(BaseException):
    pass


def crash_after(monkeypatch, count):
    """Make the last thing that happens the write of so many entries of a state; return those."""
    write, written = passes._write, []

    def write_some(path, key, value):
        if len(written) == count:
            raise Crash
        written.append(path.name)
        return write(path, key, value)

    monkeypatch.setattr(passes, "_write", write_some)
    return written


RESUMED = {
    "cluster": lambda X: fastmmc.cluster(X, 9, random_state=0),
    "balanced": lambda X: fastmmc.cluster(X, 9, balance=0, random_state=0),
    "umc": lambda X: run(X, balance=0.0),
    "evo": lambda X: fastmmc.fast_evo_mmc(X, rank=RANK, n_init=1, random_state=0),
    "sammc": lambda X: fastmmc.sammc(X, 9, random_state=0),
    "cpmmc": lambda X: fastmmc.cpmmc(X, n_init=1, random_state=0),
}


@pytest.mark.parametrize("solve", RESUMED.values(), ids=RESUMED)
def test_a_run_goes_on_from_what_its_passes_found(points, mapped, tmp_path, monkeypatch, solve):
    monkeypatch.setattr(blocks, "GROUP", 4)
    monkeypatch.setattr(blocks, "FAN_IN", 2)
    folder = tmp_path / "state"
    folder.mkdir()

    def resume(count=None):
        X = blocks.LargeMap(mapped.filename, mapped.dtype, "r", mapped.offset, mapped.shape)
        X.passes = passes.Passes(folder)
        with monkeypatch.context() as patch:
            written = crash_after(patch, count)
            return written, solve(X) if count is None else pytest.raises(Crash, solve, X)

    # No entry is made twice, and the one that failed is begun again.
    names = [name for count in (1, 1, 1) for name in resume(count)[0]]
    written, result = resume()
    names += written
    assert names == sorted(set(names)) and len(written) >= 1
    check_same(result, solve(mapped))
    written, result = resume()
    assert written == []
    check_same(result, solve(mapped))


@pytest.mark.parametrize("name", ["umc", "evo", "sammc", "cpmmc"])
def test_params_are_those_of_the_function(mapped, name):
    result = RESUMED[name](mapped)
    assert set(result.params) <= set(fastmmc.METHODS[registry_name(result.method)].parameters)


def test_a_state_of_other_passes_is_made_anew_and_a_damaged_one_refused(
    points, tmp_path, monkeypatch
):
    def solve(X, seed):
        X = blocks.LargeMap(X.filename, X.dtype, "r", X.offset, X.shape)
        X.passes = passes.Passes(tmp_path)
        return run(X, random_state=seed)

    mapped = as_map(points[0], tmp_path)
    first = solve(mapped, 0)
    check_same(solve(mapped, 1), run(mapped, random_state=1))
    written = crash_after(monkeypatch, None)
    check_same(solve(mapped, 0), first)
    assert written
    kept = next(tmp_path.glob("kept-*/0.npy"))
    entry = max(tmp_path.glob("*.pass"))
    for file, at in ((entry, -1), (entry, 0), (kept, -1), (kept, 0)):
        before = file.read_bytes()
        file.write_bytes(before[:at] + bytes([before[at] ^ 1]) * bool(at))
        with pytest.raises(ValueError, match=f"{file.name} is damaged: .*; begin anew"):
            solve(mapped, 0)
        file.write_bytes(before)
    kept.unlink()
    with pytest.raises(ValueError, match="0.npy is damaged: it is gone"):
        solve(mapped, 0)


def load(path, start, stop):
    return np.load(path, mmap_mode="r")[start:stop].copy()


def on_disk(path, n, d, rows=700):
    """A Dask array whose blocks are read from a file by the workers."""
    dask, da = pytest.importorskip("dask"), pytest.importorskip("dask.array")
    bounds = [(start, min(n, start + rows)) for start in range(0, n, rows)]
    parts = [
        da.from_delayed(dask.delayed(load)(path, *at), (at[1] - at[0], d), float) for at in bounds
    ]
    return da.concatenate(parts)


@pytest.mark.jit
@slow
def test_processes_find_what_one_does_though_a_worker_dies(points, mapped, tmp_path):
    distributed = pytest.importorskip("distributed")
    X = on_disk(str(tmp_path / "X.npy"), *points[0].shape)
    expected = run(mapped)
    killed = []
    options = {"threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": 0}
    with distributed.Client(n_workers=2, **options) as client:

        def kill_one(progress):
            in_passes = progress.n_init == 1 and np.isfinite(progress.objective)
            if in_passes and not killed:
                killed.append(min(client.run(os.getpid).values()))
                os.kill(killed[0], signal.SIGKILL)

        check_same(run(X, callback=kill_one), expected)
        assert len(killed) == 1


def parquet_of(X, folder):
    """A Dask array of a Parquet file, as the documentation has it."""
    pq, pa = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    dd = pytest.importorskip("dask.dataframe")
    for at, rows in enumerate(np.array_split(X, 4)):
        pq.write_table(pa.table({"a": rows[:, 0], "b": rows[:, 1]}), folder / f"{at}.parquet")
    return dd.read_parquet(folder)


# Of pandas 3.1 to Dask 2026.8, which calls it.
pandas_in_dask = pytest.mark.filterwarnings("ignore:The inplace keyword")


@pandas_in_dask
def test_a_parquet_file_by_dask(points, mapped, tmp_path):
    (tmp_path / "t").mkdir()
    frame = parquet_of(points[0], tmp_path / "t")
    X = frame.to_dask_array(lengths=True)
    assert X.numblocks == (4, 1)
    for name in ("cluster", "balanced", "evo", "sammc", "cpmmc"):
        result, expected = RESUMED[name](X), RESUMED[name](mapped)
        np.testing.assert_array_equal(np.asarray(result.labels), expected.labels)
    for solve in (fastmmc.cluster, fastmmc.umc_rls):
        with pytest.raises(TypeError, match=r"give X.to_dask_array\(lengths=True\)"):
            solve(frame, 9)


@pytest.mark.jit
@slow
@pandas_in_dask
@pytest.mark.parametrize("n_workers, dies_at", [(1, None), (2, 0.0), (3, 0.4)])
def test_the_choice_does_not_depend_on_workers(points, mapped, tmp_path, n_workers, dies_at):
    distributed = pytest.importorskip("distributed")
    (tmp_path / "t").mkdir()
    X = parquet_of(points[0], tmp_path / "t").to_dask_array(lengths=True)
    expected = fastmmc.cluster(mapped, 9, random_state=0)
    options = {"threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": 0}
    killed = []
    with distributed.Client(n_workers=n_workers, **options) as client:

        def kill_one(progress):
            # The cells, or the features of all points, are on the workers by then.
            if dies_at is not None and not killed and progress.fraction > dies_at:
                killed.append(min(client.run(os.getpid).values()))
                os.kill(killed[0], signal.SIGKILL)

        check_same(fastmmc.cluster(X, 9, random_state=0, callback=kill_one), expected)
    assert len(killed) == (dies_at is not None)


def test_restarts_do_not_depend_on_who_runs_them(blobs):
    from joblib import parallel_config

    from fastmmc.distributed import fit_restarts

    X, _ = blobs
    given = {"n_init": 4, "random_state": 1, "sizes": "free"}
    started = time.perf_counter()
    one = fit_restarts("umc-rls", X, 3, **given)
    assert one.seconds > 0.5 * (time.perf_counter() - started)  # of all restarts
    assert one.objective == one.objectives.min() == one.objectives[one.best_init]
    assert one.params["n_init"] == 4
    with parallel_config(backend="threading", n_jobs=2):
        check_same(fit_restarts(fastmmc.umc_rls, X, 3, **given), one)
    shaking = {"method": "shaking", "target_sizes": [30, 25, 20]}
    shaken = fit_restarts("umc-rls", X, 3, n_init=2, random_state=0, **shaking)
    assert shaken.params["method"] == "shaking" and shaken.objectives.size == 2
    of_factor = fit_restarts("umc_rls", fastmmc.factor(X), 3, **given)
    np.testing.assert_allclose(of_factor.objective, one.objective)
    client = pytest.importorskip("distributed").Client
    with client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0"):
        with parallel_config(backend="dask"):
            check_same(fit_restarts("umc-rls", X, 3, **given), one)
            assert fit_restarts("iter-svr", X, n_init=2, random_state=0).objectives.size == 2
    with pytest.raises(ValueError, match="method"):
        fit_restarts("k-means", X, 3)
    with pytest.raises(ValueError, match="n_init"):
        fit_restarts("umc-rls", X, 3, n_init=0)
    with pytest.raises(ValueError, match="has n_init; cluster has none"):
        fit_restarts(fastmmc.cluster, X, 3)
    with pytest.raises(TypeError, match="method must make one clustering; it made a list"):
        fit_restarts(fastmmc.umc_rls_path, X, 3, lams=[0.1])
