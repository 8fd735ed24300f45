"""Points to cluster: the same in every process, made once in each."""

from functools import cache

from sklearn.datasets import make_blobs

import fastmmc


@cache
def blobs(n, k, d=10):
    """Return n points of k Gaussians that overlap a little, and which Gaussian they are of."""
    return make_blobs(n, d, centers=k, cluster_std=2.0, center_box=(-5.0, 5.0), random_state=0)


@cache
def blobs_factor(n, k):
    """Return the hat matrix of the blobs."""
    return fastmmc.factor(blobs(n, k)[0])
