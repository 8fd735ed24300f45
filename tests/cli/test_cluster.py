"""The command cluster."""

import csv
import io
import json
import os
import re
import shlex
import shutil
import stat
import struct
import subprocess
import sys
import threading
import time
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numba.core import event
from PIL import Image
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

import fastmmc
from fastmmc import cli, datasets
from fastmmc.cli.columns import Columns
from fastmmc.cli.sources import read_points
from fastmmc.registry import METHODS, registry_name
from tests.cli.runner import FEW, error_of, labels_of, never, register, report_of, run


def read(source, label=None, columns=None, drop=None):
    points = read_points(str(source), Columns(columns, drop, label))
    return points.X, points.y


def test_json_agrees_with_the_library(capsys, table, blobs, expected):
    report = report_of(capsys, table, "--k", 3, "--label-column", "kind", *FEW)
    y = blobs[1]
    assert (report["method"], report["n"], report["d"], report["k"]) == ("umc-rls", 75, 4, 3)
    assert report["sizes"] == expected.sizes.tolist()
    assert report["objective"] == pytest.approx(expected.objective, rel=1e-9)
    assert report["loo_mse"] == pytest.approx(expected.loo_mse, rel=1e-9)
    assert report["status"] == "CONVERGED" and report["seconds"] > 0
    assert report["params"] == pytest.approx(expected.params)
    assert report["ari"] == pytest.approx(adjusted_rand_score(y, expected.labels))
    nmi = normalized_mutual_info_score(y, expected.labels, average_method="geometric")
    assert report["nmi"] == pytest.approx(nmi)


def test_text_output_shows_the_same(capsys, table, tmp_path, expected):
    labels, told = labels_of(capsys, "cluster", table, "-k", 3, "--label-column", "kind", *FEW)
    np.testing.assert_array_equal(labels, expected.labels)
    given = ["cluster", table, "--k", 3, "--label-column", "kind", *FEW]
    assert run(*given, "--out", tmp_path / "labels.csv") == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[:-3] == told.splitlines()[:-3]  # then seconds and scores
    lines = dict(line.split(None, 1) for line in out.splitlines())
    assert out.startswith(f"umc-rls on {table}: 75 points, 4 features, 3 clusters\n")
    assert lines["sizes"].split() == [str(size) for size in expected.sizes]
    objective, starts = lines["objective"].split(", ")
    assert float(objective) == pytest.approx(expected.objective, rel=1e-5)
    assert starts == "the lowest of 2 starts"
    assert lines["status"] == "converged"
    assert {"time", "ARI", "NMI"} <= lines.keys()
    assert err == ""


def test_a_data_set_by_name_with_its_sizes(capsys):
    _, told = labels_of(capsys, "cluster", "moons", "--method", "umc-rls", "-k", 2, "--seed", 0)
    head = "umc-rls on moons: 200 points, 2 features, 2 clusters\nsizes      100 100\n"
    assert told.startswith(head)


def test_without_true_labels_there_is_no_score(capsys, tmp_path, blobs):
    np.save(tmp_path / "X.npy", blobs[0])
    report = report_of(capsys, tmp_path / "X.npy", "--k", 3, *FEW)
    assert report["ari"] is None and report["nmi"] is None
    assert "ARI" not in labels_of(capsys, "cluster", tmp_path / "X.npy", "--k", 3, *FEW)[1]


def test_labels_file_holds_the_result(capsys, table, tmp_path, expected):
    out = tmp_path / "labels.csv"
    report_of(capsys, table, "--k", 3, "--label-column", 2, "--out", out, *FEW)
    header, *labels = out.read_text().splitlines()
    assert header == "label"
    assert [int(label) for label in labels] == expected.labels.tolist()


def test_labels_are_written_as_the_name_of_the_file_says(capsys, table, tmp_path, expected):
    given = [table, "--k", 3, "--label-column", "kind", *FEW, "--out"]
    for name in ("a.csv", "a.txt", "a.TSV", "plain"):
        report_of(capsys, *given, tmp_path / name)
        header, *labels = (tmp_path / name).read_text().splitlines()
        assert header == "label" and [int(i) for i in labels] == expected.labels.tolist()
    for name in ("a.npy", "b.NPY"):
        report_of(capsys, *given, tmp_path / name)
        found = np.load(tmp_path / name, allow_pickle=False)
        np.testing.assert_array_equal(found, expected.labels)
        assert found.dtype == np.int64
    assert "without the option, labels go to standard output" in error_of(
        capsys, "cluster", *given, "-"
    )
    for name in ("a.npz", "a.json"):
        wrong = error_of(capsys, "cluster", *given, tmp_path / name)
        assert "--out must end in one of .npy, .parquet, .csv, .txt, .tsv" in wrong
        assert not (tmp_path / name).exists()


def test_standard_input_is_read(capsys, table, piped, expected):
    whole = table.read_text()
    given = ["-", "--k", 3, "--label-column", "kind", *FEW]
    for text in (whole, whole.replace(",", "\t")):
        piped("\n" + text)
        report = report_of(capsys, *given)
        assert report["objective"] == expected.objective and report["ari"] is not None
    piped(whole.replace(",", ";").replace(".", ","))
    assert run("cluster", *given, "--json") == 0
    out, told = capsys.readouterr()
    assert json.loads(out)["objective"] == expected.objective
    assert "columns 'a' to 'd' (4): numbers, with decimal commas" in told
    piped(table.read_text())
    _, told = labels_of(capsys, "cluster", "-", "--k", 3, "--label-column", "kind", *FEW)
    assert told.startswith("umc-rls on standard input: 75 points, 4 features")
    for text, message in [
        ("", "standard input: the file is empty"),
        ("a,b\n1,2\n1\n", "standard input: line 3 has 1 cell; line 1 has 2"),
        (b"1,\x81\n", "standard input: not a text file in CP1252"),
    ]:
        piped(text)
        assert message in error_of(capsys, "cluster", "-", "--k", 1)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_a_named_pipe_is_read(capsys, table, tmp_path, expected):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(table.read_bytes()))
    writer.start()
    labels, _ = labels_of(capsys, "cluster", pipe, "--k", 3, "--label-column", "kind", *FEW)
    writer.join()
    np.testing.assert_array_equal(labels, expected.labels)


NOTE = "left out; give a name to use it as a feature"


@pytest.mark.parametrize("columns", [["a", "b"], [0, 1]])
@pytest.mark.parametrize("index", [None, list("xyzuvw"), [5, 3, 4, 0, 1, 2]])
def test_the_index_of_a_frame_is_no_feature(capsys, tmp_path, columns, index):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6, 2))
    frame = pd.DataFrame(X, columns=columns, index=index)
    frame.to_csv(tmp_path / "frame.csv")
    frame.to_csv(tmp_path / "frame.tsv", sep="\t")
    # What was read with its index as a column, and written with another one.
    pd.read_csv(tmp_path / "frame.csv").to_csv(tmp_path / "again.csv")
    for name in ("frame.csv", "frame.tsv", "again.csv"):
        found, _ = read(tmp_path / name)
        np.testing.assert_allclose(found, X)
        err = capsys.readouterr().err
        assert err.startswith(f"fastmmc: note: {tmp_path / name}: the first ") and NOTE in err


