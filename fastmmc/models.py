"""What tells new points apart: scores linear in kernel values, or distances to centers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.preprocessing import StandardScaler

from fastmmc import _loops_centers as kernels
from fastmmc import validation
from fastmmc._display import OneLine
from fastmmc.gram import BLOCK, Kernel, dense_rows, kernel_product

# Sparse points are made dense in blocks of at most this many numbers.
DENSE_NUMBERS = 2**22


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
    scaler: StandardScaler | None = None  # of points, before anything else; B is scaled

    @property
    def points(self):
        """B in the units of the training X."""
        return self.basis if self.scaler is None else self.scaler.inverse_transform(self.basis)

    def decision_function(self, X):
        """Return the (m, k) float64 scores of new points, or of their precomputed kernel values.

        The largest score tells the cluster. A ``binary`` model returns -f(x) and f(x).
        """
        dtype = self.basis.dtype if self.dtype is None else self.dtype
        X = validation.check_new_points(X, self.kernel, self.n_features, dtype)
        X = X if self.scaler is None else self.scaler.transform(X)
        f = kernel_product(self.kernel, X, self.basis, self.coef, self.indices) + self.intercept
        return np.hstack((-f, f)) if self.binary else f


@dataclass(frozen=True, eq=False, repr=False)
class Space(OneLine):
    """The space of centers: that of the points, or Nystroem features k(x, B) T of a kernel."""

    n_features: int  # columns of the points
    dtype: np.dtype  # of the training points
    kernel: Kernel = Kernel("linear")  # of the features, with its widths set
    basis: np.ndarray | None = None  # (b, d) float64, the landmarks B; None: no features
    to_Z: np.ndarray | None = None  # (b, r) float64, the matrix T
    indices: np.ndarray | None = None  # (b,) int64, which training points B are, if they are

    @property
    def has_features(self):
        """Whether centers are in the features of a kernel."""
        return self.basis is not None

    def rows(self, X):
        """Return points as rows of the space: X itself, or its (n, r) features."""
        if not self.has_features:
            return X
        return kernel_product(self.kernel, X, self.basis, self.to_Z, self.indices)


@dataclass(frozen=True, eq=False, repr=False)
class CenterModel(OneLine):
    """Centers, (m, d) float64, to the nearest of which new points are assigned."""

    centers: np.ndarray
    space: Space
    # Whether scores are squared distances, as competitive learning minimises them, or plain ones.
    squared: bool = True

    def distances(self, X):
        """Return the squared distances of new points to the centers, (n, m) float64."""
        space = self.space
        X = validation.check_new_points(X, space.kernel, space.n_features, space.dtype)
        distances = np.empty((X.shape[0], self.centers.shape[0]))
        for block in row_blocks(X.shape[0], self.centers.shape[1]):
            self._fill(X[block], distances[block])
        return distances

    def assign(self, X):
        """Return the nearest centers of checked points, (n,) int64, and the distances to them."""
        labels, squares = np.empty(X.shape[0], dtype=np.int64), np.empty(X.shape[0])
        for block in row_blocks(X.shape[0], self.centers.shape[1]):
            found = np.empty((X[block].shape[0], self.centers.shape[0]))
            self._fill(X[block], found)
            labels[block] = nearest = found.argmin(axis=1)
            squares[block] = found[np.arange(nearest.size), nearest]
        return labels, np.sqrt(squares)

    def _fill(self, X, squares):
        """Write the (n, m) squared distances, summed in the order that the family trains with.

        So training points keep their labels where centers are about equally far.
        """
        fill = kernels.all_distances if self.squared else kernels.all_distances_in_order
        fill(dense_rows(self.space.rows(X), slice(None)), self.centers, squares)

    def decision_function(self, X):
        """Return minus the distances of new points to the centers, squared if ``squared``.

        An (n, m) float64 array; the largest score of a point names its cluster.
        """
        distances = self.distances(X)
        return -distances if self.squared else -np.sqrt(distances)


def row_blocks(n, width):
    """Return slices of n rows, small enough to be made dense with ``width`` columns."""
    size = max(1, min(BLOCK, DENSE_NUMBERS // width))
    return [slice(start, start + size) for start in range(0, n, size)]
