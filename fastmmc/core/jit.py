"""The one place where the compiler options of every compiled loop are set."""

import gc
import logging
from functools import cached_property

import numba
from numba import types
from numba.core import event

from fastmmc.core.compat import CPUDispatcher, FunctionCache

logger = logging.getLogger("fastmmc")


class Compilation(event.TimingListener):
    """How long Numba compiles, and a call when it begins to."""

    def __init__(self, tell):
        super().__init__()
        self._tell = tell
        self._was_told = False

    def on_start(self, event):
        """Take the time; Numba calls this, also for what is compiled within."""
        super().on_start(event)
        if not self._was_told:
            self._was_told = True
            self._tell()

    @property
    def seconds(self):
        """The time that compiling took."""
        return self.duration if self.done else 0.0

    def watching(self):
        """Return a context in which it listens."""
        return event.install_listener("numba:compile", self)


class _ForgivingCache(FunctionCache):
    """Compile cache whose failures cost a recompilation, never an exception.

    A full disk, a folder that became read-only or a file that another process is writing must not
    break a user's run.
    """

    def load_overload(self, sig, target_context):
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:  # whatever is wrong with the file, compiling again mends it
            logger.debug("compile cache not read: %s", error)
            return None

    def save_overload(self, sig, data):
        try:
            super().save_overload(sig, data)
        except Exception as error:  # the machine code is in memory, which is all this run needs
            logger.debug("compile cache not written: %s", error)


class _Inner(CPUDispatcher):
    """Entry of a compiled function for compiled functions.

    Numba would compile it once more for each number that the compiler knows: the 0 that a count
    starts from, the -1 for no cluster. It does so for truth values alone: where it is known that
    a matrix is dense, or is not, searches take half of the time.
    """

    def get_call_template(self, args, kws):
        kws = {name: _plain(kind) for name, kind in kws.items()}
        return super().get_call_template([_plain(kind) for kind in args], kws)


def _plain(kind):
    """Return the type of a number that the compiler may know, and any other type as it is."""
    return types.unliteral(kind) if isinstance(kind, types.IntegerLiteral) else kind


class _Loop(CPUDispatcher):
    """A compiled function with two entries, each of which is made where it is called.

    Whatever lets Python call a function, as arguments are converted for it, is half of what the
    compiler makes of a short one. What other compiled functions call goes without, and needs no
    cache of its own: it is a part of theirs.
    """

    def compile(self, sig):
        # So many lasting objects are made that searching them for garbage again and again takes a
        # sixth of the time to compile, and half of that to load.
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            return super().compile(sig)
        finally:
            if was_enabled:
                gc.enable()

    @cached_property
    def _inner(self):
        """Dispatcher of the entry for compiled functions.

        Sums whose order the compiler chooses are a part of each caller. Of copies in several cached
        loops the one loaded first would serve all, and last bits depend on what ran before.
        """
        own = {"no_cpython_wrapper": True, "forceinline": bool(self.targetoptions["fastmath"])}
        return _Inner(self.py_func, targetoptions=self.targetoptions | own)

    @property
    def _numba_type_(self):
        return self._inner._numba_type_


def read_only(values):
    """Return a view that nobody can write to, which loops that only read take.

    Numba compiles a loop once for arrays that may be written and once for others, and of what
    users give some may and some may not: so all become the same.
    """
    view = values.view()
    view.flags.writeable = False
    return view


def njit(function, fastmath=False):
    """Compile ``function`` lazily without the interpreter lock, cached if possible.

    It may only call compiled functions of its own file: Numba looks for changes there and nowhere
    else. Returns ``function`` itself under ``NUMBA_DISABLE_JIT=1``.
    """
    if numba.config.DISABLE_JIT:
        return function
    options = {
        "nopython": True,
        "nogil": True,
        "error_model": "numpy",
        "fastmath": fastmath,
        "boundscheck": None,
        "no_cfunc_wrapper": True,  # an entry for C, which nobody calls
    }
    loop = _Loop(function, targetoptions=options)
    try:
        loop._cache = _ForgivingCache(function)
    except RuntimeError as error:  # no folder is writable: compile in every process
        logger.debug("compile cache off: %s", error)
    return loop


def njit_sum(function):
    """Compile a function that only sums products, and let the compiler choose their order.

    Otherwise a sum is one chain of dependent additions and is not vectorised. NaN and infinity keep
    their meaning. Not for loops that compare: the sign of a small difference may depend on the
    order.
    """
    return njit(function, fastmath={"reassoc", "contract"})
