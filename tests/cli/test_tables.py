"""Which columns of a table are used, and how its cells are told apart."""

import numpy as np
import pandas as pd
import pytest

from fastmmc.cli import common
from fastmmc.cli.sources import read_points
from fastmmc.cli.tables import LEAST_COUNTED, Columns, parse_columns
from tests.cli.runner import error_of, labels_of, report_of, run

HEADER = ["id", "a", "b", "kind", "c"]
ROWS = [[7.0, 1.5, 2.0, "x", 3.0], [5.0, 4.0, 5.5, "y", 6.0], [2.0, 0.0, 1.0, "x", 9.0]]


def text_of(rows):
    return "\n".join(",".join(map(str, row)) for row in rows) + "\n"


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(text_of([HEADER, *ROWS]))
    return path


@pytest.mark.parametrize(
    ("columns", "drop", "label", "wanted"),
    [
        (None, "kind", None, [0, 1, 2, 4]),
        ("a,b", None, None, [1, 2]),
        ("b,a", None, None, [2, 1]),
        ("1,2", None, None, [1, 2]),
        ("1-2,c", None, None, [1, 2, 4]),
        ("0-4", "kind", None, [0, 1, 2, 4]),
        ("0-2", "0", "kind", [1, 2]),
        (None, "id, c", "3", [1, 2]),
        (None, "0-1", "kind", [2, 4]),
    ],
)
def test_columns_by_name_and_number(tmp_path, source, columns, drop, label, wanted):
    asked = [None if text is None else parse_columns(text) for text in (columns, drop)]
    for has_header in (True, False):
        if not has_header:
            if not all(c in "0123456789-," for c in (columns or "0") + (drop or "0")):
                continue
            label = "3" if label else None
            source.write_text(text_of(ROWS))
        found = read_points(str(source), Columns(*asked, label))
        np.testing.assert_array_equal(found.X, [[row[i] for i in wanted] for row in ROWS])
        assert found.columns.names == ([HEADER[i] for i in wanted] if has_header else None)
        assert (found.y is None) if label is None else found.y.tolist() == [0, 1, 0]


def test_names_with_commas_and_dashes(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('"a,b",1-2,z\n1,2,3\n4,5,6\n')
    for text, wanted in [('"a,b",z', [[1, 3], [4, 6]]), ("1-2", [[2], [5]])]:
        found = read_points(str(path), Columns(parse_columns(text)))
        np.testing.assert_array_equal(found.X, wanted)


def test_options_choose_columns(capsys, source):
    whole = ["cluster", source, "--method", "umc-rls", "-k", 2, "--seed", 0]
    for options in (["--columns", "a,b,c"], ["--drop", "kind", "--drop", "id"]):
        _, told = labels_of(capsys, *whole, *options)
        assert told.startswith(f"umc-rls on {source}: 3 points, 3 features, 2 clusters\n")
    assert run("stream", source, "-k", 2, "--columns", "1-2", "--seed", 0) == 0
    of_columns = capsys.readouterr().out
    source.write_text(text_of([row[1:3] for row in ROWS]))
    assert run("stream", source, "-k", 2, "--seed", 0) == 0
    assert capsys.readouterr().out == of_columns


def test_columns_of_arrays_and_data_sets(capsys, tmp_path):
    X = np.arange(12.0).reshape(4, 3)
    np.save(tmp_path / "X.npy", X)
    found = read_points(str(tmp_path / "X.npy"), Columns(["2", "0"]))
    np.testing.assert_array_equal(found.X, X[:, [2, 0]])
    report = report_of(capsys, "iris", "--drop", "0-1", "--method", "umc-rls", "-k", 3)
    assert report["d"] == 2 and report["ari"] > 0.5


# Delimiters


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a;b\n1;2\n", [[1, 2]]),
        ("a;b\n1,5;-2,25\n", [[1.5, -2.25]]),
        ("1,5;2,5\n0,1;1e1\n", [[1.5, 2.5], [0.1, 10]]),
        ('"x;y",b\n1,2\n', [[1, 2]]),
        ("a\tb\n1\t2\n", [[1, 2]]),
        ("a,x\tb,y\n1\t2\n", [[1, 2]]),
    ],
)
def test_delimiters(capsys, tmp_path, piped, text, wanted):
    path = tmp_path / "t.csv"
    path.write_text(text)
    np.testing.assert_array_equal(read_points(str(path), Columns()).X, wanted)
    piped(text)
    np.testing.assert_array_equal(read_points("-", Columns()).X, wanted)
    assert run("stream", path, "-k", 1) == 0
    assert capsys.readouterr().out == "label\n" + "0\n" * len(wanted)


