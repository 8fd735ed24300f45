"""Pictures of clusterings, in the manner of scikit-learn's Display objects."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.utils import check_array
from sklearn.utils.sparsefuncs import mean_variance_axis
from sklearn.utils.validation import check_is_fitted

from fastmmc import validation
from fastmmc._clusterer import Clusterer
from fastmmc._docs import insert_section
from fastmmc._names import column_names
from fastmmc._typing import MatrixLike
from fastmmc.choice import LEAST_ERROR, Candidate, ChoiceResult
from fastmmc.execution import fixed_seed, restart_stream
from fastmmc.factors import factor
from fastmmc.influence import FeatureInfluence
from fastmmc.parameters import RandomState
from fastmmc.results import ClusteringResult, RLSResult, SegmentationResult, Tree, TreeResult
from fastmmc.rls import umc_rls
from fastmmc.sizes import balanced_random_labels

# The colours of Okabe and Ito, which colour-blind readers can tell apart, without the yellow, which
# is lost on white. Further clusters reuse the colours with the next marker.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "^", "s", "v", "D", "P", "X", "<", ">")

# With more clusters there is no legend. The area is that of a point, in square points.
LEGEND_MOST = 12
LARGEST_POINT = 36

# Clusters of the largest tree that is drawn, and the inches that a cluster and a level need.
MOST_LEAVES = 100
LEAF_WIDTH, LEVEL_HEIGHT = 0.42, 0.5

# Areas of points whose votes are least and most, in square points.
VOTE_AREAS = (5, 50)

# What marks the winner.
RING = {"s": 200, "facecolors": "none", "edgecolors": "black"}

# Of more features the names are not written beside a table.
MOST_NAMES = 40

# What a history is drawn against: the first of these that the trace counts.
UNITS = ("generations", "splits", "iterations", "moves", "objects", "rounds")


def import_pyplot() -> Any:
    """Import matplotlib.pyplot, or say how to install it.

    Returns
    -------
    module
        ``matplotlib.pyplot``.

    Raises
    ------
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> import_pyplot().__name__
    'matplotlib.pyplot'
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plotting needs matplotlib (python -m pip install matplotlib)") from error
    return plt


class _Display:
    """A display in one Axes, drawn by ``_draw(ax, **kwargs)``.

    A subclass says which method of matplotlib's Axes takes the other arguments of ``plot``; what
    all displays have in common is added to its docs.
    """

    _ax = "ax : matplotlib.axes.Axes, optional\n    Where to draw; None: a new figure."
    _attributes = """\
ax_ : matplotlib.axes.Axes
    The Axes that it was drawn in.
figure_ : matplotlib.figure.Figure
    The figure that holds it."""
    _draw: Callable[..., None]

    def __init_subclass__(cls, drawn_by: str = "") -> None:
        if not drawn_by:
            return
        cls.__doc__ = insert_section(inspect.getdoc(cls), "Attributes", cls._attributes)
        function = next(f for name, f in vars(cls).items() if name.startswith("from_")).__func__
        kwargs = f"**kwargs\n    For :meth:`matplotlib.axes.Axes.{drawn_by}`."
        text = inspect.getdoc(function)
        text = insert_section(text, "Returns", f"{cls.__name__}\n    Already drawn.")
        text = insert_section(text, "Other Parameters", f"{cls._ax}\n{kwargs}")
        text = insert_section(text, "Raises", "ImportError\n    If matplotlib is not installed.")
        function.__doc__ = text

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, or array_like of them
            Where to draw, one for each panel if there are several; None: a new figure.
        **kwargs
            For the method of matplotlib's Axes that the class names.

        Returns
        -------
        Display
            Itself.

        Raises
        ------
        ValueError
            If the number of axes is not the number of panels.
        ImportError
            If matplotlib is not installed.
        """
        self._plot(ax, **kwargs)
        return self

    def _plot(self, ax, **kwargs):
        ax = self._new_axes() if ax is None else ax
        self._draw(ax, **kwargs)
        ax.spines[["top", "right"]].set_visible(False)
        self.ax_ = ax
        self.figure_ = ax.figure

    def _new_axes(self):
        return import_pyplot().subplots(layout="constrained")[1]


class _FromEstimator:
    """What displays of results offer to those who have an estimator."""

    from_result: Callable[..., Any]

    @classmethod
    def from_estimator(cls, estimator: Clusterer, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw what a fitted estimator has found.

        Parameters
        ----------
        estimator : estimator
            After ``fit``; its ``result_`` is drawn.
        ax, **kwargs
            As :meth:`from_result` takes them.

        Returns
        -------
        Display
            Already drawn.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the estimator has no ``result_``, as before ``fit``, or after ``partial_fit`` alone.
        ValueError, TypeError, ImportError
            As :meth:`from_result`, or if it is not an estimator of this package.
        """
        return cls.from_result(_result_of(estimator), ax=ax, **kwargs)


