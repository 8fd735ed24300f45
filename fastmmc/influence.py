"""Which features decide on the clusters of points."""

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack, issparse

from fastmmc.core import validation
from fastmmc.core.clusterer import clustering_of
from fastmmc.core.column_names import Named, feature_names
from fastmmc.core.declare import Parameters, function_of, parameter
from fastmmc.core.display import Listed, OneLine
from fastmmc.core.execution import RunControl, fixed_seed, restart_stream, warn_user
from fastmmc.core.parameters import RandomState
from fastmmc.core.types import MatrixLike
from fastmmc.kernels.gram import evenly
from fastmmc.profile import distinct_names

# Shares that are shown.
FEATURES_SHOWN = 20

# Points whose prediction tells what there is time for, and how many are used in any case. Of
# max_time=10, calls for 300 to 2,000 points of 64 to 1,000 features took 5.2 to 11.2 s.
TIMED_POINTS = 100
LEAST_POINTS = 20


@dataclass(frozen=True, eq=False, repr=False)
class FeatureInfluence(OneLine, Listed, Named):
    """How much of a clustering hangs on each feature; ``print`` shows the features that count most.

    Attributes
    ----------
    shares : (d,) float64 array
        Share of the points that change their cluster if the values of the feature are shuffled
        among them, the mean over the shuffles. 0 for a feature that plays no part.
    deviations : (d,) float64 array
        Standard deviations over the shuffles.
    by_cluster : (k, d) float64 array
        The same share of the points of each cluster.
    feature_names_in : (d,) array of str or None
        Names of the features; None if they have none.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> res = fastmmc.umc_rls(X, 3, n_init=3, random_state=0)
    >>> influence = fastmmc.feature_influence(res, X, random_state=0)
    >>> influence.shares.shape, influence.by_cluster.shape
    ((4,), (3, 4))
    >>> len(str(influence).splitlines())  # a line above, and one for each feature
    5
    """

    shares: NDArray[np.float64]
    deviations: NDArray[np.float64] = field(repr=False)
    by_cluster: NDArray[np.float64] = field(repr=False)

    def _headline(self):
        return "points that change their cluster if a feature is shuffled, mean (deviation)"

    def _rows(self):
        """Return the shares by the names of the features, the largest first."""
        names = distinct_names(feature_names(self.feature_names_in, self.shares.size))
        order = np.argsort(-self.shares, kind="stable")
        rows = {
            names[i]: f"{self.shares[i]:.1%} (± {self.deviations[i]:.1%})"
            for i in order[:FEATURES_SHOWN]
        }
        others = order[FEATURES_SHOWN:]
        if others.size:
            rows["..."] = f"{others.size} others, at most {self.shares[others].max():.1%}"
        return rows


def _check_clustering(name, value):
    """Return a result, that of an estimator if one is given."""
    result = clustering_of(name, value)
    if "precomputed" in (result.params.get("kernel"), result.params.get("metric")):
        raise ValueError(
            f"{name} was made with a precomputed kernel or distances, whose columns are points, "
            "not features"
        )
    return result


class _InfluenceCall(Parameters):
    result: Any = parameter(
        kw_only=False,
        kind="ClusteringResult or estimator",
        check=_check_clustering,
        doc="What a solver returned, or a fitted estimator; one that predicts new points.",
    )
    X: MatrixLike = parameter(
        kw_only=False,
        kind="(m, d) array_like or sparse matrix",
        doc="Points whose features are shuffled: the training points, some of them, or others.",
    )
    random_state: RandomState = parameter(default=None, doc="Shuffles.")
    n_repeats: int = parameter(default=5, least=1, doc="Shuffles of each feature.")
    max_time: float | None = parameter(
        default=None,
        above=0,
        doc="""
        Seconds for the call. If they are too few, there are fewer shuffles, of fewer points: one
        shuffle of 20 points at least.
        """,
    )


