"""Regularised least squares over labellings."""

from fastmmc.rls._estimator import UMCRLS
from fastmmc.rls._solver import umc_rls, umc_rls_path

__all__ = ["UMCRLS", "umc_rls", "umc_rls_path"]
