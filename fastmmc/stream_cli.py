"""The command ``fastmmc stream``, and what it shares with the commands that read tables.

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
import math
import os
import re
import stat
import sys
import time
import zlib
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from fastmmc import validation
from fastmmc.competitive.saved import read_saved
from fastmmc.competitive.space import LARGEST
from fastmmc.links import find_conflicts
from fastmmc.registry import METHODS, registry_name

try:
    import fcntl
except ImportError:  # Windows
    import msvcrt

    fcntl = None

DELIMITERS = {".csv": ",", ".tsv": "\t"}
# Files of labels, a line each.
TEXTS = (".csv", ".txt", ".tsv")
NOTHING_BELOW = "there is a header and nothing below it"

STREAMING = {
    name: method for name, method in METHODS.items() if hasattr(method.estimator, "partial_fit")
}
CONSTRAINED = [
    name
    for name, method in STREAMING.items()
    if "cannot_link" in inspect.signature(method.estimator.partial_fit).parameters
]
DEFAULT_METHOD = "c-rpcl"


def parse_seed(text):
    """Return a seed as the solvers take it.

    Parameters
    ----------
    text : str
        Of the command line.

    Returns
    -------
    int
        At least 0.

    Raises
    ------
    argparse.ArgumentTypeError
        If it is none.

    Examples
    --------
    >>> parse_seed("7")
    7
    """
    if not text.strip().lstrip("+-").isdecimal():
        raise argparse.ArgumentTypeError(f"expected a whole number; got {text!r}")
    if int(text) < 0:
        raise argparse.ArgumentTypeError(f"a seed must not be negative; got {text}")
    return int(text)


# Option, parameter of the estimators, type, what the help says.
OPTIONS = (
    ("--k", "n_clusters", int, "number of prototypes; must be given unless a run is resumed"),
    ("--alpha", "alpha", float, "how far the winner moves (default: 0.05)"),
    ("--beta", "beta", float, "how far rivals move; wta and fscl have none (default: 0.002)"),
    ("--seed", "random_state", parse_seed, "the same seed gives the same labels"),
    (
        "--memory-size",
        "memory_size",
        int,
        "constrained rows to remember; a constraint is used if its earlier row is among them "
        "(default: 10000)",
    ),
)
PARAMETERS = {option: parameter for option, parameter, *_ in OPTIONS}

# What pandas writes above the index of a frame, and names such a column when it reads it.
UNNAMED = re.compile(r"|Unnamed: \d+(_level_\d+)?")

# A first row 0, 1, 2 ... of so many cells may well be the header of a frame without names.
LEAST_NUMBERED = 3

KINDS = {"must": "must", "ml": "must", "cannot": "cannot", "cl": "cannot"}
STANDARD_INPUT = "-"
# A file without line breaks must not be read whole.
MOST_BYTES = 2**24
# Version of what is added to a saved estimator, and what it holds.
FORMAT = 2
SAVED = {"settings", "source", "n_bytes", "constraints"}

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


# What is shared with the other commands


def add_options(parser, options):
    """Add options that are absent from the arguments unless they are given.

    Parameters
    ----------
    parser : argparse.ArgumentParser
        The parser of a command.
    options : sequence of tuple
        Option, name among the arguments, type, help.
    """
    for option, parameter, kind, text in options:
        parser.add_argument(
            option,
            dest=parameter,
            type=kind,
            default=argparse.SUPPRESS,
            metavar=option[2:].upper(),
            help=text,
        )


def tell(kind, text):
    """Write a line about the run to standard error.

    Parameters
    ----------
    kind : str
        "error", "warning" or "note".
    text : str
        What is told.
    """
    sys.stderr.write(f"fastmmc: {kind}: {text}\n")


def check_ending(path, endings):
    """Raise an error if labels are not written to files of such a name.

    Parameters
    ----------
    path : Path
        The file.
    endings : sequence of str
        Allowed endings of its name; without any, as of a pipe, text is written.

    Raises
    ------
    ValueError
        If the name ends otherwise.
    """
    if path.suffix and path.suffix.lower() not in endings:
        raise ValueError(f"{path}: the name of --out must end in one of {', '.join(endings)}")


def check_writable(path, source):
    """Raise an error now if a file could not be written later.

    Parameters
    ----------
    path : Path
        The file.
    source : str
        What is read meanwhile.

    Raises
    ------
    ValueError
        If the file cannot be written or is the source.
    """
    if path.is_dir():
        raise ValueError(f"{path} is a folder; give the name of a file")
    if not path.parent.is_dir():
        raise ValueError(f"{path}: there is no folder {path.parent}; make it first")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ValueError(f"{path} cannot be written: permission denied")
    if path.exists() and os.path.exists(source) and path.samefile(source):
        raise ValueError(f"{path} is the file to be clustered; give another name")


@contextmanager
def open_table(path, delimiter):
    """Open a table, and name the file in errors about it.

    Parameters
    ----------
    path : Path
        A text file; - for standard input.
    delimiter : str or None
        What stands between cells; None: what the first line that is not blank shows.

    Yields
    ------
    iterator of (int, list of str)
        Number of the line from 1, and cells, of every row that is not blank.

    Raises
    ------
    ValueError
        If the file is not text, or the reader of the rows raised one.
    """
    name = source_name(path)
    try:
        with _open_text(path) as file:
            if delimiter is None:
                delimiter = _delimiter_of(path, next(filter(str.strip, file), ""))
                file.seek(0)
            reader = csv.reader(file, delimiter=delimiter, skipinitialspace=True)
            yield ((reader.line_num, row) for row in reader if row)
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} is not a text file in UTF-8: {error}") from error
    except (ValueError, csv.Error) as error:
        raise ValueError(f"{name}: {error}") from error


def source_name(path):
    """Return what a source is called in messages.

    Parameters
    ----------
    path : str or Path
        Of the command line.

    Returns
    -------
    str
        Its name; that of standard input for -.

    Examples
    --------
    >>> source_name("-"), source_name("rows.csv")
    ('standard input', 'rows.csv')
    """
    return "standard input" if str(path) == STANDARD_INPUT else str(path)


def _open_text(path):
    """Return an open text file; of standard input, which has no way back, all at once."""
    if str(path) == STANDARD_INPUT:
        return io.StringIO(sys.stdin.buffer.read().decode("utf-8-sig"), newline="")
    return path.open(encoding="utf-8-sig", newline="")


@dataclass(frozen=True)
class Layout:
    """Which cells of a table's rows are numbers, and which one is the label.

    Attributes
    ----------
    line : int
        Where the first row stands.
    first : list of str
        Its cells.
    label : int or None
        Index of the label's cell.
    has_header : bool
        Whether the first row holds names.
    n_index : int
        Columns on the left without a name in the header, as pandas writes the index of a frame:
        they number the rows and are not used.
    """

    line: int
    first: list[str]
    label: int | None
    has_header: bool
    n_index: int = 0

    def __post_init__(self):
        columns = [i for i in range(self.n_index, len(self.first)) if i != self.label]
        names = [
            repr(cell.strip()) if self.has_header else f"{i} (from 0)"
            for i, cell in enumerate(self.first)
        ]
        object.__setattr__(self, "_columns", columns)
        object.__setattr__(self, "_names", names)

    @classmethod
    def of(cls, line, first, label_column):
        """Return the layout that a table's first row shows."""
        label = _label_index(first, label_column)
        columns = [i for i in range(len(first)) if i != label]
        if not columns:
            raise ValueError("there is no column beside the label column")
        # Unless the label column was named after it, a first row with some numbers is data with a
        # fault rather than a header.
        named = label_column is not None and not label_column.isdecimal()
        has_header = named or _is_header([first[i] for i in columns]) or _numbers_columns(first)
        n_index = _count_index(first, label) if has_header else 0
        return cls(line, first, label, has_header, n_index)

    def tell_doubts(self, name):
        """Say which columns are left out, and whether data may be a header."""
        if self.n_index:
            which = "the first column" if self.n_index == 1 else f"the first {self.n_index} columns"
            tell(
                "note",
                f"{name}: {which} without a name in the header, as DataFrame.to_csv() writes the "
                "index, left out; give a name to use it as a feature",
            )
        numbered = [cell.strip() for cell in self.first] == [str(i) for i in range(len(self.first))]
        if numbered and not self.has_header and len(self.first) >= LEAST_NUMBERED:
            tell(
                "note",
                f"{name}: the first row is 0, 1, 2 ... and was taken for data; if it numbers the "
                "columns, write names or no header",
            )

    def numbers(self, line, row):
        """Return the numbers of a row."""
        if len(row) != len(self.first):
            raise ValueError(
                f"line {line} has {len(row)} cells; line {self.line} has {len(self.first)}"
            )
        values = [_number(row[i]) for i in self._columns]
        if None in values:
            i = self._columns[values.index(None)]
            raise ValueError(
                f"line {line}, column {self._names[i]}: expected a finite number, got {row[i]!r}; "
                "fill in missing values, and name a column of labels by --label-column"
            )
        return np.array(values)


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


