"""Measure the tables of docs/measured.md and the short one of the README, between their markers.

    python asv_benchmarks/readme_table.py            # prints the tables
    python asv_benchmarks/readme_table.py --write    # and writes them and a picture

Every speed figure is a ratio of two things timed in turn in one process. Takes some
minutes; the memory figure needs Linux.
"""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from datetime import date
from itertools import chain
from pathlib import Path

import numba
import numpy as np
import scipy
import sklearn
from benchmarks import best_of, blobs, calls, moves, ratio, two_classes
from scipy.linalg import eigh, lapack
from sklearn.cluster import AgglomerativeClustering, KMeans, SpectralClustering
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler

import fastmmc
from fastmmc.kernels import cholesky, factors, gram

ROOT = Path(__file__).parent.parent
sys.path.append(str(Path(__file__).parent / "paper_tables"))
from common import commit  # noqa: E402

RUN_TIMES = "notebooks/evo_run_times.png"
SEEDS = range(10)
MARKERS = "<!-- tables -->", "<!-- end of tables -->"


def clusterers(k, seed):
    return {
        "`umc_rls(X, k)`": lambda X: fastmmc.umc_rls(X, k, random_state=seed).labels,
        "`cluster(X, k)`": lambda X: fastmmc.cluster(X, k, random_state=seed).labels,
        "k-means (10 starts)": lambda X: KMeans(k, n_init=10, random_state=seed).fit_predict(X),
        "Gaussian mixture (full)": lambda X: GaussianMixture(
            k, reg_covar=1e-3, random_state=seed
        ).fit_predict(X),
        "spectral (10 neighbours)": lambda X: SpectralClustering(
            k, affinity="nearest_neighbors", n_neighbors=10, random_state=seed
        ).fit_predict(X),
        "Ward": AgglomerativeClustering(k).fit_predict,
    }


def quality_sets():
    digits, digits_y = fastmmc.datasets.load("digits")
    yield "digits", digits / 16, digits_y
    yield "iris", *fastmmc.datasets.load("iris")
    for name in ("wine", "breast_cancer"):
        X, y = fastmmc.datasets.load(name)
        yield f"{name.replace('_', ' ')}, standardised", StandardScaler().fit_transform(X), y
    yield "moons", *fastmmc.datasets.load("moons")


def quality_rows():
    """Yield set, method, median, least and greatest ARI over the seeds, and median seconds."""
    for name, X, y in quality_sets():
        k = len(np.unique(y))
        for method in clusterers(k, 0):
            scores, seconds = [], []
            for seed in SEEDS:
                began = time.perf_counter()
                labels = clusterers(k, seed)[method](X)
                seconds.append(time.perf_counter() - began)
                scores.append(adjusted_rand_score(y, labels))
            yield name, method, np.median(scores), min(scores), max(scores), np.median(seconds)


def restart_rows():
    """Yield the price of one more start on digits against other ways to the same."""
    X, _ = fastmmc.datasets.load("digits")
    factor = fastmmc.factor(X / 16)
    labels = np.arange(len(X)) % 10
    # A balance of k bounds no size, so the round is all there is.
    rounds = {"method": "shaking", "init": labels, "n_rounds": 1, "min_size": 0, "balance": 10}
    claims = fastmmc.umc_rls(factor, 10, **rounds).n_moves
    n_moves = np.mean([moves.shake(factor, random_state=i).n_moves for i in SEEDS])
    one, eleven, one_round, twin, risk, one_eigh = best_of(
        5,
        lambda: moves.shake(factor),
        lambda: moves.shake(factor, 11),
        lambda: fastmmc.umc_rls(factor, 10, **rounds),
        lambda: moves.numpy_round(factor.R, labels, 10),
        lambda: moves.full_risk(factor.R, labels, 10),
        lambda: eigh(factor.R),
    )
    start = (eleven - one) / 10
    yield (
        "one more start of shaking on digits",
        "one `scipy.linalg.eigh` of its matrix",
        one_eigh / start,
    )
    yield (
        f"one round of shaking on digits ({claims} claims), call included",
        "the same claims in vectorised NumPy",
        twin / one_round,
    )
    yield (
        f"one more start of shaking on digits ({n_moves:.0f} claims)",
        "the risk in full, once a claim",
        risk * n_moves / start,
    )


