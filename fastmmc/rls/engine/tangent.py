"""The descent of many points at once, by tangent steps on the factor Z of the hat matrix Z Z^T.

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
from fastmmc.rls.engine.labelling import sums_of

# The descent ends with a pass that moves less than this share of the points, or with the last.
MOVED = 1e-3
MOST_PASSES = 200


def tangent(W, sizes, within=None):
    """Return A (k, r) and c (k,) at labels with these sums and sizes.

    ``within`` are the diagonal of E^T R E, |W_h|^2 if they are not given.
    """
    sizes = np.maximum(sizes, 1)
    within = np.sum(W**2, axis=1) if within is None else within
    return 2.0 * W / sizes[:, None], -within / sizes**2


def descend_all(Z, labels, k):
    """Yield labels of ever less cost of free sizes, and that cost, pass by pass.

    A pass that leaves a cluster empty is not made.
    """
    W, sizes, cost = _sums(Z, labels, k)
    for _ in range(MOST_PASSES):
        changed = step(Z, *tangent(W, sizes))
        W, sizes, new_cost = _sums(Z, changed, k)
        if not new_cost < cost or (sizes == 0).any():
            return
        yield changed, new_cost
        if np.count_nonzero(changed != labels) < MOVED * labels.size:
            return
        labels, cost = changed, new_cost


def step(Z, A, c):
    """Return the cluster of the largest score z . A_h + c_h of each row of Z, (n,) int64."""
    A, c = A.T.astype(Z.dtype), c.astype(Z.dtype)
    labels = np.empty(Z.shape[0], dtype=np.int64)

    def assign(rows):
        labels[rows] = (Z[rows] @ A + c).argmax(axis=1)

    run_to_end(in_threads(Z.size * c.size, assign, gen_batches(labels.size, BLOCK)))
    return labels


def _sums(Z, labels, k):
    """Return W, the sizes and the cost of free sizes."""
    W, sizes = sums_of(Z, labels, k), np.bincount(labels, minlength=k)
    return W, sizes, float(np.sum(1.0 - np.sum(W**2, axis=1) / np.maximum(sizes, 1)))
