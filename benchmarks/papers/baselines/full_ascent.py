"""Coordinate ascent on all rows with the merges and deletes of the thesis (Alg. 3.1, sections 4.1 and 4.3)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np
from scipy.special import entr

from stickbreak.likelihoods.features import features
from stickbreak.model import Model, Summary
from stickbreak.model.local import responsibilities_of


@dataclass(frozen=True)
class FullAscent:
    """Steps that hold the responsibilities (N, K) of all rows X (N, D), and candidates for moves with their exact bounds."""

    model: Model
    X: np.ndarray

    @cached_property
    def features(self) -> np.ndarray:
        """Statistics t(x) of all rows, (N, F)."""
        return np.asarray(features(self.model.likelihood, self.X))

    @cached_property
    def base(self) -> np.ndarray:
        """The log base measure of all rows, ()."""
        return np.asarray(self.model.likelihood.log_base(self.X).sum())

    def sums(self, R: np.ndarray) -> Summary:
        """N_k, S_k and H_k of responsibilities (N, K), the clusters as they come."""
        return Summary(R.sum(axis=0), R.T @ self.features, entr(R).sum(axis=0), self.base)

    def summary(self, R: np.ndarray) -> Summary:
        """The same, the clusters in the best order."""
        return self.model.ordered(self.sums(R))

    def responsibilities(self, summary: Summary) -> np.ndarray:
        """The local step: the best responsibilities (N, K) under the parameters that a summary implies."""
        parameters = self.model.parameters(summary, self.X.dtype)
        return responsibilities_of(self.model.likelihood, parameters, self.X)

    def step(self, summary: Summary) -> Summary:
        """A global and a local step."""
        return self.summary(self.responsibilities(summary))

    def merges(self, summary: Summary) -> list[Summary]:
        """A step, and then every pair of clusters as one: r_a + r_b (Thesis Eq. 4.1)."""
        R = self.responsibilities(summary)
        now = self.sums(R)
        return [self.model.ordered(joined(now, R, a, b)) for a, b in combinations(range(now.K), 2)]

    def deletes(self, summary: Summary, n_steps: int) -> Iterator[Summary]:
        """Every cluster left out, all others absorbing its rows in as many steps (Thesis 4.3)."""
        for k in range(summary.K if summary.K > 1 else 0):
            candidate = summary.take(np.delete(np.arange(summary.K), k))
            for _ in range(n_steps):
                candidate = self.step(candidate)
            yield candidate


def joined(sums: Summary, R: np.ndarray, a: int, b: int) -> Summary:
    """The sums of responsibilities R (N, K) with cluster b in cluster a < b, at the cost of its entropy alone."""
    H = np.delete(sums.H, b)
    H[a] = entr(R[:, a] + R[:, b]).sum()
    return replace(sums.merge(a, b), H=H)
