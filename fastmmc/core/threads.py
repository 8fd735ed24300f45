"""Threads of linear algebra: BLAS takes one, and large work is cut into pieces for ours.

Threads of BLAS wait for each other by spinning. On a machine with other work to do they wait for
one that is not running, and small products take a hundred times as long as in one thread. So while
a call of ours is running, BLAS has one thread; large work is cut into pieces whose shapes depend
only on the data, and as many Python threads as BLAS would have had work on them. The results do
not depend on how many these are, and the caller can stop between two pieces.
"""

import sys
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, partial
from importlib import import_module

from threadpoolctl import ThreadpoolController

from fastmmc.core.compat import set_blas_threads

# Multiplications below which work is not worth a second thread.
WORTH_A_THREAD = 20_000_000


@cache
def _threadpools():
    """Return the thread pools of BLAS and OpenMP; finding them takes longer than a small run."""
    return ThreadpoolController()


@cache
def _blas_pools():
    """Return the BLAS libraries that this process has loaded."""
    return _threadpools().select(user_api="blas").lib_controllers


class _BlasLimit:
    """The limit of BLAS, which is global, shared by all running calls in any thread.

    The first call to enter sets it and the last one to leave restores it. Limits that every call
    sets and restores by itself end wrong where calls overlap in time.
    """

    def __init__(self):
        self._lock = threading.Lock()
        self._calls = 0
        self._before = []

    def __enter__(self):
        with self._lock:
            if self._calls == 0:
                self._before = [(pool, pool.num_threads) for pool in _blas_pools()]
                for pool, _ in self._before:
                    set_blas_threads(pool, 1)
            self._calls += 1

    def __exit__(self, *exc_info):
        with self._lock:
            self._calls -= 1
            if self._calls == 0:
                for pool, n_threads in self._before:
                    set_blas_threads(pool, n_threads)

    def configured(self):
        """Return the most threads that a BLAS has while no call is running."""
        with self._lock:
            if self._calls:
                threads = [n_threads for _, n_threads in self._before]
            else:
                threads = [pool.num_threads for pool in _blas_pools()]
        return max([1, *threads])


_LIMIT = _BlasLimit()


def one_blas_thread():
    """Keep BLAS to one thread; may be nested, and entered by several threads at once."""
    return _LIMIT


def limit_openmp():
    """Keep OpenMP to one thread in this thread; its limit, unlike that of BLAS, is not global."""
    _threadpools().limit(limits=1, user_api="openmp")


@contextmanager
def map_of_threads(n_products):
    """Open a ``map`` for the pieces of one task, which uses as many threads as BLAS was given.

    Each piece may only write what is its own. A task of few multiplications (``n_products``) stays
    in the calling thread.
    """
    n_threads = 1 if n_products < WORTH_A_THREAD else _LIMIT.configured()
    with one_blas_thread():
        if n_threads == 1:
            yield map
            return
        pool = ThreadPoolExecutor(n_threads)
        try:
            yield partial(_map_ahead, pool, n_threads)
        finally:
            pool.shutdown(cancel_futures=True)


def _map_ahead(pool, n_threads, work, pieces):
    """Yield ``work(piece)`` in order, beginning only a few pieces ahead of the caller."""
    begun = deque()
    for piece in pieces:
        begun.append(pool.submit(work, piece))
        if len(begun) > n_threads:
            yield begun.popleft().result()
    while begun:
        yield begun.popleft().result()


def in_threads(n_products, work, pieces):
    """Yield ``work(piece)`` in order, as the ``map`` of :func:`map_of_threads` does."""
    with map_of_threads(n_products) as map_pieces:
        yield from map_pieces(work, pieces)


def import_whole(name):
    """Import a large module in a thread, where an interrupt cannot leave half of it behind.

    Of a package whose import was interrupted Python keeps the submodules that were done, but a
    second import does not give them to the package again: it then lacks attributes.
    """
    if name in sys.modules:
        return import_module(name)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(import_module, name).result()


def run_to_end(steps, on_step=lambda step: None):
    """Run a generator to its end and return its value; ``on_step`` takes what it yields."""
    try:
        while True:
            on_step(next(steps))
    except StopIteration as end:
        return end.value
    finally:
        steps.close()


def counter(total, on_progress):
    """Return a function that takes the amount just done and tells ``on_progress`` the share."""
    done = 0.0

    def advance(amount, *ahead):
        nonlocal done
        done += amount
        if on_progress is not None:
            on_progress(min(1.0, done / total), *ahead)

    return advance
