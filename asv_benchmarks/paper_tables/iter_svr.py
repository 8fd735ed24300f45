"""Redo the tables and figures of the iterSVR paper on the data sets that can be had.

K. Zhang, I. W. Tsang, J. T. Kwok, Maximum Margin Clustering Made Practical, ICML 2007. See
README.md in this folder for the protocols.
"""

import os
import time
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
from common import (
    DIGIT_PAIRS,
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
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.mixture import GaussianMixture

from fastmmc import iter_ls_svm, iter_svm, iter_svr
from fastmmc.alternating.start import first_labels
from fastmmc.kernels.gram import Kernel, median_width

SETS = sources(
    "digits 3-8",
    "digits 1-7",
    "digits 2-7",
    "digits 8-9",
    "ionosphere",
    "letter A-B",
    "satellite 1-2",
    "ringnorm",
    "svmguide1",
    "w1",
)

# Taken from FASTMMC_DATA only: other places have other sets under these names.
LOCAL = ("ringnorm", "svmguide1", "w1")

# The paper's 0.03 for sets with classes of about one size, 0.3 for others. Satellite's classes
# differ by 0.37 n, which 0.3 rules out.
BALANCES = {"ionosphere": 0.3, "letter A-B": 0.1, "satellite 1-2": 0.4, "svmguide1": 0.3, "w1": 0.3}
BALANCE = 0.03

# As good as no size rule: one cluster may have all but half a percent of the points.
FREE = 0.99

# Errors in percent that iterSVR is to stay at or below in the mean.
BARS = {
    "digits 3-8": 3.4,
    "digits 1-7": 0.6,
    "digits 2-7": 0.3,
    "digits 8-9": 4.0,
    "ionosphere": 30.0,
    "letter A-B": 6.0,
    "satellite 1-2": 2.0,
}

MARGIN = {
    "iterSVM": (iter_svm, {}),
    "iterSVR": (iter_svr, {}),
    "iterLS-SVM": (iter_ls_svm, {}),
    "iterSVR, k-means++": (iter_svr, {"init": "kmeans"}),
}
BASELINES = ("KM", "NC", "GMM")
METHODS = (*BASELINES, *MARGIN)
FREE_METHODS = ("iterSVM", "iterSVR", "iterLS-SVM")

# What a run is described by: error in percent, CPU seconds, rounds.
ERROR, SECONDS, ROUNDS = range(3)

CURVE_SETS = ("digits 3-8", "digits 2-7", "digits 8-9")
CURVES = {
    "iterSVM": (iter_svm, {}),
    "iterSVR, epsilon 0": (iter_svr, {"epsilon": 0.0}),
    "iterSVR, epsilon 0.1": (iter_svr, {"epsilon": 0.1}),
    "iterSVR, epsilon 0.3": (iter_svr, {"epsilon": 0.3}),
}
SHOWN_ROUNDS = 8


# Seeds, and seeds without the size rule.
FULL, QUICK = (10, 5), (2, 1)


def load(source):
    folder = os.environ.get("FASTMMC_DATA")
    local = folder and (Path(folder) / f"{source.name}.npz").exists()
    if source.name in LOCAL and not local:
        raise ValueError(f"the folder FASTMMC_DATA has no {source.name}.npz")
    return load_pair(source)


@cache
def warm_up():
    """Compile what the methods call, once a process."""
    X = np.random.default_rng(0).standard_normal((20, 2))
    for solve, options in MARGIN.values():
        solve(X, n_init=1, random_state=0, **options)


def run_baseline(method, X, seed):
    """Return the labels and 1 for a round."""
    if method == "KM":
        return KMeans(2, n_init=1, random_state=seed).fit_predict(X), 1
    if method == "GMM":
        return GaussianMixture(2, random_state=seed).fit_predict(X), 1
    affinity = Kernel("rbf", sigma=median_width(X)).block(X, X)
    model = SpectralClustering(
        2, affinity="precomputed", assign_labels="cluster_qr", random_state=seed
    )
    return model.fit_predict(affinity), 1


def run_margin(method, X, balance, seed):
    """Return the labels and the rounds."""
    solve, options = MARGIN[method]
    res = solve(X, balance=balance, n_init=1, random_state=seed, **options)
    return res.labels, res.n_iter


def run_method(method, X, y, balance, seeds):
    """Return what describes every run, (3, seeds)."""
    warm_up()

    def once(seed):
        if method in BASELINES:
            return run_baseline(method, X, seed)
        return run_margin(method, X, balance, seed)

    figures = np.empty((3, seeds))
    for seed in range(seeds):
        (labels, rounds), seconds = timed(once, seed, clock=time.process_time)
        figures[:, seed] = clustering_error(y, labels), seconds, rounds
    return figures


def run_curve(method, X, y):
    """Return the objective after each round, and the error before the first and after each.

    All methods begin with the same labels. A run is repeated with one round more each time.
    """
    solve, options = CURVES[method]
    init = first_labels("farthest", X, Kernel("rbf"), np.ones(y.size), np.random.default_rng(0))
    setting = {"balance": BALANCE, "init": init, "n_init": 1, "random_state": 0, **options}
    history = solve(X, **setting).history
    rounds = range(1, history.size + 1)
    labels = [init, *(solve(X, max_iter=most, **setting).labels for most in rounds)]
    return history, np.array([clustering_error(y, each) for each in labels])


def make_tasks(loaded, seeds, free_seeds):
    """Return all tasks, keyed by (set, method, size rule) and ("curve", ...)."""
    tasks = {}
    for name, (X, y) in loaded.items():
        balance = BALANCES.get(name, BALANCE)
        for method in METHODS:
            tasks[name, method, balance] = run_method, method, X, y, balance, seeds
        for method in FREE_METHODS:
            tasks[name, method, FREE] = run_method, method, X, y, FREE, free_seeds
        if name in CURVE_SETS:
            for method in CURVES:
                tasks["curve", name, method] = run_curve, method, X, y
    return tasks


def settings_of(loaded):
    """Return {name: (n, larger class, size rule)}."""
    return {
        name: (y.size, int(np.bincount(y).max()), BALANCES.get(name, BALANCE))
        for name, (_, y) in loaded.items()
    }


def error_table(settings, results):
    """Return the errors of all methods."""
    rows = [
        [name, n, larger, balance, *(spread(results[name, m, balance][ERROR]) for m in METHODS)]
        for name, (n, larger, balance) in settings.items()
    ]
    return table(["set", "n", "larger class", "balance", *METHODS], rows)


def bar_table(settings, results):
    """Return whether the errors of iterSVR stay at or below their bars."""
    rows = []
    for name, (*_, balance) in settings.items():
        if name in BARS:
            mean = results[name, "iterSVR", balance][ERROR].mean()
            rows.append([name, number(BARS[name]), number(mean), reached(mean <= BARS[name])])
    return table(["set", "bar", "here", "reached"], rows)


def free_table(settings, results):
    """Return the errors with the size rule and without."""
    rows = []
    for name, (*_, balance) in settings.items():
        row = [name, balance]
        for method in FREE_METHODS:
            row += [spread(results[name, method, b][ERROR]) for b in (balance, FREE)]
        rows.append(row)
    header = ["set", "balance"]
    for method in FREE_METHODS:
        header += [f"{method}, with", "without"]
    return table(header, rows)


def time_table(settings, results):
    """Return CPU seconds of a run, and how many times as long as k-means that is."""
    rows = []
    for name, (n, _, balance) in settings.items():
        seconds = {m: results[name, m, balance][SECONDS].mean() for m in METHODS}
        rounds = results[name, "iterSVR", balance][ROUNDS].mean()
        row = [name, n, f"{rounds:.1f}", f"{seconds['KM']:.3f}"]
        row += [f"{seconds[m]:.3f} ({seconds[m] / seconds['KM']:.0f})" for m in METHODS[1:]]
        rows.append(row)
    return table(["set", "n", "rounds of iterSVR", *METHODS], rows)


def curve_table(curves):
    """Return the error before the first round and after each."""
    rows = []
    for (name, method), (history, errors) in curves.items():
        shown = [number(e) for e in errors[: SHOWN_ROUNDS + 1]]
        shown += [""] * (SHOWN_ROUNDS + 1 - len(shown))
        rows.append([name, method, *shown, f"{history[-1] / history[0]:.2f}"])
    header = ["set", "method", "start", *range(1, SHOWN_ROUNDS + 1)]
    return table([*header, "last / first objective"], rows)


def draw_curves(curves, run):
    """Save the figure: objective (above) and error (below) against rounds, one column a set."""
    from matplotlib.ticker import MaxNLocator

    names = list(dict.fromkeys(name for name, _ in curves))
    size = {"figsize": (3.6 * len(names), 5.4), "sharex": "col"}
    with run.picture("rounds", 2, len(names), **size) as (figure, axes):
        for (above, below), name in zip(axes.T, names, strict=True):
            for m, method in enumerate(CURVES):
                history, errors = curves[name, method]
                style = {"color": f"C{m}", "marker": "os^v"[m], "markersize": 4, "label": method}
                above.plot(np.arange(1, history.size + 1), history, **style)
                below.plot(np.arange(errors.size), errors, **style)
            above.set(title=name, yscale="log")
            below.set(xlabel="round", ylim=(0, None))
            below.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes[0, 0].set_ylabel("objective")
        axes[1, 0].set_ylabel("clustering error, %")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(CURVES))


