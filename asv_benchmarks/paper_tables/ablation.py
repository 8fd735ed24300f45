"""What the numbers and parts of `cluster` and of the searches of UMC-RLS are worth, changed alone.

Pages: ``ablation_choice``, ``ablation_search``. See README.md in this folder for the protocols.
"""

from contextlib import ExitStack, nullcontext
from unittest import mock

import numpy as np
from common import draw, load_source, main, number, sources, spread, table
from quality import agreement, count_clusters
from shapes import SETS as SHAPES
from shapes import make
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, make_circles
from sklearn.metrics import adjusted_rand_score

import fastmmc
from fastmmc.choice import candidates, given, methods, vote
from fastmmc.data.sizes import fit_sizes
from fastmmc.rls import plan, search
from fastmmc.rls.engine import coarse, group_search
from fastmmc.rls.engine.memetic import MemeticSearch, matched_clusters

RINGS = (300, 500, 1000, 2000)

WHOLE = candidates.KERNELS


def kernels(*kept):
    """Return the change that keeps some of the kernels, and what judges in their places."""
    judges = candidates.JUDGES
    return [
        (candidates, "KERNELS", tuple(WHOLE[i] for i in kept)),
        (candidates, "JUDGES", tuple(judges[i] for i in kept)),
    ]


def without(*rules):
    """Return the change in which the labellings of some rules do not vote."""
    whole = vote.vote

    def voted(found, *args):
        return whole([one for one in found if one[0] not in rules], *args)

    return [("fastmmc.choice.methods", "vote", voted)]


# What is changed: (module, name, value).
CHANGES = {
    "as it is": [],
    "300 cells": [(coarse, "CELLS", 300)],
    "1,000 cells": [(coarse, "CELLS", 1000)],
    "20 cells for each cluster": [(coarse, "CELLS_PER_CLUSTER", 20)],
    "without the widest kernel": kernels(1, 2, 3),
    "without the wide kernel": kernels(0, 2, 3),
    "without the narrow kernel": kernels(0, 1, 3),
    "without the narrowest kernel": kernels(0, 1, 2),
    "no labels of about equal sizes": without("near"),
    "one of about equal sizes": [(candidates, "N_NEAR", 1)],
    "no labels of free sizes": without("free"),
    "no clusters of Genie": without("genie"),
    "no smoothed clusters of Genie": without("smoothed"),
    "no k-means": without("k-means"),
    "four clusterings by k-means": [(candidates, "N_MEANS", 4)],
    "16 clusterings by k-means": [(candidates, "N_MEANS", 16)],
    "floor of k-means .01": [(vote, "MEANS_FLOOR", 0.01)],
    "floor of k-means .1": [(vote, "MEANS_FLOOR", 0.1)],
    "no dithering": [(methods, "dithered", lambda cells, X, rng: cells)],
    "judged by the kernels that search": [(candidates, "JUDGES", WHOLE)],
    "sizes within 20 %": [(given, "BALANCE", 0.2)],
    "sizes within 60 %": [(given, "BALANCE", 0.6)],
    "price 1": [(vote, "PRICE", 1.0)],
    "price 2": [(vote, "PRICE", 2.0)],
    "floor .0001": [(vote, "FLOOR", 1e-4)],
    "floor .01": [(vote, "FLOOR", 1e-2)],
    "2 starts, patience 6": [
        (group_search, "STARTS", 2),
        (group_search, "PATIENCE", 6),
    ],
    "10 starts, patience 24": [
        (group_search, "STARTS", 10),
        (group_search, "PATIENCE", 24),
    ],
}


def changed(change):
    """Return a context in which a change holds."""
    stack = ExitStack()
    for module, name, value in CHANGES[change]:
        if isinstance(module, str):
            stack.enter_context(mock.patch(f"{module}.{name}", value))
        else:
            stack.enter_context(mock.patch.object(module, name, value))
    return stack


def measure(change, name, seed):
    """Return the agreement on a set."""
    X, y = make(name, seed)
    with changed(change):
        return agreement(y, fastmmc.cluster(X, count_clusters(y), random_state=seed).labels)


def measure_rings(change, n, seed):
    """Tell whether two rings are found."""
    X, y = make_circles(n, noise=0.03, factor=0.8, random_state=seed)
    with changed(change):
        return agreement(y + 1, fastmmc.cluster(X, 2, random_state=seed).labels) > 0.98


def choice_page(run):
    seeds, ring_seeds = range(1 if run.quick else 2), range(1 if run.quick else 5)
    names = [n for n in run.sets if "digits" not in n or not run.quick]
    tasks = {(c, n, s): (measure, c, n, s) for c in CHANGES for n in names for s in seeds}
    tasks |= {
        (c, n, s): (measure_rings, c, n, s) for c in CHANGES for n in RINGS for s in ring_seeds
    }
    found = run.do(tasks)
    yield "# What the parts of `cluster` are worth"
    yield run.made()
    yield (
        f"Adjusted Rand index over {len(names)} made and bundled sets, k given, {len(seeds)} "
        f"drawings each, and how many of {len(RINGS) * len(ring_seeds)} draws of two rings "
        f"(`make_circles(n, noise=.03, factor=.8)`, n = {', '.join(map(str, RINGS))}) are found. "
        "Differences of less than about .005 are chance."
    )
    rows = []
    for change in CHANGES:
        scores = [found[change, n, s] for n in names for s in seeds]
        rings = sum(bool(found[change, n, s]) for n in RINGS for s in ring_seeds)
        rows.append([change, number(np.mean(scores), 3), rings])
    yield table(["changed", "mean ARI", "rings"], rows)


