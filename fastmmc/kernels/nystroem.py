"""Landmarks, and Nystroem features Z with K ~ Z Z^T, for every family."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh, lapack, solve_triangular
from scipy.sparse import csr_array, issparse

from fastmmc.core import memory, validation
from fastmmc.core.display import OneLine
from fastmmc.core.execution import restart_stream
from fastmmc.core.threads import run_to_end
from fastmmc.kernels.cholesky import invert_triangle
from fastmmc.kernels.gram import kernel_diagonal, kernel_points, kernel_product, kernel_rows
from fastmmc.kernels.kmeans import begin_choice

# The random stream that draws landmarks; those of restarts count from 0.
LANDMARK_STREAM = 2**32 - 1

LANDMARKS = ("uniform", "k-means++", "pivoted")

# What a rank may be beside "auto".
RANKS = ", an integer, a share of the points or None"

# rank="auto" is dense up to DENSE_LIMIT points. Above, Z has AUTO_RANK columns, or fewer to stay
# within AUTO_ENTRIES entries.
DENSE_LIMIT = 10_000
AUTO_RANK = 1_000
AUTO_ENTRIES = 300_000_000
LEAST_AUTO_RANK = 100

# Landmarks of features for which a time limit always leaves room, and products of n points, k
# clusters and these that a pass over all points takes half a second for.
BRIEF_RANK = 50
BRIEF_PRODUCTS = 2 * 10**9

# A landmark is dropped if others explain it up to this share of the largest diagonal entry.
LANDMARK_TOLERANCE = 1e-10

# Seconds that the inverse root of a kernel matrix takes on a slow core, over the cube of its rows.
ROOT_SECONDS = 1e-10

# What is left of a trace counts as rounding below this many rounding errors per landmark.
NOISE = 10.0

# Points that one step of the pivoted Cholesky looks at, and the share of the first one's error that
# the next ones must have to be taken.
PIVOT_BLOCK = 64
PIVOT_SHARE = 0.25


@dataclass(frozen=True, eq=False, repr=False)
class Form(OneLine):
    """Whether the Gram or hat matrix is dense or of low rank, and how it is made."""

    rank: int | None = None  # landmarks, or their limit if pivoted; None: dense
    landmarks: str | np.ndarray | csr_array = "uniform"
    rank_tol: float = 1e-6  # share of the trace of K that a pivoted factor may miss
    dtype: np.dtype | None = None  # of R or Z; None: that of X
    weights: np.ndarray | None = None  # (n,) of the points in R or Z; None: all 1

    @property
    def is_pivoted(self):
        """Whether landmarks are chosen one by one until they suffice, up to the rank."""
        return isinstance(self.landmarks, str) and self.landmarks == "pivoted"


def check_form(X, kernel, rank, landmarks, rank_tol, dtype):
    """Return the form that declared parameters describe, with the rank as a number or None."""
    landmarks = check_landmarks(landmarks, X, kernel)
    rank = resolve_rank(rank, landmarks, X.shape[0])
    if rank is None and issparse(X):
        # With all points as landmarks, as of few points, it is the dense one but for rounding.
        rank = auto_rank(X.shape[0])
    return Form(rank, landmarks, rank_tol, dtype)


def resolve_rank(rank, landmarks, n):
    """Return the number of landmarks, of pivoted ones a limit; None for the dense hat matrix."""
    given = None if isinstance(landmarks, str) else landmarks.shape[0]
    if rank is None:
        if given is not None:
            raise ValueError("rank=None asks for the dense hat matrix, which uses no landmarks")
        return None
    if isinstance(rank, str):
        validation.check_choice("rank", rank, ("auto",), RANKS)
        if given is not None:
            return given
        if landmarks == "pivoted":
            return n
        return None if n <= DENSE_LIMIT else auto_rank(n)
    if isinstance(rank, float | np.floating):
        share = validation.check_number("rank", rank)
        if not 0 < share <= 1:
            raise ValueError(f"rank: a share of the points must be in (0, 1]; got {rank}")
        rank = max(1, round(share * n))
    why = ", the number of points" + (" (n_samples = 1)" if n == 1 else "")
    rank = validation.check_integer("rank", rank, least=1, most=n, why=why)
    if given is not None and rank != given:
        raise ValueError(f"rank is {rank}, but {given} landmarks were given; leave rank at 'auto'")
    return rank


def auto_rank(n):
    """Return the number of landmarks of points of which none was given."""
    return min(n, AUTO_RANK, max(LEAST_AUTO_RANK, AUTO_ENTRIES // n))


def check_landmarks(landmarks, X, kernel):
    """Return how to choose landmarks, their (b,) int64 indices, or the (b, d) points themselves."""
    if isinstance(landmarks, str):
        validation.check_choice("landmarks", landmarks, LANDMARKS, " or an array")
        if landmarks == "k-means++" and kernel.name == "precomputed":
            raise ValueError(
                "landmarks='k-means++' needs points; with kernel='precomputed' give 'uniform', "
                "'pivoted' or indices"
            )
        return landmarks
    array = landmarks if issparse(landmarks) else validation.to_array("landmarks", landmarks)
    n = X.shape[0]
    if array.ndim == 1 and array.dtype.kind in "iu":
        if array.size == 0 or array.min() < 0 or array.max() >= n:
            raise ValueError(f"landmarks: indices must be 0..{n - 1}, at least one; got {array}")
        return array.astype(np.int64)
    if array.ndim != 2 or kernel.name == "precomputed":
        raise ValueError(
            "landmarks must be one of 'uniform', 'k-means++', 'pivoted', a vector of indices, or "
            f"(not with kernel='precomputed') a matrix of points; got shape {array.shape} and "
            f"type {array.dtype}"
        )
    return validation.check_new_points(array, kernel, X.shape[1], np.float64, name="landmarks")


@dataclass(frozen=True, eq=False, repr=False)
class Features(OneLine):
    """Features whose products approximate the kernel: K ~ Z Z^T with Z = K_nB to_Z."""

    Z: np.ndarray  # (n, r); None if only the map is kept
    to_Z: np.ndarray  # (b, r) float64
    basis: np.ndarray | csr_array  # (b, d) float64: the landmarks B; sparse if X is, and wide
    indices: np.ndarray | None  # (b,) int64: which points they are, if they are points
    left_out: float = 0.0  # about the largest eigenvalue of K, above rounding, that is missing


def make_features(X, kernel, form, rng, advance):
    """Return features with Z Z^T = K_nB K_BB^+ K_Bn, for the landmarks B of a checked form.

    ``advance`` is told how many rows were worked on, sometimes none, and the seconds of an
    uninterruptible step that comes next; what it raises ends the work.
    """
    dtype = form.dtype or X.dtype
    left_out = 0.0
    if form.is_pivoted:
        Z, indices, basis, to_Z = _pivoted_cholesky(X, kernel, form, advance)
        memory.check_memory(X.shape[0], dtype, columns=Z.shape[1])
        Z = np.ascontiguousarray(Z, dtype=dtype)
    else:
        memory.check_memory(X.shape[0], dtype, columns=form.rank)
        indices, basis = _choose(X, kernel, form, rng, advance)
        to_Z, left_out = map_to_features(kernel, basis, indices, X.shape[0], advance)
        Z = kernel_product(kernel, X, basis, to_Z, indices, dtype, advance)
    return Features(Z, to_Z, basis, indices, left_out)


def form_features(X, kernel, form, seed, look=lambda ahead=0.0: None):
    """Return float64 features of a checked form; what ``look(ahead)`` raises ends the work."""
    form = replace(form, dtype=np.dtype(np.float64))
    rng = restart_stream(seed, LANDMARK_STREAM)
    return make_features(X, kernel, form, rng, lambda n_rows, ahead=0.0: look(ahead))


def with_landmarks(X, kernel, form, seed, look):
    """Return a checked form with the points that :func:`form_features` would choose as landmarks.

    Not for pivots, which are chosen while the features are made.
    """
    rng = restart_stream(seed, LANDMARK_STREAM)
    _, basis = _choose(X, kernel, form, rng, lambda n_rows, ahead=0.0: look(ahead))
    return replace(form, landmarks=basis)


def brief_features(X, kernel, seed, k=2):
    """Return features of rank 50 or less for k clusters, for want of time for better ones."""
    n = X.shape[0]
    rank = max(1, min(BRIEF_RANK, n, BRIEF_PRODUCTS // (n * k)))
    return form_features(X, kernel, Form(rank), seed)


def _choose(X, kernel, form, rng, advance):
    """Return the indices and the points of the landmarks."""
    rank, landmarks = form.rank, form.landmarks
    if not isinstance(landmarks, str) and landmarks.ndim == 2:
        return None, kernel_points(kernel, landmarks)
    if isinstance(landmarks, np.ndarray):
        indices = landmarks
    elif landmarks == "uniform":
        indices = np.sort(rng.choice(X.shape[0], rank, replace=False))
    else:
        seed = int(rng.integers(2**31))
        indices = run_to_end(begin_choice(X, rank, seed).choosing(), lambda cost: advance(0))
    return indices, kernel_points(kernel, X, indices).astype(np.float64)


def map_to_features(kernel, basis, indices, n, advance=lambda n_rows, ahead=0.0: None, coef=None):
    """Return the map from kernel values to features, and about what these leave out of n points.

    Uses the pivoted Cholesky factor of K_BB. The plain one of the 2009 paper fails for duplicate
    landmarks and wide kernels.
    ``advance`` is as for :func:`make_features`. With ``coef`` (b, m) the features span the
    functions k(x, basis) coef alone.
    """
    b = basis.shape[0]
    among = np.empty((b, b))
    for rows, values in kernel_rows(kernel, basis, basis, indices):
        advance(0)
        among[rows] = values
    advance(0, ROOT_SECONDS * b**3)
    among = (among + among.T) / 2
    if coef is not None:
        among = coef.T @ among @ coef
    to_Z, left_out = _inverse_root(among)
    return to_Z if coef is None else coef @ to_Z, left_out * n / b


def _inverse_root(K):
    """Return M with M M^T the inverse of K on its linearly independent rows, and zero elsewhere.

    Also returns what these rows leave of the trace of K, 0 if it is rounding noise. A K with
    negative eigenvalues is replaced by its positive part, which takes an eigendecomposition.
    """
    n = K.shape[0]
    diag = np.diagonal(K)
    corner, order, rank, _ = lapack.dpstrf(K, tol=LANDMARK_TOLERANCE * diag.max(), lower=1)
    order = order - 1
    corner = np.tril(corner[:, :rank])
    if _is_indefinite(K, corner, order):
        w, U = eigh(K, check_finite=False)
        keep = w > LANDMARK_TOLERANCE * w[-1]
        return U[:, keep] / np.sqrt(w[keep]), 0.0
    if rank == 0:
        return np.zeros((n, 1)), 0.0
    left_out = diag.sum() - np.sum(corner**2)
    noise = NOISE * n * np.finfo(np.float64).eps * diag.sum()
    root = np.zeros((n, rank))
    root[order[:rank]] = invert_triangle(corner[:rank]).T
    return root, float(left_out) if left_out > noise else 0.0


def _is_indefinite(K, corner, order):
    """Tell whether a pivoted factor leaves more of K than it would of a semidefinite matrix.

    There, no remaining entry exceeds the largest diagonal one, at which the factor ended. An
    indefinite matrix may have larger ones, which products with random vectors reveal.
    """
    n = K.shape[0]
    probes = np.random.default_rng(0).standard_normal((n, 2))
    left = (K @ probes)[order] - corner @ (corner.T @ probes[order])
    allowed = LANDMARK_TOLERANCE * np.diagonal(K).max() + np.finfo(np.float64).eps * np.abs(K).max()
    return bool(np.abs(left).max() > NOISE * n * allowed)


def _pivoted_cholesky(X, kernel, form, advance):
    """Factor K = L L^T column by column until less than ``rank_tol`` of its trace is missing.

    Each step looks at the points that are approximated worst, and keeps taking the worst one left
    while it is nearly as bad as the first. Only the columns of these points are evaluated. Returns
    L (n, r), the pivots, their points, and the map with L = K_nB map.
    """
    n, rank = X.shape[0], form.rank
    missing = kernel_diagonal(kernel, X)
    # Rounding noise cannot be explained.
    total = missing.sum() or 1.0
    enough = max(form.rank_tol, n * np.finfo(np.float64).eps) * total
    L = np.empty((n, 0))
    pivots = np.empty(0, dtype=np.int64)
    while pivots.size < rank and missing.sum() > enough:
        # As many as without a limit, so that the first pivots are the same.
        tried = np.argsort(-missing, kind="stable")[:PIVOT_BLOCK]
        columns = np.empty((n, tried.size))
        points = kernel_points(kernel, X, tried).astype(np.float64)
        for rows, values in kernel_rows(kernel, X, points, tried):
            advance(0)
            columns[rows] = values - L[rows] @ L[tried].T
        corner, order, n_taken, _ = lapack.dpstrf(
            columns[tried], tol=PIVOT_SHARE * missing[tried[0]], lower=1
        )
        if n_taken == 0:
            break
        order = order[:n_taken] - 1
        corner = np.tril(corner[:n_taken, :n_taken])
        new = solve_triangular(corner, columns[:, order].T, lower=True, check_finite=False).T
        new, order = new[:, : rank - pivots.size], order[: rank - pivots.size]
        L = _append(L, new, rank)
        pivots = np.concatenate((pivots, tried[order]))
        before = missing.sum()
        missing = np.maximum(missing - np.einsum("ij,ij->i", new, new), 0.0)
        missing[pivots] = 0.0
        advance(n * (before - missing.sum()) / total)
    advance(n * missing.sum() / total)
    to_Z = invert_triangle(np.tril(L[pivots])).T
    basis = kernel_points(kernel, X, pivots).astype(np.float64)
    return L, pivots, basis, to_Z


def _append(L, new, most):
    """Return L with new columns, in room for ``most`` at most that is doubled when it is full."""
    n, r = L.shape
    store = L if L.base is None else L.base
    width = r + new.shape[1]
    if width > store.shape[1]:
        capacity = min(most, max(2 * r, width))
        memory.check_memory(n, L.dtype, columns=capacity)
        store = np.empty((n, capacity))
        store[:, :r] = L
    store[:, r:width] = new
    return store[:, :width]
