"""Clustering by several workers, in threads, in processes or on a cluster."""

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
    *args: Any,
    n_init: int = 10,
    random_state: Any = None,
    n_jobs: int | None = None,
    **params: Any,
) -> ClusteringResult:
    """Run the restarts of any method on several workers, and return the best result.

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
        That of the restart with the lowest objective, the first of several; where ``umc_rls``
        chose a narrower width, or links a larger lam, in some, among these. ``objectives`` has
        those of all, and ``best_init`` says which it was.

    Raises
    ------
    ValueError, TypeError
        If the method is not known, ``n_init`` is not at least 1, or as the method itself.

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
    n_init = validation.check_integer("n_init", n_init, least=1, most=validation.MOST_STARTS)
    seed = fixed_seed(random_state)
    results = Parallel(n_jobs=n_jobs)(
        delayed(method)(*args, n_init=1, random_state=restart_seed(seed, index), **params)
        for index in range(n_init)
    )
    objectives = np.array([result.objective for result in results])
    # Objectives of two hat matrices cannot be compared. A narrower width is taken if it is far
    # better, and a larger lam if links speak for it; a call chooses one of them at most.
    widths, lams = (
        np.array([result.params.get(name) or 0.0 for result in results])
        for name in ("sigma", "lam")
    )
    is_candidate = np.isfinite(objectives) & (widths == widths.min()) & (lams == lams.max())
    best = int(np.argmin(np.where(is_candidate, objectives, np.inf)))
    found = results[best]
    params = found.params | {"n_init": n_init}
    return replace(found, objectives=objectives, best_init=best, params=params)