# ------------------------------------------------------------------------------- the searches

# (sigma^2 / its median, lam) on digits / 16.
SETTINGS = ((1, 1 / 4), (1, 1.0), (2, 1 / 4))
K = 10

# The size rule of all searches that are compared by their objective.
BALANCE = 0.4
BALANCES = (0.1, 0.2, 0.4, 0.8)

SETS = sources(
    "coil",
    "letter A-D",
    "usps 0-3",
    "usps 4-7",
    "usps 3-8",
    "usps 1-7",
    "usps 2-7",
    "usps 8-9",
)


class MutationOnly(MemeticSearch):
    """Children are shaken copies of one parent."""

    def _child_labels(self):
        return self._population[self._rng.integers(len(self._population))].labels


class LabelCrossover(MemeticSearch):
    """A point keeps its cluster where the parents agree; else one of them decides by chance."""

    def _child_labels(self):
        i, j = self._rng.choice(len(self._population), 2, replace=False)
        a, b = self._population[i].labels, self._population[j].labels
        in_b = np.argsort(matched_clusters(a, b, self._plan.k))[b]
        labels = np.where(self._rng.random(a.size) < 0.5, a, in_b)
        rule, scores = self._plan.rule, self._rng.random((self._plan.k, a.size))
        return fit_sizes(labels, scores, rule.lower, rule.upper)


class OwnRowsKept(MemeticSearch):
    """The sums that a child's points are scored by still hold the points themselves."""

    def _child_labels(self):
        with mock.patch.object(self, "_diag", np.zeros_like(self._diag)):
            return super()._child_labels()


class TwinsKept(MemeticSearch):
    """The same partition may have several places."""

    def _are_equal(self, a, b):
        return False


# Search, constants of its plan, and parameters of the call.
VARIANTS = {
    "as it is": (MemeticSearch, {}, {}),
    "population 4": (MemeticSearch, {}, {"population": 4}),
    "population 16": (MemeticSearch, {}, {"population": 16}),
    "children shaken from round 2": (MemeticSearch, {"FIRST_CHILD_ROUND": 2}, {}),
    "children shaken from round 6": (MemeticSearch, {"FIRST_CHILD_ROUND": 6}, {}),
    "children in rounds 4 to 20": (MemeticSearch, {"CHILD_ROUNDS": 17}, {}),
    "children not shaken": (MemeticSearch, {"CHILD_ROUNDS": 0}, {}),
    "no crossover": (MutationOnly, {}, {}),
    "crossover of labels": (LabelCrossover, {}, {}),
    "own rows kept": (OwnRowsKept, {}, {}),
    "twins kept": (TwinsKept, {}, {}),
}


def digits_factor(width, lam):
    X, y = load_digits(return_X_y=True)
    X = X / 16
    sigma = fastmmc.kernels.gram.median_width(X) * np.sqrt(width)
    return fastmmc.factor(X, sigma=sigma, lam=lam), y


def describe(y, run):
    """Return objective, ARI and moves of a run."""
    return run.objective, adjusted_rand_score(y, run.labels), run.n_moves


def restarts_of_equal_length(factor, y, moves, seed):
    """Return what describes the best of as many single starts as make so many moves."""
    found, made = [], 0
    while made < moves:
        run = fastmmc.umc_rls(
            factor,
            K,
            method="shaking",
            balance=BALANCE,
            polish=True,
            n_init=1,
            random_state=np.random.SeedSequence((seed, len(found))),
        )
        made += run.n_moves
        found.append(describe(y, run))
    return min(found)


def run_digits(width, lam, seed):
    """Return {search: what describes its best} under the same bounds."""
    factor, y = digits_factor(width, lam)
    memetic = fastmmc.umc_rls(factor, K, method="memetic", balance=BALANCE, random_state=seed)
    truth = fastmmc.umc_rls(factor, K, method="steepest", init=y, balance=BALANCE, polish=True)
    return {
        "memetic": describe(y, memetic),
        "restarts": restarts_of_equal_length(factor, y, memetic.n_moves, seed),
        "truth": describe(y, truth),
    }


def run_variant(name, width, lam, seed):
    """Return what describes the result of one variant."""
    variant, constants, params = VARIANTS[name]
    factor, y = digits_factor(width, lam)
    with (
        mock.patch.object(search, "MemeticSearch", variant),
        mock.patch.multiple(plan, **constants) if constants else nullcontext(),
    ):
        run = fastmmc.umc_rls(
            factor, K, method="memetic", balance=BALANCE, random_state=seed, **params
        )
    return describe(y, run)


def run_balance(balance, seed):
    factor, y = digits_factor(*SETTINGS[0])
    run = fastmmc.umc_rls(factor, K, method="memetic", balance=balance, random_state=seed)
    return describe(y, run)


