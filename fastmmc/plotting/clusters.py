"""Clusters as points, while they are shaken, and as segments of a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.decomposition import PCA, TruncatedSVD

from fastmmc.core import validation
from fastmmc.core.column_names import feature_names
from fastmmc.core.execution import fixed_seed, restart_stream
from fastmmc.core.parameters import RandomState
from fastmmc.core.results import ClusteringResult, SegmentationResult
from fastmmc.core.types import MatrixLike
from fastmmc.core.words import counted
from fastmmc.data.sizes import balanced_random_labels
from fastmmc.kernels.factors import factor
from fastmmc.plotting.base import (
    COLORS,
    LARGEST_POINT,
    MARKERS,
    Display,
    PanelsDisplay,
    ResultDisplay,
    check_points,
    check_result,
    draw_legend,
    known_names,
)
from fastmmc.rls import umc_rls

# With more clusters there is no legend.
LEGEND_MOST = 12


@dataclass(eq=False, repr=False)
class ClusterDisplay(ResultDisplay, Display, drawn_by="scatter", such_as="``s`` and ``alpha``"):
    """Scatter plot of clusters.

    Parameters
    ----------
    points : (n, 1) or (n, 2) array
        Positions; from one column the clusters are drawn one above the other.
    labels : (n,) int array
        Clusters 0..k-1. Up to 63 of them each have a colour and marker of their own. -1: a grey
        cross, of a point that was left out.
    axis_names : sequence of str
        Names of the columns of ``points``.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> result = fastmmc.umc_rls(X, 3, n_init=3, random_state=0)
    >>> fastmmc.plotting.ClusterDisplay.from_result(result).ax_.get_xlabel()
    'principal component 1 (92% of variance)'
    """

    points: np.ndarray
    labels: np.ndarray
    axis_names: Sequence[str]

    def _draw(self, ax, **kwargs):
        k = int(self.labels.max()) + 1
        draw_clusters(ax, self.points, self.labels, k, **kwargs)
        ax.set_xlabel(self.axis_names[0], parse_math=False)
        if len(self.axis_names) == 1:
            ax.set_ylabel("cluster")
            ax.yaxis.get_major_locator().set_params(integer=True)
        else:
            ax.set_ylabel(self.axis_names[1], parse_math=False)
        if k <= LEGEND_MOST:
            draw_legend(ax, "cluster: size")

    @classmethod
    def from_result(
        cls,
        result: ClusteringResult,
        X: MatrixLike | None = None,
        *,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw a result in the first two principal components of its points.

        Points of one or two features are drawn as they are, with the names of these, sparse points
        of more features in the first two components of a truncated singular value decomposition,
        which does not centre.

        Parameters
        ----------
        X : (n, d) array_like or sparse matrix, optional
            The points; None: those that the result remembers, which it does if it was made with a
            dense hat matrix (``umc_rls`` up to 3,000 points, ``evo_mmc``).

        Raises
        ------
        ValueError
            If X does not fit the result, or is needed and not given.
        """
        check_result(result, ClusteringResult, "fastmmc.umc_rls")
        points = check_points(result, X)
        points, axis_names = project(points, known_names(result, X))
        return cls(points, result.labels, axis_names).plot(ax, **kwargs)


