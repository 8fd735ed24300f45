"""Points in blocks: what a pass costs here, and what 10^9 rows on 100 workers would take by that.

See README.md in this folder for the protocol.
"""

import time

import numpy as np
from common import main, table, timed

from fastmmc.data import blocks as in_blocks
from fastmmc.data.blocks import make_blocks, split_rows
from fastmmc.kernels.block_factor import _call, _Features, _square
from fastmmc.kernels.gram import Kernel
from fastmmc.kernels.nystroem import map_to_features
from fastmmc.rls.blocked import Rule, _sum_block

# What is derived: so many rows on so many workers of one core, read at so many bytes a second.
ROWS, WORKERS, FEATURES, READ = 10**9, 100, 50, 200e6
CASES = [(10, 100), (10, 300), (100, 300), (100, 1000)]

# Rows that a pass is measured on, and tasks that a scheduler is.
MEASURED = 2**16
TASKS = 1000

# Looks at all points that are assumed.
PASSES = 30


def seconds_per_row(k, rank, dtype):
    """Return what features, their products and a pass take a row, in one thread."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((MEASURED, FEATURES)).astype(dtype)
    basis = X[:rank].astype(np.float64)
    kernel = Kernel("rbf", sigma=10.0)
    make = _Features(
        kernel, basis, map_to_features(kernel, basis, None, MEASURED)[0], FEATURES, dtype
    )
    in_blocks.alone(_call, make, X[:2000])
    Z, made = seconds(_call, make, X)
    squared = seconds(_square, Z)[1]
    rule = Rule(rng.standard_normal((Z.shape[1], k)), np.zeros(k))
    in_blocks.alone(_sum_block, Z[:1000], rule, 0)
    passed = seconds(_sum_block, Z, rule, 0)[1]
    return [cost / MEASURED for cost in (made, squared, passed)]


def seconds(function, *args):
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


def derive(k, rank, dtype, made, squared, passed, task):
    """Return a row of the table for the whole."""
    n_blocks = len(split_rows(ROWS, rank)) - 1
    share = ROWS / WORKERS
    read = share * FEATURES * 8 / READ
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


def page(run):
    task = seconds_per_task(100)
    measured, whole = [], []
    for k, rank in CASES[:1] if run.quick else CASES:
        for dtype in (np.float64, np.float32):
            costs = seconds_per_row(k, rank, dtype)
            name = np.dtype(dtype).name
            measured.append([k, rank, name, *(f"{1e6 * cost:.2f}" for cost in costs)])
            whole.append(derive(k, rank, dtype, *costs, task))
            print(*whole[-1], sep="   ", flush=True)
    return [
        "# Points in blocks: from the cost of a pass to 10^9 rows",
        run.made(),
        "## Measured\n\n"
        f"Microseconds of CPU time that a row of {FEATURES} columns takes, on a block of "
        f"{MEASURED:,} rows: its features, their products Z^T Z, and a pass (scores, labels, "
        "sums). "
        f"A task takes client and scheduler {1e3 * task:.2f} ms of CPU time "
        f"({TASKS} tasks that do nothing, on two worker processes).",
        table(["k", "rank", "features", "make, us", "products, us", "pass, us"], measured),
        "## Derived, not measured\n\n"
        f"{ROWS:,} rows on {WORKERS} workers of one such core each, which read {READ / 1e6:.0f} MB "
        "a second: rows a worker times the cost of a row, plus tasks one after the other through "
        "one scheduler. Preparation reads the points twice (sample, features). The number of looks "
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


if __name__ == "__main__":
    main(page)
