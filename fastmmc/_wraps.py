"""``functools.wraps`` for functions whose docs have examples."""

from __future__ import annotations

import functools
import inspect
import sys


def wraps(function):
    """Return :func:`functools.wraps`'s decorator; doctest still runs the function's examples.

    Doctest only looks at functions written in a module, so it would skip a wrapper.
    """
    written = inspect.unwrap(function)
    module = vars(sys.modules[written.__module__])
    module.setdefault("__test__", {})[written.__name__] = written
    return functools.wraps(function)
