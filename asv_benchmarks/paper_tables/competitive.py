"""Redo Tables I to IV of Covoes, Hruschka and Ghosh (2013), and see what RPCL counts.

See README.md in this folder for the protocols.
"""

from functools import partial

import numpy as np
from common import load_source, main, sources, spread, table, timed
from sklearn.cluster import KMeans
from sklearn.metrics import normalized_mutual_info_score

import fastmmc
from fastmmc import datasets

SETS = sources(
    "nine Gaussians",
    "iris",
    "wine",
    "ionosphere",
    "pima",
    "breast cancer",
    "letter I-J-L",
    "pendigits 3-8-9",
)
LABELLED = (0, 5, 10, 15, 20)
STARTS, REPEATS = 5, 10

ONLINE = {"WTA": fastmmc.wta, "FSCL": fastmmc.fscl, "RPCL": fastmmc.rpcl}
CONSTRAINED = {
    "C-RPCL": fastmmc.c_rpcl,
    "O-LCVQE": partial(fastmmc.o_lcvqe, per_constraint="paper"),
    "O-LCVQE, once": fastmmc.o_lcvqe,
    "LCVQE": fastmmc.lcvqe,
    "CVQE": fastmmc.cvqe,
}
BATCH = ("LCVQE", "CVQE")

# The stream of Table IV: its shape, and how far its Gaussians are apart.
STREAM_SHAPE, STREAM_CLASSES, STREAM_LABELLED = (492_368, 34), 8, 20

# In the order given, as a stream comes.
ONE_PASS = {"max_iter": 1, "shuffle": False, "min_share": 0.0, "init": "gaussian"}

# True constraints between random objects of digits.
DIGITS_CONSTRAINTS = 50

# RPCL's estimate of the number of clusters.
PROTOTYPES, COUNT_SEEDS = 14, 10
SPREADS = (1 / 6, 0.25, 0.35)
BETAS = (0.002, 0.005, 0.01, 0.02, 0.03)


def load(source):
    if source.name == "nine_gaussians":
        return datasets.make_nine_gaussians(900, random_state=0)
    X, y = load_source(source)
    return X, np.unique(y, return_inverse=True)[1]


def nmi(y, labels):
    """Return the normalised mutual information with the geometric mean, as the paper has it."""
    return normalized_mutual_info_score(y, labels, average_method="geometric")


def known_labels(y, n_labelled, seed):
    """Return the labels of so many random objects a class, -1 elsewhere."""
    rng = np.random.default_rng(seed)
    known = np.full(y.size, -1)
    for label in np.unique(y):
        chosen = rng.choice(np.flatnonzero(y == label), n_labelled, replace=False)
        known[chosen] = label
    return known


def cluster(method, X, k, known, seed):
    """Run one start as in the paper: first prototypes from a Gaussian, nothing is dropped."""
    run = {"random_state": seed, "init": "gaussian"}
    if method not in BATCH:
        run["min_share"] = 0.0
    if method in CONSTRAINED:
        run["known_labels"] = known
        return CONSTRAINED[method](X, k, **run)
    return ONLINE[method](X, k, **run)


def measure(name, method, n_labelled, repeats, starts):
    """Return NMI and share of violated constraints in percent, (repeats * starts,) each."""
    X, y = load(SETS[name])
    k = len(np.unique(y))
    figures = []
    for repeat in range(repeats):
        known = known_labels(y, n_labelled, repeat)
        rows = np.flatnonzero(known >= 0)
        a, b = (rows[i] for i in np.triu_indices(rows.size, 1))
        differ = known[a] != known[b]
        for start in range(starts):
            labels = cluster(method, X, k, known, repeat * starts + start).labels
            together = labels[a[differ]] == labels[b[differ]]
            violated = 100 * together.mean() if differ.any() else np.nan
            figures.append((nmi(y, labels), violated))
    return np.array(figures).T


