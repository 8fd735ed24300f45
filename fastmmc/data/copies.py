"""Equal points as one point with a weight: s of them, or one of weight s, are the same to a method.

So that their results are equal to the last digit, the points are put in an order that depends on
their values alone.
"""

from dataclasses import dataclass, replace

import numpy as np

from fastmmc.core.declare import declared, told
from fastmmc.core.parameters import SizeParameters
from fastmmc.data.frames import rows_of
from fastmmc.kernels.gram import distances_from_place, first_equals


@dataclass(frozen=True, eq=False)
class Copies:
    """Distinct points, and what the points of a call have to do with them."""

    members: np.ndarray  # (n,) int64, the distinct point that each point is
    first: np.ndarray  # (g,) int64, a point that is it
    weights: np.ndarray  # (g,) float64, the sum of its points' weights

    @classmethod
    def of(cls, X, weights, known=()):
        """Return the distinct points of X, or None if all are distinct and have the weight 1.

        ``weights`` (n,) are positive; None: all are 1. ``known`` are integers (n,) that are
        known of the points; equal points of which different ones are known stay apart.
        """
        weights = unless_ones(weights)
        distances = distances_from_place(X)
        equals = first_equals(X, distances)
        if equals is None and weights is None:
            return None
        equals = np.arange(X.shape[0]) if equals is None else equals
        keys = equals
        for one in known:
            keys = np.unique(keys * (np.ptp(one) + 1) + one - one.min(), return_inverse=True)[1]
        _, first, members = np.unique(keys, return_index=True, return_inverse=True)
        if weights is None and first.size == keys.size:
            return None
        # By distance their order tells where they lie, and landmarks are often evenly spaced.
        order = np.lexsort((*(one[first] for one in known), distances[first]))
        order = order[np.random.default_rng(0).permutation(order.size)]
        place = np.empty(order.size, dtype=np.int64)
        place[order] = np.arange(order.size)
        members = place[members]
        return cls(members, first[order], np.bincount(members, weights).astype(np.float64))

    def has_room(self, call):
        """Tell whether the sizes that a call asks for leave room for all copies of the heaviest.

        They do where a size may be off by that much to either side.
        """
        if not told(call, SizeParameters):
            return True
        # Sizes are exact, or perhaps used up, or of an unknown number of clusters.
        is_exact = call.balance is None and call.target_sizes is not None
        if is_exact or call.known_labels is not None or isinstance(call.k, str):
            return False
        mean, most = self.weights.sum() / call.k, np.inf if call.max_size is None else call.max_size
        slack = np.inf if call.balance is None else call.balance * mean
        return min(slack, mean - call.min_size, most - mean) >= self.weights.max()

    def merge(self, call, points):
        """Return the call for the distinct points among those it is for."""
        changed = of_points(call, self.first) | {"X": points[self.first]}
        changed["sample_weight"] = unless_ones(self.weights)
        if np.ndim(getattr(call, "landmarks", None)) == 1:
            changed["landmarks"] = np.unique(self.members[np.asarray(call.landmarks)])
            changed["rank"] = changed["landmarks"].size
        elif isinstance(getattr(call, "rank", None), int | np.integer):
            changed["rank"] = min(call.rank, self.first.size)
        return replace(call, **changed)


def unless_ones(weights):
    """Return weights, None if there are none or all are 1."""
    return None if weights is None or (weights == 1.0).all() else weights


def of_points(call, rows):
    """Return what a call says of each point, by parameter, for some rows alone."""
    said = {one.name: getattr(call, one.name) for one in declared(type(call)) if one.per == "point"}
    return {name: rows_of(value, rows) for name, value in said.items() if np.ndim(value) > 0}