def page(run):
    seeds, free_seeds = QUICK if run.quick else FULL
    loaded = run.load(load)
    results = run.do(make_tasks(loaded, seeds, free_seeds))
    settings = settings_of(loaded)
    curves = {key[1:]: curve for key, curve in results.items() if key[0] == "curve"}
    curves = {key: curves[key] for key in product(CURVE_SETS, CURVES) if key in curves}
    parts = [
        "# iterSVR: the experiments of Zhang, Tsang and Kwok (2007)",
        run.made(),
        "All errors are percentages of wrong labels. README.md describes the protocols.",
    ]
    if settings:
        parts += [
            f"## Clustering error, mean ± standard deviation over {seeds} seeds (Table 1)",
            error_table(settings, results),
            "iterSVR against the bars set for it:",
            bar_table(settings, results),
            "## Error with the size rule and without (Tables 2 and 3)",
            f"Without: balance {FREE}, {free_seeds} seeds.",
            free_table(settings, results),
            "## CPU seconds of a run, and in brackets over those of k-means (Table 4)",
            time_table(settings, results),
        ]
    if curves:
        draw_curves(curves, run)
        parts += [
            "## Rounds (Figures 1, 5 and 6)",
            "The objective is the method's own, ‖w‖² + 2C Σ loss, after the labels of each round; "
            "those of different losses are not comparable.",
            f"![objective and error against rounds]({run.picture_name('rounds')})",
            "Error in percent before the first round and after each:",
            curve_table(curves),
        ]
    return parts


