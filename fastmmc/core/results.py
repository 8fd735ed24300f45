"""What every solver returns."""

from __future__ import annotations

from dataclasses import field, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.exceptions import NotFittedError

from fastmmc.core.column_names import Named
from fastmmc.core.display import Listed, as_assignments
from fastmmc.core.docstrings import completed_by
from fastmmc.core.saving import Savable, stored
from fastmmc.core.status import STATUS_TEXT, Status
from fastmmc.core.types import MatrixLike
from fastmmc.core.words import counted
from fastmmc.data import memberships
from fastmmc.data.blocks import map_rows
from fastmmc.profile import ClusterProfile, profile_of

__all__ = [
    "CentroidResult",
    "ClusteringResult",
    "MarginResult",
    "RLSResult",
    "SDPResult",
    "SegmentationResult",
    "SizedResult",
]


# Clusters up to which each size is shown.
SIZES_SHOWN = 12


def _links_row(result):
    """Return the row of broken links, none where there are no links."""
    if not result.n_constraints:
        return {}
    constraints = counted(result.n_constraints, "constraint")
    return {"n_violations": f"{result.n_violations} of {constraints}"}


@stored(
    labels="i8:n",
    sizes="i8:k",
    history="f8?:t",
    objectives="f8?:s",
    feature_names_in="O:c",
)
class ClusteringResult(Savable, Listed, Named):
    """A clustering and how it came about.

    Attributes
    ----------
    labels : (n,) int64 array
        Clusters 0..k-1; a Dask array where X is one. With ``trim`` -1 for what was left out.
    objective : float
        What the method minimises; lower is better.
    status : Status
        Why the run ended.
    n_iter : int
        Rounds, sweeps or steps of the winning start.
    n_moves : int
        Label changes of the winning start.
    sizes : (k,) int64 array
        Cluster sizes.
    history : (T,) float64 array
        Objective of the winning start along its way.
    trace : dict of str to (T,) array
        Further quantities along the way, by name: "moves" made so far (UMC-RLS), "generations"
        (evolution), "splits" (trees), "gap" and "bias" (iterSVR), "planes" (cutting planes) ...
    objectives : (n_init,) float64 array
        Final objective of every start that ended.
    best_init : int
        Which start won.
    params : dict
        Parameters of the function as they were used, with the values that replaced None; with the
        same data they repeat the call. Of ``cluster`` those of ``umc_rls``, of ``segment`` those of
        its method as well.
    model : object or None
        Predicts new points; small and picklable. None where the method has none.
    feature_names_in : (d,) array of str or None
        Names of the columns of X; new points must have the same. None if X had none.
    coding : Coding or None
        Where X was a table of several kinds of columns, how they became numbers; ``str()`` of it
        has a line on each. New rows are coded likewise, by the names of their columns.
    method : str
        The function that made it, as "umc_rls".
    seconds : float or None
        What the whole call took; of a path, that of all its results together.
    resolved : tuple of str
        Which of ``params`` the call had left open, as None or "auto", and the method has filled in.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> res = fastmmc.sammc(X, 3, random_state=0)
    >>> res.converged, res.labels.shape, res.predict(X[:2]).shape
    (True, (150,), (2,))
    """

    labels: NDArray[np.int64]
    objective: float
    status: Status
    n_iter: int
    n_moves: int
    sizes: NDArray[np.int64]
    history: NDArray[np.float64]
    trace: dict[str, np.ndarray]
    objectives: NDArray[np.float64]
    best_init: int
    params: dict[str, Any]
    model: Any = field(repr=False, default=None)
    method: str = field(default="", kw_only=True)
    seconds: float | None = field(default=None, kw_only=True)
    resolved: tuple[str, ...] = field(default=(), kw_only=True)

    def __repr__(self):
        return (
            f"{type(self).__name__}(n={len(self.labels)}, k={len(self.sizes)}, "
            f"objective={self.objective:.6g}, status={self.status.name})"
        )

    def _headline(self):
        n, k = len(self.labels), len(self.sizes)
        made = f"{counted(n, 'point')} in {counted(k, 'cluster')}, {STATUS_TEXT[self.status]}"
        return f"{self.method or type(self).__name__}: {made}"

    def _rows(self):
        """Return what people are shown of it, names and texts."""
        sizes = self.sizes
        shown = f"{sizes.min()} to {sizes.max()}, median {np.median(sizes):g}"
        if len(sizes) <= SIZES_SHOWN:
            shown = " ".join(map(str, sizes))
        rows = {"sizes": shown, "objective": f"{self.objective:.6g}"}
        if len(self.objectives) > 1:
            rows["objective"] += f", the lowest of {len(self.objectives)} starts"
        rows |= self._own_rows()
        if self.seconds is not None:
            rows["seconds"] = f"{self.seconds:.3g}"
        filled_in = {name: self.params[name] for name in self.resolved}
        return rows | ({"resolved": as_assignments(filled_in)} if filled_in else {})

    def _own_rows(self):
        """Return what a kind of result shows beside what all show."""
        return {}

    @property
    def converged(self) -> bool:
        """Whether the run ended by itself."""
        return self.status == Status.CONVERGED

    def decision_function(self, X: MatrixLike) -> np.ndarray:
        """Return the score of every cluster for new points.

        Parameters
        ----------
        X : (m, d) array_like or dask.array
            New points; with a precomputed kernel their (m, n) kernel values.

        Returns
        -------
        (m, k) array
            Scores; the largest one names the cluster. For a Dask array, a Dask array that is
            not yet computed.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the result carries no model.
        ValueError
            If the columns of X have other names than those of the training points.

        Warns
        -----
        UserWarning
            If the kernel is Gaussian or Laplacian, and nearly all of 20 or more new points lie so
            far beyond the training points that their columns seem to have other units.
        """
        X, light = self._in_numbers(X), self._without_labels()
        return map_rows(light._scores, X, len(self.sizes), np.dtype(np.float64))

    # Estimators, which have checked the names themselves, call what checks no more.

    def _scores(self, X):
        return self._fitted_model().decision_function(X)

    def _nearest(self, X):
        return np.argmax(self._scores(X), axis=1)

    def _fitted_model(self):
        if self.model is None:
            raise NotFittedError("this result carries no model, so it cannot predict")
        return self.model

    @completed_by(decision_function)
    def predict(self, X: MatrixLike) -> NDArray[np.int64]:
        """Return the clusters of new points.

        Returns
        -------
        (m,) int64 array
            Clusters 0..k-1. For a Dask array, a Dask array that is not yet computed.
        """
        return map_rows(self._without_labels()._nearest, self._in_numbers(X))

    def profile(self, X: MatrixLike) -> ClusterProfile:
        """Return what is in each cluster: sizes, medians or frequent categories, typical rows.

        Parameters
        ----------
        X : (n, d) array_like or data frame
            The points, or any other columns of the same rows. Numbers, dates, categories and
            missing cells are understood as everywhere; ids that did not make the clusters are
            left out.

        Returns
        -------
        ClusterProfile
            ``print`` shows the columns in which each cluster differs most; ``to_frame()`` has all.

        Raises
        ------
        TypeError, ValueError
            If X is in blocks or sparse, has another number of rows, or tells nothing.

        Examples
        --------
        >>> import fastmmc
        >>> ages = [[5], [6], [7], [60], [70], [80], [90]]
        >>> print(fastmmc.sammc(ages, 2, random_state=0).profile(ages))
        7 points in 2 clusters, by 1 column
        cluster 0: 3 points, 42.9%
          column 0  1.00  6 (5.5 to 6.5); of all 60 (6.5 to 75)
        cluster 1: 4 points, 57.1%
          column 0  1.00  75 (67.5 to 82.5); of all 60 (6.5 to 75)
        First the difference from the other clusters, from 0 (none) to 1; then the median
        (quartiles), or the most frequent category.
        """
        return profile_of(self, X)

    def _without_labels(self):
        """Return what predicts, without the arrays that are as long as the training points."""
        return replace(self, labels=self.labels[:0], trace={})

    def _with_coding(self, coding):
        """Return the result of a coded table, which says whether numbers were scaled."""
        changed, params = {"coding": coding}, self.params
        if coding is not None and coding.is_scaled and "standardize" in params:
            changed["params"] = params | {"standardize": True}
            if hasattr(self, "chosen"):
                changed["chosen"] = self.chosen | {"standardize": True}
        return replace(self, **changed)

    def _check_values(self):
        k = len(self.sizes)
        least = -1 if self.params.get("trim") else 0
        if self.labels.size and not least <= self.labels.min() <= self.labels.max() < k:
            raise ValueError(f"labels are not from {least} to {k - 1}")
        if not np.array_equal(np.bincount(self.labels[self.labels >= 0], minlength=k), self.sizes):
            raise ValueError("sizes are not those of the labels")
        model, names = self.model, self.feature_names_in
        if model is None:
            return
        if model.n_scores != k:
            raise ValueError(f"model tells {model.n_scores} clusters apart, and there are {k}")
        if self.coding is not None and self.coding.n_features != model.n_features:
            raise ValueError(f"columns become {self.coding.n_features}, not {model.n_features}")
        d = model.n_features if self.coding is None else len(self.coding.columns)
        if names is not None and names.size != d:
            raise ValueError(f"there are {names.size} names of {d} columns")


