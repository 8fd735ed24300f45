"""Files that a run reads and writes on from a place: lines in, lines out."""

import codecs
import csv
import hashlib
import io
import os
import stat
import sys
import zlib
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from typing import NamedTuple

import numpy as np

from fastmmc.cli import common, tables
from fastmmc.cli.columns import drop_option
from fastmmc.cli.common import STANDARD_INPUT
from fastmmc.cli.sources import tell_unless_plain
from fastmmc.cli.tables import BadRow, Layout
from fastmmc.core.files import is_replaced, naming, replacing
from fastmmc.core.words import counted
from fastmmc.data.cells import is_missing
from fastmmc.data.coding import fit_coding, kinds_of, plain_coding
from fastmmc.data.columns import IDS, LARGEST
from fastmmc.data.frames import Values

BLOCK = 2**20  # bytes of a file that are looked at again at a time
ANEW = "give another --state to begin anew"
# A file without line breaks must not be read whole.
MOST_BYTES = 2**24
MOST_LINES = 1000  # bad rows held in memory


def check_same(given, settings, state, files=()):
    """Refuse options that contradict those of the run that a state was saved of, or lack files."""
    for option, value in given.items():
        saved = settings.get(option)
        if value != saved:
            raise ValueError(
                f"{_shown(option, value)} contradicts {state}, the state of a run with "
                f"{_shown(option, saved)}; give the same, or {ANEW.removeprefix('give ')}"
            )
    for option in files:
        if settings.get(option) is not None and option not in given:
            raise ValueError(
                f"{option} is missing: {state} is the state of a run with {option} "
                f"{settings[option]}; give {option} again, or {ANEW.removeprefix('give ')}"
            )


def _shown(option, value):
    if value is None:
        return "standard output" if option == "--out" else f"no {option}"
    if value is True:
        return option
    return f"{option} {','.join(map(str, value)) if isinstance(value, list) else value}"


@dataclass(frozen=True)
class Place:
    """Where a run has stopped to read, and all that is needed to go on there."""

    layout: Layout
    delimiter: str
    classes: list[str]
    n_bytes: int | None  # that were read; None of a pipe
    line: int  # lines that were read
    last: list[int]  # bytes of the last one, and their checksum

    def _check_values(self):
        n_bytes = sys.maxsize if self.n_bytes is None else self.n_bytes
        is_known = len(set(self.classes)) == len(self.classes)
        is_known &= self.delimiter in tables.DELIMITERS and len(self.last) == 2
        if not (is_known and 1 <= self.line <= n_bytes and 1 <= self.last[0] <= n_bytes):
            raise ValueError("source is a place that cannot be")


class Row(NamedTuple):
    """A line, by its number and bytes, its cells, and how many blank ones were before it."""

    line: int
    bytes: bytes
    cells: list[str]
    n_blank: int = 0


