"""Time and memory of low-rank UMC-RLS up to a million points.

See README.md in this folder for the protocol.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from common import (
    add_common_arguments,
    made_by,
    table,
    write_page,
)
from sklearn.metrics import adjusted_rand_score

import fastmmc
from fastmmc.lowrank import LowRankFactor
from fastmmc.rls import _loops_moves
from fastmmc.rls.batches import ROWS, BatchSearch

# The generated points of the scaling table.
FEATURES, CLUSTERS, RANK = 20, 10, 300
SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)


def generate(n):
    """Return n points of Gaussians that overlap a little, and which Gaussian they are of."""
    rng = np.random.default_rng(0)
    centres = rng.uniform(-5, 5, (CLUSTERS, FEATURES))
    y = rng.integers(CLUSTERS, size=n)
    X = rng.standard_normal((n, FEATURES))
    X *= 3.0
    X += centres[y]
    return X, y


class Products:
    """Counts the rows of Z that a search multiplies, by the shape of the other factor."""

    def __init__(self):
        # Z w, Z W^T with one column a cluster, E^T Z, and Z M with as many columns as Z.
        self.rows = dict.fromkeys(("one", "clusters", "sums", "square"), 0)
        self._watch(BatchSearch, "_score", "one", lambda search, *_: search._plan.n)
        self._watch(BatchSearch, "_cluster_scores", "clusters", lambda search, start: ROWS)
        self._watch(LowRankFactor, "score_blocks", "clusters", lambda factor, W: factor.n)
        self._watch(LowRankFactor, "cluster_sums", "sums", lambda factor, *_: factor.n)
        self._watch(_loops_moves, "build_sums", "sums", lambda Z, *_: len(Z))
        # Once to make features of the sample's own, and once to whiten them.
        self._watch(LowRankFactor, "restrict", "square", lambda factor, rows: 2 * len(rows))

    def _watch(self, owner, name, shape, rows_of):
        called = getattr(owner, name)

        def counting(*args):
            self.rows[shape] += rows_of(*args)
            return called(*args)

        setattr(owner, name, counting)

    def seconds(self, Z):
        """Return how long NumPy takes for as many."""
        one, clusters = np.ones(Z.shape[1], Z.dtype), np.ones((Z.shape[1], CLUSTERS), Z.dtype)
        square, few = np.ones((Z.shape[1], Z.shape[1]), Z.dtype), min(len(Z), 50_000)
        members = np.ones((CLUSTERS, len(Z)), Z.dtype)
        a_row = {
            "one": shortest(lambda: Z @ one) / len(Z),
            "clusters": shortest(lambda: Z @ clusters) / len(Z),
            "sums": shortest(lambda: members @ Z) / len(Z),
            "square": shortest(lambda: Z[:few] @ square) / few,
        }
        return sum(a_row[shape] * rows for shape, rows in self.rows.items())


def shortest(call):
    """Return the least of five run times."""
    seconds = []
    for _ in range(5):
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def measure(n, dtype):
    """Return what one run on n points costs and finds."""
    X, y = generate(n)
    fastmmc.umc_rls(X[:5000], CLUSTERS, rank=100, batches=8, n_init=1, dtype=dtype)  # compiles
    began = time.perf_counter()
    factor = fastmmc.factor(X, rank=RANK, dtype=dtype, random_state=0)
    made = time.perf_counter() - began
    products = Products()
    began = time.perf_counter()
    run = fastmmc.umc_rls(factor, CLUSTERS, n_init=1, n_jobs=2, random_state=0)
    searched = time.perf_counter() - began
    status = Path("/proc/self/status").read_text()
    peak = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    return {
        "n": n,
        "dtype": dtype,
        "factor": made,
        "search": searched,
        "products": products.seconds(factor.Z),
        "passes": products.rows["one"] / n,
        "peak": int(peak) / 2**20,
        "ari": adjusted_rand_score(y, run.labels),
    }


def measure_alone(n, dtype):
    """Measure in a process of its own, so that the peak of memory is that of this run."""
    command = [sys.executable, __file__, "--measure", str(n), dtype]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return json.loads(out.splitlines()[-1])


def scaling_tables(sizes):
    rows, slopes = [], []
    for dtype in ("float64", "float32"):
        found = [measure_alone(n, dtype) for n in sizes]
        for row in found:
            rows.append(
                [
                    f"{row['n']:,}",
                    dtype,
                    f"{row['factor']:.1f}",
                    f"{row['search']:.1f}",
                    f"{row['search'] / row['products']:.2f}",
                    f"{row['passes']:.0f}",
                    f"{row['peak']:.2f}",
                    f"{row['ari']:.3f}",
                ]
            )
            print(*rows[-1], sep="   ", flush=True)
        logs = np.log(sizes)
        whole = np.log([row["factor"] + row["search"] for row in found])
        search = np.log([row["search"] for row in found])
        slopes.append([dtype, *(f"{np.polyfit(logs, v, 1)[0]:.2f}" for v in (search, whole))])
    header = ["n", "Z", "factor, s", "search, s", "search / its products", "passes", "peak, GB"]
    header.append("ARI")
    return table(header, rows), table(["Z", "slope of the search", "slope of the call"], slopes)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_arguments(parser, {}, Path(__file__).with_suffix(".md"))
    parser.add_argument("--measure", nargs=2, metavar=("N", "DTYPE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(int(arguments.measure[0]), arguments.measure[1])))
        return
    started = time.perf_counter()
    sizes, slopes = scaling_tables(SIZES[:2] if arguments.quick else SIZES)
    parts = [
        "# Time and memory up to a million points",
        made_by(arguments.quick, started),
        f"{CLUSTERS} Gaussians in {FEATURES} dimensions, rank {RANK}, one start, two threads.",
        sizes,
        slopes,
    ]
    write_page(arguments.out, parts)


if __name__ == "__main__":
    main()
