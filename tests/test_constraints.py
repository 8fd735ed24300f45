"""Must-links and cannot-links: one format, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import coo_array, csr_matrix
from sklearn.exceptions import ConvergenceWarning

from fastmmc.constraints import check_links, check_pairs, partner_lists

PAIRS = [(0, 1), (3, 2)]


@pytest.mark.parametrize(
    "given",
    [
        PAIRS,
        np.array(PAIRS),
        np.array(PAIRS, dtype=float),
        np.array(PAIRS, dtype=np.uint8),
        pd.DataFrame(PAIRS),
        coo_array(([1.0, 1.0], ([0, 3], [1, 2])), shape=(4, 4)),
        csr_matrix(([1.0, 1.0, 0.0], ([0, 3, 2], [1, 2, 2])), shape=(4, 4)),
    ],
    ids=["tuples", "array", "floats", "bytes", "frame", "coo", "csr"],
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
        ([(0.5, 1)], TypeError, "indices"),
        ([(np.nan, 1)], TypeError, "indices"),
        ([("a", "b")], TypeError, "indices"),
        ([(True, False)], TypeError, "indices"),
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
    assert check_links(None, None, 4, y=y).cannot.tolist() == [[0, 2], [2, 3]]
    assert len(check_links(None, None, 4, y=y).must) == 0
    assert check_links(None, None, 4, y=y, labels_as="must_link").must.tolist() == [[0, 3]]
    assert len(check_links(None, None, 4, y=y, labels_as="must_link").cannot) == 0
    both = check_links(None, [(1, 0), (2, 0)], 4, y=y, labels_as="both")
    assert both.must.tolist() == [[0, 3]]
    assert both.cannot.tolist() == [[1, 0], [2, 0], [2, 3]]
    with pytest.raises(ValueError, match="must-links join"):
        check_links([(0, 2)], None, 4, y=y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"y": [0, 1]}, "one label for each of the 4"),
        ({"y": [-2, 0, 1, 1]}, "unknown ones -1; got -2"),
        ({"labels_as": "links"}, "labels_as must be one of"),
        ({"on_conflict": "ignore"}, "on_conflict must be one of"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        check_links(None, None, 4, **options)


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
