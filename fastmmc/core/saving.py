"""Results and estimators in files: arrays and a JSON header, without pickles.

A file is an .npz archive. Its array ``header`` is JSON text that names the format, the version of
the package and the class, and holds the content. There {"array": [name, dtype, shape]} stands for
an array of the archive, {"csr": parts} for a sparse one, and {"KernelModel": fields} for an object.
Only classes of the table :data:`CLASSES` are made: nothing is imported by name, and nothing in a
file is executed.
"""

import json
import math
import os
import types
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from enum import Enum, EnumMeta
from functools import cache
from pathlib import Path
from typing import Any, Union, dataclass_transform, get_args, get_origin, get_type_hints
from zipfile import ZIP_STORED, ZipFile

import numpy as np
from scipy.sparse import csr_array

from fastmmc._version import __version__
from fastmmc.core.files import replacing

# Version of the files.
FORMAT = 4

# What a file may hold, by name.
CLASSES: dict[str, type] = {}

# Kinds of numbers that arrays may hold, and dtypes that may stand for themselves.
KINDS = "biuf"
DTYPES = ("float32", "float64")

# Whole numbers that compiled loops can count on from, and those that are exact as floats.
LARGEST, MOST_EXACT = 2**62, 2**53


@dataclass_transform(eq_default=False, frozen_default=True, field_specifiers=(field,))
def stored(**arrays):
    """Let files hold a class: an enumeration, a dataclass, or what becomes a frozen one.

    ``arrays`` are the arrays among its fields, each told as "f8:kd": the type, or for "f" any
    floats, and the axes. Axes of the same letter are equally long, "|" is between axes that are
    possible, and "f8?" may be infinite or NaN. What else a field may hold follows from its
    annotation; a method ``_check_values`` may look at more.
    """

    def decorate(cls):
        if not issubclass(cls, Enum):
            if "__dataclass_fields__" not in vars(cls):
                cls = dataclass(frozen=True, eq=False, repr=False)(cls)
            cls._arrays = getattr(cls, "_arrays", {}) | arrays
        CLASSES[cls.__name__] = cls
        return cls

    return decorate


class Savable:
    """What can be written to a file."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file, which :func:`fastmmc.load` reads.

        The file appears whole or not at all, also if the process is killed.

        Parameters
        ----------
        path : str or Path
            An .npz file of arrays and a JSON header; no pickles are in it.

        Raises
        ------
        TypeError
            If there is something in it that a file of numbers cannot hold, as a callable kernel.
        OSError
            If the file cannot be written.
        """
        write(path, self)


def write(path, made, extra=None):
    """Write a result or estimator to a file, which appears whole or not at all."""
    name = type(made).__name__
    found = {}
    content = _encode(made, "", found)
    arrays = dict(found.values())
    try:
        _decode(content, arrays.__getitem__, "")
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"this {name} cannot be saved, as it could not be read again: {error}"
        ) from error
    header = {"format": FORMAT, "package": __version__, "class": name, "content": content}
    try:
        text = json.dumps(header | {"extra": extra}, default=lambda value: value.item())
    except (TypeError, AttributeError, ValueError) as error:
        raise TypeError(f"extra is not JSON: {error}") from error
    with replacing(path) as file:
        np.savez(file, header=np.array(text), **arrays)


