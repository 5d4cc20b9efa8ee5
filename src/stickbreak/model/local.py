"""The local step: rows to responsibilities to a summary, in blocks that stay in cache."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..allocations import Responsibilities
from ..kernels.assign import accumulate, count_and_entropy
from ..kernels.sparse import csr_accumulate, csr_scores
from ..likelihoods._base import Rows, prefers_sparse
from .model import Model, Parameters
from .summary import Summary

Array = NDArray[np.floating]

BLOCK_NUMBERS = 1 << 18  # numbers in a block's features and scores together: 2 MiB in float64, about an L2 cache
DENSE_SHARE = 0.2  # above this share of kept responsibilities a dense product beats the sparse one


def responsibility_threshold(dtype: np.dtype[np.floating]) -> float:
    """Responsibilities below this are dropped: their sum is beneath the rounding of a bound in this precision."""
    return 1e-12 if dtype == np.float64 else 1e-8


def block_rows(F: int, K: int) -> int:
    """Rows per block, for F numbers in the features of a row."""
    return int(np.clip(BLOCK_NUMBERS // (F + K), 128, 4096))


def local_step(
    model: Model, parameters: Parameters, X: Rows, weights: Array, base: bool = True
) -> tuple[Summary, Responsibilities]:
    """Responsibilities of rows X (n, D) with sample weights (n,) under the parameters, and their summary.

    No array of n x K numbers is made: each block's scores C = T W' are turned in place into responsibilities, the kept
    ones are returned, and S = R' T is added up from the same block of features.

    base : whether to sum up the base measure, which depends on the data alone
    """
    summary, responsibilities = restricted_step(model, parameters, X, weights, np.ones(X.shape[0]))
    if base:
        summary.base[...] = np.dot(model.likelihood.log_base(X), weights)
    return summary, responsibilities


def restricted_step(
    model: Model, parameters: Parameters, X: Rows, weights: Array, mass: Array
) -> tuple[Summary, Responsibilities]:
    """The local step when row n has only ``mass[n]`` to give to these clusters: r_nk = mass_n p_nk.

    The base measure is left at zero, since the rows are counted elsewhere.
    """
    summary, pieces = Summary.zeros(*parameters.W.shape), []
    for block, T in _blocks(model, X, len(parameters.bias)):
        if sparse.issparse(T):
            parameters = Parameters(np.asfortranarray(parameters.W), parameters.bias)
        pieces.append(features_step(model, parameters, T, weights[block], mass[block], summary))
    return summary, join(pieces)


def features_step(
    model: Model, parameters: Parameters, T: Any, weights: Array, mass: Array, summary: Summary
) -> Responsibilities:
    """`restricted_step` for rows whose features T (n, F) are at hand; their summary is added to ``summary``."""
    scores = product_with(T, parameters.W)
    kept = model.allocation.local(scores, parameters.bias, responsibility_threshold(scores.dtype))
    count_and_entropy(*kept, weights, mass, summary.N, summary.H)
    weights = weights * mass
    if sparse.issparse(T):
        csr_accumulate(*kept, weights, T.indptr, T.indices, T.data, summary.S)
    elif kept.values.size > DENSE_SHARE * scores.size:
        R = scores * weights[:, None]  # float64 also for float32 data: sums of rounded products would move the bound
        summary.S.__iadd__(R.T @ T.astype(np.float64, copy=False))
    else:
        accumulate(*kept, weights, T, summary.S)
    return kept


def product_with(T: Any, W: Array) -> Array:
    """T @ W.T for features T (n, F), dense or CSR, and weights W (K, F)."""
    if not sparse.issparse(T):
        return np.asarray(T @ W.T)
    C = np.empty((T.shape[0], len(W)), W.dtype)
    csr_scores(T.indptr, T.indices, T.data, np.ascontiguousarray(W.T), C)
    return C


def _blocks(model: Model, X: Rows, K: int) -> Iterator[tuple[slice, Any]]:
    """Rows X in blocks that fit the cache, with their features: dense ones in a buffer that is used again."""
    n, F = X.shape[0], model.likelihood.n_statistics
    is_sparse = sparse.issparse(X) or prefers_sparse(model.likelihood)
    numbers = -(-X.size // max(n, 1)) if is_sparse else F
    rows = min(block_rows(numbers, K), max(n, 1))
    T = None if is_sparse else np.empty((rows, F), X.dtype)
    for start in range(0, n, rows):
        block = slice(start, min(start + rows, n))
        yield block, model.likelihood.features(X[block], None if T is None else T[: block.stop - start])


def join(pieces: list[Responsibilities]) -> Responsibilities:
    """The responsibilities of consecutive blocks as one record."""
    offsets = np.cumsum([0] + [piece.indptr[-1] for piece in pieces])
    indptr = [piece.indptr[1:] + offset for piece, offset in zip(pieces, offsets)]
    return Responsibilities(
        np.concatenate([np.zeros(1, np.int64), *indptr]),
        np.concatenate([piece.indices for piece in pieces]) if pieces else np.empty(0, np.int32),
        np.concatenate([piece.values for piece in pieces]) if pieces else np.empty(0),
    )
