"""Rows in memory or in a memory map, dense or sparse, cut into batches and chunks."""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .arrays import working_precision
from .pages import release_pages
from .stored import Stored

Array = NDArray[np.floating]
Rows = Any  # (n, D): dense, missing values as NaN, or CSR

CHUNK_NUMBERS = 1 << 21  # numbers in a chunk of rows, the unit of work of one thread: 16 MiB in float64
CHUNK_ROWS = 4096
LISTED = 1 << 24  # rows; where there are more, a sample is drawn without a list of all of them
MANY_CHUNKS, LARGEST_CHUNK = 64, 1 << 14  # where there are many rows, chunks are larger, up to so many rows


class Chunk(NamedTuple):
    """Consecutive rows start, ..., stop - 1."""

    start: int
    stop: int


class ArraySource:
    """Rows of a two-dimensional array or memory map, with optional sample weights.

    Rows are converted to the working precision chunk by chunk, so that a memory map larger than memory, or one of
    integers, is never held whole.

    Parameters
    ----------
    X : array (N, D), any real dtype; float32 stays float32, everything else becomes float64
    weights : array (N,) of non-negative numbers, or None for ones

    Attributes
    ----------
    far : whether rows are on other machines, so that what is known of each should not travel
    """

    far = False

    def __init__(self, X: Any, weights: Array | None = None) -> None:
        self.X = X
        self.weights = weights
        self.dtype = working_precision(X.dtype)

    @property
    def n_rows(self) -> int:
        """N."""
        return int(self.X.shape[0])

    @property
    def n_steps(self) -> int:
        """What a visit goes over one by one: rows, or phrases of them where sequences are of these."""
        return self.n_rows

    @property
    def n_columns(self) -> int:
        """D."""
        return int(self.X.shape[1])

    @property
    def row_size(self) -> int:
        """Numbers stored per row, on average."""
        return self.n_columns

    @property
    def flat(self) -> "ArraySource":
        """Rows that can be taken one by one: this source itself, but for groups of rows."""
        return self

    @property
    def total_weight(self) -> float:
        """Sum of the sample weights."""
        return float(self.n_rows if self.weights is None else self.weights.sum())

    @staticmethod
    def rows_per_chunk(n_rows: int, row_size: int) -> int:
        """The most rows of a chunk, for rows of so many numbers."""
        rows = min(max(CHUNK_ROWS, n_rows // MANY_CHUNKS), LARGEST_CHUNK)
        return max(1, min(rows, CHUNK_NUMBERS // max(row_size, 1)))

    @property
    def chunk_rows(self) -> int:
        """Rows in a chunk, at most."""
        return self.rows_per_chunk(self.n_rows, self.row_size)

    def batches(self, n_batches: int) -> list[list[Chunk]]:
        """Every row in exactly one chunk, chunk i in batch i mod ``n_batches``, so that sorted data are spread out."""
        per_batch = -(-self.n_rows // n_batches)
        pieces = -(-per_batch // self.chunk_rows)
        if per_batch > 512:
            pieces += pieces % 2  # an even number keeps two threads level
        edges = np.linspace(0, self.n_rows, n_batches * pieces + 1).astype(int)
        chunks = [Chunk(int(a), int(b)) for a, b in pairwise(edges) if b > a]
        return [chunks[b::n_batches] for b in range(n_batches)]

    def cut(self, n: int) -> "ArraySource":
        """A source of the same rows that can be in n batches: this one itself, but for long sequences."""
        return self

    def read(self, chunk: Chunk) -> tuple[Rows, Array]:
        """Rows (n, D) and sample weights (n,) of a chunk."""
        X = self._rows(chunk)
        if self.weights is None:
            return X, np.ones(X.shape[0])
        return X, self.weights[chunk.start : chunk.stop]

    def take(self, rows: NDArray[np.integer]) -> tuple[Rows, Array]:
        """Rows and weights at the given positions, ascending for the sake of disks."""
        X = self._take(rows)
        return X, np.ones(X.shape[0]) if self.weights is None else self.weights[rows]

    def answers(self, chunk: Chunk) -> Array | None:
        """What the documents of a chunk answer beside their words, (n,), NaN where that is unknown; None: nothing."""
        return None

    def release(self) -> None:
        """Let go of the pages of a memory map that were read, so that they do not count as memory of this process."""
        if isinstance(self.X, Stored):
            self.X.release()
        release_pages(self.X)

    def _rows(self, chunk: Chunk) -> Rows:
        return np.asarray(self.X[chunk.start : chunk.stop], dtype=self.dtype)

    def _take(self, rows: NDArray[np.integer]) -> Rows:
        if isinstance(self.X, Stored):
            return np.asarray(self.X.take(rows), dtype=self.dtype)
        X = np.empty((len(rows), self.X.shape[1]), self.dtype)
        for start in range(0, len(rows), CHUNK_ROWS):
            X[start : start + CHUNK_ROWS] = self.X[rows[start : start + CHUNK_ROWS]]
            self.release()
        return X

    def sample(self, n: int, rng: np.random.Generator) -> "ArraySource":
        """A source of n random rows, held in memory (all rows where there are fewer)."""
        if n >= self.n_rows:
            return self
        return self.taken(self.drawn(n, rng))

    def portion(self, n: int, most: int, rng: np.random.Generator) -> "ArraySource":
        """A source of n random rows for a memory of at most ``most``, held in memory (all rows where there are fewer)."""
        return self.sample(n, rng)

    def joined(self, *others: "ArraySource") -> "ArraySource":
        """A source of copies of these rows and then those of others with the same columns; each counts once."""
        return ArraySource(np.concatenate([source._whole() for source in (self, *others)]))

    def taken(self, rows: NDArray[np.integer]) -> "ArraySource":
        """A source of the rows at the given positions, held in memory."""
        return type(self)(*self.take(rows))

    def _whole(self) -> Rows:
        """All rows, held in memory."""
        return self.take(np.arange(self.n_rows))[0]

    def held(self, rows: NDArray[np.integer]) -> "ArraySource":
        """A source that gives these rows: this one itself, but for files in which each look takes long."""
        return self

    def spaced(self, n: int) -> NDArray[np.integer]:
        """About n of the rows with a positive weight, or all, evenly spaced."""
        if self._counts_all:
            return _spaced(self.n_rows, n)
        rows = self.present()
        return np.asarray(rows[_spaced(len(rows), n)])

    def drawn(self, n: int, rng: np.random.Generator) -> NDArray[np.integer]:
        """The numbers of n random rows with a positive weight, in order."""
        if not self._counts_all or self.n_rows <= LISTED:
            return np.sort(rng.permutation(self.present())[:n])
        found = np.empty(0, np.int64)
        while len(found) < n:
            found = np.unique(np.concatenate([found, rng.integers(self.n_rows, size=n - len(found))]))
        return found

    @property
    def n_present(self) -> int:
        """The number of rows with a positive weight."""
        return self.n_rows if self._counts_all else len(self.present())

    @property
    def _counts_all(self) -> bool:
        """Whether it is known that no row has a weight of zero."""
        return self.weights is None

    def present(self) -> NDArray[np.integer]:
        """The rows with a positive weight."""
        return np.arange(self.n_rows) if self.weights is None else np.flatnonzero(self.weights > 0.0)


class SparseSource(ArraySource):
    """Rows of a `scipy.sparse.csr_array` in memory: chunks share its arrays, and zeros are never stored.

    Parameters
    ----------
    X : csr_array (N, D) of float32 or float64
    weights : array (N,) of non-negative numbers, or None for ones
    """

    @staticmethod
    def rows_per_chunk(n_rows: int, row_size: int) -> int:
        """The most rows of a chunk: many, since each chunk has a summary as wide as the vocabulary."""
        return max(1, CHUNK_NUMBERS // max(row_size, 1))

    @property
    def row_size(self) -> int:
        """Numbers stored per row, on average."""
        return max(1, int(self.X.nnz) // max(self.n_rows, 1))

    def joined(self, *others: ArraySource) -> "SparseSource":
        """A source of copies of these rows and then those of others with the same columns; each counts once."""
        return type(self)(sparse.vstack([source._whole() for source in (self, *others)], format="csr"))

    def _rows(self, chunk: Chunk) -> Rows:
        edges = self.X.indptr[chunk.start : chunk.stop + 1]
        stored = slice(edges[0], edges[-1])
        shape = (chunk.stop - chunk.start, self.n_columns)
        return sparse.csr_array((self.X.data[stored], self.X.indices[stored], edges - edges[0]), shape)

    def _take(self, rows: NDArray[np.integer]) -> Rows:
        return self.X[rows]


def _spaced(n_rows: int, n: int) -> NDArray[np.integer]:
    """About n numbers from 0 to n_rows - 1, evenly spaced."""
    return np.unique(np.linspace(0, n_rows - 1, min(n_rows, n)).astype(np.intp))
