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

    def summary(self, R: np.ndarray) -> Summary:
        """N_k, S_k and H_k of responsibilities (N, K), the clusters in the best order."""
        base = np.asarray(self.model.likelihood.log_base(self.X).sum())
        return self.model.ordered(Summary(R.sum(axis=0), R.T @ self.features, entr(R).sum(axis=0), base))

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
        now = Summary(R.sum(axis=0), R.T @ self.features, entr(R).sum(axis=0), summary.base)
        return [self._merged(now, R, a, b) for a, b in combinations(range(now.K), 2)]

    def _merged(self, now: Summary, R: np.ndarray, a: int, b: int) -> Summary:
        H = np.delete(now.H, b)
        H[a] = entr(R[:, a] + R[:, b]).sum()
        return self.model.ordered(replace(now.merge(a, b), H=H))

    def deletes(self, summary: Summary, n_steps: int) -> Iterator[Summary]:
        """Every cluster left out, all others absorbing its rows in as many steps (Thesis 4.3)."""
        for k in range(summary.K if summary.K > 1 else 0):
            candidate = summary.take(np.delete(np.arange(summary.K), k))
            for _ in range(n_steps):
                candidate = self.step(candidate)
            yield candidate
