"""What is in each cluster: a table's columns, cluster by cluster, beside all points."""

from __future__ import annotations

import importlib
from collections import Counter
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from fastmmc.core.display import as_lines, as_table
from fastmmc.core.words import counted, not_installed
from fastmmc.data import cells
from fastmmc.data.coding import as_frame, kinds_of
from fastmmc.data.columns import CategoryColumn, DateColumn, NumberColumn

# Columns that are shown of each cluster, and typical rows.
COLUMNS_SHOWN, ROWS_SHOWN = 5, 5
# What is shown for all categories that are in few rows.
OTHER = "other"


@dataclass(frozen=True, eq=False)
class _ColumnProfile:
    """A column: how much each cluster differs in it, and which share of its cells is missing."""

    name: str
    kind: str
    differences: np.ndarray
    missing: np.ndarray
    own: list[str]  # what the values of each cluster are
    of_all: list[str]  # what those of all points are, to compare with
    values: list[dict[str, Any]]  # the same as plain values

    def text(self, h: int) -> str:
        """Return what people are shown of cluster h."""
        if self.missing[h] == 1:
            return "      all missing"
        gaps = f"; {self.gaps_text(h)}" if self.missing[h] else ""
        return f"{self.differences[h]:.2f}  {self.own[h]}; of all {self.of_all[h]}{gaps}"

    def gaps_text(self, h: int) -> str:
        """Return how many cells of cluster h are missing, "" if none is."""
        return f"{self.missing[h]:.0%} missing" if self.missing[h] else ""


@dataclass(frozen=True, eq=False, repr=False)
class ClusterProfile:
    """What is in each cluster; ``print`` shows the columns in which it differs most.

    The difference of a cluster is the largest one over all intervals of a column, or over all sets
    of its categories: by how much the share of the cluster's points that are inside differs from
    that of the points of all other clusters. It is 1 where one holds all of the former and none of
    the latter, and 0 where the values are spread alike. Missing cells do not count, nor do points
    that are in no cluster.

    Attributes
    ----------
    sizes : (k,) int64 array
        Points of each cluster.
    shares : (k,) float64 array
        The same as shares of all points that are in a cluster.
    n_left_out : int
        Points with the label -1, which are in no cluster.
    columns : tuple
        The profiles of the columns, which :meth:`records` has as plain values.
    not_used : dict of str to str
        Columns that tell nothing, as ids and those without differences, and why.
    typical : tuple of k int64 arrays, or None
        The most typical rows of each cluster, from 0; None where the result has no ``exemplars``.

    Notes
    -----
    In a column that has nothing to do with the clusters the difference of a cluster of s points
    among many is about 1.25 / s^(1/2), by chance: .18 for 50 points, .4 for ten.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> res = fastmmc.umc_rls(X, 3, n_init=3, random_state=0)
    >>> profile = res.profile(X)
    >>> profile.sizes.sum(), len(profile.columns), len(profile.records())
    (np.int64(150), 4, 12)
    """

    sizes: NDArray[np.int64]
    shares: NDArray[np.float64]
    n_left_out: int
    columns: tuple[Any, ...]
    not_used: dict[str, str]
    typical: tuple[NDArray[np.int64], ...] | None = None

    def records(self) -> list[dict[str, Any]]:
        """Return a dict for each cluster and column.

        Returns
        -------
        list of dict
            ``cluster``, ``size``, ``share``, ``column``, ``kind``, ``difference``, ``missing`` (a
            share). Numbers and dates have ``lower_quartile``, ``median``, ``upper_quartile`` and
            ``median_of_all`` besides, categories the most frequent ``category``, its
            ``share_in_cluster`` and ``share_of_all``. The columns of a cluster that differ most
            come first.
        """
        return [
            {
                "cluster": h,
                "size": int(self.sizes[h]),
                "share": float(self.shares[h]),
                "column": column.name,
                "kind": column.kind,
                "difference": float(column.differences[h]),
                "missing": float(column.missing[h]),
                **column.values[h],
            }
            for h in range(self.sizes.size)
            for column in self.by_difference(h)
        ]

    def to_frame(self) -> Any:
        """Return :meth:`records` as a data frame.

        Returns
        -------
        pandas.DataFrame
            A row for each cluster and column.

        Raises
        ------
        ImportError
            If pandas is not installed; ``records()`` does without.
        """
        try:
            pandas = importlib.import_module("pandas")
        except ImportError as error:
            instead = "; records() does without"
            raise not_installed("to_frame needs pandas", "pandas", instead) from error
        return pandas.DataFrame(self.records())

    def __repr__(self):
        return f"ClusterProfile({self._headline()})"

    def __str__(self):
        tables = [as_lines(self._title(h), self._rows(h)) for h in range(self.sizes.size)]
        return "\n".join([self._headline(), *tables, *self._remarks()])

    def _repr_html_(self):
        tables = [as_table(self._title(h), self._rows(h)) for h in range(self.sizes.size)]
        lines = [f"<p>{escape(line)}</p>" for line in (self._headline(), *self._remarks())]
        return "".join([lines[0], *tables, *lines[1:]])

    def by_difference(self, h: int) -> list[_ColumnProfile]:
        """Return the columns in which a cluster differs most first."""
        return sorted(self.columns, key=lambda column: -column.differences[h])

    def _headline(self):
        number, columns = self.sizes.size, counted(len(self.columns), "column")
        points = counted(int(self.sizes.sum()), "point")
        return f"{points} in {counted(number, 'cluster')}, by {columns}"

    def _title(self, h):
        return f"cluster {h}: {counted(int(self.sizes[h]), 'point')}, {self.shares[h]:.1%}"

    def _rows(self, h):
        shown = self.by_difference(h)[:COLUMNS_SHOWN]
        rows = {f"  {column.name}": column.text(h) for column in shown}
        if self.typical is not None:
            rows["  typical rows"] = " ".join(map(str, self.typical[h]))
        return rows

    def _remarks(self):
        """Return what is to be said below the clusters."""
        lines = [
            "First the difference from the other clusters, from 0 (none) to 1; then the median "
            "(quartiles), or the most frequent category."
        ]
        if len(self.columns) > COLUMNS_SHOWN:
            lines.append(f"Columns that differ less are not shown, {COLUMNS_SHOWN} a cluster are.")
        if self.n_left_out:
            lines.append(f"{counted(self.n_left_out, 'point')} in no cluster did not count.")
        lines += [f"Column {name!r} is {why}." for name, why in self.not_used.items()]
        return lines


