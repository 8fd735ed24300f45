"""The compile cache, and the same results with the compiler off."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import fastmmc

pytestmark = pytest.mark.jit

RUN = """
import json, numpy as np, fastmmc
X = np.random.default_rng(0).standard_normal((40, 2))
out = []
for options in ({}, {"method": "steepest"}, {"method": "stochastic"},
                {"polish": True, "balance": 0.3, "keep_best": True}, {"min_size": 9}):
    for dtype in (np.float64, np.float32):
        r = fastmmc.umc_rls(X.astype(dtype), 4, n_init=2, random_state=1, lam=0.05, **options)
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


def test_compiler_off_gives_the_same_numbers(tmp_path):
    on = python(RUN, NUMBA_CACHE_DIR=str(tmp_path))
    off = python(RUN, NUMBA_DISABLE_JIT="1")
    assert json.loads(on) == json.loads(off)


@pytest.fixture
def copied_package(tmp_path):
    """A copy of the package that may be edited, found before the installed one."""
    shutil.copytree(
        Path(fastmmc.__file__).parent,
        tmp_path / "src" / "fastmmc",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    return tmp_path


OBJECTIVE = """
import fastmmc
X = [[0.0], [0.1], [1.0], [1.1]]
print(fastmmc.umc_rls(X, 2, n_init=1, random_state=0).objective)
"""


def test_an_edited_callee_is_compiled_anew(copied_package):
    env = {
        "PYTHONPATH": str(copied_package / "src"),
        "NUMBA_CACHE_DIR": str(copied_package / "cache"),
    }
    before = float(python(OBJECTIVE, **env))
    assert float(python(OBJECTIVE, **env)) == before
    file = copied_package / "src/fastmmc/rls/_kernels_claims.py"
    text = file.read_text()
    edited = text.replace("    within = 0.0\n", "    within = -250.0\n")
    assert edited != text
    file.write_text(edited)
    # risk is called from shake, which is cached and was not edited itself.
    assert float(python(OBJECTIVE, **env)) == pytest.approx(before + 1000.0)


NO_FOLDER = """
import numba.core.caching as caching
def refuse(*args, **kwargs):
    raise PermissionError("read-only")
caching.tempfile.TemporaryFile = refuse
"""

NO_SAVE = """
import numba.core.caching as caching
def refuse(*args, **kwargs):
    raise OSError("disk full")
caching.IndexDataCacheFile.save = refuse
"""

NO_LOAD = """
import numba.core.caching as caching
def refuse(*args, **kwargs):
    raise EOFError("truncated")
caching.IndexDataCacheFile.load = refuse
"""


@pytest.mark.parametrize("trouble", [NO_FOLDER, NO_SAVE, NO_LOAD], ids=["folder", "save", "load"])
def test_a_broken_cache_never_breaks_a_run(trouble, tmp_path):
    out = python(trouble + OBJECTIVE, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    assert float(out) > 0


def test_the_cache_is_used(tmp_path):
    count = (
        "import fastmmc.rls._kernels_claims as k\n"
        "print(sum(k.shake.stats.cache_hits.values()), sum(k.shake.stats.cache_misses.values()))"
    )
    env = {"NUMBA_CACHE_DIR": str(tmp_path)}
    assert python(OBJECTIVE + count, **env).split()[-2:] == ["0", "1"]
    assert python(OBJECTIVE + count, **env).split()[-2:] == ["1", "0"]


def test_the_garbage_collector_stays_as_it_was(tmp_path):
    env = {"NUMBA_CACHE_DIR": str(tmp_path)}
    for before in ("enable", "disable"):
        code = f"import gc\ngc.{before}()\n{OBJECTIVE}\nprint(gc.isenabled())"
        assert python(code, **env).split()[-1] == str(before == "enable")