def whole_call_rows():
    """Yield a whole call at n = 4000 against its linear algebra and against the eigenvalues."""
    X, _ = blobs(4000, 10)
    kernel = gram.resolve_kernel(gram.Kernel("rbf"), X)

    def linear_algebra():
        A = np.empty((4000, 4000))
        gram.fill_lower_gram(kernel, X, A)
        cholesky.add_to_diagonal(A, 0.25)
        lapack.dpotrf(A.T, lower=0, overwrite_a=1, clean=0)
        lapack.dpotri(A.T, lower=0, overwrite_c=1)

    def eigen_route():
        A = np.empty((4000, 4000))
        gram.fill_lower_gram(kernel, X, A)
        factor = factors.DenseFactor(
            factors.hat_from_eigh(*factors.eigh_lower(A), 0.25), 0.25, kernel, X
        )
        moves.shake(factor)

    def ours():
        fastmmc.umc_rls(X, 10, n_init=1, random_state=0, sigma=kernel.sigma, method="shaking")

    yield (
        '`umc_rls(X, 10, method="shaking", n_init=1)`, n = 4000',
        "its Gram matrix, `potrf` and `potri` alone",
        1 / ratio(5, ours, linear_algebra),
    )
    yield (
        '`umc_rls(X, 10, method="shaking", n_init=1)`, n = 4000',
        "the same through an eigendecomposition",
        1 / ratio(1, ours, eigen_route),
    )


def claim_rows():
    """Yield one claim against the pass over memory that any exact move must make."""
    for n in (2000, 6000, 12000):
        for dtype in ("float64", "float32"):
            claim = moves.OneClaim()
            claim.setup(n, dtype)
            cost = claim.track_over_pass(n, dtype)
            yield f"one claim, n = {n}, {dtype}", "adding and subtracting its row", 1 / cost


def evolution_rows():
    """Yield one child of EvoMMC against the paper's ways to its fitness."""
    child = moves.OneChild()
    child.setup()
    this = f"one refused child of `evo_mmc`, n = {child.n}, drawing included"
    yield this, "Theorem 1 of the paper, compiled", 1 / child.track_theorem_1()
    yield this, "`y @ R @ y`", 1 / child.track_direct()
    yield this, "one fit of LIBSVM", 1 / child.track_libsvm()


def peer_rows():
    """Yield whole calls against scikit-learn's k-means and its mini-batches, and against NumPy."""
    peers = calls.OverPeers()
    peers.setup()
    yield (
        "`fast_evo_mmc(X, rank=140)`, 14,000 × 784, ten starts",
        "`KMeans(2, n_init=10)`",
        1 / peers.track_fast_evo_mmc_over_kmeans(),
    )
    for name in calls.STREAMS:
        yield (
            f"`{name}.partial_fit`, d = 16, k = 10, chunks of 1,024",
            "`MiniBatchKMeans.partial_fit`",
            1 / peers.stream(name),
        )
    yield (
        "`CRPCL.partial_fit`, one chunk of 20,000",
        "the same steps on whole arrays in NumPy",
        1 / peers.track_c_rpcl_over_numpy(),
    )


PEAK = """
import numpy as np, fastmmc
from sklearn.cluster import KMeans
def peak():  # of this process; what getrusage says includes the one that started it
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
dense = {"method": "shaking", "rank": None, "n_init": 2}
fastmmc.umc_rls(np.random.default_rng(0).standard_normal((60, 10)), 10, **dense)
before = peak()
fastmmc.umc_rls(np.random.default_rng(0).standard_normal((5000, 10)), 10, **dense)
print((peak() - before) / (8 * 5000**2))
"""

FIRST_CALL = """
import time
began = time.perf_counter()
import numba, sklearn.cluster
base = time.perf_counter()
import fastmmc
ours = time.perf_counter()
X, _ = fastmmc.datasets.load("iris")
loaded = time.perf_counter()
fastmmc.umc_rls(X, 3, n_init=1)
print(base - began, ours - base, time.perf_counter() - loaded)
"""


def python(code, **env):
    out = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | env,
        check=True,
        capture_output=True,
        text=True,
    )
    return [float(word) for word in out.stdout.split()]


def waiting_rows(folder):
    """Yield what a user waits for and holds: import, first call, memory."""
    env = {"NUMBA_CACHE_DIR": str(folder)}
    cold = python(FIRST_CALL, **env)
    warm = [python(FIRST_CALL, **env) for _ in range(3)]
    base, ours, call = np.median(warm, axis=0)
    yield "import numba and scikit-learn", f"{base:.2f} s"
    yield "import fastmmc after them", f"{ours:.2f} s"
    yield "first call ever (compiles)", f"{cold[2]:.1f} s"
    yield "first call in a new process (from the cache)", f"{call:.2f} s"
    yield "peak memory at n = 5000, in n × n matrices", f"{python(PEAK, **env)[0]:.2f}"