class _PanelsDisplay(_Display):
    """A display in several Axes, each drawn by ``_draw(ax, index, **kwargs)``."""

    _ax = (
        "ax : array_like of matplotlib.axes.Axes, optional\n"
        "    One for each panel; None: a new figure."
    )
    _attributes = """\
axes_ : (panels,) array of matplotlib.axes.Axes
    The Axes that they were drawn in.
figure_ : matplotlib.figure.Figure
    The figure that holds them."""
    _panels: Callable[[], tuple[Sequence[str], str]]

    def _plot(self, ax, **kwargs):
        axes = np.ravel(self._new_axes() if ax is None else ax)
        titles, wanted = self._panels()
        if axes.size != len(titles):
            raise ValueError(f"ax must hold {wanted}; got {axes.size}")
        for index, (panel, title) in enumerate(zip(axes, titles, strict=True)):
            self._draw(panel, index, **kwargs)
            panel.set_title(title)
        self.axes_ = axes
        self.figure_ = axes[0].figure


@dataclass(eq=False, repr=False)
class ClusterDisplay(_FromEstimator, _Display, drawn_by="scatter"):
    """Scatter plot of clusters.

    Usually made by :meth:`from_result` or :meth:`from_estimator`. It is drawn by
    :meth:`matplotlib.axes.Axes.scatter`, which takes the other arguments of ``plot``, as ``s`` and
    ``alpha``.

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
    >>> from fastmmc.plotting import ClusterDisplay
    >>> X, y = fastmmc.datasets.load("iris")
    >>> result = fastmmc.umc_rls(X, 3, n_init=3, random_state=0)
    >>> ClusterDisplay.from_result(result).ax_.get_xlabel()
    'principal component 1 (92% of variance)'
    """

    points: np.ndarray
    labels: np.ndarray
    axis_names: Sequence[str]

    def _draw(self, ax, **kwargs):
        k = int(self.labels.max()) + 1
        _draw_clusters(ax, self.points, self.labels, k, **kwargs)
        ax.set_xlabel(self.axis_names[0])
        if len(self.axis_names) == 1:
            ax.set_ylabel("cluster")
            ax.yaxis.get_major_locator().set_params(integer=True)
        else:
            ax.set_ylabel(self.axis_names[1])
        if k <= LEGEND_MOST:
            _draw_legend(ax, "cluster: size")

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
        result : ClusteringResult
            What a solver returned.
        X : (n, d) array_like or sparse matrix, optional
            The points; None: those that the result remembers, which it does if it was made with a
            dense hat matrix (``umc_rls`` up to 10,000 points, ``evo_mmc``).

        Raises
        ------
        ValueError
            If X does not fit the result, or is needed and not given.
        TypeError
            If it is not a result.
        """
        _check_result(result, ClusteringResult, "fastmmc.umc_rls")
        points = _check_points(result, X)
        names = None if X is None else column_names(X)
        points, axis_names = _project(points, result.feature_names_in if names is None else names)
        return cls(points, result.labels, axis_names).plot(ax, **kwargs)

    @classmethod
    def from_estimator(
        cls, estimator: Clusterer, X: MatrixLike | None = None, *, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw what a fitted estimator has found.

        Parameters
        ----------
        estimator : estimator
            After ``fit``; its ``result_`` is drawn.
        X, ax, **kwargs
            As :meth:`from_result` takes them.

        Returns
        -------
        ClusterDisplay
            Already drawn.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the estimator has no ``result_``, as before ``fit``, or after ``partial_fit`` alone.
        ValueError, TypeError, ImportError
            As :meth:`from_result`, or if it is not an estimator of this package.
        """
        return cls.from_result(_result_of(estimator), X, ax=ax, **kwargs)


