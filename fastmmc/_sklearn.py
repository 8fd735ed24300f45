"""scikit-learn's base classes.

Their package tells type checkers nothing, so that parameters of a subclass would go unchecked;
these see the stand-ins below.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

if TYPE_CHECKING:
    Method = TypeVar("Method", bound=Callable[..., Any])

    def with_callbacks(method: Method) -> Method: ...

    class CallbackSupport:
        def set_callbacks(self, callbacks: Any) -> Self: ...

    class BaseEstimator:
        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        def get_metadata_routing(self) -> Any: ...
        def __sklearn_tags__(self) -> Any: ...

    class ClusterMixin: ...

    class TransformerMixin:
        def fit_transform(self, X: Any, y: object = None, **fit_params: Any) -> np.ndarray: ...
        def set_output(self, *, transform: str | None = None) -> Self: ...

    class ClassNamePrefixFeaturesOutMixin:
        def get_feature_names_out(self, input_features: Any = None) -> np.ndarray: ...
else:
    from sklearn.base import (
        BaseEstimator,
        ClassNamePrefixFeaturesOutMixin,
        ClusterMixin,
        TransformerMixin,
    )

    try:
        from sklearn.callback import CallbackSupportMixin as CallbackSupport
        from sklearn.callback import with_callbacks
    except ImportError:  # scikit-learn before 1.9

        class CallbackSupport:
            """Stands in for scikit-learn's mixin: no callbacks can be set."""

        def with_callbacks(method):
            """Return the method as it is."""
            return method


__all__ = [
    "BaseEstimator",
    "CallbackSupport",
    "ClassNamePrefixFeaturesOutMixin",
    "ClusterMixin",
    "TransformerMixin",
    "with_callbacks",
]
