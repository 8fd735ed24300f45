"""Side information on the labels: partial labels."""

from __future__ import annotations

import numpy as np

from fastmmc import validation


def partial_labels(y, n, k):
    """Check labels that are known for some of the points.

    Parameters
    ----------
    y : (n,) array_like of int or None
        Labels 0..k-1, -1 where unknown.
    n, k : int
        Points and clusters.

    Returns
    -------
    (n,) int64 array or None
        The labels, or None if y is None or nothing is known.

    Raises
    ------
    ValueError
        If y has a wrong shape, is not integer or has labels outside -1..k-1.

    Examples
    --------
    >>> partial_labels([0, -1, 1], 3, 2)
    array([ 0, -1,  1])
    """
    if y is None:
        return None
    labels = integer_labels("y", y, n)
    if labels.min() < -1 or labels.max() >= k:
        raise ValueError(
            f"y: known labels must be 0..{k - 1} and unknown ones -1; "
            f"got values from {labels.min()} to {labels.max()}"
        )
    return None if (labels < 0).all() else labels


def check_init(init, n, k, kernel, choices=("random", "kmeans")):
    """Check the labels that a search begins with.

    Parameters
    ----------
    init : str or (n,) array_like of int
        What the user gave.
    n, k : int
        Points and clusters.
    kernel : Kernel
        With a precomputed one there are no points for k-means.
    choices : tuple of str
        Names that are allowed.

    Returns
    -------
    str or (n,) int64 array
        One of the names, or labels 0..k-1.

    Raises
    ------
    ValueError
        If it is neither.

    Examples
    --------
    >>> from fastmmc.gram import Kernel
    >>> check_init([0, 1, 1], 3, 2, Kernel("rbf"))
    array([0, 1, 1])
    """
    if isinstance(init, str):
        validation.check_choice("init", init, choices)
        if init == "kmeans" and kernel.name == "precomputed":
            raise ValueError(
                f"init={init!r} needs points; with kernel='precomputed' give 'random' or labels"
            )
        return init
    labels = integer_labels("init", init, n)
    if labels.min() < 0 or labels.max() >= k:
        raise ValueError(
            f"init: labels must be 0..{k - 1}; got values from {labels.min()} to {labels.max()}"
        )
    return labels


def looks_partial(y):
    """Tell whether a ``y`` passed to ``fit`` is meant as partial labels.

    It counts if it contains -1 and some label >= 0; anything else (true labels handed around
    by a pipeline, text, floats) is ignored, as scikit-learn's clusterers ignore it.

    Parameters
    ----------
    y : array_like or None
        What ``fit`` was given.

    Returns
    -------
    bool
        True if y is meant as partial labels.

    Examples
    --------
    >>> looks_partial([0, -1, 1]), looks_partial([0, 1, 1]), looks_partial([-1, 1, 1])
    (True, False, True)
    """
    if y is None:
        return False
    values = np.asarray(y)
    if values.ndim != 1 or values.size == 0 or values.dtype.kind not in "iuf":
        return False
    return bool((values == -1).any() and (values >= 0).any())


def integer_labels(name, labels, n):
    """Check an array of n integer labels.

    Parameters
    ----------
    name : str
        The parameter's name, for messages.
    labels : array_like
        Integers, or floats with integer values.
    n : int
        How many there must be.

    Returns
    -------
    (n,) int64 array
        The labels.

    Raises
    ------
    ValueError
        If the shape is wrong or a label is not an integer.

    Examples
    --------
    >>> integer_labels("init", [0.0, 1.0], 2)
    array([0, 1])
    """
    values = np.asarray(labels)
    if values.shape != (n,):
        raise ValueError(
            f"{name} must have one label for each of the {n} points; got shape {values.shape}"
        )
    if values.dtype.kind not in "iufb":
        raise ValueError(f"{name} must hold integers; got dtype {values.dtype}")
    if values.dtype.kind == "f" and not (np.isfinite(values) & (values == np.rint(values))).all():
        raise ValueError(f"{name} must hold integers; got fractions, NaN or infinity")
    return values.astype(np.int64)
