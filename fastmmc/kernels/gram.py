"""Gram matrices: kernels, their widths, and the triangle that the hat matrix is made from."""

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from itertools import pairwise

import numpy as np
from scipy.sparse import csr_array, issparse
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import manhattan_distances
from sklearn.utils import gen_batches
from sklearn.utils.extmath import row_norms

from fastmmc.core.display import OneLine
from fastmmc.core.saving import stored
from fastmmc.core.threads import in_threads, run_to_end
from fastmmc.kernels import _loops_centers as loops
from fastmmc.kernels.cholesky import Staircase

KERNELS = ("rbf", "linear", "poly", "laplacian", "precomputed")

# Those that fall with the distance, from 1 to 0.
RADIAL = ("rbf", "laplacian")

# Rows of a Gram matrix worked on at a time: large enough for BLAS, small enough for the cache.
BLOCK = 512

# Cost of an exponential, in multiplications of BLAS.
EXP_PRODUCTS = 100

# A kernel given as a function is tried on this many points; k(x, z) and k(z, x) may differ by
# rounding in single precision, as a share of the largest value.
TRIED = 64
SYMMETRY = 1e-4

# Squared distances from dot products are off by about the rounding of the squared norms. Where
# sigma^2 is below this share of the norms, they are computed from differences.
NARROW = 1e6 * np.finfo(np.float64).eps

# Sparse points of more columns than this stay sparse where kernel values are computed: that takes
# no longer unless a fifth of the entries is not zero, and dense landmarks may be larger than Z.
# Where differences are needed, so many columns are dense at a time.
SPARSE_COLUMNS = 1000

# Width heuristics use all pairs of up to this many points, and a sample of more.
WIDTH_SAMPLE = 2000

# Neighbours within the default width, in units of an average cluster.
NEIGHBOUR_SHARE = 2


@stored()
@dataclass(frozen=True, repr=False)
class Kernel(OneLine):
    """A kernel function k(x, z).

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

    The first two are at least 5e-32, or 1.4e-14 in single precision: the square of its rounding.
    """

    name: str
    sigma: float | None = None  # width, in the units of X
    gamma: float | None = None
    degree: int = 3
    coef0: float = 1.0  # of the linear kernel: acts as a penalised bias
    function: Callable | None = None
    kernel_params: Mapping | None = None

    def _check_values(self):
        needed = {"rbf": "sigma", "laplacian": "sigma", "poly": "gamma"}
        widths = [width for width in (self.sigma, self.gamma) if width is not None]
        is_known = self.name in (*KERNELS, "points") and not self.kernel_params
        is_whole = self.name not in needed or getattr(self, needed[self.name]) is not None
        is_fine = all(0 < w < math.inf for w in widths) and math.isfinite(self.coef0)
        if not (is_known and is_whole and is_fine and self.degree >= 1):
            raise ValueError(f"its kernel is {self!r}")
        if self.sigma is not None:
            _check_width(self, self.sigma)

    def params(self):
        """Return what a result says of its kernel."""
        names = ("sigma", "gamma", "degree", "coef0", "kernel_params")
        kernel = self.name if self.function is None else self.function
        return {"kernel": kernel} | {name: getattr(self, name) for name in names}

    def block(self, X, Z):
        """Return k(x, z) for the rows of X and Z, float64; X itself if it holds these values."""
        return KernelColumns(self, Z)(X)

    def check_values(self, values):
        """Return kernel values if they, and the squared distances behind them, did not overflow."""
        if np.isfinite(values).all():
            return values
        names = {"poly": ("gamma", "degree", "coef0"), "linear": ("coef0",)}
        given = ", ".join(f"{name}={getattr(self, name):g}" for name in names.get(self.name, ()))
        given = f" ({given})" if given else ""
        raise ValueError(
            f"kernel={self.name!r} gives values that are too large for these points"
            f"{given}; scale them"
        )

    def of_products(self, values):
        """Turn inner products into values of a linear or polynomial kernel, in place."""
        if self.name == "poly":
            values *= self.gamma
        values += self.coef0
        if self.name == "poly":
            np.power(values, self.degree, out=values)
        return values

    def call(self, X, Z, dtype=np.float64):
        """Return the values of a kernel given as a function; refuse what is no Gram matrix."""
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
            values = values.astype(dtype, copy=True)
        if not np.isfinite(values).all():
            raise ValueError(
                "kernel: the function given returned NaN or infinity, or values beyond "
                f"{np.dtype(dtype)}"
            )
        return values

    def check_symmetric(self, X):
        """Refuse a kernel given as a function if its values for some of X are not symmetric."""
        points = dense_rows(X, evenly(X.shape[0], TRIED))
        # Halves, whose difference cannot overflow.
        values = self.call(points, points) / 2
        worst = np.abs(values - values.T).max()
        if worst > SYMMETRY * np.abs(values).max():
            raise ValueError(
                "kernel: the function given must be symmetric; k(x, z) and k(z, x) differ by "
                f"{2 * worst:.3g} where values reach {2 * np.abs(values).max():.3g}"
            )


