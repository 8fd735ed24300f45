"""What else a call takes and returns: known labels, links, outlier scores, probabilities.

Pages: ``known_labels``, ``links``, ``outliers``, ``memberships``. README.md has the protocols.
"""

import warnings

import numpy as np
from common import Source, draw, load_source, main, number, reached, sources, table
from scipy.optimize import linear_sum_assignment, minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.cluster import KMeans
from sklearn.ensemble import IsolationForest
from sklearn.metrics import adjusted_rand_score, average_precision_score
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors
from sklearn.preprocessing import StandardScaler, scale
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC

import fastmmc
from fastmmc.data.links import join, partner_lists
from fastmmc.kernels.gram import default_width

# ------------------------------------------------------------------------------------- known labels

KNOWN_SETS = {
    "digits": Source("digits"),
    "usps": Source("usps", draw=2000),
    "coil": Source("coil20"),
    "letter A-H": Source("letter", tuple(range(8)), draw=2000),
}
TOLD = (1, 2, 5, 20)
KNOWN_SEEDS = 10
STARTS = 5

# How far the mean may fall below the run without labels.
ALLOWED_LOSS = 0.005

UMC = {"UMC-RLS": "equal", "UMC-RLS, free sizes": "free"}
CLASSIFIERS = {
    "LabelSpreading": lambda: LabelSpreading(kernel="knn", max_iter=1000),
    "SelfTraining(SVC)": lambda: SelfTrainingClassifier(SVC(probability=True, random_state=0)),
}


def load_known(name):
    source = KNOWN_SETS[name]
    X, y = draw(*load_source(source), source.draw, 0)
    return X, np.unique(y, return_inverse=True)[1]


def tell(y, count, seed):
    """Return the labels of so many random points a class, -1 elsewhere."""
    rng = np.random.default_rng(seed)
    known = np.full(y.size, -1)
    for label in np.unique(y):
        known[rng.choice(np.flatnonzero(y == label), count, replace=False)] = label
    return known


def unknown_agreement(y, labels, known):
    """Return the adjusted Rand index on the points whose labels are not known."""
    return adjusted_rand_score(y[known < 0], labels[known < 0])


def measure_clusters(name, sizes, seeds):
    """Return the unknown_agreement without labels and with them, (2, levels, seeds)."""
    X, y = load_known(name)
    factor, k = fastmmc.factor(X), y.max() + 1
    figures = np.empty((2, len(TOLD), seeds))
    for seed in range(seeds):
        options = {"sizes": sizes, "random_state": seed}
        if sizes == "equal":
            options["n_init"] = STARTS
        alone = fastmmc.umc_rls(factor, k, **options).labels
        for level, count in enumerate(TOLD):
            known = tell(y, count, seed)
            labels = fastmmc.umc_rls(factor, k, known_labels=known, **options).labels
            if (labels != known)[known >= 0].any():
                raise AssertionError("a known label was not kept")
            figures[:, level, seed] = (
                unknown_agreement(y, alone, known),
                unknown_agreement(y, labels, known),
            )
    return figures


def measure_peer(name, peer, seeds):
    """Return the unknown_agreement of a classifier of partly labelled points, (levels, seeds)."""
    X, y = load_known(name)
    figures = np.empty((len(TOLD), seeds))
    with warnings.catch_warnings():
        # Points that no label reaches, and SVC's own probabilities, of which few labels allow no
        # other.
        for category in (RuntimeWarning, FutureWarning):
            warnings.simplefilter("ignore", category)
        for level, count in enumerate(TOLD):
            for seed in range(seeds):
                known = tell(y, count, seed)
                labels = CLASSIFIERS[peer]().fit(X, known).predict(X)
                figures[level, seed] = unknown_agreement(y, labels, known)
    return figures


def rows_of_set(name, results):
    """Return the rows of one set, and how many cells reach each of the bars."""
    peers = {peer: results[name, peer].mean(axis=1) for peer in CLASSIFIERS}
    best = np.max(list(peers.values()), axis=0)
    rows, bars = [], {}
    for method in UMC:
        alone, told = results[name, method].mean(axis=2)
        rows.append([name, method, number(alone.mean(), 3), *(number(v, 3) for v in told)])
        bars[method] = np.array([told >= best, told >= alone - ALLOWED_LOSS])
        bars[method] = (*bars[method].sum(axis=1), (np.diff(told) >= -ALLOWED_LOSS).all())
    for peer, means in peers.items():
        rows.append([name, peer, "", *(number(v, 3) for v in means)])
    return rows, bars


