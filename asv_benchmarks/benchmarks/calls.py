"""Whole calls: one of each method, long ones, their quality, and libraries that do the same."""

import warnings

import numpy as np
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.datasets import load_sample_image
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import fastmmc
from fastmmc.kernels.gram import Kernel, box_diagonal

from . import blobs, ratio, two_classes
from .paper_fitness import DirectFitness, SpectralFitness, SupportVectorFitness, evolve

K = 10
# Points of a call: the programs of the semidefinite methods are large already.
POINTS = {"sdp-mmc": 40, "gmmc": 40}


def call(name, X, k=K, **params):
    """Cluster by a method of the registry, with its defaults."""
    method = fastmmc.METHODS[name]
    count = () if method.binary else (k,)
    if "random_state" in method.parameters:
        params = {"random_state": 0} | params
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return method.function(X, *count, **params)


class Calls:
    """Points to labels by every method, with its defaults: time, peak memory, ARI."""

    param_names = ("method",)
    params = tuple(fastmmc.METHODS)
    timeout = 300
    number, repeat, warmup_time = 1, (1, 5, 20.0), 0.0

    def setup(self, method):
        self.k = 2 if fastmmc.METHODS[method].binary else K
        self.X, self.y = blobs(POINTS.get(method, 1000), self.k)
        try:
            call(method, self.X[:40], 2)
        except ImportError as error:  # that is how asv is told to leave one out
            raise NotImplementedError(str(error)) from error

    def time_call(self, method):
        call(method, self.X)

    def peakmem_call(self, method):
        call(method, self.X)

    def track_ari(self, method):
        return adjusted_rand_score(self.y, call(method, self.X).labels)


# What is to grow in proportion to n.
LONG = {
    "umc_rls": lambda X: call("umc-rls", X),
    "umc_rls, rank 100": lambda X: call("umc-rls", X, method="shaking", rank=100, n_init=1),
    "cpmmc": lambda X: call("cpmmc", X, n_init=1),
    "sammc": lambda X: call("sammc", X),
    "CRPCL.partial_fit": lambda X: fastmmc.CRPCL(K, init=X[:K]).partial_fit(X),
}


class Length:
    """Whole calls over n: time and peak memory."""

    param_names = ("n", "call")
    params = ((10_000, 100_000, 1_000_000), tuple(LONG))
    timeout = 900
    number, repeat, warmup_time = 1, (1, 3, 30.0), 0.0

    def setup(self, n, call):
        self.X, _ = blobs(n, K)
        LONG[call](self.X[:4000])

    def time_call(self, n, call):
        LONG[call](self.X)

    def peakmem_call(self, n, call):
        LONG[call](self.X)


class DigitsQuality:
    """ARI and objective of UMC-RLS on scikit-learn's digits, over ten seeds."""

    param_names = ("method",)
    params = ("memetic", "shaking", "steepest", "stochastic")
    timeout = 600

    def setup_cache(self):
        X, y = fastmmc.datasets.load("digits")
        factor = fastmmc.factor(X)
        # The same size rule for all, or the objectives could not be compared.
        return {
            method: [
                (adjusted_rand_score(y, run.labels), run.objective)
                for seed in range(10)
                for run in [
                    fastmmc.umc_rls(factor, K, method=method, balance=0.4, random_state=seed)
                ]
            ]
            for method in self.params
        }

    def track_ari(self, found, method):
        return float(np.median(found[method], axis=0)[0])

    def track_lowest_ari(self, found, method):
        return min(found[method])[0]

    def track_objective(self, found, method):
        return float(np.median(found[method], axis=0)[1])


def gram_of_blobs(n):
    X = blobs(n, 2, 20)[0]
    return Kernel("rbf", sigma=3.0 * box_diagonal(X)).block(X, X)


class OverLibsvm:
    """All rounds of iterSVR from a Gram matrix, by our solver and by LIBSVM."""

    param_names = ("n",)
    params = (500, 2000)
    timeout = 600
    unit = "ours / theirs"

    def run(self, K, solver):
        return call("iter-svr", K, kernel="precomputed", solver=solver, tol=1e-3, n_init=1)

    def setup(self, n):
        self.K, small = gram_of_blobs(n), gram_of_blobs(100)
        ours, theirs = (self.run(small, solver).objective for solver in ("smo", "libsvm"))
        assert np.isclose(ours, theirs, rtol=1e-2)

    def track_over_libsvm(self, n):
        return ratio(2, lambda: self.run(self.K, "smo"), lambda: self.run(self.K, "libsvm"))


# The lines of Figure 1 of the EvoMMC paper, and the sizes up to which each is bearable here.
RUNS = {
    "EvoMMC": 4000,
    "FastEvoMMC": 4000,
    "EvoMMC, Theorem 1": 2000,
    "EvoMMC(n^2)": 1000,
    "EvoMMC(SVM)": 120,
}
RUN_SIZES = (30, 60, 120, 250, 500, 1000, 2000, 4000)


