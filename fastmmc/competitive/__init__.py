"""Competitive learning with and without constraints, and constrained k-means."""

from fastmmc.competitive.estimators import CRPCL, CVQE, FSCL, LCVQE, OLCVQE, RPCL, WTA
from fastmmc.competitive.methods import c_rpcl, cvqe, fscl, lcvqe, o_lcvqe, rpcl, wta

__all__ = [
    "CRPCL",
    "CVQE",
    "FSCL",
    "LCVQE",
    "OLCVQE",
    "RPCL",
    "WTA",
    "c_rpcl",
    "cvqe",
    "fscl",
    "lcvqe",
    "o_lcvqe",
    "rpcl",
    "wta",
]
