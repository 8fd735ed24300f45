"""k-means for worker threads: scikit-learn's loops without its input checks.

These checks set warning filters, which belong to the whole process: done in a thread, that can
leave them changed for good. Values are scaled by a power of two, which costs no digits.
"""

import numpy as np
from scipy.sparse import csr_matrix, issparse
from sklearn.utils.extmath import row_norms
from sklearn.utils.sparsefuncs import mean_variance_axis

from fastmmc.core.compat import euclidean_distances, kmeans_single_lloyd
from fastmmc.core.threads import run_to_end
from fastmmc.kernels.gram import dense_rows

MOST_ROUNDS = 300

# Powers of two up to which values are left as they are.
MODEST = 16

# Rounds in a piece of k-means, fewer where they take more than so many elementary operations. A
# piece assigns the points once more at its end, so that shorter ones would cost more.
ROUNDS = 10
LEAST_ROUNDS = 2
PIECE = 10**9

# Mean squared shift of the centers at which the rounds end, as a share of the mean variance.
TOLERANCE = 1e-4


def largest_size(values):
    """Return the largest absolute value, 0 if there is none; an array of them would take longer."""
    return float(max(values.max(initial=0.0), -values.min(initial=0.0)))


def scale_rows(rows):
    """Return rows / 2^exponent, whose largest value is no extreme one, and the exponent."""
    values = rows.data if issparse(rows) else rows
    exponent = int(np.frexp(largest_size(values))[1])
    if abs(exponent) <= MODEST:
        exponent = 0
    scaled = values if exponent == 0 else np.ldexp(values, -exponent)
    if issparse(rows):
        # scikit-learn's loops take indices of 32 bits only, and nothing that is read-only.
        small = max(rows.nnz, rows.shape[1]) <= np.iinfo(np.int32).max
        kind = np.int32 if small else rows.indices.dtype
        indices, indptr = (
            np.require(part, kind, requirements="W") for part in (rows.indices, rows.indptr)
        )
        scaled = np.require(scaled, requirements="W")
        scaled = csr_matrix((scaled, indices, indptr), shape=rows.shape)
    return scaled, exponent


class PlusPlus:
    """k-means++ as scikit-learn does it, point by point, so that it can be stopped in between.

    ``rows`` are those of :func:`scale_rows`. Each of the k ``indices``, of which ``n_chosen`` are
    chosen yet, is the best of ``tries`` candidates, by default 2 + log k.
    """

    def __init__(self, rows, k, stream, weights, tries=None):
        self._rows, self._stream, self._weights = rows, stream, weights
        self._tries = 2 + int(np.log(k)) if tries is None else tries
        self._norms = row_norms(rows, squared=True)
        self._cost = self._tries * (rows.nnz if issparse(rows) else rows.size)
        self.indices = np.empty(k, dtype=np.int64)
        self.indices[0] = stream.choice(rows.shape[0], p=weights / weights.sum())
        self._nearest = self._distances_to(self.indices[:1])[0]
        self._total = self._nearest @ weights
        self.n_chosen = 1

    def choosing(self):
        """Choose all points and return their indices; yield the operations that each one took."""
        weights = self._weights
        while self.n_chosen < self.indices.size:
            drawn = self._stream.uniform(size=self._tries) * self._total
            tried = np.searchsorted(np.cumsum(weights * self._nearest), drawn)
            np.clip(tried, None, weights.size - 1, out=tried)
            distances = self._distances_to(tried)
            np.minimum(self._nearest, distances, out=distances)
            totals = distances @ weights
            best = np.argmin(totals)
            self.indices[self.n_chosen] = tried[best]
            self._nearest, self._total = distances[best], totals[best]
            self.n_chosen += 1
            yield self._cost
        return self.indices

    def fill(self):
        """Draw what is not chosen yet at once: distinct points, by their squared distances."""
        n_missing = self.indices.size - self.n_chosen
        if n_missing == 0:
            return
        waits = -np.log(self._stream.uniform(size=self._nearest.size))
        with np.errstate(divide="ignore"):
            waits /= self._weights * self._nearest
        self.indices[self.n_chosen :] = np.argpartition(waits, n_missing - 1)[:n_missing]
        self.n_chosen = self.indices.size

    def _distances_to(self, chosen):
        points = self._rows[chosen]
        return euclidean_distances(points, self._rows, Y_norm_squared=self._norms, squared=True)


def begin_choice(rows, k, seed, weights=None, tries=None):
    """Return the :class:`PlusPlus` of k points that lie far apart, the first of them chosen."""
    rows, _ = scale_rows(rows)
    weights = np.ones(rows.shape[0], rows.dtype) if weights is None else weights.astype(rows.dtype)
    return PlusPlus(rows, k, np.random.RandomState(seed), weights, tries)


def k_means(rows, k, seed, weights=None, init="k-means++", look=lambda: None):
    """Return labels (n,) int64 and centers (k, d) of a k-means clustering.

    ``init`` is "k-means++", "random" or (k, d) centers; fewer labels occur where points coincide.
    Calls ``look`` every few rounds; it may raise.
    """
    return run_to_end(k_means_pieces(rows, k, seed, weights, init), lambda cost: look())


def k_means_pieces(rows, k, seed, weights=None, init="k-means++"):
    """Do as :func:`k_means`; a generator that yields the elementary operations of its pieces."""
    weights = np.ones(rows.shape[0], rows.dtype) if weights is None else weights.astype(rows.dtype)
    weights = weights / weights.max()
    rows, exponent = scale_rows(rows)
    mean = 0.0
    if issparse(rows):
        variances = mean_variance_axis(rows, axis=0)[1]
    else:
        mean = rows.mean(axis=0)
        rows = rows - mean
        variances = np.var(rows, axis=0)
    tolerance = TOLERANCE * float(np.mean(variances))
    stream = np.random.RandomState(seed)
    if not isinstance(init, str):
        centers = np.ascontiguousarray(np.ldexp(init, -exponent) - mean, dtype=rows.dtype)
    elif init == "random":
        chosen = stream.choice(rows.shape[0], k, replace=False, p=weights / weights.sum())
        centers = dense_rows(rows, chosen)
    else:
        chosen = yield from PlusPlus(rows, k, stream, weights).choosing()
        centers = dense_rows(rows, chosen)
    cost = k * (rows.nnz if issparse(rows) else rows.size)
    n_rounds = min(ROUNDS, max(LEAST_ROUNDS, PIECE // max(1, cost)))
    for _ in range(0, MOST_ROUNDS, n_rounds):
        labels, _, centers, made = kmeans_single_lloyd(
            rows, weights, centers, max_iter=n_rounds, tol=tolerance
        )
        if made < n_rounds:
            break
        yield n_rounds * cost
    return labels.astype(np.int64), np.ldexp(centers + mean, exponent)


def sum_clusters(rows, weights, labels, k):
    """Return the weights of k clusters, (k,), and the weighted sums of their rows, (k, d)."""
    each = np.arange(labels.size)
    sums = csr_matrix((weights, (labels, each)), shape=(k, labels.size)) @ rows
    totals = np.bincount(labels, weights=weights, minlength=k)
    return totals, sums.toarray() if issparse(sums) else sums
