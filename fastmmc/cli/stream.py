"""The command ``fastmmc stream``.

Rows are read in chunks, and each chunk is learned, its labels are written, and the state is saved,
in this order. The state names how many bytes of the source and of the output belong to it. So a
run that was killed at any moment goes on from the last state: what was written after it is cut
off, and what was read after it is read again.
"""

from __future__ import annotations

import argparse
import inspect
import os
import sys
import time
import zlib
from contextlib import ExitStack
from itertools import combinations
from pathlib import Path

from fastmmc import validation
from fastmmc.cli import common, tables
from fastmmc.cli.common import STANDARD_INPUT, TEXTS, Option
from fastmmc.cli.pairs import PAIRS_HELP, read_constraints
from fastmmc.cli.resumable import BadRows, Output, Source, locked
from fastmmc.registry import METHODS
from fastmmc.saving import read_archive

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
        common.parse_count,
        "number of prototypes; must be given unless a run is resumed",
        dest="n_clusters",
        metavar="N",
        short=("-k",),
    ),
    Option("--alpha", common.parse_number, "how far the winner moves (default: 0.05)"),
    Option(
        "--beta",
        common.parse_number,
        "how far rivals move; wta and fscl have none (default: 0.002)",
    ),
    common.SEED,
    Option(
        "--memory-size",
        common.parse_count,
        "constrained rows to remember; a constraint is used if its earlier row is among them "
        "(default: 10000)",
    ),
)
# What else methods with constraints take. A full name is the same in any working directory.
KNOWLEDGE = (
    Option(
        "--constraints",
        os.path.abspath,
        f"{PAIRS_HELP}, in the order of the stream ({', '.join(CONSTRAINED)} only)",
        metavar="CSV",
    ),
    Option(
        "--label-column",
        str,
        "column of known classes, by its name in the header or its index from 0; rows of "
        "different classes are kept apart; an empty cell or -1: not known",
        metavar="COL",
    ),
)
FILES = (
    Option(
        "--out",
        os.path.abspath,
        f"write the labels to this file ({', '.join(TEXTS)}) instead of standard output",
        metavar="FILE",
    ),
    Option(
        "--skip-bad-rows",
        os.path.abspath,
        "go on behind rows that are not numbers as they should be, as if they were not there: they "
        "get no label and no number, but a line in this table, with what is wrong",
        dest="bad_rows",
        metavar="FILE",
    ),
)
# What is asked of any method.
COMMON = (*tables.COLUMNS, *FILES)

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
            stack.enter_context(locked(args.state))
        run = _Run(args, stack)
        n_before = run.n_saved
        try:
            run.learn_all(args.chunk)
        except KeyboardInterrupt:
            if run.n_saved == 0:
                raise
            raise KeyboardInterrupt(run.advice()) from None
    sys.stderr.write(run.report(n_before, time.perf_counter() - began) + "\n")


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
        self._output = Output(self._settings["--out"], "label", stack)
        bad = self._settings["--skip-bad-rows"]
        self._bad = None if bad is None else BadRows(bad, "line,problem,row", stack)
        self._source = Source(args.source, self._bad, stack)
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
        common.check_ending(bad, (".csv", ".txt"), "the name of --skip-bad-rows")
    names = ("SOURCE", "--constraints", "--out", "--skip-bad-rows")
    files = {name: settings[name] for name in names} | {"--state": args.state}
    files = {name: Path(os.path.abspath(path)) for name, path in files.items() if path is not None}
    for (one, a), (other, b) in combinations(files.items(), 2):
        if a == b or (a.exists() and b.exists() and a.samefile(b)):
            raise ValueError(f"{one} and {other} are the same file, {b}; give another name")


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
