"""UMC-RLS with size bounds and a descent after the shaking, by the protocol of its paper.

See README.md in this folder for the protocol.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from common import (
    add_common_arguments,
    load_available,
    made_by,
    mean_and_std,
    number,
    run_all,
    write_page,
)
from umc_rls import FULL, QUICK, SETS, ari_table, grid_tasks, samples_of, summarise

METHODS = {
    "equal sizes": {},
    "equal sizes, polished": {"polish": True},
    "balance 0.4, polished": {"polish": True, "balance": 0.4},
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_arguments(parser, SETS, Path(__file__).with_suffix(".md"))
    arguments = parser.parse_args()
    protocol = QUICK if arguments.quick else FULL
    started = time.perf_counter()
    loaded = load_available(arguments.sets, lambda name: samples_of(name, protocol.samples))
    tasks = {}
    for name, samples in loaded.items():
        tasks |= grid_tasks(name, samples, protocol, METHODS)
    results = run_all(tasks, arguments.jobs, arguments.keep)
    summaries = {}
    for name, samples in loaded.items():
        y = samples[0][1]
        summary = summarise(name, len(samples), results, protocol, METHODS)
        summaries[name] = y.size, np.unique(y).size, summary
    parts = [
        "# UMC-RLS with size bounds and a descent, by the protocol of its paper",
        made_by(arguments.quick, started),
        "All figures are adjusted Rand indices of single starts; where points are drawn, means "
        f"over {protocol.samples} samples. The first column is the method as published.",
        "## Oracle choice of the setting, mean ± standard deviation over the repeats",
        ari_table(summaries, lambda row: mean_and_std(row["mean"], row["std"]), METHODS),
        "## Without labels: lowest objective, then lowest leave-one-out error",
        ari_table(summaries, lambda row: number(row["label-free"]), METHODS),
    ]
    write_page(arguments.out, parts)


if __name__ == "__main__":
    main()
