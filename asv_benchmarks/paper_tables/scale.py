"""Time and memory over points, features and clusters; where low rank and blocks begin to pay.

Pages: ``grid`` (defaults beside k-means and mini-batches), ``scaling`` (low rank up to a million
points), ``dense_or_low_rank``, ``blocks`` (what a pass costs). README.md has the protocols.
"""

import gc
import time
from functools import cache, partial
from pathlib import Path
from unittest.mock import patch

import numpy as np
from common import (
    Source,
    alone,
    draw,
    load_source,
    main,
    number,
    peak_memory,
    sources,
    table,
    timed,
)
from joblib import Memory
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.metrics import adjusted_rand_score

import fastmmc
from fastmmc.core.memory import available_memory
from fastmmc.data import blocks as in_blocks
from fastmmc.data.blocks import make_blocks, split_rows
from fastmmc.kernels.block_factor import _call, _Features, _square
from fastmmc.kernels.factors import LowRankFactor
from fastmmc.kernels.gram import Kernel
from fastmmc.kernels.nystroem import map_to_features
from fastmmc.rls import planning
from fastmmc.rls.blocked import Rule, _sum_block
from fastmmc.rls.engine import _loops_moves
from fastmmc.rls.multilevel import ROWS, BoundedSearch

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

# Points that are moved to their centres at a time.
ROWS_AT_A_TIME = 10_000


