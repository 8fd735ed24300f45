"""What is made of a column of a table: numbers, and a word on them."""

import re
import sys
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import ClassVar

import numpy as np
from scipy.optimize import minimize_scalar

from fastmmc.core.saving import stored
from fastmmc.core.words import counted, quoted
from fastmmc.data import cells
from fastmmc.data.frames import Values

# Larger numbers are refused in points, as their squares may overflow.
LARGEST = 1e150

# How far two different categories are from each other, in deviations of a column of numbers. The
# mean ARI of cluster on six made tables is .89 at .35 and .5, and .33 at .7, if four numbers have
# the clusters and two categories are noise; .32 at .35, .51 at .5 and .7, if four categories have
# them and numbers are noise. 1 / sqrt(levels) and unit variance let noise make the clusters too.
CATEGORY_DISTANCE = 0.5
# A category of fewer rows than this share, or a single one, is coded as one never seen.
LEAST_CATEGORY = 0.01
# The deviation of a column of numbers or dates is 1, times this power of the chance that two rows
# differ in it: two equally frequent numbers are then as far from each other as two categories are.
# The ARI of cluster on three tables of orders is 1.00 with it and .39 without.
FEW_VALUES = 2.0
# What marks a missing cell, in deviations. The mean ARI of cluster on 11 sets is .785 with it and
# .709 without if 10 % of the cells are missing at random, .658 and .660 if 30 % are, .724 and .722
# where 20 % are, more in some classes.
MISSING_DISTANCE = 0.5

# The least and the largest power. Powers beyond turn a column far from 0 into two values: without
# bounds the ARI of a skewed column of clusters beside a category is .12 if 10,000 is added to it,
# and .87 with 273.15 (.99 with bounds, and with neither).
POWERS = -2.0, 4.0

# Cycles of dates, in days, and how often the dates must run through one for it to count.
CYCLES = {"time of day": 1.0, "day of the week": 7.0, "time of year": 365.2425}
LEAST_CYCLES = 3.0
# Dates have cycles if they are as many different ones, equally frequent. The gaps of fewer make
# clusters: the ARI of three clusters in two columns of numbers, of 600 and 3,000 points, is .9 or
# more beside 8 to 150 dates that tell nothing, hours to years apart. With 21 in its place it is 0
# beside 22 and 30 quarters; with 0 also beside 8 and 12 months, quarters and years.
LEAST_DATES = 40
# A share of a cycle's largest deviation below which dates are all at the same time of it.
STILL = 1e-3

# Whole numbers are ids if they are called so: one of a person or shop may be in many rows. If they
# differ in all rows, other names say so, too, or that they count the rows.
LEAST_COUNTED = 10
ID_WORDS = {"id", "ids", "uuid", "guid"}
KEY_WORDS = {"key", "index", "idx", "no", "row", "rownames"}
KEY_ENDINGS = ("nr", "nummer")
IDS = "left out, as it holds ids of the rows"

# Truth values, whose case differs: Python's own are True, those of spreadsheets TRUE.
TRUTH = {"true", "false"}

# The numbers that cells became, (n, w), NaN for missing numbers and dates; how many were missing,
# and those not understood.
Coded = tuple[np.ndarray, int, list[str]]


@stored()
@dataclass(frozen=True)
class Column:
    """A column of a table, and what was said of it."""

    name: str
    said: str

    kind: ClassVar[str] = "nothing"

    @property
    def features(self) -> list[str]:
        """The names of the numbers that a cell becomes."""
        return []

    @property
    def width(self) -> int:
        """How many numbers these are."""
        return len(self.features)

    @property
    def fillers(self) -> list[float]:
        """What stands for missing cells where no similar row has them; marks have no place."""
        return [0.0] * self.width


@stored()
class UnusedColumn(Column):
    """A column that is left out."""


