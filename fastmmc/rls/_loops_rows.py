"""Products of rows of the hat factor Z, the one place for every search that moves points on it.

They are summed in double precision whatever the dtype of Z is. So a search descends on one and the
same quadratic form, in which swapping two equal points changes nothing; with products rounded to
single precision it may seem to gain a little for ever.
"""

import numpy as np

from fastmmc._jit import njit_sum


@njit_sum
def row_dot(A, i, B, j):
    """Return A[i] . B[j] in double precision."""
    total = 0.0
    for c in range(A.shape[1]):
        total += np.float64(A[i, c]) * np.float64(B[j, c])
    return total


@njit_sum
def shift_row(W, h, Z, i, scale):
    """Add scale * Z[i] to W[h]."""
    for c in range(W.shape[1]):
        W[h, c] += scale * np.float64(Z[i, c])
