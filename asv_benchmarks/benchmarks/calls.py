"""Whole calls: one of each method, long ones, and libraries that do the same."""

import warnings
from functools import partial

import numpy as np
from sklearn.cluster import KMeans, MiniBatchKMeans
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
    number, repeat, warmup_time = 1, (1, 5, 20.0), 0.0

    def setup(self, method):
        self.k = 2 if fastmmc.METHODS[method].binary else K
        self.X, self.y = blobs(POINTS.get(method, 1000), self.k)
        try:
            call(method, self.X[:40], 2)
        except ImportError as error:
            raise NotImplementedError(str(error)) from error  # asv leaves it out

    def time_call(self, method):
        call(method, self.X)

    peakmem_call = time_call

    def track_ari(self, method):
        return adjusted_rand_score(self.y, call(method, self.X).labels)


# What is to grow in proportion to n.
LONG = {
    "umc_rls": lambda X: call("umc-rls", X),
    "umc_rls, rank 100": lambda X: call("umc-rls", X, method="shaking", rank=100, n_init=1),
    "cpmmc": lambda X: call("cpmmc", X, n_init=1),
    "sammc": lambda X: call("sammc", X),
    "segment": lambda X: fastmmc.segment(X[:, :3].reshape(-1, 100, 3), K, random_state=0),
    "CRPCL.partial_fit": lambda X: fastmmc.CRPCL(K, init=X[:K]).partial_fit(X),
}


class Length:
    """Whole calls over n: time and peak memory."""

    param_names = ("n", "call")
    params = ((10_000, 100_000), tuple(LONG))
    number, repeat, warmup_time = 1, (1, 3, 30.0), 0.0

    def setup(self, n, call):
        self.X, _ = blobs(n, K)
        LONG[call](self.X[:4000])

    def time_call(self, n, call):
        LONG[call](self.X)

    peakmem_call = time_call


class OverLibsvm:
    """All rounds of iterSVR, Gram matrix included, by our solver and by LIBSVM."""

    param_names = ("n",)
    params = (500, 2000)
    unit = "ours / theirs"

    def run(self, n, solver):
        return call("iter-svr", blobs(n, 2, 20)[0], solver=solver, tol=1e-3, n_init=1)

    def setup(self, n):
        ours, theirs = (self.run(100, solver).objective for solver in ("smo", "libsvm"))
        assert np.isclose(ours, theirs, rtol=1e-2)

    def track_over_libsvm(self, n):
        return ratio(2, lambda: self.run(n, "smo"), lambda: self.run(n, "libsvm"))


# The lines of Figure 1 of the EvoMMC paper, and the sizes up to which each is bearable here.
OURS = {"EvoMMC": "evo-mmc", "FastEvoMMC": "fast-evo-mmc"}
RUNS = dict.fromkeys(OURS, 4000)
RUNS |= {"EvoMMC, Theorem 1": 2000, "EvoMMC(n^2)": 1000, "EvoMMC(SVM)": 120}


def whole_run(method, X):
    """Cluster X in two, one start with one parent and one child, by a line of the figure."""
    lam, balance, n = 0.5, 0.1, len(X)
    if method in OURS:
        return call(OURS[method], X, lam=lam, balance=balance, n_init=1, mu=1, nu=1)
    sigma = box_diagonal(X)
    if method == "EvoMMC(SVM)":
        route = SupportVectorFitness(Kernel("rbf", sigma=sigma).block(X, X), lam)
    else:
        factor = fastmmc.factor(X, lam=lam, sigma=sigma)
        route = (SpectralFitness if method.endswith("1") else DirectFitness)(factor)
    half = int(balance * n / 2)
    y = np.where(np.random.default_rng(0).permutation(n) < n // 2, 1.0, -1.0)
    given = {"lower": n // 2 - half, "upper": n - n // 2 + half, "random": np.ones(1, np.uint64)}
    return evolve(route, y, max_iter=20 * n, patience=20 * n, **given)


class WholeRun:
    """Figure 1 of the paper: points to labels, over n, by each way to the fitness.

    Ours run until a proven local optimum; the paper's ways get 20 n generations, which is what
    its Table 2 needs at least.
    """

    param_names = ("method", "n")
    params = (tuple(RUNS), (120, 1000, 4000))

    def setup(self, method, n):
        if n > RUNS[method]:
            raise NotImplementedError
        self.X, _ = two_classes(n)
        whole_run(method, two_classes(20)[0])

    def time_run(self, method, n):
        whole_run(method, self.X)


STREAMS = {"WTA": fastmmc.WTA, "CRPCL": fastmmc.CRPCL, "OLCVQE": fastmmc.OLCVQE}


def stream_pair(name):
    """Return a stream in chunks of 1,024, and MiniBatchKMeans in the same chunks."""
    X, _ = blobs(100_000, K, 16)

    def present(make, **given):
        model = make(K, init=X[:K], **given)
        for at in range(0, len(X), 1024):
            model.partial_fit(X[at : at + 1024])
        return model

    ours = partial(present, STREAMS[name])
    theirs = partial(present, MiniBatchKMeans, n_init=1, random_state=0)
    assert ours().score(X) > 1.5 * theirs().score(X)
    return ours, theirs


def large_pair():
    """Return ten starts on 14,000 points in 784 dimensions, by FastEvoMMC and by k-means."""
    X, _ = two_classes(14_000, 784)
    call("fast-evo-mmc", X[:300], rank=140)
    theirs = KMeans(2, n_init=10, random_state=0)
    return lambda: call("fast-evo-mmc", X, rank=140, n_init=10), lambda: theirs.fit(X)


STREAM_PAIRS = {name: f"{name} / mini-batches" for name in STREAMS}
PAIRS = {pair: partial(stream_pair, name) for name, pair in STREAM_PAIRS.items()}
PAIRS |= {"FastEvoMMC / k-means": large_pair}


class OverPeers:
    """Whole calls over scikit-learn's k-means and its mini-batches."""

    param_names = ("pair",)
    params = tuple(PAIRS)
    unit = "ours / theirs"

    def setup(self, pair):
        self.pair = PAIRS[pair]()

    def track_over_peer(self, pair):
        return ratio(3, *self.pair)
