"""Sequences: rows in an order that means something, in memory or in a memory map."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .phrases import Phrases
from .sources import CHUNK_NUMBERS, CHUNK_ROWS, Array, ArraySource, Chunk

WINDOWS = 128  # at least so many pieces make a sample
HELD_WINDOWS = 32  # and so many a full memory
STEPS = 1 << 15  # rows in a chunk of short sequences, or at least in a part of a long one
SHARED = 1 << 12  # rows of a batch, up to which it is one chunk: to share fewer takes as long as it saves
SHARED_VALUES = 1 << 17  # of these rows and their histories, up to which that is so
SHORTER = 2  # phrases are of use where symbols are fewer than one for so many rows
HALVINGS = 4  # numbers of phrases to choose from
MOST_ROWS = 1 << 23  # of more rows no phrases are sought
LONGER = 4  # chunks have at most so many times the rows where rows are in phrases, whose counts each shares out


@dataclass(frozen=True)
class Sequences:
    """The rows of a chunk, read piece by piece: they may be more than fit in memory.

    Pieces count from the chunk's first row, and may lie before it or after it: a chunk may be part of a long sequence.
    """

    source: "SequenceSource"
    chunk: Chunk

    def __len__(self) -> int:
        return self.chunk.stop - self.chunk.start

    def rows(self, piece: slice) -> Array:
        """Rows (n, D)."""
        return self.source.rows(Chunk(self.chunk.start + piece.start, self.chunk.start + piece.stop))

    def codes(self, piece: slice) -> Any:
        """Which distinct row each is, (n,)."""
        return self.source.codes[self.chunk.start + piece.start : self.chunk.start + piece.stop]

    def weights(self, piece: slice) -> Array:
        """For each row 1 or, where nothing is observed, 0; (n,)."""
        return self.source.observed(Chunk(self.chunk.start + piece.start, self.chunk.start + piece.stop))

    def first(self, piece: slice) -> NDArray[np.bool_]:
        """Whether a sequence begins at each row, (n,)."""
        start = self.chunk.start + piece.start
        stop = self.chunk.start + piece.stop
        begins = self.source.edges[:-1]
        here = np.zeros(stop - start, np.bool_)
        here[begins[np.searchsorted(begins, start) : np.searchsorted(begins, stop)] - start] = True
        return here

    def before(self, row: int) -> int:
        """Rows of the same sequence before a row of the chunk."""
        edges = self.source.edges
        row = self.chunk.start + row
        return row - int(edges[np.searchsorted(edges, row, side="right") - 1])

    def after(self, row: int) -> int:
        """Rows from a row of the chunk on that are of the same sequence as the row before it."""
        edges = self.source.edges
        row = self.chunk.start + row
        return int(edges[np.searchsorted(edges, row)]) - row


class SequenceSource(ArraySource):
    """Rows of sequences, one sequence after another.

    Rows whose values are all missing, or whose history is, have no observation: their weight is zero, and their values are
    those of a row that is observed, so that every family can take them.

    Parameters
    ----------
    X : array (T, D);  with ``codes`` the distinct rows (U, D)
    lengths : (G,) rows of each sequence, at least 1
    lags : for autoregressive likelihoods, the number of steps before that follow each row's own values
    codes : (T,) ints, where rows repeat: which of the distinct rows each is
    """

    def __init__(self, X: Any, lengths: NDArray[np.integer], lags: int = 0, codes: Any = None) -> None:
        super().__init__(X)
        self.edges = np.concatenate([[0], np.cumsum(lengths)])
        self.lags = lags
        self.codes = codes
        observed = np.concatenate([self._observed(Chunk(*c)) for c in _pieces(len(X), self._limit)])
        if lags:
            begins = self.edges[:-1, None] + np.arange(lags)
            observed[begins[begins < self.edges[1:, None]]] = False
        self.weights = None if observed.all() else observed.astype(np.float64)
        first = int(observed.argmax())
        self._filler = self._with_history(Chunk(first, first + 1))[0] if observed.any() else np.zeros((), self.dtype)
        self._given = self.X  # with what is missing, by which another source knows it
        if codes is not None and self.weights is not None:
            self.X = self._cleared(np.array(self.X, dtype=self.dtype), slice(None))

    @property
    def n_rows(self) -> int:
        """T, of all sequences."""
        return int(self.edges[-1])

    @property
    def n_sequences(self) -> int:
        """G."""
        return len(self.edges) - 1

    @property
    def n_columns(self) -> int:
        """D, with the history of a row D (lags + 1)."""
        return int(self.X.shape[1]) * (self.lags + 1)

    @property
    def total_weight(self) -> float:
        """The number of rows observed."""
        if self.weights is None:
            return float(self.n_rows)
        return float((self.weights if self.codes is None else self.weights[self.codes]).sum())

    @property
    def flat(self) -> ArraySource:
        """Rows that can be taken one by one."""
        if self.codes is None:
            return _Steps(self)
        counts = np.bincount(self.codes, minlength=len(self.X)).astype(np.float64)
        return ArraySource(self.X, counts if self.weights is None else counts * self.weights)

    @cached_property
    def phrases(self) -> Phrases | None:
        """The phrases of distinct rows, where the sequences are much shorter in these."""
        if self.codes is None or self.n_rows > MOST_ROWS:
            return None
        found = Phrases.of(np.asarray(self.codes), len(self.X), self.edges)
        return found if SHORTER * len(found.symbols) <= self.n_rows else None

    @cached_property
    def fewer_phrases(self) -> tuple[Phrases, ...]:
        """The phrases, half of them, a quarter, and so on, the most frequent ones: more steps, and fewer matrices."""
        found = self.phrases
        if found is None:
            return ()
        numbers = [len(found.parts) >> i for i in range(HALVINGS)]
        return (found, *(found.first(n, len(self.X)) for n in numbers[1:] if n > 0))

    @property
    def n_steps(self) -> int:
        """Rows, or phrases of them, that messages go over one by one."""
        return self.n_rows if self.phrases is None else len(self.phrases.symbols)

    @cached_property
    def examples(self) -> NDArray[np.integer]:
        """A row like each of the distinct ones, (U,)."""
        found = np.zeros(len(self.X), np.int64)
        found[self.codes[::-1]] = np.arange(self.n_rows)[::-1]
        return found

    @property
    def steps(self) -> int:
        """Rows in a chunk of short sequences, or at least in a part of a long one."""
        if self.phrases is None:
            return STEPS
        return min(LONGER, self.n_rows // len(self.phrases.symbols)) * STEPS

    def batches(self, n_batches: int) -> list[list[Chunk]]:
        """Every row in exactly one chunk, and every sequence in one batch, of at most as many as there are sequences.

        Short sequences share a chunk, long ones are cut into several.
        """
        pieces = max(1, -(-self.n_rows // (n_batches * self.steps)))
        values = self.n_rows * self.n_columns if self.codes is None else 0  # those of distinct rows are looked at once
        if self.n_sequences > n_batches and (self.n_rows > n_batches * SHARED or values > n_batches * SHARED_VALUES):
            pieces += pieces % 2  # an even number keeps two threads level
        middle = 0.5 * (self.edges[:-1] + self.edges[1:])
        piece = (middle * (n_batches * pieces) / self.n_rows).astype(int)
        begins = self.edges[np.flatnonzero(np.diff(piece, prepend=-1))]
        chunks = [_cut(int(a), int(b), parts_of(int(b - a), self.steps)) for a, b in pairwise([*begins, self.n_rows])]
        return [[chunk for cut in batch for chunk in cut] for b in range(n_batches) if (batch := chunks[b::n_batches])]

    def cut(self, n: int) -> "SequenceSource":
        """The same rows as shorter sequences, so that they can be in n batches; where they are cut the chain is, too."""
        longest = max(self.n_rows // n, self.lags + 1, 2)
        sizes = [np.diff(_cut(int(a), int(b), max(1, int(b - a) // longest))).ravel() for a, b in pairwise(self.edges)]
        return self.like(self._given, np.concatenate(sizes), self.lags, self.codes)

    def like(self, X: Any, lengths: NDArray[np.integer], lags: int = 0, codes: Any = None) -> "SequenceSource":
        """A source of other rows with the same columns."""
        return SequenceSource(X, lengths, lags, codes)

    def with_lags(self, lags: int) -> "SequenceSource":
        """The same rows with so many steps before each."""
        if lags == self.lags:
            return self
        return self.like(self._given, np.diff(self.edges), lags, self.codes)

    def with_fewer_lags(self, lags: int) -> "SequenceSource":
        """The same rows, held in memory, each with fewer steps before it; those not observed here are not observed there."""
        X = np.array(self.X, dtype=self.dtype)
        weights = self.with_lags(self.lags - lags).weights
        if weights is not None:
            X[weights == 0.0] = np.nan
        return self.like(X, np.diff(self.edges), lags)

    def whole(self) -> list[Chunk]:
        """Every sequence in exactly one chunk."""
        pieces = np.searchsorted(self.edges, np.arange(STEPS, self.n_rows, STEPS))
        begins = np.unique(np.concatenate([[0], self.edges[pieces], [self.n_rows]]))
        return [Chunk(int(a), int(b)) for a, b in pairwise(begins)]

    def read(self, chunk: Chunk) -> tuple[Sequences, Array]:
        """The sequences of a chunk, and for each row 1 or, where nothing is observed, 0."""
        return Sequences(self, chunk), self.observed(chunk)

    def observed(self, chunk: Chunk) -> Array:
        """For each row 1 or, where nothing is observed, 0; (n,)."""
        rows = slice(chunk.start, chunk.stop)
        if self.weights is None:
            return np.broadcast_to(np.ones(()), (chunk.stop - chunk.start,))
        return np.asarray(self.weights[rows] if self.codes is None else self.weights[self.codes[rows]])

    def sample(self, n: int, rng: np.random.Generator) -> "SequenceSource":
        """A source of about n rows, held in memory: random sequences, and of those that are long random windows."""
        return self if n >= self.n_rows else self._windows(n, max(n // WINDOWS, self.lags + 1), rng)

    def portion(self, n: int, most: int, rng: np.random.Generator) -> "SequenceSource":
        """A source of about n rows for a memory of at most ``most``: random sequences, long ones in windows."""
        if n >= self.n_rows and np.diff(self.edges).max() <= self._held_length(most):
            return self
        return self._windows(n, self._held_length(most), rng)

    def joined(self, *others: Any) -> "SequenceSource":
        """A source of copies of these sequences and then those of others with the same columns."""
        sources: tuple[SequenceSource, ...] = (self, *others)
        lengths = np.concatenate([np.diff(source.edges) for source in sources])
        return self.like(np.concatenate([source._given_rows() for source in sources]), lengths, self.lags)

    def _held_length(self, most: int) -> int:
        """The rows of the longest sequence in a memory of at most ``most``: each is remembered or forgotten as a whole."""
        return max(most // HELD_WINDOWS, self.lags + 1)

    def _given_rows(self) -> Array:
        """The rows (T, D) as they were given, without their history."""
        if self.codes is None:
            return np.asarray(self._take(np.arange(self.n_rows)))
        return np.asarray(np.asarray(self._given)[self.codes])

    def _windows(self, n: int, length: int, rng: np.random.Generator) -> "SequenceSource":
        """A source of about n rows in random windows of at most ``length`` of the sequences."""
        windows = [
            (a, min(a + length, int(end))) for begin, end in pairwise(self.edges) for a in range(begin, end, length)
        ]
        order = rng.permutation(len(windows))
        sizes = np.array([b - a for a, b in windows])[order]
        chosen = [windows[i] for i in order[: int(np.searchsorted(np.cumsum(sizes), n)) + 1]]
        rows = np.concatenate([np.arange(a, b) for a, b in chosen])
        lengths = np.array([b - a for a, b in chosen])
        if self.codes is not None:
            return self.like(self._given, lengths, codes=np.asarray(self.codes[rows]))
        return self.like(self._take(rows), lengths, self.lags)

    def take(self, rows: NDArray[np.integer]) -> tuple[Array, Array]:
        """Rows at the given positions, with their history, and weights."""
        if self.codes is not None:
            found = self.codes[rows]
            return self._take(found), np.ones(len(rows)) if self.weights is None else self.weights[found]
        history = [self._take(np.maximum(rows - lag, 0)) for lag in range(self.lags + 1)]
        weights = np.ones(len(rows)) if self.weights is None else self.weights[rows]
        return self._cleared(np.hstack(history), rows), np.asarray(weights)

    def rows(self, chunk: Chunk) -> Array:
        """Rows of a chunk, with their history."""
        if self.codes is not None:
            return np.asarray(self._rows(Chunk(0, len(self.X)))[self.codes[chunk.start : chunk.stop]])
        return self._cleared(self._with_history(chunk), slice(chunk.start, chunk.stop))

    def present(self) -> NDArray[np.integer]:
        """The rows that are observed."""
        weights = self.weights if self.weights is None or self.codes is None else self.weights[self.codes]
        return np.arange(self.n_rows) if weights is None else np.flatnonzero(weights > 0.0)

    @property
    def _limit(self) -> int:
        return max(1, min(CHUNK_ROWS * 8, CHUNK_NUMBERS // max(self.n_columns, 1)))

    def _with_history(self, chunk: Chunk) -> Array:
        if not self.lags:
            return np.array(self.X[chunk.start : chunk.stop], dtype=self.dtype)
        D = int(self.X.shape[1])
        n = chunk.stop - chunk.start
        X = np.zeros((n, D * (self.lags + 1)), self.dtype)
        for lag in range(self.lags + 1):
            begin = max(chunk.start - lag, 0)
            known = self.X[begin : chunk.stop - lag] if chunk.stop > lag else self.X[:0]
            X[n - len(known) :, D * lag : D * (lag + 1)] = known
        return X

    def _observed(self, chunk: Chunk) -> NDArray[np.bool_]:
        missing = np.isnan(self.values(self._with_history(chunk)))
        D = missing.shape[1] // (self.lags + 1)
        self.release()
        return np.asarray(~(missing[:, :D].all(axis=1) | missing[:, D:].any(axis=1)))

    def values(self, X: Array) -> Array:
        """The columns of rows X, with their history, that are observed: all of them."""
        return X

    def _cleared(self, X: Array, rows: Any) -> Array:
        if self.weights is not None:
            X[self.weights[rows] == 0.0] = self._filler
        return X


class _Steps(ArraySource):
    """The rows of sequences, one by one."""

    def __init__(self, sequences: SequenceSource) -> None:
        super().__init__(sequences.X)
        self.weights = sequences.weights
        self._sequences = sequences

    @property
    def n_columns(self) -> int:
        """D, with the history of a row."""
        return self._sequences.n_columns

    def _rows(self, chunk: Chunk) -> Array:
        return self._sequences.rows(chunk)

    def take(self, rows: NDArray[np.integer]) -> tuple[Array, Array]:
        """Rows and weights at the given positions."""
        return self._sequences.take(rows)

    def sample(self, n: int, rng: np.random.Generator) -> ArraySource:
        """A source of n random rows, held in memory."""
        rows = self.present()
        return ArraySource(*self.take(np.sort(rng.permutation(rows)[:n])))


def parts_of(n: int, size: int) -> int:
    """Parts of n rows, of at least ``size`` where there are as many: an even number, which keeps two threads level, or one."""
    parts = max(1, n // size)
    return parts - parts % 2 if parts > 1 else parts


def _cut(start: int, stop: int, parts: int) -> list[Chunk]:
    """Rows start, ..., stop - 1 in parts of about the same size."""
    edges = np.linspace(start, stop, parts + 1).astype(int)
    return [Chunk(int(a), int(b)) for a, b in pairwise(edges)]


def _pieces(n: int, most: int) -> Iterator[tuple[int, int]]:
    return ((start, min(start + most, n)) for start in range(0, n, most))
