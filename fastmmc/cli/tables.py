"""Tables of numbers: which of their cells are names, numbers, labels or the index of a frame."""

import argparse
import codecs
import csv
import io
import re
import shlex
import sys
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import chain, count, groupby, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fastmmc.cli.common import (
    STANDARD_INPUT,
    Option,
    is_whole,
    note,
    parser_of,
    source_name,
    to_number,
)
from fastmmc.core.words import SHOWN, counted, first_of, named, quoted
from fastmmc.data.cells import is_date, is_missing, says_number_or_date
from fastmmc.data.frames import Frame, Values

TABLES = (".csv", ".tsv")
# What older programs of Windows write in Western Europe.
WINDOWS = "cp1252"
NOTHING_BELOW = "there is a header and nothing below it"

# What pandas writes above the index of a frame, and names such a column when it reads it.
UNNAMED = re.compile(r"|Unnamed: \d+(_level_\d+)?")
# A first row 0, 1, 2 ... of at least this many cells may be the header of a frame without names.
LEAST_NUMBERED = 3
# Rows that tell whether a first row with numbers, as of years, is a header.
ROWS_BELOW = 100

LONGEST_CELL = 2**31 - 1  # characters, the most that csv takes on every system
# What Excel writes above the header, and reads there.
DELIMITER_LINE = re.compile(r"sep=([,;\t|])[\r\n]*")
QUOTED = re.compile(r'"[^"]*"')

# How files begin that are no texts, whatever they are called.
OTHER_KINDS = {
    b"PK\x03\x04": "a zip archive, as .xlsx is",
    b"\xd0\xcf\x11\xe0": "a workbook of Excel",
    b"\x1f\x8b": "a gzip archive",
    b"\x93NUMPY": "a NumPy array, which fastmmc cluster reads as .npy",
    b"PAR1\x15": "a Parquet file, which fastmmc cluster reads as .parquet",
}


class Columns(NamedTuple):
    """The columns that were asked for, by their names, numbers from 0 or ranges of numbers.

    ``features`` is None for all but those in ``left_out``, the label and the index.
    """

    features: list[str] | None = None
    left_out: list[str] | None = None
    label: str | None = None

    @property
    def are_listed(self):
        """Whether each column of features was asked for."""
        return self.features is not None

    def choose(self, n_columns, names=None):
        """Return the numbers of the columns of features, in the order asked for, and the label."""

        def find(flag, items):
            return [i for item in items or () for i in _find(flag, item, n_columns, names)]

        label = None
        if self.label is not None:
            (label,) = _find("--label-column", self.label, n_columns, names, ranges=False)
        chosen, dropped = find("--columns", self.features), find("--drop", self.left_out)
        for at, i in enumerate(chosen):
            if i in chosen[:at]:
                raise ValueError(f"--columns names column {_shown(i, names)} twice")
        if label in chosen:
            raise ValueError(
                f"--columns has {_shown(label, names)}, which --label-column names too; a column "
                "of labels is no feature: leave it out of one of them"
            )
        features = [i for i in chosen or range(n_columns) if i != label and i not in dropped]
        if not features:
            if dropped:
                raise ValueError("--drop leaves no column of features; name fewer columns")
            raise ValueError("there is no column besides the label column")
        return features, label

    def name_some(self, names):
        """Tell whether one of these names is meant, so that they are a header."""
        items = (self.features or []) + (self.left_out or [])
        named = self.label is not None and not is_whole(self.label)
        return named or any(_is_named(item, names) for item in items)


