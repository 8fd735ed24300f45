"""Clustering by several workers, in threads, in processes or on a cluster."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from fastmmc.competitive.sharded import fit_sharded
from fastmmc.core import validation
from fastmmc.core.execution import fixed_seed, restart_seed
from fastmmc.core.results import ClusteringResult
from fastmmc.registry import METHODS, registry_name

__all__ = ["fit_restarts", "fit_sharded"]


def fit_restarts(
    method: str | Callable[..., ClusteringResult],
    /,
    *args: Any,
    n_init: int = 10,
    random_state: Any = None,
    n_jobs: int | None = None,
    **params: Any,
) -> ClusteringResult:
    """Run the restarts of a method that has ``n_init`` on several workers; return the best result.

    Each restart is a whole call with ``n_init=1`` and a random stream of its own. Workers run
    through joblib, where ``joblib.parallel_config(backend=...)`` says: in processes ("loky", the
    default) or on a cluster ("dask", which runs a restart anew if its worker dies).

    Parameters
    ----------
    method : str or callable
        Name of a method, such as "umc-rls", or its function.
    *args
        What the function takes first: X, and k where it takes one. X may be a factor, which is
        then not made anew for every restart.
    n_init : int, default=10
        Restarts.
    random_state : int, SeedSequence, Generator or RandomState, default=None
        Same value, same result, whatever ``n_jobs`` and the backend are. The method's own starts
        have other streams.
    n_jobs : int, default=None
        Restarts at a time; -1: as many as there are processors. None: what joblib's configuration
        says, else 1.
    **params
        Other parameters of the method.

    Returns
    -------
    ClusteringResult
        That of the restart with the lowest objective, the first of several. ``objectives`` has
        those of all, and ``best_init`` says which it was. Give ``sigma`` for points in blocks:
        by default each restart takes it from a sample of its own.

    Raises
    ------
    ValueError, TypeError
        If the method is not known, has no ``n_init`` or makes something other than one clustering,
        ``n_init`` is not at least 1, or as the method itself.

    Examples
    --------
    >>> import fastmmc
    >>> from fastmmc.distributed import fit_restarts
    >>> X, y = fastmmc.datasets.load("iris")
    >>> res = fit_restarts("umc-rls", X, 3, n_init=4, random_state=0)
    >>> res.objectives.size, bool(res.objective == res.objectives.min())
    (4, True)
    """
    if not callable(method):
        name = validation.check_choice("method", registry_name(str(method)), METHODS)
        method = METHODS[name].function
    if any(one.function is method and "n_init" not in one.parameters for one in METHODS.values()):
        raise ValueError(f"method must be one that has n_init; {method.__name__} has none")
    n_init = validation.check_integer("n_init", n_init, least=1, most=validation.MOST_STARTS)
    seed = fixed_seed(random_state)
    started = time.perf_counter()
    results = Parallel(n_jobs=n_jobs)(
        delayed(method)(*args, n_init=1, random_state=restart_seed(seed, index), **params)
        for index in range(n_init)
    )
    if not isinstance(results[0], ClusteringResult):
        raise TypeError(f"method must make one clustering; it made a {type(results[0]).__name__}")
    objectives = np.array([result.objective for result in results])
    best = int(np.argmin(np.where(np.isfinite(objectives), objectives, np.inf)))
    found = results[best]
    params = found.params | {"n_init": n_init}
    of_all = {"best_init": best, "seconds": time.perf_counter() - started}
    return replace(found, objectives=objectives, params=params, **of_all)
