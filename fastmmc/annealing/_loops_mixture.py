"""Compiled two-component Gaussian mixtures: how far apart the two halves of a cluster are."""

import numpy as np

from fastmmc._jit import njit

# A component must hold so many points, or the cluster is not two.
LEAST_WEIGHT = 1.5

# The expectation-maximisation ends when the mean log-likelihood gains less.
TOLERANCE = 1e-4


@njit
def farthest(points, center):
    """Return the index of the point farthest from a center, the first of equals."""
    chosen, most = 0, -1.0
    for i in range(points.shape[0]):
        square = np.sum((points[i] - center) ** 2)
        if square > most:
            most, chosen = square, i
    return chosen


@njit
def halve(points, shares):
    """Share the points (n, d) out between two that lie far apart: 1 for the nearer one, else 0."""
    n, d = points.shape
    mean = np.zeros(d)
    for i in range(n):
        mean += points[i] / n
    one = farthest(points, mean)
    two = farthest(points, points[one])
    for i in range(n):
        nearer = np.sum((points[i] - points[one]) ** 2) <= np.sum((points[i] - points[two]) ** 2)
        shares[0, i] = 1.0 if nearer else 0.0
        shares[1, i] = 0.0 if nearer else 1.0


@njit
def fit_diagonal(points, share, ridge, mean, variances):
    """Write the mean and variances of points with the given shares; return their total weight."""
    n, d = points.shape
    weight = np.sum(share)
    mean[:] = 0.0
    variances[:] = 0.0
    for i in range(n):
        for f in range(d):
            mean[f] += share[i] * points[i, f] / weight
    for i in range(n):
        for f in range(d):
            gap = points[i, f] - mean[f]
            variances[f] += share[i] * gap * gap / weight
    for f in range(d):
        variances[f] += ridge[f]
    return weight


@njit
def fit_full(points, share, ridge, mean, factor):
    """Write the mean of points with the given shares and the Cholesky factor of their covariance.

    Returns their total weight.
    """
    n, d = points.shape
    weight = np.sum(share)
    mean[:] = 0.0
    for i in range(n):
        for f in range(d):
            mean[f] += share[i] * points[i, f] / weight
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
    return weight


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
def diagonal_divergence(points, ridge, n_rounds):
    """Fit two Gaussians with diagonal covariances; return the mean of both KL divergences.

    ``ridge`` (d,), positive, is added to the variances. The result is -inf if a component loses its
    points.
    """
    n, d = points.shape
    shares, logs = np.empty((2, n)), np.empty((2, n))
    means, variances = np.empty((2, d)), np.empty((2, d))
    halve(points, shares)
    before = -np.inf
    for _ in range(n_rounds):
        for c in range(2):
            if np.sum(shares[c]) < LEAST_WEIGHT:
                return -np.inf
            weight = fit_diagonal(points, shares[c], ridge, means[c], variances[c])
            norm = np.log(weight / n) - 0.5 * np.sum(np.log(variances[c]))
            for i in range(n):
                logs[c, i] = norm - 0.5 * np.sum((points[i] - means[c]) ** 2 / variances[c])
        now = mix(logs, shares)
        if now - before < TOLERANCE:
            break
        before = now
    gaps = (means[0] - means[1]) ** 2
    both = (variances[0] + gaps) / variances[1] + (variances[1] + gaps) / variances[0]
    # The logarithms of the determinants cancel in the mean of both directions.
    return 0.25 * np.sum(both) - 0.5 * d


@njit
def full_divergence(points, ridge, n_rounds):
    """Do what :func:`diagonal_divergence` does, with full covariances."""
    n, d = points.shape
    shares, logs = np.empty((2, n)), np.empty((2, n))
    means, factors = np.empty((2, d)), np.empty((2, d, d))
    vector = np.empty(d)
    halve(points, shares)
    before = -np.inf
    for _ in range(n_rounds):
        for c in range(2):
            if np.sum(shares[c]) < LEAST_WEIGHT:
                return -np.inf
            weight = fit_full(points, shares[c], ridge, means[c], factors[c])
            norm = np.log(weight / n)
            for f in range(d):
                norm -= np.log(factors[c, f, f])
            for i in range(n):
                vector[:] = points[i] - means[c]
                logs[c, i] = norm - 0.5 * solve_lower(factors[c], vector)
        now = mix(logs, shares)
        if now - before < TOLERANCE:
            break
        before = now
    total = 0.0
    for c in range(2):
        # tr(S_q^-1 S_p) is the squared Frobenius norm of L_q^-1 L_p.
        vector[:] = means[1 - c] - means[c]
        total += solve_lower(factors[c], vector) - d
        for f in range(d):
            vector[:] = factors[1 - c][:, f]
            total += solve_lower(factors[c], vector)
    return 0.25 * total