# All pairs of digits, each run the best of its starts.
STARTS = 10
PAIR_SEEDS = 10

# The paper's mean error of iterSVR over all pairs.
PAIRS_ERROR = 1.82


def by_kmeans(X, seed):
    return KMeans(2, n_init=STARTS, random_state=seed).fit_predict(X)


def by_mixture(X, seed):
    return GaussianMixture(2, n_init=STARTS, random_state=seed).fit_predict(X)


def by_margin(function):
    """Return the method with its defaults: balance 0.03, sigma 3 D, C 500."""
    return lambda X, seed: function(X, n_init=STARTS, random_state=seed).labels


PAIR_METHODS = {
    "KM": by_kmeans,
    "GMM": by_mixture,
    "iterSVR": by_margin(iter_svr),
    "iterLS-SVM": by_margin(iter_ls_svm),
}


def run_pair(name, method, seeds):
    """Return the errors in percent, one a seed."""
    X, y = load_pair(DIGIT_PAIRS[name])
    return np.array([clustering_error(y, PAIR_METHODS[method](X, s)) for s in range(seeds)])


def method_table(errors):
    """Return the errors of all methods; ``errors`` holds (pairs, seeds) for each."""
    rows = []
    for method, found in errors.items():
        by_seed, by_pair = found.mean(axis=0), found.mean(axis=1)
        figures = (found.mean(), by_seed.min(), by_seed.max(), np.median(by_pair), by_pair.max())
        rows.append([method, *map(number, figures)])
    header = ["method", "mean error", "best seed", "worst seed", "median pair", "worst pair"]
    return table(header, rows)


def worst_table(names, found, many=8):
    """Return the pairs in which iterSVR errs most."""
    worst = np.argsort(-found.mean(axis=1))[:many]
    rows = [[names[p], *(number(v) for v in (found[p].mean(), *found[p]))] for p in worst]
    return table(["pair", "mean", *(f"seed {s}" for s in range(found.shape[1]))], rows)


def pairs_page(run):
    names = run.sets[::8] if run.quick else run.sets
    seeds = 1 if run.quick else PAIR_SEEDS
    results = run.do(
        {(name, m): (run_pair, name, m, seeds) for name in names for m in PAIR_METHODS}
    )
    errors = {m: np.array([results[name, m] for name in names]) for m in PAIR_METHODS}
    return [
        f"# All pairs of digits: {len(names)} pairs, {seeds} seeds, {STARTS} starts a run",
        run.made(),
        f"Percentages of wrong labels. The paper has {PAIRS_ERROR} for iterSVR. "
        "Best and worst seed are means over the pairs.",
        method_table(errors),
        "The pairs in which iterSVR errs most:",
        worst_table(names, errors["iterSVR"]),
    ]


PAGES = {"iter_svr": (page, SETS), "iter_svr_pairs": (pairs_page, DIGIT_PAIRS)}

if __name__ == "__main__":
    main(PAGES)
