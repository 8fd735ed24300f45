"""One restart of UMC-RLS on the low-rank hat matrix, in batches of claims: linear in n."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from fastmmc import memory
from fastmmc.factors import DenseFactor
from fastmmc.nystroem import DENSE_LIMIT
from fastmmc.results import History, Status
from fastmmc.rls import _loops_batches as batches
from fastmmc.rls.claims import ClaimSearch, donor_floors
from fastmmc.rls.source import compact, repaired
from fastmmc.sizes import (
    SizeRule,
    fit_sizes,
    held_sizes,
    proportional_sizes,
    shaking_quota,
    with_known,
)

# Points of the sample that a start is first clustered on, one claim at a time, and at least so
# many a cluster.
SAMPLE = 2_000
SAMPLE_PER_CLUSTER = 100

# Points, and points a cluster, that the rounds of claims are worth: where there are more, a sample
# of so many goes through the rounds, and all points through the descent alone.
ROUNDS = 50_000
ROUNDS_PER_CLUSTER = 2_500

# What is done of a sample before the clock is looked at.
SAMPLE_BUDGET = 200_000

# Batches in which a cluster of the size asked for is claimed: enough to shake from a random start
# as well as one by one, and enough to go on from the clusters of a sample.
BATCHES_FROM_RANDOM = 64
BATCHES_FROM_SAMPLE = 32

# About so many rows one thread scores at a time; so many a descent sees under the same scores.
ROWS = 4096

# Rows of such a block that one thread multiplies at a time: it must not depend on the number of
# threads, as the rounding of a product does depend on its shape.
ROWS_MULTIPLIED = 1024


def sample_size(n, k):
    """Return how many points a start is first clustered on, or 0 if n is too small for that."""
    most = _most_for_rounds(k)
    if n > most:
        return most
    size = max(SAMPLE, SAMPLE_PER_CLUSTER * k)
    return size if n > 2 * size else 0


def _most_for_rounds(k):
    return max(ROUNDS, ROUNDS_PER_CLUSTER * k)


def choose_form(factor, plan):
    """Make the matrix that claims are made on, and the plan with the batches filled in.

    On the factor Z a claim costs O(nr), so one by one is for small n, where the product Z Z^T is
    made, and for those who ask for it. That product is made of no more points than the hat matrix
    is dense of by default, however many clusters there are. Yields its rows that were made.
    """
    batches = plan.params["batches"]
    if plan.k == 1:
        plan = replace(plan, method="shaking")
    if isinstance(factor, DenseFactor) or plan.k == 1:
        return factor, plan
    if batches == "exact":
        return factor.in_double_precision(), plan
    sample = sample_size(plan.n, plan.k)
    if batches is None and sample == 0 and plan.n <= DENSE_LIMIT:
        memory.check_memory(plan.n, factor.Z.dtype, what="product Z Z^T")
        R = yield from factor.hat_matrix()
        return DenseFactor(R, factor.lam, factor.kernel, factor.X), plan
    if plan.method not in ("shaking", "memetic"):
        return factor.in_double_precision(), plan
    from_random = isinstance(plan.init, str) and plan.init == "random"
    if batches is not None or sample == 0 or not from_random:
        return factor, replace(plan, batches=batches or BATCHES_FROM_RANDOM)
    return factor, replace(plan, batches=BATCHES_FROM_SAMPLE, sample=sample)


def make_start(matrix, diag, plan, index, rng, threads=1):
    """Return the search of one start on what :func:`choose_form` returned."""
    if plan.batches is None:
        return ClaimSearch(matrix, diag, plan, index, rng)
    return BatchSearch(matrix, diag, plan, index, rng, threads)


class BatchSearch:
    """One restart: the shaking of a sample, then of all points in batches, then a descent.

    What runs is a generator that says after every step what the step cost, so that a slice can
    end there; nothing depends on where it does.
    """

    def __init__(self, factor, diag, plan, index, rng, threads=1):
        self._factor = factor
        self._diag = diag
        self._plan = plan
        self._index = index
        self._rng = rng
        self._threads = threads
        self._history = History()
        self._tol = 1e-12 * plan.n / 8
        self._labels = compact(plan.start_labels(rng), plan.k)
        self._movable = np.ones(plan.n, dtype=np.bool_) if plan.known is None else plan.known < 0
        self._W = np.empty((plan.k, factor.rank))
        self._moves = 0
        self._best = None
        self._sample = None
        self._fraction = 0.0
        self._rounds_in_sample = plan.sample > 0 and plan.n > _most_for_rounds(plan.k)
        self.n_iter = 0
        self.status = Status.CONVERGED
        self._work = self._run()

    def step(self, budget):
        """Run one slice; return whether the search has ended."""
        for cost in self._work:
            budget -= cost
            if budget <= 0:
                return False
        return True

    def fraction(self):
        """Return an estimate of the share of the work that is done."""
        return self._fraction

    def finish(self):
        """Bring the sizes within bounds, take the final figures and let the work space go."""
        if self._sample is not None:
            self._extend_sample()
        self._rebuild()
        self._repair()
        self.objective = self._risk()
        self._note()
        self.labels = self._labels.astype(np.int64)
        self.sums = self._W if self._plan.keep_sums else None
        self.n_moves = self._moves
        self.history = self._history.values()
        self.trace = {"moves": self._history.counts()}
        self._labels = self._W = self._best = self._work = None

    def _run(self):
        """Go through the phases; yield what each step cost."""
        if self._plan.sample > 0:
            yield from self._cluster_sample()
        else:
            self._rebuild()
        self._note()
        with ThreadPoolExecutor(self._threads) as self._pool:
            yield from self._shake(self._first_round())
            if self._best is not None and self._best[0] < self._risk():
                self._labels[:] = self._best[1]
                self._rebuild()
            # The paper's rule fixes the sizes, so only swaps are left, unless these had to change.
            bounds = self._plan.rule.bounds_at(self._counts.copy())
            if self._repair():
                bounds = self._plan.rule.lower, self._plan.rule.upper
            yield from self._descend(*bounds)

    def _first_round(self):
        """Return the row of the quota that all points together begin at."""
        plan = self._plan
        first = plan.first_round(self._index)
        if plan.sample == 0:
            return first
        # The sample had all rounds, or the first one, which would undo what it found.
        if self._rounds_in_sample:
            return len(plan.quota)
        return max(first, 1 - plan.params["start_round"])

    def _rebuild(self):
        """Compute everything that is cached of the labels, O(nr)."""
        self._counts = np.bincount(self._labels, minlength=self._plan.k)
        batches.sum_clusters(self._factor.Z, self._labels, self._W)

    def _note(self):
        """Note where the search stands."""
        self._history.note(self._moves, self._risk())

    def _risk(self):
        """Return Q = k n + (4 - k) e^T R e - 4 tr(E^T R E)."""
        k, total = self._plan.k, self._W.sum(axis=0)
        return float(k * self._plan.n + (4 - k) * total @ total - 4 * np.sum(self._W**2))

    def _pass_cost(self, n_points):
        return n_points * (1 + self._factor.rank // 8)

    def _cluster_sample(self):
        """Start from the clusters of a sample, which are cheaper to find."""
        plan = self._plan
        indices = np.sort(self._rng.choice(plan.n, plan.sample, replace=False))
        part, extend = yield from self._costs(self._factor.restrict(indices))
        sample_plan = _sample_plan(plan, indices)
        if self._rounds_in_sample:
            sample_plan = replace(sample_plan, keep_best=plan.keep_best)
        matrix, sample_plan = yield from self._costs(choose_form(part, sample_plan))
        search = make_start(
            matrix, matrix.diagonal(), sample_plan, self._index, self._rng, self._threads
        )
        self._sample = search, part, extend
        share = 0.9 if self._rounds_in_sample else 0.1
        while not search.step(SAMPLE_BUDGET):
            self._fraction = share * search.fraction()
            yield SAMPLE_BUDGET
        self._extend_sample()
        self._fraction = share
        yield self._pass_cost(plan.n) * plan.k

    def _costs(self, steps):
        """Run work that yields numbers of rows; yield what they cost, and return its result."""
        while True:
            try:
                n_rows = next(steps)
            except StopIteration as end:
                return end.value
            yield n_rows * (1 + self._factor.rank**2 // 8)

    def _extend_sample(self):
        """Give all points to the clusters of the sample, as far as these were found."""
        plan = self._plan
        search, part, extend = self._sample
        self._sample = None
        search.finish()
        if self._rounds_in_sample:
            self.n_iter = search.n_iter
        W = np.empty((plan.k, part.rank))
        batches.sum_clusters(part.Z, compact(search.labels, plan.k), W)
        scores = self._factor.cluster_scores(W @ extend)
        labels = scores.argmax(axis=0)
        if plan.known is not None:
            labels = np.where(plan.known >= 0, plan.known, labels)
        sizes = self._sizes_of_all(np.bincount(search.labels, minlength=plan.k))
        lower, upper = plan.rule.bounds_at(sizes)
        self._labels = compact(fit_sizes(labels, scores, lower, upper, self._movable), plan.k)
        self._rebuild()

    def _sizes_of_all(self, sizes):
        """Return the sizes asked for, or those of a sample in proportion; known labels fit in."""
        plan, targets = self._plan, self._plan.rule.targets
        sizes = proportional_sizes(sizes, plan.n) if targets is None else targets
        return with_known(sizes, plan.known, plan.n)

    def _shake(self, first_round):
        """Run the rounds: the clusters take turns in claiming points."""
        rounds = slice(first_round, self._end_of_rounds())
        quota, floors = self._plan.quota[rounds], self._plan.floors[rounds]
        rounds, k = quota.shape
        for at in range(rounds):
            for d in range(k):
                yield from self._turn(d, quota[at, d] - self._counts[d], floors[at])
                self._fraction = 0.1 + 0.8 * (at + (d + 1) / k) / rounds
            self.n_iter += 1
            self._rebuild()
            self._note()
            yield self._pass_cost(self._plan.n)
            risk = self._risk()
            if self._plan.keep_best and (self._best is None or risk < self._best[0]):
                self._best = risk, self._labels.copy()

    def _end_of_rounds(self):
        """Return the row of the quota from which on no cluster grows by half a batch.

        What such rounds would claim, in a pass each, is left to the descent, unless sizes were
        asked for, which only they bring about.
        """
        if self._plan.rule.targets is not None:
            return len(self._plan.quota)
        batch = self._batch_sizes()
        worth = (batch == 1) | (2 * (self._plan.quota - self._targets()) > batch)
        return np.count_nonzero(worth.any(axis=1))

    def _targets(self):
        plan = self._plan
        return np.full(plan.k, plan.n // plan.k) if plan.rule.targets is None else plan.rule.targets

    def _batch_sizes(self):
        """Return how many points each cluster claims at a time.

        It is a share of the size that the cluster is meant to have, not of what it claims: late
        rounds claim little, which moves the scores little.
        """
        return np.maximum(1, -(-self._targets() // self._plan.batches))

    def _turn(self, d, wanted, floor):
        """Let cluster d claim ``wanted`` points, in batches; yield what each pass cost."""
        plan = self._plan
        most = self._batch_sizes()[d]
        while wanted > 0:
            score = self._score(d, floor)
            yield self._pass_cost(plan.n)
            size = min(most, wanted, np.count_nonzero(np.isfinite(score)))
            if size == 0:
                return
            limit = np.partition(score, size - 1)[size - 1]
            taken = batches.claim_batch(
                self._factor.Z,
                score,
                limit,
                size,
                self._labels,
                self._counts,
                floor,
                self._W,
                d,
            )
            wanted -= taken
            self._moves += taken

    def _score(self, d, floor):
        """Return what claiming each point for cluster d would change Q / 8 by."""
        closed = self._counts <= floor
        closed[d] = True
        Z, n = self._factor.Z, self._plan.n
        # The scores only rank points, so they need not be more exact than Z is.
        steps = (self._W - self._W[d]).astype(Z.dtype)
        score = np.empty(n)
        # As many parts of a size for every thread.
        parts = self._threads * max(1, round(n / (self._threads * ROWS)))
        size = -(-n // parts)

        def score_rows(start):
            batches.score_points(
                Z,
                start,
                self._labels,
                closed,
                steps,
                self._diag,
                self._movable,
                score[start : start + size],
            )

        self._for_all(score_rows, range(0, n, size))
        return score

    def _for_all(self, work, items):
        """Call ``work`` with every item, in threads."""
        if self._threads == 1 or len(items) == 1:
            for item in items:
                work(item)
        else:
            list(self._pool.map(work, items))

    def _repair(self):
        """Bring the sizes within bounds."""
        lower, upper = self._plan.rule.lower, self._plan.rule.upper
        if (self._counts >= lower).all() and (self._counts <= upper).all():
            return False
        scores = self._factor.cluster_scores(self._W)
        before = self._labels
        labels = repaired(before, scores, self._diag, self._plan.rule, self._movable)
        self._labels = compact(labels, self._plan.k)
        self._moves += np.count_nonzero(self._labels != before)
        self._rebuild()
        return True

    def _descend(self, lower, upper):
        """Make moves and swaps until a sweep finds none; yield what each block cost."""
        n, k = self._plan.n, self._plan.k
        shift = np.empty(n)
        target = np.empty(n, dtype=np.int64)
        changed = 1
        while changed > 0:
            changed = 0
            for start in range(0, n, ROWS):
                scores = self._cluster_scores(start)
                changed += batches.descend_block(
                    self._factor.Z,
                    start,
                    scores,
                    self._labels,
                    self._counts,
                    self._W,
                    self._diag,
                    self._movable,
                    lower,
                    upper,
                    self._tol,
                    shift,
                    target,
                )
                yield k * self._pass_cost(scores.shape[0])
            changed += 2 * self._exchange(shift, target)
            self._moves += changed
            self._note()
            self._fraction = 0.95

    def _cluster_scores(self, start):
        """Return Z W^T for the rows of the block that begins at ``start``."""
        block = self._factor.Z[start : start + ROWS]
        columns = self._W.T.astype(block.dtype)
        scores = np.empty((block.shape[0], self._plan.k), block.dtype)

        def multiply(first):
            rows = slice(first, first + ROWS_MULTIPLIED)
            np.matmul(block[rows], columns, out=scores[rows])

        self._for_all(multiply, range(0, block.shape[0], ROWS_MULTIPLIED))
        return scores

    def _exchange(self, shift, target):
        """Swap points that want into each other's clusters; return how many pairs did."""
        k = self._plan.k
        # Points that cannot move have no target, and an infinite shift.
        wish = self._labels.astype(np.int64) * k + np.maximum(target, 0)
        lowest = np.full(k * k, np.inf)
        np.minimum.at(lowest, wish, shift)
        # Most points find nobody in the other cluster who would make up for their loss.
        opposite = lowest.reshape(k, k).T.ravel()
        able = np.flatnonzero(shift + opposite[wish] < -self._tol)
        order = able[np.lexsort((shift[able], wish[able]))]
        bounds = np.searchsorted(wish[order], np.arange(k * k + 1))
        return batches.exchange(
            self._factor.Z,
            order,
            bounds,
            shift,
            self._labels,
            self._counts,
            self._W,
            self._diag,
            self._tol,
        )


def _sample_plan(plan, indices):
    """Return the plan for some of the points alone."""
    m, k, rule, params = indices.size, plan.k, plan.rule, plan.params
    known = None if plan.known is None else plan.known[indices]
    # The sample may have drawn any number of the known labels, so only what the bounds leave to
    # the other points is scaled.
    held, held_here = held_sizes(plan.known, k), held_sizes(known, k)
    free = m - held_here.sum()
    share = free / max(1, plan.n - held.sum())
    lower = held_here + np.floor(np.maximum(rule.lower - held, 0) * share).astype(np.int64)
    upper = held_here + np.minimum(free, np.ceil((rule.upper - held) * share)).astype(np.int64)
    targets = rule.targets
    if targets is not None:
        targets = held_here + proportional_sizes(np.maximum(targets - held, 0), free)
    quota = shaking_quota(m, k, params["n_rounds"], params["start_round"], targets)
    return replace(
        plan,
        n=m,
        init="random",
        rule=SizeRule(targets, lower, upper, rule.bounded),
        known=known,
        quota=quota,
        floors=donor_floors(m, k, quota, int(params["min_size"] * m / plan.n)),
        polish=False,
        keep_best=False,
        batches=None,
        sample=0,
        keep_sums=False,
    )
