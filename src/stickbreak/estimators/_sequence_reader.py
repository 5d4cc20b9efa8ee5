"""A fitted hidden Markov model reading sequences."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..allocations.markov import ChainPrior
from ..data import Sequences, SequenceSource
from ..data.sources import Chunk
from ..kernels.markov import forward
from ..model import Model, SequenceSummary
from ..model.messages import blocks, smoothed
from ..model.paths import viterbi
from ..model.potentials import Prepared, padded

Array = NDArray[np.floating]


@dataclass(frozen=True)
class SequenceReader:
    """A fitted hidden Markov model and its potentials, for the sequences of a source."""

    model: Model
    summary: SequenceSummary
    prepared: Prepared

    @classmethod
    def of(cls, model: Model, summary: SequenceSummary, source: SequenceSource, missing: NDArray[np.bool_]) -> Self:
        """A reader of sequences in which values of the columns ``missing`` (D,) may be missing."""
        located, S = model.likelihood.with_missing(missing, summary.S)
        model = replace(model, likelihood=located)
        summary = replace(summary, S=S)
        return cls(
            model, summary, model.kind.prepare(model.likelihood, model.parameters(summary, source.dtype), source)
        )

    def path(self, X: Sequences) -> NDArray[np.intp]:
        """The most probable path (Viterbi), (n,)."""
        return viterbi(self.model.likelihood, self.prepared, X)

    def probabilities(self, X: Sequences) -> Array:
        """The probability of each state at each row, given all of its sequence, (n, K)."""
        R = np.empty((len(X), self.prepared.K))
        for block in smoothed(self.model.likelihood, self.prepared, X):
            R[block.rows] = block.R[:, : self.prepared.K]
        return R

    def labels(self, X: Sequences) -> NDArray[np.intp]:
        """The most probable state at each row, (n,)."""
        labels = np.empty(len(X), np.intp)
        for block in smoothed(self.model.likelihood, self.prepared, X):
            labels[block.rows] = block.R[:, : self.prepared.K].argmax(axis=1)
        return labels

    def log_evidence(self, X: Sequences) -> float:
        """The log evidence of all sequences of a chunk: mean transitions, predictive densities of rows given their states."""
        N = self.summary.N
        S = self.summary.S
        K = self.prepared.K
        allocation = self.model.allocation
        assert isinstance(allocation, ChainPrior)
        means = allocation.means(self.summary)
        Kp = padded(K)
        start = np.zeros(Kp)
        A = np.zeros((Kp, Kp))
        start[:K], A[:K, :K] = means[0], means[1:]
        table = None
        if X.source.codes is not None:
            table = self.model.likelihood.log_predictive(X.source.X.astype(np.float64), N, S)
        total = 0.0
        last = np.zeros(Kp)
        for (rows,) in blocks([0, len(X)], K):
            if table is None:
                C = self.model.likelihood.log_predictive(X.rows(rows).astype(np.float64), N, S)
            else:
                C = table[X.codes(rows)]
            C = C * X.weights(rows)[:, None]
            top = C.max(axis=1, keepdims=True)
            L = np.zeros((len(C), Kp))
            scale = np.empty(len(C))
            L[:, :K] = np.exp(C - top)
            alpha = np.empty((len(C) + 1, Kp))
            alpha[0] = last
            forward(L, np.arange(len(L)), X.first(rows), np.array([0, len(L)]), start, A, alpha, scale)
            last = alpha[-1]
            total += float(np.log(scale).sum() + top.sum())
        return total


def of_chunk(
    reader: SequenceReader, task: Callable[[SequenceReader, Sequences], Any], source: SequenceSource, chunk: Chunk
) -> Any:
    """The result of a task on the sequences of one chunk."""
    return task(reader, source.read(chunk)[0])
