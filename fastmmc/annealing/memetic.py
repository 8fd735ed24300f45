"""The memetic search: children take whole centers of two parents and are descended."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from fastmmc.annealing.points import Points, Walker, descend
from fastmmc.annealing.representatives import cut, make_cover
from fastmmc.annealing.search import Search
from fastmmc.core.status import Status
from fastmmc.kernels.gram import dense_rows
from fastmmc.kernels.kmeans import begin_choice

# A descent ends when a round gains less than this share of the objective.
SEARCH_TOL = 1e-5
FINAL_TOL = 1e-9

# Individuals whose objectives differ by a smaller share count as the same.
SAME = 1e-7

# Least representatives for each center.
LEAST_PER_CENTER = 10

# Patience of the search over all points, as a share of that over the representatives: those have
# found the basin, and a generation over all points costs as much as many of theirs.
FULL_SHARE = 0.1


class Individual(NamedTuple):
    """Centers and their objective over the points, or representatives, being searched."""

    objective: float
    centers: np.ndarray


class MemeticSearch(Search):
    """One start: a population over representatives, then over all points."""

    _step_name = "generations"

    # Least objective over the representatives.
    _least_coarse = np.inf

    def _run(self):
        """Search; a generator of the costs of its passes."""
        plan, population = self._plan, []
        patience = plan.patience
        coarse = None
        total = max(plan.max_representatives, LEAST_PER_CENTER * plan.k)
        # A pass over representatives must be much cheaper than one over all points.
        if plan.k > 1 and 2 * total * self._points.shape[1] <= self._points.cost:
            # More representatives where the sums of distances are larger.
            rows = self._points.rows
            clusters = yield from cut(rows, int(np.ceil(np.sqrt(total))), self._rng)
            cover = yield from make_cover(rows, clusters, total, self._rng, by_cost=True)
            self.representatives = cover.means
            coarse = Points(cover.means, cover.sizes)
        # There may be fewer where points coincide.
        if coarse is not None and coarse.shape[0] >= LEAST_PER_CENTER * plan.k:
            yield from self._evolve(Walker(coarse, "median"), population, patience)
            for i, one in enumerate(population):
                population[i] = yield from self._descend(self._walker, one.centers, SEARCH_TOL)
            patience = max(1, round(FULL_SHARE * patience))
        yield from self._evolve(self._walker, population, patience)
        yield from self._descend(self._walker, self.centers, FINAL_TOL)

    def _evolve(self, walker, population, patience):
        """Fill the population; recombine it until ``patience`` children in a row gain nothing."""
        plan, rng = self._plan, self._rng
        while len(population) < (plan.population if plan.k > 1 else 1):
            first = yield from self._first_centers(walker.points, is_first=not population)
            population.append((yield from self._descend(walker, first, SEARCH_TOL)))
        best = min(one.objective for one in population)
        waited = 0
        while plan.k > 1 and waited < patience:
            if self.n_iter == plan.max_iter:
                self.status = Status.MAX_ITER
                break
            child = recombine(_draw_parent(population, rng), _draw_parent(population, rng), rng)
            child = yield from self._replace_center(walker, child)
            child = yield from self._descend(walker, child, SEARCH_TOL)
            self.n_iter += 1
            waited = 0 if child.objective < best * (1.0 - SAME) else waited + 1
            best = min(best, child.objective)
            population.append(child)
            if len(population) == 2 * plan.population:
                population[:] = survivors(population, plan.population)
            self._fraction = waited / (plan.patience + 1)
        population[:] = survivors(population, plan.population)

    def _first_centers(self, points, is_first):
        """Return the given centers, or draw them at random or by k-means++, in pieces."""
        init, k = self._plan.init, self._plan.k
        if not isinstance(init, str) and is_first:
            return init.copy()
        rows, weights = points.rows, points.weights
        if isinstance(init, str) and init == "random":
            chosen = self._rng.choice(rows.shape[0], k, replace=False, p=weights / weights.sum())
        else:
            seed = int(self._rng.integers(2**31))
            chosen = yield from begin_choice(rows, k, seed, weights).choosing()
        return np.asarray(dense_rows(rows, chosen), dtype=np.float64)

    def _replace_center(self, walker, centers):
        """Move one center to a point drawn by its distance to the other centers."""
        lost = int(self._rng.integers(len(centers)))
        yield from walker.assigning(np.delete(centers, lost, axis=0))
        changed = centers.copy()
        changed[lost] = walker.draw(self._rng, 1)
        return changed

    def _descend(self, walker, centers, tol):
        """Descend to an Individual; keep its centers if they are the best for all points."""
        objective, centers = yield from descend(walker, centers, tol, self._rng)
        total = objective
        if walker is not self._walker:
            if objective >= self._least_coarse:
                return Individual(objective, centers)
            self._least_coarse = objective
            yield from self._walker.assigning(centers)
            total = float(self._walker.distances.sum())
        if total < self.objective:
            self.objective, self.centers = total, centers
            self.n_moves += 1
            self._record(total)
        return Individual(objective, centers)


def _draw_parent(population, rng):
    """Return the centers of the better of two individuals drawn at random."""
    first, second = (population[i] for i in rng.integers(len(population), size=2))
    return (first if first.objective <= second.objective else second).centers


def recombine(first, second, rng):
    """Match the centers (k, d) of two parents by distance, and take one of each pair at random."""
    rows, columns = linear_sum_assignment(cdist(first, second))
    from_first = rng.random(len(first)) < 0.5
    return np.where(from_first[:, None], first[rows], second[columns])


def survivors(population, count):
    """Return the best individuals by rising objective, one of those with the same objective."""
    kept = []
    for one in sorted(population, key=lambda individual: individual.objective):
        if not kept or one.objective > kept[-1].objective * (1.0 + SAME):
            kept.append(one)
    return kept[:count]
