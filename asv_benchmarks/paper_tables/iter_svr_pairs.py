"""All pairs of digits by iterSVR and iterLS-SVM, each run the best of its starts.

See README.md in this folder for the protocol.
"""

import numpy as np
from common import DIGIT_PAIRS, clustering_error, load_pair, main, number, table
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture

import fastmmc

STARTS = 10
SEEDS = 10

# The paper's mean error of iterSVR over all pairs.
PAPER = 1.82


def by_kmeans(X, seed):
    return KMeans(2, n_init=STARTS, random_state=seed).fit_predict(X)


def by_mixture(X, seed):
    return GaussianMixture(2, n_init=STARTS, random_state=seed).fit_predict(X)


def by_margin(function):
    """Return the method with its defaults: balance 0.03, sigma 3 D, C 500."""
    return lambda X, seed: function(X, n_init=STARTS, random_state=seed).labels


METHODS = {
    "KM": by_kmeans,
    "GMM": by_mixture,
    "iterSVR": by_margin(fastmmc.iter_svr),
    "iterLS-SVM": by_margin(fastmmc.iter_ls_svm),
}


def run_pair(name, method, seeds):
    """Return the errors in percent, one a seed."""
    X, y = load_pair(DIGIT_PAIRS[name])
    return np.array([clustering_error(y, METHODS[method](X, s)) for s in range(seeds)])


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


def page(run):
    names = run.sets[::8] if run.quick else run.sets
    seeds = 1 if run.quick else SEEDS
    results = run.do({(name, m): (run_pair, name, m, seeds) for name in names for m in METHODS})
    errors = {m: np.array([results[name, m] for name in names]) for m in METHODS}
    return [
        f"# All pairs of digits: {len(names)} pairs, {seeds} seeds, {STARTS} starts a run",
        run.made(),
        f"Percentages of wrong labels. The paper has {PAPER} for iterSVR. Best and worst seed are "
        "means over the pairs.",
        method_table(errors),
        "The pairs in which iterSVR errs most:",
        worst_table(names, errors["iterSVR"]),
    ]


if __name__ == "__main__":
    main(page, DIGIT_PAIRS)
