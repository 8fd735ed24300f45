"""The command stream: labels, constraints, resumption after every kind of end."""

import csv
import gzip
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.metrics import adjusted_rand_score

import fastmmc
from fastmmc import cli
from fastmmc.cli import resumable, stream
from fastmmc.cli.columns import Columns
from fastmmc.cli.resumable import BadRows
from fastmmc.cli.sources import read_constraints
from fastmmc.core import files
from tests.cli import runner
from tests.damage import damaged

N = 330
KINDS = {
    "wta": fastmmc.WTA,
    "fscl": fastmmc.FSCL,
    "rpcl": fastmmc.RPCL,
    "c-rpcl": fastmmc.CRPCL,
    "o-lcvqe": fastmmc.OLCVQE,
}


@pytest.fixture
def data():
    rng = np.random.default_rng(3)
    y = rng.integers(3, size=N)
    return rng.standard_normal((N, 2)) + 3.0 * np.eye(3)[y][:, :2], y


@pytest.fixture
def rows(data):
    """Lines of text, without a header."""
    return [f"{a!r},{b!r}\n" for a, b in data[0].tolist()]


@pytest.fixture
def table(tmp_path, rows):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n" + "".join(rows))
    return path


@pytest.fixture
def pairs(tmp_path, data):
    """A file of constraints between near and far rows, and their arrays."""
    y = data[1]
    rng = np.random.default_rng(0)
    chosen = [sorted(rng.choice(N, 2, replace=False).tolist()) for _ in range(60)]
    kinds = ["must" if y[i] == y[j] else "cannot" for i, j in chosen]
    path = tmp_path / "pairs.csv"
    lines = [f"{i},{j},{kind}\n" for (i, j), kind in zip(chosen, kinds, strict=True)]
    path.write_text("i,j,kind\n" + "".join(lines))
    is_must = np.array(kinds) == "must"
    return path, np.array(chosen)[is_must], np.array(chosen)[~is_must]


def run(*argv):
    return runner.run("stream", *argv)


def error_of(capsys, *argv):
    capsys.readouterr()  # what earlier runs have told
    assert run(*argv) == 2
    out, err = capsys.readouterr()
    assert err.startswith("fastmmc: error: ") and err.count("\n") == 1
    return err


def learn(model, X, chunk, first=None):
    """Return the labels of an estimator that learns in chunks."""
    labels = []
    for at in range(0, len(X), chunk):
        model.partial_fit(X[at : at + chunk], **(first or {} if at == 0 else {}))
        labels.append(model.labels_)
    return np.concatenate(labels)


def labels_in(text):
    header, *labels = text.splitlines()
    assert header == "label"
    return np.array([int(label) for label in labels])


def feed(monkeypatch, text):
    data = text if isinstance(text, bytes) else text.encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def arrays_of(path):
    """Return what a state holds, but for the names of files."""
    with np.load(path, allow_pickle=False) as file:
        arrays = dict(file)
    header = json.loads(str(arrays.pop("header")))
    for name in ("SOURCE", "--out"):
        del header["extra"]["settings"][name]
    return arrays | {"header": np.array(json.dumps(header))}


def assert_same_state(path, other):
    one, two = arrays_of(path), arrays_of(other)
    assert one.keys() == two.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], two[name], err_msg=name)


# Labels


@pytest.mark.parametrize("method", KINDS)
def test_labels_are_those_of_the_estimator(method, data, table, capsys):
    expected = learn(KINDS[method](4, random_state=0), data[0], 100)
    assert run(table, "--k", 4, "--method", method, "--chunk", 100, "--seed", 0) == 0
    out, err = capsys.readouterr()
    np.testing.assert_array_equal(labels_in(out), expected)
    assert err.startswith(f"{method} on {table}: {N} rows, ")
    assert "of 4 prototypes in use\n" in err and "\ntime " in err
    assert ("forgotten  0 constraints" in err) == (method in ("c-rpcl", "o-lcvqe"))


def test_options_reach_the_estimator(data, table, pairs, capsys):
    path, must, cannot = pairs
    model = fastmmc.CRPCL(5, alpha=0.1, beta=0.01, memory_size=4, random_state=1)
    links = {"must_link": must, "cannot_link": cannot}
    expected = learn(model, data[0], 50, first=links)
    options = ["--alpha", 0.1, "--beta", 0.01, "--memory-size", 4, "--seed", 1, "--chunk", 50]
    assert run(table, "--k", 5, "--constraints", path, *options) == 0
    out, err = capsys.readouterr()
    np.testing.assert_array_equal(labels_in(out), expected)
    assert model.n_forgotten_ > 0 and f"forgotten  {model.n_forgotten_} constraints" in err


def test_methods_are_those_that_learn_in_parts():
    assert list(stream.STREAMING) == sorted(KINDS)
    assert stream.CONSTRAINED == ["c-rpcl", "o-lcvqe"]


def test_every_kind_of_source_gives_the_same(table, tmp_path, rows, monkeypatch, capsys):
    options = ["--k", 4, "--chunk", 64, "--seed", 0]
    assert run(table, *options) == 0
    expected = capsys.readouterr().out
    text = "".join(rows)
    (tmp_path / "rows.tsv").write_text(text.replace(",", "\t"))
    (tmp_path / "rows.log").write_text("\n\na\tb\n" + text.replace(",", "\t"))
    (tmp_path / "bare.csv").write_text("\ufeff" + text.replace("\n", "\r\n\r\n")[:-4])
    for name in ("rows.tsv", "rows.log", "bare.csv"):
        assert run(tmp_path / name, *options) == 0
        assert capsys.readouterr().out == expected, name
    feed(monkeypatch, table.read_text())
    assert run("-", *options) == 0
    out, err = capsys.readouterr()
    assert out == expected and "c-rpcl on standard input: 330 rows" in err
    assert run(table, *options, "--out", tmp_path / "labels.csv") == 0
    assert capsys.readouterr().out == ""
    assert (tmp_path / "labels.csv").read_text() == expected


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_a_named_pipe(table, tmp_path, capsys):
    options = ["--k", 4, "--chunk", 64, "--seed", 0]
    assert run(table, *options) == 0
    expected = capsys.readouterr().out
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(table.read_bytes()))
    writer.start()
    assert run(pipe, *options) == 0
    writer.join()
    assert capsys.readouterr().out == expected


# Constraints


