"""The command line: cluster a file or a stream, segment a picture, list the methods."""

from __future__ import annotations

import argparse
import inspect
import json
import os
import re
import struct
import sys
import time
import warnings
import zlib
from importlib.util import find_spec
from itertools import chain
from operator import methodcaller
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from fastmmc import __version__, datasets, plotting, stream_cli
from fastmmc.registry import METHODS, registry_name
from fastmmc.results import STATUS_TEXT
from fastmmc.segmentation import BALANCE, segment, settings_of
from fastmmc.stream_cli import (
    DELIMITERS,
    NOTHING_BELOW,
    STANDARD_INPUT,
    TEXTS,
    Layout,
    add_options,
    check_ending,
    check_writable,
    open_table,
    parse_seed,
    source_name,
    tell,
)

ARRAYS = (".npy", ".npz")
# How labels are written: by the ending of the file's name.
LABELS = (".npy", *TEXTS)


def _parse_rank(text):
    """Return a rank as the solvers take it."""
    if text in ("auto", "none"):
        return None if text == "none" else text
    try:
        return int(text) if text.isdecimal() else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"expected a number, a share of the points, auto or none; got {text!r}"
        ) from None


# Option, parameter of the solvers, type, what the help says.
OPTIONS = (
    ("--k", "k", int, "number of clusters; binary methods always make two"),
    ("--lam", "lam", float, "regularisation, greater than 0"),
    ("--sigma", "sigma", float, "width of the Gaussian kernel exp(-|x - z|^2 / sigma^2)"),
    (
        "--rank",
        "rank",
        _parse_rank,
        "landmarks of the low-rank form, or their share of the points; none: dense; "
        "auto: dense up to 10,000 points",
    ),
    (
        "--search",
        "method",
        str,
        "how umc-rls searches: shaking, steepest, stochastic, memetic; how sammc does: memetic, "
        "annealing; or by which method for two clusters recursive-mmc splits",
    ),
    ("--split", "split", str, "which cluster recursive-mmc splits next: largest, gain"),
    ("--n-init", "n_init", int, "starts, of which the best one wins"),
    ("--seed", "random_state", parse_seed, "the same seed gives the same labels"),
    ("--n-jobs", "n_jobs", int, "threads; -1: all"),
    ("--max-time", "max_time", float, "seconds after which the best labels so far are taken"),
)

# The same for a picture; `segment` takes the parameters but for the method's own.
SEGMENT_OPTIONS = (
    ("--k", "k", int, "number of segments"),
    (
        "--balance",
        "balance",
        float,
        f"how much two clusters may differ in size, as a share of both (default: {BALANCE})",
    ),
    ("--sigma", "sigma", float, "width of the Gaussian kernel, in units of 0..255 (default: 500)"),
    ("--rank", "rank", _parse_rank, "landmarks of the low-rank form (default: 200)"),
    (
        "--min-region",
        "min_region",
        int,
        "connected regions of fewer pixels are given to a neighbour (default: 0)",
    ),
    *(
        option
        for option in OPTIONS
        if option[1] in ("n_init", "random_state", "n_jobs", "max_time")
    ),
)
# What solvers advise and the command line has no option for, and what it says instead.
NO_OPTION = {
    ", force=True to go ahead": "",
    ", -1 for all, or None": ", or -1 for all",
    ", or None": "",
}
GAP = 8  # white pixels between two pictures side by side


