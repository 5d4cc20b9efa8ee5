"""Ever more topics of words, until those that are new gain too little: the growth of a search."""

from dataclasses import dataclass, field, replace

import numpy as np

from ...model import Summary
from ...moves.better import WORTH
from ..laps import Laps
from ..state import Options
from . import ascents
from .ascents import ALPHA, TopicAscents
from .gibbs import Annealed, Chain, Sweeps
from .tried import Tried


@dataclass(frozen=True)
class Tuning:
    """Chosen by benchmarks/right_topics.py and benchmarks/topics.py.

    Attributes
    ----------
    fewest, least : topics of the first excursion, and of any, where laps take long
    growth, fine_growth : times as many topics in the next excursion: at first, and where laps are fast, once that is too many
    fewer : times as many topics in the next excursion where one topic is better than more of them, and laps take long
    fine_fewer : the same where laps are fast, once half as many are too few
    coarse_growth : where laps take long, ascents of the growth are compared when settled to this tolerance, in nats a topic
    worthwhile_topic : share of what the parameters of a topic cost: an excursion is the last if each topic that it adds gains
        less
    even : pseudo-counts of each topic in a document, where documents mix topics evenly
    fewest_even : topics of such an excursion, at least
    near_even : nats a document: one that is further below before alpha is learnt is the last
    sweeps, last_sweeps : sweeps of annealing before ascents of the growth, and before long ascents where laps are fast
    """

    fewest: int = 64
    least: int = 8
    growth: float = 2.0
    fine_growth: float = 1.125
    fewer: float = 0.25
    fine_fewer: float = 0.8
    coarse_growth: float = 10.0
    worthwhile_topic: float = 0.02
    even: float = 1.0
    fewest_even: int = 4
    near_even: float = 3.0
    sweeps: int = 60
    last_sweeps: int = 180


TUNING = Tuning()


