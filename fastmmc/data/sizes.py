"""Cluster sizes: targets, bounds, feasible random labels."""

from dataclasses import dataclass

import numpy as np
from scipy.special import entr

from fastmmc.core import validation
from fastmmc.core.words import named
from fastmmc.data import _loops_sizes as loops

# By default, the sizes of two clusters may differ by this share of n.
BINARY_BALANCE = 0.03

# Shares may miss their sum by this much.
SHARE_TOLERANCE = 1e-6

# The most scores, n k, that are held at a time: 80 MB, made in a quarter of a second.
MOST_SCORES = 10_000_000


@dataclass(frozen=True)
class SizeRule:
    """The sizes that clusters are meant to have and may have."""

    targets: np.ndarray | None  # (k,) int64 that sum to n; None: n / k each
    lower: np.ndarray  # (k,) int64, kept by every result
    upper: np.ndarray
    bounded: bool  # the user set bounds, so searches keep to them all along

    @property
    def bounds(self):
        """The least and the greatest size of each cluster, (k, 2) int64."""
        return np.column_stack((self.lower, self.upper))

    def bounds_at(self, sizes):
        """Return the bounds for a search from these sizes, which keep unless bounds were set."""
        return (self.lower, self.upper) if self.bounded else (sizes, sizes)


def size_rule(
    n,
    k,
    *,
    balance=None,
    target_sizes=None,
    min_size=1,
    max_size=None,
    known=None,
    masses=None,
    unit=1.0,
    default=None,
    bounded=True,
):
    """Turn the user's size parameters into bounds, or say why they cannot be met.

    Every size stays within balance * n / k of its target, or of the next integers to it; balance 0
    means sizes that differ by at most one. ``default`` replaces a balance of None, and targets that
    are equal then make room for the labels ``known`` of points that count for ``masses``, with the
    sum n; None: 1 each. ``unit`` is the mass of the weight 1, in which errors state sizes.
    ``bounded`` says whether a search keeps to the bounds all along.
    """
    targets = None
    centre = np.full(k, n / k)
    if target_sizes is not None:
        targets = check_targets(n, k, target_sizes)
        centre = targets.astype(np.float64)
    lower = np.full(k, min_size, dtype=np.int64)
    upper = np.full(k, n if max_size is None else min(n, max_size), dtype=np.int64)
    share = default if balance is None else balance
    if share is not None:
        if balance is None and target_sizes is None:
            centre = with_known(centre, known, n, masses)
        # A size that sits on the bound up to rounding is inside it, and so is the next integer.
        slack = share * n / k
        least = np.minimum(np.ceil(centre - slack - 1e-9), np.floor(centre + 1e-9))
        most = np.maximum(np.floor(centre + slack + 1e-9), np.ceil(centre - 1e-9))
        lower = np.maximum(lower, least.astype(np.int64))
        upper = np.minimum(upper, most.astype(np.int64))
    _check_feasible(n, k, lower, upper, known, masses, unit)
    is_set = balance is not None or max_size is not None
    return SizeRule(targets, lower, upper, is_set or (default is not None and bounded))


def held_sizes(known, k, masses=None):
    """Return how many points of each cluster are known, (k,) int64, or what they count for."""
    if known is None:
        return np.zeros(k, dtype=np.int64)
    told = known >= 0
    counts = None if masses is None else masses[told]
    return np.bincount(known[told], counts, k).astype(np.int64)


def with_known(sizes, known, n, masses=None):
    """Return sizes close to those given that include the known labels and sum to n."""
    if known is None:
        return sizes
    held = held_sizes(known, len(sizes), masses)
    return held + proportional_sizes(np.maximum(sizes - held, 0), n - held.sum())


