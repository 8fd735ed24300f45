"""Which columns of a table are used, and how its cells are told apart."""

import csv
import json
import re
import shlex
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

import fastmmc
from fastmmc.cli import common, tables
from fastmmc.cli.columns import Columns, parse_columns
from fastmmc.cli.sources import read_points
from fastmmc.cli.tables import read_table
from fastmmc.data import cells
from fastmmc.data.coding import fit_coding
from fastmmc.data.columns import LEAST_COUNTED, MISSING_DISTANCE
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
    wrong = error_of(capsys, "stream", path, "--k", 1)
    assert f"line 3, column 'b': expected a finite number, got {cell!r}" in wrong
    _, told = labels_of(capsys, "cluster", path, "--k", 1)
    assert f"column 'b': numbers; 1 cell such as {cell!r} read as missing; 1 of 3" in told
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


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a;b\n903;1,58\n2.131;2,59\n12.079;2,31\n", [[903, 1.58], [2131, 2.59], [12079, 2.31]]),
        ("a\tb\n1,5\t2\n0,25\t1.000\n", [[1.5, 2], [0.25, 1000]]),
        ('a,b\n"6.505,83",1\n"1,5",2\n', [[6505.83, 1], [1.5, 2]]),
        ('a,b\n"1,000",0.5\n"12,500",1.5\n', [[1000, 0.5], [12500, 1.5]]),
        ("a;b\n1.5;2\n2.131;3\n", [[1.5, 2], [2.131, 3]]),
        ("a,b\n5%,1\n 12.5 % ,2\n", [[0.05, 1], [0.125, 2]]),
        ("a,b\n\u20ac 5,1\n$12,2\n", [[5, 1], [12, 2]]),
    ],
)
def test_numbers_as_people_write_them(capsys, tmp_path, text, wanted):
    path = tmp_path / "t.tsv" if "\t" in text else tmp_path / "t.csv"
    path.write_text(text)
    np.testing.assert_allclose(read_points(str(path), Columns(["a", "b"])).X, wanted)


def test_texts_of_other_encodings(capsys, tmp_path):
    rows = "".join(f"{i % 5};{i * i % 7}\n" for i in range(20))
    given = ["-k", 2, "--method", "wta"]
    tables = {}
    for name, encoding in [("bom", "utf-8-sig"), ("utf-16", "utf-16"), ("cp1252", "cp1252")]:
        path = tmp_path / f"{name}.csv"
        path.write_bytes(f"Größe;b\n{rows}".encode(encoding))
        assert run("cluster", path, *given, "--json") == 0
        tables[name] = json.loads(capsys.readouterr().out)["sizes"]
        out = tmp_path / f"{name}_out.csv"
        assert run("cluster", path, *given, "--append", "--out", out) == 0
        assert ("read as cp1252" in capsys.readouterr().err) == (name == "cp1252")
        assert out.read_text(encoding=encoding).startswith("Größe;b;cluster\n")
        assert out.read_bytes()[:3] == path.read_bytes()[:3]
        capsys.readouterr()
    assert len(set(map(tuple, tables.values()))) == 1
    model = tmp_path / "m.npz"
    assert run("cluster", path, *given, "--model", model) == 0
    assert run("predict", model, path) == 0
    capsys.readouterr()
    # Bytes to which cp1252 gives no letter.
    path.write_bytes(b"a\x81,b\n1,2\n3,4\n5,9\n")
    assert "--encoding latin-1" in error_of(capsys, "cluster", path, *given)


