"""One visit to all rows at the end of an ascent: what merged clusters would be worth, and the rows each explains worst."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data import ArraySource, Chunk
from ..kernels.assign import merged_entropies, owners
from ..likelihoods.features import Rows, features
from ..likelihoods.responsibilities import Responsibilities
from ..model import Batch, Drawn, Model, Parameters, Summary
from ..model.local import block_rows
from ..model.products import row_products
from ..model.rows import drawn_rows
from ..moves.agglomeration import row_nodes
from ..moves.sample import Draw, Poor
from .executor import Executor

Array = NDArray[np.floating]

MOST, SHARE = 500, 0.1  # rows that a cluster explains worst, and the largest share of its rows that they may be
TIES = 2  # times as many rows at most, where densities are equal
ENOUGH = 1 << 18  # rows of chunks, among which the worst are then chosen


class Survey(NamedTuple):
    """A summary of all rows, that of the nodes of a tree of merges without statistics, rows explained worst, rows drawn."""

    total: Summary
    nodes: Summary
    poor: Poor
    drawn: list[Drawn]


@dataclass
class _Sums:
    """The survey of some chunks; rows explained worst are those of each chunk, until there are too many.

    most : (K,) how many of these to keep of each cluster
    """

    total: Summary
    nodes: Summary
    poor: list[Poor]
    drawn: list[Drawn]
    most: NDArray[np.intp]
    waiting: int = 0

    def add_in_place(self, other: "_Sums") -> None:
        """Add the survey of the chunks that follow."""
        self.total.add_in_place(other.total)
        self.nodes.add_in_place(other.nodes)
        self.poor += other.poor
        self.drawn += other.drawn
        self.waiting += sum(len(part.rows) for part in other.poor)
        if self.waiting > ENOUGH:
            self.poor = [_worst(self.poor, self.most)]
            self.waiting = 0


def survey(
    model: Model,
    total: Summary,
    source: ArraySource,
    executor: Executor,
    parents: NDArray[np.int64],
    draw: Draw | None = None,
) -> Survey:
    """Visit all rows once with the parameters that a summary of all rows implies.

    parents : the tree of merges of the clusters (`stickbreak.moves.agglomeration.ancestry`)
    draw : how rows are drawn, if they are
    """
    parameters = model.parameters(total, source.dtype)
    most = np.minimum(MOST, SHARE * total.N).astype(np.intp)

    task = SurveyTask(model, parameters, parents, most, draw)
    whole = executor.total(source, task, [chunk for batch in source.batches(1) for chunk in batch])
    source.release()
    return Survey(
        replace(whole.total, base=total.base),
        replace(whole.nodes, base=total.base),
        _worst(whole.poor, most),
        whole.drawn,
    )


@dataclass(frozen=True, eq=False)
class SurveyTask:
    """The survey of one chunk; see `survey`."""

    model: Model
    parameters: Parameters
    parents: NDArray[np.int64]
    most: NDArray[np.intp]
    draw: Draw | None

    def __call__(self, source: ArraySource, chunk: Chunk) -> _Sums:
        """What is known of the rows of a chunk."""
        model = self.model
        draw = self.draw
        X, weights = source.read(chunk)
        batch = Batch(X, weights, chunk.start)
        summary, kept = model.kind.local_step(model.likelihood, self.parameters, batch, False, True)
        H = np.zeros(len(self.parents))
        merged_entropies(*kept, weights, self.parents, H)
        nodes = row_nodes(summary.N, self.parents, H, summary.base * 1.0)
        drawn = [] if draw is None else [draw.named(drawn_rows(batch, kept, draw.limits, draw.salt))]
        poor = _poor(model, self.parameters, X, kept, chunk.start, self.most)
        return _Sums(summary, nodes, [poor], drawn, self.most)


def _poor(
    model: Model, parameters: Parameters, X: Rows, kept: Responsibilities, first: int, most: NDArray[np.intp]
) -> Poor:
    """The rows of a chunk that their clusters explain worst, each counted to the one with the largest responsibility."""
    n = X.shape[0]
    owner = np.empty(n, np.int64)
    share = np.empty(n)
    owners(*kept, owner, share)
    scores = model.likelihood.log_base(X) + parameters.bias[owner]
    dtype = parameters.W.dtype
    cells = model.likelihood.cells
    rows = block_rows(model.likelihood.n_statistics, 1)
    for start in range(0, n, rows):
        block = slice(start, min(start + rows, n))
        with np.errstate(over="ignore", invalid="ignore"):  # rows too far for a density are not drawn
            T = features(model.likelihood, X[block], dtype)
            if cells is not None:
                T = cells.filled(T, parameters.W, owner[block])
            scores[block] += row_products(T, parameters.W, owner[block])
    return _worst([Poor(owner, np.arange(first, first + n), share, scores)], most)


def _worst(parts: Sequence[Poor], most: NDArray[np.intp]) -> Poor:
    """The ``most[k]`` rows of each cluster k with the lowest density, and those that tie with the last of them."""
    every = Poor(*(np.concatenate(values) for values in zip(*parts)))
    order = np.lexsort((every.scores, every.owners))
    owner = every.owners[order]
    first = np.searchsorted(owner, owner)
    place = np.arange(len(owner)) - first
    last = np.minimum(first + most[owner], np.searchsorted(owner, owner, side="right")) - 1
    scores = every.scores[order]
    chosen = order[(scores <= scores[last]) & (most[owner] > 0) & (place < TIES * most[owner])]
    return Poor(*(values[chosen] for values in every))