class Source:
    """The rows of a file or a pipe, and the place up to which they were read.

    The lines are taken one by one from the bytes of the file, as a text file of Python's does not
    tell where in the file it is. Rows that are no good go to the :class:`BadRows`.
    """

    def __init__(self, path, bad, stack):
        self.name = common.source_name(path)
        self._bad = bad
        self._path = path
        self._layout = self._delimiter = None
        self._rows = self._read_rows()  # those that are yet to be learned
        self._classes = {}
        self._line = self._n_bytes = 0
        self._last = b""
        # How columns become numbers, which the first rows tell; how many numbers were missing, how
        # many categories were not among these rows, and how many lines between rows were blank.
        self.coding, self._keeps_all, self._decimal = None, False, None
        self.n_missing = self.n_new = self.n_blank = 0
        if path == STANDARD_INPUT:
            self._file, self.is_file = sys.stdin.buffer, False
        elif os.path.isdir(path):
            raise ValueError(f"{path} is a folder; give a file")
        else:
            self._file = stack.enter_context(open(path, "rb"))
            self.is_file = stat.S_ISREG(os.fstat(self._file.fileno()).st_mode)

    def begin(self, asked, decimal, chunk):
        """Look at the first row; those below it in the first chunk tell whether it is a header.

        They are learned before the first place is saved.
        """
        self._keeps_all, self._decimal = asked.are_listed, decimal
        with tables.errors_about(self.name):
            top = list(islice(self._rows, 1))
            if not top and self._bad.n_rows:
                raise ValueError(f"none of {counted(self._bad.n_rows, 'line')} is a row")
            n_below, rows = min(chunk - 1, tables.ROWS_BELOW), chain(top, self._rows)
            self._layout, rows = tables.read_layout(self.name, rows, asked, n_below)
            self._rows = chain([next(rows)._replace(n_blank=0)], rows)

    @property
    def columns(self):
        """The columns that are learned."""
        return self._layout.same_columns

    def read(self, n):
        """Return the next n rows, or those that there are, as a frame, and their classes.

        Classes that are not known are -1. ``coding`` tells what numbers the columns become.
        """
        rows, frame, coding = [], self._frame([]), self.coding
        with tables.errors_about(self.name):
            while len(rows) < n and (more := self._take(n - len(rows))):
                rows, frame, coding = self._without_bad(rows + more)
        if rows:
            if self.coding is None:
                self.coding = coding
                self._tell_of_columns(frame)
            n_missing, n_new = self.coding.count_filled(frame)
            self.n_missing, self.n_new = self.n_missing + n_missing, self.n_new + n_new
        label = self._layout.label
        if label is None:
            return frame, None
        return frame, np.array([self._class_of(row.cells[label]) for row in rows], dtype=np.int64)

    def _take(self, n):
        """Return the next n rows that have as many cells as the first one."""
        rows = []
        while len(rows) < n and (row := next(self._rows, None)) is not None:
            self.n_blank += row.n_blank
            try:
                self._layout.check_length(row.line, row.cells)
            except BadRow as error:
                self._bad.add(row.line, error, row.bytes)
            else:
                rows.append(row)
        if len(rows) < n:  # a file may grow
            self._rows = self._read_rows()
        return rows

    def _frame(self, rows):
        columns = [[row.cells[i] for row in rows] for i in self._layout.columns]
        return self._layout.frame(columns, self._delimiter)

    def _class_of(self, cell):
        """Return the number of a class, in the order in which they come; -1: not known."""
        name = cell.strip()
        if name == "-1" or is_missing(name):
            return -1
        return self._classes.setdefault(name, len(self._classes))

    def _without_bad(self, rows):
        """Return the rows that can be learned, a frame of them, and how its columns become numbers.

        The first rows tell that, without those that are bad.
        """
        frame, coding = self._frame(rows), self.coding
        while rows:
            coding = self.coding or self._learn_columns(frame)
            # Where bad rows have a place, those that miss numbers go there, too.
            faults = coding.misread(frame, LARGEST, with_missing=self._bad.path is not None)
            if (faults < 0).all():
                break
            for row, fault in zip(rows, faults.tolist(), strict=True):
                if fault >= 0:
                    self._bad.add(row.line, self._about_cell(row, coding, fault), row.bytes)
            rows = [row for row, fault in zip(rows, faults, strict=True) if fault < 0]
            frame = self._frame(rows)
        return rows, frame, coding

    def _learn_columns(self, frame):
        """Return how columns become numbers; each of them is learned where all are numbers."""
        kinds = {column.kind for column in kinds_of(frame, keeps_all=True, decimal=self._decimal)}
        keeps_all = self._keeps_all or kinds == {"numbers"}
        return fit_coding(frame, keeps_all=keeps_all, decimal=self._decimal)

    def _tell_of_columns(self, frame):
        """Tell what is done with the columns, and which of them seem to be ids but are learned."""
        undecided = frame if self._decimal is None else None
        tell_unless_plain(f"{self.name}, first rows", self.coding, self.columns, undecided)
        if not self._keeps_all:
            kinds = kinds_of(frame, decimal=self._decimal)
            used = zip(kinds, self.coding.columns, strict=True)
            ids = [i for i, (kind, column) in enumerate(used) if kind.said == IDS and column.width]
            if ids:
                seem = "columns that seem to hold ids are learned as numbers; to leave them out"
                common.note(self.name, f"{seem}: {drop_option(self.columns.calls(ids))}")

    def _about_cell(self, row, coding, place):
        """Return an error about a cell of a column of numbers or dates."""
        column, i = coding.columns[place], self._layout.columns[place]
        if np.isfinite(column.read(Values("texts", [row.cells[i]]))[0]):
            return BadRow(
                f"line {row.line} has a value beyond {LARGEST:g}, whose square overflows",
                "scale the columns first",
            )
        what = "a finite number"
        if column.kind == "dates":
            what = "a date" + (f" as {column.form}" if column.form else "")
        return self._layout.fault(row.line, row.cells, i, what)

    def place(self):
        """Return all that is needed to go on, after the rows that were read."""
        return Place(
            self._layout,
            self._delimiter,
            list(self._classes),
            self._n_bytes if self.is_file else None,
            self._line,
            [len(self._last), zlib.crc32(self._last)],
        )

    def resume(self, place, coding):
        """Go on from a place; a state of an earlier version has no coding."""
        self._layout, self._delimiter = place.layout, place.delimiter
        self._classes = {name: number for number, name in enumerate(place.classes)}
        self.coding = coding or plain_coding(self._frame([]).names)
        if self.is_file != (place.n_bytes is not None):
            was, now = ("a pipe", "a file") if self.is_file else ("a file", "a pipe")
            raise ValueError(
                f"{self.name} was {was} when the state was saved and is {now}; give what it was, "
                f"or {ANEW}"
            )
        with tables.errors_about(self.name):
            if self.is_file:
                self._seek(place.n_bytes, place.line, place.last)
            else:
                # What writes into a pipe may begin with its header again.
                top, layout = list(islice(self._rows, 1)), self._layout
                if not (layout.has_header and [row.cells for row in top] == [layout.first]):
                    self._rows = chain(top, self._rows)

    def _seek(self, n_bytes, line, last):
        """Go to a place in the file, if the file is still the same up to there."""
        length, checksum = last
        size = os.fstat(self._file.fileno()).st_size
        again = f"give the file that was read, or {ANEW}"
        if size < n_bytes:
            raise ValueError(f"{n_bytes} bytes of it were read, but it has {size} now; {again}")
        self._file.seek(n_bytes - length)
        self._last = self._file.read(length)
        if zlib.crc32(self._last) != checksum:
            raise ValueError(f"line {line} is not the one that was read; {again}")
        self._n_bytes, self._line = n_bytes, line

    def _read_rows(self):
        """Yield the lines that are not blank and can be read."""
        n_blank = 0
        while line := self._next_line():
            if len(line) > MOST_BYTES:
                raise ValueError(
                    f"line {self._line} is longer than {MOST_BYTES} bytes; expected rows of numbers"
                )
            try:
                cells = self._cells(line)
            except BadRow as error:
                self._bad.add(self._line, error, line)
                continue
            n_blank += not cells
            if cells:
                yield Row(self._line, line, cells, n_blank)
                n_blank = 0

    def _next_line(self):
        """Return the bytes of the next line; empty at the end."""
        if self._last and not self._last.endswith(b"\n"):
            # The last line lacked its line break when it was read; it may be there now.
            rest = self._file.readline(MOST_BYTES)
            if rest.strip(b"\r\n"):
                raise ValueError(
                    f"line {self._line} had no line break and was taken for a whole row, but goes "
                    f"on with {rest[:20].decode(errors='replace').rstrip()!r}; begin anew, when "
                    "whole lines are there"
                )
            self._n_bytes += len(rest)
            self._last += rest
            if not self._last.endswith(b"\n"):
                return b""
        line = self._file.readline(MOST_BYTES + 1)
        if line:
            self._line += 1
            self._n_bytes += len(line)
            self._last = line
        return line

    def _cells(self, line):
        if self._line == 1:
            tables.refuse_other_kinds(line)
            if line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in line:
                raise ValueError(
                    "not a text file in UTF-8: there are bytes of 0, as in UTF-16; convert it "
                    "first, as by iconv"
                )
        try:
            text = line.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise BadRow(
                f"line {self._line} is not text in UTF-8: {error}", "convert it first, as by iconv"
            ) from error
        if self._delimiter is None and text.strip():
            self._delimiter = tables.delimiter_of(self._path, text)
        line = tables.Text([text], self._delimiter or ",", "utf-8")
        return next(cells for _, _, cells in line.rows(self._line - 1, "in its own line"))


