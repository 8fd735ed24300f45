"""Redo the columns of CPMMC and CPM3C in the tables of the EvoMMC and UMC-RLS papers.

F. Gieseke, T. Pahikkala, O. Kramer, Fast Evolutionary Maximum Margin Clustering, ICML 2009, and
T. Pahikkala, A. Airola, F. Gieseke, O. Kramer, Unsupervised Multi-Class Regularized Least-Squares
Classification, ICDM 2012. See README.md in this folder for the protocols.
"""

import numpy as np
from common import (
    SHOWN_PAIRS,
    at_lowest,
    best_cell,
    clustering_error,
    k_means,
    load_samples,
    main,
    sources,
    table,
)
from scipy.spatial.distance import pdist
from sklearn.metrics import adjusted_rand_score

from fastmmc import cpm3c, cpmmc
from fastmmc.kernels.gram import Kernel, box_diagonal
from fastmmc.kernels.nystroem import Form, make_features

PAIRS = sources(*SHOWN_PAIRS, "ionosphere", "letter A-B", "satellite 1-2")
CLASSES = sources("coil 1-4", "coil 5-8", "iris", "letter A-D", "moons", "usps 0-3", "usps 4-7")

# Error of CPMMC in percent as printed in the 2009 paper, as far as it is known here, and the bars
# that were set for it: one point more, where the figure is known.
ERRORS = {"digits 3-8": 3.08, "digits 1-7": 0.0, "digits 2-7": 0.0, "digits 8-9": 2.26}
ERRORS |= {"letter A-B": 5.53, "satellite 1-2": 1.52}
BARS = {name: error + 1.0 for name, error in ERRORS.items()} | {"ionosphere": 27.64}

# Mean ARI of CPM3C as printed in Table I of the 2012 paper; the bar is the figure itself.
ARIS = dict(zip(CLASSES, (0.47, 0.62, 0.69, 0.39, 0.69, 0.59, 0.57), strict=True))

# The paper's tolerances, and its bound on the sums of the scores.
ALPHA = EPS = 0.01
BOUND = 10.0

# Sets of more points than the first number have a kernel map of this number of landmarks.
DENSE_LIMIT, LANDMARKS = 1000, 300

# Starts of a run of two clusters.
STARTS = 10

# The linear kernel is one more width.
LINEAR = "linear"

# Of a whole run, and of a quick one. Two clusters: widths in diagonals of the bounding box, C in
# units of 1 / mean squared distance to the mean in the kernel's space. Many clusters: widths as
# shares of the largest distance.
GRID = {
    "widths": ((LINEAR, 0.3, 1.0), (LINEAR, 0.3)),
    "Cs": ((1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0), (10.0, 100.0)),
    "balances": ((0.01, 0.03, 0.1, 0.3), (0.01, 0.1)),
    "repeats": (5, 2),
    "shares": ((0.1, 0.2, 0.3, 0.5, 0.7, 1.0), (0.2, 0.5)),
    "starts": (10, 3),
    "samples": (5, 1),
}


def kernel_map(X, sigma):
    """Return points whose products are the Gaussian kernel's values, made once for many runs."""
    kernel, rng = Kernel("rbf", sigma=sigma), np.random.default_rng(0)
    if len(X) > DENSE_LIMIT:
        return make_features(X, kernel, Form(LANDMARKS), rng).Z
    return make_features(X, kernel, Form(len(X), np.arange(len(X))), rng).Z


def run_pair(X, y, width, Cs, balances, repeats):
    """Return errors of ten starts, (2, Cs, balances, repeats).

    First that of the start with the lowest objective, then the smallest one.
    """
    Z = X if width == LINEAR else kernel_map(X, width * box_diagonal(X))
    unit = 1.0 / Z.var(axis=0).sum()
    figures = np.empty((2, len(Cs), len(balances), repeats))
    for at in np.ndindex(figures.shape[1:]):
        c, b, repeat = at
        setting = {"C": Cs[c] * unit, "score_balance": balances[b], "eps": EPS, "cccp_tol": ALPHA}
        seeds = range(STARTS * repeat, STARTS * (repeat + 1))
        starts = [cpmmc(Z, n_init=1, random_state=seed, **setting) for seed in seeds]
        errors = [clustering_error(y, res.labels) for res in starts]
        figures[:, *at] = errors[np.argmin([res.objective for res in starts])], min(errors)
    return figures


def run_many(X, y, sigma, Cs, starts):
    """Return ARI and objective of single starts, (2, Cs, starts)."""
    Z = kernel_map(X, sigma)
    k = np.unique(y).size
    setting = {"eps": EPS, "cccp_tol": ALPHA, "coef0": 0.0, "n_init": 1, "kernel": "linear"}
    figures = np.empty((2, len(Cs), starts))
    for c, seed in np.ndindex(figures.shape[1:]):
        res = cpm3c(Z, k, C=Cs[c], random_state=seed, score_balance=BOUND / y.size, **setting)
        figures[:, c, seed] = adjusted_rand_score(y, res.labels), res.objective
    return figures


def run_k_means(X, y, seeds):
    """Return the labels that k-means finds, one row a seed."""
    return np.array([k_means(X, np.unique(y).size, seed) for seed in range(seeds)])


