"""Single values that users pass as arguments: whether they are numbers, and how a message shows them."""

from datetime import date, time, timedelta
from numbers import Integral, Number, Real
from typing import Any

import numpy as np

SHOWN = 120  # characters of a value in a message
PRINTED = (str, bytes, Number, np.generic, list, tuple, date, time, timedelta)


def real(value: Any) -> float:
    """A real number as a float, infinite if it is too large; NaN for anything else, such as text or a truth value."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        return float("nan")
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def check_count(value: Any, name: str) -> None:
    """Refuse a count that is not a whole number from 1 to 2^31."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not (whole and 1 <= value < 2**31):
        raise ValueError(f"{name} must be a whole number of at least 1, below 2^31; got {shown(value)}.")


def check_boolean(value: Any, name: str) -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False; got {shown(value)}.")


def as_floats(record: Any, *names: str) -> None:
    """Convert fields of a frozen dataclass, already checked, from any kind of number to floats."""
    for name in names:
        object.__setattr__(record, name, float(getattr(record, name)))


def shown(value: Any) -> str:
    """A value in one line of at most `SHOWN` characters; a container other than a list is shown by its type."""
    if isinstance(value, int) and abs(value) > 10**30:
        return f"an int of {value.bit_length()} bits"
    if value is not None and not isinstance(value, PRINTED):
        return f"a {type(value).__name__}"
    text = " ".join(repr(value).split())
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."
