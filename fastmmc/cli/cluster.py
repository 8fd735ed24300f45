"""The command ``fastmmc cluster``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from fastmmc import datasets, plotting
from fastmmc.cli import common
from fastmmc.cli.common import Option
from fastmmc.cli.tables import DELIMITERS, read_table
from fastmmc.registry import METHODS
from fastmmc.results import STATUS_TEXT

ARRAYS = (".npy", ".npz")
# How labels are written: by the ending of the file's name.
LABELS = (".npy", *common.TEXTS)

OPTIONS = (
    Option("--k", "k", int, "number of clusters; binary methods always make two"),
    Option("--lam", "lam", float, "regularisation, greater than 0"),
    Option("--sigma", "sigma", float, "width of the Gaussian kernel exp(-|x - z|^2 / sigma^2)"),
    Option(
        "--rank",
        "rank",
        common.parse_rank,
        "landmarks of the low-rank form, or their share of the points; none: dense; "
        "auto: dense up to 10,000 points",
    ),
    Option(
        "--search",
        "method",
        str,
        "how umc-rls searches: shaking, steepest, stochastic, memetic; how sammc does: memetic, "
        "annealing; or by which method for two clusters recursive-mmc splits",
    ),
    Option("--split", "split", str, "which cluster recursive-mmc splits next: largest, gain"),
    *common.RUN_OPTIONS,
)


def add_command(commands):
    """Add ``cluster`` to the commands of a parser."""
    parser = commands.add_parser("cluster", help="cluster a file or a data set")
    parser.set_defaults(run=_cluster)
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="a .csv, .tsv, .npy or .npz file (arrays X and, optionally, y), a data set's name, or "
        "- for a table on standard input; columns on the left of a table that have no name in the "
        "header, as the index of a frame that pandas wrote, are left out with a note",
    )
    common.add_method(parser, METHODS, "umc-rls")
    common.add_options(parser, OPTIONS)
    parser.add_argument(
        "--label-column",
        metavar="COL",
        help="column of a .csv or .tsv file with the true labels, by its name in the header or "
        "its index from 0; it is compared with the clusters and not used to find them",
    )
    parser.add_argument(
        "--online", action="store_true", help="ask OpenML for a data set that is not here"
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help=f"write the labels to this file: {', '.join(common.TEXTS)} (text) or .npy",
    )
    parser.add_argument("--plot", type=Path, metavar="PICTURE", help="draw the clusters")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _cluster(args):
    method = METHODS[args.solver]
    params = _solver_params(args, method)
    # All that can be refused is refused before the computation.
    for path in (args.out, args.plot):
        if path is not None:
            common.check_writable(path, args.source)
    if args.out is not None:
        common.check_ending(args.out, LABELS)
    if args.plot is not None:
        _check_picture_format(args.plot)
    X, y = _read_source(args.source, args.label_column, args.online)
    result, seconds = common.run_solver(method.function, X, params, OPTIONS)
    if args.out is not None:
        _write_labels(args.out, result.labels)
    if args.plot is not None:
        _save_picture(args.plot, result, X)
    _print_result(args, X, y, result, seconds)


def _solver_params(args, method):
    """Return the options that were given, as parameters of the solver."""
    accepted = method.parameters
    names = {option.flag: common.solver_name(option, accepted) for option in OPTIONS}
    given = {names[o.flag]: value for o, value in common.given_options(args, OPTIONS).items()}
    if method.binary:
        k = given.pop("k", 2)
        if k != 2:
            raise ValueError(f"{method.name} always makes two clusters; got --k {k}")
    elif "k" not in given:
        raise ValueError(f"--k is missing: {method.name} must be told the number of clusters")
    if "method_params" in accepted:
        # What the method lacks is meant for the one that it calls.
        given["method_params"] = {n: given.pop(n) for n in [*given] if n not in accepted}
    for flag, name in names.items():
        if name in given and name not in accepted:
            known = ", ".join(other for other, own in names.items() if own in accepted)
            raise ValueError(f"{method.name} has no {flag}; of these options it has {known}")
    return given


def _write_labels(path, labels):
    """Write the labels, as text with a header or as an array."""
    if path.suffix.lower() != ".npy":
        np.savetxt(path, labels, fmt="%d", header="label", comments="")
        return
    with path.open("wb") as file:
        np.save(file, labels)


def _check_picture_format(path):
    plotting.import_pyplot()
    from matplotlib.figure import Figure

    common.check_picture_ending(
        path, [f".{end}" for end in Figure().canvas.get_supported_filetypes()]
    )


def _save_picture(path, result, X):
    # A Figure of its own draws without a window, whatever backend is set.
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    plotting.ClusterDisplay.from_result(result, X, ax=figure.subplots())
    figure.savefig(path, dpi=150)


def _print_result(args, X, y, result, seconds):
    (n, d), k, sizes = X.shape, len(result.sizes), result.sizes.tolist()
    report = {
        "method": args.solver,
        "source": args.source,
        "n": n,
        "d": d,
        "k": k,
        "sizes": sizes,
        "objective": result.objective,
        "status": result.status.name,
        "seconds": seconds,
        "ari": None,
        "nmi": None,
        "params": result.params,
    }
    source = common.source_name(args.source)
    headline = f"{args.solver} on {source}: {n} points, {d} features, {k} clusters"
    rows = [("sizes", " ".join(map(str, sizes))), ("objective", f"{result.objective:.6g}")]
    if hasattr(result, "loo_mse"):
        report["loo_mse"] = result.loo_mse
        if result.loo_mse is not None:
            rows.append(("loo_mse", f"{result.loo_mse:.6g}"))
    rows += [("status", STATUS_TEXT[result.status]), ("time", f"{seconds:.3g} s")]
    if y is not None:
        ari = report["ari"] = adjusted_rand_score(y, result.labels)
        nmi = normalized_mutual_info_score(y, result.labels, average_method="geometric")
        report["nmi"] = nmi
        rows += [("ARI", f"{ari:.4f}"), ("NMI", f"{nmi:.4f}")]
    common.print_report(report, headline, rows, args.json)
    if hasattr(result, "tree") and not args.json:
        print(result.tree)


def _read_source(source, label_column, online=False):
    """Return the points and, where they are known, the true labels."""
    path = Path(source)
    is_table = source == common.STANDARD_INPUT or path.suffix.lower() in DELIMITERS
    is_name = not (is_table or path.suffix or path.name != source or path.exists())
    is_name |= source in datasets.BUNDLED + datasets.GENERATED
    if label_column is not None and (is_name or path.suffix.lower() in ARRAYS):
        raise ValueError(f"--label-column is for tables; got SOURCE {source}")
    if is_name:
        X, y = _load(source, online)
    elif path.is_dir():
        raise ValueError(f"{source} is a folder; give a file")
    elif is_table:
        X, y = read_table(path, label_column)
    elif path.suffix.lower() in ARRAYS:
        X, y = _read_arrays(path, path.suffix.lower())
    else:
        raise ValueError(
            f"{source}: the name must end in {', '.join((*DELIMITERS, *ARRAYS))}, or be one of "
            f"the data sets {', '.join(datasets.BUNDLED + datasets.GENERATED)}, or - for a table "
            "on standard input"
        )
    _check_points(common.source_name(source), X)
    return X, y


def _load(name, online):
    """Load a data set by name; what is missing is told by the options of the command line."""
    try:
        return datasets.load(name, online=online)
    except ValueError as error:
        folder = "data_home or in the folder FASTMMC_DATA names"
        message = str(error).replace(folder, folder.removeprefix("data_home or in "))
        raise ValueError(message.replace("online=True asks", "--online asks")) from error


def _check_points(source, X):
    """Name what is wrong with the points before a solver does so without the file's name."""
    if X.ndim != 2 or X.dtype.kind not in "iufb":
        raise ValueError(
            f"{source}: expected a matrix of numbers; got shape {X.shape} and type {X.dtype}"
        )
    bad = np.argwhere(~np.isfinite(X))
    if bad.size:
        i, j = bad[0]
        raise ValueError(
            f"{source}: row {i}, column {j} (from 0) is {X[i, j]}; fill in or remove missing values"
        )


def _read_arrays(path, suffix):
    """Read an .npy or .npz file."""
    if suffix == ".npz":
        return datasets.read_npz(path)
    try:
        with path.open("rb") as file:
            return np.lib.format.read_array(file, allow_pickle=False), None
    except ValueError as error:
        raise ValueError(f"{path} cannot be read as an .npy file: {error}") from error