def _is_header(cells):
    """Tell whether a first row holds names: no number, and not missing values alone."""
    return all(_number(cell) is None for cell in cells) and any(map(_is_name, cells))


def _numbers_columns(first):
    """Tell whether a first row is the header of a frame whose columns are 0, 1, 2 ..."""
    names = [cell.strip() for cell in first[_count_index(first, None) :]]
    return 0 < len(names) < len(first) and names == [str(i) for i in range(len(names))]


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


# The command


def add_command(commands):
    """Add ``stream`` to the commands.

    Parameters
    ----------
    commands : argparse subparsers
        The commands of a parser.
    """
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
        help="rows of numbers, separated by commas or tabs: a file, a named pipe, or - for "
        "standard input",
    )
    absent = argparse.SUPPRESS
    parser.add_argument(
        "--method",
        type=registry_name,
        choices=STREAMING,
        default=absent,
        help=f"default: {DEFAULT_METHOD}",
    )
    add_options(parser, OPTIONS)
    parser.add_argument(
        "--constraints",
        type=Path,
        metavar="CSV",
        default=absent,
        help=f"pairs of rows, numbered from 0 in the order of the stream ({', '.join(CONSTRAINED)} "
        "only): rows i,j,kind with kind must or cannot (or ml, cl); without kind: cannot",
    )
    parser.add_argument(
        "--label-column",
        metavar="COL",
        default=absent,
        help="column of known classes, by its name in the header or its index from 0; rows of "
        "different classes are kept apart; an empty cell or -1: not known",
    )
    parser.add_argument(
        "--chunk",
        type=int,
        default=1000,
        metavar="N",
        help="rows to learn at a time (default: 1000)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        default=absent,
        help=f"write the labels to this file ({', '.join(TEXTS)}) instead of standard output",
    )
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
    given = _given_settings(args)
    with ExitStack() as stack:
        if args.state is not None:
            _check_state(args)
            stack.enter_context(_locked(args.state))
        if args.state is not None and args.state.exists():
            run = _resume(args, given, stack)
        else:
            run = _begin(args, given, stack)
        n_before = run.n_saved
        try:
            _learn_all(run, args.chunk)
        except KeyboardInterrupt:
            if run.n_saved == 0:
                raise
            raise KeyboardInterrupt(_advice(run)) from None
    sys.stderr.write(_report(run, n_before, time.perf_counter() - began))