def known_page(run):
    seeds = 2 if run.quick else KNOWN_SEEDS
    tasks = {(name, m): (measure_clusters, name, UMC[m], seeds) for name in run.sets for m in UMC}
    tasks |= {(name, p): (measure_peer, name, p, seeds) for name in run.sets for p in CLASSIFIERS}
    results = run.do(tasks)
    parts = [rows_of_set(name, results) for name in run.sets]
    cells = len(run.sets) * len(TOLD)
    verdicts = []
    for method in UMC:
        bars = [bars[method] for _, bars in parts]
        best, kept, rising = (sum(bar[i] for bar in bars) for i in range(3))
        verdicts.append(
            [
                method,
                f"{best} of {cells}",
                f"{kept} of {cells}",
                f"{rising} of {len(bars)}",
                reached(4 * best >= 3 * cells and kept == cells and rising == len(bars)),
            ]
        )
    yield "# Few known labels"
    yield run.made()
    yield (
        "Adjusted Rand index on the points whose labels are not known, mean of "
        f"{seeds} draws of the known ones, by the number of known labels a class."
    )
    header = ["set", "method", "none", *map(str, TOLD)]
    yield table(header, [row for rows, _ in parts for row in rows])
    yield table(
        [
            "method",
            "at least both classifiers",
            f"at most {ALLOWED_LOSS} below the run without labels",
            "rising with the labels",
            "all reached",
        ],
        verdicts,
    )


# -------------------------------------------------------------------------------------------- links

POINTS = 1000
LINK_SETS = sources("iris", "wine", "ionosphere", "pima", "breast cancer", "nine Gaussians") | {
    "pendigits 3-8-9": Source("pendigits", (3, 8, 9), POINTS),
    "letter I-J-L": Source("letter", (8, 9, 11), POINTS),
    "segment": Source("segment", draw=POINTS),
}

# Pairs of each kind, as a share of the points.
SHARES = (1 / 20, 1 / 10, 1 / 5)
LINK_SEEDS = 10

PROTOTYPES = {"C-RPCL": fastmmc.c_rpcl, "LCVQE": fastmmc.lcvqe}
COP = "COP-KMeans"
ATTEMPTS, ROUNDS = 10, 100


def load_links(name):
    source = LINK_SETS[name]
    if source.name == "nine_gaussians":
        X, y = fastmmc.datasets.make_nine_gaussians(900, random_state=0)
    else:
        X, y = draw(*load_source(source), source.draw, 0)
    return StandardScaler().fit_transform(X), np.unique(y, return_inverse=True)[1]


