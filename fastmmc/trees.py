"""Trees of clusters: grown by splits in two, and the model that routes points down."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastmmc.core import validation
from fastmmc.core.declare import declared
from fastmmc.core.display import OneLine
from fastmmc.core.execution import RunControl, restart_seed, warn_user
from fastmmc.core.parameters import RunParameters
from fastmmc.core.results import ClusteringResult
from fastmmc.core.saving import stored
from fastmmc.core.status import STATUS_TEXT, STOPPED, Status
from fastmmc.core.words import counted
from fastmmc.kernels.gram import Kernel, count_distinct, dense_rows
from fastmmc.kernels.models import row_blocks
from fastmmc.registry import Method
from fastmmc.rls.outliers import without_outlier_scores

# What the call of the whole tree says, which tells every split.
OWN_PARAMETERS = ("X", "sample_weight", *(one.name for one in declared(RunParameters)))


@stored(columns="i8:n")
@dataclass(frozen=True, eq=False)
class TreeNode:
    """A node of a tree of clusters: a cluster, or a set of points that was split in two.

    Attributes
    ----------
    size : int
        Points, but for those of weight 0.
    depth : int
        Splits above it.
    label : int or None
        The cluster; None if the node was split.
    left : int or None
        Index in ``Tree.nodes`` of the part with label 0 of the split; None for a cluster.
    right : int or None
        The same for the part with label 1.
    objective : float or None
        Of the split, as the binary method defines it.
    gain : float or None
        By how much the split lowers the within-cluster sum of squares.
    params : dict or None
        Of the split: parameters that the binary method chose for these points.
    model : object or None
        Tells the parts apart.
    columns : (size,) int64 array or None
        With a precomputed kernel, the points of the node, whose kernel values the model takes.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("moons")
    >>> root = fastmmc.recursive_mmc(X, 2, random_state=0).tree.nodes[0]
    >>> root.label is None, root.left, root.right
    (True, 1, 2)
    """

    size: int
    depth: int
    label: int | None = None
    left: int | None = None
    right: int | None = None
    objective: float | None = None
    gain: float | None = None
    params: dict[str, Any] | None = field(repr=False, default=None)
    model: Any = field(repr=False, default=None)
    columns: np.ndarray | None = field(repr=False, default=None)


@stored()
class Tree:
    """A tree of clusters; ``print`` shows it.

    Attributes
    ----------
    nodes : tuple of TreeNode
        The root first, and each node before its left part and that before its right part, so
        clusters appear in the order of their labels.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> fastmmc.recursive_mmc(X, 3, random_state=0).tree
    Tree(5 nodes, 3 clusters)
    """

    nodes: tuple[TreeNode, ...]

    @property
    def _n_clusters(self):
        return (len(self.nodes) + 1) // 2

    def __repr__(self):
        return f"Tree({len(self.nodes)} nodes, {self._n_clusters} clusters)"

    def _check_values(self):
        """Check that saved nodes are in their order and make one tree."""
        pending, n_clusters = [0], 0
        for i, node in enumerate(self.nodes):
            if not pending or pending.pop() != i:
                raise ValueError(f"node {i} has no place in the tree")
            if node.label is None:
                pending += [node.right, node.left]
            elif node.label != n_clusters:
                raise ValueError(f"node {i} has label {node.label}; expected {n_clusters}")
            else:
                n_clusters += 1
        if pending:
            raise ValueError(f"node {pending[-1]} is missing")

    def as_text(self) -> str:
        """Draw the tree with the sizes of its nodes, a line each.

        Returns
        -------
        str
            The lines.

        Examples
        --------
        >>> root = TreeNode(size=5, depth=0, left=1, right=2)
        >>> print(Tree((root, TreeNode(3, 1, label=0), TreeNode(2, 1, label=1))))
        5 points
        |-- cluster 0: 3 points
        `-- cluster 1: 2 points
        """
        lines = []
        pending = [(0, "", "")]
        while pending:
            i, first, rest = pending.pop()
            node = self.nodes[i]
            name = "" if node.label is None else f"cluster {node.label}: "
            lines.append(f"{first}{name}{counted(node.size, 'point')}")
            if node.left is not None and node.right is not None:
                pending.append((node.right, f"{rest}`-- ", f"{rest}    "))
                pending.append((node.left, f"{rest}|-- ", f"{rest}|   "))
        return "\n".join(lines)

    __str__ = as_text

    def linkage(self) -> NDArray[np.float64]:
        """Return the splits as a linkage matrix, as :mod:`scipy.cluster.hierarchy` has it.

        Its ``dendrogram``, ``cut_tree`` and ``cophenet`` take it. The height of a split is the sum
        of its ``gain`` and those of all splits below: by how much the within-cluster sum of squares
        of its points is lower in the clusters of the tree than it would be in one.

        Returns
        -------
        (k - 1, 4) float64 array
            A row for each split, the lowest first: its parts, its height and its clusters. Parts
            below k are clusters, k + i is the split of row i.

        Examples
        --------
        >>> import fastmmc
        >>> X, y = fastmmc.datasets.load("iris")
        >>> fastmmc.recursive_mmc(X, 3, random_state=0).tree.linkage().shape
        (2, 4)
        """
        heights, counts, splits = {}, {}, []
        # The parts of a node come after it.
        for i, node in reversed([*enumerate(self.nodes)]):
            heights[i], counts[i] = node.gain or 0.0, 1
            if node.left is not None and node.right is not None:
                heights[i] += heights[node.left] + heights[node.right]
                counts[i] = counts[node.left] + counts[node.right]
                splits.append((i, node.left, node.right))
        splits.sort(key=lambda split: heights[split[0]])
        places = {i: node.label for i, node in enumerate(self.nodes) if node.label is not None}
        k = len(places)
        places |= {i: k + row for row, (i, _, _) in enumerate(splits)}
        rows = [(places[left], places[right], heights[i], counts[i]) for i, left, right in splits]
        return np.array(rows, dtype=np.float64).reshape(-1, 4)


