"""LIBSVM and LIBLINEAR as scikit-learn ships them, called from worker threads.

scikit-learn's estimators set warning filters, which belong to the whole process: done in a thread,
that can leave them changed for good. And they report an iteration limit only by a warning.
"""

import numpy as np

from fastmmc.core.compat import liblinear, libsvm

# Their numbers for the kinds of machines.
C_SVC, EPSILON_SVR = 0, 3
LINEAR_SQUARED_HINGE, LINEAR_HINGE, LINEAR_SVR = 2, 3, 13

# Room for rows of the Gram matrix, in megabytes.
CACHE = 200


def train_kernel_machine(K, y, C, weights, hinge, epsilon, tol, max_iter):
    """Train a machine f = K u + bias on labels -1 and 1; return u, bias, iterations, ended.

    K is in C order. ``hinge`` chooses hinge loss, else that of regression, where deviations up to
    ``epsilon`` are free; ``ended`` says whether it converged before the limit.
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
    return u, float(sign * intercept[0]), int(np.sum(n_iter)), status == 0


def train_linear_machine(Z, y, C, weights, kind, epsilon, tol, max_iter, seed):
    """Train linear machines, whose bias is penalised too; return W (m, r), b (m,), passes, ended.

    ``kind`` is a ``LINEAR_*``; y are classes 0..k-1, all of which occur, or targets of
    ``LINEAR_SVR``. Two classes have one row, that of class 1. ``tol`` is LIBLINEAR's own criterion.
    """
    liblinear.set_verbosity_wrap(0)
    n_classes = 0 if kind == LINEAR_SVR else int(y.max()) + 1
    raw, n_iter = liblinear.train_wrap(
        Z,
        np.array(y, dtype=np.float64),
        False,
        kind,
        tol,
        1.0,  # the feature whose weight is the bias
        C,
        np.ones(n_classes),
        max_iter,
        seed,
        epsilon,
        weights,
    )
    most = int(np.max(n_iter))
    return np.ascontiguousarray(raw[:, :-1]), raw[:, -1].copy(), most, most < max_iter
