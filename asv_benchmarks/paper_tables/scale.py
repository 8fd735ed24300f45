"""Time and memory over points, features and clusters; where low rank and blocks begin to pay.

Pages: ``grid`` (defaults beside k-means and mini-batches), ``dense_or_low_rank``, ``blocks`` (what
a pass costs), ``parquet`` (a file that the command clusters, killed half-way). README.md has the
protocols.
"""

import gc
import os
import subprocess
import sys
import time
from functools import cache
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
from common import (
    Source,
    alone,
    draw,
    load_source,
    main,
    number,
    overlapping,
    peak_memory,
    sources,
    table,
    timed,
)
from joblib import Memory
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

import fastmmc
from fastmmc.core.memory import available_memory
from fastmmc.data import blocks as in_blocks
from fastmmc.data.blocks import make_blocks
from fastmmc.kernels.block_factor import _call, _Features, _square
from fastmmc.kernels.gram import Kernel
from fastmmc.kernels.nystroem import map_to_features
from fastmmc.rls import planning
from fastmmc.rls.blocked import Rule, _sum_block

# ----------------------------------------------------------------------------------------- the grid

GRID_SIZES = (1_000, 10_000, 100_000, 1_000_000)
GRID_FEATURES = (16, 784)
GRID_CLUSTERS = (2, 10, 100)

GRID_METHODS = {
    "umc_rls": lambda X, k: fastmmc.umc_rls(X, k, random_state=0),
    "KMeans": lambda X, k: KMeans(k, n_init=10, random_state=0).fit(X),
    "MiniBatchKMeans": lambda X, k: MiniBatchKMeans(k, n_init=3, random_state=0).fit(X),
}

# Copies of the points that a method holds, with those given, and the numbers that ours holds beside
# them: Z of rank 1,000, or less for more points.
COPIES = {"umc_rls": 1, "KMeans": 3, "MiniBatchKMeans": 1}
GRID_RANK, MOST_NUMBERS = 1_000, 300_000_000


def measure_grid(n, d, k, names):
    """Return CPU seconds and the peak of memory in bytes of each method, in this process."""
    X, found = overlapping(n, d, k), {}
    for name in names:
        GRID_METHODS[name](X[: 4 * k + 300], k)  # loads compiled code
        gc.collect()
        Path("/proc/self/clear_refs").write_text("5")  # forgets the peak
        began = time.process_time()
        GRID_METHODS[name](X, k)
        found[name] = time.process_time() - began, peak_memory()
    return found


def measure_cell(n, d, k, names):
    """Return what :func:`measure_grid` does in a process of its own."""
    return alone(measure_grid, n, d, k, names)


def reason_to_skip(name, n, d, expected, limit):
    """Return why a method is left out, or None.

    Ours is never too slow: its time grows less than n does, so a tenth of the points tells nothing.
    """
    if name != "umc_rls" and expected > limit:
        return f"about {expected:.0f} s"
    needed = 8 * (COPIES[name] * n * d + (name == "umc_rls") * min(GRID_RANK * n, MOST_NUMBERS))
    free = available_memory()
    if free is not None and needed > free:
        return f"{needed / 2**30:.0f} GiB, of which {free / 2**30:.0f} are free"
    return None


def measure_all(largest, limit, keep):
    """Yield n, d, k, and what each method took, or why it was left out.

    What was measured is kept in the folder ``keep``, if there is one, and taken from there.
    """
    kept = Memory(keep, verbose=0).cache(measure_cell)
    for d in GRID_FEATURES:
        for k in GRID_CLUSTERS:
            expected = dict.fromkeys(GRID_METHODS, 0.0)
            for n in (n for n in GRID_SIZES if n <= largest):
                why = {m: reason_to_skip(m, n, d, expected[m], limit) for m in GRID_METHODS}
                found = kept(n, d, k, [m for m in GRID_METHODS if why[m] is None])
                for name in GRID_METHODS:
                    yield n, d, k, name, found.get(name, why[name])
                    # Ten times the points take about ten times as long.
                    expected[name] = 10 * (found[name][0] if name in found else expected[name])


