"""The search: cutting planes outside, the concave-convex procedure inside, one pass a program."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix, issparse

from fastmmc.core.declare import Parameters
from fastmmc.core.execution import OutOfTime, RunControl
from fastmmc.core.status import Status
from fastmmc.cutting_plane.planes import SignSet, Weights, WinnerSet
from fastmmc.kernels.gram import dense_rows, evenly, is_wide
from fastmmc.kernels.kmeans import k_means

STARTS = ("random", "kmeans")

# Root mean square of a start's centred scores, so that most points are inside the margin and the
# first plane rests on all of them; and the number of points that it is estimated from.
START_SCORE = 0.1
START_SAMPLE = 2000

# Seconds that a pass takes on a slow core for a number of a point and of the weights of a cluster.
PASS_SECONDS = 6e-10

# Programs between two planes. The objective of more than two clusters may rise.
MOST_STEPS = 100

# A program whose primal and dual objective differ by more than this share is not solved.
GAP = 1e-6

# Planes without a lower objective after which a search settles: where nothing clusters, planes
# whose labels have moved on ask for little, and new ones would be sought for ever.
PATIENCE = 50


@dataclass(frozen=True, eq=False)
class Problem:
    """What all starts share: the call with a checked ``init``, and the space of the weights."""

    call: Parameters
    control: RunControl
    k: int
    binary: bool
    rows: np.ndarray | csr_matrix  # (n, d) points or their features
    mean: np.ndarray  # (d,) of the rows
    constant: float = 0.0  # square of a constant feature that is not among the rows
    is_brief: bool = False  # features of low rank, for want of time


@dataclass(frozen=True, eq=False)
class Found:
    """Weights, and the labels that they give the points."""

    weights: Weights
    labels: np.ndarray
    gap: float | None
    n_inside: int


class PlaneSearch:
    """One start.

    A step of the concave-convex procedure freezes the labels and solves the program of the planes.
    Once that lowers the objective on the planes by no more than ``cccp_tol``, the constraint that
    the weights violate most joins them; if it is violated by no more than ``eps`` the search ends.

    That end is not certain to come. After PATIENCE planes without a lower objective the search goes
    back to the best weights and settles: the two loops change places. Labels are held while planes
    join until none is violated by more than ``eps``, which is convex, and frozen anew as long as
    that lowers the objective by more than ``cccp_tol``.
    """

    def __init__(self, problem, rng):
        call = self._call = problem.call
        self._n_wanted = 0 if problem.binary else problem.k
        given = problem.rows, problem.mean, call.C, call.score_balance
        self.planes = (
            SignSet(*given) if problem.binary else WinnerSet(*given, problem.k, problem.constant)
        )
        self._weights = first_weights(problem, rng)
        self._gap = None
        # The start need not keep the balance, so nothing is compared with it.
        self._working = np.inf  # objective of the previous weights on the planes
        self._n_steps = 0
        self._best_at = 0  # planes when the objective last fell
        self._hold = False
        # Best objective, weights and gap while labels are held, without new labels yet.
        self._held = np.inf, None, None
        # Once the search settles, the objective when labels were last frozen.
        self._settled = None
        self._certain = False  # that no constraint is violated
        self._last = None  # weights of the last program
        self._is_solving = False  # rows of the balance are still being added to the program
        self._log = []
        self.found = None
        self.objective = np.inf
        self.status = Status.TIME_LIMIT if problem.is_brief else Status.CONVERGED
        self.n_iter = 0
        self.n_moves = 0

    def step(self, budget):
        """Continue; return whether the search has ended."""
        if self._is_solving:
            return self._solve()
        return self.planes.look(self._weights, budget, self._hold) and self._end_pass()

    def _end_pass(self):
        """Judge the weights that scored the points; return whether to stop."""
        planes = self.planes
        objective = self._weights.half_norm + self._call.C * planes.mean_slack
        if not np.isfinite(objective):
            self.status = Status.NUMERICAL
            if self.found is None:
                self._keep(np.inf)
            return True
        if self.n_iter == 0:
            self._keep(objective)
            return self._cut()
        slack = planes.slack(self._weights)
        if not self._hold:
            self.n_moves += planes.n_changed
            if not self._log or objective < self.objective:
                self._best_at = self.n_iter
                self._keep(objective)
        working = self._weights.half_norm + self._call.C * slack
        if self._n_steps:
            violation = planes.held_slack - slack
            self._log.append((objective, working, violation, self.n_iter))
        if self._hold:
            if objective < self._held[0]:
                self._held = objective, self._weights, self._gap
            return self._end_held_pass(slack)
        if self._settled is not None:
            return self._freeze(objective)
        return self._end_free_pass(objective, working, slack)

    def _end_free_pass(self, objective, working, slack):
        """Take the next step between two planes, or add a plane."""
        falls = working < self._working * (1.0 - self._call.cccp_tol)
        self._working = working
        if falls and self.planes.n_changed and self._n_steps < MOST_STEPS:
            return self._solve()
        if self._is_met(slack):
            return self._end(objective)
        if self.n_iter - self._best_at >= PATIENCE:
            self._settled = np.inf
            self._weights = self.found.weights
            return self._look_again()
        # On the new plane the weights need as much slack as on all constraints.
        self._working = objective
        return self._cut()

    def _end_held_pass(self, slack):
        """Freeze the labels anew if all constraints are met, else add a plane."""
        if not self._is_met(slack):
            return self._cut()
        self._hold = False
        return self._look_again()

    def _freeze(self, objective):
        """Hold the labels that the weights give as long as that lowers the objective."""
        if not objective < self._settled * (1.0 - self._call.cccp_tol):
            return self._end(objective)
        self._settled = objective
        self._hold = True
        return self._cut()

    def _end(self, objective):
        """End with these weights, which violate no constraint."""
        self._certain = True
        self._keep(objective)
        return True

    def _is_met(self, slack):
        """Tell whether no constraint is violated by more than eps beyond the planes' slack."""
        eps = self._call.eps
        enough = slack * (1.0 + eps) if self._call.stop == "relative" else slack + eps
        return self.planes.held_slack <= enough

    def _look_again(self):
        """Begin a pass with weights that have already been judged."""
        self._n_steps = 0
        self.planes.begin_pass()
        return False

    def _cut(self):
        """Add the most violated constraint; return whether there may be no more planes."""
        if self.n_iter == self._call.max_iter:
            self.status = Status.MAX_ITER
            return True
        self.planes.accept()
        self.n_iter += 1
        self._n_steps = 0
        return self._solve()

    def _solve(self):
        """Solve the program with the rows of the balance so far; return whether that failed."""
        if not self._is_solving:
            self._n_steps += 1
        self._weights, self._gap, ended = self.planes.solve()
        self._last = self._weights
        if not ended:
            self.status = Status.NUMERICAL
            return True
        self._is_solving = self.planes.tighten(self._weights)
        if not self._is_solving:
            self.planes.begin_pass()
        return False

    def _keep(self, objective):
        """Keep the weights and labels of this pass."""
        self.objective = objective
        labels, n_inside = self.planes.labels.copy(), self.planes.n_inside
        self.found = Found(self._weights, labels, self._gap, n_inside)

    @property
    def n_lost(self):
        """Clusters that win no point; of two, one side may be empty, which the objective judges."""
        return max(0, self._n_wanted - np.unique(self.found.labels).size)

    @property
    def at_end(self):
        """Whether the weights of the last program are kept."""
        return self.found.weights is self._last

    def fraction(self):
        """Return a guess of the share of the search that is over."""
        return self.n_iter / (self.n_iter + 20.0)

    def finish(self):
        """Label the points by the start, or by a held program, if a stop came first."""
        call = self._call
        while self.found is None:
            self.step(2**62)
        objective, *held = self._held
        if not self._certain and objective < self.objective:
            self._weights, self._gap = held
            self.planes.begin_pass()
            self.planes.look(self._weights, 2**62)
            self._keep(objective)
        if not self._log:
            half_norm = self.found.weights.half_norm
            violation = (self.objective - half_norm) / call.C
            self._log.append((self.objective, half_norm, violation, 0))
        # After each program, or of the start if none was finished.
        self.history, working, violations, planes = np.array(self._log, dtype=np.float64).T.copy()
        self.trace = {
            "working": working,
            "violation": violations,
            "planes": planes.astype(np.int64),
        }
        gap, most = self.found.gap, max(call.eps * min(1.0, call.C), GAP * self.objective)
        if gap is not None and not abs(gap) <= most:
            self.status = Status.NUMERICAL


