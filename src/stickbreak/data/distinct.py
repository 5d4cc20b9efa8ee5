"""Rows that repeat, found by their hash codes and collapsed to one row with a weight."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .sources import ArraySource, SparseSource

Array = NDArray[np.floating]

WORTHWHILE = 0.7  # rows are collapsed if no more than this share of them are distinct
MOST = 1 << 25  # rows that codes are sorted of
PROBE = 5000  # rows looked at before all rows of a table of measurements are compared


def row_codes(X: Any) -> NDArray[np.uint64]:
    """A 64-bit code for each row of X (n, D), dense or CSR, that depends only on its values, (n,)."""
    if not sparse.issparse(X):
        words = _mix(X, np.arange(X.shape[1], dtype=np.uint64))
        return np.asarray(words.sum(axis=1, dtype=np.uint64))
    sums = np.concatenate([[np.uint64(0)], np.cumsum(_mix(X.data, X.indices.astype(np.uint64)), dtype=np.uint64)])
    return np.asarray(sums[X.indptr[1:]] - sums[X.indptr[:-1]])


def value_codes(values: Array) -> NDArray[np.uint64]:
    """A 64-bit code for each of values (n,); 0 for zeros, and one for all missing values."""
    return np.asarray(_mix(values, np.zeros(1, np.uint64)))


def distinct_rows(X: Any, weights: Array) -> tuple[Any, Array]:
    """The distinct rows of X with a positive weight, in an order that depends only on their values, and their weights.

    So what is drawn from them is the same whether a row is repeated or has a weight, and in whatever order rows come.
    """
    present = weights > 0.0
    X = X[present]
    weights = weights[present]
    _, first, inverse = np.unique(row_codes(X), return_index=True, return_inverse=True)
    return X[first], np.bincount(inverse, weights, minlength=len(first)).astype(np.float64)


class Collapsed(NamedTuple):
    """The distinct rows of a source.

    source : the distinct rows, with the sum of the weights of the rows like them
    inverse : (N,) which distinct row each row is
    shares : (N,) the share of each row in the weight of its distinct row
    """

    source: ArraySource
    inverse: NDArray[np.intp]
    shares: Array

    def average(self, values: Any) -> Any:
        """Weighted averages, over the rows like each distinct row, of values (N, K), dense or sparse."""
        N = len(self.inverse)
        return sparse.csr_array((self.shares, self.inverse, np.arange(N + 1)), (N, self.source.n_rows)).T @ values


def collapse(source: ArraySource) -> Collapsed | None:
    """The distinct rows, in the order in which they first appear.

    The weight of a distinct row is the sum of the weights of the rows like it, so every sum over rows, and with it the whole
    model, is the same as without.  None where that would not save work, or codes of so many rows would take gigabytes.
    """
    N = source.n_rows
    if N > MOST or isinstance(source, SparseSource) or not (_whole_numbers(source) or _repeats(source)):
        return None
    chunks = source.batches(1)[0]
    codes = np.empty(N, np.uint64)
    for chunk in chunks:
        codes[chunk.start : chunk.stop] = row_codes(source.read(chunk)[0])
        source.release()
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    if len(first) > WORTHWHILE * N:
        return None
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    first = first[order]
    inverse = rank[inverse]
    X, _ = source.take(first)
    for chunk in chunks:  # codes may collide
        if not np.array_equal(source.read(chunk)[0], X[inverse[chunk.start : chunk.stop]], equal_nan=True):
            return None
        source.release()
    own = np.ones(N) if source.weights is None else source.weights
    weights = np.bincount(inverse, own, minlength=len(first)).astype(np.float64)
    total = weights[inverse]
    shares = np.divide(own, total, out=np.ones(N), where=total > 0.0)
    return Collapsed(ArraySource(X, weights), inverse, shares)


def _probe(source: ArraySource) -> Any:
    return source.take(np.unique(np.linspace(0, source.n_rows - 1, PROBE).astype(np.intp)))[0]


def _whole_numbers(source: ArraySource) -> bool:
    X = _probe(source)
    return bool((np.isnan(X) | (np.floor(X) == X)).all())


def _repeats(source: ArraySource) -> bool:
    codes = row_codes(_probe(source))
    return len(np.unique(codes)) < 0.9 * len(codes)


def _mix(values: Array, columns: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Codes of values in their columns (SplitMix64): 0 for zeros, which CSR does not store; one for all missing values."""
    numbers = np.ascontiguousarray(values, dtype=np.float64) + 0.0
    numbers[np.isnan(numbers)] = np.nan
    z = numbers.view(np.uint64) + (columns + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.where(numbers == 0.0, np.uint64(0), z ^ (z >> np.uint64(31)))
