"""Redo Tables I and II and Figure 5 of the UMC-RLS paper, and the same without the oracle.

T. Pahikkala, A. Airola, F. Gieseke, O. Kramer, Unsupervised Multi-Class Regularized Least-Squares
Classification, ICDM 2012. See README.md in this folder for the protocols.
"""

import warnings
from dataclasses import dataclass

import numpy as np
from common import (
    at_lowest,
    best_cell,
    draw,
    load_samples,
    load_source,
    main,
    mean_and_std,
    number,
    sources,
    table,
)
from scipy.spatial.distance import pdist
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

import fastmmc
from fastmmc import umc_rls
from fastmmc.kernels.factors import factor_path
from fastmmc.kernels.gram import Kernel

METHODS = {
    "Stoc-RLS": {"method": "stochastic"},
    "Steep-RLS": {"method": "steepest"},
    "UMC-RLS": {"method": "shaking"},
}
BASELINES = ("k-means", "GMM", "spectral")

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


@dataclass(frozen=True)
class Protocol:
    """How much of the paper's experiment is done."""

    shares: tuple[float, ...]  # widths, as shares of the largest distance
    lams: tuple[float, ...]
    repeats: int
    samples: int
    max_n: int  # of the figure


FULL = Protocol(
    tuple(i / 10 for i in range(1, 11)), tuple(2.0**-i for i in range(10, 0, -1)), 10, 10, 4000
)
QUICK = Protocol((0.1, 0.2, 0.5), (2.0**-8, 2.0**-5, 2.0**-2), 3, 2, 1000)


def run_width(X, y, sigma, lams, repeats, methods):
    """Return ARI, objective and LOO-MSE as one array (3, methods, lams, repeats).

    ``methods`` is {name: options of :func:`fastmmc.umc_rls`}.
    """
    k = np.unique(y).size
    figures = np.empty((3, len(methods), len(lams), repeats))
    for at, factor in enumerate(factor_path(X, lams, Kernel("rbf", sigma=sigma))):
        for m, options in enumerate(methods.values()):
            for repeat in range(repeats):
                res = umc_rls(factor, k, n_init=1, random_state=repeat, **options, sizes="equal")
                ari = adjusted_rand_score(y, res.labels)
                figures[:, m, at, repeat] = ari, res.objective, res.loo_mse
    return figures


def run_baselines(X, y, repeats):
    """Return the ARI of the scikit-learn methods (baselines, repeats), NaN where left out."""
    k = np.unique(y).size
    figures = np.full((len(BASELINES), repeats), np.nan)
    for seed in range(repeats):
        models = [
            KMeans(k, n_init=10, random_state=seed),
            GaussianMixture(k, covariance_type="full", reg_covar=1e-6, random_state=seed),
            SpectralClustering(k, affinity="nearest_neighbors", n_neighbors=10, random_state=seed),
        ]
        for at, model in enumerate(models):
            if isinstance(model, GaussianMixture) and y.size / k <= X.shape[1]:
                continue
            with warnings.catch_warnings():
                # Spectral clustering works on such a graph as well, and it is what was asked for.
                warnings.filterwarnings("ignore", message="Graph is not fully connected")
                figures[at, seed] = adjusted_rand_score(y, model.fit_predict(X))
    return figures


def count_moves(name, n, repeats):
    """Return the moves made at n points with default settings, (methods, repeats)."""
    X, y = load_source(SETS[name])
    X, y = draw(X, y, n, 0)
    k = np.unique(y).size
    factor = fastmmc.factor(X)
    return np.array(
        [
            [
                umc_rls(factor, k, n_init=1, random_state=repeat, **options, sizes="equal").n_moves
                for repeat in range(repeats)
            ]
            for options in METHODS.values()
        ]
    )


def grid_tasks(loaded, protocol, methods=METHODS):
    """Return the tasks of the grid, keyed by (set, sample, width)."""
    return {
        (name, s, w): (run_width, X, y, share * widest, protocol.lams, protocol.repeats, methods)
        for name, samples in loaded.items()
        for s, (X, y) in enumerate(samples)
        for widest in [pdist(X).max()]
        for w, share in enumerate(protocol.shares)
    }


def other_tasks(loaded, protocol, moves):
    """Return the tasks of the baselines, (set, sample, None), and of the figure."""
    tasks = {
        (name, s, None): (run_baselines, X, y, protocol.repeats)
        for name, samples in loaded.items()
        for s, (X, y) in enumerate(samples)
    }
    return tasks | {
        ("moves", name, n): (count_moves, name, n, protocol.repeats)
        for name in GROWTH
        if moves and name in loaded
        for n in GROWTH[name]
        if n <= protocol.max_n
    }


