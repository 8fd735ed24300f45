"""Inverse of a symmetric positive definite matrix, in place and in pieces.

LAPACK does the same with ``potrf`` and ``potri``, in one call each that nothing can stop and whose
threads wait for each other. Here every piece is a product of a few blocks, so a deadline can be
looked at between two of them. About n^3 / 2 multiplications, nearly all of them in BLAS. In one
thread LAPACK takes .6 to .75 of this time for 300 to 4,000 points; in two, on a busy machine, two
to four times as long.
"""

import numpy as np
from scipy.linalg import lapack

from fastmmc.core.threads import counter, map_of_threads

# Columns of a block, and rows of a piece.
BLOCK = 192
ROWS = 192

# Columns of a product with a triangular matrix that are made at a time; rows up to which it is made
# as a whole.
PANEL = 64
FEW_ROWS = 256

# Columns of a matrix up to this long may be multiplied in single precision: that rounds the product
# to 1e-5 of the rows of the other one.
SHORT_COLUMNS = 100.0


def invert_lower(A, on_progress=None):
    """Invert a C-order positive definite matrix in place; return False if it is not one.

    Reads the lower triangle and leaves that of the inverse there, garbage above it. ``on_progress``
    is told the share done, 0..1, after each piece; what it raises ends the work.
    """
    n_products = A.shape[0] ** 3 / 2
    advance = counter(n_products, on_progress)
    with map_of_threads(n_products) as map_pieces:
        if not _factor(A, map_pieces, advance):
            return False
        _invert_triangle(A, map_pieces, advance)
        _multiply_triangle(A, map_pieces, advance)
    return True


def factor_lower(A, on_progress=None):
    """Turn A into its lower Cholesky factor, with zeros above, as :func:`invert_lower` does."""
    n_products = A.shape[0] ** 3 / 6
    with map_of_threads(n_products) as map_pieces:
        return _factor(A, map_pieces, counter(n_products, on_progress))


def ridge_root(A, lam):
    """Turn A into L, with L L^T the former A + lam I, in place, and return L^-T."""
    add_to_diagonal(A, lam)
    factor_lower(A)
    return invert_triangle(A).T


def invert_triangle(L):
    """Return the inverse of a lower triangular matrix, which has zeros above the diagonal."""
    if len(L) == 0:
        return L
    # The transpose of a C-order matrix is upper triangular and needs no copy.
    (trtri,) = lapack.get_lapack_funcs(("trtri",), (L,))
    return trtri(L.T, lower=0)[0].T


def add_to_diagonal(A, value):
    """Add a number, or (n,) numbers, to the diagonal of A, in place."""
    A.flat[:: len(A) + 1] += value


def mirror_lower(A, scale=1.0, look=lambda: None):
    """Scale the lower triangle of A and copy it onto the upper one, in place, block by block.

    Calls ``look`` before each block; what it raises ends the work.
    """
    n = A.shape[0]
    for start in range(0, n, BLOCK):
        look()
        stop = min(start + BLOCK, n)
        square = A[start:stop, start:stop]
        square[:] = np.tril(square) + np.tril(square, -1).T
        A[start:stop, :stop] *= scale
        for column in range(0, start, BLOCK):
            A[column : column + BLOCK, start:stop] = A[start:stop, column : column + BLOCK].T


class Staircase:
    """A matrix for products A M without most of its zeros: a triangular one takes half the time.

    ``rows`` are those that are not zero, in the order in which they begin; A has their columns. A
    matrix of few rows is taken as it is. Where ``dtype`` is single, columns of M that are short
    enough are multiplied in single precision.
    """

    def __init__(self, M, dtype=np.float64):
        m, r = M.shape
        if m <= FEW_ROWS:
            self.rows = np.arange(m)
            self._panels = [(slice(0, r), M)]
            return
        begin = np.where(M.any(axis=1), np.argmax(M != 0, axis=1), r)
        self.rows = np.argsort(begin, kind="stable")[: max(1, np.count_nonzero(begin < r))]
        begin = begin[self.rows]
        self._panels = []
        for columns in reversed(_blocks(0, r, PANEL)):
            begun = self.rows[: np.searchsorted(begin, columns.stop)]
            panel = M[begun, columns]
            if np.sum(panel**2, axis=0).max() <= SHORT_COLUMNS**2:
                panel = panel.astype(dtype)
            drop_faint(panel.T)
            self._panels.append((columns, panel))

    def multiply(self, A, out):
        """Write A M to ``out``, which may be A itself if M is triangular."""
        rounded = A
        if A.dtype != out.dtype:
            rounded = A.astype(out.dtype)
            drop_faint(rounded)
        for columns, panel in self._panels:
            left = rounded if panel.dtype == out.dtype else A
            out[:, columns] = left[:, : len(panel)] @ panel


