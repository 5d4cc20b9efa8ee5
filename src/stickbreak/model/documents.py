"""The local step of topic models: documents to topic counts to a summary."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import gammaln, psi

from ..allocations.topics import TopicPrior
from ..kernels.document_statistics import document_statistics, entry_mass
from ..kernels.documents import FLOOR, document_counts
from ..kernels.kept_topics import kept_counts
from ..kernels.restarts import restart_documents
from ..likelihoods import Likelihood
from .document_summary import DocumentSummary
from .kind import Batch, Recipe, looks_at_all, share_of_limit
from .parameters import Parameters
from .products import add_product
from .summary import Summary

Array = NDArray[np.floating]

CHANGE = 1e-3  # mean change of a document's counts at which it has converged
ITERATIONS = 100
FLOOR32, TINY32 = 1e-11, 1e-37  # of likelihoods in float32, so that their product with exp(-60) is a number
NOTHING = np.empty(0)
NO_LIMITS = np.empty(0, np.int64)


class Tables(NamedTuple):
    """Likelihoods of the observations, and the documents' prior.

    scores : (V, K) log E;  shift : (V,) what was taken from it so that the largest of each row is 0
    E : (V, K);  coarse : the same for iterations, in float32 for words
    prior : (K,) pseudo-counts of the topics in every document;  rest : of topics not in use
    words : whether the observations are words: then documents may have a single topic (`stickbreak.kernels.single_topic`)
    """

    scores: Array
    shift: Array
    E: Array
    coarse: Array
    prior: Array
    rest: float
    words: bool


class Observed(NamedTuple):
    """Tables of the observations of a chunk, and features T of its rows where these are no words."""

    tables: Tables
    T: Any = None


class Entries(NamedTuple):
    """Documents as entries: ``indptr[d]:indptr[d + 1]`` are those of document d, each a row of a table and how often."""

    indptr: NDArray[np.integer]
    rows: NDArray[np.integer]
    counts: Array

    @classmethod
    def of(cls, indptr: NDArray[np.integer], rows: NDArray[np.integer], counts: Array, V: int) -> Self:
        """Entries in rows of a table of V, by indices of 32 bits if these do: kernels are compiled for each kind."""
        kind = sparse.get_index_dtype(maxval=max(len(rows), V))
        return cls(indptr.astype(kind, copy=False), rows.astype(kind, copy=False), counts)

    def places(self, documents: NDArray[np.integer]) -> NDArray[np.intp]:
        """Where the entries of some documents are."""
        first = self.indptr[documents]
        sizes = np.diff(self.indptr)[documents]
        ends = np.cumsum(sizes)
        return np.asarray(np.arange(sizes.sum()) + np.repeat(first - (ends - sizes), sizes), np.intp)

    def of_documents(self, documents: NDArray[np.integer]) -> Self:
        """The entries of some documents."""
        places = self.places(documents)
        sizes = np.diff(self.indptr)[documents]
        indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(self.indptr.dtype)
        return type(self)(indptr, self.rows[places], self.counts[places])


class Kept(NamedTuple):
    """The factors of the responsibilities r_ek = E_ek p_dk / Z_e, and sum_k theta_dk and counts (n, K) of the documents.

    single : (n,) whether all tokens of a document have the same topic: then r_ek = p_dk
    answers : what the answers of documents add to a bound, where there are any
    """

    tables: Tables
    single: NDArray[np.bool_]
    p: Array
    log_Z: Array
    totals: Array
    counts: Array
    answers: Any = None

    def of_documents(self, documents: NDArray[np.integer], places: NDArray[np.integer]) -> Self:
        """The same of some documents, with entries in these places, without answers."""
        return self._replace(
            single=self.single[documents],
            p=self.p[documents],
            log_Z=self.log_Z[places],
            totals=self.totals[documents],
            counts=self.counts[documents],
            answers=None,
        )


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


def sizes_of(entries: Entries) -> Array:
    """The tokens of each document, (n,)."""
    return np.diff(np.append(0.0, np.cumsum(entries.counts))[entries.indptr])


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


def tables(scores: Array, prior: Any, words: bool = True) -> Tables:
    """Tables of log likelihoods (V, K), for a prior (K,), or (K + 1,) with the rest.

    Of words the topics' likelihoods are within what float32 can tell apart; those of dense rows need not be.
    """
    K = scores.shape[1]
    shift = scores.max(axis=1)
    scores = np.maximum(scores - shift[:, None], np.log(FLOOR), order="C")
    E = np.exp(scores)
    prior = np.asarray(prior)
    rest = float(prior[K]) if len(prior) > K else 0.0
    coarse = np.maximum(E, FLOOR32).astype(np.float32) if words else E
    return Tables(scores, shift, E, coarse, prior[:K], rest, words)


def document_step(
    own: Tables,
    entries: Entries,
    log_mass: Array,
    start: Array | None,
    whole: Kept | None = None,
    T: Any = None,
    restarts: int = 0,
    limits: NDArray[np.int64] = NO_LIMITS,
) -> tuple[DocumentSummary, Kept]:
    """Iterate documents to their fixed point, and sum up.

    log_mass : (nnz,) log of the mass of which the counts are a part, () where they are whole
    start : (n, K) counts to start from
    whole : what is known of the documents of which the counts are a part
    T : features of the rows of the tables, by default one-hot
    restarts : topics of each document that are emptied on trial, at most
    limits : (n,) the most topics of each document, (0,) for no limits
    """
    n = len(entries.indptr) - 1
    K = own.E.shape[1]
    if whole is not None:
        totals = whole.totals
        single = whole.single.copy()
    else:
        single = np.zeros(n, np.bool_)
        totals = sizes_of(entries) + own.prior.sum() + own.rest
    if start is None:
        start = np.full((n, K), np.nan if K > 1 else 0.0)
    if not (limits < K).any():
        limits = NO_LIMITS
    kind = np.dtype(np.float64) if len(limits) else own.coarse.dtype
    N = np.array(start, kind, order="C")
    if len(limits):
        kept_counts(*entries, own.E, own.scores, own.prior, limits, CHANGE, ITERATIONS, N)
    elif K > 1:
        tiny = np.float32(TINY32) if kind == np.float32 else FLOOR**2
        counts = entries.counts.astype(kind)
        prior = own.prior.astype(kind)
        document_counts(entries.indptr, entries.rows, counts, own.coarse, prior, tiny, CHANGE, ITERATIONS, N)
    N = N.astype(np.float64)
    if restarts and K > 1:
        restart_documents(entries.indptr, entries.rows, entries.counts, own.E, own.prior, restarts, N)
    p = np.empty((n, K))
    log_Z = np.empty(len(entries.rows))
    R = np.zeros(own.E.shape)
    sums = np.zeros((4, K))
    choose = own.words and whole is None
    document_statistics(*entries, log_mass, own.E, own.scores, own.prior, limits, choose, single, N, p, log_Z, R, sums)
    return summed(own, sums, R, T, totals, N), Kept(own, single, p, log_Z, totals, N)


def summed(own: Tables, sums: Array, R: Array, T: Any, totals: Array, N: Array) -> DocumentSummary:
    """The summary of documents, from the sums (4, K) and responsibilities R (V, K) of `document_statistics`.

    T : features of the rows of the tables, None for one-hot
    totals : (n,) sum_k theta_dk;  N : (n, K) counts
    """
    H = sums[3] - sums[2] - np.einsum("vk,vk->k", R, own.scores)
    S = np.zeros((R.shape[1], len(R) if T is None else T.shape[1]))
    if T is None:
        S[:] = R.T
    else:
        add_product(R, T, S)
    return DocumentSummary.of_sums(own.prior, own.rest, sums, H, S, totals, N)
