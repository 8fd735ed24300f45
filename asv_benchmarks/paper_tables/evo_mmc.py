"""Redo Tables 1 and 2 and Figure 2 of the EvoMMC paper, and the same without the oracle."""

from fractions import Fraction
from functools import partial
from itertools import product

import common
import numpy as np
from common import at_lowest, best_cell, clustering_error, load, mean_and_std, number, timed
from scipy.special import comb

import fastmmc
from fastmmc import evo_mmc, fast_evo_mmc
from fastmmc.kernels.gram import box_diagonal

METHODS = {"EvoMMC": evo_mmc, "FastEvoMMC": fast_evo_mmc}

MAX_ITER = 1000  # generations, as a multiple of n, after which the methods give up
# What a run is described by: error in percent, fitness, leave-one-out error, generations, and the
# seconds of its hat matrix and of the start.
ERROR, FITNESS, LOO, GENERATIONS, HAT, START = range(6)

SETS = *common.SHOWN_PAIRS, "ionosphere", "letter A-B", "satellite 1-2", "mnist 1-2", "mnist 1-7"
PAIRS = tuple(common.PAIRS)
RANK, RANKS = 0.1, {"mnist 1-2": 0.01, "mnist 1-7": 0.01}  # landmarks as a share of the points
DENSE_LIMIT = 5000  # above, EvoMMC and its dense hat matrix are left out

# Error in percent as printed in the paper's Table 1, mean and standard deviation; figures that
# are not known here are left out.
PAPER = {
    "digits 3-8": {"EvoMMC": (2.52, 0.0)},
    "digits 1-7": {"EvoMMC": (0.0, 0.0)},
    "digits 2-7": {"EvoMMC": (0.0, 0.0)},
    "digits 8-9": {"EvoMMC": (3.22, 0.40)},
    "ionosphere": {"EvoMMC": (17.94, 6.84)},
    "letter A-B": {"EvoMMC": (3.67, 0.33), "FastEvoMMC": (3.27, 1.08)},
    "satellite 1-2": {"EvoMMC": (1.16, 0.45), "FastEvoMMC": (1.14, 0.65)},
    "all pairs": {"EvoMMC": (0.72, None), "FastEvoMMC": (0.81, None)},
}
# The bar is the paper's mean plus one standard deviation. Where that leaves no room: one point
# of 357 more.
BARS = {"digits 3-8": 2.8}

# Without labels: the lowest fitness of many starts at one setting for all pairs, and the mean
# error that this is to stay below.
CLAIM_LAM, CLAIM_BAR = 1 / 4, 1.5
CLAIM_METHODS = {"EvoMMC, mu = nu = 1": partial(evo_mmc, mu=1, nu=1), **METHODS}
# Sets of the figure, and its greatest number of restarts.
RESTARTS, MAX_RESTARTS = ("digits 3-8", "digits 8-9", "letter A-B", "satellite 1-2"), 60

# Of a whole run, and of a quick one. Widths are multiples of the bounding box's diagonal; runs are
# those of one repeat.
GRID = {
    "widths": ((1, 3, 5), (1, 3)),
    "lams": ((1 / 2, 1 / 200, 1 / 1000), (1 / 2, 1 / 200)),
    "balances": ((0.03, 0.1, 0.3, 0.4), (0.03, 0.4)),
    "repeats": (10, 2),
    "runs": (10, 5),
    "pairs": (PAIRS, PAIRS[::8]),
    "claim_starts": (60, 10),
}
DEFAULT = (0, 0, 0)  # the library's own setting, D, 1/2 and 0.03, is the first of both grids
# The rules that choose runs and settings.
ORACLE = "smallest error, oracle's setting"
FITTEST = "lowest fitness, oracle's setting"
FITTEST_DEFAULT = "lowest fitness, default setting"
LOWEST_LOO = "lowest fitness, lowest LOO"
RULES = ORACLE, FITTEST, FITTEST_DEFAULT, LOWEST_LOO
ELSEWHERE = "smallest error, oracle's setting in the other repeats"
SHARED = "smallest error, one setting for all"
FITTEST_SHARED = "lowest fitness, one setting for all"
PAIR_RULES = (ORACLE, ELSEWHERE, SHARED, FITTEST, FITTEST_SHARED, FITTEST_DEFAULT, LOWEST_LOO)


