"""The semidefinite relaxations, solved through cvxpy, and bounds that hold in any case.

Lagrange multipliers that a solver returns are feasible only to its tolerance, and less so if it was
stopped. Both bounds are therefore computed anew from multipliers moved until they are feasible.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigvalsh

from fastmmc.core.status import Status
from fastmmc.core.threads import import_whole
from fastmmc.core.words import not_installed

# The option by which a solver takes a time limit.
SOLVERS = {"SCS": "time_limit_secs", "Clarabel": "time_limit"}

# Of the direct solvers that SCS chooses from, its own starts ten times faster than MKL here.
OPTIONS = {"SCS": {"use_indirect": False}, "Clarabel": {}}

# SCS takes an interrupt for itself and reports it by this code.
SCS_INTERRUPTED = -5


class Relaxation(NamedTuple):
    """What a solver found; matrix, multipliers and bound are None if that is of no use.

    ``matrix`` (n, n) stands for y y^T or z z^T, ``multipliers`` (n,) are lambda of
    :func:`relax_mmc` or gamma of :func:`relax_gmmc`, and ``bound`` is not above the optimum of the
    relaxation. ``solver_status`` is ``status`` in cvxpy's words.
    """

    matrix: np.ndarray | None
    multipliers: np.ndarray | None
    bound: float | None
    status: Status
    solver_status: str
    n_iter: int


def mean_diagonal(K):
    """Return trace(K) / n, the mean squared norm of the points."""
    return float(np.mean(np.diagonal(K)))


def import_cvxpy():
    """Import cvxpy, or say how to install it."""
    try:
        return import_whole("cvxpy")
    except ImportError as error:
        raise not_installed("semidefinite programs need cvxpy", "cvxpy scs") from error


def relax_mmc(K, C, least, largest, solver, control):
    """Solve the relaxation of maximum margin clustering.

    min delta over M, mu >= 0, nu >= 0 where diag(M) = e, M is positive semidefinite and so is

        [ M o K              e + mu - nu           ]
        [ (e + mu - nu)^T    delta - 2 C nu^T e    ]

    with -l e <= M e <= l e, l being ``largest``, and e^T M e >= s^2 if no allowed labelling has
    |e^T y| below s, which is ``least``.
    """
    cp = import_cvxpy()
    n = K.shape[0]
    # In units in which a point's mean squared norm is 1, solvers need fewer iterations.
    scale = mean_diagonal(K) or 1.0
    K, C = K / scale, C * scale
    M = cp.Variable((n, n), symmetric=True)
    delta = cp.Variable()
    mu, nu = cp.Variable(n, nonneg=True), cp.Variable(n, nonneg=True)
    edge = cp.reshape(1.0 + mu - nu, (n, 1), order="C")
    corner = cp.reshape(delta - 2.0 * C * cp.sum(nu), (1, 1), order="C")
    margin = cp.bmat([[cp.multiply(M, K), edge], [edge.T, corner]]) >> 0
    rows = cp.sum(M, axis=1)
    unit, above, below = cp.diag(M) == 1.0, rows <= largest, -rows <= largest
    constraints = [margin, M >> 0, unit, above, below]
    if least > 0:
        constraints.append(-cp.sum(M) <= -(least**2))
    outcome = _solve(cp.Problem(cp.Minimize(delta), constraints), solver, control)
    matrix = _finite(M.value)
    if matrix is None or margin.dual_value is None:
        return Relaxation(None, None, None, *outcome)
    lam = np.clip(-margin.dual_value[:n, n], 0.0, C)
    spread = constraints[5].dual_value if least > 0 else 0.0
    p, q = (np.maximum(side.dual_value, 0.0) for side in (above, below))
    r = max(float(spread), 0.0)
    bound = _mmc_bound(K, lam, unit.dual_value, p, q, r, least, largest)
    return Relaxation(matrix, lam / scale, bound / scale, *outcome)


def _mmc_bound(K, lam, t, p, q, r, least, largest):
    """Return a bound from multipliers that need not be feasible.

    For every M the inner maximum is at least 2 e^T lambda - <M, Q> with Q = K o lambda lambda^T,
    and <M, Q> = t^T e + (p - q)^T M e - r e^T M e - <M, S>; <M, S> is at least n times the least
    eigenvalue of S.
    """
    tilt = 0.5 * (p - q)
    S = np.diag(t) + tilt + tilt[:, None] - r - K * np.outer(lam, lam)
    slack = t.size * eigvalsh(S, subset_by_index=(0, 0))[0]
    gain = 2.0 * lam.sum()
    return float(gain - t.sum() - largest * (p + q).sum() + r * least**2 + slack)


def relax_gmmc(K, C_delta, solver, control):
    """Solve the relaxation of generalized maximum margin clustering, with a positive definite K.

    max sum_i gamma_i over 0 <= gamma <= C_delta where K^-1 - diag(gamma) is positive semidefinite.
    With K = L L^T that is I - L^T diag(gamma) L, whose entries do not grow as K comes near to
    singular. The constant of K is the bias: with H K H + 1 / (C_e n^2) this is the Schur complement
    of the program over the margins and the bias. ``matrix`` is the multiplier of the constraint.
    """
    cp = import_cvxpy()
    n = K.shape[0]
    values, vectors = np.linalg.eigh(K)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    # In units in which a point's mean squared norm is 1, solvers need fewer iterations.
    scale = 1.0 / mean_diagonal(K)
    gamma = cp.Variable(n, nonneg=True)
    # One column a point: cvxpy takes twice as long over the product of three matrices.
    products = scale * (root[:, :, None] * root[:, None, :]).reshape(n, n * n).T
    margin = np.eye(n) - cp.reshape(products @ gamma, (n, n), order="C") >> 0
    problem = cp.Problem(cp.Maximize(cp.sum(gamma)), [margin, gamma <= C_delta / scale])
    outcome = _solve(problem, solver, control)
    found, inner = _finite(gamma.value), _finite(margin.dual_value)
    if found is None or inner is None:
        return Relaxation(None, None, None, *outcome)
    found, bound = _gmmc_bound(K, scale * np.maximum(found, 0.0), C_delta)
    return Relaxation(scale * root @ inner @ root.T, found, bound, *outcome)


def _gmmc_bound(K, gamma, C_delta):
    """Return gamma scaled by the largest factor that keeps it feasible, and its sum."""
    gamma = np.minimum(gamma, C_delta)
    if not gamma.any():
        return gamma, 0.0
    root = np.sqrt(gamma)
    n = gamma.size
    largest = eigvalsh(K * np.outer(root, root), subset_by_index=(n - 1, n - 1))[0]
    gamma = gamma * min(1.0 / largest, C_delta / gamma.max())
    return gamma, float(gamma.sum())


def _finite(value):
    """Return the value of a variable, or None if it is missing or not finite."""
    return value if value is not None and np.isfinite(value).all() else None


def _solve(problem, solver, control):
    """Run a solver; return why it ended, the same in cvxpy's words, and its iterations."""
    cp = import_cvxpy()
    data, chain, inverse_data = problem.get_problem_data(
        solver.upper(), canon_backend="SCIPY", solver_opts={}
    )
    options = dict(OPTIONS[solver])
    if control.max_time is not None:
        options[SOLVERS[solver]] = control.inner_time()
    try:
        raw = chain.solve_via_data(problem, data, solver_opts=options)
        if solver == "SCS" and raw["info"]["status_val"] == SCS_INTERRUPTED:
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        return Status.INTERRUPTED, "interrupted", 0
    # As problem.unpack_results, which warns besides: the status tells what is inaccurate.
    solution = chain.invert(raw, inverse_data)
    if solution.status in cp.settings.ERROR:
        return Status.NUMERICAL, "solver_error", 0
    problem.unpack(solution)
    n_iter = int(solution.attr.get(cp.settings.NUM_ITERS) or 0)
    return _status_of(problem.status, solver, control), problem.status, n_iter


def _status_of(text, solver, control):
    """Turn cvxpy's status into ours."""
    if text == "optimal":
        return Status.CONVERGED
    if text not in ("optimal_inaccurate", "user_limit"):
        return Status.NUMERICAL
    if control.out_of_time():
        return Status.TIME_LIMIT
    # SCS is inaccurate where it is stopped, Clarabel where it cannot do better.
    return Status.MAX_ITER if solver == "SCS" or text == "user_limit" else Status.NUMERICAL
