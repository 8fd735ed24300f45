"""On-line competitive learning: its rules, and starts that present the objects in slices."""

import numpy as np
from scipy.sparse import csr_array, issparse

from fastmmc.competitive import _loops as kernels
from fastmmc.competitive.space import FirstPrototypes, assign_again, assign_rows
from fastmmc.core.execution import SlicedSearch, warn_of_fewer
from fastmmc.core.status import Status
from fastmmc.data.links import partner_lists
from fastmmc.kernels.gram import dense_rows
from fastmmc.kernels.models import row_blocks

# Methods that weigh the distances by the wins.
WEIGHTED = {"wta": False, "fscl": True, "rpcl": True, "c_rpcl": True, "o_lcvqe": False}

# Methods that drive spare prototypes away, so that the number of those left estimates the number
# of clusters. The others are asked for k clusters.
ESTIMATING = ("rpcl", "c_rpcl")

# A prototype of an estimating method is spare below this share of the points or, where there are
# many prototypes, below this part of their mean share.
SPARE_SHARE = 0.01
SPARE_PART = 0.25


def present(X, rows, ids, centers, wins, links, rule, total=0.0):
    """Present rows of X, ``ids`` telling which objects of the links they are.

    Prototypes, their wins (learning steps plus one) and links are modified in place. Returns which
    prototype was nearest to each object at that moment, (t,) int64, and ``total`` with their
    squared distances added: one by one, so that slices of the objects do not matter.
    """
    labels = np.empty(rows.size, dtype=np.int64)
    k = wins.size
    # One by one, as it takes half as long as rows of two arrays, which small chunks notice.
    room = np.empty(k), np.empty(k), np.empty(k)
    counts = np.empty(k, np.int64), np.empty(k, np.int64), np.empty(k, np.int64)
    prototypes = kernels.Prototypes(centers, wins, *room, *counts)
    if not issparse(X):
        return labels, kernels.present(X, rows, ids, prototypes, links, rule, total, labels)
    for part in row_blocks(rows.size, X.shape[1]):
        block = dense_rows(X, rows[part])
        found = labels[part]
        each = np.arange(found.size)
        total = kernels.present(block, each, ids[part], prototypes, links, rule, total, found)
    return labels, total


def make_rule(method, told):
    """Return the rule of a method, for checked parameters by name."""
    alpha, beta = told["alpha"], told.get("beta", 0.0)
    if not 0 <= beta < alpha:
        raise ValueError(
            f"beta must be at least 0 and below alpha = {alpha}, or rivals are driven away faster "
            f"than winners learn (a tenth of alpha is plenty); got {beta}"
        )
    decay = alpha if told["schedule"] == "robbins-monro" else 0.0
    once = told.get("per_constraint", "once") == "once"
    return kernels.Rule(WEIGHTED[method], alpha, beta, decay, once)


def least_share(min_share, method, k):
    """Return the least share of the points that a prototype is kept for."""
    if min_share is not None:
        return min_share
    return min(SPARE_SHARE, SPARE_PART / k) if method in ESTIMATING else 0.0


def warn_if_fewer(method, init, sizes, kept, min_share):
    """Warn if a method that was asked for k clusters keeps fewer prototypes.

    ``sizes`` are the (k,) numbers of points nearest to each, ``kept`` the prototypes not dropped.
    """
    k = len(sizes)
    if len(kept) == k or method in ESTIMATING:
        return
    reasons, cures = [], []
    n_empty = int(np.count_nonzero(sizes == 0))
    n_small = k - len(kept) - n_empty
    if n_empty:
        reasons.append(
            f"{n_empty} of the prototypes {'is' if n_empty == 1 else 'are'} nearest to no point, "
            "as happens where they begin far from all points or points coincide"
        )
        cures.append("try other starts (n_init, random_state)")
        if not isinstance(init, str) or init != "k-means++":
            cures[0] += ", init='k-means++'"
        if method == "wta":
            cures[0] += " or fscl, in which every prototype learns"
    if n_small:
        reasons.append(f"{n_small} had fewer points than min_share={min_share:g} of them")
        cures.append("min_share=0 keeps all that have a point")
    warn_of_fewer(len(kept), k, f"{' and '.join(reasons)}; {'; '.join(cures)}")


