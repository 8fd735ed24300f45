"""Where labels that keep links come from: the usual search, or k-means of what must-links merge.

The links tell which. A search that is told a part of them should keep many of the others. Where
links are few, the labels of least objective follow each of them and err in between; those near the
k-means clusters, which follow a simpler model, may then keep more of what they were not told.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array, issparse

from fastmmc._means import k_means
from fastmmc.execution import OutOfTime, restart_stream, warn_if_stopped, without_warnings
from fastmmc.links import Links, join
from fastmmc.results import Status
from fastmmc.rls.known import STOPPED, Stopped
from fastmmc.rls.linked import size_excess
from fastmmc.sizes import reorder_to_targets

# Parts of the links that are hidden in turn, and links of which fewer tell too little.
FOLDS = 3
LEAST_LINKS = 10

# Runs of k-means, of which the best counts.
STARTS = 10

# Digits of a gain that no rounding reaches.
DIGITS = 9

# A stream of random numbers that no restart uses.
CHOICE_STREAM = 2**32 - 4


def search_either_way(search, kernel, plan, control, seed):
    """Return the result of the usual search, or of a descent from k-means if that suits links more.

    ``search(plan, control)`` searches over labellings with the links of the plan. The usual search
    comes first, so that there is its result however soon the run is stopped.
    """
    links = plan.links.reduced(plan.n)
    has_points = kernel.name != "precomputed"
    is_open = plan.k > 1 and plan.has_random_start and has_points
    if not is_open or len(links) < LEAST_LINKS:
        return search(plan, control)
    shares = np.linspace(0.0, 1.0, FOLDS + 2)
    parts = [control.part(*ends) for ends in zip(shares[:-1], shares[1:], strict=True)]
    found = search(plan, parts[0])
    if found.status in STOPPED:
        return found
    try:
        with without_warnings():
            return _Choice(search, plan, links, seed).better(found, parts)
    except Stopped as stopped:
        (status,) = stopped.args
    except OutOfTime:
        status = Status.TIME_LIMIT
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    warn_if_stopped(status, len(found.objectives), found.params["n_init"], control.shortage)
    return replace(found, status=status)


class _Choice:
    """Compares the usual search with a descent from k-means by links that these are not told."""

    def __init__(self, search, plan, links, seed):
        rng = restart_stream(seed, CHOICE_STREAM)
        self._search = search
        self._plan = plan
        self._links = links
        self._parts = [rng.permutation(len(pairs)) % FOLDS for pairs in (links.must, links.cannot)]
        self._seeds = rng.integers(2**31, size=STARTS)

    def better(self, found, parts):
        """Return the usual search's result that was found, or that of the descent."""
        plan = self._plan
        other = self._descend(plan, parts[0].part(1.0, 1.0))
        if _is_worse(other, found, plan):
            return found
        gains = []
        for at, part in enumerate(parts[1:]):
            told, hidden = self._split(at)
            partial = replace(plan, links=told, bound=False)
            descended = self._descend(partial, part.part(0.0, 0.0))
            usual = self._ended(partial, part)
            gains.append(_kept(hidden, descended.labels) - _kept(hidden, usual.labels))
        if not is_better(np.concatenate(gains), other.objective < found.objective):
            return found
        return replace(
            other, params=other.params | {"init": "kmeans", "n_init": found.params["n_init"]}
        )

    def _split(self, at):
        """Return the links without one part of them, and that part."""
        links, (must, cannot) = self._links, self._parts
        told = Links(links.must[must != at], links.cannot[cannot != at])
        return told, Links(links.must[must == at], links.cannot[cannot == at])

    def _ended(self, plan, control):
        result = self._search(plan, control)
        if result.status in STOPPED:
            raise Stopped(result.status)
        return result

    def _descend(self, plan, control):
        """Return the result of a descent from k-means."""
        labels = self._means(plan, control.check_time)
        return self._ended(plan.of_given(labels, plan.n_rounds), control)

    def _means(self, plan, look):
        """Return the labels of k-means of what must-links merge, each at its mean."""
        members = join(plan.links.must, plan.n)
        masses = np.bincount(members, plan.weights)
        weights = np.ones(plan.n) if plan.weights is None else plan.weights
        entries = weights / masses[members]
        shape = plan.n, masses.size
        average = csr_array((entries, members, np.arange(plan.n + 1)), shape=shape).T.tocsr()
        means = average @ plan.points
        if not issparse(means):
            means = np.ascontiguousarray(means)
        best = -np.inf
        for seed in self._seeds:
            look()
            groups, centers = k_means(means, plan.k, seed, masses, look=look)
            counts = np.bincount(groups, masses, plan.k)
            apart = counts @ np.sum((centers - counts @ centers / counts.sum()) ** 2, axis=1)
            if apart > best:
                best, labels = apart, groups[members]
        targets = plan.rule.targets
        return labels if targets is None else reorder_to_targets(labels, targets)


def _is_worse(other, found, plan):
    """Tell whether labels keep fewer links or bounds than those found, or are the same clusters."""
    if plan.link_penalty is None:
        broken = [plan.links.n_violations(result.labels) for result in (other, found)]
        if broken[0] > broken[1]:
            return True
    excess = [size_excess(result.labels, plan).max() for result in (other, found)]
    if excess[0] > max(excess[1], 0.0):
        return True
    return np.unique(found.labels * plan.k + other.labels).size == plan.k


def is_better(gains, is_lower):
    """Tell whether hidden links are in favour, by what is gained in each, (p,).

    They are by a sum of more than its standard error; less will do where the objective is lower.
    """
    gain = round(gains.sum(), DIGITS)
    return gain >= 0 and (is_lower or gain**2 > gains @ gains)


def _kept(links, labels):
    """Return which links labels keep, less the share of such that these sizes keep by chance."""
    shares = np.bincount(labels) / labels.size
    must, cannot = (labels[a] == labels[b] for a, b in (links.must.T, links.cannot.T))
    chance = shares @ shares
    return np.concatenate((must - chance, chance - cannot))
