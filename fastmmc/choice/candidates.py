"""The labellings that compete for a number of clusters."""

from __future__ import annotations

from operator import itemgetter

from fastmmc.rls.engine.genie import GINIS
from fastmmc.rls.engine.group_search import GroupSearch

# The kernels: a share f of the n / k points of an average cluster, or of n / 2 points if None; how
# many times the median distance to so many neighbours sigma is; and lam of up to 2,000 points. The
# wide ones draw smooth borders, the narrow ones follow thin shapes.
KERNELS = ((None, 2.0, 1e-4), (None, 1.0, 1e-2), (0.25, 1.0, 0.25), (0.0625, 1.0, 0.25))

# Labellings of about equal sizes from each kernel.
N_NEAR = 2

# Steps of all this, for the share of the work that is done.
N_STEPS = 3 * len(KERNELS)


class Labellings:
    """All that is tried for k clusters, made step by step."""

    def __init__(self, widths, kept, k, rng, run):
        self._widths = widths
        self._kept = kept
        self._k = k
        self._rng = rng
        self._run = run
        self._groups = []
        self._starts = []
        # The kernels that were made, and the labellings: rule, the Width that they have the least
        # cost at or None, threshold or None, and labels.
        self.kernels = []
        self.found = []

    def begin(self):
        """Make the first labellings."""
        self._cut(KERNELS[0], ("genie", self._widths.genie))

    def go_on(self):
        """Make the others."""
        kept = self._kept
        for kernel in KERNELS[1:]:
            self._cut(kernel)
        for width, groups, start in zip(self.kernels, self._groups, self._starts, strict=True):
            self._search("free", width, groups, True, kept.free, [start], 1)
        for width, groups in zip(self.kernels, self._groups, strict=True):
            self._search("near", width, groups, False, kept.near, [], N_NEAR)

    def _cut(self, kernel, *others):
        """Make the hat matrix of a kernel, and Genie's clusters in its metric and ``others``."""
        f, factor, lam = kernel
        cells, kept = self._widths.cells, self._kept
        width = self._widths.at(
            cells.total / 2 if f is None else f * cells.total / self._k, factor, lam
        )
        groups = kept.groups(width)
        self.kernels.append(width)
        self._groups.append(groups)
        for rule, genie in (*others, ("smoothed", width.genie)):
            cuts = genie.cut(self._k)
            cuts = {g: kept.repair(groups, cuts[g], cells.masses) for g in GINIS}
            self.found += [(rule, None, g, cuts[g]) for g in GINIS]
        first = kept.first
        descents = [groups.descend(cuts[g][first], kept.free, True) for g in GINIS]
        self._starts.append(min(descents, key=itemgetter(1))[0])
        self._run.end_step()

    def _search(self, name, width, groups, free, rule, given, count):
        """Search labels of the least cost with a kernel, and take so many of the best."""
        search = GroupSearch(groups, rule, free, self._rng)
        try:
            search.run(given, self._run.look)
        finally:
            ranked = search.ranked[:count]
            self.found += [(name, width, None, self._kept.of_cells(one)) for one in ranked]
        self._run.end_step()
