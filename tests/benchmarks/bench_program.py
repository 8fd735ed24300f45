"""The compiled active-set solver of the cutting-plane programs, beside daqp.

pytest tests/benchmarks -o python_files='bench_*.py' --benchmark-enable
"""

import numpy as np
import pytest

from fastmmc.cutting_plane._loops_program import solve_program

D = 50


def make_program(n_planes):
    """Return the program of so many random planes over a thousand points: Q, q, A, r."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=1000)
    X = rng.standard_normal((1000, D))
    X[:, :10] += 1.4 * (y[:, None] - 0.5)
    rng = np.random.default_rng(1)
    planes, offsets, heights = [], [], []
    for _ in range(n_planes):
        w = 0.2 * rng.standard_normal(D) + np.eye(D)[0]
        f = X @ w
        signs = np.where(np.abs(f) < 1.0, np.sign(f), 0.0)
        planes.append(signs @ (X - X.mean(axis=0)) / len(X))
        offsets.append(signs.mean())
        heights.append(np.abs(signs).mean())
    N = n_planes + 3
    Q, A = np.zeros((N, N)), np.zeros((2, N))
    Q[3:, 3:] = np.array(planes) @ np.array(planes).T
    A[0, 2:] = 1.0
    A[1, :2] = -1.0, 1.0
    A[1, 3:] = offsets
    return Q, np.concatenate(([-0.03, -0.03, 0.0], heights)), A, np.array([10.0, 0.0])


def solve(Q, q, A, r):
    """Solve a program from nothing."""
    a, y = np.zeros(q.size), np.empty(2)
    a[0], a[2] = -1.0, r[0]
    solve_program(Q, q, A, r, a, y, 50 * q.size)
    return a


def value(Q, q, a):
    return 0.5 * a @ Q @ a - q @ a


@pytest.mark.benchmark(group="solve_program")
@pytest.mark.parametrize("planes", [10, 50, 200])
def test_solve_program(benchmark, planes):
    program = make_program(planes)
    solve(*make_program(3))  # compiles
    benchmark(solve, *program)


@pytest.mark.benchmark(group="solve_program")
@pytest.mark.parametrize("planes", [10, 50, 200])
def test_daqp(benchmark, planes):
    daqp = pytest.importorskip("daqp")
    Q, q, A, r = make_program(planes)
    upper = np.concatenate((np.full(q.size, 1e30), r))
    lower = np.concatenate((np.zeros(q.size), r))
    sense = np.concatenate((np.zeros(q.size), np.full(2, 5))).astype(np.int32)
    theirs = benchmark(lambda: daqp.solve(Q, -q, A, upper, lower, sense)[0])
    assert np.isclose(value(Q, q, solve(Q, q, A, r)), value(Q, q, theirs))
