"""Any number of clusters from a method that makes two: split, and split the parts again."""

from collections.abc import Callable
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import get_tags

from fastmmc.core import validation
from fastmmc.core.callbacks import with_callbacks
from fastmmc.core.clusterer import COMMON_FIELDS, Clusterer, MarginClusterer
from fastmmc.core.declare import check_method_params, function_of, own_values, parameter
from fastmmc.core.docstrings import completed_by
from fastmmc.core.execution import Progress, RunControl, fixed_seed, rate_figures, show_progress
from fastmmc.core.parameters import ClusterCount, Clusters, Points, RunParameters
from fastmmc.core.types import MatrixLike
from fastmmc.kernels.factors import DenseFactor, LowRankFactor
from fastmmc.kernels.gram import Kernel
from fastmmc.registry import METHODS, registry_name
from fastmmc.trees import OWN_PARAMETERS, TreeGrower, TreeResult, WeightedPoints


class _Recursion(RunParameters, before="n_init"):
    """What the function and the estimator have in common."""

    method: str = parameter(
        default="iter_svr",
        doc="""
        A method of :data:`fastmmc.METHODS` for two clusters, by the name of its function or of
        its entry there ("evo_mmc" or "evo-mmc").
        """,
    )
    method_params: dict[str, Any] | None = parameter(
        default=None,
        doc="""
        Parameters of the method, as ``{"C": 10.0, "balance": 0.3}``. An integer ``rank`` counts
        for all points; a leaf of fewer points takes as many landmarks as it has points.
        """,
    )
    split: Literal["largest", "gain"] = parameter(
        default="largest",
        doc="""
        Which leaf is split next: the one of the largest size (sum of its weights), or the one
        whose split lowers the within-cluster sum of squares most. For the latter every leaf is
        split on trial, 2 k - 3 splits in all. Ties go to the leaf further left.
        """,
    )
    n_init: int = parameter(default=1, doc="Starts of every split.")
    callback: Callable[[Progress], bool | None] | None = parameter(
        default=None,
        doc="""
        Called with a :class:`~fastmmc.Progress`, whose ``n_done`` and ``n_init`` count
        splits; a true return value stops the run.
        """,
    )


class _RecursiveCall(_Recursion, Clusters, Points, before="n_init"):
    X: MatrixLike = parameter(
        kw_only=False,
        kind="(n, d) array_like, data frame or sparse matrix",
        doc="""
        Points (float32 is kept, anything else becomes float64), or sparse ones; with
        ``kernel="precomputed"`` among the ``method_params`` their (n, n) Gram matrix.
        """,
    )
    sample_weight: ArrayLike | None = parameter(
        default=None,
        kind="(n,) array_like",
        doc="""
        Weights, at least 0, for methods that take them: a point of weight s stands for s equal
        ones. A point of weight 0 does not count, and gets its label from the tree.
        """,
    )


