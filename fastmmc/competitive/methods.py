"""Competitive learning with and without constraints, and constrained k-means."""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from fastmmc.competitive.batch import BatchSearch
from fastmmc.competitive.online import OnlineSearch, least_share, make_rule, warn_if_fewer
from fastmmc.competitive.space import (
    Plan,
    check_space,
    check_start,
    make_space_in_time,
    refuse_vanishing,
    space_params,
)
from fastmmc.core import validation
from fastmmc.core.declare import Parameters, declared, function_of, parameter, values
from fastmmc.core.execution import (
    RunControl,
    best_of_restarts,
    fixed_seed,
    restart_stream,
    show_progress,
    warn_of_equal_points,
)
from fastmmc.core.parameters import (
    WIDTH,
    Clusters,
    Guidance,
    KernelParameters,
    LandmarkParameters,
    LinkRules,
    Points,
    RunParameters,
    kernel_of,
)
from fastmmc.core.results import CentroidResult
from fastmmc.core.status import Status
from fastmmc.core.types import MatrixLike
from fastmmc.data.links import Links, check_links
from fastmmc.kernels.models import CenterModel

BATCH = ("lcvqe", "cvqe")


class Rounds(Parameters):
    """How prototypes begin, and for how long they learn."""

    init: Literal["gaussian", "k-means++"] | ArrayLike = parameter(
        default="k-means++",
        kind='{"gaussian", "k-means++"} or (k, d) array_like',
        doc="""
        First prototypes: drawn from the normal distribution of a random fifth of the points, as in
        the paper; points far apart; or given (with ``features`` among these). The default is
        "gaussian" where wins weight the distances (:func:`fscl`, :func:`rpcl`, :func:`c_rpcl`) and
        "k-means++" for the others, which never use a prototype that begins far from all points.
        """,
    )
    max_iter: int = parameter(default=500, least=1, doc="Rounds of a start.")


class Epochs(Rounds):
    """How objects are presented, and which prototypes stay."""

    shuffle: bool = parameter(
        default=True,
        doc="Present the objects in a new random order every epoch; else in that of X.",
    )
    max_iter: int = parameter(default=100, doc="Epochs.")
    min_share: float | None = parameter(
        default=None,
        least=0,
        below=1,
        doc="""
        Prototypes nearest to a smaller share of the points are dropped in the end, and their points
        given to the others; ``n_active`` counts those that stay. 0 keeps all that have a point.
        None: 0.01, or a quarter of the mean share 1 / k where that is less, for
        :func:`fastmmc.rpcl` and :func:`fastmmc.c_rpcl`, whose ``n_active`` estimates the number of
        clusters; 0 for the others.
        """,
    )


class Learning(Epochs, before="shuffle"):
    """How prototypes learn on line."""

    alpha: float = parameter(
        default=0.05,
        above=0,
        most=1,
        doc="Rate of learning, 0 < alpha <= 1, where a prototype jumps onto the object.",
    )
    schedule: Literal["constant", "robbins-monro"] = parameter(
        default="constant",
        doc="""
        Robbins-Monro: rates are divided by 1 + alpha times the learning steps of the prototype,
        which makes it the mean of what it learned and of 1 / alpha - 1 copies of where it began:
        with alpha = 1 of what it learned alone.
        """,
    )


class WeightedLearning(Learning):
    """Learning where wins weight the distances."""

    init: Literal["gaussian", "k-means++"] | ArrayLike = parameter(default="gaussian")


class RivalLearning(WeightedLearning):
    """Learning that drives rivals away."""

    beta: float = parameter(
        default=0.002,
        doc="""
        Rate at which rivals are driven away, 0 <= beta < alpha. Half of alpha drives all prototypes
        but one away.
        """,
    )


class PartnersSeen(Parameters):
    """Which partners count at first."""

    online_first_epoch: bool = parameter(
        default=False,
        doc="""
        In the first epoch only objects that were already presented count as partners, as in a
        stream.
        """,
    )


class OnlineVectorQuantisation(PartnersSeen, Learning):
    """The learning of O-LCVQE."""

    beta: float = parameter(
        default=0.002,
        doc="Rate at which a prototype is driven away from an object that it has to give up.",
    )
    per_constraint: Literal["once", "paper"] = parameter(
        default="once",
        doc="""
        Paper: every constraint of an object repeats the learning, so that one in many constraints
        (as labelled ones are) pulls a prototype onto itself. Once, which departs from the paper: an
        object moves a prototype towards itself at most once a presentation.
        """,
    )


