"""Every check of user input, in one place."""

import math
import numbers
import re
import sys
from contextlib import contextmanager, suppress
from functools import partial

import numpy as np
from scipy.sparse import coo_array, issparse
from sklearn.utils import check_array

from fastmmc.core.column_names import column_names
from fastmmc.core.display import OneLine
from fastmmc.core.words import named
from fastmmc.data.frames import is_frame, refuse_masked
from fastmmc.data.units import warn_of_units

# How far a precomputed Gram matrix may be from symmetric, relative to its largest entry.
SYMMETRY_TOLERANCE = {np.dtype(np.float64): 1e-8, np.dtype(np.float32): 1e-4}

# The largest count: fits the 64 bits of compiled loops and is exact as a float too.
MOST_COUNT = 2**53

# Starts of one call; the result lists each of them.
MOST_STARTS = 1_000_000

# Labellings, or children, that a search holds at once.
MOST_INDIVIDUALS = 10_000

# The largest weight, and the inverse of the least: squares of sums of weights stay in the range of
# doubles, also times values of the kernel and C.
MOST_WEIGHT = 1e100

# Rows and columns of the blocks in which a precomputed Gram matrix is checked.
GRAM_BLOCK = 128


def check_integer(name, value, *, least, most=MOST_COUNT, why=""):
    """Return ``value`` as an int within bounds; ``why`` explains the upper one in the message."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer; got {value!r} ({type(value).__name__})")
    value = int(value)
    if value < least:
        raise ValueError(f"{name} must be at least {least}; got {_brief(value)}")
    if value > most:
        raise ValueError(f"{name} must be at most {most}{why}; got {_brief(value)}")
    return value


def _brief(value):
    """Return a number as a message shows it: Python refuses to write thousands of digits."""
    return value if abs(value) <= 10**30 else f"an integer of {value.bit_length()} bits"


def check_cluster_count(k, n):
    """Return the number of clusters of n points as an int."""
    return check_integer("k", k, least=1, most=n, why=", the number of points")


def check_number(name, value):
    """Return ``value`` as a finite float."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a real number; got {value!r} ({type(value).__name__})")
    try:
        number = float(value)
    except OverflowError:
        raise ValueError(f"{name} must be finite; got a number beyond double precision") from None
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite; got {number}")
    return number


def check_choice(name, value, allowed, other=""):
    """Return ``value`` if it is one of the allowed names; messages add ``other`` to them."""
    if not isinstance(value, str) or value not in allowed:
        names = ", ".join(repr(a) for a in allowed)
        one_of = "one of " if len(allowed) > 1 else ""
        raise ValueError(f"{name} must be {one_of}{names}{other}; got {value!r}")
    return value


def check_dtype(name, value):
    """Return float32 or float64 for the hat matrix, or None for the dtype of the points."""
    if value is None:
        return None
    try:
        given = np.dtype(value)
    except TypeError:
        given = None
    if given not in (np.float32, np.float64):
        raise ValueError(f"{name} must be 'float32', 'float64' or None; got {value!r}")
    return given


def check_flag(name, value):
    """Return ``value`` if it is a bool."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False; got {value!r}")
    return bool(value)


@contextmanager
def naming(name):
    """Make the errors of a library's check name the parameter that was wrong."""
    try:
        yield
    except OverflowError:
        raise ValueError(
            f"{name} must be finite; got a number beyond double precision: scale it down"
        ) from None
    except (ValueError, TypeError) as error:
        if "inhomogeneous" in str(error):  # of NumPy
            raise ValueError(
                f"{name} must be an array; got rows of different lengths: give each as many values"
            ) from None
        if re.search(rf"\b{name}\b", str(error)):
            raise
        kind = ValueError if isinstance(error, ValueError) else TypeError
        raise kind(f"{name}: {error}") from error


def to_array(name, values):
    """Return the values of a parameter, none of them masked, as an array of whatever they hold."""
    refuse_masked(name, values)
    with naming(name):
        return np.asarray(values)


def is_dask(X):
    """Tell whether X is a Dask array; who made one has imported Dask."""
    array = sys.modules.get("dask.array")
    return array is not None and isinstance(X, array.Array)


