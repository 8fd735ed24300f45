"""The one place where the compiler options of every compiled loop are set."""

import gc
import logging
from contextlib import contextmanager

import numba
from numba.core.caching import FunctionCache

logger = logging.getLogger("fastmmc")


@contextmanager
def _collector_paused():
    """Keep the garbage collector from running.

    When the first function is loaded, Numba creates so many lasting objects that searching them for
    garbage again and again takes half of the time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class _ForgivingCache(FunctionCache):
    """Compile cache whose failures cost a recompilation, never an exception.

    A full disk, a folder that became read-only or a file that another process is writing must not
    break a user's run.
    """

    def load_overload(self, sig, target_context):
        try:
            with _collector_paused():
                return super().load_overload(sig, target_context)
        except Exception as error:  # whatever is wrong with the file, compiling again mends it
            logger.debug("compile cache not read: %s", error)
            return None

    def save_overload(self, sig, data):
        try:
            super().save_overload(sig, data)
        except Exception as error:  # the machine code is in memory, which is all this run needs
            logger.debug("compile cache not written: %s", error)


def njit(function, fastmath=False):
    """Compile ``function`` lazily without the interpreter lock, cached if possible.

    It may only call compiled functions of its own file: Numba looks for changes there and nowhere
    else. Returns ``function`` itself under ``NUMBA_DISABLE_JIT=1``.
    """
    dispatcher = numba.njit(nogil=True, error_model="numpy", fastmath=fastmath)(function)
    if dispatcher is not function:
        try:
            dispatcher._cache = _ForgivingCache(function)
        except RuntimeError as error:  # no folder is writable: compile in every process
            logger.debug("compile cache off: %s", error)
    return dispatcher


def njit_sum(function):
    """Compile a function that only sums products, and let the compiler choose their order.

    Otherwise a sum is one chain of dependent additions and is not vectorised. NaN and infinity keep
    their meaning. Not for loops that compare: the sign of a small difference may depend on the
    order.
    """
    return njit(function, fastmath={"reassoc", "contract"})
