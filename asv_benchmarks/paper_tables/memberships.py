"""Measure probabilities against the classes.

See README.md in this folder for the protocol.
"""

import numpy as np
from common import Source, draw, load_source, main, number, reached, sources, table
from scipy.optimize import linear_sum_assignment, minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import scale

import fastmmc

MOST = 2000
OWN = {"letter A-H": Source("letter", tuple(range(8)))}
SETS = sources("digits", "iris", "wine", "pendigits 3-8-9", "usps", "coil") | OWN
STANDARDISED = {"wine"}

# Bars of the first set, digits.
BINS = 15
MOST_ERROR = 0.05


def load(name, seed):
    """Return at most 2,000 points, drawn by the seed, and their classes 0..k-1."""
    X, y = load_source(SETS[name])
    if name in STANDARDISED:
        X = scale(X[:, X.std(axis=0) > 0])
    X, y = draw(X, y, MOST if y.size > MOST else None, seed)
    return X, np.unique(y, return_inverse=True)[1]


def solve(method, X, k, seed):
    return {"umc_rls": fastmmc.umc_rls, "cluster": fastmmc.cluster}[method](X, k, random_state=seed)


# ---------------------------------------------------------------------------------- probabilities


def renumbered(y, labels, k):
    """Return the classes by the numbers of the clusters that match them best."""
    counts = np.zeros((k, k))
    np.add.at(counts, (labels, y), 1)
    classes = linear_sum_assignment(counts, maximize=True)[1]
    return np.argsort(classes)[y]


def figures(p, y):
    """Return accuracy, expected calibration error and Brier score."""
    sure, right = p.max(axis=1), p.argmax(axis=1) == y
    bins = np.minimum((sure * BINS).astype(int), BINS - 1)
    error = np.abs(np.bincount(bins, right - sure, BINS)).sum() / y.size
    return right.mean(), error, np.mean(np.sum((p - np.eye(p.shape[1])[y]) ** 2, axis=1))


def likeliest(scores, labels):
    """Return the softmax under which the labels are likeliest: Platt's rule for many clusters."""
    at = np.arange(labels.size)
    loss = minimize_scalar(
        lambda log_b: -log_softmax(np.exp(log_b) * scores, axis=1)[at, labels].sum(),
        bounds=(-5.0, 6.0),
        method="bounded",
    )
    return softmax(np.exp(loss.x) * scores, axis=1)


def measure_probabilities(name, seed):
    """Return ``{method: figures}``."""
    X, y = load(name, seed)
    k = int(y.max()) + 1
    found = {}
    for method in ("umc_rls", "cluster"):
        result = solve(method, X, k, seed)
        truth = renumbered(y, result.labels, k)
        found[method] = figures(result.probabilities, truth)
        found[f"{method}, labels alone"] = figures(np.eye(k)[result.labels], truth)
        found[f"{method}, likelihood"] = figures(likeliest(result.loo_scores, result.labels), truth)
    means = KMeans(k, n_init=10, random_state=seed).fit(X)
    found["k-means"] = figures(
        softmax(-means.transform(X), axis=1), renumbered(y, means.labels_, k)
    )
    mixture = GaussianMixture(k, covariance_type="diag", reg_covar=1e-3, random_state=seed).fit(X)
    p = mixture.predict_proba(X)
    found["Gaussian mixture"] = figures(p, renumbered(y, p.argmax(axis=1), k))
    return found


def probability_table(results, names, seeds):
    rows = []
    for name in names:
        runs = [results[name, seed] for seed in range(seeds)]
        for method in runs[0]:
            means = np.mean([run[method] for run in runs], axis=0)
            rows.append([name, method, *(number(value, 3) for value in means)])
    return table(["set", "method", "accuracy", "calibration error", "Brier score"], rows)


# ------------------------------------------------------------------------------------------- page


def page(run):
    seeds = 2 if run.quick else run.seeds
    classes = list(run.load(lambda source: load_source(source)[1].size))
    results = run.do(
        {
            (name, seed): (measure_probabilities, name, seed)
            for name in classes
            for seed in range(seeds)
        }
    )
    parts = ["# Probabilities", run.made(), f"Means over {seeds} seeds."]
    parts.append(probability_table(results, classes, seeds))
    if "digits" in classes:
        runs = [results["digits", seed] for seed in range(seeds)]
        (_, error, brier), (_, _, other) = (
            np.mean([one[method] for one in runs], axis=0) for method in ("umc_rls", "k-means")
        )
        parts.append(
            f"Bars on digits, `umc_rls`: calibration error at most {MOST_ERROR}: "
            f"{reached(error <= MOST_ERROR)}; Brier score below that of k-means: "
            f"{reached(brier < other)}."
        )
    return parts


if __name__ == "__main__":
    main(page, SETS, [("--seeds", {"type": int, "default": 10, "help": "repeats"})])
