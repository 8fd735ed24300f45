"""Files that appear whole or not at all, files that are locked, and temporary folders."""

import errno
import glob
import io
import os
import shutil
import tempfile
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from uuid import uuid4

try:
    import fcntl
except ImportError:  # Windows
    import msvcrt

    fcntl = None  # type: ignore[assignment]  # where there is none; mypy takes it for a module

# Letters of its name that an unfinished file has, as a name may be as long as the system allows.
MOST_NAME = 50

# Names of temporary folders, which no other program gives to its own.
TEMPORARY = "fastmmc_"
DIGITS = 32  # hexadecimal ones behind it


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
def locked(file, option="--state"):
    """Keep other runs from a file; the system lifts the lock of a run that is killed."""
    target = target_of(file)
    path = target.with_name(f".{target.name}.lock")
    is_held = False
    while not is_held:
        with open(path, "ab") as lock:
            try:
                if fcntl is None:
                    msvcrt.locking(lock.fileno(), msvcrt.LK_NBLCK, 1)
                    is_held = True
                else:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    is_held = os.stat(path).st_ino == os.fstat(lock.fileno()).st_ino
            except FileNotFoundError:  # another run has just ended and removed it
                continue
            except OSError as error:
                if error.errno not in (errno.EAGAIN, errno.EACCES):
                    raise
                raise ValueError(
                    f"{file} is in use by another run of fastmmc; wait for its end, or "
                    f"give another {option}"
                ) from None
            if is_held:
                try:
                    remove_unfinished(target)
                    yield
                finally:
                    if fcntl is not None:
                        # While it is held: a run that has opened the file sees that it is gone.
                        path.unlink(missing_ok=True)
    if fcntl is None:
        with suppress(OSError):  # another run has it by now
            path.unlink()


@contextmanager
def temporary_folder():
    """Yield a new folder, which is removed at the end, as are those of processes that were killed.

    Another process removes these, in the same place. A folder is in use as long as it is locked.
    """
    place = Path(tempfile.gettempdir())
    for left in place.glob(TEMPORARY + "[0-9a-f]" * DIGITS):
        with suppress(OSError, ValueError), locked(left):
            shutil.rmtree(left)
    path = place / f"{TEMPORARY}{uuid4().hex}"
    with ExitStack() as stack:
        with suppress(OSError):  # where a file system has no locks, no folder is taken for left
            stack.enter_context(locked(path))
        path.mkdir(mode=0o700)
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)


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