def _affordable(result, X, n_features, n_repeats, control):
    """Return how many shuffles of each feature there is time for, and of which points."""
    n, began = X.shape[0], time.perf_counter()
    result._nearest(X[evenly(n, TIMED_POINTS)])
    times = control.time_left() / ((time.perf_counter() - began) * n_features)
    n_repeats = int(np.clip(times, 1, n_repeats))
    return n_repeats, evenly(n, max(LEAST_POINTS, int(TIMED_POINTS * times / n_repeats)))


@function_of(_InfluenceCall, trains=False)
def feature_influence(call: _InfluenceCall, control: RunControl) -> FeatureInfluence:
    """Measure how many points change their cluster if a feature is shuffled among them.

    It is the permutation importance of the features for ``predict``, whose own answer is taken as
    the truth. Features that tell the same can stand in for each other, and then each of them seems
    to matter little.

    Returns
    -------
    FeatureInfluence
        ``shares`` of each feature, their ``deviations``, and the shares ``by_cluster``;
        :class:`fastmmc.plotting.InfluenceDisplay` draws it.

    Raises
    ------
    TypeError, ValueError
        If it is no clustering, one of a precomputed kernel, or X has other features.
    sklearn.exceptions.NotFittedError
        If the clustering cannot predict.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If ``max_time`` is too short for all shuffles of all points.

    Notes
    -----
    d ``n_repeats`` predictions of m points, of O(m n d) each for a dense RLS model of n points:
    with many points give some hundred of them, or ``max_time``.

    References
    ----------
    L. Breiman, Random forests, Machine Learning 45, 2001.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> result = fastmmc.umc_rls(X, 3, n_init=3, random_state=0)
    >>> influence = fastmmc.feature_influence(result, X, random_state=0)
    >>> int(influence.shares.argmax())  # the length of petals
    2
    """
    result = call.result
    X = validation.check_matrix(
        result._in_numbers(call.X), dtype=[np.float64, np.float32], accept_sparse="csr", copy=True
    )
    rng = restart_stream(fixed_seed(call.random_state), 0)
    before, k = result._nearest(X), len(result.sizes)
    features, names = range(X.shape[1]), None
    if result.coding is not None:  # the table may have its columns in another order
        features = result.coding.places()
        names = np.array([column.name for column in result.coding.columns], dtype=object)
    n_repeats = call.n_repeats
    if control.max_time is not None:
        n_repeats, some = _affordable(result, X, len(features), n_repeats, control)
        if n_repeats < call.n_repeats or some.size < len(before):
            warn_user(
                f"max_time is too short: each feature is shuffled {n_repeats} of "
                f"{call.n_repeats} times among {some.size:,} of {len(before):,} points, so the "
                "shares are less exact"
            )
        X, before = X[some], before[some]
    counts = np.maximum(np.bincount(before, minlength=k), 1)
    shares = np.zeros((n_repeats, len(features)))
    left = np.zeros((k, len(features)))
    for i, feature in enumerate(features):
        for repeat in range(n_repeats):
            rows, shuffled = _shuffle(X, feature, rng.permutation(X.shape[0]))
            changed = rows
            if rows.size:
                changed = rows[result._nearest(shuffled) != before[rows]]
            shares[repeat, i] = changed.size / X.shape[0]
            left[:, i] += np.bincount(before[changed], minlength=k) / counts
    figures = shares.mean(axis=0), shares.std(axis=0), left / n_repeats
    return FeatureInfluence(*figures, feature_names_in=names)


def _shuffle(X, feature, order):
    """Shuffle the values of a feature, or of a table's column; return the rows that change."""
    if not issparse(X):
        values = X[:, feature]
        differs = values[order] != values
        rows = np.flatnonzero(differs if differs.ndim == 1 else differs.any(axis=1))
        shuffled = X[rows]
        shuffled[:, feature] = values[order[rows]]
        return rows, shuffled
    column = X[:, [feature]]
    shuffled = column[order]
    rows = np.flatnonzero((shuffled != column).toarray())
    X = X[rows]
    return rows, csr_array(hstack((X[:, :feature], shuffled[rows], X[:, feature + 1 :])))