@stored(size_bounds="i8:kb")
class SizedResult(ClusteringResult):
    """A clustering whose cluster sizes may have bounds.

    Attributes
    ----------
    size_bounds : (k, 2) int64 array or None
        The least and the greatest size that each cluster was allowed in the end; None where a
        method bounds no sizes, or weights of points that are not all 1 instead.
    at_size_bound : (k,) bool array or None
        Which clusters have such a size, so that other bounds may change the result.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> res = fastmmc.umc_rls(X, 3, max_size=60, random_state=0)
    >>> res.size_bounds.max(), res.sizes.max() <= 60
    (np.int64(60), np.True_)
    """

    size_bounds: NDArray[np.int64] | None = None

    @property
    def at_size_bound(self) -> NDArray[np.bool_] | None:
        """Which clusters have the least or the greatest size that they were allowed."""
        if self.size_bounds is None:
            return None
        return (self.size_bounds == self.sizes[:, None]).any(axis=1)


@stored(loo_scores="f8:nk", outlier_scores="f8:n", sample_weight="f8:n", classes="O:k")
class RLSResult(SizedResult):
    """A clustering by regularised least squares.

    Attributes
    ----------
    loo_mse : float or None
        Mean squared leave-one-out error of the final labels: the mean over all points and clusters
        of (p - f)^2. p is 1 for the point's own cluster and -1 for the others, and f is the
        prediction of the model that is fitted to all points that differ from this one (of points
        in blocks, to all others), and their labels. Lower is better and, unlike the objective, it
        compares values of lam and sigma. It is near 1 where points do not predict each other.
    bound : float or None
        If it was asked for: a lower bound of the objective over all labellings with sizes that the
        size rule allows, or, where sizes are not bounded, with the sizes of this one. It comes from
        eigenvalues, so even the best labelling may be well above it.
    gap : float or None
        Largest share of the objective by which the best labelling may be lower than it.
    classes : (k,) array of str or None
        Where known labels were strings: what they call the clusters, "" for one that has no
        name; ``classes[labels]`` are the names of the points, but for those with the label -1.
    loo_scores : (n, k) float64 array or None
        The predictions f behind ``loo_mse``: near 1 in the column of a point's cluster and near -1
        elsewhere where the other points tell it well. Points in blocks, and results of more than
        1e7 scores n k, have neither these nor what comes of them: ``probabilities``, ``margins``,
        ``exemplars``, ``boundary_points`` and ``predict_proba``.
    n_constraints : int
        Must-links and cannot-links, each pair counted once.
    n_violations : int
        How many of them the labels violate.
    outlier_scores : (n,) float64 array or None
        R_jj^2 / (R_jj^2 + (sum_i R_ij^4)^(1/2)), where i is not j, from 0 to 1: a high
        score means that few other points are similar. R_ij is how much of point i goes into the
        prediction of point j, and R the hat matrix of a fifth of lam: of point j and of an evenly
        spaced sample of 1,000 points, above 2,000 points of m = (2e9 / n)^(1/2). That takes
        O(n m^2). A point of weight s is s equal points here. The scores come from X, the kernel and
        lam alone and rank the points of one result: they are no probabilities.
    sample_weight : (n,) float64 array or None
        The weights that were given, None if all are 1.
    probabilities : (n, k) float64 array
        How likely each point is in each cluster, as judged by the others: softmax of
        b ``loo_scores``. Rows sum to 1 and are largest in the column of the label, unless all are
        equal. The Notes of :class:`fastmmc.RLSResult` say how they are calibrated.
    margins : (n,) float64 array
        Half the difference between a point's leave-one-out score for its own cluster and the best
        for another (-1 where k = 1): 1 well inside, 0 on a boundary, below 0 where another cluster
        suits it better. The cluster of points that were left out is the one of their largest score.
    exemplars : tuple of k int64 arrays
        The points of each cluster, the most typical first: by descending ``margins`` /
        ``outlier_scores``, so that they are both surely in their cluster and much like many other
        points. ``exemplars[h][:5]`` are the five most typical of cluster h.
    boundary_points : (n,) int64 array
        All points that have a cluster, by ascending margin, so that ``boundary_points[:20]`` are
        the 20 that are nearest to another cluster, or beyond the boundary.

    Notes
    -----
    The probabilities are calibrated without the truth, so they are no better than the labels:
    b >= 0 makes them as sure as the scores are right. Sure is the mean of sum_h p_h^2, and right is
    the squared cosine between the scores and the labels' indicators after their means over the
    clusters are taken off; both are brought to 0..1. Maximum likelihood of the labels will not do:
    they were chosen to be easy to predict, and its probabilities would often be 0 and 1.

    A point with a margin below 0 is held in its cluster by a size rule or a known label, or was
    left there by a search that stopped early. Its probabilities are adjusted as little as possible,
    so that none exceeds that of its label. ``predict``, which knows nothing of sizes and known
    labels, may differ from ``labels`` at such points. By default they were 0.3 to 2.4 % of the
    points of six data sets, and up to 7 % with ``balance=0``.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> res = fastmmc.umc_rls(X, 3, bound=True, n_init=3, random_state=0)
    >>> res.bound <= res.objective, res.probabilities.shape
    (True, (150, 3))
    >>> typical, doubtful = res.exemplars[0][0], res.boundary_points[0]
    >>> bool(res.margins[typical] > res.margins[doubtful])
    True
    """

    loo_mse: float | None = None
    bound: float | None = None
    classes: NDArray[np.object_] | None = None
    n_constraints: int = 0
    n_violations: int = 0
    loo_scores: NDArray[np.float64] | None = field(kw_only=True, repr=False)
    outlier_scores: NDArray[np.float64] | None = field(kw_only=True, repr=False)
    sample_weight: NDArray[np.float64] | None = field(default=None, repr=False)

    @property
    def _scores_of_others(self):
        if self.loo_scores is None:
            raise ValueError(
                "points in blocks, and more than 1e7 scores n k, have no loo_scores, which this "
                "comes from; decision_function gives the scores of the model for any rows"
            )
        return self.loo_scores

    def _without_labels(self):
        long = dict.fromkeys(("loo_scores", "outlier_scores", "sample_weight"))
        return replace(super()._without_labels(), **long)

    @cached_property
    def _told(self):
        """The labels in memory."""
        return np.asarray(self.labels)

    @cached_property
    def _clusters(self):
        """The labels, and for points that were left out the clusters that the others predict."""
        scores = self._scores_of_others
        return np.where(self._told >= 0, self._told, scores.argmax(axis=1))

    @cached_property
    def _sharpness(self):
        told, weights = self._told >= 0, self.sample_weight
        weights = None if weights is None else weights[told]
        return memberships.find_sharpness(self._scores_of_others[told], self._told[told], weights)

    @cached_property
    def probabilities(self) -> NDArray[np.float64]:
        """How likely each point is in each cluster, as judged by the others."""
        return memberships.probabilities(self._scores_of_others, self._clusters, self._sharpness)

    @cached_property
    def margins(self) -> NDArray[np.float64]:
        """By how much each point's own cluster suits it better than the best other one."""
        return memberships.margins(self._scores_of_others, self._clusters)

    @cached_property
    def exemplars(self) -> tuple[NDArray[np.int64], ...]:
        """The points of each cluster, the most typical first."""
        # R_jj is 0 for the origin under a linear kernel, and then so is the margin.
        outliers = cast(np.ndarray, self.outlier_scores)  # there are some where there are margins
        typical = self.margins / np.maximum(outliers, np.finfo(float).tiny)
        order = np.lexsort((-typical, self._told))[self._told.size - self.sizes.sum() :]
        return tuple(np.split(order, np.cumsum(self.sizes)[:-1]))

    @cached_property
    def boundary_points(self) -> NDArray[np.int64]:
        """All points that have a cluster, by ascending margin."""
        order = np.argsort(self.margins, kind="stable")
        return order[self._told[order] >= 0]

    @completed_by(ClusteringResult.predict)
    def predict_proba(self, X: MatrixLike) -> NDArray[np.float64]:
        """Return how likely new points are in each cluster: softmax of b times their scores.

        The b is that of ``probabilities``. The largest probability is that of the cluster which
        ``predict`` names. For training points use ``probabilities``: here they would count among
        those that the model knows, and seem too sure.

        Parameters
        ----------
        X : (m, d) array_like
            New points; with a precomputed kernel their (m, n) kernel values.

        Returns
        -------
        (m, k) float64 array
            Rows sum to 1. Far from all training points a Gaussian kernel leaves nearly 1 / k each,
            and a little more for the nearest cluster.
        """
        X = self._in_numbers(X)
        return self._soften(self._scores(X))

    def _soften(self, scores):
        return softmax(self._sharpness * scores, axis=1)

    def _own_rows(self):
        rows = {} if self.loo_mse is None else {"loo_mse": f"{self.loo_mse:.6g}"}
        if self.params.get("trim"):
            rows["left out"] = counted(len(self.labels) - int(self.sizes.sum()), "point")
        rows |= _links_row(self)
        if self.bound is not None:
            rows["bound"] = f"{self.bound:.6g}, gap {self.gap:.3g}"
        return rows

    @property
    def gap(self) -> float | None:
        """Largest share of the objective by which the best labelling may be lower than it."""
        if self.bound is None:
            return None
        return max(0.0, self.objective - self.bound) / max(self.objective, np.finfo(float).tiny)


