"""Clusters without settings: widths and size rules are tried, and the labels decide by vote."""

from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import pairwise
from operator import itemgetter
from statistics import harmonic_mean
from typing import Any, Literal

import numpy as np
from scipy.sparse import issparse

from fastmmc import validation
from fastmmc._declare import function_of, parameter
from fastmmc._display import as_assignments
from fastmmc._typing import MatrixLike
from fastmmc.execution import (
    Progress,
    RunControl,
    finish,
    fixed_seed,
    restart_stream,
    show_progress,
    warn_if_stopped,
    without_warnings,
)
from fastmmc.factors import make_factor
from fastmmc.gram import EXP_PRODUCTS, Kernel, kernel_points, resolve_kernel, squared_distances
from fastmmc.nystroem import Form
from fastmmc.parameters import (
    ClusterCount,
    Clusters,
    Points,
    Seed,
    Standardization,
    Threads,
    TimeLimit,
    Trimming,
    Verbosity,
    Watch,
)
from fastmmc.results import RLSResult, Status
from fastmmc.rls import umc_rls
from fastmmc.rls.estimators import RLSClusterer
from fastmmc.rls.free import Groups, error_of
from fastmmc.rls.genie import GINIS, Genie
from fastmmc.rls.memetic import TOLERANCE
from fastmmc.rls.outliers import without_outlier_scores
from fastmmc.rls.plan import GENTLE_CLUSTERS, GENTLE_ROUND
from fastmmc.rls.source import Source, fit_labels, quick_rank
from fastmmc.rls.trimming import leaving_out
from fastmmc.saving import stored
from fastmmc.sizes import imbalance, size_rule
from fastmmc.threads import exhaust

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

# With max_time the choice is made on as many points as that is enough for, by the seconds that it
# takes on SAMPLE points, if the number of clusters is to be found or is given, which grow with
# their square; no fewer than these. Seconds of a multiplication of kernel values on a slow core.
NUMBERS_SECONDS, CHOICE_SECONDS = 40.0, 20.0
LEAST_SAMPLE = 500
PRODUCT_SECONDS = 1e-10

# Shares of max_time by whose end the numbers of clusters are tried, and the labellings where all
# points come after a sample; of the time left, that one search may take; that the descent of all
# points needs at least; and the seconds that a search may take at least.
NUMBERS_SHARE = 0.5
SAMPLE_SHARE = 0.5
SEARCH_SHARE = 0.2
LAST_SHARE = 0.1
LEAST_TIME = 1e-3

# Powers of the error in the weights of the vote, and in those of the vote of each number.
POWER = 2.0
NUMBERS_POWER = 3.0

# Where the number of clusters is chosen: the fewest points, and the f of the widths that count.
LEAST_POINTS = 4
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
        Parameters with which ``umc_rls(X, k, **chosen)`` makes these clusters; sparse X of up to
        2,000 points must be dense for it. With ``trim`` X is without the points left out, and so
        are the candidates.
    scores : dict of int to float
        With ``k="auto"``, the score of every number of clusters that was tried; the largest won.
    errors : dict of int to float
        With ``k="auto"``, the least error that was found for these numbers and the one after them:
        the leave-one-out error, added over the clusters.

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


class _ChoiceParameters(Verbosity, Watch, TimeLimit, Threads, Seed, Trimming, Standardization):
    """What the function and the estimator have in common."""

    max_k: int = parameter(default=30, least=2, doc='Largest number that "auto" considers.')
    max_time: float | None = parameter(
        default=None,
        doc="""
        Seconds for the whole call; the best labels found by then are returned. "auto" stops after
        half of them, at the best number by then. Below 40 seconds, or 20 where k is given, the
        choice is made on fewer points, 2,000 times the root of that share, but 500 at least. The
        first labelling is always made.
        """,
    )
    callback: Callable[[Progress], bool | None] | None = parameter(
        default=None,
        doc="""
        Called with a :class:`~fastmmc.execution.Progress`, whose ``n_done`` and ``n_init`` count
        the numbers of clusters and the labellings that are tried, and whose ``objective`` is inf; a
        true return value stops the run.
        """,
    )


