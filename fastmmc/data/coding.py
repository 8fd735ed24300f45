"""The coding of a table: columns of any kinds as numbers of comparable weight."""

from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np
from sklearn.utils import gen_batches

from fastmmc.core import validation
from fastmmc.core.execution import is_first, warn_user
from fastmmc.core.saving import stored
from fastmmc.core.threads import in_threads, run_to_end
from fastmmc.core.words import counted, first_of, named, quoted
from fastmmc.data._loops_gaps import fill_gaps
from fastmmc.data.columns import (
    IDS,
    LARGEST,
    CategoryColumn,
    Column,
    DateColumn,
    NumberColumn,
    as_counts,
    binary_scale,
    check_finite,
    fit_column,
    made_even,
    unsure_example,
    unused_numbers,
)
from fastmmc.data.frames import Frame, is_frame, read_frame, read_values
from fastmmc.data.suspects import look_at, warn_of_suspects
from fastmmc.data.units import warn_of_units
from fastmmc.kernels.gram import BLOCK, evenly

# Missing cells are the means of this many of the nearest rows, of so many. If 30 % of the cells are
# missing at random, the mean ARI of cluster on 11 sets is .488 by medians, .617 by one row, .658 by
# 5, .661 by 10 and .644 by 20; with 10 % it is .697 by medians and .785, .787 and .776 by 5, 10 and
# 20; where 20 % are, more in some classes, .642 and .724, .727 and .716. On six sets of 1,372 to
# 3,000 rows it is .353, .444, .445 and .444 by 5 of 100, 300, 1,000 and all rows (.299 by medians)
# with 30 %, and .566, .565, .563 and .572 (.467) with 10 %.
NEIGHBOURS = 5
ROWS = 1_000


