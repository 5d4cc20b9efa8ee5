"""Rows, and steps of sequences, with a last column that says the class of each."""

from typing import Any, overload

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .sequences import SequenceSource
from .sources import Array, ArraySource, Chunk, SparseSource


class LabelledRows(ArraySource):
    """The dense rows of another source, with codes of their classes as one more column.

    Parameters
    ----------
    rows : dense rows
    codes : (N,) the class of each row, 1, ..., C, or 0 where it is unknown
    """

    def __init__(self, rows: ArraySource, codes: NDArray[np.integer]) -> None:
        super().__init__(rows.X, rows.weights)
        self.codes = codes
        self._unlabelled = rows

    @property
    def n_columns(self) -> int:
        """D + 1."""
        return self._unlabelled.n_columns + 1

    def batches(self, n_batches: int) -> list[list[Chunk]]:
        """Those of the other source."""
        return self._unlabelled.batches(n_batches)

    def read(self, chunk: Chunk) -> tuple[Array, Array]:
        """Rows (n, D + 1) and sample weights (n,) of a chunk."""
        X, weights = self._unlabelled.read(chunk)
        return self._with_codes(X, self.codes[chunk.start : chunk.stop]), weights

    def take(self, rows: NDArray[np.integer]) -> tuple[Array, Array]:
        """Rows and weights at the given positions."""
        X, weights = self._unlabelled.take(rows)
        return self._with_codes(X, self.codes[rows]), weights

    def held(self, rows: NDArray[np.integer]) -> ArraySource:
        """A source that gives these rows."""
        held = self._unlabelled.held(rows)
        return self if held is self._unlabelled else LabelledRows(held, self.codes)

    def taken(self, rows: NDArray[np.integer]) -> ArraySource:
        """A source of the rows at the given positions, held in memory."""
        return ArraySource(*self.take(rows))

    def release(self) -> None:
        """Let go of what the other source has read."""
        self._unlabelled.release()

    def _with_codes(self, X: Array, codes: NDArray[np.integer]) -> Array:
        return np.column_stack([X, codes.astype(X.dtype)])


class LabelledSequences(SequenceSource):
    """Sequences whose rows X (T, D + 1) end with the code of their class, and so does each step of a history.

    A row without an observation has no class, either.
    """

    def like(self, X: Any, lengths: NDArray[np.integer], lags: int = 0, codes: Any = None) -> SequenceSource:
        """A source of other rows with classes."""
        return LabelledSequences(X, lengths, lags, codes)

    def values(self, X: Array) -> Array:
        """Rows X, with their history, without codes of classes."""
        steps = X.reshape(len(X), self.lags + 1, -1)[:, :, :-1]
        return np.ascontiguousarray(steps.reshape(len(X), -1))

    @property
    def classes(self) -> NDArray[np.intp]:
        """The class of each row, 0, ..., C - 1, or -1 where it is unknown or nothing is observed, (T,)."""
        codes = np.nan_to_num(np.asarray(self.X[:, -1])).astype(np.intp)
        if self.weights is not None:
            codes = np.where(self.weights > 0.0, codes, 0)
        return np.asarray((codes if self.codes is None else codes[self.codes]) - 1)


@overload
def with_classes(source: SequenceSource, codes: NDArray[np.integer]) -> SequenceSource: ...


@overload
def with_classes(source: ArraySource, codes: NDArray[np.integer]) -> ArraySource: ...


def with_classes(source: ArraySource, codes: NDArray[np.integer]) -> ArraySource:
    """The rows of a source, dense or sparse, with codes (N,) of their classes as one more column; 0 where it is unknown.

    Sequences, whose rows must not be collapsed, are held in memory.
    """
    if isinstance(source, SequenceSource):
        X = np.column_stack([np.asarray(source.X, dtype=source.dtype), codes.astype(source.dtype)])
        return LabelledSequences(X, np.diff(source.edges), source.lags)
    if not isinstance(source, SparseSource):
        return LabelledRows(source, codes)
    column: Any = sparse.csr_array(codes.astype(source.dtype)[:, None])
    return SparseSource(sparse.csr_array(sparse.hstack([source.X, column], format="csr")), source.weights)
