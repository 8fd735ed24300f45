"""Redo Tables 2 to 5 of Seifollahi et al. (2019): the least sum of plain distances to k centers.

See README.md in this folder for the protocols.
"""

import time
from functools import partial
from itertools import product

import numpy as np
from common import (
    alone,
    last_value,
    load_source,
    main,
    overlapping,
    peak_memory,
    slope,
    sources,
    table,
    timed,
)
from sklearn.cluster import KMeans, MiniBatchKMeans, kmeans_plusplus
from sklearn.metrics import pairwise_distances_argmin_min
from sklearn.mixture import BayesianGaussianMixture

import fastmmc
from fastmmc.annealing.points import Points, Walker, descend

SETS = sources("segment", "page_blocks", "d15112", "shuttle")
CLUSTERS = (3, 5, 7, 10, 12, 15, 17, 20)

# The paper's least objectives of the cells that could be had.
PAPER = {
    ("segment", 3): 1.9215e5,
    ("segment", 7): 1.49572e5,
    ("page_blocks", 3): 4.86e6,
    ("d15112", 3): 5.54065e7,
    ("shuttle", 3): 1.90781e6,
    ("shuttle", 5): 1.77075e6,
}
REPEATS = 3

# Runs of the annealing search to its own end.
LONG_CLUSTERS = (3, 10)
ANNEALING = {
    "annealing, medians": {"center": "median"},
    "annealing, means": {"center": "mean"},
}
LIBRARY = ("KM", "MBKM", "FCM", "DPGMM")
EQUAL_TIME = ("memetic", "restarts", *ANNEALING)

# Objectives that differ by a smaller share are called the same.
SAME = 1e-5

SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
SCALE_FEATURES, SCALE_CLUSTERS, SCALE_REPRESENTATIVES, SCALE_ITERATIONS = 10, 10, 500, 1000


def objective(X, centers):
    """Return the sum of the distances to the nearest centers."""
    return float(pairwise_distances_argmin_min(X, centers)[1].sum())


def restarts(X, k, seconds, seed):
    """Return the least objective of k-means++ and Weiszfeld's descent, and how many starts."""
    rng = np.random.default_rng(seed)
    walker = Walker(Points(X), "median")
    best, count, began = np.inf, 0, time.perf_counter()
    while count == 0 or time.perf_counter() - began < seconds:
        first, _ = kmeans_plusplus(X, k, random_state=int(rng.integers(2**31)))
        found, centers = last_value(descend(walker, first, 1e-5, rng))
        count += 1
        if found < best:
            best, best_centers = found, centers
    return last_value(descend(walker, best_centers, 1e-9, rng))[0], count


def measure_search(name, k, seed):
    """Return the objectives of the searches at the memetic one's time, that time, and starts."""
    X, _ = load_source(SETS[name])
    warm_up(X)
    solve = partial(fastmmc.sammc, X, k, random_state=seed)
    memetic, seconds = timed(solve)
    found = {"memetic": memetic.objective}
    found["restarts"], count = restarts(X, k, seconds, seed)
    for method, options in ANNEALING.items():
        found[method] = solve(search="annealing", max_time=seconds, **options).objective
    return found, seconds, count


def warm_up(X):
    """Compile, or read what was compiled."""
    fastmmc.sammc(X[:200], 2, max_representatives=20, patience=2, random_state=0)
    fastmmc.sammc(X[:200], 2, search="annealing", max_iter=2, random_state=0)


def measure_annealing(name, k):
    """Return objective, iterations and seconds of annealing to its own end, for both centers."""
    X, _ = load_source(SETS[name])
    warm_up(X)
    solve = partial(fastmmc.sammc, X, k, search="annealing", random_state=0)
    found = {}
    for method, options in ANNEALING.items():
        result, seconds = timed(partial(solve, **options))
        found[method] = result.objective, result.history[0], result.n_iter, seconds
    return found


def fuzzy_centers(X, k, seed, q=2.0, tol=1e-5, max_iter=300):
    """Return the centers of fuzzy c-means."""
    centers, _ = kmeans_plusplus(X, k, random_state=seed)
    for _ in range(max_iter):
        squares = np.maximum(
            (X**2).sum(1)[:, None] - 2.0 * X @ centers.T + (centers**2).sum(1), 1e-12
        )
        shares = squares ** (-1.0 / (q - 1.0))
        shares = (shares / shares.sum(axis=1, keepdims=True)) ** q
        after = shares.T @ X / shares.sum(axis=0)[:, None]
        moved = np.abs(after - centers).max()
        centers = after
        if moved <= tol * np.abs(X).max():
            break
    return centers


def measure_library(name, k):
    """Return the objective of the centers that each method of the library finds."""
    X, _ = load_source(SETS[name])
    mixture = BayesianGaussianMixture(n_components=k, random_state=0)
    centers = {
        "KM": KMeans(k, n_init=20, random_state=0).fit(X).cluster_centers_,
        "MBKM": MiniBatchKMeans(k, n_init=20, random_state=0).fit(X).cluster_centers_,
        "FCM": fuzzy_centers(X, k, 0),
        "DPGMM": mixture.fit(X).means_,
    }
    return {method: objective(X, c) for method, c in centers.items()}