@stored()
@dataclass(frozen=True)
class NumberColumn(Column):
    """A column of numbers, (value - shift) / scale, and perhaps one that marks missing cells.

    Where there is a ``power``, values are first divided by ``unit`` and transformed by it, as Yeo
    and Johnson do.
    """

    fill: float  # the median
    mark: str = "."  # before decimals, where texts do not tell
    shift: float = 0.0
    scale: float = 1.0
    power: float | None = None
    unit: float = 1.0
    marker: float = 0.0  # what the second column holds for a missing cell; 0: there is none

    kind: ClassVar[str] = "numbers"

    def _check_values(self):
        numbers = (self.fill, self.shift, self.scale, self.marker, self.power or 0.0, self.unit)
        units = min(self.scale, self.unit)
        if not np.isfinite(numbers).all() or units <= 0 or self.mark not in cells.NUMBERS:
            raise ValueError(f"column {self.name!r} has numbers that cannot be")

    @property
    def features(self):
        """The name, and one for the column that marks missing cells."""
        return [self.name, f"{self.name} is missing"] if self.marker else [self.name]

    def code(self, values: Values) -> Coded:
        """Return the numbers of cells."""
        numbers, unknown = self.read(values)
        check_finite(self.name, numbers)  # a power may make infinity finite
        gaps = np.isnan(numbers)
        X = self._in_units(numbers)
        parts = [X, gaps * self.marker] if self.marker else [X]
        return np.column_stack(parts), int(gaps.sum()), unknown

    @property
    def fillers(self):
        """The median."""
        return [float(self._in_units(np.array(self.fill)))]

    def _in_units(self, numbers):
        if self.power is not None:
            numbers = _yeo_johnson(numbers, self.power, self.unit)
        return (numbers - self.shift) / self.scale

    def read(self, values):
        """Return cells as (n,) float64 or float32, NaN where they are missing or no numbers."""
        if values.kind == "numbers":
            return values.cells, []
        if values.kind in ("dates", "spans"):
            held = {"dates": "dates", "spans": "spans of time"}[values.kind]
            raise ValueError(f"column {self.name!r} holds {held}; expected numbers")
        if values.kind == "categories" and set(values.known) <= {"True", "False"}:
            return np.array([np.nan if t is None else t == "True" for t in values.texts]), []
        return _read_numbers(values, self.mark)


@stored()
class SpanColumn(NumberColumn):
    """A column of spans of time, as numbers of days."""

    def read(self, values):
        """Return spans as days, NaN where they are missing; plain numbers may be of any unit."""
        if values.kind == "spans":
            return values.cells, []
        if values.known:
            raise ValueError(f"column {self.name!r} holds {values.kind}; expected spans of time")
        return np.full(len(values.cells), np.nan), []


@stored()
@dataclass(frozen=True)
class DateColumn(Column):
    """A column of dates: days, (days - shift) / scale, and a sine and cosine for each cycle."""

    fill: float
    form: str | None  # of texts, as strptime takes it; None: ISO 8601
    shift: float
    scale: float  # 0: the cycles alone
    cycles: list[float]
    centers: list[float]  # the mean sine and cosine of each cycle
    weight: float  # of a sine or cosine

    kind: ClassVar[str] = "dates"

    def _check_values(self):
        numbers = (self.fill, self.shift, self.scale, self.weight, *self.cycles, *self.centers)
        is_circle = len(self.centers) == 2 * len(self.cycles) and min(self.cycles, default=1) > 0
        if not np.isfinite(numbers).all() or self.scale < 0 or not is_circle:
            raise ValueError(f"column {self.name!r} has numbers that cannot be")

    @property
    def features(self):
        """The name, as often as there are numbers."""
        return [self.name] * ((self.scale > 0) + 2 * len(self.cycles))

    def code(self, values: Values) -> Coded:
        """Return the numbers of cells."""
        days, unknown = self.read(values)
        parts = [(days - self.shift) / self.scale] if self.scale else []
        angles = [2 * np.pi * _turns(days, cycle) for cycle in self.cycles]
        circles = [of(angle) for angle in angles for of in (np.sin, np.cos)]
        for circle, center in zip(circles, self.centers, strict=True):
            parts.append(self.weight * (circle - center))
        return np.column_stack(parts), int(np.isnan(days).sum()), unknown

    @property
    def fillers(self):
        """The median, and the means of the sines and cosines."""
        days = [(self.fill - self.shift) / self.scale] if self.scale else []
        return [*days, *[0.0] * len(self.centers)]

    def read(self, values):
        """Return cells as days since 1970, NaN where they are missing or no dates, and those."""
        if values.kind not in ("dates", "texts"):
            raise ValueError(f"column {self.name!r} holds {values.kind}; expected dates")
        return _read_dates(values, self.form)