def test_columns_that_are_numbered_are_told_of(capsys, piped):
    X = np.random.default_rng(0).standard_normal((4, 3))
    for n_columns in (2, 3):
        piped(pd.DataFrame(X[:, :n_columns]).to_csv(index=False))
        found, _ = read("-")
        np.testing.assert_allclose(found, X[:, :n_columns])
        assert "the first row, 0, 1 ... above no whole number" in capsys.readouterr().err
    # As years, and where data lack a whole number in one column only.
    piped("2019,2020\n" + "1.5,2.25\n3.0,1.5\n")
    assert len(read("-")[0]) == 2
    assert "the first row, 2019, 2020 ... above no whole number" in capsys.readouterr().err
    piped("2019,2020\n" + "1.5,2\n3.0,1\n")
    assert len(read("-")[0]) == 3
    # Among whole numbers it may be a row.
    piped(pd.DataFrame(np.rint(9 * X).astype(int)).to_csv(index=False))
    found, _ = read("-")
    assert len(found) == 5
    told = capsys.readouterr().err
    assert told.startswith("fastmmc: note: standard input: the first row is 0, 1, 2 ...")
    piped(pd.DataFrame(X).to_csv(index=False, header=False))
    np.testing.assert_allclose(read("-")[0], X)
    assert capsys.readouterr().err == ""


def test_columns_with_names_are_features(capsys, tmp_path, piped):
    piped(",a,kind\n0,1.5,x\n1,2.5,y\n")
    X, y = read("-", "kind")
    np.testing.assert_array_equal(X, [[1.5], [2.5]])
    assert y.tolist() == [0, 1] and NOTE in capsys.readouterr().err
    for text, label, wanted in [
        ("a,,b\n0,1,2\n", None, [[0, 1, 2]]),  # not on the left
        ("id,a\n0,1\n", None, [[0, 1]]),
        (",kind\n0,x\n", "kind", [[0]]),  # nothing else is left
        (",a\nx,1\n", "0", [[1]]),  # it is the label
        ("0,1\n2,3\n", None, [[0, 1], [2, 3]]),
    ]:
        piped(text)
        np.testing.assert_array_equal(read("-", label)[0], wanted)
        assert capsys.readouterr().err == ""


def test_every_kind_of_file_gives_the_same_result(capsys, table, tmp_path, blobs):
    X, y = blobs
    np.savetxt(tmp_path / "bare.csv", X, delimiter=",", fmt="%.17g")
    (tmp_path / "table.tsv").write_text(table.read_text().replace(",", "\t"))
    np.save(tmp_path / "X.npy", X)
    np.savez(tmp_path / "Xy.npz", X=X, y=y)
    wanted = report_of(capsys, table, "--k", 3, "--label-column", "kind", *FEW)
    for name, options in [
        ("bare.csv", []),
        ("table.tsv", ["--label-column", "kind"]),
        ("X.npy", []),
        ("Xy.npz", []),
    ]:
        report = report_of(capsys, tmp_path / name, "--k", 3, *options, *FEW)
        assert report["objective"] == wanted["objective"], name
        assert report["ari"] in (None, wanted["ari"]), name


@pytest.mark.jit
def test_data_set_by_name(capsys):
    report = report_of(capsys, "moons", "--k", 2, "--sigma", 0.7, "--lam", 0.5, *FEW)
    X, y = fastmmc.datasets.load("moons")
    result = fastmmc.umc_rls(X, 2, sigma=0.7, lam=0.5)
    assert report["ari"] == pytest.approx(adjusted_rand_score(y, result.labels))
    assert (report["params"]["sigma"], report["params"]["lam"]) == (0.7, 0.5)


def test_search_is_passed_on(capsys):
    report = report_of(capsys, "iris", "--k", 3, "--seed", 0, "--search", "memetic")
    X, _ = fastmmc.datasets.load("iris")
    expected = fastmmc.umc_rls(X, 3, method="memetic", random_state=0)
    assert report["method"] == "umc-rls" and report["sizes"] == expected.sizes.tolist()
    wrong = error_of(capsys, "cluster", "iris", "--k", 3, "--search", "some")
    assert "--search must be one of" in wrong


def test_search_of_sammc(capsys):
    given = ["iris", "--k", 3, "--seed", 0, "--method", "sammc", "--search"]
    objectives = {}
    for search in ("memetic", "annealing"):
        expected = fastmmc.sammc(fastmmc.datasets.load("iris")[0], 3, search=search, random_state=0)
        report = report_of(capsys, *given, search)
        assert report["objective"] == expected.objective
        objectives[search] = expected.objective
    assert objectives["memetic"] < objectives["annealing"]
    assert "search must be one of 'memetic', 'annealing'" in error_of(
        capsys, "cluster", *given, "some"
    )
    unknown = error_of(capsys, "cluster", *given, "memetic", "--lam", 1)
    assert "sammc has no --lam; of these options it has --k, --search, --n-init" in unknown


def test_methods_may_be_named_as_functions(capsys, pairs, tmp_path):
    for name in ("iter-svr", "iter_svr", "IterSVR", "ITER SVR", "itersvr"):
        assert report_of(capsys, pairs, "--method", name, *FEW)["method"] == "iter-svr"
    picture = tmp_path / "picture.png"
    Image.fromarray(np.arange(48, dtype=np.uint8).reshape(4, 4, 3)).save(picture)
    given = ["segment", str(picture), "--k", "2", "--method", "fast_evo_mmc", "--seed", "0"]
    assert run(*given) == 0
    assert capsys.readouterr().out.startswith("fast-evo-mmc on ")
    assert "there is no method 'bla'" in error_of(capsys, "cluster", pairs, "--method", "bla")


def test_options_that_a_method_lacks_are_refused_for_pictures(capsys, tmp_path):
    picture = tmp_path / "picture.png"
    Image.fromarray(np.arange(48, dtype=np.uint8).reshape(4, 4, 3)).save(picture)
    for method, option in (("wta", "balance"), ("wta", "rank"), ("evo-mmc", "rank")):
        wrong = [picture, "--k", 2, "--method", method, f"--{option}", 0.5]
        lacking = f"{method} has no --{option}; of these options it has --k"
        assert lacking in error_of(capsys, "segment", *wrong)


def test_recursive_splitting(capsys, table, blobs):
    splitting = ["--method", "recursive-mmc", "--search", "fast-evo-mmc", "--k", 3]
    options = [*splitting, "--split", "gain", "--sigma", 9, "--label-column", "kind", *FEW]
    report = report_of(capsys, table, *options)
    params = {"sigma": 9.0}
    expected = fastmmc.recursive_mmc(
        blobs[0],
        3,
        method="fast_evo_mmc",
        method_params=params,
        split="gain",
        n_init=2,
        random_state=0,
    )
    assert report["sizes"] == expected.sizes.tolist()
    assert report["params"] == expected.params and expected.params["method_params"] == params
    assert labels_of(capsys, "cluster", table, *options)[1].endswith(f"{expected.tree}\n")
    wrong = ["cluster", "iris", "--method", "recursive-mmc", "--search", "evo-mmc", "--k", 3]
    assert "evo-mmc has no 'rank'" in error_of(capsys, *wrong, "--rank", 5)
    assert "split must be one of" in error_of(capsys, *wrong, "--split", "best")
    assert "recursive-mmc needs the" in error_of(capsys, *wrong[:-2])
    assert "umc-rls has no --split" in error_of(
        capsys, "cluster", "iris", "--k", 3, "--split", "gain"
    )