@stored()
class TreeResult(ClusteringResult):
    """A clustering by splits in two.

    ``predict`` routes points down the tree: a point meets only the splits above its cluster.

    Attributes
    ----------
    tree : Tree
        The splits, and the clusters they end in; ``print`` shows it.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> res = fastmmc.recursive_mmc(X, 3, random_state=0)
    >>> len(res.tree.nodes), res.predict(X[:2]).shape
    (5, (2,))
    """

    tree: Tree = field(repr=False, kw_only=True)

    def _nearest(self, X):
        return self._fitted_model().predict(X)

    def _own_rows(self):
        depth = max(node.depth for node in self.tree.nodes)
        return {"tree": f"{counted(self.tree._n_clusters - 1, 'split')}, depth {depth}"}


@stored()
class TreeModel(OneLine):
    """Routes points, or their kernel values, down a tree by the model of each split."""

    tree: Tree
    kernel: Kernel
    n_features: int
    dtype: np.dtype

    @property
    def n_scores(self):
        """How many clusters it tells apart."""
        return self.tree._n_clusters

    def _check_values(self):
        """Check that the models of a saved tree take the points."""
        for node in self.tree.nodes:
            if node.label is not None:
                continue
            columns, n = node.columns, self.n_features
            if columns is not None:
                n = columns.size
                if n != node.size or not 0 <= columns.min() <= columns.max() < self.n_features:
                    raise ValueError("the columns of a split have values that cannot be")
            if node.model is None or (node.model.n_scores, node.model.n_features) != (2, n):
                raise ValueError(f"the model of a split does not tell points of {n} columns apart")

    def decision_function(self, X):
        """Return the least margin on the way to every cluster, (m, k); 1 for a single cluster.

        The largest score is that of the cluster that routing leads to: its margins are all at
        least 0, and every other cluster has the negative of one of them. A point on a border goes
        to the left part either way.
        """
        X = self._check(X)
        nodes = self.tree.nodes
        scores = np.empty((X.shape[0], self.n_scores))
        pending = [(0, np.full(X.shape[0], np.inf if len(nodes) > 1 else 1.0))]
        while pending:
            i, least = pending.pop()
            node = nodes[i]
            if node.label is not None:
                scores[:, node.label] = least
            else:
                margin = _margin(node, X)
                pending.append((node.left, np.minimum(least, -margin)))
                pending.append((node.right, np.minimum(least, margin)))
        return scores

    def predict(self, X):
        """Return the clusters (m,) that the points are routed to."""
        X = self._check(X)
        labels = np.empty(X.shape[0], dtype=np.int64)
        pending = [(0, np.arange(X.shape[0]))]
        while pending:
            i, rows = pending.pop()
            node = self.tree.nodes[i]
            if node.label is not None:
                labels[rows] = node.label
            elif rows.size:
                right = _margin(node, X if rows.size == X.shape[0] else X[rows]) > 0
                pending += [(node.left, rows[~right]), (node.right, rows[right])]
        return labels

    def _check(self, X):
        return validation.check_new_points(X, self.kernel, self.n_features, self.dtype)


def _margin(node, X):
    """Return by how much the model of a split prefers the right part, (m,)."""
    scores = node.model.decision_function(X if node.columns is None else X[:, node.columns])
    return 0.5 * (scores[:, 1] - scores[:, 0])


