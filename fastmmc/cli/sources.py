"""What is clustered: tables, arrays and data sets, read into points, labels and names."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fastmmc import datasets
from fastmmc.cli import common, tables
from fastmmc.cli.common import PARQUET, STANDARD_INPUT
from fastmmc.cli.tables import TABLES, Columns, SameColumns, errors_about

ARRAYS = (".npy", ".npz")
FILES = (*TABLES, PARQUET, *ARRAYS)
OPENML = "openml:"

SOURCE_HELP = (
    "a .csv, .tsv, .parquet, .npy or .npz file (arrays X and, optionally, y), a data set's name, "
    f"{OPENML}NAME to ask OpenML for one that is not here, a named pipe, or - for a table on "
    "standard input; commas, semicolons or tabs part the cells; columns on the left of a table "
    "that have no name in the header, as the index of a frame that pandas wrote, and a first "
    "column named id or index that counts the rows are left out with a note, and so are columns of "
    "text"
)


class Points(NamedTuple):
    """Points (n, d), true labels (n,) or None, and the columns they are from."""

    X: np.ndarray
    y: np.ndarray | None
    columns: SameColumns


def add_source(parser):
    """Add SOURCE and the choice of its columns to a parser."""
    parser.add_argument("source", metavar="SOURCE", help=SOURCE_HELP)
    common.add_options(parser, tables.COLUMNS)


def asked_columns(args, label=None):
    """Return the columns that the options ask for."""
    names = ("columns", "drop", "fill_missing")
    features, left_out, fills = (getattr(args, name, None) for name in names)
    return Columns(features, left_out, label, bool(fills))


def read_points(source, asked):
    """Return the points of a source with the columns that were asked for."""
    points = _read(source, asked)
    if asked.fills:
        points = _fill(common.source_name(source), points, getattr(asked, "medians", None))
    _check_points(common.source_name(source), points.X)
    names, numbers, _, medians = points.columns
    if asked.are_listed or not tables.counts_rows(points.X, names):
        return points
    common.tell(
        "note",
        f"{common.source_name(source)}: column {names[0]!r} counts the rows and was left out; name "
        "it in --columns to use it as a feature",
    )
    rest = {"names": names[1:], "numbers": numbers[1:], "medians": medians and medians[1:]}
    return Points(points.X[:, 1:], points.y, points.columns._replace(**rest))


def _fill(source, points, medians=None):
    """Put medians in place of missing numbers: those of a model, or of the points themselves."""
    X, y, columns = points
    if X.ndim != 2 or X.dtype.kind != "f":
        return points  # no place for NaN
    gaps = np.isnan(X)
    if medians is None:
        empty = np.flatnonzero(gaps.all(axis=0))
        if empty.size:
            number = columns.numbers[empty[0]]
            raise ValueError(
                f"{source}: column {number} (from 0) has no number; leave it out by --drop {number}"
            )
        medians = np.nanmedian(X, axis=0).tolist()
    if gaps.any():
        which = "is missing and became the median of its column"
        if gaps.sum() > 1:
            which = "are missing and became the medians of their columns"
        common.tell("note", f"{source}: {gaps.sum()} of {X.size} cells {which}")
    return Points(np.where(gaps, medians, X), y, columns._replace(medians=medians))


def _read(source, asked):
    path = Path(source)
    suffix = path.suffix.lower()
    is_known = source in datasets.BUNDLED + datasets.GENERATED
    if source == STANDARD_INPUT or path.is_fifo() or (suffix in TABLES and not path.is_dir()):
        X, y, layout = tables.read_table(path, asked)
        return Points(X, y, SameColumns(layout.names, layout.columns, len(layout.first)))
    if path.is_dir() and not is_known:
        raise ValueError(f"{source} is a folder; give a file")
    if suffix == PARQUET:
        return _read_parquet(path, asked)
    if asked.label is not None:
        raise ValueError(f"--label-column is for tables; got SOURCE {source}")
    if suffix in ARRAYS:
        X, y = _read_arrays(path, suffix)
    elif is_known or source.startswith(OPENML) or _may_be_name(path, source):
        X, y = _load(source)
    else:
        raise ValueError(
            f"{source}: the name must end in {', '.join(FILES)}, or be one of the data sets "
            f"{', '.join(datasets.BUNDLED + datasets.GENERATED)}, or - for a table on standard "
            "input"
        )
    if X.ndim != 2 or X.shape[1] == 0:
        return Points(X, y, SameColumns(None, [], 0))
    with errors_about(source):
        columns, _ = asked.choose(X.shape[1])
    same = SameColumns(None, columns, X.shape[1])
    return Points(X if columns == list(range(X.shape[1])) else X[:, columns], y, same)


def _may_be_name(path, source):
    """Tell whether a source may be the name of a data set rather than of a file."""
    return path.name == source and not (path.suffix or path.exists())


def _load(source):
    """Load a data set by name; what is missing is told in the words of the command line."""
    name = source.removeprefix(OPENML)
    if not name:
        raise ValueError(f"{source} names no data set; give {OPENML}NAME")
    try:
        with warnings.catch_warnings():
            # The error says it, if there is one.
            warnings.filterwarnings("ignore", "A network error occurred")
            return datasets.load(name, online=source.startswith(OPENML))
    except ValueError as error:
        folder = "data_home or in the folder FASTMMC_DATA names"
        message = str(error).replace(folder, folder.removeprefix("data_home or in "))
        raise ValueError(message.replace("online=True asks", f"{OPENML}{name} asks")) from error


def _check_points(source, X):
    """Name what is wrong with the points before a solver does so without the file's name."""
    if X.ndim != 2 or 0 in X.shape or X.dtype.kind not in "iufb":
        raise ValueError(
            f"{source}: expected a matrix of numbers; got shape {X.shape} and type {X.dtype}"
        )
    bad = np.argwhere(~np.isfinite(X))
    if bad.size:
        i, j = bad[0]
        raise ValueError(
            f"{source}: row {i}, column {j} (from 0) is {X[i, j]}; fill in missing values (fastmmc "
            "cluster --fill-missing does) or remove them"
        )


