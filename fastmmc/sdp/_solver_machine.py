"""Support vector machines without a bias on a Gram matrix: what labels are worth, and a model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import nnls
from sklearn.svm import SVC

from fastmmc.margin import MarginModel

# LIBSVM's tolerance: of the margins, which are 1.
TOLERANCE = 1e-8

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
    machine = SVC(kernel="precomputed", C=0.5 * C, tol=TOLERANCE)
    machine.fit(np.block([[K, -K], [-K, K]]), np.concatenate((y, -y)))
    both = np.zeros(2 * n)
    both[machine.support_] = machine.dual_coef_[0]
    u = both[:n] - both[n:]
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
    factor = cholesky(K * np.outer(y, y), lower=True)
    ones = solve_triangular(factor, np.ones(y.size), lower=True)
    a, _ = nnls(factor.T, ones, maxiter=MOST_STEPS * y.size)
    u = a * y
    return Machine(u, float(a.sum()))


def make_model(machine, points, kernel, K, constant=None):
    """Return the machine as a model of new points.

    Parameters
    ----------
    machine : Machine
        Trained on K, or on the centred K with a constant added.
    points : (n, d) array
        Training points; with a precomputed kernel their Gram matrix.
    kernel : Kernel
        With its widths set.
    K : (n, n) float64 array
        Gram matrix of the points, not centred.
    constant : float, optional
        What was added to the centred Gram matrix; None: K was not centred.

    Returns
    -------
    MarginModel
        In centred features the mean of all points is at the origin: the coefficients sum to 0, and
        what is left of the mean is the intercept.
    """
    coef, intercept = machine.u, 0.0
    if constant is not None:
        coef = machine.u - machine.u.mean()
        intercept = constant * machine.u.sum() - coef @ K.mean(axis=0)
    n_features = points.shape[1]
    if kernel.name != "precomputed":
        return MarginModel(kernel, points, coef, float(intercept), n_features)
    return MarginModel(kernel, points[:1], coef, float(intercept), n_features, np.arange(coef.size))


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
