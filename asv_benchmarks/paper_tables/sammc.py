"""Redo Tables 2 to 5 of Seifollahi et al. (2019): the least sum of plain distances to k centers."""

import time
from functools import partial
from itertools import product

import common
import numpy as np
from common import load, overlapping, timed, under
from sklearn.cluster import KMeans, MiniBatchKMeans, kmeans_plusplus
from sklearn.metrics import euclidean_distances, pairwise_distances_argmin_min
from sklearn.mixture import BayesianGaussianMixture

import fastmmc
from fastmmc.annealing.points import Points, Walker, descend
from fastmmc.core.threads import run_to_end

SETS = "segment", "page_blocks", "d15112", "shuttle"
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
LONG_CLUSTERS = (3, 10)  # of the annealing search to its own end
ANNEALING = {f"annealing, {center}s": {"center": center} for center in ("median", "mean")}
LIBRARY = ("KM", "MBKM", "FCM", "DPGMM")
EQUAL_TIME = ("memetic", "restarts", *ANNEALING)
SAME = 1e-5  # objectives that differ by a smaller share are called the same
SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
SCALE_FEATURES, SCALE_CLUSTERS, SCALE_REPRESENTATIVES, SCALE_ITERATIONS = 10, 10, 500, 1000


def restarts(X, k, seconds, seed):
    """Return the least objective of k-means++ and Weiszfeld's descent, and how many starts."""
    rng = np.random.default_rng(seed)
    walker = Walker(Points(X), "median")
    found, began = [], time.perf_counter()
    while not found or time.perf_counter() - began < seconds:
        first, _ = kmeans_plusplus(X, k, random_state=int(rng.integers(2**31)))
        found.append(run_to_end(descend(walker, first, 1e-5, rng)))
    _, centers = min(found, key=lambda one: one[0])
    return run_to_end(descend(walker, centers, 1e-9, rng))[0], len(found)


def measure_search(name, k, seed):
    """Return the objectives of EQUAL_TIME, the seconds of the memetic search, and starts."""
    X, _ = load(name)
    warm_up(X)
    solve = partial(fastmmc.sammc, X, k, random_state=seed)
    memetic, seconds = timed(solve)
    restarted, count = restarts(X, k, seconds, seed)
    given = {"search": "annealing", "max_time": seconds}
    annealed = (solve(**given, **options).objective for options in ANNEALING.values())
    return memetic.objective, restarted, *annealed, seconds, count


def warm_up(X):
    """Compile, or read what was compiled."""
    fastmmc.sammc(X[:200], 2, max_representatives=20, patience=2, random_state=0)
    fastmmc.sammc(X[:200], 2, search="annealing", max_iter=2, random_state=0)


def measure_annealing(name, k, method):
    """Return first and last objective, iterations and seconds of annealing to its own end."""
    X, _ = load(name)
    warm_up(X)
    given = {"search": "annealing", "random_state": 0} | ANNEALING[method]
    result, seconds = timed(partial(fastmmc.sammc, X, k, **given))
    return result.history[0], result.objective, result.n_iter, seconds


def fuzzy_centers(X, k, seed, tol=1e-5, max_iter=300):
    """Return the centers of fuzzy c-means with exponent 2."""
    before, (centers, _) = np.inf, kmeans_plusplus(X, k, random_state=seed)
    for _ in range(max_iter):
        if np.abs(centers - before).max() <= tol * np.abs(X).max():
            break
        shares = 1 / np.maximum(euclidean_distances(X, centers, squared=True), 1e-12)
        weights = (shares / shares.sum(axis=1, keepdims=True)) ** 2
        before, centers = centers, weights.T @ X / weights.sum(axis=0)[:, None]
    return centers


def measure_library(name, k):
    """Return the objective of the centers that each method of LIBRARY finds."""
    X, _ = load(name)
    models = (make(k, n_init=20, random_state=0).fit(X) for make in (KMeans, MiniBatchKMeans))
    centers = [model.cluster_centers_ for model in models]
    centers.append(fuzzy_centers(X, k, 0))
    centers.append(BayesianGaussianMixture(n_components=k, random_state=0).fit(X).means_)
    return [pairwise_distances_argmin_min(X, found)[1].sum() for found in centers]


