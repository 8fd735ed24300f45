"""What tells new points apart: scores that are linear in kernel values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fastmmc import validation
from fastmmc._display import OneLine
from fastmmc.gram import Kernel, kernel_product


@dataclass(frozen=True, eq=False, repr=False)
class KernelModel(OneLine):
    """Scores f(x) = k(x, B) C + b.

    Attributes
    ----------
    kernel : Kernel
        With its widths set.
    basis : (b, d) array
        Points B that the coefficients belong to: training points, support vectors, landmarks, or
        the weights themselves where the kernel is linear.
    coef : (b, m) float64 array
        Coefficients C, one column a score.
    n_features : int
        Columns of the training X.
    intercept : float or (m,) float64 array, default=0.0
        Added to the scores.
    indices : (b,) int64 array, optional
        Which training points B are; used with a precomputed kernel.
    binary : bool, default=False
        Whether the sign of a single score tells two clusters apart.
    dtype : numpy.dtype, optional
        Of the training X; None: that of B.
    """

    kernel: Kernel
    basis: np.ndarray
    coef: np.ndarray
    n_features: int
    intercept: float | np.ndarray = 0.0
    indices: np.ndarray | None = None
    binary: bool = False
    dtype: np.dtype | None = None

    def decision_function(self, X):
        """Return the scores of all clusters for new points.

        Parameters
        ----------
        X : (m, d) array_like or sparse matrix
            New points; with a precomputed kernel their (m, n) kernel values.

        Returns
        -------
        (m, k) float64 array
            Scores; the largest one names the cluster. For two clusters by signs -f(x) and f(x).
        """
        dtype = self.basis.dtype if self.dtype is None else self.dtype
        X = validation.check_new_points(X, self.kernel, self.n_features, dtype)
        f = kernel_product(self.kernel, X, self.basis, self.coef, self.indices) + self.intercept
        return np.hstack((-f, f)) if self.binary else f
