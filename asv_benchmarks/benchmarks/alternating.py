"""iterSVR: whole runs on a Gram matrix and on features, one training, the bias search."""

from functools import cache
from time import perf_counter

import numpy as np

import fastmmc
from fastmmc.alternating.bias import WeightBounds, search_bias
from fastmmc.alternating.machines import DualMachine, LibsvmMachine
from fastmmc.data.sizes import binary_bounds
from fastmmc.kernels.gram import Kernel, box_diagonal

from . import ratio

SIZES = (500, 1000, 2000, 4000)
C = 500.0
TOL = 1e-3
BALANCE = 0.03

# Elementary operations between two looks at the clock: there is none here.
BUDGET = 2**62


@cache
def two_gaussians(n, d=20):
    """Return n points of two Gaussians, and which they are of."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=n)
    return rng.standard_normal((n, d)) + 1.2 * (y[:, None] - 0.5), y


@cache
def gram_matrix(n):
    X, _ = two_gaussians(n)
    return Kernel("rbf", sigma=3.0 * box_diagonal(X)).block(X, X)


def run(K, solver):
    return fastmmc.iter_svr(
        K, kernel="precomputed", solver=solver, tol=TOL, n_init=1, random_state=0
    )


def train(machine, y):
    """Train a machine and return the objective."""
    machine.begin(y)
    while not machine.step(BUDGET):
        pass
    return machine.objective


class Loop:
    """All rounds of iterSVR from a Gram matrix, by our solver and by LIBSVM."""

    param_names = ("n", "solver")
    params = (SIZES, ("smo", "libsvm"))
    timeout = 600
    number, repeat, warmup_time = 1, (1, 5, 60.0), 0.0

    def setup(self, n, solver):
        self.K = gram_matrix(n)
        run(gram_matrix(100), solver)

    def time_loop(self, n, solver):
        run(self.K, solver)

    def peakmem_loop(self, n, solver):
        run(self.K, solver)

    def track_rounds(self, n, solver):
        return run(self.K, solver).n_iter


class OverLibsvm:
    """Our solver over LIBSVM, as scikit-learn's SVR calls it."""

    param_names = ("n",)
    params = SIZES
    timeout = 600
    unit = "ours / theirs"

    def setup(self, n):
        self.K = gram_matrix(n)
        small = run(gram_matrix(100), "smo"), run(gram_matrix(100), "libsvm")
        assert np.isclose(small[0].objective, small[1].objective, rtol=1e-2)

    def track_loop(self, n):
        return ratio(2, lambda: run(self.K, "smo"), lambda: run(self.K, "libsvm"))

    def track_training(self, n):
        """One machine from scratch, on the labels of the Gaussians."""
        y = 2.0 * two_gaussians(n)[1] - 1.0
        settings = np.full(n, C), False, 0.0, TOL

        def ours():
            return train(DualMachine(self.K, *settings), y)

        def theirs():
            return train(LibsvmMachine(self.K, *settings), y)

        assert np.isclose(ours(), theirs(), rtol=1e-2)
        return ratio(3, ours, theirs)


class BiasSearch:
    """The bias search over the sort of the scores that it begins with."""

    param_names = ("n", "loss")
    params = ((100_000, 1_000_000), ("laplace", "hinge", "square"))
    timeout = 300
    unit = "search / sort"

    def setup(self, n, loss):
        rng = np.random.default_rng(0)
        self.scores = rng.standard_normal(n) + np.where(rng.random(n) < 0.5, -1.0, 1.0)
        self.bounds = WeightBounds(np.ones(n), *binary_bounds(n, BALANCE, None, 1))
        few = WeightBounds(np.ones(100), *binary_bounds(100, BALANCE, None, 1))
        search_bias(self.scores[:100], few, loss)

    def track_over_sort(self, n, loss):
        return ratio(
            3,
            lambda: search_bias(self.scores, self.bounds, loss),
            lambda: np.argsort(self.scores, kind="stable"),
        )


class LowRank:
    """Points to labels on features of rank 200."""

    n, rank = 20_000, 200
    timeout = 600

    def setup_cache(self):
        X, y = two_gaussians(self.n)
        self.run(X[:300])
        began = perf_counter()
        found = self.run(X)
        share = np.mean(found.labels != y)
        return {
            "seconds": perf_counter() - began,
            "rounds": found.n_iter,
            "error": float(100.0 * min(share, 1.0 - share)),
        }

    def run(self, X):
        return fastmmc.iter_svr(X, rank=self.rank, n_init=1, random_state=0)

    def track_seconds(self, found):
        return found["seconds"]

    def track_rounds(self, found):
        return found["rounds"]

    def track_error(self, found):
        """Percentage of wrong labels."""
        return found["error"]

    def peakmem_run(self, found):
        self.run(two_gaussians(self.n)[0])
