"""What is in each cluster."""

import itertools
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

import fastmmc


def given(labels):
    """Return a result with these labels; nothing else of it plays a part."""
    labels = np.asarray(labels)
    made = fastmmc.sammc(np.arange(labels.size)[:, None], 1, random_state=0)
    return replace(made, labels=labels, sizes=np.bincount(labels[labels >= 0]))


def records(labels, X):
    """Return the records by cluster and column."""
    made = given(labels).profile(X).records()
    return {(one["cluster"], one["column"]): one for one in made}


def interval_difference(own, others):
    """Try every interval between values, the ends included."""
    ends = [-np.inf, *np.unique(np.r_[own, others])]
    shares = [
        abs(((a < own) & (own <= b)).mean() - ((a < others) & (others <= b)).mean())
        for a, b in itertools.combinations(ends, 2)
    ]
    return max(shares)


@pytest.mark.parametrize("seed", range(20))
def test_the_difference_is_that_of_the_best_interval_or_set(seed):
    rng = np.random.default_rng(seed)
    labels = np.r_[0, 1, 2, rng.integers(-1, 3, 37)]
    numbers = np.round(rng.standard_normal(40) + 0.7 * labels, rng.integers(3))
    numbers[rng.random(40) < 0.1] = np.nan
    texts = rng.choice(list("abc"), 40)
    found = records(labels, pd.DataFrame({"number": numbers, "text": texts}))
    known = (labels >= 0) & ~np.isnan(numbers)
    for h in range(3):
        own, others = numbers[known & (labels == h)], numbers[known & (labels != h)]
        of_numbers = found[h, "number"]
        assert of_numbers["difference"] == pytest.approx(interval_difference(own, others))
        assert of_numbers["median"] == pytest.approx(np.median(own))
        assert of_numbers["median_of_all"] == pytest.approx(np.median(numbers[known]))
        assert of_numbers["missing"] == pytest.approx(np.isnan(numbers[labels == h]).mean())
        mine, rest = texts[labels == h], texts[(labels >= 0) & (labels != h)]
        shares = {
            subset: np.isin(mine, subset).mean() - np.isin(rest, subset).mean()
            for size in range(4)
            for subset in itertools.combinations("abc", size)
        }
        of_texts = found[h, "text"]
        assert of_texts["difference"] == pytest.approx(max(shares.values()))
        category = of_texts["category"]
        assert of_texts["share_in_cluster"] == (mine == category).mean()
        assert all((mine == other).sum() <= (mine == category).sum() for other in "abc")
        assert of_texts["share_of_all"] == pytest.approx((texts[labels >= 0] == category).mean())


def test_a_cluster_in_the_middle_differs_as_those_at_the_ends():
    labels = np.repeat([0, 1, 2], 20)
    found = records(labels, (10.0 * labels + np.random.default_rng(0).random(60))[:, None])
    assert [found[h, "column 0"]["difference"] for h in range(3)] == [1.0, 1.0, 1.0]


def test_units_and_extremes_change_no_difference(rng):
    labels = np.repeat([0, 1], 30)
    x = rng.random(60) + 0.5 * labels
    far = np.where(x == x.max(), 1e12, x)
    found = records(labels, np.column_stack([x, 1000 * x + 3, np.exp(x), far]))
    assert len({found[0, f"column {j}"]["difference"] for j in range(4)}) == 1


def test_what_made_the_clusters_comes_first(rng):
    frame = pd.DataFrame(rng.standard_normal((90, 7)), columns=list("abcdefg"))
    frame["e"] += 9.0 * np.repeat([0, 1, 2], 30)
    result = fastmmc.cluster(frame, 3, random_state=0)
    profile = result.profile(frame)
    table = profile.to_frame()
    assert table.groupby("cluster").first()["column"].tolist() == ["e", "e", "e"]
    assert len(table) == 3 * 7 and table["size"].tolist() == np.repeat(result.sizes, 7).tolist()
    text = str(profile)
    assert text.count("  typical rows") == 3 and "Columns that differ less are not shown" in text
    assert [rows.tolist() for rows in profile.typical] == [e[:5].tolist() for e in result.exemplars]


