"""Redo Tables I and II and Figure 5 of the UMC-RLS paper, and the same without the oracle.

T. Pahikkala, A. Airola, F. Gieseke, O. Kramer, Unsupervised Multi-Class Regularized Least-Squares
Classification, ICDM 2012. See README.md in this folder for the protocols.
"""

from functools import partial

import numpy as np
from common import (
    at_lowest,
    best_cell,
    draw,
    k_means,
    load_samples,
    load_source,
    main,
    mean_and_std,
    mixture,
    sources,
    spectral,
    table,
    under,
)
from scipy.spatial.distance import pdist
from sklearn.metrics import adjusted_rand_score

import fastmmc
from fastmmc.kernels.factors import factor_path
from fastmmc.kernels.gram import Kernel

SOLVE = partial(fastmmc.umc_rls, n_init=1, sizes="equal")
METHODS = {
    "Stoc-RLS": partial(SOLVE, method="stochastic"),
    "Steep-RLS": partial(SOLVE, method="steepest"),
    "UMC-RLS": partial(SOLVE, method="shaking"),
}
# With size bounds, and a descent after the shaking, by the same protocol.
BOUNDED = {
    "equal sizes": SOLVE,
    "equal sizes, polished": partial(SOLVE, polish=True),
    "balance 0.4, polished": partial(SOLVE, polish=True, balance=0.4),
}
BASELINES = {"k-means": k_means, "GMM": mixture, "spectral": spectral}

# Mean ARI as printed in the paper's Table I; figures that are not known here are left out.
PAPER = {
    "coil": {"UMC-RLS": 0.84},
    "coil 1-4": {"UMC-RLS": 1.0},
    "moons": {"UMC-RLS": 1.0},
    "usps 0-3": {"UMC-RLS": 0.85, "k-means": 0.61, "spectral": 0.66},
    "usps 4-7": {"UMC-RLS": 0.91},
}

SETS = sources(
    "coil", "coil 1-4", "coil 5-8", "iris", "moons", "letter A-D", "usps 0-3", "usps 4-7"
)

# Sets and sizes of the figure: many clusters, and many points.
GROWTH = {
    "coil": (200, 400, 600, 800, 1000, 1200, 1440),
    "usps 0-3": (250, 500, 1000, 2000, 4000),
}

# Of a whole run, and of a quick one. Widths are shares of the largest distance; max_n is for
# the figure.
GRID = {
    "shares": (tuple(i / 10 for i in range(1, 11)), (0.1, 0.2, 0.5)),
    "lams": (tuple(2.0**-i for i in range(10, 0, -1)), (2.0**-8, 2.0**-5, 2.0**-2)),
    "repeats": (10, 3),
    "samples": (10, 2),
    "max_n": (4000, 1000),
}


def run_width(X, y, sigma, lams, repeats, methods):
    """Return ARI, objective and LOO-MSE as one array (3, methods, lams, repeats)."""
    k, solvers = np.unique(y).size, list(methods.values())
    figures = np.empty((3, len(solvers), len(lams), repeats))
    for at, factor in enumerate(factor_path(X, lams, Kernel("rbf", sigma=sigma))):
        for m, repeat in np.ndindex(len(solvers), repeats):
            res = solvers[m](factor, k, random_state=repeat)
            ari = adjusted_rand_score(y, res.labels)
            figures[:, m, at, repeat] = ari, res.objective, res.loo_mse
    return figures


def run_baselines(X, y, repeats):
    """Return the ARI of the scikit-learn methods (baselines, repeats), NaN where left out."""
    k = np.unique(y).size
    figures = np.full((len(BASELINES), repeats), np.nan)
    for at, (name, method) in enumerate(BASELINES.items()):
        if name != "GMM" or y.size / k > X.shape[1]:
            labels = (method(X, k, seed) for seed in range(repeats))
            figures[at] = [adjusted_rand_score(y, found) for found in labels]
    return figures


def count_moves(name, n, repeats):
    """Return the moves made at n points with default settings, (methods, repeats)."""
    X, y = draw(*load_source(SETS[name]), n, 0)
    factor, k = fastmmc.factor(X), np.unique(y).size
    runs = (
        [solve(factor, k, random_state=s) for s in range(repeats)] for solve in METHODS.values()
    )
    return np.array([[run.n_moves for run in of_method] for of_method in runs])


def grid_tasks(loaded, protocol, methods):
    """Return the tasks of the grid, keyed by (set, sample, width)."""
    return {
        (name, s, w): (run_width, X, y, share * widest, protocol.lams, protocol.repeats, methods)
        for name, samples in loaded.items()
        for s, (X, y) in enumerate(samples)
        for widest in [pdist(X).max()]
        for w, share in enumerate(protocol.shares)
    }


def other_tasks(loaded, protocol, moves):
    """Return the tasks of the baselines, (set, "baselines", sample), and of the figure."""
    tasks = {
        (name, "baselines", s): (run_baselines, X, y, protocol.repeats)
        for name, samples in loaded.items()
        for s, (X, y) in enumerate(samples)
    }
    grown = {name: sizes for name, sizes in GROWTH.items() if moves and name in loaded}
    return tasks | {
        ("moves", name, n): (count_moves, name, n, protocol.repeats)
        for name, sizes in grown.items()
        for n in sizes
        if n <= protocol.max_n
    }


def choose_by_oracle(figures):
    """Return the ARIs (repeats,) of the setting with the highest mean ARI.

    ``figures`` is (3, widths, lams, repeats): ARI, objective, LOO-MSE.
    """
    return figures[0][best_cell(-figures[0].mean(axis=-1))]


def choose_label_free(figures):
    """Return the ARI of the setting and the repeat that are chosen without labels.

    In each setting the repeat with the lowest objective, then the setting with the lowest
    LOO-MSE.
    """
    ari, objective, loo_mse = figures
    return at_lowest(objective, ari)[best_cell(at_lowest(objective, loo_mse))]