def repeats_of(name, protocol):
    """Return how many repeats a set has, one where it has no dense hat matrix."""
    return protocol.repeats if load(name)[1].size <= DENSE_LIMIT else 1


def run_setting(name, w, at, protocol):
    """Return what describes every run, (6, methods, balances, repeats, runs).

    NaN where a method is left out. Every run of FastEvoMMC draws its own landmarks.
    """
    X, y = load(name)
    setting = {"sigma": protocol.widths[w] * box_diagonal(X), "lam": protocol.lams[at]}
    make = partial(fastmmc.factor, X, **setting)
    shape = len(protocol.balances), repeats_of(name, protocol), protocol.runs
    figures = np.full((6, len(METHODS), *shape), np.nan)
    dense = timed(partial(make, rank=None), times=3) if y.size <= DENSE_LIMIT else None
    for seed, (repeat, run) in enumerate(np.ndindex(shape[1:])):
        low_rank = timed(partial(make, rank=RANKS.get(name, RANK), random_state=seed))
        for m, (solve, made) in enumerate(zip(METHODS.values(), (dense, low_rank), strict=True)):
            for b, balance in enumerate(protocol.balances if made else ()):
                start = partial(solve, made[0], balance=balance, n_init=1, random_state=seed)
                res, seconds = timed(start)
                found = clustering_error(y, res.labels), res.objective, res.loo_mse, res.n_iter
                figures[:, m, b, repeat, run] = *found, made[1], seconds
    return figures


def run_claim(name, protocol):
    """Return the error of the start with the lowest fitness, one figure a method."""
    X, y = load(name)
    given = {"lam": CLAIM_LAM, "n_init": protocol.claim_starts, "random_state": 0}
    runs = (solve(X, **given) for solve in CLAIM_METHODS.values())
    return np.array([clustering_error(y, run.labels) for run in runs])


def expected_at_best(values, key, size):
    """Return the mean value at the lowest key over all subsets of a size."""
    n = values.size
    weights = comb(n - 1 - np.arange(n), size - 1) / comb(n, size)
    return float(weights @ values[np.argsort(key, kind="stable")])


class Summary:
    """The runs of a method on a set, (6, widths, lams, balances, repeats, runs), by every rule."""

    def __init__(self, figures):
        # Of every repeat: the smallest error, and what describes the fittest run.
        smallest, winners = figures[ERROR].min(axis=-1), at_lowest(figures[FITNESS], figures)
        repeats = range(smallest.shape[-1])
        self.cell = best_cell(smallest.mean(axis=-1))
        self.runs = figures[(slice(None), *self.cell)].reshape(6, -1)
        self.grids = np.stack([smallest, winners[ERROR]]).mean(axis=-1)
        # In each repeat the cell whose winner has the lowest leave-one-out error, and the one that
        # the others find best: the smallest of many means over few repeats is partly luck.
        lowest = [best_cell(winners[LOO, ..., at]) for at in repeats]
        others = smallest.sum(axis=-1, keepdims=True) - smallest
        elsewhere = [best_cell(others[..., at]) for at in repeats]
        self.errors = {
            ORACLE: smallest[self.cell],
            ELSEWHERE: np.array([smallest[(*c, at)] for at, c in enumerate(elsewhere)]),
            FITTEST: winners[(ERROR, *self.cell)],
            FITTEST_DEFAULT: winners[(ERROR, *DEFAULT)],
            LOWEST_LOO: np.array([winners[(ERROR, *c, at)] for at, c in enumerate(lowest)]),
        }

    def curves(self):
        """Return numbers of restarts, and the smallest and the fittest run's error at each."""
        errors, fitness = self.runs[:2]
        # With nearly all runs in every subset the mean would be over one sample.
        counts = np.arange(1, max(1, min(MAX_RESTARTS, int(0.6 * errors.size))) + 1)
        for key in errors, fitness:
            yield counts, np.array([expected_at_best(errors, key, size) for size in counts])


