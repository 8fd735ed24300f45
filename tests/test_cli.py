import io
import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

import fastmmc
from fastmmc import cli
from fastmmc.registry import METHODS, Method
from fastmmc.rls import methods

FEW = ["--n-init", "2", "--seed", "0"]


@pytest.fixture
def table(tmp_path, blobs):
    """A CSV file with a header and text labels in its third column."""
    X, y = blobs
    lines = ["a,b,kind,c,d"]
    for (a, b, c, d), label in zip(X.tolist(), np.array(["x", "y", "z"])[y], strict=True):
        lines.append(f"{a},{b},{label},{c},{d}")
    path = tmp_path / "table.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def pairs(tmp_path):
    """A file of ten points in two clear clusters."""
    path = tmp_path / "pairs.npy"
    np.save(path, np.repeat([[0.0], [9.0]], 5, axis=0) + np.linspace(0, 1, 10)[:, None])
    return path


@pytest.fixture(autouse=True)
def sizes_are_not_judged(monkeypatch):
    """Keep back a warning: the clusters of ``blobs`` have other sizes than those that are made."""
    monkeypatch.setattr(methods, "warn_of_other_sizes", lambda *told: None)


@pytest.fixture
def expected(blobs):
    return fastmmc.umc_rls(blobs[0], 3, n_init=2, random_state=0)


@pytest.fixture
def piped(monkeypatch):
    """Feed text to standard input."""

    def feed(text):
        data = text if isinstance(text, bytes) else text.encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    return feed


