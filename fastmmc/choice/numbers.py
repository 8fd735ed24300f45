"""The number of clusters."""

from operator import itemgetter
from statistics import harmonic_mean

import numpy as np

from fastmmc.choice.results import RULES
from fastmmc.choice.vote import LEAST_ERROR, judge, vote
from fastmmc.sizes import size_rule

# Power of the error in the weights of the vote of each number.
NUMBERS_POWER = 3.0

# The f of the widths that count for a number; widths are shared by all numbers.
F_LEAST, F_MOST = 0.7 / 16, 5.7


class Counts:
    """The numbers of clusters that are tried, each by a vote of fewer labellings."""

    def __init__(self, widths, run):
        self._widths = widths
        self._run = run
        self._votes = {}
        self._errors = {}
        # The least total errors of what may be returned, by number and width.
        self._errors_by_width = {}

    def try_to(self, most):
        """Try the numbers from 2 to the one after ``most``, in order."""
        n = self._widths.cells.n
        grid = [n / 2**j for j in range(1, 14, 2) if j == 1 or n / 2**j >= 2]
        former = {}
        for k in range(2, most + 2):
            shares = {m * k / n: m for m in grid}
            used = {
                f: self._widths.at(m)
                for f, m in shares.items()
                if f > F_LEAST and (f < F_MOST or m == grid[-1])
            }
            self._try(k, used, former)
            self._run.end_step()

    def _try(self, k, widths, former):
        """Try one number; ``former`` are the free labels at each width of the last one."""
        of_genie = self._widths.genie.cut(k)
        rule = size_rule(self._widths.cells.n, k, bounded=False)
        found = [("genie", None, None, g, labels) for g, labels in of_genie.items()]
        for f, width in widths.items():
            groups = width.groups

            def descend(labels, groups=groups):
                return groups.descend(labels, rule, True)[:2]

            linked = {g: descend(labels) for g, labels in of_genie.items()}
            found += [("linked", f, width, g, labels) for g, (labels, _) in linked.items()]
            best, cost = min([descend(groups.cut(k)), *linked.values()], key=itemgetter(1))
            if width in former:
                crossed = descend(groups.recombine(former[width], best, k))
                best, cost = min((best, cost), crossed, key=itemgetter(1))
            former[width] = groups.refine(best, rule, True)[0]
            found.append(("free", f, width, None, former[width]))
            self._run.look()
        table = vote(judge(found, widths, k), k, self._widths.cells.masses, NUMBERS_POWER)
        self._errors[k] = k * max(LEAST_ERROR, min(one.criterion for one in table))
        returnable = [one for one in table if one.rule in RULES]
        by_width = self._errors_by_width[k] = {}
        for one in returnable:
            error = k * max(LEAST_ERROR, one.criterion)
            by_width[one.sigma] = min(error, by_width.get(one.sigma, np.inf))
        self._votes[k] = max(one.vote for one in returnable)

    def scores(self):
        """Return scores of the numbers of clusters that were tried, and their least total errors.

        The largest score is best. It is the largest vote, plus 1 - 1 / e where that is positive.
        The elasticity e of the total error behind k is 1 where no cluster ends. It compares means
        over the same widths: the least error of each number changes with the widths that it has.
        """
        votes, errors = self._votes, self._errors
        scores = {}
        for k in list(votes)[:-1]:
            here, behind = self._errors_by_width[k], self._errors_by_width[k + 1]
            shared = sorted(here.keys() & behind.keys())
            error, next_error = (harmonic_mean([of[s] for s in shared]) for of in (here, behind))
            elasticity = np.log(next_error / error) / np.log((k + 1) / k)
            bend = 1.0 - 1.0 / elasticity if elasticity > 1.0 else 0.0
            scores[k] = float(votes[k] + bend)
        return scores, {k: errors[k] for k in votes} if scores else {}
