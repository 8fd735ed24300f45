"""Files that hold what learns on line: arrays and a header, no pickles."""

from __future__ import annotations

import errno
import json
import os

import numpy as np

from fastmmc.competitive.online import check_share
from fastmmc.competitive.space import Space
from fastmmc.competitive.stream import Stream
from fastmmc.gram import KERNELS, Kernel
from fastmmc.nystroem import Features

# Version of the files.
FORMAT = 3

KERNEL_FIELDS = ("name", "sigma", "gamma", "degree", "coef0")

# Kinds of numbers and number of axes of the arrays that make up a stream.
ARRAYS = {
    "centers": ("f", 2),
    "wins": ("f", 1),
    "memory": ("f", 2),
    "memory_ids": ("i", 1),
    "memory_labels": ("i", 1),
    "must": ("i", 2),
    "cannot": ("i", 2),
    "counts": ("i", 1),
    "n_features_in": ("i", 0),
    "dtype": ("U", 0),
}
FEATURES = {"basis": ("f", 2), "to_Z": ("f", 2)}
OPTIONAL = {"indices": ("i", 1), "feature_names_in": ("U", 1)}


def write_saved(path, arrays, header):
    """Write arrays and a header; the file appears whole or not at all.

    Parameters
    ----------
    path : Path
        The file.
    arrays : dict
        Arrays by their names.
    header : str
        JSON.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    if not path.parent.is_dir():
        text = f"there is no folder {path.parent}; make it first"
        raise FileNotFoundError(errno.ENOENT, text, str(path))
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a folder; give the name of a file", str(path))
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with unfinished.open("wb") as file:
            np.savez(file, **arrays, header=np.array(header))
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def read_saved(path):
    """Return the arrays and the header of a saved estimator of any class.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    arrays : dict
        Arrays by their names; not checked.
    header : dict
        What is no array, at least ``format`` and ``class``.

    Raises
    ------
    ValueError
        If the file holds something else.
    OSError
        If there is no such file.
    """
    # Opened here, as NumPy leaves a broken file open.
    with open(path, "rb") as stream:
        try:
            with np.lib.npyio.NpzFile(stream, allow_pickle=False) as file:
                arrays = dict(file)
            header = json.loads(str(arrays["header"]))
            if not (isinstance(header, dict) and {"format", "class"} <= header.keys()):
                raise ValueError("its header names no class")
        except Exception as error:  # a damaged archive shows in a dozen kinds of errors
            raise ValueError(f"{path} is no saved estimator: {_told(error)}") from error
    return arrays, header


def _told(error):
    """Return what an error says."""
    if isinstance(error, KeyError):
        return f"it has no {error}"
    return str(error) or type(error).__name__


def stream_arrays(stream):
    """Return the arrays that make up a stream.

    Parameters
    ----------
    stream : Stream
        What has been learned.

    Returns
    -------
    dict
        Arrays by their names.
    """
    names = ("centers", "wins", "memory", "memory_ids", "memory_labels", "must", "cannot")
    arrays = {name: getattr(stream, name) for name in names}
    counts = stream.n_seen, stream.n_forgotten, stream.n_late, stream.n_conflicts
    arrays["counts"] = np.array(counts, dtype=np.int64)
    arrays["n_features_in"] = np.int64(stream.space.n_features)
    arrays["dtype"] = np.array(np.dtype(stream.space.dtype).name)
    features = stream.space.features
    if features is not None:
        arrays |= {"basis": features.basis, "to_Z": features.to_Z}
        if features.indices is not None:
            arrays["indices"] = features.indices
    return arrays


def restore(path, arrays, header, kind):
    """Return what a file holds, checked.

    Parameters
    ----------
    path : str or Path
        The file, for messages.
    arrays, header : dict
        From :func:`read_saved`.
    kind : type
        The estimator that is wanted.

    Returns
    -------
    estimator : object
        With its parameters.
    stream : Stream
        What it has learned.

    Raises
    ------
    ValueError
        If the file holds another estimator, or is damaged.
    """
    if header["format"] != FORMAT or header["class"] != kind.__name__:
        raise ValueError(
            f"{path} holds {header['class']} (format {header['format']}); "
            f"expected {kind.__name__} (format {FORMAT})"
        )
    try:
        _check_arrays(arrays)
        _check_shapes(arrays)
        _check_stream(arrays)
        params = dict(header["params"])
        for name in ("init", "landmarks"):
            if f"param_{name}" in arrays:
                params[name] = arrays[f"param_{name}"]
        check_share(params["min_share"], kind._solver.__name__, len(arrays["centers"]))
        return kind(**params), _stream_of(arrays, _check_kernel(header["kernel"], arrays))
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is damaged: {_told(error)}") from error


def _check_arrays(arrays):
    """Check names, kinds of numbers, axes, and that all numbers are finite."""
    wanted = ARRAYS | (FEATURES if "basis" in arrays else {})
    wanted |= {name: what for name, what in OPTIONAL.items() if name in arrays}
    for name, (kind, n_axes) in wanted.items():
        array = arrays[name]
        if array.dtype.kind != kind or array.ndim != n_axes:
            raise ValueError(f"{name} has shape {array.shape} and type {array.dtype}")
        if kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"{name} has values that are not finite")


def _check_shapes(arrays):
    """Check that the arrays fit each other."""
    k, d = arrays["centers"].shape
    n, (m,) = int(arrays["n_features_in"]), arrays["memory_ids"].shape
    shapes = {"wins": (k,), "memory": (m, d), "memory_labels": (m,), "counts": (4,)}
    shapes |= {name: (len(arrays[name]), 2) for name in ("must", "cannot")}
    if "basis" in arrays:
        b = arrays["basis"].shape[0]
        shapes |= {"basis": (b, n), "to_Z": (b, d), "indices": (b,)}
    elif d != n:
        raise ValueError(f"centers have {d} columns, and the points {n}")
    shapes["feature_names_in"] = (n,)
    if min(k, d) < 1:
        raise ValueError(f"centers have shape {(k, d)}")
    for name, shape in shapes.items():
        if name in arrays and arrays[name].shape != shape:
            raise ValueError(f"{name} has shape {arrays[name].shape}; expected {shape}")


def _check_stream(arrays):
    """Check that the numbers can be those of a stream."""
    n_seen, ids = int(arrays["counts"][0]), arrays["memory_ids"]
    fine = {
        "counts": (arrays["counts"] >= 0).all(),
        "wins": (arrays["wins"] >= 1).all(),
        "memory_ids": (np.diff(ids) > 0).all() and ((ids >= 0) & (ids < n_seen)).all(),
        "memory_labels": (arrays["memory_labels"] >= -1).all(),
        "dtype": str(arrays["dtype"]) in ("float32", "float64"),
    }
    for name in ("must", "cannot"):
        low, high = arrays[name].T
        fine[name] = ((low >= 0) & (low < high) & (high >= n_seen)).all()
    if "indices" in arrays:
        fine["indices"] = (arrays["indices"] >= 0).all()
    for name, is_fine in fine.items():
        if not is_fine:
            raise ValueError(f"{name} has values that cannot be")


def _check_kernel(given, arrays):
    """Return the kernel of the header."""
    if given["name"] == "precomputed" and arrays["indices"].max() >= arrays["n_features_in"]:
        raise ValueError("indices has values that cannot be")
    numbers = [given[name] for name in KERNEL_FIELDS[1:]]
    fine = given["name"] in KERNELS and len(given) == len(KERNEL_FIELDS)
    if not (fine and all(v is None or isinstance(v, int | float) for v in numbers)):
        raise ValueError(f"its kernel is {given}")
    return Kernel(**given)


def _stream_of(arrays, kernel):
    """Return the stream that checked arrays make up."""
    features = None
    if "basis" in arrays:
        to_Z = arrays["to_Z"]
        nothing = np.empty((0, to_Z.shape[1]))
        features = Features(nothing, to_Z, arrays["basis"], arrays.get("indices"))
    n_features = int(arrays["n_features_in"])
    space = Space(n_features, np.dtype(str(arrays["dtype"])), kernel, features)
    n_seen, n_forgotten, n_late, n_conflicts = arrays["counts"].tolist()
    names = ("centers", "wins", "memory", "memory_ids", "memory_labels", "must", "cannot")
    return Stream(
        space,
        n_seen=n_seen,
        n_forgotten=n_forgotten,
        n_late=n_late,
        n_conflicts=n_conflicts,
        **{name: arrays[name] for name in names},
    )


def make_header(estimator, params, kernel, extra):
    """Return the header of a saved estimator.

    Parameters
    ----------
    estimator : object
        What is saved.
    params : dict
        Its parameters, without arrays.
    kernel : Kernel
        With its widths.
    extra : object
        Whatever else belongs to it.

    Returns
    -------
    str
        JSON.

    Raises
    ------
    TypeError
        If something is not what JSON can hold.
    """
    header = {
        "format": FORMAT,
        "class": type(estimator).__name__,
        "params": params,
        "kernel": {name: getattr(kernel, name) for name in KERNEL_FIELDS},
        "extra": extra,
    }
    try:
        return json.dumps(header, default=lambda value: value.item())
    except (TypeError, AttributeError, ValueError) as error:
        raise TypeError(
            f"{type(estimator).__name__} has a parameter that a file of numbers cannot hold, such "
            "as a callable kernel, or extra is not JSON; pickle it instead"
        ) from error
