"""What methods for two clusters say when they are asked for another number of them."""

from __future__ import annotations

from fastmmc._wraps import wraps


def explain(name, many, given):
    """Return the error for what was given beside the points.

    Parameters
    ----------
    name : str
        Of the function or the class.
    many : str
        What makes any number of clusters.
    given : object
        What was given in place of keywords.

    Returns
    -------
    TypeError
        To be raised.
    """
    return TypeError(
        f"{name} makes two clusters: it takes no number of them, and its parameters by name only; "
        f"got {given!r}. For more clusters use {many}"
    )


def two_clusters(function):
    """Let a function of the points say that it makes two clusters if a number is given.

    Parameters
    ----------
    function : callable
        Takes X and keywords.

    Returns
    -------
    callable
        The same with a better error.

    Examples
    --------
    >>> split = two_clusters(lambda X, *, C=1.0: X)
    >>> split([1, 2], C=2.0)
    [1, 2]
    """
    name = function.__name__

    @wraps(function)
    def checked(X, *args, **params):
        if args or "k" in params:
            many = f"recursive_mmc(X, k, method={name!r}) or umc_rls(X, k)"
            raise explain(name, many, args[0] if args else params["k"])
        return function(X, **params)

    return checked
