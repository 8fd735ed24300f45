"""Compiled loops that bring the sizes of clusters within bounds."""

from fastmmc.core.jit import njit


@njit
def off_by(counts, lower, upper, h, mass):
    """Return how much farther a cluster's size is from its bounds if it gets so much mass."""
    now, then = counts[h], counts[h] + mass
    return max(0, then - upper[h], lower[h] - then) - max(0, now - upper[h], lower[h] - now)


@njit
def brings_nearer(counts, lower, upper, own, to, mass):
    """Tell whether a point that goes to another cluster brings one size nearer to its bounds.

    The other size must not be farther from its own bounds then: else most moves of points that have
    masses would only hand on what is too much or too little.
    """
    of_own, of_to = off_by(counts, lower, upper, own, -mass), off_by(counts, lower, upper, to, mass)
    return of_own <= 0 and of_to <= 0 and of_own + of_to < 0


@njit
def take_back(points, wish, labels, counts, lower, upper, units):
    """Forget the wishes of points whose move would not help the sizes any more."""
    for i in points:
        if wish[i] >= 0 and not brings_nearer(counts, lower, upper, labels[i], wish[i], units[i]):
            wish[i] = -1


@njit
def offer(
    scores, rows, columns, targets, points, wish, offers, labels, counts, lower, upper, units
):
    """Note the target of the largest score of those that each point brings nearer to its bounds.

    ``rows`` and ``columns`` are where the points and the targets stand in ``scores``, in which
    those of a point lie side by side: few of them are larger than all before.
    """
    for b in range(points.size):
        i, of_point = points[b], scores[rows[b]]
        mass, best, highest = units[i], wish[i], offers[i]
        of_own = off_by(counts, lower, upper, labels[i], -mass)
        if of_own > 0:
            continue
        for a in range(targets.size):
            h, found = targets[a], of_point[columns[a]]
            if best < 0 or found > highest:
                of_to = off_by(counts, lower, upper, h, mass)
                if of_to <= 0 and of_own + of_to < 0:
                    best, highest = h, found
        wish[i], offers[i] = best, highest


@njit
def move(points, wish, excess, labels, counts, lower, upper, units):
    """Move points in this order where sizes are nearer to their bounds by it.

    No more of a cluster are tried than make up its ``excess``, (k,), which is used up: those that
    are refused may lose less with another offer than the next ones.
    """
    for i in points:
        own, to = labels[i], wish[i]
        if excess[own] <= 0:
            continue
        excess[own] -= units[i]
        if brings_nearer(counts, lower, upper, own, to, units[i]):
            counts[own] -= units[i]
            counts[to] += units[i]
            labels[i] = to
