"""Exchangeable rows, each in one cluster: the data of mixtures."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..allocations.mixture import MixturePrior
from ..data import ArraySource, SparseSource
from ..data.distinct import distinct_rows
from ..kernels.assign import gather_mass, mass_outside, select_rows
from ..kernels.assign import owners as largest_shares
from ..likelihoods import Likelihood
from ..likelihoods.features import Rows, prefers_sparse
from ..likelihoods.responsibilities import Responsibilities
from .kind import THRESHOLD, Batch, Drawn, Owners, Recipe, share_of_limit
from .local import local_step, restricted_step
from .near import near_step, nearest_clusters
from .parameters import Parameters
from .summary import Summary

Array = NDArray[np.floating]


@dataclass(frozen=True)
class Tuning:
    """Chosen by benchmarks/near_laps.py.

    Attributes
    ----------
    many : times the candidates of a row: with fewer clusters visits look at all of them
    large : numbers that a visit to all rows and clusters looks at, with fewer of which it takes no time
    far : nats that the average row of a cluster loses in one that a row is not likely to choose
    """

    many: int = 3
    large: int = 1 << 28
    far: float = 100.0


TUNING = Tuning()


@dataclass(frozen=True)
class RowKind:
    """Rows that choose clusters independently (see `stickbreak.model.kind.Kind`).

    Parameters
    ----------
    most_kept : int >= 1, or None
        L, the most clusters that a row has responsibilities for (Thesis 7.1); 1 is hard assignment.
    candidates : int >= 2, or None
        C, the clusters near its own that a row chooses among, where there are many clusters and rows; None: all of them.
    """

    most_kept: int | None = None
    candidates: int | None = None
    units: ClassVar[str] = "rows"
    allocations: ClassVar[type] = MixturePrior
    summary: ClassVar[type[Summary]] = Summary
    sample_size: ClassVar[int] = 3000
    takes_latent: ClassVar[bool] = True
    has_documents: ClassVar[bool] = False
    has_order: ClassVar[bool] = False
    recipe: ClassVar[Recipe] = Recipe(
        whole=False, tries={"birth": 3, "merge": 2, "delete": 2}, scored=True, pairs=4.0, ordered=True
    )

    def start(self, rows: Summary) -> Summary:
        """The same."""
        return rows

    def rounded(self, parameters: Parameters, dtype: np.dtype[np.floating]) -> Parameters:
        """Weights and bias in this precision."""
        return Parameters(parameters.W.astype(dtype, copy=False), parameters.bias.astype(dtype, copy=False))

    def near(
        self, likelihood: Likelihood, K: int, divergences: Callable[[], Array], source: ArraySource
    ) -> "NearRows | None":
        """Rows that choose among clusters near their own, where that saves time."""
        C = self.candidates
        if C is None or TUNING.many * C > K or source.n_rows * K * likelihood.n_statistics < TUNING.large:
            return None
        if likelihood.hidden is not None or prefers_sparse(likelihood) or isinstance(source, SparseSource):
            return None
        found = divergences()
        return NearRows(
            self.most_kept, C, nearest=tuple(nearest_clusters(found, C, far) for far in (TUNING.far, np.inf))
        )

    def prepare(self, likelihood: Likelihood, parameters: Parameters, source: ArraySource) -> Parameters:
        """What the local step of every chunk shares: the parameters alone."""
        return parameters

    def local_step(
        self, likelihood: Likelihood, parameters: Parameters, batch: Batch, base: bool, keep: bool
    ) -> tuple[Summary, Responsibilities]:
        """Responsibilities and summary of a chunk of rows."""
        return local_step(likelihood, parameters, batch.X, batch.weights, base, self.most_kept)

    def track(
        self,
        likelihood: Likelihood,
        parameters: Parameters | None,
        removed: tuple[int, ...],
        batch: Batch,
        kept: Responsibilities,
        summary: Summary,
    ) -> Summary:
        """The summary of clusters J with ``parameters`` (None: one that takes everything) that get the mass of ``removed``."""
        X = batch.X
        weights = batch.weights
        member = np.zeros(summary.K, dtype=np.bool_)
        member[list(removed)] = True
        rows = np.empty(len(weights), dtype=np.int64)
        mass = np.empty(len(weights))
        count = gather_mass(*kept, member, rows, mass)
        rows = rows[:count]
        mass = mass[:count]
        if parameters is not None:
            most = None if self.most_kept is None else _room(self.most_kept, kept, member, rows)
            return restricted_step(likelihood, parameters, X[rows], weights[rows], mass, most)[0]
        columns = list(removed)
        N = summary.N[columns].sum(keepdims=True)
        S = summary.S[columns].sum(axis=0, keepdims=True)
        return Summary(N, S, np.array([-np.dot(weights[rows], mass * np.log(mass))]), np.zeros(()))

    def draw(self, batch: Batch, kept: Responsibilities, summary: Summary, limits: Array, salt: int) -> Drawn:
        """Rows drawn for each cluster, with chance ``limits`` (K,) per unit of weight."""
        return drawn_rows(batch, kept, limits, salt)

    def sample(self, source: ArraySource, drawn: Sequence[Drawn], cluster: int, mass: float) -> tuple[Rows, Array]:
        """The rows drawn for one cluster, equal ones together, and their weights, which add up to its ``mass``."""
        return sampled_rows(source, drawn, cluster, mass)


@dataclass(frozen=True, eq=False)
class NearRows(RowKind):
    """Rows that choose among the clusters near the one that they had at the last visit; of a batch without these, among all.

    nearest : for each breadth, (K, C) the clusters that rows of each cluster may choose (`nearest_clusters`): those that an
        average row of it may be thought to belong to, and C however far
    breadth : which of these visits look at
    """

    nearest: tuple[NDArray[np.int32], ...] = field(kw_only=True)
    breadth: int = field(default=0, kw_only=True)

    def within(self, breadth: int) -> "NearRows":
        """The same for visits that look this far."""
        return replace(self, breadth=breadth)

    def local_step(
        self, likelihood: Likelihood, parameters: Parameters, batch: Batch, base: bool, keep: bool
    ) -> tuple[Summary, Responsibilities]:
        """Responsibilities and summary of a chunk of rows."""
        if batch.start is None:
            return super().local_step(likelihood, parameters, batch, base, keep)
        X = batch.X
        nearest = self.nearest[self.breadth]
        summary, kept = near_step(likelihood, parameters, nearest, X, batch.weights, batch.start, self.most_kept)
        if base:
            summary.base[...] = np.dot(likelihood.log_base(X), batch.weights)
        return summary, kept

    def owners(self, kept: Responsibilities, weights: Array) -> Owners:
        """The cluster of each row with its largest responsibility."""
        n = len(kept.indptr) - 1
        clusters = np.empty(n, np.int64)
        largest_shares(*kept, clusters, np.empty(n))
        return Owners(clusters, tuple(mass_outside(*kept, weights, clusters, near) for near in self.nearest))


ROWS = RowKind()


def _room(
    most_kept: int, kept: Responsibilities, member: NDArray[np.bool_], rows: NDArray[np.integer]
) -> NDArray[np.integer]:
    """How many clusters each of some rows, which have clusters of a set, may use in place of these."""
    inside = np.concatenate([[0], np.cumsum(member[kept.indices])])
    return share_of_limit(most_kept, np.diff(inside[kept.indptr])[rows], np.diff(kept.indptr)[rows])


def drawn_rows(batch: Batch, kept: Responsibilities, limits: Array, salt: int) -> Drawn:
    """Rows drawn for each cluster with chance ``limits`` (K,) per unit of weight."""
    n = kept.values.size
    clusters = np.empty(n, np.int32)
    rows = np.empty(n, np.int64)
    chosen = np.empty(n)
    weights = np.ascontiguousarray(batch.weights)  # another layout would be compiled anew
    count = select_rows(*kept, weights, THRESHOLD, limits, np.uint64(salt), batch.first, clusters, rows, chosen)
    return Drawn(clusters[:count].copy(), rows[:count] + batch.first, chosen[:count].copy())


def sampled_rows(source: ArraySource, drawn: Sequence[Drawn], cluster: int, mass: float) -> tuple[Rows, Array]:
    """The rows drawn for one cluster, equal ones together, and their weights, which add up to ``mass``."""
    rows = np.concatenate([part.rows[part.owners == cluster] for part in drawn])
    chosen = np.concatenate([part.chosen[part.owners == cluster] for part in drawn])
    order = np.argsort(rows, kind="stable")
    X, weights = source.take(rows[order])
    weights = weights * chosen[order]
    return distinct_rows(X, weights * (mass / weights.sum()))
