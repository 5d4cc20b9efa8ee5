"""Visiting one batch: the local step on every chunk of rows, with proposals tracked and rows drawn beside it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..data import ArraySource, Chunk
from ..model import Model, Parameters, Summary, local_step
from ..moves import Proposal
from ..moves.sample import Draw, Drawn
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
) -> Visit:
    """Visit a batch given as chunks.  Tasks are stateless, and their results are added in order.

    base : the log base measure of the batch, where it is known from an earlier visit
    """

    def task(chunk: Chunk) -> Visit:
        X, weights = source.read(chunk)
        summary, kept = local_step(model, parameters, X, weights, base is None)
        tracked = [p.track(model, X, weights, kept, summary) for p in proposals]
        return Visit(summary, tracked, [] if draw is None else [draw.chunk(kept, weights, chunk.start)])

    results = threads.map(task, chunks)
    whole = next(results)
    for part in results:
        whole.summary.add_in_place(part.summary)
        for mine, its in zip(whole.tracked, part.tracked):
            mine.add_in_place(its)
        whole.drawn += part.drawn
    if base is not None:
        whole.summary.base[...] = base
    source.release()
    return whole