class Output:
    """Lines in a file that can be cut back to what a state knows, or on standard output.

    ``n_bytes`` is the size of the file, or None if it is not one to be cut back.
    """

    def __init__(self, path, header, stack):
        self.path, self._header, self._stack = path, header, stack
        self._file = self.n_bytes = None
        self._digest = hashlib.sha256()

    @property
    def sha256(self):
        """The digest of the file's content, or None."""
        return None if self.n_bytes is None else self._digest.hexdigest()

    def _open(self, mode):
        """Open the file without a buffer, which would be written once more after an error."""
        self._file = self._stack.enter_context(open(self.path, mode, buffering=0))

    def resume(self, n_bytes, sha256, n_lines=None):
        """Cut the file back to its first bytes, if they are the same still, and go on behind.

        ``sha256`` is their digest and ``n_lines`` how many lines they are, where that is known.
        """
        if self.path is None:
            self._file = sys.stdout
            return
        if n_bytes is not None:
            self._check(n_bytes, sha256, n_lines)
            os.truncate(self.path, n_bytes)
            self.n_bytes = n_bytes
        elif is_replaced(self.path):
            raise ValueError(
                f"{self.path} was a pipe or a device when the state was saved and is none; give "
                f"what it was, or {ANEW}"
            )
        self._open("ab")

    def _check(self, n_bytes, sha256, n_lines):
        """Read the first bytes again, and refuse a file that has others."""
        again = f"put it back, or {ANEW}"
        if not os.path.exists(self.path):
            raise ValueError(f"{self.path} has lines of the run to be resumed and is gone; {again}")
        size = os.path.getsize(self.path)
        if size < n_bytes:
            raise ValueError(
                f"{self.path} had {n_bytes} bytes when the state was saved, and "
                f"has {size} now; {again}"
            )
        n_found = n_read = 0
        with open(self.path, "rb") as file:
            while block := file.read(min(BLOCK, n_bytes - n_read)):
                self._digest.update(block)
                n_found += block.count(b"\n")
                n_read += len(block)
        is_same = sha256 in (None, self._digest.hexdigest()) and n_lines in (None, n_found)
        if not is_same:
            raise ValueError(
                f"{self.path} holds other lines than were written before the state was saved; "
                f"{again}"
            )

    def write(self, lines):
        """Write lines, and leave none of them in a buffer; they are there whole or not at all."""
        data = "".join(f"{line}\n" for line in lines)
        # The first lines not earlier, as an error before should not cost those of another run.
        is_new = self._file is None
        if is_new:
            data = f"{self._header}\n{data}"
        if self.path is None:
            self._file = sys.stdout
            with naming(common.STANDARD_OUTPUT):
                _print(data)
            return
        data = data.encode()
        if not is_replaced(self.path):
            if is_new:
                self._open("wb")
            with naming(self.path):
                _write_whole(self._file, data)
            return
        if is_new:
            with replacing(self.path) as file:
                file.write(data)
            self._open("ab")
            self.n_bytes = 0
        else:
            self._append(data)
        self._digest.update(data)
        self.n_bytes += len(data)

    def _append(self, data):
        with naming(self.path):
            try:
                _write_whole(self._file, data)
                os.fsync(self._file.fileno())
            except OSError:
                with suppress(OSError):
                    os.truncate(self.path, self.n_bytes)
                raise


