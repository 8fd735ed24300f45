"""How a kernel machine with two classes tells new points apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fastmmc import validation
from fastmmc._display import OneLine
from fastmmc.gram import Kernel, kernel_product


@dataclass(frozen=True, eq=False, repr=False)
class MarginModel(OneLine):
    """A kernel machine for two classes: f(x) = k(x, X) coef + intercept.

    Attributes
    ----------
    kernel : Kernel
        With its widths set.
    X : (b, d) array
        Points that the coefficients belong to: support vectors or landmarks.
    coef : (b,) float64 array
        Coefficients.
    intercept : float
        Added to k(x, X) coef.
    n_features : int
        Columns of the training X.
    indices : (b,) int64 array or None
        Which training points X are; used with a precomputed kernel.
    """

    kernel: Kernel
    X: np.ndarray
    coef: np.ndarray
    intercept: float
    n_features: int
    indices: np.ndarray | None = None

    def decision_function(self, X):
        """Return the scores of both clusters for new points.

        Parameters
        ----------
        X : (m, d) array_like or sparse matrix
            New points; with a precomputed kernel their (m, n) kernel values.

        Returns
        -------
        (m, 2) float64 array
            -f(x) and f(x).
        """
        X = validation.check_new_points(X, self.kernel, self.n_features, self.X.dtype)
        f = kernel_product(self.kernel, X, self.X, self.coef[:, None], self.indices)[:, 0]
        f += self.intercept
        return np.column_stack((-f, f))
