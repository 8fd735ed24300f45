"""What every search over labellings needs: compact labels, sums, scores, steps, when to end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.utils import gen_batches

from fastmmc.core.threads import in_threads, run_to_end
from fastmmc.kernels.gram import BLOCK
from fastmmc.rls.engine import _loops_moves as moves

# A descent of all points ends with a sweep that lowers the objective by less than this share. Of a
# million points the last of 38 sweeps moved 2 points each, and from the eighth on the Adjusted Rand
# index stays the same within .0005 (seven real sets, six made ones).
GAIN = 1e-5


def is_worth_more(before, after):
    """Tell whether a sweep over all points lowered the objective enough for one more."""
    return before - after > GAIN * abs(after)


def compact(labels, k):
    """Return a copy of the labels in the type that the compiled loops take."""
    return labels.astype(np.uint8 if k <= 256 else np.int32)


def sums_of(matrix, labels, k):
    """Return the rows of a matrix, summed over each of k clusters, (k, width) float64."""
    sums = np.empty((k, matrix.shape[1]))
    moves.build_sums(matrix, compact(labels, k), sums)
    return sums


@dataclass(frozen=True, eq=False)
class Scores:
    """The scores z . A_h + m c_h of points of mass m with clusters, made as they are asked for."""

    Z: np.ndarray  # (n, r)
    A: np.ndarray  # (k, r)
    c: np.ndarray  # (k,)
    masses: np.ndarray | None = None  # (n,); None: all 1

    def __call__(self, clusters, points):
        """Return the scores of some clusters and points, (len(clusters), len(points))."""
        Z = self.Z[points]
        masses = 1.0 if self.masses is None else self.masses[points]
        return self.A[clusters].astype(Z.dtype, copy=False) @ Z.T + self.c[clusters, None] * masses


def tangent(W, sizes, within=None):
    """Return A (k, r) and c (k,), the tangent of the cost at labels with these sums and sizes.

    With W = E^T Z and s_h the sizes, the cost of free sizes falls with a convex function of the
    labels, sum_h |W_h|^2 / s_h. So labels that are better for its tangent sum_i z_i . A_h(i) +
    c_h(i), with

        A_h = 2 W_h / s_h    and    c_h = -|W_h|^2 / s_h^2,

    are better for the cost too, and the best ones for the tangent need no look at other points.
    ``within`` are the diagonal of E^T R E, |W_h|^2 if they are not given.
    """
    sizes = np.maximum(sizes, 1)
    within = np.sum(W**2, axis=1) if within is None else within
    return 2.0 * W / sizes[:, None], -within / sizes**2


def step(Z, A, c):
    """Return the cluster of the largest score z . A_h + c_h of each row of Z, (n,) int64."""
    A, c = A.T.astype(Z.dtype), c.astype(Z.dtype)
    labels = np.empty(Z.shape[0], dtype=np.int64)

    def assign(rows):
        labels[rows] = (Z[rows] @ A + c).argmax(axis=1)

    run_to_end(in_threads(Z.size * c.size, assign, gen_batches(labels.size, BLOCK)))
    return labels