def grid_page(run):
    largest = run.pick(run.largest, GRID_SIZES[0])
    measured = {tuple(at): f for *at, f in measure_all(largest, run.seconds, run.keep)}
    taken = {at: found for at, found in measured.items() if not isinstance(found, str)}
    rows = []
    for n, d, k in dict.fromkeys(at[:3] for at in measured):
        found = [taken.get((n, d, k, method), (None, None)) for method in GRID_METHODS]
        peaks = ("-" if peak is None else f"{peak / 2**20:.0f}" for _, peak in found)
        rows.append([f"{n:,}", d, k, *(seconds for seconds, _ in found), *peaks])
    draw_grid(taken, run)
    yield (
        f"Up to {largest:,} points. Seconds of the processor, all threads together, from points to "
        "labels; peak of the process's memory. `umc_rls(X, k)` with defaults, "
        "`KMeans(k, n_init=10)`, `MiniBatchKMeans(k)`."
    )
    columns = (f"{method}, {unit}" for unit in ("s", "MB") for method in GRID_METHODS)
    yield table(["n", "d", "k", *columns], rows)
    left_out = [
        f"{method} at {n:,} x {d}, k = {k}: {why}"
        for (n, d, k, method), why in measured.items()
        if isinstance(why, str)
    ]
    if left_out:
        yield (
            f"-: left out, as a tenth of the points took more than {run.seconds / 10:g} s (these "
            f"two peers only), or for want of memory: {'; '.join(left_out)}."
        )
    yield f"![Seconds and memory against the number of points]({run.picture_name('times')})"


def draw_grid(taken, run):
    """Draw seconds and memory against n: a column for each d, a line for each method and k."""
    styles = dict(zip(GRID_CLUSTERS, (":", "--", "-"), strict=True))
    colors = dict(zip(GRID_METHODS, ("C0", "C1", "C2"), strict=True))
    size = {"figsize": (9, 7), "sharex": True, "sharey": "row"}
    with run.picture("times", 2, len(GRID_FEATURES), **size) as (_, axes):
        lines = product(GRID_METHODS, GRID_CLUSTERS, enumerate(GRID_FEATURES), (0, 1))
        for method, k, (column, d), figure in lines:
            sizes = [n for n in GRID_SIZES if (n, d, k, method) in taken]
            values = [taken[n, d, k, method][figure] / (1, 2**20)[figure] for n in sizes]
            style = {"color": colors[method], "linestyle": styles[k], "marker": "."}
            axes[figure, column].plot(sizes, values, label=f"{method}, k = {k}", **style)
        for column, d in enumerate(GRID_FEATURES):
            axes[0, column].set(title=f"d = {d}", xscale="log", yscale="log")
            axes[1, column].set(xlabel="points", yscale="log")
        axes[0, 0].set_ylabel("seconds of the processor")
        axes[1, 0].set_ylabel("peak memory, MB")
        axes[1, -1].legend(fontsize="x-small")


# -------------------------------------------------------------------------------- dense or low rank

DRAWN_SETS = sources("usps", "letter", "pendigits") | {
    "Gaussians": Source("Gaussians", draw=10_000)
}
DRAWN_SIZES = 2_000, 3_000, 5_000, 7_000, 10_000

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


def sample(name, n):
    """Return that many points of a set, all if it has fewer, with the labels and their number."""
    source = DRAWN_SETS[name]
    X, y = gaussians(source.draw) if name == "Gaussians" else load_source(source)
    X, y = draw(X, y, min(n, len(y)), 0)
    return X, y, len(np.unique(y))


def cluster_at(X, k, way):
    rank, search = WAYS[way]
    # Cells at every number of points.
    with patch.object(planning, "DENSE_CHOICE", 0):
        return fastmmc.umc_rls(
            X, k, sizes="equal", balance=BALANCE, rank=rank, random_state=0, **search
        )


@cache
def compile_loops(way):
    """Cluster a few points first: seconds are to be without compilation."""
    cluster_at(gaussians(2_100)[0], 10, way)


def judge_rank(name, n, way):
    """Return ARI, objective on the dense hat matrix, and seconds of processor time."""
    compile_loops(way)
    X, y, k = sample(name, n)
    result, seconds = timed(cluster_at, X, k, way, clock=time.process_time)
    R = fastmmc.factor(X, sigma=result.params["sigma"]).R
    E = (result.labels[:, None] == np.arange(k)).astype(float)
    fits = R @ E
    objective = k * len(y) + (4 - k) * fits.sum() - 4 * np.sum(E * fits)
    return adjusted_rand_score(y, result.labels), objective, seconds


def rank_page(run):
    sizes = [n for n in run.pick(DRAWN_SIZES, DRAWN_SIZES[:2]) if n <= run.most]
    found = run.each(judge_rank, run.sets, sizes, WAYS)
    rows = []
    for name, n in product(run.sets, sizes):
        runs = [found[name, n, way] for way in WAYS]
        best = min(objective for _, objective, _ in runs)
        cells = (
            f"{number(ari, 3)} / {number(100 * (objective / best - 1), 1)} / {number(seconds, 1)}"
            for ari, objective, seconds in runs
        )
        rows.append([name, n, *cells])
    yield (
        'Labels of about equal sizes (`sizes="equal"`, `balance=0.4`) by four ways: adjusted Rand '
        "index / how much higher the objective on the dense hat matrix is than that of the best "
        "way, in percent / seconds of processor time, hat matrix included. One BLAS thread."
    )
    yield table(["set", "n", *WAYS], rows)