def test_labels_of_a_column(data, rows, tmp_path, capsys):
    X, y = data
    # In the second chunk all of them are known.
    known = np.where((np.arange(N) % 3 == 0) | (np.arange(N) // 100 == 1), y, -1)
    names = {-1: ("", "-1", " ", "NA", "?"), **{i: ("cat",) for i in range(3)}}
    cells = [names[v][i % len(names[v])] + (str(v) if v >= 0 else "") for i, v in enumerate(known)]
    lines = [row.replace(",", f",{cell},") for row, cell in zip(rows, cells, strict=True)]
    path = tmp_path / "labelled.csv"
    path.write_text("a,kind,b\n" + "".join(lines))
    model = fastmmc.OLCVQE(4, random_state=0, semi_supervised=True)
    expected = []
    for at in range(0, N, 100):
        model.partial_fit(X[at : at + 100], known[at : at + 100])
        expected.append(model.labels_)
    options = ["--k", 4, "--method", "o-lcvqe", "--chunk", 100, "--seed", 0]
    for column in ("kind", "1"):
        state = tmp_path / f"{column}.npz"
        assert run(path, *options, "--label-column", column, "--state", state) == 0
        labels = labels_in(capsys.readouterr().out)
        np.testing.assert_array_equal(labels, np.concatenate(expected))
    # Without the labels something else is learned.
    assert not np.array_equal(labels, learn(fastmmc.OLCVQE(4, random_state=0), X, 100))
    names = fastmmc.OLCVQE.load(state).extra_["source"]["classes"]
    assert names == [f"cat{v}" for v in dict.fromkeys(known[known >= 0].tolist())]


def test_kinds_of_constraints(tmp_path):
    def read(text, name="pairs.csv"):
        (tmp_path / name).write_text(text)
        return [pairs.tolist() for pairs in read_constraints(tmp_path / name)]

    assert read("0,1\n2, 3\n") == [[], [[0, 1], [2, 3]]]
    assert read("i,j\n0,1\n") == [[], [[0, 1]]]
    assert read("\ufeffI,J,Kind\n0,1,ML\n\n5,2,Must \n1,2,cl\n3,9,CANNOT\n") == [
        [[0, 1], [5, 2]],
        [[1, 2], [3, 9]],
    ]
    assert read("0\t1\tmust\n", "pairs.tsv") == [[[0, 1]], []]
    assert read("") == [[], []]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0,1,must\n0,2,maybe\n", "line 2: the kind must be one of must, ml, cannot, cl; got 'ma"),
        ("0,1\n0,2,must\n", "line 2 has 3 cells; line 1 has 2"),
        ("0\n", "line 1: expected i,j or i,j,kind; got 1 cell"),
        ("x,1\n", "line 1: expected the number of a row, counted from 0; got 'x'"),
        ("0,1\n-1,2\n", "line 2: expected the number of a row, counted from 0; got '-1'"),
        ("-1,-2\n", "line 1: expected the number of a row, counted from 0; got '-1'"),
        ("0,1.5\n", "line 1: expected the number of a row, counted from 0; got '1.5'"),
        ("i,j\n3,3\n", "line 2 links row 3 to itself"),
        (
            "500,700,must\n700,9000,ml\n1,2,cannot\n9000,500,cl\n",
            "line 4 keeps rows 9000 and 500 apart, but must-links join them",
        ),
    ],
)
def test_faults_of_constraints(text, message, table, tmp_path, capsys):
    path = tmp_path / "pairs.csv"
    path.write_text(text)
    error = error_of(capsys, table, "--k", 3, "--constraints", path)
    assert f"{path}: {message}" in error


def test_constraints_that_wait(table, tmp_path, capsys):
    path = tmp_path / "pairs.csv"
    path.write_text("0,5000\n1,2\n")
    assert run(table, "--k", 3, "--constraints", path) == 0
    assert "\nwaiting    1 constraint, for rows to come\n" in capsys.readouterr().err


# Resumption


@pytest.fixture
def job(table, pairs, tmp_path, capsys):
    """The command in full, with its files; what it gives when nothing happens."""
    path, _, _ = pairs
    options = ["--k", 4, "--chunk", 30, "--seed", 0, "--constraints", path]
    whole = tmp_path / "whole"
    whole.mkdir()
    files = ["--out", whole / "labels.csv", "--state", whole / "state.npz"]
    assert run(table, *options, *files) == 0
    capsys.readouterr()
    out, state = tmp_path / "labels.csv", tmp_path / "state.npz"

    class Job:
        files = ["--constraints", path, "--out", out]
        command = [table, *options, "--out", out, "--state", state]
        n_chunks = -(-N // 30)

        def check(self):
            assert out.read_bytes() == (whole / "labels.csv").read_bytes()
            assert_same_state(state, whole / "state.npz")
            assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]

    Job.out, Job.state, Job.table, Job.pairs = out, state, table, path
    return Job()


class Crash(BaseException):
    pass


def crash_at(monkeypatch, owner, name, count):
    """Make the count-th call of a function the last thing that happens."""
    original = getattr(owner, name)
    calls = []

    def call(*args, **kwargs):
        calls.append(args)
        if len(calls) == count:
            raise Crash
        return original(*args, **kwargs)

    monkeypatch.setattr(owner, name, call)


def test_a_crash_at_any_moment(job, monkeypatch, capsys):
    """Each chunk flushes its labels, then its state; of either is nothing taken for granted."""
    for count in range(1, 2 * job.n_chunks + 1):
        for path in (job.out, job.state):
            path.unlink(missing_ok=True)
        with monkeypatch.context() as patch, pytest.raises(Crash):
            crash_at(patch, os, "fsync", count)
            run(*job.command)
        n_saved = (count - 1) // 2
        assert job.state.exists() == (n_saved > 0)
        if n_saved:
            assert fastmmc.CRPCL.load(job.state).n_seen_ == 30 * n_saved
        assert run(*job.command) == 0
        job.check()


def test_a_crash_between_labels_and_state(job, monkeypatch, capsys):
    with monkeypatch.context() as patch, pytest.raises(Crash):
        crash_at(patch, fastmmc.CRPCL, "save", 3)
        run(*job.command)
    # The labels of the third chunk are there already, and are written once more in their place.
    assert len(labels_in(job.out.read_text())) == 90
    assert run(*job.command) == 0
    assert f"{N} rows ({N - 60} of them now)" in capsys.readouterr().err
    job.check()


def test_crash_after_crash_and_other_chunks(job, monkeypatch):
    for _ in range(4):
        with monkeypatch.context() as patch, pytest.raises(Crash):
            crash_at(patch, fastmmc.CRPCL, "save", 3)
            run(*job.command)
    assert fastmmc.CRPCL.load(job.state).n_seen_ == 240
    # What the state knows may be left out, but for files, and what remains may be cut otherwise.
    assert run(job.table, *job.files, "--state", job.state, "--chunk", 7) == 0
    job.check()


def start(job, code):
    """Run the command in a process that is to be killed, by itself or by us."""
    program = f"import os, signal, sys\nfrom fastmmc import cli\n{code}\nsys.exit(cli.main())"
    argv = [sys.executable, "-c", program, "stream", *map(str, job.command)]
    return subprocess.Popen(argv, stderr=subprocess.PIPE)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL")
@pytest.mark.slow
@pytest.mark.parametrize("count", [7, 8])
def test_killed_by_the_system_at_a_flush(job, tmp_path, count):
    code = (
        "flush, calls = os.fsync, []\n"
        "def fsync(fd):\n"
        "    calls.append(fd)\n"
        f"    if len(calls) == {count}: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    flush(fd)\n"
        "os.fsync = fsync"
    )
    with start(job, code) as process:
        process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert fastmmc.CRPCL.load(job.state).n_seen_ == 90
    assert run(*job.command) == 0
    job.check()


def test_a_file_that_grows(job, rows, capsys):
    for n in (60, 61, 200, N):
        job.table.write_text("a,b\n" + "".join(rows[:n]))
        assert run(*job.command) == 0
        assert len(labels_in(job.out.read_text())) == n
    before = job.out.read_bytes(), job.state.read_bytes()
    assert run(*job.command) == 0
    assert f"{N} rows (0 of them now)" in capsys.readouterr().err
    assert (job.out.read_bytes(), job.state.read_bytes()) == before
    job.check()


@pytest.mark.parametrize("mark", ["\t", ";", ",", "|"])
def test_a_state_of_cells_with_any_separator(mark, tmp_path, capsys):
    path, out = tmp_path / "rows.txt", tmp_path / "labels.csv"
    rows = [f"{i % 3}{mark}{i % 5}\n" for i in range(30)]
    command = [path, "-k", 2, "--state", tmp_path / "state.npz", "--out", out]
    for n in (20, 30):
        path.write_text("".join(rows[:n]))
        assert run(*command) == 0, capsys.readouterr().err
        assert len(out.read_text().splitlines()) == 1 + n


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_last_line_without_a_line_break(job, rows, capsys, end):
    text = "a,b\n" + "".join(rows)
    cut = len("a,b\n" + "".join(rows[:70])) - 1
    job.table.write_text(text[:cut])
    assert run(*job.command) == 0
    assert len(labels_in(job.out.read_text())) == 70
    if end == "":
        # It was no whole line.
        job.table.write_text(text[:cut] + "25" + text[cut:])
        message = error_of(capsys, *job.command)
        assert "line 71 had no line break and was taken for a whole row, but goes on" in message
    else:
        with job.table.open("ab") as file:
            file.write(end.encode())
        assert run(*job.command) == 0
        with job.table.open("ab") as file:
            file.write(text[cut + 1 :].encode())
        assert run(*job.command) == 0
        expected = (job.out.parent / "whole" / "labels.csv").read_bytes()
        assert job.out.read_bytes() == expected