def check_targets(n, k, target_sizes):
    """Return the sizes asked for, given as counts or shares, as (k,) int64 that sum to n."""
    targets = validation.to_array("target_sizes", target_sizes)
    if targets.shape != (k,) or targets.dtype.kind not in "iuf":
        raise ValueError(
            f"target_sizes must be {k} integers that sum to the number of points, {n}, or {k} "
            f"shares that sum to 1, one for each cluster; got {target_sizes!r}"
        )
    if targets.dtype.kind == "f":
        if not (targets.min() >= 0 and abs(targets.sum() - 1) <= SHARE_TOLERANCE):
            raise ValueError(
                "target_sizes must be non-negative and sum to 1, as they are no integers but "
                f"shares; got {targets.tolist()}, which sum to {targets.sum():g}"
            )
        return proportional_sizes(targets, n)
    if targets.min() < 0 or targets.sum() != n:
        raise ValueError(
            f"target_sizes must be non-negative and sum to the number of points, {n}, or be shares "
            f"that sum to 1; got {targets.tolist()}, which sum to {int(targets.sum())}"
        )
    return targets.astype(np.int64)


def _check_feasible(n, k, lower, upper, known, masses, unit):
    rules = "balance, target_sizes, min_size and max_size"
    least, most = _in_weights(lower, unit), _in_weights(upper, unit)
    crossed = np.flatnonzero(lower > upper)
    if crossed.size or lower.sum() > n or upper.sum() < n:
        which = f", and none of cluster {crossed[0]}" if crossed.size else ""
        total = f"n={n} points" if unit == 1 else f"the weight of all points, {n / unit:.6g}"
        raise ValueError(
            f"no sizes of {k} clusters satisfy {rules} together with {total}: at least {least} and "
            f"at most {most} would be allowed{which}; raise balance or max_size, or lower min_size"
        )
    if known is None:
        return
    held = held_sizes(known, k, masses)
    of_each, what = _in_weights(held, unit), "points" if unit == 1 else "of the weight"
    full = np.flatnonzero(held > upper)
    if full.size:
        h = full[0]
        raise ValueError(
            f"the known labels fix {of_each} {what}, {of_each[h]} of them in cluster {h} "
            f"({named('row', np.flatnonzero(known == h).tolist())}), which may have at most "
            f"{most[h]}; raise balance or max_size, or change target_sizes"
        )
    if np.maximum(lower, held).sum() > n:
        rest = _in_weights([n - held.sum()], unit)[0]
        raise ValueError(
            f"the known labels fix {of_each} {what}, which leaves {rest} {what} for sizes of "
            f"at least {least}; raise balance or lower min_size"
        )


def _in_weights(masses, unit):
    """Return sizes as errors state them, a list; the mass 1 is that of any point."""
    if unit == 1:
        return [int(mass) for mass in masses]
    return [float(f"{mass / unit:.6g}") if mass > 1 else 0 for mass in masses]


