"""Every check of user input, in one place."""

from __future__ import annotations

import math
import numbers
import re
from contextlib import contextmanager
from functools import partial

import numpy as np
from scipy.sparse import coo_array, issparse
from sklearn.utils import check_array

from fastmmc.gram import KERNELS, Kernel

# How far a precomputed Gram matrix may be from symmetric, relative to its largest entry.
SYMMETRY_TOLERANCE = {np.dtype(np.float64): 1e-8, np.dtype(np.float32): 1e-4}

# No count is larger: compiled loops count in 64 bits, and this many are exact as a float too.
MOST_COUNT = 2**53

# Starts of one call, each of which has a place in the result.
MOST_STARTS = 1_000_000

# Labellings, or children, that a search holds at a time.
MOST_INDIVIDUALS = 10_000

# Rows and columns of the blocks in which a precomputed Gram matrix is checked.
GRAM_BLOCK = 128


def check_integer(name, value, *, least, most=MOST_COUNT, why=""):
    """Return ``value`` as an int within bounds.

    Parameters
    ----------
    name : str
        The parameter's name.
    value : object
        What the user gave.
    least : int
        Least value allowed.
    most : int, default=MOST_COUNT
        Largest value allowed.
    why : str
        What the upper bound is, for the message.

    Returns
    -------
    int
        The value.

    Raises
    ------
    TypeError
        If it is not an integer.
    ValueError
        If it is out of range.

    Examples
    --------
    >>> check_integer("k", 3, least=1)
    3
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer; got {value!r} ({type(value).__name__})")
    value = int(value)
    if value < least:
        raise ValueError(f"{name} must be at least {least}; got {_brief(value)}")
    if value > most:
        raise ValueError(f"{name} must be at most {most}{why}; got {_brief(value)}")
    return value


def _brief(value):
    """Return a number for a message: Python refuses to write thousands of digits."""
    return value if abs(value) <= 10**30 else f"an integer of {value.bit_length()} bits"


def check_starts(n_init):
    """Return the number of starts of a call.

    Parameters
    ----------
    n_init : object
        What the user gave.

    Returns
    -------
    int
        The number.

    Raises
    ------
    TypeError, ValueError
        If it is not an integer from 1 to a million.

    Examples
    --------
    >>> check_starts(10)
    10
    """
    return check_integer("n_init", n_init, least=1, most=MOST_STARTS)


def check_number(name, value):
    """Return ``value`` as a finite float.

    Parameters
    ----------
    name : str
        The parameter's name.
    value : object
        What the user gave.

    Returns
    -------
    float
        The value.

    Raises
    ------
    TypeError
        If it is not a real number.
    ValueError
        If it is NaN or infinite.

    Examples
    --------
    >>> check_number("coef0", 1)
    1.0
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a real number; got {value!r} ({type(value).__name__})")
    try:
        number = float(value)
    except OverflowError:
        raise ValueError(f"{name} must be finite; got a number beyond double precision") from None
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite; got {number}")
    return number


def check_positive(name, value):
    """Return ``value`` as a finite float above zero.

    Parameters
    ----------
    name : str
        The parameter's name.
    value : object
        What the user gave.

    Returns
    -------
    float
        The value.

    Raises
    ------
    TypeError
        If it is not a real number.
    ValueError
        If it is not above zero.

    Examples
    --------
    >>> check_positive("lam", 2**-6)
    0.015625
    """
    value = check_number(name, value)
    if value <= 0:
        raise ValueError(f"{name} must be greater than 0; got {value}")
    return value


def check_choice(name, value, allowed, other=""):
    """Return ``value`` if it is one of the allowed names.

    Parameters
    ----------
    name : str
        The parameter's name.
    value : object
        What the user gave.
    allowed : sequence of str
        The names.
    other : str
        What is allowed beside them, for the message.

    Returns
    -------
    str
        The value.

    Raises
    ------
    ValueError
        If it is none of them.

    Examples
    --------
    >>> check_choice("method", "shaking", ("shaking", "steepest"))
    'shaking'
    """
    if not isinstance(value, str) or value not in allowed:
        names = ", ".join(repr(a) for a in allowed)
        one_of = "one of " if len(allowed) > 1 else ""
        raise ValueError(f"{name} must be {one_of}{names}{other}; got {value!r}")
    return value


def check_dtype(dtype):
    """Return the type of the hat matrix's entries, or None for that of the points.

    Parameters
    ----------
    dtype : None, str, type or numpy.dtype
        What the user gave.

    Returns
    -------
    numpy.dtype or None
        float32 or float64.

    Raises
    ------
    ValueError
        If it is neither.

    Examples
    --------
    >>> check_dtype("float32")
    dtype('float32')
    """
    if dtype is None:
        return None
    try:
        given = np.dtype(dtype)
    except TypeError:
        given = None
    if given not in (np.float32, np.float64):
        raise ValueError(f"dtype must be 'float32', 'float64' or None; got {dtype!r}")
    return given


