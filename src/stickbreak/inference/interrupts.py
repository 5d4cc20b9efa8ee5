"""Ctrl-C is deferred while certain functions run, so that it cannot leave their work half done.

An interrupt can reach Python code between any two instructions, also before the first one of a ``finally`` block or of
``__exit__``.  So a handler of ours replaces the handler of SIGINT from the first shielded call to the last, and inspects
the stack: while a shielded function is on it, the interrupt is only recorded, and `deliver` passes it on later.
Signals reach the main thread alone; in other threads all of this does nothing.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

_shielded: set[CodeType] = set()


class _State:
    """State of the main thread: the number of users of the handler, the handler it replaces, and whether an interrupt waits."""

    users = 0
    previous: Callable[[int, FrameType | None], Any] = signal.default_int_handler
    pending = False


def shielded(function: Function) -> Function:
    """Defer interrupts while the function is on the stack; it ends with `deliver`."""
    _shielded.add(function.__code__)
    return function


def begin() -> bool:
    """Install the handler; returns whether `end` must be called. Call it from a shielded function."""
    if not _in_main_thread():
        return False
    if _State.users == 0:
        handler = signal.getsignal(signal.SIGINT)
        if not callable(handler):  # ignored, fatal, or not of Python: nothing will be raised here
            return False
        _State.previous = handler
        _State.pending = False
        signal.signal(signal.SIGINT, _handle)
    _State.users += 1
    return True


def end() -> None:
    """Undo one `begin`; the last one restores the handler."""
    _State.users -= 1
    if _State.users == 0 and _in_main_thread() and signal.getsignal(signal.SIGINT) is _handle:
        signal.signal(signal.SIGINT, _State.previous)


def pending() -> bool:
    """Whether an interrupt waits for this thread."""
    return _State.pending and _in_main_thread()


def deliver() -> None:
    """Pass on an interrupt that waits, which usually raises KeyboardInterrupt here."""
    if pending():
        _State.pending = False
        _State.previous(signal.SIGINT, sys._getframe(1))


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _handle(number: int, frame: FrameType | None) -> None:
    place = frame
    while place is not None:
        if place.f_code in _shielded:
            _State.pending = True
            return
        place = place.f_back
    _State.previous(number, frame)


def _after_fork() -> None:
    """Reset the state in a child process, which runs outside the shielded functions of its parent."""
    if _State.users:
        _State.users = 0
        _State.pending = False
        if signal.getsignal(signal.SIGINT) is _handle:
            signal.signal(signal.SIGINT, _State.previous)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
