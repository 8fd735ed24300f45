"""The command ``fastmmc cluster``."""

import sys
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from fastmmc.choice.units import are_better_scaled
from fastmmc.cli import common, parquet, sources, tables
from fastmmc.cli.columns import COLUMNS, DROP, LISTED
from fastmmc.cli.common import Option
from fastmmc.core import saving
from fastmmc.core.declare import declared
from fastmmc.core.execution import one_call
from fastmmc.core.files import gathering
from fastmmc.core.status import Status
from fastmmc.core.words import counted
from fastmmc.plotting import ClusterDisplay, write_report
from fastmmc.plotting.base import import_pyplot
from fastmmc.plotting.report import import_bokeh
from fastmmc.registry import METHODS

# What is taken without --method: it chooses all, or has most of the settings.
CHOOSER, USUAL = "cluster", "umc-rls"
CONSTRAINED = [name for name, method in METHODS.items() if "must_link" in method.parameters]

CLUSTER_COUNT = Option(
    "-k --k N",
    common.parse_count_or_auto,
    f"number of clusters, or auto: {CHOOSER} chooses it (the default); binary methods always "
    "make two",
)
SIZES = (
    Option(
        "--max-k N",
        common.parse_count,
        "largest number that --k auto considers; 2 + n / 10, or 63 and slowly more from n = 610",
    ),
    Option(
        "--sizes RULE", str, "what umc-rls looks for: equal or bounded sizes (equal), any (free)"
    ),
    Option(
        "--balance SHARE",
        common.parse_number,
        "every size stays within this share of the mean size of its target",
    ),
    Option(
        "--target-sizes SIZES",
        common.parser_of(
            "numbers, separated by commas", lambda text: [*map(common.to_amount, text.split(","))]
        ),
        "sizes asked for, separated by commas, one a cluster; they sum to the number of points, or "
        "as shares to 1",
    ),
    Option("--min-size N", common.parse_count, "no cluster ends smaller than this"),
    Option("--max-size N", common.parse_count, "no cluster ends larger than this"),
    Option(
        "--trim N",
        common.parse_amount,
        "leave out this many points, or below 1 this share, that are least like the others; their "
        "label is -1",
    ),
)
PRICE = Option(
    "--link-penalty PRICE",
    common.parse_number,
    "price of a cannot-link of --constraints that umc-rls breaks; without it none is broken",
)
SEARCH = (
    Option("--lam LAM", common.parse_number, "regularisation, greater than 0"),
    Option(
        "--sigma SIGMA",
        common.parse_number,
        "width of the Gaussian kernel exp(-|x - z|^2 / sigma^2)",
    ),
    Option(
        "--rank RANK",
        common.parse_rank,
        "landmarks of the low-rank form, or their share of the points; none: dense; "
        "auto: dense where there are few points",
    ),
    Option(
        "--search SEARCH",
        str,
        "how umc-rls searches: shaking, steepest, stochastic, memetic; how sammc does: memetic, "
        "annealing; or by which method for two clusters recursive-mmc splits",
        dest="method",
    ),
    Option(
        "--metric METRIC",
        # A table holds no distances.
        common.parser_of(
            "euclidean or cosine", words={name: name for name in ("euclidean", "cosine")}
        ),
        "distances of the points: euclidean, or cosine for texts and embeddings, of which only the "
        "directions count",
    ),
    Option("--split SPLIT", str, "which cluster recursive-mmc splits next: largest, gain"),
    *common.RUN_OPTIONS,
)
OPTIONS = (CLUSTER_COUNT, *SIZES, PRICE, *SEARCH)


