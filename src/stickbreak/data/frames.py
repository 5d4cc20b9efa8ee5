"""Tables with named columns of any type, as numbers: categories become codes, and their levels are remembered."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

Levels = Mapping[int, Sequence[Any]]


class Encoded(NamedTuple):
    """A table of numbers: X (N, D), missing values as NaN, the names of its columns, and the levels of coded columns."""

    X: NDArray[np.floating]
    names: Sequence[str]
    levels: Levels


def as_frame(X: Any) -> Any:
    """X as a frame of narwhals if it is one (pandas, polars, pyarrow), else None."""
    if isinstance(X, np.ndarray):
        return None
    frame = nw.from_native(X, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        raise TypeError("X is a lazy frame; pass X.collect().")
    return frame if isinstance(frame, nw.DataFrame) else None


def mixed_frame(X: Any, levels: Levels | None = None) -> Any:
    """X as a frame of narwhals if it is one that has, or should have, columns of categories, else None."""
    frame = as_frame(X)
    if frame is None or (not levels and all(column.dtype.is_numeric() for column in frame.iter_columns())):
        return None
    return frame


def encode(frame: Any, levels: Levels | None = None) -> Encoded:
    """A frame as numbers.

    Parameters
    ----------
    frame : of narwhals
    levels : of the table that a model was fitted to, for the same codes; by default categories in their order, other values
        sorted

    Raises
    ------
    ValueError : a column holds neither numbers nor categories, a level that is not known, or text where there were numbers.
    """
    X = np.empty(frame.shape)
    found: dict[int, Sequence[Any]] = {}
    for d, (name, column) in enumerate(zip(frame.columns, frame.iter_columns())):
        known = None if levels is None else levels.get(d)
        values = None if known is None and _is_number(column.dtype) else column.to_list()
        if values is None:
            X[:, d] = column.cast(nw.Float64).to_numpy()
        elif known is None and column.dtype not in (nw.Categorical, nw.Enum) and _all_numbers(values):
            X[:, d] = [np.nan if _is_missing(value) else float(value) for value in values]
        elif known is None and levels is not None:
            raise ValueError(f"column {name!r} holds categories, but held numbers when the model was fitted.")
        else:
            found[d] = _levels(column, values, name) if known is None else known
            X[:, d] = codes(values, found[d], name)
    return Encoded(X, list(frame.columns), found)


def codes(values: Sequence[Any], levels: Sequence[Any], name: str) -> NDArray[np.floating]:
    """The position of each value among the levels; NaN where it is missing.  Numbers match their text, such as 1 and "1"."""
    known: dict[Any, float] = {level: float(code) for code, level in enumerate(levels)}
    out = np.empty(len(values))
    for i, value in enumerate(values):
        code = np.nan if _is_missing(value) else known.get(_level(value))
        if code is None:
            code = known.get(f"{value:g}" if isinstance(value, float) else str(value))
        if code is None:
            shown = ", ".join(map(repr, list(levels)[:8])) + (", ..." if len(levels) > 8 else "")
            raise ValueError(f"column {name!r} holds {value!r}, which is not among its levels: {shown}.")
        out[i] = code
    return out


def recode(table: Encoded, levels: Levels) -> Encoded:
    """A table with the codes of the given levels in place of its own."""
    X = np.array(table.X, dtype=np.float64)
    for d in table.levels:
        if d not in levels:
            raise ValueError(f"column {table.names[d]!r} holds categories, but held numbers when the model was fitted.")
    for d, known in levels.items():
        own = table.levels.get(d)
        values = X[:, d].tolist()
        if own is not None:
            values = [None if value != value else own[int(value)] for value in values]
        X[:, d] = codes(values, known, str(table.names[d]))
    return Encoded(X, table.names, levels)


def decode(X: NDArray[np.floating], frame: Any, levels: Levels) -> Any:
    """The native frame with its missing values replaced by those of X: levels for codes; what is there stays as it is."""
    columns = []
    for d, column in enumerate(frame.iter_columns()):
        values = column.to_list()
        missing = [_is_missing(value) for value in values]
        if any(missing) and (d not in levels or len(levels[d])):
            fill = X[:, d].tolist() if d not in levels else [levels[d][int(code)] for code in X[:, d]]
            kept = d in levels or column.dtype == nw.Boolean  # a mean of whole numbers is none
            if column.dtype == nw.Boolean:
                fill = [bool(value) for value in fill]
            full = [new if gone else old for old, new, gone in zip(values, fill, missing)]
            columns.append(_series(column, full if kept else [float(value) for value in full], kept))
    return frame.with_columns(*columns).to_native() if columns else frame.clone().to_native()


def _series(column: Any, values: list[Any], kept: bool) -> Any:
    """A column like another, with other values; of its type, if that is ``kept``."""
    native = column.to_native()
    if hasattr(native, "index"):  # pandas
        made = type(native)(values, index=native.index, name=native.name, dtype=native.dtype if kept else None)
        return nw.from_native(made, series_only=True)
    return nw.new_series(column.name, values, column.dtype if kept else None, backend=column.implementation)


def _is_number(dtype: Any) -> bool:
    return bool(dtype.is_numeric() or dtype == nw.Boolean)


def _all_numbers(values: Sequence[Any]) -> bool:
    """Whether an object column holds numbers, and at least one."""
    present = [value for value in values if not _is_missing(value)]
    return bool(present) and all(isinstance(value, (bool, int, float, np.number, np.bool_)) for value in present)


def _levels(column: Any, values: Sequence[Any], name: str) -> list[Any]:
    if column.dtype == nw.Enum:
        return [_level(value) for value in column.dtype.categories]
    native = column.to_native()
    if column.dtype == nw.Categorical and hasattr(native, "cat") and hasattr(native.cat, "categories"):  # pandas
        return [_level(value) for value in native.cat.categories]
    kinds = {type(value) for value in values if not _is_missing(value)}
    if not all(issubclass(kind, (str, bool, int, float)) for kind in kinds):
        raise ValueError(f"column {name!r} holds {column.dtype}, neither numbers nor categories; drop or convert it.")
    try:
        return sorted({value for value in values if not _is_missing(value)})
    except TypeError:
        raise ValueError(f"column {name!r} mixes text and numbers; convert it to one of them.") from None


def _level(value: Any) -> Any:
    """A level as a text, a number or a truth value, which a model file can hold."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, (str, bool, int, float)) else str(value)


def _is_missing(value: Any) -> bool:
    return (
        value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)
    )