@stored(rows="f8?:md", weights="f8:m")
class Coding:
    """How the columns of a table become numbers; ``str()`` of it tells what was done with each."""

    columns: tuple[Column, ...]
    is_scaled: bool  # whether columns of numbers have deviation 1
    # Some rows as numbers without marks, NaN where cells are missing, and their weights; None where
    # no cell was missing.
    rows: np.ndarray | None = None
    weights: np.ndarray | None = None

    def __str__(self):
        return "\n".join(self.lines())

    @property
    def is_plain(self) -> bool:
        """Whether all columns are numbers, and remain as they are."""
        return not self.is_scaled and all(
            isinstance(column, NumberColumn) and column.width == 1 and column.mark == "."
            for column in self.columns
        )

    @property
    def used(self) -> list[Column]:
        """The columns that are not left out."""
        return [column for column in self.columns if column.width]

    @property
    def n_features(self) -> int:
        """How many numbers a row becomes."""
        return sum(column.width for column in self.columns)

    def places(self) -> list[slice]:
        """Return where the numbers of each column are in a row."""
        ends = np.cumsum([column.width for column in self.columns]).tolist()
        return [slice(end - c.width, end) for c, end in zip(self.columns, ends, strict=True)]

    @property
    def features(self) -> list[str]:
        """What these numbers are called."""
        return [name for column in self.used for name in column.features]

    def lines(self) -> list[str]:
        """Return a line on each column, or several alike in a row."""
        lines = []
        for said, alike in groupby(self.columns, key=lambda column: column.said):
            names = [column.name for column in alike]
            which = f"column {names[0]!r}"
            if len(names) > 1:
                which = f"columns {names[0]!r} to {names[-1]!r} ({len(names)})"
                said = said.replace(", as it ", ", as each ").replace(", as its ", ", as their ")
            lines.append(f"{which}: {said}")
        return lines

    def code(self, X) -> tuple[np.ndarray, list[str], list[str]]:
        """Return a table, or an array of its columns, as numbers.

        Also returns what is to be said of cells that were not understood, and of those that are
        missing or may be two numbers.
        """
        parts, unknown, others = [], [], []
        for column, values in _with_own_marks([*self._matched(as_frame(X))]):
            if column.kind == "numbers" and (example := unsure_example(values, column.mark)):
                others.append(f"column {column.name!r}: {example}")
            numbers, n_gaps, strange = column.code(values)
            check_finite(column.name, numbers, LARGEST)
            parts.append(numbers)
            if strange:
                is_new = column.kind == "categories"
                what = "not seen before" if is_new else f"read as missing, no {column.kind}"
                cells = f"{counted(len(strange), 'cell')} such as {quoted(strange[0])}"
                unknown.append(f"column {column.name!r}: {cells} {what}")
            if n_gaps:
                others.append(f"column {column.name!r}: {counted(n_gaps, 'missing cell')}")
        return self._filled(np.ascontiguousarray(np.hstack(parts))), unknown, others

    def _filled(self, X):
        """Return coded rows, (n, d), whose missing cells are as in similar rows."""
        if not np.isnan(X).any():
            return X
        fillers = [column.fillers for column in self.columns]
        starts = [place.start for place in self.places()]
        at = np.concatenate([a + np.arange(len(f)) for a, f in zip(starts, fillers, strict=True)])
        values = X[:, at].astype(np.float64)
        gaps = np.isnan(values)
        if self.rows is not None:
            scales = 1.0 if self.is_scaled else np.nanstd(self.rows, axis=0)
            scales = np.where(scales == 0, 1.0, scales)
            similar, rows = values / scales, self.rows / scales

            def fill(some):
                fill_gaps(similar[some], rows, self.weights, NEIGHBOURS)

            run_to_end(in_threads(values.size * len(rows), fill, gen_batches(len(X), BLOCK)))
            values[gaps] = (similar * scales)[gaps]
        X[:, at] = np.where(np.isnan(values), np.concatenate(fillers), values)
        return X

    def misread(self, frame, most, *, with_missing) -> np.ndarray:
        """Return the first column of each row that does not hold what it should, (n,) int64.

        That is, a cell of a column of numbers or dates is no such or beyond ``most``, or is missing
        if it is asked ``with_missing``. -1 where there is none.
        """
        found = np.full(frame.n_rows, -1)
        for i, column in reversed([*enumerate(self.columns)]):
            if isinstance(column, NumberColumn | DateColumn):
                values = frame.columns[i]
                is_bad = ~(np.abs(column.read(values)[0]) <= most)
                if not (with_missing or np.isnan(column.fill)):
                    is_bad &= np.array([text is not None for text in values.texts])
                found[is_bad] = i
        return found

    def count_filled(self, frame) -> tuple[int, int]:
        """Return how many cells of numbers and dates are missing, and of categories are new."""
        n_missing = n_new = 0
        for column, values in zip(self.columns, frame.columns, strict=True):
            if isinstance(column, CategoryColumn):
                n_new += len(column.new(values))
            elif column.width:
                n_missing += values.texts.count(None)
        return n_missing, n_new

    def _matched(self, frame):
        """Yield the columns in use and their values in a table: by name, or else by place."""
        names = [column.name for column in self.used]
        if frame.names and all(len(set(some)) == len(some) for some in (names, frame.names)):
            missing = [name for name in names if name not in frame.names]
            if missing:
                raise ValueError(
                    f"the table lacks the {named('column', missing)}, from which the clusters were "
                    f"made; it has {first_of([*map(repr, frame.names)])}"
                )
            places = [frame.names.index(name) for name in names]
        elif len(frame.columns) == len(names):
            places = range(len(names))
        elif len(frame.columns) == len(self.columns):
            places = [i for i, column in enumerate(self.columns) if column.width]
        else:
            raise ValueError(
                f"there are {len(frame.columns)} columns; the clusters were made of "
                f"{first_of([*map(repr, names)])}"
            )
        return zip(self.used, [frame.columns[i] for i in places], strict=True)


def _with_own_marks(pairs):
    """Yield columns and their values in a table, whose texts may have other decimal marks.

    Where texts do not tell theirs, it is that of the column; or the other one, if most of those
    that do tell it differ from their columns.
    """
    written = "numbers", "texts"
    agree = [v.mark == c.mark for c, v in pairs if (c.kind, v.kind) == written and v.mark]
    differs = 2 * agree.count(False) > len(agree)
    for column, values in pairs:
        if (column.kind, values.kind) == written:
            other = "," if column.mark == "." else "."
            mark = values.mark or (other if differs else column.mark)
            column = replace(column, mark=mark)
        yield column, values


