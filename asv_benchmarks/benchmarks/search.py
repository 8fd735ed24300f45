"""The memetic search against restarts, and starts on the low-rank form against n."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score

import fastmmc

from . import best_of
from .datasets import blobs

K = 10
SEEDS = range(10)
RANK = 100
SIZES = (1_000, 10_000, 100_000, 1_000_000)

# The same size rule for both, or the objectives could not be compared.
RULE = {"balance": 0.4, "polish": True}


def restarts_of_equal_length(factor, moves, seed):
    """Return the lowest objective of as many single starts as make so many moves."""
    best, made, start = np.inf, 0, 0
    while made < moves:
        run = fastmmc.umc_rls(
            factor, K, method="shaking", n_init=1, random_state=1000 * seed + start, **RULE
        )
        best = min(best, run.objective)
        made += run.n_moves
        start += 1
    return best


class MemeticOnDigits:
    """Ten seeds on scikit-learn's digits, beside restarts that make as many moves."""

    timeout = 600

    def setup_cache(self):
        X, y = load_digits(return_X_y=True)
        factor = fastmmc.factor(X)
        runs = [fastmmc.umc_rls(factor, K, method="memetic", random_state=s) for s in SEEDS]
        others = [restarts_of_equal_length(factor, runs[s].n_moves, s) for s in SEEDS]
        return {
            "ari": float(np.median([adjusted_rand_score(y, run.labels) for run in runs])),
            "objective": float(np.median([run.objective for run in runs])),
            "wins": sum(run.objective <= other for run, other in zip(runs, others, strict=True)),
            "moves": float(np.median([run.n_moves for run in runs])),
        }

    def track_ari(self, found):
        return found["ari"]

    def track_objective(self, found):
        return found["objective"]

    def track_seeds_not_worse_than_restarts(self, found):
        return found["wins"]

    def track_moves(self, found):
        return found["moves"]

    def setup(self, found):
        self.factor = fastmmc.factor(load_digits().data)

    def time_search(self, found):
        fastmmc.umc_rls(self.factor, K, method="memetic", random_state=0)


def start(factor):
    return fastmmc.umc_rls(factor, K, method="shaking", n_init=1, random_state=0)


class LowRankStarts:
    """One start from a factor of rank 100."""

    param_names = ("n",)
    params = SIZES
    timeout = 1800
    # The largest takes minutes.
    number, repeat, warmup_time = 1, (1, 5, 60.0), 0.0

    def setup(self, n):
        self.X, self.y = blobs(n, K)
        self.factor = fastmmc.factor(self.X, rank=RANK, random_state=0)
        start(fastmmc.factor(blobs(5_000, K)[0], rank=RANK, random_state=0))

    def time_start(self, n):
        start(self.factor)

    def peakmem_start(self, n):
        start(self.factor)

    def track_ari(self, n):
        return adjusted_rand_score(self.y, start(self.factor).labels)


class LowRankSlope:
    """Slope of log seconds against log n of one start above 1,000 points; 1 is linear."""

    timeout = 1800
    unit = "slope"

    def track_slope(self):
        sizes = SIZES[1:]
        factors = [fastmmc.factor(blobs(n, K)[0], rank=RANK, random_state=0) for n in sizes]
        start(factors[0])
        seconds = [best_of(2, lambda f=f: start(f))[0] for f in factors]
        slope = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
        for n, taken in zip(sizes, seconds, strict=True):
            print(f"{n:9,} points: {taken:6.2f} s a start")
        print(f"log-log slope: {slope:.2f}")
        return slope
