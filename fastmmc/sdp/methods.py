"""MMC and GMMC: relax the labels to a matrix, solve a semidefinite program, round."""

from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
from scipy.sparse import issparse

from fastmmc.core import memory, validation
from fastmmc.core.declare import Parameters, function_of, own_values, parameter, values
from fastmmc.core.execution import RunControl, show_progress, warn_if_stopped, warn_of_equal_points
from fastmmc.core.parameters import (
    WIDTH,
    BinarySizeParameters,
    KernelParameters,
    Points,
    check_verbose,
    kernel_of,
)
from fastmmc.core.results import SDPResult
from fastmmc.core.status import Status
from fastmmc.data.sizes import (
    binary_balance,
    binary_bounds,
    binary_size_bounds,
    check_targets,
    split_by_rank,
)
from fastmmc.kernels.gram import Kernel, resolve_kernel
from fastmmc.sdp.machine import centre, make_model, train_hard, train_soft
from fastmmc.sdp.relaxation import import_cvxpy, mean_diagonal, relax_gmmc, relax_mmc
from fastmmc.sdp.rounding import MOST_DIRECTIONS, distinct, leading_vectors, sweep

# More points than this are refused without force=True.
MOST_POINTS = 150

# A kernel may have negative eigenvalues up to this share of the largest one: rounding.
DEFINITE_TOLERANCE = 1e-6

# Between these a kernel and the weight that stands beside it are both seen in double precision.
LEAST_SHARE, MOST_SHARE = 1e-12, 1e14


class _Program(KernelParameters, before="kernel"):
    """The semidefinite program, and its kernel."""

    solver: Literal["SCS", "Clarabel"] = parameter(
        default="SCS",
        doc="""
        Solver of the semidefinite program. SCS is a first-order method with a relative accuracy of
        about 1e-5; Clarabel, an interior-point method, is more exact and grows like n^7 with
        :func:`sdp_mmc` (2 seconds for 40 points, and a minute for 60) and like n^5 with
        :func:`gmmc` (a second for 40, most of a minute for 80). With a linear or polynomial kernel
        SCS may not get there: for 30 points it stopped after half a minute, Clarabel took .5 s.
        """,
    )
    force: bool = parameter(default=False, doc="Go on with more than 150 points.")
    sigma: float | None = parameter(
        default=None,
        doc=WIDTH + "the median distance, ``fastmmc.kernels.gram.median_width(X)``.",
    )


class _SolverRun(Parameters):
    max_time: float | None = parameter(
        default=None,
        above=0,
        doc="""
        Seconds for the whole call, as far as the solver keeps to it: SCS does, Clarabel looks at
        the clock after each of its iterations. What it has by then is rounded. Ctrl-C stops SCS
        as well; Clarabel does not heed it and runs to its end: set max_time.
        """,
    )
    verbose: int = parameter(
        default=0,
        check=check_verbose,
        doc="""
        1 shows a progress bar (needs the extra ``progress``), which cannot look into the solver.
        """,
    )


class SDPMMCParameters(_SolverRun, BinarySizeParameters, _Program, before="solver"):
    """What the function and the estimator have in common."""

    C: float = parameter(default=1.0, above=0, doc="Weight of the loss, > 0.")
    center_kernel: bool = parameter(
        default=True,
        doc="""
        Move the mean of the points to the origin of the feature space, through which the border
        goes, as there is no bias.
        """,
    )


