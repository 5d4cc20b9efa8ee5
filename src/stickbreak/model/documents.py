"""Documents, of words or of rows, as data of a model: their local step, and what moves ask of them."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, psi

from ..allocations.topics import TopicPrior
from ..kernels.document_statistics import entry_mass
from ..kernels.documents import FLOOR
from ..likelihoods import Likelihood
from .document_step import NO_LIMITS, NOTHING, Entries, Kept, Tables, document_step
from .document_summary import DocumentSummary
from .kind import Batch, Recipe, looks_at_all, share_of_limit
from .parameters import Parameters
from .summary import Summary

Array = NDArray[np.floating]


class Observed(NamedTuple):
    """Tables of the observations of a chunk, and features T of its rows where these are no words."""

    tables: Tables
    T: Any = None


@dataclass(frozen=True)
class DocumentKind(ABC):
    """What bags of words and groups of rows share (see `stickbreak.model.kind.Kind`): observations exchangeable in each.

    Parameters
    ----------
    restarts : int >= 0
        Topics of each document that are emptied on trial in its local step, the smallest first (Thesis Alg. 5.2).
    most_kept : int >= 1, or None
        L, the most topics that a document has (Thesis 7.3); 1 is hard assignment of documents.
    """

    restarts: int = 0
    most_kept: int | None = None

    units: ClassVar[str] = "documents"
    allocations: ClassVar[type] = TopicPrior
    summary: ClassVar[type[Summary]] = DocumentSummary
    sample_size: ClassVar[int] = 300
    takes_latent: ClassVar[bool] = False
    has_documents: ClassVar[bool] = True
    has_order: ClassVar[bool] = False
    recipe: ClassVar[Recipe] = Recipe(
        whole=False, tries={"birth": 3, "merge": 1, "delete": 1}, scored=False, pairs=0.5, ordered=False
    )

    def start(self, rows: Summary) -> DocumentSummary:
        """A start that knows of no document."""
        return DocumentSummary.of(rows)

    @abstractmethod
    def entries(self, X: Any) -> Entries:
        """The entries of the documents of a chunk."""

    @abstractmethod
    def observed(self, likelihood: Likelihood, prepared: Any, X: Any) -> Observed:
        """What clusters, prepared for a visit, say of the observations of a chunk."""

    @abstractmethod
    def weights(self, prepared: Any) -> Array:
        """W (K, F) of clusters, prepared for a visit."""

    @abstractmethod
    def indifferent(self, likelihood: Likelihood, X: Any, n: int) -> Observed:
        """The same of a single cluster that takes everything, for n rows of a table."""

    near = looks_at_all  # topics that a document does not have are left out anyway

    def rounded(self, parameters: Parameters, dtype: np.dtype[np.floating]) -> Parameters:
        """The same: tables of likelihoods are made in float64."""
        return parameters

    def local_step(
        self, likelihood: Likelihood, prepared: Any, batch: Batch, base: bool, keep: bool
    ) -> tuple[DocumentSummary, Kept]:
        """Responsibilities and summary of a chunk of documents (Thesis Alg. 5.1), iterated from counts (K, n)."""
        X = batch.X
        start = batch.start
        own = self.observed(likelihood, prepared, X)
        entries = self.entries(X)
        n = len(entries.indptr) - 1
        warm = None if start is None or start.shape[1] != n else start.T
        limits = same_limit(self.most_kept, n)
        summary, kept = document_step(own.tables, entries, NOTHING, warm, None, own.T, self.restarts, limits)
        likelihood.carry(self.weights(prepared), summary.S)
        if base:
            summary.base[...] = self.log_base(likelihood, X)
        return summary, kept

    @abstractmethod
    def log_base(self, likelihood: Likelihood, X: Any) -> float:
        """The log base measure of a chunk."""

    def track(
        self,
        likelihood: Likelihood,
        prepared: Any,
        removed: tuple[int, ...],
        batch: Batch,
        kept: Kept,
        summary: DocumentSummary,
    ) -> DocumentSummary:
        """The summary of topics J, prepared (None: one that takes everything), that get the mass of ``removed``.

        In each document they share the prior of the topics removed, so nothing else changes: sum_k theta_dk stays.
        """
        return self._tracked(likelihood, prepared, removed, batch, kept, summary)[0]

    def _tracked(
        self,
        likelihood: Likelihood,
        prepared: Any,
        removed: tuple[int, ...],
        batch: Batch,
        kept: Kept,
        summary: DocumentSummary,
    ) -> tuple[DocumentSummary, Array]:
        """What `track` says, and the counts (n, J) of the documents; those that have none of the topics stay without."""
        columns = np.array(removed)
        owners = np.flatnonzero((kept.p[:, columns] > 0.0).any(axis=1))
        everything = self.entries(batch.X)
        entries = everything.of_documents(owners)
        whole = kept.of_documents(owners, everything.places(owners))
        mass = np.empty(len(entries.rows))
        entry_mass(entries.indptr, entries.rows, kept.tables.E, whole.single, whole.p, whole.log_Z, columns, mass)
        np.maximum(mass, FLOOR, out=mass)
        prior = kept.tables.prior[columns].sum()
        if prepared is None:
            own, T = self.indifferent(likelihood, batch.X, len(kept.tables.E))
        else:
            own, T = self.observed(likelihood, prepared, batch.X)
        shared = own._replace(prior=prior * own.prior / own.prior.sum(), rest=0.0)
        stays = columns[1:] if len(columns) == len(shared.prior) + 1 else columns[:0]  # of a delete, the absorbers
        freed = np.setdiff1d(columns, stays)
        start = summary.counts[np.ix_(freed, owners)].sum(axis=0)[:, None] * (shared.prior / prior)
        if len(stays):
            start += summary.counts[np.ix_(stays, owners)].T
        parts = entries._replace(counts=entries.counts * mass)
        limits = NO_LIMITS if self.most_kept is None else _rooms(self.most_kept, whole.p, columns)
        tracked, parts_kept = document_step(shared, parts, np.log(mass), start, whole, T, limits=limits)
        source = summary.S[columns].sum(axis=0, keepdims=True) if prepared is None else self.weights(prepared)
        likelihood.carry(source, tracked.S)
        counts = np.zeros((len(kept.totals), len(shared.prior)))
        counts[owners] = parts_kept.counts
        P, Q = _of_prior(shared.prior, np.delete(kept.totals, owners))
        nothing = np.zeros(())
        return (
            replace(
                tracked,
                P=tracked.P + P,
                Q=tracked.Q + Q,
                P_rest=nothing,
                Q_rest=nothing,
                D=nothing,
                counts=np.ascontiguousarray(counts.T, dtype=np.float32),
            ),
            counts,
        )


def same_limit(most_kept: int | None, n: int) -> NDArray[np.int64]:
    """The limit of each of n documents, (0,) where there is none."""
    return NO_LIMITS if most_kept is None else np.full(n, most_kept)


def _of_prior(prior: Array, totals: Array) -> tuple[Array, Array]:
    """P and Q (K,) of documents without counts, of which sum_k theta_dk are the totals."""
    n = len(totals)
    P = n * psi(prior) - psi(totals).sum()
    return P, n * gammaln(prior) - prior * P


def _rooms(most_kept: int, p: Array, columns: NDArray[np.integer]) -> NDArray[np.int64]:
    """How many topics each document may use in place of those of a set, by its factors p (K,).

    All that there may be where it has none of these.
    """
    own = p > 0.0
    inside = own[:, columns].sum(axis=1)
    total = np.maximum(own.sum(axis=1), 1)
    return np.where(inside > 0, share_of_limit(most_kept, inside, total), most_kept)