def excess(value, best):
    """Return by how many percent a value is above the best."""
    return f"{100 * (value / best - 1):.2f}"


def measure_scale(n, search, iterations):
    """Return seconds, iterations and peak memory in GB of one run on n generated points."""
    X = overlapping(n, SCALE_FEATURES, SCALE_CLUSTERS)
    warm_up(X)
    options = {"search": search, "random_state": 0}
    if search == "annealing":
        options |= {"max_representatives": SCALE_REPRESENTATIVES, "max_iter": iterations}
        options |= {"patience": 10**6, "cooling": 0.9999}
    result, seconds = timed(partial(fastmmc.sammc, X, SCALE_CLUSTERS, **options))
    return seconds, result.n_iter, common.peak_memory() / 1e9


def page(run):
    names, ks, seeds = run.loaded(), run.pick(CLUSTERS, (3, 10)), range(run.repeats(REPEATS, 1))
    library = run.each(measure_library, names, ks)
    searches = run.each(measure_search, names, ks, seeds)
    long_names, long_ks = run.pick((names, LONG_CLUSTERS), (names[:1], (3,)))
    long_runs = run.each(measure_annealing, long_names, long_ks, ANNEALING)
    rows, least, ratios = [], {}, []
    for cell in product(names, ks):
        found = under(searches, *cell)
        values = [*found[:, :-2].mean(axis=0), *library[cell]]
        best = least[cell] = min(found[:, :-2].min(), *library[cell])
        paper = f"{PAPER[cell]:.6g} ({best / PAPER[cell]:.4f})" if cell in PAPER else "-"
        seconds, count = found[:, -2:].mean(axis=0)
        row = [*cell, f"{best:.6g}", paper, *(excess(value, best) for value in values)]
        rows.append([*row, f"{seconds:.1f}", f"{count:.0f}"])
        ratios.append(np.mean(found[:, 0] / found[:, 1]))
    yield "## Objective at equal time"
    yield f"Percent above the least f of the row; of searches, means of {len(seeds)} seeds."
    header = ["set", "k", "least f", "paper's f_best (ours / it)", *EQUAL_TIME, *LIBRARY]
    yield [*header, "seconds", "restarts made"], rows
    better, worse = np.sum(np.array(ratios) < 1 - SAME), np.sum(np.array(ratios) > 1 + SAME)
    yield (
        f"Memetic against restarts at equal time, mean of the seeds: lower in {better} cells, the "
        f"same (within {SAME:g}) in {len(ratios) - better - worse}, higher in {worse}."
    )
    yield "## Annealing to its own end"
    rows = []
    for at, (first, last, n_iter, seconds) in long_runs.items():
        shown = f"{first:.6g}", f"{last:.6g}", excess(last, least[at[:2]])
        rows.append([*at, *shown, n_iter, f"{seconds:.0f}"])
    header = ["set", "k", "method", "first f", "final f", "% above least f"]
    yield [*header, "iterations", "seconds"], rows
    iterations, sizes = run.pick(SCALE_ITERATIONS, 50), run.pick(SIZES, SIZES[:2])
    yield "## Time and memory"
    yield (
        f"{SCALE_CLUSTERS} Gaussians in {SCALE_FEATURES} dimensions, one thread; annealing with "
        f"{SCALE_REPRESENTATIVES} representatives at the beginning, {iterations} iterations."
    )
    rows, slopes = [], []
    for search in ("annealing", "memetic"):
        found = [common.alone(measure_scale, n, search, iterations) for n in sizes]
        rows += [[search, f"{n:,}", *figures] for n, figures in zip(sizes, found, strict=True)]
        slopes.append(f"{search} {common.slope(sizes, [seconds for seconds, *_ in found]):.2f}")
    yield ["search", "n", "seconds", "iterations", "peak, GB"], rows
    yield f"Slopes of log seconds over log n: {', '.join(slopes)}."


PAGES = {"sammc": ("SAMMC: the least sum of plain distances", page, SETS)}

if __name__ == "__main__":
    common.main()