@dataclass(frozen=True)
class SameColumns:
    """The columns that a model was made of: names, where it has them, numbers, and out of how many.

    A table with a header must have columns of these names, in any order; without one it must have
    as many columns as the first one had, or those of the model only.
    """

    names: list[str] | None
    numbers: list[int]
    n_columns: int

    label = None
    are_listed = True

    def _check_values(self):
        n_names = len(self.numbers) if self.names is None else len(self.names)
        fits = all(0 <= i < self.n_columns for i in self.numbers)
        if not fits or n_names != len(self.numbers):
            raise ValueError(f"columns are {self.numbers}, out of {self.n_columns}")

    def calls(self, places):
        """Return what options call some of these columns, by their places among them."""
        names = [""] * self.n_columns
        for i, name in zip(self.numbers, self.names or (), strict=False):
            names[i] = name
        return call_columns([self.numbers[i] for i in places], names)

    def of(self, coding):
        """Return those of these columns that a coding uses."""
        places = [i for i, column in enumerate(coding.columns) if column.width]
        names = None if self.names is None else [self.names[i] for i in places]
        return replace(self, names=names, numbers=[self.numbers[i] for i in places])

    def choose(self, n_columns, names=None):
        """Return the numbers of the columns in a table, and no label."""
        if self.names is not None and names is not None:
            missing = [name for name in self.names if name not in names]
            if not missing:
                return self._named(names), None
            if len(missing) < len(self.names) or is_header(names):
                raise ValueError(
                    f"the model needs {named('column', missing)}, missing here; rename what is "
                    "meant, or list the columns in the model's order by --columns"
                )
        if n_columns == self.n_columns:
            return self.numbers, None
        if n_columns == len(self.numbers):
            return list(range(n_columns)), None
        raise ValueError(
            f"there are {n_columns} columns; the model was made of {len(self.numbers)} out of "
            f"{self.n_columns}: list them in the model's order by --columns"
        )

    def _named(self, names):
        """Return the numbers of the columns with the model's names."""
        twice = next((name for name in self.names if names.count(name) > 1), None)
        if twice is None:
            return [names.index(name) for name in self.names]
        if len(names) == self.n_columns and [names[i] for i in self.numbers] == self.names:
            return self.numbers
        raise ValueError(
            f"{names.count(twice)} columns are named {twice!r}; list the columns in the model's "
            "order by --columns"
        )

    def name_some(self, names):
        """Tell whether the names are those of the model, so that they are a header."""
        return self.names is not None and set(self.names) <= set(names)


@contextmanager
def long_cells():
    """Let cells of tables be of any length; Python's csv has one limit for the whole process."""
    before = csv.field_size_limit(LONGEST_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def parse_columns(text):
    """Return a list of columns; a name with a comma stands in double quotes."""
    try:
        (cells,) = csv.reader([text], skipinitialspace=True, strict=True)
    except (csv.Error, ValueError):
        cells = []
    items = [cell.strip() for cell in cells]
    if not all(items) or not items:
        raise argparse.ArgumentTypeError(
            f"expected names or numbers of columns, separated by commas; got {text!r}"
        )
    return items


def parse_encoding(name):
    """Return the name of an encoding of text."""
    try:
        "".encode(name)
    except (LookupError, ValueError):
        raise argparse.ArgumentTypeError(
            f"there is no encoding {name!r}; give one such as utf-8, utf-16, cp1252 or latin-1"
        ) from None
    return name


HOW = "by names in the header, numbers from 0, or ranges of numbers: a,b or 0,3,5-8"
DROP = Option("--drop COLS", parse_columns, f"leave these columns out, {HOW}", action="extend")
LISTED = (
    Option("--columns COLS", parse_columns, f"use these columns only, {HOW}", action="extend"),
)
COLUMNS = (*LISTED, DROP)
DECIMAL = Option(
    "--decimal MARK",
    parser_of("a comma or a point", words={mark: mark for mark in ",."}),
    "a comma or a point: what stands before decimals in columns that do not tell, as of 2.131 and "
    "1.570 alone",
)


@contextmanager
def errors_about(source):
    """Name a source in errors about what it holds."""
    try:
        yield
    except (ValueError, csv.Error) as error:
        raise ValueError(f"{source_name(source)}: {error}") from error


class Text(NamedTuple):
    """The lines of a table, what separates the cells in them, and their encoding."""

    lines: list[str]
    delimiter: str
    encoding: str

    def rows(self):
        """Yield number (from 1) of the first line, text and cells of every row.

        Blank lines have no cells, nor has one in which Excel tells the delimiter. A quoted cell may
        hold line breaks, but no line like a row: a quote that nothing closes would take in the rows
        up to the next one.
        """
        reader = _reader(self.lines, self.delimiter)
        begin = width = 0
        while begin < len(self.lines):
            try:
                cells = next(reader)
                if width == 0 and DELIMITER_LINE.fullmatch(self.lines[begin]):
                    cells = []
                width = width or len(cells)
                if reader.line_num > begin + 1 and _hold_rows(cells, self.delimiter, width):
                    problem = f"a cell goes on to line {reader.line_num}, and has lines like rows"
                    raise csv.Error(problem)
            except csv.Error as error:
                raise _unreadable(begin + 1, error, self.lines[begin]) from error
            yield begin + 1, "".join(self.lines[begin : reader.line_num]), cells
            begin = reader.line_num


def _hold_rows(cells, delimiter, width):
    """Tell whether a line within a cell has as many cells as a row, and so may be one."""
    lines = [lines for cell in cells if len(lines := cell.splitlines()) > 1]
    return any(line.count(delimiter) + 1 == width for line in chain(*lines))


def _reader(lines, delimiter):
    return csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=True)


