"""Pictures of clusterings, in the manner of scikit-learn's Display objects."""

from fastmmc.plotting.base import COLORS, MARKERS
from fastmmc.plotting.clusters import ClusterDisplay, SegmentationDisplay, ShakingDisplay
from fastmmc.plotting.points import ExemplarDisplay, InfluenceDisplay, MarginDisplay
from fastmmc.plotting.report import write_report
from fastmmc.plotting.search import (
    ChoiceDisplay,
    DendrogramDisplay,
    ObjectiveDisplay,
    TreeDisplay,
)

__all__ = [
    "COLORS",
    "MARKERS",
    "ChoiceDisplay",
    "ClusterDisplay",
    "DendrogramDisplay",
    "ExemplarDisplay",
    "InfluenceDisplay",
    "MarginDisplay",
    "ObjectiveDisplay",
    "SegmentationDisplay",
    "ShakingDisplay",
    "TreeDisplay",
    "write_report",
]
