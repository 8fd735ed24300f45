"""Whole data sets against the usual fast methods.

See README.md in this folder for the protocols.
"""

import numpy as np
from common import load_source, main, sources, spread, table, timed
from scipy.sparse.linalg import svds
from sklearn.cluster import AgglomerativeClustering, KMeans, MiniBatchKMeans
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import normalize

import fastmmc

SETS = sources("usps", "letter")
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
        "UMC-RLS": lambda seed: (
            fastmmc.umc_rls(X, k, random_state=seed, n_jobs=2, sizes="equal").labels
        ),
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
    sigma = fastmmc.kernels.gram.median_width(X)
    rows = []
    for method, cluster in rivals(X, k, sigma).items():
        runs = [timed(cluster, seed) for seed in range(1 if method == "Ward" else seeds)]
        ari = [adjusted_rand_score(y, labels) for labels, _ in runs]
        seconds = np.median([seconds for _, seconds in runs])
        rows.append([name, len(y), k, method, spread(ari, 3), f"{seconds:.1f}"])
        print(*rows[-1], sep="   ", flush=True)
    return rows


def page(run):
    rows = []
    for name, (X, y) in run.load(load_source).items():
        rows += compare(name, X, y, 1 if run.quick else SEEDS)
    return [
        "# Whole data sets",
        run.made(),
        f"Adjusted Rand index and seconds of a call. Mean and standard deviation over {SEEDS} "
        "seeds; seconds are medians. UMC-RLS has its defaults and two threads. The memetic search "
        f"has {LANDMARKS} landmarks and is stopped after {MEMETIC_SECONDS} seconds.",
        table(["set", "n", "k", "method", "ARI", "seconds"], rows),
    ]


if __name__ == "__main__":
    main(page, SETS)
