"""The command ``fastmmc stream``.

Rows are read in chunks, and each chunk is learned, its labels are written, and the state is saved,
in this order. The state names how many bytes of the source and of the output belong to it. So a
run that was killed at any moment goes on from the last state: what was written after it is cut
off, and what was read after it is read again.
"""

from __future__ import annotations

import argparse
import csv
import errno
import inspect
import io
import os
import stat
import sys
import time
import zlib
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from itertools import combinations
from pathlib import Path

import numpy as np

from fastmmc import validation
from fastmmc.cli import common, tables
from fastmmc.cli.common import STANDARD_INPUT, TEXTS, Option
from fastmmc.cli.pairs import PAIRS_HELP, read_constraints
from fastmmc.competitive.space import LARGEST
from fastmmc.registry import METHODS
from fastmmc.saving import read_archive

try:
    import fcntl
except ImportError:  # Windows
    import msvcrt

    fcntl = None

STREAMING = {
    name: method for name, method in METHODS.items() if hasattr(method.estimator, "partial_fit")
}
CONSTRAINED = [
    name
    for name, method in STREAMING.items()
    if "cannot_link" in inspect.signature(method.estimator.partial_fit).parameters
]
DEFAULT_METHOD = "c-rpcl"

# Parameters of the estimators.
LEARNING = (
    Option(
        "--k",
        "n_clusters",
        common.parse_count,
        "number of prototypes; must be given unless a run is resumed",
        "N",
        ("-k",),
    ),
    Option("--alpha", "alpha", common.parse_number, "how far the winner moves (default: 0.05)"),
    Option(
        "--beta",
        "beta",
        common.parse_number,
        "how far rivals move; wta and fscl have none (default: 0.002)",
    ),
    common.SEED,
    Option(
        "--memory-size",
        "memory_size",
        common.parse_count,
        "constrained rows to remember; a constraint is used if its earlier row is among them "
        "(default: 10000)",
    ),
)
# What else methods with constraints take. A full name is the same in any working directory.
KNOWLEDGE = (
    Option(
        "--constraints",
        "constraints",
        os.path.abspath,
        f"{PAIRS_HELP}, in the order of the stream ({', '.join(CONSTRAINED)} only)",
        "CSV",
    ),
    Option(
        "--label-column",
        "label_column",
        str,
        "column of known classes, by its name in the header or its index from 0; rows of "
        "different classes are kept apart; an empty cell or -1: not known",
        "COL",
    ),
)
FILES = (
    Option(
        "--out",
        "out",
        os.path.abspath,
        f"write the labels to this file ({', '.join(TEXTS)}) instead of standard output",
        "FILE",
    ),
    Option(
        "--skip-bad-rows",
        "bad_rows",
        os.path.abspath,
        "go on behind rows that are not numbers as they should be, as if they were not there: they "
        "get no label and no number, but a line in this table, with what is wrong",
        "FILE",
    ),
)
# What is asked of any method.
COMMON = (*tables.COLUMNS, *FILES)

# A file without line breaks must not be read whole.
MOST_BYTES = 2**24
MOST_LINES = 1000  # bad rows held in memory
# Version of what is added to a saved estimator, and what it holds.
FORMAT = 3
SAVED = {"settings", "source", "n_bytes", "n_bytes_bad", "constraints"}

DESCRIPTION = """\
Learn the rows of a table as they come, in bounded memory, and write one label a row: the prototype
that was nearest when the row was presented. The first prototypes are found from the first chunk.
A last line without a line break is a row as well. Columns on the left that have no name in the
header, as the index of a frame that pandas wrote, are left out with a note."""

EPILOG = """\
With --state a run that ended, failed or was killed goes on when the same command is given again;
--k and the other options may then be left out, and --chunk may be another one. One run at a time
may use a state. New lines at the end of the file of constraints are taken. A file is read on
from where the state was saved, also if it has grown since, and --out is cut back to the labels
that belong to the state: no row is lost and none is learned or labelled twice. Standard output
cannot be cut back: after a kill, labels of the last chunk may come twice there. Standard input
cannot be read again: a resumed run takes the rows that come as new ones (a repeated header is
skipped), and rows that were read but not yet in the state must be fed again; the number of rows
in the state is told at the end and after Ctrl-C."""


