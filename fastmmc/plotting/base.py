"""What all displays share: where they are drawn, their colours and their docs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils import check_array

from fastmmc.core.clusterer import Clusterer, result_of
from fastmmc.core.column_names import column_names
from fastmmc.core.docstrings import insert_paragraph, insert_section
from fastmmc.core.results import ClusteringResult, RLSResult
from fastmmc.core.words import not_installed
from fastmmc.data.frames import refuse_masked

# The colours of Okabe and Ito, which colour-blind readers can tell apart, without the yellow, which
# is lost on white. Further clusters reuse the colours with the next marker.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

MARKERS = ("o", "^", "s", "v", "D", "P", "X", "<", ">")

LARGEST_POINT = 36


def import_pyplot() -> Any:
    """Import matplotlib.pyplot, or say how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise not_installed("plotting needs matplotlib", "matplotlib") from error
    return plt


class Display:
    """A display in one Axes, drawn by ``_draw(ax, **kwargs)``.

    A subclass says which method of matplotlib's Axes takes the other arguments of ``plot``, and
    some of these; what all displays have in common is added to its docs.
    """

    _ax = "ax : matplotlib.axes.Axes, optional\n    Where to draw; None: a new figure."
    _attributes = """\
ax_ : matplotlib.axes.Axes
    The Axes that it was drawn in.
figure_ : matplotlib.figure.Figure
    The figure that holds it."""
    _draw: Callable[..., None]

    def __init_subclass__(cls, drawn_by: str = "", such_as: str = "") -> None:
        if not drawn_by:
            return
        name, made = next((n, f) for n, f in vars(cls).items() if n.startswith("from_"))
        axes_method, function = f":meth:`matplotlib.axes.Axes.{drawn_by}`", made.__func__
        makers = f":meth:`{name}`" + " or :meth:`from_estimator`" * issubclass(cls, ResultDisplay)
        how = f"It is drawn by {axes_method}, which takes the other arguments of ``plot``,"
        text = inspect.getdoc(cls)
        text = insert_paragraph(text, f"Usually made by {makers}. {how} as {such_as}.")
        cls.__doc__ = insert_section(text, "Attributes", cls._attributes)
        text, errors = inspect.getdoc(function), "ImportError\n    If matplotlib is not installed."
        if kind := function.__annotations__.get("result"):
            told = f"result : {kind}\n    What a solver returned."
            text = insert_section(text, "Parameters", told)
            errors = f"TypeError\n    If it is no :class:`fastmmc.{kind}`.\n{errors}"
        text = insert_section(text, "Returns", f"{cls.__name__}\n    Already drawn.")
        others = f"{cls._ax}\n**kwargs\n    For {axes_method}."
        text = insert_section(text, "Other Parameters", others)
        function.__doc__ = insert_section(text, "Raises", errors)

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
        return import_pyplot().subplots(layout="constrained", **self._figure())[1]

    def _figure(self):
        """Return what a new figure is made with."""
        return {}


class ResultDisplay:
    """What displays of results offer to those who have an estimator."""

    from_result: Callable[..., Any]

    @classmethod
    def from_estimator(
        cls, estimator: Clusterer, *args: Any, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw what a fitted estimator has found.

        Parameters
        ----------
        estimator : estimator
            After ``fit``; its ``result_`` is drawn.
        *args, ax, **kwargs
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
        if not isinstance(estimator, Clusterer):
            is_result = isinstance(estimator, ClusteringResult)
            advice = "; from_result draws a result" if is_result else ""
            raise TypeError(
                "estimator must be one of fastmmc, such as fastmmc.UMCRLS; "
                f"got a {type(estimator).__name__}{advice}"
            )
        return cls.from_result(result_of(estimator), *args, ax=ax, **kwargs)


class PanelsDisplay(Display):
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
    _panels: Callable[[], Sequence[str]]  # their titles

    def _plot(self, ax, **kwargs):
        axes = np.ravel(self._new_axes() if ax is None else ax)
        titles = self._panels()
        if axes.size != len(titles):
            raise ValueError(f"ax must hold {len(titles)} Axes, one a panel; got {axes.size}")
        for index, (panel, title) in enumerate(zip(axes, titles, strict=True)):
            self._draw(panel, index, **kwargs)
            panel.set_title(title)
        self.axes_ = axes
        self.figure_ = axes[0].figure


def check_result(result, kind, maker, name="result"):
    """Raise an error unless a result, given as the parameter ``name``, is of this kind."""
    if isinstance(result, kind):
        return
    what = f"{name} must be a {kind.__name__}, as {maker} returns"
    if isinstance(result, Clusterer):
        what += "; from_estimator draws a fitted estimator, where there is one"
    raise TypeError(f"{what}; got a {type(result).__name__}")


def check_points(result, X):
    """Return the points of a result, X or those that it remembers, as a matrix."""
    refuse_masked("X", X)
    if X is not None and result.coding is not None:
        X = result._in_numbers(X)
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
    if (result.labels < 0).any():
        raise ValueError("X is missing: the result has no points that were left out; give all")
    is_dense = isinstance(result, RLSResult) and result.params.get("rank") is None
    is_dense = is_dense and result.model.indices is None  # where the function has no rank
    if not is_dense or result.model.points.shape[0] < result.labels.size:
        raise ValueError(
            "X is missing: this result does not remember its points; give them as "
            "from_result(result, X)"
        )
    return result.model.points


def known_names(result, X):
    """Return the names of what points consist of, as X or a result has them; None without any."""
    if result.coding is not None:
        return result.coding.features
    names = None if X is None else column_names(X)
    return result.feature_names_in if names is None else names


def draw_legend(ax, title):
    """Draw a legend of points beside the axes, where it hides nothing."""
    legend = ax.legend(title=title, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    for handle in legend.legend_handles:
        handle.set_sizes([LARGEST_POINT])
