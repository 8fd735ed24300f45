"""The number of clusters."""

from statistics import fmean, harmonic_mean

import numpy as np

from fastmmc.data.labels import agreement
from fastmmc.data.sizes import imbalance, size_rule
from fastmmc.rls.engine.groups import cost_of

# Power of the error in the weights of the vote of each number, and an error as good as none. With
# 1e-8 and 1e-4 in its place the mean indices of 20 sets of a suite, 49 made shapes, 26 tables and
# 12 real sets, and how many of their numbers are found, are the same.
NUMBERS_POWER = 3.0
LEAST_ERROR = 1e-6

# The f of the widths that count for a number; widths are shared by all numbers. With half and twice
# the most the mean index of 20 sets of a suite is .761 and .762 (.762), of 49 made shapes .740 and
# .748 (.740), of 26 tables .190 and .229 (.229); with half and twice the least it is .762 and .759,
# .734 and .753, and .229.
F_LEAST, F_MOST = 0.7 / 16, 5.7

# The total error of k clusters is compared with that of k / TENTH more, and of one more at the
# least: behind 25 clusters one more is a small step, in which chance errors look like a bend. The
# mean index of 26 tables by three seeds is .240 in place of .220 by one more, of 11 surveys .461
# and .452, of 12 real sets .408 by both; numbers found in 20 sets of a suite 14 by both, in 146
# made shapes 82 by both. With a third more instead: .244, .446, .395, 14, 82.
TENTH = 10

# Draws of dithered cells whose mean scores count. With 1, 2, 3 and 4 draws 13.0, 13.4, 13.6 and
# 13.3 numbers are found in 20 sets of a suite, 27.6, 28.2, 28.8 and 29.3 in 52 made shapes, 9.8,
# 11.3, 12.1 and 12.5 in 26 tables; two random states find the same number in 77, 80, 86 and 84 % of
# the shapes, and 77, 85, 90 and 90 % of the suite.
DITHERS = 3


class Counts:
    """The numbers of clusters that are tried on one draw, each by a vote of fewer labellings."""

    def __init__(self, run):
        self._run = run
        self._votes = {}
        # The least total error of each.
        self.errors = {}
        # The least total errors of what may be returned, by number and width.
        self._errors_by_width = {}

    def try_all(self, widths, least, most):
        """Try the numbers from ``least`` to that which ``most`` is compared with, in order."""
        last = min(behind(most), widths.cells.masses.size - 1)
        n = widths.cells.total
        grid = [n / 2**j for j in range(1, 14, 2) if j == 1 or n / 2**j >= 2]
        former = {}
        for k in range(least, last + 1):
            shares = {m: m * k / n for m in grid}
            used = [
                widths.at(m)
                for m, f in shares.items()
                if f > F_LEAST and (f < F_MOST or m == grid[-1])
            ]
            self._try(k, used, widths.genie.cut(k), widths.cells.masses, former)
            self._run.end_step()

    def _try(self, k, widths, of_genie, masses, former):
        """Try one number; ``former`` are the free labels at each width of the last one."""
        rule = size_rule(masses.sum(), k, bounded=False)
        found, of_genie_errors = [], []
        for width in widths:
            groups = width.groups
            linked = [groups.state(labels, rule) for labels in of_genie.values()]
            of_genie_errors.append([groups.error(state) for state in linked])
            best = _descended(groups, [groups.state(groups.cut(k), rule), *linked])
            if width in former:
                crossed = groups.recombine(former[width], best.labels.astype(np.int64), k)
                best = min(best, _descended(groups, [groups.state(crossed, rule)]), key=cost_of)
            former[width] = groups.refine(best.labels.astype(np.int64), rule)[0]
            own = [("linked", state) for state in linked]
            own.append(("free", groups.state(former[width], rule)))
            found += [(name, width, s.labels, groups.error(s)) for name, s in own]
            self._run.look()
        n_own = len(found)
        for labels, *errors in zip(of_genie.values(), *of_genie_errors, strict=True):
            found.append(("genie", None, labels, min(errors)))
        errors = np.array([error for *_, error in found])
        errors = np.maximum(errors, LEAST_ERROR)
        votes, by_width = _vote(found, errors, k, masses), {}
        for (_, width, *_), error in zip(found[:n_own], errors, strict=False):
            by_width[width.sigma] = min(k * error, by_width.get(width.sigma, np.inf))
        self.errors[k] = k * float(errors.min())
        self._votes[k] = float(votes[:n_own].max())
        self._errors_by_width[k] = by_width

    def scores(self, most):
        """Return the scores of the numbers up to ``most`` that were tried.

        The largest score is best. It is the largest vote, plus 1 - 1 / e where that is positive.
        The elasticity e of the total error behind k is 1 where no cluster ends. It compares means
        over the same widths: the least error of each number changes with the widths that it has.
        """
        last, scores = max(self._votes, default=0), {}
        for k in [k for k in self._votes if k <= most and k < last]:
            further = min(behind(k), last)
            here, there = self._errors_by_width[k], self._errors_by_width[further]
            shared = sorted(here.keys() & there.keys())
            error, next_error = (harmonic_mean([of[s] for s in shared]) for of in (here, there))
            elasticity = np.log(next_error / error) / np.log(further / k)
            bend = 1.0 - 1.0 / elasticity if elasticity > 1.0 else 0.0
            scores[k] = float(self._votes[k] + bend)
        return scores


def mean_scores(drawn, most):
    """Return the mean score of each number; a draw that was stopped lacks some."""
    of_draws = [counts.scores(most) for counts in drawn]
    numbers = max(of_draws, key=len, default={})
    return {k: fmean(of[k] for of in of_draws if k in of) for k in numbers}


def behind(k):
    """Return the number of clusters whose total error tells whether clusters end at k."""
    return max(k + 1, k + k // TENTH)


def _descended(groups, states):
    """Let states descend, and return that of the least cost."""
    for state in states:
        groups.settle(state)
    return min(states, key=cost_of)


def _vote(found, errors, k, masses):
    """Return the expected adjusted Rand index of each labelling, those of a rule as one."""
    rules, _, labellings, _ = zip(*found, strict=True)
    weights = errors**-NUMBERS_POWER
    for i, labels in enumerate(labellings):
        weights[i] *= np.exp(-imbalance(labels, k, masses)) / rules.count(rules[i])
    return agreement(labellings, k, masses) @ (weights / weights.sum())
