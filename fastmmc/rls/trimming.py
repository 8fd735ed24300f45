"""Points that are least like the others are left out of a search and get no label."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np

from fastmmc.core import validation
from fastmmc.core.execution import fixed_seed
from fastmmc.data.labels import check_init, read_known_labels
from fastmmc.data.links import check_pairs
from fastmmc.kernels.block_factor import comes_in_blocks
from fastmmc.kernels.factors import LowRankFactor, make_factor
from fastmmc.kernels.gram import default_width, resolve_kernel
from fastmmc.kernels.nystroem import Form
from fastmmc.rls.outliers import score_outliers, without_outlier_scores

Solver = TypeVar("Solver", bound=Callable[..., Any])


def leaving_out(make_source: Callable[..., Any]) -> Callable[[Solver], Solver]:
    """Make a solver leave out the points that its ``trim`` asks for.

    ``make_source(call)`` returns the :class:`Source` of the hat matrix that tells which. The solver
    gets the other points alone, and what the call says of them.
    """

    def decorate(solve: Solver) -> Solver:
        @wraps(solve)
        def solve_rest(call, control):
            if not call.trim or comes_in_blocks(call.X):
                return solve(call, control)
            call = replace(call, random_state=fixed_seed(call.random_state))
            source = make_source(call)
            movable, init = _check_told(call, source)
            count = _count(call, movable)
            width = default_width(call.k if isinstance(call.k, int) else None)
            kernel = resolve_kernel(source.kernel, source.points, width)
            scores = score_outliers(source.points, kernel, source.lam)
            ranked = np.argsort(np.where(movable, -scores, np.inf), kind="stable")
            is_out = np.zeros(scores.size, dtype=bool)
            is_out[ranked[:count]] = True
            rest = np.flatnonzero(~is_out)
            with without_outlier_scores():
                made = solve(of_rest(call, source, rest, init), control)

            def whole(one):
                params = one.params | {"trim": call.trim}
                return replace(of_all(one, source.points, is_out, scores), params=params)

            return change_results(made, whole)

        return cast(Solver, solve_rest)

    return decorate


def change_results(made, change):
    """Return a result, or each of a list of them, as ``change`` makes it."""
    return [change(one) for one in made] if isinstance(made, list) else change(made)


def _check_told(call, source):
    """Return which points have no known label and no link, (n,) bool, and the checked ``init``."""
    n = source.points.shape[0]
    movable, init = np.ones(n, dtype=bool), None
    k = n
    if not isinstance(call.k, str):
        k = validation.check_integer("k", call.k, least=1, most=n, why=", the number of points")
    known, _ = read_known_labels(getattr(call, "known_labels", None), n, k)
    if hasattr(call, "init"):
        init = check_init(call.init, n, k, source.kernel)
    if known is not None:
        movable = known < 0
    for name in ("must_link", "cannot_link"):
        movable[check_pairs(name, getattr(call, name, None), n)] = False
    return movable, init


def _count(call, movable):
    """Return how many points are left out."""
    n, k = movable.size, call.k if isinstance(call.k, int) else 1
    count = int(call.trim * n) if isinstance(call.trim, float) else call.trim
    most = min(n - k, np.count_nonzero(movable))
    if count > most:
        held = n - np.count_nonzero(movable)
        raise ValueError(
            f"trim={call.trim} leaves out {count} of {n} points, and at most {most} can be: "
            f"{k} cluster{'s' * (k > 1)} need a point each, and {held} have known labels or links"
        )
    return count


def of_rest(call, source, rest, init):
    """Return the call for some of the points alone."""
    points = source.points
    square = source.kernel.name == "precomputed"
    told = {"trim": 0, "X": points[np.ix_(rest, rest)] if square else points[rest]}
    if source.factor is not None:
        told["X"] = _factor_of_rest(source, told["X"], rest, call.random_state)
    elif np.ndim(getattr(call, "landmarks", None)) == 1:
        told["landmarks"] = _among(rest, np.asarray(call.landmarks))
        told["rank"] = told["landmarks"].size
    if isinstance(init, np.ndarray):
        told["init"] = init[rest]
    if getattr(call, "sample_weight", None) is not None:
        told["sample_weight"] = np.asarray(call.sample_weight)[rest]
    if getattr(call, "known_labels", None) is not None:
        told["known_labels"] = np.asarray(call.known_labels, dtype=object)[rest]
    if np.shape(getattr(call, "known_trust", 1.0)) == points.shape[:1]:
        told["known_trust"] = call.known_trust[rest]
    for name in ("must_link", "cannot_link"):
        if getattr(call, name, None) is not None:
            pairs = check_pairs(name, getattr(call, name), points.shape[0])
            told[name] = np.searchsorted(rest, pairs)
    return replace(call, **told)


def _factor_of_rest(source, points, rest, seed):
    """Return what a factor that was given would be without the points that are left out."""
    form, factor = Form(), source.factor
    if isinstance(factor, LowRankFactor):
        given = factor.basis
        if factor.indices is not None:
            given = _among(rest, factor.indices)
        form = Form(len(given), given, dtype=factor.Z.dtype)
    else:
        form = Form(dtype=factor.R.dtype)
    return make_factor(points, source.lam, source.kernel, form, seed)


def _among(rest, landmarks):
    """Return the places in ``rest`` of those of the landmarks that are there, in their order."""
    kept = landmarks[np.isin(landmarks, rest)]
    if kept.size == 0:
        raise ValueError(
            f"none of the {landmarks.size} landmarks is among the {rest.size} points that are "
            "clustered; give others, or leave out fewer points"
        )
    return np.searchsorted(rest, kept)


def of_all(result, points, is_out, scores):
    """Return the result of the other points as one of all: those left out have the label -1.

    ``scores`` (n,) are the outlier scores.
    """
    n, rest = is_out.size, np.flatnonzero(~is_out)
    model = result.model
    if model.kernel.name == "precomputed":
        at = rest if model.indices is None else rest[model.indices]
        model = replace(model, basis=points[at], indices=at, n_features=n)
    labels, loo_scores = np.full(n, -1), result.loo_scores
    labels[rest] = result.labels
    if loo_scores is not None:
        loo_scores = np.empty((n, result.sizes.size))
        loo_scores[rest] = result.loo_scores
        if is_out.any():  # a share of few points may be none
            # The model knows nothing of these points, so what it predicts of them leaves them out.
            loo_scores[is_out] = model.decision_function(points[is_out])
    return replace(
        result,
        labels=labels,
        loo_scores=loo_scores,
        outlier_scores=scores,
        model=model,
    )
