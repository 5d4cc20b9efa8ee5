"""Chains whose states are left with a chance of their own at each age, so that durations may have any law (Ferguson 1980).

They are no part of a model: they tell how long its states would last, if their durations were not geometric.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..data import Chunk, SequenceSource
from ..kernels.ages import backward_ages, forward_ages
from .model import Model
from .parameters import Parameters
from .potentials import Scores, scores_of_rows
from .products import add_product
from .summary import Summary

Array = NDArray[np.floating]

NOWHERE = 1e-3  # transitions that there are at least, of every kind


class Counts(NamedTuple):
    """What is expected of the states and their ages, given all rows.

    left, stayed : (K, D) how often a state is left at each age, and how often not
    moved : (K, K) pairs of states, one after the other;  begun : (K, D) first states and their ages
    """

    left: Array
    stayed: Array
    moved: Array
    begun: Array


@dataclass(frozen=True)
class Ages:
    """A chain of states at the ages 0, 1, ..., D - 1, the last of which is that of all rows from there on.

    rows : of the states, N (K,) and S (K, F)
    begins : (K, D) chances of first states and their ages
    hazards : (K, D) chances that a state is left after a row at this age
    after : (K, K) chances of the next state, zero on the diagonal
    """

    rows: Summary
    begins: Array
    hazards: Array
    after: Array

    @classmethod
    def of(cls, total: Any, D: int) -> Self:
        """The chain with the transitions of a summary or of a start: durations are geometric, hazards the same at all ages."""
        K = total.K
        begins, M = total.transitions[0], total.transitions[1:]
        moved = _others(M)
        hazard = moved.sum(axis=1) / (moved.sum(axis=1) + np.diagonal(M) + NOWHERE)
        ages = hazard[:, None] * (1.0 - hazard[:, None]) ** np.arange(D)
        ages[:, -1] = (1.0 - hazard) ** (D - 1)
        begins = (begins + 1.0 / K) / (begins.sum() + 1.0)
        hazards = np.repeat(hazard[:, None], D, axis=1)
        return cls(total, begins[:, None] * ages, hazards, moved / moved.sum(axis=1, keepdims=True))

    def step(self, model: Model, source: SequenceSource) -> tuple[Self, Counts, float]:
        """A step of the EM algorithm (Baum et al. 1970), what is expected before it, and the bound of the rows before it.

        The bound is that of given chances and of parameters with posteriors.  One row of each age is added, which leaves the
        state as rows of all its ages do on average.
        """
        likelihood = model.likelihood
        n = source.n_rows
        scores = self._scores(model, source)
        first = np.zeros(n, np.bool_)
        first[source.edges[:-1]] = True
        K, D = self.hazards.shape
        alpha = np.empty((n, K, D))
        scale = np.empty(n)
        forward_ages(scores.L, scores.codes, first, self.begins, self.hazards, self.after, alpha, scale)
        R = np.empty((n, K))
        counts = Counts(*(np.zeros(shape) for shape in ((K, D), (K, D), (K, K), (K, D))))
        backward_ages(scores.L, scores.codes, first, self.hazards, self.after, alpha, R, *counts)
        bound = float(np.log(scale).sum() + scores.top[scores.codes].sum() - model.posterior(self.rows).cost.sum())
        hazard = (counts.left.sum(axis=1) + NOWHERE) / ((counts.left + counts.stayed).sum(axis=1) + 2.0 * NOWHERE)
        moved = _others(counts.moved)
        stepped = replace(
            self,
            rows=_rows_of(likelihood.n_statistics, source, scores, R),
            begins=(counts.begun + self.begins) / (counts.begun.sum() + 1.0),
            hazards=(counts.left + hazard[:, None]) / (counts.left + counts.stayed + 1.0),
            after=moved / moved.sum(axis=1, keepdims=True),
        )
        return stepped, counts, bound

    def _scores(self, model: Model, source: SequenceSource) -> Scores:
        """Those of the distinct rows where they are known, or of all rows."""
        parameters = Parameters(*model.likelihood.weights(self.rows.N, self.rows.S))
        if source.codes is None:
            every = Chunk(0, source.n_rows)
            codes = np.arange(source.n_rows)
            X, weights = source.rows(every), source.observed(every)
        else:
            codes = source.codes
            X, weights = source.X, np.ones(len(source.X)) if source.weights is None else source.weights
        found = scores_of_rows(model.likelihood, parameters, np.asarray(X, dtype=np.float64), np.array(weights))
        return found._replace(codes=np.asarray(codes, dtype=np.intp))


def _rows_of(F: int, source: SequenceSource, scores: Scores, R: Array) -> Summary:
    """N and S of states with these probabilities of rows (n, K)."""
    U = len(scores.L)
    weighted = R * source.observed(Chunk(0, source.n_rows))[:, None]
    counts = np.stack([np.bincount(scores.codes, weighted[:, k], U) for k in range(R.shape[1])], axis=1)
    rows = Summary.zeros(R.shape[1], F)
    rows.N[...] = counts.sum(axis=0)
    add_product(counts, scores.T, rows.S)
    return rows


def _others(M: Array) -> Array:
    """Transitions (K, K) to other states, at least `NOWHERE` for every pair, and none from a state to itself."""
    moved = M + NOWHERE
    np.fill_diagonal(moved, 0.0)
    return np.asarray(moved)