def _unreadable(number, error, line, where="where its cell ends"):
    """Return an error about a line, and advice where it has a quote."""
    advice = f"close a quote {where}, and write one within a cell twice"
    return BadRow(
        f"line {number} cannot be read as a row: {error}", advice if '"' in line else None
    )


class BadRow(ValueError):
    """A row that cannot be read: the ``problem``, and perhaps what to do."""

    def __init__(self, problem, advice=None):
        super().__init__(problem if advice is None else f"{problem}; {advice}")
        self.problem = problem


def read_text(source, encoding=None):
    """Return the text of a table; without an encoding it is what the bytes allow."""
    is_piped = str(source) == STANDARD_INPUT
    data = sys.stdin.buffer.read() if is_piped else Path(source).read_bytes()
    refuse_other_kinds(data)
    encoding = encoding or _encoding_of(data)
    try:
        text = data.decode(encoding)
        if "\0" in text:
            raise ValueError("there are bytes of 0")
    except ValueError as error:
        # Every other byte of most texts in UTF-16 is 0, and latin-1 has a letter for any byte.
        likely = "utf-16-le" if b"\0" in data else "latin-1"
        raise ValueError(
            f"not a text file in {encoding.removesuffix('-sig').upper()}: {error}; name its "
            f"encoding, such as --encoding {likely}"
        ) from error
    text = text.removeprefix("\ufeff")  # named without its mark, as by --encoding utf-8
    lines = list(io.StringIO(text, newline=""))
    first_line = next(filter(str.strip, lines), "")
    return Text(lines, delimiter_of(source, first_line), encoding)


def refuse_other_kinds(data):
    """Refuse the bytes of a file, or the first of them, that say that it is no text."""
    for begin, kind in OTHER_KINDS.items():
        if data.startswith(begin):
            raise ValueError(f"not a text file but {kind}; convert it to .csv")


