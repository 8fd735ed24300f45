"""A width that nobody told: the default one, unless labels of a narrower are predicted far better.

At the default width a cluster is a region as large as the clusters are on average. Spirals, rings
and bands lie closer together than that; a width that sees an eighth of a cluster tells them apart,
and where clusters overlap it tells less than the other.
"""

from __future__ import annotations

from operator import itemgetter

import numpy as np

from fastmmc.execution import History
from fastmmc.factors import make_factor
from fastmmc.gram import NARROW_SHARE, Kernel, neighbour_width
from fastmmc.nystroem import Form
from fastmmc.rls.free import FreeSearch, Groups, cost_of
from fastmmc.rls.genie import Genie
from fastmmc.rls.size_choice import FAR_BETTER, SizeChoice, angles, nearest, priced_errors

# Share of the work that is done where the labels of the default width are found.
SEARCHED = 0.8


class WidthChoice(FreeSearch):
    """The choice of sizes at the default width, and descents from Genie's clusters at a narrower.

    The best of the latter, with their hat matrix, take the place of the former where they differ
    and have less than half of the error: the root of the product of the errors by the hat matrix
    and by the nearest neighbours. The lower of the two, by which sizes are chosen, is that of the
    neighbours wherever the boundaries are short, and tells nothing of the width.
    """

    def __init__(self, factor, diag, plan, index, rng, check_time):
        super().__init__(factor, diag, plan, 0, index, rng, check_time, SizeChoice)

    @property
    def factor(self):
        """The hat matrix of the width that was chosen."""
        return self._factor

    def fraction(self):
        """Return an estimate of the share of the work that is done."""
        return SEARCHED * super().fraction()

    def _run(self):
        """Search; yield at the end of each slice."""
        yield from super()._run()
        choice, plan = self._population, self._plan
        given = choice.finish()
        error = _error(choice.points, given, choice.neighbours, plan.rule)
        factor = self._narrower() if error > 0.0 else None
        if factor is None:
            return
        yield
        points = Groups(factor.R, choice.points.weights, choice.points.movable)
        distances = angles(factor.R)
        genie, neighbours = Genie(distances), nearest(distances)
        yield
        found = []
        for start in genie.cut(plan.k).values():
            labels, _, made = points.descend(start, plan.rule)
            found.append((_error(points, labels, neighbours, plan.rule), labels, start, made))
            yield
        least, labels, start, made = min(found, key=itemgetter(0))
        if least >= FAR_BETTER * error or np.unique(labels * plan.k + given).size == plan.k:
            return
        choice.n_moves += made
        choice.history = History()
        choice.history.note(0, cost_of(points.state(start, plan.rule)))
        self._factor = factor
        self._state = points.state(labels, plan.rule)

    def _narrower(self):
        """Return the hat matrix of the narrower width; None if the points have none."""
        wide = self._factor
        sigma = neighbour_width(self._plan.k, wide.X, share=NARROW_SHARE)
        if not np.finfo(np.float64).tiny <= sigma**2 < wide.kernel.sigma**2:
            return None
        kernel, form = Kernel("rbf", sigma=sigma), Form(dtype=wide.R.dtype)
        return make_factor(wide.X, wide.lam, kernel, form, None, self._look)

    def _look(self, share, ahead=0.0):
        self._check_time(ahead)


def _error(points, labels, neighbours, rule):
    """Return the error by which labels of two widths are compared."""
    return float(np.sqrt(np.prod(priced_errors(points, labels, neighbours, rule))))
