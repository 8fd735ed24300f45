"""The search: cutting planes outside, the concave-convex procedure inside, one pass a program."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix, issparse

from fastmmc.core.declare import Parameters
from fastmmc.core.execution import OutOfTime, RunControl, SlicedSearch
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


class _Stop(Exception):
    """A search cannot go on, for the reason that its status is set to."""


class PlaneSearch(SlicedSearch):
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
        super().__init__()
        call = self._call = problem.call
        self._n_wanted = 0 if problem.binary else problem.k
        given = problem.rows, problem.mean, call.C, call.score_balance
        self.planes = (
            SignSet(*given) if problem.binary else WinnerSet(*given, problem.k, problem.constant)
        )
        self._weights = first_weights(problem, rng)
        # Best objective and weights while labels are held, without new labels yet.
        self._held = np.inf, None
        self._certain = False  # that no constraint is violated
        self._last = None  # weights of the last program
        self._log = []
        self.weights = None  # the best ones; labels and n_inside are theirs
        if problem.is_brief:
            self.status = Status.TIME_LIMIT

    def _run(self):
        """Search with labels that follow the weights, and settle if that finds no end."""
        try:
            objective, _ = yield from self._look()
            self._keep(objective)
            objective = yield from self._follow()
            if objective is None:
                objective = yield from self._settle()
        except _Stop:
            return
        self._certain = True
        self._keep(objective)

    def _follow(self):
        """Return the objective of weights that violate no constraint, None if PATIENCE ends."""
        best_at = 0  # planes when the objective last fell
        # Objective of the previous weights on the planes. The start need not keep the balance, so
        # nothing is compared with it.
        before = np.inf
        while True:
            self._cut()
            for _ in range(MOST_STEPS):
                yield from self._solve()
                objective, slack = yield from self._look()
                best_at = self.n_iter if self._keep_better(objective) else best_at
                working = self._note(objective, slack)
                falls = self._is_lower(working, before)
                before = working
                if not (falls and self.planes.n_changed):
                    break
            if self._is_met(slack):
                return objective
            if self.n_iter - best_at >= PATIENCE:
                return None
            # On the new plane the weights need as much slack as on all constraints.
            before = objective

    def _settle(self):
        """Return the objective once labels that are frozen anew no longer lower it."""
        least = np.inf
        self._weights = self.weights
        while True:
            objective, _ = yield from self._look()
            self._keep_better(objective)
            if not self._is_lower(objective, least):
                return objective
            least = objective
            yield from self._hold()

    def _hold(self):
        """Add planes at the labels as they are until none is violated."""
        is_met = False
        while not is_met:
            self._cut()
            yield from self._solve()
            objective, slack = yield from self._look(hold=True)
            self._note(objective, slack)
            if objective < self._held[0]:
                self._held = objective, self._weights
            is_met = self._is_met(slack)

    def _look(self, hold=False):
        """Score the points by the weights; return the objective, and the slack on the planes."""
        planes = self.planes
        planes.begin_pass()
        while not planes.look(self._weights, self._budget, hold):
            yield
        objective = self._weights.half_norm + self._call.C * planes.mean_slack
        if not np.isfinite(objective):
            if self.weights is None:
                self._keep(np.inf)
            self._stop(Status.NUMERICAL)
        return objective, planes.slack(self._weights)

    def _note(self, objective, slack):
        """Log a program and return its objective on the planes."""
        working = self._weights.half_norm + self._call.C * slack
        self._log.append((objective, working, self.planes.held_slack - slack, self.n_iter))
        return working

    def _keep_better(self, objective):
        """Keep the first weights of a program and better ones; return whether these are kept."""
        self.n_moves += self.planes.n_changed
        is_better = not self._log or objective < self.objective
        if is_better:
            self._keep(objective)
        return is_better

    def _is_lower(self, objective, before):
        """Tell whether an objective is lower by more than the tolerance."""
        return objective < before * (1.0 - self._call.cccp_tol)

    def _is_met(self, slack):
        """Tell whether no constraint is violated by more than eps beyond the planes' slack."""
        eps = self._call.eps
        enough = slack * (1.0 + eps) if self._call.stop == "relative" else slack + eps
        return self.planes.held_slack <= enough

    def _cut(self):
        """Add the most violated constraint, if there may be more planes."""
        if self.n_iter == self._call.max_iter:
            self._stop(Status.MAX_ITER)
        self.planes.accept()
        self.n_iter += 1

    def _solve(self):
        """Solve the program, with rows of the balance until none is violated."""
        is_open = True
        while is_open:
            self._weights, ended = self.planes.solve()
            self._last = self._weights
            if not ended:
                self._stop(Status.NUMERICAL)
            is_open = self.planes.tighten(self._weights)
            yield

    def _stop(self, status):
        """End the search for this reason."""
        self.status = status
        raise _Stop

    def _keep(self, objective):
        """Keep the weights and labels of this pass."""
        self.objective = objective
        self.weights = self._weights
        self.labels, self.n_inside = self.planes.labels.copy(), self.planes.n_inside

    @property
    def n_lost(self):
        """Clusters that win no point; of two, one side may be empty, which the objective judges."""
        return max(0, self._n_wanted - np.unique(self.labels).size)

    @property
    def at_end(self):
        """Whether the weights of the last program are kept."""
        return self.weights is self._last

    def fraction(self):
        """Return a guess of the share of the search that is over."""
        return self.n_iter / (self.n_iter + 20.0)

    def finish(self):
        """Label the points by the start, or by a held program, if a stop came first."""
        call = self._call
        while self.weights is None:
            self.step(2**62)
        objective, held = self._held
        if not self._certain and objective < self.objective:
            self._weights = held
            self.planes.begin_pass()
            self.planes.look(self._weights, 2**62)
            self._keep(objective)
        if not self._log:
            half_norm = self.weights.half_norm
            violation = (self.objective - half_norm) / call.C
            self._log.append((self.objective, half_norm, violation, 0))
        # After each program, or of the start if none was finished.
        self.history, working, violations, planes = np.array(self._log, dtype=np.float64).T.copy()
        self.trace = {
            "working": working,
            "violation": violations,
            "planes": planes.astype(np.int64),
        }
        gap, most = self.weights.gap, max(call.eps * min(1.0, call.C), GAP * self.objective)
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
    """Return the means of the first clusters, (k, d); None if they are random, or time is short."""
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
