"""Documents: bags of words, and dense rows in groups."""

import hashlib
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .pages import release_pages
from .sources import MANY_CHUNKS, Array, ArraySource, Chunk, SparseSource

ROWS_AT_ONCE = 1 << 14  # rows of groups in a chunk
COUNTS_AT_ONCE = 1 << 20  # counts of bags that are read together
CHUNK_COUNTS = 1 << 16  # counts of bags in a chunk, ...
PER_WORD = 32  # ... or so many for each word, if that is more: the summary of a chunk is as wide as the vocabulary


class Groups(NamedTuple):
    """Rows X (n, D) in groups: those of group g are ``indptr[g]:indptr[g + 1]``."""

    indptr: NDArray[np.integer]
    X: Array


class BagSource(SparseSource):
    """Documents as rows of counts of words, CSR (N, V), in memory or mapped (`stickbreak.data.corpus.open_corpus`)."""

    @property
    def chunk_rows(self) -> int:
        """Documents in a chunk, at most: few enough for many threads, but no more chunks than these need."""
        counts = max(CHUNK_COUNTS, PER_WORD * self.n_columns)
        return min(super().chunk_rows, max(1, counts // self.row_size, self.n_rows // MANY_CHUNKS))

    @cached_property
    def total_weight(self) -> float:
        """The number of tokens."""
        return float(self.sizes.sum())

    @property
    def n_tokens(self) -> float:
        """What work grows with: tokens, but at least one for each count, since fractions of one take as long."""
        return max(self.total_weight, float(self.X.nnz))

    @cached_property
    def sizes(self) -> Array:
        """The number of tokens of each document, (N,)."""
        return self._sums(lambda X: X)

    @cached_property
    def lengths(self) -> Array:
        """The Euclidean length of the counts of each document, (N,)."""
        return np.sqrt(self._sums(lambda X: X.power(2)))

    @cached_property
    def whole(self) -> bool:
        """Whether all counts are whole numbers."""
        return all((counts % 1.0 == 0.0).all() for counts in self._counts())

    def _sums(self, value: Callable[[Any], Any]) -> Array:
        """The sum of a function of the counts over each document, in float64, (N,)."""

        def sums(chunk: Chunk) -> Array:
            X, _ = self.read(chunk)
            found = np.asarray(value(X.astype(np.float64, copy=False)).sum(axis=1))
            self.release()
            return found

        return np.concatenate([sums(chunk) for chunk in self.batches(1)[0]])

    def _counts(self) -> Iterator[Array]:
        """The counts, some at a time: they may be mapped."""
        data = self.X.data
        return (data[i : i + COUNTS_AT_ONCE] for i in range(0, len(data), COUNTS_AT_ONCE))

    def sample(self, n: int, rng: np.random.Generator) -> "BagSource":
        """A source of n random documents, held in memory (all documents where there are fewer)."""
        return self if n >= self.n_rows else BagSource(self._take(np.sort(rng.permutation(self.present())[:n])))

    @property
    def _counts_all(self) -> bool:
        """Documents may be empty."""
        return False

    def present(self) -> NDArray[np.integer]:
        """The documents that are not empty."""
        return np.flatnonzero(np.diff(self.X.indptr))

    def fingerprint(self) -> str:
        """A hash of the counts, by which the same documents in the same order are known again."""
        return self._digest()

    def _digest(self, *others: NDArray[Any]) -> str:
        """A hash of the counts and of other arrays."""
        digest = hashlib.blake2b(str(self.X.shape).encode(), digest_size=20)
        for chunk in self.batches(1)[0]:
            X, _ = self.read(chunk)
            digest.update(X.indptr.astype(np.int64))
            digest.update(X.indices.astype(np.int64))
            digest.update(X.data.astype(np.float64))
            self.release()
        for other in others:
            digest.update(other.tobytes())
        return digest.hexdigest()

    def release(self) -> None:
        """Let go of the pages of mapped arrays."""
        release_pages(self.X.data)
        release_pages(self.X.indices)

    def _take(self, rows: NDArray[np.integer]) -> Any:
        first = self.X.indptr[rows]
        sizes = self.X.indptr[rows + 1] - self.X.indptr[rows]
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        entries = np.repeat(first - indptr[:-1], sizes) + np.arange(
            indptr[-1]
        )  # X[rows] would copy all indices of a map
        return sparse.csr_array((self.X.data[entries], self.X.indices[entries], indptr), (len(rows), self.n_columns))


class GroupSource(ArraySource):
    """Rows of a dense array (n, D) in consecutive groups of the given lengths, as documents of rows."""

    def __init__(self, X: Any, lengths: NDArray[np.integer]) -> None:
        super().__init__(X)
        self.indptr = np.concatenate([[0], np.cumsum(lengths)])

    @property
    def n_rows(self) -> int:
        """The number of groups."""
        return len(self.indptr) - 1

    @property
    def row_size(self) -> int:
        """Numbers in a group, on average, or more: a chunk is to hold no more rows than `ROWS_AT_ONCE`."""
        return max(1, max(self.n_columns, 128) * len(self.X) // max(self.n_rows, 1))

    @property
    def total_weight(self) -> float:
        """The number of rows."""
        return float(len(self.X))

    @property
    def flat(self) -> ArraySource:
        """The rows without their groups."""
        return ArraySource(self.X)

    def sample(self, n: int, rng: np.random.Generator) -> "GroupSource":
        """A source of n random groups, held in memory (all groups where there are fewer)."""
        if n >= self.n_rows:
            return self
        chosen = np.sort(rng.permutation(self.n_rows)[:n])
        lengths = np.diff(self.indptr)
        rows = np.concatenate([np.arange(0), *(np.arange(self.indptr[g], self.indptr[g + 1]) for g in chosen)])
        return GroupSource(self._take(rows), lengths[chosen])

    def joined(self, *others: Any) -> "GroupSource":
        """A source of copies of these groups and then those of others with the same columns."""
        sources: tuple[GroupSource, ...] = (self, *others)
        rows = [source._take(np.arange(len(source.X))) for source in sources]
        return GroupSource(np.concatenate(rows), np.concatenate([np.diff(source.indptr) for source in sources]))

    def _rows(self, chunk: Chunk) -> Groups:
        edges = self.indptr[chunk.start : chunk.stop + 1]
        return Groups(edges - edges[0], super()._rows(Chunk(int(edges[0]), int(edges[-1]))))

    def read(self, chunk: Chunk) -> tuple[Groups, Array]:
        """Groups of a chunk, and ones."""
        return self._rows(chunk), np.ones(chunk.stop - chunk.start)
