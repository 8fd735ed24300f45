"""Regularised least squares over labellings."""

from fastmmc.rls.estimators import UMCRLS, EvoMMC, FastEvoMMC
from fastmmc.rls.evolution import evo_mmc, fast_evo_mmc
from fastmmc.rls.methods import umc_rls, umc_rls_path

__all__ = [
    "UMCRLS",
    "EvoMMC",
    "FastEvoMMC",
    "evo_mmc",
    "fast_evo_mmc",
    "umc_rls",
    "umc_rls_path",
]
