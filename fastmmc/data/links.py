"""Must-links and cannot-links: pairs of objects that belong together, and pairs that do not."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, csr_array, issparse
from scipy.sparse.csgraph import breadth_first_order, connected_components

from fastmmc.core import memory, validation
from fastmmc.core.display import OneLine
from fastmmc.core.execution import warn_user
from fastmmc.core.words import counted, named
from fastmmc.data.labels import (
    MOST_OBJECTS,
    check_known_labels,
    is_number,
    plain,
    read_known_labels,
)

# Steps of a search for cliques of cannot-links, of which each node takes some; these take 1 s.
CLIQUE_STEPS = 20_000_000
STEPS_PER_NODE = 200

# Of a pair that labels imply, until the solvers hold it in their lists of partners: 64 at the peak,
# measured, and a little more.
BYTES_PER_PAIR = 70


@dataclass(frozen=True, eq=False, repr=False)
class Links(OneLine):
    """Pairs of objects that belong together (must) or do not (cannot), each pair once."""

    must: np.ndarray  # (p, 2) int64, in the order given
    cannot: np.ndarray  # (q, 2) int64
    n_conflicts: int = 0  # cannot-links between objects that chains of must-links join

    @classmethod
    def none(cls):
        """Return no pairs."""
        return cls(np.empty((0, 2), dtype=np.int64), np.empty((0, 2), dtype=np.int64))

    def __bool__(self):
        return len(self.must) + len(self.cannot) > 0

    def n_violations(self, labels):
        """Count the must-links apart and the cannot-links together in (n,) labels."""
        must, cannot = labels[self.must.T], labels[self.cannot.T]
        return int(np.sum(must[0] != must[1]) + np.sum(cannot[0] == cannot[1]))


def check_links(
    must_link, cannot_link, n, *, known_labels=None, labels_as="cannot_link", on_conflict="raise"
):
    """Return the Links given, and behind them those that partial labels imply.

    Different known labels imply a cannot-link, equal ones a must-link; ``labels_as`` says which of
    these count. Pairs that contradict each other are all kept if ``on_conflict`` is "warn".
    """
    must = _each_once(check_pairs("must_link", must_link, n), n)
    cannot = _each_once(check_pairs("cannot_link", cannot_link, n), n)
    labels = np.full(n, -1) if known_labels is None else check_known_labels(known_labels, n)
    found = find_contradictions(must, cannot, labels, labels_as)
    report_contradictions(found, on_conflict)
    if labels_as != "cannot_link":
        must = _with_implied(must, labels, True)
    if labels_as != "must_link":
        cannot = _with_implied(cannot, labels, False)
    return Links(must, cannot, found.count)


def _with_implied(pairs, labels, equal):
    """Return the pairs, followed by those that labels imply and that are not among them."""
    implied = pairs_of_labels(labels, equal)
    if not len(pairs):
        return implied
    # The implied ones are sorted.
    given = np.sort(pairs, axis=1) @ [labels.size, 1]
    keys = implied @ [labels.size, 1]
    places = np.searchsorted(keys, given)
    places = places[places < keys.size]
    implied = np.delete(implied, places[np.isin(keys[places], given)], axis=0)
    return np.concatenate((pairs, implied))


def check_links_of_clusters(must_link, cannot_link, n, k, known=None, *, hard=True):
    """Return the Links given, for methods that keep to them in k clusters.

    Raise ValueError, naming rows, if no labelling does: if must-links join what cannot-links or
    ``known`` labels (n,), -1 where unknown, keep apart, or if rows that exclude each other are seen
    to need more than k clusters. Links that are not ``hard`` may need as many as they like.
    """
    must = _each_once(check_pairs("must_link", must_link, n), n)
    cannot = _each_once(check_pairs("cannot_link", cannot_link, n), n)
    links = Links(must, cannot)
    if not links:
        return links
    known = np.full(n, -1) if known is None else known
    found = find_contradictions(must, cannot, known, "both")
    if found.count:
        raise ValueError(_tell_contradiction(*found.example, must, known))
    if not hard:
        return links
    edges, rows = _exclusions(links, known)
    wrong = _excluding(edges, k)
    if wrong is not None:
        what = "exclude each other in a ring of odd length" if k == 2 else "all exclude each other"
        raise ValueError(
            f"cannot_link: {named('row', rows[wrong].tolist())} {what} (with what must-links and "
            f"known labels imply), which {counted(k, 'cluster')} cannot satisfy; remove one of "
            "these links, or raise k"
        )
    return links


def enough_clusters(must_link, cannot_link, n, k, known=None):
    """Return the least number of clusters from ``k`` on that links are not seen to exclude."""
    links = check_links_of_clusters(must_link, cannot_link, n, k, known, hard=False)
    if not links:
        return k
    edges, _ = _exclusions(links, np.full(n, -1) if known is None else known)
    while _excluding(edges, k) is not None:
        k += 1
    return k


def _exclusions(links, known):
    """Return which nodes exclude each other, a sparse matrix, and a row of each.

    Rows that must be together are one node, as are those known to be in one cluster; all such
    clusters exclude each other.
    """
    n = known.size
    group = join(links.must, n, known)[:n]
    rows = np.unique(group, return_index=True)[1]
    named = np.unique(group[known >= 0])
    pairs = [group[links.cannot], named[np.array(np.triu_indices(named.size, 1)).T]]
    nodes, ends = np.unique(np.concatenate(pairs), return_inverse=True)
    a, b = ends.reshape(-1, 2).T
    edges = csr_array((np.ones(a.size), (a, b)), shape=(nodes.size,) * 2)
    return csr_array(edges + edges.T), rows[nodes]


def _tell_contradiction(a, b, must, known):
    """Say which must-links and known labels join two rows that are to be apart."""
    n, apart = known.size, known[a] >= 0 and known[b] >= 0 and known[a] != known[b]
    edges, kinds = _joining(must, n, known)
    chain = " - ".join(
        str(at) if at < n else f"known as {kinds[at - n]}" for at in _path(edges, a, b)
    )
    why = f"have the known labels {known[a]} and {known[b]}" if apart else "are cannot-linked"
    return f"rows {a} and {b} {why}, but must-links or known labels join them: {chain}"


def _path(edges, a, b):
    """Return the nodes of a shortest path from a to b."""
    before = breadth_first_order(edges, a, directed=False)[1]
    path = [b]
    while path[-1] != a:
        path.append(int(before[path[-1]]))
    return path[::-1]


def _excluding(edges, k):
    """Return nodes that need over k clusters as they exclude each other, None if none are seen.

    With two clusters odd cycles tell exactly. With more, cliques are found greedily, and not all.
    """
    return _odd_cycle(edges) if k == 2 else _clique(edges, k)


def _odd_cycle(edges):
    """Return the nodes of a cycle of odd length in a graph, None if there is none."""
    n = edges.shape[0]
    a, b = edges.nonzero()
    # One more node, linked to a node of each component, is where one search begins.
    firsts = np.unique(join(np.column_stack((a, b)), n), return_index=True)[1]
    ends = np.concatenate((a, np.full(firsts.size, n))), np.concatenate((b, firsts))
    whole = csr_array((np.ones(ends[0].size), ends), shape=(n + 1, n + 1))
    order, before = breadth_first_order(whole, n, directed=False)
    depth = np.zeros(n + 1, dtype=np.int64)
    for node in order[1:]:
        depth[node] = depth[before[node]] + 1
    wrong = np.flatnonzero(depth[a] % 2 == depth[b] % 2)
    if wrong.size == 0:
        return None
    # In the tree of the search the way between the ends of such an edge is of even length.
    tree = csr_array((np.ones(order.size - 1), (before[order[1:]], order[1:])), shape=whole.shape)
    return _path(tree, a[wrong[0]], b[wrong[0]])


def _clique(edges, k):
    """Return more than k nodes that are all neighbours, None if none were found."""
    degrees = np.diff(edges.indptr)
    neighbours = [set(part) for part in np.split(edges.indices, edges.indptr[1:-1])]
    steps = 0
    for node in np.argsort(-degrees, kind="stable"):
        if degrees[node] < k or steps > CLIQUE_STEPS:
            return None
        clique, common = [int(node)], neighbours[node]
        steps += STEPS_PER_NODE
        while common:
            steps += len(common) ** 2
            best = max(sorted(common), key=lambda one: len(common & neighbours[one]))
            clique.append(int(best))
            common = common & neighbours[best]
        if len(clique) > k:
            return clique
    return None


@dataclass(frozen=True)
class Contradictions:
    """Cannot-links between objects that chains of must-links join."""

    count: int
    n_cannot: int  # all cannot-links, including those that labels imply
    example: tuple | None  # the two objects of one contradiction


def find_contradictions(must, cannot, labels, labels_as="cannot_link", numbers=None):
    """Find the cannot-links that must-links contradict, without making the pairs of labels.

    Pairs are of objects 0..n-1, each once; the example takes the names of its objects from
    ``numbers``.
    """
    group = join(must, labels.size, None if labels_as == "cannot_link" else labels)
    a, b = cannot.T
    joined = group[a] == group[b]
    rows, n_cannot, n_wrong = np.flatnonzero(joined), len(cannot), 0
    example = tuple(cannot[rows[0]].tolist()) if rows.size else None
    if labels_as != "must_link":
        known = np.flatnonzero(labels >= 0)
        n_wrong = _count_different(group[known], labels[known])
        if example is None and n_wrong:
            example = _first_different(known, group, labels)
        # Pairs that labels imply as well count once.
        implied = (labels[a] >= 0) & (labels[b] >= 0) & (labels[a] != labels[b])
        joined &= ~implied
        n_cannot += _count_different(np.zeros_like(known), labels[known]) - int(implied.sum())
    if example is not None and numbers is not None:
        example = tuple(numbers[list(example)].tolist())
    return Contradictions(int(joined.sum()) + n_wrong, n_cannot, example)


def report_contradictions(found, on_conflict):
    """Raise ValueError, or warn, if there are contradictions."""
    if not found.count:
        return
    a, b = found.example
    text = (
        f"{found.count} of {found.n_cannot} cannot-links are between objects that must-links "
        f"join, such as {a} and {b}"
    )
    if on_conflict == "raise":
        raise ValueError(f"{text}; remove them, or give on_conflict='warn'")
    warn_user(f"{text}; not all constraints can be met")


def join(pairs, n, labels=None):
    """Return numbers of n objects, rising with first ones, equal where pairs or labels join.

    Behind them are those of the labels.
    """
    edges, _ = _joining(pairs, n, np.full(n, -1) if labels is None else labels)
    return connected_components(edges, directed=False)[1].astype(np.int64)


def _joining(pairs, n, labels):
    """Return the graph of n objects, and of labels behind them, that pairs and labels join."""
    known = np.flatnonzero(labels >= 0)
    kinds, kind = np.unique(labels[known], return_inverse=True)
    a, b = np.concatenate((pairs, np.column_stack((known, n + kind)))).T
    edges = csr_array((np.ones(a.size), (a, b)), shape=(n + kinds.size,) * 2)
    return edges, kinds


def _count_different(group, labels):
    """Count the pairs of objects in one group that have different labels."""

    def count(values):
        sizes = np.unique(values, return_counts=True, axis=0)[1]
        return int((sizes * (sizes - 1) // 2).sum())

    return count(group) - count(np.column_stack((group, labels)))


def _first_different(known, group, labels):
    """Return the first two objects of one group that have different labels."""
    _, places, groups = np.unique(group[known], return_index=True, return_inverse=True)
    firsts = known[places][groups]  # of the group of each
    others = np.flatnonzero(labels[known] != labels[firsts])
    at = others[np.argmin(firsts[others])]
    return int(firsts[at]), int(known[at])


def check_pairs(name, pairs, n):
    """Return pairs of different objects 0..n-1 as (p, 2) int64; n=None: of any objects.

    Of an (n, n) sparse matrix the entries other than 0 are the pairs. A vector of n labels, -1,
    NaN or None where there is none, stands for must-links between equal labels, in a chain, or for
    cannot-links between different ones.
    """
    values = np.empty((0, 2)) if pairs is None else _pair_array(name, pairs, n)
    if values.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if values.shape == (n,):
        return _pairs_of_vector(name, values)
    if values.ndim != 2 or values.shape[1] != 2:
        vector = "" if n is None else f", or {n} labels"
        raise ValueError(
            f"{name} must be pairs of objects, an array of shape (p, 2) or a sparse matrix{vector}"
            f"; got shape {values.shape}"
        )
    values = _check_indices(name, values)
    most = (MOST_OBJECTS if n is None else n) - 1
    outside = np.flatnonzero((values < 0).any(axis=1) | (values > most).any(axis=1))
    if outside.size:
        pair = ", ".join(
            str(v) if isinstance(v, int) else format(v, ".17g") for v in values[outside[0]].tolist()
        )
        allowed = "numbered from 0" if n is None else f"0..{n - 1}"
        raise ValueError(f"{name}: objects are {allowed}; got the pair ({pair})")
    values = values.astype(np.int64)
    alone = np.flatnonzero(values[:, 0] == values[:, 1])
    if alone.size:
        raise ValueError(f"{name} links object {values[alone[0], 0]} to itself")
    return values


def _pairs_of_vector(name, values):
    """Return the must-links, or else the cannot-links, that labels tell."""
    labels, _ = read_known_labels(values, values.size, name=name)
    if name == "cannot_link":
        return pairs_of_labels(labels, equal=False)
    known = np.flatnonzero(labels >= 0)
    order = known[np.argsort(labels[known], kind="stable")]
    chain = np.column_stack((order[:-1], order[1:]))
    return chain[labels[order[:-1]] == labels[order[1:]]]


def _pair_array(name, pairs, n):
    """Return the pairs as an array of whatever they hold."""
    if not issparse(pairs):
        return validation.to_array(name, pairs)
    if n is not None and pairs.shape != (n, n):
        raise ValueError(f"{name}: a sparse matrix must be {n} x {n}; got {pairs.shape}")
    with validation.naming(name):
        entries = coo_array(validation.check_structure(pairs))
    kept = entries.data != 0
    return np.column_stack([c[kept] for c in entries.coords])


def _check_indices(name, values):
    """Return an array of whole numbers, of whatever dtype; name the first value that is not one."""
    if values.dtype.kind == "O":
        wrong = [v for v in values.ravel() if not is_number(v)]
        values = values if wrong else values.astype(np.float64)
    else:
        wrong = [] if values.dtype.kind in "iuf" else values.ravel()
    if values.dtype.kind == "f":
        wrong = values[values != np.rint(values)]
    if len(wrong):
        value = plain(wrong[0])
        raise TypeError(f"{name} must hold the indices of objects; got {value!r}")
    return values


def find_conflicts(must, cannot):
    """Return the sorted rows of ``cannot`` whose objects chains of must-links join."""
    objects, must, cannot = renumber(must, cannot)
    a, b = join(must, objects.size)[cannot].T
    return np.flatnonzero(a == b)


def renumber(must, cannot):
    """Return the objects of pairs, rising, and the pairs with objects named by their place there.

    These numbers have no gaps: a stream may be long.
    """
    objects, places = np.unique(np.concatenate((must, cannot)), return_inverse=True)
    places = places.reshape(-1, 2)
    return objects, places[: len(must)], places[len(must) :]


def pairs_of_labels(labels, equal):
    """Return the pairs i < j, in order, of objects with equal, or different, known labels."""
    known = np.flatnonzero(labels >= 0)
    kinds = labels[known]
    n_pairs = _count_different(np.zeros_like(kinds), kinds)
    if equal:
        n_pairs = kinds.size * (kinds.size - 1) // 2 - n_pairs
    memory.refuse_beyond_free(
        n_pairs * BYTES_PER_PAIR,
        f"the known labels of {known.size} objects imply {n_pairs} pairs, which need",
        "make some of them -1, or give a few pairs as must_link and cannot_link",
    )
    pairs = np.empty((n_pairs, 2), dtype=np.int64)
    at = 0
    for i in range(known.size):
        others = known[i + 1 :][(kinds[i + 1 :] == kinds[i]) == equal]
        pairs[at : at + others.size, 0] = known[i]
        pairs[at : at + others.size, 1] = others
        at += others.size
    return pairs


def partner_lists(pairs, n):
    """Return the partners of every object in compressed rows, in the order of the pairs."""
    return compress(pairs.ravel(), pairs[:, ::-1].ravel(), n)


def compress(objects, partners, n):
    """Return the partners of the objects 0..n-1 in compressed rows, in the order given.

    Those of object i are partners[start[i] : start[i + 1]]: (n + 1,) and (p,) int64.
    """
    start = np.concatenate(([0], np.bincount(objects, minlength=n).cumsum()))
    return start, partners[np.argsort(objects, kind="stable")]


def unique_pairs(pairs):
    """Return the sorted pairs without repetitions, the lower object first."""
    return np.unique(np.sort(pairs, axis=1), axis=0)


def _each_once(pairs, n):
    """Return the pairs without repetitions in either order, in the order given."""
    _, first = np.unique(np.sort(pairs, axis=1) @ [n, 1], return_index=True)
    return pairs[np.sort(first)]
