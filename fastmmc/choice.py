"""Clusters without settings: widths and size rules are tried, and the labels decide by vote."""

from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any, Literal

import numpy as np

from fastmmc import validation
from fastmmc._declare import function_of, parameter
from fastmmc._display import as_assignments
from fastmmc._typing import MatrixLike
from fastmmc.execution import (
    RunControl,
    fixed_seed,
    restart_stream,
    show_progress,
    warn_if_stopped,
    without_warnings,
)
from fastmmc.factors import leave_one_out_residuals, make_factor
from fastmmc.gram import Kernel, resolve_kernel, squared_distances
from fastmmc.nystroem import Form
from fastmmc.parameters import (
    ClusterCount,
    Clusters,
    Points,
    Seed,
    Standardization,
    Threads,
    TimeLimit,
)
from fastmmc.results import RLSResult, Status
from fastmmc.rls import umc_rls
from fastmmc.rls.estimators import RLSClusterer
from fastmmc.rls.free import Groups
from fastmmc.rls.genie import Genie
from fastmmc.rls.source import fit_labels
from fastmmc.saving import stored
from fastmmc.sizes import imbalance, size_rule

# Widths sigma: sigma^2 is the median squared distance of a point from its (f n / k)-th neighbour.
WIDTHS = (4.0, 1.0, 0.25, 0.0625)

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

# Share of the time left that one search may take, and the seconds that it may take at least.
SEARCH_SHARE = 0.2
LEAST_TIME = 1e-3

# Where the number of clusters is chosen: the fewest points, the least error, and the f of the
# widths that count.
LEAST_POINTS = 4
LEAST_COUNT_ERROR = 1e-4
F_LEAST, F_MOST = 0.7 / 16, 5.7