def add_command(commands):
    """Add ``cluster`` to the commands of a parser."""
    parser = commands.add_parser(
        "cluster",
        help="cluster a file or a data set",
        usage="%(prog)s [OPTION ...] SOURCE",
        description="Cluster a file or a data set. The labels go to --out or else to standard "
        "output, with the report on standard error.",
        epilog=sources.ABOUT_TABLES,
    )
    parser.set_defaults(run=_cluster)
    used = parser.add_argument_group("used most")
    common.add_options(used, [CLUSTER_COUNT, DROP])
    common.add_labels_out(used)
    used.add_argument("--plot", type=Path, metavar="PICTURE", help="draw the clusters")
    used.add_argument(
        "--html",
        type=Path,
        metavar="REPORT",
        help="write a page that works without a network: what is in each cluster, a scatter plot "
        "to explore, typical and doubtful rows",
    )
    given = parser.add_argument_group("input")
    sources.add_source(parser, given, LISTED)
    common.add_options(given, [tables.DECIMAL])
    given.add_argument(
        "--standardize",
        action="store_true",
        help=f"scale columns to mean 0 and deviation 1, binary ones less; {CHOOSER} does it by "
        "itself where units differ or clusters then agree better",
    )
    given.add_argument(
        "--fill-missing",
        action="store_true",
        help="fill missing cells (empty, NA, NaN, null or ?) as in similar rows, and do not mark "
        "them in a column of their own",
    )
    common.add_options(parser.add_argument_group("clusters"), SIZES)
    knowledge = parser.add_argument_group("knowledge")
    knowledge.add_argument(
        "--constraints",
        type=Path,
        metavar="FILE",
        help=f"{sources.PAIRS_HELP} ({', '.join(CONSTRAINED)} only)",
    )
    common.add_options(knowledge, [PRICE])
    knowledge.add_argument(
        "--label-column",
        metavar="COL",
        help="column of a table with the true labels, by its name in the header or its number "
        "from 0; it is compared with the clusters and not used to find them",
    )
    output = parser.add_argument_group("output")
    output.add_argument(
        "--profile",
        action="store_true",
        help="say what is in each cluster, after the report or in the JSON object: medians or "
        "frequent categories of the columns in which it differs most, and typical rows",
    )
    output.add_argument(
        "--append",
        action="store_true",
        help="write the table itself, a .csv or .tsv file, with the labels as a last column",
    )
    output.add_argument(
        "--model",
        type=Path,
        metavar="NPZ",
        help="save what fastmmc predict gives to new points by: the clusters, the columns in use "
        "and their scales; fastmmc.load reads it too",
    )
    output.add_argument(
        "--json",
        action="store_true",
        help="print one JSON object as the report, and the labels to --out only",
    )
    output.add_argument(
        "--state",
        type=Path,
        metavar="FOLDER",
        help=f"keep what is done in this folder, and go on from it if the run was killed; it is "
        f"removed at the end. For a large {common.PARQUET} file: {parquet.ABOUT}",
    )
    search = parser.add_argument_group("search")
    common.add_method(
        parser,
        search,
        METHODS,
        f"default: {CHOOSER}, which chooses width, sizes and number without labels; or, if a "
        f"setting is given that it lacks, {USUAL}",
    )
    common.add_options(search, SEARCH)


def _cluster(args):
    if args.source == str(args.constraints) == common.STANDARD_INPUT:
        raise ValueError("SOURCE and --constraints are both -, standard input; name a file for one")
    given = common.given_options(args, OPTIONS)
    method = _choose_method(args, given)
    params = _solver_params(args, method, given)
    if args.standardize and params.get("metric") == "cosine":
        raise ValueError("--metric cosine does not go with --standardize; leave out one of them")
    # All that can be refused is refused before the computation.
    if args.out is not None:
        common.check_labels_out(args.out, args.source, args.constraints)
    if args.append:
        _check_append(args)
    if args.plot is not None:
        common.check_output(args.plot, _picture_formats(), "a picture's name", args.source)
    if args.html is not None:
        common.check_output(args.html, (".html", ".htm"), "a report's name", args.source)
        import_bokeh()
    if args.model is not None:
        common.check_output(args.model, (".npz",), "the name of --model", args.source)
    scaled = args.standardize
    if params.get("metric", "euclidean") != "euclidean":
        scaled = None
    elif method.name == CHOOSER and not scaled:
        named = {name: params.get(name) for name in ("k", "max_time")}
        scaled = partial(are_better_scaled, **named)
    large = parquet.find_large(args, method.name)
    if large is not None and _goes_in_blocks(large, args, given):
        settings = _settings_of_state(args, method, given)
        with large.points(args.state, settings, scaled) as points:
            result = _cluster_points(args, method, params, points)
            if result.status != Status.INTERRUPTED:
                parquet.remove_state(points.X)
        return
    with one_call():
        with common.said_when_long(f"reading {common.source_name(args.source)}"):
            points = sources.read_points(
                args.source,
                sources.asked_columns(args),
                marks_missing=not args.fill_missing,
                scaled=scaled,
                encoding=args.encoding,
                decimal=getattr(args, tables.DECIMAL.name, None),
            )
        if points.coding is not None and "standardize" in method.parameters:
            params["standardize"] = False  # the coding does it
        _cluster_points(args, method, params, points)


