"""What is made of a table's columns: numbers of comparable weight, and a word on each."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import groupby
from typing import ClassVar, NamedTuple
from warnings import catch_warnings, simplefilter

import numpy as np
from sklearn.preprocessing import PowerTransformer

from fastmmc.core.execution import warn_user
from fastmmc.core.saving import stored
from fastmmc.data import cells
from fastmmc.data.frames import Frame, Values, is_frame, read_frame, read_values

# How far two different categories are from each other, in deviations of a column of numbers. The
# mean ARI of cluster on six made tables is .89 at .35 and .5, and .33 at .7, if four numbers have
# the clusters and two categories are noise; .32 at .35, .51 at .5 and .7, if four categories have
# them and numbers are noise. 1 / sqrt(levels) and unit variance let noise make the clusters too.
CATEGORY_DISTANCE = 0.5
# The deviation of a column of numbers is 1, times this power of the chance that two rows differ in
# it: two equally frequent numbers are then as far from each other as two categories are. The ARI of
# cluster on three tables of orders is 1.00 with it and .39 without.
FEW_VALUES = 2.0
# A category of fewer rows than this share, or a single one, is coded as one never seen.
LEAST_CATEGORY = 0.01
# What marks a missing cell, in deviations. The mean ARI of k-means and cluster on four sets is .711
# where cells are missing at random (.709 without), .768 where more are in some clusters (.727).
MISSING_DISTANCE = 0.5

# Cycles of dates, in days, and how often the dates must run through one for it to count.
CYCLES = {"time of day": 1.0, "day of the week": 7.0, "time of year": 365.2425}
LEAST_CYCLES = 3.0
# A share of a cycle's largest variance below which dates are all at the same time of it.
STILL = 1e-6

# Whole numbers that differ in all rows are ids if they count these or a name says so.
LEAST_COUNTED = 10
ID_WORDS = {"id", "ids", "uuid", "guid", "key", "index", "idx", "no", "nr", "row", "rownames"}
IDS = "left out, as it holds ids of the rows"
ID_ENDINGS = ("nummer", "nr", "_id")


class Coded(NamedTuple):
    """The numbers that cells became, (n, w), how many were missing, and those not understood."""

    X: np.ndarray
    n_missing: int
    unknown: list[str]


@stored()
@dataclass(frozen=True)
class Column:
    """A column of a table, and what was said of it."""

    name: str
    said: str

    width: ClassVar[int] = 0
    kind: ClassVar[str] = "nothing"

    @property
    def features(self) -> list[str]:
        """The names of the numbers that it became."""
        return [self.name] * self.width


@stored()
@dataclass(frozen=True)
class UnusedColumn(Column):
    """A column that is left out."""


@stored()
@dataclass(frozen=True)
class NumberColumn(Column):
    """A column of numbers, (value - shift) / scale, and perhaps one that marks missing cells.

    Where there is a ``power``, values are first divided by ``unit`` and transformed by it, as Yeo
    and Johnson do.
    """

    fill: float  # what stands for a missing cell
    mark: str = "."  # before decimals, where texts do not tell
    shift: float = 0.0
    scale: float = 1.0
    power: float | None = None
    unit: float = 1.0
    marker: float = 0.0  # what the second column holds for a missing cell; 0: there is none

    kind: ClassVar[str] = "numbers"

    def _check_values(self):
        numbers = (self.fill, self.shift, self.scale, self.marker, self.power or 0.0, self.unit)
        units = min(self.scale, self.unit)
        if not np.isfinite(numbers).all() or units <= 0 or self.mark not in cells.NUMBERS:
            raise ValueError(f"column {self.name!r} has numbers that cannot be")

    @property
    def width(self):
        """How many numbers a cell becomes."""
        return 2 if self.marker else 1

    @property
    def features(self):
        """The names of the numbers that it became."""
        return [self.name, f"{self.name} is missing"][: self.width]

    def code(self, values: Values) -> Coded:
        """Return the numbers of cells."""
        numbers, unknown = self.read(values)
        gaps = np.isnan(numbers)
        X = np.where(gaps, self.fill, numbers)
        if self.power is not None:
            X = _powered(X, self.power, self.unit)
        X = (X - self.shift) / self.scale
        parts = [X, gaps * self.marker] if self.marker else [X]
        return Coded(np.column_stack(parts), int(gaps.sum()), unknown)

    def read(self, values):
        """Return cells as (n,) float64 or float32, NaN where they are missing or no numbers."""
        if values.kind in ("numbers", "spans"):
            return values.cells, []
        if values.kind == "dates":
            raise ValueError(f"column {self.name!r} holds dates; expected numbers")
        return _read_numbers(values, self.mark)


@stored()
@dataclass(frozen=True)
class DateColumn(Column):
    """A column of dates: days, (days - shift) / scale, and a sine and cosine for each cycle."""

    fill: float
    form: str | None  # of texts, as strptime takes it; None: ISO 8601
    shift: float
    scale: float  # 0: the cycles alone
    cycles: list[float]
    weight: float  # of a sine or cosine

    kind: ClassVar[str] = "dates"

    def _check_values(self):
        numbers = (self.fill, self.shift, self.scale, self.weight, *self.cycles)
        if not np.isfinite(numbers).all() or self.scale < 0 or min(self.cycles, default=1) <= 0:
            raise ValueError(f"column {self.name!r} has numbers that cannot be")

    @property
    def width(self):
        """How many numbers a cell becomes."""
        return (self.scale > 0) + 2 * len(self.cycles)

    def code(self, values: Values) -> Coded:
        """Return the numbers of cells."""
        days, unknown = self.read(values)
        gaps = np.isnan(days)
        days = np.where(gaps, self.fill, days)
        parts = [(days - self.shift) / self.scale] if self.scale else []
        for cycle in self.cycles:
            angle = 2 * np.pi * (days / cycle)
            # A missing time is at the centre of the circle.
            parts += [np.where(gaps, 0.0, self.weight * of(angle)) for of in (np.sin, np.cos)]
        return Coded(np.column_stack(parts), int(gaps.sum()), unknown)

    def read(self, values):
        """Return cells as days since 1970, NaN where they are missing or no dates, and those."""
        if values.kind not in ("dates", "texts"):
            raise ValueError(f"column {self.name!r} holds {values.kind}; expected dates")
        return _read_dates(values, self.form)


@stored()
@dataclass(frozen=True)
class CategoryColumn(Column):
    """A column of categories, each ``weight`` in a column of its own; none for all others."""

    levels: list[str]
    weight: float
    seen: list[str] = field(default_factory=list)  # those without a column

    kind: ClassVar[str] = "categories"

    @property
    def width(self):
        """How many numbers a cell becomes."""
        return len(self.levels)

    @property
    def features(self):
        """The names of the numbers that it became."""
        return [f"{self.name} = {level}" for level in self.levels]

    def code(self, values: Values) -> Coded:
        """Return the numbers of cells."""
        texts = values.texts
        X = self.weight * (self._places(texts)[:, None] == np.arange(self.width))
        return Coded(X, texts.count(None), self.new(values))

    def new(self, values):
        """Return the texts that were not seen when the column was learned."""
        seen = {*self.levels, *self.seen}
        return [text for text in values.known if text not in seen]

    def read(self, values):
        """Return the place of cells in ``levels``, -1 if in none, and whether they are known."""
        texts = values.texts
        return self._places(texts), np.array([text is not None for text in texts], dtype=bool)

    def _places(self, texts):
        place = {level: i for i, level in enumerate(self.levels)}
        return np.array([place.get(text, -1) for text in texts], dtype=np.int64)


def _read_numbers(values, mark):
    """Return texts as numbers, NaN where they are missing or none, and those that are none."""
    numbers = values.numbers(mark)
    strange = np.isnan(numbers).nonzero()[0]
    texts = values.texts
    return numbers, [texts[i] for i in strange if texts[i] is not None]


def _read_dates(values, form):
    """Return cells as days since 1970, NaN where they are missing or no dates, and those."""
    if values.kind == "dates":
        return values.cells, []
    texts = values.texts
    days = cells.days_of(["" if text is None else text for text in texts], form)
    unknown = [t for t, day in zip(texts, days, strict=True) if t is not None and np.isnan(day)]
    return days, unknown


# Finding out what a column is


class _Options(NamedTuple):
    """What is asked of the columns of a table."""

    keeps_all: bool = False  # ids and columns without differences, too
    marks_missing: bool = True
    mark: str = "."  # before decimals, where no column tells


def _fit_column(name, values, options):
    """Return what becomes of a column."""
    if values.kind in ("numbers", "spans"):
        # Whole numbers of which some are missing are floats in a data frame.
        is_whole = values.cells.dtype.kind in "iu" or np.isnan(values.cells).any()
        return _fit_numbers(name, values.cells, options, is_whole=is_whole)
    if values.kind == "dates":
        return _fit_dates(name, values.cells, None)
    known = values.known
    if not known:
        return UnusedColumn(name, "left out, as all cells are missing")
    if values.kind == "texts":
        unknown = _read_numbers(values, values.mark or options.mark)[1]
        if 2 * len(unknown) < len(known):
            return _fit_written_numbers(name, values, unknown, options)
        try:
            form = cells.date_format(known)
        except LookupError:
            form = ""
        if form != "":
            days, unknown = _read_dates(values, form)
            if 2 * len(unknown) < len(known):
                return _fit_dates(name, days, form, unknown, values.texts)
    return _fit_categories(name, values.texts, len(known))


def _fit_written_numbers(name, values, unknown, options):
    """Return what becomes of a column of texts that are numbers."""
    strange = set(unknown)
    known = [text for text in values.known if text not in strange]
    own = values.mark
    mark = own or options.mark
    has = {sign for sign in ".,%" if any(sign in text for text in known)}
    said = ["with decimal commas"] if mark == "," and "," in has else []
    if has & ({"."} if mark == "," else {","}):
        said.append("with separated thousands")
    if "%" in has:
        said.append("in per cent")
    if own is None and has & {".", ","}:
        text = next(text for text in known if "." in text or "," in text)
        said.append(f"{text!r} as {cells.to_number(text, mark):.6g}")
    is_whole = not has & {".", ","}
    numbers = values.numbers(mark)
    return _fit_numbers(name, numbers, options, mark, said, unknown, is_whole)


def _fit_numbers(name, numbers, options, mark=".", said=(), unknown=(), is_whole=False):
    """Return what becomes of a column of numbers."""
    gaps = np.isnan(numbers)
    known = numbers[~gaps].astype(np.float64)
    if not known.size:
        return UnusedColumn(name, "left out, as all cells are missing")
    if np.isinf(known).any():
        # The solvers refuse it, and name the value.
        return NumberColumn(name, "numbers", 0.0, mark)
    is_constant = known.min() == known.max() and not gaps.any()
    unused = _unused_numbers(name, known, is_constant, is_whole)
    if unused and not options.keeps_all:
        return unused
    fill = float(np.median(known))
    filled = np.where(gaps, fill, numbers.astype(np.float64))
    with np.errstate(over="ignore", invalid="ignore"):
        shift, scale = float(filled.mean()), float(filled.std())
    scale = scale if scale != 0 else 1.0
    marker = MISSING_DISTANCE if gaps.any() and options.marks_missing else 0.0
    words = ", ".join(["numbers", *said]) + _about_missing(gaps, fill, unknown, marker)
    return NumberColumn(name, words, fill, mark, shift, scale, marker=marker)


def _unused_numbers(name, known, is_constant, is_whole):
    """Return a column of numbers that are all the same or ids as one left out, None for others."""
    if is_constant:
        return UnusedColumn(name, f"left out, as it is {_short(known[0])} in all rows")
    return UnusedColumn(name, IDS) if is_whole and is_id(name, known) else None


def _about_missing(gaps, fill, unknown, marker):
    """Return what is said of the cells of a column that are missing or no numbers."""
    words = ""
    if unknown:
        words += f"; {_count(len(unknown), 'cell')} such as {unknown[0]!r} read as missing"
    if gaps.any():
        marked = ", marked by a column" if marker else ""
        words += f"; {gaps.sum()} of {gaps.size} missing: the median, {_short(fill)}{marked}"
    return words


def _fit_dates(name, days, form, unknown=(), texts=()):
    """Return what becomes of a column of dates or times of day, written as ``texts``."""
    gaps = np.isnan(days)
    known = days[~gaps]
    if not known.size:
        return UnusedColumn(name, "left out, as all cells are missing")
    if known.min() == known.max():
        return UnusedColumn(name, "left out, as all dates are the same")
    is_clock = form in cells.CLOCKS
    cycles = _cycles(known, is_clock)
    parts = (not is_clock) + len(cycles)
    names = [*(["a number"] if not is_clock else []), *cycles]
    words = f"{'times' if is_clock else 'dates'}, as {' and '.join(names)}"
    at = (~gaps).nonzero()[0]
    other = cells.OTHER_ORDER.get(form)
    if other and np.isfinite(cells.days_of([texts[i] for i in at], other)).all():
        words += f", {texts[at[0]]!r} as {cells.EPOCH + timedelta(known[0]):%Y-%m-%d}"
    if unknown:
        words += f"; {_count(len(unknown), 'cell')} such as {unknown[0]!r} read as missing"
    if gaps.any():
        words += f"; {gaps.sum()} of {gaps.size} missing: the median"
    # A sine and a cosine have the variance 1 together, as a column of numbers has.
    scale = 0.0 if is_clock else float(known.std() * parts**0.5)
    fill, shift = float(np.median(known)), float(known.mean())
    return DateColumn(name, words, fill, form, shift, scale, [*cycles.values()], float(parts**-0.5))


def _cycles(days, is_clock):
    """Return the cycles that dates run through several times, without those they stand still in."""
    if is_clock:
        return {"time of day": 1.0}
    found = {}
    for name, cycle in CYCLES.items():
        if np.ptp(days) >= LEAST_CYCLES * cycle:
            mean = np.exp(2j * np.pi * (days / cycle)).mean()
            if 1.0 - abs(mean) ** 2 > STILL:
                found[name] = cycle
    return found


def _fit_categories(name, texts, n_known):
    """Return what becomes of a column of categories."""
    counts = Counter(text for text in texts if text is not None)
    n_missing = len(texts) - n_known
    if len(counts) == 1 and not n_missing:
        return UnusedColumn(name, f"left out, as it is {next(iter(counts))!r} in all rows")
    least = max(2.0, LEAST_CATEGORY * len(texts))
    levels = sorted(level for level, count in counts.items() if count >= least)
    if len(counts) == n_known > 2:
        return UnusedColumn(name, "left out, as its texts differ in all rows")
    if 2 * sum(counts[level] for level in levels) < n_known:
        why = f"left out, as it has {len(counts)} different texts, most of them in few rows"
        return UnusedColumn(name, why)
    words = _count(len(counts), "category", "categories")
    if rare := len(counts) - len(levels):
        words += f", of which {rare} in few rows count as one"
    if n_missing:
        words += f"; {n_missing} of {len(texts)} missing: no category"
    seen = sorted(counts.keys() - set(levels))
    return CategoryColumn(name, words, levels, CATEGORY_DISTANCE / 2**0.5, seen)


def is_id(name, known):
    """Tell whether numbers are different in all rows and count them, or their name says so."""
    if known.size < LEAST_COUNTED or (known != np.floor(known)).any():
        return False
    steps = np.diff(known)
    counts = abs(steps[0]) == 1 and (steps == steps[0]).all()
    return bool(counts or (_names_id(name) and np.unique(known).size == known.size))


def _names_id(name):
    """Tell whether a name says that a column holds ids."""
    words = [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)]
    return bool(words) and (words[-1] in ID_WORDS or words[-1].endswith(ID_ENDINGS))


def _count(n, one, many=None):
    return f"{n} {one if n == 1 else many or one + 's'}"


def _short(value):
    return f"{value:.6g}"


# All columns


@stored()
@dataclass(frozen=True, eq=False, repr=False)
class Coding:
    """How the columns of a table become numbers; ``str()`` of it tells what was done with each."""

    columns: tuple[Column, ...]
    is_scaled: bool  # whether columns of numbers have deviation 1

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
            lines.append(f"{which}: {said}")
        return lines

    def left_out(self) -> list[Column]:
        """Return the columns that are not used."""
        return [column for column in self.columns if not column.width]

    def code(self, X, *, votes=False) -> tuple[np.ndarray, list[str], list[str]]:
        """Return a table, or an array of its columns, as numbers.

        Also returns what is to be said of cells that were not understood, and of missing ones. The
        texts of another file may have other decimal marks, if it ``votes`` on them.
        """
        parts, unknown, missing = [], [], []
        for column, values in self._matched(as_frame(X)):
            if votes and column.kind == "numbers" and values.kind == "texts":
                column = replace(column, mark=values.mark or column.mark)
            coded = column.code(values)
            parts.append(coded.X)
            unknown += _about_unknown(column, coded.unknown)
            if coded.n_missing:
                cells_ = _count(coded.n_missing, "missing cell")
                missing.append(f"column {column.name!r}: {cells_}")
        return np.ascontiguousarray(np.hstack(parts)), unknown, missing

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
        if frame.names and len(set(frame.names)) == len(frame.names):
            missing = [name for name in names if name not in frame.names]
            if missing:
                raise ValueError(
                    f"the table lacks the column{'s' * (len(missing) > 1)} "
                    f"{', '.join(map(repr, missing))}, from which the clusters were made; it has "
                    f"{', '.join(map(repr, frame.names))}"
                )
            places = [frame.names.index(name) for name in names]
        elif len(frame.columns) == len(names):
            places = range(len(names))
        elif len(frame.columns) == len(self.columns):
            places = [i for i, column in enumerate(self.columns) if column.width]
        else:
            raise ValueError(
                f"there are {len(frame.columns)} columns; the clusters were made of "
                f"{', '.join(map(repr, names))}"
            )
        return zip(self.used, [frame.columns[i] for i in places], strict=True)


def _about_unknown(column, unknown):
    """Return what is to be said of new cells of a column that were not understood."""
    if not unknown:
        return []
    what = "not seen before"
    if column.kind != "categories":
        what = f"read as missing, no {column.kind}"
    cells_ = _count(len(unknown), "cell")
    return [f"column {column.name!r}: {cells_} such as {unknown[0]!r} {what}"]


def as_frame(X) -> Frame:
    """Return a data frame, or an array, as columns; those of an array have no names."""
    if isinstance(X, Frame):
        return X
    if is_frame(X):
        return read_frame(X)
    array = np.asarray(X)
    if array.ndim != 2:
        raise ValueError(f"X must be a table or have two dimensions; got shape {array.shape}")
    return Frame([], [read_values(array[:, j]) for j in range(array.shape[1])])


def learn_coding(X, scaled=False):
    """Return a data frame as numbers, and its coding; anything else as it is, and None.

    A frame of numbers alone, none of which is missing and none an id, needs no coding.
    """
    if not is_frame(X):
        return X, None
    frame = read_frame(X)
    if not frame.columns:
        raise ValueError("X has no columns; give at least one")
    if not frame.n_rows:
        return X, None
    coding = fit_coding(frame, scaled=scaled)
    if _is_plain(frame, coding):
        return X, None
    numbers, unknown, _ = coding.code(frame)
    if unknown:
        warn_user("; ".join(unknown), UserWarning)
    left_out = [f"{column.name!r} is {column.said}" for column in coding.left_out()]
    if left_out:
        advice = ". Give ids as float to use them" if "ids" in "".join(left_out) else ""
        warn_user(f"columns of X are not used: {'; '.join(left_out)}{advice}", UserWarning)
    return numbers, coding


def _is_plain(frame, coding):
    """Tell whether a table holds numbers alone, none of which is missing or an id."""
    has_ids = any(column.said == IDS for column in coding.left_out())
    return not has_ids and all(
        values.kind == "numbers" and not np.isnan(values.cells).any() for values in frame.columns
    )


def undecided_mark(frame, coding) -> str | None:
    """Return the decimal mark that was given to a column of texts that do not tell one."""
    for values, column in zip(frame.columns, coding.columns, strict=True):
        if values.kind == "texts" and column.kind == "numbers":
            if values.mark is None and any("." in t or "," in t for t in values.known):
                return column.mark
    return None


def kinds_of(frame, *, keeps_all=False, marks_missing=True, decimal=None) -> list[Column]:
    """Return what each column of a table is, columns of numbers in deviations of their own."""
    mark = decimal or _mark_of(frame) or frame.mark or "."
    options = _Options(keeps_all, marks_missing, mark)
    pairs = list(zip(frame.names, frame.columns, strict=True))
    columns = [_fit_column(name, values, options) for name, values in pairs]
    if not any(column.width for column in columns):
        # A table of such columns alone is meant as it is.
        options = options._replace(keeps_all=True)
        columns = [_fit_column(name, values, options) for name, values in pairs]
    if not any(column.width for column in columns):
        raise ValueError(
            "no column holds numbers, dates or categories: "
            + "; ".join(f"{column.name!r} is {column.said}" for column in columns)
        )
    return columns


def fit_coding(frame, *, keeps_all=False, marks_missing=True, scaled=False, decimal=None) -> Coding:
    """Return how the columns of a table become numbers.

    ``keeps_all`` uses ids and columns without differences too, ``scaled`` brings columns of numbers
    to deviation 1 in any case; it is done where the table holds anything else than numbers.
    ``decimal`` is the decimal mark of columns of texts that do not tell one.
    """
    columns = kinds_of(frame, keeps_all=keeps_all, marks_missing=marks_missing, decimal=decimal)
    kinds = {column.kind for column in columns if column.width}
    is_mixed = scaled or len(kinds) > 1
    columns = [_in_units(column, is_mixed) for column in columns]
    if len(kinds) > 1:
        columns = [_made_even(*pair) for pair in zip(columns, frame.columns, strict=True)]
    return Coding(tuple(columns), is_mixed)


def plain_coding(names) -> Coding:
    """Return the coding of columns that must be numbers, none of them missing."""
    return Coding(tuple(NumberColumn(name, "numbers", np.nan) for name in names), False)


def code_numbers(names, first, figures, *, keeps_all, scaled) -> Coding:
    """Return the coding of columns of numbers without missing cells, as :func:`fit_coding` does it.

    ``first`` are the columns of the first rows, which show what is an id; ``figures`` those of all
    rows, (d,) each: means, deviations, the least and the greatest.
    """
    columns: list[Column] = []
    for name, cells_, mean, scale, low, high in zip(names, first, *figures, strict=True):
        is_whole, known = cells_.dtype.kind in "iu", cells_.astype(np.float64)
        unused = None if keeps_all else _unused_numbers(name, known, low == high, is_whole)
        mean, scale = float(mean), float(scale)
        columns.append(unused or NumberColumn(name, "numbers", mean, shift=mean, scale=scale))
    if not any(column.width for column in columns):
        return code_numbers(names, first, figures, keeps_all=True, scaled=scaled)
    return Coding(tuple(_in_units(column, scaled) for column in columns), scaled)


def _in_units(column, is_mixed):
    """Return a column of numbers as it is, or of deviation 1 where there are other kinds."""
    if column.kind != "numbers":
        return column
    if is_mixed:
        if not np.isfinite((column.shift, column.scale)).all():
            raise ValueError(f"the variance of column {column.name!r} overflows: scale it down")
        head, mark, rest = column.said.partition(";")
        return replace(column, said=f"{head}, scaled{mark}{rest}")
    # The mark of missing cells has the column's units.
    marker = column.marker * column.scale if np.isfinite(column.scale) else column.marker
    return replace(column, shift=0.0, scale=1.0, marker=marker)


def _made_even(column, values):
    """Return a column of numbers whose skewness a power takes away.

    Amounts of money and counts reach far to one side, and a few rows would make their deviation.
    On tables of customers and orders the ARI of k-means is .58 without and .98 with it, on six
    public ones .22 and .23.
    """
    if column.kind != "numbers":
        return column
    numbers = column.read(values)[0].astype(np.float64)
    numbers = np.where(np.isnan(numbers), column.fill, numbers)
    sizes = np.abs(numbers[numbers != 0])
    unit = float(np.median(sizes)) if sizes.size else 1.0
    with np.errstate(all="ignore"), catch_warnings():
        simplefilter("ignore")
        power = float(PowerTransformer(standardize=False).fit(numbers[:, None] / unit).lambdas_[0])
        powered = _powered(numbers, power, unit)
        shift, scale = float(powered.mean()), float(powered.std())
    if not np.isfinite((power, shift, scale)).all() or scale <= 0:
        return column
    counts, n = np.unique(numbers, return_counts=True)[1], numbers.size
    differ = 1.0 - float(counts @ (counts - 1)) / (n * (n - 1))
    scale /= differ**FEW_VALUES
    return replace(column, power=power, unit=unit, shift=shift, scale=scale)


def _powered(numbers, power, unit):
    """Return numbers transformed by a power."""
    # SciPy's statistics take long to import.
    from scipy.stats import yeojohnson

    return yeojohnson(numbers.astype(np.float64) / unit, power)


def _mark_of(frame):
    """Return the decimal mark that most columns of texts have, None if none tells it."""
    marks = [values.mark for values in frame.columns if values.kind == "texts"]
    votes = marks.count(",") - marks.count(".")
    return None if votes == 0 else "," if votes > 0 else "."