class KernelColumns:
    """Kernel values k(x, z) to fixed points z, which are prepared once for many blocks of x.

    ``columns`` are the training points that z are, for precomputed values, which need no z; None:
    all of them. Values are of ``dtype``, whatever that of the points: maps to features may have
    numbers of 1e5, which make much of the rounding of single precision.
    """

    def __init__(self, kernel, Z, columns=None, dtype=np.float64):
        self._kernel, self._Z, self._columns, self._dtype = kernel, Z, columns, dtype
        self._centred = Centred(Z) if kernel.name == "rbf" else None

    def __call__(self, X, stop=None):
        """Return the values of the rows of X, a fresh array, to z up to ``stop``."""
        kernel, Z = self._kernel, self._Z if stop is None else self._Z[:stop]
        if kernel.name == "precomputed":
            return X[:, slice(stop) if self._columns is None else self._columns]
        X = self._prepare(X)
        if kernel.name == "callable":
            return kernel.call(X, Z, self._dtype)
        # check_values finds what overflows.
        with np.errstate(over="ignore", invalid="ignore"):
            if kernel.name in RADIAL:
                # Values fall to the square of the rounding and no further: no sum tells smaller
                # ones from 0, but they and the products of them become subnormal numbers, which
                # are slow. Without this, exponentials take ten times as long, `cluster` of 100,000
                # x 2 points in 100 clusters 15 s in place of 9, and a hat matrix of 2,500 points in
                # single precision 5 s in place of .2.
                values = self.logarithms(X, stop)
                np.maximum(values, 2.0 * math.log(np.finfo(self._dtype).eps), out=values)
                np.exp(values, out=values)
            else:
                values = kernel.of_products(_products(X.astype(self._dtype, copy=False), Z))
            return kernel.check_values(values).astype(self._dtype, copy=False)

    def _prepare(self, X):
        """Return points, made dense if z are."""
        return X.toarray() if issparse(X) and not issparse(self._Z) else X

    def logarithms(self, X, stop=None):
        """Return log k(x, z) of a radial kernel, float64; squares of distances may overflow."""
        X, kernel, centred, first = self._prepare(X), self._kernel, self._centred, slice(stop)
        if kernel.name == "laplacian":
            values = _city_distances(X, self._Z if stop is None else self._Z[first])
            values *= -1.0 / kernel.sigma
            return values
        X, Z = centred.move(X), centred.points if stop is None else centred.points[first]
        norms, of_Z = row_norms(X, squared=True), centred.norms[first]
        if kernel.sigma**2 < NARROW * max(norms.max(), of_Z.max()):
            values = _exact_distances(X, Z)
        else:
            values = _centred_distances(X, Z, norms, of_Z)
        values *= -1.0 / kernel.sigma**2
        return values


class Centred:
    """Points moved by their mean, in float64, and their squared norms; sparse ones stay in place.

    So the dot products that squared distances are made from lose no digits far from the origin.
    """

    def __init__(self, Z):
        self._centre = np.zeros(1) if issparse(Z) else Z.mean(axis=0, dtype=np.float64)
        self.points = self.move(Z)
        self.norms = row_norms(self.points, squared=True)

    def move(self, X):
        """Return points moved likewise."""
        return X.astype(np.float64, copy=False) if issparse(X) else X - self._centre


