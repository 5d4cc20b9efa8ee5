"""Visiting one batch: the local step on every chunk of rows, with proposals tracked and rows drawn beside it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data import ArraySource, Chunk
from ..likelihoods import Likelihood
from ..model import Batch, Drawn, Kind, Model, NearKind, Owners, Parameters, Summary
from ..moves import Proposal
from ..moves.sample import Draw
from .executor import Executor

Array = NDArray[np.floating]


@dataclass
class Visit:
    """What a visit brings back: the batch's summary, that of each proposal, the rows drawn, and the clusters of all rows.

    parts : of each chunk, where documents are of interest, what is known of single ones, which sums are without
    """

    summary: Summary
    tracked: list[Summary]
    drawn: list[Drawn] = field(default_factory=list)
    owners: list[Owners] = field(default_factory=list)
    parts: list["Visit"] = field(default_factory=list)

    def add_in_place(self, other: "Visit") -> None:
        """Add the visit of the chunks that follow."""
        self.summary.add_in_place(other.summary)
        for mine, its in zip(self.tracked, other.tracked):
            mine.add_in_place(its)
        self.drawn += other.drawn
        self.owners += other.owners
        self.parts += other.parts


class Piece(NamedTuple):
    """A chunk to visit, and what is known of its documents or rows to start from, if anything (`Batch.start`)."""

    chunk: Chunk
    start: NDArray[Any] | None


@dataclass(frozen=True)
class VisitTask:
    """The visit of one chunk.

    prepared : what the local steps of all chunks share, of the clusters as they are
    candidates : of each proposal, the clusters removed and the same of those that replace them
    draw : how rows are drawn, if they are
    base : whether to sum up the base measure, which depends on the data alone
    local : whether to bring back what is known of single documents
    near : the kind that says which cluster each row has, if that is to be brought back
    """

    kind: Kind
    likelihood: Likelihood
    prepared: Any
    candidates: Sequence[tuple[tuple[int, ...], Any]]
    draw: Draw | None
    base: bool
    local: bool
    near: NearKind | None

    def __call__(self, source: ArraySource, piece: Piece) -> Visit:
        """Summary, proposals and rows drawn of a chunk of the source."""
        kind = self.kind
        likelihood = self.likelihood
        draw = self.draw
        batch = Batch(*source.read(piece.chunk), piece.chunk.start, piece.start, source.answers(piece.chunk))
        summary, kept = kind.local_step(likelihood, self.prepared, batch, self.base, draw is not None)
        tracked = [kind.track(likelihood, p, removed, batch, kept, summary) for removed, p in self.candidates]
        drawn = [] if draw is None else [draw.named(kind.draw(batch, kept, summary, draw.limits, draw.salt))]
        parts = []
        if not self.local:
            summary = summary.without_local()
            tracked = [t.without_local() for t in tracked]
        elif summary.has_local:
            parts.append(Visit(summary.only_local(), [t.only_local() for t in tracked]))
        owners = [] if self.near is None else [self.near.owners(kept, batch.weights)]
        return Visit(summary, tracked, drawn, owners, parts)


def visit(
    model: Model,
    parameters: Parameters,
    source: ArraySource,
    chunks: list[Chunk],
    executor: Executor,
    proposals: Sequence[Proposal] = (),
    draw: Draw | None = None,
    base: Array | None = None,
    starts: NDArray[Any] | None = None,
    local: bool = True,
    near: NearKind | None = None,
) -> Visit:
    """Visit a batch given as chunks.  The results are added in order.

    base : the log base measure of the batch, where it is known from an earlier visit
    starts : (K, n) for documents, counts to start from, where there are any; (n,) for rows, their clusters
    local : whether to bring back what is known of single documents
    near : the kind that says which cluster each row has, if that is to be brought back
    """
    kind = model.kind
    likelihood = model.likelihood
    prepared = kind.prepare(likelihood, parameters, source)
    candidates = [(p.removed, p.parameters and kind.prepare(likelihood, p.parameters, source)) for p in proposals]
    task = VisitTask(kind, likelihood, prepared, candidates, draw, base is None, local, near)
    whole = executor.total(source, task, _pieces(chunks, starts))
    whole.summary = whole.summary.laid_out()
    whole.tracked = [t.laid_out() for t in whole.tracked]
    parts = whole.parts
    if parts:
        whole.summary = whole.summary.of_chunks([part.summary for part in parts])
        whole.tracked = [t.of_chunks([part.tracked[i] for part in parts]) for i, t in enumerate(whole.tracked)]
        whole.parts = []
    if base is not None:
        whole.summary.base[...] = base
    source.release()
    return whole


def _pieces(chunks: list[Chunk], starts: NDArray[Any] | None) -> list[Piece]:
    """The chunks of a batch, each with its part of what is known of the documents or rows of the batch."""
    if starts is None:
        return [Piece(chunk, None) for chunk in chunks]
    ends = np.cumsum([chunk.stop - chunk.start for chunk in chunks])
    return [Piece(c, starts[..., end - (c.stop - c.start) : end]) for c, end in zip(chunks, ends)]
