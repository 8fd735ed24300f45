"""Time and memory over points, features and clusters, beside k-means and mini-batches.

See README.md in this folder for the protocol.
"""

import gc
import time
from functools import partial
from pathlib import Path

import numpy as np
from common import alone, main, peak_memory, table
from joblib import Memory
from sklearn.cluster import KMeans, MiniBatchKMeans

import fastmmc
from fastmmc.core.memory import available_memory

SIZES = (1_000, 10_000, 100_000, 1_000_000)
FEATURES = (16, 784)
CLUSTERS = (2, 10, 100)

METHODS = {
    "umc_rls": lambda X, k: fastmmc.umc_rls(X, k, random_state=0),
    "KMeans": lambda X, k: KMeans(k, n_init=10, random_state=0).fit(X),
    "MiniBatchKMeans": lambda X, k: MiniBatchKMeans(k, n_init=3, random_state=0).fit(X),
}


# Copies of the points that a method holds, with those given, and the numbers that ours holds beside
# them: Z of rank 1,000, or less for more points.
COPIES = {"umc_rls": 1, "KMeans": 3, "MiniBatchKMeans": 1}
RANK, MOST_NUMBERS = 1_000, 300_000_000

# Points that are moved to their centres at a time.
ROWS = 10_000


def generate(n, d, k):
    """Return n points of k Gaussians that overlap a little, whatever d is."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    centers = 8 * rng.standard_normal((k, d)) / np.sqrt(d)
    y = rng.integers(k, size=n)
    for start in range(0, n, ROWS):
        X[start : start + ROWS] += centers[y[start : start + ROWS]]
    return X


def measure(n, d, k, names):
    """Return CPU seconds and the peak of memory in bytes of each method, in this process."""
    X, found = generate(n, d, k), {}
    for name in names:
        METHODS[name](X[: 4 * k + 300], k)  # loads compiled code
        gc.collect()
        Path("/proc/self/clear_refs").write_text("5")  # forgets the peak
        began = time.process_time()
        METHODS[name](X, k)
        found[name] = time.process_time() - began, peak_memory()
    return found


def measure_alone(n, d, k, names):
    """Return what :func:`measure` does in a process of its own."""
    return alone(measure, n, d, k, names)


def reason_to_skip(name, n, d, expected, limit):
    """Return why a method is left out, or None.

    Ours is never too slow: its time grows less than n does, so a tenth of the points tells nothing.
    """
    if name != "umc_rls" and expected > limit:
        return f"about {expected:.0f} s"
    needed = 8 * (COPIES[name] * n * d + (name == "umc_rls") * min(RANK * n, MOST_NUMBERS))
    free = available_memory()
    if free is not None and needed > free:
        return f"{needed / 2**30:.0f} GiB, of which {free / 2**30:.0f} are free"
    return None


def measure_all(largest, limit, keep):
    """Yield n, d, k, and what each method took, or why it was left out.

    What was measured is kept in the folder ``keep``, if there is one, and taken from there.
    """
    kept = Memory(keep, verbose=0).cache(measure_alone)
    for d in FEATURES:
        for k in CLUSTERS:
            expected = dict.fromkeys(METHODS, 0.0)
            for n in (n for n in SIZES if n <= largest):
                why = {m: reason_to_skip(m, n, d, expected[m], limit) for m in METHODS}
                found = kept(n, d, k, [m for m in METHODS if why[m] is None])
                for name in METHODS:
                    yield n, d, k, name, found.get(name, why[name])
                    # Ten times the points take about ten times as long.
                    expected[name] = 10 * (found[name][0] if name in found else expected[name])


def page(run):
    largest = SIZES[0] if run.quick else run.largest
    measured = list(measure_all(largest, run.seconds, run.keep))
    rows, taken, left_out = [], {}, []
    for n, d, k in dict.fromkeys(one[:3] for one in measured):
        cell = {name: found for *at, name, found in measured if at == [n, d, k]}
        done = {m: found for m, found in cell.items() if not isinstance(found, str)}
        seconds = [f"{done[m][0]:.2f}" if m in done else "-" for m in METHODS]
        peaks = [f"{done[m][1] / 2**20:.0f}" if m in done else "-" for m in METHODS]
        rows.append([f"{n:,}", d, k, *seconds, *peaks])
        taken |= {(n, d, k, m): found for m, found in done.items()}
        left_out += [f"{m} at {n:,} x {d}, k = {k}: {cell[m]}" for m in METHODS if m not in done]
    with run.picture("times", 2, len(FEATURES), figsize=(9, 7), sharex=True, sharey="row") as drawn:
        draw(taken, drawn[1])
    header = ["n", "d", "k", *(f"{m}, s" for m in METHODS), *(f"{m}, MB" for m in METHODS)]
    parts = [
        "# Time and memory over points, features and clusters",
        run.made(),
        f"Up to {largest:,} points. Seconds of the processor, all threads together, from points to "
        "labels; peak of the process's memory. `umc_rls(X, k)` with defaults, "
        "`KMeans(k, n_init=10)`, `MiniBatchKMeans(k)`.",
        table(header, rows),
    ]
    if left_out:
        parts.append(
            f"-: left out, as a tenth of the points took more than {run.seconds / 10:g} s (these "
            f"two peers only), or for want of memory: {'; '.join(left_out)}."
        )
    picture = f"![Seconds and memory against the number of points]({run.picture_name('times')})"
    return [*parts, picture]


def draw(taken, axes):
    """Draw seconds and memory against n: a column for each d, a line for each method and k."""
    styles = dict(zip(CLUSTERS, (":", "--", "-"), strict=True))
    colors = dict(zip(METHODS, ("C0", "C1", "C2"), strict=True))
    for column, d in enumerate(FEATURES):
        for name, color in colors.items():
            for k, style in styles.items():
                of = partial(line_of, taken, d, k, name)
                axes[0, column].plot(*of(0, 1.0), style, color=color, marker=".")
                label = f"{name}, k = {k}"
                axes[1, column].plot(*of(1, 2**-20), style, color=color, marker=".", label=label)
        axes[0, column].set(title=f"d = {d}", xscale="log", yscale="log")
        axes[1, column].set(xlabel="points", yscale="log")
    axes[0, 0].set_ylabel("seconds of the processor")
    axes[1, 0].set_ylabel("peak memory, MB")
    axes[1, -1].legend(fontsize="x-small")


def line_of(taken, d, k, name, figure, scale):
    """Return the sizes, and the figures at them."""
    sizes = [n for n in SIZES if (n, d, k, name) in taken]
    return sizes, [taken[n, d, k, name][figure] * scale for n in sizes]


if __name__ == "__main__":
    main(
        page,
        options=[
            ("--largest", {"type": int, "default": SIZES[-1], "help": "points, at most"}),
            ("--seconds", {"type": float, "default": 60.0, "help": "that a peer may take, about"}),
        ],
    )
