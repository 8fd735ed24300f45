"""The runner of this folder's scripts: sets, rivals, tasks, figures that describe runs, pages.

A script has ``PAGES``, {name: (title, function, names of sets)}, and ends in :func:`main`. Each
function takes a :class:`Run` and yields what stands below the title of its page: paragraphs, and
tables as (header, rows) or (header, rows, digits).
"""

import argparse
import platform
import subprocess
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from functools import cache
from importlib import import_module
from itertools import combinations, product
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numba
import numpy as np
import sklearn
from joblib import Memory, Parallel, cpu_count, delayed
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.mixture import GaussianMixture

import fastmmc
from fastmmc import datasets

FOLDER = Path(__file__).parent

# --------------------------------------------------------------------------------------------- sets


class Source(NamedTuple):
    """Where a set of a paper comes from: the classes taken and the number of points drawn."""

    name: str
    classes: tuple[int, ...] | None = None
    draw: int | None = None


# A set that has no entry is a data set taken whole. Labels count from 0 here: satellite's classes
# 1 and 2 are 0 and 1, coil's 1..4 are 0..3.
SOURCES = {
    "breast cancer": Source("breast_cancer_wisconsin"),
    "coil": Source("coil20"),
    "coil 1-4": Source("coil20", (0, 1, 2, 3)),
    "coil 5-8": Source("coil20", (4, 5, 6, 7)),
    "letter A-B": Source("letter", (0, 1)),
    "letter A-D": Source("letter", (0, 1, 2, 3), 500),
    "letter A-H": Source("letter", tuple(range(8))),
    "letter I-J-L": Source("letter", (8, 9, 11)),
    "mnist 1-2": Source("mnist", (1, 2)),
    "mnist 1-7": Source("mnist", (1, 7)),
    "pendigits 3-8-9": Source("pendigits", (3, 8, 9)),
    "satellite 1-2": Source("satimage", (0, 1)),
    "usps 0-3": Source("usps", (0, 1, 2, 3), 500),
    "usps 4-7": Source("usps", (4, 5, 6, 7), 500),
}
SOURCES |= {
    f"usps {i}-{j}": Source("usps", (i, j), 500) for i, j in ((3, 8), (1, 7), (2, 7), (8, 9))
}
PAIRS = {f"digits {i}-{j}": Source("digits", (i, j)) for i, j in combinations(range(10), 2)}
SOURCES |= PAIRS

# The pairs of digits that the papers on two clusters show.
SHOWN_PAIRS = ("digits 3-8", "digits 1-7", "digits 2-7", "digits 8-9")

# The last ones overlap, and differ in size by a factor of three.
BLOB_SIZES = 900, 80, 20
MADE = {
    "nine Gaussians": lambda rng: datasets.make_nine_gaussians(900, random_state=0),
    "blobs 900/80/20": lambda rng: gaussians(rng, [(0, 0), (20, 0), (0, 20)], BLOB_SIZES),
    "Gaussians": lambda rng: gaussians(
        rng,
        1.6 * rng.standard_normal((10, 10)),
        rng.multinomial(10_000, np.linspace(0.5, 1.5, 10) / 10),
    ),
}


def gaussians(rng, centers, sizes):
    """Return points of round Gaussians, and which Gaussian they are of."""
    y = np.repeat(np.arange(len(sizes)), sizes)
    return rng.standard_normal((y.size, len(centers[0]))) + np.array(centers)[y], y


@cache
def whole(source):
    """Return the points of a source and their labels, before anything is drawn."""
    X, y = datasets.load(source.name, online=True)
    y = np.zeros(len(X), dtype=int) if y is None else y
    keep = np.isin(y, source.classes) if source.classes else slice(None)
    return X[keep].astype(np.float64), y[keep]


def load(name, seed=0, most=None):
    """Return the points of a set and their classes 0..k-1.

    The seed draws as many points as the set has in its paper, or at most ``most``.
    """
    source = SOURCES.get(name, Source(name))
    X, y = MADE[name](np.random.default_rng(seed)) if name in MADE else whole(source)
    size = most or source.draw
    if size and size < y.size:
        chosen = np.random.default_rng(seed).choice(y.size, size, replace=False)
        X, y = X[chosen], y[chosen]
    return X, np.unique(y, return_inverse=True)[1]


def samples(name, count):
    """Return the seeds of the samples of a set, one if it is taken whole."""
    return range(count if name in SOURCES and SOURCES[name].draw else 1)


def draw_labels(y, count, seed):
    """Return the labels of ``count`` random points a class, -1 elsewhere."""
    rng = np.random.default_rng(seed)
    known = np.full(y.size, -1)
    for label in np.unique(y):
        known[rng.choice(np.flatnonzero(y == label), count, replace=False)] = label
    return known


