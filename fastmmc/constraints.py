"""Side information on the labels: partial labels, must-links and cannot-links."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, issparse
from scipy.sparse.csgraph import connected_components

from fastmmc import validation
from fastmmc.execution import warn_user

LABELS_AS = ("cannot_link", "must_link", "both")
ON_CONFLICT = ("raise", "warn")


@dataclass(frozen=True, eq=False)
class Links:
    """Pairs of objects that belong together, and pairs that do not; each pair once.

    Attributes
    ----------
    must, cannot : (p, 2) and (q, 2) int64 arrays
        Pairs of objects, in the order in which they were given.
    n_conflicts : int
        Cannot-links between objects that chains of must-links join.
    """

    must: np.ndarray
    cannot: np.ndarray
    n_conflicts: int = 0

    def n_violations(self, labels):
        """Count the constraints that labels violate.

        Parameters
        ----------
        labels : (n,) int array
            Clusters.

        Returns
        -------
        int
            Must-links apart and cannot-links together.
        """
        apart = labels[self.must[:, 0]] != labels[self.must[:, 1]]
        together = labels[self.cannot[:, 0]] == labels[self.cannot[:, 1]]
        return int(apart.sum() + together.sum())


def check_links(
    must_link,
    cannot_link,
    n,
    *,
    y=None,
    labels_as="cannot_link",
    on_conflict="raise",
    numbers=None,
):
    """Check must-links and cannot-links, and add those that partial labels imply.

    Parameters
    ----------
    must_link, cannot_link : (p, 2) array_like of int, sparse matrix or None
        Pairs of objects 0..n-1; of an (n, n) sparse matrix its entries other than 0.
    n : int
        Objects.
    y : (n,) array_like of int, optional
        Labels of any numbers from 0 on, -1 where unknown.
    labels_as : {"cannot_link", "must_link", "both"}, default="cannot_link"
        What labels imply: different ones a cannot-link, equal ones a must-link, or both.
    on_conflict : {"raise", "warn"}, default="raise"
        What to do about cannot-links between objects that must-links join.
    numbers : (n,) int array, optional
        What messages are to call the objects; None: 0..n-1.

    Returns
    -------
    Links
        Each pair once.

    Raises
    ------
    ValueError, TypeError
        If a pair is out of range, links an object to itself or contradicts others.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If pairs contradict each other and ``on_conflict="warn"``; all of them are kept.

    Examples
    --------
    >>> links = check_links([(0, 1)], None, 4, y=[0, -1, 1, 1])
    >>> links.must.tolist(), links.cannot.tolist()
    ([[0, 1]], [[0, 2], [0, 3]])
    """
    validation.check_choice("labels_as", labels_as, LABELS_AS)
    validation.check_choice("on_conflict", on_conflict, ON_CONFLICT)
    must = check_pairs("must_link", must_link, n)
    cannot = check_pairs("cannot_link", cannot_link, n)
    if y is not None:
        same, different = pairs_of_labels(known_labels(y, n))
        if labels_as != "cannot_link":
            must = np.concatenate((must, same))
        if labels_as != "must_link":
            cannot = np.concatenate((cannot, different))
    must, cannot = _each_once(must), _each_once(cannot)
    conflicts = find_conflicts(must, cannot)
    if conflicts.size:
        a, b = cannot[conflicts[0]] if numbers is None else numbers[cannot[conflicts[0]]]
        text = (
            f"{conflicts.size} of {len(cannot)} cannot-links are between objects that must-links "
            f"join, such as {a} and {b}"
        )
        if on_conflict == "raise":
            raise ValueError(f"{text}; remove them, or give on_conflict='warn'")
        warn_user(f"{text}; not all constraints can be met")
    return Links(must, cannot, int(conflicts.size))


def check_pairs(name, pairs, n):
    """Check pairs of objects.

    Parameters
    ----------
    name : str
        The parameter's name, for messages.
    pairs : (p, 2) array_like of int, (n, n) sparse matrix or None
        The pairs; of a sparse matrix its entries other than 0.
    n : int or None
        Objects; None: any number.

    Returns
    -------
    (p, 2) int64 array
        The pairs.

    Raises
    ------
    ValueError, TypeError
        If they are not pairs of two different objects 0..n-1.

    Examples
    --------
    >>> check_pairs("must_link", [(0, 1)], 2)
    array([[0, 1]])
    """
    if pairs is None:
        return np.empty((0, 2), dtype=np.int64)
    if issparse(pairs):
        if n is not None and pairs.shape != (n, n):
            raise ValueError(f"{name}: a sparse matrix must be {n} x {n}; got {pairs.shape}")
        entries = coo_array(pairs)
        kept = entries.data != 0
        values = np.column_stack([c[kept] for c in entries.coords])
    else:
        values = np.asarray(pairs)
    if values.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if values.ndim != 2 or values.shape[1] != 2:
        raise ValueError(
            f"{name} must be pairs of objects, an array of shape (p, 2) or a sparse matrix; "
            f"got shape {values.shape}"
        )
    if values.dtype.kind not in "iuf" or (
        values.dtype.kind == "f" and not (values == np.rint(values)).all()
    ):
        raise TypeError(f"{name} must hold the indices of objects; got dtype {values.dtype}")
    values = values.astype(np.int64)
    most = np.inf if n is None else n - 1
    outside = np.flatnonzero((values < 0).any(axis=1) | (values > most).any(axis=1))
    if outside.size:
        a, b = values[outside[0]]
        allowed = "numbered from 0" if n is None else f"0..{n - 1}"
        raise ValueError(f"{name}: objects are {allowed}; got the pair ({a}, {b})")
    alone = np.flatnonzero(values[:, 0] == values[:, 1])
    if alone.size:
        raise ValueError(f"{name} links object {values[alone[0], 0]} to itself")
    return values


def find_conflicts(must, cannot):
    """Return which cannot-links are between objects that chains of must-links join.

    Parameters
    ----------
    must, cannot : (p, 2) and (q, 2) int64 arrays
        Pairs of objects.

    Returns
    -------
    (c,) int64 array
        Rows of ``cannot``, rising.

    Examples
    --------
    >>> find_conflicts(np.array([[0, 1], [1, 2]]), np.array([[2, 3], [2, 0]]))
    array([1])
    """
    if not (len(must) and len(cannot)):
        return np.empty(0, dtype=np.int64)
    # Numbers without gaps: a stream may be long.
    objects, places = np.unique(np.concatenate((must, cannot)), return_inverse=True)
    places = places.reshape(-1, 2)
    a, b = places[: len(must)].T
    graph = coo_array((np.ones(len(must)), (a, b)), shape=(objects.size, objects.size))
    _, group = connected_components(graph, directed=False)
    a, b = group[places[len(must) :]].T
    return np.flatnonzero(a == b)


def known_labels(y, n):
    """Check labels that imply constraints.

    Parameters
    ----------
    y : (n,) array_like of int
        Labels of any numbers from 0 on, -1 where unknown.
    n : int
        Objects.

    Returns
    -------
    (n,) int64 array
        The labels.

    Raises
    ------
    ValueError
        If y has a wrong shape, is not integer or has labels below -1.

    Examples
    --------
    >>> known_labels([7, -1], 2)
    array([ 7, -1])
    """
    labels = integer_labels("y", y, n)
    if labels.min() < -1:
        raise ValueError(
            f"y: known labels must be 0 or above and unknown ones -1; got {labels.min()}"
        )
    return labels


def pairs_of_labels(labels):
    """Return the pairs of objects with equal, and with different known labels.

    Parameters
    ----------
    labels : (n,) int array
        Labels, -1 where unknown.

    Returns
    -------
    same, different : (p, 2) and (q, 2) int64 arrays
        Pairs i < j.

    Examples
    --------
    >>> same, different = pairs_of_labels(np.array([0, -1, 1, 1]))
    >>> same.tolist(), different.tolist()
    ([[2, 3]], [[0, 2], [0, 3]])
    """
    known = np.flatnonzero(labels >= 0)
    first, second = np.triu_indices(known.size, 1)
    pairs = np.column_stack((known[first], known[second])).astype(np.int64)
    equal = labels[pairs[:, 0]] == labels[pairs[:, 1]]
    return pairs[equal], pairs[~equal]


def partner_lists(pairs, n):
    """Return the partners of every object in compressed rows, in the order of the pairs.

    Parameters
    ----------
    pairs : (p, 2) int64 array
        Pairs of objects.
    n : int
        Objects.

    Returns
    -------
    start : (n + 1,) int64 array
        The partners of object i stand at start[i] .. start[i + 1] - 1.
    partners : (2 p,) int64 array
        Objects.

    Examples
    --------
    >>> partner_lists(np.array([[0, 2], [1, 2]]), 3)
    (array([0, 1, 2, 4]), array([2, 2, 0, 1]))
    """
    ends, others = pairs.ravel(), pairs[:, ::-1].ravel()
    order = np.argsort(ends, kind="stable")
    start = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(np.bincount(ends, minlength=n), out=start[1:])
    return start, np.ascontiguousarray(others[order])


def _each_once(pairs):
    """Return the pairs without repetitions, whichever way round, in their order."""
    _, first = np.unique(np.sort(pairs, axis=1), axis=0, return_index=True)
    return pairs[np.sort(first)]


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
