"""Time and memory over points, features and clusters; where low rank and blocks begin to pay."""

import gc
import os
import subprocess
import sys
import time
from functools import cache, partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import common
import numpy as np
from common import load, number, overlapping, timed
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

import fastmmc

# ----------------------------------------------------------------------------- the grid, and growth
SIZES = (1_000, 10_000, 100_000, 1_000_000)
FEATURES = (16, 784)
CLUSTERS = {2: ":", 10: "--", 100: "-"}
METHODS = {
    "umc_rls": lambda X, k: fastmmc.umc_rls(X, k, random_state=0),
    "KMeans": lambda X, k: KMeans(k, n_init=10, random_state=0).fit(X),
    "MiniBatchKMeans": lambda X, k: MiniBatchKMeans(k, n_init=3, random_state=0).fit(X),
    "cluster": lambda X, k: fastmmc.cluster(X, k, random_state=0),
    "KMeans, one start": lambda X, k: KMeans(k, n_init=1, random_state=0).fit(X),
}
OF_GRID = "umc_rls", "KMeans", "MiniBatchKMeans"
GROWING = OF_SHAPES = "cluster", "umc_rls", "KMeans, one start"

# Values along each axis, d, k and n at a value, and the value from which growth is measured.
AXES = {
    "n": ([10**e for e in range(3, 8)], lambda n: (2, 10, n), 10**4),
    "k": ([2, 10, 30, 100, 300, 1000], lambda k: (2, k, 20_000), 10),
    "d": ([2, 16, 128, 784], lambda d: (d, 10, 10_000), 2),
}
# Of n d k: from here on ten starts of k-means take more than about a minute.
MOST_OF_KMEANS = 10**9


def measure(d, k, n, methods):
    """Return CPU seconds and this process's peak of memory in MB, one row each, of every method."""
    X, found = overlapping(n, d, k), np.full((len(methods), 2), np.nan)
    for at, name in enumerate(methods):
        if name == "KMeans" and n * d * k > MOST_OF_KMEANS:
            continue
        method = METHODS[name]
        method(X[: 4 * k + 300], k)  # loads compiled code
        gc.collect()
        Path("/proc/self/clear_refs").write_text("5")  # forgets the peak
        _, seconds = timed(method, X, k, clock=time.process_time)
        found[at] = seconds, common.peak_memory() / 2**20
    return found.T


ROWS = dict.fromkeys(("CPU seconds", "peak memory, MB"), {"xscale": "log", "yscale": "log"})
COSTS = "CPU seconds of all threads from points to labels, and peak memory of the process."


def cost_table(corner, methods, found):
    """Return a row for each key of what was found."""
    columns = (f"{method}, {unit}" for unit in ("s", "MB") for method in methods)
    rows = (
        [f"{value:,}" if isinstance(value, int) else value for value in key]
        + [*seconds, *(number(peak, 0) for peak in peaks)]
        for key, (seconds, peaks) in found.items()
    )
    return [*corner, *columns], rows


def grid_page(run):
    sizes = [n for n in run.pick(SIZES, SIZES[:1]) if n <= (run.most or n)]
    cells = product(FEATURES, CLUSTERS, sizes)
    found = run.do({cell: (common.alone, measure, *cell, OF_GRID) for cell in cells})
    yield f"{COSTS} `KMeans` is left out (-) where n d k is more than {MOST_OF_KMEANS:,}."
    yield cost_table(("d", "k", "n"), OF_GRID, found)
    panels = {f"d = {d}": {} for d in FEATURES}
    for d, (k, line), (m, method) in product(FEATURES, CLUSTERS.items(), enumerate(OF_GRID)):
        points = ((sizes, of) for of in common.under(found, d, k)[:, :, m].T)
        panels[f"d = {d}"][f"{method}, k = {k}"] = f"C{m}.{line}", *points
    yield run.draw("times", "points", panels, ROWS)


