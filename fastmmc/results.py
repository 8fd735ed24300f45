"""What every solver returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from sklearn.exceptions import NotFittedError


class Status(IntEnum):
    """Why a run ended."""

    CONVERGED = 0
    MAX_ITER = 1
    TIME_LIMIT = 2
    INTERRUPTED = 3
    CALLBACK = 4
    NUMERICAL = 5


STATUS_TEXT = {
    Status.CONVERGED: "converged",
    Status.MAX_ITER: "the iteration limit max_iter was reached",
    Status.TIME_LIMIT: "the time limit max_time was reached",
    Status.INTERRUPTED: "the run was interrupted",
    Status.CALLBACK: "the callback asked to stop",
    Status.NUMERICAL: "a numerical problem stopped the run",
}


# History entries that a slice of a compiled loop can write before it must return.
HISTORY_CAPACITY = 4096


class History:
    """What a search notes along its way: the objective after so many moves or generations."""

    def __init__(self):
        self._counts = []
        self._values = []

    def note(self, count, value):
        """Append an entry."""
        self._counts.append(int(count))
        self._values.append(float(value))

    def drain(self, entries, pos, slot):
        """Take the entries of a compiled loop, which counts them in pos[slot]."""
        for count, value in entries[: pos[slot]]:
            self.note(count, value)
        pos[slot] = 0

    def counts(self):
        """Return the counts, (T,) int64."""
        return np.array(self._counts, dtype=np.int64)

    def values(self):
        """Return the objectives, (T,) float64."""
        return np.array(self._values, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class ClusteringResult:
    """A clustering and how it came about.

    Attributes
    ----------
    labels : (n,) int64 array
        Clusters 0..k-1.
    objective : float
        What the method minimises; lower is better.
    status : Status
        Why the run ended.
    n_iter : int
        Rounds, sweeps or steps of the winning start.
    n_moves : int
        Label changes of the winning start.
    sizes : (k,) int64 array
        Cluster sizes.
    history : (T,) float64 array
        Objective of the winning start along its way.
    trace : dict of str to (T,) array
        Further quantities along the way; ``trace["moves"]`` or, of an evolution,
        ``trace["generations"]`` counts what was made so far.
    objectives : (n_init,) float64 array
        Final objective of every start that ended.
    best_init : int
        Which start won.
    params : dict
        The parameters used; what None became stands here.
    model : object or None
        Predicts new points; small and picklable. None where the method has none.
    """

    labels: np.ndarray
    objective: float
    status: Status
    n_iter: int
    n_moves: int
    sizes: np.ndarray
    history: np.ndarray
    trace: dict
    objectives: np.ndarray
    best_init: int
    params: dict
    model: object = field(repr=False, default=None)

    @property
    def converged(self):
        """Whether the run ended by itself."""
        return self.status == Status.CONVERGED

    def decision_function(self, X):
        """Return the score of every cluster for new points.

        Parameters
        ----------
        X : (m, d) array_like
            New points; with a precomputed kernel their (m, n) kernel values.

        Returns
        -------
        (m, k) array
            Scores; the largest one names the cluster.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the result carries no model.
        """
        if self.model is None:
            raise NotFittedError("this result carries no model, so it cannot predict")
        return self.model.decision_function(X)

    def predict(self, X):
        """Return the clusters of new points.

        Parameters
        ----------
        X : (m, d) array_like
            New points; with a precomputed kernel their (m, n) kernel values.

        Returns
        -------
        (m,) int64 array
            Clusters 0..k-1.
        """
        return np.argmax(self.decision_function(X), axis=1)


@dataclass(frozen=True, eq=False)
class RLSResult(ClusteringResult):
    """A clustering by regularised least squares.

    Attributes
    ----------
    loo_mse : float or None
        Mean squared leave-one-out error of the final labels; lower is better and, unlike the
        objective, comparable between values of lam and sigma.
    bound : float or None
        If it was asked for: a number that the objective of no labelling is below whose sizes the
        size rule allows (where the sizes are not bounded: of none with the sizes of this one).
        It comes from eigenvalues, so even the best labelling may be well above it.
    """

    loo_mse: float | None = None
    bound: float | None = None

    @property
    def gap(self):
        """Share of the objective that lies above the bound: how far the best can be at most."""
        if self.bound is None:
            return None
        return max(0.0, self.objective - self.bound) / max(self.objective, np.finfo(float).tiny)


@dataclass(frozen=True, eq=False)
class MarginResult(ClusteringResult):
    """A clustering by a kernel machine with two classes.

    Attributes
    ----------
    dual_coef : (m,) float64 array or None
        Coefficients of the support vectors: w = sum dual_coef_i phi(x_i).
    support : (m,) int64 array or None
        Which points they belong to.
    intercept : float
        Added to w . phi(x); its sign then tells the cluster.
    duality_gap : float or None
        How far the machine's objective can be above the least one for its labels.
    n_violated : int
        Points inside the margin or on the wrong side of it.
    """

    dual_coef: np.ndarray | None = None
    support: np.ndarray | None = None
    intercept: float = 0.0
    duality_gap: float | None = None
    n_violated: int = 0
