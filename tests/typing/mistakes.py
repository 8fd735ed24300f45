"""Mistakes that mypy finds: one that it misses has an ``ignore`` too many, which is an error."""

import numpy as np

import fastmmc

X = np.zeros((10, 2))
res = fastmmc.umc_rls(X, 2)

fastmmc.umc_rls(X)  # type: ignore[call-arg]
fastmmc.umc_rls(X, 2, 0.5)  # type: ignore[call-arg]
fastmmc.umc_rls(X, 2, lamb=0.5)  # type: ignore[call-arg]
fastmmc.umc_rls(X, 2, lam="0.5")  # type: ignore[arg-type]
fastmmc.umc_rls(X, "2")  # type: ignore[arg-type]
fastmmc.umc_rls(X, 2, method="shake")  # type: ignore[arg-type]
fastmmc.umc_rls(X, 2, kernel="gauss")  # type: ignore[arg-type]
fastmmc.umc_rls(X, 2, callback=lambda: True)  # type: ignore[misc, arg-type]
fastmmc.umc_rls({0, 1}, 2)  # type: ignore[arg-type]
fastmmc.umc_rls_path(X, 2, 0.5)  # type: ignore[arg-type]
fastmmc.evo_mmc(X, 2)  # type: ignore[call-arg]
fastmmc.factor(X, dtype="float16")  # type: ignore[arg-type]
fastmmc.recursive_mmc(X, 3, split="smallest")  # type: ignore[arg-type]
fastmmc.segment(X, 3, min_region=0.1)  # type: ignore[arg-type]
fastmmc.segment(k=3)  # type: ignore[call-arg]
fastmmc.rpcl(X, 3, features="nystrom")  # type: ignore[arg-type]
fastmmc.distributed.fit_sharded(X, 3, combine="median")  # type: ignore[arg-type]
fastmmc.datasets.load("moons", on_line=True)  # type: ignore[call-arg]
fastmmc.plotting.TreeDisplay.from_result(res)  # type: ignore[arg-type]
fastmmc.umc_rlss(X, 2)  # type: ignore[attr-defined]
sorted(res.label)  # type: ignore[attr-defined]

fastmmc.UMCRLS(nclus=3)  # type: ignore[call-arg]
fastmmc.UMCRLS("3")  # type: ignore[arg-type]
fastmmc.UMCRLS(3, 0.5)  # type: ignore[call-arg, arg-type]
fastmmc.UMCRLS(rank="all")  # type: ignore[arg-type]
fastmmc.EvoMMC(2)  # type: ignore[call-arg]
fastmmc.EvoMMC(n_clusters=2)  # type: ignore[call-arg]
fastmmc.RecursiveMMC(3, n_init="auto")  # type: ignore[arg-type]
fastmmc.SAMMC(4, initial="random")  # type: ignore[call-arg]
fastmmc.SDPMMC(C="1")  # type: ignore[arg-type]
fastmmc.IterSVR(solver="libsvn")  # type: ignore[arg-type]
fastmmc.CPM3C(3, balance=0.1)  # type: ignore[call-arg]
fastmmc.RPCL(3, alfa=0.1)  # type: ignore[call-arg]
fastmmc.UMCRLS(3).fit(X, weights=[1.0])  # type: ignore[call-arg]