def _encode(value, at, found):
    """Return what stands for a value in the header.

    ``at`` is the path to the value, which names it in messages and arrays in the file. Arrays are
    added to ``found``, by their ids: one that is in several places is there once.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | str):
        return value
    kind = type(value)
    if CLASSES.get(kind.__name__) is kind:
        return {kind.__name__: _encode_object(value, at, found)}
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"float": repr(float(value))}
    if isinstance(value, Mapping):
        return {"dict": _encode_items(value, at, found)}
    if isinstance(value, list | tuple):
        parts = [_encode(one, _inside(at, i), found) for i, one in enumerate(value)]
        return parts if isinstance(value, list) else {"tuple": parts}
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        if np.dtype(value).name in DTYPES:
            return {"dtype": np.dtype(value).name}
    elif isinstance(value, csr_array):
        parts = {"data": value.data, "indices": value.indices, "indptr": value.indptr}
        given = [_encode_array(part, _inside(at, name), found) for name, part in parts.items()]
        return {"csr": [*given, list(value.shape)]}
    elif hasattr(value, "__array__"):
        return _encode_array(np.asarray(value), at, found)
    what = "a callable" if callable(value) else f"of the type {kind.__name__}"
    raise TypeError(
        f"{at or 'this'} is {what}, which a file of numbers cannot hold; pickle it instead"
    )


def _encode_object(value, at, found):
    if isinstance(value, Enum):
        return value.name
    if hasattr(value, "_state"):
        state = value._state()
    else:
        state = {one.name: getattr(value, one.name) for one in fields(value)}
    return {name: _encode(part, _inside(at, name), found) for name, part in state.items()}


def _encode_items(value, at, found):
    pairs = []
    for i, (key, part) in enumerate(value.items()):
        if isinstance(key, np.generic):
            key = key.item()
        if type(key) not in (str, int):
            raise TypeError(f"{at} has the key {key!r}; a file holds text and integers as keys")
        name = key if isinstance(key, str) and key.isidentifier() else i
        pairs.append([key, _encode(part, _inside(at, name), found)])
    return pairs


def _encode_array(array, at, found):
    if array.dtype == object and array.ndim == 1 and all(isinstance(one, str) for one in array):
        return {"names": [str(one) for one in array]}
    if array.dtype.kind not in KINDS:
        raise TypeError(
            f"{at} is an array of type {array.dtype}, which a file of numbers cannot hold"
        )
    name, _ = found.setdefault(id(array), (at, array))
    return {"array": [name, array.dtype.str, list(array.shape)]}


def _inside(at, name):
    return f"{at}.{name}" if at else str(name)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a result or estimator that its method ``save`` has written.

    Everything is checked: kinds, shapes and types of arrays, lengths against each other, and that
    the numbers of a model are finite. Nothing in the file is executed, so that files of others can
    be read; what they hold may still be wrong on purpose.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    ClusteringResult or estimator
        What was saved, of the same class; it predicts the same.

    Raises
    ------
    ValueError
        If the file holds something else, is damaged, or is of a newer version of the package.
    OSError
        If there is no such file.

    Examples
    --------
    >>> import fastmmc, os, tempfile
    >>> X, y = fastmmc.datasets.load("moons")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "moons.npz")
    ...     fastmmc.umc_rls(X, 2, random_state=0).save(path)
    ...     fastmmc.load(path).sizes
    array([100, 100])
    """
    return read(path)


def read(path, expected=None):
    """Return what a file holds, of the class ``expected`` if one is given."""
    arrays, header = read_archive(path)
    name, version = header["class"], header["format"]
    if version > FORMAT:
        raise ValueError(
            f"{path} has format {version}, of fastmmc {header.get('package')}; fastmmc "
            f"{__version__} reads formats up to {FORMAT}: read it with that version or a later one"
        )
    if expected is not None and name != expected.__name__:
        raise ValueError(f"{path} holds {name}; expected {expected.__name__}")
    kind = CLASSES.get(name)
    if not hasattr(kind, "save"):
        raise ValueError(f"{path} holds {name}, which is no estimator or result of fastmmc")
    if version < FORMAT:
        raise ValueError(
            f"{path} has format {version}, which fastmmc {__version__} no longer reads; make it "
            "anew, or read it with the version that wrote it"
        )
    used = set()

    def array_of(name):
        used.add(name)
        return arrays[name]

    try:
        content = header["content"]
        if list(content) != [name]:
            raise ValueError(f"its content is no {name}")
        made = _decode(content, array_of, "")
        if unused := arrays.keys() - used:
            raise ValueError(f"nothing tells of the array {min(unused)}")
        if hasattr(kind, "_of_state"):
            made.extra_ = header.get("extra")
    except Exception as error:  # whatever a header makes of its content, it is the file's fault
        package = header.get("package", __version__)
        other = "" if package == __version__ else f", or needs fastmmc {package}, which wrote it"
        raise ValueError(f"{path} is damaged{other}: {_reason(error)}") from error
    return made


