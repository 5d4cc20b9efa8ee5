"""The search for the states of hidden Markov models: when there are excursions, and on which rows."""

import sys
from dataclasses import dataclass, replace

import numpy as np

from ...model import Model, Summary
from ...model.learning import at_limit
from ..descent import Descent, wide_start
from .excursions import ExcursionSearch
from .pairs import PairSearch
from .sizes import has_long_laps, has_many_rows, has_paths, may_lap, most_states


@dataclass(frozen=True)
class Tuning:
    """Chosen by benchmarks/right_states.py and benchmarks/hmm_chromatin.py.

    Attributes
    ----------
    smaller, sample_rows : a sample has one row in so many, and no fewer than these
    on_sample : the patience on a sample
    long_first : laps before excursions where laps take long
    """

    smaller: int = 3
    sample_rows: int = 60_000
    on_sample: int = 3
    long_first: int = 10


TUNING = Tuning()


@dataclass
class StateSearch(ExcursionSearch):
    """Find the best hidden Markov model that moves can reach (see `Search`).

    An ascent with all moves comes first, then excursions (see `ExcursionSearch`).

    **Many rows that repeat.**  Where pairs of them show so many states that laps take long, `stickbreak.inference.states.pairs`
    comes first.  Excursions follow only if it has found so few states that laps are quick.

    **Other rows, if they are many.**  The search begins on a sample, and on a sample of that if its rows are many.  Excursions
    follow on more rows, which show states that a sample cannot.  Where laps take long there are few of these: on a sample each
    kind has its turns once, and then the prior of rows is learnt anew; on all rows, after a few laps, all states are halved and
    then some are in two at random, and the prior is learnt anew after each of these two that has paid, because
    states settle under the prior of fewer.

    **Many rows and a given number of states.**  There are as many from the beginning (`stickbreak.inference.descent`), and no
    excursions.
    """

    def run(self, start: Summary) -> None:
        """Search from the parameters that ``start`` implies; the outcome is ``best``."""
        many = start.K == 1 and "birth" in self.moves and has_many_rows(self._sequences)
        given = self.model.allocation.max_clusters < sys.maxsize
        if many and given:
            self._begin_given()
        elif many and self._laps_left > 1 and self._begin_with_pairs():
            if not self._few_excursions(self.total.K):
                self._explore_again()
        elif many and self._laps_left > 1:
            self._begin_sampled(start)
        else:
            self.begin(start, model=self._model_of(start))
            if has_paths(self._sequences) and not self._few_excursions(self.total.K):
                self._explore()
        self.outcome.polish(self.options.at_last)
        self._learn_to_the_limit()
        if start.K == 1:
            self._begin_as_learnt(start)

    def _model_of(self, start: Summary) -> Model:
        """What a start begins with: what was learnt along with its states, where that has the higher bound.

        What was learnt from other data may suit these less than the default, or not at all.  A prior learnt from one state
        would bar every split.
        """
        if self.learnt is None or start.K == 1:
            return self.model
        return self.learnt if _bound(self.learnt, start) > _bound(self.model, start) else self.model

    def _learn_to_the_limit(self) -> None:
        """End with the best prior under which scores can be computed, where states hardly vary (`at_limit`).

        It has no say in the number of states: rows near the origin allow narrower states, and where columns depend on each
        other exactly, more states would seem to explain them better.
        """
        best = self.outcome
        options = self.options.at_last
        if self._laps_left <= 0 or not options.learn:
            return
        found = at_limit(best.model.posterior(best.total), options.learn, self.source.dtype)
        if found.bound > best.bound + options.tol * best.total.K:
            trial = self._laps(found.model, (), options, best, origin="prior at the limit")
            trial.run(best.total)
            self._keep(best, trial)

    def _begin_as_learnt(self, start: Summary) -> None:
        """At last one state with what was learnt along with it, which the search has not begun with."""
        best = self.outcome
        if self.learnt is None or self._laps_left <= 0:
            return
        trial = self._laps(self.learnt, (), self.options.at_last, best)
        trial.run(start)
        self._keep(best, trial)

    def _begin_given(self) -> None:
        """An ascent from as many states as are given, which more have led to."""
        descent = Descent(self.model, self._sequences, self.session.aside(), self.rng.spawn(1)[0], self.options)
        start = descent.run(wide_start(self.model, self._sequences, self.rng.spawn(1)[0]))
        self.model = descent.model
        self.begin(start)

    def _begin_sampled(self, start: Summary) -> None:
        """A search of a sample, and what follows on more rows."""
        source = self._sequences
        options = self.options if self.sample_rows else self._coarse
        sampled = self._sampled(max(TUNING.sample_rows, source.n_rows // TUNING.smaller), options)
        sampled.at_first = sampled.patience = TUNING.on_sample
        start = self._begin_with(sampled, start)
        self.sampled = True
        few = self._few_excursions(start.K)
        if has_paths(source) and few and may_lap(source, 2.0 * start.K) and self._may_grow():
            self._begin_briefly(start)
        else:
            self.begin(start)
        if not has_paths(source):
            return
        if self._few_excursions(self.total.K):
            self._explore_long()
        elif self.sample_rows:
            self._explore()
        else:
            self._explore_again()

    def _begin_with_pairs(self) -> bool:
        """Search from pairs of rows where these show so many states that laps take long; whether they do."""
        source = self._sequences
        if self.sample_rows or source.codes is None or not has_paths(source):
            return False
        rng = self.rng.spawn(1)[0]
        pairs = PairSearch(self.model, source, self.moves, self.session, rng, self._coarse)
        starts = [start for start in pairs.starts(most_states(source)) if has_long_laps(source, start.K)]
        if not starts:
            return False
        try:
            pairs.cross(starts)
        finally:
            self.best, self.trial = pairs.best, pairs.trial
        return True

    def _begin_briefly(self, start: Summary) -> None:
        """A few laps without moves, which suffice before an excursion that changes all states."""
        few = replace(self._coarse, max_laps=min(self.options.max_laps, len(self.history) + TUNING.long_first))
        self.best = self._laps(self.model, self._removals, few, settle=TUNING.long_first)
        self.best.run(start)

    def _explore_long(self) -> None:
        """The excursions where laps take long: halves and pieces, and after each that pays the prior is learnt anew."""
        for kind, times in ((self.kinds.halves, 2.0), (self.kinds.pieces, 4.0 / 3.0)):
            may = may_lap(self._sequences, times * self.total.K) and self._may_grow()
            if may and self._pays(kind) and self._may_grow():
                self._pays(self._prior_anew)

    def _explore_again(self) -> None:
        """Excursions on all rows, after a search of a sample of them or from pairs of rows, which has found most states.

        They end once every kind has failed, since a missing state may be found by one kind alone.
        """
        self.sampled = True
        self.at_first = self.patience = len(self._kinds())
        self._explore()


def _bound(model: Model, start: Summary) -> float:
    """The bound of a start, minus infinity where it cannot be computed."""
    try:
        with np.errstate(all="ignore"):
            bound = model.bound(start)
    except (FloatingPointError, ValueError):
        return -np.inf
    return bound if np.isfinite(bound) else -np.inf
