"""Objects that come in chunks: prototypes that go on learning, and a memory of constrained ones.

Objects are numbered from 0 in the order of their arrival. A constraint is learned from when its
later object is presented, if the earlier one is still remembered; so it does not matter how the
objects are cut into chunks (but for the first one, which the first prototypes come from).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fastmmc import validation
from fastmmc.competitive import _kernels as kernels
from fastmmc.competitive._solver_online import make_prototypes
from fastmmc.competitive._solver_space import Space
from fastmmc.constraints import LABELS_AS, ON_CONFLICT, check_links, check_pairs, known_labels
from fastmmc.gram import dense_rows

NO_PAIRS = np.empty((0, 2), dtype=np.int64)


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
        Constraints with objects yet to come.
    n_forgotten : int
        Constraints that were not used, as the earlier object was not remembered.
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
    n_conflicts: int = 0

    def __post_init__(self):
        if self.memory is None:
            self.memory = np.empty((0, self.centers.shape[1]))
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
        n = rows.shape[0]
        X = np.ascontiguousarray(dense_rows(rows, slice(None)))
        if constraints is not None:
            self._add(constraints)
        if constraints is None and not (len(self.must) or len(self.cannot)):
            links = _no_links(X)
        else:
            links = self._take_links(X, memory_size, constraints)
        each = np.arange(n)
        labels, _ = rule.present(X, each, each, self._prototypes, links)
        self.n_seen += n
        return labels

    def _add(self, constraints):
        """Take new pairs along; those whose objects have both been presented come too late."""
        self.n_conflicts += constraints.n_conflicts
        for name in ("must", "cannot"):
            old, new = getattr(self, name), getattr(constraints, name)
            ahead = (new >= self.n_seen).any(axis=1)
            self.n_forgotten += int((~ahead).sum())
            setattr(self, name, np.concatenate((old, new[ahead])))

    def _take_links(self, X, memory_size, constraints):
        """Return the links of a chunk's objects to earlier ones, and remember the constrained."""
        n, first = X.shape[0], self.n_seen
        labels = np.full(n, -1, dtype=np.int64)
        if constraints is not None and constraints.labels is not None:
            labels = constraints.labels
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
        found = {name: self._take_pairs(name, ids, memory_size, n) for name in ("must", "cannot")}
        if (labels >= 0).any():
            same, different = _labelled_before(labels, known, own, memory_size)
            if constraints.labels_as != "cannot_link":
                found["must"] = np.concatenate((found["must"], same))
            if constraints.labels_as != "must_link":
                found["cannot"] = np.concatenate((found["cannot"], different))
        must_start, must = _compress(found["must"], n)
        cannot_start, cannot = _compress(found["cannot"], n)
        seen = np.ones(ids.size, dtype=np.uint8)
        keep = slice(max(0, ids.size - memory_size), None)
        self.memory_ids, self.memory_labels = ids[keep].copy(), known[keep].copy()
        self.memory = memory[keep].copy()
        return kernels.Links(memory, seen, own, cannot_start, cannot, must_start, must)

    def _take_pairs(self, name, ids, memory_size, n):
        """Return (object of the chunk, place in memory) of the pairs whose later one is here."""
        first = self.n_seen
        pairs = np.sort(getattr(self, name), axis=1)
        due = pairs[:, 1] < first + n
        setattr(self, name, getattr(self, name)[~due])
        earlier, later = pairs[due].T
        place, own = np.searchsorted(ids, earlier), np.searchsorted(ids, later)
        remembered = place < own
        remembered[remembered] = ids[place[remembered]] == earlier[remembered]
        remembered &= own - place <= memory_size
        self.n_forgotten += int((~remembered).sum())
        return np.column_stack((later[remembered] - first, place[remembered]))


def _labelled_before(labels, known, own, memory_size):
    """Return (object, place) of labelled objects and remembered ones of the same, other labels."""
    same, different = [NO_PAIRS], [NO_PAIRS]
    for i in np.flatnonzero(labels >= 0):
        start = max(0, own[i] - memory_size)
        before = known[start : own[i]]
        equal = before == labels[i]
        for pairs, wanted in ((same, equal), (different, ~equal & (before >= 0))):
            places = start + np.flatnonzero(wanted)
            pairs.append(np.column_stack((np.full(places.size, i), places)))
    return np.concatenate(same), np.concatenate(different)


@dataclass(frozen=True, eq=False)
class Constraints:
    """New constraints of a chunk.

    Attributes
    ----------
    must, cannot : (p, 2) and (q, 2) int64 arrays
        Pairs of objects by their numbers in the stream.
    labels : (n,) int64 array or None
        Known labels of the chunk's objects, -1 where unknown.
    labels_as : str
        What labels imply.
    n_conflicts : int
        Constraints that contradict others.
    """

    must: np.ndarray
    cannot: np.ndarray
    labels: np.ndarray | None
    labels_as: str
    n_conflicts: int


def check_chunk_constraints(must_link, cannot_link, y, n, *, labels_as, on_conflict, stream):
    """Return the constraints of a chunk.

    Parameters
    ----------
    must_link, cannot_link, y, labels_as, on_conflict
        As the user gave them.
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
    if y is None and must_link is None and cannot_link is None:
        return None
    labels = None if y is None else known_labels(y, n)
    must = check_pairs("must_link", must_link, None)
    cannot = check_pairs("cannot_link", cannot_link, None)
    # Numbers without gaps: a stream may be long.
    objects, places = np.unique(np.concatenate((must, cannot)), return_inverse=True)
    places = places.reshape(-1, 2)
    links = check_links(
        places[: len(must)],
        places[len(must) :],
        objects.size,
        y=_labels_of(objects, stream, labels) if objects.size else None,
        labels_as=labels_as,
        on_conflict=on_conflict,
        numbers=objects,
    )
    return Constraints(must, cannot, labels, labels_as, links.n_conflicts)


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
    """Return (object, place) pairs in compressed rows, each once, the earliest partner first."""
    pairs = np.unique(pairs, axis=0)
    start = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(np.bincount(pairs[:, 0], minlength=n), out=start[1:])
    return start, np.ascontiguousarray(pairs[:, 1])
