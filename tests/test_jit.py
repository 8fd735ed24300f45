"""The compile cache, and the same results with the compiler off."""

import gc
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest
from numba.core import caching

import fastmmc
from fastmmc.core.jit import njit

pytestmark = pytest.mark.jit

RUN = """
import json, numpy as np, fastmmc
X = np.random.default_rng(0).standard_normal((40, 2))
out = []
for options in ({}, {"method": "steepest"}, {"method": "stochastic"},
                {"polish": True, "balance": 0.3, "keep_best": True}, {"min_size": 9}):
    r = fastmmc.umc_rls(X, 4, n_init=2, random_state=1, lam=0.05, **options)
    out.append([r.labels.tolist(), r.objective.hex(), r.history.tolist()])
r = fastmmc.umc_rls(X.astype(np.float32), 4, n_init=2, random_state=1, lam=0.05)
out.append([r.labels.tolist(), r.objective.hex(), r.history.tolist()])
print(json.dumps(out))
"""


def python(code, **env):
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONWARNINGS": "error"} | env,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_compiler_off_gives_the_same_numbers(tmp_path):
    on = python(RUN, NUMBA_CACHE_DIR=str(tmp_path))
    off = python(RUN, NUMBA_DISABLE_JIT="1")
    assert json.loads(on) == json.loads(off)


@pytest.fixture
def env(tmp_path):
    """Environment that finds a copy of the loops, and nothing else of the package, with its cache.

    The rest would only be imported again and again.
    """
    package = Path(fastmmc.__file__).parent
    copy = tmp_path / "src" / "fastmmc"
    for name in ("core/jit.py", "core/compat.py", "rls/engine/_loops_moves.py"):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(package / name, copy / name)
        for folder in (copy / name).relative_to(copy).parents:
            (copy / folder / "__init__.py").touch()
    return {"PYTHONPATH": str(tmp_path / "src"), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}


# One small loop that calls another: what holds for it holds for all, and it compiles in a second.
CALL = """
import numpy as np
from fastmmc.rls.engine import _loops_moves as moves
U = np.empty((1, 1))
moves.build_sums(np.array([[2.0]]), np.zeros(1, dtype=np.uint8), U)
print(U[0, 0])
"""


COUNT = """
stats = moves.build_sums.stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


def test_the_cache_is_used_until_a_callee_is_edited(env):
    assert python(CALL + COUNT, **env).split() == ["2.0", "0", "1"]
    assert python(CALL + COUNT, **env).split() == ["2.0", "1", "0"]
    file = Path(env["PYTHONPATH"]) / "fastmmc/rls/engine/_loops_moves.py"
    text = file.read_text()
    edited = text.replace("target[i] += scale * row[i]\n", "target[i] -= scale * row[i]\n")
    assert edited != text
    file.write_text(edited)
    # shift_row is called from build_sums, which is cached and was not edited itself.
    assert float(python(CALL, **env)) == -2.0


SUMS = """
import numpy as np
from scipy.sparse import csr_array
from fastmmc.kernels import _loops_centers as loops
from fastmmc.kernels.models import screened_nearest
rng = np.random.default_rng(5)
X, centers, out = rng.normal(size=(130, 3)), rng.normal(size=(3, 3)), np.empty((130, 3))
if {first}:
    screened_nearest(csr_array(X), centers)
loops.all_distances(X, centers, out)
print(out.tobytes().hex())
"""


def test_last_bits_of_sums_do_not_depend_on_what_ran_before(tmp_path):
    """Also of loops from the cache that were compiled together."""
    cache = {"NUMBA_CACHE_DIR": str(tmp_path)}
    found = [python(SUMS.format(first=first), **cache) for first in (True, False, True)]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize(
    ("place", "name", "error"),
    [
        (caching.tempfile, "TemporaryFile", PermissionError("read-only")),
        (caching.IndexDataCacheFile, "save", OSError("disk full")),
        (caching.IndexDataCacheFile, "load", EOFError("truncated")),
    ],
    ids=["folder", "save", "load"],
)
def test_a_broken_cache_never_breaks_a_run(place, name, error, monkeypatch, tmp_path):
    met = []

    def refuse(*args, **kwargs):
        met.append(name)
        raise error

    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(place, name, refuse)

    @njit
    def twice(x):
        return x + x

    assert twice(1.5) == 3.0 and met


def test_the_garbage_collector_stays_as_it_was():
    @njit
    def twice(x):
        return x + x

    try:
        for set_to, x in ((gc.enable, 1.5), (gc.disable, 2)):
            set_to()
            before = gc.isenabled()
            assert twice(x) == 2 * x and gc.isenabled() == before
    finally:
        gc.enable()
    assert len(twice.signatures) == 2


def test_a_callee_is_compiled_for_known_truth_values_and_not_for_known_numbers():
    @njit
    def callee(x, flag, at):
        return x + at if flag else x

    @njit
    def caller(x):
        return callee(x, True, 0) + callee(x, False, -1) + callee(x, True, 1)

    assert caller(1.0) == 4.0
    kinds = {tuple(map(str, kinds[1:])) for kinds in callee._inner.signatures}
    assert kinds == {("Literal[bool](True)", "int64"), ("Literal[bool](False)", "int64")}
