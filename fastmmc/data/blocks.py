"""Points in blocks of rows that never come together: a Dask array, or a large memory map.

A method writes its work once, as tasks on blocks. Of a Dask array they run where the blocks are, by
whatever scheduler Dask has been given; of a memory map here, one block in memory for each thread.
Blocks have as many rows, and sums are added in the same order, wherever they run: the results
depend on the rows and their order alone.
"""

import math
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from functools import partial, reduce
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from joblib import hash as joblib_hash
from scipy.sparse import issparse

from fastmmc.core import validation
from fastmmc.core.execution import one_call
from fastmmc.core.files import temporary_folder
from fastmmc.core.threads import one_blas_thread
from fastmmc.data.passes import Passes, check_files, digest_of
from fastmmc.kernels.gram import BLOCK, Kernel

# A memory map of more numbers than this is worked on in blocks; a smaller one is an array.
LARGE_MAP = 2**27

# Numbers in a block, about, and the most blocks: a scheduler takes about a millisecond for each.
BLOCK_NUMBERS = 2**22
MOST_BLOCKS = 4096

# Partial sums that are added up at a time, and tasks whose sum, or results, a state may hold.
FAN_IN = 16
GROUP = FAN_IN**2


class LargeMap(np.memmap):
    """A memory map that is worked on in blocks whatever its size, by :class:`Passes` of its own."""

    passes = Passes()


def in_blocks(X):
    """Tell whether X is to be worked on in blocks."""
    is_large = isinstance(X, np.memmap) and (isinstance(X, LargeMap) or X.size > LARGE_MAP)
    return validation.is_dask(X) or (is_large and X.ndim == 2)


