"""Maximum-margin clustering by semidefinite programs: MMC and GMMC."""

from fastmmc.sdp.estimators import GMMC, SDPMMC
from fastmmc.sdp.methods import gmmc, sdp_mmc

__all__ = ["GMMC", "SDPMMC", "gmmc", "sdp_mmc"]
