"""Files that a run reads and writes on from a place: one lock, lines in, lines out."""

from __future__ import annotations

import csv
import errno
import io
import os
import stat
import sys
import zlib
from contextlib import contextmanager, suppress
from dataclasses import asdict

import numpy as np

from fastmmc.cli import common, tables
from fastmmc.cli.common import STANDARD_INPUT
from fastmmc.competitive.space import LARGEST

try:
    import fcntl
except ImportError:  # Windows
    import msvcrt

    fcntl = None

# A file without line breaks must not be read whole.
MOST_BYTES = 2**24
MOST_LINES = 1000  # bad rows held in memory


@contextmanager
def locked(state):
    """Keep other runs from a state; the system lifts the lock of a run that is killed."""
    path = state.with_name(f".{state.name}.lock")
    is_held = False
    while not is_held:
        with open(path, "ab") as file:
            try:
                if fcntl is None:
                    msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
                    is_held = True
                else:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    is_held = os.stat(path).st_ino == os.fstat(file.fileno()).st_ino
            except FileNotFoundError:  # another run has just ended and removed it
                continue
            except OSError as error:
                if error.errno not in (errno.EAGAIN, errno.EACCES):
                    raise
                raise ValueError(
                    f"{state} is in use by another run of fastmmc stream; wait for its end, or "
                    "give another --state"
                ) from None
            if is_held:
                try:
                    yield
                finally:
                    if fcntl is not None:
                        # While it is held: a run that has opened the file sees that it is gone.
                        path.unlink(missing_ok=True)
    if fcntl is None:
        with suppress(OSError):  # another run has it by now
            path.unlink()


class Source:
    """The rows of a file or a pipe, and the place up to which they were read.

    The lines are taken one by one from the bytes of the file, as a text file of Python's does not
    tell where in the file it is. Rows that are no good go to ``bad``; if that is None, they are
    errors.
    """

    def __init__(self, path, bad, stack):
        self.name = common.source_name(path)
        self._bad = bad
        self._path = path
        self._layout = self._delimiter = self._waiting = None
        self._classes = {}
        self._line = self._n_bytes = 0
        self._last = b""
        if path == STANDARD_INPUT:
            self._file, self.is_file = sys.stdin.buffer, False
        elif os.path.isdir(path):
            raise ValueError(f"{path} is a folder; give a file")
        else:
            self._file = stack.enter_context(open(path, "rb"))
            self.is_file = stat.S_ISREG(os.fstat(self._file.fileno()).st_mode)

    def begin(self, asked):
        """Look at the first row."""
        with tables.errors_about(self.name):
            first = self._next_row()
            if first is None:
                raise ValueError("there are no rows")
            self._layout = tables.read_layout(self.name, self._line, first, asked)
            self._waiting = self._next_row() if self._layout.has_header else first
            if self._waiting is None:
                raise ValueError(tables.NOTHING_BELOW)

    def read(self, n):
        """Return the next n rows, or those that there are, and their classes (-1: not known)."""
        X, y = [], []
        layout = self._layout
        with tables.errors_about(self.name):
            while len(X) < n and (row := self._next_row()) is not None:
                try:
                    X.append(self._numbers(row))
                except ValueError as error:
                    self._skip(error)
                    continue
                if layout.label is not None:
                    name = row[layout.label].strip()
                    unknown = name in ("", "-1")
                    classes = self._classes
                    y.append(-1 if unknown else classes.setdefault(name, len(classes)))
        X = np.array(X)
        return X, (None if layout.label is None else np.array(y, dtype=np.int64))

    def _numbers(self, row):
        """Return the numbers of a row that can be learned."""
        values = self._layout.numbers(self._line, row)
        if max(map(abs, values)) > LARGEST:
            raise ValueError(
                f"line {self._line} has a value beyond {LARGEST:g}, whose square overflows; scale "
                "the columns first"
            )
        return values

    def _skip(self, error):
        """Put the line that was read last to the bad rows; without a place for them raise."""
        if self._bad is None:
            raise error
        self._bad.add(self._line, error, self._last)

    def place(self):
        """Return all that is needed to go on, after the rows that were read."""
        return {
            "layout": asdict(self._layout),
            "delimiter": self._delimiter,
            "classes": list(self._classes),
            "n_bytes": self._n_bytes if self.is_file else None,
            "line": self._line,
            "last": [len(self._last), zlib.crc32(self._last)],
        }

    def resume(self, place):
        """Go on from a place."""
        self._layout, self._delimiter = tables.Layout(**place["layout"]), place["delimiter"]
        self._classes = {name: number for number, name in enumerate(place["classes"])}
        if self.is_file != (place["n_bytes"] is not None):
            was, now = ("a pipe", "a file") if self.is_file else ("a file", "a pipe")
            raise ValueError(
                f"{self.name} was {was} when the state was saved and is {now}; give what it was, "
                "or another --state to begin anew"
            )
        with tables.errors_about(self.name):
            if self.is_file:
                self._seek(**place)
            else:
                # What writes into a pipe may begin with its header again.
                row = self._next_row()
                repeated = self._layout.has_header and row == self._layout.first
                self._waiting = None if repeated else row

    def _seek(self, n_bytes, line, last, **_):
        """Go to a place in the file, if the file is still the same up to there."""
        length, checksum = last
        size = os.fstat(self._file.fileno()).st_size
        again = "give the file that was read, or another --state to begin anew"
        if size < n_bytes:
            raise ValueError(f"{n_bytes} bytes of it were read, but it has {size} now; {again}")
        self._file.seek(n_bytes - length)
        self._last = self._file.read(length)
        if zlib.crc32(self._last) != checksum:
            raise ValueError(f"line {line} is not the one that was read; {again}")
        self._n_bytes, self._line = n_bytes, line

    def _next_row(self):
        """Return the cells of the next line that is not blank, or None at the end."""
        if self._waiting is not None:
            row, self._waiting = self._waiting, None
            return row
        while line := self._next_line():
            if len(line) > MOST_BYTES:
                raise ValueError(
                    f"line {self._line} is longer than {MOST_BYTES} bytes; expected rows of numbers"
                )
            try:
                if row := self._cells(line):
                    return row
            except ValueError as error:
                self._skip(error)
        return None

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
        try:
            text = line.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ValueError(f"line {self._line} is not text in UTF-8: {error}") from error
        if self._delimiter is None and text.strip():
            self._delimiter = tables.delimiter_of(self._path, text)
        return tables.cells_of(text, self._line, self._delimiter or ",")


