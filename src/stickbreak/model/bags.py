"""Bags of words: documents as CSR rows of counts, where the tokens of a word share their responsibilities (Thesis 5.3.5)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..data import ArraySource, BagSource
from ..likelihoods import Likelihood
from .document_step import Entries, Kept, Tables, tables
from .document_summary import DocumentSummary
from .documents import DocumentKind, Observed
from .kind import THRESHOLD, Batch, Drawn
from .parameters import Parameters

Array = NDArray[np.floating]


class Words(NamedTuple):
    """The tables of the words, made once for all chunks, and the weights W (K, F) of the topics."""

    tables: Tables
    W: Array


@dataclass(frozen=True)
class BagKind(DocumentKind):
    """Bags of words; their base measure is that of the tokens in a given order, one."""

    def prepare(self, likelihood: Likelihood, parameters: Parameters, source: BagSource) -> Words:
        """The tables of the words, made once for all chunks."""
        return Words(tables(parameters.W.T + parameters.bias, parameters.prior), parameters.W)

    def observed(self, likelihood: Likelihood, prepared: Words, X: Any) -> Observed:
        """The tables of the words."""
        return Observed(prepared.tables)

    def weights(self, prepared: Words) -> Array:
        """W (K, F)."""
        return prepared.W

    def indifferent(self, likelihood: Likelihood, X: Any, n: int) -> Observed:
        """Tables of n words that one topic explains alike."""
        return Observed(tables(np.zeros((n, 1)), np.ones(1)))

    def entries(self, X: Any) -> Entries:
        """The counts, where rows of tables are words."""
        return Entries.of(X.indptr, X.indices, X.data.astype(np.float64, copy=False), X.shape[1])

    def log_base(self, likelihood: Likelihood, X: Any) -> float:
        """Zero."""
        return 0.0

    def draw(self, batch: Batch, kept: Kept, summary: DocumentSummary, limits: Array, salt: int) -> Drawn:
        """Parts of documents, their tokens of a topic, drawn for each topic with chance ``limits`` (K,) per token of it."""
        X = batch.X
        first = batch.first
        rng = np.random.default_rng([salt, first])
        E = kept.tables.E
        p = kept.p
        topics, documents = np.nonzero(summary.counts > THRESHOLD)
        chance = np.minimum(1.0, limits[topics] * summary.counts[topics, documents])
        drawn = rng.random(len(chance)) < chance
        topics = topics[drawn]
        documents = documents[drawn]
        chance = chance[drawn]
        sizes = np.diff(X.indptr)[documents]
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        entries = np.arange(indptr[-1]) + np.repeat(X.indptr[documents] - indptr[:-1], sizes)
        words = X.indices[entries]
        owners = np.repeat(topics, sizes)
        own = np.repeat(documents, sizes)
        likelihoods = np.where(kept.single[own], 1.0, E[words, owners] / np.exp(kept.log_Z[entries]))
        share = likelihoods * p[own, owners]
        parts = sparse.csr_array((X.data[entries] * share, words, indptr), (len(documents), X.shape[1]))
        return Drawn(topics, documents + first, 1.0 / chance, parts)

    def sample(self, source: ArraySource, drawn: Sequence[Drawn], cluster: int, mass: float) -> tuple[Any, Array]:
        """The parts of documents drawn for one topic, and weights with which their tokens stand for its ``mass``."""
        X = sparse.vstack([part.parts[part.owners == cluster] for part in drawn], format="csr")
        weights = np.concatenate([part.chosen[part.owners == cluster] for part in drawn])
        return X, weights * (mass / (weights @ X.sum(axis=1)))


BAGS = BagKind()
