"""UMC-RLS with defaults over points, features and clusters, beside k-means and mini-batches."""

from sklearn.cluster import KMeans, MiniBatchKMeans

import fastmmc
from fastmmc.core.memory import available_memory

from . import ratio
from .datasets import blobs

# The points three times, and Z of rank 1,000 or 3e8 numbers.
COPIES, MOST_NUMBERS = 3, 300_000_000

# Points times clusters times features up to which ten starts of k-means end in time.
MOST_PRODUCTS = 4 * 10**9


class Grid:
    """Points to labels. What free memory or a quarter of an hour is too small for is left out."""

    param_names = ("n", "d", "k")
    params = ((1_000, 10_000, 100_000, 1_000_000), (16, 784), (2, 10, 100))
    timeout = 900
    number = repeat = 1
    warmup_time = 0.0

    def setup(self, n, d, k):
        needed, free = 8 * (COPIES * n * d + min(1000 * n, MOST_NUMBERS)), available_memory()
        if free is not None and needed > free:
            # That is how asv is told to leave a cell out.
            raise NotImplementedError(f"needs {needed / 2**30:.0f} GiB")
        self.X, _ = blobs(n, k, d)
        fastmmc.umc_rls(self.X[: 4 * k + 300], k, random_state=0)

    def _ours(self, k):
        fastmmc.umc_rls(self.X, k, random_state=0)

    def time_call(self, n, d, k):
        self._ours(k)

    def peakmem_call(self, n, d, k):
        self._ours(k)

    def time_mini_batches(self, n, d, k):
        MiniBatchKMeans(k, n_init=3, random_state=0).fit(self.X)

    def peakmem_mini_batches(self, n, d, k):
        MiniBatchKMeans(k, n_init=3, random_state=0).fit(self.X)

    def peakmem_kmeans(self, n, d, k):
        KMeans(k, n_init=1, random_state=0).fit(self.X)

    def track_over_kmeans(self, n, d, k):
        if n * d * k > MOST_PRODUCTS:
            return float("nan")
        theirs = KMeans(k, n_init=10, random_state=0)
        return ratio(1, lambda: self._ours(k), lambda: theirs.fit(self.X))

    track_over_kmeans.unit = "ours / theirs"
