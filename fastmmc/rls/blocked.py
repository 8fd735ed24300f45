"""UMC-RLS and FastEvoMMC on points in blocks: a sample is searched, and all points descend.

With z_i the rows of Z, E the label indicator and W = E^T Z, every objective here falls with a
convex function of the labels: Q and F with sum_h |W_h|^2, whose tangent has A = W and c = 0, and
the cost of free sizes as :func:`fastmmc.rls.engine.groups.tangent` says. So each point goes to
its largest score z_i . A_h + c_h + p_h, where the prices p keep the sizes as they are meant to be.
A pass sends A, c and p, k x (r + 1) numbers, to the blocks, and sums of as many back. Labels are
never stored before the end, as they follow from these, wherever a block is.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import lstsq, solve, solve_triangular
from scipy.special import logsumexp, softmax

from fastmmc.core import validation
from fastmmc.core.declare import values
from fastmmc.core.execution import History, rate_figures, show_progress, warn_if_stopped
from fastmmc.core.parameters import (
    LandmarkParameters,
    PrecisionParameters,
    SizeParameters,
    kernel_of,
)
from fastmmc.core.results import RLSResult
from fastmmc.core.status import Status
from fastmmc.data.blocks import check_shape, make_blocks
from fastmmc.data.sizes import (
    are_within,
    binary_bounds,
    binary_size_bounds,
    fit_sizes,
    proportional_sizes,
    size_rule,
    sizes_within,
)
from fastmmc.kernels.block_factor import (
    BlockFactor,
    SampleRun,
    check_block_form,
    make_block_factor,
    sample_size,
)
from fastmmc.kernels.cholesky import add_to_diagonal
from fastmmc.kernels.factors import check_lam, factor_sample, leave_one_out_residuals
from fastmmc.kernels.gram import kernel_product
from fastmmc.kernels.models import KernelModel
from fastmmc.kernels.nystroem import Form
from fastmmc.rls.engine.groups import is_worth_more, sums_of, tangent
from fastmmc.rls.source import FACTOR_PARAMETERS, refuse_beside_factor

# The search ends with a pass that is not worth one more, or with the last.
MOST_PASSES = 200

# How far sizes may be from those aimed at, as a share of n / k, and passes made to get there.
SIZE_TOLERANCE = 1e-3
MOST_PRICINGS = 12

# Points of a cluster looked at in the end for each that is to leave it. With 1, 4 and 16 the
# objective of 100,000 x 2 points in 100 clusters (birch2, six seeds, rank 500) is .35710, .35672
# and .35670 times n.
LISTED = 4

# Shares of the typical step between a point's two best scores: prices are found for clusters that
# points belong to by degrees, which fall off over this much.
SOFTNESS = (64.0, 8.0, 1.0, 0.1)
NEWTON_STEPS = 30


class Rule(NamedTuple):
    """What tells the labels of a block's points."""

    coef: np.ndarray  # (r, k): scores are the features times this
    shift: np.ndarray  # (k,) added to them
    # Block, row and cluster, each (m,), of points that go elsewhere.
    gifts: tuple = (np.empty(0, dtype=np.int64),) * 3


class Found(NamedTuple):
    """What a pass finds of the labels that a rule gives."""

    rule: Rule
    sizes: np.ndarray  # (k,) int64
    W: np.ndarray  # (k, r) float64
    objective: float


