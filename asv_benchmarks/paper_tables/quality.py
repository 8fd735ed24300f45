"""Quality of labels: every collection, every method and its rivals, k given and k unknown."""

import csv
import time
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import common
import numpy as np
import shapes
from common import number, under
from scipy.sparse.csgraph import laplacian
from scipy.sparse.linalg import svds
from sklearn.cluster import HDBSCAN, AgglomerativeClustering, Birch, MiniBatchKMeans
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics import adjusted_rand_score, silhouette_score
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import kneighbors_graph
from sklearn.preprocessing import normalize, scale

import fastmmc
from fastmmc import datasets
from fastmmc.choice.results import RULES
from fastmmc.choice.widths import Genie
from fastmmc.kernels.gram import median_width, squared_distances

# Points drawn of a set where k is given, and of the largest set where it is not.
DRAWN, MOST_POINTS, QUICK_POINTS = 1_200, 1_000, 300
# Numbers of clusters that are considered where k is not given: up to this, or to as many times k.
MOST_COUNT, BEYOND = 12, 1.3
GINI, LANDMARKS = 0.3, 1_000  # threshold of the published Genie, and landmarks of Nyström


# ----------------------------------------------------------------------------------------- methods
# A rival is a function of points, k and seed that returns labels.


def model(make, **given):
    """Return a rival that has no seed."""
    return lambda X, k, seed: make(n_clusters=k, **given).fit_predict(X)


def nystroem_spectral(X, k, seed):
    """Cluster in the leading eigenvectors of the normalised Nyström Gram matrix."""
    gamma, rank = 1 / median_width(X) ** 2, min(LANDMARKS, X.shape[0])
    Z = Nystroem(gamma=gamma, n_components=rank, random_state=seed).fit_transform(X)
    degrees = np.maximum(Z @ Z.sum(axis=0), 1e-12)
    U = svds(Z / np.sqrt(degrees)[:, None], k, random_state=seed)[0]
    return common.k_means(normalize(U), k, seed)


PEERS = {
    "KMeans": common.k_means,
    "MiniBatchKMeans": partial(common.k_means, make=MiniBatchKMeans),
    "GaussianMixture": common.mixture,
    "GaussianMixture, n_init=5": partial(common.mixture, n_init=5),
    "SpectralClustering": common.spectral,
    "Nyström-spectral": nystroem_spectral,
    "AgglomerativeClustering, Ward": model(AgglomerativeClustering),
    "AgglomerativeClustering, average": model(AgglomerativeClustering, linkage="average"),
    "AgglomerativeClustering, single": model(AgglomerativeClustering, linkage="single"),
    "Birch": model(Birch),
    f"Genie (threshold {GINI})": lambda X, k, seed: Genie(squared_distances(X, X)).cut(k)[GINI],
}


# Those that are able to take more points than a semidefinite program.
ABLE = [method for method in fastmmc.METHODS.values() if method.extra is None]
BINARY, OURS = (
    {method.function.__name__: method.function for method in ABLE if method.binary == binary}
    for binary in (True, False)
)
FREE = 'umc_rls, sizes="free"'
OURS[FREE] = partial(fastmmc.umc_rls, sizes="free")


def by_vote(X, most):
    return fastmmc.cluster(X, "auto", max_k=most, random_state=0).labels


def by_silhouette(X, most):
    found = [common.k_means(X, k) for k in range(2, most + 1)]
    return max(found, key=lambda labels: silhouette_score(X, labels))


def by_bic(X, most):
    mixtures = [GaussianMixture(k, random_state=0).fit(X) for k in range(2, most + 1)]
    return min(mixtures, key=lambda mixture: mixture.bic(X)).predict(X)


def by_eigengap(X, most):
    graph = kneighbors_graph(X, 10, include_self=True).toarray()
    values = np.linalg.eigvalsh(laplacian((graph + graph.T) / 2, normed=True))
    gaps = np.diff(values[: most + 1])
    return common.spectral(X, int(gaps[1:].argmax()) + 2)


