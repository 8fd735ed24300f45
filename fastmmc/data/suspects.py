"""Values that may mean something else than they say: codes of missing cells, dates as numbers."""

import re
from datetime import datetime, timedelta

import numpy as np

from fastmmc.core.execution import warn_user
from fastmmc.data.cells import EPOCH
from fastmmc.data.units import listed

# What programs write where a number or a date is not known: -999, 99, 9999-12-31. A positive 9 may
# be a count.
NINES = re.compile(r"-9+|99+")
DATES = {datetime(1900, 1, 1), datetime(1970, 1, 1), datetime(9999, 12, 31)}

# Rows that tell dates without separators, as 20240131 or 20240131235959, from numbers like them.
LEAST_DATES = 10
TIME = 10**6  # what multiplies a date before a time


def warn_of_suspects(columns):
    """Warn of values that may mean something else than they say.

    Each of the columns has a name, a kind, and values (n,) float64, NaN where they are missing.
    """
    codes, dates = [], []
    for name, kind, values in columns:
        known = values[np.isfinite(values)]
        if code := _code_in(known, kind):
            codes.append((name, code))
        elif kind == "numbers" and _are_dates(known):
            dates.append((name, f"{known[0]:.0f}"))
    for found, problem in (
        (
            codes,
            "are far from all others; if they stand for missing cells, make these empty or NaN",
        ),
        (dates, "seem to be dates, and are taken as numbers; write them as 2024-01-31"),
    ):
        if found:
            which = listed(np.arange(len(found)), [name for name, _ in found])
            warn_user(f"values in {which}, such as {found[0][1]}, {problem}", UserWarning)


def _code_in(known, kind):
    """Return a code in several rows, far from all others, in words; None if there is none."""
    for value in (known.min(), known.max()) if known.size else ():
        if _is_code(value, kind):
            others = known[known != value]
            count = known.size - others.size
            if count > 1 and others.size and 0 < np.ptp(others) < np.abs(others - value).min():
                text = f"{_date(value):%Y-%m-%d}" if kind == "dates" else f"{value:.0f}"
                return f"{text} in {count} rows"
    return None


def _is_code(value, kind):
    if kind == "dates":
        return _date(value) in DATES
    return value == np.floor(value) and bool(NINES.fullmatch(f"{value:.0f}"))


def _date(days):
    return EPOCH + timedelta(np.floor(days))


def _are_dates(known):
    """Tell whether numbers are dates without separators, alone or with a time."""
    if known.size < LEAST_DATES or np.ptp(known) == 0:
        return False
    days = known if known.max() < TIME * 100 else np.floor(known / TIME)
    month, day = days // 100 % 100, days % 100
    fits = (1 <= month) & (month <= 12) & (1 <= day) & (day <= 31) & (days == np.floor(days))
    return bool((fits & (19000101 <= days) & (days <= 21001231)).all())
