"""The command ``fastmmc stream``.

Rows are read in chunks, and each chunk is learned, its labels are written, and the state is saved,
in this order. The state names how many bytes of the source and of the output belong to it. So a
run that was killed at any moment goes on from the last state: what was written after it is cut
off, and what was read after it is read again.
"""

import argparse
import inspect
import os
import sys
import time
import warnings
import zlib
from contextlib import ExitStack
from dataclasses import MISSING, asdict, dataclass, fields
from itertools import combinations
from pathlib import Path
from typing import Any

from fastmmc.cli import common, sources, tables
from fastmmc.cli.columns import COLUMNS, Columns
from fastmmc.cli.common import STANDARD_INPUT, TEXTS, Option
from fastmmc.cli.resumable import ANEW, BadRows, Output, Place, Source, check_same
from fastmmc.core import validation
from fastmmc.core.files import is_replaced, locked
from fastmmc.core.saving import check_type, load, make_checked, read_archive
from fastmmc.core.words import counted
from fastmmc.registry import METHODS

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
        "-k --k N",
        common.parse_count,
        "number of prototypes; must be given unless a run is resumed",
        dest="n_clusters",
    ),
    Option("--alpha ALPHA", common.parse_number, "how far the winner moves (default: 0.05)"),
    Option(
        "--beta BETA",
        common.parse_number,
        "how far rivals move; wta and fscl have none (default: 0.002)",
    ),
    common.SEED,
    Option(
        "--memory-size MEMORY-SIZE",
        common.parse_count,
        "constrained rows to remember; a constraint is used if its earlier row is among them "
        "(default: 10000)",
    ),
)
# What else methods with constraints take. A full name is the same in any working directory.
KNOWLEDGE = (
    Option(
        "--constraints CSV",
        os.path.abspath,
        f"{sources.PAIRS_HELP}, in the order of the stream ({', '.join(CONSTRAINED)} only)",
    ),
    Option(
        "--label-column COL",
        str,
        "column of known classes, by its name in the header or its index from 0; rows of "
        "different classes are kept apart; a missing cell (empty, NA, ...) or -1: not known",
    ),
)
FILES = (
    Option(
        "--out FILE",
        os.path.abspath,
        f"write the labels to this file ({', '.join(TEXTS)}) instead of standard output",
    ),
    Option(
        "--skip-bad-rows FILE",
        os.path.abspath,
        "leave out rows in which a number or a date is missing or cannot be read, as if these rows "
        "were not there: they get no label and no number, but a line in this table, with what is "
        "wrong",
        dest="bad_rows",
    ),
)
# What is asked of any method.
READING = (*COLUMNS, tables.DECIMAL)
COMMON = (*READING, *FILES)

# Files that a run is given, and those that it writes, which are for one run at a time. Their names
# come from the command line: whoever sends a state must not choose what is overwritten.
GIVEN_FILES = ("--constraints", "--out", "--skip-bad-rows")
WRITTEN = ("--state", "--out", "--skip-bad-rows")

# Version of what is added to a saved estimator.
FORMAT = 3

DESCRIPTION = """\
Learn the rows of a table as they come, in bounded memory, and write one label a row: the prototype
that was nearest when the row was presented. The first chunk tells the first prototypes and what the
columns hold: numbers, dates or categories, which become numbers as they do with fastmmc cluster. If
all columns are numbers, each is learned as it is. A last line without a line break is a row as
well. Columns on the left that have no name in the header, as the index of a frame that pandas
wrote, are left out with a note."""