def _print(text):
    """Write a text to standard output, and into the file that this may be."""
    sys.stdout.write(text)
    sys.stdout.flush()
    try:
        number = sys.stdout.fileno()
    except (OSError, ValueError):  # what stands in for it may have no number
        return
    if stat.S_ISREG(os.fstat(number).st_mode):
        os.fsync(number)


def _write_whole(file, data):
    """Write all bytes to a file without a buffer, which may take some of them at a time."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


class BadRows(Output):
    """The file of the rows that are left out, of which ``n_rows`` were found in this run."""

    def __init__(self, path, header, stack):
        super().__init__(path, header, stack)
        self.n_rows = 0
        self._lines = []

    def add(self, number, error, line):
        """Add a line, its number and what is wrong with it, or raise that if there is no file."""
        if self.path is None:
            raise error
        text = io.StringIO()
        row = line.decode(errors="replace").rstrip("\r\n")
        csv.writer(text, lineterminator="").writerow([number, error.problem, row])
        self._lines.append((number, text.getvalue()))
        self.n_rows += 1
        if len(self._lines) == MOST_LINES:
            self.write_all()

    def write_all(self):
        """Write what is in memory, in the order of the lines."""
        if self.path is None:
            return
        self.write([text for _, text in sorted(self._lines)])
        self._lines = []
