"""The methods of the families in one table; the registry adds what is built upon them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fastmmc.alternating.estimators import IterLSSVM, IterSVM, IterSVR
from fastmmc.alternating.methods import iter_ls_svm, iter_svm, iter_svr
from fastmmc.annealing.estimators import SAMMC
from fastmmc.annealing.methods import sammc
from fastmmc.competitive.estimators import CRPCL, CVQE, FSCL, LCVQE, OLCVQE, RPCL, WTA
from fastmmc.competitive.methods import c_rpcl, cvqe, fscl, lcvqe, o_lcvqe, rpcl, wta
from fastmmc.cutting_plane.estimators import CPM3C, CPMMC
from fastmmc.cutting_plane.methods import cpm3c, cpmmc
from fastmmc.rls.estimators import UMCRLS, EvoMMC, FastEvoMMC
from fastmmc.rls.evolution import evo_mmc, fast_evo_mmc
from fastmmc.rls.methods import umc_rls
from fastmmc.sdp.estimators import GMMC, SDPMMC
from fastmmc.sdp.methods import gmmc, sdp_mmc


@dataclass(frozen=True)
class Method:
    """One entry of the registry.

    Attributes
    ----------
    name : str
        As the command line spells it.
    function : callable
        The solver.
    estimator : type
        The scikit-learn estimator.
    paper : str
        Where it comes from.
    summary : str
        One line on what it is.
    binary : bool
        Whether it makes two clusters only.
    extra : str or None
        The extra of this package that it needs.
    needs : tuple of str
        What that brings.
    """

    name: str
    function: Callable
    estimator: type
    paper: str
    summary: str
    binary: bool = False
    extra: str | None = None
    needs: tuple[str, ...] = ()


def registry_name(method):
    """Return a method's name as the registry spells it.

    Parameters
    ----------
    method : object
        What the user gave: the name of a function or of an entry, or something else.

    Returns
    -------
    object
        With - for _ if it is a string, else what was given.

    Examples
    --------
    >>> registry_name("evo_mmc"), registry_name("evo-mmc")
    ('evo-mmc', 'evo-mmc')
    """
    return method.replace("_", "-") if isinstance(method, str) else method


FAMILY_METHODS = {
    method.name: method
    for method in (
        Method(
            "umc-rls",
            umc_rls,
            UMCRLS,
            "Pahikkala, Airola, Gieseke, Kramer, ICDM 2012",
            "multi-class regularised least squares, steepest descent with shaking",
        ),
        Method(
            "evo-mmc",
            evo_mmc,
            EvoMMC,
            "Gieseke, Pahikkala, Kramer, ICML 2009",
            "evolution of two clusters over the dense hat matrix",
            binary=True,
        ),
        Method(
            "fast-evo-mmc",
            fast_evo_mmc,
            FastEvoMMC,
            "Gieseke, Pahikkala, Kramer, ICML 2009",
            "evolution of two clusters over a low-rank hat matrix",
            binary=True,
        ),
        Method(
            "iter-svr",
            iter_svr,
            IterSVR,
            "Zhang, Tsang, Kwok, ICML 2007",
            "support vector regression on the labels, and new labels from its scores, in turn",
            binary=True,
        ),
        Method(
            "iter-svm",
            iter_svm,
            IterSVM,
            "Zhang, Tsang, Kwok, ICML 2007",
            "the same with support vector machines; stays near its first labels",
            binary=True,
        ),
        Method(
            "iter-ls-svm",
            iter_ls_svm,
            IterLSSVM,
            "Zhang, Tsang, Kwok, ICML 2007",
            "the same with least-squares machines: one factorisation for all rounds",
            binary=True,
        ),
        Method(
            "wta",
            wta,
            WTA,
            "Kohonen, 1995",
            "on-line k-means: the nearest prototype learns every object",
        ),
        Method(
            "fscl",
            fscl,
            FSCL,
            "Ahalt, Krishnamurthy, Chen, Melton, Neural Networks 1990",
            "the same with distances weighted by wins, so that no prototype is left out",
        ),
        Method(
            "rpcl",
            rpcl,
            RPCL,
            "Xu, Krzyzak, Oja, IEEE TNN 1993",
            "the same, driving the second best away: estimates the number of clusters",
        ),
        Method(
            "c-rpcl",
            c_rpcl,
            CRPCL,
            "Covoes, Hruschka, Ghosh, IEEE TNNLS 2013",
            "the same with cannot-links and must-links",
        ),
        Method(
            "o-lcvqe",
            o_lcvqe,
            OLCVQE,
            "Covoes, Hruschka, Ghosh, IEEE TNNLS 2013",
            "on-line k-means with cannot-links and must-links",
        ),
        Method(
            "lcvqe",
            lcvqe,
            LCVQE,
            "Pelleg, Baras, ECML 2007",
            "k-means with soft cannot-links and must-links",
        ),
        Method(
            "cvqe",
            cvqe,
            CVQE,
            "Davidson, Ravi, SDM 2005",
            "the same with penalties between prototypes",
        ),
        Method(
            "sammc",
            sammc,
            SAMMC,
            "Seifollahi, Bagirov, Zare Borzeshi, Piccardi, Computational Intelligence 2019",
            "least sum of plain distances to the centers of large data",
        ),
        Method(
            "cpmmc",
            cpmmc,
            CPMMC,
            "Zhao, Wang, Zhang, SDM 2008",
            "a linear or kernel machine whose signs are the labels, by cutting planes",
            binary=True,
        ),
        Method(
            "cpm3c",
            cpm3c,
            CPM3C,
            "Zhao, Wang, Zhang, ICML 2008",
            "the same for many clusters, labels by the highest score",
        ),
        Method(
            "sdp-mmc",
            sdp_mmc,
            SDPMMC,
            "Xu, Neufeld, Larson, Schuurmans, NIPS 2004",
            "a semidefinite program whose value bounds what labels can reach; up to 150 points",
            binary=True,
            extra="sdp",
            needs=("cvxpy", "scs"),
        ),
        Method(
            "gmmc",
            gmmc,
            GMMC,
            "Valizadegan, Jin, NIPS 2006",
            "a smaller semidefinite program, with a bias; up to 150 points",
            binary=True,
            extra="sdp",
            needs=("cvxpy", "scs"),
        ),
    )
}
