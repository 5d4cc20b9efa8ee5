"""The local step of topic models: documents to topic counts to a summary."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import gammaln, psi

from ..data import ArraySource
from ..kernels.documents import FLOOR, document_counts, document_statistics, entry_mass
from .local import Drawn
from .model import Model, Parameters
from .summary import Summary, cluster_axes, local_field

Array = NDArray[np.floating]

CHANGE = 1e-3  # mean change of a document's counts at which it has converged
ITERATIONS = 100
FLOOR32 = 1e-11  # of likelihoods in float32, so that their product with exp(-60) is a number
FEW_TOKENS = 0.5  # documents with fewer tokens of a topic do not represent it
NOTHING = np.empty(0)


@dataclass(frozen=True)
class DocumentSummary(Summary):
    """What documents say to the global step and to the bound, beside what their rows say.

    Attributes
    ----------
    P : (K,) sum_d E[log pi_dk]                                                                    (Thesis Eq. 5.38)
    Q : (K,) sum_d log Gamma(theta_dk) - (theta_dk - N_dk) E[log pi_dk]                            (Thesis Eq. 5.48)
    P_rest : () the same as P for the topics that are not in use
    Q_rest : () the same as Q for these, - sum_d log Gamma(sum_k theta_dk)
    D : () number of documents
    counts : (K, n) N_dk of the documents of a batch, float32, from which its next visit starts; (K, 0) where not kept
    """

    P: Array = cluster_axes(1)
    Q: Array = cluster_axes(1)
    P_rest: Array = cluster_axes(0)
    Q_rest: Array = cluster_axes(0)
    D: Array = cluster_axes(0)
    counts: Array = local_field()


class Tables(NamedTuple):
    """What the local steps of all chunks share: likelihoods of the words, and the documents' prior.

    scores : (V, K) log E, with the largest of each word at 0;  E, E32 : (V, K) in float64 and float32
    prior : (K,) pseudo-counts of the topics in every document;  rest : of topics not in use
    """

    scores: Array
    E: Array
    E32: NDArray[np.float32]
    prior: Array
    rest: float


class Bags(NamedTuple):
    """Documents as entries: ``indptr[d]:indptr[d + 1]`` are those of document d, each a row of a table and how often."""

    indptr: NDArray[np.integer]
    rows: NDArray[np.integer]
    counts: Array


class Kept(NamedTuple):
    """The factors of the responsibilities r_ek = E_ek p_dk / Z_e, and sum_k theta_dk of each document."""

    p: Array
    log_Z: Array
    totals: Array


class DocumentUnit:
    """What visits do with documents, whose tokens are exchangeable within each (see `stickbreak.model.local.RowUnit`).

    Rows of counts are documents of words: the tokens of a word share their responsibilities (Thesis 5.3.5).  The base measure
    is that of the tokens in a given order, one.
    """

    sample_size = 300  # documents to draw for a topic

    def prepare(self, model: Model, parameters: Parameters) -> Tables:
        """The tables of likelihoods for the words."""
        scores = np.ascontiguousarray(parameters.W.T) + parameters.bias
        scores -= scores.max(axis=1, keepdims=True)
        np.maximum(scores, np.log(FLOOR), out=scores)
        E = np.exp(scores)
        prior = np.asarray(parameters.prior)
        K = E.shape[1]
        rest = float(prior[K]) if len(prior) > K else 0.0
        return Tables(scores, E, np.maximum(E, FLOOR32).astype(np.float32), prior[:K], rest)

    def local_step(
        self, model: Model, tables: Tables, X: Any, weights: Array, base: bool, start: Array | None
    ) -> tuple[DocumentSummary, Kept]:
        """Responsibilities and summary of a chunk of documents (Thesis Alg. 5.1), iterated from counts ``start`` (K, n)."""
        n = X.shape[0]
        totals = np.asarray(X.sum(axis=1), dtype=np.float64) + tables.prior.sum() + tables.rest
        warm = None if start is None or start.shape[1] != n else start.T
        summary, kept = _step(tables, _bags(X), NOTHING, warm, totals)
        P_rest = Q_rest = 0.0
        if tables.rest > 0.0:
            P_rest = n * psi(tables.rest) - psi(totals).sum()
            Q_rest = n * gammaln(tables.rest) - tables.rest * P_rest
        Q_rest -= gammaln(totals).sum()
        return replace(summary, P_rest=np.array(P_rest), Q_rest=np.array(Q_rest), D=np.array(float(n))), kept

    def track(
        self,
        model: Model,
        tables: Tables | None,
        removed: tuple[int, ...],
        X: Any,
        weights: Array,
        kept: Kept,
        summary: DocumentSummary,
        current: Tables,
    ) -> DocumentSummary:
        """The summary of topics J with ``tables`` (None: one that takes everything) that get the mass of topics ``removed``.

        In each document they share the prior of the topics removed, so nothing else changes: sum_k theta_dk stays.
        """
        bags, columns = _bags(X), np.array(removed)
        mass = np.empty(len(bags.rows))
        entry_mass(bags.indptr, bags.rows, current.E, kept.p, kept.log_Z, columns, mass)
        np.maximum(mass, FLOOR, out=mass)
        prior = current.prior[columns].sum()
        if tables is None:
            flat = np.zeros((current.E.shape[0], 1))
            tables = Tables(flat, np.ones_like(flat), np.ones_like(flat, np.float32), np.ones(1), 0.0)
        shared = tables._replace(prior=prior * tables.prior / tables.prior.sum())
        start = np.repeat(summary.counts[columns].sum(axis=0)[:, None], len(shared.prior), 1) * shared.prior / prior
        parts = bags._replace(counts=bags.counts * mass)
        return _step(shared, parts, np.log(mass), start, kept.totals)[0]

    def draw(
        self,
        X: Any,
        weights: Array,
        kept: Kept,
        summary: DocumentSummary,
        current: Tables,
        limits: Array,
        salt: int,
        first: int,
    ) -> Drawn:
        """Documents drawn for each topic, with chance ``limits`` (K,) per token of it, each cut down to its tokens of it."""
        counts = summary.counts.astype(np.float64)
        clusters, documents = np.nonzero(counts > FEW_TOKENS)
        chance = np.minimum(1.0, limits[clusters] * counts[clusters, documents])
        drawn = np.random.default_rng([salt, first]).random(len(chance)) < chance
        clusters, documents, chance = clusters[drawn], documents[drawn], chance[drawn]
        sizes = np.diff(X.indptr)[documents]
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        entries = np.arange(indptr[-1]) + np.repeat(X.indptr[documents] - indptr[:-1], sizes)
        words, topics = X.indices[entries], np.repeat(clusters, sizes)
        share = current.E[words, topics] * kept.p[np.repeat(documents, sizes), topics] / np.exp(kept.log_Z[entries])
        bags = sparse.csr_array((X.data[entries] * share, words, indptr), (len(documents), X.shape[1]))
        return Drawn(clusters, documents + first, 1.0 / chance, bags)

    def sample(self, source: ArraySource, drawn: list[Drawn], cluster: int) -> tuple[Any, Array]:
        """The parts of documents drawn for one topic, CSR, and their weights."""
        bags = sparse.vstack([part.bags[part.owners == cluster] for part in drawn], format="csr")
        return bags, np.concatenate([part.chosen[part.owners == cluster] for part in drawn])

    def refine(self, model: Model, clusters: Summary, X: Any, weights: Array) -> DocumentSummary:
        """One local step on a sample at the parameters that a summary of topics implies."""
        tables = self.prepare(model, model.parameters(clusters, np.dtype(np.float64)))
        return self.local_step(model, tables, X, weights, False, None)[0]


def _bags(X: Any) -> Bags:
    return Bags(X.indptr, X.indices, X.data.astype(np.float64, copy=False))


def _step(
    tables: Tables, bags: Bags, log_mass: Array, start: Array | None, totals: Array
) -> tuple[DocumentSummary, Kept]:
    """The summary of documents whose theta_d add up to ``totals`` (n,), without what is not known by topic."""
    n, (V, K) = len(totals), tables.E.shape
    if start is None:
        start = np.full((n, K), np.nan if K > 1 else 0.0)
    N32 = np.array(start, np.float32, order="C")
    if K > 1:
        document_counts(*bags, tables.E32, tables.prior.astype(np.float32), CHANGE, ITERATIONS, N32)
    N, p, log_Z = N32.astype(np.float64), np.empty((n, K)), np.empty(len(bags.rows))
    R, sums = np.zeros((V, K)), np.zeros((4, K))
    document_statistics(*bags, log_mass, tables.E, tables.prior, N, p, log_Z, R, sums)
    P = sums[0] - psi(totals).sum()
    Q = sums[1] - tables.prior * P
    H = sums[3] - sums[2] - (R * tables.scores).sum(axis=0)
    counts = np.ascontiguousarray(N.T, dtype=np.float32)
    none = [np.zeros(()) for _ in range(4)]  # the base measure, and what is not known by topic
    summary = DocumentSummary(
        N.sum(axis=0), np.ascontiguousarray(R.T), H, none[0], P, Q, none[1], none[2], none[3], counts
    )
    return summary, Kept(p, log_Z, totals)
