"""Python's search for reference cycles, which takes long where many objects are made that stay."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused() -> Iterator[None]:
    """Imports and compilation make a million objects, which the collector would look at again and again: it waits until after.

    If several threads do so at once, it goes on when the first of them is done.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
