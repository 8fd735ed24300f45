"""What moving or swapping points changes: the primitives of every search over labellings.

Every search caches sums of rows of a matrix M over the clusters: with E the n x k label indicator,
``sums`` is E^T M. Where M is the hat matrix R this is U = (R E)^T, k x n; where M is its factor Z
it is W = E^T Z, k x r. Moving a point takes its row of M out of one row of sums and adds it to
another. A search over labels y of -1 and +1 keeps the difference of its two rows, y^T M.

A point i fits cluster h by f(i, h) = U[h, i] = z_i . W[h]. Moving it from cluster o to cluster d
changes the risk Q by 8 times the shift f(i, o) - f(i, d) - R_ii, and swapping it with a point j of
cluster d by 8 times the sum of their shifts and 2 R_ij. The risk F of labels -1, +1 changes by 4
times the same. Searches keep shifts without the factor.

Products of rows of Z are summed in double precision whatever the dtype of Z is. So a search
descends on one and the same quadratic form, in which swapping two equal points changes nothing;
with products rounded to single precision it may seem to gain a little for ever.

A label that loops hand on as a cluster is ``np.int64(labels[i])``: for its own type, all that it is
handed to would be compiled once more.
"""

import numpy as np

from fastmmc.core.jit import njit, njit_sum

# Columns of the sums that stay in the first-level cache while all rows are added up.
CHUNK = 2048

# Slots of pos; the others belong to the search.
MOVES = 0  # accepted moves
RECORDS = 1  # history entries written since the caller last took them


@njit_sum
def row_dot(A, i, B, j):
    """Return A[i] . B[j] in double precision."""
    total = 0.0
    for c in range(A.shape[1]):
        total += np.float64(A[i, c]) * np.float64(B[j, c])
    return total


@njit
def shift_row(target, row, scale):
    """Add scale * row to ``target``, which is modified in place."""
    for i in range(target.size):
        target[i] += scale * row[i]


@njit
def hat_row(matrix, i, row):
    """Return row i of the matrix, or of Z Z^T computed into ``row`` where there is one, O(nr)."""
    if row is None:
        return matrix[i]
    np.dot(matrix, matrix[i], row)
    return row


@njit
def build_sums(matrix, labels, sums):
    """Fill ``sums`` with E^T M from scratch, one read of M."""
    k, width = sums.shape
    for h in range(k):
        for c in range(width):
            sums[h, c] = 0.0
    for start in range(0, width, CHUNK):
        stop = min(start + CHUNK, width)
        for i in range(labels.size):
            shift_row(sums[labels[i], start:stop], matrix[i, start:stop], 1.0)


@njit
def move(matrix, row, labels, counts, sums, i, d, w=1):
    """Move point i, of mass w, to cluster d and update the sums: O(n) for U, O(r) for W."""
    o = labels[i]
    entries = hat_row(matrix, i, row)
    shift_row(sums[o], entries, -1.0)
    shift_row(sums[d], entries, 1.0)
    labels[i] = d
    counts[o] -= w
    counts[d] += w


@njit
def fit(matrix, dense, sums, h, i):
    """Return how well point i fits row h of the sums: O(1) if these are of R, else O(r)."""
    return sums[h, i] if dense else row_dot(matrix, i, sums, h)


@njit
def record(history, pos, count, objective):
    """Append a count and the objective to the history, which the caller empties."""
    at = pos[RECORDS]
    history[at, 0] = count
    history[at, 1] = objective
    pos[RECORDS] = at + 1
