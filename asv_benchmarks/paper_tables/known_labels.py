"""Measure what few known labels are worth, beside label spreading and self-training.

See README.md in this folder for the protocol.
"""

import warnings

import numpy as np
from common import Source, draw, load_source, main, number, reached, table
from sklearn.metrics import adjusted_rand_score
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC

import fastmmc

SETS = {
    "digits": Source("digits"),
    "usps": Source("usps", draw=2000),
    "coil": Source("coil20"),
    "letter A-H": Source("letter", tuple(range(8)), draw=2000),
}
TOLD = (1, 2, 5, 20)
SEEDS = 10
STARTS = 5

# How far the mean may fall below the run without labels.
ALLOWED_LOSS = 0.005

UMC = {"UMC-RLS": "equal", "UMC-RLS, free sizes": "free"}
PEERS = {
    "LabelSpreading": lambda: LabelSpreading(kernel="knn", max_iter=1000),
    "SelfTraining(SVC)": lambda: SelfTrainingClassifier(SVC(probability=True, random_state=0)),
}


def load(name):
    source = SETS[name]
    X, y = draw(*load_source(source), source.draw, 0)
    return X, np.unique(y, return_inverse=True)[1]


def tell(y, count, seed):
    """Return the labels of so many random points a class, -1 elsewhere."""
    rng = np.random.default_rng(seed)
    known = np.full(y.size, -1)
    for label in np.unique(y):
        known[rng.choice(np.flatnonzero(y == label), count, replace=False)] = label
    return known


def agreement(y, labels, known):
    """Return the adjusted Rand index on the points whose labels are not known."""
    return adjusted_rand_score(y[known < 0], labels[known < 0])


def measure_clusters(name, sizes, seeds):
    """Return the agreement without labels and with them, (2, levels, seeds)."""
    X, y = load(name)
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
            figures[:, level, seed] = agreement(y, alone, known), agreement(y, labels, known)
    return figures


def measure_peer(name, peer, seeds):
    """Return the agreement of a classifier of partly labelled points, (levels, seeds)."""
    X, y = load(name)
    figures = np.empty((len(TOLD), seeds))
    with warnings.catch_warnings():
        # Points that no label reaches, and SVC's own probabilities, of which few labels allow no
        # other.
        for category in (RuntimeWarning, FutureWarning):
            warnings.simplefilter("ignore", category)
        for level, count in enumerate(TOLD):
            for seed in range(seeds):
                known = tell(y, count, seed)
                labels = PEERS[peer]().fit(X, known).predict(X)
                figures[level, seed] = agreement(y, labels, known)
    return figures


def rows_of_set(name, results):
    """Return the rows of one set, and how many cells reach each of the bars."""
    peers = {peer: results[name, peer].mean(axis=1) for peer in PEERS}
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


def page(run):
    seeds = 2 if run.quick else SEEDS
    tasks = {(name, m): (measure_clusters, name, UMC[m], seeds) for name in run.sets for m in UMC}
    tasks |= {(name, p): (measure_peer, name, p, seeds) for name in run.sets for p in PEERS}
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


if __name__ == "__main__":
    main(page, SETS)
