"""One claim, one move, one child, one hat matrix: each over other ways to the same."""

from functools import cache, partial
from types import SimpleNamespace

import numba
import numpy as np
from scipy.linalg import eigh, lapack
from sklearn.svm import SVC

import fastmmc
from fastmmc.evolution import _loops as evolution
from fastmmc.evolution.search import make_population, make_problem
from fastmmc.kernels.cholesky import add_to_diagonal
from fastmmc.kernels.factors import DenseFactor, eigh_lower, hat_from_eigh, hat_matrix
from fastmmc.kernels.gram import Kernel, fill_lower_gram, resolve_kernel
from fastmmc.rls import _loops_claims as claims
from fastmmc.rls.engine import _loops_moves as moves

from . import best_of, blobs, ratio
from .paper_fitness import DirectFitness, SupportVectorFitness, child_transform, weighted_square

K, LAM = 10, 0.25


def hat_by_eigh(kernel, X, lam):
    """Return the hat matrix as an eigendecomposition gives it."""
    gram = np.empty((X.shape[0], X.shape[0]))
    fill_lower_gram(kernel, X, gram)
    return hat_from_eigh(*eigh_lower(gram), lam)


def linear_algebra(kernel, X, lam):
    """Return the Gram matrix, factored and inverted, which a whole call cannot do without."""
    A = np.empty((len(X), len(X)))
    fill_lower_gram(kernel, X, A)
    add_to_diagonal(A, lam)
    lapack.dpotrf(A.T, lower=0, overwrite_a=1, clean=0)
    return lapack.dpotri(A.T, lower=0, overwrite_c=1)


class HatMatrix:
    """Points to hat matrix for one lam, kernel included, over an eigendecomposition."""

    param_names = ("n",)
    params = (500, 2000)

    def setup(self, n):
        self.X, _ = blobs(n, K)
        self.kernel = resolve_kernel(Kernel("rbf"), self.X)
        few = self.X[:50]
        assert np.allclose(hat_matrix(self.kernel, few, LAM), hat_by_eigh(self.kernel, few, LAM))

    def time_cholesky(self, n):
        hat_matrix(self.kernel, self.X, LAM)

    peakmem_cholesky = time_cholesky

    def track_over_eigh(self, n):
        of = self.kernel, self.X, LAM
        return ratio(2, partial(hat_matrix, *of), partial(hat_by_eigh, *of))

    def track_call_over_linear_algebra(self, n):
        """A whole call of one start over the linear algebra in it."""
        given = {"sigma": self.kernel.sigma, "lam": LAM}
        theirs = partial(linear_algebra, self.kernel, self.X, LAM)
        return ratio(3, partial(shake, self.X, **given), theirs)


