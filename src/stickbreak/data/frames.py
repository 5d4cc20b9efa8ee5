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


def mixed_frame(X: Any) -> Any:
    """X as a frame of narwhals if it is one (pandas, polars, pyarrow) with columns that are not numbers, else None."""
    if isinstance(X, np.ndarray):
        return None
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame) or all(column.dtype.is_numeric() for column in frame.iter_columns()):
        return None
    return frame


def encode(frame: Any, levels: Levels | None = None) -> Encoded:
    """A frame as numbers.

    Parameters
    ----------
    frame : of narwhals
    levels : of a table encoded before, for the same codes; by default categories in their order, other values sorted

    Raises
    ------
    ValueError : a column holds neither numbers nor categories, or a level that is not known.
    """
    X = np.empty(frame.shape)
    found: dict[int, Sequence[Any]] = {}
    for d, (name, column) in enumerate(zip(frame.columns, frame.iter_columns())):
        known = None if levels is None else levels.get(d)
        if known is None and (column.dtype.is_numeric() or column.dtype == nw.Boolean):
            X[:, d] = _numbers(column)
        else:
            found[d] = _levels(column, name) if known is None else known
            X[:, d] = codes(column.to_list(), found[d], name)
    return Encoded(X, list(frame.columns), found)


def codes(values: Sequence[Any], levels: Sequence[Any], name: str) -> NDArray[np.floating]:
    """The position of each value among the levels; NaN where it is missing."""
    known = {level: float(code) for code, level in enumerate(levels)}
    try:
        return np.array([np.nan if _is_missing(value) else known[value] for value in values])
    except KeyError as error:
        shown = ", ".join(map(repr, list(levels)[:8])) + (", ..." if len(levels) > 8 else "")
        raise ValueError(f"column {name!r} holds {error.args[0]!r}, which is not among its levels: {shown}.") from None


def recode(table: Encoded, levels: Levels) -> Encoded:
    """A table with the codes of the given levels in place of its own."""
    X = np.array(table.X, dtype=np.float64)
    for d, known in levels.items():
        own = table.levels.get(d)
        if own is not None:
            codes_of_own = np.append(codes(own, known, str(table.names[d])), np.nan)
            X[:, d] = codes_of_own[np.where(np.isnan(X[:, d]), len(own), X[:, d]).astype(np.intp)]
    for d in table.levels:
        if d not in levels:
            raise ValueError(f"column {table.names[d]!r} holds categories, but held numbers when the model was fitted.")
    return Encoded(X, table.names, levels)


def decode(X: NDArray[np.floating], frame: Any, levels: Levels) -> Any:
    """Numbers X as a native frame with the columns, levels and library of ``frame``."""
    columns = {}
    for d, name in enumerate(frame.columns):
        known = levels.get(d)
        columns[name] = X[:, d] if known is None else [None if np.isnan(code) else known[int(code)] for code in X[:, d]]
    native = nw.from_dict(columns, backend=frame.implementation)
    return native.to_native()


def _numbers(column: Any) -> NDArray[np.floating]:
    values: NDArray[np.floating] = column.cast(nw.Float64).to_numpy().astype(np.float64)
    return values


def _levels(column: Any, name: str) -> list[Any]:
    if column.dtype in (nw.Categorical, nw.Enum):
        return list(column.cat.get_categories().to_list())
    present = {value for value in column.to_list() if not _is_missing(value)}
    if not all(isinstance(value, (str, bool, int, float)) for value in present):
        raise ValueError(f"column {name!r} holds {column.dtype}, neither numbers nor categories; drop or convert it.")
    try:
        return sorted(present)
    except TypeError:
        raise ValueError(f"column {name!r} mixes text and numbers; convert it to one of them.") from None


def _is_missing(value: Any) -> bool:
    return value is None or value != value or str(value) == "<NA>"