def is_wide(X):
    """Tell whether points stay sparse where kernel values are computed."""
    return issparse(X) and X.shape[1] > SPARSE_COLUMNS


def kernel_points(kernel, X, rows=slice(None)):
    """Return rows as kernel values are computed to them: dense, or in CSR if they are wide."""
    if is_wide(X) and kernel.name != "callable":
        return csr_array(X[rows])
    return dense_rows(X, rows)


def dense_rows(X, rows):
    """Return rows of a dense or sparse matrix, given by slice or indices, as a dense array."""
    return X[rows].toarray() if issparse(X) else X[rows]


def products_margin(d, largest):
    """Return a bound on the rounding of |c|^2 - 2 x . c in d columns, of both that are compared.

    ``largest`` is the most that |x|^2 + |c|^2 may be.
    """
    return 8.0 * (d + 4) * np.finfo(np.float64).eps * largest


def evenly(n, most):
    """Return at most so many of the indices of n points, in order, evenly spread.

    They are one of each of as many equal parts, the same at each call. An equal step would see one
    kind of points only where two kinds take turns.
    """
    if n <= most:
        return np.arange(n)
    edges = np.arange(most + 1) * n // most
    within = np.random.default_rng(0).random(most) * np.diff(edges)
    return edges[:-1] + within.astype(np.intp)


def distinct_rows(X, most):
    """Return which distinct point each is, and the first of each, where these are at most so many.

    Otherwise some of the first are returned, more than ``most``, and no members.
    """
    seen, first, members = {}, [], np.empty(X.shape[0], dtype=np.int64)
    for i, row in enumerate(_rows_as_bytes(X)):
        members[i] = seen.setdefault(blake2b(row).digest(), len(seen))
        if members[i] == len(first):
            first.append(i)
            if len(first) > most:
                return None, np.array(first)
    return members, np.array(first)


def _rows_as_bytes(X):
    """Yield bytes of each row that are the same for equal rows only."""
    if issparse(X):
        if not X.data.all():
            X = X.copy()
            X.eliminate_zeros()
        for start, stop in pairwise(X.indptr):
            yield X.indices[start:stop].tobytes() + X.data[start:stop].tobytes()
        return
    for rows in gen_batches(X.shape[0], BLOCK):
        # Adding 0 turns -0, which has other bytes, into 0.
        yield from (row.tobytes() for row in X[rows] + 0.0)


def distances_from_place(X):
    """Return the squared distance of each row from one random place, (n,): equal rows have one.

    Of sparse rows it is less by the squared norm of the place.
    """
    n, d = X.shape
    place = np.random.default_rng(0).normal(size=(1, d))
    if issparse(X):
        with np.errstate(over="ignore"):
            terms = X.data * (X.data - 2.0 * place[0, X.indices])
        return csr_array((terms, X.indices, X.indptr), shape=X.shape) @ np.ones(d)
    distances = np.empty((n, 1))
    loops.all_distances_in_order(X, place, distances)
    return distances[:, 0]


def first_equals(X, distances=None):
    """Return the index of the first row that equals each row, (n,), or None if all differ.

    Only rows are compared that have the same distance from a random place as others.
    """
    n = X.shape[0]
    distances = distances_from_place(X) if distances is None else distances
    order = np.argsort(distances, kind="stable")
    is_tied = distances[order[1:]] == distances[order[:-1]]
    rows = np.sort(order[np.append(is_tied, False) | np.append(False, is_tied)])
    members, first = distinct_rows(X[rows], rows.size) if rows.size else (None, rows)
    if first.size == rows.size:
        return None
    equals = np.arange(n)
    equals[rows] = rows[first[members]]
    return equals


def count_distinct(X, most):
    """Count the distinct rows of X, up to ``most``."""
    return distinct_rows(X, most - 1)[1].size


def kernel_rows(kernel, X, Z, columns=None):
    """Yield slices of the rows of X and their kernel values to Z, as by :class:`KernelColumns`."""
    values_of = KernelColumns(kernel, Z, columns)
    for rows in gen_batches(X.shape[0], BLOCK):
        yield rows, values_of(X[rows])


