"""All that is tried for a number of clusters."""

from itertools import pairwise
from operator import itemgetter

import numpy as np

from fastmmc.choice.vote import judge
from fastmmc.rls.genie import GINIS
from fastmmc.rls.memetic import TOLERANCE
from fastmmc.rls.plan import GENTLE_CLUSTERS, GENTLE_ROUND

# Widths sigma: sigma^2 is the median squared distance of a point from its (f n / k)-th neighbour.
WIDTHS = (4.0, 1.0, 0.25, 0.0625)

# Size bounds of the labels of about equal sizes.
BALANCE = 0.4


class Labellings:
    """All that is tried for k clusters, made by and by."""

    def __init__(self, chooser, k):
        self._chooser = chooser
        self._run = chooser.run
        self._k = k
        self._of_genie = chooser.genie.cut(k)
        self._widths = {}
        # Labels by rule, width and Genie's threshold, None until they are made.
        ways = [("near", None), ("polished", None), *(("linked", g) for g in GINIS)]
        self._found = {(rule, f, g): None for f in WIDTHS for rule, g in ways}
        self._found |= {("free", f, None): None for f in WIDTHS}
        # The cheapest in size-free cost of each width, with that cost.
        self._cheapest = {}
        # Objective and labels of about equal sizes, by width.
        self._near = {}

    def begin(self):
        """Make the first labellings."""
        self._link(WIDTHS[0])

    def go_on(self):
        """Make the others."""
        for f in WIDTHS[1:]:
            self._link(f)
        self._search_near()
        self._search_free()

    def listed(self):
        """Return what was made: rule, f, width, threshold or None, labels."""
        found = [
            (rule, f, self._widths[f], g, labels)
            for (rule, f, g), labels in self._found.items()
            if labels is not None
        ]
        return found + judge(self._of_genie, self._widths, self._k)

    def _link(self, f):
        """Make a width, and descend there from Genie's clusters."""
        width = self._widths[f] = self._chooser.width(f * self._chooser.X.shape[0] / self._k)
        linked = {g: width.descend(labels, self._k) for g, labels in self._of_genie.items()}
        self._found |= {("linked", f, g): labels for g, (_, labels) in linked.items()}
        self._cheapest[f] = min(linked.values(), key=itemgetter(0))
        self._run.end_step()

    def _search_near(self):
        """Search labels of about equal sizes, the best at each width of those all widths found.

        Of few clusters they are searched again from these, shaken gently. The best descend in the
        size-free cost.
        """
        told = {"method": "memetic", "balance": BALANCE}
        for f, width in self._widths.items():
            self._offer_near(f, width.search(self._k, **told))
            self._run.end_step()
        self._share_near()
        if self._k <= GENTLE_CLUSTERS:
            for f, width in self._widths.items():
                told |= {"init": self._near[f][1], "start_round": GENTLE_ROUND}
                self._offer_near(f, width.search(self._k, **told))
                self._run.look()
            self._share_near()
        for f, width in self._widths.items():
            polished = width.descend(self._near[f][1], self._k)
            self._found["polished", f, None] = polished[1]
            self._cheapest[f] = min(polished, self._cheapest[f], key=itemgetter(0))
            self._run.end_step()

    def _share_near(self):
        """Descend at each width from the labels of about equal sizes that the others found."""
        told = {"method": "steepest", "balance": BALANCE}
        for f, width in self._widths.items():
            for _, labels in list(self._near.values()):
                if not np.array_equal(labels, self._near[f][1]):
                    self._offer_near(f, width.search(self._k, init=labels, **told))
                    self._run.look()

    def _offer_near(self, f, offer):
        """Take these labels of about equal sizes, with their objective, if they are better."""
        if f not in self._near or offer[0] < self._near[f][0] - TOLERANCE:
            self._near[f] = offer
            self._found["near", f, None] = offer[1]

    def _search_free(self):
        """Search labels of the least size-free cost; those of a width start its neighbours too."""
        free, k = {}, self._k
        for f, width in self._widths.items():
            start = width.refine(self._cheapest[f][1], k)
            free[f] = min(width.search(k, sizes="free"), start, key=itemgetter(0))
            self._found["free", f, None] = free[f][1]
            self._run.end_step()
        for there in (WIDTHS, WIDTHS[::-1]):
            for before, f in pairwise(there):
                other = self._widths[f].refine(free[before][1], k)
                if other[0] < free[f][0] - TOLERANCE:
                    free[f] = other
                    self._found["free", f, None] = other[1]
                self._run.look()


# Steps of all this, for the share of the work that is done.
N_STEPS = 4 * len(WIDTHS)
