"""Which columns of a table are used: those that were asked for, or those of a model."""

import csv
import io
import re
import shlex
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import groupby
from typing import NamedTuple

from fastmmc.cli.common import Option, is_whole, parser_of
from fastmmc.core.words import SHOWN, first_of, named
from fastmmc.data.cells import are_names

NUMBERS = re.compile(r"\s*(\d+)(?:-(\d+))?\s*", re.ASCII)  # one column, or a range


def _to_columns(text):
    """Return a list of columns; a name with a comma stands in double quotes."""
    (cells,) = csv.reader([text], skipinitialspace=True, strict=True)
    items = [cell.strip() for cell in cells]
    if not all(items) or not items:
        raise ValueError("a column has no name")
    return items


parse_columns = parser_of("names or numbers of columns, separated by commas", _to_columns)

HOW = "by names in the header, numbers from 0, or ranges of numbers: a,b or 0,3,5-8"
DROP = Option("--drop COLS", parse_columns, f"leave these columns out, {HOW}", action="extend")
LISTED = (
    Option("--columns COLS", parse_columns, f"use these columns only, {HOW}", action="extend"),
)
COLUMNS = (*LISTED, DROP)


class Columns(NamedTuple):
    """The columns that were asked for, by their names, numbers from 0 or ranges of numbers.

    ``features`` is None for all but those in ``left_out``, the label and the index.
    """

    features: list[str] | None = None
    left_out: list[str] | None = None
    label: str | None = None

    @property
    def are_listed(self):
        """Whether each column of features was asked for."""
        return self.features is not None

    def choose(self, n_columns, names=None):
        """Return the numbers of the columns of features, in the order asked for, and the label."""

        def find(flag, items):
            return [i for item in items or () for i in _find(flag, item, n_columns, names)]

        label = None
        if self.label is not None:
            (label,) = _find("--label-column", self.label, n_columns, names, ranges=False)
        chosen, dropped = find("--columns", self.features), find("--drop", self.left_out)
        for at, i in enumerate(chosen):
            if i in chosen[:at]:
                raise ValueError(f"--columns names column {shown(i, names)} twice")
        if label in chosen:
            raise ValueError(
                f"--columns has {shown(label, names)}, which --label-column names too; a column "
                "of labels is no feature: leave it out of one of them"
            )
        features = [i for i in chosen or range(n_columns) if i != label and i not in dropped]
        if not features:
            if dropped:
                raise ValueError("--drop leaves no column of features; name fewer columns")
            raise ValueError("there is no column besides the label column")
        return features, label

    def name_some(self, names):
        """Tell whether one of these names is meant, so that they are a header."""
        items = (self.features or []) + (self.left_out or [])
        has_named_label = self.label is not None and not is_whole(self.label)
        return has_named_label or any(_is_named(item, names) for item in items)


@dataclass(frozen=True)
class SameColumns:
    """The columns that a model was made of: names, where it has them, numbers, and out of how many.

    A table with a header must have columns of these names, in any order; without one it must have
    as many columns as the first one had, or those of the model only.
    """

    names: list[str] | None
    numbers: list[int]
    n_columns: int

    label = None
    are_listed = True

    def _check_values(self):
        n_names = len(self.numbers) if self.names is None else len(self.names)
        fits = all(0 <= i < self.n_columns for i in self.numbers)
        if not fits or n_names != len(self.numbers):
            raise ValueError(f"columns are {self.numbers}, out of {self.n_columns}")

    def calls(self, places):
        """Return what options call some of these columns, by their places among them."""
        names = [""] * self.n_columns
        for i, name in zip(self.numbers, self.names or (), strict=False):
            names[i] = name
        return call_columns([self.numbers[i] for i in places], names)

    def of(self, coding):
        """Return those of these columns that a coding uses."""
        places = [i for i, column in enumerate(coding.columns) if column.width]
        names = None if self.names is None else [self.names[i] for i in places]
        return replace(self, names=names, numbers=[self.numbers[i] for i in places])

    def choose(self, n_columns, names=None):
        """Return the numbers of the columns in a table, and no label."""
        if self.names is not None and names is not None:
            if n_columns == self.n_columns and [names[i] for i in self.numbers] == self.names:
                return self.numbers, None
            missing = [name for name in self.names if name not in names]
            twice = next((name for name in self.names if names.count(name) > 1), None)
            if not missing and twice is not None:
                raise ValueError(
                    f"{names.count(twice)} columns are named {twice!r}; list the columns in the "
                    "model's order by --columns"
                )
            if not missing:
                return [names.index(name) for name in self.names], None
            if len(missing) < len(self.names) or are_names(names):
                raise ValueError(
                    f"the model needs {named('column', missing)}, missing here; rename what is "
                    "meant, or list the columns in the model's order by --columns"
                )
        if n_columns == self.n_columns:
            return self.numbers, None
        if n_columns == len(self.numbers):
            return list(range(n_columns)), None
        raise ValueError(
            f"there are {n_columns} columns; the model was made of {len(self.numbers)} out of "
            f"{self.n_columns}: list them in the model's order by --columns"
        )

    def name_some(self, names):
        """Tell whether the names are those of the model, so that they are a header."""
        return self.names is not None and set(self.names) <= set(names)


def shown(i, names):
    """Return what a column is called in messages."""
    return f"{i} (from 0)" if names is None else repr(names[i].strip())


def call_columns(numbers, names):
    """Return what options call columns: by their names, or numbers where names are ambiguous.

    Many are called by ranges of numbers.
    """
    if len(numbers) > SHOWN:
        runs = groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])
        ranges = [[i for _, i in run] for _, run in runs]
        return [f"{one[0]}-{one[-1]}" if len(one) > 1 else f"{one[0]}" for one in ranges]
    names = [""] * (max(numbers) + 1) if names is None else [name.strip() for name in names]
    fits = {i: names[i] and not is_whole(names[i]) and names.count(names[i]) == 1 for i in numbers}
    return [names[i] if fits[i] else str(i) for i in numbers]


def option_of(flag, value):
    """Return an option with a value as a shell reads it."""
    # Another option might begin with a dash.
    return f"{flag}{'=' if value.startswith('-') else ' '}{shlex.quote(value)}"


def drop_option(columns):
    """Return the option that leaves columns out."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(columns)
    return option_of(DROP.flag, text.getvalue())


def _find(flag, item, n_columns, names, ranges=True):
    """Return the numbers of the columns that an item names."""
    if _is_named(item, names):
        if names.count(item) > 1:
            raise ValueError(
                f"{flag}: {names.count(item)} columns are named {item!r}; give the "
                "number of one, from 0"
            )
        return [names.index(item)]
    ends = NUMBERS.fullmatch(item)
    if ends is not None and (ranges or not ends[2]):
        first, last = int(ends[1]), int(ends[2] or ends[1])
        if first <= last < n_columns:
            return list(range(first, last + 1))
        order = ", the first one of a range before the last" if ends[2] else ""
        raise ValueError(f"{flag}: got {item}, but the columns are 0 to {n_columns - 1}{order}")
    if names is None:
        raise ValueError(
            f"{flag}: got {item!r}, but the columns have no names; give numbers from 0 to "
            f"{n_columns - 1}"
        )
    near = get_close_matches(item, names, 1)
    advice = f"did you mean {near[0]!r}? " if near else ""
    raise ValueError(f"{flag}: no column {item!r} in the header; {advice}it has {first_of(names)}")


def _is_named(item, names):
    """Tell whether an item is the name of a column; a whole number is never meant as a name."""
    return not is_whole(item) and names is not None and item in names