def kernel_product(
    kernel,
    X,
    Z,
    matrix,
    columns=None,
    dtype=np.float64,
    advance=lambda n_rows: None,
    largest=None,
):
    """Return k(X, Z) @ matrix without ever holding k(X, Z).

    ``columns`` is as in :class:`KernelColumns`; ``advance`` is told how many rows were made, and
    what it raises ends the work. ``largest``, (n,), is filled with the largest value of each row,
    at least 0, to those z whose rows of the matrix are not zero.
    """
    n, (m, r) = X.shape[0], matrix.shape
    out = np.empty((n, r), dtype=dtype)
    stairs = Staircase(matrix, dtype)
    chosen = stairs.rows if columns is None else columns[stairs.rows]
    values_of = KernelColumns(kernel, Z if kernel.name == "precomputed" else Z[stairs.rows], chosen)

    def fill(rows):
        values = values_of(X[rows])
        if largest is not None:
            values.max(axis=1, initial=0.0, out=largest[rows])
        stairs.multiply(values, out[rows])
        return rows.stop - rows.start

    # The user's function may not be thread-safe.
    n_products = 0 if kernel.name == "callable" else n * m * (X.shape[1] + EXP_PRODUCTS + r)
    run_to_end(in_threads(n_products, fill, gen_batches(n, BLOCK)), advance)
    return out


def kernel_diagonal(kernel, X):
    """Return k(x, x) for all points, (n,) float64."""
    n = X.shape[0]
    if kernel.name in RADIAL:
        return np.ones(n)
    if kernel.name == "precomputed":
        return np.diagonal(X).astype(np.float64)
    out = np.empty(n)
    for rows in gen_batches(n, BLOCK):
        if kernel.name == "callable":
            points = dense_rows(X, rows)
            out[rows] = np.diagonal(kernel.call(points, points))
            continue
        with np.errstate(over="ignore", invalid="ignore"):
            products = row_norms(X[rows].astype(np.float64), squared=True)
            out[rows] = kernel.check_values(kernel.of_products(products))
    return out


def squared_distances(X, Z):
    """Return ||x - z||^2 for all rows of X and Z, (m, n) float64, never negative.

    Uses the dot product, in float64 and, of dense points, after moving both sides by the mean of Z,
    so that points far from the origin keep their digits.
    """
    centred = Centred(Z)
    X = centred.move(X)
    return _centred_distances(X, centred.points, row_norms(X, squared=True), centred.norms)


def _products(X, Z):
    """Return X Z^T as a dense array; both sides may be sparse."""
    values = X @ Z.T
    return values.toarray() if issparse(values) else values


def _centred_distances(X, Z, X_norms, Z_norms):
    """Return the squared distances of centred points, given their squared norms."""
    distances = _products(X, Z)
    distances *= -2.0
    distances += X_norms[:, None]
    distances += Z_norms
    return np.maximum(distances, 0.0, out=distances)


def _exact_distances(X, Z):
    """Return squared distances from differences; of sparse points, some columns at a time."""
    if not issparse(Z):
        return cdist(X, Z, "sqeuclidean")
    columns = gen_batches(Z.shape[1], SPARSE_COLUMNS)
    sides = ([dense_rows(side[:, c], slice(None)) for side in (X, Z)] for c in columns)
    return sum(cdist(*pair, "sqeuclidean") for pair in sides)


def _city_distances(X, Z):
    """Return sums of absolute differences, (m, n) float64; both sides may be sparse, or Z."""
    if not issparse(Z):
        return cdist(X, Z, "cityblock")
    return manhattan_distances(*(csr_array(side, dtype=np.float64) for side in (X, Z)))


def median_width(X, metric="sqeuclidean"):
    """Return the median distance of two points; if it is 0 the mean, and 1.0 if all are equal."""
    points = _width_sample(X)
    n = points.shape[0]
    if n < 2:
        return 1.0
    distances = _pairwise(points, metric)[np.tri(n, k=-1, dtype=np.bool_)]
    width = float(np.median(distances)) or float(np.mean(distances))
    if metric == "sqeuclidean":
        width = math.sqrt(width)
    return width or _no_width(points)


