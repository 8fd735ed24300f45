"""What the restarts of one call of :func:`umc_rls` have in common, parsed once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fastmmc.data.links import Links
from fastmmc.data.sizes import (
    SizeRule,
    balanced_random_labels,
    fit_sizes,
    held_sizes,
    proportional_sizes,
    random_labels_of_masses,
    reorder_to_targets,
    shaking_quota,
)
from fastmmc.kernels.kmeans import k_means


@dataclass(frozen=True, eq=False)
class LabelSearchPlan:
    """The checked parameters of a search over labellings, and the points it is over."""

    n: int
    k: int
    method: str  # shaking where k is 1, whatever was asked for
    init: str | np.ndarray
    points: np.ndarray
    rule: SizeRule
    known: np.ndarray | None  # (n,) labels, -1 where unknown
    trust: np.ndarray | None  # (n,) probabilities that these are right; None: they are
    n_rounds: int
    start_round: int
    min_size: int
    polish: bool
    keep_best: bool
    population: int
    patience: int
    max_iter: int
    free: bool  # whether the cost of free sizes is minimised
    bound: bool  # whether a lower bound on Q is wanted
    default_sizes: bool  # whether the user has said nothing of sizes
    classes: np.ndarray | None  # (k,) what known labels call the clusters, for the result alone
    params: dict  # the same
    masses: np.ndarray | None = None  # (n,) int64 that sizes count points by; None: 1 each
    links: Links | None = None
    weights: np.ndarray | None = None  # (n,) of the points; None: all 1
    link_penalty: float | None = None  # price of a broken cannot-link; None: none is broken
    asked_sizes: bool = False  # whether the user has set bounds on sizes
    cells: int = 0  # that labels are searched on; 0: on the points
    n_init: int = 1  # restarts

    @property
    def total(self):
        """What all sizes add up to."""
        return self.n if self.masses is None else int(self.masses.sum())

    @cached_property
    def quota(self):
        """Size that each claiming cluster grows to, (rounds, k)."""
        return shaking_quota(self.total, self.k, self.n_rounds, self.start_round, self.rule.targets)

    @cached_property
    def floors(self):
        """Sizes below which donors do not fall, (rounds, k).

        It is min_size, or less where the claiming cluster's quota leaves less: with two clusters
        the first round takes everything, which is what makes it forget the start.
        """
        left = (self.total - self.quota.max(axis=1, keepdims=True)) // max(1, self.k - 1)
        return np.broadcast_to(np.minimum(self.min_size, left), self.quota.shape).copy()

    @property
    def movable(self):
        """Points whose label is not known, (n,) bool."""
        return np.ones(self.n, dtype=np.bool_) if self.known is None else self.known < 0

    @property
    def has_random_start(self):
        """Whether each restart begins with random labels."""
        return isinstance(self.init, str) and self.init == "random"

    def with_known(self, labels):
        """Return the labels with the known ones in their places."""
        return labels if self.known is None else np.where(self.known >= 0, self.known, labels)

    def start_labels(self, rng):
        """Return the labels that one restart begins with."""
        if self.has_random_start:
            if self.masses is not None:
                return random_labels_of_masses(self.masses, self.k, rng, self.rule, self.known)
            return balanced_random_labels(self.n, self.k, rng, self.rule, self.known)
        if not isinstance(self.init, str):
            return self.with_known(self.init)
        labels, _ = k_means(self.points, self.k, int(rng.integers(2**31)))
        if self.rule.targets is not None:
            labels = reorder_to_targets(labels, self.rule.targets)
        return self.with_known(labels)

    def fitted(self, labels, scores):
        """Return the labels with sizes within the bounds, or near them if points have masses."""
        lower, upper = self.rule.lower, self.rule.upper
        return fit_sizes(labels, scores, lower, upper, self.movable, self.masses)

    def forgets_start(self):
        """Tell whether the first cluster of the first round claims every point there is."""
        return self.method == "shaking" and self.k == 2 and self.quota[0, 0] == self.total

    @property
    def is_memetic(self):
        """Whether the memetic search runs, or what has its place where sizes are free."""
        return self.free or self.method == "memetic"

    @property
    def n_starts(self):
        """Number of restarts, one where all of them would give the same labels."""
        if self.k > 1 and (self.is_memetic or self.method == "stochastic"):
            return self.n_init
        is_fixed = self.k == 1 or not isinstance(self.init, str)
        return 1 if is_fixed or (self.forgets_start() and len(self.quota) == 1) else self.n_init

    def first_round(self, index):
        """Return the row of the quota that one restart begins at.

        Where the first round forgets the start, only the first restart runs it: the others would
        repeat it to the letter.
        """
        return 1 if index > 0 and self.forgets_start() else 0

    def of_sample(self, indices):
        """Return the plan for some of the points alone."""
        m, k, rule = indices.size, self.k, self.rule
        known = None if self.known is None else self.known[indices]
        # The sample may have drawn any number of the known labels, so only what the bounds leave to
        # the other points is scaled.
        held, held_here = held_sizes(self.known, k), held_sizes(known, k)
        free = m - held_here.sum()
        share = free / max(1, self.total - held.sum())
        lower = held_here + np.floor(np.maximum(rule.lower - held, 0) * share).astype(np.int64)
        upper = held_here + np.minimum(free, np.ceil((rule.upper - held) * share)).astype(np.int64)
        targets = rule.targets
        if targets is not None:
            targets = held_here + proportional_sizes(np.maximum(targets - held, 0), free)
        return replace(
            self,
            n=m,
            masses=None,  # sizes of a sample count points
            init="random",
            rule=SizeRule(targets, lower, upper, rule.bounded),
            known=known,
            min_size=int(self.min_size * m / self.n),
            polish=False,
            keep_best=False,
        )

    def of_given(self, labels, first):
        """Return the plan of one search from labels, which shaking goes on with from a round."""
        start = min(self.n_rounds, max(self.start_round, first))
        return replace(self, init=labels, population=1, start_round=start)
