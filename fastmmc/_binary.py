"""The error of methods for two clusters that are asked for another number."""

from __future__ import annotations

from fastmmc._wraps import wraps


def explain(name, many, given):
    """Return the TypeError for ``given`` beside the points; ``many`` makes more clusters."""
    return TypeError(
        f"{name} makes two clusters: it takes no number of them, and its parameters by name only; "
        f"got {given!r}. For more clusters use {many}"
    )


def two_clusters(function):
    """Let a function of points and keywords explain that it makes two clusters, not k."""
    name = function.__name__

    @wraps(function)
    def checked(X, *args, **params):
        if args or "k" in params:
            many = f"recursive_mmc(X, k, method={name!r}) or umc_rls(X, k)"
            raise explain(name, many, args[0] if args else params["k"])
        return function(X, **params)

    return checked
