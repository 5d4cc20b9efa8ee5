"""A fitted topic model reading documents."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from ..data import BagSource, Chunk
from ..kernels.document_statistics import entry_mass
from ..model import BAGS, GROUPS, DocumentSummary, Model, Summary
from ..model.document_step import NOTHING, Entries, Kept, Tables, document_step, tables
from ..model.documents import same_limit

Array = NDArray[np.floating]


@dataclass(frozen=True)
class DocumentReader:
    """A fitted topic model: predictive likelihoods of the words, and the pseudo-counts of topics in a document.

    log_words : (V, K) of words, or None for rows in groups;  prior : (K,);  rest : of topics not in use
    restarts : topics of each document that are emptied on trial
    most_kept : the most topics that a document has
    """

    model: Model
    summary: Summary
    log_words: Array | None
    prior: Array
    rest: float
    restarts: int = 0
    most_kept: int | None = None

    @classmethod
    def of(cls, model: Model, summary: Summary, bags: bool, restarts: int = 0, most_kept: int | None = None) -> Self:
        """A reader of bags of words, or of groups of rows."""
        a = model.posterior(summary).step.prior
        assert a is not None
        words = None
        if bags:
            words = np.log(model.likelihood.posterior(summary.N, summary.S).probabilities).T
        return cls(model, summary, words, a[: summary.K], float(a[summary.K]), restarts, most_kept)

    def proportions(self, X: Any) -> Array:
        """E[pi_d] of every document over the topics in use, (n, K)."""
        theta = self._read(X)[1].counts + self.prior
        return np.asarray(theta / theta.sum(axis=1, keepdims=True))

    def shares(self, X: Any) -> Array:
        """The shares of topics among the tokens of every document, (n, K); without tokens E[pi_d]."""
        counts = self._read(X)[1].counts
        sizes = counts.sum(axis=1, keepdims=True)
        expected = self.prior / self.prior.sum()
        return np.where(sizes > 0.0, counts / np.where(sizes > 0.0, sizes, 1.0), expected)

    def bound(self, X: Any) -> float:
        """A lower bound on log p(X | topics, prior), summed over documents (Thesis Eq. 5.27, topics fixed)."""
        s, kept = self._read(X)
        entries = self._entries(X)
        n = float(s.D)
        data = (s.S.T * kept.tables.scores).sum() + entries.counts @ kept.tables.shift[entries.rows]
        a = np.append(self.prior, self.rest)[: len(self.prior) + (self.rest > 0.0)]
        P = np.append(s.P, s.P_rest)[: len(a)]
        normaliser = n * (gammaln(a.sum()) - gammaln(a).sum())
        return float(data + s.H.sum() + s.Q.sum() + s.Q_rest + a @ P + normaliser)

    def completion(self, A: Any, B: Any) -> float:
        """The sum of log p(b | E[pi_d]) over the observations b of documents B, with proportions estimated from A."""
        pi = self.proportions(A)
        own = self._tables(B)
        entries = self._entries(B)
        mass = np.empty(len(entries.rows))
        columns = np.arange(len(self.prior))
        none = np.zeros(len(pi), np.bool_)
        entry_mass(entries.indptr, entries.rows, own.E, none, pi, np.zeros(len(mass)), columns, mass)
        return float(entries.counts @ (np.log(mass) + own.shift[entries.rows]))

    def _read(self, X: Any) -> tuple[DocumentSummary, Kept]:
        entries = self._entries(X)
        limits = same_limit(self.most_kept, len(entries.indptr) - 1)
        return document_step(self._tables(X), entries, NOTHING, None, restarts=self.restarts, limits=limits)

    def _entries(self, X: Any) -> Entries:
        return (GROUPS if self.log_words is None else BAGS).entries(X)

    def _tables(self, X: Any) -> Tables:
        words = self.log_words
        if words is None:
            words = self.model.likelihood.log_predictive(X.X.astype(np.float64), self.summary.N, self.summary.S)
        return tables(words, np.append(self.prior, self.rest), words=self.log_words is not None)


def completion_of(reader: DocumentReader, second: BagSource, first: BagSource, chunk: Chunk) -> float:
    """`DocumentReader.completion` of the documents of a chunk, of which one source has one half, one the other."""
    return reader.completion(first.read(chunk)[0], second.read(chunk)[0])
