"""Cells of text as people write them: numbers, dates and times, and cells that say nothing."""

import re
from datetime import datetime

import numpy as np

# What stands for a value that is not known: by people, by libraries and databases, by spreadsheets
# and pandas, and by programs of statistics. A minus alone may be a category, beside a plus.
MISSING = {"", "na", "n/a", "nan", "nat", "none", "null", "?", "#n/a", "#na", "<na>", ".", ".."}

# Signs beside a number that say what it counts: the Unicode block of currencies, and older ones.
SIGNS = "%$£¥" + "".join(map(chr, range(0x20A0, 0x20D0)))

# What separates thousands, beside the decimal mark that is not in use: spaces and apostrophes.
THOUSANDS = " \u00a0\u202f'\u2019"

# A number by its decimal mark; one sign between thousands at most.
PLAIN = set("0123456789+-.eE ")
EXPONENT = r"(?:[eE][+-]?\d+)?"
NUMBERS = {
    mark: re.compile(
        rf"[+-]?(?:(?:\d+\{mark}?\d*|\{mark}\d+){EXPONENT}"
        rf"|[1-9]\d{{0,2}}([\{other}{THOUSANDS}])\d{{3}}(?:\1\d{{3}})*(?:\{mark}\d*)?)",
        re.ASCII,
    )
    for mark, other in (".,", ",.")
}

# What float() takes beside numbers.
INFINITE = re.compile(r"[+-]?(?:inf(?:inity)?|nan)", re.ASCII | re.IGNORECASE)

# What makes a number the end of an open range.
OPEN = re.compile(r"[<>\u2264\u2265]=?|\+$")

DAY = 86_400.0  # seconds
EPOCH = datetime(1970, 1, 1)
# How dates are written beside ISO 8601, which is tried first; of two that fit, the first is taken.
DATES = (
    "%d.%m.%Y",
    "%d.%m.%y",
    "%Y/%m/%d",
    "%Y-%m-%d",  # with 1 or 2 digits, as 2024-1-31
    "%Y.%m.%d",
    "%m/%d/%Y",
    "%d/%m/%Y",
    "%m/%d/%y",
    "%d/%m/%y",
    "%d-%m-%Y",
    "%m-%d-%Y",
    "%d %b %Y",
    "%d-%b-%Y",
    "%d-%b-%y",
    "%b %d, %Y",
    "%d %B %Y",
    "%B %d, %Y",
)
TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
FORMATS = tuple(date + time for date in DATES for time in TIMES)
CLOCKS = (*(time.strip() for time in TIMES[1:]), "%H:%M:%S.%f")
# In these 05/03/2024 may be in May or in March.
OTHER_ORDER = {
    form: form[3:5] + form[2] + form[:2] + form[5:]
    for form in FORMATS
    if form.startswith(("%m/%d", "%d/%m", "%m-%d", "%d-%m"))
}


def is_missing(cell: str) -> bool:
    """Tell whether a cell says that a value is not known."""
    return cell.strip().lower() in MISSING


def says_number_or_date(cell: str) -> bool:
    """Tell whether a cell is a number or a date in any way of writing it."""
    return any(np.isfinite(to_number(cell, mark)) for mark in ".,") or is_date(cell)


def is_name(cell: str) -> bool:
    """Tell whether a cell is a name: neither missing nor a date or a number, be it infinite."""
    numbers = (to_number(cell, mark) for mark in ".,")
    is_number = not np.isnan([*numbers]).all() or bool(INFINITE.fullmatch(cell.strip()))
    return not (is_missing(cell) or is_number or is_date(cell))


def are_names(cells: list[str]) -> bool:
    """Tell whether cells are a header: no number or date, and not missing values alone."""
    return any(map(is_name, cells)) and not any(map(says_number_or_date, cells))


def is_date(cell: str) -> bool:
    """Tell whether a cell is a date or a time."""
    return any(np.isfinite(days_of([cell.strip()], form)[0]) for form in (None, *FORMATS, *CLOCKS))