def overlapping(n, d, k):
    """Return n points of k Gaussians that overlap a little, whatever d is."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    centers = 8 * rng.standard_normal((k, d)) / np.sqrt(d)
    y = rng.integers(k, size=n)
    for start in range(0, n, ROWS_AT_A_TIME):
        X[start : start + ROWS_AT_A_TIME] += centers[y[start : start + ROWS_AT_A_TIME]]
    return X


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
    largest = GRID_SIZES[0] if run.quick else run.largest
    measured = list(measure_all(largest, run.seconds, run.keep))
    rows, taken, left_out = [], {}, []
    for n, d, k in dict.fromkeys(one[:3] for one in measured):
        cell = {name: found for *at, name, found in measured if at == [n, d, k]}
        done = {m: found for m, found in cell.items() if not isinstance(found, str)}
        seconds = [f"{done[m][0]:.2f}" if m in done else "-" for m in GRID_METHODS]
        peaks = [f"{done[m][1] / 2**20:.0f}" if m in done else "-" for m in GRID_METHODS]
        rows.append([f"{n:,}", d, k, *seconds, *peaks])
        taken |= {(n, d, k, m): found for m, found in done.items()}
        left_out += [
            f"{m} at {n:,} x {d}, k = {k}: {cell[m]}" for m in GRID_METHODS if m not in done
        ]
    with run.picture(
        "times", 2, len(GRID_FEATURES), figsize=(9, 7), sharex=True, sharey="row"
    ) as drawn:
        draw_grid(taken, drawn[1])
    header = [
        "n",
        "d",
        "k",
        *(f"{m}, s" for m in GRID_METHODS),
        *(f"{m}, MB" for m in GRID_METHODS),
    ]
    parts = [
        "# Time and memory over points, features and clusters",
        run.made(),
        f"Up to {largest:,} points. Seconds of the processor, all threads together, from points to "
        "labels; peak of the process's memory. `umc_rls(X, k)` with defaults, "
        "`KMeans(k, n_init=10)`, `MiniBatchKMeans(k)`.",
        table(header, rows),
    ]
    if left_out:
        parts.append(
            f"-: left out, as a tenth of the points took more than {run.seconds / 10:g} s (these "
            f"two peers only), or for want of memory: {'; '.join(left_out)}."
        )
    picture = f"![Seconds and memory against the number of points]({run.picture_name('times')})"
    return [*parts, picture]


def draw_grid(taken, axes):
    """Draw seconds and memory against n: a column for each d, a line for each method and k."""
    styles = dict(zip(GRID_CLUSTERS, (":", "--", "-"), strict=True))
    colors = dict(zip(GRID_METHODS, ("C0", "C1", "C2"), strict=True))
    for column, d in enumerate(GRID_FEATURES):
        for name, color in colors.items():
            for k, style in styles.items():
                of = partial(line_of, taken, d, k, name)
                axes[0, column].plot(*of(0, 1.0), style, color=color, marker=".")
                label = f"{name}, k = {k}"
                axes[1, column].plot(*of(1, 2**-20), style, color=color, marker=".", label=label)
        axes[0, column].set(title=f"d = {d}", xscale="log", yscale="log")
        axes[1, column].set(xlabel="points", yscale="log")
    axes[0, 0].set_ylabel("seconds of the processor")
    axes[1, 0].set_ylabel("peak memory, MB")
    axes[1, -1].legend(fontsize="x-small")


def line_of(taken, d, k, name, figure, scale):
    """Return the sizes, and the figures at them."""
    sizes = [n for n in GRID_SIZES if (n, d, k, name) in taken]
    return sizes, [taken[n, d, k, name][figure] * scale for n in sizes]


# --------------------------------------------------------------------------------- a million points

# The generated points of the scaling table.
LONG_FEATURES, LONG_CLUSTERS, LONG_RANK = 20, 10, 300
LONG_SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)


def gaussians_of(n):
    """Return n points of Gaussians that overlap a little, and which Gaussian they are of."""
    rng = np.random.default_rng(0)
    centres = rng.uniform(-5, 5, (LONG_CLUSTERS, LONG_FEATURES))
    y = rng.integers(LONG_CLUSTERS, size=n)
    X = rng.standard_normal((n, LONG_FEATURES))
    X *= 3.0
    X += centres[y]
    return X, y


class Products:
    """Counts the rows of Z that a search multiplies, by the shape of the other factor."""

    def __init__(self):
        # Z W^T with one column a cluster, E^T Z, and Z M with as many columns as Z.
        self.rows = dict.fromkeys(("clusters", "sums", "square"), 0)
        self._watch(BoundedSearch, "_cluster_scores", "clusters", lambda search, start: ROWS)
        self._watch(LowRankFactor, "_score_blocks", "clusters", lambda factor, W: factor.n)
        self._watch(LowRankFactor, "_cluster_sums", "sums", lambda factor, *_: factor.n)
        self._watch(_loops_moves, "build_sums", "sums", lambda Z, *_: len(Z))
        # Once to make features of the sample's own, and once to whiten them.
        self._watch(LowRankFactor, "_restrict", "square", lambda factor, rows: 2 * len(rows))

    def _watch(self, owner, name, shape, rows_of):
        called = getattr(owner, name)

        def counting(*args):
            self.rows[shape] += rows_of(*args)
            return called(*args)

        setattr(owner, name, counting)

    def seconds(self, Z):
        """Return how long NumPy takes for as many."""
        clusters = np.ones((Z.shape[1], LONG_CLUSTERS), Z.dtype)
        square, few = np.ones((Z.shape[1], Z.shape[1]), Z.dtype), min(len(Z), 50_000)
        members = np.ones((LONG_CLUSTERS, len(Z)), Z.dtype)
        a_row = {
            "clusters": shortest(np.matmul, Z, clusters) / len(Z),
            "sums": shortest(np.matmul, members, Z) / len(Z),
            "square": shortest(np.matmul, Z[:few], square) / few,
        }
        return sum(a_row[shape] * rows for shape, rows in self.rows.items())


def shortest(function, *args):
    return timed(function, *args, times=5)[1]


def measure_long(n, dtype):
    """Return what one run on n points costs and finds."""
    X, y = gaussians_of(n)
    fastmmc.umc_rls(
        X[:5000], LONG_CLUSTERS, method="shaking", rank=100, n_init=1, dtype=dtype
    )  # compiles
    factor, made = timed(lambda: fastmmc.factor(X, rank=LONG_RANK, dtype=dtype, random_state=0))
    products = Products()
    run, searched = timed(
        lambda: fastmmc.umc_rls(
            factor, LONG_CLUSTERS, method="shaking", n_init=1, n_jobs=2, random_state=0
        )
    )
    peak = peak_memory()
    return {
        "factor": made,
        "search": searched,
        "products": products.seconds(factor.Z),
        "passes": products.rows["clusters"] / n,
        "peak": peak / 2**30,
        "ari": adjusted_rand_score(y, run.labels),
    }


def scaling_tables(sizes):
    rows, slopes = [], []
    for dtype in ("float64", "float32"):
        found = [alone(measure_long, n, dtype) for n in sizes]
        for n, row in zip(sizes, found, strict=True):
            row = dict(row, share=row["search"] / row["products"])
            formats = {"factor": 1, "search": 1, "share": 2, "passes": 0, "peak": 2, "ari": 3}
            rows.append([f"{n:,}", dtype, *(f"{row[c]:.{d}f}" for c, d in formats.items())])
            print(*rows[-1], sep="   ", flush=True)
        search = np.array([row["search"] for row in found])
        whole = search + [row["factor"] for row in found]
        fits = (np.polyfit(np.log(sizes), np.log(seconds), 1) for seconds in (search, whole))
        slopes.append([dtype, *(f"{slope:.2f}" for slope, _ in fits)])
    header = ["n", "Z", "factor, s", "search, s", "search / its products", "passes", "peak, GB"]
    header.append("ARI")
    return table(header, rows), table(["Z", "slope of the search", "slope of the call"], slopes)


def scaling_page(run):
    sizes, slopes = scaling_tables(LONG_SIZES[:2] if run.quick else LONG_SIZES)
    return [
        "# Time and memory up to a million points",
        run.made(),
        f"{LONG_CLUSTERS} Gaussians in {LONG_FEATURES} dimensions, rank {LONG_RANK}, one start, "
        "two threads.",
        sizes,
        slopes,
    ]


# -------------------------------------------------------------------------------- dense or low rank

DRAWN_SETS = sources("usps", "letter", "pendigits") | {
    "Gaussians": Source("Gaussians", draw=10_000)
}
DRAWN_SIZES = 2_000, 3_000, 5_000, 7_000, 10_000
QUICK_SIZES = DRAWN_SIZES[:2]

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


def load_drawn(source):
    """Return all points and labels of a set."""
    return gaussians(source.draw) if source.name == "Gaussians" else load_source(source)


def sample(source, n):
    """Return that many points of a set, all if it has fewer, with the labels and their number."""
    X, y = load_drawn(source)
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


def judge_rank(source, n, way):
    """Return ARI, objective on the dense hat matrix, and seconds of processor time."""
    compile_loops(way)
    X, y, k = sample(source, n)
    result, seconds = timed(cluster_at, X, k, way, clock=time.process_time)
    R = fastmmc.factor(X, sigma=result.params["sigma"]).R
    E = (result.labels[:, None] == np.arange(k)).astype(float)
    fits = R @ E
    objective = k * len(y) + (4 - k) * fits.sum() - 4 * np.sum(E * fits)
    return adjusted_rand_score(y, result.labels), objective, seconds


def rank_page(run):
    sizes = QUICK_SIZES if run.quick else DRAWN_SIZES
    chosen = {name: run.sources[name] for name in run.sets}
    tasks = {
        (name, n, way): (judge_rank, source, n, way)
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


# ------------------------------------------------------------------------------------------- blocks

# What is derived: so many rows on so many workers of one core, read at so many bytes a second.
ALL_ROWS, WORKERS, BLOCK_FEATURES, READ = 10**9, 100, 50, 200e6
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


def derive_all(k, rank, dtype, made, squared, passed, task):
    """Return a row of the table for the whole."""
    n_blocks = len(split_rows(ALL_ROWS, rank)) - 1
    share = ALL_ROWS / WORKERS
    read = share * BLOCK_FEATURES * 8 / READ
    first = share * (made + squared) + 2 * read + 3 * n_blocks * task
    one = share * passed + n_blocks * task
    return [
        k,
        rank,
        np.dtype(dtype).name,
        f"{share * rank * np.dtype(dtype).itemsize / 2**30:.1f}",
        f"{n_blocks:,}",
        f"{first / 60:.1f}",
        f"{one:.1f}",
        f"{one * PASSES / 60:.1f}",
        f"{(first + PASSES * one) / 60:.0f}",
        f"{n_blocks * k * rank * 8 / 2**20:,.0f}",
    ]


def blocks_page(run):
    task = seconds_per_task(100)
    rows_measured, whole = [], []
    for k, rank in CASES[:1] if run.quick else CASES:
        for dtype in (np.float64, np.float32):
            costs = seconds_per_row(k, rank, dtype)
            name = np.dtype(dtype).name
            rows_measured.append([k, rank, name, *(f"{1e6 * cost:.2f}" for cost in costs)])
            whole.append(derive_all(k, rank, dtype, *costs, task))
            print(*whole[-1], sep="   ", flush=True)
    return [
        "# Points in blocks: from the cost of a pass to 10^9 rows",
        run.made(),
        "## Measured\n\n"
        f"Microseconds of CPU time that a row of {BLOCK_FEATURES} columns takes, on a block of "
        f"{MEASURED_ROWS:,} rows: its features, their products Z^T Z, and a pass (scores, labels, "
        "sums). "
        f"A task takes client and scheduler {1e3 * task:.2f} ms of CPU time "
        f"({TASKS} tasks that do nothing, on two worker processes).",
        table(["k", "rank", "features", "make, us", "products, us", "pass, us"], rows_measured),
        "## Derived, not measured\n\n"
        f"{ALL_ROWS:,} rows on {WORKERS} workers of one such core each, which read "
        f"{READ / 1e6:.0f} MB a second: rows a worker times the cost of a row, plus tasks one "
        "after the other through one scheduler. Preparation reads the points twice (sample, "
        "features). The number of looks "
        f"at all points depends on the points, see README.md; {PASSES} are assumed. The search on "
        "the sample, slow or lost workers, and a busy network are not in it.",
        table(
            [
                "k",
                "rank",
                "features",
                "GiB a worker",
                "blocks",
                "preparation, min",
                "pass, s",
                f"{PASSES} passes, min",
                "all, min",
                "MiB of sums a pass",
            ],
            whole,
        ),
    ]


PAGES = {
    "grid": (grid_page, {}),
    "scaling": (scaling_page, {}),
    "dense_or_low_rank": (rank_page, DRAWN_SETS),
    "blocks": (blocks_page, {}),
}

if __name__ == "__main__":
    main(
        PAGES,
        [
            ("--largest", {"type": int, "default": GRID_SIZES[-1], "help": "points of the grid"}),
            ("--seconds", {"type": float, "default": 60.0, "help": "that a peer may take, about"}),
            ("--most", {"type": int, "default": DRAWN_SIZES[-1], "help": "points at either rank"}),
        ],
    )
