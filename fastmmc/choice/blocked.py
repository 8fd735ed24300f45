"""The choice for points in blocks: cells of all of them, and their labels, in passes over blocks.

The candidates and the vote are those of cells in memory. Seeds are drawn as there: half of them at
random, the others with chances as the squared distances from these. Each block draws for itself, by
exponential numbers over the chances, of which the least ones of all blocks win.
"""

from dataclasses import replace
from math import isqrt
from types import SimpleNamespace

import numpy as np

from fastmmc.choice.whole import PRODUCTS
from fastmmc.core.declare import told
from fastmmc.core.parameters import SizeParameters
from fastmmc.data.blocks import check_block
from fastmmc.kernels.block_factor import make_block_factor
from fastmmc.kernels.gram import evenly
from fastmmc.rls.blocked import Descent, Goal
from fastmmc.rls.engine.coarse import Coarsening, nearest_of
from fastmmc.rls.engine.groups import sums_of


def coarsen_blocks(blocks, sample, count, rng):
    """Return at most ``count`` cells of the points of blocks, and the points that are their seeds.

    ``sample`` are some of the points.
    """
    near = sample[np.sort(rng.choice(len(sample), count // 2, replace=False))].astype(np.float64)
    wanted = count - len(near)
    shared = blocks.share((near, blocks.dtype, wanted, int(rng.integers(2**31))))
    tasks = [blocks.task(_draw_far, rows, shared, at) for at, rows in enumerate(blocks.rows)]
    keys, far = (np.concatenate(parts) for parts in zip(*blocks.fetch(tasks), strict=True))
    seeds = np.concatenate((near, far[np.argsort(keys, kind="stable")[:wanted]]))
    masses, sums = blocks.total(blocks.map(_sum_cells, seeds))
    used = masses > 0
    members = blocks.join(blocks.map(_members, (seeds, np.cumsum(used) - 1)))
    points = sums[used] / masses[used, None]
    return Coarsening(members, masses[used], np.arange(len(points)), points, False), seeds[used]


def label_blocks(call, blocks, sample, winner, width, rules, control):
    """Return the result for the points of blocks by the labels of cells that won, and landmarks."""
    n, k, kernel = blocks.shape[0], rules[0].lower.size, width.kernel
    free, near = rules
    rule, kind = (near, "equal") if winner.rule == "near" else (free, "free")
    # What a search that has ended tells of itself.
    found = SimpleNamespace(params={"k": k, "sizes": kind} | kernel.params(), n_moves=0)
    basis = width.points.astype(blocks.dtype)
    # Of the functions that fit the clusters of cells, (g, k).
    roots = np.sqrt(width.weights)[:, None]
    E = roots * (winner.labels[:, None] == np.arange(k))
    coef = roots * width.factor.coefficients(E)
    factor = make_block_factor(blocks, width.lam, kernel, basis, None, coef)
    is_asked = bool(told(call, SizeParameters))
    goal = Goal(kind, n, k, rule.lower, rule.upper, is_asked or kind == "equal")
    descent = Descent(factor, sample, found, goal, control)
    descent.predict(coef)
    descent.end()
    result = descent.result(call)
    if not is_asked:
        result = replace(result, size_bounds=None)
    return result, basis[evenly(len(basis), max(1, isqrt(PRODUCTS // n)))]


def _draw_far(rows, shared, at):
    """Return the least keys of a block, (m,), and the points that have them."""
    near, dtype, count, seed = shared
    rows = check_block(rows, near.shape[1], dtype)
    _, squares = nearest_of(near)(rows)
    keys = np.random.default_rng((seed, at)).exponential(size=len(rows))
    chosen = np.flatnonzero(squares > 0)
    keys = keys[chosen] / squares[chosen]
    first = np.argsort(keys, kind="stable")[:count]
    return keys[first], rows[chosen[first]].astype(np.float64)


def _sum_cells(rows, seeds):
    """Return how many of a block's points each cell has, and their sums."""
    cells, g = nearest_of(seeds)(rows)[0], len(seeds)
    return np.bincount(cells, minlength=g), sums_of(rows, cells, g)


def _members(rows, shared):
    """Return the cells of a block's points; ``place`` tells which of the seeds have one."""
    seeds, place = shared
    return place[nearest_of(seeds)(rows)[0]]