def by_density(X, most, share=None):
    given = {} if share is None else {"min_cluster_size": max(2, round(share * len(X)))}
    return HDBSCAN(copy=True, **given).fit_predict(X)


CHOICES = {
    'cluster, k="auto"': by_vote,
    "KMeans, silhouette": by_silhouette,
    "GaussianMixture, BIC": by_bic,
    "SpectralClustering, eigengap": by_eigengap,
    "HDBSCAN": by_density,
    "HDBSCAN, min_cluster_size = n / 50": partial(by_density, share=1 / 50),
}

# Rivals that are there if their packages are.
if find_spec("lumbermark"):
    PEERS["Lumbermark"] = model(import_module("lumbermark").Lumbermark)
if find_spec("fast_plscan"):
    PLSCAN = import_module("fast_plscan").PLSCAN
    CHOICES["PLSCAN"] = lambda X, most: PLSCAN().fit_predict(X)


# -------------------------------------------------------------------------------------------- sets
STANDARDISED = "wine", "breast_cancer"
DRAWN_SETS = "usps", "pendigits", "satimage", "segment", "letter A-H"
REAL = "digits", *STANDARDISED, "blobs 900/80/20", *DRAWN_SETS
LARGE = "digits", "coil20", "satimage", "usps", "letter"
OF_LARGE = "umc_rls", FREE, "KMeans", "MiniBatchKMeans", "Nyström-spectral"
OF_LARGE += ("AgglomerativeClustering, Ward",)


def load(page, name, seed, folder, size):
    """Return at most ``size`` random points of a set, and its reference labellings, (r, n).

    Their clusters are 1..k, and noise is 0.
    """
    if page == "shapes":
        X, y = shapes.make(name, seed)
    elif page == "suite" and folder is not None:
        with np.load(folder / f"{name}.npz") as file:
            X, y = file["X"].astype(np.float64), file["y"].astype(np.int64)
    elif page == "choice":
        X, y = common.load(name, seed, DRAWN if name in DRAWN_SETS else None)
        X, y = scale(X) if name in STANDARDISED else X, y + 1
    else:
        X, y = common.load(name)
        y = y + 1
    references = np.atleast_2d(y)
    if size and size < len(X):
        drawn = np.random.default_rng(0).choice(len(X), size, replace=False)
        X, references = X[drawn], references[:, drawn]
    return X, references


# ------------------------------------------------------------------------------------ measurements


def count_clusters(reference):
    return np.unique(reference[reference > 0]).size


def agreement(reference, labels):
    """Return the adjusted Rand index on the points that the reference does not call noise."""
    known = reference > 0
    return adjusted_rand_score(reference[known], labels[known])


def label(method, X, k, seed):
    """Return the labels of a method that is given k, and other labels that it considered."""
    if method in PEERS:
        return PEERS[method](X, k, seed), []
    if method in BINARY:
        return BINARY[method](X, random_state=seed).labels, []
    result = OURS[method](X, k, random_state=seed)
    if method != "cluster":
        return result.labels, []
    considered = [one for one in result.candidates if one.rule in RULES]
    return result.labels, [one.labels[result.cells] for one in considered]


def measure_given(method, of, seed=0, only=None):
    """Return the best agreement with a reference, that of the best labels considered, and seconds.

    Each reference has its own k; ``only`` limits them to those of one number of clusters.
    """
    X, references = load(*of)
    best, tried, spent = -1.0, -1.0, 0.0
    for k in {count_clusters(r) for r in references} if only is None else {only}:
        run = partial(label, method, X, k, seed)
        (labels, others), seconds = common.timed(run, clock=time.process_time)
        spent += seconds
        for reference in (r for r in references if count_clusters(r) == k):
            best = max(best, agreement(reference, labels))
            tried = max(tried, best, *(agreement(reference, one) for one in others))
    return best, tried, spent