class SharedParameters(RunParameters, LandmarkParameters, KernelParameters, before="n_init"):
    """What all methods have in common: the space of the prototypes, and the run."""

    features: Literal["nystroem"] | None = parameter(
        default=None,
        doc="""
        Let the prototypes move in Nystroem features of a kernel, so that clusters need not be
        round. If None, sigma, gamma and rank are refused, and the other parameters of the kernel
        and of the landmarks are ignored.
        """,
    )
    sigma: float | None = parameter(
        default=None,
        doc=WIDTH + "from the median distance, too wide for rings and the like: try a third.",
    )
    rank: int | float | Literal["auto"] = parameter(
        default="auto",
        kind='int, float or "auto"',
        doc="""
        Number of landmarks, or their share of n. "auto": 10 sqrt(n), but at least 100, up to 10,000
        points; 1,000 above, 3e8 / n of them above 300,000 points.
        """,
    )
    n_init: int = parameter(
        default=1,
        doc="Starts; the one of the lowest objective wins, whatever constraints it violates.",
    )


class Objects(Clusters, Points):
    """What is clustered, by how many prototypes."""

    X: MatrixLike = parameter(
        kw_only=False,
        kind="(n, d) array_like, data frame or sparse matrix",
        doc="Points. A sparse matrix is made dense some hundred rows at a time.",
    )
    k: int = parameter(kw_only=False, doc="Prototypes, 1 <= k <= n.")


class LinkedObjects(Guidance, Objects):
    """Objects, and what is known of them."""

    known_labels: ArrayLike | None = parameter(
        default=None,
        kind="(n,) or (n, 1) array_like",
        doc="""
        Integers from 0 on where known; -1, NaN or None elsewhere. They imply constraints: of n
        labels up to n^2 / 2, of 70 bytes each.
        """,
    )


class _WTACall(SharedParameters, Learning, Objects):
    """A call of :func:`wta`."""


class _FSCLCall(SharedParameters, WeightedLearning, Objects):
    """A call of :func:`fscl`."""


class _RPCLCall(SharedParameters, RivalLearning, Objects):
    """A call of :func:`rpcl`."""


class _CRPCLCall(SharedParameters, LinkRules, PartnersSeen, RivalLearning, LinkedObjects):
    """A call of :func:`c_rpcl`."""


class _OLCVQECall(SharedParameters, LinkRules, OnlineVectorQuantisation, LinkedObjects):
    """A call of :func:`o_lcvqe`."""


class _LCVQECall(SharedParameters, LinkRules, Rounds, LinkedObjects):
    """A call of :func:`lcvqe` or :func:`cvqe`."""


def make_plan(method, told, n, constraints):
    """Return what all starts on n points have in common, for checked parameters by name."""
    k = validation.check_cluster_count(told["k"], n)
    common = k, check_start(told["init"]), told["max_iter"], constraints
    if method in BATCH:
        return Plan(*common, pairwise=method == "cvqe")
    return Plan(
        *common,
        rule=make_rule(method, told),
        shuffle=told["shuffle"],
        min_share=least_share(told["min_share"], method, k),
        online_first_epoch=told.get("online_first_epoch", False),
    )


def _cluster(method, call, control):
    """Run the restarts of a method of this file."""
    if call.features is None and (call.sigma, call.gamma, call.rank) != (None, None, "auto"):
        raise ValueError(
            "sigma, gamma and rank are of a kernel, which only features='nystroem' has; "
            f"got features=None, sigma={call.sigma!r}, gamma={call.gamma!r}, rank={call.rank!r}"
        )
    kernel = kernel_of(call)
    if call.features is None and kernel.name == "precomputed":
        raise ValueError("kernel='precomputed' needs features='nystroem'; got features=None")
    points = validation.check_points(call.X, kernel, sparse=True)
    space_plan = check_space(
        points, call.features, kernel, call.rank, call.landmarks, call.rank_tol
    )
    n, constraints = points.shape[0], Links.none()
    if isinstance(call, LinkRules):
        constraints = check_links(n=n, **values(call, Guidance, LinkRules))
    plan = make_plan(method, vars(call), n, constraints)
    enough_points = not warn_of_equal_points(points, plan.k)
    seed = fixed_seed(call.random_state)
    search = BatchSearch if method in BATCH else OnlineSearch
    with show_progress(control) as control:
        space, rows, control = make_space_in_time(points, space_plan, seed, plan.k, control)
        refuse_vanishing(rows)
        outcome = best_of_restarts(
            lambda index: search(plan, rows, restart_stream(seed, index)), call.n_init, control
        )
    best = outcome.best
    common = {o.name for g in (SharedParameters, LinkRules, LinkedObjects) for o in declared(g)}
    params = {n: value for n, value in values(call, type(call)).items() if n not in common}
    if method not in BATCH:
        params["min_share"] = plan.min_share
    if enough_points and outcome.status != Status.NUMERICAL:
        min_share = params.get("min_share", 0.0)
        warn_if_fewer(method, plan.init, best.nearest_to, best.kept, min_share)
    return make_result(outcome, params, plan, space)


