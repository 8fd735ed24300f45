"""The functions of evolution for two clusters: EvoMMC and FastEvoMMC."""

from dataclasses import replace
from typing import Literal

from numpy.typing import ArrayLike

from fastmmc.core import validation
from fastmmc.core.declare import function_of, own_params, own_values, parameter, values
from fastmmc.core.execution import (
    RunControl,
    fixed_seed,
    restart_stream,
    show_progress,
    warn_of_equal_points,
)
from fastmmc.core.parameters import (
    WIDTH,
    BinarySizeParameters,
    KernelParameters,
    LandmarkParameters,
    PrecisionParameters,
    Rank,
    Regularisation,
    RunParameters,
    SizeParameters,
    Standardization,
)
from fastmmc.core.results import RLSResult
from fastmmc.data.labels import check_init
from fastmmc.data.sizes import binary_balance, binary_bounds, binary_size_bounds
from fastmmc.data.standardization import in_units
from fastmmc.evolution.search import EvolutionPlan, EvolutionSearch
from fastmmc.kernels.block_factor import comes_in_blocks
from fastmmc.kernels.gram import box_diagonal
from fastmmc.rls.blocked import search_in_blocks
from fastmmc.rls.other_sizes import warn_of_other_sizes
from fastmmc.rls.parameters import PointsOrFactor
from fastmmc.rls.source import best_result, check_source


class EvoMMCParameters(
    RunParameters,
    BinarySizeParameters,
    KernelParameters,
    Standardization,
    Regularisation,
    before="standardize",
):
    """What the function and the estimator have in common."""

    lam: float = parameter(
        default=0.5,
        doc="""
        Regularisation, > 0. The paper's lambda is lam / n: its grid 1/(2n), 1/(200n), 1/(1000n) is
        1/2, 1/200, 1/1000 here.
        """,
    )
    mu: int = parameter(
        default=10, least=1, most=validation.MOST_INDIVIDUALS, doc="Individuals, at least 1."
    )
    nu: int = parameter(
        default=10,
        least=1,
        most=validation.MOST_INDIVIDUALS,
        doc="Children a generation, at least 1.",
    )
    flips: int | None = parameter(
        default=None,
        doc="Labels that a mutation changes. None: max(1, n / (t + 1)) in generation t.",
    )
    init: Literal["random", "kmeans"] | ArrayLike = parameter(
        default="random",
        kind='{"random", "kmeans"} or (n,) array_like of int',
        doc="""
        Labels of the first individual: random within the size bounds, k-means with the sizes
        repaired, or given (0 and 1). The other individuals are random.
        """,
    )
    classify: bool = parameter(
        default=False,
        doc="""
        Before the first generation replace each individual by the signs of its leave-one-out
        predictions, with the least certain ones changed until the sizes are within bounds; repeat
        as long as that lowers F.
        """,
    )
    distinct: bool = parameter(
        default=False,
        doc="Refuse children that equal an individual, up to the exchange of the two clusters.",
    )
    polish: bool = parameter(
        default=True,
        doc="""
        After the last generation flip single labels and swap pairs of the best individual as long
        as that lowers F. Then no flip within the size bounds helps, and no swap among the 200 n
        most promising pairs (up to n = 800 these are all).
        """,
    )
    patience: int | None = parameter(
        default=None,
        least=1,
        doc="""
        Generations without progress after which a start ends. None: 10 n, or n for more than one
        child. It ends sooner if no mutation of one label can help any individual.
        """,
    )
    max_iter: int | None = parameter(
        default=None, least=0, doc="Generations of a start. None: 1000 n."
    )
    sigma: float | None = parameter(
        default=None,
        doc=WIDTH + "the diagonal of the box around X, ``fastmmc.kernels.gram.box_diagonal(X)``.",
    )
    n_init: int = parameter(default=10, doc="Starts; the one with the lowest F wins.")


class FastEvoMMCParameters(EvoMMCParameters, PrecisionParameters, LandmarkParameters):
    """What the function and the estimator have in common."""

    mu: int = parameter(default=1)
    nu: int = parameter(default=1)
    rank: Rank = parameter(default=0.1)


class _EvoMMCCall(EvoMMCParameters, PointsOrFactor):
    """A call of :func:`evo_mmc`."""


class _FastEvoMMCCall(FastEvoMMCParameters, _EvoMMCCall):
    """A call of :func:`fast_evo_mmc`."""


