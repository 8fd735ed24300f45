"""The active-set solver: optimality conditions, other solvers, degenerate programs."""

import numpy as np
import pytest
from scipy.optimize import minimize

from fastmmc.cutting_plane._loops_program import longest_step, solve_program


def make_program(size, rank, n_rows, seed, C=10.0):
    """A program of the family's form; planes depend on each other where rank < size."""
    rng = np.random.default_rng(seed)
    n_extra = 2 if n_rows == 2 else 3
    planes = rng.standard_normal((size, rank))
    N = n_extra + 1 + size
    Q = np.zeros((N, N))
    Q[n_extra + 1 :, n_extra + 1 :] = planes @ planes.T
    q = np.concatenate((np.full(n_extra, -0.03), [0.0], rng.random(size)))
    A = np.zeros((n_rows, N))
    A[0, n_extra:] = 1.0
    if n_rows == 2:
        A[1, :2] = -1.0, 1.0
        A[1, 3:] = rng.uniform(-1.0, 1.0, size)
    else:
        ends = np.array([[-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
        Q[:3, :3] = 0.5 * ends @ ends.T
    r = np.array([C, 0.0])[:n_rows]
    return Q, q, A, r


def first_point(A, r):
    """All weight on xi >= 0; with a bias mu is free though it is zero."""
    a = np.zeros(A.shape[1])
    a[2 if r.size == 2 else 3] = r[0]
    if r.size == 2:
        a[0] = -1.0
    return a


def solve(Q, q, A, r, a=None, max_steps=10_000):
    a = first_point(A, r) if a is None else a.copy()
    y = np.empty(r.size)
    steps = solve_program(Q, q, A, r, a, y, max_steps)
    return a, y, steps


def value(Q, q, a):
    return 0.5 * a @ Q @ a - q @ a


def assert_optimal(Q, q, A, r, a, y):
    slopes = Q @ a - q - A.T @ y
    scale = max(1.0, np.abs(Q @ a).max())
    assert (a >= 0).all()
    np.testing.assert_allclose(A @ a, r, atol=1e-9 * r[0])
    assert slopes.min() >= -1e-9 * scale
    assert np.abs(slopes[a > 0]).max() <= 1e-9 * scale
    # Primal minus dual objective of the program.
    gap = value(Q, q, a) - (r @ y - 0.5 * a @ Q @ a)
    assert abs(gap) <= 1e-6 * abs(value(Q, q, a)) + 1e-11 * r[0]


CASES = [(1, 5), (4, 2), (10, 50), (30, 5), (60, 200)]


@pytest.mark.parametrize("n_rows", [1, 2])
@pytest.mark.parametrize(("size", "rank"), CASES)
@pytest.mark.parametrize("C", [0.01, 10.0, 1e4])
def test_optimality(size, rank, n_rows, C):
    for seed in range(3):
        program = make_program(size, rank, n_rows, seed, C)
        a, y, steps = solve(*program)
        assert steps <= 10_000
        assert_optimal(*program, a, y)


@pytest.mark.jit
@pytest.mark.parametrize("n_rows", [1, 2])
def test_scales_of_the_features_and_of_the_slack(n_rows):
    """Programs that are nearly linear, or whose planes outweigh all else, end and end right."""
    for seed in range(150):
        rng = np.random.default_rng(seed)
        size, rank = (int(n) for n in rng.integers(1, 100, 2))
        C, scale = 10.0 ** rng.uniform(-3, 5), 10.0 ** rng.uniform(-6, 6)
        Q, q, A, r = make_program(size, rank, n_rows, seed, C)
        Q *= scale
        a, y, steps = solve(Q, q, A, r, max_steps=50 * q.size)
        assert steps <= 50 * q.size and (a >= 0).all()
        slopes, lengths = Q @ a - q - A.T @ y, np.sqrt(np.diagonal(Q))
        rounding = 1e-13 * lengths.max() * (lengths @ a)
        most = 1e-9 * max(1.0, np.abs(Q @ a).max()) + rounding
        assert slopes.min() >= -most and np.abs(slopes[a > 0]).max() <= most


@pytest.mark.parametrize("n_rows", [1, 2])
def test_a_general_solver_finds_the_same(n_rows):
    for seed in range(5):
        Q, q, A, r = make_program(6, 4, n_rows, seed)
        a, _, _ = solve(Q, q, A, r)
        found = minimize(
            lambda a, Q=Q, q=q: value(Q, q, a),
            np.maximum(first_point(A, r), 0.0),
            jac=lambda a, Q=Q, q=q: Q @ a - q,
            bounds=[(0, None)] * q.size,
            constraints={"type": "eq", "fun": lambda a, A=A, r=r: A @ a - r},
            options={"maxiter": 500, "ftol": 1e-13},
        )
        assert value(Q, q, a) <= found.fun + 1e-9
        assert value(Q, q, a) == pytest.approx(found.fun, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("n_rows", [1, 2])
@pytest.mark.parametrize(("size", "rank"), CASES)
def test_daqp_is_not_more_exact(size, rank, n_rows):
    daqp = pytest.importorskip("daqp")
    Q, q, A, r = make_program(size, rank, n_rows, 0)
    a, _, _ = solve(Q, q, A, r)
    lower = np.concatenate((np.zeros(q.size), r))
    upper = np.concatenate((np.full(q.size, 1e30), r))
    sense = np.concatenate((np.zeros(q.size), np.full(n_rows, 5))).astype(np.int32)
    x, _, flag, _ = daqp.solve(Q.copy(), -q, A.copy(), upper, lower, sense)
    assert flag > 0
    assert value(Q, q, a) == pytest.approx(value(Q, q, x), rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("n_rows", [1, 2])
@pytest.mark.parametrize(("size", "rank"), CASES)
def test_piqp_is_not_more_exact(size, rank, n_rows):
    piqp = pytest.importorskip("piqp")
    Q, q, A, r = make_program(size, rank, n_rows, 1)
    a, _, _ = solve(Q, q, A, r)
    solver = piqp.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-10
    solver.setup(Q, -q, A, r, None, None, None, np.zeros(q.size), np.full(q.size, np.inf))
    solver.solve()
    assert value(Q, q, a) == pytest.approx(value(Q, q, solver.result.x), rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("n_rows", [1, 2])
def test_a_warm_start_is_shorter(n_rows):
    Q, q, A, r = make_program(40, 20, n_rows, 3)
    a, y, cold = solve(Q, q, A, r)
    if n_rows == 2 and a[:2].max() == 0.0:
        a[0] = -1.0
    again, y, warm = solve(Q, q, A, r, a)
    assert warm <= 12 < cold  # rounds that only undo the ridge
    assert_optimal(Q, q, A, r, again, y)


@pytest.mark.parametrize("n_rows", [1, 2])
def test_equal_planes_and_planes_of_zero(n_rows):
    Q, q, A, r = make_program(12, 6, n_rows, 4)
    twice = np.concatenate((np.arange(q.size), np.arange(q.size - 12, q.size)))
    Q, q, A = Q[np.ix_(twice, twice)], q[twice], np.ascontiguousarray(A[:, twice])
    a, y, _ = solve(Q, q, A, r)
    assert_optimal(Q, q, A, r, a, y)
    nothing = np.zeros_like(Q)
    a, y, _ = solve(nothing, q, A, r)
    assert_optimal(nothing, q, A, r, a, y)


@pytest.mark.parametrize("n_rows", [1, 2])
def test_without_enough_steps_the_point_is_feasible(n_rows):
    Q, q, A, r = make_program(30, 30, n_rows, 5)
    before = np.inf
    for most in (1, 3, 6, 12, 24):
        a, _, steps = solve(Q, q, A, r, max_steps=most)
        assert steps == most + 1
        assert (a >= 0).all()
        np.testing.assert_allclose(A @ a, r, atol=1e-9)
        assert value(Q, q, a) <= before + 1e-12
        before = value(Q, q, a)


@pytest.mark.parametrize("wanted, expected", [(-1e-18, (1.0, -1)), (-1e-3, (1e-18 / 1e-3, 1))])
def test_a_variable_that_is_negative_by_rounding_does_not_block_the_step(wanted, expected):
    a, free = np.array([1.0, 1e-18]), np.array([0, 1])
    share, blocking = longest_step(np.eye(2), np.ones((1, 2)), a, free, np.array([1.0, wanted]))
    assert share == pytest.approx(expected[0], rel=1e-12) and blocking == expected[1]


@pytest.mark.parametrize("n_rows", [1, 2])
@pytest.mark.parametrize("scale", [1e308, np.inf])
def test_numbers_out_of_range_end_the_solver(n_rows, scale):
    Q, q, A, r = make_program(20, 20, n_rows, 6)
    with np.errstate(all="ignore"):
        steps = solve(Q * np.where(Q == 0.0, 1.0, scale), q, A, 1e6 * r, max_steps=500)[2]
    assert steps == 501
