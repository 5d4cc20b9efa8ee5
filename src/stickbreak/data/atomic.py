"""Files and folders that appear completely written, or not at all.

A file is written beside its target under a temporary name, and the writing process holds a lock on it.  The system lifts
the lock when that process ends, however it ends.  So a temporary file without a lock is left over from a process that was
killed, and the next write into the same folder removes it.
"""

import errno
import os
import platform
import re
import secrets
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

from .._arguments import shown

if sys.platform != "win32":  # Windows has no such locks, so leftovers stay there
    import fcntl

HOST = sha256(platform.node().encode()).hexdigest()[:8]  # locks of other hosts may not be visible on a shared disk
LEFTOVER = re.compile(rf"\.stickbreak-{HOST}-[0-9a-f]{{16}}\.(tmp|old)")
TAKEN = (errno.ENOTEMPTY, errno.EEXIST)  # errors of renaming a folder to a name that is taken
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
ATTEMPTS = 100  # to lock a new name before another process takes it for a leftover


def as_path(path: Any, name: str = "path") -> Path:
    """A path that a user passed; refuse anything but text or a path-like object, naming it."""
    given = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(given, str):
        raise TypeError(f"{name} must be a str or an os.PathLike of text; got {shown(path)}.")
    if not given or "\0" in given:
        raise ValueError(f"{name} must name a file; got {given!r}.")
    return Path(given)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write that takes the place of ``path`` when the block ends, and leaves no trace if the block fails.

    Raises
    ------
    FileNotFoundError : the folder does not exist.
    IsADirectoryError : ``path`` is a directory.
    TypeError, ValueError : ``path`` is not a path.
    OSError : the disk is full, or writing fails otherwise; the error names ``path``.
    """
    target = Path(os.path.realpath(as_path(path)))
    if target.is_dir():
        raise IsADirectoryError(f"{path} is a directory; name a file to write.")
    check_folder(path)
    with named_errors(path):
        if target.exists() and not target.is_file():  # a device or a pipe
            with target.open("wb") as file:
                yield file
            return
        remove_leftovers(target.parent)
        with _temporary(target.parent, lambda new: new.touch(exist_ok=False)) as temporary:
            with temporary.open("wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)


@contextmanager
def replacing_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A folder to fill that takes the place of ``path`` when the block ends, and leaves no trace if the block fails.

    A process that is killed between moving the old folder away and the new one in leaves the old one under a temporary
    name; the next write beside it puts it back, and so does `stickbreak.data.corpus.open_corpus`.

    Raises
    ------
    FileNotFoundError : the folder that should hold ``path`` does not exist.
    OSError : the disk is full; the error names ``path``.
    """
    target = Path(os.path.realpath(as_path(path)))
    check_folder(path)
    remove_leftovers(target.parent)
    with named_errors(path, FULL), _temporary(target.parent, Path.mkdir) as temporary:
        yield temporary
        _put(temporary, target)


def check_folder(path: str | os.PathLike[str]) -> None:
    """Refuse a path in a folder that does not exist."""
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise FileNotFoundError(f"cannot write {path}: the folder {folder} does not exist.")


@contextmanager
def named_errors(path: str | os.PathLike[str], numbers: tuple[int, ...] = ()) -> Iterator[None]:
    """Name the path in system errors that name no file or a temporary one; only in those of the given numbers, if any."""
    try:
        yield
    except OSError as error:
        own = error.filename is None or any(LEFTOVER.fullmatch(part) for part in Path(error.filename).parts)
        if not own or (numbers and error.errno not in numbers):
            raise
        number = error.errno or errno.ENOSPC  # errors of NumPy have no number, only the bytes it could write
        advice = "; free some space or write to another disk" if number in FULL else ""
        raise OSError(number, f"{error.strerror or error}{advice}", os.fspath(path)) from error


def remove_leftovers(folder: Path) -> None:
    """Remove leftovers of killed processes of this user and host from a folder; those that cannot be removed stay."""
    with suppress(OSError), os.scandir(folder) as entries:
        for path in [folder / entry.name for entry in entries if LEFTOVER.fullmatch(entry.name)]:
            with suppress(OSError):
                _remove_leftover(path)


def _remove_leftover(path: Path) -> None:
    """Remove a file or folder that no process has locked, and put back a folder that was moved away without a successor."""
    if sys.platform == "win32":
        return
    found = path.lstat()
    if found.st_uid != os.geteuid() or not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
        return
    lock = _locked(path, wait=False)
    if lock is None:
        return
    try:
        for aside in path.iterdir() if path.suffix == ".old" else ():
            if not (path.parent / aside.name).exists():
                aside.rename(path.parent / aside.name)
        _remove(path)
    finally:
        os.close(lock)


@contextmanager
def _temporary(folder: Path, make: Callable[[Path], Any], ending: str = "tmp") -> Iterator[Path]:
    """A new file or folder, locked while the block runs; whatever is left of it afterwards is removed."""
    for _ in range(ATTEMPTS):
        path = folder / f".stickbreak-{HOST}-{secrets.token_hex(8)}.{ending}"
        make(path)
        lock = None
        try:
            lock = _locked(path)
            if path.exists():  # no other process took it for a leftover before it was locked
                yield path
                return
        finally:
            _remove(path)
            if lock is not None:
                os.close(lock)
    raise OSError(errno.EAGAIN, "temporary files are removed by another process", os.fspath(folder))


def _locked(path: Path, wait: bool = True) -> int | None:
    """A descriptor that holds the lock of a file or folder, or None if another process has it or there are no locks."""
    if sys.platform == "win32":
        return None
    descriptor = None
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), path.lstat()):
            return descriptor
    except OSError:  # raised by file systems without locks too, where nothing is taken for a leftover
        pass
    if descriptor is not None:
        os.close(descriptor)
    return None


def _put(new: Path, target: Path) -> None:
    """Replace a folder by another; it stays if that fails, and the last of several concurrent writers wins."""
    for _ in range(ATTEMPTS):
        if target.exists():
            if _exchanged(new, target):
                return
        elif _moved(new, target):
            return
    raise OSError(errno.EAGAIN, "it is replaced by other processes all the time", os.fspath(target))


def _moved(new: Path, target: Path) -> bool:
    """Rename a folder to a free name; False if another writer took the name first."""
    try:
        new.rename(target)
    except OSError as error:
        if error.errno in TAKEN:
            return False
        raise
    return True


def _exchanged(new: Path, target: Path) -> bool:
    """Rename a folder to the name of another, which is moved aside; False if another writer did so first."""
    with _temporary(target.parent, Path.mkdir, "old") as aside:
        old = aside / target.name
        try:
            target.rename(old)
        except FileNotFoundError:
            return False
        try:
            return _moved(new, target)
        except BaseException:
            if not target.exists():
                old.rename(target)
            raise


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