def test_decimals_as_they_are_told(capsys, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a;b\n2.131;2,59\n1.570;1,58\n4.225;7,1\n")
    for decimal, wanted in [(None, 2131.0), (",", 2131.0), (".", 2.131)]:
        X = read_points(str(path), Columns(), decimal=decimal).X
        np.testing.assert_array_equal(X[0], [wanted, 2.59])
    assert "--decimal ." in capsys.readouterr().err


def test_a_number_that_may_be_two_is_told(capsys, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n2.131,1\n4.220,3\n")
    np.testing.assert_allclose(read_points(str(path), Columns()).X, [[2.131, 1], [4.22, 3]])
    assert "column 'a': numbers, '2.131' read as 2.131" in capsys.readouterr().err
    path.write_text("a;b\n2.131;1\n4.220;3\n")
    np.testing.assert_allclose(read_points(str(path), Columns()).X, [[2131, 1], [4220, 3]])
    assert "numbers, with separated thousands, '2.131' read as 2131" in capsys.readouterr().err


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
        told = f"fastmmc: note: {path}: column '{name}': left out, as it holds ids of the rows\n"
        assert capsys.readouterr().err.startswith(told)
        assert read_points(str(path), Columns([name, "a"])).X.shape[1] == 2
        assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("id", np.arange(LEAST_COUNTED - 1)),
        ("a1", np.arange(12) ** 2),
        ("room_no", np.arange(12) // 2),
        ("id", np.arange(12) + 0.5),
    ],
)
def test_other_columns_that_count_are_features(capsys, tmp_path, name, numbers):
    path, n = tmp_path / "t.csv", len(numbers)
    numbered("id", n).set_axis([name, "a", "b"], axis=1).assign(**{name: numbers}).to_csv(
        path, index=False
    )
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
        (
            pd.DataFrame({"a": ["y"], "b": ["x"]}),
            "no column holds numbers, dates or categories",
        ),
        (
            pd.DataFrame({"a": [1.0, np.inf]}),
            "column 'a' holds infinity, or a number too large, in row 1 (from 0); give",
        ),
        (pd.DataFrame({"a": []}), "there are no cells; got shape (0, 1)"),
        (pd.DataFrame(index=[0, 1]), "there are no cells; got shape (2, 0)"),
    ],
)
def test_faults_of_parquet(capsys, parquet, frame, message):
    assert message in error_of(capsys, "cluster", parquet(frame))


def test_infinite_cells_of_parquet_beside_missing_ones(capsys, parquet):
    path = parquet(pd.DataFrame({"x": [np.nan, 2, 4], "y": [1, 5, -np.inf], "z": [1, 2, 1.5]}))
    assert run("cluster", path) == 2
    assert (
        f"{path}: column 'y' holds infinity, or a number too large, in row 2 (from 0)"
        in capsys.readouterr().err
    )


def test_more_faults_of_parquet(capsys, tmp_path, parquet):
    path = parquet(pd.DataFrame({"a": [1.0, 2.0], "kind": ["x", None]}))
    wrong = error_of(capsys, "cluster", path, "--label-column", "kind")
    assert "row 1 (from 0): the label is empty" in wrong
    texts = {"a": [1.0, 2.0, 4.0], "kind": ["x", "y", "n/a"]}
    wrong = error_of(capsys, "cluster", parquet(pd.DataFrame(texts)), "--label-column", "kind")
    assert "row 2 (from 0): the label is 'n/a', which stands for a missing one" in wrong
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
    """Return a frame with names, towns and numbers, and the file it is written to."""
    n = 40
    X = np.random.default_rng(0).normal(size=(n, 2)) + 9.0 * (np.arange(n) % 2)[:, None]
    frame = pd.DataFrame({"name": [f"Ann {i}" for i in range(n)], "a": X[:, 0], "b": X[:, 1]})
    frame.insert(2, "town", np.array(["Ulm", "Bonn", None, "?"])[np.arange(n) % 4])
    frame.to_csv(tmp_path / "t.csv", index=False)
    return frame, tmp_path / "t.csv"


