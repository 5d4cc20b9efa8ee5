"""Shared by the estimators: turning what users pass into a source of batches, with errors that say where."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_sample_weight, validate_data

from ..data import ArraySource
from ..inference import Threads

Array = NDArray[np.floating]

LARGEST = 1e150  # the square of a larger number overflows in sums


def as_source(estimator: BaseEstimator, X: Any, sample_weight: Any = None, reset: bool = False) -> ArraySource:
    """Check the shape and type of X and its weights, remember or compare the columns, and wrap them as a source.

    Arrays and frames become float64 (float32 stays); memory maps of any real type stay on disk.

    Raises
    ------
    ValueError, TypeError
        As scikit-learn's `validate_data`; for NaN or infinity, the message names the first row and column.
    """
    if isinstance(X, np.memmap) and X.ndim == 2 and X.dtype.kind in "fiub":
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        array = X
    else:
        array = validate_data(estimator, X, reset=reset, dtype=[np.float64, np.float32], ensure_all_finite=False)
    weights = None
    if sample_weight is not None:
        weights = _check_sample_weight(sample_weight, array, dtype=np.float64, ensure_non_negative=True)
        with np.errstate(over="ignore"):
            total = weights.sum()
        if not 0.0 < total < np.inf:
            raise ValueError("sample_weight must have a finite sum above zero.")
    return ArraySource(array, weights)


def check_finite(estimator: BaseEstimator, source: ArraySource, threads: Threads) -> None:
    """Raise a ValueError that names the first NaN or infinity, if there is one."""

    def check(chunk: Any) -> str | None:
        X, _ = source.read(chunk)
        fine = np.abs(X) <= min(LARGEST, float(np.finfo(X.dtype).max))
        source.release()
        if fine.all():
            return None
        row, column = np.argwhere(~fine)[0]
        names = getattr(estimator, "feature_names_in_", None)
        name = "" if names is None else f" ({names[column]!r})"
        what, cure = _trouble(float(X[row, column]))
        return f"Input X contains {what}: row {chunk.start + row}, column {column}{name}. {cure}"

    for message in threads.map(check, source.batches(1)[0]):
        if message:
            raise ValueError(message)


def _trouble(value: float) -> tuple[str, str]:
    if np.isfinite(value):
        return f"{value}, a value too large to be squared", "Divide the column by a constant first."
    kind = "NaN" if np.isnan(value) else "infinity"
    return kind, "Drop or fill such rows first; this likelihood cannot use missing values."