def decimal_mark(cells: list[str], plain: list[float] | None) -> str | None:
    """Return the decimal mark that most cells which tell it have; None if none tells it.

    1,58 and 6.505,83 and 1.234.567 have decimal commas, 1.5 and 1,000.5 decimal points; 2.131 and
    1,000 may be either. ``plain`` are their :func:`plain_numbers`.
    """
    if plain is not None:
        return (
            "." if any("." in c and not NUMBERS[","].fullmatch(c.strip()) for c in cells) else None
        )
    votes = 0
    for cell in cells:
        if "." in cell or "," in cell:
            text = bare(cell)
            votes += bool(NUMBERS[","].fullmatch(text)) - bool(NUMBERS["."].fullmatch(text))
    return None if votes == 0 else "," if votes > 0 else "."


def plain_numbers(cells: list[str]) -> list[float] | None:
    """Return cells as floats if none has anything but digits, points and signs; else None."""
    if not set().union(*cells) <= PLAIN:
        return None
    try:
        return list(map(float, cells))
    except ValueError:
        return None


def bare(cell: str) -> str:
    """Return a cell without spaces around it, and signs as of currencies.

    -$5, (5) as accountants write it, and a longer minus are -5.
    """
    text = cell.strip().replace("\u2212", "-")
    if text[:1] == "(" and text[-1:] == ")":
        text = f"-{text[1:-1]}"
    sign = text[:1] if text[:1] in ("+", "-") else ""
    return sign + text.removeprefix(sign).strip().strip(SIGNS).strip()


def to_number(cell: str, mark: str) -> float:
    """Return the number that a cell is, with this decimal mark; NaN if it is none."""
    text = bare(cell)
    if not NUMBERS[mark].fullmatch(text):
        return np.nan
    separators = THOUSANDS + ("," if mark == "." else ".")
    value = float("".join(sign for sign in text if sign not in separators).replace(mark, "."))
    return value / 100.0 if "%" in cell else value


def end_of_range(cell: str, mark: str) -> float:
    """Return the number in a cell such as 90+ or <0.1; NaN if there is none."""
    return to_number(OPEN.sub("", cell, count=1), mark)


def numbers_of(cells: list[str], mark: str, plain: list[float] | None) -> np.ndarray:
    """Return cells as (n,) float64, NaN where one is no finite number."""
    if plain is None or mark != ".":
        known = {cell: to_number(cell, mark) for cell in set(cells)}
        plain = [known[cell] for cell in cells]
    values = np.array(plain)
    return np.where(np.isfinite(values), values, np.nan)


def date_format(cells: list[str]) -> str | None:
    """Return the format that fits most cells, None for ISO 8601, "" if none fits any."""
    some = sorted(set(cells))
    some = some[:: -(-len(some) // 100)]  # a hundred, evenly spaced
    best = 0
    form: str | None = ""
    for one in (None, *FORMATS, *CLOCKS):
        count = int(np.isfinite(days_of(some, one)).sum())
        if count > best:
            best, form = count, one
        if best == len(some):
            break
    return form


def days_of(cells: list[str], form: str | None) -> np.ndarray:
    """Return cells as days since 1970, NaN where one is no date of this format.

    Offsets from UTC are left out, so that the hour is that of the place.
    """
    known = {cell: _days(cell.strip(), form) for cell in set(cells)}
    return np.array([known[cell] for cell in cells], dtype=np.float64)


def _days(text, form):
    text = text.removesuffix(" UTC")
    # A date has a separator, without which ISO 8601 takes whole numbers for dates.
    if not any(mark in text for mark in "-./: ") or len(text) > 40:
        return np.nan
    try:
        when = datetime.fromisoformat(text) if form is None else datetime.strptime(text, form)
    except ValueError:
        return np.nan
    return (when.replace(tzinfo=None) - EPOCH).total_seconds() / DAY
