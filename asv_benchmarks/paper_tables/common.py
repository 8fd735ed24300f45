"""What the scripts of this folder share: data, parallel tasks, Markdown."""

import platform
import sys
import time
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numba
import numpy as np
import sklearn
from joblib import Memory, Parallel, cpu_count, delayed

import fastmmc
from fastmmc import datasets


@dataclass(frozen=True)
class Source:
    """Where a set of a paper comes from: the classes taken and the number of points drawn."""

    name: str
    classes: tuple[int, ...] | None = None
    draw: int | None = None


def load_source(source):
    """Return the points and labels of a source before drawing."""
    X, y = datasets.load(source.name, online=True)
    if source.classes is not None:
        keep = np.isin(y, source.classes)
        X, y = X[keep], y[keep]
    return X.astype(np.float64), y


def load_available(names, load):
    """Return ``{name: load(name)}`` of every set that can be had."""
    loaded = {}
    for name in names:
        try:
            loaded[name] = load(name)
        except ValueError as error:
            print(f"{name} is skipped: {error}")
    return loaded


def run_all(tasks, jobs, folder=None):
    """Run ``{key: (function, *args)}`` in parallel and return ``{key: result}``.

    What ended is kept in the folder, if there is one, and taken from there the next time.
    """
    memory = Memory(folder, verbose=0)

    def keyed(key, function, *args):
        return key, memory.cache(function)(*args)

    results = Parallel(jobs, return_as="generator_unordered")(
        delayed(keyed)(key, *task) for key, task in tasks.items()
    )
    return dict(with_progress(results, len(tasks)))


def with_progress(results, total):
    """Show a progress bar on stderr if rich is installed."""
    try:
        from rich.console import Console
        from rich.progress import track
    except ImportError:
        return results
    return track(results, "running", total=total, console=Console(stderr=True))


def table(header, rows):
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def number(value):
    return "-" if value is None or np.isnan(value) else f"{value:.2f}"


def mean_and_std(mean, std):
    return number(mean) + ("" if np.isnan(mean) else f" ± {number(std)}")


def hardware():
    return (
        f"{cpu_count()} CPUs ({platform.machine()}), Python {platform.python_version()}, "
        f"fastmmc {fastmmc.__version__}, NumPy {np.__version__}, Numba {numba.__version__}, "
        f"scikit-learn {sklearn.__version__}, {date.today().isoformat()}"
    )


def made_by(quick, started):
    """Say which script made a page, how long it took since ``started``, and where."""
    command = Path(sys.argv[0]).name + (" --quick" if quick else "")
    minutes = (time.perf_counter() - started) / 60
    return f"Made by `{command}` in {minutes:.0f} min on {hardware()}."


def write_page(path, parts):
    """Write the paragraphs of a page, and print them."""
    text = "\n\n".join(parts) + "\n"
    path.write_text(text, encoding="utf-8")
    print(text)


def add_common_arguments(parser, sets, out):
    """Add the options that every script has."""
    parser.add_argument("--quick", action="store_true", help="a small grid, about two minutes")
    parser.add_argument("--sets", nargs="+", choices=sets, default=list(sets), metavar="SET")
    parser.add_argument("--jobs", type=int, default=cpu_count(), help="processes")
    parser.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="keep results, so that a second run goes on"
    )
    parser.add_argument("--out", type=Path, default=out, help="Markdown file")