@stored(labels="i8:n")
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

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("moons")
    >>> winner = fastmmc.cluster(X, 2, random_state=0).candidates[0]
    >>> winner.labels.shape, 0 < winner.weight <= 1
    ((200,), True)
    """

    name: str
    f: float
    sigma: float
    rule: str
    criterion: float
    weight: float
    vote: float
    labels: np.ndarray = field(repr=False)


@stored()
@dataclass(frozen=True, eq=False, repr=False)
class ChoiceResult(RLSResult):
    """A clustering whose width and size rule were chosen without labels.

    Attributes
    ----------
    candidates : tuple of Candidate
        Everything that was tried, the most votes first.
    chosen : dict
        Parameters with which ``umc_rls(X, k, **chosen)`` makes these clusters.
    scores : dict of int to float
        With ``k="auto"``, the score of every number of clusters that was tried; the largest won.
    errors : dict of int to float
        With ``k="auto"``, the least error that was found for these numbers and the one after them:
        the leave-one-out error, priced by the imbalance of sizes and added over the clusters.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("moons")
    >>> res = fastmmc.cluster(X, 2, random_state=0)
    >>> again = fastmmc.umc_rls(X, 2, **res.chosen)
    >>> bool((again.labels == res.labels).all())
    True
    """

    candidates: tuple[Candidate, ...] = field(repr=False, default=())
    chosen: dict[str, Any] = field(repr=False, default_factory=dict)
    scores: dict[int, float] = field(repr=False, default_factory=dict)
    errors: dict[int, float] = field(repr=False, default_factory=dict)

    @property
    def winner(self) -> Candidate:
        """The candidate whose labels won: most votes among those that may be returned."""
        return next(one for one in self.candidates if one.rule in RULES)

    def _own_rows(self):
        rows = super()._own_rows()
        if self.scores:
            best = sorted(self.scores.items(), key=lambda pair: -pair[1])[:3]
            rows["scores"] = ", ".join(f"{score:.3g} for k = {k}" for k, score in best)
        if self.candidates:
            winner, number = self.winner, len(self.candidates)
            rows["winner"] = f"{winner.name}, vote {winner.vote:.2g} among {number} labellings"
        return rows | {"chosen": as_assignments(self.chosen)}


class _ChoiceParameters(TimeLimit, Threads, Seed, Standardization):
    """What the function and the estimator have in common."""

    max_k: int = parameter(default=30, least=2, doc='Largest number that "auto" considers.')
    max_time: float | None = parameter(
        default=None,
        doc="""
        Seconds for the whole call. Searches are cut short, and "auto" considers fewer numbers;
        hat matrices of up to 2,000 points, descents and the vote are not, and take some seconds.
        """,
    )


class _ChoiceCall(_ChoiceParameters, Clusters, Points):
    """A call of :func:`cluster`."""

    X: MatrixLike = parameter(
        kw_only=False,
        doc="""
        Points, with columns in comparable units, or ``standardize=True`` (float32 is kept, else
        float64).
        """,
    )
    k: int | Literal["auto"] = parameter(  # type: ignore[assignment]
        default="auto",
        kw_only=False,
        doc="""
        Number of clusters, 1 <= k <= n. "auto": 2 to ``max_k``, by how much the labellings agree
        and how fast the error rises behind k.
        """,
    )


class _Run:
    """How the searches are carried out, and whether one of them was cut short."""

    def __init__(self, seed, n_jobs, control):
        self.seed = seed
        self.late = False
        self._n_jobs = n_jobs
        self._control = control

    def cluster(self, source, k, share=1.0, **params):
        """Return the result of :func:`umc_rls` in this share of the time that is left."""
        left = self._control.time_left()
        limit = None if left == np.inf else max(LEAST_TIME, share * left)
        told = {"random_state": self.seed, "n_jobs": self._n_jobs, "max_time": limit}
        result = umc_rls(source, k, **told, **params)
        self.late |= result.status == Status.TIME_LIMIT
        return result

    def half_over(self):
        """Tell whether half of the time is over, and take note if so."""
        left = self._control.time_left()
        is_over = left < np.inf and left < self._control.max_time / 2
        self.late |= is_over
        return is_over


class _Width:
    """The hat matrix of one width, and what is done on it."""

    def __init__(self, X, sigma, run):
        n = len(X)
        self.sigma = sigma
        self.factor = make_factor(X, LAM, Kernel("rbf", sigma=sigma), Form(), run.seed)
        self.points = Groups(self.factor.R, np.ones(n, dtype=np.int64), np.ones(n, dtype=np.bool_))
        self._run = run

    def search(self, k, **params):
        """Return objective and labels of a search."""
        result = self._run.cluster(self.factor, k, SEARCH_SHARE, **params)
        return result.objective, result.labels

    def descend(self, labels, k):
        """Return size-free cost and labels of a descent by single points."""
        labels, cost, _ = self.points.descend(labels, size_rule(labels.size, k))
        return cost, labels

    def refine(self, labels, k):
        """Return size-free cost and labels of a descent by groups and points."""
        labels, cost, _ = self.points.refine(labels, size_rule(labels.size, k))
        return cost, labels

    def error(self, labels, k):
        """Return the leave-one-out error, a mean over clusters."""
        state = self.points.state(labels, size_rule(labels.size, k))
        targets = (labels[:, None] == np.arange(k)).astype(np.float64)
        rest = leave_one_out_residuals(targets, state.sums.T, state.diag)
        return float(np.mean(np.sum(rest**2, axis=0) / state.counts))


class _Chooser:
    """The points that the choice is made on, and what all labellings of them share."""

    def __init__(self, X, run):
        self.X = X
        self._distances = squared_distances(X, X)
        np.fill_diagonal(self._distances, 0.0)
        self._genie = Genie(self._distances)
        self._run = run

    def _width(self, m):
        """Return the width whose square is the median squared distance to the m-th neighbour."""
        n = len(self.X)
        m = min(max(1, round(m)), n - 1)
        ranked = np.partition(self._distances, m, axis=1)[:, m]
        sigma = float(np.sqrt(np.median(ranked) or ranked.mean() or 1.0))
        return _Width(self.X, sigma, self._run)

    def labellings(self, k):
        """Return all that is tried for k clusters: rule, f, width, threshold or None, labels."""
        widths = {f: self._width(f * len(self.X) / k) for f in WIDTHS}
        found, starts = [], []
        of_genie = self._genie.cut(k)
        near = _search_near(list(widths.values()), k)
        for (f, width), labels in zip(widths.items(), near, strict=True):
            polished = width.descend(labels, k)
            linked = {g: width.descend(of_tree, k) for g, of_tree in of_genie.items()}
            found += [("near", f, width, None, labels), ("polished", f, width, None, polished[1])]
            found += [("linked", f, width, g, pair[1]) for g, pair in linked.items()]
            starts.append(min([polished, *linked.values()], key=itemgetter(0))[1])
        free = _search_free(list(widths.values()), k, starts)
        for (f, width), labels in zip(widths.items(), free, strict=True):
            found.append(("free", f, width, None, labels))
        return found + _judge(of_genie, widths, k)

    def score_counts(self, most):
        """Return scores of the numbers of clusters from 2 to ``most``, and their total errors.

        The largest score is best. It is the largest vote, plus 1 - 1 / e where that is positive.
        With c the least error, priced by the imbalance of sizes, e is the elasticity of the total
        error c k behind k; it is 1 where no cluster ends.
        """
        n = len(self.X)
        grid = {
            m: self._width(m) for m in (n / 2**j for j in range(1, 14, 2)) if m >= 2 or m == n / 2
        }
        votes, errors, former = {}, {}, {}
        for k in range(2, most + 2):
            if len(votes) > 1 and self._run.half_over():
                break
            widths = {m * k / n: width for m, width in grid.items() if F_LEAST < m * k / n < F_MOST}
            of_genie = self._genie.cut(k)
            found = []
            for f, width in widths.items():
                linked = {g: width.descend(labels, k) for g, labels in of_genie.items()}
                found += [("linked", f, width, g, pair[1]) for g, pair in linked.items()]
                starts = [width.descend(width.points.cut(k), k), *linked.values()]
                best = min(starts, key=itemgetter(0))
                if width in former:
                    crossed = recombine(width.points, former[width], best[1], k)
                    best = min(best, width.descend(crossed, k), key=itemgetter(0))
                former[width] = width.refine(best[1], k)[1]
                found.append(("free", f, width, None, former[width]))
            found += _judge(of_genie, widths, k)
            table = _vote(found, k, power=1, least=LEAST_COUNT_ERROR)
            votes[k] = max(one.vote for one in table if one.rule in RULES)
            errors[k] = k * min(
                max(one.criterion, LEAST_COUNT_ERROR) * float(np.exp(imbalance(one.labels, k)))
                for one in table
            )
        scores = {}
        for k in list(votes)[:-1]:
            elasticity = np.log(errors[k + 1] / errors[k]) / np.log((k + 1) / k)
            bend = 1.0 - 1.0 / elasticity if elasticity > 1.0 else 0.0
            scores[k] = float(votes[k] + bend)
        return scores, errors


def recombine(points, a, b, k):
    """Return k clusters of the groups on which two labellings agree, by Ward's rule."""
    members = np.unique(a * k + b, return_inverse=True)[1]
    return points.merge(members).cut(k)[members]


