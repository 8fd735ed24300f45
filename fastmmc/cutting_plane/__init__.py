"""Cutting-plane maximum-margin clustering: CPMMC and CPM3C."""

from fastmmc.cutting_plane._estimator import CPM3C, CPMMC
from fastmmc.cutting_plane._solver import cpm3c, cpmmc

__all__ = ["CPM3C", "CPMMC", "cpm3c", "cpmmc"]
