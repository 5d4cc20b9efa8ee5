"""Pages of memory maps."""

import mmap
from typing import Any

import numpy as np


def release_pages(X: Any) -> None:
    """Let go of the pages of an array that is a memory map."""
    mapped = isinstance(X, np.memmap) and X.mode != "c"  # pages changed in memory alone must not be dropped
    if mapped and hasattr(X._mmap, "madvise"):
        X._mmap.madvise(mmap.MADV_DONTNEED)