def as_frame(X) -> Frame:
    """Return a data frame, or an array, as columns; those of an array have no names."""
    if isinstance(X, Frame):
        return X
    if is_frame(X):
        return read_frame(X)
    array = validation.to_array("X", X)
    if array.ndim != 2:
        raise ValueError(f"X must be a table or have two dimensions; got shape {array.shape}")
    return Frame([], [read_values(array[:, j]) for j in range(array.shape[1])])


def learn_coding(X, scaled=False, weights=None):
    """Return a data frame as numbers, and its coding; anything else as it is, and None.

    A frame of numbers alone, none of which is missing and none an id, needs no coding. Rows of
    weight 0 have no part in it. ``scaled`` and ``weights`` are as for :func:`fit_coding`; of
    different units the user is warned if it is False, and not if it is None.
    """
    if not is_frame(X):
        return X, None
    frame = read_frame(X)
    if not frame.columns:
        raise ValueError("X has no columns; give at least one")
    if not frame.n_rows:
        return X, None
    counting = frame
    if weights is not None and (weights == 0).any():
        counting, weights = frame.take(np.flatnonzero(weights)), weights[weights > 0]
    coding = fit_coding(counting, scaled=scaled, weights=weights)
    unused = [column for column in coding.columns if not column.width]
    has_ids = any(column.said == IDS for column in unused)
    if not has_ids and all(
        values.kind == "numbers" and not np.isnan(values.cells).any() for values in frame.columns
    ):
        for name, values in zip(frame.names, frame.columns, strict=True):
            check_finite(name, values.cells, LARGEST)
        return X, None
    look_at_units(coding, frame, warns=scaled is False)
    numbers, unknown, _ = coding.code(frame)
    if unknown:
        warn_user(first_of(unknown, "; "), UserWarning)
    if unused:
        which = first_of([f"{column.name!r} is {column.said}" for column in unused], "; ")
        advice = (
            ". Give ids as float, without missing cells, to use them, or as categories if they "
            "name groups of rows"
        )
        warn_user(f"columns of X are not used: {which}{advice * has_ids}", UserWarning)
    return numbers, coding


def look_at_units(coding, frame, *, warns):
    """Warn of columns of numbers in different units; marks of missing cells are none."""
    used = coding.used
    if warns and not coding.is_scaled and all(column.kind == "numbers" for column in used):
        warn_of_units(_numbers_of(coding.columns, frame)[0], [column.name for column in used])
    is_first("units")


def kinds_of(
    frame, *, keeps_all=False, marks_missing=True, decimal=None, weights=None
) -> list[Column]:
    """Return what each column of a table is, columns of numbers in deviations of their own.

    ``keeps_all`` uses ids and columns without differences too. ``decimal`` is the decimal mark of
    columns of texts that do not tell one.
    """
    marks = [values.mark for values in frame.columns if values.kind == "texts"]
    votes = marks.count(",") - marks.count(".")
    mark = decimal or (frame.mark or "." if votes == 0 else "," if votes > 0 else ".")
    weights = np.ones(frame.n_rows) if weights is None else weights
    options = {"marks_missing": marks_missing, "weights": weights}
    pairs = zip(frame.names, frame.columns, strict=True)
    columns = [fit_column(*pair, mark, keeps_all=keeps_all, **options) for pair in pairs]
    if not (keeps_all or any(column.width for column in columns)):
        # A table of such columns alone is meant as it is.
        return kinds_of(frame, keeps_all=True, decimal=decimal, **options)
    return columns