def check_flag(name, value):
    """Return ``value`` if it is a bool.

    Parameters
    ----------
    name : str
        The parameter's name.
    value : object
        What the user gave.

    Returns
    -------
    bool
        The value.

    Raises
    ------
    TypeError
        If it is not a bool.

    Examples
    --------
    >>> check_flag("polish", True)
    True
    """
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False; got {value!r}")
    return bool(value)


def check_kernel(kernel, sigma, gamma, degree, coef0, kernel_params):
    """Check the kernel parameters; widths left open stay None.

    Parameters
    ----------
    kernel : str or callable
        Name or function.
    sigma, gamma : float or None
        Width.
    degree : int
        Degree of the polynomial kernel.
    coef0 : float
        Constant of the linear and polynomial kernels.
    kernel_params : dict or None
        Keyword arguments of a callable kernel.

    Returns
    -------
    Kernel
        Widths that were not given are None.

    Raises
    ------
    TypeError, ValueError
        If a parameter is out of range or sigma and gamma are both given.

    Examples
    --------
    >>> check_kernel("rbf", 2.0, None, 3, 1.0, None).sigma
    2.0
    """
    function = None
    if callable(kernel):
        function, kernel = kernel, "callable"
    elif not isinstance(kernel, str) or kernel not in KERNELS:
        names = ", ".join(repr(name) for name in KERNELS)
        raise ValueError(f"kernel must be one of {names} or a callable; got {kernel!r}")
    if sigma is not None and gamma is not None:
        raise ValueError(
            "give sigma or gamma, not both (gamma = 1/sigma^2); "
            f"got sigma={sigma!r} and gamma={gamma!r}"
        )
    sigma = None if sigma is None else check_positive("sigma", sigma)
    gamma = None if gamma is None else check_positive("gamma", gamma)
    degree = check_integer("degree", degree, least=1)
    coef0 = check_number("coef0", coef0)
    if coef0 < 0 and kernel in ("linear", "poly"):
        raise ValueError(
            f"coef0 must be at least 0 for the kernel to be positive semidefinite; got {coef0}"
        )
    if kernel_params is not None and not isinstance(kernel_params, dict):
        raise TypeError(f"kernel_params must be a dict or None; got {kernel_params!r}")
    if kernel_params and function is None:
        raise ValueError(
            "kernel_params are the arguments of a kernel given as a function; "
            f"got {kernel_params!r} with kernel={kernel!r}"
        )
    return Kernel(kernel, sigma, gamma, degree, coef0, function, kernel_params)


@contextmanager
def naming(name):
    """Let the errors of a kept library's check say which parameter was wrong.

    Parameters
    ----------
    name : str
        Put before a message in which it does not stand.

    Raises
    ------
    ValueError, TypeError
        As the block, with the parameter's name.

    Examples
    --------
    >>> with naming("X"):
    ...     raise ValueError("Complex data not supported")
    Traceback (most recent call last):
    ValueError: X: Complex data not supported
    """
    try:
        yield
    except (ValueError, TypeError) as error:
        if re.search(rf"\b{name}\b", str(error)):
            raise
        kind = ValueError if isinstance(error, ValueError) else TypeError
        raise kind(f"{name}: {error}") from error


def check_matrix(X, *, name="X", check=None, **options):
    """Return X as scikit-learn checks it, in C order; a sparse one is safe for compiled code.

    Parameters
    ----------
    X : (n, d) array_like or sparse matrix
        What the user gave; never modified.
    name : str, default="X"
        For messages.
    check : callable, optional
        Called with X and the options; None: ``sklearn.utils.check_array``.
    **options
        Of the check.

    Returns
    -------
    (n, d) array or CSR matrix
        The matrix.

    Raises
    ------
    ValueError, TypeError
        If the check refuses it, or a sparse one has indices beyond its shape.

    Examples
    --------
    >>> check_matrix([[1, 2]])
    array([[1, 2]])
    """
    check = check or partial(check_array, input_name=name)
    with naming(name):
        return check(check_structure(X) if issparse(X) else X, order="C", **options)