def _cluster_points(args, method, params, points):
    """Cluster points and write what is asked for; return the result."""
    X = points.X
    if args.constraints is not None:
        must, cannot = sources.read_constraints(args.constraints)
        last = max(must.max(initial=0), cannot.max(initial=0))
        if last >= len(X):
            raise ValueError(
                f"{args.constraints}: a pair names row {last}, but the rows are 0 to {len(X) - 1}"
            )
        params |= {"must_link": must, "cannot_link": cannot}
    run = common.run_solver(method.function, X, params, OPTIONS)
    # New rows are coded as these were, and so are the points of plots.
    result = run.result._with_coding(points.coding)
    if len(result.labels) != len(X):
        rows = f"{len(X)} rows got {len(result.labels)} labels"
        raise ValueError(f"{rows}, so none are written; please report this")
    if args.append:
        has_header = points.columns.names is not None
        text = tables.read_text(args.source, args.encoding)
        lines = tables.lines_with_labels(args.source, text, has_header, result.labels)
        common.write_lines(args.out, lines, text.encoding)
    elif args.out is not None or not args.json:
        common.write_labels(args.out, result.labels)
    if args.model is not None:
        # fastmmc predict finds the columns by their names.
        columns = {"columns": asdict(points.columns)}
        saving.write(args.model, result, columns)
    if args.plot is not None:
        _save_picture(args.plot, result, points.table)
    if args.html is not None:
        title = f"Clusters of {common.source_name(args.source)}"
        write_report(args.html, result, points.table, title=title)
    _print_result(args, method, points, replace(run, result=result))
    return result


def _goes_in_blocks(large, args, given):
    """Tell whether a large file is worked on in blocks; if it cannot be, memory must hold it."""
    # What is about single points, or all of them in memory.
    unused = ("constraints", "plot", "html", "profile")
    flags = [f"--{name}" for name in unused if getattr(args, name)]
    # Where the time ends, and with it the labels, would depend on when the run was killed.
    unused = ("--trim", "--metric") if args.state is None else ("--trim", "--metric", "--max-time")
    flags += [option.flag for option in given if option.flag in unused]
    try:
        if flags:
            raise ValueError(f"{flags[0]}: {parquet.ABOUT}, without it; leave it out")
        large.check_columns()
    except ValueError as error:
        if args.state is not None or not large.fits_memory():
            raise
        common.tell("note", f"{args.source} is loaded as a whole. {error}")
        return False
    return True


def _settings_of_state(args, method, given):
    """Return the options that the labels depend on, None where they are not given."""
    options = [option for option in (*OPTIONS, *COLUMNS) if option.flag != "--n-jobs"]
    found = common.given_options(args, COLUMNS) | given
    settings = {option.flag: found.get(option) for option in options}
    return settings | {
        "--method": method.name,
        "--label-column": args.label_column,
        "--standardize": args.standardize or None,
    }


def _check_append(args):
    """Raise an error now if a table could not be written with its labels later."""
    source = Path(args.source)
    if source.suffix.lower() not in tables.TABLES or source.is_fifo():
        endings = ", ".join(tables.TABLES)
        raise ValueError(f"--append is for files of {endings}; got SOURCE {args.source}")
    if args.out is None and args.json:
        raise ValueError("--append with --json writes the table to --out only; give it")
    if args.out is not None:
        common.check_ending(args.out, common.TEXTS, "the name of --out beside --append")
        if args.out.suffix.lower() in {*tables.TABLES} - {source.suffix.lower()}:
            raise ValueError(
                f"{args.out}: --append writes rows as they are in {source}; name a {source.suffix}"
            )


def _choose_method(args, given):
    """Return the method asked for, or the one that has the settings that are given."""
    if args.solver is not None:
        return METHODS[args.solver]
    chooses = {option.name for option in given} <= set(METHODS[CHOOSER].parameters)
    return METHODS[CHOOSER if chooses else USUAL]