def read_archive(path):
    """Return the arrays of a file, and the header, with at least ``format`` and ``class``.

    Any saved file is read, and its content is not looked at; anything else raises ValueError.
    """
    with Path(path).open("rb") as file:
        try:
            arrays = _read_arrays(file)
            header = json.loads(str(arrays.pop("header")))
            if not (isinstance(header, dict) and isinstance(header.get("class"), str)):
                raise ValueError("its header names no class")
            if type(header.get("format")) is not int:
                raise ValueError("its header names no format")
        except Exception as error:  # a damaged archive shows in a dozen kinds of errors
            raise ValueError(f"{path} is no saved estimator or result: {_reason(error)}") from error
    return arrays, header


def _read_arrays(file):
    arrays = {}
    with ZipFile(file) as archive:
        for member in archive.infolist():
            name = member.filename.removesuffix(".npy")
            if name in arrays:
                raise ValueError(f"{name} is there twice")
            if member.compress_type != ZIP_STORED:
                raise ValueError(f"{name} is compressed")
            with archive.open(member) as entry:
                arrays[name] = _read_array(entry, name, member.file_size)
    return arrays


def _read_array(entry, name, size):
    """Return an array; its bytes are counted before memory is taken for them."""
    version = np.lib.format.read_magic(entry)
    if version != (1, 0):
        raise ValueError(f"{name} is in the version {version} of NumPy's format")
    shape, _, dtype = np.lib.format.read_array_header_1_0(entry)
    if dtype.kind not in KINDS + "U":
        raise ValueError(f"{name} has the type {dtype}")
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != size - entry.tell():
        raise ValueError(f"{name} has another size than shape {shape} and type {dtype} tell")
    entry.seek(0)
    return np.lib.format.read_array(entry, allow_pickle=False)


def _reason(error):
    """Return the message of an error, or its type if it has none."""
    if isinstance(error, KeyError):
        return f"it has no {error}"
    return str(error) or type(error).__name__


def _decode(node, array_of, at):
    """Return the value that a part of the header stands for, at a path in its content."""
    if node is None or isinstance(node, bool | int | float | str):
        return node
    if isinstance(node, list):
        return [_decode(one, array_of, _inside(at, i)) for i, one in enumerate(node)]
    if len(node) != 1:
        raise ValueError(f"{at} is of {len(node)} kinds")
    ((kind, content),) = node.items()
    if kind in CLASSES:
        return _decode_object(CLASSES[kind], content, array_of, at)
    if kind == "array":
        return _decode_array(*content, array_of)
    if kind == "csr":
        return _decode_csr(content, array_of, at)
    if kind == "dict":
        return {key: _decode(part, array_of, _inside(at, key)) for key, part in content}
    if kind == "tuple":
        return tuple(_decode(content, array_of, at))
    if kind == "names" and all(isinstance(one, str) for one in content):
        return np.array(content, dtype=object)
    if kind == "float" and content in ("nan", "inf", "-inf"):
        return float(content)
    if kind == "dtype" and content in DTYPES:
        return np.dtype(content)
    raise ValueError(f"{at} is {kind} {content}, which is unknown")


def _decode_array(name, dtype, shape, array_of):
    array = array_of(name)
    if array.dtype.kind not in KINDS:
        raise ValueError(f"{name} has shape {array.shape} and type {array.dtype}")
    if array.dtype.str != dtype or list(array.shape) != shape:
        raise ValueError(
            f"{name} has shape {array.shape} and type {array.dtype.str}; expected "
            f"{tuple(shape)} and {dtype}"
        )
    return array