def draw_links(y, share, seed):
    """Return so many random pairs of equal classes, and of different ones."""
    rng = np.random.default_rng(seed)
    count = round(share * y.size)
    pairs = rng.integers(y.size, size=(100 * count, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    equal = y[pairs[:, 0]] == y[pairs[:, 1]]
    return pairs[equal][:count], pairs[~equal][:count]


def cop_kmeans(X, k, must, cannot, seed):
    """Return labels, None where every attempt found an object without a cluster.

    K. Wagstaff, C. Cardie, S. Rogers, S. Schroedl, ICML 2001; must-linked objects go together.
    """
    rng = np.random.default_rng(seed)
    group = join(must, len(X))
    sizes = np.bincount(group)
    means = np.array([np.bincount(group, x) / sizes for x in X.T]).T
    start, others = partner_lists(group[cannot], sizes.size)
    partners = np.split(others, start[1:-1])
    for _ in range(ATTEMPTS):
        centers, labels = means[rng.choice(sizes.size, k, replace=False)], None
        for _ in range(ROUNDS):
            distances = np.sum((means[:, None] - centers) ** 2, axis=2)
            new = np.full(sizes.size, -1)
            for i in rng.permutation(sizes.size):
                taken = new[partners[i]]
                distances[i, taken[taken >= 0]] = np.inf
                if np.isinf(distances[i]).all():
                    break
                new[i] = distances[i].argmin()
            if (new < 0).any():
                break
            weights = (new[:, None] == np.arange(k)) * sizes[:, None]
            centers = weights.T @ means / np.maximum(weights.sum(axis=0), 1)[:, None]
            if labels is not None and (new == labels).all():
                return new[group]
            labels = new
        else:
            return labels[group]
    return None


def measure_links(name, method, seeds):
    """Return the agreement with the classes without links and with them, (2, levels, seeds).

    Also the mean number of links broken, (levels,).
    """
    X, y = load_links(name)
    k = y.max() + 1
    factor = fastmmc.factor(X, k=k) if method in UMC else None
    figures, broken = np.full((2, len(SHARES), seeds), np.nan), np.zeros((len(SHARES), seeds))

    def run(seed, **links):
        if method in UMC:
            return fastmmc.umc_rls(factor, k, sizes=UMC[method], random_state=seed, **links).labels
        if method in PROTOTYPES:
            options = {} if method == "LCVQE" else {"min_share": 0.0}
            return PROTOTYPES[method](X, k, n_init=10, random_state=seed, **options, **links).labels
        none = np.empty((0, 2), dtype=int)
        must, cannot = links.get("must_link", none), links.get("cannot_link", none)
        return cop_kmeans(X, k, must, cannot, seed)

    with warnings.catch_warnings():
        # Sizes are compared, and not chosen by warnings.
        warnings.simplefilter("ignore")
        for seed in range(seeds):
            alone = adjusted_rand_score(y, run(seed))
            for level, share in enumerate(SHARES):
                must, cannot = draw_links(y, share, seed)
                labels = run(seed, must_link=must, cannot_link=cannot)
                figures[0, level, seed] = alone
                if labels is not None:
                    figures[1, level, seed] = adjusted_rand_score(y, labels)
                    broken[level, seed] = np.sum(labels[must[:, 0]] != labels[must[:, 1]])
                    broken[level, seed] += np.sum(labels[cannot[:, 0]] == labels[cannot[:, 1]])
    return figures, broken


def links_page(run):
    seeds = 2 if run.quick else LINK_SEEDS
    methods = [*UMC, *PROTOTYPES, COP]
    tasks = {(name, m): (measure_links, name, m, seeds) for name in run.sets for m in methods}
    results = run.do(tasks)
    rows, bars = [], {method: np.zeros(4, dtype=int) for method in UMC}
    for name in run.sets:
        means = {}
        for method in methods:
            figures, broken = results[name, method]
            alone, told = figures[0].mean(), np.nanmean(figures[1], axis=1)
            means[method] = alone, told, broken.sum(axis=1)
            failed = np.isnan(figures[1]).sum(axis=1)
            cells = [
                number(v, 3) + (f" ({f} failed)" if f else "")
                for v, f in zip(told, failed, strict=True)
            ]
            average = broken.mean(axis=1)
            rows.append([name, method, number(alone, 3), *cells, *(number(b, 1) for b in average)])
        for method in UMC:
            alone, told, violated = means[method]
            bars[method] += [
                np.sum(told >= alone),
                np.sum(told >= means["C-RPCL"][1]),
                np.sum(told >= means["LCVQE"][1]),
                np.sum(violated == 0),
            ]
    cells = len(run.sets) * len(SHARES)
    yield "# Must-links and cannot-links"
    yield run.made()
    yield (
        f"Adjusted Rand index, mean of {seeds} draws of the links, by the number of must-links, "
        "and of as many cannot-links; and the mean number of links that the labels break."
    )
    levels = [f"n/{round(1 / share)}" for share in SHARES]
    header = ["set", "method", "none", *levels, *(f"broken, {level}" for level in levels)]
    yield table(header, rows)
    header = ["method", "at least without", "at least C-RPCL", "at least LCVQE", "none broken"]
    yield table(
        [*header, "all reached"],
        [
            [method, *(f"{bar} of {cells}" for bar in found), reached((found == cells).all())]
            for method, found in bars.items()
        ],
    )


# ----------------------------------------------------------------------------------------- outliers

# The score was chosen on the sets of the first group, without a look at the others.
CHOSEN_ON = sources(
    "breast_cancer", "digits", "iris", "moons", "page_blocks", "pima", "satimage", "usps"
)
HELD_OUT = sources(
    "coil", "ionosphere", "nine_gaussians", "pendigits 3-8-9", "rings", "segment", "wine"
) | {"letter A-H": Source("letter", tuple(range(8)))}
NOISY_SETS = CHOSEN_ON | HELD_OUT
NOISY_STANDARDISED = {"breast_cancer", "ionosphere", "page_blocks", "pima", "segment", "wine"}

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
TRIMMERS = {"umc_rls": fastmmc.umc_rls, "cluster": fastmmc.cluster}

MOST_NOISY, MOST_TRIMMED = 1200, 600
NOISE_SEEDS, SEEDS_TRIMMED = 3, 5
NOISE = 0.05


def load_noisy(name, most, seed):
    """Return points with 5 % of noise, uniform in the box around them, and the classes, -1 there.

    Of more than ``most`` points as many are drawn.
    """
    X, y = load_source(NOISY_SETS[name])
    if name in NOISY_STANDARDISED:
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
    X, y = load_noisy(name, MOST_NOISY, seed)
    found = scores(X, int(y.max()) + 1, seed)
    return {score: average_precision_score(y < 0, values) for score, values in found.items()}


def measure_trimming(name, method, seed):
    """Return adjusted Rand indices without trim and with, (2, 2).

    The first are of the points that are no noise and have labels in both runs, the second of all
    that are no noise, where one that was left out counts in the cluster that ``predict`` names.
    """
    X, y = load_noisy(name, MOST_TRIMMED, seed)
    k, real = int(y.max()) + 1, y >= 0
    plain = TRIMMERS[method](X, k, random_state=seed)
    trimmed = TRIMMERS[method](X, k, trim=NOISE / (1 + NOISE), random_state=seed)
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
        for method in TRIMMERS:
            runs = [results["trimming", name, method, seed] for seed in range(seeds)]
            rest, real = np.mean(runs, axis=0)
            figures = [number(value, 3) for value in (*rest, *real)]
            rows.append([name, method, *figures[:2], reached(rest[1] >= rest[0]), *figures[2:]])
    header = ["set", "method", "rest", "rest, trim", "bar", "all", "all, trim"]
    return table(header, rows)


def outliers_page(run):
    names = list(run.load(lambda source: load_source(source)[1].size))
    seeds, seeds_trimmed = (1, 1) if run.quick else (NOISE_SEEDS, SEEDS_TRIMMED)
    trimmed = [name for name in names if name in TRIMMED]
    tasks = {
        ("scores", name, seed): (measure_scores, name, seed)
        for name in names
        for seed in range(seeds)
    }
    tasks |= {
        ("trimming", name, method, seed): (measure_trimming, name, method, seed)
        for name in trimmed
        for method in TRIMMERS
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


# ------------------------------------------------------------------------------------ probabilities

MOST = 2000
OWN = {"letter A-H": Source("letter", tuple(range(8)))}
SOFT_SETS = sources("digits", "iris", "wine", "pendigits 3-8-9", "usps", "coil") | OWN
SOFT_STANDARDISED = {"wine"}

# Bars of the first set, digits.
BINS = 15
MOST_ERROR = 0.05


def load_soft(name, seed):
    """Return at most 2,000 points, drawn by the seed, and their classes 0..k-1."""
    X, y = load_source(SOFT_SETS[name])
    if name in SOFT_STANDARDISED:
        X = scale(X[:, X.std(axis=0) > 0])
    X, y = draw(X, y, MOST if y.size > MOST else None, seed)
    return X, np.unique(y, return_inverse=True)[1]


def solve(method, X, k, seed):
    return {"umc_rls": fastmmc.umc_rls, "cluster": fastmmc.cluster}[method](X, k, random_state=seed)


def renumbered(y, labels, k):
    """Return the classes by the numbers of the clusters that match them best."""
    counts = np.zeros((k, k))
    np.add.at(counts, (labels, y), 1)
    classes = linear_sum_assignment(counts, maximize=True)[1]
    return np.argsort(classes)[y]


def soft_figures(p, y):
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
    """Return ``{method: soft_figures}``."""
    X, y = load_soft(name, seed)
    k = int(y.max()) + 1
    found = {}
    for method in ("umc_rls", "cluster"):
        result = solve(method, X, k, seed)
        truth = renumbered(y, result.labels, k)
        found[method] = soft_figures(result.probabilities, truth)
        found[f"{method}, labels alone"] = soft_figures(np.eye(k)[result.labels], truth)
        found[f"{method}, likelihood"] = soft_figures(
            likeliest(result.loo_scores, result.labels), truth
        )
    means = KMeans(k, n_init=10, random_state=seed).fit(X)
    found["k-means"] = soft_figures(
        softmax(-means.transform(X), axis=1), renumbered(y, means.labels_, k)
    )
    mixture = GaussianMixture(k, covariance_type="diag", reg_covar=1e-3, random_state=seed).fit(X)
    p = mixture.predict_proba(X)
    found["Gaussian mixture"] = soft_figures(p, renumbered(y, p.argmax(axis=1), k))
    return found


def probability_table(results, names, seeds):
    rows = []
    for name in names:
        runs = [results[name, seed] for seed in range(seeds)]
        for method in runs[0]:
            means = np.mean([run[method] for run in runs], axis=0)
            rows.append([name, method, *(number(value, 3) for value in means)])
    return table(["set", "method", "accuracy", "calibration error", "Brier score"], rows)


def memberships_page(run):
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


PAGES = {
    "known_labels": (known_page, KNOWN_SETS),
    "links": (links_page, LINK_SETS),
    "outliers": (outliers_page, NOISY_SETS),
    "memberships": (memberships_page, SOFT_SETS),
}

if __name__ == "__main__":
    main(PAGES, [("--seeds", {"type": int, "default": 10, "help": "repeats of probabilities"})])
