"""Objects that come in chunks: prototypes that go on learning, and a memory of constrained ones.

Objects are numbered from 0 in the order of their arrival. A constraint is learned from when its
later object is presented, if the earlier one is still remembered; so it does not matter how the
objects are cut into chunks (but for the first one, which the first prototypes come from), if
constraints come no later than their objects.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from fastmmc import validation
from fastmmc.competitive import _loops as kernels
from fastmmc.competitive.online import make_prototypes
from fastmmc.competitive.space import Space
from fastmmc.gram import dense_rows
from fastmmc.links import (
    LABELS_AS,
    ON_CONFLICT,
    check_pairs,
    find_contradictions,
    report_contradictions,
    unique_pairs,
)

NO_PAIRS = np.empty((0, 2), dtype=np.int64)

# Labelled objects are presented so many at a time that their lists of partners are no longer.
MOST_PARTNERS = 2**22


@dataclass(eq=False)
class Stream:
    """What is kept between chunks, all of it bounded but for the constraints themselves.

    Attributes
    ----------
    space : Space
        Where the prototypes are.
    centers : (k, d) float64 array
        Prototypes; modified in place.
    wins : (k,) float64 array
        Learning steps of each, plus one; modified in place.
    n_seen : int
        Objects presented.
    memory : (m, d) float64 array
        The last constrained objects.
    memory_ids : (m,) int64 array
        Their numbers, rising.
    memory_labels : (m,) int64 array
        Their known labels, -1 where unknown.
    must, cannot : (p, 2) and (q, 2) int64 arrays
        Constraints with objects yet to come, each once, the earlier object first.
    n_forgotten : int
        Constraints that were not used, as the earlier object was not remembered.
    n_late : int
        Constraints that were given after both their objects had been presented.
    n_conflicts : int
        Constraints that contradicted others when they were given.
    """

    space: Space
    centers: np.ndarray
    wins: np.ndarray
    n_seen: int = 0
    memory: np.ndarray | None = None
    memory_ids: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    memory_labels: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    must: np.ndarray = field(default_factory=NO_PAIRS.copy)
    cannot: np.ndarray = field(default_factory=NO_PAIRS.copy)
    n_forgotten: int = 0
    n_late: int = 0
    n_conflicts: int = 0

    def __post_init__(self):
        if self.memory is None:
            self.memory = np.empty((0, self.centers.shape[1]))
        self._prototypes = make_prototypes(self.centers, self.wins)

    def __getstate__(self):
        state = self.__dict__.copy()
        del state["_prototypes"]
        return state

    def __setstate__(self, state):
        self.__dict__.update(state)
        # The prototypes share their arrays with the work space, and joblib may map them read-only.
        self.centers, self.wins = np.array(self.centers), np.array(self.wins)
        self._prototypes = make_prototypes(self.centers, self.wins)

    def present(self, rows, rule, memory_size, constraints=None):
        """Present a chunk of objects in their order.

        Parameters
        ----------
        rows : (n, d) array or CSR matrix
            Objects in the space of the prototypes.
        rule : Rule
            How to learn.
        memory_size : int
            Constrained objects to remember.
        constraints : Constraints, optional
            New ones.

        Returns
        -------
        (n,) int64 array
            Which prototype was nearest to each object when it was presented.
        """
        X = np.ascontiguousarray(dense_rows(rows, slice(None)))
        if constraints is None:
            return self._present_part(X, rule, memory_size, None, "")
        self._add(constraints)
        labels, labels_as = constraints.labels, constraints.labels_as
        return np.concatenate(
            [
                self._present_part(
                    X[part], rule, memory_size, None if labels is None else labels[part], labels_as
                )
                for part in self._parts(X.shape[0], labels, memory_size)
            ]
        )

    def _parts(self, n, labels, memory_size):
        """Return slices of a chunk whose lists of partners are not too long."""
        if labels is None:
            return [slice(0, n)]
        count = np.cumsum(labels >= 0)
        most = max(1, MOST_PARTNERS // min(memory_size, self.memory_ids.size + n))
        cuts = np.searchsorted(count, np.arange(most, count[-1], most), side="right")
        ends = [0, *cuts.tolist(), n]
        return [slice(a, b) for a, b in pairwise(ends)]

    def _present_part(self, X, rule, memory_size, labels, labels_as):
        """Present some objects of a chunk, whose labels may be known."""
        n = X.shape[0]
        if labels is None and not (len(self.must) or len(self.cannot)):
            links = _no_links(X)
        else:
            labels = np.full(n, -1, dtype=np.int64) if labels is None else labels
            links = self._take_links(X, memory_size, labels, labels_as)
        each = np.arange(n)
        nearest, _ = rule.present(X, each, each, self._prototypes, links)
        self.n_seen += n
        return nearest

    def _add(self, constraints):
        """Take new pairs along; those whose objects have both been presented come too late."""
        self.n_conflicts += constraints.n_conflicts
        for name in ("must", "cannot"):
            new = getattr(constraints, name)
            ahead = new[:, 1] >= self.n_seen
            self.n_late += int((~ahead).sum())
            if ahead.any():
                waiting = np.concatenate((getattr(self, name), new[ahead]))
                setattr(self, name, unique_pairs(waiting))

    def _take_links(self, X, memory_size, labels, labels_as):
        """Return the links of objects to earlier ones, and remember the constrained."""
        n, first = X.shape[0], self.n_seen
        chosen = labels >= 0
        for pairs in (self.must, self.cannot):
            inside = pairs[(pairs >= first) & (pairs < first + n)]
            chosen[inside - first] = True
        chosen = np.flatnonzero(chosen)
        # The memory, and behind it the constrained objects of the chunk.
        ids = np.concatenate((self.memory_ids, first + chosen))
        known = np.concatenate((self.memory_labels, labels[chosen]))
        memory = np.concatenate((self.memory, X[chosen].astype(np.float64, copy=False)))
        own = np.full(n, -1, dtype=np.int64)
        own[chosen] = np.arange(self.memory_ids.size, ids.size)
        lists = {}
        for name in ("must", "cannot"):
            start, partners = _compress(self._take_pairs(name, ids, memory_size, n), n)
            if labels_as in (f"{name}_link", "both") and (labels >= 0).any():
                common = known, own, memory_size, name == "must", start, partners
                start, partners = _with_labelled(*common)
            lists |= {f"{name}_start": start, name: partners}
        seen = np.ones(ids.size, dtype=np.uint8)
        keep = slice(max(0, ids.size - memory_size), None)
        self.memory_ids, self.memory_labels = ids[keep].copy(), known[keep].copy()
        self.memory = memory[keep].copy()
        return kernels.Links(memory=memory, seen=seen, own=own, **lists)

    def _take_pairs(self, name, ids, memory_size, n):
        """Return (object of the chunk, place in memory) of the pairs whose later one is here."""
        first = self.n_seen
        pairs = getattr(self, name)
        due = pairs[:, 1] < first + n
        setattr(self, name, pairs[~due])
        earlier, later = pairs[due].T
        place, own = np.searchsorted(ids, earlier), np.searchsorted(ids, later)
        remembered = place < own
        remembered[remembered] = ids[place[remembered]] == earlier[remembered]
        remembered &= own - place <= memory_size
        self.n_forgotten += int((~remembered).sum())
        return np.column_stack((later[remembered] - first, place[remembered]))


def _with_labelled(known, own, memory_size, equal, start, partners):
    """Return lists of partners and, among them, those of objects that labels imply."""
    new_start = np.empty_like(start)
    common = known, own, memory_size, equal, start, partners, new_start
    kernels.list_partners(*common, partners, False)
    found = np.empty(new_start[-1], dtype=np.int64)
    kernels.list_partners(*common, found, True)
    return new_start, found


@dataclass(frozen=True, eq=False)
class Constraints:
    """New constraints of a chunk.

    Attributes
    ----------
    must, cannot : (p, 2) and (q, 2) int64 arrays
        Pairs of objects by their numbers in the stream, each once, the earlier object first.
    labels : (n,) int64 array or None
        Known labels of the chunk's objects, -1 where unknown.
    labels_as : str
        What labels imply.
    n_conflicts : int
        Cannot-links that must-links contradict, and that were not among those known before.
    """

    must: np.ndarray
    cannot: np.ndarray
    labels: np.ndarray | None
    labels_as: str
    n_conflicts: int


def check_chunk_constraints(must_link, cannot_link, labels, n, *, labels_as, on_conflict, stream):
    """Return the constraints of a chunk.

    What must not contradict each other are the new pairs, those that wait for an object to come,
    and what labels of their objects imply, as far as these are remembered or in the chunk.

    Parameters
    ----------
    must_link, cannot_link, labels_as, on_conflict
        As the user gave them.
    labels : (n,) int64 array or None
        Known labels of the chunk's objects, -1 where unknown.
    n : int
        Objects of the chunk.
    stream : Stream or None
        What came before.

    Returns
    -------
    Constraints or None
        None if there are none.

    Raises
    ------
    ValueError, TypeError
        If they are not what they must be, or contradict each other or labels known by now.
    """
    validation.check_choice("labels_as", labels_as, LABELS_AS)
    validation.check_choice("on_conflict", on_conflict, ON_CONFLICT)
    if labels is None and must_link is None and cannot_link is None:
        return None
    must = unique_pairs(check_pairs("must_link", must_link, None))
    cannot = unique_pairs(check_pairs("cannot_link", cannot_link, None))
    old = (NO_PAIRS, NO_PAIRS) if stream is None else (stream.must, stream.cannot)
    n_conflicts = 0
    if any(map(len, (must, cannot, *old))):
        both = [unique_pairs(np.concatenate(p)) for p in zip(old, (must, cannot), strict=True)]
        found = _find_contradictions(*both, stream, labels, labels_as)
        # Those that were let pass before are told no more.
        n_old = _find_contradictions(*old, stream, None, labels_as).count if found.count else 0
        n_conflicts = max(0, found.count - n_old)
        if n_conflicts:
            report_contradictions(found, on_conflict)
    return Constraints(must, cannot, labels, labels_as, n_conflicts)


def _find_contradictions(must, cannot, stream, labels, labels_as):
    """Find contradictions between pairs, and labels of the memory and of a chunk."""
    # Numbers without gaps: a stream may be long.
    objects, places = np.unique(np.concatenate((must, cannot)), return_inverse=True)
    places = places.reshape(-1, 2)
    return find_contradictions(
        places[: len(must)],
        places[len(must) :],
        _labels_of(objects, stream, labels),
        labels_as,
        objects,
    )


def _labels_of(objects, stream, labels):
    """Return the labels of objects of the memory and of a chunk, -1 where they are not known."""
    found = np.full(objects.size, -1, dtype=np.int64)
    first = 0
    if stream is not None:
        first = stream.n_seen
        place = np.searchsorted(stream.memory_ids, objects)
        place[place == stream.memory_ids.size] = 0
        if stream.memory_ids.size:
            remembered = stream.memory_ids[place] == objects
            found[remembered] = stream.memory_labels[place[remembered]]
    if labels is not None:
        here = (objects >= first) & (objects < first + labels.size)
        found[here] = labels[objects[here] - first]
    return found


def _no_links(X):
    """Return links of objects in no constraint."""
    none, start = np.empty(0, dtype=np.int64), np.zeros(X.shape[0] + 1, dtype=np.int64)
    own = np.full(X.shape[0], -1, dtype=np.int64)
    memory = np.empty((0, X.shape[1]))
    return kernels.Links(memory, np.empty(0, np.uint8), own, start, none, start, none)


def _compress(pairs, n):
    """Return (object, place) pairs in compressed rows, the earliest partner first."""
    start = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(np.bincount(pairs[:, 0], minlength=n), out=start[1:])
    return start, pairs[np.lexsort((pairs[:, 1], pairs[:, 0])), 1]