@stored()
@dataclass(frozen=True)
class CategoryColumn(Column):
    """A column of categories, each ``weight`` in a column of its own; none for all others."""

    levels: list[str]
    weight: float
    seen: list[str] = field(default_factory=list)  # those without a column

    kind: ClassVar[str] = "categories"

    @property
    def features(self):
        """A name for each level."""
        return [f"{self.name} = {level}" for level in self.levels]

    def code(self, values: Values) -> Coded:
        """Return the numbers of cells."""
        places, is_known = self.read(values)
        X = self.weight * (places[:, None] == np.arange(self.width))
        return X, int((~is_known).sum()), self.new(values)

    def new(self, values):
        """Return the texts that were not seen when the column was learned."""
        to_key = self._to_key()
        seen = {to_key(text) for text in (*self.levels, *self.seen)}
        return [text for text in values.known if to_key(text) not in seen]

    def read(self, values):
        """Return the place of cells in ``levels``, -1 if in none, and whether they are known."""
        to_key, texts = self._to_key(), values.texts
        place = {to_key(level): i for i, level in enumerate(self.levels)}
        found = [-1 if text is None else place.get(to_key(text), -1) for text in texts]
        return np.array(found, np.int64), np.array([text is not None for text in texts], bool)

    def _to_key(self):
        """Return what texts are compared by; True, TRUE and true are one truth value."""
        keys = [level.lower() for level in (*self.levels, *self.seen)]
        return str.lower if len({*keys}) == len(keys) and {*keys} <= TRUTH else str


def _read_numbers(values, mark):
    """Return texts as numbers, NaN where they are missing or none, and those that are none.

    Among numbers 90+ and <0.1 are the ends of open ranges.
    """
    texts, numbers = values.texts, values.numbers(mark)
    others = _not_read(texts, numbers)
    ends = {text: cells.end_of_range(text, mark) for text in {*others}}
    if not np.isfinite([*ends.values()]).any():
        return numbers, others
    found = [ends.get(text, n) for text, n in zip(texts, numbers.tolist(), strict=True)]
    return np.array(found), [text for text in others if np.isnan(ends[text])]


def _read_dates(values, form):
    """Return cells as days since 1970, NaN where they are missing or no dates, and those."""
    if values.kind == "dates":
        return values.cells, []
    days = values.days(form)
    return days, _not_read(values.texts, days)


def _not_read(texts, numbers):
    """Return the texts, missing ones aside, that stand for no number."""
    return [texts[i] for i in np.isnan(numbers).nonzero()[0] if texts[i] is not None]


def binary_scale(low, high):
    """Return what to divide a column of two numbers by, in a table of numbers that is scaled.

    It is then one of the two columns of a category. With deviation 1 it would weigh more than any
    other column, the more the rarer one of the numbers is.
    """
    return (high - low) * (2**0.5 / CATEGORY_DISTANCE)


def _yeo_johnson(numbers, power, unit=1.0):
    """Return numbers transformed by a power: ((1 + x)^p - 1) / p, odd in x but with 2 - p below 0.

    SciPy's takes ten times as long for a column of some hundreds, and as long again to import.
    """
    x = numbers.astype(np.float64) / unit
    logs, exponents = np.log1p(np.abs(x)), np.where(x >= 0, power, 2.0 - power)
    powered = np.expm1(exponents * logs) / np.where(exponents == 0, 1.0, exponents)
    return np.copysign(np.where(exponents == 0, logs, powered), x)


def _even_power(numbers, weights):
    """Return the power after which numbers are most like normal ones (Yeo and Johnson 2000)."""
    total = np.sum(weights * np.copysign(np.log1p(np.abs(numbers)), numbers))

    def cost(power):
        scale = _moments(_yeo_johnson(numbers, power), weights)[1]
        value = weights.sum() * np.log(scale)
        return value - (power - 1.0) * total if np.isfinite(value) else np.inf

    return float(minimize_scalar(cost, bounds=POWERS, method="bounded").x)