def first_weights(problem, rng):
    """Return the weights that a start begins with, one row for two clusters, else k.

    Random ones are normal, with biases so that the mean scores zero; with k-means or given labels
    the nearest mean of the clusters wins. They are scaled to small scores.
    """
    rows, mean = problem.rows, problem.mean
    centers = _first_centers(problem, rng)
    if centers is None:
        W = rng.standard_normal((1 if problem.binary else problem.k, mean.size))
        b = -W @ mean
    else:
        centers = centers.astype(np.float64)
        W, b = centers - mean, -0.5 * np.einsum("ij,ij->i", centers, centers)
        if problem.binary:
            W, b = W[1:] - W[:1], b[1:] - b[:1]
    sample = evenly(rows.shape[0], START_SAMPLE)
    # Wide rows stay sparse.
    scores = (
        rows[sample] @ W.T - W @ mean if is_wide(rows) else (dense_rows(rows, sample) - mean) @ W.T
    )
    size = np.sqrt(np.mean(scores * scores))
    scale = START_SCORE / size if size > 0 else 1.0
    W, b = scale * W, scale * b
    return Weights(np.ascontiguousarray(W), b, 0.5 * float(np.vdot(W, W)))


def pass_seconds(k, size):
    """Return what a pass takes over points of so many numbers, for k clusters."""
    return PASS_SECONDS * k * size


def _first_centers(problem, rng):
    """Return the means of the first clusters, (k, d), that of all points for an empty one.

    None if they are random, or there is no time.
    """
    rows, init, k = problem.rows, problem.call.init, problem.k
    if not isinstance(init, str):
        centers = np.tile(problem.mean, (k, 1))
        for p in np.unique(init):
            centers[p] = np.asarray(rows[init == p].mean(axis=0)).ravel()
        return centers
    if init == "random":
        return None
    # The first pass comes next, and cannot be left out.
    ahead = pass_seconds(k, rows.nnz if issparse(rows) else rows.size)
    seed = int(rng.integers(2**31))
    try:
        return k_means(rows, k, seed, look=lambda: problem.control.check_time(ahead))[1]
    except OutOfTime:
        return None
