"""Weights of points: what they may be, and points of weight 0, which are labelled in the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any, cast

import numpy as np

from fastmmc.data.labels import read_known_labels
from fastmmc.data.links import check_pairs
from fastmmc.kernels.block_factor import comes_in_blocks
from fastmmc.kernels.factors import DenseFactor, LowRankFactor
from fastmmc.rls.trimming import Solver, change_results, of_all, of_rest

# Rows that a message names.
ROWS_NAMED = 5


def check_weights(weights, n):
    """Return the weights of n points as float64, None if there are none or all are 1."""
    if weights is None:
        return None
    weights = np.asarray(weights)
    if weights.shape != (n,) or weights.dtype.kind not in "biuf":
        raise ValueError(
            f"sample_weight must be {n} numbers, one for each point; got an array of shape "
            f"{weights.shape} and type {weights.dtype}"
        )
    weights = weights.astype(np.float64)
    for wrong, what in ((~np.isfinite(weights), "finite"), (weights < 0, "at least 0")):
        if wrong.any():
            row = np.flatnonzero(wrong)[0]
            raise ValueError(
                f"sample_weight must be {what}; got {weights[row]} in {name_rows(wrong)}"
            )
    if not weights.any():
        raise ValueError(
            f"every weight of sample_weight is zero, in all {n} rows; some point must count"
        )
    return None if (weights == 1.0).all() else weights


def name_rows(mask):
    """Return the text of the rows where the mask is true."""
    rows = np.flatnonzero(mask)
    named = ", ".join(map(str, rows[:ROWS_NAMED]))
    return f"row{'s' * (rows.size > 1)} {named}{' ...' * (rows.size > ROWS_NAMED)}"


def without_weightless(make_source: Callable[..., Any]) -> Callable[[Solver], Solver]:
    """Make a solver leave points of weight 0 to the model of the others, which labels them.

    ``make_source(call)`` returns the :class:`Source` of the hat matrix.
    """

    def decorate(solve: Solver) -> Solver:
        @wraps(solve)
        def solve_rest(call, control):
            if call.sample_weight is None or comes_in_blocks(call.X):
                return solve(call, control)
            if isinstance(call.X, DenseFactor | LowRankFactor):
                raise ValueError(
                    "sample_weight: X is a factor, whose hat matrix has no weights in it; give the "
                    "points"
                )
            source = make_source(call)
            n = source.points.shape[0]
            weights = check_weights(call.sample_weight, n)
            call = replace(call, sample_weight=weights)
            if weights is None or weights.all():
                return solve(call, control)
            is_out = weights == 0
            _refuse_told(call, is_out)
            rest = np.flatnonzero(~is_out)
            if isinstance(call.k, int) and rest.size < call.k:
                raise ValueError(
                    f"sample_weight is above 0 in {rest.size} rows, fewer than k = {call.k} "
                    "clusters"
                )
            init = getattr(call, "init", "")
            init = None if isinstance(init, str) else np.asarray(init)
            made = solve(of_rest(call, source, rest, init), control)
            return change_results(made, lambda one: _labelled(one, source.points, is_out))

        return cast(Solver, solve_rest)

    return decorate


def _refuse_told(call, is_out):
    """Refuse known labels and links of points that have no weight, and so no say."""
    n = is_out.size
    told = {
        name: check_pairs(name, getattr(call, name), n) for name in ("must_link", "cannot_link")
    }
    known, _ = read_known_labels(call.known_labels, n, n)
    if known is not None:
        told["known_labels"] = np.flatnonzero(known >= 0)
    for name, rows in told.items():
        wrong = np.zeros(n, dtype=bool)
        wrong[rows] = True
        wrong &= is_out
        if wrong.any():
            raise ValueError(
                f"{name} concerns {name_rows(wrong)}, whose sample_weight is 0: such points are "
                "labelled by the model of the others; give them a small weight"
            )


def _labelled(result, points, is_out):
    """Return the result for all points: those left out take the label that the model predicts."""
    # No point of weight 0 has a share in any prediction, its own either.
    scores = np.zeros(is_out.size)
    if result.outlier_scores is not None:  # trimming has those of all points already
        scores[~is_out] = result.outlier_scores
    result = of_all(result, points, is_out, scores)
    scores = result.loo_scores
    scores = result.model.decision_function(points[is_out]) if scores is None else scores[is_out]
    labels = result.labels.copy()
    labels[is_out] = scores.argmax(axis=1)
    return replace(result, labels=labels, sizes=np.bincount(labels, minlength=result.sizes.size))
