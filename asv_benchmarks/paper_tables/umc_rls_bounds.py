"""UMC-RLS with size bounds and a descent after the shaking, by the protocol of its paper.

See README.md in this folder for the protocol.
"""

from common import load_samples, main, number
from umc_rls import FULL, QUICK, SETS, ari_table, grid_tasks, oracle_text, summarise_sets

METHODS = {
    "equal sizes": {},
    "equal sizes, polished": {"polish": True},
    "balance 0.4, polished": {"polish": True, "balance": 0.4},
}


def page(run):
    protocol = QUICK if run.quick else FULL
    loaded = run.load(load_samples, protocol.samples)
    results = run.do(grid_tasks(loaded, protocol, METHODS))
    summaries = summarise_sets(loaded, results, protocol, METHODS)
    return [
        "# UMC-RLS with size bounds and a descent, by the protocol of its paper",
        run.made(),
        "All figures are adjusted Rand indices of single starts; where points are drawn, means "
        f"over {protocol.samples} samples. The first column is the method as published.",
        "## Oracle choice of the setting, mean ± standard deviation over the repeats",
        ari_table(summaries, oracle_text, METHODS),
        "## Without labels: lowest objective, then lowest leave-one-out error",
        ari_table(summaries, lambda row: number(row["label-free"]), METHODS),
    ]


if __name__ == "__main__":
    main(page, SETS)