def test_columns_of_several_kinds(capsys, tmp_path, parquet):
    frame, path = texts(tmp_path)
    given = ["-k", 2, "--seed", 0]
    model = tmp_path / "model.npz"
    for source in (path, parquet(frame)):
        labels, told = labels_of(capsys, "cluster", source, *given, "--model", model)
        for note in (
            "column 'name': left out, as its texts differ in all rows",
            "column 'a': numbers, scaled",
            "column 'town': 2 categories; 20 of 40 missing: no category",
            "to leave out categories: --drop town; to compare the clusters with",
        ):
            assert f"fastmmc: note: {source}: {note}" in told
        assert f"cluster on {source}: 40 points, 4 features, 2 clusters" in told
        assert adjusted_rand_score(np.arange(40) % 2, labels) == 1
        found, told = labels_of(capsys, "predict", model, source)
        assert found.tolist() == labels.tolist()
        assert "note: " in told and "column 'town': 20 missing cells" in told
    _, told = labels_of(capsys, "cluster", path, *given, "--label-column", "name")
    assert "'name'" not in told
    labels, told = labels_of(capsys, "cluster", path, *given, "--drop", "name,town")
    assert "note" not in told


def test_levels_and_columns_that_the_model_lacks(capsys, tmp_path):
    frame, path = texts(tmp_path)
    model, new = tmp_path / "model.npz", tmp_path / "new.csv"
    labels, _ = labels_of(capsys, "cluster", path, "-k", 2, "--seed", 0, "--model", model)
    frame.drop(columns="name").replace("Ulm", "Kiel").to_csv(new, index=False)
    found, told = labels_of(capsys, "predict", model, new)
    assert found.tolist() == labels.tolist()
    assert "column 'town': 10 cells such as 'Kiel' not seen before" in told
    frame.drop(columns="town").to_csv(new, index=False)
    wrong = error_of(capsys, "predict", model, new)
    assert "the model needs column 'town', missing here; rename" in wrong
    # In Python the same model takes a frame.
    assert fastmmc.load(model).predict(frame).tolist() == labels.tolist()
    with pytest.raises(ValueError, match="lacks the column 'town'"):
        fastmmc.load(model).predict(frame.drop(columns="town"))


def test_dates(capsys, tmp_path):
    path = tmp_path / "t.csv"
    days = pd.Timestamp("2017-04-23") + pd.to_timedelta(np.arange(60) % 50, "D")
    for form in ("%Y-%m-%d", "%d.%m.%Y", "%d.%m.%Y %H:%M", "%Y-%m-%dT%H:%M:%S+02:00", "%m/%d/%Y"):
        pd.DataFrame({"when": days.strftime(form), "a": np.arange(60) % 7}).to_csv(
            path, index=False
        )
        points = read_points(str(path), Columns())
        assert "column 'when': dates, as a number and day of the week\n" in capsys.readouterr().err
        expected = (np.arange(60) % 50 - np.mean(np.arange(60) % 50)) / np.std(np.arange(60) % 50)
        weight = 0.5**0.5 * (1 - 10 / (60 * 59 / 2)) ** 2  # ten pairs of rows have the same day
        np.testing.assert_allclose(points.X[:, 0], weight * expected, atol=1e-12)
        circle = points.X[:, 1:3] + weight * np.array(points.coding.columns[0].centers)
        np.testing.assert_allclose(np.hypot(*circle.T), weight)
        np.testing.assert_allclose(points.X[:, 1:3].mean(axis=0), 0, atol=1e-12)
    others = [f"{hour}:30" for hour in range(12)]
    pd.DataFrame({"at": ["23:55", "00:05", "12:00", *others]}).to_csv(path, index=False)
    X = read_points(str(path), Columns()).X
    assert "column 'at': times, as time of day" in capsys.readouterr().err
    near, far = np.linalg.norm(X[1:3] - X[0], axis=1)
    assert near < 0.025 * far and far > 1.9