def summarise(results, name, protocol):
    """Return {method: Summary} of a set, without methods that were left out."""
    shape = len(protocol.widths), len(protocol.lams)
    figures = np.stack([results[name, *at] for at in np.ndindex(shape)], axis=2)
    figures = figures.reshape(*figures.shape[:2], *shape, *figures.shape[3:])
    of = zip(METHODS, np.moveaxis(figures, 1, 0), strict=True)
    return {method: Summary(found) for method, found in of if not np.isnan(found[ERROR]).any()}


def printed(name, method, found=None):
    """Return the paper's figure, and whether ours stays within the bar, both as far as known."""
    mean, std = PAPER.get(name, {}).get(method, (None, None))
    text = number(mean) if std is None else mean_and_std(mean, std)
    if mean is None or found is None:
        return text, "-"
    # Both as printed, with two decimals.
    return text, round(np.mean(found), 2) <= round(BARS.get(name, mean + (std or 0.0)), 2)


def cell_text(cell, protocol):
    w, at, b = cell
    lam = Fraction(protocol.lams[at]).limit_denominator(10000)
    return f"{protocol.widths[w]} D, {lam}, {protocol.balances[b]}"


def error_parts(found, results, protocol):
    """Yield Table 1 with the paper's figures beside ours, and whether the bar is reached."""
    yield f"## Table 1: smallest error of {protocol.runs} runs at the oracle's setting"
    yield "Mean ± standard deviation over the repeats."
    rows = []
    for name, summaries in found.items():
        k_means = results[name, None]
        rows.append([name, load(name)[1].size, k_means.size, k_means])
        for method in METHODS:
            errors = summaries[method].errors[ORACLE] if method in summaries else None
            rows[-1] += [errors, *printed(name, method, errors)]
    columns = [f"{method}{said}" for method in METHODS for said in ("", ", paper", ", bar reached")]
    yield ["set", "n", "repeats", "k-means", *columns], rows


def rule_parts(found, results, protocol):
    """Yield the errors of all rules side by side, and the setting (sigma, lam, balance)."""
    yield f"## Without labels: the run of lowest fitness among {protocol.runs}"
    rows = (
        [name, method, *(one.errors[rule] for rule in RULES), cell_text(one.cell, protocol)]
        for name, summaries in found.items()
        for method, one in summaries.items()
    )
    yield ["set", "method", *RULES, "oracle's setting"], rows


def time_parts(found, results, protocol):
    """Yield Table 2: generations and seconds."""
    yield "## Table 2: generations and seconds at the oracle's setting"
    rows = []
    for name, method, one in ((n, m, one) for n, of in found.items() for m, one in of.items()):
        n, generations = load(name)[1].size, one.runs[GENERATIONS]
        mean, cut = generations.mean(), 100 * np.mean(generations >= MAX_ITER * n)
        row = [name, n, method, f"{mean:.0f}", f"{mean / n:.1f} n", f"{cut:.0f} %"]
        hat, start = one.runs[HAT].min(), np.median(one.runs[START])
        rows.append([*row, f"{hat:.3f}", f"{start:.3f}", hat + 10 * start])
    header = ["set", "n", "method", "generations", "as a multiple", f"stopped at {MAX_ITER} n"]
    yield [*header, "hat matrix, s", "a start, s", "with ten starts, s"], rows