def _decode_csr(content, array_of, at):
    """Return a sparse array; its indices are checked, which products with it do not do."""
    *parts, shape = content
    array = csr_array(tuple(_decode(part, array_of, at) for part in parts), shape=tuple(shape))
    array.check_format(full_check=True)
    return array


def _decode_object(kind, content, array_of, at):
    if isinstance(kind, EnumMeta):
        return kind[content]
    state = {name: _decode(part, array_of, _inside(at, name)) for name, part in content.items()}
    if hasattr(kind, "_of_state"):
        return kind._of_state(state)
    return make_checked(kind, state, at)


def make_checked(kind, state, at=""):
    """Return a dataclass of the table with these fields, which are checked."""
    known = {one.name: one for one in fields(kind)}
    if unknown := state.keys() - known.keys():
        raise ValueError(f"{kind.__name__} has no {min(unknown)}")
    for name, one in known.items():
        has_default = one.default is not MISSING or one.default_factory is not MISSING
        # Results gain fields, which have their defaults in earlier files. A model that lacks
        # something would predict otherwise.
        if name not in state and not (has_default and hasattr(kind, "save")):
            raise KeyError(_inside(at, name))
    for name, value in state.items():
        check_type(value, _hints(kind)[name], _inside(at, name))
    _check_arrays(state, getattr(kind, "_arrays", {}), at)
    made = kind(**state)
    if hasattr(made, "_check_values"):
        made._check_values()
    return made


_hints = cache(get_type_hints)


def check_type(value, hint, at):
    """Check that a value, which messages call ``at``, is of a type as annotations write it."""
    if _fits(value, hint):
        return
    if isinstance(value, np.ndarray | csr_array):
        raise ValueError(f"{at} is an array of shape {value.shape}")
    raise ValueError(f"{at} is {repr(value)[:40]} ({type(value).__name__})")


def _fits(value, hint):
    """Return whether a value is of a type, as annotations write it."""
    if hint is Any:
        return True
    origin, inner = get_origin(hint), get_args(hint)
    # Since NumPy 2.5 NDArray is an alias with a value, which is what arrays are instances of.
    origin = get_origin(getattr(origin, "__value__", None)) or origin
    if origin in (Union, types.UnionType):
        return any(_fits(value, one) for one in inner)
    if origin in (list, tuple):
        return isinstance(value, origin) and all(_fits(one, inner[0]) for one in value)
    if origin is dict:
        key, item = inner
        items = value.items() if isinstance(value, dict) else [(None, None)]
        return all(_fits(name, key) and _fits(one, item) for name, one in items)
    if hint is float:
        return type(value) is float or (type(value) is int and abs(value) <= MOST_EXACT)
    if hint is int:
        return type(value) is int and abs(value) <= LARGEST
    if hint is bool:
        return type(value) is bool
    return isinstance(value, origin or hint)


def _check_arrays(state, arrays, at):
    """Check types and shapes of arrays, and that what must be finite is."""
    lengths = {}
    for name, wanted in arrays.items():
        array = state.get(name)
        if not isinstance(array, np.ndarray | csr_array):
            continue
        dtype, _, axes = wanted.partition(":")
        where, shape = _inside(at, name), array.shape
        exact = dtype.removesuffix("?")
        axes = next((one for one in axes.split("|") if len(one) == array.ndim), None)
        is_typed = array.dtype.kind == exact if len(exact) == 1 else array.dtype == exact
        if not is_typed or axes is None:
            raise ValueError(f"{where} has shape {shape} and type {array.dtype}; expected {wanted}")
        numbers = array.data if isinstance(array, csr_array) else array
        if exact == dtype and exact[0] == "f" and not np.isfinite(numbers).all():
            raise ValueError(f"{where} has values that are not finite")
        expected = tuple(
            int(axis) if axis.isdigit() else lengths.setdefault(axis, length)
            for axis, length in zip(axes, shape, strict=True)
        )
        if shape != expected:
            raise ValueError(f"{where} has shape {shape}; expected {expected}")
