"""Small data sets: bundled, generated, or found in a folder."""

from __future__ import annotations

import os
from difflib import get_close_matches
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets as bundled

from fastmmc.core.docstrings import completed_by

Labels = NDArray[np.int64]

# Sets that scikit-learn ships, and sets that are generated.
BUNDLED = ("digits", "iris", "wine", "breast_cancer")
GENERATED = ("moons", "rings", "nine_gaussians")

# OpenML's names and versions of the sets that the papers use.
OPENML = {
    "ionosphere": ("ionosphere", 1),
    "letter": ("letter", 1),
    "satimage": ("satimage", 1),
    "usps": ("USPS", 2),
    "coil20": ("COIL-20", 1),
    "segment": ("segment", 1),
    "page_blocks": ("page-blocks", 1),
    "shuttle": ("shuttle", 1),
    "pima": ("diabetes", 1),
    "breast_cancer_wisconsin": ("breast-w", 1),
    "pendigits": ("pendigits", 1),
    "mnist": ("mnist_784", 1),
}


def load(
    name: str, data_home: str | os.PathLike[str] | None = None, *, online: bool = False
) -> tuple[np.ndarray, Labels | None]:
    """Load a data set by name.

    Looks first among the bundled and generated sets, then for ``<name>.npz`` in ``data_home`` or
    else in the folder that the environment variable FASTMMC_DATA names, and then, if asked to, at
    OpenML.

    Parameters
    ----------
    name : str
        "digits", "iris", "wine", "breast_cancer" (bundled with scikit-learn); "moons", "rings",
        "nine_gaussians" (generated, always the same); or the name of a file or an OpenML set.
    data_home : path_like, optional
        Folder with .npz files that hold X and, if there are labels, y; also scikit-learn's cache
        for OpenML.
    online : bool, default=False
        Ask OpenML for a set that is not found locally. The papers' sets, such as "letter" or
        "usps", come in the version that the papers used, all others in the active version.

    Returns
    -------
    X : (n, d) array
        Points, unscaled.
    y : (n,) int64 array or None
        Labels 0..k-1, or None if the set has none.

    Raises
    ------
    ValueError
        If no such set is found; the message suggests similar names.

    Examples
    --------
    >>> X, y = load("iris")
    >>> X.shape
    (150, 4)
    """
    if not isinstance(name, str):
        raise TypeError(f"name must be a string; got {name!r}")
    if name in BUNDLED:
        return getattr(bundled, f"load_{name}")(return_X_y=True)
    if name in GENERATED:
        return globals()[f"make_{name}"](random_state=0)
    folder = data_home or os.environ.get("FASTMMC_DATA")
    folder = Path(folder).expanduser() if folder else None
    if folder is not None and (folder / f"{name}.npz").is_file():
        return read_npz(folder / f"{name}.npz")
    unknown = _unknown(name, folder)
    if not online:
        raise ValueError(f"{unknown}; online=True asks OpenML for it")
    known, version = OPENML.get(name, (name, "active"))
    try:
        X, y = bundled.fetch_openml(
            known, version=version, data_home=data_home, return_X_y=True, as_frame=False
        )
    except Exception as error:  # no network, no such set, a broken download: one message
        reason = " ".join(str(error).split())
        raise ValueError(f"{unknown}, and OpenML did not give it ({reason})") from error
    return X, _number(y)