def made_even(column, numbers, weights):
    """Return a column of numbers whose skewness a power takes away.

    Amounts of money and counts reach far to one side, and a few rows would make their deviation.
    On tables of customers and orders the ARI of k-means is .58 without and .98 with it, on six
    public ones .22 and .23.
    """
    check_finite(column.name, numbers)
    is_known = ~np.isnan(numbers)
    numbers, weights = numbers[is_known], weights[is_known]
    if np.ptp(numbers) == 0:
        return column
    is_amount = numbers != 0
    unit = _median(np.abs(numbers[is_amount]), weights[is_amount])
    with np.errstate(all="ignore"):
        power = _even_power(numbers / unit, weights)
        powered = _yeo_johnson(numbers, power, unit)
        shift, scale = _moments(powered, weights)
    if not np.isfinite((power, shift, scale)).all() or scale <= 0:
        return column
    scale /= _chance_to_differ(numbers, weights) ** FEW_VALUES
    return replace(column, power=power, unit=unit, shift=shift, scale=scale)


def _moments(numbers, weights):
    """Return the mean and the deviation of numbers, each counted as often as its weight says."""
    mean = np.average(numbers, weights=weights)
    return float(mean), float(np.average((numbers - mean) ** 2, weights=weights) ** 0.5)


def _median(numbers, weights):
    """Return the median of numbers, each counted as often as its weight says."""
    order = np.argsort(numbers)
    cumulated = np.cumsum(weights[order])
    middle = [np.searchsorted(cumulated, 0.5 * cumulated[-1], side) for side in ("left", "right")]
    return float(numbers[order[middle]].mean())


def _chance_to_differ(values, weights):
    """Return the chance that two rows differ; a row of weight s stands for s rows."""
    counts = np.bincount(np.unique(values, return_inverse=True)[1], as_counts(weights))
    total = counts.sum()
    return 1.0 - float(counts @ (counts - 1.0)) / (total * (total - 1.0))


def as_counts(weights):
    """Return weights as numbers of rows; those in smaller units are 1 on average."""
    return weights / min(1.0, weights.mean())


def fit_column(name, values, mark, weights, **options):
    """Return what becomes of a column; ``mark`` is before decimals where it does not tell.

    A row of weight s, of ``weights`` (n,), counts as s rows. What cells and whole columns are, such
    as dates or ids, does not depend on it.
    """
    if not values.known if isinstance(values.cells, list) else np.isnan(values.cells).all():
        return UnusedColumn(name, "left out, as all cells are missing")
    if values.kind in ("numbers", "spans"):
        # Whole numbers of which some are missing are floats in a data frame.
        is_whole = values.cells.dtype.kind in "iu" or np.isnan(values.cells).any()
        column = _fit_numbers(name, values.cells, weights, is_whole, **options)
        if values.kind == "numbers" or not column.width:
            return column
        said = column.said.replace("numbers", "spans of time, in days", 1)
        return SpanColumn(**vars(column) | {"said": said})
    if values.kind == "dates":
        return _fit_dates(name, values.cells, weights, None)
    known = values.known
    if values.kind == "texts":
        mark = values.mark or mark
        others = _not_read(values.texts, values.numbers(mark))
        if 2 * len(others) < len(known):
            return _fit_written_numbers(name, values, weights, mark, others, **options)
        form = cells.date_format(known)
        days, unknown = _read_dates(values, form)
        if unknown and (other := cells.OTHER_ORDER.get(form)):
            # The cells that tell the order are among those that do not fit.
            in_other = _read_dates(values, other)
            if len(in_other[1]) < len(unknown):
                form, (days, unknown) = other, in_other
        if 2 * len(unknown) < len(known):
            return _fit_dates(name, days, weights, form, unknown, values.texts)
    return _fit_categories(name, values.texts, weights)


def _fit_written_numbers(name, values, weights, mark, others, **options):
    numbers, unknown = _read_numbers(values, mark)
    strange = set(unknown)
    known = [text for text in values.known if text not in strange]
    has = {sign for sign in ".,%" if any(sign in text for text in known)}
    said = ["with decimal commas"] if mark == "," and "," in has else []
    if has & ({"."} if mark == "," else {","}):
        said.append("with separated thousands")
    if "%" in has:
        said.append("in per cent")
    if example := unsure_example(values, mark):
        said.append(example)
    if end := next((text for text in others if text not in strange), None):
        said.append(f"{end!r} read as {cells.end_of_range(end, mark):.6g}")
    is_whole = not has & {".", ","}
    return _fit_numbers(name, numbers, weights, is_whole, mark, said, unknown, **options)


