"""Points that the tests of this family cluster."""

import numpy as np


def gaussians(sizes, seed=0, spread=20.0):
    """Return one Gaussian cluster of each size, in a dimension of its own, and the clusters."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(sizes)), sizes)
    return rng.standard_normal((y.size, len(sizes))) + spread * np.eye(len(sizes))[y], y