class GMMCParameters(_SolverRun, _Program, before="solver"):
    """What the function and the estimator have in common."""

    C_delta: float = parameter(
        default=100.0, above=0, doc="Cost of a point in the middle of the margin, > 0."
    )
    C_e: float = parameter(
        default=10.0,
        above=0,
        doc="""
        Cost of scores that do not balance, > 0. One cluster of all points has the objective
        C_e n^2, which the bound cannot exceed: keep C_e n^2 well above the objective.
        """,
    )
    ridge: float = parameter(
        default=1e-3,
        above=0,
        doc="""
        Added to the diagonal of the Gram matrix, as a share of the mean diagonal of the centred
        Gram matrix, which does not depend on the origin: makes it invertible, and softens the
        margin by a squared loss. > 0.
        """,
    )
    rounding: Literal["dual", "leading", "eigenvector"] = parameter(
        default="dual",
        doc="""
        Labels from the solution. "dual": of all sign patterns in the planes of the two or three
        leading eigenvectors of W that of the lowest objective. "leading": signs of the leading
        eigenvector of W. "eigenvector", as published: signs of the eigenvector of P - diag(gamma)
        to its least eigenvalue, which is arbitrary where that is a multiple one, as it often is.
        """,
    )


class _SDPMMCCall(SDPMMCParameters, Points):
    """A call of :func:`sdp_mmc`."""


class _GMMCCall(GMMCParameters, Points):
    """A call of :func:`gmmc`."""


class Cost(NamedTuple):
    """Seconds and bytes that a run took with ``n`` points, and the powers of n they grow with."""

    n: int
    seconds: float
    power: float
    bytes: float
    memory_power: float


# On digits with the defaults of both methods, one thread.
COSTS = {
    ("sdp-mmc", "SCS"): Cost(100, 3.2, 4.0, 3e7, 2.0),
    ("sdp-mmc", "Clarabel"): Cost(40, 2.2, 7.0, 1.2e8, 5.0),
    ("gmmc", "SCS"): Cost(100, 1.8, 4.5, 1.1e8, 3.0),
    ("gmmc", "Clarabel"): Cost(80, 43.0, 5.0, 6.5e8, 3.7),
}


def check_cost(method, n, solver, force):
    """Refuse more points than a solver manages in reasonable time, and say what they would cost.

    ``force`` goes ahead with more than MOST_POINTS, but not with what memory has no room for.
    """
    validation.check_two_points(n)
    cost = COSTS[method, solver]
    share = n / cost.n
    seconds, size = cost.seconds * share**cost.power, cost.bytes * share**cost.memory_power
    if n > MOST_POINTS and not force:
        raise ValueError(
            f"{method} of n = {n} points would take about {_duration(seconds)} and "
            f"{size / 2**30:.2g} GiB with {solver}, growing like n^{cost.power:g}; give at most "
            f"{MOST_POINTS} points, force=True to go ahead, or use iter_svr"
        )
    what = f"{method} of n = {n} points with {solver} needs about"
    memory.refuse_beyond_free(size, what, "give fewer points, or use iter_svr")


def _duration(seconds):
    """Return a time in words that one can picture."""
    for unit, length in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2.0 * length:
            return f"{seconds / length:,.0f} {unit}"
    return f"{seconds:.0f} seconds"


class _Data(NamedTuple):
    """The points of a call less their ``mean``, if any, and their Gram matrix, not centred."""

    points: np.ndarray
    mean: np.ndarray | None
    kernel: Kernel
    K: np.ndarray


def _check_data(method, call, is_centred):
    """Check the points and make their Gram matrix, which is to be centred or not."""
    kernel = kernel_of(call)
    points = validation.check_points(call.X, kernel, sparse=True)
    check_cost(method, points.shape[0], call.solver, call.force)
    points = points.toarray() if issparse(points) else points
    import_cvxpy()
    warn_of_equal_points(points, 2)
    kernel = resolve_kernel(kernel, points)
    mean = None
    if is_centred and kernel.name == "linear":
        # Beside a far mean or a constant no digits are left of what centring keeps.
        with np.errstate(over="ignore", invalid="ignore"):
            mean = points.mean(axis=0, dtype=np.float64)
            points = points - mean
        kernel = replace(kernel, coef0=0.0)
    K = kernel.block(points, points).astype(np.float64, copy=False)
    values, vectors = np.linalg.eigh(0.5 * (K + K.T))
    if values[0] < -DEFINITE_TOLERANCE * max(values[-1], 0.0):
        raise ValueError(
            f"kernel={kernel.name!r} must be positive semidefinite on X; its eigenvalues reach "
            f"from {values[0]:.3g} to {values[-1]:.3g}"
        )
    K = (vectors * np.maximum(values, 0.0)) @ vectors.T  # without what is only rounding
    return _Data(points, mean, kernel, 0.5 * (K + K.T))


