"""What the numbers and parts of `cluster` and of the memetic search are worth, changed alone."""

from contextlib import ExitStack
from functools import partial
from unittest import mock

import common
import numpy as np
from common import load, under
from quality import agreement, count_clusters
from shapes import SETS as SHAPES
from shapes import make
from sklearn.datasets import make_circles
from sklearn.metrics import adjusted_rand_score

import fastmmc
from fastmmc.choice import candidates, vote
from fastmmc.kernels.gram import median_width
from fastmmc.rls.engine.groups import Groups


def changed(change):
    """Return a context in which names of the package have other values."""
    stack = ExitStack()
    for name, value in change.items():
        stack.enter_context(mock.patch(f"fastmmc.{name}", value))
    return stack


# ------------------------------------------------------------------------------- parts of `cluster`
RINGS = (300, 500, 1000, 2000)


def kernels(*kept):
    """Return the change that keeps some of the kernels, and what judges in their places."""
    return {
        f"choice.candidates.{name}": tuple(getattr(candidates, name)[i] for i in kept)
        for name in ("KERNELS", "JUDGES")
    }


def without(rule):
    """Return the change in which the labellings of a rule do not vote."""
    whole = vote.vote

    def voted(found, *args):
        return whole([one for one in found if one[0] != rule], *args)

    return {"choice.methods.vote": voted}


def searched(starts, patience):
    """Return the change of how many starts a search has, and children without gain."""
    search = partial(candidates.GroupSearch, patience=patience)
    return {"choice.candidates.STARTS": starts, "choice.candidates.GroupSearch": search}


CHANGES = {
    "as it is": {},
    "300 cells": {"rls.engine.coarse.CELLS": 300},
    "1,000 cells": {"rls.engine.coarse.CELLS": 1000},
    "20 cells for each cluster": {"rls.engine.coarse.CELLS_PER_CLUSTER": 20},
    "without the widest kernel": kernels(1, 2, 3),
    "without the wide kernel": kernels(0, 2, 3),
    "without the narrow kernel": kernels(0, 1, 3),
    "without the narrowest kernel": kernels(0, 1, 2),
    "no labels of about equal sizes": without("near"),
    "one of about equal sizes": {"choice.candidates.N_NEAR": 1},
    "no labels of free sizes": without("free"),
    "no clusters of Genie": without("genie"),
    "no smoothed clusters of Genie": without("smoothed"),
    "no k-means": without("k-means"),
    "six clusterings by k-means": {"choice.candidates.N_MEANS": 6},
    "24 clusterings by k-means": {"choice.candidates.N_MEANS": 24},
    "k-means has its say at all errors": {"choice.vote.MEANS_FLOOR": vote.FLOOR},
    "little say of k-means up to an error of .1": {"choice.vote.MEANS_FLOOR": 0.1},
    "no dithering": {"choice.widths.dithered": lambda cells, X, rng: cells},
    "judged by the kernels that search": {"choice.candidates.JUDGES": candidates.KERNELS},
    "sizes within 20 %": {"choice.given.BALANCE": 0.2},
    "sizes within 60 %": {"choice.given.BALANCE": 0.6},
    "squared distances": {"choice.vote.DISTANCE": 2.0},
    "fourth powers of distances": {"choice.vote.DISTANCE": 4.0},
    "however uneven the sizes are": {"choice.vote.EVENNESS": 0.0},
    "cube of the evenness": {"choice.vote.EVENNESS": 3.0},
    "agreement, not its cube": {"choice.vote.AGREEMENT": 1.0},
    "square of the agreement": {"choice.vote.AGREEMENT": 2.0},
    "however often a labelling was found": {"choice.vote.REPEATS": 0.0},
    "the root of how often": {"choice.vote.REPEATS": 0.5},
    "floor .0001": {"choice.vote.FLOOR": 1e-4},
    "floor .01": {"choice.vote.FLOOR": 1e-2},
    "2 starts, patience 6": searched(2, 6),
    "10 starts, patience 24": searched(10, 24),
}


def measure(change, name, seed):
    """Return the agreement on a made set, or on as many points of two rings."""
    if name in SHAPES:
        X, y = make(name, seed)
    else:
        X, y = make_circles(name, noise=0.03, factor=0.8, random_state=seed)
        y += 1
    with changed(CHANGES[change]):
        return agreement(y, fastmmc.cluster(X, count_clusters(y), random_state=seed).labels)


def choice_page(run):
    # A quick run has all changes to go through as well.
    seeds, sizes = run.pick((5, RINGS), (1, RINGS[:1]))
    names = run.pick(run.sets, run.sets[::20])
    found = run.each(measure, CHANGES, names, range(1))
    rings = run.each(measure, CHANGES, sizes, range(seeds))
    yield (
        f"Adjusted Rand index over {len(names)} sets, k given, one drawing each, and how many of "
        f"{len(sizes) * seeds} pairs of rings are found. Differences below .005 are chance."
    )
    rows = ([c, under(found, c).mean(), np.sum(under(rings, c) > 0.98)] for c in CHANGES)
    yield ["changed", "mean ARI", "rings"], rows, 3