def make_result(outcome, params, plan, space):
    """Gather what the winning search found; ``params`` are those of the method itself."""
    best, constraints = outcome.best, plan.constraints
    centers = best.centers[best.kept]
    return outcome.result(
        CentroidResult,
        params | space_params(space),
        sizes=np.bincount(best.labels, minlength=best.kept.size),
        model=CenterModel(centers, space),
        centers=centers,
        all_centers=best.centers,
        kept=best.kept,
        weights=best.weights,
        n_active=int(best.kept.size),
        n_constraints=len(constraints.must) + len(constraints.cannot),
        n_violations=constraints.n_violations(best.labels),
        n_conflicts=constraints.n_conflicts,
    )


@function_of(_CRPCLCall)
def c_rpcl(call: _CRPCLCall, control: RunControl) -> CentroidResult:
    """Cluster by rival-penalised competitive learning with constraints (C-RPCL).

    Objects are presented one by one. The prototype of the least w_j |x - mu_j|^2 wins, w_j being
    how often prototype j has learned; it learns, mu_j += alpha (x - mu_j), and the second best, its
    rival, is driven away, mu_n -= beta (x - mu_n). If the winner is also that of an object which x
    must not share a cluster with, the roles change: the best prototype that is the winner of no
    such object learns, and the winner is driven away. Without constraints this is :func:`rpcl`.

    Must-links, which the paper leaves out, are kept in the same way: of the prototypes that may win
    those are preferred that are winners of most objects that x must share a cluster with.

    Returns
    -------
    CentroidResult
        ``labels`` (the nearest prototype), ``objective`` (the sum of squared distances to it),
        ``centers``, ``n_active``, ``n_violations`` and more.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range, X is not a finite matrix, or constraints contradict each
        other.
    MemoryError
        If features, or the constraints that labels imply, do not fit into free memory.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If the run was stopped before its end, squared distances overflow (status NUMERICAL),
        constraints contradict each other, or a method other than :func:`fastmmc.rpcl` and
        :func:`fastmmc.c_rpcl`, which estimate the number of clusters, found fewer than k.
    UserWarning
        If columns of X seem to have different units.

    Notes
    -----
    An object with p constraints costs O(d k (1 + p)).

    References
    ----------
    T. Covoes, E. Hruschka, J. Ghosh, Competitive learning with pairwise constraints, IEEE
    Transactions on Neural Networks and Learning Systems 24(1), 2013, Algorithm 2. The
    must-links are this package's.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> res = fastmmc.c_rpcl(X, 3, cannot_link=[(0, 50), (50, 100)], random_state=0)
    >>> res.n_violations
    0
    """
    return _cluster("c_rpcl", call, control)


@function_of(_WTACall, like=c_rpcl)
def wta(call: _WTACall, control: RunControl) -> CentroidResult:
    """Cluster by competitive learning where the winner takes all (WTA): on-line k-means.

    The nearest prototype learns every object that is presented, mu_j += alpha (x - mu_j).

    References
    ----------
    T. Kohonen, Self-Organizing Maps, Springer, 1995; as in
    T. Covoes, E. Hruschka, J. Ghosh, Competitive learning with pairwise constraints, IEEE
    Transactions on Neural Networks and Learning Systems 24(1), 2013, section II.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> fastmmc.wta(X, 3, random_state=0).sizes.sum()
    np.int64(150)
    """
    return _cluster("wta", call, control)


