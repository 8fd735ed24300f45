"""How objects that hold arrays, and results, print themselves."""

from dataclasses import fields
from html import escape

import numpy as np
from scipy.sparse import issparse


class OneLine:
    """A dataclass (``repr=False``) that prints in one line, arrays as shapes, without defaults."""

    def __repr__(self):
        shown = {}
        for one in fields(self):
            value, default = getattr(self, one.name), one.default
            is_default = value is default or (np.isscalar(value) and value == default)
            if one.repr and not is_default:
                shown[one.name] = value
        return f"{type(self).__name__}({as_assignments(shown)})"


class Listed:
    """What prints a headline and the rows of ``_rows``, as lines or as a table in notebooks."""

    def __str__(self):
        return as_lines(self._headline(), self._rows())

    def _repr_html_(self):
        return as_table(self._headline(), self._rows())


def as_lines(headline, rows):
    """Return a headline and a line for each row, a dict of names and texts."""
    width = max(map(len, rows), default=0)
    return "\n".join([headline, *(f"{name:<{width}}  {text}" for name, text in rows.items())])


def as_table(headline, rows):
    """Return the same as a table in HTML."""
    left = ' style="text-align: left"'
    body = "".join(
        f"<tr><th{left}>{escape(name)}</th><td{left}>{escape(text)}</td></tr>"
        for name, text in rows.items()
    )
    return f"<table><caption{left}>{escape(headline)}</caption><tbody>{body}</tbody></table>"


def as_assignments(values):
    """Return a dict of values in one line."""
    return ", ".join(f"{name}={_summary(value)}" for name, value in values.items())


def _summary(value):
    """Return the text of a value, without line breaks."""
    if isinstance(value, np.ndarray) or issparse(value):
        kind = "sparse " if issparse(value) else ""
        return f"{kind}{value.dtype}[{', '.join(map(str, value.shape))}]"
    if isinstance(value, float | np.floating):
        return f"{value:.6g}"
    if isinstance(value, np.dtype):
        return str(value)
    return " ".join(repr(value).split())
