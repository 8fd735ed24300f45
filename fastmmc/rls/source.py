"""What all RLS solvers share: the source of the hat matrix, the run, the model of the labels."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from fastmmc import validation
from fastmmc._declare import declared, values
from fastmmc.execution import OutOfTime, best_of_restarts, rate_figures, warn_user
from fastmmc.factors import (
    DenseFactor,
    LowRankFactor,
    leave_one_out_residuals,
    make_factor,
)
from fastmmc.gram import Kernel, count_distinct, resolve_kernel
from fastmmc.models import KernelModel
from fastmmc.nystroem import Form, check_form
from fastmmc.parameters import KernelParameters
from fastmmc.results import RLSResult
from fastmmc.rls import _loops_claims as claims
from fastmmc.sizes import fit_sizes

# What a factor brings with it.
FACTOR_PARAMETERS = (
    "sigma",
    "gamma",
    "kernel_params",
    "dtype",
    "kernel",
    "lam",
    "rank",
    "landmarks",
)

# Greatest rank, and multiplications for it, of the hat matrix where there is no time for another.
QUICK_RANK = 100
QUICK_PRODUCTS = 10**9

# A model that knows nothing predicts 0, so its leave-one-out error is 1. An error that is so near
# is taken for that; a larger one too, of so many points that it is no accident.
NOTHING = 0.01
LEAST_JUDGED = 50


@dataclass(frozen=True, eq=False)
class Source:
    """Where the hat matrix comes from."""

    points: np.ndarray
    kernel: Kernel
    lam: float
    form: Form
    factor: DenseFactor | LowRankFactor | None

    def make_factor(self, seed, control, width=None):
        """Return the factor that was given, or make it, with ``width(points)`` as default width.

        Where max_time is too short for that, it is one of a low rank. The control that is returned
        with it says so.
        """
        if self.factor is not None:
            return self.factor, control
        kernel = resolve_kernel(self.kernel, self.points, width)
        try:
            made = make_factor(self.points, self.lam, kernel, self.form, seed, control.prepare)
        except OutOfTime:
            return self.make_quick_factor(kernel, seed, control)
        return made, control

    def make_quick_factor(self, kernel, seed, control):
        """Return a factor of a rank that takes little time, and the control that says so."""
        n = self.points.shape[0]
        rank = max(1, min(n, QUICK_RANK, math.isqrt(QUICK_PRODUCTS // n)))
        shortage = (
            f". The time was too short for the hat matrix of {n} points; the search ran on one of "
            f"rank {rank}"
        )
        form = Form(rank, dtype=self.form.dtype)
        made = make_factor(self.points, self.lam, kernel, form, seed, control.bar.prepare)
        return made, replace(control, shortage=shortage)


def check_source(call, lam=None):
    """Check X and what the hat matrix is made with; ``lam`` stands in where the call has none.

    With a factor in place of X nothing else may be given, as the factor brings its own.
    """
    if isinstance(call.X, DenseFactor | LowRankFactor):
        _refuse_beside_factor(call)
        return Source(call.X.X, call.X.kernel, call.X.lam, Form(), call.X)
    kernel = validation.check_kernel(**values(call, KernelParameters))
    points = validation.check_points(call.X, kernel, sparse=True)
    form = {"rank": None, "landmarks": "uniform", "rank_tol": 1e-6, "dtype": None}
    form = check_form(points, kernel, **{name: getattr(call, name, form[name]) for name in form})
    return Source(points, kernel, call.lam if lam is None else lam, form, None)


def _refuse_beside_factor(call):
    """Raise ValueError if parameters of the hat matrix are given beside a factor."""
    X = call.X
    allowed = {"kernel": X.kernel.name, "lam": X.lam}
    defaults = {one.name: one.default for one in declared(type(call))}
    extra = []
    for name in FACTOR_PARAMETERS:
        default, value = defaults.get(name), getattr(call, name, None)
        same = value is default or (type(value) is type(default) and np.array_equal(value, default))
        if not same and not (name in allowed and value == allowed[name]):
            extra.append(name)
    if extra:
        raise ValueError(
            f"{', '.join(extra)}: X is a factor, which was made with lam={X.lam} and "
            f"kernel={X.kernel.name!r}; give these to fastmmc.factor instead"
        )


def compact(labels, k):
    """Return a copy of the labels in the type that the compiled loops take."""
    return labels.astype(np.uint8 if k <= 256 else np.int32)


def repaired(labels, scores, diag, rule, movable):
    """Return labels whose sizes keep to the rule, changed where the scores lose least by it.

    ``scores`` is U = (R E)^T, k x n, and is modified.
    """
    # Its own row of R holds a point where it is; leaving makes that fall away.
    scores[labels, np.arange(labels.size)] -= diag
    return fit_sizes(labels, scores, rule.lower, rule.upper, movable)


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


def fit_labels(factor, labels, k):
    """Return the model that fits the labels, and its mean squared leave-one-out error."""
    diag, d = factor.diagonal(), factor.X.shape[1]
    if isinstance(factor, LowRankFactor):
        W = factor.cluster_sums(labels, k)
        coef = factor.projection @ (2.0 * W - W.sum(axis=0)).T
        model = KernelModel(factor.kernel, factor.basis, coef, d, indices=factor.indices)
        blocks = factor.score_blocks(W)
        total = sum(
            _squared_errors(*_codes_and_predictions(U, labels[rows]), diag[rows])
            for rows, U in blocks
        )
    else:
        U = np.empty((k, factor.n))
        claims.build_sums(factor.R, compact(labels, k), U)
        P, predictions = _codes_and_predictions(U, labels)
        model = KernelModel(factor.kernel, factor.X, (P - predictions) / factor.lam, d)
        total = _squared_errors(P, predictions, diag)
    return model, total / (k * factor.n)


def _codes_and_predictions(U, labels):
    """Return P = 2E - 1 and R P of some points, from their columns of U = (R E)^T."""
    P = np.where(labels[:, None] == np.arange(len(U)), 1.0, -1.0)
    return P, 2.0 * U.T - U.sum(axis=0)[:, None]


def _squared_errors(P, predictions, diag):
    """Return the sum of the squared leave-one-out errors of some points."""
    return float(np.sum(leave_one_out_residuals(P, predictions, diag) ** 2))


def best_result(factor, make_search, n_init, control, k, params, bound=None):
    """Run the restarts on one hat matrix and return the best as a result.

    ``make_search`` is that of :func:`run_restarts`; a finished search also has labels, status,
    n_iter, n_moves, history and trace. ``bound`` takes the sizes found and returns a lower bound.
    """
    best, best_init, objectives, status = best_of_restarts(make_search, n_init, control)
    model, loo_mse = fit_labels(factor, best.labels, k)
    status = rate_figures(status, loo_mse=loo_mse)
    _warn_if_unpredictable(factor, k, loo_mse)
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
        objectives=objectives,
        best_init=best_init,
        params=params | factor_params(factor) | {"n_init": n_init},
        model=model,
        loo_mse=loo_mse,
        bound=None if bound is None else bound(sizes),
    )


def _warn_if_unpredictable(factor, k, loo_mse):
    """Say aloud that the labels say nothing of the points: the kernel tells all points apart."""
    is_nothing = abs(loo_mse - 1.0) <= NOTHING
    is_worse = loo_mse >= 1.0 and factor.n >= LEAST_JUDGED
    if k == 1 or factor.n == 1 or not (is_nothing or is_worse):
        return
    if count_distinct(factor.X, k) < k:
        return  # which was told already
    kernel, width = factor.kernel, ""
    if kernel.name in ("rbf", "laplacian"):
        width = f"sigma={kernel.sigma:.3g} may be too small (try sigma=None and gamma=None), or "
    warn_user(
        f"no point tells the cluster of another: the leave-one-out error is {loo_mse:.3g}, and a "
        f"model without any points has 1; {width}lam={factor.lam:g} too "
        f"{'large' if is_nothing else 'small'}"
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
