"""Shared by the estimators: turning what users pass into a source of batches, with errors that say where."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from ..data import ArraySource, Chunk, SparseSource
from ..data.arrays import NUMBERS, as_array, numbers, working_precision
from ..data.check import Extremes, Watch
from ..data.frames import Encoded, Levels, as_frame, check_categories, encode, look_up, mixed_frame, recode
from ..data.opening import as_data, is_path, open_table
from ..data.sparse_rows import sparse_rows
from ..data.stored import Stored
from ..data.stored_source import StoredSource
from ..inference import Executor, memory
from ..likelihoods import Likelihood
from ._estimator import Estimator
from ._given import check_columns, checked_weights
from ._spread import goes_to_workers, spread_rows

Array = NDArray[np.floating]

COLUMN_BYTES = 48  # for each column of X: whether values are missing and its limits, per chunk and overall


def as_source(
    estimator: BaseEstimator, X: Any, sample_weight: Any = None, reset: bool = False, y: Any = None
) -> ArraySource:
    """Check the shape and type of X and its weights, remember or compare the columns, and wrap them as a source.

    Arrays and frames become float64 (float32 stays), sparse matrices verified CSR; memory maps of any real type stay on disk.
    Frames with columns that are not numbers are encoded, with the levels in ``estimator.levels_``.  Paths are opened
    (`stickbreak.data.opening.open_table`), and what is large stays in its files.

    Raises
    ------
    stickbreak.data.DataError
        If a path does not name files that can be read together.
    ValueError, TypeError
        As scikit-learn's `validate_data`.
    MemoryError
        If there are more columns than memory has room for.
    """
    if goes_to_workers(estimator, X, reset):
        return spread_rows(estimator, X, sample_weight, y, reset)
    known = {} if reset else estimator.levels_
    if is_path(X):
        table = open_table(X)
        check_columns(estimator, table.names, table.X.shape[1], reset)
        X = as_data(table, known)
    if isinstance(X, Stored):
        return _stored(estimator, X, sample_weight, reset, y)
    encoded = _encoded(estimator, X, known, reset)
    if encoded is not None:
        array = encoded.X
        levels = dict(encoded.levels)
        if 0 in array.shape:
            what = "sample" if len(array) == 0 else "feature"
            raise ValueError(f"Found array with 0 {what}(s) while a minimum of 1 is required.")
    else:
        array = _plain(estimator, X, known, reset)
        levels = known
    if reset:
        estimator.levels_ = levels
        D = array.shape[1]
        memory.check_room(COLUMN_BYTES * D, f"X has {D:,} columns, which", "leave out those that are empty")
    array = _with_targets(array, y, 0 if reset else estimator.n_targets_)
    weights = None if sample_weight is None else checked_weights(sample_weight, array.shape[0])
    if sparse.issparse(array):
        return SparseSource(array, weights)
    return ArraySource(array, weights)


def _stored(estimator: Any, X: Stored, sample_weight: Any, reset: bool, y: Any) -> ArraySource:
    """Rows in files as a source, remembering or comparing their columns."""
    if y is not None or not (reset or estimator.n_targets_ == 0):
        raise ValueError("targets of rows in files are columns of the files; leave out y, and fit to such files, too.")
    check_columns(estimator, X.names, X.shape[1], reset)
    if reset:
        estimator.levels_ = dict(X.levels)
    elif X.levels or estimator.levels_:
        check_categories(X.names, X.levels, estimator.levels_)
        X = X.with_levels(estimator.levels_)
    return StoredSource(X, None if sample_weight is None else checked_weights(sample_weight, len(X)))


class Columns(NamedTuple):
    """What all rows say of each column: whether values are missing, and the largest and the smallest value; (D,) each."""

    missing: NDArray[np.bool_]
    largest: Array
    smallest: Array


def usable(likelihood: Likelihood, X: Any, may_miss: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which values of rows X (n, D), or stored values of CSR rows (m,), a likelihood can use.

    may_miss : (D,) its columns in which values may be missing
    """
    if sparse.issparse(X):
        return np.asarray(likelihood.valid(X.data) & ~np.isnan(X.data))
    return np.asarray(likelihood.valid(X) & (~np.isnan(X) | may_miss))


