"""Every check of user input, in one place."""

from __future__ import annotations

import math
import numbers
import os
from pathlib import Path

import numpy as np
from sklearn.utils import check_array

from fastmmc.gram import KERNELS, Kernel

# How far a precomputed Gram matrix may be from symmetric, relative to its largest entry.
SYMMETRY_TOLERANCE = {np.dtype(np.float64): 1e-8, np.dtype(np.float32): 1e-4}

# Rows and columns of the blocks in which a precomputed Gram matrix is checked.
GRAM_BLOCK = 128


def check_integer(name, value, *, least, most=None, why=""):
    """Return ``value`` as an int within bounds.

    Parameters
    ----------
    name : str
        The parameter's name.
    value : object
        What the user gave.
    least, most : int, optional
        Allowed range, both ends included.
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
        raise ValueError(f"{name} must be at least {least}; got {value}")
    if most is not None and value > most:
        raise ValueError(f"{name} must be at most {most}{why}; got {value}")
    return value


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
    value = float(value)
    if not math.isfinite(value):
        raise ValueError(f"{name} must be finite; got {value}")
    return value


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


def check_choice(name, value, allowed):
    """Return ``value`` if it is one of the allowed names.

    Parameters
    ----------
    name : str
        The parameter's name.
    value : object
        What the user gave.
    allowed : sequence of str
        The names.

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
        raise ValueError(f"{name} must be one of {names}; got {value!r}")
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
    X = check_array(
        X,
        dtype=[np.float64, np.float32],
        order="C",
        accept_sparse="csr" if sparse and kernel.name != "precomputed" else False,
        estimator=estimator,
        input_name="X",
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
    X = check_array(X, dtype=dtype, order="C", accept_sparse=sparse, input_name=name)
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


def check_memory(n, dtype, arrays=1, columns=None, what="hat matrix"):
    """Raise MemoryError before an array is made that does not fit into free memory.

    Parameters
    ----------
    n : int
        Points.
    dtype : numpy.dtype
        Of the array.
    arrays : int, default=1
        How many of them are held at a time.
    columns : int, optional
        Rank of a low-rank factor; None: the n columns of the dense matrix.
    what : str
        Which dense matrix, for the message.

    Raises
    ------
    MemoryError
        With the size needed, the size free, and what to do.

    Examples
    --------
    >>> import numpy as np
    >>> check_memory(10, np.dtype(np.float64))
    """
    needed = arrays * n * (n if columns is None else columns) * np.dtype(dtype).itemsize
    free = available_memory()
    if free is not None and needed > free:
        what = f"dense {what}" if columns is None else f"low-rank factor of rank {columns}"
        raise MemoryError(
            f"the {what} of {n} points needs {needed / 2**30:.1f} GiB and "
            f"{free / 2**30:.1f} GiB are free; give a lower rank (rank=0.01 is a hundredth of the "
            "points) or float32 points (half the size)"
        )


def check_pair_memory(n_known, n_pairs, bytes_per_pair):
    """Raise MemoryError before pairs of labelled objects are made that do not fit into memory.

    Parameters
    ----------
    n_known : int
        Labelled objects.
    n_pairs : int
        Pairs that their labels imply.
    bytes_per_pair : int
        What each of them takes.

    Raises
    ------
    MemoryError
        With the size needed, the size free, and what to do.

    Examples
    --------
    >>> check_pair_memory(10, 45, 100)
    """
    needed, free = n_pairs * bytes_per_pair, available_memory()
    if free is not None and needed > free:
        raise MemoryError(
            f"y: the labels of {n_known} objects imply {n_pairs} pairs, which need "
            f"{needed / 2**30:.1f} GiB, and {free / 2**30:.1f} GiB are free; make some of them -1, "
            "or give a few pairs as must_link and cannot_link"
        )


def available_memory():
    """Return how many bytes can be allocated without swapping, or None if that is not known.

    Returns
    -------
    int or None
        The least of what the kernel and the control group of a container allow.

    Examples
    --------
    >>> free = available_memory()
    """
    limits = []
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                limits.append(int(line.split()[1]) * 1024)
        group = Path("/sys/fs/cgroup")
        most = (group / "memory.max").read_text().strip()
        if most != "max":
            limits.append(int(most) - int((group / "memory.current").read_text()))
    except (OSError, ValueError):
        pass  # another operating system, or no control group
    if not limits and hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min(limits, default=None)
