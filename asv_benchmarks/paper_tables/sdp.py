"""MMC and GMMC on subsets of digits: their columns in Table 3 of the iterSVR paper.

K. Zhang, I. W. Tsang, J. T. Kwok, Maximum Margin Clustering Made Practical, ICML 2007. See
README.md in this folder for the protocol.
"""

import time
from functools import cache

import numpy as np
from common import (
    clustering_error,
    load_pair,
    main,
    number,
    reached,
    sources,
    spread,
    table,
    timed,
)
from sklearn.cluster import KMeans

import fastmmc
from fastmmc.kernels.gram import median_width

SETS = sources("digits 3-8", "digits 1-7", "digits 2-7", "digits 8-9")
A_CLASS = 50
SUBSETS = 5

# Widths of the Gaussian in median distances; 1 is the default.
WIDTHS = (0.5, 1.0, 2.0)

# The first one is the default.
ROUNDINGS = ("dual", "leading", "eigenvector")

PROGRAMS = {
    "MMC": (fastmmc.sdp_mmc, {}),
    "MMC, C = 100": (fastmmc.sdp_mmc, {"C": 100.0}),
    "GMMC": (fastmmc.gmmc, {"rounding": ROUNDINGS[0]}),
}
OTHERS = ("KM", "iterSVR")

# Errors in percent that are known of the paper's table, and what is allowed here.
PAPER = {"digits 2-7": 15.0, "digits 8-9": 3.0}
MARGIN = 3.0

TIMED = (20, 40, 60, 80, 100, 150)
TIMED_SET = "digits 8-9"

# What a run is described by: error in percent, seconds, share of the objective above the bound,
# iterations of the solver.
ERROR, SECONDS, GAP, ITERATIONS = range(4)


def draw_subset(X, y, many, seed):
    """Return so many points of each class."""
    rng = np.random.default_rng(seed)
    rows = [rng.choice(np.flatnonzero(y == c), many, replace=False) for c in (0, 1)]
    return X[np.concatenate(rows)], y[np.concatenate(rows)]


@cache
def warm_up():
    """Import and compile what the methods call, once a process."""
    X = np.random.default_rng(0).standard_normal((10, 2))
    for solve, _ in PROGRAMS.values():
        solve(X)
    fastmmc.iter_svr(X, random_state=0)


def run_program(solve, options, X, y, width):
    """Return what describes a run."""
    warm_up()
    result, seconds = timed(
        lambda: solve(X, sigma=width * median_width(X), **options), clock=time.process_time
    )
    gap = 1.0 - result.bound / result.objective
    return np.array([clustering_error(y, result.labels), seconds, gap, result.n_iter])


def run_other(method, X, y):
    """Return error and seconds of a method that needs no program."""
    warm_up()
    run = {
        "KM": KMeans(2, n_init=10, random_state=0).fit_predict,
        "iterSVR": lambda X: fastmmc.iter_svr(X, random_state=0).labels,
    }[method]
    labels, seconds = timed(run, X, clock=time.process_time)
    return np.array([clustering_error(y, labels), seconds])


