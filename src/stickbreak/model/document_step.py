"""The step of documents: entries and tables of likelihoods to topic counts and a summary."""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..kernels.document_statistics import document_statistics
from ..kernels.documents import FLOOR, document_counts
from ..kernels.kept_topics import kept_counts
from ..kernels.layout import in_rows
from ..kernels.restarts import restart_documents
from .document_summary import DocumentSummary
from .products import add_product

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


def sizes_of(entries: Entries) -> Array:
    """The tokens of each document, (n,)."""
    return np.diff(np.append(0.0, np.cumsum(entries.counts))[entries.indptr])


def tables(scores: Array, prior: Any, words: bool = True) -> Tables:
    """Tables of log likelihoods (V, K), for a prior (K,), or (K + 1,) with the rest.

    Of words the topics' likelihoods are within what float32 can tell apart; those of dense rows need not be.
    """
    K = scores.shape[1]
    scores = in_rows(scores)
    shift = scores.max(axis=1)
    scores = scores - shift[:, None]
    np.maximum(scores, np.log(FLOOR), out=scores)
    E = np.exp(scores)
    prior = np.asarray(prior)
    rest = float(prior[K]) if len(prior) > K else 0.0
    coarse = E
    if words:
        coarse = E.astype(np.float32)
        np.maximum(coarse, np.float32(FLOOR32), out=coarse)
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

    The statistics of words are R' as they lie in memory: it is turned once, when those of all chunks are added up.

    T : features of the rows of the tables, None for one-hot
    totals : (n,) sum_k theta_dk;  N : (n, K) counts
    """
    H = sums[3] - sums[2] - np.einsum("vk,vk->k", R, own.scores)
    S = R.T
    if T is not None:
        S = np.zeros((R.shape[1], T.shape[1]))
        add_product(R, T, S)
    return DocumentSummary.of_sums(own.prior, own.rest, sums, H, S, totals, N)