def unsure_example(values, mark):
    """Return how a text that may be two numbers was read; "" where all tell their decimal mark."""
    if values.kind != "texts" or values.mark:
        return ""
    marked = (text for text in values.known if "." in text or "," in text)
    numbers = ((text, cells.to_number(text, mark)) for text in marked)
    return next((f"{text!r} read as {n:.6g}" for text, n in numbers if np.isfinite(n)), "")


def _fit_numbers(
    name, numbers, weights, is_whole, mark=".", said=(), unknown=(), *, keeps_all, marks_missing
):
    gaps = np.isnan(numbers)
    known = numbers[~gaps].astype(np.float64)
    if np.isinf(known).any():
        # It is refused, with the row, when the column is coded.
        return NumberColumn(name, "numbers", 0.0, mark)
    is_constant = known.min() == known.max() and not gaps.any()
    unused = unused_numbers(name, known, is_constant, is_whole)
    if unused and not keeps_all:
        return unused
    weights = weights[~gaps]
    fill = _median(known, weights)
    with np.errstate(over="ignore", invalid="ignore"):
        shift, scale = _moments(known, weights)
    scale = scale if scale != 0 else 1.0
    marker = MISSING_DISTANCE if gaps.any() and marks_missing else 0.0
    marked = ", marked by a column" if marker else ""
    words = ", ".join(["numbers", *said]) + _about_missing(gaps, unknown, marked)
    return NumberColumn(name, words, fill, mark, shift, scale, marker=marker)


def unused_numbers(name, known, is_constant, is_whole):
    """Return a column of numbers that are all the same or ids as one left out, None for others."""
    if is_constant:
        return UnusedColumn(name, f"left out, as it is {known[0]:.6g} in all rows")
    return UnusedColumn(name, IDS) if is_whole and is_id(name, known) else None


def check_finite(name, numbers, most=sys.float_info.max, start=0):
    """Refuse a column, of one number a row or several, if any is beyond ``most``, but not NaN.

    The first row has the number ``start``.
    """
    places = np.argwhere(np.abs(numbers) > np.float64(most))  # which may be beyond their type
    if places.size:
        value = numbers[tuple(places[0])]
        held, instead = "infinity, or a number too large,", "finite"
        if np.isfinite(value):
            held, instead = f"{value:g}, whose square overflows,", "smaller"
        raise ValueError(
            f"column {name!r} holds {held} in row {start + places[0][0]} (from 0); give {instead} "
            "numbers, or missing ones where they are not known"
        )


def _about_missing(gaps, unknown, marked=""):
    """Return what is said of the cells of a column that are missing or not understood."""
    words = ""
    if unknown:
        words += f"; {counted(len(unknown), 'cell')} such as {quoted(unknown[0])} read as missing"
    if gaps.any():
        words += f"; {gaps.sum()} of {gaps.size} missing: as in similar rows{marked}"
    return words


def _fit_dates(name, days, weights, form, unknown=(), texts=()):
    """Return what becomes of a column of dates or times of day, written as ``texts``."""
    gaps = np.isnan(days)
    known, weights = days[~gaps], weights[~gaps]
    if known.min() == known.max():
        return UnusedColumn(name, "left out, as all dates are the same")
    differ = _chance_to_differ(known, weights)
    is_clock = form in cells.CLOCKS
    circles = {}
    if is_clock:
        circles = {"time of day": _circle(known, CYCLES["time of day"], weights)}
    elif (1.0 - differ) * LEAST_DATES <= 1.0:
        # Those that the dates run through and do not stand still in.
        circles = {
            part: circle
            for part, cycle in CYCLES.items()
            if np.ptp(known) >= LEAST_CYCLES * cycle
            and (circle := _circle(known, cycle, weights))[1] > STILL
        }
    parts = [*circles] if is_clock else ["a number", *circles]
    # A sine and a cosine have the variance 1 together, as a column of numbers has. The times of a
    # race or of a shop are a small part of the circle.
    weight = differ**FEW_VALUES * len(parts) ** -0.5
    shift, deviation = _moments(known, weights)
    scale = 0.0 if is_clock else deviation / weight
    if is_clock:
        weight /= circles["time of day"][1]
    words = f"{'times' if is_clock else 'dates'}, as {' and '.join(parts)}"
    at = (~gaps).nonzero()[0]
    i = _unsure_date(known, form, [texts[i] for i in at] if form else [])
    if i is not None:
        words += f", {texts[at[i]]!r} read as {cells.EPOCH + timedelta(known[i]):%Y-%m-%d}"
    words += _about_missing(gaps, unknown)
    fill = _median(known, weights)
    cycles = [CYCLES[part] for part in circles]
    centers = [float(part) for mean, _ in circles.values() for part in (mean.imag, mean.real)]
    return DateColumn(name, words, fill, form, shift, scale, cycles, centers, float(weight))


