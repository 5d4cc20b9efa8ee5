"""Tables with named columns of any type, as numbers: categories become codes, and their levels are remembered."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray

from .arrays import NUMBERS, is_date, is_missing, number, numbers

Levels = Mapping[int, Sequence[Any]]


class Encoded(NamedTuple):
    """A table of numbers: X (N, D), missing values as NaN, the names of its columns, and the levels of coded columns.

    Only such a table may pass codes of levels to an estimator; values of any other table are looked up among the levels.
    """

    X: NDArray[np.floating]
    names: Sequence[str] | None
    levels: Levels

    def checked(self) -> "Encoded":
        """This table with X as an array of numbers.

        Raises
        ------
        ValueError, TypeError : X is not a table, or holds codes without a level.
        """
        X = numbers(self.X)
        if X.ndim != 2:
            raise ValueError(
                f"Expected 2D array, got {X.ndim}D array instead: the X of an encoded table has rows and columns."
            )
        if self.names is not None and len(self.names) != X.shape[1]:
            raise ValueError(f"an encoded table has {len(self.names)} names, but X has {X.shape[1]} columns.")
        for d, levels in self.levels.items():
            if not 0 <= d < X.shape[1]:
                raise ValueError(f"an encoded table has levels for column {d}, but X has {X.shape[1]} columns.")
            wrong = ~(np.isnan(X[:, d]) | ((X[:, d] >= 0) & (X[:, d] < len(levels)) & (X[:, d] % 1 == 0)))
            if wrong.any():
                row = int(wrong.argmax())
                raise ValueError(
                    f"column {column_name(self.names, d)!r} holds {X[row, d]:g} in row {row}, "
                    f"which is no code of its {len(levels)} levels."
                )
        return self._replace(X=X)


def column_name(names: Sequence[Any] | None, d: int) -> Any:
    """The name of a column, or its number where it has none."""
    return d if names is None else names[d]


def as_frame(X: Any) -> Any:
    """X as a frame of narwhals if it is one (pandas, polars, pyarrow), else None."""
    if isinstance(X, np.ndarray):
        return None
    try:
        frame = nw.from_native(X, pass_through=True)
    except DuplicateError as error:
        raise ValueError("X has two columns of the same name; give each column a name of its own.") from error
    if isinstance(frame, nw.LazyFrame):
        raise TypeError("X is a lazy frame; pass X.collect().")
    return frame if isinstance(frame, nw.DataFrame) else None


def mixed_frame(X: Any, levels: Levels | None = None) -> Any:
    """X as a narwhals frame, or None if it is none, or a pandas frame of NumPy's numbers without ``levels``."""
    frame = as_frame(X)
    if frame is None or levels or not frame.implementation.is_pandas():
        return frame
    return None if all(_is_numpy(column.to_native().dtype) for column in frame.iter_columns()) else frame


def as_column(x: Any) -> Any:
    """X as a series of narwhals if it is one (pandas, polars, pyarrow), else None."""
    if isinstance(x, (np.ndarray, list, tuple)):
        return None
    column = nw.from_native(x, allow_series=True, pass_through=True)
    return column if isinstance(column, nw.Series) else None


def encode(*frames: Any, levels: Levels | None = None) -> Encoded:
    """Frames with the same columns, one below the other, as numbers.

    Parameters
    ----------
    frames : of narwhals; the columns of the first give the order
    levels : of the table that a model was fitted to, for the same codes; by default categories in their order, other values
        sorted

    Raises
    ------
    ValueError : a column is missing in one of the frames; or holds neither numbers nor categories, a level that is not
        known, or text where there were numbers.
    """
    names = list(frames[0].columns)
    tables = [_in_order(frame, names, i) for i, frame in enumerate(frames)]
    single = all(_is_single(column) for columns in tables for column in columns)
    X = np.empty((sum(map(len, frames)), len(names)), np.float32 if single and not levels else np.float64)
    found: dict[int, Sequence[Any]] = {}
    for d, name in enumerate(names):
        columns = [table[d] for table in tables]
        known = None if levels is None else levels.get(d)
        if known is None and all(_is_plain(column.dtype) or column.dtype == nw.Boolean for column in columns):
            X[:, d] = np.concatenate([column.cast(nw.Float64).to_numpy() for column in columns])
            continue
        values = [value for column in columns for value in column.to_list()]
        declared = any(column.dtype in (nw.Categorical, nw.Enum) for column in columns)
        if declared:  # declared categories may be dates
            values = [None if type(value).__name__ == "NaTType" else value for value in values]
        else:
            _refuse_dates(columns, values, name)
        if known is None and not declared and _all_numbers(values):
            X[:, d] = [number(value) for value in values]
        elif known is None and levels is not None:
            raise ValueError(f"column {name!r} holds categories, but held numbers when the model was fitted.")
        else:
            found[d] = _levels(columns, values, name) if known is None else known
            X[:, d] = codes(values, found[d], name)
    return Encoded(X, names, found)


