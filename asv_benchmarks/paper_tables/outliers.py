"""Measure outlier scores against noise that was added, and clusters with and without trimming.

See README.md in this folder for the protocols.
"""

import numpy as np
from common import Source, draw, load_source, main, number, reached, sources, table
from sklearn.ensemble import IsolationForest
from sklearn.metrics import adjusted_rand_score, average_precision_score
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors
from sklearn.preprocessing import scale

import fastmmc
from fastmmc.kernels.gram import default_width

# The score was chosen on the sets of the first group, without a look at the others.
CHOSEN_ON = sources(
    "breast_cancer", "digits", "iris", "moons", "page_blocks", "pima", "satimage", "usps"
)
HELD_OUT = sources(
    "coil", "ionosphere", "nine_gaussians", "pendigits 3-8-9", "rings", "segment", "wine"
) | {"letter A-H": Source("letter", tuple(range(8)))}
SETS = CHOSEN_ON | HELD_OUT
STANDARDISED = {"breast_cancer", "ionosphere", "page_blocks", "pima", "segment", "wine"}

# Clusters are made of those whose classes are clusters.
TRIMMED = (
    "breast_cancer",
    "digits",
    "iris",
    "moons",
    "nine_gaussians",
    "pendigits 3-8-9",
    "rings",
    "segment",
    "wine",
)
METHODS = {"umc_rls": fastmmc.umc_rls, "cluster": fastmmc.cluster}

MOST, MOST_TRIMMED = 1200, 600
SEEDS, SEEDS_TRIMMED = 3, 5
NOISE = 0.05


def load(name, most, seed):
    """Return points with 5 % of noise, uniform in the box around them, and the classes, -1 there.

    Of more than ``most`` points as many are drawn.
    """
    X, y = load_source(SETS[name])
    if name in STANDARDISED:
        X = scale(X[:, X.std(axis=0) > 0])
    X, y = draw(X, y, most if y.size > most else None, seed)
    y = np.unique(y, return_inverse=True)[1]
    rng = np.random.default_rng([seed, 1])
    count = max(1, round(NOISE * len(X)))
    noise = rng.uniform(X.min(axis=0), X.max(axis=0), (count, X.shape[1]))
    return np.vstack([X, noise]), np.append(y, np.full(count, -1))


def shares(R, power, exponent):
    """Return R_jj^e / (R_jj^e + (sum_i R_ij^p)^(e/p)), where i is not j."""
    own = np.diag(R) ** exponent
    others = (np.abs(R - np.diag(np.diag(R))) ** power).sum(axis=1) ** (exponent / power)
    return own / (own + others)


def scores(X, k, seed):
    """Return ``{name: outlier score}``."""
    sigma = default_width(k)(X)
    R, sharper, sharpest = (
        fastmmc.factor(X, sigma=sigma, lam=lam, rank=None).R for lam in (0.25, 0.05, 0.025)
    )
    neighbours = NearestNeighbors(n_neighbors=10).fit(X).kneighbors()[0]
    given = {"method": "steepest", "init": np.arange(len(X)) % k, "max_iter": 0}
    return {
        "outlier_scores": fastmmc.umc_rls(X, k, **given).outlier_scores,
        "IsolationForest": -IsolationForest(random_state=seed).fit(X).score_samples(X),
        "LOF": -LocalOutlierFactor().fit(X).negative_outlier_factor_,
        "R_jj": np.diag(R),
        "R_jj^2 / sum_i R_ij^2": shares(R, 2, 2),
        "4-norm": shares(R, 4, 2),
        "2-norm, lam / 5": shares(sharper, 2, 2),
        "3-norm, lam / 5": shares(sharper, 3, 2),
        "4-norm, lam / 5": shares(sharper, 4, 2),
        "4-norm, lam / 10": shares(sharpest, 4, 2),
        "distance to the 5th neighbour": neighbours[:, 4],
        "mean distance to 10 neighbours": neighbours.mean(axis=1),
    }