def overlapping(n, d, k, step=10_000):
    """Return n points of k Gaussians that overlap a little, whatever d is.

    They are moved to their centres in steps, as there may be no room for them twice.
    """
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    centers = 8 * rng.standard_normal((k, d)) / np.sqrt(d)
    y = rng.integers(k, size=n)
    for start in range(0, n, step):
        X[start : start + step] += centers[y[start : start + step]]
    return X


# ------------------------------------------------------------------------------------------- rivals


def k_means(X, k, seed=0, n_init=10, make=KMeans):
    return make(k, n_init=n_init, random_state=seed).fit_predict(X)


def mixture(X, k, seed=0, **given):
    return GaussianMixture(k, random_state=seed, **given).fit_predict(X)


def spectral(X, k, seed=0):
    """Cluster a graph of ten neighbours, which may fall apart."""
    model = SpectralClustering(k, affinity="nearest_neighbors", n_neighbors=10, random_state=seed)
    return quietly(model.fit_predict, X)


# ------------------------------------------------------------------------------------------ figures


def clustering_error(y, labels):
    """Return the percentage of wrong labels under the better of the two matchings."""
    share = np.mean(y != labels)
    return 100 * min(share, 1 - share)


def scores(method, score, name, sample, seeds):
    """Return what the labels of a rival score on a set, one figure a seed."""
    X, y = load(name, sample)
    return np.array([score(y, method(X, y.max() + 1, seed)) for seed in range(seeds)])


def best_cell(means):
    """Return the index of the smallest entry."""
    return tuple(map(int, np.unravel_index(means.argmin(), means.shape)))


def at_lowest(key, values):
    """Return the values where the key is lowest along the last axis."""
    winner = np.broadcast_to(key.argmin(axis=-1)[..., None], (*values.shape[:-1], 1))
    return np.take_along_axis(values, winner, axis=-1)[..., 0]


def under(results, *key):
    """Return the results whose keys begin with a key, in the order of their tasks."""
    return np.array([found for at, found in results.items() if at[: len(key)] == key])


def timed(function, *args, times=1, clock=time.perf_counter):
    """Return what a call returns, and the least seconds that it took."""
    seconds = []
    for _ in range(times):
        began = clock()
        result = function(*args)
        seconds.append(clock() - began)
    return result, min(seconds)


def peak_memory():
    """Return the peak of this process in bytes; that of getrusage includes its parent's."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


def slope(sizes, seconds):
    """Return the power of n that seconds grow with."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


# ------------------------------------------------------------------------------------------- runner


def quietly(function, *args):
    """Call a function without warnings: a run that had not converged counts as well."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args)


def alone(function, *args):
    """Call a function in a new process, so that the peak of memory is its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(quietly, function, *args).result()


class Run(argparse.Namespace):
    """The options of a script, and what it does by them."""

    def pick(self, full, quick):
        """Return what a whole run takes, or what a quick one does."""
        return quick if self.quick else full

    def repeats(self, full, quick):
        """Return how many seeds, drawings or samples there are of each figure."""
        return self.seeds or self.pick(full, quick)

    def protocol(self, grid):
        """Return the values of ``{name: (of a whole run, of a quick one)}`` by their names."""
        return SimpleNamespace(**{name: self.pick(*both) for name, both in grid.items()})

    def loaded(self):
        """Return the names of the chosen sets that can be had."""
        names = []
        for name in self.sets:
            try:
                load(name)
                names.append(name)
            except ValueError as error:
                print(f"{name} is skipped: {error}")
        return names

    def do(self, tasks):
        """Run ``{key: (function, *args)}`` in parallel and return ``{key: result}``, in order.

        Finished tasks are kept in the folder of ``--keep`` and taken from there the next time.
        """
        kept = Memory(self.keep, verbose=0).cache
        calls = (delayed(quietly)(kept(function), *args) for function, *args in tasks.values())
        return dict(zip(tasks, Parallel(self.jobs, verbose=1)(calls), strict=True))

    def over(self, cells, function, *given):
        """Return ``{cell: function(*cell, *given)}`` of some cells."""
        return self.do({cell: (function, *cell, *given) for cell in cells})

    def each(self, function, *axes):
        """Return ``{cell: function(*cell)}`` of every combination of the axes."""
        return self.over(product(*axes), function)

    def draw(self, name, xlabel, panels, rows):
        """Draw lines, save the picture beside the page and return the Markdown that shows it.

        Panels are ``{title: {label of a line: (its format, (x, y and perhaps what y varies by) of
        each row)}}``. ``rows`` are {label of the y axes: options of the axes}, one above the other.
        """
        from matplotlib.figure import Figure

        figure = Figure((4 * len(panels), 2.7 * len(rows) + 1), layout="constrained")
        axes = figure.subplots(len(rows), len(panels), sharex="col", squeeze=False)
        for of_panel, (title, lines) in zip(axes.T, panels.items(), strict=True):
            for label, (form, *points) in lines.items():
                for ax, of_row in zip(of_panel, points, strict=True):
                    ax.errorbar(*of_row, fmt=form, label=label)
            for ax, options in zip(of_panel, rows.values(), strict=True):
                ax.set(**options, title=title)
            of_panel[-1].set_xlabel(xlabel)
        for ax, ylabel in zip(axes[:, 0], rows, strict=True):
            ax.set_ylabel(ylabel)
        lines, labels = axes[0, 0].get_legend_handles_labels()
        ncols = min(len(lines), len(panels) + 1)
        figure.legend(lines, labels, loc="outside lower center", ncols=ncols)
        file = f"{self.out.stem}_{name}.png"
        figure.savefig(self.out.with_name(file), dpi=150)
        return f"![{' and '.join(rows)} against {xlabel}]({file})"


