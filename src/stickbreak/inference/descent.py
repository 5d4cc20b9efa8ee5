"""From more states than there may be down to as many, by merges and deletions that the bound of all rows chooses."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..allocations.markov import ChainPrior
from ..data import Chunk, SequenceSource
from ..model import Model, Summary
from ..model.messages import log_normaliser
from ..model.potentials import Prepared
from ..model.seeding import join_nearer
from ..model.sequences import labelled
from ..moves import Schedule, states
from ..moves.agglomeration import reduced
from ..moves.blocks import block_states
from .laps import Laps
from .session import Session
from .state import Options


@dataclass(frozen=True)
class Tuning:
    """Chosen by benchmarks/hmm_chromatin.py.

    Attributes
    ----------
    wide : times as many states as there may be, to begin with
    cells, most_cells : cells of rows, from which these are merged: times as many, and at most
    cell_rows : rows of a cell, where rows do not repeat
    laps, between : of the wide model, and after every change
    share : one in so many of the states too many goes at a time
    merges, deletions : whose bound is looked at, and as many more as are to go
    """

    wide: float = 2.3
    cells: int = 12
    most_cells: int = 256
    cell_rows: int = 10
    laps: int = 12
    between: int = 2
    share: int = 6
    merges: int = 8
    deletions: int = 4


TUNING = Tuning()


@dataclass
class Descent:
    """As many states as may be, from more of them.

    In what order states should go cannot be told from their counts: rows find other states once one has gone.  So every
    change that looks good is tried on all rows, by forward messages alone, which is the exact bound at its parameters.
    """

    model: Model
    source: SequenceSource
    session: Session
    rng: np.random.Generator
    options: Options

    def run(self, start: Summary) -> Summary:
        """A summary of as many states as may be, of which ``model`` then has the hyperparameters learnt."""
        most = self.model.max_clusters
        allowed = self.model.allocation.max_clusters
        total = start
        while most < total.K:
            total = self._settled(total, TUNING.between if self.session.history else TUNING.laps)
            total = self._fewer(total, max(1, (total.K - most) // TUNING.share))
        self.model = of_states(self.model, allowed)
        return total

    def _settled(self, total: Summary, laps: int) -> Summary:
        model = of_states(self.model, total.K)
        rng = self.rng.spawn(1)[0]
        options = replace(self.options, max_laps=len(self.session.history) + min(laps, self.options.max_laps))
        found = Laps(model, self.source, Schedule((), model.kind.recipe), self.session, rng, options)
        found.run(model.ordered(total))
        self.model = found.model
        return found.total

    def _fewer(self, total: Summary, n: int) -> Summary:
        """The summary after the best n changes, as far as each alone can tell."""
        model = of_states(self.model, total.K - 1)
        changes = states.changes(self.model, total, TUNING.merges + n, TUNING.deletions + n)
        bounds = [self._bound(model, states.changed(total, [change])) for change in changes]
        chosen: list[tuple[int, ...]] = []
        for i in np.argsort(bounds)[::-1]:
            if len(chosen) < n and not {k for change in chosen for k in change} & set(changes[i]):
                chosen.append(changes[i])
        return states.changed(total, chosen)

    def _bound(self, model: Model, summary: Any) -> float:
        """The ELBO at the parameters that a summary implies and the optimal q(z) for them.

        Their part of it without rows is what the summary's own bound leaves when its expected log probabilities are taken away.
        """
        parameters = model.parameters(summary, self.source.dtype)
        prepared = model.kind.prepare(model.likelihood, parameters, self.source)
        expected = (summary.S * parameters.W).sum() + summary.N @ parameters.bias
        expected += (summary.M * prepared.log_A).sum() + summary.begins @ prepared.log_start + summary.H.sum()
        chunks = [chunk for batch in self.source.batches(1) for chunk in batch]
        parts = self.session.executor.over(self.source, partial(_normaliser_of, model, prepared), chunks)
        return model.bound(summary) - float(expected) + sum(parts)


def _normaliser_of(model: Model, prepared: Prepared, source: SequenceSource, chunk: Chunk) -> float:
    """What the sequences of one chunk add to the bound."""
    return log_normaliser(model.likelihood, prepared, source.read(chunk)[0])


def wide_start(model: Model, source: SequenceSource, rng: np.random.Generator) -> Summary:
    """More states than there may be: cells of rows, merged by what rows and transitions tell.

    Cells are the rows nearest to each of the most frequent distinct ones, or short blocks where rows do not repeat.
    """
    most = model.max_clusters
    K = max(most, min(int(np.ceil(TUNING.wide * most)), model.room))
    n = max(K, min(TUNING.cells * most, TUNING.most_cells, model.room))
    if source.codes is None:
        cells = block_states(model, source, n, TUNING.cell_rows, rng)
        cells = cells * float(source.total_weight / cells.N.sum())
    else:
        counts = np.bincount(source.codes, source.observed(Chunk(0, source.n_rows)), len(source.X))
        X = np.asarray(source.X, dtype=source.dtype)
        nearest = np.full(len(X), np.inf)
        cell = np.zeros(len(X), np.intp)
        divergence = model.likelihood.divergence_of(X)
        for j, seed in enumerate(np.argsort(-counts, kind="stable")[:n]):
            join_nearer(divergence(X[seed : seed + 1])[:, 0], j, cell, nearest)
        cells = labelled(model.likelihood, source, cell[source.codes])
    return reduced(of_states(model, cells.K), cells, K)


def of_states(model: Model, K: int) -> Model:
    """The model of K states, where there is a number of them."""
    allocation = model.allocation
    assert isinstance(allocation, ChainPrior)
    return replace(model, allocation=allocation.of_states(K))