def _check_scale(level, unit, names):
    """Refuse a kernel beside which a weight is lost in rounding, or the other way round."""
    share = level / unit
    if level > 0 and not LEAST_SHARE <= share <= MOST_SHARE:
        raise ValueError(
            f"the mean squared norm of the points, {level:.3g}, times {names} must be between "
            f"{LEAST_SHARE:g} and {MOST_SHARE:g}; got {share:.3g}; scale the points"
        )


def _size_limits(n, balance, target_sizes, min_size, max_size):
    """Return the least and the greatest |e^T y| of the size rule, as real numbers."""
    if target_sizes is None:
        slack, offset = max(balance * n, n % 2), 0.0
    else:
        slack, offset = balance * n, abs(n - 2.0 * check_targets(n, 2, target_sizes)[1])
    most = n if max_size is None else 2.0 * max_size - n
    return max(0.0, offset - slack), min(offset + slack, n - 2.0 * min_size, most)


def _best_of(labellings, train, may_swap, control):
    """Return the labels of the lowest value, and their machine, of as many as there is time for.

    Where the clusters may be exchanged, the first point is in cluster 0, whose label is -1.
    """
    trained = []
    for y in distinct(labellings):
        trained.append((y, train(y)))
        if control.out_of_time():
            break
    y, machine = min(trained, key=lambda pair: pair[1].value)
    return (-y, machine._replace(u=-machine.u)) if may_swap and y[0] > 0 else (y, machine)


def _make_result(
    data, y, machine, constant, relaxation, n_moves, params, control, size_bounds=None
):
    """Gather what was found."""
    labels, status = (y > 0).astype(np.int64), relaxation.status
    if status == Status.CONVERGED and not machine.ended:
        status = Status.NUMERICAL
    # Where the relaxation is exact only rounding is between them.
    bound = None if relaxation.bound is None else min(relaxation.bound, machine.value)
    result = SDPResult(
        labels=labels,
        objective=machine.value,
        status=status,
        n_iter=relaxation.n_iter,
        n_moves=n_moves,
        sizes=np.bincount(labels, minlength=2),
        history=np.array([machine.value]),
        trace={"moves": np.array([n_moves])},
        objectives=np.array([machine.value]),
        best_init=0,
        params=params | data.kernel.params(),
        model=make_model(machine, data, constant),
        bound=bound,
        matrix=relaxation.matrix,
        solver_status=relaxation.solver_status,
        size_bounds=size_bounds,
    )
    control.report(fraction=1.0, n_done=1, n_init=1, objective=machine.value)
    warn_if_stopped(result.status, 1, 1)
    return result


def _or_kernel(relaxation, K):
    """Return the matrix to round: without one from a solver, the centred Gram matrix."""
    return centre(K) if relaxation.matrix is None else relaxation.matrix


