"""Tables with columns of any kind: what they become, in Python and from new rows."""

import inspect
import warnings
from datetime import date, time, timedelta
from decimal import Decimal
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
from scipy.stats import skew
from sklearn.impute import KNNImputer
from sklearn.metrics import adjusted_rand_score

import fastmmc
from fastmmc.data import cells
from fastmmc.data.coding import as_frame, fit_coding, learn_coding
from fastmmc.data.columns import CATEGORY_DISTANCE, CYCLES, MISSING_DISTANCE, _turns
from fastmmc.data.frames import read_series

N = 90
COUNTS = (2, 3, 5, 10, 30, 100, 600)


def mixed(seed=0, n=N):
    """Return a frame of many kinds and the clusters in its numbers."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    frame = pd.DataFrame(
        {
            "customer_id": rng.permutation(n) + 5_000,
            "height": rng.normal(size=n) + 9 * y,
            "price": 1_000 * rng.normal(size=n) + 9_000 * (y == 1),
            "town": np.array(["Ulm", "Bonn", "Kiel"])[rng.integers(0, 3, n)],
            "member": rng.random(n) < 0.5,
            "joined": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
            "name": [f"name {i}" for i in range(n)],
            "always": 7,
        }
    )
    frame.loc[::11, "height"] = np.nan
    frame.loc[::7, "town"] = None
    return frame, y


def libraries(frame):
    """Yield the frame as each library that is there has it."""
    yield frame
    yield frame.convert_dtypes()
    yield frame.astype({"town": "category"})
    for name, make in (
        ("polars", lambda module: module.from_pandas(frame)),
        ("pyarrow", lambda module: module.Table.from_pandas(frame)),
    ):
        if find_spec(name):
            yield make(import_module(name))
    if find_spec("pyarrow"):
        yield import_module("pyarrow").RecordBatch.from_pandas(frame)


@pytest.fixture
def quiet():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "columns of X are not used")
        warnings.filterwarnings("ignore", ".*read as missing")
        yield


def words(coding):
    return {column.name: column.said for column in coding.columns}


def test_every_kind_is_told():
    frame, y = mixed()
    with pytest.warns(UserWarning, match="'customer_id' is left out, as it holds ids") as told:
        result = fastmmc.cluster(frame, 3, random_state=0)
    assert "'name' is left out, as its texts differ in all rows" in str(told[0].message)
    assert told[0].filename == __file__
    known = frame["height"].notna()
    assert adjusted_rand_score(y[known], result.labels[known]) == 1
    said = words(result.coding)
    assert said["height"].startswith("numbers, scaled; 9 of 90 missing: as in similar rows")
    assert said["price"] == "numbers, scaled"
    assert said["town"] == "3 categories; 13 of 90 missing: no category"
    assert said["member"] == "2 categories"
    assert said["joined"] == "dates, as a number and day of the week"
    assert said["always"] == "left out, as it is 7 in all rows"
    assert list(said) == list(frame) and str(result.coding).count("\n") == 7
    assert result.feature_names_in.tolist() == list(frame)
    assert result.model.n_features == result.coding.n_features == len(result.coding.features)


def test_a_date_has_the_same_place_in_all_years():
    dates = pd.date_range("1960-01-01", "2031-12-31", freq="6h")
    days = (dates - pd.Timestamp(0)) / pd.Timedelta("1D")
    of_leap_year = pd.to_datetime("2020-" + dates.strftime("%m-%d %H:%M"))
    expected = (of_leap_year - pd.Timestamp("2020")) / pd.Timedelta("366D")
    found = _turns(days.to_numpy(), CYCLES["time of year"])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(_turns(days.to_numpy(), 7.0), days / 7)
    found = _turns(np.array([np.nan, 0.0]), CYCLES["time of year"])
    assert np.isnan(found).tolist() == [True, False]


def test_all_libraries_are_coded_alike(quiet):
    frame, _ = mixed()
    expected = learn_coding(frame)[0]
    for other in libraries(frame):
        X, coding = learn_coding(other)
        np.testing.assert_allclose(X, expected)
        np.testing.assert_allclose(coding.code(frame)[0], X)


@pytest.mark.parametrize("method", fastmmc.METHODS.values(), ids=lambda method: method.name)
def test_every_method_takes_tables(method, quiet):
    frame, _ = mixed(n=24)
    params = inspect.signature(method.function).parameters
    k = {"k": 2} if "k" in params else {}
    given = {"random_state": 0} if "random_state" in params else {}
    result = method.function(frame, **k, **given)
    X, coding = learn_coding(frame)
    assert words(result.coding) == words(coding)
    assert result.labels.shape == (24,)
    if result.model is None:
        return
    np.testing.assert_array_equal(
        result.predict(frame), method.function(X, **k, **given).predict(X)
    )
    n = {"n_clusters": 2} if "k" in params else {}
    model = method.estimator(**n, **given).fit(frame)
    np.testing.assert_array_equal(model.predict(frame), result.predict(frame))
    assert model.n_features_in_ == frame.shape[1]
    assert model.feature_names_in_.tolist() == list(frame)


def test_saved_codings_predict_the_same(tmp_path, quiet):
    frame, _ = mixed()
    for made in (
        fastmmc.cluster(frame, 3, random_state=0),
        fastmmc.UMCRLS(3, random_state=0).fit(frame),
        fastmmc.WTA(3, random_state=0).fit(frame),
    ):
        made.save(tmp_path / "model.npz")
        again = fastmmc.load(tmp_path / "model.npz")
        np.testing.assert_array_equal(again.predict(frame), made.predict(frame))
        # Columns that are left out need not be there, nor must the order be the same.
        rest = frame.drop(columns=["customer_id", "name", "always"])
        np.testing.assert_array_equal(again.predict(rest[rest.columns[::-1]]), made.predict(frame))


def test_columns_alike_are_told_of_together():
    few, each = [[f"text {max(i, least)}" for i in range(N)] for least in (5, 0)]
    columns = {"a": 7, "b": 7, "c": few, "d": few, "e": range(N), "f": range(N)}
    coding = fit_coding(as_frame(pd.DataFrame(columns | {"g": each, "h": each, "i": [1, 2] * 45})))
    assert coding.lines() == [
        "columns 'a' to 'b' (2): left out, as each is 7 in all rows",
        "columns 'c' to 'd' (2): left out, as each has 85 different texts, most of them in few "
        "rows",
        "columns 'e' to 'f' (2): left out, as each holds ids of the rows",
        "columns 'g' to 'h' (2): left out, as their texts differ in all rows",
        "column 'i': numbers",
    ]


def test_columns_of_equal_names_are_matched_by_place():
    frame = pd.DataFrame({"a": np.arange(30.0) % 7, "t": ["u", "v"] * 15, "c": np.arange(30) % 11})
    X, coding = learn_coding(frame.set_axis(["a", "t", "a"], axis=1))
    for names in (["a", "t", "a"], ["a", "t", "a.1"]):
        np.testing.assert_array_equal(coding.code(frame.set_axis(names, axis=1))[0], X)


def test_few_cells_tell_the_order_of_days_and_months():
    ambiguous = [f"{1 + i % 12:02d}/{1 + i // 12 % 12:02d}/{2000 + i % 20}" for i in range(199)]
    for clear, form in (("25/03/2005", "%d/%m/%Y"), ("03/25/2005", "%m/%d/%Y")):
        texts = [*ambiguous[:50], clear, *ambiguous[50:]]
        frame = pd.DataFrame({"day": texts, "a": np.arange(200) % 7 + 0.5})
        coding = fit_coding(as_frame(frame))
        assert coding.columns[0].form == form
        assert not any(word in words(coding)["day"] for word in ("' as ", "missing"))
    # The example is a cell whose two readings differ.
    frame = pd.DataFrame({"day": ambiguous, "a": np.arange(199) % 7 + 0.5})
    assert "'02/01/2001' read as 2001-02-01" in words(fit_coding(as_frame(frame)))["day"]


def test_new_rows_that_lack_something(quiet):
    frame, _ = mixed()
    result = fastmmc.cluster(frame, 3, random_state=0)
    with pytest.raises(ValueError, match="lacks the columns 'town', 'member'"):
        result.predict(frame.drop(columns=["town", "member"]))
    with pytest.raises(ValueError, match="column 'height' holds dates; expected numbers"):
        result.predict(frame.assign(height=frame["joined"]))
    with pytest.warns(UserWarning, match="column 'town': 90 cells such as 'Rom' not seen before"):
        labels = result.predict(frame.assign(town="Rom"))
    np.testing.assert_array_equal(labels, result.labels)
    with pytest.warns(UserWarning, match="column 'price': 90 cells such as 'x' read as missing"):
        result.predict(frame.assign(price="x"))
    assert result.predict(frame.assign(price=None)).shape == (N,)


def test_categories_are_equally_far_whatever_their_number():
    for n_levels in (2, 3, 9):
        town = np.array(list("abcdefghi"))[np.arange(N) % n_levels]
        X, _ = learn_coding(pd.DataFrame({"a": np.arange(N) % 7 + 0.5, "town": town}))
        assert X.shape[1] == 1 + n_levels
        apart = np.linalg.norm(X[0, 1:] - X[1, 1:])
        assert apart == pytest.approx(CATEGORY_DISTANCE)


def test_rare_categories_count_as_one():
    town = ["Ulm"] * 150 + ["Bonn"] * 140 + [f"village {i}" for i in range(10)]
    X, coding = learn_coding(pd.DataFrame({"a": np.arange(300) % 7 + 0.5, "town": town}))
    assert words(coding)["town"] == "12 categories, of which 10 in few rows count as one"
    assert X.shape == (300, 3) and not X[290:, 1:].any()
    assert coding.code(pd.DataFrame({"a": [1], "town": ["village 3"]}))[1] == []
    few = [f"village {i}" for i in range(150)] * 2
    with pytest.warns(UserWarning, match="150 different texts, most of them in few rows"):
        X, coding = learn_coding(pd.DataFrame({"a": np.arange(300) % 7 + 0.5, "town": few}))
    assert X.shape == (300, 1) and not coding.is_scaled


def test_numbers_keep_their_units_among_themselves():
    frame = pd.DataFrame({"a": [1.0, 2.0, np.nan, 9.0], "b": [100, 250, 300, 100]})
    X, coding = learn_coding(frame)
    deviation = np.std([1.0, 2.0, 9.0])
    expected = [[1, 0, 100], [2, 0, 250], [4, MISSING_DISTANCE * deviation, 300], [9, 0, 100]]
    np.testing.assert_allclose(X, expected)
    assert not coding.is_scaled
    X, coding = learn_coding(frame, scaled=True)
    for known in (X[[0, 1, 3], 0], X[:, 2]):
        assert known.mean() == pytest.approx(0, abs=1e-12) and known.std() == pytest.approx(1)


def test_numbers_that_reach_far_lose_their_skewness():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"amount": np.exp(rng.normal(3, 2, 400)), "town": ["x", "y"] * 200})
    for unit in (1e-6, 1.0, 1e6):
        X, coding = learn_coding(frame.assign(amount=unit * frame["amount"]))
        assert abs(skew(X[:, 0])) < 0.5 < skew(frame["amount"])
        assert X[:, 0].std() == pytest.approx(1)
        assert (np.argsort(X[:, 0]) == np.argsort(frame["amount"])).all()
        far = pd.DataFrame({"amount": [-1e9, 0.0, 1e300], "town": "x"})
        assert np.isfinite(coding.code(far)[0]).all()


def test_a_number_whose_square_overflows_is_named():
    frame = pd.DataFrame({"a": [0.0, 1.0, 2.0, 5.0], "b": [0.0, 3.0, 1e200, 4.0]})
    message = r"column 'b' holds 1e\+200, whose square overflows, in row 2 .from 0.; give smaller"
    for columns in (frame, frame.astype({"a": np.float32})):
        with pytest.raises(ValueError, match=message):
            learn_coding(columns)


def test_numbers_of_few_values_weigh_as_categories():
    towns = np.array(["x", "y"])[np.arange(600) // 2 % 2]
    frame = pd.DataFrame({"few": np.arange(600) % 2, "town": towns})
    X, _ = learn_coding(frame)
    few = abs(X[0, 0] - X[1, 0])
    assert few == pytest.approx(CATEGORY_DISTANCE, rel=0.02)
    # More values, each of them rarer, come to the deviation 1 without a step.
    deviations = [
        learn_coding(frame.assign(few=7 * np.arange(600) % k / 2))[0][:, 0].std() for k in COUNTS
    ]
    assert (np.diff(deviations) > 0).all() and deviations[-1] == pytest.approx(1)


@pytest.mark.parametrize("n_dates", [2, 3, 4, 6, 12])
def test_few_different_dates_do_not_decide(n_dates):
    """They have gaps, and had more in the week; the index was 0 or .17."""
    rng = np.random.default_rng(2)
    y = rng.integers(0, 3, 300)
    frame = pd.DataFrame(rng.normal(size=(300, 2)) + 5.0 * np.eye(3)[y, 1:], columns=["a", "b"])
    times = np.arange(300) % n_dates
    frame["day"] = pd.Timestamp("2024-01-31") + pd.to_timedelta(30 * times, "D")
    X, coding = learn_coding(frame)
    assert words(coding)["day"] == "dates, as a number" and X.shape == (300, 3)
    if n_dates == 2:
        assert np.ptp(X[:, 2]) == pytest.approx(CATEGORY_DISTANCE, rel=0.02)
    assert adjusted_rand_score(y, fastmmc.cluster(frame, 3, random_state=0).labels) > 0.85


def test_numbers_alone_need_no_coding():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 3)), columns=list("abc"))
    for one in (frame, frame.assign(d=1.0), frame.astype(np.float32)):
        X, coding = learn_coding(one)
        assert X is one and coding is None
    X = frame.to_numpy()
    assert learn_coding(X)[0] is X
    K = pd.DataFrame(X @ X.T, columns=[f"row {i}" for i in range(20)])
    assert fastmmc.umc_rls(K, 2, kernel="precomputed", random_state=0).coding is None


def test_standardize_leaves_a_coded_table_in_its_scale(quiet):
    frame, y = mixed()
    plain, scaled = (
        fastmmc.umc_rls(frame, 3, random_state=0, standardize=s) for s in (False, True)
    )
    np.testing.assert_array_equal(plain.labels, scaled.labels)
    assert scaled.model.scaler is None and scaled.coding.is_scaled


def test_factors_remember_the_coding(quiet):
    frame, _ = mixed()
    factor = fastmmc.factor(frame, random_state=0)
    result = fastmmc.umc_rls(factor, 3, random_state=0)
    assert result.coding is factor.coding
    assert result.predict(frame).shape == (N,)


def test_influence_is_that_of_columns(quiet):
    frame, _ = mixed()
    result = fastmmc.cluster(frame, 3, random_state=0)
    influence = fastmmc.feature_influence(result, frame, random_state=0)
    shares = dict(zip(influence.feature_names_in, influence.shares, strict=True))
    assert shares["customer_id"] == shares["name"] == shares["always"] == 0
    assert max(shares, key=shares.get) in ("height", "price")


@pytest.mark.parametrize(
    ("name", "values", "is_id"),
    [
        ("a", np.arange(20), True),
        ("a", np.arange(20)[::-1], True),
        ("userId", np.arange(20) ** 2, True),
        ("order_no", np.arange(20) ** 2 % 401, True),
        ("Bestellnummer", np.arange(20) * 3, True),
        ("a", np.arange(20) ** 2, False),
        ("id", np.arange(20) // 2, True),
        ("storeID", np.arange(20) % 3, True),
        ("room_no", np.arange(20) // 2, False),
        ("id", np.arange(20) / 2, False),
        ("grid", np.arange(20) ** 2, False),
        ("id", np.arange(5), False),
    ],
)
def test_what_is_an_id(name, values, is_id, rng):
    table = pd.DataFrame({name: values, "b": np.arange(len(values)) % 3})
    for rows in (np.arange(len(values)), rng.permutation(len(values))):
        frame = as_frame(table.iloc[rows])
        assert ("ids" in words(fit_coding(frame))[name]) == is_id
        assert "ids" not in words(fit_coding(frame, keeps_all=True))[name]


@pytest.mark.parametrize(
    "values",
    [
        [Decimal("1.5"), Decimal("2.5"), None, Decimal("0.5")],
        [1.5, "2.5", None, "0.5"],
        pd.array([1.5, 2.5, None, 0.5], dtype="Float64"),
        np.array([1.5, 2.5, np.nan, 0.5], dtype=np.float32),
        ["1,5", "2,5", "n/a", "0,5"],
    ],
)
def test_numbers_of_many_types(values):
    X, _ = learn_coding(pd.DataFrame({"a": values}))
    np.testing.assert_allclose(X[:, 0], [1.5, 2.5, 1.5, 0.5])


@pytest.mark.parametrize("values", [(12345671, 12345672), (True, False), (0.1234567, 0.1234568)])
def test_categories_of_numbers_are_told_apart(values):
    column = pd.Categorical(np.repeat(values, 5))
    frame = pd.DataFrame({"a": column, "b": np.arange(10) * 2.0})
    X, coding = learn_coding(frame)
    assert coding.features[:2] == [f"a = {value}" for value in sorted(map(str, values))]
    assert len(np.unique(X[:, :2], axis=0)) == 2
    # New rows may hold them as numbers.
    again, unknown, _ = coding.code(frame.assign(a=np.repeat(values, 5)))
    np.testing.assert_array_equal(again, X)
    assert not unknown


@pytest.mark.parametrize("is_missing", [True, False])
@pytest.mark.parametrize("dtype", ["timedelta64[s]", object])
def test_spans_of_time_are_numbers_of_days(dtype, is_missing):
    spans = [timedelta(2), timedelta(0), timedelta(4), None if is_missing else timedelta(2)]
    frame = pd.DataFrame({"a": pd.Series(spans, dtype=dtype), "b": [0.5, 1, 1.5, 2]})
    X, coding = learn_coding(frame)
    np.testing.assert_allclose(X[:, 0], [2, 0, 4, 2])
    assert coding.columns[0].said.startswith("spans of time, in days")


def test_null_categories_of_pyarrow_are_missing(quiet):
    pyarrow = pytest.importorskip("pyarrow")
    texts = pyarrow.array([None, "x", "y", "x"] * 10).dictionary_encode()
    table = pyarrow.table({"a": np.arange(40) % 7 + 0.5, "kind": texts})
    said = [column.said for column in learn_coding(table)[1].columns]
    assert said == [column.said for column in learn_coding(table.to_pandas())[1].columns]
    assert "10 of 40 missing" in said[1]


@pytest.mark.parametrize(
    "cells, wanted",
    [
        # Texts in another column have decimal commas, and those of this one tell nothing.
        ([2.131, "x", 5, 7.25], [2.131, np.nan, 5, 7.25]),
        ([2.5, "3,5", Decimal("4.125"), "5,5"], [2.5, 3.5, 4.125, 5.5]),
        ([2.5, "3.5", 4, "x"], [2.5, 3.5, 4, np.nan]),
    ],
)
def test_numbers_beside_texts_are_what_they_are(cells, wanted, quiet):
    frame = as_frame(pd.DataFrame({"a": cells * 10, "b": ["1,58", "2,5", "3,25", "4,75"] * 10}))
    column = fit_coding(frame).columns[0]
    read = frame.columns[0].numbers(frame.columns[0].mark or column.mark)
    np.testing.assert_array_equal(read[:4], wanted)


def test_spans_and_numbers_are_not_taken_for_each_other(tmp_path, quiet):
    spans = pd.to_timedelta(np.arange(60) % 7, "D")
    frame = pd.DataFrame({"a": spans, "b": np.arange(60) // 30 * 9.0, "t": ["u", "v"] * 30})
    numbers = frame.assign(a=np.arange(60) % 7)
    for table, other, told in (
        (frame, numbers, "holds numbers; expected spans of time"),
        (numbers, frame, "holds spans of time; expected numbers"),
        (frame, numbers.assign(a=numbers.a.astype(str)), "holds texts; expected spans of time"),
    ):
        result = fastmmc.cluster(table, 2, random_state=0)
        result.save(tmp_path / "model.npz")
        again = fastmmc.load(tmp_path / "model.npz")
        np.testing.assert_array_equal(again.predict(table), result.labels)
        with pytest.raises(ValueError, match=f"column 'a' {told}"):
            again.predict(other)
        assert again.predict(table.assign(a=None)).shape == (60,)
        assert "  a  " in str(result.profile(other))


def test_texts_of_new_rows_have_their_own_decimal_marks():
    frame = pd.DataFrame({"v": ["1.012", "3.519", "2.770"] * 10, "w": ["1,5", "2,25", "7"] * 10})
    _, coding = learn_coding(frame)
    X = coding.code(frame)[0]
    np.testing.assert_allclose(X[:3], [[1012, 1.5], [3519, 2.25], [2770, 7]])
    swapped = frame.map(lambda text: text.translate({44: ".", 46: ","}))
    np.testing.assert_array_equal(coding.code(swapped)[0], X)
    # One row that tells nothing is read as the first rows were.
    np.testing.assert_array_equal(coding.code(frame[2:3])[0], X[2:3])


def test_cells_that_are_no_numbers_are_told_at_once():
    frame = pd.DataFrame({"a": [1.5, "x", 2.5, 4.0], "b": [0.5, 1, 1.5, 2]})
    with pytest.warns(UserWarning, match="column 'a': 1 cell such as 'x' read as missing"):
        learn_coding(frame)


@pytest.mark.parametrize(
    ("end", "mark", "value"), [("90+", ".", 90), ("<0.5", ".", 0.5), (">= 1.000,5", ",", 1000.5)]
)
def test_ends_of_open_ranges_are_numbers_among_numbers(end, mark, value):
    """They were the median; where they are most cells, they are categories."""
    cells = [end if i % 3 == 0 else f"{i}{mark}5" for i in range(N)]
    X, coding = learn_coding(pd.DataFrame({"a": cells}))
    assert words(coding)["a"].endswith(f"{end!r} read as {value:.6g}")
    np.testing.assert_allclose(X[:, 0], [value if i % 3 == 0 else i + 0.5 for i in range(N)])
    np.testing.assert_array_equal(coding.code(pd.DataFrame({"a": [end]}))[0], X[:1])
    groups = pd.DataFrame({"a": [end, "-".join("19")] * 9 + [end]})
    assert learn_coding(groups)[1].columns[0].kind == "categories"


def test_numbers_beyond_floats_are_refused():
    frame = pd.DataFrame({"a": [-(10**400), *range(9)], "b": list("xyxyxyxyxy")})
    with pytest.raises(ValueError, match="infinity"):
        fastmmc.cluster(frame, k=2)


@pytest.mark.parametrize("others", [{"t": list("uv") * 30}, {"x": [np.nan, *[1.5, 2.5] * 29, 7]}])
def test_infinite_numbers_are_refused_by_column_and_row(others):
    frame = pd.DataFrame(others | {"y": np.arange(60.0)})
    result = fastmmc.cluster(frame, 2, random_state=0)
    far = frame.assign(y=np.where(frame.y == 7, -np.inf, frame.y))
    for call in (lambda: fastmmc.cluster(far, 2), lambda: result.predict(far)):
        with pytest.raises(ValueError, match=r"column 'y' holds infinity, .* in row 7 \(from 0\)"):
            call()


def test_infinite_numbers_are_refused_by_name_among_numbers_alone():
    frame = pd.DataFrame({"a": np.arange(60.0) % 7, "y": [*np.arange(59.0), np.inf]})
    with pytest.raises(ValueError, match=r"column 'y' holds infinity, .* in row 59 \(from 0\)"):
        fastmmc.cluster(frame, 2)


def test_no_power_hides_infinity(rng):
    """Yeo and Johnson's transformation by a negative power makes it finite."""
    values = rng.normal(170, 2, 60) + np.repeat([0, 30], 30)
    frame = pd.DataFrame({"height": values, "town": list("uv") * 30})
    result = fastmmc.cluster(frame, 2, random_state=0)
    assert result.coding.columns[0].power < 0
    with pytest.raises(ValueError, match="column 'height' holds infinity"):
        result.predict(frame.assign(height=np.inf))


