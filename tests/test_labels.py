"""Known labels: their formats, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import adjusted_rand_score

from fastmmc.data.labels import (
    agreement,
    check_init,
    check_known_labels,
    integer_labels,
    matched_clusters,
    read_known_labels,
)
from fastmmc.kernels.gram import Kernel

FORMS = [
    lambda y: y,
    lambda y: y.tolist(),
    lambda y: y[:, None],
    lambda y: y.astype(object),
    lambda y: y.astype(float),
    lambda y: y.astype(np.int8),
    lambda y: pd.Series(y),
    lambda y: pd.DataFrame({"y": y}),
    lambda y: pd.Series(y).astype("Int64"),
    lambda y: pd.DataFrame({"y": y}).astype("Int64"),
]


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_known_labels(form):
    y = np.array([0, -1, 2, -1])
    assert check_known_labels(form(y), 4, 3).tolist() == y.tolist()


@pytest.mark.parametrize(
    "y",
    [
        np.array([0, np.nan, 1]),
        [0, None, 1],
        [0, np.nan, 1],
        [0, -1, np.float64(1)],
        pd.Series([0, None, 1]),
        pd.Series([0, None, 1], dtype="Int64"),
        pd.DataFrame({"y": [0, pd.NA, 1]}),
        np.array([[0.0], [np.nan], [1.0]]),
    ],
)
def test_unknown_labels(y):
    checked = check_known_labels(y, 3, 2)
    assert checked.dtype == np.int64 and checked.tolist() == [0, -1, 1]


def test_no_labels_at_all():
    assert check_known_labels(None, 3) is None
    assert check_known_labels([None, np.nan, -1], 3).tolist() == [-1, -1, -1]


@pytest.mark.parametrize(
    ("y", "value"),
    [
        ([0, -2, 1], "-2"),
        ([0, 0.5, np.nan], "0.5"),
        ([0, 3, -1], "3"),
        ([0, np.inf, 1], "inf"),
        ([0, 1e300, 1], "1e[+]300"),
        ([0, 2**70, 1], str(2**70)),
        (np.array([0, 2**64 - 1, 1], dtype=np.uint64), str(2**64 - 1)),
        ([False, True, False], "False"),
        ([None, True, -1], "True"),
        (["0", "1", "-1"], "'0'"),
        (["a", None, -1], "'a'"),
        ([0, 1 + 0j, 1], "0j"),
        (np.array(["NaT"] * 3, dtype="datetime64[s]"), "None"),
    ],
)
@pytest.mark.parametrize("k", [3, None])
def test_what_are_no_known_labels(y, value, k):
    if k is None and value == "3":
        return
    allowed = "0..2" if k else "from 0 on"
    with pytest.raises(ValueError, match=rf"^y must hold integers {allowed} .*got \(?{value}"):
        check_known_labels(y, 3, k, name="y")


@pytest.mark.parametrize(
    "y",
    [
        ["b", None, "a", -1, "b"],
        ["b", np.nan, "a", -1, "b"],
        np.array(["b", None, "a", np.nan, "b"], dtype=object),
        [["b"], [None], ["a"], [None], ["b"]],
        pd.Series(["b", None, "a", None, "b"]),
        pd.Series(["b", None, "a", None, "b"], dtype="string"),
        pd.Series(["b", None, "a", None, "b"], dtype="category"),
        pd.DataFrame({"y": ["b", None, "a", None, "b"]}),
    ],
)
def test_names(y):
    known, names = read_known_labels(y, 5, 3)
    assert known.tolist() == [1, -1, 0, -1, 1] and names.tolist() == ["a", "b", ""]


def test_numbers_have_no_names():
    known, names = read_known_labels([2, -1, None], 3, 3)
    assert known.tolist() == [2, -1, -1] and names is None
    assert read_known_labels(None, 3, 3) == (None, None)
    known, names = read_known_labels(np.array(["x", "y", "x"]), 3, 2)
    assert known.tolist() == [0, 1, 0] and names.tolist() == ["x", "y"]


def test_many_names_are_not_all_shown():
    y = [f"name {i}" for i in range(1200)]
    message = r"^y has 1,200 names \('name 0', .*, and 1,190 more\), more than the 2 clusters$"
    with pytest.raises(ValueError, match=message):
        read_known_labels(y, 1200, 2, name="y")


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["a", "b", "c"], r"^y has 3 names \('a', 'b', 'c'\), more than the 2 clusters"),
        (["a", 1, 0], "^y holds names, .*got 1 in row 1 and 1 more"),
        (["a", "-1", "b"], "^y holds a text for what is not known; got '-1' in row 1;"),
        (["a", "", "b"], "^y holds a text .*got '' in row 1"),
        (np.array(["a", np.nan, "b"]), "^y holds a text .*got 'nan' in row 1"),
        (["a", "b"], r"^y must have one label .*got shape \(2,\)"),
        ([0, 3, 3], "^y must hold integers 0..1 .*got 3 in row 1 and 1 more"),
    ],
)
def test_what_are_no_names(y, message):
    with pytest.raises(ValueError, match=message):
        read_known_labels(y, 3, 2, name="y")


def test_large_labels_stay_apart():
    """As floats these two would be equal."""
    y = np.array([2**53, 2**53 + 1, None], dtype=object)
    assert check_known_labels(y, 3).tolist() == [2**53, 2**53 + 1, -1]


def test_known_labels_have_one_column():
    with pytest.raises(ValueError, match=r"one label for each of the 2 points; got shape \(2, 2\)"):
        check_known_labels([[0, -1], [1, 1]], 2)


def test_small_examples():
    assert check_known_labels([1, -1, float("nan"), None], 4, k=2).tolist() == [1, -1, -1, -1]
    assert check_init([0, 1, 1], 3, 2, Kernel("rbf")).tolist() == [0, 1, 1]
    assert matched_clusters([0, 0, 1, 2], [2, 2, 0, 0], 3).tolist() == [2, 0, 1]
    labels = integer_labels("init", [0.0, 1.0], 2)
    assert labels.tolist() == [0, 1] and labels.dtype == np.int64


@pytest.mark.parametrize("weights", [None, np.arange(40) % 3], ids=["points", "weighted"])
def test_agreement_is_the_adjusted_rand_index(weights):
    rng = np.random.default_rng(0)
    labellings = [rng.integers(4, size=40) for _ in range(5)] + [np.zeros(40, int)] * 2
    repeated = [np.repeat(labels, 1 if weights is None else weights) for labels in labellings]
    wanted = [[adjusted_rand_score(a, b) for b in repeated] for a in repeated]
    assert_allclose(agreement(labellings, 4, weights), wanted, atol=1e-12)
