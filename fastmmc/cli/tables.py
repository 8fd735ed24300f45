"""Tables of numbers: which of their cells are names, numbers, labels or the index of a frame."""

from __future__ import annotations

import csv
import io
import math
import re
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path

import numpy as np

from fastmmc.cli.common import STANDARD_INPUT, source_name, tell

DELIMITERS = {".csv": ",", ".tsv": "\t"}
NOTHING_BELOW = "there is a header and nothing below it"

# What pandas writes above the index of a frame, and names such a column when it reads it.
UNNAMED = re.compile(r"|Unnamed: \d+(_level_\d+)?")

# A first row 0, 1, 2 ... of at least this many cells may be the header of a frame without names.
LEAST_NUMBERED = 3


@contextmanager
def errors_about(source):
    """Name a source in errors about what it holds."""
    try:
        yield
    except UnicodeDecodeError as error:
        message = f"{source_name(source)} is not a text file in UTF-8: {error}"
        raise ValueError(message) from error
    except (ValueError, csv.Error) as error:
        raise ValueError(f"{source_name(source)}: {error}") from error


@contextmanager
def open_table(path, delimiter=None):
    """Open a table, and yield line number (from 1) and cells of every row that is not blank.

    Where the name of the file does not tell the delimiter, it is the one given, or, with None, the
    one that the first line shows.
    """
    delimiter = DELIMITERS.get(path.suffix.lower(), delimiter)
    with errors_about(path), _open_text(path) as file:
        if delimiter is None:
            delimiter = delimiter_of(path, next(filter(str.strip, file), ""))
            file.seek(0)
        reader = csv.reader(file, delimiter=delimiter, skipinitialspace=True)
        yield ((reader.line_num, row) for row in reader if row)


def _open_text(path):
    """Return an open text file; standard input, which has no way back, is read at once."""
    if str(path) == STANDARD_INPUT:
        return io.StringIO(sys.stdin.buffer.read().decode("utf-8-sig"), newline="")
    return path.open(encoding="utf-8-sig", newline="")


def delimiter_of(path, first_line):
    """Return what separates cells: as the file's name ends, else a tab if there is one."""
    by_name = DELIMITERS.get(Path(path).suffix.lower())
    return by_name or ("\t" if "\t" in first_line else ",")


def read_table(path, label_column):
    """Return the points of a table, (n, d), and the (n,) labels of a column, from 0, or None."""
    with open_table(path) as rows:
        first_line, first = next(rows, (0, None))
        if first is None:
            raise ValueError("the file is empty")
        layout = read_layout(path, first_line, first, label_column)
        X, labels = [], []
        for line, row in rows if layout.has_header else chain([(first_line, first)], rows):
            X.append(layout.numbers(line, row))
            if layout.label is not None:
                labels.append(row[layout.label].strip())
                if not labels[-1]:
                    raise ValueError(f"line {line}: the label is empty")
        if not X:
            raise ValueError(NOTHING_BELOW)
    y = None if layout.label is None else np.unique(labels, return_inverse=True)[1]
    return np.array(X), y


@dataclass(frozen=True)
class Layout:
    """Which cells of a table's rows are numbers, and which one is the label.

    The first ``n_index`` columns have no name in the header, as pandas writes the index of a frame:
    they number the rows and are not used.
    """

    line: int  # of the first row
    first: list[str]  # its cells
    label: int | None
    has_header: bool
    n_index: int = 0

    @cached_property
    def _columns(self):
        return [i for i in range(self.n_index, len(self.first)) if i != self.label]

    def numbers(self, line, row):
        """Return the numbers of a row."""
        if len(row) != len(self.first):
            raise ValueError(
                f"line {line} has {len(row)} cells; line {self.line} has {len(self.first)}"
            )
        values = [_number(row[i]) for i in self._columns]
        if None in values:
            i = self._columns[values.index(None)]
            column = repr(self.first[i].strip()) if self.has_header else f"{i} (from 0)"
            raise ValueError(
                f"line {line}, column {column}: expected a finite number, got {row[i]!r}; "
                "fill in missing values, and name a column of labels by --label-column"
            )
        return values


def read_layout(source, line, first, label_column):
    """Return the layout that a table's first row shows.

    Notes on standard error tell which columns are left out, and whether data may be a header.
    """
    label = _label_index(first, label_column)
    columns = [i for i in range(len(first)) if i != label]
    if not columns:
        raise ValueError("there is no column beside the label column")
    # Unless the label column was named after it, a first row with some numbers is data with a
    # fault rather than a header.
    named = label_column is not None and not label_column.isdecimal()
    has_header = named or is_header([first[i] for i in columns]) or _numbers_columns(first)
    n_index = _count_index(first, label) if has_header else 0
    if n_index:
        which = "the first column" if n_index == 1 else f"the first {n_index} columns"
        tell(
            "note",
            f"{source_name(source)}: {which} without a name in the header, as DataFrame.to_csv() "
            "writes the index, left out; give a name to use it as a feature",
        )
    if not has_header and len(first) >= LEAST_NUMBERED and _are_counted(first):
        tell(
            "note",
            f"{source_name(source)}: the first row is 0, 1, 2 ... and was taken for data; if it "
            "numbers the columns, write names or no header",
        )
    return Layout(line, first, label, has_header, n_index)


def _label_index(first, label_column):
    """Return the index of the label column, or None if there is none."""
    if label_column is None:
        return None
    if not label_column.isdecimal():
        names = [cell.strip() for cell in first]
        if label_column not in names:
            raise ValueError(
                f"--label-column: no column {label_column!r} in the header; "
                f"it has {', '.join(names)}"
            )
        return names.index(label_column)
    label = int(label_column)
    if label >= len(first):
        raise ValueError(f"--label-column: got {label}, but the columns are 0 to {len(first) - 1}")
    return label


def is_header(cells):
    """Tell whether a first row holds names: no number, and not missing values alone."""
    return all(_number(cell) is None for cell in cells) and any(map(_is_name, cells))


def _numbers_columns(first):
    """Tell whether a first row is the header of a frame whose columns are 0, 1, 2 ..."""
    n_index = _count_index(first, None)
    return n_index > 0 and _are_counted(first[n_index:])


def _are_counted(cells):
    """Tell whether cells are 0, 1, 2 ..."""
    return [cell.strip() for cell in cells] == [str(i) for i in range(len(cells))]


def _count_index(first, label):
    """Return how many columns on the left have no name, but leave one column of features."""
    unnamed = [bool(UNNAMED.fullmatch(cell.strip())) and i != label for i, cell in enumerate(first)]
    n_index = (unnamed + [False]).index(False)
    others = len(first) - n_index - (label is not None and label >= n_index)
    return n_index if others else 0


def _is_name(cell):
    """Tell whether a cell is neither empty nor a number, be it NaN or infinite."""
    try:
        float(cell)
    except ValueError:
        return bool(cell.strip())
    return False


def _number(cell):
    """Return a cell as a finite number, or None if it is not one."""
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
