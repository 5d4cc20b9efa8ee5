"""Groups of dense rows, for any likelihood: documents of which every row has likelihoods of its own."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..data import ArraySource, Groups, GroupSource
from ..likelihoods import Likelihood
from ..likelihoods.features import features
from .document_step import Entries, Kept, tables
from .document_summary import DocumentSummary
from .documents import DocumentKind, Observed
from .kind import THRESHOLD, Batch, Drawn
from .local import exact_scores
from .parameters import Parameters

Array = NDArray[np.floating]


@dataclass(frozen=True)
class GroupKind(DocumentKind):
    """Groups of rows."""

    def prepare(self, likelihood: Likelihood, parameters: Parameters, source: GroupSource) -> Parameters:
        """The parameters alone: tables are those of the rows of a chunk."""
        return parameters

    def observed(self, likelihood: Likelihood, prepared: Parameters, X: Groups) -> Observed:
        """The tables of the rows of a chunk, and their features."""
        T, scores, _ = exact_scores(likelihood, prepared, X.X)
        return Observed(tables(scores, prepared.prior, words=False), T)

    def weights(self, prepared: Parameters) -> Array:
        """W (K, F)."""
        return prepared.W

    def indifferent(self, likelihood: Likelihood, X: Groups, n: int) -> Observed:
        """Tables of n rows that one cluster explains alike, and their features."""
        return Observed(tables(np.zeros((n, 1)), np.ones(1)), features(likelihood, X.X))

    def entries(self, X: Groups) -> Entries:
        """The rows, each once."""
        return Entries.of(X.indptr, np.arange(len(X.X)), np.ones(len(X.X)), len(X.X))

    def log_base(self, likelihood: Likelihood, X: Groups) -> float:
        """That of the rows."""
        return float(likelihood.log_base(X.X).sum())

    def draw(self, batch: Batch, kept: Kept, summary: DocumentSummary, limits: Array, salt: int) -> Drawn:
        """Rows drawn for each cluster, with chance ``limits`` (K,) per row of it."""
        X = batch.X
        first = batch.first
        rng = np.random.default_rng([salt, first])
        E = kept.tables.E
        p = kept.p
        R = E * np.repeat(p, np.diff(X.indptr), axis=0) / np.exp(kept.log_Z)[:, None]
        rows, topics = np.nonzero(R > THRESHOLD)
        chance = np.minimum(1.0, limits[topics] * R[rows, topics])
        drawn = rng.random(len(chance)) < chance
        rows = rows[drawn]
        topics = topics[drawn]
        return Drawn(topics, rows, R[rows, topics] / chance[drawn], X.X[rows])

    def sample(self, source: ArraySource, drawn: Sequence[Drawn], cluster: int, mass: float) -> tuple[Array, Array]:
        """The rows drawn for one cluster, and weights with which they stand for its ``mass``."""
        X = np.concatenate([part.parts[part.owners == cluster] for part in drawn])
        weights = np.concatenate([part.chosen[part.owners == cluster] for part in drawn])
        return X, weights * (mass / weights.sum())


GROUPS = GroupKind()