def report_of(capsys, *argv):
    assert cli.main(["cluster", *map(str, argv), "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return json.loads(out)


def error_of(capsys, *argv):
    assert cli.main([str(arg) for arg in argv]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("fastmmc: error: ") and err.count("\n") == 1
    return err


def register(monkeypatch, function, **kwargs):
    """Put a method called "fake" into the registry."""
    method = Method("fake", function, fastmmc.UMCRLS, "no paper", "for tests", **kwargs)
    monkeypatch.setitem(METHODS, "fake", method)


def never(X, k):
    raise AssertionError("the computation was begun")


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


def test_text_output_shows_the_same(capsys, table, expected):
    assert cli.main(["cluster", str(table), "--k", "3", "--label-column", "kind", *FEW]) == 0
    out, err = capsys.readouterr()
    lines = dict(line.split(None, 1) for line in out.splitlines())
    assert out.startswith(f"umc-rls on {table}: 75 points, 4 features, 3 clusters\n")
    assert lines["sizes"].split() == [str(size) for size in expected.sizes]
    assert float(lines["objective"]) == pytest.approx(expected.objective, rel=1e-5)
    assert lines["status"] == "converged"
    assert {"time", "ARI", "NMI"} <= lines.keys()
    assert err == ""


def test_a_data_set_by_name_with_its_sizes(capsys):
    assert cli.main(["cluster", "moons", "--k", "2", "--seed", "0"]) == 0
    head = "umc-rls on moons: 200 points, 2 features, 2 clusters\nsizes      100 100\n"
    assert capsys.readouterr().out.startswith(head)


def test_without_true_labels_there_is_no_score(capsys, tmp_path, blobs):
    np.save(tmp_path / "X.npy", blobs[0])
    report = report_of(capsys, tmp_path / "X.npy", "--k", 3, *FEW)
    assert report["ari"] is None and report["nmi"] is None
    assert cli.main(["cluster", str(tmp_path / "X.npy"), "--k", "3", *FEW]) == 0
    assert "ARI" not in capsys.readouterr().out


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
    for name in ("a.npz", "a.json", "a.parquet"):
        wrong = error_of(capsys, "cluster", *given, tmp_path / name)
        assert "--out must end in one of .npy, .csv, .txt, .tsv" in wrong
        assert not (tmp_path / name).exists()


def test_standard_input_is_read(capsys, table, piped, expected):
    for text in (table.read_text(), table.read_text().replace(",", "\t")):
        piped("\n" + text)
        report = report_of(capsys, "-", "--k", 3, "--label-column", "kind", *FEW)
        assert report["objective"] == expected.objective and report["ari"] is not None
    piped(table.read_text())
    assert cli.main(["cluster", "-", "--k", "3", "--label-column", "kind", *FEW]) == 0
    assert capsys.readouterr().out.startswith("umc-rls on standard input: 75 points, 4 features")
    for text, message in [
        ("", "standard input: the file is empty"),
        ("a,b\n1,x\n", "standard input: line 2, column 'b': expected a finite number, got 'x'"),
        (b"1,\xff\n", "standard input is not a text file in UTF-8"),
    ]:
        piped(text)
        assert message in error_of(capsys, "cluster", "-", "--k", 1)


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
        found, _ = cli.cluster._read_source(str(tmp_path / name), None)
        np.testing.assert_allclose(found, X)
        err = capsys.readouterr().err
        assert err.startswith(f"fastmmc: note: {tmp_path / name}: the first ") and NOTE in err


def test_columns_that_are_numbered_are_told_of(capsys, piped):
    X = np.random.default_rng(0).standard_normal((4, 3))
    piped(pd.DataFrame(X).to_csv(index=False))
    found, _ = cli.cluster._read_source("-", None)
    assert len(found) == 5
    told = capsys.readouterr().err
    assert told.startswith("fastmmc: note: standard input: the first row is 0, 1, 2 ...")
    piped(pd.DataFrame(X).to_csv(index=False, header=False))
    np.testing.assert_allclose(cli.cluster._read_source("-", None)[0], X)
    assert capsys.readouterr().err == ""


def test_columns_with_names_are_features(capsys, tmp_path, piped):
    piped(",a,kind\n0,1.5,x\n1,2.5,y\n")
    X, y = cli.cluster._read_source("-", "kind")
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
        np.testing.assert_array_equal(cli.cluster._read_source("-", label)[0], wanted)
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
    for name in ("iter-svr", "iter_svr"):
        assert report_of(capsys, pairs, "--method", name, *FEW)["method"] == "iter-svr"
    picture = tmp_path / "picture.png"
    Image.fromarray(np.arange(48, dtype=np.uint8).reshape(4, 4, 3)).save(picture)
    given = ["segment", str(picture), "--k", "2", "--method", "fast_evo_mmc", "--seed", "0"]
    assert cli.main(given) == 0
    assert capsys.readouterr().out.startswith("fast-evo-mmc on ")
    assert "invalid choice: 'bla'" in error_of(capsys, "cluster", pairs, "--method", "bla")


def test_options_that_a_method_lacks_are_refused_for_pictures(capsys, tmp_path):
    picture = tmp_path / "picture.png"
    Image.fromarray(np.arange(48, dtype=np.uint8).reshape(4, 4, 3)).save(picture)
    for method, option in (("wta", "balance"), ("wta", "rank"), ("evo-mmc", "rank")):
        wrong = [picture, "--k", 2, "--method", method, f"--{option}", 0.5]
        assert f"{method} has no --{option}; give another" in error_of(capsys, "segment", *wrong)


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
    assert cli.main(["cluster", str(table), *map(str, options)]) == 0
    assert capsys.readouterr().out.endswith(f"{expected.tree}\n")
    wrong = ["cluster", "iris", "--method", "recursive-mmc", "--search", "evo-mmc", "--k", 3]
    assert "evo-mmc has no 'rank'" in error_of(capsys, *wrong, "--rank", 5)
    assert "split must be one of" in error_of(capsys, *wrong, "--split", "best")
    assert "recursive-mmc must be told" in error_of(capsys, *wrong[:-2])
    assert "umc-rls has no --split" in error_of(
        capsys, "cluster", "iris", "--k", 3, "--split", "gain"
    )


def test_data_set_by_name_from_a_folder(capsys, tmp_path, monkeypatch, blobs):
    np.savez(tmp_path / "mine.npz", X=blobs[0], y=blobs[1])
    monkeypatch.setenv("FASTMMC_DATA", str(tmp_path))
    assert report_of(capsys, "mine", "--k", 3, *FEW)["n"] == 75


def test_header_is_told_from_data(tmp_path):
    def read(text, label_column=None):
        path = tmp_path / "t.csv"
        path.write_text(text)
        return cli.cluster._read_source(str(path), label_column)

    X, y = read("1,2\n3,4\n")
    np.testing.assert_array_equal(X, [[1, 2], [3, 4]])
    assert y is None
    np.testing.assert_array_equal(read("\ufeffa, b\n\n 1, 2\n")[0], [[1, 2]])
    # Text in the label column of the first row does not make it a header.
    X, y = read("1,2,dog\n3,4,cat\n", "2")
    np.testing.assert_array_equal(X, [[1, 2], [3, 4]])
    assert y.tolist() == [1, 0]
    # A label column given by name does, even where other names are numbers.
    X, y = read("kind,0,1\ndog,1,2\n", "kind")
    np.testing.assert_array_equal(X, [[1, 2]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("\n\n", "the file is empty"),
        ("a,b\n", "there is a header and nothing below it"),
        ("a,b\n1,2\n3\n", "line 3 has 1 cells; line 1 has 2"),
        ("1,2\n3,x\n", "line 2, column 1 (from 0): expected a finite number, got 'x'"),
        ("1,x\n3,4\n", "line 1, column 1 (from 0): expected a finite number, got 'x'"),
        ("a,b\n1,\n", "line 2, column 'b': expected a finite number, got ''"),
        ("a,b\n1,nan\n", "line 2, column 'b': expected a finite number, got 'nan'"),
        ("a,b\n1,1e999\n", "line 2, column 'b': expected a finite number, got '1e999'"),
        ("1,2\n3,4\n", "k must be at most 2, the number of points; got 3"),
    ],
)
def test_faults_of_a_table(capsys, tmp_path, text, message):
    path = tmp_path / "t.csv"
    path.write_text(text)
    assert message in error_of(capsys, "cluster", path, "--k", 3)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("sort", "no column 'sort' in the header; it has a, b, kind, c, d"),
        ("5", "got 5, but the columns are 0 to 4"),
        ("0", "line 2, column 'kind': expected a finite number, got 'x'"),
    ],
)
def test_faults_of_a_label_column(capsys, table, column, message):
    assert message in error_of(capsys, "cluster", table, "--k", 3, "--label-column", column)


def test_more_faults_of_a_label_column(capsys, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,kind\n1,x\n2, \n")
    wrong = ["cluster", path, "--k", 1, "--label-column"]
    assert "line 3: the label is empty" in error_of(capsys, *wrong, "kind")
    path.write_text("kind\nx\n")
    assert "no column beside the label column" in error_of(capsys, *wrong, "kind")
    message = error_of(capsys, "cluster", "iris", "--k", 3, "--label-column", "4")
    assert "--label-column is for tables; got SOURCE iris" in message


def test_faults_of_text_files(capsys, tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"1,2\n\xff\xfe\n")
    assert "is not a text file in UTF-8" in error_of(capsys, "cluster", path, "--k", 1)
    path.write_text("1" * 200_000)
    assert "field larger than field limit" in error_of(capsys, "cluster", path, "--k", 1)


def test_faults_of_array_files(capsys, tmp_path):
    def message(name):
        return error_of(capsys, "cluster", tmp_path / name, "--k", 1)

    for name in ("empty.npz", "empty.npy", "text.npz", "text.npy"):
        (tmp_path / name).write_text("1,2" if name.startswith("text") else "")
        assert f"{name} cannot be read as an {name[-4:]} file" in message(name)
    np.save(tmp_path / "line.npy", np.ones(3))
    assert "expected a matrix of numbers; got shape (3,) and type float64" in message("line.npy")
    np.save(tmp_path / "text.npy", np.array([["a"]]))
    assert "expected a matrix of numbers; got shape (1, 1) and type <U1" in message("text.npy")
    np.save(tmp_path / "hole.npy", np.array([[1.0, 2.0], [3.0, np.nan]]))
    assert "row 1, column 1 (from 0) is nan" in message("hole.npy")
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
    assert "must end in .csv, .tsv, .npy, .npz" in message

    asked = []

    def offline(name, **kwargs):
        asked.append(name)
        raise OSError("no network")

    monkeypatch.setattr(fastmmc.datasets.bundled, "fetch_openml", offline)
    message = error_of(capsys, "cluster", "irsi", "--k", 2)
    assert "no data set 'irsi' (did you mean iris?)" in message and "--online asks" in message
    assert "did you mean pendigits" in error_of(capsys, "cluster", "pendigts", "--k", 2)
    assert "--online asks OpenML for it" in error_of(capsys, "cluster", "letter", "--k", 2)
    assert asked == []
    assert "no network" in error_of(capsys, "cluster", "letter", "--k", 2, "--online")
    assert asked == ["letter"]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "COMMAND"),
        (["paint"], "invalid choice: 'paint'"),
        (["cluster"], "SOURCE"),
        (["cluster", "moons"], "--k is missing"),
        (["cluster", "moons", "--k", "two"], "invalid int value: 'two'"),
        (["cluster", "moons", "--k", "0"], "k must be at least 1; got 0"),
        (["cluster", "moons", "--k", "2", "--method", "magic"], "invalid choice: 'magic'"),
        (["cluster", "moons", "--k", "2", "--lam", "-1"], "lam must be greater than 0"),
        (["cluster", "moons", "--k", "2", "--sigma", "nan"], "sigma must be finite"),
        (["cluster", "moons", "--k", "2", "--seed", "-1"], "must not be negative"),
        (["cluster", "moons", "--k", "2", "--n-init", "0"], "--n-init must be at least 1"),
        (
            ["cluster", "moons", "--k", "2", "--method", "sammc", "--search", "tabu"],
            "--search must be one of",
        ),
        (
            ["cluster", "moons", "--k", "2", "--n-jobs", "0"],
            "--n-jobs must not be 0; give a number of threads, or -1 for all\n",
        ),
        (["cluster", "moons", "--k", "2", "--max-time", "0"], "--max-time must be greater than 0"),
    ],
)
def test_wrong_arguments(capsys, argv, message):
    assert message in error_of(capsys, *argv)


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

    for option in ("--out", "--plot"):
        assert "there is no folder" in message(option, tmp_path / "none" / "a.png")
        assert "is a folder" in message(option, tmp_path)
    assert "is the file to be clustered" in message("--out", table)
    assert "must end in one of" in message("--plot", tmp_path / "a.xyz")
    assert "must end in one of" in message("--plot", tmp_path / "a")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert "cannot be written" in message("--out", tmp_path / "a.csv")


