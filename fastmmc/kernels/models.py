"""What tells new points apart: scores linear in kernel values, or distances to centers."""

from dataclasses import replace
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.utils.extmath import row_norms

from fastmmc.core import validation
from fastmmc.core.display import OneLine
from fastmmc.core.saving import stored
from fastmmc.data.metrics import Directions, Distances, Graph
from fastmmc.data.standardization import Scaler
from fastmmc.data.units import warn_of_other_units
from fastmmc.kernels import _loops_centers as kernels
from fastmmc.kernels.gram import (
    BLOCK,
    RADIAL,
    Kernel,
    KernelColumns,
    dense_rows,
    kernel_product,
    products_margin,
)

# Sparse points are made dense in blocks of at most this many numbers.
DENSE_NUMBERS = 2**22

# What a radial kernel says about a point fades with its largest value, from these to their squares,
# and the nearest cluster takes over. Measured on held-out points of 32 tables with two classes and
# six widths: scores with an intercept are right less often than the nearest point of the basis
# where the largest value is below .1 (.71 to .76 against .81 to .82 from .03 to .1, .67 to .71
# against .80 to .82 below .03), and more often above .3 (.85 to .86 against .84). Scores without an
# intercept are right as often down to 1e-300; but probabilities cannot show such differences.
INTERCEPT_FADES = 1e-1
KERNEL_FADES = 1e-8

# How large scores of far points are without an intercept, when scores of points inside are 1: they
# stay above rounding, and probabilities near 1 / k.
FAINT = 1e-3

# From so many numbers of centers on, products screen dense points where distances are added up in
# order. 3,000 points take .14 seconds in place of 1.70 with 200 centers of 2,000 columns, and .05
# in place of .23 with 10 of 5,000, but 20,000 points .014 in place of .005 with 10 of 50.
SCREENED = 2_000


@stored(basis="f:pd", coef="f:bm", intercept="f8:m", indices="i8:b")
class KernelModel(OneLine):
    """Scores f(x) = k(x, B) C + b, which predict new points.

    Far from B, where a radial kernel vanishes, the nearest cluster takes the place of b.
    """

    kernel: Kernel
    # (b, d) points B: training points, support vectors, landmarks, or the weights themselves where
    # the kernel is linear. Sparse if training points were, and wide.
    basis: np.ndarray | csr_array
    coef: np.ndarray  # (b, m) float64: C, one column a score
    n_features: int  # columns of the training X
    intercept: float | np.ndarray = 0.0
    indices: np.ndarray | None = None  # (b,) training points in B, for precomputed kernel values
    binary: bool = False  # the sign of a single score tells two clusters apart
    dtype: np.dtype | None = None  # of the training X; None: that of B
    # What makes points of X, before anything else; B has such points.
    scaler: Scaler | Directions | Distances | Graph | None = None

    @property
    def points(self):
        """B in the units of the training X."""
        return self.basis if self.scaler is None else self.scaler.inverse_transform(self.basis)

    def with_scaler(self, scaler):
        """Return the model that takes X as it was before ``scaler`` made points of it."""
        return replace(self, scaler=scaler, n_features=scaler.n_features)

    @property
    def n_scores(self):
        """How many clusters it tells apart."""
        return 2 if self.binary else self.coef.shape[1]

    def _check_values(self):
        d = self.n_features if self.scaler is None else self.scaler.n_columns
        _check_basis(self.kernel, self.basis, self.coef, self.indices, d)
        if self.binary and self.coef.shape[1] != 1:
            raise ValueError(f"coef has {self.coef.shape[1]} columns, and two clusters need one")
        if not np.isfinite(self.intercept).all():
            raise ValueError("intercept has values that are not finite")
        if self.scaler is not None and self.scaler.n_features != self.n_features:
            raise ValueError(f"scaler has {self.scaler.n_features} columns, not {self.n_features}")

    def decision_function(self, X):
        """Return the (m, k) float64 scores of new points; -f(x) and f(x) if it is ``binary``."""
        dtype = self.basis.dtype if self.dtype is None else self.dtype
        X = check_in_metric(X, self.kernel, self.n_features, dtype, self.scaler)
        if self.kernel.name not in RADIAL:
            return self._scores(X)
        warn_of_other_units(X, self.basis)
        largest = np.empty(X.shape[0])
        scores = self._scores(X, largest)
        b = self._of_both(np.reshape(self.intercept, (1, -1)))
        without_b = _faded(largest, INTERCEPT_FADES)
        share = without_b * np.abs(b).max() + _faded(largest, KERNEL_FADES) * FAINT
        far = np.flatnonzero(share)
        if far.size:
            scores[far] -= without_b[far, None] * b
            scores[far] += share[far, None] * self._nearness(X[far])
        return scores

    def _scores(self, X, largest=None):
        """Return k(x, B) C + b of every cluster, for points as B has them."""
        f = kernel_product(self.kernel, X, self.basis, self.coef, self.indices, largest=largest)
        return self._of_both(f + self.intercept)

    def _of_both(self, f):
        """Return the scores of both clusters if the model is binary, else f itself."""
        return np.hstack((-f, f)) if self.binary else f

    @cached_property
    def _owners(self):
        """The clusters that the points of B are in by the scores."""
        return self._scores(self.basis).argmax(axis=1)

    def _nearness(self, X):
        """Return which clusters are near, (m, k) float64, the nearest having the largest.

        It is the largest k(x, b) of each cluster's points b, relative to that of the nearest one,
        less its mean. So it is continuous in x and never underflows.
        """
        logarithms = np.full((X.shape[0], self.n_scores), -np.inf)
        values_of = KernelColumns(self.kernel, self.basis)
        groups = [(h, np.flatnonzero(self._owners == h)) for h in np.unique(self._owners)]
        for rows in row_blocks(X.shape[0], self.basis.shape[0]):
            with np.errstate(over="ignore", invalid="ignore"):
                values = values_of.logarithms(X[rows])
            for h, members in groups:
                logarithms[rows, h] = values[:, members].max(axis=1)
        # Squares beyond the range of numbers are equally far.
        floor = np.finfo(np.float64).min
        logarithms -= np.maximum(logarithms.max(axis=1, keepdims=True), floor)
        nearness = np.exp(logarithms)
        return nearness - nearness.mean(axis=1, keepdims=True)