def nmi_table(results, names, methods, levels):
    rows = []
    for name in names:
        for method in methods:
            row = [name, method]
            for n_labelled in levels:
                values, violated = results[name, method, n_labelled]
                row.append(spread(values) + (f" ({violated.mean():.1f})" if n_labelled else ""))
            rows.append(row)
    return table(["set", "method", *(f"{n} labelled" for n in levels)], rows)


def free_table(results, names):
    rows = [
        [name, *(f"{results[name, m, 0][0].mean():.2f}" for m in (*ONLINE, *CONSTRAINED))]
        for name in names
    ]
    return table(["set", *ONLINE, *CONSTRAINED], rows)


def make_stream(n, seed):
    """Return points of Gaussians that overlap a little, and which Gaussian they are of."""
    rng = np.random.default_rng(seed)
    centers = rng.standard_normal((STREAM_CLASSES, STREAM_SHAPE[1]))
    y = rng.integers(STREAM_CLASSES, size=n)
    return centers[y] + rng.standard_normal((n, STREAM_SHAPE[1])), y


def load_stream(n):
    """Return KDD Cup 99 if it is there, else a stream of its shape, and its name."""
    try:
        X, y = datasets.load("kddcup99", online=True)
        return np.asarray(X, dtype=np.float64), np.unique(y, return_inverse=True)[1], "kddcup99"
    except ValueError:
        return *make_stream(n, 0), "generated"


def stream_table(n, seeds):
    """Return Table IV, and what a round of LCVQE costs beside one of k-means."""
    X, y, name = load_stream(n)
    k = len(np.unique(y))
    for method in (fastmmc.c_rpcl, fastmmc.o_lcvqe, fastmmc.lcvqe):  # compiles
        method(X[:1000], k, cannot_link=[(0, 1)], max_iter=2)
    runs = {
        "LCVQE": (fastmmc.lcvqe, {}),
        "C-RPCL": (fastmmc.c_rpcl, ONE_PASS),
        "O-LCVQE": (CONSTRAINED["O-LCVQE"], ONE_PASS),
        "O-LCVQE, once": (CONSTRAINED["O-LCVQE, once"], ONE_PASS),
    }
    rows, spent = [], dict.fromkeys(runs, 0.0)
    for seed in range(seeds):
        known = known_labels(y, STREAM_LABELLED, seed)
        for method, (function, options) in runs.items():
            told = {"known_labels": known, "random_state": seed}
            result, seconds = timed(lambda f=function, o=options | told: f(X, k, **o))
            spent[method] += seconds
            if method == "LCVQE":
                whole = seconds
            share = f"{100 * seconds / whole:.1f}"
            rows.append(
                [seed, method, f"{nmi(y, result.labels):.3f}", result.n_violations, result.n_iter]
                + [f"{seconds:.2f}", share]
            )
            print(*rows[-1], sep="   ", flush=True)
    for method, seconds in spent.items():
        share = f"{100 * seconds / spent['LCVQE']:.1f}"
        rows.append(["all", method, "", "", "", f"{seconds:.2f}", share])
    header = ["seed", "method", "NMI", "violations", "rounds", "seconds", "% of LCVQE"]
    return name, X.shape, table(header, rows), round_costs(X, k)


def round_costs(X, k):
    """Return seconds of a round: ours, and of scikit-learn's k-means."""
    init = X[:k]

    def lcvqe_rounds(most):
        return fastmmc.lcvqe(X, k, init=init, max_iter=most, cannot_link=[(0, 1)]).n_iter

    def kmeans_rounds(most):
        return (
            KMeans(k, init=init, n_init=1, max_iter=most, tol=0, algorithm="lloyd").fit(X).n_iter_
        )

    found = {lcvqe_rounds: [], kmeans_rounds: []}
    # In turns, so that what else the machine does hits both alike.
    for _ in range(7):
        for run, seconds in found.items():
            few, short = timed(run, 2)
            many, long = timed(run, 50)
            seconds.append((long - short) / (many - few))
    return [np.median(seconds) for seconds in found.values()]


