"""Clusters without settings: widths and size rules are tried, and the labels decide by vote."""

import warnings
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from fastmmc import _loops_genie as genie
from fastmmc import validation
from fastmmc._clusterer import COMMON_FIELDS, Clusterer
from fastmmc._declare import Parameters, function_of, parameter
from fastmmc._typing import MatrixLike
from fastmmc.execution import RunControl, fixed_seed, restart_stream, show_progress
from fastmmc.factors import leave_one_out_residuals, make_factor
from fastmmc.gram import Kernel, squared_distances
from fastmmc.nystroem import Form
from fastmmc.parameters import ClusterCount, Clusters, Points, Seed, Threads
from fastmmc.results import RLSResult
from fastmmc.rls import umc_rls
from fastmmc.rls.free import Groups
from fastmmc.rls.source import fit_labels
from fastmmc.sizes import size_rule

# Widths sigma: sigma^2 is the median squared distance of a point from its (f n / k)-th neighbour.
WIDTHS = (4.0, 1.0, 0.25, 0.0625)

# Thresholds of Genie's Gini index.
GINIS = (0.1, 0.3, 0.5, 0.7)

# Size bounds of the labels of about equal sizes.
BALANCE = 0.4

LAM = 0.25

# An error below this is as good as none.
LEAST_ERROR = 1e-6

# Rules whose labels may be returned.
RULES = ("near", "polished", "linked", "free")

# Points that the choice is made on; of more, a sample.
SAMPLE = 2_000

# Points up to which all of more than that descend on the dense hat matrix, and else its rank.
DENSE = 5_000
RANK = 1_000

TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Candidate:
    """A labelling that :func:`cluster` tried.

    Attributes
    ----------
    name : str
        Rule, width and, where it has one, Genie's threshold.
    f : float
        Width in units of the cluster: sigma is a median distance to the (f n / k)-th neighbour.
    sigma : float
        Width of the Gaussian kernel.
    rule : str
        "near": of about equal sizes; "polished": from there by the size-free descent; "linked":
        from Genie's clusters by that descent; "free": the least size-free cost found; "genie":
        Genie's clusters, which only vote.
    criterion : float
        Leave-one-out error: the mean over clusters of ||L - E||^2 / s, with s the size of the
        cluster, E its indicator and L the leave-one-out predictions of it.
    weight : float
        Its weight in the vote; all sum to 1.
    vote : float
        Expected adjusted Rand index: its mean with all candidates, by their weights.
    labels : (n,) int64 array
        Clusters 0..k-1; of the sample, where there was one.
    """

    name: str
    f: float
    sigma: float
    rule: str
    criterion: float
    weight: float
    vote: float
    labels: np.ndarray = field(repr=False)


@dataclass(frozen=True, eq=False, repr=False)
class ChoiceResult(RLSResult):
    """A clustering whose width and size rule were chosen without labels.

    Attributes
    ----------
    candidates : tuple of Candidate
        Everything that was tried, the most votes first.
    chosen : dict
        Parameters with which ``umc_rls(X, k, **chosen)`` makes these clusters.
    """

    candidates: tuple[Candidate, ...] = field(repr=False, default=())
    chosen: dict[str, Any] = field(repr=False, default_factory=dict)


class _ChoiceParameters(Threads, Seed, Parameters):
    """What the function and the estimator have in common."""


class _ChoiceCall(_ChoiceParameters, Clusters, Points):
    """A call of :func:`cluster`."""

    X: MatrixLike = parameter(
        kw_only=False,
        doc="Points, with columns in comparable units (float32 is kept, else float64).",
    )


class _Width:
    """The hat matrix of one width, and what is done on it."""

    def __init__(self, X, distances, f, k, seed, n_jobs):
        self.f = f
        self.k = k
        self._random_state = seed
        self._n_jobs = n_jobs
        self.sigma = _width(distances, f * len(X) / k)
        self.factor = make_factor(X, LAM, Kernel("rbf", sigma=self.sigma), Form(), seed)
        n = len(X)
        self._points = Groups(self.factor.R, np.ones(n, dtype=np.int64), np.ones(n, dtype=np.bool_))
        self._rule = size_rule(n, k)

    def search(self, **params):
        """Return objective and labels of a search."""
        told = {"random_state": self._random_state, "n_jobs": self._n_jobs} | params
        result = umc_rls(self.factor, self.k, **told)
        return result.objective, result.labels

    def descend(self, labels):
        """Return size-free cost and labels of a descent by single points."""
        labels, cost, _ = self._points.descend(labels, self._rule)
        return cost, labels

    def refine(self, labels):
        """Return size-free cost and labels of a descent by groups and points."""
        labels, cost, _ = self._points.refine(labels, self._rule)
        return cost, labels

    def error(self, labels):
        """Return the leave-one-out error, a mean over clusters."""
        state = self._points.state(labels, self._rule)
        targets = (labels[:, None] == np.arange(self.k)).astype(np.float64)
        rest = leave_one_out_residuals(targets, state.sums.T, state.diag)
        return float(np.mean(np.sum(rest**2, axis=0) / state.counts))


