"""Models that predict new points by scores that are linear in kernel values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fastmmc import validation
from fastmmc._display import OneLine
from fastmmc.gram import Kernel, kernel_product


@dataclass(frozen=True, eq=False, repr=False)
class KernelModel(OneLine):
    """Scores f(x) = k(x, B) C + b, which predict new points."""

    kernel: Kernel
    # (b, d) points B: training points, support vectors, landmarks, or the weights themselves where
    # the kernel is linear.
    basis: np.ndarray
    coef: np.ndarray  # (b, m) float64: C, one column a score
    n_features: int  # columns of the training X
    intercept: float | np.ndarray = 0.0
    indices: np.ndarray | None = None  # (b,) training points in B, for precomputed kernel values
    binary: bool = False  # the sign of a single score tells two clusters apart
    dtype: np.dtype | None = None  # of the training X; None: that of B

    def decision_function(self, X):
        """Return the (m, k) float64 scores of new points, or of their precomputed kernel values.

        The largest score tells the cluster. A ``binary`` model returns -f(x) and f(x).
        """
        dtype = self.basis.dtype if self.dtype is None else self.dtype
        X = validation.check_new_points(X, self.kernel, self.n_features, dtype)
        f = kernel_product(self.kernel, X, self.basis, self.coef, self.indices) + self.intercept
        return np.hstack((-f, f)) if self.binary else f
