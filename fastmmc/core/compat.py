"""Private names of other libraries: all that this package uses are listed here.

Their public twins check their input under warning filters, which belong to the whole process and
must not be set in a worker thread, or do not offer what is needed. A new version may move such a
name; the error then says so.
"""

from importlib import import_module
from importlib.metadata import version
from typing import Any

# The oldest and the newest version that all tests have passed with.
TRIED = {
    "numba": ("0.61.0", "0.68.1"),
    "scikit-learn": ("1.6.0", "1.9.1"),
    "threadpoolctl": ("3.5.0", "3.8.0"),
}

# By the name that it has here: the library, and its module and name there.
PRIVATE = {
    # Lloyd's rounds and squared distances without checks of their input.
    "kmeans_single_lloyd": ("scikit-learn", "sklearn.cluster._kmeans", "_kmeans_single_lloyd"),
    "euclidean_distances": ("scikit-learn", "sklearn.metrics.pairwise", "_euclidean_distances"),
    # Machines whose iteration limit is told by more than a warning.
    "libsvm": ("scikit-learn", "sklearn.svm", "_libsvm"),
    "liblinear": ("scikit-learn", "sklearn.svm", "_liblinear"),
    # How compiled functions are called and kept, which subclasses change.
    "CPUDispatcher": ("numba", "numba.core.registry", "CPUDispatcher"),
    "FunctionCache": ("numba", "numba.core.caching", "FunctionCache"),
}


def __getattr__(name: str) -> Any:
    """Return what the libraries call a name of :data:`PRIVATE`; the others are not loaded."""
    if name not in PRIVATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    library, module, private = PRIVATE[name]
    try:
        found = import_module(module)
        return getattr(found, private, None) or import_module(f"{module}.{private}")
    except ImportError as error:
        oldest, newest = TRIED[library]
        raise ImportError(
            f"{library} {version(library)} has no {module}.{private}, which fastmmc uses; it was "
            f"tried with {library} {oldest} to {newest}: install one of these"
        ) from error


def set_blas_threads(pool: Any, n_threads: int) -> None:
    """Set the number of threads of one of threadpoolctl's libraries from any thread.

    Newer versions of threadpoolctl only let the thread that first set it, which need not be the one
    whose call ends last.
    """
    getattr(pool, "_real_set_num_threads", pool.set_num_threads)(n_threads)
