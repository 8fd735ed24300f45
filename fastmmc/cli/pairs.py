"""Files of must-links and cannot-links."""

from __future__ import annotations

import re

import numpy as np

from fastmmc.cli import tables
from fastmmc.data.columns import counted
from fastmmc.data.links import find_conflicts

KINDS = {"must": "must", "ml": "must", "cannot": "cannot", "cl": "cannot"}
PAIRS_HELP = (
    "a table of pairs of rows, numbered from 0: rows i,j,kind with kind must or cannot (or ml, "
    "cl); without kind: cannot"
)


def read_constraints(path):
    """Return the must-links and the cannot-links of a file, (p, 2) and (q, 2) numbers of rows.

    Its rows are ``i,j,kind`` with the kinds must, ml, cannot and cl, or ``i,j`` for cannot; the
    first one may be a header.
    """
    found = {"must": [], "cannot": []}
    with tables.errors_about(path):
        rows = ((line, row) for line, _, row in tables.read_text(path).rows() if row)
        for count, (line, row) in enumerate(rows):
            if count == 0:
                first_line, n_cells = line, len(row)
                if tables.is_header(row):
                    continue
            if len(row) != n_cells:
                raise ValueError(
                    f"line {line} has {counted(len(row), 'cell')}; line {first_line} has {n_cells}"
                )
            kind, pair = _pair(line, row)
            found[kind].append((line, *pair))
        must, cannot = (np.array(rows, dtype=np.int64).reshape(-1, 3) for rows in found.values())
        conflicts = find_conflicts(must[:, 1:], cannot[:, 1:])
        if conflicts.size:
            line, i, j = cannot[conflicts[0]]
            raise ValueError(
                f"line {line} keeps rows {i} and {j} apart, but must-links join them; remove one "
                "of them"
            )
    return must[:, 1:], cannot[:, 1:]


def _pair(line, row):
    """Return the kind of a constraint and its two rows."""
    if len(row) not in (2, 3):
        raise ValueError(f"line {line}: expected i,j or i,j,kind; got {counted(len(row), 'cell')}")
    kind = KINDS.get(row[2].strip().lower()) if len(row) == 3 else "cannot"
    if kind is None:
        raise ValueError(f"line {line}: the kind must be one of {', '.join(KINDS)}; got {row[2]!r}")
    for cell in row[:2]:
        if not re.fullmatch(r"\d{1,18}", cell.strip(), re.ASCII):
            raise ValueError(
                f"line {line}: expected the number of a row, counted from 0; got {cell!r}"
            )
    i, j = map(int, row[:2])
    if i == j:
        raise ValueError(f"line {line} links row {i} to itself")
    return kind, (i, j)
