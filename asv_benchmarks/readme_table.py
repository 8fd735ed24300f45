"""Measure the tables of docs/measured.md and the short one of the README, between their markers.

    python asv_benchmarks/readme_table.py            # prints the tables
    python asv_benchmarks/readme_table.py --write    # and writes them and a picture

Every speed figure is a ratio of two things timed in turn in one process. Takes some
minutes; the memory figure needs Linux.
"""

import argparse
import os
import platform
import subprocess
import sys
import time
from datetime import date
from functools import partial
from itertools import chain, product
from pathlib import Path

import numpy as np
from benchmarks import best_of, calls, latency, moves, two_classes
from sklearn.cluster import AgglomerativeClustering
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import scale

import fastmmc

ROOT = Path(__file__).parent.parent
sys.path.append(str(Path(__file__).parent / "paper_tables"))
import common  # noqa: E402
from common import load, number, table  # noqa: E402

SEEDS = range(10)
RUN_SIZES = (30, 60, 120, 250, 500, 1000, 2000, 4000)
MARKERS = "<!-- tables -->", "<!-- end of tables -->"

CLUSTERERS = {
    "`umc_rls(X, k)`": lambda X, k, seed: fastmmc.umc_rls(X, k, random_state=seed).labels,
    "`cluster(X, k)`": lambda X, k, seed: fastmmc.cluster(X, k, random_state=seed).labels,
    "k-means (10 starts)": common.k_means,
    "Gaussian mixture (full)": partial(common.mixture, reg_covar=1e-3),
    "spectral (10 neighbours)": common.spectral,
    "Ward": lambda X, k, seed: AgglomerativeClustering(k).fit_predict(X),
}

SETS = ("digits", "iris", "wine, standardised", "breast cancer, standardised", "moons")


def quality_rows():
    """Yield set, method, median, least and greatest ARI over the seeds, and median seconds."""
    for name, (method, labels_of) in product(SETS, CLUSTERERS.items()):
        X, y = load(name.partition(",")[0].replace(" ", "_"))
        X = scale(X) if "standardised" in name else X / 16 if name == "digits" else X
        runs = [common.timed(labels_of, X, np.unique(y).size, seed) for seed in SEEDS]
        scores = [adjusted_rand_score(y, labels) for labels, _ in runs]
        seconds = np.median([seconds for _, seconds in runs])
        yield name, method, np.median(scores), min(scores), max(scores), seconds


MOVE, HAT = (moves.OneMove, (2000,)), (moves.HatMatrix, (4000,))
PEERS = calls.OverPeers, ("FastEvoMMC / k-means",)

# {(what is timed, its benchmark and parameters): {what it is compared with: method}}. The README
# has the first of each group.
SPEEDS = (
    {
        ("one more start of the paper's search, n = 2,000", *MOVE): {
            "an eigendecomposition": "track_start_over_eigh",
        },
        ("one claim of shaking, n = 2,000", *MOVE): {
            "the same claim in vectorised NumPy": "track_numpy_twin",
            "the risk in full": "track_full_risk",
        },
        **{
            (f"one claim, n = {n}, {dtype}", moves.OneClaim, (n, dtype)): {
                "adding and subtracting its row": "track_over_pass",
            }
            for n, dtype in product((2000, 6000, 12000), ("float64", "float32"))
        },
        ("one refused child of `evo_mmc`, n = 2000, drawing included", moves.OneChild, ()): {
            "Theorem 1 of the paper, compiled": "track_theorem_1",
            "`y @ R @ y`": "track_direct",
            "one fit of LIBSVM": "track_libsvm",
        },
    },
    {
        ('`umc_rls(X, 10, method="shaking", n_init=1)`, n = 4,000', *HAT): {
            "LAPACK for the same factor and inverse": "track_call_over_linear_algebra",
        },
        ("points to hat matrix, n = 4,000", *HAT): {"an eigendecomposition": "track_over_eigh"},
    },
    {
        ("`fast_evo_mmc(X, rank=140)`, 14,000 × 784, ten starts", *PEERS): {
            "`KMeans(2, n_init=10)`": "track_over_peer",
        },
    },
    {
        (f"`{name}.partial_fit`, d = 16, k = 10, chunks of 1,024", PEERS[0], (pair,)): {
            "`MiniBatchKMeans.partial_fit`": "track_over_peer",
        }
        for name, pair in calls.STREAM_PAIRS.items()
    },
)


def measure(group):
    """Yield what is compared, and how many times as fast ours is."""
    for (this, benchmark, params), others in group.items():
        instance = benchmark()
        instance.setup(*params)
        for that, method in others.items():
            yield this, that, 1 / getattr(instance, method)(*params)


