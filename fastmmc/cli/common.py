"""What the commands share: options, messages, checks of files to write, and running a solver."""

import argparse
import csv
import importlib
import inspect
import json
import os
import re
import sys
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.util import find_spec
from operator import methodcaller
from pathlib import Path
from threading import Timer

import numpy as np

from fastmmc.core.files import gathering, is_replaced, naming, replacing, target_of
from fastmmc.core.jit import Compilation
from fastmmc.core.results import ClusteringResult
from fastmmc.core.status import STATUS_TEXT
from fastmmc.core.words import not_installed
from fastmmc.data.blocks import LargeMap
from fastmmc.registry import METHODS, registry_name

STANDARD_INPUT = "-"
STANDARD_OUTPUT = "standard output"  # in messages
# Files of labels, a line each.
TEXTS = (".csv", ".txt", ".tsv")
PARQUET = ".parquet"
ENGINES = ("pyarrow", "fastparquet")
PATIENCE = 2.0  # seconds
WIDTH = 40  # of what is shown of the progress

# What solvers advise and the command line has no option for, and what it says instead.
NO_OPTION = {
    ", force=True to go ahead": "",
    ", -1 for all, or None": ", or -1 for all",
    ", or None": "",
    "method_params: ": "",
}

# What warnings advise, and the option that does it.
IN_WARNINGS = {
    "standardize=True (umc_rls, evo_mmc, cluster in memory), or scale X, as by "
    "sklearn.preprocessing.StandardScaler": "--standardize",
    'umc_rls(X, k, sizes="free")': "--method umc-rls --sizes free",
    "fastmmc.cluster(X, k)": "--method cluster",
    "give target_sizes": "--target-sizes",
}


@dataclass(frozen=True)
class Option:
    """An option, and the parameter of solvers or estimators that it sets."""

    usage: str  # as help shows it, such as "-k --k N"
    kind: Callable
    help: str
    dest: str | None = None  # the parameter, where its name is another than the flag's
    action: str = "store"

    @property
    def flag(self):
        """The long name of the option."""
        return self.usage.split()[-2]

    @property
    def name(self):
        """The name of the parameter."""
        return self.dest or self.flag[2:].replace("-", "_")


def to_number(text):
    """Return the number that a text is; float() takes 3_000 and digits of other scripts, too."""
    if "_" in text or not text.strip().isascii():
        raise ValueError(f"{text!r} is no number")
    return float(text)


def is_whole(text):
    """Tell whether a text is a whole number without a sign."""
    return text.strip().isascii() and text.strip().isdecimal()


def to_amount(text):
    """Return the whole number that a text is, or another number, such as a share."""
    return int(text) if is_whole(text) else to_number(text)


def parser_of(expected, convert=None, words=()):
    """Return a function that reads a text as an option's value, and says what it ``expected``.

    ``words`` maps some texts to their values; without ``convert`` there are no others.
    """

    def parse(text):
        try:
            return words[text] if convert is None or text in words else convert(text)
        except (KeyError, ValueError, csv.Error):
            raise argparse.ArgumentTypeError(f"expected {expected}; got {text!r}") from None

    return parse


def _to_count(text):
    if not re.fullmatch(r"[+-]?\d+", text.strip(), re.ASCII):
        raise ValueError(f"{text!r} is no whole number")
    return int(text)


parse_count = parser_of("a whole number", _to_count)
parse_count_or_auto = parser_of("a whole number or auto", _to_count, {"auto": "auto"})
parse_number = parser_of("a number", to_number)
parse_amount = parser_of("a number", to_amount)  # a whole number, or a share
parse_rank = parser_of(
    "a number, a share of the points, auto or none", to_amount, {"auto": "auto", "none": None}
)


def parse_seed(text):
    """Return a seed as the solvers take it."""
    seed = parse_count(text)
    if seed < 0:
        raise argparse.ArgumentTypeError(f"a seed must not be negative; got {text}")
    return seed


DEFAULT_SEED = 0
SEED = Option(
    "--seed N",
    parse_seed,
    f"the same seed gives the same labels (default: {DEFAULT_SEED})",
    dest="random_state",
)
RUN_OPTIONS = (
    Option("--n-init N", parse_count, "starts, of which the best one wins"),
    SEED,
    Option("--n-jobs N", parse_count, "threads; -1: all"),
    Option(
        "--max-time SECONDS", parse_number, "seconds after which the best labels so far are taken"
    ),
)


