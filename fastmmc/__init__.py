"""Maximum-margin clustering: compiled solvers for labels under which a kernel machine fits best.

>>> import fastmmc
>>> X, y = fastmmc.datasets.load("moons")
>>> fastmmc.umc_rls(X, 2).sizes
array([100, 100])
"""

import importlib
from typing import TYPE_CHECKING

from fastmmc import datasets
from fastmmc.alternating import (
    IterLSSVM,
    IterSVM,
    IterSVR,
    iter_ls_svm,
    iter_svm,
    iter_svr,
)
from fastmmc.annealing import SAMMC, sammc
from fastmmc.competitive import (
    CRPCL,
    CVQE,
    FSCL,
    LCVQE,
    OLCVQE,
    RPCL,
    WTA,
    c_rpcl,
    cvqe,
    fscl,
    lcvqe,
    o_lcvqe,
    rpcl,
    wta,
)
from fastmmc.cutting_plane import CPM3C, CPMMC, cpm3c, cpmmc
from fastmmc.execution import Progress
from fastmmc.factors import DenseFactor, LowRankFactor, factor
from fastmmc.recursive import RecursiveMMC, recursive_mmc
from fastmmc.registry import METHODS
from fastmmc.results import (
    CentroidResult,
    ClusteringResult,
    MarginResult,
    RLSResult,
    SDPResult,
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
from fastmmc.sdp import GMMC, SDPMMC, gmmc, sdp_mmc
from fastmmc.segmentation import segment

__version__ = "0.1.0.dev0"

# Loaded when they are first asked for, so that importing the package stays light.
_LAZY = ("distributed", "plotting")

__all__ = [
    "CPM3C",
    "CPMMC",
    "CRPCL",
    "CVQE",
    "CentroidResult",
    "ClusteringResult",
    "DenseFactor",
    "EvoMMC",
    "FSCL",
    "FastEvoMMC",
    "GMMC",
    "IterLSSVM",
    "IterSVM",
    "IterSVR",
    "LCVQE",
    "LowRankFactor",
    "METHODS",
    "MarginResult",
    "OLCVQE",
    "Progress",
    "RLSResult",
    "RPCL",
    "RecursiveMMC",
    "SAMMC",
    "SDPMMC",
    "SDPResult",
    "SegmentationResult",
    "Status",
    "Tree",
    "TreeNode",
    "TreeResult",
    "UMCRLS",
    "WTA",
    "c_rpcl",
    "cpm3c",
    "cpmmc",
    "cvqe",
    "datasets",
    "distributed",
    "evo_mmc",
    "factor",
    "fast_evo_mmc",
    "fscl",
    "gmmc",
    "iter_ls_svm",
    "iter_svm",
    "iter_svr",
    "lcvqe",
    "o_lcvqe",
    "plotting",
    "recursive_mmc",
    "rpcl",
    "sammc",
    "sdp_mmc",
    "segment",
    "umc_rls",
    "umc_rls_path",
    "wta",
]


if TYPE_CHECKING:
    from fastmmc import distributed, plotting
else:

    def __getattr__(name):
        if name in _LAZY:
            return importlib.import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_LAZY})
