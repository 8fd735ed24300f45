"""What a user waits for before any work is done: import and first call.

The statements run in an interpreter of their own, once in each.
"""

import subprocess
import sys

FIRST_CALL = "fastmmc.umc_rls(X, 3, n_init=1)"
LOAD = """
import fastmmc
X, _ = fastmmc.datasets.load("iris")
"""
EMPTY_CACHE = """
import os, tempfile
folder = tempfile.TemporaryDirectory()
os.environ["NUMBA_CACHE_DIR"] = folder.name
"""


class Import:
    """Seconds that importing fastmmc adds to importing what it stands on."""

    repeat = 3
    rounds = 1
    warmup_time = 0
    timeout = 300

    def timeraw_import(self):
        return "import fastmmc", "import numba, sklearn.cluster"


class FirstCallCold:
    """The first call when nothing has been compiled yet."""

    repeat = 2
    rounds = 1
    warmup_time = 0
    timeout = 300

    def timeraw_first_call(self):
        return FIRST_CALL, EMPTY_CACHE + LOAD


class FirstCallCached:
    """The first call when an earlier process has compiled."""

    repeat = 3
    rounds = 1
    warmup_time = 0
    timeout = 300

    def setup(self):
        subprocess.run([sys.executable, "-c", LOAD + FIRST_CALL], check=True)

    def timeraw_first_call(self):
        return FIRST_CALL, LOAD
