"""From the matrix of a relaxation to labels."""

from itertools import combinations

import numpy as np

# An eigenvalue of the multiplier belongs to its range if it is above this share of the largest; of
# more directions than MOST_DIRECTIONS the sweep takes the leading ones.
RANGE_SHARE = 1e-3
MOST_DIRECTIONS = 3


def leading_vectors(matrix, most=1):
    """Return the leading eigenvectors of a symmetric matrix, (n, m), 1 <= m <= ``most``.

    Only the first one may have an eigenvalue below RANGE_SHARE of the largest.
    """
    values, vectors = np.linalg.eigh(matrix)
    n_notable = int(np.sum(values > RANGE_SHARE * values[-1]))
    return vectors[:, ::-1][:, : min(most, max(1, n_notable))]


def sweep(vectors):
    """Return scores (n,) of every sign pattern that two of the vectors (n, m) combine to.

    In the plane of two vectors the signs of v cos(t) + w sin(t) change at n angles, so that there
    are n patterns up to their sign. The scores of the first vector itself come first.
    """
    found = [vectors[:, 0]]
    for i, j in combinations(range(vectors.shape[1]), 2):
        v, w = vectors[:, i], vectors[:, j]
        angles = np.sort(np.arctan2(-v, w) % np.pi)
        middles = 0.5 * (angles + np.append(angles[1:], angles[0] + np.pi))
        found += list(np.outer(np.cos(middles), v) + np.outer(np.sin(middles), w))
    return found


def distinct(labellings):
    """Drop labellings seen before, also with the two labels exchanged; keep the order."""
    seen = {}
    for y in labellings:
        seen.setdefault(np.packbits(y == y[0]).tobytes(), y)
    return list(seen.values())