def add_method(parser, group, methods, text, **default):
    """Add ``--method`` to a group of a parser; its value becomes ``args.solver``."""

    def parse_method(spelling):
        name = registry_name(spelling)
        if name in methods:
            return name
        if name in METHODS:
            advice = f"it has {', '.join(methods)}"
            raise argparse.ArgumentTypeError(f"{parser.prog} has no method {name}; {advice}")
        near = get_close_matches(name.lower(), methods, 1)
        advice = f"did you mean {near[0]}? " if near else ""
        raise argparse.ArgumentTypeError(
            f"there is no method {spelling!r}; {advice}fastmmc methods lists all"
        )

    some = "" if len(methods) == len(METHODS) else f"; one of {', '.join(methods)}"
    one = next(iter(methods))
    spellings = f"{one}, {one.upper().replace('-', '_')}, {one.upper().replace('-', '')}"
    group.add_argument(
        "--method",
        dest="solver",
        type=parse_method,
        choices=methods,
        metavar="METHOD",
        help=f"{text}{some}; in any spelling, as {spellings}",
        **default,
    )


def add_options(group, options):
    """Add options that are absent from the arguments unless they are given."""
    for option in options:
        *flags, metavar = option.usage.split()
        group.add_argument(
            *flags,
            dest=option.name,
            action=option.action,
            type=option.kind,
            default=argparse.SUPPRESS,
            metavar=metavar,
            help=option.help,
        )


def refuse_lacking(method, options, accepted):
    """Raise an error if an option is not among those that a method has."""
    for option in options:
        if option not in accepted:
            known = ", ".join(one.flag for one in accepted)
            raise ValueError(f"{method} has no {option.flag}; of these options it has {known}")


def given_options(args, options):
    """Return a dict of the options that were given and their values."""
    return {option: getattr(args, option.name) for option in options if hasattr(args, option.name)}


def tell(kind, text):
    """Write an "error", a "warning" or a "note" to standard error."""
    sys.stderr.write(f"fastmmc: {kind}: {text}\n")


@contextmanager
def said_when_long(text):
    """Say on a terminal what is being done, if it takes longer than people wait without a word."""
    timer = Timer(PATIENCE, tell, ("note", text))
    if sys.stderr.isatty():
        timer.daemon = True
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def describe(error):
    """Return an error's message in one line."""
    if isinstance(error, OSError) and error.filename is not None:
        error = f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split()) or type(error).__name__


def source_name(source):
    """Return what a source is called in messages."""
    return "standard input" if str(source) == STANDARD_INPUT else str(source)


def note(source, text):
    """Write a note on a source to standard error."""
    tell("note", f"{source_name(source)}: {text}")


def check_ending(path, endings, what, needed=False):
    """Raise an error if a file cannot have this name; pipes have no ending, unless ``needed``."""
    if path.name == STANDARD_INPUT and not needed:
        raise ValueError(f"{what} is -: without the option, labels go to standard output")
    if (needed or path.suffix) and path.suffix.lower() not in endings:
        one_of = "one of " if len(endings) > 1 else ""
        raise ValueError(f"{path}: {what} must end in {one_of}{', '.join(endings)}")


def add_labels_out(group):
    """Add ``--out``."""
    group.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help=f"write the labels to this file: {', '.join(TEXTS)} (text), .npy or {PARQUET}; "
        "without it, as text to standard output",
    )


def check_labels_out(path, *read):
    """Raise an error now if labels could not go to a file later, or it is one to be read."""
    check_output(path, (".npy", PARQUET, *TEXTS), "the name of --out", *read, needed=False)
    if path.suffix.lower() == PARQUET:
        import_pandas()


def write_labels(path, labels):
    """Write labels as the name of the file says, or as text to standard output."""
    ending = "" if path is None else path.suffix.lower()
    if ending == PARQUET:
        with replacing(path) as file:
            import_pandas().DataFrame({"label": labels}).to_parquet(file.name)
    elif ending == ".npy":
        with gathering(path) as file:
            np.save(file, labels)
    else:
        write_lines(path, (f"{label}\n" for label in ("label", *labels)), "ascii")


def write_lines(path, lines, encoding):
    """Write lines of text to a file in an encoding, or to standard output."""
    text = "".join(lines)
    if path is None:
        with naming(STANDARD_OUTPUT):
            if getattr(sys.stdout, "name", None) == os.devnull:  # it was closed
                raise OSError("it is closed; give --out")
            sys.stdout.write(text)
        return
    with gathering(path) as file:
        file.write(text.encode(encoding))


def import_pandas():
    """Return pandas, if it can read and write .parquet files."""
    if not (find_spec("pandas") and any(map(find_spec, ENGINES))):
        need = f"{PARQUET} files need pandas and pyarrow"
        raise not_installed(need, "pandas pyarrow", "; or use .csv or .npy")
    return importlib.import_module("pandas")


