"""Arrays of any type as numbers: masked and missing values become NaN; what is not a number is refused with its position."""

import datetime
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._arguments import shown

NUMBERS = "fiub"  # kinds of dtypes that hold real numbers
KINDS = {"c": "complex numbers", "M": "dates", "m": "time differences", "V": "records"}
CURES = {
    "c": "pass the real and the imaginary part as columns of their own",
    "M": "subtract a date and divide by a unit, such as (X - X.min()) / np.timedelta64(1, 'D')",
    "m": "divide by a unit, such as np.timedelta64(1, 's')",
    "V": "pass a frame, or one array with a column for each field",
}
DATES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)


def is_missing(value: Any) -> bool:
    """Whether a single value is None, NaN, masked, or the NA of pandas; NaT is not a missing number."""
    if value is None or value is np.ma.masked or type(value).__name__ == "NAType":
        return True
    return isinstance(value, (float, np.floating, Decimal)) and bool(value != value)


def is_date(value: Any) -> bool:
    """Whether a single value is a date, a time or a difference of times, or the NaT of pandas."""
    return isinstance(value, DATES) or type(value).__name__ in ("NaTType", "Period")


def as_array(X: Any, name: str = "X") -> NDArray[Any]:
    """A user's argument as an array of numbers, text or objects, with masked values as NaN (None among objects).

    Raises
    ------
    TypeError : a container without an order or a length, such as a set, a dict or a generator
    ValueError : rows of different lengths; complex numbers, dates, time differences or records
    """
    if is_tensor(X):
        array = _of_tensor(X)
    elif isinstance(X, (list, tuple)):
        array = _of_list(X, name)
    elif isinstance(X, np.matrix):
        raise TypeError(f"{name} is a np.matrix, which is not supported; pass np.asarray({name}).")
    elif isinstance(X, np.ndarray):
        array = X
    elif X is None or isinstance(X, (Mapping, AbstractSet)) or (hasattr(X, "__next__") and hasattr(X, "__iter__")):
        raise TypeError(f"{name} must be an array, a list or a frame; got {shown(X)}.")
    elif sparse.issparse(X):
        raise TypeError(f"{name} must be dense; pass {name}.toarray().")
    else:
        array = np.asanyarray(X)
    kind = array.dtype.kind
    if kind in KINDS:
        refused = "Complex data not supported: " if kind == "c" else ""
        raise ValueError(f"{refused}{name} holds {KINDS[kind]} ({array.dtype}); {CURES[kind]}.")
    return _unmasked(array)


def is_tensor(X: Any) -> bool:
    """Whether X is a tensor of torch, which need not be imported to know."""
    return type(X).__module__.partition(".")[0] == "torch" and hasattr(X, "detach")


def _of_tensor(X: Any) -> NDArray[Any]:
    """A tensor on any device as an array; numbers of less than 32 bits that NumPy lacks become float32."""
    values = X.detach().cpu()
    if str(values.dtype) == "torch.bfloat16":
        values = values.float()
    array: NDArray[Any] = values.numpy()
    return array


def numbers(X: Any, name: str = "X") -> NDArray[Any]:
    """A user's argument as an array of real numbers, with missing values as NaN; integers and float32 of any byte order stay.

    Raises
    ------
    TypeError, ValueError
        As for `as_array`, and if a value is not a number, with its position.
    """
    array = as_array(X, name)
    if array.dtype.kind in NUMBERS:
        if array.dtype.itemsize <= 8:
            return array.astype(array.dtype.newbyteorder("="), copy=False)
        with np.errstate(over="ignore"):
            return array.astype(np.float64)
    values = array.ravel().tolist()
    out = np.empty(len(values))
    for i, value in enumerate(values):
        try:
            out[i] = number(value)
        except (ValueError, TypeError) as error:
            raise type(error)(f"{name} holds {shown(value)} at {_place(array.shape, i)}: {error}") from None
    return out.reshape(array.shape)