def describe(aris, free):
    """Return the row of a method: every figure is a mean over the samples.

    ``aris`` are those of the oracle (samples, repeats), ``free`` those found without labels.
    """
    return {
        "mean": aris.mean(),
        "std": aris.std(axis=1).mean(),
        "best": aris.max(axis=1).mean(),
        "label-free": free.mean(),
    }


def summarise(name, n_samples, results, methods):
    """Return {method: row} of one set."""
    grids = [np.moveaxis(under(results, name, s), 0, 2) for s in range(n_samples)]
    rows = {}
    for m, method in enumerate(methods):
        aris = np.array([choose_by_oracle(grid[:, m]) for grid in grids])
        free = np.array([choose_label_free(grid[:, m]) for grid in grids])
        rows[method] = describe(aris, free)
    baselines = under(results, name, "baselines")
    for b, method in enumerate(BASELINES if len(baselines) else ()):
        aris = baselines[:, b]
        rows[method] = describe(aris, aris)
    return rows


def summarise_sets(loaded, results, methods):
    """Return {set: (n, k, {method: row})}."""
    return {
        name: (y.size, np.unique(y).size, summarise(name, len(samples), results, methods))
        for name, samples in loaded.items()
        for y in [samples[0][1]]
    }


def oracle_text(row):
    return mean_and_std(row["mean"], row["std"])


def ari_table(summaries, show, names):
    """Return a table of all methods, ``show(row)`` for each."""
    rows = (
        [name, n, k, *(show(summary[method]) for method in names)]
        for name, (n, k, summary) in summaries.items()
    )
    return table(["set", "n", "k", *names], rows)


def paper_table(summaries):
    """Return the figures that are known from the paper beside ours."""
    rows = (
        [name, method, printed, summary[method]["mean"]]
        for name, (*_, summary) in summaries.items()
        for method, printed in PAPER.get(name, {}).items()
    )
    return table(["set", "method", "paper", "here"], rows)


def moves_table(moves):
    """Return the moves at every n, and as multiples of n."""
    rows = (
        [name, n, *(f"{mean:.0f} ({mean / n:.2f} n)" for mean in counts.mean(axis=1))]
        for (name, n), counts in moves.items()
    )
    return table(["set", "n", *METHODS], rows)


def draw_moves(moves, run):
    """Return the figure: moves against n, one panel a set."""
    panels = {}
    for name in dict.fromkeys(name for name, _ in moves):
        sizes = [n for of, n in moves if of == name]
        lines = panels[name] = {"n moves": (sizes, sizes, "C7:")}
        for m, (method, marker) in enumerate(zip(METHODS, "s^o", strict=True)):
            counts = np.array([moves[name, n][m] for n in sizes])
            lines[method] = sizes, counts.mean(axis=1), f"C{m}-{marker}", counts.std(axis=1)
    return run.draw("moves", "n", ("moves", {"xscale": "log", "yscale": "log"}, panels))


def page(run):
    protocol = run.protocol(GRID)
    loaded = run.load(load_samples, protocol.samples)
    tasks = other_tasks(loaded, protocol, not run.no_moves) | grid_tasks(loaded, protocol, METHODS)
    results = run.do(tasks)
    summaries = summarise_sets(loaded, results, METHODS)
    names = *METHODS, *BASELINES
    yield (
        f"{len(protocol.shares)} widths x {len(protocol.lams)} lams x {protocol.repeats} repeats; "
        f"{protocol.samples} samples of each drawn set. All figures are adjusted Rand indices. The "
        "protocols are described in README.md; `-` is a method left out (GMM with no more points a "
        "cluster than features)."
    )
    yield "## Table I: oracle choice of the setting, mean ± standard deviation over the repeats"
    yield ari_table(summaries, oracle_text, names)
    yield "Figures known from the paper, beside ours:"
    yield paper_table(summaries)
    yield "## Table II: the best repeat at the oracle's setting"
    yield ari_table(summaries, lambda row: row["best"], names)
    yield "## Without labels: lowest objective, then lowest leave-one-out error"
    yield ari_table(summaries, lambda row: row["label-free"], names)
    yield "The scikit-learn methods have no grid: their figures are the means of Table I."
    moves = {key[1:]: counts for key, counts in results.items() if key[0] == "moves"}
    if moves:
        yield "## Figure 5: number of moves against n"
        yield "Default width and lam, mean over the repeats."
        yield draw_moves(moves, run)
        yield moves_table(moves)


def bounds_page(run):
    protocol = run.protocol(GRID)
    loaded = run.load(load_samples, protocol.samples)
    results = run.do(grid_tasks(loaded, protocol, BOUNDED))
    summaries = summarise_sets(loaded, results, BOUNDED)
    yield (
        "All figures are adjusted Rand indices of single starts; where points are drawn, means "
        f"over {protocol.samples} samples. The first column is the method as published."
    )
    yield "## Oracle choice of the setting, mean ± standard deviation over the repeats"
    yield ari_table(summaries, oracle_text, BOUNDED)
    yield "## Without labels: lowest objective, then lowest leave-one-out error"
    yield ari_table(summaries, lambda row: row["label-free"], BOUNDED)


TITLE = "UMC-RLS: Tables I and II and Figure 5 of Pahikkala et al. (2012)"
BOUNDS = "UMC-RLS with size bounds and a descent, by the protocol of its paper"
PAGES = {"umc_rls": (TITLE, page, SETS), "umc_rls_bounds": (BOUNDS, bounds_page, SETS)}

if __name__ == "__main__":
    main(PAGES, no_moves={"action": "store_true", "help": "leave Figure 5 out"})
