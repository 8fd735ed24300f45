"""scikit-learn estimators of the alternating family."""

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from fastmmc.alternating.methods import (
    IterLSSVMParameters,
    IterSVMParameters,
    IterSVRParameters,
    iter_ls_svm,
    iter_svm,
    iter_svr,
)
from fastmmc.alternating.rounds import DENSE_SOLVERS
from fastmmc.core.callbacks import with_callbacks
from fastmmc.core.clusterer import Clusterer, MarginClusterer
from fastmmc.core.docstrings import completed_by
from fastmmc.core.types import MatrixLike


class _AlternatingClusterer(MarginClusterer):
    """What the estimators of the family share."""

    @with_callbacks
    @completed_by(iter_svr)
    @completed_by(Clusterer.fit)
    def fit(self, X: MatrixLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Cluster the points."""
        return self._fit(X, sample_weight=sample_weight)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse &= getattr(self, "solver", None) not in DENSE_SOLVERS
        return tags


class IterSVR(
    _AlternatingClusterer,
    IterSVRParameters,
    solver=iter_svr,
    paper="Zhang, Tsang, Kwok, ICML 2007",
    summary="support vector regression on the labels, and new labels from its scores, in turn",
):
    """Iterative support vector regression as a scikit-learn clusterer; always two clusters."""

    def _losses(self, margins):
        return np.maximum(0.0, np.abs(margins - 1.0) - self.epsilon)


class IterSVM(
    _AlternatingClusterer,
    IterSVMParameters,
    solver=iter_svm,
    paper="Zhang, Tsang, Kwok, ICML 2007",
    summary="support vector machines and their labels in turn; stays near its first labels",
):
    """Iterative support vector machines as a scikit-learn clusterer; always two clusters."""


class IterLSSVM(
    _AlternatingClusterer,
    IterLSSVMParameters,
    solver=iter_ls_svm,
    paper="Zhang, Tsang, Kwok, ICML 2007",
    summary="least-squares machines and their labels in turn: one factorisation for all rounds",
):
    """Iterative least-squares SVM as a scikit-learn clusterer; always two clusters."""

    def _losses(self, margins):
        return (margins - 1.0) ** 2
