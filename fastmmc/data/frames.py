"""Tables of named columns: data frames of pandas, polars and pyarrow, and what a file holds."""

import math
import numbers
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from fastmmc.core.words import first_of
from fastmmc.data import cells as written
from fastmmc.data.cells import EPOCH, is_missing

# Types of columns that their libraries call categories.
CATEGORIES = ("category", "Categorical", "Enum", "dictionary")
NOTHING = {"NoneType", "NAType", "NaTType"}
DAY = timedelta(days=1)


@dataclass(frozen=True, eq=False)
class Values:
    """The values of a column: numbers, days since 1970, or texts; NaN or None where missing.

    ``kind`` is "numbers", "spans" (of time, in days), "dates", "texts", whose meaning is yet to be
    found, or "categories". What texts say is found once: a file has millions of them.
    """

    kind: str
    cells: np.ndarray | list[str | None]
    _found: dict[Any, np.ndarray] = field(default_factory=dict, repr=False)

    @cached_property
    def texts(self) -> list[str | None]:
        """The cells as texts without spaces around them, None where they are missing.

        A category that is called none or NA is one.
        """
        if isinstance(self.cells, np.ndarray):
            return as_texts(self.cells)
        stripped = [None if text is None else text.strip() for text in self.cells]
        if self.kind == "categories":
            return stripped
        return [None if text is None or is_missing(text) else text for text in stripped]

    @cached_property
    def known(self) -> list[str]:
        """The texts of cells that are not missing."""
        return [text for text in self.texts if text is not None]

    @cached_property
    def mark(self) -> str | None:
        """The decimal mark of most texts that tell it; None if none does."""
        return written.decimal_mark(self.known, self._plain)

    @cached_property
    def _plain(self):
        """The known texts as floats, or None where they are more than digits, points and signs."""
        return written.plain_numbers(self.known)

    def take(self, rows: np.ndarray) -> "Values":
        """Return the values of some rows, with what was found of them."""
        found = {key: numbers[rows] for key, numbers in self._found.items()}
        return Values(self.kind, rows_of(self.cells, rows), found)

    def numbers(self, mark: str) -> np.ndarray:
        """Return texts with this decimal mark as (n,) float64, NaN where no finite numbers."""
        return self._once(mark, lambda: written.numbers_of(self.known, mark, self._plain))

    def days(self, form: str | None) -> np.ndarray:
        """Return texts of this format as (n,) days since 1970, NaN where they are no dates."""
        return self._once(("date", form), lambda: written.days_of(self.known, form))

    def _once(self, key, find):
        """Return what is found of the known texts, NaN for others; it is found once."""
        if key not in self._found:
            is_known = np.array([text is not None for text in self.texts], dtype=bool)
            self._found[key] = _fill_in(is_known, find())
        return self._found[key]


def rows_of(values, rows):
    """Return the values of some rows; those of a list keep their types."""
    return [values[i] for i in rows] if isinstance(values, list) else np.asarray(values)[rows]


class Frame(NamedTuple):
    """Columns by position, with names that may be equal, and their values."""

    names: list[str]
    columns: list[Values]
    # What stands before decimals in texts that do not tell it themselves.
    mark: str | None = None

    @property
    def n_rows(self) -> int:
        """The length of the columns."""
        return len(self.columns[0].cells)

    def take(self, rows: np.ndarray) -> "Frame":
        """Return some rows."""
        return self._replace(columns=[values.take(rows) for values in self.columns])


def is_frame(X: object) -> bool:
    """Tell whether X is a data frame: something with named columns that become arrays."""
    if _is_lazy(X):
        return True
    named = getattr(X, "columns", None) if hasattr(X, "iloc") or hasattr(X, "dtypes") else None
    named = getattr(X, "column_names", named)
    return named is not None and not isinstance(X, np.ndarray) and not hasattr(X, "compute")


def refuse_masked(name, X):
    """Refuse masked values, whose masks NumPy would drop."""
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        raise ValueError(
            f"{name} has masked values, which the methods ignore: leave them out, or "
            f"fill them in, as by {name}.filled(...)"
        )


def read_frame(X) -> Frame:
    """Return the columns of a data frame.

    The names of columns and their ``to_numpy`` are what all three libraries have in common, so that
    none of them is needed here, nor a library that knows them all.
    """
    X = _readable(X)
    names = _names(X)
    if hasattr(X, "column_names"):
        series = X.columns
    elif hasattr(X, "iloc"):
        series = [X.iloc[:, j] for j in range(X.shape[1])]
    else:
        series = [X[name] for name in names]
    return Frame([str(name) for name in names], [read_series(one) for one in series])


def whole_table(X):
    """Return a batch of rows of pyarrow as a table, whose names scikit-learn reads; else X.

    A plan of a frame is refused, and so are columns of equal names.
    """
    X = _readable(X)
    if is_frame(X):
        twice = [name for name, count in Counter(_names(X)).items() if count > 1]
        if twice:
            raise ValueError(
                "X must have columns of different names, and has several of "
                f"{first_of([*map(repr, twice)])}: rename them, or give an array if all "
                "columns are numbers"
            )
    return X


def _names(X):
    """Return the names of the columns of a data frame, whose ``columns`` pyarrow has for values."""
    return list(getattr(X, "column_names", X.columns))