def whole_run(method, X):
    """Cluster X in two, one start with one parent and one child, by a line of the figure."""
    lam, balance, n = 0.5, 0.1, len(X)
    if method in ("EvoMMC", "FastEvoMMC"):
        name = {"EvoMMC": "evo-mmc", "FastEvoMMC": "fast-evo-mmc"}[method]
        return call(name, X, lam=lam, balance=balance, n_init=1, mu=1, nu=1)
    sigma = box_diagonal(X)
    if method == "EvoMMC(SVM)":
        route = SupportVectorFitness(Kernel("rbf", sigma=sigma).block(X, X), lam)
    else:
        factor = fastmmc.factor(X, lam=lam, sigma=sigma)
        route = (SpectralFitness if method.endswith("1") else DirectFitness)(factor)
    half = int(balance * n / 2)
    y = np.where(np.random.default_rng(0).permutation(n) < n // 2, 1.0, -1.0)[None]
    bounds = {"lower": n // 2 - half, "upper": n - n // 2 + half}
    random = np.ones(1, dtype=np.uint64)
    return evolve(route, y, nu=1, max_iter=20 * n, patience=20 * n, random=random, **bounds)


class WholeRun:
    """Figure 1 of the paper: points to labels, over n, by each way to the fitness.

    Ours run until a proven local optimum; the paper's ways get 20 n generations, which is what
    its Table 2 needs at least.
    """

    param_names = ("method", "n")
    params = (tuple(RUNS), (120, 1000, 4000))
    timeout = 300

    def setup(self, method, n):
        if n > RUNS[method]:
            raise NotImplementedError
        self.X, _ = two_classes(n)
        whole_run(method, two_classes(20)[0])

    def time_run(self, method, n):
        whole_run(method, self.X)


CHUNK = 1024
STREAMS = {"WTA": fastmmc.WTA, "CRPCL": fastmmc.CRPCL, "OLCVQE": fastmmc.OLCVQE}


def present_chunks(model, X):
    """Present objects in chunks."""
    for at in range(0, len(X), CHUNK):
        model.partial_fit(X[at : at + CHUNK])
    return model


def numpy_c_rpcl(X, centers, alpha=0.05, beta=0.002):
    """Present objects to C-RPCL by whole-array operations, as good NumPy code would."""
    centers, wins = centers.copy(), np.ones(len(centers))
    for x in X:
        away = x - centers
        cost = wins * np.einsum("jf,jf->j", away, away)
        winner = cost.argmin()
        cost[winner] = np.inf
        rival = cost.argmin()
        centers[rival] -= beta * away[rival]
        centers[winner] += alpha * away[winner]
        wins[winner] += 1.0
    return centers


class OverPeers:
    """Whole calls over scikit-learn's k-means, its mini-batches, and NumPy."""

    timeout = 600
    unit = "ours / theirs"

    def setup(self):
        self.X, _ = blobs(100_000, K, 16)

    def stream(self, name):
        """Return a stream in chunks of 1,024 over MiniBatchKMeans in the same chunks."""
        X, init = self.X, self.X[:K]

        def ours(X=X):
            return present_chunks(STREAMS[name](K, init=init), X)

        def theirs(X=X):
            return present_chunks(MiniBatchKMeans(K, init=init, n_init=1, random_state=0), X)

        ours(X[:CHUNK]), theirs(X[:CHUNK])
        assert ours().score(X) > 1.5 * theirs().score(X)
        return ratio(3, ours, theirs)

    def track_wta_over_mini_batches(self):
        return self.stream("WTA")

    def track_c_rpcl_over_mini_batches(self):
        return self.stream("CRPCL")

    def track_o_lcvqe_over_mini_batches(self):
        return self.stream("OLCVQE")

    def track_c_rpcl_over_numpy(self):
        X = self.X[:20_000]

        def ours():
            return fastmmc.CRPCL(K, init=X[:K]).partial_fit(X).cluster_centers_

        assert np.allclose(ours(), numpy_c_rpcl(X, X[:K]))
        return ratio(3, ours, lambda: numpy_c_rpcl(X, X[:K]))

    def track_fast_evo_mmc_over_kmeans(self):
        """14,000 points in 784 dimensions, ten starts each."""
        X, _ = two_classes(14_000, 784)
        call("fast-evo-mmc", X[:300], rank=140)
        theirs = KMeans(2, n_init=10, random_state=0)
        return ratio(2, lambda: call("fast-evo-mmc", X, rank=140, n_init=10), lambda: theirs.fit(X))

    def track_segment_over_kmeans(self):
        """Four segments of a photograph, 640 x 427 pixels, and k-means on its pixels."""
        image = load_sample_image("china.jpg")
        pixels, theirs = image.reshape(-1, 3).astype(float), KMeans(4, n_init=10, random_state=0)
        fastmmc.segment(image[::16, ::16], 4, random_state=0)
        return ratio(
            2, lambda: fastmmc.segment(image, 4, random_state=0), lambda: theirs.fit(pixels)
        )
