"""The names of the columns of X, remembered and checked as scikit-learn's estimators do."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from fastmmc.core.execution import warn_user
from fastmmc.core.words import first_of
from fastmmc.data.coding import Coding
from fastmmc.data.frames import whole_table


@dataclass(frozen=True, eq=False, repr=False)
class Named:
    """An object made from points that remembers the names of their columns, None without names.

    ``coding`` says how the columns of a table became numbers; None where they were numbers.
    """

    feature_names_in: np.ndarray | None = field(default=None, kw_only=True, repr=False)
    coding: Coding | None = field(default=None, kw_only=True, repr=False)

    def _in_numbers(self, X):
        """Return new points as those that the object was made from; refuse other columns."""
        if self.coding is None:
            X = whole_table(X)
            estimator = _stand_in(type(self).__name__)()
            if self.feature_names_in is not None:
                estimator.feature_names_in_ = self.feature_names_in
            # Columns of other names than the old ones, or in another order, are refused.
            validate_data(estimator, X, reset=False, skip_check_array=True, ensure_2d=False)
            return X
        if hasattr(X, "compute") or issparse(X):
            raise TypeError(
                f"X is {'sparse' if issparse(X) else 'in blocks'}, and the clusters were made of a "
                "table with columns of several kinds: give new rows as a data frame"
            )
        numbers, unknown, _ = self.coding.code(X)
        if unknown:
            warn_user(first_of(unknown, "; "), UserWarning)
        return numbers


def column_names(X):
    """Return the names of the columns of X, (d,) str, or None."""
    if isinstance(X, Named):
        return X.feature_names_in
    estimator = _stand_in("X")()
    validate_data(estimator, X, skip_check_array=True, ensure_2d=False)
    return getattr(estimator, "feature_names_in_", None)


def feature_names(known, d):
    """Return the names of d features, made up where none are known."""
    return [f"feature {i}" for i in range(d)] if known is None else [str(name) for name in known]


@cache
def _stand_in(name):
    """Return an estimator class of this name, which scikit-learn's messages mention."""
    return type(name, (BaseEstimator,), {})
