"""How a result was found: the objective along the way, what was tried, and the splits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.cluster.hierarchy import dendrogram

from fastmmc.choice import Candidate, ChoiceResult
from fastmmc.choice.vote import FLOOR
from fastmmc.core.results import ClusteringResult
from fastmmc.core.words import counted
from fastmmc.plotting.base import (
    COLORS,
    LARGEST_POINT,
    MARKERS,
    Display,
    PanelsDisplay,
    ResultDisplay,
    check_result,
    draw_legend,
)
from fastmmc.plotting.clusters import LEGEND_MOST
from fastmmc.trees import Tree, TreeResult

# Clusters of the largest tree that is drawn, and the inches that a cluster and a level need.
MOST_LEAVES = 100

LEAF_WIDTH, LEVEL_HEIGHT = 0.42, 0.5
# How far apart the leaves are in SciPy's dendrograms.
LEAF_STEP = 10.0

# Areas of points whose votes are least and most, in square points.
VOTE_AREAS = (5, 50)

# What marks the winner.
RING = {"s": 200, "facecolors": "none", "edgecolors": "black"}

# What a history is drawn against: the first of these that the trace counts.
UNITS = ("generations", "splits", "iterations", "moves", "objects", "passes", "rounds")


@dataclass(eq=False, repr=False)
class ObjectiveDisplay(ResultDisplay, Display, drawn_by="plot", such_as="``label`` and ``color``"):
    """Line plot of the objective of the winning start against its moves, generations or rounds.

    Several results can share one Axes.

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
    >>> X, y = fastmmc.datasets.load("moons")
    >>> result = fastmmc.umc_rls(X, 2, random_state=0)
    >>> display = fastmmc.plotting.ObjectiveDisplay.from_result(result)
    >>> display.ax_.get_xlabel(), display.ax_.get_ylabel()
    ('moves', 'objective')
    """

    steps: np.ndarray
    objective: np.ndarray
    unit: str = "moves"

    def _draw(self, ax, **kwargs):
        style = {"marker": "o"} if len(self.steps) == 1 else {}
        (self.line_,) = ax.plot(self.steps, self.objective, **(style | kwargs))
        ax.set(xlabel=self.unit, ylabel="objective")

    @classmethod
    def from_result(cls, result: ClusteringResult, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the history of a result.

        Raises
        ------
        ValueError
            If the result has no history, as after a stop before its first entry.
        """
        check_result(result, ClusteringResult, "fastmmc.umc_rls")
        if not result.history.size:
            raise ValueError(
                f"the result has no history: its run ended ({result.status.name}) before the "
                "first entry; give it more time"
            )
        unit = next((unit for unit in UNITS if unit in result.trace), "rounds")
        steps = result.trace.get(unit, np.arange(1, result.history.size + 1))
        return cls(steps, result.history, unit).plot(ax, **kwargs)


