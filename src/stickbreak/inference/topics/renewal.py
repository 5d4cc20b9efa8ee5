"""The search for topics that goes on from those of a stream, on a sample of it."""

from dataclasses import dataclass

from ...data import BagSource
from ...model import Summary
from . import growth
from .annealing import Annealing
from .ascents import TopicAscents
from .gibbs import Chain
from .growth import Growth
from .restarts import Restarts
from .speed import coarse
from .splits import Splits


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
class TopicRenewal(TopicAscents):
    """Whether other topics explain documents better than those that a stream has.

    The first ascent is that of these topics.  Excursions then begin with some more: without words, so that they collect what
    the others explain worst, and with topics that are split.
    """

    def run(self, start: Summary) -> None:
        """Search from the topics of the stream; the outcome is ``best``."""
        if not isinstance(self.source, BagSource):
            Splits(self, Restarts(self)).run(start)
            return
        annealing = Annealing(self, Chain(self.model, self.source, self.rng.spawn(1)[0], self.learns_alpha))
        excursions = Growth(self, annealing)
        options = coarse(self.options)
        self.draws = False
        first = self.begin(start, options)
        excursions.note(first)
        self.merge_all(first, options)
        K = self.total.K
        blank = min(max(TUNING.least_blank, int(TUNING.blank * K)), self.model.max_clusters - K)
        if self.may_grow() and blank > 0:
            wider = self.total.as_start.insert_empty(blank)
            excursions.excursion(annealing.warm(wider), options)
            while excursions.grows(excursions.times(growth.TUNING.growth), options):
                continue
        self.refresh()
        self.merge_through_losses(self.options)
