"""LIBSVM and LIBLINEAR as scikit-learn has them, called for worker threads.

The estimators around them set warning filters, which belong to the whole process: in a thread that
leaves them changed for good. And they cannot say that a limit of iterations ended them but by a
warning.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.svm import _liblinear as liblinear
from sklearn.svm import _libsvm as libsvm

# Their numbers of the kinds of machines.
C_SVC, EPSILON_SVR = 0, 3
LINEAR_SQUARED_HINGE, LINEAR_HINGE, LINEAR_SVR = 2, 3, 13

# Room for rows of the Gram matrix, in megabytes.
CACHE = 200


@dataclass(frozen=True, eq=False)
class Trained:
    """A machine f = K u + bias.

    Attributes
    ----------
    u : (n,) float64 array
        Dual coefficients.
    bias : float
        Its bias.
    n_iter : int
        Iterations.
    ended : bool
        Whether it came to its end before the limit.
    """

    u: np.ndarray
    bias: float
    n_iter: int
    ended: bool


def train_kernel_machine(K, y, C, weights, hinge, epsilon, tol, max_iter):
    """Train a support vector machine on a Gram matrix.

    Parameters
    ----------
    K : (n, n) float64 array
        Gram matrix, C-order.
    y : (n,) float64 array
        Labels -1 and 1.
    C : float
        Weight of the loss.
    weights : (n,) float64 array
        Of the points.
    hinge : bool
        Hinge loss; else that of regression.
    epsilon : float
        Deviations up to it cost nothing in regression.
    tol : float
        Violation of the optimality conditions to stop at.
    max_iter : int
        Iterations at most.

    Returns
    -------
    Trained
        The machine.

    Examples
    --------
    >>> y = np.array([-1.0, 1.0])
    >>> train_kernel_machine(np.eye(2), y, 10.0, np.ones(2), True, 0.0, 1e-6, 100).u
    array([-1.,  1.])
    """
    libsvm.set_verbosity_wrap(0)
    support, _, _, coef, intercept, _, _, status, n_iter = libsvm.fit(
        K,
        (y > 0).astype(np.float64) if hinge else y,
        svm_type=C_SVC if hinge else EPSILON_SVR,
        kernel="precomputed",
        C=C,
        sample_weight=weights,
        class_weight=np.ones(2) if hinge else np.empty(0),
        epsilon=epsilon,
        tol=tol,
        cache_size=CACHE,
        max_iter=max_iter,
    )
    # For LIBSVM the first class is the positive one.
    sign = -1.0 if hinge else 1.0
    u = np.zeros(y.size)
    u[support] = sign * coef[0]
    return Trained(u, float(sign * intercept[0]), int(np.sum(n_iter)), status == 0)


def train_linear_machine(Z, y, C, weights, kind, epsilon, tol, max_iter, seed):
    """Train linear machines, whose bias is penalised too.

    Parameters
    ----------
    Z : (n, r) float64 array
        Features, C-order.
    y : (n,) array
        Classes 0..k-1, each of which occurs; of two the weights are those of class 1. For
        ``LINEAR_SVR`` targets.
    C : float
        Weight of the loss.
    weights : (n,) float64 array
        Of the points.
    kind : int
        ``LINEAR_SQUARED_HINGE``, ``LINEAR_HINGE`` or ``LINEAR_SVR``.
    epsilon : float
        Deviations up to it cost nothing in regression.
    tol : float
        LIBLINEAR's own criterion.
    max_iter : int
        Passes at most.
    seed : int
        LIBLINEAR visits the points in random order.

    Returns
    -------
    W : (m, r) float64 array
        Weights: a row a class, one row of two classes and of targets.
    b : (m,) float64 array
        Biases.
    n_iter : int
        Passes of the machine that took most.
    ended : bool
        Whether all came to their end before the limit.

    Examples
    --------
    >>> Z, y = np.array([[-1.0], [1.0]]), np.array([0, 1])
    >>> out = train_linear_machine(Z, y, 9.0, np.ones(2), LINEAR_HINGE, 0.0, 1e-4, 1000, 0)
    >>> np.round(out[0], 3), out[3]
    (array([[1.]]), True)
    """
    liblinear.set_verbosity_wrap(0)
    n_classes = 0 if kind == LINEAR_SVR else int(y.max()) + 1
    raw, n_iter = liblinear.train_wrap(
        Z,
        np.array(y, dtype=np.float64),
        False,
        kind,
        tol,
        1.0,  # of the feature that stands for the bias
        C,
        np.ones(n_classes),
        max_iter,
        seed,
        epsilon,
        weights,
    )
    most = int(np.max(n_iter))
    return np.ascontiguousarray(raw[:, :-1]), raw[:, -1].copy(), most, most < max_iter
