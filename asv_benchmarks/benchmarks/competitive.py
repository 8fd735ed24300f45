"""Competitive learning: objects a second, other ways to it, epochs against rounds, memory."""

import warnings
from functools import cache

import numpy as np
from sklearn.cluster import MiniBatchKMeans
from sklearn.exceptions import ConvergenceWarning

import fastmmc
from fastmmc.distributed import fit_sharded

from . import best_of, ratio
from .datasets import blobs

SIZES = (10_000, 100_000, 1_000_000)
SHARES = (0.0, 0.01, 0.1)
METHODS = ("c_rpcl", "o_lcvqe")
ESTIMATORS = {"c_rpcl": fastmmc.CRPCL, "o_lcvqe": fastmmc.OLCVQE}
N, D, K = 20_000, 16, 10
CHUNK = 1024
ALPHA, BETA = 0.05, 0.002


@cache
def cannot_links(n, d, k, share):
    """Return pairs of objects of different Gaussians; that share of the objects is in one."""
    _, y = blobs(n, k, d)
    pairs = np.random.default_rng(0).permutation(n).reshape(-1, 2)
    return pairs[y[pairs[:, 0]] != y[pairs[:, 1]]][: round(share * n / 2)]


def present(method, X, k, pairs=None):
    """Present objects once, in one chunk; return the estimator."""
    model = ESTIMATORS[method](k, init=X[:k], memory_size=len(X))
    return model.partial_fit(X, cannot_link=pairs)


def present_chunks(model, X):
    """Present objects in chunks; return the estimator."""
    for at in range(0, len(X), CHUNK):
        model.partial_fit(X[at : at + CHUNK])
    return model


def warm_up(d=D):
    """Compile, or read what was compiled."""
    X = np.random.default_rng(0).standard_normal((20, d))
    for method in METHODS:
        present(method, X, 3, [(0, 1)])


class Length:
    """One chunk of n objects, of which one in a hundred is in a constraint."""

    param_names = ("n", "method")
    params = (SIZES, METHODS)
    timeout = 300
    number, repeat, warmup_time = 1, (1, 5, 10.0), 0.0

    def setup(self, n, method):
        self.X, _ = blobs(n, K, D)
        self.pairs = cannot_links(n, D, K, 0.01)
        warm_up()

    def time_partial_fit(self, n, method):
        present(method, self.X, K, self.pairs)


class Throughput:
    """Objects a second: higher is better, though asv marks a rise as a regression."""

    param_names = ("d", "k", "share")
    params = ((4, 16, 64), (3, 10, 30), SHARES)
    timeout = 300
    unit = "objects / s"

    def setup(self, d, k, share):
        self.X, _ = blobs(N, k, d)
        self.pairs = cannot_links(N, d, k, share)
        warm_up(d)

    def track_c_rpcl(self, d, k, share):
        return self.rate("c_rpcl", k)

    def track_o_lcvqe(self, d, k, share):
        return self.rate("o_lcvqe", k)

    def rate(self, method, k):
        (seconds,) = best_of(5, lambda: present(method, self.X, k, self.pairs))
        return N / seconds


class OverMiniBatch:
    """A stream in chunks of 1,024, in the given order, over scikit-learn's MiniBatchKMeans."""

    param_names = ("method",)
    params = ("wta", "c_rpcl", "o_lcvqe")
    timeout = 300
    unit = "ours / theirs"
    n = 100_000

    def setup(self, method):
        self.X, _ = blobs(self.n, K, D)
        self.estimator = {"wta": fastmmc.WTA, **ESTIMATORS}[method]
        self.ours(self.X[:CHUNK])
        self.theirs(self.X[:CHUNK])

    def ours(self, X):
        return present_chunks(self.estimator(K, init=self.X[:K]), X)

    def theirs(self, X):
        return present_chunks(MiniBatchKMeans(K, init=self.X[:K], n_init=1, random_state=0), X)

    def track_partial_fit(self, method):
        spread = -self.theirs(self.X).score(self.X) / self.n
        assert -self.ours(self.X).score(self.X) < 1.5 * spread
        return ratio(3, lambda: self.ours(self.X), lambda: self.theirs(self.X))


def numpy_c_rpcl(X, centers, partners):
    """Present objects to C-RPCL by whole-array operations, as good NumPy code would.

    ``partners`` has for objects in cannot-links those that were presented earlier.
    """
    centers, wins = centers.copy(), np.ones(len(centers))
    for i, x in enumerate(X):
        away = x - centers
        cost = wins * np.einsum("jf,jf->j", away, away)
        winner = learner = cost.argmin()
        if i in partners:
            other = X[partners[i]][:, None] - centers
            taken = (wins * np.einsum("ojf,ojf->oj", other, other)).argmin(axis=1)
            if winner in taken:
                cost[taken] = np.inf
                learner = cost.argmin()
        if learner == winner:
            cost[winner] = np.inf
            rival = cost.argmin()
        else:
            rival = winner
        centers[rival] -= BETA * away[rival]
        centers[learner] += ALPHA * away[learner]
        wins[learner] += 1.0
    return centers


