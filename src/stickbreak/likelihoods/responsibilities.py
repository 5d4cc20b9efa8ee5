"""Sparse responsibilities: how rows belong to clusters, as sums over rows need it."""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..kernels.assign import owners

Array = NDArray[np.floating]


class Responsibilities(NamedTuple):
    """Sparse responsibilities of n rows: row i holds ``values[indptr[i]:indptr[i + 1]]`` on clusters ``indices[...]``."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: Array

    @classmethod
    def of(cls, R: Array) -> Self:
        """Those of an array (n, K) that are not zero."""
        kept = sparse.csr_array(R)
        return cls(kept.indptr.astype(np.int64), kept.indices, kept.data)

    def part(self, start: int, stop: int) -> "Responsibilities":
        """Those of some consecutive rows."""
        a = self.indptr[start]
        b = self.indptr[stop]
        return Responsibilities(self.indptr[start : stop + 1] - a, self.indices[a:b], self.values[a:b])


def dense(kept: Responsibilities, K: int, dtype: Any) -> Array:
    """Responsibilities of n rows as an array (n, K)."""
    n = len(kept.indptr) - 1
    R = np.zeros((n, K), dtype=dtype)
    R[np.repeat(np.arange(n), np.diff(kept.indptr)), kept.indices] = kept.values
    return R


def most_probable(kept: Responsibilities) -> NDArray[np.intp]:
    """The cluster of each row with its largest responsibility, (n,)."""
    n = len(kept.indptr) - 1
    owner = np.empty(n, np.int64)
    owners(*kept, owner, np.empty(n))
    return owner


def join(pieces: list[Responsibilities]) -> Responsibilities:
    """The responsibilities of consecutive blocks as one record."""
    if len(pieces) == 1:
        return pieces[0]
    offsets = np.cumsum([0] + [piece.indptr[-1] for piece in pieces])
    indptr = [piece.indptr[1:] + offset for piece, offset in zip(pieces, offsets)]
    return Responsibilities(
        np.concatenate([np.zeros(1, np.int64), *indptr]),
        np.concatenate([piece.indices for piece in pieces]) if pieces else np.empty(0, np.int32),
        np.concatenate([piece.values for piece in pieces]) if pieces else np.empty(0),
    )