def _unsure_date(days, form, texts):
    """Return which date, written as one of ``texts``, may be another one too; None if none is."""
    if other := cells.OTHER_ORDER.get(form):
        differences = cells.days_of(texts, other) - days
        if np.isfinite(differences).all() and differences.any():
            return differences.nonzero()[0][0]
    # Years of two digits are up to 2068.
    return days.argmax() if form and "%y" in form else None


def _circle(days, cycle, weights):
    """Return the mean of dates on the circle of a cycle, as a complex number, and their deviation.

    They are on the unit circle, where evenly spread ones have deviation 1.
    """
    points = np.exp(2j * np.pi * _turns(days, cycle))
    mean = np.average(points, weights=weights)
    return mean, np.average(np.abs(points - mean) ** 2, weights=weights) ** 0.5


def _turns(days, cycle):
    """Return where dates are in a cycle, (n,), as a share of it; whole turns may be added.

    All years have 366 places, so that a date has the same one in each, and the first days of a
    month do not lie less than a day apart.
    """
    if cycle != CYCLES["time of year"]:
        return days / cycle
    known = np.where(np.isnan(days), 0.0, days)
    dates = np.floor(known).astype("datetime64[D]")
    years = dates.astype("datetime64[Y]")
    starts, ends = (of.astype("datetime64[D]") for of in (years, years + 1))
    place = (dates - starts).astype(np.int64)
    place += (place >= 59) & ((ends - starts).astype(np.int64) == 365)  # the 29th of February
    return np.where(np.isnan(days), np.nan, (place + known % 1.0) / 366)


def _fit_categories(name, texts, weights):
    weights, counts = as_counts(weights), Counter()
    for text, weight in zip(texts, weights.tolist(), strict=True):
        if text is not None:
            counts[text] += weight
    n_missing = texts.count(None)
    if len(counts) == 1 and not n_missing:
        return UnusedColumn(name, f"left out, as it is {quoted(next(iter(counts)))} in all rows")
    least = max(2.0, LEAST_CATEGORY * weights.sum())
    levels = sorted(level for level, count in counts.items() if count >= least)
    if len(counts) == len(texts) - n_missing > 2:
        return UnusedColumn(name, "left out, as its texts differ in all rows")
    if 2 * sum(counts[level] for level in levels) < counts.total():
        why = f"left out, as it has {len(counts)} different texts, most of them in few rows"
        return UnusedColumn(name, why)
    words = counted(len(counts), "category", "categories")
    if rare := len(counts) - len(levels):
        words += f", of which {rare} in few rows count as one"
    if n_missing:
        words += f"; {n_missing} of {len(texts)} missing: no category"
    seen = sorted(counts.keys() - set(levels))
    return CategoryColumn(name, words, levels, CATEGORY_DISTANCE / 2**0.5, seen)


def is_id(name, known):
    """Tell whether whole numbers are ids: by the name, or as they differ and count the rows."""
    if known.size < LEAST_COUNTED or (known != np.floor(known)).any():
        return False
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)
    last = words[-1].lower() if words else ""
    if last in ID_WORDS:
        return True
    is_key = last in KEY_WORDS or last.endswith(KEY_ENDINGS) or np.ptp(known) == known.size - 1
    return bool(is_key and np.unique(known).size == known.size)
