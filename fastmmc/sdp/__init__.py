"""Maximum-margin clustering by semidefinite programs: MMC and GMMC."""

from fastmmc.sdp._estimator import GMMC, SDPMMC
from fastmmc.sdp._solver import gmmc, sdp_mmc

__all__ = ["GMMC", "SDPMMC", "gmmc", "sdp_mmc"]
