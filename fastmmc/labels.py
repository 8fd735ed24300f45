"""Labels that are known, and labels that a search begins with."""

from __future__ import annotations

import numbers

import numpy as np

from fastmmc import validation

# Numbers of objects from here on are no numbers of objects.
MOST_OBJECTS = 2**62


def check_known_labels(labels, n, k=None, *, name="known_labels"):
    """Check labels that are known for some of the points.

    Parameters
    ----------
    labels : (n,) or (n, 1) array_like or None
        Integers from 0 on where known; -1, NaN or None (also NA of pandas) elsewhere.
    n : int
        Points.
    k : int, optional
        Clusters: known labels are then 0..k-1.
    name : str, default="known_labels"
        For messages.

    Returns
    -------
    (n,) int64 array or None
        The labels, -1 where unknown; None if labels is None.

    Raises
    ------
    ValueError
        If there are not n of them, or one is something else.

    Examples
    --------
    >>> check_known_labels([1, -1, float("nan"), None], 4, k=2)
    array([ 1, -1, -1, -1])
    """
    if labels is None:
        return None
    values = np.asarray(labels)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.shape != (n,):
        raise ValueError(
            f"{name} must have one label for each of the {n} points; got shape {values.shape}"
        )
    told = ~_are_missing(values)
    wrong = np.flatnonzero(~_are_labels(values[told], MOST_OBJECTS if k is None else k))
    if wrong.size:
        value = values[told][wrong[0]]
        value = value.item() if isinstance(value, np.generic) else value
        allowed = "integers from 0 on" if k is None else f"integers 0..{k - 1}"
        raise ValueError(
            f"{name} must hold {allowed} where labels are known, and -1, NaN or None where they "
            f"are not; got {value!r}"
        )
    checked = np.full(n, -1, dtype=np.int64)
    checked[told] = values[told].astype(np.int64)
    return checked


def _are_missing(values):
    """Tell which values are NaN, None or the NA of pandas."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind == "O":
        return np.fromiter(map(_is_missing, values), dtype=bool, count=values.size)
    return np.zeros(values.shape, dtype=bool)


def _is_missing(value):
    """Tell whether a value is None, NaN or the NA of pandas, which equals nothing."""
    return value is None or type(value).__name__ == "NAType" or is_number(value) and value != value


def _are_labels(values, k):
    """Tell which values are integers -1..k-1."""
    if values.dtype.kind == "O":
        return np.fromiter((_is_label(v, k) for v in values), dtype=bool, count=values.size)
    if values.dtype.kind not in "iuf":
        return np.zeros(values.shape, dtype=bool)
    return (values >= -1) & (values < k) & (values == np.rint(values))


def _is_label(value, k):
    return is_number(value) and -1 <= value < k and value == int(value)


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
        validation.check_choice("init", init, choices, " or an array of labels")
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


def is_number(value):
    """Tell whether a value is a real number, bools excepted."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)
