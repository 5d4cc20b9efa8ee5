"""Documents with answers: what each says beside its words, where that is known."""

import numpy as np
from numpy.typing import NDArray

from .documents import BagSource
from .sources import Array, Chunk


class AnsweredBags(BagSource):
    """Documents as rows of counts of words, with answers.

    Parameters
    ----------
    bags : counts of words
    y : (N,) the answer of each document as its response reads it, NaN where it is unknown
    """

    def __init__(self, bags: BagSource, y: Array) -> None:
        super().__init__(bags.X, bags.weights)
        self.y = y

    def answers(self, chunk: Chunk) -> Array:
        """The answers of the documents of a chunk, (n,)."""
        return self.y[chunk.start : chunk.stop]

    def sample(self, n: int, rng: np.random.Generator) -> BagSource:
        """A source of n random documents with their answers, held in memory (all documents where there are fewer)."""
        return self if n >= self.n_rows else self.taken(np.sort(rng.permutation(self.present())[:n]))

    def taken(self, rows: NDArray[np.integer]) -> "AnsweredBags":
        """A source of the documents at the given positions, with their answers, held in memory."""
        return AnsweredBags(BagSource(self._take(rows)), self.y[rows])

    def fingerprint(self) -> str:
        """A hash of the counts and the answers."""
        return self._digest(self.y.astype(np.float64))
