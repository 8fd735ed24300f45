"""Columns of mean zero and unit variance, for the solver and for whatever its model predicts."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import issparse
from sklearn.preprocessing import StandardScaler

from fastmmc.core import validation
from fastmmc.core.column_names import Named
from fastmmc.core.display import OneLine
from fastmmc.core.saving import stored
from fastmmc.data.blocks import in_blocks
from fastmmc.data.columns import binary_scale
from fastmmc.data.copies import Copies, unless_ones
from fastmmc.data.metrics import has_metric, make_points

FLOATS = [np.float64, np.float32]


@stored(mean="f8:d", scale="f8:d")
@dataclass(frozen=True, eq=False, repr=False)
class Scaler(OneLine):
    """What a StandardScaler has learnt, in a form that files can hold."""

    scale: np.ndarray  # (d,), > 0
    mean: np.ndarray | None = None  # (d,), None where points are only divided

    what = "features"

    @property
    def n_features(self):
        """Columns of the training X."""
        return self.scale.size

    n_columns = n_features  # of the points

    def _check_values(self):
        if not (self.scale > 0).all():
            raise ValueError("scale has values that are not positive")

    def _scaler(self):
        scaler = StandardScaler(with_mean=self.mean is not None)
        scaler.set_output(transform="default")  # whatever scikit-learn is configured to
        scaler.scale_, scaler.mean_, scaler.n_features_in_ = self.scale, self.mean, self.scale.size
        return scaler

    def transform(self, X):
        """Return points in the units of the model, those that lose their mean as an array."""
        if self.mean is not None and issparse(X):
            X = X.toarray()
        return self._scaler().transform(X)

    def inverse_transform(self, X):
        """Return points in the units of the training X."""
        return self._scaler().inverse_transform(X)


@dataclass(frozen=True, eq=False)
class Units:
    """What was done to the points of a call before they were clustered, for its result."""

    params: dict  # metric and standardize, as far as the call has them
    scaler: Scaler | None = None  # None: nothing

    def tell(self, result):
        """Return a result, or a factor, that knows, and whose model takes points as given."""
        if not hasattr(result, "params"):
            return result if self.scaler is None else replace(result, scaler=self.scaler)
        changed = {"params": result.params | self.params}
        if self.scaler is not None:
            changed["model"] = result.model.with_scaler(self.scaler)
        return replace(result, **changed)


def in_units(call):
    """Return the call with points in the metric and units that it names, and these :class:`Units`.

    "auto" is settled here, before the solver checks X, unless a coding has done it. Points in
    blocks stay as they are, and are warned of. A factor knows what made its points.
    """
    scaler, standardize = None, getattr(call, "standardize", False)
    if has_metric(call):
        call, scaler = make_points(call)
    elif standardize == "auto" and in_blocks(call.X):
        call = replace(call, standardize=False)
    elif standardize == "auto":
        X = validation.check_matrix(call.X, dtype=FLOATS, accept_sparse="csr")
        call = replace(call, X=X)
        call.settle_units(X, _weights(call, X))
    if scaler is None and getattr(call, "standardize", False):
        call, scaler = _standardized(call)
    if isinstance(call.X, Named):
        scaler = getattr(call.X, "scaler", None)
    params = {"metric": call.metric} if has_metric(call) else {}
    if hasattr(call, "standardize"):
        params["standardize"] = call.standardize
    return call, Units(params, scaler)


def _standardized(call):
    """Return the call with standardised points, and what scales new ones."""
    if isinstance(call.X, Named) or getattr(call, "kernel", None) == "precomputed":
        given = f"a {type(call.X).__name__}" if isinstance(call.X, Named) else "a Gram matrix"
        raise ValueError(
            f"standardize=True is for points, and X is {given}: scale the points it is made of"
        )
    X = validation.check_matrix(call.X, dtype=FLOATS, accept_sparse="csr")
    weights, rows = _weights(call, X), X
    if weights is not None:
        rows, weights = X[weights > 0], unless_ones(weights[weights > 0])
    copies = Copies.of(rows, weights)
    if copies is not None:  # for all digits to be the same
        rows, weights = rows[copies.first], copies.weights
    scaler = fit_scaler(rows, weights)
    scaled = {"X": scaler.transform(X)}
    landmarks = getattr(call, "landmarks", None)
    if np.ndim(landmarks) == 2:
        with validation.naming("landmarks"):
            scaled["landmarks"] = scaler.transform(landmarks)
    return replace(call, **scaled), scaler


def _weights(call, X):
    """Return the weights of the points, (n,) float64, None where the call has none."""
    return validation.check_sample_weight(getattr(call, "sample_weight", None), X.shape[0])


def fit_scaler(X, weights=None):
    """Return what gives the columns of such points unit variance, and if dense the mean 0.

    Dense columns of two values weigh as categories do in a table.
    """
    scaler = StandardScaler(with_mean=not issparse(X))
    with np.errstate(over="ignore", invalid="ignore"):
        scaler.fit(X, sample_weight=weights)
    if not np.isfinite(scaler.scale_).all():
        column = int(np.argmin(np.isfinite(scaler.scale_)))
        raise ValueError(f"X: the variance of column {column} overflows; scale it down")
    if issparse(X):
        return Scaler(scaler.scale_)
    low, high = X.min(axis=0), X.max(axis=0)
    is_binary = (low < high) & ((X == low) | (X == high)).all(axis=0)
    return Scaler(np.where(is_binary, binary_scale(low, high), scaler.scale_), scaler.mean_)