def _encoding_of(data):
    """Return what the first bytes say, UTF-8, or what older programs of Windows write."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if data.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return "utf-8" if b"\0" in data else WINDOWS
    return "utf-8"


def cells_of(line, number, delimiter):
    """Return the cells of a line; a cell that would go on in the next one is an error."""
    try:
        return next(_reader([line], delimiter), [])
    except csv.Error as error:
        raise _unreadable(number, error, line, "in its own line") from error


def delimiter_of(path, first_line):
    """Return what separates cells: of tab, semicolon, comma and bar the first in the first line."""
    if Path(path).suffix.lower() == ".tsv":
        return "\t"
    if told := DELIMITER_LINE.fullmatch(first_line):
        return told[1]
    plain = QUOTED.sub("", first_line)
    return next((mark for mark in "\t;,|" if mark in plain), ",")


def read_table(path, asked, encoding=None):
    """Return the columns of a table, (n,) labels from 0, or None, and the layout."""
    with errors_about(path):
        text = read_text(path, encoding)
        if encoding is None and text.encoding == WINDOWS:
            advice = "if letters are wrong, name another encoding, such as --encoding cp1250"
            note(path, f"read as {WINDOWS}, as it is not UTF-8; {advice}")
        rows = ((at, line, row) for at, (line, _, row) in enumerate(text.rows()) if row)
        first = next(rows, None)
        if first is None:
            raise ValueError("the file is empty")
        below = list(islice(rows, ROWS_BELOW))
        layout = read_layout(path, *first[1:], asked, [row for *_, row in below])
        rows = chain(below, rows)
        top = next(rows, None) if layout.has_header else first
        if top is None:
            raise ValueError(NOTHING_BELOW)
        columns, labels = [[] for _ in layout.columns], []
        for at, line, row in chain([top], rows):
            n_rows = at + 1 - top[0]  # with blank ones
            layout.check_length(line, row)
            for column, i in zip(columns, layout.columns, strict=True):
                column.append(row[i])
            if layout.label is not None:
                labels.append(row[layout.label].strip())
                if is_missing(labels[-1]):
                    raise missing_label(f"line {line}", labels[-1])
    if n_blank := n_rows - len(columns[0]):
        # In a table of one column they may be meant as missing cells.
        lines = counted(n_blank, "blank line")
        note(path, f"{lines} between the rows left out, without labels")
    y = None if layout.label is None else np.unique(labels, return_inverse=True)[1]
    return layout.frame(columns, text.delimiter), y, layout


def missing_label(where, cell=""):
    """Return an error about a true class that is not known."""
    found = f"{cell!r}, which stands for a missing one" if cell.strip() else "empty"
    return ValueError(
        f"{where}: the label is {found}; fill it in, call the class something else, or remove the "
        "row"
    )


@dataclass(frozen=True)
class Layout:
    """Which cells of a table's rows are numbers, and which one is the label."""

    line: int  # of the first row
    first: list[str]  # its cells
    label: int | None
    has_header: bool
    columns: list[int]

    def _check_values(self):
        used = [*self.columns, *([] if self.label is None else [self.label])]
        if not self.columns or not all(0 <= i < len(self.first) for i in used) or self.line < 1:
            raise ValueError(f"columns are {self.columns}, of {len(self.first)} cells")

    @property
    def names(self):
        """The names of the columns that are used, or None."""
        return [self.first[i].strip() for i in self.columns] if self.has_header else None

    @property
    def same_columns(self):
        """The columns that are used, as other tables must have them."""
        return SameColumns(self.names, self.columns, len(self.first))

    def frame(self, columns, delimiter):
        """Return a frame of the columns that are used, lists of cells."""
        names = self.names or [str(i) for i in self.columns]
        # Semicolons part cells where a comma stands before decimals.
        mark = "," if delimiter == ";" else None
        return Frame(names, [Values("texts", column) for column in columns], mark)

    def check_length(self, line, row):
        """Refuse a row that has not as many cells as the first one."""
        if len(row) != len(self.first):
            advice = f"line {self.line} has {len(self.first)}"
            if len(self.first) == 1:
                advice += "; if it is a title or a comment, delete it"
            raise BadRow(f"line {line} has {counted(len(row), 'cell')}", advice)

    def fault(self, line, row, i, expected):
        """Return an error that tells what is wrong with a cell of a row, and what to do."""
        names = self.first if self.has_header else None
        advice = (
            f"leave the column out by {drop_option(call_columns([i], names))}, or rows by "
            "--skip-bad-rows, or name a column of labels by --label-column"
        )
        if line == self.line and any(map(_names, self.first)):
            advice += "; the row was taken for data, as here no name in a header may be a number"
        problem = f"column {_shown(i, names)}: expected {expected}, got {quoted(row[i])}"
        return BadRow(f"line {line}, {problem}", advice)


def call_columns(numbers, names):
    """Return what options call columns: by their names, or numbers where names are ambiguous.

    Many are called by ranges of numbers.
    """
    if len(numbers) > SHOWN:
        runs = groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])
        ranges = [[i for _, i in run] for _, run in runs]
        return [f"{one[0]}-{one[-1]}" if len(one) > 1 else f"{one[0]}" for one in ranges]
    names = [""] * (max(numbers) + 1) if names is None else [name.strip() for name in names]
    fits = {i: names[i] and not is_whole(names[i]) and names.count(names[i]) == 1 for i in numbers}
    return [names[i] if fits[i] else str(i) for i in numbers]


def option_of(flag, value):
    """Return an option with a value as a shell reads it."""
    # Another option might begin with a dash.
    return f"{flag}{'=' if value.startswith('-') else ' '}{shlex.quote(value)}"


