"""Columns given by name, by number or as a mask."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def column_number(which: Any, names: Sequence[str] | None, D: int) -> int:
    """The number of a column given by number or name."""
    if isinstance(which, str):
        if names is None or which not in list(names):
            listed = "the table has no names" if names is None else f"there are {', '.join(map(str, names))}"
            raise ValueError(f"there is no column {which!r}: {listed}.")
        return list(names).index(which)
    if isinstance(which, (bool, np.bool_)) or not isinstance(which, (int, np.integer)):
        raise ValueError(f"columns are given by name or number; got {which!r:.80}.")
    number = int(which)
    if not -D <= number < D:
        raise ValueError(f"there is no column {which!r:.80}: the table has {D}.")
    return number % D


def column_numbers(given: Any, names: Sequence[str] | None, D: int) -> NDArray[np.intp]:
    """The numbers of columns given by number, by name or as a mask."""
    if isinstance(given, slice):
        return np.arange(D)[given]
    listed = np.atleast_1d(np.asarray(given, dtype=object))
    if len(listed) == D and all(isinstance(which, (bool, np.bool_)) for which in listed):
        return np.flatnonzero(listed.astype(np.bool_))
    return np.array([column_number(which, names, D) for which in listed], np.intp)