def add_command(commands):
    """Add ``stream`` to the commands of a parser."""
    parser = commands.add_parser(
        "stream",
        help="cluster rows as they come, resumably",
        description=DESCRIPTION,
        epilog=EPILOG,
    )
    parser.set_defaults(run=_stream)
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="rows of numbers, separated by commas, semicolons or tabs: a file, a named pipe, or "
        "- for standard input",
    )
    told = f"default: {DEFAULT_METHOD}"
    common.add_method(parser, STREAMING, told, default=argparse.SUPPRESS)
    common.add_options(parser, (*LEARNING, *KNOWLEDGE, *tables.COLUMNS))
    parser.add_argument(
        "--chunk",
        type=common.parse_count,
        default=1000,
        metavar="N",
        help="rows to learn at a time (default: 1000)",
    )
    common.add_options(parser, FILES)
    parser.add_argument(
        "--state",
        type=Path,
        metavar="NPZ",
        help="save the state to this file after every chunk, and go on from it if there is one; "
        "the estimator's load reads it too",
    )


def _stream(args):
    began = time.perf_counter()
    validation.check_integer("--chunk", args.chunk, least=1)
    with ExitStack() as stack:
        if args.state is not None:
            common.check_writable(args.state, args.source)
            # The state is put into its place under another name.
            if not os.access(args.state.absolute().parent, os.W_OK):
                raise ValueError(f"{args.state}: its folder cannot be written: permission denied")
            stack.enter_context(_locked(args.state))
        run = _Run(args, stack)
        n_before = run.n_saved
        try:
            run.learn_all(args.chunk)
        except KeyboardInterrupt:
            if run.n_saved == 0:
                raise
            raise KeyboardInterrupt(run.advice()) from None
    sys.stderr.write(run.report(n_before, time.perf_counter() - began) + "\n")


@contextmanager
def _locked(state):
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


