"""Compiled loops over the distances of points to centers."""

import numpy as np

from fastmmc.core.jit import njit, njit_sum


@njit_sum
def distances_to(X, i, centers, out):
    """Set out_j = |x_i - mu_j|^2."""
    for j in range(centers.shape[0]):
        total = 0.0
        for f in range(centers.shape[1]):
            difference = X[i, f] - centers[j, f]
            total += difference * difference
        out[j] = total


@njit
def all_distances(X, centers, out):
    """Set out_ij = |x_i - mu_j|^2, added up as by :func:`distances_to`."""
    row = np.empty(centers.shape[0])
    for i in range(X.shape[0]):
        distances_to(X, i, centers, row)
        for j in range(row.size):
            out[i, j] = row[j]


@njit
def all_distances_in_order(X, centers, out):
    """Set out_ij = |x_i - mu_j|^2, added up column by column."""
    for i in range(X.shape[0]):
        for j in range(centers.shape[0]):
            total = 0.0
            for f in range(X.shape[1]):
                difference = X[i, f] - centers[j, f]
                total += difference * difference
            out[i, j] = total


@njit
def nearest(X, centers, guess, margin, squared, labels, squares):
    """Write the nearest centers and the squared distances from them, of all that a guess leaves.

    ``guess`` (n, m) are these distances but for a number of each row, within the margin.
    """
    for i in range(X.shape[0]):
        near = np.flatnonzero(guess[i] <= guess[i].min() + margin)
        found = np.empty((1, near.size))
        if squared:
            all_distances(X[i : i + 1], centers[near], found)
        else:
            all_distances_in_order(X[i : i + 1], centers[near], found)
        best = found[0].argmin()
        labels[i] = near[best]
        squares[i] = found[0, best]
