"""Must-links and cannot-links: pairs of objects that belong together, and pairs that do not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, issparse
from scipy.sparse.csgraph import connected_components

from fastmmc import memory, validation
from fastmmc._display import OneLine
from fastmmc.execution import warn_user
from fastmmc.labels import MOST_OBJECTS, check_known_labels, is_number

LABELS_AS = ("cannot_link", "must_link", "both")
ON_CONFLICT = ("raise", "warn")

# What a pair that labels imply takes until the solvers have it in their lists of partners (64
# bytes at the peak, measured), and a little more.
BYTES_PER_PAIR = 70


@dataclass(frozen=True, eq=False, repr=False)
class Links(OneLine):
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
    known_labels=None,
    labels_as="cannot_link",
    on_conflict="raise",
):
    """Check must-links and cannot-links, and add those that partial labels imply.

    Parameters
    ----------
    must_link, cannot_link : (p, 2) array_like of int, sparse matrix or None
        Pairs of objects 0..n-1; of an (n, n) sparse matrix its entries other than 0.
    n : int
        Objects.
    known_labels : (n,) array_like, optional
        As :func:`check_known_labels` takes them.
    labels_as : {"cannot_link", "must_link", "both"}, default="cannot_link"
        What labels imply: different ones a cannot-link, equal ones a must-link, or both.
    on_conflict : {"raise", "warn"}, default="raise"
        What to do about cannot-links between objects that must-links join.

    Returns
    -------
    Links
        Each pair once.

    Raises
    ------
    ValueError, TypeError
        If a pair is out of range, links an object to itself or contradicts others.
    MemoryError
        If the pairs that labels imply do not fit into free memory.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If pairs contradict each other and ``on_conflict="warn"``; all of them are kept.

    Examples
    --------
    >>> links = check_links([(0, 1)], None, 4, known_labels=[0, -1, 1, 1])
    >>> links.must.tolist(), links.cannot.tolist()
    ([[0, 1]], [[0, 2], [0, 3]])
    """
    validation.check_choice("labels_as", labels_as, LABELS_AS)
    validation.check_choice("on_conflict", on_conflict, ON_CONFLICT)
    must = _each_once(check_pairs("must_link", must_link, n))
    cannot = _each_once(check_pairs("cannot_link", cannot_link, n))
    labels = check_known_labels(known_labels, n)
    found = find_contradictions(must, cannot, labels, labels_as)
    report_contradictions(found, on_conflict)
    if labels is not None:
        if labels_as != "cannot_link":
            must = _with_implied(must, labels, True)
        if labels_as != "must_link":
            cannot = _with_implied(cannot, labels, False)
    return Links(must, cannot, found.count)


def _with_implied(pairs, labels, equal):
    """Return the pairs, and behind them those that labels imply and that are not among them."""
    implied = pairs_of_labels(labels, equal)
    if len(pairs):
        # The implied ones rise.
        given = np.sort(pairs, axis=1) @ [labels.size, 1]
        keys = implied @ [labels.size, 1]
        places = np.searchsorted(keys, given)
        places = places[places < keys.size]
        implied = np.delete(implied, places[np.isin(keys[places], given)], axis=0)
    return np.concatenate((pairs, implied)) if len(pairs) else implied


@dataclass(frozen=True)
class Contradictions:
    """Cannot-links between objects that chains of must-links join.

    Attributes
    ----------
    count : int
        How many there are.
    n_cannot : int
        Cannot-links in all, those that labels imply among them.
    example : tuple of int or None
        The objects of one of them.
    """

    count: int
    n_cannot: int
    example: tuple | None


def find_contradictions(must, cannot, labels=None, labels_as="cannot_link", numbers=None):
    """Find the cannot-links that must-links contradict, without making those of labels.

    Parameters
    ----------
    must, cannot : (p, 2) and (q, 2) int64 arrays
        Pairs of objects 0..n-1, each once.
    labels : (n,) int64 array, optional
        Labels of the objects, -1 where unknown.
    labels_as : {"cannot_link", "must_link", "both"}, default="cannot_link"
        What they imply.
    numbers : (n,) int array, optional
        What the example is to call the objects; None: 0..n-1.

    Returns
    -------
    Contradictions
        Of pairs and labels together.

    Examples
    --------
    >>> must, cannot = np.array([[0, 1]]), np.array([[2, 0]])
    >>> find_contradictions(must, cannot, np.array([3, 4, 3])).count
    1
    """
    if labels is None:
        labels = np.full(1 + max(must.max(initial=-1), cannot.max(initial=-1)), -1)
    group = _join(must, labels, labels_as != "cannot_link")
    a, b = cannot.T
    joined = group[a] == group[b]
    rows, n_implied, n_wrong = np.flatnonzero(joined), 0, 0
    example = tuple(cannot[rows[0]].tolist()) if rows.size else None
    if labels_as != "must_link":
        known = np.flatnonzero(labels >= 0)
        n_implied = _count_different(np.zeros_like(known), labels[known])
        n_wrong = _count_different(group[known], labels[known])
        if example is None and n_wrong:
            example = _first_different(known, group, labels)
        # Pairs that labels imply as well count once.
        implied = (labels[a] >= 0) & (labels[b] >= 0) & (labels[a] != labels[b])
        joined, n_implied = joined & ~implied, n_implied + int((~implied).sum())
    else:
        n_implied = len(cannot)
    if example is not None and numbers is not None:
        example = tuple(numbers[list(example)].tolist())
    return Contradictions(int(joined.sum()) + n_wrong, n_implied, example)


def report_contradictions(found, on_conflict):
    """Raise an error, or warn, if there are contradictions.

    Parameters
    ----------
    found : Contradictions
        From :func:`find_contradictions`.
    on_conflict : {"raise", "warn"}
        Which of both.

    Raises
    ------
    ValueError
        If there are some and ``on_conflict="raise"``.
    """
    if not found.count:
        return
    a, b = found.example
    text = (
        f"{found.count} of {found.n_cannot} cannot-links are between objects that must-links "
        f"join, such as {a} and {b}"
    )
    if on_conflict == "raise":
        raise ValueError(f"{text}; remove them, or give on_conflict='warn'")
    warn_user(f"{text}; not all constraints can be met")


def _join(must, labels, join_equal):
    """Return a number for every object, equal where chains of must-links join them."""
    n = labels.size
    a, b = must.T
    if join_equal:
        # Objects of one label hang on one more node.
        known = np.flatnonzero(labels >= 0)
        kinds, kind = np.unique(labels[known], return_inverse=True)
        a, b = np.concatenate((a, known)), np.concatenate((b, n + kind))
        n += kinds.size
    graph = coo_array((np.ones(a.size), (a, b)), shape=(n, n))
    return connected_components(graph, directed=False)[1]


def _count_different(group, labels):
    """Count the pairs of objects of one group that have different labels."""

    def count(values):
        sizes = np.unique(values, return_counts=True, axis=0)[1]
        return int((sizes * (sizes - 1) // 2).sum())

    return count(group) - count(np.column_stack((group, labels)))


def _first_different(known, group, labels):
    """Return the first two objects of one group that have different labels."""
    order = known[np.lexsort((labels[known], group[known]))]
    apart = (group[order[1:]] == group[order[:-1]]) & (labels[order[1:]] != labels[order[:-1]])
    members = known[np.isin(group[known], group[order[1:][apart]])]
    first = members[0]
    others = members[(group[members] == group[first]) & (labels[members] != labels[first])]
    return int(first), int(others[0])


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
    values = _pair_array(name, pairs, n)
    if values.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if values.ndim != 2 or values.shape[1] != 2:
        raise ValueError(
            f"{name} must be pairs of objects, an array of shape (p, 2) or a sparse matrix; "
            f"got shape {values.shape}"
        )
    values = _check_indices(name, values)
    most = (MOST_OBJECTS if n is None else n) - 1
    outside = np.flatnonzero((values < 0).any(axis=1) | (values > most).any(axis=1))
    if outside.size:
        pair = ", ".join(
            str(v) if isinstance(v, int) else format(v, ".17g") for v in values[outside[0]].tolist()
        )
        allowed = "numbered from 0" if n is None else f"0..{n - 1}"
        raise ValueError(f"{name}: objects are {allowed}; got the pair ({pair})")
    values = values.astype(np.int64)
    alone = np.flatnonzero(values[:, 0] == values[:, 1])
    if alone.size:
        raise ValueError(f"{name} links object {values[alone[0], 0]} to itself")
    return values


def _pair_array(name, pairs, n):
    """Return the pairs as an array of whatever they hold."""
    if issparse(pairs):
        if n is not None and pairs.shape != (n, n):
            raise ValueError(f"{name}: a sparse matrix must be {n} x {n}; got {pairs.shape}")
        with validation.naming(name):
            entries = coo_array(validation.check_structure(pairs))
        kept = entries.data != 0
        return np.column_stack([c[kept] for c in entries.coords])
    try:
        return np.asarray(pairs)
    except ValueError:
        raise ValueError(
            f"{name} must be pairs of objects, an array of shape (p, 2) or a sparse matrix; "
            "got rows of different lengths"
        ) from None


def _check_indices(name, values):
    """Return an array of whole numbers, of whatever dtype; name the first value that is none."""
    if values.dtype.kind == "O":
        wrong = [v for v in values.ravel() if not is_number(v)]
        values = values if wrong else values.astype(np.float64)
    elif values.dtype.kind not in "iuf":
        wrong = values.ravel()
    else:
        wrong = []
    if values.dtype.kind == "f":
        wrong = values[values != np.rint(values)]
    if len(wrong):
        value = wrong[0].item() if isinstance(wrong[0], np.generic) else wrong[0]
        raise TypeError(f"{name} must hold the indices of objects; got {value!r}")
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


def pairs_of_labels(labels, equal):
    """Return the pairs of objects with equal, or with different known labels.

    Parameters
    ----------
    labels : (n,) int array
        Labels, -1 where unknown.
    equal : bool
        Which of both.

    Returns
    -------
    (p, 2) int64 array
        Pairs i < j, in their order.

    Raises
    ------
    MemoryError
        If there are too many for free memory.

    Examples
    --------
    >>> labels = np.array([0, -1, 1, 1])
    >>> pairs_of_labels(labels, True).tolist(), pairs_of_labels(labels, False).tolist()
    ([[2, 3]], [[0, 2], [0, 3]])
    """
    known = np.flatnonzero(labels >= 0)
    kinds = labels[known]
    n_pairs = _count_different(np.zeros_like(kinds), kinds)
    if equal:
        n_pairs = kinds.size * (kinds.size - 1) // 2 - n_pairs
    memory.check_pair_memory(known.size, n_pairs, BYTES_PER_PAIR)
    pairs = np.empty((n_pairs, 2), dtype=np.int64)
    at = 0
    for i in range(known.size):
        others = known[i + 1 :][(kinds[i + 1 :] == kinds[i]) == equal]
        pairs[at : at + others.size, 0] = known[i]
        pairs[at : at + others.size, 1] = others
        at += others.size
    return pairs


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


def unique_pairs(pairs):
    """Return the pairs without repetitions, whichever way round.

    Parameters
    ----------
    pairs : (p, 2) int64 array
        Pairs of objects.

    Returns
    -------
    (q, 2) int64 array
        The lower object first, and the pairs in rising order.

    Examples
    --------
    >>> unique_pairs(np.array([[3, 1], [0, 2], [1, 3]])).tolist()
    [[0, 2], [1, 3]]
    """
    return np.sort(pairs, axis=1)[_first_places(pairs)]


def _each_once(pairs):
    """Return the pairs without repetitions, whichever way round, in their order."""
    return pairs[np.sort(_first_places(pairs))]


def _first_places(pairs):
    """Return where every pair, whichever way round, is first, in the order of the pairs."""
    low, high = np.sort(pairs, axis=1).T
    order = np.lexsort((high, low))
    new = np.ones(order.size, dtype=bool)
    new[1:] = (np.diff(low[order]) != 0) | (np.diff(high[order]) != 0)
    return order[new]
