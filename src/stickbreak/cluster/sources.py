"""Sources whose rows are on the workers of a cluster: rows, documents and sequences."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data import ArraySource, BagSource, Chunk, SequenceSource
from ..data.stored_source import batches_of
from . import parts as on_worker
from .blocks import Blocks

Array = NDArray[np.floating]


def is_spread(source: ArraySource) -> bool:
    """Whether the rows of a source are on workers."""
    return isinstance(source.X, Blocks)


class SpreadSource(ArraySource):
    """Dense rows on workers.

    Parameters
    ----------
    X : Blocks of rows
    weights : (N,) or None
    groups : where the groups begin in which rows are read, if that takes work, and N
    """

    X: Blocks
    far = True

    def __init__(self, X: Blocks, weights: Array | None = None, groups: NDArray[np.int64] | None = None) -> None:
        super().__init__(X, weights)
        self.groups = groups

    def batches(self, n_batches: int) -> list[list[Chunk]]:
        """Every row in exactly one chunk; where rows are read in groups, each group is in one batch."""
        return (
            super().batches(n_batches) if self.groups is None else batches_of(self.groups, n_batches, self.chunk_rows)
        )

    def sample(self, n: int, rng: np.random.Generator) -> ArraySource:
        """A source of n random rows, held in memory here (all rows where there are fewer)."""
        return ArraySource(*self.take(self.drawn(n, rng) if n < self.n_rows else self.present()))

    def _rows(self, chunk: Chunk) -> Any:
        return self._take(np.arange(chunk.start, chunk.stop))

    def _take(self, rows: NDArray[np.integer]) -> Any:
        return np.asarray(self.X.take(rows), dtype=self.dtype)


class SpreadBags(BagSource):
    """Documents as counts of words on workers.

    Parameters
    ----------
    X : Blocks of CSR rows
    tokens : what each block says of the lengths of its documents
    """

    X: Blocks
    far = True

    def __init__(self, X: Blocks, tokens: list[on_worker.Tokens]) -> None:
        super().__init__(X)
        self.tokens = tokens

    def __getstate__(self) -> dict[str, Any]:
        return {"X": self.X}

    def sample(self, n: int, rng: np.random.Generator) -> BagSource:
        """A source of n random documents, held in memory here (all documents where there are fewer)."""
        rows = np.arange(self.n_rows)
        if n < self.n_rows:
            rows = np.sort(rng.permutation(self.present())[:n])
        return BagSource(self._take(rows))

    @cached_property
    def sizes(self) -> Array:
        """The number of tokens of each document, (N,)."""
        return np.concatenate([part.sizes for part in self.tokens])

    @cached_property
    def lengths(self) -> Array:
        """The Euclidean length of the counts of each document, (N,)."""
        return np.concatenate([part.lengths for part in self.tokens])

    @cached_property
    def whole(self) -> bool:
        """Whether all counts are whole numbers."""
        return all(part.whole for part in self.tokens)

    def present(self) -> NDArray[np.integer]:
        """The documents that are not empty."""
        return np.flatnonzero(np.concatenate([part.stored for part in self.tokens]))

    def release(self) -> None:
        """Nothing is mapped here."""

    def _rows(self, chunk: Chunk) -> Any:
        return self._take(np.arange(chunk.start, chunk.stop))

    def _take(self, rows: NDArray[np.integer]) -> Any:
        return self.X.take(rows)


class SpreadSequences(SequenceSource):
    """Sequences on workers, each wholly in one part.

    Parameters
    ----------
    X : Blocks of rows, without history
    lengths : (G,) rows of each sequence
    lags : steps before each row
    """

    X: Blocks
    far = True

    def __init__(self, X: Blocks, lengths: NDArray[np.integer], lags: int = 0) -> None:
        ArraySource.__init__(self, X)
        self.edges = np.concatenate([[0], np.cumsum(lengths)])
        self.lags = lags
        self.codes = None
        found = list(X.map(on_worker.observed, np.diff(X.edges).tolist()))
        known = [np.ones(int(n)) if w is None else w for w, n in zip(found, np.diff(X.edges))]
        self.weights = None if all(w is None for w in found) else np.concatenate(known)

    def __getstate__(self) -> dict[str, Any]:
        return {"X": self.X, "edges": self.edges, "lags": self.lags}

    @cached_property
    def flat(self) -> ArraySource:
        """Rows that can be taken one by one, with their history."""
        return SpreadSource(self.X.changed(on_worker.flat, self.n_columns), self.weights)

    def with_lags(self, lags: int) -> "SpreadSequences":
        """The same rows with so many steps before each."""
        if lags == self.lags:
            return self
        X = self.X.changed(on_worker.with_lags, self.X.n_columns, [lags] * len(self.X.parts))
        return SpreadSequences(X, np.diff(self.edges), lags)

    def cut(self, n: int) -> "SequenceSource":
        """The same sequences: on workers none is cut, so that batches are no more than sequences."""
        return self

    def sample(self, n: int, rng: np.random.Generator) -> SequenceSource:
        """A source of about n rows, held in memory here: random sequences, and of those that are long random windows."""
        if n >= self.n_rows:
            return SequenceSource(self._take(np.arange(self.n_rows)), np.diff(self.edges), self.lags)
        return super().sample(n, rng)

    def take(self, rows: NDArray[np.integer]) -> tuple[Array, Array]:
        """Rows at the given positions, with their history, and weights."""
        weights = np.ones(len(rows)) if self.weights is None else self.weights[rows]
        return self.flat._take(rows), np.asarray(weights)

    def rows(self, chunk: Chunk) -> Array:
        """Rows of a chunk, with their history."""
        return self.take(np.arange(chunk.start, chunk.stop))[0]

    def _take(self, rows: NDArray[np.integer]) -> Any:
        return np.asarray(self.X.take(rows), dtype=self.dtype)
