"""Models that cluster saves, and the command predict."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import fastmmc
from fastmmc.core import saving
from tests.cli.runner import FEW, error_of, labels_of, run


@pytest.fixture
def model(capsys, table, tmp_path, blobs):
    """A model of scaled columns with names, and what it should predict for them."""
    path = tmp_path / "model.npz"
    given = [table, "--label-column", "kind", "-k", 3, *FEW, "--search", "shaking"]
    labels_of(capsys, "cluster", *given, "--standardize", "--model", path)
    options = {"method": "shaking", "n_init": 2, "random_state": 0, "standardize": True}
    return path, fastmmc.umc_rls(blobs[0], 3, **options).predict(blobs[0])


@pytest.fixture
def frame(blobs):
    return pd.DataFrame(blobs[0], columns=list("abcd"))


def test_the_points_of_the_model(capsys, model, table):
    path, labels = model
    found, told = labels_of(capsys, "predict", path, table)
    np.testing.assert_array_equal(found, labels)
    assert told.startswith(f"{path} on {table}: 75 points, 4 features\nsizes      ")


def test_a_model_is_a_result(model, blobs):
    path, labels = model
    np.testing.assert_array_equal(fastmmc.load(path).predict(blobs[0]), labels)


def test_columns_are_found_by_name_or_number(capsys, model, tmp_path, frame, piped):
    path, labels = model
    frame.insert(1, "kind", "x")
    new = tmp_path / "new.csv"
    for table, options in [
        (frame[list("abcd")], {}),
        (frame[list("dcba")], {"index": False}),
        (frame.assign(more=1.0), {"sep": ";", "decimal": ","}),
        (frame[["a", "b", "kind", "c", "d"]], {"index": False, "header": False}),
        (frame[list("abcd")], {"index": False, "header": False}),
    ]:
        table.to_csv(new, **options)
        np.testing.assert_array_equal(labels_of(capsys, "predict", path, new)[0], labels)
    frame[list("dcba")].rename(columns=str.upper).to_csv(new, index=False)
    given = ["predict", path, new, "--columns", "3,2,1,0"]
    np.testing.assert_array_equal(labels_of(capsys, *given)[0], labels)
    piped(frame[list("abcd")].to_csv())
    np.testing.assert_array_equal(labels_of(capsys, "predict", path, "-")[0], labels)


def test_columns_of_one_name_keep_their_places(capsys, tmp_path, frame):
    table, other, path = (tmp_path / name for name in ("twice.csv", "moved.csv", "model.npz"))
    frame.columns = ["a", "b", "b", "c"]
    frame.to_csv(table, index=False)
    frame[["c", "a", "b"]].to_csv(other, index=False)
    given = [table, "-k", 3, *FEW, "--model", path]
    labels, _ = labels_of(capsys, "cluster", *given)
    np.testing.assert_array_equal(labels_of(capsys, "predict", path, table)[0], labels)
    assert "2 columns are named 'b'; list the columns" in error_of(capsys, "predict", path, other)


def test_columns_of_arrays_keep_their_places(capsys, tmp_path, blobs):
    X, _ = blobs
    np.save(tmp_path / "X.npy", np.column_stack([X[:, ::-1], np.arange(75)]))
    path = tmp_path / "model.npz"
    given = [tmp_path / "X.npy", "--columns", "3,0-1", "-k", 3, "--seed", 0, "--model", path]
    labels, _ = labels_of(capsys, "cluster", *given)
    assert run("predict", path, tmp_path / "X.npy", "--out", tmp_path / "new.npy") == 0
    np.testing.assert_array_equal(np.load(tmp_path / "new.npy"), labels)
    assert capsys.readouterr().out.startswith(f"{path} on {tmp_path / 'X.npy'}: 75 points, 3 feat")
    np.save(tmp_path / "X.npy", X[:, [0, 3, 2]])
    np.testing.assert_array_equal(labels_of(capsys, "predict", path, tmp_path / "X.npy")[0], labels)


@pytest.mark.parametrize("method", ["cluster", "recursive-mmc", "c-rpcl", "iter-svr"])
def test_every_kind_of_model(capsys, table, tmp_path, method):
    path = tmp_path / "model.npz"
    given = [table, "--label-column", "kind", "--seed", 0, "--method", method, "--model", path]
    k = [] if method == "iter-svr" else ["-k", 3]
    labels_of(capsys, "cluster", *given, *k)
    found, _ = labels_of(capsys, "predict", path, table)
    X = pd.read_csv(table)[list("abcd")].to_numpy()
    np.testing.assert_array_equal(found, fastmmc.load(path).predict(X))


def test_models_that_the_library_has_saved(capsys, tmp_path, frame):
    path, new = tmp_path / "model.npz", tmp_path / "new.csv"
    frame.assign(e=0.0)[list("edcba")].to_csv(new, index=False)
    result = fastmmc.umc_rls(frame, 3, n_init=2, random_state=0)
    online = fastmmc.WTA(3, random_state=0).fit(frame)
    for made in (result, online, fastmmc.UMCRLS(3, random_state=0).fit(frame)):
        made.save(path)
        found, told = labels_of(capsys, "predict", path, new)
        np.testing.assert_array_equal(found, made.predict(frame))
        sizes = " ".join(map(str, np.bincount(found, minlength=3)))
        assert f"\nsizes      {sizes}\n" in told and "warning" not in told
    replace(result, feature_names_in=None).save(path)
    given = ["predict", path, new, "--drop", "e", "--columns", "a,b,c,d"]
    np.testing.assert_array_equal(labels_of(capsys, *given)[0], result.predict(frame))
    wrong = error_of(capsys, "predict", path, new)
    assert f"{new}, columns: X has 5 features" in wrong and "by --columns" in wrong


def test_a_model_with_lasting_numbers_finds_its_columns(capsys, tmp_path, frame):
    path, new = tmp_path / "model.npz", tmp_path / "new.csv"
    for table in (frame, frame.assign(kind=np.array(["u", "v"])[np.arange(75) % 2])):
        result = fastmmc.cluster(table, 3, random_state=0)
        kept = fastmmc.keep_numbers(result, np.array([7, 2, 5])[result.labels])
        kept.save(path)
        table.assign(more=1.0)[["more", *table.columns[::-1]]].to_csv(new, index=False)
        found, told = labels_of(capsys, "predict", path, new)
        np.testing.assert_array_equal(found, kept.labels)
        sizes = " ".join(str((found == number).sum()) for number in (2, 5, 7))
        assert f"\nnumbers    2 5 7\nsizes      {sizes}\n" in told


def thousands(decimal, thousand, low=1012):
    """Return rows of whole thousands in two clusters, and small numbers with decimals."""
    big = [low + 7 * i + 2500 * (i % 2) for i in range(60)]
    small = [2.01 + i % 7 / 10 for i in range(60)]
    return [
        (f"{x:,}".replace(",", thousand), f"{y:.2f}".replace(".", decimal))
        for x, y in zip(big, small, strict=True)
    ]


def test_decimal_marks_of_another_file(capsys, tmp_path):
    path, first, new = (tmp_path / name for name in ("model.npz", "first.csv", "new.csv"))
    german = "\n".join(["v;w", *(f"{v};{w}" for v, w in thousands(",", "."))])
    english = "\n".join(["v,w", *(f'"{v}",{w}' for v, w in thousands(".", ","))])
    for text, other in ((german, english), (english, german)):
        first.write_text(text)
        new.write_text(other)
        labels, _ = labels_of(capsys, "cluster", first, "-k", 2, "--model", path)
        found, told = labels_of(capsys, "predict", path, new)
        np.testing.assert_array_equal(found, labels)
        example = "1,012" if other is english else "1.012"
        assert f"note: {new}: column 'v': {example!r} read as 1012\n" in told
    # What was said of the first file holds for others in which nothing tells another mark.
    for text in (german, "v;w\n1.012;2\n3.519;3\n" * 30):
        first.write_text(text)
        given = ["cluster", first, "-k", 2, "--decimal", ".", "--model", path]
        labels, _ = labels_of(capsys, *given)
        found, told = labels_of(capsys, "predict", path, first)
        np.testing.assert_array_equal(found, labels)
        assert f"note: {first}: column 'v': '1.012' read as 1.012\n" in told


def test_a_state_of_a_stream_predicts(capsys, tmp_path, frame):
    path, new = tmp_path / "state.npz", tmp_path / "new.csv"
    frame.to_csv(new, index=False)
    assert run("stream", new, "-k", 3, "--seed", 0, "--state", path) == 0
    capsys.readouterr()
    expected = fastmmc.CRPCL.load(path).predict(frame.to_numpy())
    np.testing.assert_array_equal(labels_of(capsys, "predict", path, new)[0], expected)


def test_wrong_columns(capsys, model, tmp_path, frame):
    path, _ = model
    new = tmp_path / "new.csv"
    for table, header, message in [
        (frame[["a", "b"]], True, "needs columns 'c', 'd', missing here; rename what is meant"),
        (frame.rename(columns=str.upper), True, "model needs columns 'a', 'b', 'c', 'd', missing"),
        (frame[["a", "b", "c"]], False, "3 columns; the model was made of 4 out of 5: list them"),
    ]:
        table.to_csv(new, index=False, header=header)
        assert f"{new}: " in (wrong := error_of(capsys, "predict", path, new)) and message in wrong
    frame.to_csv(new, index=False)
    wrong = error_of(capsys, "predict", path, new, "--columns", "a,b")
    assert f"{new}: there are 2 columns; the clusters were made of 'a', 'b', 'c', 'd'" in wrong


def test_wrong_files(capsys, model, table, tmp_path):
    path, _ = model
    whole = path.read_bytes()
    for content in (b"", b"text", whole[:200], whole[:-30]):
        (tmp_path / "other.npz").write_bytes(content)
        wrong = error_of(capsys, "predict", tmp_path / "other.npz", table)
        assert "other.npz is no saved estimator or result" in wrong
    assert "none.npz: No such file" in error_of(capsys, "predict", tmp_path / "none.npz", table)
    assert "is no saved" in error_of(capsys, "predict", table, table)
    given = ["cluster", table, "--label-column", "kind", "-k", 3]
    for name, message in [
        ("model.pkl", "the name of --model must end in .npz"),
        ("none/model.npz", "there is no folder"),
        ("", "is a folder"),
    ]:
        assert message in error_of(capsys, *given, "--model", tmp_path / name)
    wrong = error_of(capsys, "predict", path, table, "--out", table)
    assert "is a file to be read" in wrong


@pytest.mark.parametrize(
    "change",
    [
        {"columns": {"names": None, "numbers": [0, 1], "n_columns": 9}},
        {"columns": {"names": ["a"], "numbers": [0, 1, 3, 4], "n_columns": 5}},
        {"columns": {"names": [1, 2, 3, 4], "numbers": [0, 1, 3, 4], "n_columns": 5}},
        {"columns": {"names": None, "numbers": [0, 1, 3, 7], "n_columns": 5}},
        {"columns": {"names": None, "numbers": [0, 1, 3, True], "n_columns": 5}},
        {"columns": {"names": None, "numbers": None, "n_columns": 5}},
        {"columns": {"names": None, "numbers": [0, 1, 3, 4], "n_columns": 5.5}},
        {"columns": {"names": None, "numbers": [0, 1, 3, 4], "n_columns": 5, "medians": None}},
        {"columns": {"command": "rm"}},
        {"columns": None},
    ],
)
def test_what_is_told_of_columns_is_checked(capsys, model, table, change):
    path, _ = model
    extra = saving.read_archive(path)[1]["extra"]
    saving.write(path, fastmmc.load(path), json.loads(json.dumps(extra)) | change)
    wrong = error_of(capsys, "predict", path, table)
    assert f"{path} is damaged: what it tells of columns is wrong" in wrong


def test_a_model_of_an_earlier_version(capsys, model, table):
    path, _ = model
    extra = saving.read_archive(path)[1]["extra"]
    saving.write(path, fastmmc.load(path), extra | {"mean": None, "scale": None})
    wrong = error_of(capsys, "predict", path, table)
    assert f"{path} was made by an earlier version of fastmmc; make it anew" in wrong


@pytest.mark.parametrize(
    "change",
    [
        {"scale": 0.0},
        {"fill": np.inf},
        {"mark": "x"},
        {"power": np.nan},
        {"unit": -1.0},
        {"name": 3},
        {"marker": 1.0},
    ],
)
def test_a_coding_that_cannot_be_is_refused(model, tmp_path, change):
    result = fastmmc.load(model[0])
    first, *others = result.coding.columns
    columns = (replace(first, **change), *others)
    with pytest.raises(ValueError):
        replace(result, coding=replace(result.coding, columns=columns)).save(tmp_path / "m.npz")
