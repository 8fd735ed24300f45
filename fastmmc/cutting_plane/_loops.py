"""Compiled passes over the points: scores, labels, the most violated constraint, its sums.

A constraint of the working set chooses points. Its plane is made of sums over these, signed by the
labels of two clusters or added to the winner and subtracted from the rival among more; labels are
frozen between passes. A pass scores every point with the current weights, updates the sums of all
planes where a label changes, and collects the constraint that the weights violate most in the row
after the last plane.

Sums have a last column for the count, as if every point had one more feature of value 1.
``points`` is (X,) with X (n, d), or (indptr, indices, data) of a CSR matrix, and a row is (x,) or
(columns, x): Numba drops the branch for the other form when it compiles.
"""

from typing import NamedTuple

import numpy as np

from fastmmc.core.jit import njit, njit_sum

# Slots of Pass.pos.
ROW = 0  # the next point
CHANGED = 1  # labels that changed
INSIDE = 2  # points inside the margin
N_POS = 3

# Slots of Pass.value.
HINGE = 0  # sum of the slacks that the scores give
HELD = 1  # sum of the slacks at the labels as they are; differs only while these are held
N_VALUES = 2


class Planes(NamedTuple):
    """Room for planes (arrays are modified in place)."""

    sums: np.ndarray  # (capacity, m, d + 1) float64, m = 1 for two clusters, else k
    counts: np.ndarray  # (capacity,) int64, chosen points whose rival is not their winner
    codes: np.ndarray  # (capacity, n) int, 1 if chosen, else 0; for winners the rival, else -1
    idle: np.ndarray  # (capacity,) int64, programs since the plane last had a multiplier


class Pass(NamedTuple):
    """State of a pass (arrays are modified in place)."""

    labels: np.ndarray  # (n,) int
    value: np.ndarray  # (N_VALUES,) float64
    pos: np.ndarray  # (N_POS,) int64


@njit
def row_of(points, i):
    """Return the row of a point."""
    if len(points) == 1:
        return (points[0][i],)
    indptr, indices, data = points
    return indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]]


@njit_sum
def dot_dense(x, w):
    """Return x . w, with w at least as long as x."""
    total = 0.0
    for j in range(x.size):
        total += x[j] * w[j]
    return total


@njit_sum
def dot_sparse(columns, x, w):
    """Return x . w of a row's nonzero entries."""
    total = 0.0
    for j in range(x.size):
        total += x[j] * w[columns[j]]
    return total


@njit
def dot(row, w):
    """Return x . w."""
    if len(row) == 1:
        return dot_dense(row[0], w)
    return dot_sparse(row[0], row[1], w)


@njit
def add(out, row, factor):
    """Add a multiple of a point to a sum and to its count, in place."""
    if len(row) == 1:
        x = row[0]
        for j in range(x.size):
            out[j] += factor * x[j]
    else:
        columns, x = row
        for j in range(x.size):
            out[columns[j]] += factor * x[j]
    out[out.size - 1] += factor


@njit
def note_sign(score, i, codes, state, n_planes, hold):
    """Do as :func:`note_winner` for a point of two clusters."""
    labels, value, pos = state.labels, state.value, state.pos
    before = labels[i]
    now = before if hold else int(score >= 0.0)
    if now != before:
        labels[i] = now
        pos[CHANGED] += 1
    value[HINGE] += max(0.0, 1.0 - abs(score))
    slack = 1.0 - (2.0 * now - 1.0) * score
    inside = slack > 0.0
    codes[n_planes, i] = int(inside)
    if inside:
        value[HELD] += slack
        pos[INSIDE] += 1
    return before, now, 1 - now if inside else -1


@njit
def best_two(scores):
    """Return the places of the two highest scores, the first of equal ones; -1 if none is next."""
    best, second = 0, -1
    for p in range(1, scores.size):
        if scores[p] > scores[best]:
            best, second = p, best
        elif second < 0 or scores[p] > scores[second]:
            second = p
    return best, second


@njit
def note_winner(scores, i, planes, state, n_planes, hold):
    """Set the winner and the code of a point, and update the counts of the planes.

    Returns the label before, the label now, and its strongest rival if the point is inside the
    margin, else -1.
    """
    labels, value, pos = state.labels, state.value, state.pos
    counts, codes = planes.counts, planes.codes
    best, second = best_two(scores)
    before = labels[i]
    now, rival = best, second
    if hold and before != best:
        now, rival = before, best
    if now != before:
        labels[i] = now
        pos[CHANGED] += 1
        for k in range(n_planes):
            # A winner that is its own rival asks for nothing.
            counts[k] += int(codes[k, i] == before) - int(codes[k, i] == now)
    if rival >= 0:
        value[HINGE] += max(0.0, 1.0 - (scores[best] - scores[second]))
        slack = 1.0 - (scores[now] - scores[rival])
        if slack > 0.0:
            value[HELD] += slack
            pos[INSIDE] += 1
        else:
            rival = -1
    codes[n_planes, i] = rival
    return before, now, rival


@njit
def look(points, W, b, planes, state, n_planes, several, hold, budget):
    """Pass over the points: the highest score W[p] . x + b[p] wins, or the sign of the only one.

    ``several`` says which, True or None, so that Numba drops the branches for the other kind.
    ``hold`` keeps the labels, whatever the scores are. Returns whether the pass has ended within
    the budget of elementary operations.
    """
    sums, codes, pos = planes.sums, planes.codes, state.pos
    n, k, w, bias = state.labels.size, b.size, W[0], b[0]
    scores = np.empty(k)
    least, n_sums = (1, 1) if several is None else (0, 2)
    while pos[ROW] < n and budget > 0:
        i = pos[ROW]
        row = row_of(points, i)
        size = row[-1].size
        pos[ROW] += 1
        budget -= (k + n_sums) * size + 1
        if several is None:
            before, now, rival = note_sign(dot(row, w) + bias, i, codes, state, n_planes, hold)
        else:
            for p in range(k):
                scores[p] = dot(row, W[p]) + b[p]
            before, now, rival = note_winner(scores, i, planes, state, n_planes, hold)
        if before != now:
            for plane in range(n_planes):
                if codes[plane, i] >= least:
                    if several is None:
                        add(sums[plane, 0], row, 4.0 * now - 2.0)
                    else:
                        add(sums[plane, before], row, -1.0)
                        add(sums[plane, now], row, 1.0)
                    budget -= n_sums * size
        if rival >= 0:
            if several is None:
                add(sums[n_planes, 0], row, 2.0 * now - 1.0)
            else:
                add(sums[n_planes, now], row, 1.0)
                add(sums[n_planes, rival], row, -1.0)
    return pos[ROW] == n