def test_every_kind_of_column_is_shown_and_what_is_left_out_is_said():
    labels = np.repeat([0, 1, -1], [6, 5, 2])
    frame = pd.DataFrame(
        {
            "id": range(1, 14),
            "same": "x",
            "day": pd.Timestamp("2024-03-01") + pd.to_timedelta(40 * labels, "D"),
            "at": [f"{8 + 4 * h:02d}:30" for h in labels],
            "when": pd.Timestamp("2024-03-01 06:00") + pd.to_timedelta(labels, "h"),
            "answer": labels == 1,
            "gone": np.where(labels == 0, np.nan, labels),
            "code": pd.Categorical(np.where(labels == 0, None, "s")),
        }
    )
    profile = given(labels).profile(frame)
    text = str(profile)
    for line in (
        "11 points in 2 clusters, by 6 columns",
        "cluster 0: 6 points, 54.5%",
        "day     1.00  2024-03-01; of all 2024-03-01 (2024-03-01 to 2024-04-10)",
        "at      1.00  08:30; of all 08:30 (08:30 to 12:30)",
        "when    1.00  2024-03-01 07:00; of all 2024-03-01 06:00 (2024-03-01 06:00 to",
        "answer  1.00  False: 100%; of all 55%",
        "2 points in no cluster did not count.",
        "Column 'id' is left out, as it holds ids of the rows.",
        "Column 'same' is left out, as it is 'x' in all rows.",
    ):
        assert line in text
    found = {(one["cluster"], one["column"]): one for one in profile.records()}
    assert found[0, "gone"]["median"] is None and found[0, "gone"]["missing"] == 1.0
    assert found[0, "code"]["category"] is None and found[1, "code"]["category"] == "s"
    assert found[1, "day"]["median"] == "2024-04-10"
    html = profile._repr_html_()
    assert html.count("<table") == 2 and "2 points in no cluster" in html and "nan" not in text
    assert repr(profile) == "ClusterProfile(11 points in 2 clusters, by 6 columns)"


def test_columns_that_made_the_clusters_are_not_left_out(rng):
    y = np.arange(60) % 2
    frame = pd.DataFrame({"id": np.arange(60), "a": rng.normal(size=60) + 9 * y, "same": 1.0})
    result = fastmmc.sammc(frame.to_numpy(), 2, random_state=0)
    profile = result.profile(frame.to_numpy())
    assert [column.name for column in profile.columns] == [f"column {j}" for j in range(3)]
    assert not profile.not_used
    assert fastmmc.sammc(frame[["a", "same"]], 2).profile(frame[["a", "same"]]).not_used == {}
    numbered = pd.DataFrame(frame[["a", "same"]].to_numpy())
    assert fastmmc.sammc(numbered, 2, random_state=0).profile(numbered).not_used == {}
    # Ids and constants of another table tell nothing.
    assert result.profile(frame).not_used.keys() == {"id", "same"}
    with pytest.warns(UserWarning, match="not used: 'id' is left out"):
        left_out = fastmmc.sammc(frame, 2, random_state=0)
    assert left_out.profile(frame).not_used.keys() == {"id", "same"}
    # A column of the same name may have other cells now.
    named = frame.assign(a=np.array(["low", "high"])[y])
    assert "low: 100%" in str(left_out.profile(named))


def test_one_cluster_and_equal_names():
    frame = pd.DataFrame(np.arange(20.0).reshape(10, 2) ** 2, columns=["a", "a"])
    found = records(np.zeros(10, int), frame)
    assert found.keys() == {(0, "a (0)"), (0, "a (1)")}
    assert found[0, "a (1)"]["difference"] == 0.0


@pytest.mark.parametrize("name", fastmmc.METHODS)
def test_every_method_has_one(name):
    method = fastmmc.METHODS[name]
    for extra in method.needs:
        pytest.importorskip(extra)
    X = np.random.default_rng(0).random((20, 2)) + np.repeat([[0], [9]], 10, axis=0)
    result = method.function(X) if method.binary else method.function(X, 2)
    profile = result.profile(X.tolist())
    assert profile.sizes.tolist() == result.sizes.tolist()
    assert (profile.typical is None) == (not hasattr(result, "exemplars"))


def test_wrong_calls(monkeypatch):
    result = given([0, 0, 1, 1])
    X = np.arange(8.0).reshape(4, 2)
    with pytest.raises(ValueError, match="X has 3 rows, and the result 4 points"):
        result.profile(X[:3])
    with pytest.raises(TypeError, match="X is sparse"):
        result.profile(csr_array(X))
    with pytest.raises(ValueError, match="two dimensions"):
        result.profile(X[0])
    with pytest.raises(ValueError, match="column 'column 1' holds infinite values"):
        result.profile(np.where(X == 3, np.inf, X))
    for nothing in (pd.DataFrame(index=range(4)), X[:, :0]):
        with pytest.raises(ValueError, match="X has no columns"):
            result.profile(nothing)
    with pytest.raises(ValueError, match="X has masked values"):
        result.profile(np.ma.masked_greater(X, 3.0))
    dask = pytest.importorskip("dask.array")
    with pytest.raises(TypeError, match="X is in blocks"):
        result.profile(dask.from_array(X))
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="to_frame needs pandas"):
        result.profile(X).to_frame()


def test_a_table_of_which_no_column_is_used():
    """A report of texts has their column beside their vectors, in which the clusters were found."""
    told = str(given([0, 0, 1, 1]).profile(pd.DataFrame({"text": ["a b", "b c", "c d", "d e"]})))
    assert "4 points in 2 clusters" in told
    assert "Column 'text' is left out, as its texts differ in all rows." in told


def test_columns_of_equal_names_in_every_library():
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table([[1.0, 1.0, 5.0, 5.0], [2.0, 2.0, 2.5, 2.5]], names=["x", "x"])
    told = given([0, 0, 1, 1]).profile(table)
    assert "x (0)" in str(told) and "x (1)" in str(told)
