"""Files that appear whole or not at all."""

import errno
import glob
import io
import os
import shutil
from contextlib import contextmanager
from pathlib import Path

# Letters of its name that an unfinished file has, as a name may be as long as the system allows.
MOST_NAME = 50


def target_of(path):
    """Return the file that a path names, behind links; /dev/stdout may be one to a pipe."""
    is_link = os.path.islink(path) and is_replaced(path)
    return Path(os.path.realpath(path)) if is_link else Path(path)


def is_replaced(path):
    """Tell whether a file is put in the place of this one; a pipe or a device is written to."""
    return os.path.isfile(path) or not os.path.exists(path)


@contextmanager
def naming(path):
    """Name a file in the errors of the system, which may name another one or none."""
    try:
        yield
    except OSError as error:
        text = error.strerror or f"cannot be written: {error}"
        raise OSError(error.errno or errno.EIO, text, str(path)) from error


@contextmanager
def replacing(path):
    """Yield a binary file beside a path, which takes its place when it is whole.

    After an error, and if the process is killed, what was there before is there still. A link
    stays, and what it names is replaced.
    """
    target = target_of(path)
    with naming(path):
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, "is a folder; give the name of a file")
        if not target.parent.is_dir():
            text = f"there is no folder {target.parent}; make it first"
            raise FileNotFoundError(errno.ENOENT, text)
        if not is_replaced(target):
            with target.open("wb") as file:
                yield file
            return
        unfinished = target.with_name(f".{target.name[:MOST_NAME]}.{os.getpid()}")
        try:
            with unfinished.open("w+b") as file:
                if target.exists():
                    shutil.copymode(target, unfinished)
                yield file
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(target)
        finally:
            unfinished.unlink(missing_ok=True)


def remove_unfinished(path):
    """Remove what killed processes left of a file, which no other one may be writing.

    What they left of a file with a long name may be another one's, and stays.
    """
    target = target_of(path)
    for unfinished in target.parent.glob(f".{glob.escape(target.name)}.*"):
        if unfinished.suffix[1:].isdecimal():
            unfinished.unlink(missing_ok=True)


@contextmanager
def gathering(path):
    """Yield a file in memory with the name of a path, whose content becomes that of the path.

    For libraries that write to a file's descriptor, and do not look at how much the system took.
    """
    with replacing(path) as file:
        buffer = io.BytesIO()
        buffer.name = str(path)
        yield buffer
        file.write(buffer.getbuffer())
