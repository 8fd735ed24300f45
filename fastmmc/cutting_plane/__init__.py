"""Cutting-plane maximum-margin clustering: CPMMC and CPM3C."""

from fastmmc.cutting_plane.estimators import CPM3C, CPMMC
from fastmmc.cutting_plane.methods import cpm3c, cpmmc

__all__ = ["CPM3C", "CPMMC", "cpm3c", "cpmmc"]
