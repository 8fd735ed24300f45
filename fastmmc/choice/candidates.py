"""The labellings that compete for a number of clusters."""

from __future__ import annotations

from dataclasses import replace
from operator import itemgetter

from fastmmc.rls.genie import GINIS
from fastmmc.rls.group_search import GroupSearch
from fastmmc.sizes import size_rule

# Widths sigma: sigma^2 is the median squared distance of a point from its (f n / k)-th neighbour.
WIDTHS = (4.0, 1.0, 0.25, 0.0625)

# How far from n / k sizes may be where they are about equal, as a share of n / k.
BALANCE = 0.4

# Steps of all this, for the share of the work that is done.
N_STEPS = 3 * len(WIDTHS)


class Labellings:
    """All that is tried for k clusters, made step by step."""

    def __init__(self, widths, k, rng, run):
        n = widths.cells.n
        self._widths = widths
        self._k = k
        self._rng = rng
        self._run = run
        self._free_rule = size_rule(n, k, bounded=False)
        # Groups cannot be swapped as points are, and so near to n / k moves reach any size.
        self._near_rule = replace(size_rule(n, k, balance=BALANCE), bounded=False)
        self._made = {}
        self._cheapest = {}
        # Each with its rule, f, width and threshold, or None, and its labels.
        self.found = []

    def begin(self):
        """Make the first labellings."""
        for g, labels in self._widths.genie.cut(self._k).items():
            self.found.append(("genie", None, None, g, labels))
        self._link(WIDTHS[0])

    def go_on(self):
        """Make the others."""
        for f in WIDTHS[1:]:
            self._link(f)
        for f in WIDTHS:
            self._search("free", f, True, self._free_rule, [self._cheapest[f]])
        for f in WIDTHS:
            self._search("near", f, False, self._near_rule, [])

    def of_widths(self):
        """Return the widths that were made, by f."""
        return self._made

    def _link(self, f):
        """Make a width, and descend there from Genie's clusters, in both metrics."""
        width = self._made[f] = self._widths.at(f * self._widths.cells.n / self._k)
        sources = (("linked", self._widths.genie), ("smoothed", width.genie))
        costs = []
        for rule, genie in sources:
            for g in GINIS:
                start = genie.cut(self._k)[g]
                labels, cost, _ = width.groups.descend(start, self._free_rule, True)
                self.found.append((rule, f, width, g, labels))
                costs.append((cost, labels))
        self._cheapest[f] = min(costs, key=itemgetter(0))[1]
        self._run.end_step()

    def _search(self, name, f, free, rule, given):
        """Search labels of the least cost at a width."""
        width = self._made[f]
        search = GroupSearch(width.groups, rule, free, self._rng)
        try:
            search.run(given, self._run.look)
        finally:
            if search.best is not None:
                self.found.append((name, f, width, None, search.best[1]))
        self._run.end_step()
