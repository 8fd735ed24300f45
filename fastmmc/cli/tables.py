"""How the lines of a table become cells, and whether the first of them are names."""

import argparse
import codecs
import csv
import io
import re
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, count, islice, starmap, takewhile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fastmmc.cli.columns import SameColumns, call_columns, drop_option, shown
from fastmmc.cli.common import STANDARD_INPUT, Option, is_whole, note, parser_of, source_name
from fastmmc.core.words import counted, quoted
from fastmmc.data.cells import (
    are_names,
    is_date,
    is_missing,
    is_name,
    says_number_or_date,
    to_number,
)
from fastmmc.data.frames import Frame, Values

TABLES = (".csv", ".tsv")
# What older programs of Windows write in Western Europe.
WINDOWS = "cp1252"

# What pandas writes above the index of a frame, and names such a column when it reads it.
UNNAMED = re.compile(r"|Unnamed: \d+(_level_\d+)?")
# A first row 0, 1, 2 ... of at least this many cells may be the header of a frame without names.
LEAST_NUMBERED = 3
# Rows that tell whether a first row with numbers, as of years, is a header.
ROWS_BELOW = 100

DELIMITERS = ("\t", ";", ",", "|")  # the first of these in the first line separates cells
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


@contextmanager
def long_cells():
    """Let cells of tables be of any length; Python's csv has one limit for the whole process."""
    before = csv.field_size_limit(LONGEST_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def parse_encoding(name):
    """Return the name of an encoding of text."""
    try:
        "".encode(name)
    except (LookupError, ValueError):
        raise argparse.ArgumentTypeError(
            f"there is no encoding {name!r}; give one such as utf-8, utf-16, cp1252 or latin-1"
        ) from None
    return name


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

    def rows(self, n_before=0, quotes_end="where its cell ends"):
        """Yield the number of the first line, the text and the cells of every row.

        ``n_before`` lines come before these. Blank lines have no cells, nor has the line in which
        Excel tells the delimiter. A quoted cell may hold line breaks, but no line like a row: a
        quote that nothing closes would take in the rows up to the next one.
        """
        reader = csv.reader(
            self.lines, delimiter=self.delimiter, skipinitialspace=True, strict=True
        )
        begin = width = 0
        while begin < len(self.lines):
            try:
                cells = next(reader)
                if n_before + width == 0 and DELIMITER_LINE.fullmatch(self.lines[begin]):
                    cells = []
                width = width or len(cells)
                if reader.line_num > begin + 1 and _hold_rows(cells, self.delimiter, width):
                    problem = f"a cell goes on to line {reader.line_num}, and has lines like rows"
                    raise csv.Error(problem)
            except csv.Error as error:
                problem = f"line {n_before + begin + 1} cannot be read as a row: {error}"
                advice = f"close a quote {quotes_end}, and write one within a cell twice"
                raise BadRow(problem, advice if '"' in self.lines[begin] else None) from error
            yield n_before + begin + 1, "".join(self.lines[begin : reader.line_num]), cells
            begin = reader.line_num


def _hold_rows(cells, delimiter, width):
    """Tell whether a line within a cell has as many cells as a row, and so may be one."""
    lines = [lines for cell in cells if len(lines := cell.splitlines()) > 1]
    return any(line.count(delimiter) + 1 == width for line in chain(*lines))


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


def delimiter_of(path, first_line):
    """Return what separates cells, by the name of a file or its first line."""
    if Path(path).suffix.lower() == ".tsv":
        return "\t"
    if told := DELIMITER_LINE.fullmatch(first_line):
        return told[1]
    return next((mark for mark in DELIMITERS if mark in QUOTED.sub("", first_line)), ",")


def read_table(path, asked, encoding=None):
    """Return the columns of a table, (n,) labels from 0, or None, and which columns these are."""
    with errors_about(path):
        text = read_text(path, encoding)
        if encoding is None and text.encoding == WINDOWS:
            advice = "if letters are wrong, name another encoding, such as --encoding cp1250"
            note(path, f"read as {WINDOWS}, as it is not UTF-8; {advice}")
        rows = ((line, at, row) for at, (line, _, row) in enumerate(text.rows()) if row)
        layout, rows = read_layout(path, rows, asked)
        columns, labels, top = [[] for _ in layout.columns], [], None
        for line, at, row in rows:
            top = at if top is None else top
            layout.check_length(line, row)
            for column, i in zip(columns, layout.columns, strict=True):
                column.append(row[i])
            if layout.label is not None:
                labels.append(row[layout.label].strip())
                if is_missing(labels[-1]):
                    raise missing_label(f"line {line}", labels[-1])
    if n_blank := at + 1 - top - len(columns[0]):
        # In a table of one column they may be meant as missing cells.
        lines = counted(n_blank, "blank line")
        note(path, f"{lines} between the rows left out, without labels")
    y = None if layout.label is None else np.unique(labels, return_inverse=True)[1]
    return layout.frame(columns, text.delimiter), y, layout.same_columns


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
        if line == self.line and any(map(is_name, self.first)):
            advice += "; the row was taken for data, as here no name in a header may be a number"
        problem = f"column {shown(i, names)}: expected {expected}, got {quoted(row[i])}"
        return BadRow(f"line {line}, {problem}", advice)


def lines_with_labels(path, text, has_header, labels):
    """Yield the lines of a table as they are, with a label at the end of each row."""
    with errors_about(path):
        rows = list(text.rows())
        table = [cells for _, _, cells in rows if cells]
        if len(table) != has_header + len(labels):
            raise ValueError("it has other rows than before; do not change it meanwhile")
        column, end = [*map(str, labels)], "\n"
        if has_header:
            taken = {cell.strip() for cell in table[0]}
            names = chain(["cluster"], (f"cluster_{i}" for i in count(2)))
            column.insert(0, next(name for name in names if name not in taken))
        entries = iter(column)
        for _, line, cells in rows:
            body = line.rstrip("\r\n")
            end = line[len(body) :] or end  # the last line may have none
            yield f"{body}{text.delimiter}{next(entries)}{end}" if cells else line


def read_layout(source, rows, asked, n_below=ROWS_BELOW):
    """Return the layout that a table's first row shows, beside some below it, and the rows of data.

    In the ``rows`` the number of a line comes first and cells third. Notes on standard error tell
    which columns are left out, and whether data may be a header.
    """
    top = list(islice(rows, 1 + n_below))
    if not top:
        raise ValueError("the file is empty")
    (line, _, first, *_), *below = top
    layout = _layout_of(source, line, first, asked, [row[2] for row in below])
    data = chain(below if layout.has_header else top, rows)
    first = next(data, None)
    if first is None:
        raise ValueError("there is a header and nothing below it")
    return layout, chain([first], data)


def _layout_of(source, line, first, asked, below):
    """Return the layout that a first row shows, its line and cells, beside the cells below it."""
    if len(first) == 1:
        _refuse_spaces([row[0] for row in below if len(row) == 1])
    names = [cell.strip() for cell in first]
    features, label = asked.choose(len(first), names)
    same = [[cell.strip() for cell in row] for row in below if len(row) == len(first)]
    # In files that were put together a header is repeated between rows of numbers.
    rest = [row for row in same if any(row[i] != names[i] for i in features)]
    comes_again = len(rest) < len(same)
    columns = [[row[i] for row in rest] for i in range(len(first))]
    n_index = len([*takewhile(UNNAMED.fullmatch, names)])
    pairs = [(names[i], columns[i]) for i in features]
    named = [(name, column) for name, column in pairs if is_name(name)]
    if asked.name_some(names) or 0 < n_index < len(first) and _are_counted(names[n_index:]):
        has_header = True
    elif are_names([name for name, _ in pairs]):
        is_data = comes_again or all(name in column for name, column in named)
        has_header = not is_data or any(_hold_numbers(column) for _, column in named)
        if not has_header:
            told = "the first row was taken for data, as all that it holds is in its columns again"
            advice = "if it is the header, name a column by --columns, --drop or --label-column"
            note(source, f"{told}; {advice}")
    else:
        others = [(cell, column) for cell, column in pairs if not is_name(cell)]
        why = _why_header(named, others, comes_again)
        if why is None and not comes_again:
            why = _why_numbers(names, columns)
        has_header = why is not None
        if has_header:
            note(source, f"the first row, {why}, was taken for the header, though it has numbers")
    n_index = n_index if label is None else min(n_index, label)
    behind = [i for i in features if i >= n_index]
    if has_header and not asked.are_listed and behind not in ([], features):
        which = "the first column" if n_index == 1 else f"the first {n_index} columns"
        note(
            source,
            f"{which} without a name in the header, as DataFrame.to_csv() writes the index, left "
            "out; give a name to use it as a feature",
        )
        features = behind
    if not has_header and len(first) >= LEAST_NUMBERED and _are_counted(names):
        note(
            source,
            "the first row is 0, 1, 2 ... and was taken for data; if it numbers the columns, write "
            "names or no header",
        )
    return Layout(line, first, label, has_header, features)


def _refuse_spaces(rows):
    """Refuse a column whose cells are numbers with spaces between them, not as thousands have."""
    apart = [row for row in rows if len(row.split()) > 1]
    are_numbers = all(map(says_number_or_date, " ".join(rows).split()))
    if are_numbers and not all(map(says_number_or_date, apart)):
        raise ValueError(
            f"numbers such as {apart[0].strip()!r} seem to be separated by spaces; separate them "
            "by commas, semicolons or tabs, as with tr -s ' ' ','"
        )


def _why_header(named, others, comes_again):
    """Return why a first row is a header in which columns are called by numbers; None if it is not.

    ``named`` are its names and ``others`` its other cells, each with the cells below it; rows in
    which all of it ``comes_again`` are left out of these. The others must differ and be whole
    numbers or dates, and one of three must hold. A name stands above numbers; a date stands above
    other numbers; or the names occur only here and the numbers count by 1, at least three of them
    or beyond all that is below them. Beside several names above numbers, others may be anything.
    """
    cells = [cell for cell, _ in others]
    if not named or not named[0][1] or len(set(cells)) < len(cells):
        return None
    n_above = len({name for name, column in named if _hold_numbers(column)})
    above_others = any(
        is_date(cell) and _hold_numbers(column) and not any(map(is_date, column))
        for cell, column in others
    )
    are_new = not comes_again and not any(name in column for name, column in named)
    count_on = all(map(is_whole, cells)) and set(np.diff([*map(int, cells)])) == {1}
    fits = n_above > 1
    if not fits and all(is_whole(cell) or is_date(cell) for cell in cells):
        fits = n_above == 1 or above_others
        if not fits and are_new and count_on:
            fits = len(cells) >= LEAST_NUMBERED or all(starmap(_is_beyond, others))
    return f"with {named[0][0]!r} above other rows" if fits else None


def _hold_numbers(column):
    """Tell whether cells are numbers or dates alone, beside missing ones."""
    known = [cell for cell in column if not is_missing(cell)]
    return bool(known) and all(map(says_number_or_date, known))


def _is_beyond(cell, column):
    """Tell whether a number is beyond all numbers in a column."""
    found = [number for one in column if not np.isnan(number := to_number(one, "."))]
    return bool(found) and not min(found) <= int(cell) <= max(found)


def _why_numbers(first, columns):
    """Return why a first row of numbers, whole and different ones above no whole one, is a header.

    So pandas writes floats in columns without names.
    """
    are_distinct = all(map(is_whole, first)) and len(set(first)) == len(first) > 1
    if not are_distinct or not columns[0] or any(map(is_whole, chain(*columns))):
        return None
    return f"{first[0]}, {first[1]} ... above no whole number"


def _are_counted(names):
    """Tell whether names are 0, 1, 2 ..."""
    return names == [str(i) for i in range(len(names))]
