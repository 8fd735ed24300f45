"""Measure what each number and each part of `cluster` is worth, changed alone.

See README.md in this folder for the protocol.
"""

from contextlib import ExitStack
from unittest import mock

import numpy as np
from common import main, number, table
from shapes import SETS, agreement, count_clusters, make
from sklearn.datasets import make_circles

import fastmmc
from fastmmc.choice import candidates, given, methods, vote
from fastmmc.rls.engine import coarse, group_search

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
    "2 random starts, patience 6": [
        (group_search, "RANDOM_STARTS", 2),
        (group_search, "PATIENCE", 6),
    ],
    "10 random starts, patience 24": [
        (group_search, "RANDOM_STARTS", 10),
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


def page(run):
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


if __name__ == "__main__":
    main(page, SETS)