@function_of(_SDPMMCCall)
def sdp_mmc(call: _SDPMMCCall, control: RunControl) -> SDPResult:
    """Cluster in two by maximum margin clustering, relaxed to a semidefinite program (MMC).

    The method looks for labels y of -1 and +1 under which a support vector machine without a bias
    has the least

        |w|^2 + 2 C sum_i max(0, 1 - y_i w . phi(x_i)),   |e^T y| <= l = balance n.

    The matrix y y^T in the machine's dual is replaced by any M that is positive semidefinite with
    diag(M) = e and -l e <= M e <= l e. That makes a semidefinite program, whose value no labelling
    of allowed sizes is below; the labels are the signs of the leading eigenvector of its M.
    A baseline: it takes seconds for 100 points.

    Returns
    -------
    SDPResult
        ``labels`` (0 and 1), ``objective`` (that of the labels, above), ``bound`` (the program's
        value), ``matrix`` (M). ``n_iter`` counts the solver's iterations, ``n_moves`` labels that
        the size rule changed. It predicts by the machine of the labels.

    Raises
    ------
    ImportError
        If cvxpy is not installed: ``python -m pip install cvxpy scs``.
    ValueError, TypeError
        If a parameter is out of range, X is not a finite matrix, there are more than 150 points
        without ``force``, the kernel is not positive semidefinite, or C times the mean squared
        norm of the points (of :func:`gmmc`, C_e n^2 times that of the centred points) is beyond
        what the solvers can resolve.
    MemoryError
        If the program does not fit into free memory.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If the solver was stopped or did not reach its accuracy. If it gave no matrix at all, the
        leading eigenvector of the centred Gram matrix is rounded instead (status NUMERICAL or
        INTERRUPTED, ``bound`` None).
    UserWarning
        If columns of X seem to have different units.

    Notes
    -----
    The program has n^2 / 2 variables; a step of SCS is an eigendecomposition, O(n^3). ``bound`` is
    computed from the multipliers, so that it holds however exactly the solver worked.

    References
    ----------
    L. Xu, J. Neufeld, B. Larson, D. Schuurmans, Maximum margin clustering, NIPS 2004; as in
    K. Zhang, I. W. Tsang, J. T. Kwok, Maximum margin clustering made practical, ICML 2007,
    equation (5).

    Examples
    --------
    >>> import fastmmc
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> res = fastmmc.sdp_mmc(X)
    >>> res.labels, res.bound <= res.objective
    (array([0, 0, 0, 1, 1, 1]), True)
    """
    data = _check_data("sdp-mmc", call, call.center_kernel)
    balance = binary_balance(call.balance, call.target_sizes)
    sizes = values(call, BinarySizeParameters) | {"balance": balance}
    n = len(data.K)
    lower, upper = binary_bounds(n, **sizes)
    least, largest = _size_limits(n, **sizes)
    K = centre(data.K) if call.center_kernel else data.K
    _check_scale(mean_diagonal(K), 1.0 / call.C, "C")
    params = own_values(call, SDPMMCParameters, _Program) | sizes
    with show_progress(control, "program") as control:
        control.report(fraction=0.0, n_done=0, n_init=1, objective=np.inf)
        relaxation = relax_mmc(K, call.C, least, largest, call.solver, control)
        v = leading_vectors(_or_kernel(relaxation, data.K))[:, 0]
        labellings = [split_by_rank(scores, lower, upper) for scores in (v, -v)]
        y, machine = _best_of(
            labellings, lambda y: train_soft(K, y, call.C), lower + upper == n, control
        )
        n_changed = int(np.sum((v >= 0) != (y > 0)))
        n_moves = min(n_changed, n - n_changed)
        constant = 0.0 if call.center_kernel else None
        bounds = binary_size_bounds(n, lower, upper)
        return _make_result(
            data, y, machine, constant, relaxation, n_moves, params, control, bounds
        )


