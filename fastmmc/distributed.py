"""Clustering by several workers, in threads, in processes or on a cluster."""

from fastmmc.competitive.sharded import fit_sharded

__all__ = ["fit_sharded"]
