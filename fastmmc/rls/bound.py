"""A spectral lower bound on the risk: how far a result can be from the best labelling."""

import numpy as np
from scipy.linalg import eigvalsh
from scipy.sparse.linalg import LinearOperator, eigsh

from fastmmc.core import memory
from fastmmc.kernels.cholesky import invert_triangle
from fastmmc.kernels.factors import LowRankFactor, eigh_seconds, weights_of

# Up to this many points the matrix is reduced to a tridiagonal one; above, the eigenvalues come
# from Lanczos. That is slow where the largest ones are close together: on digits, n = 1797,
# lam = 0.25, it takes three times as long.
DIRECT = 2_000


def risk_bound(factor, lower, upper, check_time=lambda ahead=0.0: None):
    """Return a number that Q = k n + (4 - k) e^T R e - 4 tr(E^T R E) is never below.

    Let the sizes be s_1 >= ... >= s_k and E = V diag(s)^1/2, with orthonormal columns V. Any h of
    them have tr(V_h^T R V_h) <= L_h, the sum of the h largest eigenvalues of R (Ky Fan), and as
    the span of all k holds e, tr(V^T R V) <= T = e^T R e / n + the sum of the k - 1 largest
    eigenvalues of R on the complement of e. So

        tr(E^T R E) <= sum_h<k (s_h - s_h+1) L_h + s_k min(T, L_k),

    which is largest where the h largest sizes are as large as the bounds let them be. The result
    is at least 0, as Q is. With weights n is their sum and e has their roots, as R is scaled by
    these. ``check_time`` is called with the seconds that an eigendecomposition takes, or between
    two products of an iterative one; what it raises ends the work.
    """
    k, n = len(lower), factor.n if factor.weights is None else float(factor.weights.sum())
    largest, centred, total = _spectrum(factor, k, check_time)
    # What one more point in the h-th largest cluster can add; decreasing in h.
    weights = largest.copy()
    weights[-1] = min(total / n + centred.sum(), largest.sum()) - largest[:-1].sum()
    # How many points the h largest clusters can have: their upper bounds, or what the lower bounds
    # of the others leave.
    most = np.cumsum(np.sort(upper)[::-1])
    left = n - np.cumsum(np.sort(lower))[-2::-1]
    most[:-1] = np.minimum(most[:-1], left)
    most[-1] = n
    within = np.sum((weights - np.append(weights[1:], 0.0)) * most)
    return max(0.0, float(k * n + (4 - k) * total - 4 * within))


def free_bound(factor, k, check_time=lambda ahead=0.0: None):
    """Return a number that the cost sum_h (1 - e_h^T R e_h / s_h) is never below: k - L_k above."""
    return max(0.0, k - float(_spectrum(factor, k, check_time)[0].sum()))


def _spectrum(factor, k, check_time):
    """Return the k largest eigenvalues of R, the k - 1 largest on the complement of e, and e^T R e.

    All in descending order, padded with zeros.
    """
    _, roots = weights_of(factor)
    unit = roots / np.linalg.norm(roots)
    if isinstance(factor, LowRankFactor):
        check_time(eigh_seconds(factor.rank))
        inverse = invert_triangle(factor.scale)
        inner = np.eye(factor.rank) - factor.lam * inverse @ inverse.T
        z = np.einsum("i,ij->j", unit, factor.Z, dtype=np.float64)
        centred = eigvalsh(inner - np.outer(z, z))
        total = float(roots @ roots) * float(z @ z)
        return _largest(eigvalsh(inner), k), _largest(centred, k - 1), total
    R, n = factor.R, factor.n
    image = np.einsum("ij,j->i", R, unit, dtype=np.float64)
    share = float(unit @ image)
    total = float(roots @ roots) * share
    if n <= DIRECT or 10 * k > n:
        memory.check_memory(n, np.float64, arrays=2, what="matrix of the bound")
        check_time(eigh_seconds(n))
        ahead = np.outer(unit, image - 0.5 * share * unit)
        return _top(R, k), _top(R - ahead - ahead.T, k - 1), total

    def times(x):
        check_time()
        return R @ x.astype(R.dtype, copy=False).ravel()

    def times_centred(x):
        y = times(x - (unit @ x) * unit)
        return y - (unit @ y) * unit

    return _lanczos(times, n, k), _lanczos(times_centred, n, k - 1), total


def _top(A, count):
    """Return the largest eigenvalues of a dense matrix, as :func:`_largest` does."""
    if count == 0:
        return np.empty(0)
    n = A.shape[0]
    values = eigvalsh(A, subset_by_index=[max(0, n - count), n - 1], check_finite=False)
    return _largest(values, count)


def _largest(values, count):
    """Return the largest values in descending order, padded with zeros."""
    values = np.sort(values)[::-1][:count].astype(np.float64)
    return np.pad(np.maximum(values, 0.0), (0, count - values.size))


def _lanczos(times, n, count):
    """Return the largest eigenvalues of a positive semidefinite map, in descending order."""
    if count == 0:
        return np.empty(0)
    operator = LinearOperator((n, n), matvec=times, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(n)
    values = eigsh(operator, count, which="LA", v0=start, return_eigenvectors=False)
    return _largest(values, count)