def _width(distances, m):
    """Return the root of the median squared distance to the m-th neighbour."""
    n = len(distances)
    m = min(max(1, round(m)), n - 1)
    ranked = np.partition(distances, m, axis=1)[:, m]
    return float(np.sqrt(np.median(ranked) or ranked.mean() or 1.0))


class _Voters:
    """All labellings of k clusters that are tried on some points."""

    def __init__(self, X, k, seed, n_jobs):
        distances = squared_distances(X, X)
        np.fill_diagonal(distances, 0.0)
        self._k = k
        self.widths = [_Width(X, distances, f, k, seed, n_jobs) for f in WIDTHS]
        self._genie = dict(zip(GINIS, _genie_labels(distances, k), strict=True))

    @cached_property
    def entries(self):
        """Rule, width, threshold or None, and labels of each."""
        entries, starts = [], []
        for width, near in zip(self.widths, self._near(), strict=True):
            polished = width.descend(near)
            linked = {g: width.descend(labels) for g, labels in self._genie.items()}
            entries += [("near", width, None, near), ("polished", width, None, polished[1])]
            entries += [("linked", width, g, labels) for g, (_, labels) in linked.items()]
            starts.append(min([polished, *linked.values()], key=_first))
        entries += [("free", width, None, labels) for width, labels in self._free(starts)]
        for g, labels in self._genie.items():
            best = min(self.widths, key=lambda width: width.error(labels))
            entries.append(("genie", best, g, labels))
        return entries

    def _near(self):
        """Return labels of about equal sizes for each width, the best of those all widths found."""
        found = [width.search(method="memetic", balance=BALANCE) for width in self.widths]
        for j, width in enumerate(self.widths):
            for i in range(len(found)):
                if np.array_equal(found[i][1], found[j][1]):
                    continue
                told = {"method": "steepest", "balance": BALANCE, "init": found[i][1]}
                other = width.search(**told)
                if other[0] < found[j][0] - TOLERANCE:
                    found[j] = other
        return [labels for _, labels in found]

    def _free(self, starts):
        """Return each width with the labels of the least size-free cost that was found."""
        free = []
        for width, start in zip(self.widths, starts, strict=True):
            free.append(min(width.search(sizes="free"), width.refine(start[1]), key=_first))
        order = range(len(free))
        for to, step in [(j, 1) for j in order[1:]] + [(j, -1) for j in order[-2::-1]]:
            other = self.widths[to].refine(free[to - step][1])
            if other[0] < free[to][0] - TOLERANCE:
                free[to] = other
        return [(width, labels) for width, (_, labels) in zip(self.widths, free, strict=True)]


def _first(pair):
    return pair[0]


def _genie_labels(distances, k):
    """Return Genie's k clusters for each threshold."""
    n = len(distances)
    first, second = np.empty((2, n - 1), dtype=np.int64)
    length = np.empty(n - 1)
    genie.spanning_tree(distances, first, second, length)
    order = np.argsort(length, kind="stable")
    found = []
    for most_gini in GINIS:
        labels = np.empty(n, dtype=np.int64)
        genie.merge_along(first[order], second[order], k, most_gini, labels)
        found.append(np.unique(labels, return_inverse=True)[1].astype(np.int64))
    return found


def agreement(labellings, k):
    """Return the adjusted Rand index of each pair, (m, m)."""
    m, n = len(labellings), labellings[0].size
    together = np.empty((m, m))
    for i in range(m):
        for j in range(i + 1):
            counts = np.unique(labellings[i] * k + labellings[j], return_counts=True)[1]
            together[i, j] = together[j, i] = np.sum(counts * (counts - 1.0)) / 2.0
    own = np.diagonal(together)
    expected = np.outer(own, own) / max(1.0, n * (n - 1) / 2.0)
    most = (own[:, None] + own) / 2.0
    same = most - expected <= 0
    return np.where(same, 1.0, (together - expected) / np.where(same, 1.0, most - expected))


def weigh(errors, labellings, rules, k):
    """Return the candidates' weights, (m,), which sum to 1.

    error^-2 exp(-(log k - entropy of the sizes)), over the number of candidates of the same rule.
    """
    weights = np.maximum(errors, LEAST_ERROR) ** -2
    for i, labels in enumerate(labellings):
        shares = np.bincount(labels, minlength=k) / labels.size
        shares = shares[shares > 0]
        weights[i] *= np.exp(-np.log(k) - np.sum(shares * np.log(shares))) / rules.count(rules[i])
    return weights / weights.sum()


