"""Topics of words, annealed: what ascents begin with."""

from dataclasses import dataclass, field

from ...model import Summary
from ..laps import Laps
from .ascents import TopicAscents
from .gibbs import Annealed, Chain, Sweeps
from .pace import WINDOW


@dataclass(frozen=True)
class Tuning:
    """Chosen by benchmarks/right_topics.py and benchmarks/topics.py.

    Attributes
    ----------
    sweeps, last_sweeps : sweeps of annealing before ascents of the growth, and before long ascents where laps are fast
    cold : sweeps of annealing at a temperature of one half, where laps take long
    """

    sweeps: int = 60
    last_sweeps: int = 180
    cold: int = 20


TUNING = Tuning()


@dataclass
class Annealing:
    """What ascents begin with: topics from nothing, those of a summary, or more than those in hand.

    search : the search that has the best model
    chain : the sampler
    """

    search: TopicAscents
    chain: Chain
    _began: tuple[Laps, Annealed] | None = field(default=None, init=False)  # an ascent, and what it began with

    def note(self, laps: Laps, annealed: Annealed) -> None:
        """What the best ascent began with."""
        self._began = laps, annealed

    def at_random(self, K: int) -> Annealed:
        """So many topics from nothing."""
        return self.of(self.nothing(K), TUNING.sweeps)

    def nothing(self, K: int) -> Summary:
        """So many topics without words."""
        return Summary.zeros(K, self.search.total.S.shape[1])

    def warm(self, start: Summary, alpha: float = 0.0) -> Annealed:
        """The topics of a summary without cold sweeps, also where laps take long.

        alpha : as in `Sweeps`
        """
        return self.chain.from_summary(start, Sweeps(TUNING.sweeps, alpha=alpha), self.search.executor)

    def of(self, start: Summary, sweeps: int) -> Annealed:
        """The topics of a summary."""
        return self.chain.from_summary(start, self._sweeps(sweeps, start.K), self.search.executor)

    def with_split(self, wanted: int, sweeps: int) -> Annealed:
        """``wanted`` topics: those in hand, the largest split."""
        known = self._in_hand()
        topics = self.chain.split(known, wanted)
        executor = self.search.executor
        return self.chain.from_topics(topics, wanted, self._sweeps(sweeps, wanted), executor, known.owners)

    def pruned(self, annealed: Annealed) -> Annealed:
        """Annealed topics without those much smaller than the mean."""
        return self.chain.pruned(annealed, self._sweeps(WINDOW, annealed.summary.K), self.search.executor)

    def _in_hand(self) -> Annealed:
        """The topics in hand, of every token: where laps take long, those that their ascent began with, if that is known."""
        search = self.search
        if self._began is not None and not search.is_fast():
            laps, annealed = self._began
            if laps is search.outcome and annealed.summary.K == search.total.K:
                return annealed
        return self.of(search.total, 1)

    def _sweeps(self, most: int, K: int) -> Sweeps:
        """How so many topics are annealed.

        Where laps are fast, without cold sweeps: few tokens are better left to what chance finds.  Documents then mix topics at
        first no less than those of the best model.
        """
        if self.search.speed.is_fast(K):
            return Sweeps(most, alpha=self.search.learnt_alpha)
        return Sweeps(most, TUNING.cold)