def check_structure(X):
    """Return a sparse matrix in CSR with sorted indices and no duplicates.

    Neither SciPy's products nor compiled loops look whether an index is within the matrix: one
    that is not ends the process. Looking costs a fraction of a product with a vector.

    Parameters
    ----------
    X : sparse matrix or sparse array
        Any format; never modified, shared where nothing must change.

    Returns
    -------
    CSR matrix or array
        The same entries; duplicates are added up.

    Raises
    ------
    ValueError
        If its indices are not within its shape, or it is not two-dimensional.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> check_structure(csr_array(([1.0], [3], [0, 1]), shape=(1, 4))).toarray()
    array([[0., 0., 0., 1.]])
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
    X = _narrow(X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _narrow(X):
    """Return a CSR matrix whose indices are of 32 bits if they fit, as scikit-learn needs them."""
    fits = max(X.nnz, *X.shape) <= np.iinfo(np.int32).max
    if X.indices.dtype == X.indptr.dtype == np.int32 or not fits:
        return X
    indices, indptr = (part.astype(np.int32, copy=False) for part in (X.indices, X.indptr))
    return type(X)((X.data, indices, indptr), shape=X.shape)


def _view_compressed(X):
    """Return a compressed matrix that shares its arrays with X and was looked through."""
    # A new object, as the check may replace the arrays, and X may carry outdated flags.
    view = type(X)((X.data, X.indices, X.indptr), shape=X.shape)
    # SciPy takes differences, which wrap round, and looks at no row pointers if the last is 0.
    if (view.indptr[1:] < view.indptr[:-1]).any():
        raise ValueError("the row pointers (indptr) of a sparse matrix must not fall")
    view.check_format(full_check=True)
    return view


def check_points(X, kernel, estimator=None, sparse=False):
    """Return X as a C-order float matrix without NaN or infinity; never modified.

    Parameters
    ----------
    X : (n, d) array_like
        Points, or with a precomputed kernel the (n, n) Gram matrix. float32 is kept, anything
        else becomes float64.
    kernel : Kernel
        Decides whether X is a Gram matrix.
    estimator : object, optional
        Named in messages.
    sparse : bool, default=False
        Whether a sparse matrix is taken; it becomes CSR.

    Returns
    -------
    (n, d) float64 or float32 array or CSR matrix
        The points.

    Raises
    ------
    ValueError, TypeError
        If X is not a finite real matrix, or not a symmetric one where it must be.

    Examples
    --------
    >>> check_points([[1, 2]], Kernel("rbf"))
    array([[1., 2.]])
    """
    X = check_matrix(
        X,
        dtype=[np.float64, np.float32],
        accept_sparse="csr" if sparse and kernel.name != "precomputed" else False,
        estimator=estimator,
    )
    if kernel.name == "precomputed":
        check_gram(X)
    return X


def check_gram(K):
    """Check that a precomputed Gram matrix is square and symmetric, block by block.

    Parameters
    ----------
    K : (n, n) array
        The matrix.

    Raises
    ------
    ValueError
        If it is not.

    Examples
    --------
    >>> import numpy as np
    >>> check_gram(np.eye(2))
    """
    n = K.shape[0]
    if K.shape[1] != n:
        raise ValueError(
            f"X must be a square matrix with kernel='precomputed'; got shape {K.shape}"
        )
    largest = max(K.max(), -K.min())
    worst = 0.0
    # Square blocks stay in the cache while they are read across.
    for i in range(0, n, GRAM_BLOCK):
        for j in range(i, n, GRAM_BLOCK):
            above = K[i : i + GRAM_BLOCK, j : j + GRAM_BLOCK]
            below = K[j : j + GRAM_BLOCK, i : i + GRAM_BLOCK]
            difference = above - below.T
            worst = max(worst, difference.max(), -difference.min())
    if worst > SYMMETRY_TOLERANCE[K.dtype] * largest:
        raise ValueError(
            "X must be symmetric with kernel='precomputed'; entries differ from "
            f"their mirror images by up to {worst:.3g}"
        )


def check_new_points(X, kernel, n_features, dtype, *, name="X"):
    """Check the points that a model is to predict.

    Parameters
    ----------
    X : (m, d) array_like
        New points, or with a precomputed kernel their (m, n) kernel values.
    kernel : Kernel
        The model's kernel.
    n_features : int
        Columns of the training X.
    dtype : numpy.dtype
        Of the training X.
    name : str, default="X"
        For messages.

    Returns
    -------
    (m, d) array or CSR matrix
        The points.

    Raises
    ------
    ValueError, TypeError
        If X is not a finite real matrix with that many columns.

    Examples
    --------
    >>> import numpy as np
    >>> check_new_points([[1, 2]], Kernel("rbf"), 2, np.float64)
    array([[1., 2.]])
    """
    sparse = "csr" if kernel.name != "precomputed" else False
    X = check_matrix(X, name=name, dtype=dtype, accept_sparse=sparse)
    if X.shape[1] != n_features:
        what = (
            "kernel values to the training points" if kernel.name == "precomputed" else "features"
        )
        raise ValueError(f"{name} has {X.shape[1]} {what}; the model was fitted with {n_features}")
    return X


def check_sample_weight(sample_weight, n):
    """Return the weights of the points as floats, none of them negative.

    Parameters
    ----------
    sample_weight : (n,) array_like or None
        What the user gave.
    n : int
        Points.

    Returns
    -------
    (n,) float64 array or None
        The weights; None where none were given.

    Raises
    ------
    ValueError, TypeError
        If they are not n numbers of at least 0, some of them above it.

    Examples
    --------
    >>> check_sample_weight([1, 2], 2)
    array([1., 2.])
    """
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},); got {weights.shape}")
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any()):
        raise ValueError(
            "sample_weight must be finite and not negative, and must not all be zero; "
            f"got weights from {weights.min()} to {weights.max()}"
        )
    return weights


def counting_points(weights):
    """Return which points count, as their weights are above 0.

    Parameters
    ----------
    weights : (n,) float64 array or None
        From :func:`check_sample_weight`.

    Returns
    -------
    (m,) int64 array or None
        Their indices; None if all do.

    Examples
    --------
    >>> counting_points(np.array([1.0, 0.0, 2.0]))
    array([0, 2])
    """
    return None if weights is None or weights.all() else np.flatnonzero(weights)
