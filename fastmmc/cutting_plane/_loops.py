"""Compiled passes over the points: scores, labels, the most violated constraint, its sums.

A constraint of the working set chooses points: ``codes[k, i]`` is above or below zero. Its plane
is made of sums over the chosen points, whose signs (two clusters) or winning clusters (more) are
frozen. A pass scores every point by the current weights, carries changes of label over to the sums
of all planes, and gathers, in the row after the last plane, the constraint that the weights
violate most.

Sums have a last column that counts, as if every point had one more feature of value 1.
"""

from fastmmc._jit import njit, njit_sum

# Slots of pos.
ROW = 0  # the next point
CHANGED = 1  # labels that changed
INSIDE = 2  # points inside the margin
N_POS = 3

# Slots of value.
HINGE = 0  # sum of the slacks that the scores give
HELD = 1  # sum of the slacks at the labels as they are; the same unless these are held
N_VALUES = 2


@njit_sum
def dot(x, w):
    """Return x . w, with w at least as long as x."""
    total = 0.0
    for j in range(x.size):
        total += x[j] * w[j]
    return total


@njit_sum
def dot_sparse(columns, x, w):
    """Return x . w of a row's entries that are not zero."""
    total = 0.0
    for j in range(x.size):
        total += x[j] * w[columns[j]]
    return total


@njit
def add(out, x, factor):
    """Add a multiple of a point to a sum, and to its count, in place."""
    for j in range(x.size):
        out[j] += factor * x[j]
    out[out.size - 1] += factor


@njit
def add_sparse(out, columns, x, factor):
    """Add a multiple of a row's entries that are not zero, in place."""
    for j in range(x.size):
        out[columns[j]] += factor * x[j]
    out[out.size - 1] += factor


@njit
def note_sign(score, i, labels, codes, n_planes, hold, value, pos):
    """Note the label and the code of a point of two clusters.

    Returns whether the label changed, and whether the point is inside the margin of its label.
    """
    label = labels[i] if hold else int(score >= 0.0)
    changed = label != labels[i]
    if changed:
        labels[i] = label
        pos[CHANGED] += 1
    value[HINGE] += max(0.0, 1.0 - abs(score))
    slack = 1.0 - (2.0 * label - 1.0) * score
    inside = slack > 0.0
    codes[n_planes, i] = int(inside)
    if inside:
        value[HELD] += slack
        pos[INSIDE] += 1
    return changed, inside


@njit
def look_at_signs(X, w, b, labels, sums, codes, n_planes, hold, value, pos, budget):
    """Pass over points of two clusters, whose label is the sign of w . x + b.

    Parameters
    ----------
    X : (n, d) array
        Points.
    w : (d,) float64 array
        Weights.
    b : float
        Bias.
    labels : (n,) int array
        0 and 1; modified in place, as everything that follows.
    sums : (capacity, 1, d + 1) float64 array
        Of every plane the sum of s_i x_i over its points, s_i = -1 or 1 by the label.
    codes : (capacity, n) int array
        1 where the point belongs to the plane, else 0.
    n_planes : int
        Planes; the next row takes the constraint that is violated most.
    hold : bool
        Whether labels stay as they are, whatever the scores say.
    value, pos
        Where the pass stands.
    budget : int
        Elementary operations after which it is left.

    Returns
    -------
    bool
        Whether the pass has ended.
    """
    n, d = X.shape
    while pos[ROW] < n and budget > 0:
        i = pos[ROW]
        x = X[i]
        pos[ROW] += 1
        budget -= 2 * d
        changed, inside = note_sign(dot(x, w) + b, i, labels, codes, n_planes, hold, value, pos)
        sign = 2.0 * labels[i] - 1.0
        if changed:
            for k in range(n_planes):
                if codes[k, i] > 0:
                    add(sums[k, 0], x, 2.0 * sign)
                    budget -= d
        if inside:
            add(sums[n_planes, 0], x, sign)
    return pos[ROW] == n


@njit
def look_at_signs_sparse(
    indptr, indices, data, w, b, labels, sums, codes, n_planes, hold, value, pos, budget
):
    """Pass over sparse points of two clusters, as :func:`look_at_signs`."""
    n = indptr.size - 1
    while pos[ROW] < n and budget > 0:
        i = pos[ROW]
        columns, x = indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]]
        pos[ROW] += 1
        budget -= 2 * x.size + 1
        score = dot_sparse(columns, x, w) + b
        changed, inside = note_sign(score, i, labels, codes, n_planes, hold, value, pos)
        sign = 2.0 * labels[i] - 1.0
        if changed:
            for k in range(n_planes):
                if codes[k, i] > 0:
                    add_sparse(sums[k, 0], columns, x, 2.0 * sign)
                    budget -= x.size
        if inside:
            add_sparse(sums[n_planes, 0], columns, x, sign)
    return pos[ROW] == n


