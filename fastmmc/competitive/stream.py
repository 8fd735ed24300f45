"""Streams: prototypes that learn chunk by chunk, with a memory of the last constrained objects.

Objects are numbered from 0 as they arrive. A constraint is learned when its later object is
presented, if the earlier one is still remembered. So if constraints come no later than their
objects, results do not depend on the chunks, except for the first one, from which the first
prototypes are taken.
"""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse

from fastmmc.competitive import _loops as kernels
from fastmmc.competitive.online import present
from fastmmc.core.saving import stored
from fastmmc.data.links import (
    check_pairs,
    compress,
    find_contradictions,
    renumber,
    report_contradictions,
    unique_pairs,
)
from fastmmc.kernels.gram import dense_rows
from fastmmc.kernels.models import Space, check_centers

NO_IDS, NO_PAIRS = np.empty(0, dtype=np.int64), np.empty((0, 2), dtype=np.int64)

# Chunks of labelled objects are cut so that their lists of partners are no longer than this.
MOST_PARTNERS = 2**22


@stored(
    centers="f8:kd",
    wins="f8:k",
    memory="f8:md",
    memory_ids="i8:m",
    memory_labels="i8:m",
    must="i8:p2",
    cannot="i8:q2",
)
@dataclass(eq=False)
class Stream:
    """What is kept between chunks; only constraints that wait for an object are unbounded."""

    space: Space
    centers: np.ndarray  # (k, d) float64
    wins: np.ndarray  # (k,) float64, learning steps plus one
    n_seen: int = 0  # objects presented
    memory: np.ndarray | None = None  # (m, d) float64, the last constrained objects
    memory_ids: np.ndarray = field(default_factory=NO_IDS.copy)  # (m,) int64, their numbers, rising
    memory_labels: np.ndarray = field(default_factory=NO_IDS.copy)  # (m,) int64, -1: unknown
    # Constraints with objects yet to come, (p, 2) int64, each once, the earlier object first.
    must: np.ndarray = field(default_factory=NO_PAIRS.copy)
    cannot: np.ndarray = field(default_factory=NO_PAIRS.copy)
    n_forgotten: int = 0  # constraints not learned, as the earlier object was forgotten
    n_late: int = 0  # constraints given after both their objects had been presented
    n_conflicts: int = 0  # constraints that contradicted others when they were given
    memory_size: int = 0  # constrained objects to remember, as of the last chunk

    def __post_init__(self):
        if self.memory is None:
            self.memory = np.empty((0, self.centers.shape[1]))

    def _check_values(self):
        check_centers(self.centers, self.space)
        ids = self.memory_ids
        counts = (self.n_seen, self.n_forgotten, self.n_late, self.n_conflicts, self.memory_size)
        fine = {
            "counts": min(counts) >= 0,
            "wins": (self.wins >= 1).all(),
            "memory_ids": (np.diff(ids) > 0).all() and ((ids >= 0) & (ids < self.n_seen)).all(),
            "memory_labels": (self.memory_labels >= -1).all(),
        }
        for name in ("must", "cannot"):
            low, high = getattr(self, name).T
            fine[name] = ((low >= 0) & (low < high) & (high >= self.n_seen)).all()
        for name, is_fine in fine.items():
            if not is_fine:
                raise ValueError(f"{name} has values that cannot be")

    def present(self, rows, rule, memory_size, constraints=None):
        """Present a chunk, (n, d) rows; return which prototype was nearest to each object then."""
        self.memory_size = memory_size
        # Those of before are shown by an estimator, or mapped read-only from a file.
        self.centers, self.wins = np.array(self.centers), np.array(self.wins)
        X = rows if issparse(rows) else np.ascontiguousarray(rows)
        labels, labels_as = None, ""
        if constraints is not None:
            self._add(constraints)
            labels, labels_as = constraints.labels, constraints.labels_as
        nearest = []
        for part in self._parts(X.shape[0], labels):
            links = self._take_links(X[part], None if labels is None else labels[part], labels_as)
            each = np.arange(links.own.size)
            nearest.append(present(X[part], each, each, self.centers, self.wins, links, rule)[0])
            self.n_seen += each.size
        return nearest[0] if len(nearest) == 1 else np.concatenate(nearest)

    def _parts(self, n, labels):
        """Return slices of a chunk whose lists of partners are not too long."""
        if labels is None:
            return [slice(0, n)]
        count = np.cumsum(labels >= 0)
        most = max(1, MOST_PARTNERS // min(self.memory_size, self.memory_ids.size + n))
        cuts = np.searchsorted(count, np.arange(most, count[-1], most), side="right")
        ends = [0, *cuts.tolist(), n]
        return [slice(a, b) for a, b in pairwise(ends)]

    def _add(self, constraints):
        """Add new pairs, except those that come after both their objects were presented."""
        self.n_conflicts += constraints.n_conflicts
        for name in ("must", "cannot"):
            new = getattr(constraints, name)
            ahead = new[:, 1] >= self.n_seen
            self.n_late += int((~ahead).sum())
            if ahead.any():
                waiting = np.concatenate((getattr(self, name), new[ahead]))
                setattr(self, name, unique_pairs(waiting))

    def _take_links(self, X, labels, labels_as):
        """Return the links of objects to earlier ones, and remember those in constraints."""
        n, first = X.shape[0], self.n_seen
        if labels is None:
            if not (len(self.must) or len(self.cannot)):
                return _no_links(X)
            labels = np.full(n, -1, dtype=np.int64)
        chosen = labels >= 0
        for pairs in (self.must, self.cannot):
            inside = pairs[(pairs >= first) & (pairs < first + n)]
            chosen[inside - first] = True
        chosen = np.flatnonzero(chosen)
        # Constrained objects of the chunk follow those of the memory.
        ids = np.concatenate((self.memory_ids, first + chosen))
        known = np.concatenate((self.memory_labels, labels[chosen]))
        memory = np.concatenate((self.memory, dense_rows(X, chosen).astype(np.float64, copy=False)))
        own = np.full(n, -1, dtype=np.int64)
        own[chosen] = np.arange(self.memory_ids.size, ids.size)
        lists = {}
        for name in ("must", "cannot"):
            start, partners = compress(*self._take_pairs(name, ids, n), n)
            if labels_as in (f"{name}_link", "both") and (labels >= 0).any():
                given = own, self.memory_size, name == "must", start, partners
                start, partners = kernels.list_partners(known, *given)
            lists |= {f"{name}_start": start, name: partners}
        seen = np.ones(ids.size, dtype=np.uint8)
        keep = slice(max(0, ids.size - self.memory_size), None)
        self.memory_ids, self.memory_labels = ids[keep].copy(), known[keep].copy()
        self.memory = memory[keep].copy()
        return kernels.Links(memory=memory, seen=seen, own=own, **lists)

    def _take_pairs(self, name, ids, n):
        """Remove pairs that the chunk completes; return its objects and the others' places."""
        first = self.n_seen
        pairs = getattr(self, name)
        due = pairs[:, 1] < first + n
        setattr(self, name, pairs[~due])
        earlier, later = pairs[due].T
        place, own = np.searchsorted(ids, earlier), np.searchsorted(ids, later)
        remembered = place < own
        remembered[remembered] = ids[place[remembered]] == earlier[remembered]
        remembered &= own - place <= self.memory_size
        self.n_forgotten += int((~remembered).sum())
        return later[remembered] - first, place[remembered]


class ChunkConstraints(NamedTuple):
    """New constraints of a chunk; pairs hold numbers of the stream, the earlier object first."""

    must: np.ndarray  # (p, 2) int64, each once
    cannot: np.ndarray  # (q, 2) int64, each once
    labels: np.ndarray | None  # (n,) int64, of the chunk's objects, -1: unknown
    labels_as: str  # what labels imply
    n_conflicts: int  # cannot-links that must-links contradict and that are not known from before


def check_chunk_constraints(must_link, cannot_link, labels, *, labels_as, on_conflict, stream):
    """Return the :class:`ChunkConstraints` of a chunk, None if there are none.

    ``labels`` are checked, (n,) int64 with -1 where unknown; ``stream`` is what came before, or
    None. Contradictions are looked for among new pairs, those that wait for an object to come, and
    what labels of their objects imply, in the chunk or as far as these are remembered.
    """
    if labels is None and must_link is None and cannot_link is None:
        return None
    must = unique_pairs(check_pairs("must_link", must_link, None))
    cannot = unique_pairs(check_pairs("cannot_link", cannot_link, None))
    old = (NO_PAIRS, NO_PAIRS) if stream is None else (stream.must, stream.cannot)
    n_conflicts = 0
    if any(map(len, (must, cannot, *old))):
        both = [unique_pairs(np.concatenate(p)) for p in zip(old, (must, cannot), strict=True)]
        found = _find_contradictions(*both, stream, labels, labels_as)
        # Those accepted before are not reported again.
        n_old = _find_contradictions(*old, stream, None, labels_as).count if found.count else 0
        n_conflicts = max(0, found.count - n_old)
        if n_conflicts:
            report_contradictions(found, on_conflict)
    return ChunkConstraints(must, cannot, labels, labels_as, n_conflicts)


def _find_contradictions(must, cannot, stream, labels, labels_as):
    """Find contradictions between pairs, and with labels in the memory and in a chunk."""
    objects, must, cannot = renumber(must, cannot)
    known, first = np.full(objects.size, -1, dtype=np.int64), 0
    if stream is not None:
        first = stream.n_seen
        _, at, place = np.intersect1d(objects, stream.memory_ids, True, return_indices=True)
        known[at] = stream.memory_labels[place]
    if labels is not None:
        here = (objects >= first) & (objects < first + labels.size)
        known[here] = labels[objects[here] - first]
    return find_contradictions(must, cannot, known, labels_as, objects)


def _no_links(X):
    """Return links of objects in no constraint."""
    start, own = np.zeros(X.shape[0] + 1, dtype=np.int64), np.full(X.shape[0], -1, dtype=np.int64)
    memory = np.empty((0, X.shape[1]))
    return kernels.Links(memory, np.empty(0, np.uint8), own, start, NO_IDS, start, NO_IDS)
