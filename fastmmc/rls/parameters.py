"""The parameters of UMC-RLS."""

from typing import Literal

from numpy.typing import ArrayLike

from fastmmc.core import validation
from fastmmc.core.declare import Parameters, parameter
from fastmmc.core.execution import warn_user
from fastmmc.core.parameters import (
    KernelParameters,
    KnownTrust,
    LandmarkParameters,
    Metric,
    PrecisionParameters,
    Rank,
    Regularisation,
    SizeParameters,
    Standardization,
    Trimming,
)
from fastmmc.rls.source import RLSRunParameters

# Rounds of shaking: the quota is that of the last one long before.
MOST_ROUNDS = 10_000


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


class UMCRLSSearch(Parameters):
    """The search of UMC-RLS."""

    method: Literal["auto", "shaking", "steepest", "stochastic", "memetic"] = parameter(
        default="auto",
        doc="""
        Search. It never changes the objective.

        - "auto": "memetic".
        - "shaking": the clusters take turns in claiming points, at first more than their share,
          then less and less (the paper's UMC-RLS). Of more than 10,000 points cells are claimed,
          and then all points descend.
        - "steepest", "stochastic": plain descents (Steep-RLS, Stoc-RLS). Give them a ``balance``,
          or a few clusters may take most points.
        - "memetic": clusters of two labellings are recombined, the result is shaken gently and
          descends by moves and swaps, again and again. Of more than 3,000 points cells are
          searched so, unless ``rank=None``, and then all points descend.

        With ``sizes="free"``, "steepest" and "stochastic" improve one labelling (Ward's unless
        ``init`` gives another), "steepest" by moves of single points only. The others run the
        memetic search for free sizes.
        """,
    )
    init: Literal["random", "kmeans"] | ArrayLike = parameter(
        default="random",
        kind='{"random", "kmeans"} or (n,) array_like of int',
        doc="""
        Labels to start from: balanced random, k-means, or given. With ``sizes="free"``, "random"
        means Ward's clusters in the metric of R, a spectral clustering and random seeds.
        """,
    )
    n_rounds: int = parameter(
        default=21,
        least=1,
        most=MOST_ROUNDS,
        doc="Rounds of the shaking schedule. Free sizes have none.",
    )
    start_round: int = parameter(
        default=0,
        doc="""
        First round to run. Later rounds shake more gently and keep more of the start.
        """,
    )
    polish: bool = parameter(
        default=False,
        doc="""
        Descend from the end of the search by swaps, and by moves where the sizes allow them,
        until neither lowers Q. Free sizes always end with a descent.
        """,
    )
    keep_best: bool = parameter(
        default=False, doc="Return the best round end of the shaking instead of the last."
    )
    population: int = parameter(
        default=8,
        least=2,
        most=validation.MOST_INDIVIDUALS,
        doc="""
        Labellings that the memetic search, and that for free sizes, keeps, >= 2. No two are the
        same partition.
        """,
    )
    patience: int = parameter(
        default=20,
        least=1,
        doc="""
        The memetic search, and that for free sizes, ends after this many children in a row that
        are no better than the best.
        """,
    )
    max_iter: int | None = parameter(
        default=None,
        least=0,
        doc="""
        At most this many moves (steepest), sweeps (stochastic) or children (memetic) a start;
        shaking has ``n_rounds``.
        """,
    )


class UMCRLSSizes(SizeParameters):
    """The sizes of UMC-RLS."""

    sizes: Literal["equal", "free"] = parameter(
        default="equal",
        check=_check_objective,
        doc="""
        The objective. "equal": Q, over labellings of about equal (or given) sizes. "free": the
        unexplained share of each cluster's indicator, added over the clusters, sum_h (1 - e_h^T R
        e_h / s_h), over labellings of any sizes that the other parameters allow. Neither the data
        nor another parameter changes it.
        """,
    )
    balance: float | None = parameter(
        default=None,
        least=0,
        doc="""
        Every size stays within balance * n / k of its target. 0: sizes differ by at most one.
        None: 0 if ``target_sizes`` are given, else

        - for shaking the paper's rule: it ends near n / k, and sizes further than n / (2 k) from
          it are brought back, followed by a descent within these bounds;
        - 0.4 for the memetic search, on cells or not;
        - no limit for the plain descents, or if sizes are free.
        """,
    )
    bound: bool = parameter(
        default=False,
        doc="""
        Also compute a lower bound on the objective from the largest eigenvalues of R: ``bound`` and
        ``gap`` of the result. Costs some hundred products of R with a vector; of low rank O(r^3).
        """,
    )


class UMCRLSLandmarks(LandmarkParameters):
    """The low-rank approximation of the kernel in UMC-RLS."""

    rank: Rank = parameter(
        default="auto",
        doc="""
        Number of landmarks of the low-rank hat matrix, or their share of n; None: dense. "auto":
        dense up to 10,000 points and 1,000 landmarks above, or, with the default search for equal
        sizes, dense up to 3,000 points and 500 landmarks above. Both are 3e8 / n if that is less,
        but at least 100.
        """,
    )


class UMCRLSRun(RLSRunParameters):
    """The run of UMC-RLS."""

    n_init: int | Literal["auto"] = parameter(  # type: ignore[assignment]
        default="auto",
        doc="""
        Starts; the one with the lowest objective wins. "auto": one for the memetic search and for
        free sizes, which make a population of their own, and on cells 3, or 90 / k of more than 30
        clusters; for the others 30, or 300,000 / n above 10,000 points. With two clusters round 0
        of the shaking forgets the start, so the first start is the paper's method and the others
        begin with round 1. If all starts would be equal (given labels, unless stochastic or
        memetic), one is run.
        """,
    )


class LinkPrice(Parameters):
    """How much cannot-links count."""

    link_penalty: float | None = parameter(
        default=None,
        above=0,
        doc="""
        Price of each broken cannot-link, in terms of sum_h e_h^T R e_h: 1 is what a point adds to
        it that its cluster explains entirely. So Q grows by four times as much, and the cost of
        free sizes by k / n times. None: cannot-links are hard. Must-links always hold.
        """,
    )


class Weights(Parameters):
    """How much points count."""

    sample_weight: ArrayLike | None = parameter(
        default=None,
        kind="(n,) array_like of float",
        doc="""
        How much each point counts, >= 0, in the error and in all sizes. An integer weight does
        what that many equal rows would. Points of weight 0 are labelled by the model of the others.
        The default width ignores weights.
        """,
    )


class UMCRLSBut(
    UMCRLSRun,
    Trimming,
    LinkPrice,
    KnownTrust,
    UMCRLSSizes,
    PrecisionParameters,
    UMCRLSLandmarks,
    KernelParameters,
    Metric,
    Standardization,
    UMCRLSSearch,
):
    """Every parameter of UMC-RLS but lam."""


class UMCRLSParameters(UMCRLSBut, Regularisation):
    """What the function and the estimator have in common."""

    sigma: float | None = parameter(
        default=None,
        above=0,
        doc="""
        Width of the Gaussian exp(-||x - z||^2 / sigma^2) and of the Laplacian
        exp(-||x - z||_1 / sigma). None: the median distance, or for k > 4 clusters the median
        distance of a point to its (2 n / k)-th neighbour. ``params`` of the result name it.
        """,
    )
