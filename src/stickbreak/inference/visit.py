"""Visiting one batch: the local step on every chunk of rows, with proposals tracked and rows drawn beside it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..data import ArraySource, Chunk
from ..model import Batch, Drawn, Model, Parameters, Summary
from ..moves import Proposal
from ..moves.sample import Draw
from .executor import Threads

Array = NDArray[np.floating]


@dataclass
class Visit:
    """What a visit brings back: the batch's summary, that of each proposal, and the rows drawn."""

    summary: Summary
    tracked: list[Summary]
    drawn: list[Drawn] = field(default_factory=list)


def visit(
    model: Model,
    parameters: Parameters,
    source: ArraySource,
    chunks: list[Chunk],
    threads: Threads,
    proposals: Sequence[Proposal] = (),
    draw: Draw | None = None,
    base: Array | None = None,
    starts: Array | None = None,
    local: bool = True,
) -> Visit:
    """Visit a batch given as chunks.  Tasks are stateless, and their results are added in order.

    base : the log base measure of the batch, where it is known from an earlier visit
    starts : (K, n) for documents, counts to start from, where there are any
    local : whether to bring back what is known of single documents
    """
    kind, likelihood = model.kind, model.likelihood
    prepared = kind.prepare(likelihood, parameters, source)
    candidates = [(p.removed, p.parameters and kind.prepare(likelihood, p.parameters, source)) for p in proposals]
    ends = np.cumsum([chunk.stop - chunk.start for chunk in chunks])

    def task(chunk: Chunk, end: int) -> Visit:
        start = None if starts is None else starts[:, end - (chunk.stop - chunk.start) : end]
        batch = Batch(*source.read(chunk), chunk.start, start)
        summary, kept = kind.local_step(likelihood, prepared, batch, base is None, draw is not None)
        tracked = [kind.track(likelihood, p, removed, batch, kept, summary) for removed, p in candidates]
        drawn = []
        if draw is not None:
            drawn = [draw.named(kind.draw(batch, kept, summary, draw.limits, draw.salt))]
        if not local:
            summary, tracked = summary.without_local(), [t.without_local() for t in tracked]
        return Visit(summary, tracked, drawn)

    results = threads.map(lambda item: task(*item), list(zip(chunks, ends)))
    whole = next(results)
    parts = [Visit(whole.summary, list(whole.tracked))]
    for part in results:
        whole.summary.add_in_place(part.summary)
        for mine, its in zip(whole.tracked, part.tracked):
            mine.add_in_place(its)
        whole.drawn += part.drawn
        parts.append(Visit(part.summary.only_local(), [t.only_local() for t in part.tracked]))  # the sums are added
    whole.summary = whole.summary.of_chunks([part.summary for part in parts])
    whole.tracked = [t.of_chunks([part.tracked[i] for part in parts]) for i, t in enumerate(whole.tracked)]
    if base is not None:
        whole.summary.base[...] = base
    source.release()
    return whole