def peak_of_call(n=5000):
    """Return how much a call adds to the peak of this process, in n x n matrices."""
    dense = {"method": "shaking", "rank": None, "n_init": 2}
    X = np.random.default_rng(0).standard_normal((n, 10))
    fastmmc.umc_rls(X[:60], 10, **dense)
    before = common.peak_memory()
    fastmmc.umc_rls(X, 10, **dense)
    return (common.peak_memory() - before) / (8 * n**2)


def waiting_rows():
    """Yield what a user waits for and holds: import, first call, memory."""
    waiting = latency.Waiting()
    waiting.setup()  # fills the cache
    waits = {
        "import numba and scikit-learn": ("import numba, sklearn.cluster", ""),
        "import fastmmc after them": waiting.timeraw_import(),
        "first call of `umc_rls` ever (compiles)": waiting.timeraw_first_call_compiles(),
        "first call in a new process (from the cache)": waiting.timeraw_first_call_from_the_cache(),
    }
    for what, (statement, before) in waits.items():
        code = (
            f"{before}\nfrom time import time\nbegan = time()\n{statement}\nprint(time() - began)"
        )
        command = [sys.executable, "-c", code]
        seconds = [float(subprocess.check_output(command)) for _ in range(3)]
        yield what, f"{np.median(seconds):.2f} s"
    yield "peak memory at n = 5000, in n × n matrices", f"{common.alone(peak_of_call):.2f}"


def compare(times):
    """Return a speed in words."""
    factor, word = (times, "faster") if times >= 1 else (1 / times, "slower")
    return f"{factor:,.{0 if factor >= 20 else 1}f} × {word} than"


def short_table(quality):
    """Return the medians, a line a set, the highest ones in bold, and the seconds on the first."""
    methods = list(dict.fromkeys(method for _, method, *_ in quality))
    names = list(dict.fromkeys(name for name, *_ in quality))
    rows = []
    for name in names:
        scores = [f"{median:.2f}" for of, _, median, *_ in quality if of == name]
        rows.append([name, *(f"**{s}**" if s == max(scores) else s for s in scores)])
    seconds = (seconds for of, *_, seconds in quality if of == names[0])
    return table(["", *methods], [*rows, [f"seconds on {names[0]}", *seconds]])


def readme_text(quality, speeds):
    """Return what the README says: a table, and a sentence for the first speed of each kind."""
    lines = [f"- {rows[0][0]}: {compare(rows[0][2])} {rows[0][1]}" for rows in speeds]
    when = f"Measured {date.today()} on {os.cpu_count()} cores ({platform.machine()})."
    return "\n\n".join([short_table(quality), "\n".join(lines), when])


def page_text(quality, speeds, waiting, began):
    """Return what the page says: every figure, and what it was measured with."""
    scores = [[*row[:2], *(number(x, 3) for x in row[2:5]), row[5]] for row in quality]
    header = ["data", "method", "ARI, median of 10 seeds", "lowest", "highest", "seconds"]
    compared = [[this, compare(times), other] for this, other, times in chain(*speeds)]
    parts = ["\n## Quality", table(header, scores)]
    parts += ["## Speed", table(["this", "is", "that"], compared)]
    parts += ["## Waiting and memory", table(["what", "how much"], waiting)]
    made = common.made("asv_benchmarks/readme_table.py", began, common.commit())
    return "\n\n".join([*parts, made])


def write_between_markers(path, text):
    """Put a text into a page, in place of what is between its markers."""
    begin, end = MARKERS
    before, _, rest = path.read_text(encoding="utf-8").partition(begin)
    path.write_text(f"{before}{begin}\n{text}\n{end}{rest.partition(end)[2]}", encoding="utf-8")


def draw_run_times():
    """Save the figure of the EvoMMC paper: seconds against n, one line a way to the fitness."""
    lines = {}
    for method, most in calls.RUNS.items():
        sizes = [n for n in RUN_SIZES if n <= most]
        points = [two_classes(n)[0] for n in sizes]
        calls.whole_run(method, points[0])  # compiles
        seconds = [best_of(2, partial(calls.whole_run, method, X))[0] for X in points]
        form = "-o" if method in calls.OURS else "--s"
        lines[method.replace("n^2", "n²")] = form, (sizes, seconds)
    rows = {"seconds, points to labels": {"xscale": "log", "yscale": "log"}}
    common.Run(out=ROOT / "notebooks" / "evo.md").draw("run_times", "points", {"": lines}, rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the tables and a picture")
    args = parser.parse_args()
    began, quality = time.perf_counter(), list(quality_rows())
    speeds = [list(measure(group)) for group in SPEEDS]
    waiting = list(waiting_rows())
    tables = {
        ROOT / "README.md": readme_text(quality, speeds),
        ROOT / "docs" / "measured.md": page_text(quality, speeds, waiting, began),
    }
    for path, text in tables.items():
        print(text, end="\n\n")
        if args.write:
            write_between_markers(path, text)
    if args.write:
        draw_run_times()


if __name__ == "__main__":
    main()