def digits_table(seeds):
    """Return time and violations of one start on digits with true constraints, beside k-means."""
    X, y = datasets.load("digits")
    rows = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        pairs = np.array([rng.choice(y.size, 2, replace=False) for _ in range(DIGITS_CONSTRAINTS)])
        same = y[pairs[:, 0]] == y[pairs[:, 1]]
        links = {"must_link": pairs[same], "cannot_link": pairs[~same]}
        _, whole = timed(KMeans(10, n_init=10, random_state=seed).fit, X)
        row = [seed, f"{whole:.3f}"]
        for function in (fastmmc.c_rpcl, fastmmc.lcvqe):
            result, seconds = timed(
                lambda f=function, s=seed, g=links: f(X, 10, random_state=s, **g)
            )
            row += [f"{seconds:.3f} ({seconds / whole:.2f})", result.n_violations]
            row.append(f"{nmi(y, result.labels):.2f}")
        rows.append(row)
    header = ["seed", "k-means, ten starts, s", "C-RPCL, s (ratio)", "violations", "NMI"]
    return table([*header, "LCVQE, s (ratio)", "violations", "NMI"], rows)


def count_prototypes(spread, beta, seed):
    """Return how many of the prototypes RPCL leaves in use."""
    X, _ = datasets.make_nine_gaussians(900, spread=spread, random_state=seed)
    return fastmmc.rpcl(X, PROTOTYPES, beta=beta, random_state=seed).n_active


def count_table(seeds):
    rows = []
    for sigma in SPREADS:
        for beta in BETAS:
            found = [count_prototypes(sigma, beta, seed) for seed in range(seeds)]
            near = sum(8 <= n <= 10 for n in found)
            rows.append([f"{1 / sigma:.1f}", beta, " ".join(map(str, found)), f"{near} of {seeds}"])
    header = ["standard deviations apart", "beta", "in use, seed by seed", "9 ± 1"]
    return table(header, rows)


def page(run):
    quick = run.quick
    loaded = run.load(load)
    levels = (0, 20) if quick else LABELLED
    repeats, starts = (2, 2) if quick else (REPEATS, STARTS)
    tasks = {
        (name, method, n): (measure, name, method, n, repeats, starts)
        for name in loaded
        for n in levels
        for method in ((*ONLINE, *CONSTRAINED) if n == 0 else CONSTRAINED)
    }
    results = run.do(tasks)
    stream, shape, stream_rows, (ours, theirs) = stream_table(
        20_000 if quick else STREAM_SHAPE[0], 1 if quick else 5
    )
    return [
        "# Competitive learning: Tables I to IV of Covoes et al. (2013)",
        run.made(),
        f"Means over {repeats} draws of labelled objects and {starts} starts each.",
        "## Without constraints: NMI",
        free_table(results, loaded),
        "## With cannot-links: NMI, and in brackets how many of them are violated, in percent",
        "All pairs of labelled objects of different classes are cannot-links.",
        nmi_table(results, loaded, CONSTRAINED, levels),
        "## One pass over a stream (Table IV)",
        f"{stream}, {shape[0]:,} × {shape[1]}, {STREAM_LABELLED} labelled objects a class, one "
        "thread. LCVQE runs until labels come back.",
        stream_rows,
        f"A round of LCVQE takes {ours:.3f} s, of scikit-learn's KMeans (lloyd) {theirs:.3f} s, "
        f"{ours / theirs:.2f} times as long.",
        f"## Digits, ten classes, {DIGITS_CONSTRAINTS} true constraints, one start",
        digits_table(2 if quick else 5),
        f"## What RPCL counts of nine Gaussians, given {PROTOTYPES} prototypes",
        count_table(3 if quick else COUNT_SEEDS),
    ]


PAGES = {"competitive": (page, SETS)}

if __name__ == "__main__":
    main(PAGES)
