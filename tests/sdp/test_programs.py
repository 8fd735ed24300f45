"""The programs against their formulas, the machines, and bounds that hold for every labelling."""

import time

import numpy as np
import pytest
from sklearn.svm import SVC

from fastmmc import Status
from fastmmc.core.execution import RunControl
from fastmmc.kernels.gram import Kernel
from fastmmc.sdp.machine import centre, train_hard, train_soft
from fastmmc.sdp.methods import _size_limits, penalised_kernel
from fastmmc.sdp.relaxation import SOLVERS, relax_gmmc, relax_mmc

pytest.importorskip("cvxpy")

import cvxpy as cp

from tests.sdp import naive

C_E = 10.0
C_DELTA = 100.0
RIDGE = 1e-3


def points(seed, n=10, apart=2.0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 2)) + apart * (np.arange(n) % 2)[:, None]


def gram(X, sigma=2.0):
    return Kernel("rbf", sigma=sigma).block(X, X)


def labels(seed, n=10):
    y = np.where(np.arange(n) % 2 == 0, -1.0, 1.0)
    return np.random.default_rng(seed).permutation(y)


def ridged(K):
    return K + RIDGE * np.trace(centre(K)) / len(K) * np.eye(len(K))


def penalised(K, C_e=C_E):
    return penalised_kernel(K, RIDGE, 1.0 / (C_e * len(K) ** 2))


@pytest.mark.parametrize("C", [0.1, 1.0, 50.0])
@pytest.mark.parametrize("seed", range(2))
def test_for_fixed_labels_the_program_is_the_svm_without_bias(seed, C):
    K, y = centre(gram(points(seed))), labels(seed)
    value = train_soft(K, y, C).value
    for twin in (naive.svm_primal, naive.svm_dual, naive.svm_as_program):
        assert twin(K, y, C) == pytest.approx(value, rel=1e-4), twin.__name__


@pytest.mark.parametrize(("scale", "C"), [(1.0, 100.0), (1e3, 1.0), (1e3, 100.0)])
def test_wide_linear_kernels_are_trained_to_the_end(scale, C):
    """Decomposition by pairs of points does not get there in a million steps."""
    X = np.random.default_rng(9).normal(size=(30, 2))
    X[:10] += 4
    X[10:20] -= 4
    y = np.where(np.arange(30) < 10, 1.0, -1.0)
    Z = np.column_stack((scale * X, np.ones(30)))
    value = train_soft(Z @ Z.T, y, C).value
    w = cp.Variable(3)
    losses = cp.sum(cp.pos(1 - cp.multiply(y, Z / scale @ w)))
    least = cp.Problem(cp.Minimize(cp.sum_squares(w) / scale**2 + 2 * C * losses))
    assert value == pytest.approx(least.solve(solver="CLARABEL"), rel=1e-5)


@pytest.mark.parametrize("C", [1e4, 1e8])
def test_a_large_C_makes_the_margin_hard(C):
    X, y = points(0, apart=30.0), np.where(np.arange(10) % 2 == 0, -1.0, 1.0)
    K = centre(gram(X))
    hard = train_hard(K + 1e-9 * np.eye(10), y).value
    assert train_soft(K, y, C).value == pytest.approx(hard, rel=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_for_fixed_signs_gmmc_is_the_hard_margin(seed):
    K, y = gram(points(seed)), labels(seed)
    for C_e in (1e-2, 10.0):
        machine = train_hard(penalised(K, C_e), y)
        twin = naive.fixed_signs(ridged(K), y, C_e)
        assert machine.value == pytest.approx(twin, rel=1e-5)
        f = penalised(K, C_e) @ machine.u
        assert machine.u @ f == pytest.approx(machine.value)
        assert (y * f).min() >= 1 - 1e-8
    # Without C_e: the hard-margin machine with a bias.
    svc = SVC(kernel="precomputed", C=1e9, tol=1e-8).fit(ridged(K), y)
    u = svc.dual_coef_[0]
    norm = u @ ridged(K)[np.ix_(svc.support_, svc.support_)] @ u
    assert naive.fixed_signs(ridged(K), y, 0.0) == pytest.approx(norm, rel=1e-3)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    ("C", "largest", "least"), [(1.0, 2.0, 0.0), (20.0, 0.5, 0.0), (1.0, 10.0, 6.0)]
)
def test_mmc_is_its_program(solver, C, largest, least):
    K = centre(gram(points(3)))
    value, M = naive.mmc(K, C, largest, least)
    found = relax_mmc(K, C, least, largest, solver, RunControl())
    assert (found.status, found.solver_status) == (Status.CONVERGED, "optimal")
    assert found.bound == pytest.approx(value, rel=1e-3)
    assert found.bound <= value * (1 + 1e-6)
    np.testing.assert_allclose(np.diag(found.matrix), 1.0, atol=1e-3)
    assert np.abs(found.matrix.sum(axis=1)).max() <= largest + 1e-2
    # The optimal M need not be unique where the value is the same.
    assert np.linalg.eigvalsh(found.matrix)[0] > -1e-3


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("C_delta", "C_e"), [(100.0, 10.0), (0.5, 1.0), (100.0, 1e3)])
def test_gmmc_is_its_program(solver, C_delta, C_e):
    K = gram(points(4))
    value = naive.gmmc(ridged(K), C_delta, C_e)
    found = relax_gmmc(penalised(K, C_e), C_delta, solver, RunControl())
    assert found.status == Status.CONVERGED
    assert found.bound == pytest.approx(value, rel=1e-3)
    assert found.bound <= value * (1 + 1e-6)
    gamma = found.multipliers
    assert gamma.sum() == found.bound and 0 <= gamma.min() and gamma.max() <= C_delta
    slack = np.linalg.inv(penalised(K, C_e)) - np.diag(gamma)
    assert np.linalg.eigvalsh(slack)[0] > -1e-6
    # Strong duality: W is the solution of min <P, W> + C_delta sum delta, W_ii + delta_i >= 1.
    W = found.matrix
    primal = np.sum(np.linalg.inv(penalised(K, C_e)) * W)
    primal += C_delta * np.maximum(0.0, 1.0 - np.diag(W)).sum()
    assert primal == pytest.approx(value, rel=1e-2)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("balance", "targets", "sizes"), [(0.2, None, (4, 6)), (0, [7, 3], (3, 3))]
)
def test_no_labelling_is_below_the_bound_of_mmc(seed, balance, targets, sizes):
    K = centre(gram(points(seed, apart=1.0)))
    least, largest = _size_limits(10, balance, targets, 1, None)
    bound = relax_mmc(K, 1.0, least, largest, "SCS", RunControl()).bound
    values = [train_soft(K, y, 1.0).value for y in naive.labellings(10, *sizes)]
    assert bound <= min(values)
    # It is worth something, even where the sizes are far from those of the clusters.
    assert bound > 0.5 * min(values)


