"""The space of the prototypes, among the points or in features of a kernel; first prototypes."""

from __future__ import annotations

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import gen_batches
from sklearn.utils.extmath import safe_sparse_dot

from fastmmc import validation
from fastmmc._means import choose_points
from fastmmc.competitive import _loops as kernels
from fastmmc.gram import BLOCK, dense_rows, resolve_kernel
from fastmmc.models import Space
from fastmmc.nystroem import check_form, form_features

STARTS = ("gaussian", "k-means++")

# Larger values are refused in points, features and first prototypes: their squares may overflow,
# and prototypes that learned such objects never come back.
LARGEST = 1e150

# Share of the points whose normal distribution first prototypes are drawn from.
START_SHARE = 0.2

# rank="auto" is this many times sqrt(n) where the dense form would be chosen elsewhere.
AUTO_RANK_FACTOR = 10
LEAST_AUTO_RANK = 100


def check_space(points, features, kernel, rank, landmarks, rank_tol):
    """Return the kernel and the form of the features for :func:`make_space`; None: no features."""
    if features is None:
        return None
    if rank is None:
        raise ValueError("rank=None asks for a dense kernel; features='nystroem' needs a number")
    rank = _resolve_rank(rank, landmarks, points.shape[0])
    return kernel, check_form(points, kernel, rank, landmarks, rank_tol, None)


def _resolve_rank(rank, landmarks, n):
    """Return the rank; for few points "auto" becomes a number too."""
    few = isinstance(rank, str) and rank == "auto" and isinstance(landmarks, str)
    if few and landmarks != "pivoted" and n <= 10_000:
        return min(n, max(LEAST_AUTO_RANK, int(AUTO_RANK_FACTOR * np.sqrt(n))))
    return rank


def make_space(points, checked, seed):
    """Return the space that :func:`check_space` describes, and the (n, d) points as its rows."""
    if checked is None:
        return Space(points.shape[1], points.dtype), points
    kernel, form = checked
    kernel = resolve_kernel(kernel, points)
    found = form_features(points, kernel, form, seed)
    # With a precomputed kernel points have a column for every training point.
    of_points = points.shape[1], points.dtype
    return Space(*of_points, kernel, found.basis, found.to_Z, found.indices), found.Z


def check_start(init):
    """Check first prototypes: the name of a way to choose them, or a (k, d) array of them."""
    if isinstance(init, str):
        return validation.check_choice("init", init, STARTS, " or a (k, d) array")
    if np.ndim(init) != 2:
        names = ", ".join(repr(name) for name in STARTS)
        raise ValueError(f"init must be one of {names} or a (k, d) array; got {init!r}")
    init = validation.check_matrix(init, name="init", dtype=np.float64, copy=True)
    check_magnitude(init, "init")
    return init


def first_prototypes(init, rows, k, rng):
    """Return (k, d) float64 first prototypes for an ``init`` from :func:`check_start`."""
    if not isinstance(init, str):
        validation.check_center_shape(init, k, rows.shape[1])
        return init.copy()
    if init == "k-means++":
        seed = int(rng.integers(2**31))
        # If squares overflow any points will do, as the objective will overflow too.
        with np.errstate(over="ignore", invalid="ignore"):
            chosen = choose_points(rows, k, seed)
        return np.ascontiguousarray(dense_rows(rows, chosen), dtype=np.float64)
    return _from_gaussian(rows, k, rng)


def _from_gaussian(rows, k, rng):
    """Draw prototypes from the normal distribution of a random fifth of the points.

    Sums of centred points with normal weights have its covariance, which is never formed.
    """
    n = rows.shape[0]
    size = min(n, max(k, 2, int(np.ceil(START_SHARE * n))))
    sample = rows[np.sort(rng.choice(n, size, replace=False))]
    mean = np.asarray(sample.mean(axis=0, dtype=np.float64)).ravel()
    weights = rng.standard_normal((k, size)) / np.sqrt(max(size - 1, 1))
    around = safe_sparse_dot(weights, sample, dense_output=True)
    return mean + around - weights.sum(axis=1)[:, None] * mean


def assign_rows(rows, centers):
    """Return the nearest prototype of every row, (n,) int64, and the sum of squared distances."""
    labels = np.empty(rows.shape[0], dtype=np.int64)
    sums, sizes = np.zeros(centers.shape), np.zeros(centers.shape[0])
    total = 0.0
    for block in gen_batches(rows.shape[0], BLOCK):
        total += kernels.assign(dense_rows(rows, block), centers, labels[block], sums, sizes)
    return labels, total


def space_params(space):
    """Return the kernel's parameters and the rank in use, for ``result.params``."""
    if not space.has_features:
        return {"features": None}
    return {"features": "nystroem", "rank": space.to_Z.shape[1]} | space.kernel.params()


def check_magnitude(rows, what="X"):
    """Refuse finite rows the squared distances of which may overflow; ``what`` names them."""
    values = rows.data if issparse(rows) else rows
    most = float(np.abs(values).max(initial=0.0))
    if not most <= LARGEST:
        raise ValueError(
            f"{what} must have no values beyond {LARGEST:g}, or squared distances overflow and the "
            f"prototypes are lost; got {most:.3g}: scale the columns first"
        )
