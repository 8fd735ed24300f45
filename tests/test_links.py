"""Must-links and cannot-links: one format, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import coo_array, csr_matrix
from sklearn.exceptions import ConvergenceWarning

from fastmmc.core import memory
from fastmmc.data.links import (
    check_links,
    check_pairs,
    find_conflicts,
    find_contradictions,
    pairs_of_labels,
    partner_lists,
    unique_pairs,
)

PAIRS = [(0, 1), (3, 2)]


@pytest.mark.parametrize(
    "given",
    [
        PAIRS,
        np.array(PAIRS),
        np.array(PAIRS, dtype=float),
        np.array(PAIRS, dtype=np.uint8),
        pd.DataFrame(PAIRS),
        pd.DataFrame(PAIRS).astype("Int64"),
        np.array(PAIRS, dtype=object),
        coo_array(([1.0, 1.0], ([0, 3], [1, 2])), shape=(4, 4)),
        csr_matrix(([1.0, 1.0, 0.0], ([0, 3, 2], [1, 2, 2])), shape=(4, 4)),
    ],
    ids=["tuples", "array", "floats", "bytes", "frame", "nullable", "objects", "coo", "csr"],
)
def test_formats(given):
    assert check_pairs("must_link", given, 4).tolist() == [[0, 1], [3, 2]]


@pytest.mark.parametrize("given", [None, [], (), np.empty((0, 2)), coo_array((4, 4))])
def test_none_at_all(given):
    assert check_pairs("must_link", given, 4).shape == (0, 2)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ([(0, 4)], ValueError, r"must_link: objects are 0..3; got the pair \(0, 4\)"),
        ([(-1, 2)], ValueError, r"objects are 0..3; got the pair \(-1, 2\)"),
        ([(2, 2)], ValueError, "must_link links object 2 to itself"),
        ([(0, 1, 2)], ValueError, r"pairs.*shape \(1, 3\)"),
        ([0, 1], ValueError, r"pairs.*shape \(2,\)"),
        ([(0.5, 1)], TypeError, "must_link must hold the indices of objects; got 0.5"),
        ([(1, np.nan)], TypeError, "indices of objects; got nan"),
        ([("a", "b")], TypeError, "indices of objects; got 'a'"),
        ([(True, False)], TypeError, "indices of objects; got True"),
        ([(0, None)], TypeError, "indices of objects; got None"),
        ([(0, pd.NA)], TypeError, "indices of objects; got <NA>"),
        ([(0, np.inf)], ValueError, r"objects are 0..3; got the pair \(0, inf\)"),
        ([(0, 1e30)], ValueError, r"objects are 0..3; got the pair \(0, 1e\+30\)"),
        (
            np.array([(0, 2**63)], np.uint64),
            ValueError,
            r"objects are 0..3; got the pair \(0, 9223372036854775808\)",
        ),
        ([(0, 1), (2,)], ValueError, "must_link must be an array; got rows of different lengths"),
        (coo_array((3, 3)), ValueError, r"4 x 4; got \(3, 3\)"),
        (5, ValueError, "pairs"),
    ],
)
def test_bad_pairs(given, error, message):
    with pytest.raises(error, match=message):
        check_links(given, None, 4)


def test_repetitions_count_once_whichever_way_round():
    links = check_links([(0, 1), (1, 0), (0, 1)], [(3, 2), (0, 2), (2, 3)], 4)
    assert links.must.tolist() == [[0, 1]]
    assert links.cannot.tolist() == [[3, 2], [0, 2]]


def test_a_symmetric_matrix_gives_each_pair_once():
    graph = np.zeros((4, 4))
    graph[0, 1] = graph[1, 0] = graph[2, 3] = 1
    assert check_links(None, csr_matrix(graph), 4).cannot.tolist() == [[0, 1], [2, 3]]


def test_contradictions_are_found_through_chains():
    chain = [(0, 1), (1, 2), (2, 3)]
    with pytest.raises(ValueError, match="1 of 2 cannot-links.*such as 0 and 3.*on_conflict"):
        check_links(chain, [(4, 0), (0, 3)], 5)
    with pytest.warns(ConvergenceWarning, match="1 of 2 cannot-links"):
        links = check_links(chain, [(4, 0), (0, 3)], 5, on_conflict="warn")
    assert links.n_conflicts == 1 and len(links.cannot) == 2


def test_partial_labels():
    y = [5, -1, 2, 5]
    assert check_links(None, None, 4, known_labels=y).cannot.tolist() == [[0, 2], [2, 3]]
    assert len(check_links(None, None, 4, known_labels=y).must) == 0
    assert check_links(None, None, 4, known_labels=y, labels_as="must_link").must.tolist() == [
        [0, 3]
    ]
    assert len(check_links(None, None, 4, known_labels=y, labels_as="must_link").cannot) == 0
    both = check_links(None, [(1, 0), (2, 0)], 4, known_labels=y, labels_as="both")
    assert both.must.tolist() == [[0, 3]]
    assert both.cannot.tolist() == [[1, 0], [2, 0], [2, 3]]
    with pytest.raises(ValueError, match="must-links join"):
        check_links([(0, 2)], None, 4, known_labels=y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"known_labels": [0, 1]}, "known_labels must have one label for each of the 4"),
        ({"known_labels": [-2, 0, 1, 1]}, "known_labels must hold integers from 0 on.*got -2"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        check_links(None, None, 4, **options)


def test_any_number_of_objects():
    assert check_pairs("must_link", [(0, 10**18)], None).tolist() == [[0, 10**18]]
    with pytest.raises(ValueError, match=r"numbered from 0; got the pair \(0, 1e\+30\)"):
        check_pairs("must_link", [(0, 1e30)], None)


@pytest.mark.filterwarnings("ignore:.*cannot-links")
@pytest.mark.parametrize("labels_as", ["cannot_link", "must_link", "both"])
@pytest.mark.parametrize("seed", range(20))
def test_labels_are_the_pairs_that_they_imply(labels_as, seed):
    """Of contradictions as well, though these are found without the pairs."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(-1, 3, size=9)
    must, cannot = (rng.integers(9, size=(m, 2)) for m in rng.integers(1, 4, size=2))
    must, cannot = (p[p[:, 0] != p[:, 1]] for p in (must, cannot))
    all_must, all_cannot = must.tolist(), cannot.tolist()
    for i in range(9):
        for j in range(i + 1, 9):
            if labels[i] >= 0 and labels[j] >= 0:
                if labels[i] == labels[j] and labels_as != "cannot_link":
                    all_must.append([i, j])
                if labels[i] != labels[j] and labels_as != "must_link":
                    all_cannot.append([i, j])
    expected = check_links(all_must, all_cannot, 9, on_conflict="warn")
    found = check_links(
        must, cannot, 9, known_labels=labels, labels_as=labels_as, on_conflict="warn"
    )
    np.testing.assert_array_equal(found.must, expected.must)
    np.testing.assert_array_equal(found.cannot, expected.cannot)
    conflicts = find_conflicts(expected.must, expected.cannot)
    assert found.n_conflicts == expected.n_conflicts == conflicts.size
    told = find_contradictions(unique_pairs(must), unique_pairs(cannot), labels, labels_as)
    assert (told.count, told.n_cannot) == (conflicts.size, len(expected.cannot))
    if conflicts.size:
        pairs = {tuple(sorted(p)) for p in expected.cannot[conflicts].tolist()}
        assert tuple(sorted(told.example)) in pairs