@dataclass(eq=False, repr=False)
class ObjectiveDisplay(_FromEstimator, _Display, drawn_by="plot"):
    """Line plot of the objective of the winning start against its moves, generations or rounds.

    Usually made by :meth:`from_result` or :meth:`from_estimator`. It is drawn by
    :meth:`matplotlib.axes.Axes.plot`, which takes the other arguments of ``plot``, as ``label`` and
    ``color``. Several results can share one Axes.

    Parameters
    ----------
    steps : (T,) int array
        Moves, generations, rounds or whatever the method counts, so far.
    objective : (T,) float array
        Objective after these steps.
    unit : str, default="moves"
        What a step is.

    Attributes
    ----------
    line_ : matplotlib.lines.Line2D
        The line.

    Examples
    --------
    >>> import fastmmc
    >>> from fastmmc.plotting import ObjectiveDisplay
    >>> X, y = fastmmc.datasets.load("moons")
    >>> result = fastmmc.umc_rls(X, 2, random_state=0)
    >>> display = ObjectiveDisplay.from_result(result)
    >>> display.ax_.get_xlabel(), display.ax_.get_ylabel()
    ('moves', 'objective')
    """

    steps: np.ndarray
    objective: np.ndarray
    unit: str = "moves"

    def _draw(self, ax, **kwargs):
        style = {"marker": "o"} if len(self.steps) == 1 else {}
        (self.line_,) = ax.plot(self.steps, self.objective, **(style | kwargs))
        ax.set_xlabel(self.unit)
        ax.set_ylabel("objective")

    @classmethod
    def from_result(cls, result: ClusteringResult, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the history of a result.

        Parameters
        ----------
        result : ClusteringResult
            What a solver returned.

        Raises
        ------
        ValueError
            If the result has no history, as after a stop before its first entry.
        TypeError
            If it is not a result.
        """
        _check_result(result, ClusteringResult, "fastmmc.umc_rls")
        if not result.history.size:
            raise ValueError(
                f"the result has no history: its run ended ({result.status.name}) before the "
                "first entry; give it more time"
            )
        unit = next((unit for unit in UNITS if unit in result.trace), "rounds")
        steps = result.trace.get(unit, np.arange(1, result.history.size + 1))
        return cls(steps, result.history, unit).plot(ax, **kwargs)


@dataclass(eq=False, repr=False)
class ChoiceDisplay(_FromEstimator, _PanelsDisplay, drawn_by="scatter"):
    """The labellings that :func:`fastmmc.cluster` tried, and the numbers of clusters.

    The first panel has the leave-one-out error of each labelling against its width, those of a
    width side by side; a point is the larger, the more votes the labelling got, and a ring marks
    the one that won. With ``k="auto"``
    two panels more have, for each number of clusters, the score, whose largest value wins, and the
    error. Usually made by :meth:`from_result` or :meth:`from_estimator`. It is drawn by
    :meth:`matplotlib.axes.Axes.scatter`, which takes the other arguments of ``plot``, as ``alpha``.

    Parameters
    ----------
    candidates : sequence of Candidate
        The labellings.
    winner : Candidate
        The one that won.
    scores : dict of int to float
        Scores of the numbers of clusters; empty if the number was given.
    errors : dict of int to float
        Their errors.

    Examples
    --------
    >>> import fastmmc
    >>> from fastmmc.plotting import ChoiceDisplay
    >>> X, y = fastmmc.datasets.load("moons")
    >>> display = ChoiceDisplay.from_result(fastmmc.cluster(X, max_k=4, random_state=0))
    >>> [ax.get_title() for ax in display.axes_]
    ['2 clusters', 'score of each k', 'error of each k']
    >>> [ax.get_xlabel() for ax in display.axes_]
    ['width sigma', 'k', 'k']
    """

    candidates: Sequence[Candidate]
    winner: Candidate
    scores: dict[int, float]
    errors: dict[int, float]

    def _new_axes(self):
        panels = len(self._panels()[0])
        widths = (2.0, 1.0, 1.0)[:panels]  # the legend needs room
        size = (3.6 * sum(widths), 4.0)
        options = {"width_ratios": widths, "layout": "constrained"}
        return import_pyplot().subplots(1, panels, figsize=size, **options)[1]

    def _panels(self):
        """Return the titles of the panels, and what ``ax`` must hold."""
        k = int(self.winner.labels.max()) + 1
        first = f"{k} cluster{'s' * (k != 1)}"
        if not self.scores:
            return [first], "one Axes"
        return [first, "score of each k", "error of each k"], "three Axes"

    def _draw(self, ax, index, **kwargs):
        if index == 0:
            self._draw_widths(ax, **kwargs)
        else:
            name = ("score", "error")[index - 1]
            self._draw_numbers(ax, getattr(self, f"{name}s"), name, **kwargs)
        ax.spines[["top", "right"]].set_visible(False)

    def _draw_widths(self, ax, **kwargs):
        widths = sorted({one.sigma for one in self.candidates})
        rules = sorted({one.rule for one in self.candidates})

        def places(candidates):
            x = [
                widths.index(one.sigma) + 0.8 * ((rules.index(one.rule) + 0.5) / len(rules) - 0.5)
                for one in candidates
            ]
            return x, [max(one.criterion, LEAST_ERROR) for one in candidates]

        for i, rule in enumerate(rules):
            own = [one for one in self.candidates if one.rule == rule]
            look = {"color": COLORS[i % len(COLORS)], "marker": MARKERS[i % len(MARKERS)]}
            style = look | {"alpha": 0.7, "label": rule}
            style["s"] = [np.interp(one.vote, (0.0, 1.0), VOTE_AREAS) for one in own]
            ax.scatter(*places(own), **(style | kwargs))
        winner = f"won: {self.winner.rule}, vote {self.winner.vote:.2f}"
        ax.scatter(*places([self.winner]), **RING, label=winner)
        ax.set_xticks(range(len(widths)), [f"{sigma:.3g}" for sigma in widths])
        ax.set(yscale="log", xlabel="width sigma", ylabel="leave-one-out error")
        _draw_legend(ax, "rule (larger: more votes)")

    def _draw_numbers(self, ax, values, name, **kwargs):
        numbers, height = list(values), list(values.values())
        best = max(self.scores, key=self.scores.__getitem__)
        ax.plot(numbers, height, color="0.6", lw=1, zorder=1)
        ax.scatter(numbers, height, **({"s": LARGEST_POINT, "color": COLORS[0]} | kwargs))
        ax.scatter(best, values[best], **RING)
        ax.set(xlabel="k", ylabel=name, yscale="log" if name == "error" else "linear")
        ax.xaxis.get_major_locator().set_params(integer=True)

    @classmethod
    def from_result(cls, result: ChoiceResult, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw what a choice was made from.

        Parameters
        ----------
        result : ChoiceResult
            What :func:`fastmmc.cluster` returned.

        Raises
        ------
        ValueError
            If ``ax`` does not hold one Axes, or three where the number of clusters was chosen.
        TypeError
            If it is not the result of a choice.
        """
        _check_result(result, ChoiceResult, "fastmmc.cluster")
        return cls(result.candidates, result.winner, result.scores, result.errors).plot(
            ax, **kwargs
        )


@dataclass(eq=False, repr=False)
class SegmentationDisplay(_PanelsDisplay, drawn_by="imshow"):
    """A picture beside its segments, each in its mean colour.

    Usually made by :meth:`from_result`. Its two panels are drawn by
    :meth:`matplotlib.axes.Axes.imshow`, which takes the other arguments of ``plot``, as
    ``interpolation``.

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
    >>> from fastmmc.plotting import SegmentationDisplay
    >>> image = np.arange(96, dtype=np.uint8).reshape(8, 12)
    >>> display = SegmentationDisplay.from_result(fastmmc.segment(image, 2), image)
    >>> [ax.get_title() for ax in display.axes_]
    ['picture', '2 segments']
    """

    image: np.ndarray
    segments: np.ndarray
    k: int

    def _new_axes(self):
        height, width = self.image.shape[:2]
        size = (8.0, np.clip(4.0 * height / width, 1.0, 12.0) + 0.4)
        return import_pyplot().subplots(1, 2, figsize=size, layout="constrained")[1]

    def _panels(self):
        """Return the titles of the panels, and what ``ax`` must hold."""
        return ("picture", f"{self.k} segment{'s' * (self.k != 1)}"), "two Axes"

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
        result : SegmentationResult
            What :func:`fastmmc.segment` returned.
        image : (H, W) or (H, W, channels) array_like
            The picture it was given.

        Raises
        ------
        ValueError
            If the image does not fit the result.
        TypeError
            If it is not the result of a segmentation.
        """
        _check_result(result, SegmentationResult, "fastmmc.segment")
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


@dataclass(eq=False, repr=False)
class ShakingDisplay(_PanelsDisplay, drawn_by="scatter"):
    """Panels of what the rounds of shaking do to the labels of one start of UMC-RLS.

    Usually made by :meth:`from_points`. The panels, three a row in a new figure, are drawn by
    :meth:`matplotlib.axes.Axes.scatter`, which takes the other arguments of ``plot``.

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
    >>> from fastmmc.plotting import ShakingDisplay
    >>> X, y = fastmmc.datasets.load("moons")
    >>> display = ShakingDisplay.from_points(X, 4, rounds=(0, 20))
    >>> [ax.get_title() for ax in display.axes_]
    ['start', 'after round 0', 'after round 20']
    """

    points: np.ndarray
    labels: list[np.ndarray]
    titles: list[str]

    def _new_axes(self):
        panels = len(self.labels)
        columns = min(panels, 3)
        rows = -(-panels // columns)
        _, axes = import_pyplot().subplots(
            rows, columns, figsize=(2.6 * columns, 2.5 * rows), squeeze=False, layout="constrained"
        )
        for spare in axes.ravel()[panels:]:
            spare.remove()
        return axes.ravel()[:panels]

    def _panels(self):
        """Return the titles of the panels, and what ``ax`` must hold."""
        return self.titles, f"one Axes for each of {len(self.labels)} panels"

    def _draw(self, ax, index, **kwargs):
        k = int(max(labels.max() for labels in self.labels)) + 1
        _draw_clusters(ax, self.points, self.labels[index], k, **kwargs)
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
        k = validation.check_integer("k", k, least=1, most=F.n, why=", the number of points")
        seed = fixed_seed(random_state)
        labels = [balanced_random_labels(F.n, k, restart_stream(seed, 0))]
        for i in rounds:
            # A round is the same whatever follows it. With min_size=0 no point is moved after the
            # last round, so these are the labels that the shaking left. A balance of k bounds no
            # size.
            result = umc_rls(
                F, k, n_rounds=i + 1, min_size=0, balance=k, n_init=1, random_state=seed
            )
            labels.append(result.labels)
        titles = ["start"] + [f"after round {i}" for i in rounds]
        return cls(_project(F.X)[0], labels, titles).plot(ax, **kwargs)


@dataclass(eq=False, repr=False)
class TreeDisplay(_FromEstimator, _Display, drawn_by="text"):
    """Drawing of the splits of a recursive clustering, with the sizes of their parts.

    The root is on top, each cluster below in its colour. Usually made by :meth:`from_result` or
    :meth:`from_estimator`. The sizes are drawn by :meth:`matplotlib.axes.Axes.text`, which takes
    the other arguments of ``plot``, as ``fontsize``. A new figure is as large as the tree needs.

    Parameters
    ----------
    tree : Tree
        The splits.

    Examples
    --------
    >>> import fastmmc
    >>> from fastmmc.plotting import TreeDisplay
    >>> X, y = fastmmc.datasets.load("iris")
    >>> result = fastmmc.recursive_mmc(X, 3, random_state=0)
    >>> display = TreeDisplay.from_result(result)
    >>> display.ax_.get_xlabel(), len(display.ax_.texts)
    ('cluster', 5)
    """

    tree: Tree

    def _new_axes(self):
        nodes = self.tree.nodes
        width = max(6.4, LEAF_WIDTH * _count_leaves(nodes))
        height = max(4.8, LEVEL_HEIGHT * max(node.depth for node in nodes))
        return import_pyplot().subplots(figsize=(width, height), layout="constrained")[1]

    def _draw(self, ax, **kwargs):
        nodes = self.tree.nodes
        places = _tree_places(nodes)
        style = {"ha": "center", "va": "center", "fontsize": "small"}
        for node, (x, y) in zip(nodes, places, strict=True):
            if node.label is None:
                (left, below), (right, lower) = places[node.left], places[node.right]
                ax.plot(
                    [left, left, right, right], [below, y, y, lower], color="0.6", lw=1, zorder=1
                )
            color = "0.4" if node.label is None else COLORS[node.label % len(COLORS)]
            box = {"boxstyle": "round", "facecolor": "white", "edgecolor": color}
            ax.text(x, y, str(node.size), **(style | {"bbox": box} | kwargs))
        depth = max(node.depth for node in nodes)
        ax.set(xlim=(-0.6, _count_leaves(nodes) - 0.4), ylim=(depth + 0.4, -0.4), yticks=[])
        ax.set_xlabel("cluster")
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.spines["left"].set_visible(False)

    @classmethod
    def from_result(cls, result: TreeResult, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the tree of a result.

        Parameters
        ----------
        result : TreeResult
            What :func:`fastmmc.recursive_mmc` returned.

        Raises
        ------
        TypeError
            If it is not the result of recursive splitting.
        ValueError
            If there are more than 100 clusters.
        """
        _check_result(result, TreeResult, "fastmmc.recursive_mmc")
        clusters = _count_leaves(result.tree.nodes)
        if clusters > MOST_LEAVES:
            raise ValueError(
                f"trees of at most {MOST_LEAVES} clusters can be drawn; got one of {clusters}: "
                "print(result.tree) shows it as text"
            )
        return cls(result.tree).plot(ax, **kwargs)


def _count_leaves(nodes):
    """Return the number of clusters of a tree."""
    return sum(node.label is not None for node in nodes)


def _tree_places(nodes):
    """Return (x, y) of the nodes: leaves at their labels, the others between their parts."""
    x = [0.0] * len(nodes)
    # The parts of a node come after it.
    for i in reversed(range(len(nodes))):
        node = nodes[i]
        x[i] = (x[node.left] + x[node.right]) / 2 if node.label is None else float(node.label)
    return [(x[i], node.depth) for i, node in enumerate(nodes)]


def _check_result(result, kind, maker):
    """Raise an error unless a result is of this kind."""
    if isinstance(result, kind):
        return
    what = f"result must be a {kind.__name__}, as {maker} returns"
    if isinstance(result, Clusterer):
        what += "; from_estimator draws a fitted estimator, where there is one"
    raise TypeError(f"{what}; got a {type(result).__name__}")


def _result_of(estimator):
    """Return the result of a fitted estimator."""
    if not isinstance(estimator, Clusterer):
        advice = "; from_result draws a result" if isinstance(estimator, ClusteringResult) else ""
        raise TypeError(
            "estimator must be one of fastmmc, such as fastmmc.UMCRLS; "
            f"got a {type(estimator).__name__}{advice}"
        )
    check_is_fitted(
        estimator,
        "result_",
        msg="this %(name)s has no result to draw, which fit makes; partial_fit alone makes none",
    )
    return estimator.result_


def _check_points(result, X):
    """Return the points of a result, X or those that it remembers, as a matrix."""
    points = check_array(
        _points_of(result) if X is None else X,
        dtype=[np.float64, np.float32],
        accept_sparse="csr",
        input_name="X",
    )
    n = result.labels.shape[0]
    if points.shape[0] != n:
        raise ValueError(f"X must have the {n} points of the result; got shape {points.shape}")
    return points


def _points_of(result):
    """Return the points that a result remembers, which only a dense hat matrix needs."""
    if result.params.get("kernel") == "precomputed":
        raise ValueError("X is missing: with a precomputed kernel the result has no points")
    if not isinstance(result, RLSResult) or result.params["rank"] is not None:
        raise ValueError(
            "X is missing: this result does not remember its points; give them as "
            "from_result(result, X)"
        )
    if (result.labels < 0).any():
        raise ValueError("X is missing: the result has no points that were left out; give all")
    return result.model.points


def _project(X, names=None):
    """Return positions in at most two dimensions, and the names of the axes.

    ``names`` are those of the columns, if there are as many.
    """
    n, d = X.shape
    if d <= 2 or n < 2:
        points = X[:, :2]
        points = points.toarray() if issparse(points) else points
        if names is None or len(names) != d:
            names = [f"feature {i}" for i in range(d)]
        return points, list(names[:2])
    way, name = (TruncatedSVD, "singular") if issparse(X) else (PCA, "principal")
    way = way(2, random_state=0)
    # The variance of equal points is 0.
    with np.errstate(invalid="ignore"):
        points = way.fit_transform(X)
    shares = np.nan_to_num(way.explained_variance_ratio_)
    return points, [
        f"{name} component {i + 1} ({share:.0%} of variance)" for i, share in enumerate(shares)
    ]


def _draw_clusters(ax, points, labels, k, **kwargs):
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


def _draw_legend(ax, title):
    """Draw a legend of points beside the axes, where it hides nothing."""
    legend = ax.legend(title=title, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    for handle in legend.legend_handles:
        handle.set_sizes([LARGEST_POINT])


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


@dataclass(eq=False, repr=False)
class MarginDisplay(_Display, drawn_by="fill_betweenx"):
    """The margins of all points, cluster by cluster, in the manner of a silhouette plot.

    Usually made by :meth:`from_result`. Each cluster is a blade, its surest points on top; what
    lies left of 0 would suit another cluster better. The dashed line is the mean. The blades are
    drawn by :meth:`matplotlib.axes.Axes.fill_betweenx`, which takes the other arguments of
    ``plot``, as ``alpha``.

    Parameters
    ----------
    margins : (n,) float array
        Margins of the points.
    labels : (n,) int array
        Clusters 0..k-1, -1 of points that are not drawn.

    Examples
    --------
    >>> import fastmmc
    >>> from fastmmc.plotting import MarginDisplay
    >>> X, y = fastmmc.datasets.load("iris")
    >>> result = fastmmc.umc_rls(X, 3, n_init=3, random_state=0)
    >>> MarginDisplay.from_result(result).ax_.get_xlabel()
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
        """Draw the margins of a result.

        Parameters
        ----------
        result : RLSResult
            What a solver of the RLS family returned.

        Raises
        ------
        TypeError
            If it is not the result of such a solver.
        """
        _check_result(result, RLSResult, "fastmmc.umc_rls")
        return cls(result.margins, result.labels).plot(ax, **kwargs)


@dataclass(eq=False, repr=False)
class ExemplarDisplay(_Display, drawn_by="imshow"):
    """A table in colours of the features of each cluster's most typical points.

    Usually made by :meth:`from_result`. A colour tells by how many standard deviations a value is
    above or below the mean of its feature. It is drawn by :meth:`matplotlib.axes.Axes.imshow`,
    which takes the other arguments of ``plot``, as ``cmap``.

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
    >>> from fastmmc.plotting import ExemplarDisplay
    >>> X, y = fastmmc.datasets.load("iris")
    >>> result = fastmmc.umc_rls(X, 3, n_init=3, random_state=0)
    >>> display = ExemplarDisplay.from_result(result, count=2)
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
        ax.set_yticks(range(len(self.row_names)), self.row_names)
        if len(self.feature_names) <= MOST_NAMES:
            ax.set_xticks(
                range(len(self.feature_names)), self.feature_names, rotation=45, ha="right"
            )
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
        """Draw the exemplars of a result.

        Parameters
        ----------
        result : RLSResult
            What a solver of the RLS family returned.
        X : (n, d) array_like or sparse matrix, optional
            The points; None: those that the result remembers, as in :class:`ClusterDisplay`.
        count : int, default=3
            How many points of each cluster, all if it has fewer.

        Raises
        ------
        ValueError
            If X does not fit the result, or is needed and not given.
        TypeError
            If it is not the result of such a solver.
        """
        _check_result(result, RLSResult, "fastmmc.umc_rls")
        count = validation.check_integer("count", count, least=1)
        points = _check_points(result, X)
        shown = [(h, i) for h, members in enumerate(result.exemplars) for i in members[:count]]
        rows = points[[i for _, i in shown]]
        if issparse(points):
            mean, variance = mean_variance_axis(points, axis=0)
            rows = rows.toarray()
        else:
            mean, variance = points.mean(axis=0), points.var(axis=0)
        values = (rows - mean) / np.sqrt(np.where(variance > 0, variance, 1.0))
        names = _feature_names(result.feature_names_in, points.shape[1])
        return cls(values, [f"{h}: {i}" for h, i in shown], names).plot(ax, **kwargs)


@dataclass(eq=False, repr=False)
class InfluenceDisplay(_Display, drawn_by="barh"):
    """Bars of how much of a clustering hangs on each feature, the most influential on top.

    Usually made by :meth:`from_influence`. It is drawn by :meth:`matplotlib.axes.Axes.barh`, which
    takes the other arguments of ``plot``, as ``color``. The lines are standard deviations over the
    shuffles.

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
    >>> from fastmmc.plotting import InfluenceDisplay
    >>> X, y = fastmmc.datasets.load("iris")
    >>> result = fastmmc.umc_rls(X, 3, n_init=3, random_state=0)
    >>> influence = fastmmc.feature_influence(result, X, random_state=0)
    >>> InfluenceDisplay.from_influence(influence).feature_names[0]
    'feature 2'
    """

    feature_names: Sequence[str]
    shares: np.ndarray
    deviations: np.ndarray

    def _draw(self, ax, **kwargs):
        at = np.arange(len(self.shares))
        style = {"xerr": self.deviations, "color": COLORS[0], "ecolor": "0.4"}
        ax.barh(at, self.shares, **(style | kwargs))
        ax.set_yticks(at, self.feature_names)
        ax.invert_yaxis()
        ax.set_xlim(left=0.0)
        ax.set_xlabel("share of points that change their cluster")

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
        if not isinstance(influence, FeatureInfluence):
            raise TypeError(
                "influence must be a FeatureInfluence, as fastmmc.feature_influence returns; "
                f"got a {type(influence).__name__}"
            )
        most = validation.check_integer("most", most, least=1)
        names = _feature_names(influence.feature_names_in, influence.shares.size)
        order = np.argsort(-influence.shares, kind="stable")[:most]
        shown = [names[i] for i in order]
        return cls(shown, influence.shares[order], influence.deviations[order]).plot(ax, **kwargs)


def _feature_names(known, d):
    """Return the names of d features, made up where none are known."""
    return [f"feature {i}" for i in range(d)] if known is None else [str(name) for name in known]