def growth_page(run):
    along = {axis: run.pick(values, values[:2]) for axis, (values, *_) in AXES.items()}
    points = [(axis, value) for axis, values in along.items() for value in values]
    found = run.do({(a, v): (common.alone, measure, *AXES[a][1](v), GROWING) for a, v in points})
    yield (
        f"{COSTS} Along n, d = 2 and k = 10; along k, d = 2 and n = 20,000; along d, k = 10 and "
        "n = 10,000."
    )
    yield cost_table(("axis", "value"), GROWING, found)
    powers, panels = [], {}
    for axis, values in along.items():
        figures, lines = common.under(found, axis).T, panels.setdefault(f"along {axis}", {})
        for m, method in enumerate(GROWING):
            lines[method] = f"C{m}o-", *((values, of) for of in figures[m])
        seen = np.array(values) >= AXES[axis][2]
        if seen.sum() > 1:
            slopes = (common.slope(np.array(values)[seen], of[0, seen]) for of in figures)
            powers.append([f"{axis}, from {AXES[axis][2]:,}", *slopes])
    yield "The power of n, k and d that the seconds grow with (least squares of logarithms):"
    yield ["axis", *GROWING], powers
    yield run.draw("powers", "n, k or d", panels, ROWS)


# ----------------------------------------------------------------------------------- large shapes
# Radius of the bananas' circle, and how far points scatter about it: at .7 the best rule has an
# NMI of .974.
RADIUS, SCATTER = 5, 0.7


def bananas(n, rng):
    """Return two arcs that reach into each other, as PRTools makes them."""
    y = rng.integers(2, size=n)
    angles = (0.125 + 0.25 * y + (1.25 - 2.5 * y) * rng.random(n)) * np.pi
    X = RADIUS * np.column_stack((np.sin(angles), np.cos(angles))) - 0.75 * RADIUS * y[:, None]
    return X + SCATTER * rng.standard_normal((n, 2)), y


def circles(radii, spread, n, rng):
    """Return circles about one centre, of points in proportion to their lengths."""
    y = rng.choice(len(radii), n, p=np.divide(radii, sum(radii)))
    angles = 2 * np.pi * rng.random(n)
    distances = np.take(radii, y) + spread * rng.standard_normal(n)
    return distances[:, None] * np.column_stack((np.cos(angles), np.sin(angles))), y


def circles_and_gaussians(n, rng):
    """Return three circles, and eight Gaussians around them."""
    X, y = circles((1.0, 2.0, 3.0), 0.1, n, rng)
    which = rng.integers(11, size=n)
    angles = np.pi / 4 * which
    centers = 6.0 * np.column_stack((np.cos(angles), np.sin(angles)))
    is_round = which < 8
    X[is_round] = centers[is_round] + 0.7 * rng.standard_normal((is_round.sum(), 2))
    return X, np.where(is_round, 3 + which, y)


LARGE_SHAPES = {
    "bananas": (10**6, bananas),
    "three circles": (5 * 10**6, partial(circles, (1.0, 2.0, 3.0), 0.1)),
    "circles and Gaussians": (10**7, circles_and_gaussians),
}


def measure_shape(name, n, method):
    """Return the NMI of a method on a large shape, its CPU seconds and its peak of memory in GB."""
    X, y = LARGE_SHAPES[name][1](n, np.random.default_rng(0))
    k = int(y.max()) + 1
    METHODS[method](X[:1000], k)  # loads compiled code
    result, seconds = timed(METHODS[method], X, k, clock=time.process_time)
    labels = getattr(result, "labels_", getattr(result, "labels", None))
    return normalized_mutual_info_score(y, labels), seconds, common.peak_memory() / 1e9


def shapes_page(run):
    sizes = {name: run.pick(n, 20_000) for name, (n, _) in LARGE_SHAPES.items()}
    cells = [(name, n, method) for (name, n), method in product(sizes.items(), OF_SHAPES)]
    found = run.do({cell: (common.alone, measure_shape, *cell) for cell in cells})
    yield "CPU seconds of all threads from points to labels, peak memory of the process; k given."
    rows = ([name, f"{n:,}", m, f"{f[0]:.4f}", *f[1:]] for (name, n, m), f in found.items())
    yield ["set", "n", "method", "NMI", "s", "peak, GB"], rows


