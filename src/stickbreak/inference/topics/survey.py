"""One visit to all documents at the end of an ascent: what the bound needs of topics that are merged along a tree."""

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import psi

from ...data import ArraySource
from ...kernels.merged_topics import merged_statistics
from ...likelihoods import Likelihood
from ...model import Batch, DocumentSummary, Model, Summary
from ...model.document_step import Entries, Kept
from ...model.documents import DocumentKind
from ...model.tree import upwards
from ..executor import Executor
from ..visit import Piece

Array = NDArray[np.floating]


class DocumentSurvey(NamedTuple):
    """A summary of all documents, and that of the nodes of a tree of merges, with responsibilities added."""

    total: DocumentSummary
    nodes: DocumentSummary

    def add_in_place(self, other: "DocumentSurvey") -> None:
        """Add the survey of other documents."""
        self.total.add_in_place(other.total)
        self.nodes.add_in_place(other.nodes)


def document_survey(
    model: Model,
    total: Summary,
    source: ArraySource,
    executor: Executor,
    parents: NDArray[np.int64],
    counts: Array | None,
) -> DocumentSurvey:
    """Visit all documents once with the parameters that a summary of all implies.

    parents : the tree of merges of the topics (`stickbreak.moves.agglomeration.ancestry`)
    counts : (K, N) of the documents, from which local steps start, if they are known
    """
    kind = model.kind
    assert isinstance(kind, DocumentKind)
    prepared = kind.prepare(model.likelihood, model.parameters(total, source.dtype), source)

    task = partial(_of_piece, kind, model.likelihood, prepared, parents)
    pieces = [
        Piece(chunk, None if counts is None else counts[:, chunk.start : chunk.stop])
        for batch in source.batches(1)
        for chunk in batch
    ]
    whole = executor.total(source, task, pieces)
    source.release()
    return DocumentSurvey(replace(whole.total.laid_out(), base=total.base), replace(whole.nodes, base=total.base))


def _of_piece(
    kind: DocumentKind,
    likelihood: Likelihood,
    prepared: Any,
    parents: NDArray[np.int64],
    source: ArraySource,
    piece: Piece,
) -> DocumentSurvey:
    """The survey of one chunk."""
    batch = Batch(*source.read(piece.chunk), piece.chunk.start, piece.start, source.answers(piece.chunk))
    summary, kept = kind.local_step(likelihood, prepared, batch, False, True)
    return DocumentSurvey(summary.without_local(), _nodes(kind.entries(batch.X), kept, summary, parents))


def _nodes(entries: Entries, kept: Kept, summary: DocumentSummary, parents: NDArray[np.int64]) -> DocumentSummary:
    """The summary, without statistics, of the nodes of a tree of topics in the documents of a chunk."""
    sums = np.zeros((3, len(parents)))
    prior = upwards(kept.tables.prior, parents)
    N = upwards(summary.N, parents)
    merged_statistics(*entries, kept.tables.E, prior, kept.single, kept.p, kept.log_Z, kept.counts, parents, sums)
    P = sums[0] - psi(kept.totals).sum()
    none = np.empty((len(parents), 0))
    local = np.empty((len(parents), 0), np.float32)
    own = summary.without_statistics().upwards(parents) * 1.0  # for it is added to
    return replace(own, N=N, S=none, H=sums[2], P=P, Q=sums[1] - prior * P, counts=local)