@njit
def best_two(scores):
    """Return the places of the highest score and of the next one, the lowest of equal ones.

    With one score the next one is -1.
    """
    best, second = 0, -1
    for p in range(1, scores.size):
        if scores[p] > scores[best]:
            best, second = p, best
        elif second < 0 or scores[p] > scores[second]:
            second = p
    return best, second


@njit
def note_winner(scores, i, labels, counts, codes, n_planes, hold, value, pos):
    """Note the winner and the code of a point, and carry its change over to the counts.

    Returns the label before, the label now, and the strongest rival of that if the point is inside
    the margin, else -1.
    """
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
def look_at_winners(
    X, W, b, scores, labels, sums, counts, codes, n_planes, hold, value, pos, budget
):
    """Pass over points of k clusters, of which the highest score w_p . x + b_p wins.

    Parameters
    ----------
    X : (n, d) array
        Points.
    W : (k, d) float64 array
        Weights.
    b : (k,) float64 array
        Biases.
    scores : (k,) float64 array
        Work space.
    labels : (n,) int array
        Winners; modified in place, as everything that follows.
    sums : (capacity, k, d + 1) float64 array
        Of every plane the sum of its points: added to their winner, subtracted from their rival.
    counts : (capacity,) int64 array
        Points of every plane whose rival is not their winner.
    codes : (capacity, n) int array
        The rival, or -1 where the point does not belong to the plane.
    n_planes : int
        Planes; the next row takes the constraint that is violated most.
    hold : bool
        Whether labels stay as they are, whatever the scores say.
    value, pos
        Where the pass stands.
    budget : int
        Elementary operations after which it is left.

    Returns
    -------
    bool
        Whether the pass has ended.
    """
    n, d = X.shape
    k = b.size
    while pos[ROW] < n and budget > 0:
        i = pos[ROW]
        x = X[i]
        pos[ROW] += 1
        budget -= (k + 2) * d
        for p in range(k):
            scores[p] = dot(x, W[p]) + b[p]
        before, now, rival = note_winner(
            scores, i, labels, counts, codes, n_planes, hold, value, pos
        )
        if before != now:
            for plane in range(n_planes):
                if codes[plane, i] >= 0:
                    add(sums[plane, before], x, -1.0)
                    add(sums[plane, now], x, 1.0)
                    budget -= 2 * d
        if rival >= 0:
            add(sums[n_planes, now], x, 1.0)
            add(sums[n_planes, rival], x, -1.0)
    return pos[ROW] == n


@njit
def look_at_winners_sparse(
    indptr,
    indices,
    data,
    W,
    b,
    scores,
    labels,
    sums,
    counts,
    codes,
    n_planes,
    hold,
    value,
    pos,
    budget,
):
    """Pass over sparse points of k clusters, as :func:`look_at_winners`."""
    n = indptr.size - 1
    k = b.size
    while pos[ROW] < n and budget > 0:
        i = pos[ROW]
        columns, x = indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]]
        pos[ROW] += 1
        budget -= (k + 2) * x.size + 1
        for p in range(k):
            scores[p] = dot_sparse(columns, x, W[p]) + b[p]
        before, now, rival = note_winner(
            scores, i, labels, counts, codes, n_planes, hold, value, pos
        )
        if before != now:
            for plane in range(n_planes):
                if codes[plane, i] >= 0:
                    add_sparse(sums[plane, before], columns, x, -1.0)
                    add_sparse(sums[plane, now], columns, x, 1.0)
                    budget -= 2 * x.size
        if rival >= 0:
            add_sparse(sums[n_planes, now], columns, x, 1.0)
            add_sparse(sums[n_planes, rival], columns, x, -1.0)
    return pos[ROW] == n


@njit
def sign_coefficients(codes, labels, shares, out):
    """Set the coefficients of the points that make up the weights of two clusters.

    Parameters
    ----------
    codes : (m, n) int array
        Points of the planes.
    labels : (n,) int array
        0 and 1, as they were frozen.
    shares : (m,) float64 array
        Multiplier of each plane over n.
    out : (n,) float64 array
        Modified in place: sum_k shares_k sum of plane k = sum_i out_i x_i.
    """
    for i in range(labels.size):
        total = 0.0
        for k in range(shares.size):
            total += shares[k] * codes[k, i]
        out[i] = (2.0 * labels[i] - 1.0) * total


@njit
def winner_coefficients(codes, labels, shares, rest, out):
    """Set the coefficients of the points that make up the weights of k clusters.

    Parameters
    ----------
    codes : (m, n) int array
        Rivals of the planes.
    labels : (n,) int array
        Winners, as they were frozen.
    shares : (m,) float64 array
        Multiplier of each plane over n.
    rest : (k,) float64 array
        Added to the coefficients of every point.
    out : (n, k) float64 array
        Modified in place: w_p = sum_i out_ip x_i.
    """
    for i in range(labels.size):
        for p in range(rest.size):
            out[i, p] = rest[p]
        for k in range(shares.size):
            rival = codes[k, i]
            if rival >= 0:
                out[i, labels[i]] += shares[k]
                out[i, rival] -= shares[k]
