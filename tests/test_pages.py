"""The script that tells which pages of measurements are older than the code under them."""

import runpy
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "asv_benchmarks" / "pages.py"
pages = runpy.run_path(str(SCRIPT))
TABLES = "asv_benchmarks/paper_tables"


@pytest.fixture
def repository(tmp_path):
    """A repository with code, a script and a page, and what commits a file and returns the hash."""
    if shutil.which("git") is None:
        pytest.skip("needs git")
    name = ("-c", "user.name=a", "-c", "user.email=a@example.org")

    def commit(file, text):
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        for command in (("init", "-q"), ("add", "."), (*name, "commit", "-qm", file)):
            subprocess.run(["git", *command], cwd=tmp_path, check=True)
        return pages["git"](tmp_path, "rev-parse", "--short", "HEAD")

    commit("fastmmc/a.py", "1")
    return tmp_path, commit


def test_a_page_is_overtaken_by_its_code_and_by_its_script_alone(repository):
    root, commit = repository
    made = commit(f"{TABLES}/one.py", "1")
    commit(f"{TABLES}/one.md", f"# One\n\nMade by `one.py one` on commit {made} in 1 min.\n")
    commit(f"{TABLES}/other.py", "1")
    assert pages["report"](root) == []
    commit("fastmmc/a.py", "2")
    commit(f"{TABLES}/one.py", "2")
    said = f"{TABLES}/one.md was made 2 commits of fastmmc or {TABLES}/one.py ago"
    assert pages["report"](root) == [said]


def test_a_page_that_names_no_commit_or_one_that_is_gone_is_told(repository):
    root, commit = repository
    commit(f"{TABLES}/a.md", "# A\n")
    commit(f"{TABLES}/b.md", "# B\n\nMade by `b.py` on commit 1234567 in 1 min.\n")
    commit("docs/measured.md", "Measured on commit 7654321 with changes, by `asv_benchmarks/r.py`.")
    told = pages["report"](root)
    assert len(told) == 3 and "does not say" in told[0]
    assert "1234567, which this repository does not have" in told[1]


def test_the_pages_say_on_which_commit_they_were_made():
    found = pages["report"](SCRIPT.parent.parent)
    assert not [line for line in found if "does not say" in line]
