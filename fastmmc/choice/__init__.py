"""Clusters without settings: width, sizes and the number of clusters are chosen without labels."""

from fastmmc.choice.estimators import AutoMMC
from fastmmc.choice.methods import cluster
from fastmmc.choice.results import Candidate, ChoiceResult

__all__ = ["AutoMMC", "Candidate", "ChoiceResult", "cluster"]