def profile_of(result, X) -> ClusterProfile:
    """Return the profile of a result by the columns of a table of its points."""
    labels = np.asarray(result.labels)
    frame = read_table(X, result.feature_names_in)
    if frame.n_rows != labels.size:
        raise ValueError(
            f"X has {frame.n_rows} rows, and the result {labels.size} points; give the points it "
            "was made of, or other columns of the same rows"
        )
    kinds = _kinds_of(result, frame)
    names = distinct_names(frame.names)
    k = result.sizes.size
    columns: list[_ColumnProfile] = []
    not_used = {}
    for name, kind, values in zip(names, kinds, frame.columns, strict=True):
        if isinstance(kind, CategoryColumn):
            columns.append(_profile_categories(name, kind, values, labels, k))
        elif isinstance(kind, NumberColumn | DateColumn):
            numbers = np.asarray(kind.read(values)[0], dtype=np.float64)
            columns.append(_profile_numbers(name, kind, numbers, labels, k))
        else:
            not_used[name] = kind.said
    sizes, n_in = result.sizes, int(result.sizes.sum())
    shares, n_left_out = sizes / max(1, n_in), labels.size - n_in
    typical = None
    if getattr(result, "loo_scores", None) is not None:
        typical = tuple(rows[:ROWS_SHOWN] for rows in result.exemplars)
    return ClusterProfile(sizes, shares, n_left_out, tuple(columns), not_used, typical)


def _kinds_of(result, frame):
    """Return what each column of a table is; those that made the clusters are all used.

    Of such a table, numbers have the decimal mark that they had, and ids are left out as they were.
    """
    coding, names, d = result.coding, result.feature_names_in, len(frame.names)
    if coding is not None:
        names = [column.name for column in coding.columns]
    own = _unnamed(d) if names is None else [str(name) for name in names]
    if len(own) != d or frame.names not in (own, _unnamed(d), [str(j) for j in range(d)]):
        return kinds_of(frame)
    found = kinds_of(frame, keeps_all=True)
    if coding is None:
        return found
    return [
        known
        if not known.width or (known.kind == "numbers" and type(known) is type(kind))
        else kind
        for known, kind in zip(coding.columns, found, strict=True)
    ]


def _unnamed(d):
    """Return what columns without names are called."""
    return [f"column {j}" for j in range(d)]


def date_text(days, unit):
    """Return days since 1970 as a date, or with "m" for the unit as a date and a time."""
    when = np.datetime64(round(days * cells.DAY), "s").astype(f"M8[{unit}]")
    return str(when).replace("T", " ")


