"""Parquet files that are too large for memory, in files that are small enough for a test."""

import errno
import json
import re
import signal
import subprocess
import sys
import tempfile

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

import fastmmc
from fastmmc.cli import parquet
from fastmmc.core import files
from fastmmc.data import blocks
from fastmmc.data.columns import IDS
from fastmmc.data.standardization import fit_scaler
from fastmmc.datasets import make_nine_gaussians
from fastmmc.kernels import block_factor
from fastmmc.rls.engine import coarse
from tests.cli.runner import error_of, labels_of, run
from tests.test_blocks import Crash, crash_after

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

N = 3000
SMALL = (
    (parquet, "LARGE_FILE", 5000),
    (parquet, "BATCH", 300),
    (coarse, "CELLS", 100),
    (block_factor, "SAMPLE", 600),
    (block_factor, "SAMPLE_PER_CLUSTER", 1),
    (block_factor, "SAMPLE_PER_LANDMARK", 1),
    (blocks, "BLOCK_NUMBERS", 2**14),
    (blocks, "GROUP", 16),
    (blocks, "FAN_IN", 4),
)
LARGE = ["--seed", 0, "-k", 9]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Make samples, blocks and what is a large file small."""
    for module, name, value in SMALL:
        monkeypatch.setattr(module, name, value)


@pytest.fixture(scope="module")
def points():
    return make_nine_gaussians(N, random_state=0)


@pytest.fixture
def table(points, tmp_path):
    return write(tmp_path, {"a": points[0][:, 0], "b": points[0][:, 1]})


def write(folder, columns, name="t.parquet"):
    path = folder / name
    pq.write_table(pa.table(columns), path, row_group_size=700)
    return path


def in_blocks(X, folder, method="cluster", **params):
    """Return what a method makes of the same points in a memory map, by default of 9 clusters."""
    params = params if method != "cluster" else {"k": 9} | params
    np.save(folder / "X.npy", np.ascontiguousarray(X))
    X = np.load(folder / "X.npy", mmap_mode="r")
    X = blocks.LargeMap(X.filename, X.dtype, "r", X.offset, X.shape)
    return fastmmc.METHODS[method].function(X, **params)


def test_labels_are_those_of_a_memory_map(points, table, tmp_path, capsys):
    out, model, state = tmp_path / "labels.npy", tmp_path / "model.npz", tmp_path / "state"
    result = in_blocks(points[0], tmp_path, random_state=0)
    expected = result.labels
    assert run("cluster", table, *LARGE, "--out", out, "--model", model) == 0
    assert capsys.readouterr().err == ""
    np.testing.assert_array_equal(np.load(out), expected)
    more = ["--state", state, "--n-jobs", 2]
    np.testing.assert_array_equal(labels_of(capsys, "cluster", table, *LARGE, *more)[0], expected)
    assert not state.exists()
    labels, _ = labels_of(capsys, "predict", model, table)
    np.testing.assert_array_equal(labels, result.predict(points[0]))


@pytest.mark.parametrize(
    ("method", "given"),
    [
        ("umc-rls", {"k": 9, "rank": 40, "sizes": "free"}),
        ("fast-evo-mmc", {"rank": 40}),
        ("sammc", {"k": 9}),
        ("cpmmc", {}),
    ],
)
def test_other_methods_in_blocks(points, table, tmp_path, capsys, method, given):
    options = [text for name, value in given.items() for text in (f"--{name}", value)]
    command = ["cluster", table, "--method", method, *options, "--state", tmp_path / "state"]
    found, _ = labels_of(capsys, *command)
    expected = in_blocks(points[0], tmp_path, method, random_state=0, **given).labels
    np.testing.assert_array_equal(found, expected)


def crash(monkeypatch, command, count):
    """Run a command until it has written so many entries of its state; return their names."""
    with monkeypatch.context() as patch:
        written = crash_after(patch, count)
        with pytest.raises(Crash):
            run(*command)
    return written


def test_a_crash_in_any_stage(points, table, tmp_path, monkeypatch, capsys):
    out, state = tmp_path / "labels.npy", tmp_path / "state"
    command = ["cluster", table, *LARGE, "--out", out, "--state", state]
    names = []
    # In the scan, while the map is made, in passes; what an entry tells of is there before it.
    for count in (0, 1, 2, 4, *[1] * 5):
        names += crash(monkeypatch, command, count)
    assert not out.exists() and (state / parquet.POINTS).exists()
    written = crash_after(monkeypatch, None)
    assert run(*command, "--n-jobs", 2) == 0
    names += written
    assert names == sorted(set(names)) and len(written) > 1
    expected = in_blocks(points[0], tmp_path, random_state=0).labels
    np.testing.assert_array_equal(np.load(out), expected)
    assert not state.exists() and "converged" in capsys.readouterr().out


KILLED = """
import importlib, os, signal, sys
from fastmmc import cli
from fastmmc.data import blocks, passes
for module, name, value in {small}:
    setattr(importlib.import_module(module), name, value)