@stored(dual_coef="f8:m|mk", support="i8:m")
class MarginResult(SizedResult):
    """A clustering by a kernel machine with two classes or, from ``cpm3c``, more.

    Attributes
    ----------
    dual_coef : (m,) float64 array, (m, k) of more classes, or None
        Coefficients of the support vectors: w = sum dual_coef_i phi(x_i).
    support : (m,) int64 array or None
        Which points they belong to.
    intercept : float
        Added to w . phi(x), whose sign then tells the cluster. 0 for more classes. Of alternating
        methods it need not be the bias of ``objective``, which is in ``trace["bias"]``: see
        :func:`iter_svr`.
    duality_gap : float or None
        By how much the machine's objective can exceed the least one for its labels; for cutting
        planes, the gap of the last quadratic program.
    n_violated : int
        Points inside the margin or on the wrong side of it.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.make_nine_gaussians(100, random_state=0)
    >>> res = fastmmc.iter_svr(X, random_state=0)
    >>> res.decision_function(X).shape, res.n_violated <= 100
    ((100, 2), True)
    """

    dual_coef: np.ndarray | None = None
    support: np.ndarray | None = None
    intercept: float = 0.0
    duality_gap: float | None = None
    n_violated: int = 0

    def _own_rows(self):
        rows = {} if self.duality_gap is None else {"duality_gap": f"{self.duality_gap:.3g}"}
        violated = counted(self.n_violated, "point")
        return rows | {"n_violated": f"{violated} inside the margin or on its wrong side"}