def pairs_table(pairs, protocol):
    """Return the means over all pairs, of all rules and of one setting for all."""
    grids = {m: np.mean([pair[m].grids for pair in pairs], axis=0) for m in METHODS}
    shared = {method: best_cell(grid[0]) for method, grid in grids.items()}
    means = {
        rule: [np.mean([pair[m].errors[rule].mean() for pair in pairs]) for m in METHODS]
        for rule in pairs[0]["EvoMMC"].errors
    }
    for at, rule in enumerate((SHARED, FITTEST_SHARED)):
        means[rule] = [grids[method][(at, *shared[method])] for method in METHODS]
    rows = [[rule, *means[rule]] for rule in PAIR_RULES]
    paper = map(printed, ["all pairs"] * 2, METHODS, means[ORACLE])
    rows[1:1] = zip(("the same, paper", "reached"), *paper, strict=True)
    cells = (cell_text(shared[method], protocol) for method in METHODS)
    return ["rule", *METHODS], [*rows, ["the one setting for all", *cells]]


def pairs_parts(found, results, protocol):
    """Yield the sections on all pairs of digits."""
    k_means = np.mean([results[name, None].mean() for name in found])
    yield f"## All pairs of digits: means over {len(found)} pairs"
    yield f"{protocol.repeats} repeats of {protocol.runs} runs. k-means: {number(k_means)}."
    yield pairs_table(list(found.values()), protocol)
    yield (
        f"## Without labels: lowest fitness of {protocol.claim_starts} starts, sigma = D, "
        f"lam = {Fraction(CLAIM_LAM)}, balance 0.03, all pairs of digits"
    )
    rows = []
    for method, errors in zip(CLAIM_METHODS, common.under(results, "claim").T, strict=True):
        within = round(errors.mean(), 2) <= CLAIM_BAR
        figures = errors.mean(), CLAIM_BAR, within, np.median(errors), np.sum(errors > 5)
        rows.append([method, *figures])
    yield ["method", "mean error", "bar", "reached", "median", "pairs above 5 %"], rows


def restarts_parts(found, run):
    """Yield the section on the number of restarts, one panel a set."""
    yield "## Figure 2: error against the number of restarts"
    panels = {name: {} for name in found}
    for name, (m, method) in product(found, enumerate(METHODS)):
        for line, rule, of in zip(":-", RULES, found[name][method].curves(), strict=False):
            panels[name][f"{method}, {rule.partition(',')[0]}"] = f"C{m}{line}", of
    yield run.draw("restarts", "restarts", panels, {"clustering error, %": {"ylim": (0, None)}})


def page(run):
    protocol, names = run.protocol(GRID), run.loaded()
    protocol.repeats = run.repeats(*GRID["repeats"])
    pairs = protocol.pairs if run.sets == list(SETS) else ()
    # The largest sets come first, as they take longest.
    every = sorted({*names, *pairs}, key=lambda name: -load(name)[1].size)
    cells = list(np.ndindex(len(protocol.widths), len(protocol.lams)))
    tasks = {(name, *at): (run_setting, name, *at, protocol) for name in every for at in cells}
    given = common.scores, common.k_means, clustering_error
    tasks |= {(name, None): (*given, name, 0, repeats_of(name, protocol)) for name in every}
    tasks |= {("claim", name): (run_claim, name, protocol) for name in pairs}
    results = run.do(tasks)
    found = {name: summarise(results, name, protocol) for name in every}
    yield (
        f"{len(cells) * len(protocol.balances)} settings (sigma, lam, balance). Errors are "
        "percentages of wrong labels. `-`: not known of the paper, or a method left out."
    )
    for parts in (error_parts, rule_parts, time_parts):
        yield from parts({name: found[name] for name in names}, results, protocol)
    if pairs:
        yield from pairs_parts({name: found[name] for name in pairs}, results, protocol)
    shown = {name: found[name] for name in RESTARTS if name in names}
    if shown:
        yield from restarts_parts(shown, run)


PAGES = {"evo_mmc": ("EvoMMC: Tables 1 and 2 and Figure 2 of Gieseke et al. (2009)", page, SETS)}

if __name__ == "__main__":
    common.main()