@dataclass
class TopicGrowth(TopicAscents):
    """Excursions from more topics of words, each from annealed ones."""

    _tried: Tried = field(default_factory=Tried)  # the bounds of growth
    _began: tuple[Laps, Annealed] | None = None  # an ascent of growth, and what it began with
    _wanted: int = 0  # topics of the first long ascent where laps take long; 0 if growth does not tell

    @property
    def _most(self) -> int:
        """The most topics: no more than documents, which could have one each."""
        return min(self.model.max_clusters, self.source.n_rows)

    @property
    def _first_of_growth(self) -> int:
        """Topics of the first excursion, if the search begins with fewer."""
        return min(TUNING.fewest, self._most)

    def _begin_growth(self, chain: Chain, K: int, options: Options, hopeful: bool) -> None:
        """Excursions from no fewer than `Tuning.fewest` topics, and from ever more where one topic is better.

        K : topics that the first ascent began with
        hopeful : whether that was not given up
        """
        if self._first_of_growth > K:
            self._excursion(self._at_random(chain, self._first_of_growth), options)
        if self.total.K == 1 and hopeful:
            self._try_others(chain, self._tried.sizes[-1], TUNING.growth, options, np.inf)

    def _try_fewer(self, chain: Chain, options: Options) -> None:
        """Excursions from ever fewer topics, given up where the model in hand is too far above."""
        settled, times = (self.options, 1.0 / TUNING.growth) if self._is_fast() else (options, TUNING.fewer)
        self._try_others(chain, self._tried.sizes[0], times, settled, ascents.TUNING.fresh_patience)

    def _try_even(self, chain: Chain, patience: float) -> None:
        """Excursions from ever fewer topics that documents mix evenly, while these get better and are not too far below."""
        K = self._first_of_growth
        bound = -np.inf
        better = True
        while better and TUNING.growth * TUNING.fewest_even <= K and self._laps_left > 0:
            K = int(np.ceil(K / TUNING.growth))
            found = self._mixed_evenly(chain, K, patience)
            better = found > bound
            bound = found

    def _mixed_evenly(self, chain: Chain, K: int, patience: float) -> float:
        """The bound of an ascent from so many annealed topics that documents mix evenly at first; -inf if that is hopeless.

        Alpha is not learnt until words have begun in other topics: it would follow topics that are poor as yet, of which
        documents seem to need few.
        """
        best = self._in_hand
        alpha = TUNING.even * K
        nothing = Summary.zeros(K, self.total.S.shape[1])
        annealed = chain.from_summary(nothing, Sweeps(TUNING.sweeps, alpha=alpha), self.executor)
        options = self._compared(K)
        most = min(options.max_laps, len(self.history) + ascents.TUNING.longest_mixed)
        held = replace(options, max_laps=most, learn=tuple(name for name in options.learn if name != ALPHA))
        model = self._with_alpha(self.model, alpha)
        trial = self._laps(model, (), held, best, origin="mixed evenly", patience=patience)
        trial.run(annealed.summary)
        if trial.gave_up:
            return -np.inf
        trial = self._with_words_restarted(trial, held)
        if trial.bound < best.bound - TUNING.near_even * self.source.n_rows:
            return -np.inf
        trial.polish(options)
        trial = self._with_words_restarted(trial, options)
        self._restart_documents(trial)
        trial = self._with_words_restarted(trial, options)
        self._keep(best, trial)
        return trial.bound

    def _grow_on(self, chain: Chain, options: Options) -> None:
        """Excursions from ever more topics than the model in hand has."""
        self._double(chain, options)
        while self._is_fast() and self._grow(chain, self._times(TUNING.fine_growth), options):
            self._wanted = 0

    def _sweeps(self, most: int, K: int) -> Sweeps:
        """How so many topics are annealed.

        Where laps are fast, without cold sweeps: few tokens are better left to what chance finds.  Documents then mix topics at
        first no less than those of the best model.
        """
        if self._is_fast_with(K):
            return Sweeps(most, alpha=self._learnt_alpha)
        return Sweeps(most, ascents.TUNING.cold)

    def _annealed(self, chain: Chain, start: Summary, sweeps: int) -> Annealed:
        """The topics of a summary, annealed."""
        return chain.from_summary(start, self._sweeps(sweeps, start.K), self.executor)

    def _at_random(self, chain: Chain, K: int) -> Annealed:
        """So many topics from nothing, annealed."""
        return self._annealed(chain, Summary.zeros(K, self.total.S.shape[1]), TUNING.sweeps)

    def _try_others(self, chain: Chain, K: int, times: float, options: Options, patience: float) -> None:
        """Excursions from other numbers of topics at random, each so many times the last, K at first, while these get better.

        One topic may be better than many, and yet not than fewer of them, or still more.
        """
        bound = -np.inf
        better = self._tried.bounds[K]
        while better > bound and self._may_grow():
            bound = better
            wanted = int(np.ceil(times * K))
            if wanted == K or not 1 < wanted <= self._most:
                break
            K = wanted
            better = self._excursion(self._at_random(chain, K), options, patience=patience).bound

    def _double(self, chain: Chain, options: Options) -> None:
        """Excursions from twice as many topics, until these gain too little; then ``_wanted`` is what all of them tell.

        Where laps take long, no further than the number that seems best.  Where one takes seconds, the fewest topics are wanted
        that lack no more than ascents are compared to.
        """
        self._note(self.outcome)
        while self._is_fast() or self._tried.rises():
            K = self.total.K
            times = TUNING.growth if self._is_fast() else self._tried.pace(K, TUNING.growth)
            enough = self._grow(chain, self._times(times), options)
            if not enough and (self._is_fast() or self.total.K == K or len(self._tried.sizes) > 2):
                break
        if not self._is_fast():
            self._halve(chain, options)
        lacking = ascents.TUNING.coarse_topics if self._takes_seconds() else 0.0
        self._wanted = self._tried.best_number(self._most, lacking)

    def _halve(self, chain: Chain, options: Options) -> None:
        """Excursions from half as many topics, while the fewest that were tried are the best."""
        while self._may_grow() and self._tried.sizes[0] == self.total.K and len(self._tried.sizes) > 1:
            wanted = self.total.K // 2
            if wanted < TUNING.least:
                break
            self._excursion(self._at_random(chain, wanted), options, merges=False)

    def _note(self, laps: Laps) -> None:
        """Keep the bound of an ascent of the growth."""
        self._tried.note(laps.total.K, laps.bound)

    def _grow(self, chain: Chain, wanted: int, options: Options) -> bool:
        """An excursion from ``wanted`` topics, the largest split, annealed and then merged; whether it gained enough."""
        before = self.outcome.result
        if not self._may_grow() or before is None or wanted <= before.total.K:
            return False
        self._excursion(self._with_split(chain, wanted, TUNING.sweeps), options, merges=self._is_fast())
        gain = self.outcome.bound - before.bound
        more = self.total.K - before.total.K
        cost = float(self.outcome.posterior.cost.mean())
        return more > 0 and gain > TUNING.worthwhile_topic * cost * more

    def _grows_at_last(self, chain: Chain, options: Options) -> bool:
        """Whether a few more topics are better once they are as settled as the model in hand: growth compares both before."""
        best = self.outcome
        wanted = self._times(TUNING.fine_growth)
        if not self._may_grow() or wanted <= self.total.K:
            return False
        trial = self._laps(self.model, (), options, best, origin="splits")
        trial.run(self._with_split(chain, wanted, TUNING.last_sweeps).summary)
        self._keep(best, trial)
        self._ascend_alone(trial.total, self._removals, self.options)
        return self.outcome.bound > best.bound + WORTH * self.total.K

    def _times(self, times: float) -> int:
        """So many times the topics in hand, of which there may be no more than some."""
        return min(int(np.ceil(times * self.total.K)), self._most)

    def _with_split(self, chain: Chain, wanted: int, sweeps: int) -> Annealed:
        """``wanted`` topics: those in hand, the largest split, annealed."""
        annealed = self._annealed_in_hand(chain)
        topics = chain.split(annealed, wanted)
        return chain.from_topics(topics, wanted, self._sweeps(sweeps, wanted), self.executor, annealed.owners)

    def _annealed_in_hand(self, chain: Chain) -> Annealed:
        """The topics in hand, of every token: where laps take long, those that their ascent began with, if that is known."""
        if self._began is not None and not self._is_fast():
            laps, annealed = self._began
            if laps is self._in_hand and annealed.summary.K == self.total.K:
                return annealed
        return self._annealed(chain, self.total, 1)

    def _of_growth(self, options: Options, K: int) -> Options:
        """How far ascents settle that are compared to tell how many topics are best, K in hand."""
        if self._is_fast_with(K):
            return options
        return self._with_short_steps(replace(options, tol=max(TUNING.coarse_growth, options.tol)), K)

    def _excursion(self, annealed: Annealed, options: Options, merges: bool = True, patience: float = np.inf) -> Laps:
        """An ascent of the growth from annealed topics, which is returned; what may follow are merges of its topics.

        Where laps are fast and the merged topics are not better either, an ascent from these topics alone comes last.
        """
        best = self.outcome
        settled = self._of_growth(options, self.total.K)
        trial = self._laps(self.model, (), settled, best, origin="splits", patience=patience)
        trial.run(annealed.summary)
        self._note(trial)
        if self._keep(best, trial) > 0.0:
            self._began = trial, annealed
        if not merges or (self._in_hand is best and not self._is_fast()):
            return trial
        merged = self._merge_all(trial, options)
        if self._in_hand is best and merged is not trial and self._is_fast():
            self._ascend_alone(merged.total, (), options)
        return trial