@contextmanager
def _locked(state):
    """Keep other runs from a state; the system lifts the lock of a run that is killed."""
    path = state.with_name(f".{state.name}.lock")
    with _open_lock(path, state):
        try:
            yield
        finally:
            if fcntl is not None:
                # While it is held: a run that opened the file meanwhile sees that it is gone.
                path.unlink(missing_ok=True)
    if fcntl is None:
        with suppress(OSError):  # another run has it by now
            path.unlink()


def _open_lock(path, state):
    """Return the open and locked file, or raise an error if another run has it."""
    while True:
        file = open(path, "ab")
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                here = os.stat(path).st_ino == os.fstat(file.fileno()).st_ino
            else:
                msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
                here = True
        except FileNotFoundError:
            here = False
        except OSError as error:
            file.close()
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise
            raise ValueError(
                f"{state} is in use by another run of fastmmc stream; wait for its end, or give "
                "another --state"
            ) from None
        if here:
            return file
        file.close()


@dataclass(eq=False)
class _Run:
    """What is at work.

    Attributes
    ----------
    model : estimator
        What learns.
    source : _Source
        Where the rows come from.
    output : _Output
        Where the labels go.
    state : Path or None
        Where the state is saved.
    settings : dict
        The options by their names, as the state keeps them.
    pairs : dict
        Constraints to be given with the next chunk.
    known : dict or None
        Up to where the file of constraints was read.
    n_saved : int
        Rows whose labels are written, and which are in the state if there is one.
    """

    model: object
    source: _Source
    output: _Output
    state: Path | None
    settings: dict
    pairs: dict
    known: dict | None
    n_saved: int = 0