@dataclass(eq=False, repr=False)
class ShakingDisplay(PanelsDisplay, drawn_by="scatter", such_as="``alpha``"):
    """Panels of what the rounds of shaking do to the labels of one start of UMC-RLS.

    In a new figure there are three panels a row.

    Parameters
    ----------
    points : (n, 1) or (n, 2) array
        Positions.
    labels : list of (n,) int arrays
        Labels of each panel.
    titles : list of str
        Its title.

    References
    ----------
    T. Pahikkala, A. Airola, F. Gieseke, O. Kramer, Unsupervised multi-class regularized
    least-squares classification, ICDM 2012, figure 4.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("moons")
    >>> display = fastmmc.plotting.ShakingDisplay.from_points(X, 4, rounds=(0, 20))
    >>> [ax.get_title() for ax in display.axes_]
    ['start', 'after round 0', 'after round 20']
    """

    points: np.ndarray
    labels: list[np.ndarray]
    titles: list[str]

    def _figure(self):
        columns = min(len(self.labels), 3)
        rows = -(-len(self.labels) // columns)
        size = (2.6 * columns, 2.5 * rows)
        return {"nrows": rows, "ncols": columns, "figsize": size, "squeeze": False}

    def _new_axes(self):
        axes, panels = super()._new_axes().ravel(), len(self.labels)
        for spare in axes[panels:]:
            spare.remove()
        return axes[:panels]

    def _panels(self):
        return self.titles

    def _draw(self, ax, index, **kwargs):
        k = int(max(labels.max() for labels in self.labels)) + 1
        draw_clusters(ax, self.points, self.labels[index], k, **kwargs)
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_color("0.8")

    @classmethod
    def from_points(
        cls,
        X: ArrayLike,
        k: int,
        *,
        rounds: Sequence[int] = (0, 1, 2, 4, 20),
        sigma: float | None = None,
        lam: float = 0.25,
        random_state: RandomState = 0,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Shake one start and draw its labels at the beginning and after some rounds.

        The paper's schedule alone decides the sizes (``min_size=0``).

        Parameters
        ----------
        X : (n, d) array_like
            Points; drawn in two principal components if d > 2.
        k : int
            Number of clusters.
        rounds : sequence of int, default=(0, 1, 2, 4, 20)
            Rounds after which to draw, counted from 0.
        sigma : float, optional
            Width of the Gaussian kernel; None: the median distance.
        lam : float, default=0.25
            Regularisation, > 0.
        random_state : int, SeedSequence, Generator, RandomState or None, default=0
            Draws the start.

        Raises
        ------
        ValueError, TypeError
            If a parameter is out of range or X is not a finite matrix.
        """
        rounds = [validation.check_integer("rounds", i, least=0) for i in rounds]
        F = factor(X, lam=lam, sigma=sigma)
        k = validation.check_cluster_count(k, F.n)
        seed = fixed_seed(random_state)
        labels = [balanced_random_labels(F.n, k, restart_stream(seed, 0))]
        for i in rounds:
            # A round is the same whatever follows it. With min_size=0 no point is moved after the
            # last round, so these are the labels that the shaking left. A balance of k bounds no
            # size.
            result = umc_rls(
                F,
                k,
                method="shaking",
                n_rounds=i + 1,
                min_size=0,
                balance=k,
                n_init=1,
                random_state=seed,
            )
            labels.append(result.labels)
        titles = ["start"] + [f"after round {i}" for i in rounds]
        return cls(project(F.X)[0], labels, titles).plot(ax, **kwargs)


@dataclass(eq=False, repr=False)
class SegmentationDisplay(PanelsDisplay, drawn_by="imshow", such_as="``interpolation``"):
    """A picture beside its segments, each in its mean colour.

    Parameters
    ----------
    image : (H, W) or (H, W, 3) array
        The picture, in 0..1.
    segments : (H, W) or (H, W, 3) array
        The same with its segments painted, in 0..1.
    k : int
        Number of segments, for the title.

    Examples
    --------
    >>> import numpy as np
    >>> import fastmmc
    >>> image = np.arange(96, dtype=np.uint8).reshape(8, 12)
    >>> display = fastmmc.plotting.SegmentationDisplay.from_result(fastmmc.segment(image, 2), image)
    >>> [ax.get_title() for ax in display.axes_]
    ['picture', '2 segments']
    """

    image: np.ndarray
    segments: np.ndarray
    k: int

    def _figure(self):
        height, width = self.image.shape[:2]
        size = (8.0, np.clip(4.0 * height / width, 1.0, 12.0) + 0.4)
        return {"ncols": 2, "figsize": size}

    def _panels(self):
        return "picture", counted(self.k, "segment")

    def _draw(self, ax, index, **kwargs):
        pixels = self.segments if index else self.image
        ax.imshow(pixels, **({"cmap": "gray", "vmin": 0.0, "vmax": 1.0} | kwargs))
        ax.set_axis_off()

    @classmethod
    def from_result(
        cls, result: SegmentationResult, image: ArrayLike, *, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw a picture beside what :func:`fastmmc.segment` made of it.

        One or three channels are drawn in their colours, any other number as the grey of its mean.
        Integers are taken as 0..255 or, with 16 bits, 0..65535; floats as 0..1 or 0..255 if they
        lie there, else their range is stretched.

        Parameters
        ----------
        image : (H, W) or (H, W, channels) array_like
            The picture it was given.

        Raises
        ------
        ValueError
            If the image does not fit the result.
        """
        check_result(result, SegmentationResult, "fastmmc.segment")
        image = np.asarray(image)
        segments = result.paint()
        if image.reshape(*image.shape[:2], -1).shape != (
            *result.label_image.shape,
            result.colors.shape[1],
        ):
            raise ValueError(
                f"image must have the shape {segments.shape} of the one in the result; "
                f"got {image.shape}"
            )
        segments = segments.reshape(image.shape)
        low, high = _find_range(image)
        shown = [_to_shown(pixels, low, high) for pixels in (image, segments)]
        return cls(shown[0], shown[1], len(result.sizes)).plot(ax, **kwargs)


def project(X, names=None):
    """Return positions in at most two dimensions, and names of the axes, from those of columns."""
    n, d = X.shape
    if d <= 2 or n < 2:
        points = X[:, :2]
        points = points.toarray() if issparse(points) else points
        known = names if names is not None and len(names) == d else None
        return points, feature_names(known, d)[:2]
    way, name = (TruncatedSVD, "singular") if issparse(X) else (PCA, "principal")
    way = way(2, random_state=0)
    # The variance of equal points is 0, that of their components may be so but for rounding.
    with np.errstate(invalid="ignore", divide="ignore"):
        points = way.fit_transform(X)
    shares = np.nan_to_num(way.explained_variance_ratio_, posinf=0.0)
    return points, [
        f"{name} component {i + 1} ({share:.0%} of variance)" for i, share in enumerate(shares)
    ]


def draw_clusters(ax, points, labels, k, **kwargs):
    """Scatter the points of each cluster in a colour and marker of its own.

    Where there are more clusters than looks, those of the same look are drawn together.
    """
    style = {"s": np.clip(12000 / labels.size, 6, LARGEST_POINT), "linewidths": 0, "alpha": 0.8}
    y = points[:, 1] if points.shape[1] == 2 else labels
    looks = len(COLORS) * len(MARKERS)
    left_out = labels < 0
    if left_out.any():
        count = f"none: {left_out.sum()}"
        out = {"color": "0.6", "marker": "x", "linewidths": 1, "label": count}
        ax.scatter(points[left_out, 0], y[left_out], **(style | kwargs | out))
    for look in range(min(k, looks)):
        members = ~left_out & (labels % looks == look)
        ax.scatter(
            points[members, 0],
            y[members],
            color=COLORS[look % len(COLORS)],
            marker=MARKERS[look // len(COLORS)],
            label=f"{look}: {members.sum()}",
            **(style | kwargs),
        )


def _find_range(image):
    """Return the values of black and white."""
    if image.dtype in (np.uint8, np.uint16):
        return 0.0, float(np.iinfo(image.dtype).max)
    low, high = float(image.min()), float(image.max())
    for white in (1.0, 255.0):
        if low >= 0.0 and high <= white:
            return 0.0, white
    return low, high


def _to_shown(pixels, low, high):
    """Return one or three channels in 0..1."""
    if pixels.ndim == 3 and pixels.shape[2] != 3:
        pixels = pixels.mean(axis=2)
    return np.clip((pixels - low) / max(high - low, np.finfo(float).tiny), 0.0, 1.0)
