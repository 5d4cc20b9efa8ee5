"""Phrases: stretches of rows that occur many times in sequences of few distinct rows, each made of two shorter ones."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .sources import Chunk

OFTEN = 64  # occurrences of two symbols in a row that make them a phrase
RANGE = 4  # phrases that are made together occur at most so many times as often as each other
MOST = 256  # phrases
LONGEST = 1024  # rows of a phrase


class Phrases(NamedTuple):
    """Sequences of U distinct rows, in which the most frequent pairs of neighbours are one symbol, and pairs of these again.

    Such pairs are found as by Larsson and Moffat (1999), Off-line dictionary-based compression, but several at a time.  A row
    with which a sequence begins is in no phrase.

    Attributes
    ----------
    parts : (P, 2) the two symbols of each phrase: a distinct row, 0, ..., U - 1, or U + i, a phrase i before this one
    symbols : (m,) of all sequences, one after another
    begins : (m + 1,) the row with which each symbol begins, and the number of rows
    """

    parts: NDArray[np.int64]
    symbols: NDArray[np.int64]
    begins: NDArray[np.int64]

    @classmethod
    def of(cls, codes: NDArray[np.integer], U: int, edges: NDArray[np.integer]) -> "Phrases":
        """The phrases of rows ``codes`` (T,) of sequences that begin at ``edges[:-1]``."""
        symbols = codes.astype(np.int64)
        begins = np.arange(len(codes))
        first = np.zeros(len(codes), np.bool_)
        first[edges[:-1]] = True
        sizes = np.ones(U, np.int64)
        parts = np.empty((0, 2), np.int64)
        while len(parts) < MOST:
            n = len(sizes)
            may = ~(first[:-1] | first[1:]) & (sizes[symbols[:-1]] + sizes[symbols[1:]] <= LONGEST)
            at = np.flatnonzero(may)
            pairs, which, counts = np.unique(symbols[at] * n + symbols[at + 1], return_inverse=True, return_counts=True)
            often = np.flatnonzero(counts >= max(OFTEN, counts.max(initial=0) / RANGE))
            often = often[np.argsort(-counts[often], kind="stable")][: MOST - len(parts)]
            if len(often) == 0:
                break
            number = np.full(len(pairs), -1)
            number[often] = n + np.arange(len(often))
            at, symbol = _apart(at, number[which])
            symbols[at] = symbol
            kept = np.ones(len(symbols), np.bool_)
            kept[at + 1] = False
            symbols, begins, first = symbols[kept], begins[kept], first[kept]
            made = np.column_stack(np.divmod(pairs[often], n))
            parts = np.concatenate([parts, made])
            sizes = np.concatenate([sizes, sizes[made].sum(axis=1)])
        return cls(parts, symbols, np.append(begins, len(codes)))

    def first(self, n: int, U: int) -> "Phrases":
        """The same sequences with the first n phrases alone, which are the most frequent ones."""
        sizes = self.sizes(U)
        symbols, begins = self.symbols, self.begins[:-1]
        while (late := symbols >= U + n).any():
            at = np.flatnonzero(late)
            parts = self.parts[symbols[at] - U]
            second = at + np.arange(1, len(at) + 1)
            symbols, begins = np.repeat(symbols, 1 + late), np.repeat(begins, 1 + late)
            symbols[second - 1], symbols[second] = parts.T
            begins[second] += sizes[parts[:, 0]]
        return Phrases(self.parts[:n], symbols, np.append(begins, self.begins[-1]))

    def sizes(self, U: int) -> NDArray[np.int64]:
        """The rows of each symbol, of which U are rows, (U + P,)."""
        sizes = np.ones(U + len(self.parts), np.int64)
        for i, pair in enumerate(self.parts):
            sizes[U + i] = sizes[pair].sum()
        return sizes

    def within(self, codes: NDArray[np.integer], chunk: Chunk) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The symbols of a chunk of the rows ``codes`` (T,), and the row with which each begins; cut phrases are rows."""
        a = int(np.searchsorted(self.begins, chunk.start))
        b = max(a, int(np.searchsorted(self.begins, chunk.stop, side="right")) - 1)
        head = np.arange(chunk.start, min(self.begins[a], chunk.stop))
        tail = np.arange(max(self.begins[b], chunk.start), chunk.stop) if self.begins[a] <= chunk.stop else head[:0]
        symbols = np.concatenate([codes[head], self.symbols[a:b], codes[tail]])
        return symbols.astype(np.int64), np.concatenate([head, self.begins[a:b], tail])


def _apart(at: NDArray[np.intp], symbol: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Of places whose pair has a symbol, not -1, those that do not overlap: every second one of neighbours."""
    at = at[symbol >= 0]
    symbol = symbol[symbol >= 0]
    new = np.diff(at, prepend=-2) > 1
    offset = np.arange(len(at)) - np.flatnonzero(new)[np.cumsum(new) - 1]
    return at[offset % 2 == 0], symbol[offset % 2 == 0]
