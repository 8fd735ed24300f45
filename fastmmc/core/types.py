"""Types that the public signatures share."""

from typing import Any, Protocol

from numpy.typing import ArrayLike


class Sparse(Protocol):
    """A sparse matrix or array of SciPy."""

    def tocsr(self) -> Any:
        """Convert to compressed rows."""


MatrixLike = ArrayLike | Sparse
