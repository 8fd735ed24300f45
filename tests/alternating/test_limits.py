"""Training ends at whatever parameters, in time, and says where rounding ended it."""

import faulthandler
import time

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import fastmmc
from fastmmc import Status
from fastmmc.alternating import machines, rounds
from fastmmc.alternating.machines import DualMachine, LibsvmMachine
from fastmmc.core.execution import OutOfTime, RunControl

FUNCTIONS = {f.__name__: f for f in (fastmmc.iter_svr, fastmmc.iter_svm)}


@pytest.fixture(autouse=True)
def hard_timeout():
    faulthandler.dump_traceback_later(120, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture
def points(rng):
    return rng.standard_normal((60, 3))


EXTREMES = [
    {"solver": "libsvm", "C": 1e10},
    {"solver": "libsvm", "C": 1e10, "tol": 1e-5},
    {"solver": "libsvm", "tol": 2e-13},
    {"C": 1e10, "tol": 1e-5},
    {"C": 4e12},
    {"tol": 2e-13},
    {"sample_weight": True},
    {"sample_weight": True, "solver": "libsvm"},
    {"rank": 20, "tol": 1e-15, "C": 1e10},
    {"rank": 20, "C": 1e10, "solver": "linear"},
]
# Each of them with the functions in turn; the other pairs are slow tests.
PAIRS = [
    pytest.param(
        name,
        extreme,
        id=f"{extreme}-{name}",
        marks=() if (row + column) % len(FUNCTIONS) == 0 else pytest.mark.slow,
    )
    for row, extreme in enumerate(EXTREMES)
    for column, name in enumerate(FUNCTIONS)
]


@pytest.mark.jit
@pytest.mark.filterwarnings("default::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name, extreme", PAIRS)
def test_it_ends_and_does_not_claim_what_is_not_so(name, extreme, points, rng):
    if "sample_weight" in extreme:
        extreme = extreme | {"sample_weight": 1e9 * rng.uniform(1.0, 2.0, 60)}
    result = FUNCTIONS[name](points, n_init=1, random_state=0, max_iter=2, max_time=10, **extreme)
    assert result.status in (Status.CONVERGED, Status.NUMERICAL, Status.MAX_ITER, Status.TIME_LIMIT)
    if result.status == Status.CONVERGED and result.duality_gap is not None:
        most = 1e-3 if extreme.get("solver") == "libsvm" else extreme.get("tol", 1e-3)
        assert result.duality_gap <= max(most, 1e-9) * result.objective


@pytest.mark.jit
@pytest.mark.filterwarnings("default::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("given", "advice"),
    [
        ({"C": 5e11}, "C is 5e\\+11: give a lower C, or a larger tol"),
        (
            {"sample_weight": np.full(60, 1e9)},
            "C times the largest weight is 5e\\+11: .* or sample_weight with a mean of 1",
        ),
    ],
    ids=["C", "weights"],
)
def test_a_machine_short_of_its_tolerance_comes_with_advice(given, advice, points):
    with pytest.warns(ConvergenceWarning, match=advice):
        given = given | {"solver": "smo", "n_init": 1, "random_state": 0, "max_iter": 2}
        result = fastmmc.iter_svr(points, **given)
    assert result.status == Status.NUMERICAL and result.duality_gap > 1e-3 * result.objective


@pytest.mark.jit
@pytest.mark.parametrize(
    "given", [{"C": 4e12}, {"sample_weight": np.full(60, 8e9)}], ids=["C", "weights"]
)
def test_a_machine_of_large_costs_reaches_its_tolerance(given, points):
    result = fastmmc.iter_svr(points, n_init=1, random_state=0, **given)
    assert result.status == Status.CONVERGED
    assert result.duality_gap <= 1e-3 * result.objective


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(
    "extreme",
    [
        {"tol": 1e-300},
        {"tol": 1e-12, "C": 1e10},
        {"solver": "libsvm", "tol": 1e-300},
        {"sample_weight": np.full(60, 1e13)},
        {"rank": 9, "tol": 1e-17},
    ],
    ids=str,
)
def test_a_tolerance_below_the_rounding_is_refused(name, extreme, points):
    with pytest.raises(ValueError, match=r"tol must be at least .* C=.* weight of"):
        FUNCTIONS[name](points, **extreme)


def problem(rng, n=200):
    X = rng.standard_normal((n, 3))
    K = np.exp(-0.01 * ((X[:, None] - X) ** 2).sum(axis=2))
    return K, np.where(rng.random(n) < 0.5, -1.0, 1.0)


@pytest.mark.parametrize("hinge", [False, True])
def test_the_dual_solver_gives_up_where_rounding_leaves_no_way_on(rng, hinge):
    K, y = problem(rng, 60)
    machine = DualMachine(K, np.full(60, 1e14), hinge, 0.0, 1e-12)
    machine.begin(y)
    slices = 0
    while not machine.step(10**7):
        slices += 1
        assert slices < 1000
    assert machine.capped


def test_slices_of_the_dual_solver_are_short_and_change_nothing(rng):
    K, y = problem(rng)
    found = []
    for budget in (1, 10**12):
        machine = DualMachine(K, np.full(200, 500.0), False, 0.0, 1e-3)
        machine.begin(y)
        n_slices = 1
        while not machine.step(budget):
            n_slices += 1
        found.append(machine.u.copy())
        assert budget > 1 or n_slices > 100
    np.testing.assert_array_equal(*found)


def test_libsvm_works_in_slices_that_change_nothing(rng, monkeypatch):
    K, y = problem(rng)
    found = []
    for operations in (10**9, 10):
        monkeypatch.setattr(machines, "FIRST_OPERATIONS", operations)
        machine = LibsvmMachine(K, np.full(200, 500.0), False, 0.0, 1e-3, RunControl())
        machine.begin(y)
        n_slices = 1
        while not machine.step(1):
            n_slices += 1
        found.append(machine.u.copy())
    assert n_slices > 2
    np.testing.assert_array_equal(*found)


def test_libsvm_leaves_a_training_that_has_no_time(rng, monkeypatch):
    monkeypatch.setattr(machines, "FIRST_OPERATIONS", 10)
    K, y = problem(rng)
    late = RunControl(max_time=1e-6, started=time.perf_counter())
    machine = LibsvmMachine(K, np.full(200, 1e6), False, 0.0, 1e-3, late)
    machine.begin(y)
    with pytest.raises(OutOfTime):
        while not machine.step(1):
            pass
    assert machine.u.any()


@pytest.mark.parametrize("solver", ["libsvm", "linear"])
def test_a_library_that_has_no_time_still_gives_labels(points, solver):
    rank = 20 if solver == "linear" else None
    with pytest.warns(ConvergenceWarning, match="time limit"):
        result = fastmmc.iter_svr(points, C=1e8, solver=solver, rank=rank, max_time=1e-6, n_init=1)
    assert result.status == Status.TIME_LIMIT
    assert result.sizes.sum() == 60 and result.sizes.min() > 0
    np.testing.assert_array_equal(result.predict(points).shape, (60,))


def test_a_refit_that_is_cut_short_says_so(points, monkeypatch):
    monkeypatch.setattr(rounds, "REFIT_BUDGET", 1)

    def leave(self):
        raise OutOfTime

    # The dual solver itself never looks at the clock.
    monkeypatch.setattr(RunControl, "check_time", leave)
    gram = np.exp(-((points[:, None] - points) ** 2).sum(axis=2))
    with pytest.warns(ConvergenceWarning, match="time limit"):
        result = fastmmc.iter_svr(gram, kernel="precomputed", refit=True, n_init=1, max_time=60)
    assert result.status == Status.TIME_LIMIT
    np.testing.assert_array_equal(result.predict(gram), result.labels)


@pytest.mark.parametrize("function", [*FUNCTIONS.values(), fastmmc.iter_ls_svm])
@pytest.mark.parametrize("init", ["farthest", "kmeans", "ncut", "random"])
@pytest.mark.parametrize("given", [{}, {"rank": 9}], ids=str)
@pytest.mark.parametrize("scale", [1e30, 1e-30])
def test_single_precision_points_of_any_size(function, init, given, scale, points):
    # A power of two, so that the points are the same but for their unit.
    factor = np.float32(2.0 ** round(np.log2(scale)))
    single = points.astype(np.float32)
    near, far = (
        function(X, init=init, random_state=0, n_init=2, **given) for X in (single, single * factor)
    )
    assert far.objective == pytest.approx(near.objective, rel=1e-6)
    np.testing.assert_array_equal(far.labels, near.labels)
    assert np.isfinite(far.history).all() and np.isfinite(far.predict(single * factor)).all()


@pytest.mark.parametrize("function", [*FUNCTIONS.values(), fastmmc.iter_ls_svm])
@pytest.mark.parametrize(
    "given",
    [
        {"kernel": "linear"},
        {"kernel": "linear", "rank": 9},
        {"kernel": "poly", "degree": 9},
        {"kernel": "poly", "degree": 9, "rank": 9},
    ],
    ids=str,
)
@pytest.mark.parametrize("max_time", [None, 1e-9])
def test_products_out_of_range_are_refused(function, given, max_time, points):
    with pytest.raises(ValueError, match="kernel=.* too large for these points"):
        function(points * 1e80, max_time=max_time, **given)


@pytest.mark.parametrize("given", [{"rank": 20}, {"kernel": "linear"}, {"C": 1e-17}], ids=str)
def test_weights_beyond_any_number_of_points_have_no_size_bounds(given, points):
    weights = 1e18 * (1 + np.arange(len(points)) % 3)
    result = fastmmc.iter_ls_svm(points, sample_weight=weights, random_state=0, **given)
    assert result.converged and result.size_bounds is None


@pytest.mark.parametrize("given", [{"C": 1e20}, {"sample_weight": np.full(99, 1e19)}])
def test_a_ridge_that_is_lost_in_rounding_comes_with_advice(given):
    X = np.linspace(0.0, 1.0, 99)[:, None]
    with pytest.raises(ValueError, match="not positive definite .* up to .*: give a lower C"):
        fastmmc.iter_ls_svm(X, n_init=1, random_state=0, **given)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("offset", [100.0, 1e5])
def test_an_offset_changes_nothing_for_a_linear_kernel(name, offset):
    rng = np.random.default_rng(1)
    points = rng.normal(size=(40, 2))
    points[:20] += 3
    here, there = (
        FUNCTIONS[name](X, kernel="linear", n_init=2, random_state=0)
        for X in (points, points + offset)
    )
    assert there.converged and there.objective == pytest.approx(here.objective, rel=1e-4)
    np.testing.assert_array_equal(there.predict(points + offset), there.labels)


@pytest.mark.parametrize("function", [*FUNCTIONS.values(), fastmmc.iter_ls_svm])
def test_small_points_keep_their_labels_beside_a_constant(function, points):
    X = 1e-10 * points
    result = function(X, kernel="linear", C=1.0, coef0=1.0, random_state=0)
    np.testing.assert_array_equal(result.predict(X), result.labels)
    assert result.params["coef0"] == 1.0


@pytest.mark.parametrize("function", [*FUNCTIONS.values(), fastmmc.iter_ls_svm])
def test_single_precision_points_far_from_zero_keep_their_labels(function):
    X = np.random.default_rng(1).normal(1e6, 3.0, (3000, 3)).astype(np.float32)
    result = function(X, kernel="linear", n_init=1, random_state=0)
    np.testing.assert_array_equal(result.predict(X), result.labels)


@pytest.mark.parametrize(("top", "given"), [(256, {"kernel": "poly", "rank": 50}), (65536, {})])
def test_least_squares_of_features_of_many_digits(top, given):
    """Weights from the dual variables lose all digits there."""
    colours = np.random.default_rng(0).integers(0, top, (300, 3)).astype(float)
    given = {"kernel": "linear"} | given
    result = fastmmc.iter_ls_svm(colours, random_state=0, **given)
    f, y = result.decision_function(colours)[:, 1], 2 * result.labels - 1
    np.testing.assert_array_equal(result.predict(colours), result.labels)
    # The result predicts by a bias between the clusters; the loss is that of the best one.
    loss = np.sum((f - np.mean(f - y) - y) ** 2)
    assert 2 * result.params["C"] * loss <= result.objective * (1 + 1e-6)
