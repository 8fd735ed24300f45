"""What is read: tables, arrays and data sets as points, labels and names, and files of pairs."""

import re
import shlex
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fastmmc import datasets
from fastmmc.cli import common, tables
from fastmmc.cli.columns import Columns, SameColumns, drop_option, option_of
from fastmmc.cli.common import PARQUET, STANDARD_INPUT
from fastmmc.cli.tables import TABLES, errors_about
from fastmmc.core.words import counted, first_of
from fastmmc.data.cells import are_names, is_missing
from fastmmc.data.coding import Coding, as_frame, fit_coding, look_at_units, plain_coding
from fastmmc.data.columns import LARGEST, check_finite, unsure_example
from fastmmc.data.frames import Frame, read_frame
from fastmmc.data.links import find_conflicts

ARRAYS = (".npy", ".npz")
FILES = (*TABLES, PARQUET, *ARRAYS)
# Programs that write what compressed files hold to standard output.
PROGRAMS = {
    ".gz": "gzip -dc",
    ".bz2": "bzip2 -dc",
    ".xz": "xz -dc",
    ".zst": "zstd -dc",
    ".zip": "unzip -p",
}
OPENML = "openml:"

SOURCE_HELP = (
    "a .csv, .tsv, .parquet, .npy or .npz file (arrays X and, optionally, y), a data set's name, "
    f"{OPENML}NAME to ask OpenML for one that is not here, a named pipe, or - for a table on "
    "standard input"
)
ABOUT_TABLES = (
    "Cells of a table are separated by commas, semicolons, tabs or bars. Columns may hold numbers, "
    "dates or categories, and missing cells. Ids, texts that hardly repeat, columns without "
    "differences, and columns on the left without a name in the header, as the index of a frame "
    "that pandas wrote, are left out. A note says what is done with each column."
)
KINDS = {"must": "must", "ml": "must", "cannot": "cannot", "cl": "cannot"}  # of pairs
PAIRS_HELP = (
    "a table of pairs of rows, numbered from 0: rows i,j,kind with kind must or cannot (or ml, "
    "cl); without kind: cannot"
)


class Points(NamedTuple):
    """Points (n, d), true labels (n,) or None, the columns they are from, and how these were coded.

    ``table`` has these columns as they were read; ``coding`` is None where the points are the
    numbers of an array.
    """

    X: np.ndarray
    y: np.ndarray | None
    columns: SameColumns
    table: Frame | np.ndarray
    coding: Coding | None = None


def add_source(parser, group, columns):
    """Add SOURCE to a parser, and how it is read to a group of it."""
    parser.add_argument("source", metavar="SOURCE", help=SOURCE_HELP)
    common.add_options(group, columns)
    group.add_argument(
        "--encoding",
        type=tables.parse_encoding,
        metavar="NAME",
        help="encoding of a table, such as cp1250 (default: UTF-8, marked UTF-16, else cp1252)",
    )


def asked_columns(args):
    """Return the columns that the options ask for."""
    return Columns(*(getattr(args, name, None) for name in ("columns", "drop", "label_column")))


def read_points(source, asked, *, marks_missing=True, scaled=False, encoding=None, decimal=None):
    """Return the points of a source with the columns that were asked for, coded as numbers.

    Notes on standard error tell what was done with each column, unless all are numbers and none is
    missing. ``marks_missing`` has a column mark missing numbers; ``scaled`` is as for
    :func:`fit_coding`.
    """
    found, y, columns = _read(source, asked, encoding)
    is_table = isinstance(found, Frame)
    with errors_about(source):
        frame = found if is_table else _frame_of(found)
        keeps_all = asked.are_listed or not is_table
        options = {"marks_missing": marks_missing, "decimal": decimal}
        # What is asked of points is for the method to ask, unless they are coded.
        asks = is_table or not callable(scaled) or np.isnan(found).any()
        coding = fit_coding(frame, keeps_all=keeps_all, scaled=asks and scaled, **options)
        undecided = frame if decimal is None else None
        is_told = tell_unless_plain(source, coding, columns, undecided, compares=True)
        if not is_told and not (is_table or scaled is True):
            _check_points(found)
            return Points(found, y, columns, found)
        X, _, _ = coding.code(frame)
        look_at_units(coding, frame, warns=scaled is False)
    return Points(X, y, columns.of(coding), found, coding)


