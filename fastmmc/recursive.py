"""Any number of clusters from a method that makes two: split, and split the parts again."""

from __future__ import annotations

import inspect
import re
import time
from dataclasses import dataclass, field, replace

import numpy as np
from sklearn.utils import get_tags

from fastmmc import validation
from fastmmc._callbacks import fit_tasks, with_callbacks
from fastmmc._clusterer import Clusterer
from fastmmc._display import OneLine
from fastmmc._names import remember_names
from fastmmc.execution import (
    Progress,
    RunControl,
    check_control,
    fixed_seed,
    show_progress,
    warn_user,
)
from fastmmc.factors import DenseFactor, LowRankFactor
from fastmmc.gram import BLOCK, Kernel, count_distinct, dense_rows
from fastmmc.registry import METHODS, Method, registry_name
from fastmmc.results import STATUS_TEXT, ClusteringResult, Status, Tree, TreeNode, TreeResult

RULES = ("largest", "gain")

# How the run is carried out is told to recursive_mmc, which tells every split.
OWN_PARAMETERS = (
    "X",
    "sample_weight",
    "n_init",
    "random_state",
    "n_jobs",
    "max_time",
    "callback",
    "verbose",
)

STOPS = (Status.TIME_LIMIT, Status.INTERRUPTED, Status.CALLBACK)

# Least seconds for a split, as max_time must be positive.
LEAST_TIME = 1e-3