def drop_faint(A):
    """Set numbers to 0 that are far smaller than the largest of their row, in place.

    No sum tells the difference, but subnormal numbers make a product take three times as long or
    more. `cluster` of 100,000 x 2 points in 100 clusters takes 13 s if those of M stay, 12 s if
    those of A do, and 9 s without both. `umc_rls` of 20,000 x 2 points in 1,000 clusters takes 131
    s if those of Z stay, and 67 s without.
    """
    sizes = np.abs(A)
    share = np.sqrt(np.finfo(A.dtype).tiny)
    A *= sizes >= share * sizes.max(axis=1, keepdims=True, initial=0.0)


def _blocks(start, stop, size):
    """Return slices of ``size`` indices each that cover start..stop."""
    return [slice(first, min(first + size, stop)) for first in range(start, stop, size)]


def _factor(A, map_pieces, advance):
    """Turn A into its lower Cholesky factor, block column by block column."""
    n = A.shape[0]
    potrf, trtri = lapack.get_lapack_funcs(("potrf", "trtri"), (A,))
    for block in _blocks(0, n, BLOCK):
        left, top = A[:, : block.start], A[block, : block.start]
        # Whatever stands above the diagonal, such as NaN that signals, must raise no warning.
        A[block, block] = np.tril(A[block, block])

        def update(rows, left=left, top=top, block=block):
            A[rows, block] -= left[rows] @ top.T
            return (rows.stop - rows.start) * top.size

        if block.start > 0:
            for n_products in map_pieces(update, _blocks(block.start, n, ROWS)):
                advance(n_products)
        corner, info = potrf(A[block, block], lower=1, clean=1)
        if info != 0:
            return False
        A[block, block] = corner
        A[block, block.stop :] = 0.0
        inverse, _ = trtri(corner, lower=1)

        def solve(rows, inverse=inverse, block=block):
            A[rows, block] = A[rows, block] @ inverse.T

        for _ in map_pieces(solve, _blocks(block.stop, n, ROWS)):
            pass
    return True


def _invert_triangle(A, map_pieces, advance):
    """Invert a lower triangular matrix in place, block column by block column from the right."""
    n = A.shape[0]
    trtri = lapack.get_lapack_funcs("trtri", (A,))
    for block in reversed(_blocks(0, n, BLOCK)):
        corner, _ = trtri(A[block, block], lower=1)
        below = block.stop
        panel = A[below:, block].copy()

        def multiply(rows, panel=panel, below=below, block=block, corner=corner):
            A[rows, block] = -(A[rows, below : rows.stop] @ panel[: rows.stop - below]) @ corner
            return (rows.stop - rows.start) * (rows.stop - below) * panel.shape[1]

        # The longest first, so that no thread works on it alone at the end.
        for n_products in map_pieces(multiply, reversed(_blocks(below, n, ROWS))):
            advance(n_products)
        A[block, block] = corner


def _multiply_triangle(A, map_pieces, advance):
    """Turn a lower triangular X into the lower triangle of X^T X, block row by block row."""

    def multiply(piece):
        block, part, product = piece
        np.matmul(A[block.start :, block].T, A[block.start :, part], out=product[:, part])
        return piece

    # No later block row needs this one, so the next can begin before it is written.
    for block, part, product in map_pieces(multiply, _products(A)):
        advance((len(A) - block.start) * product.shape[0] * (part.stop - part.start))
        if part.stop == block.stop:
            A[block, : block.stop] = product


def _products(A):
    """Yield the pieces of X^T X: a block row, columns of it, and room for what it will be."""
    for block in _blocks(0, len(A), BLOCK):
        product = np.empty((block.stop - block.start, block.stop), dtype=A.dtype)
        for part in _blocks(0, block.stop, ROWS):
            yield block, part, product