def compare(times):
    """Return in words what it means to be so many times as fast."""
    factor, word = (times, "faster") if times >= 1 else (1 / times, "slower")
    return f"{factor:,.{0 if factor >= 20 else 1}f} × {word} than"


def row(*cells):
    return f"| {' | '.join(cells)} |"


def heading(*cells):
    return [row(*cells), f"|{'---|' * len(cells)}"]


def short_table(quality):
    """Return the medians, a line a set, the highest ones in bold, and the seconds on the first."""
    methods = list(dict.fromkeys(method for _, method, *_ in quality))
    names = list(dict.fromkeys(name for name, *_ in quality))
    lines = heading("", *methods)
    for name in names:
        scores = [f"{median:.2f}" for of, _, median, *_ in quality if of == name]
        best = max(scores)
        lines.append(row(name, *(f"**{s}**" if s == best else s for s in scores)))
    seconds = [f"{seconds:.2f}" for of, *_, seconds in quality if of == names[0]]
    return [*lines, row(f"seconds on {names[0]}", *seconds)]


def readme_lines(quality, speeds):
    """Return what the README says: a table, and a sentence for the first speed of each kind."""
    told = [f"- {rows[0][0]}: {compare(rows[0][2])} {rows[0][1]}" for rows in speeds]
    when = f"Measured {date.today()} on {os.cpu_count()} cores ({platform.machine()})."
    return [*short_table(quality), "", *told, "", when]


def page_lines(quality, speeds, waiting):
    """Return what the page says: every figure, and what it was measured with."""
    scores = [
        row(name, method, *(f"{x:.3f}" for x in (median, low, high)), f"{seconds:.2f}")
        for name, method, median, low, high, seconds in quality
    ]
    compared = [row(this, compare(times), other) for this, other, times in chain(*speeds)]
    return [
        "",
        "## Quality",
        "",
        *heading("data", "method", "ARI, median of 10 seeds", "lowest", "highest", "seconds"),
        *scores,
        "",
        "## Speed",
        "",
        *heading("this", "is", "that"),
        *compared,
        "",
        "## Waiting and memory",
        "",
        *heading("what", "how much"),
        *(row(*cells) for cells in waiting),
        "",
        f"Measured {date.today()} on commit {commit()}, {os.cpu_count()} cores "
        f"({platform.machine()}), "
        f"Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}, "
        f"scikit-learn {sklearn.__version__}, Numba {numba.__version__}, by "
        "`asv_benchmarks/readme_table.py`.",
    ]


def write_between_markers(path, lines):
    """Put lines into a page, in place of those between its markers."""
    before, _, rest = path.read_text(encoding="utf-8").partition(MARKERS[0])
    _, _, after = rest.partition(MARKERS[1])
    text = "\n".join([before + MARKERS[0], *lines, MARKERS[1] + after])
    path.write_text(text, encoding="utf-8")


def run_times(method):
    """Yield n and the seconds of a whole run by one way to the fitness."""
    for n in calls.RUN_SIZES:
        if n <= calls.RUNS[method]:
            X, _ = two_classes(n)
            if n == calls.RUN_SIZES[0]:
                calls.whole_run(method, X)  # compiles
            yield n, best_of(2, lambda X=X: calls.whole_run(method, X))[0]


def draw_run_times():
    """Save the figure of the EvoMMC paper: seconds against n, one line a way to the fitness."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    for method in calls.RUNS:
        sizes, seconds = zip(*run_times(method), strict=True)
        style = "-o" if method in ("EvoMMC", "FastEvoMMC") else "--s"
        ax.plot(sizes, seconds, style, label=method.replace("n^2", "n²"))
    ax.set(xscale="log", yscale="log", xlabel="points", ylabel="seconds, points to labels")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
    figure.savefig(ROOT / RUN_TIMES, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the tables and a picture")
    args = parser.parse_args()
    warnings.filterwarnings("ignore", "Graph is not fully connected")  # moons: two components
    quality = list(quality_rows())
    large, *streams = peer_rows()
    speeds = [
        [*restart_rows(), *claim_rows(), *evolution_rows()],
        [*whole_call_rows()],
        [large],
        streams,
    ]
    with tempfile.TemporaryDirectory() as folder:
        waiting = list(waiting_rows(folder))
    tables = {
        ROOT / "README.md": readme_lines(quality, speeds),
        ROOT / "docs" / "measured.md": page_lines(quality, speeds, waiting),
    }
    for path, lines in tables.items():
        print(*lines, sep="\n", end="\n\n")
        if args.write:
            write_between_markers(path, lines)
    if args.write:
        draw_run_times()


if __name__ == "__main__":
    main()