# -------------------------------------------------------------------------------- dense or low rank
DRAWN_SETS = "usps", "letter", "pendigits", "Gaussians"
DRAWN_SIZES = 2_000, 3_000, 5_000, 7_000, 10_000
# Parameters of each way; shaking is on all points.
WAYS = {
    "cells, dense": {"rank": None},
    "rank 500": {"rank": 500, "method": "shaking"},
    "cells, rank 500": {"rank": 500},
    "cells, rank 1,000": {"rank": 1_000},
}
BALANCE = 0.4  # the same sizes for all ways, so that their objectives can be compared


def cluster_at(X, k, way):
    given = {"sizes": "equal", "balance": BALANCE, "random_state": 0} | WAYS[way]
    return fastmmc.umc_rls(X, k, **given)


@cache
def compile_loops(way):
    """Cluster a few points, so that seconds do not include compilation."""
    cluster_at(load("Gaussians", most=2_100)[0], 10, way)


def judge_rank(name, n, way):
    """Return ARI, objective on the dense hat matrix, and seconds of processor time."""
    compile_loops(way)
    X, y = load(name, most=n)
    k = y.max() + 1
    result, seconds = timed(cluster_at, X, k, way, clock=time.process_time)
    R = fastmmc.factor(X, sigma=result.params["sigma"]).R
    P = np.where(result.labels[:, None] == np.arange(k), 1.0, -1.0)
    objective = k * len(y) - np.sum(P * (R @ P))
    return adjusted_rand_score(y, result.labels), objective, seconds


def rank_page(run):
    sizes = [n for n in run.pick(DRAWN_SIZES, DRAWN_SIZES[:2]) if n <= (run.most or n)]
    names, rows = run.loaded(), []
    found = run.each(judge_rank, names, sizes, WAYS)
    for name, n in product(names, sizes):
        runs = common.under(found, name, n)
        excess = 100 * (runs[:, 1] / runs[:, 1].min() - 1)
        figures = zip(runs[:, 0], excess, runs[:, 2], strict=True)
        rows.append([name, n, *(f"{ari:.3f} / {e:.1f} / {s:.1f}" for ari, e, s in figures)])
    yield (
        'Labels of about equal sizes (`sizes="equal"`, `balance=0.4`): adjusted Rand index / how '
        "many percent the dense objective is above that of the best way / CPU seconds."
    )
    yield ["set", "n", *WAYS], rows


# ------------------------------------------------------------------------------------------- blocks
# The time of this number of rows on this number of workers of one core is derived.
ALL_ROWS, WORKERS, BLOCK_FEATURES = 10**9, 100, 50
CASES = [(10, 100), (10, 300), (100, 300), (100, 1000)]
# Rows of a block, and blocks of the two calls whose difference is what rows cost.
BLOCK, FEW, MANY = 2**16, 2, 6