@dataclass(frozen=True, eq=False)
class WeightedPoints:
    """The points of a call, or their kernel values, and their weights; ``rows`` weigh above 0."""

    X: np.ndarray
    kernel: Kernel
    weights: np.ndarray | None
    rows: np.ndarray

    @property
    def is_gram(self):
        """Whether X holds kernel values."""
        return self.kernel.name == "precomputed"

    def part(self, rows):
        """Return the points of some rows, or the kernel values between them."""
        if rows.size == self.X.shape[0]:
            return self.X
        return self.X[np.ix_(rows, rows)] if self.is_gram else self.X[rows]

    def part_weights(self, rows):
        """Return the weights of some rows."""
        return np.ones(rows.size) if self.weights is None else self.weights[rows]

    def scatter(self, rows):
        """Return the weighted sum of squared distances from the mean, computed in blocks."""
        weights = self.part_weights(rows)
        blocks = row_blocks(rows.size, self.X.shape[1])
        if self.is_gram:
            squares = weights @ np.diagonal(self.X)[rows]
            cross = sum(weights[b] @ (self.X[np.ix_(rows[b], rows)] @ weights) for b in blocks)
            return max(0.0, float(squares - cross / weights.sum()))
        mean = sum(weights[b] @ dense_rows(self.X, rows[b]) for b in blocks) / weights.sum()
        scatter = 0.0
        for b in blocks:
            apart = dense_rows(self.X, rows[b]) - mean
            scatter += float(weights[b] @ np.einsum("ij,ij->i", apart, apart))
        return scatter


@dataclass(eq=False)
class _Leaf:
    """A set of points that may be split, and the split of it that was tried."""

    # Its place in a binary tree: 1 is the root, and 2 i and 2 i + 1 are the parts of i.
    key: int
    rows: np.ndarray
    weight: float
    scatter: float
    split: ClusteringResult | None = None
    parts: tuple = ()
    gain: float = 0.0
    refusal: str | None = None


