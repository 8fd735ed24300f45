"""Join the pages of this folder: every method, every data set, the paper's figure beside ours.

Nothing is run: the figures are those of the pages. See README.md in this folder.
"""

import argparse
from pathlib import Path

from common import commit, table, write_page

FOLDER = Path(__file__).parent

# Per joined table: (page, heading that the table follows, columns); the columns are
# {name there: name here} where the names differ.
TWO_CLUSTERS = (
    (
        "iter_svr.md",
        "## Clustering error",
        ("KM", "NC", "GMM", "iterSVM", "iterSVR", "iterLS-SVM"),
    ),
    (
        "evo_mmc.md",
        "## Table 1",
        ("EvoMMC", "EvoMMC, paper", "FastEvoMMC", "FastEvoMMC, paper"),
    ),
    (
        "cutting_plane.md",
        "## CPMMC",
        {
            "linear or Gaussian": "CPMMC",
            "paper": "CPMMC, paper",
            "smallest error of the starts": "CPMMC by label",
        },
    ),
)
MANY_CLUSTERS = (
    (
        "umc_rls.md",
        "## Table I:",
        {
            "Stoc-RLS": "Stoc-RLS",
            "Steep-RLS": "Steep-RLS",
            "UMC-RLS": "UMC-RLS",
            "k-means": "KM",
            "GMM": "GMM",
            "spectral": "SC",
        },
    ),
    (
        "umc_rls_bounds.md",
        "## Oracle choice",
        {"balance 0.4, polished": "UMC-RLS, balance 0.4, polished"},
    ),
    (
        "cutting_plane.md",
        "## CPM3C",
        {
            "mean of single starts": "CPM3C",
            "paper": "CPM3C, paper",
            "lowest objective of the starts": "CPM3C by objective",
        },
    ),
)
SUBSETS = (("sdp.md", "## Clustering error", ("KM", "iterSVR", "MMC", "MMC, C = 100", "GMMC")),)


def read_table(page, heading):
    """Return header and rows of the first table that follows a heading of a page."""
    lines = (FOLDER / page).read_text(encoding="utf-8").splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith(heading))
    first = next(i for i in range(at, len(lines)) if lines[i].startswith("|"))
    rows = []
    for line in lines[first:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip().strip("|").split("|")])
    return rows[0], rows[2:]


def join(sources):
    """Return one table of columns of several, by the set that their rows begin with."""
    joined, columns = {}, []
    for page, heading, names in sources:
        header, rows = read_table(page, heading)
        names = names if isinstance(names, dict) else dict(zip(names, names, strict=True))
        columns += names.values()
        for row in rows:
            cells = dict(zip(header, row, strict=True))
            own = joined.setdefault(row[0], {})
            own |= {here: cells[there] for there, here in names.items()}
    rows = [[name, *(own.get(c, "-") for c in columns)] for name, own in joined.items()]
    return table(["set", *columns], rows)


def whole(page, heading):
    """Return a table of a page as it is."""
    return table(*read_table(page, heading))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    args = parser.parse_args()
    parts = [
        "# Every method on every data set",
        f"Joined by `all_methods.py` on commit {commit()} from the pages of the single families, "
        "which tell protocols, settings and versions: "
        "[iterSVR and its kin](iter_svr.md), [EvoMMC](evo_mmc.md), "
        "[cutting planes](cutting_plane.md), [semidefinite programs](sdp.md), "
        "[UMC-RLS](umc_rls.md) and [with bounds](umc_rls_bounds.md), "
        "[competitive learning](competitive.md), [SAMMC](sammc.md). "
        "`-`: not run, or not known.",
        "## Two clusters: percentage of wrong labels",
        "The protocols differ as the papers' do. KM to iterLS-SVM: the methods' defaults, mean of "
        "10 seeds. EvoMMC: the smallest error of 10 runs at the setting that the true labels "
        "choose. CPMMC: the start of the lowest objective at such a setting, and beside it the "
        "smallest error of the starts (by label), which is EvoMMC's protocol.",
        join(TWO_CLUSTERS),
        "## Two clusters of 50 points: percentage of wrong labels",
        "Means of 5 random subsets, at the default width.",
        join(SUBSETS),
        "## Many clusters: adjusted Rand index",
        "At the setting that the true labels choose, mean of the starts; of CPM3C also the start "
        "of the lowest objective. UMC-RLS makes clusters of equal sizes as published; beside it "
        "they may differ by 40 %, and a descent follows the shaking.",
        join(MANY_CLUSTERS),
        "What is known of the figures of the paper of UMC-RLS:",
        whole("umc_rls.md", "Figures known from the paper"),
        "## Prototypes without constraints: normalised mutual information",
        whole("competitive.md", "## Without constraints"),
        "## With cannot-links between labelled objects: the same, and violations in percent",
        whole("competitive.md", "## With cannot-links"),
        "## Sum of plain distances: percent above the least one found",
        whole("sammc.md", "## Objective at equal time"),
    ]
    write_page(args.out, parts)


if __name__ == "__main__":
    main()
