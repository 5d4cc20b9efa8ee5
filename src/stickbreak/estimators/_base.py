"""Shared by the estimators: turning what users pass into a source of batches, with errors that say where."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_feature_names, _check_n_features, _check_sample_weight, validate_data

from ..data import ArraySource, Chunk, SparseSource
from ..data.frames import Encoded, encode, mixed_frame, recode
from ..inference import Threads
from ..likelihoods import Likelihood

Array = NDArray[np.floating]

LEAST_WEIGHT, MOST_WEIGHT = 1e-300, 1e105  # of all rows: beyond, counts or their squares leave the range of float64


def as_source(
    estimator: BaseEstimator, X: Any, sample_weight: Any = None, reset: bool = False, y: Any = None
) -> ArraySource:
    """Check the shape and type of X and its weights, remember or compare the columns, and wrap them as a source.

    Arrays and frames become float64 (float32 stays), sparse matrices CSR; memory maps of any real type stay on disk.
    Frames with columns that are not numbers are encoded, with the levels in ``estimator.levels_``.

    Raises
    ------
    ValueError, TypeError
        As scikit-learn's `validate_data`.
    """
    X, levels = _encoded(estimator, X, reset)
    if isinstance(X, np.memmap) and X.ndim == 2 and X.dtype.kind in "fiub":
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        array = X
    elif levels is None:
        array = validate_data(
            estimator,
            _unmasked(X),
            reset=reset,
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
            accept_sparse="csr" if estimator.__sklearn_tags__().input_tags.sparse else False,
        )
    else:
        array = X
    if reset:
        estimator.levels_ = {} if levels is None else dict(levels)
    array = _with_targets(array, y, 0 if reset else estimator.n_targets_)
    weights = _weights(sample_weight, array)
    if sparse.issparse(array):
        return SparseSource(_canonical(array), weights)
    return ArraySource(array, weights)


class Columns(NamedTuple):
    """What all rows say of each column: whether values are missing, and the largest value; (D,) each."""

    missing: NDArray[np.bool_]
    largest: Array


def survey(estimator: BaseEstimator, likelihood: Likelihood, source: ArraySource, threads: Threads) -> Columns:
    """Look at all values once; raise a ValueError that names the first one that the likelihood cannot use, if any."""
    may_miss = likelihood.may_miss(source.n_columns)

    def look(chunk: Chunk) -> Columns | tuple[float, int, int]:
        X, _ = source.read(chunk)
        source.release()
        values = X.data if sparse.issparse(X) else X
        fine = likelihood.valid(values) & ~(np.isnan(values) & sparse.issparse(X))
        missing = np.zeros(source.n_columns, np.bool_)
        if not sparse.issparse(X):
            absent = np.isnan(X)
            missing = absent.any(axis=0)
            fine &= ~absent | may_miss
        if not fine.all():
            return _first_trouble(X, fine, chunk.start)
        largest = np.zeros(len(missing)) if sparse.issparse(X) else np.fmax.reduce(X, axis=0)
        return Columns(missing, largest)

    missing, largest = np.zeros(source.n_columns, np.bool_), np.full(source.n_columns, np.nan)
    for found in threads.map(look, source.batches(1)[0]):
        if not isinstance(found, Columns):
            value, row, column = found
            names = getattr(estimator, "feature_names_in_", [])
            name = f" ({names[column]!r})" if column < len(names) else ""
            likelihood.refuse(value, column, f"row {row}, column {column}{name}")
        missing, largest = missing | found.missing, np.fmax(largest, found.largest)
    return Columns(missing, largest)


def _encoded(estimator: Any, X: Any, reset: bool) -> tuple[Any, Any]:
    """X with its categories as codes, and their levels, or X itself and None where there are no categories."""
    known = None if reset else getattr(estimator, "levels_", None)
    frame = None if isinstance(X, Encoded) else mixed_frame(X, known)
    if frame is not None:
        _check_feature_names(estimator, X, reset=reset)
        _check_n_features(estimator, X, reset=reset)
        table = encode(frame, known)
    elif isinstance(X, Encoded):
        table = X if known is None else recode(X, known)
        _check_n_features(estimator, X.X, reset=reset)
        if reset:
            estimator.feature_names_in_ = np.asarray(X.names, dtype=object)
    else:
        return X, None
    if len(table.X) == 0:
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
    return table.X, table.levels


def _unmasked(X: Any) -> Any:
    """Masked values of numbers as NaN."""
    if not isinstance(X, np.ma.MaskedArray) or X.dtype.kind not in "fiub":
        return X
    filled: Any = X.astype(np.float32 if X.dtype == np.float32 else np.float64)
    return filled.filled(np.nan)


def _with_targets(X: Any, y: Any, n_targets: int) -> Any:
    """X with targets y as its last columns; as missing values where the model expects targets and there are none."""
    if y is None and not n_targets:
        return X
    if y is None:
        y = np.full((len(X), n_targets), np.nan)
    y = np.asarray(_unmasked(y), dtype=np.float32 if X.dtype == np.float32 else np.float64)
    if y.ndim not in (1, 2) or len(y) != len(X):
        raise ValueError(
            f"y must hold one target, or one row of targets, for each of {len(X)} rows; got shape {y.shape}."
        )
    y = y.reshape(len(X), -1)
    if n_targets and y.shape[1] != n_targets:
        raise ValueError(f"y has {y.shape[1]} targets, but the model was fitted to {n_targets}.")
    return np.hstack([X, y])


def _weights(sample_weight: Any, array: Any) -> Array | None:
    if sample_weight is None:
        return None
    if isinstance(sample_weight, np.ma.MaskedArray):
        sample_weight = sample_weight.filled(0)
    weights = _check_sample_weight(sample_weight, array, dtype=np.float64, ensure_non_negative=True)
    with np.errstate(over="ignore"):
        total = weights.sum()
    if not LEAST_WEIGHT <= total <= MOST_WEIGHT:
        raise ValueError(
            f"sample_weight must have a finite sum from {LEAST_WEIGHT:g} to {MOST_WEIGHT:g}; got {total:g}. Multiply the "
            "weights by a constant, so that they add up to the number of rows they stand for."
        )
    return np.asarray(weights)


def _canonical(X: Any) -> sparse.csr_array:
    """CSR without duplicates and without stored zeros."""
    if isinstance(X.data, np.memmap):  # a corpus of ours, which is in order; conversions would read it into memory
        return X
    if not X.has_canonical_format or (X.data == 0.0).any():
        X = sparse.csr_array(X, copy=True)
        X.sum_duplicates()
        X.eliminate_zeros()
    kind = np.int32 if max(X.nnz, X.shape[1]) < np.iinfo(np.int32).max else np.int64
    return sparse.csr_array((X.data, X.indices.astype(kind, copy=False), X.indptr.astype(kind, copy=False)), X.shape)


def _first_trouble(X: Any, fine: NDArray[np.bool_], start: int) -> tuple[float, int, int]:
    """The first value that is not fine, with its row and column."""
    if not sparse.issparse(X):
        row, column = np.argwhere(~fine)[0]
        return float(X[row, column]), start + int(row), int(column)
    place = int(np.flatnonzero(~fine)[0])
    row = np.searchsorted(X.indptr, place, side="right") - 1
    return float(X.data[place]), start + int(row), int(X.indices[place])
