"""What all RLS solvers share: the source of the hat matrix, the run, the model of the labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fastmmc import validation
from fastmmc.constraints import integer_labels
from fastmmc.execution import RunControl, run_restarts, warn_if_stopped
from fastmmc.gram import Kernel, kernel_rows, resolve_kernel
from fastmmc.hat import (
    DenseFactor,
    Form,
    check_form,
    leave_one_out_residuals,
    make_factor,
)
from fastmmc.lowrank import LowRankFactor
from fastmmc.results import RLSResult, Status
from fastmmc.rls import _kernels_claims as claims

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
class RLSModel:
    """Regularised least squares fitted to the final labels.

    Attributes
    ----------
    kernel : Kernel
        With its widths set.
    X : (b, d) array
        Points that the coefficients belong to: all training points, or the landmarks.
    coef : (b, k) float64 array
        Dual coefficients, (K + lam I)^-1 P where dense, with P = +1 in the own cluster's column,
        else -1.
    n_features : int
        Columns of the training X.
    indices : (b,) int64 array, optional
        Which training points the landmarks are; used with a precomputed kernel.
    """

    kernel: Kernel
    X: np.ndarray
    coef: np.ndarray
    n_features: int
    indices: np.ndarray | None = None

    def decision_function(self, X):
        """Return k(x, X) coef for new points, in row blocks.

        Parameters
        ----------
        X : (m, d) array_like or sparse matrix
            New points; with a precomputed kernel their (m, n) kernel values.

        Returns
        -------
        (m, k) float64 array
            Scores, near +1 for the own cluster and -1 for the others.
        """
        X = validation.check_new_points(X, self.kernel, self.n_features, self.X.dtype)
        scores = np.empty((X.shape[0], self.coef.shape[1]))
        for rows, values in kernel_rows(self.kernel, X, self.X, self.indices):
            scores[rows] = values @ self.coef
        return scores


@dataclass(frozen=True, eq=False)
class Source:
    """Where the hat matrix comes from."""

    points: np.ndarray
    kernel: Kernel
    lam: float
    form: Form
    factor: DenseFactor | LowRankFactor | None

    def make_factor(self, seed, width=None, on_progress=None):
        """Return the factor that was given, or make it, with ``width(points)`` as default width."""
        if self.factor is not None:
            return self.factor
        kernel = resolve_kernel(self.kernel, self.points, width)
        return make_factor(self.points, self.lam, kernel, self.form, seed, on_progress)


def check_source(
    X,
    *,
    lam,
    kernel,
    sigma,
    gamma,
    degree,
    coef0,
    kernel_params,
    rank,
    landmarks,
    rank_tol,
    dtype,
    defaults,
):
    """Check X and what the hat matrix is made with.

    ``defaults`` holds the method's own values of lam, rank and landmarks: with a factor in place of
    X nothing else may be given, as the factor brings its own.
    """
    if isinstance(X, DenseFactor | LowRankFactor):
        given = {"sigma": sigma, "gamma": gamma, "kernel_params": kernel_params, "dtype": dtype}
        extra = [name for name, value in given.items() if value is not None]
        if kernel not in ("rbf", X.kernel.name):
            extra.append("kernel")
        if lam not in (defaults["lam"], X.lam):
            extra.append("lam")
        if type(rank) is not type(defaults["rank"]) or rank != defaults["rank"]:
            extra.append("rank")
        if not isinstance(landmarks, str) or landmarks != "uniform":
            extra.append("landmarks")
        if extra:
            raise ValueError(
                f"{', '.join(extra)}: X is a factor, which was made with lam={X.lam} and "
                f"kernel={X.kernel.name!r}; give these to fastmmc.factor instead"
            )
        return Source(X.X, X.kernel, X.lam, Form(), X)
    spec = validation.check_kernel(kernel, sigma, gamma, degree, coef0, kernel_params)
    lam = validation.check_positive("lam", lam)
    points = validation.check_points(X, spec, sparse=True)
    form = check_form(points, spec, rank, landmarks, rank_tol, dtype)
    return Source(points, spec, lam, form, None)


def check_control(started, n_jobs, max_time, callback, verbose, on_start_done=None):
    """Check the parameters that say how a run is carried out."""
    if n_jobs is not None:
        validation.check_integer("n_jobs", n_jobs, least=-(2**31))
        if n_jobs == 0:
            raise ValueError("n_jobs must not be 0; give a number of threads, -1 for all, or None")
    if max_time is not None:
        max_time = validation.check_positive("max_time", max_time)
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be callable or None; got {callback!r}")
    if not isinstance(verbose, bool):
        validation.check_integer("verbose", verbose, least=0)
    return RunControl(n_jobs, max_time, callback, int(verbose), started, on_start_done)


def check_init(init, n, k, kernel, allowed):
    """Return "random", "kmeans" or an array of labels; ``allowed`` names the labels."""
    if isinstance(init, str):
        validation.check_choice("init", init, ("random", "kmeans"))
        if init == "kmeans" and kernel.name == "precomputed":
            raise ValueError(
                "init='kmeans' needs points; with kernel='precomputed' give 'random' or labels"
            )
        return init
    labels = integer_labels("init", init, n)
    if labels.min() < 0 or labels.max() >= k:
        raise ValueError(
            f"init: labels must be {allowed}; got values from {labels.min()} to {labels.max()}"
        )
    return labels


def compact(labels, k):
    """Return a copy of the labels in the type that the compiled loops take."""
    return labels.astype(np.uint8 if k <= 256 else np.int32)


def sum_rows(factor, labels, out):
    """Fill U = (R E)^T, k x n."""
    if isinstance(factor, LowRankFactor):
        factor.sum_rows(labels, out)
    else:
        claims.build_sums(factor.R, labels, out)


def matrix_and_row(factor):
    """Return the matrix that the compiled loops take, and their room for a row of it."""
    if isinstance(factor, LowRankFactor):
        return factor.Z, np.empty(factor.n, dtype=factor.Z.dtype)
    return factor.R, None


def make_model(factor, P, predictions):
    """Return the model that fits the codes P; ``predictions`` is R P."""
    d = factor.X.shape[1]
    if isinstance(factor, LowRankFactor):
        coef = factor.coefficients(P)
        return RLSModel(factor.kernel, factor.basis, coef, d, factor.indices)
    return RLSModel(factor.kernel, factor.X, (P - predictions) / factor.lam, d)


def fit_labels(factor, labels, k):
    """Return the model that fits the labels, and its mean squared leave-one-out error."""
    U = np.empty((k, factor.n))
    sum_rows(factor, compact(labels, k), U)
    P = np.where(labels[:, None] == np.arange(k), 1.0, -1.0)
    predictions = 2.0 * U.T - U.sum(axis=0)[:, None]
    residuals = leave_one_out_residuals(P, predictions, factor.diagonal())
    return make_model(factor, P, predictions), float(np.mean(residuals**2))


def best_of_restarts(factor, make_search, n_init, control, k, params, bound=None):
    """Run the restarts on one hat matrix and return the best as a result.

    ``make_search`` is that of :func:`run_restarts`; a finished search also has labels, status,
    n_iter, n_moves, history and trace. ``bound`` takes the sizes found and returns a lower bound.
    """
    searches, status, n_done = run_restarts(make_search, n_init, control)
    ended = [(s.objective, i) for i, s in enumerate(searches) if s is not None]
    best_init = min(ended)[1]
    best = searches[best_init]
    if status == Status.CONVERGED:
        status = best.status
    warn_if_stopped(status, n_done, n_init)
    model, loo_mse = fit_labels(factor, best.labels, k)
    sizes = np.bincount(best.labels, minlength=k)
    return RLSResult(
        labels=best.labels,
        objective=best.objective,
        status=status,
        n_iter=best.n_iter,
        n_moves=best.n_moves,
        sizes=sizes,
        history=best.history,
        trace=best.trace,
        objectives=np.array([objective for objective, _ in ended]),
        best_init=best_init,
        params=params | factor_params(factor) | {"n_init": n_init},
        model=model,
        loo_mse=loo_mse,
        bound=None if bound is None else bound(sizes),
    )


def factor_params(factor):
    """Return what a result says of the hat matrix it was made with."""
    kernel = factor.kernel
    return {
        "lam": factor.lam,
        "rank": factor.rank if isinstance(factor, LowRankFactor) else None,
        "kernel": kernel.name if kernel.function is None else kernel.function,
        "sigma": kernel.sigma,
        "gamma": kernel.gamma,
        "degree": kernel.degree,
        "coef0": kernel.coef0,
        "kernel_params": kernel.kernel_params,
    }
