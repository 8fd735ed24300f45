"""scikit-learn's base classes; type checkers, to which its package tells nothing, see stand-ins.

A base class of unknown type would let any parameter of an estimator pass.
"""

from typing import TYPE_CHECKING, Any, Self

import numpy as np

if TYPE_CHECKING:

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

__all__ = ["BaseEstimator", "ClassNamePrefixFeaturesOutMixin", "ClusterMixin", "TransformerMixin"]
