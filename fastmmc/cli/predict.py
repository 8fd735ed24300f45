"""The command ``fastmmc predict``, and the models that ``fastmmc cluster`` makes for it."""

from __future__ import annotations

import math
import sys
import time
import warnings
from pathlib import Path
from typing import NamedTuple, get_type_hints

import numpy as np

from fastmmc.cli import common, sources
from fastmmc.cli.tables import SameColumns
from fastmmc.core import saving
from fastmmc.core.saving import check_type
from fastmmc.data.standardization import Scaler

MODEL = ".npz"
# What is saved beside a result; models that the library has saved have none of it.
KEYS = {"columns", "mean", "scale"}


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
    sources.add_source(parser)
    common.add_labels_out(parser)


def check_model_path(path, source):
    """Raise an error now if a model could not go to a file later."""
    common.check_writable(path, source)
    common.check_ending(path, [MODEL], "the name of --model", needed=True)


def save_model(path, result, columns, scaler):
    """Save a result with the columns it was made of, and how they were scaled, or None."""
    scaled = dict.fromkeys(("mean", "scale"))
    if scaler is not None:
        scaled = {name: getattr(scaler, name).tolist() for name in scaled}
    saving.write(path, result, {"columns": columns._asdict()} | scaled)


def _predict(args):
    began = time.perf_counter()
    if args.out is not None:
        common.check_labels_out(args.out, args.source)
    model, made_of = _read_model(args.model)
    asked = sources.asked_columns(args)
    if made_of.columns is not None and not (asked.features or asked.left_out):
        asked = made_of.columns
    X = sources.read_points(args.source, asked).X
    source = common.source_name(args.source)
    try:
        labels = _labels(model, X, made_of)
    except ValueError as error:
        advice = "choose those of the model, in its order, by --columns"
        raise ValueError(f"{source}, columns: {error}; {advice}") from error
    common.write_labels(args.out, labels, len(X))
    n_clusters = len(getattr(model, "sizes", getattr(model, "sizes_", ())))
    rows = [
        ("sizes", " ".join(map(str, np.bincount(labels, minlength=n_clusters)))),
        ("time", f"{time.perf_counter() - began:.3g} s"),
    ]
    headline = f"{args.model} on {source}: {len(X)} points, {X.shape[1]} features"
    print(common.format_report(headline, rows), file=sys.stderr if args.out is None else None)


def _labels(model, X, made_of):
    """Return the clusters of new points, scaled as those of the model were."""
    if made_of.scaler is not None and X.shape[1] == len(made_of.scaler.scale):
        X = made_of.scaler.transform(X)
    with warnings.catch_warnings():
        # The columns were found by their names.
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        return model.predict(X)


class _MadeOf(NamedTuple):
    """The columns of a model and how they were scaled; None where that is not known."""

    columns: SameColumns | None = None
    scaler: Scaler | None = None


def _read_model(path):
    """Return what predicts, and what it was made of."""
    model = saving.load(path)
    if not hasattr(model, "predict"):
        raise ValueError(f"{path} holds {type(model).__name__}, which does not predict")
    _, header = saving.read_archive(path)
    extra = header.get("extra")
    if isinstance(extra, dict) and extra.keys() >= KEYS:
        try:
            return model, _checked(**{name: extra[name] for name in KEYS})
        except (TypeError, ValueError, KeyError) as error:
            raise ValueError(f"{path} is damaged: what it tells of columns is wrong") from error
    names = getattr(model, "feature_names_in", getattr(model, "feature_names_in_", None))
    if names is None:
        return model, _MadeOf()
    return model, _MadeOf(SameColumns(list(names), list(range(len(names))), len(names)))


def _checked(columns, mean, scale):
    """Return what a model was made of, if it can be so."""
    columns = SameColumns(**columns)
    for name, hint in get_type_hints(SameColumns).items():
        check_type(getattr(columns, name), hint, name)
    d = len(columns.numbers)
    fits = all(0 <= i < columns.n_columns for i in columns.numbers)
    fits &= columns.names is None or len(columns.names) == d
    if columns.medians is not None:
        fits &= len(columns.medians) == d and all(map(math.isfinite, columns.medians))
    scaler = None
    if mean is not None:
        check_type([mean, scale], list[list[float]], "mean and scale")
        scaler = saving.make_checked(
            Scaler, {"mean": np.array(mean, float), "scale": np.array(scale, float)}
        )
        fits &= scaler.scale.size == d
    if not fits:
        raise ValueError("columns, means and scales do not fit together")
    return _MadeOf(columns, scaler)