@stored(matrix="f8:nn")
class SDPResult(SizedResult):
    """A clustering rounded from the solution of a semidefinite program.

    Attributes
    ----------
    bound : float or None
        A lower bound of the objective over all labellings that the method allows: the value of the
        program, from its multipliers. None if the solver gave none.
    matrix : (n, n) float64 array or None
        The solution that was rounded, which replaces y y^T; None if the solver gave none.
    solver_status : str
        Why the solver ended, in cvxpy's words.

    Examples
    --------
    >>> import fastmmc
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> res = fastmmc.sdp_mmc(X)
    >>> res.bound <= res.objective
    True
    """

    bound: float | None = None
    matrix: np.ndarray | None = field(repr=False, default=None)
    solver_status: str = ""

    def _own_rows(self):
        rows = {} if self.bound is None else {"bound": f"{self.bound:.6g}"}
        return rows | {"solver_status": self.solver_status}


@stored(centers="f8:kd", all_centers="f8:ad", kept="i8:k", weights="f8:a", representatives="f:pd")
class CentroidResult(ClusteringResult):
    """A clustering by prototypes.

    In on-line methods ``n_iter`` counts epochs, ``n_moves`` counts objects presented, and
    ``history`` has, for every epoch, the sum of the squared distances between objects and their
    nearest prototype at the time.

    Attributes
    ----------
    centers : (m, d) float64 array
        Prototypes of the clusters, in the order of the labels; with features, in their space.
    all_centers : (k, d) float64 array
        All prototypes, including those that were dropped because they won too few points.
    kept : (m,) int64 array
        Rows of ``all_centers`` that are ``centers``.
    weights : (k,) float64 array
        Of all prototypes: learning steps plus one, or points (batch).
    n_active : int
        Clusters; with ``rpcl`` an estimate of their number.
    n_constraints : int
        Must-links and cannot-links, each pair counted once.
    n_violations : int
        How many of them the labels violate.
    n_conflicts : int
        Constraints that contradict others.
    representatives : (p, d) float64 array or None
        ``sammc`` only: points that represented the others during the search.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> res = fastmmc.lcvqe(X, 3, cannot_link=[(0, 50), (50, 100)], random_state=0)
    >>> res.centers.shape, res.n_violations
    ((3, 4), 0)
    """

    centers: NDArray[np.float64] = field(kw_only=True)
    all_centers: NDArray[np.float64] = field(kw_only=True)
    kept: NDArray[np.int64] = field(kw_only=True)
    weights: NDArray[np.float64] = field(kw_only=True)
    n_active: int = 0
    n_constraints: int = 0
    n_violations: int = 0
    n_conflicts: int = 0
    representatives: np.ndarray | None = field(repr=False, default=None)

    def _nearest(self, X):
        return self._fitted_model().nearest(X)

    def _own_rows(self):
        rows = {}
        if len(self.all_centers) > len(self.centers):
            rows["n_active"] = f"{self.n_active} of {len(self.all_centers)} prototypes"
        return rows | _links_row(self)

    def transform(self, X: MatrixLike) -> NDArray[np.float64]:
        """Return the distances of new points to the centers.

        Parameters
        ----------
        X : (n, d) array_like or sparse matrix
            New points.

        Returns
        -------
        (n, m) float64 array
            Euclidean distances.
        """
        return np.sqrt(self._fitted_model().distances(self._in_numbers(X)))