class Output:
    """Lines in a file that can be cut back to what a state knows, or on standard output.

    ``n_bytes`` is the size of the file, or None if it is not one to be cut back.
    """

    def __init__(self, path, header, stack):
        self.path, self._header, self._stack = path, header, stack
        self._file = self.n_bytes = None

    def _open(self, mode):
        if self.path is None:
            self._file = sys.stdout
        else:
            self._file = self._stack.enter_context(open(self.path, mode, newline="\n"))

    def resume(self, n_bytes):
        """Cut the file back to its first bytes, and go on behind them."""
        if n_bytes is not None:
            again = "put it back, or give another --state to begin anew"
            if not os.path.exists(self.path):
                raise ValueError(
                    f"{self.path} has lines of the run to be resumed and is gone; {again}"
                )
            size = os.path.getsize(self.path)
            if size < n_bytes:
                raise ValueError(
                    f"{self.path} had {n_bytes} bytes when the state was saved, and "
                    f"has {size} now; {again}"
                )
            os.truncate(self.path, n_bytes)
        self._open("a")

    def write(self, lines):
        """Write lines, and leave none of them in a buffer."""
        text = "".join(f"{line}\n" for line in lines)
        if self._file is None:
            # Not earlier, as an error before the first lines should not cost those of another run.
            self._open("w")
            text = f"{self._header}\n{text}"
        self._file.write(text)
        self._file.flush()
        try:
            number = self._file.fileno()
            status = os.fstat(number)
        except (OSError, ValueError):  # what stands in for standard output may have no number
            return
        if stat.S_ISREG(status.st_mode):
            os.fsync(number)
            self.n_bytes = None if self.path is None else status.st_size


class BadRows(Output):
    """The file of the rows that are left out, of which ``n_rows`` were found in this run."""

    def __init__(self, path, header, stack):
        super().__init__(path, header, stack)
        self.n_rows = 0
        self._lines = []

    def add(self, number, error, line):
        """Add a line, its number and what is wrong with it; only some are held in memory."""
        problem, _, _ = str(error).partition("; ")
        text = io.StringIO()
        row = line.decode(errors="replace").rstrip("\r\n")
        csv.writer(text, lineterminator="").writerow([number, problem, row])
        self._lines.append(text.getvalue())
        self.n_rows += 1
        if len(self._lines) == MOST_LINES:
            self.write_all()

    def write_all(self):
        """Write what is in memory."""
        self.write(self._lines)
        self._lines = []
