"""Every method in one table; the command line, tests, benchmarks and docs loop over it.

``fastmmc.METHODS`` is a dict with a :class:`fastmmc.registry.Method` by each name.

Examples
--------
>>> import fastmmc
>>> method = fastmmc.METHODS["umc-rls"]
>>> method.function.__name__, method.estimator.__name__, method.binary
('umc_rls', 'UMCRLS', False)
>>> "rank" in method.parameters
True
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Method:
    """One entry of the registry.

    Attributes
    ----------
    name : str
        As the command line spells it.
    function : callable
        The solver.
    estimator : type
        The scikit-learn estimator.
    paper : str
        Where it comes from.
    summary : str
        One line on what it is.
    binary : bool
        Whether it makes two clusters only.
    extra : str or None
        The extra of this package that it needs.
    needs : tuple of str
        What that brings.
    """

    name: str
    function: Callable[..., Any]
    estimator: type[Any]
    paper: str
    summary: str
    binary: bool = False
    extra: str | None = None
    needs: tuple[str, ...] = ()

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the function's parameters but X, in their order."""
        return tuple(inspect.signature(self.function).parameters)[1:]


# Filled by the estimators when their classes are made; sorted by name.
METHODS: dict[str, Method] = {}


def register(method):
    """Add a method to the table, in its place."""
    METHODS[method.name] = method
    for name in sorted(METHODS):
        METHODS[name] = METHODS.pop(name)


def registry_name(method):
    """Return the name that the registry has for a method or its estimator; else what was given."""
    if not isinstance(method, str):
        return method
    for entry in METHODS.values():
        if _letters(method) in (_letters(entry.name), _letters(entry.estimator.__name__)):
            return entry.name
    return method.replace("_", "-")


def _letters(name):
    return "".join(filter(str.isalnum, name)).lower()