def test_names_of_a_batch_of_pyarrow_are_checked(quiet):
    pyarrow = pytest.importorskip("pyarrow")
    X = np.random.default_rng(0).normal(size=(60, 2)) + np.repeat([0.0, 20.0], 30)[:, None]
    batch = pyarrow.RecordBatch.from_pydict({"a": X[:, 0], "b": X[:, 1]})
    turned = batch.select(["b", "a"])
    result = fastmmc.umc_rls(batch, 2, random_state=0)
    fitted = fastmmc.UMCRLS(2, random_state=0).fit(batch)
    seen = fastmmc.WTA(2, random_state=0).partial_fit(batch)
    assert result.feature_names_in.tolist() == ["a", "b"]
    np.testing.assert_array_equal(fitted.predict(batch), fitted.labels_)
    for call in (result.predict, fitted.predict, seen.predict, seen.partial_fit):
        with pytest.raises(ValueError, match="feature names should match"):
            call(turned)


def test_columns_of_rows_are_texts(quiet):
    """Such as polars has; each row is a category of its own kind."""

    class Column:
        dtype = "Array"

        def to_numpy(self):
            return np.array([[1.0, 2.0], [1.0, 2.0], [3.0, 4.0]])

    assert read_series(Column()).known == ["[1.0, 2.0]", "[1.0, 2.0]", "[3.0, 4.0]"]