@stored(label_image="i8:hw", colors="f8:kx")
class SegmentationResult(ClusteringResult):
    """A picture cut into segments by the colours of its pixels.

    ``labels`` and ``sizes`` are those of the pixels, row by row; segments are numbered by
    descending number of pixels. The fields about the run (``objective``, ``n_iter``, ``history``
    ...) are those of the clustering of the distinct colours. ``predict`` takes colours, (m,
    channels).

    Attributes
    ----------
    label_image : (H, W) int64 array
        Segment of every pixel.
    colors : (k, channels) float64 array
        Mean colour of every segment.

    Examples
    --------
    >>> import numpy as np
    >>> import fastmmc
    >>> image = np.zeros((4, 6, 3), dtype=np.uint8)
    >>> image[:, 2:] = 200, 180, 20
    >>> res = fastmmc.segment(image, 2)
    >>> res.label_image.shape, res.colors[0]
    ((4, 6), array([200., 180.,  20.]))
    """

    label_image: NDArray[np.int64] = field(kw_only=True)
    colors: NDArray[np.float64] = field(kw_only=True)

    def _check_values(self):
        super()._check_values()
        if not np.array_equal(self.label_image.ravel(), self.labels):
            raise ValueError("label_image has other labels than labels")

    def _own_rows(self):
        height, width = self.label_image.shape
        return {"label_image": f"{width} x {height} pixels"}

    def paint(self) -> NDArray[np.float64]:
        """Return the picture with every pixel in the mean colour of its segment.

        Returns
        -------
        (H, W) or (H, W, channels) float64 array
            In the units of the image; without the last axis where there is one channel.
        """
        painted = self.colors[self.label_image]
        return painted[..., 0] if painted.shape[-1] == 1 else painted