def check_in_metric(X, kernel, n_features, dtype, scaler):
    """Return checked new points as ``scaler`` makes them, where there is one."""
    what = "features" if scaler is None else scaler.what
    X = validation.check_new_points(X, kernel, n_features, dtype, what=what)
    return X if scaler is None else scaler.transform(X)


def _faded(largest, start):
    """Return how far kernel values have faded: 0 from ``start`` up, 1 from its square down."""
    with np.errstate(divide="ignore"):
        return np.clip(np.log(largest) / np.log(start) - 1.0, 0.0, 1.0)


@stored(basis="f:pn", to_Z="f8:br", indices="i8:b")
class Space(OneLine):
    """The space of centers: that of the points, or Nystroem features k(x, B) T of a kernel."""

    n_features: int  # columns of the points
    dtype: np.dtype  # of the training points
    kernel: Kernel = Kernel("linear")  # of the features, with its widths set
    basis: np.ndarray | csr_array | None = None  # (b, d) float64, landmarks B; None: no features
    to_Z: np.ndarray | None = None  # (b, r) float64, the matrix T
    indices: np.ndarray | None = None  # (b,) int64, which training points B are, if they are

    def _check_values(self):
        if self.n_features < 1 or (self.to_Z is None) != (self.basis is None):
            raise ValueError("basis and to_Z are not those of a space")
        if self.has_features:
            _check_basis(self.kernel, self.basis, self.to_Z, self.indices, self.n_features)

    @property
    def n_columns(self):
        """Columns of its points."""
        return self.to_Z.shape[1] if self.has_features else self.n_features

    @property
    def has_features(self):
        """Whether centers are in the features of a kernel."""
        return self.basis is not None

    def rows(self, X):
        """Return points as rows of the space: X itself, or its (n, r) features."""
        if not self.has_features:
            return X
        return kernel_product(self.kernel, X, self.basis, self.to_Z, self.indices)