class _ChoiceCall(_ChoiceParameters, Clusters, Points):
    """A call of :func:`cluster`."""

    X: MatrixLike = parameter(
        kw_only=False,
        doc="""
        Points, with columns in comparable units, or ``standardize=True`` (float32 is kept, else
        float64). Of sparse ones up to 2,000 rows become dense.
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


class _Stopped(Exception):
    """Ends a phase of the choice."""


class _Run:
    """How the searches are carried out, who hears of them, and what stopped them."""

    def __init__(self, seed, control, n_steps):
        self.seed = seed
        self.status = Status.CONVERGED
        self.n_done = 0
        # The share of max_time that the phase may take; None outside of one, where nothing stops.
        self._share = None
        self._control = control
        self._n_steps = n_steps

    @contextmanager
    def phase(self, share=1.0):
        """Run a phase, until this share of max_time is over, or the run is stopped."""
        self._share = share
        try:
            yield
        except _Stopped:
            pass
        except KeyboardInterrupt:
            self.status = Status.INTERRUPTED
        finally:
            self._share = None

    def look(self, fraction=0.0, ahead=0.0):
        """Report the share of the step that is done; end the phase where there is reason to.

        ``ahead`` is as for :meth:`RunControl.prepare`.
        """
        self._report(fraction, ahead)
        if self._share is not None and (self.is_told() or self.time_left() < ahead):
            raise _Stopped

    def finish(self, work):
        """Return what is still to be made of all that was found; one interrupt does not end it."""
        made, interrupted = finish(work)
        if interrupted:
            self.status = Status.INTERRUPTED
        return made

    def end_step(self):
        """Count a step."""
        self.n_done += 1
        self.look()

    def cluster(self, source, k, share=1.0, **params):
        """Return the result of :func:`umc_rls` in this share of the time that is left.

        Of a run that was stopped, it is soon there and warns of nothing.
        """
        told = self.is_told()
        left = 0.0 if told else self.time_left()
        with without_warnings() if told else nullcontext():
            result = umc_rls(
                source,
                k,
                random_state=self.seed,
                n_jobs=self._control.n_jobs,
                max_time=None if left == np.inf else max(LEAST_TIME, share * left),
                callback=None if told else lambda progress: self._report(progress.fraction),
                **params,
            )
        if not self.is_told() and result.status in (Status.TIME_LIMIT, Status.INTERRUPTED):
            self.status = result.status
        return result

    def _report(self, fraction, ahead=0.0):
        """Report the share of the step that is done; return whether the user wants to stop."""
        if not self.is_told():
            status = self._control.report(
                fraction=min(1.0, (self.n_done + fraction) / self._n_steps),
                n_done=self.n_done,
                n_init=self._n_steps,
                objective=np.inf,
            )
            late = status == Status.CONVERGED and self.time_left() < ahead
            if late or status != Status.CONVERGED:
                self.status = Status.TIME_LIMIT if late else status
        return self.is_told()

    def is_told(self):
        """Return whether the user has stopped the run, and not only the clock a part of it."""
        return self.status in (Status.CALLBACK, Status.INTERRUPTED)

    def time_left(self):
        """Return the seconds that are left of the phase."""
        left = self._control.time_left()
        if self._share is None or left == np.inf:
            return left
        return left - (1.0 - self._share) * self._control.max_time


class _Width:
    """The hat matrix of one width, and what is done on it."""

    def __init__(self, X, sigma, run):
        n = X.shape[0]
        self.sigma = sigma
        kernel = Kernel("rbf", sigma=sigma)
        self.factor = make_factor(X, LAM, kernel, Form(), run.seed, run.look)
        self.points = Groups(self.factor.R, np.ones(n, dtype=np.int64), np.ones(n, dtype=np.bool_))
        self._run = run

    def search(self, k, **params):
        """Return objective and labels of a search."""
        with without_outlier_scores():
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
        return error_of(self.points.state(labels, size_rule(labels.size, k)))


class _Chooser:
    """The points that the choice is made on, and what all labellings of them share."""

    def __init__(self, X, run):
        self.X = X
        self.run = run
        self._distances = squared_distances(X, X)
        np.fill_diagonal(self._distances, 0.0)
        self.genie = Genie(self._distances)

    def width(self, m):
        """Return the width whose square is the median squared distance to the m-th neighbour."""
        n = self.X.shape[0]
        m = min(max(1, round(m)), n - 1)
        ranked = np.partition(self._distances, m, axis=1)[:, m]
        sigma = float(np.sqrt(np.median(ranked) or ranked.mean() or 1.0))
        return _Width(self.X, sigma, self.run)


class _Counts:
    """The numbers of clusters that are tried, each by a vote of fewer labellings."""

    def __init__(self, chooser):
        self._chooser = chooser
        self._votes = {}
        self._errors = {}
        # The least total errors of what may be returned, by number and width.
        self._errors_by_width = {}

    def try_to(self, most):
        """Try the numbers from 2 to the one after ``most``, in order."""
        chooser, n = self._chooser, self._chooser.X.shape[0]
        grid = [n / 2**j for j in range(1, 14, 2) if j == 1 or n / 2**j >= 2]
        made, former = {}, {}
        for k in range(2, most + 2):
            widths = {}
            for m in grid:
                f = m * k / n
                if f > F_LEAST and (f < F_MOST or m == grid[-1]):
                    if m not in made:
                        made[m] = chooser.width(m)
                    widths[f] = made[m]
            self._try(k, widths, former)
            chooser.run.end_step()

    def _try(self, k, widths, former):
        """Try one number; ``former`` are the free labels at each width of the last one."""
        of_genie = self._chooser.genie.cut(k)
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
            self._chooser.run.look()
        found += _judge(of_genie, widths, k)
        table = _vote(found, k, NUMBERS_POWER)
        self._errors[k] = k * max(LEAST_ERROR, min(one.criterion for one in table))
        returnable = [one for one in table if one.rule in RULES]
        by_width = self._errors_by_width[k] = {}
        for one in returnable:
            error = k * max(LEAST_ERROR, one.criterion)
            by_width[one.sigma] = min(error, by_width.get(one.sigma, np.inf))
        self._votes[k] = max(one.vote for one in returnable)

    def scores(self):
        """Return scores of the numbers of clusters that were tried, and their least total errors.

        The largest score is best. It is the largest vote, plus 1 - 1 / e where that is positive.
        The elasticity e of the total error behind k is 1 where no cluster ends. It compares means
        over the same widths: the least error of each number changes with the widths that it has.
        """
        votes, errors = self._votes, self._errors
        scores = {}
        for k in list(votes)[:-1]:
            here, behind = self._errors_by_width[k], self._errors_by_width[k + 1]
            shared = sorted(here.keys() & behind.keys())
            error, next_error = (harmonic_mean([of[s] for s in shared]) for of in (here, behind))
            elasticity = np.log(next_error / error) / np.log((k + 1) / k)
            bend = 1.0 - 1.0 / elasticity if elasticity > 1.0 else 0.0
            scores[k] = float(votes[k] + bend)
        return scores, {k: errors[k] for k in votes} if scores else {}


class _Labellings:
    """All that is tried for k clusters, made by and by."""

    def __init__(self, chooser, k):
        self._chooser = chooser
        self._run = chooser.run
        self._k = k
        self._of_genie = chooser.genie.cut(k)
        self._widths = {}
        # Labels by rule, width and Genie's threshold, None until they are made.
        ways = [("near", None), ("polished", None), *(("linked", g) for g in GINIS)]
        self._found = {(rule, f, g): None for f in WIDTHS for rule, g in ways}
        self._found |= {("free", f, None): None for f in WIDTHS}
        # The cheapest in size-free cost of each width, with that cost.
        self._cheapest = {}
        # Objective and labels of about equal sizes, by width.
        self._near = {}

    def begin(self):
        """Make the first labellings."""
        self._link(WIDTHS[0])

    def go_on(self):
        """Make the others."""
        for f in WIDTHS[1:]:
            self._link(f)
        self._search_near()
        self._search_free()

    def listed(self):
        """Return what was made: rule, f, width, threshold or None, labels."""
        found = [
            (rule, f, self._widths[f], g, labels)
            for (rule, f, g), labels in self._found.items()
            if labels is not None
        ]
        return found + _judge(self._of_genie, self._widths, self._k)

    def _link(self, f):
        """Make a width, and descend there from Genie's clusters."""
        width = self._widths[f] = self._chooser.width(f * self._chooser.X.shape[0] / self._k)
        linked = {g: width.descend(labels, self._k) for g, labels in self._of_genie.items()}
        self._found |= {("linked", f, g): labels for g, (_, labels) in linked.items()}
        self._cheapest[f] = min(linked.values(), key=itemgetter(0))
        self._run.end_step()

    def _search_near(self):
        """Search labels of about equal sizes, the best at each width of those all widths found.

        Of few clusters they are searched again from these, shaken gently. The best descend in the
        size-free cost.
        """
        told = {"method": "memetic", "balance": BALANCE}
        for f, width in self._widths.items():
            self._offer_near(f, width.search(self._k, **told))
            self._run.end_step()
        self._share_near()
        if self._k <= GENTLE_CLUSTERS:
            for f, width in self._widths.items():
                told |= {"init": self._near[f][1], "start_round": GENTLE_ROUND}
                self._offer_near(f, width.search(self._k, **told))
                self._run.look()
            self._share_near()
        for f, width in self._widths.items():
            polished = width.descend(self._near[f][1], self._k)
            self._found["polished", f, None] = polished[1]
            self._cheapest[f] = min(polished, self._cheapest[f], key=itemgetter(0))
            self._run.end_step()

    def _share_near(self):
        """Descend at each width from the labels of about equal sizes that the others found."""
        told = {"method": "steepest", "balance": BALANCE}
        for f, width in self._widths.items():
            for _, labels in list(self._near.values()):
                if not np.array_equal(labels, self._near[f][1]):
                    self._offer_near(f, width.search(self._k, init=labels, **told))
                    self._run.look()

    def _offer_near(self, f, offer):
        """Take these labels of about equal sizes, with their objective, if they are better."""
        if f not in self._near or offer[0] < self._near[f][0] - TOLERANCE:
            self._near[f] = offer
            self._found["near", f, None] = offer[1]

    def _search_free(self):
        """Search labels of the least size-free cost; those of a width start its neighbours too."""
        free, k = {}, self._k
        for f, width in self._widths.items():
            start = width.refine(self._cheapest[f][1], k)
            free[f] = min(width.search(k, sizes="free"), start, key=itemgetter(0))
            self._found["free", f, None] = free[f][1]
            self._run.end_step()
        for there in (WIDTHS, WIDTHS[::-1]):
            for before, f in pairwise(there):
                other = self._widths[f].refine(free[before][1], k)
                if other[0] < free[f][0] - TOLERANCE:
                    free[f] = other
                    self._found["free", f, None] = other[1]
                self._run.look()


# Steps of all this, for the share of the work that is done.
N_STEPS = 4 * len(WIDTHS)


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


def weigh(errors, labellings, rules, k, power=POWER):
    """Return the candidates' weights, (m,), which sum to 1.

    error^-power exp(-imbalance), over the number of candidates of the same rule.
    """
    weights = np.maximum(errors, LEAST_ERROR) ** -power
    for i, labels in enumerate(labellings):
        weights[i] *= np.exp(-imbalance(labels, k)) / rules.count(rules[i])
    return weights / weights.sum()


def _vote(found, k, power=POWER):
    """Return the candidates, in their order."""
    rules = [rule for rule, *_ in found]
    labellings = [labels for *_, labels in found]
    errors = np.array([width.error(labels, k) for _, _, width, _, labels in found])
    weights = weigh(errors, labellings, rules, k, power)
    votes = agreement(labellings, k) @ weights
    candidates = []
    for at, (rule, f, width, g, labels) in enumerate(found):
        name = f"{rule} f={f:g}" + ("" if g is None else f" gini={g:g}")
        figures = (float(errors[at]), float(weights[at]), float(votes[at]))
        candidates.append(Candidate(name, f, width.sigma, rule, *figures, labels))
    return candidates


def _source_of_scores(call):
    """Return the source of the hat matrix that tells which points are left out."""
    X = validation.check_points(call.X, Kernel("points"), sparse=True)
    if X.shape[0] > SAMPLE:
        return Source(X, Kernel("rbf"), LAM, Form(min(X.shape[0], RANK)), None)
    return Source(kernel_points(Kernel("points"), X), Kernel("rbf"), LAM, Form(), None)


@function_of(_ChoiceCall)
@leaving_out(_source_of_scores)
def cluster(call: _ChoiceCall, control: RunControl) -> ChoiceResult:
    """Cluster without a width, sizes or their number: a vote of labellings chooses them.

    At four widths, a factor 4 of neighbours apart, labels are made by several rules: of about equal
    sizes (:func:`fastmmc.umc_rls` with ``balance=0.4``, up to ten clusters once more from the best
    that any width found), from there by the descent of free sizes, from Genie's clusters by that
    descent, and by the search of free sizes. Each votes with the weight error^-2 exp(-(log k -
    entropy of its sizes)), shared among those of its rule, where the error is the leave-one-out
    error of the clusters' indicators. The labels with the largest expected adjusted Rand index win:
    those that are predicted nearly without error, if there are such, and else those most like the
    others.

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
    sklearn.exceptions.ConvergenceWarning
        If the run was stopped before its end: what had been made by then voted. Also if X has fewer
        distinct points than there are clusters, or no point tells the cluster of another.
    UserWarning
        If columns of X seem to have different units.

    Notes
    -----
    With ``k="auto"`` a vote of fewer labellings is taken for every number (weights error^-3, no
    search of about equal sizes, widths that all numbers share). The score of k is the largest vote
    plus max(0, 1 - 1/e), where e is the elasticity behind k of the error added over the clusters:
    the harmonic mean, over the widths that k and k + 1 share, of the least error at each. There
    are always at least two: no score tells of a single cluster, or of points without clusters.
    Uniform points in the plane got 3 to 15 clusters with scores of 1.3 to 1.4, and blobs score 1.5
    to 1.9.

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
    X = validation.check_points(call.X, Kernel("points"), sparse=True)
    n = X.shape[0]
    if call.k == "auto":
        if n < LEAST_POINTS:
            raise ValueError(f"k='auto' needs at least {LEAST_POINTS} points; got {n}")
        k = None
    else:
        k = validation.check_integer("k", call.k, least=1, most=n, why=", the number of points")
    seed = fixed_seed(call.random_state)
    rows: slice | np.ndarray = slice(None)
    size = _sample_size(n, k, call.max_time)
    if size < n:
        rows = np.sort(restart_stream(seed, 0).choice(n, size, replace=False))
    with show_progress(control, "step") as control:
        with without_warnings():
            points = kernel_points(Kernel("points"), X, rows).astype(np.float64)
            resolve_kernel(Kernel("rbf"), points)  # refuses points whose distances overflow
            most = 0 if k is not None else min(call.max_k, points.shape[0] - 2)
            run = _Run(seed, control, most + N_STEPS)
            chooser = _Chooser(points, run)
            share = SAMPLE_SHARE if size < n else 1.0
            counts = _Counts(chooser)
            if k is None:
                with run.phase(NUMBERS_SHARE * share):
                    counts.try_to(most)
                run.n_done = most
            scores, errors = counts.scores()
            k = k or max(scores, key=scores.__getitem__, default=2)
            labellings = _Labellings(chooser, k)
            labellings.begin()
            with run.phase(share):
                labellings.go_on()
            found = run.finish(labellings.listed)
            candidates = run.finish(lambda: _vote(found, k))
            eligible = [at for at, one in enumerate(candidates) if one.rule in RULES]
            at = max(eligible, key=lambda at: candidates[at].vote)
        winner, factor = candidates[at], found[at][2].factor
        result, chosen = run.finish(lambda: _finish(call, X, rows, winner, factor, k, run))
    if run.status not in (Status.CONVERGED, result.status) and result.status != Status.NUMERICAL:
        result = replace(result, status=run.status)
        warn_if_stopped(run.status, 1, 1)
    candidates.sort(key=lambda one: -one.vote)
    return ChoiceResult(
        **vars(result), candidates=tuple(candidates), chosen=chosen, scores=scores, errors=errors
    )


def _sample_size(n, k, max_time):
    """Return the number of points that the choice is made on, fewer where time is short."""
    size = min(n, SAMPLE if k is None else max(SAMPLE, 2 * k))
    if max_time is None:
        return size
    whole = NUMBERS_SECONDS if k is None else CHOICE_SECONDS
    least = max(LEAST_SAMPLE, 2 * (k or 0))
    return min(size, max(least, int(SAMPLE * np.sqrt(max_time / whole))))


def _label_all(X, rows, winner, factor, k, run):
    """Return labels of all points: what those that were chosen say, or some where time is short.

    None where there is no time even for as many as a quick hat matrix has landmarks.
    """
    labels = winner.labels
    affordable = run.time_left() / 2 / _label_seconds(X)
    if affordable < min(quick_rank(X.shape[0]), labels.size):
        return None
    if affordable < labels.size:
        part = np.linspace(0, labels.size - 1, int(affordable)).astype(np.intp)
        lam = LAM * part.size / labels.size
        labels, factor = labels[part], make_factor(factor.X[part], lam, factor.kernel, Form(), None)
    model = fit_labels(factor, labels, k).model
    labels = np.argmax(model.decision_function(X), axis=1)
    labels[rows] = winner.labels
    return labels


def _label_seconds(X):
    """Return the seconds that kernel values of all points to another take on a slow core."""
    n = X.shape[0]
    width = X.nnz / n if issparse(X) else X.shape[1]
    return PRODUCT_SECONDS * n * (width + EXP_PRODUCTS)


def _finish(call, X, rows, winner, factor, k, run):
    """Return the result of the labels that won, of all points, and the parameters chosen."""
    n, labels = X.shape[0], winner.labels
    lam = LAM * n / labels.size
    rank = None if n <= (SAMPLE if issparse(X) else DENSE) else RANK
    is_whole = labels.size == n
    if not is_whole:
        labels = _label_all(X, rows, winner, factor, k, run)
    search = {"method": "steepest"}
    search |= {"balance": BALANCE} if winner.rule == "near" else {"sizes": "free"}
    result = None
    with run.phase():
        if not is_whole:
            run.look(ahead=np.inf if labels is None else LAST_SHARE * (call.max_time or 0.0))
            # Where this one takes too long, there is time for another hat matrix.
            spare = quick_rank(n) * _label_seconds(X)

            def look(share, ahead=0.0):
                run.look(share, ahead + spare)

            factor = make_factor(X, lam, factor.kernel, Form(rank), run.seed, look)
        result = run.cluster(factor, k, init=labels, **search)
    if result is None and is_whole:  # interrupted before there was one
        result = run.cluster(factor, k, init=labels, **search)
    elif result is None:
        factor, labels = _quick_labels(X, rows, winner, labels, lam, factor.kernel, k, run)
        # No descent on such a hat matrix is to spoil the labels.
        with without_warnings():
            kept = {"method": "steepest", "init": labels, "max_iter": 0}
            result = umc_rls(factor, k, random_state=run.seed, **kept)
    units = {"standardize": True} if call.standardize else {}
    of_matrix = {"sigma": winner.sigma, "lam": lam, "rank": rank}
    return result, of_matrix | search | {"init": labels} | units


def _quick_labels(X, rows, winner, labels, lam, kernel, k, run):
    """Return a factor that takes little time, and labels of all points, by it if there are none.

    Its landmarks are some of the points that were chosen.
    """
    part = np.linspace(0, rows.size - 1, min(rows.size, quick_rank(X.shape[0]))).astype(np.intp)
    factor = make_factor(X, lam, kernel, Form(part.size, rows[part]), run.seed)
    if labels is None:
        steps = replace(factor, lam=LAM)._restrict(rows)
        sample, extend = exhaust(steps, lambda n_rows: None)
        sums = sample._cluster_sums(winner.labels, k) @ extend
        labels = factor._cluster_scores(sums).argmax(axis=0)
        labels[rows] = winner.labels
    return factor, labels


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

    _unit = "step"

    def _count_tasks(self, n):
        return None

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