def search_in_blocks(call, control, solve_sample):
    """Return the result of a method on points in blocks; ``solve_sample`` is the method itself."""
    refuse_single_points(call)
    factor = call.X if isinstance(call.X, BlockFactor) else None
    goal = Goal.of(call, check_shape(call.X)[0] if factor is None else factor.n)
    if factor is None:
        kernel, blocks, rank = kernel_of(call), make_blocks(call.X), 1
        if goal.n > sample_size(goal.k, rank):  # else they are but a sample, which has no factor
            wanted = values(call, LandmarkParameters, PrecisionParameters)
            form = check_block_form(blocks, kernel, **wanted)
            blocks, rank = make_blocks(call.X, form.rank, call.n_jobs), form.rank
    else:
        refuse_beside_factor(call)
        blocks, rank = factor.blocks, factor.rank
    run = SampleRun(call, blocks, sample_size(goal.k, rank))
    if run.is_whole and factor is None:
        return run.of_all(solve_sample)
    with show_progress(control) as control:
        sample, given = run.draw(control)
        given |= goal.of_sample(call, len(sample))
        if factor is None:
            m, is_given = len(sample), isinstance(form.landmarks, np.ndarray)
            given |= {
                "lam": call.lam * m / goal.n,
                "dtype": np.dtype(np.float64),
                "landmarks": form.landmarks,
                "rank": "auto" if is_given else min(m, form.rank),
            }
            found = solve_sample(sample, **given)
            kernel, dtype = found.model.kernel, form.dtype
            check_lam(call.lam, kernel, sample, dtype or blocks.dtype)
            factor = make_block_factor(blocks, call.lam, kernel, found.model.basis, dtype)
        else:
            form = Form(len(factor.basis), factor.basis)
            X = factor_sample(sample, goal.n, factor.lam, factor.kernel, form, run.seed)
            told = {name: value for name, value in given.items() if name not in FACTOR_PARAMETERS}
            found = solve_sample(X, **told)
        descent = Descent(factor, sample, found, goal.like(found), control)
        descent.run()
        descent.end()
        return run.end(descent.result(call), control)


def refuse_single_points(call):
    """Refuse what is asked for of single points, which nobody sees here."""
    wanted = {
        "init": not isinstance(getattr(call, "init", ""), str),
        "bound": getattr(call, "bound", False),
        "trim": getattr(call, "trim", 0) != 0,
    }
    for name in ("known_labels", "sample_weight", "must_link", "cannot_link"):
        wanted[name] = getattr(call, name, None) is not None
    for name, is_wanted in wanted.items():
        if is_wanted:
            raise ValueError(
                f"{name}: points in blocks (a Dask array, a large memory map) have no {name}, as "
                "it is about points one by one; leave it out, or give an array as X"
            )


