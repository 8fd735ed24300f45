"""Where prototypes live: among the points, or in features of a kernel; first prototypes; model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.extmath import safe_sparse_dot

from fastmmc import validation
from fastmmc._display import OneLine
from fastmmc._means import choose_points
from fastmmc.competitive import _loops as kernels
from fastmmc.execution import restart_stream
from fastmmc.gram import BLOCK, Kernel, dense_rows, kernel_product, resolve_kernel
from fastmmc.nystroem import LANDMARK_STREAM, Features, check_form, make_features

STARTS = ("gaussian", "k-means++")

# Points, features and first prototypes beyond this are refused: the squares of some of them soon
# overflow, and prototypes that learned them never come back.
LARGEST = 1e150

# The Gaussian that first prototypes are drawn from is that of so large a share of the points.
START_SHARE = 0.2

# Landmarks up to the size at which rank="auto" sets a number itself: so many times sqrt(n).
AUTO_RANK_FACTOR = 10
LEAST_AUTO_RANK = 100


@dataclass(frozen=True, eq=False, repr=False)
class Space(OneLine):
    """The space that prototypes move in, and the way there.

    Attributes
    ----------
    n_features : int
        Columns of the points.
    dtype : numpy.dtype
        Of the points.
    kernel : Kernel
        With its widths set; without features it says nothing.
    features : Features or None
        Without the features of the training points; None: prototypes move among the points.
    """

    n_features: int
    dtype: np.dtype
    kernel: Kernel
    features: Features | None = None

    def rows(self, X):
        """Return points as rows of the space: themselves, or (m, r) features."""
        if self.features is None:
            return X
        features = self.features
        return kernel_product(self.kernel, X, features.basis, features.to_Z, features.indices)


@dataclass(frozen=True, eq=False, repr=False)
class CentroidModel(OneLine):
    """Prototypes that new points are given to by distance.

    Attributes
    ----------
    centers : (m, d) float64 array
        Prototypes.
    space : Space
        Where they are.
    """

    centers: np.ndarray
    space: Space

    def distances(self, X):
        """Return the squared distances of new points to the prototypes, in row blocks.

        Parameters
        ----------
        X : (n, d) array_like or sparse matrix
            New points.

        Returns
        -------
        (n, m) float64 array
            Squared distances.
        """
        space = self.space
        X = validation.check_new_points(X, space.kernel, space.n_features, space.dtype)
        distances = np.empty((X.shape[0], self.centers.shape[0]))
        for start in range(0, X.shape[0], BLOCK):
            rows = slice(start, start + BLOCK)
            block = dense_rows(space.rows(X[rows]), slice(None))
            kernels.all_distances(block, self.centers, distances[rows])
        return distances

    def decision_function(self, X):
        """Return minus the squared distances of new points to the prototypes.

        Parameters
        ----------
        X : (n, d) array_like or sparse matrix
            New points.

        Returns
        -------
        (n, m) float64 array
            Scores; the largest one names the cluster.
        """
        return -self.distances(X)


def check_space(points, features, kernel, rank, landmarks, rank_tol):
    """Check the parameters of the space; returns what :func:`make_space` takes, or None."""
    if features is None:
        return None
    validation.check_choice("features", features, ("nystroem",), " or None")
    if rank is None:
        raise ValueError("rank=None asks for a dense kernel; features='nystroem' needs a number")
    form = check_form(
        points, kernel, _resolve_rank(rank, landmarks, points), landmarks, rank_tol, None
    )
    return kernel, form


def _resolve_rank(rank, landmarks, points):
    """Return the rank; "auto" is a number for few points too."""
    n = points.shape[0]
    few = isinstance(rank, str) and rank == "auto" and isinstance(landmarks, str)
    if few and landmarks != "pivoted" and n <= 10_000:
        return min(n, max(LEAST_AUTO_RANK, int(AUTO_RANK_FACTOR * np.sqrt(n))))
    return rank


def make_space(points, plan, seed):
    """Return the space of the training points, and these as its rows.

    Parameters
    ----------
    points : (n, d) array or CSR matrix
        Points.
    plan : tuple or None
        From :func:`check_space`.
    seed : numpy.random.SeedSequence
        For landmarks.

    Returns
    -------
    Space, (n, r) array or CSR matrix
        The space, and the rows.
    """
    n_features, dtype = points.shape[1], points.dtype
    if plan is None:
        return Space(n_features, dtype, Kernel("linear")), points
    kernel, form = plan
    kernel = resolve_kernel(kernel, points)
    found = make_features(
        points,
        kernel,
        form.rank,
        form.landmarks,
        form.rank_tol,
        restart_stream(seed, LANDMARK_STREAM),
        np.dtype(np.float64),
    )
    way = Features(np.empty((0, found.Z.shape[1])), found.to_Z, found.basis, found.indices)
    # A precomputed kernel has a column a training point.
    return Space(n_features, dtype, kernel, way), found.Z


def check_start(init):
    """Check how prototypes begin: a name, or the prototypes."""
    if isinstance(init, str):
        return validation.check_choice("init", init, STARTS, " or a (k, d) array")
    if np.ndim(init) != 2:
        names = ", ".join(repr(name) for name in STARTS)
        raise ValueError(f"init must be one of {names} or a (k, d) array; got {init!r}")
    init = validation.check_matrix(init, name="init", dtype=np.float64, copy=True)
    check_magnitude(init, "init")
    return init


def first_prototypes(init, rows, k, rng):
    """Return first prototypes.

    Parameters
    ----------
    init : str or (k, d) float64 array
        From :func:`check_start`.
    rows : (n, d) array or CSR matrix
        Points in the space of the prototypes.
    k : int
        Prototypes.
    rng : numpy.random.Generator
        Random stream of the start.

    Returns
    -------
    (k, d) float64 array
        Prototypes.

    Raises
    ------
    ValueError
        If given prototypes have another shape.
    """
    if not isinstance(init, str):
        if init.shape != (k, rows.shape[1]):
            raise ValueError(
                f"init must have shape ({k}, {rows.shape[1]}), a row for each of the {k} "
                f"prototypes; got {init.shape}"
            )
        return init.copy()
    if init == "k-means++":
        seed = int(rng.integers(2**31))
        # Where squares overflow, any points will do: the objective tells.
        with np.errstate(over="ignore", invalid="ignore"):
            chosen = choose_points(rows, k, seed)
        return np.ascontiguousarray(dense_rows(rows, chosen), dtype=np.float64)
    return _from_gaussian(rows, k, rng)


def _from_gaussian(rows, k, rng):
    """Draw prototypes from the normal distribution of a random fifth of the points.

    Normal weights on the centred points have their covariance, which need not be formed.
    """
    n = rows.shape[0]
    size = min(n, max(k, 2, int(np.ceil(START_SHARE * n))))
    sample = rows[np.sort(rng.choice(n, size, replace=False))]
    mean = np.asarray(sample.mean(axis=0, dtype=np.float64)).ravel()
    weights = rng.standard_normal((k, size)) / np.sqrt(max(size - 1, 1))
    around = safe_sparse_dot(weights, sample, dense_output=True)
    return mean + around - weights.sum(axis=1)[:, None] * mean


def assign_rows(rows, centers):
    """Give every row to its nearest prototype, block by block.

    Parameters
    ----------
    rows : (n, d) array or CSR matrix
        Points in the space of the prototypes.
    centers : (k, d) float64 array
        Prototypes.

    Returns
    -------
    labels : (n,) int64 array
        Prototypes.
    total : float
        Sum of squared distances.
    """
    labels = np.empty(rows.shape[0], dtype=np.int64)
    sums, sizes = np.zeros(centers.shape), np.zeros(centers.shape[0])
    total = 0.0
    for start in range(0, rows.shape[0], BLOCK):
        block = slice(start, start + BLOCK)
        total += kernels.assign(dense_rows(rows, block), centers, labels[block], sums, sizes)
    return labels, total


def space_params(space):
    """Return what None became: the kernel's parameters and the rank, for ``result.params``."""
    if space.features is None:
        return {"features": None}
    kernel = space.kernel
    return {
        "features": "nystroem",
        "rank": space.features.to_Z.shape[1],
        "kernel": kernel.name if kernel.function is None else kernel.function,
        "sigma": kernel.sigma,
        "gamma": kernel.gamma,
        "degree": kernel.degree,
        "coef0": kernel.coef0,
        "kernel_params": kernel.kernel_params,
    }


def check_magnitude(rows, what="X"):
    """Refuse rows that are too large to be learned.

    Parameters
    ----------
    rows : (n, d) array or CSR matrix
        Finite points, or features of a kernel.
    what : str
        What they are, for messages.

    Raises
    ------
    ValueError
        If squared distances to them may overflow.
    """
    values = rows.data if issparse(rows) else rows
    most = float(np.abs(values).max(initial=0.0))
    if not most <= LARGEST:
        raise ValueError(
            f"{what} must have no values beyond {LARGEST:g}, or squared distances overflow and the "
            f"prototypes are lost; got {most:.3g}: scale the columns first"
        )