write, written = {at}, []
def write_some(path, *given):
    if len(written) == {count}:
        os.kill(os.getpid(), signal.SIGKILL)
    written.append(path)
    return write(path, *given)
{at} = write_some
sys.exit(cli.main())
"""


def kill(command, at, count):
    """Run a command in a process that is killed when a function is to write once more."""
    small = [(module.__name__, name, value) for module, name, value in SMALL]
    code = KILLED.format(small=small, at=at, count=count)
    ended = subprocess.run([sys.executable, "-c", code, *command])
    assert ended.returncode == -signal.SIGKILL


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL")
@pytest.mark.jit
def test_killed_by_the_system_in_a_pass(points, table, tmp_path):
    out, state = tmp_path / "labels.npy", tmp_path / "state"
    command = ["cluster", str(table), *map(str, LARGE), "--out", str(out), "--state", str(state)]
    kill(command, "passes._write", 12)
    assert len([*state.glob("*.pass")]) == 12 and not out.exists()
    for name in (".000012.pass.1", ".run.json.1"):
        (state / name).touch()  # what it had begun to write
    assert run(*command) == 0
    expected = in_blocks(points[0], tmp_path, random_state=0).labels
    np.testing.assert_array_equal(np.load(out), expected)
    assert not state.exists()


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL")
@pytest.mark.jit
def test_temporary_folders_of_killed_runs_are_removed_by_the_next(
    points, table, tmp_path, monkeypatch
):
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr(tempfile, "tempdir", None)
    command = ["cluster", str(table), *map(str, LARGE), "--method", "umc-rls", "--rank", "40"]
    kill(command, "blocks._save", 1)
    assert len([*place.glob("*/*")]) == 2  # the map, and what a pass kept
    with files.temporary_folder() as used:
        (place / f"{files.TEMPORARY}of_another_program").mkdir()
        assert run(*command) == 0
        assert len([*place.iterdir()]) == 3 and used.exists()
    assert len([*place.iterdir()]) == 1


@pytest.mark.skipif(files.fcntl is None, reason="no flock")
def test_temporary_folders_need_no_locks(tmp_path, monkeypatch):
    def refuse(*args):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(files.fcntl, "flock", refuse)
    with files.temporary_folder() as one, files.temporary_folder() as other:
        assert one.exists() and other.exists()
    assert not one.exists() and not other.exists()


def test_states_of_other_runs_and_damaged_ones(points, table, tmp_path, monkeypatch, capsys):
    state = tmp_path / "state"
    command = ["cluster", table, *LARGE, "--state", state]
    crash(monkeypatch, command, 9)
    for other, message in (
        (["--seed", 1, "-k", 9], "--seed 1 contradicts"),
        (["--seed", 0], "no --k contradicts"),
        ([*LARGE, "--columns", "b,a"], "the state of a run with no --columns; give the same, or"),
        ([*LARGE, "--method", "sammc"], "--method sammc contradicts"),
        ([*LARGE, "--standardize"], "--standardize contradicts"),
    ):
        assert message in error_of(capsys, "cluster", table, *other, "--state", state)
    other = write(tmp_path, {"a": points[0][:, 1], "b": points[0][:, 0]}, "other.parquet")
    wrong = error_of(capsys, "cluster", other, *LARGE, "--state", state)
    assert f"{other} is not the file that {state} was begun with; give another --state" in wrong
    entries = sorted(state.glob("*.pass"))
    changed = [state / parquet.HEADER, state / parquet.POINTS, entries[0], entries[-1]]
    for file in changed:
        content = file.read_bytes()
        for wrong in (content[:-1], content[:-9] + b'"' + content[-8:]):
            file.write_bytes(wrong)
            assert f"{file} is damaged" in error_of(capsys, *command)
        file.write_bytes(content)
    with files.locked(state):
        assert "in use by another run" in error_of(capsys, *command)
    before = in_blocks(points[0], tmp_path, random_state=0).labels
    np.testing.assert_array_equal(labels_of(capsys, *command)[0], before)


def test_other_files_are_kept(table, tmp_path, capsys):
    state = tmp_path / "state"
    state.mkdir()
    assert run("cluster", table, *LARGE, "--state", state, "--out", state / "labels.csv") == 0
    assert [file.name for file in state.iterdir()] == ["labels.csv"]
    capsys.readouterr()
    wrong = error_of(capsys, "cluster", table, *LARGE, "--state", state)
    assert f"{state} holds other files than a state" in wrong


def changed(X, at, value):
    X = X.copy()
    X[at] = value
    return X


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda a: ["x"] * N, "column 'c' holds string; "),
        (lambda a: a > 0, "column 'c' holds bool; "),
        (lambda a: pa.array(changed(a, 2100, np.nan), from_pandas=True), "has 1 missing; "),
        (lambda a: changed(a, 2999, np.nan), "is missing in row 2999 (from 0); "),
        (lambda a: changed(a, 700, -np.inf), "is infinite in row 700 (from 0); "),
    ],
)
def test_columns_that_blocks_do_not_have(points, tmp_path, capsys, make, message):
    a = points[0][:, 0]
    table = write(tmp_path, {"a": a, "b": points[0][:, 1], "c": make(a)})
    wrong = error_of(capsys, "cluster", table, *LARGE, "--state", tmp_path / "state")
    assert "column 'c' " in wrong and message in wrong and "leave it out: --drop c" in wrong
    expected = in_blocks(points[0], tmp_path, random_state=0).labels
    found, _ = labels_of(capsys, "cluster", table, *LARGE, "--drop", "c")
    np.testing.assert_array_equal(found, expected)


@pytest.mark.filterwarnings("always")
def test_ids_units_and_labels(points, tmp_path, capsys):
    X, y = points
    columns = {
        "nr": np.arange(N),
        "kind": [f"class {label}" for label in y],
        "a": X[:, 0].astype(np.float32),
        "same": np.full(N, 3),
        "b": (1e5 * X[:, 1]).astype(np.float32),
    }
    frame = pd.DataFrame(columns, index=pd.Index(np.arange(N)[::-1], name="old"))
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=700)
    given = ["cluster", tmp_path / "t.parquet", *LARGE, "--label-column", "kind"]
    out, model = tmp_path / "labels.npy", tmp_path / "model.npz"
    assert run(*given, "--out", out, "--model", model, "--json") == 0
    printed, told = capsys.readouterr()
    report = json.loads(printed)
    assert report["ari"] > 0.4 and report["d"] == 2
    scaled = "numbers, scaled"
    said = [["nr", IDS], ["a", scaled], ["same", "left out, as it is 3 in all rows"], ["b", scaled]]
    assert report["columns"] == said
    assert "columns are scaled: their units differ" in told and "'nr': left out" in told
    Z = frame[["a", "b"]].to_numpy(np.float64)
    Z = ((Z - Z.mean(axis=0)) / Z.std(axis=0)).astype(np.float32)
    expected = in_blocks(Z, tmp_path, random_state=0)
    assert adjusted_rand_score(expected.labels, np.load(out)) > 0.99
    coding = fastmmc.load(model).coding
    np.testing.assert_allclose(coding.code(frame.drop(columns="kind"))[0], Z, atol=1e-6)
    wrong = labels_of(capsys, *given, "--method", "umc-rls", "--rank", 40)[1]
    assert "columns of X seem to have different units" in wrong


def test_all_rows_tell_whether_a_column_has_two_numbers(points, tmp_path, capsys):
    rows = np.arange(N)
    columns = {"a": points[0][:, 0], "late": np.maximum(0.0, rows - 1000), "two": 1.0 + rows % 2}
    model = tmp_path / "model.npz"
    table = write(tmp_path, columns)
    labels_of(capsys, "cluster", table, *LARGE, "--standardize", "--model", model)
    scales = [column.scale for column in fastmmc.load(model).coding.columns]
    np.testing.assert_allclose(scales, fit_scaler(np.column_stack([*columns.values()])).scale)


@pytest.mark.filterwarnings("always")
def test_what_is_said_of_numbers_is_that_of_a_table_in_memory(
    points, tmp_path, capsys, monkeypatch
):
    a, b = points[0].T
    days = 20240101 + np.arange(N) % 28
    columns = {"a": a, "b": b, "code": np.where(np.arange(N) % 999, b, -999), "day": days}
    fine = write(tmp_path, columns, "fine.parquet")
    wrong = write(tmp_path, columns | {"e": np.where(np.arange(N) == 2500, -1e300, a)})

    def said():
        yield from re.findall("warning: .*", labels_of(capsys, "cluster", fine, *LARGE)[1])
        for more in ([], ["--standardize"]):
            assert run("cluster", wrong, *LARGE, *more) == 2
            yield from re.findall("error: .*", capsys.readouterr().err)

    code, date, *errors = in_blocks = [*said()]
    assert "values in column 'code', such as -999 in 4 rows, are far" in code
    assert "values in column 'day', such as 20240101, seem to be dates" in date
    for text in errors:
        assert "t.parquet: column 'e' holds -1e+300, whose square overflows, in row 2500" in text
    monkeypatch.setattr(parquet, "LARGE_FILE", 10**6)
    assert len(errors) == 2 and [*said()] == in_blocks


@pytest.mark.parametrize("option", [["--profile"], ["--html", "r.html"], ["--trim", 3], []])
def test_what_blocks_cannot_do_is_done_in_memory(points, tmp_path, capsys, monkeypatch, option):
    monkeypatch.chdir(tmp_path)
    a, b = points[0].T
    columns = {"a": a, "b": b} | ({} if option else {"c": ["x", "y", "z"] * (N // 3)})
    given = ["cluster", write(tmp_path, columns), *LARGE, *option]
    why = f"{option[0]}: a .parquet file of" if option else "column 'c' holds string; a .parquet"
    told = labels_of(capsys, *given)[1]
    assert "t.parquet is loaded as a whole. " in told and why in told
    with monkeypatch.context() as patch:
        patch.setattr(parquet, "available_memory", lambda: 0)
        assert why in error_of(capsys, *given)
    assert why in error_of(capsys, *given, "--state", "state")


def test_columns_of_one_name_are_refused(points, tmp_path, capsys):
    a, b = points[0].T
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table([a, b, a], names=["a", "b", "a"]), path)
    wrong = error_of(capsys, "cluster", path, *LARGE)
    assert "t.parquet: several columns have one name; give them different ones" in wrong


def test_the_end_of_a_state_is_not_that_of_a_time(table, tmp_path, capsys):
    state = ["--state", tmp_path / "state", "--max-time", 9]
    assert "--max-time: a .parquet" in error_of(capsys, "cluster", table, *LARGE, *state)


def test_a_state_of_what_is_in_memory(table, tmp_path, capsys, monkeypatch):
    state = ["--state", tmp_path / "state"]
    wrong = error_of(capsys, "cluster", table, *LARGE, "--method", "wta", *state)
    assert "--state is for a .parquet file and the methods cluster, umc-rls, fast-evo-mmc" in wrong
    assert "got SOURCE iris and cluster" in error_of(capsys, "cluster", "iris", *state)
    monkeypatch.setattr(parquet, "LARGE_FILE", 6000)
    told = labels_of(capsys, "cluster", table, *LARGE, *state)[1]
    assert "t.parquet is read into memory; --state is not needed" in told


def test_an_interrupted_run_keeps_its_state(table, tmp_path, monkeypatch, capsys):
    state = tmp_path / "state"

    def stop(folder, found):
        raise KeyboardInterrupt

    monkeypatch.setattr(parquet, "_check_bytes", stop)
    crash(monkeypatch, ["cluster", table, *LARGE, "--state", state], 3)
    assert run("cluster", table, *LARGE, "--state", state) == 130
    told = capsys.readouterr().err
    assert "interrupted before there was a result; the same command goes on from there" in told
    assert state.exists()


def test_progress_is_shown_on_a_terminal(table, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    told = labels_of(capsys, "cluster", table, *LARGE)[1]
    assert "pass 1 over the rows: 23%" in told and "pass 4 over the rows: 0%" in told