@function_of(_RecursiveCall)
def recursive_mmc(call: _RecursiveCall, control: RunControl) -> TreeResult:
    """Cluster in k by splitting in two again and again with a method for two clusters.

    Starts with all points in one leaf and, until there are k, replaces a leaf by the two clusters
    that the method makes of its points. Whatever the method derives from the points (the width of
    the kernel, the sizes that ``balance`` allows), it derives from those of the leaf.

    Returns
    -------
    TreeResult
        ``labels`` number the leaves from left to right; ``tree`` holds the splits, and
        ``print(result.tree)`` shows it. ``objective`` is the (weighted) sum of squared distances
        of the points from the mean of their cluster, in the space of X or, with a precomputed
        kernel, in that of the kernel: comparable between trees of equally many clusters, by any
        method. ``history`` holds it after 0, 1, ... splits; ``n_iter`` counts the
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
    UserWarning
        If columns of X seem to have different units.

    Notes
    -----
    The paper splits recursively but does not say which cluster is next; both rules are this
    package's. With a method of O(n^2) time and leaves of n / 2 points, the second level costs half
    as much as the first, and so on.

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
    method = find_binary(call.method)
    params = check_method_params(
        method.name,
        method.parameters,
        call.method_params,
        "recursive_mmc",
        OWN_PARAMETERS,
        _misfit,
    )
    data = _check_data(call.X, params.get("kernel"), call.sample_weight)
    n = data.rows.size
    which = "" if n == data.X.shape[0] else " whose sample_weight is above 0"
    why = f", the number of points{which}"  # equal ones end in fewer clusters
    k = validation.check_integer("k", call.k, least=1, most=n, why=why)
    if call.sample_weight is not None and "sample_weight" not in method.parameters:
        raise ValueError(f"sample_weight: {method.name} takes no weights; leave them out")
    check_starts(method, call.n_init)
    seed = fixed_seed(call.random_state)
    with show_progress(control, "split") as control:
        grower = TreeGrower(data, k, call.split, method, params, call.n_init, seed, control)
        grower.grow()
    tree, model, labels, history = grower.build()
    return TreeResult(
        labels=labels,
        objective=float(history[-1]),
        status=rate_figures(grower.status(), objective=history[-1]),
        n_iter=len(grower.kept),
        n_moves=sum(leaf.split.n_moves for leaf in grower.kept.values()),
        sizes=np.bincount(labels),
        history=history,
        trace={"splits": np.arange(history.size)},
        objectives=history[-1:].copy(),
        best_init=0,
        params=own_values(call, _Recursion)
        | {"n_init": call.n_init, "method": method.name, "method_params": params},
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


def _misfit(name, value):
    """Return what is wrong with a parameter that means one set of points and no other."""
    if value is None or isinstance(value, str):
        return ""
    # Landmarks given as points serve every split; indices do not.
    of_points = name == "landmarks" and np.ndim(value) == 1
    if of_points or name in ("target_sizes", "max_size", "init"):
        return "of all points, and most splits are of fewer"
    return ""


def _check_data(X, kernel, sample_weight):
    """Check the points, or kernel values if that is the method's kernel, and their weights."""
    if isinstance(X, DenseFactor | LowRankFactor):
        raise TypeError(
            "X must be points or a Gram matrix: every split needs a factor of its own points, "
            f"which a factor of all points cannot give; got a {type(X).__name__}"
        )
    is_gram = isinstance(kernel, str) and kernel == "precomputed"
    kernel = Kernel("precomputed" if is_gram else "points")
    X = validation.check_points(X, kernel, sparse=True)
    weights = validation.check_sample_weight(sample_weight, X.shape[0])
    rows = validation.counting_points(weights)
    return WeightedPoints(X, kernel, weights, np.arange(X.shape[0]) if rows is None else rows)


def check_starts(method, n_init):
    """Refuse several starts of a method that makes one."""
    if n_init > 1 and "n_init" not in method.parameters:
        raise ValueError(f"n_init must be 1, as {method.name} makes one start; got {n_init}")


class RecursiveMMC(
    MarginClusterer,
    _Recursion,
    ClusterCount,
    solver=recursive_mmc,
    paper="Zhang, Tsang, Kwok, ICML 2007",
    summary="splits in two again and again by a method for two clusters (iter-svr)",
):
    """Recursive maximum margin clustering as a scikit-learn clusterer."""

    _fields = (*COMMON_FIELDS, "tree")
    _unit = "split"

    @with_callbacks
    @completed_by(recursive_mmc)
    @completed_by(Clusterer.fit)
    def fit(self, X: MatrixLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Cluster the points."""
        return self._fit(X, sample_weight=sample_weight)

    def _count_tasks(self, n):
        return None

    def _margins(self, scores):
        """Return the least margin of each point on its way down the tree, 0 on a border."""
        return scores.max(axis=1)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        try:
            inner = get_tags(find_binary(self.method).estimator(**(self.method_params or {})))
        except (TypeError, ValueError):
            return tags  # fit says what is wrong
        tags.input_tags.pairwise = inner.input_tags.pairwise
        tags.input_tags.sparse = inner.input_tags.sparse
        return tags