def main(argv=None):
    """Run the command line.

    Parameters
    ----------
    argv : list of str, optional
        Arguments without the program's name; None: those of the process.

    Returns
    -------
    int
        Exit code: 0, or 1 if standard output was closed, 2 after an error (one line on
        standard error says which), 130 if the run was interrupted before it had a result, or a
        stream before its end.

    Examples
    --------
    >>> main(["cluster", "moons", "--k", "2", "--seed", "0"])  # doctest: +ELLIPSIS
    umc-rls on moons: 200 points, 2 features, 2 clusters
    sizes      100 100
    ...
    0
    """
    with warnings.catch_warnings():
        warnings.simplefilter("always", ConvergenceWarning)
        warnings.showwarning = _show_warning
        try:
            args = _make_parser().parse_args(argv)
            args.run(args)
            sys.stdout.flush()
        except BrokenPipeError:
            # Python flushes standard output once more at exit, which must not fail again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
        except (ValueError, OSError, ImportError, MemoryError) as error:
            tell("error", _describe(error))
            return 2
        except KeyboardInterrupt as stop:
            tell("error", str(stop) or "interrupted before there was a result")
            return 130
    return 0


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are reported like all others."""

    def error(self, message):
        raise ValueError(f"{message}; see {self.prog} --help")


def _make_parser():
    parser = _Parser(prog="fastmmc", description="Maximum-margin clustering.")
    parser.add_argument("--version", action="version", version=f"fastmmc {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    cluster = commands.add_parser("cluster", help="cluster a file or a data set")
    cluster.set_defaults(run=_cluster)
    cluster.add_argument(
        "source",
        metavar="SOURCE",
        help="a .csv, .tsv, .npy or .npz file (arrays X and, optionally, y), a data set's name, or "
        "- for a table on standard input; columns on the left of a table that have no name in the "
        "header, as the index of a frame that pandas wrote, are left out with a note",
    )
    cluster.add_argument(
        "--method",
        dest="solver",
        type=registry_name,
        choices=METHODS,
        default="umc-rls",
        help="default: umc-rls",
    )
    add_options(cluster, OPTIONS)
    cluster.add_argument(
        "--label-column",
        metavar="COL",
        help="column of a .csv or .tsv file with the true labels, by its name in the header or "
        "its index from 0; it is compared with the clusters and not used to find them",
    )
    cluster.add_argument(
        "--online", action="store_true", help="ask OpenML for a data set that is not here"
    )
    cluster.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help=f"write the labels to this file: {', '.join(TEXTS)} (text) or .npy",
    )
    cluster.add_argument("--plot", type=Path, metavar="PICTURE", help="draw the clusters")
    cluster.add_argument("--json", action="store_true", help="print one JSON object")

    picture = commands.add_parser("segment", help="cut a picture into segments")
    picture.set_defaults(run=_segment)
    picture.add_argument(
        "source",
        metavar="PICTURE",
        help="a file that Pillow reads; converted to RGB, with white behind what is transparent",
    )
    picture.add_argument(
        "--method",
        dest="solver",
        type=registry_name,
        choices=[name for name in METHODS if name != "recursive-mmc"],
        default="iter-svr",
        help="default: iter-svr",
    )
    add_options(picture, SEGMENT_OPTIONS)
    picture.add_argument(
        "--out", type=Path, metavar="PICTURE", help="write the segments in their mean colours"
    )
    picture.add_argument(
        "--side-by-side", action="store_true", help="put the original on the left of --out"
    )
    picture.add_argument("--json", action="store_true", help="print one JSON object")

    stream_cli.add_command(commands)

    methods = commands.add_parser("methods", help="list the methods")
    methods.set_defaults(run=_list_methods)
    return parser


def _list_methods(args):
    for method in METHODS.values():
        notes = ["two clusters"] * method.binary
        if method.extra is not None:
            notes.append(f"needs {', '.join(method.needs)}")
        print(method.name + (f" ({', '.join(notes)})" if notes else ""))
        print(f"    {method.summary}")
        print(f"    {method.paper}")


def _cluster(args):
    method = METHODS[args.solver]
    params = _solver_params(args, method)
    # All that can be refused is refused before the computation.
    for path in (args.out, args.plot):
        if path is not None:
            check_writable(path, args.source)
    if args.out is not None:
        check_ending(args.out, LABELS)
    if args.plot is not None:
        _check_picture_format(args.plot)
    X, y = _read_source(args.source, args.label_column, args.online)
    began = time.perf_counter()
    result = _run(method.function, X, params, OPTIONS)
    report = _report(args, X, y, result, time.perf_counter() - began)
    if args.out is not None:
        _write_labels(args.out, result.labels)
    if args.plot is not None:
        _save_picture(args.plot, result, X)
    if args.json:
        print(json.dumps(report, default=methodcaller("tolist")))
    else:
        _print_report(report, STATUS_TEXT[result.status])
        if hasattr(result, "tree"):
            print(result.tree)


def _solver_params(args, method):
    """Return the options that were given, as parameters of the solver."""
    accepted = inspect.signature(method.function).parameters
    names = [(option, _own_name(name, accepted), name) for option, name, _, _ in OPTIONS]
    given = {own: getattr(args, name) for _, own, name in names if hasattr(args, name)}
    if method.binary:
        k = given.pop("k", 2)
        if k != 2:
            raise ValueError(f"{method.name} always makes two clusters; got --k {k}")
    elif "k" not in given:
        raise ValueError(f"--k is missing: {method.name} must be told the number of clusters")
    if "method_params" in accepted:
        # What the method lacks is meant for the one that it calls.
        given["method_params"] = {n: given.pop(n) for n in [*given] if n not in accepted}
    for option, name, _ in names:
        if name in given and name not in accepted:
            known = ", ".join(o for o, own, _ in names if own in accepted)
            raise ValueError(f"{method.name} has no {option}; of these options it has {known}")
    return given


def _own_name(name, accepted):
    """Return what a solver calls the parameter of an option: some have --search as ``search``."""
    return "search" if name == "method" and "search" in accepted else name


def _write_labels(path, labels):
    """Write the labels, as text with a header or as an array."""
    if path.suffix.lower() != ".npy":
        np.savetxt(path, labels, fmt="%d", header="label", comments="")
        return
    with path.open("wb") as file:
        np.save(file, labels)


def _check_picture_format(path):
    plotting.import_pyplot()
    from matplotlib.figure import Figure

    known = Figure().canvas.get_supported_filetypes()
    if path.suffix[1:].lower() not in known:
        raise ValueError(f"{path}: a picture's name must end in one of .{', .'.join(known)}")


def _save_picture(path, result, X):
    # A Figure of its own draws without a window, whatever backend is set.
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    plotting.ClusterDisplay.from_result(result, X, ax=figure.subplots())
    figure.savefig(path, dpi=150)


def _segment(args):
    given = {name: getattr(args, name) for _, name, *_ in SEGMENT_OPTIONS if hasattr(args, name)}
    if "k" not in given:
        raise ValueError("--k is missing: segment must be told the number of segments")
    for option, name, *_ in SEGMENT_OPTIONS:
        if name in given and name not in settings_of(METHODS[args.solver]):
            raise ValueError(
                f"{args.solver} has no {option}; give another --method or leave it out"
            )
    if "balance" in given:
        given["method_params"] = {"balance": given.pop("balance")}
    if args.out is not None:
        check_writable(args.out, args.source)
        _check_image_format(args.out)
    elif args.side_by_side:
        raise ValueError("--side-by-side needs --out, the picture to write")
    image = _read_picture(args.source)
    began = time.perf_counter()
    result = _run(segment, image, {"method": args.solver, **given}, SEGMENT_OPTIONS)
    report = _segment_report(args, result, time.perf_counter() - began)
    if args.out is not None:
        _write_segments(args.out, result, image if args.side_by_side else None)
    if args.json:
        print(json.dumps(report, default=methodcaller("tolist")))
    else:
        _print_segments(report, STATUS_TEXT[result.status])


def _import_pillow():
    try:
        from PIL import Image, ImageOps
    except ImportError as error:
        raise ImportError("pictures need Pillow (python -m pip install pillow)") from error
    return Image, ImageOps


def _check_image_format(path):
    Image, _ = _import_pillow()
    known = sorted(end for end, name in Image.registered_extensions().items() if name in Image.SAVE)
    if path.suffix.lower() not in known:
        raise ValueError(f"{path}: a picture's name must end in one of {', '.join(known)}")


def _read_picture(source):
    """Return the first frame of a picture as it is shown, (H, W, 3) uint8."""
    Image, ImageOps = _import_pillow()
    if os.path.isdir(source):
        raise ValueError(f"{source} is a folder; give a file")
    # What is broken shows as one of many kinds of error, depending on the format.
    faults = (OSError, ValueError, SyntaxError, EOFError, struct.error, zlib.error)
    try:
        with Image.open(source) as file:
            return _to_rgb(Image, ImageOps.exif_transpose(file))
    except (*faults, Image.DecompressionBombError) as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise
        raise ValueError(f"{source} cannot be read as a picture: {error}") from error


def _to_rgb(Image, picture):
    """Return the pixels in 0..255, with white behind what is transparent."""
    if picture.mode == "F" or picture.mode.startswith("I"):
        values = np.asarray(picture)
        if picture.mode == "F" or values.min() < 0 or values.max() > 65535:
            raise ValueError("its pixels have 32 bits; convert them to 8 or 16 bits first")
        picture = Image.fromarray((values // 257).astype(np.uint8))
    if picture.has_transparency_data:
        picture = picture.convert("RGBA")
        behind = Image.new("RGBA", picture.size, "white")
        picture = Image.alpha_composite(behind, picture)
    return np.asarray(picture.convert("RGB"))


def _write_segments(path, result, original):
    """Write the segments in their mean colours, beside the original if there is one."""
    Image, _ = _import_pillow()
    picture = np.rint(result.paint()).astype(np.uint8)
    if original is not None:
        between = np.full((len(picture), GAP, 3), 255, dtype=np.uint8)
        picture = np.hstack([original, between, picture])
    Image.fromarray(picture).save(path)


def _segment_report(args, result, seconds):
    height, width = result.label_image.shape
    return {
        "method": args.solver,
        "source": args.source,
        "width": width,
        "height": height,
        "k": len(result.sizes),
        "sizes": result.sizes.tolist(),
        "colors": result.colors.tolist(),
        "objective": result.objective,
        "status": result.status.name,
        "seconds": seconds,
        "params": result.params,
    }


def _print_segments(report, status):
    print(
        f"{report['method']} on {report['source']}: {report['width']} x {report['height']} pixels, "
        f"{report['k']} segments"
    )
    print("sizes     ", *report["sizes"])
    print("colours   ", *("#" + bytes(map(round, c)).hex() for c in report["colors"]))
    print(f"objective  {report['objective']:.6g}")
    print(f"status     {status}")
    print(f"time       {report['seconds']:.3g} s")


def _run(function, X, params, options):
    """Run the solver; what it refuses is told by the names of the command line."""
    try:
        return _solve(function, X, params)
    except ValueError as error:
        message = str(error)
        for advice, instead in NO_OPTION.items():
            message = message.replace(advice, instead)
        accepted = inspect.signature(function).parameters
        for option, name, *_ in options:
            own = _own_name(name, accepted)
            message = re.sub(rf"(?<![\w-]){own}(?= must )", option, message)
        raise ValueError(message) from error


def _solve(function, X, params):
    """Run the solver; on a terminal show how far it is."""
    accepted = inspect.signature(function).parameters
    if not sys.stderr.isatty():
        return function(X, **params)
    if "verbose" in accepted and find_spec("rich"):
        return function(X, verbose=1, **params)
    if "callback" not in accepted:
        return function(X, **params)
    try:
        return function(X, callback=_show_percentage, **params)
    finally:
        print(end="    \r", file=sys.stderr, flush=True)


def _show_percentage(progress):
    # The cursor goes back at once, so that whatever is printed next takes the line.
    print(f"{progress.fraction:4.0%}", end="\r", file=sys.stderr, flush=True)


def _report(args, X, y, result, seconds):
    """Gather what is printed."""
    report = {
        "method": args.solver,
        "source": args.source,
        "n": X.shape[0],
        "d": X.shape[1],
        "k": len(result.sizes),
        "sizes": result.sizes.tolist(),
        "objective": result.objective,
        "status": result.status.name,
        "seconds": seconds,
        "ari": None,
        "nmi": None,
        "params": result.params,
    }
    if y is not None:
        report["ari"] = adjusted_rand_score(y, result.labels)
        report["nmi"] = normalized_mutual_info_score(y, result.labels, average_method="geometric")
    if hasattr(result, "loo_mse"):
        report["loo_mse"] = result.loo_mse
    return report


def _print_report(report, status):
    print(
        f"{report['method']} on {source_name(report['source'])}: {report['n']} points, "
        f"{report['d']} features, {report['k']} clusters"
    )
    print("sizes     ", *report["sizes"])
    print(f"objective  {report['objective']:.6g}")
    if report.get("loo_mse") is not None:
        print(f"loo_mse    {report['loo_mse']:.6g}")
    print(f"status     {status}")
    print(f"time       {report['seconds']:.3g} s")
    if report["ari"] is not None:
        print(f"ARI        {report['ari']:.4f}")
        print(f"NMI        {report['nmi']:.4f}")


def _read_source(source, label_column, online=False):
    """Return the points and, where they are known, the true labels."""
    path = Path(source)
    is_table = source == STANDARD_INPUT or path.suffix.lower() in DELIMITERS
    is_name = not (is_table or path.suffix or path.name != source or path.exists())
    is_name |= source in datasets.BUNDLED + datasets.GENERATED
    if label_column is not None and (is_name or path.suffix.lower() in ARRAYS):
        raise ValueError(f"--label-column is for tables; got SOURCE {source}")
    if is_name:
        X, y = _load(source, online)
    elif path.is_dir():
        raise ValueError(f"{source} is a folder; give a file")
    elif is_table:
        X, y = _read_table(path, DELIMITERS.get(path.suffix.lower()), label_column)
    elif path.suffix.lower() in ARRAYS:
        X, y = _read_arrays(path, path.suffix.lower())
    else:
        raise ValueError(
            f"{source}: the name must end in {', '.join((*DELIMITERS, *ARRAYS))}, or be one of "
            f"the data sets {', '.join(datasets.BUNDLED + datasets.GENERATED)}, or - for a table "
            "on standard input"
        )
    _check_points(source_name(source), X)
    return X, y


def _load(name, online):
    """Load a data set by name; what is missing is told by the options of the command line."""
    try:
        return datasets.load(name, online=online)
    except ValueError as error:
        folder = "data_home or in the folder FASTMMC_DATA names"
        message = str(error).replace(folder, folder.removeprefix("data_home or in "))
        raise ValueError(message.replace("online=True asks", "--online asks")) from error


def _check_points(source, X):
    """Name what is wrong with the points before a solver does so without the file's name."""
    if X.ndim != 2 or X.dtype.kind not in "iufb":
        raise ValueError(
            f"{source}: expected a matrix of numbers; got shape {X.shape} and type {X.dtype}"
        )
    bad = np.argwhere(~np.isfinite(X))
    if bad.size:
        i, j = bad[0]
        raise ValueError(
            f"{source}: row {i}, column {j} (from 0) is {X[i, j]}; fill in or remove missing values"
        )


