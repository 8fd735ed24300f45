"""The parameters of UMC-RLS."""

from typing import Literal

from numpy.typing import ArrayLike

from fastmmc import validation
from fastmmc._declare import Parameters, parameter
from fastmmc.parameters import (
    KernelParameters,
    KnownTrust,
    LandmarkParameters,
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


class UMCRLSSearch(Parameters):
    """The search of UMC-RLS."""

    method: Literal["auto", "shaking", "steepest", "stochastic", "memetic"] = parameter(
        default="auto",
        doc="""
        Search. "auto" is shaking, or where sizes are free or chosen the search for these, and
        of more than 3,000 points in up to 60 clusters the memetic search on cells of them (Notes),
        unless another parameter of the search, ``n_init`` or ``rank=None`` is given. Shaking
        lets the clusters take turns in claiming points, more than their share at first and less
        and less so (the paper's UMC-RLS). The next two are plain descents (Steep-RLS, Stoc-RLS);
        without ``balance`` nothing keeps them from large clusters. Memetic recombines whole
        clusters of two labellings that the shaking found, shakes the result gently and descends by
        moves and swaps, again and again. With ``sizes="free"`` steepest and stochastic improve one
        labelling, Ward's if no other is given, the former by moves of single points alone, and all
        others run the memetic search of free sizes.
        """,
    )
    init: Literal["random", "kmeans"] | ArrayLike = parameter(
        default="random",
        kind='{"random", "kmeans"} or (n,) array_like of int',
        doc="""
        Labels to start from: balanced random, k-means, or given. With ``sizes="free"`` random
        means Ward's clusters in the metric of R, a spectral clustering and random seeds.
        """,
    )
    n_rounds: int = parameter(
        default=21,
        least=1,
        most=MOST_ROUNDS,
        doc="Rounds of the shaking schedule; free sizes have none.",
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
    batches: int | Literal["exact"] | None = parameter(
        default=None,
        least=1,
        doc="""
        How shaking claims on the low-rank hat matrix: in so many batches for a cluster of the
        target size, O(n r) each, or one by one ("exact"), O(n r) a claim. None: one by one where n
        is small enough for the n x n product (4,000 points); else first on a sample, one by one,
        then from round 1 on all points in 32 batches; above 50,000 points, or 2,500 k, all rounds
        run on a sample of that size. Batches end with a descent of all points by swaps, and by
        moves within ``balance``. The dense hat matrix is always claimed one by one. Free sizes
        make no claims: up to 5,000 points are searched on the n x n product; of more, dense or
        not, a sample of 3,000 (50 k if that is more, 10,000 at most) is, and all points descend;
        where sizes are chosen, see Notes.
        """,
    )
    population: int = parameter(
        default=8,
        least=2,
        most=validation.MOST_INDIVIDUALS,
        doc="""
        Labellings that the memetic search, and that of free sizes, keeps, >= 2; no two are the
        same partition.
        """,
    )
    patience: int = parameter(
        default=20,
        least=1,
        doc="""
        The memetic search, and that of free sizes, ends after this many children in a row no better
        than the best.
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

    sizes: Literal["auto", "equal", "free"] = parameter(
        default="auto",
        doc="""
        What is minimised. "equal": Q, over labellings of about equal (or given) sizes. "free": the
        unexplained share of each cluster's indicator, added over the clusters, sum_h (1 - e_h^T R
        e_h / s_h), over labellings of any sizes that the other parameters allow. "auto": as "free",
        from labels of about equal sizes unless others are predicted far better; it is "equal" where
        a search, ``init``, ``balance`` or ``target_sizes`` are given.
        """,
    )
    balance: float | None = parameter(
        default=None,
        least=0,
        doc="""
        Every size stays within balance * n / k of its target; 0: sizes that differ by one at most.
        None: 0 where ``target_sizes`` are given; else the paper's rule, by which shaking ends near
        n / k and the descents are free, 0.4 for the memetic search, on cells or not, and no limit
        where sizes are free. Sizes that shaking leaves further than n / (2 k) from n / k, as it may
        for many clusters, are brought back, and a descent within these bounds follows, as it always
        does where there are links.
        """,
    )
    bound: bool = parameter(
        default=False,
        doc="""
        Also compute a lower bound on the objective from the largest eigenvalues of R: ``bound`` and
        ``gap`` of the result. Some hundred products of R with a vector; of low rank O(r^3).
        """,
    )


class UMCRLSLandmarks(LandmarkParameters):
    """The low-rank approximation of the kernel in UMC-RLS."""

    rank: Rank = parameter(
        default="auto",
        doc="""
        Number of landmarks of the low-rank hat matrix, or their share of n; None: dense. "auto"
        where sizes are chosen, or points searched on cells (Notes): dense up to 3,000 points, and
        500 landmarks above; else dense up to 10,000 points, and 1,000 landmarks above. Both are 3e8
        / n where that is less, but at least 100.
        """,
    )


class UMCRLSRun(RLSRunParameters):
    """The run of UMC-RLS."""

    n_init: int | Literal["auto"] = parameter(  # type: ignore[assignment]
        default="auto",
        doc="""
        Starts; the one with the lowest objective wins. "auto": 30, above 10,000 points 300,000 / n,
        and one of the memetic search and of free sizes, which make a population of their own; 3
        on cells.
        With two clusters round 0 of the shaking forgets the start, so the first start is the
        paper's method and the others begin with round 1. Where all starts would be equal (given
        labels, unless stochastic or memetic) one is run. Where sizes are chosen there is
        one start, with this many memetic searches for labels of about equal sizes ("auto": one),
        and up to ten clusters one more from the best of them.
        """,
    )


class LinkPrice(Parameters):
    """How much cannot-links count."""

    link_penalty: float | None = parameter(
        default=None,
        above=0,
        doc="""
        Price of a pair that a cannot-link is to keep apart and that is together, in terms of
        sum_h e_h^T R e_h: 1 is what a point adds to it that its cluster explains entirely. So Q
        grows by four times as much, and the cost of free sizes by k / n times. None: no such pair
        is together. Must-links always hold.
        """,
    )


class Weights(Parameters):
    """How much points count."""

    sample_weight: ArrayLike | None = parameter(
        default=None,
        kind="(n,) array_like of float",
        doc="""
        How much each point counts, >= 0: in the error, and in all sizes. Weights that are integers
        do what so many equal rows would. Points of weight 0 are labelled by the model of the
        others. The default width takes no notice of weights.
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
        exp(-||x - z||_1 / sigma). None: the median distance, and for k > 4 clusters that of a
        point to its (2 n / k)-th neighbour; or, where the sizes are left to us as well, a narrower
        one if labels are predicted far better there (Notes). ``params`` of the result say which.
        """,
    )