def _given_settings(args):
    """Return the options that were given, and the source, by their names."""
    given = {"SOURCE": args.source if args.source == STANDARD_INPUT else _full(args.source)}
    for option in ("--method", *PARAMETERS, "--constraints", "--label-column", "--out"):
        name = PARAMETERS.get(option, option[2:].replace("-", "_"))
        if hasattr(args, name):
            value = getattr(args, name)
            given[option] = _full(value) if isinstance(value, Path) else value
    return given


def _full(path):
    """Return a name that another working directory does not change."""
    return os.path.abspath(path)


def _begin(args, given, stack):
    """Return a run that has learned nothing yet."""
    method = given.setdefault("--method", DEFAULT_METHOD)
    _check_options(method, given)
    _check_numbers(given, args.chunk)
    params = {PARAMETERS[option]: given[option] for option in given if option in PARAMETERS}
    if method in CONSTRAINED:
        # The column of labels tells them.
        params["semi_supervised"] = True
    model = STREAMING[method].estimator(**params)
    settings = {o: getattr(model, name) for o, name in PARAMETERS.items() if hasattr(model, name)}
    settings |= dict.fromkeys(("--constraints", "--label-column", "--out")) | given
    _check_files(args, settings)
    pairs, known = _new_pairs(settings["--constraints"], None)
    source = stack.enter_context(_Source(args.source))
    source.begin(settings["--label-column"])
    output = stack.enter_context(_Output(settings["--out"]))
    return _Run(model, source, output, args.state, settings, pairs, known)


def _check_options(method, given):
    """Refuse options that a method lacks."""
    accepted = inspect.signature(STREAMING[method].estimator).parameters
    lacking = {option for option, name in PARAMETERS.items() if name not in accepted}
    if method not in CONSTRAINED:
        lacking |= {"--constraints", "--label-column"}
    for option in given:
        if option in lacking:
            raise ValueError(f"{method} has no {option}; give another --method or leave it out")


def _check_numbers(given, chunk):
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


