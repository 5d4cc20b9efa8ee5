"""Long ascents from annealed topics of words, once growth has told how many: what they begin with, and the end of a search."""

from dataclasses import dataclass, replace

import numpy as np

from ...model import Summary
from ...moves.agglomeration import reduced
from ..state import Options
from . import growth
from .gibbs import Annealed, Chain
from .growth import TopicGrowth
from .pace import WINDOW


@dataclass(frozen=True)
class Tuning:
    """Chosen by benchmarks/right_topics.py and benchmarks/topics.py.

    Attributes
    ----------
    settle : laps before the topics of an ascent must pay
    rounds : the most long ascents in a row, where laps take long, that begin with no topic twice; one where a lap takes seconds
    again : nats for each topic that such an ascent must gain for another to follow
    cheap : topics are there twice if merging them, as they are, costs less than this share of what their parameters cost
    few, twins : shares of the topics: if more than the first are there twice, the next ascent begins without these, but with no
        more than the second left out
    more : times as many topics in an ascent before those, while it gains and laps do not take seconds
    last_share : where laps take long, the search ends when a lap gains less than this share of what the parameters of all
        topics cost
    again_sweeps : sweeps of annealing before each long ascent, where laps take long
    """

    settle: int = 4
    rounds: int = 4
    again: float = 5.0
    cheap: float = 0.5
    few: float = 0.02
    twins: float = 0.1
    more: float = 1.15
    last_share: float = 1e-3
    again_sweeps: int = 60


TUNING = Tuning()


@dataclass
class LongAscents(TopicGrowth):
    """Ascents from the topics that growth has found, annealed once more, to where a search ends."""

    def _ascend_long_while_merging(self, chain: Chain, options: Options) -> None:
        """Long ascents where laps are fast, until none merges any topics."""
        K = self.total.K + 1
        while self._laps_left > 0 and self.total.K < K:
            K = self.total.K
            self._ascend_long(chain, self.total, options)
            fewer = self._nearly_as_good()
            if fewer is not None:
                self._ascend_long(chain, fewer, options)

    def _ascend_long_first(self, chain: Chain, options: Options) -> None:
        """The first long ascent where laps take long, from as many topics as growth asks for."""
        wanted = self._wanted
        if wanted > self.total.K:
            self._ascend_from(chain, self._with_split(chain, wanted, TUNING.again_sweeps), options)
        elif self._laps_left > 0:
            merges = 0 < wanted < self.total.K and self._may_merge()
            start = reduced(self._in_hand.model, self.total, wanted) if merges else self.total
            self._ascend_long(chain, start, options, TUNING.again_sweeps)

    def _ascend_long_in_a_row(self, chain: Chain, options: Options) -> None:
        """Long ascents in a row where laps take long, each from the best topics, without those that are there twice.

        They end when the model in hand was not bettered.  Of those that begin with no topic twice there are `Tuning.rounds` at
        most, one where a lap takes seconds, and another only follows one that gained enough.  Before each, until that is no
        better or topics are left out, one from a few more: what growth asks for varies by chance.
        """
        rounds = 1 if self._takes_seconds() else TUNING.rounds
        grows = not self._takes_seconds() and self._may_grow() and self._wanted <= self.total.K
        best = None
        while rounds > 0 and self._laps_left > 0 and self._in_hand is not best:
            best = self._in_hand
            once = self._without_twins()
            grows = grows and once is None and self._ascend_from_more(chain, options)
            bound = self.outcome.bound
            self._ascend_long(chain, self.total if once is None else once, options, TUNING.again_sweeps)
            if once is None:
                gained = self.outcome.bound > bound + TUNING.again * self.total.K
                rounds = rounds - 1 if grows or gained else 0

    def _ascend_from_more(self, chain: Chain, options: Options) -> bool:
        """A long ascent from a few more topics than the best model has, the largest split; whether it is better."""
        best = self._in_hand
        wanted = self._times(TUNING.more)
        if wanted > self.total.K:
            self._ascend_from(chain, self._with_split(chain, wanted, TUNING.again_sweeps), options)
        return self._in_hand is not best

    def _without_twins(self) -> Summary | None:
        """The topics of the best model without those that it has twice, merged as they are; None where it has next to none.

        It has some after growth that went too far, as that does where documents have a known number of topics.  Of other
        documents every topic is worth what its parameters cost.
        """
        if not self._may_merge():
            return None
        levels = self._levels_in_hand()
        most = int(TUNING.twins * self.total.K)
        lost = levels[0].bound - np.array([level.bound for level in levels[: most + 1]])
        dear = TUNING.cheap * float(self.outcome.posterior.cost.mean())
        merges = int(np.flatnonzero(lost <= dear * np.arange(len(lost)))[-1])
        return self._merged_to(levels[merges]) if merges > TUNING.few * self.total.K else None

    def _ascend_long(
        self, chain: Chain, start: Summary, options: Options, sweeps: int = growth.TUNING.last_sweeps
    ) -> None:
        """A long ascent from topics, annealed, and what follows from the best model then."""
        self._ascend_from(chain, self._annealed(chain, start, sweeps), options)

    def _ascend_from(self, chain: Chain, annealed: Annealed, options: Options) -> None:
        """An ascent from annealed topics, and what follows from the best model then."""
        best = self.outcome
        fast = self._is_fast()
        if self._removals:
            annealed = chain.pruned(annealed, self._sweeps(WINDOW, annealed.summary.K), self.executor)
        moves = self._removals if fast else ()
        trial = self._laps(best.model, moves, options, best, settle=TUNING.settle, origin="annealing")
        trial.run(annealed.summary)
        if not fast:
            self._restart_documents(trial)
        self._keep(best, trial)
        if self._is_fast():
            self._settle()
        elif self._in_hand is trial:
            self._merge_all(trial, options)

    def _last_options(self) -> Options:
        """How far the search settles in the end."""
        if self._is_fast():
            return self.options
        return self._with_short_steps(replace(self.options, share=TUNING.last_share), self.total.K)

    def _finish(self, options: Options) -> None:
        """The end where laps take long: merges through losses, then laps with merges and deletes.

        Where a lap takes less than seconds, with births, too, and then restarts of words and documents.
        """
        self._merge_more(self._in_hand, options)
        best = self._in_hand
        if not self._removals or self._laps_left <= 0:
            return
        thorough = not self._takes_seconds()
        births = thorough and "birth" in self.moves
        moves, settle = (self.moves, 0) if births else (self._removals, self._laps_left)
        last = self._laps(best.model, moves, self._last_options(), best, settle=settle, origin="settled", draws=births)
        last.run(best.total, best.counts)
        self._restart_documents(last)
        self._keep(best, last)
        if thorough:
            self._restart_all(options)
