"""A bounded sample of a stream, which stands for rows that are gone."""

from typing import NamedTuple, Self

import numpy as np
from scipy import sparse

from ..data import ArraySource, SparseSource
from ..likelihoods.features import Rows


class Remembered(NamedTuple):
    """A bounded sample of the rows of a stream.

    X : (R, D), each row with the same chance to be in it, or with forgetting a chance that fades as its weight does
    waiting : rows that have come since moves were last judged on X
    turn : the cluster whose split is tried next
    """

    X: Rows
    waiting: int = 0
    turn: int = 0

    @property
    def size(self) -> int:
        """R."""
        return int(self.X.shape[0])

    def standing_for(self, weight: float) -> ArraySource:
        """The rows of the sample, with weights that add up to that of the stream."""
        weights = np.full(self.size, weight / max(self.size, 1))
        return SparseSource(self.X, weights) if sparse.issparse(self.X) else ArraySource(self.X, weights)

    def after(self, source: ArraySource, weight: float, most: int, rng: np.random.Generator) -> Self:
        """The sample, of at most ``most`` rows, after those of a source came to others of this weight."""
        n = source.n_present
        share = source.total_weight / (weight + source.total_weight)
        new = n if self.size + n <= most else int(rng.binomial(most, share))
        new = int(np.clip(new, min(n, most - self.size), min(n, most)))
        old = min(self.size, most - new)
        X = source.take(source.drawn(new, rng))[0]
        stays = self.X[np.sort(rng.permutation(self.size)[:old])]
        both = sparse.vstack([stays, X], format="csr") if sparse.issparse(X) else np.concatenate([stays, X])
        return type(self)(both, self.waiting + n, self.turn)
