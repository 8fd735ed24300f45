"""Running restarts: random streams, threads, budgets, progress, time limit, interrupt."""

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
from dataclasses import dataclass, replace

import numpy as np
from joblib import effective_n_jobs
from sklearn.exceptions import ConvergenceWarning

from fastmmc import validation
from fastmmc.gram import count_distinct
from fastmmc.results import STATUS_TEXT, Status
from fastmmc.threads import limit_openmp, one_blas_thread

logger = logging.getLogger("fastmmc")

# A slice of compiled work between two looks at the clock. The budget, in elementary operations, is
# bounded from above, as a slice that ended early tells nothing of how long a whole one takes.
SLICE_SECONDS = 0.05
FIRST_BUDGET = 2_000_000
LEAST_BUDGET = 2**17
MOST_BUDGET = 2**25
POLL_SECONDS = 0.05

# Share of max_time that may pass before the search begins.
PREPARATION_SHARE = 0.75


@dataclass(frozen=True)
class Progress:
    """What a callback is told, about twenty times a second.

    Attributes
    ----------
    fraction : float
        Share of the work that is done, an estimate in 0..1.
    n_done, n_init : int
        Starts that ended, and starts in all; of a recursive clustering splits.
    objective : float
        Best final objective so far (inf before the first start has ended); of a recursive
        clustering that of the clusters so far.
    elapsed : float
        Seconds since the call began.
    """

    fraction: float
    n_done: int
    n_init: int
    objective: float
    elapsed: float


class _NoBar:
    """Stands where a progress bar is not wanted."""

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        return None

    def prepare(self, fraction):
        """Do nothing."""

    def show(self, progress):
        """Do nothing."""


class OutOfTime(Exception):
    """Ends work that max_time leaves no time for; a start has not ended then."""


@dataclass(frozen=True)
class RunControl:
    """How a run is to be carried out; the RUN parameters of every solver.

    Attributes
    ----------
    n_jobs : int or None
        Threads; None is 1 unless joblib's configuration says otherwise.
    max_time : float or None
        Seconds for the whole call.
    callback : callable or None
        Called with a Progress; a true return value stops the run.
    verbose : int
        1 shows a progress bar.
    started : float
        ``time.perf_counter()`` at the beginning of the call.
    on_start_done : callable or None
        Called with (index, n_init) after each start, in the calling thread; true stops the run.
    shortage : str
        What max_time was too short for and what stands in its place, for the warning; a run that
        has one ends by the time limit.
    bar : object
        Where the progress is shown, opened by :func:`show_progress`: ``prepare(fraction)`` while
        the hat matrix is made, then ``show(progress)``.
    """

    n_jobs: int | None = None
    max_time: float | None = None
    callback: Callable[[Progress], object] | None = None
    verbose: int = 0
    started: float = 0.0
    on_start_done: Callable | None = None
    shortage: str = ""
    bar: object = _NoBar()

    def time_left(self):
        """Return the seconds that max_time leaves, infinity where there is no limit."""
        if self.max_time is None:
            return math.inf
        return self.max_time - (time.perf_counter() - self.started)

    def out_of_time(self):
        """Tell whether max_time is over."""
        return self.time_left() <= 0

    def prepare(self, fraction, ahead=0.0):
        """Show the share of the preparation that is done; raise OutOfTime when it takes too long.

        Some of max_time is kept for a search on less. ``ahead`` are the seconds that something
        takes which comes next and cannot be stopped.
        """
        self.bar.prepare(fraction)
        if self.max_time is not None:
            self.check_time(ahead + (1.0 - PREPARATION_SHARE) * self.max_time)

    def check_time(self, ahead=0.0):
        """Raise OutOfTime if max_time leaves less than so many seconds."""
        if self.time_left() < ahead:
            raise OutOfTime