def check_output(path, endings, what, *read, needed=True):
    """Raise an error now if a file could not be written later under this name."""
    check_writable(path, *read)
    check_ending(path, endings, what, needed)


def check_writable(path, *read):
    """Raise an error now if a file could not be written later, or is one to be read."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder; give the name of a file")
    folder = target_of(path).parent
    if not folder.is_dir():
        raise ValueError(f"{path}: there is no folder {folder}; make it first")
    if path.exists() and not os.access(path, os.W_OK):
        raise ValueError(f"{path} cannot be written: permission denied")
    # The file is put into its place under another name.
    if is_replaced(path) and not os.access(folder, os.W_OK):
        raise ValueError(f"{path}: its folder cannot be written: permission denied")
    if path.exists() and any(os.path.exists(one or "") and path.samefile(one) for one in read):
        raise ValueError(f"{path} is a file to be read; give another name")


def solver_name(option, accepted):
    """Return what a solver calls an option's parameter: some have --search as ``search``."""
    return "search" if option.name == "method" and "search" in accepted else option.name


@dataclass(frozen=True)
class Run:
    """What a solver found, and how."""

    result: ClusteringResult
    seed: int | None  # what its random numbers came from; None of a method without any
    seconds_compiling: float

    def report(self):
        """Return what a report as JSON says of any run."""
        result = self.result
        return {
            "k": len(result.sizes),
            "sizes": result.sizes.tolist(),
            "objective": result.objective,
            "status": result.status.name,
            "seed": self.seed,
            "seconds": result.seconds,
            "seconds_compiling": self.seconds_compiling,
        }

    def rows(self):
        """Return the rows of any report, a dict of names and texts: those of the result first."""
        rows = self.result._rows() | {"status": STATUS_TEXT[self.result.status]}
        if self.seed is not None:
            rows["seed"] = str(self.seed)
        rows["time"] = f"{rows.pop('seconds')} s"
        if seconds := self.seconds_compiling:
            rows["time"] += f", {seconds:.3g} s of it to compile, the first time only"
        return rows


def run_solver(function, X, params, options):
    """Return the run of a solver; its errors name the options."""
    accepted = inspect.signature(function).parameters
    if SEED.name in accepted:
        params = {SEED.name: DEFAULT_SEED} | params
    text = "compiling, which takes some seconds the first time only"
    compilation = Compilation(lambda: sys.stderr.isatty() and tell("note", text))
    with naming_options(options, accepted), compilation.watching():
        result = _solve(function, X, params, accepted)
    return Run(result, params.get(SEED.name), compilation.seconds)


@contextmanager
def naming_options(options, accepted):
    """Name options in errors about the parameters that they set."""
    try:
        yield
    except ValueError as error:
        message = str(error)
        for advice, instead in NO_OPTION.items():
            message = message.replace(advice, instead)
        for option in options:
            name = solver_name(option, accepted)
            message = re.sub(
                rf"(?<![\w-]){name}(?= must | would | is | are |: )", option.flag, message
            )
            value = r"(?!None)(['\"]?)([\w.+-]*\w)\1"
            message = re.sub(rf"(?<![\w-]){name}={value}", rf"{option.flag} \2", message)
        raise ValueError(message) from error


def _solve(function, X, params, accepted):
    """Run the solver; on a terminal show how far it is."""
    is_terminal = sys.stderr.isatty()
    # A bar would be in the way of what passes over a large file show.
    has_bar = find_spec("rich") and not isinstance(X, LargeMap)
    if is_terminal and "verbose" in accepted and has_bar:
        return function(X, verbose=1, **params)
    if not is_terminal or "callback" not in accepted:
        return function(X, **params)
    try:
        return function(X, callback=lambda progress: show(f"{progress.fraction:4.0%}"), **params)
    finally:
        show("")


def show(text):
    """Show on a terminal how far a run is."""
    if sys.stderr.isatty():
        # The cursor goes back at once, so that whatever is printed next takes the line.
        print(f"{text:{WIDTH}}", end="\r", file=sys.stderr, flush=True)


def format_report(headline, rows):
    """Return a headline and a line for each row, a dict of names and texts."""
    width = max(9, *map(len, rows))
    return "\n".join([headline, *(f"{name:<{width}}  {text}" for name, text in rows.items())])


def print_report(report, headline, rows, as_json, file=None):
    """Print a report as JSON, or a headline and rows, names and texts, for people."""
    if as_json:
        with naming(STANDARD_OUTPUT):
            print(json.dumps(report, default=methodcaller("tolist")))
    else:
        print(format_report(headline, rows), file=file)
