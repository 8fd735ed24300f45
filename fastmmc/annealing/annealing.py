"""The paper's search: representatives are split and moved, and annealing accepts or refuses."""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.distance import cdist

from fastmmc.annealing import _loops as kernels
from fastmmc.annealing import _loops_mixture as mixture
from fastmmc.annealing.points import descend, means_where_used, weiszfeld_targets
from fastmmc.annealing.representatives import (
    cut,
    distances_to,
    first_clusters,
    make_cover,
    members_of,
    sizes_and_means,
)
from fastmmc.annealing.search import Search
from fastmmc.core import memory
from fastmmc.core.status import Status
from fastmmc.data.labels import matched_clusters
from fastmmc.kernels.gram import dense_rows
from fastmmc.kernels.kmeans import k_means_pieces, sum_clusters
from fastmmc.kernels.libsvm import LINEAR_SQUARED_HINGE, train_linear_machine

# Steps towards the geometric medians of the representatives of clusters that have changed.
MEDIAN_STEPS = 10
FINAL_TOL = 1e-9

# Gaussian mixtures: least points of a cluster that may be split, rounds, share of the variances
# added to them, and most features for which covariances are full.
LEAST_SPLIT = 4
MIXTURE_ROUNDS = 50
MIXTURE_RIDGE = 1e-6
MOST_FULL = 64

# Starts of k-means for the first clusters of the representatives.
FIRST_TRIES = 10

# Dense arrays of representatives held at a time.
DENSE_COPIES = 4

# Least initial clusters, for each cluster wanted.
LEAST_PARTS = 2

# Most initial clusters, as a multiple of those at the beginning.
MOST_GROWTH = 2

# Linear machines: LIBLINEAR's criterion, and most rounds.
MACHINE_TOLERANCE = 1e-4
MACHINE_PASSES = 10_000

# About how often a linear machine or a mixture reads its numbers.
READS = 50


@dataclass(frozen=True, eq=False)
class State:
    """All that a proposal changes, so that a refusal has nothing to undo.

    ``members`` are the points of each initial cluster, ``means`` (p, d) their means, and
    ``representatives`` (p, d) the means or, after a move, points; ``labels`` (p,) are the clusters
    of the representatives. ``divergences`` (p,) are between the two Gaussians fitted to each
    initial cluster, -inf where it cannot be split or was split in vain.
    """

    members: tuple[np.ndarray, ...]
    means: np.ndarray
    representatives: np.ndarray
    divergences: np.ndarray
    labels: np.ndarray
    centers: np.ndarray  # (k, d)
    objective: float  # sum of the distances of all points to their nearest centers

    @property
    def sizes(self):
        """Points of each initial cluster."""
        return np.array([own.size for own in self.members], dtype=np.float64)


