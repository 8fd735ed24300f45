"""Running restarts: random streams, threads, slices, progress, history, time limit, interrupt."""

from __future__ import annotations

import inspect
import logging
import math
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.exceptions import ConvergenceWarning

from fastmmc.core.status import STATUS_TEXT, Status
from fastmmc.core.threads import limit_openmp, one_blas_thread
from fastmmc.core.words import counted, not_installed
from fastmmc.kernels.gram import count_distinct

logger = logging.getLogger("fastmmc")

# The clock is checked after each slice of compiled work. Its budget, in elementary operations, has
# an upper bound, as a slice that ended early does not tell how long a whole one takes.
SLICE_SECONDS = 0.05
FIRST_BUDGET = 2_000_000
LEAST_BUDGET = 2**17
MOST_BUDGET = 2**25
POLL_SECONDS = 0.05

# Share of max_time that may pass before the search begins.
PREPARATION_SHARE = 0.75

# Least seconds for a call within another one.
LEAST_TIME = 1e-3


@dataclass(frozen=True)
class Progress:
    """What a callback is told, about twenty times a second.

    Attributes
    ----------
    fraction : float
        Estimated share of the work that is done, 0..1.
    n_done : int
        Starts that have ended; splits, in a recursive clustering.
    n_init : int
        Starts in all; splits, in a recursive clustering.
    objective : float
        Best final objective so far, inf until a start has ended; in a recursive clustering, the
        objective of the clusters so far.
    elapsed : float
        Seconds since the call began.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("moons")
    >>> seen = []  # a callback that returns True stops the run; this one returns None
    >>> res = fastmmc.umc_rls(X, 2, callback=seen.append, random_state=0)
    >>> seen[-1].n_done == seen[-1].n_init, seen[-1].elapsed > 0
    (True, True)
    """

    fraction: float
    n_done: int
    n_init: int
    objective: float
    elapsed: float


class _NoBar:
    def prepare(self, fraction):
        """Do nothing."""

    show = prepare


class OutOfTime(Exception):
    """Ends work that max_time leaves no time for; the start does not count as ended."""


@dataclass(frozen=True)
class RunControl:
    """How a run is carried out: the RUN parameters of every method."""

    n_jobs: int | None = None
    max_time: float | None = None  # seconds, for the whole call
    callback: Callable[[Progress], object] | None = None
    verbose: int = 0
    started: float = 0.0  # time.perf_counter() at the beginning of the call
    # What max_time was too short for and what replaces it, for the warning; a run that has one ends
    # with TIME_LIMIT.
    shortage: str = ""
    # The shares of the work between which a part of it reports.
    span: tuple[float, float] = (0.0, 1.0)
    # prepare(fraction) while the hat matrix is made, then show(progress)
    bar: _NoBar | _RichBar = _NoBar()

    def time_left(self):
        """Return the seconds that max_time leaves, infinity where there is no limit."""
        if self.max_time is None:
            return math.inf
        return self.max_time - (time.perf_counter() - self.started)

    def out_of_time(self):
        """Tell whether max_time is over."""
        return self.time_left() <= 0

    def inner_time(self, share=1.0):
        """Return the max_time of a call within this one, part of what is left; None: no limit."""
        return None if self.max_time is None else max(LEAST_TIME, share * self.time_left())

    def part(self, begin, end):
        """Return the control of a part of the work, given by the shares that it is between."""
        low, high = self.span
        return replace(self, span=(low + begin * (high - low), low + end * (high - low)))

    def report(self, fraction, **progress):
        """Tell the bar and the callback the Progress; return the reason to stop, or CONVERGED.

        A callback asks to stop by a true value or, as SciPy's do, by StopIteration. An interrupt
        that comes during it is one of the run.
        """
        low, high = self.span
        fraction = low + fraction * (high - low)
        progress = Progress(fraction, **progress, elapsed=time.perf_counter() - self.started)
        self.bar.show(progress)
        try:
            asks_to_stop = self.callback is not None and self.callback(progress)
        except StopIteration:  # generators on the way would take it for their own
            asks_to_stop = True
        except KeyboardInterrupt:
            return Status.INTERRUPTED
        if asks_to_stop:
            return Status.CALLBACK
        return Status.TIME_LIMIT if self.out_of_time() else Status.CONVERGED

    def prepare(self, fraction, ahead=0.0):
        """Show the share of the preparation that is done; raise OutOfTime when it takes too long.

        Part of max_time is kept for a smaller search. ``ahead`` is the time in seconds of an
        uninterruptible step that comes next.
        """
        self.bar.prepare(fraction)
        if self.max_time is not None:
            self.check_time(ahead + (1.0 - PREPARATION_SHARE) * self.max_time)

    def check_time(self, ahead=0.0):
        """Raise OutOfTime if max_time leaves less than ``ahead`` seconds."""
        if self.time_left() < ahead:
            raise OutOfTime


