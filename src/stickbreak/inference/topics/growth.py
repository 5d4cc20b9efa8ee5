"""Ever more topics of words, until those that are new gain too little: the growth of a search."""

from dataclasses import dataclass, field

import numpy as np

from ...moves.better import WORTH
from ..laps import Laps
from ..state import Options
from . import annealing, ascents, speed
from .annealing import Annealing
from .ascents import TopicAscents
from .gibbs import Annealed
from .tried import Tried


@dataclass(frozen=True)
class Tuning:
    """Chosen by benchmarks/right_topics.py and benchmarks/topics.py.

    Attributes
    ----------
    fewest, least : topics of the first excursion, and of any, where laps take long
    growth, fine_growth : times as many topics in the next excursion: at first, and where laps are fast, once that is too many
    fewer : times as many topics in the next excursion where one topic is better than more of them, and laps take long
    worthwhile_topic : share of what the parameters of a topic cost: an excursion is the last if each topic that it adds gains
        less
    """

    fewest: int = 64
    least: int = 8
    growth: float = 2.0
    fine_growth: float = 1.125
    fewer: float = 0.25
    worthwhile_topic: float = 0.02


TUNING = Tuning()


@dataclass
class Growth:
    """Excursions from other numbers of topics of words, each from annealed ones, which tell how many are best.

    search : the search that has the best model
    annealing : makes what excursions begin with
    tried : the bounds of the excursions
    wanted : topics of the first long ascent where laps take long; 0 if the bounds do not tell
    """

    search: TopicAscents
    annealing: Annealing
    tried: Tried = field(default_factory=Tried, init=False)
    wanted: int = field(default=0, init=False)

    @property
    def first(self) -> int:
        """Topics of the first excursion, if the search begins with fewer."""
        return min(TUNING.fewest, self.search.most)

    def begin(self, K: int, options: Options, hopeful: bool) -> None:
        """Excursions from no fewer than `Tuning.fewest` topics, and from ever more where one topic is better.

        K : topics that the first ascent began with
        hopeful : whether that was not given up
        """
        if self.first > K:
            self.excursion(self.annealing.at_random(self.first), options)
        if self.search.total.K == 1 and hopeful:
            self.try_others(self.tried.sizes[-1], TUNING.growth, options)

    def try_fewer(self, options: Options) -> None:
        """Excursions from ever fewer topics, given up where the model in hand is too far above."""
        settled, times = options, TUNING.fewer
        if self.search.is_fast():
            settled, times = self.search.options, 1.0 / TUNING.growth
        self.try_others(self.tried.sizes[0], times, settled, ascents.TUNING.fresh_patience)

    def try_others(self, K: int, times: float, options: Options, patience: float = np.inf) -> None:
        """Excursions from other numbers of topics at random, each so many times the last, K at first, while these get better.

        One topic may be better than many, and yet not than fewer of them, or still more.
        """
        bound = -np.inf
        better = self.tried.bounds[K]
        while better > bound and self.search.may_grow():
            bound = better
            wanted = int(np.ceil(times * K))
            if wanted == K or not 1 < wanted <= self.search.most:
                break
            K = wanted
            better = self.excursion(self.annealing.at_random(K), options, patience=patience).bound

    def grow_on(self, options: Options) -> None:
        """Excursions from ever more topics than the model in hand has."""
        self.double(options)
        while self.search.is_fast() and self.grows(self.times(TUNING.fine_growth), options):
            self.wanted = 0

    def double(self, options: Options) -> None:
        """Excursions from twice as many topics, until these gain too little; then ``wanted`` is what all of them tell.

        Where laps take long, no further than the number that seems best.  Where one takes seconds, the fewest topics are wanted
        that lack no more than ascents are compared to.
        """
        search = self.search
        self.note(search.outcome)
        while search.is_fast() or self.tried.rises():
            K = search.total.K
            times = TUNING.growth if search.is_fast() else self.tried.pace(K, TUNING.growth)
            enough = self.grows(self.times(times), options)
            if not enough and (search.is_fast() or search.total.K == K or len(self.tried.sizes) > 2):
                break
        if not search.is_fast():
            self._halve(options)
        lacking = speed.TUNING.coarse_topics if search.takes_seconds() else 0.0
        self.wanted = self.tried.best_number(search.most, lacking)

    def _halve(self, options: Options) -> None:
        """Excursions from half as many topics, while the fewest that were tried are the best."""
        search = self.search
        while search.may_grow() and self.tried.sizes[0] == search.total.K and len(self.tried.sizes) > 1:
            wanted = search.total.K // 2
            if wanted < TUNING.least:
                break
            self.excursion(self.annealing.at_random(wanted), options, merges=False)

    def note(self, laps: Laps) -> None:
        """Keep the bound of an ascent that tells how many topics are best."""
        self.tried.note(laps.total.K, laps.bound)

    def times(self, times: float) -> int:
        """So many times the topics in hand, of which there may be no more than some."""
        return min(int(np.ceil(times * self.search.total.K)), self.search.most)

    def grows(self, wanted: int, options: Options) -> bool:
        """An excursion from ``wanted`` topics, the largest split, annealed and then merged; whether it gained enough."""
        search = self.search
        before = search.outcome.result
        if not search.may_grow() or before is None or wanted <= before.total.K:
            return False
        annealed = self.annealing.with_split(wanted, annealing.TUNING.sweeps)
        self.excursion(annealed, options, merges=search.is_fast())
        gain = search.outcome.bound - before.bound
        more = search.total.K - before.total.K
        cost = float(search.outcome.posterior.cost.mean())
        return more > 0 and gain > TUNING.worthwhile_topic * cost * more

    def grows_at_last(self, options: Options) -> bool:
        """Whether a few more topics are better once they are as settled as the model in hand: growth compares both before."""
        search = self.search
        best = search.outcome
        wanted = self.times(TUNING.fine_growth)
        if not search.may_grow() or wanted <= search.total.K:
            return False
        annealed = self.annealing.with_split(wanted, annealing.TUNING.last_sweeps)
        trial = search.ascend(search.model, annealed.summary, options, "splits")
        search.keep(trial)
        search.ascend_alone(trial.total, search.options, removes=True)
        return search.outcome.bound > best.bound + WORTH * search.total.K

    def excursion(self, annealed: Annealed, options: Options, *, merges: bool = True, patience: float = np.inf) -> Laps:
        """An ascent of the growth from annealed topics, which is returned; what may follow are merges of its topics.

        Where laps are fast and the merged topics are not better either, an ascent from these topics alone comes last.
        """
        search = self.search
        best = search.outcome
        settled = search.speed.of_growth(options, search.total.K)
        trial = search.ascend(search.model, annealed.summary, settled, "splits", patience=patience)
        self.note(trial)
        if search.keep(trial):
            self.annealing.note(trial, annealed)
        if not merges or (search.outcome is best and not search.is_fast()):
            return trial
        merged = search.merge_all(trial, options)
        if search.outcome is best and merged is not trial and search.is_fast():
            search.ascend_alone(merged.total, options)
        return trial