def default_width(k=None):
    """Return the function of X and metric that gives the default width for k clusters, if known."""
    return median_width if k is None else partial(neighbour_width, k)


def neighbour_width(k, X, metric="sqeuclidean"):
    """Return the median distance of a point to its (2 n / k)-th neighbour.

    It is the default width of ``umc_rls`` for k > 4 clusters: twice as many points are nearer as an
    average cluster has. For fewer it is :func:`median_width`, which that of half the points comes
    close to and larger shares exceed.
    """
    points = _width_sample(X)
    n = points.shape[0]
    rank = max(1, round(NEIGHBOUR_SHARE * n / k))
    if rank >= n / 2:
        return median_width(X, metric)
    distances = np.partition(_pairwise(points, metric), rank, axis=1)[:, rank]
    width = float(np.median(distances))
    if metric == "sqeuclidean":
        width = math.sqrt(width)
    return width or median_width(X, metric)


def _width_sample(X):
    """Return all points, or 2,000 of them that are evenly spaced."""
    return kernel_points(Kernel("points"), X, evenly(X.shape[0], WIDTH_SAMPLE))


def _pairwise(points, metric):
    """Return all distances, (n, n), with zeros on the diagonal."""
    if metric != "sqeuclidean":
        return _city_distances(points, points)
    distances = squared_distances(points, points)
    np.fill_diagonal(distances, 0.0)
    return distances


def box_diagonal(X):
    """Return the diagonal of the bounding box of the points, or 1.0 if all are equal; O(nd).

    sqrt(sum_f (max_f - min_f)^2), the default width of ``evo_mmc``.
    """
    high, low = X.max(axis=0), X.min(axis=0)
    if issparse(X):
        high, low = high.toarray().ravel(), low.toarray().ravel()
    extent = high.astype(np.float64) - low
    return math.sqrt(float(extent @ extent)) or _no_width(X)


def _no_width(X):
    """Return 1.0 if all points are equal, else 0.0: their distances vanish, which is refused."""
    return 1.0 if count_distinct(X, 2) < 2 else 0.0


def resolve_kernel(kernel, X, width=median_width):
    """Return the kernel with its open parameters set: ``sigma``, or 1 / d as ``gamma`` of "poly".

    ``width(X, metric)`` returns sigma where none was given.
    """
    if kernel.name == "poly":
        return replace(kernel, gamma=1.0 / X.shape[1] if kernel.gamma is None else kernel.gamma)
    if kernel.name == "callable":
        kernel.check_symmetric(X)
    if kernel.name not in RADIAL:
        return kernel
    sigma = kernel.sigma
    if kernel.gamma is not None:
        sigma = 1.0 / (math.sqrt(kernel.gamma) if kernel.name == "rbf" else kernel.gamma)
    elif sigma is None:
        metric = "sqeuclidean" if kernel.name == "rbf" else "cityblock"
        # A width that overflows is refused below.
        with np.errstate(over="ignore", invalid="ignore"):
            sigma = width(X, metric)
    _check_width(kernel, float(sigma))
    return replace(kernel, sigma=float(sigma), gamma=None)


def _check_width(kernel, sigma):
    """Refuse a width that double precision cannot compute kernel values with."""
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


def fill_lower_gram(kernel, X, out, on_progress=lambda share: None):
    """Fill the lower triangle of the (n, n) Gram matrix ``out`` of X, in row blocks.

    That is all a Cholesky factorisation reads; above the diagonal ``out`` stays undefined.
    ``on_progress`` is told the share done, 0..1, after each block; what it raises ends the work.
    """
    n, values_of = X.shape[0], KernelColumns(kernel, X, dtype=out.dtype)

    def fill(rows):
        out[rows, : rows.stop] = values_of(X[rows], rows.stop)
        return rows.stop

    # The user's function may not be thread-safe.
    n_products = 0 if kernel.name == "callable" else n * n * (X.shape[1] + EXP_PRODUCTS) / 2
    pieces = in_threads(n_products, fill, gen_batches(n, BLOCK))
    run_to_end(pieces, lambda stop: on_progress((stop / n) ** 2))