def test_clocks_may_tell_fractions_of_a_second(quiet):
    times = [f"{h:02}:{m:02}:00.250000" for h in (3, 15) for m in range(30)]
    frame = pd.DataFrame({"at": times, "y": np.repeat([0.0, 9.0], 30) + np.arange(60) / 99})
    assert fastmmc.cluster(frame, 2, random_state=0).coding.columns[0].kind == "dates"
    frame["at"] = [*times[1:], None]
    assert "1 of 60 missing: as in similar rows" in fit_coding(as_frame(frame)).columns[0].said


@pytest.mark.parametrize("hour", [3, 24])
def test_close_times_of_day_weigh_as_numbers(hour, rng):
    """Those of a race, or of a shop, are a small part of the circle; the index was 0."""
    y = np.repeat([0, 1, 2], 80)
    frame = pd.DataFrame(rng.normal(size=(240, 2)) + 5.0 * np.eye(3)[y, 1:], columns=["a", "b"])
    times = pd.Timestamp("2024-01-01") + pd.to_timedelta(60.0 * hour + 6.0 * frame.b, "min")
    frame["b"] = times.dt.strftime("%H:%M:%S").where(rng.random(240) < 0.8)
    frame["c"] = rng.choice(list("xyz"), 240)
    X, coding = learn_coding(frame)
    known, X = frame.b.notna(), X[:, coding.places()[1]]
    assert X[known].var(axis=0).sum() == pytest.approx(1, rel=0.1) and np.isfinite(X).all()
    labels = fastmmc.cluster(frame, 3, random_state=0).labels
    assert adjusted_rand_score(y[known], labels[known]) > 0.9


