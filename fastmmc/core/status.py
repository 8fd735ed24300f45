"""Why a run ended."""

from enum import Enum, IntEnum

from fastmmc.core.saving import stored


@stored()
class Status(IntEnum):
    """Why a run ended.

    Attributes
    ----------
    CONVERGED : int
        The search came to its end.
    MAX_ITER : int
        ``max_iter`` was reached.
    TIME_LIMIT : int
        ``max_time`` was reached.
    INTERRUPTED : int
        Ctrl-C was pressed.
    CALLBACK : int
        The callback asked to stop.
    NUMERICAL : int
        Rounding or overflow left no way on.
    INFEASIBLE : int
        No cluster can be split further.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("moons")
    >>> res = fastmmc.umc_rls(X, 2, random_state=0)
    >>> res.status == fastmmc.Status.CONVERGED, res.converged
    (True, True)
    >>> print(res.status)
    converged
    """

    CONVERGED = 0
    MAX_ITER = 1
    TIME_LIMIT = 2
    INTERRUPTED = 3
    CALLBACK = 4
    NUMERICAL = 5
    INFEASIBLE = 6

    def __str__(self) -> str:
        return self.name.lower().replace("_", " ")

    __format__ = Enum.__format__


STATUS_TEXT = {
    Status.CONVERGED: "converged",
    Status.MAX_ITER: "the iteration limit max_iter was reached",
    Status.TIME_LIMIT: "the time limit max_time was reached",
    Status.INTERRUPTED: "the run was interrupted",
    Status.CALLBACK: "the callback asked to stop",
    Status.NUMERICAL: "a numerical problem stopped the run",
    Status.INFEASIBLE: "no cluster can be split further",
}

# Why a run ended that somebody or the clock stopped.
STOPPED = (Status.TIME_LIMIT, Status.INTERRUPTED, Status.CALLBACK)
