"""Cutting planes: whole runs over n, the programs against daqp, kernels, quality."""

from functools import cache
from time import perf_counter

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.metrics import adjusted_rand_score

import fastmmc
from fastmmc.cutting_plane._loops_program import solve_program

from . import best_of, ratio

try:
    import daqp
except ImportError:
    daqp = None

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


def make_program(n_planes):
    """Return the program of so many random planes over a thousand points: Q, q, A, r."""
    X, _ = two_gaussians(1000)
    rng = np.random.default_rng(1)
    planes, offsets, heights = [], [], []
    for _ in range(n_planes):
        w = 0.2 * rng.standard_normal(D) + np.eye(D)[0]
        f = X @ w
        signs = np.where(np.abs(f) < 1.0, np.sign(f), 0.0)
        planes.append(signs @ (X - X.mean(axis=0)) / len(X))
        offsets.append(signs.mean())
        heights.append(np.abs(signs).mean())
    N = n_planes + 3
    Q, A = np.zeros((N, N)), np.zeros((2, N))
    Q[3:, 3:] = np.array(planes) @ np.array(planes).T
    A[0, 2:] = 1.0
    A[1, :2] = -1.0, 1.0
    A[1, 3:] = offsets
    return Q, np.concatenate(([-0.03, -0.03, 0.0], heights)), A, np.array([10.0, 0.0])


def solve_ours(Q, q, A, r):
    """Solve a program from nothing."""
    a, y = np.zeros(q.size), np.empty(2)
    a[0], a[2] = -1.0, r[0]
    solve_program(Q, q, A, r, a, y, 50 * q.size)
    return a


def prepare_daqp(Q, q, A, r):
    """Return a function that solves the program by daqp."""
    upper = np.concatenate((np.full(q.size, 1e30), r))
    lower = np.concatenate((np.zeros(q.size), r))
    sense = np.concatenate((np.zeros(q.size), np.full(2, 5))).astype(np.int32)
    return lambda: daqp.solve(Q, -q, A, upper, lower, sense)[0]


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


class Programs:
    """The active-set solver from nothing, and over daqp where that is installed."""

    param_names = ("planes",)
    params = (10, 50, 200)

    def setup(self, planes):
        self.program = make_program(planes)
        solve_ours(*make_program(3))

    def time_solve(self, planes):
        solve_ours(*self.program)

    def track_over_daqp(self, planes):
        if daqp is None:
            return float("nan")
        theirs = prepare_daqp(*self.program)
        Q, q = self.program[:2]
        ours, other = solve_ours(*self.program), theirs()
        assert np.isclose(0.5 * ours @ Q @ ours - q @ ours, 0.5 * other @ Q @ other - q @ other)
        return ratio(20, lambda: solve_ours(*self.program), theirs)


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
