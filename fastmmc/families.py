"""The methods of the families in one table; the registry adds what is built upon them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fastmmc.alternating._estimator import IterLSSVM, IterSVM, IterSVR
from fastmmc.alternating._solver import iter_ls_svm, iter_svm, iter_svr
from fastmmc.rls._estimator import UMCRLS, EvoMMC, FastEvoMMC
from fastmmc.rls._solver import umc_rls
from fastmmc.rls._solver_evolution import evo_mmc, fast_evo_mmc


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
        The optional dependency it needs.
    """

    name: str
    function: Callable
    estimator: type
    paper: str
    summary: str
    binary: bool = False
    extra: str | None = None


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
    )
}