def test_a_frame_without_columns_is_refused():
    with pytest.raises(ValueError, match="X has no columns"):
        fastmmc.cluster(pd.DataFrame(index=range(9)), k=2)


@pytest.mark.parametrize(
    "values",
    [
        [date(2020, 1, 1), date(2020, 1, 3), None, date(2020, 1, 5)],
        pd.to_datetime(["2020-01-01", "2020-01-03", None, "2020-01-05"]).tz_localize("Asia/Tokyo"),
        ["2020-01-01", "2020-01-03", "", "2020-01-05"],
        ["1.1.2020", "3.1.2020", None, "5.1.2020"],
        pd.to_timedelta([0, 2, None, 4], "D"),
    ],
)
def test_dates_of_many_types(values):
    X, _ = learn_coding(pd.DataFrame({"a": values, "b": ["x", "y", "x", "y"]}))
    steps = np.diff(X[[0, 1, 3], 0])
    assert steps[0] > 0 and steps[0] == pytest.approx(steps[1], rel=0.5)


@pytest.mark.parametrize(
    ("text", "mark", "value"),
    [
        ("1", ".", 1), ("1.5", ".", 1.5), ("-.5e3", ".", -500), ("1,000", ".", 1000),
        ("1,000.5", ".", 1000.5), ("1.000", ",", 1000), ("6.505,83", ",", 6505.83),
        ("1,58", ",", 1.58), ("12.5%", ".", 0.125), ("$ 3", ".", 3),
        ("\u00a537,000", ".", 37000), ("\u20b9 1,5", ",", 1.5),
        ("1,00", ".", None), ("1.00", ",", None), ("0,000", ".", None), ("1.2.3", ",", None),
        ("x", ".", None), ("", ".", None), ("1_000", ".", None), ("\u0663", ".", None),
        ("nan", ".", None), ("inf", ".", None), ("--1", ".", None), ("1e999", ".", np.inf),
        ("-$132.10", ".", -132.1), ("$-132.10", ".", -132.1), ("(132.10)", ".", -132.1),
        ("\u2212\u20ac1,132.10", ".", -1132.1), ("(5%)", ".", -0.05), ("(a)", ".", None),
        ("1 234,50", ",", 1234.5), ("1\u202f234\u202f567", ".", 1234567), ("1'234.50", ".", 1234.5),
        ("1,234 567", ".", None), ("12 34", ".", None), ("1 2345", ".", None),
    ],
)  # fmt: skip
def test_a_cell_as_a_number(text, mark, value):
    found = cells.to_number(text, mark)
    assert np.isnan(found) if value is None else found == pytest.approx(value)