def measure_unknown(method, of):
    """Return the number of clusters found, and the best agreement with a reference."""
    X, references = load(*of)
    most = max(MOST_COUNT, int(np.ceil(BEYOND * max(count_clusters(r) for r in references))))
    labels = CHOICES[method](X, most)
    # Noise of HDBSCAN, -1, is a cluster of the agreement but not of the count.
    return np.unique(labels[labels >= 0]).size, max(agreement(r, labels) for r in references)


# ------------------------------------------------------------------------------------------ tables


def shown_name(method):
    return f"`{method}`" if method in OURS or method in BINARY else method


def mean_of(values):
    return np.mean(list(values) or [np.nan])


def given_table(scores, seconds, names, groups, published):
    """Return one row a method, the highest mean first: means of all and of groups, sets won."""
    methods = list(dict.fromkeys(method for method, _ in scores))
    best = {name: max(round(scores[m, name], 3) for m in methods) for name in names}
    rows = []
    for method in sorted(methods, key=lambda m: -np.mean([scores[m, name] for name in names])):
        means = [mean_of(scores[method, n] for n in part) for part in (names, *groups.values())]
        won = sum(round(scores[method, name], 3) == best[name] for name in names)
        rows.append([shown_name(method), *means, won, f"{seconds[method]:.2f}"])
    for method, said in PUBLISHED.items() if published else ():
        known = np.nanmean([published[name][method] for name in names if name in published])
        rows.append([f"{said}, published", known, *("" for _ in groups), "", ""])
    return ["method", "mean ARI", *groups, "sets won", "seconds"], rows, 3


def set_table(values, tried, first, names, groups, published):
    """Return one row a set: its shape, and the agreement of methods."""
    shown = [m for m in SHOWN if (m, names[0]) in values]
    printed, rows = SHOWN_PUBLISHED if published else (), []
    for name, (X, references) in first.items():
        counts = " ".join(str(count_clusters(r)) for r in references)
        row = [name, *("yes" if name in part else "" for part in groups.values()), *X.shape]
        row += [counts, tried.get(name), *(values[m, name] for m in shown)]
        rows.append([*row, *(published.get(name, {}).get(m) for m in printed)])
    header = ["set", *groups, "n", "features", "k", "best tried", *map(shown_name, shown)]
    return [*header, *(f"{PUBLISHED[m]}, published" for m in printed)], rows, 3


def unknown_tables(found, counts, names, groups):
    """Return a row a method, how often a k of a reference was found and ARI, and a row a set."""
    parts = {"": names} | {f"{g} ": [n for n in part if n in names] for g, part in groups.items()}
    rows = []
    for method in CHOICES:
        rows.append([method])
        for part in parts.values():
            right = sum(found[method, name][0] in counts[name] for name in part)
            rows[-1] += f"{right} of {len(part)}", mean_of(found[method, n][1] for n in part)
    header = [f"{part}{said}" for part in parts for said in ("k found", "mean ARI")]
    yield ["method", *header], rows, 3
    yield "### Number of clusters found, and ARI"
    rows = (
        [name, " ".join(map(str, counts[name]))]
        + [f"{found[m, name][0]} ({number(found[m, name][1])})" for m in CHOICES]
        for name in names
    )
    yield ["set", "k", *CHOICES], rows


def binary_table(found, two):
    values = {m: np.array([found[m, name][0] for name in two]) for m in (*BINARY, *SHOWN)}
    rows = ([shown_name(m), f"{v.mean():.3f}", *v] for m, v in values.items())
    return ["method", "mean ARI", *two], rows


# ------------------------------------------------------------------------------------------- pages
SHOWN = ("cluster", "umc_rls", FREE, *PEERS)
SHOWN_PUBLISHED = ("Genie_G0.3", "ITM")
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


