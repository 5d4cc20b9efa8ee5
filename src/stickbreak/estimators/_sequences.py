"""What users pass as sequences, as sources."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cluster.sources import SpreadSequences
from ..data import ArraySource, SequenceSource, SparseSource
from ..data.arrays import NUMBERS, as_array
from ..data.distinct import collapse
from ..data.frames import Encoded, as_column, as_frame, encode
from ..data.opening import as_data, is_path
from ..data.sequence_files import read_sequences
from ..data.table import Table
from ._base import as_source
from ._given import check_columns, whole_numbers
from ._spread import goes_to_workers, spread_sequences

Array = NDArray[np.floating]

REPEATED = 4  # rows are looked up by their distinct patterns where these are fewer than one in so many


def stacked(estimator: Any, X: Any, lengths: Any, reset: bool) -> tuple[Any, Any]:
    """The rows of all sequences one after another, and their lengths, from one table or a list of sequences.

    A list holds sequences if its items are arrays, frames, columns or tables as nested lists; one-dimensional items are
    sequences of one column.  A nested list of single numbers is a table.
    """
    if not isinstance(X, (list, tuple)) or isinstance(X, Encoded) or not any(map(_is_sequence, X)):
        return X, lengths
    if lengths is not None:
        raise ValueError(
            "lengths go with one array of all rows; pass either a list of sequences or one array with lengths."
        )
    frames = _as_frames(X)
    if frames is not None:
        sizes = [len(frame) for frame in frames]
        table = encode(*frames)
        check_columns(estimator, frames[0].columns, len(frames[0].columns), reset)
        named = all(isinstance(name, str) for name in table.names or ())
        rows: Any = table if named else table._replace(names=None)
    else:
        arrays = [_table(x, i) for i, x in enumerate(X)]
        sizes = [len(x) for x in arrays]
        widths = [x.shape[1] for x in arrays]
        if len(set(widths)) > 1:
            other = next(i for i, width in enumerate(widths) if width != widths[0])
            raise ValueError(
                f"all sequences must have the same columns; that at position 0 has {widths[0]}, "
                f"that at position {other} has {widths[other]}."
            )
        kinds = {x.dtype.kind for x in arrays}
        rows = np.concatenate(arrays if kinds <= set(NUMBERS) else [x.astype(object) for x in arrays])
    if 0 in sizes:
        raise ValueError(f"the sequence at position {sizes.index(0)} of the list has no rows; each needs at least 1.")
    return rows, sizes


def _is_sequence(x: Any) -> bool:
    """Whether an item of a list is a sequence, not a row of numbers."""
    if isinstance(x, (list, tuple)):
        return len(x) > 0 and any(isinstance(row, (list, tuple, np.ndarray)) and np.ndim(row) > 0 for row in x[:1])
    return bool(getattr(x, "ndim", 0)) or as_frame(x) is not None or as_column(x) is not None


def _as_frames(X: Any) -> list[Any] | None:
    """Frames or columns of a list as frames of narwhals with the same names of columns, or None if the list holds arrays."""
    frames = [as_frame(x) for x in X]
    columns = [as_column(x) for x in X]
    if all(column is not None for column in columns):
        names = {column.name for column in columns}
        name = columns[0].name if len(names) == 1 and isinstance(columns[0].name, str) and columns[0].name else None
        if name is None and all(column.dtype.is_numeric() for column in columns):
            return None
        return [column.alias(name or "value").to_frame() for column in columns]
    if all(frame is not None for frame in frames):
        return frames
    mixed = [type(x).__name__ for x, frame, c in zip(X, frames, columns) if frame is not None or c is not None]
    if mixed:
        other = next(
            type(x).__name__ for x, f, c in zip(X, frames, columns) if f is None or type(x).__name__ != mixed[0]
        )
        raise TypeError(f"a list of sequences must hold items of one kind; got {mixed[0]} and {other}.")
    return None


def _table(x: Any, position: int) -> NDArray[Any]:
    """A sequence of a list as a table of rows; one-dimensional ones have one column."""
    try:
        array = as_array(x)
    except (ValueError, TypeError) as error:
        raise type(error)(f"the sequence at position {position} of the list: {error}") from None
    if array.ndim not in (1, 2):
        raise ValueError(f"the sequence at position {position} of the list has {array.ndim} axes; it must have 1 or 2.")
    return array if array.ndim == 2 else array[:, None]


def as_sequences(estimator: Any, X: Any, lengths: Any, lags: int, reset: bool) -> SequenceSource:
    """Rows and the lengths of their sequences as a source, remembering or comparing the columns."""
    if goes_to_workers(estimator, X, reset):
        return spread_sequences(estimator, X, lengths, lags, reset)
    X, lengths = _of_files(estimator, X, lengths, reset)
    X, lengths = stacked(estimator, X, lengths, reset)
    source = as_source(estimator, X, reset=reset)
    if isinstance(source, SparseSource):
        raise TypeError("sequences must be dense; pass X.toarray().")
    T = source.n_rows
    sizes = whole_numbers("lengths", [T] if lengths is None else lengths, 1, T)
    return SequenceSource(source.X, sizes, lags)


def _of_files(estimator: Any, X: Any, lengths: Any, reset: bool) -> tuple[Any, Any]:
    """The rows of files and the lengths of their sequences, where X is a path and ``lengths`` at most names a column."""
    if not is_path(X):
        if isinstance(lengths, str):
            raise ValueError(
                f"lengths={lengths!r} names a column of files, and X is no path; pass the number of rows of each sequence."
            )
        return X, lengths
    known = {} if reset else estimator.levels_
    rows = read_sequences(X, lengths if isinstance(lengths, str) else None)
    data = as_data(Table(rows.X, rows.names, rows.levels), known)
    return data, rows.lengths if lengths is None or isinstance(lengths, str) else lengths


def collapsed(source: SequenceSource) -> SequenceSource:
    """The same sequences with codes for their distinct rows, where there are few."""
    distinct = None if source.lags or isinstance(source, SpreadSequences) else collapse(ArraySource(source.X))
    if distinct is None or distinct.source.n_rows * REPEATED > source.n_rows:
        return source
    return source.like(distinct.source.X, np.diff(source.edges), codes=distinct.inverse.astype(np.int32))


def labels_of(y: Any, X: Any) -> Any:
    """Labels of all rows, one after another, where they come as a list of arrays, one for each sequence of X.

    Raises
    ------
    ValueError : X is a list of sequences, too, and one of them has other rows than its labels.
    """
    if not isinstance(y, (list, tuple)) or not any(np.ndim(one) > 0 and not isinstance(one, str) for one in y):
        return y
    labels = [as_array(one, f"y[{i}]").tolist() for i, one in enumerate(y)]
    if isinstance(X, (list, tuple)):
        sizes = [len(rows) for rows in X]
        if sizes != [len(one) for one in labels]:
            i = next((i for i, (n, one) in enumerate(zip(sizes, labels)) if n != len(one)), min(len(X), len(labels)))
            raise ValueError(
                f"y must hold an array of labels for each sequence of X, with one for each row; see sequence {i}."
            )
    return np.array([label for one in labels for label in one], dtype=object)


def refuse_lengths(y: Any, n: int) -> None:
    """Refuse whole numbers, fewer than there are rows, that sum to their number."""
    numbers = isinstance(y, (list, tuple)) and all(isinstance(one, (int, np.integer)) for one in y)
    given = np.asarray(y) if numbers else y
    whole = isinstance(given, np.ndarray) and given.ndim == 1 and given.dtype.kind in "iu"
    if whole and len(given) < n and given.sum() == n:
        raise ValueError(
            f"y holds {len(given)} numbers that sum to the number of rows: pass the lengths of sequences as lengths=."
        )


def check_observed(source: SequenceSource) -> None:
    """Refuse sequences without a single observation."""
    if not source.total_weight > 0.0:
        raise ValueError("no row has an observation: all values are missing.")