@function_of(_FSCLCall, like=wta)
def fscl(call: _FSCLCall, control: RunControl) -> CentroidResult:
    """Cluster by frequency-sensitive competitive learning (FSCL).

    :func:`wta` with distances weighted by how often a prototype has learned, so that none is left
    without objects.

    References
    ----------
    S. Ahalt, A. Krishnamurthy, P. Chen, D. Melton, Competitive learning algorithms for vector
    quantization, Neural Networks 3(3), 1990.
    """
    return _cluster("fscl", call, control)


@function_of(_RPCLCall, like=wta)
def rpcl(call: _RPCLCall, control: RunControl) -> CentroidResult:
    """Cluster by rival-penalised competitive learning (RPCL).

    :func:`fscl`, and the second best prototype is driven away from the object. Given too many
    prototypes it can drive the spare ones away, so that ``n_active`` estimates the number of
    clusters: of nine Gaussians four or more standard deviations apart it counted nine with
    ``beta=0.01`` and 14 prototypes. With the paper's beta, or where clusters overlap, most spare
    prototypes stay and share clusters.

    References
    ----------
    L. Xu, A. Krzyzak, E. Oja, Rival penalized competitive learning for clustering analysis, RBF
    net, and curve detection, IEEE Transactions on Neural Networks 4(4), 1993.
    """
    return _cluster("rpcl", call, control)


@function_of(_OLCVQECall, like=c_rpcl)
def o_lcvqe(call: _OLCVQECall, control: RunControl) -> CentroidResult:
    """Cluster by on-line linear constrained vector quantisation (O-LCVQE).

    The nearest prototype learns an object that is in no constraint. Of two cannot-linked objects in
    one cluster the farther one is learned by its next prototype; must-linked objects that are apart
    move to one of their clusters, or pull both prototypes, whichever costs least. Without
    constraints this is :func:`wta`.

    References
    ----------
    T. Covoes, E. Hruschka, J. Ghosh, Competitive learning with pairwise constraints, IEEE
    Transactions on Neural Networks and Learning Systems 24(1), 2013, Algorithm 1.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> res = fastmmc.o_lcvqe(X, 3, cannot_link=[(0, 50), (50, 100)], random_state=0)
    >>> res.sizes.sum()
    np.int64(150)
    """
    return _cluster("o_lcvqe", call, control)


@function_of(_LCVQECall, like=c_rpcl)
def lcvqe(call: _LCVQECall, control: RunControl) -> CentroidResult:
    """Cluster by linear constrained vector quantisation error (LCVQE), k-means with soft links.

    In rounds: every point to its nearest prototype; for each violated constraint in turn the labels
    of the least cost; prototypes to the exact minimum, for these labels, of

        1/2 sum_i |x_i - mu_g(i)|^2
        + 1/4 sum_ML violated (|x_b - mu_g(a)|^2 + |x_a - mu_g(b)|^2)
        + 1/2 sum_CL violated |x_f - mu_v|^2,

    where f is the farther object of the pair and v its next prototype. Without violated constraints
    this is k-means.

    Returns
    -------
    CentroidResult
        ``labels`` are those of the round of the least objective, constraints applied, and
        ``centers`` the prototypes that the round ended with. ``objective`` belongs to these labels
        and centers, which also determine f and v. ``n_iter`` counts rounds, ``weights`` are the
        sizes.

    References
    ----------
    D. Pelleg, D. Baras, K-means with large and noisy constraint sets, ECML 2007.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> res = fastmmc.lcvqe(X, 3, cannot_link=[(0, 50), (50, 100)], random_state=0)
    >>> res.n_violations
    0
    """
    return _cluster("lcvqe", call, control)


@function_of(_LCVQECall, like=lcvqe)
def cvqe(call: _LCVQECall, control: RunControl) -> CentroidResult:
    """Cluster by constrained vector quantisation error (CVQE), k-means with soft links.

    As :func:`lcvqe`, but a violated pair gets the best of all k^2 pairs of clusters, and the
    penalty is half the squared distance between prototypes: of the two clusters (must-link), or of
    the one cluster and the prototype nearest to it (cannot-link). Prototypes then go to the mean of
    their points and of the prototypes, as they were, that penalties tie them to (of a must-link
    only the first object's), which need not lower the objective. A single cluster has no penalties.

    References
    ----------
    I. Davidson, S. S. Ravi, Clustering with constraints: feasibility issues and the k-means
    algorithm, SDM 2005.
    """
    return _cluster("cvqe", call, control)