def _judge(of_genie, widths, k):
    """Return Genie's clusters, each at the width at which its error is least."""
    found = []
    for g, labels in of_genie.items():
        f = min(widths, key=lambda f: widths[f].error(labels, k))
        found.append(("genie", f, widths[f], g, labels))
    return found


def _search_near(widths, k):
    """Return labels of about equal sizes for each width, the best of those all widths found."""
    found = [width.search(k, method="memetic", balance=BALANCE) for width in widths]
    for j, width in enumerate(widths):
        for i in range(len(found)):
            if not np.array_equal(found[i][1], found[j][1]):
                told = {"method": "steepest", "balance": BALANCE, "init": found[i][1]}
                other = width.search(k, **told)
                if other[0] < found[j][0] - TOLERANCE:
                    found[j] = other
    return [labels for _, labels in found]


def _search_free(widths, k, starts):
    """Return labels of the least size-free cost found for each width; ends start the others."""
    free = []
    for width, start in zip(widths, starts, strict=True):
        free.append(min(width.search(k, sizes="free"), width.refine(start, k), key=itemgetter(0)))
    order = range(len(free))
    for to, step in [(j, 1) for j in order[1:]] + [(j, -1) for j in order[-2::-1]]:
        other = widths[to].refine(free[to - step][1], k)
        if other[0] < free[to][0] - TOLERANCE:
            free[to] = other
    return [labels for _, labels in free]


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


def weigh(errors, labellings, rules, k, power=2, least=LEAST_ERROR):
    """Return the candidates' weights, (m,), which sum to 1.

    error^-power exp(-imbalance), over the number of candidates of the same rule.
    """
    weights = np.maximum(errors, least) ** -float(power)
    for i, labels in enumerate(labellings):
        weights[i] *= np.exp(-imbalance(labels, k)) / rules.count(rules[i])
    return weights / weights.sum()


