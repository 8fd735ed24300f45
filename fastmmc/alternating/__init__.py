"""Alternating maximum-margin clustering: iterSVM, iterSVR and iterLS-SVM."""

from fastmmc.alternating._estimator import IterLSSVM, IterSVM, IterSVR
from fastmmc.alternating._solver import iter_ls_svm, iter_svm, iter_svr

__all__ = ["IterLSSVM", "IterSVM", "IterSVR", "iter_ls_svm", "iter_svm", "iter_svr"]
