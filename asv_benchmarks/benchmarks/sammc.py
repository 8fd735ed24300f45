"""SAMMC: time over n, the search against restarts, the objective brought up to date, memory."""

import warnings
from time import perf_counter

import numpy as np
from sklearn.cluster import kmeans_plusplus
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances_argmin_min

import fastmmc
from fastmmc.annealing.costs import BallCosts
from fastmmc.annealing.points import Points, Walker, descend

from . import ratio
from .datasets import blobs

SIZES = (1_000, 10_000, 100_000, 1_000_000)
D, K = 10, 10


def anneal(X, max_iter):
    """Run so many iterations of annealing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return fastmmc.sammc(
            X,
            K,
            search="annealing",
            max_representatives=500,
            max_iter=max_iter,
            patience=10**6,
            random_state=0,
        )


def warm_up(d=D):
    """Compile, or read what was compiled."""
    X = np.random.default_rng(0).standard_normal((200, d))
    anneal(X, 2)
    fastmmc.sammc(X, 3, max_representatives=40, patience=2, random_state=0)


class Length:
    """Whole calls over n."""

    param_names = ("n",)
    params = SIZES
    timeout = 600
    number, repeat, warmup_time = 1, (1, 3, 20.0), 0.0

    def setup(self, n):
        self.X = blobs(n, K, D)[0]
        warm_up()

    def time_annealing(self, n):
        anneal(self.X, 100)

    def time_memetic(self, n):
        fastmmc.sammc(self.X, K, random_state=0)


class OverRestarts:
    """Digits, 20 clusters: what the memetic search finds, over restarts at the same time."""

    timeout = 300
    unit = "ours / theirs"

    def setup(self):
        self.X = load_digits().data
        warm_up(self.X.shape[1])

    def track_objective(self):
        began = perf_counter()
        ours = fastmmc.sammc(self.X, 20, random_state=0).objective
        return ours / self.restarts(perf_counter() - began)

    def restarts(self, seconds):
        rng = np.random.default_rng(0)
        walker = Walker(Points(self.X), "median")
        best, began = np.inf, perf_counter()
        while perf_counter() - began < seconds:
            first, _ = kmeans_plusplus(self.X, 20, random_state=int(rng.integers(2**31)))
            best = min(best, run(descend(walker, first, 1e-5, rng))[0])
        return best


def run(generator):
    """Return what a generator returns."""
    while True:
        try:
            next(generator)
        except StopIteration as ended:
            return ended.value


class Evaluation:
    """Two of ten centers move a little, as when a representative changes its cluster."""

    timeout = 300
    unit = "ours / theirs"
    n, d = 58_000, 9

    def setup(self):
        X = self.X = blobs(self.n, K, self.d)[0]
        rng = np.random.default_rng(0)
        first = X[rng.choice(self.n, K, replace=False)]
        self.costs = run(BallCosts.making(Points(X), rng))
        self.before = self.costs.evaluate(first)
        self.centers = first.copy()
        self.centers[:2] += 1e-3
        self.walker = Walker(Points(X), "median")
        assert abs(self.update() / self.full() - 1) < 1e-9

    def update(self):
        return self.costs.evaluate(self.centers, self.before).objective

    def full(self):
        self.walker.assign(self.centers)
        return self.walker.distances.sum()

    def library(self):
        return pairwise_distances_argmin_min(self.X, self.centers)[1].sum()

    def track_over_full(self):
        return ratio(20, self.update, self.full)

    def track_over_scikit_learn(self):
        return ratio(5, self.update, self.library)


class LargeMemory:
    """Peak memory of both searches on a million points."""

    timeout = 600
    n = 1_000_000

    def setup(self):
        warm_up()
        self.X = blobs(self.n, K, D)[0]

    def peakmem_annealing(self):
        anneal(self.X, 10)

    def peakmem_memetic(self):
        fastmmc.sammc(self.X, K, random_state=0)