def make_tasks(loaded, quick):
    """Return all tasks, keyed by (set, seed, method, width) or rounding, and ("timed", ...)."""
    tasks = {}
    widths = (1.0,) if quick else WIDTHS
    for name, (X, y) in loaded.items():
        for seed in range(2 if quick else SUBSETS):
            points, labels = draw_subset(X, y, A_CLASS, seed)
            for method, (solve, options) in PROGRAMS.items():
                for width in widths:
                    key = name, seed, method, width
                    tasks[key] = run_program, solve, options, points, labels, width
            for rounding in ROUNDINGS[1:]:
                options = {"rounding": rounding}
                key = name, seed, "GMMC", rounding
                tasks[key] = run_program, fastmmc.gmmc, options, points, labels, 1.0
            for method in OTHERS:
                tasks[name, seed, method] = run_other, method, points, labels
    if TIMED_SET in loaded:
        for n in TIMED[:3] if quick else TIMED:
            points, labels = draw_subset(*loaded[TIMED_SET], n // 2, 0)
            for method, (solve, options) in PROGRAMS.items():
                key = "timed", n, method
                tasks[key] = run_program, solve, options, points, labels, 1.0
    return tasks


def gather(results):
    """Return {(set, method, setting): (figures, subsets)}."""
    found = {}
    for key, figures in results.items():
        if key[0] != "timed":
            name, _, *method = key
            found.setdefault((name, *method), []).append(figures)
    return {key: np.array(rows).T for key, rows in found.items()}


def best_width(found, name, method):
    """Return the width of the lowest mean error, the first one of equals."""
    widths = [width for width in WIDTHS if (name, method, width) in found]
    return min(widths, key=lambda width: found[name, method, width][ERROR].mean())


def error_table(found, names):
    """Return the errors at the default width and at the best one."""
    rows = []
    for name in names:
        row = [name, *(spread(found[name, method][ERROR]) for method in OTHERS)]
        for method in PROGRAMS:
            best = best_width(found, name, method)
            row.append(spread(found[name, method, 1.0][ERROR]))
            row.append(f"{spread(found[name, method, best][ERROR])} ({best:g})")
        rows.append(row)
    header = ["set", *OTHERS]
    for method in PROGRAMS:
        header += [method, "best width"]
    return table(header, rows)


def bar_table(found, names):
    """Return the errors against the paper's, default width and best one."""
    rows = []
    for name in names:
        if name in PAPER:
            for method in PROGRAMS:
                best = best_width(found, name, method)
                means = [found[name, method, width][ERROR].mean() for width in (1.0, best)]
                bar = PAPER[name] + MARGIN
                shown = (*map(number, means), reached(means[0] <= bar))
                rows.append([name, method, PAPER[name], bar, *shown])
    return table(["set", "method", "paper", "bar", "here", "best width", "reached"], rows)


def width_table(found, names):
    """Return errors, gaps and seconds at every width."""
    rows = []
    for name in names:
        for method in PROGRAMS:
            for width in WIDTHS:
                if (name, method, width) in found:
                    figures = found[name, method, width]
                    means = figures.mean(axis=1)
                    rows.append(
                        [
                            name,
                            method,
                            f"{width:g}",
                            spread(figures[ERROR]),
                            number(100 * means[GAP]),
                            number(means[SECONDS]),
                            f"{means[ITERATIONS]:.0f}",
                        ]
                    )
    header = ["set", "method", "width", "error", "gap, %", "seconds", "iterations"]
    return table(header, rows)


def rounding_table(found, names):
    """Return errors and gaps of GMMC by how its solution is rounded."""
    rows = []
    for name in names:
        row = [name]
        for rounding in ROUNDINGS:
            setting = 1.0 if rounding == "dual" else rounding
            figures = found[name, "GMMC", setting]
            row += [spread(figures[ERROR]), number(100 * figures[GAP].mean())]
        rows.append(row)
    header = ["set"]
    for rounding in ROUNDINGS:
        header += [rounding, "gap, %"]
    return table(header, rows)


def time_table(results):
    """Return seconds and iterations over n."""
    sizes = dict.fromkeys(key[1] for key in results if key[0] == "timed")
    rows = []
    for n in sizes:
        runs = [results["timed", n, method] for method in PROGRAMS]
        rows.append([n, *(f"{run[SECONDS]:.2f} ({run[ITERATIONS]:.0f})" for run in runs)])
    return table(["n", *PROGRAMS], rows)


def page(run):
    loaded = run.load(load_pair)
    results = run.do(make_tasks(loaded, run.quick))
    found = gather(results)
    subsets = 2 if run.quick else SUBSETS
    parts = [
        f"# MMC and GMMC on {A_CLASS} + {A_CLASS} digits: Table 3 of Zhang, Tsang and Kwok (2007)",
        run.made(),
        f"Percentages of wrong labels, mean ± standard deviation over {subsets} random subsets. "
        "README.md describes the protocol.",
        "## Clustering error",
        "In brackets the best width, in median distances: an oracle, as in the paper.",
        error_table(found, loaded),
        "Against what is known of the paper's table; which of its two columns a figure belongs to "
        "was not available to us, so both methods are held against it:",
        bar_table(found, loaded),
        "## By width",
        "The gap is the share of the objective of the labels that lies above the bound; seconds "
        "are CPU seconds of a call, one thread.",
        width_table(found, loaded),
        "## Rounding of GMMC",
        rounding_table(found, loaded),
    ]
    if TIMED_SET in loaded:
        parts += [
            "## CPU seconds of a call, in brackets the solver's iterations",
            f"One subset of {TIMED_SET}, SCS, one thread.",
            time_table(results),
        ]
    return parts


PAGES = {"sdp": (page, SETS)}

if __name__ == "__main__":
    main(PAGES)
