"""A partition of rows into clusters with their additive statistics, from which rows are taken and to which they are given."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ...allocations.mixture import MixturePrior
from ...allocations.seating import Seating
from ...likelihoods import Likelihood
from ...model.products import add_product

Array = NDArray[np.floating]
Labels = NDArray[np.int64]

NUMBERS = 1 << 20  # in the features of a block of rows
FAR = 1e8  # times the size of the features of a usual row


class Table(NamedTuple):
    """What a sampler knows of the rows.

    likelihood : with all hyperparameters known
    allocation : the prior
    seating : that of partitions, at the present concentration
    T : (N, F) the features of the rows, dense or CSR
    alone : (N,) the log marginal likelihood of each row by itself
    base : sum_n log h(x_n)
    far : (N,) rows whose features are so large that nothing is left of others after they are taken from a sum
    """

    likelihood: Likelihood
    allocation: MixturePrior
    seating: Seating
    T: Any
    alone: Array
    base: float
    far: NDArray[np.bool_]

    @classmethod
    def of(cls, likelihood: Likelihood, allocation: MixturePrior, T: Any, base: float) -> Self:
        """The table of rows with features T (N, F), dense or CSR."""
        N, F = T.shape
        size = max(1, NUMBERS // F)
        alone = np.empty(N)
        largest = np.empty(N)
        for start in range(0, N, size):
            rows = slice(start, start + size)
            block = T[rows]
            dense = np.asarray(block.toarray() if sparse.issparse(block) else block)
            alone[rows] = likelihood.log_marginal(np.ones(len(dense)), dense)
            largest[rows] = np.abs(dense).max(axis=1)
        usual = np.median(largest[largest > 0.0]) if (largest > 0.0).any() else 0.0
        return cls(likelihood, allocation, allocation.sticks, T, alone, base, largest > FAR * usual)

    @property
    def n_rows(self) -> int:
        """N."""
        return len(self.alone)

    def reseated(self, log_chance: Callable[[Seating], float], rng: np.random.Generator) -> Self:
        """The table with the seating at a concentration drawn given labels, where the concentration has a prior.

        log_chance : log probability of the labels with a seating
        """
        return self._replace(seating=self.allocation.draw_seating(self.seating, log_chance, rng))

    def rows(self, which: NDArray[np.integer]) -> Array:
        """The features of some rows, dense, (n, F)."""
        found = self.T[which]
        return np.asarray(found.toarray() if sparse.issparse(found) else found)

    def sums(self, labels: Labels, K: int) -> tuple[Array, Array]:
        """Counts (K,) and summed statistics (K, F) of the rows with each label from 0 to K - 1."""
        members = sparse.csr_array((np.ones(len(labels)), labels, np.arange(len(labels) + 1)), (len(labels), K))
        S = np.zeros((K, self.T.shape[1]))
        add_product(members, self.T, S)
        return np.bincount(labels, minlength=K).astype(np.float64), S

    def log_marginal(self, N: Array, S: Array) -> Array:
        """Log marginal likelihoods of sets of rows with counts N (...) and statistics S (..., F), without base measure."""
        flat = self.likelihood.log_marginal(N.ravel(), S.reshape(-1, S.shape[-1]))
        return flat.reshape(N.shape)


@dataclass
class Partition:
    """Rows in K clusters, none of them empty, with the statistics of these.

    Attributes
    ----------
    labels : (N,) the cluster of each row
    N : (K,) rows of each cluster
    S : (K, F) their summed statistics
    marginal : (K,) their log marginal likelihoods
    before : (J, F) of the first clusters, statistics that rows other than those of the table have added; the first are never
        empty.  None where there are no other rows
    """

    table: Table
    labels: Labels
    N: Array
    S: Array
    marginal: Array
    before: Array | None = None

    @classmethod
    def of(cls, table: Table, labels: NDArray[np.integer]) -> Self:
        """The partition with these labels (N,), which are numbered anew."""
        codes = np.unique(labels, return_inverse=True)[1].astype(np.int64)
        N, S = table.sums(codes, int(codes.max()) + 1)
        return cls(table, codes, N, S, table.log_marginal(N, S))

    def fresh(self) -> Self:
        """The same with statistics summed up anew: those of rows that come and go drift by rounding."""
        return self.of(self.table, self.labels)

    @property
    def K(self) -> int:
        """Number of clusters."""
        return len(self.N)

    @property
    def concentration(self) -> float:
        """That of the prior."""
        return self.table.seating.concentration

    @property
    def log_joint(self) -> float:
        """Log p(X, partition): of the partition under the prior, and of the rows given it, parameters integrated out."""
        return self.table.seating.log_partition(self.N) + float(self.marginal.sum()) + self.table.base

    def gains(self, rows: NDArray[np.integer], clusters: NDArray[np.integer]) -> Array:
        """Log p(x_i | the other rows of cluster k) (n, J), without base measure: ratios of marginals (BJ Eq. 25)."""
        own = self.labels[rows][:, None] == clusters
        sign = np.where(own, -1.0, 1.0)
        N = self.N[clusters] + sign
        S = self.table.rows(rows)[:, None, :] * sign[:, :, None]
        S += self.S[clusters]
        S[own & (N < 0.5)] = 0.0  # a cluster without its only row: what rounding leaves is nothing
        for i, j in np.argwhere(own & self.table.far[rows][:, None]):
            S[i, j] = self._summed(int(clusters[j]), int(rows[i]))
        return np.asarray((self.table.log_marginal(N, S) - self.marginal[clusters]) * sign)

    def move(self, row: int, k: int, gain: float, loss: float) -> int:
        """Give a row to cluster k, or K for a new one; returns the number of the cluster that went because it was empty, or -1.

        The last cluster takes the number of one that goes.

        gain : log p(x | cluster k);  loss : log p(x | the other rows of its cluster)
        """
        a = int(self.labels[row])
        t = self.table.rows(np.array([row]))[0]
        if k == self.K:
            self.N = np.append(self.N, 0.0)
            self.S = np.vstack([self.S, np.zeros_like(t)])
            self.marginal = np.append(self.marginal, 0.0)
        self.labels[row] = k
        self.N[k] += 1.0
        self.S[k] += t
        self.marginal[k] += gain
        self.N[a] -= 1.0
        self.S[a] = self._summed(a) if self.table.far[row] else self.S[a] - t
        self.marginal[a] -= loss
        return self._drop(a) if self.N[a] < 0.5 else -1

    def _summed(self, k: int, without: int = -1) -> Array:
        """The statistics of cluster k, summed anew, without one of its rows."""
        members = np.flatnonzero(self.labels == k)
        found = np.asarray(self.table.T[members[members != without]].sum(axis=0)).ravel()
        return found if self.before is None or k >= len(self.before) else found + self.before[k]

    def _drop(self, a: int) -> int:
        last = self.K - 1
        if a != last:
            self.labels[self.labels == last] = a
            for values in (self.N, self.S, self.marginal):
                values[a] = values[last]
        self.N = self.N[:last]
        self.S = self.S[:last]
        self.marginal = self.marginal[:last]
        return a
