"""Saved estimators of on-line learning: files of arrays and a JSON header, without pickles."""

from __future__ import annotations

import errno
import json
import os

import numpy as np

from fastmmc.competitive.online import check_share
from fastmmc.competitive.stream import Stream
from fastmmc.gram import KERNELS, Kernel
from fastmmc.models import Space

# Version of the files.
FORMAT = 3

KERNEL_FIELDS = ("name", "sigma", "gamma", "degree", "coef0")

# Kind of the numbers and axes of each array; axes of the same letter are equally long.
STREAM = {
    "centers": ("f", "kd"),
    "wins": ("f", "k"),
    "memory_ids": ("i", "m"),
    "memory": ("f", "md"),
    "memory_labels": ("i", "m"),
    "must": ("i", "p2"),
    "cannot": ("i", "q2"),
}
OTHERS = {"counts": ("i", "4"), "n_features_in": ("i", ""), "dtype": ("U", "")}
FEATURES = {"basis": ("f", "bn"), "to_Z": ("f", "bd")}
OPTIONAL = {"indices": ("i", "b"), "feature_names_in": ("U", "n")}

COUNTS = ("n_seen", "n_forgotten", "n_late", "n_conflicts")


def write_saved(path, estimator, stream, extra):
    """Write an estimator and its stream; the file appears whole or not at all."""
    space = stream.space
    arrays = {name: getattr(stream, name) for name in STREAM}
    arrays["counts"] = np.array([getattr(stream, name) for name in COUNTS], dtype=np.int64)
    arrays["n_features_in"] = np.int64(space.n_features)
    arrays["dtype"] = np.array(np.dtype(space.dtype).name)
    if space.has_features:
        arrays |= {"basis": space.basis, "to_Z": space.to_Z}
        if space.indices is not None:
            arrays["indices"] = space.indices
    if hasattr(estimator, "feature_names_in_"):
        arrays["feature_names_in"] = estimator.feature_names_in_.astype(str)
    params = estimator.get_params(deep=False)
    for name in ("init", "landmarks"):
        if not isinstance(params[name], str):
            arrays[f"param_{name}"] = np.asarray(params.pop(name))
    # A stream draws nothing any more; progress is for the process that made it.
    params |= {"random_state": None, "callback": None}
    arrays["header"] = np.array(_make_header(type(estimator).__name__, params, space.kernel, extra))
    if not path.parent.is_dir():
        text = f"there is no folder {path.parent}; make it first"
        raise FileNotFoundError(errno.ENOENT, text, str(path))
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a folder; give the name of a file", str(path))
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with unfinished.open("wb") as file:
            np.savez(file, **arrays)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _make_header(name, params, kernel, extra):
    """Return the JSON header of an estimator; ``params`` are its parameters without arrays."""
    header = {
        "format": FORMAT,
        "class": name,
        "params": params,
        "kernel": {name: getattr(kernel, name) for name in KERNEL_FIELDS},
        "extra": extra,
    }
    try:
        return json.dumps(header, default=lambda value: value.item())
    except (TypeError, AttributeError, ValueError) as error:
        raise TypeError(
            f"{name} has a parameter that a file of numbers cannot hold, such as a callable "
            "kernel, or extra is not JSON; pickle it instead"
        ) from error


def read_saved(path):
    """Return the arrays, unchecked, and the header, with at least ``format`` and ``class``.

    Any estimator's file is read; anything else raises ValueError.
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
            raise ValueError(f"{path} is no saved estimator: {_reason(error)}") from error
    return arrays, header


def _reason(error):
    """Return the message of an error, or its type if it has none."""
    if isinstance(error, KeyError):
        return f"it has no {error}"
    return str(error) or type(error).__name__


def restore(path, kind):
    """Return the saved estimator of the class ``kind``, with its stream.

    Raises ValueError if the file holds another estimator or is damaged.
    """
    arrays, header = read_saved(path)
    if header["format"] != FORMAT or header["class"] != kind.__name__:
        raise ValueError(
            f"{path} holds {header['class']} (format {header['format']}); "
            f"expected {kind.__name__} (format {FORMAT})"
        )
    try:
        _check_arrays(arrays)
        _check_values(arrays)
        params = dict(header["params"])
        for name in ("init", "landmarks"):
            if f"param_{name}" in arrays:
                params[name] = arrays[f"param_{name}"]
        check_share(params["min_share"], kind._solver.__name__, len(arrays["centers"]))
        model = kind(**params)
        model._stream = _make_stream(arrays, _check_kernel(header["kernel"], arrays))
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is damaged: {_reason(error)}") from error
    model.n_features_in_ = int(arrays["n_features_in"])
    if "feature_names_in" in arrays:
        model.feature_names_in_ = arrays["feature_names_in"].astype(object)
    model.extra_ = header.get("extra")
    return model


def _check_arrays(arrays):
    """Check names, kinds of numbers and shapes, and that all numbers are finite."""
    wanted = STREAM | OTHERS | (FEATURES if "basis" in arrays else {})
    wanted |= {name: what for name, what in OPTIONAL.items() if name in arrays}
    for name, (kind, axes) in wanted.items():
        array = arrays[name]
        if array.dtype.kind != kind or array.ndim != len(axes):
            raise ValueError(f"{name} has shape {array.shape} and type {array.dtype}")
        if kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"{name} has values that are not finite")
    (k, d), n = arrays["centers"].shape, int(arrays["n_features_in"])
    if min(k, d) < 1:
        raise ValueError(f"centers have shape {(k, d)}")
    if "basis" not in arrays and d != n:
        raise ValueError(f"centers have {d} columns, and the points {n}")
    lengths = {"n": n, "2": 2, "4": 4}
    for name, (_, axes) in wanted.items():
        shape = arrays[name].shape
        expected = tuple(map(lengths.setdefault, axes, shape))
        if shape != expected:
            raise ValueError(f"{name} has shape {shape}; expected {expected}")


def _check_values(arrays):
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


def _make_stream(arrays, kernel):
    """Return the stream of checked arrays."""
    of_points = int(arrays["n_features_in"]), np.dtype(str(arrays["dtype"]))
    features = (arrays.get(name) for name in ("basis", "to_Z", "indices"))
    counts = dict(zip(COUNTS, arrays["counts"].tolist(), strict=True))
    own = {name: arrays[name] for name in STREAM}
    return Stream(Space(*of_points, kernel, *features), **own, **counts)
