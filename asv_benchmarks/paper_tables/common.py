"""The runner of this folder's scripts: sets, tasks, figures that describe runs, Markdown pages.

A script declares its sets, methods and tables and hands functions ``page(run)``, which return the
paragraphs of a page, to :func:`main`.
"""

import argparse
import platform
import subprocess
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from importlib import import_module
from itertools import combinations
from multiprocessing import get_context
from pathlib import Path

import numba
import numpy as np
import sklearn
from joblib import Memory, Parallel, cpu_count, delayed
from sklearn.exceptions import ConvergenceWarning

import fastmmc
from fastmmc import datasets

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Source:
    """Where a set of a paper comes from: the classes taken and the number of points drawn."""

    name: str
    classes: tuple[int, ...] | None = None
    draw: int | None = None


# Labels count from 0 here: satellite's classes 1 and 2 are 0 and 1, coil's 1..4 are 0..3.
SOURCES = {
    "breast cancer": Source("breast_cancer_wisconsin"),
    "coil": Source("coil20"),
    "coil 1-4": Source("coil20", (0, 1, 2, 3)),
    "coil 5-8": Source("coil20", (4, 5, 6, 7)),
    "letter A-B": Source("letter", (0, 1)),
    "letter A-D": Source("letter", (0, 1, 2, 3), 500),
    "letter I-J-L": Source("letter", (8, 9, 11)),
    "mnist 1-2": Source("mnist", (1, 2)),
    "mnist 1-7": Source("mnist", (1, 7)),
    "nine Gaussians": Source("nine_gaussians"),
    "pendigits 3-8-9": Source("pendigits", (3, 8, 9)),
    "satellite 1-2": Source("satimage", (0, 1)),
    "usps 0-3": Source("usps", (0, 1, 2, 3), 500),
    "usps 4-7": Source("usps", (4, 5, 6, 7), 500),
    "usps 3-8": Source("usps", (3, 8), 500),
    "usps 1-7": Source("usps", (1, 7), 500),
    "usps 2-7": Source("usps", (2, 7), 500),
    "usps 8-9": Source("usps", (8, 9), 500),
}
DIGIT_PAIRS = {f"{i}-{j}": Source("digits", (i, j)) for i, j in combinations(range(10), 2)}
SOURCES |= {f"digits {pair}": source for pair, source in DIGIT_PAIRS.items()}


def sources(*names):
    """Return ``{name: source}``; what has no entry above is a data set taken whole."""
    return {name: SOURCES.get(name, Source(name)) for name in names}


def load_source(source):
    """Return the points and labels of a source before drawing."""
    X, y = datasets.load(source.name, online=True)
    if source.classes is not None:
        keep = np.isin(y, source.classes)
        X, y = X[keep], y[keep]
    return X.astype(np.float64), y


def load_pair(source):
    """Return the points and the labels 0 and 1 of a source of two classes."""
    X, y = load_source(source)
    return X, (y == y.max()).astype(np.int64)


def load_samples(source, count):
    """Return that many samples of a source, one if it is taken whole."""
    X, y = load_source(source)
    seeds = range(count if source.draw else 1)
    return [draw(X, y, source.draw, seed) for seed in seeds]


def draw(X, y, size, seed):
    """Return ``size`` points drawn without replacement, all if it is None."""
    if size is None:
        return X, y
    chosen = np.random.default_rng(seed).choice(y.size, size, replace=False)
    return X[chosen], y[chosen]


def clustering_error(y, labels):
    """Return the percentage of wrong labels under the better of the two matchings."""
    share = np.mean((y == y.max()) != labels)
    return 100 * min(share, 1 - share)


def best_cell(means):
    """Return the index of the smallest entry."""
    return tuple(map(int, np.unravel_index(means.argmin(), means.shape)))


def at_lowest(key, values):
    """Return the values where the key is lowest along the last axis."""
    winner = np.broadcast_to(key.argmin(axis=-1)[..., None], (*values.shape[:-1], 1))
    return np.take_along_axis(values, winner, axis=-1)[..., 0]


def timed(function, *args, times=1, clock=time.perf_counter):
    """Return what a call returns, and the least seconds that it took."""
    seconds = []
    for _ in range(times):
        began = clock()
        result = function(*args)
        seconds.append(clock() - began)
    return result, min(seconds)


def last_value(generator):
    """Return what a generator returns."""
    while True:
        try:
            next(generator)
        except StopIteration as ended:
            return ended.value


def peak_memory():
    """Return the peak of this process in bytes; that of getrusage includes its parent's."""
    status = Path("/proc/self/status").read_text()
    return next(1024 * int(s.split()[1]) for s in status.splitlines() if s.startswith("VmHWM"))


def quietly(function, *args):
    """Call a function; a run that had not converged counts as well."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return function(*args)


def alone(function, *args):
    """Call a function in a new process, so that the peak of memory is its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(quietly, function, *args).result()


