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


class Waiting:
    """Seconds of the import beyond Numba's and scikit-learn's, and of the first call."""

    repeat, rounds, warmup_time = 3, 1, 0

    def setup(self):
        subprocess.run([sys.executable, "-c", LOAD + FIRST_CALL], check=True)

    def timeraw_import(self):
        return "import fastmmc", "import numba, sklearn.cluster"

    def timeraw_first_call_compiles(self):
        return FIRST_CALL, EMPTY_CACHE + LOAD

    def timeraw_first_call_from_the_cache(self):
        return FIRST_CALL, LOAD
