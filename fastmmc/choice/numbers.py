"""The number of clusters."""

from statistics import fmean, geometric_mean, harmonic_mean

import numpy as np

from fastmmc.choice.vote import FLOOR, REPEATS, errors_of, times_found
from fastmmc.data.labels import agreement
from fastmmc.data.sizes import evenness, size_rule
from fastmmc.rls.engine.groups import cost_of

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

# Draws of dithered cells whose mean scores count. With 1, 2 and 3 draws 12.8, 13.5 and 14.0 numbers
# are found in 20 sets of a suite, 27.0, 29.7 and 29.3 in 52 made shapes, 8.7, 8.3 and 10.0 in 26
# tables; two random states find the same number in 69, 80 and 83 % of the shapes, and 78, 79 and
# 86 % of the suite.
DITHERS = 3


class Counts:
    """The numbers of clusters that are tried on one draw, each by a vote of fewer labellings.

    ``widths`` are the hat matrices of the draw.
    """

    def __init__(self, widths, run):
        self._widths, self._run = widths, run
        self._votes = {}
        # The least total error of each.
        self.errors = {}
        # The least total errors of what may be returned, by number and width.
        self._errors_by_width = {}
        # The labels of free sizes, by number and width; those of the next number cross them.
        self._labels = {}

    def try_all(self, numbers):
        """Try those of these numbers that were not tried, in order."""
        n = self._widths.cells.total
        grid = [n / 2**j for j in range(1, 14, 2) if j == 1 or n / 2**j >= 2]
        new = sorted({*numbers} - self._votes.keys())
        for i, k in enumerate(new):
            self._run.look(i / len(new))
            shares = {m: m * k / n for m in grid}
            used = [
                self._widths.at(m)
                for m, f in shares.items()
                if f > F_LEAST and (f < F_MOST or m == grid[-1])
            ]
            self._try(k, used)
        self._run.end_step()

    def compare_all(self, numbers):
        """Try these numbers and those that they are compared with, in order."""
        self.try_all([*numbers, *map(self._behind, numbers)])

    def _behind(self, k):
        return min(behind(k), self._widths.cells.masses.size - 1)

    def _try(self, k, widths):
        """Try one number."""
        masses, of_genie = self._widths.cells.masses, self._widths.genie.cut(k).values()
        former = self._labels.get(max((m for m in self._labels if m < k), default=None), {})
        rule = size_rule(masses.sum(), k, bounded=False)
        found, errors, by_width, refined = [], [], {}, {}
        for width in widths:
            groups = width.groups
            linked = [groups.state(labels, rule) for labels in of_genie]
            best = _descended(groups, [groups.state(groups.cut(k), rule), *linked])
            if width.sigma in former:
                crossed = groups.recombine(former[width.sigma], best.labels.astype(np.int64), k)
                best = min(best, _descended(groups, [groups.state(crossed, rule)]), key=cost_of)
            refined[width.sigma] = groups.refine(best.labels.astype(np.int64), rule)[0]
            states = [*linked, groups.state(refined[width.sigma], rule)]
            found += [state.labels for state in states]
            errors += [errors_of(groups, state.labels, k, state.sums) for state in states]
            least = min(groups.error(state) for state in states)
            by_width[width.sigma] = k * max(least, np.finfo(np.float64).eps)
            self._run.look()
        self.errors[k] = min(by_width.values())
        self._errors_by_width[k], self._labels[k] = by_width, refined
        self._votes[k] = _largest_vote(found, np.array(errors), k, masses)

    def scores(self, most):
        """Return the scores of the numbers up to ``most`` that were tried.

        The largest score is best. It is the largest vote, plus 1 - 1 / e where that is positive.
        The elasticity e of the total error behind k is 1 where no cluster ends. It compares means
        over the same widths: the least error of each number changes with the widths that it has.
        """
        scores = {}
        for k in sorted(self._votes):
            further = self._behind(k)
            if k > most or further == k or further not in self._votes:
                continue
            here, there = self._errors_by_width[k], self._errors_by_width[further]
            shared = sorted(here.keys() & there.keys())
            error, next_error = (harmonic_mean([of[s] for s in shared]) for of in (here, there))
            elasticity = np.log(next_error / error) / np.log(further / k)
            bend = 1.0 - 1.0 / elasticity if elasticity > 1.0 else 0.0
            scores[k] = float(self._votes[k] + bend)
        return scores


def mean_scores(drawn, most):
    """Return the mean score of each number up to ``most``."""
    return _over_draws([counts.scores(most) for counts in drawn], fmean)


def mean_errors(drawn):
    """Return the mean total error of each number."""
    return _over_draws([counts.errors for counts in drawn], geometric_mean)


def _over_draws(of_draws, mean):
    """Return the mean of what draws tell of each number; one that was stopped lacks some."""
    numbers = max(of_draws, key=len, default={})
    return {k: mean(of[k] for of in of_draws if k in of) for k in sorted(numbers)}


def spaced(least, most):
    """Return numbers from the least to the most, of which each is compared with the next."""
    numbers = [least] if least <= most else []
    while numbers and numbers[-1] < most:
        numbers.append(min(behind(numbers[-1]), most))
    return numbers


def around(numbers, scores):
    """Return all numbers from the one before that of the best score to the one behind it."""
    at = numbers.index(max(scores, key=scores.__getitem__))
    return range(numbers[max(at - 1, 0)], numbers[min(at + 1, len(numbers) - 1)] + 1)


def behind(k):
    """Return the number of clusters whose total error tells whether clusters end at k."""
    return max(k + 1, k + k // TENTH)


def _descended(groups, states):
    """Let states descend, and return that of the least cost."""
    for state in states:
        groups.settle(state)
    return min(states, key=cost_of)


def _largest_vote(labellings, errors, k, masses):
    """Return the largest expected adjusted Rand index of these labellings of k clusters.

    A weight is the product over the two ``errors`` (m, 2), those of the vote, of 1 / (e + FLOOR),
    times the evenness of the sizes and the fourth root of how many times the labelling was found.
    """
    # By three seeds 31.7 numbers are found in 52 made shapes. With exp(entropy - log k) in place of
    # the evenness and the root of the count it was 31.3, and 14.0 in 20 sets of a suite, 10.0 in 26
    # tables, 40 in 40 draws of clusters far apart, 25 in 36 draws with one small cluster; then with
    # the weights of the vote of that time 29.3, 14.3, 10.3, 40 and 23, and clusters of 2 % were
    # lost; with the inverse cubes of mean squared errors 27.0, 13.8, 10.7, 38 and 25.
    agreements = agreement(labellings, k, masses)
    weights = times_found(agreements) ** REPEATS / np.prod(errors + FLOOR, axis=1)
    weights *= [evenness(labels, k, masses) for labels in labellings]
    return float((agreements @ weights).max() / weights.sum())
