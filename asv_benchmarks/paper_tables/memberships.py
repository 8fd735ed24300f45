"""Measure probabilities against the classes, and outlier scores against noise that was added.

See README.md in this folder for the protocols.
"""

import numpy as np
from common import Source, load_source, main, number, reached, sources, table
from scipy.optimize import linear_sum_assignment, minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.cluster import KMeans
from sklearn.ensemble import IsolationForest
from sklearn.metrics import average_precision_score
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import LocalOutlierFactor
from sklearn.preprocessing import scale

import fastmmc

MOST = 2000
OWN = {"letter A-H": Source("letter", tuple(range(8)))}
CLASSES = sources("digits", "iris", "wine", "pendigits 3-8-9", "usps", "coil") | OWN
NOISY = sources(
    "digits",
    "iris",
    "wine",
    "breast_cancer",
    "nine_gaussians",
    "moons",
    "rings",
    "pendigits 3-8-9",
    "segment",
)
SETS = CLASSES | NOISY
STANDARDISED = {"wine", "breast_cancer", "segment"}

# Of the points. Bars of the first set, digits.
NOISE = 0.05
BINS = 15
MOST_ERROR = 0.05


def load(name, seed):
    """Return at most 2,000 points, drawn by the seed, and their classes 0..k-1."""
    X, y = load_source(SETS[name])
    if name in STANDARDISED:
        X = scale(X[:, X.std(axis=0) > 0])
    if y.size > MOST:
        chosen = np.random.default_rng(seed).choice(y.size, MOST, replace=False)
        X, y = X[chosen], y[chosen]
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
        runs = [results["probabilities", name, seed] for seed in range(seeds)]
        for method in runs[0]:
            means = np.mean([run[method] for run in runs], axis=0)
            rows.append([name, method, *(number(value, 3) for value in means)])
    return table(["set", "method", "accuracy", "calibration error", "Brier score"], rows)


# --------------------------------------------------------------------------------------- outliers


def add_noise(X, seed):
    """Return the points with noise, uniform in the box around them, and which it is."""
    rng = np.random.default_rng([seed, 1])
    count = max(1, round(NOISE * len(X)))
    noise = rng.uniform(X.min(axis=0), X.max(axis=0), (count, X.shape[1]))
    return np.vstack([X, noise]), np.repeat([False, True], [len(X), count])


def definitions(result):
    """Return what may be called an outlier score."""
    labels, scores, leverage = result.labels, result.loo_scores, result.outlier_scores
    codes = np.where(labels[:, None] == np.arange(scores.shape[1]), 1.0, -1.0)
    own = (1.0 - scores[np.arange(labels.size), labels]) / 2.0
    row = np.mean((codes - scores) ** 2, axis=1)
    medians = np.array([np.median(own[labels == h]) for h in range(scores.shape[1])])
    return {
        "R_jj": leverage,
        "own residual": own,
        "own / median of cluster": own / medians[labels],
        "row residual": row,
        "- margin": -result.margins,
        "R_jj row residual (Cook)": leverage * row,
        "R_jj (1 + own residual)": leverage * (1.0 + own),
    }


def measure_outliers(name, seed):
    """Return ``{score: average precision}``."""
    X, y = load(name, seed)
    k = int(y.max()) + 1
    X, is_noise = add_noise(X, seed)
    found = {
        "IsolationForest": -IsolationForest(random_state=seed).fit(X).score_samples(X),
        "LOF": -LocalOutlierFactor().fit(X).negative_outlier_factor_,
    }
    for method in ("umc_rls", "cluster"):
        told = definitions(solve(method, X, k, seed))
        found |= {f"{method}: {name}": score for name, score in told.items()}
    return {name: average_precision_score(is_noise, score) for name, score in found.items()}


def outlier_tables(results, names, seeds):
    """Return the table of the scores and that of all definitions."""
    means = {}
    for name in names:
        runs = [results["outliers", name, seed] for seed in range(seeds)]
        means[name] = {score: np.mean([run[score] for run in runs]) for score in runs[0]}
    peers, ours = ["IsolationForest", "LOF"], ["umc_rls: R_jj", "cluster: R_jj"]
    rows = [
        [
            name,
            *(number(of_set[score], 3) for score in (*ours, *peers)),
            reached(of_set[ours[0]] >= max(of_set[peer] for peer in peers)),
        ]
        for name, of_set in means.items()
    ]
    mean = {score: np.mean([of_set[score] for of_set in means.values()]) for score in runs[0]}
    last = ["mean", *(number(mean[score], 3) for score in (*ours, *peers))]
    rows.append([*last, reached(mean[ours[0]] >= max(mean[peer] for peer in peers))])
    header = ["set", "outlier_scores, umc_rls", "outlier_scores, cluster", *peers, "bar"]
    tried = [name.removeprefix("umc_rls: ") for name in mean if name.startswith("umc_rls: ")]
    all_tried = [
        [n, *(number(mean[f"{m}: {n}"], 3) for m in ("umc_rls", "cluster"))] for n in tried
    ]
    return table(header, rows), table(["score", "umc_rls", "cluster"], all_tried)


# ------------------------------------------------------------------------------------------- page


def page(run):
    seeds = 2 if run.quick else run.seeds
    known = [name for name in run.load(lambda source: load_source(source)[1].size)]
    classes, noisy = ([n for n in known if n in group] for group in (CLASSES, NOISY))
    measures = {
        "probabilities": (measure_probabilities, classes),
        "outliers": (measure_outliers, noisy),
    }
    results = run.do(
        {
            (what, name, seed): (measure, name, seed)
            for what, (measure, names) in measures.items()
            for name in names
            for seed in range(seeds)
        }
    )
    parts = ["# Probabilities and outlier scores", run.made(), f"Means over {seeds} seeds."]
    if classes:
        parts += ["## Probabilities", probability_table(results, classes, seeds)]
    if "digits" in classes:
        runs = [results["probabilities", "digits", seed] for seed in range(seeds)]
        (_, error, brier), (_, _, other) = (
            np.mean([one[method] for one in runs], axis=0) for method in ("umc_rls", "k-means")
        )
        parts.append(
            f"Bars on digits, `umc_rls`: calibration error at most {MOST_ERROR}: "
            f"{reached(error <= MOST_ERROR)}; Brier score below that of k-means: "
            f"{reached(brier < other)}."
        )
    if noisy:
        scores, tried = outlier_tables(results, noisy, seeds)
        parts += ["## Outliers", "Average precision.", scores]
        parts += ["All scores that were tried, means over the sets:", tried]
    return parts


if __name__ == "__main__":
    main(page, SETS, [("--seeds", {"type": int, "default": 10, "help": "repeats"})])
