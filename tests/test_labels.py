"""Known labels: their formats, and what is refused."""

import numpy as np
import pandas as pd
import pytest

from fastmmc.gram import Kernel
from fastmmc.labels import check_init, check_known_labels, integer_labels

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
    labels = integer_labels("init", [0.0, 1.0], 2)
    assert labels.tolist() == [0, 1] and labels.dtype == np.int64