def look_up(X: NDArray[Any], levels: Levels, names: Sequence[Any] | None = None) -> Encoded:
    """A table (N, D) of numbers, text or objects with the codes of the given levels in place of their values.

    Raises
    ------
    ValueError, TypeError : a value is not among the levels of its column, or no number where there are no levels.
    """
    out = np.empty(X.shape)
    for d in range(X.shape[1]):
        if d in levels:
            out[:, d] = codes(X[:, d].tolist(), levels[d], column_name(names, d))
        elif X.dtype.kind in NUMBERS:
            out[:, d] = X[:, d]
        else:
            out[:, d] = numbers(X[:, d], f"column {column_name(names, d)!r}")
    return Encoded(out, names, levels)


def values_of(X: NDArray[np.floating], levels: Levels) -> NDArray[Any]:
    """A table with its codes replaced by the levels they stand for: of floats, or of objects if some levels are text.

    A code of no level, such as the second value of a yes/no column that had but one, becomes a missing value.
    """
    if not levels:
        return X
    words = any(isinstance(level, str) for known in levels.values() for level in known)
    out = X.astype(object) if words else X.copy()
    for d, known in levels.items():
        out[:, d] = _levels_of(X[:, d], known, np.nan)
    return out


def _levels_of(codes: NDArray[np.floating], known: Sequence[Any], missing: Any) -> list[Any]:
    """The level that each code stands for, ``missing`` where it stands for none."""
    return [known[int(code)] if 0.0 <= code < len(known) else missing for code in codes.tolist()]


def codes(values: Sequence[Any], levels: Sequence[Any], name: Any) -> NDArray[np.floating]:
    """The position of each value among the levels; NaN where it is missing.  Numbers match their text, such as 1 and "1".

    Of a column without levels all values count as missing.
    """
    if not len(levels):
        return np.full(len(values), np.nan)
    known: dict[Any, float] = {level: float(code) for code, level in enumerate(levels)}
    out = np.empty(len(values))
    for i, value in enumerate(values):
        code = np.nan if is_missing(value) else known.get(_level(value))
        if code is None:
            code = known.get(str(int(value)) if isinstance(value, float) and value.is_integer() else str(value))
        if code is None:
            shown = ", ".join(map(repr, list(levels)[:8])) + (", ..." if len(levels) > 8 else "")
            raise ValueError(f"column {name!r} holds {value!r}, which is not among its levels: {shown}.")
        out[i] = code
    return out


def recode(table: Encoded, levels: Levels) -> Encoded:
    """A table with the codes of the given levels in place of its own."""
    X = np.array(table.X, dtype=np.float64)
    check_categories(table.names, table.levels, levels)
    for d, known in levels.items():
        own = table.levels.get(d)
        if own is not None and list(own) == list(known):
            continue
        values = X[:, d].tolist()
        if own is not None:
            values = [None if value != value else own[int(value)] for value in values]
        X[:, d] = codes(values, known, column_name(table.names, d))
    return Encoded(X, table.names, levels)


def check_categories(names: Sequence[Any] | None, found: Levels, levels: Levels) -> None:
    """Refuse categories in a column that has none of the given levels."""
    for d in found:
        if d not in levels:
            raise ValueError(
                f"column {column_name(names, d)!r} holds categories, but held numbers when the model was fitted."
            )


def decode(X: NDArray[np.floating], frame: Any, levels: Levels) -> Any:
    """The native frame with its missing values replaced by those of X: levels for codes; what is there stays as it is."""
    columns = []
    for d, column in enumerate(frame.iter_columns()):
        values = column.to_list()
        missing = [is_missing(value) for value in values]
        if any(missing) and (d not in levels or len(levels[d])):
            fill = X[:, d].tolist() if d not in levels else _levels_of(X[:, d], levels[d], None)
            kept = d in levels or column.dtype == nw.Boolean  # a mean of whole numbers is none
            if column.dtype == nw.Boolean:
                fill = [bool(value) for value in fill]
            full = [new if gone else old for old, new, gone in zip(values, fill, missing)]
            columns.append(_series(column, full if kept else [float(value) for value in full], kept))
    return frame.with_columns(*columns).to_native() if columns else frame.clone().to_native()