def drop_option(columns):
    """Return the option that leaves columns out."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(columns)
    return option_of(DROP.flag, text.getvalue())


def lines_with_labels(path, text, has_header, labels):
    """Yield the lines of a table as they are, with a label at the end of each row."""
    with errors_about(path):
        rest, name, delimiter, end = iter(labels), None, text.delimiter, "\n"
        for _, line, cells in text.rows():
            body = line.rstrip("\r\n")
            end = line[len(body) :] or end  # the last line may have none
            if not cells:
                yield line
            elif has_header and name is None:
                names = {cell.strip() for cell in cells}
                others = (f"cluster_{i}" for i in count(2))
                name = next(one for one in chain(["cluster"], others) if one not in names)
                yield f"{body}{delimiter}{name}{end}"
            elif (label := next(rest, None)) is not None:
                yield f"{body}{delimiter}{label}{end}"
            else:
                raise ValueError("it has more rows than before; do not change it meanwhile")
        if next(rest, None) is not None:
            raise ValueError("it has fewer rows than before; do not change it meanwhile")


def read_layout(source, line, first, asked, below=()):
    """Return the layout that a table's first row shows, beside some rows ``below`` it.

    Notes on standard error tell which columns are left out, and whether data may be a header.
    """
    if len(first) == 1:
        _refuse_spaces([row[0] for row in below if len(row) == 1])
    names = [cell.strip() for cell in first]
    features, label = asked.choose(len(first), names)
    # Unless a column was named after it, a first row with some numbers is data with a fault rather
    # than a header.
    cells = [first[i] for i in features]
    same = [row for row in below if len(row) == len(first)]
    alike = [[row[i] for i in features] for row in same]
    is_known = asked.name_some(names) or _numbers_columns(first)
    has_header = is_known or (is_header(cells) and not _is_data(cells, alike))
    if not has_header and is_header(cells):
        told = "the first row was taken for data, as all that it holds is in its columns again"
        advice = "if it is the header, name a column by --columns, --drop or --label-column"
        note(source, f"{told}; {advice}")
    why = None
    if not has_header and _names_numbers(cells, alike):
        name = next(cell.strip() for cell in cells if _names(cell))
        why = f"with {name!r} above other rows"
    elif not has_header and _number_floats(first, same):
        why = f"{names[0]}, {names[1]} ... above no whole number"
    if why is not None:
        has_header = True
        note(source, f"the first row, {why}, was taken for the header, though it has numbers")
    if has_header and not asked.are_listed:
        features = _without_index(source, names, features, label)
    if not has_header and len(first) >= LEAST_NUMBERED and _are_counted(first):
        note(
            source,
            "the first row is 0, 1, 2 ... and was taken for data; if it numbers the columns, write "
            "names or no header",
        )
    return Layout(line, first, label, has_header, features)


def _refuse_spaces(rows):
    """Refuse a column whose cells are numbers with spaces between them, not as thousands have."""
    parts = [cell for row in rows for cell in row.split()]
    if len(parts) == len(rows) or not all(map(says_number_or_date, parts)):
        return
    if not all(map(says_number_or_date, rows)):
        raise ValueError(
            f"numbers such as {rows[0].strip()!r} seem to be separated by spaces; separate them by "
            "commas, semicolons or tabs, as with tr -s ' ' ','"
        )


def _find(flag, item, n_columns, names, ranges=True):
    """Return the numbers of the columns that an item names."""
    if is_whole(item):
        if int(item) < n_columns:
            return [int(item)]
        raise ValueError(f"{flag}: got {item}, but the columns are 0 to {n_columns - 1}")
    if _is_named(item, names):
        if names.count(item) > 1:
            raise ValueError(
                f"{flag}: {names.count(item)} columns are named {item!r}; give the "
                "number of one, from 0"
            )
        return [names.index(item)]
    ends = re.fullmatch(r"(\d+)-(\d+)", item, re.ASCII) if ranges else None
    if ends is not None:
        first, last = map(int, ends.groups())
        if not first <= last < n_columns:
            raise ValueError(
                f"{flag}: got {item}, but the columns are 0 to {n_columns - 1}, the first one "
                "of a range before the last"
            )
        return list(range(first, last + 1))
    if names is None:
        raise ValueError(
            f"{flag}: got {item!r}, but the columns have no names; give numbers from 0 to "
            f"{n_columns - 1}"
        )
    near = get_close_matches(item, names, 1)
    advice = f"did you mean {near[0]!r}? " if near else ""
    raise ValueError(f"{flag}: no column {item!r} in the header; {advice}it has {first_of(names)}")


def _is_named(item, names):
    """Tell whether an item is the name of a column; a whole number is never meant as a name."""
    return not is_whole(item) and names is not None and item in names


def _shown(i, names):
    """Return what a column is called in messages."""
    return f"{i} (from 0)" if names is None else repr(names[i].strip())


def is_header(cells):
    """Tell whether a first row holds names: no number or date, and not missing values alone."""
    return any(map(_names, cells)) and not any(map(says_number_or_date, cells))


def _names_numbers(first, below):
    """Tell whether a first row is a header in which some columns are called by numbers or dates.

    These are whole and different, and a name stands above numbers or dates; or else the names occur
    only here and the numbers count by 1, at least three of them or beyond all that is below them.
    """
    names = [i for i, cell in enumerate(first) if _names(cell)]
    numbered = [i for i in range(len(first)) if i not in names]
    others = [first[i].strip() for i in numbered]
    if not (names and others and below) or len(set(others)) < len(others):
        return False
    over = {first[i].strip() for i in names if _hold_numbers(below, i)}
    if len(over) > 1:
        return True
    if not all(is_whole(cell) or is_date(cell) for cell in others):
        return False
    if over or any(_dates_numbers(first[i], below, i) for i in numbered):
        return True
    is_new = all(row[i] != first[i] for row in below for i in names)
    if not (is_new and _count_by_one(others)):
        return False
    return len(others) >= LEAST_NUMBERED or all(_is_beyond(first, below, i) for i in numbered)


def _dates_numbers(cell, below, i):
    """Tell whether a cell is a date above numbers, none of them a date."""
    return is_date(cell) and _hold_numbers(below, i) and not any(is_date(r[i]) for r in below)


def _is_data(first, below):
    """Tell whether all names in a first row are in their columns below, none of them numbers.

    In files that were put together a header is repeated between rows of numbers.
    """
    rows = [[cell.strip() for cell in row] for row in below]
    first = [cell.strip() for cell in first]
    names = [i for i, cell in enumerate(first) if _names(cell)]
    if not (names and all(any(row[i] == first[i] for row in rows) for i in names)):
        return False
    others = [row for row in rows if row != first]
    return not any(_hold_numbers(others, i) for i in names)


def _hold_numbers(rows, i):
    """Tell whether a column has numbers or dates alone, beside missing cells."""
    cells = [row[i] for row in rows if not is_missing(row[i])]
    return bool(cells) and all(map(says_number_or_date, cells))


def _names(cell):
    """Tell whether a cell is a name, and neither missing nor a date or a number, be it infinite."""
    is_number = _number(cell) is not None or says_number_or_date(cell)
    return not is_missing(cell) and not is_number


def _is_beyond(first, below, i):
    """Tell whether the number in a column's first row is beyond all numbers below it."""
    found = [number for row in below if (number := _number(row[i])) is not None]
    return bool(found) and not min(found) <= int(first[i]) <= max(found)