def read_npz(path: str | os.PathLike[str]) -> tuple[np.ndarray, Labels | None]:
    """Read X and y from an .npz file; y becomes 0..k-1 in the order of its sorted values.

    Parameters
    ----------
    path : path_like
        A file with an array ``X`` and, optionally, ``y``.

    Returns
    -------
    X : (n, d) array
        Points; integers become float64.
    y : (n,) int64 array or None
        Labels.

    Raises
    ------
    ValueError
        If the file is not an .npz file, has no array X, or a y of another length.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "pairs.npz")
    ...     np.savez(path, X=np.eye(3), y=["a", "b", "a"])
    ...     X, y = read_npz(path)
    >>> X.shape, y
    ((3, 3), array([0, 1, 0]))
    """
    # Opened here because NumPy leaves a broken file open.
    with open(path, "rb") as stream:
        try:
            with np.lib.npyio.NpzFile(stream, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files if name in ("X", "y")}
                found = ", ".join(file.files)
            if raw := [name for name, array in arrays.items() if isinstance(array, bytes)]:
                raise ValueError(f"{raw[0]} is no array")
            y = _number(arrays.get("y"))
        except Exception as error:  # a damaged archive shows in a dozen kinds of errors
            raise ValueError(f"{path} cannot be read as an .npz file: {error}") from error
    if "X" not in arrays:
        raise ValueError(f"{path}: expected an array named X; found {found}")
    X = arrays["X"]
    if y is not None and arrays["y"].shape != X.shape[:1]:
        raise ValueError(f"{path}: y must have shape {X.shape[:1]}; got {arrays['y'].shape}")
    if X.dtype.kind in "iub":
        X = X.astype(np.float64)
    return X, y


def make_moons(
    n: int = 200, *, noise: float = 0.05, random_state: int | None = None
) -> tuple[np.ndarray, Labels]:
    """Make two interleaving half circles.

    Parameters
    ----------
    n : int, default=200
        Points.
    noise : float, default=0.05
        Standard deviation of the Gaussian noise.
    random_state : int or None, default=None
        Seed.

    Returns
    -------
    X : (n, 2) array
        Points.
    y : (n,) int64 array
        The shape that each point belongs to, from 0.

    Examples
    --------
    >>> X, y = make_moons(10, random_state=0)
    >>> X.shape
    (10, 2)
    """
    return bundled.make_moons(n, noise=noise, random_state=random_state)


@completed_by(make_moons)
def make_rings(
    n: int = 400, *, noise: float = 0.05, random_state: int | None = None
) -> tuple[np.ndarray, Labels]:
    """Make two concentric circles, of radius 1 and 0.4.

    Parameters
    ----------
    n : int, default=400
        Points.

    Examples
    --------
    >>> X, y = make_rings(10, random_state=0)
    >>> X.shape
    (10, 2)
    """
    return bundled.make_circles(n, noise=noise, factor=0.4, random_state=random_state)


@completed_by(make_moons)
def make_nine_gaussians(
    n: int = 900, *, spread: float = 0.35, random_state: int | None = None
) -> tuple[np.ndarray, Labels]:
    """Make nine partly overlapping Gaussians on a 3 x 3 grid of unit spacing.

    Replaces the 9Gauss set of Covoes et al. (2013), which was never published as a file.

    Parameters
    ----------
    n : int, default=900
        Points, divided as equally as possible among the nine.
    spread : float, default=0.35
        Standard deviation of each.

    Examples
    --------
    >>> X, y = make_nine_gaussians(random_state=0)
    >>> X.shape, len(set(y.tolist()))
    ((900, 2), 9)
    """
    rng = np.random.default_rng(random_state)
    y = np.arange(n) * 9 // n
    centres = np.column_stack([y % 3, y // 3])
    X = centres + spread * rng.standard_normal((n, 2))
    order = rng.permutation(n)
    return X[order], y[order]


def _unknown(name, folder):
    """Return the message for an unknown name, with names like it."""
    names = dict.fromkeys([*BUNDLED, *GENERATED, *OPENML])
    if folder is not None:
        names |= dict.fromkeys(file.stem for file in folder.glob("*.npz"))
    near = [] if name in names else get_close_matches(name, names)
    meant = f" (did you mean {' or '.join(near)}?)" if near else ""
    return (
        f"no data set {name!r}{meant}: it is not "
        f"one of {', '.join(BUNDLED + GENERATED)}, and there is no {name}.npz in data_home or in "
        "the folder FASTMMC_DATA names"
    )


def _number(y):
    """Return labels as 0..k-1 in the order of their sorted values; None stays None."""
    return None if y is None else np.unique(y, return_inverse=True)[1].astype(np.int64)
