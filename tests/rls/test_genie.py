"""Genie's compiled loops against their twins."""

import numpy as np
import pytest
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial.distance import cdist

import fastmmc
from fastmmc.choice.widths import cosine_distances
from fastmmc.rls.engine import _loops_trees as loops
from tests.rls import naive


def spanning_tree(D):
    first, second = np.empty((2, len(D) - 1), dtype=np.int64)
    length = np.empty(len(D) - 1)
    loops.spanning_tree(D, first, second, length)
    return first, second, length


def test_spanning_tree_is_the_least(rng):
    D = cdist(*[rng.standard_normal((40, 2))] * 2)
    first, second, length = spanning_tree(D)
    np.testing.assert_array_equal(length, D[first, second])
    least = minimum_spanning_tree(D)
    np.testing.assert_allclose(np.sort(length), np.sort(least.data), rtol=1e-14)


def test_cosine_distances_are_those_of_the_twin(rng):
    R = fastmmc.factor(rng.standard_normal((30, 2))).R
    wanted = naive.hat_distances(R)
    np.fill_diagonal(wanted, 0.0)
    np.testing.assert_allclose(cosine_distances(R), wanted, atol=1e-12)


@pytest.mark.parametrize("most_gini", [0.0, 0.1, 0.3, 0.7, 1.0])
@pytest.mark.parametrize("n", [2, 3, 30])
def test_merges_are_in_the_order_of_the_twin(n, most_gini, rng):
    first, second, length = spanning_tree(cdist(*[rng.standard_normal((n, 2))] * 2))
    edges = np.stack([first, second])[:, np.argsort(length)]
    order = np.empty(n - 1, dtype=np.int64)
    loops.order_merges(*edges, most_gini, order)
    np.testing.assert_array_equal(order, naive.genie_order(*edges, most_gini))
