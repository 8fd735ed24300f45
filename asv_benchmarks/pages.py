"""Tell which pages of measurements are older than the code under them.

    python asv_benchmarks/pages.py

A page says on which commit it was made. For each one that has been overtaken: how many later
commits change the package, or the script that made the page.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
TABLES = "asv_benchmarks/paper_tables"
PAGES = (f"{TABLES}/*.md", "docs/measured.md")
MADE = re.compile(r"^(?:Made|Joined|Measured) .*?commit ([0-9a-f]{7,40})( with changes)?", re.M)
SCRIPT = re.compile(r"^(?:Made|Joined|Measured) .*?by `(?:asv_benchmarks/)?(\w+\.py)", re.M)


def git(root, *args):
    """Return what git prints, None where it fails."""
    done = subprocess.run(["git", "-C", root, *args], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def state(root, path):
    """Return what there is to say of a page, None if nothing."""
    text = path.read_text(encoding="utf-8")
    made, script = MADE.search(text), SCRIPT.search(text)
    if made is None or script is None:
        return "does not say which script made it, and on which commit"
    commit, has_changes = made.groups()
    folder = TABLES if TABLES in path.as_posix() else "asv_benchmarks"
    under = "fastmmc", f"{folder}/{script[1]}"
    later = git(root, "rev-list", "--count", f"{commit}..HEAD", "--", *under)
    if later is None:
        return f"was made on commit {commit}, which this repository does not have"
    if has_changes:
        return f"was made on commit {commit} with changes that were not committed"
    return f"was made {later} commits of {under[0]} or {under[1]} ago" if int(later) else None


def report(root):
    """Return a line for every page that is overtaken, or does not say what it was made on."""
    found = (page for pattern in PAGES for page in sorted(Path(root).glob(pattern)))
    pages = {page: state(root, page) for page in found if page.name != "README.md"}
    return [f"{page.relative_to(root).as_posix()} {said}" for page, said in pages.items() if said]


if __name__ == "__main__":
    print(*report(sys.argv[1] if sys.argv[1:] else ROOT), sep="\n")
