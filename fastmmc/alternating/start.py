"""The first labels of an alternation."""

import numpy as np
from scipy.sparse import issparse
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigsh
from sklearn.utils.extmath import row_norms

from fastmmc.core import memory
from fastmmc.core.execution import OutOfTime
from fastmmc.data.sizes import balanced_random_labels
from fastmmc.kernels.cholesky import mirror_lower
from fastmmc.kernels.gram import (
    BLOCK,
    Kernel,
    dense_rows,
    fill_lower_gram,
    kernel_diagonal,
    kernel_points,
    median_width,
)
from fastmmc.kernels.kmeans import k_means, scale_rows

STARTS = ("farthest", "kmeans", "ncut", "random")

# Tolerance of the eigenvector of a normalised cut.
CUT_TOLERANCE = 1e-6


def first_labels(init, points, kernel, weights, rng, look=lambda: None):
    """Return labels 0 and 1 (n,), both of which occur, as ``init``, one of STARTS or labels, says.

    ``points`` (n, d) may be the Gram matrix. If ``look`` raises OutOfTime, labels are random.
    """
    n = points.shape[0]
    labels = init
    if isinstance(init, str):
        labels = np.zeros(n, dtype=np.int64)
        try:
            if kernel.name == "precomputed" and init != "random":
                labels = _of_gram(init, points, rng, look)
            elif init != "random":
                labels = _of_points(init, points, weights, rng, look)
        except OutOfTime:
            pass  # the run ends as soon as it has labels
    if 0 < labels.sum() < n:
        return labels
    return balanced_random_labels(n, 2, rng)


def _of_points(init, points, weights, rng, look):
    seed = int(rng.integers(2**31))
    if init == "ncut":
        kernel = Kernel("rbf", sigma=median_width(points))
        graph = gram_matrix(kernel, points, look, "graph of init='ncut'")
        return _normalised_cut(graph, seed, look)
    if init == "kmeans":
        return k_means(points, 2, seed, weights, look=look)[0]
    # Squares of float32 points far from 1 could leave the range of the type.
    rows, _ = scale_rows(points)
    norms = row_norms(rows, squared=True)

    def distances_to(i):
        row = rows[[i]].toarray()[0] if issparse(rows) else rows[i]
        return norms - 2.0 * np.asarray(rows @ row)

    far = list(_far_pair(distances_to, rng.integers(points.shape[0])))
    return k_means(points, 2, seed, weights, dense_rows(points, far), look)[0]


def _of_gram(init, K, rng, look):
    if init == "ncut":
        if K.min() < 0:
            raise ValueError(
                "init='ncut' needs kernel values that are not negative, as weights of a graph; "
                f"the least one given is {K.min():.3g}"
            )
        return _normalised_cut(K, int(rng.integers(2**31)), look)
    diag = kernel_diagonal(Kernel("precomputed"), K)

    def distances_to(i):
        return diag - 2.0 * K[i]

    i, j = _far_pair(distances_to, rng.integers(K.shape[0]))
    return (diag[j] + distances_to(j) < diag[i] + distances_to(i)).astype(np.int64)


def _far_pair(distances_to, i):
    """Return the point farthest from point i, and the one farthest from that, by such distances."""
    first = int(np.argmax(distances_to(i)))
    return first, int(np.argmax(distances_to(first)))


def gram_matrix(kernel, points, look, what="Gram matrix"):
    """Return the kernel values of all points, (n, n) float64; ``what`` names them in errors."""
    n = points.shape[0]
    memory.check_memory(n, np.dtype(np.float64), what=what)
    K = np.empty((n, n))
    points = kernel_points(kernel, points).astype(np.float64, copy=False)
    fill_lower_gram(kernel, points, K, lambda share: look())
    mirror_lower(K, look=look)
    return K


def _normalised_cut(affinity, seed, look):
    """Cut a graph in two by D^-1/2 times the second eigenvector of D^-1/2 A D^-1/2."""
    n = affinity.shape[0]
    degrees = affinity.sum(axis=1, dtype=np.float64)
    roots = np.sqrt(np.where(degrees > 0, degrees, 1.0))
    first = np.where(degrees > 0, roots, 0.0)
    first /= np.linalg.norm(first) or 1.0

    def multiply(v):
        # Without the first eigenvector, whose value is 1, and with all other values raised above 0.
        v = np.ravel(v)
        v = v - first * (first @ v)
        scaled, out = v / roots, np.empty(n)
        for start in range(0, n, BLOCK):
            look()
            rows = slice(start, start + BLOCK)
            out[rows] = affinity[rows] @ scaled
        out = out / roots + v
        return out - first * (first @ out)

    operator = LinearOperator((n, n), matvec=multiply, dtype=np.float64)
    guess = np.random.default_rng(seed).standard_normal(n)
    try:
        vector = eigsh(operator, 1, which="LA", v0=guess, tol=CUT_TOLERANCE)[1][:, 0]
    except ArpackNoConvergence as error:
        found = error.eigenvectors
        vector = found[:, 0] if found.size else guess
    except ArpackError:
        vector = guess
    return k_means((vector / roots)[:, None], 2, seed, look=look)[0]