def _resume(args, given, stack):
    """Return the run that a state was saved of."""
    saved = _read_state(args.state)
    settings = saved["settings"]
    for option, value in given.items():
        if value != settings.get(option):
            raise ValueError(
                f"{option} {value} contradicts {args.state}, the state of a run with "
                f"{_told(option, settings)}; give the same, or another --state to begin anew"
            )
    _check_files(args, settings)
    model = STREAMING[settings["--method"]].estimator.load(args.state)
    pairs, known = _new_pairs(settings["--constraints"], saved["constraints"])
    source = stack.enter_context(_Source(args.source))
    source.resume(saved["source"])
    output = stack.enter_context(_Output(settings["--out"]))
    output.resume(saved["n_bytes"])
    return _Run(model, source, output, args.state, settings, pairs, known, model.n_seen_)


def _new_pairs(path, known):
    """Return the constraints that stand in their file since it was read, and up to where.

    Parameters
    ----------
    path : str or None
        The file.
    known : dict or None
        What was told when it was read the last time; None: it was not.

    Returns
    -------
    pairs : dict
        Arguments of ``partial_fit``.
    known : dict or None
        To be told the next time.

    Raises
    ------
    ValueError
        If the file is not the one that was read, with new lines at its end or without.
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


def _told(option, settings):
    if settings.get(option) is None:
        return "standard output" if option == "--out" else f"no {option}"
    return f"{option} {settings[option]}"


def _read_state(path):
    """Return what was saved beside the estimator."""
    _, header = read_saved(path)
    saved = header.get("extra")
    if not (isinstance(saved, dict) and "stream" in saved):
        raise ValueError(
            f"{path} holds {header['class']}, but no state of fastmmc stream; give another name"
        )
    if saved["stream"] != FORMAT:
        raise ValueError(f"{path} has format {saved['stream']}; expected {FORMAT}")
    if not saved.keys() >= SAVED:
        raise ValueError(f"{path} is damaged: it lacks {', '.join(sorted(SAVED - saved.keys()))}")
    return saved


def _check_state(args):
    """Refuse a state that cannot be written, or the folder of which cannot."""
    check_writable(args.state, args.source)
    # The state is put into its place under another name.
    if not os.access(args.state.absolute().parent, os.W_OK):
        raise ValueError(f"{args.state}: its folder cannot be written: permission denied")


def _check_files(args, settings):
    """Refuse files that cannot be written, and one file in two places."""
    if settings["--out"] is not None:
        check_writable(Path(settings["--out"]), args.source)
        check_ending(Path(settings["--out"]), TEXTS)
    names = ("SOURCE", "--constraints", "--out")
    files = {name: settings[name] for name in names} | {"--state": args.state}
    files = {name: Path(_full(path)) for name, path in files.items() if path is not None}
    for (one, a), (other, b) in combinations(files.items(), 2):
        if a == b or (a.exists() and b.exists() and a.samefile(b)):
            raise ValueError(f"{one} and {other} are the same file, {b}; give another name")


def _learn_all(run, chunk):
    """Learn chunk after chunk, up to the end of the source."""
    n = chunk
    while n == chunk:
        X, y = run.source.read(chunk)
        n = len(X)
        if n:
            _check_first(run, n)
            _learn(run, X, y)
            run.output.write(run.model.labels_)
            if run.state is not None:
                run.model.save(run.state, extra=_state_of(run))
            run.n_saved = run.model.n_seen_


def _check_first(run, n):
    k = run.settings["--k"]
    if run.n_saved == 0 and n < k:
        raise ValueError(
            f"{run.source.name}: the first {k} prototypes need as many rows; got {n}; wait for "
            "more of them, or give a smaller --k"
        )


def _learn(run, X, y):
    constraints = {"y": y, **run.pairs} if run.settings["--method"] in CONSTRAINED else {}
    run.model.partial_fit(X, **constraints)
    run.pairs = {}


def _state_of(run):
    return {
        "stream": FORMAT,
        "settings": run.settings,
        "source": run.source.place(),
        "n_bytes": run.output.n_bytes(),
        "constraints": run.known,
    }


def _advice(run):
    """Return what to do after an interrupt."""
    done = f"interrupted after {run.n_saved} rows"
    if run.state is None:
        return f"{done}; with --state the same command could go on from there"
    if run.source.is_file:
        return f"{done}; the same command goes on from there"
    return (
        f"{done}; the same command goes on with the rows that come then, so feed it from row "
        f"{run.n_saved} (from 0) on"
    )


def _report(run, n_before, seconds):
    """Return what is told at the end."""
    settings, model = run.settings, run.model
    resumed = f" ({run.n_saved - n_before} of them now)" if n_before else ""
    lines = [
        f"{settings['--method']} on {run.source.name}: {run.n_saved} rows{resumed}, "
        f"{model.n_active_} of {settings['--k']} prototypes in use"
    ]
    if settings["--method"] in CONSTRAINED:
        n_waiting = len(model._stream.must) + len(model._stream.cannot)
        lines.append(
            f"forgotten  {model.n_forgotten_} constraints, not used as their earlier row was not "
            "remembered"
        )
        if model.n_late_:
            lines.append(f"late       {model.n_late_} constraints, given after both their rows")
        if n_waiting:
            lines.append(f"waiting    {n_waiting} constraints, for rows to come")
    lines.append(f"time       {seconds:.3g} s")
    return "\n".join(lines) + "\n"


class _Source:
    """The rows of a file or a pipe, and the place up to which they were read.

    The lines are taken one by one from the bytes of the file, as a text file of Python's does not
    tell where in the file it is.
    """

    def __init__(self, path):
        self.name = source_name(path)
        self._path = path
        self._layout = self._delimiter = self._waiting = None
        self._classes = {}
        self._line = self._n_bytes = 0
        self._last = b""

    def __enter__(self):
        if self._path == STANDARD_INPUT:
            self._file, self.is_file = sys.stdin.buffer, False
        elif os.path.isdir(self._path):
            raise ValueError(f"{self._path} is a folder; give a file")
        else:
            self._file = open(self._path, "rb")
            self.is_file = stat.S_ISREG(os.fstat(self._file.fileno()).st_mode)
        return self

    def __exit__(self, *exc_info):
        if self._path != STANDARD_INPUT:
            self._file.close()

    def begin(self, label_column):
        """Look at the first row."""
        with self._named_errors():
            first = self._next_row()
            if first is None:
                raise ValueError("there are no rows")
            self._layout = Layout.of(self._line, first, label_column)
            self._layout.tell_doubts(self.name)
            if not self._layout.has_header:
                self._waiting = first
            else:
                self._waiting = self._next_row()
                if self._waiting is None:
                    raise ValueError(NOTHING_BELOW)

    def read(self, n):
        """Return the next n rows, or those that there are, and their classes (-1: not known)."""
        X, y, lines = [], [], []
        layout = self._layout
        with self._named_errors():
            while len(X) < n and (row := self._next_row()) is not None:
                X.append(layout.numbers(self._line, row))
                lines.append(self._line)
                if layout.label is not None:
                    y.append(self._class_of(row[layout.label].strip()))
            X = np.array(X)
            self._check_magnitude(X, lines)
        return X, (None if layout.label is None else np.array(y, dtype=np.int64))

    @staticmethod
    def _check_magnitude(X, lines):
        far = np.argwhere(np.abs(X) > LARGEST)
        if len(far):
            raise ValueError(
                f"line {lines[far[0, 0]]} has a value beyond {LARGEST:g}, whose square overflows; "
                "scale the columns first"
            )

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
        self._layout, self._delimiter = Layout(**place["layout"]), place["delimiter"]
        self._classes = {name: number for number, name in enumerate(place["classes"])}
        if self.is_file != (place["n_bytes"] is not None):
            was, now = ("a pipe", "a file") if self.is_file else ("a file", "a pipe")
            raise ValueError(
                f"{self.name} was {was} when the state was saved and is {now}; give what it was, "
                "or another --state to begin anew"
            )
        with self._named_errors():
            if self.is_file:
                self._seek(place)
            else:
                # What writes into a pipe may begin with its header again.
                row = self._next_row()
                repeated = self._layout.has_header and row == self._layout.first
                self._waiting = None if repeated else row

    def _seek(self, place):
        """Go to a place in the file, if the file is still the same up to there."""
        n_bytes, line, (length, checksum) = place["n_bytes"], place["line"], place["last"]
        size = os.fstat(self._file.fileno()).st_size
        again = "give the file that was read, or another --state to begin anew"
        if size < n_bytes:
            raise ValueError(f"{n_bytes} bytes of it were read, but it has {size} now; {again}")
        self._file.seek(n_bytes - length)
        self._last = self._file.read(length)
        if zlib.crc32(self._last) != checksum:
            raise ValueError(f"line {line} is not the one that was read; {again}")
        self._n_bytes, self._line = n_bytes, line

    @contextmanager
    def _named_errors(self):
        try:
            yield
        except (ValueError, csv.Error) as error:
            raise ValueError(f"{self.name}: {error}") from error

    def _next_row(self):
        """Return the cells of the next line that is not blank, or None at the end."""
        if self._waiting is not None:
            row, self._waiting = self._waiting, None
            return row
        while line := self._next_line():
            if row := self._cells(line):
                return row
        return None

    def _next_line(self):
        """Return the bytes of the next line; empty at the end."""
        if self._last and not self._last.endswith(b"\n"):
            self._end_last_line()
            if not self._last.endswith(b"\n"):
                return b""
        line = self._file.readline(MOST_BYTES + 1)
        if line:
            self._line += 1
            self._n_bytes += len(line)
            self._last = line
        return line

    def _end_last_line(self):
        """Take the line break that the last line lacked when it was read, if there is one now."""
        rest = self._file.readline(MOST_BYTES)
        if rest.strip(b"\r\n"):
            raise ValueError(
                f"line {self._line} had no line break and was taken for a whole row, but goes on "
                f"with {rest[:20].decode(errors='replace').rstrip()!r}; begin anew, when whole "
                "lines are there"
            )
        self._n_bytes += len(rest)
        self._last += rest

    def _cells(self, line):
        where = f"line {self._line}"
        if len(line) > MOST_BYTES:
            raise ValueError(f"{where} is longer than {MOST_BYTES} bytes; expected rows of numbers")
        try:
            text = line.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ValueError(f"{where} is not text in UTF-8: {error}") from error
        if self._delimiter is None and text.strip():
            self._delimiter = _delimiter_of(self._path, text)
        try:
            # Strict, so that a quoted cell that goes on in the next line is an error.
            delimiter = self._delimiter or ","
            reader = csv.reader([text], delimiter=delimiter, skipinitialspace=True, strict=True)
            return next(reader, [])
        except csv.Error as error:
            raise ValueError(f"{where} cannot be read as a row: {error}") from error

    def _class_of(self, name):
        if name in ("", "-1"):
            return -1
        return self._classes.setdefault(name, len(self._classes))


def _delimiter_of(path, first_line):
    """Return what separates cells: as the file's name ends, else a tab if there is one."""
    by_name = DELIMITERS.get(Path(path).suffix.lower())
    return by_name or ("\t" if "\t" in first_line else ",")