def read_published(folder):
    """Return {set: {method: agreement}} of the scores that came with the suite."""
    if folder is None or not (folder / "published.csv").is_file():
        return {}
    with (folder / "published.csv").open(encoding="utf-8") as file:
        return {
            row["set"]: {m: float(row[m]) if row.get(m) else np.nan for m in PUBLISHED}
            for row in csv.DictReader(file)
        }


OF_SHAPES = (
    "Sets that were made after the rules of `cluster` and the default of `umc_rls`, and bundled "
    'ones. Those that are "seen" were in view when later rules were made: see README.md.'
)
OF_CHOICE = (
    f"Real sets, of which a drawing has at most {DRAWN:,} points, and blobs of "
    f"{common.BLOB_SIZES} points; wine and breast_cancer are standardised."
)
# {page: (what it is about, seeds, whether methods have that of the drawing, most points of given
# k)}. The large sets have a few methods, and no tables of two clusters and of unknown k.
COLLECTIONS = {
    "suite": ("The bundled and generated sets.", 1, False, DRAWN),
    "shapes": (OF_SHAPES, 3, False, None),
    "choice": (OF_CHOICE, 10, True, None),
    "large_quality": ("Whole sets.", 10, True, None),
}


def names_of(run):
    """Return the sets of a page, and groups of them whose means stand beside."""
    if run.name == "suite":
        names = [*datasets.BUNDLED, *datasets.GENERATED]
        if run.suite is not None:
            names = sorted(path.stem for path in run.suite.glob("*.npz"))
        return run.pick(names, names[:3]), {}
    if run.name == "shapes":
        names = run.pick(list(run.sets), list(run.sets)[::16])
        seen = [name for name in names if name in shapes.SEEN]
        return names, {"seen": seen, "unseen": [name for name in names if name not in seen]}
    return run.loaded(), {}


def page(run):
    """Yield the page of a collection."""
    (about, seeds, seeded, most), (names, groups) = COLLECTIONS[run.name], names_of(run)
    is_whole = run.name == "large_quality"
    methods = OF_LARGE if is_whole else (*OURS, *PEERS)
    seeds = range(run.repeats(seeds, 1))
    size = most and run.pick(most, QUICK_POINTS)
    of = {(n, s): (run.name, n, s, run.suite, size) for n in names for s in seeds}
    runs = run.do(
        {(m, *at): (measure_given, m, of[at], at[1] if seeded else 0) for m in methods for at in of}
    )
    values = {(m, n): under(runs, m, n)[:, 0] for m in methods for n in names}
    scores = {at: found.mean() for at, found in values.items()}
    seconds = {m: under(runs, m)[:, 2].mean() for m in methods}
    tried = {n: under(runs, "cluster", n)[:, 1].mean() for n in names if ("cluster", n) in scores}
    first = {name: load(run.name, name, 0, run.suite, None) for name in names}
    published = read_published(run.suite)
    yield (
        f"{run.about or about} {len(names)} sets. Adjusted Rand indices with the reference that "
        "agrees best, without what it calls noise; every method has its defaults; CPU seconds."
    )
    yield "## k given"
    cut = f" Sets of more than {size:,} points are cut to that many random ones." if size else ""
    yield f"Drawings or seeds of each set: {len(seeds)}.{cut}"
    yield given_table(scores, seconds, names, groups, published)
    yield "### Set by set"
    yield '"Best tried": the best of the labels that `cluster` could have returned.'
    yield set_table(values if seeded else scores, tried, first, names, groups, published)
    if is_whole:
        return
    counts = {name: [count_clusters(r) for r in first[name][1]] for name in names}
    two = [name for name in names if 2 in counts[name]]
    if two:
        tasks = {(m, n): (measure_given, m, of[n, 0], 0, 2) for m in (*BINARY, *SHOWN) for n in two}
        yield "### Two clusters"
        yield "The sets with a reference of two clusters, by these references alone."
        yield binary_table(run.do(tasks), two)
    few = [name for name in names if len(first[name][0]) <= MOST_POINTS]
    whole = {name: (run.name, name, 0, run.suite, None) for name in few}
    found = run.do({(m, n): (measure_unknown, m, whole[n]) for m in CHOICES for n in few})
    yield "## k unknown"
    yield f"The {len(few)} sets of at most {MOST_POINTS:,} points, whole."
    yield from unknown_tables(found, counts, few, groups)


