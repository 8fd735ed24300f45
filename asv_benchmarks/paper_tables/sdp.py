"""MMC and GMMC on subsets of digits: their columns in Table 3 of the iterSVR paper.

K. Zhang, I. W. Tsang, J. T. Kwok, Maximum Margin Clustering Made Practical, ICML 2007. See
README.md in this folder for the protocol.
"""

import time
from functools import cache, partial
from itertools import product

import numpy as np
from common import (
    SHOWN_PAIRS,
    cell,
    clustering_error,
    k_means,
    load_pair,
    main,
    sources,
    table,
    timed,
    under,
)

import fastmmc
from fastmmc.kernels.gram import median_width

SETS = sources(*SHOWN_PAIRS)
A_CLASS = 50
SUBSETS = 5

# Widths of the Gaussian in median distances; 1 is the default.
WIDTHS = (0.5, 1.0, 2.0)

PROGRAMS = {
    "MMC": fastmmc.sdp_mmc,
    "MMC, C = 100": partial(fastmmc.sdp_mmc, C=100.0),
    "GMMC": fastmmc.gmmc,
}
OTHERS = {
    "KM": lambda X: k_means(X, 2),
    "iterSVR": lambda X: fastmmc.iter_svr(X, random_state=0).labels,
}

# Errors in percent that are known of the paper's table; of which of its two columns is not.
PAPER = {"digits 2-7": 15.0, "digits 8-9": 3.0}

TIMED = (20, 40, 60, 80, 100, 150)
TIMED_SET = "digits 8-9"

# What a run is described by: error in percent, seconds, share of the objective above the bound,
# iterations of the solver.
ERROR, SECONDS, GAP, ITERATIONS = range(4)


def draw_subset(X, y, many, seed):
    """Return ``many`` points of each class."""
    rng = np.random.default_rng(seed)
    rows = [rng.choice(np.flatnonzero(y == c), many, replace=False) for c in (0, 1)]
    return X[np.concatenate(rows)], y[np.concatenate(rows)]


@cache
def warm_up():
    """Import and compile what the methods call, once a process."""
    X = np.random.default_rng(0).standard_normal((10, 2))
    for solve in (*PROGRAMS.values(), OTHERS["iterSVR"]):
        solve(X)


def run_method(method, X, y, width=None):
    """Return what describes a run; a method that needs no program has error and seconds only."""
    warm_up()
    if method in OTHERS:
        labels, seconds = timed(OTHERS[method], X, clock=time.process_time)
        return np.array([clustering_error(y, labels), seconds])
    run = partial(PROGRAMS[method], X, sigma=width * median_width(X))
    result, seconds = timed(run, clock=time.process_time)
    gap = 1.0 - result.bound / result.objective
    return np.array([clustering_error(y, result.labels), seconds, gap, result.n_iter])


def make_tasks(loaded, subsets, widths, sizes):
    """Return all tasks, keyed by (set, method, width, seed), and ("timed", ...)."""
    tasks = {}
    ways = [*product(PROGRAMS, widths), *product(OTHERS, [None])]
    for (name, seed), (method, width) in product(product(loaded, range(subsets)), ways):
        X, y = draw_subset(*loaded[name], A_CLASS, seed)
        tasks[name, method, width, seed] = run_method, method, X, y, width
    for n, method in product(sizes, PROGRAMS):
        X, y = draw_subset(*loaded[TIMED_SET], n // 2, 0)
        tasks["timed", n, method] = run_method, method, X, y, 1.0
    return tasks


def best_width(found, name, method, widths):
    """Return the width of the lowest mean error, the first one of equals."""
    return min(widths, key=lambda width: found[name, method, width][ERROR].mean())


def error_table(found, names, widths):
    """Return the errors at the default width and at the best one."""
    rows = []
    for name in names:
        row = [name, *(found[name, method, None][ERROR] for method in OTHERS)]
        for method in PROGRAMS:
            best = best_width(found, name, method, widths)
            row.append(found[name, method, 1.0][ERROR])
            row.append(f"{cell(found[name, method, best][ERROR])} ({best:g})")
        rows.append([*row, PAPER.get(name)])
    pairs = [column for method in PROGRAMS for column in (method, "best width")]
    return table(["set", *OTHERS, *pairs, "paper, MMC or GMMC"], rows)


def width_table(found, names, widths):
    """Return errors, gaps and seconds at every width."""
    rows = []
    for name, method, width in product(names, PROGRAMS, widths):
        figures = found[name, method, width]
        _, seconds, gap, iterations = figures.mean(axis=1)
        row = [name, method, f"{width:g}", figures[ERROR], 100 * gap, seconds]
        rows.append([*row, f"{iterations:.0f}"])
    header = ["set", "method", "width", "error", "gap, %", "seconds", "iterations"]
    return table(header, rows)


def time_table(results, sizes):
    """Return seconds and iterations over n."""
    rows = []
    for n in sizes:
        runs = (results["timed", n, method] for method in PROGRAMS)
        rows.append([n, *(f"{run[SECONDS]:.2f} ({run[ITERATIONS]:.0f})" for run in runs)])
    return table(["n", *PROGRAMS], rows)


def page(run):
    loaded = run.load(load_pair)
    subsets, widths = run.pick((SUBSETS, WIDTHS), (2, (1.0,)))
    sizes = run.pick(TIMED, TIMED[:3]) if TIMED_SET in loaded else ()
    results = run.do(make_tasks(loaded, subsets, widths, sizes))
    # (set, method, width): figures in rows, subsets in columns.
    found = {key[:3]: under(results, *key[:3]).T for key in results if key[0] != "timed"}
    yield (
        f"Percentages of wrong labels, mean ± standard deviation over {subsets} random subsets. "
        "README.md describes the protocol."
    )
    yield "## Clustering error"
    yield "In brackets the best width, in median distances: an oracle, as in the paper."
    yield error_table(found, loaded, widths)
    yield "## By width"
    yield (
        "The gap is the share of the objective of the labels that lies above the bound; seconds "
        "are CPU seconds of a call, one thread."
    )
    yield width_table(found, loaded, widths)
    if sizes:
        yield "## CPU seconds of a call, in brackets the solver's iterations"
        yield f"One subset of {TIMED_SET}, SCS, one thread."
        yield time_table(results, sizes)


TITLE = f"MMC and GMMC on {A_CLASS} + {A_CLASS} digits: Table 3 of Zhang, Tsang and Kwok (2007)"
PAGES = {"sdp": (TITLE, page, SETS)}

if __name__ == "__main__":
    main(PAGES)
