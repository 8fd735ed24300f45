"""Labels of the defaults and of free sizes beside those of a search over all points.

See README.md in this folder for the protocol.
"""

import time
from functools import cache

import numpy as np
from common import load_source, main, mean_and_std, number, sources, table, timed
from sklearn.metrics import adjusted_rand_score

import fastmmc
from fastmmc.kernels.gram import median_width

SETS = sources("digits", "coil20", "satimage", "usps", "letter")
SEEDS = 10

# The search over all points takes minutes on large sets: fewer seeds there.
SEEDS_OF_ALL = {"satimage": 5, "letter": 1}

# Points up to which the hat matrix of the search over all points is dense, and its rank for more.
DENSE = 10_000
RANK = 1_000

ALL = "all points"
MEDIAN = "defaults, median"
WAYS = {
    "defaults": {},
    "free": {"sizes": "free"},
    MEDIAN: {},
    ALL: {"method": "shaking", "n_init": 30},
}


@cache
def points(source):
    """Return points, labels, and the hat matrix at the median distance with what it took."""
    X, y = load_source(source)
    rank = None if len(y) <= DENSE else RANK
    factor, seconds = timed(
        lambda: fastmmc.factor(X, sigma=median_width(X), rank=rank, random_state=0),
        clock=time.process_time,
    )
    return X, y, factor, seconds


def objective(factor, labels, k):
    """Return the objective of equal sizes on a hat matrix."""
    E = (labels[:, None] == np.arange(k)).astype(float)
    if hasattr(factor, "R"):
        fits = factor.R @ E
        total, within = fits.sum(), np.sum(E * fits)
    else:
        W = factor.Z.T @ E
        total, within = np.sum(W.sum(axis=1) ** 2), np.sum(W**2)
    return k * len(labels) + (4 - k) * total - 4 * within


def judge(source, way, seed):
    """Return ARI, objective at the median distance, seconds, smallest and largest size."""
    X, y, factor, seconds_of_factor = points(source)
    k = len(np.unique(y))
    given, before = (factor, seconds_of_factor) if way == ALL else (X, 0.0)
    width = {"sigma": median_width(X)} if way == MEDIAN else {}

    def cluster():
        return fastmmc.umc_rls(given, k, random_state=seed, **WAYS[way], **width)

    result, seconds = timed(cluster, clock=time.process_time)
    sizes = result.sizes * k / len(y)
    found = objective(factor, result.labels, k)
    score = adjusted_rand_score(y, result.labels)
    return score, found, before + seconds, sizes.min(), sizes.max()


def count_seeds(name, way):
    """Return the number of seeds of a way on a set."""
    return SEEDS_OF_ALL.get(name, SEEDS) if way == ALL else SEEDS


def page(run):
    # Compiled code is loaded first.
    X, _ = fastmmc.datasets.load("digits")
    for way in WAYS.values():
        fastmmc.umc_rls(X, 10, random_state=0, **way)
        fastmmc.umc_rls(np.vstack((X, X)), 10, random_state=0, rank=200, **way)
    tasks = {
        (name, way, seed): (judge, run.sources[name], way, seed)
        for name in run.sets
        for way in WAYS
        for seed in range(1 if run.quick else count_seeds(name, way))
    }
    found = run.do(tasks)
    rows = []
    for name in run.sets:
        runs = {
            way: np.array([found[key] for key in tasks if key[:2] == (name, way)]) for way in WAYS
        }
        of_all = runs[ALL][:, 1].mean()
        for way, figures in runs.items():
            ari, found_objective, seconds, least, most = figures.T
            rows.append(
                [
                    name,
                    way,
                    len(ari),
                    mean_and_std(ari.mean(), ari.std(), 3),
                    number(ari.min(), 3),
                    number(ari.max(), 3),
                    number(100 * (found_objective.mean() / of_all - 1), 1),
                    f"{least.min():.2f} to {most.max():.2f}",
                    number(np.median(seconds), 1),
                ]
            )
    header = ["set", "labels", "seeds", "ARI", "lowest", "highest", "objective, %", "sizes"]
    return [
        "# Large sets: quality",
        run.made(),
        '"Defaults" is `umc_rls(X, k)`, "free" is `umc_rls(X, k, sizes="free")`, and '
        '"defaults, median" are the defaults with the median distance as width. "All points" '
        "is what the defaults were before points were gathered in cells: the best of 30 starts of "
        'shaking, `umc_rls(F, k, method="shaking", n_init=30)`, on the hat matrix F '
        f"of the median distance, dense up to {DENSE:,} points and of rank {RANK:,} for more. "
        "Adjusted Rand index: mean ± standard deviation over the seeds, lowest and highest; by how "
        "much the mean objective of equal sizes on F is higher than that of all points, in "
        "percent; the smallest and the largest size in any run, of the mean size; the median of "
        "the seconds of processor time, F included. One BLAS thread.",
        table([*header, "seconds"], rows),
    ]


if __name__ == "__main__":
    main(page, SETS)
