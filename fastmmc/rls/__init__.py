"""Regularised least squares over labellings."""

from fastmmc.rls.estimators import UMCRLS
from fastmmc.rls.methods import umc_rls, umc_rls_path

__all__ = ["UMCRLS", "umc_rls", "umc_rls_path"]
