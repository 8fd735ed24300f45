"""Parquet files that memory may not hold: their numbers go into a memory map, by row groups.

With a state, a folder, a run that was killed goes on: the map and what each pass has found are kept
there, as :class:`Passes` does it.
"""

import hashlib
import json
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.preprocessing import StandardScaler

from fastmmc import __version__
from fastmmc.cli import common, sources, tables
from fastmmc.cli.columns import SameColumns, call_columns, drop_option
from fastmmc.cli.common import PARQUET
from fastmmc.cli.resumable import ANEW, check_same
from fastmmc.core.files import locked, remove_unfinished, replacing, temporary_folder
from fastmmc.core.memory import available_memory
from fastmmc.core.words import not_installed
from fastmmc.data.blocks import LargeMap
from fastmmc.data.coding import code_numbers
from fastmmc.data.columns import LARGEST, check_finite
from fastmmc.data.frames import Frame, Values
from fastmmc.data.passes import Passes, damaged, digest_of
from fastmmc.data.suspects import Look
from fastmmc.data.units import MOST_NUMBERS

# A file of more numbers than this is worked on in blocks: with pandas it would take over a GB.
LARGE_FILE = 2**25
# Rows that are read at a time, and bytes.
BATCH, BUFFER = 2**16, 2**20
# Copies of a file in memory where it is loaded as a whole: pandas', the points and a search's.
COPIES = 4
POINTS, HEADER = "points", "run.json"
IN_BLOCKS = ("cluster", "umc-rls", "fast-evo-mmc", "sammc", "cpmmc")
ABOUT = f"a {PARQUET} file of more than {LARGE_FILE:,} numbers is worked on in blocks"


def find_large(args, method):
    """Return the file to be clustered if it is a Parquet file for work in blocks, or None."""
    path = Path(args.source)
    may_be = path.suffix.lower() == PARQUET and method in IN_BLOCKS
    if may_be and path.is_file() and args.encoding is None and common.find_spec("pyarrow"):
        from pyarrow import ArrowException, parquet

        with suppress(ArrowException, OSError):  # pandas says what is wrong
            file = parquet.ParquetFile(path, buffer_size=BUFFER, pre_buffer=False)
            if file.metadata.num_rows * file.metadata.num_columns > LARGE_FILE:
                large = LargeFile(path, file, sources.asked_columns(args))
                if large.n * len(large.columns.numbers) > LARGE_FILE:
                    return large
    if args.state is not None:
        if not may_be:
            raise ValueError(
                f"--state is for a {PARQUET} file and the methods {', '.join(IN_BLOCKS)}; got "
                f"SOURCE {args.source} and {method}"
            )
        if not common.find_spec("pyarrow"):
            raise not_installed("--state needs pyarrow", "pyarrow")
        common.tell("note", f"{path} is read into memory; --state is not needed: {ABOUT}")
    return None