@contextmanager
def show_progress(control, unit="start"):
    """Keep BLAS to one thread, and yield the control with its bar open; the bar counts ``unit``."""
    with one_blas_thread():
        if not control.verbose:
            yield control
            return
        bar = _RichBar(unit)
        with bar.shown:
            yield replace(control, bar=bar)


def restart_seed(seed, index):
    """Return the SeedSequence of one restart, independent of the others and of their number."""
    return np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, index))


def restart_stream(seed, index):
    """Return the Generator of one restart."""
    return np.random.default_rng(restart_seed(seed, index))


def fixed_seed(random_state):
    """Return a SeedSequence that gives the same streams each time it is used.

    A Generator or RandomState is advanced by one draw.
    """
    if isinstance(random_state, np.random.SeedSequence):
        return random_state
    if random_state is None:
        return np.random.SeedSequence()
    if isinstance(random_state, np.random.Generator):
        random_state = random_state.integers(2**63)
    elif isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**31)
    elif isinstance(random_state, bool) or not isinstance(random_state, int | np.integer):
        raise TypeError(
            "random_state must be None, an int, a SeedSequence, a Generator or a RandomState; "
            f"got {random_state!r}"
        )
    elif random_state < 0:
        raise ValueError(f"random_state must not be negative; got {random_state}")
    return np.random.SeedSequence(int(random_state))


def _work(index, make_search, stop, fractions):
    """Run one restart in slices, noting its fraction; return it and whether it ended by itself."""
    search = make_search(index)
    budget = FIRST_BUDGET
    ended = False
    # The first start always runs for one slice, so that there is something to return.
    must_begin = index == 0
    while not ended and (must_begin or not stop.is_set()):
        began = time.perf_counter()
        try:
            ended = search.step(budget)
        except OutOfTime:
            break
        growth = min(4.0, SLICE_SECONDS / max(time.perf_counter() - began, 1e-4))
        budget = min(MOST_BUDGET, max(LEAST_BUDGET, int(budget * growth)))
        # An estimate falls where a search that seemed to end finds something better.
        fractions[index] = max(fractions[index], search.fraction())
        must_begin = False
    if ended:
        search.finish()
        fractions[index] = 1.0
    return search, ended