def survey(
    estimator: Estimator,
    likelihood: Likelihood,
    source: ArraySource,
    executor: Executor,
    watch: Watch | None = None,
) -> Columns:
    """Look at all values once; raise a ValueError that names the first one that the likelihood cannot use, if any.

    watch : is shown all dense rows, for the data check
    """
    D = source.n_columns
    may_miss = likelihood.may_miss(D) if estimator._takes_latent else likelihood.integrates_out(D)
    missing = np.zeros(source.n_columns, np.bool_)
    largest, smallest = (np.full(source.n_columns, np.nan) for _ in range(2))
    look = partial(_look, likelihood, may_miss, watch)
    for found in executor.over(source, look, source.batches(1)[0]):
        if len(found) == 3:
            value, row, column = found
            names = getattr(estimator, "feature_names_in_", [])
            name = f" ({names[column]!r})" if column < len(names) else ""
            likelihood.refuse(value, column, f"row {row}, column {column}{name}")
        columns, extremes = found
        missing = missing | columns.missing
        largest = np.fmax(largest, columns.largest)
        smallest = np.fmin(smallest, columns.smallest)
        if watch is not None and extremes is not None:
            watch.add(extremes)
    return Columns(missing, largest, smallest)


def _look(
    likelihood: Likelihood, may_miss: NDArray[np.bool_], watch: Watch | None, source: ArraySource, chunk: Chunk
) -> tuple[Columns, Extremes | None] | tuple[float, int, int]:
    """What the rows of one chunk say of each column, and what the data check sees; or the first value that is wrong."""
    X, weights = source.read(chunk)
    source.release()
    fine = usable(likelihood, X, may_miss)
    if not fine.all():
        return first_trouble(X, fine, chunk.start)
    if sparse.issparse(X):
        none = np.zeros(source.n_columns)
        columns = Columns(none > 0.0, none, none)
    else:
        columns = Columns(np.isnan(X).any(axis=0), np.fmax.reduce(X, axis=0), np.fmin.reduce(X, axis=0))
    return columns, None if watch is None else watch.look(X, weights, chunk.start)


def _encoded(estimator: Any, X: Any, known: Levels, reset: bool) -> Encoded | None:
    """X with its categories as codes, where it is a frame or an encoded table that has, or should have, categories."""
    if isinstance(X, Encoded):
        table = X.checked()
        check_columns(estimator, None if not reset else table.names, table.X.shape[1], reset)
        if not reset:
            return recode(table, known)
        return table
    frame = mixed_frame(X, known)
    if frame is None:
        return None
    check_columns(estimator, frame.columns, len(frame.columns), reset)
    return encode(frame, levels=None if reset else known)


def _plain(estimator: Any, X: Any, known: Levels, reset: bool) -> Any:
    """X as an array of floats or CSR; its values are looked up among the levels of a model that has any."""
    if isinstance(X, np.memmap) and X.ndim == 2 and X.dtype.kind in NUMBERS and not known:
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        if 0 in X.shape:
            validate_data(estimator, np.asarray(X), reset=reset)  # refuses it in scikit-learn's words
        return X
    takes_sparse = bool(estimator.__sklearn_tags__().input_tags.sparse)
    if sparse.issparse(X):
        X = sparse_rows(X) if takes_sparse else X
    elif as_frame(X) is None:
        X = _looked_up(estimator, as_array(X), known) if known else numbers(X)
    return validate_data(
        estimator,
        X,
        reset=reset,
        dtype=[np.float64, np.float32],
        ensure_all_finite=False,
        accept_sparse="csr" if takes_sparse else False,
    )


def _looked_up(estimator: Any, X: NDArray[Any], known: Levels) -> Any:
    """An array with codes for the values in columns of categories; other shapes are left to be refused."""
    if X.ndim != 2 or X.shape[1] != estimator.n_features_in_:
        return np.zeros(X.shape)
    return look_up(X, known, getattr(estimator, "feature_names_in_", None)).X


def _with_targets(X: Any, y: Any, n_targets: int) -> Any:
    """X with targets y as its last columns; as missing values where the model expects targets and there are none."""
    if y is None and not n_targets:
        return X
    if y is None:
        y = np.full((len(X), n_targets), np.nan)
    y = numbers(y, "y").astype(working_precision(X.dtype), copy=False)
    if y.ndim not in (1, 2) or len(y) != len(X):
        raise ValueError(
            f"y must hold one target, or one row of targets, for each of {len(X)} rows; got shape {y.shape}."
        )
    y = y.reshape(len(X), -1)
    if n_targets and y.shape[1] != n_targets:
        raise ValueError(f"y has {y.shape[1]} targets, but the model was fitted to {n_targets}.")
    return np.hstack([X, y])


def first_trouble(X: Any, fine: NDArray[np.bool_], start: int) -> tuple[float, int, int]:
    """The first value that is not fine, with its row and column."""
    if not sparse.issparse(X):
        row, column = np.argwhere(~fine)[0]
        return float(X[row, column]), start + int(row), int(column)
    place = int(np.flatnonzero(~fine)[0])
    row = np.searchsorted(X.indptr, place, side="right") - 1
    return float(X.data[place]), start + int(row), int(X.indices[place])
