"""The layout of tables in memory: numbers of a row side by side, where those of a column were."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._jit import jit as _jit

Array = NDArray[np.floating]

SIDE = 8  # numbers of a cache line: blocks of so many rows and columns are read and written without waste


def in_rows(table: Any) -> Array:
    """The same numbers (n, m) in float64, those of each row side by side; a table that is so already is not copied."""
    if table.flags.c_contiguous or table.dtype != np.float64 or not table.flags.f_contiguous:
        return np.ascontiguousarray(table, np.float64)
    rows = np.empty(table.shape)
    transpose(table.T, rows)
    return rows


@_jit
def transpose(table, out):
    """Write a table (n, m) to ``out`` (m, n), in blocks: in rows, each number written would move a line of memory."""
    n, m = table.shape
    for first_row in range(0, n, SIDE):
        for first in range(0, m, SIDE):
            for j in range(first, min(first + SIDE, m)):
                for i in range(first_row, min(first_row + SIDE, n)):
                    out[j, i] = table[i, j]
