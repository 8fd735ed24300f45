"""The public parameters that several methods share, in groups.

Every parameter is declared once: name, type, default, text and check. A method declares those of
its own beside its solver, and changes a default by declaring it again.
"""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from fastmmc.core import validation
from fastmmc.core.declare import Parameters, parameter
from fastmmc.core.execution import Progress
from fastmmc.core.types import MatrixLike
from fastmmc.kernels.gram import KERNELS, Kernel

RandomState = int | np.random.SeedSequence | np.random.Generator | np.random.RandomState | None
KernelName = Literal["rbf", "linear", "poly", "laplacian", "precomputed"]
Rank = int | float | Literal["auto"] | None
Landmarks = Literal["uniform", "k-means++", "pivoted"] | ArrayLike


def check_n_jobs(name, value):
    """Return a number of threads."""
    if value is None:
        return None
    value = validation.check_integer(name, value, least=-(2**31))
    if value == 0:
        raise ValueError(f"{name} must not be 0; give a number of threads, -1 for all, or None")
    return value


def check_callback(name, value):
    """Return what is callable, or None."""
    if value is not None and not callable(value):
        raise TypeError(f"{name} must be callable or None; got {value!r}")
    return value


def check_verbose(name, value):
    """Return 0 for silence, 1 for a bar."""
    return int(value) if isinstance(value, bool) else validation.check_integer(name, value, least=0)


# What a kernel's width is. What None stands for follows, which each method says for itself.
WIDTH = 'Width: exp(-||x-z||^2 / sigma^2), or exp(-||x-z||_1 / sigma) for "laplacian".\nNone: '


class Points(Parameters):
    """What is clustered."""

    X: MatrixLike = parameter(
        kw_only=False,
        kind="(n, d) array_like or data frame",
        doc="""
        Points (float32 is kept, anything else becomes float64), or a data frame, whose columns may
        also hold categories, dates and missing cells; with ``kernel="precomputed"`` their (n, n)
        Gram matrix.
        """,
    )


class Standardization(Parameters):
    """The units of the columns."""

    standardize: bool = parameter(
        default=False,
        doc="Columns get mean 0, deviation 1; binary ones span .35.",
    )


class Metric(Parameters):
    """The distances of the points."""

    metric: Literal["euclidean", "cosine", "precomputed"] = parameter(
        default="euclidean",
        doc="""
        "cosine": rows are scaled to length 1. "precomputed": X holds (n, n) distances or, if
        sparse, a graph of neighbours.
        """,
    )


class Clusters(Parameters):
    """How many clusters a function makes."""

    k: int = parameter(kw_only=False, doc="Number of clusters, 1 <= k <= n.")


class ClusterCount(Parameters):
    """How many clusters an estimator makes."""

    n_clusters: int = parameter(default=8, kw_only=False, doc="Number of clusters.")


class Guidance(Parameters):
    """What a function is told of the points: labels, and pairs of them."""

    known_labels: ArrayLike | None = parameter(
        default=None,
        kind="(n,) array_like",
        per="point",
        doc="Labels 0..k-1 or strings, which never change; -1, NaN or None: unknown.",
    )
    must_link: MatrixLike | None = parameter(
        default=None,
        kind="(p, 2) or (n,) array_like, sparse matrix",
        per="pair",
        doc="Pairs that belong together; in a vector, equal labels do (-1, NaN or None: unknown).",
    )
    cannot_link: MatrixLike | None = parameter(
        default=None,
        kind="(p, 2) or (n,) array_like, sparse matrix",
        per="pair",
        doc="Pairs that belong apart; in a vector, different labels do.",
    )


class Weights(Parameters):
    """How much points count."""

    sample_weight: ArrayLike | None = parameter(
        default=None,
        kind="(n,) array_like",
        per="point",
        doc="Weights, >= 0. An integer counts as that many equal rows.",
    )


class SemiSupervised(Parameters):
    """Whether an estimator learns from labels."""

    semi_supervised: bool = parameter(
        default=False,
        doc="""
        Whether ``y`` of ``fit``, and of ``partial_fit`` where there is one, tells labels. If not,
        it is ignored, whatever it holds, so that true labels may be passed around by pipelines.
        """,
    )


class LinkRules(Parameters):
    """What links mean."""

    labels_as: Literal["cannot_link", "must_link", "both"] = parameter(
        default="cannot_link",
        doc="""
        What known labels imply: cannot-links between different ones, must-links between equal
        ones, or both.
        """,
    )
    on_conflict: Literal["raise", "warn"] = parameter(
        default="raise",
        doc="""
        What to do if a cannot-link is between objects that must-links join: an error, or a warning
        and a count, ``n_conflicts``.
        """,
    )


class KernelParameters(Parameters):
    """The kernel function."""

    kernel: KernelName | Callable[..., Any] = parameter(
        default="rbf",
        doc="A callable takes (X, Z) and returns their (n_X, n_Z) Gram matrix.",
    )
    sigma: float | None = parameter(
        default=None,
        above=0,
        doc=WIDTH + "the median distance, for k > 4 that to the (2 n / k)-th neighbour.",
    )
    gamma: float | None = parameter(
        default=None,
        above=0,
        doc='1 / sigma^2 ("rbf"), 1 / sigma ("laplacian"), or the factor of "poly".',
    )
    degree: int = parameter(default=3, least=1, doc='Degree of "poly".')
    coef0: float = parameter(default=1.0, doc='Constant of "linear" and "poly", >= 0.')
    kernel_params: dict[str, Any] | None = parameter(
        default=None, doc="Arguments of a callable kernel."
    )