def check_matrix(X, *, name="X", check=None, **options):
    """Return X as scikit-learn checks it, in C order; a sparse one is safe for compiled code.

    ``check`` replaces ``sklearn.utils.check_array`` and takes the options. Dask arrays, which NumPy
    would pull into memory whatever their size, are refused.
    """
    if is_dask(X):
        raise TypeError(
            f"{name} is a Dask array, whose blocks would all come into memory here: the functions "
            "cluster, factor, umc_rls, fast_evo_mmc, cpmmc and sammc, and predict of their "
            "results, work on the blocks, but do not standardise them; elsewhere give "
            f"{name}.compute()"
        )
    if isinstance(X, OneLine) and hasattr(X, "lam"):
        raise TypeError(
            f"{name} is a {type(X).__name__}, which umc_rls, evo_mmc and fast_evo_mmc take; give "
            "the points"
        )
    if hasattr(X, "to_dask_array"):
        raise TypeError(
            f"{name} is a Dask data frame, which would all come into memory here; give "
            f"{name}.to_dask_array(lengths=True), whose columns must be numbers"
        )
    refuse_masked(name, X)
    if isinstance(X, np.ndarray) and X.dtype.kind in "mM" and np.isnat(X).any():
        row = np.argwhere(np.isnat(X))[0, 0]
        raise ValueError(
            f"{name} holds NaT, a date that is missing, in row {row} (from 0): fill it in or "
            "remove the row; in a data frame it is filled in"
        )
    check = check or partial(check_array, input_name=name)
    with naming(name):
        try:
            return check(check_structure(X) if issparse(X) else X, order="C", **options)
        except ValueError as error:
            if "contains NaN" not in str(error):
                raise
            frames = "; where clusters are made of a data frame that has some, they are filled in"
            raise ValueError(
                f"Input {name} contains NaN: fill in missing values, as by "
                f"sklearn.impute.SimpleImputer, or remove them{'' if is_frame(X) else frames}"
            ) from error


def check_structure(X):
    """Return a sparse matrix in CSR with sorted indices and no duplicates, which are added up.

    Neither SciPy's products nor compiled loops check indices: one beyond the shape kills the
    process. Checking costs a fraction of a product with a vector. X is not modified, but its arrays
    may be shared.
    """
    if X.ndim != 2:
        raise ValueError(f"a sparse matrix must have two dimensions; got shape {X.shape}")
    try:
        if X.format == "coo":
            coo_array((X.data, X.coords), shape=X.shape)  # looks at the indices
        elif X.format in ("csc", "bsr"):
            _view_compressed(X)
        X = _view_compressed(X.tocsr())
    except ValueError as error:
        raise ValueError(f"the sparse matrix of shape {X.shape} is broken: {error}") from error
    fits = max(X.nnz, *X.shape) <= np.iinfo(np.int32).max
    if fits and not X.indices.dtype == X.indptr.dtype == np.int32:  # which scikit-learn needs
        indices, indptr = (part.astype(np.int32, copy=False) for part in (X.indices, X.indptr))
        X = type(X)((X.data, indices, indptr), shape=X.shape)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _view_compressed(X):
    """Return a checked compressed matrix that shares its arrays with X."""
    # A new object: the check may replace the arrays, and X may carry outdated flags.
    view = type(X)((X.data, X.indices, X.indptr), shape=X.shape)
    # SciPy takes differences, which wrap round, and skips the pointers where the last one is 0.
    if (view.indptr[1:] < view.indptr[:-1]).any():
        raise ValueError("the row pointers (indptr) of a sparse matrix must not fall")
    view.check_format(full_check=True)
    return view


def check_two_points(n):
    """Refuse fewer points than a method for two clusters needs."""
    if n < 2:
        raise ValueError("X must have at least 2 points, one for each cluster; got n_samples = 1")


