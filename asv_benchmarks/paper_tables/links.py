"""Measure what must-links and cannot-links are worth, beside constrained k-means and prototypes.

See README.md in this folder for the protocol.
"""

import warnings

import numpy as np
from common import Source, draw, load_source, main, number, reached, sources, table
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

import fastmmc
from fastmmc.data.links import join, partner_lists

POINTS = 1000
SETS = sources("iris", "wine", "ionosphere", "pima", "breast cancer", "nine Gaussians") | {
    "pendigits 3-8-9": Source("pendigits", (3, 8, 9), POINTS),
    "letter I-J-L": Source("letter", (8, 9, 11), POINTS),
    "segment": Source("segment", draw=POINTS),
}

# Pairs of each kind, as a share of the points.
SHARES = (1 / 20, 1 / 10, 1 / 5)
SEEDS = 10

UMC = {"UMC-RLS": "equal", "UMC-RLS, free sizes": "free"}
PROTOTYPES = {"C-RPCL": fastmmc.c_rpcl, "LCVQE": fastmmc.lcvqe}
COP = "COP-KMeans"
ATTEMPTS, ROUNDS = 10, 100


def load(name):
    source = SETS[name]
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


def measure(name, method, seeds):
    """Return the agreement with the classes without links and with them, (2, levels, seeds).

    Also the mean number of links broken, (levels,).
    """
    X, y = load(name)
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


def page(run):
    seeds = 2 if run.quick else SEEDS
    methods = [*UMC, *PROTOTYPES, COP]
    tasks = {(name, m): (measure, name, m, seeds) for name in run.sets for m in methods}
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


if __name__ == "__main__":
    main(page, SETS)