class _Run:
    """A run that begins, or goes on from its state: ``n_saved`` rows are labelled and saved."""

    def __init__(self, args, stack):
        self._state = args.state
        given = _given_settings(args)
        resumed = self._state is not None and self._state.exists()
        saved = _read_state(self._state) if resumed else {"constraints": None}
        if resumed:
            self._settings = saved["settings"]
            _check_same(given, self._settings, self._state)
        else:
            self._settings = _new_settings(given, args.chunk)
        _check_files(args, self._settings)
        self._has_constraints = self._settings["--method"] in CONSTRAINED
        estimator = STREAMING[self._settings["--method"]].estimator
        self._model = estimator.load(self._state) if resumed else self._new_model(estimator)
        self.n_saved = self._model.n_seen_ if resumed else 0
        # Constraints for the next chunk, and up to where their file was read.
        file = self._settings["--constraints"]
        self._pairs, self._known = _new_pairs(file, saved["constraints"])
        self._output = _Output(self._settings["--out"], "label", stack)
        bad = self._settings["--skip-bad-rows"]
        self._bad = None if bad is None else _BadRows(bad, "line,problem,row", stack)
        self._source = _Source(args.source, self._bad, stack)
        if resumed:
            self._source.resume(saved["source"])
            self._output.resume(saved["n_bytes"])
            if bad is not None:
                self._bad.resume(saved["n_bytes_bad"])
        else:
            asked = (self._settings[flag] for flag in ("--columns", "--drop", "--label-column"))
            self._source.begin(tables.Columns(*asked))

    def _new_model(self, estimator):
        settings = self._settings
        params = {o.name: settings[o.flag] for o in LEARNING if o.flag in settings}
        if self._has_constraints:
            # The column of labels tells them.
            params["semi_supervised"] = True
        return estimator(**params)

    def learn_all(self, chunk):
        """Learn chunk after chunk, up to the end of the source."""
        n = chunk
        while n == chunk:
            X, y = self._source.read(chunk)
            n = len(X)
            if self._bad is not None:
                self._bad.write_all()
            if n or self.n_saved == 0:
                self._learn(X, y)

    def _learn(self, X, y):
        """Learn a chunk, write its labels and save the state."""
        k = self._settings["--k"]
        if self.n_saved == 0 and len(X) < k:
            bad = (
                ""
                if self._bad is None
                else (f", and {self._bad.n_rows} bad ones in {self._bad.path}")
            )
            raise ValueError(
                f"{self._source.name}: the first {k} prototypes need as many rows; got {len(X)}"
                f"{bad}; wait for more of them, or give a smaller --k"
            )
        constraints = {"y": y, **self._pairs} if self._has_constraints else {}
        try:
            self._model.partial_fit(X, **constraints)
        except ValueError as error:
            accepted = inspect.signature(type(self._model)).parameters
            raise ValueError(common.in_options(str(error), LEARNING, accepted)) from error
        self._pairs = {}
        self._output.write(map(str, self._model.labels_.tolist()))
        if self._state is not None:
            extra = {
                "stream": FORMAT,
                "settings": self._settings,
                "source": self._source.place(),
                "n_bytes": self._output.n_bytes,
                "n_bytes_bad": None if self._bad is None else self._bad.n_bytes,
                "constraints": self._known,
            }
            self._model.save(self._state, extra=extra)
        self.n_saved = self._model.n_seen_

    def advice(self):
        """Return what to do after an interrupt."""
        done = f"interrupted after {self.n_saved} rows"
        if self._state is None:
            return f"{done}; with --state the same command could go on from there"
        if self._source.is_file:
            return f"{done}; the same command goes on from there"
        return (
            f"{done}; the same command goes on with the rows that come then, so feed it from row "
            f"{self.n_saved} (from 0) on"
        )

    def report(self, n_before, seconds):
        """Return what is told at the end of a run that began after the first rows."""
        settings, model = self._settings, self._model
        resumed = f" ({self.n_saved - n_before} of them now)" if n_before else ""
        headline = (
            f"{settings['--method']} on {self._source.name}: {self.n_saved} rows{resumed}, "
            f"{model.n_active_} of {settings['--k']} prototypes in use"
        )
        rows = []
        if self._has_constraints:
            n_waiting = len(model._stream.must) + len(model._stream.cannot)
            unused = "constraints, not used as their earlier row was not remembered"
            rows.append(("forgotten", f"{model.n_forgotten_} {unused}"))
            if model.n_late_:
                rows.append(("late", f"{model.n_late_} constraints, given after both their rows"))
            if n_waiting:
                rows.append(("waiting", f"{n_waiting} constraints, for rows to come"))
        if self._bad is not None:
            rows.append(("skipped", f"{self._bad.n_rows} rows, see {self._bad.path}"))
        return common.format_report(headline, [*rows, ("time", f"{seconds:.3g} s")])


def _given_settings(args):
    """Return the options that were given, and the source, by their names."""
    given = {"SOURCE": args.source}
    if args.source != STANDARD_INPUT:
        given["SOURCE"] = os.path.abspath(args.source)
    if hasattr(args, "solver"):
        given["--method"] = args.solver
    options = common.given_options(args, (*LEARNING, *KNOWLEDGE, *COMMON))
    return given | {option.flag: value for option, value in options.items()}


def _new_settings(given, chunk):
    """Return the settings of a new run: those that were given, and the estimator's defaults."""
    method = given.setdefault("--method", DEFAULT_METHOD)
    accepted = inspect.signature(STREAMING[method].estimator).parameters
    learning = {o.flag: accepted[o.name].default for o in LEARNING if o.name in accepted}
    for option in (*LEARNING, *KNOWLEDGE):
        has = option.flag in learning or (option in KNOWLEDGE and method in CONSTRAINED)
        if option.flag in given and not has:
            raise ValueError(
                f"{method} has no {option.flag}; give another --method or leave it out"
            )
    if "--memory-size" in given:
        validation.check_integer("--memory-size", given["--memory-size"], least=1)
    if "--k" not in given:
        raise ValueError("--k is missing: stream must be told the number of prototypes")
    k = validation.check_integer("--k", given["--k"], least=1)
    if chunk < k:
        raise ValueError(
            f"--chunk must be at least --k, {k}, as the first prototypes come from the first "
            f"chunk; got {chunk}"
        )
    return learning | dict.fromkeys(option.flag for option in (*KNOWLEDGE, *COMMON)) | given