def _vote(found, k, **told):
    """Return the candidates, in their order."""
    rules = [rule for rule, *_ in found]
    labellings = [labels for *_, labels in found]
    errors = np.array([width.error(labels, k) for _, _, width, _, labels in found])
    weights = weigh(errors, labellings, rules, k, **told)
    votes = agreement(labellings, k) @ weights
    candidates = []
    for at, (rule, f, width, g, labels) in enumerate(found):
        name = f"{rule} f={f:g}" + ("" if g is None else f" gini={g:g}")
        figures = (float(errors[at]), float(weights[at]), float(votes[at]))
        candidates.append(Candidate(name, f, width.sigma, rule, *figures, labels))
    return candidates


@function_of(_ChoiceCall)
def cluster(call: _ChoiceCall, control: RunControl) -> ChoiceResult:
    """Cluster without a width, sizes or their number: a vote of labellings chooses them.

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

    Warns
    -----
    UserWarning
        If columns of X seem to have different units.

    Notes
    -----
    With ``k="auto"`` a light form of the vote is taken for every number (weights error^-1, no
    search of about equal sizes, widths that all numbers share). The score of k is the largest vote
    plus max(0, 1 - 1/e), where e is the elasticity behind k of the least error, priced by the
    imbalance of sizes and added over the clusters.

    The distances are taken as they are, unless ``standardize=True``: columns in different units,
    which a warning tells of, must be scaled.

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
    resolve_kernel(Kernel("rbf"), X)  # refuses points whose distances overflow
    n = X.shape[0]
    if call.k == "auto":
        if n < LEAST_POINTS:
            raise ValueError(f"k='auto' needs at least {LEAST_POINTS} points; got {n}")
        k = None
    else:
        k = validation.check_integer("k", call.k, least=1, most=n, why=", the number of points")
    seed = fixed_seed(call.random_state)
    rows: slice | np.ndarray = slice(None)
    if n > SAMPLE:
        size = SAMPLE if k is None else max(SAMPLE, min(n, 2 * k))
        rows = np.sort(restart_stream(seed, 0).choice(n, size, replace=False))
    scores, errors, run = {}, {}, _Run(seed, call.n_jobs, control)
    with show_progress(control), without_warnings():
        chooser = _Chooser(X[rows].astype(np.float64), run)
        if k is None:
            scores, errors = chooser.score_counts(min(call.max_k, len(chooser.X) - 2))
            k = max(scores, key=scores.get)
        found = chooser.labellings(k)
        candidates = _vote(found, k)
        eligible = [at for at, one in enumerate(candidates) if one.rule in RULES]
        at = max(eligible, key=lambda at: candidates[at].vote)
        winner, labels = candidates[at], candidates[at].labels
        source = found[at][2].factor
        if n > SAMPLE:
            model = fit_labels(source, labels, k).model
            source = X
            labels = np.argmax(model.decision_function(X), axis=1)
            labels[rows] = winner.labels
    of_matrix = {
        "sigma": winner.sigma,
        "lam": LAM * n / winner.labels.size,
        "rank": None if n <= DENSE else RANK,
    }
    search = {"method": "steepest", "init": labels}
    search |= {"balance": BALANCE} if winner.rule == "near" else {"sizes": "free"}
    units = {"standardize": True} if call.standardize else {}
    result = run.cluster(source, k, **search, **(of_matrix if n > SAMPLE else {}))
    if run.late and result.converged:
        result = replace(result, status=Status.TIME_LIMIT)
        warn_if_stopped(result.status, 1, 1)
    candidates.sort(key=lambda one: -one.vote)
    return ChoiceResult(
        **vars(result),
        candidates=tuple(candidates),
        chosen=of_matrix | search | units,
        scores=scores,
        errors=errors,
    )


class _AutoClusterCount(ClusterCount):
    """How many clusters the estimator makes."""

    n_clusters: int | Literal["auto"] = parameter(  # type: ignore[assignment]
        default="auto", kw_only=False, doc='Number of clusters, or "auto" to choose it.'
    )


class AutoMMC(
    RLSClusterer,
    _ChoiceParameters,
    _AutoClusterCount,
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

    _fields = (*RLSClusterer._fields, "candidates", "chosen", "scores", "errors")

    def _count_tasks(self, n):
        return None