def _vote(voters, k):
    """Return the candidates, and the index of the winner and its width."""
    rules = [rule for rule, *_ in voters.entries]
    labellings = [labels for *_, labels in voters.entries]
    errors = np.array([width.error(labels) for _, width, _, labels in voters.entries])
    weights = weigh(errors, labellings, rules, k)
    votes = agreement(labellings, k) @ weights
    candidates = []
    for at, (rule, width, g, labels) in enumerate(voters.entries):
        name = f"{rule} f={width.f:g}" + ("" if g is None else f" gini={g:g}")
        figures = (float(errors[at]), float(weights[at]), float(votes[at]))
        candidates.append(Candidate(name, width.f, width.sigma, rule, *figures, labels))
    eligible = [at for at, rule in enumerate(rules) if rule in RULES]
    winner = max(eligible, key=lambda at: votes[at])
    return candidates, candidates[winner], voters.entries[winner][1]


@function_of(_ChoiceCall)
def cluster(call: _ChoiceCall, control: RunControl) -> ChoiceResult:
    """Cluster in k without a width and without sizes: both are chosen by a vote of labellings.

    At four widths, a factor 4 of neighbours apart, labels are made by several rules: of about
    equal sizes (:func:`fastmmc.umc_rls` with ``balance=0.4``), from there by the descent of free
    sizes, from Genie's clusters by that descent, and by the search of free sizes. Each votes with
    the weight error^-2 exp(-(log k - entropy of its sizes)), shared among those of its rule, where
    the error is the leave-one-out error of the clusters' indicators. The labels with the largest
    expected adjusted Rand index win: those that are predicted nearly without error, if there are
    such, and else those most like the others.

    Returns
    -------
    ChoiceResult
        What :func:`fastmmc.umc_rls` returns, with the table of ``candidates`` and the parameters
        that were ``chosen``.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range or X not a finite matrix.
    MemoryError
        If the hat matrices do not fit into free memory.

    Notes
    -----
    The distances are taken as they are: columns in different units must be scaled first.

    Of more than 2,000 points, as many are drawn for the choice, and the others get their labels
    from its model; then all points descend, with lam in proportion, above 5,000 points on a hat
    matrix of rank 1,000. Up to 2,000 points: O(n^3) for each of the four widths, and about six
    n x n arrays of memory.

    References
    ----------
    T. Pahikkala, A. Airola, F. Gieseke, O. Kramer, Unsupervised multi-class regularized
    least-squares classification, ICDM 2012. The free sizes and the vote are this package's own.

    M. Gagolewski, M. Bartoszuk, A. Cena, Genie: a new, fast, and outlier-resistant hierarchical
    clustering algorithm, Information Sciences 363, 2016.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("moons")
    >>> res = fastmmc.cluster(X, 2, random_state=0)
    >>> res.sizes, res.candidates[0].rule in ("near", "polished", "linked", "free")
    (array([100, 100]), True)
    """
    X = validation.check_points(call.X, Kernel("points"))
    n = X.shape[0]
    k = validation.check_integer("k", call.k, least=1, most=n, why=", the number of points")
    seed = fixed_seed(call.random_state)
    rows = slice(None)
    if n > SAMPLE:
        rows = np.sort(restart_stream(seed, 0).choice(n, max(SAMPLE, min(n, 2 * k)), replace=False))
    with show_progress(control), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        voters = _Voters(X[rows].astype(np.float64), k, seed, call.n_jobs)
        candidates, winner, width = _vote(voters, k)
        labels = winner.labels
        if n > SAMPLE:
            model, _ = fit_labels(width.factor, labels, k)
            labels = np.argmax(model.decision_function(X), axis=1)
            labels[rows] = winner.labels
    chosen = {
        "sigma": winner.sigma,
        "lam": LAM * n / winner.labels.size,
        "rank": None if n <= DENSE else RANK,
        "method": "steepest",
        "init": labels,
    }
    chosen |= {"balance": BALANCE} if winner.rule == "near" else {"sizes": "free"}
    result = umc_rls(X, k, **chosen, random_state=seed, n_jobs=call.n_jobs)
    candidates.sort(key=lambda one: -one.vote)
    return ChoiceResult(**vars(result), candidates=tuple(candidates), chosen=chosen)


class AutoMMC(
    Clusterer,
    _ChoiceParameters,
    ClusterCount,
    solver=cluster,
    paper="Pahikkala, Airola, Gieseke, Kramer, ICDM 2012",
    summary="regularised least squares; width and sizes are chosen by a vote",
):
    """Clusters without a width and without sizes, as a scikit-learn clusterer.

    See :func:`fastmmc.cluster`.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("moons")
    >>> fastmmc.AutoMMC(2, random_state=0).fit(X).sizes_
    array([100, 100])
    """

    _fields = ("loo_mse", *COMMON_FIELDS, "candidates", "chosen")

    def _count_tasks(self, n):
        return None