def _read_arrays(path, suffix):
    """Read an .npy or .npz file."""
    if suffix == ".npz":
        return datasets.read_npz(path)
    try:
        with path.open("rb") as file:
            return np.lib.format.read_array(file, allow_pickle=False), None
    except ValueError as error:
        raise ValueError(f"{path} cannot be read as an .npy file: {error}") from error


def _read_table(path, delimiter, label_column):
    """Read a table row by row."""
    with open_table(path, delimiter) as rows:
        return _parse_rows(rows, label_column, source_name(path))


def _parse_rows(rows, label_column, name):
    first_line, first = next(rows, (0, None))
    if first is None:
        raise ValueError("the file is empty")
    layout = Layout.of(first_line, first, label_column)
    layout.tell_doubts(name)
    X, labels = [], []
    for line, row in rows if layout.has_header else chain([(first_line, first)], rows):
        X.append(layout.numbers(line, row))
        if layout.label is not None:
            labels.append(_label(line, row[layout.label]))
    if not X:
        raise ValueError(NOTHING_BELOW)
    y = None if layout.label is None else np.unique(labels, return_inverse=True)[1]
    return np.array(X), y


def _label(line, cell):
    if not cell.strip():
        raise ValueError(f"line {line}: the label is empty")
    return cell.strip()


def _describe(error):
    """Return an error's message in one line."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split()) or type(error).__name__


def _show_warning(message, category, filename, lineno, file=None, line=None):
    tell("warning", _describe(message))
