"""What all RLS solvers share: the source of the hat matrix, the run, the model of the labels."""

import math
from dataclasses import dataclass, replace

import numpy as np
from sklearn.utils import gen_batches

from fastmmc.core import validation
from fastmmc.core.declare import declared, told
from fastmmc.core.execution import (
    OutOfTime,
    best_of_restarts,
    finish,
    rate_figures,
    warn_if_stopped,
    warn_user,
)
from fastmmc.core.parameters import (
    KernelParameters,
    LandmarkParameters,
    PrecisionParameters,
    Regularisation,
    kernel_of,
)
from fastmmc.core.results import RLSResult
from fastmmc.core.status import Status
from fastmmc.core.threads import in_threads
from fastmmc.data.sizes import MOST_SCORES
from fastmmc.kernels.block_factor import BlockFactor
from fastmmc.kernels.factors import DenseFactor, LowRankFactor, factor_path, make_factor, weights_of
from fastmmc.kernels.gram import BLOCK, Kernel, count_distinct, first_equals, resolve_kernel
from fastmmc.kernels.models import KernelModel
from fastmmc.kernels.nystroem import Form, check_form
from fastmmc.rls.engine.groups import sums_of
from fastmmc.rls.outliers import outlier_scores

# What a factor brings with it.
FACTOR_PARAMETERS = {
    one.name
    for group in (Regularisation, KernelParameters, LandmarkParameters, PrecisionParameters)
    for one in declared(group)
}

# Limits on the rank r of the hat matrix and on n r^2 where there is no time for a better one, and
# the seconds that it takes for each of n r^2.
QUICK_RANK = 100
QUICK_PRODUCTS = 10**9
QUICK_SECONDS = 4e-10

# A model that knows nothing predicts 0, so its leave-one-out error is 1. An error this near to 1
# counts as that, and so does a larger one of at least this many points.
NOTHING = 0.01
LEAST_JUDGED = 50