def excess(values, best):
    """Return by how many percent the mean of the values is above the best."""
    return f"{100 * (np.mean(values) / best - 1):.2f}"


def objective_table(searches, library, cells):
    """Return the table of objectives, and the cells' least ones."""
    rows, least = [], {}
    for name, k in cells:
        runs = [found for key, found in searches.items() if key[:2] == (name, k)]
        by_method = {m: [found[m] for found, *_ in runs] for m in EQUAL_TIME}
        by_method |= {m: [library[name, k][m]] for m in LIBRARY}
        best = least[name, k] = min(min(values) for values in by_method.values())
        paper = PAPER.get((name, k))
        shown = "-" if paper is None else f"{paper:.6g} ({best / paper:.4f})"
        above = (excess(by_method[m], best) for m in (*EQUAL_TIME, *LIBRARY))
        seconds, count = (np.mean([run[at] for run in runs]) for at in (1, 2))
        rows.append([name, k, f"{best:.6g}", shown, *above, f"{seconds:.1f}", f"{count:.0f}"])
    header = ["set", "k", "least f", "paper's f_best (ours / it)"]
    header += [*EQUAL_TIME, *LIBRARY, "seconds", "restarts made"]
    return table(header, rows), least


def duel(searches, cells):
    """Count the cells in which the memetic search is better, equal and worse than restarts."""
    runs = [[found[0] for at, found in searches.items() if at[:2] == cell] for cell in cells]
    ratios = np.array([np.mean([f["memetic"] / f["restarts"] for f in one]) for one in runs])
    better, worse = np.sum(ratios < 1 - SAME), np.sum(ratios > 1 + SAME)
    return (
        f"Memetic against restarts at equal time, mean of the seeds: lower in {better} cells, the "
        f"same (within {SAME:g}) in {len(cells) - better - worse}, higher in {worse}."
    )


def long_table(long_runs, least):
    rows = [
        [*cell, method, f"{first:.6g}", f"{found:.6g}", excess([found], least[cell])]
        + [n_iter, f"{seconds:.0f}"]
        for cell, runs in long_runs.items()
        for method, (found, first, n_iter, seconds) in runs.items()
    ]
    header = ["set", "k", "method", "first f", "final f", "% above least f"]
    return table([*header, "iterations", "seconds"], rows)


def measure_scale(n, search, iterations):
    """Return seconds, iterations and peak memory in GB of one run on n generated points."""
    X = overlapping(n, SCALE_FEATURES, SCALE_CLUSTERS)
    warm_up(X)
    options = {}
    if search == "annealing":
        options = {"max_representatives": SCALE_REPRESENTATIVES, "max_iter": iterations}
        options |= {"patience": 10**6, "cooling": 0.9999}
    result, seconds = timed(
        partial(fastmmc.sammc, X, SCALE_CLUSTERS, search=search, random_state=0, **options)
    )
    return seconds, result.n_iter, peak_memory() / 1e9


def scale_table(sizes, iterations):
    rows, slopes = [], []
    for search in ("annealing", "memetic"):
        found = [alone(measure_scale, n, search, iterations) for n in sizes]
        for n, (seconds, n_iter, peak) in zip(sizes, found, strict=True):
            rows.append([search, f"{n:,}", f"{seconds:.1f}", n_iter, peak])
        slopes.append(f"{search} {slope(sizes, [seconds for seconds, *_ in found]):.2f}")
    return table(["search", "n", "seconds", "iterations", "peak, GB"], rows), ", ".join(slopes)


def page(run):
    names, ks = list(run.load(load_source)), run.pick(CLUSTERS, (3, 10))
    repeats = run.pick(run.repeats, 1)
    cells = list(product(names, ks))
    library = run.each(measure_library, names, ks)
    searches = run.each(measure_search, names, ks, range(repeats))
    long_runs = run.each(measure_annealing, names, run.pick(LONG_CLUSTERS, (3,)))
    objectives, least = objective_table(searches, library, cells)
    yield "## Objective at equal time"
    yield (
        f"Percent above the least f of the row: means of {repeats} seeds (searches), or the best "
        "of 20 starts (KM, MBKM) and one start (FCM, DPGMM)."
    )
    yield objectives
    yield duel(searches, cells)
    yield "## Annealing to its own end"
    yield long_table(long_runs, least)
    iterations = run.pick(SCALE_ITERATIONS, 50)
    scale, slopes = scale_table(run.pick(SIZES, SIZES[:2]), iterations)
    yield "## Time and memory"
    yield (
        f"{SCALE_CLUSTERS} Gaussians in {SCALE_FEATURES} dimensions, one thread; annealing with "
        f"{SCALE_REPRESENTATIVES} representatives at the beginning, {iterations} iterations."
    )
    yield scale
    yield f"Slopes of log seconds over log n: {slopes}."


PAGES = {"sammc": ("SAMMC: the least sum of plain distances", page, SETS)}

if __name__ == "__main__":
    main(PAGES, repeats={"type": int, "default": REPEATS, "help": "seeds of each cell"})