@pytest.mark.parametrize("gap", ["", " ", "NA", "n/a", "NaN", "null", "None", "?"])
def test_missing_cells_are_filled_as_in_similar_rows(capsys, tmp_path, gap):
    path, whole, new = (tmp_path / name for name in ("t.csv", "whole.csv", "new.csv"))
    text = "a,b\n1,2\nGAP,1\n2,9\n6,GAP\n7,5\n"
    path.write_text(text.replace("GAP", gap))
    model = tmp_path / "model.npz"
    given = ["--method", "umc-rls", "-k", 2, "--seed", 0, "--standardize"]
    labels, told = labels_of(capsys, "cluster", path, *given, "--fill-missing", "--model", model)
    assert "columns 'a' to 'b' (2): numbers, scaled; 1 of 5 missing: as in similar rows\n" in told
    whole.write_text(text.replace("GAP,1", "4,1").replace("GAP", "4.25"))
    assert labels_of(capsys, "cluster", whole, *given)[0].tolist() == labels.tolist()
    # The rows are those of the model, not of the new points.
    new.write_text("b,a\n2,4\n9,4\n")
    expected, _ = labels_of(capsys, "predict", model, new)
    new.write_text(f"b,a\n2,{gap}\n9,{gap}\n")
    found, told = labels_of(capsys, "predict", model, new)
    assert found.tolist() == expected.tolist()
    assert "column 'a': 2 missing cells" in told