def list_partners(constraints, rows):
    """Return the cannot-linked and the must-linked partners of the rows, in compressed rows."""
    return [partner_lists(pairs, rows.shape[0]) for pairs in (constraints.cannot, constraints.must)]


def take_links(rows, partners, members, unseen):
    """Return the objects that constraints of these rising members name, and the members' links.

    The objects, (c,) and rising, are the constrained members and all their partners: the memory of
    the compiled loops. The links number members by their place among these, and partners by their
    place among the objects. With ``unseen`` they count only once they have been presented.
    """
    shape = (rows.shape[0],) * 2
    lists = [csr_array((of, of, start), shape=shape)[members] for start, of in partners]
    (cannot_start, cannot), (must_start, must) = (
        (one.indptr.astype(np.int64), one.data) for one in lists
    )
    constrained = members[np.diff(cannot_start) + np.diff(must_start) > 0]
    objects = np.unique(np.concatenate((constrained, cannot, must)))
    place = np.full(rows.shape[0], -1, dtype=np.int64)
    place[objects] = np.arange(objects.size)
    seen = np.zeros if unseen else np.ones
    return objects, kernels.Links(
        memory=np.ascontiguousarray(dense_rows(rows, objects)),
        seen=seen(objects.size, dtype=np.uint8),
        own=place[members],
        cannot_start=cannot_start,
        cannot=place[cannot],
        must_start=must_start,
        must=place[must],
    )


class OnlineSearch(SlicedSearch):
    """One start of an on-line method on the (n, d) rows of its space."""

    def __init__(self, plan, rows, rng):
        super().__init__()
        self._plan, self._rows, self._rng = plan, rows, rng
        self._first = FirstPrototypes(plan.init, rows, plan.k, rng)
        self.centers = None  # (k, d), once all first ones are chosen
        self.weights = np.ones(plan.k)  # learning steps plus one

    def _run(self):
        """Present the objects, epoch by epoch; a generator of the costs of pieces."""
        plan, rows = self._plan, self._rows
        yield from self._first.choosing()
        self.centers = self._first.take()
        learned = self.centers, self.weights
        n, d = rows.shape
        partners = list_partners(plan.constraints, rows)
        _, links = take_links(rows, partners, np.arange(n), plan.online_first_epoch)
        price = plan.k * d * (1.0 + (links.cannot.size + links.must.size) / n)
        cost = 0
        while self.n_iter < plan.max_iter:
            order = self._rng.permutation(n) if plan.shuffle else np.arange(n)
            at, total = 0, 0.0
            while at < n:
                yield cost  # of the last piece: none comes after the end
                ids = order[at:][: max(1, int(self._budget / price))]
                _, total = present(rows, ids, ids, *learned, links, plan.rule, total)
                at += ids.size
                cost = price * ids.size
                self.n_moves += ids.size
            self.n_iter += 1
            self._history.note(self.n_moves, total)

    def fraction(self):
        """Return the share of all presentations that were made."""
        return self.n_moves / (self._plan.max_iter * self._rows.shape[0])

    def finish(self):
        """Assign every point to its nearest prototype, and drop prototypes that are little used."""
        if self.centers is None:
            self.centers = self._first.take()
        labels, total = self._assign()
        self.nearest_to = np.bincount(labels, minlength=self._plan.k)
        self.kept = used_prototypes(self.nearest_to, self._plan.min_share)
        if self.kept.size < self._plan.k:
            labels, total = assign_again(self._rows, self.centers, labels, self.kept)
        self.labels, self.objective = labels, total
        if not np.isfinite(total):
            self.objective, self.status = np.inf, Status.NUMERICAL
        # Of each epoch: sum of squared distances, and objects presented by its end.
        self._end_history("objects")

    def _assign(self):
        return assign_rows(self._rows, self.centers)


def used_prototypes(sizes, min_share):
    """Return the prototypes with at least that share of the points, and always the largest one."""
    enough = (sizes > 0) & (sizes >= min_share * sizes.sum())
    enough[np.argmax(sizes)] = True
    return np.flatnonzero(enough)