def test_a_line_that_grows_while_it_is_read(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("1,2\n3,4")
    with ExitStack() as stack:
        bad = resumable.BadRows(None, "", stack)
        source = resumable.Source(str(path), bad, stack)
        source.begin(Columns(), None, 1)
        assert source.read(5)[0].n_rows == 2
        with path.open("a") as file:
            file.write("\n5,6")
        assert [values.cells for values in source.read(5)[0].columns] == [["5"], ["6"]]
        with path.open("a") as file:
            file.write("7\n")
        with pytest.raises(ValueError, match="line 3 had no line break"):
            source.read(5)


def test_class_names_are_kept(data, tmp_path, capsys):
    X, y = data
    lines = [f"{a},{b},{'zyx'[v]}\n" for (a, b), v in zip(X.tolist(), y, strict=True)]
    path = tmp_path / "labelled.csv"
    path.write_text("".join(lines))
    command = [path, "--k", 3, "--chunk", 20, "--seed", 0, "--label-column", 2]
    whole = ["--out", tmp_path / "a.csv", "--state", tmp_path / "a.npz"]
    assert run(*command, *whole) == 0
    parts = ["--out", tmp_path / "b.csv", "--state", tmp_path / "b.npz"]
    for n in (41, 50, N):
        path.write_text("".join(lines[:n]))
        assert run(*command, *parts) == 0
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    assert_same_state(tmp_path / "a.npz", tmp_path / "b.npz")


def test_standard_input_goes_on_with_new_rows(rows, data, tmp_path, monkeypatch, capsys):
    command = ["-", "--k", 3, "--seed", 0, "--chunk", 50, "--state", tmp_path / "state.npz"]
    text = ""
    # The header is told from the rows again.
    for start, end in ((0, 110), (110, 111), (111, N)):
        feed(monkeypatch, "a,b\n" + "".join(rows[start:end]))
        assert run(*command) == 0
        text += capsys.readouterr().out
    feed(monkeypatch, "")
    assert run(*command) == 0
    assert capsys.readouterr().out == ""
    expected = learn(fastmmc.CRPCL(3, random_state=0), data[0], 50)
    np.testing.assert_array_equal(labels_in(text), expected)


def test_the_state_is_a_saved_estimator(job, data):
    assert run(*job.command) == 0
    model = fastmmc.CRPCL.load(job.state)
    assert model.n_seen_ == N and model.extra_["settings"]["--seed"] == 0
    assert model.predict(data[0]).shape == (N,)


# Constraints that are added between runs


def test_new_constraints_are_taken(table, rows, data, tmp_path, capsys):
    X, _ = data
    first, later = "0,5,cannot\n3,200,must\n", "250,260,cannot\n1,2,must\n0,300,cannot\n"
    path, state = tmp_path / "pairs.csv", tmp_path / "state.npz"
    path.write_text("i,j,kind\n" + first)
    table.write_text("a,b\n" + "".join(rows[:100]))
    command = [table, "--k", 3, "--seed", 0, "--chunk", 50, "--constraints", path]
    command += ["--state", state, "--out", tmp_path / "labels.csv"]
    assert run(*command) == 0
    table.write_text("a,b\n" + "".join(rows))
    path.write_text("i,j,kind\n" + first + later)
    capsys.readouterr()
    assert run(*command) == 0
    assert "\nlate       1 constraint, given after both their rows\n" in capsys.readouterr().err
    model = fastmmc.CRPCL(3, random_state=0)
    model.partial_fit(X[:50], cannot_link=[(0, 5)], must_link=[(3, 200)]).partial_fit(X[50:100])
    new = {"cannot_link": [(250, 260), (0, 300)], "must_link": [(1, 2)]}
    for at in range(100, N, 50):
        model.partial_fit(X[at : at + 50], **(new if at == 100 else {}))
    saved = fastmmc.CRPCL.load(state)
    np.testing.assert_array_equal(saved.cluster_centers_, model.cluster_centers_)
    assert saved.n_late_ == model.n_late_ == 1
    # Once more: nothing is new.
    assert run(*command) == 0
    assert fastmmc.CRPCL.load(state).n_late_ == 1


def test_new_constraints_of_a_run_that_was_killed(job, pairs, monkeypatch):
    """Those that were read, but not learned from yet, are taken the next time."""
    path, _, _ = pairs
    content = path.read_text()
    head = "".join(content.splitlines(keepends=True)[:20])
    path.write_text(head)
    for name in ("save", "partial_fit"):
        with monkeypatch.context() as patch, pytest.raises(Crash):
            crash_at(patch, fastmmc.CRPCL, name, 1)
            run(*job.command)
    path.write_text(content)
    assert run(*job.command) == 0
    job.check()


def test_constraints_that_were_changed(table, rows, tmp_path, capsys):
    path, state = tmp_path / "pairs.csv", tmp_path / "state.npz"
    table.write_text("a,b\n" + "".join(rows[:100]))
    command = [table, "--k", 3, "--constraints", path, "--state", state]
    path.write_text("0,5\n10,25")
    assert run(*command) == 0
    before = state.read_bytes()
    table.write_text("a,b\n" + "".join(rows))
    for text, message in [
        ("0,6\n10,25\n", "is not the file of constraints that was read, with new lines"),
        ("0,5\n", "is not the file of constraints that was read"),
        ("0,5\n10,250\n", "its last line had no line break when it was read, and goes on now"),
        ("0,5\n10,25\n10,x\n", "line 3: expected the number of a row"),
    ]:
        path.write_text(text)
        assert f"{path}" in (error := error_of(capsys, *command)) and message in error
        assert state.read_bytes() == before
    path.unlink()
    assert f"{path}: No such file" in error_of(capsys, *command)
    path.write_text("0,5\n10,25\n200,300\n")
    assert run(*command) == 0
    assert fastmmc.CRPCL.load(state).extra_["constraints"]["n_cannot"] == 3


# Files that the command line names


@pytest.mark.parametrize("flag", ["--out", "--skip-bad-rows", "--constraints"])
def test_a_state_names_no_files(job, tmp_path, capsys, flag):
    """Whoever sends a state does not choose what is written over."""
    command = [*job.command, "--skip-bad-rows", tmp_path / "bad.csv"]
    assert run(*command) == 0
    victim = tmp_path / "victim.csv"
    victim.write_text("0,1\n" * 1000)
    before = victim.read_bytes()

    def change(arrays, header):
        header["extra"]["settings"][flag] = str(victim)

    damaged(job.state, change).replace(job.state)
    assert f"{flag} is missing: {job.state} is the state of a run with {flag} {victim}" in (
        error_of(capsys, *without(command, flag))
    )
    assert f"contradicts {job.state}, the state of a run with {flag} {victim}" in (
        error_of(capsys, *command)
    )
    assert victim.read_bytes() == before


def without(command, flag):
    at = command.index(flag)
    return command[:at] + command[at + 2 :]


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="no links")
def test_links_stay(job, tmp_path, capsys):
    behind = tmp_path / "behind"
    behind.mkdir()
    for path in (job.out, job.state):
        path.symlink_to(behind / path.name)
    for _ in range(2):
        assert run(*job.command) == 0
        assert job.out.is_symlink() and job.state.is_symlink()
    job.check()
    assert {path.name for path in behind.iterdir()} == {job.out.name, job.state.name}


# Two runs at a time


