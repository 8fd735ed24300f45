"""Steps of many points at once to labels of less cost, on the factor Z of the hat matrix Z Z^T.

With W = E^T Z and s_h the sizes, the cost of free sizes falls with a convex function of the labels,
sum_h |W_h|^2 / s_h. So labels that are better for its tangent sum_i z_i . A_h(i) + c_h(i), with

    A_h = 2 W_h / s_h    and    c_h = -|W_h|^2 / s_h^2,

are better for the cost too, and the best ones for the tangent need no look at other points.
"""

from __future__ import annotations

import numpy as np
from sklearn.utils import gen_batches

from fastmmc.core.threads import in_threads, run_to_end
from fastmmc.kernels.gram import BLOCK


def tangent(W, sizes, within=None):
    """Return A (k, r) and c (k,) at labels with these sums and sizes.

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
