"""Redo Tables I to IV of Covoes, Hruschka and Ghosh (2013), and see what RPCL counts."""

from functools import partial
from itertools import product

import common
import numpy as np
from common import crossed, load
from sklearn.metrics import normalized_mutual_info_score

import fastmmc
from fastmmc import datasets

SETS = (
    *("nine Gaussians", "iris", "wine", "ionosphere", "pima", "breast cancer"),
    *("letter I-J-L", "pendigits 3-8-9"),
)
LABELLED = (0, 5, 10, 15, 20)

# As in the paper: first prototypes from a Gaussian, and nothing is dropped.
PAPER, PAPER_ONLINE = {"init": "gaussian"}, {"init": "gaussian", "min_share": 0.0}
ONLINE = {
    "WTA": partial(fastmmc.wta, **PAPER_ONLINE),
    "FSCL": partial(fastmmc.fscl, **PAPER_ONLINE),
    "RPCL": partial(fastmmc.rpcl, **PAPER_ONLINE),
}
CONSTRAINED = {
    "C-RPCL": partial(fastmmc.c_rpcl, **PAPER_ONLINE),
    "O-LCVQE": partial(fastmmc.o_lcvqe, per_constraint="paper", **PAPER_ONLINE),
    "O-LCVQE, once": partial(fastmmc.o_lcvqe, **PAPER_ONLINE),
    "LCVQE": partial(fastmmc.lcvqe, **PAPER),
    "CVQE": partial(fastmmc.cvqe, **PAPER),
}
METHODS = ONLINE | CONSTRAINED

# The stream of Table IV, in the order given, as a stream comes.
STREAM_SHAPE, STREAM_CLASSES, STREAM_LABELLED = (492_368, 34), 8, 20
STREAMED = {"LCVQE": fastmmc.lcvqe}
for name in ("C-RPCL", "O-LCVQE", "O-LCVQE, once"):
    STREAMED[name] = partial(CONSTRAINED[name], max_iter=1, shuffle=False)

# RPCL's estimate of the number of clusters.
PROTOTYPES, COUNT_SEEDS = 14, 10
SPREADS = (1 / 6, 0.25, 0.35)
BETAS = (0.002, 0.005, 0.01, 0.02, 0.03)


def nmi(y, labels):
    """Return the normalised mutual information with the geometric mean, as the paper has it."""
    return normalized_mutual_info_score(y, labels, average_method="geometric")


def measure(name, n_labelled, method, repeats, starts):
    """Return NMI and share of violated constraints in percent, (repeats * starts,) each."""
    X, y = load(name)
    k = len(np.unique(y))
    figures = []
    for repeat in range(repeats):
        known = common.draw_labels(y, n_labelled, repeat)
        given = {"known_labels": known} if method in CONSTRAINED else {}
        rows = np.flatnonzero(known >= 0)
        pairs = rows[np.transpose(np.triu_indices(rows.size, 1))]
        apart = pairs[known[pairs[:, 0]] != known[pairs[:, 1]]]
        for seed in range(repeat * starts, (repeat + 1) * starts):
            labels = METHODS[method](X, k, random_state=seed, **given).labels
            figures.append((nmi(y, labels), 100 * np.mean(np.diff(labels[apart]) == 0)))
    return np.array(figures).T


def make_stream(n, seed):
    """Return points of Gaussians that overlap a little, and which Gaussian they are of."""
    rng = np.random.default_rng(seed)
    centers = rng.standard_normal((STREAM_CLASSES, STREAM_SHAPE[1]))
    y = rng.integers(STREAM_CLASSES, size=n)
    return centers[y] + rng.standard_normal((n, STREAM_SHAPE[1])), y


def stream_table(X, y, seeds):
    """Return Table IV, mean ± standard deviation over the seeds."""
    k = len(np.unique(y))
    for method in STREAMED.values():  # compiles
        method(X[:1000], k, cannot_link=[(0, 1)])
    found = {method: np.empty((4, seeds)) for method in STREAMED}
    for seed, (method, function) in product(range(seeds), STREAMED.items()):
        given = {"known_labels": common.draw_labels(y, STREAM_LABELLED, seed), "random_state": seed}
        run, seconds = common.timed(partial(function, X, k, **given))
        found[method][:, seed] = nmi(y, run.labels), run.n_violations, run.n_iter, seconds
    whole = found["LCVQE"][-1].sum() / 100
    rows = ([method, *of, f"{of[-1].sum() / whole:.1f}"] for method, of in found.items())
    return ["method", "NMI", "violations", "rounds", "seconds", "% of LCVQE"], rows


def count_prototypes(spread, beta, seed):
    """Return how many of the prototypes RPCL leaves in use."""
    X, _ = datasets.make_nine_gaussians(900, spread=spread, random_state=seed)
    return fastmmc.rpcl(X, PROTOTYPES, beta=beta, random_state=seed).n_active


def page(run):
    names, levels = run.loaded(), run.pick(LABELLED, (0, 20))
    repeats, starts = run.pick((10, 5), (2, 2))
    every = product(names, levels, METHODS)
    cells = [at for at in every if at[1] == 0 or at[2] in CONSTRAINED]
    found = run.over(cells, measure, repeats, starts)
    yield f"Means over {repeats} draws of labelled objects and {starts} starts each."
    yield "## Without constraints: NMI"
    yield crossed("set", names, METHODS, lambda name, method: found[name, 0, method][0].mean())
    yield "## With cannot-links: NMI, and in brackets how many of them are violated, in percent"
    rows = []
    for name, method in product(names, CONSTRAINED):
        row = [name, method, found[name, 0, method][0]]
        for values, violated in (found[name, n, method] for n in levels[1:]):
            row.append(f"{values.mean():.2f} ± {values.std():.2f} ({violated.mean():.1f})")
        rows.append(row)
    yield ["set", "method", *(f"{n} labelled" for n in levels)], rows
    try:
        X, y, stream = *load("kddcup99"), "KDD Cup 99"
    except ValueError:
        X, y, stream = *make_stream(run.pick(STREAM_SHAPE[0], 20_000), 0), "Generated"
    yield "## One pass over a stream (Table IV)"
    n, d = X.shape
    yield f"{stream}, {n:,} × {d}, {STREAM_LABELLED} labelled objects a class, one thread."
    yield stream_table(X, y, run.pick(5, 1))
    counts = run.each(count_prototypes, SPREADS, BETAS, range(run.pick(COUNT_SEEDS, 3)))
    yield f"## What RPCL counts of nine Gaussians, given {PROTOTYPES} prototypes"
    rows = []
    for spread, beta in product(SPREADS, BETAS):
        left = common.under(counts, spread, beta)
        right = f"{np.sum(np.abs(left - 9) <= 1)} of {left.size}"
        rows.append([f"{1 / spread:.1f}", str(beta), " ".join(map(str, left)), right])
    yield ["standard deviations apart", "beta", "in use, seed by seed", "9 ± 1"], rows


TITLE = "Competitive learning: Tables I to IV of Covoes et al. (2013)"
PAGES = {"competitive": (TITLE, page, SETS)}

if __name__ == "__main__":
    common.main()