def _count_by_one(cells):
    """Tell whether cells are whole numbers, each the one before plus 1."""
    if len(cells) < 2 or not all(map(is_whole, cells)):
        return False
    numbers = [int(cell) for cell in cells]
    return numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def _numbers_columns(first):
    """Tell whether a first row is the header of a frame whose columns are 0, 1, 2 ..."""
    n_index = _count_unnamed([cell.strip() for cell in first], None)
    return 0 < n_index < len(first) and _are_counted(first[n_index:])


def _number_floats(first, below):
    """Tell whether several whole numbers, all different, stand above rows without any.

    So pandas writes floats in columns without names.
    """
    are_distinct = all(map(is_whole, first)) and len({cell.strip() for cell in first}) == len(first)
    is_table = len(first) > 1 and len(below) > 0
    return is_table and are_distinct and not any(is_whole(cell) for row in below for cell in row)


def _are_counted(cells):
    """Tell whether cells are 0, 1, 2 ..."""
    return [cell.strip() for cell in cells] == [str(i) for i in range(len(cells))]


def _count_unnamed(names, label):
    """Return how many columns on the left have no name."""
    unnamed = [bool(UNNAMED.fullmatch(name)) and i != label for i, name in enumerate(names)]
    return (unnamed + [False]).index(False)


def _without_index(source, names, features, label):
    """Return the features without the index of a frame, unless nothing else is left."""
    n_index = _count_unnamed(names, label)
    rest = [i for i in features if i >= n_index]
    if not rest or rest == features:
        return features
    which = "the first column" if n_index == 1 else f"the first {n_index} columns"
    note(
        source,
        f"{which} without a name in the header, as DataFrame.to_csv() writes the index, left out; "
        "give a name to use it as a feature",
    )
    return rest


def _number(cell):
    """Return a cell as a number, which may be NaN or infinite, or None if it is not one."""
    try:
        return to_number(cell)
    except ValueError:
        return None