@dataclass(eq=False)
class TreeGrower:
    """Splits leaves until there are k; ``params`` are those of the method."""

    data: WeightedPoints
    k: int
    rule: str
    method: Method
    params: dict
    n_init: int
    seed: np.random.SeedSequence
    control: RunControl
    n_tried: int = 0
    stopped: Status | None = None
    # The leaves whose splits were kept, by key, in the order of the splits.
    kept: dict = field(default_factory=dict)
    # What the user's callback raised.
    raised: Exception | None = None

    def __post_init__(self):
        self.root = self._make_leaf(1, self.data.rows)
        self.leaves = [self.root]
        # The largest gain is known once all leaves but the last two have been split.
        self.n_splits = max(1, self.k - 1 if self.rule == "largest" else 2 * self.k - 3)

    def grow(self):
        """Split until there are k leaves, none can be split, or something stops the run."""
        try:
            while len(self.kept) < self.k - 1:
                leaf = self._next()
                if leaf is None:
                    break
                self.kept[leaf.key] = leaf
                i = self.leaves.index(leaf)
                self.leaves[i : i + 1] = leaf.parts
        except KeyboardInterrupt:
            if not self.kept:
                raise
            self.stopped = Status.INTERRUPTED

    def _next(self):
        """Return the leaf whose split is the next to be kept, or None."""
        if self.rule == "gain":
            tried = [leaf for leaf in self.leaves if self._try(leaf)]
            return max(tried, key=lambda leaf: leaf.gain, default=None)
        by_weight = sorted(self.leaves, key=lambda leaf: -leaf.weight)
        return next((leaf for leaf in by_weight if self._try(leaf)), None)

    def _try(self, leaf):
        """Split a leaf unless that was tried before; return whether it has a split."""
        if leaf.split is None and leaf.refusal is None:
            if leaf is not self.root and self.stopped is None and self.control.out_of_time():
                self.stopped = Status.TIME_LIMIT
            if self.stopped is None:
                self._split(leaf)
        return leaf.split is not None

    def _split(self, leaf):
        points = self.data.part(leaf.rows)
        if count_distinct(points, 2) < 2:
            leaf.refusal = "its points are equal"
            return
        try:
            with without_outlier_scores():
                result = self.method.function(points, **self._arguments(leaf))
        except (ValueError, TypeError, MemoryError) as error:
            if error is self.raised:
                raise
            # What does not fit all points is the user's mistake; a part may just be too small.
            if leaf is self.root or not isinstance(error, ValueError):
                self._explain(error)
                raise
            leaf.refusal = str(error)
            return
        right = result.labels == 1
        if right.all() or not right.any():
            leaf.refusal = "the method put all its points on one side"
            return
        leaf.parts = tuple(
            self._make_leaf(2 * leaf.key + side, leaf.rows[right == side]) for side in (0, 1)
        )
        leaf.gain = max(0.0, leaf.scatter - sum(part.scatter for part in leaf.parts))
        leaf.split = result
        self.n_tried += 1
        status = result.status if result.status in STOPPED else self._report(0.0)
        if status in STOPPED:
            self.stopped = status

    def _explain(self, error):
        """Raise an error of the method anew if it advises what only method_params can hold."""
        advised = dict.fromkeys(re.findall(r"\b(\w+)=", str(error)))
        inner = [name for name in advised if name in self.method.parameters]
        inner = [name for name in inner if name not in OWN_PARAMETERS]
        if inner:
            kind = next(k for k in (ValueError, TypeError, MemoryError) if isinstance(error, k))
            name = self.method.function.__name__
            raise kind(f"{error} ({', '.join(inner)}: in method_params, as of {name})") from error

    def _make_leaf(self, key, rows):
        weight = float(self.data.part_weights(rows).sum())
        return _Leaf(key, rows, weight, self.data.scatter(rows))

    def _arguments(self, leaf):
        """Return what the method is called with."""
        control, weights = self.control, self.data.weights
        is_watched = control.callback is not None or control.verbose
        run = {
            "n_init": self.n_init,
            # The stream depends on where the leaf is and not on when it is split.
            "random_state": restart_seed(self.seed, leaf.key),
            "n_jobs": control.n_jobs,
            "max_time": control.inner_time(),
            "callback": self._tell if is_watched else None,
            "sample_weight": None if weights is None else weights[leaf.rows],
        }
        params = self.params | {name: run[name] for name in run if name in self.method.parameters}
        rank = params.get("rank")
        if isinstance(rank, int | np.integer) and rank <= self.data.X.shape[0]:
            params["rank"] = min(rank, leaf.rows.size)
        return params

    def _tell(self, inner):
        """Report the progress, ``inner`` that of the current split; return whether to stop."""
        status = self._report(inner.fraction)
        if status == Status.INTERRUPTED:  # which ends the split, too
            raise KeyboardInterrupt
        if status == Status.CALLBACK:  # also where the split has just ended by itself
            self.stopped = status
        return status == Status.CALLBACK

    def _report(self, fraction):
        """Report the progress with a share of the current split; return the reason to stop."""
        try:
            return self.control.report(
                fraction=min(1.0, (self.n_tried + fraction) / self.n_splits),
                n_done=self.n_tried,
                n_init=self.n_splits,
                objective=sum(leaf.scatter for leaf in self.leaves),
            )
        except (ValueError, TypeError, MemoryError) as error:
            self.raised = error
            raise

    def status(self):
        """Return why the run ended; warn if there are fewer than k clusters."""
        splits = [leaf.split.status for leaf in self.kept.values()]
        if len(splits) == self.k - 1:
            # A split that was stopped has warned itself.
            return next((s for s in splits if s != Status.CONVERGED), Status.CONVERGED)
        status = Status.INFEASIBLE if self.stopped is None else self.stopped
        made = f"{len(splits) + 1} of {self.k} clusters were made"
        if self.stopped is None:
            largest = max(self.leaves, key=lambda leaf: leaf.rows.size)
            made += f" (the largest one has {largest.rows.size} points: {largest.refusal})"
        warn_user(f"stopped before the end: {STATUS_TEXT[status]}; {made}")
        return status

    def build(self):
        """Return the tree, its model (None if a split has none), the labels, and the history.

        Labels number the leaves from left to right; points of weight 0 get theirs from the model.
        Only splits that were kept are used, so an interrupt at any time does no harm.
        """
        X = self.data.X
        order, pending = [], [self.root]
        while pending:
            leaf = pending.pop()
            order.append(leaf)
            if leaf.key in self.kept:
                pending += reversed(leaf.parts)
        places = {leaf.key: i for i, leaf in enumerate(order)}
        labels = np.full(X.shape[0], -1, dtype=np.int64)
        nodes, scatters = [], []
        for leaf in order:
            if leaf.key in self.kept:
                told = {
                    "left": places[2 * leaf.key],
                    "right": places[2 * leaf.key + 1],
                    "objective": leaf.split.objective,
                    "gain": leaf.gain,
                    "params": leaf.split.params,
                    "model": leaf.split.model,
                    "columns": leaf.rows if self.data.is_gram else None,
                }
            else:
                told = {"label": len(scatters)}
                labels[leaf.rows] = len(scatters)
                scatters.append(leaf.scatter)
            nodes.append(TreeNode(leaf.rows.size, leaf.key.bit_length() - 1, **told))
        tree, model = Tree(tuple(nodes)), None
        if all(leaf.split.model is not None for leaf in self.kept.values()):
            model = TreeModel(tree, self.data.kernel, X.shape[1], X.dtype)
        others = np.flatnonzero(labels < 0)
        if others.size:
            labels[others] = model.predict(X[others])
        # Backwards, so that nothing is lost in differences of large numbers.
        history = [sum(scatters)]
        for leaf in reversed(self.kept.values()):
            history.append(history[-1] + leaf.gain)
        return tree, model, labels, np.array(history[::-1])