def choose_by_oracle(figures):
    """Return mean, std, best ARI and (width, lam) of the setting with the highest mean ARI.

    ``figures`` is (3, widths, lams, repeats): ARI, objective, LOO-MSE.
    """
    ari = figures[0]
    mean = ari.mean(axis=-1)
    cell = best_cell(-mean)
    return mean[cell], ari[cell].std(), ari[cell].max(), cell


def choose_label_free(figures):
    """Return the ARI and (width, lam) chosen without labels.

    In each setting the repeat with the lowest objective, then the setting with the lowest
    LOO-MSE.
    """
    ari, objective, loo_mse = figures
    cell = best_cell(at_lowest(objective, loo_mse))
    return at_lowest(objective, ari)[cell], cell


def summarise(name, n_samples, results, protocol, methods=METHODS):
    """Return {method: row} of one set; every figure is a mean over the samples."""
    rows = {}
    for m, method in enumerate(methods):
        oracle, free = [], []
        for s in range(n_samples):
            widths = range(len(protocol.shares))
            figures = np.stack([results[name, s, w][:, m] for w in widths], axis=1)
            oracle.append(choose_by_oracle(figures))
            free.append(choose_label_free(figures))
        rows[method] = {
            "mean": np.mean([row[0] for row in oracle]),
            "std": np.mean([row[1] for row in oracle]),
            "best": np.mean([row[2] for row in oracle]),
            "label-free": np.mean([row[0] for row in free]),
            "oracle spread": np.std([row[0] for row in oracle]),
            "label-free spread": np.std([row[0] for row in free]),
            "oracle cells": [row[3] for row in oracle],
            "label-free cells": [row[1] for row in free],
        }
    return rows


def summarise_sets(loaded, results, protocol, methods=METHODS):
    """Return {set: (n, k, {method: row})}."""
    summaries = {}
    for name, samples in loaded.items():
        y = samples[0][1]
        rows = summarise(name, len(samples), results, protocol, methods)
        summaries[name] = y.size, np.unique(y).size, rows
    return summaries


def summarise_baselines(name, n_samples, results):
    """Return {method: row} of one set, as :func:`summarise` does."""
    rows = {}
    for b, method in enumerate(BASELINES):
        ari = np.array([results[name, s, None][b] for s in range(n_samples)])
        rows[method] = {
            "mean": ari.mean(),
            "std": ari.std(axis=1).mean(),
            "best": ari.max(axis=1).mean(),
            "label-free": ari.mean(),
        }
    return rows


def oracle_text(row):
    return mean_and_std(row["mean"], row["std"])


def ari_table(summaries, show, names=(*METHODS, *BASELINES)):
    """Return a table of all methods, ``show(row)`` for each."""
    rows = [
        [name, n, k, *(show(summary[method]) for method in names)]
        for name, (n, k, summary) in summaries.items()
    ]
    return table(["set", "n", "k", *names], rows)


def paper_table(summaries):
    """Return the figures that are known from the paper beside ours."""
    rows = []
    for name, (_, _, summary) in summaries.items():
        for method, printed in PAPER.get(name, {}).items():
            rows.append([name, method, number(printed), number(summary[method]["mean"])])
    return table(["set", "method", "paper", "here"], rows)


def between(values, form):
    """Return one value, or the least and the greatest."""
    low, high = form.format(min(values)), form.format(max(values))
    return low if low == high else f"{low} .. {high}"


def settings_table(summaries, protocol):
    """Return where on the grid UMC-RLS ended up and how much the samples differ."""
    rows = []
    for name, (_, _, summary) in summaries.items():
        row = summary["UMC-RLS"]
        line = [name]
        for rule in ("oracle", "label-free"):
            shares = [protocol.shares[cell[0]] for cell in row[f"{rule} cells"]]
            powers = [np.log2(protocol.lams[cell[1]]) for cell in row[f"{rule} cells"]]
            line += [between(shares, "{:.1f}"), between(powers, "{:.0f}")]
            line.append(number(row[f"{rule} spread"]) if len(shares) > 1 else "-")
        rows.append(line)
    columns = ("sigma/sigma_0", "log2 lam", "std over samples")
    header = [f"{rule}: {column}" for rule in ("oracle", "label-free") for column in columns]
    return table(["set", *header], rows)


def moves_table(moves):
    """Return the moves at every n, and as multiples of n."""
    rows = []
    for (name, n), counts in moves.items():
        means = counts.mean(axis=1)
        rows.append([name, n, *(f"{mean:.0f} ({mean / n:.2f} n)" for mean in means)])
    return table(["set", "n", *METHODS], rows)


