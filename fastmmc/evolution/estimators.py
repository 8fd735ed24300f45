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
    """Evolutionary maximum margin clustering as a scikit-learn clusterer; always two clusters.

    See :func:`fastmmc.evo_mmc`.

    References
    ----------
    F. Gieseke, T. Pahikkala, O. Kramer, Fast evolutionary maximum margin clustering, ICML 2009.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("moons")
    >>> fastmmc.EvoMMC(random_state=0).fit(X).sizes_.sum()
    np.int64(200)
    """


class FastEvoMMC(
    RLSClusterer,
    FastEvoMMCParameters,
    solver=fast_evo_mmc,
    paper="Gieseke, Pahikkala, Kramer, ICML 2009",
    summary="evolution of two clusters over a low-rank hat matrix",
):
    """Evolutionary MMC on the low-rank hat matrix as a scikit-learn clusterer; always two clusters.

    See :func:`fastmmc.fast_evo_mmc`.

    References
    ----------
    F. Gieseke, T. Pahikkala, O. Kramer, Fast evolutionary maximum margin clustering, ICML 2009.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("moons")
    >>> fastmmc.FastEvoMMC(random_state=0).fit(X).sizes_.sum()
    np.int64(200)
    """
