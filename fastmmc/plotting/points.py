"""Which points are typical or doubtful, and which features count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.sparsefuncs import mean_variance_axis

from fastmmc.core import validation
from fastmmc.core.column_names import feature_names
from fastmmc.core.results import RLSResult
from fastmmc.core.types import MatrixLike
from fastmmc.influence import FeatureInfluence
from fastmmc.plotting.base import (
    COLORS,
    Display,
    ResultDisplay,
    check_points,
    check_result,
    known_names,
)

# Of more features the names are not written beside a table.
MOST_NAMES = 40


@dataclass(eq=False, repr=False)
class MarginDisplay(ResultDisplay, Display, drawn_by="fill_betweenx", such_as="``alpha``"):
    """The margins of all points, cluster by cluster, in the manner of a silhouette plot.

    Each cluster is a blade, its surest points on top; what lies left of 0 would suit another
    cluster better. The dashed line is the mean.

    Parameters
    ----------
    margins : (n,) float array
        Margins of the points.
    labels : (n,) int array
        Clusters 0..k-1, -1 of points that are not drawn.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> result = fastmmc.umc_rls(X, 3, n_init=3, random_state=0)
    >>> fastmmc.plotting.MarginDisplay.from_result(result).ax_.get_xlabel()
    'margin'
    """

    margins: np.ndarray
    labels: np.ndarray

    def _draw(self, ax, **kwargs):
        k = int(self.labels.max()) + 1
        gap = max(1, self.labels.size // 50)
        start, middles = 0, []
        for cluster in range(k):
            blade = np.sort(self.margins[self.labels == cluster])[::-1]
            rows = start + np.arange(blade.size)
            style = {"facecolor": COLORS[cluster % len(COLORS)], "linewidth": 0, "step": "mid"}
            ax.fill_betweenx(rows, 0.0, blade, **(style | kwargs))
            middles.append(start + (blade.size - 1) / 2)
            start += blade.size + gap
        ax.axvline(self.margins[self.labels >= 0].mean(), color="0.4", linestyle="--", linewidth=1)
        ax.axvline(0.0, color="0.4", linewidth=0.5)
        ax.set_yticks(middles, [str(cluster) for cluster in range(k)])
        ax.set(xlabel="margin", ylabel="cluster", ylim=(start, -gap))

    @classmethod
    def from_result(cls, result: RLSResult, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the margins of a result of the RLS family."""
        check_result(result, RLSResult, "fastmmc.umc_rls")
        return cls(result.margins, result.labels).plot(ax, **kwargs)


@dataclass(eq=False, repr=False)
class ExemplarDisplay(ResultDisplay, Display, drawn_by="imshow", such_as="``cmap``"):
    """A table in colours of the features of each cluster's most typical points.

    A colour tells by how many standard deviations a value is above or below the mean of its
    feature.

    Parameters
    ----------
    values : (m, d) float array
        Standardised features of the points shown.
    row_names : sequence of str
        Their clusters and indices.
    feature_names : sequence of str
        Names of the features.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> result = fastmmc.umc_rls(X, 3, n_init=3, random_state=0)
    >>> display = fastmmc.plotting.ExemplarDisplay.from_result(result, count=2)
    >>> display.values.shape, display.feature_names[0]
    ((6, 4), 'feature 0')
    """

    values: np.ndarray
    row_names: Sequence[str]
    feature_names: Sequence[str]

    def _draw(self, ax, **kwargs):
        style = {"aspect": "auto", "cmap": "RdBu_r", "vmin": -2.5, "vmax": 2.5}
        image = ax.imshow(self.values, **(style | kwargs))
        ax.figure.colorbar(image, ax=ax, label="standard deviations from the mean")
        ax.set_yticks(range(len(self.row_names)), self.row_names, parse_math=False)
        if len(self.feature_names) <= MOST_NAMES:
            turned = {"rotation": 45, "ha": "right", "parse_math": False}
            ax.set_xticks(range(len(self.feature_names)), self.feature_names, **turned)
        else:
            ax.set_xlabel("feature")
        ax.set_ylabel("cluster: point")

    @classmethod
    def from_result(
        cls,
        result: RLSResult,
        X: MatrixLike | None = None,
        *,
        count: int = 3,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the exemplars of a result of the RLS family.

        Parameters
        ----------
        X : (n, d) array_like or sparse matrix, optional
            The points; None: those that the result remembers, as in :class:`ClusterDisplay`.
        count : int, default=3
            How many points of each cluster, all if it has fewer.

        Raises
        ------
        ValueError
            If X does not fit the result, or is needed and not given.
        """
        check_result(result, RLSResult, "fastmmc.umc_rls")
        count = validation.check_integer("count", count, least=1)
        points = check_points(result, X)
        shown = [(h, i) for h, members in enumerate(result.exemplars) for i in members[:count]]
        rows = points[[i for _, i in shown]]
        if issparse(points):
            mean, variance = mean_variance_axis(points, axis=0)
            rows = rows.toarray()
        else:
            mean, variance = points.mean(axis=0), points.var(axis=0)
        values = (rows - mean) / np.sqrt(np.where(variance > 0, variance, 1.0))
        names = feature_names(known_names(result, X), points.shape[1])
        return cls(values, [f"{h}: {i}" for h, i in shown], names).plot(ax, **kwargs)


@dataclass(eq=False, repr=False)
class InfluenceDisplay(Display, drawn_by="barh", such_as="``color``"):
    """Bars of how much of a clustering hangs on each feature, the most influential on top.

    The lines are standard deviations over the shuffles.

    Parameters
    ----------
    feature_names : sequence of str
        Names of the features, the most influential first.
    shares : (m,) float array
        Share of the points that change their cluster if the feature is shuffled.
    deviations : (m,) float array
        Standard deviations over the shuffles.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> result = fastmmc.umc_rls(X, 3, n_init=3, random_state=0)
    >>> influence = fastmmc.feature_influence(result, X, random_state=0)
    >>> fastmmc.plotting.InfluenceDisplay.from_influence(influence).feature_names[0]
    'feature 2'
    """

    feature_names: Sequence[str]
    shares: np.ndarray
    deviations: np.ndarray

    def _draw(self, ax, **kwargs):
        at = np.arange(len(self.shares))
        style = {"xerr": self.deviations, "color": COLORS[0], "ecolor": "0.4"}
        ax.barh(at, self.shares, **(style | kwargs))
        ax.set_yticks(at, self.feature_names, parse_math=False)
        ax.invert_yaxis()
        ax.set(xlim=(0.0, None), xlabel="share of points that change their cluster")

    @classmethod
    def from_influence(
        cls, influence: FeatureInfluence, *, most: int = 10, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw what :func:`fastmmc.feature_influence` returned.

        Parameters
        ----------
        influence : FeatureInfluence
            Of all features.
        most : int, default=10
            How many features to show.

        Raises
        ------
        TypeError
            If it is not an influence of features.
        """
        check_result(influence, FeatureInfluence, "fastmmc.feature_influence", "influence")
        most = validation.check_integer("most", most, least=1)
        names = feature_names(influence.feature_names_in, influence.shares.size)
        order = np.argsort(-influence.shares, kind="stable")[:most]
        shown = [names[i] for i in order]
        return cls(shown, influence.shares[order], influence.deviations[order]).plot(ax, **kwargs)
