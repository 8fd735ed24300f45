"""SAMMC: time over n, the search against restarts, the objective brought up to date, memory."""

import warnings
from functools import cache
from time import perf_counter

import numpy as np
from sklearn.cluster import kmeans_plusplus
from sklearn.datasets import load_digits, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances_argmin_min

import fastmmc
from fastmmc.annealing import _kernels as kernels
from fastmmc.annealing._solver_points import Points, Walker, descend
from fastmmc.annealing._solver_representatives import cut

from . import best_of, ratio

SIZES = (1_000, 10_000, 100_000, 1_000_000)
D, K = 10, 10


@cache
def gaussians(n, d=D):
    """Return n points of ten Gaussians that overlap a little."""
    X, _ = make_blobs(n, d, centers=K, cluster_std=2.0, center_box=(-5.0, 5.0), random_state=0)
    return X


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
        self.X = gaussians(n)
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

    param_names = ("parts",)
    params = (500, 4000)
    timeout = 300
    unit = "ours / theirs"
    n, d = 58_000, 9

    def setup(self, parts):
        X = self.X = gaussians(self.n, self.d)
        rng = np.random.default_rng(0)
        labels = cut(X, parts, rng)
        order = np.argsort(labels, kind="stable")
        self.offsets = np.concatenate(([0], np.cumsum(np.bincount(labels))))
        members = np.split(X[order], self.offsets[1:-1])
        self.flat = np.concatenate([part.T.ravel() for part in members])
        means = np.array([part.mean(axis=0) for part in members])
        self.radii = np.array(
            [np.linalg.norm(p - m, axis=1).max() for p, m in zip(members, means, strict=True)]
        )
        self.means = np.ascontiguousarray(means.T)
        self.centers = X[rng.choice(self.n, K, replace=False)].copy()
        shape = (K, len(members))
        self.before = np.full(shape, np.nan), np.full(shape[1], np.nan)
        self.after = np.empty(shape), np.empty(shape[1])
        self.update(np.ones(K, dtype=bool))
        self.before = tuple(array.copy() for array in self.after)
        self.centers[:2] += 1e-3
        self.moved = np.arange(K) < 2
        self.walker = Walker(Points(X), "median")
        expected = pairwise_distances_argmin_min(X, self.centers)[1].sum()
        assert abs(self.update(self.moved) / expected - 1) < 1e-9

    def update(self, moved):
        ball = self.offsets, self.means, self.radii
        total, _ = kernels.update_costs(
            self.flat, *ball, self.centers, moved, *self.before, *self.after
        )
        return total

    def full(self):
        self.walker.assign(self.centers)
        return self.walker.distances.sum()

    def track_over_full(self, parts):
        return ratio(20, lambda: self.update(self.moved), self.full)

    def track_over_scikit_learn(self, parts):
        own, other = best_of(
            5,
            lambda: self.update(self.moved),
            lambda: pairwise_distances_argmin_min(self.X, self.centers)[1].sum(),
        )
        return own / other


class LargeMemory:
    """Peak memory of both searches on a million points."""

    timeout = 600
    n = 1_000_000

    def setup(self):
        warm_up()
        self.X = gaussians(self.n)

    def peakmem_annealing(self):
        anneal(self.X, 10)

    def peakmem_memetic(self):
        fastmmc.sammc(self.X, K, random_state=0)
