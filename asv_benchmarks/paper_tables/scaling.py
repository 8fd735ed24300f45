"""Time and memory of low-rank UMC-RLS up to a million points.

See README.md in this folder for the protocol.
"""

import numpy as np
from common import alone, main, peak_memory, table, timed
from sklearn.metrics import adjusted_rand_score

import fastmmc
from fastmmc.kernels.factors import LowRankFactor
from fastmmc.rls.engine import _loops_moves
from fastmmc.rls.multilevel import ROWS, BoundedSearch

# The generated points of the scaling table.
FEATURES, CLUSTERS, RANK = 20, 10, 300
SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)


def generate(n):
    """Return n points of Gaussians that overlap a little, and which Gaussian they are of."""
    rng = np.random.default_rng(0)
    centres = rng.uniform(-5, 5, (CLUSTERS, FEATURES))
    y = rng.integers(CLUSTERS, size=n)
    X = rng.standard_normal((n, FEATURES))
    X *= 3.0
    X += centres[y]
    return X, y


class Products:
    """Counts the rows of Z that a search multiplies, by the shape of the other factor."""

    def __init__(self):
        # Z W^T with one column a cluster, E^T Z, and Z M with as many columns as Z.
        self.rows = dict.fromkeys(("clusters", "sums", "square"), 0)
        self._watch(BoundedSearch, "_cluster_scores", "clusters", lambda search, start: ROWS)
        self._watch(LowRankFactor, "_score_blocks", "clusters", lambda factor, W: factor.n)
        self._watch(LowRankFactor, "_cluster_sums", "sums", lambda factor, *_: factor.n)
        self._watch(_loops_moves, "build_sums", "sums", lambda Z, *_: len(Z))
        # Once to make features of the sample's own, and once to whiten them.
        self._watch(LowRankFactor, "_restrict", "square", lambda factor, rows: 2 * len(rows))

    def _watch(self, owner, name, shape, rows_of):
        called = getattr(owner, name)

        def counting(*args):
            self.rows[shape] += rows_of(*args)
            return called(*args)

        setattr(owner, name, counting)

    def seconds(self, Z):
        """Return how long NumPy takes for as many."""
        clusters = np.ones((Z.shape[1], CLUSTERS), Z.dtype)
        square, few = np.ones((Z.shape[1], Z.shape[1]), Z.dtype), min(len(Z), 50_000)
        members = np.ones((CLUSTERS, len(Z)), Z.dtype)
        a_row = {
            "clusters": shortest(np.matmul, Z, clusters) / len(Z),
            "sums": shortest(np.matmul, members, Z) / len(Z),
            "square": shortest(np.matmul, Z[:few], square) / few,
        }
        return sum(a_row[shape] * rows for shape, rows in self.rows.items())


def shortest(function, *args):
    return timed(function, *args, times=5)[1]


def measure(n, dtype):
    """Return what one run on n points costs and finds."""
    X, y = generate(n)
    fastmmc.umc_rls(
        X[:5000], CLUSTERS, method="shaking", rank=100, n_init=1, dtype=dtype
    )  # compiles
    factor, made = timed(lambda: fastmmc.factor(X, rank=RANK, dtype=dtype, random_state=0))
    products = Products()
    run, searched = timed(
        lambda: fastmmc.umc_rls(
            factor, CLUSTERS, method="shaking", n_init=1, n_jobs=2, random_state=0
        )
    )
    peak = peak_memory()
    return {
        "factor": made,
        "search": searched,
        "products": products.seconds(factor.Z),
        "passes": products.rows["clusters"] / n,
        "peak": peak / 2**30,
        "ari": adjusted_rand_score(y, run.labels),
    }


def scaling_tables(sizes):
    rows, slopes = [], []
    for dtype in ("float64", "float32"):
        found = [alone(measure, n, dtype) for n in sizes]
        for n, row in zip(sizes, found, strict=True):
            row = dict(row, share=row["search"] / row["products"])
            formats = {"factor": 1, "search": 1, "share": 2, "passes": 0, "peak": 2, "ari": 3}
            rows.append([f"{n:,}", dtype, *(f"{row[c]:.{d}f}" for c, d in formats.items())])
            print(*rows[-1], sep="   ", flush=True)
        search = np.array([row["search"] for row in found])
        whole = search + [row["factor"] for row in found]
        fits = (np.polyfit(np.log(sizes), np.log(seconds), 1) for seconds in (search, whole))
        slopes.append([dtype, *(f"{slope:.2f}" for slope, _ in fits)])
    header = ["n", "Z", "factor, s", "search, s", "search / its products", "passes", "peak, GB"]
    header.append("ARI")
    return table(header, rows), table(["Z", "slope of the search", "slope of the call"], slopes)


def page(run):
    sizes, slopes = scaling_tables(SIZES[:2] if run.quick else SIZES)
    return [
        "# Time and memory up to a million points",
        run.made(),
        f"{CLUSTERS} Gaussians in {FEATURES} dimensions, rank {RANK}, one start, two threads.",
        sizes,
        slopes,
    ]


if __name__ == "__main__":
    main(page)
