"""The hat matrix of low rank over points in blocks."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fastmmc.core.column_names import Named
from fastmmc.core.declare import values
from fastmmc.core.display import OneLine
from fastmmc.core.execution import fixed_seed, restart_stream
from fastmmc.core.types import MatrixLike
from fastmmc.data.blocks import Blocks, check_block, in_blocks, map_rows
from fastmmc.kernels.cholesky import ridge_root
from fastmmc.kernels.gram import Kernel, kernel_product
from fastmmc.kernels.nystroem import auto_rank, check_form, map_to_features

# The random stream that draws the sample; those of restarts count from 0.
SAMPLE_STREAM = 2**32 - 3

# Points of the sample that is searched, or this many for each cluster or landmark.
SAMPLE = 20_000
SAMPLE_PER_CLUSTER = 200
SAMPLE_PER_LANDMARK = 4


def comes_in_blocks(X):
    """Tell whether X, points or a factor, is in blocks."""
    return in_blocks(X) or isinstance(X, BlockFactor)


@dataclass(frozen=True, eq=False, repr=False)
class BlockFactor(OneLine, Named):
    """The reusable expensive part of a method on points in blocks, which stay where they are.

    Made by :func:`fastmmc.factor` of a Dask array or a large memory map; accepted by
    :func:`fastmmc.umc_rls` and :func:`fastmmc.fast_evo_mmc`. The hat matrix is Z Z^T, as of a
    :class:`LowRankFactor`.

    Attributes
    ----------
    X : dask.array or numpy.memmap
        Training points.
    lam : float
        Regularisation.
    kernel : Kernel
        With its widths set.
    basis : (b, d) array
        Landmarks, from a sample of the points.
    projection : (b, r) float64 array
        M in z(x) = k(x, basis) M.
    half : (r, r) float64 array
        Turns the features that are kept of the points into rows of Z.
    feature_names_in : (d,) array of str or None
        Names of the columns of X; None if they have none.

    Examples
    --------
    >>> import fastmmc
    >>> import dask.array  # doctest: +SKIP
    >>> F = fastmmc.factor(dask.array.from_zarr("points.zarr"), rank=100)  # doctest: +SKIP
    >>> fastmmc.umc_rls(F, 10).labels  # doctest: +SKIP
    dask.array<concatenate, shape=(5000000,), dtype=int64, chunksize=(100000,)>
    """

    lam: float
    kernel: Kernel
    basis: np.ndarray
    projection: np.ndarray
    half: np.ndarray
    blocks: Blocks = field(repr=False)
    features: list = field(repr=False)  # tasks, one a block

    @property
    def X(self) -> Any:
        """Training points."""
        return self.blocks.X

    @property
    def n(self) -> int:
        """Number of points."""
        return self.blocks.shape[0]

    @property
    def rank(self) -> int:
        """Number of columns of Z."""
        return self.half.shape[1]

    def transform(self, X: MatrixLike) -> np.ndarray:
        """Return z(x) for new points.

        Parameters
        ----------
        X : (m, d) array_like, sparse matrix or dask.array
            New points.

        Returns
        -------
        (m, r) float64 array or dask.array
            One row a point.

        Raises
        ------
        ValueError, TypeError
            If X is not a finite matrix with as many columns as the training points, or they have
            other names.
        """
        X = self._in_numbers(X)
        d, dtype = self.blocks.shape[1], np.dtype(np.float64)
        make = _Features(self.kernel, self.basis, self.projection, d, dtype)
        return map_rows(make, X, self.rank, dtype)


@dataclass(frozen=True)
class _Features:
    """Maps rows to k(x, basis) map; what a task can be sent."""

    kernel: Kernel
    basis: np.ndarray
    to_Z: np.ndarray
    n_features: int
    dtype: np.dtype

    def __call__(self, rows):
        rows = check_block(rows, self.n_features, self.basis.dtype)
        return kernel_product(self.kernel, rows, self.basis, self.to_Z, None, self.dtype)


def sample_size(k, rank):
    """Return how many points the search begins with."""
    return max(SAMPLE, SAMPLE_PER_CLUSTER * k, SAMPLE_PER_LANDMARK * rank)


def draw_sample(blocks, size, seed):
    """Return ``size`` of the points, or all, drawn uniformly, in their order."""
    rng, n = restart_stream(seed, SAMPLE_STREAM), blocks.shape[0]
    return blocks.take(np.sort(rng.choice(n, min(size, n), replace=False)))


class SampleRun:
    """A call on points in blocks whose method is run on a sample, or on all points if few."""

    def __init__(self, call, blocks, size):
        self._blocks, self._size = blocks, size
        self.seed = fixed_seed(call.random_state)
        self._given = values(call, type(call)) | {"random_state": self.seed}
        del self._given["X"]

    @property
    def is_whole(self):
        """Whether all points are a sample of themselves."""
        return self._size >= self._blocks.shape[0]

    def of_all(self, solve):
        """Return what the method makes of all points, in memory."""
        result = solve(self._blocks.everything(), **self._given)
        names = [name for name in ("labels", "cells") if hasattr(result, name)]
        return replace(result, **{name: self._blocks.deal(getattr(result, name)) for name in names})

    def draw(self, control):
        """Return the sample, and the parameters of its run: half of the time left, and the bar."""

        def tell(progress):
            progress = replace(progress, fraction=progress.fraction / 2)
            control.bar.show(progress)
            return control.callback is not None and control.callback(progress)

        own = {"max_time": control.inner_time(0.5), "verbose": False, "callback": tell}
        return draw_sample(self._blocks, self._size, self.seed), self._given | own

    def end(self, result, control):
        """Return the result, and tell that all is done unless the run was stopped."""
        if result.converged:
            control.report(fraction=1.0, n_done=1, n_init=1, objective=result.objective)
        return result


def make_block_factor(blocks, lam, kernel, basis, dtype, coef=None):
    """Return the factor of points in blocks, with its features kept where the blocks are.

    With ``coef`` (b, m) the features span the functions k(x, basis) coef alone.
    """
    n, d = blocks.shape
    to_Z, left_out = map_to_features(kernel, basis, None, n, coef=coef)
    if lam < left_out:
        raise ValueError(
            f"lam={lam:g} is too small for this kernel of low rank, which leaves out eigenvalues "
            f"up to {left_out:.3g}: give a larger lam, or a higher rank, or centre the points"
        )
    make = blocks.share(_Features(kernel, basis, to_Z, d, dtype or blocks.dtype))
    features = blocks.keep([blocks.task(_Features.__call__, make, rows) for rows in blocks.rows])
    (L,) = blocks.total([blocks.task(_square, Z) for Z in features])
    half = ridge_root(L, lam)
    return BlockFactor(lam, kernel, basis, to_Z @ half, half, blocks, features)


def _square(Z):
    Z = np.asarray(Z).astype(np.float64, copy=False)
    return (Z.T @ Z,)


def check_block_form(blocks, kernel, rank, landmarks, rank_tol, dtype):
    """Return the form of the factor; refuse what points in blocks cannot have.

    A share of the points may be more landmarks than anyone can work with, so it is one of as many
    points as would have the "auto" rank at most.
    """
    if kernel.name == "precomputed":
        raise ValueError("kernel='precomputed' needs the whole Gram matrix, and X is in blocks")
    form = check_form(blocks, kernel, rank, landmarks, rank_tol, dtype)
    if isinstance(rank, float | np.floating):
        form = replace(form, rank=min(form.rank, auto_rank(blocks.shape[0])))
    if form.rank is None:
        raise ValueError(
            "rank=None asks for the dense hat matrix, which points in blocks cannot have; give a "
            "number, or 'auto'"
        )
    indices = form.landmarks
    if isinstance(indices, np.ndarray) and indices.ndim == 1:
        form = replace(form, landmarks=blocks.take(np.sort(indices)).astype(np.float64))
    return form
