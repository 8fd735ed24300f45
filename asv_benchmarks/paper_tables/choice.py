"""Measure the choice without labels against the classes: k given, and k to be found.

See README.md in this folder for the protocols.
"""

import time
from pathlib import Path

import numpy as np
from common import Source, draw, load_source, main, number, reached, sources, table
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import scale

import fastmmc

DRAWN = 1200
WHOLE = sources("digits", "wine", "breast_cancer")
PARTS = sources("usps", "pendigits", "satimage", "segment") | {
    "letter A-H": Source("letter", tuple(range(8)))
}
SETS = WHOLE | PARTS
STANDARDISED = {"wine", "breast_cancer"}
PUBLIC = ["sipu_a1", "sipu_a2", "sipu_a3", "sipu_d31", "sipu_s2", "sipu_unbalance"]

# Adjusted Rand indices to be reached: by the median over seeds, and with k given.
BARS = {
    "digits": 0.92,
    "wine": 0.87,
    "breast_cancer": 0.75,
    "blobs 900/80/20": 1.0,
    "sipu_a1": 0.94,
    "sipu_a2": 0.94,
    "sipu_a3": 0.94,
    "sipu_d31": 0.94,
    "sipu_s2": 0.92,
    "sipu_unbalance": 0.99,
}
REAL_BAR = 0.64

# Seconds that 2,000 points may take, by k.
SECONDS = {30: 10, "auto": 60}


def load(name, seed):
    """Return the points of a set, all or drawn by the seed, and their classes."""
    X, y = load_source(SETS[name])
    if name in STANDARDISED:
        X = scale(X)
    return draw(X, y, DRAWN if name in PARTS and y.size > DRAWN else None, seed)


def far_blobs(seed):
    """Return three far blobs of 900, 80 and 20 points."""
    y = np.repeat(np.arange(3), [900, 80, 20])
    centers = np.array([[0, 0], [20, 0], [0, 20]])
    return np.random.default_rng(seed).normal(size=(y.size, 2)) + centers[y], y


def load_public(path):
    """Return points and labels of a file of a public suite: arrays X (n, d) and y (m, n)."""
    with np.load(path) as file:
        return file["X"].astype(np.float64), file["y"][0]


def measure(points, seed, k, *args):
    """Return the index with all that is known, the number of clusters and the seconds."""
    X, y = points(*args)
    began = time.perf_counter()
    result = fastmmc.cluster(X, np.unique(y).size if k is None else k, random_state=seed)
    seconds = time.perf_counter() - began
    return adjusted_rand_score(y, result.labels), result.sizes.size, seconds


def made_points(count):
    return make_blobs(count, 4, centers=30, random_state=0)


def today(name, seed):
    """Return the index of ``umc_rls`` with its defaults."""
    X, y = load(name, seed)
    labels = fastmmc.umc_rls(X, np.unique(y).size, random_state=seed).labels
    return adjusted_rand_score(y, labels)


def bar_row(name, found):
    """Return the row of one set: median, least and greatest index over the seeds, and the bar."""
    values = [index for index, *_ in found]
    bar = BARS[name]
    figures = [np.median(values), min(values), max(values), bar]
    times = number(np.mean([seconds for *_, seconds in found]), 1)
    # As printed, to three digits.
    is_reached = round(float(np.median(values)), 3) >= bar
    shown = [number(value, 3) for value in figures]
    return [name, len(values), *shown, reached(is_reached), times]


def page(run):
    seeds, parts = (2, 1) if run.quick else (run.seeds, run.draws)
    names = list(run.load(lambda source: load_source(source)[1].size))
    whole = [name for name in names if name in WHOLE]
    files = [run.suite / f"{name}.npz" for name in PUBLIC] if run.suite else []
    tasks = {
        (name, seed): (measure, load, seed, None, name, seed)
        for name in whole
        for seed in range(seeds)
    }
    tasks |= {
        ("part", name, seed): (measure, load, seed, None, name, seed)
        for name in names
        for seed in range(parts)
    }
    tasks |= {
        ("before", name, seed): (today, name, seed) for name in names for seed in range(parts)
    }
    for seed in range(seeds):
        tasks["blobs 900/80/20", seed] = (measure, far_blobs, seed, None, seed)
        tasks["number", seed] = (measure, far_blobs, seed, "auto", seed)
    tasks |= {(file.stem, 0): (measure, load_public, 0, None, file) for file in files}
    tasks |= {("time", k): (measure, made_points, 0, k, 2000) for k in SECONDS}
    results = run.do(tasks)
    rows = [
        bar_row(name, [results[key] for key in results if key[0] == name])
        for name in BARS
        if (name, 0) in results
    ]
    header = ["set", "runs", "median", "least", "greatest", "bar", "reached", "seconds"]
    shown = ["# The choice without labels", run.made(), "## With k given", table(header, rows)]
    if names:
        shown += ["## Real sets", real_table(results, names, parts)]
    right = sum(results["number", seed][1] == 3 for seed in range(seeds))
    shown += [
        "## The number",
        f"Blobs of 900, 80 and 20 points, k unknown: three in {right} of {seeds}.",
    ]
    rows = [
        [k, *(number(value, 3) for value in results["time", k][::2]), bar]
        for k, bar in SECONDS.items()
    ]
    shown += ["## Time, 2,000 points", table(["k", "index", "seconds", "bar"], rows)]
    return shown


def real_table(results, names, parts):
    """Return the means over the draws, beside those of ``umc_rls``."""
    rows, means = [], []
    for name in names:
        now = np.mean([results["part", name, seed][0] for seed in range(parts)])
        before = np.mean([results["before", name, seed] for seed in range(parts)])
        means.append((now, before))
        rows.append([name, number(now, 3), number(before, 3), reached(now >= before - 0.03)])
    now, before = np.mean(means, axis=0)
    rows.append(["mean", number(now, 3), number(before, 3), reached(now >= REAL_BAR)])
    return table(["set", "cluster", "umc_rls", "bar"], rows)


if __name__ == "__main__":
    main(
        page,
        SETS,
        [
            ("--seeds", {"type": int, "default": 10, "help": "seeds of whole sets"}),
            ("--draws", {"type": int, "default": 5, "help": "draws of 1,200 points of real sets"}),
            ("--suite", {"type": Path, "help": "folder of a public suite's sets, X and y in .npz"}),
        ],
    )