def working_precision(dtype: np.dtype[Any]) -> np.dtype[np.floating]:
    """The type in which values of a type are computed with: float32 of any byte order is float32, all else float64."""
    return np.dtype(np.float32 if dtype.kind == "f" and dtype.itemsize == 4 else np.float64)


def number(value: Any) -> float:
    """A single value as a float, missing ones as NaN.

    Raises
    ------
    ValueError, TypeError : it is not a real number; the message says why.
    """
    if is_missing(value):
        return float("nan")
    if isinstance(value, (str, bytes)):
        raise ValueError("text is no number; convert it, or pass a frame, in which columns of text are categories.")
    if is_date(value):
        raise ValueError("dates are no numbers; subtract one and divide by a unit, such as a day.")
    if isinstance(value, (Real, Decimal, np.bool_)):
        try:
            return float(value)
        except OverflowError:
            raise ValueError("this number is too large for a float; divide by a constant first.") from None
    raise TypeError(f"the argument must be a string in a frame, or a real number; this is a {type(value).__name__}.")


def _of_list(items: Any, name: str) -> NDArray[Any]:
    """A nested list as an array, of objects if anything in it is not a plain number."""
    unmasked = [np.nan if x is np.ma.masked else _unmasked(x) if isinstance(x, np.ma.MaskedArray) else x for x in items]
    sizes = [len(x) if hasattr(x, "__len__") and np.ndim(x) != 0 else 1 for x in map(_outer, unmasked)]
    other = next((i for i, size in enumerate(sizes) if size != sizes[0]), None)
    if other is None and sizes and all(isinstance(x, np.ndarray) and x.dtype.kind in NUMBERS for x in unmasked):
        shapes = [np.shape(x) for x in unmasked]
        odd = next((i for i, shape in enumerate(shapes) if shape != shapes[0]), None)
        if odd is not None:
            raise ValueError(
                f"{name} has an inhomogeneous shape: item 0 has the shape {shapes[0]}, item {odd} has {shapes[odd]}; give "
                "all items the same shape."
            )
        return np.asarray(unmasked)
    try:
        array = None if other is not None else np.array(unmasked, dtype=object)
    except ValueError:
        array = None
    if array is None or any(isinstance(value, (list, tuple, np.ndarray)) for value in array.ravel()[:1]):
        found = "" if other is None else f": item 0 has length {sizes[0]}, item {other} has {sizes[other]}"
        raise ValueError(
            f"{name} has an inhomogeneous shape{found}; every row needs a value for every column (NaN where it is missing)."
        )
    kinds = set(map(type, array.ravel().tolist()))
    if not all(issubclass(kind, (float, int, np.floating, np.integer, np.bool_)) for kind in kinds):
        return array
    try:
        return np.asarray(unmasked)
    except OverflowError:
        return array


def _outer(item: Any) -> Any:
    """An item with the same length whose items are not looked at: a list is replaced by an array of that length."""
    return np.empty(len(item)) if isinstance(item, (list, tuple)) else item


def _unmasked(array: NDArray[Any]) -> NDArray[Any]:
    """Masked values as NaN, or as None among objects and text."""
    if not isinstance(array, np.ma.MaskedArray):
        return array
    if array.dtype.kind not in NUMBERS:
        out = np.array(array.data, dtype=object)
        out[np.ma.getmaskarray(array)] = None
        return out
    out = np.array(array.data, dtype=working_precision(array.dtype))
    out[np.ma.getmaskarray(array)] = np.nan
    return out


def _place(shape: tuple[int, ...], index: int) -> str:
    """The position of a value in an array of the given shape, in words."""
    place = [int(i) for i in np.unravel_index(index, shape)] if shape else []
    if len(place) == 2:
        return f"row {place[0]}, column {place[1]}"
    return f"position {', '.join(map(str, place))}" if place else "its only place"