def _frame_of(X):
    """Return a matrix of numbers as columns, which are called by their numbers."""
    return as_frame(X)._replace(names=[str(j) for j in range(X.shape[1])])


def tell_unless_plain(source, coding, columns, frame=None, *, compares=False):
    """Tell what was done with the columns of a table, unless all are numbers; return if told.

    ``frame`` has the columns as they were read where it was not said what stands before decimals.
    The command ``compares`` clusters with labels, which a column of categories may be.
    """
    if all(column.said in ("numbers", "numbers, scaled") for column in coding.columns):
        return False
    for line in coding.lines():
        common.note(source, line)
    categories = [i for i, column in enumerate(coding.columns) if column.kind == "categories"]
    if categories:
        advice = f"to leave out categories: {drop_option(columns.calls(categories))}"
        if compares:
            label = option_of("--label-column", *columns.calls(categories[-1:]))
            advice += f"; to compare the clusters with a column of true classes: {label}"
        common.note(source, advice)
    undecided = () if frame is None else zip(coding.columns, frame.columns, strict=True)
    for column, values in undecided:
        if column.kind == "numbers" and unsure_example(values, column.mark):
            hint = option_of(tables.DECIMAL.flag, "," if column.mark == "." else ".")
            common.note(source, f"to read such numbers the other way: {hint}")
            break
    return True


def read_new_points(source, asked, coding, encoding=None):
    """Return new points with the columns of a model; ``coding`` is how these become numbers."""
    found, _, _ = _read(source, asked, encoding)
    with errors_about(source):
        frame = found if isinstance(found, Frame) else _frame_of(found)
        # The columns were found by their names, where they have any.
        known = plain_coding(frame.names) if coding is None else coding
        X, unknown, others = known.code(frame._replace(names=[]))
        if coding is None and unknown:
            raise ValueError(first_of(unknown, "; "))
        for line in (*unknown, *others):
            common.note(source, line)
        _check_points(X)
    return X


def _read(source, asked, encoding):
    """Return the columns of a table, or an array, true labels or None, and which columns it has."""
    path = Path(source)
    suffix = path.suffix.lower()
    is_known = source in datasets.BUNDLED + datasets.GENERATED
    may_be_known = path.name == source and not (path.suffix or path.exists())
    if source == STANDARD_INPUT or path.is_fifo() or (suffix in TABLES and not path.is_dir()):
        return tables.read_table(path, asked, encoding)
    if path.is_dir() and not is_known:
        raise ValueError(f"{source} is a folder; give a file")
    if encoding is not None:
        raise ValueError(f"--encoding is for tables of text; got SOURCE {source}")
    if suffix in PROGRAMS and path.exists():
        pipe = f"{PROGRAMS[suffix]} {shlex.quote(source)} | fastmmc ... -"
        raise ValueError(f"{source} is compressed; give - as SOURCE, as in {pipe}")
    if suffix == PARQUET:
        return _read_parquet(path, asked)
    if asked.label is not None:
        raise ValueError(f"--label-column is for tables; got SOURCE {source}")
    if suffix in ARRAYS:
        X, y = _read_arrays(path, suffix)
    elif is_known or may_be_known or source.startswith(OPENML):
        X, y = _load(source)
    else:
        raise ValueError(
            f"{source}: the name must end in {', '.join(FILES)}, or be one of the data sets "
            f"{', '.join(datasets.BUNDLED + datasets.GENERATED)}, or - for a table on standard "
            "input"
        )
    with errors_about(source):
        if X.ndim != 2 or 0 in X.shape or X.dtype.kind not in "iufb":
            text = f"expected a matrix of numbers; got shape {X.shape} and type {X.dtype}"
            raise ValueError(text)
        columns, _ = asked.choose(X.shape[1])
    same = SameColumns(None, columns, X.shape[1])
    return X if columns == list(range(X.shape[1])) else X[:, columns], y, same


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