def test_missing_matplotlib_is_told_before_the_computation(capsys, monkeypatch, tmp_path):
    register(monkeypatch, never)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    wrong = ["cluster", "moons", "--k", 2, "--method", "fake", "--plot", tmp_path / "a.png"]
    assert "plotting needs matplotlib (python -m pip" in error_of(capsys, *wrong)


def test_plot_writes_a_picture(capsys, table, tmp_path):
    picture = tmp_path / "a.PNG"
    report_of(capsys, table, "--k", 3, "--label-column", "kind", "--plot", picture, *FEW)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_time_limit_is_a_warning(capsys):
    argv = ["cluster", "iris", "--k", "3", "--max-time", "1e-9", "--json"]
    assert cli.main(argv) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["status"] == "TIME_LIMIT"
    assert err.startswith("fastmmc: warning: stopped before the end") and err.count("\n") == 1


def test_interrupt_before_any_result(capsys, monkeypatch):
    def interrupted(X, k):
        raise KeyboardInterrupt

    register(monkeypatch, interrupted)
    assert cli.main(["cluster", "moons", "--k", "2", "--method", "fake"]) == 130
    out, err = capsys.readouterr()
    assert out == "" and err == "fastmmc: error: interrupted before there was a result\n"


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
    assert cli.main(["cluster", "iris", "--k", "3", "--json", *FEW]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "CONVERGED"
    assert "%" in terminal.text and "\n" not in terminal.text
    assert terminal.text.endswith("\r    \r")
    monkeypatch.setattr(terminal, "text", "")
    assert cli.main(["cluster", "iris", "--k", "3", "--max-time", "1e-9", "--json"]) == 0
    assert "\rfastmmc: warning: stopped before the end" in terminal.text


def test_terminal_with_rich_shows_its_bar(monkeypatch, pairs):
    asked = []

    def solve(X, k, *, verbose=0, callback=None):
        asked.append((verbose, callback))
        return fastmmc.umc_rls(X, k)

    register(monkeypatch, solve)
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert cli.main(["cluster", str(pairs), "--k", "2", "--method", "fake"]) == 0
    assert asked == [(1, None)]


def test_terminal_and_a_method_without_progress(monkeypatch, pairs):
    terminal = Terminal()
    register(monkeypatch, lambda X, k: fastmmc.umc_rls(X, k))
    monkeypatch.setattr(sys, "stderr", terminal)
    assert cli.main(["cluster", str(pairs), "--k", "2", "--method", "fake"]) == 0
    assert terminal.text == ""


def test_methods_lists_the_registry(capsys, monkeypatch):
    register(monkeypatch, never, binary=True)
    assert cli.main(["methods"]) == 0
    out = capsys.readouterr().out
    for method in METHODS.values():
        assert method.name in out and method.summary in out and method.paper in out
    assert "fake (two clusters)" in out


def test_version(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"fastmmc {fastmmc.__version__}\n"


def test_module_runs_without_optional_packages(pairs):
    # A name set to None in sys.modules cannot be imported.
    code = (
        "import runpy, sys\n"
        "sys.modules['matplotlib'] = sys.modules['rich'] = None\n"
        f"sys.argv[1:] = ['cluster', {str(pairs)!r}, '--k', '2', '--json']\n"
        "runpy.run_module('fastmmc', run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["sizes"] == [5, 5]


def test_closed_pipe_is_quiet():
    command = [sys.executable, "-m", "fastmmc", "methods"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


def test_rank(capsys):
    assert cli.main(["cluster", "moons", "--k", "2", "--rank", "10", "--seed", "0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["params"]["rank"] == 10
    assert (
        cli.main(["cluster", "moons", "--k", "2", "--rank", "none", "--seed", "0", "--json"]) == 0
    )
    assert json.loads(capsys.readouterr().out)["params"]["rank"] is None
    assert "rank must be at most 200" in error_of(
        capsys, "cluster", "moons", "--k", 2, "--rank", 900
    )
    assert "a share of the points, auto or none; got 'big'" in error_of(
        capsys, "cluster", "moons", "--k", 2, "--rank", "big"
    )


@pytest.fixture
def photo(tmp_path):
    """A picture of two colours, 12 x 10 pixels."""
    pixels = np.full((10, 12, 3), (200, 40, 30), np.uint8)
    pixels[6:] = 20, 60, 180
    path = tmp_path / "photo.png"
    Image.fromarray(pixels).save(path)
    return path


def read(path):
    with Image.open(path) as picture:
        return np.asarray(picture)


def never_segment(*args, **kwargs):
    raise AssertionError("the computation was begun")


def test_segment_agrees_with_the_library(capsys, tmp_path, photo, rng):
    noisy = np.clip(read(photo) + rng.integers(-9, 10, (10, 12, 3)), 0, 255).astype(np.uint8)
    Image.fromarray(noisy).save(photo)
    options = ["--balance", 0.4, "--sigma", 300, "--rank", 40, "--min-region", 2, *FEW]
    out = tmp_path / "seg.png"
    argv = ["segment", photo, "--k", 3, *options, "--out", out, "--json"]
    assert cli.main([str(arg) for arg in argv]) == 0
    report = json.loads(capsys.readouterr().out)
    expected = fastmmc.segment(
        noisy,
        3,
        sigma=300.0,
        rank=40,
        min_region=2,
        n_init=2,
        random_state=0,
        method_params={"balance": 0.4},
    )
    assert (report["method"], report["width"], report["height"]) == ("iter-svr", 12, 10)
    assert report["k"] == len(expected.sizes) and report["sizes"] == expected.sizes.tolist()
    assert report["status"] == "CONVERGED" and report["seconds"] > 0
    assert report["objective"] == pytest.approx(expected.objective)
    np.testing.assert_allclose(report["colors"], expected.colors)
    np.testing.assert_array_equal(read(out), np.rint(expected.paint()))


def test_segment_prints_the_same(capsys, photo):
    assert cli.main(["segment", str(photo), "--k", "2", "--seed", "0"]) == 0
    out, err = capsys.readouterr()
    lines = dict(line.split(None, 1) for line in out.splitlines())
    assert out.startswith(f"iter-svr on {photo}: 12 x 10 pixels, 2 segments\n")
    assert lines["sizes"].split() == ["72", "48"]
    assert lines["colours"].split() == ["#c8281e", "#143cb4"]
    assert lines["status"] == "converged" and {"objective", "time"} <= lines.keys()
    assert err == ""


def test_segment_side_by_side(capsys, tmp_path, photo):
    out = tmp_path / "both.png"
    wrong = ["segment", photo, "--k", 2, "--side-by-side"]
    assert "--side-by-side needs --out" in error_of(capsys, *wrong)
    assert cli.main([str(arg) for arg in (*wrong, "--out", out)]) == 0
    both, original = read(out), read(photo)
    np.testing.assert_array_equal(both[:, :12], original)
    assert (both[:, 12:-12] == 255).all() and both.shape == (10, 24 + cli.segment.GAP, 3)
    np.testing.assert_array_equal(both[:, -12:], original)  # there are two colours only


def test_every_kind_of_picture_becomes_rgb(tmp_path, photo):
    pixels = read(photo)
    frames = [Image.fromarray(pixels), Image.fromarray(pixels[::-1])]
    frames[0].save(tmp_path / "palette.png")
    frames[0].quantize(4).save(tmp_path / "palette.png")
    frames[0].save(tmp_path / "moving.gif", save_all=True, append_images=frames[1:])
    frames[0].convert("CMYK").save(tmp_path / "print.tiff")
    for name in ("palette.png", "moving.gif", "print.tiff"):
        np.testing.assert_allclose(cli.segment._read_picture(tmp_path / name), pixels, atol=2)
    alpha = np.full((10, 12), 255, np.uint8)
    alpha[:, :5] = 0
    Image.fromarray(np.dstack([pixels, alpha])).save(tmp_path / "alpha.png")
    expected = pixels.copy()
    expected[:, :5] = 255
    np.testing.assert_array_equal(cli.segment._read_picture(tmp_path / "alpha.png"), expected)
    grey = np.arange(120, dtype=np.uint8).reshape(10, 12)
    Image.fromarray(grey).save(tmp_path / "grey.png")
    Image.fromarray(grey.astype(np.uint16) * 257).save(tmp_path / "deep.png")
    for name in ("grey.png", "deep.png"):
        read_back = cli.segment._read_picture(tmp_path / name)
        np.testing.assert_array_equal(read_back, np.dstack([grey] * 3))
    # A camera held upright stores its picture lying and says so.
    turned = Image.Exif()
    turned[0x0112] = 6
    frames[0].save(tmp_path / "turned.png", exif=turned)
    np.testing.assert_array_equal(
        cli.segment._read_picture(tmp_path / "turned.png"), np.rot90(pixels, axes=(1, 0))
    )


def test_faults_of_pictures(capsys, tmp_path, photo, monkeypatch):
    monkeypatch.setattr(cli.segment, "segment", never_segment)

    def message(name):
        return error_of(capsys, "segment", tmp_path / name, "--k", 2)

    assert "none.png: No such file" in message("none.png")
    assert "is a folder; give a file" in message("")
    (tmp_path / "text.png").write_text("no picture")
    assert "text.png cannot be read as a picture: cannot identify" in message("text.png")
    whole = photo.read_bytes()
    (tmp_path / "cut.png").write_bytes(whole[: len(whole) // 2])
    assert "cut.png cannot be read as a picture" in message("cut.png")
    Image.fromarray(np.zeros((3, 3), np.float32)).save(tmp_path / "float.tiff")
    assert "its pixels have 32 bits; convert them" in message("float.tiff")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 50)
    assert "photo.png cannot be read as a picture: Image size" in message("photo.png")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "--k is missing: segment must be told the number of segments"),
        (["--k", "0"], "k must be at least 1; got 0"),
        (["--k", "3"], "k must be at most 2, the number of distinct colours; got 3"),
        (["--k", "2", "--min-region", "-1"], "--min-region must be at least 0"),
        (["--k", "2", "--balance", "-1"], "balance must be"),
        (["--k", "2", "--method", "magic"], "invalid choice: 'magic'"),
        (["--k", "2", "--lam", "1"], "unrecognized arguments: --lam"),
    ],
)
def test_wrong_arguments_of_segment(capsys, photo, options, message):
    assert message in error_of(capsys, "segment", photo, *options)


def test_balance_is_refused_where_a_method_has_none(capsys, monkeypatch, photo):
    method = Method("fake", never, None, "no paper", "for tests")
    monkeypatch.setitem(METHODS, "fake", method)
    wrong = ["segment", photo, "--k", 2, "--method", "fake", "--balance", 0.5]
    assert "fake has no --balance" in error_of(capsys, *wrong)


def test_outputs_of_segment_are_checked_before_the_computation(
    capsys, monkeypatch, tmp_path, photo
):
    monkeypatch.setattr(cli.segment, "segment", never_segment)

    def message(path):
        return error_of(capsys, "segment", photo, "--k", 2, "--out", path)

    assert "there is no folder" in message(tmp_path / "none" / "a.png")
    assert "is a folder" in message(tmp_path)
    assert "is the file to be clustered" in message(photo)
    assert "must end in one of" in message(tmp_path / "a.xyz")
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert "pictures need Pillow (python -m pip install pillow)" in message(tmp_path / "a.png")
    assert "need Pillow (python -m pip" in error_of(capsys, "segment", photo, "--k", 2)
