"""UMC-RLS: whole calls, their quality, the three searches, and one move against other ways."""

import numba
import numpy as np
from scipy.linalg import eigh
from sklearn.metrics import adjusted_rand_score
from sklearn.svm import SVC

import fastmmc
from fastmmc.rls import _loops_claims as claims

from . import best_of, ratio
from .datasets import blobs, blobs_factor

SIZES = (500, 1000, 2000, 4000)
CLUSTERS = (2, 10, 20)
METHODS = ("shaking", "steepest", "stochastic")
SEEDS = range(10)
K = 10


def quality(X, y, k, **search):
    """Return the median and the lowest ARI and the median objective of ten single starts."""
    results = [
        fastmmc.umc_rls(X, k, n_init=1, random_state=seed, **({"method": "shaking"} | search))
        for seed in SEEDS
    ]
    scores = [adjusted_rand_score(y, result.labels) for result in results]
    return {
        "ari": float(np.median(scores)),
        "lowest_ari": min(scores),
        "objective": float(np.median([result.objective for result in results])),
    }


class Calls:
    """Points to labels, five starts."""

    param_names = ("n", "k")
    params = (SIZES, CLUSTERS)
    timeout = 300

    def setup(self, n, k):
        self.X, _ = blobs(n, k)
        fastmmc.umc_rls(self.X[:50], k, n_init=1, method="shaking")

    def time_call(self, n, k):
        fastmmc.umc_rls(self.X, k, n_init=5, random_state=0, method="shaking")


class Memory:
    """Points to labels; next to the n x n matrix the number of clusters hardly counts."""

    param_names = ("n",)
    params = SIZES
    timeout = 300

    def setup(self, n):
        self.X, _ = blobs(n, K)
        fastmmc.umc_rls(self.X[:50], K, n_init=1, method="shaking")

    def peakmem_call(self, n):
        fastmmc.umc_rls(self.X, K, n_init=1, random_state=0, method="shaking")


class BlobsQuality:
    """Single starts on Gaussians that overlap a little."""

    param_names = ("n", "k")
    params = (SIZES, CLUSTERS)
    timeout = 600

    def setup_cache(self):
        return {
            (n, k): quality(blobs_factor(n, k), blobs(n, k)[1], k) for n in SIZES for k in CLUSTERS
        }

    def track_ari(self, found, n, k):
        return found[n, k]["ari"]

    def track_lowest_ari(self, found, n, k):
        return found[n, k]["lowest_ari"]

    def track_objective(self, found, n, k):
        return found[n, k]["objective"]


class DigitsQuality:
    """The three searches on scikit-learn's digits, single starts from one factor.

    All keep to the same size bounds, without which the plain descents are free to grow one
    cluster at the others' cost.
    """

    param_names = ("method",)
    params = METHODS
    timeout = 600

    def setup_cache(self):
        X, y = fastmmc.datasets.load("digits")
        factor = fastmmc.factor(X)
        return {method: quality(factor, y, K, method=method, balance=0.2) for method in METHODS}

    def track_ari(self, found, method):
        return found[method]["ari"]

    def track_lowest_ari(self, found, method):
        return found[method]["lowest_ari"]

    def track_objective(self, found, method):
        return found[method]["objective"]


class Searches:
    """Ten starts of each search from one factor."""

    param_names = ("method",)
    params = METHODS
    timeout = 300

    def setup(self, method):
        self.factor = blobs_factor(2000, K)
        self.time_ten_starts(method)

    def time_ten_starts(self, method):
        fastmmc.umc_rls(self.factor, K, method=method, balance=0.2, n_init=10, random_state=0)


def seconds_per_start(factor, k, repeats=3):
    """Return what one more start costs when the factor is there already."""
    one, many = best_of(
        repeats,
        lambda: fastmmc.umc_rls(factor, k, n_init=1, random_state=0, method="shaking"),
        lambda: fastmmc.umc_rls(factor, k, n_init=11, random_state=0, method="shaking"),
    )
    return (many - one) / 10


class OneMoreStart:
    """One more start over one eigendecomposition of a matrix of the same size."""

    param_names = ("n",)
    params = (1000, 2000)
    timeout = 300
    unit = "ours / theirs"

    def track_start_over_eigh(self, n):
        factor = blobs_factor(n, K)
        (theirs,) = best_of(2, lambda: eigh(factor.R))
        return seconds_per_start(factor, K) / theirs