class LargeFile:
    """A Parquet file, and its columns of features."""

    def __init__(self, path, file, asked):
        self.path, self._file = path, file
        told = (file.schema_arrow.pandas_metadata or {}).get("index_columns", ())
        names = [name for name in file.schema_arrow.names if name not in told]
        with tables.errors_about(path):
            if len({*names}) < len(names):
                raise ValueError("several columns have one name; give them different ones")
            features, self._label = asked.choose(len(names), names)
        self._keeps_all = asked.are_listed
        self._all = names
        self.columns = SameColumns([names[i] for i in features], features, len(names))
        self.n, self._groups = 0, []
        for group in range(file.num_row_groups):
            if n := file.metadata.row_group(group).num_rows:
                self._groups.append((group, self.n))
                self.n += n

    def fits_memory(self):
        """Tell whether memory may hold the whole file and what is made of it."""
        free = available_memory()
        return free is None or COPIES * 8 * self.n * len(self._all) < free

    def check_columns(self):
        """Refuse columns that are no numbers, or of which the file says that cells are missing."""
        from pyarrow import types

        schema, metadata = self._file.schema_arrow, self._file.metadata
        for name in self.columns.names:
            kind = schema.field(name).type
            if not (types.is_integer(kind) or types.is_floating(kind)):
                raise self._wrong(name, f"holds {kind}", "columns must be numbers", "code it as")
        for group, _ in self._groups:
            for i in range(metadata.num_columns):
                column = metadata.row_group(group).column(i)
                found, name = column.statistics, column.path_in_schema
                if name in self.columns.names and found is not None and found.null_count:
                    rule = "no cell may be missing"
                    raise self._wrong(name, f"has {found.null_count} missing", rule, "fill in")

    def _wrong(self, name, found, rule, instead):
        at = self._all.index(name)
        drop = drop_option(call_columns([at], self._all))
        return ValueError(
            f"{self.path}: column {name!r} {found}; {ABOUT}, in which {rule}: {instead} numbers "
            f"first, or leave it out: {drop}"
        )

    @contextmanager
    def points(self, state, settings, scaled):
        """Yield the points, in a memory map; ``scaled`` is as for :func:`fit_coding`.

        A run that goes on from a state must have the same ``settings``, its options.
        """
        passes = Passes(state, common.show)
        if state is None:
            with temporary_folder() as folder:
                yield self._converted(folder, passes, scaled)
            return
        with locked(state):
            _begin(state, settings | {"SOURCE": digest_of(self.path)}, self.path)
            try:
                yield self._converted(state, passes, scaled)
            except KeyboardInterrupt:
                text = "interrupted before there was a result; the same command goes on from there"
                raise KeyboardInterrupt(text) from None

    def _converted(self, folder, passes, scaled):
        coding = self._coding(passes, scaled)
        sources.tell_unless_plain(self.path, coding, self.columns)
        used = [i for i, column in enumerate(coding.columns) if column.width]
        kinds = [self._file.schema_arrow.field(coding.columns[i].name).type for i in used]
        dtype = np.dtype(np.float32 if {str(kind) for kind in kinds} == {"float"} else np.float64)
        path = folder / POINTS
        path.touch()
        with open(path, "r+b") as file:
            passes.begin()
            for group, start in self._groups:
                passes.tell(start / self.n)
                write = partial(self._write, file, group, start, coding, dtype)
                passes.recall(f"write {group}", write, partial(_check_bytes, path))
        X = LargeMap(path, dtype, "r", shape=(self.n, len(used)))
        X.passes = passes
        y = None
        if self._label is not None:
            column = self._all[self._label]
            with tables.errors_about(self.path):
                y = sources.classes_of(self._file.read([column]).to_pandas()[column])
        return sources.Points(X, y, self.columns.of(coding), None, coding)

    def _coding(self, passes, scaled):
        """Return how the columns become points, by the figures of all rows."""
        passes.begin()
        means, scales, some, look = passes.recall("scan", partial(self._scan, passes))
        look = Look(*look)
        if callable(scaled) and (scaled := scaled(some)):
            common.note(
                self.path, "columns are scaled: their units differ, or clusters agree better"
            )
        names, keeps_all = self.columns.names, self._keeps_all
        for i in np.flatnonzero(np.abs(look.ends).max(axis=0) > LARGEST):
            if keeps_all or np.ptp(look.ends[:, i]) > 0:
                self._refuse_large(names[i])
        first = next(self._batches(*self._groups[0]))
        return code_numbers(names, first, means, scales, look, keeps_all=keeps_all, scaled=scaled)

    def _refuse_large(self, name):
        """Refuse a column that has too large a number, with its row."""
        with tables.errors_about(self.path):
            for group, start in self._groups:
                cells = self._file.read_row_group(group, [name])[0].to_numpy()
                check_finite(name, cells, LARGEST, start)

    def _scan(self, passes):
        """Return means and deviations of the columns, some rows, and the look at all."""
        d = len(self.columns.numbers)
        step = max(1, self.n * d // MOST_NUMBERS)
        scaler, look, some = StandardScaler(), Look.none(d), []
        for group, start in self._groups:
            passes.tell(start / self.n)
            for columns in self._batches(group, start):
                X = np.column_stack(columns).astype(np.float64, copy=False)
                with np.errstate(over="ignore", invalid="ignore"):
                    scaler.partial_fit(X)
                look = look.and_rows(X)
                some.append(X[-start % step :: step])
                start += len(X)
        return scaler.mean_, scaler.scale_, np.concatenate(some), look

    def _batches(self, group, start):
        """Yield the columns of some rows of a row group, which begins at row ``start``, checked."""
        names = self.columns.names
        for batch in self._file.iter_batches(BATCH, row_groups=[group], columns=names):
            columns = []
            for name in names:
                column = batch.column(batch.schema.get_field_index(name))
                numbers = column.to_numpy(zero_copy_only=False)
                bad = np.asarray(column.is_null()) | ~np.isfinite(numbers)
                if bad.any():
                    i = int(np.argmax(bad))
                    value = "infinite" if np.isinf(numbers[i]) else "missing"
                    found = f"is {value} in row {start + i} (from 0)"
                    raise self._wrong(name, found, "no cell may be missing", "fill in")
                columns.append(numbers)
            yield columns
            start += len(batch)

    def _write(self, file, group, start, coding, dtype):
        """Write the points of a row group to a file; return their first byte, end and digest."""
        digest, begin = hashlib.sha256(), start * coding.n_features * dtype.itemsize
        file.seek(begin)
        for columns in self._batches(group, start):
            frame = Frame(self.columns.names, [Values("numbers", cells) for cells in columns])
            rows = coding.code(frame)[0].astype(dtype, copy=False)
            digest.update(rows)
            file.write(rows)
        file.flush()
        return begin, file.tell(), digest.hexdigest()


def _check_bytes(path, found):
    """Refuse bytes of a file that have another digest, or are not there."""
    start, end, digest = found
    try:
        content = np.memmap(path, np.uint8, "r", start, (end - start,))
    except ValueError as error:
        raise damaged(path, "it is too short") from error
    if hashlib.sha256(content).hexdigest() != digest:
        raise damaged(path, f"bytes {start} to {end} are not what was written")


def _begin(state, settings, source):
    """Make the folder of a state, or check that it is one of the same run."""
    header = state / HEADER
    remove_unfinished(header)
    settings = {"fastmmc": __version__} | settings
    if not header.exists():
        state.mkdir(exist_ok=True)
        if any(not file.name.startswith(".") for file in state.iterdir()):
            raise ValueError(f"{state} holds other files than a state; {ANEW}")
        with replacing(header) as file:
            file.write(json.dumps(settings).encode())
        return
    try:
        saved = json.loads(header.read_bytes())
        digest = saved["SOURCE"]
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{header} is damaged: {error}; {ANEW}") from error
    if digest != settings["SOURCE"]:
        raise ValueError(f"{source} is not the file that {state} was begun with; {ANEW}")
    check_same(settings, saved, state)


def remove_state(X):
    """Remove the state, if there is one, of a run that has ended."""
    state = X.passes.folder
    if state is None:
        return
    # The entries first: they tell of the other files.
    for file in (*X.passes.files(), state / POINTS, state / HEADER):
        file.rmdir() if file.is_dir() else file.unlink(missing_ok=True)
    with suppress(OSError):  # somebody put something else there
        state.rmdir()