class AnnealingSearch(Search):
    """One start: Algorithm 2 of the paper, then a descent over all points."""

    _step_name = "iterations"

    def __init__(self, plan, points, rng):
        super().__init__(plan, points, rng)
        self._temperature = plan.T0
        self._temperatures = []

    def _record(self, objective):
        super()._record(objective)
        self._temperatures.append(self._temperature)

    def finish(self):
        """Label the points, and trace the temperatures of the iterations."""
        super().finish()
        self.trace["temperature"] = np.array(self._temperatures, dtype=np.float64)

    def _run(self):
        """Anneal, then descend over all points; yields the costs of the steps."""
        plan = self._plan
        state = yield from self._begin()
        first_objective = state.objective
        waited = 0
        # Iterations until the temperature is low enough.
        cooling = max(1.0, (np.log(plan.T_min) - np.log(plan.T0)) / np.log(plan.cooling))
        self._most_parts = MOST_GROWTH * len(state.means)
        self._keep(state)
        while True:
            least = self.objective
            for propose in (self._split, self._move):
                state = yield from propose(state, self._temperature * first_objective)
            self.n_iter += 1
            self._keep(state)
            self._temperature *= plan.cooling
            waited = 0 if self.objective < least else waited + 1
            done = max(self.n_iter / cooling, waited / plan.patience, self.n_iter / plan.max_iter)
            self._fraction = min(0.99, float(done))
            if self._temperature < plan.T_min or waited >= plan.patience:
                break
            if self.n_iter == plan.max_iter:
                self.status = Status.MAX_ITER
                break
        if plan.center == "median":
            found = yield from descend(self._walker, self.centers, FINAL_TOL, self._rng)
            self.objective, self.centers = found
            self._record(self.objective)

    def _keep(self, state):
        """Note the state, and keep it if it is the best so far."""
        self._record(state.objective)
        if state.objective < self.objective:
            self.objective, self.centers = state.objective, state.centers
            self.representatives = state.representatives

    def _begin(self):
        """Return the first state (Algorithm 1, then KMSVM)."""
        plan, rows, rng = self._plan, self._points.rows, self._rng
        n, d = self._points.shape
        clusters = yield from first_clusters(rows, plan.k, plan.init, rng)
        total = max(LEAST_PARTS * plan.k, min(round(plan.delta * n), plan.max_representatives))
        memory.refuse_beyond_free(
            DENSE_COPIES * total * d * np.dtype(np.float64).itemsize,
            f"{total} representatives with {d} features need",
            "give a lower max_representatives, or search='memetic'",
        )
        cover = yield from make_cover(rows, clusters, total, rng)
        n_parts = len(cover.means)
        # Linear machines want features of like size.
        self._shift = cover.means.mean(axis=0)
        self._scale = max(float(np.std(cover.means - self._shift)), np.finfo(np.float64).tiny)
        members = members_of(cover.parts, cover.sizes)
        divergences = np.empty(n_parts)
        for p, own in enumerate(members):
            divergences[p] = self._divergence(own)
            yield READS * own.size * d
        weights = cover.sizes if plan.weighted else np.ones(n_parts)
        chosen = rng.choice(n_parts, plan.k, replace=n_parts < plan.k)
        labels = yield from self._cluster(cover.means, weights, FIRST_TRIES)
        state = State(
            members=tuple(members),
            means=cover.means,
            representatives=cover.means,
            divergences=divergences,
            labels=labels,
            # Places for centers that no representative may be given to.
            centers=cover.means[chosen],
            objective=np.inf,
        )
        return (yield from self._alternate(state, must_evaluate=True))

    def _cluster(self, representatives, weights, n_init):
        """Cluster the representatives by k-means, best of ``n_init`` starts, in pieces."""
        seed = int(self._rng.integers(2**31))
        if len(representatives) <= self._plan.k:
            return np.arange(len(representatives))
        streams = np.random.SeedSequence(seed).generate_state(n_init)
        k = self._plan.k
        best, least = None, np.inf
        for stream in streams:
            found = yield from k_means_pieces(representatives, k, int(stream), weights)
            labels, centers = found
            scatter = float(weights @ ((representatives - centers[labels]) ** 2).sum(axis=1))
            if best is None or scatter < least:
                best, least = labels, scatter
        return best

    def _alternate(self, state, must_evaluate=False):
        """Cluster the representatives by machines and means in turn (KMSVM), and evaluate them."""
        plan, reps, labels = self._plan, state.representatives, state.labels
        weights = state.sizes if plan.weighted else np.ones(len(reps))
        if plan.relabel:
            found = yield from self._cluster(reps, weights, n_init=1)
            # Names that agree most with those of before.
            labels = np.argsort(matched_clusters(labels, found, plan.k))[found]
            yield READS * reps.size * plan.k
        scaled = (reps - self._shift) / self._scale
        for _ in range(plan.n_alt):
            present = np.unique(labels)
            if present.size < 2:
                break
            predicted = labels
            # Nothing can be learned from classes of one or two.
            if 2 * present.size <= len(reps):
                found = yield from self._learn(scaled, labels, weights)
                predicted = found if np.unique(found).size == present.size else labels
            names, own = np.unique(predicted, return_inverse=True)
            totals, sums = sum_clusters(reps, weights, own, names.size)
            means = sums / totals[:, None]
            after = names[np.argmin(cdist(reps, means), axis=1)]
            if np.array_equal(after, labels):
                break
            labels = after
        if np.array_equal(labels, state.labels) and not must_evaluate:
            return state
        state = replace(state, labels=labels)
        centers = self._inherited_centers(state)
        yield from self._walker.assigning(centers)
        return replace(state, centers=centers, objective=float(self._walker.distances.sum()))

    def _learn(self, scaled, labels, weights):
        """Return the labels predicted by linear machines, trained one by one on the given ones."""
        names = np.unique(labels)
        scores = np.empty((names.size, labels.size))
        # One against the others.
        for name, own in zip(names, scores, strict=True):
            W, b, _, _ = train_linear_machine(
                scaled,
                labels == name,
                self._plan.C,
                weights,
                LINEAR_SQUARED_HINGE,
                0.0,
                MACHINE_TOLERANCE,
                MACHINE_PASSES,
                0,  # this solver draws nothing
            )
            own[:] = scaled @ W[0] + b[0]
            yield READS * scaled.size
        return names[scores.argmax(axis=0)]

    def _inherited_centers(self, state):
        """Return the centers of the clusters; points take their representatives' labels."""
        means, sizes, labels = state.means, state.sizes, state.labels
        totals, sums = sum_clusters(means, sizes, labels, self._plan.k)
        centers = means_where_used(sums, totals, state.centers)
        if self._plan.center == "mean":
            return centers
        # Near enough, and a function of the state alone: the final descent is over all points.
        for _ in range(MEDIAN_STEPS):
            given = means, sizes, labels, distances_to(means, centers, labels), self._points.least
            targets = weiszfeld_targets(centers, *kernels.sum_pulls(*given, len(centers)))
            centers = centers + self._walker.relaxation * (targets - centers)
        return centers

    def _accepts(self, state, proposal, temperature):
        """Return whether annealing accepts the proposal (equation 6)."""
        change = proposal.objective - state.objective
        drawn = self._rng.random()
        accepted = change <= 0.0 or (temperature > 0.0 and drawn <= math.exp(-change / temperature))
        self.n_moves += accepted
        return accepted

    def _split(self, state, temperature):
        """Propose to split the initial cluster whose two Gaussians are farthest apart (step 3)."""
        p = int(np.argmax(state.divergences))
        if state.divergences[p] == -np.inf or len(state.means) >= self._most_parts:
            return state
        own = state.members[p]
        halves = yield from cut(self._points.rows[own], 2, self._rng)
        if halves.any():
            proposal = yield from self._alternate(self._with_halves(state, p, halves))
            if self._accepts(state, proposal, temperature):
                return proposal
        divergences = state.divergences.copy()
        divergences[p] = -np.inf
        return replace(state, divergences=divergences)

    def _with_halves(self, state, p, halves):
        """Return the state with an initial cluster in two, the second half behind the first."""
        own = state.members[p]
        parts = own[halves == 0], own[halves == 1]
        means = sizes_and_means(self._points.rows[own], halves)[1]
        divergences = [self._divergence(part) for part in parts]

        def with_both(old, new):
            return np.concatenate((old[:p], new, old[p + 1 :]))

        return replace(
            state,
            members=(*state.members[:p], *parts, *state.members[p + 1 :]),
            means=with_both(state.means, means),
            representatives=with_both(state.representatives, means),
            divergences=with_both(state.divergences, divergences),
            labels=with_both(state.labels, np.repeat(state.labels[p], 2)),
        )

    def _divergence(self, own):
        """Return how far apart two Gaussians fitted to an initial cluster are (equation 7)."""
        if own.size < LEAST_SPLIT:
            return -np.inf
        rows = dense_rows(self._points.rows, own).astype(np.float64, copy=False)
        variances = rows.var(axis=0)
        if not variances.any():
            return -np.inf
        n, d = rows.shape
        # Constant features get a share of the largest variance, and so tell nothing.
        ridge = MIXTURE_RIDGE * np.where(variances > 0, variances, variances.max())
        is_full = d <= MOST_FULL and n >= 2 * (d + 1)
        return mixture.divergence(rows, ridge, MIXTURE_ROUNDS, is_full)

    def _move(self, state, temperature):
        """Propose to move a random representative to a point of its initial cluster (step 4)."""
        movable = np.flatnonzero(state.sizes > 1)
        if movable.size == 0:
            return state
        p = movable[self._rng.integers(movable.size)]
        drawn = state.members[p][[self._rng.integers(state.members[p].size)]]
        representatives = state.representatives.copy()
        representatives[p] = dense_rows(self._points.rows, drawn)[0]
        proposal = yield from self._alternate(replace(state, representatives=representatives))
        return proposal if self._accepts(state, proposal, temperature) else state