def earlier_partners(pairs):
    """Return for each object that is the later one of pairs the earlier ones."""
    partners = {}
    for earlier, later in np.sort(pairs, axis=1).tolist():
        partners.setdefault(later, []).append(earlier)
    return partners


class OverNumpy:
    """C-RPCL over the same steps on whole arrays in NumPy."""

    param_names = ("share",)
    params = SHARES
    timeout = 300
    unit = "ours / theirs"

    def setup(self, share):
        self.X, _ = blobs(N, K, D)
        self.pairs = cannot_links(N, D, K, share)
        self.partners = earlier_partners(self.pairs)
        warm_up()

    def track_c_rpcl(self, share):
        def ours():
            return present("c_rpcl", self.X, K, self.pairs).cluster_centers_

        def theirs():
            return numpy_c_rpcl(self.X, self.X[:K], self.partners)

        assert np.allclose(ours(), theirs())
        return ratio(3, ours, theirs)


class EpochOverRound:
    """An epoch over a round of LCVQE, what comes before and after shared out among them."""

    param_names = ("method", "share")
    params = (METHODS, SHARES)
    timeout = 300
    unit = "epoch / round"
    n, n_epochs = 50_000, 10

    def setup(self, method, share):
        self.X, _ = blobs(self.n, K, D)
        self.pairs = cannot_links(self.n, D, K, share)
        warm_up()
        self.run("lcvqe", 1)

    def run(self, method, max_iter):
        with warnings.catch_warnings():
            # Of rounds these are few on purpose.
            warnings.simplefilter("ignore", ConvergenceWarning)
            return getattr(fastmmc, method)(
                self.X,
                K,
                init=self.X[:K],
                max_iter=max_iter,
                cannot_link=self.pairs,
                random_state=0,
            )

    def track_ratio(self, method, share):
        n_rounds = self.run("lcvqe", self.n_epochs).n_iter
        ours, theirs = best_of(
            3, lambda: self.run(method, self.n_epochs), lambda: self.run("lcvqe", self.n_epochs)
        )
        return (ours / self.n_epochs) / (theirs / n_rounds)


class LabelledStream:
    """A chunk of labelled objects, of k classes, with 4,000 remembered ones before it."""

    param_names = ("method", "labels_as")
    params = (METHODS, ("cannot_link", "both"))
    timeout = 300
    number, repeat, warmup_time = 1, (1, 5, 10.0), 0.0
    n_remembered, chunk = 4000, 500

    def setup(self, method, labels_as):
        X, y = blobs(N, K, D)
        self.model = ESTIMATORS[method](
            K, init=X[:K], labels_as=labels_as, memory_size=self.n_remembered
        )
        self.model.set_params(semi_supervised=True)
        for at in range(0, self.n_remembered, self.chunk):
            self.model.partial_fit(X[at : at + self.chunk], y[at : at + self.chunk])
        self.X, self.y = X[-self.chunk :], y[-self.chunk :]

    def time_partial_fit(self, method, labels_as):
        self.model.partial_fit(self.X, self.y)

    def peakmem_partial_fit(self, method, labels_as):
        self.model.partial_fit(self.X, self.y)


class LongStream:
    """Memory of a stream of which one object in a hundred is labelled: flat in its length."""

    param_names = ("n",)
    params = (100_000, 1_000_000)
    timeout = 300
    chunk = 10_000

    def setup(self, n):
        warm_up()

    def peakmem_c_rpcl(self, n):
        rng = np.random.default_rng(0)
        heaps = rng.uniform(-5.0, 5.0, (K, D))
        model = fastmmc.CRPCL(K, random_state=0, memory_size=1000, semi_supervised=True)
        for _ in range(n // self.chunk):
            y = rng.integers(K, size=self.chunk)
            X = heaps[y] + rng.standard_normal((self.chunk, D))
            model.partial_fit(X, np.where(rng.random(self.chunk) < 0.01, y, -1))
        assert model.n_seen_ == n


class Sharded:
    """Two workers in threads over one: half, where two processors are free."""

    param_names = ("sync_every",)
    params = (None, 20_000)
    timeout = 300
    unit = "two / one"
    n, n_epochs = 200_000, 3

    def setup(self, sync_every):
        self.X, _ = blobs(self.n, K, D)
        warm_up()

    def run(self, n_workers, sync_every):
        return fit_sharded(
            self.X,
            K,
            n_workers=n_workers,
            sync_every=sync_every,
            init=self.X[:K],
            max_iter=self.n_epochs,
            random_state=0,
        )

    def track_two_workers(self, sync_every):
        one, two = self.run(1, sync_every), self.run(2, sync_every)
        assert np.isclose(one.objective, two.objective, rtol=0.1)
        return ratio(3, lambda: self.run(2, sync_every), lambda: self.run(1, sync_every))