EPILOG = """\
With --state a run that ended, failed or was killed goes on when the same command is given again;
--k and other options may then be left out, but not the names of files, and --chunk may be another
one. One run at a time may use a state and the files that it writes. New lines at the end of the
file of constraints are taken. A file is read on from where the state was saved, also if it has
grown since, and --out is cut back to the labels that belong to the state: no row is lost and none
is learned or labelled twice. Standard output cannot be cut back: after a kill, labels of the last
chunk may come twice there. Standard input cannot be read again: a resumed run takes the rows that
come as new ones (a repeated header is skipped), and rows that were read but not yet in the state
must be fed again; the number of rows in the state is told at the end and after Ctrl-C."""


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
        help="rows with cells separated by commas, semicolons, tabs or bars: a file, a named pipe, "
        "or - for standard input",
    )
    common.add_options(parser.add_argument_group("input"), READING)
    learning = parser.add_argument_group("learning")
    told = f"default: {DEFAULT_METHOD}"
    common.add_method(parser, learning, STREAMING, told, default=argparse.SUPPRESS)
    common.add_options(learning, LEARNING)
    learning.add_argument(
        "--chunk",
        type=common.parse_count,
        default=1000,
        metavar="N",
        help="rows to learn at a time (default: 1000)",
    )
    common.add_options(parser.add_argument_group("knowledge"), KNOWLEDGE)
    output = parser.add_argument_group("output")
    common.add_options(output, FILES)
    output.add_argument(
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
    files = _check_files(args, given)
    with ExitStack() as stack:
        for flag in WRITTEN:
            if flag in files and is_replaced(files[flag]):
                stack.enter_context(locked(files[flag], flag))
        run = _Run(args, given, stack)
        try:
            run.learn_all(args.chunk)
        except KeyboardInterrupt:
            if run.n_saved == 0:
                raise
            raise KeyboardInterrupt(run.advice()) from None
    sys.stderr.write(run.report(time.perf_counter() - began) + "\n")


class _Run:
    """A run that begins, or goes on from its state: ``n_saved`` rows are labelled and saved."""

    def __init__(self, args, given, stack):
        self._state = args.state
        resumed = self._state is not None and self._state.exists()
        saved = constraints = None
        if resumed:
            self._model, saved = _read_state(self._state)
            self._settings, constraints = saved.settings, saved.constraints
            check_same(given, self._settings, self._state, GIVEN_FILES)
        else:
            self._settings = _new_settings(given, args.chunk)
            self._model = _new_model(self._settings)
        self._has_constraints = self._settings["--method"] in CONSTRAINED
        self.n_saved = self._n_before = self._model.n_seen_ if resumed else 0
        # Constraints for the next chunk, and up to where their file was read.
        self._pairs, self._known = _new_pairs(given.get("--constraints"), constraints)
        self._output = Output(given.get("--out"), "label", stack)
        self._bad = BadRows(given.get("--skip-bad-rows"), "line,problem,row", stack)
        self._source = Source(args.source, self._bad, stack)
        if resumed:
            self._source.resume(saved.source, self._model.coding_)
            self._output.resume(saved.n_bytes, saved.sha256, 1 + self.n_saved)
            self._bad.resume(saved.n_bytes_bad, saved.sha256_bad)
        else:
            asked = (self._settings[flag] for flag in ("--columns", "--drop", "--label-column"))
            decimal = self._settings[tables.DECIMAL.flag]
            self._source.begin(Columns(*asked), decimal, args.chunk)

    def learn_all(self, chunk):
        n = chunk
        while n == chunk:
            X, y = self._source.read(chunk)
            n = X.n_rows
            self._bad.write_all()
            if n or self.n_saved == 0:
                self._learn(X, y)

    def _learn(self, X, y):
        """Learn a chunk, write its labels and save the state."""
        k, n = self._settings["--k"], X.n_rows
        if self.n_saved == 0 and n < k:
            n_bad, path = self._bad.n_rows, self._bad.path
            bad = "" if path is None else f", and {n_bad} bad ones in {path}"
            raise ValueError(
                f"{self._source.name}: the first {k} prototypes need as many rows; got {n}"
                f"{bad}; wait for more of them, or give a smaller --k"
            )
        constraints = {"y": y, **self._pairs} if self._has_constraints else {}
        if self.n_saved == 0:
            self._model._begin_table(self._source.coding)
        elif self._model.coding_ is None:  # by a state of an earlier version
            X, _, _ = self._source.coding.code(X)
        with common.naming_options(LEARNING, inspect.signature(type(self._model)).parameters):
            with warnings.catch_warnings():
                # The report counts them.
                warnings.filterwarnings("ignore", ".* not seen before")
                self._model.partial_fit(X, **constraints)
        self._pairs = {}
        self._output.write(map(str, self._model.labels_.tolist()))
        if self._state is not None:
            out, bad = self._output, self._bad
            saved = _Saved(
                self._settings,
                self._source.place(),
                out.n_bytes,
                bad.n_bytes,
                self._known,
                out.sha256,
                bad.sha256,
            )
            # What fastmmc predict finds columns by.
            used = {"columns": asdict(self._source.columns.of(self._source.coding))}
            self._model.save(self._state, extra={"stream": FORMAT, **used, **asdict(saved)})
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

    def report(self, seconds):
        """Return what is told at the end of a run."""
        settings, model, source = self._settings, self._model, self._source
        resumed = f" ({self.n_saved - self._n_before} of them now)" if self._n_before else ""
        headline = (
            f"{settings['--method']} on {source.name}: {self.n_saved} rows{resumed}, "
            f"{model.n_active_} of {settings['--k']} prototypes in use"
        )
        seed = settings[common.SEED.flag]
        rows = {} if seed is None else {"seed": seed}  # a state of version 0.1.0 may have none
        seen = []
        if self._has_constraints:
            unused = "constraints, not used as their earlier row was not remembered"
            rows["forgotten"] = f"{model.n_forgotten_} {unused}"
            n_waiting = len(model._stream.must) + len(model._stream.cannot)
            seen.append(("late", model.n_late_, "constraint", ", given after both their rows"))
            seen.append(("waiting", n_waiting, "constraint", ", for rows to come"))
        seen.append(("missing", source.n_missing, "cell", ", filled as in similar rows"))
        seen.append(("new", source.n_new, "cell", " of categories, read as none"))
        seen.append(("blank", source.n_blank, "line", " between the rows, without labels"))
        rows |= {name: counted(n, one) + rest for name, n, one, rest in seen if n}
        if self._bad.path is not None:
            rows["skipped"] = f"{counted(self._bad.n_rows, 'row')}, see {self._bad.path}"
        return common.format_report(headline, rows | {"time": f"{seconds:.3g} s"})


def _given_settings(args):
    """Return the options that were given, and the source, by their names."""
    is_piped = args.source == STANDARD_INPUT
    given = {"SOURCE": args.source if is_piped else os.path.abspath(args.source)}
    if hasattr(args, "solver"):
        given["--method"] = args.solver
    options = common.given_options(args, (*LEARNING, *KNOWLEDGE, *COMMON))
    return given | {option.flag: value for option, value in options.items()}


def _new_settings(given, chunk):
    """Return the settings of a new run: those that were given, and the estimator's defaults."""
    method = given.setdefault("--method", DEFAULT_METHOD)
    accepted = inspect.signature(STREAMING[method].estimator).parameters
    learning = {o.flag: accepted[o.name].default for o in LEARNING if o.name in accepted}
    learning[common.SEED.flag] = common.DEFAULT_SEED
    own = [option for option in LEARNING if option.flag in learning]
    own += KNOWLEDGE if method in CONSTRAINED else ()
    asked = [option for option in (*LEARNING, *KNOWLEDGE) if option.flag in given]
    common.refuse_lacking(method, asked, own)
    if "--k" not in given:
        raise ValueError("--k is missing: stream needs the number of prototypes")
    k = validation.check_integer("--k", given["--k"], least=1)
    if chunk < k:
        raise ValueError(
            f"--chunk must be at least --k, {k}, as the first prototypes come from the first "
            f"chunk; got {chunk}"
        )
    return learning | dict.fromkeys(option.flag for option in (*KNOWLEDGE, *COMMON)) | given


def _new_model(settings):
    method = settings["--method"]
    params = {o.name: settings[o.flag] for o in LEARNING if o.flag in settings}
    if method in CONSTRAINED:
        # The column of labels tells them.
        params["semi_supervised"] = True
    return STREAMING[method].estimator(**params)


@dataclass(frozen=True)
class _Known:
    """Up to where a file of constraints was read."""

    n_bytes: int
    checksum: int
    n_must: int
    n_cannot: int

    def _check_values(self):
        if min(self.n_bytes, self.checksum, self.n_must, self.n_cannot) < 0:
            raise ValueError("constraints have negative counts")


@dataclass(frozen=True)
class _Saved:
    settings: dict[str, Any]
    source: Place
    n_bytes: int | None  # of the labels; None: not in a file
    n_bytes_bad: int | None  # of the rows that were left out
    constraints: _Known | None
    # Of the same bytes; states of version 0.1.0 have none.
    sha256: str | None = None
    sha256_bad: str | None = None

    def _check_values(self):
        settings = self.settings
        check_type(settings, dict[str, int | float | str | list[str] | None], "settings")
        types = {"SOURCE": str, "--method": str}
        types |= {option.flag: str | None for option in (*KNOWLEDGE, *FILES, tables.DECIMAL)}
        types |= {option.flag: list[str] | None for option in COLUMNS}
        for flag, hint in types.items():
            check_type(settings.get(flag), hint, flag)
        sizes = {"--out": self.n_bytes, "--skip-bad-rows": self.n_bytes_bad}
        for flag, n_bytes in sizes.items():
            if n_bytes is not None and (n_bytes < 0 or settings.get(flag) is None):
                raise ValueError(f"{n_bytes} bytes of {flag} cannot be")
        for flag, value, found in (
            ("--constraints", self.constraints, "constraints"),
            ("--label-column", self.source.layout.label, "a column of labels"),
        ):
            if (settings.get(flag) is None) != (value is None):
                raise ValueError(f"{flag} is {settings.get(flag)}, with {found} {value}")


def _read_state(path):
    """Return the estimator of a state, and what was saved beside it, all of it checked."""
    _, header = read_archive(path)
    extra = header.get("extra")
    if not (isinstance(extra, dict) and "stream" in extra):
        raise ValueError(
            f"{path} holds {header['class']}, but no state of fastmmc stream; give another name"
        )
    if extra["stream"] != FORMAT:
        raise ValueError(f"{path} has format {extra['stream']}; expected {FORMAT}; {ANEW}")
    needed = {field.name for field in fields(_Saved) if field.default is MISSING}
    if not extra.keys() >= needed:
        raise ValueError(f"{path} is damaged: it lacks {', '.join(sorted(needed - extra.keys()))}")
    model = load(path)
    try:
        saved = _make_saved(extra)
        _check_model(model, saved)
    except Exception as error:  # whatever it holds, it is the file's fault
        raise ValueError(f"{path} is damaged: {error or type(error).__name__}; {ANEW}") from error
    return model, saved


def _make_saved(extra):
    """Return what a state tells, if all of it is of the types that it should be."""
    source, constraints = extra["source"], extra["constraints"]
    layout = make_checked(tables.Layout, source["layout"], "source.layout")
    place = make_checked(Place, source | {"layout": layout}, "source")
    known = None if constraints is None else make_checked(_Known, constraints, "constraints")
    own = {field.name: extra.get(field.name) for field in fields(_Saved)}
    return make_checked(_Saved, own | {"source": place, "constraints": known})


def _check_model(model, saved):
    method = saved.settings["--method"]
    if method not in STREAMING or type(model) is not STREAMING[method].estimator:
        raise ValueError(f"--method is {method!r}, and the estimator {type(model).__name__}")
    params = model.get_params()
    for option in LEARNING:
        told, found = saved.settings.get(option.flag), params.get(option.name)
        if (type(told), told) != (type(found), found):
            raise ValueError(f"{option.flag} is {told!r}, but the estimator has {found!r}")
    place, n = saved.source, getattr(model, "n_seen_", 0)
    is_short = place.n_bytes is not None and place.line < n
    if n < 1 or is_short or len(place.layout.columns) != model.n_features_in_:
        raise ValueError(f"{n} rows of {model.n_features_in_} columns cannot have been learned")


def _check_files(args, given):
    """Return the files that were given, by their options; refuse names that cannot be or agree."""
    files = {flag: given.get(flag) for flag in ("SOURCE", *GIVEN_FILES)} | {"--state": args.state}
    files = {flag: Path(os.path.abspath(path)) for flag, path in files.items() if path is not None}
    endings = {"--out": TEXTS, "--skip-bad-rows": (".csv", ".txt")}
    for flag in WRITTEN:
        if flag in files:
            common.check_writable(files[flag], args.source)
            if flag in endings:
                common.check_ending(files[flag], endings[flag], f"the name of {flag}")
    for (one, a), (other, b) in combinations(files.items(), 2):
        if a == b or (a.exists() and b.exists() and a.samefile(b)):
            raise ValueError(f"{one} and {other} are the same file, {b}; give another name")
    return files


def _new_pairs(path, known):
    """Return the constraints that came into their file since it was read, and up to where.

    The constraints are arguments of ``partial_fit``; ``known`` is what was returned the last time.
    """
    if path is None:
        return {}, None
    content = Path(path).read_bytes()
    known = _Known(0, zlib.crc32(b""), 0, 0) if known is None else known
    begin = content[: known.n_bytes]
    if (len(begin), zlib.crc32(begin)) != (known.n_bytes, known.checksum):
        raise ValueError(
            f"{path} is not the file of constraints that was read, with new lines at its end or "
            f"without; put it back, or {ANEW}"
        )
    rest = content[len(begin) :]
    if begin and rest and not (begin.endswith(b"\n") or rest.startswith((b"\r", b"\n"))):
        raise ValueError(
            f"{path}: its last line had no line break when it was read, and goes on now; put it "
            f"back, or {ANEW}"
        )
    must, cannot = sources.read_constraints(Path(path))
    found = _Known(len(content), zlib.crc32(content), len(must), len(cannot))
    pairs = {"must_link": must[known.n_must :], "cannot_link": cannot[known.n_cannot :]}
    return pairs, found
