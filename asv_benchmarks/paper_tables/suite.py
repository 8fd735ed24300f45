"""Measure every method over a clustering suite, k given and k unknown, beside scikit-learn's.

See README.md in this folder for the protocol.
"""

import csv
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from common import draw, main, number, table
from scipy.sparse.csgraph import laplacian
from sklearn.cluster import (
    HDBSCAN,
    AgglomerativeClustering,
    Birch,
    KMeans,
    SpectralClustering,
)
from sklearn.metrics import adjusted_rand_score, silhouette_score
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import kneighbors_graph

import fastmmc
from fastmmc import datasets

# Points drawn of each set where k is given, and points of the largest set where it is not.
DRAWN = 1_200
MOST_POINTS = 1_000
QUICK_POINTS = 300

# Numbers of clusters that are considered where k is not given.
MOST_COUNT = 12
BEYOND = 1.3

NEIGHBOURS = 10

PUBLISHED = {
    "Genie_G0.3": "Genie (threshold 0.3)",
    "GIc": "Genie+Ic",
    "ITM": "ITM",
    "sklearn_gm": "GaussianMixture",
    "sklearn_spectral_Arbf_G5": "SpectralClustering (Gaussian, gamma 5)",
    "sklearn_kmeans": "KMeans",
    "sklearn_birch_T0.01_BF50": "Birch (threshold 0.01)",
    "fastcluster_ward": "Ward",
    "fastcluster_average": "average linkage",
}


def by_neighbours(k):
    return SpectralClustering(
        k, affinity="nearest_neighbors", n_neighbors=NEIGHBOURS, random_state=0
    )


PEERS = {
    "KMeans": lambda k: KMeans(k, n_init=10, random_state=0),
    "GaussianMixture": lambda k: GaussianMixture(k, random_state=0),
    "SpectralClustering": by_neighbours,
    "AgglomerativeClustering, Ward": lambda k: AgglomerativeClustering(k),
    "AgglomerativeClustering, average": lambda k: AgglomerativeClustering(k, linkage="average"),
    "Birch": lambda k: Birch(n_clusters=k),
}

VARIANTS = {
    'umc_rls, sizes="free"': {"sizes": "free"},
    'umc_rls, method="memetic"': {"method": "memetic"},
}
OURS = {
    method.function.__name__: method.function
    for method in fastmmc.METHODS.values()
    if not method.binary
}
OURS |= {name: partial(fastmmc.umc_rls, **told) for name, told in VARIANTS.items()}
# Those of two clusters that take more points than a semidefinite program can.
BINARY = {
    method.function.__name__: method.function
    for method in fastmmc.METHODS.values()
    if method.binary and method.extra is None
}

# Methods whose scores are shown set by set.
SHOWN = ("cluster", "umc_rls", *VARIANTS, "KMeans", "GaussianMixture", "SpectralClustering")
SHOWN_PUBLISHED = ("Genie_G0.3", "ITM")


def read_set(name, folder):
    """Return points and reference labellings, (r, n), whose clusters are 1..k and noise 0."""
    if folder is None:
        X, y = datasets.load(name)
        return X, y[None] + 1
    with np.load(folder / f"{name}.npz") as file:
        return file["X"].astype(np.float64), np.atleast_2d(file["y"]).astype(np.int64)


def load_drawn(name, folder, size):
    """Return at most ``size`` random points of a set and their reference labellings."""
    X, references = read_set(name, folder)
    X, drawn = draw(X, np.arange(len(X)), min(size, len(X)), 0)
    return X, references[:, drawn]


def count_clusters(reference):
    return np.unique(reference[reference > 0]).size


def agreement(reference, labels):
    """Return the adjusted Rand index on the points that the reference does not call noise."""
    told = reference > 0
    return adjusted_rand_score(reference[told], labels[told])


def label(method, X, k):
    """Return the labels of a method that is told k."""
    if method in PEERS:
        return PEERS[method](k).fit_predict(X)
    if method in BINARY:
        return BINARY[method](X, random_state=0).labels
    return OURS[method](X, k, random_state=0).labels


