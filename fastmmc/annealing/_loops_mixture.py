"""Compiled two-component Gaussian mixtures: how far apart the two halves of a cluster are."""

import numpy as np

from fastmmc.core.jit import njit

# A component must hold so many points, or the cluster is not two.
LEAST_WEIGHT = 1.5

# The expectation-maximisation ends when the mean log-likelihood gains less.
TOLERANCE = 1e-4


@njit
def squares(points, center):
    """Return the squared distances (n,) of points (n, d) from a center."""
    return np.sum((points - center) ** 2, axis=1)


@njit
def halve(points, shares):
    """Share the points (n, d) out between two that lie far apart: 1 for the nearer one, else 0."""
    n, d = points.shape
    mean = np.zeros(d)
    for i in range(n):
        mean += points[i] / n
    from_one = squares(points, points[np.argmax(squares(points, mean))])
    from_two = squares(points, points[np.argmax(from_one)])
    for i in range(n):
        shares[0, i] = from_one[i] <= from_two[i]
        shares[1, i] = 1.0 - shares[0, i]


@njit
def fit_mean(points, share, mean):
    """Write the mean (d,) of points with the given shares; return their total weight."""
    weight = np.sum(share)
    mean[:] = 0.0
    for i in range(points.shape[0]):
        for f in range(mean.size):
            mean[f] += share[i] * points[i, f] / weight
    return weight


@njit
def fit_diagonal(points, share, ridge, mean, variances, logs):
    """Fit mean and variances to points with the given shares; write weighted log-densities (n,)."""
    n, d = points.shape
    weight = fit_mean(points, share, mean)
    variances[:] = 0.0
    for i in range(n):
        for f in range(d):
            gap = points[i, f] - mean[f]
            variances[f] += share[i] * gap * gap / weight
    for f in range(d):
        variances[f] += ridge[f]
    norm = np.log(weight / n) - 0.5 * np.sum(np.log(variances))
    for i in range(n):
        logs[i] = norm - 0.5 * np.sum((points[i] - mean) ** 2 / variances)


@njit
def fit_full(points, share, ridge, mean, factor, logs):
    """Do what :func:`fit_diagonal` does, with the Cholesky factor (d, d) of a full covariance."""
    n, d = points.shape
    weight = fit_mean(points, share, mean)
    factor[:] = 0.0
    for i in range(n):
        for f in range(d):
            pull = share[i] * (points[i, f] - mean[f]) / weight
            for g in range(f + 1):
                factor[f, g] += pull * (points[i, g] - mean[g])
    for f in range(d):
        factor[f, f] += ridge[f]
        for g in range(f + 1):
            rest = factor[f, g]
            for h in range(g):
                rest -= factor[f, h] * factor[g, h]
            # The ridge keeps the pivot positive but for rounding.
            factor[f, g] = np.sqrt(max(rest, 1e-3 * ridge[f])) if f == g else rest / factor[g, g]
    norm = np.log(weight / n)
    for f in range(d):
        norm -= np.log(factor[f, f])
    for i in range(n):
        logs[i] = norm - 0.5 * solve_lower(factor, points[i] - mean)


@njit
def solve_lower(factor, vector):
    """Solve L z = v in place and return |z|^2."""
    square = 0.0
    for f in range(vector.size):
        rest = vector[f]
        for g in range(f):
            rest -= factor[f, g] * vector[g]
        vector[f] = rest / factor[f, f]
        square += vector[f] * vector[f]
    return square


@njit
def mix(logs, shares):
    """Turn weighted log-densities (2, n) into shares of the components; return the mean log-sum."""
    total = 0.0
    for i in range(logs.shape[1]):
        most = max(logs[0, i], logs[1, i])
        scaled = np.exp(logs[0, i] - most) + np.exp(logs[1, i] - most)
        for c in range(2):
            shares[c, i] = np.exp(logs[c, i] - most) / scaled
        total += most + np.log(scaled)
    return total / logs.shape[1]


@njit
def divergence(points, ridge, n_rounds, is_full):
    """Fit two Gaussians, ``is_full`` or diagonal; return the mean of both KL divergences.

    ``ridge`` (d,), positive, is added to the variances. The result is -inf if a component loses its
    points.
    """
    n, d = points.shape
    shares, logs = np.empty((2, n)), np.empty((2, n))
    means, variances = np.empty((2, d)), np.empty((2, d))
    factors = np.empty((2, d, d if is_full else 0))
    halve(points, shares)
    before = -np.inf
    for _ in range(n_rounds):
        for c in range(2):
            if np.sum(shares[c]) < LEAST_WEIGHT:
                return -np.inf
            if is_full:
                fit_full(points, shares[c], ridge, means[c], factors[c], logs[c])
            else:
                fit_diagonal(points, shares[c], ridge, means[c], variances[c], logs[c])
        now = mix(logs, shares)
        if now - before < TOLERANCE:
            break
        before = now
    # The logarithms of the determinants cancel in the mean of both directions.
    if not is_full:
        gaps = (means[0] - means[1]) ** 2
        both = (variances[0] + gaps) / variances[1] + (variances[1] + gaps) / variances[0]
        return 0.25 * np.sum(both) - 0.5 * d
    total = 0.0
    for c in range(2):
        total += solve_lower(factors[c], means[1 - c] - means[c]) - d
        # tr(S_q^-1 S_p) is the squared Frobenius norm of L_q^-1 L_p.
        for f in range(d):
            total += solve_lower(factors[c], factors[1 - c][:, f].copy())
    return 0.25 * total