def split_rows(n, width):
    """Return where blocks of n rows begin and end; they depend on n and the columns held alone."""
    rows = 2 ** int(math.log2(max(BLOCK, BLOCK_NUMBERS // width)))
    rows = max(rows, -(-n // MOST_BLOCKS))
    return [*range(0, n, rows), n]


def check_shape(X):
    """Return the shape of what is in blocks, if it is a matrix of numbers and known to its end."""
    if X.ndim != 2:
        raise ValueError(f"X must be a matrix; got an array of shape {X.shape}")
    if X.dtype.kind not in "biuf":
        raise TypeError(f"X must hold real numbers; got dtype {X.dtype}")
    if issparse(getattr(X, "_meta", None)):
        raise TypeError("X has sparse blocks, which cannot be worked on; give dense ones")
    if any(math.isnan(length) for length in X.shape):
        raise ValueError("X has blocks of unknown length; call X.compute_chunk_sizes() first")
    if 0 in X.shape:
        raise ValueError(f"X must have at least one point and one feature; got shape {X.shape}")
    return X.shape


def make_blocks(X, width=1, n_jobs=None):
    """Return the blocks of X for work that holds up to ``width`` columns of a row at a time."""
    n, d = check_shape(X)
    bounds = split_rows(n, max(d, width))
    return _DaskBlocks(X, bounds) if validation.is_dask(X) else _MapBlocks(X, bounds, n_jobs)


def map_rows(function, X, width=None, dtype=np.int64):
    """Return ``function(rows)`` of all rows, (n,) or (n, width): of a Dask array as another one.

    What is not in blocks is given to the function as it is. Of blocks only the first one warns.
    """
    if not in_blocks(X):
        return function(X)
    if not validation.is_dask(X):
        bounds = enumerate(pairwise(split_rows(*X.shape)))
        pieces = [_of_block(function, i, np.asarray(X[slice(*ends)])) for i, ends in bounds]
        return np.concatenate(pieces)
    X = X.rechunk({1: -1})
    nothing = np.empty((0,) if width is None else (0, width), dtype)
    call = partial(_of_rows, function, nothing)
    if width is None:
        return X.map_blocks(call, dtype=dtype, drop_axis=1, meta=np.empty(0, dtype))
    chunks = (X.chunks[0], (width,))
    return X.map_blocks(call, dtype=dtype, chunks=chunks, meta=np.empty((0, 0), dtype))


def _of_block(function, i, rows):
    """Call a function of the rows of block i, as part of the call that warned if i is not 0."""
    with one_call() if i else nullcontext():
        return function(rows)


def _of_rows(function, nothing, rows, block_id=None):
    """Call a function of rows in a worker; blocks of a selection may have none."""
    return alone(_of_block, function, block_id[0], rows) if len(rows) else nothing


def alone(function, *args):
    """Call a function in a worker, whose threads would compete with those of BLAS."""
    with one_blas_thread():
        return function(*args)


def _add(*parts):
    """Add tuples of arrays and numbers entry by entry, the first ones first."""
    return tuple(reduce(np.add, column) for column in zip(*parts, strict=True))


def _add_all(parts, add):
    """Add parts in a tree that depends on their number alone."""
    while len(parts) > 1:
        parts = [add(*parts[at : at + FAN_IN]) for at in range(0, len(parts), FAN_IN)]
    return parts[0]


def check_block(block, d, dtype, rows=None):
    """Return the points of a block, or of some of its rows, as a finite matrix in C order."""
    block = block if rows is None else np.asarray(block)[rows]
    return validation.check_new_points(block, Kernel("linear"), d, dtype)


def _of_points(block, shared):
    function, value, *kind = shared
    return function(check_block(block, *kind), value)


class Blocks:
    """Points in blocks, and tasks on them; ``rows`` has one task a block, which gives its points.

    Subclasses add ``task(function, *args)``, a call whose arguments may be tasks, and ``share``, an
    argument for many tasks. These ``keep`` runs, and keeps the arrays that they return; ``fetch``
    returns what they do, and ``total`` the sum of it, tuples of arrays and numbers. ``join`` makes
    one int64 array of the blocks' parts, and ``deal`` makes of an array one as ``join`` would.
    """

    def __init__(self, X, bounds):
        self.X = X
        self.shape = X.shape
        self.dtype = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)
        self.bounds = bounds

    def __len__(self):
        return len(self.bounds) - 1

    def map(self, function, value):
        """Return tasks, one a block, for ``function(points, value)`` of its checked points."""
        shared = self.share((function, value, self.shape[1], self.dtype))
        return [self.task(_of_points, rows, shared) for rows in self.rows]

    def take(self, indices):
        """Return some rows, whose indices rise, in memory."""
        ends = np.searchsorted(indices, self.bounds)
        chosen = [
            self.task(check_block, rows, self.shape[1], self.dtype, indices[a:b] - start)
            for rows, start, (a, b) in zip(self.rows, self.bounds, pairwise(ends), strict=False)
            if a < b
        ]
        return np.concatenate(self.fetch(chosen))

    def everything(self):
        """Return all rows in memory."""
        return self.take(np.arange(self.shape[0]))


class _Task(NamedTuple):
    """A call that is to be made."""

    function: Any
    args: tuple

    def run(self):
        return self.function(*(arg.run() if isinstance(arg, _Task) else arg for arg in self.args))


class _MapBlocks(Blocks):
    def __init__(self, X, bounds, n_jobs):
        super().__init__(X, bounds)
        self._n_threads = max(1, min(effective_n_jobs(n_jobs), len(self)))
        self._passes = X.passes if isinstance(X, LargeMap) else Passes()
        self.rows = [_Task(X.__getitem__, (slice(*at),)) for at in pairwise(bounds)]

    def task(self, function, *args):
        return _Task(function, args)

    def share(self, value):
        return value

    def keep(self, tasks):
        """Run tasks that return arrays, and keep these: in files, as memory may not hold them."""
        folder = _Folder(self._passes.subfolder())
        files = [folder.path / f"{at}.npy" for at in range(len(tasks))]
        is_state = self._passes.folder is not None
        saved = [_Task(_save, (*pair, is_state)) for pair in zip(files, tasks, strict=True)]
        self._run(saved, list, partial(check_files, folder.path))
        return [_Task(_load, (file, folder)) for file in files]

    def fetch(self, tasks):
        return [one for found in self._run(tasks, list) for one in found]

    def total(self, tasks):
        return _add_all(self._run(tasks, partial(_add_all, add=_add)), _add)

    def _run(self, tasks, gather, check=None):
        """Return what groups of tasks return, gathered; a run that goes on knows the first ones."""
        found, passes = [], self._passes
        passes.begin()
        pool = ThreadPoolExecutor(self._n_threads)
        try:
            with one_blas_thread():
                for at in range(0, len(tasks), GROUP):
                    passes.tell(at / len(tasks))
                    group = tasks[at : at + GROUP]
                    make = partial(_run_group, pool, group, gather)
                    key = None
                    if passes.folder is not None:  # it tells tasks of one pass from those of others
                        key = joblib_hash([_content(task) for task in group])
                    found.append(passes.recall(key, make, check))
        finally:
            pool.shutdown(cancel_futures=True)
        return found

    def deal(self, labels):
        return labels

    def join(self, tasks):
        return np.concatenate(self.fetch(tasks)).astype(np.int64, copy=False)


def _run_group(pool, tasks, gather):
    return gather(list(pool.map(_Task.run, tasks)))


def _content(task):
    """Return what a task is, without the files that it reads or writes: they follow from others."""
    given = [arg for arg in task.args if not isinstance(arg, Path | _Folder)]
    return task.function.__qualname__, [_content(a) if isinstance(a, _Task) else a for a in given]


class _Folder:
    """A folder that is removed when no task needs it any more, unless it is a state's."""

    def __init__(self, path=None):
        if path is None:
            stack = ExitStack()
            path = stack.enter_context(temporary_folder())
            weakref.finalize(self, stack.close)
        path.mkdir(exist_ok=True)
        self.path = path


def _save(file, array, with_digest):
    """Save an array; return the name of the file, and its digest where one is asked for."""
    np.save(file, array)
    return file.name, digest_of(file) if with_digest else None


def _load(file, folder):
    return np.load(file, mmap_mode="r")


class _DaskBlocks(Blocks):
    def __init__(self, X, bounds):
        import dask

        super().__init__(X, bounds)
        self._dask = dask
        self._chunks = X.chunks[0]
        sizes = tuple(b - a for a, b in pairwise(bounds))
        self.rows = list(X.rechunk((sizes, (X.shape[1],))).to_delayed().ravel())

    def task(self, function, *args):
        return self._dask.delayed(alone, pure=False)(function, *args)

    def share(self, value):
        """Return an argument for many tasks, which is sent once."""
        return self._dask.delayed(value, traverse=False)

    def keep(self, tasks):
        """Run tasks and keep what they return where they ran; what is lost is made again."""
        return list(self._dask.persist(*tasks))

    def fetch(self, tasks):
        return list(self._dask.compute(*tasks))

    def total(self, tasks):
        """Return the sum of what tasks return, tuples of arrays and numbers; the workers add."""
        (total,) = self.fetch([_add_all(tasks, partial(self.task, _add))])
        return total

    def deal(self, labels):
        from dask import array

        return array.from_array(labels, chunks=(self._chunks,))

    def join(self, tasks):
        """Return the int64 array that the blocks' parts make up, kept where they were made."""
        from dask import array

        sizes = [b - a for a, b in pairwise(self.bounds)]
        parts = [
            array.from_delayed(task, (size,), dtype=np.int64)
            for task, size in zip(tasks, sizes, strict=True)
        ]
        return array.concatenate(parts).rechunk((self._chunks,)).persist()