def test_a_comma_is_a_decimal_point_only_between_semicolons(capsys, tmp_path):
    path = tmp_path / "t.tsv"
    path.write_text("a\tb\n1,5\t2\n")
    assert "column 'a': expected a finite number, got '1,5'" in error_of(capsys, "cluster", path)


# Columns that number the rows


def numbered(name, n, begin=0):
    X = np.random.default_rng(0).standard_normal((n, 2))
    frame = pd.DataFrame(X, columns=["a", "b"])
    frame.insert(0, name, np.arange(begin, begin + n))
    return frame


@pytest.mark.parametrize("name", ["id", "ID", "index"])
def test_a_column_that_counts_the_rows_is_left_out(capsys, tmp_path, name):
    for begin in (0, 1):
        path = tmp_path / "t.csv"
        frame = numbered(name, LEAST_COUNTED, begin)
        frame.to_csv(path, index=False)
        found = read_points(str(path), Columns())
        np.testing.assert_allclose(found.X, frame[["a", "b"]])
        assert found.columns.names == ["a", "b"]
        told = f"fastmmc: note: {path}: column '{name}' counts the rows and was left out; name it"
        assert capsys.readouterr().err.startswith(told)
        assert read_points(str(path), Columns([name, "a"])).X.shape[1] == 2
        assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("name", "n", "begin"), [("a1", 12, 0), ("id", LEAST_COUNTED - 1, 0), ("id", 12, 5)]
)
def test_other_columns_that_count_are_features(capsys, tmp_path, name, n, begin):
    path = tmp_path / "t.csv"
    numbered(name, n, begin).to_csv(path, index=False)
    assert read_points(str(path), Columns()).X.shape == (n, 3)
    assert capsys.readouterr().err == ""


# Parquet


@pytest.fixture
def parquet(tmp_path, monkeypatch):
    """A frame in a file, read and written by a stand-in where pandas has no engine."""
    if not any(map(common.find_spec, common.ENGINES)):
        monkeypatch.setattr(common, "find_spec", lambda name: name)
        monkeypatch.setattr(pd, "read_parquet", pd.read_pickle)
        monkeypatch.setattr(pd.DataFrame, "to_parquet", pd.DataFrame.to_pickle)

    def write(frame):
        frame.to_parquet(tmp_path / "t.parquet")
        return tmp_path / "t.parquet"

    return write


def test_parquet(capsys, tmp_path, parquet):
    path = parquet(pd.DataFrame(ROWS, columns=HEADER))
    found = read_points(str(path), Columns(None, ["id"], "kind"))
    np.testing.assert_array_equal(found.X, [[row[i] for i in (1, 2, 4)] for row in ROWS])
    assert found.y.tolist() == [0, 1, 0] and found.columns.names == ["a", "b", "c"]
    given = [path, "--drop", "kind", "--method", "umc-rls", "-k", 2, "--seed", 0]
    out = tmp_path / "labels.parquet"
    expected, _ = labels_of(capsys, "cluster", *given)
    assert run("cluster", *given, "--out", out) == 0
    written = pd.read_parquet(out)
    assert list(written) == ["label"] and written["label"].tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame({"a": [1.0], "b": ["x"]}), "column 'b' has type"),
        (pd.DataFrame({"a": [1.0, None]}), "row 1, column 0 (from 0) is nan; fill in"),
        (pd.DataFrame({"a": []}), "there are no cells; got shape (0, 1)"),
        (pd.DataFrame(index=[0, 1]), "there are no cells; got shape (2, 0)"),
    ],
)
def test_faults_of_parquet(capsys, parquet, frame, message):
    assert message in error_of(capsys, "cluster", parquet(frame))


def test_more_faults_of_parquet(capsys, tmp_path, parquet):
    path = parquet(pd.DataFrame({"a": [1.0, 2.0], "kind": ["x", None]}))
    wrong = error_of(capsys, "cluster", path, "--label-column", "kind")
    assert "row 1 (from 0): the label is empty" in wrong
    path.write_bytes(b"no parquet")
    assert "cannot be read as a .parquet file" in error_of(capsys, "cluster", path)
    missing = tmp_path / "none.parquet"
    assert f"{missing}: No such file" in error_of(capsys, "cluster", missing)


def test_parquet_without_an_engine(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(common, "find_spec", lambda name: None)
    for given in (["t.parquet"], ["iris", "--out", tmp_path / "t.parquet"]):
        message = error_of(capsys, "cluster", *given)
        assert "need pandas and pyarrow (python -m pip install pandas pyarrow); or use" in message
