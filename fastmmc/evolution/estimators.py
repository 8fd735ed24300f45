"""The scikit-learn estimators of evolution."""

from fastmmc.evolution.methods import EvoMMCParameters, FastEvoMMCParameters, evo_mmc, fast_evo_mmc
from fastmmc.rls.estimators import RLSClusterer


class EvoMMC(
    RLSClusterer,
    EvoMMCParameters,
    solver=evo_mmc,
    paper="Gieseke, Pahikkala, Kramer, ICML 2009",
    summary="evolution of two clusters over the dense hat matrix",
):
    """Evolutionary maximum margin clustering as a scikit-learn clusterer; always two clusters."""


class FastEvoMMC(
    RLSClusterer,
    FastEvoMMCParameters,
    solver=fast_evo_mmc,
    paper="Gieseke, Pahikkala, Kramer, ICML 2009",
    summary="evolution of two clusters over a low-rank hat matrix",
):
    """Evolutionary MMC of low rank as a scikit-learn clusterer; always two clusters."""