def test_missing_cells_are_marked(capsys, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n,1\n2,9\n6,4\n7,5\n")
    X = read_points(str(path), Columns()).X
    assert "1 of 5 missing: as in similar rows, marked by a column" in capsys.readouterr().err
    # In the units of the column, as it is the only kind.
    deviation = np.std([1, 2, 6, 7])
    np.testing.assert_allclose(X[1], [4, MISSING_DISTANCE * deviation, 1])
    assert (X[[0, 2, 3, 4], 1] == 0).all()


def test_columns_that_say_nothing(capsys, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,c\n1,,x\n2,NA,x\n4,,x\n")
    np.testing.assert_array_equal(read_points(str(path), Columns()).X, [[1], [2], [4]])
    told = capsys.readouterr().err
    assert "column 'b': left out, as all cells are missing" in told
    assert "column 'c': left out, as it is 'x' in all rows" in told
    np.save(tmp_path / "counts.npy", np.arange(12).reshape(6, 2))
    labels_of(capsys, "cluster", tmp_path / "counts.npy", "-k", 2, "--fill-missing", "--seed", 0)


STRANGE = ["my town, now", "-x", "it's", '"q', "2020", "3-5", "$HOME", "same"]
# Calls, where their hint begins and ends, and what is told where the hint is heeded.
HINTS = [
    *((f"cluster {i}.csv", "--drop", "; to compare", "2 features") for i in range(len(STRANGE))),
    *((f"cluster {i}.csv", "--label-column", "\n", "ARI") for i in (1, 3, 4, 7)),
    *((f"stream {i}.csv", "--drop", "\n", "20 rows") for i in (0, 2, 6)),
    ("cluster cp1252.csv", "--encoding", "\n", "column 'Größe'"),
    ("cluster wide.csv", "--encoding", "\n", "3 points"),
    ("cluster marks.csv", "--decimal", "\n", "'1.570' read as 1570"),
]


def as_shell_reads(hint):
    done = subprocess.run(["sh", "-c", rf"printf '%s\0' {hint}"], capture_output=True, text=True)
    assert done.stdout.split("\0")[:-1] == shlex.split(hint)
    return shlex.split(hint)


@pytest.fixture
def strange_tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{i % 5},{i * i % 7},{'xy'[i % 2]},{'uv'[i // 3 % 2]}\n" for i in range(20))
    for i, name in enumerate(STRANGE):
        with open(f"{i}.csv", "w") as file:
            csv.writer(file).writerow(["a", "b", "same", name])
            file.write(rows)
    plain = "Größe,b\n1,2%\n3,5\n4,1\n"
    Path("cp1252.csv").write_bytes(plain.encode("cp1252"))
    Path("wide.csv").write_bytes(plain.encode("utf-16-le"))
    Path("marks.csv").write_text("a,b\n1.570,1\n2.131,5\n4.225,3\n")
    Path("my file.csv").write_text("a,b\n1,2\n3,5\n4,1\n")


@pytest.mark.parametrize(("call", "begin", "end", "wanted"), HINTS)
def test_every_hint_can_be_pasted(capsys, strange_tables, call, begin, end, wanted):
    command = [*call.split(), "-k", "2"]
    run(*command)
    told = capsys.readouterr().err
    hint = begin + told.rpartition(begin)[2].partition(end)[0]
    assert run(*command, *as_shell_reads(hint)) == 0, (hint, capsys.readouterr().err)
    assert wanted in capsys.readouterr().err


def test_a_command_that_was_meant_can_be_pasted(capsys, strange_tables):
    told = error_of(capsys, "my file.csv")
    command = as_shell_reads(re.search(r"did you mean (.*?)\?", told)[1])
    assert run(*command[1:], "-k", 2) == 0


def test_missing_cells_of_parquet(capsys, parquet):
    path = parquet(pd.DataFrame({"id": [0, 1, 2], "a": [1.0, None, 5.0]}))
    found = read_points(str(path), Columns(), marks_missing=False)
    np.testing.assert_array_equal(found.X, [[0, 1], [1, 3], [2, 5]])
    assert [column.fill for column in found.coding.columns] == [1.0, 3.0]
    assert "column 'a': numbers; 1 of 3 missing: as in similar rows\n" in capsys.readouterr().err


@pytest.mark.filterwarnings("always")
def test_warnings_speak_of_options(capsys, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "".join(f"{i % 2},{i * 1000}\n" for i in range(30)))
    given = ["cluster", path, "--method", "umc-rls", "-k", 2, "--n-init", 2, "--seed", 0]
    assert "in the distances. Give --standardize; ignore this" in labels_of(capsys, *given)[1]
    assert "different units" not in labels_of(capsys, *given, "--standardize")[1]


# The table with its labels


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_labels_beside_their_rows(capsys, tmp_path, end, last, mark):
    path, out = tmp_path / "t.csv", tmp_path / "out.csv"
    rows = [["cluster", "a", '"x, y; z"'], ["1", "9", '"p, ""q"""'], ["2", "8", "r"]] * 1
    rows += [[str(i % 2), str(i % 2), " s "] for i in range(12)]
    lines = [mark.join(row) for row in rows]
    lines.insert(4, "")
    path.write_bytes((end.join(lines) + end * last).encode())
    given = ["cluster", path, "-k", 2, "--seed", 0, "--columns", "a", "--method", "umc-rls"]
    labels, _ = labels_of(capsys, *given)
    assert run(*given, "--append", "--out", out) == 0
    found = out.read_bytes().decode().split(end)
    beside = ["cluster_2", *map(str, labels)]
    beside.insert(4, None)
    expected = [
        line if label is None else f"{line}{mark}{label}"
        for line, label in zip(lines, beside, strict=True)
    ]
    # A last row without an end of line gets that of the others.
    assert end.join(expected) + end == end.join(found)
    capsys.readouterr()
    assert run(*given, "--append") == 0
    assert capsys.readouterr().out == end.join(found)


def test_labels_beside_what_has_no_lines(capsys, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("1,2\n3,4\n1,3\n")
    assert run("cluster", path, "-k", 2, "--seed", 0, "--append") == 0
    assert [line.count(",") for line in capsys.readouterr().out.splitlines()] == [2, 2, 2]
    for given, message in [
        (["iris"], "--append is for files of .csv, .tsv; got SOURCE iris"),
        (["-"], "--append is for files of .csv, .tsv; got SOURCE -"),
        ([path, "--json"], "--append with --json writes the table to --out only"),
        ([path, "--out", tmp_path / "x.npy"], "the name of --out beside --append must end in one"),
        ([path, "--out", path], "is a file to be read"),
    ]:
        assert message in error_of(capsys, "cluster", *given, "-k", 2, "--append")


@pytest.mark.parametrize("text", ["", "a,b\n", "a,b\n1,2\n", "a,b\n1,2\n3,4\n5,6\n"])
def test_labels_beside_a_table_that_changed(tmp_path, text):
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match="other rows than before; do not change it meanwhile"):
        list(tables.lines_with_labels(path, tables.read_text(path), True, [0, 1]))


# Random tables: labels and a word on each column, or an error of one line

CELLS = [
    "", "NA", "1", "-2.5", "3,5", "1.234", "1,234", "6.505,83", "5%", "inf", "1e999", "x", "yes",
    "no", "2020-01-01", "31.12.2019", "12:30", "2020-13-45", "\u00fc", "'", "a b", "1_000", "#",
]  # fmt: skip


def random_table(rng, names):
    """Return the text of a table with few kinds of cells in each column."""
    mark, n = rng.choice([",", ";", "\t"]), int(rng.integers(2, 25))
    columns = [rng.choice(rng.choice(CELLS, rng.integers(1, 5)), n) for _ in names]
    rows = [names, *zip(*columns, strict=True)]
    return "".join(mark.join(f'"{cell}"' for cell in row) + "\n" for row in rows)


@pytest.mark.parametrize("seed", range(40))
def test_random_tables(capsys, tmp_path, seed):
    rng = np.random.default_rng(seed)
    names = ["id", "q'1", "b, c", "when"][: rng.integers(1, 5)]
    path, new, model = (tmp_path / name for name in ("t.csv", "new.csv", "model.npz"))
    path.write_text(random_table(rng, names), encoding="utf-8")
    new.write_text(random_table(rng, names), encoding="utf-8")
    given = ["cluster", path, "-k", 1, "--method", "wta", "--seed", 0, "--model", model]
    code = run(*given)
    out, err = capsys.readouterr()
    assert code in (0, 2) and "Traceback" not in err
    if code == 2:
        assert out == "" and err.splitlines()[-1].startswith(f"fastmmc: error: {path}: ")
        return
    assert len(out.splitlines()) == len(path.read_text().splitlines())
    assert "note" not in err or all(repr(name) in err or " to " in err for name in names)
    code = run("predict", model, new)
    out, err = capsys.readouterr()
    assert code in (0, 2) and "Traceback" not in err
    if code == 0:
        assert len(out.splitlines()) == len(new.read_text().splitlines())
    else:
        assert out == "" and str(new) in err.splitlines()[-1]


def test_blank_lines_between_rows_are_told(capsys, tmp_path):
    """Of one column, such a line may be meant as a missing cell, and there are fewer labels."""
    path = tmp_path / "points.csv"
    path.write_text("a\n\n1\n\n2\n\n9\n10\n11\n\n")
    argv = ["cluster", path, "-k", 2, "--out", tmp_path / "labels.csv"]
    assert run(*argv) == 0
    assert "2 blank lines between the rows left out" in capsys.readouterr().err
    path.write_text("a\n1\n2\n9\n10\n11\n\n\n")
    assert run(*argv) == 0
    assert "blank" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("kunde,2020,2021\nA,3,4\nB,5,9\nC,30,40\n", ["kunde", "2020", "2021"]),
        ("nr,2020,1999\n7,3,4\n9,5,9\n", ["nr", "2020", "1999"]),
        ("day,10,50\n2020-01-01,3,4\n2020-01-02,5,9\n", ["day", "10", "50"]),
        ("a,1,2,3\nx,1,5,2\ny,2,1,3\n", ["a", "1", "2", "3"]),
        # Two names above numbers, and dates above numbers that are none.
        ("v,n,mean,25%\nx,30,1.5,2\ny,20,2.5,3\n", ["v", "n", "mean", "25%"]),
        ("shop,2024-01-01,2024-02-01\nA,3,5\nB,4,9\n", ["shop", "2024-01-01", "2024-02-01"]),
        # Rows of data: numbers that do not count, are equal, not whole, or among those below.
        ("a,3,7\nb,5,9\nc,1,8\n", None),
        ("a,5,5\n1,5,9\n2,1,8\n", None),
        ("x,1.5,2\n1,5,9\n2,1,8\n", None),
        ("a,3,4\nb,2,9\nc,8,1\n", None),
        ("NA,3,4\n1,2,9\n2,8,1\n", None),
        ("a,1,2,3\na,1,5,2\nb,2,1,3\n", None),
        # A mark of missing cells among numbers.
        ("x,3,5\n4,1,2\nx,2,1\n6,2,7\n", None),
    ],
)
def test_a_header_with_numbers(capsys, tmp_path, text, names):
    path = tmp_path / "t.csv"
    path.write_text(text)
    layout = read_table(path, Columns())[2]
    assert layout.names == names
    told = capsys.readouterr().err
    assert ("taken for the header, though it has numbers" in told) == (names is not None)
    if text[:5] in ("a,5,5", "x,1.5"):
        streamed = error_of(capsys, "stream", path, "--k", 1)
        assert f"got {text[0]!r}" in streamed and "the row was taken for data" in streamed
        return
    assert run("stream", path, "--k", 1) == 0
    assert len(capsys.readouterr().out.splitlines()) == text.count("\n") + (names is None)


def test_a_header_with_numbers_that_comes_again_is_one(tmp_path):
    """Files that were put together have it between their rows."""
    path = tmp_path / "t.csv"
    path.write_text("nr,2020,1999\n7,3,4\nnr,2020,1999\n9,5,9\n")
    assert read_table(path, Columns())[2].names == ["nr", "2020", "1999"]


@pytest.mark.parametrize(
    ("text", "has_header"),
    [
        ("a,u\n" + "b,v\na,u\n" * 20, False),
        (" a ,u\n" + "b,v\na,w\nb,u\n" * 20, False),
        ("a,u\n" + "b,v\na,v\n" * 20, True),
        # Files that were put together.
        ("a,u\nb,1.5\na,u\n" + "b,2.5\nc,3\n" * 20, True),
    ],
)
def test_a_first_row_that_comes_again_is_data(capsys, tmp_path, text, has_header):
    path = tmp_path / "t.csv"
    path.write_text(text)
    n = text.count("\n")
    assert run("cluster", path, "-k", 2) == 0
    out, told = capsys.readouterr()
    assert len(out.splitlines()) == 1 + n - has_header
    assert ("the first row was taken for data, as all that it holds is" in told) != has_header
    if "1.5" not in text:  # where the second header is an error
        assert run("stream", path, "-k", 2) == 0
        assert len(capsys.readouterr().out.splitlines()) == 1 + n - has_header
    # A column that is named tells that there is a header.
    assert run("cluster", path, "-k", 2, "--columns", text.split(",")[0].strip()) == 0
    assert len(capsys.readouterr().out.splitlines()) == n


@pytest.mark.parametrize("mark", [";", ",", "\t", "|"])
def test_the_line_in_which_excel_tells_the_delimiter_is_no_row(capsys, tmp_path, mark):
    path = tmp_path / "t.csv"
    path.write_text(f"sep={mark}\na{mark}b\n1{mark}2\n2{mark}3\n9{mark}8\n")
    frame, _, layout = read_table(path, Columns())
    assert [values.texts for values in frame.columns] == [["1", "2", "9"], ["2", "3", "8"]]
    assert layout.names == ["a", "b"]
    assert run("cluster", path, "-k", 2, "--append") == 0
    first = f"sep={mark}", f"a{mark}b{mark}cluster"
    assert (*capsys.readouterr().out.splitlines()[:2],) == first
    assert run("stream", path, "-k", 2) == 0
    out, told = capsys.readouterr()
    assert len(out.splitlines()) == 1 + 3 and "blank" not in told


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be"])
def test_the_mark_of_an_encoding_that_is_named_is_no_text(tmp_path, encoding):
    path = tmp_path / "t.csv"
    path.write_bytes("\ufeff1,2\n2,3\n9,8\n".encode(encoding))
    frame = read_table(path, Columns(), encoding)[0]
    assert [values.texts for values in frame.columns] == [["1", "2", "9"], ["2", "3", "8"]]


def test_dates_with_dashes_have_an_order_that_clear_ones_tell(capsys, tmp_path):
    path = tmp_path / "t.csv"
    for last, form in (("01-25", "%m-%d-%Y"), ("25-01", "%d-%m-%Y")):
        days = ["02-01-2024", "03-01-2024", f"{last}-2024"]
        path.write_text("d,a\n" + "".join(f"{day},{i}.5\n" for i, day in enumerate(days)))
        column = fit_coding(read_table(path, Columns())[0]).columns[0]
        assert column.form == form and "missing" not in column.said
    path.write_text("d,a\n02-01-2024,1.5\n03-01-2024,2.5\n04-01-2024,9\n")
    assert run("cluster", path, "-k", 2) == 0
    assert "'02-01-2024' read as 2024-01-02" in capsys.readouterr().err


def test_cells_are_read_once(monkeypatch, tmp_path):
    seen = Counter()

    def counted(name):
        function = getattr(cells, name)

        def call(texts, *args):
            seen[name, *texts] += 1
            return function(texts, *args)

        return call

    for name in ("plain_numbers", "decimal_mark", "numbers_of"):
        monkeypatch.setattr(cells, name, counted(name))
    path = tmp_path / "t.csv"
    path.write_text("a,b,k\n1.5,2 €,x\n2.5,3 €,y\n9.5,,x\n4.5,8 €,y\n")
    points = read_points(path, Columns())
    assert points.X.shape == (4, 5)
    assert {key[1] for key in seen} == {"1.5", "2 €", "x"} and set(seen.values()) == {1}


def test_bars_separate_cells_and_spaces_are_refused(tmp_path, capsys):
    numbers = np.round([[i / 7, 30 * (i % 2) + i / 9] for i in range(20)], 2)
    path = tmp_path / "table.csv"
    path.write_text("a|b\n" + "\n".join(f"{a}|{b}" for a, b in numbers) + "\n")
    labels, _ = labels_of(capsys, "cluster", path, "-k", "2")
    assert adjusted_rand_score(labels, np.arange(20) % 2) == 1.0
    for first in ("a b", "0.5  30.5"):
        path.write_text(f"{first}\n" + "\n".join(f"{a} {b}" for a, b in numbers) + "\n")
        assert "seem to be separated by spaces" in error_of(capsys, "cluster", path, "-k", "2")


@pytest.mark.parametrize("cells_", [["1 234", "5 678", "9 012"], ["2024-01-01 12:00"] * 3])
def test_spaces_within_a_number_or_a_date_are_no_separators(cells_, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("\n".join(["a", *cells_]) + "\n")
    frame, _, _ = read_table(path, Columns(None, None, None))
    assert len(frame.columns) == 1


def test_an_empty_cell_of_one_column_has_no_spaces(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text('a\n1\n""\n2\n')
    frame, _, _ = read_table(path, Columns())
    assert frame.columns[0].texts == ["1", None, "2"]


def test_messages_about_wide_tables_are_short(capsys, tmp_path):
    texts = np.random.default_rng(0).choice(["u", "v"], (40, 300))
    frame = pd.DataFrame(texts, columns=[f"column_{j}" for j in range(300)])
    frame["a"] = np.arange(40) % 7 / 3
    path, model, new = (tmp_path / name for name in ("t.csv", "model.npz", "new.csv"))
    frame.to_csv(path, index=False)
    _, told = labels_of(capsys, "cluster", path, "-k", 2, "--method", "wta", "--model", model)
    assert "to leave out categories: --drop 0-299; to compare" in told
    assert "--label-column column_299\n" in told
    assert (
        "wta on"
        in labels_of(capsys, "cluster", path, "-k", 2, "--method", "wta", "--drop", "0-299")[1]
    )
    frame["a"].to_csv(new, index=False)
    wrong = [
        error_of(capsys, "predict", model, new),
        error_of(capsys, "cluster", path, "--drop", "z"),
    ]
    assert "'column_9', and 290 more, missing here" in wrong[0]
    assert "column_9, and 291 more" in wrong[1]
    assert max(map(len, (*wrong, *told.splitlines()))) < 500


@pytest.mark.parametrize("command", ["cluster", "stream"])
def test_a_title_above_the_header_is_to_be_deleted(capsys, tmp_path, command):
    path = tmp_path / "t.csv"
    path.write_text("Report of 2024\na,b\n1,2\n2,3\n")
    wrong = error_of(capsys, command, path, "-k", 2)
    assert "line 2 has 2 cells; line 1 has 1; if it is a title or a comment, delete it" in wrong
