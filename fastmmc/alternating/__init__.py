"""Alternating maximum-margin clustering: iterSVM, iterSVR and iterLS-SVM."""

from fastmmc.alternating.estimators import IterLSSVM, IterSVM, IterSVR
from fastmmc.alternating.methods import iter_ls_svm, iter_svm, iter_svr

__all__ = ["IterLSSVM", "IterSVM", "IterSVR", "iter_ls_svm", "iter_svm", "iter_svr"]
