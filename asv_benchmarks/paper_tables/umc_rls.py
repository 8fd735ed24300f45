"""Redo Tables I and II and Figure 5 of the UMC-RLS paper, and the same without the oracle."""

from functools import partial
from itertools import product

import common
import numpy as np
from common import load, mean_and_std, samples, under
from scipy.spatial.distance import pdist
from sklearn.metrics import adjusted_rand_score

import fastmmc
from fastmmc.kernels.factors import factor_path
from fastmmc.kernels.gram import Kernel

SOLVE = partial(fastmmc.umc_rls, n_init=1, sizes="equal")
METHODS = {
    "Stoc-RLS": partial(SOLVE, method="stochastic"),
    "Steep-RLS": partial(SOLVE, method="steepest"),
    "UMC-RLS": partial(SOLVE, method="shaking"),
}
# With size bounds, and a descent after the shaking, by the same protocol.
BOUNDED = {
    "equal sizes": METHODS["UMC-RLS"],
    "equal sizes, polished": partial(METHODS["UMC-RLS"], polish=True),
    "balance 0.4, polished": partial(METHODS["UMC-RLS"], polish=True, balance=0.4),
}
OF_PAGE = {"umc_rls": METHODS, "umc_rls_bounds": BOUNDED}
BASELINES = {"k-means": common.k_means, "GMM": common.mixture, "spectral": common.spectral}
# Mean ARI as printed in the paper's Table I; figures that are not known here are left out.
PAPER = {
    ("coil", "UMC-RLS"): 0.84,
    ("coil 1-4", "UMC-RLS"): 1.0,
    ("moons", "UMC-RLS"): 1.0,
    ("usps 0-3", "UMC-RLS"): 0.85,
    ("usps 0-3", "k-means"): 0.61,
    ("usps 0-3", "spectral"): 0.66,
    ("usps 4-7", "UMC-RLS"): 0.91,
}

SETS = "coil", "coil 1-4", "coil 5-8", "iris", "moons", "letter A-D", "usps 0-3", "usps 4-7"
# Sets and sizes of the figure: many clusters, and many points.
GROWTH = {"coil": (*range(200, 1201, 200), 1440), "usps 0-3": (250, 500, 1000, 2000, 4000)}

# Of a whole run, and of a quick one. Widths are shares of the largest distance; max_n is for
# the figure.
GRID = {
    "shares": (tuple(i / 10 for i in range(1, 11)), (0.1, 0.2, 0.5)),
    "lams": (tuple(2.0**-i for i in range(10, 0, -1)), (2.0**-8, 2.0**-5, 2.0**-2)),
    "repeats": (10, 3),
    "max_n": (4000, 1000),
}


def run_width(name, sample, share, page, lams, repeats):
    """Return ARI, objective and LOO-MSE as one array (3, methods, lams, repeats)."""
    X, y = load(name, sample)
    k, solvers = y.max() + 1, list(OF_PAGE[page].values())
    figures = np.empty((3, len(solvers), len(lams), repeats))
    kernel = Kernel("rbf", sigma=share * pdist(X).max())
    for at, factor in enumerate(factor_path(X, lams, kernel)):
        for m, repeat in np.ndindex(len(solvers), repeats):
            res = solvers[m](factor, k, random_state=repeat)
            ari = adjusted_rand_score(y, res.labels)
            figures[:, m, at, repeat] = ari, res.objective, res.loo_mse
    return figures


def run_baseline(name, sample, method, repeats):
    """Return the ARI of a scikit-learn method (repeats,), NaN where it is left out."""
    X, y = load(name, sample)
    if method == "GMM" and y.size / (y.max() + 1) <= X.shape[1]:
        return np.full(repeats, np.nan)
    return common.scores(BASELINES[method], adjusted_rand_score, name, sample, repeats)


def count_moves(name, n, repeats):
    """Return the moves made at n points with default settings, (methods, repeats)."""
    X, y = load(name, most=n)
    factor, k = fastmmc.factor(X), y.max() + 1
    runs = ([run(factor, k, random_state=s) for s in range(repeats)] for run in METHODS.values())
    return np.array([[run.n_moves for run in of_method] for of_method in runs])


