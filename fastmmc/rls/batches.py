"""One restart of UMC-RLS on the low-rank hat matrix, in batches of claims: linear in n."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from fastmmc.data.sizes import fit_sizes, proportional_sizes, with_known
from fastmmc.kernels.factors import DenseFactor
from fastmmc.kernels.nystroem import DENSE_LIMIT
from fastmmc.rls import _loops_batches as batches
from fastmmc.rls.claims import ClaimSearch
from fastmmc.rls.engine import _loops_moves as moves
from fastmmc.rls.engine.free import quick_labels
from fastmmc.rls.engine.labelling import LabelSearch, sums_of

# A start is first clustered on a sample of this many points, claimed one at a time, or this many
# for each cluster where that is more.
SAMPLE = 2_000
SAMPLE_PER_CLUSTER = 100

# With more points than this, or than this many for each cluster, only a sample of that size goes
# through the rounds of claims, and all points through the descent alone.
ROUNDS = 50_000
ROUNDS_PER_CLUSTER = 2_500

# Budget of the sample's search between two looks at the clock.
SAMPLE_BUDGET = 200_000

# Batches in which a cluster of the size asked for is claimed: enough to shake from a random start
# as well as one by one, and enough to go on from the clusters of a sample.
BATCHES_FROM_RANDOM = 64
BATCHES_FROM_SAMPLE = 32

# Rows that one thread scores at a time, about; rows that a descent sees under the same scores.
ROWS = 4096

# Rows of such a block that one thread multiplies at a time: it must not depend on the number of
# threads, as the rounding of a product does depend on its shape.
ROWS_MULTIPLIED = 1024


@dataclass(frozen=True)
class ClaimForm:
    """How clusters claim points: one by one on rows of the hat matrix, or in batches on Z."""

    batches: int | None = None  # for a cluster of the size asked for; None: one by one
    product: bool = False  # whether Z Z^T is made first
    sample: int = 0  # points that a start is first clustered on
    of_sample: ClaimForm | None = None  # how these are claimed
    rounds_in_sample: bool = False  # whether they alone go through the rounds

    def make_matrix(self, factor):
        """Return the factor that claims are made on; yield the rows of Z Z^T that were made."""
        if isinstance(factor, DenseFactor) or self.batches is not None:
            return factor
        if not self.product:
            return factor._in_double_precision()
        return (yield from factor._as_dense())


def choose_form(factor, plan):
    """Decide how points are claimed, in the call and in each sample of its starts.

    On the factor Z a claim costs O(nr), so one by one is for small n, where the product Z Z^T is
    made, and for those who ask for it. That product is made of no more points than the hat matrix
    is dense of by default, however many clusters there are.
    """
    if isinstance(factor, DenseFactor) or plan.k == 1 or plan.batches == "exact":
        return ClaimForm()
    in_turns = plan.method in ("shaking", "memetic")
    return _low_rank_form(plan.n, plan.k, plan.batches, in_turns, plan.has_random_start)


def _low_rank_form(n, k, batches, in_turns, from_random):
    most_for_rounds = max(ROUNDS, ROUNDS_PER_CLUSTER * k)
    size = max(SAMPLE, SAMPLE_PER_CLUSTER * k)
    if n > most_for_rounds:
        sample = most_for_rounds
    else:
        sample = size if n > 2 * size else 0
    if batches is None and sample == 0 and n <= DENSE_LIMIT:
        return ClaimForm(product=True)
    if not in_turns:
        return ClaimForm()
    if batches is not None or sample == 0 or not from_random:
        return ClaimForm(batches or BATCHES_FROM_RANDOM)
    return ClaimForm(
        BATCHES_FROM_SAMPLE,
        sample=sample,
        of_sample=_low_rank_form(sample, k, None, True, True),
        rounds_in_sample=n > most_for_rounds,
    )


def make_start(factor, diag, form, plan, index, rng, threads=1):
    """Return the search of one start on what :meth:`ClaimForm.make_matrix` returned."""
    if form.batches is None:
        return ClaimSearch(factor, diag, plan, index, rng)
    return BatchSearch(factor, diag, form, plan, index, rng, threads)


class BatchSearch(LabelSearch):
    """A search with the sums W = E^T Z, k x r: shake a sample, then all points, then descend."""

    def __init__(self, factor, diag, form, plan, index, rng, threads=1):
        super().__init__(factor, diag, plan, rng, width=factor.rank)
        self._form = form
        self._index = index
        self._rng = rng
        self._threads = threads
        self._sample = None
        targets = plan.rule.targets
        self._targets = np.full(plan.k, plan.n // plan.k) if targets is None else targets
        # A cluster claims a share of the size that it is meant to have at a time, not of what it
        # claims: late rounds claim little, which moves the scores little.
        self._batch = np.maximum(1, -(-self._targets // form.batches))

    def finish(self):
        """Do what every search does, from fresh sums."""
        is_begun = np.isfinite(self._state.value[moves.OBJECTIVE])
        if self._sample is not None:
            self._extend_sample()
        elif self._plan.has_random_start and not is_begun:
            self._state.labels[:] = quick_labels(self._factor, self._plan, self._rng)
        self._fill()
        return super().finish()

    def _run(self):
        """Go through the phases; yield what each step cost."""
        if self._form.sample > 0:
            yield from self._cluster_sample()
        else:
            self._fill()
        self._note()
        with ThreadPoolExecutor(self._threads) as self._pool:
            yield from self._shake(self._first_round())
            self._take_best()
            rule = self._plan.rule
            # The paper's rule fixes the sizes, so only swaps are left, unless these had to change.
            bounds = rule.bounds_at(self._state.counts.copy())
            if self._repair():
                bounds = rule.lower, rule.upper
            self._set_bounds(*bounds)
            yield from self._descend()

    def _first_round(self):
        """Return the row of the quota that all points together begin at."""
        plan = self._plan
        first = plan.first_round(self._index)
        if self._form.sample == 0:
            return first
        # The sample had all rounds, or the first one, which would undo what it found.
        if self._form.rounds_in_sample:
            return len(plan.quota)
        return max(first, 1 - plan.start_round)

    def _sum(self):
        """Fill W, O(nr), and return Q."""
        moves.build_sums(self._state.matrix, self._state.labels, self._state.sums)
        return self._risk()

    def _risk(self):
        """Return Q = k n + (4 - k) e^T R e - 4 tr(E^T R E)."""
        k, W = self._plan.k, self._state.sums
        total = W.sum(axis=0)
        return float(k * self._plan.n + (4 - k) * total @ total - 4 * np.sum(W**2))

    def _scores(self):
        return self._factor._cluster_scores(self._state.sums)

    def _pass_cost(self, n_points):
        return n_points * (1 + self._factor.rank // 8)

    def _cluster_sample(self):
        """Start from the clusters of a sample, which are cheaper to find."""
        plan, form = self._plan, self._form
        indices = np.sort(self._rng.choice(plan.n, form.sample, replace=False))
        part, extend = yield from self._costs(self._factor._restrict(indices))
        sample_plan = plan.of_sample(indices, plan.keep_best and form.rounds_in_sample)
        matrix = yield from self._costs(form.of_sample.make_matrix(part))
        search = make_start(
            matrix,
            matrix.diagonal(),
            form.of_sample,
            sample_plan,
            self._index,
            self._rng,
            self._threads,
        )
        self._sample = search, part, extend
        share = 0.9 if form.rounds_in_sample else 0.1
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
        if self._form.rounds_in_sample:
            self.n_iter = search.n_iter
        scores = self._factor._cluster_scores(sums_of(part.Z, search.labels, plan.k) @ extend)
        labels = plan.with_known(scores.argmax(axis=0))
        sizes = self._sizes_of_all(np.bincount(search.labels, minlength=plan.k))
        lower, upper = plan.rule.bounds_at(sizes)
        self._state.labels[:] = fit_sizes(labels, scores, lower, upper, self._state.movable)
        self._fill()

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
                yield from self._turn(d, quota[at, d] - self._state.counts[d], floors[at])
                self._fraction = 0.1 + 0.8 * (at + (d + 1) / k) / rounds
            self.n_iter += 1
            self._fill()
            self._note()
            yield self._pass_cost(self._plan.n)
            state = self._state
            if self._plan.keep_best and state.value[moves.OBJECTIVE] < state.value[moves.BEST]:
                state.value[moves.BEST] = state.value[moves.OBJECTIVE]
                state.best_labels[:] = state.labels

    def _end_of_rounds(self):
        """Return the row of the quota from which on no cluster grows by half a batch.

        What such rounds would claim, in a pass each, is left to the descent, unless sizes were
        asked for, which only they bring about.
        """
        if self._plan.rule.targets is not None:
            return len(self._plan.quota)
        worth = (self._batch == 1) | (2 * (self._plan.quota - self._targets) > self._batch)
        return np.count_nonzero(worth.any(axis=1))

    def _turn(self, d, wanted, floor):
        """Let cluster d claim ``wanted`` points, in batches; yield what each pass cost."""
        while wanted > 0:
            score = self._score(d, floor)
            yield self._pass_cost(self._plan.n)
            size = min(self._batch[d], wanted, np.count_nonzero(np.isfinite(score)))
            if size == 0:
                return
            limit = np.partition(score, size - 1)[size - 1]
            wanted -= batches.claim_batch(self._state, score, limit, size, floor, d)

    def _score(self, d, floor):
        """Return what claiming each point for cluster d would change Q / 8 by."""
        state, n = self._state, self._plan.n
        Z, W = state.matrix, state.sums
        closed = state.counts <= floor
        closed[d] = True
        # The scores only rank points, so they need not be more exact than Z is.
        steps = (W - W[d]).astype(Z.dtype)
        score = np.empty(n)
        # Every thread gets equally many parts of one size.
        parts = self._threads * max(1, round(n / (self._threads * ROWS)))
        size = -(-n // parts)

        def score_rows(start):
            part = score[start : start + size]
            batches.score_points(
                Z, start, state.labels, closed, steps, state.diag, state.movable, part
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

    def _descend(self):
        """Make moves and swaps until a sweep finds none; yield what each block cost."""
        n, k, state = self._plan.n, self._plan.k, self._state
        shift = np.empty(n)
        target = np.empty(n, dtype=np.int64)
        changed = 1
        while changed > 0:
            changed = 0
            for start in range(0, n, ROWS):
                scores = self._cluster_scores(start)
                changed += batches.descend_block(state, start, scores, shift, target)
                yield k * self._pass_cost(scores.shape[0])
            changed += 2 * self._exchange(shift, target)
            state.pos[moves.MOVES] += changed
            state.value[moves.OBJECTIVE] = self._risk()
            self._note()
            self._fraction = 0.95

    def _cluster_scores(self, start):
        """Return Z W^T for the rows of the block that begins at ``start``."""
        block = self._state.matrix[start : start + ROWS]
        columns = self._state.sums.T.astype(block.dtype)
        scores = np.empty((block.shape[0], self._plan.k), block.dtype)

        def multiply(first):
            rows = slice(first, first + ROWS_MULTIPLIED)
            np.matmul(block[rows], columns, out=scores[rows])

        self._for_all(multiply, range(0, block.shape[0], ROWS_MULTIPLIED))
        return scores

    def _exchange(self, shift, target):
        """Swap points that want into each other's clusters; return how many pairs did."""
        k, state = self._plan.k, self._state
        # Points that cannot move have no target, and an infinite shift.
        wish = state.labels.astype(np.int64) * k + np.maximum(target, 0)
        lowest = np.full(k * k, np.inf)
        np.minimum.at(lowest, wish, shift)
        # Most points find nobody in the other cluster who would make up for their loss.
        opposite = lowest.reshape(k, k).T.ravel()
        able = np.flatnonzero(shift + opposite[wish] < -state.tol)
        order = able[np.lexsort((shift[able], wish[able]))]
        bounds = np.searchsorted(wish[order], np.arange(k * k + 1))
        return batches.exchange(state, order, bounds, shift)
