"""Long ascents from annealed topics of words, once growth has told how many: what they begin with, and the end of a search."""

from dataclasses import dataclass

import numpy as np

from ...model import Summary
from ...moves.agglomeration import reduced
from ..state import Options
from . import annealing
from .annealing import Annealing
from .ascents import TopicAscents
from .gibbs import Annealed
from .growth import Growth
from .restarts import Restarts
from .speed import coarse


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
    again_sweeps : sweeps of annealing before each long ascent, where laps take long
    """

    settle: int = 4
    rounds: int = 4
    again: float = 5.0
    cheap: float = 0.5
    few: float = 0.02
    twins: float = 0.1
    more: float = 1.15
    again_sweeps: int = 60


TUNING = Tuning()


@dataclass
class LongAscents:
    """Ascents from the topics that growth has found, annealed once more, to where a search ends.

    search : the search that has the best model
    """

    search: TopicAscents
    annealing: Annealing
    growth: Growth
    restarts: Restarts

    def while_merging(self, options: Options) -> None:
        """Long ascents where laps are fast, until none merges any topics."""
        search = self.search
        K = search.total.K + 1
        while search.may_lap() and search.total.K < K:
            K = search.total.K
            self._ascend(search.total, options, annealing.TUNING.last_sweeps)
            fewer = self._nearly_as_good()
            if fewer is not None:
                self._ascend(fewer, options, annealing.TUNING.last_sweeps)

    def first(self, options: Options) -> None:
        """The first long ascent where laps take long, from as many topics as growth asks for."""
        search = self.search
        wanted = self.growth.wanted
        if wanted > search.total.K:
            self._ascend_from(self.annealing.with_split(wanted, TUNING.again_sweeps), options)
        elif search.may_lap():
            merges = 0 < wanted < search.total.K and search.may_merge()
            start = reduced(search.outcome.model, search.total, wanted) if merges else search.total
            self._ascend(start, options, TUNING.again_sweeps)

    def in_a_row(self, options: Options) -> None:
        """Long ascents in a row where laps take long, each from the best topics, without those that are there twice.

        They end when the model in hand was not bettered.  Of those that begin with no topic twice there are `Tuning.rounds` at
        most, one where a lap takes seconds, and another only follows one that gained enough.  Before each, until that is no
        better or topics are left out, one from a few more: what growth asks for varies by chance.
        """
        search = self.search
        rounds = 1 if search.takes_seconds() else TUNING.rounds
        grows = not search.takes_seconds() and search.may_grow() and self.growth.wanted <= search.total.K
        best = None
        while rounds > 0 and search.may_lap() and search.outcome is not best:
            best = search.outcome
            once = self._without_twins()
            grows = grows and once is None and self._ascend_from_more(options)
            bound = search.outcome.bound
            self._ascend(search.total if once is None else once, options, TUNING.again_sweeps)
            if once is None:
                gained = search.outcome.bound > bound + TUNING.again * search.total.K
                rounds = rounds - 1 if grows or gained else 0

    def finish(self, options: Options) -> None:
        """The end where laps take long: merges through losses, then laps with merges and deletes.

        Where a lap takes less than seconds, with births, too, and then restarts of words and documents.
        """
        search = self.search
        search.merge_through_losses(options)
        if not search.may_remove() or not search.may_lap():
            return
        thorough = not search.takes_seconds()
        best = search.outcome.total
        settled = search.speed.at_last(search.options, best.K)
        last = search.go_on(settled, births=thorough and "birth" in search.moves)
        self.restarts.documents(last)
        search.keep(last)
        if thorough:
            self.restarts.all(options)

    def _ascend_from_more(self, options: Options) -> bool:
        """A long ascent from a few more topics than the best model has, the largest split; whether it is better."""
        search = self.search
        best = search.outcome
        wanted = self.growth.times(TUNING.more)
        if wanted > search.total.K:
            self._ascend_from(self.annealing.with_split(wanted, TUNING.again_sweeps), options)
        return search.outcome is not best

    def _nearly_as_good(self) -> Summary | None:
        """The fewest topics, merged as they are, that lack no more than ascents are compared to."""
        search = self.search
        if not search.may_merge():
            return None
        levels = search.levels()
        least = levels[0].bound - coarse(search.options).tol * search.total.K
        near = [level for level in levels[1:] if level.bound > least]
        return search.merged_to(near[-1]) if near else None

    def _without_twins(self) -> Summary | None:
        """The topics of the best model without those that it has twice, merged as they are; None where it has next to none.

        It has some after growth that went too far, as that does where documents have a known number of topics.  Of other
        documents every topic is worth what its parameters cost.
        """
        search = self.search
        if not search.may_merge():
            return None
        levels = search.levels()
        most = int(TUNING.twins * search.total.K)
        lost = levels[0].bound - np.array([level.bound for level in levels[: most + 1]])
        dear = TUNING.cheap * float(search.outcome.posterior.cost.mean())
        merges = int(np.flatnonzero(lost <= dear * np.arange(len(lost)))[-1])
        return search.merged_to(levels[merges]) if merges > TUNING.few * search.total.K else None

    def _ascend(self, start: Summary, options: Options, sweeps: int) -> None:
        """A long ascent from topics, annealed, and what follows from the best model then."""
        self._ascend_from(self.annealing.of(start, sweeps), options)

    def _ascend_from(self, annealed: Annealed, options: Options) -> None:
        """An ascent from annealed topics, and what follows from the best model then."""
        search = self.search
        best = search.outcome
        fast = search.is_fast()
        if search.may_remove():
            annealed = self.annealing.pruned(annealed)
        start = annealed.summary
        trial = search.ascend(best.model, start, options, "annealing", removes=fast, settle=TUNING.settle)
        if not fast:
            self.restarts.documents(trial)
        kept = search.keep(trial)
        if search.is_fast():
            search.settle()
        elif kept:
            search.merge_all(trial, options)
