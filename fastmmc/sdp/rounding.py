"""From the matrix of a relaxation to labels."""

from __future__ import annotations

from itertools import combinations

import numpy as np

# An eigenvalue of the multiplier belongs to its range if it is at least this share of the largest
# one; of more directions than these the sweep takes the leading ones.
RANGE_SHARE = 1e-3
MOST_DIRECTIONS = 3


def leading_vectors(matrix, most=1):
    """Return the leading eigenvectors of a symmetric matrix, those with notable eigenvalues.

    Parameters
    ----------
    matrix : (n, n) float64 array
        Symmetric.
    most : int, default=1
        How many at most.

    Returns
    -------
    (n, m) float64 array
        The leading one first, at least that.
    """
    values, vectors = np.linalg.eigh(matrix)
    n_notable = int(np.sum(values > RANGE_SHARE * values[-1]))
    return vectors[:, ::-1][:, : min(most, max(1, n_notable))]


def split_by_rank(v, lower, upper):
    """Split by the sign of v where the sizes allow it, else at the nearest rank that they allow.

    Parameters
    ----------
    v : (n,) float64 array
        Scores; 0 counts as positive.
    lower, upper : int
        Bounds of the number of positive labels.

    Returns
    -------
    (n,) float64 array
        Labels -1 and 1; of equal scores the first points are positive.
    """
    n_positive = min(max(int(np.sum(v >= 0)), lower), upper)
    y = np.full(v.size, -1.0)
    y[np.argsort(-v, kind="stable")[:n_positive]] = 1.0
    return y


def sweep(vectors):
    """Return the sign patterns of all combinations of two vectors each.

    In the plane of two vectors the signs of v cos(t) + w sin(t) change at n angles, so that there
    are n patterns up to their sign.

    Parameters
    ----------
    vectors : (n, m) float64 array
        Spans the directions to look at.

    Returns
    -------
    list of (n,) float64 array
        Scores, one for each pattern, that of the first vector in the first place.
    """
    found = [vectors[:, 0]]
    for i, j in combinations(range(vectors.shape[1]), 2):
        v, w = vectors[:, i], vectors[:, j]
        angles = np.sort(np.arctan2(-v, w) % np.pi)
        middles = 0.5 * (angles + np.append(angles[1:], angles[0] + np.pi))
        found += list(np.outer(np.cos(middles), v) + np.outer(np.sin(middles), w))
    return found


def distinct(labellings):
    """Drop labellings that were met before, also with the two labels exchanged.

    Parameters
    ----------
    labellings : iterable of (n,) float64 array
        Labels -1 and 1.

    Returns
    -------
    list of (n,) float64 array
        In their order.
    """
    seen = {}
    for y in labellings:
        seen.setdefault(np.packbits(y == y[0]).tobytes(), y)
    return list(seen.values())