@stored(centers="f8:md")
class CenterModel(OneLine):
    """Centers, (m, d) float64, to the nearest of which new points are assigned."""

    centers: np.ndarray
    space: Space
    # Whether scores are squared distances, as competitive learning minimises them, or plain ones.
    squared: bool = True

    @property
    def n_scores(self):
        """How many clusters it tells apart."""
        return len(self.centers)

    @property
    def n_features(self):
        """Columns of the training X."""
        return self.space.n_features

    def _check_values(self):
        check_centers(self.centers, self.space)

    def distances(self, X):
        """Return the squared distances of new points to the centers, (n, m) float64."""
        X = self._checked(X)
        distances = np.empty((X.shape[0], self.centers.shape[0]))
        for block in row_blocks(X.shape[0], self.centers.shape[1]):
            self._fill(X[block], distances[block])
        return distances

    def nearest(self, X):
        """Return the nearest centers of new points, (n,) int64."""
        return self.assign(self._checked(X))[0]

    def _checked(self, X):
        space = self.space
        return validation.check_new_points(X, space.kernel, space.n_features, space.dtype)

    def assign(self, X):
        """Return the nearest centers of checked points, (n,) int64, and the distances to them."""
        is_worth_it = issparse(X) or (not self.squared and self.centers.size >= SCREENED)
        if is_worth_it and not self.space.has_features:
            labels, squares = screened_nearest(X, self.centers, self.squared)
            return labels, np.sqrt(squares)
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
        """Return minus the distances of new points to the centers, squared if ``squared``."""
        distances = self.distances(X)
        return -distances if self.squared else -np.sqrt(distances)


def screened_nearest(X, centers, squared=True):
    """Return the nearest centers of points, (n,) int64, and the squared distances from them.

    Products of rows, which may be sparse, leave few centers that may be the nearest one.
    ``squared`` is as for :class:`CenterModel`.
    """
    labels, squares = np.empty(X.shape[0], dtype=np.int64), np.empty(X.shape[0])
    guess_of, margin = _screen(X, centers)
    for block in row_blocks(*X.shape):
        rows, found = X[block].astype(np.float64, copy=False), (labels[block], squares[block])
        dense, guess = dense_rows(rows, slice(None)), guess_of(rows)
        kernels.nearest(dense, centers, guess, margin, squared, *found)
    return labels, squares


def labels_of_sparse(X, centers):
    """Return the nearest centers of sparse points, (n,) int64.

    Only those points become dense of which products leave more than one center.
    """
    guess_of, margin = _screen(X, centers)
    guess = guess_of(X)
    labels = guess.argmin(axis=1)
    n_near = (guess <= guess.min(axis=1, keepdims=True) + margin).sum(axis=1)
    doubtful = np.flatnonzero(n_near != 1)
    labels[doubtful] = screened_nearest(X[doubtful], centers)[0]
    return labels


def _screen(X, centers):
    """Return a function that makes |c|^2 - 2 x . c of rows of X, and how far it may be off.

    Where products may overflow it makes zeros, which leave every center.
    """
    norms, columns = row_norms(centers, squared=True), np.ascontiguousarray(centers.T)
    largest = row_norms(X, squared=True).max(initial=0.0) + norms.max()
    margin = products_margin(X.shape[1], largest)

    def guess_of(rows):
        if not np.isfinite(margin):
            return np.zeros((rows.shape[0], norms.size))
        return norms - 2.0 * (rows.astype(np.float64, copy=False) @ columns)

    return guess_of, margin


def check_centers(centers, space):
    """Check that saved centers are in a space: compiled loops do not look at their width."""
    if min(centers.shape) < 1:
        raise ValueError(f"centers have shape {centers.shape}")
    if centers.shape[1] != space.n_columns:
        raise ValueError(
            f"centers have {centers.shape[1]} columns, and the points {space.n_columns}"
        )


def _check_basis(kernel, basis, matrix, indices, n_features):
    """Check that k(x, basis) @ matrix can be had, with the columns ``indices`` of given values."""
    if basis.shape[1] != n_features:
        raise ValueError(f"basis has {basis.shape[1]} columns, and the points {n_features}")
    given = kernel.name == "precomputed"
    n_values = basis.shape[0]
    if given:
        n_values = n_features if indices is None else len(indices)
    if n_values != len(matrix):
        raise ValueError(f"there are {n_values} kernel values, and coefficients of {len(matrix)}")
    if indices is not None and ((indices < 0).any() or (given and indices.max() >= n_features)):
        raise ValueError("indices has values that cannot be")


def row_blocks(n, width, most=BLOCK):
    """Return slices of n rows, ``most`` or so few that they may be dense with ``width`` columns."""
    size = max(1, min(most, DENSE_NUMBERS // width))
    return [slice(start, start + size) for start in range(0, n, size)]
