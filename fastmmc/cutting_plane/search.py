"""The search: cutting planes outside, the concave-convex procedure inside, one pass a program."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fastmmc._means import k_means
from fastmmc.cutting_plane.planes import SignSet, Weights, WinnerSet
from fastmmc.execution import OutOfTime, RunControl
from fastmmc.gram import dense_rows
from fastmmc.results import Status

STARTS = ("random", "kmeans")

# Root mean square of a start's centred scores: most points are inside the margin, so that the first
# plane rests on all of them; and the points it is estimated from.
START_SCORE = 0.1
START_SAMPLE = 2000

# Programs between two planes. The objective of more than two clusters may rise.
MOST_STEPS = 100

# A program whose primal and dual objective differ by more than this share is not solved.
GAP = 1e-6

# Planes without a lower objective after which a search settles: where nothing clusters, planes
# whose labels have moved on ask for little, and new ones would be sought for ever.
PATIENCE = 50


@dataclass(frozen=True, eq=False)
class Plan:
    """What all starts have in common."""

    k: int
    binary: bool
    C: float
    score_balance: float
    eps: float
    relative: bool
    cccp_tol: float
    max_iter: int
    init: str | np.ndarray
    constant: float
    params: dict
    control: RunControl
    is_brief: bool = False  # features of low rank, for want of time

    def look_at_clock(self):
        """Leave the phase at hand if the time limit has passed."""
        self.control.check_time()


@dataclass(frozen=True, eq=False)
class Found:
    """Weights, and the labels that they give the points."""

    weights: Weights
    labels: np.ndarray
    objective: float
    gap: float | None
    n_inside: int


class PlaneSearch:
    """One start.

    A step of the concave-convex procedure freezes the labels and solves the program of the planes.
    Where that lowers the objective on the planes by no more than ``cccp_tol``, the constraint that
    the weights violate most joins them; if it is violated by no more than ``eps`` the search ends.

    That end is not certain to come. After PATIENCE planes without a lower objective the search goes
    back to the best weights and settles: the two loops change places. Labels are held while planes
    join until none is violated by more than ``eps``, which is convex, and frozen anew as long as
    that lowers the objective by more than ``cccp_tol``.

    Parameters
    ----------
    plan : Plan
        What all starts have in common.
    rows : (n, d) array or CSR matrix
        Points in the space of the weights.
    mean : (d,) float64 array
        Their mean.
    rng : numpy.random.Generator
        Random stream of the start.
    """

    def __init__(self, plan, rows, mean, rng):
        self._plan = plan
        given = rows, mean, plan.C, plan.score_balance
        self.planes = SignSet(*given) if plan.binary else WinnerSet(*given, plan.k, plan.constant)
        self._weights = first_weights(plan, rows, mean, rng)
        self._gap = None
        # The start need not keep the balance, so nothing is compared with it.
        self._working = np.inf  # objective on the planes, of the weights before
        self._n_steps = 0
        self._best_at = 0  # planes when the objective was lowered last
        self._hold = False
        self._held_objective, self._held_best = np.inf, None  # its labels are yet to be made
        self._settled = None  # objective when labels were frozen last, once the search settles
        self._certain = False  # that no constraint is violated
        self._last = None  # weights of the last program
        self._is_solving = False  # rows of the balance are still being added to the program
        self._log = []
        self.found = None
        self.objective = np.inf
        self.status = Status.TIME_LIMIT if plan.is_brief else Status.CONVERGED
        self.n_iter = 0
        self.n_moves = 0

    def step(self, budget):
        """Go on; return whether the search has ended."""
        if self._is_solving:
            return self._go_on_solving()
        return self.planes.look(self._weights, budget, self._hold) and self._end_pass()

    def _end_pass(self):
        """Judge the weights that the points were scored by; return whether to stop."""
        planes = self.planes
        objective = self._weights.half_norm + self._plan.C * planes.mean_slack
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
        if self._n_steps:
            working = self._weights.half_norm + self._plan.C * slack
            violation = planes.held_slack - slack
            self._log.append((objective, working, violation, self.n_iter))
        if self._hold:
            if objective < self._held_objective:
                self._held_objective, self._held_best = objective, (self._weights, self._gap)
            return self._end_held_pass(slack)
        if self._settled is not None:
            return self._freeze(objective)
        return self._end_free_pass(objective, slack)

    def _end_free_pass(self, objective, slack):
        """Go on with the steps between two planes, or with the next plane."""
        working = self._weights.half_norm + self._plan.C * slack
        falls = working < self._working * (1.0 - self._plan.cccp_tol)
        self._working = working
        if falls and self.planes.n_changed and self._n_steps < MOST_STEPS:
            return self._solve()
        if self._is_met(slack):
            return self._end(objective)
        if self.n_iter - self._best_at >= PATIENCE:
            self._settled = np.inf
            self._weights = self.found.weights
            return self._look_again()
        # On the new plane the weights need the slack that they need altogether.
        self._working = objective
        return self._cut()

    def _end_held_pass(self, slack):
        """Freeze the labels anew if all constraints are met, else go on with the next plane."""
        if not self._is_met(slack):
            return self._cut()
        self._hold = False
        return self._look_again()

    def _freeze(self, objective):
        """Hold the labels that the weights give, unless that has ceased to lower the objective."""
        if not objective < self._settled * (1.0 - self._plan.cccp_tol):
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
        """Tell whether no constraint is violated by more than eps, given the slack of the planes.

        At held labels constraints are convex in the weights.
        """
        plan = self._plan
        enough = slack * (1.0 + plan.eps) if plan.relative else slack + plan.eps
        return self.planes.held_slack <= enough

    def _look_again(self):
        """Begin a pass with weights that were judged already."""
        self._n_steps = 0
        self.planes.begin_pass()
        return False

    def _cut(self):
        """Add the constraint that is violated most; return whether there may be no more."""
        if self.n_iter == self._plan.max_iter:
            self.status = Status.MAX_ITER
            return True
        self.planes.accept()
        self.n_iter += 1
        self._n_steps = 0
        return self._solve()

    def _solve(self):
        """Solve the program at the labels as they are; return whether that failed."""
        self._n_steps += 1
        return self._go_on_solving()

    def _go_on_solving(self):
        """Solve the program with the rows of the balance so far; return whether that failed."""
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
        planes = self.planes
        self.found = Found(
            self._weights, planes.labels.copy(), objective, self._gap, planes.n_inside
        )

    @property
    def n_lost(self):
        """Clusters that win no point; of two, one side may be empty, which the objective judges."""
        return 0 if self._plan.binary else self._plan.k - np.unique(self.found.labels).size

    @property
    def at_end(self):
        """Whether what is kept are the weights of the last program."""
        return self.found.weights is self._last

    def fraction(self):
        """Return a guess of the share that is done."""
        return self.n_iter / (self.n_iter + 20.0)

    def finish(self):
        """Label the points by the start, or by a held program, where a stop came before that."""
        while self.found is None:
            self.step(2**62)
        if not self._certain and self._held_objective < self.objective:
            self._weights, self._gap = self._held_best
            self.planes.begin_pass()
            self.planes.look(self._weights, 2**62)
            self._keep(self._held_objective)
        if not self._log:
            half_norm = self.found.weights.half_norm
            violation = (self.objective - half_norm) / self._plan.C
            self._log.append((self.objective, half_norm, violation, 0))
        if not self._is_exact():
            self.status = Status.NUMERICAL

    def _is_exact(self):
        """Tell whether the program that the kept weights come from was solved."""
        gap, plan = self.found.gap, self._plan
        return gap is None or abs(gap) <= max(plan.eps * min(1.0, plan.C), GAP * self.objective)

    @property
    def history(self):
        """Objective after each program, (T,); of the start where none was finished."""
        return np.array([row[0] for row in self._log])

    @property
    def trace(self):
        """Objective on the planes, violation, and number of planes, after each program."""
        working, violations, planes = np.array(self._log, dtype=np.float64).reshape(-1, 4).T[1:]
        return {"working": working, "violation": violations, "planes": planes.astype(np.int64)}


def first_weights(plan, rows, mean, rng):
    """Return the weights that a start begins with; their scores are small.

    Parameters
    ----------
    plan : Plan
        ``init`` is "random": normal weights, and biases so that the mean scores zero; "kmeans" or
        labels: the nearest mean of the clusters wins.
    rows : (n, d) array or CSR matrix
        Points in the space of the weights.
    mean : (d,) float64 array
        Their mean.
    rng : numpy.random.Generator
        Random stream of the start.

    Returns
    -------
    Weights
        One row for two clusters, else k.
    """
    centers = _first_centers(plan, rows, mean, rng)
    if centers is None:
        W = rng.standard_normal((1 if plan.binary else plan.k, mean.size))
        b = -W @ mean
    else:
        centers = centers.astype(np.float64)
        W, b = centers - mean, -0.5 * np.einsum("ij,ij->i", centers, centers)
        if plan.binary:
            W, b = W[1:] - W[:1], b[1:] - b[:1]
    sample = np.linspace(0, rows.shape[0] - 1, min(START_SAMPLE, rows.shape[0])).astype(np.intp)
    scores = (dense_rows(rows, sample) - mean) @ W.T
    size = np.sqrt(np.mean(scores * scores))
    scale = START_SCORE / size if size > 0 else 1.0
    W, b = scale * W, scale * b
    return Weights(np.ascontiguousarray(W), b, 0.5 * float(np.vdot(W, W)))


def _first_centers(plan, rows, mean, rng):
    """Return the means of the first clusters, None where these are random or had no time."""
    if not isinstance(plan.init, str):
        return _class_means(rows, mean, plan.init, plan.k)
    if plan.init == "random":
        return None
    try:
        return k_means(rows, plan.k, int(rng.integers(2**31)), look=plan.look_at_clock)[1]
    except OutOfTime:
        return None


def _class_means(rows, mean, labels, k):
    """Return the mean of each cluster, (k, d); that of all points where one is empty."""
    centers = np.tile(mean, (k, 1))
    for p in np.unique(labels):
        centers[p] = np.asarray(rows[labels == p].mean(axis=0)).ravel()
    return centers
