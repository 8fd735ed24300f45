"""The machines against each other: the compiled dual solver, LIBSVM, the interior-point method."""

from functools import partial

import numpy as np
import pytest

from fastmmc.alternating import _loops_interior, interior, machines
from fastmmc.alternating.interior import InteriorMachine, _Core
from fastmmc.alternating.machines import (
    DualMachine,
    LeastSquaresMachine,
    LibsvmMachine,
    LinearMachine,
    box,
    dense_solver,
    feature_solver,
)
from fastmmc.core.execution import RunControl

# Hinge or not, epsilon.
KINDS = [(False, 0.0), (False, 0.3), (True, 0.0)]


def problem(n=60, width=2.0, seed=0):
    """Gram matrix of a wide kernel, its square root, labels with some noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)
    K = np.exp(-((X[:, None] - X) ** 2).sum(-1) / width**2)
    w, V = np.linalg.eigh(K)
    return K, V * np.sqrt(np.maximum(w, 0.0)), y


def train(machine, y, budget=10**9):
    machine.begin(y)
    while not machine.step(budget):
        pass
    return machine


def dual_value(machine):
    return machine.objective - machine.gap


@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize(("hinge", "epsilon"), KINDS)
def test_all_machines_agree(hinge, epsilon, C):
    K, Z, y = problem()
    cost = np.full(y.size, C)
    ours = train(DualMachine(K, cost, hinge, epsilon, 1e-6), y)
    libsvm = train(LibsvmMachine(K, cost, hinge, epsilon, 1e-6, RunControl()), y)
    interior = train(InteriorMachine(Z, cost, hinge, epsilon, 1e-8), y)
    assert dual_value(ours) == pytest.approx(dual_value(libsvm), rel=1e-6)
    assert dual_value(interior) == pytest.approx(dual_value(libsvm), rel=1e-6)
    assert np.allclose(ours.scores + ours.bias, interior.scores + interior.bias, atol=1e-2)


@pytest.mark.parametrize("machine", [DualMachine, InteriorMachine])
@pytest.mark.parametrize(("hinge", "epsilon"), KINDS)
def test_solutions_are_feasible_and_their_gap_is_true(machine, hinge, epsilon):
    K, Z, y = problem()
    cost = np.linspace(0.5, 5.0, y.size)
    found = train(machine(K if machine is DualMachine else Z, cost, hinge, epsilon, 1e-5), y)
    lower, upper = box(y, cost, hinge)
    assert (lower - 1e-9 <= found.u).all() and (found.u <= upper + 1e-9).all()
    assert abs(found.u.sum()) < 1e-6
    f = found.scores + found.bias
    losses = np.maximum(0.0, 1.0 - y * f if hinge else np.abs(f - y) - epsilon)
    assert found.objective == pytest.approx(found.norm + 2.0 * cost @ losses)
    dual = 2.0 * (found.u @ y - epsilon * np.abs(found.u).sum()) - found.u @ K @ found.u
    assert dual_value(found) == pytest.approx(dual, rel=1e-6)
    assert 0.0 <= found.relative_gap() <= 1e-5
    if machine is DualMachine:
        assert np.allclose(found.scores, K @ found.u, atol=1e-8)
    else:  # its weights are variables of their own; the gap bounds how far apart they are
        assert np.allclose(found.scores, Z @ found.w)
        assert np.sum((found.w - Z.T @ found.u) ** 2) <= found.gap


def test_slices_change_nothing():
    K, Z, y = problem()
    cost = np.full(y.size, 50.0)
    for make in (
        lambda: DualMachine(K, cost, False, 0.0, 1e-5),
        lambda: InteriorMachine(Z, cost, False, 0.0, 1e-6),
    ):
        assert np.array_equal(train(make(), y).u, train(make(), y, budget=1).u)


def test_parts_change_the_way_and_not_the_solution(monkeypatch):
    K, _, y = problem(80)
    cost = np.full(y.size, 20.0)
    in_parts = train(DualMachine(K, cost, False, 0.0, 1e-6), y)
    monkeypatch.setattr(machines, "LARGEST_PART", 0.0)  # every part is all points
    whole = train(DualMachine(K, cost, False, 0.0, 1e-6), y)
    assert dual_value(in_parts) == pytest.approx(dual_value(whole), rel=1e-6)


@pytest.mark.parametrize(("hinge", "epsilon"), KINDS)
def test_a_warm_start_comes_to_the_same_end(hinge, epsilon):
    K, _, y = problem()
    cost = np.full(y.size, 10.0)
    warm = train(DualMachine(K, cost, hinge, epsilon, 1e-6), y)
    other = y.copy()
    other[:7] *= -1
    train(warm, other)
    cold = train(DualMachine(K, cost, hinge, epsilon, 1e-6), other)
    assert dual_value(warm) == pytest.approx(dual_value(cold), rel=1e-6)
    assert np.allclose(warm.scores, K @ warm.u, atol=1e-8)


@pytest.mark.parametrize("n_flips", [0, 4, 100])
@pytest.mark.parametrize(("hinge", "epsilon"), KINDS)
def test_the_interior_point_method_on_parts(monkeypatch, hinge, epsilon, n_flips):
    monkeypatch.setattr(interior, "LEAST_PART", 20)
    _, Z, y = problem(200)
    Z, cost = Z[:, -8:], np.linspace(1.0, 5.0, y.size)
    found = train(InteriorMachine(Z, cost, hinge, epsilon, 1e-7), y)
    other = y.copy()
    other[:n_flips] *= -1
    sizes = []
    monkeypatch.setattr(
        interior, "_Core", lambda Z, *a, make=_Core: sizes.append(len(Z)) or make(Z, *a)
    )
    train(found, other)
    whole = train(InteriorMachine(Z, cost, hinge, epsilon, 1e-7), other)
    assert found.relative_gap() <= 1e-7
    assert found.objective == pytest.approx(whole.objective, rel=1e-6)
    assert sizes[0] == 20
    if n_flips < 100:
        assert sizes[-2] < 200  # the last one is that of the other machine


def test_weights_that_are_expected_change_the_way_only(monkeypatch):
    monkeypatch.setattr(interior, "LEAST_PART", 20)
    _, Z, y = problem(200)
    Z, cost = Z[:, -8:], np.full(y.size, 5.0)
    whole = train(InteriorMachine(Z, cost, False, 0.0, 1e-7), y)
    for w in (whole.w, -whole.w, np.zeros(8)):
        found = InteriorMachine(Z, cost, False, 0.0, 1e-7)
        found.expect(w, whole.bias)
        assert train(found, y).objective == pytest.approx(whole.objective, rel=1e-6)


def test_an_interior_point_that_rounding_stops(monkeypatch):
    monkeypatch.setattr(interior, "LEAST_PART", 20)
    monkeypatch.setattr(interior, "MOST_ITERATIONS", 4)
    _, Z, y = problem(200)
    found = train(InteriorMachine(Z[:, -8:], np.full(y.size, 5.0), False, 0.0, 1e-7), y)
    assert found.capped
    assert found.relative_gap() > 1e-7
    train(found, -y)  # from a part to all points, where it ends
    assert found.capped
    assert not found.refine()


@pytest.mark.parametrize(
    "machine",
    [DualMachine, InteriorMachine, partial(LibsvmMachine, control=RunControl())],
    ids=["dual", "interior", "libsvm"],
)
def test_refine(machine):
    K, Z, y = problem()
    cost = np.full(y.size, 10.0)
    found = train(machine(Z if machine is InteriorMachine else K, cost, False, 0.0, 1e-2), y)
    gap = found.relative_gap()
    assert found.refine()
    while not found.step(10**9):
        pass
    assert found.relative_gap() < 0.5 * gap


def test_giving_up(monkeypatch):
    monkeypatch.setattr(machines, "MOST_STEPS", 1)
    K, _, y = problem()
    found = train(DualMachine(K, np.full(y.size, 1e4), False, 0.0, 1e-9), y)
    assert found.capped
    assert not found.refine()
    assert found.gap > 0.0


@pytest.mark.parametrize("machine", ["dual", "interior"])
def test_points_that_are_all_equal(machine):
    n = 10
    cost, y = np.full(n, 5.0), np.repeat([-1.0, 1.0], 5)
    if machine == "dual":
        found = train(DualMachine(np.ones((n, n)), cost, False, 0.0, 1e-6), y)
    else:
        found = train(InteriorMachine(np.ones((n, 1)), cost, False, 0.0, 1e-6), y)
    assert found.objective == pytest.approx(2 * 5.0 * n)


def test_least_squares_machine():
    K, Z, y = problem()
    cost = np.linspace(0.5, 5.0, y.size)
    dense = train(LeastSquaresMachine(dense_solver(K, 0.5 / cost)), y)
    # The optimality conditions of |w|^2 + 2 sum cost_i (f_i - y_i)^2.
    f = dense.scores + dense.bias
    assert np.allclose(dense.u, 2 * cost * (y - f))
    assert dense.u.sum() == pytest.approx(0.0, abs=1e-9)
    assert np.allclose(dense.scores, K @ dense.u)
    features = train(LeastSquaresMachine(feature_solver(Z, 0.5 / cost)), y)
    assert np.allclose(features.scores, dense.scores, atol=1e-6)
    assert np.allclose(Z @ features.w, features.scores, atol=1e-6)


@pytest.mark.parametrize(("hinge", "epsilon"), KINDS)
def test_liblinear_comes_near(hinge, epsilon):
    _, Z, y = problem()
    cost = np.ones(y.size)
    exact = train(InteriorMachine(Z, cost, hinge, epsilon, 1e-8), y)
    linear = train(LinearMachine(Z, cost, hinge, epsilon, 1e-6, 0, RunControl()), y)
    assert np.corrcoef(linear.scores, exact.scores)[0, 1] > 0.95
    assert np.isnan(linear.relative_gap()) and not linear.refine()


def random_parts(rng):
    """Return two parts of six variables each, half a unit above their lower bounds."""
    names = _loops_interior.Parts._fields[1:]
    parts = _loops_interior.Parts(
        np.array([1.0, -1.0]), **{name: rng.uniform(1.0, 2.0, (2, 6)) for name in names}
    )
    return parts._replace(low=parts.v - 0.5, high=parts.v + parts.high)


@pytest.mark.parametrize("corrected", [False, True])
def test_the_right_hand_sides_are_those_of_the_formula(rng, corrected):
    parts = random_parts(rng)
    second_low, second_high = corrected * parts.dv * (parts.dz_low, parts.dz_high)
    low = (0.3 - second_low) / 0.5 - parts.z_low
    high = (0.3 + second_high) / (parts.high - parts.v) - parts.z_high
    h = np.empty(6)
    _loops_interior.aim(parts, 0.3, corrected, h)
    np.testing.assert_allclose(parts.dz_low, low)
    np.testing.assert_allclose(parts.dz_high, high)
    np.testing.assert_allclose(parts.rhs, low - high - parts.residual)
    np.testing.assert_allclose(h, parts.sign @ (parts.weight * parts.rhs))


@pytest.mark.parametrize("length", [0.0, 0.2])
def test_the_mean_product_of_slacks_and_multipliers_is_that_of_the_formula(rng, length):
    parts = random_parts(rng)
    v = parts.v + length * parts.dv
    low = (parts.z_low + length * parts.dz_low) * (v - parts.low)
    high = (parts.z_high + length * parts.dz_high) * (parts.high - v)
    expected = np.mean([low, high])
    assert _loops_interior.complementarity(parts, length) == pytest.approx(expected, rel=1e-12)
