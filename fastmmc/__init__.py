"""Maximum-margin clustering: compiled solvers for labels under which a kernel machine fits best.

>>> import fastmmc
>>> X, y = fastmmc.datasets.load("moons")
>>> fastmmc.umc_rls(X, 2).sizes
array([100, 100])
"""

import importlib
from typing import TYPE_CHECKING

from fastmmc import (
    alternating,
    annealing,
    competitive,
    cutting_plane,
    datasets,
    evolution,
    rls,
    sdp,
)
from fastmmc._version import __version__ as __version__
from fastmmc.alternating import *
from fastmmc.annealing import *
from fastmmc.choice import AutoMMC, Candidate, ChoiceResult, cluster
from fastmmc.competitive import *
from fastmmc.core import results
from fastmmc.core.execution import Progress
from fastmmc.core.results import *
from fastmmc.core.saving import load
from fastmmc.core.status import Status
from fastmmc.cutting_plane import *
from fastmmc.evolution import *
from fastmmc.influence import FeatureInfluence, feature_influence
from fastmmc.kernels.block_factor import BlockFactor
from fastmmc.kernels.factors import DenseFactor, LowRankFactor, factor
from fastmmc.numbering import NumberedClusters, keep_numbers
from fastmmc.profile import ClusterProfile
from fastmmc.recursive import RecursiveMMC, recursive_mmc
from fastmmc.registry import METHODS
from fastmmc.rls import *
from fastmmc.sdp import *
from fastmmc.segmentation import segment
from fastmmc.trees import Tree, TreeNode, TreeResult

__all__ = [
    "METHODS",
    "AutoMMC",
    "BlockFactor",
    "Candidate",
    "ChoiceResult",
    "ClusterProfile",
    "DenseFactor",
    "FeatureInfluence",
    "LowRankFactor",
    "NumberedClusters",
    "Progress",
    "RecursiveMMC",
    "Status",
    "Tree",
    "TreeNode",
    "TreeResult",
    "cluster",
    "datasets",
    "distributed",
    "factor",
    "feature_influence",
    "keep_numbers",
    "load",
    "plotting",
    "recursive_mmc",
    "segment",
]
# One statement each, as type checkers understand no loop.
__all__ += alternating.__all__
__all__ += annealing.__all__
__all__ += competitive.__all__
__all__ += cutting_plane.__all__
__all__ += evolution.__all__
__all__ += results.__all__
__all__ += rls.__all__
__all__ += sdp.__all__
__all__.sort()


if TYPE_CHECKING:
    from fastmmc import distributed, plotting
else:

    def __getattr__(name):
        if name in __all__:  # loaded when it is first asked for, so that the import stays light
            return importlib.import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return [*__all__, "__version__"]