# Bad input of any kind: an error that says what is wrong, or labels and a word on each column.

PIECES = [
    "", " ", "NA", "?", "1", "-2.5", "3,5", "1.234", "1,234", "6.505,83", "5%", "inf", "1e999",
    "x", "Ulm", "yes", "no", "2020-01-01", "31.12.2019", "12/31/2019", "12:30", "2020-13-45",
    "\u00fc\u00df", "'", "a;b", "None", "1_000", "0x1F", "\x00", "=1+1", "9" * 400, True, 7, -1.5,
    None, np.nan, date(2020, 2, 29), time(1, 2), Decimal("NaN"), 1 + 2j, (1,), pd.NaT, pd.NA,
]  # fmt: skip


@pytest.mark.parametrize("seed", range(60))
def test_random_tables(seed, quiet):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    frame = pd.DataFrame(index=range(n))
    for j in range(int(rng.integers(1, 5))):
        pieces = rng.choice(len(PIECES), int(rng.integers(1, 5)))
        frame[f"c{j}"] = pd.Series([PIECES[i] for i in rng.choice(pieces, n)], dtype=object)
    try:
        X, coding = learn_coding(frame)
    except ValueError as error:
        assert "no column holds numbers, dates or categories: 'c0' is left out" in str(error)
        return
    assert X.shape[0] == n and np.isfinite(X).all()
    if coding is None:
        return
    assert list(words(coding)) == list(frame) and all(words(coding).values())
    for column in coding.used:
        assert column.width == len(column.features)
    again, unknown, _ = coding.code(frame)
    np.testing.assert_array_equal(again, X)
    # Only what was said to be no number or date is not understood the second time.
    assert len(unknown) == sum("read as missing" in said for said in words(coding).values())


