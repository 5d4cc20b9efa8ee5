"""The search for the states of hidden Markov models: excursions of three kinds, on a sample first where rows are many."""

import sys
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..data import SequenceSource
from ..model import Model, Summary
from ..moves import Schedule, states
from ..moves.blocks import block_states
from .descent import Descent, of_states, wide_start
from .laps import Laps, Options
from .search import Search

PATIENCE, ON_SAMPLE, AT_FIRST = 6, 3, 3  # excursions without gain after which there are no more
COARSE = 10.0  # excursions are compared when settled to this multiple of the tolerance
WORTHWHILE = 10.0  # an excursion that gains less than this multiple of the tolerance has not paid
SETTLE = 5  # laps before the states of an excursion must pay
LONGEST_EXCURSION = 30  # laps
LENGTHS = (2.0, 4.0, 8.0)  # of blocks, as multiples of how long states last
SHORTEST, LONGEST = 10, 500  # rows of a block
SAMPLE_ROWS = 60_000  # where there are twice as many rows, the search is on so many of them


@dataclass
class StateSearch(Search):
    """Find the best hidden Markov model that moves can reach (see `Search`).

    An excursion is of one of three kinds, in turn: states are split; states of contiguous blocks of rows are added; or all
    states of another ascent are added, which began with such blocks alone, so that both together find which of them explain
    what best.  What does not pay is then merged or deleted.  The search ends when none has paid for a while.

    Where rows are many, excursions are made on a sample, or if the number of states is given there are none: then states are
    as many as that from the beginning (`stickbreak.inference.descent`).

    patience : excursions without gain after which there are no more, once one has paid
    """

    patience: int = PATIENCE

    def run(self, start: Summary) -> None:
        """Search from the parameters that ``start`` implies; the outcome is ``best``."""
        coarse = replace(self.options, tol=COARSE * self.options.tol)
        sample = self.source.sample(SAMPLE_ROWS, self.rng.spawn(1)[0])
        sampled = start.K == 1 and "birth" in self.moves and 2 * sample.n_rows < self.source.n_rows
        if sampled and self.model.allocation.max_clusters < sys.maxsize:
            assert isinstance(self.source, SequenceSource)
            descent = Descent(self.model, self.source, self.threads, self.rng.spawn(1)[0], self.options)
            start = descent.run(wide_start(self.model, self.source, self.rng.spawn(1)[0]))
            self.model = descent.model
        elif sampled:
            options = replace(coarse, n_batches=1)
            begun = StateSearch(self.model, sample, self.moves, self.threads, self.rng.spawn(1)[0], options)
            begun.patience = ON_SAMPLE
            begun.run(start)
            start, self.model = begun.total * (self.source.total_weight / sample.total_weight), begun.found
        self.best = self._laps(self.model, self.moves, coarse)
        self.best.run(start)
        if not sampled:
            self._explore()
        self.outcome.polish(self.options)

    def _explore(self) -> None:
        kinds = (self._split, self._with_blocks, self._with_another)
        failures, turn, patience = 0, 0, AT_FIRST
        while self._may_grow() and failures < patience:
            before = self.outcome.bound
            start = kinds[turn % len(kinds)](self.outcome)
            turn += 1
            if start is not None:
                self._excursion(start)
            gain = self.outcome.bound - before
            failures += 1
            if gain > WORTHWHILE * self.options.tol * abs(before):
                failures, patience = 0, self.patience

    def _excursion(self, start: Summary) -> None:
        """Lap from a start, merge and delete what does not pay, and keep the outcome if it is better."""
        if len(self.history) >= self.options.max_laps:
            return
        best = self.outcome
        coarse = replace(self.options, tol=COARSE * self.options.tol)
        if best.model.allocation.max_clusters < start.K:
            start = self._settled(best.model, start, replace(coarse, max_laps=2 * SETTLE))
        limit = min(self.options.max_laps, len(self.history) + LONGEST_EXCURSION)
        trial = self._laps(best.model, self._removals, replace(coarse, max_laps=limit), best, SETTLE)
        trial.run(best.model.ordered(start))
        self._keep(best, trial)

    def _settled(self, model: Model, start: Summary, options: Options) -> Summary:
        """More states than there may be, after some laps, merged until there are as many as may be, in two steps."""
        wide, most, rng = of_states(model, start.K), model.allocation.max_clusters, self.rng.spawn(1)[0]
        for K in (start.K, int(np.sqrt(start.K * most))):
            start = states.reduced(wide, start, K)
            laps = Laps(wide, self.source, Schedule((), rng, "sequences"), self.threads, rng, options)
            laps.run(wide.ordered(start))
            start = laps.total
        return states.reduced(wide, start, most)

    def _split(self, laps: Laps) -> Summary | None:
        hopeful = [(k, children) for _, k, children in self._hopeful(laps)]
        found: Summary = states.split(laps.total, hopeful)
        return found if hopeful else None

    def _with_blocks(self, laps: Laps) -> Summary:
        found: Summary = states.together(laps.total, self._blocks(laps, max(laps.total.K // 2, 4)))
        return found

    def _with_another(self, laps: Laps) -> Summary:
        self._excursion(self._blocks(laps, laps.total.K))
        found: Summary = states.together(laps.total, self.trial.total if self.trial else laps.total)
        return found

    def _blocks(self, laps: Laps, n: int) -> Summary:
        """States of n contiguous blocks of rows, cut in two where that explains them best; at least as long as states last."""
        total: Any = laps.total
        transitions = total.M.sum() - np.trace(total.M) + total.begins.sum()
        rng, source = self.rng.spawn(1)[0], self.source
        length = int(np.clip(rng.choice(LENGTHS) * total.N.sum() / transitions, SHORTEST, LONGEST))
        assert isinstance(source, SequenceSource)
        return block_states(laps.model, source, n, length, rng, cut=True)
