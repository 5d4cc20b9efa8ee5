"""Clusters that are named in advance: any family, with a prior of its own for each of some clusters."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array, issparse

from ._around import Around
from ._base import Array, Likelihood
from ._hyperparameters import require
from ._rows import Rows
from .features import features

MARK = 1e-30  # of a seed on its cluster, in each sum over rows: it is above zero, and nothing beside any other number
APART = 1e8  # nats that a cluster loses by each seed beyond one
TIE = 1e-6  # nats: a seed prefers a new cluster to one that is no better


@dataclass(frozen=True, eq=False)
class Seeded(Around):
    """A family in which G clusters have a name and a prior of their own.

    The prior of a cluster with seed g is that of the family after n_g rows with summed statistics s_g:

        lambda_k = lambda_0 + (s_g, n_g) + (S_k, N_k),    log marginal = log Z(lambda_k) - log Z(lambda_0 + (s_g, n_g))

    and that of all other clusters is lambda_0.  So the bound is the exact one of that model; seeds are no data, and are not
    counted among rows.  Each seed is on one cluster, and no cluster has two.

    Which cluster has which seed is said by the last G statistics, which no row adds to: those of a cluster that has seed g
    are positive at g (`MARK` in each sum of rows), so that marks move with clusters when these are reordered, merged or
    replaced.  A merge of a cluster with a seed and one without has that seed; one of two seeds loses `APART` nats, which
    nothing makes good.  Clusters with a seed are never deleted, also when they have no rows.

    Parameters
    ----------
    family : likelihood, resolved and conjugate, without latent variables
    counts : (G,) n_g >= 0
    sums : (G, F) s_g, statistics that rows can have
    names : G names that differ

    References
    ----------
    Jagarlamudi, Daume and Udupa, Incorporating lexical priors into topic models, 2012 (seed words).
    """

    family: Likelihood
    counts: Any
    sums: Any
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        require(isinstance(self.family, Likelihood), "family", self.family, "a likelihood")
        require(self.family.conjugate and self.family.latent is None, "family", self.family, "a conjugate family")
        names = isinstance(self.names, tuple) and all(isinstance(name, str) for name in self.names)
        require(names and len(set(self.names)) == len(self.names) > 0, "names", self.names, "names that differ")
        shape = (len(self.names), self.family.n_statistics)
        require(np.shape(self.counts) == shape[:1], "counts", self.counts, f"one for each of {shape[0]} names")
        require(np.shape(self.sums) == shape, "sums", np.shape(self.sums), f"of shape {shape}")
        self._take_over()

    # Seeds -------------------------------------------------------------------------------------------------------------

    @property
    def apart(self) -> float:
        """`APART`."""
        return APART

    @property
    def plain(self) -> Likelihood:
        """The family."""
        return self.family

    def named(self, S: Array) -> NDArray[np.bool_]:
        """Clusters with a seed, (K,)."""
        return np.asarray(self._marks(S).any(axis=1))

    def names_of(self, S: Array) -> dict[str, int]:
        """The cluster of each seed by its name."""
        return dict(zip(self.names, self.owners(S).tolist()))

    def owners(self, S: Array) -> NDArray[np.intp]:
        """The cluster of each seed, (G,)."""
        return np.asarray(self._marks(S).argmax(axis=0))

    def marks_of(self, owners: NDArray[np.integer], K: int) -> Array:
        """The last G statistics (K, G) of clusters, given the cluster of each seed."""
        marks = np.zeros((K, len(self.names)))
        marks[owners, np.arange(len(owners))] = MARK
        return marks

    def carry(self, source: Array, S: Array) -> None:
        """Marks of S (K, F) become those of ``source`` (K, F), such as weights W or other sums."""
        F = self.family.n_statistics
        S[:, F:] = source[:, F:]

    def inherited(self, N: Array, S: Array, marks: Array) -> Array:
        """Statistics of children (J, F), one of which has the seed of their parent, if any: that with the highest log marginal.

        marks : (F,) statistics of the parent
        """
        F = self.family.n_statistics
        S = S.copy()
        S[:, F:] = 0.0
        for g in np.flatnonzero(marks[F:] > 0.0):
            S[self._gains(N, S[:, :F], g).argmax(), F + g] = MARK
        return S

    def begun(self, N: Array, S: Array, most: int) -> Array:
        """Statistics of a start with each seed on a cluster: where it has none, on that which gains most by it, or a new one.

        S : (K, F) with marks or without, of a start with counts N;  most : clusters that there may be

        Raises
        ------
        ValueError : there are more seeds than clusters.
        """
        F = self.family.n_statistics
        if S.shape[1] == F:
            S = np.hstack([S, np.zeros((len(S), len(self.names)))])
        lost = np.flatnonzero(~self._marks(S).any(axis=0))
        if len(lost) == 0:
            return S
        free = np.flatnonzero(~self.named(S))
        more = max(0, min(len(lost), most - len(S)))
        if len(free) + more < len(lost):
            raise ValueError(
                f"seeds names {len(self.names)} clusters, but there may be no more than {max(most, len(S))}; name fewer."
            )
        gains = np.zeros((len(lost), len(free) + more))
        for i, g in enumerate(lost):
            gains[i, : len(free)] = self._gains(N[free], S[free, :F], g) - TIE
        seeds, columns = linear_sum_assignment(-gains)
        new = np.unique(columns[columns >= len(free)])
        places = np.concatenate([free, np.zeros(more, np.intp)])
        places[new] = len(S) + np.arange(len(new))
        S = np.vstack([S, np.zeros((len(new), S.shape[1]))])
        S[places[columns], F + lost[seeds]] = MARK
        return S

    def renamed(self, N: Array, S: Array) -> Array:
        """Statistics with each seed on the cluster that it suits, all together; ``S`` itself where nothing is gained.

        The sum of the log marginals is that of the family and one term for each seed, which depends on its cluster alone: an
        assignment problem.
        """
        own = S[:, : self.family.n_statistics]
        gains = np.stack([self._gains(N, own, g) for g in range(len(self.names))])
        seeds, places = linear_sum_assignment(-gains)
        if not gains[seeds, places].sum() > gains[seeds, self.owners(S)].sum() + TIE:
            return S
        return np.hstack([own, self.marks_of(places, len(S))])

    def _gains(self, N: Array, S: Array, g: Any) -> Array:
        """What each cluster, without a seed, gains by a seed: the difference of its log marginals, (K,)."""
        prior = self.family.log_marginal(self.counts[[g]], self.sums[[g]])
        seeded = self.family.log_marginal(N + self.counts[g], S + self.sums[g]) - prior
        return np.asarray(seeded - self.family.log_marginal(N, S))

    def _marks(self, S: Array) -> NDArray[np.bool_]:
        """Which cluster has which seed, (K, G)."""
        return np.asarray(S[..., self.family.n_statistics :] > 0.0)

    def _of_family(self, N: Array, S: Array) -> tuple[Array, Array]:
        """Counts and statistics of the family, those of seeds added."""
        own = S[:, : self.family.n_statistics]
        marks = self._marks(S)
        marked = np.flatnonzero(marks.any(axis=1))
        if len(marked) == 0:
            return N, own
        M = marks[marked].astype(np.float64)
        N = np.array(N, np.float64)
        own = own.copy()
        N[marked] += M @ self.counts
        own[marked] += M @ self.sums
        return N, own

    # What inference needs ----------------------------------------------------------------------------------------------

    @property
    def n_statistics(self) -> int:
        """F, those of the family and one for each seed."""
        return self.family.n_statistics + len(self.names)

    @property
    def row_entries(self) -> int:
        """Those of the family."""
        return self.family.row_entries

    def features(self, X: Rows, out: Array | None) -> Any:
        """T (n, F): the features of the family, and zeros."""
        F = self.family.n_statistics
        if out is None:
            T = features(self.family, X, X.dtype)
            T = T if issparse(T) else csr_array(T)
            return csr_array((T.data, T.indices, T.indptr), (T.shape[0], self.n_statistics))
        self.family.features(X, out[:, :F])
        out[:, F:] = 0.0
        return out

    def weights(self, N: Array, S: Array) -> tuple[Array, Array]:
        """W and b of the family, given rows and seeds; of seeds, their marks."""
        W, b = super().weights(N, S)
        return np.hstack([W, np.where(self._marks(S), MARK, 0.0)]), b

    def draw_weights(self, N: Array, S: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """Refused."""
        self._refuse_draws()

    def log_marginal(self, N: Array, S: Array) -> Array:
        """Log Z(lambda_k) - log Z(lambda_0 + seeds), (K,)."""
        marks = self._marks(S)
        value = super().log_marginal(N, S)
        if marks.any():
            prior = self.family.log_marginal(self.counts, self.sums)
            value = value - marks @ prior - APART * np.maximum(marks.sum(axis=1) - 1, 0)
        return np.asarray(value)

    def with_missing(self, missing: NDArray[np.bool_], S: Array) -> tuple[Self, Array]:
        """The family made for missing values in columns (D,), and wider statistics of clusters and seeds."""
        family, wider = self.family.with_missing(missing, S[:, : self.family.n_statistics])
        sums = self.family.with_missing(missing, self.sums)[1]
        return replace(self, family=family, sums=sums), np.hstack([wider, S[:, self.family.n_statistics :]])

    def check(self, D: int, N: Array, S: Array) -> None:
        """Check the family with clusters and with seeds alone, and that each seed is on one cluster, and no two on the same."""
        shaped = S.ndim == 2 and S.shape == (len(N), self.n_statistics)
        require(shaped, "shape", S.shape, f"that of {len(N)} clusters with {self.n_statistics} statistics")
        F = self.family.n_statistics
        self.family.check(D, N, S[:, :F])
        counts = np.asarray(self.counts, np.float64)
        require(bool((np.isfinite(counts) & (counts >= 0.0)).all()), "counts", counts, "numbers of at least 0")
        self.family.check_sums(counts, np.asarray(self.sums, np.float64))
        marks = S[:, F:] > 0.0
        require(bool((S[:, F:] >= 0.0).all()), "marks", S[:, F:], "numbers of at least 0")
        require(bool((marks.sum(axis=0) == 1).all()), "marks", marks.sum(axis=0), "on one cluster for each seed")
        require(bool((marks.sum(axis=1) <= 1).all()), "marks", marks.sum(axis=1), "of one seed at most on each cluster")
