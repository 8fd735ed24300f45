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


@pytest.mark.parametrize("cell", ["3_000", "1_0.5", "\u0663", "\uff13", "1e1_0", "\u0663.5"])
def test_numbers_of_other_kinds_are_text(capsys, tmp_path, cell):
    """As float() reads them too, they would be taken for numbers without a word."""
    path = tmp_path / "t.csv"
    path.write_text(f"a,b\n1,2\n3,{cell}\n5,6\n", encoding="utf-8")
    for command in (["cluster"], ["stream"]):
        wrong = error_of(capsys, *command, path, "--k", 1)
        assert f"line 3, column 'b': expected a finite number, got {cell!r}" in wrong
    for flag in ("--k", "--seed", "--trim", "--lam", "--rank", "--target-sizes", "--max-time"):
        wrong = error_of(capsys, "cluster", path, flag, cell)
        assert f"{flag}: expected" in wrong and repr(cell) in wrong
    links = tmp_path / "links.csv"
    links.write_text(f"0,1\n0,{cell}\n", encoding="utf-8")
    wrong = error_of(capsys, "cluster", "iris", "--k", 2, "--constraints", links)
    assert f"line 2: expected the number of a row, counted from 0; got {cell!r}" in wrong
    wrong = error_of(capsys, "cluster", path, "--k", 1, "--columns", cell)
    assert f"--columns: no column {cell!r}" in wrong


def test_spaces_around_numbers_are_no_text(capsys, piped):
    piped("1,2\n\u00a03 ,\t4\n5,6\n")
    labels, _ = labels_of(capsys, "cluster", "-", "--k", 1, "--method", "wta")
    assert len(labels) == 3


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
        (pd.DataFrame({"a": ["y"], "b": ["x"]}), "column 'a' has type"),
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


def texts(tmp_path):
    """Return a frame with names and towns, and the file it is written to."""
    towns = ["Ulm", None, "?", "NA"]
    frame = pd.DataFrame({"name": ["Ann B.", "Bob", "Cem", "Dot"], "a": [1, 2, 5, 6]})
    frame["town"], frame["b"] = towns, [2.0, 1.0, 6.0, 5.0]
    frame.to_csv(tmp_path / "t.csv", index=False)
    return frame, tmp_path / "t.csv"


def test_columns_of_text_are_left_out(capsys, tmp_path, parquet):
    frame, path = texts(tmp_path)
    given = ["--method", "umc-rls", "-k", 2, "--seed", 0]
    model = tmp_path / "model.npz"
    for source in (path, parquet(frame)):
        labels, told = labels_of(capsys, "cluster", source, *given, "--model", model)
        note, headline, *_ = told.splitlines()
        assert f"note: {source}: columns 'name', 'town' hold text, left out; " in note
        assert headline == f"umc-rls on {source}: 4 points, 2 features, 2 clusters"
        found, told = labels_of(capsys, "predict", model, source)
        assert found.tolist() == labels.tolist() and "note" not in told
    # Without names, and where all that is left beside the labels are numbers.
    frame[["name", "a", "b"]].to_csv(path, index=False, header=False)
    _, told = labels_of(capsys, "cluster", path, *given)
    assert "column 0 (from 0) holds text, left out" in told
    _, told = labels_of(capsys, "cluster", path, *given, "--label-column", 0)
    assert "note" not in told
    wrong = error_of(capsys, "cluster", path, *given, "--columns", "0-2")
    assert "line 1, column 0 (from 0): expected a finite number, got 'Ann B.'" in wrong


@pytest.mark.parametrize(
    ("first", "rest"), [("unknown", "x\n3,4"), ("12%", "5%"), ("2026-11-23", "2026-11-24")]
)
def test_what_may_be_meant_as_numbers_is_a_fault(capsys, tmp_path, first, rest):
    path = tmp_path / "t.csv"
    path.write_text(f"a,b\n1,{first}\n2,{rest}\n")
    wrong = error_of(capsys, "cluster", path, "-k", 2)
    assert f"line 2, column 'b': expected a finite number, got {first!r}" in wrong


@pytest.mark.parametrize("gap", ["", " ", "NA", "n/a", "NaN", "null", "None", "?"])
def test_missing_cells_are_filled_by_medians(capsys, tmp_path, gap):
    path, whole, new = (tmp_path / name for name in ("t.csv", "whole.csv", "new.csv"))
    text = "a,b\n1,2\nGAP,1\n2,9\n6,GAP\n7,5\n"
    path.write_text(text.replace("GAP", gap))
    model = tmp_path / "model.npz"
    given = ["--method", "umc-rls", "-k", 2, "--seed", 0, "--standardize"]
    labels, told = labels_of(capsys, "cluster", path, *given, "--fill-missing", "--model", model)
    assert "2 of 10 cells are missing and became the medians of their columns" in told
    whole.write_text(text.replace("GAP,1", "4,1").replace("GAP", "3.5"))
    assert labels_of(capsys, "cluster", whole, *given)[0].tolist() == labels.tolist()
    # The medians are those of the model, not of the new points.
    new.write_text("b,a\n2,4\n9,4\n")
    expected, _ = labels_of(capsys, "predict", model, new)
    new.write_text(f"b,a\n2,{gap}\n9,{gap}\n")
    found, told = labels_of(capsys, "predict", model, new)
    assert found.tolist() == expected.tolist()
    assert "2 of 4 cells are missing" in told


def test_what_cannot_be_filled(capsys, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,\n2,NA\n")
    wrong = error_of(capsys, "cluster", path, "-k", 2, "--fill-missing")
    assert f"{path}: column 1 (from 0) has no number; leave it out by --drop 1" in wrong
    path.write_text("a,b\n1,2\n2,x\n")
    wrong = error_of(capsys, "cluster", path, "-k", 2, "--fill-missing")
    assert "line 3, column 'b': expected a finite number, got 'x'" in wrong
    np.save(tmp_path / "counts.npy", np.arange(12).reshape(6, 2))
    labels_of(capsys, "cluster", tmp_path / "counts.npy", "-k", 2, "--fill-missing", "--seed", 0)


def test_missing_cells_of_parquet(capsys, parquet):
    path = parquet(pd.DataFrame({"id": [0, 1, 2], "a": [1.0, None, 5.0]}))
    found = read_points(str(path), Columns(fills=True))
    np.testing.assert_array_equal(found.X, [[0, 1], [1, 3], [2, 5]])
    assert found.columns.medians == [1.0, 3.0]
    assert "1 of 6 cells is missing and became the median of its column" in capsys.readouterr().err


@pytest.mark.filterwarnings("always")
def test_warnings_speak_of_options(capsys, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "".join(f"{i % 2},{i * 1000}\n" for i in range(30)))
    given = ["cluster", path, "--method", "umc-rls", "-k", 2, "--n-init", 2, "--seed", 0]
    assert "in the distances. Give --standardize; take no notice" in labels_of(capsys, *given)[1]
    assert "different units" not in labels_of(capsys, *given, "--standardize")[1]
