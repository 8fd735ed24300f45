"""The names of the columns of X, remembered and checked as scikit-learn's estimators do."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from fastmmc._wraps import wraps


@dataclass(frozen=True, eq=False, repr=False)
class Named:
    """What was made of points, and remembers the names of their columns.

    Attributes
    ----------
    feature_names_in : (d,) array of str or None
        The names; None if X had none.
    """

    feature_names_in: np.ndarray | None = field(default=None, kw_only=True, repr=False)

    def _check_names(self, X):
        """Check that new points have the columns of the old ones, in their order."""
        estimator = _stand_in(type(self).__name__)()
        if self.feature_names_in is not None:
            estimator.feature_names_in_ = self.feature_names_in
        validate_data(estimator, X, reset=False, skip_check_array=True, ensure_2d=False)


def remember_names(function):
    """Make a function of X remember the names of its columns in what it returns.

    Parameters
    ----------
    function : callable
        Takes X first, points or what was made of them; returns a :class:`Named` or a list of such.

    Returns
    -------
    callable
        The function, with what it returns named.
    """

    @wraps(function)
    def run(X, *args, **kwargs):
        return name_columns(function(X, *args, **kwargs), X)

    return run


def name_columns(made, X):
    """Return what was made of X, or a list of such, with the names of the columns of X."""
    names = X.feature_names_in if isinstance(X, Named) else _names_of(X)
    if isinstance(made, list):
        return [replace(one, feature_names_in=names) for one in made]
    return replace(made, feature_names_in=names)


def _names_of(X):
    """Return the names of the columns of X, or None."""
    estimator = _stand_in("X")()
    validate_data(estimator, X, skip_check_array=True, ensure_2d=False)
    return getattr(estimator, "feature_names_in_", None)


@cache
def _stand_in(name):
    """Return a class of estimators of this name, which scikit-learn's messages tell."""
    return type(name, (BaseEstimator,), {})
