"""Hyperparameters and sums: the values they may have, and the range of numbers that likelihoods can compute with."""

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arguments import shown

Array = NDArray[np.floating]

LARGEST = 1e150  # the square of a larger number overflows in sums
SMALLEST = 1e-150  # the square of a smaller number loses digits
FARTHEST = 1e100  # units of its column from the origin, beyond which the score of a row may overflow


def farthest(origin: Any, unit: Any) -> Any:
    """The largest size of values (D,) that are not too far from ``origin``, in ``unit``, for their squares; unknown: any."""
    if unit is None:
        return LARGEST
    return np.minimum(LARGEST, np.maximum(2.0 * np.abs(origin), FARTHEST * np.asarray(unit)))


def require(condition: bool, name: str, value: Any, wanted: str) -> None:
    """Raise a ValueError that names the hyperparameter, its value and what it must be."""
    if not condition:
        raise ValueError(f"{name} must be {wanted}; got {value!r}.")


def column_values(name: str, value: Any, D: int) -> Array:
    """A hyperparameter given as a scalar or per column, as a finite (D,) float64 array."""
    values = hyperparameter(name, value)
    require(
        values.ndim <= 1 and values.size in (1, D), name, value, f"a number or an array of {D} numbers, one per column"
    )
    require(bool(np.isfinite(values).all()), name, value, "finite")
    return np.array(np.broadcast_to(values, (D,)))


def positive_values(name: str, value: Any, D: int) -> Array:
    """A positive hyperparameter given as a scalar or per column, as a (D,) float64 array."""
    values = column_values(name, value, D)
    require(bool((values > 0.0).all()), name, value, "positive")
    return values


def positive(name: str, value: Any) -> float:
    """A positive, finite hyperparameter."""
    number = hyperparameter(name, value)
    require(number.ndim == 0 and bool(np.isfinite(number) and number > 0.0), name, value, "a positive number")
    return float(number)


def whole(name: str, value: Any) -> int:
    """A whole number of at least one."""
    fine = isinstance(value, (int, np.integer)) and not isinstance(value, bool) and bool(value >= 1)
    require(fine, name, value, "a whole number of at least 1")
    return int(value)


def hyperparameter(name: str, value: Any) -> Array:
    """A number or a nested list of numbers as a float64 array; text, truth values and numbers beyond floats are refused."""
    try:
        given = np.asarray(value)
        if given.dtype == object and given.size and all(isinstance(v, Real) for v in given.ravel().tolist()):
            given = given.astype(np.float64)
    except (ValueError, OverflowError):
        given = np.array(None)
    fits = given.dtype.kind in "fiu" and not np.ma.is_masked(value)
    if not fits:
        raise ValueError(f"{name} must be a number, or numbers; got {shown(value)}.")
    return np.asarray(given, dtype=np.float64)


def check_rounding(rounding: Any) -> None:
    """Refuse variances of rounding errors that cannot be."""
    require(bool((np.asarray(rounding) >= 0.0).all()), "rounding", rounding, "at least 0")


def check_coordinates(origin: Any, unit: Any) -> None:
    """Refuse origins and units of working coordinates that are not finite, or units that cannot be squared."""
    require(bool(np.isfinite(origin).all()), "origin", origin, "finite")
    units = np.asarray(unit)
    fine = (units >= 1.0 / LARGEST) & (units <= LARGEST)
    require(bool(fine.all()), "unit", unit, f"from {1.0 / LARGEST:g} to {LARGEST:g}")
