"""One pass over rows, in which clusters are born, pruned and merged (SVA Alg. 1 and section 5): the state and its steps."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit

from ..allocations.seating import Seating
from ..data import ArraySource, Chunk
from ..kernels.assign import count_and_entropy
from ..kernels.overlaps import shared_entropies
from ..likelihoods import Likelihood
from ..likelihoods.features import features
from ..model import Model, Summary
from ..model.local import responsibility_threshold, softmax
from ..model.products import add_kept
from .executor import Executor

Array = NDArray[np.floating]

PIECE = 1024  # rows that one task scores
EARLY = 4  # a block holds at most one in so many of the rows seen before it: clusters change fast at first
LATER = 1.25  # times as many rows as at the last look, clusters are pruned again


class Clusters(NamedTuple):
    """The clusters after some rows.

    N : (K,) sums of responsibilities, w_k;  S : (K, F) of statistics, zeta_k
    shared : (K, K) entropy of the assignments that is lost where two become one, upper triangle
    born : (K,) weight of the rows seen before each was born
    seen : weight of the rows so far
    """

    N: Array
    S: Array
    shared: Array
    born: Array
    seen: float

    @classmethod
    def of(cls, N: Array, S: Array) -> "Clusters":
        """Clusters that are there before the first row."""
        K = len(N)
        return cls(N, S, np.zeros((K, K)), np.zeros(K), 0.0)

    @property
    def K(self) -> int:
        """Number of clusters."""
        return len(self.N)

    @property
    def summary(self) -> Summary:
        """Counts and statistics, without entropies."""
        return Summary(self.N, self.S, np.zeros(self.K), np.zeros(()))

    def take(self, clusters: NDArray[np.integer]) -> "Clusters":
        """Some of the clusters."""
        square = np.ix_(clusters, clusters)
        return Clusters(self.N[clusters], self.S[clusters], self.shared[square], self.born[clusters], self.seen)

    def merge(self, a: int, b: int) -> "Clusters":
        """Cluster b joins a < b; the entropy shared with others is at most the sum."""
        whole = self.shared + self.shared.T
        whole[a] += whole[b]
        whole[:, a] = whole[a]
        N = self.N.copy()
        N[a] += N[b]
        S = self.S.copy()
        S[a] += S[b]
        born = self.born.copy()
        born[a] = min(born[a], born[b])
        kept = np.delete(np.arange(self.K), b)
        return Clusters(N, S, np.triu(whole, 1), born, self.seen).take(kept)


class Birth(NamedTuple):
    """A row that begins a cluster: its number, weight, features (F,), and shares in the clusters, the new one last (K + 1,)."""

    row: int
    weight: float
    T: Array
    shares: Array


class Passed(NamedTuple):
    """What the rows of a piece say up to the first birth: sums to add, their weight, and the birth, if any."""

    N: Array
    S: Array
    shared: Array
    weight: float
    birth: Birth | None


@dataclass(frozen=True)
class PassTask:
    """Score the rows of a piece under the clusters as they are, up to the first that begins a cluster.

    A row joins cluster k in proportion to the weight of its seat times its predictive density (SVA Eq. 15, Alg. 1),

        rho_k ~ (w_k - d) p(x | cluster k),    rho_new ~ (alpha + d K) p(x | no rows).

    N, S : of the clusters;  epsilon : a cluster is born where rho_new is larger;  grows : whether there may be more
    """

    likelihood: Likelihood
    seating: Seating
    N: Array
    S: Array
    epsilon: float
    grows: bool

    def __call__(self, source: ArraySource, chunk: Chunk) -> Passed:
        """Pass over the rows of a chunk."""
        X, weights = source.read(chunk)
        source.release()
        K, F = self.S.shape
        found = Passed(np.zeros(K), np.zeros((K, F)), np.zeros((K, K)), 0.0, None)
        present = weights > 0.0
        if K == 0:
            if not present.any():
                return found
            first = int(present.argmax())
            return found._replace(birth=self._birth(X, weights, chunk, first, np.ones(1)))
        N = np.append(self.N, 0.0)
        S = np.vstack([self.S, np.zeros(F)])
        scores = self.likelihood.log_predictive(X.astype(np.float64, copy=False), N, S)
        scores += self.seating.log_weights(self.N)
        R = np.ascontiguousarray(scores[:, :K])
        best = R.max(axis=1)
        kept = softmax(R, np.zeros(K), responsibility_threshold(R.dtype), np.inf)
        if kept is None:
            raise FloatingPointError(f"rows {chunk.start} to {chunk.stop} have no density under any cluster.")
        new = expit(scores[:, K] - best + np.log(R.max(axis=1)))
        births = np.flatnonzero((new > self.epsilon) & present) if self.grows else np.empty(0, np.intp)
        stop = int(births[0]) if len(births) else len(weights)
        part = kept.part(0, stop)
        own = weights[:stop]
        count_and_entropy(*part, own, np.ones(stop), found.N, np.zeros(K))
        add_kept(part, own, features(self.likelihood, X[:stop]), found.S)
        shared_entropies(*part, own, found.shared)
        birth = None
        if len(births):
            shares = np.append(R[stop] * (1.0 - new[stop]), new[stop])
            birth = self._birth(X, weights, chunk, stop, shares)
        return found._replace(weight=float(own.sum()), birth=birth)

    def _birth(self, X: Any, weights: Array, chunk: Chunk, place: int, shares: Array) -> Birth:
        T = features(self.likelihood, X[place : place + 1])
        dense = np.asarray(T.toarray() if sparse.issparse(T) else T, dtype=np.float64)[0]
        return Birth(chunk.start + place, float(weights[place]), dense, shares)


@dataclass(frozen=True)
class OnePass:
    """How a pass goes.

    model : with all hyperparameters known
    epsilon : a row begins a cluster where its share in a new one is larger
    prune : clusters go whose part of the rows since their birth is smaller
    merge : whether two clusters become one where that raises the bound
    block_rows : rows scored under the same clusters, at most
    protected : so many of the first clusters are neither pruned nor merged with each other
    """

    model: Model
    seating: Seating
    epsilon: float
    prune: float
    merge: bool
    block_rows: int
    protected: int = 0

    def over(self, source: ArraySource, clusters: Clusters, executor: Executor) -> Clusters:
        """The clusters after a pass over all rows.

        A block of rows is scored under the clusters as they are before it.  It ends early with a row that begins a cluster, and
        then blocks grow again from one row on, so that the rows after it see the new cluster.  Pairs are merged at the end: two
        that are merged while they have few rows cannot be taken apart again.
        """
        place = 0
        size = 1
        look = clusters.seen
        while place < source.n_rows:
            most = max(1, min(self.block_rows, int(clusters.N.sum()) // EARLY))
            size = min(size, most)
            stop = min(place + size, source.n_rows)
            clusters, place = self._block(source, place, stop, clusters, executor)
            size = 2 * size if place == stop else 1
            if clusters.seen > look or place == source.n_rows:
                clusters = self.pruned(clusters)
                look = LATER * clusters.seen
        return self.merged(clusters) if self.merge else clusters

    def _block(
        self, source: ArraySource, start: int, stop: int, clusters: Clusters, executor: Executor
    ) -> tuple[Clusters, int]:
        """The clusters after the rows of a block up to its first birth, and where the next block begins."""
        grows = self.seating.new_weight(clusters.K) > 0.0 and self.model.room > clusters.K
        task = PassTask(self.model.likelihood, self.seating, clusters.N, clusters.S, self.epsilon, grows)
        edges = [*range(start, stop, PIECE), stop]
        chunks = [Chunk(a, b) for a, b in pairwise(edges)]
        N, S, shared, born, seen = clusters
        birth = None
        for passed in executor.over(source, task, chunks):
            N = N + passed.N
            S = S + passed.S
            shared = shared + passed.shared
            seen += passed.weight
            birth = passed.birth
            if birth is not None:
                break
        clusters = Clusters(N, S, shared, born, seen)
        return (clusters, stop) if birth is None else (_with_birth(clusters, birth), birth.row + 1)

    def pruned(self, clusters: Clusters) -> Clusters:
        """Without those that have few rows since their birth."""
        age = np.maximum(clusters.seen - clusters.born, 1.0)
        kept = (self.prune * age <= clusters.N) | (np.arange(clusters.K) < self.protected)
        return clusters.take(np.flatnonzero(kept)) if kept.any() else clusters

    def merged(self, clusters: Clusters) -> Clusters:
        """Pairs made one, the pair each time whose merge raises the bound most, until none does."""
        gains = np.array([self._gains(clusters, k) for k in range(clusters.K)])
        while clusters.K > 1:
            a, b = sorted(divmod(int(gains.argmax()), clusters.K))
            if not gains[a, b] > 0.0:
                break
            clusters = clusters.merge(a, b)
            gains = np.delete(np.delete(gains, b, axis=0), b, axis=1)
            gains[a] = self._gains(clusters, a)
            gains[:, a] = gains[a]
        return clusters

    def _gains(self, clusters: Clusters, k: int) -> Array:
        """What the bound gains where cluster k and each other become one, (K,); minus infinity where they must not.

        The log marginal of the rows of both, and the log probability of the assignments, with the pair as one, less the same
        with two, less the entropy that is lost.
        """
        likelihood = self.model.likelihood
        N = clusters.N
        S = clusters.S
        gains = likelihood.log_marginal(N + N[k], S + S[k])
        single = likelihood.log_marginal(N, S)
        gains -= single + single[k] + clusters.shared[k] + clusters.shared[:, k]
        other = np.arange(clusters.K)
        gains += self.model.allocation.merge_gains(clusters.summary, N, np.full(clusters.K, k), other)
        gains[(other == k) | (np.maximum(other, k) < self.protected)] = -np.inf
        return np.asarray(gains)


def _with_birth(clusters: Clusters, birth: Birth) -> Clusters:
    """The clusters after the row that begins another."""
    K = clusters.K
    added = birth.weight * birth.shares
    N = np.append(clusters.N, 0.0) + added
    S = np.vstack([clusters.S, np.zeros_like(birth.T)]) + np.outer(added, birth.T)
    shared = np.pad(clusters.shared, (0, 1))
    indptr = np.array([0, K + 1])
    shared_entropies(indptr, np.arange(K + 1), birth.shares, np.array([birth.weight]), shared)
    return Clusters(N, S, shared, np.append(clusters.born, clusters.seen), clusters.seen + birth.weight)
