"""Cutting planes: whole runs over n, kernels, quality."""

from functools import cache
from time import perf_counter

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.metrics import adjusted_rand_score

import fastmmc

from . import best_of, ratio

SIZES = (10_000, 100_000, 1_000_000)
D = 50
C = 1.0
SEEDS = range(10)


@cache
def two_gaussians(n, d=D):
    """Return n points of two Gaussians that overlap, and which they are of."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=n)
    X = rng.standard_normal((n, d))
    X[:, :10] += 1.4 * (y[:, None] - 0.5)
    return X, y


def run(X, **params):
    return fastmmc.cpmmc(X, **({"C": C, "n_init": 1, "random_state": 0} | params))


class Length:
    """One start over the number of points, in 50 dimensions."""

    param_names = ("n",)
    params = SIZES
    timeout = 600
    number, repeat, warmup_time = 1, (1, 3, 30.0), 0.0

    def setup(self, n):
        self.X, _ = two_gaussians(n)
        run(two_gaussians(100)[0])

    def time_run(self, n):
        run(self.X)

    def peakmem_run(self, n):
        run(self.X)

    def track_planes(self, n):
        return run(self.X).n_iter


class Slope:
    """Growth of the time with n: the exponent is 1 if it is linear."""

    timeout = 900

    def setup_cache(self):
        run(two_gaussians(100)[0])
        seconds, programs = [], []
        for n in SIZES:
            X = two_gaussians(n)[0]
            (best,) = best_of(2, lambda X=X: run(X))
            seconds.append(best)
            programs.append(len(run(X).history))
        return seconds, programs

    def track_slope(self, found):
        return float(np.polyfit(np.log(SIZES), np.log(found[0]), 1)[0])

    def track_slope_of_a_program(self, found):
        """The same for one pass over the points and its program."""
        each = np.array(found[0]) / np.array(found[1])
        return float(np.polyfit(np.log(SIZES), np.log(each), 1)[0])


class Forms:
    """Sparse points over dense ones, and a kernel map of 2,000 points."""

    timeout = 300
    number, repeat, warmup_time = 1, (1, 3, 30.0), 0.0

    def setup(self):
        rng = np.random.default_rng(0)
        X, _ = two_gaussians(20_000)
        self.X = np.where(rng.random(X.shape) < 0.9, 0.0, X)
        self.sparse = csr_matrix(self.X)
        self.few = two_gaussians(2000)[0]
        run(self.few[:100], kernel="rbf")
        run(self.sparse[:100])

    def track_sparse_over_dense(self):
        """With a tenth of the entries."""
        return ratio(3, lambda: run(self.sparse), lambda: run(self.X))

    def time_kernel(self):
        run(self.few, kernel="rbf", C=100.0)


class Quality:
    """ARI and objective of ten seeds, ten starts each; higher ARI is better."""

    param_names = ("method",)
    params = ("cpmmc", "cpm3c")
    timeout = 600

    def setup_cache(self):
        found = {}
        X, y = two_gaussians(2000)
        digits, names = fastmmc.datasets.load("digits")
        few = names < 4
        for method in self.params:
            rows = []
            for seed in SEEDS:
                began = perf_counter()
                if method == "cpmmc":
                    result, truth = fastmmc.cpmmc(X, random_state=seed), y
                else:
                    result = fastmmc.cpm3c(digits[few], 4, kernel="rbf", C=10.0, random_state=seed)
                    truth = names[few]
                ari = adjusted_rand_score(truth, result.labels)
                rows.append((ari, result.objective, perf_counter() - began))
            found[method] = np.array(rows)
        return found

    def track_ari(self, found, method):
        return float(np.median(found[method][:, 0]))

    def track_lowest_ari(self, found, method):
        return float(found[method][:, 0].min())

    def track_objective(self, found, method):
        return float(np.median(found[method][:, 1]))

    def track_seconds(self, found, method):
        return float(np.median(found[method][1:, 2]))
