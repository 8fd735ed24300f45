"""Whole data sets against the usual fast methods.

See README.md in this folder for the protocols.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from common import (
    Source,
    add_common_arguments,
    load_available,
    load_source,
    made_by,
    table,
    write_page,
)
from scipy.sparse.linalg import svds
from sklearn.cluster import AgglomerativeClustering, KMeans, MiniBatchKMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import normalize

import fastmmc

SETS = {"usps": Source("usps"), "letter": Source("letter")}
SEEDS = 5
LANDMARKS = 1000

# The memetic search is stopped after so long.
MEMETIC_SECONDS = 120


def nystroem_spectral(X, k, sigma, seed):
    """Cluster in the leading eigenvectors of the normalised Nyström Gram matrix."""
    rank = min(LANDMARKS, X.shape[0])
    Z = Nystroem(gamma=1 / sigma**2, n_components=rank, random_state=seed).fit_transform(X)
    degrees = np.maximum(Z @ Z.sum(axis=0), 1e-12)
    U = svds(Z / np.sqrt(degrees)[:, None], k, random_state=seed)[0]
    return KMeans(k, n_init=10, random_state=seed).fit_predict(normalize(U))


def ward(X, k):
    return AgglomerativeClustering(k).fit_predict(X)


def rivals(X, k, sigma):
    """Return {method: function of the seed}; Ward draws nothing."""
    return {
        "UMC-RLS": lambda seed: fastmmc.umc_rls(X, k, random_state=seed, n_jobs=2).labels,
        "UMC-RLS, memetic": lambda seed: (
            fastmmc.umc_rls(
                X,
                k,
                method="memetic",
                rank=LANDMARKS,
                random_state=seed,
                n_jobs=2,
                max_time=MEMETIC_SECONDS,
            ).labels
        ),
        "k-means": lambda seed: KMeans(k, n_init=10, random_state=seed).fit_predict(X),
        "MiniBatchKMeans": lambda seed: MiniBatchKMeans(
            k, n_init=10, random_state=seed
        ).fit_predict(X),
        "Nyström-spectral": lambda seed: nystroem_spectral(X, k, sigma, seed),
        "Ward": lambda seed: ward(X, k),
    }


def compare(name, X, y, seeds):
    """Return the rows of one set: ARI and seconds of every method."""
    k = len(np.unique(y))
    sigma = fastmmc.gram.median_width(X)
    rows = []
    for method, run in rivals(X, k, sigma).items():
        found, seconds = [], []
        for seed in range(1 if method == "Ward" else seeds):
            began = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                found.append(adjusted_rand_score(y, run(seed)))
            seconds.append(time.perf_counter() - began)
        ari = f"{np.mean(found):.3f} ± {np.std(found):.3f}"
        rows.append([name, len(y), k, method, ari, f"{np.median(seconds):.1f}"])
        print(*rows[-1], sep="   ", flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_arguments(parser, SETS, Path(__file__).with_suffix(".md"))
    arguments = parser.parse_args()
    started = time.perf_counter()
    loaded = load_available(arguments.sets, lambda name: load_source(SETS[name]))
    rows = []
    for name, (X, y) in loaded.items():
        rows += compare(name, X, y, 1 if arguments.quick else SEEDS)
    parts = [
        "# Whole data sets",
        made_by(arguments.quick, started),
        f"Adjusted Rand index and seconds of a call. Mean and standard deviation over {SEEDS} "
        "seeds; seconds are medians. UMC-RLS has its defaults and two threads. The memetic search "
        f"has {LANDMARKS} landmarks and is stopped after {MEMETIC_SECONDS} seconds.",
        table(["set", "n", "k", "method", "ARI", "seconds"], rows),
    ]
    write_page(arguments.out, parts)


if __name__ == "__main__":
    main()
