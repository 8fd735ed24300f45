"""What a solver clusters of the points of its call, and how its result becomes one of all points.

Metric and units come first, then points of weight 0, which the model of the others labels in the
end, then the outlier scores that tell which points ``trim`` leaves out, and at last equal points,
which become one with a weight.
"""

from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fastmmc.core import validation
from fastmmc.core.execution import fixed_seed
from fastmmc.core.words import counted
from fastmmc.data.copies import Copies, of_points, unless_ones
from fastmmc.data.labels import check_init, read_known_labels
from fastmmc.data.links import check_pairs
from fastmmc.data.standardization import Units, in_units
from fastmmc.kernels.block_factor import comes_in_blocks
from fastmmc.kernels.factors import DenseFactor, LowRankFactor, make_factor
from fastmmc.kernels.gram import default_width, resolve_kernel
from fastmmc.kernels.nystroem import DENSE_LIMIT, Form
from fastmmc.rls.outliers import score_outliers, without_outlier_scores
from fastmmc.rls.planning import check_links, check_trust

LINKS = ("must_link", "cannot_link")


@dataclass(frozen=True, eq=False)
class Task:
    """The part of a call that is clustered: ``call`` is for its points alone.

    What is None, or false, for points in blocks: all ``points`` of the call, their weights, those
    that are left, which have no weight, and the outlier scores that tell which ones are trimmed.
    Those that are left are perhaps ``copies`` of the points that are clustered.
    """

    call: Any
    units: Units
    points: Any = None
    weights: np.ndarray | None = None  # (n,) float64; None: all are 1
    rest: np.ndarray | None = None  # (m,) int64
    is_weightless: np.ndarray | None = None  # (n,) bool
    scores: np.ndarray | None = None  # (n,) float64
    classes: np.ndarray | None = None  # what known labels call the clusters
    trim: float | int = 0
    copies: Copies | None = None

    @classmethod
    def of(cls, call, make_source):
        """Return the task of a call; ``make_source(call)`` gives the :class:`Source` of scores."""
        call, units = in_units(call)
        if comes_in_blocks(call.X):
            return cls(call, units)
        source = make_source(call)
        n = source.points.shape[0]
        weights = _check_weights(call, n)
        checked = {"sample_weight": weights, "random_state": fixed_seed(call.random_state)}
        k = _most_clusters(call, n)
        if hasattr(call, "init"):
            checked["init"] = check_init(call.init, n, k, source.kernel)
        checked["known_labels"], classes = read_known_labels(call.known_labels, n, k)
        call = replace(call, **checked)
        is_weightless = np.zeros(n, dtype=bool) if weights is None else weights == 0
        scores, trim, rest = None, call.trim, np.arange(n)
        if is_weightless.any():
            _refuse_told(call, is_weightless)
            rest = np.flatnonzero(~is_weightless)
            if isinstance(call.k, int) and rest.size < call.k:
                raise ValueError(
                    f"sample_weight is above 0 in {rest.size} rows, fewer than k = {call.k} "
                    "clusters"
                )
            call = _of_rows(call, source, rest)
        if trim:
            of_rest = source if rest.size == n else make_source(call)
            scores = np.zeros(n)
            kept, scores[rest], call = _trimmed(call, of_rest)
            if kept.size < rest.size:
                call = _of_rows(call, of_rest, kept)
            rest = rest[kept]
        call = replace(call, sample_weight=unless_ones(call.sample_weight))
        call, copies = _merged(call, source, rest)
        of_all = source.points, weights, rest, is_weightless, scores
        return cls(call, units, *of_all, classes, trim, copies)

    def running(self):
        """Return the context of the search: trimmed points have their scores already."""
        return nullcontext() if self.scores is None else without_outlier_scores()

    def result(self, made):
        """Return a result, or each of a list of them, as one of all points of the call."""
        if isinstance(made, list):
            return [self.result(one) for one in made]
        if self.copies is not None:
            made = self._of_copies(made)
        if self.points is not None and (self.trim or self.is_weightless.any()):
            made = self._of_all(made)
        if self.weights is not None:  # bounds are those of weights, and sizes count points
            made = replace(made, sample_weight=self.weights, size_bounds=None)
        if self.classes is not None:
            made = replace(made, classes=self.classes[: made.sizes.size])
        return self.units.tell(made)

    def _of_copies(self, result):
        """Return the result of distinct points as one of the points that are these."""
        members, first = self.copies.members, self.copies.first
        model, labels = result.model, result.labels[members]
        sizes = np.bincount(labels, minlength=result.sizes.size)
        changed = {"labels": labels, "sizes": sizes, "sample_weight": None}
        if model.indices is not None:
            changed["model"] = replace(model, indices=first[model.indices])
        elif result.params["rank"] is None and members.size <= DENSE_LIMIT:
            # Results of so few points remember them all.
            coef = model.coef[members] / np.bincount(members)[members, None]
            changed["model"] = replace(model, basis=model.basis[members], coef=coef)
        for name in ("loo_scores", "outlier_scores", "cells"):
            if getattr(result, name, None) is not None:
                changed[name] = getattr(result, name)[members]
        if hasattr(result, "chosen"):
            changed["chosen"] = chosen = result.chosen | {"init": labels}
            if "landmarks" in chosen:
                chosen["landmarks"] = first[chosen["landmarks"]]
            elif members.size > DENSE_LIMIT:  # of which umc_rls makes no dense hat matrix
                chosen["landmarks"] = first
                del chosen["rank"]
        return replace(result, **changed)

    def _of_all(self, result):
        """Return the result of the points that were clustered as one of all points."""
        rest, model = self.rest, result.model
        out = np.ones(self.is_weightless.size, dtype=bool)
        out[rest] = False
        if model.kernel.name == "precomputed":
            at = rest if model.indices is None else rest[model.indices]
            basis, n = self.points[at], out.size
            model = replace(model, basis=basis, indices=at, n_features=n)
        # The model knows nothing of the other points, so what it predicts of them leaves them out.
        predicted = model.decision_function(self.points[out]) if out.any() else None
        labels = np.full(out.size, -1)
        labels[rest] = result.labels
        if self.is_weightless.any():
            labels[self.is_weightless] = predicted[self.is_weightless[out]].argmax(axis=1)
        sizes = np.bincount(labels[labels >= 0], minlength=result.sizes.size)
        scores = self.scores
        if scores is None:
            # No point of weight 0 has a share in any prediction, its own either.
            scores = np.zeros(out.size)
            if result.outlier_scores is not None:
                scores[~self.is_weightless] = result.outlier_scores
        changed = {"model": model, "labels": labels, "sizes": sizes, "outlier_scores": scores}
        if result.loo_scores is not None:
            changed["loo_scores"] = np.empty((out.size, result.sizes.size))
            changed["loo_scores"][rest] = result.loo_scores
            if out.any():  # a share of few points may be none
                changed["loo_scores"][out] = predicted
        if self.trim:
            # An open width is that of all points for outlier scores, then that of those left.
            width = {"sigma": self.call.sigma} if hasattr(self.call, "sigma") else {}
            changed["params"] = result.params | {"trim": self.trim} | width
        return replace(result, **changed)


