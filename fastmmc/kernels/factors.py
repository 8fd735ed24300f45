"""Hat matrix R = K (K + lam I)^-1, dense or of low rank: factors that every RLS method takes."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import csc_array, csr_array
from sklearn.utils import gen_batches

from fastmmc.core import memory, validation
from fastmmc.core.column_names import Named
from fastmmc.core.declare import function_of, parameter, values
from fastmmc.core.display import OneLine
from fastmmc.core.docstrings import completed_by
from fastmmc.core.execution import RunControl, fixed_seed, restart_stream, warn_user
from fastmmc.core.parameters import (
    KernelParameters,
    LandmarkParameters,
    Metric,
    Points,
    PrecisionParameters,
    RandomState,
    Regularisation,
    kernel_of,
)
from fastmmc.core.threads import counter, in_threads, map_of_threads, one_blas_thread, run_to_end
from fastmmc.core.types import MatrixLike
from fastmmc.data.blocks import in_blocks, make_blocks
from fastmmc.data.standardization import in_units
from fastmmc.kernels.block_factor import (
    SAMPLE,
    BlockFactor,
    check_block_form,
    draw_sample,
    make_block_factor,
    sample_size,
)
from fastmmc.kernels.cholesky import (
    Staircase,
    add_to_diagonal,
    drop_faint,
    invert_lower,
    mirror_lower,
    ridge_root,
)
from fastmmc.kernels.gram import (
    BLOCK,
    Kernel,
    default_width,
    fill_lower_gram,
    kernel_diagonal,
    kernel_product,
    resolve_kernel,
)
from fastmmc.kernels.models import check_in_metric
from fastmmc.kernels.nystroem import LANDMARK_STREAM, check_form, make_features

# Share of the hat matrix's time that the Gram matrix takes, for the progress bar.
GRAM_SHARE = 0.2

# lam must be at least this many rounding errors of K, or of R; Q and the leave-one-out error then
# keep three digits.
LEAST_LAM = 100.0

# Rows that Z^T Z is summed over at a time: with 512 in place of 2,048 it takes 1.3 times as long.
SQUARED_ROWS = 2048

# A low-rank Z of more entries is in single precision, unless its type is given: so `umc_rls` of
# 100,000 x 2 points in 100 clusters takes 10.6 s, and 15.1 s in double precision.
DOUBLE_ENTRIES = 20_000_000

# R = I - lam (K + lam I)^-1 loses its digits if lam is below this share of K's largest eigenvalue.
CHOLESKY_LIMIT = {
    np.dtype(np.float64): LEAST_LAM * np.finfo(np.float64).eps,
    np.dtype(np.float32): 1e-5,
}


@dataclass(frozen=True, eq=False, repr=False)
class DenseFactor(OneLine, Named):
    """The reusable expensive part of every RLS method: kernel, lam and hat matrix.

    Made by :func:`factor`; accepted wherever these methods take X.

    Attributes
    ----------
    R : (n, n) array
        Hat matrix K (K + lam I)^-1, symmetric, read-only.
    lam : float
        Regularisation.
    kernel : Kernel
        With its width set.
    X : (n, d) array
        Training points, needed for prediction.
    weights : (n,) float64 array or None
        Weights W of the points, None where all are 1; R is then S K S (S K S + lam I)^-1 with
        S = W^1/2.
    scaler : object or None
        What made X of the X given, with another ``metric``.
    feature_names_in : (d,) array of str or None
        Names of the columns of X, which results remember; None if they have none.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> F = fastmmc.factor(X, lam=0.5)
    >>> F.R.shape, F.lam
    ((150, 150), 0.5)
    """

    R: np.ndarray
    lam: float
    kernel: Kernel
    X: np.ndarray
    weights: np.ndarray | None = None
    scaler: Any = None

    @property
    def n(self) -> int:
        """Number of points."""
        return self.R.shape[0]

    def diagonal(self) -> np.ndarray:
        """Return the diagonal of R.

        Returns
        -------
        (n,) float64 array
            R_jj.
        """
        return np.ascontiguousarray(np.diagonal(self.R), dtype=np.float64)

    def coefficients(self, P: np.ndarray) -> np.ndarray:
        """Return the dual coefficients (K + lam I)^-1 P = (P - R P) / lam.

        Parameters
        ----------
        P : (n, k) array
            Targets.

        Returns
        -------
        (n, k) array
            One column a target: predictions are k(x, X) times these.
        """
        return (P - self.R @ P) / self.lam


@dataclass(frozen=True, eq=False, repr=False)
class LowRankFactor(OneLine, Named):
    """The reusable expensive part of every RLS method, in O(nr) memory.

    Made by :func:`fastmmc.factor` with a ``rank``; accepted wherever these methods take X.
    With B the landmarks and K~ = K_nB K_BB^+ K_Bn, the hat matrix is
    K~ (K~ + lam I)^-1 = Z Z^T, and Z = K_nB M also maps new points: z(x) = k(x, B) M.

    Attributes
    ----------
    Z : (n, r) array
        Hat factor, read-only.
    lam : float
        Regularisation.
    kernel : Kernel
        With its widths set.
    X : (n, d) array or sparse matrix
        Training points.
    basis : (b, d) array
        Landmarks, a sparse array if X is sparse and has more than 1,000 columns; with a precomputed
        kernel their rows of the Gram matrix.
    projection : (b, r) float64 array
        M above.
    indices : (b,) int64 array or None
        Which training points the landmarks are; None if they were given as points.
    scale : (r, r) float64 array
        Lower triangular L with K~ = (Z L^T) (Z L^T)^T and Z^T Z = I - lam (L^T L)^-1.
    residual : (n,) float64 array
        K_jj - K~_jj, what the landmarks leave out of each point.
    weights : (n,) float64 array or None
        Weights W of the points, None where all are 1; K~ above is then S K~ S with S = W^1/2, and
        Z = S K_nB M.
    scaler : object or None
        What made X of the X given, with another ``metric``.
    feature_names_in : (d,) array of str or None
        Names of the columns of X, which results remember; None if they have none.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> F = fastmmc.factor(X, rank=20, random_state=0)
    >>> F.Z.shape[0], F.Z.shape[1] <= 20, F.basis.shape
    (150, True, (20, 4))
    """

    Z: np.ndarray
    lam: float
    kernel: Kernel
    X: Any
    basis: np.ndarray | csr_array
    projection: np.ndarray
    indices: np.ndarray | None
    scale: np.ndarray
    residual: np.ndarray
    weights: np.ndarray | None = None
    scaler: Any = None

    @property
    def n(self) -> int:
        """Number of points."""
        return self.Z.shape[0]

    @property
    def rank(self) -> int:
        """Number of columns of Z."""
        return self.Z.shape[1]

    def diagonal(self) -> np.ndarray:
        """Return the diagonal of Z Z^T.

        Returns
        -------
        (n,) float64 array
            Squared row norms of Z.
        """
        return np.einsum("ij,ij->i", self.Z, self.Z, dtype=np.float64)

    @completed_by(DenseFactor.coefficients)
    def coefficients(self, P: np.ndarray) -> np.ndarray:
        """Return the coefficients of the landmarks for the targets P.

        Returns
        -------
        (b, k) float64 array
            One column a target: predictions are k(x, basis) times these.
        """
        total = np.zeros((P.shape[1], self.rank))
        for rows, Z in self._blocks():
            total += P[rows].T @ Z
        return self.projection @ total.T

    def _cluster_sums(self, labels, k):
        """Return W = E^T Z, (k, r) float64: the rows of Z, summed over each cluster.

        Of points with weights it is E^T S Z. The codes 2E - 1 have Z^T P = (2 W - sum_h W[h])^T.
        """
        W = np.zeros((k, self.rank))
        _, roots = weights_of(self)
        # Blocks of at least as many rows as there are sums, which each of them adds to.
        for rows in gen_batches(self.n, max(BLOCK, k)):
            Z = self.Z[rows].astype(np.float64, copy=False)
            E = csc_array((roots[rows], labels[rows], np.arange(len(Z) + 1)), (k, len(Z)))
            W += E @ Z
        return W

    def _cluster_scores(self, W, out=None):
        """Return W Z^T, (k, n) float64, in ``out`` if given: how well points fit k directions."""
        if out is None:
            out = np.empty((W.shape[0], self.n))
        for rows, Z in self._blocks():
            np.matmul(W, Z.T, out=out[:, rows])
        return out

    def _blocks(self):
        """Yield slices and these rows of Z in double precision: Z as a whole is not converted."""
        for rows in gen_batches(self.n, BLOCK):
            yield rows, self.Z[rows].astype(np.float64, copy=False)

    def _in_double_precision(self):
        """Return the factor with a float64 Z, itself if it has one.

        Searches that go point by point compute rows of Z Z^T, whose rounding must not exceed that
        of its diagonal.
        """
        if self.Z.dtype == np.float64:
            return self
        memory.check_memory(self.n, np.dtype(np.float64), columns=self.rank)
        return replace(self, Z=self.Z.astype(np.float64))

    def _as_dense(self):
        """Return the DenseFactor of Z Z^T; yield the numbers of rows filled."""
        memory.check_memory(self.n, self.Z.dtype, what="product Z Z^T")
        R = np.empty((self.n, self.n), self.Z.dtype)

        def fill(rows):
            np.matmul(self.Z[rows], self.Z[: rows.stop].T, out=R[rows, : rows.stop])
            return rows.stop - rows.start

        yield from in_threads(R.size * self.rank / 2, fill, gen_batches(self.n, BLOCK))
        mirror_lower(R)  # exactly symmetric
        return DenseFactor(R, self.lam, self.kernel, self.X, scaler=self.scaler)

    @completed_by(BlockFactor.transform)
    def transform(self, X: MatrixLike) -> np.ndarray:
        """Return z(x) for new points, so that inner products with Z give hat matrix entries.

        Parameters
        ----------
        X : (m, d) array_like or sparse matrix
            New points; with a precomputed kernel their (m, n) kernel values.

        Returns
        -------
        (m, r) float64 array
            One row a point.
        """
        X = self._in_numbers(X)
        d = self.X.shape[1] if self.scaler is None else self.scaler.n_features
        X = check_in_metric(X, self.kernel, d, np.float64, self.scaler)
        return kernel_product(self.kernel, X, self.basis, self.projection, self.indices)


def weights_of(factor):
    """Return the weights of all points of a factor, (n,), all 1 if it has none, and their roots."""
    weights = np.ones(factor.n) if factor.weights is None else factor.weights
    return weights, np.sqrt(weights)


class _FactorCall(
    PrecisionParameters, LandmarkParameters, KernelParameters, Metric, Regularisation, Points
):
    X: MatrixLike = parameter(
        kw_only=False,
        kind="(n, d) array_like, sparse matrix or dask.array",
        doc="""
        Points (float32 is kept, anything else becomes float64); with
        ``kernel="precomputed"`` their (n, n) Gram matrix. The blocks of a Dask array, or of a large
        memory map, never come together.
        """,
    )
    lam: float = parameter(
        default=0.25,
        doc="""
        Regularisation, > 0. The 2009 paper's lambda is lam / n. At least 2e-14 times the trace of
        K, and in single precision 1e-5 times its largest entry: less is lost in rounding.
        """,
    )
    random_state: RandomState = parameter(
        default=None,
        doc="Chooses landmarks; dense and pivoted factors draw nothing.",
    )
    k: int | None = parameter(
        default=None,
        least=1,
        doc="""
        Number of clusters that the default width is for: that of :func:`fastmmc.umc_rls`, or the
        median distance for None.
        """,
    )


@function_of(_FactorCall)
def factor(call: _FactorCall, control: RunControl) -> DenseFactor | LowRankFactor | BlockFactor:
    """Compute the hat matrix R = K (K + lam I)^-1 once, for many clusterings.

    A dense factor takes O(n^3) time and one n x n array, and each clustering from it O(n^2) time.
    One of rank r takes O(n r^2) time and one n x r array, and no n x n array is ever made.

    Returns
    -------
    DenseFactor, LowRankFactor or BlockFactor
        Accepted in place of X by :func:`fastmmc.umc_rls` and :func:`fastmmc.fast_evo_mmc`, and by
        :func:`fastmmc.evo_mmc` unless it is a BlockFactor, which points in blocks have.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range or X is not a finite matrix.
    MemoryError
        If the n x n or n x r array does not fit into free memory.

    Warns
    -----
    UserWarning
        If columns of X seem to have different units.

    Notes
    -----
    The features that make up Z stay where the blocks are if X is a Dask array of more than 20,000
    points or a memory map of more than 2^27 numbers. Width and landmarks then come from a sample,
    and ``rank=None`` is not supported.

    References
    ----------
    T. Pahikkala, A. Airola, F. Gieseke, O. Kramer, Unsupervised multi-class regularized
    least-squares classification, ICDM 2012, section II.

    F. Gieseke, T. Pahikkala, O. Kramer, Fast evolutionary maximum margin clustering, ICML 2009,
    section 4 (the low-rank form).

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.make_moons(200, noise=0.05, random_state=0)
    >>> F = fastmmc.factor(X, lam=0.25)
    >>> fastmmc.umc_rls(F, 2).sizes
    array([100, 100])
    >>> Z = fastmmc.factor(X, rank=50, random_state=0).Z  # a wide kernel has fewer columns
    >>> Z.shape[0], Z.shape[1] <= 50
    (200, True)
    """
    call, units = in_units(call)
    kernel = kernel_of(call)
    X = call.X
    if in_blocks(X):
        blocks = make_blocks(X)
        if blocks.shape[0] > SAMPLE:
            return units.tell(_factor_blocks(call, kernel, blocks))
        X = blocks.everything()
    X = validation.check_points(X, kernel, sparse=True)
    form = check_form(X, kernel, **values(call, LandmarkParameters, PrecisionParameters))
    if form.rank is None and kernel.name != "precomputed":
        X = X.copy()  # kept, whatever becomes of what was given
    with one_blas_thread():
        kernel = resolve_kernel(kernel, X, default_width(call.k))
        made = make_factor(X, call.lam, kernel, form, fixed_seed(call.random_state))
    return units.tell(made)


def _factor_blocks(call, kernel, blocks):
    """Return the factor of points in blocks; width and landmarks come from a sample."""
    given = values(call, LandmarkParameters, PrecisionParameters)
    form = check_block_form(blocks, kernel, **given)
    blocks, seed = make_blocks(call.X, form.rank), fixed_seed(call.random_state)
    sample = draw_sample(blocks, sample_size(call.k or 1, form.rank), seed)
    kernel = resolve_kernel(kernel, sample, default_width(call.k))
    basis = factor_sample(sample, blocks.shape[0], call.lam, kernel, form, seed).basis
    check_lam(call.lam, kernel, sample, form.dtype or blocks.dtype)
    return make_block_factor(blocks, call.lam, kernel, basis, form.dtype)


def factor_sample(sample, n, lam, kernel, form, seed):
    """Return the factor of a sample of n points.

    With lam in proportion, so that the eigenvalues of its hat matrix are about those of all points.
    """
    m = len(sample)
    form = replace(form, rank=min(m, form.rank), dtype=np.dtype(np.float64))
    return make_factor(sample, lam * m / n, kernel, form, seed)


def make_factor(X, lam, kernel, form, seed, on_progress=None):
    """Return the factor for one lam, of points and parameters that were already checked."""
    return next(factor_path(X, [lam], kernel, form, seed, on_progress))


def factor_path(X, lams, kernel, form, seed, on_progress=None):
    """Yield the factor for each lam, with a read-only R or Z; dense, K is evaluated once.

    ``seed`` draws the landmarks, the same for every lam. ``on_progress`` is told the share done,
    0..1, anew for each lam; what it raises ends the work.
    """
    form = _with_precision(form, X, kernel, min(lams))
    check_lam(min(lams), kernel, X, form.dtype, form.weights)
    if form.rank is not None:
        for lam in lams:
            rng = restart_stream(seed, LANDMARK_STREAM)
            yield make_low_rank_factor(X, lam, kernel, form, rng, on_progress)
        return
    points = X.astype(form.dtype, copy=False)
    path = hat_path(kernel, points, lams, on_progress, form.weights)
    for lam, R in zip(lams, path, strict=True):
        R.flags.writeable = False
        yield DenseFactor(R, lam, kernel, X, form.weights)


def _with_precision(form, X, kernel, lam):
    """Return the form with the type of R or Z: single if X is or Z is large, and lam allows it."""
    if form.dtype is not None:
        return form
    dtype, single = np.dtype(np.float64), np.dtype(np.float32)
    # Pivoted landmarks are fewer than their limit, and take double precision to find.
    known = form.rank is not None and not form.is_pivoted
    if X.dtype == single or (known and X.shape[0] * form.rank > DOUBLE_ENTRIES):
        of_gram, of_hat, _ = _roundings(kernel, X, single, form.weights)
        dtype = single if lam >= LEAST_LAM * max(of_gram, of_hat) else dtype
    return replace(form, dtype=dtype)


def _roundings(kernel, X, dtype, weights):
    """Return how far rounding hides lam, in K and in R of this type, and the largest K_jj.

    K is known to eps trace(K) in double precision, and 1 - R_jj, which is at least lam / (K_jj +
    lam), to the rounding of R's own type.
    """
    diagonal = _weighted_diagonal(kernel, X, weights)
    largest = diagonal.max()
    of_gram = np.finfo(np.float64).eps * diagonal.sum()
    return of_gram, float(np.finfo(dtype).eps) * largest, largest


def _weighted_diagonal(kernel, X, weights):
    """Return the diagonal of S K S, S = W^1/2, or that of K without weights."""
    diagonal = kernel_diagonal(kernel, X)
    return diagonal if weights is None else weights * diagonal


def check_lam(lam, kernel, X, dtype, weights=None):
    """Refuse a lam that rounding errors of R or Z, of type ``dtype``, hide."""
    of_gram, of_hat, largest = _roundings(kernel, X, dtype, weights)
    least = LEAST_LAM * max(of_gram, of_hat)
    if lam < least:
        kinds = "float32" if of_hat > of_gram else "float64"
        wider = "; or give dtype='float64'" if kinds == "float32" else ""
        values = "for this kernel, whose values reach"
        if weights is not None:
            values = "for this kernel, whose values times weights (of equal rows the sum) reach"
            wider += "; or lower sample_weight in proportion"
        raise ValueError(
            f"lam={lam:g} is lost in the rounding of {kinds} {values} {largest:.3g}: lam must be "
            f"at least {least:.3g}{wider}"
        )


def make_low_rank_factor(X, lam, kernel, form, rng, on_progress=None):
    """Return the factor of low rank for one lam; ``rng`` draws the landmarks."""
    # Every row is visited three times.
    advance = counter(3 * X.shape[0], on_progress)
    features = make_features(X, kernel, form, rng, advance)
    Z, diagonal = features.Z, _weighted_diagonal(kernel, X, form.weights)
    if form.weights is not None:
        Z *= np.sqrt(form.weights)[:, None].astype(Z.dtype)
    if lam < features.left_out:
        raise ValueError(
            f"lam={lam:g} is too small for this kernel of low rank, which leaves out eigenvalues "
            f"up to {features.left_out:.3g}: give a larger lam, or rank=None, or centre the points "
            "(and lower coef0) if the kernel is linear"
        )
    explained = np.einsum("ij,ij->i", Z, Z, dtype=np.float64)
    residual = np.maximum(diagonal - explained, 0.0)
    half, scale = run_to_end(_shrink(Z, lam), advance)
    Z.flags.writeable = False
    to_Z = features.to_Z @ half
    return LowRankFactor(
        Z, lam, kernel, X, features.basis, to_Z, features.indices, scale, residual, form.weights
    )


def _shrink(Z, lam):
    """Turn Z0 into Z = Z0 L^-T in place, with L L^T = Z0^T Z0 + lam I; return L^-T and L.

    Yields the number of rows worked on; each is counted twice.
    """
    r = Z.shape[1]
    L = np.zeros((r, r))

    def square(rows):
        wide = Z[rows].astype(np.float64, copy=False)
        return wide.T @ wide, len(wide)

    with map_of_threads(Z.size * r) as map_pieces:
        for product, n_rows in map_pieces(square, gen_batches(len(Z), SQUARED_ROWS)):
            L += product
            yield n_rows
        half = ridge_root(L, lam)
        stairs = Staircase(half, Z.dtype)

        def multiply(rows):
            stairs.multiply(Z[rows], Z[rows])
            drop_faint(Z[rows])
            return len(Z[rows])

        yield from map_pieces(multiply, gen_batches(len(Z), BLOCK))
    return half, L


def hat_matrix(kernel, X, lam, weights=None):
    """Return the symmetric C-order R = K (K + lam I)^-1 for one lam, as :func:`hat_path` does."""
    return next(hat_path(kernel, X, [lam], weights=weights))


def hat_path(kernel, X, lams, on_progress=None, weights=None):
    """Yield the (n, n) hat matrix for each lam, exactly symmetric, C-order; K is evaluated once.

    With ``weights`` W of the points it is that of S K S, S = W^1/2.

    Each takes a Cholesky inverse, in place. One eigendecomposition would serve all lam, but the
    product V diag V^T for each costs as much as the inverse. It is the fallback where lam is too
    small for the subtraction or K is indefinite; its negative eigenvalues then count as zero.
    """
    dtype = X.dtype
    # The trace bounds the largest eigenvalue.
    trace = _weighted_diagonal(kernel, X, weights).sum()
    if dtype == np.float32 and min(lams) < CHOLESKY_LIMIT[dtype] * trace:
        X = X.astype(np.float64)
    # R is copied at the end if its type is another.
    held = min(2, len(lams)) + (X.dtype != dtype)
    memory.check_memory(X.shape[0], X.dtype, arrays=held)
    gram = np.empty((X.shape[0], X.shape[0]), dtype=X.dtype)
    tell = on_progress or (lambda fraction, ahead=0.0: None)

    def fill():
        fill_lower_gram(kernel, X, gram, lambda fraction: tell(GRAM_SHARE * fraction))
        if weights is not None:
            roots = np.sqrt(weights).astype(gram.dtype)
            for i, row in enumerate(gram):
                row[: i + 1] *= roots[i] * roots[: i + 1]

    fill()
    eigen = None
    for at, lam in enumerate(lams):
        R = None
        if eigen is None and lam >= CHOLESKY_LIMIT[X.dtype] * np.trace(gram, dtype=np.float64):
            # The last lam may overwrite the Gram matrix itself.
            A = gram if at == len(lams) - 1 else gram.copy()
            R = _hat_in_place(A, lam, lambda share: tell(GRAM_SHARE + (1 - GRAM_SHARE) * share))
        if R is None:
            if eigen is None:
                # In addition to the Gram matrix: the eigenvectors, these scaled, and R.
                memory.check_memory(X.shape[0], X.dtype, arrays=3)
                fill()
                tell(GRAM_SHARE, eigh_seconds(len(gram)))
                eigen = eigh_lower(gram)
            R = hat_from_eigh(*eigen, lam)
        yield R.astype(dtype, copy=False)


def _hat_in_place(A, lam, on_progress):
    """Turn the lower triangle of a Gram matrix into the hat matrix; None if it is indefinite."""
    add_to_diagonal(A, lam)
    if not invert_lower(A, on_progress):
        warn_user(
            "the kernel matrix is not positive semidefinite; its negative eigenvalues are taken as "
            "zero",
            UserWarning,
        )
        return None
    mirror_lower(A, -lam)
    add_to_diagonal(A, 1.0)
    return A


def eigh_seconds(n):
    """Estimate the seconds of an n x n eigendecomposition on a slow core; nothing can stop it."""
    return 3e-10 * n**3


def eigh_lower(A):
    """Return eigenvalues, 0 where below rounding, and eigenvectors of A, which is overwritten."""
    w, V = eigh(A, lower=True, overwrite_a=True, check_finite=False)
    noise = A.shape[0] * np.finfo(A.dtype).eps * w[-1]
    return np.where(w > noise, w, 0.0), V


def hat_from_eigh(w, V, lam):
    """Return the symmetric R = V diag(w / (w + lam)) V^T: one eigendecomposition, many lam."""
    half = V * np.sqrt(w / (w + lam)).astype(V.dtype)
    # NumPy computes only one triangle of a product with its own transpose, and copies it.
    return half @ half.T


def leave_one_out_residuals(targets, predictions, diagonal):
    """Return targets minus leave-one-out predictions, of targets' shape, (n,) or (n, k).

    y_j - f_{-j}(x_j) = (y_j - t_j) / (1 - R_jj) with t = R y. A model of no points predicts 0, so
    the residual of a single point is its target. 1 - R_jj is at least lam / (K_jj + lam), which
    :func:`check_lam` keeps well above rounding.
    """
    rest = 1.0 - diagonal
    if targets.ndim == 2:
        rest = rest[:, None]
    return (targets - predictions) / rest
