"""Competitive learning by several workers at once, each with a share of the objects."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend
from numpy.typing import ArrayLike
from scipy.sparse import issparse

from fastmmc.competitive import _loops as kernels
from fastmmc.competitive import methods
from fastmmc.competitive.online import (
    WEIGHTED,
    OnlineSearch,
    list_partners,
    present,
    take_links,
    warn_if_fewer,
)
from fastmmc.competitive.space import assign_rows, refuse_vanishing
from fastmmc.core import validation
from fastmmc.core.declare import (
    check_method_params,
    declared,
    function_of,
    own_values,
    parameter,
    values,
)
from fastmmc.core.execution import (
    Outcome,
    Progress,
    RunControl,
    fixed_seed,
    restart_stream,
    show_progress,
    warn_if_stopped,
)
from fastmmc.core.parameters import Execution, Guidance, LinkRules
from fastmmc.core.results import CentroidResult
from fastmmc.core.status import Status
from fastmmc.core.types import MatrixLike
from fastmmc.data.links import check_links
from fastmmc.kernels.gram import Kernel
from fastmmc.kernels.models import Space
from fastmmc.registry import registry_name

# Names in the registry and of the functions.
METHODS = {registry_name(method): method for method in WEIGHTED}

# What method_params may hold, as far as the method has it.
LEARNING = ("alpha", "beta", "schedule", "online_first_epoch", "per_constraint")

# The objects are dealt out from a random stream that no worker uses.
SPLIT_STREAM = 2**32 - 2

# Prototypes are lost once objects meet the nearest one at this many times the mean squared distance
# of the objects, and of the first prototypes, from the mean of the objects.
LOST = 10.0


class _Shard(NamedTuple):
    """The share of a worker, which does not change while the workers learn."""

    members: np.ndarray  # (m,) its objects, rising
    linked: np.ndarray  # (c,) objects that its constraints name, rising, of all workers
    links: kernels.Links  # constraints of its objects, with the linked ones as their memory
    rng: np.random.Generator  # draws the orders in which its objects are presented


class _Lesson(NamedTuple):
    """What a worker returns from a round."""

    centers: np.ndarray  # (k, d) its prototypes now
    wins: np.ndarray  # (k,) their learning steps plus one
    seen: np.ndarray  # (c,) uint8, which of its linked objects count as partners now
    total: float  # sum of the squared distances at which objects met their nearest prototype


class _ShardedCall(
    Execution, methods.Epochs, LinkRules, methods.LinkedObjects, before="known_labels"
):
    X: MatrixLike = parameter(
        kw_only=False,
        doc="Points. A ``numpy.memmap`` is not copied if it is C-ordered float32 or float64.",
    )
    # None besides what one worker takes, which mypy takes for a mistake.
    init: Literal["gaussian", "k-means++"] | ArrayLike | None = parameter(  # type: ignore[assignment]
        default=None,
        doc="First prototypes, see :func:`fastmmc.c_rpcl`. None: the plain method's default.",
    )
    method: Literal["wta", "fscl", "rpcl", "c_rpcl", "o_lcvqe"] = parameter(
        default="c_rpcl",
        check=lambda name, value: METHODS[
            validation.check_choice(name, registry_name(value), METHODS)
        ],
        doc="Name of the plain method, a function of ``fastmmc``; with - or _.",
    )
    n_workers: int = parameter(
        default=2,
        doc="""
        Shares into which the objects are dealt, at random or, with ``shuffle=False``, in turn.
        """,
    )
    sync_every: int | None = parameter(
        default=None,
        least=1,
        doc="""
        Objects that a worker presents in a round; a round also ends where an epoch does. None: all
        of its objects, so that a round is an epoch.
        """,
    )
    combine: Literal["mean", "sum"] = parameter(
        default="mean",
        doc="""
        Mean: the mean of the workers' prototypes, weighted by how often each worker taught it in
        this round; the plain mean where it was only driven away. Sum: the sum of all changes, as if
        they had been made one after the other. Sum is for short rounds only: if a worker teaches a
        prototype t times in a round, it overshoots once ``n_workers (1 - (1 - alpha)^t)`` exceeds
        1, and from 2 on the prototypes get lost. The run stops, with the status NUMERICAL, at the
        end of an epoch in which the mean squared distance of the objects to their nearest
        prototypes was more than ten times that of the objects, or of the farthest first prototype,
        to their mean; the prototypes before the epoch with the least such distance are returned. In
        such rounds ``rpcl`` drives spare prototypes away as one worker does; the mean keeps more.
        """,
    )
    method_params: dict[str, Any] | None = parameter(
        default=None,
        doc="""
        Parameters of the method: ``alpha``, ``beta``, ``schedule``, ``online_first_epoch``,
        ``per_constraint``, as far as it has them.
        """,
    )
    n_jobs: int | None = parameter(
        default=None,
        doc="""
        Workers at a time; -1: as many as there are processors. None: what joblib's configuration
        says if that is more than one, else all workers.
        """,
    )
    callback: Callable[[Progress], bool | None] | None = parameter(
        default=None,
        doc="""
        Called with a :class:`~fastmmc.Progress` after every round; ``n_done`` counts
        epochs; a true return value stops the run.
        """,
    )


@function_of(_ShardedCall, like=methods.c_rpcl)
def fit_sharded(call: _ShardedCall, control: RunControl) -> CentroidResult:
    """Cluster by competitive learning with several workers, each with a share of the objects.

    In every round all workers start from common prototypes and present their next objects. Then
    their prototypes are combined, in a fixed order, into the common ones of the next round, and
    their learning steps are added to the wins. So the result depends on ``n_workers`` and on
    ``sync_every``, but never on where or when the workers run. One worker gives the result of the
    plain method: the same prototypes and labels, bit for bit.

    Workers run through joblib: in threads, which share X and of which two are nearly twice as fast
    as one, or where ``joblib.parallel_config(backend=...)`` says, as "loky" (processes) or "dask".

    Constraints are for ``c_rpcl`` and ``o_lcvqe``. They may link objects of different workers: each
    worker has a copy of all partners of its own objects.

    Returns
    -------
    CentroidResult
        As from the plain method. ``history`` has the sum over all workers for every epoch.

    Notes
    -----
    On top of the plain method's cost, a round takes some tenths of a millisecond in threads, and
    ten milliseconds or more in processes and with Dask: let a worker present many thousands of
    objects in it. An interrupted run drops the round it was in.

    Processes map X into their memory, from a file that joblib writes once. Dask sends it anew in
    every round unless told to keep it: ``parallel_config(backend="dask", scatter=[X])``, with an X
    that need not be converted, a C-ordered array of floats. Dask is in the extra ``dask``.

    References
    ----------
    T. Covoes, E. Hruschka, J. Ghosh, Competitive learning with pairwise constraints, IEEE
    Transactions on Neural Networks and Learning Systems 24(1), 2013, whose section VI names it as
    future work; the combination of the workers is this package's.

    Examples
    --------
    >>> import fastmmc
    >>> from fastmmc.distributed import fit_sharded
    >>> X, y = fastmmc.datasets.load("iris")
    >>> res = fit_sharded(X, 3, n_workers=2, cannot_link=[(0, 50), (50, 100)], random_state=0)
    >>> res.n_violations
    0
    """
    plain = {one.name: one for one in declared(getattr(methods, call.method).parameters)}
    known = {name: plain[name] for name in LEARNING if name in plain}
    own = {one.name for one in declared(_ShardedCall)}
    given = check_method_params(call.method, known, call.method_params, "fit_sharded", own)
    learning = {n: one.checked(given.get(n, one.default)) for n, one in known.items()}
    for name, value in values(call, Guidance).items():
        if value is not None and name not in plain:
            raise ValueError(
                f"{name}: {call.method} takes no constraints; leave it out, or give "
                "method='c_rpcl' or 'o_lcvqe'"
            )
    points = validation.check_points(call.X, Kernel("linear"), sparse=True)
    refuse_vanishing(points)
    n = points.shape[0]
    n_workers = validation.check_integer(
        "n_workers", call.n_workers, least=1, most=n, why=", the number of points"
    )
    init = plain["init"].default if call.init is None else call.init
    links = check_links(n=n, **values(call, Guidance, LinkRules))
    plan = methods.make_plan(call.method, vars(call) | {"init": init} | learning, n, links)
    shards = _deal(points, plan, n_workers, fixed_seed(call.random_state))
    # Threads of BLAS would compete with the workers, and change the last bits of the prototypes.
    with show_progress(control, "epoch") as control:
        run = _Run(plan, points, shards, call, control)
        run.learn(control)
    run.finish()
    if np.isfinite(run.objective):
        warn_if_fewer(call.method, init, run.nearest_to, run.kept, plan.min_share)
    params = {
        **own_values(call, _ShardedCall),
        **values(call, methods.Epochs),
        "n_workers": n_workers,
        "init": init,
        "min_share": plan.min_share,
        **learning,
    }
    del params["method_params"]
    space = Space(points.shape[1], points.dtype)
    warn_if_stopped(run.status, 1, 1)
    outcome = Outcome(run, 0, np.array([run.objective]), 1, run.status)
    return methods.make_result(outcome, params, plan, space)


def _deal(points, plan, n_workers, seed):
    """Return a shard for each worker."""
    n = points.shape[0]
    order = restart_stream(seed, SPLIT_STREAM).permutation(n) if plan.shuffle else np.arange(n)
    partners = list_partners(plan.constraints, points)
    shards = []
    for worker in range(n_workers):
        members = np.sort(order[worker::n_workers])
        linked, links = take_links(points, partners, members, plan.online_first_epoch)
        # The first worker's stream is that of a plain run, which first prototypes come from too.
        shards.append(_Shard(members, linked, links, restart_stream(seed, worker)))
    return shards


class _Run(OnlineSearch):
    """Rounds of the workers, who have the prototypes in common."""

    def __init__(self, plan, rows, shards, call, control):
        super().__init__(plan, rows, shards[0].rng)
        for _ in self._first.choosing():
            if control.out_of_time():
                break
        self.centers = self._first.take()
        self._shards = shards
        self._length = call.sync_every or max(shard.members.size for shard in shards)
        self._combine = call.combine
        self._seen = np.zeros(rows.shape[0], dtype=np.uint8)
        # Only sums of changes may lie beyond the prototypes of the workers.
        may_overshoot = call.combine == "sum" and len(shards) > 1
        self._most = _largest_sum(rows, self.centers) if may_overshoot else np.inf
        self._best = np.inf, self.centers, self.weights

    def learn(self, control):
        """Make all rounds, until something stops the run."""
        try:
            with _open_workers(control.n_jobs, len(self._shards)) as teach_all:
                for _ in self._rounds(teach_all):
                    self.status = control.report(
                        fraction=self.fraction(),
                        n_done=self.n_iter,
                        n_init=self._plan.max_iter,
                        objective=np.inf,
                    )
                    if self.status != Status.CONVERGED:
                        return
        except KeyboardInterrupt:
            self.status = Status.INTERRUPTED

    def _rounds(self, teach_all):
        """Make the rounds of all epochs; yield between two of them."""
        sizes = [shard.members.size for shard in self._shards]
        while True:
            orders = [
                s.rng.permutation(m) if self._plan.shuffle else np.arange(m)
                for s, m in zip(self._shards, sizes, strict=True)
            ]
            total, begin = 0.0, (self.centers, self.weights)
            for at in range(0, max(sizes), self._length):
                stop = at + self._length
                total += self._make_round(teach_all, [order[at:stop] for order in orders])
                if self.status == Status.CONVERGED and stop >= max(sizes):
                    self.n_iter += 1
                    self._history.note(self.n_moves, total)
                    if total < self._best[0]:
                        self._best = total, *begin
                    if total > self._most:
                        self._give_up()
                if self.status != Status.CONVERGED or self.n_iter == self._plan.max_iter:
                    return
                yield

    def _give_up(self):
        """Go back to the prototypes before the best epoch, as they got lost."""
        self.status = Status.NUMERICAL
        _, self.centers, self.weights = self._best

    def _make_round(self, teach_all, ids):
        """Let every worker present these objects of its shard; return the sum of distances."""
        common = self.centers, self.weights, self._plan.rule
        calls = []
        for shard, own in zip(self._shards, ids, strict=True):
            # Objects that any worker has presented are seen.
            seen = shard.links.seen | self._seen[shard.linked]
            links = shard.links._replace(seen=seen)
            calls.append((self._rows, shard.members, own, links, *common))
        lessons = teach_all(calls)
        centers, weights = _combine(self.centers, self.weights, lessons, self._combine)
        if not np.isfinite(centers).all():
            self._give_up()
            return 0.0
        self.centers, self.weights = centers, weights
        for shard, lesson in zip(self._shards, lessons, strict=True):
            self._seen[shard.linked] |= lesson.seen
        self.n_moves += sum(own.size for own in ids)
        return sum(lesson.total for lesson in lessons)

    def _assign(self):
        found = super()._assign()
        if found[1] > self._most:
            self._give_up()
            found = super()._assign()
        return found


def _largest_sum(points, centers):
    """Return the sum of squared distances in an epoch above which prototypes are lost."""
    n = points.shape[0]
    mean = np.asarray(points.mean(axis=0, dtype=np.float64)).reshape(1, -1)
    _, around = assign_rows(points, mean)
    with np.errstate(over="ignore"):
        farthest = float(((centers - mean) ** 2).sum(axis=1).max())
    return LOST * (around + n * farthest)


@contextmanager
def _open_workers(n_jobs, n_workers):
    """Open the workers that the user configured for joblib, or threads.

    Yields a function that takes the arguments of several calls of :func:`_teach`, makes the calls
    at the same time and returns the lessons in their order.
    """
    if n_jobs is None and effective_n_jobs(None) == 1:
        n_jobs = n_workers
    backend, _ = get_active_backend(prefer="threads")
    if getattr(backend, "supports_sharedmem", False):
        # Joblib looks for results of threads only every ten milliseconds, in which a thread
        # presents ten thousand objects.
        with ThreadPoolExecutor(min(effective_n_jobs(n_jobs), n_workers)) as pool:
            yield lambda calls: list(pool.map(_teach, *zip(*calls, strict=True)))
    else:
        # Shards are large enough to be sent one by one. Processes map X into their memory; "c" lets
        # them use the machine code for writable arrays, which exists already.
        with Parallel(n_jobs=n_jobs, batch_size=1, mmap_mode="c") as parallel:
            yield lambda calls: parallel(delayed(_teach)(*args) for args in calls)


def _teach(X, members, ids, links, centers, wins, rule):
    """Return the lesson of a worker that presents these places of its shard, in this order."""
    centers, wins = centers.copy(), wins.copy()
    ids, members = _own_array(ids), _own_array(members)
    links = kernels.Links(*map(_own_array, links))._replace(seen=links.seen.copy())
    X = X if issparse(X) else np.asarray(X)
    _, total = present(X, members[ids], ids, centers, wins, links, rule)
    return _Lesson(centers, wins, links.seen, total)


def _own_array(array):
    """Return a plain writable array; a process may have been sent another kind."""
    return np.require(array, requirements=("W", "E"))


def _combine(centers, wins, lessons, how):
    """Return the common prototypes and wins after a round, from those before it.

    Written as changes to what the first worker found: a prototype that no worker moved stays
    exactly where it was, and with one worker it is exactly what that one found.
    """
    taught = np.array([lesson.wins - wins for lesson in lessons])
    n_taught = taught.sum(axis=0)
    shares = np.full(taught.shape, 1.0 / len(lessons))
    np.divide(taught, n_taught, out=shares, where=n_taught > 0)
    combined = lessons[0].centers.copy()
    for lesson, share in zip(lessons[1:], shares[1:], strict=True):
        if how == "sum":
            combined += lesson.centers - centers
        else:
            combined += share[:, None] * (lesson.centers - lessons[0].centers)
    return combined, wins + n_taught