@dataclass(eq=False, repr=False)
class ChoiceDisplay(ResultDisplay, PanelsDisplay, drawn_by="scatter", such_as="``alpha``"):
    """The labellings that :func:`fastmmc.cluster` tried, and the numbers of clusters.

    The first panel has the leave-one-out error of each labelling against its width, those of a
    width side by side; a point is the larger, the more votes the labelling got, and a ring marks
    the one that won. With ``k="auto"`` two panels more have, for each number of clusters, the
    score, whose largest value wins unless there is one cluster, and the error.

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
    >>> X, y = fastmmc.datasets.load("moons")
    >>> result = fastmmc.cluster(X, max_k=4, random_state=0)
    >>> display = fastmmc.plotting.ChoiceDisplay.from_result(result)
    >>> [ax.get_title() for ax in display.axes_]
    ['2 clusters', 'score of each k', 'error of each k']
    >>> [ax.get_xlabel() for ax in display.axes_]
    ['width sigma', 'k', 'k']
    """

    candidates: Sequence[Candidate]
    winner: Candidate
    scores: dict[int, float]
    errors: dict[int, float]

    def _figure(self):
        panels = len(self._panels())
        widths = (2.0, 1.0, 1.0)[:panels]  # the legend needs room
        return {"ncols": panels, "figsize": (3.6 * sum(widths), 4.0), "width_ratios": widths}

    def _panels(self):
        k = int(self.winner.labels.max()) + 1
        first = counted(k, "cluster")
        return [first, "score of each k", "error of each k"] if self.scores else [first]

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
            return x, [max(one.criterion, FLOOR) for one in candidates]

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
        draw_legend(ax, "rule (larger: more votes)")

    def _draw_numbers(self, ax, values, name, **kwargs):
        numbers, height = list(values), list(values.values())
        ax.plot(numbers, height, color="0.6", lw=1, zorder=1)
        ax.scatter(numbers, height, **({"s": LARGEST_POINT, "color": COLORS[0]} | kwargs))
        found = int(self.winner.labels.max()) + 1
        if found in values:  # one cluster is none of the numbers that have scores
            ax.scatter(found, values[found], **RING)
        ax.set(xlabel="k", ylabel=name, yscale="log" if name == "error" else "linear")
        ax.xaxis.get_major_locator().set_params(integer=True)

    @classmethod
    def from_result(cls, result: ChoiceResult, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw what :func:`fastmmc.cluster` chose from.

        Raises
        ------
        ValueError
            If ``ax`` does not hold one Axes, or three where the number of clusters was chosen.
        """
        check_result(result, ChoiceResult, "fastmmc.cluster")
        return cls(result.candidates, result.winner, result.scores, result.errors).plot(
            ax, **kwargs
        )


@dataclass(eq=False, repr=False)
class TreeDisplay(ResultDisplay, Display, drawn_by="text", such_as="``fontsize``"):
    """Drawing of the splits of a recursive clustering, with the sizes of their parts.

    The root is on top, each cluster below in its colour. A new figure is as large as the tree
    needs.

    Parameters
    ----------
    tree : Tree
        The splits.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> result = fastmmc.recursive_mmc(X, 3, random_state=0)
    >>> display = fastmmc.plotting.TreeDisplay.from_result(result)
    >>> display.ax_.get_xlabel(), len(display.ax_.texts)
    ('cluster', 5)
    """

    tree: Tree

    def _figure(self):
        width = max(6.4, LEAF_WIDTH * self.tree._n_clusters)
        height = max(4.8, LEVEL_HEIGHT * max(node.depth for node in self.tree.nodes))
        return {"figsize": (width, height)}

    def _draw(self, ax, **kwargs):
        nodes = self.tree.nodes
        x = [node.label for node in nodes]
        # The parts of a node come after it.
        for i, node in reversed([*enumerate(nodes)]):
            if node.label is None:
                x[i] = (x[node.left] + x[node.right]) / 2
        style = {"ha": "center", "va": "center", "fontsize": "small"}
        for i, node in enumerate(nodes):
            color = "0.4" if node.label is None else COLORS[node.label % len(COLORS)]
            if node.label is None:
                left, right = node.left, node.right
                heights = [nodes[left].depth, node.depth, node.depth, nodes[right].depth]
                line = {"color": "0.6", "lw": 1, "zorder": 1}
                ax.plot([x[left], x[left], x[right], x[right]], heights, **line)
            box = {"boxstyle": "round", "facecolor": "white", "edgecolor": color}
            ax.text(x[i], node.depth, str(node.size), **(style | {"bbox": box} | kwargs))
        depth = max(node.depth for node in nodes)
        ax.set(xlim=(-0.6, self.tree._n_clusters - 0.4), ylim=(depth + 0.4, -0.4), yticks=[])
        ax.set_xlabel("cluster")
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.spines["left"].set_visible(False)

    @classmethod
    def from_result(cls, result: TreeResult, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the tree of a result of :func:`fastmmc.recursive_mmc`.

        Raises
        ------
        ValueError
            If there are more than 100 clusters.
        """
        check_result(result, TreeResult, "fastmmc.recursive_mmc")
        clusters = result.tree._n_clusters
        if clusters > MOST_LEAVES:
            raise ValueError(
                f"trees of at most {MOST_LEAVES} clusters can be drawn; got one of {clusters}: "
                "print(result.tree) shows it as text"
            )
        return cls(result.tree).plot(ax, **kwargs)


@dataclass(eq=False, repr=False)
class DendrogramDisplay(ResultDisplay, Display, drawn_by="plot", such_as="``color``"):
    """Dendrogram of a recursive clustering: a split is the higher, the more its parts differ.

    The height of a split is by how much the within-cluster sum of squares of its points is lower in
    the clusters below it than it would be in one. Below a cluster stands its size.

    Parameters
    ----------
    linkage : (k - 1, 4) float array
        The splits, as :meth:`fastmmc.Tree.linkage` returns them.
    sizes : (k,) int array
        Points of each cluster.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> result = fastmmc.recursive_mmc(X, 3, random_state=0)
    >>> display = fastmmc.plotting.DendrogramDisplay.from_result(result)
    >>> len(display.ax_.lines), display.ax_.get_xlabel()
    (2, 'cluster: size')
    """

    linkage: np.ndarray
    sizes: np.ndarray

    def _figure(self):
        return {"figsize": (max(6.4, LEAF_WIDTH * len(self.sizes)), 4.8)}

    def _draw(self, ax, **kwargs):
        names = [f"{h}: {size}" for h, size in enumerate(self.sizes)]
        drawn = dendrogram(self.linkage, labels=names, no_plot=True)
        style = {"color": "0.4", "linewidth": 1.5}
        for x, y in zip(drawn["icoord"], drawn["dcoord"], strict=True):
            ax.plot(x, y, **(style | kwargs))
        at = LEAF_STEP * (np.arange(len(names)) + 0.5)
        turned = {"rotation": 90} if len(names) > LEGEND_MOST else {}
        ax.set_xticks(at, drawn["ivl"], **turned)
        ax.set(xlim=(0.0, LEAF_STEP * len(names)), ylim=(0.0, None))
        ax.set(xlabel="cluster: size", ylabel="sum of squares between")

    @classmethod
    def from_result(cls, result: TreeResult, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the dendrogram of a result of :func:`fastmmc.recursive_mmc`.

        Raises
        ------
        ValueError
            If there is one cluster, or more than 100.
        """
        check_result(result, TreeResult, "fastmmc.recursive_mmc")
        clusters = result.sizes.size
        if not 2 <= clusters <= MOST_LEAVES:
            raise ValueError(
                f"a dendrogram is drawn of 2 to {MOST_LEAVES} clusters; got {clusters}: "
                "print(result.tree) shows the tree as text"
            )
        return cls(result.tree.linkage(), result.sizes).plot(ax, **kwargs)