@pytest.mark.parametrize("seed", range(3))
def test_weak_duality_of_gmmc(seed):
    K = gram(points(seed, n=9, apart=1.0))
    bound = relax_gmmc(penalised(K), C_DELTA, "SCS", RunControl()).bound
    values = [train_hard(penalised(K), y).value for y in naive.labellings(9, 0, 9)]
    assert 0.3 * min(values) < bound <= min(values)
    rng = np.random.default_rng(seed)
    for _ in range(300):
        z, lam = rng.standard_normal(9) * rng.uniform(0, 2), rng.standard_normal()
        assert naive.gmmc_cost(ridged(K), z, lam, C_DELTA, C_E) >= bound


def test_a_small_C_e_makes_the_bound_trivial():
    """(e; -1) gives sum gamma <= C_e n^2, what all points in one cluster cost."""
    K = gram(points(0))
    for C_e in (1e-4, 1e-3):
        found = relax_gmmc(penalised(K, C_e), C_DELTA, "SCS", RunControl())
        assert found.bound == pytest.approx(C_e * 100, rel=1e-4)
        one = naive.fixed_signs(ridged(K), np.ones(10), C_e)
        assert one == pytest.approx(C_e * 100, rel=1e-4)
    assert relax_gmmc(penalised(K, 1e4), C_DELTA, "SCS", RunControl()).bound < 1e-3 * 1e4 * 100


def test_on_clear_clusters_the_relaxation_is_exact():
    X = points(5, n=16, apart=30.0)
    y = np.where(np.arange(16) % 2 == 0, -1.0, 1.0)
    K = centre(gram(X, sigma=10.0))
    found = relax_mmc(K, 1.0, 0.0, 1.0, "SCS", RunControl())
    assert found.bound == pytest.approx(train_soft(K, y, 1.0).value, rel=1e-3)
    np.testing.assert_allclose(found.matrix, np.outer(y, y), atol=0.05)
    K = penalised(gram(X, sigma=10.0))
    assert relax_gmmc(K, C_DELTA, "SCS", RunControl()).bound == pytest.approx(
        train_hard(K, y).value, rel=1e-3
    )


@pytest.mark.parametrize("relax", [relax_mmc, relax_gmmc])
def test_bounds_hold_where_the_solver_was_stopped(relax):
    X = np.random.default_rng(0).standard_normal((40, 3))
    over = RunControl(max_time=1.0, started=time.perf_counter() - 2.0)
    if relax is relax_mmc:
        K = centre(gram(X))
        options = (K, 1.0, 0.0, 2.0, "SCS")
    else:
        K = penalised(gram(X))
        options = (K, C_DELTA, "SCS")
    exact, stopped = relax(*options, RunControl()), relax(*options, over)
    assert stopped.status == Status.TIME_LIMIT and stopped.n_iter < exact.n_iter
    assert stopped.bound <= exact.bound + 1e-3 * abs(exact.bound)
    assert stopped.matrix.shape == (40, 40)