def quick_rank(n):
    """Return the rank of a hat matrix of n points that takes little time."""
    return max(1, min(n, QUICK_RANK, math.isqrt(QUICK_PRODUCTS // n)))


def quick_seconds(n):
    """Return about how long that hat matrix takes to make."""
    return QUICK_SECONDS * n * quick_rank(n) ** 2


@dataclass(frozen=True, eq=False)
class Source:
    """Where the hat matrix comes from."""

    points: np.ndarray
    kernel: Kernel
    lam: float
    form: Form
    factor: DenseFactor | LowRankFactor | None

    def factors(self, lams, width, seed, control):
        """Yield the factor for each lam, or that which was given, and the control.

        ``width(X, metric)`` is the default width. Where max_time is too short for the first factor,
        that has a low rank and the control says so; for others, a warning does.
        """
        if self.factor is not None:
            yield self.factor, control
            return
        kernel, n = resolve_kernel(self.kernel, self.points, width), self.points.shape[0]
        n_made = 0

        def look(share, ahead=0.0):
            control.prepare(share, ahead + quick_seconds(n))

        try:
            for factor in factor_path(self.points, lams, kernel, self.form, seed, look):
                yield factor, control
                n_made += 1
        except OutOfTime:
            if n_made:
                warn_user(
                    f"max_time={control.max_time:g} was too short for all lams: {n_made}"
                    f" of {len(lams)} results are returned"
                )
                return
            rank = quick_rank(n)
            shortage = (
                f". The time was too short for the hat matrix of {n} points; the search ran on one "
                f"of rank {rank}"
            )
            form = Form(rank, dtype=self.form.dtype, weights=self.form.weights)
            show = control.bar.prepare
            made = make_factor(self.points, lams[0], kernel, form, seed, lambda at, *_: show(at))
            yield made, replace(control, shortage=shortage)


def check_source(call, lam=None):
    """Check X and what the hat matrix is made with; ``lam`` stands in where the call has none.

    A factor in place of X brings its own lam, kernel and rank, so none of these may be given.
    """
    if isinstance(call.X, DenseFactor | LowRankFactor):
        refuse_beside_factor(call)
        return Source(call.X.X, call.X.kernel, call.X.lam, Form(), call.X)
    if isinstance(call.X, BlockFactor):
        raise TypeError(
            "X is a factor of points in blocks, which only umc_rls and fast_evo_mmc take"
        )
    kernel = kernel_of(call)
    points = validation.check_points(call.X, kernel, sparse=True)
    names = "rank", "landmarks", "rank_tol", "dtype"
    form = {name: getattr(call, name, getattr(Form, name)) for name in names}
    form = check_form(points, kernel, **form)
    return Source(points, kernel, call.lam if lam is None else lam, form, None)


def refuse_beside_factor(call):
    """Raise ValueError if parameters of the hat matrix are given beside a factor."""
    X = call.X
    rank = None if isinstance(X, DenseFactor) else len(X.projection)
    own = {"lam": X.lam, "rank": rank} | X.kernel.params()
    extra = [
        name
        for name in told(call, type(call))
        if name in FACTOR_PARAMETERS and not (name in own and getattr(call, name) == own[name])
    ]
    if extra:
        raise ValueError(
            f"{', '.join(extra)}: X is a factor, which was made with lam={X.lam} and "
            f"kernel={X.kernel.name!r}; give these to fastmmc.factor instead"
        )


def fit_model(factor, labels, k):
    """Return the model that fits the labels, and what it misses of the codes of some points.

    The latter is a function of a slice of the points, which returns P - R P of these, (k, m)
    float64, a fresh array. P = 2E - 1 are the codes; of points with weights it is P - S^-1 R S P.
    """
    weights, roots = weights_of(factor)
    if isinstance(factor, LowRankFactor):
        basis, indices = factor.basis, factor.indices
        W = factor._cluster_sums(labels, k)
        coef = factor.projection @ (2.0 * W - W.sum(axis=0)).T
        rounded = W.astype(factor.Z.dtype)  # Z is no more exact

        def missed_of(rows):
            return _missed(rounded @ factor.Z[rows].T, labels[rows], roots[rows])

    else:
        basis, indices = factor.X, None
        if factor.kernel.name != "precomputed":
            basis = basis.copy()  # kept, whatever becomes of what was given
        if factor.weights is None:
            U = sums_of(factor.R, labels, k)
        else:
            U = ((labels == np.arange(k)[:, None]) * roots) @ factor.R
        missed = _missed(U, labels, roots)
        coef = np.ascontiguousarray((weights * missed / factor.lam).T)

        def missed_of(rows):
            return missed[:, rows].copy()

    model = KernelModel(factor.kernel, basis, coef, factor.X.shape[1], indices=indices)
    return model, missed_of


def fit_labels(factor, labels, k):
    """Return the model that fits the labels, its leave-one-out scores and their mean error.

    A point that is left out takes all equal ones with it. The scores, (n, k) float64 as in
    :class:`RLSResult`, are None if there are too many.
    """
    model, missed_of = fit_model(factor, labels, k)
    residuals_of, (weights, _) = _left_out(factor, labels, k), weights_of(factor)
    scores = None if factor.n * k > MOST_SCORES else np.full((factor.n, k), -1.0)

    def judge(rows):
        residuals = residuals_of(missed_of(rows), rows)
        if scores is not None:
            some = scores[rows]
            some[np.arange(len(some)), labels[rows]] = 1.0
            some -= residuals.T
        return float(np.einsum("hj,hj->j", residuals, residuals) @ weights[rows])

    rank = factor.rank if isinstance(factor, LowRankFactor) else 1
    total = sum(in_threads(factor.n * k * rank, judge, gen_batches(factor.n, BLOCK)))
    return model, scores, total / (k * float(weights.sum()))


def _missed(U, labels, roots):
    """Return P - R P of some points, (k, m) float64, from their columns of U = (R E)^T.

    Of points with weights U is (R S E)^T and these are predicted by S^-1 R S P.
    """
    missed = np.multiply(U, -2.0, dtype=np.float64)
    missed += np.sum(U, axis=0, dtype=np.float64)
    missed /= roots
    missed -= 1.0
    missed[labels, np.arange(labels.size)] += 2.0
    return missed


def _left_out(factor, labels, k):
    """Return a function that turns P - R P of a slice of points, in place, into their residuals.

    These are P minus what the points that differ predict.
    """
    diag, equals, mixed = factor.diagonal(), first_equals(factor.X), np.empty(0, dtype=np.intp)
    together = diag  # R_jj summed over all points equal to each
    if equals is not None:
        together = np.bincount(equals, diag)[equals]
        # Points that have an equal one of another label, and R_jj summed over those of each label.
        mixed = np.flatnonzero(np.isin(equals, equals[labels != labels[equals]]))
        members = np.unique(equals[mixed], return_inverse=True)[1]
        n_sums = (members.max(initial=-1) + 1) * k
        sums = np.bincount(members * k + labels[mixed], diag[mixed], n_sums)
        shares = sums.reshape(-1, k)[members].T

    def residuals_of(missed, rows):
        first, last = np.searchsorted(mixed, (rows.start, rows.stop))
        some = mixed[first:last]
        if some.size:
            codes = np.where(labels[some] == np.arange(k)[:, None], 1.0, -1.0)
            # Each point predicts itself and equal ones by R_jj times its label.
            missed[:, some - rows.start] += (
                2.0 * shares[:, first:last] - together[some] - together[some] * codes
            )
        # 1 - R_jj is at least lam / (K_jj + lam), which is well above rounding.
        missed /= 1.0 - together[rows]
        return missed

    return residuals_of


def best_result(factor, make_search, n_init, control, k, params, bound=None, **fields):
    """Run the restarts on one hat matrix and return the best as a result.

    ``make_search`` is as for :func:`run_restarts`; a finished search also has labels, status,
    n_iter, n_moves, history and trace. ``bound`` maps sizes to a lower bound; ``fields``
    go into the result as they are. Warns where the kernel is of no use.
    """
    outcome = best_of_restarts(make_search, n_init, control)
    result = rated_result(factor, outcome, k, params, bound, **fields)
    _warn_if_unpredictable(factor, k, result.loo_mse)
    return result


def rated_result(factor, outcome, k, params, bound=None, **fields):
    """Return the result of an outcome, with the model of its labels and what that tells of them."""
    labels, status, weights = outcome.best.labels, outcome.status, factor.weights
    sizes = np.bincount(labels, minlength=k)

    def judge():
        fit = fit_labels(factor, labels, k)
        least = None if bound is None else bound(np.bincount(labels, weights, k))
        return *fit, least, outlier_scores(factor)

    (model, scores, loo_mse, least, outliers), interrupted = finish(judge)
    if interrupted and status == Status.CONVERGED:
        status = Status.INTERRUPTED
        warn_if_stopped(status, outcome.n_init, outcome.n_init)
    status = rate_figures(status, loo_mse=loo_mse)
    rank = len(factor.projection) if isinstance(factor, LowRankFactor) else None
    return outcome.result(
        RLSResult,
        params | {"lam": factor.lam, "rank": rank} | factor.kernel.params(),
        status=status,
        sizes=sizes,
        model=model,
        loo_mse=loo_mse,
        loo_scores=scores,
        outlier_scores=outliers,
        sample_weight=weights,
        bound=least,
        **fields,
    )


def _warn_if_unpredictable(factor, k, loo_mse):
    """Warn if the labels cannot be predicted, as where the kernel makes all points dissimilar."""
    is_nothing = abs(loo_mse - 1.0) <= NOTHING
    is_worse = loo_mse >= 1.0 and factor.n >= LEAST_JUDGED
    if k == 1 or factor.n == 1 or not (is_nothing or is_worse):
        return
    if count_distinct(factor.X, k) < k:
        return  # there was a warning already
    kernel, width = factor.kernel, ""
    if kernel.name in ("rbf", "laplacian"):
        width = f"sigma={kernel.sigma:.3g} may be too small (try sigma=None and gamma=None), or "
    warn_user(
        f"no point tells the cluster of another: the leave-one-out error is {loo_mse:.3g}, and a "
        f"model without any points has 1; {width}lam={factor.lam:g} too "
        f"{'large' if is_nothing else 'small'}"
    )
