"""A warning where a descent of free sizes leaves the labels of a size rule far behind."""

from weakref import WeakKeyDictionary

import numpy as np
from scipy.sparse import issparse

from fastmmc.core.execution import is_first, warn_user
from fastmmc.data.sizes import evenness, size_rule
from fastmmc.kernels.factors import hat_matrix, weights_of
from fastmmc.kernels.gram import evenly, kernel_points
from fastmmc.rls.engine.coarse import mass_unit, masses_of
from fastmmc.rls.engine.groups import Groups, cost_of

# Points in the sample, and the fewest for each cluster.
SAMPLE = 500
LEAST_PER_CLUSTER = 10

# Share of the labels' cost and of their error below which the free sizes are far better. Where
# points without clusters have no tails the shares are above 2/3; long tails bring them near to it.
FAR_BETTER = 0.45

# An error that is as good as none.
NO_ERROR = 0.02

# The sample of each factor with its hat matrix, kept for the next clustering from it.
_SAMPLES: WeakKeyDictionary = WeakKeyDictionary()


def warn_of_other_sizes(factor, labels, k):
    """Give a warning, one in a call, if clusters of free sizes fit far better than the labels.

    The labels of a sample and Ward's clusters descend in the size-free cost, and the better of
    them is compared with the labels. A few outliers lower the cost, so the leave-one-out error, a
    mean over the clusters, must be lower as well; it is divided by the root of the evenness of
    the sizes.
    """
    if k == 1 or min(factor.n, SAMPLE) < LEAST_PER_CLUSTER * k:
        return
    if factor not in _SAMPLES:
        _SAMPLES[factor] = _sample(factor)
    rows, points, total = _SAMPLES[factor]
    masses = points.masses
    rule = size_rule(int(masses.sum()), k)
    cost, error = _judge(points, labels[rows], rule)
    if error < NO_ERROR:
        return
    ends = [points.refine(start, rule) for start in (labels[rows], points.cut(k))]
    others, least, _ = min(ends, key=lambda end: end[1])
    least_error = _judge(points, others, rule)[1]
    price = np.sqrt(evenness(labels[rows], k, masses) / evenness(others, k, masses))
    shares = least / cost, price * least_error / error
    if max(shares) >= FAR_BETTER or not is_first("sizes"):
        return
    sizes = np.sort(np.bincount(others, masses, k))[::-1] * total / masses.sum()
    told = ", ".join(f"{size:.0f}" for size in sizes)
    calls = 'umc_rls(X, k, sizes="free")'
    if factor.kernel.name != "precomputed" and not issparse(factor.X):
        calls += " or fastmmc.cluster(X, k)"
    warn_user(
        f"clusters of free sizes, about {told} points, fit these {total:.0f} points far better: "
        f"their leave-one-out error is {least_error:.2g}, that of the labels found {error:.2g}. "
        f"Try {calls}, or give target_sizes"
    )


def _sample(factor):
    """Return the rows of some points, these with their own hat matrix, and the weight of all."""
    weights, _ = weights_of(factor)
    rows, total = evenly(factor.n, SAMPLE), weights.sum()
    X = kernel_points(factor.kernel, factor.X, rows)
    if factor.kernel.name == "precomputed":
        X = X[:, rows]
    some = weights[rows]
    # With lam in proportion the eigenvalues of R are about those of all points.
    lam = factor.lam * some.sum() / total
    R = hat_matrix(factor.kernel, X.astype(np.float64), lam, some)
    return rows, Groups.of_masses(R, masses_of(some, mass_unit(some))), total


def _judge(points, labels, rule):
    """Return the size-free cost and the leave-one-out error of labels."""
    state = points.state(labels, rule)
    return cost_of(state), points.error(state)