def draw_moves(moves, run):
    """Save the figure: moves against n, one panel a set."""
    from matplotlib.ticker import NullFormatter, NullLocator, ScalarFormatter

    names = list(dict.fromkeys(name for name, _ in moves))
    with run.picture("moves", 1, len(names), figsize=(4.5 * len(names), 3.6)) as (_, axes):
        for ax, name in zip(axes[0], names, strict=True):
            sizes = [n for set_name, n in moves if set_name == name]
            for m, (method, marker) in enumerate(zip(METHODS, "s^o", strict=True)):
                counts = np.array([moves[name, n][m] for n in sizes])
                ax.errorbar(
                    sizes, counts.mean(axis=1), counts.std(axis=1), marker=marker, label=method
                )
            ax.plot(sizes, sizes, color="grey", linestyle=":", label="n moves")
            ax.set(title=name, xlabel="n", ylabel="moves", xscale="log", yscale="log")
            ax.set_xticks(sizes)
            ax.xaxis.set_major_formatter(ScalarFormatter())
            ax.xaxis.set_minor_formatter(NullFormatter())
            ax.xaxis.set_minor_locator(NullLocator())
            ax.tick_params(axis="x", labelrotation=45)
        axes[0, -1].legend(loc="lower right")


def page(run):
    protocol = QUICK if run.quick else FULL
    loaded = run.load(load_samples, protocol.samples)
    tasks = other_tasks(loaded, protocol, not run.no_moves) | grid_tasks(loaded, protocol)
    results = run.do(tasks)
    summaries = summarise_sets(loaded, results, protocol)
    for name, samples in loaded.items():
        summaries[name][-1].update(summarise_baselines(name, len(samples), results))
    moves = {key[1:]: counts for key, counts in results.items() if key[0] == "moves"}
    moves = dict(sorted(moves.items()))
    parts = [
        "# UMC-RLS: Tables I and II and Figure 5 of Pahikkala et al. (2012)",
        f"{run.made()} {len(protocol.shares)} widths x {len(protocol.lams)} lams x "
        f"{protocol.repeats} repeats; {protocol.samples} samples of each drawn set.",
        "All figures are adjusted Rand indices. The protocols are described in README.md; `-` is "
        "a method left out (GMM with no more points a cluster than features).",
    ]
    if summaries:
        parts += [
            "## Table I: oracle choice of the setting, mean ± standard deviation over the repeats",
            ari_table(summaries, oracle_text),
            "Figures known from the paper, beside ours:",
            paper_table(summaries),
            "## Table II: the best repeat at the oracle's setting",
            ari_table(summaries, lambda row: number(row["best"])),
            "## Without labels: lowest objective, then lowest leave-one-out error",
            ari_table(summaries, lambda row: number(row["label-free"])),
            "The scikit-learn methods have no grid: their figures are the means of Table I.",
            "## Settings chosen for UMC-RLS",
            settings_table(summaries, protocol),
        ]
    if moves:
        draw_moves(moves, run)
        parts += [
            "## Figure 5: number of moves against n",
            "Default width and lam, mean over the repeats.",
            f"![moves against n]({run.picture_name('moves')})",
            moves_table(moves),
        ]
    return parts


# With size bounds, and a descent after the shaking, by the same protocol.
BOUNDED = {
    "equal sizes": {},
    "equal sizes, polished": {"polish": True},
    "balance 0.4, polished": {"polish": True, "balance": 0.4},
}


def bounds_page(run):
    protocol = QUICK if run.quick else FULL
    loaded = run.load(load_samples, protocol.samples)
    results = run.do(grid_tasks(loaded, protocol, BOUNDED))
    summaries = summarise_sets(loaded, results, protocol, BOUNDED)
    return [
        "# UMC-RLS with size bounds and a descent, by the protocol of its paper",
        run.made(),
        "All figures are adjusted Rand indices of single starts; where points are drawn, means "
        f"over {protocol.samples} samples. The first column is the method as published.",
        "## Oracle choice of the setting, mean ± standard deviation over the repeats",
        ari_table(summaries, oracle_text, BOUNDED),
        "## Without labels: lowest objective, then lowest leave-one-out error",
        ari_table(summaries, lambda row: number(row["label-free"]), BOUNDED),
    ]


NO_MOVES = "--no-moves", {"action": "store_true", "help": "leave Figure 5 out"}
PAGES = {"umc_rls": (page, SETS), "umc_rls_bounds": (bounds_page, SETS)}

if __name__ == "__main__":
    main(PAGES, [NO_MOVES])
