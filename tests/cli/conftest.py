import io
import sys
from contextlib import contextmanager

import numpy as np
import pytest

import fastmmc
from fastmmc.evolution import methods as evolution
from fastmmc.rls import search


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
    for module in (search, evolution):
        monkeypatch.setattr(module, "warn_of_other_sizes", lambda *told: None)


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


@pytest.fixture
def full_disk():
    """Let no file become larger than some bytes."""
    resource = pytest.importorskip("resource")

    @contextmanager
    def limit(n_bytes):
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    return limit