def check_least_and_most(
    n, k, min_size, max_size, *, least=0, mean="the number of points in an average cluster"
):
    """Check the least and the greatest size against the mean size of a cluster."""
    validation.check_integer("min_size", min_size, least=least, most=n // k, why=f", {mean}")
    if max_size is not None and max_size < -(-n // k):
        raise ValueError(
            f"max_size must be at least {-(-n // k)}, so that {k} clusters hold all {n} points; "
            f"got {max_size}"
        )


def binary_balance(balance, target_sizes):
    """Return the balance of two clusters: by default 0 for given sizes, which are met exactly."""
    if balance is not None:
        return balance
    return BINARY_BALANCE if target_sizes is None else 0.0


def binary_bounds(n, balance, target_sizes, min_size, max_size=None):
    """Return the least and the greatest size of cluster 1 of two.

    Both sizes stay within balance * n / 2 of their targets, 0 <= balance < 1, or differ by one
    where n is odd and no targets are given; :func:`binary_balance` replaces a balance of None.
    """
    balance = binary_balance(balance, target_sizes)
    check_least_and_most(n, 2, min_size, max_size, least=1, mean="half of the points")
    rule = size_rule(
        n, 2, balance=balance, target_sizes=target_sizes, min_size=min_size, max_size=max_size
    )
    lower = max(rule.lower[1], n - rule.upper[0])
    upper = min(rule.upper[1], n - rule.lower[0])
    return int(lower), int(upper)


def split_by_rank(scores, lower, upper):
    """Split by the sign of scores, 0 being positive, or at the nearest rank that the sizes allow.

    Returns labels -1 and 1, (n,) int8, from ``lower`` to ``upper`` of them 1; of equal scores the
    first points are positive.
    """
    n_positive = int(np.clip(np.sum(scores >= 0), lower, upper))
    y = np.full(scores.size, -1, dtype=np.int8)
    y[np.argsort(-scores, kind="stable")[:n_positive]] = 1
    return y


def binary_size_bounds(n, lower, upper):
    """Return the bounds of both clusters, (2, 2) int64, from those of cluster 1."""
    return np.array([(n - upper, n - lower), (lower, upper)], dtype=np.int64)


def shaking_quota(n, k, n_rounds, start_round=0, targets=None):
    """Return the sizes that each claiming cluster grows to, (n_rounds - start_round, k) int64.

    floor(m_d + m_d / 2^i), at most n, with m_d the target size or exactly n / k (Pahikkala et al.
    2012, equation 11).
    """
    # m_d as fractions of Python integers: 2^i outgrows every fixed width.
    sizes = [(n, k)] if targets is None else [(int(m), 1) for m in targets]
    rows = [
        [min(n, size * (1 + 2**i) // (2**i * parts)) for size, parts in sizes]
        for i in range(start_round, n_rounds)
    ]
    quota = np.array(rows, dtype=np.int64).reshape(n_rounds - start_round, len(sizes))
    return quota if targets is not None else np.repeat(quota, k, axis=1)


def balanced_random_labels(n, k, rng, rule=None, known=None):
    """Draw (n,) labels of the target sizes, or as equal as possible, and keep the known ones."""
    targets = None if rule is None else rule.targets
    sizes = proportional_sizes(np.ones(k), n) if targets is None else targets
    labels = np.full(n, -1) if known is None else np.array(known, dtype=np.int64)
    free = labels < 0
    places = np.repeat(np.arange(k), np.maximum(sizes - held_sizes(labels, k), 0))
    rng.shuffle(places)
    labels[free] = places[: free.sum()]
    return labels


def random_labels_of_masses(masses, k, rng, rule, known=None):
    """Draw (n,) labels of points of any mass, of sizes near the targets; keep the known ones."""
    total = int(masses.sum())
    labels = np.full(masses.size, -1) if known is None else np.array(known, dtype=np.int64)
    sizes = proportional_sizes(np.ones(k), total) if rule.targets is None else rule.targets
    held = np.bincount(labels[labels >= 0], masses[labels >= 0], k)
    ends = np.cumsum(np.maximum(sizes - held, 0.0))
    order = rng.permutation(np.flatnonzero(labels < 0))
    middles = np.cumsum(masses[order]) - masses[order] / 2
    middles *= ends[-1] / max(1, masses[order].sum())
    labels[order] = np.minimum(np.searchsorted(ends, middles), k - 1)
    return labels


def proportional_sizes(sizes, n):
    """Return sizes in the same proportions with sum n, the first largest remainders rounded up."""
    exact = np.asarray(sizes) * (n / (np.sum(sizes) or 1))
    new = np.floor(exact).astype(np.int64)
    new[np.argsort(new - exact, kind="stable")[: n - new.sum()]] += 1
    return new


def sizes_within(sizes, lower, upper):
    """Return sizes with the same sum within bounds that allow it, near those given."""
    new = np.clip(sizes, lower, upper)
    missing = int(np.sum(sizes) - new.sum())
    room = upper - new if missing > 0 else new - lower
    return new + int(np.sign(missing)) * proportional_sizes(room, abs(missing))


def reorder_to_targets(labels, targets, masses=None):
    """Rename clusters so that the larger ones, of points with ``masses``, take larger targets."""
    sizes = np.bincount(labels, masses, len(targets))
    names = np.empty(len(targets), dtype=np.int64)
    names[np.argsort(-sizes, kind="stable")] = np.argsort(-np.asarray(targets), kind="stable")
    return names[labels]


def fit_sizes(labels, scores, lower, upper, movable=None, masses=None):
    """Bring the sizes within bounds by moving the points that lose least score by it.

    ``scores`` are an array, (k, n), or a function that makes those of some clusters and points.
    Clusters that are too large give to those with room, then clusters that are too small take from
    those above their lower bound. In a round every point offers itself to the cluster that it fits
    best, and those that lose least for their mass come first. Points that are not ``movable`` keep
    their labels. Whether points that have ``masses``, (n,), can be packed within bounds is hard to
    tell, so they may miss these.
    """
    k = len(lower)
    labels = np.array(labels, dtype=np.int64)
    counts = np.bincount(labels, masses, k).astype(np.int64)
    if are_within(counts, lower, upper):
        return labels
    if callable(scores) and labels.size * k <= MOST_SCORES:
        scores = scores(np.arange(k), np.arange(labels.size))
    if not callable(scores):
        scores = np.asarray(np.transpose(scores), dtype=np.float64, order="C")
    movable = np.ones(labels.size, dtype=np.bool_) if movable is None else movable
    units = np.ones(labels.size, dtype=np.int64) if masses is None else masses
    own = _own_scores(labels, scores, k)
    rest = labels, counts, np.array(lower, dtype=np.int64), np.array(upper, dtype=np.int64), units
    for bounds, is_met in ((upper, np.less_equal), (lower, np.greater_equal)):
        wish, offers = np.full(labels.size, -1), np.empty(labels.size)
        while not is_met(counts, bounds).all():
            points = np.flatnonzero(movable & (counts > bounds)[labels])
            loops.take_back(points, wish, *rest)
            asked = points[wish[points] < 0]
            _offer(scores, np.flatnonzero(counts < bounds), asked, wish, offers, rest)
            points = points[wish[points] >= 0]
            if points.size == 0:
                break
            order = np.argsort((own[points] - offers[points]) / units[points], kind="stable")
            loops.move(points[order], wish, counts - bounds, *rest)
            moved = points[labels[points] == wish[points]]
            own[moved] = offers[moved]
    if masses is None and not are_within(counts, lower, upper):
        raise ValueError(
            f"sizes of {counts.tolist()} cannot be brought to at least {lower.tolist()} and at "
            f"most {upper.tolist()} by moving the points whose label is not known"
        )
    return labels


def are_within(sizes, lower, upper):
    """Tell whether sizes are within their bounds."""
    return bool((sizes >= lower).all() and (sizes <= upper).all())


def _own_scores(labels, scores, k):
    """Return the score of each point with its own cluster, (n,)."""
    if not callable(scores):
        return scores[np.arange(labels.size), labels]
    own = np.empty(labels.size)
    ends = np.cumsum(np.bincount(labels, minlength=k))
    for h, points in enumerate(np.split(np.argsort(labels, kind="stable"), ends[:-1])):
        own[points] = scores(np.array([h]), points)[0]
    return own


def _offer(scores, targets, points, wish, offers, rest):
    """Note the cluster of the largest score among ``targets`` for each point, and that score.

    Where a point would bring no size nearer to its bounds, nothing is noted. ``rest`` is what the
    loops take besides.
    """
    if not callable(scores):
        loops.offer(scores, points, targets, targets, points, wish, offers, *rest)
        return
    step = max(1, MOST_SCORES // max(1, targets.size))
    for at in range(0, points.size, step):
        rows = points[at : at + step]
        found = np.asarray(scores(targets, rows).T, dtype=np.float64, order="C")
        places = np.arange(rows.size), np.arange(targets.size)
        loops.offer(found, *places, targets, rows, wish, offers, *rest)


def evenness(labels, k, masses=None):
    """Return the entropy of the sizes of k clusters over log k: 1 for equal ones, never 0."""
    if k == 1:
        return 1.0
    sizes = np.bincount(labels, masses, k)
    return float(max(np.finfo(np.float64).eps, entr(sizes / sizes.sum()).sum() / np.log(k)))
