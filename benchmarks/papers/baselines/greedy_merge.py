"""Memoized laps with merges that one batch decides on: GreedyMerge (2013, section 4.1, after Bryant and Sudderth 2012)."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np
from scipy.special import softmax

from papers.baselines.full_ascent import FullAscent, joined
from stickbreak.model import Model, Summary


@dataclass(frozen=True)
class GreedyMerge:
    """Laps over the batches; after each visit one pair is merged if the ELBO of that batch alone is higher for it.

    The ELBO of all rows may fall.  Responsibilities of all rows are kept, so that it is exact nevertheless.

    Attributes
    ----------
    parts : the rows of each batch
    """

    parts: tuple[FullAscent, ...]

    @classmethod
    def of(cls, model: Model, X: np.ndarray, n_batches: int) -> "GreedyMerge":
        """For rows X (N, D) in so many batches, in order."""
        return cls(tuple(FullAscent(model, part) for part in np.array_split(X, n_batches)))

    @property
    def model(self) -> Model:
        """Of all batches."""
        return self.parts[0].model

    def laps(self, start: Summary, n_laps: int, rng: np.random.Generator) -> Iterator[Summary]:
        """The summary of all rows after each lap; the parameters of the first follow from ``start``."""
        R = [part.responsibilities(start) for part in self.parts]
        for _ in range(n_laps):
            R = self.lap(R, rng)
            yield self.model.ordered(self._total(R))

    def lap(self, R: list[np.ndarray], rng: np.random.Generator) -> list[np.ndarray]:
        """Visit every batch once, in random order, from the responsibilities (n, K) of each."""
        order = self.model.allocation.order(self._total(R))
        R = [r[:, order] for r in R]
        sums = self._sums(R)
        total = reduce(add, sums)
        for batch in rng.permutation(len(R)):
            part = self.parts[batch]
            R[batch] = part.responsibilities(total)
            seen = part.sums(R[batch])
            total = total - sums[batch] + seen
            sums[batch] = seen
            pair = self.pair(total, rng)
            if pair is not None and self.gain(seen, R[batch], *pair) > 0.0:
                sums = [joined(s, r, *pair) for s, r in zip(sums, R)]
                R = [merged(r, *pair) for r in R]
                total = reduce(add, sums)
        return R

    def gain(self, seen: Summary, R: np.ndarray, a: int, b: int) -> float:
        """What the ELBO of the rows of one batch, as if there were no others, gains by a merge."""
        model = self.model
        return model.bound(model.ordered(joined(seen, R, a, b))) - model.bound(model.ordered(seen))

    def pair(self, total: Summary, rng: np.random.Generator) -> tuple[int, int] | None:
        """Two clusters a < b: one at random, the other by the ratio of marginal likelihoods M (2013, Eq. 12)

            p(b | a) = M(S_a + S_b) / (M(S_a) M(S_b)), normalised.

        None if there is only one.
        """
        if total.K < 2:
            return None
        a = int(rng.integers(total.K))
        likelihood = self.model.likelihood
        alone = likelihood.log_marginal(total.N, total.S)
        together = likelihood.log_marginal(total.N[a] + total.N, total.S[a] + total.S)
        log_ratio = together - alone
        log_ratio[a] = -np.inf
        b = int(rng.choice(total.K, p=softmax(log_ratio)))
        return min(a, b), max(a, b)

    def _sums(self, R: list[np.ndarray]) -> list[Summary]:
        return [part.sums(r) for part, r in zip(self.parts, R)]

    def _total(self, R: list[np.ndarray]) -> Summary:
        return reduce(add, self._sums(R))


def merged(R: np.ndarray, a: int, b: int) -> np.ndarray:
    """Responsibilities (n, K - 1) with cluster b in cluster a < b."""
    together = np.delete(R, b, axis=1)
    together[:, a] += R[:, b]
    return together
