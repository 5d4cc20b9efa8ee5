"""The local step: rows to responsibilities to a summary, in blocks that stay in cache."""

import numpy as np
from numpy.typing import NDArray

from ..allocations import Responsibilities
from ..kernels.assign import accumulate, count_and_entropy
from .model import Model, Parameters
from .summary import Summary

Array = NDArray[np.floating]

BLOCK_NUMBERS = 1 << 18  # numbers in a block's features and scores together: 2 MiB in float64, about an L2 cache
DENSE_SHARE = 0.2  # above this share of kept responsibilities a dense product beats the sparse one


def responsibility_threshold(dtype: np.dtype[np.floating]) -> float:
    """Responsibilities below this are dropped: their sum is beneath the rounding of a bound in this precision."""
    return 1e-12 if dtype == np.float64 else 1e-8


def block_rows(F: int, K: int) -> int:
    """Rows per block."""
    return int(np.clip(BLOCK_NUMBERS // (F + K), 128, 4096))


def local_step(model: Model, parameters: Parameters, X: Array, weights: Array) -> tuple[Summary, Responsibilities]:
    """Responsibilities of rows X (n, D) with sample weights (n,) under the parameters, and their summary.

    No array of n x K numbers is made: each block's scores C = T W' are turned in place into responsibilities, the kept
    ones are returned, and S = R' T is added up from the same block of features.
    """
    summary, responsibilities = restricted_step(model, parameters, X, weights, np.ones(len(X)))
    summary.base[...] = np.dot(model.likelihood.log_base(X), weights)
    return summary, responsibilities


def restricted_step(
    model: Model, parameters: Parameters, X: Array, weights: Array, mass: Array
) -> tuple[Summary, Responsibilities]:
    """The local step when row n has only ``mass[n]`` to give to these clusters: r_nk = mass_n p_nk.

    The base measure is left at zero, since the rows are counted elsewhere.
    """
    n, (K, F), dtype = len(X), parameters.W.shape, parameters.W.dtype
    rows = min(block_rows(F, K), max(n, 1))
    T = np.empty((rows, F), dtype)
    summary, pieces = Summary.zeros(K, F), []
    for start in range(0, n, rows):
        block = slice(start, min(start + rows, n))
        features = model.likelihood.features(X[block], out=T[: block.stop - start])
        pieces.append(features_step(model, parameters, features, weights[block], mass[block], summary))
    return summary, join(pieces)


def features_step(
    model: Model, parameters: Parameters, T: Array, weights: Array, mass: Array, summary: Summary
) -> Responsibilities:
    """`restricted_step` for rows whose features T (n, F) are at hand; their summary is added to ``summary``."""
    scores = T @ parameters.W.T
    kept = model.allocation.local(scores, parameters.bias, responsibility_threshold(T.dtype))
    count_and_entropy(*kept, weights, mass, summary.N, summary.H)
    weights = weights * mass
    if kept.values.size > DENSE_SHARE * scores.size:
        R = scores * weights[:, None]  # float64 also for float32 data: sums of rounded products would move the bound
        summary.S.__iadd__(R.T @ T.astype(np.float64, copy=False))
    else:
        accumulate(*kept, weights, T, summary.S)
    return kept


def join(pieces: list[Responsibilities]) -> Responsibilities:
    """The responsibilities of consecutive blocks as one record."""
    offsets = np.cumsum([0] + [piece.indptr[-1] for piece in pieces])
    indptr = [piece.indptr[1:] + offset for piece, offset in zip(pieces, offsets)]
    return Responsibilities(
        np.concatenate([np.zeros(1, np.int64), *indptr]),
        np.concatenate([piece.indices for piece in pieces]) if pieces else np.empty(0, np.int32),
        np.concatenate([piece.values for piece in pieces]) if pieces else np.empty(0),
    )
