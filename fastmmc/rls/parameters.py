"""The parameters of UMC-RLS."""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from fastmmc.core import validation
from fastmmc.core.declare import Parameters, parameter
from fastmmc.core.execution import warn_user
from fastmmc.core.parameters import (
    KernelParameters,
    LandmarkParameters,
    Metric,
    Points,
    PrecisionParameters,
    Rank,
    Regularisation,
    RunParameters,
    SizeParameters,
    Standardization,
    Trimming,
)
from fastmmc.core.types import MatrixLike
from fastmmc.kernels.block_factor import BlockFactor
from fastmmc.kernels.factors import DenseFactor, LowRankFactor

# Rounds of shaking: the quota is that of the last one long before.
MOST_ROUNDS = 10_000


class PointsOrFactor(Points):
    """What is clustered, or what was made of it before."""

    # More than the points of other methods, which mypy takes for a mistake.
    X: MatrixLike | DenseFactor | LowRankFactor | BlockFactor = parameter(  # type: ignore[assignment]
        kw_only=False,
        kind="(n, d) array_like, data frame, sparse matrix, dask.array or factor",
        doc="""
        Points (float32 is kept, else float64), their Gram matrix, or a :func:`fastmmc.factor`.
        """,
    )


def _check_objective(name, value):
    """Return "equal" or "free"."""
    if isinstance(value, str) and value == "auto":
        warn_user(
            'sizes="auto" is deprecated and means "equal" now; it will be refused in 0.3. Choosing '
            'is what fastmmc.cluster(X, k) does; give sizes="free" for clusters of any sizes',
            FutureWarning,
        )
        return "equal"
    return validation.check_choice(name, value, ("equal", "free"))


def _check_trust(name, value):
    """Return a share in (0, 1], or an array of such."""
    trust = np.asarray(value if np.ndim(value) else validation.check_number(name, value))
    if trust.dtype.kind not in "iuf" or trust.ndim > 1:
        raise TypeError(f"{name} must be a number or (n,) numbers; got {value!r}")
    is_wrong = ~((trust > 0) & (trust <= 1))
    if is_wrong.any():
        raise ValueError(f"{name} must be greater than 0 and at most 1; got {trust[is_wrong][0]}")
    return trust.astype(np.float64) if trust.ndim else float(trust)


class UMCRLSSearch(Parameters):
    """The search of UMC-RLS."""

    method: Literal["auto", "shaking", "steepest", "stochastic", "memetic"] = parameter(
        default="auto",
        doc="""
        Search. "auto": "memetic". "shaking": the paper's. "steepest", "stochastic": plain descents,
        which need a ``balance``.
        """,
    )
    init: Literal["random", "kmeans"] | ArrayLike = parameter(
        default="random",
        kind='{"random", "kmeans"} or (n,) array_like',
        per="point",
        doc="Labels to start from.",
    )
    n_rounds: int = parameter(default=21, least=1, most=MOST_ROUNDS, doc="Rounds of the shaking.")
    start_round: int = parameter(default=0, doc="First round; later ones keep more of the start.")
    polish: bool = parameter(default=False, doc="End with swaps and moves.")
    keep_best: bool = parameter(default=False, doc="Return the best round, not the last.")
    population: int = parameter(
        default=8,
        least=2,
        most=validation.MOST_INDIVIDUALS,
        doc="Labellings that the memetic search keeps, >= 2.",
    )
    patience: int = parameter(
        default=20, least=1, doc="Children without progress before the memetic search ends."
    )
    max_iter: int | None = parameter(
        default=None,
        least=0,
        doc="Most moves (steepest), sweeps (stochastic) or children (memetic).",
    )


class UMCRLSSizes(SizeParameters):
    """The sizes of UMC-RLS."""

    sizes: Literal["equal", "free"] = parameter(
        default="equal",
        check=_check_objective,
        doc="The objective: Q with about equal or given sizes, or the cost with any.",
    )
    balance: float | None = parameter(
        default=None,
        doc="""
        Sizes stay within balance * n / k of their targets. None: 0 with ``target_sizes``, else 0.2
        ("memetic") or looser.
        """,
    )
    bound: bool = parameter(default=False, doc="Also compute a lower bound on the objective.")


class UMCRLSBut(
    RunParameters,
    Trimming,
    UMCRLSSizes,
    PrecisionParameters,
    LandmarkParameters,
    KernelParameters,
    Metric,
    Standardization,
    UMCRLSSearch,
    before="trim",
):
    """Every parameter of UMC-RLS but lam."""

    rank: Rank = parameter(
        default="auto",
        doc="""
        Landmarks, or their share of n. None: dense. "auto": above 3,000 points 500 (free:
        1,000) or 3 k; other methods 1,000 above 10,000.
        """,
    )
    n_init: int | Literal["auto"] = parameter(  # type: ignore[assignment]
        default="auto",
        doc="""
        Starts; the lowest objective wins. "auto": 1 for "memetic" and free sizes, else up to 30.
        """,
    )
    known_trust: float | ArrayLike = parameter(
        default=1.0,
        kind="float or (n,) array_like",
        check=_check_trust,
        per="point",
        doc="Probability that a known label is right; below 1 it may change.",
    )
    link_penalty: float | None = parameter(
        default=None,
        above=0,
        doc="Price of a broken cannot-link, in units of sum_h e_h^T R e_h. None: links are hard.",
    )


class UMCRLSParameters(UMCRLSBut, Regularisation):
    """What the function and the estimator have in common."""
