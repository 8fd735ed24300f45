"""Clustering by the sum of plain distances, by annealing and by a memetic search."""

from fastmmc.annealing._estimator import SAMMC
from fastmmc.annealing._solver import sammc

__all__ = ["SAMMC", "sammc"]
