"""Regularised least squares over labellings."""

from fastmmc.rls._estimator import UMCRLS, EvoMMC, FastEvoMMC
from fastmmc.rls._solver import umc_rls, umc_rls_path
from fastmmc.rls._solver_evolution import evo_mmc, fast_evo_mmc

__all__ = [
    "UMCRLS",
    "EvoMMC",
    "FastEvoMMC",
    "evo_mmc",
    "fast_evo_mmc",
    "umc_rls",
    "umc_rls_path",
]
