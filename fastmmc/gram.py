"""Gram matrices: kernels, their widths, and the triangle that the hat matrix is made from."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import issparse
from scipy.spatial.distance import cdist, pdist
from sklearn.utils import gen_batches
from sklearn.utils.extmath import row_norms

from fastmmc._display import OneLine
from fastmmc.threads import Pieces

KERNELS = ("rbf", "linear", "poly", "laplacian", "precomputed")

# Rows of a Gram matrix worked on at a time: large enough for BLAS, small enough for the cache.
BLOCK = 512

# What the exponential of a number takes, in multiplications of BLAS.
EXP_PRODUCTS = 100
# A kernel given as a function is tried on so many points; values of k(x, z) and k(z, x) may differ
# by the rounding of single precision, as a share of the largest.
TRIED = 64
SYMMETRY = 1e-4

# Squared distances taken through products have errors of about the rounding of the squared norms;
# where sigma^2 is below so many of these, they are taken from the differences.
NARROW = 1e6 * np.finfo(np.float64).eps

# Width heuristics look at all pairs up to this many points and at a sample above it.
WIDTH_SAMPLE = 2000


@dataclass(frozen=True, repr=False)
class Kernel(OneLine):
    """A kernel function with all its parameters set.

    ======================  ==========================================================
    ``name``                k(x, z)
    ======================  ==========================================================
    ``"rbf"``               exp(-||x - z||^2 / sigma^2)
    ``"laplacian"``         exp(-||x - z||_1 / sigma)
    ``"linear"``            x . z + coef0
    ``"poly"``              (gamma x . z + coef0)^degree
    ``"precomputed"``       the entries given
    ``"callable"``          ``function(X, Z, **kernel_params)``, a (n_X, n_Z) array
    ======================  ==========================================================

    Attributes
    ----------
    name : str
        One of the names above.
    sigma : float or None
        Width, in the units of X.
    gamma : float or None
        Factor of the polynomial kernel.
    degree : int
        Degree of the polynomial kernel.
    coef0 : float
        Constant of the linear and polynomial kernels; with the linear kernel it acts as a
        penalised bias.
    function : callable or None
        The kernel given as a function.
    kernel_params : dict
        Its keyword arguments.
    """

    name: str
    sigma: float | None = None
    gamma: float | None = None
    degree: int = 3
    coef0: float = 1.0
    function: Callable | None = None
    kernel_params: Mapping | None = None

    def block(self, X, Z):
        """Return the Gram matrix between the rows of X and of Z.

        Parameters
        ----------
        X : (m, d) array
            First points; for ``"precomputed"`` the entries themselves.
        Z : (n, d) array
            Second points; unused for ``"precomputed"``.

        Returns
        -------
        (m, n) array
            Kernel values, a fresh array of X's dtype (X itself for ``"precomputed"``).

        Raises
        ------
        ValueError
            If values overflow, or a kernel given as a function returns a wrong shape or NaN.
        TypeError
            If it does not return real numbers.

        Examples
        --------
        >>> import numpy as np
        >>> Kernel("linear", coef0=1.0).block(np.eye(2), np.eye(2))
        array([[2., 1.],
               [1., 2.]])
        """
        if self.name == "precomputed":
            return X
        if self.name == "callable":
            return self._call(X, Z)
        # What overflows is found afterwards.
        with np.errstate(over="ignore", invalid="ignore"):
            return self.check_values(self._values(X, Z)).astype(X.dtype, copy=False)

    def _values(self, X, Z):
        if self.name == "laplacian":
            values = cdist(X, Z, "cityblock")
            values *= -1.0 / self.sigma
            return np.exp(values, out=values)
        if self.name == "rbf":
            return self.gaussian(*_centred(X, Z))
        values = X @ Z.T
        if self.name == "poly":
            values *= self.gamma
        values += self.coef0
        if self.name == "poly":
            np.power(values, self.degree, out=values)
        return values

    def check_values(self, values):
        """Return kernel values if they are finite.

        Parameters
        ----------
        values : (m, n) array
            Computed from finite points.

        Returns
        -------
        (m, n) array
            The same.

        Raises
        ------
        ValueError
            If they, or the squared distances behind them, overflow.

        Examples
        --------
        >>> import numpy as np
        >>> Kernel("rbf", sigma=1.0).check_values(np.ones((1, 1)))
        array([[1.]])
        """
        if np.isfinite(values).all():
            return values
        names = {"poly": ("gamma", "degree", "coef0"), "linear": ("coef0",)}
        given = ", ".join(f"{name}={getattr(self, name):g}" for name in names.get(self.name, ()))
        given = f" ({given})" if given else ""
        raise ValueError(
            f"kernel={self.name!r} gives values that are too large for these points"
            f"{given}; scale them"
        )

    def gaussian(self, X, Z, X_norms, Z_norms):
        """Return Gaussian kernel values of points that need no centring.

        Parameters
        ----------
        X, Z : (m, d) and (n, d) float64 arrays
            Points.
        X_norms, Z_norms : (m,) and (n,) float64 arrays
            Their squared norms.

        Returns
        -------
        (m, n) float64 array
            exp(-||x - z||^2 / sigma^2).

        Examples
        --------
        >>> import numpy as np
        >>> point, norm = np.zeros((1, 2)), np.zeros(1)
        >>> Kernel("rbf", sigma=1.0).gaussian(point, point, norm, norm)
        array([[1.]])
        """
        if self.sigma**2 < NARROW * max(X_norms.max(), Z_norms.max()):
            values = cdist(X, Z, "sqeuclidean")
        else:
            values = _centred_distances(X, Z, X_norms, Z_norms)
        values *= -1.0 / self.sigma**2
        return np.exp(values, out=values)

    def _call(self, X, Z):
        values = np.asarray(self.function(X, Z, **(self.kernel_params or {})))
        if values.shape != (X.shape[0], Z.shape[0]):
            raise ValueError(
                f"kernel: the function given returned an array of shape {values.shape} for "
                f"{X.shape[0]} and {Z.shape[0]} points; it must return "
                f"({X.shape[0]}, {Z.shape[0]})"
            )
        if values.dtype.kind not in "biuf":
            raise TypeError(
                f"kernel: the function given must return real numbers; got dtype {values.dtype}"
            )
        with np.errstate(over="ignore"):
            values = values.astype(X.dtype, copy=True)
        if not np.isfinite(values).all():
            raise ValueError(
                f"kernel: the function given returned NaN or infinity, or values beyond {X.dtype}"
            )
        return values

    def check_symmetric(self, X):
        """Try a kernel given as a function on some of the points.

        Parameters
        ----------
        X : (n, d) array or sparse matrix
            Points; up to 64 of them are taken.

        Raises
        ------
        TypeError, ValueError
            If its values are no finite real matrix, or not symmetric.

        Examples
        --------
        >>> import numpy as np
        >>> Kernel("callable", function=lambda X, Z: X @ Z.T).check_symmetric(np.eye(2))
        """
        n = X.shape[0]
        chosen = np.linspace(0, n - 1, min(n, TRIED)).astype(np.intp)
        points = dense_rows(X, chosen)
        # Halves, whose difference cannot overflow.
        values = self._call(points, points) / 2
        worst = np.abs(values - values.T).max()
        if worst > SYMMETRY * np.abs(values).max():
            raise ValueError(
                "kernel: the function given must be symmetric; k(x, z) and k(z, x) differ by "
                f"{2 * worst:.3g} where values reach {2 * np.abs(values).max():.3g}"
            )


def dense_rows(X, rows):
    """Return some rows of a matrix as a dense array.

    Parameters
    ----------
    X : (n, d) array or sparse matrix
        Points.
    rows : slice or (m,) int array
        Which.

    Returns
    -------
    (m, d) array
        Those rows.

    Examples
    --------
    >>> import numpy as np
    >>> dense_rows(np.eye(2), slice(1))
    array([[1., 0.]])
    """
    return X[rows].toarray() if issparse(X) else X[rows]


def count_distinct(X, most):
    """Count the distinct rows of X, up to ``most`` of them.

    Parameters
    ----------
    X : (n, d) array or sparse matrix
        Points, or a Gram matrix.
    most : int
        Where to stop counting.

    Returns
    -------
    int
        The number, no more than ``most``.

    Examples
    --------
    >>> import numpy as np
    >>> count_distinct(np.array([[0.0], [1.0], [-0.0]]), 3)
    2
    """
    seen = set()
    # Rows of text have very many columns.
    step = BLOCK // 8 if issparse(X) else BLOCK
    for start in range(0, X.shape[0], step):
        # Adding 0 makes 0 of -0, which has other bytes.
        for row in dense_rows(X, slice(start, start + step)) + 0.0:
            seen.add(row.tobytes())
            if len(seen) >= most:
                return most
    return len(seen)


def kernel_rows(kernel, X, Z, columns=None, block=BLOCK):
    """Yield the Gram matrix between X and Z in row blocks.

    Parameters
    ----------
    kernel : Kernel
        With its widths set.
    X : (n, d) array or sparse matrix
        Points; for "precomputed" their kernel values to all training points.
    Z : (m, d) array
        Second points; unused for "precomputed".
    columns : (m,) int array, optional
        For "precomputed" the training points that Z stands for; None: all.
    block : int
        Rows at a time.

    Yields
    ------
    rows : slice
        Which rows of X.
    values : (n_rows, m) array
        Their kernel values.

    Examples
    --------
    >>> import numpy as np
    >>> [v for _, v in kernel_rows(Kernel("precomputed"), np.eye(2), None, np.array([1]))]
    [array([[0.],
           [1.]])]
    """
    for start in range(0, X.shape[0], block):
        rows = slice(start, min(start + block, X.shape[0]))
        values = kernel.block(dense_rows(X, rows), Z)
        yield (
            rows,
            values if kernel.name != "precomputed" or columns is None else values[:, columns],
        )


def kernel_product(kernel, X, Z, matrix, columns=None, dtype=np.float64, advance=None):
    """Return the Gram matrix between X and Z times another matrix, without ever holding the former.

    Parameters
    ----------
    kernel : Kernel
        With its widths set.
    X : (n, d) array or sparse matrix
        Points; for "precomputed" their kernel values to all training points.
    Z : (m, d) array
        Second points; unused for "precomputed".
    matrix : (m, r) array
        Second factor.
    columns : (m,) int array, optional
        As for :func:`kernel_rows`.
    dtype : numpy.dtype, default=float64
        Of the product.
    advance : callable, optional
        Told how many rows were made; what it raises ends the work.

    Returns
    -------
    (n, r) array
        The product.

    Examples
    --------
    >>> import numpy as np
    >>> kernel_product(Kernel("linear", coef0=0.0), np.eye(2), np.eye(2), np.array([[1.0], [2.0]]))
    array([[1.],
           [2.]])
    """
    n, (m, r) = X.shape[0], matrix.shape
    out = np.empty((n, r), dtype=dtype)

    def fill(rows):
        for _, values in kernel_rows(kernel, X[rows], Z, columns):
            out[rows] = values @ matrix
        return rows.stop - rows.start

    # A function of the user's need not be safe in threads.
    n_products = 0 if kernel.name == "callable" else n * m * (X.shape[1] + EXP_PRODUCTS + r)
    with Pieces(n_products) as pieces:
        for n_rows in pieces.map(fill, gen_batches(n, BLOCK)):
            if advance is not None:
                advance(n_rows)
    return out


def kernel_diagonal(kernel, X):
    """Return k(x, x) for all points.

    Parameters
    ----------
    kernel : Kernel
        With its widths set.
    X : (n, d) array or sparse matrix
        Points; for "precomputed" the Gram matrix.

    Returns
    -------
    (n,) float64 array
        Diagonal of the Gram matrix.

    Examples
    --------
    >>> import numpy as np
    >>> kernel_diagonal(Kernel("linear", coef0=1.0), np.array([[2.0]]))
    array([5.])
    """
    n = X.shape[0]
    if kernel.name in ("rbf", "laplacian"):
        return np.ones(n)
    if kernel.name == "precomputed":
        return np.diagonal(X).astype(np.float64)
    out = np.empty(n)
    for start in range(0, n, BLOCK):
        points = dense_rows(X, slice(start, start + BLOCK))
        out[start : start + BLOCK] = np.diagonal(kernel.block(points, points))
    return out


def squared_distances(X, Z):
    """Return ||x - z||^2 for all rows of X and Z, in float64.

    The difference is taken through the dot product. Both sides are moved by the same vector
    first, so that points far from the origin do not lose their digits, and float32 points are
    multiplied as float64.

    Parameters
    ----------
    X : (m, d) array
        First points.
    Z : (n, d) array
        Second points.

    Returns
    -------
    (m, n) float64 array
        Squared distances, never negative.

    Examples
    --------
    >>> import numpy as np
    >>> squared_distances(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]]))
    array([[25.]])
    """
    return _centred_distances(*_centred(X, Z))


def _centred(X, Z):
    """Return both sides moved by the mean of Z, in float64, and their squared norms."""
    centre = Z.mean(axis=0, dtype=np.float64)
    X = X - centre
    Z = Z - centre
    return X, Z, row_norms(X, squared=True), row_norms(Z, squared=True)


def _centred_distances(X, Z, X_norms, Z_norms):
    """Return the squared distances of points that need no centring, given their squared norms."""
    distances = X @ Z.T
    distances *= -2.0
    distances += X_norms[:, None]
    distances += Z_norms
    return np.maximum(distances, 0.0, out=distances)


def median_width(X, metric="sqeuclidean"):
    """Return the median distance between two points: the default width of ``umc_rls``.

    For ``metric="sqeuclidean"`` it is the square root of the median squared distance. Above
    2,000 points it is taken over an evenly spaced sample of 2,000, so that it depends on X only.

    Parameters
    ----------
    X : (n, d) array or sparse matrix
        Points.
    metric : {"sqeuclidean", "cityblock"}
        The distance that the kernel uses.

    Returns
    -------
    float
        The width; where more than half of the distances are zero the mean distance, and 1.0
        if all points are equal.

    Examples
    --------
    >>> import numpy as np
    >>> median_width(np.array([[0.0], [3.0]]))
    3.0
    """
    n = X.shape[0]
    if n > WIDTH_SAMPLE:
        X = X[np.linspace(0, n - 1, WIDTH_SAMPLE).astype(np.intp)]
        n = WIDTH_SAMPLE
    X = dense_rows(X, slice(None))
    if n < 2:
        return 1.0
    if metric == "sqeuclidean":
        distances = squared_distances(X, X)[np.tri(n, k=-1, dtype=np.bool_)]
    else:
        distances = pdist(X, metric)
    width = float(np.median(distances)) or float(np.mean(distances))
    if metric == "sqeuclidean":
        width = math.sqrt(width)
    return width or 1.0


def box_diagonal(X):
    """Return the diagonal of the box around the points: the default width of ``evo_mmc``.

    Parameters
    ----------
    X : (n, d) array or sparse matrix
        Points.

    Returns
    -------
    float
        sqrt(sum_f (max_f - min_f)^2), O(nd); 1.0 if all points are equal.

    Examples
    --------
    >>> import numpy as np
    >>> box_diagonal(np.array([[0.0, 0.0], [3.0, 4.0]]))
    5.0
    """
    high, low = X.max(axis=0), X.min(axis=0)
    if issparse(X):
        high, low = high.toarray().ravel(), low.toarray().ravel()
    extent = high.astype(np.float64) - low
    return math.sqrt(float(extent @ extent)) or 1.0


def resolve_kernel(kernel, X, width=None):
    """Return ``kernel`` with the widths that were left open taken from X.

    Parameters
    ----------
    kernel : Kernel
        As the user gave it.
    X : (n, d) array
        Training points.
    width : callable, optional
        Takes X and returns the width to use where none was given; None: :func:`median_width`.

    Returns
    -------
    Kernel
        With ``sigma`` set for "rbf" and "laplacian" and ``gamma`` for "poly" (1 / d).

    Raises
    ------
    ValueError
        If sigma, or its square for "rbf", is too small or too large for a double, or a kernel given
        as a function is not symmetric.
    TypeError
        If such a function does not return real numbers.

    Examples
    --------
    >>> import numpy as np
    >>> resolve_kernel(Kernel("rbf"), np.array([[0.0], [2.0]])).sigma
    2.0
    """
    if kernel.name == "poly":
        return replace(kernel, gamma=1.0 / X.shape[1] if kernel.gamma is None else kernel.gamma)
    if kernel.name == "callable":
        kernel.check_symmetric(X)
    if kernel.name not in ("rbf", "laplacian"):
        return kernel
    sigma = kernel.sigma
    if kernel.gamma is not None:
        sigma = 1.0 / (math.sqrt(kernel.gamma) if kernel.name == "rbf" else kernel.gamma)
    elif sigma is None:
        metric = "sqeuclidean" if kernel.name == "rbf" else "cityblock"
        # A width that overflows is refused below.
        with np.errstate(over="ignore", invalid="ignore"):
            sigma = median_width(X, metric) if width is None else width(X)
    kernel_with_width = replace(kernel, sigma=float(sigma), gamma=None)
    _check_width(kernel, kernel_with_width.sigma)
    return kernel_with_width


def _check_width(kernel, sigma):
    """Refuse a width that the kernel values cannot be computed with in double precision."""
    largest = sys.float_info.max
    least = sys.float_info.min
    if kernel.name == "rbf":
        least, largest = math.sqrt(least), math.sqrt(largest)
    if least <= sigma <= largest:
        return
    size = "small" if sigma < least else "large"
    if kernel.sigma is not None or kernel.gamma is not None:
        given = f"sigma={sigma:g}" if kernel.gamma is None else f"gamma={kernel.gamma:g}"
        raise ValueError(
            f"{given} is too extreme for kernel={kernel.name!r}: sigma must be from {least:.2g} to "
            f"{largest:.2g}; scale the points and sigma"
        )
    raise ValueError(
        f"the distances of the points are too {size} for kernel={kernel.name!r}, with a width "
        f"sigma={sigma:g}; scale the points"
    )


def fill_lower_gram(kernel, X, out, on_progress=None):
    """Fill the lower triangle of the Gram matrix of X, in row blocks.

    The triangle is all that a Cholesky factorisation reads. What is above the diagonal of
    ``out`` is left undefined.

    Parameters
    ----------
    kernel : Kernel
        With its widths set.
    X : (n, d) array
        Points; for "precomputed" the Gram matrix.
    out : (n, n) array
        Modified in place.
    on_progress : callable, optional
        Told the share that is done, 0..1, after each block; what it raises ends the work.

    Examples
    --------
    >>> import numpy as np
    >>> out = np.empty((2, 2))
    >>> fill_lower_gram(Kernel("linear", coef0=0.0), np.array([[1.0], [2.0]]), out)
    >>> np.tril(out)
    array([[1., 0.],
           [2., 4.]])
    """
    n = X.shape[0]
    if kernel.name == "rbf":
        X = X - X.mean(axis=0, dtype=np.float64)
        norms = row_norms(X, squared=True)

    def fill(start):
        stop = min(start + BLOCK, n)
        rows = X[start:stop]
        if kernel.name == "precomputed":
            values = rows[:, :stop]
        elif kernel.name == "rbf":
            with np.errstate(over="ignore", invalid="ignore"):
                values = kernel.gaussian(rows, X[:stop], norms[start:stop], norms[:stop])
            kernel.check_values(values)
        else:
            values = kernel.block(rows, X[:stop])
        out[start:stop, :stop] = values
        return stop

    # A function of the user's need not be safe in threads.
    n_products = 0 if kernel.name == "callable" else n * n * (X.shape[1] + EXP_PRODUCTS) / 2
    with Pieces(n_products) as pieces:
        for stop in pieces.map(fill, range(0, n, BLOCK)):
            if on_progress is not None:
                on_progress((stop / n) ** 2)
