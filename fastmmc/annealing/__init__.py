"""Clustering by the sum of plain distances, by annealing and by a memetic search."""

from fastmmc.annealing.estimators import SAMMC
from fastmmc.annealing.methods import sammc

__all__ = ["SAMMC", "sammc"]