def seconds_in_blocks(k, rank, dtype, blocks):
    """Return the CPU seconds of a call on so many blocks, in one thread."""
    import dask
    import dask.array as da

    points = da.from_array(overlapping(blocks * BLOCK, BLOCK_FEATURES, k), (BLOCK, BLOCK_FEATURES))
    call = partial(fastmmc.umc_rls, k=k, rank=rank, dtype=dtype, n_init=1, random_state=0)
    with dask.config.set(scheduler="synchronous"):
        call(points[: 2 * BLOCK : 32].rechunk((BLOCK // 32, -1)))  # loads compiled code
        return timed(call, points, clock=time.process_time)[1]


def blocks_page(run):
    cases = product(run.pick(CASES, CASES[:1]), ("float64", "float32"))
    ways = [(*case, dtype) for case, dtype in cases]
    found = run.over([(*way, b) for way in ways for b in (FEW, MANY)], seconds_in_blocks)
    yield (
        f"CPU seconds of one start on blocks of {BLOCK:,} rows and {BLOCK_FEATURES} columns; the "
        f"difference for a row; what {ALL_ROWS:,} rows take on {WORKERS} such cores by this figure."
    )
    rows = []
    for way in ways:
        few, many = common.under(found, *way)
        a_row = (many - few) / ((MANY - FEW) * BLOCK)
        rows.append([*way, few, many, 1e6 * a_row, a_row * ALL_ROWS / WORKERS / 60])
    header = ["k", "rank", "features", f"{FEW} blocks, s", f"{MANY} blocks, s", "a row, us"]
    yield [*header, f"{ALL_ROWS:,} rows, min"], rows


# ------------------------------------------------------------------------------------------ parquet
# Rows of a file, and of a quick run; fewer would be read into memory.
PARQUET_ROWS, LEAST_ROWS, PARQUET_CLUSTERS = 10_000_000, 4_300_000, 10


def write_parquet(path, n):
    """Write that many points of ten Gaussians in 8 dimensions; return their labels."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    rng, names = np.random.default_rng(0), [f"x{j}" for j in range(8)]
    centers, labels = 4.0 * rng.standard_normal((PARQUET_CLUSTERS, 8)), []
    with ParquetWriter(path, pa.schema([(name, pa.float64()) for name in names])) as writer:
        for start in range(0, n, 2**20):
            y = rng.integers(PARQUET_CLUSTERS, size=min(2**20, n - start))
            X = centers[y] + rng.standard_normal((len(y), 8))
            writer.write_table(pa.table(dict(zip(names, X.T, strict=True))))
            labels.append(y)
    return np.concatenate(labels)


def cluster_file(folder, *options, most=None):
    """Run the command, kill it after ``most`` seconds; return seconds, those of CPU and GB."""
    command = [sys.executable, "-m", "fastmmc", "cluster", "points.parquet", *options]
    began = time.perf_counter()
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL) as process:
        if most is not None:
            time.sleep(most)
            process.kill()
        _, process.returncode, used = os.wait4(process.pid, 0)
    assert (process.returncode == 0) == (most is None)
    seconds = time.perf_counter() - began
    return seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1e6


def parquet_page(run):
    n = run.pick(PARQUET_ROWS, LEAST_ROWS)
    given = ["-k", str(PARQUET_CLUSTERS), "--out"]
    with TemporaryDirectory() as folder:
        y = write_parquet(Path(folder, "points.parquet"), n)
        runs = {"whole": cluster_file(folder, *given, "whole.npy")}
        resumed = [*given, "resumed.npy", "--state", "state"]
        half = runs["whole"][0] / 2
        runs["killed half-way"] = cluster_file(folder, *resumed, most=half)
        assert not Path(folder, "resumed.npy").exists()
        runs["resumed"] = cluster_file(folder, *resumed)
        whole, again = (np.load(Path(folder, f"{name}.npy")) for name in ("whole", "resumed"))
    nmi = normalized_mutual_info_score(y, whole)
    same = "equal" if np.array_equal(whole, again) else "NOT EQUAL"
    yield (
        f"`fastmmc cluster points.parquet -k {PARQUET_CLUSTERS}` of {n:,} rows and 8 columns, ten "
        f"Gaussians: NMI {nmi:.3f}. The labels of the whole run and of the one that was killed by "
        f"SIGKILL and resumed are {same}."
    )
    yield ["run", "s", "CPU, s", "peak, GB"], ([name, *used] for name, used in runs.items())


PAGES = {
    "grid": ("Time and memory over points, features and clusters", grid_page, ()),
    "growth": ("Growth along points, clusters and features", growth_page, ()),
    "large_shapes": ("Shapes of up to ten million points", shapes_page, ()),
    "dense_or_low_rank": ("Dense or low rank", rank_page, DRAWN_SETS),
    "blocks": ("Points in blocks: from the cost of a row to 10^9 rows", blocks_page, ()),
    "parquet": ("A Parquet file of ten million rows", parquet_page, ()),
}

if __name__ == "__main__":
    common.main(most={"type": int, "help": "points of the largest set"})