def fit_coding(frame, *, scaled=False, weights=None, **options) -> Coding:
    """Return how the columns of a table become numbers.

    Columns of numbers are brought to deviation 1 where the table holds anything else, or if it is
    to be ``scaled``, which a function may tell of columns of numbers and the weights of their rows.
    A row of weight s, of ``weights`` (n,), counts as s rows. Other ``options`` are those of
    :func:`kinds_of`.
    """
    columns: Any = kinds_of(frame, weights=weights, **options)
    kinds = {column.kind for column in columns if column.width}
    if not kinds:
        raise ValueError(
            "no column holds numbers, dates or categories: "
            + first_of([f"{column.name!r} is {column.said}" for column in columns], "; ")
        )
    is_mixed = scaled is True or len(kinds) > 1
    if callable(scaled) and kinds == {"numbers"}:
        is_mixed = scaled(*_numbers_of(columns, frame, weights))
    times = np.ones(frame.n_rows) if weights is None else weights
    has_gaps, suspects = False, []
    for i, (column, values) in enumerate(zip(columns, frame.columns, strict=True)):
        if not isinstance(column, NumberColumn | DateColumn):
            continue
        numbers = column.read(values)[0].astype(np.float64)
        has_gaps = has_gaps or bool(np.isnan(numbers).any())
        suspects.append((column.name, column.kind, look_at(numbers)))
        if isinstance(column, NumberColumn):
            if is_mixed and not np.isfinite(column.scale):
                check_finite(column.name, numbers, LARGEST)
            columns[i] = _in_units(column, is_mixed)
            if is_mixed and len(kinds) > 1:
                columns[i] = made_even(columns[i], numbers, times)
            elif is_mixed and len(ends := np.unique(numbers[~np.isnan(numbers)])) == 2:
                # It weighs as a category does.
                columns[i] = replace(columns[i], scale=binary_scale(*ends.tolist()))
    warn_of_suspects(suspects)
    if not has_gaps:
        return Coding(tuple(columns), is_mixed)
    some = evenly(frame.n_rows, ROWS)
    pairs = zip(columns, frame.take(some).columns, strict=True)
    # Without what marks missing cells.
    parts = [c.code(values)[0][:, : len(c.fillers)] for c, values in pairs if c.width]
    rows = np.hstack(parts).astype(np.float64)
    return Coding(tuple(columns), is_mixed, rows, as_counts(times)[some])


def _numbers_of(columns, frame, weights=None):
    """Return the columns of numbers in use as they are, (m, c) float64, and weights of the rows.

    These are the rows where no cell is missing, or if they are fewer than half all, with medians.
    With medians everywhere, iris is standardised if 15 of its cells are missing.
    """
    pairs = [(c, v) for c, v in zip(columns, frame.columns, strict=True) if c.width]
    numbers = np.column_stack([column.read(values)[0] for column, values in pairs])
    gaps = np.isnan(numbers)
    whole = ~gaps.any(axis=1)
    if 2 * np.count_nonzero(whole) < whole.size:
        return np.where(gaps, [column.fill for column, _ in pairs], numbers), weights
    return numbers[whole], weights if weights is None else weights[whole]


def plain_coding(names) -> Coding:
    """Return the coding of columns that must be numbers, none of them missing."""
    return Coding(tuple(NumberColumn(name, "numbers", np.nan) for name in names), False)


def code_numbers(names, first, means, scales, look, *, keeps_all, scaled) -> Coding:
    """Return the coding of columns of numbers without missing cells, as :func:`fit_coding` does it.

    ``first`` are the columns of the first rows, which show what is an id; means, deviations and the
    :class:`Look` are those of all rows.
    """
    columns: list[Column] = []
    for i, (name, cells) in enumerate(zip(names, first, strict=True)):
        low, after, _, high = look.ends[:, i]
        is_whole, known = cells.dtype.kind in "iu", cells.astype(np.float64)
        unused = None if keeps_all else unused_numbers(name, known, low == high, is_whole)
        mean, scale = float(means[i]), float(scales[i])
        if scaled and low < high == after:
            scale = binary_scale(low, high)
        column = NumberColumn(name, "numbers", mean, shift=mean, scale=scale)
        columns.append(unused or _in_units(column, scaled))
    if not any(column.width for column in columns):
        return code_numbers(names, first, means, scales, look, keeps_all=True, scaled=scaled)
    warn_of_suspects([(c.name, c.kind, look.at(i)) for i, c in enumerate(columns) if c.width])
    return Coding(tuple(columns), scaled)


def _in_units(column, is_mixed):
    """Return a column of numbers as it is, or of deviation 1 where there are other kinds."""
    if is_mixed:
        if not np.isfinite((column.shift, column.scale)).all():
            raise ValueError(f"the variance of column {column.name!r} overflows: scale it down")
        head, mark, rest = column.said.partition(";")
        return replace(column, said=f"{head}, scaled{mark}{rest}")
    # The mark of missing cells has the column's units.
    marker = column.marker * column.scale if np.isfinite(column.scale) else column.marker
    return replace(column, shift=0.0, scale=1.0, marker=marker)
