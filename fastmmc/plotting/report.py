"""A clustering as one page: its clusters, an interactive picture, typical and doubtful rows."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fastmmc._version import __version__
from fastmmc.core import validation
from fastmmc.core.clusterer import Clusterer, result_of
from fastmmc.core.execution import fixed_seed, restart_stream
from fastmmc.core.files import replacing
from fastmmc.core.results import ClusteringResult
from fastmmc.core.words import counted, not_installed
from fastmmc.data.frames import Frame
from fastmmc.plotting.base import (
    COLORS,
    MARKERS,
    check_points,
    check_result,
    known_names,
)
from fastmmc.plotting.clusters import LEGEND_MOST, project
from fastmmc.profile import ClusterProfile, date_text, distinct_names, read_table

# Clusters that are described, those that are open at first, columns of each, of each at a glance
# and of rows, columns that name rows, typical rows of each cluster, and doubtful rows.
MOST_CLUSTERS, MOST_OPEN = 100, 12
COLUMNS, TOP_COLUMNS, ROW_COLUMNS, NAME_COLUMNS = 8, 2, 8, 2
TYPICAL_ROWS, DOUBTFUL_ROWS = 5, 20
# Points on top of each other that the pointer names.
MOST_NAMED = 3
# Points that are drawn of each cluster at least, where a sample is.
LEAST_DRAWN = 10
# Letters of a cell or a name that are shown.
LETTERS = 60

# What Bokeh calls the markers of matplotlib, "hex" and "star" in place of two that it lacks.
NAMES = "circle triangle square inverted_triangle diamond plus x hex star"
BOKEH_MARKERS = dict(zip(MARKERS, NAMES.split(), strict=True))


def write_report(
    path: str | os.PathLike[str],
    result: ClusteringResult | Clusterer,
    X: Any,
    *,
    table: Any = None,
    title: str | None = None,
    max_points: int = 5000,
) -> None:
    """Write a report on a clustering as one HTML file, which needs no network.

    It shows what is in each cluster (:meth:`~fastmmc.ClusteringResult.profile`), all points in a
    scatter plot that can be zoomed and names the point below the pointer, its cluster and its
    probability, and the rows that are typical and doubtful.

    Parameters
    ----------
    path : str or Path
        The file, whose name usually ends in .html.
    result : ClusteringResult or estimator
        What a solver returned, or a fitted estimator.
    X : (n, d) array_like, data frame or sparse matrix
        The points, as the solver got them; drawn in the first two principal components if they
        have more than two features.
    table : (n, m) array_like or data frame, optional
        Columns of the same rows, in which the clusters are described, as the texts that sparse
        points were made of; None: X.
    title : str, optional
        The headline; None: "Clusters".
    max_points : int, default=5000
        How many points are drawn, at most. If there are more, a random sample is drawn, with at
        least ten points of each cluster that has as many, and the page says so.

    Raises
    ------
    TypeError, sklearn.exceptions.NotFittedError
        If the result is none, or the table is sparse or in blocks.
    ValueError
        If X or the table has another number of rows than the result.
    ImportError
        If Bokeh is not installed.
    OSError
        If the file cannot be written.

    Notes
    -----
    Typical and doubtful rows and probabilities are there for results with ``loo_scores``, those
    of :func:`fastmmc.cluster`, :func:`fastmmc.umc_rls` and their relatives. The clusters beyond the
    hundred largest are drawn and not described. A file has some 1.4 MB, of which 1.3 are Bokeh.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> result = fastmmc.umc_rls(X, 3, n_init=3, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = Path(folder) / "report.html"
    ...     fastmmc.plotting.write_report(page, result, X)
    ...     "150 points in 3 clusters" in page.read_text(encoding="utf-8")
    True
    """
    import_bokeh()
    found = result_of(result)
    check_result(found, ClusteringResult, "fastmmc.cluster")
    max_points = validation.check_integer("max_points", max_points, least=1)
    frame = read_table(X if table is None else table, found.feature_names_in)
    page = _Page(found, frame, found.profile(frame))
    n, k = found.labels.size, page.profile.sizes.size
    text = _fill_in_template(
        title=title or "Clusters",
        headline=f"{counted(n, 'point')} in {counted(k, 'cluster')}",
        are_open=k <= MOST_OPEN,
        page=page,
        run=found._rows(),
        version=__version__,
        **_draw(page, check_points(found, X), known_names(found, X), max_points),
    )
    with replacing(path) as file:
        file.write(text.encode("utf-8", "replace"))


def import_bokeh() -> None:
    """Import Bokeh, or say how to install it."""
    try:
        import bokeh.plotting  # noqa: F401
        import jinja2  # noqa: F401
    except ImportError as error:
        raise not_installed("reports need Bokeh", "bokeh") from error


def _fill_in_template(**values):
    """Return the page; the template escapes all values that are not marked as HTML."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("fastmmc.plotting", "")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return environment.get_template("report.html").render(values)


@dataclass(frozen=True)
class _Page:
    """What the template shows of a result."""

    result: ClusteringResult
    frame: Frame
    profile: ClusterProfile

    @property
    def shown(self):
        """The clusters that are described, by their numbers: all, or the largest ones."""
        largest = np.argsort(-self.profile.sizes, kind="stable")[:MOST_CLUSTERS]
        return np.sort(largest).tolist()

    @property
    def has_scores(self):
        return getattr(self.result, "loo_scores", None) is not None

    def color(self, h):
        return COLORS[h % len(COLORS)]

    def columns(self, h):
        """Yield name, difference, values of a cluster and of all points, column by column."""
        for column in self.profile.by_difference(h)[:COLUMNS]:
            is_known = column.missing[h] < 1
            own = column.own[h] if is_known else ""
            yield (
                _shorten(column.name),
                column.differences[h],
                ", ".join(filter(None, (_shorten(own), column.gaps_text(h)))),
                column.of_all[h] if is_known else "",
            )

    def top_columns(self, h):
        """Return the same of the columns in which a cluster differs most."""
        return list(self.columns(h))[:TOP_COLUMNS]

    def typical(self, h):
        """Return some rows that are typical of a cluster, by a result that has scores."""
        return self.profile.typical[h][:TYPICAL_ROWS]

    def doubtful(self):
        """Yield row, cluster, its probability, the next cluster and its probability."""
        for i in self.result.boundary_points[:DOUBTFUL_ROWS]:
            label, chances = self.result.labels[i], self.result.probabilities[i]
            other = int(np.argmax(np.where(np.arange(chances.size) == label, -1.0, chances)))
            yield int(i), int(label), chances[label], other, chances[other]

    def probabilities(self, rows):
        """Return how likely rows are in their clusters, NaN where nothing tells."""
        labels = self.result.labels[rows]
        chances = np.full(rows.size, np.nan)
        if self.has_scores:
            known = labels >= 0
            chances[known] = self.result.probabilities[rows[known], labels[known]]
        return chances

    @cached_property
    def names(self):
        return distinct_names(self.frame.names)

    @cached_property
    def row_columns(self):
        """The places of the columns that are shown of rows: what names them, then what differs."""
        differs = sorted(self.profile.columns, key=lambda column: -column.differences.max())
        chosen = sorted(self.names.index(column.name) for column in differs[:ROW_COLUMNS])
        return self.name_columns + chosen

    @cached_property
    def name_columns(self):
        """The places of columns that differ from row to row, and so name the rows."""
        unused = [j for j, name in enumerate(self.names) if name in self.profile.not_used]
        telling = [j for j in unused if len({*map(str, self.frame.columns[j].cells)}) > 1]
        return telling[:NAME_COLUMNS]

    @property
    def row_names(self):
        return [_shorten(self.names[j]) for j in self.row_columns]

    @property
    def n_columns_hidden(self):
        return len(self.frame.names) - len(self.row_columns)

    def cells(self, i):
        """Return the cells of a row that are shown."""
        return [cell_text(self.frame.columns[j], i) for j in self.row_columns]


def cell_text(values, i):
    """Return a cell as people read it, "" if it is missing."""
    value = values.cells[i]
    if value is None or value != value:
        return ""
    if values.kind == "dates":
        return date_text(value, "D" if value == np.floor(value) else "m")
    return _shorten(value) if isinstance(value, str) else f"{value:.6g}"


def _shorten(text):
    """Return a text without its middle where it is long; what a share is of stands at its end."""
    if len(text) <= LETTERS:
        return text
    return f"{text[: LETTERS // 2]}\N{HORIZONTAL ELLIPSIS}{text[1 - LETTERS // 2 :]}"


def _draw(page, points, axis_names, max_points):
    """Return the scripts of the scatter plot, its place on the page, and what is said of it."""
    from bokeh.embed import components
    from bokeh.models import HoverTool, PlainText
    from bokeh.plotting import figure
    from bokeh.resources import Resources
    from markupsafe import Markup

    labels = np.asarray(page.result.labels)
    k = page.profile.sizes.size
    rows = sample_rows(labels, k, max_points)
    positions, names = project(points, axis_names)
    names = [*names, "cluster"][:2]
    at = positions[rows].astype(np.float32)
    y = at[:, 1] if at.shape[1] == 2 else labels[rows]
    known = [
        (_shorten(page.frame.names[j]), [cell_text(page.frame.columns[j], i) for i in rows])
        for j in page.name_columns
    ]
    columns = {
        "x": at[:, 0],
        "y": y,
        "row": rows,
        "cluster": np.where(labels[rows] < 0, "none", labels[rows].astype(str)),
        "probability": [f"{p:.2f}" if p == p else "?" for p in page.probabilities(rows)],
    } | {f"name_{j}": values for j, (_, values) in enumerate(known)}
    tooltips = [("row", "@row"), *((name, f"@name_{j}") for j, (name, _) in enumerate(known))]
    tooltips += [("cluster", "@cluster")]
    tooltips += [("probability", "@probability")] * page.has_scores
    hover = HoverTool(tooltips=tooltips, limit=MOST_NAMED)
    # Names are plain: in others Bokeh looks for formulas.
    plot = figure(
        height=520,
        sizing_mode="stretch_width",
        tools=["pan", "wheel_zoom", "box_zoom", "reset", "save", hover],
        x_axis_label=PlainText(text=_shorten(names[0])),
        y_axis_label=PlainText(text=_shorten(names[1])),
    )
    plot.toolbar.logo = None
    has_legend = k <= LEGEND_MOST
    _scatter(plot, columns, labels[rows], page.profile, has_legend)
    script, place = components(plot)
    return {
        "library": Markup(Resources(mode="inline", components=["bokeh"]).render_js()),
        "script": Markup(script),
        "place": Markup(place),
        "n_drawn": rows.size,
        "has_legend": has_legend,
    }


def _scatter(plot, columns, labels, profile, has_legend):
    """Draw the points of each cluster in a look of its own; -1 for those in no cluster."""
    looks = np.where(labels < 0, -1, labels % (len(COLORS) * len(MARKERS)))
    for look in np.unique(looks):
        members = np.flatnonzero(looks == look)
        own = {name: [values[i] for i in members] for name, values in columns.items()}
        style = {"marker": "x", "color": "#999999"}
        text = f"none: {profile.n_left_out}"
        if look >= 0:
            marker = BOKEH_MARKERS[MARKERS[look // len(COLORS)]]
            style = {"marker": marker, "color": COLORS[look % len(COLORS)]}
            text = f"{look}: {profile.sizes[look]}"
        legend = {"legend_label": text} if has_legend else {}
        plot.scatter("x", "y", source=own, size=7, alpha=0.7, **style, **legend)
    if has_legend:
        plot.add_layout(plot.legend[0], "right")
        plot.legend[0].title = "cluster: size"
        plot.legend[0].click_policy = "hide"


def sample_rows(labels, k, most):
    """Return rows to draw, in their order: all, or some of each cluster and then by chance."""
    n = labels.size
    if n <= most:
        return np.arange(n)
    order = restart_stream(fixed_seed(0), 0).permutation(n)
    groups = labels[order] + 1
    by_group = np.argsort(groups, kind="stable")
    sizes = np.bincount(groups, minlength=k + 1)
    rank = np.empty(n, dtype=np.int64)
    rank[by_group] = np.arange(n) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    comes_later = rank >= min(LEAST_DRAWN, most // (k + 1))
    return np.sort(order[np.argsort(comes_later, kind="stable")[:most]])
