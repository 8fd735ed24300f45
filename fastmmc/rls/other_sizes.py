"""A warning where clusters of sizes that the size rule forbids fit the points far better."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from fastmmc.execution import warn_user
from fastmmc.factors import hat_matrix, leave_one_out_residuals
from fastmmc.gram import dense_rows

# Points in the sample, and the fewest for each cluster.
SAMPLE = 500
LEAST_PER_CLUSTER = 10

# Shares of the labels' cost and error below which clusters of other sizes are far better.
FAR_BETTER = np.array([1 / 2, 2 / 3])

# The sample of each factor, its hat matrix and tree, kept for the next clustering from it.
_SAMPLES: WeakKeyDictionary = WeakKeyDictionary()

# One of the other clusters must differ from the mean size by this share of it.
OTHER_SIZE = 0.2


def warn_of_other_sizes(factor, labels, k):
    """Give a warning if clusters of free sizes fit far better than the labels of a size rule.

    The cost sum_h (1 - e_h^T R e_h / s_h), with e_h the indicator and s_h the size of cluster h, is
    the unexplained share of the clusters' indicators and knows no sizes, but a few outliers lower
    it. So the leave-one-out error of the members of a cluster, a mean over the clusters, must be
    lower as well. Compared are the labels and Ward's clusters in the metric of R,
    R_ii + R_jj - 2 R_ij, on a sample of the points.
    """
    if k == 1 or min(factor.n, SAMPLE) < LEAST_PER_CLUSTER * k:
        return
    if factor not in _SAMPLES:
        _SAMPLES[factor] = _sample(factor)
    rows, R, tree = _SAMPLES[factor]
    others = fcluster(tree, k, "maxclust") - 1
    sizes = np.bincount(others) * factor.n / rows.size
    if np.ptp(np.append(sizes, factor.n / k)) < OTHER_SIZE * factor.n / k:
        return
    if np.all(_misfit(R, others, k) < FAR_BETTER * _misfit(R, labels[rows], k)):
        told = ", ".join(f"{size:.0f}" for size in np.sort(sizes)[::-1])
        warn_user(
            f"clusters of other sizes fit these points far better, about {told} points; the size "
            "rule makes clusters of nearly equal sizes. Give target_sizes, or a wider balance"
        )


def _sample(factor):
    """Return some points, their own hat matrix, and Ward's tree in its metric."""
    rows = np.unique(np.linspace(0, factor.n - 1, SAMPLE).astype(np.intp))
    points = dense_rows(factor.X, rows)
    if factor.kernel.name == "precomputed":
        points = points[:, rows]
    R = hat_matrix(factor.kernel, points.astype(np.float64), factor.lam)
    diag = np.diagonal(R)
    squared = np.maximum(diag[:, None] + diag - 2.0 * R, 0.0)
    np.fill_diagonal(squared, 0.0)
    return rows, R, linkage(squareform(np.sqrt(squared), checks=False), "ward")


def _misfit(R, labels, k):
    """Return the cost and the leave-one-out error above; a cluster without points counts 1."""
    E = (labels[:, None] == np.arange(k)).astype(np.float64)
    sizes = np.maximum(E.sum(axis=0), 1.0)
    fitted = R @ E
    cost = k - np.sum(E * fitted / sizes)
    residuals = leave_one_out_residuals(E, fitted, np.diagonal(R))
    error = 1.0 - np.sum(E * (1.0 - residuals**2) / sizes) / k
    return np.array([cost, error])