class _Output:
    """Labels in a file that can be cut back to what a state knows, or on standard output."""

    def __init__(self, path):
        self._path, self._file = path, None

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        if self._path is not None and self._file is not None:
            self._file.close()

    def resume(self, n_bytes):
        """Cut the file back to its first bytes, and go on behind them."""
        if self._path is None:
            self._file = sys.stdout
            return
        if n_bytes is None:
            self._file = open(self._path, "ab")
            return
        again = "put it back, or give another --state to begin anew"
        if not os.path.exists(self._path):
            raise ValueError(
                f"{self._path} has labels of the run to be resumed and is gone; {again}"
            )
        self._file = open(self._path, "r+b")
        size = os.fstat(self._file.fileno()).st_size
        if size < n_bytes:
            raise ValueError(
                f"{self._path} had {n_bytes} bytes of labels when the state was saved, and has "
                f"{size} now; {again}"
            )
        self._file.truncate(n_bytes)
        self._file.seek(n_bytes)

    def write(self, labels):
        """Write labels, and leave none of them in a buffer."""
        header = ""
        if self._file is None:
            # Not earlier, as an error before the first labels should not cost those of another run.
            header = "label\n"
            self._file = sys.stdout if self._path is None else open(self._path, "wb")
        text = header + "".join(f"{label}\n" for label in labels.tolist())
        self._file.write(text if self._path is None else text.encode())
        self._file.flush()
        if self._is_regular():
            os.fsync(self._file.fileno())

    def n_bytes(self):
        """Return the size of the file, or None if it is not one to be cut back."""
        return self._file.tell() if self._path is not None and self._is_regular() else None

    def _is_regular(self):
        try:
            return stat.S_ISREG(os.fstat(self._file.fileno()).st_mode)
        except (OSError, ValueError):  # what stands in for standard output may have no number
            return False


