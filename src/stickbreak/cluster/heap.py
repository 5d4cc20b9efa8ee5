"""Memory that a task frees stays with its process while the task runs.

Dask starts workers with ``MALLOC_TRIM_THRESHOLD_=65536``, so that they give memory back.  Then the C library maps each array of
over 128 KiB anew, and the system clears each of its pages.  While tasks of a visit run, arrays come from the heap instead; when
the last has ended, what the worker was started with holds again.
"""

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

SET = "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"
TRIM, MMAP = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h
DEFAULT = 128 << 10  # of both, in glibc
LARGE = 32 << 20  # bytes, the most that glibc takes for M_MMAP_THRESHOLD

_lock = threading.Lock()
_tasks = 0


@contextmanager
def kept() -> Iterator[None]:
    """Keep what is freed, in a process that was told to give it back."""
    mallopt = _mallopt()
    if mallopt is None:
        yield
        return
    _count(1, mallopt)
    try:
        yield
    finally:
        _count(-1, mallopt)


def _count(change: int, mallopt: Any) -> None:
    """One task more or less: the first and the last change what the C library does."""
    global _tasks
    with _lock:
        before = _tasks
        _tasks += change
        if before == 0:
            mallopt(TRIM, 2 * LARGE)
            mallopt(MMAP, LARGE)
        elif _tasks == 0:
            for option, name in zip((TRIM, MMAP), SET):
                mallopt(option, _number(os.environ.get(name)))


def _mallopt() -> Any:
    """The function of the C library, where it has one and was told when to give memory back."""
    return _libc_mallopt() if SET[0] in os.environ else None


@cache
def _libc_mallopt() -> Any:
    return getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isdigit() else DEFAULT