def read_table(X, names):
    """Return a table as columns that have names; ``names`` are used if it has none."""
    if hasattr(X, "compute"):
        raise TypeError("X is in blocks, and a profile sorts whole columns; give X.compute()")
    if issparse(X):
        raise TypeError(
            "X is sparse, and a profile is of a table; give X.toarray(), or some columns"
        )
    frame = as_frame(X)
    if not frame.columns:
        raise ValueError("X has no columns; give at least one")
    if frame.names:
        return frame
    d = len(frame.columns)
    if names is None or len(names) != d:
        names = _unnamed(d)
    return frame._replace(names=[str(name) for name in names])


def distinct_names(names):
    """Return names, with the place behind those that are there several times."""
    names = list(names)
    while len(counts := Counter(names)) < len(names):  # "a (1)" may be a name as well
        names = [name if counts[name] == 1 else f"{name} ({j})" for j, name in enumerate(names)]
    return names


def _profile_numbers(name, kind, numbers, labels, k):
    """Return the profile of a column of numbers, or of dates as days."""
    if np.isinf(numbers).any():
        raise ValueError(f"column {name!r} holds infinite values; expected finite ones")
    known = (labels >= 0) & ~np.isnan(numbers)
    groups = [np.sort(numbers[known & (labels == h)]) for h in range(k)]
    of_all = np.sort(numbers[known])
    unit = ""
    is_clock = kind.kind == "dates" and kind.form in cells.CLOCKS
    if kind.kind == "dates":
        days_alone = (of_all == np.floor(of_all)).all() and not is_clock
        unit = "D" if days_alone else "m"
    quartiles = [
        np.quantile(values, [0.25, 0.5, 0.75]) if values.size else np.full(3, np.nan)
        for values in (*groups, of_all)
    ]

    def show(value):
        if not unit:
            return f"{value:.6g}"
        text = date_text(value, unit)
        return text[11:] if is_clock else text

    def plain(value):
        if np.isnan(value):
            return None
        return show(value) if unit else float(value)

    def words(lower, median, upper):
        if np.isnan(median):
            return ""
        shown = show(median)
        return shown if lower == upper else f"{shown} ({show(lower)} to {show(upper)})"

    names = ("lower_quartile", "median", "upper_quartile", "median_of_all")
    rows = [(*own, quartiles[-1][1]) for own in quartiles[:-1]]
    return _ColumnProfile(
        name,
        kind.kind,
        np.array([_interval_difference(group, of_all) for group in groups]),
        _missing_shares(known, labels, k),
        [words(*own) for own in quartiles[:-1]],
        [words(*quartiles[-1])] * k,
        [dict(zip(names, map(plain, row), strict=True)) for row in rows],
    )


def _interval_difference(own, of_all):
    """Return by how much shares of sorted values and of the others in some interval differ.

    That is Kuiper's statistic, the largest difference of the distribution functions in one
    direction plus that in the other. Each is attained at a value of one's own.
    """
    m, others = own.size, of_all.size - own.size
    if not (m and others):
        return 0.0
    above, below = (
        np.searchsorted(own, own, side) / m
        - (np.searchsorted(of_all, own, side) - np.searchsorted(own, own, side)) / others
        for side in ("right", "left")
    )
    return float(max(above.max(), 0.0) - min(below.min(), 0.0))


def _profile_categories(name, kind, values, labels, k):
    at, is_known = kind.read(values)  # -1, the last place, for others
    known = (labels >= 0) & is_known
    categories = [*kind.levels, OTHER]
    counts = np.zeros((k, len(categories)))
    np.add.at(counts, (labels[known], at[known]), 1)
    total = counts.sum(axis=0)
    shares, whole = _in_shares(counts), _in_shares(total[None])[0]
    is_apart = (counts.sum(axis=1) > 0) & (counts.sum(axis=1) < total.sum())
    distances = np.abs(shares - _in_shares(total - counts)).sum(axis=1) / 2.0
    missing = _missing_shares(known, labels, k)
    own, of_all, values = [], [], []
    for h, most in enumerate(shares.argmax(axis=1)):
        category, share, all_share = categories[most], shares[h, most], whole[most]
        own.append(f"{category}: {share:.0%}")
        of_all.append(f"{all_share:.0%}")
        row = (category, float(share), float(all_share)) if missing[h] < 1 else (None,) * 3
        names = ("category", "share_in_cluster", "share_of_all")
        values.append(dict(zip(names, row, strict=True)))
    distances = np.where(is_apart, distances, 0.0)
    return _ColumnProfile(name, kind.kind, distances, missing, own, of_all, values)


def _in_shares(counts):
    """Return rows of counts as shares of their sums."""
    return counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)


def _missing_shares(known, labels, k):
    """Return the share of each cluster's cells that are missing."""
    sizes = np.bincount(labels[labels >= 0], minlength=k)
    return 1.0 - np.bincount(labels[known], minlength=k) / np.maximum(sizes, 1)
