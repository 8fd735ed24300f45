"""``functools.wraps`` for functions whose docs have examples."""

from __future__ import annotations

import functools
import inspect
import sys


def wraps(function):
    """Return the decorator of :func:`functools.wraps`; doctest still runs the function's examples.

    It looks for examples in functions that were written in a module, and would pass over this one.

    Parameters
    ----------
    function : callable
        To be wrapped; may be a wrapper itself.

    Returns
    -------
    callable
        Decorator of the wrapper.
    """
    written = inspect.unwrap(function)
    module = vars(sys.modules[written.__module__])
    module.setdefault("__test__", {})[written.__name__] = written
    return functools.wraps(function)