def full_risk(R, labels, k):
    """Q = sum_h (n - p_h^T R p_h), from scratch."""
    P = np.where(labels[:, None] == np.arange(k), 1.0, -1.0)
    return k * labels.size - np.sum(P * (R @ P))


def numpy_round(R, labels, k):
    """Make one round of shaking by whole-array operations, as good NumPy code would.

    Returns the labels and the number of claims.
    """
    n = labels.size
    labels = labels.copy()
    members = np.arange(k)[:, None] == labels
    U = members @ R
    diag = np.diagonal(R)
    n_claims = 0
    for d in range(k):
        own = np.where(labels == d, np.inf, U[labels, np.arange(n)] - diag)
        for _ in range(2 * n // k - np.count_nonzero(labels == d)):
            j = np.argmin(own - U[d])
            o = labels[j]
            left = labels == o
            U[o] -= R[j]
            U[d] += R[j]
            own[left] -= R[j, left]
            own[j] = np.inf
            labels[j] = d
            n_claims += 1
    return labels, n_claims


class OneMove:
    """One of our moves, its share of the whole start included, over the same in another way.

    Each of our moves is the best of all n; the full risk and the SVM price a single candidate.
    """

    param_names = ("n",)
    params = (1000, 2000)
    timeout = 300
    unit = "ours / theirs"

    def setup(self, n):
        self.factor = blobs_factor(n, K)
        self.labels = np.random.default_rng(0).permutation(np.arange(n) % K)
        run = fastmmc.umc_rls(self.factor, K, n_init=1, random_state=0, method="shaking")
        self.ours = seconds_per_start(self.factor, K) / run.n_moves

    def track_full_risk(self, n):
        run = fastmmc.umc_rls(self.factor, K, n_init=1, random_state=0, method="shaking")
        assert np.isclose(full_risk(self.factor.R, run.labels, K), run.objective)
        (theirs,) = best_of(5, lambda: full_risk(self.factor.R, self.labels, K))
        return self.ours / theirs

    def track_libsvm_refit(self, n):
        X = self.factor.X
        gram = self.factor.kernel.block(X, X)
        (theirs,) = best_of(2, lambda: SVC(kernel="precomputed").fit(gram, self.labels))
        return self.ours / theirs

    def track_numpy_twin(self, n):
        run = fastmmc.umc_rls(
            self.factor, K, method="shaking", init=self.labels, n_rounds=1, min_size=0, balance=K
        )
        labels, n_claims = numpy_round(self.factor.R, self.labels, K)
        assert (labels == run.labels).all() and n_claims == run.n_moves
        (theirs,) = best_of(3, lambda: numpy_round(self.factor.R, self.labels, K))
        return self.ours / (theirs / n_claims)


@numba.njit(cache=True)
def claim_rows(R, rows, labels, U, score, lanes):
    for j in rows:
        o = labels[j]
        claims.claim_pass(R[j], U[o], U[0], score, labels, o, False, lanes)


@numba.njit(cache=True)
def fused_pass(row, left, gained):
    for i in range(row.size):
        r = row[i]
        left[i] -= r
        gained[i] += r


@numba.njit(cache=True)
def pass_rows(R, rows, labels, U):
    for j in rows:
        fused_pass(R[j], U[labels[j]], U[0])


class ClaimOverFusedPass:
    """One claim over one compiled pass that only updates the two rows of sums.

    The pass reads and writes what any exact move must, so this is the price of choosing the
    next point: scores and their least.
    """

    param_names = ("n", "dtype")
    params = ((2000, 6000), ("float64", "float32"))
    timeout = 300
    unit = "ours / theirs"

    def setup(self, n, dtype):
        rng = np.random.default_rng(0)
        self.R = rng.random((n, n), dtype=dtype)
        self.rows = rng.permutation(n)[:2000]
        # Cluster 0 claims, so the points are of the others.
        self.labels = (1 + rng.permutation(n) % (K - 1)).astype(np.uint8)
        self.U = np.zeros((K, n))
        self.score = rng.random(n)
        self.lanes = np.empty(claims.LANES)
        self.claim(self.rows[:1])
        self.update(self.rows[:1])

    def claim(self, rows):
        claim_rows(self.R, rows, self.labels, self.U, self.score, self.lanes)

    def update(self, rows):
        pass_rows(self.R, rows, self.labels, self.U)

    def track_claim_over_pass(self, n, dtype):
        return ratio(7, lambda: self.claim(self.rows), lambda: self.update(self.rows))
