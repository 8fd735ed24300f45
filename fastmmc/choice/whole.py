"""From the cells to all points: the labels that won, and the result."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import gen_batches

from fastmmc.core.execution import Outcome
from fastmmc.core.status import Status
from fastmmc.kernels.factors import make_factor
from fastmmc.kernels.gram import BLOCK, EXP_PRODUCTS, evenly
from fastmmc.kernels.kmeans import k_means
from fastmmc.kernels.nystroem import Form
from fastmmc.rls.engine.linked import objective_of
from fastmmc.rls.source import fit_model, quick_rank, quick_seconds, rated_result

# Seconds of a multiplication of kernel values or distances on a slow core, and the shares of
# max_time in which the points must be put into cells, and the first labellings be made. These take
# 6.7 s with 3,000 cells, in proportion to their third power. With these shares calls of up to 1,000
# clusters end after 1.2 to 1.9 s if max_time is 1.
PRODUCT_SECONDS = 1e-10
CELLS_SHARE = 0.2
FIRST_SECONDS = 2.5e-10
FIRST_SHARE = 0.4
LEAST_CELLS = 100

# The most multiplications of n points and r landmarks, n r^2. Points whose labels are predicted at
# a time, and multiplications for that, which take .12 s.
PRODUCTS = 40_000_000_000
ROWS = 65_536
PRODUCTS_AT_A_TIME = 2_000_000_000


def affordable_cells(X, k, max_time):
    """Return how many cells max_time is enough for."""
    n, d = X.shape
    if max_time is None:
        return n
    width = X.nnz / n if issparse(X) else d
    affordable = min(
        CELLS_SHARE * max_time / (PRODUCT_SECONDS * n * (width + EXP_PRODUCTS)),
        (FIRST_SHARE * max_time / FIRST_SECONDS) ** (1 / 3),
    )
    return int(min(n, max(affordable, k + LEAST_CELLS)))


def result_of(X, cells, winner, width, given, is_told, seed, run):
    """Return the result of the labels that won, of all points, and the landmarks of its figures.

    ``is_told`` (n,) tells which points' cells have all that is given of them. The landmarks are
    None if the hat matrix is dense.
    """
    k, of_cells, labels = given.free.lower.size, width.factor, winner.labels[cells.members]
    factor = of_cells
    model = None
    if not cells.is_plain:
        spare = quick_seconds(cells.n)
        with run.phase():
            run.look()
            if not cells.is_exact:
                if winner.rule == "k-means":
                    # The means of cells are not those that the points have the least distances to.
                    centers = _centers(cells, winner.labels, k)
                    others, _ = k_means(X, k, 0, given.weights, centers, run.look)
                else:
                    model, _ = fit_model(of_cells, winner.labels, k)
                    others = _predicted(X, model, run.look)
                labels = np.where(is_told, labels, others)
            rank = max(1, math.isqrt(PRODUCTS // cells.n))

            def look(share, ahead=0.0):
                run.look(share, ahead + spare)

            factor = _factor_of_all(X, cells, width, given.weights, rank, seed, look)
        if factor is of_cells:  # there was no time for that of all points, but for another one
            rank = quick_rank(cells.n)
            factor = _factor_of_all(X, cells, width, given.weights, rank, seed)
    # What is predicted may leave a cluster without points.
    if not given.is_plain or np.bincount(labels, minlength=k).min() == 0:
        labels = given.repair(factor, labels, given.rule_of(winner.rule))
    free = winner.rule != "near"
    state = given.merging.groups(factor, None).state(labels[given.merging.first], given.free, free)
    objective = objective_of(state, given.merging)
    # Labels that were found, as a search that has ended; cells and points are not counted alike.
    found = SimpleNamespace(
        labels=labels,
        objective=objective,
        n_iter=0,
        n_moves=0,
        history=np.array([objective]),
        trace={"moves": np.zeros(1, dtype=np.int64)},
    )
    outcome = Outcome(found, 0, found.history, 1, Status.CONVERGED)
    result = rated_result(factor, outcome, k, {"k": k, "sizes": "free" if free else "equal"})
    landmarks = result.model.indices
    # What gave the labels predicts best: landmarks are fewer than cells where points are many.
    return result if model is None else replace(result, model=model), landmarks


def _centers(cells, labels, k):
    """Return the mean of each cluster of cells, (k, d)."""
    E = (labels == np.arange(k)[:, None]) * cells.masses
    return np.asarray(E @ cells.points) / np.maximum(E.sum(axis=1, keepdims=True), 1)


def _predicted(X, model, look):
    """Return the labels of all points that the model of the cells predicts."""
    predicted = np.empty(X.shape[0], dtype=np.int64)
    size = min(ROWS, BLOCK * max(1, PRODUCTS_AT_A_TIME // (BLOCK * model.coef.size)))
    for rows in gen_batches(X.shape[0], size):
        look()
        predicted[rows] = model.decision_function(X[rows]).argmax(axis=1)
    return predicted


def _factor_of_all(X, cells, width, weights, rank, seed, look=None):
    """Return a hat matrix of all points whose landmarks are points of so many cells at most."""
    landmarks = cells.seeds[evenly(cells.masses.size, rank)]
    form = Form(landmarks.size, landmarks, weights=weights)
    return make_factor(X, width.lam, width.kernel, form, seed, look)