# ------------------------------------------------------------------------------------------- blocks

# What is derived: the time of this number of rows on this number of workers of one core.
ALL_ROWS, WORKERS, BLOCK_FEATURES = 10**9, 100, 50
CASES = [(10, 100), (10, 300), (100, 300), (100, 1000)]

# Rows that a pass is measured on, and tasks that a scheduler is.
MEASURED_ROWS = 2**16
TASKS = 1000

# Looks at all points that are assumed.
PASSES = 30


def seconds_per_row(k, rank, dtype):
    """Return what features, their products and a pass take a row, in one thread."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((MEASURED_ROWS, BLOCK_FEATURES)).astype(dtype)
    basis = X[:rank].astype(np.float64)
    kernel = Kernel("rbf", sigma=10.0)
    make = _Features(
        kernel, basis, map_to_features(kernel, basis, None, MEASURED_ROWS)[0], BLOCK_FEATURES, dtype
    )
    in_blocks.alone(_call, make, X[:2000])
    Z, made = task_seconds(_call, make, X)
    squared = task_seconds(_square, Z)[1]
    rule = Rule(rng.standard_normal((Z.shape[1], k)), np.zeros(k))
    in_blocks.alone(_sum_block, Z[:1000], rule, 0)
    passed = task_seconds(_sum_block, Z, rule, 0)[1]
    return [cost / MEASURED_ROWS for cost in (made, squared, passed)]


def task_seconds(function, *args):
    """Return what a task returns, and its CPU seconds, which other processes hardly change."""
    return timed(in_blocks.alone, function, *args, times=3, clock=time.process_time)


def _nothing(rows, rank):
    return (np.zeros((10, rank)),)


def seconds_per_task(rank):
    """Return what a task that does nothing takes client and scheduler, one process here."""
    import dask.array as da
    from dask.distributed import Client

    X = da.zeros((TASKS * 512, 1), chunks=(512, 1))
    with Client(n_workers=2, threads_per_worker=1, dashboard_address=":0"):
        points = make_blocks(X, 2**40)

        def run():
            return points.total([points.task(_nothing, 0, rank) for _ in range(TASKS)])

        run()
        return timed(run, times=3, clock=time.process_time)[1] / TASKS


def blocks_page(run):
    task = seconds_per_task(100)
    cases = product(run.pick(CASES, CASES[:1]), (np.float64, np.float32))
    found = {(*case, dtype): seconds_per_row(*case, dtype) for case, dtype in cases}
    yield (
        f"Microseconds of CPU time that a row of {BLOCK_FEATURES} columns takes, on a block of "
        f"{MEASURED_ROWS:,} rows: its features, their products Z^T Z, and a pass (scores, labels, "
        f"sums). A task takes client and scheduler {1e3 * task:.2f} ms of CPU time "
        f"({TASKS} tasks that do nothing, on two worker processes)."
    )
    rows = ([*at[:2], np.dtype(at[2]).name, *np.multiply(1e6, c)] for at, c in found.items())
    yield table(["k", "rank", "features", "make, us", "products, us", "pass, us"], rows)
    per_row = {at: c for at, c in found.items() if at[2] is np.float32}
    minutes = (ALL_ROWS / WORKERS * (m + s + PASSES * p) / 60 for m, s, p in per_row.values())
    shown = (
        f"{m:.0f} min (k = {at[0]}, rank {at[1]})" for at, m in zip(per_row, minutes, strict=True)
    )
    yield (
        f"By these figures {ALL_ROWS:,} rows on {WORKERS} such cores take {', '.join(shown)} in "
        f"single precision: features and products once, and {PASSES} passes. Reading, tasks, slow "
        "or lost workers and the search on the sample come on top."
    )


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
    yield table(["run", "s", "CPU, s", "peak, GB"], ([name, *told] for name, told in runs.items()))


PAGES = {
    "grid": ("Time and memory over points, features and clusters", grid_page, {}),
    "dense_or_low_rank": ("Dense or low rank", rank_page, DRAWN_SETS),
    "blocks": ("Points in blocks: from the cost of a pass to 10^9 rows", blocks_page, {}),
    "parquet": ("A Parquet file of ten million rows", parquet_page, {}),
}

if __name__ == "__main__":
    main(
        PAGES,
        largest={"type": int, "default": GRID_SIZES[-1], "help": "points of the grid"},
        seconds={"type": float, "default": 60.0, "help": "that a peer may take, about"},
        most={"type": int, "default": DRAWN_SIZES[-1], "help": "points at either rank"},
    )
