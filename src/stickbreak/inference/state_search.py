"""The search for the states of hidden Markov models: excursions of three kinds, on a sample first where rows are many."""

import sys
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..data import SequenceSource
from ..model import Model, Summary
from ..model.messages import viterbi
from ..moves import Schedule, states
from ..moves.segments import own_states, regrouped
from .descent import Descent, of_states, wide_start
from .laps import Laps, Options
from .search import Search

PATIENCE, ON_SAMPLE, AT_FIRST = 6, 3, 3  # excursions without gain after which there are no more
COARSE = 10.0  # excursions are compared when settled to this multiple of the tolerance
WORTHWHILE = 10.0  # an excursion that gains less than this multiple of the tolerance has not paid
SETTLE = 5  # laps before the states of an excursion must pay
LONGEST_EXCURSION = 30  # laps
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
        kinds = (self._regrouped, self._with_segments, self._split)
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

    def _with_segments(self, laps: Laps) -> Summary:
        source, rng = self.source, self.rng.spawn(1)[0]
        assert isinstance(source, SequenceSource)
        found: Summary = states.together(
            laps.total, own_states(laps.model, source, self._path(laps), laps.total.K, rng)
        )
        return found

    def _regrouped(self, laps: Laps) -> Summary:
        source, rng = self.source, self.rng.spawn(1)[0]
        assert isinstance(source, SequenceSource)
        return regrouped(laps.model, source, self._path(laps), rng)

    def _path(self, laps: Laps) -> NDArray[np.intp]:
        """The most probable state of every row, given all rows, (T,)."""
        model, source = laps.model, self.source
        assert isinstance(source, SequenceSource)
        prepared = model.unit.prepare(model, model.parameters(laps.total, source.dtype), source)
        paths = self.threads.map(lambda chunk: viterbi(model, prepared, source.read(chunk)[0]), source.whole())
        return np.concatenate(list(paths))
