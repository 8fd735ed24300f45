"""The search of labels over groups of points, or cells of these, and the descent of all groups.

A group is a point, or points that must be together; see :mod:`fastmmc.rls.engine.linked`.
"""

from contextlib import suppress
from dataclasses import replace

import numpy as np
from joblib import effective_n_jobs

from fastmmc.core.execution import OutOfTime, SlicedSearch, restart_stream
from fastmmc.core.threads import run_to_end
from fastmmc.kernels.factors import LowRankFactor
from fastmmc.rls.claims import ClaimSearch
from fastmmc.rls.engine import _loops_groups as loops
from fastmmc.rls.engine.coarse import draw_cells_of, masses_of
from fastmmc.rls.engine.descents import Descent, descent
from fastmmc.rls.engine.linked import MOST_IN_CHAIN, Merging, majority, objective_of
from fastmmc.rls.engine.population import Population, quick_labels


def group_searches(seed, factor, plan, control):
    """Return a function that makes the searches over groups, or over cells, and all of these."""
    merging = Merging.of(plan.links, plan.n, plan.weights, plan.link_penalty)
    of_groups, rng = merging.plan(plan), np.random.default_rng(seed)
    whole = searched = None

    def run(steps):
        return run_to_end(steps, lambda cost: control.check_time())

    with suppress(OutOfTime):
        if plan.cells:
            whole = merging.groups(factor, of_groups.movable)
            cells, _ = run(draw_cells_of(factor, plan.cells, rng))
            coarse, of_cells = merging.of_cells(cells, plan, rng)
            matrix = whole.merge(coarse.members).matrix
            searched = coarse.linked(matrix, of_cells.known), of_cells
        else:
            dense = run(factor._as_dense()) if isinstance(factor, LowRankFactor) else factor
            whole = merging.groups(dense, of_groups.movable)
            searched = merging.linked(whole.matrix, of_groups.known), of_groups
    whole = whole or merging.groups(factor, of_groups.movable)
    threads = max(1, effective_n_jobs(control.n_jobs) // plan.n_starts)

    def make_search(index):
        own = restart_stream(seed, index)
        return MultilevelSearch(factor, merging, whole, searched, plan, index, own, threads)

    return make_search


class MultilevelSearch(SlicedSearch):
    """One restart: a search over groups, or over cells of them, and the descent of all.

    ``searched`` is None for want of time. Given labels are told to the cells in which they are the
    most, and are descended from where those of cells are no better.
    """

    def __init__(self, factor, merging, whole, searched, plan, index, rng, threads):
        self._factor = factor
        self._merging = merging
        self._whole = whole
        self._searched = searched
        self._plan, self._of_groups = plan, merging.plan(plan)
        self._index = index
        self._rng = rng
        self._threads = threads
        self._search = self._state = None
        super().__init__()

    def finish(self):
        """Take the final figures and let the work space go."""
        if self._state is None:
            self._begin_descent()
        labels = self._state.labels.astype(np.int64)
        self.n_moves = int(self._state.pos[loops.MOVES])
        if self._search is not None:
            self.n_moves += self._search.n_moves
            self.n_iter = self._search.n_iter
            self.status = self._search.status
        # From scratch, so that no rounding of the moves is left.
        self.objective = objective_of(self._make_state(labels), self._merging)
        self.labels = labels[self._merging.members]
        self._history.note(self.n_moves, self.objective)
        self._end_history("moves")
        self._search = self._state = self._work = self._searched = self._whole = None

    def _run(self):
        """Search, then descend; yield at the end of each slice."""
        plan, searched = self._plan, self._searched
        if searched is not None:
            kind = Population if plan.is_memetic else ClaimSearch
            self._search = kind(*searched, self._index, self._rng)
            for _ in self._search.run():
                self._fraction = 0.9 * self._search.fraction()
                # Pairs that must be apart have prices in the search alone.
                if plan.is_memetic and not len(self._merging.cannot):
                    self._history.note(self._search.n_moves, self._search.objective)
                yield
        self._begin_descent()
        yield
        yield from self._descend()

    def _descend(self):
        """Descend with all groups; yield at the end of each slice."""
        state = self._state
        if len(self._merging.cannot):
            price = self._plan.k / self._merging.masses.sum() if self._plan.free else 1.0
            pairs, chain = self._merging.pairs(price), np.empty(MOST_IN_CHAIN, dtype=np.int64)
            while not loops.descend(state, pairs, chain, self._budget):
                yield
        elif state.dense:
            least = self._whole.least if self._plan.cells and self._plan.rule.bounded else None
            yield from descent(state, least, lambda: self._budget)
        else:
            yield from Descent(state, self._threads).run(self._note)

    def _begin_descent(self):
        """Part the groups found, and make the state of all groups."""
        merging, plan = self._merging, self._plan
        state = self._parted(self._labels_of_all())
        if self._search is not None and plan.cells and isinstance(plan.init, np.ndarray):
            given = self._parted(self._of_groups.start_labels(self._rng))
            state = min(state, given, key=lambda one: objective_of(one, merging))
        told = plan.rule.targets is not None or not plan.links
        if plan.method == "shaking" and told and not plan.free:
            # The paper's rule fixes the sizes, so that only chains of one size change sides. Where
            # no sizes are asked for, links are what tells of them.
            lower, upper = plan.rule.bounds_at(state.counts.copy())
            state = state._replace(lower=lower, upper=upper)
        self._state, self._fraction = state, 0.95
        self._note()

    def _parted(self, labels):
        """Return the state of labels that keep links and sizes as far as can be."""
        state = self._make_state(labels)
        labels = self._merging.kept(state)
        return state if (labels == state.labels).all() else self._make_state(labels)

    def _note(self):
        """Note where the descent of all groups stands; return the objective."""
        value = objective_of(self._state, self._merging)
        before = 0 if self._search is None else self._search.n_moves
        self._history.note(before + self._state.pos[loops.MOVES], value)
        return value

    def _labels_of_all(self):
        """Return the labels of all groups that the search found, or those to start from."""
        merging, plan, of_groups = self._merging, self._plan, self._of_groups
        if self._search is not None:
            labels = self._search.finish()
            if plan.cells:
                labels = labels[self._searched[0].merging.members]
            return of_groups.with_known(labels)
        if not plan.has_random_start:
            return of_groups.start_labels(self._rng)
        weights = masses_of(merging.scales**2, 1.0)
        labels = quick_labels(self._factor, replace(plan, masses=weights), self._rng)
        return of_groups.with_known(majority(labels, merging.members, weights, plan.k))

    def _make_state(self, labels):
        """Return the state of all groups."""
        return self._whole.state(labels, self._plan.rule, self._plan.free)