def _read_arrays(path, suffix):
    """Read an .npy or .npz file."""
    if suffix == ".npz":
        return datasets.read_npz(path)
    with path.open("rb") as file:
        try:
            return np.lib.format.read_array(file, allow_pickle=False), None
        except Exception as error:  # a damaged header shows in several kinds of errors
            text = f"{path} cannot be read as an .npy file: {error}"
            raise ValueError(text) from error


def _read_parquet(path, asked):
    pandas = common.import_pandas()
    with path.open("rb") as file:
        try:
            frame = pandas.read_parquet(file)
        except Exception as error:  # of the engine's own kind
            raise ValueError(f"{path} cannot be read as a {PARQUET} file: {error}") from error
    names = [str(name) for name in frame.columns]
    with errors_about(path):
        if frame.empty:
            raise ValueError(f"there are no cells; got shape {frame.shape}")
        features, label = asked.choose(len(names), names)
        numeric = [i for i in features if pandas.api.types.is_numeric_dtype(frame.dtypes.iloc[i])]
        if numeric and not asked.are_listed:
            tables.tell_of_texts(path, [repr(names[i]) for i in features if i not in numeric])
            features = numeric
        for i in features:
            if i not in numeric:
                raise ValueError(
                    f"column {names[i]!r} has type {frame.dtypes.iloc[i]}, not numbers; leave it "
                    "out by --drop, or name a column of labels by --label-column"
                )
        y = None if label is None else pandas.factorize(frame.iloc[:, label], sort=True)[0]
        if y is not None and y.min() < 0:
            raise ValueError(f"row {np.argmin(y)} (from 0): the label is empty")
    X = frame.iloc[:, features].to_numpy(np.float64, na_value=np.nan)
    return Points(X, y, SameColumns([names[i] for i in features], features, len(names)))