# ----------------------------------------------------------------- tables of the papers' pages
# {heading: tables by (page, heading that the table follows, its columns and perhaps their names
# here)}; the tables are joined, or shown whole where no columns are named.
SECTIONS = {
    "Two clusters: percentage of wrong labels": [
        ("iter_svr", "Clustering error", "KM; NC; GMM; iterSVM; iterSVR; iterLS-SVM"),
        ("evo_mmc", "Table 1", "EvoMMC; EvoMMC, paper; FastEvoMMC; FastEvoMMC, paper"),
        ("cutting_plane", "CPMMC", "linear or Gaussian: CPMMC; paper: CPMMC, paper"),
        ("cutting_plane", "CPMMC", "smallest error of the starts: CPMMC by label"),
    ],
    "Two clusters of 50 points: percentage of wrong labels": [
        ("sdp", "Clustering error", "KM; iterSVR; MMC; MMC, C = 100; GMMC"),
    ],
    "Many clusters: adjusted Rand index": [
        ("umc_rls", "Table I:", "Stoc-RLS; Steep-RLS; UMC-RLS; k-means; GMM; spectral"),
        ("umc_rls_bounds", "", "balance 0.4, polished: UMC-RLS, balance 0.4, polished"),
        ("cutting_plane", "CPM3C", "mean of single starts: CPM3C; paper: CPM3C, paper"),
        ("cutting_plane", "CPM3C", "lowest objective of the starts: CPM3C by objective"),
    ],
    "Prototypes without constraints: normalised mutual information": [
        ("competitive", "Without constraints", "")
    ],
    "With cannot-links between labelled objects: the same, and violations in percent": [
        ("competitive", "With cannot-links", "")
    ],
    "Sum of plain distances: percent above the least one found": [
        ("sammc", "Objective at equal time", "")
    ],
}


def read_table(page, heading):
    """Return header and rows of the first table that follows a heading of a page."""
    text = (common.FOLDER / f"{page}.md").read_text(encoding="utf-8")
    text = text.partition(f"\n## {heading}")[2]
    lines = text[text.index("\n|") + 1 :].partition("\n\n")[0].splitlines()
    header, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return header, rows


def join(tables):
    """Return one table of columns of several, by the set that their rows begin with."""
    joined, names = {}, []
    for page, heading, columns in tables:
        header, rows = read_table(page, heading)
        if not columns:
            return header, rows
        columns = [column.split(": ") for column in columns.split("; ")]
        names += [column[-1] for column in columns]
        for row in rows:
            cells = {column[-1]: row[header.index(column[0])] for column in columns}
            joined.setdefault(row[0], {}).update(cells)
    return common.crossed("set", joined, names, lambda one, name: joined[one].get(name, "-"))


def joined_page(run):
    pages = dict.fromkeys(page for tables in SECTIONS.values() for page, *_ in tables)
    links = ", ".join(f"[{page}]({page}.md)" for page in pages)
    yield (
        f"Joined from {links}, which give settings and versions. The protocols differ as the "
        "papers' do. `-`: not run, or not known."
    )
    for heading, tables in SECTIONS.items():
        yield f"## {heading}"
        yield join(tables)


PAGES = {
    "suite": ("A clustering suite", page, ()),
    "shapes": ("Made shapes", page, tuple(shapes.SETS)),
    "choice": ("The choice without labels", page, REAL),
    "large_quality": ("Large sets: quality", page, LARGE),
    "all_methods": ("Every method on every data set", joined_page, ()),
}

if __name__ == "__main__":
    common.main(
        suite={"type": Path, "help": "folder of .npz files (X, y) and published.csv"},
        about={"help": "words on the suite"},
    )
