"""The command ``fastmmc predict``."""

import sys
import time
import warnings
from pathlib import Path

import numpy as np

from fastmmc.cli import common, sources
from fastmmc.cli.columns import COLUMNS, SameColumns
from fastmmc.cli.common import is_whole
from fastmmc.core import saving
from fastmmc.core.words import counted


def add_command(commands):
    """Add ``predict`` to the commands of a parser."""
    parser = commands.add_parser(
        "predict",
        help="give new points to the clusters of a model",
        description="Give new points to the clusters of a model: what fastmmc cluster --model, "
        "fastmmc stream --state or save() of a result or estimator has written. Columns are found "
        "by the names of those that the model was made of, or by their numbers where there are no "
        "names; they are scaled, and missing cells filled, as they were then.",
    )
    parser.set_defaults(run=_predict)
    parser.add_argument("model", type=Path, metavar="MODEL", help="the .npz file of the model")
    sources.add_source(parser, parser, COLUMNS)
    common.add_labels_out(parser)


def _predict(args):
    began = time.perf_counter()
    if args.out is not None:
        common.check_labels_out(args.out, args.source)
    model, columns = _read_model(args.model)
    coding = _told(model, "coding")
    asked = sources.asked_columns(args)
    if columns is not None and not (asked.features or asked.left_out):
        asked = columns
    source = common.source_name(args.source)
    with common.said_when_long(f"reading {source}"):
        X = sources.read_new_points(args.source, asked, coding, args.encoding)
    try:
        with warnings.catch_warnings():
            # The columns were found by their names.
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            # What a coding gives are numbers already.
            labels = model.predict(X) if coding is None else model._nearest(X)
    except ValueError as error:
        advice = "choose those of the model, in its order, by --columns"
        raise ValueError(f"{source}, columns: {error}; {advice}") from error
    common.write_labels(args.out, labels)
    rows, sizes = {}, _told(model, "sizes")
    if hasattr(model, "numbers"):  # lasting ones of the clusters
        numbers = np.sort(model.numbers)
        labels = np.searchsorted(numbers, labels)
        rows["numbers"] = " ".join(map(str, numbers))
    counts = np.bincount(labels, minlength=0 if sizes is None else len(sizes))
    rows["sizes"] = " ".join(map(str, counts))
    rows["time"] = f"{time.perf_counter() - began:.3g} s"
    sizes = f"{counted(len(X), 'point')}, {counted(X.shape[1], 'feature')}"
    headline = f"{args.model} on {source}: {sizes}"
    print(common.format_report(headline, rows), file=sys.stderr if args.out is None else None)


def _told(model, name):
    """Return what a result or an estimator tells, or the result in it whose clusters it numbers."""
    result = getattr(model, "result", model)
    # Without its underscore, an attribute of an estimator is a parameter.
    return getattr(result, f"{name}_", getattr(result, name, None))


def _read_model(path):
    """Return what predicts, and the columns that it was made of; None where they are not known."""
    model = saving.load(path)
    if not hasattr(model, "predict"):
        raise ValueError(f"{path} holds {type(model).__name__}, which does not predict")
    _, header = saving.read_archive(path)
    extra = header.get("extra")
    coding = _told(model, "coding")
    if isinstance(extra, dict) and "columns" in extra:
        if extra.keys() & {"mean", "scale"}:
            raise ValueError(f"{path} was made by an earlier version of fastmmc; make it anew")
        try:
            columns = saving.make_checked(SameColumns, extra["columns"])
            if coding is not None and len(coding.used) != len(columns.numbers):
                raise ValueError("columns and their coding do not fit together")
            return model, columns
        except (AttributeError, ValueError, KeyError) as error:
            raise ValueError(f"{path} is damaged: what it tells of columns is wrong") from error
    names = _told(model, "feature_names_in")
    if coding is not None:
        names = [column.name for column in coding.used]
        if all(map(is_whole, names)):  # they are numbers of columns without names
            names = None
    if names is None:
        return model, None
    return model, SameColumns(list(names), list(range(len(names))), len(names))
