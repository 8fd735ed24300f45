"""Join the pages of this folder: every method, every data set, the paper's figure beside ours.

Nothing is run: the figures are those of the pages. See README.md in this folder.
"""

import argparse

from common import FOLDER, commit, table, write_page

# Of a joined table: (page, heading that the table follows, columns there, and here if others).
TWO_CLUSTERS = (
    ("iter_svr.md", "## Clustering error", ("KM", "NC", "GMM", "iterSVM", "iterSVR", "iterLS-SVM")),
    ("evo_mmc.md", "## Table 1", ("EvoMMC", "EvoMMC, paper", "FastEvoMMC", "FastEvoMMC, paper")),
    (
        "cutting_plane.md",
        "## CPMMC",
        ("linear or Gaussian", "paper", "smallest error of the starts"),
        ("CPMMC", "CPMMC, paper", "CPMMC by label"),
    ),
)
SUBSETS = (("sdp.md", "## Clustering error", ("KM", "iterSVR", "MMC", "MMC, C = 100", "GMMC")),)
MANY_CLUSTERS = (
    (
        "umc_rls.md",
        "## Table I:",
        ("Stoc-RLS", "Steep-RLS", "UMC-RLS", "k-means", "GMM", "spectral"),
        ("Stoc-RLS", "Steep-RLS", "UMC-RLS", "KM", "GMM", "SC"),
    ),
    (
        "umc_rls_bounds.md",
        "## Oracle choice",
        ("balance 0.4, polished",),
        ("UMC-RLS, balance 0.4, polished",),
    ),
    (
        "cutting_plane.md",
        "## CPM3C",
        ("mean of single starts", "paper", "lowest objective of the starts"),
        ("CPM3C", "CPM3C, paper", "CPM3C by objective"),
    ),
)

# The page: headings, what is to be said, and tables; a (page, heading) is a table as it is there.
PARTS = (
    "## Two clusters: percentage of wrong labels",
    "The protocols differ as the papers' do. KM to iterLS-SVM: the methods' defaults, mean of 10 "
    "seeds. EvoMMC: the smallest error of 10 runs at the setting that the true labels choose. "
    "CPMMC: the start of the lowest objective at such a setting, and beside it the smallest error "
    "of the starts (by label), which is EvoMMC's protocol.",
    TWO_CLUSTERS,
    "## Two clusters of 50 points: percentage of wrong labels",
    "Means of 5 random subsets, at the default width.",
    SUBSETS,
    "## Many clusters: adjusted Rand index",
    "At the setting that the true labels choose, mean of the starts; of CPM3C also the start of "
    "the lowest objective. UMC-RLS makes clusters of equal sizes as published; beside it they may "
    "differ by 40 %, and a descent follows the shaking.",
    MANY_CLUSTERS,
    "What is known of the figures of the paper of UMC-RLS:",
    ("umc_rls.md", "Figures known from the paper"),
    "## Prototypes without constraints: normalised mutual information",
    ("competitive.md", "## Without constraints"),
    "## With cannot-links between labelled objects: the same, and violations in percent",
    ("competitive.md", "## With cannot-links"),
    "## Sum of plain distances: percent above the least one found",
    ("sammc.md", "## Objective at equal time"),
)


def read_table(page, heading):
    """Return header and rows of the first table that follows a heading of a page."""
    _, _, text = (FOLDER / page).read_text(encoding="utf-8").partition(f"\n{heading}")
    lines = text[text.index("\n|") + 1 :].partition("\n\n")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return rows[0], rows[2:]


def join(sources):
    """Return one table of columns of several, by the set that their rows begin with."""
    joined = {}
    for page, heading, there, *here in sources:
        header, rows = read_table(page, heading)
        at = [header.index(name) for name in there]
        for row in rows:
            cells = zip(here[0] if here else there, (row[i] for i in at), strict=True)
            joined.setdefault(row[0], {}).update(cells)
    columns = [name for _, _, *names in sources for name in names[-1]]
    rows = ([name, *(own.get(c, "-") for c in columns)] for name, own in joined.items())
    return table(["set", *columns], rows)


def part_text(part):
    if isinstance(part, str):
        return part
    return table(*read_table(*part)) if isinstance(part[0], str) else join(part)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=type(FOLDER), default=FOLDER, help="folder of the page")
    out = parser.parse_args().out / "all_methods.md"
    made = (
        f"Joined by `all_methods.py` on commit {commit()} from the pages of the single families, "
        "which give protocols, settings and versions: "
        "[iterSVR and its kin](iter_svr.md), [EvoMMC](evo_mmc.md), "
        "[cutting planes](cutting_plane.md), [semidefinite programs](sdp.md), "
        "[UMC-RLS](umc_rls.md) and [with bounds](umc_rls_bounds.md), "
        "[competitive learning](competitive.md), [SAMMC](sammc.md). `-`: not run, or not known."
    )
    write_page(out, ["# Every method on every data set", made, *map(part_text, PARTS)])


if __name__ == "__main__":
    main()
