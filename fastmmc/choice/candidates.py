"""The labellings that compete for a number of clusters."""

from __future__ import annotations

from dataclasses import replace
from operator import itemgetter

from fastmmc.data.sizes import size_rule
from fastmmc.rls.engine.genie import GINIS
from fastmmc.rls.engine.group_search import GroupSearch

# The kernels: a share f of the n / k points of an average cluster, or of n / 2 points if None; how
# many times the median distance to so many neighbours sigma is; and lam of up to 2,000 points. The
# wide ones draw smooth borders, the narrow ones follow thin shapes.
KERNELS = ((None, 2.0, 1e-4), (None, 1.0, 1e-2), (0.25, 1.0, 0.25), (0.0625, 1.0, 0.25))

# How far from n / k sizes may be where they are about equal, as a share of n / k.
BALANCE = 0.4

# Labellings of about equal sizes from each kernel.
N_NEAR = 2

# Steps of all this, for the share of the work that is done.
N_STEPS = 3 * len(KERNELS)


class Labellings:
    """All that is tried for k clusters, made step by step."""

    def __init__(self, widths, k, rng, run):
        n = widths.cells.n
        self._widths = widths
        self._k = k
        self._rng = rng
        self._run = run
        self._free_rule = size_rule(n, k, bounded=False)
        # Cells cannot be swapped as points are, and so far from n / k moves reach what swaps would.
        self._near_rule = replace(size_rule(n, k, balance=BALANCE), bounded=False)
        self._starts = []
        # The kernels that were made, and the labellings: rule, the Width that they have the least
        # cost at or None, threshold or None, and labels.
        self.kernels = []
        self.found = []

    def begin(self):
        """Make the first labellings."""
        for g, labels in self._widths.genie.cut(self._k).items():
            self.found.append(("genie", None, g, labels))
        self._cut(KERNELS[0])

    def go_on(self):
        """Make the others."""
        for kernel in KERNELS[1:]:
            self._cut(kernel)
        for width, start in zip(self.kernels, self._starts, strict=True):
            self._search("free", width, True, self._free_rule, [start], 1)
        for width in self.kernels:
            self._search("near", width, False, self._near_rule, [], N_NEAR)

    def _cut(self, kernel):
        """Make the hat matrix of a kernel, and Genie's clusters in its metric."""
        f, factor, lam = kernel
        n = self._widths.cells.n
        width = self._widths.at(n / 2 if f is None else f * n / self._k, factor, lam)
        cuts = width.genie.cut(self._k)
        self.kernels.append(width)
        self.found += [("smoothed", None, g, cuts[g]) for g in GINIS]
        descents = [width.groups.descend(cuts[g], self._free_rule, True) for g in GINIS]
        self._starts.append(min(descents, key=itemgetter(1))[0])
        self._run.end_step()

    def _search(self, name, width, free, rule, given, count):
        """Search labels of the least cost with a kernel, and take so many of the best."""
        search = GroupSearch(width.groups, rule, free, self._rng)
        try:
            search.run(given, self._run.look)
        finally:
            self.found += [(name, width, None, labels) for labels in search.ranked[:count]]
        self._run.end_step()
