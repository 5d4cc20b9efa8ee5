"""The search for topics that goes on from those of a stream, on a sample of it."""

from dataclasses import dataclass, replace

from ...data import BagSource
from ...model import Summary
from . import ascents, growth
from .gibbs import Chain, Sweeps
from .search import TopicSearch


@dataclass(frozen=True)
class Tuning:
    """Chosen by benchmarks/streams.py.

    Attributes
    ----------
    blank, least_blank : topics without words, among which those may form that no other explains: as a share of the topics, and
        at least
    """

    blank: float = 0.5
    least_blank: int = 4


TUNING = Tuning()


@dataclass
class TopicRenewal(TopicSearch):
    """Whether other topics explain documents better than those that a stream has (see `TopicSearch`).

    The first ascent is that of these topics.  Excursions then begin with some more: without words, so that they collect what
    the others explain worst, and with topics that are split.
    """

    def run(self, start: Summary) -> None:
        """Search from the topics of the stream; the outcome is ``best``."""
        if not isinstance(self.source, BagSource):
            self._run_without_annealing(start)
            return
        chain = Chain(self.model, self.source, self.rng.spawn(1)[0], "document_concentration" in self.options.learn)
        coarse = replace(self.options, tol=max(ascents.TUNING.coarse_topics, self.options.tol))
        self.draws = False
        self.best = self._laps(self.model, (), coarse)
        self.best.run(start)
        self._note(self.best)
        self._merge_all(self.best, coarse)
        K = self.total.K
        blank = min(max(TUNING.least_blank, int(TUNING.blank * K)), self.model.max_clusters - K)
        if self._may_grow() and blank > 0:
            wider = self.total.as_start.insert_empty(blank)
            self._excursion(chain.from_summary(wider, Sweeps(growth.TUNING.sweeps), self.executor), coarse)
            while self._grow(chain, self._times(growth.TUNING.growth), coarse):
                continue
        self._refresh()
        self._merge_more(self._in_hand, self.options)