def test_data_set_by_name_from_a_folder(capsys, tmp_path, monkeypatch, blobs):
    np.savez(tmp_path / "mine.npz", X=blobs[0], y=blobs[1])
    monkeypatch.setenv("FASTMMC_DATA", str(tmp_path))
    assert report_of(capsys, "mine", "--k", 3, *FEW)["n"] == 75


def test_header_is_told_from_data(tmp_path):
    def read_text(text, label_column=None):
        path = tmp_path / "t.csv"
        path.write_text(text)
        return read(path, label_column)

    X, y = read_text("1,2\n3,4\n")
    np.testing.assert_array_equal(X, [[1, 2], [3, 4]])
    assert y is None
    np.testing.assert_array_equal(read_text("\ufeffa, b\n\n 1, 2\n")[0], [[1, 2]])
    # Text in the label column of the first row does not make it a header.
    X, y = read_text("1,2,dog\n3,4,cat\n", "2")
    np.testing.assert_array_equal(X, [[1, 2], [3, 4]])
    assert y.tolist() == [1, 0]
    # A label column given by name does, even where other names are numbers.
    X, y = read_text("kind,0,1\ndog,1,2\n", "kind")
    np.testing.assert_array_equal(X, [[1, 2]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("\n\n", "the file is empty"),
        ("a,b\n", "there is a header and nothing below it"),
        ("a,b\n1,2\n3\n", "line 3 has 1 cell; line 1 has 2"),
        ("a,b\n,nan\n", "no column holds numbers, dates or categories: 'a' is left out, as all"),
        ("a,b\nx,1e999\n", "no column holds numbers, dates or categories: 'a' is left out, as it"),
        ("1,2\n3,4\n", "k must be at most 2, the number of points; got 3"),
    ],
)
def test_faults_of_a_table(capsys, tmp_path, text, message):
    path = tmp_path / "t.csv"
    path.write_text(text)
    assert message in error_of(capsys, "cluster", path, "--k", 3)


def test_compressed_tables_are_to_be_piped(capsys, tmp_path):
    path = tmp_path / "a table.csv.gz"
    assert "the name must end in" in error_of(capsys, "cluster", path)
    path.touch()
    assert f"gzip -dc '{path}' | fastmmc ... -\n" in error_of(capsys, "cluster", path)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("sort", "no column 'sort' in the header; it has a, b, kind, c, d"),
        ("5", "got 5, but the columns are 0 to 4"),
    ],
)
def test_faults_of_a_label_column(capsys, table, column, message):
    assert message in error_of(capsys, "cluster", table, "--k", 3, "--label-column", column)


def test_more_faults_of_a_label_column(capsys, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,kind\n1,x\n2, \n")
    wrong = ["cluster", path, "--k", 1, "--label-column"]
    assert "line 3: the label is empty" in error_of(capsys, *wrong, "kind")
    path.write_text("a,kind\n1,x\n2,NA\n")
    assert "line 3: the label is 'NA', which stands for" in error_of(capsys, *wrong, "kind")
    path.write_text("kind\nx\n")
    assert "no column besides the label column" in error_of(capsys, *wrong, "kind")
    message = error_of(capsys, "cluster", "iris", "--k", 3, "--label-column", "4")
    assert "--label-column is for tables; got SOURCE iris" in message


@pytest.mark.parametrize("method", ["cluster", "umc-rls", "iter-svr", "lcvqe"])
def test_a_cell_whose_square_overflows_is_named(capsys, tmp_path, method):
    X = np.random.default_rng(0).standard_normal((20, 3))
    X[17, 1] = -1e300
    np.savetxt(tmp_path / "t.csv", X, delimiter=",", header="a,b,c", comments="")
    np.save(tmp_path / "t.npy", X)
    asked = ["-k", 2, "--method", method]
    for name, column in (("t.csv", "b"), ("t.npy", "1")):
        message = f"{name}: column '{column}' holds -1e+300, whose square overflows, in row 17 ("
        assert message in error_of(capsys, "cluster", tmp_path / name, *asked)
    assert run("cluster", tmp_path / "t.csv", "--drop", "b", *asked) == 0


def test_faults_of_text_files(capsys, tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"1,2\n\x81\xfe\n")
    assert "t.csv: not a text file in CP1252" in error_of(capsys, "cluster", path, "--k", 1)
    np.save(tmp_path / "t.npy", np.eye(3))
    (tmp_path / "t.npy").rename(path)
    message = "t.csv: not a text file but a NumPy array, which fastmmc cluster reads as .npy"
    for encoding in ((), ("--encoding", "latin-1")):
        assert message in error_of(capsys, "cluster", path, "--k", 1, *encoding)
    path.write_text("1" * 200_000)
    wrong = error_of(capsys, "cluster", path, "--k", 1)
    assert "no column holds numbers" in wrong and "'1111" in wrong and len(wrong) < 400


@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="there is no /dev/stdout")
def test_labels_go_through_a_pipe_that_has_a_name(pairs):
    command = [sys.executable, "-m", "fastmmc", "cluster", pairs, "--k", "2"]
    command += ["--out", "/dev/stdout"]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True)
    assert done.stdout.startswith("label\n"), done.stderr


NOTES = ["Hi,\n\nall well?", 'she said "no",\r\nand left', "one\ntwo\nthree", "\n", "plain"]


@pytest.mark.parametrize("place", [0, 1, 3])
@pytest.mark.parametrize("sep", [",", ";"])
def test_quoted_cells_may_hold_line_breaks(capsys, tmp_path, place, sep):
    path, labelled = tmp_path / "t.csv", tmp_path / "labelled.csv"
    frame = pd.DataFrame(np.random.default_rng(0).standard_normal((40, 3)), columns=list("abc"))
    frame.insert(place, "note", [NOTES[i % 5] + f"{i}" * (i % 3) for i in range(40)])
    frame.to_csv(path, index=False, sep=sep)
    given = ["--columns", "a,b,c", "--append", "--out", labelled]
    assert run("cluster", path, "--k", 2, *given) == 0
    assert "40 points" in capsys.readouterr().out
    same = pd.read_csv(labelled, sep=sep).drop(columns="cluster")
    pd.testing.assert_frame_equal(same, pd.read_csv(path, sep=sep))


def test_cells_may_be_long(capsys, tmp_path):
    path, limit = tmp_path / "t.csv", csv.field_size_limit()
    text = "word\n" * 40_000
    path.write_text("a,b,text\n" + "".join(f'{i % 2},{i % 7},"{text}{i}"\n' for i in range(20)))
    assert len(labels_of(capsys, "cluster", path, "-k", 2, *FEW)[0]) == 20
    path.write_text(path.read_text().replace("word\n", "word "))
    assert run("stream", path, "-k", 2) == 0
    assert len(capsys.readouterr().out.splitlines()) == 21
    # The limit is that of the process.
    assert csv.field_size_limit() == limit