def run_restarts(make_search, n_init, control):
    """Run restarts in threads until all have ended or something stops them.

    ``make_search(index)`` returns a search: ``step(budget)`` -> ended, ``fraction()``,
    ``finish()``, and an attribute ``objective``. Returns the searches that ended (if none did,
    those that began) by their index and in its order, the Status, and how many ended.
    """
    stop = threading.Event()
    fractions = np.zeros(n_init)
    n_jobs = max(1, min(effective_n_jobs(control.n_jobs), n_init))
    done = {}
    started = {}
    running = {}
    status = Status.CONVERGED

    def collect(future):
        search, ended = future.result()
        (done if ended else started)[running.pop(future)] = search

    # The calling thread only waits, so that an interrupt reaches it at once.
    with one_blas_thread(), ThreadPoolExecutor(n_jobs, initializer=limit_openmp) as pool:
        waiting = iter(range(n_init))
        try:
            while True:
                n_free = 0 if stop.is_set() else n_jobs - len(running)
                for index in islice(waiting, n_free):
                    running[pool.submit(_work, index, make_search, stop, fractions)] = index
                if not running:
                    break
                finished, _ = wait(running, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
                for future in sorted(finished, key=running.get):
                    collect(future)
                if not stop.is_set():
                    status = control.report(
                        fraction=float(fractions.mean()),
                        n_done=len(done),
                        n_init=n_init,
                        objective=min((one.objective for one in done.values()), default=np.inf),
                    )
                    if status == Status.CONVERGED and started:  # one was out of time
                        status = Status.TIME_LIMIT
                    if status != Status.CONVERGED:
                        stop.set()
        except KeyboardInterrupt:
            stop.set()
            status = Status.INTERRUPTED
            for future in list(running):
                collect(future)
            if not done and not started:  # nothing had begun
                raise
        finally:
            stop.set()
    if len(done) == n_init and status != Status.INTERRUPTED:
        # A stop after the last start had ended changed nothing. An interrupt is for callers, too.
        status = Status.CONVERGED
    if not done:
        for search in started.values():
            search.finish()
    return dict(sorted((done or started).items())), status, len(done)


def finish(work):
    """Return ``work()``, and whether an interrupt came meanwhile: it is then done once again.

    For what a result needs after its search, which an interrupt is not to lose; the next one does.
    """
    try:
        return work(), False
    except KeyboardInterrupt:
        return work(), True


# History entries that a slice of a compiled loop can write before it must return.
HISTORY_CAPACITY = 4096


class History:
    """What a search notes along its way: the objective after so many moves or generations."""

    def __init__(self):
        self._counts, self._values = [], []

    def note(self, count, value):
        """Append an entry."""
        self._counts.append(int(count))
        self._values.append(float(value))

    def drain(self, entries, pos, slot):
        """Take the entries of a compiled loop, which counts them in pos[slot]."""
        for count, value in entries[: pos[slot]]:
            self.note(count, value)
        pos[slot] = 0

    def arrays(self, counted):
        """Return the objectives, (T,), and the trace of the counts of what is ``counted``."""
        counts = np.array(self._counts, dtype=np.int64)
        return np.array(self._values, dtype=np.float64), {counted: counts}


class SlicedSearch:
    """A search that adds ``_run``, which yields what each step cost, and ``finish``.

    A slice ends where its budget is used up; results do not depend on where that is. ``_budget`` is
    what the slice has left; a step that yields it, or nothing, ends the slice.
    """

    def __init__(self):
        self._history = History()
        self._fraction = 0.0
        self._work = self._run()
        self._has_ended = False
        self.objective = np.inf
        self.n_iter = 0
        self.n_moves = 0
        self.status = Status.CONVERGED

    def step(self, budget):
        """Run one slice; return whether the search has ended."""
        self._budget = budget
        for cost in self._work:
            self._budget -= self._budget if cost is None else cost
            if self._budget <= 0:
                return False
        self._has_ended = True
        return True

    def fraction(self):
        """Return an estimate of the share of the work that is done."""
        return self._fraction

    def _end_history(self, counted):
        """Take what was noted along the way, by the number of what is ``counted`` until then."""
        self.history, self.trace = self._history.arrays(counted)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What the restarts of a call came to."""

    best: Any  # the winning search
    best_init: int
    objectives: np.ndarray  # of the starts that ended
    n_init: int
    status: Status

    def result(self, kind, params, **fields):
        """Return a result of the winning search; fields that are not given are its own."""
        fields = {"status": self.status} | fields
        for name in ("labels", "objective", "n_iter", "n_moves", "history", "trace"):
            if name not in fields:
                fields[name] = getattr(self.best, name)
        return kind(
            **fields,
            objectives=self.objectives,
            best_init=self.best_init,
            params=params | {"n_init": self.n_init},
        )


def best_of_restarts(make_search, n_init, control):
    """Run restarts and return their outcome; warn unless its status is CONVERGED.

    A finished search also has ``labels``, ``status``, ``n_iter``, ``n_moves``, ``history`` and
    ``trace``. If no start ended, the best of those that began wins.
    """
    searches, status, n_done = run_restarts(make_search, n_init, control)
    best_init = min(searches, key=lambda index: _rank(searches[index]))
    best = searches[best_init]
    if status == Status.CONVERGED:
        status = Status.TIME_LIMIT if control.shortage else best.status
    warn_if_stopped(status, n_done, n_init, control.shortage)
    status = rate_figures(status, objective=best.objective, history=best.history)
    objectives = np.array([search.objective for search in searches.values()])
    return Outcome(best, best_init, objectives, n_init, status)


def _rank(search):
    """Return what decides between searches, the least wins: clusters lost, then the objective."""
    objective = search.objective if np.isfinite(search.objective) else np.inf
    return getattr(search, "n_lost", 0), objective


def rate_figures(status, **figures):
    """Return the status, or NUMERICAL with a warning if one of these figures is not finite."""
    wrong = [name for name, value in figures.items() if not np.isfinite(value).all()]
    if not wrong or status == Status.NUMERICAL:
        return status
    warn_user(
        f"{' and '.join(wrong)} of the result: not finite, as numbers overflowed; the labels mean "
        "little: scale the points"
    )
    return Status.NUMERICAL


def warn_if_stopped(status, n_done, n_init, shortage=""):
    """Warn unless a run ended by itself."""
    if status != Status.CONVERGED:
        ended = f"; {n_done} of {n_init} starts had ended" if n_done < n_init else ""
        warn_user(
            f"stopped before the end: {STATUS_TEXT[status]}{ended}; the best labels found are "
            f"returned{shortage}"
        )


def interrupted(result):
    """Return a result with the status of an interrupt that came after it, and warn."""
    warn_if_stopped(Status.INTERRUPTED, 1, 1)
    return replace(result, status=Status.INTERRUPTED)


def warn_of_equal_points(points, k):
    """Warn, and return True, if X has fewer than k distinct points."""
    distinct = count_distinct(points, k)
    if distinct < k:
        warn_user(
            f"X has only {counted(distinct, 'distinct point')}, fewer than the {k} clusters: equal "
            "points are told apart by chance; give a smaller k, or clean X"
        )
    return distinct < k


def warn_of_fewer(found, k, why):
    """Warn that there are fewer clusters than were asked for; ``why`` also says what to do."""
    warn_user(f"found {counted(found, 'cluster')}, fewer than the {k} asked for: {why}")


@contextmanager
def setting(variable, value):
    """Set a context variable of this thread for a while; yield its value."""
    token = variable.set(value)
    try:
        yield value
    finally:
        variable.reset(token)


# The warnings that are kept back, as in a search that is one of many; None where none are.
_MUTED = ContextVar("muted", default=None)


def without_warnings():
    """Keep back the warnings of this thread's runs, in a list; the process's filters stay."""
    return setting(_MUTED, [])


# What was looked at or told in the call of a public function, which those that it calls share.
_SEEN = ContextVar("seen", default=None)


def one_call():
    """Run a public function: what it calls looks at some things once for all."""
    seen = _SEEN.get()
    return setting(_SEEN, set() if seen is None else seen)


def in_call():
    """Return whether a public function is being run."""
    return _SEEN.get() is not None


def is_first(thing):
    """Return whether this thing is met first in the call of a public function; False outside."""
    seen = _SEEN.get()
    if seen is None or thing in seen:
        return False
    seen.add(thing)
    return True


def warn_user(text, category=ConvergenceWarning):
    """Give a warning that names the user's own line."""
    kept = _MUTED.get()
    if kept is not None:
        kept.append((text, category))
        return
    # scikit-learn wraps an estimator's fit, perhaps in joblib, so their frames count as ours.
    ours = "fastmmc.", "sklearn.", "joblib."
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_globals.get("__name__", "").startswith(ours):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)


class _RichBar:
    def __init__(self, unit):
        try:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
        except ImportError as error:
            need = "verbose=1 shows a progress bar, which needs rich"
            raise not_installed(need, "rich") from error
        self._unit = unit
        self.shown = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:3.0f}%"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._task = self.shown.add_task("kernel matrix", total=1.0)

    def prepare(self, fraction):
        self.shown.update(self._task, completed=fraction, description="kernel matrix")

    def show(self, progress):
        text = f"{self._unit} {progress.n_done}/{progress.n_init}"
        if np.isfinite(progress.objective):
            text += f", objective {progress.objective:.6g}"
        self.shown.update(self._task, completed=progress.fraction, description=text)