def measure_given(method, name, folder, size):
    """Return the best agreement with a reference labelling, each with its own k."""
    X, references = load_drawn(name, folder, size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {k: label(method, X, k) for k in {count_clusters(r) for r in references}}
    return max(agreement(r, found[count_clusters(r)]) for r in references)


def measure_binary(method, name, folder, size):
    """Return the best agreement with a reference labelling of two clusters."""
    X, references = load_drawn(name, folder, size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        labels = label(method, X, 2)
    return max(agreement(r, labels) for r in references if count_clusters(r) == 2)


def choose_by_vote(X, most):
    return fastmmc.cluster(X, "auto", max_k=most, random_state=0).labels


def choose_by_silhouette(X, most):
    found = [PEERS["KMeans"](k).fit_predict(X) for k in range(2, most + 1)]
    return max(found, key=lambda labels: silhouette_score(X, labels))


def choose_by_bic(X, most):
    mixtures = [PEERS["GaussianMixture"](k).fit(X) for k in range(2, most + 1)]
    return min(mixtures, key=lambda mixture: mixture.bic(X)).predict(X)


def choose_by_eigengap(X, most):
    graph = kneighbors_graph(X, NEIGHBOURS, include_self=True).toarray()
    values = np.linalg.eigvalsh(laplacian((graph + graph.T) / 2, normed=True))
    gaps = np.diff(values[: most + 1])
    return by_neighbours(int(gaps[1:].argmax()) + 2).fit_predict(X)


def choose_by_density(X, most, share=None):
    told = {} if share is None else {"min_cluster_size": max(2, round(share * len(X)))}
    return HDBSCAN(copy=True, **told).fit_predict(X)


CHOICES = {
    'cluster, k="auto"': choose_by_vote,
    "KMeans, silhouette": choose_by_silhouette,
    "GaussianMixture, BIC": choose_by_bic,
    "SpectralClustering, eigengap": choose_by_eigengap,
    "HDBSCAN": choose_by_density,
    "HDBSCAN, min_cluster_size = n / 50": partial(choose_by_density, share=1 / 50),
}


def measure_unknown(method, name, folder):
    """Return the number of clusters found, and the best agreement with a reference labelling."""
    X, references = read_set(name, folder)
    largest = max(count_clusters(r) for r in references)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        labels = CHOICES[method](X, max(MOST_COUNT, int(np.ceil(BEYOND * largest))))
    # Noise of HDBSCAN, -1, is a cluster of the agreement but not of the count.
    return np.unique(labels[labels >= 0]).size, max(agreement(r, labels) for r in references)


def read_published(folder):
    """Return {set: {method: agreement}} of the scores that came with the suite."""
    if folder is None or not (folder / "published.csv").is_file():
        return {}
    with (folder / "published.csv").open(encoding="utf-8") as file:
        rows = csv.DictReader(file)
        return {
            row["set"]: {m: float(row[m]) if row.get(m) else np.nan for m in PUBLISHED}
            for row in rows
        }


def rows_of_means(scores, published, names):
    """Return one row a method, the highest mean first, then those of the published scores."""
    table_of = np.array([[scores[m, name] for name in names] for m in (*OURS, *PEERS)])
    won = (table_of.round(3) == table_of.round(3).max(axis=0)).sum(axis=1)
    order = np.argsort(-table_of.mean(axis=1))
    methods = [f"`{m}`" if m in OURS else m for m in (*OURS, *PEERS)]
    rows = [[methods[i], number(table_of[i].mean(), 3), won[i]] for i in order]
    for method, said in PUBLISHED.items():
        known = [published[name][method] for name in names if name in published]
        if known:
            rows.append([f"{said}, published", number(np.nanmean(known), 3), ""])
    return rows


def rows_of_sets(scores, published, sizes, names):
    rows = []
    for name in names:
        row = [name, sizes[name][0], " ".join(map(str, sizes[name][1]))]
        row += [number(scores[m, name], 3) for m in SHOWN]
        if published:
            row += [number(published.get(name, {}).get(m), 3) for m in SHOWN_PUBLISHED]
        rows.append(row)
    return rows


def rows_of_two(scores, names):
    """Return one row a method for two clusters, and a row of each shown one beside them."""
    rows = []
    for method in (*BINARY, *SHOWN):
        values = [scores[method, name] for name in names]
        said = method if method in PEERS else f"`{method}`"
        rows.append([said, number(np.mean(values), 3), *(number(v, 2) for v in values)])
    return rows


def rows_of_choices(found, sizes, names):
    rows = []
    for method in CHOICES:
        right = sum(found[method, name][0] in sizes[name][1] for name in names)
        mean = np.mean([found[method, name][1] for name in names])
        rows.append([method, f"{right} of {len(names)}", number(mean, 3)])
    return rows


def rows_of_counts(found, sizes, names):
    return [
        [
            name,
            " ".join(map(str, sizes[name][1])),
            *(f"{found[m, name][0]} ({number(found[m, name][1])})" for m in CHOICES),
        ]
        for name in names
    ]


def page(run):
    folder = run.suite
    if folder is None:
        names = [*datasets.BUNDLED, *datasets.GENERATED]
    else:
        names = sorted(path.stem for path in folder.glob("*.npz"))
    drawn = QUICK_POINTS if run.quick else DRAWN
    sizes = {}
    for name in names:
        X, references = read_set(name, folder)
        sizes[name] = len(X), [count_clusters(r) for r in references]
    two = [name for name in names if 2 in sizes[name][1]]
    few = [name for name in names if sizes[name][0] <= (drawn if run.quick else MOST_POINTS)]
    published = read_published(folder)

    tasks = {
        (m, name): (measure_given, m, name, folder, drawn)
        for m in (*PEERS, *OURS)
        for name in names
    }
    scores = run.do(tasks)
    halves = run.do(
        {(m, n): (measure_binary, m, n, folder, drawn) for m in (*BINARY, *SHOWN) for n in two}
    )
    found = run.do({(m, name): (measure_unknown, m, name, folder) for m in CHOICES for name in few})

    yield "# A clustering suite"
    yield run.made()
    yield (
        f"{run.about} {len(names)} sets. Figures are adjusted Rand indices with the reference "
        "labelling that agrees best; points that it calls noise are left out of the score, not "
        "of the data. Values are raw, one call with the seed 0, no setting by set."
    )
    yield "## k given"
    yield (
        f"Sets of more than {drawn:,} points are cut to so many random ones (seed 0), for all "
        "methods but the published ones, which had all points and come with the suite. A set is "
        "won by every method that is best to three digits among those run here. LCVQE and its kin "
        "had no constraints, and RPCL may leave clusters out."
    )
    yield table(["method", "mean ARI", "sets won"], rows_of_means(scores, published, names))
    yield "### Set by set"
    header = ["set", "n", "k", *(f"`{m}`" if m in OURS else m for m in SHOWN)]
    if published:
        header += [f"{PUBLISHED[m]}, published" for m in SHOWN_PUBLISHED]
    yield table(header, rows_of_sets(scores, published, sizes, names))
    if two:
        yield "### Two clusters"
        yield (
            "The sets with a reference of two clusters, by these references alone. The methods for "
            "two clusters stand beside those of the table above."
        )
        yield table(["method", "mean ARI", *two], rows_of_two(halves, two))
    yield "## k unknown"
    yield (
        f"The {len(few)} sets of at most {drawn if run.quick else MOST_POINTS:,} points, whole. "
        f"Numbers from 2 to {MOST_COUNT} are considered, or to {BEYOND} times the largest "
        "k of a reference where that is more; HDBSCAN has no such limit. Its noise is one more "
        "cluster of the agreement, not of the count."
    )
    yield table(["method", "k of a reference", "mean ARI"], rows_of_choices(found, sizes, few))
    yield "### Number of clusters found, and ARI"
    yield table(["set", "k", *CHOICES], rows_of_counts(found, sizes, few))


if __name__ == "__main__":
    main(
        page,
        options=[
            (
                "--suite",
                {"type": Path, "help": "folder of .npz files (X, y) and published.csv"},
            ),
            (
                "--about",
                {"default": "The bundled and generated sets.", "help": "the page's first words"},
            ),
        ],
    )
