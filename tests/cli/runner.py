"""The installed command, in this process, and what is looked for in what it prints."""

import json
from importlib.metadata import entry_points

import numpy as np

import fastmmc
from fastmmc.registry import METHODS, Method

(COMMAND,) = (one.load() for one in entry_points(group="console_scripts", name="fastmmc"))

FEW = ["--n-init", "2", "--seed", "0"]


def run(*argv):
    return COMMAND([str(arg) for arg in argv])


def report_of(capsys, *argv):
    """Return the report of ``fastmmc cluster``, which told nothing else."""
    assert run("cluster", *argv, "--json") == 0
    out, err = capsys.readouterr()
    assert err == "", err
    return json.loads(out)


def labels_of(capsys, *argv):
    """Return the labels that a command writes to standard output, and what it tells."""
    assert run(*argv) == 0
    out, err = capsys.readouterr()
    header, *labels = out.splitlines()
    assert header == "label"
    return np.array([int(label) for label in labels]), err


def error_of(capsys, *argv):
    """Return the one line that a wrong call tells."""
    assert run(*argv) == 2
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