def _check_weights(call, n):
    """Return the weights of n points as float64, None if there are none or all are 1."""
    if call.sample_weight is not None and isinstance(call.X, DenseFactor | LowRankFactor):
        raise ValueError(
            "sample_weight: X is a factor, whose hat matrix has no weights in it; give the points"
        )
    return unless_ones(validation.check_sample_weight(call.sample_weight, n))


def _refuse_told(call, is_out):
    """Refuse known labels and links of points that have no weight, and so no say."""
    for name, rows in _rows_told(call, is_out.size).items():
        wrong = is_out & np.isin(np.arange(is_out.size), rows)
        if wrong.any():
            raise ValueError(
                f"{name} concerns {validation.name_rows(wrong)}, whose sample_weight is 0: such "
                "points are labelled by the model of the others; give them a small weight"
            )


def _trimmed(call, source):
    """Return the rows that are not left out, the outlier scores of all, and the call."""
    n, k = source.points.shape[0], call.k if isinstance(call.k, int) else None
    movable = np.ones(n, dtype=bool)
    for rows in _rows_told(call, n).values():
        movable[rows] = False
    count = int(call.trim * n + 1e-9) if isinstance(call.trim, float) else call.trim
    n_movable = np.count_nonzero(movable)
    most = min(n - (k or 1), n_movable)
    if count > most:
        raise ValueError(
            f"trim={call.trim} leaves out {count} of {n} points, and at most {most} can be: "
            f"a point stays for each of {counted(k or 1, 'cluster')}, and {n - n_movable} have "
            "known labels or links"
        )
    kernel = resolve_kernel(source.kernel, source.points, default_width(k))
    scores = score_outliers(source.points, kernel, source.lam, call.sample_weight)
    ranked = np.argsort(np.where(movable, -scores, np.inf), kind="stable")
    return np.sort(ranked[count:]), scores, replace(call, trim=0)