def measure_scores(name, seed):
    """Return ``{score: average precision}``."""
    X, y = load(name, MOST, seed)
    found = scores(X, int(y.max()) + 1, seed)
    return {score: average_precision_score(y < 0, values) for score, values in found.items()}


def measure_trimming(name, method, seed):
    """Return adjusted Rand indices without trim and with, (2, 2).

    The first are of the points that are no noise and have labels in both runs, the second of all
    that are no noise, where one that was left out counts in the cluster that ``predict`` names.
    """
    X, y = load(name, MOST_TRIMMED, seed)
    k, real = int(y.max()) + 1, y >= 0
    plain = METHODS[method](X, k, random_state=seed)
    trimmed = METHODS[method](X, k, trim=NOISE / (1 + NOISE), random_state=seed)
    rest = real & (trimmed.labels >= 0)
    of_all = np.where(trimmed.labels >= 0, trimmed.labels, trimmed.predict(X))
    return [
        [adjusted_rand_score(y[points], labels[points]) for labels in (plain.labels, of_all)]
        for points in (rest, real)
    ]


def score_tables(results, names, seeds):
    """Return the table of the scores by sets, and that of the means of all."""
    means = {}
    for name in names:
        runs = [results["scores", name, seed] for seed in range(seeds)]
        means[name] = {score: np.mean([run[score] for run in runs]) for score in runs[0]}
    shown = ["outlier_scores", "IsolationForest", "LOF"]
    rows, n_reached = [], {}
    for name, found in means.items():
        best = max(found["IsolationForest"], found["LOF"])
        values = [number(found[score], 3) for score in shown]
        rows.append([name, *values, reached(found["outlier_scores"] >= best)])
        for score, value in found.items():
            n_reached[score] = n_reached.get(score, 0) + (value >= best)
    groups = {"chosen on": CHOSEN_ON, "held out": HELD_OUT}
    all_tried = []
    for score, count in n_reached.items():
        of_groups = [
            np.mean([means[name][score] for name in names if name in group] or [np.nan])
            for group in groups.values()
        ]
        all_tried.append([score, *(number(v, 3) for v in of_groups), f"{count} of {len(names)}"])
    header = ["score", *(f"mean, {group}" for group in groups), "at least both peers"]
    return table(["set", *shown, "bar"], rows), table(header, all_tried)


def trimming_table(results, names, seeds):
    rows = []
    for name in names:
        for method in METHODS:
            runs = [results["trimming", name, method, seed] for seed in range(seeds)]
            rest, real = np.mean(runs, axis=0)
            figures = [number(value, 3) for value in (*rest, *real)]
            rows.append([name, method, *figures[:2], reached(rest[1] >= rest[0]), *figures[2:]])
    header = ["set", "method", "rest", "rest, trim", "bar", "all", "all, trim"]
    return table(header, rows)


def page(run):
    names = list(run.load(lambda source: load_source(source)[1].size))
    seeds, seeds_trimmed = (1, 1) if run.quick else (SEEDS, SEEDS_TRIMMED)
    trimmed = [name for name in names if name in TRIMMED]
    tasks = {
        ("scores", name, seed): (measure_scores, name, seed)
        for name in names
        for seed in range(seeds)
    }
    tasks |= {
        ("trimming", name, method, seed): (measure_trimming, name, method, seed)
        for name in trimmed
        for method in METHODS
        for seed in range(seeds_trimmed)
    }
    results = run.do(tasks)
    by_set, all_tried = score_tables(results, names, seeds)
    yield "# Outliers"
    yield run.made()
    yield "## Scores"
    yield f"Average precision, mean over {seeds} draws of points and noise."
    yield by_set
    yield "Other scores; those of the hat matrix take it of all points:"
    yield all_tried
    if trimmed:
        yield "## Trimming"
        yield (
            f"Adjusted Rand index of points that are no noise, mean over {seeds_trimmed} draws: of "
            "the rest, which was not left out, and of all. As many are left out as were added."
        )
        yield trimming_table(results, trimmed, seeds_trimmed)


if __name__ == "__main__":
    main(page, SETS)
