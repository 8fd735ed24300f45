"""Every method in one table; the command line, tests, benchmarks and docs loop over it."""

from __future__ import annotations

from fastmmc.families import FAMILY_METHODS, Method
from fastmmc.recursive import RecursiveMMC, recursive_mmc

RECURSIVE = Method(
    "recursive-mmc",
    recursive_mmc,
    RecursiveMMC,
    "Zhang, Tsang, Kwok, ICML 2007",
    "splits in two again and again by a method for two clusters (iter-svr)",
)

METHODS = FAMILY_METHODS | {RECURSIVE.name: RECURSIVE}