def commit():
    """Return the commit of the code that runs, and whether it has changes."""

    def git(*args):
        done = subprocess.run(["git", *args], cwd=FOLDER, capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else "unknown"

    is_changed = git("status", "--porcelain", "--", ":/fastmmc")
    return git("rev-parse", "--short=10", "HEAD") + (" with changes" if is_changed else "")


def made(command, began, on):
    """Say which script made a page, of which code, how long it took, and where."""
    return (
        f"Made by `{command}` on commit {on} in {(time.perf_counter() - began) / 60:.0f} min on "
        f"{cpu_count()} CPUs ({platform.machine()}), Python {platform.python_version()}, "
        f"fastmmc {fastmmc.__version__}, NumPy {np.__version__}, Numba {numba.__version__}, "
        f"scikit-learn {sklearn.__version__}, {date.today()}."
    )


def main(**options):
    """Read the options, make the pages that they name, write and print them.

    ``options`` of this script alone are {name: arguments of ``add_argument``}.
    """
    # By its own name, under which other processes find functions that keep what they returned.
    script = import_module(Path(sys.argv[0]).stem)
    pages = script.PAGES
    sets = list(dict.fromkeys(name for *_, of_page in pages.values() for name in of_page))
    parser = argparse.ArgumentParser(description=script.__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", metavar="PAGE", help=f"of {', '.join(pages)}; all")
    parser.add_argument("--quick", action="store_true", help="a small grid, about two minutes")
    parser.add_argument("--sets", nargs="+", choices=sets, default=sets, metavar="SET")
    parser.add_argument("--jobs", type=int, default=cpu_count(), help="processes")
    parser.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="keep results, so that a second run goes on"
    )
    parser.add_argument("--seeds", type=int, help="seeds, drawings or samples of each figure")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder of the pages")
    for name, arguments in options.items():
        parser.add_argument(f"--{name}", **arguments)
    given, on = vars(parser.parse_args()), commit()
    given["out"].mkdir(parents=True, exist_ok=True)
    for name in given["pages"] or pages:
        title, page, of_page = pages[name]
        chosen = [one for one in given["sets"] if one in of_page]
        if of_page and not chosen:
            continue
        run = Run(**given | {"name": name, "sets": chosen, "out": given["out"] / f"{name}.md"})
        began, parts = time.perf_counter(), quietly(list, page(run))
        parts = [part if isinstance(part, str) else table(*part) for part in parts]
        command = f"{Path(sys.argv[0]).name} {name}{' --quick' * run.quick}"
        about = f"{made(command, began, on)} README.md has the protocol."
        text = "\n\n".join([f"# {title}", about, *parts]) + "\n"
        run.out.write_text(text, encoding="utf-8")
        print(text)


# ------------------------------------------------------------------------------------------- tables


def table(header, rows, digits=2):
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cell(value, digits) for value in line)} |" for line in lines)


def crossed(corner, rows, columns, show):
    """Return header and rows of a table whose cells are ``show(row, column)``."""
    return [corner, *columns], ([row, *(show(row, column) for column in columns)] for row in rows)


def cell(value, digits=2):
    """Return a value as text: real numbers rounded, arrays as mean ± standard deviation."""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, np.ndarray):
        return mean_and_std(value.mean(), value.std(), digits)
    if value is None or isinstance(value, float | np.floating):
        return number(value, digits)
    return str(value)


def number(value, digits=2):
    return "-" if value is None or np.isnan(value) else f"{value:.{digits}f}"


def mean_and_std(mean, std, digits=2):
    return number(mean, digits) + ("" if np.isnan(mean) else f" ± {number(std, digits)}")
