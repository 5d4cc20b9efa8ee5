"""What users pass beside X, and the names of its columns: checked, with errors that say what is wrong."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import as_array, numbers

Array = NDArray[np.floating]

LEAST_WEIGHT, MOST_WEIGHT = 1e-300, 1e105  # of all rows: beyond, counts or their squares leave the range of float64


def whole_numbers(name: str, given: Any, least: int, total: int) -> NDArray[np.int64]:
    """The number of rows of each sequence or document as an array of whole numbers with sum N."""
    sizes = as_array(given, name)
    if sizes.dtype == object and all(isinstance(size, (int, np.integer)) for size in sizes.ravel().tolist()):
        sizes = np.array(sizes.tolist())
    whole = sizes.ndim == 1 and sizes.dtype.kind in "iu" and ((sizes >= least) & (sizes <= total)).all()
    if not whole or sizes.astype(np.int64).sum() != total:
        of = "sequence" if least else "document"
        raise ValueError(
            f"{name} must be whole numbers of at least {least}, the rows of each {of}, that add up to {total}."
        )
    return sizes.astype(np.int64)


def check_columns(estimator: Any, names: Sequence[Any] | None, D: int, reset: bool) -> None:
    """Remember or compare the names and number of columns of any frame, also of one that scikit-learn cannot read."""
    known = None if names is None else [name for name in names if isinstance(name, str)]
    if known and names is not None and len(known) < len(names):
        raise TypeError(
            "column names must be all text or all not; convert them with X.columns = X.columns.astype(str)."
        )
    if reset:
        estimator.n_features_in_ = D
        estimator.__dict__.pop("feature_names_in_", None)
        if known:
            estimator.feature_names_in_ = np.asarray(known, dtype=object)
        return
    fitted = list(getattr(estimator, "feature_names_in_", []))
    if known and not fitted:
        warnings.warn(
            f"X has feature names, but {type(estimator).__name__} was fitted without feature names", stacklevel=2
        )
    elif known and known != fitted:
        missing = [name for name in fitted if name not in known]
        unseen = [name for name in known if name not in fitted]
        details = "they are in another order"
        if missing or unseen:
            details = f"missing are {missing[:5]}, not seen at fit are {unseen[:5]}"
        raise ValueError(f"The feature names should match those that were passed during fit: {details}.")
    if estimator.n_features_in_ != D:
        expected = f"{type(estimator).__name__} is expecting {estimator.n_features_in_} features as input"
        raise ValueError(f"X has {D} features, but {expected}.")


def checked_weights(sample_weight: Any, n: int) -> Array:
    """Weights of n rows as numbers of at least 0 that add up to a positive one."""
    weights = numbers(sample_weight, "sample_weight").astype(np.float64, copy=False)
    if weights.ndim == 0:
        weights = np.full(n, float(weights))
    if weights.ndim != 1:
        raise ValueError(f"Sample weights must be 1D array or scalar, got {weights.ndim}D array.")
    if len(weights) != n:
        raise ValueError(f"sample_weight.shape == {weights.shape}, expected {(n,)}!")
    _refuse_weights(weights)
    with np.errstate(over="ignore"):
        total = weights.sum()
    if total == 0.0:
        raise ValueError(
            "Sample weights must contain at least one non-zero number: sample_weight is zero for every row."
        )
    if not LEAST_WEIGHT <= total <= MOST_WEIGHT:
        raise ValueError(
            f"sample_weight must have a finite sum from {LEAST_WEIGHT:g} to {MOST_WEIGHT:g}; got {total:g}. Multiply the "
            "weights by a constant, so that they add up to the number of rows they stand for."
        )
    return weights


def _refuse_weights(weights: Array) -> None:
    """Refuse weights that are negative, infinite, NaN or masked, naming the first."""
    wrong = ~((weights >= 0.0) & (weights < np.inf))
    if wrong.any():
        row = int(wrong.argmax())
        value = weights[row]
        what = "Input sample_weight contains infinity" if np.isinf(value) else "Negative values in data: sample_weight"
        if np.isnan(value):
            what = "Input sample_weight contains NaN or a masked value"
        raise ValueError(f"{what}: {value:g} for row {row}. Weights are numbers of at least 0; 0 leaves a row out.")
