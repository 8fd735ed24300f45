"""The labellings that compete for a number of clusters."""

from itertools import chain, islice
from operator import itemgetter

from fastmmc.choice.widths import GINIS
from fastmmc.kernels.kmeans import k_means
from fastmmc.rls.engine.coarse import count_cells
from fastmmc.rls.engine.group_search import STARTS, GroupSearch, first_labels
from fastmmc.rls.engine.linked import majority

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
# few cells only: to a wider one a short cut across the clusters is better. With the last kernel in
# its place the mean index of 240 draws of rings is .82 and not .83, of 26 tables .394 and not .400;
# other collections are level.
JUDGES = (*KERNELS[:-1], (4.0, "cell", 1.0, 0.25))

# Labellings of about equal sizes from each kernel.
N_NEAR = 2

# Clusterings by k-means, from as many starts. If those of 4, 8, 12 and 16 starts count, the mean
# index of 26 tables is .365, .389, .404 and .410, of 32 draws of latent classes .770, .799, .816
# and .816, of a suite .843, .843, .844 and .840, of 12 real sets .581, .579, .578 and .566.
N_MEANS = 12

# Steps of all this, for the share of the work that is done.
N_STEPS = 3 * len(KERNELS)


class Labellings:
    """All that is tried for k clusters, made step by step."""

    def __init__(self, widths, judging, kept, k, rng, run):
        self._widths = widths
        self._judging = judging
        self._kept = kept
        self._k = k
        self._rng = rng
        self._run = run
        self._starts = []
        # The kernels that were made, each with the one that judges in its place, the groups that
        # are searched with it, and the labellings: rule, threshold or None, and labels.
        self.kernels = []
        self.groups = []
        self.found = []

    def begin(self):
        """Make the first labellings."""
        genie = self._widths.genie.cut(self._k)
        for widths, kernels in ((self._widths, KERNELS), (self._judging, JUDGES)):
            for share, of, *_ in kernels:
                widths.reach(self._neighbours(share, of))
            # Those of all kernels are known, whose hat matrices have need of the room.
            widths.forget_distances()
        self._cut(KERNELS[0], JUDGES[0])
        for g in GINIS:
            self._add("genie", g, genie[g])

    def go_on(self):
        """Make the others that take no search."""
        cells = self._widths.cells
        k = min(self._k, cells.masses.size)  # in blocks, equal points are one cell
        for seed in self._rng.integers(2**31, size=N_MEANS):
            labels, _ = k_means(cells.points, k, seed, cells.masses, look=self._run.look)
            self._add("k-means", None, labels)
        for kernel, judge in zip(KERNELS[1:], JUDGES[1:], strict=True):
            self._cut(kernel, judge)

    def search(self):
        """Make those that are searched."""
        kept = self._kept
        for groups, start in zip(self.groups, self._starts, strict=True):
            self._search("free", groups, True, kept.free, [start], 1)
        for groups in self.groups:
            self._search("near", groups, False, kept.near, [], N_NEAR)

    def _cut(self, kernel, judge):
        """Make the hat matrices of a kernel and a judge; find Genie's clusters with the kernel."""
        width = self._made(self._widths, *kernel)
        kept, groups = self._kept, self._kept.groups(width)
        self.kernels.append((width, self._made(self._judging, *judge)))
        self.groups.append(groups)
        cuts = width.genie.cut(self._k)
        smoothed = [self._add("smoothed", g, cuts[g])[kept.first] for g in GINIS]
        descents = [groups.descend(labels, kept.free) for labels in smoothed]
        self._starts.append(min(descents, key=itemgetter(1))[0])
        self._run.end_step()

    def _add(self, rule, gini, labels):
        """Add a labelling that no search made, after it is made to keep what is known."""
        labels = self._kept.repair(self.groups[-1], labels, self._widths.cells.masses)
        self.found.append((rule, gini, labels))
        return labels

    def _made(self, widths, share, of, factor, lam):
        """Return the hat matrix of a kernel."""
        return widths.at(self._neighbours(share, of), factor, lam)

    def _neighbours(self, share, of):
        """Return how many neighbours a kernel reaches."""
        cells = self._widths.cells
        total, g = cells.total, cells.masses.size
        return share * {"points": total, "cluster": total / self._k, "cell": total / g}[of]

    def _search(self, name, groups, free, rule, given, count):
        """Search labels of the least cost with a kernel, and take so many of the best.

        Parts of Ward's tree are searched where there are more groups, and then these descend: 3.3 s
        for 100 clusters in place of 8.9 s. The costs of four sets of 10 to 100 clusters differ by
        -.2 to .2 %.
        """
        coarse, parts = groups.coarse(count_cells(groups.n, self._k))
        given = [majority(labels, parts, groups.masses, self._k) for labels in given]
        search = GroupSearch(coarse, rule, free)
        starts = chain(given, islice(first_labels(coarse, self._k, self._rng), STARTS))
        try:
            for _ in search.run(starts, self._rng):
                self._run.look()
        finally:
            for labels in search.ranked[:count]:
                # A second refinement of the same groups may change labels that are as good.
                if coarse is not groups:
                    labels = groups.refine(groups.fitted(labels[parts], rule), rule, free)[0]
                self.found.append((name, None, self._kept.of_cells(labels)))
        self._run.end_step()