def test_a_quote_that_is_not_closed_in_a_long_table_takes_in_no_rows(capsys, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,text\n" + '1,"x\n' + "2,some more text\n" * 10_000)
    assert f"{path}: line 2 cannot be read as a row" in error_of(capsys, "cluster", path, "-k", 2)


def test_a_quote_that_is_not_closed_before_a_last_column(capsys, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("text,a\n" + "x,1\n" * 9 + '"x,1\n' + "x,2\n" * 9 + 'y",3\n' + "x,2\n" * 9)
    assert f"{path}: line 11 cannot be read as a row" in error_of(capsys, "cluster", path, "-k", 2)


# Forty rows with text in their last cells, where quotes are not closed.
QUOTES = [
    {9: '"x', 13: 'y"'},
    {9: '"x', 13: '"y"'},
    {9: '"x'},
    {39: '"'},
    {0: '"x', 39: 'y"'},
    {5: '"x', 6: '"'},
]


@pytest.mark.parametrize("quotes", QUOTES)
@pytest.mark.parametrize("command", ["cluster", "predict", "stream", "constraints"])
def test_a_quote_that_is_not_closed_takes_in_no_rows(capsys, tmp_path, quotes, command):
    path, model = tmp_path / "t.csv", tmp_path / "model.npz"

    def rows(texts):
        lines = [f"{i % 5},{40 + i % 7},{texts.get(i, 'cannot')}\n" for i in range(40)]
        return "a,b,text\n" + "".join(lines)

    path.write_text(rows({}))
    assert run("cluster", path, "--k", 2, "--method", "wta", "--model", model) == 0
    capsys.readouterr()
    given = {
        "cluster": ["cluster", path, "--k", 2],
        "predict": ["predict", model, path],
        "stream": ["stream", path, "--k", 2, "--columns", "a,b"],
        "constraints": ["cluster", "iris", "--k", 2, "--constraints", path],
    }
    path.write_text(rows(quotes))
    wrong = error_of(capsys, *given[command])
    assert f"{path}: line {min(quotes) + 2} cannot be read as a row" in wrong
    where = "in its own line" if command == "stream" else "where its cell ends"
    assert f"close a quote {where}, and write one within a cell twice" in wrong


def test_labels_of_another_number_are_not_written(capsys, monkeypatch, pairs, tmp_path):
    def short(X, k):
        return fastmmc.wta(X[:-1], k)

    register(monkeypatch, short)
    for out in ("labels.csv", "labels.npy"):
        command = ["cluster", pairs, "--k", 2, "--method", "fake", "--out", tmp_path / out]
        assert "10 rows got 9 labels" in error_of(capsys, *command)
        assert not (tmp_path / out).exists()


ENDINGS = {
    "--out": ["a.csv", "a.npy", "a.txt", "a.NPY", "a" * 246 + ".csv"],
    "--plot": ["a.png", "a.pdf", "a.PNG"],
    "--model": ["a.npz", "a" * 240 + ".npz"],
}


@pytest.mark.parametrize(("option", "name"), [(o, n) for o in ENDINGS for n in ENDINGS[o]])
def test_a_full_disk_costs_no_file(capsys, tmp_path, full_disk, option, name):
    if option == "--plot":
        pytest.importorskip("matplotlib")
    points, path = tmp_path / "points.npy", tmp_path / name
    np.save(points, np.arange(4000.0)[:, None] % 7)
    command = ["cluster", points, "--k", 2, "--method", "wta", "--seed", 0, option, path]
    if option != "--out":
        command += ["--json"]
    assert run(*command) == 0
    whole = path.read_bytes()
    path.chmod(0o640)
    path.write_text("what was there")
    for exists in (True, False):
        if not exists:
            path.unlink()
        capsys.readouterr()
        with full_disk(500):
            assert run(*command) == 2
        assert capsys.readouterr().err == f"fastmmc: error: {path}: File too large\n"
        assert {p.name for p in tmp_path.iterdir()} == {points.name, *[name] * exists}
        assert not exists or path.read_text() == "what was there"
    path.write_text("what was there")
    path.chmod(0o640)
    assert run(*command) == 0
    assert option != "--out" or path.read_bytes() == whole
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="no links")
@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_and_what_it_names_is_replaced(capsys, pairs, tmp_path, there):
    behind = tmp_path / "behind"
    behind.mkdir()
    for option, name in (("--out", "a.csv"), ("--model", "a.npz")):
        (tmp_path / name).symlink_to(behind / name)
        if there:
            (behind / name).write_text("what was there")
        assert run("cluster", pairs, "--k", 2, option, tmp_path / name) == 0
        assert (tmp_path / name).is_symlink() and (behind / name).stat().st_size > 20
    assert len(list(behind.iterdir())) == 2


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_labels_go_into_a_pipe(pairs, tmp_path):
    pipe, found = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: found.append(pipe.read_text()))
    reader.start()
    assert run("cluster", pairs, "--k", 2, "--out", pipe) == 0
    reader.join()
    assert found[0].startswith("label\n") and found[0].count("\n") == 11
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def archive(path, flags=0, compression=0, version=20):
    """Write an .npz file of points, and change what its headers say of them."""
    np.savez(path, X=np.eye(4))
    content = bytearray(path.read_bytes())
    central = content.index(b"PK\x01\x02")
    for at in (4, central + 6):
        struct.pack_into("<HHH", content, at, version, flags, compression)
    path.write_bytes(content)


@pytest.mark.parametrize(
    "changed", [{"flags": 1}, {"compression": 99}, {"version": 200}, {"flags": 1 << 6}]
)
def test_archives_that_cannot_be_read(capsys, tmp_path, changed):
    path = tmp_path / "points.npz"
    archive(path)
    assert report_of(capsys, path, "--k", 2, "--method", "wta")["n"] == 4
    archive(path, **changed)
    wrong = error_of(capsys, "cluster", path, "--k", 2)
    assert f"{path} cannot be read as an .npz file: " in wrong


@pytest.mark.parametrize(
    "shape", [(True, 2), (99999999999999999999,), (10**13,), (-1, 2), (2.0, 2)]
)
def test_shapes_that_cannot_be(capsys, tmp_path, shape):
    head = io.BytesIO()
    told = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(head, told)
    content = head.getvalue() + bytes(32)
    path = tmp_path / "points.npy"
    path.write_bytes(content)
    assert f"{path} cannot be read as an .npy file" in error_of(capsys, "cluster", path, "--k", 2)
    path = tmp_path / "points.npz"
    for name in ("X", "y"):
        with zipfile.ZipFile(path, "w") as file:
            file.writestr(f"{name}.npy", content)
        wrong = error_of(capsys, "cluster", path, "--k", 2)
        assert f"{path} cannot be read as an .npz file" in wrong


def test_an_archive_of_something_else_is_named(capsys, tmp_path):
    path = tmp_path / "points.npz"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("X.npy", b"1,2")
    assert f"{path} cannot be read as an .npz file: X is no array" in (
        error_of(capsys, "cluster", path, "--k", 2)
    )


