"""Values that may mean something else than they say: codes of missing cells, dates as numbers."""

import re
from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np

from fastmmc.core.execution import warn_user
from fastmmc.core.words import named
from fastmmc.data.cells import EPOCH

# What programs write where a number or a date is not known: -999, 99, 9999-12-31. A positive 9 may
# be a count.
NINES = re.compile(r"-9+|99+")
DATES = {datetime(1900, 1, 1), datetime(1970, 1, 1), datetime(9999, 12, 31)}

# Rows that tell dates without separators, as 20240131 or 20240131235959, from numbers like them.
LEAST_DATES = 10
TIME = 10**6  # what multiplies a date before a time


class Look(NamedTuple):
    """What shows codes and dates among numbers, by column; rows may come in parts."""

    n: int  # rows
    ends: np.ndarray  # (4, d): the least number, that after it, that before the greatest, and this
    counts: np.ndarray  # (2, d): in how many rows the least and the greatest are
    are_dates: np.ndarray  # (2, d): whether all are dates without separators, and with a time

    @classmethod
    def none(cls, d):
        """Return what is to be known of d columns before their rows."""
        return cls(0, np.full((4, d), np.nan), np.zeros((2, d), int), np.ones((2, d), bool))

    def and_rows(self, X):
        """Return what is known with some more rows, (m, d) finite numbers."""
        found = np.vstack((self.ends, X))
        low, high = np.fmin.reduce(found), np.fmax.reduce(found)
        after = np.fmin.reduce(np.where(found == low, high, found))
        before = np.fmax.reduce(np.where(found == high, low, found))
        counts = np.stack([np.count_nonzero(X == end, axis=0) for end in (low, high)])
        are_same = self.ends[[0, 3]] == (low, high)
        return Look(
            self.n + len(X),
            np.stack((low, after, before, high)),
            counts + are_same * self.counts,
            self.are_dates & (_are_days(X), _are_days(np.floor(X / TIME))),
        )

    def at(self, i):
        """Return what is known of one column."""
        return Look(self.n, self.ends[:, i], self.counts[:, i], self.are_dates[:, i])


def look_at(values):
    """Return the look at a column, (n,) float64, NaN or infinite where values do not count."""
    return Look.none(1).and_rows(values[np.isfinite(values), None]).at(0)


def warn_of_suspects(columns):
    """Warn of values that may mean something else than they say.

    Each of the columns has a name, a kind, and a look.
    """
    codes, dates = [], []
    for name, kind, look in columns:
        if code := _code_in(look, kind):
            codes.append((name, code))
        elif kind == "numbers" and _has_dates(look):
            dates.append((name, f"{look.ends[0]:.0f}"))
    for found, problem in (
        (
            codes,
            "are far from all others; if they stand for missing cells, make these empty or NaN",
        ),
        (dates, "seem to be dates, and are taken as numbers; write them as 2024-01-31"),
    ):
        if found:
            which = named("column", [name for name, _ in found])
            warn_user(f"values in {which}, such as {found[0][1]}, {problem}", UserWarning)


def _code_in(look, kind):
    """Return a code in several rows, far from all others, in words; None if there is none."""
    for value, count in zip(look.ends[[0, 3]], look.counts, strict=True):
        if count > 1 and _is_code(value, kind):
            others = look.ends[look.ends != value]
            if others.size and 0 < np.ptp(others) < np.abs(others - value).min():
                text = f"{_date(value):%Y-%m-%d}" if kind == "dates" else f"{value:.0f}"
                return f"{text} in {count} rows"
    return None


def _is_code(value, kind):
    if kind == "dates":
        return _date(value) in DATES
    return value == np.floor(value) and bool(NINES.fullmatch(f"{value:.0f}"))


def _date(days):
    return EPOCH + timedelta(np.floor(days))


def _are_days(X):
    """Tell of which columns all numbers are dates without separators, (d,) bool."""
    fits = ((19000101 <= X) & (X <= 21001231)).all(axis=0)
    days = X[:, fits]
    month, day = days // 100 % 100, days % 100
    is_day = (1 <= month) & (month <= 12) & (1 <= day) & (day <= 31) & (days == np.floor(days))
    fits[fits] = is_day.all(axis=0)
    return fits


def _has_dates(look):
    """Tell whether numbers are dates without separators, alone or with a time."""
    return look.n >= LEAST_DATES and np.ptp(look.ends) > 0 and bool(look.are_dates.any())