def run_set(X, y, size, seed):
    """Return the ARI of the memetic search, of plain starts and of k-means, with defaults."""
    X, y = draw(X, y, size, seed)
    k = len(np.unique(y))
    factor = fastmmc.factor(X)
    searches = (
        {"method": "memetic"},
        {"method": "shaking", "n_init": 1},
        {"method": "shaking"},
        {"method": "shaking", "polish": True, "balance": BALANCE},
    )
    labels = [
        fastmmc.umc_rls(factor, k, random_state=seed, **how, sizes="equal").labels
        for how in searches
    ]
    labels.append(KMeans(k, n_init=10, random_state=seed).fit_predict(X))
    return [adjusted_rand_score(y, found) for found in labels]


def make_tasks(loaded, seeds, settings):
    """Return all tasks, keyed by section and what they are about."""
    tasks = {}
    for seed in seeds:
        for width, lam in settings:
            tasks["digits", (width, lam), seed] = (run_digits, width, lam, seed)
        for name in VARIANTS:
            tasks["variant", name, seed] = (run_variant, name, *SETTINGS[0], seed)
        for balance in BALANCES:
            tasks["balance", balance, seed] = (run_balance, balance, seed)
        for name, (X, y) in loaded.items():
            tasks["set", name, seed] = (run_set, X, y, SETS[name].draw, seed)
    return tasks


def pick(results, *key):
    """Return the results under a key, one row a seed."""
    found = sorted((where[-1], where) for where in results if where[: len(key)] == key)
    rows = [results[where] for _, where in found]
    return rows if isinstance(rows[0], dict) else np.array(rows)


def setting_text(setting):
    return f"{setting[0]} x median, lam {setting[1]:g}"


def digits_table(results, settings):
    rows = []
    for setting in settings:
        found = pick(results, "digits", setting)
        values = [
            np.array([row[name] for row in found]) for name in ("memetic", "restarts", "truth")
        ]
        objectives, aris, moves = np.moveaxis(values, -1, 0)
        not_above = np.sum(objectives[0] <= objectives[1:] * (1 + 1e-9), axis=1)
        rows.append(
            [
                setting_text(setting),
                *(f"{median:.1f}" for median in np.median(objectives, axis=1)),
                *(f"{count} of {len(found)}" for count in not_above),
                *(f"{median:.3f}" for median in np.median(aris, axis=1)),
                f"{aris[0].min():.3f}",
                f"{np.median(moves[0]) / 1000:.0f}",
            ]
        )
    header = ["setting", "memetic", "restarts", "truth", "not above restarts", "not above truth"]
    header += ["ARI memetic", "restarts", "truth", "memetic, lowest", "1000 moves"]
    return table(header, rows)


SUMMARY = ("objective", "ARI, median", "lowest")


def summary_cells(objective, ari):
    """Return what stands under SUMMARY for the runs of a row."""
    return spread(objective), f"{np.median(ari):.3f}", f"{ari.min():.3f}"


def variants_table(results):
    rows = []
    for name in VARIANTS:
        objective, ari, moves = pick(results, "variant", name).T
        rows.append([name, *summary_cells(objective, ari), f"{moves.mean() / 1e3:.0f}"])
    return table(["variant", *SUMMARY, "1000 moves"], rows)


def balance_table(results):
    rows = []
    for balance in BALANCES:
        objective, ari, _ = pick(results, "balance", balance).T
        rows.append([balance, *summary_cells(objective, ari)])
    return table(["balance", *SUMMARY], rows)


def sets_table(results, names):
    header = ["set", "memetic", "one start", "30 starts", "30, polished, same bounds", "k-means"]
    rows = [[name, *(spread(ari, 3) for ari in pick(results, "set", name).T)] for name in names]
    return table(header, rows)


def search_page(run):
    seeds = range(2 if run.quick else 10)
    settings = SETTINGS[:1] if run.quick else SETTINGS
    loaded = run.load(load_source)
    results = run.do(make_tasks(loaded, seeds, settings))
    return [
        "# The memetic search",
        f"{run.made()} {len(seeds)} seeds each.",
        f"## Digits: objective under the same size rule, balance {BALANCE}",
        "Medians over the seeds. Restarts are single starts with polish, as many as make the moves "
        "of the memetic search; truth is a descent from the true labels.",
        digits_table(results, settings),
        f"## Which parts matter ({setting_text(SETTINGS[0])}, balance {BALANCE})",
        variants_table(results),
        f"## How much the sizes may differ ({setting_text(SETTINGS[0])})",
        "The objectives of different rows cannot be compared: looser bounds allow lower ones.",
        balance_table(results),
        "## Other sets: ARI with the default sigma and lam",
        "Mean and standard deviation; where points are drawn, each seed draws its own. The plain "
        "starts have equal sizes, the memetic search and the last column of starts balance 0.4.",
        sets_table(results, loaded),
    ]


PAGES = {"ablation_choice": (choice_page, SHAPES), "ablation_search": (search_page, SETS)}

if __name__ == "__main__":
    main(PAGES)