def test_partial_fit_goes_on_with_the_columns_of_fit(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=120)
    frame = pd.DataFrame({"a": 8.0 * y + rng.normal(size=120), "k": np.array(["x", "y"])[y]})
    frame["t"] = pd.date_range("2020-01-01", periods=120)
    for estimator in (fastmmc.WTA, fastmmc.CRPCL, fastmmc.OLCVQE):
        model = estimator(2, random_state=0)
        model.fit(frame[:60]).partial_fit(frame[60:])
        assert adjusted_rand_score(y[60:], model.labels_) == 1.0
        assert model.n_seen_ == 60
        again = fastmmc.load(save(model, tmp_path)).partial_fit(frame[:60])
        np.testing.assert_array_equal(again.labels_, model.partial_fit(frame[:60]).labels_)
    assert fastmmc.WTA(2, random_state=0).partial_fit(frame[["a"]]).n_features_in_ == 1


def save(model, folder):
    path = folder / "model.npz"
    model.save(path)
    return path


def test_the_first_call_of_partial_fit_learns_the_columns(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=120)
    frame = pd.DataFrame({"a": 8.0 * y + rng.normal(size=120), "k": np.array(["x", "y"])[y]})
    frame.loc[::5, "a"] = np.nan
    for estimator in (fastmmc.WTA, fastmmc.CRPCL, fastmmc.OLCVQE):
        model = estimator(2, random_state=0)
        with pytest.raises(ValueError, match="needs as many; got 1"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.partial_fit(pd.DataFrame({"b": ["u"], "c": [1.0]}))
        model.partial_fit(frame[:60])
        assert [column.kind for column in model.coding_.columns] == ["numbers", "categories"]
        again = fastmmc.load(save(model, tmp_path))
        for one in (model, again):
            with pytest.warns(UserWarning, match="'k': 1 cell such as 'z' not seen before"):
                one.partial_fit(pd.concat([frame[60:], pd.DataFrame({"a": [1.0], "k": ["z"]})]))
        assert adjusted_rand_score(y[60:], model.labels_[:60]) > 0.7
        np.testing.assert_array_equal(again.labels_, model.labels_)
        np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
        with pytest.raises(ValueError, match="lacks the column 'k'"):
            model.partial_fit(frame[["a"]])


def test_ids_are_ids_whatever_holds_them(quiet):
    frame = mixed()[0][["customer_id", "height"]]
    for one in (frame, frame.astype(object), frame.map(lambda value: Decimal(str(value)))):
        _, coding = learn_coding(one)
        assert words(coding)["customer_id"] == "left out, as it holds ids of the rows"
    huge = frame.assign(customer_id=[2**60 + i for i in range(N)]).astype(object)
    assert learn_coding(huge)[0].shape[0] == N


def test_the_advice_on_ids_makes_them_used(quiet):
    ids = np.random.default_rng(0).permutation(N) + 1.0
    frame = pd.DataFrame({"user_id": ids, "a": np.arange(N) % 7})
    frame.loc[0, "user_id"] = np.nan
    with pytest.warns(UserWarning, match="Give ids as float, without missing cells, to use them"):
        learn_coding(frame)
    assert learn_coding(frame.fillna(0.0))[1] is None


def test_truth_values_are_numbers_where_numbers_were_fitted():
    frame = mixed()[0][["height", "town"]].assign(flag=np.arange(N) % 2)
    _, coding = learn_coding(frame)
    X, unknown, _ = coding.code(frame.assign(flag=frame.flag.astype(bool)))
    assert not unknown
    np.testing.assert_array_equal(X, coding.code(frame)[0])


def test_truth_values_are_the_same_in_any_case():
    y = np.arange(N) % 2
    spellings = [y > 0, *(np.array(two)[y] for two in (["FALSE", "TRUE"], ["false", "true"]))]
    frames = [pd.DataFrame({"flag": flag, "x": np.arange(N) % 7.0}) for flag in spellings]
    for frame in frames:
        X, coding = learn_coding(frame)
        for other in frames:
            again, unknown, _ = coding.code(other)
            np.testing.assert_array_equal(again, X)
            assert not unknown
    # Where the case tells categories apart, or they are something else, it counts.
    for levels, other in ((["True", "TRUE"], "true"), (["Yes", "No"], "yes")):
        _, coding = learn_coding(frames[0].assign(flag=np.array(levels)[y]))
        assert "'flag': 90 cells" in coding.code(frames[0].assign(flag=other))[1][0]


def test_a_category_may_be_called_as_what_is_missing():
    levels = np.array(["none", "NA", "severe"])[np.arange(N) % 3]
    for dtype, said in (("category", "3 categories"), (object, "2 categories")):
        column = pd.Series(levels).astype(dtype)
        frame = pd.DataFrame({"symptom": column, "x": np.arange(N) % 7.0})
        if dtype is object:
            frame.loc[frame.symptom == "severe", "symptom"] = np.array(["a", "b"])[
                np.arange(30) % 2
            ]
        assert words(learn_coding(frame)[1])["symptom"].startswith(said)


@pytest.mark.parametrize("mark", ["#N/A", "#NA", "<NA>", ".", ".."])
def test_marks_of_programs_are_missing(mark):
    """As in most cells of a column, which was one of categories."""
    cells = [mark if i % 3 else str(i) for i in range(N)]
    coding = learn_coding(pd.DataFrame({"a": cells, "b": np.arange(N) % 7.0}))[1]
    assert words(coding)["a"].startswith("numbers; 60 of 90 missing")


def test_times_are_those_of_their_zone_in_every_library(quiet):
    rng = np.random.default_rng(0)
    times = pd.Timestamp("2024-01-01", tz="UTC") + pd.to_timedelta(rng.integers(0, 960, N), "h")
    frame = mixed()[0].assign(joined=times.tz_convert("Asia/Tokyo"))
    result = fastmmc.cluster(frame, 3, random_state=0)
    X = result.coding.code(frame)[0]
    for table in libraries(frame):
        np.testing.assert_allclose(result.coding.code(table)[0], X, atol=1e-9)


def test_ids_in_several_rows_do_not_decide(rng):
    """As numbers they have gaps, with which the index was 0."""
    y = rng.integers(0, 2, 400)
    person = np.repeat(100 * np.array([1, 2, 3, 4, 51, 52, 53, 54]), 50) + np.arange(400) // 5
    frame = pd.DataFrame(rng.normal(size=(400, 2)) + 4.0 * y[:, None], columns=["a", "b"])
    frame["person_id"] = person
    with pytest.warns(UserWarning, match="'person_id' is left out, .* or as categories if they"):
        result = fastmmc.cluster(frame, 2, random_state=0)
    assert adjusted_rand_score(y, result.labels) > 0.9


def test_a_factor_is_told_from_a_frame_with_columns_of_its_names(rng):
    X = rng.normal(size=(60, 2)) + 9 * (np.arange(60) % 2)[:, None]
    frame = pd.DataFrame(X, columns=["lam", "kernel"])
    for solve in (fastmmc.cluster, fastmmc.wta):
        assert solve(frame, 2, random_state=0).sizes.tolist() == [30, 30]
        with pytest.raises(
            TypeError, match="X is a DenseFactor, which umc_rls, .* give the points"
        ):
            solve(fastmmc.factor(X), 2)


def test_a_lazy_frame_is_to_be_collected():
    polars = pytest.importorskip("polars")
    with pytest.raises(TypeError, match="lazy frame, .* give X.collect()"):
        learn_coding(polars.from_pandas(mixed()[0]).lazy())


@pytest.mark.parametrize("columns", [["a"], ["a", "b"], ["a", "town"], ["a", "far", "id"]])
def test_integers_of_128_bits_are_numbers(columns, rng):
    polars = pytest.importorskip("polars")
    whole = np.round(rng.normal(500 * (np.arange(60) % 2), 50)).astype(np.int64)
    frame = polars.DataFrame(
        {
            "a": whole,
            "b": [None, *whole[1:].tolist()],
            "far": (1e20 * whole).tolist(),
            "town": ["x", "y"] * 30,
            "id": np.arange(60),
        }
    ).select(columns)
    wide = frame.cast({one: polars.Int128 for one in columns if one != "town"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        expected, found = (fastmmc.umc_rls(one, 2, random_state=0) for one in (frame, wide))
    np.testing.assert_array_equal(found.labels, expected.labels)
    assert str(found.coding) == str(expected.coding)
    np.testing.assert_array_equal(found.predict(wide), expected.predict(frame))


def test_ids_in_the_first_rows_of_partial_fit_are_left_out():
    frame = pd.DataFrame({"a": np.arange(60.0), "row": np.arange(60)})
    model = fastmmc.WTA(2, random_state=0)
    with pytest.warns(UserWarning, match="'row' is left out, as it holds ids of the rows"):
        model.partial_fit(frame)
    model.partial_fit(frame)
    assert model.coding_.n_features == 1
    assert fastmmc.WTA(2, random_state=0).partial_fit(frame.astype(float)).coding_ is None


def test_complex_numbers_are_refused():
    frame = pd.DataFrame({"a": np.arange(9.0), "z": np.arange(9) * 1j})
    with pytest.raises(ValueError, match="complex numbers: give their real"):
        fastmmc.cluster(frame, 2)


@pytest.mark.parametrize("shift", [0.0, 273.15, 10_000.0])
def test_a_power_keeps_columns_far_from_zero(shift, rng):
    """Unbounded, it made two values of 400 at 10,000, and the index was .12."""
    y = (rng.random(400) > 0.8).astype(int)
    frame = pd.DataFrame(
        {
            "level": shift + 6.0 * y + rng.gamma(3, 0.4, 400),
            "flow": 2.5 * y + rng.normal(0, 1, 400),
            "site": rng.choice(list("abcde"), 400),
        }
    )
    result = fastmmc.cluster(frame, 2, random_state=0)
    assert np.unique(learn_coding(frame)[0][:, 0]).size == 400
    assert adjusted_rand_score(y, result.labels) > 0.95


@pytest.mark.parametrize(
    "form",
    [
        "%d-%b-%Y",
        "%b %d, %Y",
        "%m/%d/%Y %I:%M:%S %p",
        "%d-%b-%Y %H:%M",
        "%m/%d/%y",
        "%d/%m/%y %H:%M",
        "%d-%b-%y",
        "%B %d, %Y",
        "%d %B %Y",
        "%I:%M %p",
        "%Y-%-m-%-d",
        "%Y.%m.%d %H:%M",
        "%Y-%m-%d %H:%M:%S UTC",
        "%d.%m.%Y %H:%M UTC",
    ],
)
def test_dates_of_spreadsheets_are_read(form):
    steps = pd.to_timedelta(np.arange(60) * (7 * 1440 + 10), "min")
    when = pd.Timestamp("2024-01-15 15:04:05") + steps
    frame = pd.DataFrame({"when": when.strftime(form), "x": np.arange(60) % 7 / 3})
    coding = learn_coding(frame)[1]
    assert coding.columns[0].kind == "dates"


def test_the_century_of_years_of_two_digits_is_told():
    days = [f"{1 + i % 28}-Feb-{(60 + i) % 100:02d}" for i in range(N)]
    frame = pd.DataFrame({"day": days, "a": np.arange(N) % 7 + 0.5})
    assert "'9-Feb-68' read as 2068-02-09" in words(learn_coding(frame)[1])["day"]


def test_rows_of_weight_zero_have_no_part_in_the_coding(rng):
    frame = pd.DataFrame({"a": rng.normal(size=60), "b": rng.choice(list("xy"), 60)})
    frame.loc[5, "a"] = np.nan
    more = pd.concat([frame, pd.DataFrame({"a": [1e6], "b": ["z"]})], ignore_index=True)
    with pytest.warns(UserWarning, match="not seen before"):
        result = fastmmc.cluster(more, 2, sample_weight=[1.0] * 60 + [0.0], random_state=0)
    expected = fastmmc.cluster(frame, 2, random_state=0)
    assert str(result.coding) == str(expected.coding)
    np.testing.assert_array_equal(result.labels[:60], expected.labels)


@pytest.mark.parametrize("others", [["town", "day"], [], ["gap"]])
def test_a_weight_stands_for_equal_rows_of_a_table(others, rng):
    n = 120
    frame = pd.DataFrame(
        {
            "amount": rng.lognormal(3, 1, n),
            "few": rng.integers(0, 3, n) * 2,
            "gap": np.where(np.arange(n) % 9, rng.normal(size=n), np.nan),
            "town": np.where(np.arange(n) < 1, "rare", rng.choice(list("uvw"), n)),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 90, n), "D"),
        }
    )[["amount", "few", *others]]
    weights = np.where(frame["amount"] > 40, 9, rng.integers(1, 4, n))
    weights[0] = 9
    times = np.repeat(np.arange(n), weights)
    scaled = True if not others else "auto"
    coding = fit_coding(as_frame(frame), scaled=scaled, weights=weights)
    expected = fit_coding(as_frame(frame.iloc[times]), scaled=scaled)
    X, wanted = coding.code(frame)[0], expected.code(frame)[0]
    assert coding.features == expected.features
    np.testing.assert_allclose(X, wanted, atol=1e-7)
    # Weights whose unit is small are 1 on average.
    shares = fit_coding(as_frame(frame), scaled=scaled, weights=weights / weights.sum())
    assert shares.features == coding.features


@pytest.mark.parametrize("solve", [fastmmc.cluster, fastmmc.umc_rls, fastmmc.sammc])
def test_a_plan_of_a_frame_is_refused(solve):
    class Lazy:
        def collect(self):
            """Make the frame, as that of polars does."""

        select = collect

    with pytest.raises(TypeError, match=r"lazy frame, .* give X.collect"):
        solve(Lazy(), 2)


def suspects(values):
    """Return what is warned of in a column of a frame."""
    frame = pd.DataFrame({"x": values, "y": np.arange(len(values)) % 7 / 3})
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        learn_coding(frame)
    return [str(one.message) for one in found]


STEPS = pd.Timestamp("2023-11-01") + pd.to_timedelta(np.arange(N), "D")


@pytest.mark.parametrize(
    ("code", "others"),
    [
        (-999, np.arange(N) / 7),
        (-9, np.arange(N) % 3),
        (99, np.arange(N) % 5 + 1),
        (999.0, np.where(np.arange(N) % 5, np.arange(N), np.nan)),
        ("-999", [f"{i / 7:.2f}" for i in range(N)]),
        ("9999-12-31", STEPS.strftime("%Y-%m-%d")),
        ("01.01.1900", STEPS.strftime("%d.%m.%Y")),
    ],
)
def test_codes_of_missing_cells_are_warned_of(code, others):
    values = pd.Series(others)
    values[[2, 17]] = code
    (text,) = suspects(values)
    shown = "1900-01-01" if code == "01.01.1900" else f"{code}".removesuffix(".0")
    assert text.startswith(f"values in column 'x', such as {shown} in 2 rows, are far from all")


@pytest.mark.parametrize(
    "values",
    [
        np.where(np.arange(N) % 9, np.arange(N) * 10.0, 99),  # among others
        np.where(np.arange(N) == 9, -999, np.arange(N) / 7),  # once
        np.where(np.arange(N) % 9, np.arange(N) / 7, -500),  # no nines
        np.where(np.arange(N) % 9, np.arange(N) % 3, 9),  # a count
        np.where(np.arange(N) % 9, 5, -999),  # beside a single value
        19_900_000 + 1_000 * np.arange(N),  # no months
        np.where(np.arange(N) % 3, 2023, 2024),
    ],
)
def test_other_values_are_not_warned_of(values):
    assert suspects(values) == []


@pytest.mark.parametrize("form", ["%Y%m%d", "%Y%m%d%H%M%S"])
@pytest.mark.parametrize("kind", [str, np.int64])
def test_dates_that_are_numbers_are_warned_of(form, kind):
    (text,) = suspects(STEPS.strftime(form).astype(kind))
    assert text.startswith("values in column 'x', such as 20231101") and "seem to be dates" in text


def test_suspect_values_of_many_columns_are_warned_of_together():
    frame = pd.DataFrame({f"v{i}": np.arange(N) / (7 + i) for i in range(5)})
    frame.loc[[2, 17], :] = -999
    with pytest.warns(UserWarning, match="columns 'v0', 'v1', 'v2', 'v3', 'v4', such as -999 in 2"):
        fastmmc.cluster(frame, 2, random_state=0)


@pytest.mark.parametrize("scaled", [False, True])
def test_missing_cells_are_as_in_the_nearest_rows(scaled, rng):
    """scikit-learn's KNNImputer is the twin."""
    values = rng.normal(size=(80, 4)) @ np.diag([1.0, 5.0, 5.0, 20.0])
    values[rng.random((80, 4)) < 0.2] = np.nan
    values[7] = np.nan
    frame = pd.DataFrame(values, columns=list("abcd"))
    X, coding = learn_coding(frame, scaled=scaled)
    numbers = X[:, [features.start for features in coding.places()]]
    units = (values - np.nanmean(values, axis=0)) / np.nanstd(values, axis=0)
    expected = KNNImputer().fit_transform(units)
    if not scaled:
        expected = expected * np.nanstd(values, axis=0) + np.nanmean(values, axis=0)
    rest = np.arange(80) != 7
    np.testing.assert_allclose(numbers[rest], expected[rest])
    # A row of which nothing is known has the medians.
    fillers = [column.fillers[0] for column in coding.columns]
    np.testing.assert_allclose(numbers[7], fillers)
    for rows in (slice(3, 4), slice(10, 50)):
        np.testing.assert_array_equal(coding.code(frame[rows])[0], X[rows])


def test_missing_cells_hide_no_clusters():
    """By medians the index was .34."""
    found = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        y = rng.integers(3, size=300)
        frame = pd.DataFrame(
            {
                "age": np.array([25, 45, 70])[y] + rng.normal(0, 4, 300),
                "income": np.array([2e4, 9e4, 4e4])[y] * np.exp(rng.normal(0, 0.15, 300)),
                "visits": rng.poisson(np.array([2, 10, 25])[y]).astype(float),
            }
        )
        frame = frame.mask(rng.random(frame.shape) < 0.3)
        labels = fastmmc.cluster(frame, 3, random_state=0).labels
        found.append(adjusted_rand_score(y, labels))
    assert np.mean(found) > 0.8