def _check_points(X):
    """Say what is wrong with the points before a solver does so without the file's name."""
    bad = np.argwhere(~np.isfinite(X))
    if bad.size:
        i, j = bad[0]
        raise ValueError(
            f"row {i}, column {j} (from 0) is {X[i, j]}; fill in missing values or remove them"
        )
    for j, column in enumerate(X.T):
        check_finite(str(j), column, LARGEST)


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
        y = None if label is None else classes_of(frame.iloc[:, label])
    columns = read_frame(frame.iloc[:, features])
    return columns, y, SameColumns([names[i] for i in features], features, len(names))


def classes_of(labels):
    """Return the classes that a column of a data frame tells, as numbers."""
    pandas = common.import_pandas()
    try:
        y, names = pandas.factorize(labels, sort=True)
    except TypeError:  # lists and the like
        y, names = pandas.factorize(labels.map(str, na_action="ignore"), sort=True)
    # As in a column of features, a category of pandas may be called NA.
    texts = [] if isinstance(labels.dtype, pandas.CategoricalDtype) else names
    missing = [i for i, text in enumerate(texts) if isinstance(text, str) and is_missing(text)]
    rows = np.flatnonzero((y < 0) | np.isin(y, missing))
    if rows.size:
        i = rows[0]
        raise tables.missing_label(f"row {i} (from 0)", "" if y[i] < 0 else names[y[i]])
    return y


def read_constraints(path):
    """Return the must-links and the cannot-links of a file, (p, 2) and (q, 2) numbers of rows.

    Its rows are ``i,j,kind`` with the kinds must, ml, cannot and cl, or ``i,j`` for cannot; the
    first one may be a header.
    """
    found = {"must": [], "cannot": []}
    with errors_about(path):
        rows = ((line, row) for line, _, row in tables.read_text(path).rows() if row)
        for count, (line, row) in enumerate(rows):
            if count == 0:
                first_line, n_cells = line, len(row)
                if are_names(row):
                    continue
            if len(row) != n_cells:
                raise ValueError(
                    f"line {line} has {counted(len(row), 'cell')}; line {first_line} has {n_cells}"
                )
            kind, pair = _pair(line, row)
            found[kind].append((line, *pair))
        must, cannot = (np.array(rows, dtype=np.int64).reshape(-1, 3) for rows in found.values())
        conflicts = find_conflicts(must[:, 1:], cannot[:, 1:])
        if conflicts.size:
            line, i, j = cannot[conflicts[0]]
            raise ValueError(
                f"line {line} keeps rows {i} and {j} apart, but must-links join them; remove one "
                "of them"
            )
    return must[:, 1:], cannot[:, 1:]


def _pair(line, row):
    """Return the kind of a constraint and its two rows."""
    if len(row) not in (2, 3):
        raise ValueError(f"line {line}: expected i,j or i,j,kind; got {counted(len(row), 'cell')}")
    kind = KINDS.get(row[2].strip().lower()) if len(row) == 3 else "cannot"
    if kind is None:
        raise ValueError(f"line {line}: the kind must be one of {', '.join(KINDS)}; got {row[2]!r}")
    for cell in row[:2]:
        if not re.fullmatch(r"\d{1,18}", cell.strip(), re.ASCII):
            raise ValueError(
                f"line {line}: expected the number of a row, counted from 0; got {cell!r}"
            )
    i, j = map(int, row[:2])
    if i == j:
        raise ValueError(f"line {line} links row {i} to itself")
    return kind, (i, j)