def test_pairs_that_do_not_fit_into_memory_are_not_made(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 10**6)
    y = np.arange(1000) % 2
    with pytest.raises(MemoryError, match="1000 objects imply 250000 pairs.*make some of them -1"):
        check_links(None, None, 1000, known_labels=y)
    assert len(pairs_of_labels(y[:20], False)) == 100


def test_violations_are_counted():
    links = check_links([(0, 1), (1, 2)], [(0, 3), (2, 3)], 4)
    assert links.n_violations(np.array([0, 0, 0, 1])) == 0
    assert links.n_violations(np.array([0, 1, 0, 0])) == 4


def test_partner_lists_hold_every_pair_twice(rng):
    pairs = np.array([rng.choice(9, 2, replace=False) for _ in range(20)])
    start, partners = partner_lists(pairs, 9)
    for i in range(9):
        expected = [b if a == i else a for a, b in pairs.tolist() if i in (a, b)]
        assert partners[start[i] : start[i + 1]].tolist() == expected


def test_small_examples():
    links = check_links([(0, 1)], None, 4, known_labels=[0, -1, 1, 1])
    assert links.must.tolist() == [[0, 1]] and links.cannot.tolist() == [[0, 2], [0, 3]]
    must, cannot = np.array([[0, 1]]), np.array([[2, 0]])
    assert find_contradictions(must, cannot, np.array([3, 4, 3])).count == 1
    assert check_pairs("must_link", [(0, 1)], 2).tolist() == [[0, 1]]
    must, cannot = np.array([[0, 1], [1, 2]]), np.array([[2, 3], [2, 0]])
    assert find_conflicts(must, cannot).tolist() == [1]
    labels = np.array([0, -1, 1, 1])
    assert pairs_of_labels(labels, True).tolist() == [[2, 3]]
    assert pairs_of_labels(labels, False).tolist() == [[0, 2], [0, 3]]
    start, partners = partner_lists(np.array([[0, 2], [1, 2]]), 3)
    assert start.tolist() == [0, 1, 2, 4] and partners.tolist() == [2, 2, 0, 1]
    assert unique_pairs(np.array([[3, 1], [0, 2], [1, 3]])).tolist() == [[0, 2], [1, 3]]