def _rows_told(call, n):
    """Return the rows that links and known labels are about, by parameter, after a check.

    Errors name rows by their places among all points, before any are left out.
    """
    known = call.known_labels
    links, _ = check_links(call, n, _most_clusters(call, n), known)
    told = {"must_link": links.must, "cannot_link": links.cannot}
    if known is not None:
        told["known_labels"] = np.flatnonzero(known >= 0)
    return told


def _most_clusters(call, n):
    """Return the number of clusters, checked, or n if it is to be chosen."""
    return n if isinstance(call.k, str) else validation.check_cluster_count(call.k, n)


def _of_rows(call, source, rows):
    """Return the call for some of its points alone."""
    points, told = source.points, of_points(call, rows)
    for name in LINKS:
        if (pairs := getattr(call, name)) is not None:
            told[name] = np.searchsorted(rows, check_pairs(name, pairs, points.shape[0]))
    is_square = source.kernel.name == "precomputed"
    told["X"] = points[np.ix_(rows, rows)] if is_square else points[rows]
    if source.factor is not None:
        told["X"] = _factor_of_rows(source, told["X"], rows, call.random_state)
    elif np.ndim(getattr(call, "landmarks", None)) == 1:
        told["landmarks"] = _among(rows, np.asarray(call.landmarks))
        told["rank"] = told["landmarks"].size
    elif isinstance(getattr(call, "rank", None), int | np.integer):
        told["rank"] = min(call.rank, rows.size)
    return replace(call, **told)


def _merged(call, source, rest):
    """Return the call of distinct points, and what the others have to do with them, or None.

    Equal points stay apart where links or sizes may ask for it, where there are more clusters than
    distinct points, and in the papers' own searches.
    """
    method = getattr(call, "method", "auto")
    is_plain = method in ("auto", "memetic") or getattr(call, "sizes", "") == "free"
    has_points = source.factor is None and source.kernel.name != "precomputed"
    has_links = any(getattr(call, name) is not None for name in LINKS)
    if not (is_plain and has_points) or has_links:
        return call, None
    n = rest.size
    points = source.points if n == source.points.shape[0] else call.X
    known = call.known_labels
    copies = Copies.of(points, call.sample_weight, _keys(call, known))
    if copies is None or not copies.has_room(call):
        return call, None
    named = np.full(copies.first.size, -1) if known is None else known[copies.first]
    n_groups = np.count_nonzero(named < 0) + np.unique(named[named >= 0]).size
    if isinstance(call.k, int) and n_groups < call.k:
        return call, None
    return copies.merge(call, points), copies


def _keys(call, known):
    """Return what is known of the points, as integers (n,) that were checked."""
    keys = [known]
    if hasattr(call, "known_trust"):
        keys.append(check_trust(call, known, None))
    if np.ndim(getattr(call, "init", None)) > 0:
        keys.append(call.init)
    return [np.unique(one, return_inverse=True)[1] for one in keys if one is not None]


def _factor_of_rows(source, points, rows, seed):
    """Return what a factor that was given would be without the points that are left out."""
    factor = source.factor
    if isinstance(factor, LowRankFactor):
        given = factor.basis if factor.indices is None else _among(rows, factor.indices)
        form = Form(len(given), given, dtype=factor.Z.dtype)
    else:
        form = Form(dtype=factor.R.dtype)
    return make_factor(points, source.lam, source.kernel, form, seed)


def _among(rows, landmarks):
    """Return the places in ``rows`` of those of the landmarks that are there, in their order."""
    kept = landmarks[np.isin(landmarks, rows)]
    if kept.size == 0:
        raise ValueError(
            f"none of the {landmarks.size} landmarks is among the {rows.size} points that are "
            "clustered; give others, or leave out fewer points"
        )
    return np.searchsorted(rows, kept)