# -------------------------------------------------------------------------------- memetic search
SETTINGS = ((1, 1 / 4), (1, 1.0), (2, 1 / 4))  # (sigma^2 / its median, lam) on digits / 16
K = 10
BALANCE = 0.2  # the size rule of all searches that are compared by their objective
SETS = "coil", "letter A-D", *(f"usps {d}" for d in ("0-3", "4-7", "3-8", "1-7", "2-7", "8-9"))


# What is changed in the package, and parameters of the call.
VARIANTS = {
    "as it is": ({}, {}),
    "population 4": ({}, {"population": 4}),
    "population 16": ({}, {"population": 16}),
    "patience 5": ({}, {"patience": 5}),
    "patience 80": ({}, {"patience": 80}),
    "no crossover": ({"rls.engine.groups.Groups.recombine": lambda groups, a, b, k: a}, {}),
    "no parts of the tree": ({"rls.engine.groups.Groups.refine": Groups.descend}, {}),
    "on all points": ({"rls.planning.wanted_cells": lambda *told: 0}, {}),
    **{f"sizes within {100 * share:.0f} %": ({}, {"balance": share}) for share in (0.1, 0.4, 0.8)},
}
# On other sets, with the default sigma and lam; k-means stands beside them.
SEARCHES = {
    "memetic": {"method": "memetic"},
    "one start": {"method": "shaking", "n_init": 1},
    "30 starts": {"method": "shaking"},
    "30, polished, same bounds": {"method": "shaking", "polish": True, "balance": BALANCE},
}


def digits_factor(width, lam):
    X, y = load("digits")
    X = X / 16
    return fastmmc.factor(X, sigma=median_width(X) * np.sqrt(width), lam=lam), y


def describe(y, run):
    return run.objective, adjusted_rand_score(y, run.labels), run.n_moves


def run_digits(setting, seed):
    """Return objective, ARI and moves of memetic search, restarts and truth, (3, 3).

    Restarts are as many single starts as make the moves of the memetic search.
    """
    factor, y = digits_factor(*setting)
    solve = partial(fastmmc.umc_rls, factor, K, balance=BALANCE)
    memetic = describe(y, solve(method="memetic", random_state=seed))
    start = partial(solve, method="shaking", polish=True, n_init=1)
    found, made = [], 0
    while made < memetic[2]:
        stream = np.random.SeedSequence((seed, len(found)))
        found.append(describe(y, start(random_state=stream)))
        made += found[-1][2]
    truth = describe(y, solve(method="steepest", init=y, polish=True))
    return np.array([memetic, min(found), truth])


def run_variant(name, seed):
    """Return objective, ARI and moves of one variant."""
    change, params = VARIANTS[name]
    factor, y = digits_factor(*SETTINGS[0])
    given = {"method": "memetic", "balance": BALANCE, "random_state": seed} | params
    with changed(change):
        return describe(y, fastmmc.umc_rls(factor, K, **given))


def run_set(name, seed):
    """Return the ARI of the searches and of k-means."""
    X, y = load(name, seed)
    k, factor = y.max() + 1, fastmmc.factor(X)
    solve = partial(fastmmc.umc_rls, factor, k, random_state=seed, sizes="equal")
    labels = [*(solve(**how).labels for how in SEARCHES.values()), common.k_means(X, k, seed)]
    return [adjusted_rand_score(y, found) for found in labels]


def search_page(run):
    seeds, settings = range(run.repeats(10, 2)), run.pick(SETTINGS, SETTINGS[:1])
    yield f"{len(seeds)} seeds each."
    yield f"## Digits: objective under the same size rule, balance {BALANCE}"
    yield "Medians over the seeds."
    found, rows = run.each(run_digits, settings, seeds), []
    for width, lam in settings:
        objectives, aris, moves = np.moveaxis(under(found, (width, lam)), -1, 0)
        not_above = np.sum(objectives[:, :1] <= objectives[:, 1:] * (1 + 1e-9), axis=0)
        row = [f"{width} x median, lam {lam:g}"]
        row += [f"{objective:.1f}" for objective in np.median(objectives, axis=0)]
        row += [*(f"{count} of {len(aris)}" for count in not_above), *np.median(aris, axis=0)]
        rows.append([*row, aris[:, 0].min(), f"{np.median(moves[:, 0]) / 1000:.0f}"])
    header = ["setting", "memetic", "restarts", "truth", "not above restarts", "not above truth"]
    header += ["ARI memetic", "restarts", "truth", "memetic, lowest", "1000 moves"]
    yield header, rows, 3
    yield f"## Which parts matter (sigma² = its median, lam 1/4, balance {BALANCE})"
    yield "The objectives of other bounds on the sizes cannot be compared."
    found, rows = run.each(run_variant, VARIANTS, seeds), []
    for name in VARIANTS:
        objective, ari, moves = under(found, name).T
        rows.append([name, objective, np.median(ari), ari.min(), f"{moves.mean() / 1e3:.0f}"])
    yield ["variant", "objective", "ARI, median", "lowest", "1000 moves"], rows, 3
    yield "## Other sets: ARI with the default sigma and lam"
    names = run.loaded()
    found = run.each(run_set, names, seeds)
    yield ["set", *SEARCHES, "k-means"], ([name, *under(found, name).T] for name in names), 3


PAGES = {
    "ablation_choice": ("What the parts of `cluster` are worth", choice_page, tuple(SHAPES)),
    "ablation_search": ("The memetic search", search_page, SETS),
}

if __name__ == "__main__":
    common.main()
