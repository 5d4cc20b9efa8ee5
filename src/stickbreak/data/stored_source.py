"""Rows in files, cut into chunks and batches along the groups in which they are read."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from .sources import Array, ArraySource, Chunk
from .stored import Grouped, Stored


class StoredSource(ArraySource):
    """Rows in files, with optional sample weights: groups that take work to read are chunks, or are cut into some."""

    X: Stored

    def batches(self, n_batches: int) -> list[list[Chunk]]:
        """Every row in exactly one chunk, group g in batch g mod B; of at most as many batches as there are groups."""
        if not isinstance(self.X, Grouped):
            return super().batches(n_batches)
        return batches_of(self.X.edges, n_batches, self.chunk_rows)

    def held(self, rows: NDArray[np.integer]) -> ArraySource:
        """A source that gives these rows from memory: all are read in one go."""
        rows = np.unique(rows)
        return _Held(self, rows, self._take(rows))

    def sample(self, n: int, rng: np.random.Generator) -> ArraySource:
        """A source of n random rows, held in memory (all rows where there are fewer)."""
        return self if n >= self.n_rows else ArraySource(*self.take(self.drawn(n, rng)))


class _Held(ArraySource):
    """Some rows of a source in memory, called by their numbers there."""

    def __init__(self, source: ArraySource, rows: NDArray[np.integer], X: Array) -> None:
        super().__init__(X, None if source.weights is None else source.weights[rows])
        self._numbers = rows

    def take(self, rows: NDArray[np.integer]) -> tuple[Array, Array]:
        """Rows and weights at the given positions of the whole source."""
        return super().take(np.searchsorted(self._numbers, rows))


def batches_of(edges: NDArray[np.int64], n_batches: int, most: int) -> list[list[Chunk]]:
    """The rows of groups with these edges in chunks of at most so many: each group in one batch."""
    B = min(n_batches, len(edges) - 1)
    chunks = [_cut(a, b, most) for a, b in pairwise(edges.tolist())]
    return [[chunk for group in chunks[b::B] for chunk in group] for b in range(B)]


def _cut(start: int, stop: int, most: int) -> list[Chunk]:
    """Rows start, ..., stop - 1 in parts of about the same size, at most so large."""
    edges = np.linspace(start, stop, -(-(stop - start) // most) + 1).astype(int).tolist()
    return [Chunk(a, b) for a, b in pairwise(edges)]