# Constraints


def read_constraints(path):
    """Read pairs of rows that belong together, and that do not.

    Parameters
    ----------
    path : Path
        Rows ``i,j,kind`` with the kinds must, ml, cannot and cl, or ``i,j`` for cannot; separated
        by commas or, in a .tsv file, tabs. The first row may be a header.

    Returns
    -------
    must, cannot : (p, 2) and (q, 2) int64 arrays
        Pairs of rows, numbered from 0.

    Raises
    ------
    ValueError
        If a row is no such pair, or pairs contradict each other; the line is named.
    """
    pairs = {"must": [], "cannot": []}
    lines = []
    with open_table(path, DELIMITERS.get(path.suffix.lower(), ",")) as rows:
        for count, (line, row) in enumerate(rows):
            if count == 0:
                first_line, n_cells = line, len(row)
                if _is_header(row):
                    continue
            if len(row) != n_cells:
                raise ValueError(
                    f"line {line} has {len(row)} cells; line {first_line} has {n_cells}"
                )
            kind, pair = _pair(line, row)
            pairs[kind].append(pair)
            if kind == "cannot":
                lines.append(line)
        must, cannot = (np.array(p, dtype=np.int64).reshape(-1, 2) for p in pairs.values())
        _check_conflicts(must, cannot, lines)
    return must, cannot