def kernel_of(call):
    """Return the Kernel that a call describes; a width that was not given stays None."""
    kernel, function = call.kernel, None
    if callable(kernel):
        kernel, function = "callable", kernel
    else:
        validation.check_choice("kernel", kernel, KERNELS, " or a callable")
    if call.sigma is not None and call.gamma is not None:
        raise ValueError(
            "give sigma or gamma, not both (gamma = 1/sigma^2); "
            f"got sigma={call.sigma!r} and gamma={call.gamma!r}"
        )
    if call.coef0 < 0 and kernel in ("linear", "poly"):
        raise ValueError(
            f"coef0 must be at least 0 for the kernel to be positive semidefinite; got {call.coef0}"
        )
    params = call.kernel_params
    if params is not None and not isinstance(params, dict):
        raise TypeError(f"kernel_params must be a dict or None; got {params!r}")
    if params and function is None:
        raise ValueError(
            "kernel_params are the arguments of a kernel given as a function; "
            f"got {params!r} with kernel={kernel!r}"
        )
    return Kernel(kernel, call.sigma, call.gamma, call.degree, call.coef0, function, params)


class LandmarkParameters(Parameters):
    """The low-rank approximation of the kernel."""

    rank: Rank = parameter(
        default="auto",
        kind='int, float, "auto" or None',
        doc="""
        Number of landmarks of the low-rank form, or their share of n; None: dense. "auto" is dense
        up to 10,000 points and has 1,000 landmarks above; above 300,000 points 3e8 / n, but at
        least 100. Sparse points have 1,000 landmarks, or all points, in place of the dense form.
        """,
    )
    landmarks: Landmarks = parameter(
        default="uniform",
        kind='{"uniform", "k-means++", "pivoted"} or array_like',
        doc="How they are chosen, their indices, or (b, d) points.",
    )
    rank_tol: float = parameter(
        default=1e-6,
        least=0,
        below=1,
        doc='Share of the trace of K that "pivoted" may miss.',
    )


class PrecisionParameters(Parameters):
    """The precision of the hat matrix."""

    dtype: Literal["float32", "float64"] | None = parameter(
        default=None,
        check=validation.check_dtype,
        doc="Precision of the hat matrix. None: by that of X, size and lam.",
    )


class Regularisation(Parameters):
    """The regularisation of the hat matrix."""

    lam: float = parameter(default=0.25, above=0, doc="Regularisation, > 0.")


class SizeParameters(Parameters):
    """The sizes of the clusters."""

    balance: float | None = parameter(
        default=None,
        least=0,
        doc="Sizes stay within balance * n / k of their targets.",
    )
    target_sizes: ArrayLike | None = parameter(
        default=None,
        kind="(k,) array_like",
        doc="Integers with sum n, or shares with sum 1. None: n / k each.",
    )
    min_size: int = parameter(default=1, least=0, doc="Smallest size allowed.")
    max_size: int | None = parameter(default=None, least=1, doc="Largest size allowed. None: n.")


def check_trim(name, value):
    """Return a number of points, or a share of them."""
    if not isinstance(value, float | np.floating):
        return validation.check_integer(name, value, least=0, why=", or a share below 1")
    if not 0 <= value < 1:
        raise ValueError(
            f"{name} must be a number of points, or a share at least 0 and below 1; got {value}"
        )
    return float(value)


class Trimming(Parameters):
    """Points that are left out."""

    trim: float | int = parameter(
        default=0,
        check=check_trim,
        doc="Outliers to leave out, with label -1: their number, or share below 1.",
    )


class BinarySizeParameters(SizeParameters):
    """The sizes of two clusters."""

    balance: float | None = parameter(
        default=None,
        below=1,
        doc="""
        Every size stays within balance * n / 2 of its target, 0 <= balance < 1: with equal targets
        |e^T y| <= balance * n. For an odd n anything above 0 allows a difference of one. None: 0
        if ``target_sizes`` are given, which are then met exactly, else 0.03.
        """,
    )
    target_sizes: ArrayLike | None = parameter(
        default=None,
        kind="(2,) array_like",
        doc="Integers with sum n, or shares with sum 1. None: n / 2 each.",
    )
    min_size: int = parameter(default=1, least=1)


class Execution(Parameters):
    """How a call is carried out."""

    random_state: RandomState = parameter(
        default=None, doc="Same value, same labels, whatever ``n_jobs`` is."
    )
    n_jobs: int | None = parameter(
        default=None,
        check=check_n_jobs,
        doc="Threads. None: joblib's configuration, or 1; -1: all.",
    )
    max_time: float | None = parameter(
        default=None,
        above=0,
        doc="Seconds for the call, which returns the best labels so far.",
    )
    callback: Callable[[Progress], bool | None] | None = parameter(
        default=None,
        check=check_callback,
        doc="Called with a :class:`~fastmmc.Progress`; true stops the run.",
    )
    verbose: int = parameter(
        default=0, check=check_verbose, doc="1 shows a progress bar (extra ``progress``)."
    )


class RunParameters(Execution, before="random_state"):
    """How a run is carried out."""

    n_init: int = parameter(
        default=1,
        least=1,
        most=validation.MOST_STARTS,
        doc="Starts; the one with the lowest objective wins.",
    )


class MarginRunParameters(RunParameters):
    """How a run of a margin method is carried out."""

    n_init: int = parameter(
        default=10,
        doc="Starts; the one with the lowest objective wins. Given labels are started from once.",
    )
    max_time: float | None = parameter(
        default=None,
        doc="""
        Seconds for the whole call; the best labels found by then are returned. Where there is no
        time for the Gram matrix or the features, features of rank 50 take their place.
        """,
    )
