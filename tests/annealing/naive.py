"""Slow NumPy twins of the annealing family, written from the formulas."""

import numpy as np
from scipy.optimize import minimize


def distances(X, centers):
    """Return ||x_i - c_j||, (n, k)."""
    return np.linalg.norm(X[:, None, :] - centers[None], axis=2)


def objective(X, centers, weights=None):
    """Return sum_i w_i min_j ||x_i - c_j||."""
    nearest = distances(X, centers).min(axis=1)
    return float(nearest.sum() if weights is None else weights @ nearest)


def weiszfeld(X, centers, weights):
    """Return the next centers: Weiszfeld's where no point lies at one, Vardi and Zhang's else."""
    gaps = distances(X, centers)
    labels = gaps.argmin(axis=1)
    targets = centers.copy()
    for j in range(len(centers)):
        own = labels == j
        away = own & (gaps[:, j] > 0)
        if not away.any():
            continue
        pull = weights[away] / gaps[away, j]
        target = pull @ X[away] / pull.sum()
        lying = weights[own & ~away].sum()
        if lying == 0:
            targets[j] = target
            continue
        units = (X[away] - centers[j]) / gaps[away, j, None]
        force = np.linalg.norm(weights[away] @ units)
        targets[j] = (1 - lying / force) * target + lying / force * centers[j]
        if force <= lying:
            targets[j] = centers[j]
    return targets


def geometric_median(X):
    """Return the point of the least sum of distances, by a general minimiser and the points."""
    starts = [X.mean(axis=0), np.median(X, axis=0)]
    found = [minimize(lambda c: objective(X, c[None]), s, method="Nelder-Mead").x for s in starts]
    return min([*found, *X], key=lambda c: objective(X, c[None]))


def divergence(mean_p, cov_p, mean_q, cov_q):
    """Return the Kullback-Leibler divergence of two Gaussians, equation (7)."""
    inverse = np.linalg.inv(cov_q)
    gap = mean_q - mean_p
    logs = np.linalg.slogdet(cov_q)[1] - np.linalg.slogdet(cov_p)[1]
    return 0.5 * (np.trace(inverse @ cov_p) + gap @ inverse @ gap - len(gap) + logs)
