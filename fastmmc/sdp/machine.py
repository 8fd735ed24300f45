"""Support vector machines without a bias on a Gram matrix: what labels are worth, and a model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import nnls

from fastmmc._libsvm import train_kernel_machine
from fastmmc.models import KernelModel

# LIBSVM's tolerance: of the margins, which are 1.
TOLERANCE = 1e-8

# LIBSVM's steps, where its tolerance is below the rounding: a second or so.
MOST_ITERATIONS = 1_000_000

# Steps of the active set method, as a multiple of n; it takes about n.
MOST_STEPS = 30


@dataclass(frozen=True, eq=False)
class Machine:
    """A support vector machine without a bias, trained on labels.

    Attributes
    ----------
    u : (n,) float64 array
        Dual coefficients: f = K u.
    value : float
        |w|^2 + 2 C sum_i max(0, 1 - y_i f_i), or |w|^2 where the margin is hard.
    """

    u: np.ndarray
    value: float


def train_soft(K, y, C):
    """Train with the hinge loss: min |w|^2 + 2 C sum_i max(0, 1 - y_i f_i).

    LIBSVM always has a bias. Every point is given a second time, mirrored at the origin and with
    the opposite label: then a bias of 0 is optimal, and both copies share the loss.

    Parameters
    ----------
    K : (n, n) float64 array
        Gram matrix.
    y : (n,) float64 array
        Labels -1 and 1.
    C : float
        Weight of the loss.

    Returns
    -------
    Machine
        Its value is never below the least one.
    """
    n = y.size
    # LIBSVM has absolute tolerances, which are meant for values of about 1.
    scale = mean_diagonal(K) or 1.0
    Q = K / scale
    both = train_kernel_machine(
        np.block([[Q, -Q], [-Q, Q]]),
        np.concatenate((y, -y)),
        0.5 * C * scale,
        np.ones(2 * n),
        True,
        0.0,
        TOLERANCE,
        MOST_ITERATIONS,
    ).u
    u = (both[:n] - both[n:]) / scale
    machines = [_with_value(K, y, C, u)]
    least = float((y * (K @ u)).min())
    if least > 0:
        # With a large C the loss that the tolerance leaves would outweigh the norm.
        machines.append(_with_value(K, y, C, u / least))
    return min(machines, key=lambda machine: machine.value)


def _with_value(K, y, C, u):
    """Return coefficients with their value."""
    f = K @ u
    return Machine(u, float(u @ f) + 2.0 * C * float(np.maximum(0.0, 1.0 - y * f).sum()))


def train_hard(K, y):
    """Train with a hard margin: min |w|^2 where y_i f_i >= 1 for all i.

    The dual, min 0.5 a^T Q a - e^T a over a >= 0 with Q = K o y y^T, is a least squares problem
    with non-negative variables.

    Parameters
    ----------
    K : (n, n) float64 array
        Gram matrix, positive definite.
    y : (n,) float64 array
        Labels -1 and 1.

    Returns
    -------
    Machine
        Exact but for rounding.
    """
    # The active set method has absolute tolerances, which are meant for values of about 1.
    scale = mean_diagonal(K)
    factor = cholesky(K / scale * np.outer(y, y), lower=True)
    ones = solve_triangular(factor, np.ones(y.size), lower=True)
    a, _ = nnls(factor.T, ones, maxiter=MOST_STEPS * y.size)
    a /= scale
    return Machine(a * y, float(a.sum()))


def make_model(machine, points, mean, kernel, K, constant=None):
    """Return the machine as a model of new points.

    Parameters
    ----------
    machine : Machine
        Trained on K, or on the centred K with a constant added.
    points : (n, d) array
        Training points, less ``mean``; with a precomputed kernel their Gram matrix.
    mean : (d,) float64 array or None
        What was subtracted from the points, where the kernel is linear; None: nothing.
    kernel : Kernel
        With its widths set.
    K : (n, n) float64 array
        Gram matrix of the points, not centred.
    constant : float, optional
        What was added to the centred Gram matrix; None: K was not centred.

    Returns
    -------
    KernelModel
        In centred features the mean of all points is at the origin: the coefficients sum to 0, and
        what is left of the mean is the intercept.
    """
    coef, intercept = machine.u, 0.0
    if constant is not None:
        coef = machine.u - machine.u.mean()
        intercept = constant * machine.u.sum() - coef @ K.mean(axis=0)
    if mean is not None:
        intercept -= (coef @ points) @ mean
    indices = None
    n_features = points.shape[1]
    if kernel.name == "precomputed":
        points, indices = points[:1], np.arange(coef.size)
    return KernelModel(
        kernel, points, coef[:, None], n_features, float(intercept), indices, binary=True
    )


def mean_diagonal(K):
    """Return the mean squared norm of the points.

    Parameters
    ----------
    K : (n, n) float64 array
        Gram matrix.

    Returns
    -------
    float
        trace(K) / n.
    """
    return float(np.mean(np.diagonal(K)))


def centre(K):
    """Return the Gram matrix of the points with their mean moved to the origin of feature space.

    Parameters
    ----------
    K : (n, n) float64 array
        Gram matrix.

    Returns
    -------
    (n, n) float64 array
        H K H with H = I - e e^T / n; exactly 0 where only rounding is left.
    """
    means = K.mean(axis=0)
    centred = K - means - means[:, None] + means.mean()
    if np.abs(centred).max() <= 1e-13 * np.abs(K).max():
        return np.zeros_like(K)
    return 0.5 * (centred + centred.T)
