"""How much memory is free, and the refusal of arrays that do not fit into it."""

import os
from pathlib import Path

import numpy as np

# Where the kernel and the control groups of a container report memory.
PROC = Path("/proc")
GROUPS = Path("/sys/fs/cgroup")


def check_memory(n, dtype, arrays=1, columns=None, what="hat matrix"):
    """Raise MemoryError if ``arrays`` arrays of n x n, or n x ``columns``, exceed free memory.

    ``what`` names the dense matrix in the message; ``columns`` is the rank of a low-rank factor.
    """
    what = f"dense {what}" if columns is None else f"low-rank factor of rank {columns}"
    refuse_beyond_free(
        arrays * n * (n if columns is None else columns) * np.dtype(dtype).itemsize,
        f"the {what} of {n} points needs",
        "give a lower rank (rank=0.01 is a hundredth of the points) or float32 points (half the "
        "size)",
    )


def refuse_beyond_free(needed, what, advice):
    """Raise MemoryError if so many bytes exceed free memory; ``what`` ends with the word need."""
    free = available_memory()
    if free is not None and needed > free:
        sizes = f"{needed / 2**30:.3g} GiB, and {free / 2**30:.3g} GiB are free"
        raise MemoryError(f"{what} {sizes}; {advice}")


def available_memory():
    """Return how many bytes can be allocated without swapping, or None if that is not known.

    This is the least that the kernel, the control groups of a container and the groups around them
    allow. Cached files give way to anything else, so they count as free.
    """
    known = [*_group_memory()]
    available = _read_fields(PROC / "meminfo").get("MemAvailable:")
    if available is not None:
        known.append(available * 1024)
    if not known and hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        known.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min(known, default=None)


def _group_memory():
    """Yield the bytes left in each limited control group, from that of this process outwards."""
    for line in _read_text(PROC / "self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            root, limit, usage, prefix = GROUPS, "memory.max", "memory.current", ""
        elif "memory" in controllers.split(","):
            root, limit, usage = GROUPS / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
            prefix = "total_"
        else:
            continue
        # Within a container the path may be that of the host, which is not there.
        group = root / path.lstrip("/")
        for one in (group, *group.parents):
            if not one.is_relative_to(root):
                break
            most, used = _read_text(one / limit).strip(), _read_text(one / usage).strip()
            if most.isdecimal() and used.isdecimal():  # else "max", or no such file
                stat = _read_fields(one / "memory.stat")
                files = sum(stat.get(f"{prefix}{kind}_file", 0) for kind in ("inactive", "active"))
                yield max(0, int(most) - max(0, int(used) - files))


def _read_fields(path):
    """Return the numbers of a file that has a name and a number in each line."""
    pairs = (line.split()[:2] for line in _read_text(path).splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def _read_text(path):
    """Return the text of a small file, or nothing if it cannot be read."""
    try:
        return path.read_text()
    except OSError:
        return ""