def with_progress(results, total):
    """Show a progress bar on stderr if rich is installed."""
    try:
        from rich.console import Console
        from rich.progress import track
    except ImportError:
        return results
    return track(results, "running", total=total, console=Console(stderr=True))


class Run(argparse.Namespace):
    """The options of a script, and what it does by them."""

    def load(self, function, *args):
        """Return ``{name: function(source, *args)}`` of the chosen sets that can be had."""
        loaded = {}
        for name in self.sets:
            try:
                loaded[name] = function(self.sources[name], *args)
            except ValueError as error:
                print(f"{name} is skipped: {error}")
        return loaded

    def do(self, tasks):
        """Run ``{key: (function, *args)}`` in parallel and return ``{key: result}``.

        Finished tasks are kept in the folder of ``--keep`` and taken from there the next time.
        """
        memory = Memory(self.keep, verbose=0)

        def keyed(key, function, *args):
            return key, quietly(memory.cache(function), *args)

        results = Parallel(self.jobs, return_as="generator_unordered")(
            delayed(keyed)(key, *task) for key, task in tasks.items()
        )
        return dict(with_progress(results, len(tasks)))

    def made(self):
        """Say which script made the page, of which code, how long it took, and where."""
        command = " ".join(
            [Path(sys.argv[0]).name, self.name, *(["--quick"] if self.quick else [])]
        )
        minutes = (time.perf_counter() - self.started) / 60
        return (
            f"Made by `{command}` on commit {commit()} in {minutes:.0f} min on {cpu_count()} CPUs "
            f"({platform.machine()}), Python {platform.python_version()}, "
            f"fastmmc {fastmmc.__version__}, NumPy {np.__version__}, Numba {numba.__version__}, "
            f"scikit-learn {sklearn.__version__}, {date.today().isoformat()}."
        )

    @contextmanager
    def picture(self, name, rows, columns, **options):
        """Yield figure and axes (rows, columns), and save them beside the page."""
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot as plt

        figure, axes = plt.subplots(rows, columns, squeeze=False, layout="constrained", **options)
        yield figure, axes
        figure.savefig(self.out.with_name(self.picture_name(name)), dpi=150)
        plt.close(figure)

    def picture_name(self, name):
        return f"{self.out.stem}_{name}.png"


def commit():
    """Return the commit of the code that runs, and whether it has changes."""

    def git(*args):
        done = subprocess.run(
            ["git", *args], cwd=Path(__file__).parent, capture_output=True, text=True
        )
        return done.stdout.strip() if done.returncode == 0 else "unknown"

    is_changed = git("status", "--porcelain", "--", ":/fastmmc")
    return git("rev-parse", "--short=10", "HEAD") + (" with changes" if is_changed else "")


def main(pages, options=()):
    """Read the options, call ``page(run)`` for the paragraphs of each page, write and print them.

    ``pages`` is {name: (function, {name of a set: source})}; ``options`` are (flag, arguments of
    ``add_argument``) of this script alone.
    """
    # By its own name, under which other processes find functions that keep what they returned.
    script = import_module(Path(sys.argv[0]).stem)
    pages = script.PAGES
    sets = {name: source for _, of_page in pages.values() for name, source in of_page.items()}
    parser = argparse.ArgumentParser(description=script.__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", metavar="PAGE", help=f"of {', '.join(pages)}; all")
    parser.add_argument("--quick", action="store_true", help="a small grid, about two minutes")
    parser.add_argument("--sets", nargs="+", choices=sets, default=list(sets), metavar="SET")
    parser.add_argument("--jobs", type=int, default=cpu_count(), help="processes")
    parser.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="keep results, so that a second run goes on"
    )
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder of the pages")
    for flag, arguments in options:
        parser.add_argument(flag, **arguments)
    given = vars(parser.parse_args())
    for name in given["pages"] or pages:
        page, sources = pages[name]
        run = Run(**given | {"name": name, "sources": sources, "started": time.perf_counter()})
        run.sets = [one for one in given["sets"] if one in sources]
        run.out = given["out"] / f"{name}.md"
        write_page(run.out, quietly(page, run))


def write_page(path, parts):
    """Write the paragraphs of a page, and print them."""
    text = "\n\n".join(parts) + "\n"
    path.write_text(text, encoding="utf-8")
    print(text)


def table(header, rows):
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def number(value, digits=2):
    return "-" if value is None or np.isnan(value) else f"{value:.{digits}f}"


def mean_and_std(mean, std, digits=2):
    return number(mean, digits) + ("" if np.isnan(mean) else f" ± {number(std, digits)}")


def spread(values, digits=2):
    return mean_and_std(np.mean(values), np.std(values), digits)


def reached(yes):
    return "yes" if yes else "no"
