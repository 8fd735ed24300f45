"""The hat matrix by Cholesky, and the eigendecomposition that it spares."""

import numpy as np

from fastmmc.kernels.factors import eigh_lower, hat_from_eigh, hat_matrix
from fastmmc.kernels.gram import Kernel, fill_lower_gram, resolve_kernel

from . import ratio
from .datasets import blobs

LAM = 0.25


def hat_by_eigh(kernel, X, lam):
    gram = np.empty((X.shape[0], X.shape[0]))
    fill_lower_gram(kernel, X, gram)
    return hat_from_eigh(*eigh_lower(gram), lam)


class HatMatrix:
    """Points to hat matrix for one lam, kernel included."""

    param_names = ("n",)
    params = (500, 1000, 2000)
    timeout = 300
    unit = "ours / theirs"

    def setup(self, n):
        self.X, _ = blobs(n, 10)
        self.kernel = resolve_kernel(Kernel("rbf"), self.X)
        few = self.X[:50]
        assert np.allclose(hat_matrix(self.kernel, few, LAM), hat_by_eigh(self.kernel, few, LAM))

    def time_cholesky(self, n):
        hat_matrix(self.kernel, self.X, LAM)

    def time_eigh(self, n):
        hat_by_eigh(self.kernel, self.X, LAM)

    def peakmem_cholesky(self, n):
        hat_matrix(self.kernel, self.X, LAM)

    def peakmem_eigh(self, n):
        hat_by_eigh(self.kernel, self.X, LAM)

    def track_cholesky_over_eigh(self, n):
        return ratio(
            2,
            lambda: hat_matrix(self.kernel, self.X, LAM),
            lambda: hat_by_eigh(self.kernel, self.X, LAM),
        )