def test_a_state_is_for_one_run(job, tmp_path, capsys):
    with files.locked(job.state):
        error = error_of(capsys, *job.command)
        assert error == (
            f"fastmmc: error: {job.state} is in use by another run of fastmmc; wait for its "
            "end, or give another --state\n"
        )
        assert not job.out.exists() and not job.state.exists()
        other = tmp_path / "other.npz"
        assert run(job.table, "--k", 3, "--state", other) == 0
    assert run(*job.command) == 0
    job.check()
    with files.locked(job.state):
        before = job.out.read_bytes(), job.state.read_bytes()
        assert "in use by another run" in error_of(capsys, *job.command)
        assert (job.out.read_bytes(), job.state.read_bytes()) == before


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL")
@pytest.mark.parametrize("linked", [pytest.param(False, marks=pytest.mark.slow), True])
def test_two_processes_and_a_kill(job, tmp_path, capsys, linked):
    """Of two runs on one state, or on one file of labels, one ends at once.

    The locks of a killed one are lifted, and what it had begun is ended by the next.
    """
    out = job.out
    if linked:
        out = tmp_path / "link.csv"
        out.symlink_to(job.out)
    # The pause keeps it running until it is killed, wherever it is then.
    code = "import time\nflush = os.fsync\nos.fsync = lambda fd: (flush(fd), time.sleep(0.3))"
    with start(job, code) as process:
        end = time.monotonic() + 60
        while not job.state.exists() and time.monotonic() < end:
            time.sleep(0.005)
        assert "in use by another run" in error_of(capsys, *job.command)
        for option in ("--out", "--skip-bad-rows"):
            other = [job.table, "--k", 3, "--state", tmp_path / "other.npz", option, out]
            error = error_of(capsys, *other)
            assert f"{out} is in use by another run of fastmmc; wait" in error
            assert f"give another {option}\n" in error
        process.kill()
        process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert 30 <= fastmmc.CRPCL.load(job.state).n_seen_ < N
    assert job.state.with_name(f".{job.state.name}.lock").exists()
    assert run(*job.command) == 0
    job.check()


def test_what_a_killed_run_left_is_removed(job):
    left = [path.with_name(f".{path.name}.4711") for path in (job.state, job.out)]
    others = [job.state.with_name(name) for name in (".state.npz.old", ".other.npz.4711")]
    for path in (*left, *others):
        path.touch()
    assert run(*job.command) == 0
    for path in others:
        path.unlink()
    job.check()


def test_a_lock_that_is_taken_over(tmp_path):
    """The file of a lock is gone when it is lifted; who opened it before must not hold that one."""
    state = tmp_path / "state.npz"
    path = state.with_name(".state.npz.lock")
    if files.fcntl is None:
        pytest.skip("locks that hold a file in its place")
    waiting = path.open("ab")
    with files.locked(state):
        path.unlink()
        path.touch()
        with files.locked(state):
            assert path.exists()
    waiting.close()
    assert list(tmp_path.iterdir()) == []


# Rows that are left out


@pytest.fixture
def bad(job, rows, tmp_path):
    """A job with bad rows, the file that tells of them, and what it should hold."""
    faults = {
        0: ("x,1", "column 'a': expected a finite number, got 'x'"),
        5: ("1,nan", "column 'b': expected a finite number, got 'nan'"),
        40: ("1,2,3", "has 3 cells"),
        41: ('1,"2', "cannot be read as a row: "),
        95: ("1,1e200", "has a value beyond 1e+150, whose square overflows"),
        329: (b"1,\xff", "is not text in UTF-8"),
    }
    lines, told, line = [b"a,b\n"], [], 2
    for i, row in enumerate(rows):
        if i in faults:
            text, problem = faults[i]
            text = text if isinstance(text, bytes) else text.encode()
            lines.append(text + b"\n")
            told.append((line, problem, text.decode(errors="replace")))
            line += 1
        lines.append(row.encode())
        line += 1
    job.table.write_bytes(b"".join(lines))
    path = tmp_path / "bad.csv"
    job.command = [*job.command, "--skip-bad-rows", path]

    def check():
        assert job.out.read_bytes() == (job.out.parent / "whole" / "labels.csv").read_bytes()
        found = pd.read_csv(path)
        assert list(found) == ["line", "problem", "row"] and len(found) == len(told)
        for (line, problem, text), row in zip(told, found.itertuples(), strict=True):
            assert (row.line, row.row) == (line, text)
            assert row.problem.startswith(f"line {line}") and problem in row.problem

    return job, path, check


def test_bad_rows_are_as_if_they_were_not_there(bad, capsys):
    job, path, check = bad
    assert run(*job.command) == 0
    assert f"\nskipped    6 rows, see {path}\n" in capsys.readouterr().err
    check()
    assert run(*job.command) == 0
    assert "skipped    0 rows" in capsys.readouterr().err
    check()


def test_bad_rows_and_a_crash_at_any_moment(bad, monkeypatch):
    job, path, check = bad
    for count in range(1, 3 * job.n_chunks + 1, 2):
        for file in (job.out, job.state, path):
            file.unlink(missing_ok=True)
        with monkeypatch.context() as patch, pytest.raises(Crash):
            crash_at(patch, os, "fsync", count)
            run(*job.command)
        assert run(*job.command) == 0
        check()


