"""Other distances than Euclidean ones: points are made of what is given, as new ones are later."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import csgraph, csr_array, diags_array, issparse
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn.preprocessing import KernelCenterer, normalize

from fastmmc.core import validation
from fastmmc.core.column_names import Named
from fastmmc.core.display import OneLine
from fastmmc.core.execution import is_first
from fastmmc.core.saving import stored
from fastmmc.data.blocks import in_blocks
from fastmmc.kernels.gram import evenly

# Distances to so many points, evenly spaced, place all others: as many as tell the default width.
REFERENCES = 2000
# Seconds for each multiplication that places them (one core, a million to eight thousand millions
# of them), the share of max_time that they may take, and the fewest.
PLACING_SECONDS = 2e-10
PLACING_SHARE = 0.2
LEAST_REFERENCES = 100

# Columns of the diffusion map of a graph, at least one for each cluster, and its steps. On 22 sets
# of 150 to 800 points, of which the graph has 10 neighbours each, the mean index of `cluster` is
# .866, and between .856 and .871 with 20 to 200 steps or 60 columns; it is .881 on the points, and
# .817 by spectral clustering of the graph.
VECTORS = 30
STEPS = 50.0

# Accuracy of their eigenvalues: 20,000 points of two moons take 1.5 seconds of a processor.
TOLERANCE = 1e-6

# Where max_time is too short for that, cells of points are mapped in place of points: so many a
# second, and the steps between points that then tell those of a cell apart.
CELLS_PER_SECOND = 2_000
STEPS_OF_POINTS = 4


def has_metric(call):
    """Tell whether a call names another metric than the Euclidean one."""
    return getattr(call, "metric", "euclidean") != "euclidean"


def make_points(call):
    """Return the call with points in place of X, and what makes such points."""
    _check_call(call)
    # Columns of such points have no units.
    is_first("units")
    X = validation.check_matrix(
        call.X, dtype=[np.float64, np.float32], accept_sparse="csr", ensure_min_samples=1
    )
    if call.metric == "cosine":
        scaler = Directions(X.shape[1])
        points = scaler.transform(X)
    elif issparse(X):
        k = call.k if isinstance(getattr(call, "k", None), int) else 1
        points = embed_graph(X, k, getattr(call, "max_time", None))
        scaler = Graph(*points.shape)
    else:
        scaler = Distances.of(X, _affordable_references(getattr(call, "max_time", None)))
        points = scaler.transform(X)
    changed = {"X": points}
    if np.ndim(getattr(call, "landmarks", None)) == 2:
        with validation.naming("landmarks"):
            landmarks = validation.check_matrix(call.landmarks, dtype=X.dtype, accept_sparse="csr")
            changed["landmarks"] = scaler.transform(landmarks)
    if hasattr(call, "standardize"):
        changed["standardize"] = False
    return replace(call, **changed), scaler


def _affordable_references(max_time):
    """Return to how many points distances are used; max_time may be too short for all."""
    seconds = np.inf if max_time is None else PLACING_SHARE * max_time
    return int(np.clip((seconds / PLACING_SECONDS) ** (1 / 3), LEAST_REFERENCES, REFERENCES))


def _check_call(call):
    """Refuse what no other metric goes with."""
    given = f"metric={call.metric!r}"
    if isinstance(call.X, Named):
        raise ValueError(
            f"{given}: X is a {type(call.X).__name__}, which has its metric; give {given} to "
            "fastmmc.factor"
        )
    if getattr(call, "kernel", None) == "precomputed":
        raise ValueError(
            f"{given} is for points or distances, and with kernel='precomputed' X is a Gram "
            "matrix; leave out one of them"
        )
    if getattr(call, "standardize", False) is True:
        raise ValueError(
            f"standardize=True is for metric='euclidean', and got {given}; scale the columns first"
        )
    if in_blocks(call.X):
        raise ValueError(
            f"{given} is not supported for points in blocks; for the cosine divide each row by its "
            "length first"
        )


@dataclass(frozen=True, eq=False, repr=False)
class PointMaker(OneLine):
    """What makes points of what is given."""

    n_features: int  # columns of what is given

    def inverse_transform(self, X):
        """Return the points themselves: what was given cannot be had again, or is as good."""
        return X


@stored()
class Directions(PointMaker):
    """Rows of length 1: their squared distances are twice the cosine distances."""

    what = "features"

    @property
    def n_columns(self):
        """Columns of the points."""
        return self.n_features

    def transform(self, X):
        """Return rows scaled to length 1."""
        # The largest entry becomes 1 first, so that no square overflows or vanishes; scikit-learn
        # takes dense rows of small entries for zero.
        if issparse(X):
            X = normalize(X, norm="max")
        else:
            largest = np.abs(X).max(axis=1, keepdims=True)
            X = X / np.where(largest > 0, largest, 1)
        X = normalize(X)
        lengths = abs(X).sum(axis=1)
        if (lengths == 0).any():
            rows = np.flatnonzero(lengths == 0)
            raise ValueError(
                f"X has rows of zeros only, {rows.size} in all and row {rows[0]} the first: they "
                "have no direction for metric='cosine'; leave them out"
            )
        return X


@stored(indices="i8:b", means="f8:b", projection="f8:bp")
class Distances(PointMaker):
    """Points placed by distances: classical multidimensional scaling, and Gower's way for others.

    With S the squared distances between the references, in units of the largest distance, and J
    the centring matrix, -J S J / 2 = V diag(v) V^T places them at V diag(v)^1/2. New ones are at
    -(s - mean s) J V diag(v)^-1/2 / 2. Negative v, which Euclidean distances lack, are left out.
    """

    unit: float
    indices: np.ndarray  # the references among them
    means: np.ndarray  # of the columns of S
    projection: np.ndarray  # J V diag(v)^-1/2
    what = "distances to the training points"

    @classmethod
    def of(cls, D, count=REFERENCES):
        """Return the space of points with these distances, (n, n), to ``count`` of them."""
        _check_distances(D)
        n = D.shape[0]
        rows = evenly(n, count)
        unit = float(D.max()) or 1.0
        S = (D[np.ix_(rows, rows)] / unit).astype(np.float64) ** 2
        # Distances may differ from their mirror images by rounding.
        S = (S + S.T) / 2
        values, vectors = eigh(-0.5 * KernelCenterer().fit_transform(S))
        rounding = max(np.finfo(D.dtype).eps, rows.size * np.finfo(np.float64).eps)
        kept = values > rounding * max(values[-1], 0.0)
        kept[-1] = True  # equal points lie in one column
        projection = vectors[:, kept] / np.sqrt(np.where(values > 0, values, 1.0)[kept])
        return cls(n, unit, rows, S.mean(axis=0), projection - projection.mean(axis=0))

    @property
    def n_columns(self):
        """Columns of the points."""
        return self.projection.shape[1]

    def _check_values(self):
        of_points = ((self.indices >= 0) & (self.indices < self.n_features)).all()
        if not (of_points and self.indices.size and self.unit > 0):
            raise ValueError("indices or unit are not those of distances")

    def transform(self, D):
        """Return the points that have these distances to all n training points, (m, n)."""
        if issparse(D):
            raise TypeError(
                "X is sparse, and the clusters are those of all distances: give the (m, n) array "
                "of the distances of new points to the training points"
            )
        _check_not_negative(D)
        S = (D[:, self.indices] / self.unit).astype(np.float64) ** 2
        points = (-0.5 * self.unit) * ((S - self.means) @ self.projection)
        return points.astype(D.dtype, copy=False)


def _check_not_negative(D):
    if D.size and D.min() < 0:
        raise ValueError(
            f"Negative values in data: X must hold distances, at least 0; got {D.min():.6g}"
        )


def _check_distances(D):
    advice = "; scipy.spatial.distance.squareform makes one of a vector of pairs"
    validation.check_square(D, "metric", advice)
    _check_not_negative(D)
    validation.check_symmetric(D, "metric")
    largest = np.diagonal(D).max()
    if largest > validation.SYMMETRY_TOLERANCE[D.dtype] * D.max():
        raise ValueError(
            "X must hold distances with metric='precomputed', and those of points from themselves "
            f"must be 0; the diagonal reaches {largest:.6g}. For similarities give "
            "kernel='precomputed' (umc_rls, factor)"
        )


@stored()
class Graph(PointMaker):
    """Points of a graph of neighbours, which has no place for others."""

    n_columns: int
    what = "points of the graph"

    def transform(self, X):
        """Refuse new points."""
        raise ValueError(
            "the clusters are those of a graph of neighbours, which has no place for other points: "
            "cluster a graph of all of them, or give all distances"
        )


def embed_graph(D, k=1, max_time=None):
    """Return the diffusion map of a graph of neighbours, given by its distances, for k clusters.

    Explicit zeros are neighbours at distance 0. An edge counts in both directions, with the
    affinity exp(-d_ij^2 / (s_i s_j)), s being the median distance of the neighbours of a point.
    """
    validation.check_square(D, "metric")
    _check_not_negative(D.data)
    n = D.shape[0]
    W = _affinities(D)
    # The solver refuses more clusters than points.
    n_vectors = min(max(VECTORS, k if k <= n else 1), n)
    n_parts, parts = csgraph.connected_components(W, directed=False)
    if n_parts > n_vectors:
        raise ValueError(
            f"X is a graph of {n_parts} components, and at most {n_vectors} can be told apart; "
            "give more neighbours of each point"
        )
    most = n if max_time is None else max(10 * n_vectors, int(CELLS_PER_SECOND * max_time))
    if n <= most:
        points = _diffusion_map(W, parts, n_vectors, STEPS)
    else:
        cells, seeds = _cells(W, parts, most)
        of_cells = cells.T @ W @ cells
        points = cells @ _diffusion_map(of_cells, parts[seeds], n_vectors, STEPS - STEPS_OF_POINTS)
        chain = diags_array(1.0 / W.sum(axis=1)) @ W
        for _ in range(STEPS_OF_POINTS):
            points = chain @ points
    return points.astype(D.dtype, copy=False)


def _cells(W, parts, count):
    """Return which of some ``count`` cells each point is in, (n, cells) in CSR, and their seeds.

    A point belongs to the seed that is the fewest edges away; every component has one.
    """
    n = W.shape[0]
    seeds = np.union1d(evenly(n, count), np.unique(parts, return_index=True)[1])
    _, _, nearest = csgraph.dijkstra(
        W, unweighted=True, indices=seeds, min_only=True, return_predecessors=True
    )
    places = np.searchsorted(seeds, nearest)
    return csr_array((np.ones(n), (np.arange(n), places)), shape=(n, seeds.size)), seeds


def _diffusion_map(W, parts, n_vectors, steps):
    """Return the coordinates (n, n_vectors) of points after some steps along the edges of W."""
    roots = np.sqrt(W.sum(axis=1))
    S = diags_array(1.0 / roots) @ W @ diags_array(1.0 / roots)
    # A search for eigenvalues may miss some of several equal ones, as the one of every component.
    firsts = (parts[:, None] == np.unique(parts)) * roots[:, None]
    firsts /= np.linalg.norm(firsts, axis=0)
    values, vectors = _next_vectors(S, firsts, n_vectors - firsts.shape[1])
    vectors = np.hstack((firsts, vectors * np.exp(steps * (values - 1.0))))
    # In these units the largest coordinates are about 1.
    return vectors * (np.linalg.norm(roots) / roots[:, None])


def _next_vectors(S, firsts, count):
    """Return the largest eigenvalues of S below those of ``firsts``, and their vectors."""
    n = S.shape[0]
    if count >= n - 1:
        values, vectors = eigh(2.0 * firsts @ firsts.T - S.toarray())
        return -values[:count], vectors[:, :count]
    if count == 0:
        return np.empty(0), np.empty((n, 0))

    def times(x):
        return S @ x - firsts @ (firsts.T @ x)

    operator = LinearOperator((n, n), matvec=times, dtype=np.float64)
    start = np.random.default_rng(0).uniform(-1.0, 1.0, n)
    return eigsh(operator, count, which="LA", v0=start, tol=TOLERANCE)


def _affinities(D):
    """Return the affinities of the edges of a graph, symmetric, (n, n) in CSR."""
    n = D.shape[0]
    edges = D.tocoo()
    (i, j), d = edges.coords, edges.data.astype(np.float64)
    others = i != j
    i, j, d = i[others], j[others], d[others]
    ends, both = np.concatenate((i, j)), np.concatenate((d, d))
    counts = np.bincount(ends, minlength=n)
    mean = d.mean() if d.any() else 1.0
    # Point by point, and one more behind them for last points without neighbours.
    distances = np.append(both[np.lexsort((both, ends))], mean)
    widths = distances[np.cumsum(counts) - counts + counts // 2]
    widths = np.where(widths > 0, widths, mean)
    W = csr_array((np.exp(-(d / widths[i]) * (d / widths[j])), (i, j)), shape=(n, n))
    W = W.maximum(W.T)
    # A point without neighbours stays where it is.
    return csr_array(W + diags_array((W.sum(axis=1) == 0.0).astype(np.float64)))
