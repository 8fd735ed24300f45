"""Where a low-rank hat matrix becomes as good as the dense one for labels of about equal sizes.

See README.md in this folder for the protocol.
"""

import time
from functools import cache
from unittest.mock import patch

import numpy as np
from common import Source, draw, load_source, main, number, sources, table, timed
from sklearn.metrics import adjusted_rand_score

import fastmmc
from fastmmc.rls import planning

SETS = sources("usps", "letter", "pendigits") | {"Gaussians": Source("Gaussians", draw=10_000)}
SIZES = 2_000, 3_000, 5_000, 7_000, 10_000
QUICK_SIZES = SIZES[:2]

# Rank and parameters of each way; cells are what a call has that says nothing of a search.
WAYS = {
    "dense": (None, {}),
    "rank 500": (500, {"method": "shaking"}),
    "cells, rank 500": (500, {}),
    "cells, rank 1,000": (1_000, {}),
}

# All ways keep to the same sizes, so that their objectives can be compared.
BALANCE = 0.4


def gaussians(n):
    """Return ten overlapping clusters, the largest three times as large as the smallest."""
    rng = np.random.default_rng(0)
    shares = np.linspace(0.5, 1.5, 10)
    y = rng.choice(10, n, p=shares / shares.sum())
    return 1.6 * rng.standard_normal((10, 10))[y] + rng.standard_normal((n, 10)), y


def load(source):
    """Return all points and labels of a set."""
    return gaussians(source.draw) if source.name == "Gaussians" else load_source(source)


def sample(source, n):
    """Return that many points of a set, all if it has fewer, with the labels and their number."""
    X, y = load(source)
    X, y = draw(X, y, min(n, len(y)), 0)
    return X, y, len(np.unique(y))


def cluster(X, k, way):
    rank, search = WAYS[way]
    # Cells at every number of points.
    with patch.object(planning, "DENSE_CHOICE", 0):
        return fastmmc.umc_rls(
            X, k, sizes="equal", balance=BALANCE, rank=rank, random_state=0, **search
        )


@cache
def compile_loops(way):
    """Cluster a few points first: seconds are to be without compilation."""
    cluster(gaussians(2_100)[0], 10, way)


def judge(source, n, way):
    """Return ARI, objective on the dense hat matrix, and seconds of processor time."""
    compile_loops(way)
    X, y, k = sample(source, n)
    result, seconds = timed(cluster, X, k, way, clock=time.process_time)
    R = fastmmc.factor(X, sigma=result.params["sigma"]).R
    E = (result.labels[:, None] == np.arange(k)).astype(float)
    fits = R @ E
    objective = k * len(y) + (4 - k) * fits.sum() - 4 * np.sum(E * fits)
    return adjusted_rand_score(y, result.labels), objective, seconds


def page(run):
    sizes = QUICK_SIZES if run.quick else SIZES
    chosen = {name: run.sources[name] for name in run.sets}
    tasks = {
        (name, n, way): (judge, source, n, way)
        for n in sizes
        if n <= run.most
        for name, source in chosen.items()
        for way in WAYS
    }
    found = run.do(tasks)
    rows = []
    for name, n in dict.fromkeys(key[:2] for key in tasks):
        runs = [found[name, n, way] for way in WAYS]
        best = min(objective for _, objective, _ in runs)
        cells = [
            f"{number(ari, 3)} / {number(100 * (objective / best - 1), 1)} / {number(seconds, 1)}"
            for ari, objective, seconds in runs
        ]
        rows.append([name, n, *cells])
    return [
        "# Dense or low rank",
        run.made(),
        'Labels of about equal sizes (`sizes="equal"`, `balance=0.4`) by four ways: adjusted Rand '
        "index / how much higher the objective on the dense hat matrix is than that of the best "
        "way, in percent / seconds of processor time, hat matrix included. One BLAS thread.",
        table(["set", "n", *WAYS], sorted(rows, key=lambda row: (run.sets.index(row[0]), row[1]))),
    ]


if __name__ == "__main__":
    main(page, SETS, [("--most", {"type": int, "default": SIZES[-1], "help": "most points"})])