def choose(figures):
    """Return the ARIs (repeats,) at the oracle's setting, and that found without labels.

    ``figures`` is (widths, 3, lams, repeats). The oracle takes the setting with the highest mean
    ARI. Without labels the repeat with the lowest objective counts in each setting, and the
    setting with the lowest LOO-MSE.
    """
    ari, objective, loo_mse = np.moveaxis(figures, 1, 0)
    free, loo = (common.at_lowest(objective, figure) for figure in (ari, loo_mse))
    return ari[common.best_cell(-ari.mean(axis=-1))], free[common.best_cell(loo)]


def summarise(run, protocol, names):
    """Return {(set, method): (ARIs (samples, repeats), those found without labels (samples,))}."""
    drawn = {name: samples(name, run.repeats(10, 2)) for name in names}
    cells = [(name, sample) for name in names for sample in drawn[name]]
    given = protocol.lams, protocol.repeats
    settings = [(*at, share) for at, share in product(cells, protocol.shares)]
    grid, found = run.over(settings, run_width, run.name, *given), {}
    for name, (m, method) in product(names, enumerate(OF_PAGE[run.name])):
        chosen = [choose(under(grid, name, sample)[:, :, m]) for sample in drawn[name]]
        found[name, method] = [np.array(figures) for figures in zip(*chosen, strict=True)]
    if run.name == "umc_rls":
        of = [(*at, method) for at, method in product(cells, BASELINES)]
        aris = run.over(of, run_baseline, protocol.repeats)
        for name, method in product(names, BASELINES):
            found[name, method] = [np.array([aris[name, s, method] for s in drawn[name]])] * 2
    return found


def moves_parts(run, protocol, names):
    """Yield the figure, moves against n with one panel a set, and its table."""
    along = {s: [n for n in GROWTH[s] if n <= protocol.max_n] for s in GROWTH if s in names}
    points = [(name, n) for name, sizes in along.items() for n in sizes]
    moves = run.over(points, count_moves, protocol.repeats)
    panels = {name: {"n moves": ("C7:", (sizes, sizes))} for name, sizes in along.items()}
    for name, sizes in along.items():
        counts = np.moveaxis(under(moves, name), 1, 0)
        for method, form, of in zip(METHODS, ("C0-s", "C1-^", "C2-o"), counts, strict=True):
            panels[name][method] = form, (sizes, of.mean(axis=1), of.std(axis=1))
    yield run.draw("moves", "n", panels, {"moves": {"xscale": "log", "yscale": "log"}})
    rows = (
        [name, n, *(f"{mean:.0f} ({mean / n:.2f} n)" for mean in counts.mean(axis=1))]
        for (name, n), counts in moves.items()
    )
    yield ["set", "n", *METHODS], rows


def page(run):
    protocol, names = run.protocol(GRID), run.loaded()
    found = summarise(run, protocol, names)
    methods = list(dict.fromkeys(method for _, method in found))

    def aris(show):
        rows = []
        for name in names:
            y, cells = load(name)[1], (show(*found[name, method]) for method in methods)
            rows.append([name, y.size, y.max() + 1, *cells])
        return ["set", "n", "k", *methods], rows

    yield (
        f"Adjusted Rand indices. {len(protocol.shares)} widths x {len(protocol.lams)} lams x "
        f"{protocol.repeats} repeats, single starts; {run.repeats(10, 2)} samples of a drawn set."
    )
    yield "## Table I: oracle choice of the setting, mean ± standard deviation over the repeats"
    yield aris(lambda oracle, free: mean_and_std(oracle.mean(), oracle.std(axis=1).mean()))
    if run.name == "umc_rls":
        yield "Figures known from the paper, beside ours:"
        known = ((at, printed) for at, printed in PAPER.items() if at in found)
        rows = ([*at, printed, found[at][0].mean()] for at, printed in known)
        yield ["set", "method", "paper", "here"], rows
        yield "## Table II: the best repeat at the oracle's setting"
        yield aris(lambda oracle, free: oracle.max(axis=1).mean())
    yield "## Without labels: lowest objective, then lowest leave-one-out error"
    yield aris(lambda oracle, free: free.mean())
    if run.name == "umc_rls" and set(names) & set(GROWTH):
        yield "## Figure 5: number of moves against n"
        yield from moves_parts(run, protocol, names)


TITLE = "UMC-RLS: Tables I and II and Figure 5 of Pahikkala et al. (2012)"
BOUNDS = "UMC-RLS with size bounds and a descent, by the protocol of its paper"
PAGES = {"umc_rls": (TITLE, page, SETS), "umc_rls_bounds": (BOUNDS, page, SETS)}

if __name__ == "__main__":
    common.main()