def test_what_openml_says_is_one_line(capsys, monkeypatch):
    def fetch(*args, **kwargs):
        warnings.warn("A network error occurred while downloading. Retrying...", stacklevel=2)
        raise OSError("first line\n  second line")

    monkeypatch.setattr(datasets.bundled, "fetch_openml", fetch)
    wrong = error_of(capsys, "cluster", "openml:unheard_of", "--k", 2)
    assert "and OpenML did not give it (first line second line)" in wrong
    with (
        pytest.warns(UserWarning, match="Retrying"),
        pytest.raises(ValueError, match=r"\(first line second line\)$"),
    ):
        datasets.load("unheard_of", online=True)


def test_faults_of_array_files(capsys, tmp_path):
    def message(name):
        return error_of(capsys, "cluster", tmp_path / name, "--k", 1)

    for name in ("empty.npz", "empty.npy", "text.npz", "text.npy"):
        (tmp_path / name).write_text("1,2" if name.startswith("text") else "")
        assert f"{name} cannot be read as an {name[-4:]} file" in message(name)
    np.save(tmp_path / "line.npy", np.ones(3))
    assert "expected a matrix of numbers; got shape (3,) and type float64" in message("line.npy")
    for shape in ((0, 2), (3, 0), (0,)):
        np.save(tmp_path / "empty.npy", np.ones(shape))
        assert f"empty.npy: expected a matrix of numbers; got shape {shape}" in message("empty.npy")
    np.save(tmp_path / "text.npy", np.array([["a"]]))
    assert "expected a matrix of numbers; got shape (1, 1) and type <U1" in message("text.npy")
    np.save(tmp_path / "far.npy", np.array([[1.0, 2.0], [3.0, np.inf]]))
    wrong = error_of(capsys, "cluster", tmp_path / "far.npy", "--fill-missing")
    assert "row 1, column 1 (from 0) is inf" in wrong and wrong.count("far.npy") == 1
    np.savez(tmp_path / "other.npz", Z=np.ones((2, 2)))
    assert "expected an array named X; found Z" in message("other.npz")
    np.savez(tmp_path / "objects.npz", X=np.array([[1, None]], dtype=object))
    assert "Object arrays cannot be loaded" in message("objects.npz")
    np.savez(tmp_path / "short.npz", X=np.ones((3, 2)), y=np.ones(2))
    assert "y must have shape (3,); got (2,)" in message("short.npz")
    np.savez(tmp_path / "cut.npz", X=np.ones((3, 2)))
    whole = (tmp_path / "cut.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[:100])
    assert "cut.npz cannot be read as an .npz file" in message("cut.npz")
    (tmp_path / "bad.npz").write_bytes(whole.replace(np.float64(1).tobytes(), b"12345678"))
    assert "bad.npz cannot be read as an .npz file: Bad CRC-32" in message("bad.npz")
    np.save(tmp_path / "cut.npy", np.ones((3, 2)))
    (tmp_path / "cut.npy").write_bytes((tmp_path / "cut.npy").read_bytes()[:-8])
    assert "cut.npy cannot be read as an .npy file" in message("cut.npy")


def test_sources_that_are_no_files(capsys, tmp_path, monkeypatch):
    missing = tmp_path / "none.csv"
    assert f"{missing}: No such file" in error_of(capsys, "cluster", missing, "--k", 2)
    assert "is a folder; give a file" in error_of(capsys, "cluster", tmp_path, "--k", 2)
    (tmp_path / "notes.txt").touch()
    message = error_of(capsys, "cluster", tmp_path / "notes.txt", "--k", 2)
    assert "must end in .csv, .tsv, .parquet, .npy, .npz" in message

    asked = []

    def offline(name, **kwargs):
        asked.append(name)
        raise OSError("no network")

    monkeypatch.setattr(fastmmc.datasets.bundled, "fetch_openml", offline)
    message = error_of(capsys, "cluster", "irsi", "--k", 2)
    assert "no data set 'irsi' (did you mean iris?)" in message and "openml:irsi asks" in message
    assert "did you mean pendigits" in error_of(capsys, "cluster", "pendigts", "--k", 2)
    assert "openml:letter asks OpenML for it" in error_of(capsys, "cluster", "letter", "--k", 2)
    assert asked == []
    assert "no network" in error_of(capsys, "cluster", "openml:letter", "--k", 2)
    assert asked == ["letter"]


def test_errors_of_solvers_name_options(capsys, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n3,5\n9,7\n")
    for options, message in (
        ([], "--k auto needs at least 4 points; got 3"),
        (["-k", 2, "--trim", 5], "--trim 5 leaves out 5 of 3 points"),
        (["--target-sizes", "1,2"], "--k auto needs"),
        (["-k", 2, "--method", "umc-rls", "--lam", "1e-20"], "--lam 1e-20 is lost"),
    ):
        assert message in error_of(capsys, "cluster", path, *options)


def test_advice_that_has_no_option_is_left_out(capsys):
    pytest.importorskip("cvxpy")
    message = error_of(capsys, "cluster", "digits", "--k", 2, "--method", "gmmc")
    assert "give at most 150 points, or use iter_svr" in message and "force" not in message


def test_memory_error_is_one_line(capsys, monkeypatch):
    def huge(X, k):
        raise MemoryError("needs 7 TiB\nof memory")

    register(monkeypatch, huge)
    message = error_of(capsys, "cluster", "moons", "--k", 2, "--method", "fake")
    assert "needs 7 TiB of memory" in message


def test_options_that_a_method_lacks_are_refused(capsys, monkeypatch):
    register(monkeypatch, never)
    wrong = ["cluster", "moons", "--method", "fake", "--k", 2, "--lam", 1]
    assert "fake has no --lam; of these options it has --k" in error_of(capsys, *wrong)


def test_binary_methods_make_two_clusters(capsys, monkeypatch, pairs):
    def solve(X, *, lam=0.25):
        return fastmmc.umc_rls(X, 2, lam=lam)

    register(monkeypatch, solve, binary=True)
    wrong = ["cluster", "moons", "--method", "fake", "--k", 3]
    assert "fake always makes two clusters; got --k 3" in error_of(capsys, *wrong)
    assert report_of(capsys, pairs, "--method", "fake")["k"] == 2
    assert report_of(capsys, pairs, "--method", "fake", "--k", 2)["k"] == 2


def test_outputs_are_checked_before_the_computation(capsys, monkeypatch, tmp_path, table):
    register(monkeypatch, never)

    def message(option, path):
        return error_of(capsys, "cluster", table, "--k", 3, "--method", "fake", option, path)

    for option in ("--out", "--plot", "--html"):
        assert "there is no folder" in message(option, tmp_path / "none" / "a.png")
        assert "is a folder" in message(option, tmp_path)
    assert "is a file to be read" in message("--out", table)
    assert "must end in one of" in message("--plot", tmp_path / "a.xyz")
    assert "must end in one of" in message("--plot", tmp_path / "a")
    assert "must end in one of .html, .htm" in message("--html", tmp_path / "a.pdf")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert "cannot be written" in message("--out", tmp_path / "a.csv")


def test_missing_matplotlib_is_told_before_the_computation(capsys, monkeypatch, tmp_path):
    register(monkeypatch, never)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    wrong = ["cluster", "moons", "--k", 2, "--method", "fake", "--plot", tmp_path / "a.png"]
    assert "plotting needs matplotlib (python -m pip" in error_of(capsys, *wrong)


def test_missing_bokeh_is_told_before_the_computation(capsys, monkeypatch, tmp_path):
    register(monkeypatch, never)
    monkeypatch.setitem(sys.modules, "bokeh.plotting", None)
    wrong = ["cluster", "moons", "--k", 2, "--method", "fake", "--html", tmp_path / "a.html"]
    assert "reports need Bokeh (python -m pip" in error_of(capsys, *wrong)


def test_html_writes_a_report_of_the_columns_of_the_file(capsys, table, tmp_path):
    page = tmp_path / "report.html"
    report_of(capsys, table, "-k", 3, "--label-column", "kind", "--html", page, *FEW)
    text = page.read_text(encoding="utf-8")
    assert f"Clusters of {table}" in text and "75 points in 3 clusters" in text
    first = table.read_text().splitlines()[1].split(",")
    assert all(f"<th>{name}</th>" in text for name in "abcd")
    assert len(first) == 5


def test_plot_writes_a_picture(capsys, table, tmp_path):
    picture = tmp_path / "a.PNG"
    report_of(capsys, table, "--k", 3, "--label-column", "kind", "--plot", picture, *FEW)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_time_limit_is_a_warning(capsys):
    argv = ["cluster", "iris", "--k", 3, "--n-init", 9, "--max-time", "1e-9", "--json"]
    assert run(*argv) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["status"] == "TIME_LIMIT"
    assert err.startswith("fastmmc: warning: stopped before the end") and err.count("\n") == 1


def test_interrupt_before_any_result(capsys, monkeypatch):
    def interrupted(X, k):
        raise KeyboardInterrupt

    register(monkeypatch, interrupted)
    assert run("cluster", "moons", "--k", "2", "--method", "fake") == 130
    out, err = capsys.readouterr()
    assert out == "" and err == "fastmmc: error: interrupted before there was a result\n"


def test_a_call_without_a_seed_is_repeatable(capsys, table):
    given = ["cluster", table, "--label-column", "kind", "-k", 3, "--method"]
    for method in ("umc-rls", "wta"):
        labels, told = labels_of(capsys, *given, method, "--n-init", 1)
        again, _ = labels_of(capsys, *given, method, "--n-init", 1)
        assert (labels == again).all()
        assert "seed       0\n" in told
    assert "seed       7\n" in labels_of(capsys, *given, "wta", "--seed", 7)[1]
    assert report_of(capsys, *given[1:], "wta")["seed"] == 0


def test_the_time_to_compile_is_told(capsys, monkeypatch, pairs):
    def compiling(X, k):
        with event.trigger_event("numba:compile"), event.trigger_event("numba:compile"):
            time.sleep(0.01)
        return fastmmc.wta(X, k)

    register(monkeypatch, compiling)
    _, told = labels_of(capsys, "cluster", pairs, "-k", 2, "--method", "fake")
    assert re.search(r"time +\S+ s, \S+ s of it to compile, the first time only\n", told)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert run("cluster", str(pairs), "-k", "2", "--method", "fake") == 0
    assert terminal.text.count("fastmmc: note: compiling, which takes some seconds") == 1


def test_what_takes_long_is_said_on_a_terminal(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(cli.common, "PATIENCE", 0.01)
    with cli.common.said_when_long("reading t.csv"):
        began = time.monotonic()
        while not terminal.text and time.monotonic() - began < 60:
            time.sleep(0.01)
    assert terminal.text == "fastmmc: note: reading t.csv\n"
    monkeypatch.setattr(cli.common, "PATIENCE", 60)
    with cli.common.said_when_long("reading u.csv"):
        pass
    assert "u.csv" not in terminal.text


def test_help_begins_with_what_is_used_most(capsys):
    with pytest.raises(SystemExit):
        run("cluster", "--help")
    text = capsys.readouterr().out
    titles = re.findall(r"^([a-z ]+):$", text, re.M)
    groups = ["used most", "input", "clusters", "knowledge", "output", "search"]
    assert titles == ["positional arguments", "options", *groups]
    first = text.partition("used most:")[2].partition("input:")[0]
    flags = re.findall(r"^  (?:-k N, )?(--\S+)", first, re.M)
    assert flags == ["--k", "--drop", "--out", "--plot", "--html"]


class Terminal:
    """Standard error as a terminal."""

    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += text

    def flush(self):
        pass

    def isatty(self):
        return True


def test_terminal_without_rich_shows_a_percentage(capsys, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(cli.common, "find_spec", lambda name: None)
    assert run("cluster", "iris", "--k", "3", "--json", *FEW) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "CONVERGED"
    assert "%" in terminal.text and "\n" not in terminal.text
    assert re.search(r"\r +\r$", terminal.text)
    monkeypatch.setattr(terminal, "text", "")
    argv = ["cluster", "iris", "--k", 3, "--n-init", 9, "--max-time", "1e-9", "--json"]
    assert run(*argv) == 0
    assert "\rfastmmc: warning: stopped before the end" in terminal.text


def test_terminal_with_rich_shows_its_bar(monkeypatch, pairs):
    asked = []

    def solve(X, k, *, verbose=0, callback=None):
        asked.append((verbose, callback))
        return fastmmc.umc_rls(X, k)

    register(monkeypatch, solve)
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert run("cluster", str(pairs), "--k", "2", "--method", "fake") == 0
    assert asked == [(1, None)]


def test_terminal_and_a_method_without_progress(monkeypatch, pairs):
    terminal = Terminal()
    register(monkeypatch, lambda X, k: fastmmc.umc_rls(X, k))
    monkeypatch.setattr(sys, "stderr", terminal)
    assert run("cluster", str(pairs), "--k", "2", "--method", "fake", "--json") == 0
    assert terminal.text == ""


def test_methods_lists_the_registry(capsys, monkeypatch):
    register(monkeypatch, never, binary=True)
    assert run("methods") == 0
    out = capsys.readouterr().out
    for method in METHODS.values():
        assert method.name in out and method.summary in out and method.paper in out
    assert "fake (two clusters)" in out


def test_version(capsys):
    for flag in ("--version", "-V"):
        with pytest.raises(SystemExit) as stop:
            run(flag)
        assert stop.value.code == 0
        assert capsys.readouterr().out == f"fastmmc {fastmmc.__version__}\n"


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs a shell of POSIX")
def test_closed_standard_streams_are_no_tracebacks(tmp_path):
    command = f"{sys.executable} -m fastmmc cluster moons -k 2"
    lost = "fastmmc: error: standard output: cannot be written: it is closed; give --out"
    for closed, code, told in [
        (f"{command} >&-", 2, lost),
        (f"{command} --out {tmp_path / 'labels.csv'} >&-", 0, ""),
        (f"{command} 2>&-", 0, ""),
        (f"{command.replace('moons', '-')} <&-", 2, "standard input: the file is empty"),
    ]:
        done = subprocess.run(closed, shell=True, capture_output=True, text=True)
        assert done.returncode == code and told in done.stderr and "Traceback" not in done.stderr
        assert len(done.stdout.splitlines()) == (201 if closed.endswith("2>&-") else 0)
    assert len((tmp_path / "labels.csv").read_text().splitlines()) == 201


FULL = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no such device")
NO_SPACE = "fastmmc: error: standard output: No space left on device\n"


@FULL
@pytest.mark.slow
@pytest.mark.parametrize("options", [["--json"], []])
def test_full_standard_output_of_a_process_is_named(options):
    command = [sys.executable, "-m", "fastmmc", "cluster", "moons", "--k", "2", *options]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr.endswith(NO_SPACE)


@FULL
def test_full_standard_output_is_named(pairs, capsys, monkeypatch):
    with open("/dev/full", "w") as full, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", full)
        assert run("cluster", pairs, "--k", 2, "--json", *FEW) == 2
        with pytest.raises(OSError):
            full.close()  # tries to write what it still has
    assert capsys.readouterr().err.endswith(NO_SPACE)


def test_closed_pipe_is_quiet():
    command = [sys.executable, "-m", "fastmmc", "methods"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


def test_rank(capsys):
    assert run("cluster", "moons", "--k", 2, "--rank", 10, "--seed", 0, "--json") == 0
    assert json.loads(capsys.readouterr().out)["params"]["rank"] == 10
    assert run("cluster", "moons", "--k", 2, "--rank", "none", "--seed", 0, "--json") == 0
    assert json.loads(capsys.readouterr().out)["params"]["rank"] is None
    assert "rank must be at most 200" in error_of(
        capsys, "cluster", "moons", "--k", 2, "--rank", 900
    )
    assert "a share of the points, auto or none; got 'big'" in error_of(
        capsys, "cluster", "moons", "--k", 2, "--rank", "big"
    )


# What is chosen without being asked


def test_nothing_needs_to_be_told(capsys, table, blobs):
    X, y = blobs
    chosen = fastmmc.cluster(X, max_k=6, random_state=0)
    given = [table, "--label-column", "kind", "--max-k", 6, "--seed", 0]
    labels, told = labels_of(capsys, "cluster", *given)
    np.testing.assert_array_equal(labels, chosen.labels)
    assert told.startswith(f"cluster on {table}: 75 points, 4 features, 3 clusters\n")
    lines = dict(line.split(None, 1) for line in told.splitlines())
    text = "sigma={sigma:.6g}, lam={lam:.6g}".format(**chosen.chosen)
    assert text in lines["chosen"]
    assert lines["scores"].startswith(f"{chosen.scores[3]:.3g} for k = 3, ")
    report = report_of(capsys, *given, "-k", "auto", "--method", "AutoMMC")
    assert report["scores"] == {str(k): score for k, score in chosen.scores.items()}
    assert report["chosen"]["sigma"] == chosen.chosen["sigma"]
    assert "init" not in report["chosen"] and "init" not in report["params"]


def test_with_a_number_the_rest_is_chosen(capsys, table, blobs):
    chosen = fastmmc.cluster(blobs[0], 4, random_state=0)
    labels, told = labels_of(capsys, "cluster", table, "-k4", "--label-column", "kind", "--seed", 0)
    np.testing.assert_array_equal(labels, chosen.labels)
    assert told.startswith(f"cluster on {table}") and "scores" not in told


def test_a_setting_takes_the_method_that_has_it(capsys, table, blobs):
    given = ["--label-column", "kind", "-k", 3, *FEW]
    for options, params in [
        (["--sizes", "free"], {"sizes": "free"}),
        (["--balance", 0.5], {"balance": 0.5}),
        (["--target-sizes", "20,30,25"], {"target_sizes": [20, 30, 25]}),
        (["--min-size", 22], {"min_size": 22}),
        (["--max-size", 30], {"max_size": 30}),
    ]:
        report = report_of(capsys, table, *given, *options)
        expected = fastmmc.umc_rls(blobs[0], 3, n_init=2, random_state=0, **params)
        assert report["method"] == "umc-rls" and report["objective"] == expected.objective
        assert report["sizes"] == expected.sizes.tolist()


@pytest.mark.parametrize(("told", "n_out"), [("5", 5), ("0.1", 7)])
def test_points_that_are_left_out(capsys, table, blobs, told, n_out):
    given = ["cluster", table, "--label-column", "kind", "-k", 3, "--seed", 0, "--trim", told]
    labels, report = labels_of(capsys, *given)
    expected = fastmmc.cluster(blobs[0], 3, trim=n_out, random_state=0)
    np.testing.assert_array_equal(labels, expected.labels)
    assert np.count_nonzero(labels == -1) == n_out and f"left out   {n_out} points" in report


def test_size_options_of_a_method_for_two(capsys, pairs):
    options = ["--target-sizes", "4,6", "--balance", 0, "--seed", 0]
    report = report_of(capsys, pairs, "--method", "iter_svr", *options)
    assert sorted(report["sizes"]) == [4, 6]


def test_standardize(capsys, table, blobs):
    X, _ = blobs
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    given = [table, "--label-column", "kind", "-k", 3, *FEW]
    report = report_of(capsys, *given, "--standardize")
    expected = fastmmc.umc_rls(scaled, 3, n_init=2, random_state=0)
    assert report["objective"] == pytest.approx(expected.objective)
    assert report["objective"] != report_of(capsys, *given)["objective"]


def test_cosine(capsys, table, blobs):
    X, _ = blobs
    given = [table, "--label-column", "kind", "-k", 3, "--seed", 0]
    report = report_of(capsys, *given, "--metric", "cosine")
    expected = fastmmc.cluster(X, 3, metric="cosine", random_state=0)
    assert report["objective"] == pytest.approx(expected.objective)
    assert report["params"]["metric"] == report["chosen"]["metric"] == "cosine"
    message = error_of(capsys, "cluster", *given, "--metric", "cosine", "--standardize")
    assert "--metric cosine does not go with --standardize" in message


def test_standardize_columns_that_are_constant_or_far(capsys, tmp_path):
    X = np.random.default_rng(0).standard_normal((30, 2))
    np.save(tmp_path / "X.npy", np.column_stack([X, np.full(30, 7.0)]))
    assert report_of(capsys, tmp_path / "X.npy", "-k", 2, *FEW, "--standardize")["d"] == 3
    np.save(tmp_path / "X.npy", np.column_stack([X[:, 0], X[:, 1] * 1e200]))
    message = error_of(capsys, "cluster", tmp_path / "X.npy", "-k", 2, "--standardize")
    value = f"{X[0, 1] * 1e200:g}"
    assert f"X.npy: column '1' holds {value}, whose square overflows, in row 0 (from 0)" in message


@pytest.mark.parametrize("method", ["c-rpcl", "O_LCVQE", "lcvqe", "CVQE", "umc-rls", "cluster"])
def test_constraints(capsys, table, tmp_path, blobs, method):
    must, cannot = [(0, 25), (1, 60)], [(0, 1), (30, 31)]
    path = tmp_path / "links.csv"
    lines = [f"{i},{j},must" for i, j in must] + [f"{i},{j},cl" for i, j in cannot]
    path.write_text("\n".join(["i,j,kind", *lines]))
    solve = METHODS[registry_name(method)].function
    expected = solve(blobs[0], 3, must_link=must, cannot_link=cannot, random_state=0)
    given = [table, "--label-column", "kind", "-k", 3, "--method", method, "--seed", 0]
    labels, _ = labels_of(capsys, "cluster", *given, "--constraints", path)
    np.testing.assert_array_equal(labels, expected.labels)
    if method == "cluster":  # which is taken where constraints are all that is said
        given.remove("--method"), given.remove(method)
        labels, _ = labels_of(capsys, "cluster", *given, "--constraints", path)
        np.testing.assert_array_equal(labels, expected.labels)


def test_the_price_of_constraints(capsys, table, tmp_path):
    path = tmp_path / "links.csv"
    path.write_text("i,j,kind\n0,1,cl\n0,2,cl\n1,2,cl\n")
    given = [table, "--label-column", "kind", "-k", 2, "--constraints", path]
    assert "ring of odd length" in error_of(capsys, "cluster", *given)
    report = report_of(capsys, *given, "--link-penalty", 0.01)
    assert report["params"]["link_penalty"] == 0.01


# Around the commands


def test_the_script_that_is_installed(pairs, tmp_path):
    """In a process of its own, as a shell runs it, without extras: labels and report do not mix."""
    for name in ("matplotlib", "rich", "bokeh", "cvxpy", "scs"):
        (tmp_path / f"{name}.py").write_text("raise ImportError")
    script = Path(sys.executable).with_name("fastmmc")
    given = ["cluster", pairs, "-k", "2", "--lam", "0.1", "--seed", "0"]
    path = os.pathsep.join([str(tmp_path), str(Path(fastmmc.__file__).parents[1])])
    environment = os.environ | {"PYTHONPATH": path}
    done = subprocess.run([script, *given], capture_output=True, text=True, env=environment)
    labels = [int(line) for line in done.stdout.splitlines()[1:]]
    assert done.returncode == 0 and sorted(np.bincount(labels).tolist()) == [5, 5]
    assert done.stderr.startswith(f"umc-rls on {pairs}: 10 points, 1 feature, 2 clusters\n")


def test_completion(capsys, monkeypatch):
    shtab = pytest.importorskip("shtab")
    for shell in cli.SHELLS:
        assert run("completion", shell) == 0
        script = capsys.readouterr().out
        assert "--target-sizes" in script and "recursive-mmc" in script
    assert set(cli.SHELLS) <= set(shtab.SUPPORTED_SHELLS)
    monkeypatch.setitem(sys.modules, "shtab", None)
    message = error_of(capsys, "completion", "bash")
    assert "completion needs shtab (python -m pip install shtab)" in message


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_bash_takes_the_completion(capsys, tmp_path):
    pytest.importorskip("shtab")
    assert run("completion", "bash") == 0
    script = tmp_path / "completion.bash"
    script.write_text(capsys.readouterr().out)
    code = (
        f"source {script}; COMP_WORDS=(fastmmc cluster --stand); COMP_CWORD=2; "
        '_shtab_fastmmc "" --stand; echo "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["--standardize"]


ROOT = Path(__file__).parents[2]
COMMANDS = [
    command
    for page in (ROOT / "README.md", ROOT / "docs" / "commands.md")
    for command in re.findall(r"^fastmmc .*$", page.read_text(encoding="utf-8"), re.M)
]


def test_the_commands_of_the_documents_are_understood():
    assert len(COMMANDS) >= 8
    for command in COMMANDS:
        cli._make_parser()[0].parse_args(shlex.split(command.partition(">")[0])[1:])


@pytest.mark.slow
def test_the_commands_of_the_documents_run(capsys, tmp_path, monkeypatch, blobs):
    monkeypatch.chdir(tmp_path)
    X, _ = blobs
    frame = pd.DataFrame(X, columns=["height", "weight", "c", "d"])
    frame.to_csv("data.csv")
    frame.to_csv("rows.csv", index=False)
    frame.to_parquet("big.parquet", index=False)
    Path("pairs.csv").write_text("0,1,must\n0,70,cannot\n")
    Image.fromarray(np.arange(48, dtype=np.uint8).reshape(4, 4, 3)).save("photo.jpg")
    for command in COMMANDS:
        assert run(*shlex.split(command.partition(">")[0])[1:]) == 0, capsys.readouterr().err


def test_profile_says_what_is_in_each_cluster(capsys, table, tmp_path):
    given = [table, "-k", 3, "--columns", "a,b,c,d", *FEW]
    _, told = labels_of(capsys, "cluster", *given, "--profile")
    report, _, profile = told.partition("75 points in 3 clusters, by 4 columns\n")
    assert report == told.partition("75 points in")[0] and report.splitlines()[-1].startswith(
        "time"
    )
    points = read_points(str(table), Columns(list("abcd"), None, None))
    result = fastmmc.umc_rls(points.X, 3, n_init=2, random_state=0)
    frame = pd.DataFrame(points.X, columns=list("abcd"))
    assert profile.splitlines() == str(result.profile(frame)).splitlines()[1:]
    found = report_of(capsys, *given, "--profile")["profile"]
    assert found == result.profile(frame).records()
    assert "profile" not in report_of(capsys, *given)
    assert run("cluster", *given, "--profile", "--out", tmp_path / "labels.csv") == 0
    assert profile in capsys.readouterr().out


def test_profile_shows_what_the_clusters_were_made_of(capsys, tmp_path):
    path, page = tmp_path / "t.csv", tmp_path / "page.html"
    amounts = [f"{2 + i // 30}.{i:03}" for i in range(60)]
    path.write_text("t,amount\n" + "".join(f"{'uv'[i % 2]},{a}\n" for i, a in enumerate(amounts)))
    given = ["-k", 2, "--seed", 0, "--profile", "--html", page]
    _, told = labels_of(capsys, "cluster", path, *given, "--decimal", ",")
    assert "of all 2529.5 (2014.75 to 3044.25)" in told
    assert "3044.25" in page.read_text(encoding="utf-8")
    np.save(tmp_path / "X.npy", np.c_[np.arange(60), np.arange(60) // 30])
    for options in ([], ["--standardize"]):
        _, told = labels_of(capsys, "cluster", tmp_path / "X.npy", *given, *options)
        assert "by 2 columns" in told and "left out" not in told
    path.write_text("id,x\n" + "".join(f"{i},{i // 30}.5\n" for i in range(60)))
    _, told = labels_of(capsys, "cluster", path, *given, "--columns", "id,x")
    assert "by 2 columns" in told and "left out" not in told


def test_profile_shows_columns_as_they_were(capsys, tmp_path):
    """Not as the numbers that they became, and arrays too."""
    lines = [f"{1 + i % 2}.{i:03},5;{'Ulm' if i % 2 else 'Bonn'}" for i in range(100, 160)]
    (tmp_path / "t.csv").write_text("\n".join(["spent;town", *lines]) + "\n")
    _, told = labels_of(capsys, "cluster", tmp_path / "t.csv", "-k", 2, "--seed", 0, "--profile")
    assert "  spent         1.00  2130.5 (" in told and "Ulm: 100%; of all 50%" in told
    np.save(
        tmp_path / "X.npy", np.repeat([[0.0], [9.0]], 30, axis=0) + np.linspace(0, 1, 60)[:, None]
    )
    _, told = labels_of(capsys, "cluster", tmp_path / "X.npy", "-k", 2, "--seed", 0, "--profile")
    assert told.count("  column 0") == 2
