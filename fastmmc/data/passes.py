"""What passes over a large file found, kept in a folder, so that a killed run goes on from there.

A pass is deterministic: what it finds follows from the rows, from what earlier passes kept, and
from what it is given, which the key of an entry stands for. An entry with another key, or after
other entries, is made again; a damaged one is refused.
"""

import hashlib
import io
import json
from pathlib import Path

import numpy as np

from fastmmc.core.files import replacing

ENDING = ".pass"
KEPT = "kept-"


class Passes:
    """Entries of one run, in the order in which they are made; without a folder none is kept.

    ``show`` is called with a text that says how far the run is.
    """

    def __init__(self, folder=None, show=None):
        self.folder = None if folder is None else Path(folder)
        self._show = show
        self._n_passes = self._n_entries = 0
        self._digest = ""  # of the entries so far

    def begin(self):
        """Count a pass."""
        self._n_passes += 1

    def tell(self, share):
        """Say how much of a pass is done."""
        if self._show is not None:
            self._show(f"pass {self._n_passes} over the rows: {share:.0%}")

    def subfolder(self):
        """Return a folder for what a pass keeps beside its entries, or None."""
        return None if self.folder is None else self.folder / f"{KEPT}{self._n_passes:04}"

    def recall(self, key, make, check=None):
        """Return what an earlier run has found, if it did the same so far, or ``make()``.

        ``check`` is called with the former; it raises a ValueError if what goes with it is damaged.
        """
        if self.folder is None:
            return make()
        path = self.folder / f"{self._n_entries:06}{ENDING}"
        self._n_entries += 1
        key = f"{self._digest} {key}"
        if path.exists():
            saved, found, self._digest = _read(path)
            if saved == key:
                if check is not None:
                    check(found)
                return found
        found = make()
        self._digest = _write(path, key, found)
        return found

    def files(self):
        """Return the files and folders that were made here, what is in a folder before it."""
        folders = [*self.folder.glob(f"{KEPT}*")]
        inside = [file for folder in folders for file in folder.iterdir()]
        unfinished = self.folder.glob(f".*{ENDING}.*")  # of a run that was killed
        return [*self.folder.glob(f"*{ENDING}"), *unfinished, *inside, *folders]


def digest_of(file):
    """Return the digest of a file's content."""
    with open(file, "rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def damaged(path, why):
    """Return the error of a file that holds something else than was put there."""
    return ValueError(f"{path} is damaged: {why}; begin anew in another folder")


def check_files(folder, found):
    """Refuse files (name, digest) of a folder that have changed or are gone."""
    for name, digest in found:
        file = folder / str(name)
        if not file.exists() or digest_of(file) != digest:
            raise damaged(file, "it is not what was kept" if file.exists() else "it is gone")


def _write(path, key, value):
    """Write a value, arrays and numbers in lists and tuples; return the digest."""
    arrays, archive = [], io.BytesIO()
    head = json.dumps({"key": key, "layout": _pack(value, arrays)})
    np.savez(archive, *arrays, head=head)
    content = archive.getvalue()
    digest = hashlib.sha256(content).hexdigest()
    with replacing(path) as file:
        file.write(digest.encode() + b"\n" + content)
    return digest


def _read(path):
    """Return the key of an entry, its value, whose lists are tuples now, and its digest."""
    digest, _, content = path.read_bytes().partition(b"\n")
    digest = digest.decode(errors="replace")
    if hashlib.sha256(content).hexdigest() != digest:
        raise damaged(path, "its content has another digest")
    with np.load(io.BytesIO(content)) as arrays:
        head = json.loads(str(arrays["head"]))
        return head["key"], _unpack(head["layout"], arrays), digest


def _pack(value, arrays):
    """Return the places in ``arrays`` of what a value holds, in lists as it has them."""
    if isinstance(value, list | tuple):
        return [_pack(one, arrays) for one in value]
    arrays.append(np.asarray(value))
    return len(arrays) - 1


def _unpack(layout, arrays):
    if isinstance(layout, list):
        return tuple(_unpack(one, arrays) for one in layout)
    return arrays[f"arr_{layout}"][()]
