"""scikit-learn estimators of the alternating family."""

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from fastmmc._callbacks import with_callbacks
from fastmmc._clusterer import MarginClusterer
from fastmmc._typing import MatrixLike
from fastmmc.alternating.methods import (
    IterLSSVMParameters,
    IterSVMParameters,
    IterSVRParameters,
    iter_ls_svm,
    iter_svm,
    iter_svr,
)


class _AlternatingClusterer(MarginClusterer):
    """What the estimators of the family share."""

    @with_callbacks
    def fit(self, X: MatrixLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Cluster the points.

        Parameters
        ----------
        X : (n, d) array_like or sparse matrix
            Points; with ``kernel="precomputed"`` their (n, n) Gram matrix.
        y : object, optional
            Ignored.
        sample_weight : (n,) array_like, optional
            Weights, at least 0: a point of weight s counts as s equal points, in the loss and in
            the size rule, which is then kept as nearly as whole points allow. A point of weight 0
            does not count, and gets its label from the model.

        Returns
        -------
        object
            Itself.

        Raises
        ------
        ValueError, TypeError, MemoryError
            As the function of the same method.
        """
        return self._fit(X, sample_weight=sample_weight)


class IterSVR(
    _AlternatingClusterer,
    IterSVRParameters,
    solver=iter_svr,
    paper="Zhang, Tsang, Kwok, ICML 2007",
    summary="support vector regression on the labels, and new labels from its scores, in turn",
):
    """Iterative support vector regression as a scikit-learn clusterer; always two clusters.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> fastmmc.IterSVR(random_state=0).fit(X).sizes_.sum()
    np.int64(150)
    """

    def _losses(self, margins):
        return np.maximum(0.0, np.abs(margins - 1.0) - self.epsilon)


class IterSVM(
    _AlternatingClusterer,
    IterSVMParameters,
    solver=iter_svm,
    paper="Zhang, Tsang, Kwok, ICML 2007",
    summary="the same with support vector machines; stays near its first labels",
):
    """Iterative support vector machines as a scikit-learn clusterer; always two clusters.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> fastmmc.IterSVM(random_state=0).fit(X).sizes_.sum()
    np.int64(150)
    """


class IterLSSVM(
    _AlternatingClusterer,
    IterLSSVMParameters,
    solver=iter_ls_svm,
    paper="Zhang, Tsang, Kwok, ICML 2007",
    summary="the same with least-squares machines: one factorisation for all rounds",
):
    """Iterative least-squares SVM as a scikit-learn clusterer; always two clusters.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> fastmmc.IterLSSVM(random_state=0).fit(X).sizes_.sum()
    np.int64(150)
    """

    def _losses(self, margins):
        return (margins - 1.0) ** 2