def test_many_bad_rows_are_not_held_in_memory(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(resumable, "MOST_LINES", 3)
    most = []
    write = BadRows.write
    monkeypatch.setattr(
        BadRows, "write", lambda self, lines: (most.append(len(lines)), write(self, lines))
    )
    path, skipped = tmp_path / "t.csv", tmp_path / "bad.csv"
    path.write_text("1,2\n" * 11 + "x,y\n" * 10)
    assert run(path, "--k", 1, "--skip-bad-rows", skipped) == 0
    assert capsys.readouterr().out == "label\n" + "0\n" * 11
    assert max(most) == 3 and len(skipped.read_text().splitlines()) == 11


def test_a_stream_does_not_advise_to_learn_from_classes(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("a,town\n" + "1,Ulm\n2,Bonn\n" * 20)
    assert run(path, "--k", 2) == 0
    told = capsys.readouterr().err
    assert "to leave out categories: --drop town" in told and "--label-column" not in told


def test_what_is_wrong_with_a_row_is_told_whole_and_without_advice(tmp_path):
    path, skipped = tmp_path / "t.csv", tmp_path / "bad.csv"
    path.write_text("a,b\n1,2\n3,4\n5,no; none\n")
    assert run(path, "--k", 2, "--skip-bad-rows", skipped) == 0
    ((_, problem, row),) = list(csv.reader(skipped.read_text().splitlines()))[1:]
    assert problem == "line 4, column 'b': expected a finite number, got 'no; none'"
    assert row == "5,no; none"


@pytest.mark.parametrize("chunk", [2, 1000])
def test_blank_lines_between_rows_are_told(chunk, tmp_path, capsys):
    path, bad = tmp_path / "t.csv", tmp_path / "bad.csv"
    path.write_text("\na\n\n1\n\n2\nx\n\n9\n10\n\n")
    command = [path, "--k", 2, "--chunk", chunk, "--skip-bad-rows", bad]
    labels, told = labels_of_run(capsys, *command)
    assert labels.size == 4
    assert "\nblank      2 lines between the rows, without labels\n" in told
    path.write_text("a\n1\n2\n9\n\n\n")
    assert "\nblank" not in labels_of_run(capsys, path, "--k", 2)[1]


def test_bad_rows_only(tmp_path, capsys):
    path, skipped = tmp_path / "t.csv", tmp_path / "bad.csv"
    path.write_text("a,b\n1\n")
    message = error_of(capsys, path, "--k", 1, "--skip-bad-rows", skipped)
    assert (
        f"the first 1 prototypes need as many rows; got 0, and 1 bad ones in {skipped}" in message
    )
    assert len(skipped.read_text().splitlines()) == 2


def test_without_a_place_for_bad_rows_they_are_errors(bad, capsys):
    job, path, _ = bad
    assert "line 2, column 'a': expected" in error_of(capsys, *job.command[:-2])
    assert not path.exists()


# Ends before the end


def test_interrupt(job, monkeypatch, capsys):
    def interrupt_at(count, command):
        with monkeypatch.context() as patch:
            calls = []
            learn = stream._Run._learn

            def call(*args):
                calls.append(args)
                if len(calls) == count:
                    raise KeyboardInterrupt
                learn(*args)

            patch.setattr(stream._Run, "_learn", call)
            assert run(*command) == 130
        return capsys.readouterr().err

    assert interrupt_at(1, job.command) == "fastmmc: error: interrupted before there was a result\n"
    message = interrupt_at(3, job.command)
    assert message == (
        "fastmmc: error: interrupted after 60 rows; the same command goes on from there\n"
    )
    assert run(*job.command) == 0
    job.check()
    capsys.readouterr()
    stateless = [job.table, "--k", 3, "--chunk", 30]
    assert "after 30 rows; with --state the same" in interrupt_at(2, stateless)
    feed(monkeypatch, job.table.read_text())
    piped = ["-", "--k", 3, "--chunk", 30, "--state", job.state.with_name("piped.npz")]
    assert "so feed it from row 30 (from 0) on" in interrupt_at(2, piped)


def test_a_full_disk(job, monkeypatch, capsys):
    def full(fd):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        assert "No space left on device" in error_of(capsys, *job.command)
    assert run(*job.command) == 0
    job.check()


@pytest.mark.parametrize("state", [True, False])
def test_a_full_disk_leaves_whole_chunks(job, full_disk, capsys, state):
    """What was there before stays until a chunk is written; later the file is cut back to one."""
    command = job.command if state else without(job.command, "--state")
    job.out.write_text("labels of another run")
    with full_disk(40):
        assert f"error: {job.out}: File too large" in error_of(capsys, *command)
    assert job.out.read_text() == "labels of another run"
    command = [*command, "--constraints", job.pairs]
    with full_disk(100):
        found = error_of(capsys, *without(command, "--state") if state else command)
    assert f"error: {job.out}: File too large" in found
    assert len(labels_in(job.out.read_text())) == 30
    assert sorted(job.out.parent.glob(".*")) == []


@pytest.fixture
def orders(tmp_path):
    """A table of all kinds of columns, its path, and the clusters that were made."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=240)
    frame = pd.DataFrame({"order id": 7000 + rng.permutation(240)})
    frame["town"] = np.where(rng.random(240) < 0.9, np.array(["Ulm", "Bonn", "Köln"])[y], "Ulm")
    days = pd.date_range("2024-01-01", periods=240).strftime("%Y-%m-%d")
    frame["day"] = rng.permutation(days)
    frame["sum"] = np.round(20.0 * y + rng.normal(size=240), 2)
    frame["weight"] = np.round(10.0 * (y == 1) + rng.normal(size=240), 2)
    frame.loc[::7, "weight"] = np.nan
    path = tmp_path / "orders.csv"
    frame.to_csv(path, index=False)
    return frame, path, y


def labels_of_run(capsys, *command):
    assert run(*command) == 0
    out, told = capsys.readouterr()
    return np.array(labels_in(out)), told


def test_columns_of_any_kind_are_learned_as_by_the_estimator(orders, tmp_path, capsys):
    frame, path, y = orders
    state = tmp_path / "state.npz"
    command = [path, "--k", 3, "--chunk", 60]
    labels, told = labels_of_run(capsys, *command)
    assert adjusted_rand_score(y, labels) > 0.8
    for said in (
        "'order id': left out, as it holds ids",
        "'town': 3 categories",
        "'day': dates, as a number",
        "'weight': numbers, scaled; 9 of 60 missing: as in similar rows, ",
    ):
        assert told.count(f"orders.csv, first rows: column {said}") == 1
    model, found = fastmmc.CRPCL(3, random_state=0), []
    with pytest.warns(UserWarning, match="'order id' is left out"):
        model.partial_fit(frame[:60])
    found += model.labels_.tolist()
    for begin in range(60, 240, 60):
        found += model.partial_fit(frame[begin : begin + 60]).labels_.tolist()
    np.testing.assert_array_equal(labels, found)
    # A run that goes on, and what is predicted from its state.
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:121]))
    command += ["--state", state, "--out", tmp_path / "labels.csv"]
    assert run(*command) == 0
    path.write_text("".join(lines))
    assert run(*command) == 0
    told = capsys.readouterr().err
    assert told.count("'town': 3 categories") == 1 and "240 rows (120 of them now)" in told
    np.testing.assert_array_equal(labels_in((tmp_path / "labels.csv").read_text()), labels)
    loaded = fastmmc.load(state)
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))
    frame[["weight", "sum", "town", "day"]].to_csv(path, index=False)
    assert cli.main(["predict", str(state), str(path)]) == 0
    np.testing.assert_array_equal(labels_in(capsys.readouterr().out), model.predict(frame))


def test_a_state_without_a_coding_goes_on(job, rows, capsys):
    whole = job.table.read_text()
    job.table.write_text("a,b\n" + "".join(rows[:90]))
    assert run(*job.command) == 0
    model = fastmmc.load(job.state)
    extra, model.coding_ = model.extra_, None
    del extra["columns"]  # as earlier versions saved it
    model.save(job.state, extra=extra)
    job.table.write_text(whole.replace(rows[100], "1,\n", 1))
    assert "line 102, column 'b': expected a finite number, got ''" in error_of(
        capsys, *job.command
    )
    job.table.write_text(whole)
    assert run(*job.command) == 0
    assert job.out.read_bytes() == (job.out.parent / "whole" / "labels.csv").read_bytes()


def test_cells_that_are_not_what_a_column_holds(orders, tmp_path, capsys):
    frame, path, _ = orders
    frame = frame.astype(object)
    frame.loc[3, "sum"], frame.loc[130, "day"], frame.loc[131, "sum"] = "much", "soon", 1e200
    frame.loc[140, "town"] = "Rom"
    frame.to_csv(path, index=False)
    command = [path, "--k", 3, "--chunk", 60]
    for row, column, mended, fault in (
        (3, "sum", 1.0, "line 5, column 'sum': expected a finite number, got 'much'; leave the "
         "column out by --drop sum, or rows by --skip-bad-rows"),
        (130, "day", "2024-03-01", "line 132, column 'day': expected a date, got 'soon'"),
        (131, "sum", 1e200, "line 133 has a value beyond 1e+150"),
    ):  # fmt: skip
        assert run(*command) == 2
        assert f"orders.csv: {fault}" in capsys.readouterr().err
        frame.loc[row, column] = mended
        frame.to_csv(path, index=False)
    bad = tmp_path / "bad.csv"
    frame.loc[140, "sum"] = np.nan
    frame.loc[131, "sum"] = 1.0
    frame.to_csv(path, index=False)
    told = labels_of_run(capsys, *command)[1]
    assert "\nmissing    36 cells, filled as in similar rows\n" in told
    assert "\nnew        1 cell of categories, read as none\n" in told
    frame.loc[131, "sum"] = 1e200
    frame.to_csv(path, index=False)
    labels, told = labels_of_run(capsys, *command, "--skip-bad-rows", bad)
    assert len(labels) == 240 - 35 - 1 and "'sum' to 'weight' (2): numbers, scaled\n" in told
    found = pd.read_csv(bad)
    missing = 2 + np.flatnonzero(frame.weight.isna())
    np.testing.assert_array_equal(found.line, np.unique([*missing, 133]))


def test_numbers_as_people_write_them(tmp_path, capsys):
    path = tmp_path / "t.csv"
    numbers = [(903, 1.58), (2131, 2.59), (12079, 2.31), (905, 1.61), (2140, 2.5), (12100, 2.3)]
    plain = "".join(f"{a},{b}\n" for a, b in numbers)
    german = "".join(f"{a:,};{b}\n".replace(".", "_").replace(",", ".") for a, b in numbers)
    told = {}
    for name, text in (("plain", plain), ("german", german.replace("_", ","))):
        path.write_text(text)
        told[name] = labels_of_run(capsys, path, "--k", 3, "--chunk", 3)
    np.testing.assert_array_equal(told["plain"][0], told["german"][0])
    assert "column '1': numbers, with decimal commas" in told["german"][1]
    path.write_text("".join(f"{1 + a / 1000:.3f};{b * 10:.0f}\n" for a, b in numbers))
    told = labels_of_run(capsys, path, "--k", 3)[1]
    assert "as 1903" in told and "the other way: --decimal .\n" in told
    told = labels_of_run(capsys, path, "--k", 3, "--decimal", ".")[1]
    assert "as 1.903" in told and "the other way" not in told
    assert run(path, "--k", 3, "--decimal", "x") == 2
    assert "--decimal: expected a comma or a point; got 'x'" in capsys.readouterr().err


def test_the_decimal_mark_of_the_first_rows_is_that_of_all(tmp_path, capsys):
    path, rng = tmp_path / "t.csv", np.random.default_rng(2)
    rows = [f"{x:.3f};{'ab'[i % 2]}" for i, x in enumerate(1.5 + rng.random(59))]
    rows = ["x;c", *rows[:20], "1.25;a", *rows[20:], "1,58;a"]
    path.write_text("\n".join(rows))
    for chunk in (21, 60):
        assert run(path, "--k", 2, "--chunk", chunk) == 2
        fault = "line 62, column 'x': expected a finite number, got '1,58'"
        assert fault in capsys.readouterr().err


@pytest.mark.parametrize("others", ["color", "color,day", "day"])
def test_ids_and_constants_beside_other_kinds_are_left_out(others, tmp_path, capsys):
    path = tmp_path / "t.csv"
    cells = {"color": "ab", "day": ["2024-01-01", "2024-05-06", "2024-07-08"]}
    kinds = [cells[name] for name in others.split(",")]
    rows = [f"{i + 1},7,{','.join(one[i % len(one)] for one in kinds)}" for i in range(30)]
    path.write_text("\n".join([f"id,k,{others}", *rows, f"90,8,{rows[0][4:]}"]))
    told = labels_of_run(capsys, path, "--k", 2, "--chunk", 30)[1]
    assert "'id': left out, as it holds ids" in told and "'k': left out, as it is 7 in" in told


def test_a_whole_first_chunk_tells_what_columns_hold(tmp_path, capsys):
    path, bad = tmp_path / "t.csv", tmp_path / "bad.csv"
    rows = [f",{'ab'[i % 2]}" for i in range(97)] + ["1.5,a", "2.5,b", "1,2,3", "3.5,a"]
    rows += [f"{i % 9}.5,{'ab'[i % 2]}" for i in range(200)]
    path.write_text("\n".join(["x,c", *rows]))
    labels, told = labels_of_run(capsys, path, "--k", 2, "--chunk", 100, "--skip-bad-rows", bad)
    assert "column 'c': 2 categories\n" in told and len(labels) == 203
    assert pd.read_csv(bad).line.tolist() == [*range(2, 99), 101]


def test_states_of_numbers_alone_take_what_they_did(table, tmp_path, capsys):
    state, again = tmp_path / "state.npz", tmp_path / "again.npz"
    assert run(table, "--k", 3, "--state", state) == 0
    model, frame = fastmmc.load(state), pd.read_csv(table)
    expected = model.predict(frame)
    for X in (frame.to_numpy(), csr_array(frame.to_numpy()), frame[frame.columns[::-1]]):
        np.testing.assert_array_equal(model.predict(X), expected)
    for wrong, problem in ((np.full((2, 2), np.nan), "NaN"), (np.zeros((0, 2)), "0 sample")):
        for call in (model.predict, model.partial_fit):
            with pytest.raises(ValueError, match=problem):
                call(wrong)
    # Names are found by the coding where nothing else tells them.
    model.save(again)
    frame[frame.columns[::-1]].to_csv(table, index=False)
    capsys.readouterr()
    assert cli.main(["predict", str(again), str(table)]) == 0
    np.testing.assert_array_equal(labels_in(capsys.readouterr().out), expected)


def test_dates_of_an_unsure_order_are_told(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("day,x\n05/03/2024,1\n06/04/2024,2\n07/05/2024,9\n13/11/2024,7\n")
    assert run(path, "--k", 2, "--chunk", 3) == 2
    told = capsys.readouterr().err
    assert (
        "'day': dates, as a number and day of the week, '05/03/2024' read as 2024-05-03\n" in told
    )
    assert "expected a date as %m/%d/%Y, got '13/11/2024'" in told


def test_rows_that_miss_numbers_are_bad_if_these_have_a_place(tmp_path, capsys):
    table, bad = tmp_path / "t.csv", tmp_path / "bad.csv"
    table.write_text("x,y\n1,\n2,7\n3,8\n")
    assert run(table, "--k", 2, "--skip-bad-rows", bad) == 0
    assert "column 'y': expected a finite number" in bad.read_text()


def test_columns_of_ids_are_told_once(tmp_path, capsys):
    table = tmp_path / "ids.csv"
    rows = [f"{100 + i},{i % 7},{i * i}" for i in range(60)]
    table.write_text("\n".join(["customer id,x,y", *rows]))
    assert run(table, "--k", 2, "--chunk", 20) == 0
    told = capsys.readouterr().err
    assert told.count("note") == 1 and "to leave them out: --drop 'customer id'" in told
    for choice in (["--drop", "customer id"], ["--columns", "customer id,x"]):
        assert run(table, "--k", 2, *choice) == 0
        assert "note" not in capsys.readouterr().err
    table.write_text("\n".join(rows))
    assert run(table, "--k", 2) == 0
    assert "to leave them out: --drop 0\n" in capsys.readouterr().err


def test_a_bad_row_is_mended_and_the_run_goes_on(job, rows, capsys):
    whole = job.table.read_text()
    job.table.write_text("a,b\n" + "".join(rows[:100]) + "1,x\n" + "".join(rows[101:]))
    message = error_of(capsys, *job.command)
    assert f"{job.table}: line 102, column 'b': expected a finite number, got 'x'" in message
    assert len(labels_in(job.out.read_text())) == 90
    assert error_of(capsys, *job.command) == message
    job.table.write_text(whole)
    assert run(*job.command) == 0
    job.check()


def test_closed_output(table, capsys, monkeypatch):
    readable, writable = os.pipe()
    os.close(readable)
    with open(writable, "w") as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        assert run(table, "--k", 3) == 1
    assert capsys.readouterr().err == ""


# Faults


@pytest.mark.parametrize("first", ["nan,nan", ",", " , ", "inf,-inf", "nan,", "NA,?"])
def test_missing_values_are_no_header(first, tmp_path, monkeypatch, capsys):
    path = tmp_path / "t.csv"
    path.write_text(f"{first}\n1,2\n3,4\n5,6\n")
    if "inf" in first:
        message = "line 1, column 0 (from 0): expected a finite number, got 'inf'"
        assert message in error_of(capsys, path, "--k", 2)
    else:
        assert run(path, "--k", 2) == 0
        out, told = capsys.readouterr()
        assert len(out.splitlines()) == 5 and "1 of 4 missing: as in similar rows" in told
    assert cli.main(["cluster", str(path), "--k", "2", "--seed", "0"]) == 0
    out, told = capsys.readouterr()
    assert len(out.splitlines()) == 5 and "1 of 4 missing: as in similar rows" in told
    pairs = tmp_path / "pairs.csv"
    pairs.write_text(f"{first}\n0,1\n")
    path.write_text("a,nan\n1,2\n3,4\n5,6\n")
    assert run(path, "--k", 2) == 0
    message = error_of(capsys, path, "--k", 2, "--constraints", pairs)
    assert f"{pairs}: line 1: expected the number of a row" in message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("1,2\n\n3,4\n5,1e200\n", "line 4 has a value beyond 1e+150"),
        ("\n\n", "the file is empty"),
        ("a,b\n", "there is a header and nothing below it"),
        ("a,b\n1,2\n3\n", "line 3 has 1 cell; line 1 has 2"),
        ("1,2\n3,4\n5,x\n", "line 3, column 1 (from 0): expected a finite number, got 'x'"),
        ("1,2\n\n3,4\n5,inf\n", "line 4, column 1 (from 0): expected a finite number, got 'inf'"),
        ("1,2\n3,4\n", "the first 3 prototypes need as many rows; got 2"),
        ('1,2\n3,"4\n5"\n', "line 2 cannot be read as a row"),
        (b"1,2\n\xff,3\n", "line 2 is not text in UTF-8"),
        ("1" * 200_000, "no column holds numbers, dates or categories: '0' is left out"),
        ("1,2\r3,4\r5,6\r", "line 1 cannot be read as a row: new-line character"),
    ],
)
def test_faults_of_a_table(text, message, tmp_path, monkeypatch, capsys):
    path, out = tmp_path / "t.csv", tmp_path / "labels.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    out.write_text("labels of another run")
    assert f"{path}: {message}" in error_of(capsys, path, "--k", 3, "--out", out)
    assert out.read_text() == "labels of another run"
    feed(monkeypatch, text)
    assert f"standard input: {message}" in error_of(capsys, "-", "--k", 3)


ARRAY, TEXT = io.BytesIO(), "a,b\n1,2\n3,4\n5,6\n"
np.save(ARRAY, np.eye(3))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (ARRAY.getvalue(), "not a text file but a NumPy array"),
        (b"PK\x03\x04\x14\x00\n1,2\n", "not a text file but a zip archive, as .xlsx is; convert"),
        (gzip.compress(TEXT.encode()), "not a text file but a gzip archive"),
        (TEXT.encode("utf-16"), "not a text file in UTF-8: there are bytes of 0, as in UTF-16"),
        (TEXT.encode("utf-16-le"), "not a text file in UTF-8: there are bytes of 0, as in UTF-16"),
        (TEXT.encode("utf-32-be"), "not a text file in UTF-8: there are bytes of 0, as in UTF-16"),
        ("\ufeffé\n".encode("utf-16-le")[:4] + b"\n1,2\n", "not a text file in UTF-8"),
        (b"\xff,1\n\xfe,2\n", "none of 2 lines is a row"),
    ],
    ids=["npy", "zip", "gzip", "utf-16", "utf-16-le", "utf-32-be", "mark of utf-16", "latin-1"],
)
def test_files_that_are_no_text_are_refused_whole(content, message, tmp_path, monkeypatch, capsys):
    path, bad = tmp_path / "t.csv", tmp_path / "bad.csv"
    path.write_bytes(content)
    options = ["--k", 2, "--skip-bad-rows", bad]
    assert f"{path}: {message}" in error_of(capsys, path, *options)
    feed(monkeypatch, content)
    assert f"standard input: {message}" in error_of(capsys, "-", *options)
    assert not bad.exists()


def test_a_file_without_line_breaks_is_not_read_whole(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(resumable, "MOST_BYTES", 100)
    (tmp_path / "t.csv").write_text("1,2\n" + "0" * 200)
    message = error_of(capsys, tmp_path / "t.csv", "--k", 1)
    assert "line 2 is longer than 100 bytes" in message


def test_the_index_of_a_frame_is_left_out_also_when_resumed(table, tmp_path, capsys, data):
    X, _ = data
    indexed, state = tmp_path / "indexed.csv", tmp_path / "state.npz"
    lines = [f"{i},{a!r},{b!r}\n" for i, (a, b) in enumerate(X.tolist())]
    indexed.write_text(",a,b\n" + "".join(lines[:200]))
    given = ["--k", 3, "--seed", 0, "--chunk", 100]
    assert run(indexed, *given, "--out", tmp_path / "a.csv", "--state", state) == 0
    assert "note: " in capsys.readouterr().err
    with indexed.open("a") as file:
        file.writelines(lines[200:])
    assert run(indexed, "--out", tmp_path / "a.csv", "--state", state) == 0
    assert run(table, *given, "--out", tmp_path / "b.csv") == 0
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "--k is missing: stream needs the number of prototypes"),
        (["--k", 0], "--k must be at least 1; got 0"),
        (["--k", 3, "--chunk", 0], "--chunk must be at least 1; got 0"),
        (["--k", 3, "--chunk", 2], "--chunk must be at least --k, 3"),
        (["--k", 3, "--method", "lcvqe"], "fastmmc stream has no method lcvqe; it has c-rpcl"),
        (["--k", 3, "--method", "wta", "--beta", 0.1], "wta has no --beta"),
        (["--k", 3, "--method", "rpcl", "--memory-size", 9], "rpcl has no --memory-size"),
        (["--k", 3, "--method", "rpcl", "--constraints", "p.csv"], "rpcl has no --constraints"),
        (["--k", 3, "--method", "fscl", "--label-column", 1], "fscl has no --label-column"),
        (["--k", 3, "--alpha", 2], "alpha must be"),
        (["--k", 3, "--seed", "x"], "argument --seed: expected a whole number; got 'x'"),
        (["--k", 3, "--seed", -1], "argument --seed: a seed must not be negative; got -1"),
        (["--k", 3, "--memory-size", 0], "--memory-size must be at least 1; got 0"),
        (["--k", 3, "--label-column", "c"], "no column 'c' in the header; it has a, b"),
        (["--k", 3, "--label-column", 2], "got 2, but the columns are 0 to 1"),
        (["--k", 3, "--constraints", "none.csv"], "none.csv: No such file"),
        (["--k", 3, "--out", "none/labels.csv"], "there is no folder"),
        (["--k", 3, "--out", "."], "is a folder"),
        (["--k", 3, "--state", "none/state.npz"], "there is no folder"),
        (["--k", 3, "--out", "rows.csv"], "is a file to be read"),
        (["--k", 3, "--out", "x", "--state", "x"], "--out and --state are the same file"),
        (["--k", 3, "--out", "labels.npy"], "--out must end in one of .csv, .txt, .tsv"),
    ],
)
def test_wrong_arguments(table, monkeypatch, capsys, options, message):
    monkeypatch.chdir(table.parent)
    before = sorted(table.parent.iterdir())
    assert message in error_of(capsys, table, *options)
    assert sorted(table.parent.iterdir()) == before


def test_sources_that_are_none(tmp_path, monkeypatch, capsys):
    assert "none.csv: No such file" in error_of(capsys, tmp_path / "none.csv", "--k", 2)
    assert "is a folder; give a file" in error_of(capsys, tmp_path, "--k", 2)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    message = error_of(capsys, "-", "--k", 2, "--state", tmp_path / "state.npz")
    assert "cannot be written: permission denied" in message


def test_contradictions_to_the_state(job, tmp_path, capsys):
    table, state = job.table, job.state
    assert run(*job.command) == 0
    before = job.out.read_bytes(), state.read_bytes()
    other = tmp_path / "other.csv"
    other.write_bytes(table.read_bytes())
    for given, told in [
        (["--k", 5], "--k 5 contradicts {state}, the state of a run with --k 4"),
        (["--method", "rpcl"], "--method rpcl contradicts {state}, the state of a run with --me"),
        (["--alpha", 0.1], "--alpha 0.1 contradicts {state}, the state of a run with --alpha 0.05"),
        (["--seed", 7], "--seed 7 contradicts {state}, the state of a run with --seed 0"),
        (["--memory-size", 7], "the state of a run with --memory-size 10000"),
        (["--label-column", "b"], "the state of a run with no --label-column"),
        (["--constraints", other], "the state of a run with --constraints"),
        (["--out", other], "the state of a run with --out"),
        (
            ["--columns", "a"],
            "--columns a contradicts {state}, the state of a run with no --columns",
        ),
        (["--skip-bad-rows", other], "the state of a run with no --skip-bad-rows"),
    ]:
        message = error_of(capsys, table, "--state", state, *given)
        assert told.format(state=state) in message
    message = error_of(capsys, other, "--state", state)
    assert f"SOURCE {other} contradicts {state}, the state of a run with SOURCE {table}" in message
    assert (job.out.read_bytes(), state.read_bytes()) == before
    piped = tmp_path / "piped.npz"
    assert run(table, "--k", 3, "--method", "wta", "--state", piped) == 0
    capsys.readouterr()
    wrong = error_of(capsys, table, "--state", piped, "--out", tmp_path / "new.csv")
    assert "the state of a run with standard output" in wrong
    assert "of a run with no --beta" in error_of(capsys, table, "--state", piped, "--beta", 0.1)


def test_files_that_changed_meanwhile(job, capsys):
    assert run(*job.command) == 0
    labels, rows = job.out.read_bytes(), job.table.read_text()
    job.table.write_text(rows[:50])
    assert f"bytes of it were read, but it has {50} now" in error_of(capsys, *job.command)
    job.table.write_text(rows[:-2] + "77\n1,2\n")
    message = error_of(capsys, *job.command)
    assert f"{job.table}: line {N + 1} is not the one that was read" in message
    job.table.unlink()
    assert "No such file" in error_of(capsys, *job.command)
    if hasattr(os, "mkfifo"):
        os.mkfifo(job.table)
        writer = threading.Thread(target=lambda: job.table.write_text(""))
        writer.start()
        assert "was a file when the state was saved and is a pipe" in error_of(capsys, *job.command)
        writer.join()
        job.table.unlink()
    job.table.write_text(rows)
    job.out.write_bytes(labels[:-3])
    assert f"had {len(labels)} bytes when the state was saved" in error_of(capsys, *job.command)
    job.out.unlink()
    assert "has lines of the run to be resumed and is gone" in error_of(capsys, *job.command)
    job.out.write_bytes(labels + b"more than the state knows")
    assert run(*job.command) == 0
    job.check()


def test_states_of_something_else(table, tmp_path, data, capsys):
    state = tmp_path / "state.npz"

    def message():
        before = state.read_bytes()
        error = error_of(capsys, table, "--k", 3, "--state", state)
        assert state.read_bytes() == before
        return error

    for content in (b"", b"text", b"PK\x03\x04 broken"):
        state.write_bytes(content)
        assert f"{state} is no saved estimator" in message()
    np.savez(state, X=np.ones(3))
    assert f"{state} is no saved estimator" in message()
    np.savez(state, header=np.array("[1]"))
    assert f"{state} is no saved estimator" in message()
    with state.open("wb") as file:
        np.save(file, np.ones(3))
    assert f"{state} is no saved estimator" in message()
    fastmmc.CRPCL(3).partial_fit(data[0]).save(state)
    assert f"{state} holds CRPCL, but no state of fastmmc stream" in message()
    fastmmc.CRPCL(3).partial_fit(data[0]).save(state, extra={"stream": 99})
    assert f"{state} has format 99; expected 3" in message()
    fastmmc.CRPCL(3).partial_fit(data[0]).save(state, extra={"stream": 3, "source": {}})
    assert f"{state} is damaged: it lacks constraints, n_bytes, n_bytes_bad, settings" in message()


def put(path, value):
    """Return a change of what a state holds beside the estimator."""

    def change(arrays, header):
        *parts, last = path.split("/")
        node = header["extra"]
        for part in parts:
            node = node[part]
        node[last] = value

    return change


WRONG = [None, True, -1, 1.5, 10**30, "x", [], ["x"], [None], [True], {}, {"x": 1}]
PARTS = {
    "settings": [],
    "settings/SOURCE": ["x"],
    "settings/--method": ["x"],
    "settings/--k": [],
    "settings/--alpha": [],
    "settings/--memory-size": [],
    "settings/--seed": [],
    "settings/--columns": [None, [], ["x"]],
    "settings/--drop": [None, [], ["x"]],
    "settings/--label-column": [None],
    "source": [],
    "source/layout": [],
    "source/layout/line": [],
    "source/layout/first": [],
    "source/layout/label": [None],
    "source/layout/has_header": [True],
    "source/layout/columns": [],
    "source/delimiter": [],
    "source/classes": [[], ["x"]],
    "source/n_bytes": [],
    "source/line": [],
    "source/last": [],
    "n_bytes": [],
    "n_bytes_bad": [None],
    "sha256": [None],
    "sha256_bad": [None, "x"],
    "constraints": [],
    "constraints/n_bytes": [],
    "constraints/checksum": [],
    "constraints/n_must": [],
    "constraints/n_cannot": [],
}


@pytest.mark.parametrize("part", PARTS)
def test_values_of_a_state_that_cannot_be(job, capsys, part):
    """Each is refused, and the labels stay; ``PARTS`` has those that may be or are not used."""
    assert run(*job.command) == 0
    whole, labels = job.state.read_bytes(), job.out.read_bytes()
    for value in WRONG:
        job.state.write_bytes(whole)
        damaged(job.state, put(part, value)).replace(job.state)
        if value in PARTS[part]:
            continue
        error = error_of(capsys, *job.command)
        assert str(job.state) in error or str(job.out) in error or str(job.table) in error
        assert job.out.read_bytes() == labels, value


def test_labels_that_were_changed_meanwhile(job, capsys):
    """A file of labels is known by what it holds, not by its size."""
    assert run(*job.command) == 0
    labels, state = job.out.read_bytes(), job.state.read_bytes()
    for changed in (
        labels[:-2] + bytes([labels[-2] ^ 1]) + b"\n",
        labels[:6] + labels[8:] + b"0\n",
        labels[:-2] + b"00",
    ):
        job.out.write_bytes(changed)
        assert f"{job.out} holds other lines than were written" in error_of(capsys, *job.command)
        assert (job.out.read_bytes(), job.state.read_bytes()) == (changed, state)
    # Of the first version, whose states have no digest, lines are counted.
    damaged(job.state, lambda a, h: h["extra"].pop("sha256")).replace(job.state)
    assert "holds other lines than were written" in error_of(capsys, *job.command)
    job.out.write_bytes(labels)
    assert run(*job.command) == 0


def test_rows_that_were_left_out_are_checked_too(bad, capsys):
    job, path, check = bad
    assert run(*job.command) == 0
    path.write_bytes(path.read_bytes().replace(b"x,1", b"y,1"))
    assert f"{path} holds other lines than were written" in error_of(capsys, *job.command)


def test_an_estimator_that_a_state_does_not_tell_of(job, capsys):
    assert run(*job.command) == 0

    def change(arrays, header):
        header["content"]["CRPCL"]["stream"]["Stream"]["n_seen"] -= 1

    damaged(job.state, change).replace(job.state)
    assert f"{job.out} holds other lines than were written" in error_of(capsys, *job.command)


def test_extra_of_a_saved_estimator(data, tmp_path):
    path = tmp_path / "model.npz"
    model = fastmmc.WTA(3, random_state=0).partial_fit(data[0])
    model.save(path)
    assert fastmmc.WTA.load(path).extra_ is None
    model.save(path, extra={"at": [1, "ä"], "n": np.int64(3)})
    assert fastmmc.WTA.load(path).extra_ == {"at": [1, "ä"], "n": 3}
    with pytest.raises(TypeError, match="extra is not JSON"):
        model.save(path, extra=object())
    assert fastmmc.WTA.load(path).extra_["n"] == 3


def test_help(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["stream", "--help"])
    assert stop.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    for words in (
        *(option.flag for option in stream.LEARNING),
        "--state",
        "--chunk",
        "labels of the last chunk may come",
    ):
        assert words in text


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "wait4"), reason="no resource usage of a process")
def test_memory_is_bounded(tmp_path):
    lines = [f"{i % 97},{i % 89},{i % 3 if i % 50 == 0 else ''}\n" for i in range(20_000)]

    def peak(n_times):
        path = tmp_path / f"{n_times}.csv"
        with path.open("w") as file:
            for _ in range(n_times):
                file.writelines(lines)
        options = ["--k", "8", "--label-column", "2", "--memory-size", "100"]
        files = ["--out", tmp_path / "out.csv", "--state", tmp_path / f"{n_times}.npz"]
        argv = [sys.executable, "-m", "fastmmc", "stream", path, *options, *files]
        process = subprocess.Popen([str(a) for a in argv], stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)

    # All rows of the longer one are 300 times the chunk; their text alone has 5 MB.
    assert peak(30) - peak(1) < 4e6