def _solver_params(args, method, given):
    """Return the options that were given, as parameters of the solver."""
    accepted = method.parameters
    names = {option.flag: common.solver_name(option, accepted) for option in OPTIONS}
    params = {names[option.flag]: value for option, value in given.items()}
    if args.constraints is not None and method.name not in CONSTRAINED:
        raise ValueError(
            f"{method.name} has no --constraints; give one of {', '.join(CONSTRAINED)} as --method"
        )
    if "method_params" in accepted:
        # What the method lacks is meant for the one that it calls.
        params["method_params"] = {
            n: params.pop(n) for n in [*params] if n not in (*accepted, "max_k")
        }
    own = [o for o in OPTIONS if names[o.flag] in accepted or (o.name == "k" and method.binary)]
    common.refuse_lacking(method.name, [o for o in given if names[o.flag] in params], own)
    # Whatever else is missing, values that are not allowed are refused.
    with common.naming_options(OPTIONS, method.parameters):
        for one in declared(method.estimator):
            if one.name in params:
                one.checked(params[one.name])
    k = params.get("k", "auto")
    if method.binary:
        if params.pop("k", 2) != 2:
            raise ValueError(f"{method.name} always makes two clusters; got --k {k}")
    elif method.name != CHOOSER and k == "auto":
        others = [o.flag for o in given if o.name not in METHODS[CHOOSER].parameters]
        leave = ", ".join(["--method"] * (args.solver is not None) + others)
        chosen = "" if args.constraints else f", or leave out {leave} to have it chosen"
        raise ValueError(
            f"--k is {'auto' if 'k' in params else 'missing'}: {method.name} needs the "
            f"number of clusters; give --k N{chosen}"
        )
    elif "max_k" in params and k != "auto":
        raise ValueError(f"--max-k is for --k auto; got --k {k}; leave out one of them")
    return params


def _picture_formats():
    import_pyplot()
    from matplotlib.figure import Figure

    return [f".{end}" for end in Figure().canvas.get_supported_filetypes()]


def _save_picture(path, result, X):
    # A Figure of its own draws without a window, whatever backend is set.
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    ClusterDisplay.from_result(result, X, ax=figure.subplots())
    with gathering(path) as file:
        figure.savefig(file, format=path.suffix[1:].lower(), dpi=150)


def _print_result(args, method, points, run):
    (n, d), y, coding, result = points.X.shape, points.y, points.coding, run.result
    report = run.report() | {
        "method": method.name,
        "source": args.source,
        "n": n,
        "d": d,
        "ari": None,
        "nmi": None,
        "params": _settings(result.params),
    }
    if coding is not None:
        report["columns"] = [[column.name, column.said] for column in coding.columns]
    source = common.source_name(args.source)
    sizes = counted(n, "point"), counted(d, "feature"), counted(report["k"], "cluster")
    headline = f"{method.name} on {source}: {', '.join(sizes)}"
    if hasattr(result, "loo_mse"):
        report["loo_mse"] = result.loo_mse
    if hasattr(result, "chosen"):
        report["chosen"] = _settings(result.chosen)
        report |= {"scores": result.scores, "evidence": result.evidence}
    rows = run.rows()
    if y is not None:
        ari = report["ari"] = adjusted_rand_score(y, result.labels)
        nmi = normalized_mutual_info_score(y, result.labels, average_method="geometric")
        report["nmi"] = nmi
        rows |= {"ARI": f"{ari:.4f}", "NMI": f"{nmi:.4f}"}
    profile = result.profile(points.table) if args.profile else None
    if profile is not None:
        report["profile"] = profile.records()
    # Labels on standard output are to be read by another program.
    file = sys.stdout if args.out is not None else sys.stderr
    common.print_report(report, headline, rows, args.json, file)
    if not args.json:
        if hasattr(result, "tree"):
            print(result.tree, file=file)
        if profile is not None:
            print(profile, file=file)


def _settings(params):
    """Return parameters without the labels that a search went on from: they are the output."""
    return {n: v for n, v in params.items() if not (n == "init" and isinstance(v, np.ndarray))}
