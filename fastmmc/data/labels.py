"""Labels that are known, and labels that a search begins with."""

import numbers

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array

from fastmmc.core import validation
from fastmmc.core.words import counted, first_of

# Objects and labels are numbered below this.
MOST_OBJECTS = 2**62

# What NumPy makes of -1 and NaN in an array of strings, and what clusters without a name have.
TEXTS_FOR_UNKNOWN = ("-1", "nan", "")


def check_known_labels(labels, n, k=None, *, name="known_labels"):
    """Return known labels as (n,) int64, -1 where they are -1, NaN, None or pandas' NA; or None.

    Known labels are integers from 0 on, below k where k is given.
    """
    if labels is None:
        return None
    values = _column(labels, n, name)
    told = ~_are_missing(values)
    rows = np.flatnonzero(told)
    wrong = rows[~_are_labels(values[told], MOST_OBJECTS if k is None else k)]
    if wrong.size:
        allowed = "integers from 0 on" if k is None else f"integers 0..{k - 1}"
        raise ValueError(
            f"{name} must hold {allowed} where labels are known, and -1, NaN or None where they "
            f"are not; got {plain(values[wrong[0]])!r} in {_rows(wrong)}"
        )
    checked = np.full(n, -1, dtype=np.int64)
    checked[told] = values[told].astype(np.int64)
    return checked


def read_known_labels(labels, n, k=None, *, name="known_labels"):
    """Return known labels as :func:`check_known_labels` does, and what they call the clusters.

    Known labels may be names: strings, which become the first clusters in their sorted order. Then
    the second value is (k,) strings, empty for a cluster that has no name; else it is None. Where
    k is None, there are as many clusters as names.
    """
    if labels is None:
        return None, None
    values = _column(labels, n, name)
    is_name = np.False_
    if values.dtype.kind in "OU":
        is_name = _mask(values, lambda v: isinstance(v, str))
    if not is_name.any():
        return check_known_labels(values, n, k, name=name), None
    told = ~(_are_missing(values) | _mask(values, lambda v: is_number(v) and v == -1))
    for wrong, reason in (
        (told & ~is_name, "holds names, so that every known label must be one"),
        (
            _mask(values, lambda v: isinstance(v, str) and v in TEXTS_FOR_UNKNOWN),
            "holds a text for what is not known",
        ),
    ):
        rows = np.flatnonzero(wrong)
        if rows.size:
            raise ValueError(
                f"{name} {reason}; got {plain(values[rows[0]])!r} in {_rows(rows)}; give an "
                "array of objects with -1, NaN or None where labels are not known"
            )
    classes, codes = np.unique(values[told].astype(str), return_inverse=True)
    k = classes.size if k is None else k
    if classes.size > k:
        which = first_of([*map(repr, classes.tolist())])
        raise ValueError(
            f"{name} has {counted(classes.size, 'name')} ({which}), more than the "
            f"{counted(k, 'cluster')}"
        )
    known, names = np.full(n, -1, dtype=np.int64), np.full(k, "", dtype=object)
    known[told] = codes
    names[: classes.size] = classes.tolist()
    return known, names


def _column(labels, n, name):
    """Return n labels of any type; a list keeps its numbers beside strings."""
    values = validation.to_array(name, labels)
    if values.dtype.kind == "U" and isinstance(labels, list | tuple):
        values = np.asarray(labels, dtype=object)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.shape != (n,):
        raise ValueError(
            f"{name} must have one label for each of the {n} points; got shape {values.shape}"
        )
    return values


def _mask(values, is_such):
    """Tell of which values a function is true."""
    return np.fromiter(map(is_such, values), dtype=bool, count=values.size)


def _rows(rows):
    """Return rows as messages say them."""
    more = f" and {rows.size - 1} more" if rows.size > 1 else ""
    return f"row {rows[0]}{more}"


def _are_missing(values):
    """Tell which values are NaN, None or pandas' NA."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind == "O":
        # pandas' NA equals nothing.
        return _mask(
            values,
            lambda v: v is None or type(v).__name__ == "NAType" or (is_number(v) and v != v),
        )
    return np.zeros(values.shape, dtype=bool)


def _are_labels(values, k):
    """Tell which values are integers -1..k-1."""
    if values.dtype.kind == "O":
        return _mask(values, lambda v: is_number(v) and -1 <= v < k and v == int(v))
    if values.dtype.kind not in "iuf":
        return np.zeros(values.shape, dtype=bool)
    return (values >= -1) & (values < k) & (values == np.rint(values))


def matched_clusters(a, b, k, masses=1):
    """Return which cluster of ``b`` goes with each cluster of ``a``, for the greatest overlap."""
    overlap = np.zeros((k, k))
    np.add.at(overlap, (a, b), masses)
    return linear_sum_assignment(overlap, maximize=True)[1]


def named_clusters(labels, known, k, masses=None):
    """Return labels under the names that agree with most known ones, -1 where unknown, by mass."""
    told = known >= 0
    weights = 1 if masses is None else masses[told]
    return matched_clusters(labels[told], known[told], k, weights)[labels]


def agreement(labellings, k, weights=None):
    """Return the adjusted Rand index of each pair, (m, m), of points that count ``weights``."""
    m, n_objects = np.shape(labellings)
    weights = np.ones(n_objects) if weights is None else weights
    n = weights.sum()
    clusters = (np.transpose(labellings) + k * np.arange(m)).ravel()
    rows, shape = m * np.arange(n_objects + 1), (n_objects, m * k)
    members = csr_array((np.ones(clusters.size), clusters, rows), shape=shape)
    weighted = csr_array((np.repeat(weights, m), clusters, rows), shape=shape)
    counts = (members.T @ weighted).tocoo()
    pairs = counts.row // k * m + counts.col // k
    together = np.bincount(pairs, counts.data * (counts.data - 1.0) / 2.0, m * m).reshape(m, m)
    own = np.diagonal(together)
    expected = np.outer(own, own) / max(1.0, n * (n - 1) / 2.0)
    most = (own[:, None] + own) / 2.0
    same = most - expected <= 0
    return np.where(same, 1.0, (together - expected) / np.where(same, 1.0, most - expected))


def check_init(init, n, k, kernel, choices=("random", "kmeans")):
    """Return ``init`` as one of the names in ``choices``, or as (n,) int64 labels 0..k-1."""
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


def integer_labels(name, labels, n, what="label"):
    """Return n integers, labels or something else, floats with integer values too, as int64."""
    values = validation.to_array(name, labels)
    if values.shape != (n,):
        raise ValueError(
            f"{name} must have one {what} for each of the {n} points; got shape {values.shape}"
        )
    if values.dtype.kind not in "iufb":
        raise ValueError(f"{name} must hold integers; got dtype {values.dtype}")
    if values.dtype.kind == "f" and not (np.isfinite(values) & (values == np.rint(values))).all():
        raise ValueError(f"{name} must hold integers; got fractions, NaN or infinity")
    return values.astype(np.int64)


def plain(value):
    """Return a NumPy scalar as a Python object, for messages; anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def is_number(value):
    """Tell whether a value is a real number, bools excepted."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)