def make_tasks(loaded, protocol):
    """Return all tasks, keyed by (set, sample, width); width None is k-means."""
    tasks = {}
    for name, samples in loaded.items():
        for s, (X, y) in enumerate(samples):
            tasks[name, s, None] = run_k_means, X, y, protocol.repeats
            if name in PAIRS:
                grid = protocol.Cs, protocol.balances, protocol.repeats
                tasks |= {(name, s, w): (run_pair, X, y, w, *grid) for w in protocol.widths}
            else:
                grid, widest = (protocol.Cs, protocol.starts), pdist(X).max()
                tasks |= {
                    (name, s, w): (run_many, X, y, w * widest, *grid) for w in protocol.shares
                }
    return tasks


def summarise_pair(name, y, results, protocol):
    """Return the errors at the oracle's setting, of linear kernels alone and of all, and these.

    Smallest: the start is the oracle's choice as well.
    """
    errors, smallest = np.stack([results[name, 0, width] for width in protocol.widths], axis=1)
    summary = {"k-means": np.array([clustering_error(y, row) for row in results[name, 0, None]])}
    for rule, widths in (("linear", errors[:1]), ("all", errors), ("smallest", smallest)):
        cell = best_cell(widths.mean(axis=-1))
        summary[rule], summary[f"{rule} cell"] = widths[cell], cell
    return summary


def summarise_classes(name, samples, results, protocol):
    """Return the figures at the oracle's setting of each sample.

    Single starts: the mean over them; best: the start of the lowest objective.
    """
    rows = {"starts": [], "best": [], "k-means": []}
    for s, (_, y) in enumerate(samples):
        ari, objective = np.stack([results[name, s, w] for w in protocol.shares], axis=1)
        rows["starts"].append(ari.mean(axis=-1).max())
        rows["best"].append(at_lowest(objective, ari).max())
        labels = results[name, s, None]
        rows["k-means"].append(np.mean([adjusted_rand_score(y, row) for row in labels]))
    return {rule: np.array(found) for rule, found in rows.items()}


def cell_text(cell, protocol):
    width, c, b = cell
    width = protocol.widths[width]
    kernel = width if width == LINEAR else f"{width} D"
    return f"{kernel}, {protocol.Cs[c]:g}, {protocol.balances[b]}"


def pairs_table(pairs, protocol):
    rows = []
    for name, (n, found) in pairs.items():
        row = [name, n, found["k-means"]]
        for rule in ("linear", "all"):
            row += [found[rule], cell_text(found[f"{rule} cell"], protocol)]
        right = round(found["all"].mean(), 2) <= BARS[name]
        rows.append([*row, ERRORS.get(name), BARS[name], right, found["smallest"]])
    header = ["set", "n", "k-means", "linear", "setting", "linear or Gaussian", "setting"]
    return table([*header, "paper", "bar", "reached", "smallest error of the starts"], rows)


def classes_table(classes):
    rows = []
    for name, (n, k, found) in classes.items():
        right = (round(found[rule].mean(), 2) >= ARIS[name] for rule in ("starts", "best"))
        figures = (found[rule] for rule in ("k-means", "starts", "best"))
        rows.append([name, n, k, *figures, ARIS[name], *right])
    header = ["set", "n", "k", "k-means", "mean of single starts", "lowest objective of the starts"]
    return table([*header, "paper", "single starts reach it", "lowest objective reaches it"], rows)


def page(run):
    protocol = run.protocol(GRID)
    loaded = run.load(load_samples, protocol.samples)
    results = run.do(make_tasks(loaded, protocol))
    pairs, classes = {}, {}
    for name, samples in loaded.items():
        y = samples[0][1]
        if name in PAIRS:
            pairs[name] = y.size, summarise_pair(name, y, results, protocol)
        else:
            found = summarise_classes(name, samples, results, protocol)
            classes[name] = y.size, np.unique(y).size, found
    yield "The protocols are described in README.md."
    if pairs:
        n_cells = len(protocol.widths) * len(protocol.Cs) * len(protocol.balances)
        yield "## CPMMC, two clusters: percentage of wrong labels"
        yield (
            f"{STARTS} starts, of which the one with the lowest objective counts; mean ± standard "
            f"deviation over {protocol.repeats} repeats, at the setting (kernel, C, score_balance) "
            f"of {n_cells} with the smallest mean. The choice of the setting looks at the labels; "
            "in the last column that of the start does so too."
        )
        yield pairs_table(pairs, protocol)
    if classes:
        yield "## CPM3C, many clusters: adjusted Rand index"
        yield (
            f"{protocol.starts} starts in each of {len(protocol.shares) * len(protocol.Cs)} "
            f"settings (width, C), {protocol.samples} samples of each drawn set, mean ± standard "
            "deviation over the samples, at the setting with the highest figure of each sample. "
            "The choice of the setting looks at the labels."
        )
        yield classes_table(classes)


TITLE = "CPMMC and CPM3C: their columns in Gieseke et al. (2009) and Pahikkala et al. (2012)"
PAGES = {"cutting_plane": (TITLE, page, PAIRS | CLASSES)}

if __name__ == "__main__":
    main(PAGES)
