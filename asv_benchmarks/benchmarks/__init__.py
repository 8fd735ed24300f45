"""Time, memory and quality of fastmmc, from commit to commit."""

import hashlib
import importlib.util
import os
from functools import cache
from pathlib import Path
from time import perf_counter


def compile_cache():
    """Return a folder for machine code that belongs to exactly these sources.

    Numba looks for changes in the cached function's own file only, so a folder that two commits
    share could time the older one's machine code.
    """
    package = Path(importlib.util.find_spec("fastmmc").origin).parent
    sources = b"".join(path.read_bytes() for path in sorted(package.rglob("*.py")))
    digest = hashlib.sha256(sources).hexdigest()[:12]
    return Path(__file__).parents[1] / ".asv" / "numba_cache" / digest


# Before anything imports NumPy or Numba, which read these once. The searches run in one thread, so
# BLAS gets one as well: ratios then do not depend on how many cores there are and how busy.
os.environ.setdefault("NUMBA_CACHE_DIR", str(compile_cache()))
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

from sklearn.datasets import make_blobs  # noqa: E402


def best_of(repeats, *functions):
    """Return the least seconds that each function took.

    They take turns, so that what else the machine does hits all alike.
    """
    best = [float("inf")] * len(functions)
    for _ in range(repeats):
        for i, function in enumerate(functions):
            began = perf_counter()
            function()
            best[i] = min(best[i], perf_counter() - began)
    return best


def ratio(repeats, ours, theirs):
    """Return our seconds over theirs."""
    own, other = best_of(repeats, ours, theirs)
    return own / other


@cache
def blobs(n, k, d=10):
    """Return n points of k Gaussians that overlap a little, and which Gaussian they are of."""
    return make_blobs(n, d, centers=k, cluster_std=2.0, center_box=(-5.0, 5.0), random_state=0)


@cache
def two_classes(n, d=10):
    """Return n points of two Gaussians that overlap, whatever d is, and which they are of."""
    centers = [[0.0] * d, [4.0 / d**0.5] * d]
    return make_blobs(n, centers=centers, random_state=0)