def check_control(started, n_jobs, max_time, callback, verbose, on_start_done=None):
    """Check the parameters that say how a run is carried out.

    Parameters
    ----------
    started : float
        ``time.perf_counter()`` at the beginning of the call.
    n_jobs, max_time, callback, verbose
        As the user gave them.
    on_start_done : callable, optional
        Called with (index, n_init) after each start.

    Returns
    -------
    RunControl
        Without a bar; :func:`show_progress` opens it.

    Raises
    ------
    ValueError, TypeError
        If one of them is out of range.

    Examples
    --------
    >>> check_control(0.0, -1, 60, None, 0).max_time
    60.0
    """
    if n_jobs is not None:
        validation.check_integer("n_jobs", n_jobs, least=-(2**31))
        if n_jobs == 0:
            raise ValueError("n_jobs must not be 0; give a number of threads, -1 for all, or None")
    if max_time is not None:
        max_time = validation.check_positive("max_time", max_time)
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be callable or None; got {callback!r}")
    if not isinstance(verbose, bool):
        validation.check_integer("verbose", verbose, least=0)
    return RunControl(n_jobs, max_time, callback, int(verbose), started, on_start_done)


@contextmanager
def show_progress(control, unit="start"):
    """Open the progress bar of a call, if one is wanted, and keep BLAS to one thread.

    Parameters
    ----------
    control : RunControl
        As the user asked for.
    unit : str, default="start"
        What ``n_done`` and ``n_init`` count.

    Yields
    ------
    RunControl
        The same with its bar open.

    Raises
    ------
    ImportError
        If a bar is wanted and rich is missing.

    Examples
    --------
    >>> with show_progress(RunControl()) as control:
    ...     control.bar.prepare(0.5)
    """
    with one_blas_thread(), _RichBar(unit) if control.verbose else _NoBar() as bar:
        yield replace(control, bar=bar)


def restart_stream(seed, index):
    """Return the random stream of one restart.

    Parameters
    ----------
    seed : numpy.random.SeedSequence
        From :func:`fixed_seed`; not advanced.
    index : int
        Which restart.

    Returns
    -------
    numpy.random.Generator
        Independent of those of the other restarts and of how many there are.

    Examples
    --------
    >>> seed = fixed_seed(0)
    >>> restart_stream(seed, 0).random() != restart_stream(seed, 1).random()
    True
    """
    child = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, index))
    return np.random.default_rng(child)


def fixed_seed(random_state):
    """Return a seed that gives the same streams every time it is used.

    Parameters
    ----------
    random_state : None, int, numpy.random.SeedSequence, Generator or RandomState
        Source; a Generator or RandomState is advanced by one draw.

    Returns
    -------
    numpy.random.SeedSequence
        The seed.

    Raises
    ------
    TypeError, ValueError
        If ``random_state`` is none of these.

    Examples
    --------
    >>> fixed_seed(3).entropy
    3
    """
    if isinstance(random_state, np.random.SeedSequence):
        return random_state
    if isinstance(random_state, np.random.Generator):
        return np.random.SeedSequence(int(random_state.integers(2**63)))
    if isinstance(random_state, np.random.RandomState):
        return np.random.SeedSequence(int(random_state.randint(2**31)))
    if random_state is None:
        return np.random.SeedSequence()
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
        if random_state < 0:
            raise ValueError(f"random_state must not be negative; got {random_state}")
        return np.random.SeedSequence(int(random_state))
    raise TypeError(
        "random_state must be None, an int, a SeedSequence, a Generator or a RandomState; "
        f"got {random_state!r}"
    )


class _Slicer:
    """Keeps the slices of one thread near SLICE_SECONDS."""

    def __init__(self):
        self.budget = FIRST_BUDGET

    def run(self, search):
        began = time.perf_counter()
        ended = search.step(self.budget)
        elapsed = time.perf_counter() - began
        growth = min(4.0, SLICE_SECONDS / max(elapsed, 1e-4))
        self.budget = min(MOST_BUDGET, max(LEAST_BUDGET, int(self.budget * growth)))
        return ended


class _Board:
    """What the worker threads and the calling thread tell each other."""

    def __init__(self, n_init):
        self.stop = threading.Event()
        self.late = threading.Event()
        self.fractions = np.zeros(n_init)


def _work(index, make_search, board):
    """Run one restart, slice by slice; returns the search and whether it ended by itself."""
    search = make_search(index)
    slicer = _Slicer()
    ended = False
    first = True
    # The first start always makes one slice, so that there is something to return.
    while not ended and (not board.stop.is_set() or (first and index == 0)):
        try:
            ended = slicer.run(search)
        except OutOfTime:
            board.late.set()
            break
        board.fractions[index] = search.fraction()
        first = False
    if ended:
        search.finish()
        board.fractions[index] = 1.0
    return search, ended