@function_of(_GMMCCall, like=sdp_mmc)
def gmmc(call: _GMMCCall, control: RunControl) -> SDPResult:
    """Cluster in two by generalized maximum margin clustering, a semidefinite program (GMMC).

    The method looks for scores z_i = w . phi(x_i) + b outside the margin, on whichever side,

        min |w|^2 + C_e (e^T z)^2 + C_delta sum_i delta_i^2,   z_i^2 + delta_i^2 >= 1,

    whose signs are the labels; C_e keeps them from being all the same. The Lagrangian dual is a
    semidefinite program of n variables,

        max sum_i gamma_i,   P - diag(gamma) positive semidefinite,   0 <= gamma_i <= C_delta,

    where z^T P z is |w|^2 + C_e (e^T z)^2 at the best bias; the multiplier W of its constraint
    stands for z z^T. A baseline: it takes seconds for 100 points.

    Returns
    -------
    SDPResult
        ``labels`` (0 and 1), ``objective`` (|w|^2 + C_e (e^T z)^2 with y_i z_i >= 1: the hard
        margin of the labels on the kernel with its ridge), ``bound`` (the program's value),
        ``matrix`` (W). ``n_iter`` counts the solver's iterations. It predicts by the machine of
        the labels, which may disagree with labels that only the ridge allows for.

    Notes
    -----
    There is no size rule but C_e; both clusters have a point at least. Eliminating the bias gives
    P^-1 = H (K + r I) H + e e^T / (C_e n^2) with H = I - e e^T / n and
    r = ridge trace(H K H) / n: a support vector machine without a bias on centred features and a
    constant one. ``bound`` is computed from gamma, so that it holds however exactly the solver
    worked.

    References
    ----------
    H. Valizadegan, R. Jin, Generalized maximum margin clustering and unsupervised kernel learning,
    NIPS 2006.

    Examples
    --------
    >>> import fastmmc
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> res = fastmmc.gmmc(X)
    >>> res.labels, res.bound <= res.objective
    (array([0, 0, 0, 1, 1, 1]), True)
    """
    data = _check_data("gmmc", call, True)
    n = len(data.K)
    constant = 1.0 / (call.C_e * n**2)
    _check_scale(mean_diagonal(centre(data.K)), constant, "C_e n^2")
    K = penalised_kernel(data.K, call.ridge, constant)
    _check_condition(K, call.ridge, call.C_e)
    params = own_values(call, GMMCParameters, _Program)
    with show_progress(control, "program") as control:
        control.report(fraction=0.0, n_done=0, n_init=1, objective=np.inf)
        relaxation = relax_gmmc(K, call.C_delta, call.solver, control)
        scores = _scores(K, data.K, relaxation, call.rounding)
        labellings = [split_by_rank(v, 1, n - 1) for v in scores]
        y, machine = _best_of(labellings, lambda y: train_hard(K, y), True, control)
        return _make_result(data, y, machine, constant, relaxation, 0, params, control)


def _check_condition(K, ridge, C_e):
    """Refuse penalties so far apart that the kernel matrix is singular in double precision."""
    w = np.linalg.eigvalsh(K)
    if not w[0] > len(K) * np.finfo(np.float64).eps * w[-1]:
        raise ValueError(
            f"ridge={ridge:g} and C_e={C_e:g} make a kernel matrix that is singular in double "
            f"precision (eigenvalues from {w[0]:.3g} to {w[-1]:.3g}); bring ridge nearer to 1e-3 "
            "and C_e to 10"
        )


def penalised_kernel(K, ridge, constant):
    """Return H (K + r I) H + constant, by which a machine without a bias has a penalised one on K.

    r is ``ridge`` times the mean diagonal of H K H, and ``constant`` is 1 / (C_e n^2); the kernel
    is positive definite.
    """
    n = K.shape[0]
    centred = centre(K)
    level = mean_diagonal(centred) or 1.0
    return centred + ridge * level * (np.eye(n) - 1.0 / n) + constant


def _scores(K, plain, relaxation, rounding):
    """Return the scores whose signs may be labels."""
    if relaxation.matrix is not None and rounding == "eigenvector":
        slack = np.linalg.inv(K) - np.diag(relaxation.multipliers)
        return [np.linalg.eigh(slack)[1][:, 0]]
    most = MOST_DIRECTIONS if rounding == "dual" else 1
    return sweep(leading_vectors(_or_kernel(relaxation, plain), most))