def _readable(X):
    """Return a frame whose columns NumPy can hold; refuse a plan of one.

    A batch of rows of pyarrow becomes a table, and integers of polars of 128 bits, which NumPy has
    none of, get 64.
    """
    if _is_lazy(X):
        raise TypeError("X is a lazy frame, which has no values yet; give X.collect()")
    pyarrow, polars = sys.modules.get("pyarrow"), sys.modules.get("polars")
    if pyarrow is not None and isinstance(X, pyarrow.RecordBatch):
        return pyarrow.Table.from_batches([X])
    if polars is not None and isinstance(X, polars.DataFrame):
        wide = [one for one in X.get_columns() if str(one.dtype) in ("Int128", "UInt128")]
        ends = [max(abs(one.min() or 0), abs(one.max() or 0)) for one in wide]
        kinds = [polars.Int64 if end < 2**53 else polars.Float64 for end in ends]
        X = X.with_columns(*(one.cast(kind) for one, kind in zip(wide, kinds, strict=True)))
    return X


def _is_lazy(X):
    """Tell whether X is a plan of a data frame; even its columns' names would have to be made."""
    return hasattr(X, "collect") and hasattr(X, "select")


def read_series(series) -> Values:
    """Return the values of a column of a data frame."""
    dtype: Any = getattr(series, "dtype", getattr(series, "type", None))
    if hasattr(dtype, "index_type"):  # of pyarrow, whose to_numpy makes a category of a null
        series = series.cast(dtype.value_type)
    series = _in_local_time(series, dtype)
    array = np.asarray(series.to_numpy())
    if any(word in str(dtype) for word in CATEGORIES):
        if array.dtype.kind in "iuf":
            return Values("categories", as_texts(array))
        return Values("categories", [None if _is_null(one) else str(one) for one in array.tolist()])
    return read_values(array)


def _in_local_time(series, dtype):
    """Return a column whose times are those of their time zones, as pandas gives them by itself."""
    if getattr(dtype, "time_zone", None):  # polars
        return series.dt.replace_time_zone(None)
    if getattr(dtype, "tz", None) and not hasattr(series, "iloc"):
        return import_module("pyarrow.compute").local_timestamp(series)
    return series


def as_texts(numbers: np.ndarray) -> list[str | None]:
    """Return numbers as texts that tell each from all others, None where they are NaN."""
    return [None if value != value else str(value).removesuffix(".0") for value in numbers]


def read_values(array: np.ndarray) -> Values:
    """Return the values of an array of any type."""
    kind = array.dtype.kind
    if array.ndim > 1:  # a column of rows
        return Values("texts", [str(row) for row in array.tolist()])
    if kind in "iuf":
        return Values("numbers", array)
    if kind == "c":
        raise ValueError("a column of complex numbers: give their real and imaginary parts")
    if kind == "b":
        return Values("categories", [str(bool(value)) for value in array])
    if kind == "M":
        return Values("dates", _in_days(array - np.datetime64(0, "s")))
    if kind == "m":
        return Values("spans", _in_days(array))
    return _read_objects(array.tolist())


def _in_days(spans):
    """Return spans of time as days, NaN for NaT."""
    days = spans / np.timedelta64(1, "D")
    return np.where(np.isnat(spans), np.nan, days)


def _read_objects(values: Sequence) -> Values:
    """Return the values of Python's own types."""
    gaps = [is_missing(one) if isinstance(one, str) else _is_null(one) for one in values]
    is_known = ~np.array(gaps, dtype=bool)
    known = [value for value, there in zip(values, is_known, strict=True) if there]
    if known and all(isinstance(value, bool | np.bool_) for value in known):
        return Values("categories", _fill_in(is_known, map(str, known), None).tolist())
    if known and all(isinstance(value, numbers.Real | Decimal) for value in known):
        found = _fill_in(is_known, map(_to_float, known))
        is_whole = is_known.all() and all(map(_is_whole, known)) and np.abs(found).max() < 2**53
        return Values("numbers", found.astype(np.int64) if is_whole else found)
    if known and all(isinstance(value, timedelta) for value in known):
        return Values("spans", _fill_in(is_known, [value / DAY for value in known]))
    if known and all(isinstance(value, date) for value in known):
        return Values("dates", _fill_in(is_known, map(_days_of, known)))
    texts = [value for value in known if isinstance(value, str)]
    mark = written.decimal_mark(texts, written.plain_numbers(texts)) or "."
    texts = [_as_text(value, mark) for value in known]
    return Values("texts", _fill_in(is_known, texts, None).tolist())


def _as_text(value, mark):
    """Return a value as text; a number with this decimal mark, and no three decimals alone.

    2.131 as a text may be a thousand times as much, and it is known what the number is.
    """
    text = str(value)
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real | Decimal):
        return text
    return f"{text.replace('.', mark)}{'0' if text[-4:-3] == '.' else ''}"


def _is_null(value):
    """Tell whether a value of any library stands for none."""
    return type(value).__name__ in NOTHING or (isinstance(value, float) and value != value)


def _is_whole(number):
    """Tell whether a number is of a type for whole ones, or a decimal without decimals."""
    if isinstance(number, Decimal):
        return number.as_tuple().exponent == 0
    return isinstance(number, numbers.Integral)


def _to_float(number):
    """Return a number as a float, infinite if no float is as large."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _days_of(when):
    """Return days since 1970 of a date or a time, whose offset from UTC is left out."""
    if not isinstance(when, datetime):
        when = datetime(when.year, when.month, when.day)
    return (when.replace(tzinfo=None) - EPOCH) / DAY


def _fill_in(is_known, known, gap=np.nan):
    """Return an array of the known values in their places, and of ``gap`` elsewhere."""
    values = np.full(is_known.size, gap)
    values[is_known] = known if isinstance(known, np.ndarray) else list(known)
    return values
