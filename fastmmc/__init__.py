"""Maximum-margin clustering: compiled solvers for labels under which a kernel machine fits best.

>>> import fastmmc
>>> X, y = fastmmc.datasets.load("moons")
>>> fastmmc.umc_rls(X, 2).sizes
array([100, 100])
"""

from fastmmc import datasets
from fastmmc.alternating import (
    IterLSSVM,
    IterSVM,
    IterSVR,
    iter_ls_svm,
    iter_svm,
    iter_svr,
)
from fastmmc.execution import Progress
from fastmmc.hat import DenseFactor, factor
from fastmmc.lowrank import LowRankFactor
from fastmmc.recursive import RecursiveMMC, recursive_mmc
from fastmmc.registry import METHODS
from fastmmc.results import (
    ClusteringResult,
    MarginResult,
    RLSResult,
    SegmentationResult,
    Status,
    Tree,
    TreeNode,
    TreeResult,
)
from fastmmc.rls import (
    UMCRLS,
    EvoMMC,
    FastEvoMMC,
    evo_mmc,
    fast_evo_mmc,
    umc_rls,
    umc_rls_path,
)
from fastmmc.segmentation import segment

__version__ = "0.1.0.dev0"

__all__ = [
    "METHODS",
    "UMCRLS",
    "ClusteringResult",
    "DenseFactor",
    "EvoMMC",
    "FastEvoMMC",
    "IterLSSVM",
    "IterSVM",
    "IterSVR",
    "LowRankFactor",
    "MarginResult",
    "Progress",
    "RLSResult",
    "RecursiveMMC",
    "SegmentationResult",
    "Status",
    "Tree",
    "TreeNode",
    "TreeResult",
    "datasets",
    "evo_mmc",
    "factor",
    "fast_evo_mmc",
    "iter_ls_svm",
    "iter_svm",
    "iter_svr",
    "recursive_mmc",
    "segment",
    "umc_rls",
    "umc_rls_path",
]
