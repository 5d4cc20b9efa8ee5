"""Linear algebra on one thread while anything here runs: one limit for the whole process, counted and put back.

The thread pools of most BLAS libraries belong to the process, so what one fit sets holds for all.  The first holder
remembers the limits it finds, every holder sets them to one, and the last one restores what was remembered.
OpenBLAS on OpenMP has a limit per thread instead: each holder sets and restores that of its own thread, and worker threads
call `limit_thread`.
"""

import os
import sys
import threading
from importlib import import_module
from typing import Any

from threadpoolctl import ThreadpoolController

import_module("scipy.linalg")  # loads the BLAS library of SciPy, so that the first scan sees it


class Hold:
    """One holder of the limit, with the limits of its own thread as they were.

    guard : a weak reference to its owner, whose callback releases the hold if the owner did not; None after the release
    """

    def __init__(self, own: list[tuple[Any, int]]) -> None:
        self.own = own
        self.guard: Any = None


class _Libraries:
    """The BLAS libraries that are loaded, and the holders of their limit."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.holders: set[Hold] = set()
        self.before: dict[
            str, tuple[Any, int]
        ] = {}  # library and limit of the process before the first holder, by path
        self.of_process: list[Any] = []
        self.of_thread: list[Any] = []
        self.others: list[Any] = []  # probably limits of the process; setting them in each thread as well is harmless
        self._modules = -1

    def look(self) -> None:
        """Scan the libraries of the process, which takes milliseconds, if modules were imported since the last scan."""
        if len(sys.modules) == self._modules:
            return
        found = ThreadpoolController().select(user_api="blas").lib_controllers
        found = [library for library in found if library.num_threads is not None]
        self.of_thread = [library for library in found if _on_openmp(library)]
        self.of_process = [library for library in found if not _on_openmp(library)]
        self.others = [library for library in self.of_process if library.internal_api != "openblas"]
        self._modules = len(sys.modules)

    def enforce(self) -> None:
        """Set all limits of the process to one, and remember what they were.

        If the limit found was one and other code has raised it since, the raised limit is the one to restore.
        """
        for library in self.of_process:
            now = library.num_threads
            before = self.before.get(library.filepath)
            if before is None or (before[1] == 1 and now > 1):
                self.before[library.filepath] = library, now
            if now != 1:
                _set(library, 1)

    def restore(self) -> None:
        """Restore the limits of the process."""
        for library, limit in self.before.values():
            _set(library, limit)
        self.before.clear()


_libraries = _Libraries()


def hold() -> Hold:
    """Limit linear algebra to one thread until the hold is released in this same thread."""
    with _libraries.lock:
        _libraries.look()
        taken = Hold([(library, library.num_threads) for library in _libraries.of_thread])
        _libraries.holders.add(taken)
        _libraries.enforce()
        for library, _ in taken.own:
            _set(library, 1)
    return taken


def keep() -> None:
    """Set the limits again: other code may have changed them, or loaded a library."""
    with _libraries.lock:
        _libraries.look()
        if _libraries.holders:
            _libraries.enforce()


def release(taken: Hold) -> None:
    """Give up a hold; the last release restores the limits. A second release does nothing."""
    with _libraries.lock:
        if taken not in _libraries.holders:
            return
        _libraries.holders.remove(taken)
        taken.guard = None
        if not _libraries.holders:
            _libraries.restore()
        for library, limit in taken.own:
            _set(library, limit)


def limit_thread() -> None:
    """Set the limits of a worker thread, for libraries with limits per thread."""
    for library in (*_libraries.of_thread, *_libraries.others):
        _set(library, 1)


def _on_openmp(library: Any) -> bool:
    return library.internal_api == "openblas" and getattr(library, "threading_layer", None) == "openmp"


def _set(library: Any, limit: int) -> None:
    """Set the limit directly: threadpoolctl ignores all threads but the first that set it."""
    getattr(library, "_real_set_num_threads", library.set_num_threads)(limit)


def _after_fork() -> None:
    """Restore the limits in a child process, which has none of the threads that hold them and returns to no fit."""
    _libraries.lock = threading.RLock()
    _libraries.holders.clear()
    _libraries.restore()


def _before_fork() -> None:
    _libraries.lock.acquire()


def _after_fork_in_parent() -> None:
    _libraries.lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork)