def _series(column: Any, values: list[Any], kept: bool) -> Any:
    """A column like another, with other values; of its type, if that is ``kept``."""
    native = column.to_native()
    if column.implementation.is_pandas_like():
        made = type(native)(values, index=native.index, name=native.name, dtype=native.dtype if kept else None)
        return nw.from_native(made, series_only=True)
    return nw.new_series(column.name, values, column.dtype if kept else None, backend=column.implementation)


def _in_order(frame: Any, names: list[Any], which: int) -> list[Any]:
    """The columns of a frame in the order of the names, which must be its own."""
    own = list(frame.columns)
    if own == names:
        return list(frame.iter_columns())
    missing = [n for n in names if n not in own]
    more = [n for n in own if n not in names]
    if missing or more:
        less = f" lacks {', '.join(map(repr, missing))}" if missing else ""
        extra = f" has {', '.join(map(repr, more))} more" if more else ""
        raise ValueError(
            f"all frames of a list must have the same columns; that at position {which}{less}{' and' if less and extra else ''}"
            f"{extra}."
        )
    columns = list(frame.iter_columns())
    return [columns[own.index(name)] for name in names]


def _is_numpy(dtype: Any) -> bool:
    """Whether a column of pandas holds NumPy's numbers, of any byte order."""
    return isinstance(dtype, np.dtype) and dtype.kind in "iuf"


def _is_single(column: Any) -> bool:
    """Whether a column holds floats of single precision, of any byte order."""
    native: Any = getattr(column.to_native(), "dtype", None)
    return bool(column.dtype == nw.Float32 or (_is_numpy(native) and native.kind == "f" and native.itemsize == 4))


def _is_plain(dtype: Any) -> bool:
    """Whether a column holds numbers of a type that NumPy knows, with missing values as NaN."""
    return bool(dtype.is_numeric() and dtype != nw.Decimal)


def _refuse_dates(columns: Sequence[Any], values: Sequence[Any], name: str) -> None:
    """Refuse columns of dates and times, even if all values are missing."""
    temporal = next((column.dtype for column in columns if column.dtype.is_temporal()), None)
    date = next((value for value in values if is_date(value)), None)
    if temporal is not None or (date is not None and not any(isinstance(value, str) for value in values)):
        raise ValueError(
            f"column {name!r} holds {'dates' if temporal is None else temporal}, neither numbers nor categories; drop it, or "
            "subtract a date and divide by a unit, such as a day."
        )


def _all_numbers(values: Sequence[Any]) -> bool:
    """Whether an object column holds numbers, and at least one."""
    present = [value for value in values if not is_missing(value)]
    return bool(present) and all(isinstance(value, (Real, Decimal, np.bool_)) for value in present)


def _levels(columns: Sequence[Any], values: Sequence[Any], name: str) -> list[Any]:
    declared = [_declared(column) for column in columns]
    first = declared[0]
    if first is not None and all(other == first for other in declared):
        return first
    kinds = {type(value) for value in values if not is_missing(value)}
    if not all(issubclass(kind, (str, bool, int, float)) for kind in kinds):
        raise ValueError(
            f"column {name!r} holds {columns[0].dtype}, neither numbers nor categories; drop or convert it."
        )
    try:
        return sorted({value for value in values if not is_missing(value)})
    except TypeError:
        raise ValueError(f"column {name!r} mixes text and numbers; convert it to one of them.") from None


def _declared(column: Any) -> list[Any] | None:
    """The levels that the type of a column declares, if any."""
    if column.dtype == nw.Enum:
        return [_level(value) for value in column.dtype.categories]
    native = column.to_native()
    if column.dtype == nw.Categorical and hasattr(native, "cat") and hasattr(native.cat, "categories"):  # pandas
        return [_level(value) for value in native.cat.categories]
    return None


def _level(value: Any) -> Any:
    """A level as a text, a number or a truth value, which a model file can hold."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, (str, bool, int, float)) else str(value)
