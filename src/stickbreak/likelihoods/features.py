"""The features of rows under any likelihood: in which precision, dense or sparse, and how many numbers they are."""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ._base import Likelihood
from ._rows import Rows

Array = NDArray[np.floating]

__all__ = ["Rows", "entries", "features", "largest_terms", "prefers_sparse"]

LOST = 1e-3  # nats by which rounding may change the score of a row
SPARSE_SHARE = 6  # a sparse product beats the dense one where fewer than one in six statistics of a row are not zero


def prefers_sparse(likelihood: Likelihood) -> bool:
    """Whether the features of dense rows are better made as CSR."""
    return likelihood.row_entries * SPARSE_SHARE < likelihood.n_statistics


def entries(likelihood: Likelihood, row_size: int) -> int:
    """Numbers in the features of a row of ``row_size`` stored numbers."""
    if likelihood.takes_sparse:
        return min(row_size, likelihood.n_statistics)
    return likelihood.row_entries if prefers_sparse(likelihood) else likelihood.n_statistics


def features(likelihood: Likelihood, X: Rows, dtype: Any = np.float64, out: Array | None = None) -> Any:
    """All features of rows X at once, in the given precision: in ``out`` or a new array, or as CSR if they are sparse."""
    X = X.astype(dtype, copy=False)
    if sparse.issparse(X) or prefers_sparse(likelihood):
        return likelihood.features(X, None)
    return likelihood.features(X, np.empty((len(X), likelihood.n_statistics), dtype) if out is None else out)


@cache
def largest_terms(dtype: Any) -> float:
    """The largest terms of a score, in nats, whose rounding errors in this precision stay below `LOST`."""
    return LOST / (0.5 * float(np.finfo(dtype).eps))