def _pair(line, row):
    """Return the kind of a constraint and its two rows."""
    if len(row) not in (2, 3):
        raise ValueError(f"line {line}: expected i,j or i,j,kind; got {len(row)} cells")
    kind = KINDS.get(row[2].strip().lower()) if len(row) == 3 else "cannot"
    if kind is None:
        raise ValueError(f"line {line}: the kind must be one of {', '.join(KINDS)}; got {row[2]!r}")
    pair = [_row_number(cell) for cell in row[:2]]
    if None in pair:
        raise ValueError(
            f"line {line}: expected the number of a row, counted from 0; "
            f"got {row[pair.index(None)]!r}"
        )
    if pair[0] == pair[1]:
        raise ValueError(f"line {line} links row {pair[0]} to itself")
    return kind, pair


def _row_number(cell):
    """Return a cell as the number of a row, or None if it is not one."""
    cell = cell.strip()
    return int(cell) if cell.isdecimal() and len(cell) <= 18 else None


def _check_conflicts(must, cannot, lines):
    """Refuse cannot-links between rows that must-links join."""
    conflicts = find_conflicts(must, cannot)
    if conflicts.size:
        i, j = cannot[conflicts[0]]
        raise ValueError(
            f"line {lines[conflicts[0]]} keeps rows {i} and {j} apart, but must-links join them; "
            "remove one of them"
        )