@dataclass(frozen=True, eq=False)
class Goal:
    """What is minimised, over labellings of what sizes."""

    kind: str  # "equal" (Q), "free" or "binary" (F)
    n: int
    k: int
    lower: np.ndarray  # (k,) size bounds
    upper: np.ndarray
    is_ruled: bool  # whether the call says what sizes are allowed
    held: np.ndarray | None = None  # (k,) sizes that the passes hold, within a thousandth

    @classmethod
    def of(cls, call, n):
        """Return the goal of a call for n points."""
        if not hasattr(call, "k"):
            low, high = binary_bounds(n, **values(call, SizeParameters))
            return cls("binary", n, 2, *binary_size_bounds(n, low, high).T, True)
        k = validation.check_cluster_count(call.k, n)
        told = values(call, SizeParameters)
        if call.balance is None and call.target_sizes is not None:
            told["balance"] = 0.0
        rule = size_rule(n, k, **told)
        is_ruled = call.sizes == "free" or told["balance"] is not None
        return cls(call.sizes, n, k, rule.lower, rule.upper, is_ruled)

    def of_sample(self, call, m):
        """Return the size parameters of the search on a sample."""
        targets, least, most = call.target_sizes, call.min_size, call.max_size
        return {
            "target_sizes": None if targets is None else proportional_sizes(np.asarray(targets), m),
            "min_size": max(min(1, least), least * m // self.n),
            "max_size": None if most is None else -(-most * m // self.n),
        }

    def like(self, found):
        """Return the goal with what the search on the sample decided: the sizes, if none are set.

        As for points in memory, equal sizes that no balance rules are those that it found.
        """
        if self.is_ruled:
            return self
        held = proportional_sizes(found.sizes, self.n)
        if found.size_bounds is None:  # equal points were merged
            return replace(self, held=held)
        in_sample = found.size_bounds.T * (self.n / found.sizes.sum())
        least, most = np.floor(in_sample).astype(np.int64)
        return replace(
            self,
            held=held,
            lower=np.maximum(self.lower, np.minimum(least, held) - self.near),
            upper=np.minimum(self.upper, np.maximum(most, held) + self.near),
        )

    @property
    def near(self):
        """By how many points the sizes of passes may be off."""
        return max(1, int(SIZE_TOLERANCE * self.n / self.k))

    def value(self, W, sizes):
        """Return the objective."""
        within = np.sum(W**2, axis=1)
        if self.kind == "free":
            return float(np.sum(1.0 - within / np.maximum(sizes, 1)))
        if self.kind == "binary":
            return float(self.n - np.sum((W[1] - W[0]) ** 2))
        total = W.sum(axis=0)
        return float(self.k * self.n + (4 - self.k) * total @ total - 4 * within.sum())

    def tangent(self, W, sizes, within=None):
        """Return A and c at labels with these sums; ``within`` are the diagonal of E^T R E."""
        if self.kind != "free":
            return W, np.zeros(self.k)
        return tangent(W, sizes, within)


class Descent:
    """Passes over all points, from the labels of a sample."""

    def __init__(self, factor, sample, found, goal, control):
        self._factor, self._found, self._goal, self._control = factor, found, goal, control
        self._blocks = factor.blocks
        self._Z = kernel_product(factor.kernel, sample, factor.basis, factor.projection)
        # The last prices, and by how much the sizes in the sample were shifted for them.
        self._prices = self._lean = np.zeros(goal.k)
        self._least = self._most = goal.held
        if goal.held is None:
            # Sizes that are off by as much are still within the bounds, if these leave room.
            middle = (goal.lower + goal.upper) // 2
            self._least = np.minimum(goal.lower + goal.near, middle)
            self._most = np.maximum(goal.upper - goal.near, self._least)
        self.history = History()
        self.status = Status.CONVERGED
        self.n_passes = 0

    def predict(self, coef):
        """Give all points the clusters whose functions k(x, basis) coef are largest."""
        A = lstsq(self._factor.projection, coef, check_finite=False)[0].T
        self._accept(self._settle(A, np.zeros(self._goal.k)))

    def run(self):
        """Give all points the clusters of the sample; make passes while they are worth it."""
        A, within = self._regress()
        sizes = np.bincount(self._found.labels, minlength=self._goal.k)
        self._accept(self._settle(*self._goal.tangent(A, sizes, within)))
        if self._found.status not in (Status.CONVERGED, Status.MAX_ITER):
            self.status = self._found.status
            return
        try:
            while self._improves() and self.status == Status.CONVERGED:
                if self.n_passes >= MOST_PASSES:
                    self.status = Status.MAX_ITER
        except KeyboardInterrupt:
            self.status = Status.INTERRUPTED
        warn_if_stopped(self.status, 1, 1)

    def _improves(self):
        """Make a pass; tell whether it was worth one more."""
        last = self._last
        self.status = self._control.report(
            fraction=1.0 - 1.0 / (2 + self.n_passes),
            n_done=0,
            n_init=1,
            objective=last.objective,
        )
        if self.status != Status.CONVERGED:
            return False
        found = self._settle(*self._goal.tangent(last.W, last.sizes))
        self.n_passes += 1
        if found.objective >= last.objective:
            return False
        self._accept(found)
        return is_worth_more(last.objective, found.objective)

    def _accept(self, found):
        self._last = found
        self.history.note(self.n_passes, found.objective)

    def _regress(self):
        """Return A (k, r) by which the sample predicts the clusters, and the e^T R e of these."""
        Z, labels, k = self._Z, self._found.labels, self._goal.k
        n, m = self._goal.n, len(labels)
        half = self._factor.half
        Y = solve_triangular(half, Z.T, trans="T", check_finite=False).T
        inner = Y.T @ Y
        add_to_diagonal(inner, self._factor.lam * m / n)
        of_clusters = sums_of(Y, labels, k)
        coef = solve(inner, of_clusters.T, assume_a="pos", check_finite=False)
        A = solve_triangular(half, coef, check_finite=False).T
        return A, np.sum(of_clusters.T * coef, axis=0)

    def _look(self, rule):
        """Make a pass; return what is found of the labels that a rule gives."""
        sizes, features = self._blocks.total(self._tasks(_sum_block, rule))
        W = features @ self._factor.half
        return Found(rule, sizes, W, self._goal.value(W, sizes))

    def _tasks(self, work, needed):
        """Return tasks that work on the features of each block, with what all of them need."""
        shared = self._blocks.share(needed)
        features = enumerate(self._factor.features)
        return [self._blocks.task(work, Z, shared, at) for at, Z in features]

    def _settle(self, A, c):
        """Give points the clusters of their largest scores, in the sizes aimed at.

        Where the sizes need no help, the prices are zero. Others make the sizes right in the
        sample, whose sizes are then shifted by what all points are off.
        """
        goal, (m, n) = self._goal, (len(self._Z), self._goal.n)
        coef, scores = self._factor.half @ A.T, self._Z @ A.T + c
        sizes = proportional_sizes(np.bincount(scores.argmax(axis=1), minlength=goal.k), n)
        if are_within(sizes, self._least, self._most):
            found = self._look(Rule(coef, c))
            sizes = found.sizes
            if are_within(sizes, goal.lower, goal.upper):
                return found
        wanted = sizes_within(sizes, self._least, self._most)
        share = wanted * (m / n) + self._lean
        nearest, stale = np.inf, 0
        for attempt in range(MOST_PRICINGS):
            self._prices = find_prices(scores, share, self._prices, rough=attempt == 0)
            found = self._look(Rule(coef, c + self._prices))
            missing = wanted - found.sizes
            off = np.abs(missing).max()
            stale = 0 if off < 0.8 * nearest else stale + 1
            if off < nearest:
                nearest, best = off, found
            if off <= goal.near or stale == 3:
                break
            share = np.maximum(share + missing * (m / n), 0.01 * share)
        self._lean = np.maximum(share - wanted * (m / n), -0.9 * wanted * (m / n))
        return best

    def end(self):
        """Bring the sizes within the bounds, to a point; those that lose least by it go."""
        goal, rule, sizes = self._goal, self._last.rule, self._last.sizes
        missing = sizes_within(sizes, goal.lower, goal.upper) - sizes
        if not missing.any():
            return
        room, excess = np.maximum(missing, 0), np.maximum(-missing, 0)
        listed = self._blocks.fetch(self._tasks(_list_losses, (rule, room > 0, LISTED * excess)))
        at, rows, labels, losses = (np.concatenate(c) for c in zip(*listed, strict=True))
        least = np.sort(_least(losses, labels, LISTED * excess))
        at, rows, labels = at[least], rows[least], labels[least]
        scores = np.concatenate(self._blocks.fetch(self._tasks(_scores_of, (rule, at, rows))))
        wanted = np.bincount(labels, minlength=goal.k) + missing
        gifts = at, rows, fit_sizes(labels, scores.T, wanted, wanted)
        self._accept(self._look(rule._replace(gifts=gifts)))

    def result(self, call):
        """Return the result: figures from a last pass, and the labels where the points are."""
        blocks, factor, goal, found = self._blocks, self._factor, self._goal, self._found
        rule, sizes, W, objective = self._last
        (loss,) = blocks.total(self._tasks(_residuals, (rule, factor.half, W)))
        coef = factor.projection @ (2.0 * W - W.sum(axis=0)).T
        loo_mse = float(loss) / (goal.k * goal.n)
        history, trace = self.history.arrays("passes")
        status = rate_figures(self.status, loo_mse=loo_mse, history=history)
        # The features of a choice span some functions of its landmarks alone.
        rank = found.params.get("rank", factor.rank)
        own = {"lam": factor.lam, "rank": rank} | values(call, SizeParameters)
        d, dtype = blocks.shape[1], blocks.dtype
        return RLSResult(
            labels=blocks.join(self._tasks(_assign, rule)),
            objective=objective,
            status=status,
            n_iter=self.n_passes,
            n_moves=found.n_moves,
            sizes=sizes,
            size_bounds=np.column_stack((goal.lower, goal.upper)),
            history=history,
            trace=trace,
            objectives=np.array([objective]),
            best_init=0,
            params=found.params | own,
            model=KernelModel(factor.kernel, factor.basis, coef, d, dtype=dtype),
            loo_mse=loo_mse,
            loo_scores=None,
            outlier_scores=None,
        )


def find_prices(scores, wanted, prices, rough):
    """Return prices by which points of these scores (m, k) make clusters of ``wanted`` sizes.

    A point belongs to clusters by degrees, the softmax of its scores and the prices over a width:
    sizes are then smooth in the prices, which minimise a convex function. Newton's method finds
    them, for ever smaller widths if the first prices are ``rough``.
    """
    k = len(wanted)
    if k == 1:
        return prices
    top = np.partition(scores, k - 2, axis=1)[:, -2:]
    step = float(np.mean(top[:, 1] - top[:, 0])) or float(np.abs(scores).max()) or 1.0
    for softness in SOFTNESS if rough else SOFTNESS[-1:]:
        prices = _newton(scores, wanted, prices, softness * step)
    return prices


def _newton(scores, wanted, prices, width):
    k = len(wanted)

    def price(p):
        return width * np.sum(logsumexp((scores + p) / width, axis=1)) - wanted @ p

    value = price(prices)
    for _ in range(NEWTON_STEPS):
        degrees = softmax((scores + prices) / width, axis=1)
        sizes = degrees.sum(axis=0)
        missing = wanted - sizes
        if np.abs(missing).max() <= 1e-3 * wanted.min():
            break
        curvature = (np.diag(sizes) - degrees.T @ degrees) / width
        # All prices alike change nothing; those of clusters that no point is between do, if far
        # enough: they go the way that their sizes lack.
        curvature += np.trace(curvature) / k**2
        curvature += np.diag(np.maximum(wanted, 1.0) * (1e-9 / width))
        change = solve(curvature, missing, assume_a="sym", check_finite=False)
        change -= change.mean()
        change *= min(1.0, 10 * width / max(np.abs(change).max(), 1e-300))
        for _ in range(20):
            new = price(prices + change)
            if new < value:
                break
            change = change / 2
        else:
            break
        prices, value = prices + change, new
    return prices - prices.mean()


def _scores(Z, rule):
    """Return the scores of a block's points, (b, k) float64."""
    Z = np.asarray(Z)
    return Z @ rule.coef.astype(Z.dtype) + rule.shift


def _assign(Z, rule, block):
    """Return the labels of a block's points."""
    labels = _scores(Z, rule).argmax(axis=1)
    at, rows, other = rule.gifts
    labels[rows[at == block]] = other[at == block]
    return labels


def _list_losses(Z, shared, block):
    """Return the members of too large clusters that lose least by going to one with room.

    These are, each (m,): block, row, cluster and the loss; ``most`` (k,) of each cluster at most.
    """
    rule, has_room, most = shared
    scores = _scores(Z, rule)
    labels = scores.argmax(axis=1)
    losses = scores[np.arange(len(labels)), labels] - scores[:, has_room].max(axis=1)
    rows = _least(losses, labels, most)
    return np.full(rows.size, block), rows, labels[rows], losses[rows]


def _least(losses, labels, most):
    """Return the indices of the least losses of each cluster, ``most`` (k,) of them at most."""
    order = np.argsort(losses, kind="stable")
    return np.concatenate([order[labels[order] == h][:m] for h, m in enumerate(most)])


def _scores_of(Z, shared, block):
    """Return the scores of some of a block's points."""
    rule, at, rows = shared
    return _scores(np.asarray(Z)[rows[at == block]], rule)


def _sum_block(Z, rule, block):
    Z, k = np.asarray(Z), rule.shift.size
    labels = _assign(Z, rule, block)
    return np.bincount(labels, minlength=k), sums_of(Z, labels, k)


def _residuals(Z, shared, block):
    """Return the sum of a block's squared leave-one-out residuals."""
    rule, half, W = shared
    labels = _assign(Z, rule, block)
    Z = np.asarray(Z).astype(np.float64, copy=False) @ half
    P = np.where(labels[:, None] == np.arange(len(W)), 1.0, -1.0)
    predictions = Z @ (2.0 * W - W.sum(axis=0)).T
    diagonal = np.einsum("ij,ij->i", Z, Z)
    return (np.sum(leave_one_out_residuals(P, predictions, diagonal) ** 2),)
