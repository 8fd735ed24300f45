"""What a user writes, as type checkers see it; ``python -m mypy`` looks at it, nothing runs it."""

from pathlib import Path
from typing import assert_type

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

import fastmmc
from fastmmc import distributed, plotting

X, y = fastmmc.datasets.load("moons")
assert_type(X, np.ndarray)
assert_type(y, NDArray[np.int64] | None)

# Functions.
res = fastmmc.umc_rls(X, 2, lam=0.5, sigma=None, rank="auto", balance=0.1, random_state=0)
assert_type(res, fastmmc.RLSResult)
assert_type(res.labels, NDArray[np.int64])
assert_type(res.predict(X), NDArray[np.int64])
assert_type(res.loo_mse, float | None)
assert_type(res.gap, float | None)
assert_type(res.probabilities, NDArray[np.float64])
assert_type(res.predict_proba(X), NDArray[np.float64])
assert_type(res.outlier_scores, NDArray[np.float64] | None)
assert_type(res.exemplars, tuple[NDArray[np.int64], ...])
assert_type(res.status, fastmmc.Status)
assert_type(res.converged, bool)
res.save("result.npz")
fastmmc.umc_rls(X.tolist(), k=2, init="kmeans", known_labels=y)
fastmmc.umc_rls(csr_array(X), 2, rank=100, kernel=lambda A, B: A @ B.T)

factor = fastmmc.factor(X, lam=0.25, dtype="float32")
assert_type(factor, fastmmc.DenseFactor | fastmmc.LowRankFactor | fastmmc.BlockFactor)
fastmmc.umc_rls(factor, 3)
path = fastmmc.umc_rls_path(X, 3, [0.1, 1.0], n_init=5)
assert_type(path, list[fastmmc.RLSResult])
assert_type(fastmmc.fast_evo_mmc(factor, nu=2), fastmmc.RLSResult)
assert_type(fastmmc.c_rpcl(X, 3, must_link=[(0, 1)]).centers, NDArray[np.float64])

tree = fastmmc.recursive_mmc(X, 4, method="evo_mmc", method_params={"lam": 1.0}, split="gain")
assert_type(tree, fastmmc.TreeResult)
assert_type(tree.tree.as_text(), str)
picture = fastmmc.segment(np.zeros((4, 6, 3)), 2, sigma=None, min_region=3)
assert_type(picture.paint(), NDArray[np.float64])
shards = distributed.fit_sharded(X, 3, n_workers=2)
assert_type(shards, fastmmc.CentroidResult)


def stop(progress: fastmmc.Progress) -> bool:
    """Stop after a second."""
    assert_type(progress.fraction, float)
    return progress.elapsed > 1.0


fastmmc.umc_rls(X, 2, callback=stop, max_time=10)

# Estimators.
model = fastmmc.UMCRLS(3, lam=0.5, semi_supervised=True)
assert_type(model.fit(X, y), fastmmc.UMCRLS)
assert_type(model.lam, float)
assert_type(model.n_clusters, int)
assert_type(model.labels_, NDArray[np.int64])
assert_type(model.predict(X), NDArray[np.int64])
assert_type(model.fit_predict(X), NDArray[np.int64])
assert_type(model.predict_proba(X), NDArray[np.float64])
assert_type(model.score(X), float)
assert_type(model.set_params(lam=1.0), fastmmc.UMCRLS)
assert_type(fastmmc.EvoMMC(mu=1).fit(X).mu, int)
assert_type(fastmmc.RecursiveMMC(4).fit(X, sample_weight=[1.0, 2.0]), fastmmc.RecursiveMMC)
stream = fastmmc.RPCL(n_clusters=5).partial_fit(X)
assert_type(stream, fastmmc.RPCL)
assert_type(stream.transform(X), NDArray[np.float64])
assert_type(fastmmc.SAMMC(3).fit(X).transform(csr_array(X)), NDArray[np.float64])
assert_type(fastmmc.IterSVR(C=10.0).fit(X, sample_weight=np.ones(200)), fastmmc.IterSVR)
model.save(Path("model.npz"))
assert_type(fastmmc.UMCRLS.load("model.npz"), fastmmc.UMCRLS)
assert_type(fastmmc.RPCL.load(Path("stream.npz")), fastmmc.RPCL)

# The rest.
assert_type(fastmmc.feature_influence(model, X, n_repeats=2), fastmmc.FeatureInfluence)
assert_type(res.profile(X), fastmmc.ClusterProfile)
assert_type(res.profile(X.tolist()).shares, NDArray[np.float64])
kept = fastmmc.keep_numbers(model, res, X)
assert_type(kept, fastmmc.NumberedClusters)
assert_type(fastmmc.keep_numbers(res, kept, rows=range(200)).labels, NDArray[np.int64])
assert_type(
    plotting.ClusterDisplay.from_result(res, X, s=3).plot(), fastmmc.plotting.ClusterDisplay
)
chosen = fastmmc.cluster(X, max_k=5)
assert_type(chosen.errors, dict[int, float])
assert_type(chosen.winner, fastmmc.Candidate)
assert_type(chosen.seconds, float | None)
assert_type(plotting.ChoiceDisplay.from_result(chosen, alpha=0.5), plotting.ChoiceDisplay)
assert_type(plotting.ClusterDisplay.from_estimator(model, X), plotting.ClusterDisplay)
assert_type(plotting.TreeDisplay.from_estimator(fastmmc.RecursiveMMC(3)), plotting.TreeDisplay)
assert_type(fastmmc.METHODS["umc-rls"].binary, bool)