@dataclass(frozen=True, eq=False, repr=False)
class TreeModel(OneLine):
    """Routes points, or their kernel values, down a tree by the model of each split."""

    tree: Tree
    kernel: Kernel
    n_features: int
    dtype: np.dtype

    def decision_function(self, X):
        """Return the least margin on the way to every cluster, (m, k); 1 for a single cluster.

        The margin of a split is half the difference of its model's two scores, positive for the
        clusters on its side of the split and negative for those on the other. The largest score
        names the cluster that routing leads to: its own margins are all at least 0, and any other
        cluster has the opposite of one of them, at the split where the ways part. Both are 0 only
        for a point on the border, and there the left part, of the lower labels, gets it either
        way.
        """
        X = self._check(X)
        nodes = self.tree.nodes
        scores = np.empty((X.shape[0], (len(nodes) + 1) // 2))
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
class _Data:
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
        blocks = [slice(start, start + BLOCK) for start in range(0, rows.size, BLOCK)]
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
    """A set of points that may be split, and the split of it that was tried.

    ``key`` numbers the nodes of a binary tree: 1 is the root, and 2 i and 2 i + 1 are the parts of
    i. It names the place of a node whenever the node is reached.
    """

    key: int
    rows: np.ndarray
    weight: float
    scatter: float
    split: ClusteringResult | None = None
    parts: tuple = ()
    gain: float = 0.0
    refusal: str | None = None

    @property
    def depth(self):
        """Splits above the leaf."""
        return self.key.bit_length() - 1


@dataclass(eq=False)
class _Grower:
    """Splits leaves until there are k; ``params`` are those of the method."""

    data: _Data
    k: int
    rule: str
    method: Method
    params: dict
    n_init: int
    seed: np.random.SeedSequence
    control: RunControl
    n_tried: int = 0
    stopped: Status | None = None
    # The splits that were kept, in their order, by the key of what they split.
    kept: dict = field(default_factory=dict)
    # What the user's callback raised.
    raised: Exception | None = None

    def __post_init__(self):
        self.accepted = accepted_by(self.method)
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
        if result.status in STOPS:
            self.stopped = result.status
        elif self._tell():
            self.stopped = Status.CALLBACK

    def _explain(self, error):
        """Raise an error of the method anew if it advises what only method_params can hold."""
        advised = dict.fromkeys(re.findall(r"\b(\w+)=", str(error)))
        inner = [name for name in advised if name in self.accepted and name not in OWN_PARAMETERS]
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
        # The stream depends on where the leaf is and not on when it is split.
        key = (*self.seed.spawn_key, leaf.key)
        run = {
            "n_init": self.n_init,
            "random_state": np.random.SeedSequence(self.seed.entropy, spawn_key=key),
            "n_jobs": control.n_jobs,
            "max_time": None if control.max_time is None else max(LEAST_TIME, control.time_left()),
            "callback": self._tell if is_watched else None,
            "sample_weight": None if weights is None else weights[leaf.rows],
        }
        params = self.params | {name: run[name] for name in run if name in self.accepted}
        rank = params.get("rank")
        if isinstance(rank, int | np.integer) and leaf is not self.root:
            params["rank"] = min(rank, leaf.rows.size)
        return params

    def _tell(self, inner=None):
        """Tell the bar and the callback how far the run is; return whether it should stop.

        ``inner`` is the Progress of the split at hand.
        """
        fraction = 0.0 if inner is None else inner.fraction
        progress = Progress(
            fraction=min(1.0, (self.n_tried + fraction) / self.n_splits),
            n_done=self.n_tried,
            n_init=self.n_splits,
            objective=sum(leaf.scatter for leaf in self.leaves),
            elapsed=time.perf_counter() - self.control.started,
        )
        self.control.bar.show(progress)
        if self.control.callback is None:
            return False
        try:
            return bool(self.control.callback(progress))
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
        All is made from the splits that were kept, so an interrupt at any time does no harm.
        """
        X = self.data.X
        labels = np.full(X.shape[0], -1, dtype=np.int64)
        nodes, scatters = [], []
        pending = [(self.root, None)]
        while pending:
            leaf, parent = pending.pop()
            if parent is not None:
                nodes[parent] = replace(nodes[parent], right=len(nodes))
            if leaf.key in self.kept:
                left, right = leaf.parts
                pending += [(right, len(nodes)), (left, None)]
                node = TreeNode(
                    leaf.rows.size,
                    leaf.depth,
                    left=len(nodes) + 1,
                    objective=leaf.split.objective,
                    gain=leaf.gain,
                    params=leaf.split.params,
                    model=leaf.split.model,
                    columns=leaf.rows if self.data.is_gram else None,
                )
                nodes.append(node)
            else:
                label = len(scatters)
                labels[leaf.rows] = label
                nodes.append(TreeNode(leaf.rows.size, leaf.depth, label=label))
                scatters.append(leaf.scatter)
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


@remember_names
def recursive_mmc(
    X,
    k,
    *,
    method="iter_svr",
    method_params=None,
    split="largest",
    sample_weight=None,
    n_init=1,
    random_state=None,
    n_jobs=None,
    max_time=None,
    callback=None,
    verbose=0,
):
    """Cluster in k by splitting in two again and again with a method for two clusters.

    Begins with all points as one leaf and, until there are k, replaces a leaf by the two clusters
    that the method makes of its points. What the method derives from the points (the width of the
    kernel, the sizes that ``balance`` allows) it derives from those of the leaf.

    Parameters
    ----------
    X : (n, d) array_like or sparse matrix
        Points (float32 is kept, anything else becomes float64), sparse where the method takes
        them; with ``kernel="precomputed"`` among the ``method_params`` their (n, n) Gram matrix.
    k : int
        Number of clusters, at most that of distinct points.
    method : str, default="iter_svr"
        A method of :data:`fastmmc.METHODS` for two clusters, by the name of its function or of
        its entry there ("evo_mmc" or "evo-mmc").
    method_params : dict, optional
        Parameters of the method, as ``{"C": 10.0, "balance": 0.3}``. An integer ``rank`` counts
        for all points; a leaf of fewer points takes as many landmarks as it has points.
    split : {"largest", "gain"}, default="largest"
        Which leaf is split next: that of the largest size (sum of its weights), or that whose
        split lowers the within-cluster sum of squares most. For the latter each leaf is split
        once to see, 2 k - 3 splits in all. Ties go to the leaf further left.
    sample_weight : (n,) array_like, optional
        Weights, at least 0, for methods that take them: a point of weight s stands for s equal
        ones. A point of weight 0 does not count, and gets its label from the tree.
    n_init : int, default=1
        Starts of every split.
    random_state : int, SeedSequence, Generator, RandomState or None, default=None
        Same value, same labels, whatever ``n_jobs`` is. Each node of the tree has a stream of its
        own.
    n_jobs : int, optional
        Threads of a split. None: 1, or what joblib's configuration says; -1: all.
    max_time : float, optional
        Seconds for the whole call; each split gets what is left, and when nothing is left the
        clusters made by then are returned.
    callback : callable, optional
        Called with a :class:`~fastmmc.execution.Progress`, whose ``n_done`` and ``n_init`` count
        splits; a true return value stops the run.
    verbose : int, default=0
        1 shows a progress bar (needs the extra ``progress``).

    Returns
    -------
    TreeResult
        ``labels`` number the leaves from left to right; ``tree`` holds the splits, and
        ``print(result.tree)`` shows it. ``objective`` is the (weighted) sum of squared distances
        of the points from the mean of their cluster, in the space of X or, with a precomputed
        kernel, in that of the kernel: comparable between trees of as many clusters, whatever
        method made them. ``history`` holds it after 0, 1, ... splits; ``n_iter`` counts the
        splits and ``n_moves`` the moves within them. ``predict`` routes points down the tree;
        ``decision_function`` gives the least margin on the way to each cluster, the largest of
        which is where routing leads.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range, X is not a finite matrix, or the method refuses to split
        all points.
    MemoryError
        If a split does not fit into free memory.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If fewer than k clusters were made, because the run was stopped (the status says how) or
        no leaf can be split any more (status INFEASIBLE): the points of each are equal, or the
        method refuses them, as they are fewer than its size rule needs. A split that was stopped
        warns as well.

    Notes
    -----
    The paper splits recursively but does not say which cluster is next; both rules are this
    package's. Leaves of n / 2 points each make the second level of a method that takes O(n^2)
    time half as expensive as the first one, and so on.

    References
    ----------
    K. Zhang, I. W. Tsang, J. T. Kwok, Maximum margin clustering made practical, ICML 2007.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> params = {"balance": 0.4}
    >>> res = fastmmc.recursive_mmc(X, 3, method="evo_mmc", method_params=params, random_state=0)
    >>> print(res.tree)
    150 points
    |-- 100 points
    |   |-- cluster 0: 70 points
    |   `-- cluster 1: 30 points
    `-- cluster 2: 50 points
    """
    control = check_control(time.perf_counter(), n_jobs, max_time, callback, verbose)
    validation.check_choice("split", split, RULES)
    n_init = validation.check_starts(n_init)
    method = find_binary(method)
    params = _check_params(method, method_params)
    data = _check_data(X, params.get("kernel"), sample_weight)
    k = _check_k(k, data)
    _check_accepted(method, n_init, sample_weight)
    seed = fixed_seed(random_state)
    with show_progress(control, "split") as control:
        grower = _Grower(data, k, split, method, params, n_init, seed, control)
        grower.grow()
    tree, model, labels, history = grower.build()
    return TreeResult(
        labels=labels,
        objective=float(history[-1]),
        status=grower.status(),
        n_iter=len(grower.kept),
        n_moves=sum(leaf.split.n_moves for leaf in grower.kept.values()),
        sizes=np.bincount(labels),
        history=history,
        trace={"splits": np.arange(history.size)},
        objectives=history[-1:].copy(),
        best_init=0,
        params={"method": method.name, "method_params": params, "split": split, "n_init": n_init},
        model=model,
        tree=tree,
    )


def find_binary(method):
    """Return the entry of a method for two clusters, by its name there or of its function."""
    entry = METHODS.get(registry_name(method)) if isinstance(method, str) else None
    if entry is None or not entry.binary:
        names = ", ".join(repr(name) for name, entry in METHODS.items() if entry.binary)
        reason = "" if entry is None else ", which makes any number of clusters by itself"
        raise ValueError(
            f"method must be one of those for two clusters, {names}; got {method!r}{reason}"
        )
    return entry


def accepted_by(method):
    """Return the names of a method's parameters, without that of the points, in their order."""
    return list(inspect.signature(method.function).parameters)[1:]


def _check_params(method, method_params):
    """Return the parameters of the method, if they can be those of every split."""
    if method_params is None:
        return {}
    if not isinstance(method_params, dict):
        raise TypeError(f"method_params must be a dict or None; got {method_params!r}")
    accepted = [name for name in accepted_by(method) if name not in OWN_PARAMETERS]
    for name, value in method_params.items():
        if name in OWN_PARAMETERS:
            raise ValueError(f"method_params: give {name} to recursive_mmc itself")
        if name not in accepted:
            raise ValueError(
                f"method_params: {method.name} has no {name!r}; it has {', '.join(accepted)}"
            )
        if _is_of_all_points(name, value):
            raise ValueError(
                f"method_params: {name} would be of all points, and most splits are of fewer; "
                "leave it out"
            )
    return dict(method_params)


def _is_of_all_points(name, value):
    """Tell whether a parameter means one set of points and no other."""
    if value is None or isinstance(value, str):
        return False
    # Landmarks given as points serve every split; indices do not.
    return name in ("target_sizes", "init") or (name == "landmarks" and np.ndim(value) == 1)


def _check_data(X, kernel, sample_weight):
    """Check the points, or kernel values if that is the method's kernel, and their weights."""
    if isinstance(X, DenseFactor | LowRankFactor):
        raise TypeError(
            "X must be points or a Gram matrix: every split needs a factor of its own points, "
            f"which cannot be had from one of all; got a {type(X).__name__}"
        )
    is_gram = isinstance(kernel, str) and kernel == "precomputed"
    kernel = Kernel("precomputed" if is_gram else "points")
    X = validation.check_points(X, kernel, sparse=True)
    weights = validation.check_sample_weight(sample_weight, X.shape[0])
    rows = validation.counting_points(weights)
    return _Data(X, kernel, weights, np.arange(X.shape[0]) if rows is None else rows)


def _check_k(k, data):
    """Check that there are k distinct points that count."""
    n = data.rows.size
    which = "" if n == data.X.shape[0] else " whose sample_weight is above 0"
    k = validation.check_integer("k", k, least=1, most=n, why=f", the number of points{which}")
    n_distinct = count_distinct(data.part(data.rows), k)
    if n_distinct < k:
        raise ValueError(
            f"k must be at most {n_distinct}, the number of distinct points{which}; got {k}"
        )
    return k


def _check_accepted(method, n_init, sample_weight):
    """Raise an error if the method cannot do what is asked of every split."""
    accepted = accepted_by(method)
    if sample_weight is not None and "sample_weight" not in accepted:
        raise ValueError(f"sample_weight: {method.name} takes no weights; leave them out")
    if n_init > 1 and "n_init" not in accepted:
        raise ValueError(f"n_init must be 1, as {method.name} makes one start; got {n_init}")


class RecursiveMMC(
    Clusterer,
    solver=recursive_mmc,
    paper="Zhang, Tsang, Kwok, ICML 2007",
    summary="splits in two again and again by a method for two clusters (iter-svr)",
):
    """Recursive maximum margin clustering as a scikit-learn clusterer.

    The estimator behind :func:`fastmmc.recursive_mmc`, which documents the parameters; here ``k``
    is ``n_clusters``.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    method, method_params, split
        How leaves are split, and which, see :func:`fastmmc.recursive_mmc`.
    n_init, random_state, n_jobs, max_time, callback, verbose
        The run, see :func:`fastmmc.recursive_mmc`.

    Attributes
    ----------
    labels_ : (n,) int64 array
        Clusters of the training points.
    tree_ : Tree
        The splits; ``print(model.tree_)`` shows it.
    objective_, status_, n_iter_, n_moves_, sizes_, history_, objectives_
        As in :class:`fastmmc.TreeResult`.
    result_ : TreeResult
        Everything else.
    n_features_in_ : int
        Features of the training points.
    feature_names_in_ : (d,) array
        Their names, where X had any.

    References
    ----------
    K. Zhang, I. W. Tsang, J. T. Kwok, Maximum margin clustering made practical, ICML 2007.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> model = fastmmc.RecursiveMMC(3, method="fast_evo_mmc", random_state=0).fit(X)
    >>> model.sizes_.sum()
    np.int64(150)
    """

    _fields = (*Clusterer._fields, "tree")

    def __init__(
        self,
        n_clusters=8,
        *,
        method="iter_svr",
        method_params=None,
        split="largest",
        n_init=1,
        random_state=None,
        n_jobs=None,
        max_time=None,
        callback=None,
        verbose=0,
    ):
        self.n_clusters = n_clusters
        self.method = method
        self.method_params = method_params
        self.split = split
        self.n_init = n_init
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.callback = callback
        self.verbose = verbose

    @with_callbacks
    def fit(self, X, y=None, sample_weight=None):
        """Cluster the points.

        Parameters
        ----------
        X : (n, d) array_like or sparse matrix
            Points; with a precomputed kernel their (n, n) Gram matrix.
        y : object, optional
            Ignored.
        sample_weight : (n,) array_like, optional
            Weights, at least 0, for methods that take them.

        Returns
        -------
        RecursiveMMC
            Itself.

        Raises
        ------
        ValueError, TypeError, MemoryError
            As :func:`fastmmc.recursive_mmc`.
        """
        X = self._check_training_points(X)
        params = self.get_params(deep=False)
        k = params.pop("n_clusters")
        with fit_tasks(self, None, "split") as tasks:
            params["callback"] = tasks.with_callback(self.callback)
            result = recursive_mmc(X, k, sample_weight=sample_weight, **params)
        return self._keep(result)

    def score(self, X, y=None):
        """Return minus the mean hinge loss of the points in their clusters.

        A point whose least margin on its way down the tree is f costs max(0, 1 - f): nothing
        beyond the margin of all its splits, 1 on a border.

        Parameters
        ----------
        X : (m, d) array_like
            Points; with a precomputed kernel their (m, n) kernel values.
        y : object, optional
            Ignored.

        Returns
        -------
        float
            Between -1 and 0; higher is better.
        """
        margins = self.decision_function(X).max(axis=1)
        return -float(np.mean(np.maximum(0.0, 1.0 - margins)))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        try:
            inner = get_tags(find_binary(self.method).estimator(**(self.method_params or {})))
        except (TypeError, ValueError):
            return tags  # fit says what is wrong
        tags.input_tags.pairwise = inner.input_tags.pairwise
        tags.input_tags.sparse = inner.input_tags.sparse
        return tags