def shake(X, n_init=1, **params):
    """Run starts of shaking from points or a factor."""
    return fastmmc.umc_rls(X, K, method="shaking", n_init=n_init, random_state=0, **params)


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

    Each of our moves is the best of all n; the full risk and LIBSVM price a single candidate.
    """

    param_names = ("n",)
    params = (1000, 2000)
    unit = "ours / theirs"

    def setup(self, n):
        self.factor = fastmmc.factor(blobs(n, K)[0])
        self.labels = np.random.default_rng(0).permutation(np.arange(n) % K)
        self.found = shake(self.factor)
        # One more start, when the factor is there already.
        one, many = best_of(3, partial(shake, self.factor), partial(shake, self.factor, 11))
        self.start = (many - one) / 10
        self.ours = self.start / self.found.n_moves

    def track_full_risk(self, n):
        R = self.factor.R
        assert np.isclose(full_risk(R, self.found.labels, K), self.found.objective)
        return self.ours / best_of(5, lambda: full_risk(R, self.labels, K))[0]

    def track_libsvm_refit(self, n):
        gram = self.factor.kernel.block(self.factor.X, self.factor.X)
        return self.ours / best_of(2, lambda: SVC(kernel="precomputed").fit(gram, self.labels))[0]

    def track_numpy_twin(self, n):
        run = shake(self.factor, init=self.labels, n_rounds=1, min_size=0, balance=K)
        labels, n_claims = numpy_round(self.factor.R, self.labels, K)
        assert (labels == run.labels).all() and n_claims == run.n_moves
        theirs = best_of(3, lambda: numpy_round(self.factor.R, self.labels, K))[0]
        return self.ours / (theirs / n_claims)

    def track_start_over_eigh(self, n):
        """One more start over one eigendecomposition of a matrix of the same size."""
        return self.start / best_of(2, lambda: eigh(self.factor.R))[0]


@numba.njit(cache=True)
def claim_rows(R, rows, labels, U, score, lanes):
    for j in rows:
        o = labels[j]
        claims.claim_pass(R[j], U[o], U[0], score, labels, o, False, lanes)


@numba.njit(cache=True)
def pass_rows(R, rows, labels, U):
    for j in rows:
        row, left, gained = R[j], U[labels[j]], U[0]
        for i in range(row.size):
            r = row[i]
            left[i] -= r
            gained[i] += r


class OneClaim:
    """One claim over one compiled pass that only updates the two rows of sums.

    The pass reads and writes what any exact move must, so this is the price of choosing the
    next point: scores and their least.
    """

    param_names = ("n", "dtype")
    params = ((2000, 6000), ("float64", "float32"))
    unit = "ours / theirs"

    def setup(self, n, dtype):
        rng = np.random.default_rng(0)
        self.R = rng.random((n, n), dtype=dtype)
        self.rows = rng.permutation(n)[:2000]
        # Cluster 0 claims, so the points are of the others.
        self.sums = (1 + rng.permutation(n) % (K - 1)).astype(np.uint8), np.zeros((K, n))
        self.scores = rng.random(n), np.empty(claims.LANES)
        claim_rows(self.R, self.rows[:1], *self.sums, *self.scores)
        pass_rows(self.R, self.rows[:1], *self.sums)

    def track_over_pass(self, n, dtype):
        given = self.R, self.rows, *self.sums
        return ratio(7, partial(claim_rows, *given, *self.scores), partial(pass_rows, *given))


@cache
def low_rank_factor(n):
    return fastmmc.factor(blobs(n, 2)[0], lam=0.5, rank=100, random_state=0)


@cache
def dense_factor(n):
    """Return a hat matrix of low rank, n x n: what a child costs does not depend on its values."""
    low = low_rank_factor(n)
    return DenseFactor(low.Z @ low.Z.T, low.lam, low.kernel, low.X)


class Refused:
    """A population in which nothing improves any more: every child is refused."""

    def __init__(self, factor, balance=0.1):
        n = factor.n
        run = fastmmc.evo_mmc if isinstance(factor, DenseFactor) else fastmmc.fast_evo_mmc
        result = run(factor, init="kmeans", n_init=1, balance=balance, random_state=0)
        y = np.where(result.labels == 1, 1, -1).astype(np.int8)
        half = int(balance * n / 2)
        call = SimpleNamespace(flips=1, distinct=False)
        plan = SimpleNamespace(lower=n // 2 - half, upper=n // 2 + half, call=call)
        self.problem = make_problem(factor, factor.diagonal(), plan)
        self.population = make_population(self.problem, y[None], 1, np.ones(1, dtype=np.uint64))
        # A run may end without the proof that nothing helps.
        while self.generations(50 * n) > 0:
            pass
        self.labels = self.population.y[self.population.slot[0]].astype(np.float64)

    def generations(self, count):
        """Make generations and return how many children survived."""
        before = self.population.pos[moves.MOVES]
        self.population.pos[evolution.STALE] = 0
        evolution.evolve(self.problem, self.population, count, 2**62, 2**62)
        self.population.pos[moves.RECORDS] = 0
        return self.population.pos[moves.MOVES] - before


@numba.njit(nogil=True, error_model="numpy")
def theorem_1_children(V, weight, y, v, flips, random, out, count):
    """Draw children of one flip and evaluate each by Theorem 1; return the least fitness."""
    best = np.inf
    for _ in range(count):
        flips[0] = int(evolution.uniform(random) * y.size)
        child_transform(V, y, v, flips, out)
        best = min(best, y.size - weighted_square(weight, out))
    return best


class OneChild:
    """Our fitness of a refused child of one flip, drawing included, over the paper's ways to it."""

    n, children = 2000, 400_000

    def setup(self):
        self.run = Refused(dense_factor(self.n))
        self.labels = self.run.labels

    def over(self, theirs, count=1):
        """Return ours over theirs, each for a single child."""
        own, other = best_of(5, lambda: self.run.generations(self.children), theirs)
        return (own / self.children) / (other / count)

    def track_theorem_1(self):
        # Any orthogonal matrix will do for the price.
        V = np.linalg.qr(np.random.default_rng(0).standard_normal((self.n, self.n)))[0]
        v, weight, out = V.T @ self.labels, np.ones(self.n), np.empty(self.n)
        flips, random = np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.uint64)
        theirs = partial(theorem_1_children, V, weight, self.labels, v, flips, random, out)
        theirs(1)
        return self.over(partial(theirs, 10_000), 10_000)

    def track_direct(self):
        return self.over(partial(DirectFitness(dense_factor(self.n)).start, self.labels))

    def track_libsvm(self):
        low = low_rank_factor(self.n)
        route = SupportVectorFitness(low.kernel.block(low.X, low.X), low.lam)
        return self.over(partial(route.start, self.labels))

    def track_low_rank_seconds(self):
        """Seconds of a refused child of FastEvoMMC: O(1), or O(r) where a bound is too wide."""
        run = Refused(low_rank_factor(self.n))
        return best_of(5, lambda: run.generations(self.children))[0] / self.children
