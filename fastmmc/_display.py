"""How objects that hold arrays print themselves."""

from __future__ import annotations

from dataclasses import MISSING, fields

import numpy as np
from scipy.sparse import issparse


class OneLine:
    """A dataclass that prints in one line, arrays as dtype and shape; needs ``repr=False``.

    Fields with their default value are left out.
    """

    def __repr__(self):
        shown = [
            f"{f.name}={_summary(value)}"
            for f in fields(self)
            if f.repr and not _is_default(value := getattr(self, f.name), f)
        ]
        return f"{type(self).__name__}({', '.join(shown)})"


def _is_default(value, field):
    if field.default is MISSING:
        return False
    return value is field.default or (np.isscalar(value) and value == field.default)


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