def run_restarts(make_search, n_init, control):
    """Run independent restarts in threads until all have ended or something stops them.

    Parameters
    ----------
    make_search : callable
        ``make_search(index)`` returns a search: ``step(budget)`` → ended, ``fraction()``,
        ``finish()``, and an attribute ``objective``.
    n_init : int
        Restarts.
    control : RunControl
        Threads, time limit, callback, bar.

    Returns
    -------
    searches : list
        The searches that ended, with None for those that did not; if none ended, what the
        started ones hold.
    status : Status
        CONVERGED if all ended.
    n_done : int
        How many ended.
    """
    board = _Board(n_init)
    n_jobs = max(1, min(effective_n_jobs(control.n_jobs), n_init))
    done = {}
    started = {}
    status = Status.CONVERGED
    # The calling thread only waits, so that an interrupt reaches it at once.
    with (
        one_blas_thread(),
        ThreadPoolExecutor(n_jobs, initializer=limit_openmp) as pool,
    ):
        waiting = iter(range(n_init))
        running = {}
        try:
            while True:
                while len(running) < n_jobs and not board.stop.is_set():
                    index = next(waiting, None)
                    if index is None:
                        break
                    running[pool.submit(_work, index, make_search, board)] = index
                if not running:
                    break
                finished, _ = wait(running, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
                for future in sorted(finished, key=running.get):
                    index = running.pop(future)
                    search, ended = future.result()
                    (done if ended else started)[index] = search
                    if ended and control.on_start_done and control.on_start_done(index, n_init):
                        status = Status.CALLBACK
                        board.stop.set()
                if not board.stop.is_set():
                    status = _look(control, board, done)
                    if status != Status.CONVERGED:
                        board.stop.set()
        except KeyboardInterrupt:
            board.stop.set()
            status = Status.INTERRUPTED
            for future, index in running.items():
                search, ended = future.result()
                (done if ended else started)[index] = search
        except BaseException:
            board.stop.set()
            raise
    if len(done) == n_init:
        # A stop that came after the last start had ended changed nothing.
        status = Status.CONVERGED
    for search in started.values():
        if not done:
            search.finish()
    chosen = done or started
    return [chosen.get(index) for index in range(n_init)], status, len(done)


def best_of_restarts(make_search, n_init, control):
    """Run independent restarts and pick the one of the lowest objective.

    Parameters
    ----------
    make_search, n_init, control
        As for :func:`run_restarts`; a finished search also has ``status`` and ``history``.

    Returns
    -------
    best : object
        The winning search.
    best_init : int
        Its index.
    objectives : (m,) float64 array
        Of the starts that ended; if none did, of those that were begun.
    status : Status
        Why the run ended; of the winner, if all starts ended by themselves. A warning has been
        given unless it is CONVERGED.
    """
    searches, status, n_done = run_restarts(make_search, n_init, control)
    ended = [(i, s) for i, s in enumerate(searches) if s is not None]
    best_init, best = min(ended, key=lambda pair: _rank(pair[1]))
    if status == Status.CONVERGED:
        status = Status.TIME_LIMIT if control.shortage else best.status
    warn_if_stopped(status, n_done, n_init, control.shortage)
    status = rate_figures(status, objective=best.objective, history=best.history)
    return best, best_init, np.array([search.objective for _, search in ended]), status


def _rank(search):
    """Return what searches are compared by, the least wins: clusters lost, then the objective.

    An objective that is not a number is no better than infinity.
    """
    objective = search.objective if np.isfinite(search.objective) else np.inf
    return getattr(search, "n_lost", 0), objective


def rate_figures(status, **figures):
    """Return the status of a result, which is NUMERICAL if a figure of it is not finite.

    Parameters
    ----------
    status : Status
        Why the run ended.
    **figures : float or array
        What the result says of the labels, by the names of its fields.

    Returns
    -------
    Status
        The status; a ConvergenceWarning has been given where it is another.

    Examples
    --------
    >>> rate_figures(Status.CONVERGED, objective=1.0).name
    'CONVERGED'
    """
    wrong = [name for name, value in figures.items() if not np.isfinite(value).all()]
    if not wrong or status == Status.NUMERICAL:
        return status
    warn_user(
        f"{' and '.join(wrong)} of the result: not finite, as numbers overflowed; the labels mean "
        "little: scale the points"
    )
    return Status.NUMERICAL


def _look(control, board, done):
    """Tell the callback and the bar how far the run is; return why it should stop, if it should."""
    elapsed = time.perf_counter() - control.started
    progress = Progress(
        fraction=float(board.fractions.mean()),
        n_done=len(done),
        n_init=board.fractions.size,
        objective=min((search.objective for search in done.values()), default=np.inf),
        elapsed=elapsed,
    )
    control.bar.show(progress)
    if control.callback is not None and control.callback(progress):
        return Status.CALLBACK
    if control.out_of_time() or board.late.is_set():
        return Status.TIME_LIMIT
    return Status.CONVERGED


def warn_if_stopped(status, n_done, n_init, shortage=""):
    """Say aloud that a run ended before its time.

    Parameters
    ----------
    status : Status
        Why it ended.
    n_done, n_init : int
        Starts that ended, and starts asked for.
    shortage : str
        What the time did not suffice for.
    """
    if status != Status.CONVERGED:
        ended = f"; {n_done} of {n_init} starts had ended" if n_done < n_init else ""
        warn_user(
            f"stopped before the end: {STATUS_TEXT[status]}{ended}; the best labels found are "
            f"returned{shortage}"
        )


def warn_of_equal_points(points, k):
    """Say aloud that there are fewer distinct points than clusters are asked for.

    Parameters
    ----------
    points : (n, d) array or CSR matrix
        Points, or a Gram matrix.
    k : int
        Clusters.

    Returns
    -------
    bool
        Whether there was something to say.

    Examples
    --------
    >>> import pytest
    >>> with pytest.warns(ConvergenceWarning, match="X has only 1 distinct point"):
    ...     warn_of_equal_points(np.zeros((5, 2)), 2)
    True
    """
    distinct = count_distinct(points, k)
    if distinct < k:
        plural = "s" if distinct > 1 else ""
        warn_user(
            f"X has only {distinct} distinct point{plural}, fewer than the {k} clusters: equal "
            "points are told apart by chance; give a smaller k, or clean X"
        )
    return distinct < k


def warn_user(text):
    """Give a ConvergenceWarning that names the user's own line.

    Parameters
    ----------
    text : str
        What happened.

    Examples
    --------
    >>> import pytest
    >>> with pytest.warns(ConvergenceWarning, match="fewer"):
    ...     warn_user("fewer clusters than asked for")
    """
    warnings.warn(text, ConvergenceWarning, stacklevel=callers_level())


def callers_level():
    """Return the stack level of the user's line, seen from the caller.

    An estimator's fit is wrapped by scikit-learn, so its frames are ours as well.

    Returns
    -------
    int
        For ``warnings.warn``.
    """
    ours = "fastmmc.", "sklearn."
    frame, level = inspect.currentframe().f_back, 1
    while frame is not None and frame.f_globals.get("__name__", "").startswith(ours):
        frame, level = frame.f_back, level + 1
    return level


class _RichBar:
    """A progress bar on standard error."""

    def __init__(self, unit):
        try:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
        except ImportError as error:
            raise ImportError(
                "verbose=1 shows a progress bar, which needs rich (python -m pip install rich)"
            ) from error
        self._unit = unit
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:3.0f}%"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )

    def __enter__(self):
        self._progress.start()
        self._task = self._progress.add_task("kernel matrix", total=1.0)
        return self

    def __exit__(self, *exc_info):
        self._progress.stop()

    def prepare(self, fraction):
        """Draw how much of the hat matrix is made."""
        self._progress.update(self._task, completed=fraction, description="kernel matrix")

    def show(self, progress):
        """Draw the state of the run."""
        text = f"{self._unit} {progress.n_done}/{progress.n_init}"
        if np.isfinite(progress.objective):
            text += f", objective {progress.objective:.6g}"
        self._progress.update(self._task, completed=progress.fraction, description=text)