def _check_same(given, settings, state):
    """Refuse options that contradict those of the run that a state was saved of."""
    for option, value in given.items():
        saved = settings.get(option)
        if value != saved:
            none = "standard output" if option == "--out" else f"no {option}"
            raise ValueError(
                f"{option} {_shown(value)} contradicts {state}, the state of a run with "
                f"{none if saved is None else f'{option} {_shown(saved)}'}; give the same, or "
                "another --state to begin anew"
            )


def _shown(value):
    """Return the value of an option as it is given."""
    return ",".join(value) if isinstance(value, list) else value


def _read_state(path):
    """Return what was saved beside the estimator."""
    _, header = read_archive(path)
    saved = header.get("extra")
    if not (isinstance(saved, dict) and "stream" in saved):
        raise ValueError(
            f"{path} holds {header['class']}, but no state of fastmmc stream; give another name"
        )
    if saved["stream"] != FORMAT:
        raise ValueError(
            f"{path} has format {saved['stream']}; expected {FORMAT}; give another --state to "
            "begin anew"
        )
    if not saved.keys() >= SAVED:
        raise ValueError(f"{path} is damaged: it lacks {', '.join(sorted(SAVED - saved.keys()))}")
    return saved


def _check_files(args, settings):
    """Refuse files that cannot be written, and one file in two places."""
    if settings["--out"] is not None:
        out = Path(settings["--out"])
        common.check_writable(out, args.source)
        common.check_ending(out, TEXTS)
    if settings["--skip-bad-rows"] is not None:
        bad = Path(settings["--skip-bad-rows"])
        common.check_writable(bad, args.source)
        common.check_ending(bad, (".csv", ".txt"), "--skip-bad-rows")
    names = ("SOURCE", "--constraints", "--out", "--skip-bad-rows")
    files = {name: settings[name] for name in names} | {"--state": args.state}
    files = {name: Path(os.path.abspath(path)) for name, path in files.items() if path is not None}
    for (one, a), (other, b) in combinations(files.items(), 2):
        if a == b or (a.exists() and b.exists() and a.samefile(b)):
            raise ValueError(f"{one} and {other} are the same file, {b}; give another name")


class _Source:
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
        where = f"line {self._line}"
        try:
            text = line.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ValueError(f"{where} is not text in UTF-8: {error}") from error
        if self._delimiter is None and text.strip():
            self._delimiter = tables.delimiter_of(self._path, text)
        try:
            # Strict, so that a quoted cell that goes on in the next line is an error.
            delimiter = self._delimiter or ","
            reader = csv.reader([text], delimiter=delimiter, skipinitialspace=True, strict=True)
            return tables.with_points(next(reader, []), delimiter)
        except csv.Error as error:
            raise ValueError(f"{where} cannot be read as a row: {error}") from error


class _Output:
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


class _BadRows(_Output):
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


def _new_pairs(path, known):
    """Return the constraints that came into their file since it was read, and up to where.

    The constraints are arguments of ``partial_fit``; ``known`` is what was returned the last time.
    """
    if path is None:
        return {}, None
    content = Path(path).read_bytes()
    begin = content[: known["n_bytes"]] if known else b""
    if known and (len(begin), zlib.crc32(begin)) != (known["n_bytes"], known["checksum"]):
        raise ValueError(
            f"{path} is not the file of constraints that was read, with new lines at its end or "
            "without; put it back, or give another --state to begin anew"
        )
    rest = content[len(begin) :]
    if begin and rest and not (begin.endswith(b"\n") or rest.startswith((b"\r", b"\n"))):
        raise ValueError(
            f"{path}: its last line had no line break when it was read, and goes on now; put it "
            "back, or give another --state to begin anew"
        )
    must, cannot = read_constraints(Path(path))
    n_must, n_cannot = (known["n_must"], known["n_cannot"]) if known else (0, 0)
    told = {"n_bytes": len(content), "checksum": zlib.crc32(content)}
    told |= {"n_must": len(must), "n_cannot": len(cannot)}
    return {"must_link": must[n_must:], "cannot_link": cannot[n_cannot:]}, told
