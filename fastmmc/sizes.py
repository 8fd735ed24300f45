"""Cluster sizes: targets, bounds, feasible random labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fastmmc import validation


@dataclass(frozen=True)
class SizeRule:
    """How large the clusters are meant to be and may be.

    Attributes
    ----------
    targets : (k,) int64 array or None
        Sizes asked for, summing to n. None: n / k each.
    lower, upper : (k,) int64 arrays
        Sizes that every result keeps to.
    bounded : bool
        Whether the user set a balance, so that searches must keep to the bounds all along.
    """

    targets: np.ndarray | None
    lower: np.ndarray
    upper: np.ndarray
    bounded: bool

    def bounds_at(self, sizes):
        """Return the bounds of what goes on from some sizes: without a balance these stay.

        Parameters
        ----------
        sizes : (k,) int array
            Sizes reached.

        Returns
        -------
        lower, upper : (k,) int64 arrays
            Size bounds.
        """
        return (self.lower, self.upper) if self.bounded else (sizes, sizes)


def size_rule(
    n, k, *, balance=None, target_sizes=None, min_size=1, known=None, default=None, bounded=True
):
    """Turn the user's size parameters into bounds, or say why they cannot be met.

    Parameters
    ----------
    n, k : int
        Points and clusters.
    balance : float, optional
        Every size stays within balance * n / k of its target, or of the next integers to it; 0:
        sizes that differ by one at most.
    target_sizes : (k,) array_like of int, optional
        Sizes asked for; they must sum to n. None: n / k each.
    min_size : int, default=1
        No cluster ends smaller than this.
    known : (n,) int array, optional
        Partial labels, -1 where unknown.
    default : float, optional
        What stands for a balance of None. The targets then make room for the known labels.
    bounded : bool, default=True
        Whether a search keeps to the default all along, as it does to a balance.

    Returns
    -------
    SizeRule
        Feasible bounds.

    Raises
    ------
    ValueError
        If the parameters are out of range, contradict each other or cannot be met.

    Examples
    --------
    >>> rule = size_rule(100, 4, balance=0.2)
    >>> rule.lower, rule.upper
    (array([20, 20, 20, 20]), array([30, 30, 30, 30]))
    """
    targets = None
    centre = np.full(k, n / k)
    if target_sizes is not None:
        targets = _check_targets(n, k, target_sizes)
        centre = targets.astype(np.float64)
    lower = np.full(k, min_size, dtype=np.int64)
    upper = np.full(k, n, dtype=np.int64)
    share = default if balance is None else balance
    if share is not None:
        if balance is None:
            centre = with_known(centre, known, n)
        # A size that sits on the bound up to rounding is inside it, and so is the next integer.
        slack = share * n / k
        least = np.minimum(np.ceil(centre - slack - 1e-9), np.floor(centre + 1e-9))
        most = np.maximum(np.floor(centre + slack + 1e-9), np.ceil(centre - 1e-9))
        lower = np.maximum(lower, least.astype(np.int64))
        upper = np.minimum(upper, most.astype(np.int64))
    _check_feasible(n, k, lower, upper, balance, known)
    return SizeRule(targets, lower, upper, balance is not None or (default is not None and bounded))


def held_sizes(known, k):
    """Return how many points of each cluster are known.

    Parameters
    ----------
    known : (n,) int array or None
        Partial labels, -1 where unknown.
    k : int
        Clusters.

    Returns
    -------
    (k,) int64 array
        Sizes; zeros where no label is known.

    Examples
    --------
    >>> import numpy as np
    >>> held_sizes(np.array([1, -1, 1]), 2)
    array([0, 2])
    """
    if known is None:
        return np.zeros(k, dtype=np.int64)
    return np.bincount(known[known >= 0], minlength=k)


def with_known(sizes, known, n):
    """Return sizes near to those given that take in the known labels and sum to n.

    Parameters
    ----------
    sizes : (k,) array
        Sizes that sum to n.
    known : (n,) int array or None
        Partial labels, -1 where unknown.
    n : int
        Points.

    Returns
    -------
    (k,) array
        As given where no label is known, else int64.

    Examples
    --------
    >>> import numpy as np
    >>> with_known(np.array([2, 2, 2]), np.array([1, 1, 1, 1, -1, -1]), 6)
    array([1, 4, 1])
    """
    if known is None:
        return sizes
    held = held_sizes(known, len(sizes))
    return held + proportional_sizes(np.maximum(sizes - held, 0), n - held.sum())


def _check_targets(n, k, target_sizes):
    targets = np.asarray(target_sizes)
    if targets.shape != (k,) or targets.dtype.kind not in "iu":
        raise ValueError(
            f"target_sizes must be {k} integers, one for each cluster; got {target_sizes!r}"
        )
    if targets.min() < 0 or targets.sum() != n:
        raise ValueError(
            f"target_sizes must be non-negative and sum to the number of points, {n}; "
            f"they sum to {int(targets.sum())} with a least of {int(targets.min())}"
        )
    return targets.astype(np.int64)


def _check_feasible(n, k, lower, upper, balance, known):
    if (lower > upper).any() or lower.sum() > n or upper.sum() < n:
        raise ValueError(
            f"no sizes of {k} clusters satisfy balance={balance} and min_size together with "
            f"n={n} points: at least {lower.tolist()} and at most {upper.tolist()} would be "
            "allowed; raise balance or lower min_size"
        )
    if known is None:
        return
    held = held_sizes(known, k)
    if (held > upper).any() or np.maximum(lower, held).sum() > n:
        raise ValueError(
            f"the known labels fix {held.tolist()} points, which the allowed sizes "
            f"(at least {lower.tolist()}, at most {upper.tolist()}) cannot take in; "
            "raise balance or lower min_size"
        )


def binary_bounds(n, balance, target_sizes, min_size):
    """Return the least and the greatest size of cluster 1 of two.

    Parameters
    ----------
    n : int
        Points, at least 2.
    balance : float
        Both sizes stay within balance * n / 2 of their targets, 0 <= balance < 1, or differ by one
        where n is odd.
    target_sizes : (2,) array_like of int or None
        Sizes asked for, summing to n. None: n / 2 each.
    min_size : int
        No cluster is smaller than this.

    Returns
    -------
    lower, upper : int
        Bounds of the size of cluster 1, those that cluster 0 implies included.

    Raises
    ------
    ValueError, TypeError
        If the parameters are out of range or cannot be met.

    Examples
    --------
    >>> binary_bounds(100, 0.1, None, 1)
    (45, 55)
    >>> binary_bounds(7, 0.01, None, 1)
    (3, 4)
    """
    balance = validation.check_number("balance", balance)
    if not 0 <= balance < 1:
        raise ValueError(f"balance must be at least 0 and below 1; got {balance}")
    min_size = validation.check_integer(
        "min_size", min_size, least=1, most=n // 2, why=", half of the points"
    )
    rule = size_rule(n, 2, balance=balance, target_sizes=target_sizes, min_size=min_size)
    lower = max(rule.lower[1], n - rule.upper[0])
    upper = min(rule.upper[1], n - rule.lower[0])
    return int(lower), int(upper)


def shaking_quota(n, k, n_rounds, start_round=0, targets=None):
    """Return the size that each claiming cluster grows to, round by round.

    floor(m_d + m_d / 2^i) with m_d = n / k exactly, or the target size
    (Pahikkala et al. 2012, equation 11).

    Parameters
    ----------
    n, k : int
        Points and clusters.
    n_rounds : int
        Rounds in a full schedule.
    start_round : int, default=0
        First round to run.
    targets : (k,) int array, optional
        Target sizes m_d.

    Returns
    -------
    (n_rounds - start_round, k) int64 array
        Never above n.

    Examples
    --------
    >>> shaking_quota(150, 3, 3)[:, 0]
    array([100,  75,  62])
    """
    rows = []
    for i in range(start_round, n_rounds):
        # Python integers: 2^i outgrows every fixed width.
        if targets is None:
            row = [min(n, n * (1 + 2**i) // (2**i * k))] * k
        else:
            row = [min(n, int(m) * (1 + 2**i) // 2**i) for m in targets]
        rows.append(row)
    return np.array(rows, dtype=np.int64).reshape(n_rounds - start_round, k)


def balanced_random_labels(n, k, rng, rule=None, known=None):
    """Draw labels of the target sizes, known labels in their places.

    Parameters
    ----------
    n, k : int
        Points and clusters.
    rng : numpy.random.Generator
        Source of randomness.
    rule : SizeRule, optional
        Target sizes; None: as equal as possible.
    known : (n,) int array, optional
        Partial labels, -1 where unknown.

    Returns
    -------
    (n,) int64 array
        Labels 0..k-1.

    Examples
    --------
    >>> import numpy as np
    >>> labels = balanced_random_labels(7, 3, np.random.default_rng(0))
    >>> np.bincount(labels)
    array([3, 2, 2])
    """
    targets = None if rule is None else rule.targets
    sizes = equal_sizes(n, k) if targets is None else targets
    if known is None:
        labels = np.repeat(np.arange(k), sizes)
        rng.shuffle(labels)
        return labels
    labels = np.array(known, dtype=np.int64)
    free = labels < 0
    room = np.maximum(sizes - np.bincount(labels[~free], minlength=k), 0)
    places = np.repeat(np.arange(k), room)
    rng.shuffle(places)
    labels[free] = places[: free.sum()]
    return labels


def equal_sizes(n, k):
    """Return k sizes that differ by one at most and sum to n, larger ones first.

    Parameters
    ----------
    n, k : int
        Points and clusters.

    Returns
    -------
    (k,) int64 array
        Sizes.

    Examples
    --------
    >>> equal_sizes(7, 3)
    array([3, 2, 2])
    """
    return n // k + (np.arange(k) < n % k).astype(np.int64)


def proportional_sizes(sizes, n):
    """Return sizes in the same proportions that sum to n, the largest remainders rounded up.

    Parameters
    ----------
    sizes : (k,) array of int
        Sizes.
    n : int
        Their new sum.

    Returns
    -------
    (k,) int64 array
        New sizes.

    Examples
    --------
    >>> proportional_sizes([50, 30, 20], 5)
    array([3, 1, 1])
    """
    exact = np.asarray(sizes) * (n / max(1, np.sum(sizes)))
    new = np.floor(exact).astype(np.int64)
    new[np.argsort(new - exact, kind="stable")[: n - new.sum()]] += 1
    return new


def reorder_to_targets(labels, targets):
    """Rename clusters so that the larger ones take the larger targets.

    Parameters
    ----------
    labels : (n,) int array
        Labels 0..k-1.
    targets : (k,) int array
        Target sizes.

    Returns
    -------
    (n,) int64 array
        The same partition under new names.

    Examples
    --------
    >>> import numpy as np
    >>> reorder_to_targets(np.array([0, 1, 1, 1]), np.array([3, 1]))
    array([1, 0, 0, 0])
    """
    sizes = np.bincount(labels, minlength=len(targets))
    names = np.empty(len(targets), dtype=np.int64)
    names[np.argsort(-sizes, kind="stable")] = np.argsort(-np.asarray(targets), kind="stable")
    return names[labels]


def fit_sizes(labels, scores, lower, upper, movable=None):
    """Bring the sizes within bounds by moving the points that lose least by it.

    Clusters that are too large give to those with room, then clusters that are too small take
    from those above their lower bound. O(nk) a step, of which a few for each cluster do.

    Parameters
    ----------
    labels : (n,) int array
        Labels 0..k-1.
    scores : (k, n) array
        How well each point fits each cluster; higher is better.
    lower, upper : (k,) int64 arrays
        Size bounds that can be met.
    movable : (n,) bool array, optional
        False where the label may not change.

    Returns
    -------
    (n,) int64 array
        New labels.

    Raises
    ------
    ValueError
        If the bounds cannot be met by moving these points.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.array([[3.0, 2.0, 1.0], [0.0, 0.0, 0.5]])
    >>> fit_sizes(np.array([0, 0, 0]), scores, np.array([1, 1]), np.array([2, 2]))
    array([0, 0, 1])
    """
    k = len(lower)
    labels = np.array(labels, dtype=np.int64)
    movable = np.ones(labels.size, dtype=bool) if movable is None else movable
    counts = np.bincount(labels, minlength=k)
    while (counts > upper).any():
        h = np.argmax(counts - upper)
        members = np.flatnonzero(movable & (labels == h))
        room = np.flatnonzero(counts < upper)
        _check_bounds_can_be_met(members.size and room.size, counts, lower, upper)
        offers = scores[np.ix_(room, members)]
        loss = scores[h, members] - offers.max(axis=0)
        leaving = np.argsort(loss, kind="stable")[: counts[h] - upper[h]]
        labels[members[leaving]] = room[offers[:, leaving].argmax(axis=0)]
        counts = np.bincount(labels, minlength=k)
    while (counts < lower).any():
        h = np.argmax(lower - counts)
        members = np.flatnonzero(movable & (counts > lower)[labels])
        _check_bounds_can_be_met(members.size, counts, lower, upper)
        loss = scores[labels[members], members] - scores[h, members]
        labels[members[np.argsort(loss, kind="stable")[: lower[h] - counts[h]]]] = h
        counts = np.bincount(labels, minlength=k)
    return labels


def _check_bounds_can_be_met(n_movable, counts, lower, upper):
    """Raise an error if no point is left whose move brings the sizes nearer to the bounds."""
    if n_movable == 0:
        raise ValueError(
            f"sizes of {counts.tolist()} cannot be brought to at least {lower.tolist()} and at "
            f"most {upper.tolist()} by moving the points whose label is not known"
        )
