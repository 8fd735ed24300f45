"""Evolution of two clusters over a hat matrix."""

from fastmmc.evolution.estimators import EvoMMC, FastEvoMMC
from fastmmc.evolution.methods import evo_mmc, fast_evo_mmc

__all__ = ["EvoMMC", "FastEvoMMC", "evo_mmc", "fast_evo_mmc"]