@function_of(_EvoMMCCall)
def evo_mmc(call: _EvoMMCCall, control: RunControl) -> RLSResult:
    """Cluster in two by evolutionary maximum margin clustering (EvoMMC).

    Looks for labels y of -1 and +1, of about equal numbers, under which kernel ridge
    classification fits best: with R the hat matrix K (K + lam I)^-1 it minimises

        F(y) = n - y^T R y

    by a (mu + nu) evolution strategy whose children flip a few labels of a parent. With t = R y at
    hand a child that flips the set S costs 4 y_S^T t_S - 4 y_S^T R_SS y_S, independent of n.

    Returns
    -------
    RLSResult
        ``labels`` (0 and 1), ``objective`` (F), ``loo_mse``, ``history`` and more. ``n_iter``
        counts generations, ``n_moves`` the children that survived and the moves of the polish.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range, lam below the accuracy of the kernel, or X not a finite
        matrix in memory: Dask arrays are for :func:`fast_evo_mmc`.
    MemoryError
        If the hat matrix does not fit into free memory.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If the run was stopped before its end, X has fewer distinct points than there are clusters,
        no point tells the cluster of another, or clusters of other sizes fit far better than those
        of the default sizes.
    UserWarning
        If columns of X seem to have different units.

    Notes
    -----
    O(n^3) for the hat matrix, O(mu n^2) for a start's first individuals, then O(s^2) a child that
    is refused and O(s n) one that is not.

    References
    ----------
    F. Gieseke, T. Pahikkala, O. Kramer, Fast evolutionary maximum margin clustering, ICML 2009,
    Algorithm 1.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.make_nine_gaussians(100, random_state=0)
    >>> res = fastmmc.evo_mmc(X, random_state=0)
    >>> abs(int(res.sizes[0]) - int(res.sizes[1])) <= 0.03 * len(X)
    True
    """
    call, units = in_units(call)
    return units.tell(own_params(_evolve(call, control), call))


@function_of(_FastEvoMMCCall, like=evo_mmc)
def fast_evo_mmc(call: _FastEvoMMCCall, control: RunControl) -> RLSResult:
    """Cluster in two by evolutionary MMC on the low-rank hat matrix (FastEvoMMC).

    :func:`evo_mmc` with R = Z Z^T of rank r and one parent and child: F(y) = n - |Z^T y|^2, and a
    child that flips s labels costs O(sr).

    Notes
    -----
    O(n r^2) for the factor, O(sr) a child, O(nr) memory.

    Points in blocks, which :func:`evo_mmc` does not take, are worked on as :func:`umc_rls` does,
    with a rank of 1,000 at most unless a number is given; the width is that of a sample.

    References
    ----------
    F. Gieseke, T. Pahikkala, O. Kramer, Fast evolutionary maximum margin clustering, ICML 2009,
    Algorithm 1 and Theorem 2.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.make_nine_gaussians(100, random_state=0)
    >>> fastmmc.fast_evo_mmc(X, rank=20, random_state=0).params["rank"] <= 20
    True
    """
    call, units = in_units(call)
    if comes_in_blocks(call.X):
        return units.tell(search_in_blocks(call, control, fast_evo_mmc))
    return units.tell(_evolve(call, control))


def _evolve(call, control):
    """Run the restarts of an evolution on the hat matrix that the call asks for."""
    source = check_source(call)
    plan = _make_evolution_plan(call, source)
    params = own_values(call, EvoMMCParameters) | values(call, SizeParameters)
    params["balance"] = binary_balance(call.balance, call.target_sizes)
    seed = fixed_seed(call.random_state)
    with show_progress(control) as control:
        factor, control = next(
            source.factors([source.lam], lambda X, metric: box_diagonal(X), seed, control)
        )
        diag = factor.diagonal()

        result = best_result(
            factor,
            lambda index: EvolutionSearch(factor, diag, plan, restart_stream(seed, index)),
            call.n_init,
            control,
            2,
            params,
            size_bounds=binary_size_bounds(plan.n, plan.lower, plan.upper),
        )
        has_default_sizes = call.balance is call.target_sizes is call.max_size is None
        if has_default_sizes and result.converged:
            warn_of_other_sizes(factor, result.labels, 2)
        return result


def _make_evolution_plan(call, source):
    """Check the parameters of the search and fix what all restarts have in common."""
    n = source.points.shape[0]
    validation.check_two_points(n)
    if call.flips is not None:
        validation.check_integer("flips", call.flips, least=1, most=n, why=", all points")
    lower, upper = binary_bounds(n, **values(call, SizeParameters))
    init = check_init(call.init, n, 2, source.kernel)
    if not isinstance(init, str) and not lower <= init.sum() <= upper:
        raise ValueError(
            f"init: cluster 1 has {init.sum()} points, which the size rule bounds to {lower} to "
            f"{upper}; raise balance"
        )
    warn_of_equal_points(source.points, 2)
    whole = replace(
        call,
        flips=call.flips or 0,
        init=init,
        patience=call.patience or (10 * n if call.nu == 1 else n),
        max_iter=1000 * n if call.max_iter is None else call.max_iter,
    )
    return EvolutionPlan(whole, n, source.points, lower, upper)
