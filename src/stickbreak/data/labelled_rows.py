"""Rows with a last column that says the class of each."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

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

    def sample(self, n: int, rng: np.random.Generator) -> ArraySource:
        """A source of n random rows, held in memory (all rows where there are fewer)."""
        return self if n >= self.n_rows else ArraySource(*self.take(self.drawn(n, rng)))

    def release(self) -> None:
        """Let go of what the other source has read."""
        self._unlabelled.release()

    def _with_codes(self, X: Array, codes: NDArray[np.integer]) -> Array:
        return np.column_stack([X, codes.astype(X.dtype)])


def with_classes(source: ArraySource, codes: NDArray[np.integer]) -> ArraySource:
    """The rows of a source, dense or sparse, with codes (N,) of their classes as one more column; 0 where it is unknown."""
    if not isinstance(source, SparseSource):
        return LabelledRows(source, codes)
    column: Any = sparse.csr_array(codes.astype(source.dtype)[:, None])
    return SparseSource(sparse.csr_array(sparse.hstack([source.X, column], format="csr")), source.weights)