def check_points(X, kernel, sparse=False):
    """Return X as a finite C-order float matrix, a sparse one as CSR; float32 stays float32.

    With a precomputed kernel X is the (n, n) Gram matrix, and must be symmetric. Points whose
    columns seem to have different units are warned of.
    """
    accepted = "csr" if sparse and kernel.name != "precomputed" else False
    points = check_matrix(X, dtype=[np.float64, np.float32], accept_sparse=accepted)
    if kernel.name == "precomputed":
        check_square(points, "kernel")
        check_symmetric(points, "kernel")
    elif kernel.name != "callable":  # which may scale the points itself
        warn_of_units(points, column_names(X))
    return points


def check_square(K, name, advice=""):
    """Refuse a matrix that is not (n, n), given for the precomputed ``name``."""
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"X must be a square matrix with {name}='precomputed'; got shape {K.shape}{advice}"
        )


def check_symmetric(K, name):
    """Refuse a square matrix that is not symmetric, block by block, as :func:`check_square`."""
    n, largest, worst = K.shape[0], max(K.max(), -K.min()), 0.0
    # Square blocks stay in the cache while they are read column by column.
    for i in range(0, n, GRAM_BLOCK):
        for j in range(i, n, GRAM_BLOCK):
            above = K[i : i + GRAM_BLOCK, j : j + GRAM_BLOCK]
            below = K[j : j + GRAM_BLOCK, i : i + GRAM_BLOCK]
            difference = above - below.T
            worst = max(worst, difference.max(), -difference.min())
    if worst > SYMMETRY_TOLERANCE[K.dtype] * largest:
        raise ValueError(
            f"X must be symmetric with {name}='precomputed'; entries differ from "
            f"their mirror images by up to {worst:.3g}"
        )


def check_new_points(X, kernel, n_features, dtype, *, name="X", what="features"):
    """Return the points that a model is to predict; with a precomputed kernel, kernel values.

    ``what`` is what messages call their columns.
    """
    sparse = "csr" if kernel.name != "precomputed" else False
    X = check_matrix(X, name=name, dtype=dtype, accept_sparse=sparse)
    if X.shape[1] != n_features:
        what = "kernel values to the training points" if kernel.name == "precomputed" else what
        raise ValueError(f"{name} has {X.shape[1]} {what}; the model was fitted with {n_features}")
    return X


def check_center_shape(init, k, n_columns):
    """Refuse given centers of another shape."""
    if init.shape != (k, n_columns):
        raise ValueError(
            f"init must have shape ({k}, {n_columns}), a row for each of the {k} clusters; "
            f"got {init.shape}"
        )


def check_sample_weight(sample_weight, n):
    """Return the weights as (n,) float64, none negative and some positive; None stays None."""
    if sample_weight is None:
        return None
    weights = to_array("sample_weight", sample_weight)
    if weights.dtype.kind == "O":  # numbers of pandas' own types, or of Python's
        with naming("sample_weight"), suppress(TypeError, ValueError):
            weights = weights.astype(np.float64)
    if weights.shape != (n,) or weights.dtype.kind not in "biuf":
        raise ValueError(
            f"sample_weight must be {n} numbers, one for each point; got an array of shape "
            f"{weights.shape} and type {weights.dtype}"
        )
    weights = weights.astype(np.float64)
    for wrong, what in ((~np.isfinite(weights), "finite"), (weights < 0, "at least 0")):
        if wrong.any():
            value = weights[np.flatnonzero(wrong)[0]]
            raise ValueError(f"sample_weight must be {what}; got {value} in {name_rows(wrong)}")
    if not weights.any():
        raise ValueError(
            f"every weight of sample_weight is zero, in all {n} rows; some point must count"
        )
    wrong = (weights > 0) & ((weights < 1.0 / MOST_WEIGHT) | (weights > MOST_WEIGHT))
    if wrong.any():
        raise ValueError(
            f"sample_weight must be 0, or from {1.0 / MOST_WEIGHT:g} to {MOST_WEIGHT:g}; got "
            f"{weights[np.flatnonzero(wrong)[0]]:g} in {name_rows(wrong)}: divide all by their mean"
        )
    return weights


def name_rows(mask):
    """Return the text of the rows where the mask is true."""
    return named("row", np.flatnonzero(mask).tolist())


def counting_points(weights):
    """Return the indices of the points with positive weight; None if all have one."""
    return None if weights is None or weights.all() else np.flatnonzero(weights)
