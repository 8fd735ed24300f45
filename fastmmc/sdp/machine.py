"""Support vector machines without a bias on a Gram matrix: the value of labels, and a model."""

from contextlib import suppress
from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky, eigh, solve_triangular
from scipy.optimize import nnls

from fastmmc.kernels.models import KernelModel
from fastmmc.sdp.relaxation import import_cvxpy, mean_diagonal

# Most steps of the active set method, as a multiple of n; it takes about n.
MOST_STEPS = 30


class Machine(NamedTuple):
    """A support vector machine without a bias, trained on labels: f = K u.

    ``value`` is |w|^2 + 2 C sum_i max(0, 1 - y_i f_i), or |w|^2 for a hard margin.
    """

    u: np.ndarray
    value: float
    ended: bool = True  # whether the solver did, so that the value is the least


def train_soft(K, y, C):
    """Train with the hinge loss on labels ``y`` -1 and 1; the value is never below the optimum."""
    cp = import_cvxpy()
    # Solvers have absolute tolerances, which are meant for values of about 1.
    scale = mean_diagonal(K) or 1.0
    values, vectors = eigh(K / scale)
    is_kept = values > y.size * np.finfo(np.float64).eps * values[-1]
    roots, vectors = np.sqrt(values[is_kept]), vectors[:, is_kept]
    if roots.size == 0:  # all points are at the origin
        return _with_value(K, y, C, np.zeros(y.size), True)
    w = cp.Variable(roots.size)
    losses = cp.pos(1.0 - cp.multiply(y, (vectors * roots) @ w))
    objective = cp.sum_squares(w) + 2.0 * C * scale * cp.sum(losses)
    with suppress(cp.SolverError):
        cp.Problem(cp.Minimize(objective)).solve(solver="CLARABEL")
    ended = w.value is not None
    weights = w.value if ended else roots * (vectors.T @ y)  # or the sum of all y_i phi(x_i)
    u = vectors @ (weights / roots) / scale
    machines = [_with_value(K, y, C, u, ended)]
    least = float((y * (K @ u)).min())
    if least > 0:
        # With a large C the loss that the tolerance leaves would outweigh the norm.
        machines.append(_with_value(K, y, C, u / least, ended))
    return min(machines, key=lambda machine: machine.value)


def _with_value(K, y, C, u, ended):
    """Return the machine of given coefficients."""
    f = K @ u
    return Machine(u, float(u @ f) + 2.0 * C * float(np.maximum(0.0, 1.0 - y * f).sum()), ended)


def train_hard(K, y):
    """Train with a hard margin, min |w|^2 where y_i f_i >= 1, on a positive definite K; exact.

    The dual, min 0.5 a^T Q a - e^T a over a >= 0 with Q = K o y y^T, is a least squares problem
    with non-negative variables.
    """
    # The active set method has absolute tolerances, which are meant for values of about 1.
    scale = mean_diagonal(K)
    factor = cholesky(K / scale * np.outer(y, y), lower=True)
    ones = solve_triangular(factor, np.ones(y.size), lower=True)
    a, _ = nnls(factor.T, ones, maxiter=MOST_STEPS * y.size)
    a /= scale
    return Machine(a * y, float(a.sum()))


def make_model(machine, data, constant):
    """Return the machine as a model of new points; ``data`` holds the points and their K.

    ``constant`` is what was added to the centred K that the machine was trained on, None if that
    was K itself.
    """
    coef, intercept, kernel = machine.u, 0.0, data.kernel
    points = data.points.copy()  # kept, whatever becomes of what was given
    if constant is not None:
        # The mean of all points is at the origin: the coefficients sum to 0, and what is left of
        # the mean is the intercept.
        coef = machine.u - machine.u.mean()
        intercept = constant * machine.u.sum() - coef @ data.K.mean(axis=0)
    if data.mean is not None:
        intercept -= (coef @ points) @ data.mean
    indices = None
    n_features = points.shape[1]
    if kernel.name == "precomputed":
        points, indices = points[:1], np.arange(coef.size)
    return KernelModel(
        kernel, points, coef[:, None], n_features, float(intercept), indices, binary=True
    )


def centre(K):
    """Return H K H with H = I - e e^T / n, exactly 0 where only rounding is left."""
    means = K.mean(axis=0)
    centred = K - means - means[:, None] + means.mean()
    if np.abs(centred).max() <= 1e-13 * np.abs(K).max():
        return np.zeros_like(K)
    return 0.5 * (centred + centred.T)
