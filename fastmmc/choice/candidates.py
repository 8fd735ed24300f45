"""The labellings that compete for a number of clusters."""

from __future__ import annotations

from dataclasses import replace
from operator import itemgetter

from fastmmc.data.sizes import size_rule
from fastmmc.kernels.kmeans import k_means
from fastmmc.rls.engine.genie import GINIS
from fastmmc.rls.engine.group_search import GroupSearch

# The kernels: a number of neighbours as a multiple of all points, of the n / k points of an average
# cluster or of the points of an average cell; how many times the median distance to so many sigma
# is; and lam of up to 2,000 points. The wide ones draw smooth borders, the narrow ones follow thin
# shapes.
KERNELS = (
    (0.5, "points", 2.0, 1e-4),
    (0.5, "points", 1.0, 1e-2),
    (0.25, "cluster", 1.0, 0.25),
    (0.0625, "cluster", 1.0, 0.25),
)

# The kernels that judge, in the same order. A gap between narrow clusters is one to a kernel of
# few cells only: to a wider one a short cut across the clusters is better.
JUDGES = (*KERNELS[:-1], (4.0, "cell", 1.0, 0.25))

# How far from n / k sizes may be where they are about equal, as a share of n / k.
BALANCE = 0.4

# Labellings of about equal sizes from each kernel.
N_NEAR = 2

# Clusterings by k-means, from as many starts.
N_MEANS = 8

# Steps of all this, for the share of the work that is done.
N_STEPS = 3 * len(KERNELS)


class Labellings:
    """All that is tried for k clusters, made step by step."""

    def __init__(self, widths, judging, k, rng, run):
        n = widths.cells.n
        self._widths = widths
        self._judging = judging
        self._k = k
        self._rng = rng
        self._run = run
        self._free_rule = size_rule(n, k, bounded=False)
        # Cells cannot be swapped as points are, and so far from n / k moves reach what swaps would.
        self._near_rule = replace(size_rule(n, k, balance=BALANCE), bounded=False)
        self._starts = []
        # The kernels that were made, each with the one that judges in its place, and the
        # labellings: rule, the Width that they have the least cost at or None, threshold or None,
        # and labels.
        self.kernels = []
        self.judges = []
        self.found = []

    def begin(self):
        """Make the first labellings."""
        for g, labels in self._widths.genie.cut(self._k).items():
            self.found.append(("genie", None, g, labels))
        cells = self._widths.cells
        for seed in self._rng.integers(2**31, size=N_MEANS):
            labels, _ = k_means(cells.points, self._k, seed, cells.masses)
            self.found.append(("k-means", None, None, labels))
        self._cut(KERNELS[0], JUDGES[0])

    def go_on(self):
        """Make the others."""
        for kernel, judge in zip(KERNELS[1:], JUDGES[1:], strict=True):
            self._cut(kernel, judge)
        for width, start in zip(self.kernels, self._starts, strict=True):
            self._search("free", width, True, self._free_rule, [start], 1)
        for width in self.kernels:
            self._search("near", width, False, self._near_rule, [], N_NEAR)

    def _cut(self, kernel, judge):
        """Make the hat matrices of a kernel and a judge, and Genie's clusters with the kernel."""
        width = self._made(self._widths, *kernel)
        cuts = width.genie.cut(self._k)
        self.kernels.append(width)
        self.judges.append(self._made(self._judging, *judge))
        self.found += [("smoothed", None, g, cuts[g]) for g in GINIS]
        descents = [width.groups.descend(cuts[g], self._free_rule, True) for g in GINIS]
        self._starts.append(min(descents, key=itemgetter(1))[0])
        self._run.end_step()

    def _made(self, widths, share, of, factor, lam):
        """Return the hat matrix of a kernel."""
        n, g = widths.cells.n, widths.cells.masses.size
        neighbours = share * {"points": n, "cluster": n / self._k, "cell": n / g}[of]
        return widths.at(neighbours, factor, lam)

    def _search(self, name, width, free, rule, given, count):
        """Search labels of the least cost with a kernel, and take so many of the best."""
        search = GroupSearch(width.groups, rule, free, self._rng)
        try:
            search.run(given, self._run.look)
        finally:
            self.found += [(name, width, None, labels) for labels in search.ranked[:count]]
        self._run.end_step()
